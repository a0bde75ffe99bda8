"""Which members of a class the reference shows: those of zerogap that are explained in full, not what scikit-learn adds."""

import importlib
import inspect
import re
from typing import Any

from sphinx.application import Sphinx

SECTIONS = ("Parameters\n", "Returns\n", "Yields\n")


def owner(function: Any) -> Any:
    """Return the class that a method was written in; None if it is no method."""
    return getattr(importlib.import_module(function.__module__), function.__qualname__.split(".")[0], None)


def classes_with(getter: Any) -> list[type]:
    """Return the class that a property was written in, and those made of it."""
    found = [owner(getter)]
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
    return is_explained(function)


def is_explained(function: Any) -> bool:
    """Return whether a method, or the one that it overrides, says what it takes or returns."""
    versions = [vars(base).get(function.__name__) for base in getattr(owner(function), "__mro__", ())]
    texts = [inspect.getdoc(version) or "" for version in (function, *versions) if version is not None]
    return any(section in text for text in texts for section in SECTIONS)


def skip(app: Sphinx, what: str, name: str, member: Any, is_skipped: bool, options: Any) -> bool | None:
    """Answer autodoc's question about a member of a class."""
    return None if what != "class" or is_skipped else not is_for_users(member)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
