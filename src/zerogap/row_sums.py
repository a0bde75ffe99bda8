"""Combinations of the rows of a matrix, compiled.

Rows are combined four at a time, so that the sum is read and written once for the four, and in stretches of the sum that stay
in the fastest cache.
"""

from zerogap.compiled import inline

COLUMN_BLOCK = 1024


@inline
def combine(K, E, x, begin, out):
    """Add x'K[E, begin:] to a stretch of a sum; E may be longer than x."""
    end, whole = begin + out.size, x.size - x.size % 4
    for k in range(0, whole, 4):
        r0, r1, r2, r3 = K[E[k], begin:end], K[E[k + 1], begin:end], K[E[k + 2], begin:end], K[E[k + 3], begin:end]
        x0, x1, x2, x3 = x[k], x[k + 1], x[k + 2], x[k + 3]
        for i in range(out.size):
            out[i] += (x0 * r0[i] + x1 * r1[i]) + (x2 * r2[i] + x3 * r3[i])
    for k in range(whole, x.size):
        row, a = K[E[k], begin:end], x[k]
        for i in range(out.size):
            out[i] += a * row[i]
