"""Kernels: objects that compute blocks of kernel values, and know how far rounding can have put them off."""

from zerogap.kernels.base import UNDERFLOW, UNIT, Kernel, Rounding, dense_if_cheap
from zerogap.kernels.blocks import Columns, all_finite
from zerogap.kernels.combined import Constant, Product, Scaled, Sum
from zerogap.kernels.given import Function, Precomputed
from zerogap.kernels.naming import NAMES, as_kernel, is_precomputed
from zerogap.kernels.products import Linear, Polynomial, Sigmoid, centre_of
from zerogap.kernels.radial import RBF
from zerogap.kernels.scale import gamma_value

__all__ = [
    "NAMES",
    "RBF",
    "UNDERFLOW",
    "UNIT",
    "Columns",
    "Constant",
    "Function",
    "Kernel",
    "Linear",
    "Polynomial",
    "Precomputed",
    "Product",
    "Rounding",
    "Scaled",
    "Sigmoid",
    "Sum",
    "all_finite",
    "as_kernel",
    "centre_of",
    "dense_if_cheap",
    "gamma_value",
    "is_precomputed",
]
