"""The linear kernel in its vector w: Newton steps with d + 1 unknowns to near the optimum, then exchanges near the margin.

Symbols: X, the points; w = X'beta; b, the bias; r = t - X w - b; u, l, the ends of the box; c, the proximal centre.

    minimise over w and b   1/2 |w|² + sum_i loss_i(t_i - x_i'w - b) + b total

has as many unknowns as there are features and one more, however many points there are and however large C is, while pairs take
about as many steps as C is large.  The loss has corners.  A proximal term mu_i (beta_i - c_i)²/2 in the dual objective, c being
the last point, rounds them off: then the response of beta to r rises from l to u over a stretch of width mu (u - l), and

    w = sum_i response_i(r_i) x_i,   sum_i response_i(r_i) = total,   response_i(r) = clip((r + mu_i c_i) / mu_i, l_i, u_i)

is solved by Newton's method, I + X_J' diag(1/mu) X_J being the derivative for w with the points J on their stretch, and a
search along each step for the least objective.  That is the semismooth Newton method within the proximal point algorithm
(Rockafellar 1976; Li, Sun and Toh 2018).  The dual objective grows from one centre to the next, and mu shrinks.  When few more
points are on their stretch than there are features, the free points are nearly known: those that are near the margin become a
problem of their own, small and with its matrix, which ``ActiveSet`` solves exactly; the others are then asked whether any of
them violates its condition, and the violators join.

With a ridge on every coefficient (squared losses) the response is smooth already and Newton's method alone ends at the optimum.
"""

import copy
from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.active_set import ActiveSet
from zerogap.compiled import inline, jit
from zerogap.kernels import UNIT
from zerogap.problem import DualProblem
from zerogap.solvers.base import Info
from zerogap.solvers.newton_system import System, response
from zerogap.solvers.pair import PairState

MOST_FEATURES = 2000  # whose Newton system is solved
FIRST, SHRINKS, LAST = 0.25, 0.2, 1e-6  # width of the stretch, as a share of the range of the targets
NEXT_TO_NOTHING = 1e-13  # of the objective
FEW_MORE, FEW = 1.3, 20  # points on their stretch, for each feature and some, at which exchanges are cheaper
SETTLED = 0.05  # of the proximal term: what the equations may be off
MOST_NEWTON_STEPS = 200  # with one centre
SOLVED = 1e-14  # of the terms of a slope: what rounding may make of it
SHORTEST = 1e-8  # part of a Newton step: a shorter one that takes no point onto its stretch never will, so narrow it is
REFINEMENTS = 4
NOT_ROUNDING = 100.0  # times the rounding of a residual: a violation that is more than that
PART, PART_PER_FEATURE = 100, 3.0  # points near the margin that are solved for exactly

# Seconds, to compare one with the other: a multiplication of a matrix product and what a value of it costs besides; what a
# Newton step takes besides; a pair, for each point.  And Newton steps that it takes, as a rule.
MULTIPLIED, VALUE, STEP, PAIR, STEPS = 0.1e-9, 5e-9, 100e-6, 1.2e-9, 30
SCATTERED = 1e-9  # a multiplication with an entry that stands alone, as those of sparse points do
TRIED = 0.5  # of the time of the Newton steps: so long pairs are tried before, matrix included


class Finish(NamedTuple):
    """The points near the margin, solved exactly with the others at their bounds."""

    points: np.ndarray
    problem: DualProblem
    active: ActiveSet


class Descent:
    """A run in w: how far it is."""

    def __init__(self, problem: DualProblem, share: float | None = None):
        n, d = problem.n, problem.gram.X.shape[1]
        matrix = 0.5 * n * n * (VALUE + MULTIPLIED * d)
        newton = STEPS * (STEP + MULTIPLIED * d * (0.25 * n * d + 4.0 * n + d * d / 3.0))
        tried = TRIED * newton - matrix
        is_tried = tried > 0.0 and problem.gram.holds_all and bool(has_corner(problem).any())
        self.pairs = int(tried / (PAIR * n)) if is_tried and share is None else 0  # that are moved before
        self.share = FIRST if share is None else share  # without pairs before, it is given
        self.w: np.ndarray | None = None  # of the Newton steps from the present centre, none yet
        self.centre, self.mu = np.empty(0), np.empty(0)
        self.fitted, self.bias = np.empty(0), 0.0  # X w, b
        self.system: System | None = None  # with the points on their stretch
        self.steps, self.is_full = 0, False  # from the present centre, and whether the last was taken in full
        self.is_near = False  # exchanges are next
        self.finish: Finish | None = None
        self.refinements, self.off = REFINEMENTS, 0.0  # off: how far off the margin free points are put
        self.is_lost = False  # float64 has no Newton step, or exchanges no minimum: others have to go on

    def __deepcopy__(self, memo: dict[int, object]) -> "Descent":
        copied = Descent.__new__(Descent)
        copied.__dict__.update(self.__dict__)
        copied.system = copy.deepcopy(self.system, memo)  # the other arrays are replaced, not changed
        if self.finish is not None:
            copied.finish = self.finish._replace(active=self.finish.active.copy())
        return copied

    def step(self, problem: DualProblem, state: PairState, max_steps: int) -> Info:
        """Go to the next centre, or make the exchanges near the margin, or refine."""
        if not self.is_near:
            return self._newton(problem, state, max_steps)
        if self.finish is None:
            return self._exchange(problem, state, max_steps)
        return self._refine(problem, state)

    # Newton steps.

    def _newton(self, problem: DualProblem, state: PairState, max_steps: int) -> Info:
        """Solve for w and b with the present centre, then make the point that answers to them the next one."""
        if self.w is None:
            self._begin(problem, state)
        assert self.system is not None
        taken, is_solved = self._descend(problem, max_steps)
        self.steps += taken
        if not is_solved and not self.is_lost:
            return Info(taken)
        beta = self._answer(problem)
        is_better = take(problem, state, beta, problem.residual(beta))
        mu, inside = self.mu, np.count_nonzero(self.system.inside)
        self.w, self.system, self.steps, self.is_full = None, None, 0, False
        if not mu.any():  # no corner was rounded: this is the optimum
            self.refinements -= 1
            return Info(max(taken, 1)) if is_better and self.refinements else self._end(problem, state)
        self.share *= SHRINKS
        few = FEW_MORE * problem.gram.X.shape[1] + FEW
        self.is_near = self.is_lost or not is_better or inside <= few or self.share < LAST
        self.is_lost = False
        return Info(max(taken, 1))

    def _begin(self, problem: DualProblem, state: PairState) -> None:
        """Start from the w and the best bias of the present point, which is the centre."""
        r = state.residual + problem.ridge * state.beta
        self.w = problem.gram.features.T @ state.beta
        self.fitted, self.bias = problem.target - r, problem.best_bias(r)
        self.mu, self.centre = self._rounded(problem), state.beta.copy()
        self.system = System(problem.gram.features, problem.ridge + self.mu, problem.total is not None)

    def _rounded(self, problem: DualProblem) -> np.ndarray:
        """Return mu, zero where there is no corner."""
        width, is_cornered = problem.upper - problem.lower, has_corner(problem)
        scale = self.share * float(np.ptp(problem.target))
        return np.where(is_cornered, scale / np.where(is_cornered, width, 1.0), 0.0)

    def _descend(self, problem: DualProblem, max_steps: int) -> tuple[int, bool]:
        """Take Newton steps; return how many, and whether the equations are solved, or no better than now can be."""
        X, total, system, w = problem.gram.features, problem.total, self.system, np.asarray(self.w)
        assert system is not None
        ends, shift, d = (problem.lower, problem.upper), self.mu * self.centre, X.shape[1]
        for count in range(max_steps):
            z = problem.target - self.fitted - self.bias + shift
            changed = system.respond(z, *ends, problem.eps)
            if (self.is_full and not changed) or self.steps + count >= MOST_NEWTON_STEPS:
                return count, True
            if limits.is_over():
                return count, False
            gradient = system.gradient(w, total)
            if self._is_settled(gradient):
                return count, True
            step = system.step(gradient)
            if step is None:
                self.is_lost = True
                return count, False
            along, has_bias = X @ step[:d], total is not None
            constant = float(w @ step[:d]) + (total * float(step[d]) if has_bias else 0.0)  # type: ignore[operator]
            box = (*ends, system.slope, problem.eps)
            size, first, terms = _search(z, along + step[d], *box, constant, float(step[:d] @ step[:d]))
            self.w = w = w + size * step[:d]
            self.fitted = self.fitted + size * along
            self.bias += size * float(step[d])
            self.is_full = size == 1.0
            is_stuck = size < SHORTEST and not changed and self.steps + count > 0
            if is_stuck or not -first > SOLVED * terms:
                return count + 1, True
        return max_steps, False

    def _is_settled(self, gradient: np.ndarray) -> bool:
        """Whether w is near enough to that of the present centre for the next one.

        The gap of the coefficients that answer to w is, beside what the proximal term has in it, about half of g'H g, H being
        the derivative: w less the gradient is their vector.
        """
        assert self.system is not None
        if not self.mu.any():  # there is no next one
            return False
        moved = self.system.response - self.centre
        return self.system.curvature(gradient) <= SETTLED * float((self.mu * moved) @ moved)

    def _answer(self, problem: DualProblem) -> np.ndarray:
        """Return the coefficients that answer to w, with the bias that gives them the right sum."""
        system = self.system
        assert system is not None
        z = problem.target - self.fitted + self.mu * self.centre
        box = (problem.lower, problem.upper, system.slope, problem.eps)
        if problem.total is not None:
            self.bias = _balance(z, *box, problem.total, self.bias, float(np.ptp(problem.target)))
        return problem.restore_sum(system.answer(z - self.bias, problem.lower, problem.upper, problem.eps))

    # Exchanges.

    def _exchange(self, problem: DualProblem, state: PairState, max_steps: int) -> Info:
        """Solve for the points near the margin alone; others that violate their condition then are near it the next time."""
        points = _near_margin(problem, state)
        part = problem.restricted(points, state.beta, residual=state.residual)
        part.gram.full()
        active = ActiveSet(part, state.beta[points])
        entered = active.optimise(part, 0.0, max_steps)
        if active.is_unbounded or limits.is_over():
            self.is_lost = active.is_unbounded
            return Info(max(entered, 1))
        beta, residual = state.beta.copy(), state.residual.copy()
        beta[points] = active.beta
        change = beta - state.beta
        moved = np.flatnonzero(change)
        problem.gram.subtract(moved, change[moved], residual)
        residual -= problem.ridge * change
        is_better, violations = take(problem, state, beta, residual), _violations(problem, state, active.bias)
        if entered >= max_steps:
            return Info(entered)
        violations[points] = 0.0
        has_violators = bool((violations > 4.0 * problem.roundings(state.beta)).any())
        if has_violators and not (is_better and moved.size):  # the same points would be near the margin again
            self.is_lost = True
        elif not has_violators:
            self.finish = Finish(points, part, active)
        return Info(max(entered, 1))

    def _refine(self, problem: DualProblem, state: PairState) -> Info:
        """Solve the free points once more for what a residual of twice the precision leaves over.

        What rounding leaves of the residual of a free point costs either the coefficient times it or, on the other side of the
        margin, all that lacks to the bound times it: that is far more where C is large and coefficients are small.  So we aim
        for the cheap side of the margin, as far off as the last solution has missed its aim.
        """
        assert self.finish is not None
        if not self.refinements:
            return self._end(problem, state)
        self.refinements -= 1
        points, part, active = self.finish
        active.beta[:] = state.beta[points]
        before, E = problem.precise_residual(state.beta), active.free.copy()
        side, size = active.side[E], np.abs(active.beta[E])
        cap = np.where(side > 0, part.upper[E], -part.lower[E])
        aim = problem.eps * side + np.where(size < cap - size, -side, side) * self.off
        active.kkt_error[E] = before[points[E]] - active.bias - aim
        active.descend(part, -problem.excess(state.beta))
        beta = state.beta.copy()
        beta[points] = active.beta
        after = problem.precise_residual(problem.restore_sum(beta))
        missed = float(np.abs(after[points[E]] - active.bias - aim).max(initial=0.0))
        self.off = 2.0 * missed + 8.0 * UNIT * (abs(active.bias) + float(np.abs(problem.target).max()))
        old, new = problem.estimate(state.beta, before), problem.estimate(beta, after)
        # A point that happens to be on its margin to the last digit is not known to be: one off it, for next to nothing, is.
        is_better = new.gap < max(old.gap, NEXT_TO_NOTHING * abs(old.primal))
        go_to(problem, state, *((beta, after) if is_better else (state.beta, before)))
        return Info(1)

    def _end(self, problem: DualProblem, state: PairState) -> Info:
        """Say that nothing is left to do; where more than rounding is left, others have to go on."""
        b_up, b_low = problem.bias_interval(state.beta, state.residual)
        self.is_lost = b_up - b_low > NOT_ROUNDING * problem.rounding(state.beta)
        return Info(0, is_done=not self.is_lost)


def suits(problem: DualProblem) -> bool:
    """Whether a problem is solved in w: a linear kernel with fewer features than points, and no hard margin."""
    gram = problem.gram
    if not gram.kernel.is_linear or gram.X.shape[1] > min(gram.n, MOST_FEATURES) or problem.known is not None:
        return False
    return not problem.is_hard and 0.0 < float(np.ptp(problem.target)) < np.inf


def has_corner(problem: DualProblem) -> np.ndarray:
    """Return, for every point, whether its loss has corners: its box is not empty, and no ridge rounds them off."""
    return (problem.ridge == 0.0) & (problem.upper > problem.lower)


def seconds_of_step(n: int, d: int, nonzeros: int) -> float:
    """Return about how long a Newton step takes: products with all points, and with pairs of features of a quarter of them."""
    per_row = nonzeros / n
    pairs = SCATTERED * per_row**2 if per_row < d else MULTIPLIED * d * d
    return STEP + 4.0 * SCATTERED * nonzeros + 0.25 * n * pairs + MULTIPLIED * d**3 / 3.0


def go_to(problem: DualProblem, state: PairState, beta: np.ndarray, residual: np.ndarray) -> None:
    """Put the state at a point, whose residual is known."""
    state.beta[:], state.residual[:] = beta, residual
    state.up_offset[:], state.low_offset[:] = problem.up_offset(beta), problem.low_offset(beta)


def take(problem: DualProblem, state: PairState, beta: np.ndarray, residual: np.ndarray) -> bool:
    """Go to a point, unless its dual objective is less, or beyond float64; return whether it was taken."""
    if not problem.objective(beta, residual) <= problem.objective(state.beta, state.residual):
        return False
    go_to(problem, state, beta, residual)
    return True


def _violations(problem: DualProblem, state: PairState, bias: float) -> np.ndarray:
    """Return by how much each point violates its condition with a bias; negative: by how much it is kept."""
    return np.maximum(state.residual + state.up_offset - bias, bias - state.residual - state.low_offset)


def _near_margin(problem: DualProblem, state: PairState) -> np.ndarray:
    """Return the free points, and of those that can rise, and of those that can fall, so many nearest to the margin."""
    beta = state.beta
    is_free = (beta != 0.0) & (beta > problem.lower) & (beta < problem.upper)
    most = min(PART + int(PART_PER_FEATURE * (problem.gram.X.shape[1] + 1)), problem.n) // 2
    rising = np.argpartition(state.residual + state.up_offset, -most)[-most:]
    falling = np.argpartition(state.residual + state.low_offset, most - 1)[:most]
    return np.unique(np.concatenate([np.flatnonzero(is_free), rising, falling]))


@inline
def _excess(z, bias, lower, upper, slope, eps, total):
    """Return by how much the answers to z - bias sum to more than the total, and by how much that falls as the bias grows."""
    excess, falls = -total, 0.0
    for i in range(z.size):
        value, is_inside = response(z[i] - bias, lower[i], upper[i], slope[i], eps)
        excess += value
        if is_inside:
            falls += 1.0 / slope[i]
    return excess, falls


@jit
def _balance(z, lower, upper, slope, eps, total, bias, unit):
    """Return the bias with which the answers have the right sum, found by Newton steps and halving."""
    low, high = -np.inf, np.inf  # between them it is
    for _ in range(200):
        excess, falls = _excess(z, bias, lower, upper, slope, eps, total)
        if excess == 0.0:
            break
        if excess > 0.0:
            low = bias
        else:
            high = bias
        away = unit if excess > 0.0 else -unit
        wanted = bias + (excess / falls if falls > 0.0 else away)
        if not low < wanted < high:
            wanted = 0.5 * low + 0.5 * high if low > -np.inf and high < np.inf else bias + away
        unit *= 2.0
        if wanted == bias or wanted == low or wanted == high:
            break
        bias = wanted
    return bias


@inline
def _slope_at(size, some, z, change, lower, upper, slope, eps, start, square):
    """Return the slope of the objective after so much of a step, by the points whose coefficients move on it."""
    total = start + size * square
    for i in some:
        value, _ = response(z[i] - size * change[i], lower[i], upper[i], slope[i], eps)
        total -= value * change[i]
    return total


@inline
def _moving(z, change, lower, upper, slope, eps, constant):
    """Return the points whose coefficients move on a step, what the others add to its slope, and the size of all terms.

    A coefficient that is the same at both ends of a step is so all the way.
    """
    some, count, start, terms = np.empty(z.size, dtype=np.int64), 0, constant, abs(constant)
    for i in range(z.size):
        value, _ = response(z[i], lower[i], upper[i], slope[i], eps)
        after, _ = response(z[i] - change[i], lower[i], upper[i], slope[i], eps)
        terms += abs(value * change[i])
        if value == after:
            start -= value * change[i]
        else:
            some[count] = i
            count += 1
    return some[:count], start, terms


@jit
def _search(z, change, lower, upper, slope, eps, constant, square):
    """Return how much of a Newton step to take, at most all of it, and the slope at its beginning with the size of its terms.

    The slope along the step grows piece by piece linearly: where it is nearly zero is found by secants and halving.
    """
    some, start, terms = _moving(z, change, lower, upper, slope, eps, constant)
    first = _slope_at(0.0, some, z, change, lower, upper, slope, eps, start, square)
    enough, largest, longest = 0.01 * abs(first), 0.0, 0.0
    for i in range(z.size):
        largest, longest = max(largest, abs(z[i])), max(longest, abs(change[i]))
    # Where no point is on its stretch a step may be many orders of magnitude too long.
    a, b, at_a = 0.0, 1.0, first
    if longest > largest > 0.0:
        b = largest / longest
    while True:
        at_b = _slope_at(b, some, z, change, lower, upper, slope, eps, start, square)
        if at_b > enough:
            break
        if b >= 1.0 or not first < 0.0:
            return 1.0, first, terms
        a, b, at_a = b, min(8.0 * b, 1.0), at_b
    size = b
    for k in range(40):
        size = 0.5 * (a + b) if k % 3 == 2 else a - (b - a) * at_a / (at_b - at_a)
        at = _slope_at(size, some, z, change, lower, upper, slope, eps, start, square)
        if abs(at) <= enough:
            break
        if at > 0.0:
            b, at_b = size, at
        else:
            a, at_a = size, at
    return size, first, terms
