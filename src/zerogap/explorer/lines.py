"""The lines of a path as a browser reads them: the coefficients of the elbow at the end of every segment.

A point that stays in the elbow begins a segment where it ended the one before, and one that joins it at its bound.  So each
coefficient is kept once, and half of what ``Path.to_dict`` has is enough.  Where a segment begins elsewhere, as after an
exchange of dependent points, its beginning is kept as well: nothing is lost but what rounding makes of one point on two lines.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from zerogap.explorer.encoding import array
from zerogap.path.family import ELBOW, LEFT
from zerogap.path.result import Path

SAME = 1e-12  # of a cap: two lines that meet, but for rounding
FLOAT64_BYTES = 7_000_000  # of coefficients; more are kept in single precision, and the page says so


def encoded(path: Path) -> dict[str, Any]:
    """Return the lines of all segments."""
    data = path.to_dict()
    y, weight, lam, before = data["y"], data["weight"], data["lam"], data["before"]
    (lower, upper), cap, status = path.family.box, y * weight, data["start"].copy()
    last, done = np.where(status == LEFT, cap, 0.0), 0
    ends, begins, elbows = [np.zeros(0)], {}, {}
    edges = np.concatenate([[0], np.cumsum(data["sizes"])]).astype(np.int64)
    for k, (a, b) in enumerate(pairwise(edges)):
        for point, _, target in data["event"][done : before[k]]:
            status[point] = target
            last[point] = cap[point] if target == LEFT else 0.0 if target != ELBOW else last[point]
        done = before[k]
        order = np.argsort(data["elbow"][a:b])
        E, u, v = (data[name][a:b][order] for name in ("elbow", "u", "v"))
        first, end = (np.clip(u + (at - data["origin"][k]) * v, lower[E], upper[E]) for at in lam[k : k + 2])
        if (np.abs(first - last[E]) > SAME * weight[E]).any():
            begins[k] = array(first)
        if not np.array_equal(E, np.flatnonzero(status == ELBOW)):
            elbows[k] = E.tolist()
        last[E] = end
        ends.append(end)
    values = np.concatenate(ends)
    bias = [data["u0"] + (at - data["origin"]) * data["v0"] for at in (lam[:-1], lam[1:])]
    return {
        "lam": array(lam), "y": array(y, "i1"), "weight": array(weight), "rows": array(data["rows"], "i4"),
        "start": array(data["start"], "i1"), "before": array(before, "i4"), "sizes": array(data["sizes"], "i4"),
        "point": array(data["event"][:, 0], "i4"), "target": array(data["event"][:, 2], "i1"),
        "eventLam": array(data["event_lam"]), "end": array(values, "f8" if values.nbytes <= FLOAT64_BYTES else "f4"),
        "begins": begins, "elbows": elbows, "biasBegin": array(bias[0]), "biasEnd": array(bias[1]),
    }  # fmt: skip


def is_rounded(lines: dict[str, Any]) -> bool:
    """Whether coefficients are kept in single precision."""
    return lines["end"]["type"] == "f4"
