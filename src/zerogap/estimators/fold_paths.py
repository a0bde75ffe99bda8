"""A path for every fold of every candidate: what is held out, and what is kept.

A task is a candidate, such as a gamma, and a fold.  It knows all it needs: threads of this process, other processes and other
machines (a Dask or Ray cluster that joblib knows of) do the same work, and find the same to the last digit.
"""

import time
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import has_fit_parameter

from zerogap.estimators.fold_matrix import FoldMatrix

CHECKS = 3  # C at which the gap of a path is computed, in equal steps of log C, the last of them its end


class Fold(NamedTuple):
    """Rows to follow the path with, and rows to score it on."""

    number: int  # from 1
    of: int  # so many
    train: np.ndarray
    test: np.ndarray

    def __str__(self) -> str:
        return f"Fold {self.number} of {self.of}"


class Rows(NamedTuple):
    """All rows: points or a kernel matrix, labels or targets, and weights, if any were given."""

    X: Any
    y: np.ndarray
    weight: np.ndarray | None

    def weight_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of some rows."""
        return None if self.weight is None else self.weight[rows]


class FoldPath(NamedTuple):
    """What is kept of the path of a fold."""

    curve: Any  # None if a limit left nothing of it
    C_end: float
    n_events: int
    status: str
    gap: float  # the largest relative duality gap at a few C
    fit_seconds: float
    score_seconds: float

    @property
    def seconds(self) -> float:
        """How long all of it took."""
        return self.fit_seconds + self.score_seconds


class Task(NamedTuple):
    """Follow one path with the rows of a fold, and score it on the others."""

    model: Any  # an SVCPath or SVRPath that is not fitted
    transformer: Any
    fold: Fold
    read: Callable[..., Any]  # (fitted model, X, y, weight) -> curve
    deadline: float | None  # of all tasks, as time.time() tells it
    share: float  # of the time left, that this task may take
    search: str = ""  # tasks of the same one may use the kernel values of each other

    def on(self, rows: Rows) -> FoldPath:
        """Return what is kept of the path."""
        began = time.perf_counter()
        try:
            model, curve, scoring = self._followed(rows)
        except ValueError as error:
            # Users know of the search, and not of what follows the path of a fold.
            said = str(error).replace(type(self.model).__name__, type(self.model).__name__.removeprefix("Fold") + "CV")
            raise ValueError(f"{self.fold}: {said}") from error
        except Exception as error:  # of a user's function, as a rule, whose message is not ours to change
            error.add_note(f"In {str(self.fold).lower()}, {self.model.kernel!r}, gamma={self.model.gamma}.")
            raise
        short = [path.status for path in paths_of(model) if path.status != "complete"]
        gap = max(gap_of(path) for path in paths_of(model))
        status = short[0] if short else "complete"
        fitting = time.perf_counter() - began - scoring
        return FoldPath(curve, end_of(model), model.n_events_, status, gap, fitting, scoring)

    def _followed(self, rows: Rows) -> tuple[Any, Any, float]:
        """Return the fitted model, the curve of what is held out, and the seconds that took."""
        fold, model = self.fold, copy(self.model)
        if self.deadline is not None:
            model.set_params(max_time=max(self.deadline - time.time(), 0.0) * self.share)
        X, y = _safe_split(model, rows.X, rows.y, fold.train)
        X_test, y_test = _safe_split(model, rows.X, rows.y, fold.test, fold.train)
        if self.transformer is not None:
            scaler = clone(self.transformer)
            X = transformed(scaler, X, y, rows.weight_of(fold.train))
            X_test = scaler.transform(X_test)
        elif self.search:
            model.share(FoldMatrix(self.search, rows.X, rows.weight, fold.train, fold.test))
        model.fit(X, y, rows.weight_of(fold.train))
        if not all(path.has_segments for path in paths_of(model)):
            return model, None, 0.0
        began = time.perf_counter()
        curve = self.read(model, X_test, y_test, rows.weight_of(fold.test))
        return model, curve, time.perf_counter() - began


def transformed(transformer: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> Any:
    """Fit a transformer, with the weights if it takes any, and return what it makes of the points."""
    takes_weight = weight is not None and has_fit_parameter(transformer, "sample_weight")
    return transformer.fit_transform(X, y, **({"sample_weight": weight} if takes_weight else {}))


def paths_of(model: Any) -> list[Any]:
    """Return the paths of a fitted SVCPath or SVRPath."""
    return model.paths_ if hasattr(model, "paths_") else [model.path_]


def end_of(model: Any) -> float:
    """Return the largest C that all paths of a model have."""
    return min((float(path.C[-1]) for path in paths_of(model) if path.has_segments), default=0.0)


def gap_of(path: Any) -> float:
    """Return the largest relative gap at a few C: an engine that has lost its way would not come back to the optimum."""
    if not path.has_segments:
        return 0.0
    some = path.value_of(np.geomspace(path.lam[0], path.lam[-1], CHECKS + 1)[1:])
    found = zip(path.certificates(np.unique(some), precisely=False), np.unique(some), strict=True)
    return max(max(at.gap, 0.0) / (abs(at.primal) + path.floor_at(C) or 1.0) for at, C in found)
