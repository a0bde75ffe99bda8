"""Paths of pairs of classes, whose kernel matrices are parts of one that they share."""

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median
from typing import Any

import numpy as np

from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.limits import Exceeded, limits
from zerogap.path.engine import Options
from zerogap.path.exactness import check_result
from zerogap.path.family import Family
from zerogap.path.following import follow_on, mend, refuse_indefinite, refuse_overflow, small_products, start_engine
from zerogap.path.middle import centre_biases
from zerogap.path.result import Path

CACHE = 1000.0  # megabytes: a matrix of all classes is kept if it takes no more


class Shared:
    """The kernel matrix of all classes, if memory holds it; else the points, from which pairs compute their own."""

    def __init__(self, gram: Gram, cache_size: float = CACHE):
        self.gram, self._cache_size = gram, cache_size
        if gram.holds_all:
            with suppress(Exceeded):  # what is followed with it will be told as well
                gram.full()

    def part(self, points: np.ndarray) -> Gram:
        """Return the matrix of some of the points."""
        if self.gram.is_complete:
            return self.gram.subset(points)
        return Gram.of_checked(self.gram.X[points], self.gram.kernel, self._cache_size)


class PairPath(Path):
    """The path of two of several classes; the rows of the others have no weight in it.

    Its kernel matrix is made when it is asked for, from that of all classes: all pairs together would have twice as much to
    keep, and with classes of unequal size many times.
    """

    _own: Gram | None = None
    _points: Any = None
    _shared: Shared | None = None
    _places: np.ndarray  # of the points in the matrix of all classes

    @property
    def gram(self) -> Gram | None:
        """The kernel matrix of the distinct points; None if the path was loaded without it."""
        if self._own is None and self._shared is not None:
            return self._shared.part(self._places)
        return self._own

    @gram.setter
    def gram(self, gram: Gram | None) -> None:
        self._own = gram

    @property
    def X(self) -> Any:
        """The distinct points, or None if the path was loaded without them."""
        if self._points is None and self._shared is not None:
            whole = self._shared.gram
            return whole.kernel.taken(whole.X, self._places)
        return self._points

    @X.setter
    def X(self, X: Any) -> None:
        self._points = X

    @classmethod
    def begin(
        cls, shared: Shared, places: np.ndarray, points: Distinct, y: np.ndarray, C_min: float, *, has_bias: bool = True
    ) -> "PairPath":
        """Return a path without a segment, of distinct points that have these places in the matrix of all classes."""
        family = Family.hinge(y, points.weight, has_bias=has_bias)
        return cls(family, points, np.zeros(y.size), 1.0 / C_min, shared.part(places)).of(shared, places)

    def of(self, shared: Shared, places: np.ndarray) -> "PairPath":
        """Take kernel values from a matrix in which the distinct points have these places."""
        self._shared, self._places = shared, places
        return self

    def follow(
        self,
        options: Options,
        C_max: float,
        *,
        max_events: int | None,
        share: float | None,
        verbose: bool,
        prove: bool = True,
    ) -> "PairPath":
        """Follow the path to C_max, or as far as limits allow; ``status`` says which.  Warn of what is not exact.

        A ``share`` of the time, in seconds from now on, ends it at the earliest behind its first segment.
        Without ``prove`` the largest gap is left open: ``largest_gap_`` proves it when it is asked for.
        """
        began = time.perf_counter()
        with limits() as limit, small_products():
            try:
                refuse_overflow(self, C_max)
                refuse_indefinite(self)
                start_engine(self, options, 1.0 / C_max)
                with limits(_left_of(share, began)):
                    status = follow_on(self, C_max, max_events, verbose, prove=prove)
            except Exceeded:
                status = "interrupted" if limit.was_interrupted else "max_time"
            self.seal(status)
            mend(self, options, C_max)
            centre_biases(self)
            with limits(_left_of(share, began)):
                check_result(self, options)
        return self

    def release(self) -> "PairPath":
        """Keep what is read, and let go of what a path is followed with: the engine, the proof, and the matrix."""
        assert self._own is not None
        self._norm = np.sqrt(np.abs(self._own.diagonal))
        proved = len(self._segments) - self.n_unproved
        self._largest, self._proved, self._proof = self.proved, proved, None
        self.engine, self._own = None, None
        return self


def follow_all(
    begin: Callable[[int], PairPath],
    count: int,
    options: Options,
    C_max: float,
    *,
    max_events: int | None,
    deadline: float | None,
    verbose: bool,
    each: Callable[[Callable[[int], Any], int], list[Any]],
    at_once: int,
    prove: bool = True,
) -> list[Path]:
    """Follow the paths that ``begin(k)`` makes, ``at_once`` of them in the threads of ``each``.

    What is left of the time is shared by those to come, so that they end about as far from C_max, and there is a range of C
    that all of them have.  Work ends later than its share, as limits are asked for now and then: what those before took
    beyond theirs is set aside, or nothing would be left for the last ones to start with.
    """
    waiting = itertools.count(count, -1)
    beyond: list[float] = []

    def follow(k: int) -> Path:
        left, began = next(waiting), time.perf_counter()
        whole = share = None
        if deadline is not None:
            whole = max(deadline - began, 0.0)
            share = whole * min(at_once, left) / left - median(beyond or [0.0])
        path = begin(k)
        with limits(_left_of(whole, began)):
            own = _left_of(share, began)
            path.follow(options, C_max, max_events=max_events, share=own, verbose=verbose, prove=prove)
        path.release()
        if share is not None:
            beyond.append(max(time.perf_counter() - began - share, 0.0))
        return path

    return each(follow, count)


def _left_of(share: float | None, began: float) -> float | None:
    """Return the seconds that are left of a share of the time."""
    return None if share is None else share - (time.perf_counter() - began)
