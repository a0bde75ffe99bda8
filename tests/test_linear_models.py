"""LinearSVC and LinearSVR: scikit-learn's objective and its face, with a certificate; sparse points stay sparse."""

import warnings
from fractions import Fraction
from operator import mul

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.utils.estimator_checks import parametrize_with_checks

from zerogap import SVC, SVR, LinearSVC, LinearSVR, Status, certify, load, polish


@pytest.mark.thin(2)
@parametrize_with_checks([LinearSVC(), LinearSVR()])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def text(n=300, d=5000, seed=0):
    """Return sparse points, most features of which are in few of them, and labels with noise."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.01, format="csr", random_state=rng)
    X.data = np.abs(X.data) + 0.1
    f = X @ rng.standard_normal(d)
    return X, np.where(f + 0.3 * f.std() * rng.standard_normal(n) > 0, "yes", "no")


def objective(model, X, y, loss, weight=1.0):
    """Return scikit-learn's objective of a model of two classes."""
    w, b = np.asarray(model.coef_).ravel(), float(np.ravel(model.intercept_)[0])
    short = np.maximum(0.0, 1.0 - np.where(y == model.classes_[1], 1.0, -1.0) * (X @ w + b))
    norm = w @ w + (0.0 if getattr(model, "free_intercept", False) else (b / model.intercept_scaling) ** 2)
    return 0.5 * norm + model.C * float((weight * (short if loss == "hinge" else short**2)).sum())


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scaling", [1.0, 7.0])
def test_the_objective_is_that_of_scikit_learn(loss, scaling):
    """Both have the same optimum: ours is proved within tol of it, theirs cannot be below."""
    X, y = text()
    weight = np.resize([1.0, 0.0, 2.5], y.size)
    options = {"loss": loss, "C": 3.0, "intercept_scaling": scaling, "class_weight": {"no": 2.0}}
    model = LinearSVC(tol=1e-8, **options).fit(X, y, sample_weight=weight)
    peer = sklearn.svm.LinearSVC(dual=True, tol=1e-10, max_iter=100_000, random_state=0, **options).fit(X, y, weight)
    cost = weight * np.where(y == "no", 2.0, 1.0)
    own, theirs = (objective(one, X, y, loss, cost) for one in (model, peer))
    assert model.certificate_.primal == pytest.approx(own, rel=1e-12)
    assert own <= theirs * (1 + 1e-8)
    assert theirs <= own * (1 + 1e-5)  # LIBLINEAR's tol is no gap; it ends near enough to tell
    assert model.duality_gap_ <= 1e-8
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=2e-3)


def test_a_free_intercept_is_that_of_svc():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + 1000.0  # far from the origin
    a = LinearSVC(loss="hinge", C=0.1, free_intercept=True, tol=1e-8).fit(X, y)
    b = SVC(kernel="linear", C=0.1, tol=1e-8).fit(X, y)
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=3e-8)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-3)
    assert certify(a, X, y).relative_gap <= 1e-6  # with weights and an intercept about the origin, as they are stored


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression_has_the_objective_of_scikit_learn(loss):
    X, y = load_diabetes(return_X_y=True)
    options = {"loss": loss, "C": 20.0, "epsilon": 3.0}
    model = LinearSVR(tol=1e-9, **options).fit(X, y)
    peer = sklearn.svm.LinearSVR(tol=1e-8, max_iter=1_000_000, random_state=0, dual=True, **options).fit(X, y)
    assert model.coef_.shape == peer.coef_.shape
    assert certify(model, X, y).primal <= certify(peer, X, y).primal * (1 + 1e-9)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-3)


def test_regression_with_a_free_intercept_is_that_of_svr():
    X, y = load_diabetes(return_X_y=True)
    a = LinearSVR(C=50.0, epsilon=10.0, free_intercept=True, tol=1e-9).fit(X, y)
    b = SVR(kernel="linear", C=50.0, epsilon=10.0, tol=1e-9).fit(X, y)
    assert a.certificate_.primal == pytest.approx(b.certificate_.primal, rel=1e-8)


def test_several_classes_are_each_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(tol=1e-8, class_weight={2: 3.0}, n_jobs=2).fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert len(model.certificate_) == 3
    assert model.status_ == [Status.CONVERGED] * 3
    peer = sklearn.svm.LinearSVC(tol=1e-10, dual=False, max_iter=100_000, class_weight={2: 3.0}).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))
    assert certify(model, X, y).relative_gap <= 1e-7


def test_w_is_the_combination_that_dual_coef_says():
    X, y = text()
    model = LinearSVC(loss="hinge", intercept_scaling=2.0).fit(X, y)
    beta = model.dual_coef_[0]
    np.testing.assert_allclose(model.coef_[0], X.T @ beta, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(4.0 * beta.sum(), abs=1e-12)
    signs = np.where(y == "yes", 1.0, -1.0)
    assert (beta * signs >= 0).all()
    assert (beta * signs <= 1.0).all()


def test_sparse_points_never_become_dense(monkeypatch):
    X, y = text()
    dense = LinearSVC(tol=1e-8).fit(X.toarray(), y)

    def refuse(*args, **options):
        raise AssertionError("made dense")

    for method in ("toarray", "todense"):
        monkeypatch.setattr(sp.csr_matrix, method, refuse)
    for loss in ("hinge", "squared_hinge"):
        for free in (False, True):
            assert LinearSVC(loss=loss, free_intercept=free).fit(X, y).fit_status_ == 0
    sparse = LinearSVC(tol=1e-8).fit(X, y)
    monkeypatch.undo()
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)


def test_options_that_mean_another_problem_are_refused():
    X, y = text(30)
    for options, match in [
        ({"penalty": "l1"}, "l1"),
        ({"multi_class": "crammer_singer"}, "ovr"),
        ({"loss": "log"}, "loss"),
        ({"C": np.inf}, "hard margin"),
        ({"intercept_scaling": 0.0}, "constant feature"),
        ({"dual": "no"}, "dual"),
        ({"free_intercept": "yes"}, "free_intercept"),
    ]:
        with pytest.raises(ValueError, match=match):
            LinearSVC(**options).fit(X, y)


def test_a_limit_leaves_a_model_that_says_how_far_off_it_is():
    X, y = text()
    with pytest.warns(UserWarning, match="max_iter=1"):
        model = LinearSVC(loss="hinge", C=100.0, tol=1e-9, max_iter=1).fit(X, y)
    assert model.status_ is Status.MAX_STEPS
    assert certify(model, X, y).relative_gap <= model.duality_gap_ * (1 + 1e-6)


def test_models_are_stored_sparsified_and_polished(tmp_path):
    X, y = text()
    model = LinearSVC(tol=1e-2).fit(X, y)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(X), model.predict(X))
    values = model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), values, atol=1e-12)
    np.testing.assert_allclose(model.densify().decision_function(X), values, atol=1e-12)
    exact = polish(model, X, y)
    assert exact.duality_gap_ <= 1e-9
    assert exact.tol == 1e-2
    peer = sklearn.svm.LinearSVC(random_state=0).fit(X, y)
    assert certify(peer, X, y).relative_gap == pytest.approx(
        1 - exact.certificate_.dual / objective(peer, X, y, "squared_hinge"), abs=1e-7
    )


def exact_gap(model, X, y, centre):
    """Return the relative gap of what is stored, in exact numbers: hinge loss, a free intercept."""
    w, b = [Fraction(v) for v in model.coef_[0]], Fraction(float(model.intercept_[0]))
    rows, beta = [[Fraction(v) for v in x] for x in X], [Fraction(v) for v in model.dual_coef_[0]]
    sign = [1 if label == model.classes_[1] else -1 for label in y]
    short = sum(max(Fraction(0), 1 - s * (sum(map(mul, w, x)) + b)) for s, x in zip(sign, rows, strict=True))
    primal = sum(v * v for v in w) / 2 + Fraction(model.C) * short
    # The sum of beta is zero but for rounding: its points count from a centre.
    v = [
        sum(b * (x - Fraction(centre)) for b, x in zip(beta, column, strict=True)) for column in zip(*rows, strict=True)
    ]
    return float((primal - (sum(map(mul, sign, beta)) - sum(x * x for x in v) / 2)) / primal)


@pytest.mark.parametrize("far", [0.0, 1e10])
def test_the_certificate_is_that_of_the_weights_as_they_are_stored(far):
    """Far from the origin the intercept has few digits left: what predicts is worse than the solution it was made from."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) + far
    y = (X[:, 0] - far + 0.5 * rng.standard_normal(60) > 0).astype(int)
    model = LinearSVC(loss="hinge", C=1e4, free_intercept=True, tol=1e-9)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert exact_gap(model, X, y, far) <= model.duality_gap_ + 1e-15
    assert (model.duality_gap_ <= 1e-9) == (model.status_ is Status.CONVERGED) == (not said)
    assert model.duality_gap_ < (1e-5 if far else 1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_where_sweeps_get_no_further_the_kernel_matrix_goes_on(loss):
    """Equal points of both classes and a large C: one coefficient at a time creeps, and there are more features than points."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.standard_normal((20, 100)), 3, axis=0), rng.integers(0, 2, 60)
    model = LinearSVC(loss=loss, C=1e4).fit(X, y)
    assert model.status_ is Status.CONVERGED
    augmented, C = np.column_stack([X, np.ones(60)]), 1e4 if loss == "hinge" else 2e4
    exact = SVC(kernel="linear", loss=loss, C=C, fit_intercept=False, tol=1e-8).fit(augmented, y).certificate_
    assert model.certificate_.primal == pytest.approx(exact.primal, rel=2e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_an_intercept_that_hardly_counts_is_that_of_svc(sparse):
    """Beside a constant feature of 1e12 the others are lost in float64; the certificate is still that of what is stored."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = (X[:, 0] + 0.5 * rng.standard_normal(60) > 0.3).astype(int)
    model = LinearSVC(loss="hinge", intercept_scaling=1e12, tol=1e-2).fit(sp.csr_matrix(X) if sparse else X, y)
    exact = SVC(kernel="linear", tol=1e-8).fit(X, y).certificate_
    assert model.status_ is Status.CONVERGED
    assert objective(model, X, y, "hinge") == pytest.approx(exact.primal, rel=1e-2)
    assert model.certificate_.primal == pytest.approx(objective(model, X, y, "hinge"), rel=1e-2)


def test_an_intercept_as_if_free_has_the_certificate_of_the_problem_that_it_counts_in():
    """Constant targets: with a free intercept nothing is left; a regularised one costs something, however little."""
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.full(20, 5.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LinearSVR(intercept_scaling=1e12).fit(X, y)
    assert not model.certificate_.is_zero
    assert model.duality_gap_ > 0.0
