"""Rosen's gradient projection: the closed forms against the paper's matrices, and every choice the paper leaves open."""

import math

import naive
import numpy as np
import pytest
from conftest import FORMULATIONS
from hypothesis import given
from hypothesis import strategies as st
from test_properties import awkward_points, slow, soft

from zerogap import DualProblem, Gram, KKTViolation, RelativeGap, Status, datasets, solve
from zerogap.kernels import UNIT
from zerogap.solvers import SMO, Rosen
from zerogap.solvers.rosen import LineSearch, Pricing, WorkingArrays, _choose, _price, _set_direction

PURE = Rosen(drop="one", conjugate=False)


@pytest.fixture
def hinge(plain):
    X, y, _ = plain
    return DualProblem.hinge(Gram(X), y, 2.0)


def halfway(problem, steps=12, solver=PURE):
    """A point with free and bounded coefficients."""
    state = solver.init(problem)
    state, _ = solver.step(problem, state, steps, 0.0)
    return state


# The closed forms.


def set_direction(q, direction, last_squared_norm=0.0):
    """Set the direction of free points with a free bias; conjugate to the last one, if its squared norm is given."""
    zero, is_free = np.zeros(q.size), np.ones(q.size, dtype=bool)
    arrays = WorkingArrays(zero, zero, zero, zero, q, direction, is_free)
    search = LineSearch(has_sum=True, is_conjugate=last_squared_norm > 0, is_hard=False, radius_squared=1.0)
    return _set_direction(arrays, search, last_squared_norm, 0.0)


def projection(M):
    """P = I - M'(MM')^-1 M of section 2, the rows of M being the binding constraints."""
    return np.eye(M.shape[1]) - M.T @ np.linalg.solve(M @ M.T, M)


def binding(alpha, y, C, without=()):
    """M of section 3: -e_i where alpha_i = 0, e_i where it is C, and y."""
    unit = np.eye(y.size)
    kept = [i for i in range(y.size) if i not in without]
    at_zero, at_cap = [i for i in kept if alpha[i] == 0], [i for i in kept if alpha[i] == C]
    return np.concatenate([-unit[at_zero], unit[at_cap], y[None]]), at_zero, at_cap


@pytest.mark.parametrize("steps", [3, 9, 20, 30])
def test_multipliers_and_directions_are_those_of_the_papers_matrices(hinge, steps):
    state, y, C = halfway(hinge, steps), hinge.target, 2.0
    alpha = y * state.beta
    gradient = -y * (y - naive.matrix(hinge) @ state.beta)  # of W(alpha), (2)
    pricing = _price(hinge, state)
    assert pricing.free.any()
    M, at_zero, at_cap = binding(alpha, y, C)
    multipliers = -np.linalg.solve(M @ M.T, M @ gradient)
    u = dict(zip([*at_zero, *at_cap], multipliers[:-1], strict=True))
    bound = np.array(sorted(u))
    np.testing.assert_allclose(pricing.point_violation[bound], [-u[i] for i in bound], atol=1e-12)  # (4)
    d = -projection(M) @ gradient
    np.testing.assert_allclose(np.where(pricing.free, pricing.q - pricing.mean, 0.0), y * d, atol=1e-12)

    (p,) = _choose(hinge, pricing, "one")
    assert p == min(u, key=u.get)
    d_hat = -projection(binding(alpha, y, C, without=[p])[0]) @ gradient  # (5)
    J = np.append(np.flatnonzero(pricing.free), p)
    direction = np.zeros(J.size)
    set_direction(pricing.q[J], direction)
    np.testing.assert_allclose(direction, (y * d_hat)[J], atol=1e-12)


@pytest.mark.covering
@pytest.mark.parametrize("name", ["hinge", "squared-hinge", "insensitive", "squared-insensitive"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_pure_step_is_an_exact_search_along_the_projected_gradient(name, fit_intercept, plain):
    X, y, t = plain
    problem = FORMULATIONS[name](Gram(X), y, t, fit_intercept=fit_intercept)
    K, state, clipped, inside = naive.matrix(problem), PURE.init(problem), 0, 0
    for _ in range(40):
        before = state.beta.copy()
        state, info = PURE.step(problem, state, 1, 0.0)
        assert info.iterations == 1
        move = state.beta - before
        moved = np.flatnonzero(move)
        middle = before + 0.5 * move  # has the sign that eps sees all along the way
        q = problem.target - K @ before - problem.eps * np.sign(middle)
        d = np.zeros(y.size)
        d[moved] = q[moved] - (q[moved].mean() if fit_intercept else 0.0)
        step = move @ d / (d @ d)
        np.testing.assert_allclose(move, step * d, atol=1e-9 * np.abs(move).max())
        wanted = d @ q / (d @ K @ d)
        is_free = (problem.lower < state.beta) & (state.beta < problem.upper) & ((problem.eps == 0) | (state.beta != 0))
        if is_free[moved].all():
            inside += 1
            assert step == pytest.approx(wanted, rel=1e-9)
        else:
            clipped += 1
            assert 0 < step <= wanted * (1 + 1e-9)
    assert inside > 0
    assert clipped > 0 or problem.has_ridge


@pytest.mark.parametrize("drop", ["one", "pair", "all", 5])
@pytest.mark.parametrize("steps", [0, 10, 25])
def test_a_dropped_point_leaves_its_bound(hinge, drop, steps):
    pricing = _price(hinge, halfway(hinge, steps))
    chosen = _choose(hinge, pricing, drop)
    J = np.concatenate([np.flatnonzero(pricing.free), chosen])
    d = pricing.q[chosen] - pricing.q[J].mean()
    beta = halfway(hinge, steps).beta[chosen]
    assert chosen.size >= (1 if pricing.free.any() else 2)
    assert (d[beta == hinge.lower[chosen]] > 0).all()
    assert (d[beta == hinge.upper[chosen]] < 0).all()


@pytest.mark.parametrize("name", ["insensitive", "squared-insensitive"])
def test_no_step_goes_through_the_kink(name, plain):
    """From a start with half of the signs wrong coefficients stop at zero on their way to the other side."""
    X, y, t = plain
    problem = FORMULATIONS[name](Gram(X), y, t)
    solver = Rosen(drop="all")
    state, stopped = solver.init(problem, problem.feasible(np.random.default_rng(0).uniform(-1, 1, t.size))), 0
    for _ in range(60):
        before, objective = state.beta.copy(), naive.objective(problem, state.beta)
        state, _ = solver.step(problem, state, 1, 0.0)
        assert (before * state.beta >= 0).all()
        size = np.abs(before) @ np.abs(naive.matrix(problem)) @ np.abs(before) + np.abs(t) @ np.abs(before)
        assert naive.objective(problem, state.beta) <= objective + naive.sum_rounding(t.size, size)
        stopped += np.count_nonzero((state.beta == 0) & (before != 0))
    assert stopped >= 5


@pytest.mark.parametrize("size", [2, 3, 7, 50])
def test_a_direction_sums_to_zero_however_little_the_gradients_differ(size):
    """Gradients one unit in the last place apart: their mean, as one number, is a unit off, as much as they differ."""
    unit = np.spacing(1.0)
    for seed in range(20):
        q = 1.0 + unit * np.random.default_rng(seed).integers(0, 3, size)
        direction = np.zeros(size)
        slope, _ = set_direction(q, direction)
        assert (slope > 0) == (np.ptp(q) > 0)
        assert abs(math.fsum(direction)) <= size * UNIT * np.abs(direction).sum()


def test_a_direction_that_rounding_has_spoilt_is_given_up():
    q = np.array([1.0, -1.0, 0.0])
    direction = np.array([5.0, -4.0, -1.0])  # not orthogonal to the gradient, as after an exact search it would be
    slope, squared_norm = set_direction(q, direction, last_squared_norm=1.0)
    assert slope == squared_norm == 2.0
    np.testing.assert_array_equal(direction, q)


@pytest.mark.parametrize("share", [0.6, 1.4, 0.4, -0.4])
def test_how_far_from_orthogonal_a_direction_may_be(share):
    """The slope along g + ratio d is |g|² but for rounding: half of it is too far off, less is left alone."""
    q = np.array([1.0, -1.0])
    direction = np.array([0.5, -0.5]) * share * 2.0  # along the gradient, where it should have no part
    slope, squared_norm = set_direction(q, direction, last_squared_norm=2.0)
    is_given_up = abs(share) > 0.5
    assert squared_norm == 2.0
    assert slope == pytest.approx(2.0 if is_given_up else 2.0 * (1.0 + share))


def test_a_working_set_without_anybody_ends_the_run(hinge):
    """Of numbers that have overflowed none is above the mean."""
    state = Rosen().init(hinge)
    state.residual[:] = np.nan
    state, info = Rosen().step(hinge, state, 10, 0.0)
    assert (info.iterations, info.is_done) == (0, True)
    assert not state.beta.any()


def test_a_point_the_others_would_press_against_its_bound_is_not_dropped():
    """Three points violate by rising, but with the mean over all of them (5) would make the least of them fall."""
    q = np.array([0.0, 0.1, 1.0, 1.0, -0.5])
    free = np.array([True, False, False, False, False])
    point_violation = np.array([-np.inf, 0.1, 1.0, 1.0, -0.5])
    pricing = Pricing(free, q, point_violation, mean=0.0, spread=0.0, worst=1.0, violation=1.0)
    gram, y = Gram(np.arange(5.0)[:, None]), np.array([1.0, 1.0, 1.0, 1.0, -1.0])
    free_bias, fixed_bias = (DualProblem.hinge(gram, y, 1.0, fit_intercept=f) for f in (True, False))
    assert sorted(_choose(free_bias, pricing, "all")) == [2, 3]
    assert sorted(_choose(fixed_bias, pricing, "all")) == [
        1,
        2,
        3,
    ]  # with a fixed bias no violation depends on the others


def test_of_equally_eager_points_the_nearest_is_paired():
    """At zero all of a class are tied; a conflicting duplicate is the partner with which the step has no minimum."""
    X, y = np.array([[3.0], [0.0], [1.0], [0.0], [2.0]]), np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    problem = DualProblem.hinge(Gram(X), y, 1e5)
    pricing = _price(problem, Rosen().init(problem))
    assert _choose(problem, pricing, "pair", "first").tolist() == [0, 2]
    assert _choose(problem, pricing, "pair", "nearest").tolist() == [1, 3]
    solver = Rosen.tables()
    state, _ = solver.step(problem, solver.init(problem), 1, 0.0)
    np.testing.assert_array_equal(state.beta, [0, 1e5, 0, -1e5, 0])


# Convergence.


@pytest.mark.thin(3)
def test_goes_to_a_gap_of_1e_10(data, formulation):
    X, y, t = data
    assert solve(formulation(Gram(X), y, t), "rosen", stop=RelativeGap(1e-10)).status is Status.CONVERGED


@pytest.mark.thin(5)
@pytest.mark.parametrize("start", ["zero", "pair", "interior"])
@pytest.mark.parametrize("drop", ["one", "pair", "all", 1, 7, 0.3])
@pytest.mark.parametrize("conjugate", [True, False])
def test_every_choice_the_paper_leaves_open_leads_to_the_optimum(start, drop, conjugate, hinge):
    solution = solve(hinge, Rosen(start, drop, conjugate=conjugate), stop=RelativeGap(1e-6))
    assert solution.status is Status.CONVERGED
    assert solution.certificate.dual == pytest.approx(solve(hinge, stop=RelativeGap(1e-9)).certificate.dual, rel=2e-6)


def test_a_coarse_absolute_threshold_ends_in_the_optimum_too(hinge):
    solution = solve(hinge, Rosen(zero_length=0.2), stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED


def test_starts_are_feasible_and_what_they_say(plain):
    X, y, t = plain
    problem = DualProblem.hinge(Gram(X), y, 0.4)
    pair, interior = Rosen(start="pair").init(problem).beta, Rosen(start="interior").init(problem).beta
    assert np.count_nonzero(pair) == 2
    assert abs(pair).max() == 0.2
    assert ((problem.lower < interior) & (interior < problem.upper)).all()
    assert abs(interior.sum()) <= naive.sum_rounding(40, np.abs(interior).sum())
    assert not Rosen(start="interior").init(DualProblem.epsilon_insensitive(Gram(X), t, 1.0)).beta.any()
    np.testing.assert_array_equal(Rosen(start="pair").init(problem, interior).beta, interior)


def test_conjugate_steps_are_what_makes_high_precision_cheap(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 1000.0)
    conjugate, pure = (
        solve(problem, Rosen(conjugate=c), stop=RelativeGap(1e-8), max_steps=100_000) for c in (True, False)
    )
    assert conjugate.status is Status.CONVERGED
    assert 10 * conjugate.n_iter < pure.n_iter


@pytest.mark.long
@given(awkward_points(), soft, st.booleans(), st.sampled_from(["one", "pair", "all", 0.05]))
@slow
def test_awkward_data(data, name, fit_intercept, drop):
    X, y, weight = data
    target = y * (1 + np.abs(X).sum(axis=1) / np.abs(X).max()) if X.any() else y
    problem = FORMULATIONS[name](Gram(X), y, target, sample_weight=weight, fit_intercept=fit_intercept)
    solution = solve(problem, Rosen(drop=drop), stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    reference = naive.reference_objective(problem)
    assert abs(naive.objective(problem, solution.beta) - reference) <= 3e-8 * max(1.0, abs(reference))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("drop", ["pair", "all"])
def test_a_hard_margin_that_does_not_exist_is_recognised(kernel, drop, plain):
    X, y, _ = plain
    if kernel == "rbf":  # separable, unless a point belongs to both classes
        X, y = np.concatenate([X, X[:1]]), np.append(y, -y[0])
    solution = solve(DualProblem.hard_margin(Gram(X, kernel), y), Rosen(drop=drop))
    assert solution.status is Status.UNBOUNDED


# The loop's demands.


@pytest.mark.parametrize("most", [1, 3, 1000])
def test_a_pass_cut_short_goes_on_with_conjugate_directions(most, plain):
    """Without bounds there is one face, and on it Rosen's method is the conjugate gradient method."""
    X, _, t = plain
    problem = DualProblem.gaussian_process(Gram(X, gamma=1.0), t, 0.1)
    state, taken = Rosen().init(problem), 0
    # n = 40 steps but for rounding; pure ones need 720
    while taken < 50 and naive.violation(problem, state.beta) > 1e-9:
        state, info = Rosen().step(problem, state, min(most, 50 - taken), 1e-9)
        taken += info.iterations
    assert naive.violation(problem, state.beta) <= 1e-9
    np.testing.assert_allclose(state.beta, np.linalg.solve(naive.matrix(problem), t), atol=1e-8)


@pytest.mark.parametrize("stop", [RelativeGap(1e-5), KKTViolation(1e-4)], ids=str)
@pytest.mark.parametrize("trace_every", [None, 1])
def test_every_rule_and_a_dual_that_only_grows(stop, trace_every, hinge):
    solution = solve(hinge, "rosen", stop=stop, trace_every=trace_every)
    assert solution.status is Status.CONVERGED
    assert (np.diff(solution.trace["dual"]) >= -1e-12 * solution.certificate.dual).all()
    if isinstance(stop, KKTViolation):
        assert naive.violation(hinge, solution.beta) <= 1e-4


def crowd(n=300):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 2))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "epsilon_insensitive"])
def test_every_step_leaves_the_residual_in_step_with_the_point(name):
    X, y = crowd()
    problem = getattr(DualProblem, name)(Gram(X, gamma=1.0), y, 10.0)
    state = Rosen().init(problem)
    for kkt_target in (0.5, 0.1, 0.01, 1e-5):
        state, _ = Rosen().step(problem, state, 5000, kkt_target)
        assert naive.violation(problem, state.beta) <= kkt_target + 1e-10
        np.testing.assert_allclose(state.residual, problem.residual(state.beta), atol=1e-10)


def test_a_small_cache_changes_nothing_but_the_cost():
    X, y = crowd(200)
    roomy, tight = Gram(X, gamma=1.0), Gram(X, gamma=1.0, cache_size=0.001)
    a, b = (solve(DualProblem.squared_hinge(gram, y, 10.0), "rosen", stop=RelativeGap(1e-7)) for gram in (roomy, tight))
    assert 2 * np.count_nonzero(b.beta) > tight.capacity  # the working set has outgrown the memory
    assert a.status is b.status is Status.CONVERGED
    assert a.certificate.dual == pytest.approx(b.certificate.dual, rel=2e-7)
    assert tight.evaluations > roomy.evaluations


def test_only_rows_of_points_that_were_freed_are_computed():
    X, y = crowd()
    gram = Gram(X, gamma=1.0)
    seen = np.zeros(y.size, dtype=bool)

    def watch(state, pricing):
        seen[state.beta != 0] = True

    solution = solve(DualProblem.hinge(gram, y, 1.0), Rosen(drop="pair"), callback=watch, trace_every=1)
    assert solution.status is Status.CONVERGED
    assert gram.evaluations == y.size * seen.sum()
    assert seen.sum() < 0.9 * y.size


@pytest.mark.long
@pytest.mark.skipif(datasets.data_folder() is None, reason="needs the local data folder")
@pytest.mark.parametrize(
    ("name", "C", "sigma"), [("heart", 3.162, 120.0), ("diabetis", 1.0, 20.0), ("image", 500.0, 30.0)]
)
def test_needs_no_more_kernel_values_than_smo(name, C, sigma):
    with np.load(datasets.data_folder() / "raetsch.npz") as pool:
        part = pool[f"{name}_train_gen"][0]
        X, y = pool[f"{name}_x"][part], pool[f"{name}_t"][part].astype(float)
    runs = {}
    for solver in (SMO(), SMO(rows_at_once=1, shrinking=False), Rosen()):
        gram = Gram(X, gamma=1 / sigma)
        solution = solve(DualProblem.hinge(gram, y, C), solver, stop=RelativeGap(1e-10))
        assert solution.status is Status.CONVERGED
        runs[solver] = gram.evaluations, solution.n_iter
    smo, frugal, rosen = runs.values()
    assert rosen[0] < smo[0]
    assert rosen[0] <= 1.1 * frugal[0]  # which computes no row before it is used
    assert rosen[1] < smo[1]


# The paper's text, and its tables.


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6])
def test_the_papers_text_ends_at_an_epsilon_violation(epsilon, hinge):
    solution = solve(hinge, Rosen.paper(epsilon), stop=KKTViolation(1e-12))
    assert solution.status is Status.EXHAUSTED
    pricing = _price(hinge, solution.state)
    assert max(pricing.worst, pricing.spread) <= epsilon
    assert 0.01 * epsilon < solution.certificate.kkt_violation <= 2 * epsilon  # and not much later


def test_the_papers_text_drops_the_most_negative_multiplier_alone(hinge):
    """Section 3: once d = 0 the one constraint p^ of (5) goes; the first step has to free a point of either class."""
    solver, dropped = Rosen.paper(), 0
    state = solver.init(hinge)
    for _ in range(300):
        before, pricing = state.beta.copy(), _price(hinge, state)
        state, info = solver.step(hinge, state, 1, 0.0)
        if info.is_done:
            break
        entered = np.flatnonzero((before == 0) & (state.beta != 0))
        if pricing.free.any():
            assert entered.size <= (pricing.spread <= 1e-3)
            assert all(entered == np.argmax(pricing.point_violation))
            dropped += entered.size
        else:
            assert entered.size == 2
    assert dropped > 5


@pytest.mark.parametrize("epsilon", [1e-3, 1e-6])
def test_the_rule_of_the_tables_looks_at_multipliers_only(epsilon, hinge):
    solution = solve(hinge, Rosen.tables(epsilon), stop=KKTViolation(1e-12))
    assert solution.status is Status.EXHAUSTED
    pricing = _price(hinge, solution.state)
    assert pricing.worst <= epsilon
    assert pricing.spread <= 0.2
    assert solution.certificate.kkt_violation > 1e-3


def test_bad_options_are_refused_with_advice(hinge):
    for options, message in (
        ({"start": "middle"}, "Unknown start 'middle'.*'interior'"),
        ({"ties": "last"}, "Unknown ties 'last'"),
        ({"drop": "two"}, "drop must be one of 'one', 'pair', 'all', a number"),
        ({"drop": 0}, "drop must be"),
        ({"drop": 1.5}, "share of the support vectors"),
        ({"drop": True}, "drop must be"),
        ({"zero_direction": -1.0}, "zero_direction must be at least 0"),
        ({"multiplier_rule": 0.0}, "multiplier_rule must be above 0"),
    ):
        with pytest.raises(ValueError, match=message):
            solve(hinge, Rosen(**options))
