"""Sums in twice the working precision, as unevaluated pairs high + low (Dekker 1971; Ogita, Rump and Oishi 2005).

Where the terms of a sum cancel, float64 keeps few digits of it; such a pair keeps about 32.  Products split their factors by
Veltkamp's constant, so factors have to stay below 1e300: where they do not, the result is not finite, which the caller sees.
Loops run over points, not over coordinates: so they vectorise.
"""

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.compiled import inline, jit

NEGLIGIBLE_FACTOR = 1e10  # an entry that is larger than a change by this factor may absorb it

Pair = tuple[np.ndarray, np.ndarray]


@inline
def two_sum(a, b):
    """Return a + b and what rounding took from it (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@inline
def two_product(a, b):
    """Return a b and what rounding took from it (Dekker); halves by Veltkamp's constant, 2^27 + 1."""
    product, large, wide = a * b, 134217729.0 * a, 134217729.0 * b
    a_high, b_high = large - (large - a), wide - (wide - b)
    a_low, b_low = a - a_high, b - b_high
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


@inline
def add_product(high, low, a, b):
    """Add a b to an unevaluated sum."""
    product, lost = two_product(a, b)
    high, rest = two_sum(high, product)
    return high, low + (lost + rest)


@inline
def add_pairs(a, a_low, b, b_low):
    """Return the sum of two pairs."""
    high, low = two_sum(a, b)
    low += a_low + b_low
    total = high + low
    return total, low - (total - high)


@inline
def multiply_pairs(a, a_low, b, b_low):
    """Return the product of two pairs."""
    high, low = two_product(a, b)
    low += a * b_low + a_low * b
    total = high + low
    return total, low - (total - high)


@jit
def dot(x, y):
    """Return the inner product of x and y, summed in twice the precision, as one number."""
    high, low = 0.0, 0.0
    for k in range(x.size):
        high, low = add_product(high, low, x[k], y[k])
    return high + low


@jit
def add_rows(rows, x, weights, high, low, sizes, weighted):
    """Add x'rows to high + low, |x|'|rows| to sizes, and (weight |x|)'|rows| to weighted, for each of several weights."""
    for j in range(rows.shape[0]):
        row, a = rows[j], x[j]
        size = abs(a)
        for i in range(row.size):
            high[i], low[i] = add_product(high[i], low[i], row[i], a)
            sizes[i] += size * abs(row[i])
        for k in range(weights.shape[0]):
            other, total = weights[k, j] * size, weighted[k]
            for i in range(row.size):
                total[i] += other * abs(row[i])


@jit
def scaled(high, low, factor):
    """Return pairs times a number."""
    out, rest = np.empty_like(high), np.empty_like(low)
    for i in range(high.size):
        out[i], rest[i] = multiply_pairs(high[i], low[i], factor, 0.0)
    return out, rest


def add_to(high: np.ndarray, low: np.ndarray, number: Any) -> None:
    """Add one number to every pair, or to each its own, in place."""
    total = high + number
    part = total - high
    low += (high - (total - part)) + (number - part)
    high[:] = total


def with_sum_zero(x: np.ndarray, most: Any = np.inf, norm: Any = None, sum_sensitivity: float = 1.0) -> np.ndarray:
    """Put what rounding left of sum(x) on one entry, which stays within -most to most; in place.

    The smaller that entry, the less is left.  But it must stay what it was: a small one may have a large factor.  With ``norm``
    a change of an entry counts so many times, and what is left of the sum ``sum_sensitivity`` times: the least total is taken.
    """
    for _ in range(2):
        drift, size = math.fsum(x), np.abs(x)
        room = np.where(x * drift > 0.0, size, np.minimum(size, most - size))
        hardly = np.flatnonzero(room > NEGLIGIBLE_FACTOR * abs(drift))
        if drift == 0.0 or not hardly.size:
            break
        seen = room if norm is None else abs(drift) * norm + sum_sensitivity * np.spacing(size)
        x[hardly[np.argmin(seen[hardly])]] -= drift
    return x


def combination(X: Any, centre: np.ndarray, x: np.ndarray) -> Pair:
    """Return sum_j x_j (X_j - centre), X being an array, or CSR with a centre of zero."""
    high, low = np.zeros((2, centre.size))
    if sp.issparse(X):
        _combine_sparse(X.data, X.indices, X.indptr, x, high, low)
    else:
        _combine(X, centre, x, high, low)
    return high, low


def products(X: Any, centre: np.ndarray, w: np.ndarray, w_low: np.ndarray) -> Pair:
    """Return the inner products of the rows of X - centre with w + w_low."""
    high, low = np.zeros((2, X.shape[0]))
    if sp.issparse(X):
        _multiply_sparse(X.data, X.indices, X.indptr, w, w_low, high, low)
    else:
        _multiply(X, centre, w, w_low, high, low)
    return high, low


@jit
def _combine(X, centre, x, high, low):
    for j in range(x.size):
        point, a = X[j], x[j]
        for k in range(point.size):
            difference, rest = two_sum(point[k], -centre[k])
            high[k], low[k] = add_product(high[k], low[k], difference, a)
            low[k] += rest * a


@jit
def _combine_sparse(data, indices, edges, x, high, low):
    for j in range(x.size):
        for m in range(edges[j], edges[j + 1]):
            k = indices[m]
            high[k], low[k] = add_product(high[k], low[k], data[m], x[j])


@jit
def _multiply(X, centre, w, w_low, high, low):
    for i in range(X.shape[0]):
        point, total, rest = X[i], 0.0, 0.0
        for k in range(point.size):
            difference, lost = two_sum(point[k], -centre[k])
            total, rest = add_product(total, rest, difference, w[k])
            rest += lost * w[k] + difference * w_low[k]
        high[i], low[i] = two_sum(total, rest)


@jit
def _multiply_sparse(data, indices, edges, w, w_low, high, low):
    for i in range(edges.size - 1):
        total, rest = 0.0, 0.0
        for m in range(edges[i], edges[i + 1]):
            k = indices[m]
            total, rest = add_product(total, rest, data[m], w[k])
            rest += data[m] * w_low[k]
        high[i], low[i] = two_sum(total, rest)


# Kernel values as pairs.

LN2, LN2_LOW = 0.6931471805599453, 2.3190468138462996e-17
HALVINGS, TERMS = 6, 11  # exp(r / 2^6) by its series, |r| <= ln(2)/2: the term left out is below 1e-33 of it


@inline
def exponential(x, x_low):
    """Return exp(x + x_low) for x <= 0, as a pair; zero where it would be below the normal numbers."""
    if not x > -700.0:
        return 0.0, 0.0
    k = np.rint(x / LN2)
    product, lost = two_product(-k, LN2)
    r, r_low = add_pairs(x, x_low, product, lost - k * LN2_LOW)
    scale = 1.0 / (1 << HALVINGS)
    r, r_low = r * scale, r_low * scale
    y, y_low = 1.0, 0.0
    for m in range(TERMS, 0, -1):  # 1 + r/1 (1 + r/2 (1 + ...))
        y, y_low = multiply_pairs(y, y_low, r, r_low)
        quotient = y / m
        product, lost = two_product(quotient, float(m))
        y, y_low = add_pairs(1.0, 0.0, quotient, ((y - product) - lost + y_low) / m)
    for _ in range(HALVINGS):
        y, y_low = multiply_pairs(y, y_low, y, y_low)
    power = 2.0**k
    return y * power, y_low * power


@jit
def add_rbf(X, Zt, gamma, beta, high, low):
    """Add sum_j beta_j exp(-gamma |x_i - z_j|²) to high + low, for every row of X; the z_j are the columns of Zt."""
    s, s_low = np.empty(beta.size), np.empty(beta.size)
    for i in range(X.shape[0]):
        s[:] = 0.0
        s_low[:] = 0.0
        for k in range(X.shape[1]):
            x, z = X[i, k], Zt[k]
            for j in range(z.size):
                difference, lost = two_sum(x, -z[j])
                s[j], s_low[j] = add_product(s[j], s_low[j], difference, difference)
                s_low[j] += 2.0 * difference * lost
        for j in range(beta.size):
            exponent, rest = multiply_pairs(-gamma, 0.0, s[j], s_low[j])
            value, value_low = exponential(exponent, rest)
            high[i], low[i] = add_product(high[i], low[i], value, beta[j])
            low[i] += value_low * beta[j]


@jit
def add_poly(X, Zt, gamma, coef0, degree, beta, high, low):
    """Add sum_j beta_j (gamma <x_i, z_j> + coef0)^degree to high + low, for every row of X; the z_j are the columns of Zt."""
    s, s_low = np.empty(beta.size), np.empty(beta.size)
    for i in range(X.shape[0]):
        s[:] = 0.0
        s_low[:] = 0.0
        for k in range(X.shape[1]):
            x, z = X[i, k], Zt[k]
            for j in range(z.size):
                s[j], s_low[j] = add_product(s[j], s_low[j], x, z[j])
        for j in range(beta.size):
            base, base_low = multiply_pairs(gamma, 0.0, s[j], s_low[j])
            base, base_low = add_pairs(coef0, 0.0, base, base_low)
            value, value_low = 1.0, 0.0
            for _ in range(degree):
                value, value_low = multiply_pairs(value, value_low, base, base_low)
            high[i], low[i] = add_product(high[i], low[i], value, beta[j])
            low[i] += value_low * beta[j]
