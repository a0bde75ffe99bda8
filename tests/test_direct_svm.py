import numpy as np
import pytest
from conftest import points

from zerogap import DualProblem, Gram, RelativeGap, Status, datasets, solve
from zerogap.solvers import DirectSVM, SimpleSVM
from zerogap.solvers.direct_svm import closest_pairs


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_the_closest_pairs_come_in_order(kernel, monkeypatch):
    X, y, _ = points("plain")
    problem = DualProblem.hard_margin(Gram(X, kernel), y)
    K = problem.gram.full()
    squares = np.add.outer(np.diag(K), np.diag(K)) - 2 * K
    monkeypatch.setattr("zerogap.solvers.direct_svm.VALUES_AT_ONCE", 100)  # some points at a time
    pairs = closest_pairs(problem, 7)
    assert (y[pairs] == [1, -1]).all()
    np.testing.assert_allclose(squares[tuple(pairs.T)], np.sort(squares[y > 0][:, y < 0].ravel())[:7], atol=1e-12)


def test_it_joins_the_worst_violator_and_turns_the_plane_to_it():
    """Pair (0, 0), (1, 0); then (0, 3) against (-1, -5), which no plane of the pair alone separates."""
    X, y = np.array([[0.0, 0], [1, 0], [-1, -5], [3, 1]]), np.array([1.0, -1, -1, -1])
    problem = DualProblem.hard_margin(Gram(X, "linear"), y)
    solver, state = DirectSVM(), DirectSVM().init(problem)
    assert set(state.plane.system.points) == {0, 1}
    np.testing.assert_allclose(state.beta, [2, -2, 0, 0])
    state, info = solver.step(problem, state, 1, 0.0)
    assert info.iterations == 1
    assert list(state.plane.system.points) == [0, 1, 2]  # f(-1, -5) = 1 + 2 there: by 4 the worst
    margins = y * (problem.target - state.plane.residual + state.plane.bias)
    np.testing.assert_allclose(margins[:3], 1.0, rtol=1e-13)
    assert state.evaluations == 3 + 2 * 2 + 3  # the pair, two points looked at, one that joined


def test_where_the_dimension_is_exceeded_it_begins_with_the_next_pair():
    """In two dimensions three points have a plane, as a rule; with a fourth there is none."""
    X, y = np.random.default_rng(4).standard_normal((30, 2)), np.resize([1.0, -1.0], 30)
    problem = DualProblem.hard_margin(Gram(X, "linear"), y)
    solver, state, sizes = DirectSVM(pairs=3), DirectSVM(pairs=3).init(problem), []
    for _ in range(12):
        state, info = solver.step(problem, state, 1, 1e-6)
        if info.is_done or info.is_unbounded:
            break
        sizes.append(state.plane.system.size)
    assert max(sizes) <= 3
    assert 2 in sizes[1:]
    assert state.plane.next_pair > 1


def test_when_no_pair_is_left_it_is_at_its_end(plain):
    """An indefinite kernel: no candidates have a plane for long."""
    X, y, _ = plain
    problem = DualProblem.squared_hinge(Gram(X, "sigmoid", gamma=1.0, coef0=-1.0), y, 3.0)
    solution = solve(problem, DirectSVM(pairs=2), stop=RelativeGap(1e-6))
    assert solution.n_iter <= 2 * 40
    assert solution.state.plane.next_pair == 2
    _, info = DirectSVM(pairs=2).step(problem, solution.state, 10, 1e-6)
    assert (info.iterations, info.is_done, info.is_own_rule) == (0, True, True)


def test_without_pruning_a_plane_may_be_no_optimum_and_the_certificate_tells():
    X, y, _ = points("plain")
    problem = DualProblem.squared_hinge(Gram(X, "linear"), y, 3.0)
    solution = solve(problem, "direct-svm", stop=RelativeGap(1e-8))
    assert solution.status is Status.EXHAUSTED
    assert solution.certificate.relative_gap > 1e-3
    S = solution.state.plane.system.points
    beta = np.zeros(40)
    beta[S], _ = solution.state.plane.system.solve_one(y[S])
    assert (beta * y < 0).any()  # what SimpleSVM prunes
    assert solve(problem, SimpleSVM(), stop=RelativeGap(1e-8)).status is Status.CONVERGED


def test_where_all_points_are_support_vectors_it_finds_what_simple_svm_does():
    X, y = datasets.two_spirals()
    problem = DualProblem.squared_hinge(Gram(X, gamma=1.0), y, 0.1)
    solution = solve(problem, "direct-svm", stop=RelativeGap(1e-10))
    assert (solution.status, solution.n_iter) == (Status.CONVERGED, 192)  # every point joins once
    np.testing.assert_allclose(solution.beta, solve(problem, SimpleSVM(), stop=RelativeGap(1e-10)).beta, rtol=1e-7)


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="tolerance must be above 0"):
        DirectSVM(0.0)
    with pytest.raises(ValueError, match="pairs"):
        DirectSVM(pairs=0)


def test_the_residual_of_the_start_is_that_of_the_data():
    """A certificate takes it for that: the plane's own may be off by what made its coefficients feasible."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        X = rng.normal(size=(12, 2)) * 10.0 ** rng.integers(-3, 4)
        problem = DualProblem.hard_margin(Gram(X, "linear"), np.where(X[:, 0] > np.median(X[:, 0]), 1.0, -1.0))
        state = DirectSVM().init(problem)
        np.testing.assert_array_equal(state.residual, problem.residual(state.beta), err_msg=str(seed))
