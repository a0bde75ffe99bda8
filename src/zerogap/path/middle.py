"""The bias in the middle of all that are optimal, as solvers for one C have it, where it is not unique.

That is on segments where no point is strictly between its bounds, as for small C if both classes weigh the same.  There b does
not change with lam, and with it F = K b; s being the side of zero on which a point is, or gets to, the bias obeys

    max (t_i - s_i eps - F_i)  <=  bias  <=  min (t_i - s_i eps - F_i),

the maximum over the points whose b can rise, the minimum over those whose b can fall.  All of these are lines in lam: so the
one end of the interval is convex, the other concave, and the middle a straight line from kink to kink of either.  An engine
keeps one point on its margin; here such a segment is cut at the kinks, and its parts get the bias of the middle.
Where another segment follows the interval ends in one bias, so that nothing jumps.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.path.engine import Segment
from zerogap.path.family import Family
from zerogap.path.result import Path

AT_BOUND = 1e-12  # relative: a coefficient this near to a bound is there but for rounding
SLOPE = (
    1e-9  # by rounding the slope of a bias that keeps one point on its margin is this far from that margin's, at most
)
SAME = 1e-15  # relative: lam that differ by a few roundings


class Envelope(NamedTuple):
    """The largest of some lines as lam falls: constant + lam slope, each from its ``lam`` on."""

    lam: np.ndarray
    constant: np.ndarray
    slope: np.ndarray

    def from_lam(self, lam: float) -> tuple[float, float]:
        """Return the line that is the largest just below a lam."""
        k = int(np.count_nonzero(self.lam >= lam * (1.0 - SAME))) - 1
        return float(self.constant[k]), float(self.slope[k])


def centre_biases(path: Path, first: int = 0) -> None:
    """Put the bias in the middle on the segments of a path, from one on, where it is not unique; cut them at its kinks.

    What was proved of such a segment is proved again with its new bias.
    """
    family, lam = path.family, path.lam.tolist()
    if (
        not path.has_segments or not family.has_bias or family.total1 != 0.0
    ):  # of one class the sum moves, and b with it
        return
    with limits.unlimited():
        parts = {k: _parts(path, k, lines, lam[k], lam[k + 1]) for k, lines in _with_an_interval(path, first)}
        path._replace_segments(parts)


def _with_an_interval(path: Path, first: int) -> Iterator[tuple[int, tuple[Envelope, Envelope]]]:
    """Yield the segments with more than one bias, and its bounds: the lower ones, and minus the upper ones."""
    level = _at_bounds(path, _may_be_level(path, first))
    if not level:
        return
    family, box, product = path.family, path.family.box, None
    status, done = path.start.copy(), 0
    at_rest = family.at_rest(status)
    for k, segment, bounds in level:
        moved = path._moved[done : path._before[k]]
        rows, done = moved[:, 0], path._before[k]
        status[rows] = moved[:, 1]  # of several changes of a point the last one stays
        at_rest[rows] = family.at_rest(status[rows], rows)
        b, begin, end = at_rest.copy(), float(path.lam[k]), float(path.lam[k + 1])
        b[segment.points] = segment.coefficients(end)  # of a large kernel value rounding is seen
        product = path._product_of(b) if product is None else product
        F = product.move_to(b)
        b[segment.points] = bounds
        yield k, _bounds(family, box, b, F, begin, end)


def _may_be_level(path: Path, first: int) -> list[int]:
    """Return the segments whose bias moves as the margin of a point does, as where no b moves."""
    sizes, numbers = path._segments.numbers(first)
    target1, eps1 = path.family.target1[path._segments.first_points(first)], path.family.eps1
    off = np.abs(np.abs(numbers[:, 1] - target1) - eps1)
    return (first + np.flatnonzero((sizes <= 1) | (off <= SLOPE * (1.0 + np.abs(target1) + eps1)))).tolist()


def _at_bounds(path: Path, some: list[int]) -> list[tuple[int, Segment, np.ndarray]]:
    """Return those of some segments on which no b is between its bounds, and the bounds that those of the elbow are at."""
    family, segments = path.family, [path._segments[k] for k in some]
    if not some:
        return []
    sizes = np.array([segment.points.size for segment in segments])
    of, edges = np.repeat(np.arange(sizes.size), sizes), np.append(0, np.cumsum(sizes))
    E, u, v = (np.concatenate(x) for x in list(zip(*segments, strict=True))[:3])
    anchor, (lower, upper) = np.array([segment.anchor for segment in segments]), family.box
    bounds = np.stack([lower[E], upper[E], np.zeros(E.size)])[: 3 if family.is_two_sided else 2]
    at = np.stack([path.lam[some], path.lam[np.array(some) + 1]]) - anchor
    off = np.abs((u + at[:, of] * v)[:, None] - bounds).max(axis=0)  # the farther of both ends
    own = bounds[off.argmin(axis=0), np.arange(E.size)]
    is_between = np.bincount(of[off.min(axis=0) > AT_BOUND * family.w[E]], minlength=sizes.size) > 0
    return [(some[j], segments[j], own[edges[j] : edges[j + 1]]) for j in np.flatnonzero(~is_between).tolist()]


def _bounds(
    family: Family, box: tuple[np.ndarray, np.ndarray], b: np.ndarray, F: np.ndarray, begin: float, end: float
) -> tuple[Envelope, Envelope]:
    """Return the lower bounds of the bias, and minus the upper ones."""
    (lower, upper), found = box, []
    for sign, can_move, is_above in ((1.0, b < upper, b >= 0.0), (-1.0, b > lower, b > 0.0)):
        constant, slope = family.target0[can_move] - F[can_move], family.target1[can_move]
        if family.is_two_sided:
            side = np.where(is_above[can_move], 1.0, -1.0)
            constant = family.target0[can_move] - side * family.eps0 - F[can_move]
            slope = slope - side * family.eps1
        found.append(envelope(sign * constant, sign * slope, begin, end))
    return found[0], found[1]


@np.errstate(over="ignore", invalid="ignore")  # what is beyond float64 meets nowhere
def envelope(constant: np.ndarray, slope: np.ndarray, begin: float, end: float) -> Envelope:
    """Return the largest of all lines from a lam down to a smaller one.  Each line of it has a smaller slope than the last."""
    value = constant + begin * slope
    at, largest, found = begin, np.flatnonzero(value == value.max()), []
    while at > end:
        k = int(largest[slope[largest].argmin()])
        found.append((at, constant[k], slope[k]))
        below = np.flatnonzero(slope < slope[k])
        meets = np.minimum((constant[below] - constant[k]) / (slope[k] - slope[below]), at)
        at = float(meets.max(initial=-np.inf))
        largest = below[meets == at]
    return Envelope(*np.array(found).T)


def _parts(
    path: Path, k: int, bounds: tuple[Envelope, Envelope], begin: float, end: float
) -> list[tuple[float, Segment]]:
    """Return the parts of a segment, with where each begins."""
    lower, minus_upper = bounds
    kinks = np.concatenate([lower.lam, minus_upper.lam])
    starts, parts = [begin], []
    for lam in np.sort(kinks)[::-1].tolist():
        if lam < starts[-1] * (1.0 - SAME) and lam > end * (1.0 + SAME):
            starts.append(lam)
    segment = path._segments[k]
    for lam in starts:
        (constant, slope), (minus_constant, minus_slope) = lower.from_lam(lam), minus_upper.from_lam(lam)
        u0, v0 = 0.5 * (constant - minus_constant), 0.5 * (slope - minus_slope)
        parts.append((lam, segment._replace(u0=u0 + segment.anchor * v0, v0=v0)))
    return parts
