"""The bordered system of the free points: grow, shrink, solve.

    [ 0  1'   ] [ b ]   [ s ]
    [ 1  K_EE ] [ x ] = [ r ]

K_EE itself may be singular where the bordered matrix is not (a linear kernel with as many free points as dimensions and one
more), so we factor K_EE + tau 11', which the constraint 1'x = s turns into the same system: it is positive definite exactly
when no free point is an affine combination of the others in feature space.  A change of one point costs O(m²).
"""

import numpy as np

from zerogap.compiled import jit, jit_sums

# A point whose distance from the affine hull of the others is, squared and relative, below this counts as lying in it.
DEPENDENT = 1e-13


class ElbowSystem:
    """Cholesky factor of K_EE + tau 11' for an ordered set of points E."""

    def __init__(self, K: np.ndarray, capacity: int = 32):
        self.K = K
        self.tau = float(np.diagonal(K).mean()) or 1.0
        self.size = 0
        self._points = np.zeros(capacity, dtype=np.int64)
        self._factor = np.zeros((capacity, capacity))  # lower triangle
        self._ones: np.ndarray | None = None  # solution for a right hand side of ones

    @property
    def points(self) -> np.ndarray:
        """The points, in the order of the system; a view."""
        return self._points[: self.size]

    def append(self, i: int) -> bool:
        """Add a point, unless it depends on those that are there; return whether it was added."""
        m = self.size
        if m == self._points.size:
            self._grow()
        if not _append(self._factor, m, self.K[i, self.points] + self.tau, self.K[i, i] + self.tau, DEPENDENT):
            return False
        self._points[m] = i
        self.size, self._ones = m + 1, None
        return True

    def remove(self, position: int) -> None:
        """Take out the point at a position; those behind move up."""
        _remove(self._factor, self.size, position)
        self._points[position : self.size - 1] = self._points[position + 1 : self.size].copy()
        self.size, self._ones = self.size - 1, None

    def solve(self, right: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for two right hand sides, the rows of ``right`` (2, m); return x (2, m) and b (2,).

        The factor has seen many updates: call it a second time with what the solution leaves over, for refinement.
        """
        x = _solve_two(self._factor, self.size, right.copy())
        if self._ones is None:
            self._ones = _solve_two(self._factor, self.size, np.ones((2, self.size)))[0]
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
