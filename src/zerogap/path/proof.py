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

Who reads a segment at one C rounds its coefficients, the caps and the bias, and puts the sum right by moving a coefficient
(``Path.beta_at``).  That takes decision values no farther than ``reading`` tells, and counts likewise, if asked for.
"""

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from zerogap import limits
from zerogap.kernels import UNIT
from zerogap.path.block import (
    CENTRE,
    CENTRE_END,
    ENERGY,
    LARGEST_CAP,
    LOST,
    LOST_END,
    READ,
    READ_END,
    Block,
    PointConstants,
    Stacked,
    add_rows,
    lay_out,
    reading_of,
    sum_shares,
    with_near,
)
from zerogap.path.engine import LEFT, RIGHT, Segment, Transition
from zerogap.path.family import Family

BLOCK = 48  # segments whose decision values are computed at once
CHUNK = 64  # rows that are added up between two questions whether a limit is over
NOTHING = np.empty((0, 0))
SHARP = 1e-9  # above this, the promise, a gap is computed again with decision values in twice the precision


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


class ExactProduct:
    """K b, in twice the working precision, as kernel values may be of very different size; from one b to the next."""

    def __init__(self, K: np.ndarray):
        self.K, self.b = K, np.zeros(len(K))
        self.high, self.low = np.zeros((2, len(K)))

    def copy(self) -> "ExactProduct":
        """Return one that can change without this one."""
        twin = ExactProduct(self.K)
        twin.b, twin.high, twin.low = self.b.copy(), self.high.copy(), self.low.copy()
        return twin

    def move_to(self, b: np.ndarray) -> np.ndarray:
        """Go to another b, a few rows at a time, so that a limit is seen in between; return K b."""
        moved = np.flatnonzero(b != self.b)
        for begin in range(0, moved.size, CHUNK):
            limits.check()
            chunk = moved[begin : begin + CHUNK]
            add_rows(self.K, chunk, b[chunk], self.b[chunk], self.high, self.low)
            self.b[chunk] = b[chunk]
        return self.high + self.low


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
        is_whole: bool = False,
        product: ExactProduct | None = None,
    ):
        self.K, self.family, self.status, self.b = K, family, status.astype(np.int64), b.copy()
        n = family.n
        # |K_ij| <= norm_i norm_j: by Cauchy and Schwarz, if the kernel is an inner product.
        size = np.diagonal(K) if is_positive else np.full(n, np.abs(K).max())
        self.size = float(np.abs(np.diagonal(K)).max(initial=0.0))
        self.norm, self.kernel_error = np.sqrt(np.maximum(size, 0.0)), kernel_error
        self.points = PointConstants(family.y, family.w, family.low, family.target0, family.target1, self.norm)
        if product is None:
            product = ExactProduct(K)
            product.move_to(b)
        self.F, self.lost = product.high, product.low  # K b is their sum
        # By how much C w is rounded; and the caps of other paths are numbers that are read as they are.
        is_rounded = family.is_over_C & (np.frexp(family.w)[0] != 0.5)
        self.cap_rounding = np.where(is_rounded, UNIT * family.w, 0.0)
        self.is_read = False  # whether the rounding of coefficients that are read counts
        self.centre = 0.0  # of the targets, in the units of decision values, which the bias of who reads has besides
        self.largest = LargestGap(0.0, np.nan)
        self.done = 0  # segments gone along
        self.is_whole = is_whole  # whether it begins where the path does
        # Certificates on the way: lam, and the relative gap, with what rounding may have done to kernel values.
        self.certified: list[tuple[float, float]] = []
        self.next_certificate = np.inf, 0  # the lam and the number of segments at which one is due

    def follow(self, pieces: list[Piece]) -> None:
        """Go along more segments; ``limits.Exceeded`` leaves the proof where it is, to be gone on with."""
        for begin in range(0, len(pieces), BLOCK):
            batch = pieces[begin : begin + BLOCK]
            self.follow_block(_stacked(self._cut(batch)), len(batch))

    def follow_block(self, stacked: Stacked, count: int | None = None) -> None:
        """Go along a block of segments, of which none is to be cut any more; before that they were so many."""
        limits.check()
        self._follow(stacked)
        self.done += stacked.edges.size - 1 if count is None else count

    def _follow(self, stacked: Stacked) -> None:
        family, state = self.family, (self.status, self.F, self.lost)
        block = lay_out(self.K, self.points, family.tube, self.status, self.b, self.F, self.lost, stacked)
        if self.is_read:
            block.reading[:] = self._reading(stacked, block.points)
        found = with_near(self.K, block, self.points, family.tube, *state, self.kernel_error)
        self._note(found.block, self._sums(found.block, NOTHING, NOTHING)[2])
        self.F, self.lost, self.b[block.points] = found.F, found.lost, block.stop[-1]
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

    def _reading(self, stacked: Stacked, U: np.ndarray) -> np.ndarray:
        """Return what the rounding of coefficients that are read does to each segment; U are the points that move."""
        reading = reading_of(stacked, self.points, self.family.is_over_C)
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

    def _sums(self, block: Block, h0: np.ndarray, h1: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return N, D and bounds of every segment, and write its h where there are rows for them."""
        family, floors = self.family, self.family.floor(np.stack([block.lam, block.end]), self.size)
        # The norm of the coefficient which is moved to make the sum right, at most; -1 if there is none.
        most = float(self.norm.max(initial=0.0)) if self.is_read and family.has_bias else -1.0
        return sum_shares(block, family.tube, family.total0, floors, most, h0, h1)

    def _note(self, block: Block, bounds: np.ndarray) -> None:
        """Take note of the segments of a block whose gap is above the largest known."""
        if bounds.max(initial=0.0) <= self._known():
            return
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

    def _shares(self, block: Block) -> "Shares":
        points, is_two_sided = block.constants, self.family.is_two_sided
        shape = (len(block.start), block.points.size * (1 + is_two_sided))
        h0, h1 = np.full(shape, -1.0), np.full(shape, -1.0)
        N, D, bounds = self._sums(block, h0, h1)
        width = points.w - points.low
        return Shares(N, D, bounds, h0, h1, np.concatenate([width, points.w]) if is_two_sided else width)

    def _sharpened(self, block: Block, k: int) -> tuple[float, float]:
        """Return the largest gap / dual of one segment and its z, from decision values in twice the working precision."""
        one, values = slice(k, k + 1), []
        U, capped = block.points[: block.n_own], self.family.at_rest(self.status)
        capped[U] = 0.0
        for b in (block.start[k], block.stop[k]):
            F, lost = self.F.copy(), self.lost.copy()
            add_rows(self.K, U, b, block.b, F, lost)
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
