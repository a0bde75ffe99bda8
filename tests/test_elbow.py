import numpy as np
import pytest

from zerogap.elbow import ElbowSystem


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
    system, E = ElbowSystem(K, capacity=4), []
    for step in range(300):
        outside = np.setdiff1d(np.arange(80), E)
        if len(E) < 2 or (rng.random() < 0.6 and len(E) < 55):
            i = int(rng.choice(outside))
            response, others = system.append(i), E.copy()
            E.append(i)
        else:
            k = int(rng.integers(len(E)))
            response, i = system.take_out(k), E.pop(k)
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
    system = ElbowSystem(K)
    is_in = [system.append(i) is not None for i in range(5)]
    assert is_in == [True, True, True, False, False]  # K_EE is singular, the system is not
    d = system.dependence(3)
    np.testing.assert_allclose(d, -np.array([0.4, 0.3, 0.3]), atol=1e-12)
    np.testing.assert_allclose(K[:, :3] @ d + K[:, 3], 0.0, atol=1e-12)  # no decision value moves
