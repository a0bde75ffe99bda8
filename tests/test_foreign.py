"""Certificates of models that others have fitted, against objectives and optima of the textbook; and the exact models.

``objective`` has the objective of a model from its decision values alone, and ``optimum`` that of its problem, from an interior
point solver whose own two bounds agree to 1e-8: neither shares code with the package.
"""

import re
import signal
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import clarabel
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR, NuSVC, NuSVR, OneClassSVM

import zerogap
from zerogap import DualProblem, Gram, RelativeGap, certify, limits, polish, solve
from zerogap.foreign.parts import Bound

GAMMA = 0.4
AGREE = 1e-8  # of the interior point solver
rng = np.random.default_rng(7)
X = rng.normal(size=(60, 3))
LABELS = np.where(X[:, 0] + 0.7 * rng.normal(size=60) > 0, "yes", "no")
TARGET = np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
SIGN = np.where(LABELS == "yes", 1.0, -1.0)
WEIGHT = np.resize([1.0, 0.5, 3.0, 2.0], 60)

MODELS = {
    "SVC": SVC(C=5.0, gamma=GAMMA),
    "SVC-classes": SVC(C=5.0, gamma=GAMMA, class_weight={"yes": 3.0, "no": 0.5}),
    "SVC-linear": SVC(C=5.0, kernel="linear"),
    "NuSVC": NuSVC(nu=0.4, gamma=GAMMA),
    "SVR": SVR(C=2.0, gamma=GAMMA),
    "NuSVR": NuSVR(nu=0.4, C=2.0, gamma=GAMMA),
    "OneClassSVM": OneClassSVM(nu=0.3, gamma=GAMMA),
    "LinearSVC": LinearSVC(C=0.7, tol=1e-2),
    "LinearSVC-hinge": LinearSVC(C=0.7, loss="hinge", intercept_scaling=2.0, tol=1e-2),
    "LinearSVC-no-bias": LinearSVC(C=0.7, fit_intercept=False, class_weight={"yes": 3.0}, tol=1e-2),
    "LinearSVR": LinearSVR(C=2.0, epsilon=0.1, tol=1e-2),
    "LinearSVR-squared": LinearSVR(C=2.0, epsilon=0.1, loss="squared_epsilon_insensitive", tol=1e-2),
}
KERNEL = [name for name in MODELS if not name.startswith("Linear")]


def y_of(model):
    return TARGET if isinstance(model, SVR | NuSVR | LinearSVR) else LABELS


def fitted(model, weight=None, **options):
    model = type(model)(**model.get_params() | options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y_of(model), sample_weight=weight)


# The textbook.


def quadratic(P, q, A, b, cap):
    """Return the least 1/2 x'Px + q'x subject to A x = b and 0 <= x <= cap."""
    n, finite = q.size, np.isfinite(cap)
    rows = [A, -np.eye(n), np.eye(n)[finite]]
    cones = [clarabel.ZeroConeT(len(A)), clarabel.NonnegativeConeT(n + int(finite.sum()))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solution = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(P), format="csc"),
        q,
        sp.csc_matrix(np.concatenate(rows)),
        np.concatenate([b, np.zeros(n), cap[finite]]),
        cones if len(A) else cones[1:],
        settings,
    ).solve()
    assert abs(solution.obj_val - solution.obj_val_dual) <= AGREE * max(1.0, abs(solution.obj_val)), solution.status
    return solution.obj_val


def matrix(model):
    """Return the kernel matrix; that of a linear model has the constant feature in it."""
    if getattr(model, "kernel", "") == "linear":
        return X @ X.T
    if isinstance(model, LinearSVC | LinearSVR):
        return X @ X.T + (model.intercept_scaling**2 if model.fit_intercept else 0.0)
    return rbf_kernel(X, gamma=GAMMA)


def costs(model, weight):
    weight = np.ones(60) if weight is None else weight
    if getattr(model, "class_weight", None) is not None:
        weight = weight * np.array([model.class_weight.get(label, 1.0) for label in LABELS])
    return weight


def optimum(model, weight=None):
    """Return the optimum of a model's problem, by the dual of the textbook."""
    K, w, one, none = matrix(model), costs(model, weight), np.ones((1, 60)), np.zeros((0, 60))
    Q = SIGN[:, None] * K * SIGN
    C = getattr(model, "C", 1.0)
    if isinstance(model, NuSVC):
        A, b = np.array([SIGN, np.ones(60)]), np.array([0.0, model.nu * w.sum()])
        return -quadratic(Q, np.zeros(60), A, b, w)
    if isinstance(model, OneClassSVM):
        return -quadratic(K, np.zeros(60), one, np.array([model.nu * w.sum()]), w)
    if isinstance(model, SVC):
        return -quadratic(Q, -np.ones(60), SIGN[None], np.zeros(1), C * w)
    if isinstance(model, LinearSVC):
        if model.loss == "hinge":
            return -quadratic(Q, -np.ones(60), none, np.zeros(0), C * w)
        return -quadratic(Q + np.diag(0.5 / (C * w)), -np.ones(60), none, np.zeros(0), np.full(60, np.inf))
    both, cap = np.kron([[1.0, -1.0], [-1.0, 1.0]], K), np.tile(C * w, 2)
    sums = np.concatenate([np.ones(60), -np.ones(60)])[None]
    if isinstance(model, NuSVR):
        A, b = np.concatenate([sums, np.ones((1, 120))]), np.array([0.0, C * model.nu * w.sum()])
        return -quadratic(both, np.concatenate([-TARGET, TARGET]), A, b, cap)
    q = np.concatenate([model.epsilon - TARGET, model.epsilon + TARGET])
    if isinstance(model, LinearSVR):
        if model.loss == "squared_epsilon_insensitive":
            both, cap = both + np.diag(np.tile(0.5 / (C * w), 2)), np.full(120, np.inf)
        return -quadratic(both, q, np.zeros((0, 120)), np.zeros(0), cap)
    return -quadratic(both, q, sums, np.zeros(1), cap)


def objective(model, weight=None):
    """Return the objective of a model, from what it predicts."""
    w, C = costs(model, weight), getattr(model, "C", 1.0)
    if isinstance(model, LinearSVC | LinearSVR):
        intercept = float(np.ravel(model.intercept_)[0]) / model.intercept_scaling
        norm = 0.5 * float(np.sum(np.square(model.coef_))) + 0.5 * intercept**2
    else:
        beta = np.zeros(60)
        beta[model.support_] = model.dual_coef_[0]
        norm = 0.5 * beta @ matrix(model) @ beta
    if isinstance(model, LinearSVR | SVR):
        loss = np.maximum(0.0, np.abs(TARGET - model.predict(X)) - model.epsilon)
        return norm + C * w @ (loss**2 if model.get_params().get("loss", "").startswith("squared") else loss)
    if isinstance(model, NuSVR):  # the tube that is best; the objective is linear between deviations
        deviations = np.abs(TARGET - model.predict(X))
        tubes = [C * w @ np.maximum(0.0, deviations - eps) + C * eps * model.nu * w.sum() for eps in [0.0, *deviations]]
        return norm + min(tubes)
    if isinstance(model, OneClassSVM):
        return norm + w @ np.maximum(0.0, -model.decision_function(X)) - model.nu * w.sum() * float(model.offset_[0])
    margins = SIGN * model.decision_function(X)
    if isinstance(model, NuSVC):  # the margin that is best, at the scale at which coefficients have their sum
        total = model.nu * w.sum()
        scale = total / np.abs(beta).sum()
        return scale**2 * norm + min(w @ np.maximum(0.0, m - scale * margins) - m * total for m in scale * margins)
    loss = np.maximum(0.0, 1.0 - margins)
    return norm + C * w @ (loss**2 if getattr(model, "loss", "") == "squared_hinge" else loss)


def assert_true(found, model, weight=None, *, is_solved=False):
    """The objective is the model's, and the gap at least how far that is above the optimum; not more, if it was solved."""
    best, own = optimum(model, weight), objective(model, weight)
    slack = AGREE * max(1.0, abs(best))
    assert abs(found.primal - own) <= 1e-11 * max(1.0, abs(own)) + found.worst.rounding
    assert found.dual <= best + slack + found.worst.rounding
    assert found.worst.gap + found.worst.rounding >= own - best - slack
    if is_solved:
        assert found.worst.gap <= own - best + slack + 1e-9 * abs(own) + found.worst.rounding


# Certificates.


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_bounds_how_far_a_model_is_off(name):
    model = fitted(MODELS[name])
    found = certify(model, X, y_of(model))
    assert_true(found, model, is_solved=name.startswith("Linear"))
    assert found.relative_gap < 0.2
    assert_true(certify(model, X, y_of(model), tol=1e-10), model, is_solved=True)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_rows_count(name):
    model = fitted(MODELS[name], WEIGHT)
    assert_true(certify(model, X, y_of(model), WEIGHT), model, WEIGHT)


@pytest.mark.parametrize("name", KERNEL)
def test_a_model_fitted_to_the_last_digits_is_near_its_optimum(name):
    # LIBSVM keeps kernel values in float32, 6e-8 of each; its gradient, and with it the gap, is off by as much.
    model = fitted(MODELS[name], tol=1e-10)
    assert certify(model, X, y_of(model)).relative_gap < 1e-5


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("Linear")])
def test_a_vector_fitted_to_the_last_digits_is_near_its_optimum(name):
    model = fitted(MODELS[name], tol=1e-10, max_iter=1_000_000)
    assert certify(model, X, y_of(model)).relative_gap < 2e-9  # what the bound is solved to, and as much


@settings(max_examples=10)
@given(st.sampled_from(KERNEL), st.integers(0, 2**32 - 1), st.sampled_from([1e-12, 1e-8, 1e-5]))
def test_a_bound_stays_one_where_coefficients_are_not_feasible(name, seed, size):
    model, random = fitted(MODELS[name]), np.random.default_rng(seed)
    beta = model.dual_coef_ * (1.0 + size * random.normal(size=model.dual_coef_.shape))
    model.dual_coef_ = beta
    bias = float(model.intercept_[0]) + 10.0 * size * random.normal()
    model.intercept_ = np.array([bias])
    # What scikit-learn predicts with, and has with another sign for two classes.
    flip = -1.0 if hasattr(model, "classes_") else 1.0
    model._dual_coef_, model._intercept_ = flip * beta, np.array([flip * bias])
    if name == "OneClassSVM":
        model.offset_ = -model.intercept_
    assert_true(certify(model, X, y_of(model)), model)


def test_a_constant_model_and_all_coefficients_at_their_bounds():
    model = SVC(C=1e-8, gamma=GAMMA).fit(X, LABELS)
    assert certify(model, X, LABELS).relative_gap < 1e-6
    wide = SVR(epsilon=100.0).fit(X, TARGET)  # no support vector at all
    assert wide.support_.size == 0
    found = certify(wide, X, TARGET)
    assert found.primal == found.dual == 0.0


def several() -> Iterator[tuple]:
    points, labels = load_iris(return_X_y=True)
    names = np.array(["c", "a", "b"])[labels]  # not in the order of their rows
    for model in (
        SVC(C=10.0, class_weight="balanced"),
        NuSVC(nu=0.2),
        LinearSVC(class_weight={"a": 2.0, "b": 0.5}, tol=1e-6, max_iter=100_000),
    ):
        yield points, names, model


@pytest.mark.parametrize(("points", "labels", "model"), [*several()], ids=lambda value: type(value).__name__)
def test_several_classes_have_a_certificate_for_each_problem(points, labels, model):
    weight = np.resize([1.0, 2.0, 0.5], labels.size)
    model.fit(points, labels, sample_weight=weight)
    found = certify(model, points, labels, weight)
    assert len(found.certificates) == len(found.names) == 3
    assert found.relative_gap == max(c.relative_gap for c in found.certificates) < 1e-2
    expected = {f"{a} against {b}" for a, b in combinations("abc", 2)}
    if isinstance(model, LinearSVC):
        expected = {f"{a} against the rest" for a in "abc"}
    assert set(found.names) == expected
    if isinstance(model, SVC):  # each pair is the model of these rows alone
        for k, (a, b) in enumerate(combinations("abc", 2)):
            rows = np.isin(labels, (a, b))
            factors = dict(zip("abc", model.class_weight_, strict=True))
            pair = SVC(C=10.0, gamma=model._gamma, class_weight={a: factors[a], b: factors[b]})
            alone = certify(
                pair.fit(points[rows], labels[rows], weight[rows]), points[rows], labels[rows], weight[rows]
            )
            assert found.certificates[k].primal == pytest.approx(alone.primal, rel=1e-3)


def test_rows_of_weight_zero_are_not_there():
    # scikit-learn counts support vectors among the rows that are left.
    weight = np.where(np.arange(60) % 3 == 0, 0.0, WEIGHT)
    for name in KERNEL:
        model = fitted(MODELS[name], weight)
        kept = weight > 0
        found = certify(model, X, y_of(model), weight)
        model.support_, model.shape_fit_ = model.support_.copy(), X[kept].shape
        if name == "SVC":
            assert (model.support_vectors_ != X[model.support_]).any()
        alone = certify(model, X[kept], y_of(model)[kept], weight[kept])
        assert found.primal == pytest.approx(alone.primal, rel=1e-12), name
        assert found.relative_gap < 0.1


def test_sparse_precomputed_and_functions_are_what_dense_is():
    expected = certify(SVC(C=5.0, gamma=GAMMA).fit(X, LABELS), X, LABELS).primal
    csr = sp.csr_matrix(X)
    assert certify(SVC(C=5.0, gamma=GAMMA).fit(csr, LABELS), csr, LABELS).primal == pytest.approx(expected, rel=1e-9)
    K = rbf_kernel(X, gamma=GAMMA)
    given = SVC(C=5.0, kernel="precomputed").fit(K, LABELS)
    assert certify(given, K, LABELS).primal == pytest.approx(expected, rel=1e-9)
    function = SVC(C=5.0, kernel=lambda A, B: rbf_kernel(A, B, gamma=GAMMA)).fit(X, LABELS)
    assert certify(function, X, LABELS).primal == pytest.approx(expected, rel=1e-9)
    scaled = SVC(C=5.0).fit(csr, LABELS)
    assert certify(scaled, csr, LABELS).relative_gap < 1e-2


WORDS = ["".join(rng.choice(list("abcde" if sign > 0 else "cdefg"), size=6)) for sign in SIGN]


def letters(A, B):
    """Return in how many pairs of their letters each two words agree."""
    counts = [np.array([[word.count(letter) for letter in "abcdefg"] for word in words], float) for words in (A, B)]
    return counts[0] @ counts[1].T


@pytest.mark.covering
@pytest.mark.parametrize(
    "words", [WORDS, np.array(WORDS), np.array(WORDS, dtype=object)], ids=["list", "text", "object"]
)
@pytest.mark.parametrize("module", [sklearn.svm, zerogap], ids=["sklearn", "zerogap"])
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_points_may_be_objects_that_a_kernel_function_takes(name, module, words):
    y, K, beta = LABELS if name == "SVC" else TARGET, letters(WORDS, WORDS), np.zeros(60)
    cls = getattr(module, name)
    model = cls(C=0.5, kernel=letters).fit(words, y, sample_weight=WEIGHT)
    beta[model.support_] = model.dual_coef_[0]
    if name == "SVC":
        loss = np.maximum(0.0, 1.0 - SIGN * model.decision_function(words))
    else:
        loss = np.maximum(0.0, np.abs(TARGET - model.predict(words)) - model.epsilon)
    given = cls(C=0.5, kernel="precomputed").fit(K, y, sample_weight=WEIGHT)
    best = certify(given, K, y, WEIGHT, tol=1e-10).dual
    assert certify(model, words, y, WEIGHT).primal == pytest.approx(
        0.5 * beta @ K @ beta + 0.5 * WEIGHT @ loss, rel=1e-11
    )
    assert certify(model, words, y, WEIGHT, tol=1e-10).dual == pytest.approx(best, rel=2e-10)
    exact = polish(model, words, y, WEIGHT)
    assert exact.certificate_.primal == pytest.approx(best, rel=2e-9)
    assert certify(exact, words, y, WEIGHT).relative_gap <= 2e-9
    assert exact.predict(["abab"]).shape == (1,)
    with pytest.raises(ValueError, match=r"fitted on X of shape \(60,\); got \(59,\)"):
        certify(model, words[1:], y[1:], WEIGHT[1:])


OWN = {
    "hinge": zerogap.SVC(C=5.0, tol=1e-9),
    "squared": zerogap.SVC(C=5.0, loss="squared_hinge", class_weight="balanced", tol=1e-9),
    "fixed-bias": zerogap.SVC(C=5.0, kernel="linear", fit_intercept=False, tol=1e-9),
    "linear": zerogap.SVC(C=5.0, kernel="linear", tol=1e-9),
    "kernel-object": zerogap.SVC(kernel=zerogap.kernels.RBF(0.2) + zerogap.kernels.Linear(), tol=1e-9),
    "regression": zerogap.SVR(C=5.0, tol=1e-9),
    "squared-regression": zerogap.SVR(C=5.0, loss="squared_epsilon_insensitive", tol=1e-9),
}


@pytest.mark.parametrize("name", OWN)
def test_our_own_models_have_the_certificate_they_carry(name):
    model = OWN[name]
    y = TARGET if isinstance(model, zerogap.SVR) else LABELS
    model.fit(X, y, sample_weight=WEIGHT)
    found = certify(model, X, y, WEIGHT)
    assert found.relative_gap <= 2e-9  # the bias they predict with is the middle of its interval, not the best
    assert found.primal == pytest.approx(model.certificate_.primal, rel=1e-8)
    assert polish(model, X, y, WEIGHT, tol=1e-11).duality_gap_ <= 1e-11


def test_a_hard_margin_and_a_path():
    points, labels = X[np.abs(X[:, 0]) > 0.3], np.sign(X[np.abs(X[:, 0]) > 0.3, 0])
    hard = zerogap.SVC(C=np.inf, kernel="linear", tol=1e-8).fit(points, labels)
    assert certify(hard, points, labels).relative_gap <= 1e-7
    path = zerogap.SVCPath(C=3.0).fit(X, LABELS)
    assert certify(path, X, LABELS).primal == pytest.approx(
        zerogap.SVC(C=3.0, tol=1e-10).fit(X, LABELS).certificate_.primal
    )


# What is around a machine.


def test_pipelines_searches_and_transformed_targets_are_looked_into():
    pipeline = make_pipeline(StandardScaler(), "passthrough", SVC(C=3.0)).fit(X, LABELS)
    inside = StandardScaler().fit_transform(X)
    expected = certify(SVC(C=3.0).fit(inside, LABELS), inside, LABELS)
    assert repr(certify(pipeline, X, LABELS)) == repr(expected)
    search = GridSearchCV(pipeline, {"svc__C": [3.0]}, cv=2).fit(X, LABELS)
    assert repr(certify(search, X, LABELS)) == repr(expected)
    for model in (pipeline, search):
        exact = polish(model, X, LABELS)
        assert isinstance(exact[-1], zerogap.SVC)
        assert exact[0].mean_ is (model if model is pipeline else model.best_estimator_)[0].mean_
        assert certify(exact, X, LABELS).relative_gap <= 2e-9
    assert isinstance(pipeline[-1], SVC)
    target = TransformedTargetRegressor(SVR(), transformer=StandardScaler()).fit(X, 100.0 * TARGET)
    assert certify(target, X, 100.0 * TARGET).relative_gap < 1e-2
    exact = polish(target, X, 100.0 * TARGET)
    assert exact.regressor_.duality_gap_ <= 1e-9
    assert np.abs(exact.predict(X) - target.predict(X)).max() < 1.0


# What is refused.


ORDER = np.arange(60)[::-1]
REFUSED = {  # what is fitted on X and the labels, what is passed, and what is said
    "rows": (SVC(), (X[ORDER], LABELS[ORDER]), ValueError, "are not the rows of X"),
    "fewer": (SVC(), (X[:30], LABELS[:30]), ValueError, r"shape \(60, 3\)"),
    "other": (SVC(), (X + 1.0, LABELS), ValueError, "are not the rows of X"),
    "labels": (SVC(), (X, np.roll(LABELS, 1)), ValueError, "no feasible point"),
    "unknown-labels": (SVC(), (X, np.arange(60)), ValueError, "labels out of"),
    "short": (SVC(), (X, LABELS[:-1]), ValueError, "one entry for each of the 60"),
    "no-labels": (SVC(), (X,), ValueError, "y is missing: pass the 60 labels"),
    "weights": (SVC(), (X, LABELS, 0.1 * WEIGHT), ValueError, "no feasible point"),
    "features": (LinearSVC(), (X[:, :2], LABELS), ValueError, "3 features; X has 2"),
    "other-model": (LogisticRegression(), (X, LABELS), TypeError, "got LogisticRegression"),
    "calibrated": (CalibratedClassifierCV(SVC(), cv=2), (X, LABELS), TypeError, "calibrated_classifiers_"),
    "bagged": (BaggingClassifier(SVC(), 2), (X, LABELS), TypeError, "estimators_ one by one"),
    "no-refit": (GridSearchCV(SVC(), {"C": [1.0]}, cv=2, refit=False), (X, LABELS), ValueError, "refit=True"),
    "l1": (LinearSVC(penalty="l1", dual=False), (X, LABELS), ValueError, "penalty"),
    "crammer": (LinearSVC(multi_class="crammer_singer", max_iter=10_000), (X, LABELS), ValueError, "multi_class"),
    "sigmoid": (SVC(kernel="sigmoid", gamma=5.0), (X, LABELS), ValueError, "not positive semidefinite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_certified_is_told(name):
    model, data, error, words = REFUSED[name]
    with pytest.raises(error, match=words):
        certify(clone(model).fit(X, LABELS), *data)


def test_what_was_not_fitted_or_transforms_nothing_is_told():
    with pytest.raises(NotFittedError):
        certify(SVC(), X, LABELS)
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, LABELS)
    pipeline.steps[0] = ("sampler", object())
    with pytest.raises(TypeError, match="'sampler' of the pipeline, object, has no transform"):
        certify(pipeline, X, LABELS)


def test_what_cannot_be_polished_is_told():
    with pytest.raises(ValueError, match="y is missing: pass the 60 labels"):
        polish(SVC().fit(X, LABELS), X)
    with pytest.raises(ValueError, match="tol must be above 0"):
        polish(SVC().fit(X, LABELS), X, LABELS, tol=0.0)
    with pytest.raises(ValueError, match="tol must be above 0"):
        certify(SVC().fit(X, LABELS), X, LABELS, tol=-1.0)
    for ask in (certify, polish):
        with pytest.raises(ValueError, match="max_time must be above 0"):
            ask(SVC().fit(X, LABELS), X, LABELS, max_time=0.0)


# The exact model.


@pytest.mark.parametrize("name", MODELS)
def test_the_polished_model_is_the_optimum(name):
    model = fitted(MODELS[name], WEIGHT)
    y = y_of(model)
    exact = polish(model, X, y, WEIGHT, tol=1e-10)
    if name.startswith("Linear") or name == "OneClassSVM":
        assert type(exact) is type(model)
        assert objective(exact, WEIGHT) - optimum(model, WEIGHT) <= AGREE * max(1.0, abs(optimum(model, WEIGHT)))
        assert exact.certificate_.relative_gap <= 1e-10
        assert certify(exact, X, y, WEIGHT).relative_gap <= 2e-9
    else:
        assert exact.duality_gap_ <= 1e-10
        assert not exact.warm_start
        assert certify(exact, X, y, WEIGHT).relative_gap <= 1e-9
    values = "predict" if y is TARGET else "decision_function"
    near = getattr(fitted(MODELS[name], WEIGHT, tol=1e-8, max_iter=10**7), values)(X)
    assert np.abs(getattr(exact, values)(X) - near).max() <= 1e-3 * np.abs(near).max()


@pytest.mark.covering
@pytest.mark.parametrize("name", ["NuSVC", "NuSVR"])
@pytest.mark.parametrize("nu", [0.05, 0.3, 0.6])
def test_a_polished_nu_model_has_that_nu_and_the_optimum_of_its_problem(name, nu):
    model = fitted(MODELS[name], nu=nu)
    exact = polish(model, X, y_of(model), tol=1e-10)
    assert np.abs(exact.dual_coef_).sum() == pytest.approx(nu * 60 * exact.C, rel=1e-8)
    norm = 0.5 * exact.dual_coef_ @ rbf_kernel(exact.support_vectors_, gamma=GAMMA) @ exact.dual_coef_.T
    if name == "NuSVC":
        found = -float(norm[0, 0]) / exact.C**2  # in the scale of the nu problem
    else:
        deviations = np.abs(TARGET - exact.predict(X))
        tube = np.maximum(0.0, deviations - exact.epsilon).sum() + exact.epsilon * nu * 60
        found = float(norm[0, 0]) + exact.C * tube
    assert found == pytest.approx(optimum(model), rel=1e-7)


def test_a_nu_that_no_margin_has_is_told():
    points = np.round(X)  # of which some are in both classes
    model = NuSVC(nu=0.05, gamma=GAMMA).fit(points, LABELS)
    with pytest.warns(ConvergenceWarning, match="not 1e-06: stalled"):  # no share of zero is small
        found = certify(model, points, LABELS, tol=1e-6)
    assert -1e-12 < found.dual <= 0.0 < found.primal  # the optimum is zero
    with pytest.raises(ValueError, match=r"nu=0\.05 is too small"):
        polish(model, points, LABELS)
    model.dual_coef_ = -model.dual_coef_  # what LIBSVM has where its margin is below zero
    with pytest.raises(ValueError, match=r"no feasible point.*nu=0\.05 is too small"):
        certify(model, points, LABELS)


def test_a_tube_without_width():
    # Fewer points than nu asks for are off a tube of any width: the best has none.
    points, target = np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 0.0, 1.0])
    model = NuSVR(nu=1.0, C=0.1).fit(points, target)
    exact = polish(model, points, target)
    assert exact.epsilon == 0.0
    assert exact.duality_gap_ <= 1e-9


def test_parameters_are_carried_over():
    points, labels = load_iris(return_X_y=True)
    model = SVC(C=7.0, kernel="poly", degree=2, coef0=0.5, class_weight="balanced", decision_function_shape="ovo")
    model.fit(points, labels)
    exact = polish(model, points, labels)
    assert (exact.C, exact.kernel, exact.degree, exact.coef0, exact.decision_function_shape) == (
        7.0,
        "poly",
        2,
        0.5,
        "ovo",
    )
    assert exact.gamma == pytest.approx(model._gamma)
    assert exact.class_weight == dict(zip(range(3), model.class_weight_, strict=True))
    assert exact.decision_function(points).shape == (150, 3)
    assert max(c.relative_gap for c in exact.certificate_) <= 1e-9


# What each parameter that both libraries have is set to; a new one has to be decided on.
SET = {
    "C": 7.0, "epsilon": 0.3, "kernel": "poly", "degree": 2, "coef0": 0.5, "gamma": 0.25, "shrinking": False, "verbose": True,
    "class_weight": {0: 2.0, 1: 1.0, 2: 0.5}, "decision_function_shape": "ovr", "break_ties": True, "random_state": 3,
    "probability": True,
}  # fmt: skip
SOLVERS_OWN = {"tol": 1e-2, "cache_size": 123, "max_iter": 50}


@pytest.mark.parametrize("cls", [SVC, SVR, NuSVC, NuSVR])
@pytest.mark.filterwarnings("ignore:The `probability` parameter:FutureWarning")
@pytest.mark.filterwarnings("ignore:Solver terminated early:sklearn.exceptions.ConvergenceWarning")
def test_every_parameter_that_both_have_is_carried_over(cls, capfd):
    points, labels = load_iris(return_X_y=True)
    if cls is NuSVC:  # of two classes alone
        points, labels = points[labels > 0], labels[labels > 0]
    ours = (zerogap.SVC if cls in (SVC, NuSVC) else zerogap.SVR)().get_params()
    shared = set(cls().get_params()) & set(ours)
    assert shared <= SET.keys() | SOLVERS_OWN.keys()
    set_to = {name: value for name, value in (SET | SOLVERS_OWN).items() if name in shared}
    if cls is NuSVC:
        set_to["class_weight"] = None  # LIBSVM takes no notice of it there
    exact = polish(cls(**set_to).fit(points, labels), points, labels)
    capfd.readouterr()  # LIBSVM and progress
    found = exact.get_params()
    assert {name: found[name] for name in shared - SOLVERS_OWN.keys()} == {
        name: set_to[name] for name in shared - SOLVERS_OWN.keys()
    }
    assert (found["tol"], found["cache_size"], found["max_iter"]) == (1e-9, ours["cache_size"], -1)
    if "probability" in shared:
        assert exact.predict_proba(points).shape == (labels.size, np.unique(labels).size)
    else:
        assert not hasattr(exact, "predict_proba")


def test_ties_are_broken_as_they_were():
    labels, random = np.arange(60) % 3, np.random.default_rng(0)
    angle = 2.0 * np.pi / 3.0 * labels
    points = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)]) + random.normal(size=(60, 2))
    grid = random.uniform(-1.0, 1.0, size=(3000, 2))  # in the midst every class has a vote
    model = SVC(kernel="linear", break_ties=True).fit(points, labels)
    voted = SVC(kernel="linear").fit(points, labels).predict(grid)
    exact = polish(model, points, labels)
    assert not hasattr(exact, "predict_proba")
    differ = np.mean(exact.predict(grid) != model.predict(grid))
    assert differ < 0.1 * np.mean(voted != model.predict(grid))


def test_a_limit_on_time_is_told():
    model = fitted(MODELS["LinearSVR"])
    with pytest.warns(ConvergenceWarning, match="max_time"):
        polish(model, X, TARGET, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="bound .*solved .*: max_time.*may be far less off"):
        found = certify(model, X, TARGET, max_time=1e-9)
    assert found.dual <= optimum(model) + AGREE  # a bound all the same: zero coefficients are feasible
    assert re.search(r" \(bound .*solved .*: max_time\)$", repr(found))
    for name in ("NuSVC", "NuSVR"):
        model = fitted(MODELS[name])
        with pytest.warns(ConvergenceWarning, match="max_time"):
            polish(model, X, y_of(model), max_time=1e-9)
        with pytest.warns(ConvergenceWarning, match=r"bound solved to a gap of .*, not 1e-09: max_time"):
            found = certify(model, X, y_of(model), tol=1e-9, max_time=1e-9)
        assert_true(found, model)
        assert "max_time" in repr(found)


@pytest.mark.parametrize("name", ["SVC", "SVR", "OneClassSVM", "LinearSVC", "LinearSVR"])
def test_a_bound_that_is_short_of_its_tolerance_is_told_with_its_gap(name, monkeypatch):
    monkeypatch.setattr(zerogap.foreign.parts, "default_max_steps", lambda n: 1)
    model = fitted(MODELS[name])
    with pytest.warns(ConvergenceWarning, match=r"solved to a gap of \S+, not 1e-09: max_steps"):
        found = certify(model, X, y_of(model), tol=1e-9)
    said = re.search(r" \(bound solved to a gap of (\S+), not 1e-09: max_steps\)$", repr(found))
    assert float(said[1]) > 1e-9
    assert_true(found, model)


def test_a_model_within_the_tolerance_needs_no_better_bound():
    problem = DualProblem.hinge(Gram(X, gamma=GAMMA), SIGN, C=5.0)
    rough, exact = solve(problem, "smo", max_steps=3), solve(problem, stop=RelativeGap(1e-9))
    bound = Bound.of(rough)
    assert bound.shortfall(rough.certificate, 1e-8).endswith("not 1e-08: max_steps")
    assert bound.shortfall(exact.certificate, 1e-8) == ""
    assert Bound.of(exact).shortfall(rough.certificate, 1e-8) == ""


def test_the_shortfall_that_is_told_is_that_of_the_worst_problem(monkeypatch):
    points, labels = load_iris(return_X_y=True)
    monkeypatch.setattr(zerogap.foreign.parts, "default_max_steps", lambda n: 1)
    model = LinearSVC(max_iter=100_000).fit(points, labels)
    with pytest.warns(ConvergenceWarning, match="in 3 of 3 problems, the worst .* against the rest"):
        found = certify(model, points, labels)
    worst = int(np.argmax([certificate.relative_gap for certificate in found.certificates]))
    other = replace(found, shortfalls=("a", "b", "c"))
    assert other.shortfall == "abc"[worst]
    assert repr(other).endswith(f"({other.shortfall})")


@pytest.mark.parametrize("swallowed", [False, True])
@pytest.mark.parametrize("ask", [certify, polish])
@pytest.mark.parametrize("name", ["SVC", "NuSVC", "NuSVR", "OneClassSVM", "LinearSVC", "LinearSVR"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a fit of ours that was interrupted
def test_ctrl_c_is_raised(name, ask, swallowed, monkeypatch):
    """Compilers swallow what is raised in what they call."""

    def pressed(*arguments, **options):
        def press(*row):
            with suppress(*[KeyboardInterrupt] * swallowed):
                signal.raise_signal(signal.SIGINT)

        return solve(*arguments, **options | {"callback": press})

    for module in (zerogap.foreign.parts, zerogap.estimators.base):
        monkeypatch.setattr(module, "solve", pressed)
    model, before = fitted(MODELS[name]), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ask(model, X, y_of(model), tol=1e-12)
    assert signal.getsignal(signal.SIGINT) is before


def test_what_ctrl_c_leaves_unfinished_is_ctrl_c_too():
    def work():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        limits.check()

    with pytest.raises(KeyboardInterrupt), limits.interruptible():
        work()
    with pytest.raises(limits.Exceeded), limits.interruptible(), limits.limits(0.0):
        limits.check()


def test_polish_starts_from_the_model():
    # From the optimum there is nothing left to do.
    points, labels = load_breast_cancer(return_X_y=True)
    points = StandardScaler().fit_transform(points)
    first = polish(SVC(C=10.0).fit(points, labels), points, labels)
    again = polish(first, points, labels)
    assert int(again.n_iter_[0]) < 0.1 * int(first.n_iter_[0])


# What it says.


def test_a_line_tells_it_in_words():
    points, labels = load_breast_cancer(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(C=1e4)).fit(points, labels)
    found = certify(model, points, labels)
    assert found.relative_gap > 0.05  # 0.143 here; where LIBSVM ends, the last digits of its exponentials decide
    assert re.fullmatch(
        r"SVC: up to [\d.]+ % off the optimum: objective [\d.]+, optimum at least 40[\d.]+", repr(found)
    )
    assert found.n_points == 569
    assert found.n_support == (model[-1].support_.size,)
    points, labels = load_iris(return_X_y=True)
    several = certify(SVC(C=10.0).fit(points, labels), points, labels)
    worst = int(np.argmax([c.relative_gap for c in several.certificates]))
    assert f"in the worst of 3 problems, {several.names[worst]}: objective {several.primal:.7g}" in repr(several)
    nothing = zerogap.Certificate.nothing()
    said = repr(zerogap.ModelCertificate("SVC", ("",), (nothing,), (3,), 5))
    assert "no number of float64" in said


def test_the_readme_opens_with_what_it_prints(capsys):
    text = (Path(__file__).parents[1] / "README.md").read_text()
    code, printed = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, flags=re.DOTALL).groups()
    exec(compile(code, "README.md", "exec"), {})
    seen = capsys.readouterr().out
    # Where LIBSVM ends short of the optimum the last digits of its exponentials decide; the optimum itself is one number.
    number = r"[\d.]+(e-\d+)?"
    assert re.sub(number, "#", seen) == re.sub(number, "#", printed)
    assert float(re.search(r"up to (\S+) %", seen)[1]) > 5.0
    assert seen.splitlines()[1].endswith("objective 405.3664, optimum at least 405.3664")


# The one-class problem.


@pytest.mark.covering
@pytest.mark.parametrize("solver", ["auto", "smo", "rosen", "simple-svm"])
@pytest.mark.parametrize("nu", [0.01, 0.3, 1.0])
def test_the_one_class_problem_is_solved(solver, nu):
    problem = DualProblem.one_class(Gram(X, gamma=GAMMA), nu, sample_weight=WEIGHT)
    solution = solve(problem, solver, stop=RelativeGap(1e-9))
    assert solution.certificate.relative_gap <= 1e-9
    assert solution.beta.sum() == pytest.approx(nu * WEIGHT.sum())
    assert solution.certificate.dual == pytest.approx(optimum(OneClassSVM(nu=nu, gamma=GAMMA), WEIGHT), rel=AGREE)


@pytest.mark.parametrize("nu", [0.0, -1.0, 1.5])
def test_a_share_of_the_points_is_one(nu):
    with pytest.raises(ValueError, match="nu must be"):
        DualProblem.one_class(Gram(X), nu)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_a_tube_that_nothing_leaves_is_certified_at_the_cost_it_was_solved_with(loss):
    x = np.repeat(np.linspace(0.0, 6.0, 20), 2)
    y, weight = np.sin(x), np.resize([1.0, 0.0, 2.0], 40)  # neither duplicates nor weights change what is allowed
    model = zerogap.SVR(C=np.inf, epsilon=0.05, loss=loss).fit(x[:, None], y, weight)
    found = certify(model, x[:, None], y, weight)
    assert found.relative_gap <= model.tol
    assert found.dual <= model.certificate_.primal  # both bounds are of one optimum
    assert model.certificate_.dual <= found.primal
    exact = polish(model, x[:, None], y, weight, tol=1e-7)  # at costs of 1e6 rounding is some 1e-9 of the objective
    assert np.isinf(exact.C)
    assert exact.duality_gap_ <= 1e-7


# Another library.


@pytest.mark.parametrize("name", ["SVC", "SVC-classes", "SVC-linear", "NuSVC", "SVR", "NuSVR"])
def test_models_of_intelex(name):
    other = pytest.importorskip("sklearnex.svm")
    plain = MODELS[name]
    model = getattr(other, type(plain).__name__)(**plain.get_params()).fit(X, y_of(plain), sample_weight=WEIGHT)
    found = certify(model, X, y_of(plain), WEIGHT)
    assert hasattr(model, "_onedal_estimator")
    assert found.relative_gap < 0.1
    best = optimum(plain, WEIGHT)
    assert found.dual <= best + AGREE * max(1.0, abs(best))
    assert found.primal >= best - AGREE * max(1.0, abs(best))
    single = getattr(other, type(plain).__name__)(**plain.get_params()).fit(X.astype(np.float32), y_of(plain))
    assert certify(single, X.astype(np.float32), y_of(plain)).relative_gap < 0.1
