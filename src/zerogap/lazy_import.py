"""Names of a package that are loaded when first used: importing one costs no more than what it needs itself."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def loader(package: str, homes: dict[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names live in its submodules; "" is the submodule itself."""

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(sorted(homes))}")
        module = import_module(f"{package}.{homes[name] or name}")
        value = getattr(module, name) if homes[name] else module
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
