import numpy as np
import pytest

from zerogap.free_system import DenseFreeSystem, FreeSystem


def bordered(K, E, right, total):
    m = len(E)
    A = np.block([[np.zeros((1, 1)), np.ones((1, m))], [np.ones((m, 1)), K[np.ix_(E, E)]]])
    solution = np.linalg.solve(A, np.concatenate([[total], right]))
    return solution[1:], solution[0]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_growing_and_shrinking_solves_the_bordered_system(kernel):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    K = X @ X.T if kernel == "linear" else np.exp(-0.01 * ((X[:, None] - X) ** 2).sum(-1))
    system, E = DenseFreeSystem(K, capacity=4), []
    for step in range(300):
        outside = np.setdiff1d(np.arange(80), E)
        if len(E) < 2 or (rng.random() < 0.6 and len(E) < 55):
            i = int(rng.choice(outside))
            response, others = system.append(i), E.copy()
            E.append(i)
        else:
            k = int(rng.integers(len(E)))
            response, i = system.remove_with_response(k), E.pop(k)
            others = E
        assert system.points.tolist() == E
        if others:
            expected, bias = bordered(K, others, -K[others, i], -1.0)
            np.testing.assert_allclose(response.d, expected, atol=1e-7 * np.abs(expected).max())
            assert response.d0 == pytest.approx(bias, abs=1e-7 * max(1, np.abs(K).max()))
        if step % 10 == 0:
            right, totals = rng.standard_normal((2, len(E))), rng.standard_normal(2)
            x, b = system.solve(right, totals)
            again, shift = system.solve(right - x @ K[np.ix_(E, E)] - b[:, None], totals - x.sum(axis=1))
            x, b = x + again, b + shift
            for r in range(2):
                expected, bias = bordered(K, E, right[r], totals[r])
                np.testing.assert_allclose(x[r], expected, atol=1e-8 * np.abs(expected).max())
                assert b[r] == pytest.approx(bias, abs=1e-8 * max(1, np.abs(right).max()))


def test_points_in_the_affine_hull_of_others_are_refused():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.3, 0.3], [1.0, 0.0]])
    K = X @ X.T
    system = DenseFreeSystem(K)
    is_in = [system.append(i) is not None for i in range(5)]
    assert is_in == [True, True, True, False, False]  # K_EE is singular, the system is not
    d = system.dependence(3)
    np.testing.assert_allclose(d, -np.array([0.4, 0.3, 0.3]), atol=1e-12)
    np.testing.assert_allclose(K[:, :3] @ d + K[:, 3], 0.0, atol=1e-12)  # no decision value moves


def test_rounding_is_not_taken_for_a_distance():
    """The first three points lie nearly on a line, so others of the plane are combinations of them with large coefficients."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        X = rng.standard_normal((8, 2))
        X[2] = X[0] + rng.random() * (X[1] - X[0]) + 1e-4 * rng.standard_normal(2)
        system = DenseFreeSystem(X @ X.T)
        assert [system.append(i) is not None for i in range(8)] == [True] * 3 + [False] * 5


def test_the_farthest_of_points_that_may_enter_unless_one_before_is_far_enough():
    rng = np.random.default_rng(0)
    X = 1e-2 * rng.standard_normal((20, 9))
    X[:6] *= 100.0
    system = DenseFreeSystem(X @ X.T)
    lifted = np.column_stack([X, np.full(20, np.sqrt(system.tau))])
    assert system.farthest(np.array([4, 2, 3])) == 4  # with nobody there all of the first is left
    for i in range(6):
        assert system.append(i) is not None
    span, _ = np.linalg.qr(lifted[:6].T)
    off = ((lifted[6:] - lifted[6:] @ span @ span.T) ** 2).sum(axis=1)
    assert off.max() < 0.25 * (lifted[6:] ** 2).sum(axis=1).min()
    assert system.farthest(np.arange(6, 20)) == 6 + np.argmax(off)
    X[12] *= 1000.0
    system.K[:] = X @ X.T
    assert system.farthest(np.arange(6, 20)) == 12


@pytest.mark.parametrize("before", [0, 5, 150])
def test_points_that_are_appended_at_once_are_as_if_one_by_one(before):
    X = np.random.default_rng(0).standard_normal((200, 300))
    K = X @ X.T
    system, one_by_one = DenseFreeSystem(K, capacity=4), DenseFreeSystem(K, capacity=4)
    for i in range(before):
        system.append(i)
    for i in range(before + 40):
        one_by_one.append(i)
    assert system.append_all(np.arange(before, before + 40))
    m, L = system.size, one_by_one._factor
    np.testing.assert_array_equal(system.points, one_by_one.points)
    np.testing.assert_allclose(np.tril(system._factor[:m, :m]), np.tril(L[:m, :m]), atol=1e-11)
    np.testing.assert_allclose(system._forward_ones[:m], one_by_one._forward_ones[:m], atol=1e-12)
    system.remove_last(40)
    assert system.points.tolist() == list(range(before))


def test_dependent_points_are_not_appended_at_once():
    X = np.random.default_rng(0).standard_normal((12, 6))
    X[11] = 0.5 * (X[0] + X[10])
    system = DenseFreeSystem(X @ X.T)
    for i in range(3):
        system.append(i)
    for some in ([3, 10, 11], [4, 5, 4], [1, 5]):
        assert not system.append_all(np.array(some))
        assert system.points.tolist() == [0, 1, 2]
    assert system.append_all(np.array([5, 3]))


@pytest.mark.parametrize("has_border", [True, False])
def test_one_right_hand_side_from_columns(has_border):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 40))
    K = X @ X.T + np.diag(rng.uniform(0.1, 1.0, 50))
    system, E = FreeSystem(1.0, capacity=2, has_border=has_border), []
    for step in range(200):
        if len(E) < 2 or (rng.random() < 0.6 and len(E) < 45):
            i = int(rng.choice(np.setdiff1d(np.arange(50), E)))
            assert system.insert(i, K[i, E], K[i, i])
            E.append(i)
        else:
            k = int(rng.integers(len(E)))
            system.remove(k)
            E.pop(k)
        right, total = rng.standard_normal(len(E)), float(rng.standard_normal())
        right[: step % len(E)] = 0.0  # leading zeros are skipped
        x, b = system.solve_one(right, total)
        expected = bordered(K, E, right, total) if has_border else (np.linalg.solve(K[np.ix_(E, E)], right), 0.0)
        np.testing.assert_allclose(x, expected[0], atol=1e-9 * max(1.0, np.abs(expected[0]).max()))
        assert b == pytest.approx(expected[1], abs=1e-8)


def test_a_copy_moves_on_its_own_and_points_can_be_renumbered():
    K = np.diag(np.arange(1.0, 7.0))
    system = FreeSystem(1.0)
    for i in range(4):
        system.insert(i, K[i, :i], K[i, i])
    before = system.solve_one(np.ones(4), 1.0)
    twin = system.copy()
    twin.renumber(np.arange(6)[::-1])
    twin.remove(0)
    for i in (5, 2, 0):  # more than the room a copy has is made when needed
        twin.insert(i, np.zeros(twin.size), 1.0)
    assert twin.points.tolist() == [4, 3, 2, 5, 2, 0]
    assert system.points.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(system.solve_one(np.ones(4), 1.0)[0], before[0])


@pytest.mark.parametrize("is_dependent", [False, True])
def test_points_that_are_loaded_at_once(is_dependent):
    """Of dependent ones those that pivots find independent come first, with the factor of just these."""
    X = np.random.default_rng(0).standard_normal((30, 3 if is_dependent else 40))
    X[1] = X[0] + 1e-3 * X[1]  # far from the best to begin with
    K, points = X @ X.T, np.arange(30)
    system = FreeSystem(2.0)
    count = system.load(points, lambda A: np.copyto(A[:30, :30], K))
    assert count == (4 if is_dependent else 30)
    assert sorted(points) == list(range(30))
    np.testing.assert_array_equal(system.points, points[:count])
    E, L = system.points, np.tril(system._factor[:count, :count])
    np.testing.assert_allclose(L @ L.T, K[np.ix_(E, E)] + 2.0, atol=1e-12)
    rhs = np.random.default_rng(1).standard_normal(count)
    x, bias = system.solve_one(rhs, 0.7)
    np.testing.assert_allclose(K[np.ix_(E, E)] @ x + bias, rhs, atol=1e-9)
    assert x.sum() == pytest.approx(0.7)
