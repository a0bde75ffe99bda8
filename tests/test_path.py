import math
import os
import re
import signal
import warnings
from fractions import Fraction

import naive
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from conftest import KINDS, points
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from zerogap import SVC, DualProblem, Gram, Path, RelativeGap, SVCPath, datasets, solve, svm_path
from zerogap.compiled import NO_POINT
from zerogap.path import exactness, single
from zerogap.path import lines as lines_module
from zerogap.path.events import pass_ordinary
from zerogap.path.lines import Lines
from zerogap.path.rows import ElbowLines, add_block_exactly, add_exactly
from zerogap.path.screening import Candidates, Reference, Screening, departure
from zerogap.path.single import SingleEngine
from zerogap.path.tie import entering_points
from zerogap.path.tolerances import FRESH_EVERY, LONG, REFRESH_BELOW, REFRESH_EVERY


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.fixture(scope="module")
def cancer_path(cancer):
    return svm_path(*cancer)


@pytest.mark.thin(4)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("kind", KINDS)
def test_is_optimal_at_every_breakpoint_and_between(kind, kernel):
    X, y, _ = points(kind)
    if kernel == "poly" and kind in ("huge", "tiny"):
        X = X / np.abs(X).max()
    size = np.abs(
        Gram(X, kernel, coef0=1.0).diagonal
    ).mean()  # C times kernel values is what counts, and what rounding grows with
    path = svm_path(X, y, kernel=kernel, coef0=1.0, C_min=1e-3 / size, C_max=1e2 / size)
    assert path.status == "complete"
    assert path.n_backups == 0
    between = np.sqrt(path.C[1:] * path.C[:-1])
    assert path.worst_certificate(np.concatenate([path.C, between])).relative_gap <= 1e-9


def test_agrees_with_a_reference_qp(plain):
    X, y, _ = plain
    path = svm_path(X, y, C_min=1e-2, C_max=1e2)
    for C in (0.01, 0.3, 5.0, 100.0):
        problem = DualProblem.hinge(Gram(X), y, C)
        reference = naive.reference_objective(problem)
        assert naive.objective(problem, path.coefficients_at(C)) == pytest.approx(reference, rel=2e-8)


@pytest.mark.long
def test_real_data_is_exact_for_every_C(cancer_path):
    assert cancer_path.worst_certificate().relative_gap <= 1e-9
    random = 10 ** np.random.default_rng(0).uniform(-4, 3, 200)
    assert cancer_path.worst_certificate(random).relative_gap <= 1e-9
    assert (np.diff(cancer_path.C) > 0).all()


@pytest.mark.long
@given(st.integers(0, 10**6))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_integer_data_full_of_ties_and_conflicts(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 30)), int(rng.integers(1, 4))
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    y = np.concatenate([[-1, 1], rng.choice([-1, 1], size=n - 2)])
    weight = rng.choice([0.5, 1.0, 2.0], size=n)
    path = svm_path(X, y, kernel=["linear", "rbf"][seed % 2], sample_weight=weight, C_max=100.0)
    assert path.status == "complete"
    assert path.n_backups == 0
    assert path.worst_certificate().relative_gap <= 1e-9


@pytest.mark.parametrize(
    ("size", "seed"), [(250, 0), *(pytest.param(600, seed, marks=pytest.mark.long) for seed in range(4))]
)
@pytest.mark.parametrize("kernel", ["linear", pytest.param("poly", marks=pytest.mark.long)])
def test_grids_where_nearly_every_event_is_a_tie(kernel, size, seed):
    """Elbows that are chosen without care become singular here but for rounding, and ties circles."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(size, 14 if kernel == "linear" else 9)).astype(float)
    y = np.where(X[:, :5].sum(axis=1) >= 3, 1, -1)
    path = svm_path(X, y, kernel=kernel, degree=2, coef0=1.0)
    assert (path.status, path.n_backups) == ("complete", 0)
    assert path.worst_certificate().relative_gap <= 1e-9
    assert path.n_events < 5 * len(y)


@pytest.mark.long
def test_a_circle_of_ties_is_resolved_as_a_whole(monkeypatch):
    """Here 140 points of fifteen dimensions tie at C = 1/9, and one exchange after the other leads round in a circle."""
    rng = np.random.default_rng(12)
    X = rng.integers(0, 2, size=(300, 15)).astype(float)
    y = np.where((X[:, :7].sum(axis=1) >= 4) ^ (rng.random(300) < 0.05), 1, -1)
    calls = []
    monkeypatch.setattr(single, "entering_points", lambda *arguments: calls.append(1) or entering_points(*arguments))
    path = svm_path(X, y, kernel="linear")
    assert len(calls) > 0
    assert path.n_backups == 0
    assert path.worst_certificate().relative_gap <= 1e-9


@pytest.mark.thin(3)
@pytest.mark.parametrize("seed", range(6))
def test_every_tie_can_be_resolved_as_a_whole(seed, monkeypatch):
    monkeypatch.setattr(single, "TRANSITIONS_PER_TIE", 3)
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(150, 7)).astype(float)
    y = np.where((X[:, :5].sum(axis=1) >= 3) ^ (rng.random(150) < 0.1), 1, -1)
    path = svm_path(X, y, kernel="linear")
    assert path.n_backups == 0
    assert path.worst_certificate().relative_gap <= 1e-9


@pytest.mark.parametrize("n_inner", [0, 1, 3])
@pytest.mark.parametrize("seed", range(20))
def test_who_moves_when_points_tie(seed, n_inner):
    """The entering points move into the box, and no other margin is violated as lam falls."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    X = np.column_stack([y, rng.integers(0, 3, size=(30, 5))])  # so that all can lie on their margins
    K = X @ X.T
    inner, tied = np.arange(n_inner), np.arange(n_inner, 30)
    is_low = rng.random(tied.size) < 0.6
    entering = entering_points(K, y, inner, tied, is_low == (y[tied] > 0))
    E = np.concatenate([inner, entering])
    A = np.block([[np.zeros((1, 1)), np.ones((1, E.size))], [np.ones((E.size, 1)), K[np.ix_(E, E)]]])
    solution = np.linalg.solve(A, np.concatenate([[0.0], y[E]]))
    slope = y * (K[:, E] @ solution[1:] + solution[0]) - 1.0  # of y F - lam, in lam
    z = dict(zip(E.tolist(), -y[E] * solution[1:], strict=True))
    for i, low in zip(tied.tolist(), is_low, strict=True):
        inward = 1.0 if low else -1.0
        if i in z and E.size > 1:
            assert inward * z[i] >= -1e-9
        assert -inward * slope[i] >= -1e-8


@pytest.mark.covering
@pytest.mark.parametrize("unit", [1.0, 0.37])
@pytest.mark.parametrize("seed", [1, 5, 9, 23])  # of others ties decide whether an event is left at a large C
def test_a_segment_on_which_C_grows_ten_thousand_times(seed, unit):
    """Eight distinct points of large weight: rounding in what they pull must not grow relative to lam."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(450, 3)).astype(float)
    y = np.where(X.sum(axis=1) >= 2, 1, -1)
    y[0] = -y[0]
    path = svm_path(X, y, kernel="linear", sample_weight=np.full(450, unit))
    assert path.C[-1] / path.C[-2] > 1e3
    assert path.worst_certificate().relative_gap <= 1e-10


def test_of_coefficients_that_stop_at_once_the_fastest_leaves():
    w = np.ones(3)
    a, rate = np.array([0.5, 0.5e-3 * (1 - 1e-12), 0.2]), np.array([-1.0, -1e-3, 1.0])
    assert single._harris_ratio_test(a, rate, w) == (0, 0.5)  # the second is earlier, but only by rounding
    a[1] = 0.4e-3
    assert single._harris_ratio_test(a, rate, w) == (1, pytest.approx(0.4))
    a[2] = 1.0 + 1e-13  # past its bound by rounding
    assert single._harris_ratio_test(a, rate, w) == (2, 0.0)
    assert single._harris_ratio_test(a, np.zeros(3), w) == (NO_POINT, np.inf)


@pytest.mark.parametrize("count", [20, 19, 3])  # four rows at a time, and what is left of them
@pytest.mark.parametrize("is_block", [False, True])
def test_sums_are_exact_where_plain_ones_are_all_rounding(is_block, count):
    rng = np.random.default_rng(0)
    K = rng.standard_normal((30, 30)) * 10.0 ** rng.integers(-3, 4, size=(30, 30))
    E, rows, x = np.arange(10), np.arange(10, 10 + count), rng.standard_normal(count)
    block = K[rows][:, E]
    total, error = -(x @ block), np.zeros(10)
    exact = [
        Fraction(total[i]) + sum(Fraction(a) * Fraction(b) for a, b in zip(block[:, i], x, strict=True)) for i in E
    ]
    if is_block:
        add_block_exactly(block, x, total, error)
    else:
        add_exactly(K, rows, x, E, total, error)
    np.testing.assert_allclose(total + error, np.array(exact, dtype=float), rtol=1e-12)


def test_margins_are_met_however_large_C_becomes():
    X, y = load_iris(return_X_y=True)
    path = svm_path(X, y == 0, kernel="linear", C_max=1e9)
    assert path.C[-2] < 1.0  # from there on no point is capped
    assert path.worst_certificate(np.geomspace(1e-3, 1e9, 50)).relative_gap <= 1e-11


def test_events_lead_from_one_segment_to_the_next(cancer_path):
    C = [event.C for event in cancer_path.events]
    assert (np.diff(C) >= 0).all()
    where = {}
    for event in cancer_path.events:
        assert event.origin != event.target
        if event.index in where:
            assert event.origin == where[event.index]
        where[event.index] = event.target
    last = cancer_path.sets_at(len(cancer_path._segments) - 1)
    names = np.array(["right", "elbow", "left"])[last]
    for index, name in where.items():
        assert names[cancer_path.points.group[index]] == name
    assert cancer_path.n_free.max() == max(s.points.size for s in cancer_path._segments)
    assert f"{len(C)} events" in repr(cancer_path)


def test_coefficients_share_among_duplicates_and_stay_in_the_box():
    X, y, _ = points("duplicates")
    path = svm_path(X, y, C_max=10.0)
    beta = path.coefficients_at(3.0)
    assert beta.shape == (40,)
    np.testing.assert_array_equal(beta[0::2], beta[1::2])
    assert (y * beta >= 0).all()
    assert (y * beta <= 3.0 * (1 + 1e-12)).all()
    many = path.coefficients_at(np.array([0.1, 3.0]))
    np.testing.assert_array_equal(many[1], beta)
    assert path.bias_at(np.array([0.1, 3.0]))[1] == path.bias_at(3.0)


def test_weights_are_repetitions(plain):
    X, y, _ = plain
    weight = np.random.default_rng(3).integers(0, 3, size=40)
    a = svm_path(X, y, sample_weight=weight, C_max=10.0)
    b = svm_path(X.repeat(weight, axis=0), y.repeat(weight), C_max=10.0)
    np.testing.assert_array_equal(a.C, b.C)
    assert a.n_events == b.n_events


def test_separable_data_ends_without_capped_points():
    X = np.array([[0.0], [1.0], [3.0], [4.0]])
    path = svm_path(X, [0, 0, 1, 1], kernel="linear", C_max=1e6)
    np.testing.assert_allclose(path.coefficients_at(1e6), [0.0, -0.5, 0.5, 0.0], atol=1e-9)
    assert path.bias_at(1e6) == pytest.approx(-2.0)


def test_an_event_at_the_very_end_is_no_tie_without_end(plain):
    X, y, _ = plain
    path = svm_path(X, y, C_max=100.0)
    end = path.C[len(path) // 2] * (1 + 1e-12)
    short = svm_path(X, y, C_max=end)
    assert (short.status, short.n_backups) == ("complete", 0)
    assert short.C[-1] == pytest.approx(end, rel=1e-15)


@pytest.mark.long
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_looking_at_some_points_misses_nobody(kernel, monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, y = X[:700] / 16.0, y[:700] < 5
    candidates, take = [], Screening.take

    def taken(self, kept):
        candidates.append(kept.n_candidates)
        take(self, kept)

    monkeypatch.setattr(Screening, "take", taken)
    some = svm_path(X, y, kernel=kernel)
    assert min(candidates) < 400  # where the compiled loop came back
    # The compiled loop screens by itself: without it every event is a step in Python, and none of those screens.
    monkeypatch.setattr(SingleEngine, "_pass_ordinary", lambda self, lam_end, most: None)
    monkeypatch.setattr(Screening, "screen", lambda self, lam, move: None)
    candidates.clear()
    unscreened = svm_path(X, y, kernel=kernel)
    assert min(candidates) == 700
    assert [event[1:] for event in some.events] == [event[1:] for event in unscreened.events]
    np.testing.assert_allclose(some.C, unscreened.C, rtol=1e-9)


def test_departure_is_how_far_the_direction_has_turned():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20))
    K, y = X @ X.T, np.where(rng.random(30) < 0.5, 1.0, -1.0)
    directions, values = [], []
    sets = np.arange(10), np.arange(3, 16)
    for E in sets:
        A = np.block([[np.zeros((1, 1)), np.ones((1, E.size))], [np.ones((E.size, 1)), K[np.ix_(E, E)]]])
        solution = np.linalg.solve(A, np.concatenate([[0.0], y[E]]))
        directions.append(solution[1:])
        values.append(K[:, E] @ solution[1:] + solution[0])
    turned = X[sets[1]].T @ directions[1] - X[sets[0]].T @ directions[0]
    candidates = rng.permutation(20)  # among them all of the first set
    position = np.full(30, -1)
    position[candidates] = np.arange(20)
    none = np.zeros(20)
    found = departure(
        y,
        0.0,
        ElbowLines(sets[1], np.zeros(13), directions[1], 0.0),
        Reference(sets[0], directions[0], 0.0, y[sets[0]]),
        Candidates(candidates, position, none, values[1][candidates]),
    )
    assert found == pytest.approx(np.linalg.norm(turned))


def test_a_limit_on_events_and_resume_give_the_same_path(cancer, cancer_path):
    part = svm_path(*cancer, max_events=200)
    assert part.status == "max_events"
    assert part.C[-1] < 1e3
    whole = svm_path(*cancer, resume=part)
    assert whole.status == "complete"
    np.testing.assert_allclose(whole.C, cancer_path.C, rtol=1e-9)
    with pytest.raises(ValueError, match=r"runs from C=0\.0001"):
        whole.coefficients_at(1e4)


def test_resume_extends_a_stored_path(cancer, tmp_path, cancer_path):
    part = svm_path(*cancer, C_max=1.0)
    part.save(tmp_path / "path.npz")
    loaded = Path.load(tmp_path / "path.npz")
    np.testing.assert_array_equal(loaded.coefficients_at(0.5), part.coefficients_at(0.5))
    assert loaded.events == part.events
    with pytest.raises(ValueError, match="loaded without its data"):
        loaded.certificate_at(0.5)
    with pytest.raises(ValueError, match="not made with kernel"):
        svm_path(*cancer, gamma=3.0, resume=loaded)
    loaded.gram = Gram(cancer[0])  # of the rows as they come, where the path has them in an order of its own
    svm_path(*cancer, resume=loaded, C_max=10.0)
    assert loaded.worst_certificate().relative_gap <= 1e-9
    np.testing.assert_allclose(loaded.coefficients_at(9.0), cancer_path.coefficients_at(9.0), atol=1e-8)


def test_ctrl_c_keeps_the_part_computed(monkeypatch):
    X, y = make_moons(800, noise=0.3, random_state=0)
    steps = SingleEngine.steps

    def pressed(self, lam_end, max_events):
        if self.counts.events >= 100:
            os.kill(os.getpid(), signal.SIGINT)
        return steps(self, lam_end, max_events)

    monkeypatch.setattr(SingleEngine, "steps", pressed)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        path = svm_path(X, y)
    assert path.status == "interrupted"
    assert 100 <= path.n_events <= 2 * REFRESH_EVERY  # so many are passed at a time, or fewer if each takes long
    assert path.worst_certificate().relative_gap <= 1e-9


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", ["moons", "grid", "weights"])
def test_the_compiled_loop_passes_the_same_events_as_single_steps(kind, kernel, request, monkeypatch):
    """The same arithmetic in another function may round differently in the last digits."""
    rng = np.random.default_rng(5)
    X, y = make_moons(150, noise=0.3, random_state=1)
    if kind == "grid":
        X = np.rint(4.0 * X)
    weight = rng.uniform(0.2, 5.0, size=150) if kind == "weights" else None
    passed = []

    def counted(*arguments):
        log, count, *now = pass_ordinary(*arguments)
        passed.append(count)
        return log, count, *now

    with monkeypatch.context() as patch:
        patch.setattr(lines_module, "pass_ordinary", counted)
        path = svm_path(X, y, kernel=kernel, sample_weight=weight, C_max=100.0)
    request.getfixturevalue("one_by_one")
    slow = svm_path(X, y, kernel=kernel, sample_weight=weight, C_max=100.0)
    assert sum(passed) > (0.3 if kind == "grid" else 0.5) * path.n_events
    assert max(passed) > FRESH_EVERY or kind == "grid"  # lines are solved for afresh in between
    assert [event[1:] for event in path.events] == [event[1:] for event in slow.events]
    assert pytest.approx(slow.C, rel=1e-9) == path.C
    assert path.largest_gap_ <= 1e-9
    assert path.counts.events == slow.counts.events
    assert path.counts.largest_elbow == slow.counts.largest_elbow
    np.testing.assert_array_equal(path.engine.status, slow.engine.status)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_compiled_loop_sums_what_is_at_rest_on_its_way(cancer, fit_intercept, monkeypatch):
    """lam falls to less than half in one pass; what the capped points add is then as it is summed afresh."""
    begun, passed = [], []

    def watched(*arguments):
        log, count, moving, is_special = pass_ordinary(*arguments)
        passed.append((arguments[-2].lam / moving.lam, moving.summed_at / moving.lam))
        return log, count, moving, is_special

    def taken(self, moving):
        take(self, moving)
        sets, at_rest = self.sets, self.sets.at_rest
        size = np.abs(self.K) @ np.abs(at_rest)
        # As many roundings as terms, and an update for each event since they were summed.
        assert (np.abs(sets.g - self.K @ at_rest) <= 2.0**-53 * (at_rest.size + REFRESH_EVERY) * (size + 1.0)).all()
        assert sets.capped_sum == at_rest.sum()  # whole numbers
        assert sets.n_capped == np.count_nonzero(at_rest)
        begun.append(sets.summed_at)

    take = lines_module.Lines._take_moving
    monkeypatch.setattr(lines_module, "pass_ordinary", watched)
    monkeypatch.setattr(lines_module.Lines, "_take_moving", taken)
    svm_path(*cancer, C_min=1e-2, fit_intercept=fit_intercept)
    fall, since = map(np.array, zip(*passed, strict=True))
    assert fall.max() > 4.0
    assert since.max() <= 1.0 / (REFRESH_BELOW * LONG)  # the last event may be as far as ``LONG`` allows
    assert len(set(begun)) > 1


@pytest.mark.parametrize("gamma", [0.5, 1.0])
def test_events_of_symmetric_points_are_tied_but_for_rounding(gamma):
    """Two arms that are each other's image: of two coefficients that reach their bounds together none is taken past it."""
    path = svm_path(*datasets.two_spirals(), gamma=gamma, C_min=0.1, C_max=10.0)
    for k, segment in enumerate(path._segments):
        a, w = path.y[segment.points] * segment.coefficients(path.lam[k + 1]), path.points.weight[segment.points]
        assert np.maximum(-a, a - w).max() <= 1e-13 * (1.0 + np.abs(segment.u).max())
    assert path.largest_gap_ <= 1e-9
    assert path.n_backups == 0


def test_max_events_is_met_exactly_within_the_compiled_loop(cancer):
    whole = svm_path(*cancer, C_max=10.0)
    for most in (1, 30, 61):
        part = svm_path(*cancer, C_max=10.0, max_events=most)
        assert part.counts.events == most
        svm_path(*cancer, C_max=10.0, resume=part, max_events=most)
        assert part.counts.events == 2 * most
    svm_path(*cancer, C_max=10.0, resume=part)
    assert pytest.approx(whole.C, rel=1e-9) == part.C


def test_hill_valley_has_the_papers_number_of_events():
    if datasets.data_folder() is None:
        pytest.skip("no local data folder; set ZEROGAP_DATA to run this")
    X, y = datasets.load("hill-valley")
    path = svm_path(StandardScaler().fit_transform(X), y, kernel="linear")
    assert abs(path.n_events - 610) <= 5
    assert path.n_free.max() == 17


def test_bad_input_is_refused(plain):
    X, y, _ = plain
    with pytest.raises(ValueError, match=r"two classes; y has 3.*SVCPath takes more"):
        svm_path(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="C_min must be below C_max"):
        svm_path(X, y, C_min=2.0, C_max=1.0)
    with pytest.raises(ValueError, match="C_min must be above 0"):
        svm_path(X, y, C_min=0.0)
    with pytest.raises(ValueError, match="Unknown engine"):
        svm_path(X, y, engine="fast")
    with pytest.raises(ValueError, match="weight zero"):
        svm_path(X, y, sample_weight=(y > 0).astype(float))
    with pytest.raises(ValueError, match=r"shape \(40,\)"):
        svm_path(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        svm_path(np.where(X > 2, np.nan, X), y)


# SVCPath.


def wrong_checks(estimator):
    """Before 1.7 scikit-learn makes other classes of the labels for a binary estimator when it has shuffled them."""
    reason = "the two fits it compares are given different labels"
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(names, reason) if sklearn.__version__.startswith("1.6.") else {}


@pytest.mark.long
@parametrize_with_checks([SVCPath(C_max=10.0)], expected_failed_checks=wrong_checks)
def test_scikit_learns_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        if "check_class_weight_classifiers" in str(check):
            # Weights of 1000 and 1e-4: the margins of the heavy points are rounded to 1e-7 of what the light ones cost in all.
            warnings.filterwarnings(
                "ignore", r"The path is not exact: the relative gap at C=\S+ is \d\.\de-0[789]", RuntimeWarning
            )
        check(estimator)


def test_at_is_the_model_that_fit_would_give(cancer):
    X, y = cancer
    path = SVCPath(C_max=100.0).fit(X[:400], y[:400])
    for C in (0.01, 1.0, 70.0):
        model, fitted = path.at(C), SVC(C=C, tol=1e-10).fit(X[:400], y[:400])
        assert model.duality_gap_ <= 1e-9
        np.testing.assert_array_equal(model.support_, fitted.support_)
        # A relative gap of 1e-10 leaves about its root open in the coefficients, and less in the decision values.
        np.testing.assert_allclose(model.dual_coef_, fitted.dual_coef_, atol=1e-4 * C)
        np.testing.assert_allclose(model.decision_function(X), fitted.decision_function(X), atol=1e-4)
        np.testing.assert_allclose(path.decision_function(X, C=C), model.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(path.predict(X, C=C), model.predict(X))
    many = path.decision_function(X, C=np.array([0.01, 70.0]))
    assert many.shape == (2, len(X))


@pytest.mark.long
@pytest.mark.parametrize("form", ["dense", "sparse", "precomputed"])
def test_score_curve_is_the_score_of_every_C(cancer, form):
    X, y = cancer
    gram = np.exp(-0.03 * ((X[:, None] - X) ** 2).sum(-1))
    train, test = {
        "dense": (X[:300], X[300:]),
        "sparse": (sp.csr_matrix(X[:300]), sp.csr_matrix(X[300:])),
        "precomputed": (gram[:300, :300], gram[300:, :300]),
    }[form]
    path = SVCPath(kernel="precomputed" if form == "precomputed" else "rbf").fit(train, y[:300])
    curve = path.score_curve(test, y[300:])
    assert (np.diff(curve.C) > 0).all()
    assert (np.diff(curve.score) != 0).all()
    for C in 10 ** np.random.default_rng(0).uniform(-4, 3, 300 if form == "dense" else 30):
        assert curve(C) == pytest.approx((path.predict(test, C=C) == y[300:]).mean())
    for low, high in curve.best_intervals:
        assert (path.predict(test, C=np.sqrt(low * high)) == y[300:]).mean() == pytest.approx(curve.best_score)


def test_a_score_curve_takes_known_labels_one_for_each_point():
    X, y, _ = points("plain")
    path = SVCPath(C_max=1.0).fit(X, y)
    for wrong in (y[:-1], y[:, None]):
        with pytest.raises(ValueError, match=rf"{len(X)} labels out of .*; got shape"):
            path.score_curve(X, wrong)
    with pytest.raises(ValueError, match=r"labels out of .*; got \[7"):
        path.score_curve(X, np.where(y == y.max(), 7, y))


def test_more_classes_may_go_through_a_wrapper():
    X, y = load_iris(return_X_y=True)
    assert OneVsRestClassifier(SVCPath(C_max=10.0)).fit(X, y).score(X, y) > 0.95


def test_path_and_solver_agree_along_the_way(cancer, cancer_path):
    X, y = cancer
    gram = Gram(X)
    for C in (1e-3, 0.1, 10.0):
        solution = solve(DualProblem.hinge(gram, 2.0 * y - 1, C), stop=RelativeGap(1e-11))
        assert cancer_path.certificate_at(C).dual >= solution.certificate.dual * (1 - 1e-10)


def test_a_path_that_is_lost_says_so(plain, monkeypatch, one_by_one):
    """Half of the elbow's solution is taken for the whole."""
    X, y, _ = plain
    segment = Lines.segment
    monkeypatch.setattr(Lines, "segment", lambda self: segment(self)._replace(v=0.5 * self.v))
    with pytest.warns(RuntimeWarning, match=r"not exact: the relative gap at C=.*fit SVC"):
        svm_path(X, y, C_min=0.1, C_max=10.0, max_events=20)


def circling(monkeypatch):
    """Make every tenth event look like a circle of ties."""
    steps = SingleEngine.steps

    def tied(self, lam_end, max_events):
        self.calls = getattr(self, "calls", 0) + 1
        self._degenerate_steps = 10**9 if self.calls % 10 == 0 else 0
        return steps(self, lam_end, max_events)

    monkeypatch.setattr(SingleEngine, "steps", tied)


def test_a_tie_is_jumped_where_the_sets_behind_it_reach_back(plain, monkeypatch, one_by_one):
    X, y, _ = plain
    circling(monkeypatch)
    path = svm_path(X, y, C_min=0.1, C_max=10.0)
    assert (path.status, path.n_backups) == ("complete", 0)
    assert path.largest_gap_ <= 1e-9


def test_the_backup_leaves_a_tie_and_says_so(plain, monkeypatch, one_by_one):
    """No data of two classes is known to need it."""
    X, y, _ = plain
    circling(monkeypatch)
    monkeypatch.setattr(SingleEngine, "_reaches", lambda self, lam: False)
    with pytest.warns(RuntimeWarning, match="solved anew a little further on") as told:
        path = svm_path(X, y, C_min=0.1, C_max=10.0)
    assert all(0.1 <= float(re.search(r"at C=(\S+) ", str(warning.message))[1]) <= 10.0 for warning in told)
    assert path.n_backups == path.counts.loop_backups > 0
    assert path.status == "complete"
    between = np.sqrt(path.C[1:] * path.C[:-1])
    assert path.worst_certificate(np.concatenate([path.C, between])).relative_gap <= 1e-9


def summed_exactly(beta, X, bias):
    """Return sum_i beta_i <x_i, x> + bias at every row, rounded once."""
    rows = [[Fraction(v) for v in row] for row in X]
    w = [sum(Fraction(b) * row[k] for b, row in zip(beta, rows, strict=True)) for k in range(X.shape[1])]
    return np.array([float(sum(a * v for a, v in zip(w, row, strict=True)) + Fraction(bias)) for row in rows])


def test_points_far_from_zero_have_the_same_path():
    """The linear kernel is then taken about another origin; the bias is told for the points as they are."""
    rng = np.random.default_rng(0)
    X = rng.integers(-32, 32, (60, 3)) / 16
    y = X[:, 0] + 0.5 * rng.standard_normal(60) > 0
    near, far = (svm_path(X + shift, y, kernel="linear") for shift in (0.0, 1e6))
    assert far.largest_gap_ <= 1e-9
    np.testing.assert_allclose(far.C, near.C, rtol=1e-9)
    for C in (0.01, 1.0, 100.0):
        beta = far.coefficients_at(C)
        assert far.certificate_at(C).primal == pytest.approx(near.certificate_at(C).primal, rel=1e-9)
        values, expected = (
            summed_exactly(p.coefficients_at(C), Z, p.bias_at(C)) for p, Z in ((far, X + 1e6), (near, X))
        )
        # Of the bias, about <w, shift>, float64 keeps sixteen digits, and sum(beta) <shift, x> is lost.
        lost = 1e-16 * 1e6 * np.abs(beta @ X).sum() + abs(math.fsum(beta)) * 1e6 * np.abs(X).sum(axis=1).max()
        np.testing.assert_allclose(values, expected, rtol=0.0, atol=lost + 1e-9)
    model = SVCPath(kernel="linear").fit(X + 1e6, y)
    np.testing.assert_allclose(
        model.decision_function(X + 1e6, C=1.0), X @ (near.coefficients_at(1.0) @ X) + near.bias_at(1.0), atol=1e-8
    )
    np.testing.assert_allclose(
        model.at(1.0).decision_function(X + 1e6), model.decision_function(X + 1e6, C=1.0), atol=1e-8
    )


@pytest.mark.long
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8])
def test_the_path_of_scaled_points_is_as_exact_however_large_c_becomes(scale):
    X = np.random.default_rng(0).standard_normal((300, 4))
    y = X.sum(axis=1) > 0.1
    path = svm_path(X * scale, y, kernel="linear", C_min=1e-2 / scale**2, C_max=1e13 / scale**2)
    assert path.worst_certificate().relative_gap <= 1e-9
    assert path.largest_gap_ <= 1e-9


def test_bias_and_coefficients_belong_to_the_kernel_that_was_asked_for(tmp_path):
    """Far from zero the linear kernel is computed about a centre: that must not be seen."""
    X = np.random.default_rng(0).standard_normal((40, 2))
    y = X[:, 0] + 0.5 * np.random.default_rng(1).standard_normal(40) > 0
    far, path = X + 1e5, svm_path(X + 1e5, y, kernel="linear", C_max=10.0)
    assert path.gram.kernel.centre is not None
    near = svm_path(X, y, kernel="linear", C_max=10.0)
    path.save(tmp_path / "path.npz")
    for C in (1e-3, 0.1, 5.0):
        beta = path.coefficients_at(C)
        values = summed_exactly(beta, far, path.bias_at(C))
        expected = X @ (near.coefficients_at(C) @ X) + near.bias_at(C)
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-8)  # products of 1e5 keep eleven digits
        assert Path.load(tmp_path / "path.npz").bias_at(C) == path.bias_at(C)


@pytest.mark.parametrize("kernel", ["poly", "linear"])
def test_rows_of_a_huge_kernel_have_the_gap_of_their_points(kernel):
    """All rows in one place: K is one number, 1e14 or 1e16, and K times the rounding of sum(beta) is in every f(x)."""
    n = 19
    X, y = np.full((n, 1), -95799999.0 if kernel == "linear" else 1e-9), np.where(np.arange(n) == 8, 1.0, -1.0)
    k = X[0, 0] ** 2 if kernel == "linear" else 1e14
    path = svm_path(X, y, kernel=kernel, gamma=1.0, degree=7, coef0=100.0, C_min=1e-4, C_max=1e3)
    for C in np.geomspace(1e-4, 1e3, 23):
        total, bias = math.fsum(path.coefficients_at(C)), path.bias_at(C)
        assert total * k + bias == pytest.approx(-1.0, abs=1e-9)  # the heavier class is on its margin


def test_the_bias_far_from_the_origin_takes_what_rounding_leaves_of_the_sum():
    """What sum(beta) is off by, times |x|² = 4e9, would be seen in every decision value."""
    rng = np.random.default_rng(0)
    X = 32600.0 + np.round(rng.standard_normal((8, 4)), 3)
    y = np.where(rng.standard_normal(8) > 0, 1.0, -1.0)
    path = svm_path(X, y, kernel="linear", C_min=0.02, C_max=100.0, merge_duplicates=False)
    centred = X - path.gram.kernel.centre
    for C in np.geomspace(0.02, 100.0, 29):
        beta = path.coefficients_at(C)
        expected = centred @ (beta @ centred) + path.bias_in_gram(C)
        lost = 1e-15 * np.abs(beta).sum() * 32600.0 * np.abs(centred).sum(axis=1).max()  # <x - c, c> is rounded
        np.testing.assert_allclose(summed_exactly(beta, X, path.bias_at(C)), expected, rtol=0.0, atol=lost)


def test_a_kernel_without_digits_is_told_wherever_it_shows():
    """An outlier at 2.7e10: the kernel is 1e36 in one place and 1e-3 elsewhere.  At some C the gap is 0.999, at C_max none."""
    values = np.array([0.26898208454375333, 0.4511940901124054, 0.30118626397076415, -2.74e10])
    X = values[[0, 1, 1, 2, 0, 1, 0, 0, 2, 0, 0, 0, 2, 3, 1, 2, 2, 2, 1, 1], None]
    y = np.where(X[:, 0] == values[1], 1.0, -1.0)
    with pytest.warns(RuntimeWarning, match=r"poly kernel has too few digits.*Centre and scale"):
        svm_path(X, y, kernel="poly", gamma=0.00331, degree=2, C_min=0.295, C_max=34800.0)


def test_coefficients_without_enough_digits_are_told():
    """Two places with both labels in each: nothing is separated, beta grows with C, and its last digits times K are seen."""
    X = np.array(
        [[1, 1], [1, 0], [1, 1], [1, 1], [1, 1], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 0], [1, 1.0]]
    )
    y = np.array([-1, 1, 1, 1, 1, -1, 1, -1, 1, -1, -1, 1, 1])
    w = np.array([148, 9.25, 0.0115, 1080, 1.53e-4, 10.2, 0.247, 53.9, 1.19e5, 3.96e-5, 0.216, 0.00688, 0.0124])
    options = {"kernel": "poly", "degree": 7, "C_min": 219.0, "merge_duplicates": False}
    # Whether the last digits cost a gap of 1e-3, or only may, depends on how they fall: on another processor the proof sees it.
    told = (
        r"too few digits.*last digits of its coefficients alone may.*smaller C|not exact: the relative gap.*smaller C"
    )
    with pytest.warns(RuntimeWarning, match=told):
        svm_path(X, y, C_max=1.25e6, sample_weight=w, **options)
    svm_path(X, y, C_max=1e3, **options)  # nothing of the sort: a warning would be an error


def test_a_bias_without_enough_digits_is_told():
    """Far points that sparse matrices of many features leave where they are: K is 9e14, and the bias needs all its digits.

    The one point of the elbow meets its margin by the bias as it is read; another, at its cap, does not.
    """
    X = 15.1e6 + np.array(
        [[-3.99318e-4, 3.8842e-5, -1.110105e-3, -4.82108e-4], [1.001010846, 0.999198493, 1.000495337, 0.999799242],
         [0.99870615, 0.999504928, 1.000032166, 1.000731828], [5.34676e-4, -1.083767e-3, 2.55859e-3, -2.3173e-4],
         [1.000110222, 1.000455799, 1.000381585, 0.999906244], [1.000806674, 0.997920869, 5060.0, 1.00174965],
         [1.000936208, 0.99966214, 0.999502787, 0.999718035], [1.000824679, 1.000910155, 1.001818752, 1.001261724]]
    )  # fmt: skip
    y = np.array([-1, -1, -1, -1, 1, -1, -1, -1])
    # Where products of the matrix round otherwise, the path itself may have the gap.
    with pytest.warns(RuntimeWarning, match="linear kernel has too few digits|path is not exact"):
        svm_path(sp.csr_matrix(np.hstack([X, np.zeros((8, 400))])), y, kernel="linear", C_min=1.76e-05, C_max=2.45e-4)


def test_what_rounding_leaves_of_a_sum_is_put_where_it_is_not_seen():
    """Two heavy points at the origin, where the kernel is zero, and light ones where it is up to 5e17."""
    X = np.array([0.71449703, 0.0, 2.02800606, -0.41217168, 0.0, -0.53160342, -0.03117868, -2.1867942])[:, None]
    y = np.array([-1, -1, -1, -1, 1, 1, -1, -1])
    w = np.array(
        [6925.61282, 1705469.74, 13278.7253, 69.6520715, 239061.015, 0.0119679427, 0.00453378895, 0.0262686583]
    )
    path = svm_path(X, y, kernel="poly", gamma=34.085084, degree=8, C_min=8.31e-7, C_max=2.63e-4, sample_weight=w)
    assert path.worst_certificate(np.geomspace(8.31e-7, 2.63e-4, 200)).relative_gap <= 1e-9


def test_the_closing_check_reads_the_data_only_where_bounds_leave_it_open(monkeypatch):
    X, y = make_moons(150, noise=0.3, random_state=0)
    asked, precise_dot = [], Gram.precise_dot

    def noted(self, beta, rows, *, from_data=True):
        asked.append(from_data)
        return precise_dot(self, beta, rows, from_data=from_data)

    monkeypatch.setattr(Gram, "precise_dot", noted)
    for C_max, sure, expected in ((1e3, 1e-8, set()), (1e5, 1e-8, {False}), (1e5, 1e-10, {False, True})):
        monkeypatch.setattr(exactness, "SURE", sure)
        path = svm_path(X, y, C_max=C_max)
        asked.clear()
        exactness._warn_if_rough(path)
        assert set(asked) == expected


def test_the_bias_about_a_far_origin_says_when_it_has_too_few_digits():
    rng = np.random.default_rng(0)
    X = np.round(1024.0 * rng.standard_normal((16, 2))) / 1024.0  # x + 1e9 has all its digits
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(16) > 0, 1.0, -1.0)
    near, far = (svm_path(X + shift, y, kernel="linear", C_min=1.0, C_max=1e4) for shift in (1e5, 1e9))
    near.bias_at(1e3)  # silent
    with pytest.warns(RuntimeWarning, match=r"so far from the origin.*too few digits at C=1000.*SVCPath"):
        far.bias_at(1e3)
    values = SVCPath(kernel="linear", C_min=1.0, C_max=1e4).fit(X + 1e9, y).decision_function(X + 1e9, C=1e3)
    expected = SVCPath(kernel="linear", C_min=1.0, C_max=1e4).fit(X, y).decision_function(X, C=1e3)
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-9)


def test_the_bias_is_finite_where_rounding_takes_a_class_off_its_margin():
    """Kernel values of 1e33 that differ in their last digits: the margins of the last segment are lost."""
    base = [(0, 0), (0.2, 0), (-0.4, 0), (-1.4, 0), (1.8, 0), (0, -0.3), (0, 1.3), (-0.33, -0.1)]
    X = np.array(base) - 24.4
    y = np.array([1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    w = np.array([3.4e5, 3.5e4, 1.1e5, 9.8e3, 2.3e2, 8.4, 2.8e-4, 8.1e-3])
    with pytest.warns(RuntimeWarning):
        path = svm_path(X, y, kernel="poly", degree=8, coef0=100.0, C_min=909.0, C_max=1e8, sample_weight=w)
    assert np.isfinite(path.bias_at(np.geomspace(909.0, 1e8, 9))).all()


def test_exact_lines_may_end_where_they_begin():
    """Solved again, the lines of a long segment meet a point at once: then there is no long way to shorten."""
    bits = "1110 0010 0111 0001 0011 0110 1011 0110 1010 0001 0111 0101 0101 1000 0110 0110 1101"
    X = 39.0 * np.array([[float(bit) for bit in row] for row in bits.split()])
    y = np.array([1, 1, -1, -1, 1, 1, -1, 1, 1, -1, 1, 1, -1, 1, 1, 1, 1])
    with pytest.warns(RuntimeWarning, match="few digits|not exact"):
        path = svm_path(X, y, kernel="poly", gamma=1.93, degree=5, coef0=0.5, C_min=0.029, C_max=0.849)
    assert path.status == "complete"


def test_what_rounding_leaves_of_the_sum_is_not_put_on_an_outlier():
    """Its coefficient is 1e-9, its kernel value 2e9: 1e-13 more of it, as capped points round, would be a gap of 1e-5."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 1))
    X[5] = -2.34e4
    y = np.where((X[:, 0] > 0) ^ (rng.uniform(size=20) < 0.2), 1.0, -1.0)
    path = svm_path(X, y, kernel="poly", degree=7, coef0=0.5, C_min=66.0, C_max=1e4)
    outlier = int(np.argmax(path.gram.diagonal))
    for C in np.geomspace(66.0, 1e4, 200):
        segment, beta = path.segment_at(C), path.beta_at(C)
        if outlier in segment.points:
            line = C * segment.coefficients(1.0 / C)[segment.points.tolist().index(outlier)]
            assert beta[outlier] == pytest.approx(line, rel=1e-9)
        assert abs(math.fsum(beta)) <= 1e-13 * C


def test_an_origin_whose_square_overflows_is_no_error():
    X = 1e155 * np.array([[1.0, 1.0], [1.0 + 1e-9, 1.0], [1.0, 1.0 + 1e-9], [1.0 - 1e-9, 1.0]])
    path = svm_path(X, [1, -1, 1, -1], kernel="linear", C_min=1e-300, C_max=1e-298)
    assert np.isfinite(path.coefficients_at(1e-299)).all()


def test_a_model_whose_C_the_path_does_not_reach_says_so(cancer):
    with pytest.warns(ConvergenceWarning, match=r"max_events=3.*ends at C="):
        model = SVCPath(C=1.0, max_events=3).fit(*cancer)
    for ask in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match=r"path runs from .* got C=1"):
            ask(cancer[0])
    assert model.predict(cancer[0], C=model.breakpoints_[-1]).shape == cancer[1].shape


def test_a_segment_whose_ends_have_the_same_c_is_none(plain):
    X, y, _ = plain
    path = svm_path(X, y, C_min=0.1, C_max=10.0, max_events=20)
    lam = 0.95 * 2.0 ** np.floor(np.log2(path.end))  # about every second neighbour there has the same reciprocal
    while 1.0 / np.nextafter(lam, 0.0) > 1.0 / lam:
        lam = np.nextafter(lam, 0.0)
    segment = path.engine.segment()
    path.add(segment, lam, [])
    path.add(segment, np.nextafter(lam, 0.0), [])
    path.seal("complete")
    assert (np.diff(path.C) > 0).all()


@pytest.mark.parametrize("factor", [0.5, 1.0 - 1e-9, 1.0 + 1e-9, 2.0])
def test_outside_its_range_a_path_is_not_read(cancer_path, factor):
    C = factor * (cancer_path.C[0] if factor < 1.0 else cancer_path.C[-1])
    name, how = ("C_min", "less") if factor < 1.0 else ("C_max", "more")
    with pytest.raises(ValueError, match=rf"Follow it over a wider range: with {name}={C:g} or {how}\."):
        cancer_path.coefficients_at(C)
    for impossible in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match=r"This path runs from C=.*; got C=.*\. Use C above zero\."):
            cancer_path.coefficients_at(impossible)
