import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise
from sklearn.svm import SVC

import zerogap
from zerogap import Gram
from zerogap.kernels import RBF, Function, Linear, Polynomial, Sigmoid, gamma_value
from zerogap.kernels.products import centre_of

KERNELS = [
    (Linear(), lambda X, Z: X @ Z.T),
    (RBF(0.3), lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.3)),
    (Polynomial(3, 0.5, 1.0), lambda X, Z: pairwise.polynomial_kernel(X, Z, 3, 0.5, 1.0)),
    (Polynomial(8, 0.5), lambda X, Z: pairwise.polynomial_kernel(X, Z, 8, 0.5, 0.0)),
    (Polynomial(0, 0.5), lambda X, Z: np.ones((len(X), len(Z)))),
    (Sigmoid(0.2, -0.5), lambda X, Z: np.tanh(0.2 * X @ Z.T - 0.5)),
    (Function(pairwise.laplacian_kernel), pairwise.laplacian_kernel),
]


@pytest.mark.parametrize(("kernel", "formula"), KERNELS, ids=lambda k: getattr(k, "name", ""))
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr", "csr-array"])
def test_blocks_follow_the_formula(kernel, formula, form):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((9, 4)), rng.standard_normal((6, 4))
    X[X < -0.5] = 0.0
    np.testing.assert_allclose(kernel(form(X), form(Z)), formula(X, Z), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(form(X)), np.diag(formula(X, X)), rtol=1e-12)


def test_rbf_keeps_its_digits_far_from_the_origin():
    """Without centring, |x|² + |z|² - 2<x, z> loses all of the distance to rounding."""
    X = np.random.default_rng(0).standard_normal((20, 3))
    K = RBF(0.5)
    np.testing.assert_allclose(K(X + 2.0**30, X + 2.0**30), K(X, X), atol=1e-6)


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_gamma_is_scikit_learns(gamma, form):
    X = form(np.random.default_rng(1).standard_normal((30, 5)))
    assert gamma_value(gamma, X) == pytest.approx(SVC(gamma=gamma).fit(X, np.arange(30) % 2)._gamma, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_gamma_of_constant_data_is_one(value, form):
    assert gamma_value("scale", form(np.full((4, 2), value))) == 1.0


def test_gamma_counts_a_row_of_weight_two_twice():
    X = np.random.default_rng(2).standard_normal((6, 3))
    weight = np.array([1, 2, 1, 3, 1, 1])
    assert gamma_value("scale", X, weight) == pytest.approx(gamma_value("scale", X.repeat(weight, axis=0)), rel=1e-12)


@pytest.mark.parametrize(
    ("options", "is_indefinite"),
    [
        ({"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": -1.0}, True),
        ({"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": -2.0}, True),
        ({"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 0.0}, False),
        ({"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0}, False),
        ({"kernel": lambda A, B: -(A @ B.T)}, True),
    ],
)
def test_a_kernel_that_may_be_indefinite_is_looked_at(options, is_indefinite):
    X = np.random.default_rng(0).uniform(-1, 1, (30, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        zerogap.SVC(**options, max_iter=1000).fit(X, X[:, 0] > 0)
    assert any("not positive semidefinite" in str(warning.message) for warning in caught) == is_indefinite


@pytest.mark.parametrize("degree", [0, 3])
def test_predictions_whose_kernel_values_overflow_are_refused(degree):
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    model = zerogap.SVC(kernel="poly", gamma=1.0, degree=degree, coef0=1.0).fit(X, [0, 0, 1, 1])
    if degree == 0:  # whatever the products, their power is one
        assert np.isfinite(model.decision_function([[1e200]])).all()
    else:
        with pytest.raises(ValueError, match=r"too large for float64.*Scale the features"):
            model.predict([[1e200]])


def test_linear_kernels_about_different_origins_are_different():
    centre = np.array([1.0, 2.0])
    assert Linear() == Linear() != Linear(centre) == Linear(centre.copy()) != Linear(2.0 * centre)
    assert hash(Linear(centre)) == hash(Linear(centre.copy()))
    assert Linear(centre).is_close(Linear(centre.copy()))
    assert not Linear(centre).is_close(Linear())
    assert Linear() + RBF(1.0) != Linear(centre) + RBF(1.0)
    with pytest.raises(ValueError, match="has 2 features; the points have 3"):
        Gram(np.eye(3), Linear(centre))
    with pytest.raises(ValueError, match="must be a point"):
        Linear(np.eye(2))


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1.0, 1e9])
def test_points_are_centred_only_if_they_are_far_from_zero_whatever_their_unit(scale):
    X = np.array([[-1.0, 2.0], [1.0, -2.0], [0.5, 0.0]])
    assert centre_of(scale * (X + 10.0)) is None
    np.testing.assert_allclose(centre_of(scale * (X + 1e4)), scale * 1e4, rtol=1e-3)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), Polynomial(3, 0.5, 1.0)], ids=lambda k: k.name)
def test_entries_of_a_feature_that_is_there_twice_are_summed_up(kernel):
    twice = sp.csr_matrix((np.ones(5), [2, 0, 0, 1, 1], [0, 3, 5]), shape=(2, 3))
    once, X = twice.toarray(), np.eye(3)
    np.testing.assert_allclose(kernel(X, twice), kernel(X, once), rtol=1e-14)
    np.testing.assert_allclose(kernel(twice, X), kernel(once, X), rtol=1e-14)
    np.testing.assert_allclose(kernel(twice, twice), kernel(once, once), rtol=1e-14)
    assert twice.nnz == 5
