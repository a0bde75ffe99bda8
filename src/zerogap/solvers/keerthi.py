"""Keerthi's SMO, modification 2: two thresholds, and the worst pair of the free points until none is left.

Symbols: b_up = largest r over points that can rise, b_low = smallest r over points that can fall (Keerthi's, with the other
sign), both over the free points and the pair moved last; a pair violates when b_up - b_low > 2 tolerance.
"""

from dataclasses import dataclass

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, NO_POINT, inline, jit
from zerogap.gram import has_row, kernel_value, mark_used, next_stamp, row_of
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import compiled_loops, pair
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import FINISHED, NEEDS_ROW, PAUSED, SPENT, UNBOUNDED
from zerogap.solvers.pair import ORIGIN, PairState, Scan

# Places in a scan's integers and numbers.  MOVES: those made since the last full scan without one.
POSITION, EXAMINE_ALL, CHANGED, I_UP, I_LOW, NEXT_UP, NEXT_LOW, MOVES = range(8)
B_UP, B_LOW, TOLERANCE = range(3)


@dataclass(frozen=True)
class KeerthiSMO:
    """Two thresholds instead of one bias, so that no pair is missed because the bias is off.

    A full scan updates the thresholds and moves a point that violates one with the point that set it; in between, the
    pair that sets both is moved until the free points agree.  ``tolerance`` is tightened when the stopping rule asks for more.
    Where near-duplicates make these pairs crawl, after 100 moves per point, one of the two gets the partner that gains most.

    Attributes
    ----------
    tolerance : float
        Violation above which a pair is moved, at first; 1e-3 by default.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import KeerthiSMO
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, KeerthiSMO()).status.name
    'CONVERGED'
    """

    tolerance: float = 1e-3

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full scan."""
        scan = Scan(
            np.array([0, 1, 0, NO_POINT, NO_POINT, NO_POINT, NO_POINT, 0]), np.array([-HUGE, HUGE, self.tolerance])
        )
        return pair.start(problem, beta, scan)

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``max_steps`` pairs, or until a full scan finds no violation above ``kkt_target``."""
        arrays, point, gram = arrays_of(problem), state.iterate, problem.gram
        moved = 0
        while True:
            reason, count, i, j = _scan(arrays, point, gram.cache(), state.memory, max_steps - moved, kkt_target)
            moved += count
            rows = np.array([i, j])
            if reason == NEEDS_ROW and compiled_loops.fetch(gram, rows[rows >= 0]):
                continue
            if reason == PAUSED and not limits.is_over():
                continue
            return state, Info(moved, is_done=reason == FINISHED, is_unbounded=reason == UNBOUNDED)

    def __str__(self) -> str:
        return "smo-keerthi"


@jit
def _scan(problem, point, cache, scan, max_pairs, kkt_target):
    """Scan and move pairs; return (reason to return, pairs moved, the two rows wanted)."""
    integers, numbers = scan
    n, clock = point.beta.size, next_stamp(cache)
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < max_pairs:
        if work >= limits.WORK_PER_QUESTION:
            return PAUSED, moved, NO_POINT, NO_POINT
        work += 1
        width = 2.0 * numbers[TOLERANCE]
        if integers[NEXT_UP] != NO_POINT:  # a pair that had to wait for its rows
            i, j = integers[NEXT_UP], integers[NEXT_LOW]
            integers[NEXT_UP] = NO_POINT
        elif integers[EXAMINE_ALL] == 1:
            k = integers[POSITION]
            if k == n:
                reason = _end_scan(scan, kkt_target, point.residual)
                if reason != SPENT:
                    return reason, moved, NO_POINT, NO_POINT
                _update_thresholds(NO_POINT, NO_POINT, problem, point, scan)
                work += n
                continue
            i, j = _examine(k, point, scan, width)
            integers[POSITION] = k + 1
        else:
            i, j = integers[I_UP], integers[I_LOW]
            if i == NO_POINT or j == NO_POINT or numbers[B_UP] - numbers[B_LOW] <= width:
                integers[EXAMINE_ALL], integers[POSITION], integers[CHANGED] = 1, 0, 0
                continue
        if i == NO_POINT or i == j:
            continue
        work += n
        if integers[MOVES] > slow:
            i, j = _better_pair(i, j, cache, problem, point)
        if (i != ORIGIN and not has_row(cache, i)) or (j != ORIGIN and not has_row(cache, j)):
            integers[NEXT_UP], integers[NEXT_LOW] = i, j
            return NEEDS_ROW, moved, i, j
        kij = kernel_value(cache, i, j) if i != ORIGIN and j != ORIGIN else 0.0
        step, bi, bj = pair.pair_step(i, j, kij, problem, point)
        if step == np.inf:
            return UNBOUNDED, moved, NO_POINT, NO_POINT
        if step <= 0:  # thresholds from before a refresh of the residual
            integers[POSITION] *= integers[EXAMINE_ALL]
            integers[EXAMINE_ALL] = 1
            continue
        pair.set_coefficients(i, j, bi, bj, step, problem, point)
        pair.update_residual(i, j, step, cache, point)
        for m in (i, j):
            if m != ORIGIN:
                mark_used(cache, m, clock + moved)
        _update_thresholds(i, j, problem, point, scan)
        integers[CHANGED] += 1
        integers[MOVES] += 1
        moved += 1
    return SPENT, moved, NO_POINT, NO_POINT


@inline
def _examine(k, point, scan, width):
    """Bring the thresholds up to date with point k; return the pair to move if k violates one, else NO_POINT twice."""
    integers, numbers = scan
    below, above = point.residual[k] + point.up_offset[k], point.residual[k] + point.low_offset[k]
    gain_up, gain_down = below - numbers[B_LOW], numbers[B_UP] - above
    i_low, i_up = integers[I_LOW], integers[I_UP]
    if below > numbers[B_UP]:
        numbers[B_UP], integers[I_UP] = below, k
    if above < numbers[B_LOW]:
        numbers[B_LOW], integers[I_LOW] = above, k
    if gain_up > width and gain_up >= gain_down and i_low != NO_POINT:
        return k, i_low
    if gain_down > width and i_up != NO_POINT:
        return i_up, k
    return NO_POINT, NO_POINT


@inline
def _better_pair(i, j, cache, problem, point):
    """Return i_up with the partner that gains most; if i_up is the origin, i_low with its own."""
    if i == ORIGIN:
        i_up = pair.best_i_up(j, row_of(cache, j), problem, point) if has_row(cache, j) else i
        return (i if i_up == NO_POINT else i_up), j
    i_low = pair.best_i_low(i, row_of(cache, i), problem, point) if has_row(cache, i) else j
    return i, (j if i_low == NO_POINT else i_low)


@inline
def _update_thresholds(i, j, problem, point, scan):
    """Recompute both thresholds over the free points and the pair just moved."""
    residual, up_offset, low_offset = point.residual, point.up_offset, point.low_offset
    b_up, b_low, i_up, i_low = -HUGE, HUGE, NO_POINT, NO_POINT
    if problem.has_fixed_bias:  # the origin: its bias is zero and it may always move
        b_up, b_low, i_up, i_low = 0.0, 0.0, ORIGIN, ORIGIN
    for k in range(residual.size):
        if k == i or k == j or pair.is_free(k, problem, point):
            if residual[k] + up_offset[k] > b_up:
                b_up, i_up = residual[k] + up_offset[k], k
            if residual[k] + low_offset[k] < b_low:
                b_low, i_low = residual[k] + low_offset[k], k
    integers, numbers = scan
    numbers[B_UP], numbers[B_LOW], integers[I_UP], integers[I_LOW] = b_up, b_low, i_up, i_low


@inline
def _end_scan(scan, kkt_target, residual):
    """After a full scan: the free points if anything moved, else a tighter tolerance or the end."""
    integers, numbers = scan
    changed = integers[CHANGED]
    integers[POSITION] = 0
    integers[CHANGED] = 0
    if changed > 0:
        integers[EXAMINE_ALL] = 0
        return SPENT
    integers[MOVES] = 0
    return pair.tighten(numbers, TOLERANCE, kkt_target, residual)
