"""Pairs of classes that are small: many problems on parts of one kernel matrix, each solved and certified by one compiled call.

Such a problem takes less time than ``solve`` takes to begin and to end.  What is done is the same: pairs of coefficients from
zero to a small violation, the residual from the data, the certificate.  Threads take one problem after the other.  One whose
certificate is short of the tolerance goes to ``solve``, from where it is.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from zerogap import precision, threads
from zerogap.certificate import Certificate, Measured, measured
from zerogap.compiled import HUGE, jit
from zerogap.estimators.base import Outcome
from zerogap.gram import Gram, RowCache, copy_submatrix, product_error, subtract_rows
from zerogap.kernels import UNIT, Kernel
from zerogap.limits import Exceeded
from zerogap.loop import Status, Trace, TraceRow
from zerogap.loss import crossing
from zerogap.problem import ProblemArrays
from zerogap.solvers import auto
from zerogap.solvers.pair import Iterate
from zerogap.solvers.smo import descend

MOST_POINTS = auto.FEW
VIOLATION = auto.FAR * auto.ROUGH * 2.0  # labels are two apart
NEARER = 0.3  # of the violation that would do, if the gap were proportional to it
PASSES = 3  # to put what rounding has left in the sum on one coefficient: all but the first are its own rounding


class Pair(NamedTuple):
    """Two classes as a problem: the 1-norm soft margin (7.1)."""

    points: np.ndarray  # (m,) in the matrix
    sign: np.ndarray  # (m,) +1 or -1
    cap: np.ndarray  # (m,) C times the weight


class Point(NamedTuple):
    """Where a problem has come to."""

    beta: np.ndarray  # (m,)
    n_iter: int
    outcome: Outcome | None  # None: short of the tolerance


def takes(kernel: Kernel) -> bool:
    """Whether a kernel can be taken: an inner product for certain; linear ones have a solver of their own."""
    return kernel.can_share and kernel.is_positive and not kernel.is_linear


def suits(gram: Gram, pairs: Sequence[Pair]) -> bool:
    """Whether this way is open: all kernel values are there, problems are small, and boxes are bounded."""
    return (
        gram.is_complete
        and takes(gram.kernel)
        and all(pair.points.size <= MOST_POINTS and pair.cap.min() > 0.0 and pair.cap.max() < np.inf for pair in pairs)
    )


def separate(gram: Gram, pairs: Sequence[Pair], *, has_bias: bool, tol: float) -> list[Point | None]:
    """Solve all problems; None stands for those that a limit has left undone."""
    size, K = max(pair.points.size for pair in pairs), gram.full()
    found: list[Point | None] = [None] * len(pairs)
    rooms: list[np.ndarray] = []  # where threads have their part of the matrix; the next problem uses it again

    def work(k: int) -> None:
        room = rooms.pop() if rooms else np.empty(size * size)
        found[k] = _separate_one(gram, K, pairs[k], has_bias, tol, room)
        rooms.append(room)

    with suppress(Exceeded):
        threads.share(work, range(len(pairs)))
    return found


def _separate_one(gram: Gram, K: np.ndarray, pair: Pair, has_bias: bool, tol: float, room: np.ndarray) -> Point:
    began, m = time.perf_counter(), pair.points.size
    rounding = gram.rounding.taken(pair.points)
    problem = ProblemArrays(
        gram.diagonal[pair.points],
        np.zeros(m),
        pair.sign,
        np.where(pair.sign < 0, -pair.cap, 0.0),
        np.where(pair.sign > 0, pair.cap, 0.0),
        0.0,
        not has_bias,
    )
    operations = gram.X.shape[1] + 2.0
    moved, beta, bias, excess, sums = _solve(
        problem, K, pair.points, room, *map(np.ascontiguousarray, rounding), operations, auto.RUSH * m, tol
    )
    certificate = Certificate.of(Measured(*sums), bias, excess, has_bias=has_bias)
    if not certificate.relative_gap <= tol:
        return Point(beta, moved, None)
    start = TraceRow(
        0, 0.0, 0.0, 2.0, 1.0, 0, 0
    )  # at zero: the dual objective is zero, and both classes are on the margin
    support = int(np.count_nonzero(beta))
    seconds = time.perf_counter() - began
    end = TraceRow(moved, seconds, certificate.dual, certificate.kkt_violation, certificate.relative_gap, 0, support)
    return Point(beta, moved, Outcome(beta, bias, certificate, Status.CONVERGED, moved, Trace([start, end]), 0))


@jit
def _solve(problem, K, points, room, magnitude, relative, absolute, operations, max_pairs, tol):
    """Return pairs moved, coefficients, bias, what is left of their sum, and the sums of the certificate.

    It ends where the relative gap is at most the tolerance, or after so many pairs.
    """
    target, lower, upper, m = problem.target, problem.lower, problem.upper, points.size
    part = copy_submatrix(K, points, points, room[: m * m].reshape((m, m)))
    beta, residual, zero = np.zeros(m), target.copy(), np.zeros(m)
    point = Iterate(beta, residual, np.where(upper > 0, 0.0, -HUGE), np.where(lower < 0, 0.0, HUGE))
    cache = RowCache(part, np.arange(m), np.zeros(m, dtype=np.int64))
    moved, violation, bias, excess = 0, VIOLATION, 0.0, 0.0
    while True:
        diagonal, left = problem.kernel_diagonal, max_pairs - moved
        _, count, _, _ = descend(problem, point, cache, diagonal, zero, True, left, violation)
        moved += count
        if not problem.has_fixed_bias:
            excess = _restore_sum(beta, lower, upper)
        residual[:] = target
        support = np.flatnonzero(beta)
        subtract_rows(part, support, beta[support], residual)
        error = product_error(beta, magnitude, relative, absolute, operations) + 2.0 * UNIT * np.abs(residual)
        if not problem.has_fixed_bias:
            drops = upper - lower
            bias = crossing(residual, drops, upper.sum(), 1e-13 * drops.sum())
        sums = measured(beta, target, residual, zero, error, lower, upper, problem.ridge, 0.0, bias)
        rounding = sums.gap_error + sums.dual_error
        wanted = tol * (sums.dual + sums.gap)
        if not sums.gap + rounding > wanted or rounding > 0.5 * wanted or moved >= max_pairs or count == 0:
            return moved, beta, bias, excess, sums
        violation = NEARER * violation * wanted / sums.gap


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
