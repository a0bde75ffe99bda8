"""The analytical step on two coefficients, and what every member of the SMO family shares.

Theorem 7.12 for classification and Theorem 7.18 for regression are one formula in signed coefficients: move along
e_i - e_j, which keeps the sum, by slope / curvature, and no further than the box or the kink of |beta| at zero allows.

With a fixed bias nothing constrains the sum and one coefficient moves alone.  That is the same step against the *origin*:
a point with kernel values zero, target zero and no box, which holds the bias at zero (Remark 7.16).
"""

from typing import Any, NamedTuple

import numpy as np

from zerogap.compiled import HUGE, NO_POINT, inline
from zerogap.gram import row_of
from zerogap.problem import DualProblem
from zerogap.solvers.compiled_loops import FINISHED, LARGEST, QUIET, SPENT, land

ORIGIN = -1  # index of the point that fixes the bias at zero

# A sum of two kernel values cannot resolve a curvature below this share of it: then the points are duplicates.
SAME_POINT = 1e-15
SMALLEST = 1e-290  # where a gain is only compared with others: no division by zero

# A rule that uses slopes alone takes about as many moves as the kernel matrix is badly conditioned.  After so many of them
# without a quiet scan, per point and at least, a solver takes the partner with the largest gain instead.
SLOW_PER_POINT, SLOW_AT_LEAST = 100, 1000


class Iterate(NamedTuple):
    """The point a compiled loop moves, with what follows from it; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta, kept up to date with beta
    up_offset: np.ndarray  # (n,) residual + up_offset bounds the bias from below: b_up is its maximum
    low_offset: np.ndarray  # (n,) residual + low_offset bounds the bias from above: b_low is its minimum


class PairState(NamedTuple):
    """What the next pair needs: an ``Iterate``, and more; arrays are updated in place."""

    beta: np.ndarray
    residual: np.ndarray
    up_offset: np.ndarray
    low_offset: np.ndarray
    diagonal: np.ndarray  # (n,) of K + ridge, which may have lost a small ridge
    memory: Any  # what one rule alone needs

    @property
    def iterate(self) -> Iterate:
        """The arrays that compiled loops change."""
        return Iterate(self.beta, self.residual, self.up_offset, self.low_offset)


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


# In compiled functions ``problem`` is a ``ProblemArrays``, ``point`` an ``Iterate`` and ``cache`` a ``RowCache``.


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
def pair_step(i, j, kij, problem, point):
    """Minimise along e_i - e_j, i rising and j falling; either may be the origin.

    Returns the step and both new coefficients, which land on a bound exactly; an infinite step means no minimum exists.
    Without curvature, or with a negative one, the minimum is at the end of the box.
    """
    kii, ri, bi, top, eps_i, ridge_i = 0.0, 0.0, 0.0, np.inf, 0.0, 0.0
    if i != ORIGIN:
        kii, ri, bi = problem.kernel_diagonal[i], point.residual[i], point.beta[i]
        top, eps_i, ridge_i = problem.upper[i], problem.eps, problem.ridge[i]
    kjj, rj, bj, bottom, eps_j, ridge_j = 0.0, 0.0, 0.0, -np.inf, 0.0, 0.0
    if j != ORIGIN:
        kjj, rj, bj = problem.kernel_diagonal[j], point.residual[j], point.beta[j]
        bottom, eps_j, ridge_j = problem.lower[j], problem.eps, problem.ridge[j]
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
def either_way(i, j, kij, problem, point):
    """Minimise over a pair, whichever of the two rises; returns (i_up, i_low, step and new coefficients)."""
    below, above = 0.0, 0.0  # bounds on the bias, of i from below and of j from above
    if i != ORIGIN:
        below = point.residual[i] + point.up_offset[i]
    if j != ORIGIN:
        above = point.residual[j] + point.low_offset[j]
    if not below > above:
        i, j = j, i
    step, bi, bj = pair_step(i, j, kij, problem, point)
    return i, j, step, bi, bj


@inline
def best_i_low(i, row, problem, point):
    """Return the point with which i gains most by rising, (r_i - r_j)² / curvature; the origin or NO_POINT if there is none."""
    diagonal, ridge, residual, low_offset = problem.kernel_diagonal, problem.ridge, point.residual, point.low_offset
    high = residual[i] + point.up_offset[i]
    best, partner = 0.0, NO_POINT
    if problem.has_fixed_bias and high > 0:
        best, partner = _gain(high, curvature_of(diagonal[i], 0.0, 0.0, ridge[i])), ORIGIN
    for k in range(residual.size):
        slope = high - residual[k] - low_offset[k]
        if k != i and slope > 0:
            gain = _gain(slope, curvature_of(diagonal[i], diagonal[k], row[k], ridge[i] + ridge[k]))
            if gain > best:
                best, partner = gain, k
    return partner


@inline
def best_i_up(j, row, problem, point):
    """Return the point with which j gains most by falling."""
    diagonal, ridge, residual, up_offset = problem.kernel_diagonal, problem.ridge, point.residual, point.up_offset
    low = residual[j] + point.low_offset[j]
    best, partner = 0.0, NO_POINT
    if problem.has_fixed_bias and low < 0:
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
def update_offsets(k, problem, point):
    """Bring both offsets of one point up to date with its coefficient."""
    b, eps = point.beta[k], problem.eps
    point.up_offset[k] = (-eps if b >= 0 else eps) if b < problem.upper[k] else -HUGE
    point.low_offset[k] = (-eps if b > 0 else eps) if b > problem.lower[k] else HUGE


@inline
def is_free(k, problem, point):
    """Whether a coefficient can move both ways at one slope: off its bounds and, in regression, off zero."""
    b = point.beta[k]
    return problem.lower[k] < b < problem.upper[k] and (problem.eps == 0 or b != 0)


@inline
def set_coefficients(i, j, bi, bj, step, problem, point):
    """Give a pair its new coefficients, and its residuals their share of the ridge."""
    if i != ORIGIN:
        point.beta[i] = bi
        point.residual[i] -= step * problem.ridge[i]
        update_offsets(i, problem, point)
    if j != ORIGIN:
        point.beta[j] = bj
        point.residual[j] += step * problem.ridge[j]
        update_offsets(j, problem, point)


@inline
def update_residual(i, j, step, cache, point):
    """Bring the residual into step with a pair that has moved."""
    if i == ORIGIN:
        i, j, step = j, i, -step
    row, residual = row_of(cache, i), point.residual
    if j == ORIGIN:
        for k in range(residual.size):
            residual[k] -= step * row[k]
    else:
        other = row_of(cache, j)
        for k in range(residual.size):
            residual[k] -= step * (row[k] - other[k])


@inline
def increase(i, j, kij, step, bi, bj, problem, point):
    """Return by how much a step along e_i - e_j, to the coefficients bi and bj, raises the dual objective."""
    kii, kjj, slope, ridge, kink = 0.0, 0.0, 0.0, 0.0, 0.0
    if i != ORIGIN:
        kii, slope, ridge = problem.kernel_diagonal[i], point.residual[i], problem.ridge[i]
        kink += abs(bi) - abs(point.beta[i])
    if j != ORIGIN:
        kjj, slope, ridge = problem.kernel_diagonal[j], slope - point.residual[j], ridge + problem.ridge[j]
        kink += abs(bj) - abs(point.beta[j])
    return step * (slope - 0.5 * curvature_of(kii, kjj, kij, ridge) * step) - problem.eps * kink


@inline
def platt_bias(i, j, is_mean, problem, point):
    """Return the estimate of the bias after a step: Platt's, that of a free point of the pair, else the middle of both.

    With ``is_mean`` that of a point only if both are free (spiral §2.2.3).
    """
    if is_mean == 0 or (is_free(i, problem, point) and is_free(j, problem, point)):
        for k in (i, j):
            if is_free(k, problem, point):
                return point.residual[k] + point.up_offset[k]
    return 0.5 * (point.residual[i] + point.residual[j])


@inline
def breaks_kkt(below, above, bias, tolerance):
    """Whether the bias is off a point's bounds on it, from below and from above, by more than the tolerance."""
    return below > bias + tolerance or above < bias - tolerance


@inline
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
