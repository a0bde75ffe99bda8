"""The segments of a path: those that came many at once stay arrays, and are cut out when they are read.

A path has thousands of them, and few are ever looked at one by one.
"""

from collections.abc import Iterable, MutableSequence
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from zerogap.path.engine import Log, Segment


class Stack(NamedTuple):
    """Segments one behind another."""

    edges: np.ndarray  # (segments + 1,) where each begins in the next three, and where the last one ends
    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    numbers: np.ndarray  # (segments, 3) u0, v0, anchor


class Segments(MutableSequence[Segment]):
    """A list of segments, of which some are a log and a place in it."""

    def __init__(self, segments: Iterable[Segment] = ()):
        self._items: list[Any] = list(segments)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, k: Any) -> Any:
        return list(map(_cut_out, self._items[k])) if isinstance(k, slice) else _cut_out(self._items[k])

    def __setitem__(self, k: Any, segment: Any) -> None:
        self._items[k] = segment

    def __delitem__(self, k: Any) -> None:
        del self._items[k]

    def insert(self, k: int, segment: Segment) -> None:
        """Put a segment before another."""
        self._items.insert(k, segment)

    def extend_by(self, log: Log, first: int) -> None:
        """Append the segments of a log, from one of them on."""
        self._items.extend(zip(repeat(log), range(first, log.n_segments), strict=False))

    def replaced(self, parts: dict[int, list[Segment]]) -> "Segments":
        """Return a list with several segments in the place of some."""
        items: list[Any] = []
        done = 0
        for k in sorted(parts):
            items += [*self._items[done:k], *parts[k]]
            done = k + 1
        return Segments(items + self._items[done:])

    def stack(self, first: int = 0, stop: int | None = None) -> Stack:
        """Return some segments as arrays."""
        runs = list(_runs(self._items[first:stop]))
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        points, u, v = map(np.concatenate, zip(nothing, *(_lines(*run) for run in runs), strict=True))
        sizes, numbers = _numbers(runs)
        return Stack(np.concatenate([[0], np.cumsum(sizes)]), points, u, v, numbers)

    def numbers(self, first: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the sizes of the elbows of some segments, and their u0, v0 and anchors."""
        return _numbers(list(_runs(self._items[first:stop])))

    def first_points(self, first: int = 0) -> np.ndarray:
        """Return the first point of the elbow of every segment from one on; zero if there is none."""
        nobody = np.zeros(1, dtype=np.int64)
        runs = _runs(self._items[first:])  # no elbow of a log is empty
        points = [x.points[:1] if k is None else x.points[x.edges[k:end]] for x, k, end in runs]
        return np.concatenate([nobody[:0], *(x if x.size else nobody for x in points)])


def _cut_out(item: Any) -> Segment:
    return item if isinstance(item, Segment) else item[0].segment(item[1])


def _runs(items: list[Any]) -> Iterable[tuple[Any, Any, Any]]:
    """Yield segments that are by themselves, with None, and logs with the first and behind the last of their segments."""
    begin = 0
    while begin < len(items):
        if isinstance(items[begin], Segment):
            yield items[begin], None, None
            begin += 1
            continue
        log, k = items[begin]
        end = begin + 1
        while end < len(items) and items[end][0] is log and items[end][1] == k + end - begin:
            end += 1
        yield log, k, k + end - begin
        begin = end


def _lines(source: Any, k: Any, end: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if k is None:
        return source.points, source.u, source.v
    part = slice(source.edges[k], source.edges[end])
    return source.points[part], source.u[part], source.v[part]


def _numbers(runs: list[tuple[Any, Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    sizes = [np.array([x.points.size]) if k is None else np.diff(x.edges[k : end + 1]) for x, k, end in runs]
    numbers = [np.array([x[3:]]) if k is None else x.numbers[k:end, 1:] for x, k, end in runs]
    return np.concatenate([np.zeros(0, dtype=np.int64), *sizes]), np.concatenate([np.zeros((0, 3)), *numbers])
