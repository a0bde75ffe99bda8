"""Engines "lp" and "hastie", and the linear systems of the elbow, against engine "single" and dense algebra."""

import itertools

import numpy as np
import pytest
import scipy.linalg
from conftest import KINDS, points
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from zerogap import DualProblem, Gram, Path, SVCPath, svm_path
from zerogap.path import LP, Hastie, lp
from zerogap.path.bordered_matrix import LINEAR_SYSTEMS
from zerogap.path.engine import ELBOW, LEFT, RIGHT, balanced
from zerogap.path.family import Family
from zerogap.path.hastie import largest_lam
from zerogap.path.lp import LPEngine, LPStep
from zerogap.solvers import SOR

# The paper's tolerances allow errors of a thousandth; with these the same algorithm is as exact as increments can be.
TIGHT = {"epsilon_kkt": 1e-9, "epsilon_smo": 1e-11, "tau": 1e-9, "tau_2": 1e-13}


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:300], y[:300]


# The bordered matrix.


def elbow_matrix(K, y, E):
    A = np.zeros((len(E) + 1, len(E) + 1))
    A[0, 1:] = A[1:, 0] = y[E]
    A[1:, 1:] = np.outer(y[E], y[E]) * K[np.ix_(E, E)]
    return A


@pytest.mark.covering
@pytest.mark.parametrize("name", LINEAR_SYSTEMS)
@pytest.mark.parametrize("rank", [2, 40])
def test_all_solutions_of_the_elbow_system_are_found(name, rank):
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((40, rank))
    K, y = Z @ Z.T, np.where(rng.random(40) < 0.5, -1.0, 1.0)
    K, y = (K, y) if rank == 40 else (K, np.ones(40))  # of one class, any number of points can lie on a margin
    system = LINEAR_SYSTEMS[name](K, y, 1e-14)
    E = list(range(10))
    for change in range(60):
        if change % 3 == 2:
            del E[int(rng.integers(len(E)))]
        else:
            E.append(int(rng.choice(np.setdiff1d(np.arange(40), E))))
        d, null = system.directions(np.array(E))
        A, ones = elbow_matrix(K, y, E), np.concatenate([[0.0], np.ones(len(E))])
        assert null.shape[1] == len(E) + 1 - np.linalg.matrix_rank(A)
        assert np.abs(A @ d - ones).max() <= 1e-8
        assert np.abs(A @ null).max(initial=0.0) <= 1e-9
        np.testing.assert_allclose(null.T @ null, np.eye(null.shape[1]), atol=1e-10)


def test_an_insertion_that_would_be_singular_is_foreseen(monkeypatch):
    rng = np.random.default_rng(1)
    Z = rng.standard_normal((12, 12))
    Z[9] = 0.25 * Z[:4].sum(axis=0)  # in the affine hull of four others
    K, y = Z @ Z.T, np.ones(12)
    system = LINEAR_SYSTEMS["qr-update"](K, y, 1e-14)
    assert system.directions(np.arange(8)).null.shape[1] == 0
    fresh, qr = [], scipy.linalg.qr
    monkeypatch.setattr(scipy.linalg, "qr", lambda *a, **k: fresh.append(1) or qr(*a, **k))
    assert system.directions(np.arange(9)).null.shape[1] == 0
    assert not fresh  # updated
    assert system.directions(np.arange(10)).null.shape[1] == 1
    assert fresh  # made anew


# Engine "lp".


def assert_within_tolerance(path, weight):
    """A violation of v costs at most v times the width of all boxes; along a segment v grows as 1/lam does."""
    for before, C in itertools.pairwise(path.C):
        for c in (np.sqrt(before * C), C):
            assert path.certificate_at(c).gap <= 1.1 * TIGHT["epsilon_kkt"] * (c / before) * c * weight + 1e-12


@pytest.mark.long
@pytest.mark.parametrize("linear_system", LINEAR_SYSTEMS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("merge", [pytest.param(True, marks=pytest.mark.long), False])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("huge", "tiny")])
def test_lp_is_as_exact_as_its_tolerances(kind, kernel, merge, linear_system):
    X, y, _ = points(kind)
    path = svm_path(
        X, y, kernel=kernel, C_min=1e-2, C_max=10.0, merge_duplicates=merge, engine=LP(linear_system, **TIGHT)
    )
    assert path.status == "complete"
    assert_within_tolerance(path, y.size)


@pytest.mark.long
@given(st.integers(0, 10**6))
@example(1481)  # segments so short that their slope is rounding
@example(3797)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_lp_ends_on_integer_data_full_of_duplicates(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 25)), int(rng.integers(1, 4))
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    y = np.concatenate([[-1, 1], rng.choice([-1, 1], size=n - 2)])
    weight = rng.choice([0.5, 1.0, 2.0], size=n)
    system = tuple(LINEAR_SYSTEMS)[seed % 3]
    path = svm_path(
        X, y, kernel=["linear", "rbf"][seed % 2], sample_weight=weight, C_min=1e-2, C_max=10.0, merge_duplicates=False,
        engine=LP(system, **TIGHT),
    )  # fmt: skip
    assert path.status == "complete"
    assert_within_tolerance(path, weight.sum())


@pytest.mark.long
def test_lp_with_the_papers_values_stays_within_its_tolerance(cancer):
    X, y = cancer
    path = svm_path(X, y, engine="lp", linear_system="qr-update", C_max=100.0)
    exact = svm_path(X, y, C_max=100.0)
    assert path.counts.largest_elbow == exact.counts.largest_elbow
    assert abs(path.counts.events - exact.counts.events) <= 5
    for C in 10 ** np.random.default_rng(0).uniform(-4, 2, 50):
        assert path.certificate_at(C).gap <= 1.1e-3 * C * y.size


def test_duplicates_make_a_null_space_unless_they_are_merged():
    X, y, _ = points("duplicates")
    kept = svm_path(X, y, C_max=10.0, engine=LP(**TIGHT), merge_duplicates=False)
    merged = svm_path(X, y, C_max=10.0, engine=LP(**TIGHT))
    assert kept.counts.largest_null_space > merged.counts.largest_null_space == 0
    for C in (0.01, 1.0, 9.0):
        assert kept.certificate_at(C).dual == pytest.approx(merged.certificate_at(C).dual, rel=1e-6)


def test_without_the_check_errors_stay_and_with_it_they_are_repaired():
    """Table III: an inexact start makes slacks grow as 1/lam; the check notices, the backup repairs."""
    X, y, _ = points("plain")
    loose = {"epsilon_smo": 1e-2, "epsilon_kkt": 1e-5}
    drifting = svm_path(X, y, gamma=2.0, C_min=1e-2, engine=LP(check_kkt=False, **loose))
    repaired = svm_path(X, y, gamma=2.0, C_min=1e-2, engine=LP(**loose))
    assert drifting.counts.kkt_backups == 0
    assert repaired.counts.kkt_backups > 0
    assert repaired.certificate_at(100.0).gap <= 1e-5 * 100.0 * y.size < drifting.certificate_at(100.0).gap


@pytest.mark.parametrize(("side", "crossing"), [(LEFT, -1.0), (RIGHT, 1.0)])
def test_of_points_on_the_margin_those_that_would_cross_it_are_special(side, crossing, plain):
    """(S3) and (S4): they block the way although they are where they belong."""
    engine = svm_path(*plain[:2], engine="lp", max_events=20).engine
    E, i = np.array(engine.elbow), int(np.flatnonzero(engine.status == side)[0])
    engine.slack[i] = 0.0
    for rate, moves in ((crossing, {i: ELBOW}), (-crossing, {})):
        p = np.zeros(engine.y.size)
        p[i] = rate
        assert engine._special(E, p, np.zeros(E.size + 1)) == moves


@pytest.mark.parametrize(("side", "rate"), [(LEFT, -1.0), (RIGHT, 1.0)])
def test_of_coefficients_at_their_bounds_those_that_would_pass_them_are_special(side, rate, plain):
    """(S1) and (S2): they block the way although they are where they belong; one inside its box does not."""
    engine = svm_path(*plain[:2], engine="lp", max_events=20).engine
    E, inside = np.array(engine.elbow), 0.5 * engine.w[engine.elbow[0]]
    bound = engine.w[E[0]] if side == LEFT else 0.0
    engine.alpha[E] = 0.5 * engine.w[E]
    d = np.zeros(E.size + 1)
    for alpha, direction, moves in ((bound, rate, {int(E[0]): side}), (bound, -rate, {}), (inside, rate, {})):
        engine.alpha[E[0]], d[1] = alpha, direction
        assert engine._special(E, np.zeros(engine.y.size), d) == moves


@pytest.mark.parametrize(("side", "rate"), [(LEFT, -1e-3), (RIGHT, 1e-3)])
def test_a_coefficient_that_goes_past_its_bound_is_no_longer_free(side, rate, plain):
    """At a rate that the program takes for zero: lam falls, and no constraint stops it."""
    engine = svm_path(*plain[:2], engine="lp", max_events=20).engine
    E, p, q, d = engine._linearise()
    i, bound = int(E[0]), engine.w[E[0]] if side == LEFT else 0.0
    engine.alpha[i] = bound
    d = d._replace(particular=np.eye(1, E.size + 1, 1)[0] * rate)
    move = LPStep(
        -1e-3 * engine.lam, np.zeros(q.shape[1]), np.zeros(E.size, dtype=bool), np.zeros(engine.y.size, dtype=bool)
    )
    engine._update(move, E, p, q, d, 1e-9)
    assert engine.status[i] == side
    assert engine.alpha[i] == bound
    assert i not in engine.elbow


def test_looping_calls_the_backup(plain, monkeypatch):
    X, y, _ = plain
    program = LPEngine._program

    def stuck(self, E, p, q, d, lam_end):
        move = program(self, E, p, q, d, lam_end)
        if 30 < self.counts.events < 40:  # as if no point could move
            return move._replace(delta=0.0, reached=move.reached & False, touched=move.touched & False)
        return move

    monkeypatch.setattr(LPEngine, "_program", stuck)
    path = svm_path(X, y, C_min=1e-2, C_max=100.0, engine=LP(ell=5, **TIGHT))
    assert path.counts.loop_backups == 1
    assert path.status == "complete"
    assert path.worst_certificate().relative_gap <= 1e-6


def test_backups_that_lead_to_no_event_grow(plain, monkeypatch):
    """By the paper's step, a hundredth of lam, 920 backups lead from one C to ten thousand times as much."""
    X, y, _ = plain
    monkeypatch.setattr(LPEngine, "_program", lambda *arguments: None)  # as if every program were contradictory
    with pytest.warns(RuntimeWarning, match="not exact"):
        path = svm_path(X, y, C_min=1e-2, C_max=100.0, engine="lp")
    assert path.status == "complete"
    assert 10 < path.counts.loop_backups <= 40


def test_a_violation_that_rounding_makes_of_none_calls_no_backup(plain):
    """At C=1e4 a decision value is known to 1e-9: less cannot be asked for, whatever the options say."""
    X, y, _ = plain
    engine = LP(epsilon_kkt=1e-15).start(Gram(X, "linear"), Family.hinge(y, np.ones(y.size)), 1e-4)
    size = 1.0 + np.abs(engine.alpha).sum() / engine.lam * np.diagonal(engine.K).max()
    assert 1e-15 < engine._kkt_tolerance() == pytest.approx(8.0 * 2.0**-53 * size)
    engine.options = LP(epsilon_kkt=1e-2)
    assert engine._kkt_tolerance() == 1e-2


@pytest.mark.parametrize("status", [1, pytest.param(2, marks=pytest.mark.long), 4])
def test_a_program_that_is_not_solved_calls_the_backup(status, monkeypatch):
    """HiGHS gives up at its limit of iterations (1), or where rounding makes constraints contradict each other (2, 4)."""
    X, y, _ = points("duplicates")
    solved, limits = lp.linprog, []

    def failing(*arguments, **options):
        limits.append(options["options"]["maxiter"])
        result = solved(*arguments, **options)
        if len(limits) == 2:
            result.status = status
        return result

    monkeypatch.setattr(lp, "linprog", failing)
    path = svm_path(X, y, engine=LP(**TIGHT), merge_duplicates=False, C_max=10.0)
    assert len(limits) >= 2
    assert all(0 < limit < 10**5 for limit in limits)
    assert path.counts.loop_backups > 0
    assert path.status == "complete"
    assert_within_tolerance(path, y.size)


def test_the_start_of_smo_is_the_papers():
    y = np.array([1.0, 1, -1, 1, -1, 1])
    np.testing.assert_array_equal(balanced(y, np.ones(6)), [0, 0, 1, 1, 1, 1])
    alpha = balanced(y, np.array([1.0, 2, 1, 3, 1.5, 1]))
    assert alpha @ y == 0
    np.testing.assert_array_equal(alpha, [0, 0, 1, 1.5, 1.5, 1])


def test_recomputed_slacks_give_the_same_path(plain):
    X, y, _ = plain
    a, b = (svm_path(X, y, C_max=100.0, engine=LP(incremental=value, **TIGHT)) for value in (True, False))
    C, other = (np.array([event.C for event in path.events]) for path in (a, b))
    assert np.abs(C[:, None] / other - 1).min(axis=0).max() <= 1e-6
    for c in np.geomspace(1e-3, 100.0, 20):
        assert a.certificate_at(c).dual == pytest.approx(b.certificate_at(c).dual, rel=1e-8)


def test_counts_survive_storing_and_resuming(plain, tmp_path):
    X, y, _ = plain
    part = svm_path(X, y, engine="lp", max_events=20)
    assert (part.status, part.counts.events) == ("max_events", 20)
    part.save(tmp_path / "part.npz")
    loaded = Path.load(tmp_path / "part.npz", part.gram)
    assert loaded.counts == part.counts
    svm_path(X, y, engine="lp", resume=part)
    svm_path(X, y, engine="lp", resume=loaded)
    for path in (part, loaded):
        assert path.status == "complete"
        assert path.counts.events > 20
        assert path.certificate_at(50.0).gap <= 1.1e-3 * 50.0 * y.size


def monk_1():
    """The test set of the first monk's problem is every combination of its attributes, under a rule."""
    X = np.array(list(itertools.product(*(range(1, k + 1) for k in (3, 3, 2, 3, 4, 2)))), dtype=float)
    return StandardScaler().fit_transform(X), np.where((X[:, 0] == X[:, 1]) | (X[:, 4] == 1), 1.0, -1.0)


@pytest.mark.long
def test_lp_starts_without_false_elbows():
    """216 points of each class are at their caps where C is small: rounding in the start must put none of them on the elbow."""
    X, y = monk_1()
    path = svm_path(X, y, gamma=2.0, C_min=1e-4, C_max=1e3, engine=LP("qr-update"), merge_duplicates=False)
    counts = path.counts
    assert (counts.events, counts.largest_elbow, counts.kkt_backups, counts.loop_backups) == (
        32,
        432,
        0,
        0,
    )  # Table III


@pytest.mark.long
def test_lp_needs_no_check_where_its_start_is_right():
    X, y = monk_1()
    blind = svm_path(X, y, gamma=2.0, C_min=1e-4, C_max=1e3, engine=LP("qr", check_kkt=False), merge_duplicates=False)
    assert blind.largest_gap_ <= 1e-4


@pytest.mark.parametrize("off", [1e-16, 1e-12, 5e-10])
def test_points_next_to_a_bound_are_at_it_unless_their_slack_says_otherwise(off):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(8, 3)), np.full(8, 2.0)
    y = np.array([1.0, -1] * 4)
    engine = LP().start(Gram(X), Family.hinge(y, w), 1e3)  # all are capped, far from their margins
    assert (engine.status == LEFT).all()
    alpha = w * (1.0 - off * np.linspace(0.0, 1.0, 8))
    engine._place(engine.lam, alpha, engine.bias)
    assert (engine.status == LEFT).all()
    np.testing.assert_array_equal(engine.alpha, w)
    # At zero with a slack far above zero no point is right: it is on its way up, and so on the elbow.
    alpha[3] = 2.0 * off
    engine._place(engine.lam, alpha, engine.bias)
    assert engine.elbow == [3]
    assert abs(y @ engine.alpha - y @ alpha) <= 1e-15 * w.sum()  # what the others were moved by


@pytest.mark.parametrize("solver", ["simple-svm", pytest.param("rosen", marks=pytest.mark.long)])
def test_lp_starts_and_backs_up_by_any_solver(cancer, solver):
    X, y = cancer
    loose = {"epsilon_smo": 1e-3, "epsilon_kkt": 1e-6, "gamma": 0.2}
    path = svm_path(X[:80], y[:80], gamma=2.0, C_min=1e-2, C_max=10.0, engine=LP(solver=solver, **loose))
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-3
    with pytest.raises(ValueError, match="Unknown solver 'qp'"):
        LP(solver="qp")


@pytest.mark.parametrize("solver", ["npa", "direct-svm", "gradient-ascent", "sor", "cg", "cholesky", SOR(omega=1.3)])
def test_lp_refuses_a_solver_that_cannot_start_a_path_and_names_those_that_can(solver):
    with pytest.raises(ValueError, match=r"path starts from the soft margin.*'smo'.*'simple-svm'") as error:
        LP(solver=solver)
    assert "fit_intercept" not in str(error.value)  # which svm_path does not have
    assert "'npa'," not in str(error.value)


# Engine "hastie".


def test_hastie_agrees_where_nothing_is_degenerate(cancer):
    X, y = cancer
    plain, exact = svm_path(X, y, engine="hastie", C_max=10.0), svm_path(X, y, C_max=10.0)
    # Where the elbow would be empty, engine "single" keeps a point there and may so have a breakpoint more.
    nearest = np.abs(np.array([event.C for event in plain.events])[:, None] / exact.C - 1).min(axis=1)
    assert nearest.max() <= 1e-6
    assert exact.n_events - 5 <= plain.n_events <= exact.n_events
    assert plain.worst_certificate(exact.C).relative_gap <= 1e-6


def test_hastie_tells_what_comes_to_the_elbow_where_it_starts():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((35, 3)), np.repeat([-1, 1], [15, 20])
    X[y > 0] += 1
    plain, exact = (svm_path(X, y, engine=engine, C_min=1e-4, C_max=10.0) for engine in ("hastie", "single"))
    assert [event[1:] for event in plain.events] == [event[1:] for event in exact.events]
    assert [event.C for event in plain.events] == pytest.approx([event.C for event in exact.events])
    # A path that ends before has none of it, and one that is resumed from there has it once.
    part = svm_path(X, y, engine="hastie", C_min=1e-4, C_max=0.5 * exact.events[0].C)
    assert part.events == []
    whole = svm_path(X, y, engine="hastie", C_max=10.0, resume=part)
    assert [event[1:] for event in whole.events] == [event[1:] for event in exact.events]
    assert whole.largest_gap_ <= 1e-9


def test_hastie_gets_over_an_empty_elbow():
    """Two pairs of capped points: between their events no point is on the margin."""
    X = np.array([[0.0], [3.0], [1.0], [2.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    path = svm_path(X, y, kernel="linear", engine="hastie", C_max=10.0)
    assert path.n_free.min() == 0
    assert path.worst_certificate(np.sqrt(path.C[1:] * path.C[:-1])).relative_gap <= 1e-9


@pytest.mark.parametrize("weights", ["equal", "classes", "rows"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hastie_starts_where_both_classes_first_have_points_on_their_margins(kernel, weights):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 2)), np.repeat([1.0, -1.0], [10, 10])
    w = {"equal": np.ones(20), "classes": np.where(y > 0, 1.0, 0.9), "rows": rng.uniform(0.5, 2.0, 20)}[weights]
    gram = Gram(X, kernel)
    start = largest_lam(gram, y, w)

    def certificate(lam):
        problem = DualProblem.hinge(gram, y, 1.0 / lam, sample_weight=w)
        beta = y * np.where(start.alpha == w, problem.upper - problem.lower, start.alpha / lam)
        r = problem.residual(beta)
        return problem.certify(beta).relative_gap, problem.bias_interval(beta, r)

    for lam in (start.lam, 2.0 * start.lam, 1e3 * start.lam):  # above it the coefficients in units of C stay
        gap, (b_up, b_low) = certificate(lam)
        assert gap <= 1e-12
        assert b_up - 1e-9 <= start.bias(lam) / lam <= b_low + 1e-9
    b_up, b_low = certificate(start.lam)[1]
    assert b_up == pytest.approx(b_low, abs=1e-9)  # no room is left for the bias: points of both classes are there
    assert certificate(0.99 * start.lam)[0] > 1e-6
    engine = Hastie().start(gram, Family.hinge(y, w), 1e9 * start.lam)
    assert engine.lam == pytest.approx(start.lam, rel=1e-12)
    assert {float(y[i]) for i in engine.elbow} == {-1.0, 1.0}
    further = Hastie().start(
        gram, Family.hinge(y, w), 0.5 * start.lam
    )  # a path that begins at a larger C is followed up to there
    assert further.lam == pytest.approx(0.5 * start.lam, rel=1e-12)
    assert not further.transitions


@pytest.mark.filterwarnings(
    "ignore:The rbf kernel has too few digits"
)  # a rounding of the bias costs 1e6 times as much
@pytest.mark.parametrize("engine", ["hastie", "lp"])
def test_a_class_that_weighs_next_to_nothing_leaves_small_coefficients_and_not_none(engine):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(12, 2)), np.repeat([1.0, -1.0], [6, 6])
    path = svm_path(X, y, sample_weight=np.where(y > 0, 1e6, 1e-6), engine=engine, C_min=1e-3, C_max=1.0)
    assert path.status == "complete"
    for C in (1e-2, 1.0):
        beta = path.coefficients_at(C)
        assert beta[y > 0].sum() == pytest.approx(6e-6 * C, rel=1e-6)  # the lighter class is capped throughout


def test_hastie_names_the_engine_to_use_on_singular_systems():
    X, y, _ = points("duplicates")
    with pytest.raises(np.linalg.LinAlgError, match="engine='single'"):
        svm_path(X, y, engine="hastie", merge_duplicates=False)
    X = np.random.default_rng(0).integers(0, 3, size=(60, 2)).astype(float)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    with pytest.raises(np.linalg.LinAlgError, match="engine='single'"):
        svm_path(X, y, kernel="linear", engine="hastie")


# The door.


def test_engines_are_names_or_options(plain, cancer):
    X, y, _ = plain
    with pytest.raises(ValueError, match=r"choice of engine 'lp'.*'single'"):
        svm_path(X, y, linear_system="qr")
    with pytest.raises(ValueError, match=r"linear_system.*'svd', 'qr', 'qr-update'"):
        svm_path(X, y, engine="lp", linear_system="lu")
    with pytest.raises(TypeError, match="name or configured options"):
        svm_path(X, y, engine=3)
    with pytest.raises(ValueError, match="tau_2 must be above 0"):
        LP(tau_2=0.0)
    model = SVCPath(engine="lp", linear_system="qr", C_max=2.0).fit(*cancer)
    assert model.at(1.0).score(*cancer) > 0.9


@pytest.mark.parametrize("engine", ["single", "lp", "hastie"])
def test_points_without_any_distance_have_a_path_of_one_segment(engine):
    """A kernel of zeros: only the bias can change, and nothing has to be looked for from one C to the next."""
    y = np.array([1.0, -1, 1, -1, 1, 1, 1])
    path = svm_path(np.zeros((7, 7)), y, kernel="precomputed", engine=engine, C_min=1e-9, C_max=1e3)
    assert path.status == "complete"
    assert path.C.size == 2
    assert path.largest_gap_ <= 1e-14
    assert path.bias_at(1.0) == 1.0
