"""Gradient ascent with a free bias: the sum of the coefficients is kept in a strip that narrows (chapter7 §7.2).

In pass t every point moves as in Table 7.1, and no further than  |sum(beta) - total| <= zeta_t  allows.  What the chapter
leaves open: the gradient is that of the Lagrangian, r - b, with b the mean over the free points at the beginning of the
pass, the middle of b_up and b_low if there are none (with b = 0 all points soon push the sum to the same edge); a sum
outside the strip that has narrowed is drawn inside, part of the way to the point that ``DualProblem.feasible`` makes of it.

The loop wants points with the right sum: the state shows the best one that was found, the strip's point is beside it.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import compiled_loops, passes
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import FINISHED, NEEDS_ROW, PAUSED, UNBOUNDED
from zerogap.solvers.pair import PairState
from zerogap.solvers.passes import BIAS, DIVERGED, ORDERS, PASSES, ROOM_DOWN, ROOM_UP, TURN, Pass

if TYPE_CHECKING:
    from zerogap.solvers.gradient_ascent import GradientAscent

NARROW = 1e-15  # of the sum of |beta|: a strip this narrow is none
PASSES_PER_STEP = 1000  # those in which nothing moves count for nothing else


class StripState(NamedTuple):
    """The best point with the right sum, and the point within the strip."""

    beta: np.ndarray  # (n,)
    residual: np.ndarray  # (n,)
    inside: PairState  # its memory is a Pass

    @property
    def memory(self) -> Pass:
        """The pass the strip's point is in."""
        return self.inside.memory


def init(solver: "GradientAscent", problem: DualProblem, beta: np.ndarray | None) -> StripState:
    """Start at beta, or at the problem's own start, with a full pass."""
    if problem.total is None:
        raise ValueError(
            "strip is for a free bias, which fixes the sum of the coefficients; with a fixed bias nothing does: leave it out."
        )
    inside = passes.begin(problem, beta, by_pass=True)
    solver.rates(inside)  # says what is wrong with them
    state = StripState(inside.beta.copy(), inside.residual.copy(), inside)
    _enter(solver, problem, inside)
    return state


def step(
    solver: "GradientAscent", problem: DualProblem, state: StripState, max_steps: int, kkt_target: float
) -> tuple[StripState, Info]:
    """Make up to ``max_steps`` moves, or until after a full pass the violation is at most ``kkt_target``."""
    inside, gram, arrays = state.inside, problem.gram, arrays_of(problem)
    inside.residual[:] = problem.residual(inside.beta)  # of this point the loop knows nothing
    rates, heuristic, moved, is_done = solver.rates(inside), ORDERS.index(solver.order), 0, False
    last_pass = inside.memory.integers[PASSES] + PASSES_PER_STEP
    while True:
        reason, count = passes.ascend(
            arrays, inside.iterate, gram.cache(), rates, inside.memory, heuristic, max_steps - moved, kkt_target
        )
        moved += count
        if reason == NEEDS_ROW and compiled_loops.fetch(gram, passes.rows_ahead(problem, inside)):
            continue
        if reason in (TURN, FINISHED):
            was_moved = _enter(solver, problem, inside)
            moved += was_moved
            rates = solver.rates(inside)
            is_done = reason == FINISHED and not was_moved and not _narrows(solver, inside)
            if (
                not is_done
                and moved < max_steps
                and inside.memory.integers[PASSES] < last_pass
                and not limits.is_over()
            ):
                continue
        if reason != PAUSED or limits.is_over():
            break
    if reason == DIVERGED:
        passes.step_back(problem, inside)
    _restore(problem, state)
    return state, Info(
        moved,
        is_done=is_done,
        is_own_rule=is_done,
        is_unbounded=reason == UNBOUNDED,
        is_divergent=reason == DIVERGED,
    )


def _zeta(solver: "GradientAscent", when: int) -> float:
    """Return zeta_t, which must be a number and not above that of the pass before."""
    if not callable(solver.strip):
        return float(solver.strip) / (when + 1)  # type: ignore[arg-type]
    zeta = validation.check_positive(f"strip({when})", solver.strip(when), zero=True)
    if when and zeta > solver.strip(when - 1):
        raise ValueError(f"strip must not grow from pass to pass; got {zeta!r} in pass {when}.")
    return zeta


def _narrows(solver: "GradientAscent", inside: PairState) -> bool:
    """Whether the strip still becomes narrower, by more than rounding."""
    when = int(inside.memory.integers[PASSES])
    zeta = _zeta(solver, when)
    return NARROW * float(np.abs(inside.beta).sum()) < zeta and zeta < _zeta(solver, max(when - 1, 0))


def _enter(solver: "GradientAscent", problem: DualProblem, inside: PairState) -> bool:
    """Draw the point into the strip of the pass that begins, and set its bias; return whether the point was moved."""
    integers, numbers = inside.memory.integers, inside.memory.numbers
    zeta, off = _zeta(solver, int(integers[PASSES])), problem.excess(inside.beta)
    was_moved = abs(off) > zeta + NARROW * float(np.abs(inside.beta).sum())
    if was_moved:
        right = problem.feasible(inside.beta)
        new = inside.beta + (1.0 - zeta / abs(off)) * (right - inside.beta)
        new = np.clip(new, problem.lower, problem.upper)
        change = new - inside.beta
        inside.residual[:] -= problem.gram.dot(change) + problem.ridge * change
        inside.beta[:] = new
        inside.up_offset[:], inside.low_offset[:] = problem.up_offset(new), problem.low_offset(new)
        inside.memory.before[:] = new
        off = problem.excess(new)
    numbers[ROOM_UP], numbers[ROOM_DOWN] = max(zeta - off, 0.0), max(zeta + off, 0.0)
    is_free = (problem.lower < inside.beta) & (inside.beta < problem.upper) & ((inside.beta != 0) | (problem.eps == 0))
    ends = problem.bias_interval(inside.beta, inside.residual)
    q = (inside.residual + inside.up_offset)[is_free]
    numbers[BIAS] = float(q.mean()) if q.size else 0.5 * sum(ends)
    return was_moved


def _restore(problem: DualProblem, state: StripState) -> None:
    """Give the strip's point the right sum; keep it if it is the best so far."""
    beta = problem.feasible(state.inside.beta)
    residual = problem.residual(beta)
    if problem.objective(beta, residual) < problem.objective(state.beta, state.residual):
        state.beta[:], state.residual[:] = beta, residual
