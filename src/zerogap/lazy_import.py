"""Names of a package that are loaded when first used: importing one costs no more than what it needs itself."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def loader(
    package: str, homes: dict[str, str], elsewhere: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names live in its submodules; "" is the submodule itself.

    A class that is not there but in the ``__all__`` of a package ``elsewhere`` is refused with that address.
    """

    def load(name: str) -> Any:
        if name not in homes:
            is_class = name[:1].isupper()  # other names may be submodules that are being imported
            for other in elsewhere if is_class else ():
                if name in import_module(other).__all__:
                    raise AttributeError(
                        f"module {package!r} has no attribute {name!r}; write: from {other} import {name}"
                    )
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(homes))}")
        module = import_module(f"{package}.{homes[name] or name}")
        value = getattr(module, name) if homes[name] else module
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
