"""Kernel values and products are as near to the true ones as their bounds say."""

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from zerogap import SVC, Gram, Status
from zerogap.kernels import RBF, UNIT
from zerogap.kernels.base import Rounding


def true_rbf(X, gamma):
    with mp.workprec(200):
        Z = [[mp.mpf(float(v)) for v in row] for row in X]
        return [[mp.exp(-mp.mpf(gamma) * sum((p - q) ** 2 for p, q in zip(x, z, strict=True))) for z in Z] for x in Z]


def errors(K, truth):
    with mp.workprec(200):
        return np.array(
            [
                [float(abs(mp.mpf(float(a)) - b)) for a, b in zip(*rows, strict=True)]
                for rows in zip(K, truth, strict=True)
            ]
        )


def pairs_far_out(gamma, distance, n=12):
    """Points in pairs: far from all others, near to each other."""
    X = np.random.default_rng(0).standard_normal((n, 3))
    X[1::2] = X[::2] + 0.3 / np.sqrt(gamma) * np.random.default_rng(1).standard_normal((n // 2, 3))
    X[:4] += distance
    return X


@pytest.mark.covering
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("gamma", "distance"), [(0.5, 0.0), (0.5, 1e7), (0.5, 1e3), (1e4, 0.0), (1e-14, 1e7), (2.0, 30.0)]
)
def test_rbf_values_do_not_suffer_from_outliers_and_large_gamma(gamma, distance, is_sparse):
    X = pairs_far_out(gamma, distance)
    truth = true_rbf(X, gamma)
    points = sp.csr_matrix(np.hstack([X, np.zeros((len(X), 400))])) if is_sparse else X
    for K in (
        Gram(points, gamma=gamma).full(),
        Gram(points, gamma=gamma).block(np.arange(12)),
        RBF(gamma)(points, points),
    ):
        assert K.max() <= 1.0
        # 1e-11 is the largest error of an exponent that the expansion is allowed.
        assert errors(K, truth).max() <= 1e-11


@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_point_compared_coordinate_by_coordinate_is_itself(is_sparse):
    X = np.vstack([np.random.default_rng(0).standard_normal((5, 3)), np.full((2, 3), 1e9)])
    X[5, 0] += 1e-3
    points = sp.csr_matrix(np.hstack([X, np.zeros((7, 400))])) if is_sparse else X
    K = Gram(points, gamma=100.0).full()
    assert K[5, 5] == K[6, 6] == 1.0
    assert K[5, 6] == pytest.approx(np.exp(-100.0 * (X[5, 0] - X[6, 0]) ** 2), rel=1e-12)
    assert (K[:5, 5:] == 0.0).all()


def test_sparse_points_far_from_zero_are_compared_as_dense_ones():
    """Rows end at different columns, where the comparison must not go on into the next one."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((10, 6)) * (rng.random((10, 6)) < 0.4)
    X[:, 0] = 100.0
    kernel, points = RBF(0.5), sp.csr_matrix(X)
    assert kernel.against(points).points.far.size == 10
    exact = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    np.testing.assert_allclose(kernel(points, points), exact, rtol=1e-12)


@pytest.mark.parametrize("distance", [0.0, 20.0, 30.0, 1e4])
def test_products_are_within_their_bound_and_the_bound_is_near(distance):
    """Points at a distance at which the expansion is still used lose the most digits."""
    X = pairs_far_out(2.0, distance)
    gram = Gram(X, gamma=2.0)
    beta = np.where(np.arange(12) % 2, -1.0, 1.0) * 1e6
    with mp.workprec(200):
        K, b = true_rbf(X, 2.0), [mp.mpf(float(v)) for v in beta]
        truth = [sum(k * v for k, v in zip(row, b, strict=True)) for row in K]
        error = np.array([float(abs(mp.mpf(float(a)) - t)) for a, t in zip(gram.dot(beta), truth, strict=True)])
    bound = gram.dot_error(beta)
    assert (error <= bound).all()
    assert bound.max() <= 1e4 * max(error.max(), UNIT * 1e6)


def test_the_bound_grows_where_the_expansion_loses_digits():
    beta = np.ones(12)
    near, out = (Gram(pairs_far_out(2.0, distance), gamma=2.0).dot_error(beta) for distance in (0.0, 20.0))
    assert out[:4].min() > 50 * near.max()


def test_fit_and_predict_use_the_same_values():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 4))
    y = X[:, 0] + 0.5 * rng.standard_normal(50) > 0
    X[7] = 1e7
    model = SVC(gamma=0.1, tol=1e-10).fit(X, y)
    with mp.workprec(200):
        K = true_rbf(X, 0.1)
        coef = np.zeros(50)
        coef[model.support_] = model.dual_coef_[0]
        truth = [sum(k * mp.mpf(float(c)) for k, c in zip(row, coef, strict=True)) for row in K]
        f = model.decision_function(X) - model.intercept_[0]
        assert (
            max(float(abs(mp.mpf(float(a)) - t)) for a, t in zip(f, truth, strict=True)) <= 1e-11 * np.abs(coef).sum()
        )


def test_gamma_scale_is_refused_where_it_is_no_number():
    X = np.array([[1e200, 0.0], [-1e200, 1.0]])
    with pytest.raises(ValueError, match="too large for float64"):
        Gram(X)
    with pytest.raises(ValueError, match="too small for float64"):
        Gram(X / 1e185 / 1e185)


def test_variance_of_shifted_sparse_points_is_that_of_dense_ones():
    X = np.random.default_rng(0).standard_normal((50, 400)) + 1e7
    assert Gram(sp.csr_matrix(X)).kernel.gamma == pytest.approx(Gram(X).kernel.gamma, rel=1e-9)
    weight = np.arange(50.0)
    from zerogap.kernels import gamma_value

    thin = sp.random(50, 400, density=0.1, random_state=0, format="csr")
    assert gamma_value("scale", thin, weight) == pytest.approx(gamma_value("scale", thin.toarray(), weight), rel=1e-12)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X, Z: 1j * np.ones((len(X), len(Z))), "real numbers"),
        (lambda X, Z: 1.0, "an array of shape"),
        (lambda X, Z: np.ones(len(X)), "an array of shape"),
        (lambda X, Z: np.array([["a"] * len(Z)] * len(X)), "array of real numbers"),
    ],
)
def test_what_a_kernel_function_returns_is_checked(function, message):
    with pytest.raises(ValueError, match=message):
        Gram(np.ones((3, 2)), function)


@pytest.mark.parametrize("way", ["rearranged", "subset"])
def test_rows_of_another_matrix_keep_the_error_they_were_computed_with(way):
    """Two groups far apart: about their middle values have fewer digits than about that of the group that remains."""
    rng, gamma, beaten = np.random.default_rng(0), 950.0, 0
    for _ in range(5):
        X = 1e-2 * rng.standard_normal((12, 3))
        X[6:] += 1.0
        whole, kept = Gram(X, gamma=gamma), np.arange(6)
        whole.fetch(kept)
        part = whole.rearranged(X[:6], kept, kept) if way == "rearranged" else whole.subset(kept)
        part.fetch(kept)
        truth = np.array([float(mp.fsum(row)) for row in true_rbf(X[:6], gamma)])
        off = np.abs(part.dot(np.ones(6)) - truth)
        assert (off <= part.dot_error(np.ones(6)) + 1e-15).all()
        beaten += (off > Gram(X[:6], gamma=gamma).dot_error(np.ones(6)) + 1e-15).any()
    assert beaten  # the bound of a matrix of these points alone would not do


def test_where_products_overflow_nothing_is_known_and_numpy_does_not_complain():
    """tanh of infinity is one, but how far it is off cannot be told."""
    gram = Gram(np.array([[1e160], [-1e160], [0.0]]), "sigmoid", gamma=1.0)
    assert np.isinf(gram.dot_error(np.array([0.0, 0.0, 1.0]))).any()


def test_of_new_points_nothing_is_carried():
    rng = np.random.default_rng(0)
    rounding = Rounding(*(rng.uniform(1.0, 2.0, shape) for shape in ((5,), (2, 1, 5), (2, 3, 5))))
    taken = rounding.taken(np.array([3, -1, 0]))
    for part, whole in zip(taken, rounding, strict=True):
        np.testing.assert_array_equal(part, np.stack([whole[..., 3], 0.0 * whole[..., 0], whole[..., 0]], axis=-1))


def test_of_sparse_points_the_entries_count_and_not_the_features():
    X = normalize(sp.random(150, 20_000, density=0.004, format="csr", random_state=0))
    gram = Gram(X, RBF(1.0))
    assert sp.issparse(gram.X)
    rounding = gram.rounding
    assert rounding.relative[0, 1].max() <= 5.0 * np.diff(X.indptr).max() + 24.0
    assert SVC(C=5.0, gamma=1.0, tol=1e-9).fit(X, np.arange(150) % 2).status_ is Status.CONVERGED
