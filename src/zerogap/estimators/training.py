"""What a model remembers of its training: the rows, in the order they came, and with two classes the exact solution's free set.

With these, rows can be added and forgotten, or left out one at a time, by a few exchanges from the present solution.
"""

import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap.active_set import ActiveSet
from zerogap.distinct import Distinct, distinct
from zerogap.gram import Gram
from zerogap.loop import Look, Solution, Status, Trace
from zerogap.problem import DualProblem

# A factor that has seen very many updates is built anew if the certificate shows it.
GOOD_GAP = 1e-11


class Rows(NamedTuple):
    """Rows of data, in the order they came."""

    X: Any  # (n, d), or (n, n) kernel values
    codes: np.ndarray  # (n,) number of the class of each
    weight: np.ndarray  # (n,) sample weight times class weight

    def joined(self, more: "Rows") -> "Rows":
        """Return these rows and then others."""
        X = sp.vstack([self.X, more.X], format="csr") if sp.issparse(self.X) else np.concatenate([self.X, more.X])
        return Rows(X, np.concatenate([self.codes, more.codes]), np.concatenate([self.weight, more.weight]))

    def taken(self, kept: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.X[kept], self.codes[kept], self.weight[kept])

    def distinct(self) -> Distinct:
        """Return the distinct points."""
        return distinct(self.X, self.codes.astype(np.float64), self.weight)


class Training:
    """Rows, their distinct points, and coefficients; with two classes the problem and active set, made when first wanted."""

    def __init__(self, rows: Rows, points: Distinct, beta: np.ndarray):
        self.rows, self.points = rows, points
        self.beta = beta  # (pairs of classes, m) over the distinct points
        self.is_growing = False  # whether rows have been added or forgotten since the fit
        self.exact: tuple[DualProblem, ActiveSet] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "exact": None}  # kernel values are cheaper to compute than to store

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients over the rows, (pairs of classes, n)."""
        return np.array([self.points.spread(beta) for beta in self.beta])

    @property
    def sign(self) -> np.ndarray:
        """-1/+1 for each distinct point."""
        return np.where(self.rows.codes[self.points.rows] == 1, 1.0, -1.0)

    def solve(self, model: Any) -> tuple[DualProblem, ActiveSet]:
        """Return the problem as the model's parameters have it now, and the active set at its optimum."""
        if self.exact is None:
            problem = model._problem(model._gram(self.rows.X, self.points.rows), self.sign, self.points.weight)
        else:
            old, active = self.exact
            problem = model._problem(old.gram, self.sign, self.points.weight)
            if _is_same(old, problem):
                return self.exact
        active = ActiveSet(problem, problem.feasible(self.beta[0]))
        active.optimise(problem)
        self.exact = problem, active
        return self.exact

    def _start_over(self, rows: Rows, points: Distinct) -> int:
        """Forget the solution: from coefficients without bound no way leads to another."""
        self.rows, self.points, self.beta, self.exact = rows, points, np.zeros((1, points.rows.size)), None
        self.is_growing = True
        return 0

    def add(self, model: Any, more: Rows) -> int:
        """Add rows; return how many points entered the free set on the way to the new optimum."""
        before, active = self.solve(model)
        rows = self.rows.joined(more)
        points = rows.distinct()
        if active.is_unbounded:
            return self._start_over(rows, points)
        origin = np.full(points.rows.size, -1)
        origin[points.group[self.points.rows]] = np.arange(self.points.rows.size)
        weight = np.where(origin >= 0, self.points.weight[origin], 0.0)
        old = self._rearranged(model, rows, points, origin, before.gram, active.beta, weight)
        active = active.renumbered(old, origin)
        self.rows, self.points = rows, points
        new = model._problem(old.gram, self.sign, points.weight)
        return self._finish(new, active, active.adapt(old, new))

    def forget(self, model: Any, kept: np.ndarray) -> int:
        """Keep only some of the rows; return how many points entered the free set on the way to the new optimum."""
        before, active = self.solve(model)
        rows = self.rows.taken(kept)
        points = rows.distinct()
        if active.is_unbounded:
            return self._start_over(rows, points)
        origin = self.points.group[kept[points.rows]]
        weight = np.zeros(before.n)
        weight[origin] = points.weight
        after = model._problem(before.gram, self.sign, weight)
        entered = active.adapt(before, after)
        new = self._rearranged(model, rows, points, origin, before.gram, active.beta, points.weight)
        active = active.renumbered(new, origin)
        self.rows, self.points = rows, points
        return self._finish(new, active, entered + active.optimise(new))

    def _rearranged(
        self,
        model: Any,
        rows: Rows,
        points: Distinct,
        origin: np.ndarray,
        gram: Gram,
        beta: np.ndarray,
        weight: np.ndarray,
    ) -> DualProblem:
        """Return the problem of other points with given weights, the kernel rows of support vectors carried over."""
        support = np.flatnonzero((origin >= 0) & (beta[origin] != 0))
        sign = np.where(rows.codes[points.rows] == 1, 1.0, -1.0)
        return model._problem(gram.rearranged(rows.X[points.rows], origin, support), sign, weight)

    def _finish(self, problem: DualProblem, active: ActiveSet, entered: int) -> int:
        """Let no rounding of many updates into what follows."""
        active.refresh(problem)
        entered += active.optimise(problem)
        if problem.certify(active.beta, active.residual).relative_gap > GOOD_GAP and not active.is_unbounded:
            active = ActiveSet(problem, problem.feasible(active.beta))
            entered += active.optimise(problem)
        self.exact, self.beta, self.is_growing = (problem, active), active.beta[None], True
        return entered


def _is_same(a: DualProblem, b: DualProblem) -> bool:
    """Whether two problems on the same points have the same boxes, ridges and constraint."""
    return (
        a.total == b.total
        and np.array_equal(a.lower, b.lower)
        and np.array_equal(a.upper, b.upper)
        and np.array_equal(a.ridge, b.ridge)
    )


def certified(problem: DualProblem, active: ActiveSet, entered: int, began: float, tol: float) -> Solution:
    """Return the active set's point with its certificate, computed from the data."""
    from zerogap.solvers.simple_svm import SimpleSVM  # here, so that a model that only fits need not load it

    beta = problem.settle(active.beta.copy())
    now = problem.certify(beta)
    status = Status.CONVERGED if now.relative_gap <= tol else Status.STALLED
    if active.is_unbounded:
        status = Status.UNBOUNDED
    look = Look(
        *(entered, time.perf_counter() - began, now.dual, now.kkt_violation, now.relative_gap),
        *(problem.gram.evaluations, int(np.count_nonzero(beta))),
    )
    return Solution(beta, now.bias, now, status, entered, Trace([look]), problem, SimpleSVM("worst"), None)
