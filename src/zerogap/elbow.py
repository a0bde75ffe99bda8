"""The bordered system of the free points: grow, shrink, solve.

    [ 0  1'   ] [ b ]   [ s ]
    [ 1  K_EE ] [ x ] = [ r ]

K_EE itself may be singular where the bordered matrix is not (a linear kernel with as many free points as dimensions and one
more), so we factor K_EE + tau 11', which the constraint 1'x = s turns into the same system: it is positive definite exactly
when no free point is an affine combination of the others in feature space.  A change of one point costs O(m²).
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import jit, jit_sums

# The solution for a right hand side of ones is carried along with the points, and made anew after so many changes.
REFRESH_EVERY = 50

# A point whose distance from the affine hull of the others is, squared and relative, below this counts as lying in it.
DEPENDENT = 1e-13


class Response(NamedTuple):
    """How the others answer when x_i rises by one: x_E by d and b by d0 keep the rest of the system solved."""

    d: np.ndarray
    d0: float


class ElbowSystem:
    """Cholesky factor of K_EE + tau 11' for an ordered set of points E."""

    def __init__(self, K: np.ndarray, capacity: int = 32):
        self.K = K
        self.tau = float(np.diagonal(K).mean()) or 1.0
        self.size = 0
        self._points = np.zeros(capacity, dtype=np.int64)
        self._factor = np.zeros((capacity, capacity))  # lower triangle
        self._ones = np.zeros(0)  # solution for a right hand side of ones
        self._changes = 0

    @property
    def points(self) -> np.ndarray:
        """The points, in the order of the system; a view."""
        return self._points[: self.size]

    def append(self, i: int) -> Response | None:
        """Add a point and return how the others answer to it; None, and no change, if it depends on them."""
        m = self.size
        if m == self._points.size:
            self._grow()
        column = self.K[i, self.points] + self.tau
        if not _append(self._factor, m, column, self.K[i, i] + self.tau, DEPENDENT):
            return None
        z = _back(self._factor, m, self._factor[m, :m].copy())
        response = self._response(z)
        share = (1.0 - column @ self._ones) / self._factor[m, m] ** 2
        self._ones = np.append(self._ones - share * z, share)
        self._points[m] = i
        self._resize(m + 1)
        return response

    def remove(self, position: int) -> Response:
        """Take out the point at a position, those behind move up; return how they answer to it."""
        m, i = self.size, self._points[position]
        _remove(self._factor, m, position)
        self._points[position : m - 1] = self._points[position + 1 : m].copy()
        share = self._ones[position]
        self._ones = np.delete(self._ones, position)
        z = self.K[i, self._points[: m - 1]] + self.tau
        z = _back(self._factor, m - 1, _forward(self._factor, m - 1, z))
        self._ones += share * z
        response = self._response(z)
        self._resize(m - 1)
        return response

    def _response(self, z: np.ndarray) -> Response:
        """From z = (K_EE + tau 11')^-1 (K_Ei + tau): d = -z + c ones with sum(d) = -1, and d0 = -c."""
        if not z.size:
            return Response(z, -np.inf)
        c = (z.sum() - 1.0) / self._ones.sum()
        return Response(c * self._ones - z, -float(c))

    def _resize(self, size: int) -> None:
        self.size = size
        self._changes += 1
        if self._changes % REFRESH_EVERY == 0:
            self._ones = _back(self._factor, size, _forward(self._factor, size, np.ones(size)))

    def solve(self, right: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for two right hand sides, the rows of ``right`` (2, m); return x (2, m) and b (2,).

        The factor has seen many updates: call it a second time with what the solution leaves over, for refinement.
        """
        x = _solve_two(self._factor, self.size, right.copy())
        bias = (x.sum(axis=1) - totals) / self._ones.sum()
        return x - bias[:, None] * self._ones, bias + self.tau * totals

    def dependence(self, i: int) -> np.ndarray:
        """Return d with sum(d) = -1 and K_E d = -K_Ei: moving x_E by d and x_i by one changes no decision value."""
        E = self.points
        right, totals = np.zeros((2, self.size)), np.array([-1.0, 0.0])
        right[0] = -self.K[i, E]
        x, bias = self.solve(right, totals)
        correction, _ = self.solve(right - x @ self.K[np.ix_(E, E)] - bias[:, None], totals - x.sum(axis=1))
        return (x + correction)[0]

    def _grow(self) -> None:
        capacity = 2 * self._points.size
        self._points = np.resize(self._points, capacity)
        larger = np.zeros((capacity, capacity))
        larger[: self.size, : self.size] = self._factor[: self.size, : self.size]
        self._factor = larger


@jit_sums
def _append(factor, m, column, corner, dependent):
    """Add the last row of the factor by forward substitution; refuse if nothing is left of its corner."""
    new = factor[m, :m]
    for i in range(m):
        row = factor[i, :i]
        known = 0.0
        for j in range(row.size):
            known += row[j] * new[j]
        new[i] = (column[i] - known) / factor[i, i]
    used = 0.0
    for j in range(m):
        used += new[j] * new[j]
    if corner - used <= dependent * corner:
        return False
    factor[m, m] = np.sqrt(corner - used)
    return True


@jit_sums
def _forward(factor, m, x):
    """Solve with the factor, in place."""
    for i in range(m):
        row = factor[i, :i]
        s = 0.0
        for j in range(row.size):
            s += row[j] * x[j]
        x[i] = (x[i] - s) / factor[i, i]
    return x


@jit_sums
def _back(factor, m, x):
    """Solve with the factor's transpose, in place."""
    for i in range(m - 1, -1, -1):
        row, s = factor[i, :i], x[i] / factor[i, i]
        x[i] = s
        for j in range(row.size):
            x[j] -= s * row[j]
    return x


@jit
def _remove(factor, m, position):
    """Drop a row of the factor and rotate the rest, row after row, back to a triangle."""
    cosines, sines = np.empty(m), np.empty(m)
    for i in range(position, m - 1):
        row, old = factor[i], factor[i + 1]
        for j in range(position):
            row[j] = old[j]
        carried = old[position]
        for k in range(position, i):
            x, y = carried, old[k + 1]
            row[k] = cosines[k] * x + sines[k] * y
            carried = cosines[k] * y - sines[k] * x
        length = np.hypot(carried, old[i + 1])
        cosines[i], sines[i] = carried / length, old[i + 1] / length
        row[i] = length


@jit_sums
def _solve_two(factor, m, right):
    """Solve with the factor and its transpose for both rows of ``right``, in place."""
    x, y = right[0], right[1]
    for i in range(m):
        row, a, b = factor[i, :i], x[:i], y[:i]
        s, t = 0.0, 0.0
        for j in range(row.size):
            s += row[j] * a[j]
            t += row[j] * b[j]
        x[i] = (x[i] - s) / factor[i, i]
        y[i] = (y[i] - t) / factor[i, i]
    for i in range(m - 1, -1, -1):
        row, a, b = factor[i, :i], x[:i], y[:i]
        s, t = x[i] / factor[i, i], y[i] / factor[i, i]
        x[i], y[i] = s, t
        for j in range(row.size):
            a[j] -= s * row[j]
            b[j] -= t * row[j]
    return right
