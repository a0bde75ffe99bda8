"""The guards against rounding in engine "single", each on its own: disturb what they watch over, and see it put right."""

import contextlib
import itertools
import warnings
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_moons

from zerogap import DualProblem, Gram, SVCPath, svm_path
from zerogap.active_set import ActiveSet
from zerogap.path import exactness, following, sets, single, start
from zerogap.path.engine import LEFT, RIGHT
from zerogap.path.family import Family
from zerogap.path.lines import Lines
from zerogap.path.screening import Displacement, Screening
from zerogap.path.start import optimal_elbow
from zerogap.path.tolerances import LEFT_OVER


@pytest.fixture
def engine():
    X, y = make_moons(200, noise=0.3, random_state=0)
    return svm_path(X, y, max_events=150).engine


def left_over(engine):
    """How far p_E = 0 and q_E = y_E are from true, from the lines themselves."""
    lines, K = engine.lines, engine.K
    E = lines.points
    p = engine.sets.g[E] + lines.u0 + K[np.ix_(E, E)] @ lines.u
    q = lines.v0 + K[np.ix_(E, E)] @ lines.v
    return np.abs(p).max() + engine.lam * np.abs(q - engine.y[E]).max()


def test_the_bound_contribution_is_summed_afresh_after_so_many_events(monkeypatch):
    X, y = make_moons(300, noise=0.3, random_state=0)
    for module in (single, sets):
        monkeypatch.setattr(module, "REFRESH_EVERY", 50)
    engine = svm_path(X, y, max_events=60).engine
    exact = engine.K[:, engine.status == LEFT] @ (engine.y * engine.w)[engine.status == LEFT]
    engine.sets.g += 1e-6  # as if rounding had gathered
    while engine.counts.events % 50 != 1:
        engine.step(1e-9)
    exact = engine.K[:, engine.status == LEFT] @ (engine.y * engine.w)[engine.status == LEFT]
    np.testing.assert_allclose(engine.sets.g, exact, atol=1e-11)


def test_the_bound_contribution_is_summed_afresh_when_lam_has_halved(engine):
    engine.sets.g += 1e-9
    engine.sets.summed_at = 2.0 * engine.lam + 1e-9
    engine.counts.events = 1  # far from the next refresh by number
    while not np.isclose(engine.sets.summed_at, engine.lam):
        engine.step(1e-9)
        assert engine.counts.events < 10
    exact = engine.K[:, engine.status == LEFT] @ (engine.y * engine.w)[engine.status == LEFT]
    np.testing.assert_allclose(engine.sets.g, exact, atol=1e-11)


def test_a_solution_is_refined_once(engine, monkeypatch):
    """A factor that has lost digits is made up for by what the solution leaves over."""
    solve = engine.lines.system.solve
    monkeypatch.setattr(engine.lines.system, "solve", lambda r, t: tuple(x * (1.0 + 1e-6) for x in solve(r, t)))
    monkeypatch.setattr(engine.lines, "_refine", lambda x, bias, *_: (x, bias))
    engine.lines.solve(engine.lam)
    assert left_over(engine) <= 1e-10


def test_what_stays_unsure_is_refined_further(engine, monkeypatch):
    solve = engine.lines.system.solve
    monkeypatch.setattr(engine.lines.system, "solve", lambda r, t: tuple(x * (1.0 + 1e-3) for x in solve(r, t)))
    engine.lines.solve(engine.lam)
    assert left_over(engine) <= 1e-8


def test_refining_with_the_bound_contribution_forgets_what_is_wrong_in_it(engine):
    E = engine.lines.system.points
    x, bias = np.stack([engine.lines.u, engine.lines.v]), np.array([engine.lines.u0, engine.lines.v0])
    zero, capped_sum = np.zeros(E.size), engine.sets.capped_sum
    engine.sets.g += 1e-5 * np.random.default_rng(0).standard_normal(engine.y.size)
    left = engine.status == LEFT
    exact = engine.K[np.ix_(E, np.flatnonzero(left))] @ (engine.y * engine.w)[left]
    wrong = zero - engine.sets.g[E]
    for margin, total, rests, is_right in ((zero, 0.0, True, True), (wrong, -capped_sum, False, False)):
        margins, totals = np.stack([margin, engine.y[E]]), np.array([total, 0.0])
        (u, _), (u0, _) = engine.lines._refine(x, bias, margins, totals, (rests, False))
        p = exact + u0 + engine.K[np.ix_(E, E)] @ u
        assert (np.abs(p).max() <= 1e-12) == is_right


def test_long_segments_are_solved_for_exactly(engine, monkeypatch):
    calls = []
    solve = Lines.solve
    monkeypatch.setattr(
        Lines, "solve", lambda self, lam, *, exactly=False: calls.append(exactly) or solve(self, lam, exactly=exactly)
    )
    monkeypatch.setattr(single, "LONG", 1.0)  # every segment is long
    engine.step(1e-9)
    assert True in calls
    calls.clear()
    monkeypatch.setattr(single, "LONG", 0.0)
    engine.step(1e-9)
    assert True not in calls


def test_lines_that_were_much_steeper_meanwhile_are_not_trusted(engine):
    engine.lines.solve(engine.lam)
    lines, lam = engine.lines, engine.lam
    size = float(np.abs(lines.u).sum() + lam * np.abs(lines.v).sum())
    tolerance = LEFT_OVER * lam + engine.sets.rounding
    assert lines.hold(lam, 0.0, size)
    assert not lines.hold(lam, 2.0 * tolerance, size)  # what is left over
    assert lines.hold(lam, 0.0, 1e3 * tolerance / lines.scale.unit_error)  # steep now: all they can be
    assert not lines.hold(lam, 0.0, size)  # but flat again, with the rounding of then


def test_margins_of_the_last_segment_are_met_with_room(monkeypatch):
    X = np.array([[0.0, 0.0], [1.0, 0.3], [3.0, 1.0], [4.0, 0.2]])
    engine = svm_path(X, [0, 0, 1, 1], kernel="linear", C_max=1e6).engine
    assert engine.sets.n_capped == 0
    lines = engine.lines
    lines.v *= 1.0 - 1e-12
    lines._clear_margins()
    assert (engine.y * (engine.K[:, lines.points] @ lines.v + lines.v0)).min() >= 1.0


def test_without_capped_points_nothing_is_left_of_their_contribution(engine):
    left = np.flatnonzero(engine.status == LEFT)
    engine.sets.g += 1e-9
    for i in left:
        engine._set(int(i), 0)
    assert engine.sets.n_capped == 0
    assert not engine.sets.g.any()
    assert engine.sets.capped_sum == 0.0


def test_screening_is_safe_for_displacements_it_allows():
    screening = Screening(np.eye(3), np.ones(3), 25)
    assert screening.is_safe(Displacement(1e9, 1e9, 1e9))  # all are evaluated
    screening.kept = screening.kept._replace(
        is_screened=True, allowed=Displacement(1.0, 1.0, 1.0), since=Displacement(0.5, 0.5, 0.5)
    )
    assert screening.is_safe(Displacement(0.5, 0.5, 0.5))
    for k in range(3):
        assert not screening.is_safe(Displacement(*np.where(np.arange(3) == k, 0.6, 0.1)))


def test_before_a_displacement_that_is_not_safe_all_points_are_evaluated(engine, monkeypatch):
    looks, look = [], Screening.evaluate_all
    monkeypatch.setattr(Screening, "evaluate_all", lambda self, *lines: looks.append(lines) or look(self, *lines))
    for is_covered in (True, False):
        engine.lines.solve(engine.lam)
        looks.clear()
        monkeypatch.setattr(Screening, "is_safe", lambda self, move, answer=is_covered: answer)
        engine.step(1e-9)
        assert bool(looks) is not is_covered


def test_the_elbow_of_dependent_points_changes_no_decision_value(monkeypatch):
    """On a line two points are independent: of twelve that are free ten go to a bound, and the others answer."""
    monkeypatch.setattr(ActiveSet, "descend", lambda self, problem, drift=0.0: False)
    monkeypatch.setattr(ActiveSet, "optimise", lambda self, problem, tolerance: 0)
    rng, y = np.random.default_rng(0), np.tile([1.0, -1.0], 6)
    gram = Gram(rng.standard_normal((12, 1)), "linear")
    b = y * np.repeat(rng.uniform(0.2, 0.8, 6), 2)
    start = optimal_elbow(gram, Family.hinge(y, np.ones(12)), 1.0, b)
    assert start.system.points.size == 2
    np.testing.assert_allclose(gram.full() @ start.b, gram.full() @ b, atol=1e-13)
    assert start.b.sum() == pytest.approx(0.0, abs=1e-14)
    assert ((y * start.b >= 0.0) & (y * start.b <= 1.0)).all()


def test_points_that_exchanges_have_not_come_to_go_to_the_nearer_bound(monkeypatch):
    monkeypatch.setattr(ActiveSet, "_collect", lambda self, problem: None)
    monkeypatch.setattr(ActiveSet, "optimise", lambda self, problem, tolerance: 0)
    y, w = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, 4.0, 4.0])
    start = optimal_elbow(Gram(np.arange(4.0)[:, None]), Family.hinge(y, w), 1.0, y * np.array([0.3, 0.7, 3.0, 2.6]))
    a = y * start.b
    assert start.system.points.size == 1
    rest = np.setdiff1d(np.arange(4), start.system.points)
    np.testing.assert_array_equal(a[rest], np.array([0.0, 1.0, 4.0, 4.0])[rest])
    np.testing.assert_array_equal(start.status[rest], np.array([RIGHT, LEFT, LEFT, LEFT])[rest])


def test_an_exact_solution_sums_the_bound_contribution_exactly_too(engine, monkeypatch):
    calls, refine = [], Lines._refine

    def noted(self, x, bias, margins, totals, rests):
        calls.append(rests)
        return refine(self, x, bias, margins, totals, rests)

    monkeypatch.setattr(Lines, "_refine", noted)
    engine.lines.solve(engine.lam, exactly=True)
    assert calls == [(True, False)]


@pytest.mark.parametrize("engine", ["single", "lp"])
@pytest.mark.parametrize(
    "kernel",
    [{"kernel": "sigmoid", "coef0": -0.5}, {"kernel": "poly", "coef0": -1.0}, {"kernel": lambda A, B: -(A @ B.T)}],
)
def test_indefinite_kernels_are_refused_at_the_door(kernel, engine):
    X, y = np.random.default_rng(0).standard_normal((12, 3)), np.arange(12) % 2
    options = {"gamma": 0.5, **kernel}
    with pytest.raises(ValueError, match=r"svm_path needs a positive semidefinite kernel.*use SVC"):
        svm_path(X, y, engine=engine, **options)
    with pytest.raises(ValueError, match="svm_path needs a positive semidefinite kernel"):
        SVCPath(engine=engine, **options).fit(X, y)


def test_kernels_that_are_positive_on_the_data_are_not_refused():
    X, y = np.random.default_rng(0).standard_normal((12, 3)), np.arange(12) % 2
    for kernel in ({"kernel": lambda A, B: A @ B.T}, {"kernel": "sigmoid", "gamma": 1e-300, "coef0": 0.5}):
        assert svm_path(X, y, **kernel).largest_gap_ <= 1e-9


def test_a_path_without_any_gap_names_a_c_of_its_own():
    path = svm_path(np.zeros((2, 1)), [0, 1], kernel="linear", engine="lp")
    assert path.largest_gap_ == 0.0
    assert path.C[0] <= path.largest.C <= path.C[-1]


def test_rows_that_share_a_coefficient_may_have_too_few_digits_for_it():
    """One place with both labels: K is 1e16, and what rows of very different weights have too much in all is seen."""
    y, said = np.where(np.arange(18) < 4, -1, 1), []
    options = {"kernel": "poly", "gamma": 1.0, "degree": 8, "C_min": 9e-7, "C_max": 1e-3}
    for seed in range(10):  # in some it is seen by the proof already, in some there is little of it
        rng = np.random.default_rng(seed)
        w = np.ldexp(rng.uniform(1.0, 2.0, 18), rng.integers(-20, 20, 18))  # the same on every processor
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            path = svm_path(np.zeros((18, 1)), y, coef0=100.0, sample_weight=w, **options)
        said += [str(warning.message) for warning in caught]
        C = np.geomspace(9e-7, 1e-3, 50)
        assert caught or max(c.gap / c.primal for c in path.certificates(C, precisely=False)) <= 1e-9
        if w[y < 0].sum() > 1.0:  # a bound in which the whole other class of 1e6 counts is too large otherwise
            svm_path(np.zeros((18, 1)), y, coef0=1.0, sample_weight=w, **options)
    assert any("last digits of its coefficients" in words for words in said)


def beside_an_elbow(heavy):
    """Kernel matrix, labels and weights: the first two points are the same, and one of them is enough in the elbow."""
    x = np.array([0.0, 0.0, 1e-6, 30.0])
    return (
        np.exp(-0.05 * np.square(x[:, None] - x)),
        np.array([1, 1, -1, -1]),
        np.array([0.0761, heavy, 0.0553, 2.4e-5]),
    )


def test_a_heavy_point_on_the_margin_beside_the_elbow_has_too_few_digits_too():
    """The rounding of the others' coefficients costs C times its weight, as it does at points of the elbow."""
    options = {"kernel": "precomputed", "C_min": 100.0, "C_max": 1e8}
    for heavy, told in ((300.0, pytest.warns(RuntimeWarning, match="last digits of its coefficients")),
                        (1.0, contextlib.nullcontext())):  # fmt: skip
        K, y, w = beside_an_elbow(heavy)
        with told:
            path = svm_path(K, y, sample_weight=w, **options)
        assert path.segment_at(1e6).points.tolist() == [0, 3]
        assert path.on_margin_at(1e6).tolist() == [0, 1, 3]
        several = np.geomspace(1e7, 1e8, 10)
        gaps = [exact_gap(K, y, w, C, path.coefficients_at(C), path.bias_at(C)) for C in several]
        assert (max(gaps) > 1e-7) == (heavy == 300.0)


def exact_gap(K, y, w, C, beta, bias):
    """Return the relative gap of coefficients and a bias as they are, in fractions."""
    K, beta, w = ([Fraction(x) for x in np.ravel(values)] for values in (K, beta, w))
    n, bias, y = len(y), Fraction(float(bias)), [int(label) for label in y]
    f = [sum(K[n * i + j] * beta[j] for j in range(n)) for i in range(n)]
    energy = sum(x * y for x, y in zip(beta, f, strict=True))
    loss = Fraction(C) * sum(w[i] * max(1 - y[i] * (f[i] + bias), Fraction(0)) for i in range(n))
    dual = sum(y[i] * beta[i] for i in range(n)) - energy / 2
    return float(1 - dual / (energy / 2 + loss))


def test_a_bias_about_a_far_origin_counts_all_points_on_their_margins():
    """Two rows of four points: three of them are independent, and all eight are on their margins."""
    X = np.array([(side, j) for side in (-1.0, 1.0) for j in range(4)]) + 1.3e6
    x, y, silent = np.array([[Fraction(value) for value in row] for row in X]), np.repeat([-1, 1], 4), 0
    for seed in (15, 29):
        w = 10.0 ** np.random.default_rng(seed).uniform(-4.0, 4.0, 8)
        path = svm_path(X, y, kernel="linear", sample_weight=w, C_min=1.0, C_max=1e3)
        for C in np.geomspace(1.0, 1e3, 20):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                bias = path.bias_at(C)
            if not told:
                silent += 1
                assert exact_gap(x @ x.T, y, w, C, path.coefficients_at(C), bias) <= 1e-7
    assert 0 < silent < 40


def test_the_point_that_is_put_into_an_empty_elbow_ends_the_interval_of_the_bias():
    """Where C is tiny all are capped, if the classes weigh the same."""
    X, y = make_moons(60, noise=0.3, random_state=0)
    gram, y = Gram(X), 2.0 * y - 1.0
    for lam in (1e3, 1e6):
        start = optimal_elbow(gram, Family.hinge(y, np.ones(60)), lam, y)
        bounds = lam * y - gram.full() @ y  # the bias with each point on its margin
        assert start.system.points.tolist() == [np.flatnonzero(y < 0)[np.argmax(bounds[y < 0])]]
        assert start.is_optimal
        np.testing.assert_array_equal(start.b, y)
        assert ((start.status == LEFT).sum(), (start.status == RIGHT).sum()) == (59, 0)


def test_the_start_is_about_the_heavier_class(monkeypatch):
    """Its targets are zero, so that its residuals are as precise as decision values, however large lam is."""
    targets = []

    def seen(*args, **options):
        targets.append(args[1])
        return DualProblem(*args, **options)

    monkeypatch.setattr(start, "DualProblem", seen)
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.repeat([1.0, -1.0], [8, 4])
    for sign, weight in ((1.0, np.ones(12)), (-1.0, np.ones(12)), (1.0, np.where(y > 0, 0.1, 1.0))):
        svm_path(X, sign * y, sample_weight=weight, C_min=1e-3, C_max=1.0)
        heavier = sign * y * np.sign(weight @ (sign * y)) > 0
        assert np.count_nonzero(targets[-1] == 0.0) == heavier.sum()


def test_some_C_at_which_kernel_values_are_looked_at_again_are_inside_segments():
    X, y = np.array([[0.0], [1.0], [3.0]]), np.array([-1, 1, -1])
    path = svm_path(X, y, C_max=50.0)
    assert 2 < len(path) <= exactness.SAMPLES
    samples = exactness._samples(path)
    for begin, end in itertools.pairwise(path.C):
        assert np.isclose(samples, np.sqrt(begin * end), rtol=1e-12).any()


@pytest.mark.parametrize(
    ("size", "weight", "is_refused"), [(5e299, 0.1, False), (2e300, 0.1, True), (1e200, 1e51, True)]
)
def test_what_overflows_is_refused_and_nothing_less(size, weight, is_refused):
    gram = SimpleNamespace(diagonal=np.array([size, 1.0]))
    family = SimpleNamespace(w=np.full(2, 0.5 * weight))
    path = SimpleNamespace(gram=gram, family=family, scale_at=lambda C: C)
    with pytest.raises(ValueError, match="objective overflows") if is_refused else contextlib.nullcontext():
        following.refuse_overflow(path, 1.0)


def test_kernel_values_that_are_hardly_numbers():
    """In their units C would be zero, and lam infinite."""
    X, y = np.full((2, 1), -7.712829682207436e-79), np.array([1.0, -1.0])
    path = svm_path(X, y, kernel="poly", gamma=0.68, degree=2, C_min=2.59e-06, C_max=0.000127)
    assert path.largest_gap_ <= 1e-9
