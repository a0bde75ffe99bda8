"""The analytical step on two coefficients, and what every member of the SMO family shares.

Theorem 7.12 for classification and Theorem 7.18 for regression are one formula in signed coefficients: move along
e_i - e_j, which keeps the sum, by slope / curvature, and no further than the box or the kink of |beta| at zero allows.

With a fixed bias nothing constrains the sum and one coefficient moves alone.  That is the same step against the *origin*:
a point with kernel values zero, target zero and no box, which holds the bias at zero (Remark 7.16).
"""

from typing import Any, NamedTuple

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, NO_POINT, inline, jit
from zerogap.gram import Gram
from zerogap.problem import DualProblem

ORIGIN = -1  # index of the point that fixes the bias at zero

# A sum of two kernel values cannot resolve a curvature below this share of it: then the points are duplicates.
SAME_POINT = 1e-15
SMALLEST = 1e-290  # where a gain is only compared with others: no division by zero

# A coefficient this large is on its way to infinity; its square, times a kernel value, is still finite.
LARGEST = 1e140

# Why a compiled loop came back; PAUSED: to ask whether it may go on.
SPENT, QUIET, NEEDS_ROW, UNBOUNDED, FINISHED, PAUSED = range(6)

# Between two questions whether the limit is over: so many updated residuals, and kernel values computed, some hundredths of a
# second each.
WORK_PER_QUESTION = 20_000_000
VALUES_PER_QUESTION = 4_000_000

# A rule that uses slopes alone takes about as many moves as the kernel matrix is badly conditioned.  After so many of them
# without a quiet scan, per point and at least, a solver takes the partner with the largest gain instead.
SLOW_PER_POINT, SLOW_AT_LEAST = 100, 1000


class PairState(NamedTuple):
    """What the next pair needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta, kept up to date with beta
    up_offset: np.ndarray  # (n,) residual + up_offset bounds the bias from below: b_up is its maximum
    low_offset: np.ndarray  # (n,) residual + low_offset bounds the bias from above: b_low is its minimum
    diagonal: np.ndarray  # (n,) of K + ridge, which may have lost a small ridge
    memory: Any  # what one rule alone needs


class Scan(NamedTuple):
    """What a scan needs to go on where it stopped; the places are the solver's."""

    integers: np.ndarray
    numbers: np.ndarray


def start(problem: DualProblem, beta: np.ndarray | None, memory: Any) -> PairState:
    """Return the state at beta, or at the problem's own starting point."""
    beta = problem.feasible_start() if beta is None else np.array(beta, dtype=np.float64)
    return PairState(
        beta, problem.residual(beta), problem.up_offset(beta), problem.low_offset(beta), problem.diagonal, memory
    )


def arguments(problem: DualProblem, state: PairState) -> tuple[Any, ...]:
    """Return the arrays a compiled loop works on, in the order of its parameters."""
    gram = problem.gram
    return (
        *(gram.rows, gram.slot, gram.stamp),
        *(gram.diagonal, problem.ridge, problem.lower, problem.upper, problem.eps, problem.total is None),
        *(state.beta, state.residual, state.up_offset, state.low_offset),
    )


def pairs_per_question(n: int) -> int:
    """Return how many pairs a compiled loop moves before it comes back to ask whether it may go on."""
    return max(1, WORK_PER_QUESTION // n)


def rows_per_question(gram: Gram) -> int:
    """Return how many kernel rows are computed before it is asked again: not so many that they drive each other out."""
    some = VALUES_PER_QUESTION // gram.n
    return max(1, some if len(gram.rows) == gram.n else min(some, len(gram.rows) // 4))


def fetch(gram: Gram, rows: np.ndarray) -> bool:
    """Bring rows into memory, some at a time; return False if the limit is over before all of them are there."""
    at_once = rows_per_question(gram)
    if not (gram.slot[rows] < 0).any():
        gram.fetch(rows)
        return True
    try:
        for start in range(0, rows.size, at_once):
            limits.check()
            gram.fetch(rows[start : start + at_once])
    except limits.Exceeded:
        return False
    return True


@inline
def land(start, move, end):
    """Return start + move, or the end itself if only rounding keeps them apart: a bound is met exactly or not at all."""
    place = start + move
    return end if abs(end - place) <= 4e-16 * (abs(start) + abs(move)) else place


@inline
def curvature_of(kii, kjj, kij, ridge):
    """Return the curvature along a pair, K_ii + K_jj - 2 K_ij plus both ridges.

    Added to K_ii a small ridge would be lost, and with it the minimum of duplicate points: it comes last.  An indefinite kernel
    may make the result negative.
    """
    own = (kii - kij) + (kjj - kij)
    if own == 0.0 and ridge > 0.0:
        return ridge
    least = SAME_POINT * (abs(kii) + abs(kjj))
    return (own if abs(own) > least else least) + ridge


@inline
def pair_step(i, j, kij, diagonal, ridge, lower, upper, eps, beta, residual):
    """Minimise along e_i - e_j, i rising and j falling; either may be the origin.

    Returns the step and both new coefficients, which land on a bound exactly; an infinite step means no minimum exists.
    Without curvature, or with a negative one, the minimum is at the end of the box.
    """
    kii, ri, bi, top, eps_i, ridge_i = 0.0, 0.0, 0.0, np.inf, 0.0, 0.0
    if i != ORIGIN:
        kii, ri, bi, top, eps_i, ridge_i = diagonal[i], residual[i], beta[i], upper[i], eps, ridge[i]
    kjj, rj, bj, bottom, eps_j, ridge_j = 0.0, 0.0, 0.0, -np.inf, 0.0, 0.0
    if j != ORIGIN:
        kjj, rj, bj, bottom, eps_j, ridge_j = diagonal[j], residual[j], beta[j], lower[j], eps, ridge[j]
    curvature = curvature_of(kii, kjj, kij, ridge_i + ridge_j)
    is_flat = ridge_i + ridge_j == 0.0 and curvature <= 2.0 * SAME_POINT * (abs(kii) + abs(kjj))
    step = 0.0
    # Theorem 7.18 quadrant after quadrant: each coefficient crosses zero, where eps kinks the objective, at most once.
    for _ in range(3):
        slope = (ri - (eps_i if bi >= 0 else -eps_i)) - (rj - (eps_j if bj > 0 else -eps_j))
        if slope <= 0:
            break
        end_i = 0.0 if (eps_i > 0 and bi < 0) else top
        end_j = 0.0 if (eps_j > 0 and bj > 0) else bottom
        room = min(end_i - bi, bj - end_j)
        wanted = slope / curvature if curvature > 0.0 else np.inf  # Theorem 7.12
        if (room == np.inf and is_flat) or min(wanted, room) > LARGEST:
            return np.inf, bi, bj
        if wanted < room:
            return step + wanted, land(bi, wanted, end_i), land(bj, -wanted, end_j)
        bi, bj = land(bi, room, end_i), land(bj, -room, end_j)
        ri -= room * ((kii - kij) + ridge_i)
        rj += room * ((kjj - kij) + ridge_j)
        step += room
    return step, bi, bj


@inline
def either_way(i, j, kij, diagonal, ridge, lower, upper, eps, beta, residual):
    """Minimise over a pair, whichever of the two rises; returns (i_up, i_low, step and new coefficients)."""
    step, bi, bj = pair_step(i, j, kij, diagonal, ridge, lower, upper, eps, beta, residual)
    if step > 0:
        return i, j, step, bi, bj
    step, bj, bi = pair_step(j, i, kij, diagonal, ridge, lower, upper, eps, beta, residual)
    return j, i, step, bj, bi


@jit
def best_i_low(i, row, diagonal, ridge, has_origin, residual, up_offset, low_offset):
    """Return the point with which i gains most by rising, (r_i - r_j)² / curvature; the origin or NO_POINT if there is none."""
    high = residual[i] + up_offset[i]
    best, partner = 0.0, NO_POINT
    if has_origin and high > 0:
        best, partner = _gain(high, curvature_of(diagonal[i], 0.0, 0.0, ridge[i])), ORIGIN
    for k in range(residual.size):
        slope = high - residual[k] - low_offset[k]
        if k != i and slope > 0:
            gain = _gain(slope, curvature_of(diagonal[i], diagonal[k], row[k], ridge[i] + ridge[k]))
            if gain > best:
                best, partner = gain, k
    return partner


@jit
def best_i_up(j, row, diagonal, ridge, has_origin, residual, up_offset, low_offset):
    """Return the point with which j gains most by falling."""
    low = residual[j] + low_offset[j]
    best, partner = 0.0, NO_POINT
    if has_origin and low < 0:
        best, partner = _gain(-low, curvature_of(diagonal[j], 0.0, 0.0, ridge[j])), ORIGIN
    for k in range(residual.size):
        slope = residual[k] + up_offset[k] - low
        if k != j and slope > 0:
            gain = _gain(slope, curvature_of(diagonal[j], diagonal[k], row[k], ridge[j] + ridge[k]))
            if gain > best:
                best, partner = gain, k
    return partner


@inline
def _gain(slope, curvature):
    """Return twice what the dual objective gains along a pair without a box; most where there is no curvature."""
    return slope * (slope / curvature) if curvature > 0.0 else np.inf


@inline
def reclassify(k, beta, lower, upper, eps, up_offset, low_offset):
    """Bring both offsets of one point up to date with its coefficient."""
    b = beta[k]
    up_offset[k] = (-eps if b >= 0 else eps) if b < upper[k] else -HUGE
    low_offset[k] = (-eps if b > 0 else eps) if b > lower[k] else HUGE


@inline
def is_free(k, beta, lower, upper, eps):
    """Whether a coefficient can move both ways at one slope: off its bounds and, in regression, off zero."""
    return lower[k] < beta[k] < upper[k] and (eps == 0 or beta[k] != 0)


@inline
def set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, up_offset, low_offset):
    """Give a pair its new coefficients, and its residuals their share of the ridge."""
    if i != ORIGIN:
        beta[i] = bi
        residual[i] -= step * ridge[i]
        reclassify(i, beta, lower, upper, eps, up_offset, low_offset)
    if j != ORIGIN:
        beta[j] = bj
        residual[j] += step * ridge[j]
        reclassify(j, beta, lower, upper, eps, up_offset, low_offset)


@jit
def update_residual(i, j, step, rows, slot, residual):
    """Bring the residual into step with a pair that has moved."""
    if i == ORIGIN:
        i, j, step = j, i, -step
    row = rows[slot[i]]
    if j == ORIGIN:
        for k in range(residual.size):
            residual[k] -= step * row[k]
    else:
        other = rows[slot[j]]
        for k in range(residual.size):
            residual[k] -= step * (row[k] - other[k])


@jit
def platt_bias(i, j, lower, upper, eps, beta, residual, up_offset):
    """Return Platt's estimate of the bias after a step: that of a free point of the pair, else the middle of both."""
    for k in (i, j):
        if is_free(k, beta, lower, upper, eps):
            return residual[k] + up_offset[k]
    return 0.5 * (residual[i] + residual[j])


@inline
def breaks_kkt(k, bias, tolerance, residual, up_offset, low_offset):
    """Whether a point violates its KKT condition by more than the tolerance, at the present bias."""
    return residual[k] + up_offset[k] > bias + tolerance or residual[k] + low_offset[k] < bias - tolerance


@jit
def tighten(numbers, place, kkt_target, residual):
    """After a full scan without a move: is the tolerance tight enough, can it be tighter, or is this the end?"""
    if 2.0 * numbers[place] <= kkt_target:
        return QUIET
    scale = max(1.0, np.abs(residual).max())
    if numbers[place] < 1e-16 * scale:
        return FINISHED
    numbers[place] = min(0.5 * numbers[place], max(0.5 * kkt_target, 1e-17 * scale))
    return SPENT


@inline
def draw(memory, place, n):
    """Return the next pseudo-random index below n; the generator (Park and Miller) lives in the solver's memory."""
    memory[place] = 48271 * memory[place] % 2147483647
    return memory[place] % n
