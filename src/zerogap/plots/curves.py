"""Scores over C, epsilon: every change of them, the best shaded, and what a grid would have seen of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap import validation
from zerogap.plots import look
from zerogap.wording import count, number

if TYPE_CHECKING:
    from zerogap.path.curve import ScoreCurve
    from zerogap.path.error_curve import ErrorCurve

BETWEEN = 300  # values beside the edges of pieces that are curved
FEW = 60  # samples that are marked
SCORES = {
    "neg_mean_squared_error": "minus mean squared error",
    "neg_mean_absolute_error": "minus mean absolute error",
    "r2": "R²",
}


def plot_score_curve(curve: "ScoreCurve", grid: Any = None, *, ax: Any = None, label: str = "score") -> Any:
    """Draw a score over C with its best intervals shaded, and return the axes.

    Parameters
    ----------
    curve : ScoreCurve
        What to draw.
    grid : int or array, optional
        A grid beside it, what a search over these values would have seen: their number, or the values.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.
    label : str, default "score"
        What the score is called.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    values = _grid(grid, curve.C[0], curve.C[-1], is_log=True)
    ax = look.new_axes() if ax is None else ax
    colour = look.palette(ax)[0]
    if curve.is_exact:
        ax.step(
            curve.C, np.append(curve.score, curve.score[-1]), where="post", color=colour, linewidth=1.4, label="every C"
        )
    else:
        samples = curve.samples  # type: ignore[attr-defined]
        marker = "." if samples.size <= FEW else None
        ax.plot(
            samples,
            curve.score,
            color=colour,
            linewidth=1.2,
            marker=marker,
            label=f"sampled at {count(samples.size)} C",
        )
    _finish(ax, curve, "C", label, values, is_log=True)
    return ax


def plot_error_curve(curve: "ErrorCurve", grid: Any = None, *, ax: Any = None) -> Any:
    """Draw a score of a regression over C, or over epsilon, with the best of all values marked, and return the axes.

    Parameters
    ----------
    curve : ErrorCurve
        What to draw.
    grid : int or array, optional
        A grid beside it, what a search over these values would have seen: their number, or the values.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    is_log = curve.parameter == "C"
    first, last = float(curve.edges[0]), float(curve.edges[-1])
    values = _grid(grid, first, last, is_log=is_log)
    ax = look.new_axes() if ax is None else ax
    between = (np.geomspace if is_log else np.linspace)(first, last, BETWEEN)[1:-1]
    x = np.unique(np.concatenate([curve.edges, curve.at, between]))
    ax.plot(x, curve(x), color=look.palette(ax)[0], linewidth=1.4, label=f"every {curve.parameter}")
    _finish(ax, curve, curve.parameter, SCORES[curve.scoring], values, is_log=is_log)
    return ax


def _grid(grid: Any, first: float, last: float, *, is_log: bool) -> np.ndarray | None:
    """Return the values of a grid; a number of them is spread over all of the axis."""
    if grid is None:
        return None
    if np.ndim(grid) == 0:
        size = validation.check_count("grid", grid)
        return np.clip((np.geomspace if is_log else np.linspace)(first, last, size), first, last)
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if values.size == 0 or not (values[0] >= first and values[-1] <= last):
        raise ValueError(f"grid must be values from {first:g} to {last:g}, or how many of them; got {grid!r}.")
    return values


def _finish(ax: Any, curve: Any, parameter: str, title: str, grid: np.ndarray | None, *, is_log: bool) -> None:
    """Shade the best, add the grid, name the axes."""
    best = curve.best_intervals
    if best:
        said = f"best: {number(curve.best_score)} {_where(best, parameter)}"
        at = [low for low, high in best if low == high]
        look.shade(ax, best, look.GREEN, "" if at else said)
        if at:
            ax.plot(at, [curve.best_score] * len(at), "*", color=look.GREEN, markersize=11, zorder=4, label=said)
    if grid is not None:
        _draw_grid(ax, grid, curve(grid), parameter)
    look.dress(ax, parameter, title, is_log=is_log)
    first, last = (curve.edges if hasattr(curve, "edges") else curve.C)[[0, -1]]
    ax.set_xlim(first, last)
    look.legend_above(ax)


def _where(best: list[tuple[float, float]], parameter: str) -> str:
    """Return where the best score is, in words."""
    low, high = best[0]
    words = (
        f"at {parameter} = {number(low)}" if low == high else f"for {parameter} from {number(low)} to {number(high)}"
    )
    return words + (f" and {count(len(best) - 1, 'other interval')}" if len(best) > 1 else "")


def _draw_grid(ax: Any, values: np.ndarray, scores: np.ndarray, parameter: str) -> None:
    """Mark what a grid sees."""
    colour = look.ORANGE if look.is_dark(ax) else look.VERMILLION
    best = int(np.nanargmax(scores)) if np.isfinite(scores).any() else None
    found = "" if best is None else f", best {number(scores[best])} at {parameter} = {number(values[best])}"
    ax.plot(
        values, scores, "o", markersize=4.5, markerfacecolor="none", color=colour, zorder=3,
        label=f"grid of {count(values.size)}{found}",
    )  # fmt: skip
