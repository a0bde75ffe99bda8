"""The bordered system of the free points: grow, shrink, solve.

    [ 0  1'   ] [ b ]   [ s ]
    [ 1  K_EE ] [ x ] = [ r ]

K_EE itself may be singular where the bordered matrix is not (a linear kernel with as many free points as dimensions and one
more), so we factor K_EE + tau 11', which the constraint 1'x = s turns into the same system: it is positive definite exactly
when no free point is an affine combination of the others in feature space.  A change of one point costs O(m²).
With a fixed bias there is no border, and what is factored is K_EE.

``FreeSystem`` is given the columns it needs, ``DenseFreeSystem`` takes them from a matrix in memory.
"""

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrf, dpstrf, dtrtrs

from zerogap import memory
from zerogap.compiled import HUGE, inline_contracted, inline_sums, jit_contracted, jit_sums

# A point whose distance from the affine hull of the others is, squared and relative, below this counts as lying in it.
DEPENDENT = 1e-13

# That distance is the length of a combination of points; the larger its coefficients, the larger is what rounding makes of
# a length of zero: this, times the square of their sum.
DISTANCE_ROUNDING = 4e-16

FAR, MANY = 0.25, 8  # of so many points that tie one is as good as any if this much of its corner is left
INDEPENDENT = 1e-3  # if so much is left of all of them they may be added at once

BLOCK = 64  # rows of the factor that are solved for at once, all the work between them being a product of matrices
FINE = (1e-250, 1e300)  # squares that have all their digits
SPARE = 64  # points for which there is room beside those that are loaded at once


class Response(NamedTuple):
    """How the others respond when x_i rises by one: x_E changes by d and b by d0, and their equations stay solved."""

    d: np.ndarray
    d0: float


class FreeSystem:
    """Cholesky factor of A = K_EE + tau 11' for an ordered set of points E, whose columns the caller brings."""

    is_stricter = False  # about which points count as dependent than ``append_row`` alone

    def __init__(self, tau: float, capacity: int = 32, *, has_border: bool = True, floor: float = 0.0):
        self.has_border, self.floor = has_border, floor  # floor: largest squared distance that counts as zero
        self.tau = tau if has_border else 0.0
        self.size = 0
        self._points: np.ndarray
        self._forward_ones: np.ndarray  # L^-1 1, half of the way to A^-1 1
        self._factor: np.ndarray
        self._make_room(capacity)

    @property
    def points(self) -> np.ndarray:
        """The points, in the order of the system; a view."""
        return self._points[: self.size]

    def insert(self, i: int, column: np.ndarray, corner: float) -> bool:
        """Add a point with kernel values ``column`` against those that are there, unless it depends on them.

        Returns whether it was added.
        """
        m = self.size
        self.reserve()
        floor = max(DEPENDENT * (corner + self.tau), self.floor)
        if not append_row(self._factor, self._forward_ones, m, column + self.tau, corner + self.tau, floor):
            return False
        self._points[m] = i
        self.size = m + 1
        return True

    def load(self, points: np.ndarray, write: Callable[[np.ndarray], object]) -> int:
        """Fill the empty system with the first of some points, and return how many those are; ``write`` writes their matrix.

        All of them if they are independent.  Else those that a factor with pivots finds so, far apart from each other; their
        positions come first in ``points`` afterwards, and the others, to be looked at one by one, behind.
        """
        count = points.size
        self._make_room(count + SPARE)
        A = self._factor
        write(A)
        A[:count, :count] += self.tau
        A[count:] = (
            0.0  # room for points that come later: ones on the diagonal, which have no part in the others' factor
        )
        np.fill_diagonal(A[count:, count:], 1.0)
        corners = np.diagonal(A)[:count].copy()
        # In place: A is symmetric, so its transpose is itself, in the order of LAPACK.  What is above the diagonal stays.
        _, info = dpotrf(A.T, lower=0, clean=0, overwrite_a=1)
        distances = np.square(np.diagonal(A)[:count])
        if info != 0 or not (distances > np.maximum(DEPENDENT * corners, self.floor)).all():
            count = self._load_pivoted(points, write, max(DEPENDENT * float(corners.max()), self.floor))
        self._points[:count] = points[:count]
        self._forward_ones[:count] = 1.0
        _forward(self._factor, 0, count, self._forward_ones)
        self.size = count
        return count

    def _load_pivoted(self, points: np.ndarray, write: Callable[[np.ndarray], object], smallest: float) -> int:
        """Factor the independent ones of some points, and put them first."""
        A = memory.matrix(points.size, points.size)
        write(A)
        A += self.tau
        factor, pivots, count, _ = dpstrf(A.T, lower=0, tol=smallest, overwrite_a=1)
        points[:] = points[pivots - 1]
        self._factor[:count, :count] = factor.T[:count, :count]
        return int(count)

    def append_all(self, new: np.ndarray) -> bool:
        """Add several points at once, if their kernel values are at hand; return whether they were added."""
        return False

    def remove(self, position: int) -> None:
        """Take out the point at a position; those behind move up."""
        remove_row(self._factor, self._forward_ones, self.size, position)
        self._points[position : self.size - 1] = self._points[position + 1 : self.size].copy()
        self.size -= 1

    def solve(self, rhs: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Solve for two right hand sides, the rows of ``rhs`` (2, m); return x (2, m) and b (2,).

        The factor has seen many updates: call it a second time with what the solution leaves over, for refinement.
        """
        x, bias = rhs.copy(), totals.copy()
        solve_two(self._factor, self._forward_ones, self.size, self.has_border, x, bias)
        return x, bias + self.tau * totals

    def solve_one(self, rhs: np.ndarray, total: float = 0.0) -> tuple[np.ndarray, float]:
        """Solve for one right hand side (m,); one that begins with zeros, as for a new last point, costs half as much."""
        x = rhs.copy()
        bias = solve_factor(self._factor, self._forward_ones, self.size, self.has_border, x, total)
        return x, bias + self.tau * total

    def dependence_on(self, column: np.ndarray) -> np.ndarray:
        """Return d with sum(d) = -1 and K_E d = -column: moving x_E by d and the column's point by one changes nothing."""
        return self.solve_one(-column, -1.0)[0]

    def clear(self) -> None:
        """Take out all points."""
        self.size = 0

    def renumber(self, index: np.ndarray) -> None:
        """Give every point i the number ``index[i]``."""
        self._points[: self.size] = index[self.points]

    def copy(self) -> "FreeSystem":
        """Return a system that can change without this one."""
        twin, m = copy.copy(self), self.size
        twin._make_room(m + 8)
        twin._points[:m], twin._forward_ones[:m] = self.points, self._forward_ones[:m]
        twin._factor[:m, :m] = self._factor[:m, :m]
        return twin

    def reserve(self, more: int = 1) -> None:
        """Make room for another point, or several."""
        if self.size + more > self._points.size:
            self._grow(self.size + more)

    def _grow(self, least: int) -> None:
        m, points, factor, forward_ones = self.size, self._points, self._factor, self._forward_ones
        self._make_room(max(2 * points.size, least))
        self._points[:m], self._forward_ones[:m], self._factor[:m, :m] = points[:m], forward_ones[:m], factor[:m, :m]

    def _make_room(self, capacity: int) -> None:
        self._points, self._forward_ones = np.zeros(capacity, dtype=np.int64), np.zeros(capacity)
        self._factor = memory.matrix(capacity, capacity)  # L, the lower triangle; above it is anything


class DenseFreeSystem(FreeSystem):
    """The system of points whose kernel matrix K (n, n) is in memory."""

    is_stricter = True

    def __init__(self, K: np.ndarray, capacity: int = 32):
        super().__init__(float(np.diagonal(K).mean()) or 1.0, capacity)
        self.K = K

    def insert(self, i: int, column: np.ndarray, corner: float) -> bool:
        """Add a point, unless it depends on those that are there; its kernel values are known."""
        return self.append(i) is not None

    def append(self, i: int) -> Response | None:
        """Add a point and return how the others respond to it; None, and no change, if it depends on them."""
        m = self.size
        self.reserve()
        d = np.empty(m)
        is_in, d0 = append_point(self.K, i, self._points, self._factor, self._forward_ones, m, self.tau, d)
        if not is_in:
            return None
        self._points[m] = i
        self.size = m + 1
        return Response(d, d0)

    def append_all(self, new: np.ndarray) -> bool:
        """Add several points at once, by products of matrices, if they are plainly independent; else change nothing.

        Returns whether they were added.
        """
        m, end = self.size, self.size + new.size
        self.reserve(new.size)
        L, f = self._factor, self._forward_ones
        rows, corner = self.forward(new)
        last, info = dpotrf(corner - rows @ rows.T, lower=1, clean=1)
        if info != 0 or not (np.square(np.diagonal(last)) > INDEPENDENT * np.diagonal(corner)).all():
            return False
        L[m:end, :m], L[m:end, m:end], self._points[m:end] = rows, last, new
        f[m:end] = dtrtrs(last, 1.0 - rows @ f[:m], lower=1)[0]
        self.size = end
        return True

    def forward(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return L^-1 A_EN, a row for each of the new points N, and A_NN."""
        L, m = self._factor, self.size
        rows = self.K[np.ix_(new, self.points)] + self.tau
        for a in range(0, m, BLOCK):
            b = min(a + BLOCK, m)
            rows[:, a:b] -= rows[:, :a] @ L[a:b, :a].T
            rows[:, a:b] = dtrtrs(L[a:b, a:b], rows[:, a:b].T, lower=1)[0].T
        return rows, self.K[np.ix_(new, new)] + self.tau

    def back(self, rows: np.ndarray) -> np.ndarray:
        """Return L^-T x for all rows x."""
        L, m, rows = self._factor, self.size, rows.copy()
        for a in range((m - 1) // BLOCK * BLOCK, -1, -BLOCK):
            b = min(a + BLOCK, m)
            rows[:, a:b] -= rows[:, b:] @ L[b:m, a:b]
            rows[:, a:b] = dtrtrs(L[a:b, a:b], rows[:, a:b].T, lower=1, trans=1)[0].T
        return rows

    def remove_last(self, count: int) -> None:
        """Take out the last points: nothing else of the factor changes."""
        self.size -= count

    def remove_with_response(self, position: int) -> Response:
        """Remove the point at a position, those behind move up; return how they respond to it."""
        self.size -= 1
        d = np.empty(self.size)
        return Response(d, remove_point(self._points, self._factor, self._forward_ones, self.size, position, d))

    def farthest(self, points: np.ndarray) -> int:
        """Return that of some points which is farthest from those in the system; of many the first that is plainly far.

        The square of what a point would have on the factor's diagonal is its squared distance from the span of those in the
        system, all with sqrt(tau) as one more feature.
        """
        return int(points[_farthest(self.K, points, self._points, self._factor, self.size, self.tau)])

    def dependence(self, i: int) -> np.ndarray:
        """Return d with sum(d) = -1 and K_E d = -K_Ei: moving x_E by d and x_i by one changes no decision value."""
        E = self.points
        rhs, totals = np.zeros((2, self.size)), np.array([-1.0, 0.0])
        rhs[0] = -self.K[i, E]
        x, bias = self.solve(rhs, totals)
        correction, _ = self.solve(rhs - x @ self.K[np.ix_(E, E)] - bias[:, None], totals - x.sum(axis=1))
        return (x + correction)[0]


@jit_sums
def append_row(factor, forward_ones, m, column, corner, floor):
    """Add the last row of the factor by forward substitution; refuse if no more than ``floor`` is left of its corner."""
    new = factor[m, :m]
    for j in range(m):
        new[j] = column[j]
    _forward(factor, 0, m, new)
    used, ones = 0.0, 0.0
    for j in range(m):
        used += new[j] * new[j]
        ones += new[j] * forward_ones[j]
    if corner - used <= floor:
        return False
    factor[m, m] = np.sqrt(corner - used)
    forward_ones[m] = (1.0 - ones) / factor[m, m]
    return True


@jit_contracted
def remove_row(factor, forward_ones, m, position):
    """Drop a row of the factor and rotate the rest back to a triangle; return L'^-1 of the rest's matrix times its column.

    In a row every rotation waits for the one before, so four rows are rotated side by side, as far as all rotations are known.
    The rotations R take the last columns from (l, L) to (L', 0), where l is what the dropped point had below its corner:
    L'^-1 l is R times a unit vector, and the point's column is l times its corner there.
    """
    cosines, sines, x = np.empty(m), np.empty(m), np.empty(4)
    column = factor[position, : m - 1].copy()
    carried = factor[position, position]
    for first in range(position, m - 1, 4):
        count = min(4, m - 1 - first)
        for i in range(first, first + count):
            row, old = factor[i], factor[i + 1]
            for j in range(position):
                row[j] = old[j]
        if count == 4:
            _rotate_four(factor[first : first + 5], position, first, cosines, sines, x)
        else:
            for t in range(count):
                row, old = factor[first + t], factor[first + t + 1]
                x[t] = _rotate(row, old, old[position], position, first, cosines, sines)
        for t in range(count):
            i = first + t
            row, old = factor[i], factor[i + 1]
            row[i] = _length(_rotate(row, old, x[t], first, i, cosines, sines), old[i + 1], i, cosines, sines)
            column[i] = cosines[i] * carried
            carried *= -sines[i]
    carried = forward_ones[position]
    for k in range(position, m - 1):
        a, b = carried, forward_ones[k + 1]
        forward_ones[k] = cosines[k] * a + sines[k] * b
        carried = cosines[k] * b - sines[k] * a
    return column


@inline_contracted
def _length(a, b, i, cosines, sines):
    """Write the rotation that takes (a, b) to (length, 0), and return the length."""
    squared = a * a + b * b
    # A call of hypot takes as long as a short row, and is needed only where squares leave the range of float64.
    length = np.sqrt(squared) if FINE[0] < squared < FINE[1] else np.hypot(a, b)
    cosines[i], sines[i] = a / length, b / length
    return length


@inline_contracted
def _rotate(row, old, x, begin, end, cosines, sines):
    """Write the rotated columns begin to end of an old row, x being what is carried into the first; return what is left."""
    for k in range(begin, end):
        y = old[k + 1]
        row[k] = cosines[k] * x + sines[k] * y
        x = cosines[k] * y - sines[k] * x
    return x


@inline_contracted
def _rotate_four(rows, begin, end, cosines, sines, x):
    """Do that with rows 1 to 4, which become rows 0 to 3; what is left of each is in x."""
    r0, r1, r2, r3, r4 = rows[0], rows[1], rows[2], rows[3], rows[4]
    a, b, c, d = r1[begin], r2[begin], r3[begin], r4[begin]
    for k in range(begin, end):
        cosine, sine, e, f, g, h = cosines[k], sines[k], r1[k + 1], r2[k + 1], r3[k + 1], r4[k + 1]
        r0[k], r1[k] = cosine * a + sine * e, cosine * b + sine * f
        r2[k], r3[k] = cosine * c + sine * g, cosine * d + sine * h
        a, b = cosine * e - sine * a, cosine * f - sine * b
        c, d = cosine * g - sine * c, cosine * h - sine * d
    x[0], x[1], x[2], x[3] = a, b, c, d


@jit_sums
def append_point(K, i, points, factor, forward_ones, m, tau, d):
    """Add point i to the factor; leave in d how the others respond to it."""
    for k in range(m):
        d[k] = K[i, points[k]] + tau
    corner = K[i, i] + tau
    if not append_row(factor, forward_ones, m, d, corner, DEPENDENT * corner):
        return False, 0.0
    for k in range(m):
        d[k] = factor[m, k]
    d0, size = _response(factor, forward_ones, m, d), 1.0
    for k in range(m):
        size += abs(d[k])
    return factor[m, m] ** 2 > DISTANCE_ROUNDING * size**2 * corner, d0


@jit_sums
def _farthest(K, candidates, points, factor, m, tau):
    """Return the candidate of whose corner most would be left; if there are many, the first of whose corner enough would be."""
    best, most, column = 0, -HUGE, np.empty(m)
    for c in range(candidates.size):
        i = candidates[c]
        for k in range(m):
            column[k] = K[i, points[k]] + tau
        _forward(factor, 0, m, column)
        left = K[i, i] + tau
        for k in range(m):
            left -= column[k] * column[k]
        if left > most:
            best, most = c, left
        if candidates.size > MANY and left >= FAR * (K[i, i] + tau):
            break
    return best


@jit_sums
def remove_point(points, factor, forward_ones, m, position, d):
    """Take a point out of the factor, which leaves m; leave in d how the others respond to it."""
    column = remove_row(factor, forward_ones, m + 1, position)
    for k in range(position, m):
        points[k] = points[k + 1]
    for k in range(m):
        d[k] = column[k]
    return _response(factor, forward_ones, m, d)


@inline_sums
def _response(factor, forward_ones, m, d):
    """From d = L^-1 (K_Ei + tau): A d = c 1 - (K_Ei + tau) with sum(d) = -1; return the bias, -c."""
    product, squared_norm = 0.0, 0.0
    for j in range(m):
        product += forward_ones[j] * d[j]
        squared_norm += forward_ones[j] * forward_ones[j]
    c = (product - 1.0) / squared_norm if m else 0.0
    for j in range(m):
        d[j] = c * forward_ones[j] - d[j]
    _back(factor, m, d)
    return -c


@jit_sums
def solve_two(factor, forward_ones, m, has_border, rhs, totals):
    """Solve with the factor and its transpose for both rows of ``rhs``, in place; ``totals`` become the biases."""
    x, y = rhs[0], rhs[1]
    for i in range(m):
        row, a, b = factor[i, :i], x[:i], y[:i]
        s, t = 0.0, 0.0
        for j in range(row.size):
            s += row[j] * a[j]
            t += row[j] * b[j]
        x[i] = (x[i] - s) / factor[i, i]
        y[i] = (y[i] - t) / factor[i, i]
    totals[0] = _take_bias(forward_ones, m, has_border, x, totals[0])
    totals[1] = _take_bias(forward_ones, m, has_border, y, totals[1])
    for i in range(m - 1, -1, -1):
        row, a, b = factor[i, :i], x[:i], y[:i]
        s, t = x[i] / factor[i, i], y[i] / factor[i, i]
        x[i], y[i] = s, t
        for j in range(row.size):
            a[j] -= s * row[j]
            b[j] -= t * row[j]


@jit_sums
def solve_factor(factor, forward_ones, m, has_border, x, total):
    """Solve with the factor and its transpose, in place; return the bias."""
    first = 0
    while first < m and x[first] == 0.0:
        first += 1
    _forward(factor, first, m, x)
    bias = _take_bias(forward_ones, m, has_border, x, total)
    _back(factor, m, x)
    return bias


@jit_sums
def _forward(factor, first, m, x):
    """Solve with the factor, in place, for a right hand side that is zero before ``first``."""
    for i in range(first, m):
        row, a = factor[i, first:i], x[first:i]
        s = 0.0
        for j in range(row.size):
            s += row[j] * a[j]
        x[i] = (x[i] - s) / factor[i, i]


@inline_sums
def _back(factor, m, x):
    """Solve with the factor's transpose, in place."""
    for i in range(m - 1, -1, -1):
        row, a = factor[i, :i], x[:i]
        s = x[i] / factor[i, i]
        x[i] = s
        for j in range(row.size):
            a[j] -= s * row[j]


@inline_sums
def _take_bias(forward_ones, m, has_border, x, total):
    """Return the b with which A^-1 (rhs - b 1) has the sum asked for, and subtract b L^-1 1 from x = L^-1 rhs."""
    if not has_border:
        return 0.0
    product, squared_norm = 0.0, 0.0
    for j in range(m):
        product += forward_ones[j] * x[j]
        squared_norm += forward_ones[j] * forward_ones[j]
    bias = (product - total) / squared_norm
    for j in range(m):
        x[j] -= bias * forward_ones[j]
    return bias
