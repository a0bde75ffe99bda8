"""Points whose features are zero or one other number, the same for all: rows of bits.

Then |x - z|² is that number's square times how many bits differ, a whole number from 0 to d: the kernel has d + 1 values, and
which of them it is takes an exclusive or and a count of bits for every 64 features.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.compiled import inline, jit, jit_sums, popcount
from zerogap.kernels.blocks import lay_down

WORD, PAIR = 64, 128  # features of a word, and of the two that are counted at a time
MOST_SPARSE = 1024  # features: with more of them the products of sparse points take less
ROWS = 4096  # sparse points whose features are laid out at a time
CHUNK = 1024  # counts that stay in the fastest cache
LARGEST_COUNT = 255  # of those that are kept, a byte each
EXPONENTIAL = 8  # multiplications that take as long as to count two words and to look the value up


def number_of(X: Any) -> float | None:
    """Return the one number other than zero that points have, 1 if they have none; None if they are no bits, or too many."""
    if sp.issparse(X):
        if X.shape[1] > MOST_SPARSE or not X.has_canonical_format:
            return None
        value = float(X.data[0]) if X.nnz else 1.0
        return value if value != 0.0 and bool((X.data == value).all()) else None
    some = X[:1][X[:1] != 0.0]
    if some.size and not (some == some[0]).all():  # as of nearly all data: one look is enough
        return None
    if not some.size:
        some = X[X != 0.0][:1] if X.size else some
    value = float(some[0]) if some.size else 1.0
    return value if _has_only(X, value) else None


def packed(X: Any, value: float) -> np.ndarray | None:
    """Return points as rows of words, an even number of them; None if they have other numbers than zero and ``value``."""
    n, d = X.shape
    words = np.zeros((n, 2 * max(-(-d // PAIR), 1) * 8), dtype=np.uint8)
    if sp.issparse(X):
        if not X.has_canonical_format or not (X.data == value).all():
            return None
        entries = np.ones(X.nnz, dtype=bool)
        for start in range(0, n, ROWS):
            edges = X.indptr[start : start + ROWS + 1]
            own = slice(edges[0], edges[-1])
            part = sp.csr_matrix((entries[own], X.indices[own], edges - edges[0]), shape=(edges.size - 1, d))
            _pack(part.toarray(), words[start : start + ROWS])
        return words.view(np.uint64)
    if not _has_only(X, value):
        return None
    _pack(np.equal(X, value), words)
    return words.view(np.uint64)


def _has_only(X: np.ndarray, value: float) -> bool:
    return bool(np.count_nonzero(X) == np.count_nonzero(np.equal(X, value)))  # NaN counts as other than zero


def _pack(is_set: np.ndarray, words: np.ndarray) -> None:
    some = np.packbits(is_set, axis=1, bitorder="little")
    words[:, : some.shape[1]] = some


@inline
def _count(x, z, begin, counts):
    """Count the bits in which a point differs from those from ``begin`` on, whose words stand one after another."""
    for j in range(counts.size):
        counts[j] = 0
    for w in range(0, x.size, 2):
        a, b, here, there = x[w], x[w + 1], z[w, begin : begin + counts.size], z[w + 1, begin : begin + counts.size]
        for j in range(counts.size):
            counts[j] += popcount(a ^ here[j]) + popcount(b ^ there[j])


@inline
def _write_row(x, z, first, table, counts, row):
    """Write the values of a point with those from ``first`` on."""
    for start in range(0, row.size, CHUNK):
        part = row[start : start + CHUNK]
        count = counts[: part.size]
        _count(x, z, first + start, count)
        for j in range(part.size):
            part[j] = table[count[j]]


@jit
def write_tiles(rows, columns, table, tiles, out, is_square):
    """Write tiles of a block of kernel values: ``table`` has them by the number of bits that differ."""
    largest = 0
    for t in range(tiles.shape[0]):
        largest = max(largest, (tiles[t, 1] - tiles[t, 0]) * (tiles[t, 3] - tiles[t, 2]))
    values, counts = np.empty(largest), np.empty(CHUNK, dtype=np.uint64)
    for t in range(tiles.shape[0]):
        a, b, c, d = tiles[t, 0], tiles[t, 1], tiles[t, 2], tiles[t, 3]
        tile = values[: (b - a) * (d - c)].reshape((b - a, d - c))
        for i in range(a, b):
            _write_row(rows[i], columns, c, table, counts, tile[i - a])
        lay_down(tile, a, c, out, is_square)


@jit_sums
def add_products(rows, columns, table, tiles, coefficients, out):
    """Add the products of kernel values, row by row, with coefficients (k, m)."""
    k, m = coefficients.shape
    row, counts = np.empty(m), np.empty(CHUNK, dtype=np.uint64)
    for t in range(tiles.shape[0]):
        for i in range(tiles[t, 0], tiles[t, 1]):
            _write_row(rows[i], columns, 0, table, counts, row)
            for j in range(k):
                factors, s = coefficients[j], 0.0
                for e in range(m):
                    s += row[e] * factors[e]
                out[i, j] += s


@jit
def write_counts(rows, columns, first, last, places, out):
    """Count in how many bits points from ``first`` on differ from all, none in more than ``LARGEST_COUNT``: rows of ``out``."""
    counts, n = np.empty(CHUNK, dtype=np.uint64), columns.shape[1]
    for i in range(first, last):
        row = out[places[i]]
        for start in range(0, n, CHUNK):
            part = row[start : min(start + CHUNK, n)]
            count = counts[: part.size]
            _count(rows[i], columns, start, count)
            for j in range(part.size):
                part[j] = count[j]


@jit_sums
def add_counted(counts, slots, change, table, begin, end, out):
    """Add ``change`` times the values that rows of counts stand for to a sum, from ``begin`` to ``end``; four at a time."""
    whole = slots.size - slots.size % 4
    for first in range(begin, end, CHUNK):
        last = min(first + CHUNK, end)
        part = out[first:last]
        for k in range(0, whole, 4):
            r0, r1 = counts[slots[k], first:last], counts[slots[k + 1], first:last]
            r2, r3 = counts[slots[k + 2], first:last], counts[slots[k + 3], first:last]
            x0, x1, x2, x3 = change[k], change[k + 1], change[k + 2], change[k + 3]
            for i in range(part.size):
                part[i] += (x0 * table[r0[i]] + x1 * table[r1[i]]) + (x2 * table[r2[i]] + x3 * table[r3[i]])
        for k in range(whole, slots.size):
            row, x = counts[slots[k], first:last], change[k]
            for i in range(part.size):
                part[i] += x * table[row[i]]


@jit
def most_bits(bits):
    """Return how many bits the point with the most of them has."""
    most = np.int64(0)
    for i in range(bits.shape[0]):
        count = np.int64(0)
        for w in range(bits.shape[1]):
            count += np.int64(popcount(bits[i, w]))
        most = max(most, count)
    return most
