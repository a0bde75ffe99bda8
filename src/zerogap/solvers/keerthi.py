"""Keerthi's SMO, modification 2: two thresholds, and the worst pair of the free points until none is left.

Symbols: b_up = largest r over points that can rise, b_low = smallest r over points that can fall (Keerthi's, with the other
sign), both over the free points and the pair moved last; a pair violates when b_up - b_low > 2 tolerance.
"""

from dataclasses import dataclass

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, jit
from zerogap.problem import DualProblem
from zerogap.solvers import pair
from zerogap.solvers.base import Info
from zerogap.solvers.pair import FINISHED, NEEDS_ROW, NO_POINT, ORIGIN, PAUSED, SPENT, UNBOUNDED, PairState, Scan

# Places in a state's memory and numbers.  TAKEN: moves since the last full scan without one.
POSITION, EXAMINE_ALL, CHANGED, I_UP, I_LOW, NEXT_UP, NEXT_DOWN, TAKEN = range(8)
B_UP, B_LOW, TOLERANCE = range(3)


@dataclass(frozen=True)
class KeerthiSMO:
    """Two thresholds instead of one bias, so that no pair is missed because the bias is off.

    A full scan updates the thresholds and moves a point that violates one with the point that set it; in between, the
    pair that sets both is moved until the free points agree.  ``tolerance`` is tightened when the stopping rule asks for more.
    Where near-duplicates make these pairs crawl, after 100 moves per point, one of the two gets the partner that gains most.
    """

    tolerance: float = 1e-3

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full scan."""
        scan = Scan(
            np.array([0, 1, 0, NO_POINT, NO_POINT, NO_POINT, NO_POINT, 0]), np.array([-HUGE, HUGE, self.tolerance])
        )
        return pair.start(problem, beta, scan)

    def step(self, problem: DualProblem, state: PairState, most: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs, or until a full scan finds no violation above ``kkt_target``."""
        moved = 0
        while True:
            why, count, wanted, other = _scan(*pair.arguments(problem, state), *state.memory, most - moved, kkt_target)
            moved += count
            rows = np.array([wanted, other])
            if why == NEEDS_ROW and pair.fetch(problem.gram, rows[rows >= 0]):
                continue
            if why == PAUSED and not limits.is_over():
                continue
            return state, Info(moved, is_done=why == FINISHED, is_unbounded=why == UNBOUNDED)

    def __str__(self) -> str:
        return "smo-keerthi"


@jit
def _scan(
    rows, slot, stamp, diagonal, ridge, lower, upper, eps, has_origin, beta, residual, up_offset, low_offset,
    memory, numbers, most, kkt_target,
):  # fmt: skip
    """Scan and move pairs; return (why it stopped, pairs moved, the two rows wanted)."""
    n = residual.size
    clock = stamp.max() + 1
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < most:
        if work >= pair.WORK_PER_QUESTION:
            return PAUSED, moved, NO_POINT, NO_POINT
        work += 1
        width = 2.0 * numbers[TOLERANCE]
        if memory[NEXT_UP] != NO_POINT:  # a pair that had to wait for its rows
            i, j = memory[NEXT_UP], memory[NEXT_DOWN]
            memory[NEXT_UP] = NO_POINT
        elif memory[EXAMINE_ALL] == 1:
            k = memory[POSITION]
            if k == n:
                why = _end_scan(memory, numbers, kkt_target, residual)
                if why != SPENT:
                    return why, moved, NO_POINT, NO_POINT
                _thresholds(
                    NO_POINT,
                    NO_POINT,
                    has_origin,
                    eps,
                    lower,
                    upper,
                    beta,
                    residual,
                    up_offset,
                    low_offset,
                    memory,
                    numbers,
                )
                work += n
                continue
            i, j = _examine(k, residual, up_offset, low_offset, memory, numbers, width)
            memory[POSITION] = k + 1
        else:
            i, j = memory[I_UP], memory[I_LOW]
            if i == NO_POINT or j == NO_POINT or numbers[B_UP] - numbers[B_LOW] <= width:
                memory[EXAMINE_ALL], memory[POSITION], memory[CHANGED] = 1, 0, 0
                continue
        if i == NO_POINT or i == j:
            continue
        work += n
        if memory[TAKEN] > slow:
            i, j = _better_pair(i, j, rows, slot, diagonal, ridge, has_origin, residual, up_offset, low_offset)
        if (i != ORIGIN and slot[i] < 0) or (j != ORIGIN and slot[j] < 0):
            memory[NEXT_UP], memory[NEXT_DOWN] = i, j
            return NEEDS_ROW, moved, i, j
        kij = rows[slot[i], j] if i != ORIGIN and j != ORIGIN else 0.0
        step, bi, bj = pair.pair_step(i, j, kij, diagonal, ridge, lower, upper, eps, beta, residual)
        if step == np.inf:
            return UNBOUNDED, moved, NO_POINT, NO_POINT
        if step <= 0:  # thresholds from before a refresh of the residual
            memory[POSITION] *= memory[EXAMINE_ALL]
            memory[EXAMINE_ALL] = 1
            continue
        pair.set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, up_offset, low_offset)
        pair.update_residual(i, j, step, rows, slot, residual)
        for m in (i, j):
            if m != ORIGIN:
                stamp[slot[m]] = clock + moved
        _thresholds(i, j, has_origin, eps, lower, upper, beta, residual, up_offset, low_offset, memory, numbers)
        memory[CHANGED] += 1
        memory[TAKEN] += 1
        moved += 1
    return SPENT, moved, NO_POINT, NO_POINT


@jit
def _examine(k, residual, up_offset, low_offset, memory, numbers, width):
    """Bring the thresholds up to date with point k; return the pair to move if k violates one, else NO_POINT twice."""
    below, above = residual[k] + up_offset[k], residual[k] + low_offset[k]
    gain_up, gain_down = below - numbers[B_LOW], numbers[B_UP] - above
    i_low, i_up = memory[I_LOW], memory[I_UP]
    if below > numbers[B_UP]:
        numbers[B_UP], memory[I_UP] = below, k
    if above < numbers[B_LOW]:
        numbers[B_LOW], memory[I_LOW] = above, k
    if gain_up > width and gain_up >= gain_down and i_low != NO_POINT:
        return k, i_low
    if gain_down > width and i_up != NO_POINT:
        return i_up, k
    return NO_POINT, NO_POINT


@jit
def _better_pair(i, j, rows, slot, diagonal, ridge, has_origin, residual, up_offset, low_offset):
    """Return i_up with the partner that gains most; if i_up is the origin, i_low with its own."""
    if i == ORIGIN:
        i_up = (
            pair.best_i_up(j, rows[slot[j]], diagonal, ridge, has_origin, residual, up_offset, low_offset)
            if slot[j] >= 0
            else i
        )
        return (i if i_up == NO_POINT else i_up), j
    i_low = (
        pair.best_i_low(i, rows[slot[i]], diagonal, ridge, has_origin, residual, up_offset, low_offset)
        if slot[i] >= 0
        else j
    )
    return i, (j if i_low == NO_POINT else i_low)


@jit
def _thresholds(i, j, has_origin, eps, lower, upper, beta, residual, up_offset, low_offset, memory, numbers):
    """Recompute both thresholds over the free points and the pair just moved."""
    b_up, b_low, i_up, i_low = -HUGE, HUGE, NO_POINT, NO_POINT
    if has_origin:  # its bias is zero and it may always move
        b_up, b_low, i_up, i_low = 0.0, 0.0, ORIGIN, ORIGIN
    for k in range(residual.size):
        if k == i or k == j or pair.is_free(k, beta, lower, upper, eps):
            if residual[k] + up_offset[k] > b_up:
                b_up, i_up = residual[k] + up_offset[k], k
            if residual[k] + low_offset[k] < b_low:
                b_low, i_low = residual[k] + low_offset[k], k
    numbers[B_UP], numbers[B_LOW], memory[I_UP], memory[I_LOW] = b_up, b_low, i_up, i_low


@jit
def _end_scan(memory, numbers, kkt_target, residual):
    """After a full scan: the free points if anything moved, else a tighter tolerance or the end."""
    changed = memory[CHANGED]
    memory[POSITION] = 0
    memory[CHANGED] = 0
    if changed > 0:
        memory[EXAMINE_ALL] = 0
        return SPENT
    memory[TAKEN] = 0
    return pair.tighten(numbers, TOLERANCE, kkt_target, residual)
