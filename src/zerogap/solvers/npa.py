"""The nearest point algorithm of Keerthi, Shevade, Bhattacharyya and Murthy (IEEE TNN 11(1), 2000), the NPA of ssvm's tables.

Symbols: U and V, the convex hulls of the two classes in feature space; u and v, a point of each, convex combinations with
weights ``alpha``; z = u - v; e_u and e_v, the inner products of u and v with every point; f = e_u - e_v, those of z.
The 2-norm soft margin is a hard margin for the kernel K + diag(ridge), and that is 1 / |z| on either side where u and v are
nearest.
The excess of a point x is z·u - z·x in U and z·x - z·v in V: how much further towards the other hull it lies.  At the nearest
points no excess is positive.

The dual has one more coefficient, a scale: beta = c (alpha_u, -alpha_v) is feasible for every c, and D = c² |z|² / 2 - 2 c is
least at c = 2 / |z|², where D = -2 / |z|².  So a shorter z is a better point of the dual, and excesses times c are violations.

A step has a point k whose excess is above its tolerance, and the support vector m with the least.  The hull of k gets a way
towards k (Gilbert), that of m a way off from m, until its weight is gone (Mitchell, Dem'yanov and Malozemov).  In the same hull
the two span a triangle, in both a quadrilateral of differences: the shortest z on it is taken.

Loops: type I takes all points in turn, one at a time; type II only the support vectors, of which e_u and e_v are kept, the one
with the largest excess each time, until none is above the tolerance.  They alternate until type I finds nothing.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.kernels import UNIT
from zerogap.problem import DualProblem
from zerogap.solvers import compiled_loops
from zerogap.solvers.base import Info

# Places in a state's integers and numbers.
POSITION, IS_TYPE_2, HAS_MOVED, EVALUATIONS = range(4)
TOLERANCE, MET, GROWTH = range(3)

STEPS_PER_CALL = 1000  # a tenth of a second or less on some thousand points
MEET = 1e-12  # of the largest K_ii: hulls whose |z|² is less have a point in common, as ``DualProblem.is_unbounded`` has it
TIGHTEN = 0.1  # the tolerance that comes after one that is met
MAX_GROWTH = 1e4  # by which weights that grow may enlarge the rounding errors of f before it is computed anew


class NPAState(NamedTuple):
    """The nearest points so far, and where the loops stand; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point: the two convex combinations, scaled
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta
    e_u: np.ndarray  # (n,) inner products of u with all points
    integers: np.ndarray  # where type I is, whether it is type II's turn, whether type I has moved anything, values
    numbers: np.ndarray  # tolerance, the last one that was met, how much rounding errors have grown

    @property
    def evaluations(self) -> int:
        """Kernel values that the algorithm has asked for: it keeps none, where we keep rows (``gram.evaluations``)."""
        return int(self.integers[EVALUATIONS])

    @property
    def met(self) -> float:
        """The tolerance that all points have met when type I last found nothing; infinite before."""
        return float(self.numbers[MET])


@dataclass(frozen=True)
class NPA:
    """Shorten the difference of two points of the convex hulls of the classes, for hard margins and the squared hinge.

    ``tolerance`` is what y f(x) may lack to 1 at first; it is tightened when the stopping rule asks for more.  An iteration is
    a step to the shortest z of a triangle or quadrilateral.

    Attributes
    ----------
    tolerance : float
        What y f(x) may lack to 1 at first.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import NPA
    >>> problem = DualProblem.squared_hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, NPA()).status.name
    'CONVERGED'
    """

    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        validation.check_positive("tolerance", self.tolerance, advice="It is what y f(x) may lack to 1 at first.")

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> NPAState:
        """Start at beta, scaled to where D is least, or with the first point of each class."""
        check_hulls(problem, "npa")
        alpha = np.zeros(problem.n) if beta is None else np.abs(beta)
        is_u = problem.upper > 0
        if not (alpha[is_u].any() and alpha[~is_u].any()):
            alpha = np.zeros(problem.n)
            alpha[[np.argmax(is_u), np.argmax(problem.lower < 0)]] = 1.0
        arrays = np.zeros((3, problem.n))
        numbers = np.array([self.tolerance, np.inf, 1.0])
        state = NPAState(arrays[0], arrays[1], arrays[2], np.zeros(4, dtype=np.int64), numbers)
        hulls = _Hulls(problem, state, alpha)
        hulls.refresh()
        hulls.store()
        state.residual[:] = problem.residual(state.beta)  # the loop takes that of a start for fresh
        state.integers[EVALUATIONS] = 0 if beta is not None else 2  # those of the pair with itself, and one between
        return state

    def step(self, problem: DualProblem, state: NPAState, max_steps: int, kkt_target: float) -> tuple[NPAState, Info]:
        """Make up to ``max_steps`` steps, or until a loop has ended and the KKT violation is at most ``kkt_target``."""
        integers, numbers = state.integers, state.numbers
        hulls = _Hulls(problem, state)
        smallest = 4.0 * problem.rounding(state.beta)
        if numbers[MET] <= numbers[TOLERANCE]:
            if numbers[TOLERANCE] <= smallest:
                return state, Info(0, is_done=True)
            numbers[TOLERANCE] = max(TIGHTEN * numbers[TOLERANCE], smallest)
        moved, is_stuck = 0, False
        while moved < min(max_steps, STEPS_PER_CALL) and not hulls.meet and not limits.is_over():
            excess = hulls.excess()
            k = self._choose(hulls, excess)
            if k is None:
                if integers[IS_TYPE_2] or not integers[HAS_MOVED]:
                    is_quiet = not integers[IS_TYPE_2]
                    integers[[IS_TYPE_2, POSITION, HAS_MOVED]] = 0
                    if is_quiet:
                        numbers[MET] = numbers[TOLERANCE]
                        break
                    if hulls.violation(excess) <= kkt_target:
                        break
                else:
                    integers[IS_TYPE_2] = 1
                continue
            outcome = hulls.take_step(k, excess)
            if outcome is None:  # the limit came before the kernel rows
                break
            if outcome:
                moved += 1
                integers[HAS_MOVED] |= not integers[IS_TYPE_2]
            elif integers[IS_TYPE_2]:  # rounding: no step is short enough
                integers[[IS_TYPE_2, POSITION, HAS_MOVED]] = 0
                is_stuck = True
            integers[POSITION] += not integers[IS_TYPE_2]
        hulls.store()
        is_done = numbers[MET] <= numbers[TOLERANCE] <= smallest
        return state, Info(moved, is_done=is_done or (is_stuck and not moved), is_unbounded=hulls.meet)

    def _choose(self, hulls: "_Hulls", excess: np.ndarray) -> int | None:
        """Return the next point whose excess is above the tolerance, or None at the end of the loop; count what it takes."""
        integers, threshold = hulls.state.integers, 0.5 * hulls.state.numbers[TOLERANCE] * hulls.square
        is_support = hulls.alpha > 0
        if integers[IS_TYPE_2]:
            k = int(np.argmax(np.where(is_support, excess, -np.inf)))
            return k if excess[k] > threshold else None
        start = int(integers[POSITION])
        above = excess[start:] > threshold
        count = int(np.argmax(above)) if above.any() else above.size
        k = start + count
        # The excess of a point that is no support vector takes the kernel values with all that are.
        looked_at = is_support[start : k + 1]
        integers[EVALUATIONS] += (looked_at.size - np.count_nonzero(looked_at)) * np.count_nonzero(is_support)
        integers[POSITION] = k
        return k if k < hulls.problem.n else None

    def __str__(self) -> str:
        return "npa"


def check_hulls(problem: DualProblem, name: str) -> None:
    """Refuse what is no problem of two hulls."""
    if not problem.is_nearest_point:
        raise ValueError(
            f"{name!r} finds the nearest points of the convex hulls of two classes, which is the hard margin or the squared "
            "hinge with a free bias. Use solver='smo'."
        )


class _Hulls:
    """u, v and what is known of them, for the time of a call; ``store`` writes it to the state."""

    def __init__(self, problem: DualProblem, state: NPAState, alpha: np.ndarray | None = None):
        self.problem, self.state = problem, state
        self.hulls = np.array([problem.upper > 0, problem.lower < 0], dtype=np.float64)  # (2, n) which points are whose
        self.own = (problem.lower < 0).astype(int)  # the hull of each point: 0 is U, 1 is V
        self.sign = self.hulls[0] - self.hulls[1]
        # Points of weight zero are in neither: they have no excess.
        self.outside = np.where(self.sign == 0, -np.inf, 0.0)
        self.e_u = state.e_u
        alpha = np.abs(state.beta) if alpha is None else alpha
        scale = 0.5 * float(alpha.sum())
        self.weights = self.hulls * alpha  # (2, n)
        self.largest = float(np.abs(problem.gram.diagonal).max())
        self.diagonal = problem.diagonal
        self._normalise()
        self.f = (problem.target - state.residual) / scale  # the loop may have put right sum and residual
        self._measure()

    def _normalise(self) -> None:
        self.weights /= self.weights.sum(axis=1, keepdims=True)

    @property
    def alpha(self) -> np.ndarray:
        """The weights of all points."""
        return self.weights[0] + self.weights[1]

    def refresh(self) -> None:
        """Compute e_u and f from the data."""
        problem, u, z = self.problem, self.weights[0], self.weights[0] - self.weights[1]
        self.e_u[:] = problem.gram.dot(u) + problem.ridge * u
        self.f = problem.gram.dot(z) + problem.ridge * z
        self.state.numbers[GROWTH] = 1.0
        self._measure()

    def _measure(self) -> None:
        self.zu, self.zv = (float(product) for product in self.weights @ self.f)
        self.square = self.zu - self.zv  # |z|²

    @property
    def meet(self) -> bool:
        """Whether the hulls have a point in common; with a ridge that is for rounding, or an indefinite kernel, to say."""
        return not self.square > (MEET if self.problem.is_hard else UNIT * UNIT) * self.largest

    def store(self) -> None:
        """Write the point to the state, scaled to where D is least."""
        problem, state = self.problem, self.state
        self._normalise()
        least = (MEET if problem.is_hard else UNIT) * self.largest  # where hulls meet no scale is the best
        c = 2.0 / max(self.square, 0.5 * least if self.meet else 0.0, 2.0 / compiled_loops.LARGEST)
        state.beta[:] = c * (self.weights[0] - self.weights[1])
        state.residual[:] = problem.target - c * self.f

    def excess(self) -> np.ndarray:
        """Return how much further towards the other hull every point lies than u or v."""
        return np.array([self.zu, -self.zv]) @ self.hulls - self.sign * self.f + self.outside

    def violation(self, excess: np.ndarray) -> float:
        """Return the KKT violation: support vectors must not lie further off, either."""
        c, nearest, furthest = 2.0 / self.square, [], []
        for hull, weights in zip(self.hulls, self.weights, strict=True):
            nearest.append(float(excess[hull > 0].max()))
            furthest.append(-float(excess[weights > 0].min()))
        return c * (max(nearest[0], furthest[1]) + max(nearest[1], furthest[0]))

    def take_step(self, k: int, excess: np.ndarray) -> bool | None:
        """Go to the shortest z that a way to k and one off from m allow; None if their rows have not come in time.

        Returns whether z is shorter than before.
        """
        problem, integers = self.problem, self.state.integers
        alpha = self.alpha
        support = np.flatnonzero(alpha)
        m = int(support[np.argmin(excess[support])])
        if not compiled_loops.fetch(problem.gram, np.array([k, m])):
            return None
        has_way, is_same = alpha[m] < 1.0 and m != k, bool(self.own[m] == self.own[k])
        x_k, x_m, leaves = self._shortest(k, m, excess) if has_way else self._gilbert(k, excess)
        if not (x_k or x_m):
            return False
        # The row of a k that is new was computed to look at it.
        integers[EVALUATIONS] += (1 if alpha[k] == 0 else 2) * support.size
        share = float(alpha[m] / (1.0 - alpha[m])) * x_m if has_way else 0.0
        if is_same:
            self._combine(k, 1.0 - x_k + share, [(k, x_k), (m, -share)])
        else:
            self._combine(k, 1.0 - x_k, [(k, x_k)])
            self._combine(m, 1.0 + share, [(m, -share)])
        if leaves:
            self.weights[:, m] = 0.0
        self._measure()
        if self.state.numbers[GROWTH] > MAX_GROWTH:
            with limits.unlimited():
                self._normalise()
                self.refresh()
            integers[EVALUATIONS] += support.size**2
        return True

    def _gilbert(self, k: int, excess: np.ndarray) -> tuple[float, float, bool]:
        """Return the step along the line segment to k alone: m is all that its hull has."""
        own, square, _ = self._products(k, float(self.weights[1] @ self.e_u))
        curvature = float(self.diagonal[k]) - 2.0 * own + square
        return (min(1.0, float(excess[k]) / curvature) if curvature > 0 else 1.0), 0.0, False

    def _products(self, i: int, uv: float) -> tuple[float, float, float]:
        """Return the inner product of x_i with the point of its hull, the square of that, and that with the other hull's."""
        e_u, e_v = float(self.e_u[i]), float(self.e_u[i] - self.f[i])
        return (e_v, uv - self.zv, e_u) if self.own[i] else (e_u, self.zu + uv, e_v)

    def _shortest(self, k: int, m: int, excess: np.ndarray) -> tuple[float, float, bool]:
        """Return the steps towards x_k and off from x_m, as shares of the whole ways, and whether m loses its weight.

        Off from m the way ends at (p - alpha_m x_m) / (1 - alpha_m): r = alpha_m / (1 - alpha_m) times p - x_m.
        """
        alpha, uv = float(self.weights[self.own[m], m]), float(self.weights[1] @ self.e_u)
        r, K_km = alpha / (1.0 - alpha), float(self.problem.gram.row(k)[m])
        (own_k, square_k, other_k), (own_m, square_m, other_m) = self._products(k, uv), self._products(m, uv)
        a = float(self.diagonal[k]) - 2.0 * own_k + square_k
        b = r * r * (float(self.diagonal[m]) - 2.0 * own_m + square_m)
        is_same = bool(self.own[m] == self.own[k])
        c = r * (own_k - K_km - square_k + own_m) if is_same else -r * (other_k - K_km - uv + other_m)
        return least_on(a, b, c, -float(excess[k]), r * float(excess[m]), is_triangle=is_same)

    def _combine(self, i: int, factor: float, points: list[tuple[int, float]]) -> None:
        """Multiply the weights of the hull of i, and add those of some points."""
        problem, own = self.problem, self.own[i]
        weights, change = self.weights[own], (factor - 1.0) * (self.e_u - self.f if own else self.e_u)
        weights *= factor
        for j, weight in points:
            if weight:
                change += weight * problem.gram.row(j)
                change[j] += weight * problem.ridge[j]
                weights[j] = max(weights[j] + weight, 0.0)
        if own:
            self.f -= change
        else:
            self.e_u += change
            self.f += change
        self.state.numbers[GROWTH] = max(1.0, self.state.numbers[GROWTH] * factor)


def least_on(a: float, b: float, c: float, g: float, h: float, *, is_triangle: bool) -> tuple[float, float, bool]:
    """Minimise a x² / 2 + b y² / 2 + c x y + g x + h y over x, y >= 0 with x + y <= 1, or with x <= 1 and y <= 1.

    Returns x, y, and whether that is on the far side, where x + y = 1 or y = 1.  Nothing below zero: (0, 0).
    """
    det = a * b - c * c
    if det > 0:
        x, y = (c * h - b * g) / det, (c * g - a * h) / det
        if x > 0 and y > 0 and (x + y < 1 if is_triangle else max(x, y) < 1):
            return x, y, False
    best, place = 0.0, (0.0, 0.0, False)
    edges = [((0.0, 0.0), (1.0, 0.0), False), ((0.0, 0.0), (0.0, 1.0), False)]
    if is_triangle:
        edges.append(((1.0, 0.0), (0.0, 1.0), True))
    else:
        edges += [((0.0, 1.0), (1.0, 1.0), True), ((1.0, 0.0), (1.0, 1.0), False)]
    for (x0, y0), (x1, y1), is_far in edges:
        dx, dy = x1 - x0, y1 - y0
        slope = (a * x0 + c * y0 + g) * dx + (c * x0 + b * y0 + h) * dy
        curvature = a * dx * dx + b * dy * dy + 2.0 * c * dx * dy
        # Without curvature, one end or the other.
        t = min(max(-slope / curvature, 0.0), 1.0) if curvature > 0 else float(slope + 0.5 * curvature < 0)
        x, y = x0 + t * dx, y0 + t * dy
        value = 0.5 * (a * x * x + b * y * y) + c * x * y + g * x + h * y
        if value < best:
            best, place = value, (x, y, is_far or y == 1.0 or (is_triangle and x + y == 1.0))
    return place
