"""Blocks piece by piece: whole, symmetric, and products that are not kept, for every kernel."""

import numpy as np
import pytest
import scipy.sparse as sp

from zerogap import limits, threads
from zerogap.kernels import RBF, Function, Linear, Polynomial, Sigmoid, blocks
from zerogap.kernels.blocks import Points

rng = np.random.default_rng(0)
X, Z = rng.standard_normal((150, 4)), rng.standard_normal((90, 4))
X[3] *= 1e7  # an outlier


def rbf(gamma):
    return lambda A, B: np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))


def linear(A, B):
    return (A[:, None] * B).sum(axis=2)


def least(A, B):
    return np.minimum(abs(A[:, None]), abs(B)).sum(axis=2)


KERNELS = {
    "rbf": (RBF(0.3), rbf(0.3)),
    "rbf, all far": (RBF(1e5), rbf(1e5)),
    "linear": (Linear(), linear),
    "poly": (Polynomial(3, gamma=0.1, coef0=1.0), lambda A, B: (0.1 * linear(A, B) + 1.0) ** 3),
    "sigmoid": (Sigmoid(gamma=0.01), lambda A, B: np.tanh(0.01 * linear(A, B))),
    "sum": (RBF(0.2) + 2.0 * Linear(), lambda A, B: rbf(0.2)(A, B) + 2.0 * linear(A, B)),
    "product": (RBF(0.5) * Polynomial(2, gamma=0.1), lambda A, B: rbf(0.5)(A, B) * (0.1 * linear(A, B)) ** 2),
    "function": (Function(least), least),
}


@pytest.fixture(params=[False, True], ids=["alone", "shared"])
def small_tiles(request, monkeypatch):
    """Tiles so small that a block has many, worked off by one thread or by two."""
    monkeypatch.setattr(blocks, "TILE", 600)
    monkeypatch.setattr(blocks, "TILE_ROWS", 16)
    monkeypatch.setattr(blocks, "SQUARE", 32)
    monkeypatch.setattr(blocks, "PIECE", 1000)
    monkeypatch.setattr(threads._Blas, "threads", lambda self: 2)
    monkeypatch.setattr(blocks, "WORTH_SHARING", 0 if request.param else 10**12)


@pytest.mark.covering
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", KERNELS)
def test_a_block_its_products_and_its_square(name, is_sparse, small_tiles):
    kernel, plain = KERNELS[name]
    if is_sparse and isinstance(kernel, Function):
        pytest.skip("the function takes arrays")
    form = sp.csr_matrix if is_sparse else np.asarray
    A, B = form(X), form(Z)
    columns = kernel.against(B)
    expected = plain(X, Z)
    size = np.abs(expected).max(axis=1, keepdims=True)
    assert (np.abs(columns.block(A) - expected) <= 1e-10 * size).all()
    coefficients = rng.standard_normal((40, 3))
    which = np.arange(90)[::2][:40]
    for k in (1, 3):
        product, is_finite = columns.dot(columns.prepare(A), coefficients[:, :k], which)
        assert is_finite
        assert (np.abs(product - expected[:, which] @ coefficients[:, :k]) <= 1e-9 * size).all()
    K, diagonal = np.empty((90, 90)), kernel.diagonal(Z)
    assert columns.fill_square(columns.prepare(B), diagonal, K)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(np.diagonal(K), diagonal)
    np.testing.assert_allclose(K, plain(Z, Z), rtol=1e-9, atol=1e-10 * np.abs(K).max())


def test_values_of_a_square_are_counted_as_computed():
    n, counted = 3 * blocks.SQUARE + 5, []
    for kernel, height in (
        (RBF(0.1), blocks.STRIP),
        (Function(lambda X, Z: counted.append(X.shape[0]) or X @ Z.T), blocks.SQUARE),
    ):
        points = np.random.default_rng(0).standard_normal((n, 3))
        columns = kernel.against(points)
        counted.clear()
        columns.fill_square(columns.prepare(points), kernel.diagonal(points), np.empty((n, n)))
        assert columns.values_of_square(n) == sum(min(height, n - a) * (n - a) for a in range(0, n, height))
        assert not counted or sum(counted[-len(range(0, n, height)) :]) == n
    # Two rows of half of the matrix more than that half, at most.
    assert RBF(0.1).against(points).values_of_square(n) <= 0.5 * n * (n + blocks.STRIP)


def test_values_beyond_float64_are_told(small_tiles):
    columns = Polynomial(9, gamma=1.0).against(1e40 * Z)
    prepared = columns.prepare(1e40 * X)
    assert not columns.fill(prepared, np.empty((150, 90)))
    assert not columns.dot(prepared, np.ones((90, 1)))[1]
    assert not columns.fill_square(columns.prepare(1e40 * Z), np.ones(90), np.empty((90, 90)))


def test_a_limit_ends_a_block(small_tiles, monkeypatch):
    monkeypatch.setattr(
        threads._Blas, "threads", lambda self: 1
    )  # a helper might be done before the limit is asked for
    columns = RBF(0.1).against(Z)
    with limits.limits(0.0), pytest.raises(limits.Exceeded):
        columns.fill(columns.prepare(X), np.empty((150, 90)))


def test_the_square_of_many_sparse_points_goes_by_strips():
    """Those after the first begin within the points of a feature."""
    X = sp.random(700, 12, density=0.3, format="csr", random_state=0)
    columns, found = RBF(0.7).against(X), np.empty((700, 700))
    assert columns.fill_square(columns.prepare(X), np.ones(700), found)
    expected = RBF(0.7)(X.toarray(), X.toarray())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_points_have_short_indices_where_they_suffice(kind):
    X = kind(sp.random(20, 9, 0.3, format="csr", random_state=0))
    long = X.copy()
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    points = Points(long)
    assert type(points.X) is kind
    assert points.X.indices.dtype == points.X.indptr.dtype == points.by_feature.indices.dtype == np.int32
    assert long.indices.dtype == np.int64  # the caller's own is left as it is
    np.testing.assert_array_equal(points.X.toarray(), X.toarray())
    wide = kind((np.ones(1), np.array([2**31 + 3]), np.array([0, 1])), shape=(1, 2**31 + 5))
    assert Points(wide).X.indices.tolist() == [2**31 + 3]


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (7, 100), (37, 53), (64, 64), (16, 3)], ids=str)
@pytest.mark.parametrize("begin", [(1, 70), (70, 1), (3, 3)], ids=str)
def test_a_tile_and_its_mirror_image_are_where_they_belong(shape, begin):
    """Squares are turned over in registers, what is left over number by number; nothing else is written."""
    (height, width), (a, c) = shape, begin
    tile = np.random.default_rng(height).standard_normal(shape)
    expected = np.zeros((180, 180))
    expected[a : a + height, c : c + width] = tile
    alone = expected.copy()
    on_diagonal = min(height, width) if a == c else 0
    for j in range(width):  # of a square on the diagonal, what is above it is written below it
        end = j if j < on_diagonal else height
        expected[c + j, a : a + end] = tile[:end, j]
    for is_square, wanted in ((True, expected), (False, alone)):
        out = np.zeros((180, 180))
        blocks.lay_down(tile, a, c, out, is_square)
        assert np.array_equal(out, wanted)
