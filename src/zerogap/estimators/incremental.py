"""What a model remembers of its training: the rows, in the order they came, and with two classes the exact solution's free set.

With these, rows can be added and forgotten, or left out one at a time, by a few exchanges from the present solution.
A limit on the way leaves feasible coefficients of the rows there are then, from which the next call goes on.
"""

import threading
import time
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import limits
from zerogap.active_set import ActiveSet, feasible
from zerogap.duplicates import Distinct, distinct
from zerogap.estimators.base import Outcome
from zerogap.gram import Gram
from zerogap.limits import Limit
from zerogap.loop import Status, Trace, TraceRow
from zerogap.problem import DualProblem

# A factor that has seen very many updates is built anew if the certificate shows it.
GOOD_GAP = 1e-11


class Rows(NamedTuple):
    """Rows of data, in the order they came."""

    X: Any  # (n, d), or (n, n) kernel values
    codes: np.ndarray  # (n,) number of the class of each
    weight: np.ndarray  # (n,) sample weight

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
        self.gram: Gram | None = None  # of two classes, until there is ``exact``: kernel values the fit has computed
        self.lock = threading.RLock()  # of the active set and its kernel rows: one thread at a time works with them

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.__dict__.items() if name not in ("lock", "gram")}
        return {**kept, "exact": None}  # kernel values are cheaper to compute than to store

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.gram, self.lock = None, threading.RLock()

    @property
    def coefficients(self) -> np.ndarray:
        """Coefficients over the rows, (pairs of classes, n)."""
        return np.array([self.points.spread(beta) for beta in self.beta])

    def problem(self, model: Any) -> DualProblem:
        """Return the problem of two classes as the model's parameters have it now."""
        if self.exact is None:
            gram = model._gram(self.rows.X, self.points.rows) if self.gram is None else self.gram
            return _problem(model, gram, self.rows, self.points)
        old = self.exact[0]
        problem = _problem(model, old.gram, self.rows, self.points)
        return old if _is_same(old, problem) else problem

    def solve(self, model: Any) -> tuple[DualProblem, ActiveSet]:
        """Return the problem as the model's parameters have it now, and the active set at its optimum.

        At a limit ``Exceeded`` is raised, and the coefficients are nearer to the optimum than before.
        """
        problem = self.problem(model)
        if self.exact is not None and self.exact[0] is problem:
            return self.exact
        active = ActiveSet(problem, feasible(problem, self.beta[0]))
        _optimise(problem, active)
        self.beta, self.exact = active.beta[None], None
        limits.check()
        self.exact, self.gram = (problem, active), None
        return self.exact

    def add(self, model: Any, more: Rows) -> int:
        """Add rows; return how many points entered the free set on the way to the new optimum."""
        rows = self.rows.joined(more)
        points = rows.distinct()
        origin = np.full(points.rows.size, -1)
        origin[points.group[self.points.rows]] = np.arange(self.points.rows.size)
        return self._go(model, rows, points, origin, self._grown)

    def forget(self, model: Any, kept: np.ndarray) -> int:
        """Keep only some of the rows; return how many points entered the free set on the way to the new optimum."""
        rows = self.rows.taken(kept)
        points = rows.distinct()
        return self._go(model, rows, points, self.points.group[kept[points.rows]], self._shrunk)

    def _go(self, model: Any, rows: Rows, points: Distinct, origin: np.ndarray, way: Any) -> int:
        """Go to the optimum of other points, number k of which is our ``origin[k]``, or new where that is -1."""
        entered, exact = 0, None
        try:
            before, active = self.solve(model)
            if active.is_unbounded:  # from coefficients without bound no way leads to another point
                beta = np.zeros(points.rows.size)
            else:
                problem, active, entered = way(model, rows, points, origin, before, active)
                entered += _finish(problem, active)
                beta, exact = active.beta, None if limits.is_over() else (problem, active)
        except limits.Exceeded:
            beta = np.where(origin >= 0, self.beta[0][origin], 0.0)
        self.rows, self.points, self.beta, self.is_growing = rows, points, beta[None], True
        self.exact, self.gram = exact, None
        return entered

    def _grown(
        self, model: Any, rows: Rows, points: Distinct, origin: np.ndarray, before: DualProblem, active: ActiveSet
    ) -> tuple[DualProblem, ActiveSet, int]:
        """First the new points come with weight zero, then all get their weights."""
        weight = np.where(origin >= 0, self.points.weight[origin], 0.0)
        old = _rearranged(model, rows, points._replace(weight=weight), origin, before.gram, active.beta)
        active = active.renumbered(old, origin)
        new = _problem(model, old.gram, rows, points)
        return new, active, active.adapt(old, new)

    def _shrunk(
        self, model: Any, rows: Rows, points: Distinct, origin: np.ndarray, before: DualProblem, active: ActiveSet
    ) -> tuple[DualProblem, ActiveSet, int]:
        """First the weights of what is forgotten go to zero, then the points go."""
        weight = np.zeros(before.n)
        weight[origin] = points.weight
        after = _problem(model, before.gram, self.rows, self.points._replace(weight=weight))
        entered = active.adapt(before, after)
        new = _rearranged(model, rows, points, origin, before.gram, active.beta)
        return new, active.renumbered(new, origin), entered


def _problem(model: Any, gram: Gram, rows: Rows, points: Distinct) -> DualProblem:
    """Return the problem of some points, the second class being the positive one."""
    sign = np.where(rows.codes[points.rows] == 1, 1.0, -1.0)
    return model._problem(gram, sign, model._weighted(rows, points).weight)


def _rearranged(
    model: Any, rows: Rows, points: Distinct, origin: np.ndarray, gram: Gram, beta: np.ndarray
) -> DualProblem:
    """Return the problem of other points, the kernel rows of support vectors carried over."""
    support = np.flatnonzero((origin >= 0) & (beta[origin] != 0))
    return _problem(model, gram.rearranged(rows.X[points.rows], origin, support), rows, points)


def _finish(problem: DualProblem, active: ActiveSet) -> int:
    """Let no rounding of many updates into what follows; return how many points entered meanwhile."""
    active.refresh(problem)
    entered = _optimise(problem, active)
    if not is_good(problem, active) and not active.is_unbounded:
        active.restart(problem)
        entered += _optimise(problem, active)
    return entered


def _optimise(problem: DualProblem, active: ActiveSet) -> int:
    """Go to the optimum, if there is one: rounding may give the margin of inseparable classes a width of its own."""
    entered = active.optimise(problem)
    active.is_unbounded |= problem.is_unbounded(active.beta, active.residual)
    return entered


def is_good(problem: DualProblem, active: ActiveSet) -> bool:
    """Whether the active set is at the optimum, but for rounding; its residual is in step."""
    now = problem.estimate(active.beta, active.residual)
    return now.gap <= GOOD_GAP * abs(now.primal)


def _is_same(a: DualProblem, b: DualProblem) -> bool:
    """Whether two problems on the same points have the same boxes, ridges and constraint."""
    return (
        a.total == b.total
        and np.array_equal(a.lower, b.lower)
        and np.array_equal(a.upper, b.upper)
        and np.array_equal(a.ridge, b.ridge)
    )


def certified(problem: DualProblem, training: Training, entered: int, began: float, tol: float) -> Outcome:
    """Return the point the exchanges have led to with its certificate, computed from the data."""
    beta = feasible(problem, training.beta[0])
    now = problem.certify(beta)
    if now.relative_gap > tol and now.gap <= tol * abs(now.primal):
        now = problem.certify(beta, precisely=True)
    status = Status.of(now, tol)
    if training.exact is not None and training.exact[1].is_unbounded:  # or rounding has led the exchanges astray
        status = Status.UNBOUNDED if problem.may_be_unbounded else Status.STALLED
    row = TraceRow(
        *(entered, time.perf_counter() - began, now.dual, now.kkt_violation, now.relative_gap),
        *(problem.gram.evaluations, int(np.count_nonzero(beta))),
    )
    return Outcome(beta, now.bias, now, status, entered, Trace([row]), problem.gram.evaluations)


def cut_short(limit: Limit) -> Status | None:
    """Return how a limit has ended what was under way, or None if it has not."""
    if limit.was_interrupted:
        return Status.INTERRUPTED
    return Status.MAX_TIME if limit.is_over else None
