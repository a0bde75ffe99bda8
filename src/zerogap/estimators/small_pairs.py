"""Pairs of classes that are small: many problems on parts of one kernel matrix, solved and certified by compiled code.

Such a problem takes less time than ``solve`` takes to begin and to end.  What is done is the same: pairs of coefficients from
zero to a small violation, the residual from the data, the certificate.  Threads take some problems after the others.  Where
there is but one problem, and the pairs that are left would take longer than exchanges of its free points, these follow
(``exchanged``).  What is short of the tolerance then goes to ``solve``, from where it is.
"""

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from zerogap import limits, precision, threads
from zerogap.active_set import ActiveSet
from zerogap.certificate import Certificate, Measured, measured
from zerogap.compiled import HUGE, inline, jit
from zerogap.estimators.base import Outcome
from zerogap.gram import Gram, RowCache, copy_submatrix, product_error
from zerogap.kernels import UNIT, Kernel
from zerogap.limits import Exceeded
from zerogap.loop import Status, Trace, TraceRow
from zerogap.loss import crossing
from zerogap.problem import DualProblem, ProblemArrays
from zerogap.solvers.auto import BEGINNING, EXCHANGED, EXCHANGES, FACTORED, PAIR, PER_POINT, TIGHT, TOGETHER
from zerogap.solvers.pair import Iterate
from zerogap.solvers.smo import descend
from zerogap.stopping import RelativeGap

MOST_POINTS = 2000  # of a problem: with more of them ``solve`` has better ways
FEW_POINTS = 600  # with more of them it has, for a linear kernel, or once some pairs were not enough
MOST_SECONDS = 0.1  # that a problem takes: far more than any does
POINTS_AT_ONCE = 1500  # of the problems that a thread takes
VIOLATION = 1e-3  # to begin with; labels are two apart
# To which pairs of a linear kernel are moved where exchanges follow: there are no more free points than features and one.
ROUGH = 0.3
MOST_EXCHANGES = 30  # points that enter: if there are more, what pairs have left is no start for exchanges
NEARER = 0.3  # of the violation that would do, if the gap were proportional to it
MOST_PAIRS, MOST_OF_MANY = 10, 2  # moved for each point, and where there are more than few
LARGEST_CAP = 10.0  # of so many points: a larger one takes more pairs
# Residuals that pairs may change with a linear kernel, for which another solver ends soon at any C; and where exchanges follow.
LINEAR_WORK, ROUGH_WORK = 1.4e6, 4e5
PASSES = 3  # to put what rounding has left in the sum on one coefficient: all but the first are its own rounding


class Problems(NamedTuple):
    """The 1-norm soft margin (7.1) for each of some pairs of classes, one after the other."""

    edges: np.ndarray  # (count + 1,) where each begins, and the last one ends
    points: np.ndarray  # (m,) their numbers in the matrix
    sign: np.ndarray  # (m,) +1 or -1
    lower: np.ndarray  # (m,) box
    upper: np.ndarray  # (m,) box

    @classmethod
    def of(cls, places: list[np.ndarray], signs: list[np.ndarray], caps: list[np.ndarray]) -> "Problems":
        """Return the problems of points with signs and caps, C times the weight."""
        sign, cap = np.concatenate(signs), np.concatenate(caps)
        box = np.where(sign < 0, -cap, 0.0), np.where(sign > 0, cap, 0.0)
        return cls(np.cumsum([0, *map(len, places)]), np.concatenate(places), sign, *box)


class Points(NamedTuple):
    """Where the problems have come to."""

    beta: np.ndarray  # (m,) signed coefficients
    outcomes: list[Outcome | None]  # None: short of the tolerance
    n_iter: np.ndarray  # (count,) pairs moved; -1 where a limit came first


def takes(kernel: Kernel) -> bool:
    """Whether a kernel can be taken: an inner product for certain."""
    return kernel.can_share and kernel.is_positive


def most_points(kernel: Kernel, cap: float) -> int:
    """Return how many points a problem of such caps may have: the larger they are, the more pairs it takes."""
    return FEW_POINTS if kernel.is_linear or not cap <= LARGEST_CAP else MOST_POINTS


def suits(gram: Gram, problems: Problems) -> bool:
    """Whether this way is open: all kernel values are there, problems are small, and boxes are bounded."""
    cap = problems.upper - problems.lower
    is_small = np.diff(problems.edges).max() <= most_points(gram.kernel, float(cap.mean()))
    is_bounded = cap.min() > 0.0 and cap.max() < np.inf
    return bool(gram.is_complete and takes(gram.kernel) and is_small and is_bounded)


def has_many(problems: Problems) -> bool:
    """Whether a problem has so many points that ``solve`` goes on where a few pairs are not enough."""
    return bool(np.diff(problems.edges).max() > FEW_POINTS)


def separate(gram: Gram, problems: Problems, *, has_bias: bool, tol: float) -> Points:
    """Solve all problems."""
    K, count = gram.full(), problems.edges.size - 1
    plan = _Plan(LINEAR_WORK if gram.kernel.is_linear else np.inf, VIOLATION, count == 1)
    if count == 1 and gram.kernel.is_linear:
        plan = plan._replace(most_work=ROUGH_WORK, violation=ROUGH)
    matrix = _Matrix(K, gram.diagonal, *gram.rounding, gram.X.shape[1] + 2.0, plan)
    beta, numbers = np.zeros(problems.points.size), np.full((count, 9), np.nan)
    outcomes: list[Outcome | None] = [None] * count

    def work(piece: tuple[int, int]) -> None:
        began = time.perf_counter()
        if problems.points.size == gram.n and count == 1:
            _separate_all(matrix, problems, not has_bias, tol, beta, numbers[0])
        else:
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


def exchanged(problem: DualProblem, beta: np.ndarray, moved: int, *, tol: float) -> Outcome | None:
    """Go on to the optimum by exchanges from where pairs have led, in place; return None if that is short of the tolerance.

    Where pairs have crawled beta is as it was.
    """
    began, has_bias = time.perf_counter(), problem.total is not None
    rough = problem.estimate(beta, problem.residual(beta))
    if rough.kkt_violation > 1.5 * ROUGH:
        return None
    with threads.alone(problem.n**2):
        active = ActiveSet(problem, beta.copy())
        entered = active.optimise(problem, TIGHT * RelativeGap(tol).kkt_target(rough), MOST_EXCHANGES, TOGETHER)
    if active.is_unbounded or limits.is_over():
        return None
    start = TraceRow(moved, 0.0, rough.dual, rough.kkt_violation, rough.relative_gap, 0, int(np.count_nonzero(beta)))
    found = problem.restore_sum(active.beta)
    residual = problem.residual(found)
    certificate = problem.certify(found, residual)
    if not certificate.dual >= rough.dual:
        return None
    beta[:] = found
    if not certificate.relative_gap <= tol:  # margins that rounding may have made short cost their caps
        longer = problem.stretched(found, residual, certificate.rounding)
        if longer is None:
            return None
        found = problem.restore_sum(longer)
        certificate = problem.certify(found)
        if not certificate.relative_gap <= tol:
            return None
        beta[:] = found
    seconds, count = time.perf_counter() - began, int(np.count_nonzero(beta))
    end = TraceRow(
        moved + entered, seconds, certificate.dual, certificate.kkt_violation, certificate.relative_gap, 0, count
    )
    bias = certificate.bias if has_bias else 0.0
    return Outcome(beta, bias, certificate, Status.CONVERGED, moved + entered, Trace([start, end]), 0)


class _Plan(NamedTuple):
    """How far pairs are moved."""

    most_work: float  # residuals that they may change
    violation: float  # at which the gap is asked for, the first time
    has_exchanges: bool  # whether these follow, and pairs end where they cost more


class _Matrix(NamedTuple):
    """A kernel matrix that is complete, and how far it can be off (``Rounding``)."""

    K: np.ndarray  # (n, n)
    diagonal: np.ndarray  # (n,)
    magnitude: np.ndarray  # (n,)
    relative: np.ndarray  # (2, k, n)
    absolute: np.ndarray  # (2, l, n)
    operations: float  # of a product with features
    plan: _Plan


class _Part(NamedTuple):
    """That of some points."""

    K: np.ndarray
    magnitude: np.ndarray
    relative: np.ndarray
    absolute: np.ndarray
    operations: float
    plan: _Plan


def _separate_all(
    matrix: _Matrix, problems: Problems, has_fixed_bias: bool, tol: float, beta: np.ndarray, numbers: np.ndarray
) -> None:
    """Solve the one problem there is, of all points in their order: nothing is copied, and less has to be compiled."""
    _, _, sign, lower, upper = problems
    problem = ProblemArrays(matrix.diagonal, np.zeros(beta.size), sign, lower, upper, 0.0, has_fixed_bias)
    part = _Part(matrix.K, matrix.magnitude, matrix.relative, matrix.absolute, matrix.operations, matrix.plan)
    *found, sums = _solve(problem, part, tol, beta)
    numbers[:] = (*found, *sums)


# Loops that are written out, and no calls of NumPy: those take long to compile.


@jit
def _separate(matrix, problems, first, last, has_fixed_bias, tol, beta, numbers):
    """Solve problems ``first`` to ``last``: write coefficients, and pairs moved, bias, what is left of the sum, and sums."""
    edges, size = problems.edges, 0
    for k in range(first, last):
        size = max(size, edges[k + 1] - edges[k])
    room = np.empty(size * size)
    for k in range(first, last):
        start, stop, m = edges[k], edges[k + 1], edges[k + 1] - edges[k]
        points = problems.points[start:stop]
        part = _Part(
            copy_submatrix(matrix.K, points, points, room[: m * m].reshape((m, m))),
            _taken(matrix.magnitude, points),
            _both_taken(matrix.relative, points),
            _both_taken(matrix.absolute, points),
            matrix.operations,
            matrix.plan,
        )
        problem = ProblemArrays(
            _taken(matrix.diagonal, points),
            np.zeros(m),
            problems.sign[start:stop],
            problems.lower[start:stop],
            problems.upper[start:stop],
            0.0,
            has_fixed_bias,
        )
        moved, bias, excess, sums = _solve(problem, part, tol, beta[start:stop])
        numbers[k, 0], numbers[k, 1], numbers[k, 2] = moved, bias, excess
        numbers[k, 3], numbers[k, 4], numbers[k, 5] = sums.b_up, sums.b_low, sums.dual
        numbers[k, 6], numbers[k, 7], numbers[k, 8] = sums.dual_error, sums.gap, sums.gap_error


@inline
def _taken(array, points):
    part = np.empty(points.size)
    for k in range(points.size):
        part[k] = array[points[k]]
    return part


@inline
def _both_taken(array, points):
    part = np.empty((2, array.shape[1], points.size))
    for i in range(2):
        for j in range(array.shape[1]):
            for k in range(points.size):
                part[i, j, k] = array[i, j, points[k]]
    return part


@jit
def _solve(problem, part, tol, beta):
    """Move pairs until the relative gap is at most the tolerance, or so many were moved."""
    target, lower, upper, m = problem.target, problem.lower, problem.upper, beta.size
    residual, up_offset, low_offset, drops, zero = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.zeros(m)
    slots, stamps, top, rounding = np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64), 0.0, 0.0
    for i in range(m):
        residual[i], slots[i], stamps[i] = target[i], i, 0
        up_offset[i], low_offset[i] = 0.0 if upper[i] > 0.0 else -HUGE, 0.0 if lower[i] < 0.0 else HUGE
        drops[i] = upper[i] - lower[i]
        top, rounding = top + upper[i], rounding + 1e-13 * drops[i]
    point, cache = Iterate(beta, residual, up_offset, low_offset), RowCache(part.K, slots, stamps)
    most_work, violation, has_exchanges = part.plan
    moved, bias, excess = 0, 0.0, 0.0
    most_pairs = (MOST_PAIRS if m <= FEW_POINTS else MOST_OF_MANY) * m
    if most_work < np.inf:
        most_pairs = int(most_work / m)
    second_order = m > 0  # always so, but no constant: for that everything would be compiled a second time
    while True:
        most = most_pairs - moved
        _, count, _, _ = descend(problem, point, cache, problem.kernel_diagonal, zero, second_order, most, violation)
        moved += count
        for is_stretched in range(2):
            if not problem.has_fixed_bias:
                excess = _restore_sum(beta, lower, upper)
            _set_residual(part.K, beta, target, residual)
            error = product_error(beta, part.magnitude, part.relative, part.absolute, part.operations)
            for i in range(m):
                error[i] += 2.0 * UNIT * abs(residual[i])
            if not problem.has_fixed_bias:
                bias = crossing(residual, drops, top, rounding)
            sums = measured(beta, target, residual, zero, error, lower, upper, problem.ridge, 0.0, bias)
            off, wanted = sums.gap_error + sums.dual_error, tol * (sums.dual + sums.gap)
            is_met = not sums.gap + off > wanted
            factor, gap, left = _longer(beta, target, residual, bias, error, lower, upper)
            if is_met or is_stretched or gap > wanted:
                break
            for i in range(m):
                beta[i] *= factor
        if is_met or min(off, left) > 0.5 * wanted or count == 0 or moved >= most_pairs:
            return moved, bias, excess, sums
        nearer = NEARER * wanted / min(sums.gap, gap)
        if has_exchanges:
            # Pairs halve a violation, which is two to begin with, about as often again for as many more of them.
            left = moved * math.log(nearer) / math.log(0.5 * violation)
            if left * (PAIR + PER_POINT * m) > _seconds_of_exchanges(beta, lower, upper):
                return moved, bias, excess, sums
        violation *= nearer


@inline
def _seconds_of_exchanges(beta, lower, upper):
    """Return about how long a factor of the free points takes, and some exchanges."""
    m, n = 0.0, float(beta.size)
    for i in range(beta.size):
        m += 1.0 if beta[i] != 0.0 and lower[i] < beta[i] < upper[i] else 0.0
    return BEGINNING + FACTORED * m**3 / 3.0 + EXCHANGES * EXCHANGED * m * (4.0 * m + n)


@inline
def _longer(beta, target, residual, bias, error, lower, upper):
    """Return what to multiply coefficients with so that all margins are longer than one for certain, see ``stretched``; about
    the gap that this gives, and what of it is rounding; infinity if a bound is in the way."""
    short, most, size, room = -HUGE, 0.0, 0.0, HUGE
    for i in range(beta.size):
        short, most = max(short, target[i] * (residual[i] - bias)), max(most, error[i])
        size += abs(beta[i])
        if beta[i] != 0.0:
            room = min(room, (upper[i] - lower[i]) / abs(beta[i]))
    factor = 1.0 + (short + most) / (1.0 - short - most) if short + most < 0.5 else HUGE
    if not 1.0 < factor < room:
        return 1.0, np.inf, np.inf
    return factor, 2.0 * (factor - 1.0) * size, 2.0 * most * size


@inline
def _set_residual(K, beta, target, residual):
    """Sum K beta first: beside the targets, which may be far larger, every term would be rounded as they are."""
    for i in range(target.size):
        residual[i] = 0.0
    for j in range(beta.size):
        if beta[j] != 0.0:
            row, b = K[j], beta[j]
            for i in range(row.size):
                residual[i] += b * row[i]
    for i in range(target.size):
        residual[i] = target[i] - residual[i]


@inline
def _restore_sum(beta, lower, upper):
    """Put what rounding left in the sum on the coefficient with the most room; return what is left then."""
    for _ in range(PASSES):
        excess, most, where = precision.total(beta, 0.0), 0.0, -1
        for i in range(beta.size):
            room = min(upper[i] - beta[i], beta[i] - lower[i])
            if room > most:
                most, where = room, i
        if excess == 0.0 or abs(excess) >= most:
            return excess
        beta[where] -= excess
    return precision.total(beta, 0.0)
