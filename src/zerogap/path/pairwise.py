"""Paths of pairs of classes, whose kernel matrices are parts of one that they share."""

import itertools
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.limits import Exceeded, limits
from zerogap.path._svm_path import _check_result, _follow, _refuse_indefinite, _refuse_overflow, _start, small_products
from zerogap.path.engine import LEFT, Options
from zerogap.path.family import Family
from zerogap.path.result import Path

AT_BOUND = 1e-12  # relative: a coefficient this near to a bound is there but for rounding
SLOPE = 1e-9  # by rounding the slope of a bias that keeps one point on its margin is this far from -1 or 1, at most
CACHE = 1000.0  # megabytes: a matrix of all classes is kept if it takes no more


class Shared:
    """The kernel matrix of all classes, if memory holds it; else the points, from which pairs compute their own."""

    def __init__(self, gram: Gram):
        self.gram = gram
        if gram.holds_all:
            with suppress(Exceeded):  # what is followed with it will be told as well
                gram.full()

    def part(self, points: np.ndarray) -> Gram:
        """Return the matrix of some of the points."""
        if self.gram.is_complete:
            return self.gram.subset(points)
        return Gram.of_checked(self.gram.X[points], self.gram.kernel, CACHE)


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
        max_time: float | None,
        verbose: bool,
        prove: bool = True,
    ) -> "PairPath":
        """Follow the path to C_max, or as far as limits allow; ``status`` says which.  Warn of what is not exact.

        Without ``prove`` the largest gap is left open: ``largest_gap_`` proves it when it is asked for.
        """
        with limits(max_time) as limit, small_products():
            try:
                _refuse_overflow(self, C_max)
                _refuse_indefinite(self)
                _start(self, options, 1.0 / C_max)
                status = _follow(self, C_max, max_events, verbose, prove=prove)
            except Exceeded:
                status = "interrupted" if limit.was_interrupted else "max_time"
            self.seal(status)
            centre_biases(self)
            _check_result(self, options)
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
    that all of them have.
    """
    waiting = itertools.count(count, -1)

    def follow(k: int) -> Path:
        left, share = next(waiting), None
        if deadline is not None:
            share = max(deadline - time.perf_counter(), 0.0) * min(at_once, left) / left
        path = begin(k)
        path.follow(options, C_max, max_events=max_events, max_time=share, verbose=verbose, prove=prove)
        return path.release()

    return each(follow, count)


def centre_biases(path: Path) -> None:
    """Put the bias in the middle of all that are optimal, as solvers for one C do, on segments where it is not unique.

    That is where no point is strictly between its bounds, as for small C if both classes weigh the same.  Then b does not
    change with lam, and with it F = K b, and the bias obeys

        lower = max (y_i lam - F_i) <= bias <= upper = min (y_i lam - F_i),

    the maximum over the points whose b can rise, the minimum over those whose b can fall.  Lower is convex in lam and
    upper concave: what is between them at both ends of a segment is so everywhere.
    """
    if not path.family.has_bias:
        return
    lam, w = path.lam.tolist(), path.points.weight
    slopes = np.array([segment.v0 if segment.points.size else 1.0 for segment in path._segments])
    # Else the bias keeps a point on its margin: y_i lam - F_i.
    for k in np.flatnonzero(np.abs(np.abs(slopes) - 1.0) <= SLOPE).tolist():
        segment = path._segments[k]
        begin, end, E = lam[k], lam[k + 1], segment.points
        a_first, a_last = path.y[E] * segment.coefficients(begin), path.y[E] * segment.coefficients(end)
        is_low = np.maximum(a_first, a_last) <= AT_BOUND * w[E]
        if not (is_low | (np.minimum(a_first, a_last) >= (1.0 - AT_BOUND) * w[E])).all():
            continue
        is_high = path.sets_at(k) == LEFT
        is_high[E] = ~is_low
        is_low = ~is_high
        assert path.gram is not None
        minus_F = -path.gram.dot(path.y * np.where(is_high, w, 0.0))
        positive = path.y > 0
        rising, falling = np.where(positive, is_low, is_high), np.where(positive, is_high, is_low)
        sides = []
        for can_move, largest in ((rising, 1.0), (falling, -1.0)):
            lines = [
                (slope, largest * float((largest * minus_F[some]).max()))
                for slope, some in ((1.0, can_move & positive), (-1.0, can_move & ~positive))
                if some.any()
            ]
            sides.append([max(lines, key=lambda line: largest * (line[1] + line[0] * lam)) for lam in (begin, end)])
        (low, low_end), (high, high_end) = sides
        middles = [(0.5 * (p[0] + q[0]), 0.5 * (p[1] + q[1])) for p, q in ((low, high), (low_end, high_end))]
        slope, constant = middles[1]
        if middles[0] != middles[1]:
            first, last = (line[1] + line[0] * lam for line, lam in zip(middles, (begin, end), strict=True))
            slope = (first - last) / (begin - end)
            constant = last - end * slope
        path._segments[k] = segment._replace(u0=constant + segment.anchor * slope, v0=slope)
