"""``zerogap certify``: the duality gap of a model on its training file, computed anew from the data."""

from typing import Any


def add(commands: Any) -> None:
    """Add the command."""
