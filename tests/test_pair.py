"""The analytical pair step against brute force, for every quadrant of Theorem 7.18 and every side of the box."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive import from_python

from zerogap import DualProblem, Gram
from zerogap.problem import ProblemArrays
from zerogap.solvers import PlattSMO, SimpleSMO
from zerogap.solvers import pair as helpers
from zerogap.solvers.pair import ORIGIN, Iterate
from zerogap.solvers.platt import BIAS, INCREASE

either_way, increase = from_python(helpers.either_way), from_python(helpers.increase)
pair_step, update_offsets = from_python(helpers.pair_step), from_python(helpers.update_offsets)

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


@pytest.mark.long
@given(pairs())
@settings(max_examples=80, deadline=None)
def test_no_other_step_is_better(pair):
    K, beta, lower, upper, residual, eps = pair
    arrays = records(np.diag(K).copy(), lower, upper, eps, beta, residual)
    i, j, step, bi, bj = either_way(0, 1, K[0, 1], *arrays)
    signed = step if i == 0 else -step
    new = np.array([bi, bj]) if i == 0 else np.array([bj, bi])
    assert (new >= lower).all()
    assert (new <= upper).all()
    np.testing.assert_allclose(new, beta + np.array([signed, -signed]), atol=1e-12)
    value = objective(K, beta, residual, eps, signed)
    assert increase(i, j, K[0, 1], step, bi, bj, *arrays) == pytest.approx(-value, abs=1e-12)
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


# What the texts have instead of our choices.


def moves(solver, problem, count):
    """Yield (state, coefficients before, points moved) of one pair after the other."""
    state = solver.init(problem)
    for _ in range(count):
        before = state.beta.copy()
        state, info = solver.step(problem, state, 1, 0.0)
        if info.iterations == 1:
            yield state, before, np.flatnonzero(state.beta != before)


@pytest.mark.parametrize("rule", ["free", "mean"])
def test_the_bias_after_a_step_is_that_of_the_text(rule, plain):
    """Spiral §2.2.3: b_i where both are off their bounds, else the mean; Platt's: that of one off its bounds."""
    X, y, _ = plain
    C, told_apart = 0.5, 0
    for state, _, pair in moves(SimpleSMO(bias=rule), DualProblem.hinge(Gram(X), y, C), 100):
        is_free = (np.abs(state.beta[pair]) > 0) & (np.abs(state.beta[pair]) < C)
        b = state.residual[pair]
        expected = b.mean() if not is_free.any() or (rule == "mean" and not is_free.all()) else b[is_free][0]
        assert state.memory.numbers[BIAS] == pytest.approx(expected, abs=1e-12)
        told_apart += is_free.sum() == 1
    assert told_apart > 5


def test_a_pair_must_raise_the_dual_objective_by_what_is_significant(plain):
    """§7.5.2 of chapter7: every pair does, as long as one is found; then less is asked for, and the optimum is reached."""
    X, y, _ = plain
    problem, least = DualProblem.hinge(Gram(X), y, 10.0), {None: [], 0.02: []}
    for share, rises in least.items():
        for state, before, _ in moves(PlattSMO(increase=share), problem, 60):
            old, new = -problem.objective(before), -problem.objective(state.beta)
            if share is not None and state.memory.numbers[INCREASE] < share:
                break
            rises.append((new - old) / abs(old) if old else np.inf)
    assert len(least[0.02]) > 10
    assert min(least[0.02]) > 0.02 > min(least[None])


def test_bad_options_are_refused_with_advice():
    with pytest.raises(ValueError, match=r"increase must be above 0.*share of the dual"):
        PlattSMO(increase=0.0)
    with pytest.raises(ValueError, match=r"Unknown bias 'median'.*'mean'"):
        SimpleSMO(bias="median")
