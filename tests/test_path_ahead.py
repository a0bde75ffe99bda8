"""Points that enter a large elbow, computed ahead: the same events as one by one."""

import numpy as np
import pytest

from zerogap import svm_path
from zerogap.free_system import DenseFreeSystem
from zerogap.path import ahead as ahead_module
from zerogap.path import lines
from zerogap.path.family import Family
from zerogap.path.screening import Screening
from zerogap.path.sets import Sets


@pytest.fixture
def counts(monkeypatch):
    """How many points each call lets in; it is called often, for elbows of any size."""
    found, pass_entering, pass_ordinary = [], lines.pass_entering, lines.pass_ordinary

    def watched(*arguments):
        passed = pass_entering(*arguments)
        found.append(passed[1])
        return passed

    monkeypatch.setattr(lines, "LARGE", 10)
    monkeypatch.setattr(lines, "LONG_STREAK", 4)
    monkeypatch.setattr(lines, "pass_entering", watched)
    monkeypatch.setattr(lines, "pass_ordinary", lambda end, most, *others: pass_ordinary(end, min(most, 6), *others))
    return found


def test_what_is_computed_ahead():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 400))
    K, E = X @ X.T / 400.0, rng.permutation(300)[:170]
    T = np.setdiff1d(np.arange(300), E)[[3, 0, 20]]
    system = DenseFreeSystem(K)
    assert system.append_all(E)
    screening = Screening(K, Sets(K, Family.hinge(np.sign(X[:, 0]), np.ones(300)), np.zeros(300, dtype=np.int64)), 25)
    found = ahead_module.look_ahead(system, screening, T)
    A = K + system.tau
    L = np.linalg.cholesky(A[np.ix_(E, E)])
    f = np.linalg.solve(L, np.ones(170))
    D = np.linalg.solve(A[np.ix_(E, E)], A[np.ix_(E, T)])
    np.testing.assert_allclose(found.Z, np.linalg.solve(L, A[np.ix_(E, T)]).T, atol=1e-11)
    np.testing.assert_allclose(found.D[:3], D.T, atol=1e-11)
    np.testing.assert_allclose(found.S, A[np.ix_(T, T)] - A[np.ix_(T, E)] @ D, atol=1e-11)
    np.testing.assert_allclose(found.Q, K[T] - D.T @ K[E], atol=1e-11)
    np.testing.assert_allclose(found.D_f, np.linalg.solve(L.T, f), atol=1e-11)
    np.testing.assert_allclose(found.R_f, found.D_f @ K[E], atol=1e-11)
    assert (found.h, found.squared_norm) == (pytest.approx(found.Z @ f), pytest.approx(f @ f))
    assert found.place[T].tolist() == [0, 1, 2]
    assert (np.delete(found.place, T) < 0).all()


@pytest.mark.parametrize("balance", [0.5, 0.7])
def test_the_same_path_as_one_point_after_another(balance, monkeypatch, counts):
    """Of points far apart nearly all get into the elbow, and few leave it."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((160, 6)), np.where(rng.random(160) < balance, 1.0, -1.0)
    options = {"gamma": 0.4, "C_min": 1e-2}
    path, size = svm_path(X, y, **options), lines.LARGE
    monkeypatch.setattr(lines, "LARGE", 1000 * size)
    one_by_one = svm_path(X, y, **options)
    assert sum(counts) > 15
    assert max(counts) > 4
    assert path.n_backups == 0
    assert path.largest_gap_ <= 1e-9
    assert path.n_events == one_by_one.n_events
    np.testing.assert_allclose(path.lam, one_by_one.lam, rtol=1e-9)
    for C in np.geomspace(0.02, 900.0, 40):
        np.testing.assert_allclose(path.coefficients_at(C), one_by_one.coefficients_at(C), atol=1e-8 * C)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(30))
def test_paths_of_any_shape_are_exact_with_looking_ahead(seed, counts):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(30, 300)), int(rng.integers(1, 12))
    X, y = rng.standard_normal((n, d)), np.where(rng.random(n) < rng.uniform(0.2, 0.8), 1.0, -1.0)
    X[: n // 5] = np.round(X[: n // 5])
    y[:2] = -1.0, 1.0
    path = svm_path(X, y, gamma=float(10 ** rng.uniform(-2, 1)), sample_weight=rng.choice([1.0, 2.0, 0.5], n))
    assert path.status == "complete"
    assert path.largest_gap_ <= 1e-9
    assert path.n_backups == 0
