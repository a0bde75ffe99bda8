"""Pictures of a command's results in files."""

from collections.abc import Sequence
from typing import Any

from zerogap.cli.arguments import Parser, UsageError
from zerogap.cli.report import check_output

RESOLUTION = 150  # dots an inch, of forms that have dots


def add_option(parser: Parser, what: str) -> None:
    """Add ``--plot``."""
    parser.add_argument("--plot", metavar="FILE", help=f"draw {what}; the ending says the form, such as .png")


def check(name: str | None) -> None:
    """Refuse a picture that cannot be drawn, before anything is computed."""
    if name is None:
        return
    check_output("--plot", name)
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError('--plot needs matplotlib: pip install "zerogap[plots]"') from error
    known = Figure().canvas.get_supported_filetypes()
    ending = name.rpartition(".")[2].lower()
    if "." not in name or ending not in known:
        raise UsageError(f"--plot {name}: the ending must be one of {', '.join(sorted(known))}")


def save(axes: Any, name: str) -> None:
    """Write the figure of axes to a file."""
    from zerogap.plots.look import pyplot

    figure = (axes[0] if isinstance(axes, Sequence) or hasattr(axes, "ndim") else axes).figure
    figure.savefig(name, dpi=RESOLUTION, bbox_inches="tight")
    pyplot().close(figure)


def mark(ax: Any, chosen: tuple[float, str] | None) -> None:
    """Draw a line at the C that folds have chosen, if they have, and name it in the legend."""
    if chosen is None:
        return
    from zerogap.plots import look

    C, words = chosen
    ax.axvline(C, color=look.ink(ax), linestyle="--", linewidth=1.3, label=f"C = {C:.4g}, {words}")
    look.legend_above(ax)
