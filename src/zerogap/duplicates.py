"""Merging of exact duplicates: rows that agree in every feature and in the target become one weighted point.

The order of the distinct points depends on their values alone.  The problem to solve is therefore the same, bit for bit,
whatever the order of the rows, and whether a point comes twice or has weight two.
"""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap.compiled import inline, jit
from zerogap.precision import two_product, two_sum

# Constants of the hash, in its own type: Numba makes a float of a uint64 and an int.
ZERO, SIGN, HALF, SCATTER = np.uint64(0), np.uint64(1 << 63), np.uint64(33), np.uint64(0xFF51AFD7ED558CCD)


class Distinct(NamedTuple):
    """The distinct points of a data set, and where they came from."""

    rows: np.ndarray  # (m,) a row of the data for each distinct point
    group: np.ndarray  # (n,) the distinct point of each row, -1 for rows of weight zero
    weight: np.ndarray  # (m,) summed weights
    share: np.ndarray  # (n,) part of its point's weight that each row brings

    def spread(self, beta: np.ndarray, scale: float = 0.0) -> np.ndarray:
        """Return coefficients over the rows from those over the points, or several such: duplicates share theirs by weight.

        What the rows of a point have is, summed exactly, what the point has, as far as that is possible: none has more than its
        share or ``scale`` times its weight, whichever is larger, by more than a unit in the last place.  The larger share comes
        first, so that what rounding leaves is as small as the smallest.
        """
        kept = np.flatnonzero(self.group >= 0)
        if kept.size == self.rows.size:
            parts, used = np.zeros((*beta.shape[:-1], self.group.size)), np.nonzero(beta)
            parts[(*used[:-1], self.rows[used[-1]])] = beta[used]
            return parts
        if beta.ndim == 2:
            return np.array([self.spread(row, scale) for row in beta])
        kept = kept[beta[self.group[kept]] != 0.0]
        rows = kept[np.lexsort((-self.share[kept], self.group[kept]))]
        return _shared(beta, rows, self.group, self.share, np.maximum(scale * self.weight, np.abs(beta)))

    def on_few(self, beta: np.ndarray, caps: np.ndarray) -> np.ndarray:
        """Return coefficients over the rows, or several such, those of a point on as few of its rows as their caps (n,) allow.

        With a box, any split of a coefficient is as good as another, and every support vector costs time in predictions.  A
        point that is at its own cap has all its rows at theirs.
        """
        kept = np.flatnonzero(self.group >= 0)
        if kept.size == self.rows.size:
            return self.spread(beta)
        if beta.ndim == 2:
            return np.array([self.on_few(row, caps) for row in beta])
        rows = kept[np.lexsort((-self.share[kept], self.group[kept]))]
        room = np.bincount(self.group[kept], weights=caps[kept], minlength=beta.size)
        is_capped = np.abs(beta) >= room * (1.0 - 1e-12)  # shares are exact there, and differences of caps are not
        parts = self.spread(np.where(is_capped, beta, 0.0))
        _fill_up(np.where(is_capped, 0.0, beta), rows, self.group, caps, parts)
        return parts

    def gather(self, beta: np.ndarray) -> np.ndarray:
        """Return coefficients over the points from those over the rows."""
        kept = self.group >= 0
        return np.bincount(self.group[kept], weights=beta[kept], minlength=self.rows.size)


def distinct(X: Any, y: np.ndarray, weight: np.ndarray, *, merge: bool = True) -> Distinct:
    """Find the distinct points among rows of positive weight; without ``merge`` every such row is one."""
    kept = np.flatnonzero(weight > 0)
    if not merge:
        group = np.full(y.size, -1)
        group[kept] = np.arange(kept.size)
        return Distinct(kept, group, weight[kept], np.where(weight > 0, 1.0, 0.0))
    some, target = (X, y) if kept.size == y.size else (X[kept], y[kept])
    for seed in range(8):
        keys = _hash(some, target, seed)
        first, member = _groups(keys)
        if _are_equal(X, y, kept, kept[first[member]]):
            break
    else:  # eight seeds cannot all collide on honest data
        return distinct(X, y, weight, merge=False)
    total = _sums(weight[kept], member, first.size)
    group, share = np.full(y.size, -1), np.zeros(y.size)
    group[kept] = member
    share[kept] = weight[kept] / total[member]
    return Distinct(kept[first], group, total, share)


def _groups(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first place of every key, in the order of the keys, and for each place which of them is there."""
    order = np.argsort(keys)  # equal ones in any order: that is faster, and the first is found below
    ordered = keys[order]
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    member = np.empty(keys.size, dtype=np.int64)
    member[order] = np.cumsum(is_new) - 1
    return np.minimum.reduceat(order, np.flatnonzero(is_new)), member


@jit
def _shared(beta, rows, group, share, most):
    """Return beta of the rows, which are sorted by their points: what rounding takes from one is given to the next."""
    parts, total, rest = np.zeros(group.size), np.zeros(beta.size), np.zeros(beta.size)
    for row in rows:
        g = group[row]
        total[g], lost = two_sum(total[g], share[row])
        rest[g] += lost
    last, carry = -1, 0.0
    for row in rows:
        g = group[row]
        if g != last:
            last, carry = g, 0.0
        part, lost = two_product(beta[g], share[row])
        if not np.isfinite(lost):  # beyond float64
            lost = 0.0
        missing = part * ((1.0 - total[g]) - rest[g])  # shares are rounded too: they need not sum to one
        part, carry = two_sum(part, carry + (lost + missing))
        limit = share[row] * most[g] * (1.0 + 2.0**-52)
        if abs(part) > limit:
            carry += part - np.copysign(limit, part)
            part = np.copysign(limit, part)
        parts[row] = part
    return parts


@jit
def _fill_up(beta, rows, group, caps, parts):
    """Give the rows of each point, which follow each other, as much of its coefficient as they take."""
    last, left = -1, 0.0
    for row in rows:
        g = group[row]
        if g != last:
            last, left = g, beta[g]
        if left != 0.0:
            parts[row] = np.copysign(min(abs(left), caps[row]), left)
            left -= parts[row]


def _sums(weight: np.ndarray, member: np.ndarray, count: int) -> np.ndarray:
    """Return the sum of the weights of each point's rows, rounded once: whatever the rows' order, and k times w is k w."""
    total = np.bincount(member, weights=weight, minlength=count)
    if (weight == np.floor(weight)).all() and total.sum() < 2**53:
        return total  # exact
    several = np.flatnonzero(np.bincount(member, minlength=count) > 1)
    order = np.argsort(member, kind="stable")
    edges = np.searchsorted(member[order], [several, several + 1])
    for k, start, stop in zip(several, *edges, strict=True):
        total[k] = math.fsum(weight[order[start:stop]])
    return total


def _hash(X: Any, y: np.ndarray, seed: int) -> np.ndarray:
    """Return 64 bits for each (row, target); exact integer arithmetic, so equal rows give equal bits, dense or sparse."""
    factors = _factors(X.shape[1] + 1, seed)
    keys = np.zeros(y.size, dtype=np.uint64)
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # what the caller has stays as it is
        X.sum_duplicates()
    with np.errstate(over="ignore"):  # what does not fit into 64 bits is not wanted
        if sp.issparse(X):
            _add_hash_sparse(_bits(X.data), X.indices, X.indptr, factors, keys)
        else:
            _add_hash(_bits(X), factors, keys)
        _add_hash(_bits(y[:, None]), factors[-1:], keys)
    return keys


@lru_cache(maxsize=16)
def _factors(count: int, seed: int) -> np.ndarray:
    """Return odd numbers of 64 bits."""
    odd = np.random.default_rng(seed).integers(1, 2**63, size=count, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    odd.flags.writeable = False
    return odd


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values).view(np.uint64)


@jit
def _add_hash(bits, factors, keys):
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            keys[i] += _mix(bits[i, j]) * factors[j]


@jit
def _add_hash_sparse(bits, indices, edges, factors, keys):
    for i in range(keys.size):
        for m in range(edges[i], edges[i + 1]):
            keys[i] += _mix(bits[m]) * factors[indices[m]]


@inline
def _mix(bits):
    """Scatter the bits of a float over 64 bits; zero, of either sign, stays zero."""
    if bits == SIGN:
        return ZERO
    bits ^= bits >> HALF
    bits *= SCATTER
    return bits ^ (bits >> HALF)


def _are_equal(X: Any, y: np.ndarray, rows: np.ndarray, others: np.ndarray) -> bool:
    """Whether each row equals the one it was taken for."""
    differ = rows != others
    a, b = rows[differ], others[differ]
    if not np.array_equal(y[a], y[b]):
        return False
    return (X[a] != X[b]).nnz == 0 if sp.issparse(X) else np.array_equal(X[a], X[b])
