"""Passes over the points that move one coefficient at a time: what gradient ascent, over-relaxation and the strip share.

Symbols as in ``gradient_ascent.py``.
"""

from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, inline, jit
from zerogap.gram import has_row, mark_used, next_stamp
from zerogap.problem import DualProblem
from zerogap.solvers import pair
from zerogap.solvers.compiled_loops import FINISHED, LARGEST, NEEDS_ROW, PAUSED, QUIET, SPENT, UNBOUNDED
from zerogap.solvers.pair import ORIGIN, PairState

DIVERGED, TURN = PAUSED + 1, PAUSED + 2  # more reasons for a compiled loop to come back; TURN: a pass has ended

ORDERS = ("sequential", "free-first", "ranked")
SEQUENTIAL, FREE_FIRST, RANKED = range(3)

# Places in a pass's integers and numbers.
# VISITS: points visited so far, moved or not; PASSES: those begun before this one; BY_PASS: whether to return after each.
POSITION, LENGTH, EXAMINE_ALL, CHANGED, OVERSHOT, VISITS, PASSES, BY_PASS = range(8)
# ROOM_UP, ROOM_DOWN: how far the sum may still rise and fall; BIAS: taken off the residual; RATE: the same for all points.
GAIN, PASS_VIOLATION, VIOLATION, BIAS, ROOM_UP, ROOM_DOWN, RATE = range(7)

# Passes over a part of the points end when none of them breaks a condition by more than this share of the violation of all.
QUIET_SHARE = 0.1

ROWS_AT_ONCE = 32


class Pass(NamedTuple):
    """What a pass over the points needs to go on where it stopped."""

    order: np.ndarray  # (n,) the points of this pass, in turn, the first LENGTH of them
    before: np.ndarray  # (n,) beta at its beginning
    integers: np.ndarray
    numbers: np.ndarray


def begin(problem: DualProblem, beta: np.ndarray | None, *, by_pass: bool = False) -> PairState:
    """Return the state at beta, or at the problem's own start, before a full pass."""
    state, n = pair.start(problem, beta, None), problem.n
    integers = np.array([0, n, 1, 0, 0, 0, 0, int(by_pass)])
    numbers = np.array([0.0, 0.0, HUGE, 0.0, np.inf, np.inf, 0.0])
    return state._replace(memory=Pass(np.arange(n), state.beta.copy(), integers, numbers))


def rows_ahead(problem: DualProblem, state: PairState) -> np.ndarray:
    """Return the row wanted now and those wanted next: of points further on in the pass that break their conditions."""
    order, _, integers, _ = state.memory
    coming = order[integers[POSITION] : integers[LENGTH]]
    violations = np.maximum(state.residual + state.up_offset, -state.residual - state.low_offset)[coming]
    violations[0] = HUGE
    return coming[(violations > 0) & ~problem.gram.has_rows(coming)][:ROWS_AT_ONCE]


def step_back(problem: DualProblem, state: PairState) -> None:
    """Return to where the pass began that lost ground: the best point so far."""
    with limits.unlimited():  # the point and its residual change together
        residual = problem.residual(state.memory.before)
    state.beta[:], state.residual[:] = state.memory.before, residual
    state.up_offset[:], state.low_offset[:] = problem.up_offset(state.beta), problem.low_offset(state.beta)


@jit
def ascend(problem, point, cache, rates, this_pass, heuristic, max_moves, kkt_target):
    """Pass over the points and move them; return (reason to return, moves made).  The row wanted is that of the next point."""
    beta, residual, up_offset, low_offset = point
    diagonal, ridge, eps, lower, upper = (
        problem.kernel_diagonal,
        problem.ridge,
        problem.eps,
        problem.lower,
        problem.upper,
    )
    order, integers, numbers = this_pass.order, this_pass.integers, this_pass.numbers
    clock = next_stamp(cache)
    moved, work = 0, 0
    while moved < max_moves:
        if work >= limits.WORK_PER_QUESTION:
            return PAUSED, moved
        work += 1
        if integers[POSITION] == integers[LENGTH]:
            work += beta.size
            reason = _end_pass(point, this_pass, heuristic, kkt_target)
            if reason == DIVERGED:
                return reason, moved
            _begin_pass(problem, point, this_pass, heuristic)
            if reason != SPENT:
                return reason, moved
            if integers[BY_PASS] == 1:
                return TURN, moved
            continue
        k = order[integers[POSITION]]
        slope = residual[k] - numbers[BIAS]
        new = _ascent(beta[k], slope, rates[k], eps, lower[k], upper[k])
        new = min(max(new, beta[k] - numbers[ROOM_DOWN]), beta[k] + numbers[ROOM_UP])
        if new == beta[k]:
            integers[POSITION] += 1
            integers[VISITS] += 1
            continue
        if not has_row(cache, k):
            return NEEDS_ROW, moved
        if abs(new) > LARGEST:
            return (DIVERGED if rates[k] * (diagonal[k] + ridge[k]) >= 2.0 else UNBOUNDED), moved
        work += beta.size
        numbers[PASS_VIOLATION] = max(numbers[PASS_VIOLATION], slope + up_offset[k], -slope - low_offset[k])
        step = new - beta[k]
        numbers[ROOM_UP] -= step
        numbers[ROOM_DOWN] += step
        numbers[GAIN] += step * (slope - 0.5 * (diagonal[k] + ridge[k]) * step) - eps * (abs(new) - abs(beta[k]))
        if rates[k] * (diagonal[k] + ridge[k]) >= 2.0:
            integers[OVERSHOT] += 1
        pair.set_coefficients(k, ORIGIN, new, 0.0, step, problem, point)
        pair.update_residual(k, ORIGIN, step, cache, point)
        mark_used(cache, k, clock + moved)
        integers[CHANGED] += 1
        integers[POSITION] += 1
        integers[VISITS] += 1
        moved += 1
    return SPENT, moved


@inline
def _ascent(beta, r, eta, eps, lower, upper):
    """Return clip(soft(beta + eta r, eta eps)): Table 7.1, and for regression the kink at zero."""
    up, down = beta + eta * (r - eps), beta + eta * (r + eps)
    new = up if up > 0 else (down if down < 0 else 0.0)
    return min(max(new, lower), upper)


@inline
def _end_pass(point, this_pass, heuristic, kkt_target):
    """Judge a pass: lost ground, quiet, at an end, or to be followed by another over all points or some."""
    integers, numbers = this_pass.integers, this_pass.numbers
    if integers[OVERSHOT] > 0 and numbers[GAIN] <= 0:
        return DIVERGED
    changed = integers[CHANGED]
    if integers[EXAMINE_ALL] == 0:
        is_quiet = numbers[PASS_VIOLATION] <= QUIET_SHARE * numbers[VIOLATION]
        integers[EXAMINE_ALL] = 1 if changed == 0 or is_quiet else 0
        return SPENT
    b_up, b_low = (point.residual + point.up_offset).max(), (point.residual + point.low_offset).min()
    numbers[VIOLATION] = max(b_up - numbers[BIAS], 0.0) - min(b_low - numbers[BIAS], 0.0)
    integers[EXAMINE_ALL] = 1 if heuristic == SEQUENTIAL else 0
    if changed == 0:
        return FINISHED
    return QUIET if numbers[VIOLATION] <= kkt_target else SPENT


@inline
def _begin_pass(problem, point, this_pass, heuristic):
    """Line up the points of the next pass."""
    beta, (order, before, integers, numbers) = point.beta, this_pass
    n = beta.size
    by_size = np.argsort(np.abs(beta), kind="mergesort") if heuristic == RANKED else order
    count = 0
    for m in range(n):
        k = by_size[m] if heuristic == RANKED else m
        is_in = integers[EXAMINE_ALL] == 1
        if not is_in:
            is_in = beta[k] != 0 if heuristic == RANKED else pair.is_free(k, problem, point)
        if is_in:
            order[count] = k
            count += 1
    for k in range(n):
        before[k] = beta[k]
    integers[POSITION], integers[LENGTH], integers[CHANGED], integers[OVERSHOT] = 0, count, 0, 0
    integers[PASSES] += 1
    numbers[GAIN] = numbers[PASS_VIOLATION] = 0.0
