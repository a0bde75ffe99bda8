"""Sums in twice the precision against mpmath."""

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

from zerogap import Gram, precision

DIGITS = 1e-28  # of a pair: 106 bits, less what some hundred operations lose


@pytest.fixture(autouse=True)
def many_digits():
    with mp.workprec(300):
        yield


def exact(values):
    return [mp.mpf(float(value)) for value in values]


def assert_close(high, low, truth, scale):
    for a, b, t, s in zip(high, low, truth, np.broadcast_to(scale, len(truth)), strict=True):
        assert (
            abs(mp.mpf(float(a)) + mp.mpf(float(b)) - t) <= DIGITS * abs(float(s)) + 1e-322
        )  # below the normal numbers digits are lost


def test_dot_keeps_what_cancels():
    x = np.array([1e16, 1.0, -1e16, 3e-5])
    assert precision.dot(x, np.ones(4)) == 1.0 + 3e-5
    y = np.array([1 + 2.0**-30, -1.0])
    assert precision.dot(y, np.array([1 - 2.0**-30, 1.0])) == -(2.0**-60)


@pytest.mark.parametrize("x", [0.0, -1e-300, -1e-9, -0.3, -0.3465735902799727, -1.0, -17.25, -699.0])
def test_exponential_has_twice_the_digits(x):
    X, Zt = np.array([[np.sqrt(-x)]]), np.zeros((1, 1))
    high, low = np.zeros((2, 1))
    precision.add_rbf(X, Zt, 1.0, np.ones(1), high, low)
    truth = mp.exp(-(mp.mpf(float(X[0, 0])) ** 2))
    assert_close(high, low, [truth], float(truth))


def test_exponential_ends_in_zero():
    high, low = np.zeros((2, 1))
    precision.add_rbf(np.array([[30.0]]), np.zeros((1, 1)), 1.0, np.ones(1), high, low)
    assert high[0] == low[0] == 0.0


@pytest.mark.covering
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("shift", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-150, 1.0])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_precise_products_are_the_true_ones(kernel, shift, scale, is_sparse):
    rng = np.random.default_rng(3)
    X = (rng.standard_normal((9, 3)) + shift) * scale
    beta = rng.standard_normal(9) * 1e3
    points = sp.csr_matrix(np.hstack([X, np.zeros((9, 600))])) if is_sparse else X
    gamma = 0.3 / scale**2
    gram = Gram(points, kernel, gamma=gamma, coef0=0.7)
    high, low, error = gram.precise_dot(beta, np.arange(9))
    Z, b = [exact(row) for row in X], exact(beta)

    def k(x, z):
        if kernel == "rbf":
            return mp.exp(-mp.mpf(gamma) * sum((p - q) ** 2 for p, q in zip(x, z, strict=True)))
        product = sum(p * q for p, q in zip(x, z, strict=True))
        return product if kernel == "linear" else (mp.mpf(gamma) * product + mp.mpf(0.7)) ** 3

    truth = [sum(bj * k(x, z) for bj, z in zip(b, Z, strict=True)) for x in Z]
    for a, c, t, e in zip(high, low, truth, error, strict=True):
        assert abs(mp.mpf(float(a)) + mp.mpf(float(c)) - t) <= e
    high, low, rounding = gram.precise_dot(beta, np.arange(9), from_data=False)
    for a, c, t, e in zip(high, low, truth, rounding, strict=True):
        assert abs(mp.mpf(float(a)) + mp.mpf(float(c)) - t) <= e
    # The bound is of use: far below what float64 makes of the sum.
    size = [sum(abs(bj * k(x, z)) for bj, z in zip(b, Z, strict=True)) for x in Z]
    assert all(e <= 1e-22 * float(s) + 1e-300 for e, s in zip(error, size, strict=True))


@pytest.mark.parametrize("is_function", [False, True])
def test_sums_of_given_kernel_values_are_within_their_error(is_function):
    rng = np.random.default_rng(0)
    X, beta = rng.standard_normal((12, 3)), rng.standard_normal(12) * 10.0 ** rng.uniform(-8, 8, 12)
    gram = Gram(X, lambda A, B: A @ B.T) if is_function else Gram(X @ X.T, "precomputed")
    high, low, error = gram.precise_dot(beta, np.arange(12))
    b = exact(beta)
    for a, c, e, row in zip(high, low, error, gram.full(), strict=True):
        terms = [p * q for p, q in zip(b, exact(row), strict=True)]
        assert abs(mp.mpf(float(a)) + mp.mpf(float(c)) - sum(terms)) <= e
        assert is_function or e <= DIGITS * sum(map(abs, terms))  # else the values have errors of their own


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_a_constant_feature_is_within_the_error_too(kernel):
    rng = np.random.default_rng(1)
    X, beta, rows = rng.standard_normal((9, 2)), rng.standard_normal(9), np.arange(9)
    plain, (high, low, error) = Gram(X, kernel), Gram(X, kernel, tau=1.3).precise_dot(beta, rows)
    without, more = plain.precise_dot(beta, rows), mp.mpf(1.3) ** 2 * sum(exact(beta))
    for a, b, c, d, e in zip(high, low, without.high, without.low, error + without.error, strict=True):
        assert abs(sum(exact([a, b])) - sum(exact([c, d])) - more) <= e


@pytest.mark.parametrize("centre", [None, 1e6])
def test_a_centre_changes_nothing_where_the_coefficients_sum_to_zero(centre):
    X = np.random.default_rng(0).standard_normal((6, 2)) + 1e6
    beta = np.array([1.0, -2.0, 3.0, -1.0, -2.0, 1.0])
    gram = Gram(X, "linear", centre=None if centre is None else np.full(2, centre))
    high, low, _ = gram.precise_dot(beta, np.arange(6))
    Z = [exact(row) for row in X]
    c = [mp.mpf(centre or 0.0)] * 2
    w = [sum(mp.mpf(float(b)) * z[k] for b, z in zip(beta, Z, strict=True)) for k in range(2)]
    truth = [sum((z[k] - c[k]) * w[k] for k in range(2)) for z in Z]
    assert_close(high, low, truth, 1e13 if centre is None else 1e2)
