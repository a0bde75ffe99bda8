"""Docstrings of public things: in numpydoc's sections, complete, and with examples that run."""

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from types import ModuleType

import pytest

import zerogap
from zerogap import kernels
from zerogap.solvers import SOLVERS


def is_subclass(value: object, cls: type) -> bool:
    return inspect.isclass(value) and issubclass(value, cls)


MODULES = [name for _, name, _ in pkgutil.walk_packages(zerogap.__path__, "zerogap.") if not name.endswith("__main__")]

NAMES = list(zerogap.__all__)

# What public functions and methods return or take, and is not itself a name of the package.
MORE = (
    "path.Event", "path.SampledScoreCurve", "path.ScoreCurve", "path.SolutionSet", "path.score_curve", "comparison.Run",
    "estimators.loo.LeaveOneOut", "solution.TraceRow", "solvers.get_solver", "kernels.as_kernel", "path.RegressionPath",
    "plots.decision_boundary", "plots.plot_comparison", "plots.plot_error_curve", "plots.plot_pairs", "plots.plot_path",
    "plots.plot_score_curve", "plots.plot_solution", "plots.plot_cv", "plots.plot_cv_curve",
    "path.EpsilonPath", "path.NuPath", "path.EpsilonEvent", "path.NuEvent", "path.ErrorCurve", "path.error_curve",
    "comparison.Frame",
)  # fmt: skip
if importlib.util.find_spec("distributed") is not None:  # else there is nothing to explain
    MORE += ("dask.SVC", "dask.SVR")

KERNELS = [f"kernels.{name}" for name, value in vars(kernels).items() if is_subclass(value, kernels.Kernel)]

# Solvers that take options, as all but one do.  ``init`` and ``step`` are those of the protocol, which explains them once.
CONFIGURED = [f"solvers.{entry.class_name}" for entry in SOLVERS.values() if entry.class_name != "Cholesky"]

# The engine of the path that takes options.  What it is asked to do is what ``path.engine.Options`` says.
ENGINES = ["path.LP"]

# How engines make a path and other modules read it, what problems and models ask of a matrix: no part of what a user calls.
INTERNAL = {
    "Gram": (
        "exclusive", "constant", "seems_positive", "distance_from_positive", "is_same_as", "rearranged", "cache", "precise_dot",
        "precise_work", "work_of", "fill",
    ),
    "Path": (
        "is_at", "add", "add_all", "note", "seal", "prove", "beta_at", "solution_at", "share_error_at", "segment_at",
        "bias_in_gram", "certificates", "scaled_at", "sets_at", "segments", "check_not_empty", "value_of", "lam_of",
        "scale_at", "shift", "problem_at", "floor_at", "relative_gap", "words", "constant_from", "constant_segment",
        "excess_at", "is_optimal_at_end",
    ),
}  # fmt: skip
INTERNAL |= dict.fromkeys(("path.RegressionPath", "path.EpsilonPath", "path.NuPath"), INTERNAL["Path"])
# How the Gram matrix and estimators ask a kernel for values.
ASKED = (
    "centred", "about", "moved", "checked", "taken", "against", "checked_values", "checked_diagonal", "disagreement",
    "is_close", "finish", "join", "join_roundings",
)  # fmt: skip
INTERNAL |= dict.fromkeys(KERNELS, ASKED) | dict.fromkeys(CONFIGURED, ("init", "step", "rates"))
INTERNAL |= dict.fromkeys(ENGINES, ("start",))


def found(name: str) -> object:
    """Return an object of the package by its dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(f"zerogap.{module}" if module else "zerogap"), last)


def public() -> dict[str, object]:
    """Return every public object: names of the package, functions of its public modules, and what these return."""
    objects: dict[str, object] = {}
    for name in (*NAMES, *MORE, *KERNELS, *CONFIGURED, *ENGINES):
        thing = found(name)
        if isinstance(thing, ModuleType):
            functions = inspect.getmembers(thing, inspect.isfunction)
            own = {key: f for key, f in functions if f.__module__ == thing.__name__ and not key.startswith("_")}
            objects |= {f"{name}.{key}": f for key, f in own.items()}
        else:
            objects[name] = thing
    return objects


def methods(cls: type) -> dict[str, object]:
    """Return the public methods that a class has from this package."""
    members = {}
    for base in reversed(inspect.getmro(cls)):
        if base.__module__.startswith("zerogap"):
            members |= {name: value for name, value in vars(base).items() if not name.startswith("_")}
    return {name: getattr(cls, name) for name, value in members.items() if is_method(value)}


def is_method(value: object) -> bool:
    is_conditional = type(value).__name__ == "_AvailableIfDescriptor"  # scikit-learn's available_if
    return isinstance(value, classmethod | staticmethod) or inspect.isfunction(value) or is_conditional


OBJECTS = public()
CALLABLES = {name: thing for name, thing in OBJECTS.items() if not inspect.isclass(thing)}
for name, thing in OBJECTS.items():
    if inspect.isclass(thing):
        left_out = INTERNAL.get(name, ())
        CALLABLES |= {f"{name}.{key}": method for key, method in methods(thing).items() if key not in left_out}


def docstring(name: str) -> str:
    """Return what is said of a function; of a method that overrides another, what is said of that one if this has no more."""
    owner, _, last = name.rpartition(".")
    bases = inspect.getmro(OBJECTS[owner]) if inspect.isclass(OBJECTS.get(owner)) else ()
    overridden = [vars(base)[last].__doc__ or "" for base in bases if last in vars(base)]
    return next((text for text in overridden if "Parameters" in sections(text)), CALLABLES[name].__doc__ or "")


def sections(docstring: str | None) -> dict[str, str]:
    """Return the text below each underlined title."""
    parts = re.split(r"^([A-Z]\w+)\n-{3,}\n", inspect.cleandoc(docstring or ""), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(text: str) -> dict[str, str]:
    """Return what is said of every name: "a, b : type" with the indented lines below it."""
    found: dict[str, str] = {}
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        names, colon, rest = part.partition(" : ")
        if colon:
            found |= {name.strip("* "): rest for name in names.split(",")}
    return found


def parameters(thing: object) -> list[str]:
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def is_explained(text: str) -> bool:
    """Whether there is a type, and below it a sentence."""
    kind, _, meaning = text.strip().partition("\n")
    return bool(kind.strip()) and bool(meaning.strip())


@pytest.mark.long
@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failed == 0


@pytest.mark.parametrize("name", CALLABLES)
def test_every_parameter_and_result_of_a_function_is_explained(name):
    thing = CALLABLES[name]
    said = sections(docstring(name))
    explained = entries(said.get("Parameters", ""))
    assert list(explained) == parameters(thing)
    assert all(map(is_explained, explained.values()))
    returned = inspect.signature(thing).return_annotation
    if returned not in (None, "None"):
        assert said.get("Returns", said.get("Yields", "")).strip()


def documented_defaults(text: str) -> dict[str, object]:
    """Return the default of every parameter that names one, of shared entries each its own."""
    found: dict[str, object] = {}
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        names, _, rest = part.partition(" : ")
        kind = rest.partition("\n")[0]
        names = [name.strip("* ") for name in names.split(",")]
        if "default " in kind:
            values = kind.rpartition("default ")[2].split(" and ")
            values = values * len(names) if len(values) == 1 else values
            found |= {n: eval(v, vars(zerogap) | {"inf": float("inf")}) for n, v in zip(names, values, strict=True)}
        elif "optional" in kind:
            found |= dict.fromkeys(names)
    return found


@pytest.mark.parametrize("name", [*CALLABLES, *(name for name, thing in OBJECTS.items() if inspect.isclass(thing))])
def test_defaults_are_those_documented(name):
    thing = CALLABLES.get(name, OBJECTS.get(name))
    said = sections(docstring(name) if name in CALLABLES else thing.__doc__)
    if "Parameters" not in said:
        return
    defaults = {k: p.default for k, p in inspect.signature(thing).parameters.items() if p.default is not p.empty}
    documented = documented_defaults(said["Parameters"])
    assert documented == {k: v for k, v in defaults.items() if k in entries(said["Parameters"])}


@pytest.mark.parametrize("name", [name for name in CALLABLES if "." not in name or name.startswith("datasets.")])
def test_every_function_has_an_example(name):
    assert ">>> " in sections(CALLABLES[name].__doc__)["Examples"]


@pytest.mark.parametrize("name", [name for name, thing in OBJECTS.items() if inspect.isclass(thing)])
def test_every_class_explains_what_it_holds_and_has_an_example(name):
    cls = OBJECTS[name]
    said = sections(cls.__doc__)
    assert ">>> " in said["Examples"]
    fields = getattr(cls, "_fields", None) or list(getattr(cls, "__dataclass_fields__", ()))
    if fields:  # a record: its parameters are its attributes
        explained = entries(said["Attributes"]) | entries(said.get("Parameters", ""))
        assert set(fields) <= set(explained)
    else:
        explained = entries(said["Attributes"]) | entries(said.get("Parameters", ""))
        taken = entries(said.get("Parameters", ""))
        if "Parameters" in said:
            assert list(taken) == parameters(cls)
        assert entries(said["Attributes"])
    assert all(map(is_explained, explained.values()))


def test_public_objects_are_found():
    assert {"SVC", "solve", "datasets.spiral", "path.Event"} <= set(OBJECTS)
    assert all(hasattr(found(name), method) for name in ("Gram", "Path") for method in INTERNAL[name])
    assert {"kernels.Kernel", "kernels.RBF", "kernels.Sum"} <= set(KERNELS)
    assert {"SVC.fit", "SVC.partial_fit", "SVR.save", "DualProblem.hinge", "Path.from_dict"} <= set(CALLABLES)


def add(a, *, b):
    """Add.

    Parameters
    ----------
    a, b : float
        What to add.
    """


def test_the_check_sees_what_is_missing():
    said = sections(add.__doc__)
    assert list(said) == ["Parameters"]
    assert list(entries(said["Parameters"])) == parameters(add)
    assert not is_explained("float\n")
    assert not is_explained("\n    What to add.")
