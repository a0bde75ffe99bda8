"""The analytical pair step against brute force, for every quadrant of Theorem 7.18 and every side of the box."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zerogap.solvers.compiled_loops import ProblemArrays
from zerogap.solvers.pair import ORIGIN, Iterate, either_way, pair_step, update_offsets

number = st.floats(-3, 3, allow_nan=False).map(lambda v: round(v, 3))


def records(diagonal, lower, upper, eps, beta, residual):
    """A problem without ridge, and a point of it, for compiled code; there is no target."""
    zero = np.zeros(beta.size)
    problem = ProblemArrays(diagonal, zero, zero, lower, upper, eps, False)
    point = Iterate(beta, residual, np.empty(beta.size), np.empty(beta.size))
    for k in range(beta.size):
        update_offsets(k, problem, point)
    return problem, point


@st.composite
def pairs(draw):
    a, b = np.array([draw(number), draw(number)]), np.array([draw(number), draw(number)])
    K = np.array([[a @ a, a @ b], [a @ b, b @ b]])
    lower, upper = -np.array([draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in "ij"]), np.array([2.0, 1.0])
    beta = np.array(
        [draw(st.sampled_from([lo, 0.0, 0.3 * lo, 0.7 * up, up])) for lo, up in zip(lower, upper, strict=True)]
    )
    residual = np.array([draw(number), draw(number)])
    return K, beta, lower, upper, residual, draw(st.sampled_from([0.0, 0.25]))


def objective(K, beta, residual, eps, step):
    """D along the pair, less its value at the start: the residual is minus the gradient there."""
    move = np.array([step, -step])
    return 0.5 * move @ K @ move - residual @ move + eps * (np.abs(beta + move).sum() - np.abs(beta).sum())


@given(pairs())
@settings(max_examples=150, deadline=None)
def test_no_other_step_is_better(pair):
    K, beta, lower, upper, residual, eps = pair
    i, _, step, bi, bj = either_way(0, 1, K[0, 1], *records(np.diag(K).copy(), lower, upper, eps, beta, residual))
    signed = step if i == 0 else -step
    new = np.array([bi, bj]) if i == 0 else np.array([bj, bi])
    assert (new >= lower).all()
    assert (new <= upper).all()
    np.testing.assert_allclose(new, beta + np.array([signed, -signed]), atol=1e-12)
    value = objective(K, beta, residual, eps, signed)
    low, high = max(lower[0] - beta[0], beta[1] - upper[1]), min(upper[0] - beta[0], beta[1] - lower[1])
    for other in np.linspace(low, high, 201):
        assert value <= objective(K, beta, residual, eps, other) + 1e-9


def test_a_bound_is_met_exactly():
    beta, zero, one = np.array([0.1, 0.3]), np.zeros(2), np.ones(2)
    upper, residual = np.array([0.4, 1.0]), np.array([9.0, 0.0])
    step, bi, bj = pair_step(0, 1, 0.0, *records(one, zero, upper, 0.0, beta, residual))
    assert (bi, bj) == (0.4, 0.0)  # 0.1 + (0.4 - 0.1) is not 0.4 in floating point, and 0.3 - 0.3000...04 is not 0
    assert step == pytest.approx(0.3)


def test_against_the_origin_one_coefficient_moves_alone():
    """Remark 7.16: with a fixed bias the step is residual / K_ii."""
    beta, residual = np.array([0.0]), np.array([0.6])
    arrays = records(np.array([2.0]), np.array([0.0]), np.array([5.0]), 0.0, beta, residual)
    step, bi, _ = pair_step(0, ORIGIN, 0.0, *arrays)
    assert step == bi == 0.3


def test_opposite_duplicates_without_a_box_have_no_minimum():
    infinite = np.array([np.inf, np.inf])
    arrays = records(np.ones(2), -infinite, infinite, 0.0, np.zeros(2), np.array([1.0, -1.0]))
    step, _, _ = pair_step(0, 1, 1.0, *arrays)
    assert step == np.inf
