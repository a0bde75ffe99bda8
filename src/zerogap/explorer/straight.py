"""Any path as a browser reads it: straight lines from one breakpoint to the next, in the order of the parameter.

With t = 1 / C on a path over C, and t the parameter itself on one over epsilon or nu, the coefficients b are linear in t
between two breakpoints: b = beta / C over C, else beta.  So is the bias on the same scale, which may jump at one.  A
breakpoint keeps what is not as it was at the one before; a segment keeps which points have changed their set.  Where
dependent points are exchanged at a breakpoint two solutions meet there, with one decision function: any of the two will do.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from zerogap.explorer.encoding import array
from zerogap.path.result import Path
from zerogap.wording import set_words

OUT, EDGE, CAP = 0, 1, 2  # what a set means for the picture: no influence, on an edge, at the cap
LARGEST = 900_000  # changes of coefficients; more would make a page too large for a browser


def encoded(path: Path) -> dict[str, Any]:
    """Return breakpoints, coefficients, sets and events, by ascending parameter."""
    values, along = path.value_of(path.lam), slice(None) if path.parameter == "C" else slice(None, None, -1)
    values = values[along]
    scales = values if path.parameter == "C" else np.ones(values.size)
    sets = [path.sets_at(k) for k in range(values.size - 1)][along]
    point, target, at, before = _events(path, sets, values)
    index, new, counts = _changes(path, values, scales)
    lower, upper = path.family.box
    cap = np.maximum(np.abs(lower), np.abs(upper)) * path.scale_at(float(values[-1])) / scales[-1]
    codes = sorted(path.sets)
    return {
        "parameter": path.parameter, "isLog": path.parameter == "C", "value": array(values),
        "t": array(1.0 / values if path.parameter == "C" else values),
        "rows": array(path.points.rows, "i4"), "weight": array(path.points.weight), "cap": array(cap),
        "y": array(_sides(path, index, new), "i1"),
        "sets": [set_words(path.sets)[code] for code in codes], **_meaning(path, codes),
        "start": array(np.searchsorted(codes, sets[0]), "i1"), "point": array(point, "i4"),
        "target": array(target, "i1"), "eventValue": array(at), "before": array(before, "i4"),
        "counts": array(counts, "i4"), "index": array(index, "i4"), "new": array(new),
        **_biases(path, values, scales),
    }  # fmt: skip


def _biases(path: Path, values: np.ndarray, scales: np.ndarray) -> dict[str, Any]:
    """Return the bias at both ends of every segment: where all points are at bounds it may jump from one to the next."""
    segments, lam = [path._segments[k] for k in range(values.size - 1)], path.lam
    if path.parameter != "C":
        segments, lam = segments[::-1], lam[::-1]
    gain = np.array([path.scale_at(float(value)) for value in values])
    begin, end = (
        np.array([segment.bias(at) for segment, at in zip(segments, some, strict=True)]) for some in (lam[:-1], lam[1:])
    )
    return {
        "biasBegin": array((begin * gain[:-1] + path.shift()) / scales[:-1]),
        "biasEnd": array((end * gain[1:] + path.shift()) / scales[1:]),
    }


def _events(path: Path, sets: list[np.ndarray], values: np.ndarray) -> tuple[Any, Any, Any, Any]:
    """Return which points are in another set than on the segment before, which one, where, and how many come before each."""
    codes = sorted(path.sets)
    moved = [np.flatnonzero(one != other) for one, other in pairwise(sets)]
    sizes = [some.size for some in moved]
    point = np.concatenate([np.zeros(0, dtype=np.int64), *moved])
    none = [np.zeros(0, dtype=np.int64)]
    target = np.concatenate(
        none + [np.searchsorted(codes, later[some]) for some, later in zip(moved, sets[1:], strict=True)]
    )
    return point, target, np.repeat(values[1:-1], sizes), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _changes(path: Path, values: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what coefficients have changed at each breakpoint: whose, to what, and how many at each."""
    last, index, new, counts, total = np.zeros(path.points.rows.size), [], [], [], 0
    for value, scale in zip(values.tolist(), scales.tolist(), strict=True):
        now = path.beta_at(value) / scale
        some = np.flatnonzero(now != last)
        total += some.size
        if total > LARGEST:
            raise ValueError(
                f"This path has more than {LARGEST:,} changes of coefficients, and a browser would be slow. Follow it over a "
                f"smaller range of {path.parameter}, or of fewer points."
            )
        index.append(some)
        new.append(now[some])
        counts.append(some.size)
        last = now
    return np.concatenate(index), np.concatenate(new), np.array(counts)


def _sides(path: Path, index: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return the class of each point, or of a regression the side of the prediction it is mostly on."""
    if path.family.is_hinge:
        return path.y
    sums = np.bincount(index, new, minlength=path.points.rows.size)
    return np.where(sums > 0.0, 1, -1)


def _meaning(path: Path, codes: list[int]) -> dict[str, Any]:
    """Return for each set what it means for the picture, and which side it is on; 0 if the point itself tells."""
    if path.family.is_hinge or path.parameter == "nu":
        return {"roles": [OUT, EDGE, CAP], "sides": [0, 0, 0] if path.family.is_hinge else [-1, -1, -1]}
    if len(codes) == 3:  # without a tube every point is on some side, or predicted exactly
        return {"roles": [CAP, EDGE, CAP], "sides": [-1, -1, 1]}
    return {"roles": [CAP, EDGE, OUT, EDGE, CAP], "sides": [-1, -1, -1, 1, 1]}
