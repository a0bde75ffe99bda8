"""Which members of a class the reference shows: those of zerogap that are explained in full, not what scikit-learn adds."""

import importlib
import inspect
import re
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Parameters\n", "Returns\n", "Yields\n")


def classes_with(getter: Any) -> list[type]:
    """Return the class that a property was written in, and those made of it."""
    found = [getattr(importlib.import_module(getter.__module__), getter.__qualname__.split(".")[0])]
    for cls in found:
        found += cls.__subclasses__()
    return found


def is_attribute(getter: Any) -> bool:
    """Return whether some class lists a property among its attributes; others are for the package itself."""
    line = re.compile(rf"^\s*(?:\w+, )*{getter.__name__}(?:, \w+)* :", flags=re.MULTILINE)
    return any(line.search(cls.__doc__ or "") for cls in classes_with(getter))


def is_for_users(member: Any) -> bool:
    """Return whether a member is an attribute, or a method that zerogap explains with parameters and results."""
    function = inspect.unwrap(getattr(member, "__func__", member))
    if isinstance(member, property):
        return bool(member.fget) and member.fget.__module__.startswith("zerogap") and is_attribute(member.fget)
    if not getattr(function, "__module__", "").startswith("zerogap"):
        return False
    return any(section in (inspect.getdoc(function) or "") for section in SECTIONS)


def skip(app: Sphinx, what: str, name: str, member: Any, is_skipped: bool, options: Any) -> bool | None:
    """Answer autodoc's question about a member of a class."""
    return None if what != "class" or is_skipped else not is_for_users(member)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
