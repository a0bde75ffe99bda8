"""Keerthi's SMO, modification 2: two thresholds, and the worst pair of the free points until none is left.

Symbols: high = largest r a riser asks for (minus Keerthi's b_up), low = smallest r a faller asks for (minus his b_low),
both over the free points and the pair moved last; a pair violates when high - low > 2 tolerance.
"""

from dataclasses import dataclass

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, jit
from zerogap.problem import DualProblem
from zerogap.solvers import pair
from zerogap.solvers.base import Info
from zerogap.solvers.pair import FINISHED, NEEDS_ROW, NOBODY, ORIGIN, PAUSED, SPENT, UNBOUNDED, PairState, Scan

# Places in a state's memory and numbers.  TAKEN: moves since the last scan of everyone without one.
POSITION, EVERYONE, CHANGED, RISER, FALLER, NEXT_UP, NEXT_DOWN, TAKEN = range(8)
HIGH, LOW, TOLERANCE = range(3)


@dataclass(frozen=True)
class KeerthiSMO:
    """Two thresholds instead of one bias, so that no pair is missed because the bias is off.

    A scan of everyone updates the thresholds and moves whoever breaks them with the point that set them; in between, the
    pair that sets both is moved until the free points agree.  ``tolerance`` is tightened when the stopping rule asks for more.
    Where near-duplicates make these pairs crawl, after 100 moves per point, one of the two gets the partner that gains most.
    """

    tolerance: float = 1e-3

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a scan of everyone."""
        scan = Scan(np.array([0, 1, 0, NOBODY, NOBODY, NOBODY, NOBODY, 0]), np.array([-HUGE, HUGE, self.tolerance]))
        return pair.start(problem, beta, scan)

    def step(self, problem: DualProblem, state: PairState, most: int, until: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs, or until a scan of everyone finds no violation above ``until``."""
        moved = 0
        while True:
            why, count, wanted, other = _scan(*pair.arguments(problem, state), *state.memory, most - moved, until)
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
    rows, slot, stamp, diagonal, ridge, lower, upper, eps, has_origin, beta, residual, rise, fall,
    memory, numbers, most, until,
):  # fmt: skip
    """Scan and move pairs; return (why it stopped, pairs moved, the two rows wanted)."""
    n = residual.size
    clock = stamp.max() + 1
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < most:
        if work >= pair.WORK_PER_QUESTION:
            return PAUSED, moved, NOBODY, NOBODY
        work += 1
        width = 2.0 * numbers[TOLERANCE]
        if memory[NEXT_UP] != NOBODY:  # a pair that had to wait for its rows
            i, j = memory[NEXT_UP], memory[NEXT_DOWN]
            memory[NEXT_UP] = NOBODY
        elif memory[EVERYONE] == 1:
            k = memory[POSITION]
            if k == n:
                why = _end_scan(memory, numbers, until, residual)
                if why != SPENT:
                    return why, moved, NOBODY, NOBODY
                _thresholds(NOBODY, NOBODY, has_origin, eps, lower, upper, beta, residual, rise, fall, memory, numbers)
                work += n
                continue
            i, j = _examine(k, residual, rise, fall, memory, numbers, width)
            memory[POSITION] = k + 1
        else:
            i, j = memory[RISER], memory[FALLER]
            if i == NOBODY or j == NOBODY or numbers[HIGH] - numbers[LOW] <= width:
                memory[EVERYONE], memory[POSITION], memory[CHANGED] = 1, 0, 0
                continue
        if i == NOBODY or i == j:
            continue
        work += n
        if memory[TAKEN] > slow:
            i, j = _better_pair(i, j, rows, slot, diagonal, ridge, has_origin, residual, rise, fall)
        if (i != ORIGIN and slot[i] < 0) or (j != ORIGIN and slot[j] < 0):
            memory[NEXT_UP], memory[NEXT_DOWN] = i, j
            return NEEDS_ROW, moved, i, j
        kij = rows[slot[i], j] if i != ORIGIN and j != ORIGIN else 0.0
        step, bi, bj = pair.pair_step(i, j, kij, diagonal, ridge, lower, upper, eps, beta, residual)
        if step == np.inf:
            return UNBOUNDED, moved, NOBODY, NOBODY
        if step <= 0:  # thresholds from before a refresh of the residual
            memory[POSITION] *= memory[EVERYONE]
            memory[EVERYONE] = 1
            continue
        pair.set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, rise, fall)
        pair.update_residual(i, j, step, rows, slot, residual)
        for m in (i, j):
            if m != ORIGIN:
                stamp[slot[m]] = clock + moved
        _thresholds(i, j, has_origin, eps, lower, upper, beta, residual, rise, fall, memory, numbers)
        memory[CHANGED] += 1
        memory[TAKEN] += 1
        moved += 1
    return SPENT, moved, NOBODY, NOBODY


@jit
def _examine(k, residual, rise, fall, memory, numbers, width):
    """Bring the thresholds up to date with point k; return the pair to move if k breaks one, else nobody."""
    below, above = residual[k] + rise[k], residual[k] + fall[k]
    gain_up, gain_down = below - numbers[LOW], numbers[HIGH] - above
    faller, riser = memory[FALLER], memory[RISER]
    if below > numbers[HIGH]:
        numbers[HIGH], memory[RISER] = below, k
    if above < numbers[LOW]:
        numbers[LOW], memory[FALLER] = above, k
    if gain_up > width and gain_up >= gain_down and faller != NOBODY:
        return k, faller
    if gain_down > width and riser != NOBODY:
        return riser, k
    return NOBODY, NOBODY


@jit
def _better_pair(i, j, rows, slot, diagonal, ridge, has_origin, residual, rise, fall):
    """Return the riser with the partner that gains most; if the riser is the origin, the faller with its own."""
    if i == ORIGIN:
        riser = (
            pair.best_riser(j, rows[slot[j]], diagonal, ridge, has_origin, residual, rise, fall) if slot[j] >= 0 else i
        )
        return (i if riser == NOBODY else riser), j
    faller = (
        pair.best_faller(i, rows[slot[i]], diagonal, ridge, has_origin, residual, rise, fall) if slot[i] >= 0 else j
    )
    return i, (j if faller == NOBODY else faller)


@jit
def _thresholds(i, j, has_origin, eps, lower, upper, beta, residual, rise, fall, memory, numbers):
    """Recompute both thresholds over the free points and the pair just moved."""
    high, low, riser, faller = -HUGE, HUGE, NOBODY, NOBODY
    if has_origin:  # its bias is zero and it may always move
        high, low, riser, faller = 0.0, 0.0, ORIGIN, ORIGIN
    for k in range(residual.size):
        if k == i or k == j or pair.is_free(k, beta, lower, upper, eps):
            if residual[k] + rise[k] > high:
                high, riser = residual[k] + rise[k], k
            if residual[k] + fall[k] < low:
                low, faller = residual[k] + fall[k], k
    numbers[HIGH], numbers[LOW], memory[RISER], memory[FALLER] = high, low, riser, faller


@jit
def _end_scan(memory, numbers, until, residual):
    """After a scan of everyone: the free points if anything moved, else a tighter tolerance or the end."""
    changed = memory[CHANGED]
    memory[POSITION] = 0
    memory[CHANGED] = 0
    if changed > 0:
        memory[EVERYONE] = 0
        return SPENT
    memory[TAKEN] = 0
    return pair.tighten(numbers, TOLERANCE, until, residual)
