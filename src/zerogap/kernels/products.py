"""Kernels of inner products: linear, polynomial and sigmoid."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from zerogap import limits, precision, threads, validation
from zerogap.kernels.base import Kernel, dense, dense_if_cheap
from zerogap.kernels.blocks import Columns, Points, write_products
from zerogap.kernels.scale import check_gamma, gamma_value, number, power_of_two

FAR_OFF = 100.0  # from zero, against the distance from each other: points that the linear kernel moves
ROWS = 16  # computed in twice the precision between two questions whether the limit is over


class InnerProduct(Kernel):
    """A kernel that is a function of <x, z>."""

    accepts_sparse = True
    can_share = True

    def finish(self, products: np.ndarray) -> np.ndarray:
        """Turn inner products into kernel values, in place."""
        return products

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        return self.finish(row_norms(self.moved(X), squared=True).astype(np.float64))

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self(X, Z)

    def against(self, Z: Any) -> "Products":
        """Fix one side of the blocks to the rows of Z."""
        return Products(self, Z)


class Products(Columns):
    """Inner products, one matrix product a block, and what the kernel makes of them."""

    kernel: InnerProduct

    def _prepare(self, X: Any) -> Points:
        X = self.kernel.moved(X)
        if hasattr(self, "points") and sp.issparse(X) != sp.issparse(self.points.X):  # points are compared in one form
            X = sp.csr_matrix(X) if sp.issparse(self.points.X) else X.toarray()
        return Points(X)

    def write(self, rows: Points, columns: Points, out: np.ndarray) -> None:
        """Write the kernel values of prepared points against some of ``points`` into ``out``, an array in one piece."""
        write_products(rows, columns, out)
        self.kernel.finish(out)


@dataclass(frozen=True)
class Linear(InnerProduct):
    """The linear kernel, <x, z>.

    Attributes
    ----------
    centre : array of shape (d,) or None
        Another origin c, <x - c, z - c>: with a free bias the problem is the same wherever that is, and products of points
        near it keep their digits.  Estimators set it themselves.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import Linear
    >>> Gram([[1.0, 0.0], [2.0, 3.0]], Linear()).full().tolist()
    [[1.0, 2.0], [2.0, 13.0]]
    """

    centre: np.ndarray | None = None

    name = "linear"
    is_positive = True
    is_linear = True

    def __post_init__(self) -> None:
        if self.centre is not None and np.ndim(self.centre) != 1:
            raise ValueError(f"centre must be a point, an array of shape (d,); got shape {np.shape(self.centre)}.")

    def __eq__(self, other: object) -> bool:
        """Kernels about different origins are different: without a free bias so are their solutions."""
        if not isinstance(other, Linear):
            return NotImplemented
        if self.centre is None or other.centre is None:
            return self.centre is other.centre
        return np.array_equal(self.centre, other.centre)

    def __hash__(self) -> int:
        return hash(("linear", None if self.centre is None else self.centre.tobytes()))

    def centred(self, X: Any) -> "Linear":
        """Return the kernel about an origin near points that are far from zero."""
        return replace(self, centre=centre_of(X))

    def about(self, centre: np.ndarray) -> "Linear":
        """Return the kernel about another origin."""
        return replace(self, centre=centre)

    def moved(self, X: Any) -> Any:
        """Return points relative to the centre."""
        if self.centre is None:
            return X
        if X.shape[1] != self.centre.size:
            raise ValueError(
                f"The centre of the linear kernel has {self.centre.size} features; the points have {X.shape[1]}."
            )
        return dense(X) - self.centre

    def precise_roundings(self, d: int) -> float:
        """Return c: a value within ``precisely`` is off by at most 2 c u² times ``magnitude`` of both points."""
        return 3.0 * (d + 4.0) ** 2

    def precise_work(self, rows: int, columns: int, d: int) -> int:
        """Return zero: by way of w every point is read once, which is never too much."""
        return 0

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return sum_j beta_j <x_i, z_j> by way of w = sum_j beta_j z_j."""
        centre = self.centre
        if centre is None:
            centre = np.zeros(X.shape[1])
        else:
            X, Z = dense(X), dense(Z)
        return precision.products(X, centre, *precision.combination(Z, centre, beta))


def centre_of(X: Any) -> np.ndarray | None:
    """Return an origin for the linear kernel near points that are far from zero, or None where they are not.

    Products of points a hundred times as far from zero as from each other have lost four digits.  The centre is a multiple of
    a power of two, so that points on a grid stay on it, and nothing is rounded.
    """
    X = dense_if_cheap(X)
    if sp.issparse(X):  # their zeros would no longer be zeros, and the array too large
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        mean = X.mean(axis=0)
        return centre_about(mean, np.sqrt(np.square(X - mean).sum(axis=1).mean()))


def centre_about(mean: np.ndarray, spread: float) -> np.ndarray | None:
    """Return that origin from the mean of the points, and the root of their mean square distance from it."""
    with np.errstate(over="ignore", invalid="ignore"):
        if not (np.isfinite(mean).all() and np.abs(mean).max(initial=0.0) > FAR_OFF * spread):
            return None
        unit = np.ldexp(1.0, int(np.frexp(max(spread, np.finfo(float).tiny))[1]))
        centre = np.where(np.abs(mean) < 2.0**52 * unit, np.rint(mean / unit) * unit, mean)
    return centre if np.isfinite(centre).all() else None


@dataclass(frozen=True)
class Polynomial(InnerProduct):
    """The polynomial kernel, (gamma <x, z> + coef0)^degree.

    Attributes
    ----------
    degree : int
        The power, a whole number of at least 0; 3 by default.
    gamma : float or str
        A number of at least 0, "scale", the default (1 / (d var(X))), or "auto" (1 / d).
    coef0 : float
        The constant, 0 by default; where it is negative, the kernel need not be positive semidefinite.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import Polynomial
    >>> Gram([[1.0], [2.0]], Polynomial(2, gamma=1.0, coef0=1.0)).full().tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    degree: int = 3
    gamma: float | str = "scale"
    coef0: float = 0.0

    name = "poly"

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", validation.check_degree(self.degree))
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        object.__setattr__(self, "coef0", validation.check_coef0(self.coef0))

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite: the power of a sum of such kernels is."""
        return self.coef0 >= 0

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "Polynomial":
        """Return the kernel with gamma as a number."""
        return replace(self, gamma=gamma_value(self.gamma, X, weight))

    def finish(self, products: np.ndarray) -> np.ndarray:
        """Turn inner products into kernel values, in place."""
        products *= number(self.gamma)
        products += self.coef0
        return _power(products, self.degree)

    def magnitude(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """Return a with |k(x_i, x_j)| <= a_i a_j, the products and powers on the way included."""
        squares = number(self.gamma) * row_norms(X, squared=True) + abs(self.coef0)
        return squares ** (0.5 * self.degree)

    def roundings(self, d: int) -> float:
        """Return c: each factor of the power is a product of d features, and three operations."""
        return 1.0 + self.degree * (d + 4.0)

    def precise_roundings(self, d: int) -> float:
        """Return c: a value within ``precisely`` is off by at most 2 c u² times ``magnitude`` of both points."""
        return max(1, self.degree) * (d + 4.0) ** 2 + 16.0 * self.degree

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return sum_j beta_j k(x_i, z_j) for every row of X, in twice the precision."""
        high, low = np.zeros((2, X.shape[0]))
        power, gamma = power_of_two(number(self.gamma))
        Zt = np.ascontiguousarray(np.ldexp(dense(Z), -power).T)

        def work(start: int) -> None:
            rows = slice(start, start + ROWS)
            points = np.ldexp(dense(X[rows]), -power)
            precision.add_poly(points, Zt, gamma, self.coef0, self.degree, beta, high[rows], low[rows])

        limits.check()
        threads.share(work, range(0, X.shape[0], ROWS))
        return high, low


@dataclass(frozen=True)
class Sigmoid(InnerProduct):
    """tanh(gamma <x, z> + coef0), which need not be positive semidefinite.

    Attributes
    ----------
    gamma : float or str
        A number of at least 0, "scale", the default (1 / (d var(X))), or "auto" (1 / d).
    coef0 : float
        The constant, 0 by default.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import Sigmoid
    >>> Gram([[0.0], [1.0]], Sigmoid(gamma=1.0)).full().round(4).tolist()
    [[0.0, 0.0], [0.0, 0.7616]]
    """

    gamma: float | str = "scale"
    coef0: float = 0.0

    name = "sigmoid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        object.__setattr__(self, "coef0", validation.check_coef0(self.coef0))

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "Sigmoid":
        """Return the kernel with gamma as a number."""
        return replace(self, gamma=gamma_value(self.gamma, X, weight))

    def finish(self, products: np.ndarray) -> np.ndarray:
        """Turn inner products into kernel values, in place."""
        products *= number(self.gamma)
        products += self.coef0
        return np.tanh(products, out=products)

    def magnitude(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """Return a with |k(x_i, x_j)| <= a_i a_j, what the tanh is of included."""
        return np.sqrt(number(self.gamma) * row_norms(X, squared=True) + abs(self.coef0) + 1.0)


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
