"""How solvers converge: columns of their traces, one against another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap import validation
from zerogap.plots import look
from zerogap.solvers import name_of

if TYPE_CHECKING:
    from zerogap.comparison import Comparison
    from zerogap.solution import Solution

Y_LABELS = {
    "gap": "relative duality gap",
    "dual": "dual objective",
    "margin": "margin",
    "distance": r"$\|\beta - \beta^*\|_Q$",
    "violation": "KKT violation",
    "support": "support vectors",
}
X_LABELS = {"step": "iterations", "seconds": "seconds", "kernel_evaluations": "kernel evaluations"}
OF_COMPARISONS = ("margin", "distance")  # columns that a trace alone does not have

FALLING = ("gap", "distance", "violation")  # to zero, so their axis is logarithmic
FEW = 30  # points of a line that are marked


def plot_comparison(comparison: "Comparison", y: str = "gap", x: str = "step", ax: Any = None) -> Any:
    """Draw a column of the traces of several solvers against another, and return the axes.

    Parameters
    ----------
    comparison : Comparison
        What to draw.
    y : str, default "gap"
        "gap", "dual", "margin" (chapter7, exercise 1), "distance" (spiral, figures 2 to 5), "violation" or "support".
    x : str, default "step"
        "step", "seconds" or "kernel_evaluations".
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    validation.check_choice("y", y, tuple(Y_LABELS))
    validation.check_choice("x", x, tuple(X_LABELS))
    traces = comparison.traces
    if y == "distance" and any("distance" not in trace for trace in traces.values()):
        raise ValueError("The distance to the optimum was not recorded. Call compare(..., distance=True).")
    if y == "margin" and all(np.isnan(trace["margin"]).all() for trace in traces.values()):
        raise ValueError("This problem has no margin: only classifiers have. Draw y='gap' or y='dual'.")
    return _draw(traces, y, x, ax)


def plot_solution(solution: "Solution", y: str = "gap", x: str = "step", ax: Any = None) -> Any:
    """Draw a column of the trace of a run against another, and return the axes.

    Parameters
    ----------
    solution : Solution
        What to draw.
    y : str, default "gap"
        "gap", "dual", "violation" or "support".
    x : str, default "step"
        "step", "seconds" or "kernel_evaluations".
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    validation.check_choice("y", y, tuple(name for name in Y_LABELS if name not in OF_COMPARISONS))
    validation.check_choice("x", x, tuple(X_LABELS))
    if len(solution.trace) == 0:
        raise ValueError(
            "This solution has no trace to draw. Solve with trace_every=10 for a point every 10 iterations."
        )
    return _draw({name_of(solution.solver): solution.trace}, y, x, ax)


def _draw(traces: Mapping[str, Any], y: str, x: str, ax: Any) -> Any:
    ax = look.new_axes() if ax is None else ax
    for (name, trace), style in zip(traces.items(), look.line_styles(ax, len(traces)), strict=True):
        values = np.asarray(trace[y], dtype=np.float64)
        shown = np.isfinite(values) & ((values > 0) | (y not in FALLING))
        marker = "." if np.count_nonzero(shown) < FEW else None
        ax.plot(np.asarray(trace[x])[shown], values[shown], label=name, marker=marker, **style)
    if y in FALLING:
        ax.set_yscale("log")
    look.dress(ax, X_LABELS[x], Y_LABELS[y])
    if traces:
        ax.legend(frameon=False)
    return ax
