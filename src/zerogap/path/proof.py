"""The largest duality gap over every C of a path, in closed form: from the stored segments and the kernel matrix alone.

Symbols: as in ``engine``; a = y b, h = lam - y F, both linear in lam on a segment.  With z = t / (1 - t), t running from 0 at
the beginning of a segment to 1 at its end, a linear function is (x0 + x1 z) / (1 + z) and a quadratic one three coefficients

    (c0 + 2 c1 z + c2 z²) / (1 + z)²,    0 <= z <= inf,

in which nothing cancels, however far lam falls.  Then

    lam² gap  = sum_i -a_i h_i + w_i max(0, h_i) + |bias| |sum(b)|          lam² dual = lam sum(a) - b'K b / 2,

where each maximum switches at one z.  Between two switches gap / dual is a ratio of two quadratic functions, whose largest
value is at an end or where a quadratic equation holds.

Decision values: those of all points at the beginning of a block of segments are carried along in twice the working precision;
within a block they are one matrix product away.  ``radius`` bounds what rounding leaves in them.  It counts as a part of the
gap for points whose side of the margin it leaves open: those of the elbow, and any other that near.
"""

from itertools import accumulate
from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.compiled import inline, jit, jit_contracted, jit_sums
from zerogap.kernels import UNIT
from zerogap.path.engine import ELBOW, LEFT, Segment, Transition
from zerogap.path.screening import gather
from zerogap.precision import two_sum

BLOCK = 32  # segments whose decision values are computed at once
CHUNK = 64  # rows of the kernel matrix that are summed before they are added to the rest: short sums round less
COLUMN_BLOCK = 256  # of their columns: eight such stretches of rows fit in the fastest cache
SHARP = 1e-9  # above this, the promise, a gap is computed again with decision values in twice the precision
SEEN = 0.25  # a jump between two segments of more than this part of the rounding of sums is computed
SPLIT = 2.0**27 + 1.0  # halves the digits of a number (Veltkamp)
ULP = 8.0 * UNIT  # of a decision value and a margin, once K b is known


class LargestGap(NamedTuple):
    """The largest relative duality gap over a range of C, and a C that has it."""

    gap: float
    C: float


class Piece(NamedTuple):
    """A segment as the proof needs it: where it begins and ends in lam, its lines, and the transitions made before it."""

    lam: float
    end: float
    segment: Segment
    transitions: list[Transition]


class Proof:
    """Goes along a path from its beginning, or from any breakpoint; knows the largest gap so far."""

    def __init__(
        self,
        K: np.ndarray,
        y: np.ndarray,
        w: np.ndarray,
        status: np.ndarray,
        b: np.ndarray,
        *,
        is_positive: bool = True,
    ):
        self.K, self.y, self.w, self.status, self.b = K, y, w, status.astype(np.int64), b.copy()
        # |K_ij| <= norm_i norm_j: by Cauchy and Schwarz, if the kernel is an inner product.
        size = np.diagonal(K) if is_positive else np.full(y.size, np.abs(K).max())
        self.norm = np.sqrt(np.maximum(size, 0.0))
        self.points = PointConstants(y, w, self.norm)
        self.F, self.lost = np.zeros(y.size), np.zeros(y.size)  # K b is their sum
        self._sum_all()
        self.largest = LargestGap(0.0, np.nan)
        self.done = 0  # segments gone along
        self._room = np.empty((0, y.size))

    def room(self, count: int) -> np.ndarray:
        """Return so many rows over all points, in a place used again and again: fresh memory costs more than its use."""
        if len(self._room) < count:
            self._room = np.empty((count, self.y.size))
        return self._room[:count]

    def _sum_all(self) -> None:
        """K b from all its terms; a few rows at a time, so that a limit is seen in between."""
        support = np.flatnonzero(self.b)
        for begin in range(0, support.size, CHUNK):
            limits.check()
            chunk = support[begin : begin + CHUNK]
            _add_rows(self.K, chunk, self.b[chunk], np.zeros(chunk.size), self.F, self.lost)

    def follow(self, pieces: list[Piece]) -> None:
        """Go along more segments; ``limits.Exceeded`` leaves the proof where it is, to be gone on with."""
        for begin in range(0, len(pieces), BLOCK):
            limits.check()
            batch = pieces[begin : begin + BLOCK]
            stacked = _stacked(self._cut(batch))
            room = self.room(len(stacked.numbers) + 1)
            block, capped = _lay_out(self.K, self.points, self.status, self.b, self.F, self.lost, stacked, room)
            self._note(block, capped)
            self._carry(block, stacked.moves)
            self.done += len(batch)

    def _cut(self, pieces: list[Piece]) -> list[Piece]:
        """Cut the segment behind which nothing changes any more: that without a capped point."""
        if np.count_nonzero(self.status == LEFT) > sum(len(piece.transitions) for piece in pieces):
            return pieces  # there are more than can leave
        capped, cut = set(np.flatnonzero(self.status == LEFT).tolist()), []
        for piece in pieces:
            for t in piece.transitions:
                (capped.add if t.target == LEFT else capped.discard)(t.point)
            cut += [piece] if capped else _parts(piece)
        return cut

    def _note(self, block: "Block", capped: np.ndarray) -> None:
        """Take note of the segments of a block whose gap is above the largest known."""
        ratios, z = _ratios(self._known(), self.points, self.F + self.lost, block)
        for k in np.argsort(-ratios):
            if ratios[k] <= self._known():
                return
            ratio, where = float(ratios[k]), float(z[k])
            if ratio > SHARP:  # it may be the rounding of the products
                ratio, where = self._sharpened(block, capped, int(k))
            if ratio > self._known():
                lam, end = block.lam[k], block.end[k]
                gap = ratio / (1.0 + ratio) if np.isfinite(ratio) else 1.0
                at = end if np.isinf(where) else (lam + end * where) / (1.0 + where)
                self.largest = LargestGap(gap, 1.0 / float(at))

    def _known(self) -> float:
        gap = self.largest.gap
        return gap / (1.0 - gap) if gap < 1.0 else np.inf

    def _sharpened(self, block: "Block", capped: np.ndarray, k: int) -> tuple[float, float]:
        """Return the largest gap / dual of one segment and its z, from decision values in twice the working precision."""
        values = []
        for b in (block.start[k], block.stop[k]):
            F, lost = self.F.copy(), self.lost.copy()
            _add_rows(self.K, block.U, b, self.b[block.U], F, lost)
            values.append(F + lost)
        alone = self._alone(block, capped, k, np.stack(values))
        ratios, z = _ratios(-1.0, self.points, np.zeros(self.y.size), alone)
        return float(ratios[0]), float(z[0])

    def _alone(self, block: "Block", capped: np.ndarray, k: int, values: np.ndarray) -> "Block":
        """Return one segment of a block, from K b of all points at its beginning and its end."""
        one, part = slice(k, k + 1), slice(block.edges[k], block.edges[k + 1])
        none = np.zeros((len(block.lam) + 1, block.U.size))  # nothing is left to rounding, and nothing lies between two
        radius, _ = _radii(self.points, block.U, block.edges, block.E, block.start, block.stop, none[1:], none, 0.0)
        cut = {name: getattr(block, name)[one] for name in ("lam", "end", "bias", "status", "start", "stop")}
        return block._replace(
            **cut,
            edges=np.array([0, part.stop - part.start]),
            E=block.E[part],
            radius=radius[one],
            at_begins=np.take(values[:1], block.U, axis=1),
            at_ends=values,
            energy=values @ capped,
        )

    def _carry(self, block: "Block", moves: np.ndarray) -> None:
        """Bring b and K b to the end of a block."""
        _add_rows(self.K, block.U, block.stop[-1], self.b[block.U], self.F, self.lost)
        self.b[block.U] = block.stop[-1]
        self.status[moves[:, 0]] = moves[:, 1]


class PointConstants(NamedTuple):
    """What stays the same for all points: labels, weights, |phi(x)|."""

    y: np.ndarray
    w: np.ndarray
    norm: np.ndarray


class Stacked(NamedTuple):
    """The segments of a block, one behind another."""

    numbers: np.ndarray  # (segments, 5) lam at the beginning and at the end, u0, v0, anchor
    edges: np.ndarray  # (segments + 1,) where each begins in the next three
    E: np.ndarray
    u: np.ndarray
    v: np.ndarray
    counts: np.ndarray  # (segments + 1,) transitions before each
    moves: np.ndarray  # (transitions, 2) point, target


class Block(NamedTuple):
    """A few segments; U are the points that move in one of them, the rest are where they are in all of the block."""

    lam: np.ndarray  # (segments,) at the beginnings
    end: np.ndarray
    bias: np.ndarray  # (segments, 2) at both ends
    U: np.ndarray
    status: np.ndarray  # (segments, |U|) sets
    edges: np.ndarray  # (segments + 1,) where each begins in E
    E: np.ndarray  # positions in U
    start: np.ndarray  # (segments, |U|) b at the beginnings
    stop: np.ndarray
    radius: np.ndarray  # (segments, 5) see below
    at_begins: np.ndarray  # (segments, |U|) K b, less what it is before the block
    at_ends: np.ndarray  # (segments + 1, n) the same at the beginning of the block, and at every end
    rest: np.ndarray  # (n,) 1 for a point that is capped in the whole block, -1 for one at zero, 0 for U
    sum_rest: float  # of b over the rest
    total_rest: float  # of |b|
    reach_rest: float  # of norm |b|
    energy: np.ndarray  # (segments + 1,) what the rest adds to b'K b


def _stacked(pieces: list[Piece]) -> Stacked:
    segments = [piece.segment for piece in pieces]
    E, u, v = (np.concatenate(arrays) for arrays in list(zip(*segments, strict=True))[:3])
    moves = [(t.point, t.target) for piece in pieces for t in piece.transitions]
    return Stacked(
        np.array([(piece.lam, piece.end, *piece.segment[3:]) for piece in pieces]),
        np.array([0, *accumulate(segment.points.size for segment in segments)]),
        E,
        u,
        v,
        np.array([0, *accumulate(len(piece.transitions) for piece in pieces)]),
        np.array(moves, dtype=np.int64).reshape(-1, 2),
    )


def _parts(piece: Piece) -> list[Piece]:
    """Cut a segment on which the solution is in proportion to lam at a power of two, and let it end at the next one.

    There lam v is exact, where the rounding of v would be seen at every larger C; a little more of C is covered then.
    """
    lam, end, segment, transitions = piece
    if segment.anchor != 0.0 or segment.u0 != 0.0 or segment.u.any():
        return [piece]
    cut, beyond = (float(np.ldexp(0.5, int(np.frexp(at)[1]))) for at in (lam, end))
    parts = [Piece(lam, max(cut, beyond), segment, transitions)] if lam > max(cut, beyond) else []
    return [*parts, Piece(cut, beyond, segment, [] if parts else transitions)] if cut > beyond else parts


@inline
def _roundings(size):
    """Return how many roundings a term of ``_product_of`` takes part in, and of the number that is multiplied."""
    return min(size, CHUNK) / 4.0 + 6.0 + (size / CHUNK + 1.0) + 2.0


@jit_contracted
def _product_of(x, rows, K, total):
    """Write x K[rows] to a matrix, four by four rows, a few of K at a time: short sums round less, and stay in the cache."""
    if rows.size == 0:
        total[:] = 0.0
    parts = np.empty((4, COLUMN_BLOCK))
    for begin in range(0, K.shape[1], COLUMN_BLOCK):
        end = min(begin + COLUMN_BLOCK, K.shape[1])
        a, b, c, d = parts[0, : end - begin], parts[1, : end - begin], parts[2, : end - begin], parts[3, : end - begin]
        for first in range(0, rows.size, CHUNK):
            last = min(first + CHUNK, rows.size)
            whole = last - (last - first) % 4
            for s in range(0, len(x), 4):
                # Behind the last row it is taken again, to no effect.
                xa, xb, xc, xd = x[s], x[min(s + 1, len(x) - 1)], x[min(s + 2, len(x) - 1)], x[min(s + 3, len(x) - 1)]
                parts[:] = 0.0
                for j in range(first, whole, 4):
                    r0, r1 = K[rows[j], begin:end], K[rows[j + 1], begin:end]
                    r2, r3 = K[rows[j + 2], begin:end], K[rows[j + 3], begin:end]
                    a0, a1, a2, a3 = xa[j], xa[j + 1], xa[j + 2], xa[j + 3]
                    b0, b1, b2, b3 = xb[j], xb[j + 1], xb[j + 2], xb[j + 3]
                    c0, c1, c2, c3 = xc[j], xc[j + 1], xc[j + 2], xc[j + 3]
                    d0, d1, d2, d3 = xd[j], xd[j + 1], xd[j + 2], xd[j + 3]
                    for i in range(a.size):
                        k0, k1, k2, k3 = r0[i], r1[i], r2[i], r3[i]
                        a[i] += (a0 * k0 + a1 * k1) + (a2 * k2 + a3 * k3)
                        b[i] += (b0 * k0 + b1 * k1) + (b2 * k2 + b3 * k3)
                        c[i] += (c0 * k0 + c1 * k1) + (c2 * k2 + c3 * k3)
                        d[i] += (d0 * k0 + d1 * k1) + (d2 * k2 + d3 * k3)
                for j in range(whole, last):
                    row, a0, b0, c0, d0 = K[rows[j], begin:end], xa[j], xb[j], xc[j], xd[j]
                    for i in range(a.size):
                        k0 = row[i]
                        a[i] += a0 * k0
                        b[i] += b0 * k0
                        c[i] += c0 * k0
                        d[i] += d0 * k0
                for t in range(min(4, len(x) - s)):
                    out, part = total[s + t, begin:end], parts[t]
                    if first == 0:
                        out[:] = 0.0
                    for i in range(out.size):
                        out[i] += part[i]


@jit
def _add_rows(K, rows, new, old, total, lost):
    """Add (new - old)'K[rows] to total + lost, in twice the working precision; written out, so that it vectorises."""
    for k in range(rows.size):
        if new[k] == old[k]:
            continue
        x, x_low = two_sum(new[k], -old[k])
        wide = SPLIT * x
        high = wide - (wide - x)
        low, row = x - high, K[rows[k]]
        for i in range(row.size):
            r, t = row[i], total[i]
            product, large = r * x, SPLIT * r
            r_high = large - (large - r)
            r_low = r - r_high
            rest = r_low * low - (((product - r_high * high) - r_low * high) - r_high * low)
            s = t + product
            part = s - t
            total[i] = s
            lost[i] += (rest + ((t - (s - part)) + (product - part))) + x_low * r


@jit
def _lay_out(K, points, status, b, F, lost, stacked, at_ends):
    """Return a block, and b of the points that are capped in all of it."""
    y, w, norm = points
    numbers, edges, E, u, v, counts, moves = stacked
    n, count = y.size, len(numbers)
    lam, end, bias = np.empty(count), np.empty(count), np.empty((count, 2))
    first, last = np.empty(E.size), np.empty(E.size)
    for k in range(count):
        lam[k], end[k], u0, v0, anchor = numbers[k]
        before, behind = lam[k] - anchor, end[k] - anchor
        bias[k, 0], bias[k, 1] = u0 + before * v0, u0 + behind * v0
        for e in range(edges[k], edges[k + 1]):
            first[e], last[e] = before * v[e] + u[e], behind * v[e] + u[e]
    place, capped, rest = np.full(n, -1), np.zeros(n), np.empty(n)
    for i in range(n):
        capped[i] = y[i] * w[i] if status[i] == LEFT else 0.0
        if b[i] != capped[i]:  # it is in no segment, and read as if it were at its bound
            place[i] = 0
        rest[i] = status[i] - float(ELBOW)  # 1 for points capped in the whole block, -1 for those at zero
    for e in range(E.size):
        place[E[e]] = 0
    for m in range(len(moves)):
        place[moves[m, 0]] = 0
    U = np.flatnonzero(place == 0)
    for j in range(U.size):
        place[U[j]], capped[U[j]], rest[U[j]] = j, 0.0, 0.0
    places, own_status, own_cap = np.empty(E.size, dtype=np.int64), np.empty(U.size, dtype=np.int64), np.empty(U.size)
    for e in range(E.size):
        places[e] = place[E[e]]
    for j in range(U.size):
        own_status[j], own_cap[j] = status[U[j]], y[U[j]] * w[U[j]]
    E = places
    sets, start, stop = _rows_of(own_status, own_cap, edges, E, first, last, moves, place, counts)
    ends, jumps = np.zeros((count + 1, U.size)), np.empty((count, U.size))
    for k in range(count):
        for j in range(U.size):
            ends[k + 1, j] = stop[k, j] - b[U[j]]
            jumps[k, j] = (start[k, j] - b[U[j]]) - ends[k, j]
    radius, is_seen = _radii(points, U, edges, E, start, stop, jumps, ends, _roundings(U.size) * UNIT)
    _product_of(ends, U, K, at_ends)
    at_begins = np.empty((count, U.size))
    for k in range(count):
        for j in range(U.size):
            at_begins[k, j] = at_ends[k, U[j]]
    if is_seen.any():
        seen = np.flatnonzero(is_seen)
        inner, product = np.empty((U.size, U.size)), np.empty((seen.size, U.size))
        gather(K, U, U, inner)
        _product_of(jumps[seen], np.arange(U.size), inner, product)
        for s in range(seen.size):
            for j in range(U.size):
                at_begins[seen[s], j] += product[s, j]
    sum_rest, sum_lost, total_rest, total_lost, reach_rest, energy = 0.0, 0.0, 0.0, 0.0, 0.0, np.empty(count + 1)
    for i in range(n):
        if capped[i] != 0.0:
            sum_rest, more = two_sum(sum_rest, capped[i])
            sum_lost += more
            total_rest, more = two_sum(total_rest, abs(capped[i]))
            total_lost += more
            reach_rest += norm[i] * abs(capped[i])
    own = _dot(capped, F) + _dot(capped, lost)
    for k in range(count + 1):
        energy[k] = _dot(capped, at_ends[k]) + own  # what they add to b'K b
    block = Block(
        lam, end, bias, U, sets, edges, E, start, stop, radius, at_begins, at_ends, rest, sum_rest + sum_lost,
        total_rest + total_lost, reach_rest, energy,
    )  # fmt: skip
    return block, capped


@jit_sums
def _dot(x, y):
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@jit
def _rows_of(status, cap, edges, E, first, last, moves, place, counts):
    """Return, for every segment of a block, the sets of the points U, and their b at its beginning and its end."""
    count, size = edges.size - 1, cap.size
    sets, start, stop = np.empty((count, size), dtype=np.int64), np.empty((count, size)), np.empty((count, size))
    for k in range(count):
        for m in range(counts[k], counts[k + 1]):
            status[place[moves[m, 0]]] = moves[m, 1]
        for j in range(size):
            sets[k, j] = status[j]
            start[k, j] = stop[k, j] = cap[j] if status[j] == LEFT else 0.0
        for e in range(edges[k], edges[k + 1]):
            start[k, E[e]], stop[k, E[e]] = first[e], last[e]
    return sets, start, stop


@jit
def _ratios(known, points, F, block):
    """Return the largest gap / dual of every segment of a block and its z there; a bound only where that is below the known."""
    y, w, norm = points
    lam, end, bias, U, status, edges, E, start, stop, radius, at_begins, at_ends = block[:12]
    rest, sum_rest, total_rest, reach_rest, energy = block[12:]
    count, size = lam.size, U.size
    ratios, zs = np.empty(count), np.empty(count)
    near, n_near = _find_near(lam, end, bias, y, norm, F, rest, at_ends, radius)
    is_moving, room = np.zeros(size, dtype=np.bool_), size + near.shape[1]
    N, D, h0, h1, weight = np.empty(3), np.empty(3), np.empty(room), np.empty(room), np.empty(room)
    for k in range(count):
        is_moving[:] = False
        for e in range(edges[k], edges[k + 1]):
            is_moving[E[e]] = True
        N[:], used, reach = 0.0, 0, reach_rest
        D[0], D[1], D[2] = -0.5 * energy[k], -0.25 * (energy[k] + energy[k + 1]), -0.5 * energy[k + 1]
        total0, total1, sum0, sum1, lost0, lost1 = total_rest, total_rest, sum_rest, sum_rest, 0.0, 0.0
        before, behind = abs(bias[k, 0]) + lam[k], abs(bias[k, 1]) + end[k]
        for j in range(size):
            i = U[j]
            label, b0, b1, f0, f1 = y[i], start[k, j], stop[k, j], F[i] + at_begins[k, j], F[i] + at_ends[k + 1, i]
            if b0 != 0.0 or b1 != 0.0:
                D[0] -= 0.5 * b0 * f0
                D[1] -= 0.25 * (b0 * f1 + b1 * f0)
                D[2] -= 0.5 * b1 * f1
                reach += norm[i] * max(abs(b0), abs(b1))
                sum0, more = two_sum(sum0, b0)
                lost0 += more
                sum1, more = two_sum(sum1, b1)
                lost1 += more
                total0, total1 = total0 + label * b0, total1 + label * b1
            x0, x1 = lam[k] - label * (f0 + bias[k, 0]), end[k] - label * (f1 + bias[k, 1])
            r0, r1 = norm[i] * radius[k, BEGINS], norm[i] * radius[k, ENDS]
            r0, r1 = r0 + ULP * (abs(f0) + before), r1 + ULP * (abs(f1) + behind)
            side = 1.0 if status[k, j] == LEFT else -1.0
            if is_moving[j] or side * x0 <= r0 or side * x1 <= r1:
                used = _count(N, h0, h1, weight, used, label * b0, label * b1, x0, x1, r0, r1, w[i])
        for m in range(n_near[k]):
            i = near[k, m]
            f0, f1 = F[i] + at_ends[k, i], F[i] + at_ends[k + 1, i]
            x0, x1 = lam[k] - y[i] * (f0 + bias[k, 0]), end[k] - y[i] * (f1 + bias[k, 1])
            r0, r1 = norm[i] * (radius[k, BEGINS] + radius[k, JUMP]), norm[i] * radius[k, ENDS]
            r0, r1 = r0 + ULP * (abs(f0) + before), r1 + ULP * (abs(f1) + behind)
            a = w[i] if rest[i] > 0.0 else 0.0
            used = _count(N, h0, h1, weight, used, a, a, x0, x1, r0, r1, w[i])
        s0, s1 = abs(sum0 + lost0) + radius[k, OVER], abs(sum1 + lost1) + radius[k, PAST]
        _add_product(N, abs(bias[k, 0]), abs(bias[k, 1]), s0, s1)
        _add_product(D, lam[k], end[k], total0, total1)
        # Of the dual rounding counts as well: taken off, so that it is never too large.
        off0 = reach * (radius[k, BEGINS] + radius[k, JUMP]) + lam[k] * radius[k, OVER]
        off1 = reach * radius[k, ENDS] + end[k] * radius[k, PAST]
        _add_product(D, 1.0, 1.0, -off0, -off1)
        # And primal - dual is the gap less bias sum(b).
        _add_product(D, -2.0 * abs(bias[k, 0]), -2.0 * abs(bias[k, 1]), s0, s1)
        ratios[k], zs[k] = _maximum(N, D, h0[:used], h1[:used], weight[:used], known)
    return ratios, zs


@inline
def _add_product(c, x0, x1, y0, y1):
    """Add the product of two linear functions."""
    c[0] += x0 * y0
    c[1] += 0.5 * (x0 * y1 + x1 * y0)
    c[2] += x1 * y1


# By how much a decision value may be off, for a norm of one, where a segment begins and where it ends: rounding, and what takes
# coefficients past their bounds back there.  Then the way from the end of the segment before, and the sums of what coefficients
# are past their bounds at both ends.
BEGINS, ENDS, JUMP, OVER, PAST = range(5)


@jit
def _radii(points, U, edges, E, start, stop, jumps, ends, sums):
    """Return these five for every segment, and whether its jump is to be computed: else it counts as if it were rounding."""
    y, w, norm = points
    radius, is_seen = np.zeros((len(jumps), 5)), np.zeros(len(jumps), dtype=np.bool_)
    before = 0.0
    for k in range(len(radius)):
        size, jump = 0.0, 0.0
        for j in range(U.size):
            size += norm[U[j]] * abs(ends[k + 1, j])
            jump += norm[U[j]] * abs(jumps[k, j])
        is_seen[k] = jump > SEEN * sums * size
        radius[k, BEGINS] = before + (sums * jump if is_seen[k] else jump)
        before = sums * size
        radius[k, ENDS], radius[k, JUMP] = before, jump
        for e in range(edges[k], edges[k + 1]):
            j = E[e]
            i = U[j]
            a0, a1 = y[i] * start[k, j], y[i] * stop[k, j]
            o0, o1 = max(-a0, a0 - w[i], 0.0), max(-a1, a1 - w[i], 0.0)
            radius[k, BEGINS] += norm[i] * o0
            radius[k, ENDS] += norm[i] * o1
            radius[k, OVER] += o0
            radius[k, PAST] += o1
    return radius, is_seen


@jit
def _find_near(lam, end, bias, y, norm, F, rest, at_ends, radius):
    """List, for every segment, those of the rest that are not surely on their side of the margin at both its ends."""
    count, n = lam.size, y.size
    near, n_near = np.empty((count, 8), dtype=np.int64), np.zeros(count, dtype=np.int64)
    for k in range(count + 1):
        # An end of one segment is the beginning of the next, but for what rounding leaves between them.
        at, b, r, floor = lam[0], bias[0, 0], 0.0, 0.0
        if k > 0:
            at, b, r = end[k - 1], bias[k - 1, 1], radius[k - 1, ENDS]
        if k < count:
            r = max(r, radius[k, BEGINS] + radius[k, JUMP])
            floor = abs(bias[k, 0] - b)
        floor, row, found = floor + ULP * (abs(b) + at), at_ends[k], 0
        for i in range(n):
            f = F[i] + row[i]
            found += rest[i] * (at - y[i] * (f + b)) < (norm[i] * r + ULP * abs(f) + floor) * abs(rest[i])
        if found:
            largest = 0
            for s in range(count):
                largest = max(largest, n_near[s])
            largest += found
            if largest > near.shape[1]:
                wider = np.empty((count, 2 * largest), dtype=np.int64)
                for s in range(count):
                    for m in range(n_near[s]):
                        wider[s, m] = near[s, m]
                near = wider
            for i in range(n):
                f = F[i] + row[i]
                if rest[i] * (at - y[i] * (f + b)) < (norm[i] * r + ULP * abs(f) + floor) * abs(rest[i]):
                    for s in range(max(k - 1, 0), min(k + 1, count)):
                        n_near[s] = _add_once(near[s], n_near[s], i)
    return near, n_near


@inline
def _add_once(members, count, i):
    for m in range(count):
        if members[m] == i:
            return count
    members[count] = i
    return count + 1


@inline
def _count(N, h0, h1, weight, used, a0, a1, x0, x1, r0, r1, w):
    """Add a point's share of the gap, h being known up to r: at most -a (h - r) + w max(0, h + r), of which the last switches.

    What a is outside its box by costs that much of h.
    """
    outside0, outside1, largest = max(-a0, a0 - w, 0.0), max(-a1, a1 - w, 0.0), max(abs(x0), abs(x1))
    a0, a1 = min(max(a0, 0.0), w), min(max(a1, 0.0), w)
    _add_product(N, a0, a1, r0 - x0, r1 - x1)
    _add_product(N, largest, largest, outside0, outside1)
    h0[used], h1[used], weight[used] = x0 + r0, x1 + r1, w
    return used + 1


@jit
def _maximum(N, D, h0, h1, weight, known):
    """Return the largest (N + sum of weight max(0, h)) / D over all z, with that z; a bound if that is below the known."""
    at = N.copy()
    above0, above2 = N[0], N[2]
    for i in range(h0.size):
        _add_positive(at, h0[i], h1[i], weight[i])
        above0, above2 = above0 + weight[i] * max(h0[i], 0.0), above2 + weight[i] * max(h1[i], 0.0)
    if not (D[0] > 0.0 and D[2] > 0.0 and D[1] > -np.sqrt(D[0] * D[2])):
        return np.inf, 0.0
    # max(0, h) is convex: it lies below the line between its ends, so that the sum is below one quadratic function.
    middle = N[1] + 0.5 * ((above0 - N[0]) + (above2 - N[2]))
    bound, _ = _ratio(above0, middle, above2, D, 0.0, np.inf)
    if bound <= known:
        return bound, 0.0
    order, zs = _switches(h0, h1)
    best, best_z, z = -1.0, 0.0, 0.0
    for s in range(order.size + 1):
        z_end = zs[s] if s < order.size else np.inf
        value, z_best = _ratio(at[0], at[1], at[2], D, z, z_end)
        if value > best:
            best, best_z = value, z_best
        if s < order.size:
            i = order[s]
            sign = -1.0 if h0[i] > 0.0 else 1.0
            at[0] += sign * weight[i] * h0[i]
            at[1] += sign * 0.5 * weight[i] * (h0[i] + h1[i])
            at[2] += sign * weight[i] * h1[i]
        z = z_end
    return best, best_z


@inline
def _add_positive(at, h0, h1, weight):
    """Add weight h, if h is positive in the beginning: h itself, or its limit from there."""
    if h0 > 0.0 or (h0 == 0.0 and h1 > 0.0):
        at[0] += weight * h0
        at[1] += 0.5 * weight * (h0 + h1)
        at[2] += weight * h1


@inline
def _switches(h0, h1):
    """Return which h change sign between the ends, and at which z, in order."""
    index, z, count = np.empty(h0.size, dtype=np.int64), np.empty(h0.size), 0
    for i in range(h0.size):
        if (h0[i] > 0.0 and h1[i] < 0.0) or (h0[i] < 0.0 and h1[i] > 0.0):
            index[count], z[count] = i, -h0[i] / h1[i]
            count += 1
    order = np.argsort(z[:count])
    return index[:count][order], z[:count][order]


@inline
def _ratio(n0, n1, n2, D, low, high):
    """Return the largest (n0 + 2 n1 z + n2 z²) / (D0 + 2 D1 z + D2 z²) between two z, and where it is."""
    best, where = _ratio_at(n0, n1, n2, D, low), low
    value = _ratio_at(n0, n1, n2, D, high)
    if value > best:
        best, where = value, high
    # The derivative is zero where c + 2 b z + a z² is.
    a, b, c = n2 * D[1] - n1 * D[2], 0.5 * (n2 * D[0] - n0 * D[2]), n1 * D[0] - n0 * D[1]
    inside = b * b - a * c
    if inside >= 0.0:
        q = -(b + np.sqrt(inside)) if b > 0.0 else -(b - np.sqrt(inside))
        for k in range(2):
            z = -1.0
            if k == 0 and a != 0.0:
                z = q / a
            elif k == 1 and q != 0.0:
                z = c / q
            if low < z < high:
                value = _ratio_at(n0, n1, n2, D, z)
                if value > best:
                    best, where = value, z
    return best, where


@inline
def _ratio_at(n0, n1, n2, D, z):
    if z > 1.0:
        s = 1.0 / z  # zero for infinity
        return ((n0 * s + 2.0 * n1) * s + n2) / ((D[0] * s + 2.0 * D[1]) * s + D[2])
    return (n0 + (2.0 * n1 + n2 * z) * z) / (D[0] + (2.0 * D[1] + D[2] * z) * z)
