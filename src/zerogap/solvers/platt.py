"""Platt's SMO with the choice heuristics of chapter7 §7.5.2, and the simplified version with a random partner.

Both scan the points for one that breaks the KKT conditions at the present estimate of the bias, then look for a partner.
In signed form the error of chapter7 is E_k = bias - r_k, so |E_1 - E_2| = |r_1 - r_2|; we keep it for every point, since the
kernel rows that update it are at hand.
"""

from dataclasses import dataclass

import numpy as np

from zerogap import limits
from zerogap.compiled import jit
from zerogap.problem import DualProblem
from zerogap.solvers import pair
from zerogap.solvers.base import Info
from zerogap.solvers.pair import FINISHED, NEEDS_ROW, NO_POINT, ORIGIN, PAUSED, SPENT, UNBOUNDED, PairState, Scan

# Places in a state's memory and numbers.  TAKEN: moves since the last full scan without one.
POSITION, EXAMINE_ALL, CHANGED, PARTNER, RANDOM, PASSES, TAKEN = range(7)
BIAS, TOLERANCE = range(2)

LEAST_CHANGE = 1e-5  # of SMO-Simple: a random pair that would move less, relative to its size, is left alone


@dataclass(frozen=True)
class PlattSMO:
    """The original SMO: scan the free points until all obey the KKT conditions, then all points, in turn.

    The partner is the free point with the largest |E_1 - E_2|; if that gains too little, every free point is tried, then
    every point, both from a random place on.  ``tolerance`` is the one scans begin with; it is tightened when the stopping
    rule asks for more.  Where near-duplicates make these pairs crawl, after 100 moves per point, the partner is the one that
    gains most.
    """

    tolerance: float = 1e-3
    random_state: int = 0

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full scan."""
        seed = 1 + self.random_state % 2147483646
        state = pair.start(
            problem, beta, Scan(np.array([0, 1, 0, NO_POINT, seed, 0, 0]), np.array([0.0, self.tolerance]))
        )
        if problem.total is not None:
            state.memory.numbers[BIAS] = 0.5 * sum(problem.bias_interval(state.beta, state.residual))
        return state

    def step(self, problem: DualProblem, state: PairState, most: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs, or until a full scan breaks no condition by more than ``kkt_target`` / 2."""
        return _run(problem, state, most, kkt_target, 0)

    def __str__(self) -> str:
        return "smo-platt"


@dataclass(frozen=True)
class SimpleSMO:
    """SMO-Simple (spiral §2.2.2): any point that breaks the KKT conditions, with a partner drawn at random.

    It ends after ``passes`` scans without a change.  A pair that could have moved may never have been drawn, so this
    cannot promise the optimum: the certificate says what was reached.
    """

    tolerance: float = 1e-3
    passes: int = 5
    random_state: int = 0

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        return PlattSMO(self.tolerance, self.random_state).init(problem, beta)

    def step(self, problem: DualProblem, state: PairState, most: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs."""
        return _run(problem, state, most, kkt_target, self.passes)

    def __str__(self) -> str:
        return "smo-simple"


def _run(problem: DualProblem, state: PairState, most: int, kkt_target: float, passes: int) -> tuple[PairState, Info]:
    moved = 0
    while True:
        why, count, wanted = _scan(*pair.arguments(problem, state), *state.memory, passes, most - moved, kkt_target)
        moved += count
        if why == NEEDS_ROW and pair.fetch(problem.gram, np.array([wanted])):
            continue
        if why == PAUSED and not limits.is_over():
            continue
        is_done = why == FINISHED
        return state, Info(moved, is_done=is_done, is_own_rule=is_done and passes > 0, is_unbounded=why == UNBOUNDED)


@jit
def _scan(
    rows, slot, stamp, diagonal, ridge, lower, upper, eps, has_origin, beta, residual, up_offset, low_offset,
    memory, numbers, passes, most, kkt_target,
):  # fmt: skip
    """Scan and move pairs; return (why it stopped, pairs moved, row wanted)."""
    n = residual.size
    clock = stamp.max() + 1
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < most:
        if work >= pair.WORK_PER_QUESTION:
            return PAUSED, moved, NO_POINT
        work += 1
        if memory[POSITION] == n:
            if passes > 0:
                why = _end_simple_pass(memory, passes)
            else:
                why = _end_platt_scan(memory, numbers, kkt_target, has_origin, residual, up_offset, low_offset)
            memory[POSITION] = 0
            memory[CHANGED] = 0
            if why != SPENT:
                return why, moved, NO_POINT
            continue
        k = memory[POSITION]
        candidate = passes > 0 or memory[EXAMINE_ALL] == 1 or pair.is_free(k, beta, lower, upper, eps)
        if candidate and pair.breaks_kkt(k, numbers[BIAS], numbers[TOLERANCE], residual, up_offset, low_offset):
            if slot[k] < 0:
                return NEEDS_ROW, moved, k
            stamp[slot[k]] = clock + moved
            work += n
            partner = memory[PARTNER]
            if partner == NO_POINT:
                if passes == 0 and memory[TAKEN] > slow:
                    partner = _best_partner(
                        k, rows[slot[k]], numbers[BIAS], diagonal, ridge, has_origin, residual, up_offset, low_offset
                    )
                elif has_origin:
                    partner = ORIGIN
                elif passes > 0:
                    partner = (k + 1 + pair.draw(memory, RANDOM, n - 1)) % n
                else:
                    partner = _second_choice(
                        k, numbers[TOLERANCE], lower, upper, eps, beta, residual, up_offset, low_offset, memory
                    )
            if partner != NO_POINT:
                if partner != ORIGIN and slot[partner] < 0:
                    memory[PARTNER] = partner  # the scan goes on with this pair once its row is there
                    return NEEDS_ROW, moved, partner
                memory[PARTNER] = NO_POINT
                kij = rows[slot[k], partner] if partner != ORIGIN else 0.0
                i, j, step, bi, bj = pair.either_way(
                    k, partner, kij, diagonal, ridge, lower, upper, eps, beta, residual
                )
                if step == np.inf:
                    return UNBOUNDED, moved, NO_POINT
                if step > (LEAST_CHANGE * (abs(bi) + abs(bj)) if passes > 0 else 0.0):
                    pair.set_coefficients(
                        i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, up_offset, low_offset
                    )
                    pair.update_residual(i, j, step, rows, slot, residual)
                    if not has_origin:
                        numbers[BIAS] = pair.platt_bias(i, j, lower, upper, eps, beta, residual, up_offset)
                    if partner != ORIGIN:
                        stamp[slot[partner]] = clock + moved
                    memory[CHANGED] += 1
                    memory[TAKEN] += 1
                    moved += 1
        memory[POSITION] = k + 1
    return SPENT, moved, NO_POINT


@jit
def _end_simple_pass(memory, passes):
    memory[PASSES] = memory[PASSES] + 1 if memory[CHANGED] == 0 else 0
    return FINISHED if memory[PASSES] >= passes else SPENT


@jit
def _end_platt_scan(memory, numbers, kkt_target, has_origin, residual, up_offset, low_offset):
    """Choose the next scan: the free points after a full one, all points after a free one without a change."""
    if memory[EXAMINE_ALL] == 0:
        memory[EXAMINE_ALL] = 1 if memory[CHANGED] == 0 else 0
        return SPENT
    if memory[CHANGED] > 0:
        memory[EXAMINE_ALL] = 0
        return SPENT
    memory[TAKEN] = 0
    if not has_origin:
        # The bias of the last pair may suit no other point (Keerthi's remark on Platt): take the middle of all.
        numbers[BIAS] = 0.5 * ((residual + up_offset).max() + (residual + low_offset).min())
    return pair.tighten(numbers, TOLERANCE, kkt_target, residual)


@jit
def _best_partner(k, row, bias, diagonal, ridge, has_origin, residual, up_offset, low_offset):
    """Return the partner with which k gains most, on the side to which it breaks its condition."""
    if residual[k] + up_offset[k] - bias >= bias - residual[k] - low_offset[k]:
        return pair.best_i_low(k, row, diagonal, ridge, has_origin, residual, up_offset, low_offset)
    return pair.best_i_up(k, row, diagonal, ridge, has_origin, residual, up_offset, low_offset)


@jit
def _second_choice(k, tolerance, lower, upper, eps, beta, residual, up_offset, low_offset, memory):
    """Return a partner with which k makes progress, by the three tiers of §7.5.2, or NO_POINT."""
    n = residual.size
    best, partner = -1.0, NO_POINT
    for m in range(n):
        if m != k and pair.is_free(m, beta, lower, upper, eps) and abs(residual[m] - residual[k]) > best:
            best, partner = abs(residual[m] - residual[k]), m
    if partner != NO_POINT and _makes_progress(k, partner, tolerance, residual, up_offset, low_offset):
        return partner
    for only_free in (True, False):
        start = pair.draw(memory, RANDOM, n)
        for offset in range(n):
            m = (start + offset) % n
            if m == k or (only_free and not pair.is_free(m, beta, lower, upper, eps)):
                continue
            if _makes_progress(k, m, tolerance, residual, up_offset, low_offset):
                return m
    return NO_POINT


@jit
def _makes_progress(k, m, tolerance, residual, up_offset, low_offset):
    """Whether the dual objective rises along the pair at more than the tolerance: no step on it is then wasted."""
    up = residual[k] + up_offset[k] - residual[m] - low_offset[m]
    down = residual[m] + up_offset[m] - residual[k] - low_offset[k]
    return max(up, down) > tolerance
