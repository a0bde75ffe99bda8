"""Chunking and decomposition: the whole problem by way of small ones (chapter7 §7.4, Table 7.2).

Symbols: working set = the points that may move, S^ in Table 7.2; r = t - (K + diag(ridge)) beta; b_up, b_low = largest r of
points that can rise and smallest r of points that can fall, each less eps times the sign of the side it moves to, so that
b_up - b_low is the KKT violation.

The points outside the working set keep their coefficients, and all they do is shift the target of those inside
(``DualProblem.restricted``), so the subproblem is a DualProblem like any other and every solver can do it.  Its solution goes
back into beta, the residuals of all n points follow, and the next working set is chosen.  It always holds the most violating
pair, so every set gains.

Memory: the sub-Gram has the whole budget; rows of the full matrix are computed where a coefficient has changed, and not kept.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.gram import Gram
from zerogap.problem import DualProblem
from zerogap.solvers.base import Info
from zerogap.solvers.registry import get_solver

RULES = ("violation", "gap")

# A subproblem is solved to this share of the violation that chose it: more would be undone by the next.
SUBPROBLEM_SHARE = 0.1

# A subproblem is left as it is after so many iterations for each of its points, but not before the second number.  SMO takes
# fewer than ten for each as a rule: with a hundred it crawls, and another set may gain faster.  What it has reached is kept.
# In a small set iterations cost next to nothing, and ten thousand are soon made.
ITERATIONS_PER_POINT, MIN_ITERATIONS = 100, 10_000


class Subproblem(NamedTuple):
    """The problem of the working set alone, and how far its solver is."""

    points: np.ndarray  # its own among all
    problem: DualProblem
    state: Any
    kkt_target: float  # violation at which it counts as solved


class Pending(NamedTuple):
    """Coefficients that a subproblem has reached, and that are not yet among the others."""

    points: np.ndarray
    beta: np.ndarray


class WorkingSet:
    """The points last worked on, their Gram matrix, and their subproblem while it is not solved."""

    def __init__(self, points: np.ndarray | None = None) -> None:
        self.points = np.empty(0, dtype=np.int64) if points is None else points
        self.gram: Gram | None = None
        self.subproblem: Subproblem | None = None
        self.iterations = 0  # spent on it
        self.count = 0  # sets so far
        self.pending: Pending | None = None  # what it has reached, if a limit came before that was put back

    def __deepcopy__(self, memo: dict[int, object]) -> "WorkingSet":
        # A copy chooses afresh: what the subproblem has reached is in beta already, or waits to be put there.
        copied = WorkingSet(self.points.copy())
        copied.count, copied.pending = self.count, copy.deepcopy(self.pending, memo)
        return copied


class WorkingState(NamedTuple):
    """What the next working set needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) r, kept up to date with beta
    working_set: WorkingSet


class WorkingSetMethod:
    """Table 7.2, but for the choice of the working set.  One iteration is one of the inner solver's."""

    inner: Any
    rule: str

    def _choose(self, problem: DualProblem, state: WorkingState) -> np.ndarray:
        raise NotImplementedError

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> WorkingState:
        """Start at beta, or at zero."""
        beta = problem.feasible_start() if beta is None else np.array(beta, dtype=np.float64)
        state = WorkingState(beta, problem.residual(beta), WorkingSet())
        # What the inner solver cannot do it says here, on two points, rather than in the middle of a run.
        _open(problem, copy.deepcopy(state), np.arange(min(2, problem.n)), get_solver(self.inner), 0.0)
        return state

    def step(
        self, problem: DualProblem, state: WorkingState, max_steps: int, kkt_target: float
    ) -> tuple[WorkingState, Info]:
        """Work on one set for up to ``max_steps`` iterations; choose it first, if the last one is solved."""
        inner, working_set = get_solver(self.inner), state.working_set
        if not _write_back(problem, state):
            return state, Info(0)
        if working_set.subproblem is not None:  # the last step ended before it was solved: by max_steps, or by a limit
            info = _work(problem, state, working_set.subproblem, inner, max_steps)
            if info.iterations or limits.is_over():
                return state, info
            # Nothing moved: it was solved after all.
        b_up, b_low = problem.bias_interval(state.beta, state.residual)
        if b_up - b_low <= kkt_target:
            return state, Info(0, is_done=b_up <= b_low)
        points = self._choose(problem, state)
        # Half of what is asked for: at the target itself what rounding adds would have the same set chosen again.
        try:
            subproblem = _open(problem, state, points, inner, max(SUBPROBLEM_SHARE * (b_up - b_low), 0.5 * kkt_target))
        except limits.Exceeded:  # nothing has moved
            return state, Info(0)
        working_set.iterations, working_set.count = 0, working_set.count + 1
        return state, _work(problem, state, subproblem, inner, max_steps)


@dataclass(frozen=True)
class Chunking(WorkingSetMethod):
    """Chunking: the present support vectors and the ``chunk_size`` points (M in chapter7) that violate most.

    The working set grows to all support vectors and sheds those that cease to be.  It suits problems with few of them.

    Attributes
    ----------
    chunk_size : int
        Points that join the support vectors, half of them from each side of the bias; 2000 by default.
    inner : str or Solver
        The solver of the subproblems, by name or configured; "smo" by default.
    rule : str
        What "most" means: the KKT "violation", the default, or the share in the duality "gap" (Remark 7.2).

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import Chunking
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, Chunking(chunk_size=2)).status.name
    'CONVERGED'
    """

    chunk_size: int = 2000
    inner: Any = "smo"
    rule: str = "violation"

    def __post_init__(self) -> None:
        _check(self.rule, "chunk_size", self.chunk_size)

    def _choose(self, problem: DualProblem, state: WorkingState) -> np.ndarray:
        return np.union1d(np.flatnonzero(state.beta), _most_violating(problem, state, self.chunk_size, self.rule))

    def __str__(self) -> str:
        return "chunking"


@dataclass(frozen=True)
class Decomposition(WorkingSetMethod):
    """Decomposition: a working set of ``size`` points, however many support vectors there are.

    Of these points ``size`` - ``kept`` are those that violate most, as SVM-Light chooses them (Joachims, 1999); the others stay
    from the last set, free points first, lest pairs of sets undo each other's work.

    Attributes
    ----------
    size : int
        Points in the working set, q of SVM-Light; 2000 by default.
    inner : str or Solver
        The solver of the subproblems, by name or configured; "smo" by default.
    rule : str
        What "most" means: the KKT "violation", the default, or the share in the duality "gap" (Remark 7.2).
    kept : int or None
        Points that stay from the last set; None, the default, is half of ``size``.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import Decomposition
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, Decomposition(size=2)).status.name
    'CONVERGED'
    """

    size: int = 2000
    inner: Any = "smo"
    rule: str = "violation"
    kept: int | None = None

    def __post_init__(self) -> None:
        _check(self.rule, "size", self.size)
        if self.kept is not None and not 0 <= self.kept <= self.size - 2:
            raise ValueError(
                f"kept must be at least 0 and at most size - 2, to leave room for a new pair; got kept={self.kept!r} with "
                f"size={self.size}."
            )

    def _choose(self, problem: DualProblem, state: WorkingState) -> np.ndarray:
        if problem.n <= self.size:
            return np.arange(problem.n)
        kept = min(self.size // 2, self.size - 2) if self.kept is None else self.kept
        kept = min(kept, state.working_set.points.size)
        wanted = _most_violating(problem, state, self.size - kept, self.rule)
        old = np.setdiff1d(state.working_set.points, wanted)
        free = (problem.lower < state.beta) & (state.beta < problem.upper) & (state.beta != 0)
        old = old[np.argsort(~free[old], kind="stable")]
        return np.union1d(wanted, old[: self.size - wanted.size])

    def __str__(self) -> str:
        return "decomposition"


def _check(rule: str, name: str, size: Any) -> None:
    validation.check_choice("rule", rule, RULES)
    if not isinstance(size, int | np.integer) or size < 2:
        raise ValueError(f"{name} must be a whole number of points, at least 2; got {name}={size!r}.")


# The choice of points.


def _most_violating(problem: DualProblem, state: WorkingState, count: int, rule: str) -> np.ndarray:
    """Return up to so many points that violate most, the most violating pair among them."""
    beta, residual = state.beta, state.residual
    below, above = residual + problem.up_offset(beta), residual + problem.low_offset(beta)
    top, bottom = below.argmax(), above.argmin()  # the most violating pair
    # The first set is arbitrary, as Table 7.2 has it.  At beta = 0 all points of a class violate alike, and in regression those
    # with the largest targets most: the first in order, or the extremes alone, would say little of the rest.  The seed is
    # fixed, since it is only there to mix the points: the optimum does not depend on it.
    if not beta.any():
        sample = np.random.default_rng(0).permutation(problem.n)
        return np.union1d([top, bottom], sample[: count - 2])
    if rule == "gap":
        shares, bias = _shares(problem, beta, residual)
        rising, falling = np.where(below > bias, shares, 0.0), np.where(above < bias, shares, 0.0)
        rising[top] = falling[bottom] = np.inf
        threshold_up = threshold_down = 0.0
    else:
        b_up, b_low = problem.bias_interval(beta, residual)
        rising, falling, threshold_up, threshold_down = below, -above, b_low, -b_up
    half = count // 2
    return np.union1d(_largest(rising, half, threshold_up), _largest(falling, count - half, threshold_down))


def _largest(values: np.ndarray, count: int, threshold: float) -> np.ndarray:
    """Return the indices of so many largest values, of those above the threshold."""
    indices = np.argpartition(values, -count)[-count:] if count < values.size else np.arange(values.size)
    return indices[values[indices] > threshold]


def _shares(problem: DualProblem, beta: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, float]:
    """Return what each point adds to the duality gap, and the bias; a hard margin gets the box max(alpha) + 1 (§7.1)."""
    if problem.is_hard:
        cap = np.abs(beta).max() + 1.0
        problem = replace(problem, lower=np.maximum(problem.lower, -cap), upper=np.minimum(problem.upper, cap))
    r = residual + problem.ridge * beta
    bias = problem.best_bias(r)
    return problem.gap_shares(beta, r - bias), bias


# The subproblem.


def _open(problem: DualProblem, state: WorkingState, points: np.ndarray, inner: Any, kkt_target: float) -> Subproblem:
    """Set up the problem of some points, the others staying where they are."""
    gram = _gram_of(problem, state.working_set, points)
    part = problem.restricted(points, state.beta, residual=state.residual, gram=gram)
    return Subproblem(points, part, inner.init(part, state.beta[points]), kkt_target)


def _gram_of(problem: DualProblem, working_set: WorkingSet, points: np.ndarray) -> Gram:
    """Return the Gram matrix of some points: the last one, if these are the points it was made for."""
    if working_set.gram is None or not np.array_equal(points, working_set.points):
        working_set.gram = None  # its memory goes to the next
        working_set.gram = problem.gram.subset(points)
    working_set.points = points
    return working_set.gram


def _work(problem: DualProblem, state: WorkingState, subproblem: Subproblem, inner: Any, max_steps: int) -> Info:
    """Go on with the subproblem, put back what it has reached, and close it if it is solved."""
    working_set = state.working_set
    points, part, part_state, kkt_target = subproblem
    part_state, info = inner.step(part, part_state, max_steps, kkt_target)
    if not info.iterations and not np.array_equal(part_state.beta, state.beta[points]):
        b_up, b_low = part.bias_interval(part_state.beta, part_state.residual)
        if b_up - b_low <= kkt_target:  # the inner solver's start was enough, as that of exchanges may be
            info = replace(info, iterations=1)
    working_set.iterations += info.iterations
    working_set.pending = Pending(points, part_state.beta.copy())
    _write_back(problem, state)
    is_over = info.iterations < max_steps or working_set.iterations >= max(
        MIN_ITERATIONS, ITERATIONS_PER_POINT * part.n
    )
    working_set.subproblem = subproblem._replace(state=part_state) if not is_over or limits.is_over() else None
    is_stuck = working_set.iterations == 0 and not limits.is_over()  # it would be chosen again
    return replace(info, is_done=is_stuck, is_own_rule=is_stuck and info.is_own_rule)


def _write_back(problem: DualProblem, state: WorkingState) -> bool:
    """Give the working set its pending coefficients, and all their residuals; return False if a limit came first."""
    working_set, change = state.working_set, np.zeros(problem.n)
    if working_set.pending is None:
        return True
    points, beta = working_set.pending
    change[points] = beta - state.beta[points]
    try:
        product = problem.gram.dot(change)
    except limits.Exceeded:
        return False
    state.residual[:] -= product + problem.ridge * change
    state.beta[points] = beta
    working_set.pending = None
    return True
