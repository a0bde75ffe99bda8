"""One kernel matrix for all folds: how often it is computed, that results are those of folds on their own, and what is kept."""

import gc
import threading
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import StandardScaler

from zerogap import SVCPathCV, SVRPathCV, datasets
from zerogap.estimators import fold_matrix, workers
from zerogap.estimators.path_cv import PathCV
from zerogap.gram import Gram


@pytest.fixture
def spiral():
    return datasets.spiral(90, random_state=0)


@pytest.fixture
def computed(monkeypatch):
    """The sizes of the matrices that folds have computed; what the final model needs is not counted."""
    sizes, full, refit = [], Gram._new_matrix, PathCV._refit

    def new_matrix(gram, K):
        sizes.append(gram.n)
        return full(gram, K)

    def refit_uncounted(model, rows):
        before = sizes.copy()
        refit(model, rows)
        sizes[:] = before

    monkeypatch.setattr(Gram, "_new_matrix", new_matrix)
    monkeypatch.setattr(PathCV, "_refit", refit_uncounted)
    return sizes


def alone(monkeypatch):
    """Let every fold compute its own."""
    monkeypatch.setattr(fold_matrix, "MOST", 0)


def regression():
    X, y = load_diabetes(return_X_y=True)
    return X[:90], y[:90]


def spirals():
    return datasets.spiral(90, random_state=0)


SEARCHES = {
    "two classes": (SVCPathCV(gamma=[1.0, 10.0], C_max=10.0, cv=3), spirals),
    "no bias": (SVCPathCV(gamma=1.0, C_max=10.0, cv=3, fit_intercept=False), spirals),
    "weights": (SVCPathCV(gamma="auto", C_max=10.0, cv=3, class_weight="balanced"), spirals),
    "classes": (SVCPathCV(gamma=[0.1, 0.5], C_max=10.0, cv=3), lambda: load_iris(return_X_y=True)),
    "polynomial": (SVCPathCV(kernel="poly", gamma=0.1, coef0=1.0, C_max=1.0, cv=3), lambda: load_iris(return_X_y=True)),
    "regression": (SVRPathCV(gamma=5.0, epsilon=[1.0, 10.0], C_max=10.0, cv=3), regression),
}  # fmt: skip


@pytest.mark.parametrize("kind", SEARCHES)
def test_folds_find_what_they_would_alone(kind, computed, monkeypatch):
    model, load = SEARCHES[kind]
    X, y = load()
    model.fit(X, y)
    shared = [curve.fold_scores(np.geomspace(0.01, 0.9, 50)) for curve in model.cv_curves_]
    kernels = {candidate.params.get("gamma") for candidate in model._tried}
    assert computed == [len(X)] * len(kernels)
    alone(monkeypatch)
    computed.clear()
    model.fit(X, y)
    assert len(computed) >= 3 * len(model.cv_curves_)
    # The values differ in the last digits: so do breakpoints, by far less than 50 samples would meet.
    for ours, theirs in zip(shared, model.cv_curves_, strict=True):
        np.testing.assert_allclose(ours, theirs.fold_scores(np.geomspace(0.01, 0.9, 50)), rtol=1e-8)


def test_a_kernel_that_follows_the_training_rows_is_not_shared(spiral, computed):
    X, y = spiral
    SVCPathCV(gamma="scale", C_max=1.0, cv=3).fit(X, y)
    SVCPathCV(gamma=1.0, C_max=1.0, cv=3, transformer=StandardScaler()).fit(X, y)
    assert computed == [60] * 6


def test_what_cannot_be_computed_of_held_out_rows_does_not_matter(computed):
    X, y = datasets.spiral(60, random_state=0)
    X, y = np.vstack([X, [[1e200, 1e200]]]), np.append(y, y[0])
    folds = PredefinedSplit(np.append(np.arange(60) % 2, -1))  # the last row is in no test fold, and has no weight
    weight = np.append(np.ones(60), 0.0)
    model = SVCPathCV(kernel="poly", gamma=1.0, C_max=1.0, cv=folds).fit(X, y, weight)
    assert computed == [30, 30]  # that of all rows fails at its diagonal
    assert 0.0 < model.best_score_ <= 1.0


def product(X, Z):
    return X @ Z.T


def test_a_function_is_asked_for_larger_matrices_too(spiral, computed, monkeypatch):
    alone(monkeypatch)
    SVCPathCV(kernel=product, C_max=1.0, cv=3).fit(*spiral)
    assert computed == [90]


def test_folds_may_be_told_by_true_and_false(spiral):
    X, y = spiral
    is_test = np.arange(90) % 3 == 0
    by_flags = SVCPathCV(gamma=1.0, C_max=10.0, cv=[(~is_test, is_test), (is_test, ~is_test)]).fit(X, y)
    rows, others = np.flatnonzero(is_test), np.flatnonzero(~is_test)
    by_number = SVCPathCV(gamma=1.0, C_max=10.0, cv=[(others, rows), (rows, others)]).fit(X, y)
    np.testing.assert_array_equal(by_flags.cv_curve_.edges, by_number.cv_curve_.edges)


def same(one, other):
    np.testing.assert_array_equal(one.cv_curve_.edges, other.cv_curve_.edges)
    np.testing.assert_array_equal(one.cv_curve_.mean.score, other.cv_curve_.mean.score)


def test_threads_compute_it_once_and_nobody_keeps_it(spiral, computed, monkeypatch):
    X, y = spiral
    monkeypatch.setattr(workers, "WORTH_THREADS", 0)
    one = SVCPathCV(gamma=[1.0, 10.0], C_max=10.0).fit(X, y)
    assert fold_matrix._last._gram is None
    computed.clear()
    with parallel_config("threading"):
        same(SVCPathCV(gamma=[1.0, 10.0], C_max=10.0, n_jobs=2).fit(X, y), one)
    assert 2 <= len(computed) <= 4  # a thread may be one gamma behind
    assert fold_matrix._last._gram is None


@pytest.mark.long
def test_processes_find_the_same(spiral):
    one = SVCPathCV(gamma=[1.0, 10.0], C_max=10.0).fit(*spiral)
    with parallel_config("loky"):
        same(SVCPathCV(gamma=[1.0, 10.0], C_max=10.0, n_jobs=2).fit(*spiral), one)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_what_is_kept_reads_no_file_of_joblibs(is_sparse, spiral, tmp_path):
    """Large arrays come to a process as files, whose end a search waits for a second."""
    from zerogap.kernels import RBF

    X = sp.hstack([spiral[0], sp.csr_matrix((90, 300))], format="csr") if is_sparse else spiral[0]
    values = X.data if is_sparse else X
    mapped = np.memmap(tmp_path / "points", dtype=float, mode="w+", shape=values.shape)
    mapped[:] = values
    points = sp.csr_matrix((mapped, X.indices, X.indptr), shape=X.shape) if is_sparse else mapped[:]
    last = weakref.ref(mapped)
    gram = fold_matrix._last.matrix("some", points, RBF(1.0))
    del mapped, points
    gc.collect()
    assert last() is None
    np.testing.assert_array_equal(gram.full(), Gram(X, RBF(1.0)).full())
    fold_matrix.forget()


def test_another_process_lets_go_of_it(spiral, monkeypatch):
    from zerogap.kernels import RBF

    monkeypatch.setattr(fold_matrix, "IDLE", 0.01)
    with fold_matrix.kept_for_a_while():
        fold_matrix._last.matrix("some", spiral[0], RBF(1.0))
    timer = fold_matrix._last._timer
    assert isinstance(timer, threading.Timer)
    timer.join(10.0)
    assert fold_matrix._last._gram is None
    with fold_matrix.kept_for_a_while():  # nothing to let go of
        pass
    assert fold_matrix._last._timer is None
