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
from zerogap.solvers.pair import FINISHED, NEEDS_ROW, NOBODY, ORIGIN, PAUSED, SPENT, UNBOUNDED, PairState, Scan

# Places in a state's memory and numbers.  TAKEN: moves since the last scan of everyone without one.
POSITION, EVERYONE, CHANGED, PARTNER, RANDOM, PASSES, TAKEN = range(7)
BIAS, TOLERANCE = range(2)

LEAST_CHANGE = 1e-5  # of SMO-Simple: a random pair that would move less, relative to its size, is left alone


@dataclass(frozen=True)
class PlattSMO:
    """The original SMO: scan the free points until all obey the KKT conditions, then everyone, in turn.

    The partner is the free point with the largest |E_1 - E_2|; if that gains too little, every free point is tried, then
    every point, both from a random place on.  ``tolerance`` is the one scans begin with; it is tightened when the stopping
    rule asks for more.  Where near-duplicates make these pairs crawl, after 100 moves per point, the partner is the one that
    gains most.
    """

    tolerance: float = 1e-3
    random_state: int = 0

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a scan of everyone."""
        seed = 1 + self.random_state % 2147483646
        state = pair.start(
            problem, beta, Scan(np.array([0, 1, 0, NOBODY, seed, 0, 0]), np.array([0.0, self.tolerance]))
        )
        if problem.total is not None:
            state.memory.numbers[BIAS] = 0.5 * sum(problem.bias_interval(state.beta, state.residual))
        return state

    def step(self, problem: DualProblem, state: PairState, most: int, until: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs, or until a scan of everyone breaks no condition by more than ``until`` / 2."""
        return _run(problem, state, most, until, 0)

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

    def step(self, problem: DualProblem, state: PairState, most: int, until: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs."""
        return _run(problem, state, most, until, self.passes)

    def __str__(self) -> str:
        return "smo-simple"


def _run(problem: DualProblem, state: PairState, most: int, until: float, passes: int) -> tuple[PairState, Info]:
    moved = 0
    while True:
        why, count, wanted = _scan(*pair.arguments(problem, state), *state.memory, passes, most - moved, until)
        moved += count
        if why == NEEDS_ROW and pair.fetch(problem.gram, np.array([wanted])):
            continue
        if why == PAUSED and not limits.is_over():
            continue
        is_done = why == FINISHED
        return state, Info(moved, is_done=is_done, is_own_rule=is_done and passes > 0, is_unbounded=why == UNBOUNDED)


@jit
def _scan(
    rows, slot, stamp, diagonal, ridge, lower, upper, eps, has_origin, beta, residual, rise, fall,
    memory, numbers, passes, most, until,
):  # fmt: skip
    """Scan and move pairs; return (why it stopped, pairs moved, row wanted)."""
    n = residual.size
    clock = stamp.max() + 1
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < most:
        if work >= pair.WORK_PER_QUESTION:
            return PAUSED, moved, NOBODY
        work += 1
        if memory[POSITION] == n:
            if passes > 0:
                why = _end_simple_pass(memory, passes)
            else:
                why = _end_platt_scan(memory, numbers, until, has_origin, residual, rise, fall)
            memory[POSITION] = 0
            memory[CHANGED] = 0
            if why != SPENT:
                return why, moved, NOBODY
            continue
        k = memory[POSITION]
        candidate = passes > 0 or memory[EVERYONE] == 1 or pair.is_free(k, beta, lower, upper, eps)
        if candidate and pair.breaks_kkt(k, numbers[BIAS], numbers[TOLERANCE], residual, rise, fall):
            if slot[k] < 0:
                return NEEDS_ROW, moved, k
            stamp[slot[k]] = clock + moved
            work += n
            partner = memory[PARTNER]
            if partner == NOBODY:
                if passes == 0 and memory[TAKEN] > slow:
                    partner = _best_partner(
                        k, rows[slot[k]], numbers[BIAS], diagonal, ridge, has_origin, residual, rise, fall
                    )
                elif has_origin:
                    partner = ORIGIN
                elif passes > 0:
                    partner = (k + 1 + pair.draw(memory, RANDOM, n - 1)) % n
                else:
                    partner = _second_choice(
                        k, numbers[TOLERANCE], lower, upper, eps, beta, residual, rise, fall, memory
                    )
            if partner != NOBODY:
                if partner != ORIGIN and slot[partner] < 0:
                    memory[PARTNER] = partner  # the scan goes on with this pair once its row is there
                    return NEEDS_ROW, moved, partner
                memory[PARTNER] = NOBODY
                kij = rows[slot[k], partner] if partner != ORIGIN else 0.0
                i, j, step, bi, bj = pair.either_way(
                    k, partner, kij, diagonal, ridge, lower, upper, eps, beta, residual
                )
                if step == np.inf:
                    return UNBOUNDED, moved, NOBODY
                if step > (LEAST_CHANGE * (abs(bi) + abs(bj)) if passes > 0 else 0.0):
                    pair.set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, rise, fall)
                    pair.update_residual(i, j, step, rows, slot, residual)
                    if not has_origin:
                        numbers[BIAS] = pair.platt_bias(i, j, lower, upper, eps, beta, residual, rise)
                    if partner != ORIGIN:
                        stamp[slot[partner]] = clock + moved
                    memory[CHANGED] += 1
                    memory[TAKEN] += 1
                    moved += 1
        memory[POSITION] = k + 1
    return SPENT, moved, NOBODY


@jit
def _end_simple_pass(memory, passes):
    memory[PASSES] = memory[PASSES] + 1 if memory[CHANGED] == 0 else 0
    return FINISHED if memory[PASSES] >= passes else SPENT


@jit
def _end_platt_scan(memory, numbers, until, has_origin, residual, rise, fall):
    """Choose who is scanned next: the free points after everyone, everyone after free points without a change."""
    if memory[EVERYONE] == 0:
        memory[EVERYONE] = 1 if memory[CHANGED] == 0 else 0
        return SPENT
    if memory[CHANGED] > 0:
        memory[EVERYONE] = 0
        return SPENT
    memory[TAKEN] = 0
    if not has_origin:
        # The bias of the last pair may suit no other point (Keerthi's remark on Platt): take the middle of all.
        numbers[BIAS] = 0.5 * ((residual + rise).max() + (residual + fall).min())
    return pair.tighten(numbers, TOLERANCE, until, residual)


@jit
def _best_partner(k, row, bias, diagonal, ridge, has_origin, residual, rise, fall):
    """Return the partner with which k gains most, on the side to which it breaks its condition."""
    if residual[k] + rise[k] - bias >= bias - residual[k] - fall[k]:
        return pair.best_faller(k, row, diagonal, ridge, has_origin, residual, rise, fall)
    return pair.best_riser(k, row, diagonal, ridge, has_origin, residual, rise, fall)


@jit
def _second_choice(k, tolerance, lower, upper, eps, beta, residual, rise, fall, memory):
    """Return a partner with which k makes progress, by the three tiers of §7.5.2, or nobody."""
    n = residual.size
    best, partner = -1.0, NOBODY
    for m in range(n):
        if m != k and pair.is_free(m, beta, lower, upper, eps) and abs(residual[m] - residual[k]) > best:
            best, partner = abs(residual[m] - residual[k]), m
    if partner != NOBODY and _makes_progress(k, partner, tolerance, residual, rise, fall):
        return partner
    for only_free in (True, False):
        start = pair.draw(memory, RANDOM, n)
        for offset in range(n):
            m = (start + offset) % n
            if m == k or (only_free and not pair.is_free(m, beta, lower, upper, eps)):
                continue
            if _makes_progress(k, m, tolerance, residual, rise, fall):
                return m
    return NOBODY


@jit
def _makes_progress(k, m, tolerance, residual, rise, fall):
    """Whether the dual objective rises along the pair at more than the tolerance: no step on it is then wasted."""
    up = residual[k] + rise[k] - residual[m] - fall[m]
    down = residual[m] + rise[m] - residual[k] - fall[k]
    return max(up, down) > tolerance
