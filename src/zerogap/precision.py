"""Sums in twice the working precision, as unevaluated pairs high + low (Dekker 1971; Ogita, Rump and Oishi 2005).

Where the terms of a sum cancel, float64 keeps few digits of it; such a pair keeps about 32.  What rounding takes from a product
is one instruction, a multiplication and a sum rounded once.  Loops run over points, not over coordinates: so they vectorise.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.compiled import fma, inline, jit

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
    """Return a b and what rounding took from it."""
    product = a * b
    return product, fma(a, b, -product)


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
def total(x, start):
    """Return start plus the sum of x, summed in twice the precision, as one number."""
    high, low = start, 0.0
    for k in range(x.size):
        high, rest = two_sum(high, x[k])
        low += rest
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


def with_sum_zero(
    x: np.ndarray,
    most: Any = np.inf,
    norm: Any = None,
    sum_sensitivity: float = 1.0,
    *,
    total: float = 0.0,
    rather: np.ndarray | None = None,
) -> np.ndarray:
    """Put what rounding left of sum(x), less ``total``, on one entry, which stays within -most to most; in place.

    The smaller that entry, the less is left.  But it must stay what it was: a small one may have a large factor.  With ``norm``
    a change of an entry counts so many times, and what is left of the sum ``sum_sensitivity`` times: the least total is taken.
    Entries marked in ``rather`` come first.
    """
    for _ in range(2):
        drift = math.fsum([*x.tolist(), -total])
        if drift == 0.0:
            break
        size = np.abs(x)
        room = np.where(x * drift > 0.0, size, np.minimum(size, most - size))
        hardly = np.flatnonzero(room > NEGLIGIBLE_FACTOR * abs(drift))
        if not hardly.size:
            break
        if rather is not None and rather[hardly].any():
            hardly = hardly[rather[hardly]]
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

LOWEST = -700.0  # exponents below it count as minus infinity
PER_LOG2, LOG2, LOG2_LOW = 1.4426950408889634, 0.6931471805599453, 2.3190468138462996e-17
ROUND = 1.5 * 2.0**52  # added and subtracted it rounds to a whole number, which is in the last bits of the sum
ONE, EXPONENT = 1023 << 52, 52  # the bits of 1.0, and how many are below the exponent
HALVINGS, TERMS = 6, 11  # exp(r / 2^6) by its series, |r| <= log(2)/2: the term left out is below 1e-33 of it
FACTORIALS = np.array([1.0 / math.factorial(m) for m in range(TERMS + 1)])  # 1 / m!, and what rounding took from it
FACTORIALS_LOW = np.array([
    float(Fraction(1, math.factorial(m)) - Fraction(1.0 / math.factorial(m))) for m in range(TERMS + 1)
])  # fmt: skip


@jit
def exponentials(x, x_low, y, y_low, sums, sum_bits):
    """Write exp(x + x_low) into y + y_low, of arrays (m,), for x <= 0; zero where it would be below the normal numbers.

    Term after term of the series for all of them: so it vectorises.
    """
    scale, c, c_low = 1.0 / (1 << HALVINGS), FACTORIALS[TERMS], FACTORIALS_LOW[TERMS]
    for j in range(x.size):
        is_in = x[j] > LOWEST
        bounded = x[j] if is_in else 0.0
        sums[j] = bounded * PER_LOG2 + ROUND
        k = sums[j] - ROUND
        product, lost = two_product(-k, LOG2)
        r, r_low = add_pairs(bounded, x_low[j] if is_in else 0.0, product, lost - k * LOG2_LOW)
        y[j], y_low[j] = c, c_low
        sum_bits[j] = (sum_bits[j] << EXPONENT) + ONE  # sums are 2^k now
        sums[j] = sums[j] if is_in else 0.0
        x[j], x_low[j] = r * scale, r_low * scale
    for m in range(TERMS - 1, -1, -1):
        c, c_low = FACTORIALS[m], FACTORIALS_LOW[m]
        for j in range(x.size):
            a, a_low = multiply_pairs(y[j], y_low[j], x[j], x_low[j])
            y[j], y_low[j] = add_pairs(c, c_low, a, a_low)
    for _ in range(HALVINGS):
        for j in range(x.size):
            y[j], y_low[j] = multiply_pairs(y[j], y_low[j], y[j], y_low[j])
    for j in range(x.size):
        y[j] *= sums[j]
        y_low[j] *= sums[j]


@jit
def add_rbf(X, Zt, gamma, beta, high, low):
    """Add sum_j beta_j exp(-gamma |x_i - z_j|²) to high + low, for every row of X; the z_j are the columns of Zt."""
    s, s_low, value, value_low, sums = (
        np.empty(beta.size),
        np.empty(beta.size),
        np.empty(beta.size),
        np.empty(beta.size),
        np.empty(beta.size),
    )
    sum_bits = sums.view(np.int64)
    for i in range(X.shape[0]):
        for j in range(beta.size):
            s[j], s_low[j] = 0.0, 0.0
        for k in range(X.shape[1]):
            x, z = X[i, k], Zt[k]
            for j in range(z.size):
                difference, lost = two_sum(x, -z[j])
                s[j], s_low[j] = add_product(s[j], s_low[j], difference, difference)
                s_low[j] += 2.0 * difference * lost
        for j in range(beta.size):
            s[j], s_low[j] = multiply_pairs(-gamma, 0.0, s[j], s_low[j])
        exponentials(s, s_low, value, value_low, sums, sum_bits)
        for j in range(beta.size):
            high[i], low[i] = add_product(high[i], low[i], value[j], beta[j])
            low[i] += value_low[j] * beta[j]


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
