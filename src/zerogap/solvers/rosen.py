"""Rosen's gradient projection for the SVM dual, in closed form (lopez), its steps conjugate within a face.

The paper's formulas in signed coefficients, beta_i = y_i alpha_i, where -y_i times its gradient is the residual
r = t - (K + diag(ridge)) beta and every factor y_i y_j is gone:

    J           free points: off their bounds and, where eps kinks |beta| at zero, off zero
    q = r - eps sign(beta), minus the gradient of D;  a point at zero has two, one for either way it may go
    m           mean of q over J: the projection P takes it off, since directions must sum to zero; 0 with a fixed bias.
                Where J is empty, and (4) would divide by zero, the middle between b_up and b_low: both ends then violate alike
    d = q - m   on J, zero elsewhere                                                          (the projection P of section 3)
    u = m - q   for a point at a bound it could leave by rising, q - m by falling             (4)
    d^ = q - m^ on J and the points p^ whose constraints are dropped, m^ the mean over them   (5)
    s           direction of a step: d or, on a face where one was made before, d + ratio s_last, the conjugate gradient of
                Fletcher and Reeves (1964), ratio = |d|² / |d_last|²
    lambda' = s'q / s'(K + diag(ridge)) s, clipped at the first bound or kink on the way      (lambda* of section 3, there of d)

What the paper leaves to further work is here: the kernel rows of the working set are kept, and passes alternate as Platt's do.
A type I pass iterates on the working set alone, with the residual of its points alone, and at its end updates that of all
points; a type II pass then computes all multipliers (pricing), and drops constraints.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.compiled import NO_POINT, jit, jit_sums
from zerogap.problem import DualProblem
from zerogap.solvers import compiled_loops
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import LARGEST, PAUSED, QUIET, SPENT, UNBOUNDED, land

STARTS = ("zero", "pair", "interior")
DROPS = ("one", "pair", "all")
TIES = ("first", "nearest")

WORK_PER_STEP = 300_000_000  # products of two numbers before a step returns: some tenths of a second
WORK_PER_CALL = 60_000_000  # of them between two checks of the limit
WORK_PER_PASS = 100_000  # what a pass costs besides its steps, in the same unit
TARGET_SHARE = 0.25  # of what the stopping rule asks for: free points this close to their mean hold nothing up
PRICE_AFTER = 0.01  # of the spread: after a pass that has brought it down this far all points are priced again
TIE = 1e-9  # violations this close, relatively, are equal but for rounding
MAX_TIED = 256  # of them are compared
NOISE = 1e-14  # of the radius squared, times the 1-norm of a direction squared: a curvature below may be rounding
NO_MARGIN = 1e-12  # the share of a radius squared below which two hulls touch, as in DualProblem.is_unbounded


class Face:
    """The last direction s and where it lived: the next one is conjugate to it if the face is still the same."""

    def __init__(self) -> None:
        self.points = np.empty(0, dtype=np.int64)
        self.direction = np.empty(0)
        self.squared_norm = 0.0  # |d|² of the d it was made from; 0: the next is d alone, that of steepest descent


class RosenState(NamedTuple):
    """What the next step needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta
    face: Face


class Pricing(NamedTuple):
    """A type II pass: the multipliers of all points."""

    free: np.ndarray  # (n,) the set J
    q: np.ndarray  # (n,) minus the gradient of D, on the side a point would move to
    point_violation: np.ndarray  # (n,) -u of (4) for points at a bound, -inf for free ones
    mean: float  # m
    spread: float  # largest |d| over J
    worst: float  # largest point_violation
    violation: float  # KKT violation


class WorkingArrays(NamedTuple):
    """A working set for compiled code; beta, q, direction and is_free are updated in place."""

    ridge: np.ndarray  # (m,)
    low: np.ndarray  # (m,) ends of the way of each coefficient: its box or, where eps kinks |beta|, zero
    high: np.ndarray  # (m,)
    beta: np.ndarray  # (m,)
    q: np.ndarray  # (m,) minus the gradient of D
    direction: np.ndarray  # (m,) s
    is_free: np.ndarray  # (m,) False once a coefficient has met an end


class LineSearch(NamedTuple):
    """What directions and steps depend on besides the point."""

    has_sum: bool  # directions must sum to zero
    is_conjugate: bool
    is_hard: bool  # no box on one side: the objective may fall for ever
    radius_squared: float  # largest |K_ii|


@dataclass(frozen=True)
class Rosen:
    """Exact line searches along the gradient projected on the free points; constraints are dropped when it vanishes.

    What the paper leaves open are options.  With ``conjugate`` successive steps on one face are conjugate, which takes them
    to full precision; without it they are Rosen's own, and near the optimum slow.  ``Rosen.paper`` is the algorithm as the
    paper's text has it, ``Rosen.tables`` the variant whose iterations come near those of its tables.

    Attributes
    ----------
    start : str
        Where to start: at "zero", at a "pair" of points, one of each class, or with all points in the "interior", each half
        way up its box (but at most at 1/2); the latter two in classification, for in regression zero is inside the box.
    drop : str, int or float
        How many constraints to drop at once: "one", "pair" (the worst of each side), "all" that are violated, a whole number of
        the worst, or a share of the number of support vectors (a float; at least a pair).
    zero_direction : float
        A direction counts as zero when its largest component is at most this times the largest violation of a constraint ...
    zero_length : float
        ... or at most this.
    conjugate : bool
        Whether directions within a face are conjugate, not those of steepest descent.
    multiplier_rule : float or None
        End the run when a direction counts as zero and no multiplier (4) is below minus this: free points are not tested.
    ties : str
        Which of several equally violated constraints a pair is made of: the "first", or the two points "nearest" to each other.
        The latter costs kernel rows, but sends conflicting duplicates to their bounds at once, where pure steps would zigzag.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import Rosen
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, Rosen(drop="one")).status.name
    'CONVERGED'
    """

    start: str = "zero"
    drop: str | int | float = 0.05
    zero_direction: float = 0.3
    zero_length: float = 0.0
    conjugate: bool = True
    multiplier_rule: float | None = None
    ties: str = "first"

    @classmethod
    def paper(cls, epsilon: float = 1e-3, **options: Any) -> "Rosen":
        """Return the algorithm of the paper's text, ended at an epsilon-violation of the KKT conditions.

        Pure steps; where d = 0, within epsilon, the constraint with the most negative multiplier (4) is dropped, and that
        one alone (two where no point is free, for (5) is zero for one); the end is where d = 0 and every multiplier is at
        least -epsilon, within epsilon.  b_up - b_low is then at most 2 epsilon.

        Parameters
        ----------
        epsilon : float, default 1e-3
            The tolerance.
        options : dict
            Attributes that are to be others.

        Returns
        -------
        Rosen
            The solver.
        """
        text = {"drop": "one", "zero_direction": 0.0, "zero_length": epsilon, "conjugate": False}
        return cls(**{**text, "multiplier_rule": epsilon, **options})

    @classmethod
    def tables(cls, epsilon: float = 1e-3, **options: Any) -> "Rosen":
        """Return the variant fitted to the paper's tables 1 and 2: its text does not have their iterations.

        Pure steps, the worst constraint of either side dropped together where |d| <= 0.2, ended when every multiplier (4)
        is at least -epsilon there.  Of the choices offered here these come nearest; experiments/lopez has the comparison.
        The rule leaves a violation of the optimality conditions far above epsilon.

        Parameters
        ----------
        epsilon : float, default 1e-3
            The tolerance.
        options : dict
            Attributes that are to be others.

        Returns
        -------
        Rosen
            The solver.
        """
        closest = {"drop": "pair", "zero_direction": 0.0, "zero_length": 0.2, "ties": "nearest", "conjugate": False}
        return cls(**{**closest, "multiplier_rule": epsilon, **options})

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> RosenState:
        """Start at beta, or where ``start`` says."""
        self._check()
        beta = self._start(problem) if beta is None else np.array(beta, dtype=np.float64)
        return RosenState(beta, problem.residual(beta), Face())

    def _check(self) -> None:
        validation.check_choice("start", self.start, STARTS)
        validation.check_choice("ties", self.ties, TIES)
        is_share = isinstance(self.drop, float) and 0 < self.drop <= 1
        is_count = isinstance(self.drop, int | np.integer) and not isinstance(self.drop, bool) and self.drop >= 1
        if not (is_share or is_count or (isinstance(self.drop, str) and self.drop in DROPS)):
            raise ValueError(
                f"drop must be one of {', '.join(map(repr, DROPS))}, a number of constraints, or a share of the support "
                f"vectors between 0.0 and 1.0; got {self.drop!r}."
            )
        for name in ("zero_direction", "zero_length"):
            validation.check_positive(name, getattr(self, name), zero=True, advice="It says when a direction is none.")
        if self.multiplier_rule is not None:
            validation.check_positive("multiplier_rule", self.multiplier_rule, advice="None leaves the end to solve().")

    def _start(self, problem: DualProblem) -> np.ndarray:
        """Return the point to start from; any total is met by zero or by what fills it."""
        beta = problem.feasible_start()
        if self.start == "zero" or problem.total:
            return beta
        up = np.flatnonzero((problem.upper > 0) & (problem.lower == 0))
        down = np.flatnonzero((problem.lower < 0) & (problem.upper == 0))
        if not (up.size and down.size):
            return beta
        if self.start == "pair":
            up, down = up[:1], down[:1]
        beta[up] = 0.5 * np.minimum(problem.upper[up], 1.0)
        beta[down] = 0.5 * np.maximum(problem.lower[down], -1.0)
        return problem.feasible(beta)

    def step(
        self, problem: DualProblem, state: RosenState, max_steps: int, kkt_target: float
    ) -> tuple[RosenState, Info]:
        """Make up to ``max_steps`` steps, or until the violation is at most ``kkt_target``."""
        search = self._line_search(problem)
        taken, effort = 0, 0
        while True:
            pricing = _price(problem, state)
            is_done = pricing.violation <= 0 or self._ends(pricing)
            if is_done or pricing.violation <= kkt_target or taken >= max_steps or effort >= WORK_PER_STEP:
                return state, Info(taken, is_done=is_done, is_own_rule=self.multiplier_rule is not None)
            # A pass ends where |d| <= tol: where the direction counts as zero by the options, but not below what is of use.
            least_tol = max(TARGET_SHARE * kkt_target, PRICE_AFTER * pricing.spread)
            tol, dropped = max(self._threshold(pricing), least_tol), np.empty(0, dtype=np.int64)
            if pricing.spread <= tol:
                dropped = _choose(problem, pricing, self._how_many(state.beta), self.ties)
                tol = tol if dropped.size else least_tol  # none to drop: then only the free points violate
            working_set = _WorkingSet(problem, state, pricing, dropped)
            if not working_set.points.size:  # what is left of the violation is rounding
                return state, Info(taken, is_done=True)
            affordable = max(1, (WORK_PER_STEP - effort) // working_set.cost)
            reason, count = _run_pass(working_set, state, search, min(max_steps - taken, affordable), tol)
            taken += count
            effort += WORK_PER_PASS + count * working_set.cost
            if reason in (UNBOUNDED, PAUSED):
                return state, Info(taken, is_unbounded=reason == UNBOUNDED)

    def _how_many(self, beta: np.ndarray) -> str | int:
        if not isinstance(self.drop, float):
            return self.drop
        share = int(self.drop * np.count_nonzero(beta))
        return share if share > 2 else "pair"

    def _threshold(self, pricing: Pricing) -> float:
        return max(self.zero_direction * max(pricing.worst, 0.0), self.zero_length)

    def _ends(self, pricing: Pricing) -> bool:
        """Whether the rule of the multipliers, if there is one, calls this the end."""
        rule = self.multiplier_rule
        return rule is not None and pricing.worst <= rule and pricing.spread <= self._threshold(pricing)

    def _line_search(self, problem: DualProblem) -> LineSearch:
        radius_squared = float(np.abs(problem.gram.diagonal).max())
        return LineSearch(problem.total is not None, self.conjugate, problem.is_hard, radius_squared)

    def __str__(self) -> str:
        return "rosen"


# Type II passes: all points.


def _price(problem: DualProblem, state: RosenState) -> Pricing:
    """Return the multipliers (4) of all points, and the free set."""
    beta, residual = state.beta, state.residual
    free = (problem.lower < beta) & (beta < problem.upper)
    if problem.eps:
        free &= beta != 0
    below, above = residual + problem.up_offset(beta), residual + problem.low_offset(beta)
    b_up, b_low = float(below.max()), float(above.min())
    violation = b_up - b_low if problem.total is not None else max(b_up, 0.0) - min(b_low, 0.0)
    mean = 0.0
    if problem.total is not None:
        mean = float(below[free].mean()) if free.any() else 0.5 * (b_up + b_low)
    q = np.where(below - mean >= mean - above, below, above)
    point_violation = np.where(free, -np.inf, np.maximum(below - mean, mean - above))
    spread = float(np.abs(q[free] - mean).max()) if free.any() else 0.0
    return Pricing(free, q, point_violation, mean, spread, float(point_violation.max()), max(violation, 0.0))


def _choose(problem: DualProblem, pricing: Pricing, drop: str | int, ties: str = "first") -> np.ndarray:
    """Return the points whose constraints are dropped, such that (5) moves each of them off its bound."""
    violating = np.flatnonzero(pricing.point_violation > 0)
    order = violating[np.argsort(-pricing.point_violation[violating], kind="stable")]
    has_sum = problem.total is not None
    needs_two = has_sum and not pricing.free.any()  # (5) is zero for one point alone
    if drop == "pair" or (drop in ("one", 1) and needs_two):
        # Both leave their bounds by (5): m^ - m lies between q - m > 0 of the one and q - m < 0 of the other.
        return _worst_two(problem, pricing, order, ties)
    chosen = order if drop == "all" else order[: 1 if drop == "one" else int(drop)]
    if needs_two:
        chosen = np.union1d(chosen, _worst_two(problem, pricing, order, ties))
    return _outward(pricing, chosen) if has_sum else chosen


def _worst_two(problem: DualProblem, pricing: Pricing, order: np.ndarray, ties: str) -> np.ndarray:
    """Return the worst violators that rise and that fall, one of each."""
    is_rising = pricing.q[order] > pricing.mean
    rising, falling = (_tied(pricing, side) for side in (order[is_rising], order[~is_rising]))
    if ties == "nearest" and rising.size * falling.size > 1:
        gram = problem.gram
        if gram.capacity >= min(gram.n, 2 * rising.size):
            gram.fetch(rising)
        K = gram.block(rising)[:, falling]
        squared_distance = gram.diagonal[rising][:, None] + gram.diagonal[falling] - 2.0 * K
        i, j = np.unravel_index(np.argmin(squared_distance), squared_distance.shape)
        return np.array([rising[i], falling[j]])
    return np.concatenate([rising[:1], falling[:1]])


def _tied(pricing: Pricing, side: np.ndarray) -> np.ndarray:
    """Return the points of one side, worst first, that violate as much as the first of them."""
    tied = side[pricing.point_violation[side] >= (1.0 - TIE) * pricing.point_violation[side[:1]]]
    return tied[:MAX_TIED]


def _outward(pricing: Pricing, chosen: np.ndarray) -> np.ndarray:
    """Return those that still leave their bounds when the mean is taken over J and all of them, m^ of (5).

    The worst one always does: m^ - m is a mean of q - m over them and zeros over J, so less than its own q - m.  If by rounding
    none does, all are returned.
    """
    size, total = np.count_nonzero(pricing.free), pricing.q[pricing.free].sum()
    while True:
        q = pricing.q[chosen]
        mean = (total + q.sum()) / (size + chosen.size)
        stays = np.where(q > pricing.mean, q > mean, q < mean)
        if stays.all() or not stays.any():
            return chosen
        chosen = chosen[stays]


# Type I passes: the working set.


class _WorkingSet:
    """The working set of a pass: the free points and the dropped, with arrays of their own."""

    def __init__(self, problem: DualProblem, state: RosenState, pricing: Pricing, dropped: np.ndarray):
        self.problem, self.points = problem, np.concatenate([np.flatnonzero(pricing.free), dropped])
        self.is_forced = dropped.size > 0  # the first step is made, however small: it frees the dropped points
        points = self.points
        beta, q = state.beta[points], pricing.q[points]
        low, high = problem.lower[points], problem.upper[points]
        if problem.eps:  # the kink is an end like any other; a dropped point goes to the side it was dropped for
            is_above = (beta > 0) | ((beta == 0) & (q > pricing.mean))
            low = np.where(is_above, np.maximum(low, 0.0), low)
            high = np.where(is_above, high, np.minimum(high, 0.0))
        face, direction, is_free = state.face, np.zeros(points.size), np.ones(points.size, dtype=np.bool_)
        if face.points.size == points.size and (face.points == points).all():
            direction[:] = face.direction
        else:
            face.squared_norm = 0.0
        self.arrays = WorkingArrays(problem.ridge[points], low, high, beta, q, direction, is_free)
        self.product: np.ndarray | None = None  # K times the change of all coefficients, if summed on the way

    @property
    def cost(self) -> int:
        """Products of two numbers a step takes; a kernel value computed afresh counts for some."""
        return self.points.size**2 if self.fits else 20 * self.points.size * self.problem.n

    @property
    def fits(self) -> bool:
        """Whether the rows can be kept, and with them the kernel matrix of the working set."""
        gram = self.problem.gram
        return gram.holds_all or 2 * self.points.size <= gram.capacity

    def kernel(self) -> np.ndarray | None:
        """Return the kernel matrix of the working set; None if a limit came before its rows were there."""
        gram = self.problem.gram
        return gram.submatrix(self.points) if compiled_loops.fetch(gram, self.points) else None

    def kernel_times(self, direction: np.ndarray) -> np.ndarray:
        """Return the whole kernel matrix times a direction of the working set, from rows that are not kept."""
        whole = np.zeros(self.problem.n)
        whole[self.points] = direction
        return self.problem.gram.dot(whole)

    def finish(self, state: RosenState, squared_norm: float) -> None:
        """Give the state the new coefficients, and the residual of all points what they change."""
        change = np.zeros(self.problem.n)
        change[self.points] = self.arrays.beta - state.beta[self.points]
        if self.product is None:
            with limits.unlimited():  # the rows are in memory
                self.product = self.problem.gram.dot(change)
        state.beta[self.points] = self.arrays.beta
        state.residual[:] -= self.product + self.problem.ridge * change
        face, is_free = state.face, self.arrays.is_free
        order = np.argsort(self.points[is_free])
        face.points, face.direction = self.points[is_free][order], self.arrays.direction[is_free][order]
        face.squared_norm = squared_norm


def _run_pass(
    working_set: _WorkingSet, state: RosenState, search: LineSearch, max_steps: int, tol: float
) -> tuple[int, int]:
    """Iterate on the free and the dropped points; return (reason it ended, steps taken).

    It is PAUSED if a limit came first; its steps count all the same.
    """
    last_squared_norm = state.face.squared_norm
    if not working_set.fits:
        reason, taken, last_squared_norm = _descend_by_rows(working_set, search, last_squared_norm, max_steps, tol)
    elif (K := working_set.kernel()) is None:
        return PAUSED, 0
    else:
        reason, taken, last_squared_norm = _descend_in_memory(working_set, K, search, last_squared_norm, max_steps, tol)
    working_set.finish(state, last_squared_norm)
    return reason, taken


def _descend_in_memory(
    working_set: _WorkingSet, K: np.ndarray, search: LineSearch, last_squared_norm: float, max_steps: int, tol: float
) -> tuple[int, int, float]:
    """Step along projected gradients, asking now and then whether the limit is over; return what _descend does."""
    steps_per_call, taken = max(1, WORK_PER_CALL // working_set.points.size**2), 0
    while True:
        goal, is_forced = min(steps_per_call, max_steps - taken), working_set.is_forced and taken == 0
        reason, count, last_squared_norm = _descend(
            K, working_set.arrays, search, last_squared_norm, goal, tol, is_forced
        )
        taken += count
        if reason != SPENT or taken >= max_steps:
            return reason, taken, last_squared_norm
        if limits.is_over():
            return PAUSED, taken, last_squared_norm


def _descend_by_rows(
    working_set: _WorkingSet, search: LineSearch, last_squared_norm: float, max_steps: int, tol: float
) -> tuple[int, int, float]:
    """Do what _descend does with products from the Gram matrix: the working set is larger than its memory.

    Each product is for all points, so the residuals of all can follow on the way.
    """
    arrays, working_set.product = working_set.arrays, np.zeros(working_set.problem.n)
    for taken in range(max_steps):
        threshold = 0.0 if working_set.is_forced and taken == 0 else tol
        last = arrays.direction.copy()
        slope, squared_norm = _set_direction(arrays, search, last_squared_norm, threshold)
        if slope == 0:
            return QUIET, taken, last_squared_norm
        try:
            Ks = working_set.kernel_times(arrays.direction)
        except limits.Exceeded:
            arrays.direction[:] = last
            return PAUSED, taken, last_squared_norm
        is_clipped, step = _advance(Ks[working_set.points], arrays, search, slope)
        if step == np.inf:
            return UNBOUNDED, taken, 0.0
        working_set.product += step * Ks
        last_squared_norm = 0.0 if is_clipped else squared_norm
    return SPENT, max_steps, last_squared_norm


@jit
def _descend(K, arrays, search, last_squared_norm, max_steps, tol, is_forced):
    """Step along projected gradients; return (reason to return, steps taken, |d|² for the next conjugate direction)."""
    for taken in range(max_steps):
        threshold = 0.0 if is_forced and taken == 0 else tol
        slope, squared_norm = _set_direction(arrays, search, last_squared_norm, threshold)
        if slope == 0:
            return QUIET, taken, last_squared_norm
        Ks = np.dot(K, arrays.direction)
        is_clipped, step = _advance(Ks, arrays, search, slope)
        if step == np.inf:
            return UNBOUNDED, taken, 0.0
        last_squared_norm = 0.0 if is_clipped else squared_norm
    return SPENT, max_steps, last_squared_norm


@jit
def _set_direction(arrays, search, last_squared_norm, tol):
    """Set the direction s of the free points: d = q - m, made conjugate to the s before if the |d|² of that one is given.

    Returns its slope s'q = s'd, zero if no component of d is above ``tol``, and the new |d|².  Sums keep their order: in
    another, the compiler would find that what the mean leaves over is zero.
    """
    q, direction, is_free = arrays.q, arrays.direction, arrays.is_free
    count, mean = 0, 0.0
    for k in range(q.size):
        if is_free[k]:
            count += 1
            mean += q[k]
    mean = mean / count if search.has_sum and count > 0 else 0.0
    rest = 0.0  # digits of a large mean that one number cannot hold: without them the direction would not sum to zero
    if search.has_sum:
        for k in range(q.size):
            if is_free[k]:
                rest += q[k] - mean
        rest = rest / count if count > 0 else 0.0
    spread, squared_norm = 0.0, 0.0
    for k in range(q.size):
        if is_free[k]:
            d = (q[k] - mean) - rest
            spread = max(spread, abs(d))
            squared_norm += d * d
    if spread <= tol:
        return 0.0, squared_norm
    ratio = 0.0
    if search.is_conjugate and last_squared_norm > 0:
        ratio = squared_norm / last_squared_norm  # Fletcher and Reeves
    slope = 0.0
    for k in range(q.size):
        d = (q[k] - mean) - rest if is_free[k] else 0.0
        direction[k] = d + ratio * direction[k] if is_free[k] else 0.0
        slope += d * direction[k]
    # After an exact search d is orthogonal to the old direction, and the slope is |d|².  Where it is off by half of that,
    # rounding has spoilt the old direction: well before the slope could be zero or less, the next one is d again.
    if abs(slope - squared_norm) > 0.5 * squared_norm:
        for k in range(q.size):
            direction[k] = (q[k] - mean) - rest if is_free[k] else 0.0
        slope = squared_norm
    return slope, squared_norm


@jit_sums
def _advance(Ks, arrays, search, slope):
    """Move to the minimum along the direction, or to the first bound; return (whether a bound was met, step).

    Without curvature, or with a negative one, the minimum is at a bound; the step is infinite if there is none.
    """
    ridge, low, high, beta, q, direction, is_free = arrays
    radius_squared = search.radius_squared
    kernel_curvature, ridge_curvature, length, room, first = 0.0, 0.0, 0.0, np.inf, NO_POINT
    for k in range(beta.size):
        s = direction[k]
        kernel_curvature += s * Ks[k]
        ridge_curvature += s * s * ridge[k]
        length += abs(s)
        if s != 0:
            reach = (high[k] - beta[k]) / s if s > 0 else (low[k] - beta[k]) / s
            if reach < room:
                room, first = reach, k
    # Of dependent points s'Ks may be less than nothing by rounding: then no step is longer than it allows.  Exactly zero it is
    # where their rows cancel, as those of equal points do: that is no rounding, and the step goes to a bound.
    if kernel_curvature != 0.0 and abs(kernel_curvature) <= NOISE * radius_squared * length**2:
        kernel_curvature = NOISE * radius_squared * length**2
    curvature = kernel_curvature + ridge_curvature
    # Where s sums to zero, s / (length / 2) is the difference of a point of either class' hull, as in is_unbounded.
    least = NO_MARGIN * radius_squared * (0.5 * length) ** 2 if search.is_hard else 0.0
    if room == np.inf and curvature <= least:
        return False, np.inf
    step = slope / curvature if curvature > 0 else np.inf  # lambda'
    is_clipped = step >= room
    if is_clipped:
        step = room
    if step > LARGEST / length:
        return False, np.inf
    for k in range(beta.size):
        if direction[k] != 0:
            q[k] -= step * (Ks[k] + ridge[k] * direction[k])
            end = high[k] if direction[k] > 0 else low[k]
            beta[k] = end if is_clipped and k == first else land(beta[k], step * direction[k], end)
            if beta[k] == end:
                is_free[k] = False
                is_clipped = True
        else:
            q[k] -= step * Ks[k]
    return is_clipped, step
