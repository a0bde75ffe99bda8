"""Cross-validated scores over C: the mean over the folds, its standard error, and what was chosen, one line a kernel."""

from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap.plots import curves, look
from zerogap.wording import SCORES, count, number, score_in_words, within

if TYPE_CHECKING:
    from zerogap.estimators.cv_curve import CVCurve
    from zerogap.estimators.path_cv import PathCV

NAMES = ("kernel", "gamma", "epsilon")
WIDTH = 9.0  # inches, of which a legend takes a quarter
BELOW = 1.2  # times as far below the best as the first C and its standard error are: what is shown
MOST_NAMED = 12  # lines with a name in the legend


def plot_cv_curve(curve: "CVCurve", grid: Any = None, *, ax: Any = None, label: str | None = None) -> Any:
    """Draw a cross-validated score over C with its standard error and its best intervals, and return the axes.

    Parameters
    ----------
    curve : CVCurve
        What to draw.
    grid : int or array, optional
        A grid beside it, what a search over these C would have seen: their number, or the values.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.
    label : str, optional
        What the score is called; by default by the name that the folds' curves have.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    values = curves.checked_grid(grid, curve.mean)
    ax = look.new_axes(WIDTH) if ax is None else ax
    _draw_mean(ax, curve, f"{curves.extent(curve.mean)},\nmean over {count(curve.n_folds, 'fold')}")
    curves.finish(
        ax,
        curve.mean,
        _title(curve, getattr(curve.mean, "name", "score") if label is None else label),
        values,
        apart="\n",
    )
    look.legend_beside(ax)
    return ax


def plot_cv(model: "PathCV", grid: Any = None, *, ax: Any = None) -> Any:
    """Draw the curve of every kernel that a search has tried, what was chosen with its standard error, and return the axes.

    Parameters
    ----------
    model : SVCPathCV or SVRPathCV
        Fitted.
    grid : int or array, optional
        A grid beside the curve that was chosen: the number of its C, or their values.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    chosen, names = model.cv_curve_, candidate_names(model)
    is_best = model._as_fitted("selection") == "best"
    values = curves.checked_grid(grid, chosen.mean)
    ax = look.new_axes(WIDTH) if ax is None else ax
    own = f"{names[model.best_index_]},\n" if names[model.best_index_] else ""
    _draw_mean(ax, chosen, f"{own}mean over {count(chosen.n_folds, 'fold')}")
    ax.plot(
        [model.C_], [model.best_score_], "D", markersize=7, color=look.ink(ax), zorder=5,
        label=f"chosen: C = {number(model.C_)}" + ("" if is_best else ",\nby one standard error"),
    )  # fmt: skip
    if not is_best:
        _draw_limit(ax, chosen)
    what = " and ".join(part.split(" = ")[0] for part in names[model.best_index_].split(", "))
    of = f" with the same {what}" if what else ""
    curves.finish(ax, chosen.mean, _title(chosen, score_in_words(model._as_fitted("_scoring"))), values, of, "\n")
    others = [k for k in range(len(names)) if k != model.best_index_]
    for k, style in zip(others, look.line_styles(ax, len(others), look.other_colours(ax)), strict=True):
        name = names[k] if len(others) <= MOST_NAMED else ""
        curves.draw_curve(ax, model.cv_curves_[k].mean, **style, linewidth=1.0, alpha=0.8, label=name)
    if not curves.is_stepped(chosen.mean):
        _leave_out_the_worst(ax, chosen)
    if model.gap is not None:
        ax.set_title(within(model.gap), loc="left", fontsize="medium")
    ax.set_xlim(min(curve.edges[0] for curve in model.cv_curves_), max(curve.edges[-1] for curve in model.cv_curves_))
    look.legend_beside(ax)
    return ax


def _draw_limit(ax: Any, chosen: "CVCurve") -> None:
    """Draw how good a C has to be to be chosen by one standard error: the smallest of these is."""
    least = chosen.best_score - float(chosen.std_error(chosen.best_C))
    ax.axhline(least, color=look.ink(ax), linestyle=":", linewidth=1.2, label="one standard error\nbelow the best")


def _leave_out_the_worst(ax: Any, chosen: "CVCurve") -> None:
    """Let errors that grow without end not press the rest flat: of what is far below the first C the axis has no room."""
    first, best = float(chosen(chosen.edges[0])), chosen.best_score
    error = 0.0 if chosen.n_folds == 1 else float(chosen.std_error(chosen.edges[0]))
    room = max(best - first, 0.05 * abs(best)) + error
    bottom, top = ax.get_ylim()
    if np.isfinite([room, best]).all() and room > 0.0 and best - BELOW * room > bottom:
        ax.set_ylim(best - BELOW * room, top)
        if np.nanmin(chosen(curves.shown_points(chosen.mean))) < best - BELOW * room:
            ax.text(
                0.99, 0.015, "the curve goes on below", transform=ax.transAxes, ha="right", va="bottom", fontsize="small",
                color=look.ink(ax),
            )  # fmt: skip


def candidate_names(model: "PathCV") -> list[str]:
    """Return what candidates differ in, a name for each; one alone has none, and a linear kernel no gamma."""
    results, n = model.cv_results_, len(model.cv_curves_)
    names = [name for name in NAMES if f"param_{name}" in results]
    told = [name for name in names if len({str(value) for value in results[f"param_{name}"]}) > 1]
    values = [{name: results[f"param_{name}"][k] for name in told} for k in range(n)]
    return [
        ", ".join(f"{name} = {_value(value)}" for name, value in one.items() if value is not np.ma.masked)
        for one in values
    ]


def _value(value: Any) -> str:
    return number(value) if isinstance(value, float) else str(value)


def _title(curve: "CVCurve", label: str) -> str:
    return SCORES.get(getattr(curve.mean, "scoring", label), label)


def _draw_mean(ax: Any, curve: "CVCurve", words: str) -> None:
    """Draw the mean, the band of one standard error on both sides, and the best."""
    colour, error = look.palette(ax)[0], ""
    curves.draw_curve(ax, curve.mean, color=colour, linewidth=1.8, label=words, zorder=3)
    if curve.n_folds > 1:
        x, low, high = error_band(curve)
        step = "post" if curves.is_stepped(curve.mean) else None
        ax.fill_between(x, low, high, step=step, color=colour, alpha=0.22, linewidth=0, label="± one standard error")
        error = f" ± {number(float(curve.std_error(curve.best_C)), 2)}" if curve.best_intervals else ""
    widest_first = sorted(curve.best_intervals, key=lambda ends: -ends[1] / ends[0])
    curves.mark_best(ax, curve, widest_first, "C", error, apart="\n")


def error_band(curve: "CVCurve") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where the band is drawn, and its lower and upper edge; of a staircase the last of each is repeated."""
    x = curves.shown_points(curve.mean)
    at = np.sqrt(x[:-1]) * np.sqrt(x[1:]) if curves.is_stepped(curve.mean) else x
    mean, error = curve(at), curve.std_error(at)
    low, high = mean - error, mean + error
    return (x, low, high) if at.size == x.size else (x, np.append(low, low[-1]), np.append(high, high[-1]))
