"""What a path predicts for held-out points at every C: where each prediction changes, and to what.

On a segment the scaled decision value of a point is linear in lam = 1/C: its sign changes at one lam at most.  Of several
classes, each pair of them with a path of its own, the prediction is the class with the most votes: it changes only where the
sign of one of the pairs does.  If votes that are equal are decided by the sums of decision values, which are linear on every
interval between the breakpoints of all pairs, it changes also where two of these sums cross.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.path.engine import LEFT
from zerogap.path.result import Path
from zerogap.path.rows import weighted_rows

NO_LENGTH = (
    1e-13  # relative: an interval of C this short is rounding of its ends, of duplicates among the points above all
)
SEGMENTS = 64  # whose decision values are one product: so few that hardly more points move on them than on one
BLOCK_VALUES = 1_000_000  # decision values of them at either end
SAME = 1e-12  # part of its cap by which rounding moves a coefficient where two segments meet
MEMORY = 100_000_000  # bytes of decision values on all segments of all pairs, kept at once where votes are equal


class Ends(NamedTuple):
    """Scaled decision values lam f(x) of all points at both ends of a segment."""

    lam: float
    end: float
    first: np.ndarray
    last: np.ndarray


class Block(NamedTuple):
    """Scaled decision values of t points at the ends of s segments, in the order of lam; where two meet they share a row."""

    lam: np.ndarray  # (r,) descending; twice the same where the solution jumps
    values: np.ndarray  # (r, t)
    first: np.ndarray  # (s,) the row at which a segment begins; the one behind is its end


def values_at_ends(path: Path, K: np.ndarray, places: np.ndarray) -> Iterator[Ends]:
    """Yield the scaled decision values of every segment.

    ``K[places]`` (m, t) are the kernel values of the distinct points against t others.
    """
    for lam, values, rows in _blocks(path, K, places):
        for k in rows.tolist():
            yield Ends(float(lam[k]), float(lam[k + 1]), values[k], values[k + 1])


def _blocks(path: Path, K: np.ndarray, places: np.ndarray) -> Iterator[Block]:
    """Yield the same for some segments at a time."""
    path.check_not_empty()
    cap, is_left = path.y * path.points.weight, path.start == LEFT
    left = np.flatnonzero(is_left)
    g = weighted_rows(K, places[left], cap[left])
    at_once = max(1, min(SEGMENTS, BLOCK_VALUES // max(K.shape[1], 1)))
    count = len(path._segments)
    for first in range(0, count, at_once):
        block, g = _values_of(path, first, min(first + at_once, count), cap, is_left, K, places, g)
        yield block


def _values_of(
    path: Path,
    begin: int,
    stop: int,
    cap: np.ndarray,
    is_left: np.ndarray,
    K: np.ndarray,
    places: np.ndarray,
    g: np.ndarray,
) -> tuple[Block, np.ndarray]:
    """Return the values of some segments by one product, and g behind them; ``is_left`` is brought there in place.

    g is what the points at their caps make.  Of those that move on one of the segments, or between two, B has how far their
    coefficients are from what they are in g: F = g + B K + bias.
    """
    ends = np.stack([path.lam[begin:stop], path.lam[begin + 1 : stop + 1]], axis=1)
    edges, points, u, v, lines = path._segments.stack(begin, stop)
    before = [path._before[begin - 1] if begin else 0, *path._before[begin:stop]]
    made = [(t.point, int(t.target == LEFT) - int(t.origin == LEFT)) for t in path._transitions[before[0] : before[-1]]]
    number = np.repeat(np.arange(stop - begin), np.diff(before))
    moves = np.column_stack([number, np.array(made, dtype=np.int64).reshape(-1, 2)])
    is_moving = np.zeros(cap.size, dtype=np.bool_)
    is_moving[points] = is_moving[moves[:, 1]] = True
    movers, column = np.flatnonzero(is_moving), np.cumsum(is_moving) - 1
    own = cap[movers]
    in_g = np.where(is_left[movers], own, 0.0)
    # A row for either end of every segment, and one for g behind them; a column for each mover, for the bias and for g.
    B, first = np.empty((2 * len(ends) + 1, movers.size + 2)), np.empty(len(ends), dtype=np.int64)
    count = _coefficients(ends, lines, edges, column[points], u, v, moves, column, own, in_g, B, first)
    is_left[movers] = in_g + B[count, :-2] != 0.0
    values = B[: count + 1] @ np.concatenate([K[places[movers]], np.ones((1, g.size)), g[None]])
    lam = np.empty(count)
    lam[first + 1], lam[first] = ends[:, 1], ends[:, 0]
    return Block(lam, values[:-1], first), values[-1]


@jit
def _coefficients(ends, lines, edges, columns, u, v, moves, column_of, cap, in_g, B, first):
    """Write the rows of B, without those of a beginning that is the same as the end before, and where each segment begins."""
    m, count, move = cap.size, 0, 0
    rest = np.zeros(m)
    for k in range(first.size):
        while move < len(moves) and moves[move, 0] == k:
            j = column_of[moves[move, 1]]
            rest[j] += moves[move, 2] * cap[j]
            move += 1
        for side in range(2):
            row, t = B[count], ends[k, side] - lines[k, 2]
            row[m], row[m + 1] = lines[k, 0] + t * lines[k, 1], 1.0
            for j in range(m):
                row[j] = rest[j]
            for e in range(edges[k], edges[k + 1]):
                row[columns[e]] = (u[e] + t * v[e]) - in_g[columns[e]]
            if side == 1 or not _is_same(row, B[count - 1], cap, ends[k, 0], count):
                count += 1
        first[k] = count - 2
    B[count, m], B[count, m + 1] = 0.0, 1.0
    for j in range(m):
        B[count, j] = rest[j]
    return count


@inline
def _is_same(row, before, cap, lam, count):
    """Whether rounding alone tells a row from the one before it."""
    if count == 0 or abs(row[cap.size] - before[cap.size]) > SAME * lam:
        return False
    is_same = True
    for j in range(cap.size):
        is_same &= abs(row[j] - before[j]) <= SAME * abs(cap[j])
    return is_same


def decision_values(
    paths: Sequence[Path], K: np.ndarray, places: Sequence[np.ndarray], C: np.ndarray
) -> Iterator[np.ndarray]:
    """Yield the decision values (t, paths) of all paths at ascending C, each segment's computed once."""
    walks = [values_at_ends(path, K, own) for path, own in zip(paths, places, strict=True)]
    now = [next(walk) for walk in walks]
    for lam in (1.0 / C).tolist():
        for k, walk in enumerate(walks):
            while now[k].end > lam:
                beyond = next(walk, None)
                if beyond is None:
                    break
                now[k] = beyond
        columns = []
        for begin, end, first, last in now:
            share = min(max((lam - end) / (begin - end), 0.0), 1.0)
            columns.append((share * first + (1.0 - share) * last) / lam)
        yield np.stack(columns, axis=1)


class Flips(NamedTuple):
    """Where decision values change their sign, from the smallest C on."""

    start: np.ndarray  # (t,) whether each is positive at the smallest C
    lam: np.ndarray  # (m,) descending
    point: np.ndarray  # (m,)


def sign_flips(path: Path, K: np.ndarray, places: np.ndarray, *, zero: bool = False) -> Flips:
    """Return where the decision values of some points change their sign; ``zero`` is what counts as the sign of zero."""
    is_positive = np.greater_equal if zero else np.greater
    start: Any = None
    lams, points = [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    last = np.zeros((0, K.shape[1]))
    for lam, values, _ in _blocks(path, K, places):
        # Where one block ends and the next begins, too, a root may be that rounding has moved out of both segments.
        lam, values = np.concatenate([lam[: len(last)], lam]), np.concatenate([last, values])
        is_above, last = is_positive(values, 0.0), values[-1:]
        start = is_above[0] if start is None else start
        k, crosses = (is_above[1:] != is_above[:-1]).nonzero()
        if k.size:
            a, b = np.abs(values[k, crosses]), np.abs(values[k + 1, crosses])
            # lam may be very much larger at the beginning than at the end: a mean of both has all its digits.
            roots = np.clip(lam[k] * (b / (a + b)) + lam[k + 1] * (a / (a + b)), lam[k + 1], lam[k])
            order = np.lexsort((-roots, k))
            lams.append(roots[order])
            points.append(crosses[order])
    return Flips(start, np.concatenate(lams), np.concatenate(points))


class Predictions(NamedTuple):
    """The number of the class of each point at the smallest C, and every change of one, ascending in C."""

    start: np.ndarray  # (t,)
    C: np.ndarray  # (m,)
    point: np.ndarray  # (m,)
    code: np.ndarray  # (m,) the class from there on
    ends: tuple[float, float]  # the range of C

    def pieces(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the edges of the intervals on which nothing changes, and how many changes come before each interval.

        Changes at C that are the same but for rounding are one: between them there is no interval to speak of.
        """
        low, high = self.ends
        before, edges = [0], [low]
        for k, C in enumerate(self.C.tolist()):
            if edges[-1] * (1.0 + NO_LENGTH) >= C:
                before[-1] = k + 1
            elif high * (1.0 - NO_LENGTH) > C:
                before.append(k + 1)
                edges.append(C)
        return np.array([*edges, high]), np.array(before)

    def left(self) -> np.ndarray:
        """Return the class that each change leaves."""
        now, found = self.start.copy(), np.empty(self.point.size, dtype=np.int64)
        for k, (i, code) in enumerate(zip(self.point.tolist(), self.code.tolist(), strict=True)):
            found[k], now[i] = now[i], code
        return found


def joined(parts: Sequence[Predictions]) -> Predictions:
    """Return the predictions of all points from those of some, then some more, and so on."""
    if len(parts) == 1:
        return parts[0]
    first = np.cumsum([0, *(part.start.size for part in parts)])
    C, point, code = (
        np.concatenate(arrays)
        for arrays in zip(
            *((part.C, part.point + before, part.code) for part, before in zip(parts, first, strict=False)), strict=True
        )
    )
    order = np.argsort(C, kind="stable")
    start = np.concatenate([part.start for part in parts])
    return Predictions(start, C[order], point[order], code[order], parts[0].ends)


def of_two_classes(path: Path, K: np.ndarray, places: np.ndarray | None = None) -> Predictions:
    """Return the predictions of a path: class 1 where the decision value is above zero, else class 0.

    ``K[places]``, by default K, are the kernel values of the distinct points against the points; the places of those that never
    have a coefficient do not matter.
    """
    start, lam, point = sign_flips(path, K, np.arange(len(K)) if places is None else places)
    code = start.astype(np.int64)
    after = np.empty(point.size, dtype=np.int64)
    turned = code.copy()
    for k, i in enumerate(point.tolist()):
        turned[i] = after[k] = 1 - turned[i]
    return Predictions(code, 1.0 / lam, point, after, (float(path.C[0]), float(path.C[-1])))


def of_votes(
    paths: Sequence[Path],
    K: np.ndarray,
    places: Sequence[np.ndarray],
    n_classes: int,
    *,
    break_ties: bool = False,
    each: Callable[[Callable[[int], Any], int], list[Any]],
) -> Predictions:
    """Return the predictions of one path a pair of classes, in the order (0, 1), (0, 2), ..., as :class:`zerogap.SVC` votes.

    ``K[places[k]]`` are the kernel values of the distinct points of path k against the points; ``each`` maps over paths.
    """
    pairs = np.array(list(combinations(range(n_classes), 2)))
    # Of a value of zero the plain vote goes to the second class, that of the decision values by class to the first.
    flips = each(lambda k: sign_flips(paths[k], K, places[k], zero=break_ties), len(paths))
    low, high = max(float(path.C[0]) for path in paths), min(float(path.C[-1]) for path in paths)
    lam = np.concatenate([flip.lam for flip in flips])
    point = np.concatenate([flip.point for flip in flips])
    pair = np.repeat(np.arange(len(paths)), [flip.lam.size for flip in flips])
    order = np.argsort(-lam, kind="stable")
    lam, point, pair = lam[order], point[order], pair[order]
    start = np.array([flip.start for flip in flips])
    if not break_ties:
        first, where, code = _votes(start, pairs, pair, point, n_classes)
        return Predictions(first, 1.0 / lam[where], point[where], code, (low, high))
    return _with_ties_broken(paths, K, places, pairs, start, lam, point, pair, (low, high))


@jit
def _votes(positive, pairs, pair, point, n_classes):
    """Return the first class with the most votes for every point, the flips that change it, and the class from there on."""
    t = positive.shape[1]
    votes = np.zeros((t, n_classes), dtype=np.int64)
    now = np.empty((positive.shape[0], t), dtype=np.bool_)
    for p in range(pairs.shape[0]):
        for i in range(t):
            now[p, i] = positive[p, i]
            votes[i, pairs[p, 0] if positive[p, i] else pairs[p, 1]] += 1
    code = np.empty(t, dtype=np.int64)
    for i in range(t):
        code[i] = np.argmax(votes[i])
    first = code.copy()
    where, new, size = np.empty(pair.size, dtype=np.int64), np.empty(pair.size, dtype=np.int64), 0
    for k in range(pair.size):
        p, i = pair[k], point[k]
        step = -1 if now[p, i] else 1
        now[p, i] = not now[p, i]
        votes[i, pairs[p, 0]] += step
        votes[i, pairs[p, 1]] -= step
        most = np.argmax(votes[i])
        if most != code[i]:
            code[i], where[size], new[size] = most, k, most
            size += 1
    return first, where[:size], new[:size]


def _with_ties_broken(
    paths: Sequence[Path],
    K: np.ndarray,
    places: Sequence[np.ndarray],
    pairs: np.ndarray,
    start: np.ndarray,
    lam: np.ndarray,
    point: np.ndarray,
    pair: np.ndarray,
    ends: tuple[float, float],
) -> Predictions:
    """Return the predictions where of classes with equal votes the one with the largest sum of decision values wins."""
    t = start.shape[1]
    edges = np.concatenate([path.lam for path in paths])
    offsets = np.cumsum([0, *(len(path) for path in paths)])
    by_point = np.argsort(point, kind="stable")  # those of one point stay in the order of lam
    bounds = np.searchsorted(point[by_point], np.arange(t + 1))
    first, found = np.empty(t, dtype=np.int64), []
    at_once = max(1, MEMORY // (16 * edges.size))
    for begin in range(0, t, at_once):
        some = slice(begin, min(begin + at_once, t))
        values, columns = np.zeros((2, edges.size, some.stop - some.start)), np.ascontiguousarray(K[:, some])
        for k, path in enumerate(paths):
            for j, of_segment in enumerate(values_at_ends(path, columns, places[k])):
                values[0, offsets[k] + j], values[1, offsets[k] + j] = of_segment.first, of_segment.last
        for i in range(some.start, some.stop):
            own = by_point[bounds[i] : bounds[i + 1]]
            at, code = _walk(
                start[:, i],
                pairs,
                lam[own],
                pair[own],
                edges,
                offsets,
                *values[:, :, i - begin],
                1.0 / ends[0],
                1.0 / ends[1],
            )
            first[i] = code[0]
            found.append((at[1:], np.full(at.size - 1, i), code[1:]))
    at, points, code = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-at, kind="stable")
    return Predictions(first, 1.0 / at[order], points[order], code[order], ends)


@jit
def _walk(positive, pairs, flip_lam, flip_pair, edges, offsets, first, last, lam_start, lam_end):
    """Return where the class of one point changes from the largest lam on, and the class from there; its start is the first.

    ``edges[offsets[p] + j]`` is where segment j of pair p begins, and ``first`` and ``last`` are the values at its ends.
    """
    n_classes = pairs[-1, 1] + 1
    votes, now = np.zeros(n_classes, dtype=np.int64), positive.copy()
    for p in range(pairs.shape[0]):
        votes[pairs[p, 0] if now[p] else pairs[p, 1]] += 1
    segment = np.zeros(pairs.shape[0], dtype=np.int64)
    upper, lower = np.zeros(n_classes), np.zeros(n_classes)  # sums of decision values at both ends of an interval
    at, code = [lam_start], [-1]
    high = lam_start
    for k in range(flip_lam.size + 1):
        low = max(flip_lam[k], lam_end) if k < flip_lam.size else lam_end
        most = votes.max()
        tied = np.flatnonzero(votes == most)
        if high > low and tied.size == 1 and code[-1] != tied[0]:
            at.append(high)
            code.append(tied[0])
        x = high
        while tied.size > 1 and x > low:
            # The next end of a segment of any pair, or the end of the stretch in which the votes are these.
            end = low
            for p in range(pairs.shape[0]):
                while segment[p] < offsets[p + 1] - offsets[p] - 2 and edges[offsets[p] + segment[p] + 1] >= x:
                    segment[p] += 1
                if edges[offsets[p] + segment[p] + 1] < x:
                    end = max(end, edges[offsets[p] + segment[p] + 1])
            upper[:], lower[:] = 0.0, 0.0
            for p in range(pairs.shape[0]):
                j = offsets[p] + segment[p]
                begin, stop = edges[j], edges[j + 1]
                share, rest = (x - stop) / (begin - stop), (end - stop) / (begin - stop)
                f = share * first[j] + (1.0 - share) * last[j]
                g = rest * first[j] + (1.0 - rest) * last[j]
                upper[pairs[p, 0]] += f
                upper[pairs[p, 1]] -= f
                lower[pairs[p, 0]] += g
                lower[pairs[p, 1]] -= g
            # Where two of the sums cross, as a share of the way from x to end.
            crossings = [0.0, 1.0]
            for m in range(tied.size):
                for n in range(m):
                    f, g = upper[tied[m]] - upper[tied[n]], lower[tied[m]] - lower[tied[n]]
                    if f * g < 0.0:
                        crossings.append(f / (f - g))
            ways = np.sort(np.array(crossings))
            for m in range(ways.size - 1):
                middle = 0.5 * (ways[m] + ways[m + 1])
                best = tied[0]
                for c in tied:
                    if (1.0 - middle) * upper[c] + middle * lower[c] > (1.0 - middle) * upper[best] + middle * lower[
                        best
                    ]:
                        best = c
                if ways[m + 1] > ways[m] and code[-1] != best:
                    at.append((1.0 - ways[m]) * x + ways[m] * end)
                    code.append(best)
            x = end
        if k < flip_lam.size:
            p = flip_pair[k]
            step = -1 if now[p] else 1
            now[p] = not now[p]
            votes[pairs[p, 0]] += step
            votes[pairs[p, 1]] -= step
            high = low
    return np.array(at)[1:], np.array(code)[1:]
