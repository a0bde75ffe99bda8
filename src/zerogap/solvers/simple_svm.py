"""SimpleSVM (ssvm): a set of candidate support vectors, grown by greedy violators and pruned of those that block them.

Symbols: S, the candidates, here the free points; c, the violator that enters; g = y f - 1, in signed form y (bias - r).
The paper keeps R, the inverse of the bordered matrix of S, by rank-one updates (9); we keep a Cholesky factor, which does not
lose digits as points come and go.  The move is the same: along (6)-(7) by (8), or until a candidate's coefficient meets
its bound; that candidate is pruned, and c tried again (§II-C).

The paper keeps no kernel values: a point that is looked at takes |S| of them, each attempt of c to enter |S| + 1, also after a
candidate was pruned.  So we count them, in the state, whatever is kept; its tables agree to the last digit.  Kernel rows of
the candidates, which we keep as far as memory goes, are n |S| numbers; without them (``keep_rows=False``) the factor, |S|²
numbers, is the largest there is (§II-E).

The paper has the quadratic penalty alone.  With a 1-norm box a candidate can also leave for its cap, and with a hard margin the
move may never end, which shows that no margin exists.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from zerogap import limits, validation
from zerogap.active_set import ActiveSet, violation_of
from zerogap.compiled import NO_POINT, jit
from zerogap.gram import Gram, has_row, kernel_value, row_of
from zerogap.problem import DualProblem, ProblemArrays, arrays_of
from zerogap.solvers import compiled_loops
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import LARGEST

WORK_PER_STEP = 600_000_000  # multiplications after which a step comes back, so that Ctrl-C and time limits are seen
ROWS_AT_ONCE = 16  # kernel rows computed together where not all can be kept
DISTANCES_AT_ONCE = 4_000_000  # between two questions whether the limit is over


POSITION, EVALUATIONS = range(2)  # places in a state's counters


class SimpleState(NamedTuple):
    """The candidates, and where the scan for violators stands; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point, that of ``active``
    residual: np.ndarray  # (n,) in step with beta between two calls of ``step``
    active: ActiveSet | None  # None once it has gone wrong, as an indefinite kernel may make it
    counters: np.ndarray  # (2,) next point to scan, kernel values asked for

    @property
    def evaluations(self) -> int:
        """Kernel values that the algorithm has asked for, repeats included, as the paper counts them."""
        return int(self.counters[EVALUATIONS])


class ActiveArrays(NamedTuple):
    """The arrays of an active set, for compiled code; a scan updates the residual in place."""

    beta: np.ndarray  # (n,)
    residual: np.ndarray  # (n,)
    side: np.ndarray  # (n,) zero for points that are not free


@dataclass(frozen=True)
class SimpleSVM:
    """Grow and prune a set of candidate support vectors (Algorithm 1 of ssvm), for every formulation.

    ``choice`` is "greedy", the first violator met while scanning the points in turn, as in the paper, or "worst", the largest
    among all.  ``tolerance`` is what counts as a violation at first; it is tightened when the stopping rule asks for more.
    Without ``keep_rows`` kernel values are computed as they are needed, one point with the candidates at a time, and memory
    is the square of the number of candidates, besides what ``gram`` may keep of its own (its ``cache_size``).  The residuals
    of all points are then computed anew at the end of every step, after a limit too.
    An iteration is a violator that enters.

    Attributes
    ----------
    choice : str
        "greedy" or "worst".
    tolerance : float
        The violation that is let pass at first.
    keep_rows : bool
        Whether kernel rows are kept.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import SimpleSVM
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, SimpleSVM("worst")).status.name
    'CONVERGED'
    """

    choice: str = "greedy"
    tolerance: float = 1e-3
    keep_rows: bool = True
    patience = 0.1  # an iteration does far more than a pair's

    def __post_init__(self) -> None:
        validation.check_choice("choice", self.choice, ("greedy", "worst"))
        validation.check_positive("tolerance", self.tolerance, advice="It is the violation that is let pass at first.")
        if self.choice == "worst" and not self.keep_rows:
            raise ValueError("choice='worst' looks at all points at once, by their kernel rows; got keep_rows=False.")

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> SimpleState:
        """Start at beta, or with the closest pair of opposite classes (§II-A)."""
        start = problem.feasible_start() if beta is None else np.array(beta, dtype=np.float64)
        active = ActiveSet(problem, start.copy(), keep_rows=self.keep_rows)
        counters = np.zeros(2, dtype=np.int64)
        if beta is None and _has_classes(problem):
            i, j = _closest_pair(problem)
            active.free_alone(problem, i, rises=True)
            active.enter(problem, j)
            active.refresh(problem)
            counters[EVALUATIONS] = 3  # of the pair
        state = SimpleState(active.beta, active.residual, active, counters)
        if problem.gram.kernel.is_positive:
            return state
        residual = problem.residual(start)
        is_wrong = _has_gone_wrong(problem, active, problem.objective(start, residual))
        return _back_to(state, start, residual) if is_wrong else state

    def step(
        self, problem: DualProblem, state: SimpleState, max_steps: int, kkt_target: float
    ) -> tuple[SimpleState, Info]:
        """Let up to ``max_steps`` violators enter, or until no point breaks its condition by more than ``kkt_target`` / 2."""
        active, before = state.active, state.beta.copy()
        objective = problem.objective(before, state.residual)
        if active is None:
            return state, Info(0, is_done=True)
        active.synced[:] = active.beta  # the loop may have restored the sum, and computed the residual anew
        active.refine(problem)
        smallest = 4.0 * problem.rounding(active.beta)
        tolerance = max(min(self.tolerance, 0.5 * kkt_target), smallest)
        entered, is_quiet = self._exchange(problem, state, active, max_steps, tolerance)
        _bring_into_step(problem, active, is_quiet)
        if _has_gone_wrong(problem, active, objective):
            with limits.unlimited():
                return _back_to(state, before, problem.residual(before)), Info(entered, is_done=True)
        if active.is_unbounded and not problem.is_hard:  # the ridge bounds the dual: it was lost to rounding
            is_quiet, tolerance = True, smallest
        is_done = is_quiet and tolerance == smallest
        is_unbounded = active.is_unbounded and problem.is_hard
        return state, Info(entered, is_done=is_done, is_unbounded=is_unbounded)

    def _exchange(
        self, problem: DualProblem, state: SimpleState, active: ActiveSet, max_steps: int, tolerance: float
    ) -> tuple[int, bool]:
        """Let violators enter, one after the other; return how many did, and whether none is left."""
        arrays = arrays_of(problem), ActiveArrays(active.beta, active.residual, active.side)
        max_idle = 2 * problem.n + 100
        entered, idle, work = 0, 0, 0
        while entered < max_steps and work < WORK_PER_STEP and not active.is_unbounded and not limits.is_over():
            try:
                i, cost = self._violator(problem, state, arrays, tolerance)
                work += cost
                if limits.is_over():
                    break
                if i == NO_POINT or idle > max_idle:  # no violator, or the exchanges cycle
                    return entered, True
                asked = active.asked
                idle = 0 if active.enter(problem, i) else idle + 1
            except limits.Exceeded:  # coefficients may have moved: ``step`` has yet to bring the residual into step
                break
            state.counters[EVALUATIONS] += active.asked - asked
            entered, work = entered + 1, work + 2 * active.free.size**2
        return entered, False

    def _violator(
        self, problem: DualProblem, state: SimpleState, arrays: tuple[ProblemArrays, ActiveArrays], tolerance: float
    ) -> tuple[int, int]:
        """Return a point that violates its condition, or NO_POINT, and the work it took to find it."""
        active, n = state.active, problem.n
        assert active is not None
        has_no_free_point = not active.free.size and problem.total is not None
        if self.choice == "worst" or has_no_free_point:
            active.sync(problem)
            support = np.count_nonzero(active.beta)
            state.counters[EVALUATIONS] += (n - support) * support
            return active.worst(problem, np.full(n, tolerance)), n * max(1, active.free.size)
        if not self.keep_rows:
            return _next_by_values(problem, state, active, tolerance)
        return _next_violator(problem, state, arrays, tolerance)

    def __str__(self) -> str:
        return "simple-svm" if self.choice == "greedy" else "simple-svm-worst"


def _bring_into_step(problem: DualProblem, active: ActiveSet, is_quiet: bool) -> None:
    """Compute the residual of all points: the scan knows those of the points it has met.  This has to be finished."""
    with limits.unlimited():
        active.refresh(problem)
        if is_quiet and active.refine(problem):
            active.refresh(problem)


# The factor is that of a positive definite matrix.  Where the kernel has none, moves may lead uphill, off the box or nowhere.


def _has_gone_wrong(problem: DualProblem, active: ActiveSet, before: float) -> bool:
    """Whether the point is infeasible, or its objective above that before: an inner product allows neither of them."""
    beta, n = active.beta, problem.n
    if not (np.abs(beta) <= LARGEST).all() or (beta < problem.lower).any() or (beta > problem.upper).any():
        return True
    size = float(np.abs(beta).sum())
    if problem.total is not None and abs(float(beta.sum()) - problem.total) > 1e-12 * n * size:
        return True
    noise = 1e-14 * n * size * (float(np.abs(problem.target).max()) + float(np.abs(active.residual).max()))
    return problem.objective(beta, active.residual) > before + noise


def _back_to(state: SimpleState, beta: np.ndarray, residual: np.ndarray) -> SimpleState:
    """Return to the last point that was in order, and give up."""
    state.beta[:], state.residual[:] = beta, residual
    return state._replace(active=None)


# The start.


def _has_classes(problem: DualProblem) -> bool:
    """Whether there are points that can only rise and points that can only fall, and a bias to balance them."""
    rising, falling = problem.upper > 0, problem.lower < 0
    one_sided = not (rising & falling).any()
    return problem.total == 0 and one_sided and bool(rising.any()) and bool(falling.any())


def _closest_pair(problem: DualProblem) -> tuple[int, int]:
    """Return the closest points of opposite classes in feature space.

    A radial kernel falls with the distance, so for it they are the closest in input space, and no kernel value is needed.
    """
    rising, falling = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
    gram, is_radial = problem.gram, problem.gram.kernel.is_radial
    is_swapped = not is_radial and rising.size > falling.size  # the fewer rows the better
    few, many = (falling, rising) if is_swapped else (rising, falling)
    best, closest = np.inf, (int(few[0]), int(many[0]))
    at_once = max(1, DISTANCES_AT_ONCE // many.size) if is_radial else ROWS_AT_ONCE
    for start in range(0, few.size, at_once):
        if limits.is_over():  # any pair will do
            break
        chunk = few[start : start + at_once]
        a, b, distance = _nearest(gram, chunk, many, is_radial)
        if distance < best:
            best, closest = distance, (int(chunk[a]), int(many[b]))
    return closest[::-1] if is_swapped else closest


def _nearest(gram: Gram, few: np.ndarray, many: np.ndarray, is_radial: bool) -> tuple[int, int, float]:
    """Return which of the few is closest to which of the many, and how close: a number to compare."""
    if is_radial:
        nearest, distance = pairwise_distances_argmin_min(gram.X[few], gram.X[many])
        a = int(np.argmin(distance))
        return a, int(nearest[a]), float(distance[a])
    if gram.holds_all:
        gram.fetch(few)  # they will most likely be wanted again
    squared_distance = gram.diagonal[few][:, None] + gram.diagonal[many] - 2.0 * gram.block(few)[:, many]
    a, b = divmod(int(np.argmin(squared_distance)), many.size)
    return a, b, float(squared_distance[a, b])


# The scan.


def _next_violator(
    problem: DualProblem, state: SimpleState, arrays: tuple[ProblemArrays, ActiveArrays], tolerance: float
) -> tuple[int, int]:
    """Scan from where the last scan stopped; residuals are computed for the points met, from the candidates' rows.

    Where not all rows can be kept those of the points met are fetched instead.  NO_POINT is returned when a limit is over.
    """
    gram, active, n = problem.gram, state.active, problem.n
    assert active is not None
    support = np.flatnonzero(active.beta)
    by_own_row = not gram.holds_all
    if not by_own_row and not compiled_loops.fetch(gram, support):
        return NO_POINT, 0
    scanned, points_per_call = 0, max(1, limits.WORK_PER_QUESTION // max(1, support.size))
    while scanned < n and not (scanned and limits.is_over()):
        max_points = min(points_per_call, n - scanned)
        violator, count, needs_row = _scan(
            *arrays, active.bias, gram.cache(), support, by_own_row, tolerance, state.counters, max_points
        )
        scanned += count
        if needs_row:
            ahead = (state.counters[POSITION] + np.arange(min(ROWS_AT_ONCE, n))) % n
            if not compiled_loops.fetch(gram, ahead[active.side[ahead] == 0]):
                break
        elif violator != NO_POINT:
            return violator, scanned * support.size
    return NO_POINT, scanned * support.size


def _next_by_values(problem: DualProblem, state: SimpleState, active: ActiveSet, tolerance: float) -> tuple[int, int]:
    """Do as ``_next_violator`` does, with the kernel values of one point after the other."""
    support, counters, n, work = np.flatnonzero(active.beta), state.counters, problem.n, 0
    coefficients = active.beta[support]
    for scanned in range(n):
        if scanned and limits.is_over():
            break
        i = int(counters[POSITION])
        counters[POSITION] = (i + 1) % n
        if active.side[i]:
            continue
        counters[EVALUATIONS] += support.size
        work += support.size * (1 + problem.gram.X.shape[1])
        f = float(problem.gram.values(i, support) @ coefficients)
        active.residual[i] = problem.target[i] - f - problem.ridge[i] * active.beta[i]
        r, bounds = active.residual[i] - active.bias, (problem.lower[i], problem.upper[i])
        if violation_of(active.beta[i], r, *bounds, problem.eps) > tolerance:
            return i, work
    return NO_POINT, work


@jit
def _scan(problem, active, bias, cache, support, by_own_row, tolerance, counters, max_points):
    """Compute residuals of points in turn; return (violator or NO_POINT, points scanned, whether a row is missing)."""
    beta, residual, side = active
    n = beta.size
    for scanned in range(max_points):
        i = counters[POSITION]
        if side[i] == 0:
            if by_own_row and not has_row(cache, i):
                return NO_POINT, scanned, True
            counters[EVALUATIONS] += support.size
            f = 0.0
            if by_own_row:
                row = row_of(cache, i)
                for k in support:
                    f += row[k] * beta[k]
            else:
                for k in support:
                    f += kernel_value(cache, k, i) * beta[k]
            residual[i] = problem.target[i] - f - problem.ridge[i] * beta[i]
            r = residual[i] - bias
            if violation_of(beta[i], r, problem.lower[i], problem.upper[i], problem.eps) > tolerance:
                counters[POSITION] = (i + 1) % n
                return i, scanned + 1, False
        counters[POSITION] = (i + 1) % n
    return NO_POINT, max_points, False
