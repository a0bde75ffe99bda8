"""Kernels: blocks of kernel values between two sets of points, and how far rounding can have put them off.

The exponent of rbf is one matrix product by the expansion |x - z|² = |x|² - 2 <x, z> + |z|², whose rounding error grows with
the squares.  So points are first moved to their middle, and points that are still far from it (outliers, or a large gamma)
are compared coordinate by coordinate: that error grows with the distance alone, and a large distance makes a value of zero.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from zerogap import validation
from zerogap.compiled import jit_sums

NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")

# A block of this many doubles stays in a core's own cache between the product and the exponential.
TILE = 65536

FAR_OFF = 100.0  # from zero, against the distance from each other: points that the linear kernel moves

UNIT = np.finfo(float).eps / 2  # unit roundoff: a rounded result is off by this share of it at most

# The largest error of an exponent that the expansion may make; where its bound is larger, coordinates are compared.
EXPANSION = 1e-11


def gamma_value(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (d var(X)), "auto" is 1 / d; in var(X) a row of weight two counts twice."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            variance = _variance(X, np.ones(X.shape[0]) if weight is None else weight)
            is_constant = variance == 0 and not _differ(X)
            value = 1.0 if is_constant else float(1.0 / np.float64(X.shape[1] * variance))
        if not (np.isfinite(value) and value > 0):
            raise ValueError(
                f"gamma='scale' is 1 / (n_features * X.var()), and the variance of X, {variance:.2g}, is "
                f"too {'small' if variance < 1 else 'large'} for float64. Scale the features (StandardScaler), or give gamma."
            )
        return value
    return float(gamma)


def centre_of(X: Any) -> np.ndarray | None:
    """Return an origin for the linear kernel near points that are far from zero, or None where they are not.

    Products of points a hundred times as far from zero as from each other have lost four digits.  The centre is a multiple of
    a power of two, so that points on a grid stay on it, and nothing is rounded.
    """
    if sp.issparse(X):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
        spread = np.sqrt(np.square(X - mean).sum(axis=1).mean())
        if not (np.isfinite(mean).all() and np.abs(mean).max(initial=0.0) > FAR_OFF * spread):
            return None
        unit = np.ldexp(1.0, int(np.frexp(max(spread, np.finfo(float).tiny))[1]))
        centre = np.where(np.abs(mean) < 2.0**52 * unit, np.rint(mean / unit) * unit, mean)
    return centre if np.isfinite(centre).all() else None


def _differ(X: Any) -> bool:
    """Whether any two entries of X differ."""
    if sp.issparse(X):
        return bool(X.nnz) and (X.nnz < X.shape[0] * X.shape[1] or np.ptp(X.data) > 0)
    return bool(np.ptp(X) > 0)


def _variance(X: Any, weight: np.ndarray) -> float:
    """Return the variance of all entries of X."""
    entries = weight.sum() * X.shape[1]
    if sp.issparse(X):
        weights = np.repeat(weight, np.diff(X.indptr))  # of the entries that are stored; the others are zero
        mean = float(weights @ X.data) / entries
        return (float(weights @ (X.data - mean) ** 2) + (entries - float(weights.sum())) * mean**2) / entries
    mean = float(weight @ X.sum(axis=1)) / entries
    return float(weight @ np.einsum("ij,ij->i", X - mean, X - mean)) / entries


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters fixed.

    linear <x, z>; poly (gamma <x, z> + coef0)^degree; rbf exp(-gamma |x - z|²); sigmoid tanh(gamma <x, z> + coef0);
    or a callable taking two sets of points and returning the matrix of their kernel values.  To each of them tau² is
    added: a constant feature tau, whose weight is a bias that counts in |f|² (Remark 7.4 of chapter7).

    ``centre`` is the origin of the linear kernel, <x - c, z - c>: with a free bias the problem is the same wherever that is,
    and products of points near it keep their digits.
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Callable[[Any, Any], np.ndarray] | None = None
    tau: float = 0.0
    centre: np.ndarray | None = field(default=None, compare=False)

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite."""
        return self.name in ("linear", "rbf") or (self.name == "poly" and self.gamma >= 0 and self.coef0 >= 0)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        if self.name == "rbf":
            return np.full(X.shape[0], 1.0 + self.tau**2)
        if self.function is not None:
            return np.array([self._call(X[i : i + 1], X[i : i + 1])[0, 0] for i in range(X.shape[0])]) + self.tau**2
        return self._finish(row_norms(self.moved(X), squared=True).astype(np.float64))

    def moved(self, X: Any) -> Any:
        """Return points relative to the centre."""
        return X if self.centre is None else X - self.centre

    def against(self, Z: Any) -> "Columns":
        """Fix one side of the blocks to the rows of Z."""
        return Columns(self, Z)

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self.against(Z).block(X)

    def _call(self, X: Any, Z: Any) -> np.ndarray:
        """Return the values of the user's function."""
        return validation.check_kernel_values(self.function(X, Z), (X.shape[0], Z.shape[0]))  # type: ignore[misc]

    def _finish(self, products: np.ndarray) -> np.ndarray:
        """Turn inner products (for rbf: exponents) into kernel values, in place."""
        if self.name == "rbf":
            np.minimum(products, 0.0, out=products)  # no distance is negative but by rounding
            np.exp(products, out=products)
        elif self.name != "linear":
            products *= self.gamma
            products += self.coef0
            if self.name == "sigmoid":
                np.tanh(products, out=products)
            else:
                _power(products, self.degree)
        if self.tau:
            products += self.tau**2
        return products

    def magnitude(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """Return a with |k(x_i, x_j)| <= a_i a_j, the products and powers on the way included."""
        if self.name in ("poly", "sigmoid"):
            with np.errstate(over="ignore"):  # a tanh is finite where what it is of is not
                squares = self.gamma * row_norms(X, squared=True) + abs(self.coef0)
                size = np.sqrt(squares + 1.0) if self.name == "sigmoid" else squares ** (0.5 * self.degree)
                return np.sqrt(size**2 + self.tau**2)
        slack = 1e-9 * np.abs(diagonal).max() if self.name == "precomputed" else 0.0  # by which it may be indefinite
        return np.sqrt(np.abs(diagonal) + slack)

    def roundings(self, d: int) -> float:
        """Return c: a computed kernel value is off by at most c times the unit roundoff times ``magnitude`` of both points.

        In a sum of d products every term takes part in at most d roundings, in whatever order it is summed.  What a user's
        function does is not known; it is taken for a product of d features too.
        """
        own = {"precomputed": 0.0, "rbf": 4.0, "poly": 1.0 + self.degree * (d + 4.0)}.get(self.name, d + 6.0)
        return own + (2.0 if self.tau else 0.0)


class Points:
    """Points in the form that ``Columns.fill`` takes."""

    def __init__(self, X: Any, lifted: np.ndarray | None = None, reach: np.ndarray | None = None):
        self.X = X
        self.lifted = lifted  # (n, d + 2), for the exponents of rbf by one product
        self.reach = reach  # (n,) gamma |x - centre|², or inf for a point that is compared coordinate by coordinate

    def __getitem__(self, rows: Any) -> "Points":
        some = [None if array is None else array[rows] for array in (self.lifted, self.reach)]
        return Points(self.X[rows], *some)

    @property
    def far(self) -> np.ndarray:
        """Those of rbf that are compared coordinate by coordinate."""
        return np.empty(0, dtype=np.int64) if self.reach is None else np.flatnonzero(np.isinf(self.reach))


class Columns:
    """Kernel values of any points against a fixed set Z, prepared once.

    For rbf on dense data the exponent -gamma |x - z|² = 2 gamma <x, z> - gamma |x|² - gamma |z|² is one product of
    vectors with two more entries, the points moved to the middle of Z.
    """

    def __init__(self, kernel: Kernel, Z: Any):
        self.kernel, self._Z, self._is_sparse = kernel, Z, sp.issparse(Z)
        self._limit = EXPANSION / (UNIT * expansion_roundings(Z.shape[1]) * 2.0)  # both points are within it
        if self._is_rbf and not self._is_sparse:
            self._centre = _middle(Z, kernel.gamma, self._limit)
        self.points = self._prepare(Z, is_column=True)

    @property
    def _is_rbf(self) -> bool:
        return self.kernel.name == "rbf"

    def prepare(self, X: Any) -> Points:
        """Return the points X in the form that ``fill`` takes: done once, it need not be done for every block."""
        if X is self._Z and (lifted := self.points.lifted) is not None:
            return Points(X, np.concatenate([lifted[:, :-2], lifted[:, :-3:-1]], axis=1), self.points.reach)
        return self._prepare(X, is_column=False)

    def _prepare(self, X: Any, is_column: bool) -> Points:
        if not self._is_rbf:
            return Points(self.kernel.moved(X))
        if self._is_sparse != sp.issparse(X):  # points are compared in one form
            X = sp.csr_matrix(X) if self._is_sparse else X.toarray()
        if self._is_sparse:
            with np.errstate(over="ignore"):
                reach = self.kernel.gamma * row_norms(X, squared=True)
            return Points(X, None, np.where(reach <= self._limit, reach, np.inf))
        return self._lift(X, is_column)

    def _lift(self, X: np.ndarray, is_column: bool) -> Points:
        gamma, d = self.kernel.gamma, X.shape[1]
        lifted = np.empty((X.shape[0], d + 2))
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            centred = np.subtract(X, self._centre, out=lifted[:, :d])
            centred *= np.sqrt(2.0 * gamma)  # first, so that squares of tiny features do not underflow
            reach = 0.5 * np.einsum("ij,ij->i", centred, centred)
        reach[~(reach <= self._limit)] = np.inf
        lifted[:, d + is_column] = -reach
        lifted[:, d + (not is_column)] = 1.0
        lifted[np.isinf(reach)] = 0.0
        return Points(X, lifted, reach)

    def block(self, X: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        out = np.empty((X.shape[0], self.points.X.shape[0]))
        with np.errstate(over="ignore", invalid="ignore"):  # what is beyond float64 is seen by the result
            self.fill(self.prepare(X), out)
        return out

    def fill(self, prepared: Points, out: np.ndarray, which: Any = None) -> None:
        """Write the kernel values of prepared points against those of Z, or some of them, into ``out``."""
        kernel, Z = self.kernel, self.points if which is None else self.points[which]
        if kernel.function is not None:
            out[...] = kernel._call(prepared.X, Z.X)
            out += kernel.tau**2
            return
        if self._is_rbf:
            self._exponents(prepared, Z, out)
        elif self._is_sparse or sp.issparse(prepared.X):
            product = prepared.X @ Z.X.T
            out[...] = product.toarray() if sp.issparse(product) else product
        else:
            np.matmul(prepared.X, Z.X.T, out=out)
        rows = max(1, TILE // max(1, out.shape[1]))
        for start in range(0, out.shape[0], rows):
            kernel._finish(out[start : start + rows])

    def _exponents(self, rows: Points, columns: Points, out: np.ndarray) -> None:
        """Write -gamma |x - z|²: by the expansion, and anew where a point is too far for it."""
        gamma, far_rows, far_columns = self.kernel.gamma, rows.far, columns.far
        if far_rows.size < out.shape[0] and far_columns.size < out.shape[1]:
            self._expand(rows, columns, out)
        if far_rows.size or far_columns.size:
            near_rows = np.setdiff1d(np.arange(out.shape[0]), far_rows)
            compare = _compare_sparse if self._is_sparse else _compare
            for some, others in ((far_rows, np.arange(out.shape[1])), (near_rows, far_columns)):
                compare(*_coordinates(rows.X), *_coordinates(columns.X), some, others, gamma, out)

    def _expand(self, rows: Points, columns: Points, out: np.ndarray) -> None:
        if rows.lifted is not None and columns.lifted is not None:
            np.matmul(rows.lifted, columns.lifted.T, out=out)
            return
        with np.errstate(over="ignore", invalid="ignore"):  # where a point is far, and all is written anew
            out[...] = (rows.X @ columns.X.T).toarray()
            out *= 2.0 * self.kernel.gamma
            out -= columns.reach
            out -= rows.reach[:, None]  # type: ignore[index]


def expansion_roundings(d: int) -> float:
    """Return c: an exponent by the expansion is off by at most c u (gamma |x|² + gamma |z|²), u being the unit roundoff.

    Each of the d + 2 products takes part in d + 1 sums and is itself off by 4 u, the squares in it by (d + 2) u; the products
    sum up to at most 2 (gamma |x|² + gamma |z|²).
    """
    return 4.0 * d + 24.0


def comparison_roundings(d: int) -> float:
    """Return c: a kernel value of rbf whose points were compared coordinate by coordinate is off by at most c u.

    The exponent -s is off by (d + 8) u s, and s exp(-s) is at most 1/e.
    """
    return (d + 8.0) / np.e + 1.0


def _middle(Z: np.ndarray, gamma: float, limit: float) -> np.ndarray:
    """Return the mean of the points, or their median if an outlier has drawn the mean away."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = Z.mean(axis=0)
        if gamma * np.einsum("ij,ij->i", Z - mean, Z - mean).max(initial=0.0) <= limit:
            return mean
    return np.median(Z, axis=0)


def _coordinates(X: Any) -> tuple[np.ndarray, ...]:
    """Return the arrays that compiled code reads points from."""
    if not sp.issparse(X):
        return (X,)
    X = X if X.has_sorted_indices else X.sorted_indices()
    return X.data, X.indices, X.indptr


@jit_sums
def _compare(X, Z, rows, columns, gamma, out):
    """Write -gamma |x - z|² for some rows and columns, coordinate by coordinate."""
    root = np.sqrt(gamma)
    for i in rows:
        x = X[i]
        for j in columns:
            z, s = Z[j], 0.0
            for k in range(x.size):
                t = root * (x[k] - z[k])
                s += t * t
            out[i, j] = -s


@jit_sums
def _compare_sparse(x, x_index, x_edge, z, z_index, z_edge, rows, columns, gamma, out):
    """Write -gamma |x - z|² for some rows and columns of CSR matrices with sorted indices."""
    root = np.sqrt(gamma)
    for i in rows:
        for j in columns:
            a, a_end, b, b_end, s = x_edge[i], x_edge[i + 1], z_edge[j], z_edge[j + 1], 0.0
            while a < a_end or b < b_end:
                if b == b_end or (a < a_end and x_index[a] < z_index[b]):
                    t = x[a]
                    a += 1
                elif a == a_end or z_index[b] < x_index[a]:
                    t = z[b]
                    b += 1
                else:
                    t = x[a] - z[b]
                    a += 1
                    b += 1
                s += (root * t) * (root * t)
            out[i, j] = -s


def _power(base: np.ndarray, degree: int) -> np.ndarray:
    """Raise to a whole power in place, by squaring: several times faster than pow."""
    factor, exponent = base.copy(), degree
    base[...] = 1.0
    while exponent:
        if exponent & 1:
            base *= factor
        exponent >>= 1
        if exponent:
            factor *= factor
    return base
