"""Gradient ascent and SOR against Table 7.1 written out; the kernel augmented by tau²."""

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMULATIONS, points
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_properties import awkward_points, soft

from zerogap import DualProblem, Gram, KKTViolation, RelativeGap, Status, solve
from zerogap.solvers import SOR, GradientAscent
from zerogap.solvers.passes import EXAMINE_ALL, LENGTH, PASSES, POSITION, VISITS

ORDERS = ("sequential", "free-first", "ranked")
SOLVERS = [GradientAscent(order=order) for order in ORDERS] + [SOR(order=order) for order in ORDERS]


def name(solver):
    return f"{solver}-{solver.order}"


@pytest.mark.parametrize("rate", [None, 0.3])
def test_a_pass_is_table_7_1_written_out(rate, plain):
    X, y, _ = plain
    C, K = 2.0, naive.matrix(DualProblem.hinge(Gram(X), y, 2.0))
    alpha, moves = np.zeros(40), 0
    for i in range(40):
        eta = rate or 1 / K[i, i]
        new = min(max(alpha[i] + eta * (1 - y[i] * sum(alpha * y * K[i])), 0.0), C)
        moves, alpha[i] = moves + (new != alpha[i]), new
    problem = DualProblem.hinge(Gram(X), y, C, fit_intercept=False)
    solution = solve(problem, GradientAscent(rate), max_steps=moves)
    assert solution.n_iter == moves
    np.testing.assert_allclose(solution.beta, y * alpha, atol=1e-12)


def test_sor_over_relaxes_before_it_clips(plain):
    """Remark 7.6."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1.2, fit_intercept=False)
    first, second = solve(problem, SOR(1.5), max_steps=1), solve(problem, SOR(1.1), max_steps=1)
    assert (y[0] * first.beta[0], y[0] * second.beta[0]) == (1.2, pytest.approx(1.1))


def test_omega_one_is_gradient_ascent(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 5.0, fit_intercept=False)
    runs = [solve(problem, solver, stop=RelativeGap(1e-6)) for solver in (GradientAscent(), SOR(1.0))]
    np.testing.assert_array_equal(runs[0].beta, runs[1].beta)


@pytest.mark.parametrize("solver", [GradientAscent(order=order) for order in ORDERS], ids=name)
def test_passes_go_over_the_points_they_should(solver, plain):
    """Remark 7.8 and the two stages before it: a pass over a part of the points, until it is quiet, then over all."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False)
    state, seen = solver.init(problem), set()
    for _ in range(300):
        order, before, integers, _ = state.memory
        passed = order[: integers[LENGTH]]
        is_full_pass = integers[EXAMINE_ALL] == 1
        seen.add(is_full_pass)
        sizes = np.abs(before)
        expected = np.arange(40) if solver.order != "ranked" or not sizes.any() else np.argsort(sizes, kind="stable")
        if not is_full_pass:
            part = (sizes > 0) if solver.order == "ranked" else (sizes > 0) & (sizes < 2.0)
            expected = expected[part[expected]]
        np.testing.assert_array_equal(passed, expected)
        state, _ = solver.step(problem, state, 1, 0.0)
    assert seen == ({True} if solver.order == "sequential" else {True, False})


def test_points_looked_at_are_counted_whether_they_move_or_not(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False)
    solver = GradientAscent()
    state, passes, before = solver.init(problem), 0, 0
    for _ in range(300):
        state, _ = solver.step(problem, state, 1, 0.0)
        position = state.memory.integers[POSITION]
        passes += position < before
        before = position
        assert state.memory.integers[VISITS] == passes * problem.n + position
    assert state.memory.integers[VISITS] > 300  # some stay where they are


def test_regression_stops_at_the_kink():
    """One point within its tube of 0.5 stays at zero; one outside moves to (|t| - eps) / K_ii."""
    problem = DualProblem.epsilon_insensitive(
        Gram(np.array([[2.0, 0.0], [0.0, 3.0]]), "linear"), np.array([0.4, -2.0]), 10.0, 0.5, fit_intercept=False
    )
    solution = solve(problem, "gradient-ascent", stop=RelativeGap(1e-12))
    np.testing.assert_allclose(solution.beta, [0.0, -1.5 / 9], rtol=1e-12)


def test_kernel_adatron_finds_the_maximal_margin(plain):
    X, y, _ = plain
    problem = DualProblem.hard_margin(Gram(X), y, fit_intercept=False)
    adatron = solve(problem, GradientAscent(), stop=RelativeGap(1e-9))
    assert adatron.status is Status.CONVERGED
    # A gap of 1e-9 leaves about its square root of the margin open.
    assert (y * (naive.matrix(problem) @ adatron.beta)).min() >= 1 - 1e-4


def test_a_point_without_length_goes_to_its_bound():
    X, y = np.array([[0.0], [1.0], [-1.0]]), np.array([1.0, 1.0, -1.0])
    gram = Gram(X, "linear")
    for solver in (GradientAscent(), GradientAscent(0.7), SOR()):
        solution = solve(DualProblem.hinge(gram, y, 0.25, fit_intercept=False), solver, stop=RelativeGap(1e-12))
        assert solution.status is Status.CONVERGED
        assert solution.beta[0] == 0.25
    hard = DualProblem.hard_margin(gram, y, fit_intercept=False)
    assert solve(hard, "gradient-ascent").status is Status.UNBOUNDED


# Rates that are too large.


@pytest.mark.parametrize("rate", [2.0, 3.0, 1e3, 1e300])
@pytest.mark.parametrize("formulation", FORMULATIONS.values(), ids=FORMULATIONS)
def test_a_rate_that_is_too_large_is_noticed(rate, formulation, plain):
    X, y, t = plain
    problem = formulation(Gram(X), y, t, fit_intercept=False)
    solution = solve(problem, GradientAscent(rate), stop=RelativeGap(1e-6))
    assert solution.status is Status.DIVERGED
    assert "learning rate" in solution.status.advice
    assert solution.certificate.dual >= 0  # the best point so far is kept, and zero was one
    assert np.isfinite(solution.beta).all()
    assert solve(problem, GradientAscent(rate), resume=solution).status is Status.DIVERGED


@pytest.mark.parametrize("solver", [GradientAscent(3.0), GradientAscent(5.0, order="free-first")], ids=name)
def test_a_pass_that_lost_ground_is_taken_back(solver, plain):
    X, _, t = plain
    problem = DualProblem.squared_epsilon_insensitive(Gram(X), t, 10.0, 0.1, fit_intercept=False)
    state, best = solver.init(problem, solve(problem, stop=RelativeGap(0.1)).beta), np.inf
    for _ in range(1000):
        before = state.beta.copy()
        best = min(best, problem.objective(before))
        state, info = solver.step(problem, state, 1000, 0.0)
        if info.is_divergent:
            break
    assert info.is_divergent
    np.testing.assert_array_equal(state.beta, state.memory.before)
    assert problem.objective(state.beta) <= best + 1e-12  # nothing of the pass is left
    np.testing.assert_allclose(state.residual, problem.residual(state.beta), atol=1e-12)
    np.testing.assert_array_equal(state.up_offset, problem.up_offset(state.beta))
    np.testing.assert_array_equal(state.low_offset, problem.low_offset(state.beta))


def test_a_rate_just_below_the_limit_is_not_called_divergent(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False)
    assert solve(problem, GradientAscent(1.99), stop=RelativeGap(1e-8)).status is Status.CONVERGED
    assert solve(problem, SOR(1.99), stop=RelativeGap(1e-8)).status is Status.CONVERGED


def test_bad_options_are_refused_with_advice(plain):
    X, y, _ = plain
    for omega in (0.0, 2.0, 2.5, np.nan):
        with pytest.raises(ValueError, match="omega must be above 0"):
            SOR(omega)
    with pytest.raises(ValueError, match="rate must be above 0"):
        GradientAscent(-1.0)
    with pytest.raises(ValueError, match=r"Unknown order 'random'.*'ranked'"):
        GradientAscent(order="random")
    for solver in ("gradient-ascent", "sor"):
        with pytest.raises(ValueError, match=r"such as 'smo'.*fit_intercept=False.*tau"):
            solve(DualProblem.hinge(Gram(X), y, 2.0), solver)


# What every solver must do.


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_resumed_pass_goes_on_where_it_stopped(solver, plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 100.0, fit_intercept=False)
    second = solve(problem, solver, max_steps=45, resume=solve(problem, solver, max_steps=50))
    straight = solve(problem, solver, max_steps=95)
    # In one piece the residual is not computed afresh at step 50; that is all the difference.
    np.testing.assert_allclose(second.beta, straight.beta, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS, ids=name)
def test_a_step_ends_where_the_violation_is_small_enough(solver, plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False)
    state, info = solver.step(problem, solver.init(problem), 100_000, 1e-3)
    assert info.iterations < 100_000
    assert 1e-6 < naive.violation(problem, state.beta) <= 1e-3 + 1e-12  # and not much later
    solution = solve(problem, solver, stop=KKTViolation(1e-5))
    assert naive.violation(problem, solution.beta) <= 1e-5


@pytest.mark.long
@given(awkward_points(), soft, st.sampled_from(SOLVERS))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_awkward_data(data, formulation, solver):
    X, y, weight = data
    problem = FORMULATIONS[formulation](Gram(X), y, 1.5 * y, sample_weight=weight, fit_intercept=False)
    solution = solve(problem, solver, stop=RelativeGap(1e-6))
    assert solution.status is Status.CONVERGED
    reference = naive.reference_objective(problem)
    assert abs(naive.objective(problem, solution.beta) - reference) <= 1.1e-6 * max(1.0, abs(reference))


# Remark 7.4: the augmented kernel.


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "precomputed", "callable", "sparse"])
def test_tau_adds_a_constant_to_every_kernel_value(kernel, plain):
    X, _, _ = plain
    options = {"gamma": 0.5, "coef0": 1.0}
    if kernel == "precomputed":
        X, options = X @ X.T, {"kernel": "precomputed"}
    elif kernel == "callable":
        options["kernel"] = lambda a, b: a @ b.T
    elif kernel == "sparse":
        X, options["kernel"] = sp.csr_matrix(np.pad(X, ((0, 0), (0, 400)))), "rbf"
    else:
        options["kernel"] = kernel
    bare, augmented = Gram(X, **options), Gram(X, **options, tau=3.0)
    np.testing.assert_allclose(augmented.diagonal, bare.diagonal + 9, rtol=1e-13)
    np.testing.assert_allclose(augmented.block(np.array([3, 7])), bare.block(np.array([3, 7])) + 9, rtol=1e-13)
    np.testing.assert_allclose(augmented.full(), bare.full() + 9, rtol=1e-13)
    part = np.array([1, 4, 9])
    np.testing.assert_allclose(augmented.subset(part).full(), bare.full()[np.ix_(part, part)] + 9, rtol=1e-13)


def test_tau_is_a_constant_feature_whose_weight_is_the_bias(plain):
    X, y, _ = plain
    gram = Gram(X, "linear", tau=3.0)
    solution = solve(DualProblem.hinge(gram, y, 2.0, fit_intercept=False), "gradient-ascent", stop=RelativeGap(1e-10))
    w = solution.beta @ np.column_stack([X, np.full(40, 3.0)])
    assert gram.constant(solution.beta) == pytest.approx(3.0 * w[-1], rel=1e-12)
    np.testing.assert_allclose(gram.dot(solution.beta), X @ w[:-1] + gram.constant(solution.beta), atol=1e-10)


def test_a_large_tau_approaches_the_free_bias():
    """The bias costs b² / (2 tau²): the more tau, the nearer to a bias that costs nothing."""
    X, y, _ = points("one-against-many")
    free = solve(DualProblem.hinge(Gram(X), y, 2.0), stop=RelativeGap(1e-10))
    errors = []
    for tau in (1.0, 10.0, 100.0):
        gram = Gram(X, tau=tau)
        augmented = solve(DualProblem.hinge(gram, y, 2.0, fit_intercept=False), "smo", stop=RelativeGap(1e-10))
        errors.append(abs(gram.constant(augmented.beta) - free.bias))
        assert augmented.certificate.dual <= free.certificate.primal * (1 + 1e-9) + free.bias**2 / (2 * tau**2)
    assert errors[0] > 10 * errors[1] > 100 * errors[2]


def test_the_radius_is_the_longest_point(plain):
    X, _, _ = plain
    assert Gram(X, "linear", tau="radius").tau == pytest.approx(np.linalg.norm(X, axis=1).max())
    assert Gram(X, tau="radius").tau == 1.0
    with pytest.raises(ValueError, match=r"tau must be at least 0.*radius"):
        Gram(X, tau=-1.0)


def test_a_slow_way_down_is_no_stall(monkeypatch):
    """Measured in pairs the loop would lose patience: the gap goes up and down for a while."""
    X, y, _ = points("plain")
    monkeypatch.setattr("zerogap.run.PATIENCE", 1000)
    runs = []
    for patience in (SOR.patience, 1):
        monkeypatch.setattr(SOR, "patience", patience)
        problem = DualProblem.hinge(Gram(X, "linear"), y, 1000.0, fit_intercept=False)
        runs.append(solve(problem, SOR(1.9), stop=RelativeGap(1e-8), trace_every=200).status)
    assert runs == [Status.CONVERGED, Status.NO_PROGRESS]


# Rates of each point and of time; all points at once; the strip for a free bias.


def test_every_point_may_have_its_own_rate(plain):
    """Table 7.1: the learning rates are a vector."""
    X, y, _ = plain
    problem, rates = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False), np.linspace(0.1, 1.9, 40)
    K, alpha = naive.matrix(problem), np.zeros(40)
    for i in range(40):
        alpha[i] = min(max(alpha[i] + rates[i] * (1 - y[i] * sum(alpha * y * K[i])), 0.0), 2.0)
    solution = solve(problem, GradientAscent(rates), max_steps=int(np.count_nonzero(alpha)))
    np.testing.assert_allclose(solution.beta, y * alpha, atol=1e-12)
    assert GradientAscent(rates) == GradientAscent(list(rates))  # so that a run can be resumed


def test_a_rate_may_depend_on_the_pass(plain):
    X, y, _ = plain
    problem, asked = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False), []

    def rate(t):
        asked.append(t)
        return 1.5 / (1 + t) if t % 2 else np.full(40, 1.5 / (1 + t))

    solver, K, alpha, moves = GradientAscent(rate), naive.matrix(problem), np.zeros(40), 0
    for t in range(3):
        for i in range(40):
            new = min(max(alpha[i] + 1.5 / (1 + t) * (1 - y[i] * sum(alpha * y * K[i])), 0.0), 2.0)
            moves, alpha[i] = moves + (new != alpha[i]), new
    half = solve(problem, solver, max_steps=moves // 2)
    # The pass it is in goes on at its own rate.
    solution = solve(problem, solver, max_steps=moves - moves // 2, resume=half)
    np.testing.assert_allclose(solution.beta, y * alpha, atol=1e-11)
    assert set(asked) <= {0, 1, 2, 3}
    timed = GradientAscent(lambda t: 1.9 if t < 5 else 1.0)
    assert solve(problem, timed, stop=RelativeGap(1e-8)).status is Status.CONVERGED
    assert solve(problem, GradientAscent(lambda t: 0.5**t)).status is Status.NO_PROGRESS  # too small too soon
    assert solve(problem, GradientAscent(lambda t: 1.0 + 2.0 * t)).status is Status.DIVERGED


def test_a_batch_moves_all_points_by_one_gradient(plain):
    """§7.2: a new vector is made inside the loop, and put in the place of the old one after it."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 0.1, fit_intercept=False)
    K, alpha = naive.matrix(problem), np.zeros(40)
    for _ in range(3):
        alpha = np.clip(alpha + 0.03 * (1 - y * (K @ (y * alpha))), 0.0, 0.1)
    solution = solve(problem, GradientAscent(0.03, batch=True), stop=RelativeGap(1e-9), max_steps=3)
    assert solution.n_iter == 3
    np.testing.assert_allclose(solution.beta, y * alpha, atol=1e-13)


@pytest.mark.parametrize("formulation", ["hinge", "squared-hinge", "insensitive"])
def test_a_batch_climbs_below_twice_the_inverse_of_the_largest_eigenvalue(formulation, plain):
    X, y, t = plain
    problem = FORMULATIONS[formulation](Gram(X), y, t, fit_intercept=False)
    largest = np.linalg.eigvalsh(naive.matrix(problem) + np.diag(problem.ridge))[-1]
    for rate in (None, 1.9 / largest):
        solution = solve(problem, GradientAscent(rate, batch=True), stop=RelativeGap(1e-2), trace_every=10)
        assert solution.status is Status.CONVERGED
        assert (np.diff(solution.trace["dual"]) >= -1e-12 * abs(solution.certificate.dual)).all()
    for rate in (5.0 / largest, 1e300):
        solution = solve(problem, GradientAscent(rate, batch=True), stop=RelativeGap(1e-6))
        assert solution.status is Status.DIVERGED
        assert solution.certificate.dual >= 0


def test_the_sum_stays_within_a_strip_that_narrows(plain):
    """§7.2: |sum(alpha y)| <= zeta_t.  The state has the right sum, and never a worse objective."""
    X, y, _ = plain
    problem, solver = DualProblem.hinge(Gram(X), y, 2.0), GradientAscent(strip=2.0)
    state, before, off = solver.init(problem), 0.0, []
    for _ in range(400):
        state, _ = solver.step(problem, state, 1, 0.0)
        zeta = 2.0 / (1 + state.memory.integers[PASSES])
        off.append(abs(problem.excess(state.inside.beta)) / zeta)
        assert off[-1] <= 1 + 1e-12
        assert abs(problem.excess(state.beta)) <= 1e-14
        np.testing.assert_allclose(state.residual, problem.residual(state.beta), atol=1e-12)
        assert problem.objective(state.beta) <= before + 1e-14
        before = problem.objective(state.beta)
    assert max(off) > 0.9  # the strip was what held it
    best = solve(problem, stop=RelativeGap(1e-9)).certificate.dual
    assert -before > 0.9 * best
    end = solve(problem, solver, stop=RelativeGap(1e-9), max_steps=50_000)
    assert end.status in (Status.EXHAUSTED, Status.NO_PROGRESS, Status.MAX_STEPS)  # as is said of it


def test_a_strip_as_wide_as_the_box_is_a_fixed_bias_for_a_pass(plain):
    """With room for everything the first pass is that of Table 7.1 at the bias of the start, the middle of the interval."""
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    solver = GradientAscent(strip=lambda t: 1e6)
    state, info = solver.step(problem, solver.init(problem), 1, 0.0)
    assert info.iterations == 1
    bias = 0.5 * sum(problem.bias_interval(np.zeros(40), y))
    k = int(np.flatnonzero(state.inside.beta)[0])
    assert state.inside.beta[k] == pytest.approx((y[k] - bias) / problem.diagonal[k])


def test_rates_and_strips_that_cannot_be_are_refused(plain):
    X, y, _ = plain
    fixed, free = (DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=bias) for bias in (False, True))
    for rate in ([1.0, -1.0], [[1.0]], "fast", [np.inf]):
        with pytest.raises(ValueError, match="rate must be"):
            GradientAscent(rate)
    for solver in (GradientAscent([1.0, 2.0]), GradientAscent(lambda t: [1.0]), GradientAscent(lambda t: -1.0)):
        with pytest.raises(ValueError, match="one for each of 40 points"):
            solve(fixed, solver)
    with pytest.raises(ValueError, match="in pass 2"):
        solve(fixed, GradientAscent(lambda t: 1.0 if t < 2 else 0.0))
    with pytest.raises(ValueError, match="order and strip mean nothing"):
        GradientAscent(order="ranked", batch=True)
    with pytest.raises(ValueError, match="strip must be above 0"):
        GradientAscent(strip=-1.0)
    with pytest.raises(ValueError, match="strip is for a free bias"):
        solve(fixed, GradientAscent(strip=1.0))
    with pytest.raises(ValueError, match="must not grow"):
        solve(free, GradientAscent(strip=lambda t: 1.0 + t))
