"""Pictures of results; nothing is computed here.  They need matplotlib: ``pip install zerogap[plots]``."""

from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap import validation

if TYPE_CHECKING:
    from zerogap.comparison import Comparison

Y_LABELS = {
    "gap": "relative duality gap",
    "dual": "dual objective",
    "margin": "margin",
    "distance": r"$\|\beta - \beta^*\|_Q$",
    "violation": "KKT violation",
    "support": "support vectors",
}
X_LABELS = {"step": "iterations", "seconds": "seconds", "kernel_evaluations": "kernel evaluations"}

FALLING = ("gap", "distance", "violation")  # to zero, so their axis is logarithmic


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
    ax = _new_axes() if ax is None else ax
    for name, trace in traces.items():
        values = np.asarray(trace[y], dtype=np.float64)
        shown = np.isfinite(values) & ((values > 0) | (y not in FALLING))
        marker = "." if np.count_nonzero(shown) < 30 else None
        ax.plot(np.asarray(trace[x])[shown], values[shown], label=name, marker=marker)
    if y in FALLING:
        ax.set_yscale("log")
    ax.set_xlabel(X_LABELS[x])
    ax.set_ylabel(Y_LABELS[y])
    if traces:
        ax.legend()
    return ax


def _new_axes() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plots need matplotlib: pip install zerogap[plots]") from error
    return plt.subplots()[1]
