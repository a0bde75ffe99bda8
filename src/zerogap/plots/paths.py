"""A path over C, epsilon or nu: how coefficients move, which set the points are in, how many are on the margin."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from zerogap import validation
from zerogap.plots import look
from zerogap.wording import APPROXIMATE_SETS, count, label, set_words, within

if TYPE_CHECKING:
    from zerogap.path.result import Path

SHOWN = ("coefficients", "sets", "elbow")
HEIGHTS = {"coefficients": 3.0, "sets": 2.4, "elbow": 1.7}  # inches
MOST_VALUES = 400  # of C at which coefficients are drawn: no screen shows more
MOST_LINES = 150  # trajectories that can still be told apart
MOST_PAIRS = 24  # lines with a name of their own
LEGEND_ROW = 16.0  # points, of a legend of three columns that is above the axes
LOWER_CAP, LOWER_MARGIN, AT_ZERO, MARGIN, CAP = -2, -1, 0, 1, 2


def plot_path(
    path: "Path",
    show: str = "all",
    *,
    rows: Any = None,
    classes: Sequence[Any] | None = None,
    places: tuple[int, int] = (0, 1),
    ax: Any = None,
) -> Any:
    """Draw a path: the trajectories of coefficients, the sets of points as bands, the size of the elbow.

    Parameters
    ----------
    path : Path
        What to draw, of any loss.
    show : str, default "all"
        "coefficients", "sets", "elbow", or all three one below another.
    rows : array of int, optional
        Rows of the data whose coefficients are drawn; by default the 150 that move most.
    classes : sequence of two, optional
        Names of the classes -1 and +1, for the legend.
    places : tuple of two int, default (0, 1)
        Which of all classes these two are: they have the colours that :func:`decision_boundary` gives them.
    ax : matplotlib axes, optional
        Where to draw, three of them for all; by default in a new figure.

    Returns
    -------
    matplotlib axes, or array of three
        The drawing.
    """
    validation.check_choice("show", show, ("all", *SHOWN))
    path.check_not_empty()
    names = SHOWN if show == "all" else (show,)
    if ax is None:
        axes = look.stacked_axes([HEIGHTS[name] for name in names])
    else:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
    if len(axes) != len(names):
        raise ValueError(f"show={show!r} needs {len(names)} axes, ax=plt.subplots({len(names)})[1]; got {len(axes)}.")
    for name, one in zip(names, axes, strict=True):
        if name == "coefficients":
            _draw_coefficients(path, one, rows, classes, places)
        else:
            (_draw_sets if name == "sets" else _draw_elbow)(path, one)
    for one in axes:
        look.dress(one, path.parameter if one is axes[-1] else "", is_log=path.family.is_over_C)
        one.set_xlim(*sorted(path.value_of(path.lam[[0, -1]])))
    _say_how_exact([path], axes[0])
    return axes if show == "all" else axes[0]


def plot_pairs(paths: Iterable["Path"], names: Iterable[str], ax: Any = None) -> Any:
    """Draw how many support vectors several paths have, one line each, and return the axes.

    Parameters
    ----------
    paths : iterable of Path
        One for each pair of classes.
    names : iterable of str
        What they are called.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib axes
        The drawing.
    """
    several, names = [*paths], [*names]
    for path in several:
        path.check_not_empty()
    ax = look.new_axes() if ax is None else ax
    for path, name, style in zip(several, names, look.line_styles(ax, len(several)), strict=True):
        sizes = np.sum([size for code, size in set_sizes(path).items() if code != AT_ZERO], axis=0)
        ax.stairs(*_ascending(path.value_of(path.lam), sizes), baseline=None, linewidth=1.3, label=name, **style)
    look.dress(ax, several[0].parameter, "support vectors", is_log=several[0].family.is_over_C)
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    if len(several) <= MOST_PAIRS:
        look.legend_above(ax, columns=3)
    else:
        ax.set_title(f"{count(len(several), 'pair')} of classes", loc="left", fontsize="medium")
    _say_how_exact(several, ax)
    return ax


def _say_how_exact(paths: Sequence["Path"], ax: Any) -> None:
    """Put above all else that a path is approximate, if it is."""
    gap = getattr(paths[0], "gap", None)
    if gap is None:
        return
    below = ax.get_title("right")
    rows = 0 if below or ax.get_legend() is None else -(-len(ax.get_legend().get_texts()) // 3)
    ax.set_title(f"{within(gap)}\n{below}".strip(), loc="right", fontsize="small", pad=6.0 + LEGEND_ROW * rows)


# Coefficients.


def shown_values(path: "Path") -> np.ndarray:
    """Return the values at which coefficients are drawn, ascending: breakpoints, and some between."""
    first, last = sorted(path.value_of(path.lam[[0, -1]]))
    between = (np.geomspace if path.family.is_over_C else np.linspace)(first, last, MOST_VALUES // 2)
    between[[0, -1]] = first, last
    breakpoints = path.value_of(path.lam)
    some = np.unique(np.linspace(0, breakpoints.size - 1, min(breakpoints.size, MOST_VALUES // 2)).astype(int))
    return np.unique(np.concatenate([between, breakpoints[some]]))


def _draw_coefficients(
    path: "Path", ax: Any, rows: Any, classes: Sequence[Any] | None, places: tuple[int, int]
) -> None:
    from matplotlib.collections import LineCollection

    values = shown_values(path)
    lines, title = path.coefficients_at(values), "coefficient"
    if path.parameter != "nu":  # on one scale wherever the cap is
        C = values[:, None] if path.parameter == "C" else path.cost  # type: ignore[attr-defined]
        lines, title = lines / C, "coefficient / C"
    chosen = _moving(path, lines) if rows is None else validation.check_indices("rows", rows, lines.shape[1])
    sides = _sides(lines, chosen)
    opacity = float(np.clip(20.0 / max(chosen.size, 1), 0.55 if look.is_dark(ax) else 0.4, 0.9))
    colours = look.class_colours(ax, max(places) + 1)
    names = _side_names(path, classes)
    for side, place, name in zip((1.0, -1.0), reversed(places), names, strict=True):
        colour = colours[place]
        some = chosen[sides == side]
        if some.size:
            drawn = [np.column_stack([values, lines[:, row]]) for row in some]
            ax.add_collection(LineCollection(drawn, colors=colour, alpha=opacity, linewidths=1.1, label=name))
    ax.axhline(0.0, color=look.ink(ax), linewidth=1.0, zorder=3)  # lines at rest there are no class's colour
    ax.autoscale_view()
    ax.set_ylabel(title)
    _say_which(path, ax, chosen.size, is_chosen=rows is not None)


def _moving(path: "Path", lines: np.ndarray) -> np.ndarray:
    """Return the rows whose coefficients move most, one for each distinct point; those at rest all along are left out."""
    moved = np.abs(np.diff(lines[:, path.points.rows], axis=0)).sum(axis=0)
    order = np.argsort(-moved, kind="stable")[:MOST_LINES]
    return np.sort(path.points.rows[order[moved[order] > 0.0]])


def _sides(lines: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the side of zero that coefficients are on, or of a regression mostly on: of two classes it is the class."""
    return np.where(lines[:, rows].sum(axis=0) >= 0.0, 1.0, -1.0)


def _side_names(path: "Path", classes: Sequence[Any] | None) -> tuple[str, str]:
    if classes is not None:
        return f"class {label(classes[1])}", f"class {label(classes[0])}"
    if path.family.is_hinge:
        return "y = +1", "y = −1"
    if path.parameter == "nu":
        return "points", ""
    return "mostly above the prediction", "mostly below"


def _say_which(path: "Path", ax: Any, drawn: int, *, is_chosen: bool) -> None:
    """Say which coefficients are drawn, and of which class."""
    look.legend_above(ax, columns=2)
    all_points = path.points.rows.size
    which = f"{count(drawn, 'point')} of {count(all_points)}" + (
        "" if is_chosen or drawn == all_points else ", those that move most"
    )
    ax.set_title(which if drawn < all_points else count(drawn, "point"), loc="right", fontsize="small")


# Sets.


def set_sizes(path: "Path") -> dict[int, np.ndarray]:
    """Return how many rows of the data are in each set, from each breakpoint to the next, in the order of the path."""
    per_point = np.bincount(path.points.group[path.points.group >= 0], minlength=path.points.rows.size)
    codes = [*path.sets]
    sizes = {code: np.zeros(len(path) - 1, dtype=np.int64) for code in codes}
    for k in range(len(path) - 1):
        sets = path.sets_at(k)
        for code in codes:
            sizes[code][k] = per_point[sets == code].sum()
    return sizes


def words_of(path: "Path") -> dict[int, str]:
    """Return what its sets are called; those of an approximate path are what its coefficients are, and not where points lie."""
    if hasattr(path, "gap"):
        return dict(zip(sorted(path.sets), APPROXIMATE_SETS, strict=True))
    return set_words(path.sets)


def _draw_sets(path: "Path", ax: Any) -> None:
    """Stack the sets, those of support vectors first, and of a tube from its lower to its upper side."""
    edges, bottom = path.value_of(path.lam), np.zeros(len(path) - 1)
    sizes = set_sizes(path)
    is_line, words = "on target" in path.sets.values(), words_of(path)
    for code in sorted(sizes, reverse=min(sizes) == AT_ZERO and not is_line):
        ax.stairs(
            *_ascending(edges, bottom + sizes[code]),
            baseline=_ascending(edges, bottom)[0],
            fill=True,
            label=words[code],
            **_of_set(ax, code, is_line=is_line),
        )
        bottom = bottom + sizes[code]
    ax.set_ylim(0, float(bottom.max()))
    ax.set_ylabel("points")
    look.legend_above(ax, columns=min(len(sizes), 3))


def _ascending(edges: np.ndarray, heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return heights and edges in the order of an axis."""
    return (heights, edges) if edges[-1] >= edges[0] else (heights[::-1], edges[::-1])


def _of_set(ax: Any, code: int, *, is_line: bool) -> dict[str, Any]:
    """Return how a set is filled: both sides of a tube in one colour, the lower one fainter."""
    role = 1 if is_line and code == AT_ZERO else abs(code)  # without a tube, zero is on target
    opacity = 0.45 if role == 0 else 0.5 if code < 0 else 0.9
    return {"color": look.set_colours(ax)[role], "alpha": opacity, "linewidth": 0}


def _draw_elbow(path: "Path", ax: Any) -> None:
    sizes, edges = _ascending(path.value_of(path.lam), path.n_free[:-1])
    ax.stairs(sizes, edges, baseline=None, linewidth=1.3, color=look.set_colours(ax)[1])
    ax.set_ylabel(_free_words(path))
    ax.set_ylim(bottom=0)


def _free_words(path: "Path") -> str:
    """Return what the points between the bounds are called; of a tube those on both edges are counted as one."""
    words = words_of(path)
    if LOWER_MARGIN in words:
        return "on the edge of the tube"
    return words.get(MARGIN, words[AT_ZERO])
