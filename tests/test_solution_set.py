"""All solutions at one C, (50)-(52) of ong, against linear programs over the whole box and closed forms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from zerogap import DualProblem, Gram, limits, svm_path
from zerogap.path import solution_set
from zerogap.path.solution_set import solutions


def grid(seed):
    """Integer points, most of them several times, with labels that do not separate them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(12, 2)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(size=12) > 2, 1, -1)
    y[:2] = 1, -1
    return X, y, rng.choice([0.0, 0.5, 1.0, 2.0], size=12, p=[0.1, 0.3, 0.3, 0.3])


def largest(problem, beta, bias, direction):
    """Return the largest direction'x over all x that are optimal as beta is: in the box, K x = K beta, and the sum."""
    y, n = problem.target, problem.n
    margin = y * (problem.gram.dot(beta) + bias)
    lower = np.where(margin < 1 - 1e-8, problem.upper * (y > 0) + problem.lower * (y < 0), problem.lower)
    upper = np.where(margin < 1 - 1e-8, lower, problem.upper)
    lower, upper = (np.where(margin > 1 + 1e-8, 0.0, bound) for bound in (lower, upper))
    values, vectors = np.linalg.eigh(problem.gram.full())
    keep = values > 1e-9 * values[-1]
    A = np.concatenate([vectors[:, keep].T, np.ones((1, n))])
    found = linprog(-direction, A_eq=A, b_eq=A @ beta, bounds=np.stack([lower, upper], axis=1), method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@given(st.integers(0, 10**6))
@settings(max_examples=3, deadline=None)
def test_it_is_the_set_of_all_solutions(kernel, seed):
    X, y, weight = grid(seed)
    weight[:2] = 1.0
    path = svm_path(X, y, kernel=kernel, gamma=0.5, sample_weight=weight, C_min=1e-2, C_max=20.0)
    signs, gram = np.where(y > 0, 1.0, -1.0), Gram(X, kernel, gamma=0.5)
    rng = np.random.default_rng(seed)
    for C in (*path.C[:: max(1, len(path) // 3)], math.sqrt(path.C[-1] * path.C[-2])):
        several = path.solution_set_at(float(C))
        problem = DualProblem.hinge(gram, signs, float(C), sample_weight=weight)
        f = gram.dot(several.coefficients)
        # Every solution that is offered is one: Theorem (i).
        ends = [end for column in several.directions.T for end in several.extent(column)]
        corners = several.vertices() if several.dimension <= 4 else np.array([several.coefficients, *ends])
        for beta in corners:
            assert problem.certify(beta).relative_gap <= 1e-9
            assert np.abs(gram.dot(beta) - f).max() <= 1e-9 * (1.0 + np.abs(f).max())
        # None is missing.
        if several.dimension <= 4:
            for direction in rng.normal(size=(4, y.size)):
                best = largest(problem, several.coefficients, path.bias_at(float(C)), direction)
                assert (corners @ direction).max() == pytest.approx(best, abs=1e-6 * C)


def test_a_solution_without_dependent_points_is_unique():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] > 0, 1, -1)
    path = svm_path(X, y, C_max=100.0)
    assert path.not_unique() == []
    several = path.solution_set_at(1.0)
    assert several.is_unique
    np.testing.assert_array_equal(several.vertices(), [path.coefficients_at(1.0)])
    with pytest.raises(ValueError, match="combination of the columns"):
        several.extent(np.ones(30))


def test_duplicates_share_their_coefficient_in_any_way():
    """Four rows at -1 and two at +1 on a line: each side has 1/2 in all once C allows it, and less room below."""
    X, y = np.array([[-1.0]] * 4 + [[1.0]] * 2), np.array([-1] * 4 + [1] * 2)
    path = svm_path(X, y, kernel="linear", C_min=1e-3, C_max=10.0)
    # Below C = 1/4 the two at +1 are capped and the four share 2 C; above it all share 1/2.
    assert path.not_unique() == [
        (pytest.approx(1e-3), pytest.approx(0.25), 3),
        (pytest.approx(0.25), pytest.approx(10.0), 4),
    ]
    below, above = path.solution_set_at(0.1), path.solution_set_at(10.0)
    # Two of the four are at the cap of 0.1, or one moves between: the corners are all pairs.
    pairs = [[-0.1 * (i in pair) for i in range(4)] + [0.1, 0.1] for pair in itertools.combinations(range(4), 2)]
    np.testing.assert_allclose(below.vertices(), sorted(pairs), atol=1e-12)
    corners = [
        [-0.5 * (i == a) for i in range(4)] + [0.5 * (j == b) for j in range(2)] for a in range(4) for b in range(2)
    ]
    np.testing.assert_allclose(above.vertices(), sorted(corners), atol=1e-12)
    np.testing.assert_allclose(below.directions.T @ below.directions, np.eye(3), atol=1e-12)


def test_points_at_a_bound_that_cannot_leave_it_add_no_dimension():
    # Three places on a line, all on their margins: the middle one rises by what the two others give.  Without any, it cannot.
    Z = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    three, zero, one = np.arange(3), np.zeros(3), np.ones(3)
    assert solutions(1.0, zero, zero, one, three, Z @ Z.T).dimension == 0
    several = solutions(1.0, np.array([0.5, 0.0, 0.5]), zero, one, three, Z @ Z.T)
    np.testing.assert_allclose(several.vertices(), [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], atol=1e-12)
    # With a fourth far off at zero, which would have to fall, it is still these: it adds nothing.
    Z = np.concatenate([Z, [[1.0, 3.0]]])
    several = solutions(1.0, np.array([0.0, 1.0, 0.0, 0.0]), np.zeros(4), np.ones(4), np.arange(4), Z @ Z.T)
    assert several.dimension == 2  # 0, 1, 2 and 0, 1, 3
    several = solutions(1.0, np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(4), np.ones(4), np.arange(4), Z @ Z.T)
    assert several.is_unique  # the only one with all of its weight at the end


def test_too_many_dimensions_are_said_to_be_too_many():
    X, y = np.array([[-1.0]] * 12 + [[1.0]]), np.array([-1] * 12 + [1])
    several = svm_path(X, y, kernel="linear", C_max=10.0).solution_set_at(10.0)
    assert several.dimension == 11
    with pytest.raises(ValueError, match="dimension 11"):
        several.vertices()
    low, high = several.extent(several.directions[:, 0] + several.directions[:, 3])
    assert not np.allclose(low, high)


def test_a_small_eigenvalue_beside_the_null_space_hides_no_dimension():
    # Two equal points and one in nearly the opposite direction: the null vector's error is rounding over that eigenvalue.
    X, y = np.array([[2.0, 1.0], [-2.0, -2.0], [2.0, 1.0]]), np.array([-1.0, 1.0, -1.0])
    beta, cap = np.array([-0.5, 1.0, -0.5]), 4.0 * y
    found = solutions(4.0, beta, np.minimum(cap, 0.0), np.maximum(cap, 0.0), np.arange(3), X @ X.T)
    assert found.dimension == 1
    assert found.vertices() == pytest.approx(np.array([[-1.0, 1.0, 0.0], [0.0, 1.0, -1.0]]))


# The factor that proves uniqueness.


@pytest.mark.parametrize("m", [2, 10, 200])
def test_a_factor_proves_that_no_direction_is_null_and_never_where_one_is(m):
    rng = np.random.default_rng(m)
    X = rng.standard_normal((m, m + 3))
    K = X @ X.T / (m + 3)
    K /= np.diagonal(K).max()
    assert solution_set._is_definite(K)
    assert solution_set._null_space(K).shape[1] == 0
    X[-1] = X[:-1].mean(axis=0)  # the sum of these coefficients is zero
    K = X @ X.T / np.square(X).sum(axis=1).max()
    assert not solution_set._is_definite(K)
    assert solution_set._null_space(K).shape[1] == 1


def test_a_direction_that_moves_the_sum_is_not_null():
    K = np.diag([0.0, 1.0])  # the first point is at the origin
    assert solution_set._is_definite(K)
    assert not solution_set._is_definite(K, has_sum=False)
    np.testing.assert_allclose(np.abs(solution_set._null_space(K, has_sum=False)), [[1.0], [0.0]], atol=1e-15)
    assert solution_set._null_space(K).shape[1] == 0


def test_distinct_points_need_no_eigenvalues(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.choice([-1, 1], 60)
    path = svm_path(X, y, gamma=1.0, C_max=100.0)
    monkeypatch.setattr(solution_set.la, "eigh", None)
    assert path.not_unique() == []


def test_not_unique_is_ended_by_a_limit():
    path = svm_path([[0.0], [0.0], [2.0]], [-1, -1, 1], kernel="linear", C_max=10.0)
    with limits.limits(0.0), pytest.raises(limits.Exceeded):
        path.not_unique()
    assert path.not_unique()
