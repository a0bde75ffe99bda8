"""Rows added and forgotten: the model must be the one a refit gives."""

import copy
import operator
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from test_properties import awkward_points, slow

from zerogap import SVC, Status, leave_one_out, limits
from zerogap.estimators import incremental
from zerogap.estimators.incremental import Training
from zerogap.kernels import RBF


def cancer(n=None):
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:n], y[:n]


def assert_is_refit(model, X, y, weight=None, atol=1e-9):
    """Refit with the model's own gamma; SimpleSVM starts from the closest pair, and solves its free set to the last digits."""
    refit = (
        clone(model)
        .set_params(kernel=model._kernel, gamma="scale", coef0=0.0, tol=1e-11, solver="simple-svm")
        .fit(X, y, weight)
    )
    scale = 1.0 + np.abs(refit.decision_function(X)).max()
    np.testing.assert_allclose(model.decision_function(X), refit.decision_function(X), rtol=0, atol=atol * scale)
    assert model.duality_gap_ <= 1e-9
    assert model.status_ is Status.CONVERGED
    assert model.shape_fit_ == X.shape
    return refit


MODELS = [
    SVC(),
    SVC(C=100.0),
    SVC(C=0.1, kernel="linear"),
    SVC(loss="squared_hinge"),
    SVC(loss="squared_hinge", C=50.0, kernel="linear"),
    SVC(kernel="poly", coef0=1.0, fit_intercept=False),
    SVC(C=np.inf, gamma=0.05),
    SVC(class_weight={0: 3.0, 1: 0.5}),
]


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_batches_and_forgetting_equal_a_refit(model):
    X, y = cancer(160)
    model = clone(model)
    for rows in np.array_split(np.arange(160), 4):
        model.partial_fit(X[rows], y[rows])
        seen = rows[-1] + 1
        assert_is_refit(model, X[:seen], y[:seen])
    kept = np.arange(160)
    for gone in (np.arange(0, 160, 7), np.array([0, 3, -1]), model.support_[:40:2]):
        gone = np.unique(gone % kept.size)[: kept.size]
        model.forget(gone)
        kept = np.delete(kept, gone)
        assert_is_refit(model, X[kept], y[kept])


@pytest.mark.long
def test_one_row_at_a_time_and_back():
    X, y = make_moons(80, noise=0.3, random_state=0)
    model = SVC(C=5.0, gamma=1.0).partial_fit(X[:10], y[:10])
    values = [model.decision_function(X)]
    for k in range(10, 80):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        values.append(model.decision_function(X))
    assert_is_refit(model, X, y)
    for k in range(79, 9, -1):  # adding a point is entirely reversible (ssvm §IV)
        np.testing.assert_allclose(model.decision_function(X), values[k - 9], rtol=0, atol=1e-9)
        model.forget(k)
    np.testing.assert_allclose(model.decision_function(X), values[0], rtol=0, atol=1e-9)


def test_the_fitted_attributes_are_those_of_the_refit():
    X, y = cancer(200)
    model = SVC(gamma=0.03).partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    refit = SVC(gamma=0.03, tol=1e-12).fit(X, y)
    np.testing.assert_array_equal(model.support_, refit.support_)
    np.testing.assert_array_equal(model.support_vectors_, refit.support_vectors_)
    np.testing.assert_array_equal(model.n_support_, refit.n_support_)
    np.testing.assert_allclose(model.dual_coef_, refit.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, refit.intercept_, atol=1e-9)
    assert model.certificate_.dual == pytest.approx(refit.certificate_.dual, rel=1e-11)
    assert model.score(X, y) == refit.score(X, y)


def test_a_row_takes_a_few_exchanges_and_few_kernel_values():
    X, y = cancer()
    model = SVC().partial_fit(X[:-20], y[:-20])
    model.partial_fit(X[-20:-19], y[-20:-19])  # the first time the support vectors' rows have to be computed
    for k in range(-19, -1):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        assert model.n_iter_[0] <= 25
        assert model.kernel_evaluations_ <= (2 * model.n_iter_[0] + 10) * len(X)
    full = SVC().fit(X, y)
    assert model.kernel_evaluations_ < 0.2 * full.kernel_evaluations_


def test_the_first_call_computes_no_kernel_value_twice():
    X, y = cancer()
    assert SVC().partial_fit(X, y).kernel_evaluations_ == SVC().fit(X, y).kernel_evaluations_


def test_fit_then_partial_fit_goes_on_from_the_fit():
    X, y = cancer(200)
    model = SVC(gamma="scale").fit(X[:150], y[:150])
    gamma = model._kernel.gamma
    model.partial_fit(X[150:], y[150:])
    assert model._kernel.gamma == gamma  # resolved at the first call, as documented
    assert_is_refit(model, X, y)
    model.fit(X[:100], y[:100])  # and a fit forgets everything
    assert model.shape_fit_[0] == 100
    assert model._kernel.gamma != gamma


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_and_duplicates(loss):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=60) > 2, "yes", "no")
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=60)
    weight[:4] = 1.0
    model = SVC(C=3.0, gamma=0.5, loss=loss)
    model.partial_fit(X[:20], y[:20], sample_weight=weight[:20])
    for k in range(20, 60, 5):
        rows = slice(k, k + 5)
        if weight[rows].any():
            model.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
        else:
            weight[rows] = 1.0
            model.partial_fit(X[rows], y[rows])
    assert_is_refit(model, X, y, weight)
    kept = np.arange(60)
    for _ in range(10):
        gone = rng.integers(kept.size)
        model.forget(gone)
        kept = np.delete(kept, gone)
        assert_is_refit(model, X[kept], y[kept], weight[kept])


any_history = (awkward_points(scales=(1.0,)), st.sampled_from(["hinge", "squared_hinge"]), st.booleans(), st.data())


@pytest.mark.long
@given(*any_history)
@settings(slow, max_examples=25)
def test_any_history_ends_at_the_refit(data, loss, fit_intercept, choices):
    assert_ends_at_the_refit(data, loss, fit_intercept, choices)


@pytest.mark.long
@given(*any_history)
@slow
def test_more_histories_end_at_the_refit(data, loss, fit_intercept, choices):
    assert_ends_at_the_refit(data, loss, fit_intercept, choices)


def assert_ends_at_the_refit(data, loss, fit_intercept, choices):
    X, y, _ = data
    model = SVC(C=2.0, gamma=0.7, loss=loss, fit_intercept=fit_intercept).partial_fit(X[:2], y[:2])
    held = [0, 1]
    for k in range(2, len(y)):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        held.append(k)
        gone = choices.draw(st.integers(0, len(held) - 1))
        rest = held[:gone] + held[gone + 1 :]
        if len(set(y[rest])) == 2 and choices.draw(st.booleans()):
            model.forget(gone)
            held = rest
    assert_is_refit(model, X[held], y[held])


@pytest.mark.long
def test_sparse_rows_and_a_small_cache():
    X, y = cancer(150)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense, sparse = SVC(gamma=0.05), SVC(gamma=0.05, cache_size=0.001)
    wide = sp.csr_matrix(np.concatenate([X, np.zeros((150, 300))], axis=1))  # too wide to be made dense
    for rows in np.array_split(np.arange(150), 4):
        dense.partial_fit(X[rows], y[rows])
        sparse.partial_fit(wide[rows], y[rows])
    np.testing.assert_allclose(sparse.decision_function(wide), dense.decision_function(X), atol=1e-9)
    sparse.forget(np.arange(0, 150, 3))
    dense.forget(np.arange(150) % 3 == 0)  # a mask says the same
    np.testing.assert_allclose(sparse.decision_function(wide), dense.decision_function(X), atol=1e-9)


def test_parameters_may_change_between_calls():
    X, y = cancer(120)
    model = SVC(C=1.0).partial_fit(X[:100], y[:100])
    model.set_params(C=10.0).partial_fit(X[100:], y[100:])
    assert_is_refit(model, X, y)
    model.set_params(loss="squared_hinge", fit_intercept=False).forget([5])
    assert_is_refit(model, np.delete(X, 5, axis=0), np.delete(y, 5))


def test_pickles_and_copies():
    X, y = cancer(200)
    grown = SVC().partial_fit(X[:100], y[:100])
    for twin in (pickle.loads(pickle.dumps(grown)), copy.deepcopy(grown)):
        twin.partial_fit(X[100:], y[100:])
        assert_is_refit(twin, X, y)
    assert grown.shape_fit_[0] == 100  # the original has not moved
    fitted = SVC().fit(X, y)
    assert len(pickle.dumps(fitted)) < 0.7 * X.nbytes  # without the rows that are no support vectors
    with pytest.raises(ValueError, match="no longer holds its training rows"):
        pickle.loads(pickle.dumps(fitted)).partial_fit(X, y)


def test_inseparable_rows_under_a_hard_margin_are_said_and_survived():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    model = SVC(C=np.inf, kernel="linear").partial_fit(X, y)
    with pytest.warns(ConvergenceWarning, match="finite C"):
        model.partial_fit([[2.5]], [0])
    assert model.status_ is Status.UNBOUNDED
    model.forget(4)
    assert model.status_ is Status.CONVERGED
    np.testing.assert_allclose(model.decision_function([[1.0], [2.0]]), [-1.0, 1.0], atol=1e-9)


def test_more_classes_are_exact_too():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    exact = SVC(gamma=0.5, tol=1e-11, solver="simple-svm")
    model = SVC(gamma=0.5).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    model.partial_fit(X[100:], y[100:])
    np.testing.assert_allclose(model.decision_function(X), exact.fit(X, y).decision_function(X), atol=1e-9)
    model.forget(np.arange(30))
    np.testing.assert_allclose(model.decision_function(X), exact.fit(X[30:], y[30:]).decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="no point of class"):
        model.forget(y[30:] == 2)


def test_one_against_the_rest_grows_too():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    X, y = X[order], y[order]
    model = OneVsRestClassifier(SVC(gamma=0.5)).partial_fit(X[:75], y[:75], classes=[0, 1, 2])
    model.partial_fit(X[75:], y[75:])
    whole = OneVsRestClassifier(SVC(gamma=0.5, tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-5)


def test_bad_calls_are_refused_and_leave_the_model_alone():
    X, y = cancer(60)
    with pytest.raises(ValueError, match="every class"):
        SVC().partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    with pytest.raises(ValueError, match="balanced"):
        SVC(class_weight="balanced").partial_fit(X, y)
    with pytest.raises(AttributeError, match="partial_fit"):
        SVC(kernel="precomputed").partial_fit(X @ X.T, y)
    model = SVC().partial_fit(X, y)
    before = model.decision_function(X)
    for call, message in (
        (lambda: model.partial_fit(X, y + 1), r"labels out of \[0, 1\]; got \[2\]"),
        (lambda: model.partial_fit(X, y, classes=[0, 2]), "those of the first call"),
        (lambda: model.partial_fit(X[:, :5], y), "30 features"),
        (lambda: model.forget(60), "rows out of 0 to 59; got 60"),
        (lambda: model.forget([3, -61]), "rows out of 0 to 59; got -61"),
        (lambda: model.forget([0.5]), "row numbers"),
        (lambda: model.forget(np.flatnonzero(y == 1)), "no point of class"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_a_class_of_weight_zero_alone_is_no_class():
    X, y = cancer(60)
    weight = np.where((y == 1) & (np.arange(60) % 2 == 0), 0.0, 1.0)
    model = SVC().partial_fit(X, y, sample_weight=weight)
    heavy = np.flatnonzero((y == 1) & (weight > 0))
    with pytest.raises(ValueError, match="no point of class"):
        model.forget(heavy)  # rows of the class are left, but none that counts
    kept = np.delete(np.arange(60), heavy[1:])
    assert_is_refit(model.forget(heavy[1:]), X[kept], y[kept], weight[kept])


def test_class_weights_are_those_of_now():
    X, y = cancer(60)
    model = SVC(class_weight={0: 0.3}).partial_fit(X[:40], y[:40])
    model.set_params(class_weight={0: 2.0}).partial_fit(X[40:], y[40:])
    assert_is_refit(model, X, y)


def histories(count):
    """Awkward data, options and changes, drawn once and for all."""
    rng = np.random.default_rng(20)
    for _ in range(count):
        n, d = int(rng.integers(4, 25)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) if rng.random() < 0.5 else rng.integers(0, 3, size=(n, d)).astype(float)
        if rng.random() < 0.3:
            X = X[rng.integers(0, max(1, n // 3), size=n)]
        y, weight = rng.integers(0, 2, size=n), rng.choice([0.3, 1.0, 2.0, 1e-3, 1e3, 0.0], size=n)
        y[:2], weight[:2] = [0, 1], 1.0
        options = {
            "C": float(10.0 ** rng.uniform(-6, 6)),
            "kernel": str(rng.choice(["linear", "rbf", "poly"])),
            "gamma": 0.5,
            "coef0": float(rng.integers(0, 2)),
            "loss": str(rng.choice(["hinge", "squared_hinge"])),
            "fit_intercept": bool(rng.random() < 0.7),
            "class_weight": None if rng.random() < 0.7 else {0: 0.3, 1: 1.7},
        }
        yield X, y, weight if rng.random() < 0.5 else np.ones(n), options, rng


@pytest.mark.parametrize("count", [15, pytest.param(150, marks=pytest.mark.long)])
def test_histories_of_many_kinds_end_where_a_fit_does(count):
    for X, y, weight, options, rng in histories(count):
        model, held = SVC(**options).partial_fit(X[:4], y[:4], sample_weight=weight[:4]), np.arange(4)
        for k in range(4, len(y), 4):
            rows = np.arange(k, min(k + 4, len(y)))
            weight[rows[0]] = max(weight[rows[0]], 0.3)
            model.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
            held = np.concatenate([held, rows])
            gone = rng.choice(held.size, size=int(rng.integers(0, held.size)), replace=False)
            rest = np.delete(held, gone)
            if all(weight[rest][y[rest] == label].any() for label in (0, 1)):
                model.forget(gone)
                held = rest
        fresh = SVC(**{**options, "tol": 1e-10}).fit(X[held], y[held], weight[held])
        assert model.status_ is Status.CONVERGED
        a, b = model.certificate_, fresh.certificate_
        # Both optima lie between their bounds; the sums behind a bound round, each by so much.
        size = np.abs(fresh.dual_coef_).sum() ** 2 * np.abs(fresh._kernel(X[held], X[held])).max() + abs(b.dual)
        assert abs(a.dual - b.dual) <= a.gap + b.gap + 100 * np.finfo(float).eps * size


def test_an_indefinite_kernel_leaves_finite_coefficients():
    """With a negative definite kernel and no bias every step makes the objective fall faster, until float64 ends."""

    def kernel(A, B):
        return -np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    X = np.random.default_rng(0).integers(0, 2, size=(25, 2)).astype(float)
    y = np.where(np.arange(25) % 3, 1, 0)
    model = SVC(210.0, kernel=kernel, loss="squared_hinge", fit_intercept=False)
    with pytest.warns(UserWarning, match="not positive semidefinite"), pytest.warns(ConvergenceWarning):
        model.partial_fit(X[:20], y[:20])
    with pytest.warns(ConvergenceWarning, match="no bound"):
        model.forget([0, 3]).partial_fit(X[20:], y[20:])
    assert model.status_ is Status.UNBOUNDED
    assert np.isfinite(model.dual_coef_).all()


def test_the_intercept_is_right_for_the_points_as_they_are():
    """So far from the origin that coefficients which sum to zero but for rounding would move f(x) by more than the margin."""
    X = 1.39055e8 + np.random.default_rng(0).normal(scale=3.0, size=(8, 4))
    y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    for model in (SVC(np.inf, kernel="linear").partial_fit(X, y), SVC(10.0, kernel="linear", tol=1e-9).fit(X, y)):
        terms = [[Fraction(float(v)) for v in row] for row in (*model.support_vectors_, *X)]
        vectors, rows = terms[: len(model.support_)], terms[len(model.support_) :]
        beta, bias = [Fraction(float(b)) for b in model.dual_coef_[0]], Fraction(float(model.intercept_[0]))
        values = [
            float(sum(b * sum(map(operator.mul, v, x)) for b, v in zip(beta, vectors, strict=True)) + bias)
            for x in rows
        ]
        np.testing.assert_allclose(model.decision_function(X), values, atol=1e-6)


def test_squared_hinge_with_a_finite_C_is_not_called_unbounded():
    """Features of very different and very large scales lead exchanges astray; then the solver takes over."""
    rng = np.random.default_rng(3)
    X = np.column_stack([-3.6e39 + 2e36 * rng.standard_normal(22), -2.84e44 + 5e40 * rng.standard_normal(22)])
    y = (rng.random(22) < 0.3).astype(int)
    model = SVC(0.714, kernel="linear", loss="squared_hinge", max_iter=2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.partial_fit(X, y).forget(np.arange(0, 22, 3))
    assert model.status_ is not Status.UNBOUNDED
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.dual_coef_).all()


def test_a_limit_keeps_the_coefficients_of_all_rows_that_stay(monkeypatch):
    """That of the first of the distinct points too."""
    X, y = make_moons(41, noise=0.6, random_state=0)
    model = SVC(C=2.0).partial_fit(X, y)
    training = model._kept_training()
    before, kept = training.points.spread(training.beta[0]), np.setdiff1d(np.arange(41), [int(training.points.rows[1])])
    assert training.beta[0][0] != 0.0

    def over(self, *rest):
        raise limits.Exceeded

    monkeypatch.setattr(Training, "solve", over)
    monkeypatch.setattr(incremental, "feasible", lambda problem, beta: beta)
    monkeypatch.setattr(incremental, "cut_short", lambda limit: Status.MAX_TIME)
    training.forget(model, kept)
    np.testing.assert_array_equal(training.points.spread(training.beta[0]), before[kept])


@pytest.mark.parametrize("status", [Status.CONVERGED, Status.STALLED])
def test_only_a_point_short_of_the_tolerance_was_cut_short(status, monkeypatch):
    X, y = make_moons(40, noise=0.3, random_state=0)
    model = SVC(C=2.0).partial_fit(X, y)
    certified = incremental.certified
    monkeypatch.setattr(incremental, "cut_short", lambda limit: Status.MAX_TIME)
    monkeypatch.setattr(incremental, "certified", lambda *arguments: replace(certified(*arguments), status=status))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.forget([0])
    assert model.status_ is (Status.CONVERGED if status is Status.CONVERGED else Status.MAX_TIME)


@pytest.mark.parametrize("change", [{"kernel": "linear"}, {"gamma": 2.0}, {"kernel": RBF(2.0), "gamma": "scale"}])
def test_a_kernel_changed_since_the_fit_is_refused(change):
    X, y = make_moons(40, noise=0.3, random_state=0)
    model = SVC(gamma=1.0).fit(X[:30], y[:30]).set_params(**change)
    for call in (lambda: model.partial_fit(X[30:], y[30:]), lambda: model.forget([0]), lambda: leave_one_out(model)):
        with pytest.raises(
            ValueError, match=r"kernel was changed since the model was fitted: it has RBF.*Fit it again"
        ):
            call()
    model.set_params(kernel="rbf", gamma="scale")  # a name may stand for the number it has
    assert model.partial_fit(X[30:], y[30:]).shape_fit_ == X.shape
