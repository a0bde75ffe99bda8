"""Score curves of models that transform their points before a path sees them."""

from typing import Any

from sklearn.pipeline import Pipeline

from zerogap.estimators.svc_path import SVCPath
from zerogap.estimators.svr_path import SVRPath
from zerogap.path import ErrorCurve, ScoreCurve


def score_curve(
    model: Any, X: Any, y: Any, sample_weight: Any = None, *, scoring: Any = None
) -> ScoreCurve | ErrorCurve:
    """Return the score on held-out data for every C, or epsilon, of a fitted path or of a pipeline that ends in one.

    A pipeline transforms the points first, as its ``predict`` and ``score`` do.  Its last step alone, ``pipe[-1]``, does not.

    Parameters
    ----------
    model : SVCPath, SVRPath, Pipeline or search
        Fitted: an :class:`zerogap.SVCPath` or :class:`zerogap.SVRPath`, a pipeline whose last step is one, or a search with
        such a ``best_estimator_``.
    X : array or CSR matrix of shape (n, d)
        Points as the model's ``fit`` took them.
    y : array of shape (n,)
        Their labels, or targets.
    sample_weight : array of shape (n,), optional
        Weights of the points in the score.
    scoring : str or callable, optional
        The score, as in :meth:`zerogap.SVCPath.score_curve` and :meth:`zerogap.SVRPath.score_curve`; by default the accuracy,
        or the squared error.

    Returns
    -------
    ScoreCurve or ErrorCurve
        Piecewise constant in C, the accuracy; or of an ``SVRPath`` piecewise quadratic.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from zerogap import SVCPath, score_curve
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> pipe = make_pipeline(StandardScaler(), SVCPath(C_max=10.0)).fit(X[::2], y[::2])
    >>> round(score_curve(pipe, X[1::2], y[1::2]).best_score, 2)
    0.97
    """
    last = model
    while not isinstance(last, SVCPath | SVRPath):
        if isinstance(last, Pipeline):
            X = last[:-1].transform(X) if len(last) > 1 else X
            last = last[-1]
        elif hasattr(last, "best_estimator_"):
            last = last.best_estimator_
        else:
            where = "" if last is model else f", which ends in {type(last).__name__}"
            raise TypeError(
                "score_curve takes a fitted SVCPath or SVRPath, or a pipeline that ends in one; got "
                f"{type(model).__name__}{where}."
            )
    return last.score_curve(X, y, sample_weight, **({} if scoring is None else {"scoring": scoring}))
