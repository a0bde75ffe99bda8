"""DirectSVM (Roobaert, 2000), as ssvm describes it in §I-A: the worst violator becomes a support vector, and none ever leaves.

Symbols: S, the candidates; the plane of S is the one on which every candidate has y f = 1, whatever the signs of its alpha:
(K + diag(ridge))_SS beta_S + bias = t_S with sum(beta_S) = 0.

It begins with the closest pair of opposite classes.  While a point violates its margin, the one that does so most joins S, and
the plane turns to it.  Where the system has no solution (the dimension of the space is exceeded), or no point is left to join
and some alpha is negative, it begins again with the next closest pair.

Nothing is pruned, so a plane without violators may have negative alphas, which is no optimum: the algorithm cannot tell, the
certificate does.  A point of the dual has no negative alphas.  The state holds the best one met: the plane's own, or, where
some are negative, the plane's with those at zero, the sum restored and the whole scaled to the least D.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.metrics import pairwise_distances

from zerogap import limits, validation
from zerogap.active_set import typical_size
from zerogap.free_system import FreeSystem
from zerogap.problem import DualProblem
from zerogap.solvers import compiled_loops
from zerogap.solvers.base import Info
from zerogap.solvers.npa import check_hulls

VALUES_AT_ONCE = 4_000_000  # distances between two questions whether the limit is over
WORK_PER_STEP = 100_000_000  # multiplications after which a step comes back


class Plane:
    """The candidates and their plane; it changes in place."""

    def __init__(self, problem: DualProblem, pairs: np.ndarray):
        self.pairs, self.next_pair = pairs, 0  # (p, 2) closest pairs of opposite classes, and which comes next
        self.system = FreeSystem(typical_size(problem.diagonal))
        self.residual = np.zeros(problem.n)  # of the plane's coefficients, negative alphas included
        self.bias = 0.0
        self.is_stale = True  # whether points have joined since it was computed
        self.has_signs = False  # whether no alpha is negative
        self.hulls_meet = False  # whether a pair is the same point twice
        self.evaluations = 0

    def join(self, problem: DualProblem, i: int, row: np.ndarray) -> bool:
        """Add a candidate, unless there is no plane with it and the others; return whether it was added."""
        self.evaluations += self.system.size + 1
        return self.system.insert(i, row[self.system.points], float(problem.diagonal[i]))


class DirectState(NamedTuple):
    """The best point of the dual that was met, and the plane; arrays are updated in place."""

    beta: np.ndarray  # (n,) feasible point
    residual: np.ndarray  # (n,) t - (K + diag(ridge)) beta
    plane: Plane

    @property
    def evaluations(self) -> int:
        """Kernel values that the algorithm has asked for: (n - |S|) |S| for each search, |S| + 1 for a point that joins."""
        return self.plane.evaluations


@dataclass(frozen=True)
class DirectSVM:
    """Let the worst violator join the candidates until none is left, for hard margins and the squared hinge.

    ``tolerance`` is what counts as a violation at first; it is tightened when the stopping rule asks for more.  ``pairs`` is
    the number of closest pairs to begin with, one after the other.  An iteration is a point that joins, or a pair to begin
    anew.  A plane without violators ends the run; it cannot promise the optimum: the certificate says what was reached.

    Attributes
    ----------
    tolerance : float
        The violation that is let pass at first.
    pairs : int
        Closest pairs to begin with, one after the other.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import DirectSVM
    >>> problem = DualProblem.squared_hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, DirectSVM()).status.name
    'CONVERGED'
    """

    tolerance: float = 1e-3
    pairs: int = 10

    def __post_init__(self) -> None:
        validation.check_positive("tolerance", self.tolerance, advice="It is the violation that is let pass at first.")
        validation.check_count("pairs", self.pairs, advice="They are the closest pairs to begin with.")

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> DirectState:
        """Begin with the closest pair; beta is the point to improve on."""
        check_hulls(problem, "direct-svm")
        best = problem.feasible_start() if beta is None else np.array(beta, dtype=np.float64)
        state = DirectState(best, problem.residual(best), Plane(problem, closest_pairs(problem, self.pairs)))
        if _begin(problem, state.plane):
            _turn(problem, state, self.tolerance)
            state.residual[:] = problem.residual(state.beta)  # the loop takes that of a start for fresh
        return state

    def step(
        self, problem: DualProblem, state: DirectState, max_steps: int, kkt_target: float
    ) -> tuple[DirectState, Info]:
        """Let up to ``max_steps`` points join, or until no point violates its margin by more than ``kkt_target`` / 2."""
        plane, moved, work = state.plane, 0, 0
        if not plane.system.size:  # no pair is left
            is_unbounded = plane.hulls_meet and problem.is_hard
            return state, Info(0, is_done=True, is_own_rule=True, is_unbounded=is_unbounded)
        if plane.is_stale:
            _turn(problem, state, self.tolerance)
        while moved < max_steps and work < WORK_PER_STEP and not limits.is_over():
            if plane.hulls_meet and problem.is_hard:
                return state, Info(moved, is_unbounded=True)
            tolerance = max(min(self.tolerance, 0.5 * kkt_target), 4.0 * problem.rounding(state.beta))
            i, violation = _worst(problem, plane)
            is_used_up = violation == -np.inf
            if violation <= tolerance and (plane.has_signs or not is_used_up):
                return state, Info(moved, is_done=True, is_own_rule=True)
            if not compiled_loops.fetch(problem.gram, np.array([i])):
                break
            has_joined = not is_used_up and plane.join(problem, i, problem.gram.row(i))
            plane.is_stale = True
            if not has_joined or not _turn(problem, state, self.tolerance):
                if not _begin(problem, plane):
                    return state, Info(moved, is_done=True, is_own_rule=True)
                _turn(problem, state, self.tolerance)
            moved, work = moved + 1, work + 2 * problem.n * plane.system.size
        return state, Info(moved)

    def __str__(self) -> str:
        return "direct-svm"


def _begin(problem: DualProblem, plane: Plane) -> bool:
    """Take the next closest pair for candidates; return whether there is one that makes a plane."""
    while plane.next_pair < len(plane.pairs):
        i, j = (int(point) for point in plane.pairs[plane.next_pair])
        plane.next_pair += 1
        plane.system.clear()
        row = np.zeros(problem.n)
        row[i] = problem.gram.values(i, np.array([j]))[0]
        plane.join(problem, i, row)
        if plane.join(problem, j, row):
            return True
        plane.hulls_meet = True
    plane.system.clear()
    return False


def _worst(problem: DualProblem, plane: Plane) -> tuple[int, float]:
    """Return the point outside the candidates that violates its margin most, 1 - y f, and by how much; -inf if none is left."""
    S = plane.system.points
    violation = problem.target * (plane.residual - plane.bias)
    violation[(problem.upper == 0) & (problem.lower == 0)] = -np.inf  # of weight zero
    violation[S] = -np.inf
    plane.evaluations += (problem.n - S.size) * S.size
    i = int(np.argmax(violation))
    return i, float(violation[i])


def _turn(problem: DualProblem, state: DirectState, tolerance: float) -> bool:
    """Compute the plane of the candidates, and from it a point of the dual; keep the better one.

    Returns whether the candidates have margin 1: of a system that is singular but for rounding there is a solution, no plane.
    """
    plane = state.plane
    S = plane.system.points
    beta = np.zeros(problem.n)
    beta[S], plane.bias = plane.system.solve_one(problem.target[S])
    plane.residual[:] = problem.residual(beta)
    plane.is_stale = False
    residual, inside = plane.residual, problem.feasible(beta)
    plane.has_signs = bool((np.sign(beta) == np.sign(inside)).all())
    if not plane.has_signs:  # else all that may differ is the last digit of the sum
        residual = problem.residual(inside)
        gain, curvature = float(problem.target @ inside), float(inside @ (problem.target - residual))
        scale = gain / curvature if curvature > 0 else 1.0
        inside, residual = scale * inside, problem.target - scale * (problem.target - residual)
    is_finite = bool(np.isfinite(inside).all() and np.isfinite(residual).all())
    if is_finite and problem.objective(inside, residual) < problem.objective(state.beta, state.residual):
        state.beta[:], state.residual[:] = inside, residual
    return bool((np.abs(plane.residual[S] - plane.bias) <= tolerance).all())


def closest_pairs(problem: DualProblem, count: int) -> np.ndarray:
    """Return the closest pairs of opposite classes in feature space, closest first: (count, 2), fewer if there are not so many.

    For a radial kernel they are the closest in input space, and no kernel value is needed (§II-A).
    """
    rising, falling = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
    gram, found, distances = problem.gram, np.empty((0, 2), dtype=np.int64), np.empty(0)
    at_once = max(1, VALUES_AT_ONCE // falling.size)
    for start in range(0, rising.size, at_once):
        if start and limits.is_over():  # any pairs will do
            break
        chunk = rising[start : start + at_once]
        if gram.kernel.is_radial:
            squares = pairwise_distances(gram.X[chunk], gram.X[falling]) ** 2
        else:
            squares = gram.diagonal[chunk][:, None] + gram.diagonal[falling] - 2.0 * gram.block(chunk)[:, falling]
        flat = squares.ravel()
        nearest = np.argpartition(flat, count - 1)[:count] if flat.size > count else np.arange(flat.size)
        pairs = np.column_stack([chunk[nearest // falling.size], falling[nearest % falling.size]])
        found, distances = np.concatenate([found, pairs]), np.concatenate([distances, flat[nearest]])
        order = np.argsort(distances, kind="stable")[:count]
        found, distances = found[order], distances[order]
    return found
