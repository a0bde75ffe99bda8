"""Solvers that crawl or stand still: near-duplicates, options that make no headway, kernels that are no inner products."""

import warnings
from typing import NamedTuple

import naive
import numpy as np
import pytest
from conftest import FORMULATIONS, points

from zerogap import DualProblem, Gram, RelativeGap, Status, solve
from zerogap.solvers import Decomposition, GradientAscent, Info, Rosen, SimpleSMO, SimpleSVM

# Near-duplicates.


def grid(seed):
    """Few points on a grid whose features differ in scale by up to 1e10: pairs of them are duplicates to ten digits."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 13), rng.integers(1, 4)
    X = rng.integers(-2, 3, (n, d)) * rng.choice([1.0, 1e-5, 1e5], d)
    y = np.concatenate([[1.0, -1.0], rng.choice([-1.0, 1.0], n - 2)])
    weight = np.concatenate([[1.0, 1.0], rng.choice([0.0, 0.5, 1.0, 3.0], n - 2)])
    return X, y, weight


@pytest.mark.thin(5)
@pytest.mark.parametrize("fit_intercept", [True, False], ids=["bias", "no-bias"])
@pytest.mark.parametrize("seed", [13, 22, 70, 118, 143, 170, 191, 226, 260, 272, 282, 330])
@pytest.mark.parametrize("solver", ["smo", "smo-keerthi", "smo-platt"])
def test_near_duplicates_do_not_make_pairs_crawl(solver, seed, fit_intercept):
    """By slopes alone two points at a distance of 1e-5 take 1e10 moves to agree; by gains, a few."""
    X, y, weight = grid(seed)
    problem = DualProblem.hinge(Gram(X), y, 1000.0, sample_weight=weight, fit_intercept=fit_intercept)
    solution = solve(problem, solver, stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    assert solution.n_iter <= 20_000


@pytest.mark.parametrize("fit_intercept", [True, False], ids=["bias", "no-bias"])
def test_the_most_violating_pair_crawls_and_says_so(fit_intercept):
    """SVM-Light's rule looks at slopes alone: that is what it is there to show."""
    X, y, weight = grid(70)
    problem = DualProblem.hinge(Gram(X), y, 1000.0, sample_weight=weight, fit_intercept=fit_intercept)
    solution = solve(problem, "smo-mvp", stop=RelativeGap(1e-8))
    assert solution.status is Status.NO_PROGRESS
    assert "'simple-svm'" in solution.status.advice


# Standing still.


class State(NamedTuple):
    beta: np.ndarray
    residual: np.ndarray


class Idle:
    """A solver that claims iterations and moves nothing, or always the same pair to and fro."""

    def __init__(self, claims, swings=False):
        self.claims, self.swings = claims, swings

    def init(self, problem, beta=None):
        beta = problem.feasible_start()
        return State(beta, problem.residual(beta))

    def step(self, problem, state, most, kkt_target):
        if self.swings:
            pair = [int(np.argmax(problem.upper)), int(np.argmin(problem.lower))]
            state.beta[pair] = [0.0, 0.0] if state.beta.any() else [1e-3, -1e-3]
            state.residual[:] = problem.residual(state.beta)
        return state, Info(min(most, self.claims))


@pytest.mark.parametrize(
    ("claims", "swings"),
    [(0, False), (1, False), (10**9, False), (0, True), (10**9, True)],
    ids=["still-none", "still-one", "still-many", "to-and-fro-none", "to-and-fro-many"],
)
def test_a_solver_that_gets_nowhere_is_found_out(claims, swings, plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    solution = solve(problem, Idle(claims, swings), stop=RelativeGap(1e-6))
    assert solution.status is Status.NO_PROGRESS
    assert solution.n_iter <= (100_000 if swings else 20_000)
    assert "solver" in solution.status.advice


@pytest.mark.long
def test_a_rate_that_is_too_small_to_get_anywhere(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0, fit_intercept=False)
    solution = solve(problem, GradientAscent(1e-20), stop=RelativeGap(1e-6))
    assert solution.status is Status.NO_PROGRESS
    assert solution.n_iter <= 1_000_000
    slow = solve(problem, GradientAscent(1e-4), stop=RelativeGap(1e-3))
    assert slow.status is Status.CONVERGED


def test_partners_drawn_at_random_that_give_nothing(plain):
    """It ends by its own rule, after passes without a change, however far the optimum."""
    X, y, weight = grid(22)
    problem = DualProblem.hinge(Gram(X), y, 1000.0, sample_weight=weight)
    solution = solve(problem, SimpleSMO(passes=1), stop=RelativeGap(1e-10))
    assert solution.status in (Status.EXHAUSTED, Status.NO_PROGRESS)
    assert solution.n_iter <= 100_000


class Refusing(Idle):
    def step(self, problem, state, most, kkt_target):
        return state, Info(0)


def test_an_inner_solver_that_refuses_is_the_solvers_fault(plain):
    X, y, _ = plain
    problem = DualProblem.hinge(Gram(X), y, 2.0)
    solution = solve(problem, Decomposition(10, Refusing(0)), stop=RelativeGap(1e-6))
    assert solution.status is Status.NO_PROGRESS
    assert solution.n_iter == 0


@pytest.mark.parametrize("solver", [Rosen(conjugate=False, drop="one"), "gradient-ascent", "sor", "smo-mvp"], ids=str)
def test_slow_but_steady_is_left_to_run(solver):
    X, y, _ = points("plain")
    problem = DualProblem.hinge(Gram(X, "linear"), y, 100.0, fit_intercept=False)
    assert solve(problem, solver, stop=RelativeGap(1e-7)).status is Status.CONVERGED


def test_a_gap_that_rounding_holds_up_is_not_blamed_on_the_solver(plain):
    X, y, _ = plain
    for solver in ("smo", "simple-svm", "smo-keerthi", "smo-platt", "rosen"):
        solution = solve(DualProblem.hinge(Gram(X), y, 1e5), solver, stop=RelativeGap(1e-25))
        assert solution.status is Status.PRECISION


# Kernels that are no inner products.


def concave(A, B):
    return -(A @ B.T)


def mixed(A, B):
    return np.sin(3.0 * A @ B.T) + np.tanh(A @ B.T)


INDEFINITE = {
    "sigmoid": {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0},
    "poly": {"kernel": "poly", "gamma": 1.0, "coef0": -1.0},
    "concave": {"kernel": concave},
    "mixed": {"kernel": mixed},
    "zero": {"kernel": lambda A, B: np.zeros((A.shape[0], B.shape[0]))},
}
ALL_SOLVERS = {
    name: name
    for name in (
        *(
            "smo",
            "smo-mvp",
            "smo-keerthi",
            "smo-platt",
            "smo-simple",
            "rosen",
            "simple-svm",
            "chunking",
            "decomposition",
        ),
        *("gradient-ascent", "sor", "cg"),
    )
} | {"simple-svm-worst": SimpleSVM("worst"), "rosen-pure": Rosen(conjugate=False), "pieces": Decomposition(6)}


def awkward(n=24):
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.standard_normal((n // 2, 2)), rng.integers(-1, 2, (n // 2, 2))])
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    return X, y, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.thin(4)
@pytest.mark.parametrize("solver", ALL_SOLVERS.values(), ids=ALL_SOLVERS)
@pytest.mark.parametrize(
    "kernel",
    [pytest.param(name, marks=[] if name in ("sigmoid", "mixed") else pytest.mark.long) for name in INDEFINITE],
)
@pytest.mark.parametrize("max_steps", [300, pytest.param(300_000, marks=pytest.mark.long)])
def test_indefinite_kernels_end_with_a_feasible_point_and_an_honest_status(kernel, solver, max_steps):
    X, y, t = awkward()
    for name, formulation in [*FORMULATIONS.items(), ("gp", None)]:
        is_fixed = solver in ("gradient-ascent", "sor")
        gram = Gram(X, **INDEFINITE[kernel])
        if formulation is not None and solver != "cg":
            problem = formulation(gram, y, t, fit_intercept=not is_fixed)
        elif formulation is None:
            problem = DualProblem.gaussian_process(gram, t, 0.1)
        else:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solution = solve(problem, solver, stop=RelativeGap(1e-6), max_steps=max_steps)
        beta = solution.beta
        assert np.isfinite(beta).all()
        assert (beta >= problem.lower).all()
        assert (beta <= problem.upper).all()
        if problem.total is not None:
            assert abs(beta.sum()) <= 1e-10 * np.abs(beta).sum() + 1e-300
        assert not np.isnan(solution.certificate.dual)
        if solution.status is Status.UNBOUNDED:
            assert not np.isfinite(problem.upper - problem.lower).all()
            assert kernel != "zero" or name == "hard-margin"
        if solution.status is Status.CONVERGED:
            assert naive.violation(problem, beta) <= 1.0


@pytest.mark.parametrize("solver", ["smo", "smo-mvp", "smo-keerthi", "smo-platt", "gradient-ascent", "sor"])
def test_along_a_direction_without_curvature_a_pair_goes_to_the_end_of_its_box(solver):
    """K = -x z with two points of opposite classes: the objective falls all the way."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    problem = DualProblem.hinge(Gram(X, concave), y, 3.0, fit_intercept=solver not in ("gradient-ascent", "sor"))
    np.testing.assert_array_equal(solve(problem, solver, max_steps=10).beta, [3.0, -3.0])
    hard = DualProblem.hard_margin(Gram(X, concave), y, fit_intercept=problem.total is not None)
    assert solve(hard, solver).status is Status.UNBOUNDED


# A ridge that is small against the kernel still bounds the dual.


@pytest.mark.parametrize("solver", ["smo", "smo-mvp", "smo-keerthi", "smo-platt", "rosen", "chunking"])
@pytest.mark.parametrize("scale", [1e3, 1e5, 1e7])
def test_conflicting_duplicates_have_a_minimum_whatever_their_scale(solver, scale):
    """C = 1e12 and K up to 1e14: added to the diagonal the ridge 1/C would be lost, and with it the minimum."""
    X, y = np.array([[1.0], [1.0]]) * scale, np.array([1.0, -1.0])
    problem = DualProblem.squared_hinge(Gram(X, "linear"), y, 1e12)
    solution = solve(problem, solver, stop=RelativeGap(1e-6), max_steps=100_000)
    # At K = 1e14 even sums of 32 digits leave 1e-5 of the objective open.
    assert solution.status is (Status.CONVERGED if scale < 1e7 else Status.PRECISION)
    # With beta = (a, -a) the kernel cancels, and a²/C - 2a is least at C.
    np.testing.assert_allclose(solution.beta, [1e12, -1e12], rtol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("solver", [*(s for s in ALL_SOLVERS if s != "cg"), "smo"])
@pytest.mark.parametrize("scale", [1.0, pytest.param(1e5, marks=pytest.mark.long)])
def test_a_squared_loss_is_never_called_unbounded(solver, scale):
    X, y, _ = awkward()
    solver = ALL_SOLVERS[solver]
    is_fixed = solver in ("gradient-ascent", "sor")
    problem = DualProblem.squared_hinge(Gram(scale * X, "linear"), y, 1e12, fit_intercept=not is_fixed)
    assert solve(problem, solver, stop=RelativeGap(1e-6), max_steps=100_000).status is not Status.UNBOUNDED
