"""The largest duality gap over every C of a path, in closed form: from the stored segments and the kernel matrix alone.

Symbols: as in ``engine``; a = y b, h = lam - y F, both linear in lam on a segment.  With z = t / (1 - t), t running from 0 at
the beginning of a segment to 1 at its end, a linear function is (x0 + x1 z) / (1 + z) and a quadratic one three coefficients

    (c0 + 2 c1 z + c2 z²) / (1 + z)²,    0 <= z <= inf,

in which nothing cancels, however far lam falls.  Then

    lam² gap  = sum_i -a_i h_i + w_i max(0, h_i) + |bias| |sum(b)|          lam² dual = lam sum(a) - b'K b / 2,

where each maximum switches at one z.  Between two switches gap / dual is a ratio of two quadratic functions, whose largest
value is at an end or where a quadratic equation holds.

In any other ``family`` a = y b - low, h = y (m - F), w - low in the place of w, and the sum is off by sum(b) - total.  With two
sides a point has a second h, that of the side of the tube it is not on, with a coefficient of zero: it adds w max(0, h).  The
dual is sum(b m) - b'K b / 2; of one class it is -b'K b / 2, and its size counts.

A block of segments at a time.  U are the points that move in it; all others stay at a bound, and add nothing to the gap as long
as they are on their side of the margin.  Decision values of all points are carried from the beginning of a block to its end, in
twice the working precision.  In between N, the normal vector, departs from the straight way from one to the other by a length
that K_UU tells, and no decision value departs from its own straight way by more than |phi(x)| times that: nearly all points are
so seen to stay on their side.  The others, those near it, are looked at as the points U are: by one matrix product.  ``radius``
bounds what rounding leaves in that.  It counts as a part of the gap for points whose side of the margin it leaves open: those
of the elbow, and any other that near.

Who reads a segment at one C rounds its coefficients, and the caps, and puts the sum right by moving one of them
(``Path.beta_at``).  That takes decision values no farther than ``reading`` tells, and counts likewise, if asked for.
"""

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from zerogap import limits
from zerogap.compiled import inline, jit
from zerogap.kernels import UNIT
from zerogap.path.engine import LEFT, RIGHT, Segment, Transition
from zerogap.path.family import Family
from zerogap.path.screening import gather
from zerogap.precision import NEGLIGIBLE_FACTOR, two_sum
from zerogap.threads import alone

BLOCK = 48  # segments whose decision values are computed at once
CHUNK = 64  # terms that are summed before they are added to the rest: short sums round less
SHARP = 1e-9  # above this, the promise, a gap is computed again with decision values in twice the precision
SEEN = 0.25  # a jump between two segments of more than this part of the rounding of sums is computed
SPLIT = 2.0**27 + 1.0  # halves the digits of a number (Veltkamp)
ULP = 8.0 * UNIT  # of a decision value and a margin, once K b is known


class LargestGap(NamedTuple):
    """The largest relative duality gap over a range of C, and a C that has it; along the way it is the lam that has it."""

    gap: float
    C: float


class Piece(NamedTuple):
    """A segment as the proof needs it: where it begins and ends in lam, its lines, and the transitions made before it."""

    lam: float
    end: float
    segment: Segment
    transitions: list[Transition]


class Proof:
    """Goes along a path from its beginning, or from any breakpoint; knows the largest gap so far.

    K is within ``kernel_error`` norm_i norm_j of a positive semidefinite matrix; if that is not known, infinity.
    """

    def __init__(
        self,
        K: np.ndarray,
        family: Family,
        status: np.ndarray,
        b: np.ndarray,
        *,
        is_positive: bool = True,
        kernel_error: float = np.inf,
    ):
        self.K, self.family, self.status, self.b = K, family, status.astype(np.int64), b.copy()
        n = family.n
        # |K_ij| <= norm_i norm_j: by Cauchy and Schwarz, if the kernel is an inner product.
        size = np.diagonal(K) if is_positive else np.full(n, np.abs(K).max())
        self.size = float(np.abs(np.diagonal(K)).max(initial=0.0))
        self.norm, self.kernel_error = np.sqrt(np.maximum(size, 0.0)), kernel_error
        self.points = PointConstants(family.y, family.w, family.low, family.target0, family.target1, self.norm)
        self.F, self.lost = np.zeros(n), np.zeros(n)  # K b is their sum
        self._sum_all()
        # By how much C w is rounded; and the caps of other paths are numbers that are read as they are.
        is_rounded = family.is_over_C & (np.frexp(family.w)[0] != 0.5)
        self.cap_rounding = np.where(is_rounded, UNIT * family.w, 0.0)
        self.is_read = False  # whether the rounding of coefficients that are read counts
        self.centre = 0.0  # of the targets, in the units of decision values, which the bias of who reads has besides
        self.largest = LargestGap(0.0, np.nan)
        self.done = 0  # segments gone along

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
            batch = pieces[begin : begin + BLOCK]
            self.follow_block(_stacked(self._cut(batch)), len(batch))

    def follow_block(self, stacked: "Stacked", count: int | None = None) -> None:
        """Go along a block of segments, of which none is to be cut any more; before that they were so many."""
        limits.check()
        count = stacked.edges.size - 1 if count is None else count
        with alone(count * self.family.n**2):
            self._follow(stacked)
        self.done += count

    def _follow(self, stacked: "Stacked") -> None:
        block, F, lost = self._lay_out(stacked), self.F.copy(), self.lost.copy()
        _add_rows(self.K, block.points, block.stop[-1], block.b, F, lost)
        self._note(self._with_near(block, F + lost))
        self.F, self.lost, self.b[block.points] = F, lost, block.stop[-1]
        self.status[stacked.moves[:, 0]] = stacked.moves[:, 1]

    def may_cut(self, n_transitions: int) -> bool:
        """Whether there are no more capped points than could leave their caps in so many transitions."""
        return bool(np.count_nonzero(np.abs(self.status) == LEFT) <= n_transitions)

    def _cut(self, pieces: list[Piece]) -> list[Piece]:
        """Cut the segment behind which nothing changes any more: that without a capped point."""
        if not self.may_cut(sum(len(piece.transitions) for piece in pieces)):
            return pieces
        at_rest = np.flatnonzero(self.family.at_rest(self.status))
        capped, cut, low = set(at_rest.tolist()), [], self.family.low
        for piece in pieces:
            for t in piece.transitions:
                is_capped = abs(t.target) == LEFT or (t.target == RIGHT and low[t.point] != 0.0)
                (capped.add if is_capped else capped.discard)(t.point)
            cut += [piece] if capped else _parts(piece)
        return cut

    def _lay_out(self, stacked: "Stacked") -> "Block":
        """Return a block over the points that move in it."""
        U, K, place, rest = _movers(
            self.K, self.points, self.family.tube, self.status, self.b, self.F, stacked.E, stacked.moves
        )
        own, rounding = self.points.take(U), _roundings(U.size) * UNIT
        b, status = self.b[U], self.status[U]
        side, way, start, stop, ends, jumps, radius, outside = _rows_of(stacked, place, status, own, b, rounding)
        at_ends = _product(ends, K)
        at_begins, is_seen = _from_zero(at_ends), radius[:, SEEN_JUMP] > 0.0
        if is_seen.any():
            at_begins[is_seen] += _product(jumps[is_seen], K)
        lam, end, u0, v0, anchor = stacked.numbers
        bias = np.stack([u0 + (lam - anchor) * v0, u0 + (end - anchor) * v0], axis=1)
        return Block(
            lam, end, bias, U, U.size, own, b, self.F[U] + self.lost[U], K, K[:, :0], side, way, status[:0], start, stop,
            ends, at_begins, at_ends, radius, _spread(ends, K, rounding), outside, self._reading(stacked, U), rest,
        )  # fmt: skip

    def _reading(self, stacked: "Stacked", U: np.ndarray) -> np.ndarray:
        if not self.is_read:
            return np.zeros((stacked.edges.size - 1, 10))
        reading = _reading(stacked, self.points, self.family.is_over_C)
        if self.cap_rounding.any():
            lost = np.where(self.family.at_rest(self.status) != 0.0, self.cap_rounding, 0.0)
            lost[U] = self.cap_rounding[U]  # which may get to a cap in between
            reading[:, [READ, READ_END]] += float(self.norm @ lost)
            reading[:, [LOST, LOST_END]] += float(lost.sum())
        lam, end = stacked.numbers[:2]
        reading[:, LOST] += 2.0 * UNIT * self.family.total1 * lam
        reading[:, LOST_END] += 2.0 * UNIT * self.family.total1 * end
        if not self.family.has_bias:  # then the sum is what it is
            reading[:, [LOST, LOST_END]] = 0.0
            return reading
        reading[:, LARGEST_CAP] = self.family.w.max(initial=0.0)
        reading[:, CENTRE] = abs(self.centre) * (lam if self.family.is_over_C else 1.0)
        reading[:, CENTRE_END] = abs(self.centre) * (end if self.family.is_over_C else 1.0)
        return reading

    def _with_near(self, block: "Block", F_end: np.ndarray) -> "Block":
        """Return the block with the points that may leave their side of the margin as well; ``F_end`` is K b at its end."""
        U, F = block.points, self.F + self.lost
        near = _find_near(
            block.lam[0], block.end, block.bias, U, block.ends, block.at_ends, block.radius, block.outside, self.points,
            self.family.tube, self.status, F, F_end, self.kernel_error,
        )  # fmt: skip
        K = np.empty((U.size, near.size))
        gather(self.K, U, near, K)
        at_ends, joined = np.empty((len(block.ends), U.size + near.size)), np.concatenate([U, near])
        np.add(block.at_ends, block.F, out=at_ends[:, : U.size])
        np.add(_product(block.ends, K), F[near], out=at_ends[:, U.size :])
        at_begins = np.concatenate([F[None, joined], at_ends[:-1]])
        np.add(block.at_begins, block.F, out=at_begins[:, : U.size])
        spread = _spread(block.ends, K, _roundings(U.size) * UNIT)
        return block._replace(
            points=joined,
            constants=self.points.take(joined),
            K_near=K,
            status_near=self.status[near],
            at_begins=at_begins,
            at_ends=at_ends,
            spread=np.concatenate([block.spread, spread]),
        )

    def _note(self, block: "Block") -> None:
        """Take note of the segments of a block whose gap is above the largest known."""
        bounds = self._shares(block, with_h=False).bounds
        for k in np.argsort(-bounds):
            if bounds[k] <= self._known():
                return
            # Below the promise the bound will do.  Above it may be the rounding of the products.
            ratio, where = (bounds[k], 0.0) if bounds[k] <= SHARP else self._sharpened(block, k)
            if ratio > self._known():
                lam, end = block.lam[k], block.end[k]
                at = end if np.isinf(where) else (lam + end * where) / (1.0 + where)
                self.largest = LargestGap(self._relative(ratio), float(at))

    def _relative(self, ratio: float) -> float:
        """Return gap / |primal| from gap / |dual|: primal = dual + gap, and that of one class is negative."""
        if self.family.total1:
            return float(ratio / (1.0 - ratio)) if ratio < 0.5 else 1.0
        return float(ratio / (1.0 + ratio)) if np.isfinite(ratio) else 1.0

    def _known(self) -> float:
        gap = self.largest.gap
        if self.family.total1:
            return gap / (1.0 + gap) if gap < 1.0 else np.inf
        return gap / (1.0 - gap) if gap < 1.0 else np.inf

    def _shares(self, block: "Block", *, with_h: bool = True) -> "Shares":
        points, is_two_sided = block.constants, self.family.is_two_sided
        shape = (len(block.start) if with_h else 0, block.points.size * (1 + is_two_sided))
        h0, h1 = np.full(shape, -1.0), np.full(shape, -1.0)
        floors = self.family.floor(np.stack([block.lam, block.end]), self.size)
        # That of the coefficient which is moved to make the sum right, if there is one.
        most = float(self.norm.max(initial=0.0)) if self.is_read and self.family.has_bias else -1.0
        N, D, bounds = _sum_shares(block, self.family.tube, self.family.total0, floors, most, h0, h1)
        width = points.w - points.low
        return Shares(N, D, bounds, h0, h1, np.concatenate([width, points.w]) if is_two_sided else width)

    def _sharpened(self, block: "Block", k: int) -> tuple[float, float]:
        """Return the largest gap / dual of one segment and its z, from decision values in twice the working precision."""
        one, values = slice(k, k + 1), []
        U, capped = block.points[: block.n_own], self.family.at_rest(self.status)
        capped[U] = 0.0
        for b in (block.start[k], block.stop[k]):
            F, lost = self.F.copy(), self.lost.copy()
            _add_rows(self.K, U, b, block.b, F, lost)
            values.append(F + lost)
        first, last = (float(capped @ value) for value in values)
        error = self.family.n * UNIT * float(np.abs(capped) @ np.maximum(*np.abs(values)))
        rest = np.array([*block.rest[:ENERGY], first, last, last, error])
        cut = {
            name: getattr(block, name)[one]
            for name in ("lam", "end", "bias", "side", "way", "start", "stop", "outside", "reading")
        }
        nothing, (at_begins, at_ends) = np.zeros(block.n_own), (value[None, block.points] for value in values)
        single = block._replace(
            **cut, at_begins=at_begins, at_ends=at_ends, b=nothing, F=nothing, radius=np.zeros((1, 4)), rest=rest
        )
        return _maximum(self._shares(single), 0)


class Stacked(NamedTuple):
    """The segments of a block, one behind another."""

    numbers: np.ndarray  # (5, segments) lam at the beginning and at the end, u0, v0, anchor
    edges: np.ndarray  # (segments + 1,) where each begins in the next three
    E: np.ndarray
    u: np.ndarray
    v: np.ndarray
    counts: np.ndarray  # (segments + 1,) transitions before each
    moves: np.ndarray  # (transitions, 2) point, target


class PointConstants(NamedTuple):
    """Labels, boxes, targets and |phi(x)| of some points."""

    y: np.ndarray
    w: np.ndarray
    low: np.ndarray
    target0: np.ndarray
    target1: np.ndarray
    norm: np.ndarray

    def take(self, rows: np.ndarray) -> "PointConstants":
        """Return those of some of the points."""
        return PointConstants(*(x[rows] for x in self))


# Of the points that stay at a bound in all of a block: the sums of their b, of b m0, of b m1 and of norm |b|.  Then b'K b
# before the block, thrice: of the b where a segment begins, of both b, and of that where it ends; and how far these may be off.
SUM, TOTAL0, TOTAL1, REACH, ENERGY, ENERGY_BETWEEN, ENERGY_END, ENERGY_ERROR = range(8)


class Block(NamedTuple):
    """A few segments over the points that move in one of them, the first ``n_own``, and over those near their margins."""

    lam: np.ndarray  # (segments,) at the beginnings
    end: np.ndarray
    bias: np.ndarray  # (segments, 2) at both ends
    points: np.ndarray
    n_own: int
    constants: PointConstants
    b: np.ndarray  # (n_own,) before the block
    F: np.ndarray  # (n_own,) K b before the block
    K: np.ndarray  # kernel values of those that move
    K_near: np.ndarray  # kernel values between those that move and those near their margins
    side: np.ndarray  # (segments, n_own) 1 at the cap, -1 at zero, 0 for the elbow
    way: np.ndarray  # (segments, n_own) 1 where coefficients are positive, -1 where they are negative
    status_near: np.ndarray  # the sets of the other points, which tell the same of them, and their b
    start: np.ndarray  # (segments, n_own) b at the beginnings
    stop: np.ndarray
    ends: np.ndarray  # (segments, n_own) b at the ends, less what it is before the block
    at_begins: np.ndarray  # (segments, points) K b; before those near are known, less what it is before the block
    at_ends: np.ndarray
    radius: np.ndarray  # (segments, 4) see below
    spread: np.ndarray  # (points,) what rounding leaves at the ends, by the kernel values themselves
    outside: np.ndarray  # (segments, 4)
    reading: np.ndarray  # (segments, 10)
    rest: np.ndarray  # (8,)


class Shares(NamedTuple):
    """lam² gap = N + sum of weight max(0, h) and lam² dual = D of every segment, h at its beginning and at its end."""

    N: np.ndarray
    D: np.ndarray
    bounds: np.ndarray  # on the largest ratio of the two
    h0: np.ndarray
    h1: np.ndarray
    weight: np.ndarray


def _stacked(pieces: list[Piece]) -> Stacked:
    lam, end, segments, transitions = zip(*pieces, strict=True)
    E, u, v, *numbers = zip(*segments, strict=True)
    moves = [(t.point, t.target) for made in transitions for t in made]
    return Stacked(
        np.array([lam, end, *numbers]),
        np.array([0, *accumulate(map(len, E))]),
        np.concatenate(E),
        np.concatenate(u),
        np.concatenate(v),
        np.array([0, *accumulate(map(len, transitions))]),
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


@jit
def _spread(x, K, rounding):
    """Return what rounding leaves in any row of x K."""
    largest, spread = np.zeros(len(K)), np.zeros(K.shape[1])
    for k in range(len(x)):
        for i in range(largest.size):
            largest[i] = max(largest[i], abs(x[k, i]))
    for i in range(largest.size):
        row, factor = K[i], rounding * largest[i]
        for j in range(spread.size):
            spread[j] += factor * abs(row[j])
    return spread


def _from_zero(at_ends: np.ndarray) -> np.ndarray:
    """Return what is at the ends of the segments before, zero for the first."""
    return np.concatenate([np.zeros((1, at_ends.shape[1])), at_ends[:-1]])


def _roundings(size: int) -> float:
    """Return how many roundings a term of ``_product`` takes part in, and of the number that is multiplied."""
    return min(size, CHUNK) + size / CHUNK + 3.0


def _product(x: np.ndarray, K: np.ndarray) -> np.ndarray:
    """Return x K, a few rows of K at a time: short sums round less, in whatever order BLAS makes them."""
    total = x[:, :CHUNK] @ K[:CHUNK]
    for begin in range(CHUNK, len(K), CHUNK):
        total += x[:, begin : begin + CHUNK] @ K[begin : begin + CHUNK]
    return total


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


# By how much a decision value may be off, for a norm of one: by how much more where a segment begins than where the one before
# ends; where it ends, by rounding; and the way from the end of the segment before, with whether it is computed.
BEGINS, ENDS, JUMP, SEEN_JUMP = range(4)
# What it does to a decision value to take coefficients past their bounds back there, at both ends; and the sums of these.
OVER, PAST, SUM_OVER, SUM_PAST = range(4)

# What the rounding of coefficients that are read does to a decision value, for a norm of one, at both ends; and to their sum.
# Then how far one of them is from its bounds, at least; the largest norm, and the largest coefficient; the largest cap of all;
# and what the bias has besides where the targets are not centred, at both ends.
READ, READ_END, LOST, LOST_END, ROOM, LARGEST_NORM, LARGEST, LARGEST_CAP, CENTRE, CENTRE_END = range(10)


@jit
def _reading(stacked, points, is_over_C):
    """Return what rounding does to the coefficients of every segment that are read."""
    (numbers, edges, E, u, v, _, _), (_, w, _, _, _, norm) = stacked, points
    found = np.zeros((edges.size - 1, 10))
    for k in range(edges.size - 1):
        lam, end, anchor = numbers[0, k], numbers[1, k], numbers[4, k]
        for e in range(edges[k], edges[k + 1]):
            j, t, t_end = E[e], lam - anchor, end - anchor
            b, b_end = abs(u[e] + t * v[e]), abs(u[e] + t_end * v[e])
            if is_over_C and anchor == 0.0:  # C u + v
                lost, lost_end = (abs(u[e]) + b, abs(u[e]) + b_end) if u[e] != 0.0 else (0.0, 0.0)
            else:
                lost = 2.0 * abs(u[e]) + (2.0 * lam + 4.0 * abs(t)) * abs(v[e])
                lost_end = 2.0 * abs(u[e]) + (2.0 * end + 4.0 * abs(t_end)) * abs(v[e])
            found[k, READ] += UNIT * norm[j] * lost
            found[k, READ_END] += UNIT * norm[j] * lost_end
            found[k, LOST] += UNIT * lost
            found[k, LOST_END] += UNIT * lost_end
            found[k, ROOM] = max(found[k, ROOM], min(b, b_end, w[j] - b, w[j] - b_end))
            found[k, LARGEST_NORM] = max(found[k, LARGEST_NORM], norm[j])
            found[k, LARGEST] = max(found[k, LARGEST], b, b_end)
    return found


@inline
def _way(status, y):
    """Return the side of zero that a point of a set is on."""
    return -y if status < 0 else y


@inline
def _at_rest(status, y, low, w):
    """Return the coefficient of a point of a set, as far as the set tells: zero in the elbow."""
    if status == RIGHT:
        return y * low
    return _way(status, y) * w if abs(status) == LEFT else 0.0


@jit
def _movers(K, points, tube, status, b, F, E, moves):
    """Return the points U that move in a block, K_UU, where each is in U, and sums over the others."""
    y, w, low, target0, target1, norm = points
    place, rest, size = np.full(y.size, -1), np.zeros(8), 0
    for e in range(E.size):
        place[E[e]] = 0
    for m in range(len(moves)):
        place[moves[m, 0]] = 0
    U, lost = np.empty(y.size, dtype=np.int64), 0.0
    for i in range(y.size):
        cap = _at_rest(status[i], y[i], low[i], w[i])
        rest[ENERGY] += b[i] * F[i]
        rest[ENERGY_ERROR] += abs(b[i] * F[i])
        if place[i] == 0 or b[i] != cap:  # one in no segment is read as if it were at its bound
            place[i], U[size] = size, i
            size += 1
        elif cap != 0.0:
            rest[SUM], more = two_sum(rest[SUM], cap)
            lost += more
            way = _way(status[i], y[i]) if tube.is_two_sided else 0.0  # with one side there is no eps
            rest[TOTAL0] += cap * (target0[i] - way * tube.eps0)
            rest[TOTAL1] += cap * (target1[i] - way * tube.eps1)
            rest[REACH] += norm[i] * abs(cap)
    rest[SUM] += lost
    rest[ENERGY_ERROR] *= (y.size + 1.0) * UNIT
    rest[ENERGY_BETWEEN] = rest[ENERGY_END] = rest[ENERGY]
    inner = np.empty((size, size))
    gather(K, U[:size], U[:size], inner)
    return U[:size].copy(), inner, place, rest


@jit
def _rows_of(stacked, place, status, own, b, rounding):
    """Return sides, b at the beginnings and at the ends of segments, ends and jumps, radius and outside."""
    (numbers, edges, E, u, v, counts, moves), (y, w, low, _, _, norm) = stacked, own
    count, size = edges.size - 1, b.size
    side, way = np.empty((count, size)), np.empty((count, size))
    start, stop = np.empty((count, size)), np.empty((count, size))
    ends, jumps, radius, outside = (
        np.empty((count, size)),
        np.empty((count, size)),
        np.zeros((count, 4)),
        np.zeros((count, 4)),
    )
    for k in range(count):
        lam, end = numbers[0, k] - numbers[4, k], numbers[1, k] - numbers[4, k]
        for m in range(counts[k], counts[k + 1]):
            status[place[moves[m, 0]]] = moves[m, 1]
        for j in range(size):
            side[k, j], way[k, j] = 1.0 if abs(status[j]) == LEFT else -1.0, _way(status[j], y[j])
            start[k, j] = stop[k, j] = _at_rest(status[j], y[j], low[j], w[j])
        for e in range(edges[k], edges[k + 1]):
            j = place[E[e]]
            side[k, j], start[k, j], stop[k, j] = 0.0, lam * v[e] + u[e], end * v[e] + u[e]
            over = _outside(way[k, j] * start[k, j] - low[j], w[j] - low[j])
            past = _outside(way[k, j] * stop[k, j] - low[j], w[j] - low[j])
            outside[k, OVER] += norm[j] * over
            outside[k, PAST] += norm[j] * past
            outside[k, SUM_OVER] += over
            outside[k, SUM_PAST] += past
        moved, jump = 0.0, 0.0
        for j in range(size):
            ends[k, j] = stop[k, j] - b[j]
            jumps[k, j] = (start[k, j] - b[j]) - (ends[k - 1, j] if k > 0 else 0.0)
            moved += norm[j] * abs(ends[k, j])
            jump += norm[j] * abs(jumps[k, j])
        is_seen = jump > SEEN * rounding * moved
        radius[k, BEGINS], radius[k, ENDS] = rounding * jump if is_seen else jump, rounding * moved
        radius[k, JUMP], radius[k, SEEN_JUMP] = jump, 1.0 if is_seen else 0.0
    return side, way, start, stop, ends, jumps, radius, outside


@jit
def _find_near(first, end, bias, U, ends, at_ends, radius, outside, points, tube, status, F, F_end, kernel_error):
    """Return those of the rest that are not surely on their side of the margin in all of a block, at whose end K b = F_end.

    Where x is how far b departs from the straight way between its ends, K b departs from its own by (K x)_i: no more than
    norm_i sqrt(x'K x), or, of any matrix, norm_i sum_j norm_j |x_j|.
    """
    y, _, _, target0, target1, norm = points
    last = end.size - 1
    departed, bent, jump, reach, largest = 0.0, 0.0, 0.0, 0.0, abs(bias[0, 0])
    eps, eps_end = tube.eps0 + first * tube.eps1, tube.eps0 + end[last] * tube.eps1
    for k in range(last + 1):
        t = (first - end[k]) / (first - end[last])
        squared, length, moved = 0.0, 0.0, 0.0
        for j in range(U.size):
            x = ends[k, j] - t * ends[last, j]
            squared += x * (at_ends[k, j] - t * at_ends[last, j])
            length += norm[U[j]] * abs(x)
            moved += norm[U[j]] * (abs(ends[k, j]) + abs(ends[last, j]))
        rounding = radius[k, ENDS] + radius[last, ENDS] + ULP * moved
        slack = length * (rounding + (kernel_error + U.size * UNIT) * length)
        straight = length  # of a square below zero by more than rounding nothing follows
        if squared >= -slack:
            straight = np.sqrt((max(squared, 0.0) + slack) * (1.0 + kernel_error)) + kernel_error * length
        departed = max(departed, (straight if straight < length else length) + ULP * moved)
        bent = max(bent, abs(bias[k, 1] - ((1.0 - t) * bias[0, 0] + t * bias[last, 1])))
        jump = max(jump, abs(bias[k, 0] - bias[k - 1, 1]) if k > 0 else 0.0)
        far = radius[k, ENDS] + radius[k, BEGINS] + radius[k, JUMP]  # more than needed: they are rounding
        reach = max(reach, far + max(outside[k, OVER], outside[k, PAST]))
        largest = max(largest, abs(bias[k, 1]))
    near, count, own = np.empty(y.size, dtype=np.int64), 0, 0
    for i in range(y.size):
        way, is_capped = _way(status[i], y[i]), abs(status[i]) == LEFT
        # Of the target's side; without a tube, or inside it, eps is taken off on either.
        h = way * (target0[i] + first * target1[i] - (F[i] + bias[0, 0]))
        h_end = way * (target0[i] + end[last] * target1[i] - (F_end[i] + bias[last, 1]))
        slack = min(h - eps, h_end - eps_end) if is_capped else min(eps - h, eps_end - h_end)
        if tube.is_two_sided and not is_capped:
            slack = min(slack, eps + h, eps_end + h_end)
        size = abs(F[i]) + abs(F_end[i]) + largest + abs(target0[i]) + first * abs(target1[i])
        size += abs(tube.eps0) + first * abs(tube.eps1)
        allowed = norm[i] * (departed + reach) + (bent + jump) + 2.0 * ULP * size
        if own < U.size and U[own] == i:  # in ascending order
            own += 1
        elif not slack > allowed:
            near[count] = i
            count += 1
    return near[:count].copy()


@inline
def _outside(a, w):
    return max(-a, a - w, 0.0)


@jit
def _sum_shares(block, tube, total_at_zero, floors, largest_norm, h0, h1):
    """Return N, D and bounds of every segment; write the h, known up to r: a share is at most -a (h - r) + w max(0, h + r).

    What a is outside its box by costs that much of h.  The h of a point that is surely on its side are negative, as they were.
    Without rows to write them to the h are left out.
    """
    F, b, side, way, start, stop, rest = (
        block.F, block.b, block.side, block.way, block.start, block.stop, block.rest
    )  # fmt: skip
    at_begins, at_ends, status_near, spread = block.at_begins, block.at_ends, block.status_near, block.spread
    own, size = block.n_own, block.points.size
    label, w, low, target0, target1, norm = block.constants
    N, D, bounds = np.zeros((len(start), 3)), np.zeros((len(start), 3)), np.empty(len(start))
    still, way_near, side_near = np.empty(size), np.empty(size), np.empty(size)
    for j in range(own, size):
        status = status_near[j - own]
        still[j], way_near[j] = _at_rest(status, label[j], low[j], w[j]), _way(status, label[j])
        side_near[j] = 1.0 if abs(status) == LEFT else -1.0
    farthest0, farthest1 = 0.0, 0.0
    for j in range(size):
        farthest0, farthest1 = max(farthest0, abs(target0[j])), max(farthest1, abs(target1[j]))
    for k in range(len(start)):
        lam, end, bias0, bias1 = block.lam[k], block.end[k], block.bias[k, 0], block.bias[k, 1]
        eps0, eps1 = tube.eps0 + lam * tube.eps1, tube.eps0 + end * tube.eps1
        largest0 = farthest0 + lam * farthest1 + abs(tube.eps0) + lam * abs(tube.eps1)  # margin
        largest1 = farthest0 + end * farthest1 + abs(tube.eps0) + end * abs(tube.eps1)
        before, behind = abs(bias0) + largest0, abs(bias1) + largest1
        s0, s1 = _sums_off(block, k, total_at_zero + lam * tube.total1, total_at_zero + end * tube.total1)
        # Of one coefficient, which makes the sum right; its norm, and whether one has the room.
        shift0, shift1, moved, has_room = 0.0, 0.0, 0.0, True
        if largest_norm >= 0.0:
            shift0, shift1 = s0 + block.reading[k, LOST], s1 + block.reading[k, LOST_END]
            has_room = block.reading[k, ROOM] > NEGLIGIBLE_FACTOR * max(shift0, shift1)
            moved = block.reading[k, LARGEST_NORM] if has_room else largest_norm
        begins = block.radius[k, BEGINS] + block.outside[k, OVER] + block.reading[k, READ] + shift0 * moved
        ends = block.outside[k, PAST] + block.reading[k, READ_END] + shift1 * moved
        rounding0, rounding1 = block.radius[k - 1, ENDS] if k > 0 else 0.0, block.radius[k, ENDS]
        jump, reach, above0, above1 = block.radius[k, JUMP], rest[REACH], 0.0, 0.0
        total0, total1 = rest[TOTAL0] + lam * rest[TOTAL1], rest[TOTAL0] + end * rest[TOTAL1]
        total01 = 0.5 * (total0 + total1)
        farthest = 0.0  # from its margin that a point of the elbow is
        energy0, energy01, energy1 = rest[ENERGY], rest[ENERGY_BETWEEN], rest[ENERGY_END]
        for j in range(size):
            f0, f1 = at_begins[k, j], at_ends[k, j]
            if j < own:
                b0, b1, y, s = start[k, j], stop[k, j], way[k, j], side[k, j]
            else:
                b0, b1, y, s = still[j], still[j], way_near[j], side_near[j]
            m0, m1 = target0[j] + lam * target1[j], target0[j] + end * target1[j]
            if tube.is_two_sided:
                m0, m1 = m0 - y * eps0, m1 - y * eps1
            r0 = norm[j] * begins + min(norm[j] * rounding0, spread[j])
            r1 = norm[j] * ends + min(norm[j] * rounding1, spread[j])
            if j < own:
                x0, x1 = b0 - b[j], b1 - b[j]
                energy0 += x0 * (F[j] + f0)
                energy01 += x0 * f1 + x1 * F[j]
                energy1 += x1 * (F[j] + f1)
                reach += norm[j] * max(abs(b0), abs(b1))
                total0, total01, total1 = total0 + m0 * b0, total01 + 0.5 * (m0 * b1 + m1 * b0), total1 + m1 * b1
            else:
                r0 += norm[j] * jump
            x0, x1 = y * (m0 - (f0 + bias0)), y * (m1 - (f1 + bias1))
            r0 += ULP * (abs(f0) + before)
            r1 += ULP * (abs(f1) + behind)
            if s == 0.0 or s * x0 <= r0 or s * x1 <= r1:
                a0, a1, width, largest = y * b0 - low[j], y * b1 - low[j], w[j] - low[j], max(abs(x0), abs(x1))
                _add_product(N[k], largest, largest, _outside(a0, width), _outside(a1, width))
                farthest = max(farthest, largest) if s == 0.0 else farthest
                _add_product(N[k], min(max(a0, 0.0), width), min(max(a1, 0.0), width), r0 - x0, r1 - x1)
                above0, above1 = above0 + width * max(x0 + r0, 0.0), above1 + width * max(x1 + r1, 0.0)
                if len(h0) > 0:
                    h0[k, j], h1[k, j] = x0 + r0, x1 + r1
            if tube.is_two_sided:
                x0, x1 = r0 - x0 - 2.0 * eps0, r1 - x1 - 2.0 * eps1
                if x0 > 0.0 or x1 > 0.0:
                    above0, above1 = above0 + w[j] * max(x0, 0.0), above1 + w[j] * max(x1, 0.0)
                    if len(h0) > 0:
                        h0[k, size + j], h1[k, size + j] = x0, x1
        # What moves of the coefficients that are read costs as much of h; and the sum is right but for a last digit.
        if largest_norm >= 0.0 and not has_room:
            farthest = max(before, behind) + largest_norm * reach
        _add_product(N[k], farthest, farthest, shift0, shift1)
        last = UNIT * block.reading[k, LARGEST]
        centre0, centre1 = block.reading[k, CENTRE], block.reading[k, CENTRE_END]
        if not has_room:  # then the one that moves may be any, or none
            last = UNIT * block.reading[k, LARGEST_CAP]
            _add_product(N[k], centre0, centre1, shift0, shift1)
        _add_product(N[k], abs(bias0), abs(bias1), s0 + last, s1 + last)
        _add_product(N[k], centre0, centre1, last, last)
        half = 0.5 if tube.total1 != 0.0 else -0.5  # the dual of one class is negative: its size
        D[k, 0], D[k, 1], D[k, 2] = half * energy0 + total0, half * energy01 + total01, half * energy1 + total1
        if tube.total1 != 0.0:  # quadratic in lam
            _add_product(
                D[k], np.sqrt(floors[0, k]), np.sqrt(floors[1, k]), np.sqrt(floors[0, k]), np.sqrt(floors[1, k])
            )
        else:  # linear
            _add_product(D[k], 1.0, 1.0, floors[0, k], floors[1, k])
        # Of the dual rounding counts as well: taken off, so that it is never too large.
        off0 = reach * (rounding0 + begins + jump) + largest0 * block.outside[k, SUM_OVER] + rest[ENERGY_ERROR]
        off1 = reach * (rounding1 + ends) + largest1 * block.outside[k, SUM_PAST] + rest[ENERGY_ERROR]
        _add_product(D[k], 1.0, 1.0, -off0, -off1)
        # And primal - dual is the gap less bias sum(b).
        _add_product(D[k], -2.0 * abs(bias0), -2.0 * abs(bias1), s0, s1)
        # max(0, h) is convex: it lies below the line between its ends, so that the gap is below one quadratic function.
        n, m = (N[k, 0] + above0, N[k, 1] + 0.5 * (above0 + above1), N[k, 2] + above1), (D[k, 0], D[k, 1], D[k, 2])
        bounds[k] = _bound(n, m)
    return N, D, bounds


@inline
def _sums_off(block, k, total0, total1):
    """Return by how much the coefficients of a segment are off their sums, at both ends."""
    sum0, sum1, lost0, lost1 = block.rest[SUM], block.rest[SUM], 0.0, 0.0
    for j in range(block.n_own):
        sum0, more = two_sum(sum0, block.start[k, j])
        lost0 += more
        sum1, more = two_sum(sum1, block.stop[k, j])
        lost1 += more
    off0, off1 = abs((sum0 - total0) + lost0), abs((sum1 - total1) + lost1)
    return off0 + block.outside[k, SUM_OVER], off1 + block.outside[k, SUM_PAST]


@inline
def _bound(n, D):
    """Return a bound on (n0 + 2 n1 z + n2 z²) / (D0 + 2 D1 z + D2 z²) for all z >= 0: it is a mean of three ratios."""
    if n[0] == 0.0 and n[1] == 0.0 and n[2] == 0.0:
        return 0.0
    if D[0] > 0.0 and D[1] > 0.0 and D[2] > 0.0:
        return max(n[0] / D[0], n[1] / D[1], n[2] / D[2])
    return np.inf


@inline
def _add_product(c, x0, x1, y0, y1):
    """Add the product of two linear functions."""
    c[0] += x0 * y0
    c[1] += 0.5 * (x0 * y1 + x1 * y0)
    c[2] += x1 * y1


@np.errstate(all="ignore")  # what is beyond float64 is seen by the result
def _maximum(shares: Shares, k: int) -> tuple[float, float]:
    """Return the largest gap / dual of a segment over all z, with that z."""
    N, D, h0, h1, weight = shares.N[k], shares.D[k], shares.h0[k], shares.h1[k], shares.weight
    if not (D[0] > 0.0 and D[2] > 0.0 and D[1] > -np.sqrt(D[0]) * np.sqrt(D[2])):
        return np.inf, 0.0
    is_on = (h0 > 0.0) | ((h0 == 0.0) & (h1 > 0.0))  # h itself, or its limit from the beginning
    switching = np.flatnonzero(((h0 > 0.0) & (h1 < 0.0)) | ((h0 < 0.0) & (h1 > 0.0)))
    z = -h0[switching] / h1[switching]
    order = np.argsort(z)
    switching, z = switching[order], z[order]
    parts = weight * np.stack([h0, 0.5 * (h0 + h1), h1])
    changes = np.where(is_on[switching], -1.0, 1.0) * parts[:, switching]
    first = N + parts[:, is_on].sum(axis=1)
    numerators = np.cumsum(np.concatenate([first[:, None], changes], axis=1), axis=1)
    ratios, where = _largest_ratio(
        numerators, np.broadcast_to(D[:, None], numerators.shape), np.append(0.0, z), np.append(z, np.inf)
    )
    best = int(np.argmax(ratios))
    return (float(ratios[best]), float(where[best])) if not np.isnan(ratios[best]) else (np.inf, 0.0)


def _largest_ratio(n: Any, D: Any, low: np.ndarray, high: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest (n0 + 2 n1 z + n2 z²) / (D0 + 2 D1 z + D2 z²) between two z, and where it is; of many of them."""
    # The derivative is zero where c + 2 b z + a z² is.
    a, b, c = n[2] * D[1] - n[1] * D[2], 0.5 * (n[2] * D[0] - n[0] * D[2]), n[1] * D[0] - n[0] * D[1]
    q = -(b + np.where(b > 0.0, 1.0, -1.0) * np.sqrt(b * b - a * c))
    high = np.broadcast_to(high, low.shape)
    z = np.stack([low, high, *(np.where((low < root) & (root < high), root, low) for root in (q / a, c / q))])
    s = np.where(z > 1.0, 1.0 / z, z)  # zero for infinity
    outer = ((n[0] * s + 2.0 * n[1]) * s + n[2]) / ((D[0] * s + 2.0 * D[1]) * s + D[2])
    inner = (n[0] + (2.0 * n[1] + n[2] * s) * s) / (D[0] + (2.0 * D[1] + D[2] * s) * s)
    ratios = np.where(z > 1.0, outer, inner)
    best = np.argmax(ratios, axis=0)[None]
    return np.take_along_axis(ratios, best, 0)[0], np.take_along_axis(z, best, 0)[0]
