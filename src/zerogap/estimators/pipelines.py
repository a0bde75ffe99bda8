"""Score curves of models that transform their points before a path sees them."""

from typing import Any

from sklearn.pipeline import Pipeline

from zerogap.estimators.svc_path import SVCPath
from zerogap.path import ScoreCurve


def score_curve(model: Any, X: Any, y: Any, sample_weight: Any = None) -> ScoreCurve:
    """Return the accuracy on held-out data for every C, of a fitted path or of a pipeline that ends in one.

    A pipeline transforms the points first, as its ``predict`` and ``score`` do.  Its last step alone, ``pipe[-1]``, does not.

    Parameters
    ----------
    model : SVCPath, Pipeline or search
        Fitted: an :class:`zerogap.SVCPath`, a pipeline whose last step is one, or a search with such a ``best_estimator_``.
    X : array or CSR matrix of shape (n, d)
        Points as the model's ``fit`` took them.
    y : array of shape (n,)
        Their labels.
    sample_weight : array of shape (n,), optional
        Weights of the points in the accuracy.

    Returns
    -------
    ScoreCurve
        Piecewise constant in C.

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
    while not isinstance(last, SVCPath):
        if isinstance(last, Pipeline):
            X = last[:-1].transform(X) if len(last) > 1 else X
            last = last[-1]
        elif hasattr(last, "best_estimator_"):
            last = last.best_estimator_
        else:
            where = "" if last is model else f", which ends in {type(last).__name__}"
            raise TypeError(
                f"score_curve takes a fitted SVCPath, or a pipeline that ends in one; got {type(model).__name__}{where}."
            )
    return last.score_curve(X, y, sample_weight)
