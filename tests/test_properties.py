"""Optimality on awkward data that hypothesis thinks up: duplicates, collinear and constant points, mixed scales, weights."""

import naive
import numpy as np
from conftest import FORMULATIONS, SOLVERS
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from zerogap import SVC, DualProblem, Gram, RelativeGap, Status, solve
from zerogap.kernels import gamma_value

slow = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def awkward_points(draw, scales=(1.0, 1e-5, 1e5)):
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 3))
    grid = st.integers(-2, 2).map(float)
    X = np.array([[draw(grid) for _ in range(d)] for _ in range(n)])
    X *= np.array([draw(st.sampled_from(scales)) for _ in range(d)])
    y = np.array([1.0, -1.0] + [draw(st.sampled_from([-1.0, 1.0])) for _ in range(n - 2)])
    weight = np.array([1.0, 1.0] + [draw(st.sampled_from([0.0, 0.5, 1.0, 3.0])) for _ in range(n - 2)])
    return X, y, weight


def assert_same_model(a, b, X, weight):
    """The same problem was solved, bit for bit; only sums over the support vectors may run in another order."""
    np.testing.assert_array_equal(a.intercept_, b.intercept_)
    assert a.certificate_ == b.certificate_
    size = np.abs(a.dual_coef_).sum()
    rounding = naive.rbf_rounding(X, gamma_value("scale", X, weight)) * size
    rounding += naive.sum_rounding(a.dual_coef_.size, size, np.abs(a.intercept_).max())
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=0, atol=rounding)


soft = st.sampled_from([name for name in FORMULATIONS if name != "hard-margin"])


@given(awkward_points(), soft, st.sampled_from(SOLVERS), st.booleans())
@slow
def test_kkt_conditions_hold(data, name, solver, fit_intercept):
    X, y, weight = data
    target = y * (1 + np.abs(X).sum(axis=1) / np.abs(X).max()) if X.any() else y
    problem = FORMULATIONS[name](Gram(X), y, target, sample_weight=weight, fit_intercept=fit_intercept)
    solution = solve(problem, solver, stop=RelativeGap(1e-8))
    assert solution.status is Status.CONVERGED
    beta, bias = solution.beta, solution.bias
    assert (beta >= problem.lower).all()
    assert (beta <= problem.upper).all()
    if fit_intercept:
        assert abs(beta.sum()) <= 1e-11 * max(1.0, np.abs(beta).sum())
    # A coefficient away from where its residual wants it costs |slack| times its distance: that is the gap, point by point.
    r = problem.target - naive.matrix(problem) @ beta - bias
    wants_up, wants_down = np.maximum(r - problem.eps, 0), np.maximum(-r - problem.eps, 0)
    finite_up = np.where(np.isfinite(problem.upper), problem.upper - beta, 0.0)
    finite_down = np.where(np.isfinite(problem.lower), beta - problem.lower, 0.0)
    if not problem.has_ridge:
        cost = (wants_up * finite_up + wants_down * finite_down).sum()
        assert cost <= 1.01e-8 * solution.certificate.primal + 1e-12


@given(awkward_points(), soft)
@slow
def test_objective_is_the_reference_solvers(data, name):
    X, y, weight = data
    problem = FORMULATIONS[name](Gram(X), y, y * 1.5, sample_weight=weight)
    solution = solve(problem, stop=RelativeGap(1e-9))
    reference = naive.reference_objective(problem)
    assert abs(naive.objective(problem, solution.beta) - reference) <= 3e-8 * max(1.0, abs(reference))


@given(awkward_points(), st.permutations(range(12)))
@slow
def test_order_of_the_rows_does_not_matter(data, permutation):
    X, y, weight = data
    order = np.array([k for k in permutation if k < len(y)])
    assume(len(np.unique(y[weight > 0])) == 2)
    a = SVC(C=5.0).fit(X, y, weight)
    b = SVC(C=5.0).fit(X[order], y[order], weight[order])
    assert_same_model(a, b, X, weight)


@given(awkward_points())
@slow
def test_repetition_is_weight_to_the_last_bit(data):
    X, y, _ = data
    repeats = 1 + np.arange(len(y)) % 3
    a = SVC(C=5.0).fit(X, y, repeats)
    b = SVC(C=5.0).fit(X.repeat(repeats, axis=0), y.repeat(repeats))
    assert_same_model(a, b, X, repeats)


@given(awkward_points(scales=(1.0,)))
@slow
def test_hard_margin_either_separates_or_says_it_cannot(data):
    X, y, _ = data
    solution = solve(DualProblem.hard_margin(Gram(X), y), stop=RelativeGap(1e-6))
    if solution.status is Status.CONVERGED:
        K = naive.matrix(solution.problem)
        # Stretching f by 1 + s costs s² in the objective: a gap of 1e-6 leaves 1e-3 of the margin open.
        assert (y * (K @ solution.beta + solution.bias)).min() >= 1 - 2e-3
    else:
        assert solution.status is Status.UNBOUNDED
        # Some point of one class is (all but) a mixture of points of the other: a soft margin must pay for it.
        soft_margin = solve(DualProblem.hinge(solution.problem.gram, y, 1e4), stop=RelativeGap(1e-3))
        assert soft_margin.certificate.dual > 1e3
