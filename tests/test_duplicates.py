import math

import numpy as np
import pytest
import scipy.sparse as sp

from zerogap import SVC
from zerogap import duplicates as module
from zerogap.duplicates import distinct


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix], ids=["dense", "csr"])
def test_rows_equal_in_features_and_target_become_one_weighted_point(form):
    X = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 3.0]])
    y = np.array([1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    weight = np.array([1.0, 0.5, 2.0, 1.0, 0.5, 0.0])
    points = distinct(form(X), y, weight)
    found = {(tuple(X[row] + 0.0), y[row]): w for row, w in zip(points.rows, points.weight, strict=True)}
    assert found == {((1.0, 0.0), 1.0): 3.0, ((2.0, 0.0), 1.0): 1.0, ((1.0, 0.0), -1.0): 1.0}
    assert points.group[5] == -1
    beta = np.arange(1.0, 4.0)
    spread = points.spread(beta)
    np.testing.assert_allclose(points.gather(spread), beta)
    assert spread[2] == 2 * spread[0]  # by weight, so that each stays within its own box
    assert spread[5] == 0


def test_dense_and_sparse_give_the_same_order():
    X = np.random.default_rng(0).integers(0, 3, size=(60, 4)).astype(float)
    y = np.where(X[:, 0] > 1, 1.0, -1.0)
    a, b = distinct(X, y, np.ones(60)), distinct(sp.csr_matrix(X), y, np.ones(60))
    np.testing.assert_array_equal(a.group, b.group)
    assert a.rows.size == len(np.unique(np.column_stack([X, y]), axis=0))


def test_a_collision_of_the_hash_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "_hash", lambda X, y, seed: np.zeros(len(y), dtype=np.uint64))
    points = distinct(np.arange(6.0).reshape(3, 2), np.ones(3), np.ones(3))
    assert points.rows.tolist() == [0, 1, 2]


def test_weights_are_summed_whatever_the_order_and_rounded_once():
    rng = np.random.default_rng(0)
    X, y = np.repeat([[1.0], [2.0]], 10, axis=0), np.ones(20)
    for weight in (np.full(20, 0.1), 10.0 ** rng.integers(-16, 3, size=20), rng.uniform(size=20)):
        points = distinct(X, y, weight)
        expected = {1.0: math.fsum(weight[:10]), 2.0: math.fsum(weight[10:])}
        assert {float(X[row, 0]): w for row, w in zip(points.rows, points.weight, strict=True)} == expected
        order = rng.permutation(20)
        assert sorted(distinct(X[order], y, weight[order]).weight) == sorted(points.weight)
    assert distinct(X, y, np.full(20, 0.1)).weight.tolist() == [1.0, 1.0]  # ten times a tenth


def test_equal_sparse_rows_are_merged_however_they_are_written():
    data, columns = [1.0, 1.0, 2.0, 0.0, 2.0, 5.0], [0, 0, 0, 1, 0, 1]  # 1 + 1; 2; a zero that is stored and 2; another
    X = sp.csr_matrix((data, columns, [0, 2, 3, 5, 6]), shape=(4, 2))
    parts = [part.copy() for part in (X.data, X.indices, X.indptr)]
    points = distinct(X, np.ones(4), np.ones(4))
    assert sorted(points.weight) == [1.0, 3.0]
    assert len(set(points.group[:3])) == 1
    for part, was in zip((X.data, X.indices, X.indptr), parts, strict=True):
        np.testing.assert_array_equal(part, was)
    module._hash(X, np.ones(4), 0)  # handed the caller's matrix itself
    assert X.data.size == 6


@pytest.mark.parametrize("weights", ["equal", "uneven", "tiny beside large"])
def test_shares_of_a_coefficient_sum_to_it_exactly(weights):
    """Where K is large, K times what rounding takes from the sum would be seen: only the smallest row's last digit may be."""
    rng = np.random.default_rng(3)
    for n in (2, 3, 7, 19, 100):
        weight = {
            "equal": np.ones(n),
            "uneven": rng.uniform(0.1, 10.0, size=n),
            "tiny beside large": 10.0 ** rng.uniform(-6, 6, size=n),
        }[weights]
        points = distinct(np.ones((n, 1)), np.ones(n), weight)
        for beta in rng.standard_normal(20):
            parts = points.spread(np.array([beta]), scale=10.0)
            left = abs(math.fsum([*parts, -beta]))
            assert left <= (0.0 if weights == "equal" else 0.5 * np.spacing(np.abs(parts).min()))
            np.testing.assert_allclose(parts, beta * weight / math.fsum(weight), rtol=0.0, atol=1e-15 * abs(beta))


def test_no_row_gets_more_than_its_cap():
    rng = np.random.default_rng(4)
    weight = 10.0 ** rng.uniform(-6, 6, size=30)
    points = distinct(np.ones((30, 1)), np.ones(30), weight)
    for C in 10.0 ** rng.uniform(-3, 3, size=20):
        for parts in (points.spread(C * points.weight, C), points.spread(C * points.weight)):
            assert (parts <= C * weight * (1 + 2.0**-51)).all()
            np.testing.assert_allclose(parts, C * weight, rtol=1e-9)


def test_coefficients_on_as_few_rows_as_hold_them():
    X = np.array([[0.0], [1.0], [0.0], [0.0], [2.0], [1.0]])
    weight = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.5])
    points = distinct(X, np.zeros(6), weight)
    place = points.group[[0, 1, 4]]  # of 0.0, of 1.0 and of 2.0
    beta = np.empty(3)
    for value, of_zero in (
        (1.5, [0.0, 1.5, 0.0]),
        (2.5, [0.5, 2.0, 0.0]),
        (3.3, [1.0, 2.0, 0.3]),
        (-4.0, [-1.0, -2.0, -1.0]),
    ):
        beta[place] = value, -0.4, 0.0
        parts = points.on_few(beta, weight)
        np.testing.assert_allclose(sorted(np.abs(parts[[0, 2, 3]])), sorted(np.abs(of_zero)), rtol=1e-15)
        assert abs(parts[2]) == max(abs(parts[[0, 2, 3]]))  # the row with the largest cap comes first
        assert np.count_nonzero(parts[[1, 5]]) == 1
        assert parts[4] == 0.0
        assert (np.abs(parts) <= weight).all()
        np.testing.assert_allclose(points.gather(parts), beta, rtol=1e-15)


def test_a_model_has_no_more_support_vectors_than_distinct_points_need():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 2))
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 0, 1, 0)
    once, twice = SVC(C=10.0, gamma=0.5).fit(X, y), SVC(C=5.0, gamma=0.5).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    bounded = np.count_nonzero(np.abs(once.dual_coef_) >= 10.0 * (1 - 1e-12))
    large = np.count_nonzero(np.abs(once.dual_coef_) > 5.0)  # need both rows
    assert twice.support_.size == once.support_.size + large >= once.support_.size + bounded
    np.testing.assert_allclose(twice.decision_function(X), once.decision_function(X), rtol=1e-12)
