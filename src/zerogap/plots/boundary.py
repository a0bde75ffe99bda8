"""The decision boundary of a model of two features, its margins, and the points by set."""

from typing import Any, NamedTuple

import numpy as np

from zerogap import validation, wording
from zerogap.plots import look
from zerogap.wording import number

STEPS = 200  # of the grid, in each direction
BESIDE = 0.06  # of the range of the points, drawn on each side of them
ON_MARGIN = 2e-3  # of the margin: what scikit-learn's default tolerance leaves of one; it cannot be seen
REGIONS = (0.30, 0.16)  # how much colour there is beyond the margin, and within
MARKERS = ("o", "^")  # of two classes, as in the explorer
SIZES = (16.0, 46.0, 26.0)  # of points without influence, on the margin, and at the cap
ORDER = np.array([0, 2, 1])  # drawn last, seen best
SETS = ("outside the margin", "on the margin", "inside the margin")
ONE_CLASS_SETS = ("inside", "on the boundary", "outside, at the cap")


class Machine(NamedTuple):
    """A model that predicts points as they are drawn, and the machine in it with the points as that saw them."""

    model: Any
    core: Any
    seen: np.ndarray


def decision_boundary(
    model: Any, X: Any, y: Any = None, *, at: float | None = None, ax: Any = None, steps: int = STEPS
) -> Any:
    """Draw what a classifier of two features decides, with its margins and its support vectors, and return the axes.

    Of two classes the boundary f(x) = 0 is drawn, and the margins f(x) = -1 and f(x) = 1; of one class the boundary; of more
    than two the regions of the classes.  If X are the points of the training, the colour and the size of a point tell its set,
    as in the explorer, and its marker the class; of more than two classes support vectors have a ring.

    Parameters
    ----------
    model : SVC, NuSVC, OneClassSVM, a path of these, or a pipeline
        Fitted to two features: zerogap's or scikit-learn's, alone, at the end of a pipeline, or in a search.
    X : array of shape (n, 2)
        Points to draw, as ``fit`` took them.
    y : array of shape (n,), optional
        Their labels.
    at : float, optional
        Of a path: the C, or of one class the nu, to draw; by default the model's own.
    ax : matplotlib axes, optional
        Where to draw; by default in a new figure.
    steps : int, default 200
        Points of the grid in each direction.

    Returns
    -------
    matplotlib axes
        The drawing.

    Examples
    --------
    >>> from zerogap import SVC, datasets, plots
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> ax = plots.decision_boundary(SVC(C=10.0).fit(X, y), X, y)
    >>> ax.get_xlabel()
    'feature 1'
    """
    steps = validation.check_count("steps", steps)
    points = _points(X)
    machine = _machine(model, X, at)
    classes = np.asarray(getattr(machine.model, "classes_", [-1, 1]))
    is_one_class = not hasattr(machine.model, "classes_")
    codes = None if y is None or is_one_class else _codes(y, classes, len(points))
    ax = look.new_axes(6.2, 5.4) if ax is None else ax
    colours = look.class_colours(ax, classes.size, as_regions=True)
    if classes.size == 2:
        _draw_margins(ax, machine.model, X, points, steps, colours, is_one_class=is_one_class)
    else:
        _draw_regions(ax, machine.model, X, points, steps, colours, classes)
    sets = support_sets(machine, codes, is_one_class=is_one_class)
    _draw_points(ax, points, codes, classes, look.class_colours(ax, classes.size), sets, is_one_class=is_one_class)
    if sets is None:
        _ring_support(ax, machine, points)
    look.dress(ax, *_names(X), title=_title(machine.core))
    ax.grid(False)
    look.legend_beside(ax)
    return ax


# What is drawn.


def _points(X: Any) -> np.ndarray:
    points = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(
            f"decision_boundary draws two features; X has shape {points.shape}. Fit the model to two of them, X[:, [0, 1]]."
        )
    return points


def _machine(model: Any, X: Any, at: float | None) -> Machine:
    """Return the model, that of a path at one of its values, and the machine at its end."""
    from zerogap.foreign.wrappers import core_of

    core = core_of(model, X, None)
    machine = core.model
    path = _path_in(model)
    if path is not None:
        own = path.nu if hasattr(path, "nu") else path.C
        machine = path.at(own if at is None else at)
        model = core.wrap(machine)
    elif at is not None:
        raise ValueError(f"at= chooses a model of a path; {type(core.model).__name__} is one model. Leave it out.")
    if not (hasattr(machine, "decision_function") and hasattr(machine, "support_")):
        raise TypeError(
            "decision_boundary draws a fitted SVC, NuSVC or OneClassSVM, or a path of these, alone or at the end of a "
            f"pipeline; got {type(machine).__name__}."
        )
    seen = core.X.toarray() if hasattr(core.X, "toarray") else np.asarray(core.X, dtype=np.float64)
    return Machine(model, machine, seen)


def _path_in(model: Any) -> Any:
    """Return the path that a model ends in, if there is one."""
    while True:
        if hasattr(model, "steps"):
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        else:
            return model if hasattr(model, "at") and hasattr(model, "breakpoints_") else None


def _codes(y: Any, classes: np.ndarray, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must have shape ({n},), one label for each point; got shape {y.shape}.")
    return validation.check_known_labels(y, classes)


def _names(X: Any) -> tuple[str, str]:
    first, second = getattr(X, "columns", ("feature 1", "feature 2"))
    return str(first), str(second)


def _title(core: Any) -> str:
    values = [f"{name} = {number(float(getattr(core, name)))}" for name in ("C", "nu") if _is_number(core, name)]
    return f"{type(core).__name__}, {', '.join(values)}" if values else type(core).__name__


def _is_number(model: Any, name: str) -> bool:
    return name in model.get_params() and validation.is_number(getattr(model, name))


# Regions.


def _grid(X: Any, points: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return where the grid is on both axes, and its points as the model takes them."""
    low, high = points.min(axis=0), points.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    first, second = (
        np.linspace(a, b, max(steps, 2)) for a, b in zip(low - BESIDE * width, high + BESIDE * width, strict=True)
    )
    flat = np.column_stack([part.ravel() for part in np.meshgrid(first, second)])
    return first, second, type(X)(flat, columns=X.columns) if hasattr(X, "columns") else flat


def _draw_margins(
    ax: Any, model: Any, X: Any, points: np.ndarray, steps: int, colours: list[Any], *, is_one_class: bool
) -> None:
    """Fill both sides of the boundary, fainter within the margins, and draw all three lines."""
    first, second, flat = _grid(X, points, steps)
    f = np.asarray(model.decision_function(flat)).reshape(second.size, first.size)
    size = max(float(np.abs(f).max()), 2.0)
    faint, strong = REGIONS[1], REGIONS[0]
    levels = [-size, 0.0, size] if is_one_class else [-size, -1.0, 0.0, 1.0, size]
    shades = [(colours[0], faint), (colours[1], faint)] if is_one_class else [
        (colours[0], strong), (colours[0], faint), (colours[1], faint), (colours[1], strong)
    ]  # fmt: skip
    ax.contourf(first, second, f, levels=levels, colors=shades, zorder=0)
    if f.min() < 0.0 < f.max():
        ax.contour(first, second, f, levels=[0.0], colors=[look.ink(ax)], linewidths=1.6, zorder=1)
    ax.plot([], [], color=look.ink(ax), linewidth=1.6, label="boundary, f = 0")
    if is_one_class:
        return
    margins = [level for level in (-1.0, 1.0) if f.min() < level < f.max()]
    if margins:
        ax.contour(
            first, second, f, levels=margins, colors=[look.ink(ax)], linewidths=0.9, linestyles="dashed", zorder=1
        )
    ax.plot([], [], color=look.ink(ax), linewidth=0.9, linestyle="dashed", label="margins, f = ±1")


def _draw_regions(
    ax: Any, model: Any, X: Any, points: np.ndarray, steps: int, colours: list[Any], classes: np.ndarray
) -> None:
    """Fill the region of each class."""
    first, second, flat = _grid(X, points, steps)
    found = np.searchsorted(classes, model.predict(flat)).reshape(second.size, first.size)
    for k, colour in enumerate(colours):
        is_here = (found == k).astype(np.float64)
        if is_here.any():
            ax.contourf(first, second, is_here, levels=[0.5, 1.5], colors=[(colour, 0.22)], zorder=0)
            if not is_here.all():
                ax.contour(first, second, is_here, levels=[0.5], colors=[look.ink(ax)], linewidths=1.0, zorder=1)


# Points.


def _draw_points(
    ax: Any, points: np.ndarray, codes: Any, classes: np.ndarray, colours: list[Any], sets: Any, *, is_one_class: bool
) -> None:
    """Draw the points: the marker tells the class; the colour tells the set where it is known, else the class."""
    if codes is None:
        kinds = [(np.arange(len(points)), "points", look.MARKERS[0], (look.ink(ax), 0.55))]
    else:
        markers = MARKERS if classes.size == 2 else look.MARKERS
        kinds = [
            (np.flatnonzero(codes == k), _class_name(label), markers[k % len(markers)], (colours[k], 0.9))
            for k, label in enumerate(classes)
        ]
    for rows, name, marker, colour in kinds:
        if sets is None:
            ax.scatter(*points[rows].T, s=22, marker=marker, color=[colour], linewidths=0, zorder=2, label=name)
        else:
            rows = rows[np.argsort(ORDER[sets[rows]], kind="stable")]
            ax.scatter(*points[rows].T, marker=marker, zorder=2, gid=name, **_of_sets(ax, sets[rows]))
            if codes is None:
                continue
            # In the legend a class is its marker alone, in ink: its points are of any set.
            ax.scatter([], [], s=28, marker=marker, facecolors="none", edgecolors=look.ink(ax), label=name)
    if sets is not None:
        _name_sets(ax, sets, is_one_class=is_one_class)


def _class_name(label: Any) -> str:
    return f"class {wording.label(label)}"


def _of_sets(ax: Any, sets: np.ndarray) -> dict[str, Any]:
    """Return sizes, colours and edges of points by their sets, as the explorer draws them."""
    ink, ground = look.ink(ax), ax.get_facecolor()
    return {
        "s": [SIZES[k] for k in sets],
        "facecolors": [look.set_colours(ax)[k] for k in sets],
        "edgecolors": [ink if k == 1 else ground for k in sets],
        "linewidths": [1.2 if k == 1 else 0.4 for k in sets],
    }


def _name_sets(ax: Any, sets: np.ndarray, *, is_one_class: bool) -> None:
    """Name the sets in the legend, with how many points they have."""
    for k in (1, 2, 0):
        if np.any(sets == k):
            name = f"{(ONE_CLASS_SETS if is_one_class else SETS)[k]} ({np.count_nonzero(sets == k)})"
            ax.scatter([], [], marker=look.MARKERS[0], label=name, **_of_sets(ax, np.array([k])))


def support_sets(machine: Machine, codes: Any, *, is_one_class: bool) -> np.ndarray | None:
    """Return the set of each point: 0 without influence, 1 on the margin, 2 at the cap; None where that is not known.

    It is known of two classes and of one, if the points are those of the training.  On its margin is a point whose decision
    value says so: the model need not tell its cost for that, nor the weights.
    """
    support = _support(machine)
    core, seen = machine.core, machine.seen
    if support is None or not (is_one_class or (codes is not None and np.asarray(core.classes_).size == 2)):
        return None
    f = np.asarray(core.decision_function(seen[support])).ravel()
    if is_one_class:
        excess, slack = f, ON_MARGIN * float(np.abs(core.decision_function(seen)).max())
    else:
        excess, slack = np.where(codes[support] == 1, f, -f) - 1.0, ON_MARGIN
    sets = np.zeros(len(seen), dtype=np.int64)
    sets[support] = np.where(np.abs(excess) <= slack, 1, 2)
    return sets


def _support(machine: Machine) -> np.ndarray | None:
    """Return the rows of the support vectors; None if the points are not those of the training."""
    core, seen = machine.core, machine.seen
    support, vectors = np.asarray(core.support_), core.support_vectors_
    vectors = vectors.toarray() if hasattr(vectors, "toarray") else np.asarray(vectors)
    if support.size == 0 or support.max() >= len(seen) or not np.array_equal(vectors, seen[support]):
        return None
    return support


def _ring_support(ax: Any, machine: Machine, points: np.ndarray) -> None:
    """Ring the support vectors whose sets are not known."""
    rows = _support(machine)
    if rows is not None:
        style = {"s": 75, "marker": "o", "facecolors": "none", "linewidths": 1.3, "edgecolors": look.ink(ax)}
        ax.scatter(*points[rows].T, **style, alpha=0.85, zorder=3, label=f"support vectors ({rows.size})")
