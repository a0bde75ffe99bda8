"""Rows added to a regression, forgotten and left out: the model must be the one a refit gives."""

import copy
import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from test_interrupts import Countdown

import zerogap
from zerogap import SVR, Status, leave_one_out
from zerogap.estimators.incremental import GOOD_GAP, Training
from zerogap.limits import heard
from zerogap.solvers import SimpleSVM

EXACT = {"tol": 1e-11, "solver": SimpleSVM(tolerance=1e-13)}


def waves(n=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + rng.normal(scale=0.3, size=n)


def assert_is_refit(model, X, y, weight=None, atol=1e-9):
    refit = clone(model).set_params(**EXACT).fit(X, y, weight)
    scale = 1.0 + np.abs(refit.predict(X)).max()
    np.testing.assert_allclose(model.predict(X), refit.predict(X), rtol=0, atol=atol * scale)
    assert model.status_ is Status.CONVERGED
    now = model.certificate_
    assert now.gap <= GOOD_GAP * abs(now.primal) + now.rounding
    assert model.shape_fit_ == X.shape
    return refit


MODELS = [
    SVR(C=5.0, gamma=0.5),
    SVR(C=0.1, kernel="linear", epsilon=0.3),
    SVR(gamma=0.5, loss="squared_epsilon_insensitive"),
    SVR(kernel="poly", gamma=0.3, coef0=1.0, fit_intercept=False, epsilon=0.0),
]


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_batches_and_forgetting_equal_a_refit(model):
    X, y = waves()
    model, kept = clone(model), np.arange(90)
    for rows in np.array_split(kept, 4):
        model.partial_fit(X[rows], y[rows])
        assert_is_refit(model, X[: rows[-1] + 1], y[: rows[-1] + 1])
    for gone in (np.arange(0, 90, 7), np.array([0, -1]), model.support_[:20:2]):
        gone = np.unique(gone[gone < kept.size] % kept.size)
        model.forget(gone)
        kept = np.delete(kept, gone)
        assert_is_refit(model, X[kept], y[kept])


def test_the_fitted_attributes_are_those_of_the_refit():
    X, y = waves()
    model = SVR(gamma=0.5).partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    refit = SVR(gamma=0.5, tol=1e-12).fit(X, y)
    np.testing.assert_array_equal(model.support_, refit.support_)
    np.testing.assert_array_equal(model.support_vectors_, refit.support_vectors_)
    np.testing.assert_array_equal(model.n_support_, refit.n_support_)
    np.testing.assert_allclose(model.dual_coef_, refit.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, refit.intercept_, atol=1e-9)
    assert model.certificate_.dual == pytest.approx(refit.certificate_.dual, rel=1e-11)
    assert type(model.n_iter_) is type(refit.n_iter_) is int


@pytest.mark.long
def test_one_row_at_a_time_and_back():
    X, y = waves(40)
    model = SVR(C=5.0, gamma=1.0).partial_fit(X[:1], y[:1])  # one row is a model too
    values = [model.predict(X)]
    for k in range(1, 40):
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        values.append(model.predict(X))
        assert model.n_iter_ <= 25
    assert_is_refit(model, X, y)
    for k in range(39, 0, -1):
        np.testing.assert_allclose(model.predict(X), values[k], rtol=0, atol=1e-9)
        model.forget(k)
    np.testing.assert_allclose(model.predict(X), values[0], rtol=0, atol=1e-9)


def histories(count):
    """Data with ties, equal points of equal and of other targets, options and changes, drawn once and for all."""
    rng = np.random.default_rng(11)
    for _ in range(count):
        n, d = int(rng.integers(6, 28)), int(rng.integers(1, 4))
        X = rng.normal(size=(n, d)) if rng.random() < 0.5 else rng.integers(0, 3, size=(n, d)).astype(float)
        if rng.random() < 0.3:
            X = X[rng.integers(0, n // 3, size=n)]
        y = rng.normal(size=n) if rng.random() < 0.5 else rng.integers(0, 3, size=n).astype(float)
        weight = rng.choice([0.3, 1.0, 2.0, 1e-3, 1e3, 0.0], size=n) if rng.random() < 0.5 else np.ones(n)
        weight[:4] = 1.0
        options = {
            "C": float(10.0 ** rng.uniform(-5, 5)),
            "epsilon": float(rng.choice([0.0, 0.1, 0.5])),
            "kernel": str(rng.choice(["linear", "rbf", "poly"])),
            "gamma": 0.5,
            "coef0": float(rng.integers(0, 2)),
            "loss": str(rng.choice(["epsilon_insensitive", "squared_epsilon_insensitive"])),
            "fit_intercept": bool(rng.random() < 0.7),
        }
        yield X, y, weight, options, rng


@pytest.mark.parametrize("count", [8, pytest.param(150, marks=pytest.mark.long)])
def test_histories_of_many_kinds_end_where_a_fit_does(count):
    for X, y, weight, options, rng in histories(count):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # on the way all targets may be inside the tube: see below
            model, held = SVR(**options).partial_fit(X[:4], y[:4], sample_weight=weight[:4]), np.arange(4)
            for start in range(4, len(y), 4):
                rows = np.arange(start, min(start + 4, len(y)))
                weight[rows[0]] = max(weight[rows[0]], 0.3)
                model.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
                held = np.concatenate([held, rows])
                gone = rng.choice(held.size, size=int(rng.integers(0, held.size)), replace=False)
                if weight[rest := np.delete(held, gone)].any():
                    model.forget(gone)
                    held = rest
            fresh = SVR(**{**options, "tol": 1e-9}).fit(X[held], y[held], weight[held])
        a, b = model.certificate_, fresh.certificate_
        assert a.relative_gap <= model.tol or fresh.status_ is not Status.CONVERGED
        # Both optima lie between their bounds; the sums behind a bound round, each by so much.
        size = np.abs(fresh.dual_coef_).sum() ** 2 * np.abs(fresh._kernel(X[held], X[held])).max() + abs(b.dual)
        assert abs(a.dual - b.dual) <= a.gap + b.gap + 100 * np.finfo(float).eps * size


def test_equal_points_of_other_targets_are_other_points():
    X, y = np.array([[0.0], [0.0], [1.0], [1.0], [0.0]]), np.array([1.0, -1.0, 2.0, 2.0, 1.0])
    model = SVR(gamma=1.0, C=3.0).partial_fit(X[:2], y[:2]).partial_fit(X[2:], y[2:])
    assert model._training.points.rows.size == 3
    assert_is_refit(model, X, y)
    assert_is_refit(model.forget([0]), X[1:], y[1:])  # its duplicate stays
    assert model._training.points.rows.size == 3
    assert_is_refit(model.forget([3]), X[1:4], y[1:4])
    assert model._training.points.rows.size == 2


@pytest.mark.parametrize(
    "change",
    [{"C": 20.0}, {"epsilon": 0.4}, {"loss": "squared_epsilon_insensitive"}, {"fit_intercept": False}],
    ids=str,
)
def test_parameters_are_those_of_now(change):
    X, y = waves(60)
    model = SVR(gamma=0.5).partial_fit(X[:50], y[:50])
    model.set_params(**change).partial_fit(X[50:], y[50:])
    assert_is_refit(model, X, y)
    model = SVR(gamma=0.5).partial_fit(X, y).set_params(**change)
    expected = leave_one_out(SVR(gamma=0.5, **change).fit(X, y)).predictions
    np.testing.assert_allclose(leave_one_out(model).predictions, expected, atol=1e-8)
    model = SVR(gamma=0.5).partial_fit(X, y).set_params(**change)
    assert_is_refit(model.forget([]), X, y)


def test_sparse_rows_a_small_cache_and_a_stored_model(tmp_path):
    X, y = waves(80)
    wide = sp.csr_matrix(np.concatenate([X, np.zeros((80, 300))], axis=1))
    model = SVR(gamma=0.5, cache_size=0.001).fit(wide[:60], y[:60])  # a fit, and then more
    gamma = model._kernel.gamma
    model.partial_fit(wide[60:], y[60:])
    assert model._kernel.gamma == gamma
    model.save(tmp_path / "model")
    for twin in (zerogap.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        twin.forget(np.arange(5))
        np.testing.assert_allclose(
            twin.predict(wide), SVR(gamma=0.5, **EXACT).fit(X[5:], y[5:]).predict(X), rtol=0, atol=1e-9
        )
    with pytest.raises(ValueError, match="no longer holds its training rows"):
        pickle.loads(pickle.dumps(SVR().fit(X, y))).partial_fit(X, y)


def test_bad_calls_are_refused_and_leave_the_model_alone():
    X, y = waves(30)
    with pytest.raises(AttributeError, match="partial_fit"):
        SVR(kernel="precomputed").partial_fit(X @ X.T, y)
    with pytest.raises(NotFittedError):
        SVR().forget([0])
    model = SVR(gamma=0.5).partial_fit(X, y)
    before = model.predict(X)
    for call, message in (
        (lambda: model.partial_fit(X[:, :1], y), "2 features"),
        (lambda: model.partial_fit(X, np.full(30, np.nan)), "NaN"),
        (lambda: model.forget(30), "rows out of 0 to 29; got 30"),
        (lambda: model.forget(np.arange(30)), "no point is left"),
        (lambda: clone(model).partial_fit(X, y).set_params(epsilon=-1.0).forget([0]), "epsilon"),
        (lambda: clone(model).partial_fit(X, y).set_params(gamma=2.0).forget([0]), "kernel was changed"),
        (lambda: clone(model).set_params(loss="huber").partial_fit(X, y), "loss"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.covering
@pytest.mark.parametrize(
    "asks", [1, 4, pytest.param(2, marks=pytest.mark.long), pytest.param(6, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("step", ["add", "forget"])
def test_a_limit_anywhere_in_a_change_leaves_a_sound_model_that_goes_on(step, asks):
    X, y = waves()
    model = SVR(C=50.0, gamma=1.0).partial_fit(X[:50], y[:50])
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, asks)
        with pytest.warns(ConvergenceWarning, match="time limit"):
            model.partial_fit(X[50:], y[50:]) if step == "add" else model.forget(np.arange(20))
    X, y = (X, y) if step == "add" else (X[20:50], y[20:50])
    assert model.status_ is Status.MAX_TIME
    assert model.shape_fit_ == X.shape
    assert np.abs(model.dual_coef_).max() <= 50.0
    assert abs(model.dual_coef_.sum()) <= 1e-12 * np.abs(model.dual_coef_).sum()
    model.forget([])  # goes on
    assert_is_refit(model, X, y, atol=1e-8)


def test_ctrl_c_during_a_change(monkeypatch):
    X, y = waves()
    model, add = SVR(C=50.0, gamma=1.0).partial_fit(X[:50], y[:50]), Training.add

    def interrupted(*arguments):
        signal.raise_signal(signal.SIGINT)
        return add(*arguments)

    monkeypatch.setattr(Training, "add", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model.partial_fit(X[50:], y[50:])
    assert model.status_ is Status.INTERRUPTED
    monkeypatch.undo()
    heard()
    assert_is_refit(model.forget([]), X, y, atol=1e-8)


# Leave-one-out.


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_every_row_is_left_out_as_if_never_seen(model):
    X, y = waves(40)
    X, y = np.vstack([X, X[:6]]), np.append(y, y[:6])  # some twice
    weight = np.where(np.arange(46) % 5 == 2, 0.0, np.where(np.arange(46) % 3, 1.0, 2.0))
    model = clone(model).fit(X, y, weight)
    result = leave_one_out(model)
    for i in range(0, 46, 5):
        rest = np.arange(46) != i
        refit = clone(model).set_params(**EXACT).fit(X[rest], y[rest], weight[rest])
        assert result.predictions[i] == pytest.approx(refit.predict(X[[i]])[0], abs=1e-8)
    np.testing.assert_array_equal(result.decision_values, result.predictions)
    assert result.error == np.abs(result.predictions - y).mean()
    kernel = clone(model).set_params(kernel="precomputed").fit(model._kernel(X, X), y, weight)
    np.testing.assert_allclose(leave_one_out(kernel).predictions, result.predictions, atol=1e-7)


def test_a_bias_with_an_interval_to_itself_is_its_middle():
    """Without the last row every target is inside the tube, and the bias is free."""
    X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0.0, 0.1, 0.05, 7.0])
    result = leave_one_out(SVR(gamma=1.0, epsilon=0.5).fit(X, y))
    assert result.predictions[-1] == pytest.approx(
        SVR(gamma=1.0, epsilon=0.5, **EXACT).fit(X[:3], y[:3]).predict(X[3:])[0]
    )
    two = leave_one_out(
        SVR(kernel="linear", epsilon=0.25, C=10.0).fit([[3.0], [2.0]], [0.0, 2.0])
    )  # one row is in its tube
    np.testing.assert_allclose(two.predictions, [2.0, 0.0], atol=1e-12)
    flat = leave_one_out(
        SVR(gamma=1.0, epsilon=9.0).fit(X, y, np.array([1.0, 1.0, 1.0, 0.0]))
    )  # nobody supports anything
    np.testing.assert_allclose(flat.predictions[[0, 3]], [0.075, 0.05], atol=1e-12)
    assert np.isnan(leave_one_out(SVR(gamma=1.0).fit(X[:1], y[:1])).predictions).all()  # no row is left


def test_at_a_limit_the_rows_done_are_returned():
    X, y = waves(40)
    model = SVR(C=5.0, gamma=0.5).partial_fit(X, y)
    whole = leave_one_out(model)
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, 40)
        with pytest.warns(ConvergenceWarning, match="of 40 rows"):
            result = leave_one_out(model)
    done = ~np.isnan(result.predictions)
    assert 0 < done.sum() < 40
    np.testing.assert_allclose(result.predictions[done], whole.predictions[done], atol=1e-9)
    assert result.error == pytest.approx(np.abs(whole.predictions - y)[done].mean())
