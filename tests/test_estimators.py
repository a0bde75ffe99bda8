import math
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from conftest import points
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tqdm import tqdm

from zerogap import (
    SVC,
    SVR,
    DualProblem,
    GaussianProcessRegressor,
    Gram,
    LinearSVC,
    NuSVC,
    OneClassSVM,
    Status,
    SVCPath,
    SVCPathCV,
    validation,
)


def is_refused(estimator, check):
    """Whether the check hands over a matrix that is no kernel: shifted, or rounded to integers or single precision."""
    name, options = check.func.__name__, check.keywords
    is_rounded = name == "check_classifiers_train" and options.get("X_dtype") == "float32"
    is_other = name in ("check_positive_only_tag_during_fit", "check_estimators_dtypes")
    return estimator.kernel == "precomputed" and (is_rounded or is_other)


@parametrize_with_checks([SVC(), SVR()])
def test_scikit_learns_estimator_checks(estimator, check):
    check_as_they_do(estimator, check)


@pytest.mark.thin(5)
@parametrize_with_checks(
    [
        SVC(loss="squared_hinge"),
        SVC(kernel="linear"),
        SVC(kernel="precomputed"),
        SVR(loss="squared_epsilon_insensitive"),
    ]
)
def test_scikit_learns_estimator_checks_with_other_options(estimator, check):
    check_as_they_do(estimator, check)


def check_as_they_do(estimator, check):
    with warnings.catch_warnings():
        # Some checks fit unscaled data with a handful of steps, or hand over data scikit-learn itself warns about.
        warnings.simplefilter("ignore")
        if not is_refused(estimator, check):
            check(estimator)
            return
        with pytest.raises((ValueError, AssertionError)) as caught:
            check(estimator)
        assert "must be positive semidefinite" in str(caught.value.__cause__ or caught.value)


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def certified(model, X, y, C):
    """Certificate of scikit-learn's two-class model."""
    beta = np.zeros(len(y))
    beta[model.support_] = model.dual_coef_[0]
    gram = Gram(X, model.kernel, gamma=model._gamma, degree=model.degree, coef0=model.coef0)
    return DualProblem.hinge(gram, np.where(y == model.classes_[1], 1.0, -1.0), C).certify(beta)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_never_above_scikit_learn_and_the_same_predictions(kernel, C):
    X, y = cancer()
    peer = sklearn.svm.SVC(C=C, kernel=kernel, tol=1e-6).fit(X, y)
    ours = SVC(C=C, kernel=kernel, tol=1e-8).fit(X, y)
    theirs = certified(peer, X, y, C)
    assert ours.duality_gap_ <= 1e-8
    assert -ours.certificate_.dual <= -theirs.dual + 1e-9 * abs(theirs.dual)
    # Decision values differ by at most |f - f'| |phi(x)| + |b - b'|, and 1/2 |f - f'|² by at most the two gaps.
    norms = np.sqrt(np.diag(ours._kernel(X, X)))
    reach = np.sqrt(2 * (theirs.gap + ours.certificate_.gap)) * norms
    unsure = np.abs(peer.decision_function(X)) <= reach + abs(peer.intercept_[0] - ours.intercept_[0])
    assert unsure.mean() < 0.1
    np.testing.assert_array_equal(ours.predict(X)[~unsure], peer.predict(X)[~unsure])


def test_large_c_reaches_a_gap_that_scikit_learn_cannot():
    X, y = cancer()
    peer = sklearn.svm.SVC(C=1e4, tol=1e-10).fit(X, y)
    assert certified(peer, X, y, 1e4).relative_gap > 1e-4
    ours = SVC(C=1e4, tol=1e-10).fit(X, y)
    assert ours.duality_gap_ <= 1e-10
    assert ours.status_ is Status.CONVERGED


def test_fitted_attributes_are_laid_out_as_scikit_learns():
    X, y = load_iris(return_X_y=True)
    for data, target in ((X, y), (X[:100], y[:100])):
        ours, peer = SVC(tol=1e-10).fit(data, target), sklearn.svm.SVC(tol=1e-10).fit(data, target)
        np.testing.assert_array_equal(ours.support_, peer.support_)
        np.testing.assert_array_equal(ours.n_support_, peer.n_support_)
        np.testing.assert_allclose(ours.dual_coef_, peer.dual_coef_, atol=1e-5)
        np.testing.assert_allclose(ours.intercept_, peer.intercept_, atol=1e-5)
        np.testing.assert_array_equal(ours.support_vectors_, peer.support_vectors_)
        assert ours.dual_coef_.shape == peer.dual_coef_.shape
        assert ours.n_iter_.shape == peer.n_iter_.shape
        for shape in ("ovr", "ovo"):
            ours.decision_function_shape = peer.decision_function_shape = shape
            np.testing.assert_allclose(ours.decision_function(data), peer.decision_function(data), atol=1e-4)
        np.testing.assert_array_equal(ours.predict(data), peer.predict(data))


def test_linear_weights_are_scikit_learns():
    X, y = load_iris(return_X_y=True)
    for data, target in ((X, y), (X[:100], y[:100])):
        ours = SVC(kernel="linear", tol=1e-9).fit(data, target)
        np.testing.assert_allclose(
            ours.coef_, sklearn.svm.SVC(kernel="linear", tol=1e-9).fit(data, target).coef_, atol=1e-4
        )
    with pytest.raises(AttributeError, match="linear kernel only"):
        _ = SVC().fit(X, y).coef_


def test_many_classes():
    X, y = load_digits(return_X_y=True)
    X = X[:600] / 16
    ours, peer = SVC(tol=1e-6).fit(X, y[:600]), sklearn.svm.SVC(tol=1e-6).fit(X, y[:600])
    np.testing.assert_array_equal(ours.predict(X), peer.predict(X))
    assert len(ours.certificate_) == 45
    assert ours.duality_gap_ == max(c.relative_gap for c in ours.certificate_) <= 1e-6
    assert all(status is Status.CONVERGED for status in ours.status_)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 3.0}])
def test_class_and_sample_weights_are_scikit_learns(class_weight):
    X, y = cancer()
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(y))
    for sample_weight in (None, weight) if class_weight != "balanced" else (None,):
        ours = SVC(class_weight=class_weight, gamma=0.05, tol=1e-9).fit(X, y, sample_weight)
        peer = sklearn.svm.SVC(class_weight=class_weight, gamma=0.05, tol=1e-9).fit(X, y, sample_weight)
        np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-4)


def test_balanced_counts_a_weight_of_two_twice():
    X, y = cancer()
    weight = np.random.default_rng(0).integers(0, 3, size=len(y))
    a = SVC(class_weight="balanced").fit(X, y, weight)
    b = SVC(class_weight="balanced").fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("estimator", [SVC(), SVC(kernel="poly", coef0=1.0), SVR()], ids=str)
def test_sparse_precomputed_and_callable_input_are_the_same_model(estimator):
    X, y = cancer()
    X, y = np.where(np.abs(X) < 0.5, 0.0, X)[:200], y[:200].astype(float)
    model = clone(estimator).set_params(tol=1e-9, gamma=0.05).fit(X, y)
    expected = model.predict(X) if isinstance(model, SVR) else model.decision_function(X)
    K = model._kernel(X, X)
    others = {
        "sparse": (clone(model), sp.csr_matrix(X)),
        "precomputed": (clone(model).set_params(kernel="precomputed"), K),
        "object": (clone(model).set_params(kernel=model._kernel, gamma="scale", coef0=0.0), X),
        "callable": (clone(model).set_params(kernel=lambda A, B: model._kernel(A, B)), X),
    }
    for name, (other, data) in others.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other.fit(data, y)
        got = other.predict(data) if isinstance(other, SVR) else other.decision_function(data)
        np.testing.assert_allclose(got, expected, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression(loss):
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    model = SVR(C=10.0, epsilon=0.2, loss=loss, tol=1e-9).fit(X, y)
    assert model.duality_gap_ <= 1e-9
    if loss == "epsilon_insensitive":
        peer = sklearn.svm.SVR(C=10.0, epsilon=0.2, tol=1e-7).fit(X, y)
        np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-3)
        np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-3)
        assert abs(model.support_.size - peer.support_.size) <= 2


def test_models_pickle_clone_and_search():
    X, y = cancer()
    model = pickle.loads(pickle.dumps(SVC(C=3.0).fit(X, y)))
    assert clone(model).C == 3.0
    assert model.certificate_.relative_gap <= 1e-4
    assert len(model.trace_) > 1
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1, 10]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    assert cross_val_score(SVR(), X, X[:, 0], cv=3).mean() > 0.5


def test_warm_start_needs_fewer_steps_and_ends_at_the_same_model():
    X, y = make_moons(400, noise=0.3, random_state=0)
    model = SVC(C=10.0, tol=1e-6, warm_start=True).fit(X, y)
    cold = SVC(C=11.0, tol=1e-6).fit(X, y)
    model.set_params(C=11.0).fit(X, y)
    assert model.n_iter_ < cold.n_iter_
    assert model.certificate_.dual == pytest.approx(cold.certificate_.dual, rel=1e-5)
    model.fit(X[:300], y[:300])  # other data: a fresh start
    assert model.duality_gap_ <= 1e-6


def test_outcomes_short_of_the_tolerance_are_warnings():
    X, y = cancer()
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* not the tol=1e-06 .*max_iter=5"):
        model = SVC(C=100.0, tol=1e-6, max_iter=5).fit(X, y)
    assert model.n_iter_[0] == 5
    assert model.status_ is Status.MAX_STEPS
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-06"):
        SVC(C=100.0, max_time=1e-6).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="finite C") as caught:
        SVC(C=np.inf, kernel="linear").fit(X[:, :2], y)
    assert caught[0].filename == __file__


def test_hard_margin_separates():
    X, y = cancer()
    model = SVC(C=np.inf, tol=1e-6).fit(X, y)
    assert model.score(X, y) == 1.0
    assert (np.where(y == 1, 1, -1) * model.decision_function(X)).min() >= 1 - 1e-3
    squared = SVC(C=np.inf, loss="squared_hinge", tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), squared.decision_function(X), atol=1e-2)


def test_fixed_bias():
    X, y = cancer()
    model = SVC(fit_intercept=False, tol=1e-8).fit(X, y)
    assert model.intercept_ == [0.0]
    assert model.duality_gap_ <= 1e-8


@pytest.mark.parametrize("solver", ["smo-mvp", "smo-keerthi", "smo-platt", "smo-simple"])
def test_any_solver_can_be_picked(solver):
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = SVC(solver=solver, tol=1e-2, random_state=4).fit(X, y)
    assert model.duality_gap_ <= 1e-2
    assert clone(model).solver == solver


def test_an_indefinite_kernel_warns_and_ends():
    X, y = cancer()
    with pytest.warns(UserWarning, match="not positive semidefinite"):
        SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X[:100], y[:100])


# Problems on which other solvers hang.


def test_six_points_with_a_polynomial_kernel_end_at_once():
    X = np.array([
        [0, 0, 0.3, 0, 0, 1, 0.625, 0, 0, 0.31865753, 0, 0, 0],
        [0, 0, 0, 0, 0, 0.33333333, 0.61538462, 0, 0, 0.59230137, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0.31778082, 1, 0, 0],
        [0.66666667, 0, 0, 0.5, 1, 0.8, 0, 1, 0.5625, 0.36430137, 0, 0, 0],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0.33638356, 1, 0, 0],
        [0, 0, 0.3, 0, 0, 1, 0.625, 0, 0, 0.31843836, 0, 0, 0],
    ])  # fmt: skip
    y = np.array([False, True, True, False, True, False])
    for C in (0.1, 1.0, 100.0, 1e6, np.inf):
        model = SVC(C=C, kernel="poly", gamma="auto", coef0=10.0, tol=1e-8, max_iter=100_000).fit(X, y)
        assert model.duality_gap_ <= 1e-8
        assert (model.predict(X) == y).all()


@pytest.mark.parametrize(
    ("C", "degree", "gamma", "one_in"),
    [
        (0.67, 7, 4178.0, 2),
        *(
            pytest.param(*case, 1, marks=pytest.mark.long)
            for case in ((0.67, 7, 4178.0), (1.0, 8, "scale"), (0.8, 8, 864.0), (1e4, 8, 1.0))
        ),
    ],
)
def test_a_high_polynomial_on_unscaled_data_ends_with_an_honest_status(C, degree, gamma, one_in):
    X, y = (part[::one_in] for part in load_iris(return_X_y=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(C=C, kernel="poly", degree=degree, gamma=gamma).fit(X, y)
    for status, certificate in zip(model.status_, model.certificate_, strict=True):
        assert (certificate.relative_gap <= 1e-4) == (status is Status.CONVERGED)


def test_two_far_points_with_a_square_kernel_end_at_once():
    model = SVC(kernel="poly", degree=2).fit([[1, 99999], [2, 99999]], [0, 1])
    assert model.duality_gap_ <= 1e-4


# Bad input.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be above 0; got C=0.0"),
        ({"C": -1}, "C must be above 0"),
        ({"C": "big"}, "C must be a number"),
        ({"kernel": "gauss"}, "Unknown kernel 'gauss'"),
        ({"gamma": "large"}, "Unknown gamma 'large'"),
        ({"gamma": -1.0}, "gamma must be at least 0"),
        ({"degree": -1}, "degree must be a whole number"),
        ({"loss": "log"}, "Unknown loss 'log'"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"solver": "sgd"}, "Unknown solver 'sgd'"),
        ({"cache_size": 0}, "cache_size must be above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number above 0"),
        ({"max_iter": 1.5}, "max_iter must be a whole number above 0; got max_iter=1.5"),
        ({"max_iter": True}, "max_iter must be a whole number"),
        ({"max_iter": "5"}, "max_iter must be a whole number"),
        ({"tol": "small"}, "tol must be a number"),
        ({"tol": True}, "tol must be a number"),
        ({"tol": np.nan}, "tol must be above 0"),
        ({"C": 1j}, "C must be a number"),
        ({"C": np.nan}, "C must be above 0"),
        ({"C": [1.0]}, "C must be a number"),
        ({"degree": True}, "degree must be a whole number"),
        ({"kernel": 3}, "Unknown kernel 3"),
        ({"kernel": np.eye(150)}, "Unknown kernel"),
        ({"loss": None}, "Unknown loss None"),
        ({"fit_intercept": "no"}, "fit_intercept must be True or False"),
        ({"warm_start": 2}, "warm_start must be True or False"),
        ({"max_time": -1.0}, "max_time must be above 0"),
        ({"class_weight": {0: -1.0}}, "class_weight must be above 0"),
        ({"decision_function_shape": "ova"}, "Unknown decision_function_shape"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        SVC(**options).fit(X, y)


def test_bad_data_is_refused():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="NaN"):
        SVC().fit(np.where(X > 6, np.nan, X), y)
    with pytest.raises(ValueError, match="infinity"):
        SVC().fit(np.where(X > 6, np.inf, X), y)
    with pytest.raises(ValueError, match="at least two classes"):
        SVC().fit(X, np.zeros(150))
    with pytest.raises(ValueError, match="at least two classes"):
        SVC().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SVC().fit(X, y[:-1])
    with pytest.raises(ValueError, match="sample_weight must be finite and at least 0"):
        SVC().fit(X, y, sample_weight=-np.ones(150))
    with pytest.raises(ValueError, match="sample_weight must have shape"):
        SVC().fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="weight zero"):
        SVC().fit(X, y, sample_weight=(y != 1).astype(float))
    with pytest.raises(ValueError, match="continuous"):
        SVC().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="4 features"):
        SVC().fit(X, y).predict(X[:, :2])
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel="precomputed").fit(np.triu(np.ones((150, 150))), y)
    with pytest.raises(ValueError, match="positive semidefinite"):
        SVC(kernel="precomputed").fit(rbf_kernel(X) - np.eye(150), y)
    with pytest.raises(TypeError, match="dense"):
        SVC(kernel="precomputed").fit(sp.csr_matrix(rbf_kernel(X)), y)
    with pytest.raises(ValueError, match="epsilon must be at least 0"):
        SVR(epsilon=-0.1).fit(X, y)
    with pytest.raises(ValueError, match="C must be above 0; got"):
        SVR(C=0.0).fit(X, y)
    with pytest.raises(NotFittedError):
        SVC().predict(X)


def test_progress_shows_on_long_fits(capsys, monkeypatch):
    X, y = cancer()
    delays = []

    def soon(*, delay, **options):
        delays.append(delay)
        return tqdm(delay=0.01, **options)

    monkeypatch.setattr("zerogap.progress.tqdm", soon)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        SVC(C=1e8, kernel="linear", gamma=1.0, tol=1e-14, max_time=0.5, verbose=True).fit(X[:, :5], y)
    assert delays == [1.0]
    assert "support" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda a, b: (a @ b.T).astype(complex), "array of real numbers; got values of type complex128"),
        (lambda a, b: 1.0, r"for 1 and 1 points an array of shape \(1, 1\); got \(\)"),
        (lambda a, b: (a @ b.T)[:, 0], r"of shape \(1, 1\); got \(1,\)"),
        (lambda a, b: (a @ b.T)[:, :1], r"of shape \(\d+, \d+\); got \(\d+, 1\)"),
        (lambda a, b: np.full((len(a), len(b)), np.nan), "returned NaN"),
        (lambda a, b: [["k"] * len(b)] * len(a), "real numbers; got values of type <U1"),
        (lambda a, b: None, "real numbers; got NoneType"),
    ],
    ids=["complex", "scalar", "vector", "column", "nan", "text", "none"],
)
@pytest.mark.parametrize("model", [SVC, SVR, GaussianProcessRegressor])
def test_kernel_functions_that_return_something_else_are_refused(kernel, message, model):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=f"The callable kernel must return the matrix.*{message}"):
        model(kernel=kernel).fit(X, y)


def test_a_kernel_function_that_fails_later_is_refused_then():
    X, y = load_iris(return_X_y=True)
    shapes = []

    def kernel(a, b):
        shapes.append((len(a), len(b)))
        return a @ b.T if not is_late else np.zeros(len(a))

    is_late = False
    model = SVC(kernel=kernel).fit(X, y)
    is_late = True
    with pytest.raises(ValueError, match=r"of shape \(150, \d+\); got \(150,\)"):
        model.predict(X)


def test_integers_and_single_precision_from_a_kernel_function_are_numbers():
    X, y = load_iris(return_X_y=True)
    X = np.round(10 * X)
    expected = SVC(kernel="linear", tol=1e-8).fit(X, y).decision_function(X)
    for kind in (int, np.float32):
        model = SVC(kernel=lambda a, b, kind=kind: (a @ b.T).astype(kind), tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)


def test_huge_kernel_matrices_end_with_an_honest_status_or_a_clear_line():
    X, y = cancer()
    K = rbf_kernel(X[:60], gamma=0.05)
    fine = SVC(C=1e-300, kernel="precomputed").fit(1e300 * K, y[:60])
    peer = SVC(C=1.0, kernel="precomputed").fit(K, y[:60])
    np.testing.assert_allclose(fine.decision_function(1e300 * K), peer.decision_function(K), atol=1e-2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel="precomputed").fit(1e300 * K, y[:60])
    assert (model.status_ is Status.CONVERGED) == (model.duality_gap_ <= 1e-4)
    assert np.isfinite(model.certificate_.gap)
    with pytest.raises(ValueError, match="overflows float64"):
        SVC(kernel="precomputed").fit(1e307 * K, y[:60])


# Weights are repetitions, to the last bit.


@pytest.mark.covering
@pytest.mark.parametrize("class_weight", [{0: 0.3, 1: 1.1}, {0: 0.1}, "balanced", None], ids=str)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_repeated_row_is_a_weight_to_the_last_bit(class_weight, loss):
    X, y = make_moons(40, noise=0.3, random_state=1)
    times = np.random.default_rng(0).integers(1, 12, size=40)
    rows, labels = X.repeat(times, axis=0), y.repeat(times)
    for C, weight, each in ((0.7, times, np.ones(times.sum())), (7.0, 0.1 * times, np.full(times.sum(), 0.1))):
        model = SVC(C=C, class_weight=class_weight, loss=loss)
        once, many = clone(model).fit(X, y, weight), clone(model).fit(rows, labels, each)
        assert once.certificate_ == many.certificate_  # the problem is the same, and so is every step
        assert once.n_iter_ == many.n_iter_
        assert once.intercept_ == many.intercept_
        np.testing.assert_allclose(once.decision_function(X), many.decision_function(X), atol=1e-12)


def test_class_weights_leave_gamma_alone():
    X, y = make_moons(40, noise=0.3, random_state=1)
    gammas = [SVC(class_weight=weight).fit(X, y)._kernel.gamma for weight in (None, {0: 5.0})]
    assert gammas[0] == gammas[1] == pytest.approx(sklearn.svm.SVC().fit(X, y)._gamma, rel=1e-14)


# Small things that a mistake would hardly show.


def test_ties_among_the_votes_go_to_the_first_class_as_scikit_learns_do():
    """Three classes in a circle, each beating the next: every class has one vote."""
    model = SVC(kernel="linear").fit([[0.0], [1.0], [2.0]], [0, 1, 2])
    for decisions, expected in (
        ([1.0, -1.0, 1.0], 0),  # 0 beats 1, 2 beats 0, 1 beats 2
        ([-1.0, 1.0, -1.0], 0),
        ([0.0, 1.0, 1.0], 1),  # a decision value of zero is a vote for the second of a pair
        ([1.0, 0.0, 0.0], 2),
        ([0.0, 0.0, 0.0], 2),
    ):
        model._pair_decisions = lambda X, decisions=decisions: np.array([decisions])
        assert model.predict([[0.0]])[0] == expected
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 3, size=(80, 2)).astype(float), rng.integers(0, 4, size=80)
    ours, peer = SVC(C=10.0, tol=1e-10).fit(X, y), sklearn.svm.SVC(C=10.0, tol=1e-10).fit(X, y)
    grid = rng.uniform(-1, 3, size=(300, 2))
    np.testing.assert_array_equal(ours.predict(grid), peer.predict(grid))


@pytest.mark.covering
@pytest.mark.parametrize("model", [SVC(), SVR(), GaussianProcessRegressor()], ids=str)
@pytest.mark.parametrize("rows", [1, 7, 8, 60])
def test_predictions_by_chunks_are_those_of_all_rows_at_once(model, rows, monkeypatch):
    X, y = make_moons(60, noise=0.3, random_state=0)
    model = clone(model).fit(X, y)
    expected = model.predict(X)
    monkeypatch.setattr("zerogap.estimators.base.CHUNK", 8 * model.support_.size * rows)
    assert [part.stop - part.start for part, _ in model._kernel_values(X)] == [rows] * -(-60 // rows)
    assert sum(len(K) for _, K in model._kernel_values(X)) == 60
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-12)
    if isinstance(model, GaussianProcessRegressor):
        monkeypatch.undo()
        whole = model.predict(X, return_std=True)[1]
        monkeypatch.setattr("zerogap.estimators.base.CHUNK", 8 * model.support_.size * rows)
        np.testing.assert_allclose(model.predict(X, return_std=True)[1], whole, rtol=1e-9)


@pytest.mark.parametrize("row", [3, 511, 512, 700, 1099])
def test_every_row_of_a_kernel_matrix_is_looked_at(row):
    K = np.eye(1100)
    K[row, 5] = 0.4
    with pytest.raises(ValueError, match=r"differ from their mirror image by up to 0\.4"):
        validation.check_precomputed(K)
    K[row, 5] = 0.0
    np.testing.assert_array_equal(validation.check_precomputed(K), K)


@pytest.mark.parametrize(("shift", "C"), [(1e6, 1.0), (1e7, 100.0), (-1e9, 1.0)])
def test_data_far_from_zero_is_data_all_the_same(shift, C):
    rng = np.random.default_rng(0)
    # On a grid nothing is rounded when the points are moved.
    X = rng.integers(-64, 64, (120, 4)) / 32
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(120) > 0, 1, 0)
    near = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
    far = SVC(C=C, kernel="linear", tol=1e-8).fit(X + shift, y)
    assert far.status_ is Status.CONVERGED
    assert far.certificate_.primal == pytest.approx(near.certificate_.primal, rel=2e-8)
    scale = np.abs(near.coef_).sum()
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-3 * scale)
    np.testing.assert_array_equal(far.predict(X + shift), near.predict(X))
    # The intercept is scikit-learn's, that of the points as they are.
    f = (X + shift).astype(np.longdouble) @ far.coef_[0].astype(np.longdouble) + far.intercept_[0]
    # Coefficients sum to zero but for rounding, and what is left takes part in coef_ by the distance from zero.
    left = abs(math.fsum(far.dual_coef_[0])) * abs(shift) * np.abs(X - X.mean(axis=0)).sum(axis=1).max()
    tolerance = 4e-16 * abs(shift) * scale * 10 + 1.01 * left
    np.testing.assert_allclose(far.decision_function(X + shift), f.astype(float), rtol=1e-12, atol=tolerance)
    np.testing.assert_allclose(SVR(C=C, kernel="linear").fit(X + shift, X[:, 0]).predict(X + shift), X[:, 0], atol=0.11)


@pytest.mark.parametrize(
    "model",
    [SVC(), SVR(), LinearSVC(), NuSVC(), OneClassSVM(), SVCPath(C_max=1.0), SVCPathCV(cv=2, C_max=1.0)],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_forgets_the_names_of_the_one_before(model):
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = (X[:, 0] > 0.0).astype(int)
    named = clone(model).fit(pd.DataFrame(X, columns=["a", "b"]), y)
    assert named.feature_names_in_.tolist() == ["a", "b"]
    named.fit(X, y)
    assert not hasattr(named, "feature_names_in_")
    named.predict(X)  # without a warning of names


def test_objects_have_no_features_of_the_fit_before():
    words, y = ["a", "aa", "aaa", "aaaa"], [0, 0, 1, 1]
    kernel = lambda A, B: np.array([[float(np.shape(a)[0] if np.ndim(a) else len(a)) for a in A]]).T  # noqa: E731
    model = SVC(kernel=lambda A, B: kernel(A, A) @ kernel(B, B).T).fit(np.eye(4), y)
    assert model.n_features_in_ == 4
    assert not hasattr(model.fit(words, y), "n_features_in_")


def test_a_warning_counts_pairs_of_classes_where_there_are_several():
    X, y = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"SVC stopped in 3 of 3 pairs of classes, the worst after 1 steps"):
        SVC(max_iter=1, tol=1e-9).fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"SVC stopped after 1 steps"):
        SVC(max_iter=1, tol=1e-9).fit(X[50:], y[50:])


@pytest.mark.parametrize("kind", ["int64", "float64", "bool"])
def test_plain_arrays_are_taken_as_scikit_learn_checks_them(kind):
    X, y, _ = points("plain")
    y = (y > 0).astype(kind)
    model = SVC().fit(pd.DataFrame(X, columns=list("abc")), y)
    assert model.feature_names_in_.size == X.shape[1]
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == X.shape[1]
    other = SVC().fit(X.tolist(), y.tolist())
    np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
    assert not np.shares_memory(model._training.rows.X, X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_plain_arrays_with_what_is_no_number_are_refused(value):
    X, y, t = points("plain")
    with pytest.raises(ValueError, match="contains"):
        SVC().fit(np.where(np.arange(X.size).reshape(X.shape) == 3, value, X), y)
    with pytest.raises(ValueError, match="contains"):
        SVR().fit(X, np.where(np.arange(t.size) == 3, value, t))
    with pytest.raises(ValueError, match="inconsistent"):
        SVC().fit(X, y[1:])
