"""The equations of Newton's method in w, brought up to date as points come onto their stretch and leave it.

Symbols: X, the points; r, residuals; response_i, the coefficient that answers to r_i, rising by r_i / slope_i on its stretch;
J, the points on their stretch.

    w = X' response(r),    derivative  I + X_J' diag(1 / slope_J) X_J

From one step to the next few points move from a bound to another or change sides of an end of their stretch: only their part of
X' response and of the derivative is computed anew.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsymv, dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs

from zerogap import limits, threads
from zerogap.compiled import inline, jit

MOSTLY_ZERO = 0.25  # share of entries that are not zero, below which products are summed entry by entry
GATHERED = 4_000_000  # features of points that are gathered at a time
MANY = 0.25  # of all points: where more have moved, all are summed anew


class System:
    """X' response and the derivative at a point, for boxes and slopes that stay."""

    def __init__(self, X: Any, slope: np.ndarray, has_bias: bool):
        n, d = X.shape
        self.X = X if not sp.issparse(X) or X.has_sorted_indices else X.sorted_indices()
        self.slope, self.has_bias = slope, has_bias
        self.response, self.inside = np.zeros(n), np.zeros(n, dtype=np.bool_)
        self.product, size = np.zeros(d), d + has_bias  # X' response
        self.H = np.zeros(
            (size, size), order="F"
        )  # upper triangle of the sum over J of x x' / slope, a one behind each x
        self.is_known = True  # both go with the response
        self._lists = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n, dtype=np.int64)

    def __deepcopy__(self, memo: dict[int, object]) -> "System":
        copied = System.__new__(System)
        copied.__dict__.update(self.__dict__)
        for name in ("response", "inside", "product", "H"):
            setattr(copied, name, getattr(self, name).copy())
        copied._lists = tuple(one.copy() for one in self._lists)  # type: ignore[assignment]
        return copied

    def respond(self, z: np.ndarray, lower: np.ndarray, upper: np.ndarray, eps: float) -> int:
        """Let every coefficient answer to z; return how many points have come onto their stretch or left it."""
        moved, delta, switched = self._lists
        was_known, self.is_known = self.is_known, False  # a limit may cut the following short
        m, s = _respond(z, lower, upper, self.slope, eps, self.response, self.inside, *self._lists)
        if not was_known or m > MANY * z.size:
            with threads.alone(self.X.shape[0] * self.X.shape[1]):
                self.product = self.X.T @ self.response
        else:
            self._move(moved[:m], delta[:m])
        if not was_known or 2 * s > np.count_nonzero(self.inside):
            self.renew()
        else:
            points = switched[:s]
            self._add(points[self.inside[points]], 1.0)
            self._add(points[~self.inside[points]], -1.0)
        self.is_known = True
        return s

    def answer(self, z: np.ndarray, lower: np.ndarray, upper: np.ndarray, eps: float) -> np.ndarray:
        """Return what every coefficient answers to z, whose stretch is then known, too; the equations stay behind."""
        self.is_known = False
        _respond(z, lower, upper, self.slope, eps, self.response, self.inside, *self._lists)
        return self.response.copy()

    def renew(self) -> None:
        """Sum the derivative anew: what was added and taken off again has left its rounding."""
        self.H[:] = 0.0
        self._add(np.flatnonzero(self.inside), 1.0)

    def gradient(self, w: np.ndarray, total: float | None) -> np.ndarray:
        """Return w - X' response, and behind it, if there is a bias, by how much the responses sum to less than they should."""
        g = w - self.product
        return g if total is None else np.append(g, total - self.response.sum())

    def curvature(self, g: np.ndarray) -> float:
        """Return g' H g, H being the derivative."""
        d = self.product.size
        return float(g @ dsymv(1.0, self.H, g)) + float(g[:d] @ g[:d])

    def step(self, gradient: np.ndarray) -> np.ndarray | None:
        """Return the Newton step for w and b, a bias of zero staying so; None if float64 does not have it."""
        d, size = self.product.size, len(self.H)
        diagonal = np.arange(size)
        for more in (0.0, 0.0, 1e-12):
            H = self.H.copy(order="F")
            H[diagonal[:d], diagonal[:d]] += 1.0
            if self.has_bias and not self.inside.any():  # no point responds to the bias
                H[d, d] = 1.0 / self.slope[self.slope > 0.0].mean()
            H[diagonal, diagonal] *= 1.0 + more
            factor, info = dpotrf(H, clean=0, overwrite_a=1)
            if info == 0:
                step, _ = dpotrs(factor, -gradient)
                return np.append(step, np.zeros(d + 1 - size)) if np.isfinite(step).all() else None
            self.renew()
        return None

    def _move(self, points: np.ndarray, delta: np.ndarray) -> None:
        """Add what the coefficients of some points have changed by to X' response."""
        X = self.X
        if sp.issparse(X):
            _add_rows(X.data, _unsigned(X.indices), X.indptr, points, delta, self.product)
        else:
            with threads.alone(points.size * X.shape[1]):
                self.product += delta @ X[points]

    def _add(self, points: np.ndarray, times: float) -> None:
        """Add x x' / slope of some points, so many times."""
        X, size = self.X, len(self.H)
        if (
            sp.issparse(X) and X.nnz < MOSTLY_ZERO * X.shape[0] * X.shape[1]
        ):  # entry by entry is less work than with all zeros
            weights = times / self.slope[points]
            _add_products(X.data, _unsigned(X.indices), X.indptr, points, weights, self.has_bias, self.H.T)
            return
        at_once = max(GATHERED // size, 1)
        for start in range(0, points.size, at_once):
            limits.check()
            some = points[start : start + at_once]
            rows = np.ones((some.size, size))
            rows[:, : X.shape[1]] = X[some].toarray() if sp.issparse(X) else X[some]
            rows *= (1.0 / np.sqrt(self.slope[some]))[:, None]
            with threads.alone(rows.size * size):
                self.H = dsyrk(times, rows.T, beta=1.0, c=self.H, overwrite_c=1)


def _unsigned(indices: np.ndarray) -> np.ndarray:
    """Return indices of which compiled code need not ask whether they count from the end."""
    return indices.astype(np.int32, copy=False).view(np.uint32)


@jit
def _add_rows(data, indices, edges, points, factors, out):
    """Add multiples of some sparse points to a vector."""
    for p in range(points.size):
        for m in range(edges[points[p]], edges[points[p] + 1]):
            out[indices[m]] += factors[p] * data[m]


@jit
def _add_products(data, indices, edges, points, weights, has_bias, H):
    """Add weight x x' of some sparse points to the lower triangle of H; with a bias each x has a one behind it.

    Indices are sorted, and unsigned: then nothing has to be asked of them.  Four rows of H at a time: a pass along x is short,
    and to begin one takes longer than a step of it.
    """
    x, at = (
        np.empty(H.shape[0]),
        np.empty(H.shape[0], dtype=np.uint32),
    )  # local ones: nothing that is written to is these
    for p in range(points.size):
        own, first = weights[p], edges[points[p]]
        count = edges[points[p] + 1] - first
        for m in range(count):
            x[m], at[m] = data[first + m], indices[first + m]
        if has_bias:
            x[count], at[count] = 1.0, np.uint32(H.shape[0] - 1)
            count += 1
        m = 0
        while m + 3 < count:
            _add_to_four(H[at[m]], H[at[m + 1]], H[at[m + 2]], H[at[m + 3]], own, x, at, m)
            m += 4
        while m < count:
            _add_to_one(H[at[m]], own * x[m], x, at, m + 1)
            m += 1


@inline
def _add_to_four(first, second, third, fourth, own, x, at, m):
    """Add to four rows of H that follow each other in x, each up to its own entry."""
    a, b, c, d = own * x[m], own * x[m + 1], own * x[m + 2], own * x[m + 3]
    for k in range(m + 1):
        j, value = at[k], x[k]
        first[j] += a * value
        second[j] += b * value
        third[j] += c * value
        fourth[j] += d * value
    second[at[m + 1]] += b * x[m + 1]
    third[at[m + 1]] += c * x[m + 1]
    third[at[m + 2]] += c * x[m + 2]
    fourth[at[m + 1]] += d * x[m + 1]
    fourth[at[m + 2]] += d * x[m + 2]
    fourth[at[m + 3]] += d * x[m + 3]


@inline
def _add_to_one(row, a, x, at, count):
    """Add to a row of H."""
    for k in range(count):
        row[at[k]] += a * x[k]


@inline
def response(z, lower, upper, slope, eps):
    """Return the coefficient that answers to a residual, the centre's part added, and whether it is on its stretch."""
    shrunk = z - eps if z > eps else min(z + eps, 0.0)
    if slope == 0.0:  # an empty box
        return 0.0, False
    value = shrunk / slope
    if value <= lower:
        return lower, False
    if value >= upper:
        return upper, False
    return value, eps == 0.0 or shrunk != 0.0


@jit
def _respond(z, lower, upper, slope, eps, responses, inside, moved, delta, switched):
    """Write what every coefficient answers; list those that move, by how much, and the points that come onto their stretch or
    leave it; return how many of both there are."""
    m, s = 0, 0
    for i in range(z.size):
        value, is_inside = response(z[i], lower[i], upper[i], slope[i], eps)
        change = value - responses[i]
        if change != 0.0:
            moved[m], delta[m], responses[i] = i, change, value
            m += 1
        if is_inside != inside[i]:
            switched[s], inside[i] = i, is_inside
            s += 1
    return m, s
