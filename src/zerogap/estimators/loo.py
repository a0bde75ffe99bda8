"""Exact leave-one-out: what the model would say of each training row had it not seen that row.

A row that is no support vector changes nothing.  For every other one its coefficient is driven to zero from the present
solution, the free points following, and the few points that break the optimality conditions on the way are exchanged.
"""

import warnings
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.active_set import ActiveSet
from zerogap.estimators.incremental import Training, cut_short, is_good
from zerogap.estimators.svc import SVC
from zerogap.limits import Exceeded, check, limits
from zerogap.loop import Status, solve
from zerogap.problem import DualProblem
from zerogap.stopping import RelativeGap

GAP, MOST_STEPS = 1e-9, 1_000_000  # of the solver that takes over where exchanges lead nowhere
INSIDE = 1e-9  # of the largest coefficient: one that is nearer to an end of its box may be there but for rounding


@dataclass(frozen=True)
class LeaveOneOut:
    """Decision values and predictions for each row of the model without that row.

    If a limit has ended it, rows it did not come to have the decision value NaN and the prediction None.

    Attributes
    ----------
    decision_values : array of shape (n,)
        Positive for ``classes_[1]``.
    predictions : array of shape (n,)
        Labels.
    error : float
        Share of the rows, of those there is a prediction for, whose prediction is not their label.
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

    def __repr__(self) -> str:
        done, n = np.count_nonzero(~np.isnan(self.decision_values)), self.decision_values.size
        return f"LeaveOneOut(error {self.error:.6g} over {done} rows{'' if done == n else f' of {n}'})"

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_leave_one_out

        return of_leave_one_out(self)


def leave_one_out(model: SVC, *, max_time: float | None = None) -> LeaveOneOut:
    """Return, for each training row of a fitted two-class SVC, the decision value of the exact model without it.

    All else is as the model's parameters have it now, so that a C changed by ``set_params`` since the fit counts; the number
    gamma stands for stays, and so do the weights of the classes.  Where a row is the only one of its class no model is left;
    its decision value is infinite, for the other class.  Rows of weight zero were never seen.

    Parameters
    ----------
    model : SVC
        Fitted, of two classes.
    max_time : float, optional
        Limit in seconds, as the model's own is; at a limit, or Ctrl-C, the rows done so far are returned.

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
    if max_time is not None:
        validation.check_positive("max_time", max_time, advice="It is in seconds; use None for no limit.")
    values = np.full(training.rows.codes.size, np.nan)
    with training.lock, limits(model.max_time), limits(max_time) as limit:
        with suppress(Exceeded), np.errstate(over="ignore", invalid="ignore"):
            _fill(values, model, training)
        status = cut_short(limit) if np.isnan(values).any() else None
    return _result(model, training.rows.codes, values, status or Status.CONVERGED)


def _checked(model: SVC) -> Training:
    """Refuse what is no fitted SVC of two classes; return what it remembers of its training."""
    if not isinstance(model, SVC):
        raise TypeError(f"leave_one_out takes a fitted zerogap.SVC of two classes; got {type(model).__name__}.")
    check_is_fitted(model)
    if model.classes_.size > 2:
        raise ValueError(
            f"leave_one_out takes an SVC of two classes; this one separates {model.classes_.size}. "
            "Make one for each pair of classes, or each against the rest."
        )
    return model._kept_training()


def _fill(values: np.ndarray, model: SVC, training: Training) -> None:
    """Write one decision value for each row, until they are all there or a limit raises ``Exceeded``."""
    problem, active = training.solve(model)
    if active.is_unbounded:
        raise ValueError(
            "The classes cannot be separated, so this hard margin model is none. Fit it with a finite C first."
        )
    unseen = np.flatnonzero(training.points.group < 0)
    if unseen.size:
        values[unseen] = _exact_values(model, training, unseen)
    _Values(problem, active).fill(values, training)


def _result(model: SVC, codes: np.ndarray, values: np.ndarray, status: Status) -> LeaveOneOut:
    found = ~np.isnan(values)
    predicted = (values[found] > 0).astype(int)
    error = float(np.mean(predicted != codes[found])) if found.any() else np.nan
    if status is Status.CONVERGED:
        return LeaveOneOut(values, model.classes_[predicted], error)
    warnings.warn(
        f"leave_one_out stopped after {found.sum()} of {found.size} rows: "
        f"{'interrupted' if status is Status.INTERRUPTED else 'the time limit was reached; raise it'}.",
        ConvergenceWarning,
        stacklevel=validation.callers_level(),
    )
    predictions = np.full(found.size, None, dtype=object)
    predictions[found] = model.classes_[predicted]
    return LeaveOneOut(values, predictions, error, status)


def _exact_values(model: SVC, training: Training, rows: np.ndarray) -> np.ndarray:
    """Return the decision values of the exact model at rows it has never seen."""
    problem, active = training.solve(model)
    X, support = training.rows.X, np.flatnonzero(active.beta)
    support_rows = training.points.rows[support]
    K = X[np.ix_(rows, support_rows)] if model._is_precomputed else model._kernel(X[rows], X[support_rows])
    return K @ active.beta[support] + problem.best_bias(active.residual + problem.ridge * active.beta)


class _Values:
    """Decision values at points from which a weight has been taken."""

    def __init__(self, problem: DualProblem, active: ActiveSet):
        self.problem, self.active = problem, active
        self.has_one_bias = _has_one_bias(problem, active)

    def fill(self, values: np.ndarray, training: Training) -> None:
        """Write one value for each row that was seen; equal rows of equal weight have the same."""
        group, weight = training.points.group, training.rows.weight
        seen = np.flatnonzero(group >= 0)
        copies = np.bincount(group[seen])
        known: dict[tuple[int, float], float] = {}
        for row in seen:
            check()
            key = p, _ = int(group[row]), float(weight[row])
            if key not in known:
                share = 0.0 if copies[p] == 1 else 1.0 - float(training.points.share[row])
                known[key] = self._without(p, share)
            values[row] = known[key]

    def _without(self, p: int, share: float) -> float:
        """Return f(x_p) of the model in which point p has only a share of its weight."""
        problem, active = self.problem, self.active
        reduced = problem.reweighted(p, share)
        if share == 0 and (reduced.upper.max() <= 0 or reduced.lower.min() >= 0):
            return -np.inf * float(problem.target[p])
        is_same = active.beta[p] == 0 or (
            reduced.ridge[p] == problem.ridge[p] and reduced.lower[p] <= active.beta[p] <= reduced.upper[p]
        )
        if not is_same:
            active = _adapted(active.copy(), problem, reduced)
        elif self.has_one_bias and (
            share == 0 or _has_one_bias(reduced, active)
        ):  # a smaller box may end at the coefficient
            return _decision(problem, active, p, active.bias)
        return _decision(reduced, active, p, _bias(reduced, active))


def _adapted(active: ActiveSet, problem: DualProblem, reduced: DualProblem) -> ActiveSet:
    """Take an active set from the optimum of one problem to that of another; if rounding leads it astray, begin anew there."""
    active.adapt(problem, reduced)
    check()
    if not is_good(reduced, active):
        active.restart(reduced)
        active.optimise(reduced)
        check()
    if not is_good(reduced, active):
        solution = solve(reduced, stop=RelativeGap(GAP), resume=active.beta, max_steps=MOST_STEPS)
        active = ActiveSet(reduced, solution.beta)
        check()
    return active


def _decision(problem: DualProblem, active: ActiveSet, p: int, bias: float) -> float:
    return float(problem.target[p] - active.residual[p] - problem.ridge[p] * active.beta[p] + bias)


def _has_one_bias(problem: DualProblem, active: ActiveSet) -> bool:
    """Whether a coefficient is inside its box, by more than rounding: if none is, the bias has an interval to itself."""
    E = active.free
    room = np.minimum(active.beta[E] - problem.lower[E], problem.upper[E] - active.beta[E])
    return problem.total is None or bool((room > INSIDE * np.abs(active.beta).max()).any())


def _bias(problem: DualProblem, active: ActiveSet) -> float:
    """Return the bias of the optimum; of an interval the middle, as a fit does."""
    if _has_one_bias(problem, active):
        return active.bias
    return problem.best_bias(active.residual + problem.ridge * active.beta)
