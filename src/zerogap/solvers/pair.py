"""The analytical step on two coefficients, and what every member of the SMO family shares.

Theorem 7.12 for classification and Theorem 7.18 for regression are one formula in signed coefficients: move along
e_i - e_j, which keeps the sum, by slope / curvature, and no further than the box or the kink of |beta| at zero allows.

With a fixed bias nothing constrains the sum and one coefficient moves alone.  That is the same step against the *origin*:
a point with kernel values zero, target zero and no box, which holds the bias at zero (Remark 7.16).
"""

from typing import Any, NamedTuple

import numpy as np

from zerogap.compiled import HUGE, inline, jit
from zerogap.problem import DualProblem

ORIGIN = -1  # index of the point that fixes the bias at zero
NOBODY = -2

# A sum of two kernel values cannot resolve a curvature below this share of it: then the points are duplicates.
SAME_POINT = 1e-15
SMALLEST = 1e-290

# Why a compiled loop came back.
SPENT, QUIET, NEEDS_ROW, UNBOUNDED, FINISHED = range(5)


class Info(NamedTuple):
    """What a step reports."""

    iterations: int  # moves made, of pairs or as the solver says
    violation: float  # KKT violation by the solver's own arrays, if it knows it, else inf
    is_done: bool = False  # nothing is left to do at the solver's own precision
    is_own_rule: bool = False  # ... by a rule that does not imply the optimum
    is_unbounded: bool = False  # the dual objective has no bound: no hard margin exists
    is_divergent: bool = False  # the solver's own options make the dual objective fall


class PairState(NamedTuple):
    """What the next pair needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - K beta, kept in step with beta
    rise: np.ndarray  # (n,) residual + rise bounds the bias from below
    fall: np.ndarray  # (n,) residual + fall bounds the bias from above
    diagonal: np.ndarray  # (n,) of K + ridge
    memory: Any  # what one rule alone needs


class Scan(NamedTuple):
    """What a scan needs to go on where it stopped; the places are the solver's."""

    integers: np.ndarray
    numbers: np.ndarray


def start(problem: DualProblem, beta: np.ndarray | None, memory: Any) -> PairState:
    """Return the state at beta, or at the problem's own starting point."""
    beta = problem.feasible_start() if beta is None else np.array(beta, dtype=np.float64)
    return PairState(beta, problem.residual(beta), problem.rise(beta), problem.fall(beta), problem.diagonal, memory)


def arguments(problem: DualProblem, state: PairState) -> tuple[Any, ...]:
    """Return the arrays a compiled loop works on, in the order of its parameters."""
    gram = problem.gram
    return (
        *(gram.rows, gram.slot, gram.stamp),
        *(state.diagonal, problem.ridge, problem.lower, problem.upper, problem.eps, problem.total is None),
        *(state.beta, state.residual, state.rise, state.fall),
    )


@inline
def land(start, move, end):
    """Return start + move, or the end itself if only rounding keeps them apart: a bound is met exactly or not at all."""
    place = start + move
    return end if abs(end - place) <= 4e-16 * (abs(start) + abs(move)) else place


@inline
def pair_step(i, j, kij, diagonal, lower, upper, eps, beta, residual):
    """Minimise along e_i - e_j, i rising and j falling; either may be the origin.

    Returns the step and both new coefficients, which land on a bound exactly; an infinite step means no minimum exists.
    """
    kii, ri, bi, top, eps_i = 0.0, 0.0, 0.0, np.inf, 0.0
    if i != ORIGIN:
        kii, ri, bi, top, eps_i = diagonal[i], residual[i], beta[i], upper[i], eps
    kjj, rj, bj, bottom, eps_j = 0.0, 0.0, 0.0, -np.inf, 0.0
    if j != ORIGIN:
        kjj, rj, bj, bottom, eps_j = diagonal[j], residual[j], beta[j], lower[j], eps
    curvature = max(kii + kjj - 2.0 * kij, SAME_POINT * (kii + kjj), SMALLEST)
    step = 0.0
    # Theorem 7.18 quadrant after quadrant: each coefficient crosses zero, where eps kinks the objective, at most once.
    for _ in range(3):
        slope = (ri - (eps_i if bi >= 0 else -eps_i)) - (rj - (eps_j if bj > 0 else -eps_j))
        if slope <= 0:
            break
        end_i = 0.0 if (eps_i > 0 and bi < 0) else top
        end_j = 0.0 if (eps_j > 0 and bj > 0) else bottom
        room = min(end_i - bi, bj - end_j)
        wanted = slope / curvature  # Theorem 7.12
        if wanted < room:
            if room == np.inf and curvature <= 2.0 * SAME_POINT * (kii + kjj):
                return np.inf, bi, bj
            return step + wanted, land(bi, wanted, end_i), land(bj, -wanted, end_j)
        bi, bj = land(bi, room, end_i), land(bj, -room, end_j)
        ri -= room * (kii - kij)
        rj += room * (kjj - kij)
        step += room
    return step, bi, bj


@inline
def either_way(i, j, kij, diagonal, lower, upper, eps, beta, residual):
    """Minimise over a pair, whichever of the two rises; returns (riser, faller, step and new coefficients)."""
    step, bi, bj = pair_step(i, j, kij, diagonal, lower, upper, eps, beta, residual)
    if step > 0:
        return i, j, step, bi, bj
    step, bj, bi = pair_step(j, i, kij, diagonal, lower, upper, eps, beta, residual)
    return j, i, step, bj, bi


@inline
def reclassify(k, beta, lower, upper, eps, rise, fall):
    """Bring rise and fall of one point up to date with its coefficient."""
    b = beta[k]
    rise[k] = (-eps if b >= 0 else eps) if b < upper[k] else -HUGE
    fall[k] = (-eps if b > 0 else eps) if b > lower[k] else HUGE


@inline
def is_free(k, beta, lower, upper, eps):
    """Whether a coefficient can move both ways at one slope: off its bounds and, in regression, off zero."""
    return lower[k] < beta[k] < upper[k] and (eps == 0 or beta[k] != 0)


@inline
def set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, rise, fall):
    """Give a pair its new coefficients, and its residuals their share of the ridge."""
    if i != ORIGIN:
        beta[i] = bi
        residual[i] -= step * ridge[i]
        reclassify(i, beta, lower, upper, eps, rise, fall)
    if j != ORIGIN:
        beta[j] = bj
        residual[j] += step * ridge[j]
        reclassify(j, beta, lower, upper, eps, rise, fall)


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
def platt_bias(i, j, lower, upper, eps, beta, residual, rise):
    """Return Platt's estimate of the bias after a step: that of a free point of the pair, else the middle of both."""
    for k in (i, j):
        if is_free(k, beta, lower, upper, eps):
            return residual[k] + rise[k]
    return 0.5 * (residual[i] + residual[j])


@inline
def breaks_kkt(k, bias, tolerance, residual, rise, fall):
    """Whether a point asks for a bias further than the tolerance from the present one."""
    return residual[k] + rise[k] > bias + tolerance or residual[k] + fall[k] < bias - tolerance


@jit
def tighten(numbers, place, until, residual):
    """After a scan of everyone without a move: is the tolerance tight enough, can it be tighter, or is this the end?"""
    if 2.0 * numbers[place] <= until:
        return QUIET
    scale = max(1.0, np.abs(residual).max())
    if numbers[place] < 1e-16 * scale:
        return FINISHED
    numbers[place] = min(0.5 * numbers[place], max(0.5 * until, 1e-17 * scale))
    return SPENT


@inline
def draw(memory, place, n):
    """Return the next pseudo-random index below n; the generator (Park and Miller) lives in the solver's memory."""
    memory[place] = 48271 * memory[place] % 2147483647
    return memory[place] % n
