"""How hot loops are compiled: one decorator, and two reductions that vectorise.

LLVM turns ``max``/``min`` on floats into compare-and-branch unless told that NaN and signed zero do not matter, and a
division blocks vectorisation while Python's ZeroDivisionError has to be kept.  ``jit`` and ``fmax``/``fmin`` settle
both: a pass over n points then costs what it costs in C.  Infinite values must not reach ``fmax``/``fmin``:
sentinels are ``HUGE``, which is finite.
"""

from collections.abc import Callable
from typing import Any

from numba import config, njit, types
from numba.extending import intrinsic

HUGE = 1e300  # stands for infinity where fast-math flags forbid the real one


def jit(function: Callable[..., Any]) -> Any:
    """Compile on first use, for this machine's instruction set, and keep the result on disk."""
    return njit(cache=True, error_model="numpy")(function)


def jit_sums(function: Callable[..., Any]) -> Any:
    """Compile a function whose sums may run in any order, so that they vectorise."""
    return njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})(function)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a small helper that is only called from other compiled functions."""
    return njit(cache=True, error_model="numpy", inline="never")(function)


if config.DISABLE_JIT:
    fmax, fmin = max, min
else:  # the compiled pair cannot be stepped through, hence the plain one above
    from llvmlite import ir

    def _reduction(name: str) -> Any:
        def signature(typing_context: Any, a: Any, b: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                double = ir.DoubleType()
                function = builder.module.declare_intrinsic(name, [double], ir.FunctionType(double, [double, double]))
                return builder.call(function, args, fastmath=("nnan", "ninf", "nsz", "reassoc"))

            return types.float64(types.float64, types.float64), generate

        return intrinsic(signature)

    fmax = _reduction("llvm.maxnum")
    fmin = _reduction("llvm.minnum")
