"""Rosen's gradient projection for the SVM dual, in closed form (lopez), its steps conjugate within a face.

The paper's formulas in signed coefficients, beta_i = y_i alpha_i, where -y_i times its gradient is the residual
r = t - (K + diag(ridge)) beta and every factor y_i y_j is gone:

    J           free points: off their bounds and, where eps kinks |beta| at zero, off zero
    q = r - eps sign(beta), minus the gradient of D;  a point at zero has two, one for either way it may go
    m           mean of q over J: the projection P takes it off, since directions must sum to zero; 0 with a fixed bias
    d = q - m   on J, zero elsewhere                                                          (the projection P of section 3)
    u = m - q   for a point at a bound it could leave by rising, q - m by falling             (4)
    d^ = q - m^ on J and the points p^ whose constraints are dropped, m^ the mean over them   (5)
    lambda' = d'q / d'(K + diag(ridge)) d, clipped at the first bound or kink on the way      (lambda* of section 3)

What the paper leaves to further work is here: the kernel rows of the working set are kept, and passes alternate as Platt's do.
A type I pass iterates on the working set alone, with the residual of its points alone; a type II pass then brings everyone's
residual up to date, looks at all multipliers, and drops constraints.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap.compiled import jit, jit_sums
from zerogap.problem import DualProblem
from zerogap.solvers.pair import QUIET, SPENT, UNBOUNDED, Info, land

STARTS = ("zero", "pair", "interior")
DROPS = ("one", "pair", "all")

WORK_PER_STEP = 300_000_000  # products of two numbers before a step returns: some tenths of a second
AIM_BELOW = 0.25  # of what the stopping rule asks for: free points this close to their mean are in nobody's way
LOOK_AFTER = 0.01  # of the spread: a pass that has brought it down this far looks at everyone again
NO_MARGIN = 1e-12  # the share of a radius squared below which two hulls touch, as in DualProblem.is_unbounded


class Face:
    """The last direction and where it lived: the next one is conjugate to it if the face is still the same."""

    def __init__(self) -> None:
        self.points = np.empty(0, dtype=np.int64)
        self.direction = np.empty(0)
        self.square = 0.0  # |d|² of the projected gradient before it, 0: start afresh


class RosenState(NamedTuple):
    """What the next step needs; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta
    face: Face


class Look(NamedTuple):
    """A type II pass: what everyone wants."""

    free: np.ndarray  # (n,) the set J
    q: np.ndarray  # (n,) minus the gradient of D, on the side a point would move to
    breach: np.ndarray  # (n,) -u of (4) for points at a bound, -inf for free ones
    mean: float  # m
    spread: float  # largest |d| over J
    worst: float  # largest breach
    violation: float  # KKT violation


@dataclass(frozen=True)
class Rosen:
    """Exact line searches along the gradient projected on the free points, constraints dropped when it vanishes.

    What the paper leaves open are options.  ``start``: at "zero", at a "pair" of points, one of each class, halfway up their
    boxes (at most 1/2), or with all points so in the "interior" (classification only; zero elsewhere).  ``drop``: how many
    constraints at once, "one", the worst of each side ("pair"), "all" that are breached, or a number.  ``zero_direction``: a
    direction counts as zero when its largest component is at most this times the largest breach of a constraint.
    With ``conjugate`` successive steps on one face are conjugate; without it they are Rosen's own.
    ``multiplier_rule`` ends a run, short of the optimum, when a direction counts as zero and no multiplier (4) is below minus
    this number: a stopping rule that does not look at the free points.  ``zero_length`` is then the direction's absolute threshold.
    """

    start: str = "zero"
    drop: str | int = "pair"
    zero_direction: float = 0.1
    conjugate: bool = True
    multiplier_rule: float | None = None
    zero_length: float = 0.0

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> RosenState:
        """Start at beta, or where ``start`` says."""
        self._check()
        beta = self._start(problem) if beta is None else np.array(beta, dtype=np.float64)
        return RosenState(beta, problem.residual(beta), Face())

    def _check(self) -> None:
        if self.start not in STARTS:
            raise ValueError(f"start must be one of {', '.join(map(repr, STARTS))}; got {self.start!r}.")
        is_count = isinstance(self.drop, int | np.integer) and not isinstance(self.drop, bool) and self.drop >= 1
        if self.drop not in DROPS and not is_count:
            raise ValueError(
                f"drop must be one of {', '.join(map(repr, DROPS))} or a number of constraints; got {self.drop!r}."
            )

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

    def step(self, problem: DualProblem, state: RosenState, most: int, until: float) -> tuple[RosenState, Info]:
        """Make up to ``most`` steps, or until the violation is at most ``until``."""
        taken, work = 0, 0
        while True:
            look = _look(problem, state)
            is_done = look.violation <= 0 or self._ends(look)
            if is_done or look.violation <= until or taken >= most or work >= WORK_PER_STEP:
                return state, Info(taken, look.violation, is_done=is_done, is_own_rule=self.multiplier_rule is not None)
            tol = max(self._threshold(look), AIM_BELOW * until)
            is_zero = look.spread <= tol
            dropped = _choose(look, self.drop, problem.total is not None) if is_zero else np.empty(0, dtype=np.int64)
            tol = max(tol, LOOK_AFTER * look.spread)
            why, count = self._pass(problem, state, look, dropped, most - taken, tol)
            taken += count
            work += (count + problem.n // 8) * (int(look.free.sum()) + dropped.size) ** 2
            if why == UNBOUNDED:
                return state, Info(taken, look.violation, is_unbounded=True)

    def _threshold(self, look: Look) -> float:
        return max(self.zero_direction * max(look.worst, 0.0), self.zero_length)

    def _ends(self, look: Look) -> bool:
        """Whether the paper's tables would call this the end."""
        rule = self.multiplier_rule
        return rule is not None and look.worst <= rule and look.spread <= self._threshold(look)

    def _pass(
        self, problem: DualProblem, state: RosenState, look: Look, dropped: np.ndarray, most: int, tol: float
    ) -> tuple[int, int]:
        """A type I pass: iterate on the free and the dropped points; return (why it ended, steps taken)."""
        work, face = _Work(problem, state, look, dropped), state.face
        arguments = (work.low, work.high, work.beta, work.q, work.direction, work.active)
        rule = (problem.total is not None, self.conjugate, problem.is_hard, float(problem.gram.diagonal.max()))
        if work.fits:
            why, taken, square = _descend(
                work.kernel(), work.ridge, *arguments, *rule, face.square, most, tol, dropped.size > 0
            )
        else:
            why, taken, square = _descend_rows(work, arguments, rule, face.square, most, tol, dropped.size > 0)
        work.finish(state, square)
        return why, taken

    def __str__(self) -> str:
        return "rosen"


# Type II passes: everyone.


def _look(problem: DualProblem, state: RosenState) -> Look:
    """Return the multipliers (4) of all points, and who is free."""
    beta, residual = state.beta, state.residual
    free = (problem.lower < beta) & (beta < problem.upper)
    if problem.eps:
        free &= beta != 0
    below, above = residual + problem.rise(beta), residual + problem.fall(beta)
    high, low = float(below.max()), float(above.min())
    violation = high - low if problem.total is not None else max(high, 0.0) - min(low, 0.0)
    if problem.total is None:
        mean = 0.0
    else:
        mean = float(below[free].mean()) if free.any() else 0.5 * (high + low)
    is_up = below - mean >= mean - above
    q = np.where(is_up, below, above)
    wish = np.abs(q - mean)
    breach = np.where(free, -np.inf, np.where(is_up, below - mean, mean - above))
    spread = float(wish[free].max()) if free.any() else 0.0
    return Look(free, q, breach, mean, spread, float(breach.max()), max(violation, 0.0))


def _choose(look: Look, drop: str | int, has_sum: bool) -> np.ndarray:
    """Return the points whose constraints are dropped, such that (5) moves each of them off its bound."""
    eager = np.flatnonzero(look.breach > 0)
    if not eager.size:
        return eager
    order = eager[np.argsort(-look.breach[eager], kind="stable")]
    rising, falling = order[look.q[order] > look.mean], order[look.q[order] < look.mean]
    if drop == "pair" or (has_sum and not look.free.any() and drop in ("one", 1)):  # (5) is zero for one point alone
        return np.concatenate([rising[:1], falling[:1]])
    if drop in ("one", 1):
        return order[:1]
    chosen = order if drop == "all" else order[: int(drop)]
    if has_sum and not look.free.any():
        chosen = np.union1d(chosen, np.concatenate([rising[:1], falling[:1]]))
    return _outward(look, chosen) if has_sum else chosen


def _outward(look: Look, chosen: np.ndarray) -> np.ndarray:
    """Return those that still leave their bounds when the mean is taken over all of them; the worst one always does."""
    size, total = np.count_nonzero(look.free), look.q[look.free].sum()
    while True:
        mean = (total + look.q[chosen].sum()) / (size + chosen.size)
        q = look.q[chosen]
        stays = np.where(q > look.mean, q > mean, q < mean)
        if stays.all() or not stays.any():
            return chosen
        chosen = chosen[stays]


# Type I passes: the working set.


class _Work:
    """The working set of a pass: the free points and the dropped, with arrays of their own."""

    def __init__(self, problem: DualProblem, state: RosenState, look: Look, dropped: np.ndarray):
        self.problem, self.points = problem, np.concatenate([np.flatnonzero(look.free), dropped])
        points = self.points
        self.beta, self.q, self.ridge = state.beta[points], look.q[points], problem.ridge[points]
        self.low, self.high = problem.lower[points], problem.upper[points]
        if problem.eps:  # the kink is an end like any other; a dropped point goes to the side it was dropped for
            is_above = (self.beta > 0) | ((self.beta == 0) & (self.q > look.mean))
            self.low = np.where(is_above, np.maximum(self.low, 0.0), self.low)
            self.high = np.where(is_above, self.high, np.minimum(self.high, 0.0))
        self.active = np.ones(points.size, dtype=np.bool_)
        face = state.face
        self.direction = np.zeros(points.size)
        if face.points.size == points.size and (face.points == points).all():
            self.direction[:] = face.direction
        else:
            face.square = 0.0

    @property
    def fits(self) -> bool:
        """Whether the rows can be kept, and with them the square of the matrix a pass works on."""
        rows = self.problem.gram.rows
        return len(rows) == self.problem.n or 2 * self.points.size <= len(rows)

    def kernel(self) -> np.ndarray:
        """Return the kernel matrix of the working set."""
        gram = self.problem.gram
        gram.fetch(self.points)
        return _square(gram.rows, gram.slot[self.points], self.points)

    def product(self, direction: np.ndarray) -> np.ndarray:
        """Return the kernel matrix of the working set times a direction, from rows that are not kept."""
        whole = np.zeros(self.problem.n)
        whole[self.points] = direction
        return self.problem.gram.dot(whole)[self.points]

    def finish(self, state: RosenState, square: float) -> None:
        """Give the state the new coefficients, and everyone's residual what they change."""
        change = np.zeros(self.problem.n)
        change[self.points] = self.beta - state.beta[self.points]
        state.beta[self.points] = self.beta
        state.residual[:] -= self.problem.gram.dot(change) + self.problem.ridge * change
        face = state.face
        order = np.argsort(self.points[self.active])
        face.points, face.direction = self.points[self.active][order], self.direction[self.active][order]
        face.square = square


def _descend_rows(work, arguments, rule, square, most, tol, is_forced):
    """Do what _descend does with products from the Gram matrix: the working set is larger than its memory."""
    has_sum, conjugate, is_hard, radius = rule
    for taken in range(most):
        slope, now = _direction(*arguments[3:], has_sum, conjugate, square, 0.0 if is_forced and taken == 0 else tol)
        if slope == 0:
            return QUIET, taken, square
        Kd = work.product(work.direction) + work.ridge * work.direction
        is_clipped, is_unbounded = _advance(Kd, *arguments, slope, is_hard, radius)
        if is_unbounded:
            return UNBOUNDED, taken, 0.0
        square = 0.0 if is_clipped else now
    return SPENT, most, square


@jit
def _square(rows, slots, points):
    m = points.size
    K = np.empty((m, m))
    for a in range(m):
        row = rows[slots[a]]
        for b in range(m):
            K[a, b] = row[points[b]]
    return K


@jit
def _descend(
    K, ridge, low, high, beta, q, direction, active, has_sum, conjugate, is_hard, radius, square, most, tol, is_forced
):
    """Step along projected gradients; return (why it stopped, steps taken, |d|² for the next conjugate direction)."""
    for taken in range(most):
        limit = 0.0 if is_forced and taken == 0 else tol
        slope, now = _direction(q, direction, active, has_sum, conjugate, square, limit)
        if slope == 0:
            return QUIET, taken, square
        Kd = np.dot(K, direction)
        for k in range(Kd.size):
            Kd[k] += ridge[k] * direction[k]
        is_clipped, is_unbounded = _advance(Kd, low, high, beta, q, direction, active, slope, is_hard, radius)
        if is_unbounded:
            return UNBOUNDED, taken, 0.0
        square = 0.0 if is_clipped else now
    return SPENT, most, square


@jit_sums
def _direction(q, direction, active, has_sum, conjugate, square, tol):
    """Set the direction d = q - m of the active points, conjugate to the one before if square is given.

    Returns its slope d'q, zero if it counts as no direction, and |q - m|².
    """
    count, mean = 0, 0.0
    for k in range(q.size):
        if active[k]:
            count += 1
            mean += q[k]
    mean = mean / count if has_sum and count > 0 else 0.0
    spread, now = 0.0, 0.0
    for k in range(q.size):
        if active[k]:
            g = q[k] - mean
            spread = max(spread, abs(g))
            now += g * g
    if spread <= tol:
        return 0.0, now
    ratio = now / square if conjugate and square > 0 else 0.0
    slope = 0.0
    for k in range(q.size):
        g = q[k] - mean if active[k] else 0.0
        direction[k] = g + ratio * direction[k] if active[k] else 0.0
        slope += g * direction[k]
    if abs(slope - now) > 0.5 * now:  # rounding has spoilt it: the old direction is far from orthogonal to the gradient
        for k in range(q.size):
            direction[k] = q[k] - mean if active[k] else 0.0
        slope = now
    return slope, now


@jit_sums
def _advance(Kd, low, high, beta, q, direction, active, slope, is_hard, radius):
    """Move to the minimum along the direction, or to the first bound; return (whether a bound was met, is unbounded)."""
    curvature, length, room, first = 0.0, 0.0, np.inf, -1
    for k in range(beta.size):
        d = direction[k]
        curvature += d * Kd[k]
        length += abs(d)
        if d != 0:
            r = (high[k] - beta[k]) / d if d > 0 else (low[k] - beta[k]) / d
            if r < room:
                room, first = r, k
    if room == np.inf and is_hard and curvature <= NO_MARGIN * radius * (0.5 * length) ** 2:
        return False, True
    step = slope / curvature if curvature > 0 else np.inf  # lambda'
    is_clipped = step >= room
    if is_clipped:
        step = room
    for k in range(beta.size):
        q[k] -= step * Kd[k]
        if direction[k] != 0:
            end = high[k] if direction[k] > 0 else low[k]
            beta[k] = end if is_clipped and k == first else land(beta[k], step * direction[k], end)
            if beta[k] == end:
                active[k] = False
                is_clipped = True
    return is_clipped, False
