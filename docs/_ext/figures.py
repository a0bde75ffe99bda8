"""How the figures of the gallery look: called before each example, so that none inherits what another has set."""

from typing import Any

import matplotlib as mpl
from cycler import cycler

STYLE = {
    "figure.figsize": (7.0, 3.8),
    "figure.dpi": 110,
    "savefig.facecolor": "white",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "figure.constrained_layout.use": True,
    "axes.prop_cycle": cycler(color=["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#C77800", "#5D6D7E"]),
}


def reset(gallery_conf: dict[str, Any], file: str) -> None:
    """Give matplotlib the style of the gallery."""
    mpl.rcdefaults()
    mpl.use("agg")
    mpl.rcParams.update(STYLE)
