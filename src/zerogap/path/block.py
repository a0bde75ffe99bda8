"""A block of segments as a proof needs it, compiled: decision values along it, and a bound on the gap of each segment.

Symbols: as in ``proof``.  ``lay_out`` follows the points U that move in a block; ``with_near`` adds those near their margins
and carries all decision values to its end; ``sum_shares`` sums what each point adds to the gap.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.kernels import UNIT
from zerogap.path.engine import LEFT, RIGHT
from zerogap.path.rows import weighted_rows
from zerogap.path.screening import gather
from zerogap.precision import NEGLIGIBLE_FACTOR, add_product, two_sum

CHUNK = 64  # terms that are summed before they are added to the rest: short sums round less
SEEN = 0.25  # a jump between two segments of more than this part of the rounding of sums is computed
MORE = 1.0 + 1e-12  # by which a bound is taken larger where its terms are added in another order
PARTS = 2  # of a block, along which points are seen to stay on their side
ULP = 8.0 * UNIT  # of a decision value and a margin, once K b is known


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


# By how much a decision value may be off, for a norm of one: by how much more where a segment begins than where the one before
# ends; where it ends, by rounding; and the way from the end of the segment before, with whether it is computed.
BEGINS, ENDS, JUMP, SEEN_JUMP = range(4)
# What it does to a decision value to take coefficients past their bounds back there, at both ends; and the sums of these.
OVER, PAST, SUM_OVER, SUM_PAST = range(4)

# What the rounding of coefficients that are read does to a decision value, for a norm of one, at both ends; and to their sum.
# Then how far one of them is from its bounds, at least; the largest norm, and the largest coefficient; the largest cap of all;
# and what the bias has besides where the targets are not centred, at both ends.
READ, READ_END, LOST, LOST_END, ROOM, LARGEST_NORM, LARGEST, LARGEST_CAP, CENTRE, CENTRE_END = range(10)
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


class Followed(NamedTuple):
    """A block with the points near their margins, and K b at its end."""

    block: Block
    F: np.ndarray
    lost: np.ndarray


@jit
def lay_out(K, points, tube, status, b, F, lost, stacked):
    """Return a block over the points that move in it."""
    U, inner, place, rest = _movers(K, points, tube, status, b, F, stacked.E, stacked.moves)
    own, rounding, count = _taken(points, U), _roundings(U.size) * UNIT, stacked.edges.size - 1
    b_own, status_own, F_own = np.empty(U.size), np.empty(U.size, dtype=np.int64), np.empty(U.size)
    for j in range(U.size):
        i = U[j]
        b_own[j], status_own[j], F_own[j] = b[i], status[i], F[i] + lost[i]
    side, way, start, stop, ends, jumps, radius, outside = _rows_of(stacked, place, status_own, own, b_own, rounding)
    at_begins, at_ends, bias = np.zeros((count, U.size)), np.zeros((count, U.size)), np.empty((count, 2))
    _add_product_of(ends, inner, at_ends)
    seen = _found(radius[:, SEEN_JUMP])
    at_jumps = np.zeros((seen.size, U.size))
    _add_product_of(jumps[seen], inner, at_jumps)
    for k in range(seen.size):
        for j in range(U.size):  # to assign a row takes long to compile
            at_begins[seen[k], j] = at_jumps[k, j]
    for k in range(count):
        lam, end, u0, v0, anchor = stacked.numbers[:, k]
        bias[k, 0], bias[k, 1] = u0 + (lam - anchor) * v0, u0 + (end - anchor) * v0
        if k > 0:
            for j in range(U.size):
                at_begins[k, j] += at_ends[k - 1, j]
    lam, end = stacked.numbers[0].copy(), stacked.numbers[1].copy()
    return Block(
        lam, end, bias, U, U.size, own, b_own, F_own, side, way, status_own[:0], start, stop, ends, at_begins, at_ends, radius,
        _spread(ends, inner, rounding), outside, np.zeros((count, 10)), rest,
    )  # fmt: skip


@jit
def with_near(K, block, points, tube, status, F, lost, kernel_error):
    """Add the points that may leave their side of the margin to a block, and carry K b to its end."""
    U, count, own = block.points, len(block.ends), block.n_own
    total, rest = F.copy(), lost.copy()
    add_rows(K, U, block.stop[count - 1], block.b, total, rest)
    before, behind = F + lost, total + rest
    near = _find_near(K, block, points, tube, status, before, behind, kernel_error)
    size = own + near.size
    outer, at_near = np.empty((own, near.size)), np.zeros((count, near.size))
    gather(K, U, near, outer)
    _add_product_of(block.ends, outer, at_near)
    at_begins, at_ends, status_near = (
        np.empty((count, size)),
        np.empty((count, size)),
        np.empty(near.size, dtype=np.int64),
    )
    for k in range(count):
        for j in range(own):
            at_begins[k, j], at_ends[k, j] = block.at_begins[k, j] + block.F[j], block.at_ends[k, j] + block.F[j]
        for j in range(near.size):
            f = before[near[j]]
            at_begins[k, own + j], at_ends[k, own + j] = f + (at_near[k - 1, j] if k > 0 else 0.0), f + at_near[k, j]
    for j in range(near.size):
        status_near[j] = status[near[j]]
    joined = np.concatenate((U, near))
    spread = np.concatenate((block.spread, _spread(block.ends, outer, _roundings(own) * UNIT)))
    block = Block(
        block.lam, block.end, block.bias, joined, own, _taken(points, joined), block.b, block.F, block.side, block.way,
        status_near, block.start, block.stop, block.ends, at_begins, at_ends, block.radius, spread, block.outside,
        block.reading, block.rest,
    )  # fmt: skip
    return Followed(block, total, rest)


@inline
def _found(marks):
    """Return where something is marked: NumPy's ``flatnonzero``, which takes long to compile."""
    places, count = np.empty(marks.size, dtype=np.int64), 0
    for k in range(marks.size):
        if marks[k] != 0:
            places[count] = k
            count += 1
    return places[:count].copy()


@inline
def _taken(points, rows):
    """Return the constants of some of the points."""
    y, w, low, target0, target1, norm = points
    return PointConstants(y[rows], w[rows], low[rows], target0[rows], target1[rows], norm[rows])


@inline
def _add_product_of(x, K, out):
    """Add x K, a few rows of K at a time: short sums round less, in whatever order BLAS makes them."""
    if out.size == 0:
        return
    part = np.empty(out.shape)
    for begin in range(0, len(K), CHUNK):
        end = min(begin + CHUNK, len(K))
        np.dot(x[:, begin:end].copy(), K[begin:end], part)
        for k in range(len(out)):
            for j in range(out.shape[1]):
                out[k, j] += part[k, j]


@inline
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


@inline
def _roundings(size):
    """Return how many roundings a term of ``_product`` takes part in, and of the number that is multiplied."""
    return min(size, CHUNK) + size / CHUNK + 3.0


@jit
def add_rows(K, rows, new, old, total, lost):
    """Add (new - old)'K[rows] to total + lost, in twice the working precision."""
    for k in range(rows.size):
        if new[k] == old[k]:
            continue
        (x, x_low), row = two_sum(new[k], -old[k]), K[rows[k]]
        for i in range(row.size):
            total[i], lost[i] = add_product(total[i], lost[i] + x_low * row[i], row[i], x)


@jit
def reading_of(stacked, points, is_over_C):
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


@inline
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


@inline
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


@inline
def _find_near(K, block, points, tube, status, before, behind, kernel_error):
    """Return those of the rest that are not surely on their side of the margin in all of a block, at whose ends K b is given.

    They are looked at on a few parts of it: the shorter a part, the straighter are the ways along it.
    """
    U, ends, count = block.points, block.ends, len(block.ends)
    is_near, n_parts = np.zeros(before.size, dtype=np.bool_), min(PARTS, count)
    F, rounding = before, 0.0  # of K b, for a norm of one
    for part in range(n_parts):
        begin, last = part * count // n_parts, (part + 1) * count // n_parts - 1
        F_end, rounding_end = behind, 0.0
        if part < n_parts - 1:
            F_end = before + weighted_rows(K, U, ends[last])
            for j in range(U.size):
                rounding_end += (U.size + 2.0) * UNIT * points.norm[U[j]] * abs(ends[last, j])
        _mark_near(
            block, begin, last, points, tube, status, F, F_end, max(rounding, rounding_end), kernel_error, is_near
        )
        F, rounding = F_end, rounding_end
    for j in range(U.size):
        is_near[U[j]] = False
    return _found(is_near)


@inline
def _mark_near(block, begin, last, points, tube, status, F, F_end, rounding_of_F, kernel_error, is_near):
    """Mark the points that are not surely on their side in a part of a block, from K b = F to F_end.

    Where x is how far b departs from the straight way between its ends, K b departs from its own by (K x)_i: no more than
    norm_i sqrt(x'K x), or, of any matrix, norm_i sum_j norm_j |x_j|.
    """
    y, _, _, target0, target1, norm = points
    U, end, bias, ends, at_ends, radius = block.points, block.end, block.bias, block.ends, block.at_ends, block.radius
    first, bias_begin, old, at_old, rounding_begin = block.lam[0], bias[0, 0], np.zeros(U.size), np.zeros(U.size), 0.0
    if begin > 0:
        first, bias_begin, rounding_begin = end[begin - 1], bias[begin - 1, 1], radius[begin - 1, ENDS]
        old, at_old = ends[begin - 1], at_ends[begin - 1]
    departed, bent, jump, reach, largest = 0.0, 0.0, 0.0, 0.0, abs(bias_begin)
    eps, eps_end = tube.eps0 + first * tube.eps1, tube.eps0 + end[last] * tube.eps1
    for k in range(begin, last + 1):
        t = (first - end[k]) / (first - end[last])
        squared, length, moved = 0.0, 0.0, 0.0
        for j in range(U.size):
            x = (ends[k, j] - old[j]) - t * (ends[last, j] - old[j])
            squared += x * ((at_ends[k, j] - at_old[j]) - t * (at_ends[last, j] - at_old[j]))
            length += norm[U[j]] * abs(x)
            moved += norm[U[j]] * (abs(ends[k, j]) + abs(ends[last, j]) + abs(old[j]))
        rounding = radius[k, ENDS] + radius[last, ENDS] + rounding_begin + ULP * moved
        slack = length * (rounding + (kernel_error + U.size * UNIT) * length)
        straight = length  # of a square below zero by more than rounding nothing follows
        if squared >= -slack:
            straight = np.sqrt((max(squared, 0.0) + slack) * (1.0 + kernel_error)) + kernel_error * length
        departed = max(departed, (straight if straight < length else length) + ULP * moved)
        bent = max(bent, abs(bias[k, 1] - ((1.0 - t) * bias_begin + t * bias[last, 1])))
        jump = max(jump, abs(bias[k, 0] - bias[k - 1, 1]) if k > 0 else 0.0)
        far = radius[k, ENDS] + radius[k, BEGINS] + radius[k, JUMP]  # more than needed: they are rounding
        reach = max(reach, far + max(block.outside[k, OVER], block.outside[k, PAST]))
        largest = max(largest, abs(bias[k, 1]))
    for i in range(y.size):
        way, is_capped = _way(status[i], y[i]), abs(status[i]) == LEFT
        # Of the target's side; without a tube, or inside it, eps is taken off on either.
        h = way * (target0[i] + first * target1[i] - (F[i] + bias_begin))
        h_end = way * (target0[i] + end[last] * target1[i] - (F_end[i] + bias[last, 1]))
        slack = min(h - eps, h_end - eps_end) if is_capped else min(eps - h, eps_end - h_end)
        if tube.is_two_sided and not is_capped:
            slack = min(slack, eps + h, eps_end + h_end)
        size = abs(F[i]) + abs(F_end[i]) + largest + abs(target0[i]) + first * abs(target1[i])
        size += abs(tube.eps0) + first * abs(tube.eps1)
        is_near[i] |= not slack > norm[i] * (departed + reach + rounding_of_F) + (bent + jump) + 2.0 * ULP * size


@inline
def _outside(a, w):
    return max(-a, a - w, 0.0)


@jit
def sum_shares(block, tube, total_at_zero, floors, largest_norm, h0, h1):
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
    farthest0, farthest1, is_open = 0.0, 0.0, np.ones(size, dtype=np.bool_)
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
        # The bias that is read is a float64 with the middle of the targets in it: half of its last digit moves all h.
        centre0, centre1 = block.reading[k, CENTRE], block.reading[k, CENTRE_END]
        size0, size1 = before + UNIT / ULP * centre0, behind + UNIT / ULP * centre1
        jump, reach, above0, above1 = block.radius[k, JUMP], rest[REACH], 0.0, 0.0
        total0, total1 = rest[TOTAL0] + lam * rest[TOTAL1], rest[TOTAL0] + end * rest[TOTAL1]
        total01 = 0.5 * (total0 + total1)
        farthest = 0.0  # from its margin that a point of the elbow is
        energy0, energy01, energy1 = rest[ENERGY], rest[ENERGY_BETWEEN], rest[ENERGY_END]
        _find_open(
            block, k, own, tube.is_two_sided, eps0, eps1, begins + jump, ends, rounding0, rounding1, size0, size1, way_near,
            side_near, is_open,
        )  # fmt: skip
        for j in range(size):
            if not is_open[j]:
                continue
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
            r0 += ULP * (abs(f0) + size0)
            r1 += ULP * (abs(f1) + size1)
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
def _find_open(
    block, k, own, is_two_sided, eps0, eps1, begins, ends, rounding0, rounding1, before, behind, way, side, is_open
):
    """Mark the points near their margins that are not surely on their side of them; without a branch, so that it vectorises."""
    f0, f1, lam, end, bias0, bias1 = (
        block.at_begins[k], block.at_ends[k], block.lam[k], block.end[k], block.bias[k, 0], block.bias[k, 1]
    )  # fmt: skip
    _, _, _, target0, target1, norm = block.constants
    for j in range(own, f0.size):
        y, spread, of_begin, of_end = way[j], block.spread[j], norm[j] * rounding0, norm[j] * rounding1
        m0, m1 = target0[j] + lam * target1[j], target0[j] + end * target1[j]
        m0, m1 = (m0 - y * eps0, m1 - y * eps1) if is_two_sided else (m0, m1)
        x0, x1 = y * (m0 - (f0[j] + bias0)), y * (m1 - (f1[j] + bias1))
        r0 = MORE * (norm[j] * begins + (of_begin if of_begin < spread else spread) + ULP * (abs(f0[j]) + before))
        r1 = MORE * (norm[j] * ends + (of_end if of_end < spread else spread) + ULP * (abs(f1[j]) + behind))
        is_sure = (side[j] * x0 > r0) & (side[j] * x1 > r1)
        is_sure &= (r0 - x0 - 2.0 * eps0 < 0.0) & (r1 - x1 - 2.0 * eps1 < 0.0) | (not is_two_sided)
        is_open[j] = not is_sure


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
