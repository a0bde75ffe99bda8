"""Scores of a path for every C: exact if they are of predictions, constant on intervals; those of decision values sampled."""

import hashlib
import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import average_precision_score, get_scorer, hinge_loss, make_scorer, roc_auc_score

from zerogap.estimators import formulas
from zerogap.estimators.pairs import shaped
from zerogap.path import predictions
from zerogap.path.curve import SampledScoreCurve, ScoreCurve, accuracy_curve, joined
from zerogap.path.predictions import NO_LENGTH, Predictions, decision_values, of_two_classes, of_votes
from zerogap.path.result import Path

SAME_SCORE = 1e-12  # relative: what another order of summation makes of a score
# Functions of scikit-learn's, not all of them in every version.
OF_PROBABILITIES = ("log_loss", "brier_score_loss", "d2_log_loss_score", "d2_brier_score")


class Held(NamedTuple):
    """Held-out points: the paths that predict them, kernel values, rows K[places[k]] for path k, and true labels.

    K is an array with a column for each point, or a function that yields such arrays of some of them, one after the other.
    """

    paths: Sequence[Path]
    K: Any
    places: Sequence[np.ndarray]
    classes: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def codes(self) -> np.ndarray:
        """The numbers of the classes."""
        return np.searchsorted(self.classes, self.y)

    def blocks(self) -> Iterable[np.ndarray]:
        """Return the kernel values of some points after the other."""
        return self.K() if callable(self.K) else (self.K,)


def curve_of(
    held: Held,
    scoring: Any,
    *,
    break_ties: bool,
    shape: str,
    each: Callable[[Callable[[int], Any], int], list[Any]],
    samples: np.ndarray | None = None,
) -> ScoreCurve:
    """Return the score for every C; of decision values at some C, in the ``shape`` that the estimator gives them.

    These are ``samples``, as far as the paths go; by default every breakpoint, and the middle between two.
    """
    score = None if scoring is None or scoring == "accuracy" else _Score(scoring, held)
    if score is not None and score.is_of_values:
        return _sampled(held, score, shape, samples)
    k = held.classes.size
    if k == 2:
        parts = [of_two_classes(held.paths[0], K, held.places[0]) for K in held.blocks()]
    else:
        parts = [of_votes(held.paths, K, held.places, k, break_ties=break_ties, each=each) for K in held.blocks()]
    found = predictions.joined(parts)
    if score is None:
        return accuracy_curve(found, held.codes, held.weight)
    return joined(found.pieces()[0], _on_every_piece(held, score, found))


class _AsksForValues(Exception):
    """Raised by a known answer that was asked for decision values."""


class _Known(ClassifierMixin, BaseEstimator):
    """A classifier that gives known answers, whatever the points: so a scorer scores them as those of any other."""

    def __init__(self, classes: np.ndarray):
        self.classes = self.classes_ = classes
        self.labels: Any = None
        self.values: Any = None

    def predict(self, X: Any) -> Any:
        return self.labels

    def decision_function(self, X: Any) -> Any:
        if self.values is None:
            raise _AsksForValues
        return self.values


class _Score:
    """A score of known predictions, or of known decision values."""

    def __init__(self, scoring: Any, held: Held):
        self.name = getattr(scoring, "__name__", None) or repr(scoring)
        self.scorer, self.held = as_scorer(scoring), held
        self._takes_weight = _takes_weight(self.scorer._score_func)
        if held.weight is not None and not self._takes_weight:
            raise TypeError(f"scoring={self.name} takes no sample_weight, and weights were given. Leave them out.")
        _check_classes(self.scorer, self.name, held.classes)
        self._known = _Known(held.classes)
        self.formula = formulas.of_cells(self.scorer, held.classes)
        two = held.classes.size == 2
        self._value_formula = formulas.of_values(self.scorer) if two else None
        self._of_orders: dict[bytes, float] | None = {} if two and formulas.is_of_order(self.scorer) else None
        self.is_of_values = self._asks_for_values()

    def _asks_for_values(self) -> bool:
        self._known.labels = self.held.y
        try:
            self._call(self.held.y, self.held.weight)
        except _AsksForValues:
            return True
        except AttributeError as error:
            why = str(error).replace(type(self._known).__name__, "a path").rstrip(".")
            raise ValueError(
                f"scoring={self.name} needs more than predictions and decision values, probabilities as a rule, and a path is "
                f"not calibrated ({why}). Use a score of predictions, such as 'balanced_accuracy', or of two classes "
                "'roc_auc'; or fit CalibratedClassifierCV at one C."
            ) from error
        return False

    def _call(self, y: np.ndarray, weight: np.ndarray | None) -> float:
        options = {} if weight is None else {"sample_weight": weight}
        value = self.scorer(self._known, np.empty((y.size, 0)), y, **options)
        if np.ndim(value) != 0 or not np.isreal(value):
            raise TypeError(
                f"scoring={self.name} must give a number; got {type(value).__name__} of shape {np.shape(value)}."
            )
        return float(value)

    def of_labels(self, labels: np.ndarray) -> float:
        """Return the score of predicted labels."""
        self._known.labels = labels
        return self._call(self.held.y, self.held.weight)

    def of_values(self, values: np.ndarray) -> float:
        """Return the score of decision values; of one that depends on their order alone each order is asked once."""
        if self._value_formula is not None:
            found = self._value_formula(values, self.held.codes == 1, self.held.weight)
            if found is not None:
                return found
        self._known.values = values
        if self._of_orders is None:
            return self._call(self.held.y, self.held.weight)
        order = _key(np.unique(values, return_inverse=True)[1])
        if order not in self._of_orders:
            self._of_orders[order] = self._call(self.held.y, self.held.weight)
        return self._of_orders[order]

    def of_cells(self, counts: np.ndarray, weights: np.ndarray) -> float:
        """Return the score of a confusion matrix: a point for each of its cells that are not empty, with its weight."""
        value = None if self.formula is None else self.formula(counts, weights)
        if value is not None:
            return value
        true, found = np.nonzero(counts)
        self._known.labels = self.held.classes[found]
        return self._call(self.held.classes[true], weights[true, found].astype(np.float64))

    def is_of_cells(self, examples: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> bool:
        """Whether the score follows from the confusion matrix, as far as examples (labels, counts, weights) tell."""
        if not self._takes_weight or self.formula is not None:
            return self.formula is not None
        for labels, counts, weights in examples:
            expected = self.of_labels(labels)
            try:
                found = self.of_cells(counts, weights)
            except (ValueError, TypeError, ArithmeticError):  # it may need more points than there are cells
                return False
            both = np.isnan(expected) and np.isnan(found)
            if not (both or abs(expected - found) <= SAME_SCORE * max(1.0, abs(expected))):
                return False
        return True


def as_scorer(scoring: Any) -> Any:
    """Return a scorer as ``make_scorer`` makes them."""
    if isinstance(scoring, str):
        return get_scorer(scoring)
    if hasattr(scoring, "_score_func"):
        return scoring
    _refuse_misread(scoring)
    if not callable(scoring):
        raise TypeError(
            "scoring must be a name of scikit-learn's, such as 'f1_macro', a scorer by make_scorer, or a function of true and "
            f"predicted labels; got {type(scoring).__name__}."
        )
    try:
        parameters = list(inspect.signature(scoring).parameters.values())
    except ValueError:  # compiled functions have none
        return make_scorer(scoring)
    needed = [
        p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    if len(needed) > 2 or needed[:1] == ["estimator"]:
        raise TypeError(
            f"scoring={getattr(scoring, '__name__', scoring)!s} takes ({', '.join(needed)}). A score for every C is a function "
            "of (y_true, y_pred), or what make_scorer makes of one: a scorer of (estimator, X, y) may ask for anything."
        )
    return make_scorer(scoring)


def _refuse_misread(scoring: Any) -> None:
    """Refuse functions of scikit-learn's whose largest value is no best one, or which compare labels as if they were values."""
    function: Any = scoring
    options = dict[str, Any]()
    if isinstance(scoring, partial):
        function, options = scoring.func, scoring.keywords
    name = str(getattr(function, "__name__", ""))
    if name in OF_PROBABILITIES:
        raise ValueError(
            f"scoring={name} is of probabilities, and a path is not calibrated: it would be given predicted labels. Use a "
            "score of predictions, such as 'balanced_accuracy', or of two classes 'roc_auc'; or fit CalibratedClassifierCV at "
            "one C."
        )
    if name.endswith(("_loss", "_error")):
        more = {"response_method": "decision_function"} if function is hinge_loss else {}
        given = "".join(f", {key}={value!r}" for key, value in (more | options).items())
        raise ValueError(
            f"scoring={name} is a loss, by its name: the smaller, the better, and the largest score is taken for the best. Use "
            f"make_scorer({name}, greater_is_better=False{given})."
        )
    if function in (roc_auc_score, average_precision_score):
        raise ValueError(
            f"scoring={name}, as a function, would be given predicted labels in place of decision values. Use its name, "
            f"scoring={name.removesuffix('_score')!r}."
        )


def check_scoring(scoring: Any, classes: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> None:
    """Refuse a score that no path of these classes has, before any is followed."""
    _Score(scoring, Held([], None, [], classes, y, weight))


def _check_classes(scorer: Any, name: str, classes: np.ndarray) -> None:
    """Refuse a score of two classes where there are more, and one of label 1 where there is none."""
    metric, several = scorer._score_func, classes.size > 2
    if metric is roc_auc_score and several:
        raise ValueError(
            f"scoring={name} is of two classes; of {classes.size} it compares probabilities, which a path does not have. Use "
            "'balanced_accuracy' or 'f1_macro', or fit two classes at a time."
        )
    options = {name: p.default for name, p in _parameters(metric).items() if p.default is not p.empty} | scorer._kwargs
    is_binary = options.get("average") == "binary"
    if is_binary and several:
        macro, weighted = (
            f"{name[:-1]}_{how}'" if name[0] == "'" else f"average='{how}'" for how in ("macro", "weighted")
        )
        raise ValueError(
            f"scoring={name} is of two classes, and there are {classes.size}. Use {macro}, the mean over the classes, or "
            f"{weighted}, by their sizes."
        )
    label = options.get("pos_label")
    if (is_binary or metric is average_precision_score) and not several and label is not None and label not in classes:
        more = "" if is_binary else ", response_method='decision_function'"
        raise ValueError(
            f"scoring={name} is of the class with label {label!r}, and the labels are {classes.tolist()}. Use a score of both, "
            f"such as 'f1_macro', labels 0 and 1, or make_scorer({metric.__name__}, pos_label={classes.tolist()[1]!r}{more})."
        )


def _parameters(metric: Any) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(metric).parameters)
    except ValueError:  # compiled functions have none
        return {}


def _takes_weight(metric: Any) -> bool:
    return any(p.name == "sample_weight" or p.kind is p.VAR_KEYWORD for p in _parameters(metric).values())


def _on_every_piece(held: Held, score: _Score, found: Predictions) -> np.ndarray:
    """Return the score on every interval: from the confusion matrix, if it depends on that alone, else from all predictions."""
    pieces = _Pieces(held, found)
    sizes = pieces.sizes()
    examples = sorted({0, sizes.size - 1, int(sizes.argmin()), int(sizes.argmax())})
    by_cells = score.is_of_cells([pieces.copied(k) for k in examples])
    known: dict[bytes, float] = {}
    values = np.empty(sizes.size)
    for k in range(sizes.size):
        pieces.go_to(k)
        key = _key(pieces.now if not by_cells else pieces.counts if held.weight is None else pieces.weights)
        if key not in known:  # few points move to and fro
            cells = (pieces.counts, pieces.weights)
            known[key] = score.of_cells(*cells) if by_cells else score.of_labels(held.classes[pieces.now])
        values[k] = known[key]
    return values


def _key(values: np.ndarray) -> bytes:
    """Return what stands for an array in a dictionary: there may be very many long ones."""
    return hashlib.blake2b(values.tobytes(), digest_size=16).digest()


class _Pieces:
    """Goes from one interval of constant predictions to the next, and keeps their confusion matrix: counts and weights."""

    def __init__(self, held: Held, found: Predictions):
        self._held, self._found, self._codes = held, found, held.codes
        self._before = found.pieces()[1]
        self._begin()

    def _begin(self) -> None:
        k = self._held.classes.size
        self.now, self._done = self._found.start.copy(), 0
        self.counts = np.zeros((k, k), dtype=np.int64)
        np.add.at(self.counts, (self._codes, self.now), 1)
        self._sums, self._lost = np.zeros((k, k)), np.zeros((k, k))
        if self._held.weight is not None:
            for code, now, weight in zip(self._codes, self.now, self._held.weight, strict=True):
                self._add((code, now), weight)

    def go_to(self, k: int) -> None:
        """Go to interval k, which is not before this one."""
        for m in range(self._done, self._before[k]):
            i, code = self._found.point[m], self._found.code[m]
            for cell, step in (((self._codes[i], self.now[i]), -1), ((self._codes[i], code), 1)):
                self.counts[cell] += step
                if self._held.weight is not None:
                    self._add(cell, step * self._held.weight[i])
            self.now[i] = code
        self._done = self._before[k]

    def _add(self, cell: tuple[int, int], weight: float) -> None:
        """Add to a sum in twice the working precision: weights that come and go leave nothing behind."""
        old = self._sums[cell]
        new = old + weight
        part = new - old
        self._lost[cell] += (old - (new - part)) + (weight - part)
        self._sums[cell] = new

    @property
    def weights(self) -> np.ndarray:
        """The sums of the weights; those of empty cells are zero."""
        if self._held.weight is None:
            return self.counts
        return np.where(self.counts > 0, self._sums + self._lost, 0.0)

    def sizes(self) -> np.ndarray:
        """Return the number of cells that are not empty, of every interval."""
        found = np.empty(self._before.size, dtype=np.int64)
        for k in range(found.size):
            self.go_to(k)
            found[k] = np.count_nonzero(self.counts)
        self._begin()
        return found

    def copied(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return labels, counts and weights of interval k, and begin anew."""
        self.go_to(k)
        copies = self._held.classes[self.now], self.counts.copy(), self.weights.copy()
        self._begin()
        return copies


def _sampled(held: Held, score: _Score, shape: str, samples: np.ndarray | None) -> SampledScoreCurve:
    """Return the score at samples, or at every breakpoint and in the middle, in log C, between two."""
    low, high = max(path.C[0] for path in held.paths), min(path.C[-1] for path in held.paths)
    C = np.unique(np.concatenate([path.C for path in held.paths])) if samples is None else samples
    C = C[(low * (1.0 - NO_LENGTH) <= C) & (high * (1.0 + NO_LENGTH) >= C)]
    samples = np.unique(np.concatenate([C, np.sqrt(C[:-1] * C[1:])])) if samples is None else C
    k = held.classes.size
    blocks = [list(decision_values(held.paths, K, held.places, samples)) for K in held.blocks()]
    found = [score.of_values(shaped(np.concatenate(f), k, shape)) for f in zip(*blocks, strict=True)]
    return SampledScoreCurve.at(samples, np.array(found))


def _mean_cost(y_true: Any, y_pred: Any, *, costs: Any, labels: np.ndarray, sample_weight: Any = None) -> float:
    order = np.argsort(labels)
    sorted_labels = labels[order]
    cells = []
    for name, y in (("y", np.asarray(y_true)), ("a prediction", np.asarray(y_pred))):
        place = np.minimum(np.searchsorted(sorted_labels, y), sorted_labels.size - 1)
        if (sorted_labels[place] != y).any():
            wrong = y[sorted_labels[place] != y][0]
            raise ValueError(f"The costs are of labels {sorted_labels.tolist()}; {name} is {wrong!r}.")
        cells.append(order[place])
    return float(np.average(np.asarray(costs)[tuple(cells)], weights=sample_weight))


def scoring_name(scoring: Any) -> str:
    """Return the name of a score: of ``make_scorer`` that of its function, with "neg_" if it turns the sign."""
    if isinstance(scoring, str):
        return scoring
    name = getattr(getattr(scoring, "_score_func", scoring), "__name__", "score").strip("_")
    return f"neg_{name}" if getattr(scoring, "_sign", 1) < 0 else name.replace("<lambda>", "score")


def cost_matrix_scorer(costs: Any, labels: Any) -> Any:
    """Return a scorer of predictions: minus their mean cost.

    Parameters
    ----------
    costs : array of shape (n_classes, n_classes)
        ``costs[i, j]`` is the cost of predicting ``labels[j]`` for a point of class ``labels[i]``.
    labels : array of shape (n_classes,)
        The labels in the order of the rows and columns, such as the ``classes_`` of a model.

    Returns
    -------
    scorer
        What ``make_scorer`` makes; for ``score_curve``, and for the searches of scikit-learn too.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerogap import SVCPath, cost_matrix_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = SVCPath(C_max=100.0).fit(X[::2], y[::2])
    >>> scorer = cost_matrix_scorer([[0, 10], [1, 0]], labels=[0, 1])  # to miss a malignant one, 0, costs ten times as much
    >>> curve = path.score_curve(X[1::2], y[1::2], scoring=scorer)
    >>> bool(curve.best_score <= 0.0), curve.is_exact
    (True, True)
    """
    costs, labels = np.asarray(costs, dtype=np.float64), np.asarray(labels)
    n = labels.size
    if labels.ndim != 1 or np.unique(labels).size != n or costs.shape != (n, n) or not np.isfinite(costs).all():
        raise ValueError(
            f"costs must be finite numbers of shape (n, n) for n different labels; got shape {costs.shape} for labels "
            f"{labels.tolist()}."
        )
    # A list is printed in one line.
    return make_scorer(_mean_cost, greater_is_better=False, costs=costs.tolist(), labels=labels)
