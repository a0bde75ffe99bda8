"""The largest duality gap on the straight line between the solutions at two lam, in closed form, rounding counted.

Symbols: as in ``engine`` and ``proof``; a = y b, h = lam - y F, and t runs from 0 at the first solution to 1 at the second.
Between them b, the bias and with them F = K b + bias are linear in lam, so that

    lam² gap  = sum_i max((w_i - a_i) h_i, -a_i h_i) + |bias| |sum(b)|          lam² dual = lam sum(a) - b'K b / 2

with each term one of two quadratic functions of lam, which switch where h_i = 0: at most once.  b'K b is known from K b at both
ends, so no kernel value is needed.  ``proof._maximum`` sorts the switches and finds the largest gap / dual on every piece.

Rounding.  K b is off by at most ``error`` at each end, and by no more than the mean of both in between.  A term is convex in h,
so that with h off by at most r it is at most max((w - a)(h + r), a (r - h)) <= a (r - h) + w max(0, h + r).  Points of which
the sign of h is certain at both ends, nearly all of them, have one of the two for good: those at the bound that this sign asks
for add nothing at all.  What rounding can do to coefficients as they are read, and to the sums made here, comes on top.
"""

from typing import NamedTuple

import numpy as np

from zerogap.kernels import UNIT
from zerogap.path.proof import Shares, _maximum
from zerogap.precision import total

READ = 16.0 * UNIT  # of a coefficient or a bias, between what is kept of it and what is read of it at some C
SURE = (
    1.0 + 1e-9
)  # more than rounding does to the largest of some ratios, once their numerators and denominators are known


class Anchor(NamedTuple):
    """A solution that a straight line begins or ends at, in the scale of b = lam beta."""

    lam: float
    b: np.ndarray  # (n,) in the box
    bias: float
    product: np.ndarray  # (n,) K b
    slack: np.ndarray  # (n,) lam y - K b - bias: y h
    error: np.ndarray  # (n,) how far product and slack can be off
    gap: float  # the relative gap that is proved of it alone


class Points(NamedTuple):
    """What a proof has to know of the points."""

    y: np.ndarray  # (n,) -1 or 1
    w: np.ndarray  # (n,) the largest y b
    norm: np.ndarray  # (n,) at least |phi(x)|


class _Line(NamedTuple):
    """The same of all points at both ends, (2, n) each."""

    a: np.ndarray
    h: np.ndarray
    r: np.ndarray  # how far h can be off
    F: np.ndarray  # K b


def largest_ratio(first: Anchor, last: Anchor, points: Points) -> tuple[float, float]:
    """Return the largest gap / dual between two solutions, and a lam that has it."""
    ends = (first, last)
    line = _line(ends, points)
    numerator, h, weight = _gap(ends, line, points)
    shares = Shares(numerator[None], _dual(ends, line)[None], np.empty(0), h[0][None], h[1][None], weight)
    ratio, z = _maximum(shares, 0)
    lam = last.lam if np.isinf(z) else (first.lam + last.lam * z) / (1.0 + z)
    return SURE * ratio, float(lam)


def _line(ends: tuple[Anchor, Anchor], points: Points) -> _Line:
    b = np.stack([end.b for end in ends])
    # By how much all coefficients together can be off where they are read, and what is left of their sum with them.
    moved = READ * float(np.abs(b).max(axis=0).sum()) * float(points.norm.max()) * points.norm
    r = [end.error + moved + READ * (np.abs(end.slack) + np.abs(end.product) + abs(end.bias) + end.lam) for end in ends]
    return _Line(points.y * b, points.y * np.stack([end.slack for end in ends]), np.stack(r), _stack(ends))


def _stack(ends: tuple[Anchor, Anchor]) -> np.ndarray:
    return np.stack([end.product for end in ends])


def _gap(ends: tuple[Anchor, Anchor], line: _Line, points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lam² gap as N + sum of weight max(0, h): N, and h at both ends and weights of the points that may switch."""
    a, h, r, _ = line
    w = points.w
    is_in, is_out = (h > r).all(axis=0), (h < -r).all(axis=0)
    switching = ~(is_in | is_out)
    N, size = np.zeros(3), np.zeros(3)
    for some, left, right in (
        (is_in, (w - a)[:, is_in], (h + r)[:, is_in]),
        (~is_in, a[:, ~is_in], (r - h)[:, ~is_in]),
    ):
        if some.any():
            terms = _products(left, right)
            N += terms.sum(axis=1)
            size += np.abs(terms).sum(axis=1)
    above, weight = (h + r)[:, switching], w[switching]
    size += (weight * np.abs(above)).sum(axis=1).max()
    # Coefficients as they are read, each off by a little, cost that much of h; and so do sums that are not zero.
    moved = READ * float(a.max(axis=0).sum())
    sums = np.array([abs(total(end.b, 0.0)) for end in ends]) + moved
    bias = np.abs([end.bias for end in ends])
    N += _products(bias[:, None], sums[:, None])[:, 0] + moved * float(np.abs(h).max())
    return N + 2.0 * (w.size + 8.0) * UNIT * (size + N), above, weight


def _dual(ends: tuple[Anchor, Anchor], line: _Line) -> np.ndarray:
    """Return lam² dual, no larger than it can be."""
    a, _, _, F = line
    b, lam = np.stack([end.b for end in ends]), np.array([end.lam for end in ends])
    error = np.stack([end.error for end in ends])
    terms, off = _products(b, F), _products(np.abs(b), error).sum(axis=1)
    gain = _products(lam[:, None], a.sum(axis=1)[:, None])[:, 0]
    bias = np.abs([end.bias for end in ends])
    moved = READ * float(a.max(axis=0).sum()) * (lam.max() + float(np.abs(F).max()) + 2.0 * bias.max())
    sums = np.array([abs(total(end.b, 0.0)) for end in ends])
    loose = 2.0 * _products(bias[:, None], sums[:, None])[:, 0]  # primal - dual is the gap less bias sum(b)
    rounding = 2.0 * (b.shape[1] + 8.0) * UNIT * (np.abs(terms).sum(axis=1) + gain)
    return gain - 0.5 * terms.sum(axis=1) - 0.5 * off - moved - loose - rounding


def _products(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the three coefficients (3, n) of the products of linear functions known at both ends, (2, n) each."""
    return np.stack([x[0] * y[0], 0.5 * (x[0] * y[1] + x[1] * y[0]), x[1] * y[1]])
