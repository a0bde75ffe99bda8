"""Ctrl-C as a flag: long work ends at a point where everything is in order."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupts() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag, so that it never falls in the middle of an update; a second one raises."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    pressed = False
    previous = signal.getsignal(signal.SIGINT)

    def press(signum: int, frame: Any) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    signal.signal(signal.SIGINT, press)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, previous)
