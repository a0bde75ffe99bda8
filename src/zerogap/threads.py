"""Threads for blocks of kernel values: as many as BLAS would use, while BLAS itself is held to one.

Threads of BLAS pay in long products only, and what is done with a product, an exponential as a rule, they leave to one
core.  So a block is cut into pieces, and threads of ours take a piece after the other: the product, and what is done with it
while it is in the core's own cache.  A user's limit on BLAS threads (``OPENBLAS_NUM_THREADS``, ``threadpoolctl``, a worker of
joblib) is a limit on these.
"""

import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from zerogap import limits

UNTHREADED = 10_000  # multiplications: BLAS takes one thread for so few of its own accord


class _Blas:
    """The BLAS libraries of this process, and who holds them to one thread."""

    def __init__(self) -> None:
        import scipy.linalg  # noqa: F401  (it has a BLAS of its own, which is found only once it is there)

        self._libraries = [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]
        self._lock, self._holders, self._threads = threading.Lock(), 0, [1]

    def threads(self) -> int:
        """Return how many threads BLAS may use where nobody holds it to one."""
        with self._lock:
            return max(self._threads if self._holders else self._found(), default=1)

    def _found(self) -> list[int]:
        return [library.get_num_threads() or 1 for library in self._libraries]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold BLAS to one thread; the last of those who do lets it go."""
        with self._lock:
            if not self._holders:
                self._threads = self._found()
                self._set([1] * len(self._libraries))
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._set(self._threads)

    def _set(self, threads: list[int]) -> None:
        for library, count in zip(self._libraries, threads, strict=True):
            # Of threadpoolctl 3.8 one thread is in control, what others set has no effect; here the lock says whose turn it is.
            yield_control = getattr(library, "clear_controlling_thread", lambda force=False: None)
            yield_control(force=True)
            library.set_num_threads(count)
            yield_control()


@cache
def _blas() -> _Blas:
    return _Blas()


@cache
def _helpers() -> ThreadPoolExecutor:
    """Threads that wait for work; they cost nothing while they do."""
    return ThreadPoolExecutor(max(1, os.cpu_count() or 1), thread_name_prefix="zerogap")


def _forget_helpers() -> None:
    """In a forked process there are no threads but the one that forked, and a lock may be held for ever."""
    _helpers.cache_clear()
    _blas.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)


@contextmanager
def alone(multiplications: int, most: float = math.inf) -> Iterator[None]:
    """Compute products of so many multiplications without threads of BLAS, unless it is more than some.

    Its threads wait for each other longer than small products take.  And for some hundredths of a second they wait for the next
    product by asking over and over, on a core that others could use.
    """
    if UNTHREADED <= multiplications <= most:
        with _blas().held():
            yield
    else:
        yield


@contextmanager
def several_at_once() -> Iterator[None]:
    """Work of which threads of the caller's do several parts at once: BLAS takes one thread, and finds the same digits."""
    with _blas().held():
        yield


def beside(work: Callable[..., Any], *arguments: Any) -> Future[Any] | None:
    """Begin work on another thread, under the limits of this one; None where one thread is all there may be: do it here."""
    if _blas().threads() < 2:
        return None
    return _helpers().submit(copy_context().run, work, *arguments)


def share(work: Callable[[Any], None], pieces: Iterable[Any]) -> None:
    """Call ``work`` with every piece, on all threads; raise ``Exceeded`` if the limit came before the last of them.

    A piece at least is worked on first: what is small is done, whatever the limit.
    """
    left, lock = iter(pieces), threading.Lock()
    is_over = threading.Event()

    def next_piece() -> Any:
        with lock:
            return None if is_over.is_set() else next(left, None)

    def help_out() -> None:
        while (piece := next_piece()) is not None:
            work(piece)

    def lead() -> None:
        while (piece := next_piece()) is not None:
            work(piece)
            if limits.is_over() and (piece := next_piece()) is not None:
                raise limits.Exceeded

    count = _blas().threads() - 1
    with _blas().held():
        helpers = [_helpers().submit(help_out) for _ in range(count)]
        try:
            lead()
        except BaseException:
            is_over.set()
            raise
        finally:
            for helper in helpers:
                if not helper.cancel():
                    helper.exception()  # wait: it writes to the caller's arrays
        for helper in helpers:
            if not helper.cancelled():
                helper.result()
