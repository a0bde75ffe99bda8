"""Scores over C, or over epsilon: every change of them, the best shaded, and what a grid would have seen of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap import validation
from zerogap.plots import look
from zerogap.wording import SCORES, count, number

if TYPE_CHECKING:
    from zerogap.path.curve import ScoreCurve
    from zerogap.path.error_curve import ErrorCurve

BETWEEN = 300  # values beside the edges of pieces that are curved
FEW = 60  # samples that are marked
SLIVER = 0.4  # of the widest, in log C: best intervals of samples that are narrower are not drawn


def plot_score_curve(curve: "ScoreCurve", grid: Any = None, *, ax: Any = None, label: str | None = None) -> Any:
    """Draw a score over C with its best intervals shaded, and return the axes.

    Parameters
    ----------
    curve : ScoreCurve
        What to draw.
    grid : int or array, optional
        A grid beside it, what a search over these values would have seen: their number, or the values.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.
    label : str, optional
        What the score is called; by default by the name that the curve has.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    values = checked_grid(grid, curve)
    ax = look.new_axes() if ax is None else ax
    draw_curve(ax, curve, color=look.palette(ax)[0], label=extent(curve))
    mark_best(ax, curve, curve.best_intervals, "C")
    finish(ax, curve, curve.name if label is None else label, values)
    look.legend_above(ax)
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
    values = checked_grid(grid, curve)
    ax = look.new_axes() if ax is None else ax
    draw_curve(ax, curve, color=look.palette(ax)[0], label=extent(curve))
    mark_best(ax, curve, curve.best_intervals, curve.parameter)
    finish(ax, curve, SCORES[curve.scoring], values)
    look.legend_above(ax)
    return ax


# Curves of either kind.


def parameter_of(curve: Any) -> str:
    """Return what a curve is over."""
    return getattr(curve, "parameter", "C")


def edges_of(curve: Any) -> np.ndarray:
    """Return where its pieces begin and end."""
    return curve.edges if hasattr(curve, "edges") else curve.C


def extent(curve: Any) -> str:
    """Return for which values it is known."""
    if hasattr(curve, "samples"):
        return f"sampled at {count(curve.samples.size)} C"
    return f"every {parameter_of(curve)}"


def shown_points(curve: Any) -> np.ndarray:
    """Return the values at which a curve is drawn: all at which it changes, and between them where it is curved."""
    if hasattr(curve, "samples"):
        return curve.samples
    edges = edges_of(curve)
    if not hasattr(curve, "at"):
        return edges
    return curve.shown_values(BETWEEN)


def is_stepped(curve: Any) -> bool:
    """Whether it is constant between its edges."""
    return not hasattr(curve, "at") and not hasattr(curve, "samples")


def is_sampled(curve: Any) -> bool:
    """Whether it, or its mean, is known at some values only."""
    return hasattr(getattr(curve, "mean", curve), "samples")


def draw_curve(ax: Any, curve: Any, **style: Any) -> None:
    """Draw a curve: a staircase, a line through samples, or pieces of parabolas."""
    x = shown_points(curve)
    style = {"linewidth": 1.4, **style}
    if is_stepped(curve):
        ax.step(x, np.append(curve.score, curve.score[-1]), where="post", **style)
    elif hasattr(curve, "samples"):
        ax.plot(x, curve.score, marker="." if x.size <= FEW else None, **style)
    else:
        ax.plot(x, curve(x), **style)


def checked_grid(grid: Any, curve: Any) -> np.ndarray | None:
    """Return the values of a grid; a number of them is spread over all of the axis."""
    if grid is None:
        return None
    first, last = (float(end) for end in edges_of(curve)[[0, -1]])
    if np.ndim(grid) == 0:
        size = validation.check_count("grid", grid)
        return np.clip((np.geomspace if parameter_of(curve) == "C" else np.linspace)(first, last, size), first, last)
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if values.size == 0 or not (values[0] >= first and values[-1] <= last):
        raise ValueError(f"grid must be values from {first:g} to {last:g}, or how many of them; got {grid!r}.")
    return values


def mark_best(
    ax: Any, curve: Any, best: list[tuple[float, float]], parameter: str, more: str = "", apart: str = " "
) -> None:
    """Shade the intervals with the best score, and mark those that are a single value."""
    if not best:
        return
    if is_sampled(curve):  # scores of decision values go up and down in the last digit: slivers are left to the legend
        best = sorted(best, key=lambda ends: ends[0] / ends[1])
        said = f"best: {number(curve.best_score)}{more}{apart}{_where(best, parameter, apart)}"
        widths = [np.log(high / low) for low, high in best]
        wide = [ends for ends, width in zip(best, widths, strict=True) if width >= SLIVER * widths[0]]
        look.shade(ax, wide, look.GREEN, said)
        return
    said = f"best: {number(curve.best_score)}{more}{apart}{_where(best, parameter, apart)}"
    at = [low for low, high in best if low == high]
    look.shade(ax, best, look.GREEN, "" if at else said)
    if at:
        ax.plot(at, [curve.best_score] * len(at), "*", color=look.GREEN, markersize=11, zorder=4, label=said)


def finish(ax: Any, curve: Any, title: str, grid: np.ndarray | None, of: str = "", apart: str = " ") -> None:
    """Add the grid, and say of what it is; name the axes."""
    parameter = parameter_of(curve)
    if grid is not None:
        _draw_grid(ax, grid, curve(grid), parameter, of, apart)
    look.dress(ax, parameter, title, is_log=parameter == "C")
    ax.set_xlim(*edges_of(curve)[[0, -1]])


def _where(best: list[tuple[float, float]], parameter: str, apart: str) -> str:
    """Return where the best score is, in words."""
    low, high = best[0]
    words = (
        f"at {parameter} = {number(low)}" if low == high else f"for {parameter} from {number(low)} to {number(high)}"
    )
    return words + (f"{apart}and {count(len(best) - 1, 'other interval')}" if len(best) > 1 else "")


def _draw_grid(ax: Any, values: np.ndarray, scores: np.ndarray, parameter: str, of: str, apart: str) -> None:
    """Mark what a grid sees."""
    colour = look.ORANGE if look.is_dark(ax) else look.VERMILLION
    best = int(np.nanargmax(scores)) if np.isfinite(scores).any() else None
    found = "" if best is None else f",{apart}best {number(scores[best])} at {parameter} = {number(values[best])}"
    ax.plot(
        values, scores, "o", markersize=4.5, markerfacecolor="none", color=colour, zorder=3,
        label=f"grid of {count(values.size)}{of}{found}",
    )  # fmt: skip
