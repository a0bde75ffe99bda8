"""Probabilities from decision values: Platt's sigmoid, 1 / (1 + exp(A f + B)), fitted to values of unseen rows.

What ``CalibratedClassifierCV(SVC(), method="sigmoid", ensemble=False)`` of scikit-learn does: each class against the others,
then normalised.  The targets are Platt's (1999): a class of n rows aims at (n + 1) / (n + 2), not at one, so that a sigmoid
exists even where the classes are far apart.  A Newton method finds it (Lin, Lin and Weng 2007).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.model_selection import StratifiedKFold

FOLDS = 5
MOST_STEPS = 100  # of Newton's method; some ten are enough
SHORTEST = 1e-10  # step of the line search
UNIT = np.finfo(float).eps
RIDGE = 1e-12  # of the second derivatives: values that are all the same say nothing of A


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
        while step > SHORTEST and entropy(x + step * direction) > least + 1e-4 * step * slope + f.size * UNIT * least:
            step *= 0.5
        x, least = x + step * direction, entropy(x + step * direction)
        if -slope <= UNIT * UNIT * weight.sum():  # the gradient is rounding
            break
    return float(x[0] / scale), float(x[1])
