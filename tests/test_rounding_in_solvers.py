"""The guards against rounding that ordinary runs seldom need, each on its own."""

import naive
import numpy as np
import pytest
from test_solve import moons

from zerogap import DualProblem, Gram, limits
from zerogap.gram import Gram as GramClass
from zerogap.solvers import SMO, ConjugateGradient
from zerogap.solvers.cholesky import Factor, _factor
from zerogap.solvers.conjugate_gradient import CHECK_EVERY, _correct, solve_columns
from zerogap.solvers.smo import restrict


def test_the_points_worked_on_alone_bring_their_own_matrix():
    """Of another set of the same size the old one would be wrong in every row."""
    X, y = moons(60)
    problem = DualProblem.hinge(Gram(X, gamma=2.0), y, 10.0)
    state, K = SMO().init(problem), naive.matrix(problem)
    for points in (np.arange(20), np.arange(30, 50), np.arange(1, 21)):
        part, part_state = restrict(problem, state, points)
        np.testing.assert_allclose(part.gram.full(), K[np.ix_(points, points)], atol=1e-14)
        np.testing.assert_array_equal(part_state.residual, state.residual[points])
    again, _ = restrict(problem, state, state.memory.points)
    assert again.gram is part.gram


def system(noise=0.1):
    X, y = moons(80)
    return DualProblem.gaussian_process(Gram(X, gamma=2.0), y, noise)


def test_a_residual_that_has_drifted_is_corrected_and_a_good_one_left_alone():
    true = np.array([3.0, 4.0])
    for drift, is_corrected in ((0.09, False), (0.11, True), (-0.2, True)):
        g = true * (1.0 - drift)
        _correct(g, true)
        np.testing.assert_allclose(g, true if is_corrected else true * (1.0 - drift))
    columns = np.array([[1.0, 1.0], [0.0, 1.0]])
    g = columns * [1.0, 0.5]
    _correct(g, columns)
    np.testing.assert_array_equal(g, columns)  # column by column


@pytest.mark.parametrize("before", [CHECK_EVERY - 1, CHECK_EVERY, CHECK_EVERY + 1])
def test_now_and_then_conjugate_gradient_looks_at_the_true_residual(before):
    problem, solver = system(), ConjugateGradient()
    state = solver.init(problem)
    state, _ = solver.step(problem, state, 3, 0.0)
    state.bounds.extend([state.bounds[-1]] * (before - len(state.bounds)))
    state.residual[:] *= 3.0  # as no rounding would do in one go
    state, info = solver.step(problem, state, 1, 0.0)
    assert info.iterations == 1
    off = np.linalg.norm(state.residual - problem.residual(state.beta)) / np.linalg.norm(problem.residual(state.beta))
    assert (off <= 1e-12) == (before == CHECK_EVERY)


def test_columns_end_where_rounding_does(monkeypatch):
    """Asked for more digits than there are, each column stops at its rounding errors, long before the most products."""
    problem = system(1e-3)
    multiply, products = GramClass.multiply, []

    def count(gram, V):
        products.append(V.shape)
        return multiply(gram, V)

    monkeypatch.setattr(GramClass, "multiply", count)
    columns = np.random.default_rng(0).standard_normal((problem.n, 3))
    solved = solve_columns(problem.gram, problem.ridge, columns, np.full(3, 1e-300))
    assert len(products) <= 3 * CHECK_EVERY + 20
    np.testing.assert_allclose(naive.matrix(problem) @ solved.x, columns, atol=1e-9)


# The factor of a large matrix, panel by panel.


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr("zerogap.solvers.cholesky.AT_ONCE", 10)
    monkeypatch.setattr("zerogap.solvers.cholesky.PANEL", 16)


def test_panels_make_the_factor_that_one_call_makes(narrow):
    problem = system()
    whole = naive.matrix(problem)
    K = np.asfortranarray(whole)
    assert _factor(K)
    np.testing.assert_allclose(np.tril(K), np.linalg.cholesky(whole), atol=1e-13)
    np.testing.assert_array_equal(np.triu(K, 1), np.triu(whole, 1))
    factor, right = Factor(problem.gram, problem.ridge), np.arange(80.0)
    np.testing.assert_allclose(whole @ factor.solve(right), right, atol=1e-10)
    np.testing.assert_allclose(factor.kernel_times(right), problem.gram.full() @ right, atol=1e-10)
    assert factor.log_determinant() == pytest.approx(np.linalg.slogdet(whole)[1], rel=1e-12)


@pytest.mark.parametrize("bad", [0, 20, 79])
def test_panels_find_a_matrix_that_is_not_positive_definite(bad, narrow):
    K = np.asfortranarray(naive.matrix(system()))
    K[bad, bad] = -1.0
    assert not _factor(K)


def test_between_panels_a_limit_is_seen(narrow, monkeypatch):
    asked = []
    monkeypatch.setattr(limits, "is_over", lambda: asked.append(1) or len(asked) > 3)
    with pytest.raises(limits.Exceeded):
        _factor(np.asfortranarray(naive.matrix(system())))
    assert len(asked) == 4
