"""Stochastic gradient ascent on one coefficient at a time (chapter7 §7.2, Table 7.1), and its over-relaxed form.

Symbols: r = t - (K + diag(ridge)) beta, the gradient of the dual objective but for eps; eta = learning rates, one for each
point.
The step is Table 7.1's: along the gradient, then clipped to the box.  In regression the kink of eps |beta| at zero lies in
between, a soft threshold:  beta_i <- clip(soft(beta_i + eta_i r_i, eta_i eps)).  It climbs as long as eta_i < 2 / K_ii.
With a free bias sum(beta) is fixed and no coefficient can move alone: these solvers are for a fixed bias.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.compiled import HUGE, inline, jit
from zerogap.gram import has_row, mark_used, next_stamp
from zerogap.problem import DualProblem
from zerogap.solvers import compiled_loops, pair
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import FINISHED, LARGEST, NEEDS_ROW, PAUSED, QUIET, SPENT, UNBOUNDED, arrays_of
from zerogap.solvers.pair import ORIGIN, SMALLEST, PairState

DIVERGED = PAUSED + 1  # one more reason for a compiled loop to come back

ORDERS = ("sequential", "free-first", "ranked")
SEQUENTIAL, FREE_FIRST, RANKED = range(3)

# Places in a pass's integers and numbers.
POSITION, LENGTH, EXAMINE_ALL, CHANGED, OVERSHOT, VISITS = range(6)  # VISITS: points visited so far, moved or not
GAIN, PASS_VIOLATION, VIOLATION = range(3)

# Passes over a part of the points end when none of them breaks a condition by more than this share of the violation of all.
QUIET_SHARE = 0.1

ROWS_AT_ONCE = 32


class Pass(NamedTuple):
    """What a pass over the points needs to go on where it stopped."""

    order: np.ndarray  # (n,) the points of this pass, in turn, the first LENGTH of them
    before: np.ndarray  # (n,) beta at its beginning
    integers: np.ndarray
    numbers: np.ndarray


class OneAtATime:
    """What both solvers share; they differ in their learning rates."""

    order: str
    patience = 10  # a move of one coefficient does little, and the gap goes up and down on its way

    def _rates(self, diagonal: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full pass."""
        if problem.total is not None:
            raise ValueError(
                f"{str(self)!r} moves one coefficient at a time, which a free bias forbids: it fixes sum(beta). Use a solver "
                "that moves pairs, such as 'smo'; or fix the bias with fit_intercept=False, if need be on "
                'Gram(..., tau="radius"), which brings back a bias that counts in the norm (Remark 7.4).'
            )
        state, n = pair.start(problem, beta, None), problem.n
        begun = Pass(np.arange(n), state.beta.copy(), np.array([0, n, 1, 0, 0, 0]), np.array([0.0, 0.0, HUGE]))
        return state._replace(memory=begun)

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Make up to ``max_steps`` moves, or until after a full pass the violation is at most ``kkt_target``."""
        arrays, point, gram = arrays_of(problem), state.iterate, problem.gram
        rates, heuristic = self._rates(state.diagonal), ORDERS.index(self.order)
        moved = 0
        while True:
            max_moves = max_steps - moved
            reason, count = _ascend(arrays, point, gram.cache(), rates, state.memory, heuristic, max_moves, kkt_target)
            moved += count
            if reason == NEEDS_ROW and compiled_loops.fetch(gram, _rows_ahead(problem, state)):
                continue
            if reason != PAUSED or limits.is_over():
                break
        if reason == DIVERGED:
            _step_back(problem, state)
        return state, Info(
            moved,
            is_done=reason == FINISHED,
            is_unbounded=reason == UNBOUNDED,
            is_divergent=reason == DIVERGED,
        )


@dataclass(frozen=True)
class GradientAscent(OneAtATime):
    """Table 7.1: each point in turn moves along its own gradient, clipped to the box.  One iteration is one such move.

    The default ``rate``, 1 / K_ii (of K + ridge), maximises exactly over each coefficient: Hildreth's method.  On the hard
    margin that is the kernel-Adatron (Remark 7.5).  A number is the same rate for every point; above 2 / K_ii the dual
    objective may fall, and a run where it does ends as DIVERGED.

    ``order`` is "sequential"; "free-first", which passes over the points off their bounds until these are quiet, then over
    all; or "ranked", the same with the nonzero coefficients in ascending size (Remark 7.8).
    """

    rate: float | None = None
    order: str = "sequential"

    def __post_init__(self) -> None:
        validation.check_choice("order", self.order, ORDERS)
        if self.rate is not None:
            validation.check_positive("rate", self.rate, advice="Leave it out for 1 / K_ii, each point's own.")

    def _rates(self, diagonal: np.ndarray) -> np.ndarray:
        return 1.0 / np.maximum(diagonal, SMALLEST) if self.rate is None else np.full(diagonal.size, float(self.rate))

    def __str__(self) -> str:
        return "gradient-ascent"


@dataclass(frozen=True)
class SOR(OneAtATime):
    """Successive over-relaxation (Remark 7.6): gradient ascent with rates ``omega`` / K_ii, 0 < omega < 2.

    At 1 it is gradient ascent itself.  Above 1 every step overshoots the best value of its coefficient, which still climbs,
    and gains where neighbouring points move the same way.  ``order`` is that of GradientAscent.
    """

    omega: float = 1.3
    order: str = "sequential"

    def __post_init__(self) -> None:
        validation.check_choice("order", self.order, ORDERS)
        advice = "From 2 on the dual objective does not climb."
        if validation.check_positive("omega", self.omega, advice=advice) >= 2:
            raise ValueError(f"omega must be above 0 and below 2; got omega={self.omega!r}. {advice}")

    def _rates(self, diagonal: np.ndarray) -> np.ndarray:
        return self.omega / np.maximum(diagonal, SMALLEST)

    def __str__(self) -> str:
        return "sor"


def _rows_ahead(problem: DualProblem, state: PairState) -> np.ndarray:
    """The row wanted now and those wanted next: of points further on in the pass that break their conditions."""
    order, _, integers, _ = state.memory
    coming = order[integers[POSITION] : integers[LENGTH]]
    violations = np.maximum(state.residual + state.up_offset, -state.residual - state.low_offset)[coming]
    violations[0] = HUGE
    return coming[(violations > 0) & ~problem.gram.has_rows(coming)][:ROWS_AT_ONCE]


def _step_back(problem: DualProblem, state: PairState) -> None:
    """Return to where the pass began that lost ground: the best point so far."""
    with limits.unlimited():  # the point and its residual change together
        residual = problem.residual(state.memory.before)
    state.beta[:], state.residual[:] = state.memory.before, residual
    state.up_offset[:], state.low_offset[:] = problem.up_offset(state.beta), problem.low_offset(state.beta)


@jit
def _ascend(problem, point, cache, rates, this_pass, heuristic, max_moves, kkt_target):
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
        if work >= compiled_loops.WORK_PER_QUESTION:
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
            continue
        k = order[integers[POSITION]]
        new = _ascent(beta[k], residual[k], rates[k], eps, lower[k], upper[k])
        if new == beta[k]:
            integers[POSITION] += 1
            integers[VISITS] += 1
            continue
        if not has_row(cache, k):
            return NEEDS_ROW, moved
        if abs(new) > LARGEST:
            return (DIVERGED if rates[k] * (diagonal[k] + ridge[k]) >= 2.0 else UNBOUNDED), moved
        work += beta.size
        numbers[PASS_VIOLATION] = max(numbers[PASS_VIOLATION], residual[k] + up_offset[k], -residual[k] - low_offset[k])
        step = new - beta[k]
        numbers[GAIN] += step * (residual[k] - 0.5 * (diagonal[k] + ridge[k]) * step) - eps * (abs(new) - abs(beta[k]))
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


@jit
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
    numbers[VIOLATION] = max(b_up, 0.0) - min(b_low, 0.0)
    integers[EXAMINE_ALL] = 1 if heuristic == SEQUENTIAL else 0
    if changed == 0:
        return FINISHED
    return QUIET if numbers[VIOLATION] <= kkt_target else SPENT


@jit
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
    numbers[GAIN] = numbers[PASS_VIOLATION] = 0.0
