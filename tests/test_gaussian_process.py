import copy
import pickle
import tracemalloc
import warnings

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import KINDS, points
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_properties import awkward_points, slow

from zerogap import DualProblem, GaussianProcessRegressor, Gram, KKTViolation, RelativeGap, Status, solve
from zerogap.solvers import Cholesky, ConjugateGradient
from zerogap.solvers.conjugate_gradient import Nystrom, _partial_cholesky, log_determinant, solve_columns

NYSTROM = ConjugateGradient("nystrom", rank=10)
DIRECT = (ConjugateGradient(), NYSTROM, Cholesky())


def smooth(n=300, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(n)


def system(n=300, noise=0.1, **options):
    X, t = smooth(n)
    return DualProblem.gaussian_process(Gram(X, **options), t, noise)


# The solvers.


@pytest.mark.thin(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("solver", DIRECT, ids=str)
def test_reaches_the_solution_of_the_linear_system(solver, kernel, kind):
    X, _, t = points(kind)
    problem = DualProblem.gaussian_process(Gram(X if kernel == "rbf" else X / np.abs(X).max(), kernel), t, 0.1)
    K = naive.matrix(problem)
    exact = np.linalg.solve(K, t)
    # Solving is exact for a matrix that is off by some n u of its size, and the objectives are sums of n² products.
    rounding = 4 * naive.sum_rounding(len(t), np.abs(exact) @ np.abs(K) @ np.abs(exact), np.abs(t) @ np.abs(exact))
    for tol in (1e-8, 1e-12):
        solution = solve(problem, solver, stop=RelativeGap(tol))
        assert solution.status is Status.CONVERGED
        assert solution.certificate.relative_gap <= tol
        optimum = 0.5 * t @ exact
        assert -rounding <= optimum + naive.objective(problem, solution.beta) <= tol * optimum + rounding
    # The gap bounds the distance in the norm of the matrix, whose eigenvalues are no less than the noise.
    gap = solution.certificate.gap + solution.certificate.rounding
    error = 4 * naive.sum_rounding(len(t), np.linalg.cond(K) * np.linalg.norm(exact))
    assert np.linalg.norm(solution.beta - exact) <= np.sqrt(2 * gap / 0.1) + error


@pytest.mark.parametrize("solver", DIRECT, ids=str)
def test_weighted_squared_loss_without_tube_and_bias_is_the_same_kind_of_system(solver, plain):
    X, _, t = plain
    weight = np.linspace(0.5, 3, len(t))
    problem = DualProblem.squared_epsilon_insensitive(Gram(X), t, 5.0, 0.0, sample_weight=weight, fit_intercept=False)
    solution = solve(problem, solver, stop=RelativeGap(1e-12))
    # The gap bounds the distance in the norm of the matrix, whose eigenvalues are no less than the least ridge.
    gap = solution.certificate.gap + solution.certificate.rounding
    error = np.linalg.norm(solution.beta - np.linalg.solve(naive.matrix(problem), t))
    assert error <= np.sqrt(2 * gap / problem.ridge.min()) + 1e-10


def test_iterates_are_those_of_table_7_3():
    problem = system(60)
    C, y = naive.matrix(problem), problem.target
    alpha, g, h = np.zeros(60), y.copy(), y.copy()
    solver = ConjugateGradient()
    state = solver.init(problem)
    for _ in range(8):
        lam = g @ g / (g @ C @ h)
        alpha = alpha + lam * h
        new = g - lam * C @ h
        h = new + (new @ new) / (g @ g) * h
        g = new
        state, info = solver.step(problem, state, 1, 0.0)
        assert info.iterations == 1
        np.testing.assert_allclose(state.beta, alpha, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(state.residual, g, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("solver", DIRECT[:2], ids=str)
def test_skillings_bounds_enclose_the_quadratic_form_and_close(solver):
    problem = system(noise=1e-3)
    K, y, noise = naive.matrix(problem) - 1e-3 * np.eye(300), problem.target, 1e-3
    exact = y @ np.linalg.solve(naive.matrix(problem), y)
    solution = solve(problem, solver, stop=RelativeGap(1e-9), trace_every=1)
    lower, upper = np.array(solution.state.bounds).T
    assert len(lower) == solution.n_iter + 1 > 10
    assert (lower <= exact * (1 + 1e-11)).all()
    assert (upper >= exact * (1 - 1e-11)).all()
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()
    assert upper[-1] - lower[-1] <= 1e-9 * upper[-1]
    # As Gibbs and MacKay write the upper bound; here it is twice the primal objective, and the lower one twice the dual.
    v = solution.beta
    skilling = (y @ y - 2 * v @ K @ y + v @ K @ (K + noise * np.eye(300)) @ v) / noise
    assert 2 * solution.certificate.primal == pytest.approx(skilling, rel=1e-10)
    assert 2 * solution.certificate.dual == pytest.approx(solution.state.lower, rel=1e-9)
    trace = solution.trace
    np.testing.assert_allclose(2 * trace["dual"], lower, rtol=1e-9, atol=1e-12)
    primal = trace["dual"][1:] / (1 - trace["gap"][1:])
    np.testing.assert_allclose(upper[0], y @ y / noise)
    np.testing.assert_allclose(upper[1:], np.minimum(np.minimum.accumulate(2 * primal), upper[0]), rtol=1e-8)


@pytest.mark.parametrize("solver", DIRECT[:2], ids=str)
def test_the_residual_does_not_drift_away(solver):
    """Left alone the recurrence goes on to zero, while the residual of the point itself stays at rounding errors."""
    problem = system()
    state, steps = solver.init(problem), 0
    while steps < 1000:  # the last of which checks
        state, info = solver.step(problem, state, 1000 - steps, 0.0)
        steps += info.iterations
    true = problem.residual(state.beta)
    assert np.linalg.norm(true) < 1e-11
    assert np.linalg.norm(state.residual - true) <= 0.2 * np.linalg.norm(true)


def test_a_preconditioner_saves_iterations():
    counts = [
        solve(system(noise=1e-3), solver, stop=RelativeGap(1e-8)).n_iter
        for solver in (ConjugateGradient(), ConjugateGradient("nystrom", 20), ConjugateGradient("nystrom", 100))
    ]
    assert counts[0] > 1.5 * counts[1] > 3 * counts[2]


def test_the_preconditioner_is_a_partial_cholesky_factor():
    problem = system(100)
    K = naive.matrix(problem) - 0.1 * np.eye(100)
    L = _partial_cholesky(problem.gram, 30)
    left = np.linalg.eigvalsh(K - L @ L.T)
    assert left.min() >= -1e-12
    assert left.sum() < 0.2 * np.trace(K)
    assert np.count_nonzero(np.abs(np.diagonal(K - L @ L.T)) < 1e-12) >= 30  # exact at the chosen points
    P = Nystrom(problem.gram, problem.ridge, 30)
    V = np.random.default_rng(0).standard_normal((100, 4))
    dense = L @ L.T + 0.1 * np.eye(100)
    np.testing.assert_allclose(P(V), np.linalg.solve(dense, V), atol=1e-10)
    np.testing.assert_allclose(P(V[:, 0]), np.linalg.solve(dense, V[:, 0]), atol=1e-10)
    assert P.log_determinant() == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-12)
    assert _partial_cholesky(Gram(np.ones((50, 2))), 20).shape == (50, 1)  # one point, fifty times


@pytest.mark.parametrize("solver", DIRECT, ids=str)
def test_a_small_cache_changes_nothing_but_the_cost(solver):
    runs = [solve(system(cache_size=size), solver, stop=RelativeGap(1e-10)) for size in (100, 0.4, 0.001)]
    evaluations = [run.problem.gram.evaluations for run in runs]
    if not isinstance(solver, Cholesky):
        assert evaluations[0] < evaluations[1] < evaluations[2]
    for run in runs:
        assert run.status is Status.CONVERGED
        np.testing.assert_allclose(run.beta, runs[0].beta, rtol=0, atol=1e-4)
        assert run.certificate.dual == pytest.approx(runs[0].certificate.dual, rel=1e-10)


@pytest.mark.long
def test_conjugate_gradient_never_holds_the_matrix():
    X, t = smooth(2000)
    tracemalloc.start()
    try:
        problem = DualProblem.gaussian_process(Gram(X, cache_size=1), t, 0.1)
        solution = solve(problem, ConjugateGradient("nystrom", 50), stop=RelativeGap(1e-8))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert solution.status is Status.CONVERGED
    assert peak < 0.5 * 8 * 2000**2


@pytest.mark.parametrize("solver", DIRECT[:2], ids=str)
def test_limits_and_resume(solver):
    problem = system(noise=1e-3)
    first = solve(problem, solver, stop=RelativeGap(1e-8), max_steps=5)
    assert (first.status, first.n_iter) == (Status.MAX_STEPS, 5)
    kept = first.beta.copy()
    resumed, straight = (solve(problem, solver, stop=RelativeGap(1e-8), resume=r) for r in (first, None))
    np.testing.assert_array_equal(first.beta, kept)
    assert resumed.status is Status.CONVERGED
    assert abs(resumed.n_iter - straight.n_iter) <= 22  # the directions are kept; looks are that many iterations apart
    warm = solve(problem, solver, stop=RelativeGap(1e-8), resume=straight.beta)
    assert warm.n_iter == 0


@pytest.mark.long
@pytest.mark.parametrize("solver", DIRECT, ids=str)
def test_a_gap_below_rounding_ends_for_want_of_precision(solver):
    solution = solve(system(100, noise=1e-4), solver, stop=RelativeGap(1e-60))
    assert solution.status is Status.PRECISION
    assert solution.certificate.relative_gap < 1e-12


@pytest.mark.parametrize("solver", DIRECT, ids=str)
def test_other_rules_and_the_trivial_problem(solver):
    solution = solve(system(), solver, stop=KKTViolation(1e-9))
    assert solution.status is Status.CONVERGED
    assert naive.violation(solution.problem, solution.beta) <= 1.001e-9
    X, t = smooth(20)
    nothing = solve(DualProblem.gaussian_process(Gram(X), 0 * t, 0.1), solver)
    assert (nothing.status, nothing.n_iter) == (Status.CONVERGED, 0)


def test_survives_a_residual_overwritten_and_an_indefinite_matrix():
    problem, solver = system(noise=1e-3), ConjugateGradient()
    straight = solve(problem, solver, stop=RelativeGap(1e-10)).n_iter
    state, steps = solver.init(problem), 0
    while problem.estimate(state.beta, problem.residual(state.beta)).relative_gap > 1e-10:
        state, info = solver.step(problem, copy.deepcopy(state), 3, 0.0)
        steps += info.iterations
        state.residual[:] = problem.residual(state.beta)
    assert steps <= 1.5 * straight  # a fresh start every three steps would take many times as long
    X, t = smooth(50)
    indefinite = DualProblem.gaussian_process(Gram(X, lambda A, B: -(A @ B.T)), t, 0.1)
    assert solve(indefinite, solver).status is Status.UNBOUNDED
    with pytest.raises(ValueError, match=r"not positive definite.*Raise noise"):
        solve(indefinite, "cholesky")


def test_bad_options_of_the_solver_are_refused():
    with pytest.raises(ValueError, match=r"Unknown preconditioner 'jacobi'.*'nystrom'"):
        ConjugateGradient("jacobi")
    with pytest.raises(ValueError, match="rank must be above 0"):
        ConjugateGradient("nystrom", rank=0)


@pytest.mark.long
@given(awkward_points(), st.sampled_from(DIRECT), st.sampled_from([1e-4, 0.1, 100.0]))
@slow
def test_awkward_data(data, solver, noise):
    X, y, _ = data
    problem = DualProblem.gaussian_process(Gram(X), y * (1 + np.arange(len(y))), noise)
    solution = solve(problem, solver, stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    exact = 0.5 * problem.target @ np.linalg.solve(naive.matrix(problem), problem.target)
    assert solution.certificate.dual <= exact * (1 + 1e-10)
    assert solution.certificate.primal >= exact * (1 - 1e-10)
    assert solution.certificate.primal - solution.certificate.dual <= 1e-8 * exact * (1 + 1e-6)


# Several right hand sides, and the determinant.


@pytest.mark.covering
@pytest.mark.parametrize("precondition", [None, "nystrom"])
@pytest.mark.parametrize("cache_size", [0.001, 100])
def test_columns_are_solved_to_their_own_tolerances(precondition, cache_size):
    problem = system(noise=0.01, cache_size=cache_size)
    C = naive.matrix(problem)
    V = np.random.default_rng(1).standard_normal((300, 7))
    V[:, 3] = 0
    tol = np.geomspace(1e-3, 1e-12, 7)
    P = Nystrom(problem.gram, problem.ridge, 40) if precondition else None
    solved = solve_columns(problem.gram, problem.ridge, V, tol, P)
    assert (solved.gap <= tol).all()
    np.testing.assert_allclose(solved.residual, V - C @ solved.x, atol=1e-10)
    exact = np.einsum("ij,ij->j", V, np.linalg.solve(C, V))
    lower = np.einsum("ij,ij->j", solved.x, V + solved.residual)
    assert (lower <= exact + 1e-9 * exact).all()
    assert (exact <= lower + solved.gap + 1e-9 * exact).all()


@pytest.mark.parametrize("rank", [0, 50])
def test_log_determinant_lies_within_its_error(rank):
    problem = system(noise=0.01)
    P = Nystrom(problem.gram, problem.ridge, rank) if rank else None
    value, error = log_determinant(problem.gram, problem.ridge, P, 30, np.random.RandomState(0))
    exact = np.linalg.slogdet(naive.matrix(problem))[1]
    assert abs(value - exact) <= 4 * error
    assert error < 0.05 * abs(exact)


# The estimator.


@pytest.mark.long
@parametrize_with_checks([GaussianProcessRegressor(), GaussianProcessRegressor(solver="cg")])
def test_scikit_learns_estimator_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some checks fit with one iteration
        check(estimator)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X)[:300], y[:300]


@pytest.mark.covering
@pytest.mark.parametrize("normalize_y", [True, False])
@pytest.mark.parametrize(
    ("solver", "noise"),
    [
        *(("cholesky", noise) for noise in (1e-3, 0.1, 10.0)),
        pytest.param("cg", 1e-3, marks=pytest.mark.long),
        *(("cg", noise) for noise in (0.1, 10.0)),
    ],
)
def test_mean_deviation_covariance_and_evidence_are_scikit_learns(solver, noise, normalize_y):
    X, y = diabetes()
    X, y, new = X[:200], y[:200] / 100, X[200:]
    peer = Peer(RBF(np.sqrt(1 / (2 * 0.05))), alpha=noise, optimizer=None, normalize_y=normalize_y).fit(X, y)
    ours = GaussianProcessRegressor(
        gamma=0.05, noise=noise, solver=solver, tol=1e-20, std_tol=1e-13, normalize_y=normalize_y, rank=30
    )
    with pytest.warns(ConvergenceWarning, match="float64 has no more digits"):
        ours.fit(X, y)
    assert ours.status_ is Status.PRECISION
    mean, std = ours.predict(new, return_std=True)
    peer_mean, peer_std = peer.predict(new, return_std=True)
    np.testing.assert_allclose(mean, peer_mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(std, peer_std, rtol=1e-8, atol=1e-8)
    # The same sum of 200 products, K_ij <= 1, by another matrix product.
    size = np.abs(mean) + peer._y_train_std * np.abs(ours.dual_coef_).sum()
    assert (np.abs(ours.predict(new) - mean) <= naive.sum_rounding(200, size)).all()
    also, cov = ours.predict(new, return_cov=True)
    np.testing.assert_allclose(also, mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cov, peer.predict(new, return_cov=True)[1], rtol=0, atol=1e-8)
    assert ours.log_marginal_likelihood() == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-8)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_the_certificate_bounds_the_error_of_the_mean(solver):
    X, y = diabetes()
    exact = Peer(RBF(np.sqrt(1 / (2 * 0.05))), alpha=0.1, optimizer=None).fit(X, y)
    for tol in (1e-2, 1e-5, 1e-10):
        model = GaussianProcessRegressor(gamma=0.05, solver=solver, tol=tol, preconditioner=None).fit(X, y)
        error = np.abs(model.predict(X) - exact.predict(X)).max()
        assert error <= np.sqrt(2 * model.certificate_.gap) + 1e-9
        if solver == "cg" and tol > 1e-10:
            assert error > 1e-8  # it did stop early


@pytest.mark.long
def test_predicted_variances_are_never_below_the_exact_ones():
    X, y = diabetes()
    exact = GaussianProcessRegressor(noise=1e-3).fit(X, y).predict(X + 0.5, return_std=True)[1] ** 2
    loose = GaussianProcessRegressor(noise=1e-3, solver="cg", std_tol=1e-2, rank=5).fit(X, y)
    excess = loose.predict(X + 0.5, return_std=True)[1] ** 2 - exact
    assert excess.min() >= -1e-12
    assert 1e-8 < excess.max() <= 1e-2
    with pytest.warns(ConvergenceWarning, match=r"not the std_tol=1e-40"):
        GaussianProcessRegressor(noise=1e-3, solver="cg", std_tol=1e-40).fit(X, y).predict(X[:3], return_std=True)


def test_evidence_after_conjugate_gradient():
    X, y = diabetes()
    direct = GaussianProcessRegressor(normalize_y=True).fit(X, y)
    model = GaussianProcessRegressor(normalize_y=True, solver="cg", rank=100).fit(X, y)
    with pytest.raises(AttributeError, match="lanczos"):
        _ = model.log_marginal_likelihood_
    assert model.log_marginal_likelihood() == pytest.approx(direct.log_marginal_likelihood_, rel=1e-9)
    value, error = model.log_marginal_likelihood("lanczos", return_error=True)
    assert abs(value - direct.log_marginal_likelihood_) <= 4 * error + 1e-6
    assert 0 < error < 3
    assert direct.log_marginal_likelihood(return_error=True)[1] == 0
    with pytest.raises(ValueError, match="Unknown method 'exact'"):
        model.log_marginal_likelihood("exact")


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_sparse_callable_and_precomputed_input_are_the_same_model(solver):
    X, y = diabetes()
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    model = GaussianProcessRegressor(gamma=0.05, solver=solver, tol=1e-11).fit(X, y)
    mean, std = model.predict(X[:40] + 0.1 * (X[:40] != 0), return_std=True)
    new = X[:40] + 0.1 * (X[:40] != 0)
    for kernel, data, other in (
        ("rbf", sp.csr_matrix(X), sp.csr_matrix(new)),
        (lambda A, B: model._kernel(A, B), X, new),
    ):
        got = clone(model).set_params(kernel=kernel).fit(data, y).predict(other, return_std=True)
        np.testing.assert_allclose(got[0], mean, atol=1e-5)
        np.testing.assert_allclose(got[1], std, atol=1e-8)
    K = model._kernel(X, X)
    given = K.copy()
    pre = clone(model).set_params(kernel="precomputed").fit(K, y)
    np.testing.assert_array_equal(K, given)  # the factor must not overwrite a user's matrix
    np.testing.assert_allclose(pre.predict(model._kernel(new, X)), mean, atol=1e-5)
    with pytest.raises(ValueError, match=r"Deviations need k\(x, x\)"):
        pre.predict(K, return_std=True)


def test_linear_weights_and_samples():
    X, y = diabetes()
    model = GaussianProcessRegressor("linear", noise=5.0, normalize_y=True).fit(X, y)
    np.testing.assert_allclose(X @ model.coef_[0] + y.mean(), model.predict(X), rtol=1e-9)
    model = GaussianProcessRegressor(noise=0.5, normalize_y=True).fit(X, y)
    mean, std = model.predict(X[:5], return_std=True)
    assert model.sample_y(X[:5]).shape == (5, 1)
    draws = model.sample_y(X[:5], 4000, random_state=1)
    assert draws.shape == (5, 4000)
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5 * std.max() / np.sqrt(4000))
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.1)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_models_pickle_without_kernel_values(solver):
    X, y = diabetes()
    model = GaussianProcessRegressor(solver=solver, rank=20).fit(X, y)
    stored = pickle.dumps(model)
    again = pickle.loads(stored)
    for a, b in zip(model.predict(X, return_std=True), again.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8)
    if solver == "cg":
        assert len(stored) < 0.5 * 8 * 300**2


def test_outcomes_short_of_the_tolerance_are_warnings():
    X, y = diabetes()
    with pytest.warns(ConvergenceWarning, match=r"relative duality gap of .* not the tol=1e-10 .*max_iter=2"):
        model = GaussianProcessRegressor(solver="cg", preconditioner=None, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert model.status_ is Status.MAX_STEPS
    assert len(model.trace_) >= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.0}, "noise must be above 0"),
        ({"noise": "big"}, "noise must be a number"),
        ({"solver": "smo"}, "Unknown solver 'smo'. Choose one of 'cholesky', 'cg'"),
        ({"kernel": "gauss"}, "Unknown kernel 'gauss'"),
        ({"gamma": -1.0}, "gamma must be at least 0"),
        ({"tol": 0.0}, "tol must be above 0"),
        ({"std_tol": 0.0}, "std_tol must be above 0"),
        ({"solver": "cg", "preconditioner": "jacobi"}, "Unknown preconditioner 'jacobi'"),
        ({"solver": "cg", "rank": 0}, "rank must be above 0"),
        ({"cache_size": 0}, "cache_size must be above 0"),
        ({"max_iter": 0}, "max_iter must be a whole number above 0"),
    ],
    ids=str,
)
def test_bad_options_are_refused(options, message):
    X, y = diabetes()
    with pytest.raises(ValueError, match=message):
        GaussianProcessRegressor(**options).fit(X, y)


def test_bad_data_is_refused():
    X, y = diabetes()
    model = GaussianProcessRegressor()
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match="10 features"):
        model.fit(X, y).predict(X[:, :2])
    with pytest.raises(ValueError, match="not for both"):
        model.predict(X, return_std=True, return_cov=True)


@pytest.mark.long
def test_the_error_of_an_estimated_evidence_is_one_standard_deviation_of_it():
    """Estimates from other probes scatter by as much as each says of itself."""
    X, y = diabetes()
    model = GaussianProcessRegressor(noise=0.1, solver="cg", preconditioner=None).fit(X[:150], y[:150])
    said = [model.log_marginal_likelihood("lanczos", random_state=k, return_error=True) for k in range(80)]
    values, errors = np.array(said).T
    # The deviation of 80 values is known to 8 percent, one standard deviation of that.
    assert values.std(ddof=1) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.3)
    determinants = [
        log_determinant(model._training_matrix, model._ridge, None, 20, np.random.RandomState(k)) for k in range(80)
    ]
    values, errors = np.array(determinants).T
    assert values.std(ddof=1) == pytest.approx(np.sqrt(np.mean(errors**2)), rel=0.3)


def test_values_beyond_float64_end_with_a_status_and_no_exception():
    """A square of sums of 1e160 and more is infinite, and nothing is told by it."""
    X = np.zeros((16, 3))
    X[[1, 2, 6, 7, 11, 15], 2] = [
        -0.8865726960708873,
        0.2802912815203655,
        0.03107002846785108,
        -5.67e10,
        0.209186559500878,
        1.166,
    ]
    X[[3, 6, 10, 12, 14], 1] = [
        -0.19833405832705384,
        -1.2640677554283732,
        -1.4398653784917768,
        -1.4398653784917768,
        -0.19833405832705384,
    ]
    X[[3, 4, 7, 11, 14], 0] = [
        1.2304089061545822,
        -0.32641829284054713,
        0.06985203638212137,
        0.20836901451233591,
        1.2304089061545822,
    ]
    y = [2.0, -1.0, 2.0, 0.0, 0.0, 2.0, 2.0, -2.0, -2.0, 0.0, -1.0, 1.0, -2.0, 2.0, -2.0, 1.0]
    with pytest.warns(ConvergenceWarning):
        model = GaussianProcessRegressor(
            "poly", gamma=1.75, degree=8, coef0=0.5, noise=0.00146, solver="cg", max_iter=400, tol=0.000505
        ).fit(X, y)
    assert model.status_ is not Status.CONVERGED
    assert np.isfinite(model.predict(X)).all()
