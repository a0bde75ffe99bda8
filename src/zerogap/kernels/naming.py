"""Kernels by their names: the one place where a name becomes an object."""

from collections.abc import Callable
from typing import Any

from zerogap import validation
from zerogap.kernels.base import Kernel
from zerogap.kernels.given import Function, Precomputed
from zerogap.kernels.products import Linear, Polynomial, Sigmoid
from zerogap.kernels.radial import RBF
from zerogap.kernels.scale import check_gamma

_NAMED: dict[str, Callable[[Any, Any, Any], Kernel]] = {
    "linear": lambda gamma, degree, coef0: Linear(),
    "poly": lambda gamma, degree, coef0: Polynomial(degree, gamma, coef0),
    "rbf": lambda gamma, degree, coef0: RBF(gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma, coef0),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}
NAMES = tuple(_NAMED)
_UNSET = {"gamma": "scale", "degree": 3, "coef0": 0.0}  # the defaults of everything that takes ``kernel``
_OF_MATRICES = {name for name, make in _NAMED.items() if make("scale", 3, 0.0).is_precomputed}


def as_kernel(kernel: Any, gamma: Any = "scale", degree: Any = 3, coef0: Any = 0.0) -> Kernel:
    """Return a kernel from its name and parameters, from a function of two sets of points, or as it is.

    The parameters are those of a kernel by name.  An object has its own, and none beside it; beside a function they mean
    nothing, as in scikit-learn: a grid of kernels and gammas may hold a function.

    Parameters
    ----------
    kernel : str, callable or Kernel
        "linear", "poly", "rbf", "sigmoid" or "precomputed", a function, or an object.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid: a number, "scale" or "auto".
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.

    Returns
    -------
    Kernel
        The object; a gamma that is a word is resolved when the kernel meets its points.

    Examples
    --------
    >>> from zerogap.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.5)
    RBF(gamma=0.5)
    """
    check_gamma(gamma)
    validation.check_degree(degree)
    validation.check_coef0(coef0)
    if isinstance(kernel, str) and kernel in _NAMED:
        return _NAMED[kernel](gamma, degree, coef0)
    if isinstance(kernel, Kernel):
        _refuse_parameters(kernel, gamma=gamma, degree=degree, coef0=coef0)
        return _whole(kernel)
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise TypeError(
            f"kernel must be a kernel object; got the class {kernel.__name__}. Pass {kernel.__name__}(...)."
        )
    if callable(kernel):
        return Function(kernel)
    names = ", ".join(map(repr, NAMES))
    raise ValueError(
        f"Unknown kernel {kernel!r}. Choose one of {names}, or pass a function of two sets of points or a kernel object, such "
        "as zerogap.kernels.RBF(0.5); a kernel of your own is a subclass of zerogap.kernels.Kernel."
    )


def _refuse_parameters(kernel: Kernel, **beside: Any) -> None:
    """Refuse parameters beside an object: whoever gives them means something by it."""
    given = [f"{name}={value!r}" for name, value in beside.items() if value != _UNSET[name]]
    if given:
        raise ValueError(
            f"{' and '.join(given)} beside kernel={kernel!r} would have no effect: they are for kernels by name, and this one "
            "has its own parameters. Set them there, as in RBF(gamma=0.5), and leave them out here."
        )


def _whole(kernel: Kernel) -> Kernel:
    """Refuse a kernel without values."""
    kind = type(kernel)
    if kind.values is Kernel.values and kind.against is Kernel.against:
        raise TypeError(
            f"{kind.__name__} has no values: a subclass of Kernel needs a method values(self, X, Z) that returns the "
            "(len X, len Z) matrix of kernel values."
        )
    return kernel


def is_precomputed(kernel: Any) -> bool:
    """Whether a parameter stands for a kernel matrix; what is no kernel at all is refused elsewhere."""
    return kernel in _OF_MATRICES if isinstance(kernel, str) else isinstance(kernel, Kernel) and kernel.is_precomputed
