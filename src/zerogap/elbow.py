"""The bordered system of the free points: grow, shrink, solve.

    [ 0  1'   ] [ b ]   [ s ]
    [ 1  K_EE ] [ x ] = [ r ]

K_EE itself may be singular where the bordered matrix is not (a linear kernel with as many free points as dimensions and one
more), so we factor K_EE + tau 11', which the constraint 1'x = s turns into the same system: it is positive definite exactly
when no free point is an affine combination of the others in feature space.  A change of one point costs O(m²).
"""

import numpy as np

from zerogap.compiled import jit

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
        self._matrix = np.zeros((capacity, capacity))  # K_EE + tau, for refinement

    @property
    def points(self) -> np.ndarray:
        """The points, in the order of the system; a view."""
        return self._points[: self.size]

    def append(self, i: int) -> bool:
        """Add a point, unless it depends on those that are there; return whether it was added."""
        m = self.size
        if m == self._points.size:
            self._grow()
        column = self.K[i, self.points] + self.tau
        corner = self.K[i, i] + self.tau
        if not _append(self._factor, m, column, corner, DEPENDENT):
            return False
        self._matrix[m, :m] = self._matrix[:m, m] = column
        self._matrix[m, m] = corner
        self._points[m] = i
        self.size = m + 1
        return True

    def remove(self, position: int) -> None:
        """Take out the point at a position; those behind move up."""
        m = self.size
        _remove(self._factor, m, position)
        matrix = self._matrix
        matrix[position : m - 1, :m] = matrix[position + 1 : m, :m].copy()
        matrix[:m, position : m - 1] = matrix[:m, position + 1 : m].copy()
        self._points[position : m - 1] = self._points[position + 1 : m].copy()
        self.size = m - 1

    def solve(self, right: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for several right hand sides, the rows of ``right`` (k, m); return x (k, m) and b (k,)."""
        m = self.size
        work = np.empty((right.shape[0] + 1, m))
        work[:-1], work[-1] = right, 1.0
        solved = _solve(self._factor, m, work.copy())
        # One step of refinement: the factor has seen many updates, the matrix none.
        solved += _solve(self._factor, m, work - solved @ self._matrix[:m, :m])
        x, ones = solved[:-1], solved[-1]
        bias = (x.sum(axis=1) - totals) / ones.sum()
        return x - bias[:, None] * ones, bias + self.tau * totals

    def dependence(self, i: int) -> np.ndarray:
        """Return d with sum(d) = -1 and K_E d = -K_Ei: moving x_E by d and x_i by one changes no decision value."""
        d, _ = self.solve(-self.K[i, self.points][None], np.array([-1.0]))
        return d[0]

    def _grow(self) -> None:
        capacity = 2 * self._points.size
        self._points = np.resize(self._points, capacity)
        for name in ("_factor", "_matrix"):
            larger = np.zeros((capacity, capacity))
            larger[: self.size, : self.size] = getattr(self, name)[: self.size, : self.size]
            setattr(self, name, larger)


@jit
def _append(factor, m, column, corner, dependent):
    """Add the last row of the factor by forward substitution; refuse if nothing is left of its corner."""
    for i in range(m):
        column_i = column[i]
        for j in range(i):
            column_i -= factor[i, j] * factor[m, j]
        factor[m, i] = column_i / factor[i, i]
    rest = corner
    for j in range(m):
        rest -= factor[m, j] * factor[m, j]
    if rest <= dependent * corner:
        return False
    factor[m, m] = np.sqrt(rest)
    return True


@jit
def _remove(factor, m, position):
    """Drop a row of the factor and rotate the rest back to a triangle."""
    for i in range(position, m - 1):
        for j in range(i + 2):
            factor[i, j] = factor[i + 1, j]
    for k in range(position, m - 1):
        a, b = factor[k, k], factor[k, k + 1]
        r = np.hypot(a, b)
        c, s = a / r, b / r
        for i in range(k, m - 1):
            x, y = factor[i, k], factor[i, k + 1]
            factor[i, k] = c * x + s * y
            factor[i, k + 1] = c * y - s * x
    for j in range(m):
        factor[m - 1, j] = 0.0


@jit
def _solve(factor, m, right):
    """Solve with the factor and its transpose, row by row of ``right``, in place."""
    for r in range(right.shape[0]):
        x = right[r]
        for i in range(m):
            x[i] = (x[i] - np.dot(factor[i, :i], x[:i])) / factor[i, i]
        for i in range(m - 1, -1, -1):
            xi = x[i] / factor[i, i]
            x[i] = xi
            row = factor[i]
            for j in range(i):
                x[j] -= xi * row[j]
    return right
