"""The Gaussian kernel, and the exponents it is made of.

The exponent of rbf is one matrix product by the expansion |x - z|² = |x|² - 2 <x, z> + |z|², whose rounding error grows with
the squares.  So points are first moved to their middle, and points that are still far from it (outliers, or a large gamma)
are compared coordinate by coordinate: that error grows with the distance alone, and a large distance makes a value of zero.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from zerogap import limits, precision, threads
from zerogap.compiled import inline_contracted, inline_sums, jit_contracted, jit_sums
from zerogap.kernels import binary
from zerogap.kernels.base import UNIT, Kernel, Rounding, dense
from zerogap.kernels.blocks import TILE, Columns, Points, lay_down, strips, write_products
from zerogap.kernels.counted import CountedRows
from zerogap.kernels.exponential import exponentials
from zerogap.kernels.products import ROWS
from zerogap.kernels.scale import check_gamma, gamma_value, number, power_of_two

# The largest error of an exponent that the expansion may make; where its bound is larger, coordinates are compared.
EXPANSION = 1e-11
COUNTED = 16  # rows of counts that a thread writes at a time


@dataclass(frozen=True)
class RBF(Kernel):
    """The Gaussian kernel, exp(-gamma |x - z|²).

    Attributes
    ----------
    gamma : float or str
        A number of at least 0, "scale", the default (1 / (d var(X))), or "auto" (1 / d).

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import RBF
    >>> Gram([[0.0], [1.0]], RBF(0.5)).full().round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    gamma: float | str = "scale"

    name = "rbf"
    is_positive = True
    is_radial = True
    knows_diagonal = True
    accepts_sparse = True
    can_share = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "RBF":
        """Return the kernel with gamma as a number."""
        return replace(self, gamma=gamma_value(self.gamma, X, weight))

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self(X, Z)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) = 1 for every row of X."""
        return np.ones(X.shape[0])

    def roundings(self, d: int) -> float:
        """Return c: a value is off by c u of it because of the exponential, and of what is done with the exponent."""
        return 4.0

    def against(self, Z: Any) -> "Exponents":
        """Fix one side of the blocks to the rows of Z."""
        return Exponents(self, Z)

    def precise_roundings(self, d: int) -> float:
        """Return c: the exponent is a sum of d squares, the exponential some hundred operations."""
        return 3.0 * (d + 4.0) ** 2 + 2000.0

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return sum_j beta_j k(x_i, z_j) for every row of X, in twice the precision."""
        high, low = np.zeros((2, X.shape[0]))
        power, gamma = power_of_two(number(self.gamma))
        Zt = np.ascontiguousarray(np.ldexp(dense(Z), -power).T)

        def work(start: int) -> None:
            rows = slice(start, start + ROWS)
            precision.add_rbf(np.ldexp(dense(X[rows]), -power), Zt, gamma, beta, high[rows], low[rows])

        limits.check()
        threads.share(work, range(0, X.shape[0], ROWS))
        return high, low


class LiftedPoints(Points):
    """Points that know how far they are from the middle."""

    def __init__(
        self, X: Any, lifted: np.ndarray | None, reach: np.ndarray, scale: float = 1.0, bits: np.ndarray | None = None
    ):
        super().__init__(X)
        self.scale = scale  # sqrt(2 gamma): scaled, both points have the same part in a product, which is symmetric
        self._lifted = lifted
        self.bits = bits  # (n, words), of points that are bits like those of Z
        self._by_word: np.ndarray | None = None
        self._has_far: bool | None = None
        self.reach = reach  # (n,) gamma |x - centre|², or inf for a point that is compared coordinate by coordinate

    def __getitem__(self, rows: Any) -> "LiftedPoints":
        if self.bits is not None:
            return SomeBits(self, self.bits, rows)
        lifted = None if self.lifted is None else self.lifted[rows]
        return LiftedPoints(self.X[rows], lifted, self.reach[rows], self.scale)

    @property
    def lifted(self) -> np.ndarray | None:
        """Points with two more entries, (n, d + 2), for the exponents by one product; None for sparse points."""
        return self._lifted

    @property
    def by_word(self) -> np.ndarray:
        """Points that are bits, word after word."""
        if self._by_word is None:
            assert self.bits is not None
            self._by_word = np.ascontiguousarray(self.bits.T)
        return self._by_word

    @property
    def by_feature(self) -> Any:
        """Sparse points, scaled, feature after feature."""
        if self._by_feature is None:
            columns = self.X.tocsc()
            columns.data = self.scale * columns.data
            self._by_feature = columns
        return self._by_feature

    def arrays(self, *, by_feature: bool = False) -> tuple[np.ndarray, ...]:
        """Return what compiled code reads sparse points from."""
        X = self.by_feature if by_feature else self.X
        return X.data, X.indices, X.indptr, self.reach

    @property
    def has_far(self) -> bool:
        """Whether any is compared coordinate by coordinate."""
        if self._has_far is None:  # a cached property would have a lock, for which threads wait
            self._has_far = bool(np.isinf(self.reach).any())
        return self._has_far

    @property
    def far(self) -> np.ndarray:
        """Those that are compared coordinate by coordinate."""
        return np.flatnonzero(np.isinf(self.reach))


class SomeBits(LiftedPoints):
    """Some of points that are bits, which are enough as a rule: the features are looked up where they are asked for."""

    def __init__(self, whole: LiftedPoints, bits: np.ndarray, rows: Any):
        super().__init__(None, None, whole.reach[rows], whole.scale, bits[rows])
        self._whole, self._rows = whole, rows

    @property
    def X(self) -> Any:
        """The points, row by row."""
        if self._X is None:
            self._X = self._whole.X[self._rows]
        return self._X

    @property
    def size(self) -> int:
        """Number of points."""
        return self.reach.size

    @property
    def lifted(self) -> np.ndarray | None:
        """Points with two more entries; None for sparse points."""
        if self._lifted is None and self._whole.lifted is not None:
            self._lifted = self._whole.lifted[self._rows]
        return self._lifted


class Exponents(Columns):
    """Exponents -gamma |x - z|² and their exponentials.

    On dense data -gamma |x - z|² = 2 gamma <x, z> - gamma |x|² - gamma |z|² is one product of vectors with two more entries,
    the points moved to the middle of Z.
    """

    kernel: RBF

    def __init__(self, kernel: RBF, Z: Any):
        self._gamma = number(kernel.gamma)
        self._is_sparse = sp.issparse(Z)
        self._limit = EXPANSION / (UNIT * expansion_roundings(Z.shape[1]) * 2.0)  # both points are within it
        self._bit = binary.number_of(Z)
        self._table = np.empty(0) if self._bit is None else _by_count(self._gamma, self._bit, Z.shape[1])
        if not self._is_sparse:
            self._centre = _mean(Z)
        super().__init__(kernel, Z)
        if not self._is_sparse and self.points.has_far:  # an outlier may have drawn the mean away
            self._centre = np.median(Z, axis=0)
            self.points = self._prepare(Z)

    def prepare(self, X: Any) -> LiftedPoints:
        """Return the points X in the form that ``fill`` takes: done once, it need not be done for every block."""
        if X is self._Z and self._is_sparse:  # rows and columns have the same form
            return self.points
        if X is self._Z and (lifted := self.points.lifted) is not None:
            turned = np.concatenate([lifted[:, :-2], lifted[:, :-3:-1]], axis=1)
            points = LiftedPoints(X, turned, self.points.reach, bits=self.points.bits)
            points._has_far = self.points.has_far
            return points
        return self._prepare(X, is_column=False)

    def _prepare(self, X: Any, is_column: bool = True) -> LiftedPoints:
        if self._is_sparse != sp.issparse(X):  # points are compared in one form
            X = sp.csr_matrix(X) if self._is_sparse else X.toarray()
        bits = None if self._bit is None else binary.packed(X, self._bit)
        if self._is_sparse:
            with np.errstate(over="ignore"):
                reach = self._gamma * row_norms(X, squared=True)
            reach = np.where(reach <= self._limit, reach, np.inf)
            return LiftedPoints(X, None, reach, np.sqrt(2.0 * self._gamma), bits)
        return self._lift(X, bits, is_column)

    def _lift(self, X: np.ndarray, bits: np.ndarray | None, is_column: bool) -> LiftedPoints:
        d = X.shape[1]
        lifted = np.empty((X.shape[0], d + 2))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            centred = np.subtract(X, self._centre, out=lifted[:, :d])
            centred *= np.sqrt(2.0 * self._gamma)  # first, so that squares of tiny features do not underflow
            reach = 0.5 * np.einsum("ij,ij->i", centred, centred)
        is_far = ~(reach <= self._limit)
        reach[is_far] = np.inf
        lifted[:, d + is_column] = -reach
        lifted[:, d + (not is_column)] = 1.0
        lifted[is_far] = 0.0
        return LiftedPoints(X, lifted, reach, bits=bits)

    def write(self, rows: LiftedPoints, columns: LiftedPoints, out: np.ndarray) -> None:
        """Write the kernel values of prepared points against some of ``points`` into ``out``, an array in one piece."""
        self._exponents(rows, columns, out)
        exponentials(out.reshape(-1))  # no exponent is positive but by rounding: then it counts as zero

    def write_tiles(self, rows: Any, columns: Any, tiles: np.ndarray, out: np.ndarray, is_square: bool) -> bool:
        """Write tiles of a block; of bits, and points that are none too far for the expansion, in compiled code."""
        if rows.bits is not None and columns.bits is not None:
            binary.write_tiles(rows.bits, columns.by_word, self._table, tiles, out, is_square)
            return True
        if rows.has_far or columns.has_far:
            return super().write_tiles(rows, columns, tiles, out, is_square)
        if self._is_sparse:
            arrays = rows.arrays() + columns.arrays(by_feature=True)
            return bool(np.isfinite(_write_sparse_tiles(*arrays, rows.scale, tiles, out, is_square)))
        return bool(np.isfinite(_write_tiles(rows.lifted, columns.lifted, tiles, out, is_square)))

    def add_products(
        self, rows: Any, columns: Any, tiles: np.ndarray, coefficients: np.ndarray, out: np.ndarray
    ) -> bool:
        """Add products of tiles with coefficients, as ``write_tiles`` computes them."""
        if rows.bits is not None and columns.bits is not None:
            factors = np.ascontiguousarray(coefficients.T)
            binary.add_products(rows.bits, columns.by_word, self._table, tiles, factors, out)
            return True
        if rows.has_far or columns.has_far:
            return super().add_products(rows, columns, tiles, coefficients, out)
        if self._is_sparse:
            arrays = rows.arrays() + columns.arrays(by_feature=True)
            _add_sparse_products(*arrays, rows.scale, tiles, np.ascontiguousarray(coefficients.T), out)
            return True
        _add_products(rows.lifted, columns.lifted, tiles, np.ascontiguousarray(coefficients.T), out)
        return True

    def counted_rows(self, prepared: LiftedPoints, capacity: int) -> CountedRows | None:
        """Return memory for rows of counts, of points that are bits; None where a count may be more than a byte holds."""
        bits = self.points.bits
        if bits is None or not bits.size:
            return None
        most = min(self._Z.shape[1], 2 * int(binary.most_bits(bits)))
        return CountedRows(self, prepared, capacity) if most <= binary.LARGEST_COUNT else None

    @property
    def table(self) -> np.ndarray:
        """Kernel values of points that are bits, by the number of features in which they differ."""
        return self._table

    def write_counts(self, rows: LiftedPoints, out: np.ndarray, places: np.ndarray) -> None:
        """Write in how many features prepared points, which are bits, differ from those of Z, into some rows of ``out``."""
        by_word = self.points.by_word

        def work(first: int) -> None:
            binary.write_counts(rows.bits, by_word, first, min(first + COUNTED, places.size), places, out)

        threads.share(work, range(0, places.size, COUNTED))

    def _square_tiles(self, n: int) -> np.ndarray:
        """Return the tiles of a square: of sparse points whole rows, feature by feature."""
        if self._is_sparse and not self.points.has_far:
            return strips(n, max(2 * TILE // max(n, 1), 8))
        return super()._square_tiles(n)

    def rounding(self, diagonal: np.ndarray) -> Rounding:
        """Return how far values between the points of Z can be off: relatively by their exponents, or as compared ones."""
        d, reach = self._terms(), self.points.reach
        is_far, c, relative = np.isinf(reach), expansion_roundings(d), np.ones((2, 2, reach.size))
        near = np.where(is_far, 0.0, reach)
        relative[0, 0], relative[0, 1], relative[1, 1] = self.kernel.roundings(d) + c * near, c, near
        absolute, compared = np.ones((2, 2, reach.size)), comparison_roundings(2 * d if self._is_sparse else d)
        absolute[0, 0], absolute[0, 1], absolute[1, 1] = compared * is_far, compared, is_far
        return Rounding(np.ones(reach.size), relative, absolute)

    @property
    def cost(self) -> int:
        """Multiplications that a value is worth."""
        return super().cost if self._bit is None else self._Z.shape[1] // binary.PAIR + binary.EXPONENTIAL

    def _terms(self) -> int:
        """Return how many features a point has: of sparse points, as many as have an entry in the fullest."""
        return int(np.diff(self._Z.indptr).max(initial=0)) if self._is_sparse else self._Z.shape[1]

    def _exponents(self, rows: LiftedPoints, columns: LiftedPoints, out: np.ndarray) -> None:
        """Write -gamma |x - z|²: by the expansion, and anew where a point is too far for it."""
        gamma, far_rows, far_columns = self._gamma, rows.far, columns.far
        if far_rows.size < out.shape[0] and far_columns.size < out.shape[1]:
            self._expand(rows, columns, out)
        if far_rows.size or far_columns.size:
            near_rows = np.setdiff1d(np.arange(out.shape[0]), far_rows)
            compare = _compare_sparse if self._is_sparse else _compare
            for chosen_rows, chosen_columns in ((far_rows, np.arange(out.shape[1])), (near_rows, far_columns)):
                compare(*_coordinates(rows.X), *_coordinates(columns.X), chosen_rows, chosen_columns, gamma, out)

    def _expand(self, rows: LiftedPoints, columns: LiftedPoints, out: np.ndarray) -> None:
        if rows.lifted is not None and columns.lifted is not None:
            np.matmul(rows.lifted, columns.lifted.T, out=out)
            return
        with np.errstate(over="ignore", invalid="ignore"):  # where a point is far, and all is written anew
            write_products(rows, columns, out)
            out *= columns.scale  # one side of the products has it already
            out -= columns.reach
            out -= rows.reach[:, None]


def expansion_roundings(d: int) -> float:
    """Return c: an exponent by the expansion is off by at most c u (gamma |x|² + gamma |z|²), u being the unit roundoff.

    Each of the d + 2 products takes part in d + 1 sums and is itself off by 4 u, the squares in it by (d + 2) u; the products
    sum up to at most 2 (gamma |x|² + gamma |z|²).
    """
    return 4.0 * d + 24.0


def comparison_roundings(d: int) -> float:
    """Return c: a kernel value of rbf whose points were compared coordinate by coordinate is off by at most c u.

    The exponent -s is off by (d + 8) u s, and s exp(-s) is at most 1/e.
    """
    return (d + 8.0) / np.e + 1.0


def _by_count(gamma: float, value: float, d: int) -> np.ndarray:
    """Return the kernel values of points that differ by a number in no feature, in one, ..., in all.

    The exponent is off by 3 u of it, which is less than either way to compute it from the features is.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        table = -(gamma * value * value) * np.arange(d + 1.0)
    table[0] = 0.0
    exponentials(table)
    return table


def _mean(Z: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return Z.mean(axis=0)


def _coordinates(X: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays that compiled code reads points from."""
    if not sp.issparse(X):
        return (X,)
    X = X if X.has_sorted_indices else X.sorted_indices()
    return X.data, X.indices, X.indptr


# Slices are not assigned in compiled code: the message on shapes that differ takes seconds to compile.


@inline_sums
def _sum(values):
    total = 0.0
    for k in range(values.size):
        total += values[k]
    return total


@inline_contracted
def _tile(rows, columns, a, b, c, d, values):
    """Return the kernel values of some lifted points, in the memory given."""
    flat = values[: (b - a) * (d - c)]
    tile = flat.reshape((b - a, d - c))
    np.dot(rows[a:b], columns[c:d].T, tile)
    exponentials(flat)
    return tile


@jit_contracted
def _write_tiles(rows, columns, tiles, out, is_square):
    """Write the kernel values of lifted points; return their sum."""
    largest, total = 0, 0.0
    for t in range(tiles.shape[0]):
        largest = max(largest, (tiles[t, 1] - tiles[t, 0]) * (tiles[t, 3] - tiles[t, 2]))
    values = np.empty(largest)
    for t in range(tiles.shape[0]):
        a, b, c, d = tiles[t, 0], tiles[t, 1], tiles[t, 2], tiles[t, 3]
        tile = _tile(rows, columns, a, b, c, d, values)
        total += _sum(values[: (b - a) * (d - c)])
        lay_down(tile, a, c, out, is_square)
    return total


@inline_contracted
def _sparse_row(i, x, feature, edge, reach, z, point, z_edge, z_reach, scale, first, row):
    """Write the exponents of a sparse point against those from ``first`` on, by the products of the features both have."""
    for j in range(row.size):
        row[j] = -reach[i] - z_reach[first + j]
    for a in range(edge[i], edge[i + 1]):
        value, f = scale * x[a], feature[a]
        begin, end = z_edge[f], z_edge[f + 1]
        while begin < end and point[begin] < first:  # halve: points of a feature are in order
            middle = (begin + end) // 2
            if point[middle] < first:
                begin = middle + 1
            else:
                end = middle
        for b in range(begin, z_edge[f + 1]):
            row[point[b] - first] += value * z[b]


@jit_contracted
def _write_sparse_tiles(x, feature, edge, reach, z, point, z_edge, z_reach, scale, tiles, out, is_square):
    """Write the kernel values of sparse points, by tiles that go to the right end; return their sum."""
    largest, total = 0, 0.0
    for t in range(tiles.shape[0]):
        largest = max(largest, (tiles[t, 1] - tiles[t, 0]) * (tiles[t, 3] - tiles[t, 2]))
    values = np.empty(largest)
    for t in range(tiles.shape[0]):
        a, b, c, d = tiles[t, 0], tiles[t, 1], tiles[t, 2], tiles[t, 3]
        flat = values[: (b - a) * (d - c)]
        tile = flat.reshape((b - a, d - c))
        for i in range(a, b):
            _sparse_row(i, x, feature, edge, reach, z, point, z_edge, z_reach, scale, c, tile[i - a])
        exponentials(flat)
        total += _sum(flat)
        lay_down(tile, a, c, out, is_square)
    return total


@jit_sums
def _add_sparse_products(x, feature, edge, reach, z, point, z_edge, z_reach, scale, tiles, coefficients, out):
    """Add the products of kernel values of sparse points, row by row, with coefficients (k, m)."""
    k, m = coefficients.shape
    row = np.empty(m)
    for t in range(tiles.shape[0]):
        for i in range(tiles[t, 0], tiles[t, 1]):
            _sparse_row(i, x, feature, edge, reach, z, point, z_edge, z_reach, scale, 0, row)
            exponentials(row)
            for j in range(k):
                factors, s = coefficients[j], 0.0
                for e in range(m):
                    s += row[e] * factors[e]
                out[i, j] += s


@jit_sums
def _add_products(rows, columns, tiles, coefficients, out):
    """Add the products of kernel values of lifted points, tile by tile, with coefficients (k, m)."""
    k, m = coefficients.shape
    values = np.empty(TILE)
    for t in range(tiles.shape[0]):
        a, b = tiles[t, 0], tiles[t, 1]
        width = TILE // (b - a)
        for c in range(0, m, width):
            d = min(c + width, m)
            tile = _tile(rows, columns, a, b, c, d, values)
            for i in range(b - a):
                row = tile[i]
                for j in range(k):
                    factors, s = coefficients[j, c:d], 0.0
                    for e in range(row.size):
                        s += row[e] * factors[e]
                    out[a + i, j] += s


@jit_sums
def _compare(X, Z, rows, columns, gamma, out):
    """Write -gamma |x - z|² for some rows and columns, coordinate by coordinate."""
    root = np.sqrt(gamma)
    for i in rows:
        x = X[i]
        for j in columns:
            z, s = Z[j], 0.0
            for k in range(x.size):
                t = root * (x[k] - z[k])
                s += t * t
            out[i, j] = -s


@jit_sums
def _compare_sparse(x, x_index, x_edge, z, z_index, z_edge, rows, columns, gamma, out):
    """Write -gamma |x - z|² for some rows and columns of CSR matrices with sorted indices."""
    root = np.sqrt(gamma)
    for i in rows:
        for j in columns:
            a, a_end, b, b_end, s = x_edge[i], x_edge[i + 1], z_edge[j], z_edge[j + 1], 0.0
            while a < a_end or b < b_end:
                if b == b_end or (a < a_end and x_index[a] < z_index[b]):
                    t = x[a]
                    a += 1
                elif a == a_end or z_index[b] < x_index[a]:
                    t = z[b]
                    b += 1
                else:
                    t = x[a] - z[b]
                    a += 1
                    b += 1
                s += (root * t) * (root * t)
            out[i, j] = -s
