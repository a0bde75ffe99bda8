"""Kernels as objects: by themselves, in sums and products, of a user's own, and where a name would do."""

import copy
import pickle
import re
import signal
import threading
import warnings
from dataclasses import dataclass

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise
from sklearn.model_selection import GridSearchCV

from zerogap import SVC, SVR, DualProblem, GaussianProcessRegressor, Gram, Status, SVCPath, limits, solve, svm_path
from zerogap.compiled import jit
from zerogap.kernels import (
    NAMES,
    RBF,
    UNDERFLOW,
    UNIT,
    Constant,
    Function,
    Kernel,
    Linear,
    Polynomial,
    Precomputed,
    Product,
    Scaled,
    Sigmoid,
    Sum,
    as_kernel,
)

X, y = load_iris(return_X_y=True)
X, y = X[50:], y[50:]

OBJECTS = {
    "linear": Linear(),
    "poly": Polynomial(2, 0.3, 1.0),
    "rbf": RBF(0.3),
    "sigmoid": Sigmoid(0.3, 1.0),
    "precomputed": Precomputed(),
}
PARAMETERS = {"gamma": 0.3, "degree": 2, "coef0": 1.0}
EXPRESSIONS = [
    RBF(),
    RBF(0.5),
    *OBJECTS.values(),
    RBF(0.1) + 2.0 * Linear(),
    (RBF("auto") + 1.0) * Polynomial(2),
    Constant(2.0),
]


@jit
def _laplacian_block(X, Z, gamma):
    out = np.empty((X.shape[0], Z.shape[0]))
    for i in range(X.shape[0]):
        for j in range(Z.shape[0]):
            out[i, j] = np.exp(-gamma * np.abs(X[i] - Z[j]).sum())
    return out


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma |x - z|_1), with a compiled block of its own."""

    gamma: float = 1.0

    is_positive = True

    def values(self, X, Z):
        return _laplacian_block(X, Z, self.gamma)


# Names and objects.


def test_every_name_has_an_object():
    assert set(OBJECTS) == set(NAMES)
    for name, kernel in OBJECTS.items():
        assert as_kernel(name, **PARAMETERS) == kernel
        assert as_kernel(kernel) is kernel
    assert as_kernel(pairwise.laplacian_kernel) == Function(pairwise.laplacian_kernel)


@pytest.mark.covering
@pytest.mark.parametrize("name", [name for name in NAMES if name != "sigmoid"])  # which is indefinite here
@pytest.mark.parametrize("make", [SVC, SVR, GaussianProcessRegressor, SVCPath])
def test_an_object_is_the_same_model_as_its_name(make, name):
    data = X @ X.T if name == "precomputed" else X
    by_name = make(kernel=name, **PARAMETERS).fit(data, y)
    by_object = make(kernel=OBJECTS[name]).fit(data, y)
    np.testing.assert_array_equal(by_object.predict(data), by_name.predict(data))
    if make is SVCPath:
        np.testing.assert_array_equal(by_object.path_.C, by_name.path_.C)
        by_object, by_name = by_object.at(2.0), by_name.at(2.0)
        assert by_object.kernel == OBJECTS[name]
    np.testing.assert_array_equal(by_object.dual_coef_, by_name.dual_coef_)
    assert by_object.certificate_ == by_name.certificate_
    if name == "linear" and make is not GaussianProcessRegressor:
        np.testing.assert_array_equal(by_object.coef_, by_name.coef_)
    else:
        assert hasattr(by_object, "coef_") == hasattr(by_name, "coef_")


def test_gamma_scale_is_resolved_on_the_data_once():
    gram = Gram(X, RBF("scale") + Polynomial(2, "auto"))
    assert gram.kernel.is_close(RBF(1.0 / (4 * X.var())) + Polynomial(2, 0.25))
    assert not gram.kernel.is_close(RBF(1.001 / (4 * X.var())) + Polynomial(2, 0.25))
    assert not gram.kernel.is_close(RBF(1.0 / (4 * X.var())) + Linear())
    weight = np.arange(100) % 3
    model = SVC(kernel=2.0 * RBF()).fit(X, y, weight)
    assert model.kernel == 2.0 * RBF("scale")
    assert model._kernel.kernel.gamma == pytest.approx(1.0 / (4 * X.repeat(weight, axis=0).var()), rel=1e-12)
    with pytest.raises(ValueError, match=r"gamma='scale' depends on the data.*resolved"):
        RBF()(X, X)
    with pytest.raises(ValueError, match=r"gamma='auto' depends on the data.*resolved"):
        Polynomial(gamma="auto").diagonal(X)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", [RBF(0.3), 2.0 * Linear(), Laplacian(0.5)], ids=repr)
@pytest.mark.parametrize(
    "beside", [{"gamma": 7.0}, {"degree": 2}, {"coef0": 1.0}, {"gamma": "auto", "coef0": -1.0}], ids=str
)
def test_parameters_beside_an_object_are_refused(kernel, beside):
    said = " and ".join(f"{name}={value!r}" for name, value in beside.items())
    for fit in (
        lambda **options: Gram(X, kernel, **options),
        lambda **options: SVC(kernel=kernel, **options).fit(X, y),
        lambda **options: svm_path(X, y, kernel=kernel, C_max=1.0, **options),
    ):
        with pytest.raises(ValueError, match=rf"{said} beside kernel=.* would have no effect: .* Set them there"):
            fit(**beside)
    SVC(kernel=kernel, gamma="scale", degree=3, coef0=0.0).fit(X, y)  # as a clone gives them
    Gram(X, pairwise.laplacian_kernel, **beside)  # beside a function they mean nothing, as in scikit-learn


def test_the_model_of_a_path_has_the_parameters_of_the_path():
    for kernel in ("rbf", RBF(0.3), 2.0 * RBF(0.3)):
        path = SVCPath(kernel=kernel, C_max=2.0).fit(X, y)
        model = path.at(1.0)
        np.testing.assert_allclose(clone(model).fit(X, y).decision_function(X), model.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("kernel", EXPRESSIONS, ids=repr)
def test_objects_read_like_the_call_that_makes_them_and_are_compared_by_value(kernel):
    twin = eval(repr(kernel))
    assert twin == kernel
    assert hash(twin) == hash(kernel)
    assert copy.deepcopy(kernel) == pickle.loads(pickle.dumps(kernel)) == kernel
    assert sum(kernel == other for other in EXPRESSIONS) == 1
    for name in vars(kernel):
        with pytest.raises(AttributeError):
            setattr(kernel, name, 1.0)


def test_scikit_learn_clones_sets_and_searches_kernels():
    model = SVC(kernel=RBF(0.5) + Linear())
    assert clone(model).kernel == model.kernel
    assert model.set_params(kernel=RBF(0.25)).get_params()["kernel"] == RBF(0.25)
    choices = [RBF(1e-9), 3.0 * RBF(0.1), Laplacian(0.2), Linear() * Linear()]
    search = GridSearchCV(SVC(), {"kernel": choices, "C": [1.0]}, cv=3).fit(X, y)
    assert search.best_params_["kernel"] in choices[1:]
    of_matrix = GridSearchCV(SVC(), {"kernel": [Precomputed()], "C": [0.1, 1.0]}, cv=3)
    of_matrix.estimator.set_params(kernel=Precomputed())  # what tells that X is a matrix
    assert of_matrix.fit(X @ X.T, y).best_score_ > 0.9


# Sums and products.


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_sums_and_products_are_those_of_the_matrices(form):
    Z = form(X[:20])
    a, b, c = RBF(0.3), Polynomial(2, 0.3, 1.0), Laplacian(0.2)
    A, B, C = (kernel(X[:20], X[:20]) for kernel in (a, b, c))
    for kernel, K in (
        (a + b, A + B),
        (a * b * c, A * B * C),
        (2.0 * a + b, 2.0 * A + B),
        (a * 0.5, 0.5 * A),
        (3 + a * (b + c), 3.0 + A * (B + C)),
        (c + 1.5, C + 1.5),
    ):
        np.testing.assert_allclose(kernel(Z, Z), K, rtol=1e-12)
        np.testing.assert_allclose(kernel.diagonal(Z), np.diag(K), rtol=1e-12)
        np.testing.assert_allclose(Gram(Z, kernel).full(), K, rtol=1e-12)
        assert kernel.is_positive
    assert not (a + Sigmoid(0.1)).is_positive
    assert not (a * Function(pairwise.laplacian_kernel)).is_positive
    assert (2.0 * a + 1.0).is_radial
    assert not (a + b).is_radial
    assert Gram(X, 2.0 * a + 1.0).evaluations == 0
    assert Gram(X, a + b).evaluations == 100


@pytest.mark.covering
@pytest.mark.parametrize(
    "kernel", [RBF(0.2) + 0.1 * Linear(), 5.0 * RBF(0.1), RBF(0.2) * Polynomial(1, 0.1, 1.0)], ids=repr
)
@pytest.mark.parametrize("solver", ["smo", "simple-svm", "rosen"])
def test_a_sum_or_product_is_solved_as_its_matrix_is(kernel, solver):
    model = SVC(kernel=kernel, solver=solver, tol=1e-10).fit(X, y)
    matrix = SVC(kernel="precomputed", tol=1e-10).fit(kernel(X, X), y)
    assert model.duality_gap_ <= 1e-10
    assert model.certificate_.primal == pytest.approx(matrix.certificate_.primal, rel=1e-9)
    path = svm_path(X, y, kernel=kernel, C_max=10.0)
    assert path.largest_gap_ <= 1e-9


def exact(kernel, x, z):
    """The value of a kernel at two points, in mpmath's precision."""
    match kernel:
        case Constant():
            return mp.mpf(kernel.value)
        case Scaled():
            return mp.mpf(kernel.factor) * exact(kernel.kernel, x, z)
        case Sum():
            return exact(kernel.left, x, z) + exact(kernel.right, x, z)
        case Product():
            return exact(kernel.left, x, z) * exact(kernel.right, x, z)
        case RBF():
            return mp.exp(-mp.mpf(kernel.gamma) * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
    inner = sum(a * b for a, b in zip(x, z, strict=True))
    if isinstance(kernel, Linear):
        return inner
    inner = mp.mpf(kernel.gamma) * inner + mp.mpf(kernel.coef0)
    return inner**kernel.degree if isinstance(kernel, Polynomial) else mp.tanh(inner)


def drawn(rng, scale, depth=2):
    """A kernel for points of some size: what makes up most of it, and how large it is, is left to chance."""
    if depth:
        left, right = drawn(rng, scale, depth - 1), drawn(rng, scale, depth - 1)
        kind = rng.integers(4)
        return [left + right, left * right, 10.0 ** rng.uniform(-90, 90) * left, left][kind]
    gamma = 10.0 ** rng.uniform(-3, 4) / scale**2
    choices = [
        Linear(),
        RBF(gamma),
        RBF(0.1 * gamma),
        Polynomial(int(rng.integers(1, 7)), gamma, rng.standard_normal()),
    ]
    return [*choices, Sigmoid(gamma, rng.standard_normal()), Constant(10.0 ** rng.uniform(-20, 20))][rng.integers(6)]


def drawn_cases(count):
    rng = np.random.default_rng(7)
    while count:
        n, d, scale = 6, int(rng.integers(1, 5)), 10.0 ** rng.uniform(-12, 12)
        points = rng.standard_normal((n, d))
        points += 10.0 ** rng.uniform(-1, 4) * (rng.random() < 0.5)  # far from zero
        points[: rng.integers(3)] *= 10.0 ** rng.uniform(0, 5)  # outliers
        points *= scale
        form = sp.csr_matrix(np.hstack([points, np.zeros((n, 400))])) if rng.random() < 0.3 else points
        try:
            gram = Gram(form, drawn(rng, scale))
            gram.full()
        except ValueError:  # too large for float64, as it says
            continue
        count -= 1
        yield rng, gram, points


@pytest.mark.long
def test_no_value_of_a_sum_or_product_is_further_off_than_its_bound():
    """Values, products with them, and both kinds of sums in twice the precision; over awkward scales."""
    seen = set()
    for rng, gram, points in drawn_cases(250):
        n, d = gram.n, gram.X.shape[1]
        (p, q), (r, s) = gram.rounding.relative, gram.rounding.absolute
        K, beta = gram.full(), rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3, n)
        size = gram.rounding.magnitude
        assert (np.abs(K) <= np.outer(size, size) * (1.0 + 1e-12) + UNDERFLOW * (d + 2.0)).all(), gram.kernel
        with np.errstate(over="ignore"):
            bound = 1.01 * UNIT * (np.abs(K) * (p.T @ q) + r.T @ s) + UNDERFLOW * (d + 2.0)
            dot, error = gram.dot(beta), gram.dot_error(beta)
            precise = [gram.precise_dot(beta, np.arange(n), from_data=from_data) for from_data in (True, False)]
        with mp.workprec(400):
            Z = [[mp.mpf(float(v)) for v in row] for row in points]
            truth = [[exact(gram.kernel, x, z) for z in Z] for x in Z]
            for i in range(n):
                for j in range(n):
                    if i != j:  # the diagonal of the matrix is not computed as a block is
                        off = abs(mp.mpf(float(K[i, j])) - truth[i][j])
                        assert off <= mp.mpf(float(bound[i, j])), gram.kernel
                        seen.add((type(gram.kernel), bool(off > 100 * UNIT * abs(truth[i][j]))))
                product = sum(k * mp.mpf(float(b)) for k, b in zip(truth[i], beta, strict=True))
                assert abs(mp.mpf(float(dot[i])) - product) <= mp.mpf(float(error[i])), gram.kernel
                for high, low, most in precise:
                    off = abs(mp.mpf(float(high[i])) + mp.mpf(float(low[i])) - product)
                    assert off <= mp.mpf(float(most[i])), gram.kernel
    assert {(kind, True) for kind in (Sum, Product, Scaled)} <= seen  # rounding was there to be bounded


@pytest.mark.parametrize(
    ("kernel", "distance"),
    [
        (Scaled(1e300, RBF(1.0)), np.sqrt(735.0)),  # a value of 6e-320 has few digits, however it is scaled
        (RBF(1.0) * Constant(1e300), np.sqrt(735.0)),
        (Constant(1e300) * RBF(1.0), np.sqrt(735.0)),
        (Scaled(1e300, Linear()) + 1e-300, 3e-165),  # a product of 1e-329 is zero
        (Constant(1.0 / 3.0) * Constant(0.7), 1.0),  # a product is itself rounded
    ],
    ids=repr,
)
def test_what_is_lost_below_the_normal_numbers_is_counted(kernel, distance):
    points, beta = np.array([[0.5 * distance], [-0.5 * distance]]), np.array([0.0, 1.0])
    gram = Gram(points, kernel)
    (p, q), (r, s), K = gram.rounding.relative, gram.rounding.absolute, gram.full()
    bound = 1.01 * UNIT * (np.abs(K) * (p.T @ q) + r.T @ s) + 3.0 * UNDERFLOW
    precise = [gram.precise_dot(beta, np.arange(2), from_data=from_data) for from_data in (True, False)]
    with mp.workprec(4000):
        truth = exact(kernel, *([mp.mpf(float(x))] for x in points[:, 0]))
        off = float(abs(mp.mpf(float(K[0, 1])) - truth))
        assert 0.0 < off <= bound[0, 1]
        assert off <= gram.dot_error(beta)[0]
        for high, low, error in precise:
            assert abs(mp.mpf(float(high[0])) + mp.mpf(float(low[0])) - truth) <= mp.mpf(float(error[0]))


def test_the_bound_of_a_scaled_kernel_is_hardly_larger():
    """And so a certificate with it converges where the kernel itself does."""
    beta = np.random.default_rng(0).standard_normal(100)
    for kernel in (RBF(5.0), Linear(), Polynomial(3, 0.1, 1.0)):
        own, scaled = (Gram(X, k).dot_error(beta) for k in (kernel, 3.0 * kernel))
        assert (scaled <= 3.5 * own).all()
        one, other = (Gram(X, k).precise_dot(beta, np.arange(100)) for k in (kernel, 3.0 * kernel + 1.0))
        assert (other.error <= 10.0 * one.error + UNIT**2 * 1e6).all()


# A kernel of one's own.


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_a_kernel_of_ones_own_is_one_small_class(form):
    model = SVC(kernel=Laplacian(0.5), tol=1e-8).fit(form(X), y)
    function = SVC(kernel=lambda A, B: pairwise.laplacian_kernel(A, B, gamma=0.5), tol=1e-8).fit(X, y)
    assert model.duality_gap_ <= 1e-8
    np.testing.assert_allclose(model.decision_function(form(X)), function.decision_function(X), atol=1e-3)
    path = SVCPath(kernel=Laplacian(0.5), C_max=5.0).fit(form(X), y)
    assert path.largest_gap_ <= 1e-9
    np.testing.assert_allclose(path.decision_function(X, C=1.0), function.decision_function(X), atol=1e-3)
    wide = form(np.hstack([X, np.zeros((100, 400))]))
    np.testing.assert_allclose(Gram(wide, Laplacian(0.5)).full(), Gram(X, Laplacian(0.5)).full(), rtol=1e-12)


def test_a_kernel_of_ones_own_may_say_more():
    class Known(Laplacian):
        knows_diagonal = True

        def diagonal(self, X):
            assert isinstance(X, np.ndarray)
            return np.ones(X.shape[0])

        def roundings(self, d):
            return 3.0

    wide = sp.csr_matrix(np.hstack([X, np.zeros((100, 400))]))
    assert (Gram(wide, 2.0 * Known(0.5)).diagonal == 2.0).all()
    plain, known = Gram(X, Laplacian(0.5)), Gram(X, Known(0.5))
    assert (plain.evaluations, known.evaluations) == (100, 0)
    np.testing.assert_array_equal(plain.full(), known.full())
    assert (known.dot_error(np.eye(100)[0]) < plain.dot_error(np.eye(100)[0])).all()


# Bad input.


class Empty(Kernel):
    pass


class WrongDiagonal(RBF):
    def diagonal(self, X):
        return np.ones((len(X), 1))


class OwnDiagonal(Kernel):
    """<x, z>, and whatever diagonal."""

    def __init__(self, diagonal):
        self.found = diagonal

    def values(self, X, Z):
        return X @ Z.T

    def diagonal(self, X):
        return self.found(X)


class Mistaken(Kernel):
    """Says that it is positive semidefinite, and is the contrary."""

    is_positive = True

    def values(self, X, Z):
        return -X @ Z.T


class NoBound(Laplacian):
    def roundings(self, d):
        return None


class Wrong(Kernel):
    def __init__(self, result):
        self.result = result

    def values(self, X, Z):
        return self.result


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(-1.0), r"gamma must be at least 0 and finite; got gamma=-1.0.*scale"),
        (lambda: RBF("large"), r"Unknown gamma 'large'. Choose one of 'scale', 'auto'"),
        (lambda: RBF(None), r"gamma must be a number; got None"),
        (lambda: Polynomial(1.5), r"degree must be a whole number, 0 or more; got degree=1.5"),
        (lambda: Polynomial(-1), r"degree must be a whole number"),
        (lambda: Polynomial(coef0=np.inf), r"coef0 must be a finite number; got coef0=inf"),
        (lambda: Sigmoid(coef0="a"), r"coef0 must be a finite number; got coef0='a'"),
        (lambda: Sigmoid(np.nan), r"gamma must be at least 0"),
        (lambda: Constant(-1.0), r"value must be at least 0.*no inner product"),
        (lambda: -2.0 * RBF(), r"factor must be above 0.*no inner product"),
        (lambda: 0.0 * RBF(), r"factor must be above 0"),
        (lambda: RBF() + -1.0, r"value must be at least 0"),
        (lambda: Sum(RBF(), "linear"), r"Sum takes kernel objects, such as RBF\(0.5\); got 'linear'.*such as Linear"),
        (lambda: Scaled(1.0, np.dot), r"Scaled takes kernel objects.*Function\(f\)"),
        (lambda: Product(RBF(), Precomputed()), r"Product takes kernel objects.*multiply the matrices"),
        (lambda: Function(3), r"Function takes a function of two sets of points; got 3"),
        (lambda: Gram(X, "gauss"), r"Unknown kernel 'gauss'. Choose one of 'linear'.*kernels.Kernel"),
        (lambda: Gram(X, 3), r"Unknown kernel 3"),
        (lambda: Gram(X, RBF), r"must be a kernel object; got the class RBF. Pass RBF\(...\)"),
        (lambda: SVC(kernel=RBF).fit(X, y), r"got the class RBF"),
        (lambda: SVC(kernel=Empty()).fit(X, y), r"Empty has no values.*values\(self, X, Z\)"),
        (lambda: svm_path(X, y, kernel=Empty()), r"Empty has no values"),
        (
            lambda: Gram(X, WrongDiagonal(1.0)),
            r"diagonal of the rbf kernel must return.*\(100,\); got shape \(100, 1\)",
        ),
        (
            lambda: Gram(X, OwnDiagonal(lambda X: 2.0 * (X**2).sum(axis=1))),
            r"OwnDiagonal kernel gives (\S+) for two points, and (\S+) by its diagonal\(X\)",
        ),
        (lambda: Gram(X, 2.0 * OwnDiagonal(lambda X: -(X**2).sum(axis=1))), r"by its diagonal\(X\): they differ by 2"),
        (lambda: Gram(X, OwnDiagonal(lambda X: np.full(100, np.nan))), r"diagonal of the OwnDiagonal.*NaN for point 0"),
        (
            lambda: Gram(X, OwnDiagonal(lambda X: (X**2).sum(axis=1) + 0j)),
            r"diagonal of.*real numbers; got.*complex128",
        ),
        (lambda: Gram(X, OwnDiagonal(lambda X: ["a"] * 100)), r"diagonal of the.*real numbers; got values of type <U1"),
        (lambda: Gram(X, OwnDiagonal(lambda X: None)), r"diagonal of the.*\(100,\); got shape \(\)"),
        (
            lambda: Gram(X, Mistaken()),
            r"Mistaken kernel has is_positive = True, and k\(x, x\) = -.* Leave is_positive out",
        ),
        (
            lambda: Gram(X, NoBound(0.5)),
            r"roundings\(d\) of the NoBound kernel must be a number; got None.*units roundoff",
        ),
        (lambda: Gram(X, Wrong(1.0)), r"The Wrong kernel must return the matrix of kernel values.*\(1, 1\); got \(\)"),
        (lambda: Gram(X, Wrong(np.array([["a"]]))), r"array of real numbers"),
        (lambda: Gram(X, RBF(), centre=np.zeros(4)), r"centre is an origin for the linear kernel; the kernel is RBF"),
        (lambda: Precomputed()(X, X), r"no values but those of its matrix"),
        (lambda: RBF(1.0) + "linear", r"Sum takes kernel objects.*got 'linear'\. Names are for kernel= alone"),
        (lambda: "linear" + RBF(1.0), r"Sum takes kernel objects.*got 'linear'\. Names are for kernel= alone"),
        (lambda: RBF(1.0) * "linear", r"Product takes kernel objects.*got 'linear'"),
        (lambda: RBF(1.0) + pairwise.laplacian_kernel, r"Sum takes kernel objects.*Wrap a function.*as Function\(f\)"),
        (lambda: pairwise.laplacian_kernel * RBF(1.0), r"Product takes kernel objects.*Wrap a function"),
        (lambda: RBF(1.0) + Linear, r"Sum takes kernel objects.*got the class Linear\. Pass Linear\(\.\.\.\)"),
        (lambda: Linear * RBF(1.0), r"Product takes kernel objects.*got the class Linear"),
        (lambda: RBF(1.0) + None, r"Sum takes kernel objects.*numbers too; got None of type NoneType"),
        (lambda: RBF(1.0) * True, r"Product takes kernel objects.*got True of type bool"),
        (lambda: np.ones(2) * RBF(1.0), r"Product takes kernel objects.*of type ndarray"),
    ],
)
def test_what_is_wrong_is_told(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


# Points far from zero.


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array])
def test_csr_points_far_from_zero_keep_their_digits_as_dense_ones_do(form):
    """Small CSR data are made dense anyway, so the linear kernel is taken about their middle."""
    at_zero = np.round(X * 2.0**20) / 2.0**20  # on a grid, so that the shift is exact
    shifted = at_zero + 2.0**24
    dense, sparse = (SVC(kernel="linear", tol=1e-9).fit(points, y) for points in (shifted, form(shifted)))
    plain = SVC(kernel="linear", tol=1e-9).fit(at_zero, y)
    assert sparse.status_ is Status.CONVERGED
    assert sparse.certificate_ == dense.certificate_
    assert sparse.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-8)
    np.testing.assert_array_equal(sparse.coef_.toarray(), dense.coef_)
    np.testing.assert_array_equal(sparse.decision_function(form(shifted)), dense.decision_function(shifted))
    np.testing.assert_array_equal(sparse.predict(shifted), dense.predict(shifted))
    paths = [svm_path(points, y, kernel="linear", C_max=10.0) for points in (shifted, form(shifted))]
    np.testing.assert_array_equal(*(path.C for path in paths))
    assert paths[1].bias_at(1.0) == paths[0].bias_at(1.0)
    grown = SVC(kernel="linear").partial_fit(form(shifted[::2]), y[::2]).partial_fit(form(shifted[1::2]), y[1::2])
    assert grown.duality_gap_ <= 1e-9
    regression = [SVR(kernel="linear", tol=1e-8).fit(points, at_zero[:, 0]) for points in (shifted, form(shifted))]
    np.testing.assert_array_equal(regression[0].predict(shifted), regression[1].predict(form(shifted)))


def test_csr_points_of_many_features_stay_where_they_are():
    """About a centre their zeros would be none."""
    wide = sp.csr_matrix(np.hstack([X + 1e6, np.zeros((100, 400))]))
    assert svm_path(wide[:, :4], y, kernel="linear", C_max=1e-3).gram.kernel.centre is not None
    assert Linear().centred(wide).centre is None


# Limits.


class Slow:
    """A kernel function whose every call takes a while: here, one tick of the clock."""

    def __init__(self):
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        return A @ B.T


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes by the calls of a kernel: a second each."""
    slow = Slow()
    now = type("Clock", (), {"perf_counter": staticmethod(lambda: float(slow.calls))})
    for module in ("zerogap.limits", "zerogap.estimators.svc", "zerogap.estimators.svr", "zerogap.estimators.base"):
        monkeypatch.setattr(f"{module}.time", now)
    return slow


@pytest.mark.parametrize("make", [SVC, SVR, GaussianProcessRegressor, SVCPath])
def test_the_diagonal_of_a_function_asks_for_the_limit(make, clock):
    """It takes a call for every point.  What is left is a model that says it has not begun."""
    with pytest.warns(ConvergenceWarning, match="max_time=20"):
        model = make(kernel=clock, max_time=20.0).fit(X, y)
    assert 20 <= clock.calls <= 25
    if make is SVCPath:
        assert model.path_.status == "max_time"
        assert not model.path_.has_segments
        path = svm_path(X, y, kernel=clock, resume=model.path_, C_max=0.01)
        assert path.status == "complete"
        assert path.largest_gap_ <= 1e-9
        return
    assert model.status_ is Status.MAX_TIME
    assert model.duality_gap_ == np.inf
    assert model.predict(X).shape == (100,)


def test_every_pair_of_classes_has_its_time(clock):
    X3, y3 = load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"3 of 3 pairs.*max_time=20"):
        model = SVC(kernel=clock, max_time=20.0).fit(X3, y3)
    assert model.status_ == [Status.MAX_TIME] * 3
    assert 60 <= clock.calls <= 75


def test_ctrl_c_ends_a_diagonal():
    calls = 0

    def kernel(A, B):
        nonlocal calls
        calls += 1
        if calls == 10:
            signal.raise_signal(signal.SIGINT)
        return A @ B.T

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVC(kernel=kernel).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert calls <= 15


@pytest.mark.parametrize("make", [SVC, SVR])
def test_the_trial_whether_a_kernel_is_positive_asks_for_the_limit(make):
    """It takes kernel values of some hundred points, which a kernel of one's own may take long for."""
    rows = []

    class Interrupted(Laplacian):
        is_positive = False

        def values(self, X, Z):
            if len(X) > 6:  # more than to see whether values agree
                rows.append(len(X))
                signal.raise_signal(signal.SIGINT)
            return super().values(X, Z)

    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = make(kernel=Interrupted(0.5)).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert rows == [16]


def test_a_diagonal_cut_short_is_computed_by_whoever_needs_it(clock):
    with limits.limits(20.0):
        gram = Gram(X, clock)
        problem = DualProblem.hinge(gram, np.where(y == 1, 1.0, -1.0), 1.0)
        assert solve(problem).status is Status.MAX_TIME
        assert gram.evaluations == 0
        with pytest.raises(limits.Exceeded):
            _ = gram.diagonal
    assert solve(problem).status is Status.CONVERGED
    np.testing.assert_allclose(gram.diagonal, (X**2).sum(axis=1), rtol=1e-14)


def test_several_threads_may_ask_for_the_same_bound():
    gram, beta, found = Gram(X, RBF(0.5) + Linear()), np.ones(100), []
    threads = [threading.Thread(target=lambda: found.append(gram.dot_error(beta))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for bound in found:
        np.testing.assert_array_equal(bound, found[0])


# Values that are computed by a user's code.


@dataclass(frozen=True)
class Single(Kernel):
    """<x, z> in float32."""

    name = "single"
    is_positive = True  # but for what it is off

    def values(self, X, Z):
        return X.astype(np.float32) @ Z.astype(np.float32).T


class Stated(Single):
    def roundings(self, d):
        return 2.0**29 * (d + 2.0)  # each feature is rounded to float32, and so is a sum of d products of them


class Understated(Single):
    def roundings(self, d):
        return 1e5


class Intersection(Kernel):
    """Whole numbers up to 16, and sums of 64 of them: float32 is exact."""

    def values(self, X, Z):
        return np.minimum(X[:, None], Z).sum(axis=2, dtype=np.float32)


def skewed(X, Z):
    return X @ np.triu(np.ones((X.shape[1], X.shape[1]))) @ Z.T


def of_float32(X, Z):
    return Single().values(X, Z)


def noisy(X, Z):
    return X @ Z.T * (1.0 + 1e-8 * NOISE.standard_normal((len(X), len(Z))))


NOISE = np.random.default_rng(0)
FEATURES = np.random.default_rng(0).standard_normal((100, 20))


@pytest.mark.parametrize("kernel", [of_float32, Single(), 2.0 * Single() + RBF(0.1), Single() * RBF(0.1)])
def test_float32_in_the_values_of_ones_own_is_refused_where_it_shows(kernel):
    """In another order its sums are others, and nothing would know by how much."""
    said = r"they differ by \d\.\de-0[78] of their size, more than float64 rounds\. .*float64, or say.*roundings\(d\)"
    for make in (
        lambda: Gram(FEATURES, kernel),
        lambda: SVC(kernel=kernel).fit(FEATURES, y),
        lambda: svm_path(FEATURES, y, kernel=kernel, C_max=1.0),
    ):
        with pytest.raises(ValueError, match=said):
            make()


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (skewed, r"callable kernel gives .* with the points exchanged.*A kernel is symmetric"),
        (noisy, r"the same number whenever it is asked for"),
        (Understated(), r"single kernel gives .* more than the 100000 units roundoff of its roundings\(d\)"),
    ],
)
def test_values_that_depend_on_how_they_are_asked_for_are_refused(kernel, message):
    with pytest.raises(ValueError, match=message):
        SVC(kernel=kernel).fit(FEATURES, y)


def test_what_a_kernel_says_it_is_off_counts_in_the_certificate():
    model, exact = SVC(kernel=Stated(), tol=1e-2).fit(FEATURES, y), SVC(kernel=Linear(), tol=1e-2).fit(FEATURES, y)
    assert model.status_ is Status.CONVERGED
    assert 1e6 * exact.certificate_.rounding < model.certificate_.rounding < 1e-2 * model.certificate_.primal
    problem = DualProblem.hinge(Gram(FEATURES, "linear"), np.where(y == 2, 1.0, -1.0), 1.0)
    beta = np.zeros(100)
    beta[model.support_] = model.dual_coef_[0]
    true = problem.certify(problem.feasible(beta))
    assert abs(true.dual - model.certificate_.dual) <= model.certificate_.rounding + true.rounding


def test_values_of_float32_that_are_exact_are_a_kernel_like_any_other():
    """They define it: in a block and alone they are the same."""
    digits, labels = load_digits(return_X_y=True)
    digits, labels = digits[labels > 7], labels[labels > 7]
    single = SVC(kernel=Intersection(), tol=1e-8).fit(digits[::2], labels[::2])
    double = SVC(kernel=lambda A, B: np.minimum(A[:, None], B).sum(axis=2), tol=1e-8).fit(digits[::2], labels[::2])
    assert single.status_ is Status.CONVERGED
    np.testing.assert_array_equal(single.decision_function(digits), double.decision_function(digits))


def test_a_function_that_rounds_more_than_was_assumed_has_a_wider_certificate():
    """Values that are others alone than in a block, by 1e-10, as those of |x - z|² by expansion are on some processors."""

    def rough(A, B):
        return pairwise.rbf_kernel(A, B, gamma=0.1) * (1.0 + 1e-10 * (len(A) > 1))

    model, exact = SVC(kernel=rough).fit(FEATURES[:, :2], y), SVC(kernel=RBF(0.1)).fit(FEATURES[:, :2], y)
    assert model.certificate_.rounding > 100 * exact.certificate_.rounding
    bound = model.certificate_.rounding + exact.certificate_.rounding
    assert abs(model.certificate_.dual - exact.certificate_.dual) <= bound + 1e-4 * exact.certificate_.primal


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array], ids=["dense", "csr", "csr-array"])
@pytest.mark.parametrize("order", ["sorted", "unsorted"])
def test_what_a_function_does_to_its_points_it_does_to_none_of_ours(form, order):
    points = form(np.where(np.abs(FEATURES) < 1.5, 0.0, FEATURES))
    given = points.copy()
    if order == "unsorted" and sp.issparse(points):
        points.indices[:] = np.concatenate([np.sort(row.indices)[::-1] for row in points])
        points.data[:] = np.concatenate([row.data[::-1] for row in points])
        points.has_sorted_indices = False

    def doubling(X, Z):
        data = Z.data if sp.issparse(Z) else Z
        data *= 2.0
        product = X @ Z.T
        return product.toarray() if sp.issparse(product) else product

    expected = 2.0 * (given @ given.T)
    for kernel in (doubling, Function(doubling) + Constant(0.0)):
        gram = Gram(points, kernel)
        for _ in range(2):
            K = gram.fresh().full()
            np.testing.assert_allclose(K, expected.toarray() if sp.issparse(expected) else expected, rtol=1e-12)
    dense = np.asarray(given.todense() if sp.issparse(given) else given)
    np.testing.assert_array_equal(points.toarray() if sp.issparse(points) else points, dense)


@pytest.mark.covering
@pytest.mark.parametrize(
    "name", ["laplacian_kernel", "chi2_kernel", "rbf_kernel", "polynomial_kernel", "cosine_similarity"]
)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_kernels_of_scikit_learn_take_what_they_are_handed(name, form):
    if form is sp.csr_matrix and "chi2" in name:
        return  # they take no sparse points
    points = form(np.abs(FEATURES))
    function = getattr(pairwise, name)
    np.testing.assert_allclose(Gram(points, function).full(), function(points, points), atol=1e-12)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (2.0 * Linear(), "2 * linear"),
        (0.5 * (RBF(1.0) + 1.0), "0.5 * (rbf + 1)"),
        (2.0 * RBF(1.0) + Linear(), "2 * rbf + linear"),
        (RBF(1.0) * (3.0 * Linear()), "rbf * 3 * linear"),
    ],
)
def test_messages_name_a_kernel_as_it_would_be_written(kernel, name):
    assert kernel.name == name
    if not kernel.knows_diagonal:
        with pytest.raises(ValueError, match=rf"The {re.escape(name)} kernel gives values too large"):
            Gram(1e200 * X, kernel)


@pytest.mark.parametrize("two", [2, np.float64(2.0), np.float32(2.0), np.int64(2)], ids=repr)
def test_numbers_of_numpy_are_numbers(two):
    assert two * RBF(1.0) == RBF(1.0) * two == Scaled(2.0, RBF(1.0))
    assert two + RBF(1.0) == Sum(Constant(2.0), RBF(1.0))


def test_an_indefinite_sum_is_told():
    kernel = Function(lambda A, B: -2.0 * (A @ B.T)) + Linear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SVC(kernel=kernel, max_iter=1000).fit(X, y)
    assert any("The callable + linear kernel is not positive" in str(warning.message) for warning in caught)
