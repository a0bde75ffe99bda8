"""The segments of a path: those that came many at once stay arrays, and are cut out when they are read.

A path has thousands of them, and few are ever looked at one by one.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, MutableSequence
from typing import Any, NamedTuple

import numpy as np

from zerogap.path.engine import Log, Segment

ZERO = np.zeros(1, dtype=np.int64)


class Stack(NamedTuple):
    """Segments one behind another."""

    edges: np.ndarray  # (segments + 1,) where each begins in the next three, and where the last one ends
    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    numbers: np.ndarray  # (segments, 3) u0, v0, anchor


class Run(NamedTuple):
    """Some of the segments of a log, one after the other; or a segment by itself."""

    source: Any
    first: int
    stop: int  # behind the last of them

    @property
    def is_log(self) -> bool:
        """Whether these are segments of a log."""
        return isinstance(self.source, Log)

    def segment(self, k: int) -> Segment:
        """Return the k-th of them."""
        return self.source.segment(self.first + k) if self.is_log else self.source

    def cut(self, begin: int, end: int) -> "Run":
        """Return those from one to before another."""
        return Run(self.source, self.first + begin, self.first + end)

    @property
    def edges(self) -> np.ndarray:
        """Where each of them ends, counted from where the first begins."""
        if not self.is_log:
            return np.array([self.source.points.size])
        return self.source.edges[self.first + 1 : self.stop + 1] - self.source.edges[self.first]

    @property
    def lines(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The points, u and v of all of them."""
        source, part = self.source, slice(None)
        if self.is_log:
            part = slice(source.edges[self.first], source.edges[self.stop])
        return source.points[part], source.u[part], source.v[part]

    @property
    def first_points(self) -> np.ndarray:
        """The first point of the elbow of each; zero if there is none, as in no log."""
        if self.is_log:
            return self.source.points[self.source.edges[self.first : self.stop]]
        return self.source.points[:1] if self.source.points.size else ZERO

    @property
    def numbers(self) -> np.ndarray:
        """u0, v0 and the anchor of each."""
        return self.source.numbers[self.first : self.stop, 1:] if self.is_log else np.array([self.source[3:]])


class Segments(MutableSequence[Segment]):
    """A list of segments, of which many at a time are a part of a log.

    A proof may read along on another thread: what ends a run is noted last, and ``len`` is that.
    """

    def __init__(self, segments: Iterable[Segment] = ()):
        self._runs: list[Run] = []
        self._ends: list[int] = []  # how many segments there are up to the end of each run
        for segment in segments:
            self._add(Run(segment, 0, 1))

    def __copy__(self) -> "Segments":
        found = Segments()
        found._take(self._runs)
        return found

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            begin, stop, step = k.indices(len(self))
            found = [run.segment(j) for run in self._between(begin, stop) for j in range(run.stop - run.first)]
            return found if step == 1 else [self[j] for j in range(begin, stop, step)]
        k = self._place(k)
        run = bisect_right(self._ends, k)
        return self._runs[run].segment(k - (self._ends[run - 1] if run else 0))

    def __setitem__(self, k: Any, segment: Any) -> None:
        if isinstance(k, slice):
            segments = list(self)
            segments[k] = segment
            self._take(Run(one, 0, 1) for one in segments)
            return
        k = self._place(k)
        self._take([*self._between(0, k), Run(segment, 0, 1), *self._between(k + 1, len(self))])

    def __delitem__(self, k: Any) -> None:
        begin, stop, step = k.indices(len(self)) if isinstance(k, slice) else (self._place(k), self._place(k) + 1, 1)
        if step != 1:
            raise ValueError("Only segments one after the other can be taken out at once.")
        self._take([*self._between(0, begin), *self._between(max(begin, stop), len(self))])

    def insert(self, k: int, segment: Segment) -> None:
        """Put a segment before another."""
        if k >= len(self):
            self._add(Run(segment, 0, 1))
        else:
            self._take([*self._between(0, k), Run(segment, 0, 1), *self._between(k, len(self))])

    def extend_by(self, log: Log, first: int) -> None:
        """Append the segments of a log, from one of them on."""
        if first < log.n_segments:
            self._add(Run(log, first, log.n_segments))

    def replaced(self, parts: dict[int, list[Segment]]) -> "Segments":
        """Return a list with several segments in the place of some."""
        found, done = Segments(), 0
        for k in sorted(parts):
            for run in (*self._between(done, k), *(Run(part, 0, 1) for part in parts[k])):
                found._add(run)
            done = k + 1
        for run in self._between(done, len(self)):
            found._add(run)
        return found

    def stack(self, first: int = 0, stop: int | None = None) -> Stack:
        """Return some segments as arrays."""
        runs = list(self._between(first, len(self) if stop is None else stop))
        nothing = ZERO[:0], np.zeros(0), np.zeros(0)
        points, u, v = map(np.concatenate, zip(nothing, *(run.lines for run in runs), strict=True))
        edges, numbers = _edges_and_numbers(runs)
        return Stack(edges, points, u, v, numbers)

    def numbers(self, first: int = 0, stop: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return the sizes of the elbows of some segments, and their u0, v0 and anchors."""
        edges, numbers = _edges_and_numbers(list(self._between(first, len(self) if stop is None else stop)))
        return edges[1:] - edges[:-1], numbers

    def first_points(self, first: int = 0) -> np.ndarray:
        """Return the first point of the elbow of every segment from one on; zero if there is none."""
        return np.concatenate([ZERO[:0], *(run.first_points for run in self._between(first, len(self)))])

    def _place(self, k: int) -> int:
        """Return where a segment is, counted from the beginning."""
        if not -len(self) <= k < len(self):
            raise IndexError(f"There are {len(self)} segments; got {k}.")
        return int(k) + (len(self) if k < 0 else 0)

    def _between(self, first: int, stop: int) -> Iterator[Run]:
        """Yield the runs of the segments from one to before another."""
        at = first
        for j in range(bisect_right(self._ends, first), len(self._ends)):
            if at >= stop:
                return
            begin, end = self._ends[j - 1] if j else 0, self._ends[j]
            yield (
                self._runs[j]
                if first <= begin and end <= stop
                else self._runs[j].cut(at - begin, min(end, stop) - begin)
            )
            at = end

    def _add(self, run: Run) -> None:
        self._runs.append(run)
        self._ends.append(len(self) + run.stop - run.first)

    def _take(self, runs: Iterable[Run]) -> None:
        """Have other runs."""
        found = list(runs)
        self._runs, self._ends = [], []
        for run in found:
            self._add(run)


def _edges_and_numbers(runs: list[Run]) -> tuple[np.ndarray, np.ndarray]:
    edges, done = [ZERO], 0
    for run in runs:
        own = run.edges
        edges.append(own + done if done else own)
        done += int(own[-1])
    return np.concatenate(edges), np.concatenate([np.zeros((0, 3)), *(run.numbers for run in runs)])
