"""What scikit-learn's LIBSVM machines predict from: coefficients, intercepts and support vectors, as they lay them out.

Support vectors stand class after class.  ``_dual_coef_`` and ``_intercept_`` are what LIBSVM is passed; the public ones are the
same but for two classes, where their sign is the other.  Neither one class nor several have that.
"""

import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.svm._base import BaseLibSVM

from zerogap.estimators.pairs import laid_out
from zerogap.foreign.reading import Training
from zerogap.kernels import is_precomputed


def refuse_others(training: Training) -> None:
    """Refuse a model that predicts from something else than it shows."""
    model = training.model
    if not isinstance(model, BaseLibSVM) or hasattr(model, "_onedal_estimator"):
        what = f"{training.kind} of {training.classes.size} classes" if training.kind == "NuSVC" else training.kind
        raise TypeError(
            f"polish returns a copy of a {what} with the exact coefficients in it; {type(model).__module__} takes none. Fit "
            f"sklearn.svm.{training.kind} with the same parameters, and polish that. certify(model, X, y, tol=1e-9) tells how "
            "far this one is off."
        )


def with_coefficients(training: Training, of_parts: np.ndarray, biases: np.ndarray) -> Any:
    """Return a copy of the model with other coefficients.

    Parameters
    ----------
    training : Training
        The model and its data; one class, or more than two.
    of_parts : array of shape (problems, n)
        Signed coefficients of every row in every problem.
    biases : array of shape (problems,)
        Intercepts.

    Returns
    -------
    estimator
        Its calibration, if there is one, stays: LIBSVM finds it on folds of its own, and it belongs to no coefficients.
    """
    new = copy.deepcopy(training.model)
    support = np.flatnonzero(of_parts.any(axis=0))
    if training.kind == "OneClassSVM":
        dual, n_support = of_parts[:, support], np.array([support.size, 0])  # two numbers, of which one counts
    else:
        support = support[np.argsort(training.codes[support], kind="stable")]
        n_support = np.bincount(training.codes[support], minlength=training.classes.size)
        dual = laid_out(of_parts[:, support], n_support)
    # Rows of X, also where LIBSVM left some out for their weight: it predicts from columns of a kernel matrix by these numbers.
    new.support_, new._n_support = support.astype(np.int32), n_support.astype(np.int32)
    if not (callable(new.kernel) or is_precomputed(new.kernel)):
        new.support_vectors_ = _vectors(training, support)
    new.dual_coef_ = _like(training.model.dual_coef_, dual)
    new.intercept_ = np.array(biases)
    new._dual_coef_, new._intercept_ = new.dual_coef_, new.intercept_.copy()
    if training.kind == "OneClassSVM":
        new.offset_ = -new.intercept_
    return new


def _vectors(training: Training, support: np.ndarray) -> Any:
    """Return the support vectors, sparse if the model was fitted so."""
    rows = training.X[support]
    if not training.model._sparse:
        return np.ascontiguousarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
    rows = sp.csr_matrix(rows, dtype=np.float64)
    rows.sort_indices()
    numbers = rows.data, rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(training.model.support_vectors_)(numbers, shape=rows.shape)


def _like(old: Any, dual: np.ndarray) -> Any:
    """Return coefficients as an array, or sparse with every zero stored: LIBSVM is passed the numbers alone."""
    if not sp.issparse(old):
        return np.ascontiguousarray(dual)
    rows, columns = dual.shape
    return type(old)((dual.ravel(), np.tile(np.arange(columns), rows), columns * np.arange(rows + 1)), shape=dual.shape)
