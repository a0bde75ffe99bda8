"""How Numba writes LLVM's code, with less of it: a third of the time of a first call goes into code that LLVM removes again.

Numba copies an array's fields to the stack to read one of them, and keeps there every variable that more than one block uses,
such as each record of arrays that is an argument.  Here values stay values where one assignment comes before all uses, and an
element is an address and a load.
"""

import copy
import operator
from collections.abc import Hashable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core import ir as numba_ir
from numba.core.analysis import must_use_alloca
from numba.core.compiler_machinery import register_pass
from numba.core.cpu import CPUContext
from numba.core.imputils import impl_ret_borrowed
from numba.core.ir_utils import compute_cfg_from_blocks
from numba.core.lowering import Lower
from numba.core.pythonapi import NativeValue, PythonAPI
from numba.core.typed_passes import NativeLowering

FIELDS = ("meminfo", "parent", "nitems", "itemsize", "data", "shape", "strides")
NITEMS, DATA, SHAPE, STRIDES = 2, 4, 5, 6

# Statements other than assignments; those of other libraries may assign as well.
PLAIN = (
    numba_ir.Branch, numba_ir.Del, numba_ir.DelAttr, numba_ir.DelItem, numba_ir.Jump, numba_ir.PopBlock, numba_ir.Print,
    numba_ir.Return, numba_ir.SetAttr, numba_ir.SetItem, numba_ir.StaticRaise, numba_ir.StaticSetItem,
)  # fmt: skip

# Expressions whose value is made of others, or a part or a view of them.
VIEWS = {"build_tuple", "call", "cast", "exhaust_iter", "getattr", "getitem", "static_getitem", "typed_getitem"}


class _Builder(ir.IRBuilder):
    """Writes no instruction for what is known already."""

    def extract_value(self, agg: Any, idx: Any, name: str = "") -> Any:
        places = [idx] if isinstance(idx, int) else list(idx)
        while places:
            part, agg = _part(agg, places[0])
            if part is None:
                return super().extract_value(agg, places, name)
            agg = part
            del places[0]
        return agg

    def mul(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        if _is(lhs, 1):
            return rhs
        return lhs if _is(rhs, 1) else super().mul(lhs, rhs, name, flags)

    def add(self, lhs: Any, rhs: Any, name: str = "", flags: Any = ()) -> Any:
        if _is(lhs, 0):
            return rhs
        return lhs if _is(rhs, 0) else super().add(lhs, rhs, name, flags)


def _is(value: Any, number: int) -> bool:
    return isinstance(value, ir.Constant) and isinstance(value.type, ir.IntType) and value.constant == number


def _part(whole: Any, place: int) -> tuple[Any, Any]:
    """Return a part of a structure if it is known which value was put there; else None, and what else it can be taken from."""
    while isinstance(whole, ir.instructions.InsertValue) and len(whole.indices) == 1:
        if whole.indices[0] == place:
            return whole.value, whole
        whole = whole.aggregate
    return None, whole


class _Lower(Lower):
    context: Any

    def setup_function(self, fndesc: Any) -> None:
        super().setup_function(fndesc)
        if type(self.builder) is ir.IRBuilder:
            self.builder.__class__ = _Builder

    def _find_singly_assigned_variable(self) -> None:
        """Also find the variables that are assigned once and used in other blocks, which the one of the assignment dominates.

        Those whose references are counted are left out: a slot that is deleted twice is empty at the second time.  References
        to what arguments hold need not be counted.
        """
        super()._find_singly_assigned_variable()
        self._borrowed: set[str] = set()
        if self.func_ir.func_id.is_generator:
            return
        once, models = _assigned_once(self.func_ir.blocks), self.context.data_model_manager
        if self.context.enable_nrt:
            holds = {name: models[self.typeof(name)].contains_nrt_meminfo() for name in once}
            self._borrowed = _borrowed(self.func_ir.blocks, self.fndesc.typemap, holds)
            self._without_counts = counting(self.context, False)
            once = {name for name in once if not holds[name] or name in self._borrowed}
        self._singly_assigned_vars |= once

    def lower_inst(self, inst: Any) -> None:
        if isinstance(inst, numba_ir.Del) and inst.value in self._borrowed:
            return
        if not (isinstance(inst, numba_ir.Assign) and inst.target.name in self._borrowed):
            super().lower_inst(inst)
            return
        context, self.context = self.context, self._without_counts
        try:
            super().lower_inst(inst)
        finally:
            self.context = context


def _assigned_once(blocks: dict[int, Any]) -> set[str]:
    """Return the variables with one assignment, in a block that dominates all others that use them."""
    homes: dict[str, int] = {}
    users: dict[str, set[int]] = {}
    several = set(must_use_alloca(blocks))
    for place, block in sorted(blocks.items()):
        for statement in block.body:
            if isinstance(statement, numba_ir.Assign):
                name = statement.target.name
                if name in homes or name in users:  # or used further up
                    several.add(name)
                homes[name] = place
            elif not isinstance(statement, PLAIN):
                return set()
            used = [statement.value] if isinstance(statement, numba_ir.Del) else [v.name for v in statement.list_vars()]
            for name in used:
                if homes.get(name) != place:
                    users.setdefault(name, set()).add(place)
    dominators = compute_cfg_from_blocks(blocks).dominators()
    return {
        name
        for name, home in homes.items()
        if name not in several and all(place > home and home in dominators[place] for place in users.get(name, ()))
    }


def _borrowed(blocks: dict[int, Any], typemap: dict[str, Any], holds: dict[str, bool]) -> set[str]:
    """Return those of some variables that hold arguments, parts or views of them: what these refer to outlives the call."""
    found: set[str] = set()
    returned = {
        block.terminator.value.name for block in blocks.values() if isinstance(block.terminator, numba_ir.Return)
    }

    def is_borrowed(value: Any) -> bool:
        if isinstance(value, numba_ir.Arg | numba_ir.Var):
            return isinstance(value, numba_ir.Arg) or value.name in found
        if not isinstance(value, numba_ir.Expr):
            return False
        if value.op in ("getitem", "typed_getitem") and not _is_view(typemap[value.index.name]):
            return False
        if value.op == "call" and (value.vararg or not isinstance(typemap[value.func.name], types.NamedTupleClass)):
            return False
        if value.op not in VIEWS:
            return False
        parts = [*value.args, *dict(value.kws).values()] if value.op == "call" else value.list_vars()
        return all(part.name in found or not is_counted(part.name) for part in parts)

    def is_counted(name: str) -> bool:
        return not isinstance(typemap[name], types.Number | types.Boolean | types.SliceType | types.BaseTuple) or (
            isinstance(typemap[name], types.BaseTuple) and holds.get(name, True)
        )

    for _, block in sorted(blocks.items()):
        for statement in block.find_insts(numba_ir.Assign):
            name = statement.target.name
            if (
                holds.get(name)
                and name not in returned
                and holds_arrays(typemap[name])
                and is_borrowed(statement.value)
            ):
                found.add(name)
    return found


def _is_view(index: Any) -> bool:
    """Whether what an index stands for is not copied."""
    kinds = index.types if isinstance(index, types.BaseTuple) else (index,)
    return all(isinstance(kind, types.Integer | types.SliceType) for kind in kinds)


def holds_arrays(kind: Any) -> bool:
    """Whether a type that holds arrays is one, a tuple of such, a method, or a loop over one."""
    if isinstance(kind, types.BaseTuple):
        return all(holds_arrays(part) or isinstance(part, types.Number | types.Boolean) for part in kind)
    return isinstance(kind, types.Array | types.BoundFunction | types.ArrayIterator)


def counting(context: Any, counts: bool) -> Any:
    """Return the target of code that counts references, or of code that does not."""
    context = context.subtarget(enable_nrt=counts)
    vars(context).pop("nrt", None)
    return context


class _Target(CPUContext):
    """Writes the code that reads and writes elements, rows and slices of arrays."""

    def get_function(self, fn: Any, sig: Any, _firstcall: bool = True) -> Any:
        key = fn.get_impl_key(sig.as_function()) if isinstance(fn, types.Callable) else fn
        write = WRITERS.get(key) if isinstance(key, Hashable) else None
        if write is not None and (found := write(self, sig)) is not None:
            return found
        return super().get_function(fn, sig, _firstcall)

    def get_getattr(self, typ: Any, attr: str) -> Any:
        if attr in ("shape", "size") and isinstance(typ, types.Array) and _has_fields(self, typ):
            place = SHAPE if attr == "shape" else NITEMS
            return lambda context, builder, typ, value, attr: builder.extract_value(value, place)
        return super().get_getattr(typ, attr)

    def get_constant_generic(self, builder: Any, ty: Any, val: Any) -> Any:
        if isinstance(ty, types.Dispatcher):  # a function that is called: its address in Python is not used
            return ir.Constant(self.get_value_type(ty), None)
        return super().get_constant_generic(builder, ty, val)

    def get_python_api(self, builder: Any) -> Any:
        return _PythonAPI(self, builder)


class _PythonAPI(PythonAPI):
    """Takes arrays from Python by a function: a record of many would be as many copies of its code."""

    def to_native_value(self, typ: Any, obj: Any) -> Any:
        if not isinstance(typ, types.Array):
            return super().to_native_value(typ, obj)
        value_type, byte = self.context.get_value_type(typ), ir.IntType(8).as_pointer()
        name = f"take.{typ}"
        if name not in self.module.globals:
            kind = ir.FunctionType(ir.IntType(1), [byte, value_type.as_pointer()])
            take = ir.Function(self.module, kind, name)
            take.linkage = "internal"
            take.attributes.add("noinline")
            builder = ir.IRBuilder(take.append_basic_block("entry"))
            taken = PythonAPI(self.context, builder).to_native_value(typ, take.args[0])
            builder.store(taken.value, take.args[1])
            builder.ret(taken.is_error)
        place = cgutils.alloca_once(self.builder, value_type)
        is_error = self.builder.call(self.module.globals[name], [obj, place])
        return NativeValue(self.builder.load(place), is_error=is_error)


def _has_fields(context: Any, kind: Any) -> bool:
    return getattr(context.data_model_manager[kind], "_fields", ()) == FIELDS


def _is_plain(context: Any, array: Any, index: Any) -> bool:
    """Whether an index consists of whole numbers and of slices without a step, of an array of numbers."""
    kinds = index.types if isinstance(index, types.BaseTuple) else (index,)
    return (
        isinstance(array, types.Array)
        and isinstance(array.dtype, types.Number | types.Boolean)
        and 0 < len(kinds) <= array.ndim
        and all(isinstance(kind, types.Integer) or kind == types.slice2_type for kind in kinds)
        and not context.enable_boundscheck
        and _has_fields(context, array)
    )


def _getitem(context: Any, sig: Any) -> Any:
    array, index = sig.args
    if not _is_plain(context, array, index):
        return None

    def write(builder: Any, args: Any) -> Any:
        address, shape, strides = _locate(context, builder, array, args[0], index, args[1])
        if not isinstance(sig.return_type, types.Array):
            return context.unpack_value(builder, array.dtype, address, align=None if array.aligned else 1)
        size, whole = shape[0], args[0]
        for length in shape[1:]:
            size = builder.mul(size, length, flags=("nsw",))
        parts = [
            builder.extract_value(whole, 0),
            builder.extract_value(whole, 1),
            size,
            builder.extract_value(whole, 3),
        ]
        parts += [address, cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides)]
        view = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        for place, part in enumerate(parts):
            view = builder.insert_value(view, part, place)
        return impl_ret_borrowed(context, builder, sig.return_type, view)

    return _callable(write)


def _setitem(context: Any, sig: Any) -> Any:
    array, index, kind = sig.args
    kinds = index.types if isinstance(index, types.BaseTuple) else (index,)
    is_number = isinstance(kind, types.Number | types.Boolean)
    is_element = len(kinds) == getattr(array, "ndim", 0) and all(isinstance(kind, types.Integer) for kind in kinds)
    if not (is_number and is_element and _is_plain(context, array, index)):
        return None

    def write(builder: Any, args: Any) -> None:
        address, _, _ = _locate(context, builder, array, args[0], index, args[1])
        value = context.cast(builder, args[2], kind, array.dtype)
        context.pack_value(builder, array.dtype, value, address, align=None if array.aligned else 1)

    return _callable(write)


def _len(context: Any, sig: Any) -> Any:
    if not (isinstance(sig.args[0], types.Array) and _has_fields(context, sig.args[0])):
        return None
    return _callable(lambda builder, args: builder.extract_value(args[0], (SHAPE, 0)))


def _slice(context: Any, sig: Any) -> Any:
    """Write begin:end, whose step is one."""
    if sig.return_type != types.slice2_type or not 1 <= len(sig.args) <= 2:
        return None

    def write(builder: Any, args: Any) -> Any:
        bounds = list(zip(sig.args, args, strict=True))
        bounds = bounds if len(bounds) == 2 else [(types.none, None), *bounds]
        number = context.get_value_type(types.intp)
        values = [number(0), number((1 << (number.width - 1)) - 1), number(1)]
        for place, (kind, value) in enumerate(bounds):
            if kind != types.none:
                values[place] = value
        made = ir.Constant(context.get_value_type(sig.return_type), ir.Undefined)
        for place, value in enumerate(values):
            made = builder.insert_value(made, value, place)
        return made

    return _callable(write)


WRITERS = {operator.getitem: _getitem, operator.setitem: _setitem, len: _len, slice: _slice}


def _callable(write: Any) -> Any:
    """Return a function with the signature of those that Numba's contexts give."""

    def call(builder: Any, args: Any, loc: Any = None) -> Any:
        return write(builder, args)

    return call


def _locate(context: Any, builder: Any, kind: Any, array: Any, index_kind: Any, index: Any) -> tuple[Any, Any, Any]:
    """Return the address of what an index stands for, and the shape and strides of what is left of the array's there."""
    shape = [builder.extract_value(array, (SHAPE, axis)) for axis in range(kind.ndim)]
    strides = [builder.extract_value(array, (STRIDES, axis)) for axis in range(kind.ndim)]
    if isinstance(index_kind, types.BaseTuple):
        index_kinds, indices = index_kind.types, cgutils.unpack_tuple(builder, index, len(index_kind.types))
    else:
        index_kinds, indices = (index_kind,), [index]
    places, left, left_strides = [], [], []
    for axis, (one, value) in enumerate(zip(index_kinds, indices, strict=True)):
        if isinstance(one, types.Integer):
            places.append(_wrapped(context, builder, one, value, shape[axis]))
        else:
            begin, end = (_bound(builder, builder.extract_value(value, part), shape[axis]) for part in range(2))
            places.append(begin)
            is_empty = builder.icmp_signed("<=", end, begin)
            left.append(builder.select(is_empty, end.type(0), builder.sub(end, begin)))
            left_strides.append(strides[axis])
    left += shape[len(places) :]
    left_strides += strides[len(places) :]
    places += [shape[0].type(0)] * (kind.ndim - len(places))
    address = cgutils.get_item_pointer2(
        context, builder, builder.extract_value(array, DATA), shape, strides, kind.layout, places
    )
    return address, left, left_strides


def _wrapped(context: Any, builder: Any, kind: Any, index: Any, length: Any) -> Any:
    """Return an index that counts from the beginning."""
    if not kind.signed:
        return context.cast(builder, index, kind, types.uintp)
    index = context.cast(builder, index, kind, types.intp)
    if isinstance(index, ir.Constant) and index.constant >= 0:
        return index
    is_negative = builder.icmp_signed("<", index, index.type(0))
    return builder.select(is_negative, builder.add(index, length), index)


def _bound(builder: Any, bound: Any, length: Any) -> Any:
    """Return an end of a slice, within the array."""
    zero = length.type(0)
    if _is(bound, 0):
        return bound
    bound = builder.select(builder.icmp_signed("<", bound, zero), builder.add(bound, length), bound)
    bound = builder.select(builder.icmp_signed("<", bound, zero), zero, bound)
    return builder.select(builder.icmp_signed(">=", bound, length), length, bound)


@register_pass(mutates_CFG=True, analysis_only=False)
class LeanLowering(NativeLowering):
    """Numba's pass that writes LLVM's code."""

    _name = "lean_lowering"

    def __init__(self) -> None:
        super().__init__()

    @property
    def lowering_class(self) -> Any:
        """What writes the code of a function."""
        return _Lower


def lean(context: Any) -> Any:
    """Return a copy of a target that writes less."""
    context = copy.copy(context)
    if type(context) is CPUContext:
        context.__class__ = _Target
    return context
