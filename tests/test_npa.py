import numpy as np
import pytest
import scipy.optimize
from conftest import points

from zerogap import DualProblem, Gram, KKTViolation, RelativeGap, Status, datasets, limits, solve
from zerogap.solvers import NPA
from zerogap.solvers.npa import least_on


def nearest_by_qp(K, y):
    """Squared distance of the hulls, by a general solver: min |sum y_i alpha_i x_i|², weights that sum to 1 in each class."""
    Q = K * np.outer(y, y)
    start = np.where(y > 0, 1 / (y > 0).sum(), 1 / (y < 0).sum())
    sums = [{"type": "eq", "fun": lambda a, side=side: a[side].sum() - 1} for side in (y > 0, y < 0)]
    found = scipy.optimize.minimize(
        lambda a: a @ Q @ a,
        start,
        jac=lambda a: 2 * Q @ a,
        bounds=[(0, 1)] * y.size,
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    return found.fun


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_it_finds_the_nearest_points_of_the_hulls(C):
    X, y, _ = (values[:16] for values in points("plain"))
    problem = DualProblem.squared_hinge(Gram(X), y, C)
    solution = solve(problem, "npa", stop=RelativeGap(1e-10))
    square = nearest_by_qp(problem.gram.full() + np.diag(problem.ridge), y)
    # The dual objective is 2 / |z|²; SLSQP ends when |z|² changes by less than 1e-14, a tangent of some 1e-7 away.
    assert solution.certificate.dual == pytest.approx(2 / square, rel=1e-6)
    assert np.abs(solution.beta).sum() == pytest.approx(2 * 2 / square, rel=1e-6)


def test_two_segments_in_the_plane():
    """(0, 1)-(0, -1) and (1, 0)-(3, 0): the nearest points are (0, 0), in the middle, and (1, 0), a corner."""
    X, y = np.array([[0.0, 1], [0, -1], [1, 0], [3, 0]]), np.array([1.0, 1, -1, -1])
    solution = solve(DualProblem.hard_margin(Gram(X, "linear"), y), "npa", stop=RelativeGap(1e-12))
    np.testing.assert_allclose(solution.beta, [1, 1, -2, 0], atol=1e-11)  # 2 / |z|² times (1/2, 1/2, -1, 0)
    assert solution.bias == pytest.approx(1.0)


def test_kernel_values_are_counted_as_if_none_were_kept():
    """Four points on a line, 0 and 1 against 4 and 6, hard margin: worked out by hand.

    The start is the pair 0, 4 (two values).  Type I: point 0 is in use; 1 takes two values to look at and is nearer, so u goes
    all the way to it: with it comes the row of m, two values.  u = 1 alone, then 4 is in use and 6 is looked at: two values,
    no excess.  Type II finds nothing.  Type I again looks at 0 and 6: four values.  Nothing more.
    """
    problem = DualProblem.hard_margin(Gram(np.array([[0.0], [1], [4], [6]]), "linear"), [1.0, 1, -1, -1])
    state = NPA().init(problem)
    assert state.evaluations == 2
    state, info = NPA().step(problem, state, 100, -1.0)  # no violation is small enough to come back
    assert (info.iterations, state.met) == (1, 1e-3)
    np.testing.assert_allclose(state.beta, [0, 2 / 9, -2 / 9, 0], rtol=1e-14)
    assert state.evaluations == 2 + 2 + 2 + 2 + 4


@pytest.mark.parametrize("is_triangle", [True, False])
def test_the_least_value_on_a_triangle_or_square(is_triangle):
    """Against a grid: no point of it is lower, and the place is inside."""
    rng = np.random.default_rng(3)
    x, y = (grid.ravel() for grid in np.meshgrid(*[np.linspace(0, 1, 41)] * 2))
    inside = (x + y <= 1) | (not is_triangle)
    x, y = x[inside], y[inside]
    for _ in range(200):
        A = rng.standard_normal((2, rng.integers(1, 4)))  # of rank one, too
        (a, c), (_, b) = A @ A.T
        g, h = rng.standard_normal(2)
        best = least_on(a, b, c, g, h, is_triangle=is_triangle)

        def value(x, y, a=a, b=b, c=c, g=g, h=h):
            return 0.5 * (a * x * x + b * y * y) + c * x * y + g * x + h * y

        assert value(*best[:2]) <= value(x, y).min() + 1e-12
        assert min(best[:2]) >= 0
        far = best[0] + best[1] if is_triangle else best[1]
        assert max(far, best[0]) <= 1 + 1e-15
        assert best[2] == (far == 1) or (is_triangle and abs(far - 1) < 1e-15)


def test_its_own_rule_leaves_every_margin_within_the_tolerance():
    """No point is nearer than 1 - tolerance; support vectors may be further off, so the KKT violation may be more."""
    X, y = datasets.two_spirals()
    problem = DualProblem.squared_hinge(Gram(X, gamma=1.0), y, 10.0)
    solution = solve(problem, "npa", stop=RelativeGap(1e-15), callback=lambda state, row: state.met <= 1e-3)
    assert solution.status is Status.STOPPED
    f = problem.gram.dot(solution.beta) + problem.ridge * solution.beta
    c = 0.5 * np.abs(solution.beta).sum()
    for side in (1, -1):  # z·u is the mean of f over the support vectors
        middle = solution.beta[y == side] @ f[y == side] / (side * c)
        assert (side * (middle - f[y == side])).max() <= 1e-3 * (1 + 1e-9)
    assert solution.state.evaluations > problem.gram.evaluations


def test_weights_that_grow_do_not_enlarge_rounding():
    """A way off from a point that has nearly all weight multiplies the others by 1e6: f is computed anew."""
    X, y, _ = points("plain")
    problem = DualProblem.squared_hinge(Gram(X), y, 3.0)
    near = np.where(y > 0, 1e-9, -1e-9)
    i, j = np.argmax(y > 0), np.argmax(y < 0)
    near[i], near[j] = 1.0, -1.0
    state = NPA(1e-6).init(problem, problem.feasible(near))
    state, _ = NPA(1e-6).step(problem, state, 1000, 0.0)
    size = problem.diagonal.max() * np.abs(state.beta).sum()
    np.testing.assert_allclose(state.residual, problem.residual(state.beta), rtol=0, atol=1e-14 * size)


def test_a_limit_leaves_it_in_order_and_the_run_goes_on():
    X, y, _ = points("plain")
    problem = DualProblem.squared_hinge(Gram(X), y, 3.0)
    state = NPA().init(problem)
    with limits.limits(0.0):
        state, info = NPA().step(problem, state, 100, 0.0)
    assert (info.iterations, info.is_done) == (0, False)
    np.testing.assert_allclose(state.residual, problem.residual(state.beta), atol=1e-14)
    assert solve(problem, NPA(), stop=KKTViolation(1e-9), resume=state.beta).status is Status.CONVERGED


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="tolerance must be above 0"):
        NPA(0.0)
