"""Platt's SMO with the choice heuristics of chapter7 §7.5.2, and the simplified version with a random partner.

Both scan the points for one that breaks the KKT conditions at the present estimate of the bias, then look for a partner.
In signed form the error of chapter7 is E_k = bias - r_k, so |E_1 - E_2| = |r_1 - r_2|; we keep it for every point, since the
kernel rows that update it are at hand.
"""

from dataclasses import dataclass

import numpy as np

from zerogap import limits, validation
from zerogap.compiled import NO_POINT, inline, jit
from zerogap.gram import has_row, kernel_value, mark_used, next_stamp, row_of
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import compiled_loops, pair
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import FINISHED, NEEDS_ROW, PAUSED, SPENT, UNBOUNDED
from zerogap.solvers.pair import ORIGIN, PairState, Scan

# Places in a scan's integers and numbers.  MOVES: those made since the last full scan without one.
POSITION, EXAMINE_ALL, CHANGED, PARTNER, RANDOM, PASSES, MOVES, BIAS_RULE = range(8)
BIAS, TOLERANCE, INCREASE, DUAL = range(
    4
)  # INCREASE: the least one of the dual objective, DUAL, as a share of it; or BY_SLOPE

BY_SLOPE = -1.0
NO_INCREASE = 1e-17  # of the dual objective, which no longer changes by less
BIAS_RULES = ("free", "mean")

LEAST_CHANGE = 1e-5  # of SMO-Simple: a random pair that would move less, relative to its size, is left alone


@dataclass(frozen=True)
class PlattSMO:
    """The original SMO: scan the free points until all obey the KKT conditions, then all points, in turn.

    The partner is the free point with the largest |E_1 - E_2|; if that gains too little, every free point is tried, then
    every point, both from a random place on.  ``tolerance`` is the one scans begin with; it is tightened when the stopping
    rule asks for more.  Where near-duplicates make these pairs crawl, after 100 moves per point, the partner is the one that
    gains most.

    ``increase`` says what is too little.  With None a pair is taken if the dual objective rises along it by more than the
    tolerance a unit.  With a number, as §7.5.2 has it, if its step raises the dual objective by more than that share: the
    "significant increase" of the text, which gives no number.  After a full scan without a move it is lowered, to a
    hundredth, until nothing but the KKT conditions holds a pair up: else the run would end at it, short of the optimum.
    It is a choice among partners: with a fixed bias, where a point moves alone, it has no effect.

    Attributes
    ----------
    tolerance : float
        The KKT violation that scans let pass at first.
    random_state : int
        Seed of the places from which partners are tried.
    increase : float or None
        Share by which a step has to raise the dual objective; None asks for a slope above the tolerance.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import PlattSMO
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, PlattSMO(increase=1e-4)).status.name
    'CONVERGED'
    """

    tolerance: float = 1e-3
    random_state: int = 0
    increase: float | None = None

    def __post_init__(self) -> None:
        if self.increase is not None:
            advice = "It is a share of the dual objective; None judges a pair by its slope."
            validation.check_positive("increase", self.increase, advice=advice)

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full scan."""
        return _start(problem, beta, self.tolerance, self.random_state, BIAS_RULES[0], self.increase)

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``max_steps`` pairs, or until a full scan breaks no condition by more than ``kkt_target`` / 2."""
        return _run(problem, state, max_steps, kkt_target, 0)

    def __str__(self) -> str:
        return "smo-platt"


@dataclass(frozen=True)
class SimpleSMO:
    """SMO-Simple (spiral §2.2.2): any point that breaks the KKT conditions, with a partner drawn at random.

    It ends after ``passes`` scans without a change.  A pair that could have moved may never have been drawn, so this
    cannot promise the optimum: the certificate says what was reached.

    ``bias`` is the estimate that conditions are tested with after a step: "free", that of a point of the pair off its
    bounds if there is one, which is Platt's; or "mean" (spiral §2.2.3), that of a point only where both are off their bounds,
    and else the mean of the two, although one of them may be at a bound and say little.

    Attributes
    ----------
    tolerance : float
        The KKT violation that scans let pass.
    passes : int
        Scans without a change after which the run ends.
    random_state : int
        Seed of the partners.
    bias : str
        "free" or "mean", as above.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import SimpleSMO
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, SimpleSMO(bias="mean")).status.name
    'EXHAUSTED'
    """

    tolerance: float = 1e-3
    passes: int = 5
    random_state: int = 0
    bias: str = "free"

    def __post_init__(self) -> None:
        validation.check_choice("bias", self.bias, BIAS_RULES)

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        return _start(problem, beta, self.tolerance, self.random_state, self.bias, None)

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``max_steps`` pairs."""
        return _run(problem, state, max_steps, kkt_target, self.passes)

    def __str__(self) -> str:
        return "smo-simple"


def _start(
    problem: DualProblem,
    beta: np.ndarray | None,
    tolerance: float,
    seed: int,
    bias_rule: str,
    increase: float | None,
) -> PairState:
    integers = np.array([0, 1, 0, NO_POINT, 1 + seed % 2147483646, 0, 0, BIAS_RULES.index(bias_rule)])
    numbers = np.array([0.0, tolerance, BY_SLOPE if increase is None else increase, 0.0])
    state = pair.start(problem, beta, Scan(integers, numbers))
    if problem.total is not None:
        numbers[BIAS] = 0.5 * sum(problem.bias_interval(state.beta, state.residual))
    if increase is not None:
        numbers[DUAL] = -problem.objective(state.beta, state.residual)
    return state


def _run(
    problem: DualProblem, state: PairState, max_steps: int, kkt_target: float, passes: int
) -> tuple[PairState, Info]:
    arrays, point, gram = arrays_of(problem), state.iterate, problem.gram
    moved = 0
    while True:
        max_pairs = max_steps - moved
        reason, count, wanted = _scan(arrays, point, gram.cache(), state.memory, passes, max_pairs, kkt_target)
        moved += count
        if reason == NEEDS_ROW and compiled_loops.fetch(gram, np.array([wanted])):
            continue
        if reason == PAUSED and not limits.is_over():
            continue
        is_done = reason == FINISHED
        return state, Info(moved, is_done=is_done, is_own_rule=is_done and passes > 0, is_unbounded=reason == UNBOUNDED)


@jit
def _scan(problem, point, cache, scan, passes, max_pairs, kkt_target):
    """Scan and move pairs; return (reason to return, pairs moved, row wanted).  With ``passes`` above zero: SMO-Simple."""
    integers, numbers = scan
    residual, up_offset, low_offset = point.residual, point.up_offset, point.low_offset
    n, has_origin, clock = residual.size, problem.has_fixed_bias, next_stamp(cache)
    moved, work = 0, 0
    slow = pair.SLOW_AT_LEAST + pair.SLOW_PER_POINT * n
    while moved < max_pairs:
        if work >= limits.WORK_PER_QUESTION:
            return PAUSED, moved, NO_POINT
        work += 1
        if integers[POSITION] == n:
            reason = _end_scan(scan, passes, kkt_target, has_origin, point)
            integers[POSITION] = 0
            integers[CHANGED] = 0
            if reason != SPENT:
                return reason, moved, NO_POINT
            continue
        k = integers[POSITION]
        is_candidate = passes > 0 or integers[EXAMINE_ALL] == 1 or pair.is_free(k, problem, point)
        below, above = residual[k] + up_offset[k], residual[k] + low_offset[k]
        if is_candidate and pair.breaks_kkt(below, above, numbers[BIAS], numbers[TOLERANCE]):
            if not has_row(cache, k):
                return NEEDS_ROW, moved, k
            mark_used(cache, k, clock + moved)
            work += n
            partner = integers[PARTNER]
            if partner == NO_POINT:
                if passes == 0 and integers[MOVES] > slow:
                    partner = _best_partner(k, row_of(cache, k), numbers[BIAS], problem, point)
                elif has_origin:
                    partner = ORIGIN
                elif passes > 0:
                    partner = (k + 1 + pair.draw(integers, RANDOM, n - 1)) % n
                else:
                    partner = _second_choice(k, row_of(cache, k), scan, problem, point)
            if partner != NO_POINT:
                if partner != ORIGIN and not has_row(cache, partner):
                    integers[PARTNER] = partner  # the scan goes on with this pair once its row is there
                    return NEEDS_ROW, moved, partner
                integers[PARTNER] = NO_POINT
                kij = kernel_value(cache, k, partner) if partner != ORIGIN else 0.0
                i, j, step, bi, bj = pair.either_way(k, partner, kij, problem, point)
                if step == np.inf:
                    return UNBOUNDED, moved, NO_POINT
                if step > (LEAST_CHANGE * (abs(bi) + abs(bj)) if passes > 0 else 0.0):
                    numbers[DUAL] += pair.increase(i, j, kij, step, bi, bj, problem, point)
                    pair.set_coefficients(i, j, bi, bj, step, problem, point)
                    pair.update_residual(i, j, step, cache, point)
                    if not has_origin:
                        numbers[BIAS] = pair.platt_bias(i, j, integers[BIAS_RULE], problem, point)
                    if partner != ORIGIN:
                        mark_used(cache, partner, clock + moved)
                    integers[CHANGED] += 1
                    integers[MOVES] += 1
                    moved += 1
        integers[POSITION] = k + 1
    return SPENT, moved, NO_POINT


@inline
def _end_scan(scan, passes, kkt_target, has_origin, point):
    """Choose the next scan: the free points after a full one, all points after a free one without a change.

    SMO-Simple scans all points every time, and ends after so many passes without a change.
    """
    integers, numbers = scan
    if passes > 0:
        integers[PASSES] = integers[PASSES] + 1 if integers[CHANGED] == 0 else 0
        return FINISHED if integers[PASSES] >= passes else SPENT
    if integers[EXAMINE_ALL] == 0:
        integers[EXAMINE_ALL] = 1 if integers[CHANGED] == 0 else 0
        return SPENT
    if integers[CHANGED] > 0:
        integers[EXAMINE_ALL] = 0
        return SPENT
    integers[MOVES] = 0
    if numbers[INCREASE] > 0.0:  # what was left alone for it may still break a condition
        numbers[INCREASE] = 0.01 * numbers[INCREASE] if numbers[INCREASE] > NO_INCREASE else 0.0
        return SPENT
    if not has_origin:
        # The bias of the last pair may suit no other point (Keerthi's remark on Platt): take the middle of all.
        b_up, b_low = (point.residual + point.up_offset).max(), (point.residual + point.low_offset).min()
        numbers[BIAS] = 0.5 * (b_up + b_low)
    return pair.tighten(numbers, TOLERANCE, kkt_target, point.residual)


@inline
def _best_partner(k, row, bias, problem, point):
    """Return the partner with which k gains most, on the side to which it breaks its condition."""
    r = point.residual[k]
    if r + point.up_offset[k] - bias >= bias - r - point.low_offset[k]:
        return pair.best_i_low(k, row, problem, point)
    return pair.best_i_up(k, row, problem, point)


@inline
def _second_choice(k, row, scan, problem, point):
    """Return a partner with which k makes progress, by the three tiers of §7.5.2, or NO_POINT."""
    residual = point.residual
    n = residual.size
    largest, partner = -1.0, NO_POINT
    for m in range(n):
        if m != k and pair.is_free(m, problem, point) and abs(residual[m] - residual[k]) > largest:
            largest, partner = abs(residual[m] - residual[k]), m
    if partner != NO_POINT and _makes_progress(k, partner, row, scan, problem, point):
        return partner
    for only_free in (True, False):
        start = pair.draw(scan.integers, RANDOM, n)
        for shift in range(n):
            m = (start + shift) % n
            if m == k or (only_free and not pair.is_free(m, problem, point)):
                continue
            if _makes_progress(k, m, row, scan, problem, point):
                return m
    return NO_POINT


@inline
def _makes_progress(k, m, row, scan, problem, point):
    """Whether a pair is worth a step: by what this adds to the dual objective, or by its slope, more than the tolerance."""
    residual, up_offset, low_offset = point.residual, point.up_offset, point.low_offset
    numbers = scan.numbers
    if numbers[INCREASE] != BY_SLOPE:
        i, j, step, bi, bj = pair.either_way(k, m, row[m], problem, point)
        if step == np.inf:
            return True
        return pair.increase(i, j, row[m], step, bi, bj, problem, point) > numbers[INCREASE] * abs(numbers[DUAL])
    up = residual[k] + up_offset[k] - residual[m] - low_offset[m]
    down = residual[m] + up_offset[m] - residual[k] - low_offset[k]
    return max(up, down) > numbers[TOLERANCE]
