"""Points of two values: kernel values by counts of bits, beside those of the formula."""

import pickle

import naive
import numpy as np
import pytest
import scipy.sparse as sp

from zerogap import SVC, Gram, limits
from zerogap.kernels import RBF, binary, counted


def drawn(n, d, value, seed=0):
    return value * (np.random.default_rng(seed).random((n, d)) < 0.3)


def formula(X, Z, gamma):
    """exp(-gamma |x - z|²) from the number of features in which points differ, each rounded once or twice."""
    differ = (X[:, None, :] != Z[None]).sum(axis=2)
    value = float(np.abs(X).max(initial=0.0))
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.where(differ > 0, gamma * value * value * differ, 0.0)
    return np.exp(-exponent), exponent


def assert_close(found, X, Z, gamma):
    expected, exponent = formula(X, Z, gamma)
    finite = np.where(np.isfinite(exponent), exponent, 0.0)
    assert (np.abs(found - expected) <= (8.0 + 6.0 * finite) * naive.UNIT * expected + 1e-320).all()


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("d", [1, 63, 64, 65, 128, 300])
@pytest.mark.parametrize("value", [1.0, -0.25, 1e-3])
def test_values_are_those_of_the_formula(d, value, is_sparse):
    X, Z, gamma = drawn(40, d, value), drawn(1500, d, value, 1), 0.3 / (value * value * d)
    made = RBF(gamma).against(sp.csr_matrix(Z) if is_sparse else Z)
    rows = made.prepare(sp.csr_matrix(X) if is_sparse else X)
    assert rows.bits is not None
    assert_close(made.block(sp.csr_matrix(X) if is_sparse else X), X, Z, gamma)
    found, is_finite = made.dot(rows, np.eye(1500)[:, ::500])
    assert is_finite
    assert_close(found, X, Z[::500], gamma)


@pytest.mark.parametrize("n", [3, 130, 700])
def test_the_matrix_is_symmetric_and_counted_once(n):
    X = drawn(n, 70, 1.0)
    gram = Gram(X, gamma=0.05)
    K = gram.full()
    np.testing.assert_array_equal(K, K.T)
    assert (np.diagonal(K) == 1.0).all()
    assert_close(K, X, X, 0.05)
    other = Gram(X + 0.01 * np.arange(n)[:, None], gamma=0.05)  # no bits
    other.full()
    assert gram.evaluations == other.evaluations


@pytest.mark.parametrize(("value", "gamma"), [(1e200, 1.0), (1e-200, 1e300), (1.0, 0.0), (1e160, 1e-310)])
def test_extreme_scales_overflow_into_zeros_and_ones_only(value, gamma):
    X = drawn(30, 10, value)
    K = RBF(gamma).against(X).block(X)
    assert_close(K, X, X, gamma)
    assert (np.diagonal(K) == 1.0).all()


def test_what_are_no_bits():
    for X in (
        [[0.0, 1.0], [2.0, 1.0]],
        [[0.0, 0.0], [1.0, 2.0]],
        [[1.0, np.inf]],
        [[0.0, 1.0], [np.nan, 0.0]],
        [[3.0, 1.0]],
    ):
        assert binary.number_of(np.array(X)) is None
        assert binary.number_of(sp.csr_matrix(np.array(X))) is None
    assert binary.number_of(sp.csr_matrix((3, binary.MOST_SPARSE + 1))) is None
    repeated = sp.csr_matrix((np.ones(2), np.array([0, 0]), np.array([0, 2])), shape=(1, 2))  # 1 + 1
    assert binary.number_of(repeated) is None
    for X in (np.zeros((3, 2)), np.zeros((0, 2)), np.zeros((2, 0))):
        assert binary.number_of(X) == binary.number_of(sp.csr_matrix(X)) == 1.0
    assert binary.number_of(np.array([[0.0, 0.0], [0.0, 7.0]])) == 7.0


@pytest.mark.parametrize("is_sparse", [False, True])
def test_points_that_are_no_bits_are_compared_with_those_that_are(is_sparse):
    rng = np.random.default_rng(0)
    Z, X = drawn(50, 80, 1.0), rng.standard_normal((20, 80))
    X[3] = Z[3]
    made = RBF(0.02).against(sp.csr_matrix(Z) if is_sparse else Z)
    found = made.block(sp.csr_matrix(X) if is_sparse else X)
    expected = np.exp(-0.02 * np.square(X[:, None] - Z).sum(axis=2))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert made.prepare(sp.csr_matrix(2.0 * Z) if is_sparse else 2.0 * Z).bits is None


def test_some_columns_and_rows_only():
    Z = drawn(900, 90, 1.0)
    made = RBF(0.03).against(Z)
    which, rows = np.array([5, 3, 800]), made.prepare(Z)[np.array([7, 5])]
    out = np.empty((2, 3))
    made.fill(rows, out, which)
    assert_close(out, Z[[7, 5]], Z[which], 0.03)


def test_models_of_bits_are_those_of_other_arithmetic(monkeypatch):
    rng = np.random.default_rng(0)
    X = drawn(700, 40, 1.0)
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(700) > 1.4, 1, -1)
    test = np.concatenate([drawn(100, 40, 1.0, 2), rng.random((50, 40))])
    model = SVC(C=10.0, tol=1e-10).fit(X, y)
    sparse = SVC(C=10.0, tol=1e-10).fit(sp.csr_matrix(X), y)
    monkeypatch.setattr(binary, "number_of", lambda X: None)
    other = SVC(C=10.0, tol=1e-10).fit(X, y)
    for one in (model, sparse):
        assert one.duality_gap_ <= 1e-10
        assert one.certificate_.dual == pytest.approx(other.certificate_.dual, rel=1e-9)
        # The objective is strongly convex in w: a gap g leaves |w - w*| at most sqrt(2 g), in either, and as much of the bias.
        off = 4.0 * np.sqrt(2.0 * 1e-10 * one.certificate_.primal)
        np.testing.assert_allclose(one.decision_function(test), other.decision_function(test), atol=off)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("d", [5, 63, 200])
def test_products_of_rows_that_are_kept_as_counts(d, is_sparse):
    """They are those of the values themselves, and no value is computed again; rows used longest ago make room."""
    n, rng = 2500, np.random.default_rng(0)
    X = drawn(n, d, 0.5)
    gram = Gram(sp.csr_matrix(X) if is_sparse else X, gamma=4.0 / d)
    plain, room = gram.fresh(), gram.room
    spare = room - 900.5 * n  # 900 rows
    gram.hold(np.arange(0, 1000, 2), spare)
    assert not gram.has_rows(slice(None)).any()  # compiled code reads values, and finds none
    assert gram.room == room - 500 * n
    for points in (np.arange(0, 1000, 2), np.arange(1, 2000, 3), np.array([4]), np.array([5]), np.array([], dtype=int)):
        change, before = rng.standard_normal(points.size), gram.evaluations
        expected = change @ plain.block(points)
        found = gram.product(points, change)
        size = naive.sum_rounding(n, points.size) * np.abs(change).sum()
        np.testing.assert_allclose(found, expected, rtol=0, atol=size)
        np.testing.assert_array_equal(gram.product(points, change, slice(10, 90)), found[10:90])
        is_held = (points % 2 == 0) & (points < 1000)
        assert gram.evaluations - before == (n + 80) * np.count_nonzero(~is_held)
    gram.product(np.arange(100), np.ones(100))  # of these the fifty that are there are used last
    before = gram.evaluations
    gram.hold(np.arange(1001, 2701, 2) % n, spare)  # 850, for 450 of which others have to go
    gram.hold(np.arange(100), spare)  # half of them came just now, the others were used last
    assert gram.evaluations - before == n * 850
    assert gram.room == room - 900 * n
    pickled = pickle.loads(pickle.dumps(gram))
    assert pickled.room == room
    gram.forget()
    assert gram.room == room


def test_counts_that_a_byte_does_not_hold_are_not_kept():
    X = drawn(60, 600, 1.0)
    assert X.sum(axis=1).max() > 128
    gram = Gram(X, gamma=0.01)
    room = gram.room
    gram.hold(np.arange(60), 0.0)
    assert gram.room == room
    few = Gram(X * (np.arange(600) < 255), gamma=0.01)  # no two points differ in more than 255
    few.hold(np.arange(60), 0.0)
    assert few.room < room


def test_rows_that_have_come_before_a_limit_are_kept(monkeypatch):
    monkeypatch.setattr(counted, "AT_ONCE", 16)
    X, change = drawn(200, 40, 1.0), np.linspace(-1.0, 1.0, 60)
    gram, left = Gram(X, gamma=0.05), iter((False, False, False, True))
    monkeypatch.setattr(counted.limits, "check", lambda: stop_if(next(left)))
    with pytest.raises(limits.Exceeded):
        gram.hold(np.arange(60), 0.0)
    monkeypatch.undo()
    before = gram.evaluations
    np.testing.assert_allclose(
        gram.product(np.arange(60), change), change @ Gram(X, gamma=0.05).block(np.arange(60)), atol=1e-13
    )
    assert gram.evaluations - before == 200 * (60 - 48)


def stop_if(is_over):
    if is_over:
        raise limits.Exceeded


def test_rows_that_are_quickly_computed_are_not_kept():
    X = drawn(60, 30, 1.0)
    assert Gram(X).is_quick
    assert Gram(sp.csr_matrix(drawn(60, 300, 1.0))).is_quick
    assert not Gram(X + 0.1 * X[:, :1]).is_quick
    assert not Gram(X, "linear").is_quick
