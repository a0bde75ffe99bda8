"""gamma: a number, or what the data make of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import validation
from zerogap.kernels.base import is_dense_cheap

ROWS_BYTES = 8_000_000  # of sparse points made dense at a time


def check_gamma(gamma: Any) -> float | str:
    """Return gamma as a number of at least zero, "scale" or "auto"."""
    if isinstance(gamma, str):
        return validation.check_choice("gamma", gamma, ("scale", "auto"))
    return validation.check_positive("gamma", gamma, zero=True, advice='Use "scale", "auto" or a positive number.')


def gamma_value(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (d var(X)), "auto" is 1 / d; in var(X) a row of weight two counts twice."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            variance = _variance(X, np.ones(X.shape[0]) if weight is None else weight)
            is_constant = variance == 0 and not _differ(X)
            value = 1.0 if is_constant else float(1.0 / np.float64(X.shape[1] * variance))
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"gamma='scale' is 1 / (n_features * X.var()), and the variance of X, {variance:.2g}, is "
                f"too {'small' if variance < 1 else 'large'} for float64. Scale the features (StandardScaler), or give gamma."
            )
        return value
    return float(gamma)


def number(gamma: float | str) -> float:
    """Return a gamma that has been resolved."""
    if isinstance(gamma, str):
        raise ValueError(
            f"gamma={gamma!r} depends on the data, and is not yet a number. Call kernel.resolved(X) with the training points, "
            "or let Gram or an estimator do it."
        )
    return gamma


def power_of_two(gamma: float) -> tuple[int, float]:
    """Return p and gamma 4^p, near one: dividing features by 2^p changes no digit, and keeps their squares within float64."""
    power = -int(np.frexp(np.sqrt(gamma))[1]) if gamma > 0 else 0
    return power, float(np.ldexp(gamma, 2 * power))


def _differ(X: Any) -> bool:
    """Whether any two entries of X differ."""
    if sp.issparse(X):
        return bool(X.nnz) and (X.nnz < X.shape[0] * X.shape[1] or np.ptp(X.data) > 0)
    return bool(np.ptp(X) > 0)


def _variance(X: Any, weight: np.ndarray) -> float:
    """Return the variance of all entries of X; of sparse points that are solved as dense ones to the same bit."""
    entries = weight.sum() * X.shape[1]
    if sp.issparse(X) and not is_dense_cheap(X):
        weights = np.repeat(weight, np.diff(X.indptr))  # of the entries that are stored; the others are zero
        mean = float(weights @ X.data) / entries
        return (float(weights @ (X.data - mean) ** 2) + (entries - float(weights.sum())) * mean**2) / entries
    mean = float(weight @ _of_rows(X, lambda rows: rows.sum(axis=1))) / entries
    return float(weight @ _of_rows(X, lambda rows: _squares(rows - mean))) / entries


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)


def _of_rows(X: Any, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return what a function makes of every row; sparse ones are made dense some at a time."""
    if not sp.issparse(X):
        return function(X)
    step = max(ROWS_BYTES // (8 * X.shape[1]), 1)
    return np.concatenate([function(X[a : a + step].toarray()) for a in range(0, X.shape[0], step)])
