"""Coordinate descent in w: what conformance asks of a solver on linear problems, and what is its own."""

import numpy as np
import pytest
import scipy.sparse as sp
import test_conformance as conformance

from zerogap import DualProblem, Gram, RelativeGap, Status, solve
from zerogap.kernels import Linear
from zerogap.solvers import LinearCD, auto, linear_cd

PROBLEMS = [("hinge", "linear", True), ("hinge", "linear", False), ("squared-hinge", "linear", True)]
PROBLEMS += [("insensitive", "linear", False), ("hinge", "huge-values", False), ("hinge", "tiny-values", True)]
CHECKS = [
    conformance.test_a_step_limit_is_exact_and_a_run_goes_on_from_there,
    conformance.test_a_run_that_has_converged_has_nothing_to_go_on_with,
    conformance.test_a_callback_sees_the_run_and_ends_it,
    conformance.test_every_step_leaves_the_state_in_order,
    conformance.test_reaches_the_optimum_of_a_reference_qp,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_linear_problems(check):
    for name in PROBLEMS:
        check.check("linear-cd", name)


def sparse_problem(build, n=200, d=3000, C=1.0, **options):
    rng = np.random.default_rng(1)
    X = sp.random(n, d, 0.02, format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(d) + 0.2 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return build(Gram.of_checked(X, Linear(), 1.0, keep_sparse=True), y, C, **options)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("build", [DualProblem.hinge, DualProblem.squared_hinge, DualProblem.epsilon_insensitive])
def test_sweeps_alone_reach_the_optimum_without_kernel_values(build, fit_intercept):
    """More features than points: there are no Newton steps.  The reference is SMO, with its matrix."""
    problem = sparse_problem(build, fit_intercept=fit_intercept)
    solution = solve(problem, "linear-cd", stop=RelativeGap(1e-9))
    assert solution.status is Status.CONVERGED
    assert problem.gram.evaluations == problem.n  # the diagonal
    other = solve(problem, "smo", stop=RelativeGap(1e-9))
    assert solution.certificate.dual == pytest.approx(other.certificate.dual, rel=2e-9)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("swept", [None, 0.0])
def test_auto_sweeps_over_sparse_points_and_is_as_exact_where_that_takes_too_long(swept, fit_intercept, monkeypatch):
    """No kernel value but the diagonal; without patience the matrix, from where the sweeps are.  The reference is SMO."""
    problem = sparse_problem(DualProblem.hinge, C=5.0, fit_intercept=fit_intercept)
    if swept is not None:
        monkeypatch.setattr(auto, "SWEPT", swept)
    solution = solve(problem, stop=RelativeGap(1e-10))
    assert solution.status is Status.CONVERGED
    assert (problem.gram.evaluations == problem.n) == (swept is None)
    other = solve(problem, "smo", stop=RelativeGap(1e-10))
    assert solution.certificate.dual == pytest.approx(other.certificate.dual, rel=2e-10)


def test_auto_goes_on_with_a_run_in_sweeps():
    problem = sparse_problem(DualProblem.squared_hinge, C=5.0)
    part = solve(problem, max_steps=3)
    assert (part.status, part.n_iter) == (Status.MAX_STEPS, 3)
    rest = solve(problem, stop=RelativeGap(1e-9), resume=part)
    whole = solve(problem, stop=RelativeGap(1e-9))
    assert rest.status is whole.status is Status.CONVERGED
    assert rest.certificate.dual == pytest.approx(whole.certificate.dual, rel=2e-9)


def test_what_auto_does_not_sweep_over():
    problem = sparse_problem(DualProblem.hinge)
    assert linear_cd.suits(problem)
    assert not linear_cd.suits(sparse_problem(DualProblem.hinge, n=50))
    assert not linear_cd.suits(sparse_problem(DualProblem.hinge, d=100))  # Newton steps
    X = problem.gram.X
    others = (Gram(X.toarray(), "linear"), Gram(X, "rbf"))
    assert not any(linear_cd.suits(DualProblem.hinge(gram, problem.target, 1.0)) for gram in others)
    assert not linear_cd.suits(DualProblem.hard_margin(problem.gram, problem.target))


def test_a_constant_feature_is_treated_as_a_bias_and_changes_no_result():
    """All values equal, the last feature is a bias in disguise; with one value off it is a feature as any other."""
    rng = np.random.default_rng(2)
    X = np.hstack([rng.standard_normal((80, 5)), np.full((80, 1), 3.0)])
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(80) > 0.3, 1.0, -1.0)
    assert linear_cd.constant_feature(X) == linear_cd.constant_feature(sp.csr_matrix(X)) == 3.0
    other = X.copy()
    other[7, -1] = 2.0
    assert linear_cd.constant_feature(other) == linear_cd.constant_feature(sp.csr_matrix(other)) == 0.0
    for points in (X, other, sp.csr_matrix(X)):
        problem = DualProblem.hinge(
            Gram.of_checked(points, Linear(), 1.0, keep_sparse=True), y, 0.5, fit_intercept=False
        )
        a = solve(problem, LinearCD(newton=False), stop=RelativeGap(1e-8))
        b = solve(problem, "smo", stop=RelativeGap(1e-8))
        assert a.status is Status.CONVERGED
        assert a.certificate.dual == pytest.approx(b.certificate.dual, rel=2e-8)


def test_newton_steps_go_on_where_sweeps_are_slow():
    """A large C and few features: sweeps would take thousands."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((300, 3))
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1.0, -1.0)
    for fit_intercept in (True, False):
        problem = DualProblem.hinge(Gram(X, "linear"), y, 1e4, fit_intercept=fit_intercept)
        solution = solve(problem, "linear-cd", stop=RelativeGap(1e-9), max_steps=2000)
        assert solution.status is Status.CONVERGED
        assert solution.state.memory.descent is not None


def test_newton_steps_on_sparse_points_are_those_on_dense_ones():
    rng = np.random.default_rng(4)
    X = np.where(rng.random((400, 60)) < 0.05, rng.standard_normal((400, 60)), 0.0)
    y = np.where(X[:, :30].sum(axis=1) + rng.standard_normal(400) > 0, 1.0, -1.0)
    found = []
    for points in (X, sp.csr_matrix(X)):
        gram = Gram.of_checked(points, Linear(), 1.0, keep_sparse=True)
        found.append(solve(DualProblem.squared_hinge(gram, y, 100.0), "linear-cd", stop=RelativeGap(1e-10)))
    assert found[0].status is found[1].status is Status.CONVERGED
    np.testing.assert_allclose(found[0].beta, found[1].beta, atol=1e-6 * np.abs(found[0].beta).max())


def test_other_problems_are_refused_by_name_of_a_solver_that_can():
    X, y = np.array([[0.0], [1.0], [2.0]]), [-1, -1, 1]
    for problem in (
        DualProblem.hinge(Gram(X), y, 1.0),
        DualProblem.hard_margin(Gram(X, "linear"), y),
        DualProblem.one_class(Gram(X, "linear"), 0.5),
    ):
        with pytest.raises(ValueError, match="'smo'"):
            solve(problem, "linear-cd")


def short_points():
    return np.random.default_rng(0).standard_normal((100, 300)) * 1e-3, np.r_[-np.ones(25), np.ones(75)], 1.0


def small_cost():
    return np.random.default_rng(2).standard_normal((8, 30)), np.resize([1.0, 1.0, -1.0], 8), 1e-3


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("data", [short_points, small_cost])
def test_the_multiplier_gets_where_it_has_to_with_short_points_or_a_small_cost(data, fit_intercept):
    """It moves by rho times what the sum is off, which the box bounds: by the curvature alone it would take 1e4 sweeps."""
    X, y, C = data()
    X = X if fit_intercept else np.column_stack([X, np.ones(y.size)])
    problem = DualProblem.hinge(Gram(X, "linear"), y, C, fit_intercept=fit_intercept)
    solution = solve(problem, LinearCD(newton=False), stop=RelativeGap(1e-4))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter < 1000


def test_points_at_the_origin_leave_the_constant_feature_alone():
    """Three against one: the optimum by hand is an intercept of -1, 1/2 + 2."""
    gram = Gram([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]], "linear")
    problem = DualProblem.hinge(gram, [-1, 1], 1.0, sample_weight=[3.0, 1.0], fit_intercept=False)
    found = solve(problem, "linear-cd")
    assert found.status is Status.CONVERGED
    assert found.certificate.primal == pytest.approx(2.5, rel=1e-4)
