"""All solutions at one C: where points on the margin depend on each other the dual has many, a polytope; (50)-(52) of ong.

Two solutions have the same decision function, so they differ by a direction U beta along which no decision value moves.  Only
points on their margins can take part: 0 <= alpha + U beta <= cap for them (31); (32)-(33) then hold by themselves.  By Theorem
(i) of ong every such beta gives a solution.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from scipy.optimize import linprog
from scipy.spatial import HalfspaceIntersection

from zerogap.wording import count

# Singular values below this share of the largest, times the number of points, are zero: rounding makes them that large.
NULL = 4.0 * float(np.finfo(float).eps)
NO_ENTRY = 1e-12  # an entry of an orthonormal basis below this is rounding
FIXED = 1e-9  # a coefficient that can move by no more than this part of its box is the same in all solutions
MANY = 8  # dimensions in which vertices are still counted out


@dataclass(frozen=True)
class SolutionSet:
    """The solutions at one C: ``coefficients + directions @ z`` for every z that keeps them within their bounds.

    Attributes
    ----------
    C : float
        Where.
    coefficients : array of shape (n,)
        A solution in the relative interior of the set: what can move there is off its bounds.
    directions : array of shape (n, k)
        Orthonormal; no decision value changes along them.
    lower, upper : array of shape (n,)
        The bounds of the coefficients that can move; of the others the value itself, twice.

    Examples
    --------
    Two points at one place share a coefficient in any way they like:

    >>> from zerogap import svm_path
    >>> path = svm_path([[0.0], [0.0], [2.0]], [-1, -1, 1], kernel="linear", C_max=10.0)
    >>> several = path.solution_set_at(10.0)
    >>> several.dimension, several.is_unique
    (1, False)
    >>> several.vertices().round(3).tolist()
    [[-0.5, 0.0, 0.5], [0.0, -0.5, 0.5]]
    """

    C: float
    coefficients: np.ndarray
    directions: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def __repr__(self) -> str:
        moving = int(np.count_nonzero(self.lower < self.upper))
        said = (
            "unique"
            if self.is_unique
            else f"{count(self.dimension, 'dimension')}, {count(moving, 'coefficient')} can move"
        )
        return f"SolutionSet(C={self.C:g}: {said})"

    @property
    def dimension(self) -> int:
        """Dimension of the polytope; 0 where the solution is unique."""
        return self.directions.shape[1]

    @property
    def is_unique(self) -> bool:
        """Whether there is one solution only."""
        return self.dimension == 0

    def extent(self, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the two solutions in which the set ends along a direction, seen from ``coefficients``.

        Parameters
        ----------
        direction : array of shape (n,)
            A combination of ``directions``, such as one of its columns.

        Returns
        -------
        tuple of two arrays of shape (n,)
            The ends, first the one against the direction.
        """
        direction = self.directions @ (self.directions.T @ np.asarray(direction, dtype=np.float64))
        moves = np.abs(direction) > NO_ENTRY * np.abs(direction).max(initial=0.0)
        if not moves.any():
            raise ValueError("direction must be a combination of the columns of directions, and not zero.")
        rate = direction[moves]
        with np.errstate(divide="ignore"):
            ends = (np.stack([self.lower, self.upper])[:, moves] - self.coefficients[moves]) / rate
        back, forth = np.minimum(*ends).max(), np.maximum(*ends).min()
        return self._inside(back * direction), self._inside(forth * direction)

    def vertices(self) -> np.ndarray:
        """Return the corners of the polytope: every solution is a mean of them.

        Returns
        -------
        array of shape (m, n)
            One solution a row, in lexicographic order.
        """
        return self._vertices.copy()

    @cached_property
    def _vertices(self) -> np.ndarray:
        if self.is_unique:
            return self.coefficients[None]
        if self.dimension == 1:
            return _sorted(np.stack(self.extent(self.directions[:, 0])))
        if self.dimension > MANY:
            raise ValueError(
                f"The solutions at C={self.C:g} are a polytope of dimension {self.dimension}: too many vertices to count out "
                f"(up to {MANY} dimensions they are). Use extent(direction), with a column of directions or a sum of them."
            )
        rows = np.flatnonzero(self.directions.any(axis=1))
        U, at = self.directions[rows], self.coefficients[rows]
        halfspaces = np.concatenate(
            [np.column_stack([U, at - self.upper[rows]]), np.column_stack([-U, self.lower[rows] - at])]
        )
        corners = HalfspaceIntersection(halfspaces, np.zeros(self.dimension)).intersections
        scale = float((self.upper - self.lower).max())
        corners = corners[np.isfinite(corners).all(axis=1)]
        _, first = np.unique(np.round(corners / scale, 9), axis=0, return_index=True)  # Qhull repeats degenerate ones
        return _sorted(np.stack([self._inside(self.directions @ z) for z in corners[first]]))

    def _inside(self, move: np.ndarray) -> np.ndarray:
        """Return the solution after a move; what comes to a bound but for rounding is at it."""
        beta = np.clip(self.coefficients + move, self.lower, self.upper)
        near = FIXED * (self.upper - self.lower)
        return np.where(beta - self.lower <= near, self.lower, np.where(self.upper - beta <= near, self.upper, beta))


def _sorted(rows: np.ndarray) -> np.ndarray:
    keys = np.round(rows / np.abs(rows).max(), 9)  # rounding must not decide
    return rows[np.lexsort(keys.T[::-1])]


def solutions(
    C: float,
    beta: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    margin: np.ndarray,
    K: np.ndarray,
    *,
    has_bias: bool = True,
) -> SolutionSet:
    """Return all solutions, from one of them, the points on their margins and the kernel matrix of those."""
    low, high = (bound[margin] - beta[margin] for bound in (lower, upper))
    move, U = _interior(_null_space(K, has_sum=has_bias), low, high)
    coefficients, directions = beta.copy(), np.zeros((beta.size, U.shape[1]))
    coefficients[margin] = np.clip(beta[margin] + move, lower[margin], upper[margin])
    directions[margin] = np.where(np.abs(U) > NO_ENTRY, U, 0.0)
    moves = directions.any(axis=1)
    bounds = (np.where(moves, bound, coefficients) for bound in (lower, upper))
    return SolutionSet(C, coefficients, directions, *bounds)


def _null_space(K: np.ndarray, *, has_sum: bool = True) -> np.ndarray:
    """Return the directions along which no decision value moves and, if it is fixed, not the sum either."""
    m = K.shape[0]
    if m < 1 + has_sum:
        return np.zeros((m, 0))
    size = float(np.abs(np.diagonal(K)).max()) or 1.0
    if _is_definite(K / size, has_sum=has_sum):
        return np.zeros((m, 0))
    if not has_sum:
        values, vectors = la.eigh(K / size)
        return vectors[:, values <= NULL * m]
    # Among the directions that leave the sum alone: in those of K itself rounding, over its next eigenvalue, can move it.
    level = la.qr(np.ones((m, 1)))[0][:, 1:]
    values, vectors = la.eigh(level.T @ (K / size) @ level)
    return level @ vectors[:, values <= NULL * m]  # of x'K x, which is that of K: it is positive semidefinite


def _is_definite(K: np.ndarray, *, has_sum: bool = True) -> bool:
    """Whether a Cholesky factor proves that no direction is null; a twentieth of the work of the eigenvalues.

    With K + 11' less a shift, which on directions that leave the sum alone is K less the shift; without a sum that is fixed,
    with K itself.  Its diagonal is at most 2, so the factor is that of a matrix no farther than m (m + 1) spacings of one
    (Higham, Accuracy and Stability, 10.1).
    """
    m = K.shape[0]
    shifted = K + float(has_sum)
    shifted.flat[:: m + 1] -= NULL * m * (m + 1)  # above that error and NULL m together
    return la.lapack.dpotrf(shifted, overwrite_a=True)[1] == 0


def _interior(U: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a move into the relative interior of low <= U z <= high, and a basis of the moves that are possible at all.

    Of the coefficients at a bound some may be there in all solutions.  One linear program tells which: maximise sum(t)
    subject to 0 <= t <= 1 and U z >= t at lower, -U z >= t at upper bounds; those with t = 0 (Freund, Roundy and Todd, 1985).
    """
    near = FIXED * (high - low)
    sign = np.where(-low <= near, 1.0, np.where(high <= near, -1.0, 0.0))
    tight = np.flatnonzero((sign != 0.0) & (np.abs(U).max(axis=1, initial=0.0) > NO_ENTRY))
    k, t = U.shape[1], tight.size
    if k == 0 or t == 0:
        return np.zeros(low.size), U
    rows = sp.hstack([sp.csr_array(-sign[tight, None] * U[tight]), sp.csr_array(sp.identity(t))])
    cost, bounds = np.repeat([0.0, -1.0], [k, t]), [(None, None)] * k + [(0.0, 1.0)] * t
    found = linprog(cost, A_ub=rows, b_ub=np.zeros(t), bounds=bounds, method="highs")
    if found.status != 0:  # what is certain: the solution that is known, and those that keep what is at a bound there
        return np.zeros(low.size), _within(U, tight)
    is_fixed = found.x[k:] < 0.5  # zero or, since any multiple of z will do, one
    U, move = _within(U, tight[is_fixed]), U @ found.x[:k]
    if is_fixed.all():
        return np.zeros(low.size), U
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(move > 0.0, high / move, np.where(move < 0.0, low / move, np.inf))
    step = steps[steps > 0.0].min(initial=np.inf)
    return (0.5 * step * move if np.isfinite(step) else np.zeros(low.size)), U


def _within(U: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the moves along U that leave some rows where they are."""
    return U @ la.null_space(U[fixed], rcond=1e-10) if fixed.size else U
