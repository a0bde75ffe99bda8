"""Blocks of kernel values, computed piece by piece on all threads.

``Columns`` is the kernel with one side of its blocks fixed.  Subclasses say how a piece is computed, by ``write``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import limits, threads
from zerogap.compiled import TURNED, jit, turn_block
from zerogap.kernels.base import Kernel, Rounding, dense, read_only

# A tile of so many values stays in a core's own cache between the product and what is done with it; on the diagonal a
# square one has so many rows.
TILE, TILE_ROWS, SQUARE = 32768, 128, 128
STRIP = (
    32  # rows of those on the diagonal that are computed together, from there to the right end: half of these are not
)
LARGE, LARGE_SQUARE = 3000, 256  # of so many points there are tiles enough for all threads even if they are larger
EXPONENTIAL = 25  # multiplications that take as long as what is done with a product
WORTH_SHARING = 4_000_000  # multiplications: with fewer, waking a thread costs more than it does
BYTES = 50_000_000  # of values of a user's kernel that are held at once
PIECE, PIECES = 8_000_000, 8  # multiplications that a thread makes between two questions for more, and so many at least


class Points:
    """Points in the form that ``Columns.fill`` takes."""

    def __init__(self, X: Any):
        self._X = _with_short_indices(X)
        self._parts: dict[tuple[int, int], Any] = {}
        self._by_feature: Any = None  # no cached properties: they have a lock, for which threads would wait

    def __getitem__(self, rows: Any) -> "Points":
        return Points(self.X[rows])

    @property
    def X(self) -> Any:
        """The points, row by row."""
        return self._X

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.X.shape[0])

    def part(self, a: int, b: int) -> Any:
        """Return the points from a to b; of sparse ones the same object every time, which knows them by feature."""
        if a == 0 and b == self.X.shape[0]:
            return self
        if not sp.issparse(self.X):
            return self[a:b]
        if (a, b) not in self._parts:
            self._parts[a, b] = self[a:b]
        return self._parts[a, b]

    @property
    def by_feature(self) -> Any:
        """Sparse points, feature after feature."""
        if self._by_feature is None:
            self._by_feature = self.X.tocsc()
        return self._by_feature


class Columns:
    """Kernel values of any points against a fixed set Z, prepared once."""

    def __init__(self, kernel: Kernel, Z: Any):
        self.kernel, self._Z = kernel, Z
        self.points: Any = self._prepare(Z)

    def prepare(self, X: Any) -> Any:
        """Return the points X in the form that ``fill`` takes: done once, it need not be done for every block."""
        return self.points if X is self._Z else self._prepare(X)

    def _prepare(self, X: Any) -> Any:
        return Points(X if self.kernel.accepts_sparse else dense(X))

    def block(self, X: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        out = np.empty((X.shape[0], self._Z.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond float64 is seen by the result
            self.fill(self.prepare(X), out)
        return out

    @property
    def can_share(self) -> bool:
        """Whether threads may compute blocks at the same time."""
        return self.kernel.can_share

    @property
    def cost(self) -> int:
        """Multiplications that a value is worth."""
        return int(self._Z.shape[1]) + EXPONENTIAL

    def write(self, rows: Any, columns: Any, out: np.ndarray) -> None:
        """Write the kernel values of prepared points against some of ``points`` into ``out``, an array in one piece."""
        out[...] = self.kernel.checked_values(rows.X, columns.X)

    def write_tiles(self, rows: Any, columns: Any, tiles: np.ndarray, out: np.ndarray, is_square: bool) -> bool:
        """Write tiles (k, 4) of a block, from row a to b and from column c to d; return whether all values are finite.

        Those of a square, on its diagonal or above, are written on both sides of it.
        """
        is_finite = True
        for a, b, c, d in tiles.tolist():
            tile = np.empty((b - a, d - c))
            with np.errstate(over="ignore", invalid="ignore"):
                self.write(rows.part(a, b), columns.part(c, d), tile)
                is_finite &= all_finite(tile)
            lay_down(tile, a, c, out, is_square)
        return is_finite

    def fill(self, prepared: Any, out: np.ndarray, which: Any = None) -> bool:
        """Write the kernel values of prepared points against those of Z, or some of them; return whether all are finite."""
        columns = self.points if which is None else self.points[which]
        height, width = out.shape
        if self.can_share and sp.issparse(self._Z):  # all columns at once, feature by feature
            height = max(TILE // max(width, 1), 1)
        elif self.can_share:
            height = min(height, TILE_ROWS)
            width = max(TILE // max(height, 1), 1)
        return self._fill_tiles(prepared, columns, _tiles(out.shape, height, width), out, is_square=False)

    def fill_square(self, prepared: Any, diagonal: np.ndarray, K: np.ndarray) -> bool:
        """Write the matrix of Z, given once more in prepared form, each pair of values once; return whether all are finite."""
        n = len(K)
        is_finite = self._fill_tiles(prepared, self.points, self._square_tiles(n), K, is_square=True)
        K[np.arange(n), np.arange(n)] = diagonal
        return is_finite

    def _square_tiles(self, n: int) -> np.ndarray:
        """Return the tiles of a square that are on its diagonal or above."""
        if not self.can_share:  # a user's code is called as seldom as may be
            return strips(n, SQUARE)
        size = _square(n)
        tiles = _tiles((n, n), size, size)
        above = tiles[tiles[:, 2] > tiles[:, 0]]
        begin = np.arange(0, n, STRIP)
        end = np.minimum(begin + STRIP, n)
        on_diagonal = np.stack([begin, end, begin, np.minimum((begin // size + 1) * size, n)], axis=1)
        return np.concatenate([above, on_diagonal])

    def values_of_square(self, n: int) -> int:
        """Return how many values ``fill_square`` computes: those beside the diagonal twice, where a tile has them twice."""
        a, b, c, d = self._square_tiles(n).T
        return int(((b - a) * (d - c)).sum())

    def dot(self, prepared: Any, coefficients: np.ndarray, which: Any = None) -> tuple[np.ndarray, bool]:
        """Return the product of a block with coefficients (m, k), whose values are not kept; and whether all are finite."""
        columns = self.points if which is None else self.points[which]
        m, k = coefficients.shape
        out = np.zeros((prepared.size, k))
        height = min(max(len(out), 1), TILE_ROWS if self.can_share else max(BYTES // (8 * max(m, 1)), 1))
        if self.can_share and sp.issparse(self._Z):
            height = max(TILE // max(m, 1), 1)
        tiles = _tiles((len(out), m), height, m)
        coefficients = np.ascontiguousarray(coefficients)

        def work(piece: np.ndarray) -> bool:
            return self.add_products(prepared, columns, piece, coefficients, out)

        return out, self._work_off(work, tiles, len(out) * m)

    def add_products(
        self, rows: Any, columns: Any, tiles: np.ndarray, coefficients: np.ndarray, out: np.ndarray
    ) -> bool:
        """Add products of tiles, each of all columns, with coefficients; return whether all values are finite."""
        is_finite = True
        width = columns.size if not self.can_share or sp.issparse(self._Z) else TILE // TILE_ROWS
        for a, b, _, m in tiles.tolist():
            for c in range(0, m, max(width, 1)):
                tile = np.empty((b - a, min(c + width, m) - c))
                with np.errstate(over="ignore", invalid="ignore"):
                    self.write(rows.part(a, b), columns.part(c, c + tile.shape[1]), tile)
                    out[a:b] += tile @ coefficients[c : c + tile.shape[1]]
                    is_finite &= all_finite(tile)
        return is_finite

    def _fill_tiles(self, rows: Any, columns: Any, tiles: np.ndarray, out: np.ndarray, is_square: bool) -> bool:
        """Write tiles of a block."""

        def work(piece: np.ndarray) -> bool:
            return self.write_tiles(rows, columns, piece, out, is_square)

        return self._work_off(work, tiles, out.size)

    def _work_off(self, work: Callable[[np.ndarray], bool], tiles: np.ndarray, values: int) -> bool:
        """Call ``work`` with some tiles after the other, on all threads where that pays; return whether all say yes."""
        multiplications = values * self.cost
        is_shared = self.can_share and multiplications >= WORTH_SHARING
        at_once = int(len(tiles) * PIECE / max(multiplications, 1)) if self.can_share else 1
        at_once = max(1, min(at_once, len(tiles) // PIECES) if is_shared else at_once)
        pieces = (tiles[k : k + at_once] for k in range(0, len(tiles), at_once))
        answers = []
        if is_shared:
            threads.share(lambda piece: answers.append(work(piece)), pieces)
        else:
            with threads.alone(values * self._Z.shape[1]):
                for k, piece in enumerate(pieces):
                    if k:  # what is small is done, whatever the limit
                        limits.check()
                    answers.append(work(piece))
        return all(answers)

    def counted_rows(self, prepared: Any, capacity: int) -> Any:
        """Return memory for rows in a form that takes an eighth of it; None where there is none."""
        return None

    def rounding(self, diagonal: np.ndarray) -> "Rounding":
        """Return how far values between the points of Z can be off."""
        with np.errstate(over="ignore", invalid="ignore"):  # a tanh is finite where what it is of is not
            magnitude = self.kernel.magnitude(read_only(self.points.X), diagonal)
        roundings = self.kernel.roundings(self._Z.shape[1])
        if self.kernel.is_own and not self.kernel.states_roundings and diagonal.size:
            roundings = max(roundings, self.kernel.disagreement(self.points.X, diagonal).units)  # a mere assumption
        return Rounding.within(magnitude, roundings)


def _with_short_indices(X: Any) -> Any:
    """Return sparse points with indices of 32 bits wherever these suffice: the same compiled code then serves all."""
    if not sp.issparse(X) or X.indices.dtype == X.indptr.dtype == np.int32:
        return X
    if max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def write_products(rows: Points, columns: Points, out: np.ndarray) -> None:
    """Write the inner products of points, of which all or none are sparse."""
    if sp.issparse(columns.X):
        X, Z = rows.X, columns.by_feature
        _add_sparse_products(X.data, X.indices, X.indptr, Z.data, Z.indices, Z.indptr, out)
    else:
        np.matmul(rows.X, columns.X.T, out=out)


@jit
def _add_sparse_products(x, feature, edge, z, point, z_edge, out):
    """Write the products of a CSR matrix and the transpose of one that is given as CSC."""
    for i in range(out.shape[0]):
        row = out[i]
        for j in range(row.size):
            row[j] = 0.0
        for a in range(edge[i], edge[i + 1]):
            value, f = x[a], feature[a]
            for b in range(z_edge[f], z_edge[f + 1]):
                row[point[b]] += value * z[b]


def _tiles(shape: tuple[int, ...], height: int, width: int) -> np.ndarray:
    """Return the tiles of a block, (k, 4), row after row of them."""
    a, c = np.arange(0, shape[0], max(height, 1)), np.arange(0, shape[1], max(width, 1))
    tiles = np.empty((a.size, c.size, 4), dtype=np.int64)
    tiles[..., 0], tiles[..., 1] = a[:, None], np.minimum(a + height, shape[0])[:, None]
    tiles[..., 2], tiles[..., 3] = c, np.minimum(c + width, shape[1])
    return tiles.reshape(-1, 4)


def strips(n: int, height: int) -> np.ndarray:
    """Return a square from its diagonal on, by tiles from there to its right end."""
    tiles = _tiles((n, n), height, n)
    tiles[:, 2] = tiles[:, 0]
    return tiles


def _square(n: int) -> int:
    """Return the rows of a tile of a square."""
    return LARGE_SQUARE if n >= LARGE else SQUARE


def all_finite(values: np.ndarray) -> bool:
    """Whether no value is infinite or NaN: a sum is finite only if every term is (or they cancel)."""
    return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


@jit
def lay_down(tile, a, c, out, is_square):
    """Write a tile that begins at (a, c) into a block; into a symmetric one its mirror image too."""
    height, width = tile.shape
    for i in range(height):
        row, source = out[a + i, c : c + width], tile[i]  # a slice has no negative index: copies then vectorise
        for j in range(row.size):
            row[j] = source[j]
    if not is_square:
        return
    first = min(height, width) if a == c else 0  # of the columns that are not on the diagonal
    for j in range(first):
        for i in range(j):
            out[c + j, a + i] = tile[i, j]
    rows, columns = height - height % TURNED, width - (width - first) % TURNED
    for j in range(first, columns, TURNED):
        for i in range(0, rows, TURNED):
            turn_block(tile, i, j, out, c + j, a + i)
    for j in range(first, width):
        for i in range(rows if j < columns else 0, height):
            out[c + j, a + i] = tile[i, j]
