"""Exact leave-one-out: what the model would say of each training row had it not seen that row.

A row that is no support vector changes nothing.  For every other one its coefficient is driven to zero from the present
solution, the free points following, and the few points that break the optimality conditions on the way are exchanged.
Of several classes only the pairs change that the row's class is one of.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.multiclass import _ovr_decision_function
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.active_set import ActiveSet
from zerogap.estimators.incremental import Incremental, Piece, Training, is_good
from zerogap.estimators.pairs import pairs_of
from zerogap.estimators.svc import SVC
from zerogap.estimators.svr import SVR
from zerogap.limits import Exceeded, check, limits
from zerogap.loop import solve
from zerogap.problem import DualProblem
from zerogap.solution import Status, cut_short
from zerogap.stopping import RelativeGap

GAP, MOST_STEPS = 1e-9, 1_000_000  # of the solver that takes over where exchanges lead nowhere
INSIDE = 1e-9  # of the largest coefficient: one that is nearer to an end of its box may be there but for rounding


@dataclass(frozen=True)
class LeaveOneOut:
    """Decision values and predictions for each row of the model without that row.

    If a limit has ended it, rows it did not come to have the decision value NaN and the prediction None; NaN of a regression.

    Attributes
    ----------
    decision_values : array of shape (n,) or (n, k)
        As the model's ``decision_function`` has them, or of a regression f(x) itself.
    predictions : array of shape (n,)
        Labels, or f(x).
    error : float
        Share of the rows, of those there is a prediction for, whose prediction is not their label; of a regression the mean
        of the absolute errors.
    status : Status
        CONVERGED, or the limit that has ended it.

    Examples
    --------
    >>> from zerogap import SVC, datasets, leave_one_out
    >>> X, y = datasets.spiral(40, random_state=0)
    >>> leave_one_out(SVC().fit(X, y)).decision_values.shape
    (40,)
    """

    decision_values: np.ndarray
    predictions: np.ndarray
    error: float
    status: Status = Status.CONVERGED

    @property
    def _n_done(self) -> int:
        """Number of rows there is a decision value for."""
        values = self.decision_values.reshape(len(self.decision_values), -1)
        return int(np.count_nonzero(~np.isnan(values).any(axis=1)))

    def __repr__(self) -> str:
        done, n = self._n_done, len(self.decision_values)
        return f"LeaveOneOut(error {self.error:.6g} over {done} rows{'' if done == n else f' of {n}'})"

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_leave_one_out

        return of_leave_one_out(self)


def leave_one_out(model: SVC | SVR, *, max_time: float | None = None) -> LeaveOneOut:
    """Return, for each training row of a fitted SVC or SVR, the decision value of the exact model without it.

    All else is as the model's parameters have it now, so that a C changed by ``set_params`` since the fit counts; the number
    gamma stands for stays, and so do the weights of the classes.  Where a row is the only one of its class, its decision value
    is infinite, for the other class: no model is left of the two.  Rows of weight zero were never seen.

    Parameters
    ----------
    model : SVC or SVR
        Fitted.
    max_time : float, optional
        Limit in seconds, as the model's own is, which holds for each pair of classes; at a limit, or Ctrl-C, the rows done so
        far are returned.

    Returns
    -------
    LeaveOneOut
        Decision values, predictions and the error.

    Examples
    --------
    >>> from zerogap import SVC, datasets, leave_one_out
    >>> X, y = datasets.spiral(40, random_state=0)
    >>> 0.0 <= leave_one_out(SVC(C=10.0).fit(X, y)).error <= 1.0
    True
    """
    training = _checked(model)
    validation.check_max_time(max_time)
    own = None if model.max_time is None else model.max_time * len(training.beta)
    with training.lock, limits(own), limits(max_time) as limit:
        values = np.full((training.rows.y.size, len(training.beta)), np.nan)
        with suppress(Exceeded), np.errstate(over="ignore", invalid="ignore"):
            _fill(values, model, training)
        status = cut_short(limit) if np.isnan(values).any() else None
    found, status = ~np.isnan(values).any(axis=1), status or Status.CONVERGED
    result = _regressed if isinstance(model, SVR) else _classified
    if status is not Status.CONVERGED:
        warnings.warn(
            f"leave_one_out stopped after {found.sum()} of {found.size} rows: "
            f"{'interrupted' if status is Status.INTERRUPTED else 'the time limit was reached; raise it'}.",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )
    return result(model, training.rows.y, values, found, status)


def _checked(model: SVC | SVR) -> Training:
    """Refuse what is no fitted SVC or SVR; return what it remembers of its training."""
    if not isinstance(model, SVC | SVR):
        kind = type(model)
        is_ours_inside = isinstance(model, Pipeline) and isinstance(model[-1], SVC | SVR)
        raise TypeError(
            f"leave_one_out takes a fitted zerogap.SVC or zerogap.SVR; got {kind.__module__.split('.')[0]}'s {kind.__name__}."
            + (" Pass its last step, pipe[-1], which holds the rows as the steps before it made them." * is_ours_inside)
        )
    check_is_fitted(model)
    return model._kept_training()


def _classified(model: SVC, codes: np.ndarray, values: np.ndarray, found: np.ndarray, status: Status) -> LeaveOneOut:
    """Return decision values in the model's own shape, and the labels that the pairs of classes vote for."""
    shaped = _shaped(model, codes[found], values[found])
    decisions = np.full((found.size, *shaped.shape[1:]), np.nan)
    decisions[found] = shaped
    voted = model._chosen(values[found])
    error = float(np.mean(voted != codes[found])) if found.any() else np.nan
    predictions = model.classes_[voted] if found.all() else np.full(found.size, None, dtype=object)
    predictions[found] = model.classes_[voted]
    return LeaveOneOut(decisions, predictions, error, status)


def _shaped(model: SVC, codes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return decision values in the model's own shape.

    Without the only row of a class the others are told apart as if that class had never been; its own value is minus infinity.
    """
    k, alone = model.classes_.size, np.flatnonzero(np.isinf(values).any(axis=1))
    if k == 2 or model.decision_function_shape == "ovo" or not alone.size:
        return model._shaped(values)
    shaped, pairs = np.empty((len(values), k)), np.array(pairs_of(k))
    shaped[~np.isin(np.arange(len(values)), alone)] = model._shaped(np.delete(values, alone, axis=0))
    for row in alone:
        others = values[row : row + 1, (pairs != codes[row]).all(axis=1)]
        shaped[row] = np.insert(_ovr_decision_function(others < 0, -others, k - 1), codes[row], -np.inf)
    return shaped


def _regressed(model: SVR, y: np.ndarray, values: np.ndarray, found: np.ndarray, status: Status) -> LeaveOneOut:
    predictions = values[:, 0].copy()
    error = float(np.abs(predictions - y)[found].mean()) if found.any() else np.nan
    return LeaveOneOut(values[:, 0], predictions, error, status)


def _fill(values: np.ndarray, model: Incremental, training: Training) -> None:
    """Write the values (n, problems), row by row, until they are all there or a limit raises ``Exceeded``."""
    pieces = training.pieces(model)
    training.lay_out(model, pieces)
    solved = model._each(lambda k: training.solve(model, k, pieces[k]), len(pieces))
    if any(active.is_unbounded for _, active in solved):
        raise ValueError(
            "The classes cannot be separated, so this hard margin model is none. Fit it with a finite C first."
        )
    group, weight = training.points.group, training.rows.weight
    others = np.flatnonzero(group < 0) if len(pieces) == 1 else np.arange(group.size)
    found = np.full(values.shape, np.nan)
    found[others] = _exact_values(model, training, pieces, solved, others)
    problems = [_Values(problem, active) for problem, active in solved]
    places = _places(pieces, training.points.rows.size)
    copies = np.bincount(group[group >= 0])
    known: dict[tuple[int, float], np.ndarray] = {}
    for row, p in enumerate(group):
        check()
        key = int(p), float(weight[row])
        if p >= 0 and key not in known:
            share = 0.0 if copies[p] == 1 else 1.0 - float(training.points.share[row])
            known[key] = found[row]
            for k, place in places[p]:
                known[key][k] = problems[k].without(place, share)
        values[row] = known.get(key, found[row])


def _places(pieces: list[Piece], m: int) -> list[list[tuple[int, int]]]:
    """Return for each distinct point the problems it is in, and its number there."""
    places: list[list[tuple[int, int]]] = [[] for _ in range(m)]
    for k, piece in enumerate(pieces):
        for place, p in enumerate(piece.which):
            places[p].append((k, place))
    return places


def _exact_values(
    model: Incremental,
    training: Training,
    pieces: list[Piece],
    solved: list[tuple[DualProblem, ActiveSet]],
    rows: np.ndarray,
) -> np.ndarray:
    """Return the decision values (rows, problems) of the exact model at rows that it has, or may have, never seen."""
    if not rows.size:
        return np.empty((0, len(pieces)))
    beta = np.zeros((training.points.rows.size, len(pieces)))
    for k, (piece, (_, active)) in enumerate(zip(pieces, solved, strict=True)):
        beta[piece.which, k] = active.beta
    support = np.flatnonzero(beta.any(axis=1))
    X, vectors, products = training.rows.X, training.points.rows[support], np.zeros((rows.size, len(pieces)))
    if model._is_precomputed:
        products = X[np.ix_(rows, vectors)] @ beta[support]
    elif support.size:
        columns = model._kernel.against(X[vectors])
        products, is_finite = columns.dot(columns.prepare(X[rows]), beta[support])
        if not is_finite:
            raise ValueError(model._too_large())
    return products + [problem.best_bias(active.residual + problem.ridge * active.beta) for problem, active in solved]


class _Values:
    """Decision values at points from which a weight has been taken."""

    def __init__(self, problem: DualProblem, active: ActiveSet):
        self.problem, self.active = problem, active
        self.has_one_bias = _has_one_bias(problem, active)
        self.can_rise, self.can_fall = problem.upper > 0, problem.lower < 0
        self.rising, self.falling = np.count_nonzero(self.can_rise), np.count_nonzero(self.can_fall)

    def without(self, p: int, share: float) -> float:
        """Return f(x_p) of the model in which point p has only a share of its weight."""
        problem, active = self.problem, self.active
        if share == 0 and (self.rising == self.can_rise[p] or self.falling == self.can_fall[p]):
            return np.nan if self.can_rise[p] and self.can_fall[p] else -np.inf * float(problem.target[p])
        if share == 0 and active.beta[p] == 0 and self.has_one_bias:
            return _decision(problem, active, p, active.bias)
        reduced = problem.reweighted(p, share)
        is_same = active.beta[p] == 0 or (
            reduced.ridge[p] == problem.ridge[p] and reduced.lower[p] <= active.beta[p] <= reduced.upper[p]
        )
        if not is_same:
            active = _adapted(active.copy(), problem, reduced)
        elif self.has_one_bias and _has_one_bias(reduced, active):  # a smaller box may end at the coefficient
            return _decision(problem, active, p, active.bias)
        return _decision(reduced, active, p, _bias(reduced, active))


def _adapted(active: ActiveSet, problem: DualProblem, reduced: DualProblem) -> ActiveSet:
    """Take an active set from the optimum of one problem to that of another; if rounding leads it astray, begin anew there."""
    active.adapt(problem, reduced)
    check()
    if is_good(reduced, active):
        return active
    active.restart(reduced)
    active.optimise(reduced)
    check()
    if is_good(reduced, active):
        return active
    solution = solve(reduced, stop=RelativeGap(GAP), resume=active.beta, max_steps=MOST_STEPS)
    active = ActiveSet(reduced, solution.beta)
    check()
    return active


def _decision(problem: DualProblem, active: ActiveSet, p: int, bias: float) -> float:
    return float(problem.target[p] - active.residual[p] - problem.ridge[p] * active.beta[p] + bias)


def _has_one_bias(problem: DualProblem, active: ActiveSet) -> bool:
    """Whether a coefficient is inside its box and not zero, by more than rounding; if none is, the bias has an interval."""
    E = active.free
    room = np.minimum(active.beta[E] - problem.lower[E], problem.upper[E] - active.beta[E])
    room = np.minimum(room, np.abs(active.beta[E]))  # zero is an end where a tube is
    return problem.total is None or bool((room > INSIDE * np.abs(active.beta).max()).any())


def _bias(problem: DualProblem, active: ActiveSet) -> float:
    """Return the bias of the optimum; of an interval the middle, as a fit does."""
    if _has_one_bias(problem, active):
        return active.bias
    return problem.best_bias(active.residual + problem.ridge * active.beta)
