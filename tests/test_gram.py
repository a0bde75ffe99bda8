import naive
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from zerogap import Gram
from zerogap import gram as helpers


@pytest.fixture
def X():
    return np.random.default_rng(3).standard_normal((300, 5))


def assert_close(values, K, X):
    """The same rbf kernel values, with gamma = 0.4, but for rounding."""
    np.testing.assert_allclose(values, K, rtol=0, atol=naive.rbf_rounding(X, 0.4))


def test_rows_are_those_of_the_matrix(X):
    gram, K = Gram(X, gamma=0.4), rbf_kernel(X, gamma=0.4)
    gram.fetch(np.array([5, 250, 5]))
    np.testing.assert_array_equal(np.flatnonzero(gram.has_rows(slice(None))), [5, 250])
    for i in (5, 250, 7):  # the last is computed when asked for
        assert_close(gram.row(i), K[i], X)
    assert gram.evaluations == 900
    points = np.array([250, 5, 7])
    assert_close(gram.submatrix(points), K[np.ix_(points, points)], X)
    assert gram.evaluations == 900
    assert_close(gram.block(np.array([0, 250])), K[[0, 250]], X)
    assert_close(gram.full(), K, X)


def test_a_small_budget_drops_the_rows_used_longest_ago(X):
    gram, K = Gram(X, gamma=0.4, cache_size=0.001), rbf_kernel(X, gamma=0.4)
    capacity = gram.capacity
    assert capacity < 300
    for start in range(0, 300, 20):
        wanted = np.arange(start, start + 20)
        gram.fetch(wanted)
        assert gram.has_rows(wanted).all()
        assert_close(gram.block(wanted), K[wanted], X)
    kept = np.flatnonzero(gram.has_rows(slice(None)))
    assert kept.size == capacity
    assert set(range(280, 300)) <= set(kept.tolist())
    for i in kept:
        assert_close(gram.row(i), K[i], X)


def test_rows_that_are_held_leave_room_and_drive_out_only_those_not_wanted(X):
    gram, K = Gram(X, gamma=0.4, cache_size=0.3), rbf_kernel(X, gamma=0.4)
    spare = 0.3e6 - 8 * 300 * 80  # 80 rows
    gram.hold(np.arange(50), spare)
    np.testing.assert_array_equal(np.flatnonzero(gram.has_rows(slice(None))), np.arange(50))
    evaluations = gram.evaluations
    gram.hold(np.arange(10, 120), spare)  # 70 more, for which there are 30 rows and those of ten that are not wanted
    kept = np.flatnonzero(gram.has_rows(slice(None)))
    np.testing.assert_array_equal(kept, np.arange(10, 90))
    assert gram.evaluations == evaluations + 40 * 300
    assert gram.room >= spare
    for i in kept:
        assert_close(gram.row(i), K[i], X)
    gram.hold(np.arange(200, 220), 0.3e6)  # no room but what is there
    assert gram.has_rows(np.arange(200, 220)).all()
    assert np.count_nonzero(gram.has_rows(slice(None))) == 80
    evaluations, points, change = gram.evaluations, np.arange(0, 300, 7), np.linspace(-1.0, 1.0, 43)
    rounding = naive.rbf_rounding(X, 0.4) * 43 + naive.sum_rounding(300, 43)
    np.testing.assert_allclose(gram.product(points, change), change @ K[points], rtol=0, atol=rounding)
    assert gram.evaluations == evaluations + 300 * np.count_nonzero(~gram.has_rows(points))


def test_compiled_code_finds_the_rows_in_memory_and_says_which_it_used(X):
    names = ("has_row", "row_of", "kernel_value", "mark_used", "next_stamp")
    has_row, row_of, kernel_value, mark_used, next_stamp = (naive.from_python(getattr(helpers, name)) for name in names)
    gram, K = Gram(X, gamma=0.4, cache_size=0.001), rbf_kernel(X, gamma=0.4)
    gram.fetch(np.array([5, 250]))
    cache = gram.cache()
    assert [has_row(cache, i) for i in (5, 6, 250)] == [True, False, True]
    assert_close(row_of(cache, 250), K[250], X)
    assert kernel_value(cache, 5, 250) == row_of(cache, 5)[250]
    gram.fetch(np.arange(100, 100 + gram.capacity - 2))
    mark_used(cache, 5, next_stamp(cache))
    gram.fetch(np.array([0]))  # one of them has to go: not the one used last
    assert gram.has_rows(np.array([0, 5, 250])).tolist() == [True, True, False]


@pytest.mark.parametrize("cache_size", [0.001, 100], ids=["small", "all"])
def test_dot_is_the_product(X, cache_size):
    beta = np.random.default_rng(4).standard_normal(300) * (np.arange(300) % 3 == 0)
    gram = Gram(X, gamma=0.4, cache_size=cache_size)
    gram.fetch(np.arange(30))
    rounding = naive.rbf_rounding(X, 0.4) * np.abs(beta).sum() + naive.sum_rounding(300, np.abs(beta).sum())
    np.testing.assert_allclose(gram.dot(beta), rbf_kernel(X, gamma=0.4) @ beta, rtol=0, atol=rounding)


@pytest.mark.parametrize("cache_size", [0.001, 0.4, 100], ids=["small", "half", "all"])
@pytest.mark.parametrize("shape", [(300,), (300, 4)], ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sparse"])
def test_multiply_is_the_product_and_computes_each_pair_once(X, cache_size, shape, kernel):
    V = np.random.default_rng(4).standard_normal(shape)
    name = "rbf" if kernel == "sparse" else kernel
    gram = Gram(sp.csr_matrix(X) if kernel == "sparse" else X, name, gamma=0.4, cache_size=cache_size)
    K = gram.kernel(X, X)
    gram.fetch(np.array([7, 250, 8]))
    before = gram.evaluations
    np.testing.assert_allclose(gram.multiply(V), K @ V, atol=1e-11 * np.abs(K).max())
    assert gram.evaluations - before <= 0.75 * 300**2  # half, but for the squares on the diagonal
    gram.fill()
    before = gram.evaluations
    np.testing.assert_allclose(gram.multiply(V), K @ V, atol=1e-11 * np.abs(K).max())
    left = 300 - gram.capacity
    assert gram.evaluations - before <= 0.5 * left * (left + 128)
    assert gram.capacity == min(300, max(64, int(cache_size * 1e6 / 2400)))


def test_a_fresh_copy_has_computed_nothing_and_shares_nothing(X):
    for gram in (Gram(X, gamma=0.4), Gram(X, "linear"), Gram(X @ X.T, "precomputed")):
        K, begun = gram.full().copy(), 300 if gram.kernel.name == "linear" else 0
        copied = gram.fresh()
        assert copied.evaluations == begun
        np.testing.assert_allclose(copied.full(), K, atol=1e-13)
        own = copied.matrix()
        own[:] = 0
        np.testing.assert_allclose(copied.full(), K, atol=1e-13)
        np.testing.assert_array_equal(gram.full(), K)
    gram = Gram(X)
    gram.full()
    before = gram.evaluations
    gram.forget()
    assert gram.evaluations == before > 0
    assert not gram.has_rows(slice(None)).any()


def test_evaluations_are_counted_when_computed_and_only_then(X):
    gram = Gram(X, gamma=0.4)
    assert gram.evaluations == 0  # the diagonal of rbf is known
    gram.fetch(np.array([1, 2]))
    gram.fetch(np.array([2, 1]))
    assert gram.evaluations == 600
    gram.dot(np.eye(300)[1])
    assert gram.evaluations == 600
    assert Gram(X, "linear").evaluations == 300
    assert Gram(X @ X.T, "precomputed").evaluations == 0
    complete = Gram(X, gamma=0.4)
    complete.full()
    assert 300 * 301 // 2 <= complete.evaluations < 300 * 300  # half of the matrix, but for squares on its diagonal


def test_counts_agree_with_calls_of_the_kernel(X):
    computed = 0

    def kernel(A, B):
        nonlocal computed
        computed += len(A) * len(B)
        return A @ B.T

    gram = Gram(X, kernel, cache_size=0.001)
    assert (
        computed == gram.evaluations + 42
    )  # whether values are the same in a block and alone is tried on a few points
    computed -= 42
    for start in (0, 40, 80, 0):
        gram.fetch(np.arange(start, start + 30))
    gram.dot(np.ones(300))
    assert gram.evaluations == computed


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_subset_takes_the_rows_that_are_there(X, kernel):
    K = rbf_kernel(X, gamma=0.4)
    whole = Gram(X, gamma=0.4) if kernel == "rbf" else Gram(K, "precomputed")
    whole.fetch(np.array([7, 100]))
    points = np.array([3, 7, 50, 100, 200])
    part, before = whole.subset(points), whole.evaluations
    assert part.n == 5
    assert_close(part.block(np.arange(5)), K[np.ix_(points, points)], X)
    assert part.evaluations == (3 * 5 if kernel == "rbf" else 0)
    assert whole.evaluations - before == part.evaluations  # what it computes is counted in both
    nested = part.subset(np.array([0, 2]))
    nested.full()
    assert whole.evaluations - before == part.evaluations == nested.evaluations + (3 * 5 if kernel == "rbf" else 0)


def test_precomputed_matrices_are_checked(X):
    K = X @ X.T
    assert Gram(K, "precomputed").full() is not None
    with pytest.raises(ValueError, match=r"symmetric.*\(K \+ K\.T\) / 2"):
        Gram(K + np.triu(np.ones_like(K)), "precomputed")
    with pytest.raises(ValueError, match="positive semidefinite"):
        Gram(K - 10 * np.eye(300), "precomputed")
    with pytest.raises(ValueError, match="square"):
        Gram(X, "precomputed")
    with pytest.raises(TypeError, match="dense"):
        Gram(sp.csr_matrix(K), "precomputed")
    assert Gram(K.astype(np.float32), "precomputed").n == 300  # rounding of float32 is no indefiniteness


def test_a_matrix_that_was_rounded_to_float32_is_told_from_one_that_is_indefinite(X):
    K = rbf_kernel(X, gamma=0.05).astype(np.float32)
    assert Gram(K, "precomputed").n == 300
    with pytest.raises(
        ValueError, match=r"positive semidefinite.*as rounding to float32 leaves it.*or pass it as float32"
    ):
        Gram(K.astype(np.float64), "precomputed")
    with pytest.raises(ValueError, match=r"choose another kernel\.$"):
        Gram(K.astype(np.float64) - 0.01 * np.eye(300), "precomputed")


def test_the_last_rows_of_a_precomputed_matrix_are_checked_too():
    X = np.random.default_rng(3).standard_normal((700, 3))
    K = rbf_kernel(X, gamma=0.4)
    bent = K.copy()
    bent[690, 650] += 0.1
    with pytest.raises(ValueError, match="symmetric"):
        Gram(bent, "precomputed")
    K[650:, 650:] -= 5 * np.eye(50)
    with pytest.raises(ValueError, match="positive semidefinite"):
        Gram(K, "precomputed")


def test_bad_input_is_refused_with_advice(X):
    with pytest.raises(ValueError, match=r"Unknown kernel 'gauss'.*'rbf'"):
        Gram(X, "gauss")
    with pytest.raises(ValueError, match="NaN"):
        Gram(np.where(X > 2, np.nan, X))
    with pytest.raises(ValueError, match="gamma"):
        Gram(X, gamma=-1.0)
    with pytest.raises(ValueError, match="degree"):
        Gram(X, "poly", degree=1.5)
    with pytest.raises(ValueError, match=r"too large for float64.*Scale the features"):
        Gram(X * 1e200, "poly")


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("cache_size", [0.001, 1000])
def test_rearranged_carries_rows_over_and_computes_only_what_is_new(kernel, cache_size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    gram = Gram(X, kernel, gamma=0.3, coef0=1.0, cache_size=cache_size)
    gram.fetch(np.arange(0, 20))
    new = rng.standard_normal((5, 3))
    origin = np.concatenate([rng.permutation(150)[:120], np.full(5, -1)])
    points = np.concatenate([X[origin[:120]], new])
    kept = np.flatnonzero((origin >= 0) & (origin < 20))
    other = gram.rearranged(points, origin, kept)
    own = 0 if kernel == "rbf" else 5  # the diagonal
    assert other.evaluations == kept.size * 5 + own
    np.testing.assert_allclose(other.block(kept), gram.kernel(points[kept], points), atol=1e-12)
    assert other.evaluations == kept.size * 5 + own
    np.testing.assert_allclose(other.full(), gram.kernel(points, points), atol=1e-12)


@pytest.mark.parametrize("cache_size", [0.001, 1000])
def test_subtract_takes_rows_off_a_residual(cache_size):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    gram = Gram(X, cache_size=cache_size)
    points, change, residual = rng.permutation(150)[:90], rng.standard_normal(90), rng.standard_normal(150)
    expected = residual - change @ gram.kernel(X, X)[points]
    gram.subtract(points, change, residual)
    np.testing.assert_allclose(residual, expected, atol=1e-12)


@pytest.mark.parametrize("n", [1024, 2500])
def test_long_sums_and_copies_are_the_same_on_all_threads(n, monkeypatch):
    rng = np.random.default_rng(n)
    gram, found = Gram(rng.standard_normal((n, 3)), cache_size=1000), []
    gram.full()
    points, change, target = rng.permutation(n)[:501], rng.standard_normal(501), rng.standard_normal(n)
    beta = np.zeros(n)
    beta[points] = change
    for worth in (10**12, 0):
        monkeypatch.setattr(helpers, "WORTH_THREADS", worth)
        residual = target.copy()
        gram.subtract(points, change, residual)
        found.append((residual, gram.dot(beta), gram.submatrix(points)))
    for alone, shared in zip(*found, strict=True):
        np.testing.assert_array_equal(alone, shared)
    np.testing.assert_array_equal(found[0][2], gram.full()[np.ix_(points, points)])


@pytest.mark.parametrize("tau", [1e155, 1e200])
def test_a_constant_feature_beyond_float64_is_refused(tau):
    with pytest.raises(ValueError, match="float64"):
        Gram(np.eye(3), "linear", tau=tau)


def test_values_with_some_points_in_any_order_are_computed_and_not_kept(X):
    gram, points = Gram(X), np.array([2, 0, 3, 4])  # as if from 2 to 4, but for their order
    np.testing.assert_allclose(gram.values(1, points), gram.fresh().full()[1, points], rtol=1e-14)
    assert gram.evaluations == 4
    assert not gram.has_rows(np.arange(gram.n)).any()
    row = gram.row(1).copy()
    np.testing.assert_array_equal(gram.values(1, points), row[points])
    assert gram.evaluations == 4 + gram.n


@pytest.mark.parametrize("form", ["dense", "sparse", "bits", "outlier", "linear", "poly"])
def test_in_float32_each_value_is_rounded_once(form):
    """Computed and laid down anew: tiles of several sizes, and whatever is left beside them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((331, 7)) if form != "bits" else 1.0 * (rng.random((331, 40)) < 0.3)
    if form == "outlier":
        A[5] *= 1e8
    A = sp.csr_matrix(A) if form == "sparse" else A
    gram = Gram(A, form if form in ("linear", "poly") else "rbf", cache_size=10.0)
    whole, before = Gram(A, gram.kernel).full(), gram.room
    rounded = gram.rounded()
    assert rounded.is_rounded
    assert not gram.is_rounded
    np.testing.assert_array_equal(rounded.full(), whole.astype(np.float32))
    np.testing.assert_array_equal(rounded.submatrix(np.arange(3, 9)), whole[3:9, 3:9].astype(np.float32))
    assert before - rounded.room == 4.0 * 331**2
    assert gram.evaluations >= 331 * 332 / 2
