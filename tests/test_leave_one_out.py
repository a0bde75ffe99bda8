import pickle
import warnings
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from test_incremental import MODELS, cancer
from test_properties import awkward_points, slow

import zerogap
from zerogap import SVC, Status, SVCPath, leave_one_out
from zerogap.estimators.loo import LeaveOneOut
from zerogap.free_system import FreeSystem
from zerogap.solvers import SimpleSVM

EXACT = SimpleSVM(tolerance=1e-13)


def refits(model, X, y, rows, weight=None):
    """Decision value of each row by a fresh fit without it, to the last digits; equal rows have the same."""
    values, weight = np.empty(len(rows)), np.ones(len(y)) if weight is None else weight
    first = {}
    for k, i in enumerate(rows):
        twin = first.setdefault((X[i].tobytes(), y[i], weight[i]), k)
        if twin != k:
            values[k] = values[twin]
            continue
        others = np.arange(len(y)) != i
        if len(np.unique(y[others & (weight > 0)])) < 2:
            values[k] = -np.inf if y[i] == model.classes_[1] else np.inf
            continue
        # A gap of 1e-11 alone would leave decision values off by its root: no violator is to be let pass.
        exact = clone(model).set_params(kernel=model._kernel, gamma="scale", coef0=0.0, tol=1e-11, solver=EXACT)
        values[k] = exact.fit(X[others], y[others], weight[others]).decision_function(X[[i]])[0]
    return values


def assert_exact(model, X, y, rows=None, weight=None):
    result = leave_one_out(model)
    rows = np.arange(len(y)) if rows is None else rows
    expected = refits(model, X, y, rows, weight)
    scale = 1.0 + np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
    np.testing.assert_allclose(result.decision_values[rows], expected, rtol=0, atol=1e-9 * scale)
    np.testing.assert_array_equal(result.predictions, model.classes_[(result.decision_values > 0).astype(int)])
    assert result.error == np.mean(result.predictions != y)
    return result


@pytest.mark.long
@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_every_row_of_a_small_set_is_as_if_never_seen(model):
    X, y = cancer(50)
    assert_exact(clone(model).fit(X, y), X, y)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["hinge", pytest.param("squared_hinge", marks=pytest.mark.long)])
def test_breast_cancer(loss):
    X, y = cancer()
    model = SVC(loss=loss).fit(X, y)
    some = np.concatenate([model.support_[::12], np.setdiff1d(np.arange(len(y)), model.support_)[::80]])
    result = assert_exact(model, X, y, some)
    assert 0.015 < result.error < 0.035
    assert model.score(X, y) > 1 - result.error
    assert "LeaveOneOut(error" in repr(result)
    assert [field.name for field in fields(result)] == ["decision_values", "predictions", "error", "status"]


def test_it_costs_few_kernel_values_and_leaves_the_model_alone():
    X, y = cancer()
    model = SVC(tol=1e-8).fit(X, y)
    before = model.decision_function(X)
    leave_one_out(model)
    problem, _ = model._training.exact[0]
    assert problem.gram.evaluations <= 3 * model.support_.size * len(y)  # refits: about that much each
    np.testing.assert_array_equal(model.decision_function(X), before)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", ["rbf", pytest.param("linear", marks=pytest.mark.long)])
def test_of_repeated_rows_one_is_left_out(loss, kernel):
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(50, 2)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=50) > 2, 1, 0)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=50)
    for w in (None, weight):
        model = SVC(C=3.0, kernel=kernel, gamma=0.5, loss=loss).fit(X, y, w)
        assert_exact(model, X, y, weight=w)


kernels = st.sampled_from(["rbf", "linear"])


models = (awkward_points(scales=(1.0,)), kernels, st.sampled_from(["hinge", "squared_hinge"]), st.booleans())


@pytest.mark.long
@given(*models)
@settings(slow, max_examples=15)
def test_exact_on_awkward_data(data, kernel, loss, fit_intercept):
    assert_exact_on(data, kernel, loss, fit_intercept)


@pytest.mark.long
@given(*models)
@slow
def test_exact_on_more_awkward_data(data, kernel, loss, fit_intercept):
    assert_exact_on(data, kernel, loss, fit_intercept)


def assert_exact_on(data, kernel, loss, fit_intercept):
    X, y, weight = data
    assume(len(np.unique(y[weight > 0])) == 2)
    model = SVC(C=2.0, kernel=kernel, gamma=0.7, loss=loss, fit_intercept=fit_intercept).fit(X, y, weight)
    assert_exact(model, X, y, weight=weight)


def test_a_copy_left_out_may_leave_the_bias_open():
    """With a copy less, the one coefficient inside its box is at its cap."""
    X, y, weight = np.zeros((3, 1)), np.array([1.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.5])
    result = assert_exact(SVC(C=2.0, gamma=0.7).fit(X, y, weight), X, y, weight=weight)
    assert result.decision_values[2] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("count", [8, pytest.param(40, marks=pytest.mark.long)])
def test_a_bias_with_an_interval_to_itself_is_its_middle(count):
    """All coefficients at their caps but for rounding: any of the rows may end the interval."""
    rng = np.random.default_rng(113)
    for _ in range(count):
        X = rng.integers(0, 4, size=(9, 2)).astype(float)
        y = np.concatenate([[0, 1], rng.integers(0, 2, size=7)])
        assert_exact(SVC(kernel="linear", C=1.0).fit(X, y), X, y)


def test_the_row_that_is_left_out_does_not_end_the_interval():
    """Without the last row all coefficients are capped, 4 C = 0.04 is the slope, and the bias is free from -1 to 0.88."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [20.0]]), np.array([0, 0, 1, 1, 1])
    result = assert_exact(SVC(kernel="linear", C=0.01).fit(X, y), X, y)
    assert result.decision_values[-1] == pytest.approx(0.04 * 20 - 0.06, abs=1e-12)


def test_the_only_row_of_a_class_leaves_nobody_to_ask():
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array(["a", "a", "b"])
    result = assert_exact(SVC(gamma=1.0).fit(X, y), X, y)
    assert result.decision_values[2] == -np.inf
    assert result.predictions[2] == "a"


def test_sparse_and_precomputed_and_grown_models():
    X, y = cancer(80)
    X = np.where(np.abs(X) < 0.7, 0.0, X)
    dense = SVC(gamma=0.05).fit(X, y)
    expected = leave_one_out(dense).decision_values
    sparse = SVC(gamma=0.05, cache_size=0.001).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(leave_one_out(sparse).decision_values, expected, atol=1e-9)
    precomputed = SVC(kernel="precomputed").fit(dense._kernel(X, X), y)
    np.testing.assert_allclose(leave_one_out(precomputed).decision_values, expected, atol=1e-9)
    grown = SVC(gamma=0.05).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    np.testing.assert_allclose(leave_one_out(grown).decision_values, expected, atol=1e-9)
    np.testing.assert_allclose(leave_one_out(pickle.loads(pickle.dumps(grown))).decision_values, expected, atol=1e-9)


def test_what_it_cannot_do_it_says():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        leave_one_out(SVC())
    with pytest.raises(TypeError, match=r"zerogap.SVC or zerogap.SVR; got zerogap's SVCPath"):
        zerogap.leave_one_out(SVCPath().fit(X[:100], y[:100]))
    with pytest.raises(ValueError, match="no longer holds its training rows"):
        leave_one_out(pickle.loads(pickle.dumps(SVC().fit(X[:100], y[:100]))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        none = SVC(C=np.inf, kernel="linear").fit(X[50:, :1], y[50:])
    with pytest.raises(ValueError, match="finite C"):
        leave_one_out(none)


@pytest.mark.long
def test_many_times_less_work_than_refits(monkeypatch):
    """The benchmark measures it; here only that it is no loop of refits: in points that join a factor."""
    X, y = cancer()
    model, insert, joined = SVC().fit(X, y), FreeSystem.insert, []
    monkeypatch.setattr(FreeSystem, "insert", lambda *arguments: joined.append(1) or insert(*arguments))
    monkeypatch.setattr("zerogap.estimators.loo.solve", lambda *_, **__: pytest.fail("a refit"))
    leave_one_out(model)
    ours, some = len(joined), model.support_[::10]
    joined.clear()
    exact = SVC(gamma=model._kernel.gamma, tol=1e-10, solver="simple-svm")
    for i in some:
        exact.fit(np.delete(X, i, axis=0), np.delete(y, i))
    refits = len(joined) / some.size * model.support_.size  # rows that support nothing need none
    assert 0 < ours < refits / 5


@pytest.mark.parametrize(
    "change",
    [
        {"C": 5.0},
        {"loss": "squared_hinge", "C": 5.0},
        {"fit_intercept": False},
        {"class_weight": {0: 3.0}},
        {"class_weight": {1: 3.0}},
    ],
    ids=str,
)
def test_parameters_are_those_of_now(change):
    """Each shows in another part of the problem: the box, the ridge, the constraint."""
    X, y = cancer(25)
    for start in ({}, {"loss": "squared_hinge"}):
        model = SVC(gamma=0.05, **start).fit(X, y)
        leave_one_out(model)
        model.set_params(**change)
        expected = leave_one_out(SVC(gamma=0.05, **{**start, **change}).fit(X, y)).decision_values
        np.testing.assert_allclose(leave_one_out(model).decision_values, expected, atol=1e-9)


def test_how_many_rows_were_done_is_told():
    part = LeaveOneOut(np.array([1.0, np.nan, -2.0, np.nan]), np.array([1, None, 0, None]), 0.5, Status.MAX_TIME)
    assert repr(part) == "LeaveOneOut(error 0.5 over 2 rows of 4)"


def test_an_outlier_is_left_out_like_any_other():
    """Its kernel value is 1e20, those of the others 1e5: they are not dependent beside it."""
    X = 293.0 * np.array([[0, 1, 0, 0], [0, 1, 1, 0], [3.56e7, 1, 0, 1], [1, 0, 0, 1], [1, 1, 1, 0]])
    y = np.array([-1, 1, -1, -1, -1])
    model = SVC(C=0.106, kernel="linear", tol=1e-7).fit(X, y)
    found = leave_one_out(model).decision_values
    for row in range(5):
        rest = np.arange(5) != row
        if len(set(y[rest])) > 1:
            expected = SVC(C=0.106, kernel="linear", tol=1e-12).fit(X[rest], y[rest]).decision_function(X[[row]])
            assert found[row] == pytest.approx(expected[0], rel=1e-4)
