"""What all pictures share: matplotlib on demand, colours that differ for every kind of sight, axes with little ink.

The ink is that of the axes' own labels, and which of the colours come first depends on the ground: both styles of matplotlib,
light and dark, are legible.  Nothing is told by a colour alone.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

# Okabe and Ito's colours (2008); yellow is not seen on white, and blue hardly on black.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, VERMILLION, PURPLE = "#E69F00", "#D55E00", "#CC79A7"
ON_LIGHT = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY)
GREY = "#8C8C8C"
ON_DARK = (SKY, ORANGE, GREEN, PURPLE, YELLOW, VERMILLION)
# What classes and sets are drawn in, here and on pages of the explorer (explorer/src/style.css), on light and on dark ground.
# As lines, classes need more contrast than as regions: there the second has a darker orange.
CLASSES = ((BLUE, "#C77800", GREEN, PURPLE, VERMILLION, SKY), (SKY, "#F0B429", GREEN, PURPLE, YELLOW, VERMILLION))
REGIONS = ((BLUE, ORANGE, *CLASSES[0][2:]), CLASSES[1])
SETS = (("#9AA5B1", "#007A5A", "#D55E00"), ("#76838F", "#1FD1A5", "#FF7F3F"))  # no influence, on the margin, at the cap
DASHES = ("-", "--", ":", "-.")  # in turn where the colours are used up
MARKERS = ("o", "s", "^", "D", "v", "P")
DARK_BELOW = 0.5  # luminance of the ground
LEGEND: dict[str, Any] = {
    "frameon": False, "borderaxespad": 0.2, "borderpad": 0.2, "fontsize": "small", "handlelength": 1.6, "columnspacing": 1.4
}  # fmt: skip


def pyplot() -> Any:
    """Return matplotlib's pyplot."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "zerogap[plots]"') from error
    return plt


def new_axes(width: float = 6.8, height: float = 4.2) -> Any:
    """Return the axes of a new figure."""
    return pyplot().subplots(figsize=(width, height), layout="constrained")[1]


def stacked_axes(heights: Sequence[float], width: float = 6.8) -> np.ndarray:
    """Return axes one below another that share what they are over; heights are in inches."""
    options = {"figsize": (width, sum(heights)), "layout": "constrained", "gridspec_kw": {"height_ratios": [*heights]}}
    return pyplot().subplots(len(heights), 1, sharex=True, squeeze=False, **options)[1][:, 0]


def is_dark(ax: Any) -> bool:
    """Whether the ground of axes is dark; axes without a ground of their own have that of their figure."""
    red, green, blue, alpha = _colour(ax.get_facecolor())
    if alpha == 0.0:
        red, green, blue, alpha = _colour(ax.get_figure().get_facecolor())
    return alpha > 0.0 and 0.2126 * red + 0.7152 * green + 0.0722 * blue < DARK_BELOW


def _colour(colour: Any) -> tuple[float, ...]:
    from matplotlib.colors import to_rgba

    return to_rgba(colour)


def palette(ax: Any) -> tuple[str, ...]:
    """Return colours that are seen on the ground of axes."""
    return ON_DARK if is_dark(ax) else ON_LIGHT


def other_colours(ax: Any) -> tuple[str, ...]:
    """Return colours that mean nothing yet, beside a curve in the first one, its best intervals, and a grid."""
    return (PURPLE, YELLOW, GREY) if is_dark(ax) else (PURPLE, SKY, GREY)


def class_colours(ax: Any, number_of: int, *, as_regions: bool = False) -> list[str]:
    """Return the colour of each class, the same in every picture; of two classes the second is the positive one."""
    order = (REGIONS if as_regions else CLASSES)[is_dark(ax)]
    return [order[k % len(order)] for k in range(number_of)]


def set_colours(ax: Any) -> tuple[str, str, str]:
    """Return the colours of points without influence, on the margin, and at the cap: the same in every picture."""
    return SETS[is_dark(ax)]


def ink(ax: Any) -> Any:
    """Return the colour of text."""
    return ax.xaxis.label.get_color()


def line_styles(ax: Any, number: int, colours: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return how so many lines are told apart: by colours, and by dashes as well where these are used up."""
    colours = palette(ax) if colours is None else colours
    return [
        {"color": colours[k % len(colours)], "linestyle": DASHES[k // len(colours) % len(DASHES)]}
        for k in range(number)
    ]


def dress(ax: Any, x: str = "", y: str = "", *, is_log: bool = False, title: str = "") -> None:
    """Name the axes, and take away what says nothing."""
    if is_log:
        ax.set_xscale("log")
    if x:
        ax.set_xlabel(x)
    if y:
        ax.set_ylabel(y)
    if title:
        ax.set_title(title, loc="left", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, color=ink(ax), alpha=0.12, linewidth=0.8)
    ax.set_axisbelow(True)


def legend_above(ax: Any, columns: int = 1) -> None:
    """Put the legend over the axes, where it hides nothing."""
    _opaque(ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns, **LEGEND))


def legend_beside(ax: Any) -> None:
    """Put a legend of many or long lines beside the axes."""
    _opaque(ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), labelspacing=0.7, **LEGEND))


def _opaque(legend: Any) -> None:
    """Let the sample of a faint line not be faint."""
    for handle in legend.get_lines():
        handle.set_alpha(1.0)
        handle.set_linewidth(1.8)


def shade(ax: Any, spans: Iterable[tuple[float, float]], colour: Any, label: str) -> None:
    """Shade parts of the axis; the edges are drawn, so that a part of no width is seen as well."""
    for k, (low, high) in enumerate(spans):
        span = ax.axvspan(low, high, facecolor=(colour, 0.3), edgecolor=(colour, 0.9), linewidth=0.9, zorder=0.5)
        span.set_label(label if k == 0 else "")
