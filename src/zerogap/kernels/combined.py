"""Sums and products of kernels, which are kernels; positive semidefinite ones if their parts are (Schur)."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap import precision, validation
from zerogap.kernels.base import UNDERFLOW, UNIT, Kernel, Rounding
from zerogap.kernels.blocks import Columns


@dataclass(frozen=True)
class Constant(Kernel):
    """The same number for any two points, such as tau² of a constant feature tau.

    Attributes
    ----------
    value : float
        The number, of at least 0.

    Examples
    --------
    >>> from zerogap.kernels import Constant, Linear
    >>> Linear() + 1.0 == Linear() + Constant(1.0)
    True
    """

    value: float

    is_positive = True
    is_radial = True
    knows_diagonal = True
    accepts_sparse = True
    can_share = True

    def __post_init__(self) -> None:
        advice = "A negative constant is no inner product."
        object.__setattr__(self, "value", validation.check_positive("value", self.value, zero=True, advice=advice))

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.value:g}"

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return np.full((X.shape[0], Z.shape[0]), self.value)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        return np.full(X.shape[0], self.value)

    def roundings(self, d: int) -> float:
        """Return zero: it is what it is."""
        return 0.0

    def precise_roundings(self, d: int) -> float:
        """Return c: a sum of coefficients as a pair, and one product."""
        return 8.0

    def precise_work(self, rows: int, columns: int, d: int) -> int:
        """Return zero: no coordinate is read."""
        return 0

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return value sum_j beta_j, for every row of X."""
        total = math.fsum(beta)
        rest = math.fsum([*beta, -total])
        high, low = precision.scaled(np.array([total]), np.array([rest]), self.value)
        return np.repeat(high, X.shape[0]), np.repeat(low, X.shape[0])


@dataclass(frozen=True)
class Scaled(Kernel):
    """A positive number times a kernel.

    Attributes
    ----------
    factor : float
        The number.
    kernel : Kernel
        What it multiplies.

    Examples
    --------
    >>> from zerogap.kernels import RBF
    >>> 2.0 * RBF(0.5)
    Scaled(factor=2.0, kernel=RBF(gamma=0.5))
    """

    factor: float
    kernel: Kernel

    accepts_sparse = True

    def __post_init__(self) -> None:
        advice = "With a factor that is not positive it is no inner product."
        object.__setattr__(self, "factor", validation.check_positive("factor", self.factor, advice=advice))
        _check_part(self, self.kernel)

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"{self.factor:g} * {_in_brackets(self.kernel)}"

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite."""
        return self.kernel.is_positive

    @property
    def can_share(self) -> bool:
        """Whether threads may compute values at the same time."""
        return self.kernel.can_share

    @property
    def is_radial(self) -> bool:
        """Whether k(x, z) depends on |x - z| alone and nowhere grows with it."""
        return self.kernel.is_radial

    @property
    def knows_diagonal(self) -> bool:
        """Whether k(x, x) takes no work."""
        return self.kernel.knows_diagonal

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "Scaled":
        """Return the kernel with its parameters as numbers."""
        return Scaled(self.factor, self.kernel.resolved(X, weight))

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self(X, Z)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        return self.factor * self.kernel.checked_diagonal(X)

    def against(self, Z: Any) -> "ScaledColumns":
        """Fix one side of the blocks to the rows of Z."""
        return ScaledColumns(self, Z)

    def precise_roundings(self, d: int) -> float | None:
        """Return c: a value within ``precisely`` is off by at most 2 c u² times ``magnitude`` of both points."""
        own = self.kernel.precise_roundings(d)
        return None if own is None else own + 8.0

    @property
    def gain(self) -> float:
        """By how much is multiplied what ``precisely`` loses below the normal numbers."""
        return max(1.0, self.factor) * self.kernel.gain

    def precise_work(self, rows: int, columns: int, d: int) -> int:
        """Return about how many coordinates ``precisely`` reads."""
        return self.kernel.precise_work(rows, columns, d)

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return sum_j beta_j k(x_i, z_j) for every row of X, in twice the precision."""
        return precision.scaled(*self.kernel.precisely(X, Z, beta), self.factor)


class ScaledColumns(Columns):
    """Values of a kernel times a number."""

    kernel: Scaled

    def __init__(self, kernel: Scaled, Z: Any):
        self._part = kernel.kernel.against(Z)
        super().__init__(kernel, Z)

    def prepare(self, X: Any) -> Any:
        """Return the points X in the form that ``fill`` takes."""
        return self._part.prepare(X)

    def _prepare(self, X: Any) -> Any:
        return self._part.points

    def write(self, rows: Any, columns: Any, out: np.ndarray) -> None:
        """Write the kernel values of prepared points against some of ``points`` into ``out``, an array in one piece."""
        self._part.write(rows, columns, out)
        out *= self.kernel.factor

    def rounding(self, diagonal: np.ndarray) -> Rounding:
        """Return how far values between the points of Z can be off: one rounding more."""
        own, factor, n = (
            self._part.rounding(self._part.kernel.checked_diagonal(self._Z)),
            self.kernel.factor,
            len(diagonal),
        )
        lost = UNDERFLOW * (self._Z.shape[1] + 2.0) / UNIT * factor  # below the normal numbers
        magnitude, one = np.sqrt(factor) * own.magnitude, np.ones((1, n))
        relative = np.concatenate([own.relative, np.stack([one, one])], axis=1)
        absolute = [own.absolute[0] * factor, lost * one], [own.absolute[1], one]
        return Rounding(magnitude, relative, np.stack([np.concatenate(side) for side in absolute]))


@dataclass(frozen=True)
class _Pair(Kernel):
    """Two kernels, joined."""

    left: Kernel
    right: Kernel

    accepts_sparse = True

    def __post_init__(self) -> None:
        for part in self.parts:
            _check_part(self, part)

    @property
    def parts(self) -> tuple[Kernel, Kernel]:
        """Both kernels."""
        return self.left, self.right

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite."""
        return all(part.is_positive for part in self.parts)

    @property
    def can_share(self) -> bool:
        """Whether threads may compute values at the same time."""
        return all(part.can_share for part in self.parts)

    @property
    def knows_diagonal(self) -> bool:
        """Whether k(x, x) takes no work."""
        return all(part.knows_diagonal for part in self.parts)

    def resolved(self, X: Any, weight: np.ndarray | None = None) -> "_Pair":
        """Return the kernel with its parameters as numbers."""
        return type(self)(*(part.resolved(X, weight) for part in self.parts))

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self(X, Z)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        return self.join(*(part.checked_diagonal(X).copy() for part in self.parts))

    def against(self, Z: Any) -> "PairColumns":
        """Fix one side of the blocks to the rows of Z."""
        return PairColumns(self, Z)

    def join(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the kernel's values from those of its parts, in the place of the first."""
        raise NotImplementedError

    def join_roundings(self, left: Rounding, right: Rounding, d: int) -> Rounding:
        """Return how far they can be off."""
        raise NotImplementedError


@dataclass(frozen=True)
class Sum(_Pair):
    """The sum of two kernels.

    Its parts keep their origins, a linear one too: points far from zero lose digits in it that ``Linear`` alone would keep.

    Attributes
    ----------
    left, right : Kernel
        Its parts.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import RBF, Linear
    >>> Gram([[0.0], [1.0]], RBF(0.0) + 2.0 * Linear()).full().tolist()
    [[1.0, 1.0], [1.0, 3.0]]
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        return " + ".join(part.name for part in self.parts)

    @property
    def is_radial(self) -> bool:
        """Whether k(x, z) depends on |x - z| alone and nowhere grows with it."""
        return all(part.is_radial for part in self.parts)

    def join(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the sum, in the place of the first."""
        left += right
        return left

    def join_roundings(self, left: Rounding, right: Rounding, d: int) -> Rounding:
        """Return how far values can be off."""
        return left.plus(right)

    def precise_roundings(self, d: int) -> float | None:
        """Return c: the larger one, as magnitudes add up, and one sum of pairs; None if a part has none."""
        left, right = (part.precise_roundings(d) for part in self.parts)
        return None if left is None or right is None else max(left, right) + 8.0

    @property
    def gain(self) -> float:
        """By how much is multiplied what ``precisely`` loses below the normal numbers."""
        return sum(part.gain for part in self.parts)

    def precise_work(self, rows: int, columns: int, d: int) -> int:
        """Return about how many coordinates ``precisely`` reads."""
        return sum(part.precise_work(rows, columns, d) for part in self.parts)

    def precisely(self, X: Any, Z: Any, beta: np.ndarray) -> precision.Pair:
        """Return sum_j beta_j k(x_i, z_j) for every row of X, in twice the precision."""
        (high, low), (other_high, other_low) = (part.precisely(X, Z, beta) for part in self.parts)
        precision.add_to(high, low, other_high)
        low += other_low
        return high, low


@dataclass(frozen=True)
class Product(_Pair):
    """The product of two kernels, value by value.

    Its values are not computed in twice the precision: certificates end where their rounding does.

    Attributes
    ----------
    left, right : Kernel
        Its parts.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import RBF, Linear
    >>> Gram([[1.0], [2.0]], RBF(0.0) * Linear()).full().tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    @property
    def name(self) -> str:
        """What messages call it."""
        return " * ".join(_in_brackets(part) for part in self.parts)

    def join(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return the product, in the place of the first."""
        left *= right
        return left

    def join_roundings(self, left: Rounding, right: Rounding, d: int) -> Rounding:
        """Return how far values can be off."""
        return left.times(right, d)


class PairPoints:
    """The points of two kernels, each in its own form."""

    def __init__(self, left: Any, right: Any):
        self.left, self.right = left, right

    def __getitem__(self, rows: Any) -> "PairPoints":
        return PairPoints(self.left[rows], self.right[rows])

    @property
    def size(self) -> int:
        """Number of points."""
        return self.left.size

    def part(self, a: int, b: int) -> "PairPoints":
        """Return the points from a to b."""
        return PairPoints(self.left.part(a, b), self.right.part(a, b))


class PairColumns(Columns):
    """Values of two kernels, joined."""

    kernel: _Pair

    def __init__(self, kernel: _Pair, Z: Any):
        self._parts = [part.against(Z) for part in kernel.parts]
        super().__init__(kernel, Z)

    def prepare(self, X: Any) -> PairPoints:
        """Return the points X in the form that ``fill`` takes."""
        return PairPoints(*(part.prepare(X) for part in self._parts))

    def _prepare(self, X: Any) -> PairPoints:
        return PairPoints(*(part.points for part in self._parts))

    def write(self, rows: PairPoints, columns: PairPoints, out: np.ndarray) -> None:
        """Write the kernel values of prepared points against some of ``points`` into ``out``, an array in one piece."""
        left, right = self._parts
        other = np.empty_like(out)
        left.write(rows.left, columns.left, out)
        right.write(rows.right, columns.right, other)
        self.kernel.join(out, other)

    def rounding(self, diagonal: np.ndarray) -> Rounding:
        """Return how far values between the points of Z can be off."""
        left, right = (part.rounding(part.kernel.checked_diagonal(self._Z)) for part in self._parts)
        return self.kernel.join_roundings(left, right, self._Z.shape[1])


def _check_part(whole: Kernel, part: Any) -> None:
    expected = f"{type(whole).__name__} takes kernel objects, such as RBF(0.5)"
    if isinstance(part, type) and issubclass(part, Kernel):
        raise TypeError(f"{expected}; got the class {part.__name__}. Pass {part.__name__}(...).")
    if isinstance(part, str):
        raise TypeError(
            f"{expected}; got {part!r}. Names are for kernel= alone; here take the object, such as Linear()."
        )
    if callable(part) and not isinstance(part, Kernel):
        raise TypeError(f"{expected}; got {part!r}. Wrap a function of two sets of points as Function(f).")
    if not isinstance(part, Kernel):
        raise TypeError(f"{expected}, and + and * take numbers too; got {part!r} of type {type(part).__name__}.")
    if part.is_precomputed:
        raise TypeError(
            f"{expected}; a precomputed kernel has no points to share. Add or multiply the matrices themselves."
        )


def _in_brackets(kernel: Kernel) -> str:
    return f"({kernel.name})" if isinstance(kernel, Sum) else kernel.name
