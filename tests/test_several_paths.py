"""Paths of several classes: one for each pair, read as the SVC of every C, and scored exactly."""

import pickle
import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from zerogap import SVC, SVCPath, certify, limits, score_curve, svm_path
from zerogap.path import predictions
from zerogap.path.approximate import Walk
from zerogap.path.pairwise import PairPath
from zerogap.path.single import Single, SingleEngine
from zerogap.progress import PathProgress, several_paths

WORDS = np.array(["once", "Twice", "", "thrice"])
BESIDE = 1e-9  # relative: this far from a change of the score it has happened, or has not, whatever rounding does


def blobs(n=60, k=4, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + 0.9 * np.array([[c % 2, c // 2, c == 3] for c in y]), y


def integers(n=50, k=3, seed=0):
    """Points on a grid, most of them several times, in several classes too."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    return rng.integers(-1, 2, (n, 2)).astype(float), y


def kinds():
    X, y = blobs()
    rng = np.random.default_rng(1)
    one_each = rng.normal(size=(3, 2))
    return {
        "plain": (X, y, None, {}),
        "words": (X, WORDS[y], None, {"decision_function_shape": "ovo"}),
        "balanced": (X[y != 3][5:], y[y != 3][5:], None, {"class_weight": "balanced"}),
        "class weights": (X, WORDS[y], None, {"class_weight": {"once": 0.3, "Twice": 4.0}}),
        "weights": (X, y, rng.choice([0.0, 0.5, 1.0, 3.0], y.size), {}),
        "weights of points and classes": (X, y, rng.uniform(0.5, 2.0, y.size), {"class_weight": "balanced"}),
        "duplicates": (*integers(), None, {"gamma": 1.0}),
        "one point a class": (one_each, np.arange(3), None, {"gamma": 1.0}),
        "one point of one class": (X[y < 3][:41], np.where(np.arange(41) == 7, 9, y[y < 3][:41] % 2), None, {}),
        "linear": (X + 100.0, y, None, {"kernel": "linear"}),
        "booleans and numbers": (X, y * 0.5 * 2 - 1, None, {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    }


KINDS = kinds()


def some(*quick):
    return [kind if kind in quick else pytest.param(kind, marks=pytest.mark.long) for kind in KINDS]


def held_out(X, n=40, seed=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, X.shape[1])) * X.std(axis=0) + X.mean(axis=0)


@pytest.mark.parametrize("kind", some("weights of points and classes", "one point a class"))
def test_at_is_the_model_that_fit_would_give(kind):
    X, y, weight, options = KINDS[kind]
    path = SVCPath(C_min=1e-3, C_max=100.0, **options).fit(X, y, sample_weight=weight)
    assert path.largest_gap_ <= 1e-9
    new = held_out(X)
    for C in 10 ** np.random.default_rng(2).uniform(-3, 2, 3):
        model, fitted = path.at(C), SVC(C=C, tol=1e-11, **options).fit(X, y, sample_weight=weight)
        assert max(certificate.relative_gap for certificate in model.certificate_) <= 1e-9
        np.testing.assert_array_equal(model.class_weight_, fitted.class_weight_)
        # |w - w*|² / 2 is at most the gap: with a relative gap of 1e-9 decision values differ by its root times |phi(x)|.
        primal = max(certificate.primal for certificate in model.certificate_)
        norm = np.sqrt(max(model._kernel.diagonal(new).max(), model._kernel.diagonal(X).max()))
        near = 2.0 * np.sqrt(2e-9 * primal) * norm
        ours, theirs = model._pair_decisions(new), fitted._pair_decisions(new)
        np.testing.assert_allclose(ours, theirs, atol=near)
        sure = np.abs(theirs).min(axis=1) > 2 * near
        np.testing.assert_array_equal(model.predict(new)[sure], fitted.predict(new)[sure])
        np.testing.assert_array_equal(path.predict(new, C=C), model.predict(new))
        np.testing.assert_allclose(path.decision_function(new, C=C), model.decision_function(new), atol=1e-9)
    assert path.predict(new, C=[0.1, 1.0, 10.0]).shape == (3, 40)
    several = path.decision_function(new, C=[0.1, 1.0])
    np.testing.assert_allclose(several[1], path.decision_function(new, C=1.0), atol=1e-12)


def check_curve(path, X, y, fine=60, most=1000, **options):
    """Compare a curve with the models at many C, on both sides of every change, and at the breakpoints of all pairs."""
    curve = path.score_curve(X, y, **options)
    low, high = path.breakpoints_[[0, -1]]
    assert (curve.C[0], curve.C[-1]) == (low, high)
    assert (np.diff(curve.C) > 0).all()
    assert (np.diff(curve.score) != 0).all()
    rng = np.random.default_rng(3)
    edges = curve.C[1:-1]
    few = rng.permutation(edges)[:most]
    some = [np.geomspace(low, high, fine), *(few * (1 + sign * BESIDE) for sign in (-1, 1))]
    at_breakpoints = rng.choice(path.breakpoints_, min(fine, path.breakpoints_.size), replace=False)
    for C in np.clip(np.concatenate([*some, at_breakpoints * (1 + BESIDE)]), low, high):
        if edges.size and np.abs(edges / C - 1).min() < 0.5 * BESIDE:
            continue
        yield C, curve(C)


@pytest.mark.long
@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("kind", some("duplicates"))
def test_a_score_curve_is_the_score_of_the_vote_at_every_C(kind, break_ties):
    X, y, weight, options = KINDS[kind]
    options = options | ({"decision_function_shape": "ovr"} if break_ties else {})
    path = SVCPath(C_min=1e-2, C_max=50.0, break_ties=break_ties, **options).fit(X, y, sample_weight=weight)
    new = held_out(X)
    truth = np.random.default_rng(4).choice(path.classes_, 40)
    for C, score in check_curve(path, new, truth, fine=10):
        assert score == np.mean(path.predict(new, C=C) == truth)
        if (
            path.predict(new, C=C).tolist() != path.at(C).predict(new).tolist()
        ):  # the same but for a decision value of zero
            decisions = path._pair_decisions(new, C)[0]
            assert np.abs(decisions).min() <= 1e-12


def test_weights_of_a_score():
    X, y, _, _ = KINDS["plain"]
    path = SVCPath(C_min=1e-2, C_max=50.0).fit(X, y)
    new, weight = held_out(X), np.random.default_rng(0).uniform(0.1, 5.0, 40)
    truth = np.random.default_rng(4).integers(0, 4, 40)
    for C, score in check_curve(path, new, truth, sample_weight=weight, fine=10, most=10):
        assert score == pytest.approx(np.average(path.predict(new, C=C) == truth, weights=weight), abs=1e-12)


def test_points_that_come_twice_change_together():
    X, y, _, _ = KINDS["plain"]
    path = SVCPath(C_min=1e-2, C_max=50.0).fit(X, y)
    new = held_out(X, 7)
    truth = np.random.default_rng(4).integers(0, 4, 7)
    once, often = path.score_curve(new, truth), path.score_curve(np.tile(new, (13, 1)), np.tile(truth, 13))
    np.testing.assert_allclose(often.C, once.C, rtol=1e-12)
    np.testing.assert_allclose(often.score, once.score)


@pytest.mark.long
def test_ties_by_sums_of_decision_values_in_small_portions(monkeypatch):
    X, y, _, _ = KINDS["plain"]
    path = SVCPath(C_min=1e-2, C_max=50.0, break_ties=True).fit(X, y)
    new, truth = held_out(X), np.random.default_rng(4).integers(0, 4, 40)
    at_once = path.score_curve(new, truth)
    monkeypatch.setattr(predictions, "MEMORY", 1)
    one_by_one = path.score_curve(new, truth)
    np.testing.assert_allclose(at_once.C, one_by_one.C, rtol=1e-12)
    np.testing.assert_array_equal(at_once.score, one_by_one.score)
    path.set_params(decision_function_shape="ovo")
    for ask in (lambda: path.predict(new), lambda: path.score_curve(new, truth)):
        with pytest.raises(ValueError, match="break_ties must be False when decision_function_shape is 'ovo'"):
            ask()


@pytest.mark.long
@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("load", [load_iris, load_wine, load_digits])
def test_score_curves_of_data_sets(load, break_ties):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    some = np.random.default_rng(0).permutation(y.size)
    train, test = np.array_split(some[:900], 2)  # of ten classes every C costs 45 models
    path = SVCPath(C_min=1e-2, C_max=1e3, break_ties=break_ties).fit(X[train], y[train])
    wrong = [
        C for C, score in check_curve(path, X[test], y[test], 40, 40) if score != path.at(C).score(X[test], y[test])
    ]
    assert wrong == []


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_small_problems_full_of_duplicates(seed):
    X, y = integers(n=5 + seed, k=3 + seed % 3, seed=seed)
    path = SVCPath(kernel="linear" if seed % 2 else "rbf", C_min=1e-2, C_max=100.0).fit(X, y)
    assert path.largest_gap_ <= 1e-9
    new = np.random.default_rng(seed).normal(size=(30, 2))
    truth = np.random.default_rng(seed + 1).choice(path.classes_, 30)
    for C, score in check_curve(path, new, truth):
        assert score == path.at(C).score(new, truth)


# The middle of the interval in which the bias may be.


@pytest.mark.parametrize("k", [2, 3])
def test_a_bias_that_is_not_unique_is_in_the_middle(k):
    """Classes of one size: for small C every point is at its cap, and the bias is anywhere between two margins."""
    X, y = blobs(n=12 * k, k=k)
    path = SVCPath(gamma=0.5, C_min=1e-3, C_max=10.0).fit(X, y)
    for C in (1e-3, 5e-3, 0.02):
        model, fitted = path.at(C), SVC(C=C, gamma=0.5, tol=1e-12).fit(X, y)
        lower, upper = np.atleast_2d([c.bias_interval for c in np.atleast_1d(fitted.certificate_)]).T
        assert (upper - lower > 0.1).any()
        np.testing.assert_allclose(model.intercept_, fitted.intercept_, atol=1e-12)
        np.testing.assert_allclose(path.decision_function(X, C=C), model.decision_function(X), atol=1e-12)


# One matrix, threads, limits.


def test_the_kernel_matrix_is_computed_once():
    X, y = blobs()
    path = SVCPath(C_max=10.0).fit(X, y)
    gram = path._shared.gram
    assert gram.evaluations == gram._columns.values_of_square(60)
    assert path.at(1.0).kernel_evaluations_ == gram.evaluations
    assert all(one.engine is None and one._own is None and one._proof is None for one in path.paths_)


def test_without_room_for_it_pairs_compute_their_own(monkeypatch):
    X, y = blobs()
    expected = SVCPath(C_max=10.0).fit(X, y)
    monkeypatch.setattr("zerogap.gram.MIN_ROWS", 1)
    monkeypatch.setattr("zerogap.estimators.class_paths.CACHE", 0.01)
    path = SVCPath(C_max=10.0).fit(X, y)
    assert not path._shared.gram.is_complete
    np.testing.assert_allclose(path.decision_function(X, C=3.0), expected.decision_function(X, C=3.0), atol=1e-9)
    assert path.at(3.0).duality_gap_ <= 1e-9


@pytest.mark.parametrize("form", ["sparse", "precomputed", "float32", "function"])
def test_points_in_other_forms(form):
    X, y = blobs()
    X, y = np.concatenate([X, X[:9]]), np.concatenate([y, y[:9]])
    new, K = held_out(X), np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(-1))
    against = np.exp(-0.5 * ((new[:, None] - X) ** 2).sum(-1))
    train, test, kernel = {
        "sparse": (sp.csr_matrix(X), sp.csr_matrix(new), "rbf"),
        "precomputed": (K, against, "precomputed"),
        "float32": (K.astype(np.float32), against, "precomputed"),
        "function": (X, new, lambda A, B: np.exp(-0.5 * ((A[:, None] - B) ** 2).sum(-1))),
    }[form]
    path = SVCPath(kernel=kernel, gamma=0.5, C_min=0.5, C_max=5.0).fit(train, y)
    expected = SVCPath(gamma=0.5, C_min=0.5, C_max=5.0).fit(X, y)
    near = 1e-4 if form == "float32" else 1e-9
    np.testing.assert_allclose(path.decision_function(test, C=2.0), expected.decision_function(new, C=2.0), atol=near)
    assert path.at(2.0).duality_gap_ <= 1e-9


@pytest.mark.parametrize("options", [{"engine": "lp"}, {"engine": "hastie"}, {"n_jobs": 2}])
def test_engines_and_threads(options):
    X, y = blobs(n=30, k=3)
    path, expected = SVCPath(C_max=1.0, **options).fit(X, y), SVCPath(C_max=1.0).fit(X, y)
    near = 1e-2 if options.get("engine") == "lp" else 1e-9  # its tolerance of a thousandth in every margin
    np.testing.assert_allclose(path.decision_function(X, C=0.5), expected.decision_function(X, C=0.5), atol=near)
    np.testing.assert_array_equal(path.score_curve(X, y).score[-1], expected.score_curve(X, y).score[-1])


@pytest.mark.long
def test_a_time_limit_is_shared_by_the_pairs(monkeypatch):
    X, y = blobs(n=200)
    SVCPath(C_max=0.01).fit(X, y)  # compiles
    steps = SingleEngine.steps

    def slowly(engine, *args):
        time.sleep(0.1)  # a path has some ten of them
        return steps(engine, *args)

    monkeypatch.setattr(SingleEngine, "steps", slowly)
    with pytest.warns(
        ConvergenceWarning, match=r"\(max_time=0\.9\).* of 6 pairs of classes have no whole path"
    ) as caught:
        path = SVCPath(max_time=0.9, C_max=1e9).fit(X, y)
    assert [one.status for one in path.paths_] == ["max_time"] * 6
    assert "Raise the limit" in str(caught[0].message)
    C = path.breakpoints_[-1]  # what there is can be used
    assert min(one.C[-1] for one in path.paths_) == C
    assert path.predict(X, C=C).shape == (200,)
    assert path.score_curve(X, y).C[-1] == C
    assert path.at(C).duality_gap_ <= 1e-9
    with pytest.raises(ValueError, match=r"path runs from .* ended early \(max_time\)"):
        path.predict(X, C=1e9)


@pytest.mark.parametrize("gap", [None, 1e-3])
def test_a_short_limit_leaves_every_pair_a_segment(gap, monkeypatch):
    """On a clock where starts, steps and what comes behind them take a second each: limits are asked for in between."""
    clock, steps, advance, start = [0.0], SingleEngine.steps, Walk.advance, Single.start

    def second_of(work):
        def slow(*args):
            clock[0] += 1.0
            return work(*args)

        return slow

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(Single, "start", second_of(start))
    monkeypatch.setattr(SingleEngine, "steps", second_of(lambda engine, end, most: steps(engine, end, min(most, 1))))
    monkeypatch.setattr(Walk, "advance", second_of(advance))
    monkeypatch.setattr(PairPath, "release", second_of(PairPath.release))
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match=r"6 of 6 pairs of classes have no whole path, and one of them ends at"):
        path = SVCPath(max_time=20.0, gap=gap).fit(X, y)
    assert clock[0] < 22.0
    assert all(one.has_segments for one in path.paths_)
    assert path.breakpoints_[0] < path.breakpoints_[-1]
    assert path.predict(X, C=path.breakpoints_[-1]).shape == y.shape


def test_a_limit_before_the_first_segment():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-09.*6 of 6 pairs .*has not got beyond its start"):
        path = SVCPath(max_time=1e-9).fit(X, y)
    for ask in (lambda: path.predict(X), lambda: path.at(1.0), lambda: path.score_curve(X, y)):
        with pytest.raises(ValueError, match="6 pairs of classes, the first of them 0 against 1, ended before"):
            ask()


def test_a_limit_of_events_is_for_each_pair():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning, match=r"max_events=5.*6 of 6 pairs"):
        path = SVCPath(max_events=5).fit(X, y)
    assert [one.counts.events for one in path.paths_] == [5] * 6
    assert path.predict(X, C=path.breakpoints_[-1]).shape == (60,)


def test_ctrl_c_keeps_what_there_is(monkeypatch):
    X, y = blobs()
    begun, steps = [], SingleEngine.steps

    def press(engine, *args):
        if engine not in begun:
            begun.append(engine)
        if len(begun) == 3:
            signal.raise_signal(signal.SIGINT)
        return steps(engine, *args)

    monkeypatch.setattr(SingleEngine, "steps", press)
    with pytest.warns(ConvergenceWarning, match=r"stopped \(interrupted\).*4 of 6 pairs .*Fit again") as caught:
        path = SVCPath(C_max=10.0).fit(X, y)
    monkeypatch.undo()
    limits.heard()
    assert len(caught) == 1
    assert [one.status for one in path.paths_] == ["complete"] * 2 + ["interrupted"] * 4
    assert path.paths_[1].coefficients_at(1.0).shape == (60,)


def test_a_path_of_a_pair_goes_on():
    X, y = blobs()
    with pytest.warns(ConvergenceWarning):
        short = SVCPath(max_events=20, C_max=10.0, gamma=0.5).fit(X, y)
    whole = SVCPath(C_max=10.0, gamma=0.5).fit(X, y)
    pair = np.isin(y, (0, 2))
    path = svm_path(X, y == 0, gamma=0.5, sample_weight=pair.astype(float), resume=short.paths_[1], C_max=10.0)
    assert path is short.paths_[1]
    assert path.status == "complete"
    np.testing.assert_allclose(path.coefficients_at(5.0), whole.paths_[1].coefficients_at(5.0), atol=1e-9)
    assert not path.coefficients_at(5.0)[~pair].any()


def test_progress_of_all_paths_is_one_bar(capsys):
    X, y = blobs()
    path = SVCPath(C_max=0.1, verbose=True, n_jobs=2).fit(X, y).paths_[0]
    with several_paths(2):
        one = PathProgress(path, 10.0)
        one(20, 1.0, 3)
        assert one._all.n == pytest.approx(0.5)
        one.close()
        assert one._all.n == pytest.approx(1.0)


# Around it.


def test_what_an_estimator_does():
    X, y = blobs()
    path = SVCPath(C_max=10.0, C=2.0).fit(X, WORDS[y])
    assert len(path.paths_) == 6
    assert path.n_events_ == sum(one.n_events for one in path.paths_)
    assert path.largest_gap_ == max(one.largest_gap_ for one in path.paths_)
    assert set(path.breakpoints_) == {C for one in path.paths_ for C in one.C}
    with pytest.raises(
        AttributeError, match=r"With 4 classes there is no single path_; paths_ has one for each of the 6"
    ):
        _ = path.path_
    assert not hasattr(SVCPath(), "path_")
    twin = pickle.loads(pickle.dumps(path))
    np.testing.assert_array_equal(twin.predict(X), path.predict(X))
    assert twin.at(3.0).duality_gap_ == path.at(3.0).duality_gap_
    assert not hasattr(clone(path), "paths_")
    assert "SVCPath(C=2.0, C_max=10.0)" in repr(path)
    assert "SVCPath" in path._repr_html_()
    assert certify(path, X, WORDS[y]).relative_gap <= 1e-9
    pipe = make_pipeline(StandardScaler(), SVCPath(C_max=10.0)).fit(X, WORDS[y])
    np.testing.assert_array_equal(
        score_curve(pipe, X, WORDS[y]).score, pipe[-1].score_curve(pipe[0].transform(X), WORDS[y]).score
    )


def test_two_classes_have_a_list_of_one():
    X, y = blobs(n=30, k=2)
    path = SVCPath(C_max=10.0).fit(X, y)
    assert path.paths_ == [path.path_]
    state = path.__getstate__()
    old = {name: value for name, value in state.items() if name not in ("paths_", "class_weight_", "_rows", "n_jobs")}
    older = SVCPath()
    older.__setstate__(old | {"path_": path.path_})
    np.testing.assert_array_equal(older.decision_function(X, C=3.0), path.decision_function(X, C=3.0))
    assert older.n_jobs is None


@pytest.mark.parametrize("k", [2, 3])
def test_class_weights_are_weights_of_points(k):
    X, y = blobs(n=30, k=k)
    by_class = SVCPath(gamma=0.5, C_max=10.0, class_weight={0: 3.0}).fit(X, y)
    by_point = SVCPath(gamma=0.5, C_max=10.0).fit(X, y, sample_weight=np.where(y == 0, 3.0, 1.0))
    np.testing.assert_allclose(by_class.decision_function(X, C=2.0), by_point.decision_function(X, C=2.0), atol=1e-10)
    # gamma="scale" knows nothing of them.
    scaled = SVCPath(C_max=10.0, class_weight="balanced").fit(X, y)
    assert scaled._kernel.gamma == SVCPath(C_max=10.0).fit(X, y)._kernel.gamma
    assert scaled.at(2.0).class_weight == "balanced"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C_min": 2.0, "C_max": 1.0}, "C_min must be below C_max"),
        ({"C_max": np.inf}, "C_max must be"),
        ({"max_time": -1.0}, "max_time must be"),
        ({"max_events": 0.5}, "max_events must be a whole number"),
        ({"class_weight": {0: -1.0}}, "class_weight must be above 0"),
        ({"decision_function_shape": "ova"}, "Unknown decision_function_shape"),
        ({"break_ties": 1}, "break_ties must be True or False"),
        ({"engine": "svmpath"}, "Unknown engine"),
        ({"kernel": "sigmoid", "gamma": 5.0}, "positive semidefinite"),
    ],
)
def test_bad_options_are_refused(options, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=message):
        SVCPath(**options).fit(X, y)


def test_bad_classes_are_refused():
    X, y = blobs()
    with pytest.raises(ValueError, match="SVCPath needs at least two classes to separate; y has 1 class"):
        SVCPath().fit(X, np.zeros(60))
    with pytest.raises(ValueError, match="Every point of class 2 has weight zero"):
        SVCPath().fit(X, y, sample_weight=y != 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = SVCPath(C_max=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"labels out of \[0, 1, 2, 3\]"):
        path.score_curve(X, y + 1)
