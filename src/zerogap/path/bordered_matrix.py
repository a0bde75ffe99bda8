"""The bordered matrix A of the elbow (22), which may be singular: one solution d_p of A d = 1, and a basis of its null space.

    A = [ 0    y_E' ]      1 = [ 0 ]
        [ y_E  k_EE ]          [ 1 ]       k_ij = y_i y_j K_ij

Our bias enters with a plus, ong's with a minus: that turns the signs of the border, and nothing else.
Three ways (§III and §VII): "svd", the surest about the rank; "qr" with column pivoting (64), cheaper; "qr-update", which keeps
Q and R from event to event as long as A is known to be regular.
"""

from typing import NamedTuple

import numpy as np
import scipy.linalg as la

from zerogap.path.threaded import call_in_thread

# An updated factor is made anew when it leaves this much of A d = 1 unsolved.
WORN = 1e-8


class Directions(NamedTuple):
    """All solutions of A d = delta 1: d_p delta + null beta; the first entry is the bias."""

    particular: np.ndarray  # (m + 1,) d_p
    null: np.ndarray  # (m + 1, size of the null space)


class SVD:
    """Singular value decomposition from scratch, (25)-(27)."""

    def __init__(self, K: np.ndarray, y: np.ndarray, epsilon: float):
        self.K, self.y, self.epsilon = K, y, epsilon

    def directions(self, E: np.ndarray) -> Directions:
        """Return the solutions for the elbow E; the rank (26) is counted relative to the largest singular value."""
        U, sigma, Vt = call_in_thread(E.size, np.linalg.svd, self._matrix(E))  # SciPy's keeps Python's lock
        r = int((sigma >= self.epsilon * sigma.size * sigma[0]).sum())
        return Directions(Vt[:r].T @ ((U[:, :r].T @ _ones(E.size)) / sigma[:r]), Vt[r:].T)

    def _matrix(self, E: np.ndarray) -> np.ndarray:
        A = np.zeros((E.size + 1, E.size + 1))
        A[0, 1:] = A[1:, 0] = self.y[E]
        A[1:, 1:] = self.y[E, None] * self.y[E] * self.K[np.ix_(E, E)]
        return A


class QR(SVD):
    """QR decomposition with column pivoting (64) from scratch."""

    def directions(self, E: np.ndarray) -> Directions:
        """Return the solutions for the elbow E."""
        Q, R, order = call_in_thread(E.size, la.qr, self._matrix(E), pivoting=True)
        size = np.abs(np.diagonal(R))
        r = int((size >= self.epsilon * size.size * size[0]).sum())
        d = np.zeros(E.size + 1)
        d[order[:r]] = la.solve_triangular(R[:r, :r], Q[:, :r].T @ _ones(E.size))
        return Directions(d, Q[:, r:])  # A is symmetric: what its columns do not reach is what it maps to zero


class QRUpdate(QR):
    """QR decomposition kept up to date with the elbow in O(m²), and made anew when A is, or threatens to become, singular.

    A point that enters makes of A the matrix [[A, 0], [a', 1]] + u v' with v the last unit vector and u = (a, c - 1), whose
    determinant is that of A times s = 1 + v'[[A, 0], [a', 1]]^-1 u = c - a'A^-1 a: if s is nearly zero, so is it.
    """

    def __init__(self, K: np.ndarray, y: np.ndarray, epsilon: float):
        super().__init__(K, y, epsilon)
        self._points: list[int] = []
        self._factors: tuple[np.ndarray, np.ndarray] | None = None  # of A without pivoting, if A is regular

    def directions(self, E: np.ndarray) -> Directions:
        """Return the solutions for the elbow E: the last one asked for, less some points, with new ones at its end."""
        if self._factors is not None and self._follow(E.tolist()):
            Q, R = self._factors
            ones = _ones(E.size)
            d = la.solve_triangular(R, Q.T @ ones)
            if np.abs(self._matrix(E) @ d - ones).max() <= WORN:
                return Directions(d, np.zeros((E.size + 1, 0)))
        result = super().directions(E)
        self._points, self._factors = E.tolist(), None
        if result.null.shape[1] == 0:
            self._factors = call_in_thread(E.size, la.qr, self._matrix(E))
        return result

    def _follow(self, E: list[int]) -> bool:
        """Bring the factors from the last elbow to this one; False if that cannot be done safely."""
        staying = set(E)
        gone = [k for k, point in enumerate(self._points) if point not in staying]
        known = set(self._points)
        new = [point for point in E if point not in known]
        if 4 * (len(gone) + len(new)) > len(E):
            return False
        Q, R = self._factors  # type: ignore[misc]  # the caller has looked
        for k in reversed(gone):
            Q, R = la.qr_delete(Q, R, k + 1, which="row")
            Q, R = la.qr_delete(Q, R, k + 1, which="col")
            del self._points[k]
        for point in new:
            a = np.concatenate([[self.y[point]], self.y[point] * self.y[self._points] * self.K[point, self._points]])
            c = self.K[point, point]
            used = a @ la.solve_triangular(R, Q.T @ a)
            if not abs(c - used) > 1e-8 * (abs(c) + abs(used)):  # the indicator s; also when A itself is singular
                return False
            Q, R = la.qr_insert(Q, R, a, a.size, which="row")
            Q, R = la.qr_insert(Q, R, np.append(a, c), a.size, which="col")
            self._points.append(point)
        self._factors = Q, R
        return self._points == E


def _ones(m: int) -> np.ndarray:
    return np.concatenate([[0.0], np.ones(m)])


LINEAR_SYSTEMS = {"svd": SVD, "qr": QR, "qr-update": QRUpdate}
