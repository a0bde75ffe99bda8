"""Rows added, forgotten and left out of a model of several classes: every pair of them is a problem of its own."""

import copy
import math
import pickle
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from test_interrupts import Countdown

import zerogap
from zerogap import SVC, SVR, Status, SVCPath, leave_one_out
from zerogap.active_set import ActiveSet
from zerogap.estimators.incremental import GOOD_GAP, Training
from zerogap.gram import Gram
from zerogap.limits import heard, limits

EXACT = {"tol": 1e-11}


def iris(n=150):
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)[:n]
    return X[order], y[order]


def allowed(refit, X):
    """How far the decision values of each pair can be from the exact ones.

    1/2 |f - f*|² is at most the gap, so that f(x) is off by sqrt(2 gap k(x, x)) at most, and the bias by what a point on the
    margin is; models of both sides of a comparison are off.
    """
    gaps = np.array([now.gap + now.rounding for now in refit.certificate_])
    return 4.0 * np.sqrt(2.0 * gaps * refit._kernel.diagonal(X).max()) + 1e-9


def assert_is_refit(model, X, y, weight=None):
    refit = clone(model).set_params(**EXACT, n_jobs=None).fit(X, y, weight)
    off = np.abs(model._pair_decisions(X) - refit._pair_decisions(X)).max(axis=0)
    assert (allowed(refit, X) < 1e-3).all()
    assert (off <= allowed(refit, X)).all()
    assert model.status_ == [Status.CONVERGED] * len(model.status_)
    assert all(now.gap <= GOOD_GAP * abs(now.primal) + now.rounding for now in model.certificate_)
    assert model.shape_fit_ == X.shape


MODELS = [
    SVC(C=5.0, gamma=0.5),
    SVC(C=0.3, kernel="linear", class_weight={0: 3.0, 2: 0.5}),
    SVC(gamma=0.5, loss="squared_hinge", fit_intercept=False),
    SVC(C=np.inf, gamma=2.0),
]


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_batches_and_forgetting_equal_a_refit(model):
    X, y = iris(110)
    model, kept = clone(model), np.arange(110)
    for rows in np.array_split(kept, 4):
        model.partial_fit(X[rows], y[rows])
    assert_is_refit(model, X, y)
    for gone in (np.arange(0, 110, 7), model.support_[:20:2]):
        gone = np.unique(gone[gone < kept.size])
        model.forget(gone)
        kept = np.delete(kept, gone)
    assert_is_refit(model, X[kept], y[kept])


def test_the_fitted_attributes_are_those_of_the_refit():
    X, y = iris()
    model = SVC(gamma=0.5).partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    refit = SVC(gamma=0.5, tol=1e-12).fit(X, y)
    np.testing.assert_array_equal(model.support_, refit.support_)
    np.testing.assert_array_equal(model.n_support_, refit.n_support_)
    np.testing.assert_allclose(model.dual_coef_, refit.dual_coef_, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, refit.intercept_, atol=1e-8)
    for ours, theirs in zip(model.certificate_, refit.certificate_, strict=True):
        assert ours.dual == pytest.approx(theirs.dual, rel=1e-11)
    np.testing.assert_array_equal(model.predict(X), refit.predict(X))


def histories(count):
    """Data of three to five classes with ties and duplicates, options and changes, drawn once and for all."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        n, d, k = int(rng.integers(8, 26)), int(rng.integers(1, 4)), int(rng.integers(3, 6))
        X = rng.normal(size=(n, d)) if rng.random() < 0.5 else rng.integers(0, 3, size=(n, d)).astype(float)
        if rng.random() < 0.3:
            X = X[rng.integers(0, n // 3, size=n)]
        y, weight = rng.integers(0, k, size=n), rng.choice([0.3, 1.0, 2.0, 1e-3, 1e3, 0.0], size=n)
        y[:k], weight[:k] = np.arange(k), 1.0
        options = {
            "C": float(10.0 ** rng.uniform(-6, 6)),
            "kernel": str(rng.choice(["linear", "rbf", "poly"])),
            "gamma": 0.5,
            "coef0": float(rng.integers(0, 2)),
            "loss": str(rng.choice(["hinge", "squared_hinge"])),
            "fit_intercept": bool(rng.random() < 0.7),
            "class_weight": None if rng.random() < 0.7 else {0: 0.3, 1: 1.7},
            "n_jobs": None if rng.random() < 0.7 else 2,
        }
        yield X, y, weight if rng.random() < 0.5 else np.ones(n), options, rng


@pytest.mark.parametrize("count", [4, pytest.param(150, marks=pytest.mark.long)])
def test_histories_of_many_kinds_end_where_a_fit_does(count):
    """The first call has one point a class; the last that is left of one may be all that stays."""
    for X, y, weight, options, rng in histories(count):
        k = y.max() + 1
        model, held = SVC(**options).partial_fit(X[:k], y[:k], sample_weight=weight[:k]), np.arange(k)
        for start in range(k, len(y), 4):
            rows = np.arange(start, min(start + 4, len(y)))
            weight[rows[0]] = max(weight[rows[0]], 0.3)
            model.partial_fit(X[rows], y[rows], sample_weight=weight[rows])
            held = np.concatenate([held, rows])
            gone = rng.choice(held.size, size=int(rng.integers(0, held.size)), replace=False)
            rest = np.delete(held, gone)
            if all(weight[rest][y[rest] == label].any() for label in range(k)):
                model.forget(gone)
                held = rest
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # whatever gap it ends with counts
            fresh = SVC(**{**options, "tol": 1e-9, "n_jobs": None}).fit(X[held], y[held], weight[held])
        K = np.abs(fresh._kernel(X[held], X[held])).max()
        assert model.status_ == [Status.CONVERGED] * len(model.status_)
        for p, (a, b) in enumerate(zip(model.certificate_, fresh.certificate_, strict=True)):
            # Both optima lie between their bounds; the sums behind a bound round, each by so much.
            size = np.abs(fresh._pair_coefficients()[p]).sum() ** 2 * K + abs(b.dual)
            assert abs(a.dual - b.dual) <= a.gap + b.gap + 100 * np.finfo(float).eps * size


def test_only_the_pairs_change_whose_classes_get_or_lose_rows():
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    model = SVC(gamma=0.05).partial_fit(X, y)
    pairs = [(a, b) for a in range(10) for b in range(a + 1, 10)]
    for change in (
        lambda: model.partial_fit(X[y == 3][:1] + 0.1, [3]),
        lambda: model.forget(np.flatnonzero(y == 3)[:2]),
    ):
        before = list(model._training.exact)
        traces = model.trace_
        change()
        for k, pair in enumerate(pairs):
            assert (model._training.exact[k] is before[k]) == (3 not in pair)
            assert (model.trace_[k] is traces[k]) == (3 not in pair)
        assert all(model.n_iter_[k] == 0 for k, pair in enumerate(pairs) if 3 not in pair)
        # At most the rows of points that enter, in nine pairs of sixty points.
        assert model.kernel_evaluations_ <= (model.n_iter_.sum() + 9) * 64 * 4


def test_parameters_that_change_are_those_of_every_pair():
    X, y = iris(90)
    model = SVC(gamma=0.5).partial_fit(X[:80], y[:80])
    row = np.flatnonzero(y == 0)[0]
    model.set_params(C=20.0).partial_fit(X[80:], y[80:])
    assert_is_refit(model, X, y)
    model.set_params(loss="squared_hinge", fit_intercept=False).forget(row)
    X, y = np.delete(X, row, axis=0), np.delete(y, row)
    assert_is_refit(model, X, y)
    model.set_params(tol=1e-30)  # nobody can prove that
    with pytest.warns(ConvergenceWarning, match="in 3 of 3 pairs"):
        model.forget([])
    assert Status.CONVERGED not in model.status_
    model.set_params(tol=1e-4).forget([])
    assert model.status_ == [Status.CONVERGED] * 3


def test_kernel_values_of_the_whole_change_are_counted(monkeypatch):
    """Of those, too, that are computed while the weights of what is forgotten go to zero."""
    X, y = iris()
    for labels in (y, y % 2):
        model = SVC(C=0.5, gamma=0.5).fit(X, labels).forget(0)
        counted, count = [], Gram._count

        def counting(self, values, count=count, counted=counted):
            counted.append(values)
            count(self, values)

        monkeypatch.setattr(Gram, "_count", counting)
        model.forget(model.support_[:30])
        monkeypatch.undo()
        assert model.kernel_evaluations_ == sum(counted) > 0


def test_the_first_call_computes_no_kernel_value_twice():
    X, y = iris()
    assert SVC().partial_fit(X, y).kernel_evaluations_ == SVC().fit(X, y).kernel_evaluations_


def test_a_fit_goes_on_with_one_matrix_for_all_pairs():
    X, y = iris()
    model = SVC(gamma=0.5).fit(X[:140], y[:140])
    model.partial_fit(X[140:], y[140:])
    assert (
        model.kernel_evaluations_ <= 140 * 141 / 2 + 12 * 128 * 2 + 10 * 140 * 6
    )  # squares on the diagonal count whole
    assert_is_refit(model, X, y)


@pytest.mark.parametrize(
    "form", [np.asarray, pytest.param(sp.csr_matrix, marks=pytest.mark.long)], ids=["dense", "sparse"]
)
def test_a_small_cache_is_shared_by_the_pairs(form):
    X, y = iris()
    X = np.concatenate([X, np.zeros((150, 300))], axis=1)  # too wide for sparse rows to be made dense
    model = SVC(gamma=0.5, cache_size=0.2).partial_fit(form(X[:130]), y[:130]).partial_fit(form(X[130:]), y[130:])
    rows = [problem.gram.capacity * problem.n for problem, _ in model._training.exact]
    assert sum(rows) * 8 <= 0.2e6 + 3 * 8 * 150
    assert any(problem.gram.capacity < problem.n for problem, _ in model._training.exact)
    model.set_params(cache_size=1000)
    assert_is_refit(model, form(X), y)
    leave_one_out(model.set_params(cache_size=0.2))
    model.forget(np.arange(30))
    assert_is_refit(model, form(X[30:]), y[30:])


def test_a_pair_that_cannot_be_separated_is_said_and_survived():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [8.0], [9.0]]), np.array([0, 0, 1, 1, 2, 2])
    model = SVC(C=np.inf, kernel="linear").partial_fit(X, y)
    with pytest.warns(ConvergenceWarning, match="in 1 of 3 pairs.*finite C"):
        model.partial_fit([[2.5]], [0])
    assert model.status_ == [Status.UNBOUNDED, Status.CONVERGED, Status.CONVERGED]
    with pytest.raises(ValueError, match="finite C"):
        leave_one_out(model)
    with pytest.warns(ConvergenceWarning, match="in 1 of 3 pairs"):
        model.partial_fit([[10.0]], [2])  # the others go on
    assert model.status_ == [Status.UNBOUNDED, Status.CONVERGED, Status.CONVERGED]
    model.forget(6)
    assert_is_refit(model, np.vstack([X, [[10.0]]]), np.append(y, 2))


def test_the_last_row_of_a_class_stays():
    X, y = iris(60)
    model = SVC(gamma=0.5).partial_fit(X, y)
    ones = np.flatnonzero(y == 1)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="no point of class 1"):
        model.forget(ones)
    np.testing.assert_array_equal(model.decision_function(X), before)
    kept = np.delete(np.arange(60), ones[1:])
    assert_is_refit(model.forget(ones[1:]), X[kept], y[kept])


def test_stored_and_copied_models_go_on(tmp_path):
    X, y = iris(90)
    grown = SVC(gamma=0.5, warm_start=True).partial_fit(X[:60], y[:60])
    grown.save(tmp_path / "model")
    for twin in (zerogap.load(tmp_path / "model"), pickle.loads(pickle.dumps(grown)), copy.deepcopy(grown)):
        twin.partial_fit(X[60:], y[60:]).forget([0, 1])
        assert_is_refit(twin, X[2:], y[2:])
        assert twin._last_beta.shape == (3, 88)
    assert grown.shape_fit_[0] == 60
    assert not hasattr(clone(grown), "classes_")


# Limits.


def caught(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in said]


def assert_sound(model, X, y):
    """Every coefficient in its box, sums of zero, and each pair's certificate that of its coefficients."""
    rows = np.zeros((len(model.certificate_), len(X)))
    rows[:, model.support_] = model._pair_coefficients()
    for certificate, beta, (a, b) in zip(model.certificate_, rows, [(0, 1), (0, 2), (1, 2)], strict=True):
        sign = np.where(y == a, 1.0, np.where(y == b, -1.0, 0.0))
        alpha = sign * beta
        assert (beta[sign == 0] == 0).all()
        assert alpha.min() >= 0
        assert alpha.max() <= model.C * (1 + 1e-15)
        assert abs(beta.sum()) <= 1e-12 * np.abs(beta).sum()
        K = model._kernel(X, X)
        assert certificate.dual == pytest.approx(alpha.sum() - 0.5 * beta @ K @ beta, rel=1e-9, abs=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("asks", [1, 30, *(pytest.param(asks, marks=pytest.mark.long) for asks in (4, 8, 16))])
@pytest.mark.parametrize("step", ["add", "forget"])
def test_a_limit_anywhere_in_a_change_leaves_a_sound_model_that_goes_on(step, asks):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 3, size=120)
    model = SVC(C=50.0, gamma=1.0).partial_fit(X[:60], y[:60])
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, asks)
        said = caught(lambda: model.partial_fit(X[60:], y[60:]) if step == "add" else model.forget(np.arange(30)))
    X, y = (X, y) if step == "add" else (X[30:60], y[30:60])
    assert Status.MAX_TIME in model.status_
    assert "time limit" in said[0]
    assert model.shape_fit_ == X.shape
    assert_sound(model, X, y)
    model.forget([])  # goes on
    assert_is_refit(model, X, y)


def test_max_time_is_that_of_each_pair():
    X, y = iris()
    model = SVC(gamma=0.5, max_time=1e-9)
    said = caught(lambda: model.partial_fit(X[:100], y[:100]))
    assert "in 3 of 3 pairs" in said[0]
    assert len(said) == 1
    said = caught(lambda: model.partial_fit(X[100:], y[100:]))
    assert model.status_ == [Status.MAX_TIME] * 3
    assert "max_time=1e-09" in said[0]
    assert_sound(model, X, y)
    model.set_params(max_time=None).forget([])
    assert_is_refit(model, X, y)


def test_ctrl_c_during_a_change(monkeypatch):
    X, y = iris()
    model, follow, pairs = SVC(gamma=0.5).partial_fit(X[:100], y[:100]), Training._follow, []

    def interrupted(self, model, k, *rest):
        if k == 1:
            signal.raise_signal(signal.SIGINT)
        pairs.append(k)
        return follow(self, model, k, *rest)

    monkeypatch.setattr(Training, "_follow", interrupted)
    said = caught(lambda: model.partial_fit(X[100:], y[100:]))
    assert pairs == [0, 1, 2]
    assert model.status_ == [Status.CONVERGED, Status.INTERRUPTED, Status.INTERRUPTED]
    assert "interrupted" in said[0]
    assert_sound(model, X, y)
    monkeypatch.undo()
    heard()
    model.forget([])
    assert_is_refit(model, X, y)


@pytest.mark.parametrize("step", ["add", "forget"])
def test_what_breaks_off_half_way_leaves_the_model_as_it_was(step, monkeypatch):
    """A second Ctrl-C, or no memory: some pairs have moved by then, and are not the model's."""
    X, y = iris(100)
    model = SVC(gamma=0.5).partial_fit(X[:80], y[:80])
    before, adapt, calls = model.decision_function(X), ActiveSet.adapt, []

    def broken(self, *rest):
        calls.append(1)
        count = adapt(self, *rest)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return count

    change = (lambda: model.partial_fit(X[80:], y[80:])) if step == "add" else (lambda: model.forget(np.arange(9)))
    monkeypatch.setattr(ActiveSet, "adapt", broken)
    with pytest.raises(KeyboardInterrupt):
        change()
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model._training.rows.y.size == 80
    twin = pickle.loads(pickle.dumps(model))
    assert_is_refit(model.forget([]), X[:80], y[:80])  # and nothing that has moved is taken for its solution
    model = twin
    change()
    assert_is_refit(model, *((X, y) if step == "add" else (X[9:80], y[9:80])))


def test_a_point_too_far_for_the_kernel_is_refused_and_leaves_the_model_alone():
    X, y = iris(90)
    model = SVC(kernel="poly", gamma=1.0, coef0=1.0).partial_fit(X[:80], y[:80])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="too large for float64"):
        model.partial_fit([[1e200] * 4, X[80]], [0, y[80]])
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.partial_fit(X[80:], y[80:])
    assert model.shape_fit_[0] == 90
    assert model.status_ == [Status.CONVERGED] * 3


def test_only_the_last_word_is_a_warning():
    """The fit that comes first is short of its tolerance; exchanges get there."""
    X, y = iris()
    for labels in (y, y == 1):
        model = SVC(gamma=0.5, C=100.0, solver="smo-mvp", max_iter=1)
        with pytest.warns(ConvergenceWarning):
            clone(model).fit(X, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(X, labels)
        assert model.duality_gap_ <= 1e-9


# Duplicates.


def test_duplicates_are_the_fewest_support_vectors():
    """A point that comes five times is one row of every pair, and the same one, unless it is at its cap."""
    rng = np.random.default_rng(0)
    base = rng.normal(size=(24, 2))
    X, y = np.repeat(base, 5, axis=0), np.repeat(np.arange(24) % 3, 5)
    order = rng.permutation(120)
    X, y = X[order], y[order]
    fitted = SVC(C=100.0, gamma=1.0, tol=1e-10).fit(X, y)
    half = SVC(C=100.0, gamma=1.0).partial_fit(X[:70], y[:70])
    models = {"fit": fitted, "partial_fit": half.partial_fit(X[70:], y[70:])}
    more = SVC(C=100.0, gamma=1.0).partial_fit(np.vstack([X, X[:40]]), np.append(y, y[:40]))
    models["forget"] = more.forget(np.arange(120, 160))
    single = SVC(C=500.0, gamma=1.0, tol=1e-10).fit(base, np.arange(24) % 3)
    for model in models.values():
        alpha, caps = np.abs(model._pair_coefficients()), 100.0
        needed = np.ceil(np.abs(single._pair_coefficients()) / caps - 1e-9).max(axis=0).sum()  # rows a point takes
        assert model.support_.size == needed
        assert alpha.max() <= caps
    target = np.sin(base[:, 0]) + rng.normal(scale=0.3, size=24)
    wide, few = np.repeat(target, 5)[order], SVR(C=500.0, gamma=1.0, epsilon=0.01, tol=1e-10).fit(base, target)
    needed = np.ceil(np.abs(few.dual_coef_) / 100.0 - 1e-9).sum()
    grown = SVR(C=100.0, gamma=1.0, epsilon=0.01).partial_fit(X[:70], wide[:70]).partial_fit(X[70:], wide[70:])
    assert grown.support_.size == needed
    assert SVR(C=100.0, gamma=1.0, epsilon=0.01, tol=1e-10).fit(X, wide).support_.size == needed


def test_duplicates_are_the_fewest_support_vectors_of_a_path_too():
    rng = np.random.default_rng(1)
    base, labels = rng.normal(size=(30, 2)), np.arange(30) % 2
    X, y = np.repeat(base, 4, axis=0), np.repeat(labels, 4)
    path = SVCPath(gamma=1.0, C_max=200.0).fit(X, y)
    for C in (1.0, 30.0, 200.0):
        model, fitted = path.at(C), SVC(C=C, gamma=1.0, tol=1e-10).fit(X, y)
        single = np.abs(SVC(C=4 * C, gamma=1.0, tol=1e-10).fit(base, labels).dual_coef_)
        assert model.support_.size == fitted.support_.size == np.ceil(single / C - 1e-9).sum()
        np.testing.assert_allclose(model.decision_function(X), path.decision_function(X, C), atol=1e-9)


# Leave-one-out.


def refit_without(model, X, y, i, weight):
    rest = np.arange(len(y)) != i
    return clone(model).set_params(decision_function_shape="ovo", **EXACT).fit(X[rest], y[rest], weight[rest])


def assert_left_out(model, X, y, weight=None, rows=None):
    """Compare with refits; where they are undecided between two classes, so may be the vote."""
    result = leave_one_out(model)
    ovo = leave_one_out(model.set_params(decision_function_shape="ovo")).decision_values
    model.set_params(decision_function_shape="ovr")
    weight = np.ones(len(y)) if weight is None else weight
    for i in np.arange(len(y)) if rows is None else rows:
        refit = refit_without(model, X, y, i, weight)
        values = refit.decision_function(X[i : i + 1])
        off = allowed(refit, X)
        assert (off < 1e-3).all()
        assert (np.abs(ovo[i] - values[0]) <= off).all()
        if (np.abs(values[0]) > off).all():
            assert result.predictions[i] == refit.predict(X[i : i + 1])[0]
            refit.set_params(decision_function_shape="ovr")
            own = refit.decision_function(X[i : i + 1])[0]  # a sum of decision values, a third of it or less
            np.testing.assert_allclose(result.decision_values[i], own, rtol=0, atol=off.sum())
    assert result.decision_values.shape == (len(y), len(model.classes_))
    assert result.error == np.mean(result.predictions != y)
    return result


@pytest.mark.parametrize(
    "model", [pytest.param(m, marks=[pytest.mark.long] * (k % 2), id=str(m)) for k, m in enumerate(MODELS)]
)
def test_every_row_is_left_out_as_if_never_seen(model):
    X, y = iris(60)
    result = assert_left_out(clone(model).fit(X, y), X, y, rows=np.arange(0, 60, 3))
    assert result.status is Status.CONVERGED
    assert repr(result) == f"LeaveOneOut(error {result.error:.6g} over 60 rows)"


@pytest.mark.parametrize("loss", ["hinge", pytest.param("squared_hinge", marks=pytest.mark.long)])
def test_of_repeated_and_weightless_rows_one_is_left_out(loss):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 3, size=(36, 2)).astype(float), rng.integers(0, 4, size=36)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=36)
    weight[:8], y[:8] = 1.0, np.arange(8) % 4
    model = SVC(C=3.0, gamma=0.5, loss=loss).fit(X, y, weight)
    assert_left_out(model, X, y, weight, rows=np.arange(0, 36, 2))


def test_the_only_row_of_a_class_leaves_a_model_of_the_others():
    X, y = iris(60)
    kept = np.concatenate([np.flatnonzero(y != 1), np.flatnonzero(y == 1)[:1]])
    X, y = np.vstack([X[kept], X[:5] + 5.0]), np.append(np.array(list("abc"))[y[kept]], ["d"] * 5)
    model = SVC(gamma=0.5).fit(X, y)
    row = len(kept) - 1
    assert y[row] == "b"
    refit = SVC(gamma=0.5, **EXACT).fit(np.delete(X, row, axis=0), np.delete(y, row))
    result = leave_one_out(model)
    assert result.predictions[row] == refit.predict(X[[row]])[0]
    assert result.decision_values[row, 1] == -np.inf
    own = refit.decision_function(X[[row]])[0]
    np.testing.assert_allclose(np.delete(result.decision_values[row], 1), own, atol=allowed(refit, X).sum())
    assert np.isfinite(np.delete(result.decision_values, row, axis=0)).all()
    pairs = leave_one_out(model.set_params(decision_function_shape="ovo")).decision_values[row]
    np.testing.assert_array_equal(pairs[[0, 3, 4]], [np.inf, -np.inf, -np.inf])


def test_sparse_precomputed_and_grown_models_leave_out_the_same():
    X, y = iris(60)
    dense = SVC(gamma=0.5).fit(X, y)
    expected = leave_one_out(dense).decision_values
    grown = SVC(gamma=0.5).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    kernel = SVC(kernel="precomputed").fit(dense._kernel(X, X), y)
    for model in (SVC(gamma=0.5).fit(sp.csr_matrix(X), y), kernel, grown, SVC(gamma=0.5, n_jobs=2).fit(X, y)):
        np.testing.assert_allclose(leave_one_out(model).decision_values, expected, atol=1e-8)


def test_at_a_limit_the_rows_done_are_returned():
    X, y = iris(60)
    model = SVC(gamma=0.5).partial_fit(X, y)
    whole = leave_one_out(model)
    with pytest.MonkeyPatch.context() as patch:
        Countdown(patch, 60)
        with pytest.warns(ConvergenceWarning, match="of 60 rows"):
            result = leave_one_out(model)
    done = ~np.isnan(result.decision_values).any(axis=1)
    assert result.status is Status.MAX_TIME
    assert 0 < done.sum() < 60
    assert f"over {done.sum()} rows of 60" in repr(result)
    np.testing.assert_allclose(result.decision_values[done], whole.decision_values[done], atol=1e-9)
    assert result.predictions[done].tolist() == whole.predictions[done].tolist()
    assert all(one is None for one in result.predictions[~done])
    with limits():
        signal.raise_signal(signal.SIGINT)
        with pytest.warns(ConvergenceWarning, match="0 of 60 rows: interrupted"):
            result = leave_one_out(model)
    assert result.status is Status.INTERRUPTED
    assert np.isnan(result.decision_values).all()
    assert result.decision_values.shape == (60, 3)


@pytest.mark.filterwarnings("ignore:The poly kernel is not positive semidefinite")
def test_a_pair_that_a_change_leaves_alone_keeps_the_coefficients_that_were_certified():
    small = -9.423431753706845e-09
    X = np.array([[small, 0.0], [small, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.00607949655352682]])
    y = np.array([0, 1, 0, 2, 1])
    model = SVC(1.82, kernel="poly", gamma=0.7, degree=1, coef0=-0.5)
    model.partial_fit(X[[2, 4, 3]], y[[2, 4, 3]]).partial_fit(X[[1, 0]], y[[1, 0]]).forget([4])
    for coefficients, certificate in zip(model._pair_coefficients(), model.certificate_, strict=True):
        assert abs(math.fsum(coefficients)) <= abs(certificate.sum_residual) + 4e-16 * np.abs(coefficients).sum()
