"""Kernels: blocks of kernel values between two sets of points, by one matrix product and one pass over the result."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import row_norms

from zerogap import validation

NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")

# A block of this many doubles stays in a core's own cache between the product and the exponential.
TILE = 65536


def gamma_value(gamma: float | str, X: Any, weight: np.ndarray | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (d var(X)), "auto" is 1 / d; in var(X) a row of weight two counts twice."""
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = _variance(X, np.ones(X.shape[0]) if weight is None else weight)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    return float(gamma)


def _variance(X: Any, weight: np.ndarray) -> float:
    """Return the variance of all entries of X."""
    entries = weight.sum() * X.shape[1]
    if sp.issparse(X):
        mean = float((weight @ X).sum()) / entries
        return float((weight @ X.multiply(X)).sum()) / entries - mean**2
    mean = float(weight @ X.sum(axis=1)) / entries
    return float(weight @ np.einsum("ij,ij->i", X - mean, X - mean)) / entries


@dataclass(frozen=True)
class Kernel:
    """A kernel function with its parameters fixed.

    linear <x, z>; poly (gamma <x, z> + coef0)^degree; rbf exp(-gamma |x - z|²); sigmoid tanh(gamma <x, z> + coef0);
    or a callable taking two sets of points and returning the matrix of their kernel values.  To each of them tau² is
    added: a constant feature tau, whose weight is a bias that counts in |f|² (Remark 7.4 of chapter7).
    """

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    function: Callable[[Any, Any], np.ndarray] | None = None
    tau: float = 0.0

    @property
    def is_positive(self) -> bool:
        """Whether every kernel matrix is known to be positive semidefinite."""
        return self.name in ("linear", "rbf") or (self.name == "poly" and self.gamma >= 0 and self.coef0 >= 0)

    def diagonal(self, X: Any) -> np.ndarray:
        """Return k(x, x) for every row of X."""
        if self.name == "rbf":
            return np.full(X.shape[0], 1.0 + self.tau**2)
        if self.function is not None:
            pairs = (self.function(X[i : i + 1], X[i : i + 1]) for i in range(X.shape[0]))
            values = [validation.check_kernel_values(value, (1, 1)).item() for value in pairs]
            return np.array(values) + self.tau**2
        return self._finish(row_norms(X, squared=True).astype(np.float64))

    def against(self, Z: Any) -> "Columns":
        """Fix one side of the blocks to the rows of Z."""
        return Columns(self, Z)

    def __call__(self, X: Any, Z: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        return self.against(Z).block(X)

    def _finish(self, products: np.ndarray) -> np.ndarray:
        """Turn inner products (for rbf: exponents) into kernel values, in place."""
        if self.name == "rbf":
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


class Columns:
    """Kernel values of any points against a fixed set Z, prepared once.

    For rbf on dense data the exponent -gamma |x - z|² = 2 gamma <x, z> - gamma |x|² - gamma |z|² is one product of
    vectors with two more entries.  Points are first moved to the mean of Z: the kernel does not change, while the
    rounding error of the expansion, which grows with |x|², gets as small as it can.
    """

    def __init__(self, kernel: Kernel, Z: Any):
        self.kernel, self.Z = kernel, Z
        self._is_sparse = sp.issparse(Z)
        if kernel.name != "rbf" or kernel.function is not None:
            return
        if self._is_sparse:
            self._squares = kernel.gamma * row_norms(Z, squared=True)
        else:
            self._centre = Z.mean(axis=0)
            self._lifted = self._lift(Z, is_column=True)

    def prepare(self, X: Any) -> Any:
        """Return the points X in the form that ``fill`` takes: done once, it need not be done for every block."""
        if self.kernel.name == "rbf" and not self._is_sparse:
            return self._lift(X, is_column=False)
        return X

    def _lift(self, X: np.ndarray, is_column: bool) -> np.ndarray:
        gamma, d = self.kernel.gamma, X.shape[1]
        lifted = np.empty((X.shape[0], d + 2))
        centred = np.subtract(X, self._centre, out=lifted[:, :d])
        lifted[:, d + is_column] = -gamma * np.einsum("ij,ij->i", centred, centred)
        lifted[:, d + (not is_column)] = 1.0
        centred *= np.sqrt(2.0 * gamma)
        return lifted

    def block(self, X: Any) -> np.ndarray:
        """Return the (len X, len Z) matrix of kernel values."""
        out = np.empty((X.shape[0], self.Z.shape[0]))
        self.fill(self.prepare(X), out)
        return out

    def fill(self, prepared: Any, out: np.ndarray) -> None:
        """Write the kernel values of prepared points into ``out``."""
        kernel = self.kernel
        if kernel.function is not None:
            out[...] = validation.check_kernel_values(kernel.function(prepared, self.Z), out.shape)
            out += kernel.tau**2
            return
        if kernel.name == "rbf" and not self._is_sparse:
            np.matmul(prepared, self._lifted.T, out=out)
        elif self._is_sparse or sp.issparse(prepared):
            product = prepared @ self.Z.T
            out[...] = product.toarray() if sp.issparse(product) else product
            if kernel.name == "rbf":
                out *= 2.0 * kernel.gamma
                out -= self._squares
                out -= kernel.gamma * row_norms(prepared, squared=True)[:, None]
        else:
            np.matmul(prepared, self.Z.T, out=out)
        rows = max(1, TILE // max(1, out.shape[1]))
        for start in range(0, out.shape[0], rows):
            kernel._finish(out[start : start + rows])


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
