"""How hot loops are compiled: one decorator, and two reductions that vectorise.

LLVM turns ``max``/``min`` on floats into compare-and-branch unless told that NaN and signed zero do not matter, and a
division blocks vectorisation while Python's ZeroDivisionError has to be kept.  ``jit`` and ``fmax``/``fmin`` avoid
both: a pass over n points then costs what it costs in C.  Infinite values must not reach ``fmax``/``fmin``:
sentinels are ``HUGE``, which is finite.

Machine code is kept on disk where a folder can be written, beside the sources or in the user's cache, else in memory only.
"""

import hashlib
import math
import pickle
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import config, njit, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher
from numba.extending import intrinsic

from zerogap import compiler, lowering
from zerogap.compiler import EntryCompiler, EntryLibrary, HelperCompiler, HelperLibrary, made_as

TURNED = 8  # rows and columns of a square that is turned over in registers; a power of two
HUGE = 1e300  # stands for infinity where fast-math flags forbid the real one
NO_POINT = -2  # no index: a search that found none.  Not -1, which is the origin of the pair solvers.

# How a file of the cache fails that a crash has cut off, or that names a record which an older version had.
UNREADABLE = (EOFError, pickle.UnpicklingError, AttributeError, ImportError)


SUMS = {"reassoc", "contract", "nsz"}  # they may run in any order, so that they vectorise


def jit(function: Callable[..., Any]) -> Any:
    """Compile on first use, for this machine's instruction set, and keep the result on disk."""
    return _entry(function, fastmath=False)


def jit_sums(function: Callable[..., Any]) -> Any:
    """Compile a function whose sums may run in any order, so that they vectorise."""
    return _entry(function, fastmath=SUMS)


def jit_contracted(function: Callable[..., Any]) -> Any:
    """Compile a function that may multiply and add with one rounding instead of two; sums keep their order."""
    return _entry(function, fastmath={"contract"})


# Helpers that are only called from other compiled functions: to be called from Python takes time to compile, too.


def inline(function: Callable[..., Any]) -> Any:
    """Compile a helper."""
    return _helper(function, fastmath=False, inline="never")


def inline_sums(function: Callable[..., Any]) -> Any:
    """Compile a helper whose sums may run in any order."""
    return _helper(function, fastmath=SUMS)


def inline_contracted(function: Callable[..., Any]) -> Any:
    """Compile a helper that may multiply and add with one rounding."""
    return _helper(function, fastmath={"contract"})


class _Helper(CPUDispatcher):
    """Without a way in from Python, a call from there would end the process."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a helper of compiled functions, and called from them only.")


class _Entry(CPUDispatcher):
    """A function that is called from Python; in compiled code its name stands for the helper."""

    helper: _Helper

    def get_call_template(self, args: Any, kws: Any) -> Any:
        return self.helper.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.helper.get_overload(sig)

    @classmethod
    def _rebuild(cls, uuid: str, py_func: Any, locals: Any, targetoptions: Any, can_compile: bool, sigs: Any) -> Any:
        with suppress(KeyError):
            return cls._memo[uuid]
        entry = _entry(py_func, fastmath=targetoptions["fastmath"])
        entry._set_uuid(uuid)
        return entry


def _helper(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:
        return function
    helper = _compiled(function, HelperLibrary, no_cpython_wrapper=True, **options)
    helper.__class__ = _Helper
    helper._compiler.__class__ = HelperCompiler
    return helper


def _entry(function: Callable[..., Any], **options: Any) -> Any:
    if config.DISABLE_JIT:
        return function
    entry = _compiled(function, EntryLibrary, **options)
    entry.__class__ = _Entry
    entry._compiler.__class__ = EntryCompiler
    entry.helper = entry._compiler.helper = _helper(function, **options)
    return entry


def _compiled(function: Callable[..., Any], library_class: type, **options: Any) -> Any:
    # Where fastmath is left open Numba takes that of the caller that comes first, and keeps the result for all others: the
    # last digits would depend on the order of calls.
    dispatcher = njit(error_model="numpy", nogil=True, no_cfunc_wrapper=True, **options)(function)
    with suppress(RuntimeError):  # no folder can be written: the code stays in memory
        dispatcher._cache = _DiskCache(function, library_class)
    return dispatcher


class _DiskCache(FunctionCache):
    """Numba's cache, except that a disk that fails costs time only, and that the code of callees counts.

    Numba asks whether the file of a function has changed.  Its machine code also holds that of the functions it calls, the
    constants it reads and the places of the fields it uses, from other modules: they are part of the question here.
    """

    def __init__(self, function: Callable[..., Any], library_class: type):
        super().__init__(function)
        self.library_class = library_class
        self.stamp = _stamp(function, self._impl.locator.get_source_stamp())
        ending = ".helper" if library_class is HelperLibrary else ""
        self._cache_file = _CacheFiles(self._cache_path, self._impl.filename_base + ending, self.stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with suppress(OSError), made_as(self.library_class, target_context.codegen()):
            return super().load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(OSError):
            super().save_overload(
                sig, data._replace(type_annotation="")
            )  # a listing of the source that takes long to write


class _CacheFiles(IndexDataCacheFile):
    """The index of a function's signatures, and a data file for each, named after it.

    Numba numbers the data files: two processes that compile two signatures at once may write both into file 1.
    """

    def load(self, key: Any) -> Any:
        with suppress(*UNREADABLE):  # compile again
            return super().load(key)

    def save(self, key: Any, data: Any) -> None:
        name = self._data_name(int(hashlib.sha256(repr(key).encode()).hexdigest()[:12], 16))
        self._save_data(name, data)
        self._save_index(self._load_index() | {key: name})

    def _load_index(self) -> dict[Any, str]:
        with suppress(*UNREADABLE):
            return super()._load_index()
        return {}


def _stamp(function: Callable[..., Any], own: Any) -> str:
    """Return a digest of a function's file, of this one, and of what its module imports and its code may use.

    That is compiled functions, constants and the fields of named tuples, by themselves or with their module.
    """
    parts, names = [repr(own), _OWN_SOURCE], function.__globals__
    package = _top_package(names)
    for name, value in sorted(names.items()):
        parts += _part(name, value)
        if isinstance(value, ModuleType) and _top_package(vars(value)) == package:
            for inner, inner_value in sorted(vars(value).items()):
                parts += _part(f"{name}.{inner}", inner_value)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _top_package(names: dict[str, Any]) -> str:
    return str(names.get("__package__")).partition(".")[0]


def _part(name: str, value: Any) -> list[str]:
    if isinstance(cache := getattr(value, "_cache", None), _DiskCache):
        return [f"{name} {cache.stamp}"]
    if isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
        return [f"{name} {value._fields}"]
    if isinstance(value, int | float) or (isinstance(value, str) and "__" not in name):
        return [f"{name} {value!r}"]
    return []


# ``fmax`` and the like are inlined as well.
_OWN_FILES = [Path(name) for name in (__file__, compiler.__file__, lowering.__file__)]
_OWN_SOURCE = "".join(file.read_text() for file in _OWN_FILES if file.exists())

if config.DISABLE_JIT:
    fmax, fmin = max, min

    def prefetch(address: int) -> None:
        """Nothing to be done: memory is read when it is."""

    def popcount(word: Any) -> Any:
        """Return how many bits of a word of 64 are set."""
        return type(word)(int(word).bit_count())

    def turn_block(source: Any, i: int, j: int, target: Any, k: int, m: int) -> None:
        """Write the square of ``TURNED`` rows that begins at source[i, j], turned over, to where target[k, m] is."""
        target[k : k + TURNED, m : m + TURNED] = source[i : i + TURNED, j : j + TURNED].T

    def fma(a: float, b: float, c: float) -> float:
        """Return a b + c, rounded once."""
        return float(Fraction(a) * Fraction(b) + Fraction(c)) if math.isfinite(a * b + c) else a * b + c

else:  # the compiled ones cannot be stepped through, hence the plain ones above
    from llvmlite import ir

    def _intrinsic(name: str, count: int, flags: tuple[str, ...] = ()) -> Any:
        """Return an instruction on so many numbers."""
        double, numbers = ir.DoubleType(), [types.float64] * count

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(double, [double] * count)
            return builder.call(builder.module.declare_intrinsic(name, [double], kind), args, fastmath=flags)

        if count == 2:
            return intrinsic(lambda typing_context, a, b: (types.float64(*numbers), generate))
        return intrinsic(lambda typing_context, a, b, c: (types.float64(*numbers), generate))

    fmax = _intrinsic("llvm.maxnum", 2, ("nnan", "ninf", "nsz", "reassoc"))
    fmin = _intrinsic("llvm.minnum", 2, ("nnan", "ninf", "nsz", "reassoc"))
    fma = _intrinsic("llvm.fma", 3)

    @intrinsic
    def popcount(typing_context: Any, word: Any) -> Any:
        """Return how many bits of a word of 64 are set."""
        return types.uint64(types.uint64), lambda context, builder, signature, args: builder.ctpop(args[0])

    @intrinsic
    def turn_block(typing_context: Any, source: Any, i: Any, j: Any, target: Any, k: Any, m: Any) -> Any:
        """Write the square of ``TURNED`` rows that begins at source[i, j], turned over, to where target[k, m] is.

        Both are arrays in one piece, the source of float64.  Number by number each costs a read and a write; in registers, a
        fraction of them.
        """
        number, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), TURNED)
        is_short = target.dtype == types.float32
        written = ir.VectorType(ir.FloatType(), TURNED) if is_short else vector

        def shuffled(builder: Any, a: Any, b: Any, places: list[int]) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), TURNED), places)
            return builder.shuffle_vector(a, b, mask)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def rows_from(which: int, row: Any, column: Any, kind: Any, size: int) -> list[Any]:
                """Return where the rows of the square begin."""
                array = context.make_array(signature.args[which])(context, builder, args[which])
                step, address = builder.extract_value(array.strides, 0), builder.ptrtoint(array.data, number)
                offset = builder.add(builder.mul(row, step), builder.mul(column, number(size)))
                begin = builder.add(address, offset)
                places = [builder.add(begin, builder.mul(step, number(row))) for row in range(TURNED)]
                return [builder.inttoptr(place, kind.as_pointer()) for place in places]

            rows, half = [builder.load(place, align=8) for place in rows_from(0, args[1], args[2], vector, 8)], 1
            while (
                half < TURNED
            ):  # squares of two, four, ... rows: their upper right quarter changes place with the lower left
                for a in range(TURNED):
                    if not a & half:
                        upper, lower = rows[a], rows[a + half]
                        left = [c + TURNED - half if c & half else c for c in range(TURNED)]
                        right = [c + TURNED if c & half else c + half for c in range(TURNED)]
                        rows[a] = shuffled(builder, upper, lower, left)
                        rows[a + half] = shuffled(builder, upper, lower, right)
                half *= 2
            size = 4 if is_short else 8
            for row, place in zip(rows, rows_from(3, args[4], args[5], written, size), strict=True):
                builder.store(builder.fptrunc(row, written) if is_short else row, place, align=size)
            return context.get_dummy_value()

        integers = types.int64, types.int64
        return types.void(source, *integers, target, *integers), generate

    @intrinsic
    def prefetch(typing_context: Any, address: Any) -> Any:
        """Ask for the piece of memory at an address, which is read soon; nothing waits for it."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
            wanted = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
            builder.call(wanted, [builder.inttoptr(args[0], byte), number(0), number(3), number(1)])
            return context.get_dummy_value()

        return types.void(types.int64), generate
