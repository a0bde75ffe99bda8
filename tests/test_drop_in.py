"""What code written for scikit-learn's SVC and SVR relies on; ``benchmarks/sklearn_tests.py`` runs scikit-learn's own tests."""

import pickle
import signal
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

from zerogap import SVC, SVR, DualProblem, Gram, Status, SVCPath, leave_one_out, load
from zerogap.estimators import calibration
from zerogap.kernels import gamma_value
from zerogap.limits import heard
from zerogap.solvers import SMO, Auto

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import sklearn_tests

X, Y = load_iris(return_X_y=True)
X2, Y2 = X[50:], Y[50:]
FORMATS = [
    getattr(sp, f"{name}_{kind}") for name in ("csr", "csc", "coo", "lil", "dok") for kind in ("matrix", "array")
]


# Parameters.


def test_parameters_of_scikit_learns_are_ours():
    for ours, theirs in ((SVC, sklearn.svm.SVC), (SVR, sklearn.svm.SVR)):
        given = theirs().get_params()
        model = ours(**given)
        assert {name: model.get_params()[name] for name in given} == given
        model.fit(X, Y)
        assert not hasattr(model, "predict_proba")  # scikit-learn 1.9 has probability="deprecated" by default


@pytest.mark.parametrize("name", ["shrinking", "break_ties", "probability"])
def test_flags_are_true_or_false(name):
    with pytest.raises(ValueError, match=f"{name} must be True or False; got {name}=3"):
        SVC(**{name: 3}).fit(X, Y)


def test_without_shrinking_no_solver_sets_points_aside():
    solvers = [SVC(solver=name, shrinking=False)._chosen_solver() for name in ("smo", "smo-mvp", "auto", "rosen")]
    assert solvers == [SMO(shrinking=False), SMO(second_order=False, shrinking=False), Auto(shrinking=False), "rosen"]
    assert SVR(shrinking=False)._chosen_solver() == Auto(shrinking=False)
    assert SVC()._chosen_solver() == "auto"
    own = SMO(rows_at_once=1)
    assert SVC(solver=own, shrinking=False)._chosen_solver() is own
    model = SVC(shrinking=False, solver="smo").fit(X, Y)
    assert model.duality_gap_ <= 1e-4


@pytest.mark.parametrize("shrinking", [True, False])
def test_auto_hands_shrinking_on_to_its_pairs(shrinking, monkeypatch):
    used, step = [], SMO.step
    monkeypatch.setattr(SMO, "step", lambda self, *rest: used.append(self.shrinking) or step(self, *rest))
    problem = DualProblem.hinge(Gram(X2, cache_size=1e-9), np.where(Y2 == 1, 1.0, -1.0), 1.0)
    solver = Auto(whole=10, shrinking=shrinking)
    monkeypatch.setattr(Auto, "_is_large", lambda self, problem: False)  # as if memory were too short for any part
    solver.step(problem, solver.init(problem), 10, 1e-3)
    assert used == [shrinking]


def test_ties_are_broken_by_the_largest_decision_value():
    """Kernel values far from all points are zero: the biases decide, and votes may be in a circle."""
    points, y = make_blobs(n_samples=20, random_state=42)
    rows = np.random.default_rng(0).uniform(points.min(), points.max(), size=(400, 2))
    plain = SVC(gamma=1e6).fit(points, y)
    broken = SVC(gamma=1e6, break_ties=True).fit(points, y)
    largest = broken.decision_function(rows).argmax(axis=1)
    assert (plain.predict(rows) != largest).any()
    np.testing.assert_array_equal(broken.predict(rows), largest)
    peer = sklearn.svm.SVC(gamma=1e6, break_ties=True).fit(points, y)
    np.testing.assert_array_equal(broken.predict(rows), peer.predict(rows))
    with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
        broken.set_params(decision_function_shape="ovo").predict("not looked at")
    two = SVC(break_ties=True).fit(X2, Y2)
    np.testing.assert_array_equal(two.predict(X2), SVC().fit(X2, Y2).predict(X2))


def test_gamma_does_not_change_with_class_weights_and_does_with_sample_weights():
    class_weight = {0: 5.0, 1: 0.3}
    ours, peer = SVC(class_weight=class_weight).fit(X, Y), sklearn.svm.SVC(class_weight=class_weight).fit(X, Y)
    assert ours._kernel.gamma == pytest.approx(peer._gamma, rel=1e-14)
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    np.testing.assert_allclose(ours.class_weight_, peer.class_weight_)
    weight = np.where(Y == 0, 5, 1)
    assert SVC().fit(X, Y, weight)._kernel.gamma == pytest.approx(1 / (4 * X.repeat(weight, axis=0).var()), rel=1e-13)


# What a fitted model has.


def test_fitted_attributes_are_there_and_follow_the_model():
    model, peer = SVC(class_weight="balanced").fit(X[:120], Y[:120]), sklearn.svm.SVC(class_weight="balanced")
    peer.fit(X[:120], Y[:120])
    np.testing.assert_allclose(model.class_weight_, peer.class_weight_)
    assert (model.fit_status_, model.shape_fit_) == (peer.fit_status_, peer.shape_fit_) == (0, (120, 4))
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1"):
        assert SVC(max_iter=1, C=1e4).fit(X, Y).fit_status_ == 1
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1"):
        assert SVR(max_iter=1, C=1e4).fit(X, Y).fit_status_ == 1
    assert SVR().fit(X, Y).fit_status_ == 0
    assert not hasattr(SVC(), "fit_status_")
    grown = SVC(class_weight={1: 2.0}).partial_fit(X2, Y2)
    np.testing.assert_array_equal(grown.class_weight_, [2.0, 1.0])
    np.testing.assert_array_equal(grown.set_params(class_weight={1: 3.0}).forget([0]).class_weight_, [3.0, 1.0])
    np.testing.assert_array_equal(SVCPath(C_max=2.0).fit(X2, Y2).at(1.0).class_weight_, [1.0, 1.0])


@pytest.mark.parametrize("model", [SVC(kernel="linear"), SVR(kernel="linear")], ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_weights_of_features_are_to_be_read_only(model, form):
    model = clone(model).fit(form(X), Y)
    with pytest.raises(AttributeError):
        model.coef_ = np.zeros((3, 4))
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0


# Sparse points.


@pytest.mark.thin(4)
@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.__name__)
@pytest.mark.parametrize("model", [SVC(), SVC(kernel="linear"), SVR(kernel="poly")], ids=str)
def test_sparse_points_of_any_format_are_the_same_model(model, form):
    dense, sparse = clone(model).fit(X, Y), clone(model).fit(form(X), Y)
    assert sp.issparse(sparse.support_vectors_)
    assert type(sparse.dual_coef_) is type(sparse.support_vectors_)
    np.testing.assert_array_equal(sparse.dual_coef_.toarray(), dense.dual_coef_)
    np.testing.assert_array_equal(sparse.support_vectors_.toarray(), dense.support_vectors_)
    # Sums of products and of coefficients are in another order for sparse points.
    rounding = 16 * np.finfo(float).eps * np.abs(dense.dual_coef_).sum() * np.abs(dense._kernel(X, X)).max()
    for found in (sparse.predict(form(X)), sparse.predict(X), dense.predict(form(X))):
        np.testing.assert_allclose(found, dense.predict(X), rtol=0.0, atol=rounding)
    if model.kernel == "linear":
        assert sp.issparse(sparse.coef_)
        np.testing.assert_allclose(sparse.coef_.toarray(), dense.coef_, rtol=1e-14)


@pytest.mark.parametrize("rows_bytes", [8_000_000, 100])
def test_gamma_of_sparse_points_that_are_made_dense_is_the_same_to_the_last_bit(rows_bytes, monkeypatch):
    """Or the two fits would take other steps, and end elsewhere within tol."""
    monkeypatch.setattr("zerogap.kernels.scale.ROWS_BYTES", rows_bytes)
    rng = np.random.default_rng(1)
    for points in (X, rng.normal(size=(40, 300)) * 1e5 + 1e4):
        weight = rng.uniform(size=len(points))
        assert gamma_value("scale", sp.csr_matrix(points), weight) == gamma_value("scale", points, weight)


def wide_points():
    """More features than are made dense, most of them nowhere."""
    rng = np.random.default_rng(0)
    return sp.random(60, 2000, density=0.01, format="csr", random_state=rng), rng.integers(0, 3, size=60)


@pytest.mark.parametrize("model", [SVC(kernel="linear"), SVR(kernel="linear")], ids=str)
def test_weights_of_very_many_features_are_sparse(model):
    points, y = wide_points()
    model = clone(model).fit(points, y)
    assert model.coef_.nnz < 0.5 * points.shape[1] * model.coef_.shape[0]
    model.decision_function_shape = "ovo"
    expected = model.decision_function(points) if isinstance(model, SVC) else model.predict(points)
    found = (points @ model.coef_.T).toarray() + model.intercept_
    np.testing.assert_allclose(found.reshape(expected.shape), expected, atol=1e-12)


def test_unsorted_indices_are_the_same_points():
    points, y = wide_points()
    mixed = points.copy()
    for start, stop in zip(points.indptr, points.indptr[1:], strict=False):
        mixed.indices[start:stop], mixed.data[start:stop] = (
            points.indices[start:stop][::-1],
            points.data[start:stop][::-1],
        )
    mixed.has_sorted_indices = False
    ours, same = SVC(kernel="linear").fit(mixed, y), SVC(kernel="linear").fit(points, y)
    np.testing.assert_allclose(ours.coef_.toarray(), same.coef_.toarray(), rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(ours.predict(mixed), same.predict(points))
    assert not mixed.has_sorted_indices


def test_sparse_points_without_support_vectors():
    model = SVR(kernel="linear").fit(sp.csr_matrix([[0, 1.0], [1.0, 0], [0, 2.0]]), [0.0, 0.05, 0.1])
    assert model.support_vectors_.shape == (0, 2)
    assert model.dual_coef_.shape == (1, 0)
    assert model.coef_.nnz == 0
    np.testing.assert_allclose(model.predict(sp.csr_matrix([[3.0, 1.0]])), [0.05], atol=0.06)


def test_a_kernel_function_may_return_a_sparse_matrix():
    model = SVC(kernel=lambda a, b: a @ b.T).fit(sp.csr_matrix(X), Y)
    np.testing.assert_array_equal(model.predict(sp.csr_matrix(X)), SVC(kernel="linear").fit(X, Y).predict(X))


def test_csr_models_are_stored(tmp_path):
    for form in (sp.csr_matrix, sp.csr_array):
        model = SVC(kernel="linear", probability=True, random_state=0).fit(form(X), Y)
        model.save(tmp_path / "model")
        for twin in (load(tmp_path / "model.npz"), pickle.loads(pickle.dumps(model))):
            assert type(twin.dual_coef_) is type(model.dual_coef_)
            np.testing.assert_array_equal(twin.coef_.toarray(), model.coef_.toarray())
            np.testing.assert_array_equal(twin.predict_proba(X), model.predict_proba(X))
            np.testing.assert_array_equal(twin.class_weight_, model.class_weight_)
            assert (twin.fit_status_, twin.shape_fit_) == (model.fit_status_, model.shape_fit_)


# Points that are no rows of numbers.

TEXTS = ["a a b", "a", "b b", "b a b b", "a a a", "b", "a b", "a a", "b b b"]
SIDES = np.array([0, 0, 1, 1, 0, 1, 0, 0, 1])


def count(texts):
    return np.array([[text.count("a"), text.count("b")] for text in texts], dtype=float)


def of_texts(A, B):
    assert all(isinstance(text, str) for text in (*A, *B))
    return count(A) @ count(B).T


@pytest.mark.parametrize(
    "kind", [list, np.array, lambda texts: np.array(texts, dtype=object)], ids=["list", "text", "object"]
)
@pytest.mark.parametrize("model", [SVC(tol=1e-10), SVR(tol=1e-10)], ids=str)
def test_a_kernel_function_may_take_texts(model, kind):
    y = SIDES + (0 if isinstance(model, SVC) else 0.5)
    ours = clone(model).set_params(kernel=of_texts).fit(kind(TEXTS), y, sample_weight=[1, 2, 1, 1, 0, 1, 1, 3, 1])
    same = clone(model).set_params(kernel="linear").fit(count(TEXTS), y, sample_weight=[1, 2, 1, 1, 0, 1, 1, 3, 1])
    new = ["a b b", "a a b", "a"]
    np.testing.assert_array_equal(ours.predict(kind(new)).round(8), same.predict(count(new)).round(8))
    assert ours.duality_gap_ <= 1e-10
    assert ours.shape_fit_ == (9,)
    assert ours.support_vectors_.shape == (0, 0)
    assert not hasattr(ours, "n_features_in_")
    assert ours.score(TEXTS, y) == pytest.approx(same.score(count(TEXTS), y), abs=1e-6)
    back = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(back.predict(kind(new)), ours.predict(kind(new)))
    assert len(pickle.dumps(ours)) < 20_000  # the kernel matrix is not kept


def test_texts_of_three_classes_in_cross_validation():
    texts, y = TEXTS * 3, np.tile([0, 0, 1, 1, 2, 1, 0, 2, 1], 3)
    ours = cross_val_score(SVC(kernel=of_texts), texts, y, cv=3)
    np.testing.assert_array_equal(ours, cross_val_score(sklearn.svm.SVC(kernel=of_texts), texts, y, cv=3))
    model = SVC(kernel=of_texts, probability=True, random_state=0).fit(texts, y)
    np.testing.assert_allclose(model.predict_proba(texts).sum(axis=1), 1.0)


def test_numbers_in_one_dimension_or_three_are_for_the_function_to_understand():
    numbers = np.arange(len(TEXTS))
    K = of_texts(TEXTS, TEXTS)
    by_number = SVC(kernel=lambda a, b: K[np.ix_(a, b)]).fit(numbers, SIDES)
    np.testing.assert_array_equal(by_number.predict(numbers), SVC(kernel=of_texts).fit(TEXTS, SIDES).predict(TEXTS))
    images = X2.reshape(-1, 2, 2)
    of_images = SVC(kernel=lambda a, b: np.einsum("iab,jab->ij", a, b)).fit(images, Y2)
    np.testing.assert_array_equal(of_images.predict(images), SVC(kernel="linear").fit(X2, Y2).predict(X2))


def test_what_happens_to_objects_later_is_no_part_of_the_model():
    texts = list(TEXTS)
    model = SVC(kernel=of_texts).fit(texts, SIDES)
    expected = model.decision_function(TEXTS)
    texts[:] = ["b"] * len(texts)
    np.testing.assert_array_equal(model.decision_function(TEXTS), expected)
    model.set_params(kernel="rbf").fit(X2, Y2)
    assert model.n_features_in_ == 4
    np.testing.assert_array_equal(model.predict(X2), SVC().fit(X2, Y2).predict(X2))


def test_wrong_kernels_of_objects_are_told():
    with pytest.raises(ValueError, match=r"of shape \(9, 9\); got \(9, 1\)"):
        SVC(kernel=lambda a, b: np.ones((len(a), 1))).fit(TEXTS, SIDES)
    with pytest.raises(ValueError, match="not symmetric for the training points"):
        SVC(kernel=lambda a, b: np.triu(of_texts(a, b))).fit(TEXTS, SIDES)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC(kernel=of_texts).fit(TEXTS, SIDES[1:])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVR(kernel=of_texts).fit(TEXTS, SIDES[1:])
    with pytest.raises(ValueError, match="no rows of numbers"):
        leave_one_out(SVC(kernel=of_texts).fit(TEXTS, SIDES))
    with pytest.raises(ValueError, match="could not convert string"):
        SVC().fit([["a"], ["b"]], [0, 1])
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        SVC(kernel=lambda a, b: -of_texts(a, b)).fit(TEXTS, SIDES)


# Regression without slack.


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_an_infinite_cost_leaves_nothing_outside_the_tube(loss):
    points, y = load_diabetes(return_X_y=True)
    points, y = points[:100], y[:100]
    for weight in (None, np.random.default_rng(0).integers(1, 3, size=100)):
        model = SVR(C=np.inf, loss=loss, gamma=100.0).fit(points, y, weight)
        assert model.status_ is Status.CONVERGED
        # What is beyond the tube, summed, costs at most the gap; a C of a million times ptp(y) is below the one that was used.
        slack = np.maximum(np.abs(model.predict(points) - y) - 0.1, 0.0).sum()
        assert slack <= model.certificate_.gap / 1e6
        assert np.abs(model.dual_coef_).max() < 1e6
        assert model.duality_gap_ <= 1e-7  # a thousandth of tol, as only rounding stands against it
    peer = sklearn.svm.SVR(C=1e10, gamma=100.0, tol=1e-10).fit(points, y)
    rounding = 2.0**-24 * np.abs(peer.dual_coef_).sum()  # its kernel values are of float32
    np.testing.assert_allclose(model.predict(points), peer.predict(points), atol=2 * rounding)
    large = SVR(C=1e9, gamma=100.0).fit(points, y)
    np.testing.assert_allclose(model.predict(points), large.predict(points), rtol=1e-7)


def test_where_no_function_is_within_the_tube_that_is_said():
    points = np.array([[0.0], [0.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match=r"no function of this kernel within epsilon=0.1 of every target"):
        model = SVR(C=np.inf).fit(points, [0.0, 1.0, 0.0])
    assert (model.status_, model.fit_status_) == (Status.UNBOUNDED, 1)
    assert np.isfinite(model.predict(points)).all()
    with pytest.warns(ConvergenceWarning, match="SVR stopped after 1 steps"):  # which says nothing of the tube
        assert SVR(C=np.inf, max_iter=1).fit(X, X[:, 0]).status_ is Status.MAX_STEPS
    assert SVR(C=np.inf, epsilon=0.6).fit(points, [0.0, 1.0, 0.0]).status_ is Status.CONVERGED


# Probabilities.


@pytest.mark.covering
@pytest.mark.parametrize("labels", [Y, np.array(["one", "two", "three"])[Y]], ids=["numbers", "texts"])
@pytest.mark.parametrize("part", [slice(None), slice(50, None)], ids=["three", "two"])
@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.long), True])
def test_probabilities_are_those_that_scikit_learn_advises(labels, part, weighted):
    points, y = X[part], labels[part]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y)) if weighted else None
    model = SVC(probability=True, gamma=0.1, tol=1e-8).fit(points, y, weight)
    peer = CalibratedClassifierCV(SVC(gamma=0.1, tol=1e-8), method="sigmoid", ensemble=False).fit(points, y, weight)
    found = model.predict_proba(points)
    np.testing.assert_allclose(
        found, peer.predict_proba(points), atol=2e-5
    )  # theirs is by L-BFGS, to a gradient of 1e-6
    np.testing.assert_allclose(np.exp(model.predict_log_proba(points)), found)
    assert model.calibration_.shape == (1 if len(model.classes_) == 2 else 3, 2)
    np.testing.assert_array_equal(
        model.decision_function(points), SVC(gamma=0.1, tol=1e-8).fit(points, y, weight).decision_function(points)
    )


def test_the_sigmoid_makes_the_cross_entropy_least():
    rng = np.random.default_rng(0)
    f = 1e8 * rng.normal(size=300)
    is_positive, weight = f + 1e8 * rng.normal(size=300) > 5e7, rng.uniform(0.1, 3.0, size=300)
    ((a, b),) = calibration.sigmoids(f[:, None], is_positive.astype(int), weight)
    above, below = weight[is_positive].sum(), weight[~is_positive].sum()
    target = np.where(is_positive, (above + 1) / (above + 2), 1 / (below + 2))
    p = calibration.probabilities(f[:, None], np.array([[a, b]]))[:, 1]
    # The derivatives by B, and by A times the largest value; each is a sum of 300 terms of size one.
    assert abs(weight @ (target - p)) < 1e-9
    assert abs(weight @ ((target - p) * f)) < 1e-9 * 1e8
    assert a < 0


def test_probabilities_of_extreme_values_are_numbers():
    values = np.array([[1e300, -1e300, 0.0], [-1e300, -1e300, -1e300]])
    found = calibration.probabilities(values, np.tile([-1e300, 0.0], (3, 1)))
    np.testing.assert_allclose(found, [[2 / 3, 0.0, 1 / 3], [1 / 3, 1 / 3, 1 / 3]])
    same = calibration.sigmoids(np.ones((6, 1)), np.array([0, 0, 0, 1, 1, 1]), np.ones(6))
    np.testing.assert_allclose(calibration.probabilities(np.ones((1, 1)), same), [[0.5, 0.5]])


def test_folds_follow_the_seed_and_without_one_the_rows():
    a, b, c, d = (SVC(probability=True, random_state=seed).fit(X2, Y2).calibration_ for seed in (None, None, 0, 0))
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(c, d)
    assert not np.array_equal(a, c)


def test_probabilities_are_there_if_they_are_asked_for():
    model = SVC()
    assert not hasattr(model, "predict_proba")
    model.set_params(probability=True)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model.predict_proba(X)
    model.set_params(probability=False).fit(X, Y).set_params(probability=True)
    with pytest.raises(NotFittedError, match="predict_proba is not available when fitted with probability=False"):
        model.predict_proba(X)
    assert model.fit(X, Y).calibration_ is not None
    assert model.set_params(probability=False).fit(X, Y).calibration_ is None  # not that of the fit before
    assert not hasattr(model, "predict_log_proba")


def test_probabilities_do_not_outlive_the_rows_they_were_made_of():
    model = SVC(probability=True).fit(X2, Y2)
    for change in (lambda: model.forget([0]), lambda: model.partial_fit(X2[:1], Y2[:1])):
        model.fit(X2, Y2).predict_proba(X2)
        change()
        with pytest.raises(NotFittedError, match="after partial_fit and forget"):
            model.predict_proba(X2)


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 2.0, "b": 1.0, "c": 3.0}], ids=str)
def test_classes_that_a_fold_does_not_have(class_weight):
    """A single row of a class: the model without it knows two classes, or one."""
    y = np.array(["a"] * 3 + ["b"] * 4 + ["c"])
    points = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2], [1.3], [3.0]])
    for rows in (slice(None), slice(3, None)):
        weight = (
            class_weight if not isinstance(class_weight, dict) else {k: class_weight[k] for k in np.unique(y[rows])}
        )
        model = SVC(probability=True, class_weight=weight).fit(points[rows], y[rows])
        found = model.predict_proba(points[rows])
        np.testing.assert_allclose(found.sum(axis=1), 1.0)
        assert (found > 0).all()
    with pytest.raises(ValueError, match="a class with at least two rows"):
        SVC(probability=True).fit([[0.0], [1.0]], [0, 1])


def test_a_fold_without_a_class_decides_against_it():
    y = np.array([0, 0, 0, 1, 1, 1, 2])
    points = np.array([[0.0], [0.1], [0.2], [1.0], [1.1], [1.2], [3.0]])
    model = SVC().fit(points, y)
    rows, last = np.arange(6), np.array([6])
    found = model._decisions_without(points, y, np.ones(7), rows, last)
    of_two = SVC().fit(points[:6], y[:6]).decision_function(points[6:])
    np.testing.assert_allclose(found, [[-of_two[0], 1.0, 1.0]])  # the first of a pair is the positive one
    alone = model._decisions_without(points, y, np.ones(7), np.array([3, 4]), last)
    np.testing.assert_array_equal(alone, [[-1.0, 0.0, 1.0]])
    two = SVC().fit(points[:6], y[:6])
    np.testing.assert_array_equal(two._decisions_without(points, y, np.ones(7), np.array([3, 4]), last), [[1.0]])


def test_rows_without_weight_have_no_part_in_probabilities():
    weight = np.ones(len(Y))
    weight[::7] = 0.0
    a = SVC(probability=True, tol=1e-9).fit(X, Y, weight)
    b = SVC(probability=True, tol=1e-9).fit(X[weight > 0], Y[weight > 0])
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-6)


def test_precomputed_kernels_have_probabilities():
    K = rbf_kernel(X, gamma=0.1)
    ours = SVC(kernel="precomputed", probability=True, tol=1e-9).fit(K, Y)
    np.testing.assert_allclose(
        ours.predict_proba(K), SVC(gamma=0.1, probability=True, tol=1e-9).fit(X, Y).predict_proba(X), atol=1e-5
    )


def test_ctrl_c_leaves_a_model_without_probabilities(monkeypatch):
    model, step = SVC(probability=True), SVC._decisions_without

    def press(self, *rest):
        signal.raise_signal(signal.SIGINT)
        return step(self, *rest)

    monkeypatch.setattr(SVC, "_decisions_without", press)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X2, Y2)
    assert model.status_ is Status.CONVERGED
    heard()
    np.testing.assert_array_equal(model.predict(X2), SVC().fit(X2, Y2).predict(X2))
    with pytest.raises(NotFittedError, match="interrupted"):
        model.predict_proba(X2)


def test_a_fold_short_of_the_tolerance_says_that_it_is_one():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVC(probability=True, max_iter=1, C=1e4).fit(X2, Y2)
    messages = [str(one.message) for one in caught]
    assert sum(message.startswith("SVC stopped after") for message in messages) == 1
    assert any(message.startswith("One of the folds for probabilities: SVC stopped after") for message in messages)


# The script that runs scikit-learn's tests.


def judged(outcome, text="", name="test_one[SVC]"):
    """Return what becomes of a report of a test that is an exception with the words "is seen"."""
    judge = sklearn_tests.Judge((sklearn_tests.Exempt(r"test_one\[SVC\]", "is seen", "why"),))
    report = SimpleNamespace(
        when="call",
        outcome=outcome,
        longreprtext=text,
        sections=[],
        passed=outcome == "passed",
        skipped=outcome == "skipped",
    )
    hook = judge.pytest_runtest_makereport(SimpleNamespace(name=name), None)
    next(hook)
    with pytest.raises(StopIteration) as end:
        hook.send(report)
    return end.value.value, judge.met.total()


def test_an_exception_must_fail_and_as_it_is_said():
    report, met = judged("failed", "what is seen")
    assert (report.outcome, report.wasxfail, met) == ("skipped", "why", 1)
    report, met = judged("passed")
    assert (report.outcome, met) == ("failed", 0)
    assert "Stale" in report.longrepr
    report, met = judged("failed", "something else")
    assert (report.outcome, met) == ("failed", 0)
    assert "not with 'is seen'" in report.sections[0][1]
    for name in ("test_one[NuSVC]", "test_two[SVC]"):
        report, met = judged("failed", "what is seen", name)
        assert (report.outcome, met) == ("failed", 0)


@pytest.mark.parametrize("estimator", [SVC(gamma=0.5), SVR(gamma=0.5), SVC(kernel="poly"), SVC(kernel="linear")])
def test_several_entries_of_a_sparse_feature_are_their_sum(estimator):
    X, y = np.array([[0.0, 1.0], [1.0, 1.0], [3.0, 2.0], [4.0, 3.0]]), [0, 0, 1, 1]
    halves = sp.csr_matrix((np.repeat(X.ravel() / 2, 2), np.repeat(np.tile([0, 1], 4), 2), np.arange(5) * 4), X.shape)
    stored = halves.nnz
    method = "decision_function" if isinstance(estimator, SVC) else "predict"
    expected = getattr(clone(estimator).fit(X, y), method)(X)
    model = clone(estimator).fit(halves, y)
    np.testing.assert_allclose(getattr(model, method)(X), expected, rtol=1e-9)
    np.testing.assert_allclose(getattr(model, method)(halves), expected, rtol=1e-9)
    assert halves.nnz == stored  # the caller's own is as it was


def test_probabilities_that_ctrl_c_has_cut_short_are_missed(monkeypatch):
    X, y = load_iris(return_X_y=True)
    decisions, calls = SVC._decisions_without, []

    def pressed(self, *args):
        calls.append(args)
        if len(calls) == 2:
            signal.raise_signal(signal.SIGINT)
        return decisions(self, *args)

    monkeypatch.setattr(SVC, "_decisions_without", pressed)
    with pytest.warns(ConvergenceWarning) as said:
        model = SVC(probability=True).fit(X, y)
    assert any("before its probabilities were calibrated" in str(warning.message) for warning in said)
    assert model.predict(X).size == y.size
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


def test_weights_of_sparse_points_are_those_of_dense_ones_to_the_last_digit():
    """Where coefficients cancel a weight is zero, or a last digit: which of them must not depend on the form."""
    X, y = (part[:50] for part in load_digits(return_X_y=True))
    for estimator, target in ((SVC(kernel="linear"), y), (SVR(kernel="linear"), y.astype(float))):
        dense, sparse = (clone(estimator).fit(points, target) for points in (X, sp.csr_matrix(X)))
        assert sp.issparse(sparse.coef_)
        np.testing.assert_array_equal(sparse.coef_.toarray(), dense.coef_)
