"""Numba's compiler without what takes time and is not needed: what ``compiled`` compiles with.

Half of the time is LLVM's, half is Python's, in which Numba finds the types and writes LLVM's code.  Both take less where
there is less code: helpers are optimised with their callers only, and references to arrays are counted where some are made.
"""

import functools
import gc
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import islice
from types import CodeType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba import types
from numba.core import event, ir, postproc, transforms
from numba.core.base import BaseContext
from numba.core.codegen import CPUCodegen, JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_extra
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.typed_passes import NoPythonSupportedFeatureValidation

HAS_PASS_BUILDER = hasattr(llvm, "create_new_module_pass_manager") and hasattr(CPUCodegen, "_pass_builder")

LARGE = 150  # instructions of a function that is worth a call

# Passes that find nothing in a function without functions inside, with blocks, and loops over tuples of several types.
FOR_CLOSURES = {"WithLifting", "InlineClosureLikes", "MakeFunctionToJitFunction", "LiteralUnroll", "LiteralPropagationSubPipelinePass"}

# Expressions whose value is a part or a view of others.
PARTS = {
    "build_tuple", "cast", "exhaust_iter", "getattr", "getitem", "getiter", "iternext", "pair_first", "pair_second", "phi",
    "static_getitem", "typed_getitem",
}  # fmt: skip


class Origin(NamedTuple):
    """Which function it is that a library holds, and what it is called there."""

    module: str
    name: str
    args: tuple[Any, ...]
    symbol: str


class _Library(JITCodeLibrary):
    """Code that calls large functions where they are, and holds that of the small ones it calls."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.needs: dict[FunctionLibrary, None] = {}  # those that are called where they are

    def add_linking_library(self, library: Any) -> None:
        """Let a library be called: where it is, or as a part of this one."""
        library._ensure_finalized()
        if getattr(library, "stays_apart", False):
            self.needs[library] = None
        else:
            self.needs.update(getattr(library, "needs", {}))
            super().add_linking_library(library)

    def add_ir_module(self, ir_module: Any) -> None:
        """Add code; how arguments are read from Python objects is not worth LLVM's time."""
        if ir_module.name == "wrapper":
            for function in ir_module.functions:
                if function.blocks:
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def _optimize_functions(self, module: Any) -> None:
        """Tidy up what Numba writes.  It would optimise here, too, as if the whole were not optimised later."""
        if not HAS_PASS_BUILDER:
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_instruction_combine_pass()
        passes.add_refprune_pass()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, self._codegen._pass_builder())

    def _optimize_final_module(self) -> None:
        """Optimise once."""
        if not HAS_PASS_BUILDER:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class FunctionLibrary(_Library):
    """The code of a function that is called from Python.

    Numba would link it into that of each caller, to be optimised there once more with all that it calls.  A large one stays
    where it is, since it takes longer than a call.
    """

    origin: Origin | None = None
    stays_apart = False

    def tell_origin(self, descriptor: Any, stays_apart: bool | None = None) -> None:
        """Say which function it is; unless told, count whether it is to stay apart."""
        args, symbol = tuple(descriptor.argtypes), descriptor.llvm_func_name
        self.origin = Origin(descriptor.modname, descriptor.qualname, args, symbol)
        if stays_apart is None:
            blocks = self._final_module.get_function(symbol).blocks
            instructions = (1 for block in blocks for _ in block.instructions)
            stays_apart = bool(self.needs) or sum(islice(instructions, LARGE)) == LARGE
        self.stays_apart = stays_apart

    def _get_module_for_linking(self) -> Any:
        """Return code that holds all it needs, for functions that Numba compiles elsewhere."""
        if self.needs and self._shared_module is None:
            module = super()._get_module_for_linking().clone()
            for library in self.needs:
                module.link_in(library._get_module_for_linking(), preserve=True)
            self._shared_module = module
        return super()._get_module_for_linking()

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return what is kept on disk."""
        self._ensure_finalized()
        return self.name, "object", (self._get_compiled_object(), super()._get_module_for_linking().as_bitcode())


class HelperLibrary(_Library):
    """The code of a helper, to be linked into that of its callers.

    Numba would optimise a helper and its callees, make machine code of them, and do so again for every caller: at each level
    of calls the code of all levels below.  LLVM inlines callees before it optimises a caller, so one time is enough.
    """

    def add_ir_module(self, ir_module: Any) -> None:
        """Add code, but no ways in from elsewhere."""
        if ir_module.name not in ("wrapper", "cfunc_wrapper"):
            super().add_ir_module(ir_module)

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return null: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        """What ``set_env`` is called of."""
        return self

    def set_env(self, name: str, environment: Any) -> None:
        """Tell no machine code where the Python objects are that it uses: there is none."""

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """Return what is kept on disk."""
        self._ensure_finalized()
        return self.name, "bitcode", self._get_module_for_linking().as_bitcode()


class QuickCompiler(_FunctionCompiler):
    """The compiler of a function that is called from Python, and maybe from others."""

    library_class: type = FunctionLibrary

    def fold_argument_types(self, args: Any, kws: Any) -> Any:
        """Take an int for an int: Numba would compile a helper once more for each constant that it is called with."""
        signature, args = super().fold_argument_types(args, kws)
        return signature, tuple(types.unliteral(kind) for kind in args)

    def compile(self, args: Any, return_type: Any) -> Any:
        """Compile for types of arguments; what Numba compiles of its own for it, such as functions of NumPy, are helpers."""
        with _quicker(), made_as(HelperLibrary, self.targetdescr.target_context.codegen()):
            return super().compile(args, return_type)

    def _customize_flags(self, flags: Flags) -> Flags:
        return _Flags(flags)

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        target, flags = self.targetdescr, Flags()
        target.options.parse_as_flags(flags, self.targetoptions)
        library = self.library_class(target.target_context.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        result = compile_extra(
            target.typing_context,
            target.target_context,
            self.py_func,
            args=args,
            return_type=return_type,
            flags=self._customize_flags(flags),
            locals=self.locals,
            library=library,
            pipeline_class=_Pipeline,
        )
        if isinstance(library, FunctionLibrary):
            library.tell_origin(result.fndesc)
        return result


class HelperCompiler(QuickCompiler):
    """A compiler that leaves it to the callers of a helper to optimise it, and to make machine code."""

    library_class = HelperLibrary


class _Flags(Flags):
    """The options of a compilation, compared by those that are set.

    Numba looks up overloads by them tens of thousands of times, and would collect some forty options each time.
    """

    def __hash__(self) -> int:
        return hash(frozenset(self._values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Flags) and self._values == other._values


@contextmanager
def made_as(library_class: type, codegen: Any) -> Iterator[None]:
    """Let the code that Numba makes or loads meanwhile be of a class; its lock is held, so that no other thread does either."""
    before = vars(codegen).get("create_library")
    codegen.create_library = functools.partial(library_class, codegen)
    try:
        yield
    finally:
        if before is None:
            del codegen.create_library
        else:
            codegen.create_library = before


@contextmanager
def _quicker() -> Iterator[None]:
    """Let Numba do less of what takes time and comes to nothing here; its lock is held meanwhile.

    To time every call of LLVM takes a while itself; and to look for cycles takes a tenth of all, and finds little.
    """
    if "get_call_type" in vars(types.Function):  # for the function that calls this one
        yield
        return
    was_enabled = gc.isenabled()
    types.Function.get_call_type = _call_type
    gc.disable()
    try:
        with ExitStack() as stack:
            for owner, name, other in _REPLACED:
                stack.enter_context(_replaced(owner, name, other))
            yield
    finally:
        del types.Function.get_call_type
        if was_enabled:
            gc.enable()


@contextmanager
def _replaced(owner: Any, name: str, other: Any) -> Iterator[None]:
    """Let something be another thing meanwhile, unless this Numba has none."""
    if not hasattr(owner, name):
        yield
        return
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _post_process(self: Any, emit_dels: bool = False, **options: Any) -> None:
    """Bring the blocks of a function into order, as Numba does after each of its passes.

    It would also find out each time which variables live where.  That is asked for at the end, of functions that count
    references, and of generators.
    """
    if (emit_dels and not getattr(self.func_ir, "only_borrows", False)) or self.func_ir.is_generator:
        _POST_PROCESS(self, emit_dels, **options)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = postproc.VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


def _list_variables(self: Any, value: Any) -> list[Any]:
    """Return the variables that part of a statement names: what Numba spends most calls on."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if _has_no_variables(kind):
        return []
    if not issubclass(kind, dict | list | tuple):
        return value.list_vars()  # type: ignore[no-any-return]
    found: list[Any] = []
    for part in value.values() if kind is dict else value:
        if type(part) is ir.Var:
            found.append(part)
        elif not _has_no_variables(type(part)):
            found += self._rec_list_vars(part)
    return found


def _size_of(self: Any, kind: Any) -> int:
    """Return the size of a type of LLVM, which has to compile a module to tell."""
    if (name := str(kind)) not in _SIZES:
        _SIZES[name] = _SIZE_OF(self, kind)
    return _SIZES[name]


@functools.cache
def _has_no_variables(kind: type) -> bool:
    return not issubclass(kind, ir.Var | ir.Inst | dict | list | tuple)


_BROADCAST, UNWATCHED = event.broadcast, ("numba:llvm_lock", "numba:run_pass")
_SIZE_OF, _SIZES = BaseContext.get_abi_sizeof, dict[str, int]()
_POST_PROCESS = postproc.PostProcessor.run
_REPLACED = (
    (event, "install_timer", lambda *args: nullcontext()),
    (event, "broadcast", lambda happened: None if happened.kind in UNWATCHED else _BROADCAST(happened)),
    (postproc.PostProcessor, "run", _post_process),
    (ir.Inst, "_rec_list_vars", _list_variables),
    (BaseContext, "get_abi_sizeof", _size_of),
)


def _call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """Return the signature of a call, at the second time from memory unless it stands for a function that is compiled."""
    known = vars(function).setdefault("_known_to_zerogap", {})
    if not kws and args in known:
        return known[args]
    signature = super(types.Function, function).get_call_type(context, args, kws)
    if not kws and function.get_impl_key(signature) is function.typing_key:
        known[args] = signature
    return signature


class _Pipeline(Compiler):
    def define_pipelines(self) -> list[Any]:
        pipelines = super().define_pipelines()
        has_closures = any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts)
        for pipeline in pipelines:
            if not has_closures:
                pipeline.passes = [entry for entry in pipeline.passes if entry[0].__name__ not in FOR_CLOSURES]
            pipeline.add_pass_after(_CountReferences, NoPythonSupportedFeatureValidation)
            pipeline.finalize()
        return pipelines


@register_pass(mutates_CFG=False, analysis_only=True)
class _CountReferences(AnalysisPass):
    """Count references to arrays only where a function makes some.

    Arrays that come as arguments, in tuples or not, and views of them live as long as the call: counting what refers to them
    makes code for every tuple that is passed on, and time at every call.
    """

    _name = "count_references"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        if _only_borrows(state):
            context = state.targetctx.subtarget(enable_nrt=False)
            vars(context).pop("nrt", None)
            state.targetctx = context
            state.func_ir.only_borrows = True  # no variable has anything to give back at its end
        return False


def _only_borrows(state: Any) -> bool:
    """Whether no array is made, nor returned."""
    models = state.targetctx.data_model_manager
    holds = {kind: models[kind].contains_nrt_meminfo() for kind in {*state.typemap.values(), state.return_type}}
    if state.func_ir.generator_info is not None or holds[state.return_type]:
        return False
    if not all(_is_array(kind) for kind, holds_some in holds.items() if holds_some):
        return False
    statements = (statement for block in state.func_ir.blocks.values() for statement in block.body)
    return all(_borrows(statement, state.typemap, holds) for statement in statements)


def _is_array(kind: Any) -> bool:
    """Whether a type that holds arrays is one, a tuple of such, a method, or a loop over one."""
    if isinstance(kind, types.BaseTuple):
        return all(_is_array(part) or isinstance(part, types.Number | types.Boolean) for part in kind)
    return isinstance(kind, types.Array | types.BoundFunction | types.ArrayIterator)


def _borrows(statement: Any, typemap: dict[str, Any], holds: dict[Any, bool]) -> bool:
    """Whether a statement makes no array."""
    if isinstance(statement, ir.SetItem | ir.StaticSetItem):
        return not holds[typemap[statement.value.name]]
    if isinstance(statement, ir.DynamicRaise | ir.DynamicTryRaise):
        return False
    if not isinstance(statement, ir.Assign) or not holds[typemap[statement.target.name]]:
        return True
    value = statement.value
    if not isinstance(value, ir.Expr):
        return True
    if value.op == "call":
        return isinstance(typemap[value.func.name], types.NamedTupleClass)
    if value.op in ("getitem", "typed_getitem"):
        return not holds[typemap[value.index.name]]
    return value.op in PARTS
