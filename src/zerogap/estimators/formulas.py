"""scikit-learn's scores in closed form: of a confusion matrix, or of the order of decision values.

A call of a scorer checks its arguments for a millisecond or more, and a curve has thousands of them.  What is here takes some
microseconds, and is the same number up to the order of summation.  Where a score is not defined, 0 / 0, it is None: then the
scorer itself decides, and warns.
Symbols: of each class t, the weight of its points; p, that of the points predicted so; hits, that of both.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics

Cells = Callable[
    [np.ndarray, np.ndarray], float | None
]  # (counts, weights), each (true class, predicted class) -> score
Values = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float | None]  # (f, is positive, weight) -> score


def of_cells(scorer: Any, classes: np.ndarray) -> Cells | None:
    """Return the formula of a scorer of predictions; None if it has none here."""
    name = next((name for name, metric in METRICS.items() if metric is scorer._score_func), None)
    options = dict(scorer._kwargs)
    if name in SHARES:
        average, label = options.pop("average", "binary"), options.pop("pos_label", 1)
        place = np.flatnonzero(classes == label)
        if options or average not in AVERAGES or (average == "binary" and not (classes.size == 2 and place.size == 1)):
            return None
        formula: Cells = partial(_averaged, SHARES[name], average, int(place[0]) if place.size else -1)
    elif name is None or options:
        return None
    else:
        formula = WHOLES[name]
    return lambda counts, weights: _signed(scorer, formula(counts, weights))


def of_values(scorer: Any) -> Values | None:
    """Return the formula of a scorer of the decision values of two classes; None if it has none here."""
    known = {metrics.roc_auc_score: area_under_roc, metrics.average_precision_score: average_precision}
    formula = known.get(scorer._score_func)
    if formula is None or scorer._kwargs:
        return None
    return lambda values, is_positive, weight: _signed(scorer, formula(values, is_positive, weight))


def is_of_order(scorer: Any) -> bool:
    """Whether a score depends on decision values by their order alone."""
    return scorer._score_func in (metrics.roc_auc_score, metrics.average_precision_score)


def area_under_roc(values: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None) -> float | None:
    """Return the share of the pairs, one point of each class, that are in the right order; equal values count by half."""
    _, place = np.unique(values, return_inverse=True)
    w = np.ones(values.size) if weight is None else weight
    positive, negative = np.bincount(place, w * is_positive), np.bincount(place, w * ~is_positive)
    pairs = positive.sum() * negative.sum()
    if not pairs > 0.0:
        return None
    return float(positive @ (np.cumsum(negative) - 0.5 * negative) / pairs)


def average_precision(values: np.ndarray, is_positive: np.ndarray, weight: np.ndarray | None) -> float | None:
    """Return the precision at the value of every positive point, averaged over them; equal values come in together."""
    _, place = np.unique(values, return_inverse=True)
    w = np.ones(values.size) if weight is None else weight
    positive, every = np.bincount(place, w * is_positive)[::-1], np.bincount(place, w)[::-1]
    found, seen = np.cumsum(positive), np.cumsum(every)
    if not found[-1] > 0.0:
        return None
    is_there = seen > 0.0
    return float(positive[is_there] @ (found[is_there] / seen[is_there]) / found[-1])


def _signed(scorer: Any, value: float | None) -> float | None:
    return None if value is None else scorer._sign * value


def _averaged(
    share: Callable[..., tuple[np.ndarray, np.ndarray]],
    average: str,
    label: int,
    counts: np.ndarray,
    weights: np.ndarray,
) -> float | None:
    """Return a share of each class, averaged as scikit-learn does over the classes that are there."""
    t, p, hits = weights.sum(axis=1), weights.sum(axis=0), weights.diagonal()
    if average == "micro":
        t, p, hits = (np.atleast_1d(one.sum()) for one in (t, p, hits))
    elif average == "binary":
        t, p, hits = (one[label : label + 1] for one in (t, p, hits))
    else:
        is_there = (counts.sum(axis=0) + counts.sum(axis=1)) > 0
        t, p, hits = t[is_there], p[is_there], hits[is_there]
    part, whole = share(t, p, hits)
    if not (whole > 0.0).all() or (average == "weighted" and not t.sum() > 0.0):
        return None
    return float(np.average(part / whole, weights=t if average == "weighted" else None))


def _balanced_accuracy(counts: np.ndarray, weights: np.ndarray) -> float | None:
    return _averaged(SHARES["recall"], "macro", -1, counts, weights)


def _accuracy(counts: np.ndarray, weights: np.ndarray) -> float | None:
    total = weights.sum()
    return float(weights.trace() / total) if total > 0.0 else None


def _matthews(counts: np.ndarray, weights: np.ndarray) -> float | None:
    """Return the correlation of classes and predictions."""
    w = weights.astype(np.float64)
    t, p, total = w.sum(axis=1), w.sum(axis=0), w.sum()
    spreads = (total**2 - t @ t) * (total**2 - p @ p)
    return float((w.trace() * total - t @ p) / np.sqrt(spreads)) if spreads > 0.0 else None


METRICS = {
    "f1": metrics.f1_score,
    "precision": metrics.precision_score,
    "recall": metrics.recall_score,
    "jaccard": metrics.jaccard_score,
    "balanced_accuracy": metrics.balanced_accuracy_score,
    "accuracy": metrics.accuracy_score,
    "matthews_corrcoef": metrics.matthews_corrcoef,
}
AVERAGES = ("binary", "micro", "macro", "weighted")
SHARES: dict[str | None, Any] = {  # a part of each class, and the whole it is of
    "f1": lambda t, p, hits: (2.0 * hits, t + p),
    "precision": lambda t, p, hits: (hits, p),
    "recall": lambda t, p, hits: (hits, t),
    "jaccard": lambda t, p, hits: (hits, t + p - hits),
}
WHOLES: dict[str | None, Cells] = {
    "balanced_accuracy": _balanced_accuracy,
    "accuracy": _accuracy,
    "matthews_corrcoef": _matthews,
}
