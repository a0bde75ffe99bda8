"""Combinations of kernel rows, compiled: decision values, the lines p + lam q they follow, and how one point changes them.

Symbols: as in ``engine``.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.precision import add_product
from zerogap.row_sums import COLUMN_BLOCK, combine


@jit
def weighted_rows(K, E, x):
    """Return x'K[E] without gathering the rows."""
    out = np.zeros(K.shape[1])
    for begin in range(0, out.size, COLUMN_BLOCK):
        combine(K, E, x, begin, out[begin : begin + COLUMN_BLOCK])
    return out


@jit
def add_row(K, i, x, total):
    """Add x times a row to a sum."""
    row = K[i]
    for j in range(total.size):
        total[j] += x * row[j]


@jit
def lines(K, E, u, v, u0, v0, g, p, q):
    """p + lam q are the scaled decision values of all points, g = K_L b_L being the bound contribution."""
    for begin in range(0, g.size, COLUMN_BLOCK):
        end = min(begin + COLUMN_BLOCK, g.size)
        for i in range(begin, end):
            p[i], q[i] = g[i] + u0, v0
        _combine_twice(K, E, u, v, begin, p[begin:end], q[begin:end])


class ElbowLines(NamedTuple):
    """The points of the elbow, in the order of its system, their b = u + lam v, and the slope of the bias."""

    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    v0: float


class Change(NamedTuple):
    """New u and v of an elbow, and the change du + lam dv of the coefficient that made them change."""

    u: np.ndarray
    v: np.ndarray
    du: float
    dv: float


@inline
def change_lines(K, E, i, d, d0, du, dv, p, q):
    """Change p and q by du and dv times what a rise of one coefficient by one, with the elbow's response d, d0, does to F.

    ``K[E]`` are the kernel rows of the elbow over the points whose p and q are kept, ``K[i]`` that of the coefficient's point.
    """
    rate = np.empty(min(COLUMN_BLOCK, p.size))
    for begin in range(0, p.size, COLUMN_BLOCK):
        end = min(begin + COLUMN_BLOCK, p.size)
        r, row, a, b = rate[: end - begin], K[i, begin:end], p[begin:end], q[begin:end]
        for k in range(r.size):
            r[k] = row[k] + d0
        combine(K, E, d, begin, r)
        for k in range(r.size):
            a[k] += du * r[k]
            b[k] += dv * r[k]


@inline
def _combine_twice(K, E, x, y, begin, out, other):
    """Add x'K[E, begin:] to a stretch of a sum, and y'K[E, begin:] to that of another: the rows are read once."""
    end, whole = begin + out.size, x.size - x.size % 4
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = K[E[k], begin:end], K[E[k + 1], begin:end], K[E[k + 2], begin:end], K[E[k + 3], begin:end]
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        y0, y1, y2, y3 = y[k], y[k + 1], y[k + 2], y[k + 3]
        for i in range(out.size):
            out[i] += (x0 * r0[i] + x1 * r1[i]) + (x2 * r2[i] + x3 * r3[i])
            other[i] += (y0 * r0[i] + y1 * r1[i]) + (y2 * r2[i] + y3 * r3[i])
    for k in range(whole, x.size):
        row, a, b = K[E[k], begin:end], x[k], y[k]
        for i in range(out.size):
            out[i] += a * row[i]
            other[i] += b * row[i]


@jit
def add_exactly(K, rows, x, E, total, error):
    """Add x'K[rows, E] to total + error, a sum in twice the working precision (Ogita, Rump and Oishi, 2005)."""
    near = np.empty(E.size)  # gathered first, so that the sums are vectorised
    for j in range(rows.size):
        row, a = K[rows[j]], x[j]
        for k in range(E.size):
            near[k] = row[E[k]]
        for k in range(E.size):
            total[k], error[k] = add_product(total[k], error[k], near[k], a)


@jit
def add_block_exactly(block, x, total, error):
    """Add x'block to total + error likewise; four rows at a time, so that the sums are seldom read and written."""
    whole = x.size - x.size % 4
    for j in range(0, whole, 4):
        a, b, c, d = x[j], x[j + 1], x[j + 2], x[j + 3]
        r0, r1, r2, r3 = block[j], block[j + 1], block[j + 2], block[j + 3]
        for k in range(total.size):
            high, low = add_product(total[k], error[k], r0[k], a)
            high, low = add_product(high, low, r1[k], b)
            high, low = add_product(high, low, r2[k], c)
            total[k], error[k] = add_product(high, low, r3[k], d)
    for j in range(whole, x.size):
        row, a = block[j], x[j]
        for k in range(total.size):
            total[k], error[k] = add_product(total[k], error[k], row[k], a)
