"""Pairs of classes that are small: many problems on parts of one kernel matrix, solved and certified by compiled code.

Such a problem takes less time than ``solve`` takes to begin and to end.  What is done is the same: pairs of coefficients from
zero to a small violation, the residual from the data, the certificate.  Threads take some problems after the others.  One whose
certificate is short of the tolerance goes to ``solve``, from where it is.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from zerogap import precision, threads
from zerogap.certificate import Certificate, Measured, measured
from zerogap.compiled import HUGE, inline, jit
from zerogap.estimators.base import Outcome
from zerogap.gram import Gram, RowCache, copy_submatrix, product_error, subtract_rows
from zerogap.kernels import UNIT, Kernel
from zerogap.limits import Exceeded
from zerogap.loop import Status, Trace, TraceRow
from zerogap.loss import crossing
from zerogap.problem import ProblemArrays
from zerogap.solvers.pair import Iterate
from zerogap.solvers.smo import descend

MOST_POINTS = 600  # of a problem: with more of them ``solve`` has better ways
POINTS_AT_ONCE = 1500  # of the problems that a thread takes
VIOLATION = 1e-3  # to begin with; labels are two apart
NEARER = 0.3  # of the violation that would do, if the gap were proportional to it
MOST_PAIRS = 10  # moved for each point
PASSES = 3  # to put what rounding has left in the sum on one coefficient: all but the first are its own rounding


class Problems(NamedTuple):
    """The 1-norm soft margin (7.1) for each of some pairs of classes, one after the other."""

    edges: np.ndarray  # (count + 1,) where each begins, and the last one ends
    points: np.ndarray  # (m,) their numbers in the matrix
    sign: np.ndarray  # (m,) +1 or -1
    cap: np.ndarray  # (m,) C times the weight


class Points(NamedTuple):
    """Where the problems have come to."""

    beta: np.ndarray  # (m,) signed coefficients
    outcomes: list[Outcome | None]  # None: short of the tolerance
    n_iter: np.ndarray  # (count,) pairs moved; -1 where a limit came first


def takes(kernel: Kernel) -> bool:
    """Whether a kernel can be taken: an inner product for certain; linear ones have a solver of their own."""
    return kernel.can_share and kernel.is_positive and not kernel.is_linear


def suits(gram: Gram, problems: Problems) -> bool:
    """Whether this way is open: all kernel values are there, problems are small, and boxes are bounded."""
    is_small = np.diff(problems.edges).max() <= MOST_POINTS
    is_bounded = problems.cap.min() > 0.0 and problems.cap.max() < np.inf
    return bool(gram.is_complete and takes(gram.kernel) and is_small and is_bounded)


def separate(gram: Gram, problems: Problems, *, has_bias: bool, tol: float) -> Points:
    """Solve all problems."""
    K, count = gram.full(), problems.edges.size - 1
    matrix = _Matrix(K, gram.diagonal, *gram.rounding, gram.X.shape[1] + 2.0)
    beta, numbers = np.zeros(problems.points.size), np.full((count, 9), np.nan)
    outcomes: list[Outcome | None] = [None] * count

    def work(piece: tuple[int, int]) -> None:
        began = time.perf_counter()
        _separate(matrix, problems, *piece, not has_bias, tol, beta, numbers)
        seconds = time.perf_counter() - began
        for k in range(*piece):
            own = beta[problems.edges[k] : problems.edges[k + 1]]
            outcomes[k] = _outcome(own, numbers[k].tolist(), has_bias, tol, seconds)

    pieces = list(_pieces(problems.edges))
    if len(pieces) == 1:
        work(pieces[0])
    else:
        with suppress(Exceeded):
            threads.share(work, pieces)
    return Points(beta, outcomes, np.where(np.isnan(numbers[:, 0]), -1, numbers[:, 0]).astype(np.int64))


def _pieces(edges: np.ndarray) -> Iterator[tuple[int, int]]:
    """Yield ranges of problems that have so many points together."""
    last = edges[1:] // POINTS_AT_ONCE
    yield from pairwise([0, *(np.flatnonzero(np.diff(last)) + 1).tolist(), last.size])


def _outcome(beta: np.ndarray, numbers: list[float], has_bias: bool, tol: float, seconds: float) -> Outcome | None:
    moved, bias, excess, *sums = numbers
    certificate = Certificate.of(Measured(*sums), bias, excess, has_bias=has_bias)
    if not (gap := certificate.relative_gap) <= tol:
        return None
    start = TraceRow(0, 0.0, 0.0, 2.0, 1.0, 0, 0)  # at zero the dual objective is zero, and the labels are residuals
    end = TraceRow(
        int(moved), seconds, certificate.dual, certificate.kkt_violation, gap, 0, int(np.count_nonzero(beta))
    )
    return Outcome(beta, bias, certificate, Status.CONVERGED, int(moved), Trace([start, end]), 0)


class _Matrix(NamedTuple):
    """A kernel matrix that is complete, and how far it can be off (``Rounding``)."""

    K: np.ndarray  # (n, n)
    diagonal: np.ndarray  # (n,)
    magnitude: np.ndarray  # (n,)
    relative: np.ndarray  # (2, k, n)
    absolute: np.ndarray  # (2, l, n)
    operations: float  # of a product with features


@jit
def _separate(matrix, problems, first, last, has_fixed_bias, tol, beta, numbers):
    """Solve problems ``first`` to ``last``: write coefficients, and pairs moved, bias, what is left of the sum, and sums."""
    edges, size = problems.edges, 0
    for k in range(first, last):
        size = max(size, edges[k + 1] - edges[k])
    room = np.empty(size * size)
    for k in range(first, last):
        start, stop, m = edges[k], edges[k + 1], edges[k + 1] - edges[k]
        points, sign, cap = problems.points[start:stop], problems.sign[start:stop], problems.cap[start:stop]
        problem = ProblemArrays(
            matrix.diagonal[points],
            np.zeros(m),
            sign,
            np.where(sign < 0.0, -cap, 0.0),
            np.where(sign > 0.0, cap, 0.0),
            0.0,
            has_fixed_bias,
        )
        part = copy_submatrix(matrix.K, points, points, room[: m * m].reshape((m, m)))
        rounding = matrix.magnitude[points], _taken(matrix.relative, points), _taken(matrix.absolute, points)
        moved, bias, excess, sums = _solve(problem, part, rounding, matrix.operations, tol, beta[start:stop])
        numbers[k, 0], numbers[k, 1], numbers[k, 2] = moved, bias, excess
        numbers[k, 3], numbers[k, 4], numbers[k, 5] = sums.b_up, sums.b_low, sums.dual
        numbers[k, 6], numbers[k, 7], numbers[k, 8] = sums.dual_error, sums.gap, sums.gap_error


@inline
def _taken(array, points):
    part = np.empty((array.shape[0], array.shape[1], points.size))
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            part[i, j] = array[i, j][points]
    return part


@jit
def _solve(problem, K, rounding, operations, tol, beta):
    """Move pairs until the relative gap is at most the tolerance, or so many were moved."""
    target, lower, upper, m = problem.target, problem.lower, problem.upper, beta.size
    residual, zero, drops = target.copy(), np.zeros(m), upper - lower
    point = Iterate(beta, residual, np.where(upper > 0, 0.0, -HUGE), np.where(lower < 0, 0.0, HUGE))
    cache = RowCache(K, np.arange(m), np.zeros(m, dtype=np.int64))
    moved, violation, bias, excess = 0, VIOLATION, 0.0, 0.0
    while True:
        most = MOST_PAIRS * m - moved
        _, count, _, _ = descend(problem, point, cache, problem.kernel_diagonal, zero, True, most, violation)
        moved += count
        if not problem.has_fixed_bias:
            excess = _restore_sum(beta, lower, upper)
        residual[:] = target
        support = np.flatnonzero(beta)
        subtract_rows(K, support, beta[support], residual)
        error = product_error(beta, rounding[0], rounding[1], rounding[2], operations) + 2.0 * UNIT * np.abs(residual)
        if not problem.has_fixed_bias:
            bias = crossing(residual, drops, upper.sum(), 1e-13 * drops.sum())
        sums = measured(beta, target, residual, zero, error, lower, upper, problem.ridge, 0.0, bias)
        off, wanted = sums.gap_error + sums.dual_error, tol * (sums.dual + sums.gap)
        if not sums.gap + off > wanted or off > 0.5 * wanted or count == 0 or moved >= MOST_PAIRS * m:
            return moved, bias, excess, sums
        violation *= NEARER * wanted / sums.gap


@jit
def _restore_sum(beta, lower, upper):
    """Put what rounding left in the sum on the coefficient with the most room; return what is left then."""
    for _ in range(PASSES):
        excess = precision.total(beta, 0.0)
        k = np.argmax(np.minimum(upper - beta, beta - lower))
        if excess == 0.0 or abs(excess) >= min(upper[k] - beta[k], beta[k] - lower[k]):
            return excess
        beta[k] -= excess
    return precision.total(beta, 0.0)
