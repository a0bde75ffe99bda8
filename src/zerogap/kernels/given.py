"""Kernels whose values are the user's: a function, or the matrix itself."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.kernels.base import Kernel


@dataclass(frozen=True)
class Function(Kernel):
    """A function of two sets of points that returns the matrix of their kernel values.

    Attributes
    ----------
    function : callable
        Called as ``function(X, Z)`` with points in the rows of arrays or CSR matrices, to be read only; it returns the
        (len X, len Z) matrix of k(x, z).

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import RBF, Function
    >>> Gram([[0.0], [1.0]], Function(lambda X, Z: X @ Z.T) + RBF(0.0)).full().tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """

    function: Callable[[Any, Any], np.ndarray]

    name = "callable"
    accepts_sparse = True  # it sees the points as they are

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise TypeError(f"Function takes a function of two sets of points; got {self.function!r}.")

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Return what the function returns."""
        return self.function(X, Z)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The kernel matrix itself is given in place of points: (n, n) to fit, (m, n) to predict.

    Attributes
    ----------
    is_precomputed : bool
        True.

    Examples
    --------
    >>> from zerogap import Gram
    >>> from zerogap.kernels import Precomputed
    >>> Gram([[2.0, 1.0], [1.0, 2.0]], Precomputed()).row(0).tolist()
    [2.0, 1.0]
    """

    name = "precomputed"
    is_precomputed = True
    knows_diagonal = True

    def values(self, X: Any, Z: Any) -> np.ndarray:
        """Refuse: there are no points to compare."""
        raise TypeError("A precomputed kernel has no values but those of its matrix; pass a kernel that is a function.")

    def checked(self, X: Any) -> np.ndarray:
        """Return a kernel matrix that is square, symmetric and positive semidefinite."""
        return validation.check_precomputed(X)

    def taken(self, X: Any, points: np.ndarray) -> np.ndarray:
        """Return the matrix of some of the points."""
        return X[np.ix_(points, points)]

    def diagonal(self, X: Any) -> np.ndarray:
        """Return the diagonal of the matrix."""
        return np.diagonal(X).copy()

    def magnitude(self, X: Any, diagonal: np.ndarray) -> np.ndarray:
        """Return a with |k(x_i, x_j)| <= a_i a_j; the matrix may be slightly indefinite."""
        return np.sqrt(np.abs(diagonal) + 1e-9 * np.abs(diagonal).max())

    def roundings(self, d: int) -> float:
        """Return zero: the values are what the user says they are."""
        return 0.0
