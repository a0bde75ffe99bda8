"""What a model remembers of its training: the rows, in the order they came, and the free sets of its exact solution.

With these, rows can be added and forgotten, or left out one at a time, by a few exchanges from the present solution.  A
regression, or two classes, are one problem; of more classes every pair is one, and only those change whose classes do.
A limit on the way leaves feasible coefficients of the rows there are then, from which the next call goes on.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp

from zerogap import limits, validation
from zerogap.active_set import ActiveSet, feasible
from zerogap.duplicates import Distinct, distinct
from zerogap.estimators.base import KernelMachine, Outcome, are_numbers
from zerogap.gram import Gram
from zerogap.kernels import Function, Kernel
from zerogap.limits import Limit
from zerogap.problem import DualProblem
from zerogap.solution import Status, Trace, TraceRow, cut_short

# A factor that has seen very many updates is built anew if the certificate shows it.
GOOD_GAP = 1e-11


class Rows(NamedTuple):
    """Rows of data, in the order they came."""

    X: Any  # (n, d), or (n, n) kernel values
    y: np.ndarray  # (n,) number of the class of each, or its target
    weight: np.ndarray  # (n,) sample weight

    @property
    def codes(self) -> np.ndarray:
        """The number of the class of each row."""
        return self.y

    def joined(self, more: "Rows") -> "Rows":
        """Return these rows and then others."""
        X = sp.vstack([self.X, more.X], format="csr") if sp.issparse(self.X) else np.concatenate([self.X, more.X])
        return Rows(X, np.concatenate([self.y, more.y]), np.concatenate([self.weight, more.weight]))

    def taken(self, kept: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return Rows(self.X[kept], self.y[kept], self.weight[kept])

    def distinct(self) -> Distinct:
        """Return the distinct points."""
        return distinct(self.X, self.y.astype(np.float64), self.weight)


class Piece(NamedTuple):
    """One of the problems that a model is made of."""

    which: np.ndarray  # (k,) its points, numbers among the distinct ones
    target: np.ndarray  # (k,)
    weight: np.ndarray  # (k,)
    cache_size: float  # its share of the memory for kernel rows, in megabytes

    def problem(self, model: Any, gram: Gram) -> DualProblem:
        """Return it as the model's parameters have it now."""
        return model._problem(gram, self.target, self.weight)


class Training:
    """Rows, their distinct points, and coefficients; the problems with their active sets are made when first wanted."""

    def __init__(self, rows: Rows, points: Distinct, beta: np.ndarray):
        self.rows, self.points = rows, points
        self.beta = beta  # (problems, m) over the distinct points
        self.is_growing = False  # whether rows have been added or forgotten since the fit
        self._begin()

    def _begin(self) -> None:
        """Know nothing but the coefficients."""
        self.exact: list[tuple[DualProblem, ActiveSet] | None] = [None] * len(self.beta)
        self.outcomes: list[Outcome | None] = [None] * len(self.beta)  # of the fit, or of what is ``exact``
        self.grams: list[Gram | None] = [None] * len(self.beta)  # until there is ``exact``
        self.whole: Any = None  # kernel values of all points that a fit has computed
        self.evaluations = 0  # kernel values computed for several problems at once
        self.lock = threading.RLock()  # of the active sets and their kernel rows: one thread at a time changes them

    def __getstate__(self) -> dict[str, Any]:
        # Kernel values are cheaper to compute than to store.
        return {name: getattr(self, name) for name in ("rows", "points", "beta", "is_growing")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # The problems.

    def pieces(self, model: Any) -> list[Piece]:
        """Return the problems as the model has them now."""
        weight, pieces = model._weighted(self.rows, self.points).weight, model._pieces(self.rows, self.points)
        squares = float(sum(which.size**2 for which, _ in pieces))
        share = model.cache_size / squares
        return [Piece(which, target, weight[which], share * which.size**2) for which, target in pieces]

    def lay_out(self, model: Any, pieces: list[Piece]) -> None:
        """Give problems that are not yet there their kernel matrices, if memory holds all: then they are parts of one."""
        missing = [k for k, exact in enumerate(self.exact) if exact is None and self.grams[k] is None]
        whole, self.whole = self.whole, None
        holds_all = 8e-6 * sum(piece.which.size**2 for piece in pieces) <= model.cache_size
        if whole is None and holds_all and len(missing) > 1 and 2 * len(missing) >= len(pieces):
            whole = model._whole_gram(self.rows, self.points)
            self.evaluations += 0 if whole is None else whole.gram.evaluations
        if whole is not None and holds_all:
            for k in missing:
                self.grams[k] = whole.of(pieces[k].which)

    def _gram(self, model: Any, k: int, piece: Piece) -> Gram:
        gram = self.grams[k]
        if gram is None:
            gram = self.grams[k] = model._gram(self.rows.X, self.points.rows[piece.which], piece.cache_size)
        return gram

    def problem(self, model: Any, k: int, piece: Piece) -> DualProblem:
        """Return one of the problems as the model's parameters have it now."""
        exact = self.exact[k]
        if exact is None:
            return piece.problem(model, self._gram(model, k, piece))
        problem = piece.problem(model, exact[0].gram)
        return exact[0] if _is_same(exact[0], problem) else problem

    def solve(self, model: Any, k: int, piece: Piece) -> tuple[DualProblem, ActiveSet]:
        """Return one of the problems as the model's parameters have it now, and the active set at its optimum.

        At a limit ``Exceeded`` is raised, and the coefficients are nearer to the optimum than before.
        """
        problem, exact = self.problem(model, k, piece), self.exact[k]
        if exact is not None and exact[0] is problem:
            return exact
        active = ActiveSet(problem, feasible(problem, self.beta[k, piece.which]))
        _optimise(problem, active)
        self.beta[k, piece.which] = active.beta
        self.exact[k], self.grams[k], self.outcomes[k] = None, problem.gram, None
        limits.check()
        self.exact[k], self.grams[k] = (problem, active), None
        return problem, active

    # Changes.

    def add(self, model: Any, more: Rows) -> list[Outcome]:
        """Add rows; return the outcomes at the new optimum."""
        rows = self.rows.joined(more)
        points = rows.distinct()
        origin = np.full(points.rows.size, -1)
        origin[points.group[self.points.rows]] = np.arange(self.points.rows.size)
        return self._go(model, rows, points, origin)

    def forget(self, model: Any, kept: np.ndarray) -> list[Outcome]:
        """Keep only some of the rows; return the outcomes at the new optimum."""
        rows = self.rows.taken(kept)
        points = rows.distinct()
        return self._go(model, rows, points, self.points.group[kept[points.rows]])

    def finish(self, model: Any) -> list[Outcome]:
        """Go from a fit to the last digits; what it has been told of a problem without bound, or at a limit, stays."""
        pieces, fitted = self.pieces(model), [outcome for outcome in self.outcomes if outcome is not None]
        self.lay_out(model, pieces)

        def work(k: int, limit: Limit, began: float) -> Outcome:
            if fitted[k].status is Status.UNBOUNDED or limit.is_over:
                return fitted[k]
            return self._certified(model, k, pieces[k], fitted[k].n_iter, limit, began)

        return _each(model, work, [outcome.trace["seconds"].max(initial=0.0) for outcome in fitted])

    def _go(self, model: Any, rows: Rows, points: Distinct, origin: np.ndarray) -> list[Outcome]:
        """Go to the optimum of other points, number k of which is our ``origin[k]``, or new where that is -1."""
        new = Training(rows, points, np.zeros((len(self.beta), points.rows.size)))
        before, after = self.pieces(model), new.pieces(model)
        self.evaluations = 0  # those of this change are counted
        for exact in self.exact:
            if exact is not None:
                exact[0].gram.evaluations = 0
        self.lay_out(model, before)

        def work(k: int, limit: Limit, began: float) -> Outcome:
            place = np.full(self.points.rows.size, -1)
            place[before[k].which] = np.arange(before[k].which.size)
            own = origin[after[k].which]
            entered = new._follow(model, k, after[k], self, before[k], np.where(own >= 0, place[own], -1))
            return new._certified(model, k, after[k], entered, limit, began)

        outcomes = _each(model, work, [0.0] * len(after))
        new.lock, new.is_growing, new.evaluations = self.lock, True, self.evaluations
        self.__dict__ = new.__dict__
        return outcomes

    def _follow(self, model: Any, k: int, piece: Piece, old: "Training", before: Piece, origin: np.ndarray) -> int:
        """Go from the optimum of a problem of other rows to ours; return how many points entered the free set."""
        try:
            problem, active = old.solve(model, k, before)
            if _are_same(before, piece, origin):
                last = old.outcomes[k]
                self.exact[k], self.outcomes[k] = old.exact[k], last
                self.beta[k, piece.which] = (
                    active.beta if last is None else last.beta
                )  # what was certified, to the last digit
                return 0
            old.exact[k] = None  # its active set is about to move
            if active.is_unbounded:  # from coefficients without bound no way leads to another point
                return 0
            X = self.rows.X[self.points.rows[piece.which]]
            problem, active, entered = _moved(model, X, problem, active, before, piece, origin)
            entered += _finish(problem, active)
        except limits.Exceeded:
            self.beta[k, piece.which] = np.where(origin >= 0, old.beta[k, before.which][origin], 0.0)
            return 0
        self.beta[k, piece.which] = active.beta
        self.exact[k] = None if limits.is_over() else (problem, active)
        return entered

    def _certified(self, model: Any, k: int, piece: Piece, entered: int, limit: Limit, began: float) -> Outcome:
        """Return the exact solution of one of the problems, or at a limit the point reached."""
        try:
            problem, active = self.exact[k] or self.solve(model, k, piece)  # what has just been followed is of now
            is_unbounded, last = active.is_unbounded, self.outcomes[k]
        except limits.Exceeded:
            with limits.unlimited():
                problem, is_unbounded, last = self.problem(model, k, piece), False, None
        if last is not None and last.status is Status.of(last.certificate, model.tol):
            return replace(last, n_iter=entered, kernel_evaluations=0)
        with limits.unlimited():
            outcome = certified(problem, self.beta[k, piece.which], is_unbounded, entered, began, model.tol)
        if outcome.status is Status.STALLED:
            status = cut_short(limit)
            outcome = replace(outcome, status=status) if status else self._solved(model, k, problem, outcome)
        self.beta[k, piece.which], self.outcomes[k] = outcome.beta, outcome
        return outcome

    def _solved(self, model: Any, k: int, problem: DualProblem, last: Outcome) -> Outcome:
        """Return a solver's solution: rounding has led the exchanges astray, and it goes on from where they ended."""
        solution = model._solve(problem, last.beta if np.isfinite(last.certificate.gap) else None, "exchanges")
        if solution.status is Status.STALLED:
            solution = model._solve(problem, None, "exchanges")
        self.exact[k], self.grams[k] = None, problem.gram
        return Outcome.of(solution)


def _each(model: Any, work: Callable[[int, Limit, float], Outcome], spent: list[float]) -> list[Outcome]:
    """Return ``work`` of every problem, each within the model's limit less the seconds that were spent on it before."""

    def one(k: int) -> Outcome:
        began = time.perf_counter() - spent[k]
        with limits.limits(model._time_left(began)) as limit, np.errstate(over="ignore", invalid="ignore"):
            return work(k, limit, began)

    return model._each(one, len(spent))


def _are_same(before: Piece, after: Piece, origin: np.ndarray) -> bool:
    """Whether a problem has the same points as before, with the same weights."""
    return np.array_equal(origin, np.arange(before.which.size)) and np.array_equal(before.weight, after.weight)


def _moved(
    model: Any, X: Any, problem: DualProblem, active: ActiveSet, before: Piece, after: Piece, origin: np.ndarray
) -> tuple[DualProblem, ActiveSet, int]:
    """Take an active set to the optimum of other points X, number k of which is ``origin[k]``, or new where that is -1.

    First the weights of what is forgotten go to zero, then the points go; and new points come with weight zero, then all get
    their weights.
    """
    is_old, entered = origin >= 0, 0
    weight = np.zeros(before.weight.size)
    weight[origin[is_old]] = after.weight[is_old]
    if (weight < before.weight).any():
        entered = active.adapt(problem, before._replace(weight=weight).problem(model, problem.gram))
    else:
        weight = before.weight
    support = np.flatnonzero(is_old & (active.beta[origin] != 0))
    gram = problem.gram.rearranged(X, origin, support, after.cache_size)
    gram.evaluations += problem.gram.evaluations
    present = np.where(is_old, weight[origin], 0.0)
    problem = after._replace(weight=present).problem(model, gram)
    active = active.renumbered(problem, origin)
    if np.array_equal(present, after.weight):
        return problem, active, entered
    final = after.problem(model, gram)
    return final, active, entered + active.adapt(problem, final)


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
    if not active.is_unbounded and problem.is_unbounded(active.beta, active.residual):
        active.is_unbounded = not problem.has_margin(problem.certify(active.beta))
    return entered


def is_good(problem: DualProblem, active: ActiveSet) -> bool:
    """Whether the active set is at the optimum, but for rounding; its residual is in step."""
    now = problem.estimate(active.beta, active.residual)
    return now.gap <= GOOD_GAP * abs(now.primal)


def _is_same(a: DualProblem, b: DualProblem) -> bool:
    """Whether two problems on the same points have the same targets, boxes, ridges, tube and constraint."""
    return (
        a.total == b.total
        and a.eps == b.eps
        and np.array_equal(a.target, b.target)
        and np.array_equal(a.lower, b.lower)
        and np.array_equal(a.upper, b.upper)
        and np.array_equal(a.ridge, b.ridge)
    )


def certified(
    problem: DualProblem,
    beta: np.ndarray,
    is_unbounded: bool,
    entered: int,
    began: float,
    tol: float,
) -> Outcome:
    """Return the point the exchanges have led to with its certificate, computed from the data."""
    beta = feasible(problem, beta)
    now = problem.certify(beta)
    if now.relative_gap > tol and now.gap <= tol * abs(now.primal):
        now = problem.certify(beta, precisely=True)
    if now.relative_gap > tol and not problem.total:  # what exchanges leave where none is needed is rounding
        idle = problem.certify(np.zeros(beta.size))
        beta, now = (np.zeros(beta.size), idle) if idle.is_zero else (beta, now)
    status = Status.of(now, tol)
    if is_unbounded and not problem.has_margin(now):  # or rounding has led the exchanges astray
        status = Status.UNBOUNDED if problem.may_be_unbounded else Status.STALLED
    row = TraceRow(
        *(entered, time.perf_counter() - began, now.dual, now.kkt_violation, now.relative_gap),
        *(problem.gram.evaluations, int(np.count_nonzero(beta))),
    )
    return Outcome(beta, now.bias, now, status, entered, Trace([row]), problem.gram.evaluations)


def check_can_change(model: Any) -> bool:
    """Whether rows can come and go; scikit-learn shows the reason with its error that there is no such method."""
    if model._is_precomputed:
        raise AttributeError(
            "With kernel='precomputed' rows cannot be added or forgotten: the model has kernel values, not points. Pass the "
            "points and their kernel, or fit the model to the matrix of the rows you want."
        )
    return True


class Incremental(KernelMachine):
    """Base of the estimators whose training rows may come and go."""

    _training: Training | None

    # What an estimator has to say of its problems.

    def _pieces(self, rows: Rows, points: Distinct) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return of each problem which of the distinct points are its own, and their targets."""
        raise NotImplementedError

    def _problem(self, gram: Gram, target: np.ndarray, weight: np.ndarray) -> DualProblem:
        raise NotImplementedError

    def _weighted(self, rows: Rows, points: Distinct) -> Distinct:
        """Return the points with all that is part of their weight."""
        return points

    def _whole_gram(self, rows: Rows, points: Distinct) -> Any:
        """Return a matrix of all points of which ``of(points)`` is a part, if memory holds it and several need it."""
        return None

    def _each(self, work: Callable[[int], Any], count: int) -> list[Any]:
        """Return ``work(k)`` for k up to a count."""
        return [work(k) for k in range(count)]

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, keep_gram: bool = False) -> Any:
        raise NotImplementedError

    def _take(self, training: Training, outcomes: list[Outcome]) -> None:
        """Take over the coefficients of the training, and what is known of them."""
        raise NotImplementedError

    # Exact changes of a fitted model.

    def _first_fit(self, X: Any, y: Any, sample_weight: Any, max_time: float | None) -> Any:
        """Fit, then go to the last digits."""
        with limits.limits(max_time), np.errstate(over="ignore", invalid="ignore"):
            self._become(self._twin()._fit(X, y, sample_weight, keep_gram=True))
            training = self._kept_training()
            training.is_growing = True
            return self._change(training, training.finish)

    def _change(self, training: Training, change: Callable[[Any], list[Outcome]]) -> Any:
        """Let the exact solution follow a change of the rows."""
        with training.lock, limits.limits(self.max_time if len(training.beta) == 1 else None):
            outcomes, new = change(self), self._twin()
            new._take(training, outcomes)
            new.kernel_evaluations_ += training.evaluations
            training.evaluations = 0
            self._become(new)
        self._warn(outcomes)
        return self

    def _check_forgotten(self, training: Training, indices: Any) -> np.ndarray:
        """Return the rows that are left without some."""
        n = training.rows.weight.size
        return np.setdiff1d(np.arange(n), validation.check_indices("indices", indices, n))

    def _check_more(self, X: Any) -> None:
        """Refuse points that ``partial_fit`` cannot take, though ``fit`` with a function as kernel does."""
        is_function = isinstance(self._asked_kernel(), Function)
        if self._objects is not None or (is_function and not are_numbers(X)):
            self._refuse_objects()

    def _refuse_objects(self) -> NoReturn:
        raise ValueError(
            "Points that are no rows of numbers, such as texts, cannot come, go or be left out one by one: only fit takes "
            "them. Fit the model to the points you want; for leave_one_out fit it with kernel='precomputed' to the matrix "
            "of their kernel values."
        )

    def _kept_training(self) -> Training:
        """Return what the model remembers of its training."""
        if self._objects is not None:
            self._refuse_objects()
        training = getattr(self, "_training", None)
        if training is None:
            raise ValueError(
                "This model no longer holds its training rows: it was loaded from a file, or not made by fit. Fit it again."
            )
        asked = self._asked_kernel()
        if not _may_be(asked, self._kernel):
            raise ValueError(
                f"kernel was changed since the model was fitted: it has {self._kernel!r}, and is asked for {asked!r}. "
                "Fit it again."
            )
        return training

    def __getstate__(self) -> Any:
        """A model of ``fit`` alone is stored without its training rows; one that has grown keeps them, to grow further."""
        state = dict(super().__getstate__())
        training = state.get("_training")
        if training is not None and not training.is_growing:
            state["_training"] = None
        return state


def _may_be(asked: Kernel, fitted: Kernel) -> bool:
    """Whether a fitted kernel is one the parameters ask for; a gamma that has a name was computed once, and stays."""
    values = {name: getattr(asked, name, None) for name in ("gamma", "degree", "coef0")}
    given = {name: value for name, value in values.items() if value is not None and not isinstance(value, str)}
    return type(asked) is type(fitted) and all(getattr(fitted, name) == value for name, value in given.items())
