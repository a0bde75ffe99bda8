"""Time limits and Ctrl-C: long work asks now and then whether it is over, and ends where everything is in order.

A limit holds for all the work inside its ``with`` block, however deep, in this thread: every loop asks ``is_over()``, and
no caller has to pass the limit on.  Limits nest; the earliest deadline counts, and Ctrl-C is one flag for all of them.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

WORK_PER_QUESTION = (
    20_000_000  # updated residuals between two questions whether the limit is over: hundredths of a second
)


class Exceeded(Exception):
    """Raised by work that is of no use half done, such as a product with the kernel matrix; the loop above it catches it."""


class Limit:
    """A deadline, and whether Ctrl-C was pressed."""

    def __init__(self, deadline: float, pressed: threading.Event):
        self.deadline, self._pressed = deadline, pressed

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C was pressed since the outermost limit began."""
        return self._pressed.is_set()

    @property
    def is_over(self) -> bool:
        """Whether the work is to end now."""
        return self._pressed.is_set() or time.perf_counter() >= self.deadline


_current: ContextVar[Limit | None] = ContextVar("limit", default=None)


def is_over() -> bool:
    """Whether the limit this thread works under has been reached; False if there is none."""
    limit = _current.get()
    return limit is not None and limit.is_over


def check() -> None:
    """Raise ``Exceeded`` if the limit has been reached."""
    if is_over():
        raise Exceeded


@contextmanager
def limits(max_time: float | None = None) -> Iterator[Limit]:
    """Work under a limit of so many seconds, and turn the first Ctrl-C into a flag; a second one raises."""
    outer = _current.get()
    deadline = float("inf") if max_time is None else time.perf_counter() + max_time
    if outer is not None:
        with _entered(Limit(min(deadline, outer.deadline), outer._pressed)) as limit:
            yield limit
        return
    with _ctrl_c() as pressed, _entered(Limit(deadline, pressed)) as limit:
        yield limit


@contextmanager
def unlimited() -> Iterator[None]:
    """Work that has to be finished, such as the certificate of the point a limit has left."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def interruptible() -> Iterator[None]:
    """Work in which Ctrl-C raises ``KeyboardInterrupt`` at once, even inside a run: its point is not needed.

    Compilers call Python functions back and drop what these raise, so that it is raised again at the end.
    """
    with _ctrl_c(at_once=True) as pressed:
        with _entered(Limit(float("inf"), pressed)):
            try:
                yield
            except Exceeded:  # Ctrl-C has ended it, too
                if not pressed.is_set():
                    raise
        if pressed.is_set():
            raise KeyboardInterrupt


@contextmanager
def _entered(limit: Limit) -> Iterator[Limit]:
    token = _current.set(limit)
    try:
        yield limit
    finally:
        _current.reset(token)


@contextmanager
def _ctrl_c(*, at_once: bool = False) -> Iterator[threading.Event]:
    """Let the first Ctrl-C set a flag, so that it never falls in the middle of an update; a second one raises.

    ``at_once``: the first one raises too.
    """
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def press(signum: int, frame: Any) -> None:
        is_second = pressed.is_set()
        pressed.set()
        if at_once or is_second:
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, previous)
