"""Time limits and Ctrl-C: long work asks now and then whether it is over, and ends where everything is in order.

A limit holds for all the work inside its ``with`` block, however deep, in this thread: every loop asks ``is_over()``, and
no caller has to pass the limit on.  Limits nest; the earliest deadline counts, and Ctrl-C is one flag for all of them.

A run that Ctrl-C has ended returns the point it has, which a person at a prompt can use.  A program, such as a search over
parameters, would go on to the next run as if nothing had happened: so a run that begins right after one raises.
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


IDLE = 1.0  # seconds in which the thread does nothing: a person at a prompt takes them between two runs, a program does not


class Exceeded(Exception):
    """Raised by work that is of no use half done, such as a product with the kernel matrix; the loop above it catches it."""


class Pressed(threading.Event):
    """Set by Ctrl-C; with ``at_once`` that is to raise as soon as it can."""

    def __init__(self, *, at_once: bool):
        super().__init__()
        self.at_once = at_once


class Limit:
    """A deadline, and whether Ctrl-C was pressed."""

    def __init__(self, deadline: float, pressed: Pressed):
        self.deadline, self._pressed = deadline, pressed

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C was pressed since the outermost limit began."""
        return self._pressed.is_set()

    @property
    def raises(self) -> bool:
        """Whether Ctrl-C raises as soon as it can."""
        return self._pressed.at_once

    @property
    def is_over(self) -> bool:
        """Whether the work is to end now; raises where Ctrl-C is to, and could not when it was pressed."""
        if self._pressed.is_set():
            if self._pressed.at_once and threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return True
        return time.perf_counter() >= self.deadline


_current: ContextVar[Limit | None] = ContextVar("limit", default=None)


class _Unheard:
    """When a run of the main thread returned that Ctrl-C had ended; a program may not have noticed."""

    def __init__(self) -> None:
        self._since: float | None = None

    @staticmethod
    def _idle() -> float:
        """Return how long the thread has done nothing, from some moment on: scores of one fold may take any time."""
        return time.perf_counter() - time.thread_time()

    def note(self) -> None:
        self._since = self._idle()

    def clear(self) -> None:
        self._since = None

    def tell(self) -> None:
        """Raise, once, if the next run begins right after one that was interrupted."""
        since, self._since = self._since, None
        if since is not None and self._idle() - since < IDLE:
            raise KeyboardInterrupt(
                "Ctrl-C ended the fit before this one, and a program has begun the next at once: it ends here. "
                "To go on after an interrupted fit, catch this KeyboardInterrupt and call again."
            )


_unheard = _Unheard()
heard = _unheard.clear  # Ctrl-C was told to the caller in another way: nothing is left to raise


def is_over() -> bool:
    """Whether the limit this thread works under has been reached; False if there is none."""
    limit = _current.get()
    return limit is not None and limit.is_over


def check() -> None:
    """Raise ``Exceeded`` if the limit has been reached."""
    if is_over():
        raise Exceeded


def raises() -> bool:
    """Whether Ctrl-C raises in the work that this thread does a part of: nobody will go on from the point it has."""
    limit = _current.get()
    return limit is not None and limit.raises


@contextmanager
def limits(max_time: float | None = None) -> Iterator[Limit]:
    """Work under a limit of so many seconds, and turn the first Ctrl-C into a flag; a second one raises.

    Raises ``KeyboardInterrupt`` before any work where the run just before this one was ended by Ctrl-C.
    """
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


NOWHERE_TO_RAISE = ("numba.core.serialize", "llvmlite.binding.executionengine", "weakref", "zerogap.memory")


def _is_between(frame: Any) -> bool:
    """Whether a frame is between compiled code and ours, where nothing may raise.

    Numba makes named tuples there, and crashes; LLVM hands over the code that it has made, and drops what is raised and with
    it the code.  Python drops what is raised where an object is done with (``memory``).
    """
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module in NOWHERE_TO_RAISE or module.startswith("namedtuple_"):
            return True
        if module.startswith("zerogap."):
            return False
        frame = frame.f_back
    return False


@contextmanager
def _ctrl_c(*, at_once: bool = False) -> Iterator[Pressed]:
    """Let the first Ctrl-C set a flag, so that it never falls in the middle of an update; a second one raises.

    ``at_once``: the first one raises too.  Where it cannot, the next question whether the work is over does.
    """
    pressed = Pressed(at_once=at_once)
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return

    def press(signum: int, frame: Any) -> None:
        is_second = pressed.is_set()
        pressed.set()
        if (at_once or is_second) and not _is_between(frame):
            raise KeyboardInterrupt

    if not at_once:
        _unheard.tell()
    previous = signal.signal(signal.SIGINT, press)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, previous)
    if pressed.is_set() and not at_once:  # an error tells by itself that the run is over
        _unheard.note()
