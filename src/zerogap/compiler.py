"""Numba's compiler without what takes time and is not needed: what ``compiled`` compiles with.

Half of the time is LLVM's, half is Python's, in which Numba finds the types and writes LLVM's code.  Both take less where
there is less code: helpers are optimised with their callers only, and references to arrays are counted where some are made.
"""

import copy
import functools
import gc
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from llvmlite.binding import Linkage
from numba import types
from numba.core import event, ir
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags, compile_extra, compile_result
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.environment import Environment
from numba.core.typed_passes import NativeLowering, NoPythonSupportedFeatureValidation

from zerogap.lowering import LeanLowering, counting, holds_arrays, lean

# Expressions whose value is a part or a view of others.
PARTS = {
    "build_tuple", "cast", "exhaust_iter", "getattr", "getitem", "getiter", "iternext", "pair_first", "pair_second", "phi",
    "static_getitem", "typed_getitem",
}  # fmt: skip


class EntryLibrary(JITCodeLibrary):
    """The code of a function that Python calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Leave it to the passes over all that is linked, which simplify functions as well."""
        ll_module.data_layout = self._codegen._data_layout


class HelperLibrary(EntryLibrary):
    """The code of a helper, to be linked into that of its callers.

    Numba would optimise a helper and its callees, make machine code of them, and do so again for every caller: at each level
    of calls the code of all levels below.  LLVM inlines callees before it optimises a caller, so one time is enough.
    """

    _shared_module: Any

    def _optimize_final_module(self) -> None:
        """Leave it to the callers."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        self._ensure_finalized()
        if self._shared_module is None:  # no copy: nothing else is made of it
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
        return self._shared_module

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

    library_class: type = EntryLibrary

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
        return _compile(self, self.py_func, args, return_type, self.library_class)


def _compile(compiler: Any, function: Any, args: Any, return_type: Any, library_class: type, **set_flags: bool) -> Any:
    target, flags = compiler.targetdescr, Flags()
    target.options.parse_as_flags(flags, compiler.targetoptions)
    flags = compiler._customize_flags(flags)
    for name, value in set_flags.items():
        setattr(flags, name, value)
    library = library_class(target.target_context.codegen(), function.__qualname__)
    library.enable_object_caching()
    return compile_extra(
        target.typing_context,
        target.target_context,
        function,
        args=args,
        return_type=return_type,
        flags=flags,
        locals=compiler.locals,
        library=library,
        pipeline_class=_Pipeline,
    )


class HelperCompiler(QuickCompiler):
    """A compiler that leaves it to the callers of a helper to optimise it, and to make machine code."""

    library_class = HelperLibrary


class EntryCompiler(QuickCompiler):
    """A compiler of the way into a function from Python; the function itself is a helper, which compiled callers link.

    Most functions are called by either, so that machine code of those that no one calls from Python is not made; and of those
    that both call, types are found once.
    """

    helper: Any  # its dispatcher

    def _compile_core(self, args: Any, return_type: Any) -> Any:
        self.helper.compile(args if return_type is None else return_type(*args))
        with suppress(AttributeError, TypeError):  # other versions of Numba may have other names
            return self._way_in(self.helper.overloads[tuple(args)])
        return super()._compile_core(args, return_type)

    def _way_in(self, helper: Any) -> Any:
        context, fndesc = self.targetdescr.target_context, copy.copy(helper.fndesc)
        fndesc.env_name += ".entry"  # where it finds the classes of tuples that it returns
        environment = Environment.from_fndesc(fndesc)
        # Arguments live as long as the call.
        context = lean(counting(context, context.data_model_manager[fndesc.restype].contains_nrt_meminfo()))
        library = self.library_class(context.codegen(), self.py_func.__qualname__)
        library.enable_object_caching()
        with context.push_code_library(library):
            library.add_linking_library(helper.library)
            context.create_cpython_wrapper(library, fndesc, environment, None, release_gil=True)
        entry_point = context.get_executable(library, fndesc, environment)
        if any(variable.name == helper.fndesc.env_name for variable in library._final_module.global_variables):
            library.codegen.set_env(helper.fndesc.env_name, helper.environment)
        made = {"target_context": context, "library": library, "entry_point": entry_point}
        made |= {"fndesc": fndesc, "environment": environment, "reload_init": [*library._reload_init]}
        return compile_result(**{**helper._asdict(), **made})


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
    """Ask once what an operator does to given types.

    To time every call of LLVM takes a while itself; and to look for cycles takes a tenth of all, and finds little.
    """
    if "get_call_type" in vars(types.Function):  # for the function that calls this one
        yield
        return
    timer, was_enabled = event.install_timer, gc.isenabled()
    types.Function.get_call_type = _call_type
    _FunctionCompiler._compile_core = _compile_others
    ir.Inst._rec_list_vars = _variables
    event.install_timer = lambda *args: nullcontext()
    gc.disable()
    try:
        yield
    finally:
        del types.Function.get_call_type
        _FunctionCompiler._compile_core = _COMPILE_CORE
        ir.Inst._rec_list_vars = _REC_LIST_VARS
        event.install_timer = timer
        if was_enabled:
            gc.enable()


_COMPILE_CORE, _REC_LIST_VARS = _FunctionCompiler._compile_core, ir.Inst._rec_list_vars
NO_VARIABLES = {bool, complex, float, int, str, type(None), ir.Loc}


def _variables(statement: Any, value: Any) -> list[Any]:
    """Return the variables in a part of a statement: asked a million times, of what is mostly names and places."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind in NO_VARIABLES:
        return []
    if kind is dict or kind is tuple or kind is list:
        found = []
        for part in value.values() if kind is dict else value:
            kind = type(part)
            if kind is ir.Var:
                found.append(part)
            elif kind not in NO_VARIABLES:
                found += _variables(statement, part)
        return found
    return _REC_LIST_VARS(statement, value)


def _compile_others(compiler: Any, args: Any, return_type: Any) -> Any:
    """Compile functions that ours call: those of Numba are helpers, those of users are called from Python as well."""
    function, module = compiler._get_implementation(args, {}), str(compiler.py_func.__module__)
    if module.startswith(("numba.np.", "numba.cpython.")):
        no_wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        return _compile(compiler, function, args, return_type, HelperLibrary, **no_wrappers)
    with made_as(JITCodeLibrary, compiler.targetdescr.target_context.codegen()):
        return _COMPILE_CORE(compiler, args, return_type)


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
        for pipeline in pipelines:
            pipeline.add_pass_after(_CountReferences, NoPythonSupportedFeatureValidation)
            pipeline.passes = [(LeanLowering if made is NativeLowering else made, why) for made, why in pipeline.passes]
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
            state.targetctx = counting(state.targetctx, False)
        state.targetctx = lean(state.targetctx)
        return False


def _only_borrows(state: Any) -> bool:
    """Whether no array is made, nor returned."""
    models = state.targetctx.data_model_manager
    holds = {kind: models[kind].contains_nrt_meminfo() for kind in {*state.typemap.values(), state.return_type}}
    if state.func_ir.generator_info is not None or holds[state.return_type]:
        return False
    if not all(holds_arrays(kind) for kind, holds_some in holds.items() if holds_some):
        return False
    statements = (statement for block in state.func_ir.blocks.values() for statement in block.body)
    return all(_borrows(statement, state.typemap, holds) for statement in statements)


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
