"""Probabilities from decision values: Platt's sigmoid, 1 / (1 + exp(A f + B)), fitted to values of unseen rows.

What ``CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False)`` of scikit-learn does: each class against the others,
then normalised.  The targets are Platt's (1999): a class of n rows aims at (n + 1) / (n + 2), not at one, so that a sigmoid
exists even where the classes are far apart.  A Newton method finds it (Lin, Lin and Weng 2007).
"""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import Outcome
from zerogap.estimators.incremental import Incremental
from zerogap.estimators.pairs import pairs_of
from zerogap.limits import Limit
from zerogap.solution import Solution, Status

FOLDS = 5
MOST_STEPS = 100  # of Newton's method; some ten are enough
SHORTEST = 1e-10  # step of the line search
EPS = np.finfo(float).eps
RIDGE = 1e-12  # of the second derivatives: values that are all the same say nothing of A


class Calibrated(Incremental):
    """Base of the classifier that has probabilities, if they are asked for."""

    probability: Any
    class_weight: Any
    classes_: np.ndarray
    class_weight_: np.ndarray
    calibration_: np.ndarray | None
    _is_fold = False  # whether it is one of those that probabilities are calibrated with

    # What a classifier has to say.

    def _pair_decisions(self, X: Any) -> np.ndarray:
        """Return f(x) for every pair of classes."""
        raise NotImplementedError

    def _by_class(self, decisions: np.ndarray) -> np.ndarray:
        """Return a column for each class from one for each pair of them."""
        raise NotImplementedError

    # Probabilities.

    def _check_options(self) -> None:
        super()._check_options()
        if self.probability != "deprecated":  # what scikit-learn 1.9 has as its default
            validation.check_flag("probability", self.probability)

    @property
    def _is_calibrated(self) -> bool:
        """Whether probabilities are asked for."""
        return self.probability != "deprecated" and bool(self.probability)

    def _check_calibrated(self) -> bool:
        """Say whether there are probabilities: ``hasattr`` asks."""
        if not self._is_calibrated:
            raise AttributeError("predict_proba is not available when probability=False.")
        return True

    @available_if(_check_calibrated)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the probability of each class; the model is fitted with ``probability=True``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n, n_classes)
            Probabilities, which sum to one.  The largest need not be that of the class that ``predict`` returns.
        """
        now = self._twin()  # another thread may store another model meanwhile
        check_is_fitted(now)
        if now.calibration_ is None:
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, when the fit was interrupted, and after "
                "partial_fit and forget, whose rows it knows nothing of. Fit the model again with probability=True."
            )
        return probabilities(now._by_class(now._pair_decisions(X)), now.calibration_)

    @available_if(_check_calibrated)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithm of the probability of each class.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n, n_classes)
            Logarithms of what ``predict_proba`` returns.
        """
        with np.errstate(divide="ignore"):  # of a probability below the least number of float64
            return np.log(self.predict_proba(X))

    def _calibrate(self, X: Any, y: Any, sample_weight: Any, limit: Limit) -> None:
        """Fit sigmoids to what models of five folds say of the rows they have not seen; none if Ctrl-C was pressed."""
        X = self._check_points(X, reset=False) if self._objects is None else X
        codes = np.searchsorted(self.classes_, np.asarray(y).ravel())
        weight = validation.check_weights(sample_weight, codes.size)
        seen = np.flatnonzero(weight > 0)
        decisions = np.zeros((codes.size, len(pairs_of(self.classes_.size))))
        for others, fold in folds(codes[seen], self.random_state):
            if limit.was_interrupted:
                break
            decisions[seen[fold]] = self._decisions_without(X, codes, weight, seen[others], seen[fold])
        if limit.was_interrupted:
            warnings.warn(
                f"{type(self).__name__}(probability=True) was interrupted before its probabilities were calibrated: the model "
                "predicts classes, and predict_proba is not available. Fit it again for that.",
                ConvergenceWarning,
                stacklevel=validation.callers_level(),
            )
        else:
            self.calibration_ = sigmoids(self._by_class(decisions[seen]), codes[seen], weight[seen])

    def _shortfall(self, status: Status, outcomes: Sequence[Outcome | Solution], count: int) -> str:
        message = super()._shortfall(status, outcomes, count)
        return f"One of the folds for probabilities: {message}" if self._is_fold else message

    @property
    def _way_to_go_on(self) -> str:
        return "" if self._is_fold else super()._way_to_go_on

    def _decisions_without(
        self, X: Any, codes: np.ndarray, weight: np.ndarray, rows: np.ndarray, unseen: np.ndarray
    ) -> np.ndarray:
        """Return the pairs' decision values for rows that a model of other rows has not seen.

        If that has no row of one class of a pair it decides for the other, by a margin of one, as LIBSVM does.
        """
        n_classes, present = self.classes_.size, np.unique(codes[rows])
        pairs = np.array(pairs_of(n_classes))
        is_there = np.isin(pairs, present)
        for_second = is_there[:, 1].astype(float) - is_there[:, 0]
        decisions = np.tile(for_second if n_classes == 2 else -for_second, (unseen.size, 1))
        if present.size > 1:
            model, labels = self._fold_model(present), self.classes_[codes]
            points, of_points = _safe_split(model, X, labels, rows)
            model._fit(points, of_points, weight[rows])
            found = model._pair_decisions(_safe_split(model, X, labels, unseen, rows)[0])
            # Two classes have the second for the positive one, more have the first.
            decisions[:, is_there.all(axis=1)] = found if (present.size == 2) == (n_classes == 2) else -found
        return decisions

    def _fold_model(self, present: np.ndarray) -> Any:
        """Return a model of the same parameters for some of the classes."""
        model = self._twin()
        model._is_fold, model.probability, model.warm_start = True, False, False
        if isinstance(self.class_weight, dict):
            model.class_weight = dict(zip(self.classes_[present], self.class_weight_[present], strict=True))
        return model


def folds(codes: np.ndarray, random_state: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield rows to fit and rows to try, five times, or as often as there are rows in the largest class."""
    largest = int(np.bincount(codes).max())
    if largest < 2:
        raise ValueError(
            "probability=True needs a class with at least two rows, to fit without one of them; here every row is a class of "
            "its own. Add rows, or fit with probability=False."
        )
    shuffled = {} if random_state is None else {"shuffle": True, "random_state": random_state}
    yield from StratifiedKFold(min(FOLDS, largest), **shuffled).split(codes, codes)


def sigmoids(values: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return A and B for each column of decision values (n, k): one column for two classes, else one for each class."""
    classes = [1] if values.shape[1] == 1 else range(values.shape[1])
    return np.array([_sigmoid(f, codes == k, weight) for f, k in zip(values.T, classes, strict=True)])


def probabilities(values: np.ndarray, calibration: np.ndarray) -> np.ndarray:
    """Return the probability of each class from decision values (n, k)."""
    with np.errstate(over="ignore"):  # beyond float64 it is zero or one
        p = expit(-(values * calibration[:, 0] + calibration[:, 1]))
    if p.shape[1] == 1:
        return np.hstack([1.0 - p, p])
    total = p.sum(axis=1, keepdims=True)
    return np.where(total > 0, p / np.where(total > 0, total, 1.0), 1.0 / p.shape[1])


def _sigmoid(f: np.ndarray, is_positive: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Return the A and B that make the cross entropy with Platt's targets least: it is convex, and they are unique."""
    scale = float(np.abs(f).max(initial=0.0)) or 1.0  # as if the largest value were one
    design = np.stack([f / scale, np.ones(f.size)])
    above, below = float(weight[is_positive].sum()), float(weight[~is_positive].sum())
    target = np.where(is_positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))

    def entropy(x: np.ndarray) -> float:
        z = x @ design  # p = expit(-z)
        return float(weight @ (target * z + np.logaddexp(0.0, -z)))

    x = np.array([0.0, np.log((below + 1.0) / (above + 1.0))])
    least = entropy(x)
    for _ in range(MOST_STEPS):
        p = expit(-(x @ design))
        gradient = design @ (weight * (target - p))
        curvature = (design * (weight * p * (1.0 - p))) @ design.T + RIDGE * weight.sum() * np.eye(2)
        direction = -np.linalg.solve(curvature, gradient)
        step, slope = 1.0, float(gradient @ direction)
        while step > SHORTEST and entropy(x + step * direction) > least + 1e-4 * step * slope + f.size * EPS * least:
            step *= 0.5
        x, least = x + step * direction, entropy(x + step * direction)
        if -slope <= EPS * EPS * weight.sum():  # the gradient is rounding
            break
    return float(x[0] / scale), float(x[1])
