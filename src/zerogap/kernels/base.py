"""What a kernel is: an object that computes blocks of kernel values, and knows how far rounding can have put them off."""

from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import limits, validation
from zerogap.precision import Pair

UNIT = np.finfo(float).eps / 2  # unit roundoff: a rounded result is off by this share of it at most
UNDERFLOW = 1e-322  # what an operation can lose where results are below the normal numbers
DENSE_BYTES = 500e6  # sparse points are never made into a larger array than this
CLOSE = 1e-12  # relative difference of parameters that were computed from sparse and from dense points
FEW = 6  # points on which values of a user's own kernel are computed in two ways
ALONE = "where it is computed alone, not in a block"
FLOAT64 = 1e-9  # of their size: by more no values of float64 differ because of the order of a sum; those of float32 do


class Kernel:
    """A kernel function k(x, z) with its parameters: immutable, and compared by value.

    A kernel of your own is a subclass, best a frozen dataclass, with one method, ``values``.  All else has a default.  What
    it knows of itself, it may say: ``is_positive``, ``diagonal``, ``roundings``.  ``docs/add-a-kernel.md`` walks through one.

    Kernels add and multiply: ``RBF(0.1) + 2.0 * Linear()``.

    Attributes
    ----------
    name : str
        What messages call it.
    is_positive : bool
        Whether every kernel matrix is known to be positive semidefinite.
    knows_diagonal : bool
        Whether k(x, x) takes no work.
    is_radial, is_linear, is_precomputed : bool
        Whether k(x, z) depends on |x - z| alone, is <x, z>, or is read from a matrix.
    accepts_sparse : bool
        Whether ``values`` takes CSR matrices.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import Gram
    >>> from zerogap.kernels import Kernel
    >>> class Intersection(Kernel):
    ...     def values(self, X, Z):
    ...         return np.minimum(X[:, None], Z).sum(axis=2)
    >>> Gram([[1.0, 2.0], [3.0, 1.0]], Intersection()).full().tolist()
    [[3.0, 2.0], [2.0, 4.0]]
    """

    # What a kernel says of itself.

    @property
    def name(self) -> str:
        """What messages call it."""
        return type(self).__name__

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite; if it is not, it is tried on the data."""
        return False

    @property
    def knows_diagonal(self) -> bool:
        """Whether k(x, x) takes no work, and is not counted as a kernel evaluation."""
        return False

    @property
    def is_radial(self) -> bool:
        """Whether k(x, z) depends on |x - z| alone and nowhere grows with it: near points are near in feature space."""
        return False

    @property
    def is_linear(self) -> bool:
        """Whether k(x, z) = <x, z>, so that a model has a weight for every feature."""
        return False

    @property
    def is_precomputed(self) -> bool:
        """Whether the "points" are the kernel matrix itself."""
        return False

    @property
    def accepts_sparse(self) -> bool:
        """Whether ``values`` takes CSR matrices; if it does not, sparse points are made dense before it sees them."""
        return False

    @property
    def can_share(self) -> bool:
        """Whether threads may compute values at the same time: a user's own code may not be made for that."""
        return False

    # What a kernel computes.

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the matrix of k(x, z) for the rows of X and of Z.

        Parameters
        ----------
        X : array of shape (m, d)
            Points, one in a row, to be read only; a CSR matrix where ``accepts_sparse`` says so.
        Z : array of shape (n, d)
            Points, likewise.

        Returns
        -------
        array of shape (m, n)
            The kernel values.
        """
        raise NotImplementedError

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X.

        Parameters
        ----------
        X : array of shape (n, d)
            Points, as ``values`` gets them.

        Returns
        -------
        array of shape (n,)
            The diagonal of ``values(X, X)``.
        """
        found = np.empty(X.shape[0])
        for i in range(X.shape[0]):  # a block would compute n times as many values
            limits.check()
            point = read_only(X[i : i + 1])
            found[i] = self.checked_values(point, point)[0, 0]
        return found

    def magnitude(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """Return a with |k(x_i, x_j)| <= a_i a_j, the intermediate results included.

        For a positive semidefinite kernel sqrt(k(x, x)) is one, by Cauchy and Schwarz.

        Parameters
        ----------
        X : array of shape (n, d)
            Points.
        diagonal : array of shape (n,)
            k(x, x) for each of them.

        Returns
        -------
        array of shape (n,)
            The sizes a.
        """
        return np.sqrt(np.abs(diagonal))

    def roundings(self, d: int) -> float:
        """Return c: a computed kernel value is off by at most c times the unit roundoff times ``magnitude`` of both points.

        In a sum of d products every term takes part in at most d roundings, in whatever order it is summed.  What ``values``
        of a user does is not known; by default it is taken for a product of d features, and a few operations.

        Parameters
        ----------
        d : int
            Number of features.

        Returns
        -------
        float
            The number c, at least 0.
        """
        return d + 6.0

    # Twice the precision, for certificates where rounding decides.

    def precise_roundings(self, d: int) -> float | None:
        """Return c: a value within ``precisely`` is off by at most 2 c u² times ``magnitude`` of both points.

        Parameters
        ----------
        d : int
            Number of features.

        Returns
        -------
        float or None
            The number c; None if there is no ``precisely``.
        """
        return None

    def precise_work(self, rows: int, columns: int, d: int) -> int:
        """Return about how many coordinates ``precisely`` reads.

        Parameters
        ----------
        rows, columns : int
            Numbers of points.
        d : int
            Number of features.

        Returns
        -------
        int
            The number that is compared with what is affordable.
        """
        return rows * columns * d

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> Pair:
        """Return sum_j beta_j k(x_i, z_j) for every row of X, in twice the precision.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, d)
            Points.
        Z : array or CSR matrix of shape (n, d)
            Points.
        beta : array of shape (n,)
            Coefficients.

        Returns
        -------
        tuple of two arrays of shape (m,)
            The sums, as pairs high + low.
        """
        raise NotImplementedError

    @property
    def gain(self) -> float:
        """By how much is multiplied what ``precisely`` loses below the normal numbers."""
        return 1.0

    # Parameters that depend on the data.

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "Kernel":
        """Return the kernel with its parameters as numbers.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            The training points.
        weight : array of shape (n,), optional
            Their weights; a row of weight two counts twice.

        Returns
        -------
        Kernel
            The kernel itself, if nothing in it depends on the data.
        """
        return self

    @property
    def centre(self) -> np.ndarray | None:
        """The origin that the linear kernel has been moved to, if it has."""
        return None

    def centred(self, X: Any) -> "Kernel":
        """Return a kernel that is the same problem with a free bias, and keeps more digits on these points."""
        return self

    def about(self, centre: np.ndarray) -> "Kernel":
        """Return the kernel about another origin."""
        raise ValueError(f"centre is an origin for the linear kernel; the kernel is {self!r}. Leave centre out.")

    def moved(self, X: Any) -> Any:
        """Return points relative to the centre."""
        return X

    # How the Gram matrix asks for it.

    def checked(self, X: Any) -> Any:
        """Return the points of a Gram matrix in the form that suits the kernel; refuse what is none."""
        return dense_if_cheap(validation.check_points(X))

    def taken(self, X: Any, points: np.ndarray) -> Any:
        """Return some of the points."""
        return X[points]

    def against(self, Z: Any) -> Any:
        """Fix one side of the blocks to the rows of Z."""
        from zerogap.kernels.blocks import Columns

        return Columns(self, Z)

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self.against(validation.summed_up(Z)).block(validation.summed_up(X))

    def checked_values(self, X: Any, Z: Any) -> np.ndarray:
        """Return ``values``, refusing what is no matrix of numbers.

        Code that writes to its points, or like some of Cython takes none that it could not write to, gets copies.
        """
        X, Z = read_only(X), read_only(Z)
        try:
            values = self.values(X, Z)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            values = self.values(X.copy(), Z.copy())
        return validation.check_kernel_values(values, (X.shape[0], Z.shape[0]), self.name)

    def checked_diagonal(self, X: Any) -> np.ndarray:
        """Return ``diagonal``, refusing what is no number for every point, and values that depend on how they are asked for."""
        X = read_only(X if self.accepts_sparse else dense(X))
        found = validation.check_kernel_diagonal(self.diagonal(X), X.shape[0], self.name)
        if self.is_own and X.shape[0]:
            self._refuse_impossible(found)
            self._refuse_disagreement(X, found)
        return found

    def _refuse_impossible(self, diagonal: np.ndarray) -> None:
        """Refuse a diagonal with NaN in it, and a negative one of a kernel that is said to be positive semidefinite."""
        if np.isnan(diagonal).any():
            i = np.flatnonzero(np.isnan(diagonal))[0]
            raise ValueError(
                f"diagonal of the {self.name} kernel returned NaN for point {i}. Every point needs a number."
            )
        if self.is_positive and diagonal.min() < 0.0:
            raise ValueError(
                f"The {self.name} kernel has is_positive = True, and k(x, x) = {diagonal.min():g} for point "
                f"{diagonal.argmin()}. Leave is_positive out if it is no inner product, or correct its values."
            )

    @property
    def is_own(self) -> bool:
        """Whether values are computed by a user's code, of which nothing is known."""
        return type(self).against is Kernel.against and not self.is_precomputed

    def disagreement(self, X: Any, diagonal: np.ndarray) -> "Disagreement":
        """Return the largest difference between values of a few points that were computed in two ways.

        In a block and alone, as a fit, a prediction and the diagonal ask for them, and with the points exchanged.
        """
        chosen = np.unique(np.linspace(0, X.shape[0] - 1, FEW).astype(int))
        points, n = X[chosen], chosen.size
        with np.errstate(over="ignore", invalid="ignore"):
            block, alone = self.checked_values(points, points), self.checked_values(points[:1], points)
            a = self.magnitude(points, diagonal[chosen])
            other = np.stack([block.T, block, block])
            other[1, np.arange(n), np.arange(n)] = diagonal[chosen]
            other[2, 0] = alone[0]
            difference = np.abs(other - block)
            size = np.maximum(np.outer(a, a), np.maximum(np.abs(block), np.abs(other)))
            relative = np.where(difference > UNDERFLOW * (X.shape[1] + 2.0), difference / (UNIT * size), 0.0)
        relative[~np.isfinite(relative)] = 0.0  # values beyond float64 are refused elsewhere
        way, i, j = np.unravel_index(np.argmax(relative), relative.shape)
        return Disagreement(
            float(relative[way, i, j]), float(block[i, j]), float(other[way, i, j]), self._way(int(way))
        )

    def _way(self, number: int) -> str:
        """Return how the second of two values that should be the same was computed."""
        has_own_diagonal = type(self).diagonal is not Kernel.diagonal
        diagonal = "by its diagonal(X)" if has_own_diagonal else ALONE
        return ("with the points exchanged", diagonal, ALONE)[number]

    def _refuse_disagreement(self, X: Any, diagonal: np.ndarray) -> None:
        """Refuse values that differ by more than ``roundings`` allows; where it is not known, by more than float64 does."""
        stated = float(FLOAT64 / UNIT)
        if self.states_roundings:
            advice = "It is the error of a value in units roundoff, and may depend on the number d of features."
            name = f"roundings(d) of the {self.name} kernel"
            stated = validation.check_positive(name, self.roundings(X.shape[1]), zero=True, advice=advice)
        seen = self.disagreement(X, diagonal)
        if seen.units <= 2.02 * stated:  # either of the two may be off, and so are sizes, by a little
            return
        bound = f"the {stated:g} units roundoff of its roundings(d)" if self.states_roundings else "float64 rounds"
        raise ValueError(
            f"The {self.name} kernel gives {seen.value:.17g} for two points, and {seen.other:.17g} {seen.way}: they differ by "
            f"{seen.units * UNIT:.1e} of their size, more than {bound}. A kernel is symmetric, and the same number whenever it "
            "is asked for. If large numbers cancel in it, centre and scale the features; if it computes in float32, let it "
            "compute in float64, or say how far off it may be: roundings(d) of a subclass of zerogap.kernels.Kernel."
        )

    @property
    def states_roundings(self) -> bool:
        """Whether the class says itself how exact its values are."""
        return type(self).roundings is not Kernel.roundings

    def is_close(self, other: "Kernel") -> bool:
        """Whether two kernels have the same values; a gamma may have been computed from sparse or from dense points."""
        if type(self) is not type(other) or not is_dataclass(self):
            return self == other
        names = [field.name for field in fields(self) if field.compare]
        return all(_are_close(getattr(self, name), getattr(other, name)) for name in names)

    # Sums and products.

    __array_ufunc__ = None  # NumPy's numbers and arrays leave + and * to the kernel

    def __add__(self, other: Any) -> "Kernel":
        from zerogap.kernels.combined import Constant, Sum

        return Sum(self, Constant(other) if validation.is_number(other) else other)

    def __radd__(self, other: Any) -> "Kernel":
        from zerogap.kernels.combined import Constant, Sum

        return Sum(Constant(other) if validation.is_number(other) else other, self)

    def __mul__(self, other: Any) -> "Kernel":
        from zerogap.kernels.combined import Product, Scaled

        return Scaled(other, self) if validation.is_number(other) else Product(self, other)

    def __rmul__(self, other: Any) -> "Kernel":
        from zerogap.kernels.combined import Product, Scaled

        return Scaled(other, self) if validation.is_number(other) else Product(other, self)


def _are_close(a: Any, b: Any) -> bool:
    if isinstance(a, Kernel):
        return isinstance(b, Kernel) and a.is_close(b)
    if isinstance(a, float) and isinstance(b, float):
        return bool(np.isclose(a, b, rtol=CLOSE, atol=0.0))
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return bool(a == b)


class Disagreement(NamedTuple):
    """Two values that should be the same."""

    units: float  # their difference, in units roundoff of their size
    value: float
    other: float
    way: str  # in which the other was computed; the first is from a block


class Rounding(NamedTuple):
    """How far computed kernel values k_ij of n points can be off, u being the unit roundoff: by at most

        u (|k_ij| sum_k p_ki q_kj + sum_l r_li s_lj),  (p, q) = relative, (r, s) = absolute.

    Each term is a product of something of one point and something of the other, so that a bound on a sum over n points takes
    n steps, not n².  Sums and products of such bounds are again of this form.  What is of second order in u, and that sizes
    are themselves rounded, is left to a factor of 1.01, in ``Gram``.
    """

    magnitude: np.ndarray  # (n,) a, with |k_ij| <= a_i a_j
    relative: np.ndarray  # (2, k, n)
    absolute: np.ndarray  # (2, l, n)

    @classmethod
    def within(cls, magnitude: np.ndarray, roundings: float) -> "Rounding":
        """Return what holds for values that are off by so many units roundoff of the magnitudes."""
        size = (roundings * magnitude, magnitude)
        return cls(magnitude, np.empty((2, 0, magnitude.size)), np.stack(size)[:, None])

    def taken(self, points: np.ndarray) -> "Rounding":
        """Return that of some points, nothing for a new one, whose number is -1."""
        if points.size and points.min() >= 0:
            return Rounding(*(part[..., points] for part in self))
        return Rounding(*(np.where(points >= 0, part[..., points], 0.0) for part in self))

    def joined(self, other: "Rounding") -> "Rounding":
        """Return what holds for values of either of two matrices of the same points."""
        return Rounding(*map(np.maximum, self, other))

    def plus(self, other: "Rounding") -> "Rounding":
        """Return that of the sum of two kernels, which is itself rounded."""
        magnitude = np.hypot(self.magnitude, other.magnitude)  # Cauchy and Schwarz
        parts = [part for one in (self, other) for part in (one.relative * one.magnitude, one.absolute)]
        return Rounding(magnitude, np.ones((2, 1, magnitude.size)), np.concatenate(parts, axis=1))

    def times(self, other: "Rounding", d: int) -> "Rounding":
        """Return that of the product of two kernels: what either is off counts as often as the other is large.

        And so does what either has lost below the normal numbers.
        """
        a, b = self.magnitude, other.magnitude
        lost = UNDERFLOW * (d + 2.0) / UNIT
        relative = (self.relative, other.relative, np.ones((2, 1, a.size)))
        underflow = [np.stack([lost * size, size])[:, None] for size in (a, b)]
        absolute = (self.absolute * b, other.absolute * a, *underflow)
        return Rounding(a * b, np.concatenate(relative, axis=1), np.concatenate(absolute, axis=1))


def dense(X: Any) -> Any:
    """Return points as an array."""
    return X.toarray() if sp.issparse(X) else X


def read_only(X: Any) -> Any:
    """Return points that code of a user's may read, but not write to."""
    if not (X.data if sp.issparse(X) else X).flags.writeable:
        return X
    if sp.issparse(X):
        X = X if X.has_sorted_indices else X.sorted_indices()  # or whoever needs them sorted would try to write
        view = type(X)((X.data.view(), X.indices.view(), X.indptr.view()), shape=X.shape, copy=False)
        for part in (view.data, view.indices, view.indptr):
            part.flags.writeable = False
        return view
    X = X.view()
    X.flags.writeable = False
    return X


def dense_if_cheap(X: Any) -> Any:
    """Return sparse points as an array if that makes products faster."""
    return X.toarray() if sp.issparse(X) and is_dense_cheap(X) else X


def is_dense_cheap(X: Any) -> bool:
    """Whether sparse points are better made dense: few columns, or many entries."""
    n, d = X.shape
    return 8 * n * d <= DENSE_BYTES and (d <= 256 or X.nnz >= 0.1 * n * d)
