"""Options of a path, checked: the engine, its range, its limits and its gap."""

import numbers
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.path.engine import Options
from zerogap.path.exactness import EXACT
from zerogap.path.hastie import Hastie
from zerogap.path.lp import LP
from zerogap.path.single import Single

ENGINES: dict[str, Options] = {"single": Single(), "lp": LP(), "hastie": Hastie()}


def engine_of(engine: str | Options, linear_system: str | None, fit_intercept: bool = True) -> Options:
    """Return the options of an engine by its name, or as they are given."""
    if not isinstance(engine, str):
        if not hasattr(engine, "start"):
            raise TypeError(
                f"engine must be a name or configured options; got {engine!r}. Names: {', '.join(ENGINES)}."
            )
    else:
        validation.check_choice("engine", engine, tuple(ENGINES))
    options = ENGINES[engine] if isinstance(engine, str) else engine
    if not fit_intercept and not isinstance(options, Single):
        raise ValueError(
            f"fit_intercept=False is followed by engine 'single' alone; got engine={str(engine)!r}, whose elbow is never "
            "without the equation of the bias."
        )
    if linear_system is None:
        return options
    if not isinstance(options, LP):
        raise ValueError(f"linear_system={linear_system!r} is a choice of engine 'lp'; engine is {str(engine)!r}.")
    return replace(options, linear_system=linear_system)


def check_range(name: str, least: Any, largest: Any, *, advice: str = "") -> tuple[float, float]:
    """Return both ends of a path, checked."""
    least = validation.check_positive(f"{name}_min", least)
    largest = validation.check_positive(f"{name}_max", largest, advice=advice)
    if least >= largest:
        raise ValueError(f"{name}_min must be below {name}_max; got {name}_min={least:g} and {name}_max={largest:g}.")
    return least, largest


def check_limits(max_events: Any, max_time: Any) -> None:
    """Refuse limits that mean nothing."""
    if max_events is not None and (
        not isinstance(max_events, numbers.Integral) or isinstance(max_events, bool | np.bool_) or max_events < 0
    ):
        raise ValueError(f"max_events must be a whole number, 0 or more, or None for no limit; got {max_events!r}.")
    validation.check_max_time(max_time, zero=True, infinite=True)


def check_gap(
    gap: Any, cache_size: Any, engine: Any, linear_system: Any, max_events: Any, fit_intercept: bool = True
) -> None:
    """Refuse a gap that means nothing, and options of exact paths beside one."""
    validation.check_positive("cache_size", cache_size, advice="It is the memory for kernel rows in megabytes.")
    if gap is None:
        return
    validation.check_positive("gap", gap, advice="It is the relative duality gap to stay below, for instance 1e-3.")
    if not EXACT <= gap < 1.0:
        raise ValueError(
            f"gap must be below 1, the relative duality gap of doing nothing, and at least {EXACT:g}, which an exact path has, "
            f"svm_path(...) without gap; got {gap!r}."
        )
    if not fit_intercept:
        raise ValueError(
            f"fit_intercept=False is for exact paths so far; with gap={gap:g} leave it out, or leave out gap for an exact path."
        )
    for name, value in (("engine", engine), ("linear_system", linear_system), ("max_events", max_events)):
        if value is not None and value != "single":
            raise ValueError(
                f"{name}={value!r} is an option of exact paths, which go from event to event; with gap={gap:g} leave it out, "
                "and limit the time with max_time."
            )
