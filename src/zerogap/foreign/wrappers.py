"""From a pipeline, a search or a transformed target to the machine at its core, with the data as that machine saw it."""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from zerogap.estimators import SVCPath, SVRPath


class Core(NamedTuple):
    """A machine and its training data."""

    model: Any
    X: Any
    y: Any
    wrap: Callable[[Any], Any]  # puts another machine in its place


def core_of(model: Any, X: Any, y: Any) -> Core:
    """Return the machine that a model ends in."""
    if isinstance(model, Pipeline):
        return _of_pipeline(model, X, y)
    if hasattr(model, "best_estimator_"):
        return core_of(model.best_estimator_, X, y)
    if hasattr(model, "best_params_") or hasattr(model, "cv_results_"):
        raise ValueError(
            f"{type(model).__name__} has no best_estimator_: it was told not to refit. Fit it with refit=True, or pass the "
            "model itself."
        )
    if isinstance(model, TransformedTargetRegressor) and hasattr(model, "regressor_"):
        return _of_transformed(model, X, y)
    if isinstance(model, SVCPath) and hasattr(model, "paths_"):
        return Core(model.at(model.C), X, y, lambda new: new)
    if isinstance(model, SVRPath) and hasattr(model, "path_"):
        return Core(model.at(getattr(model, model.over)), X, y, lambda new: new)
    return Core(model, X, y, lambda new: new)


def _of_pipeline(model: Any, X: Any, y: Any) -> Core:
    for name, step in model.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        if not hasattr(step, "transform"):
            raise TypeError(
                f"Step {name!r} of the pipeline, {type(step).__name__}, has no transform: the points that the last step was "
                "fitted on cannot be told. Pass the last step with its own X and y."
            )
        X = step.transform(X)
    inner = core_of(model.steps[-1][1], X, y)

    def wrap(new: Any) -> Any:
        changed = copy.copy(model)
        changed.steps = [*model.steps[:-1], (model.steps[-1][0], inner.wrap(new))]
        return changed

    return inner._replace(wrap=wrap)


def _of_transformed(model: Any, X: Any, y: Any) -> Core:
    target = np.asarray(y, dtype=np.float64)
    inner = core_of(model.regressor_, X, model.transformer_.transform(target.reshape(-1, 1)).ravel())

    def wrap(new: Any) -> Any:
        changed = copy.copy(model)
        changed.regressor_ = inner.wrap(new)
        return changed

    return inner._replace(wrap=wrap)
