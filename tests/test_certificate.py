"""The certificate against an evaluation with many digits: what it says is true, whatever float64 has done."""

import functools
import math

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from conftest import FORMULATIONS

from zerogap import DualProblem, Gram, RelativeGap, Status, solve

KERNELS = {"linear": {}, "poly": {"coef0": 1.0}, "rbf": {}, "rbf-large-gamma": {"gamma": 300.0}}


def awkward(kind, n=14):
    rng = np.random.default_rng(11)
    X = rng.standard_normal((n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    t = X[:, 0] + 0.3 * rng.standard_normal(n)
    if kind == "shifted":
        X = X + 1e6
    elif kind == "outlier":
        X[3] = 1e7
    elif kind == "mixed scales":
        X = X * np.array([1e5, 1.0, 1e-5])
    return X, y, t


@functools.cache
def matrix(points, kernel, gamma, coef0):
    """Return the kernel matrix of points with 300 bits; problems that share the points share it."""
    Z = [[mp.mpf(v) for v in row] for row in points]

    def k(x, z):
        if kernel == "rbf":
            return mp.exp(-mp.mpf(gamma) * sum((p - q) ** 2 for p, q in zip(x, z, strict=True)))
        product = sum(p * q for p, q in zip(x, z, strict=True))
        return product if kernel == "linear" else (mp.mpf(gamma) * product + mp.mpf(coef0)) ** 3

    return [[k(x, z) for z in Z] for x in Z]


class Truth:
    """Primal, dual and gap of a point with 300 bits, from the raw data."""

    def __init__(self, problem, X, kernel, gamma, coef0, beta, bias):
        K = matrix(tuple(tuple(row) for row in X.tolist()), kernel, gamma, coef0)
        b, t = ([mp.mpf(float(v)) for v in values] for values in (beta, problem.target))
        ridge = [mp.mpf(float(v)) for v in problem.ridge]
        n = len(b)
        f = [sum(b[j] * K[i][j] for j in range(n)) for i in range(n)]
        square = sum(b[i] * f[i] for i in range(n))
        eps = mp.mpf(problem.eps)
        self.dual = sum(t[i] * b[i] for i in range(n)) - square / 2
        self.dual -= sum(ridge[i] * b[i] ** 2 / 2 + eps * abs(b[i]) for i in range(n))
        loss = mp.mpf(0)
        for i in range(n):
            r = t[i] - f[i] - mp.mpf(bias)
            over = max(abs(r) - eps, mp.mpf(0))
            bound = problem.upper[i] if r > 0 else -problem.lower[i]
            if bound == 0:
                continue
            loss += over**2 / (2 * ridge[i]) if ridge[i] else mp.mpf(float(bound)) * over
        self.primal = square / 2 + loss
        self.gap = self.primal - self.dual


def assert_true(certificate, truth):
    rounding = mp.mpf(certificate.rounding)
    assert abs(truth.dual - certificate.dual) <= rounding
    assert abs(truth.primal - certificate.primal) <= rounding
    assert truth.gap <= mp.mpf(certificate.gap) + rounding


SOFT = [name for name in FORMULATIONS if name != "hard-margin"]


@pytest.mark.thin(5)
@pytest.mark.parametrize("kind", ["plain", "shifted", "outlier", "mixed scales"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", SOFT)
@pytest.mark.parametrize(
    "fit_intercept", [pytest.param(True, id="bias"), pytest.param(False, id="no-bias", marks=pytest.mark.long)]
)
def test_no_certificate_is_below_the_truth(kind, kernel, name, fit_intercept):
    X, y, t = awkward(kind)
    options, base = KERNELS[kernel], kernel.split("-")[0]
    gram = Gram(X, base, **options)
    problem = FORMULATIONS[name](gram, y, t, fit_intercept=fit_intercept)
    with mp.workprec(300):
        for share in (0.3, 1.0):
            rng = np.random.default_rng(5)
            width = np.where(np.isfinite(problem.upper - problem.lower), problem.upper - problem.lower, 3.0)
            beta = problem.feasible(share * width * rng.uniform(-1, 1, problem.n))
            cheap, dear = problem.certify(beta), problem.certify(beta, precisely=True)
            for certificate in (cheap, dear):
                truth = Truth(
                    problem,
                    X,
                    base,
                    getattr(gram.kernel, "gamma", 1.0),
                    options.get("coef0", 0.0),
                    beta,
                    certificate.bias,
                )
                assert_true(certificate, truth)
            assert dear.rounding <= cheap.rounding
            assert dear.rounding <= 1e-13 * (abs(dear.primal) + abs(dear.dual)) + abs(dear.bias) * 1e-12


@pytest.mark.covering
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("kind", ["plain", "outlier", "shifted"])
def test_converged_is_true_at_a_small_tolerance(kind, is_sparse):
    X, y, _ = awkward(kind, n=30)
    points = sp.csr_matrix(np.hstack([X, np.zeros((30, 400))])) if is_sparse else X
    for C in (1.0, 1e4):
        gram = Gram(points, gamma=0.2)
        problem = DualProblem.hinge(gram, y, C)
        solution = solve(problem, stop=RelativeGap(1e-9))
        assert solution.status is Status.CONVERGED
        with mp.workprec(200):
            truth = Truth(problem, X, "rbf", 0.2, 0.0, solution.beta, solution.bias)
            assert truth.gap <= 1e-9 * truth.primal
            assert_true(solution.certificate, truth)


def test_where_float64_is_not_enough_the_status_says_so():
    X, y, _ = awkward("shifted", n=40)
    problem = DualProblem.hinge(Gram(X + 1e7, "poly", gamma=1.0, degree=5), y, 1.0)
    solution = solve(problem, stop=RelativeGap(1e-6), max_steps=2_000_000)  # it takes some 300,000 to be sure
    assert solution.status is not Status.CONVERGED
    assert "scale the features" in solution.status.advice


def test_a_stretched_margin_is_true():
    X, y, _ = awkward("plain", n=20)
    gram = Gram(X, gamma=1.0)
    problem = DualProblem.hard_margin(gram, y)
    for tol in (1e-2, 1e-9):
        solution = solve(problem, stop=RelativeGap(tol))
        certificate = solution.certificate
        assert solution.status is Status.CONVERGED
        with mp.workprec(200):
            Z = [[mp.mpf(float(v)) for v in row] for row in X]
            b = [mp.mpf(float(v)) for v in solution.beta]
            K = [[mp.exp(-sum((p - q) ** 2 for p, q in zip(x, z, strict=True))) for z in Z] for x in Z]
            f = [sum(b[j] * K[i][j] for j in range(20)) for i in range(20)]
            square = sum(b[i] * f[i] for i in range(20))
            margin = min(y[i] * (f[i] + mp.mpf(certificate.bias)) for i in range(20))
            primal, dual = square / (2 * margin**2), sum(abs(v) for v in b) - square / 2
            assert abs(primal - certificate.primal) <= certificate.rounding
            assert abs(dual - certificate.dual) <= certificate.rounding
            assert primal - dual <= mp.mpf(certificate.gap) + mp.mpf(certificate.rounding)


def test_numbers_beyond_float64_certify_nothing():
    gram = Gram(np.eye(3), "linear")
    problem = DualProblem.squared_hinge(gram, np.array([1.0, -1.0, 1.0]), 1.0)
    certificate = problem.certify(np.array([1e200, -1e200, 0.0]))
    assert certificate.gap == math.inf
    assert certificate.relative_gap == math.inf
    assert np.isfinite(certificate.bias)


def test_a_perfect_fit_is_certified_although_its_objective_is_zero():
    X = np.arange(6.0)[:, None]
    for epsilon in (0.0, 0.1):
        solution = solve(DualProblem.epsilon_insensitive(Gram(X), np.full(6, 0.1), 1.0, epsilon))
        assert solution.status is Status.CONVERGED
        assert solution.certificate.primal == 0.0
        assert solution.bias == pytest.approx(0.1)


def test_an_estimate_counts_the_rounding_it_is_given_and_no_other():
    X = np.random.default_rng(0).standard_normal((20, 2))
    problem = DualProblem.hinge(Gram(X), np.where(X[:, 0] > 0, 1.0, -1.0), 1.0)
    beta = 0.1 * np.where(np.arange(20) % 2 == 0, 1.0, -1.0)
    residual = problem.residual(beta)
    plain = problem.estimate(beta, residual)
    assert problem.estimate(beta, residual, 3.0).rounding - plain.rounding == pytest.approx(3.0)
    assert 0.0 <= plain.rounding <= problem.certify(beta).rounding
    assert plain.relative_gap >= plain.gap / plain.primal


def test_the_rounding_of_a_residual_counts_beside_that_of_its_product():
    """Targets of 1e12 beside a K beta of 1e-3: the difference is rounded to their digits, whatever the product is."""
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1e12, -1e12, 1e12])
    problem = DualProblem.squared_epsilon_insensitive(Gram(X), y, C=1e-12, epsilon=0.0)
    beta = np.array([1e-3, -1e-3, 0.0])
    lost = 2.0**-53 * 1e12 * np.abs(beta).sum()  # of beta'r alone
    assert problem.certify(beta).rounding >= lost
    assert problem.certify(np.zeros(3)).rounding < problem.certify(beta).rounding


def zero_objectives():
    """Problems whose objective is zero, or as near to it as targets are known; the last of them are none."""
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(30, 2)), rng.normal(size=30)
    half, gram = 0.5 * np.ptp(t), Gram(X)
    insensitive, squared = DualProblem.epsilon_insensitive, DualProblem.squared_epsilon_insensitive
    return {
        "half the range": (insensitive(gram, t, 1.0, half), True),
        "a large C": (insensitive(gram, t, 1e6, half), True),
        "far from zero": (insensitive(gram, t + 1e6, 1.0, half), True),
        "squared": (squared(gram, t, 1.0, half), True),
        "fixed bias": (insensitive(gram, t, 1.0, float(np.abs(t).max()), fit_intercept=False), True),
        "one target": (insensitive(gram, np.full(30, 1 / 3), 1.0, 0.0), True),
        "one target, fixed bias": (insensitive(gram, np.full(30, 1 / 3), 1.0, 1 / 3, fit_intercept=False), True),
        "a wider tube": (insensitive(gram, t, 1.0, 2.0 * half), True),
        "a tube that is too narrow": (insensitive(gram, t, 1.0, half * (1.0 - 1e-12)), False),
        "one target off": (insensitive(gram, np.where(np.arange(30) == 3, 1e-9, 0.0), 1.0, 0.0), False),
    }


@pytest.mark.parametrize("name", zero_objectives())
def test_an_objective_of_zero_is_converged_and_has_no_relative_gap(name):
    problem, is_zero = zero_objectives()[name]
    start = problem.certify(np.zeros(30))
    assert start.is_zero == is_zero
    if not is_zero:
        assert start.relative_gap > 0.1
        return
    assert start.relative_gap == 0.0
    # What is left is the cost of targets that are off by their last digits.
    assert (
        start.gap <= problem.upper.max() * 30 * 1e-15 * (np.abs(problem.target).max() + problem.eps)
        or problem.has_ridge
    )
    for solver in ("smo", "simple-svm"):
        solution = solve(problem, solver, stop=RelativeGap(1e-9))
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == 0
        assert not solution.beta.any()


def test_only_a_point_without_coefficients_counts_as_zero():
    problem, _ = zero_objectives()["half the range"]
    beta = np.zeros(30)
    beta[:2] = 1e-9, -1e-9
    assert not problem.certify(beta).is_zero
    assert not DualProblem.hinge(problem.gram, np.tile([-1, 1], 15), 1.0).certify(np.zeros(30)).is_zero
    assert not DualProblem.one_class(problem.gram, 0.5).certify(np.full(30, 0.5)).is_zero
