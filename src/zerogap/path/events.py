"""Which event is next, and a compiled loop over the ordinary ones.

Symbols: as in ``engine``; a point gets to its margin where its excess is zero.  An event is ordinary if it is alone at its lam,
its lines are known well enough, screening is safe for it, and the point that enters does not depend on the elbow.  All other
events are left to ``single``, which can do these as well: the loop gives the same segments, without returning to the
interpreter between them.
Lines are about an anchor, u + t v with t = lam - anchor, so that where they are steep nothing cancels: see ``lines``.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import HUGE, NO_POINT, inline, jit
from zerogap.free_system import append_point, remove_point
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Log
from zerogap.path.family import Tube
from zerogap.path.renewal import renew
from zerogap.path.rows import ElbowLines, add_row, weighted_rows
from zerogap.path.screening import (
    HORIZON_OF_TUBE,
    NO_LIMIT,
    SCREENED_OUT,
    Candidates,
    Displacement,
    Kept,
    Reference,
    change_candidates,
    departure,
    evaluate,
    screened,
)
from zerogap.path.tolerances import LONG, REFRESH_BELOW, ROUGH, SLOW, STALE, SUM_ERROR, TIE
from zerogap.precision import two_sum

NEVER = -HUGE  # no lam, about whatever anchor
ROUNDED = 1e-15  # more than a product and a quotient round
LOG = 100_000  # coefficients that a log of segments has room for
WORK = 50_000_000  # multiplications between two questions whether a limit is over: hundredths of a second


class PointArrays(NamedTuple):
    """What is known of all points; sets, coefficients and g change in place, and with two sides y and the margins."""

    y: np.ndarray
    w: np.ndarray
    low: np.ndarray
    status: np.ndarray
    b: np.ndarray
    g: np.ndarray  # K_L b_L
    target0: np.ndarray  # at the anchor, as m0 and the tube's eps0 are
    target1: np.ndarray
    m0: np.ndarray
    m1: np.ndarray
    tube: Tube
    anchor: float


class ElbowFactor(NamedTuple):
    """The system of the elbow: ``DenseFreeSystem``."""

    K: np.ndarray
    points: np.ndarray
    factor: np.ndarray
    forward_ones: np.ndarray
    tau: float
    has_border: bool


class Moving(NamedTuple):
    """Where the path is, and what changes there with an event."""

    lam: float
    u: np.ndarray
    v: np.ndarray
    u0: float
    v0: float
    size: int  # of the elbow
    age: int  # events since the lines were solved for
    largest_rounding: float  # of the steepest lines since then
    capped_sum: float  # of the b_L
    n_capped: int
    kept: Kept  # who is screened out
    summed_at: float  # the lam at which g was last summed
    rounding: float  # that was left in it


class Scale(NamedTuple):
    """Sizes that rounding is compared with."""

    largest: float  # kernel value
    unit_error: float  # of a decision value, for each unit of coefficients
    left_over: float  # that lines may leave of p_E = m0_E and q_E = m1_E, relative to lam
    outside: float  # how far a coefficient may be outside its box, as a part of it
    rounding: float  # of the decision values that the capped points make
    least: float  # lam at which they are to be summed afresh


class FirstEnd(NamedTuple):
    """The first end of a set that is reached, and how good the lines are that tell it."""

    lam: float
    position: int  # in the elbow, of a point that leaves it; else NO_POINT
    point: int  # NO_POINT: none is reached before the end of the path
    second: float  # the lam of the second
    left_over: float  # what the lines leave of p_E = m0_E and q_E = m1_E
    size: float  # of the coefficients
    departure: float  # of the normal vector's direction since all points were evaluated
    outside: float  # how far a coefficient is outside its box; not measured for one that is alone in the elbow


@jit
def line_residual(t, lam, m0, m1, elbow, candidates):
    """Return how far p_E = m0_E and q_E = m1_E are from true at the candidates, and the size of the coefficients.

    Slopes count in that as they would about zero: near the anchor they do not show, and what rounding leaves in them stays.
    """
    t = abs(t)
    E, u, v, _ = elbow
    worst, size = 0.0, 0.0
    for k in range(E.size):
        i = E[k]
        j = candidates.place_of[i]
        if j != SCREENED_OUT:
            worst = max(worst, abs(candidates.p[j] - m0[i]) + t * abs(candidates.q[j] - m1[i]))
        size += abs(u[k]) + lam * abs(v[k])
    return worst, size


@inline
def _margin_root(status, t, p, slope, tiny):
    """Return the t at which a point at a bound gets to its margin, where its excess p + t slope is zero; (49) of ong.

    That gives delta = lam xi / p_i, the change of lam.  Ong's p_i is our slope, y q - 1, and lam xi = -(p + t slope): the new
    t is t + delta = -p / slope.  (The p here is y times that of the point.)
    Only one that moves towards it as lam falls counts; one that is past it by rounding gets there at once.
    """
    if (status == RIGHT and slope > tiny) or (status == LEFT and slope < -tiny):
        return min(t, -p / slope)
    return NEVER


@inline
def _choose_side(i, t, points, p, q, tiny):
    """Put a point inside a tube on the side that it gets to first."""
    y, m0, m1, side = points.y, points.m0, points.m1, -points.y[i]
    if points.status[i] == RIGHT:
        n0, n1 = points.target0[i] - side * points.tube.eps0, points.target1[i] - side * points.tube.eps1
        here = _margin_root(RIGHT, t, y[i] * (p - m0[i]), y[i] * (q - m1[i]), tiny)
        if _margin_root(RIGHT, t, side * (p - n0), side * (q - n1), tiny) > here:
            y[i], m0[i], m1[i] = side, n0, n1


@inline
def _bound_root(t, low, w, u, v, slow):
    """Return the t at which a point of the elbow, y b = u + t v, gets to a bound, (48) of ong."""
    if v > slow:
        return min(t, (low - u) / v)
    if v < -slow:
        return min(t, (w - u) / v)
    return NEVER


@inline
def _slow(v, largest):
    """Return the rates of coefficients, and the slopes of decision values, that are rounding."""
    fastest, total = 0.0, 0.0
    for k in range(v.size):
        fastest = max(fastest, abs(v[k]))
        total += abs(v[k])
    return SLOW * fastest, SLOW * (1.0 + total * largest)


@inline
def _rounded(anchor, t, leaves):
    """Return anchor + t, rounded so that lines that end or begin there do it inside the box, however steep they are.

    A point that leaves the elbow does so a little early, and one that enters a little late.
    """
    lam = anchor + t
    if leaves:
        return np.nextafter(lam, np.inf) if lam - anchor < t else lam
    return np.nextafter(lam, -np.inf) if lam - anchor > t else lam


@jit
def ratio_test(lam_end, lam, points, elbow, candidates, reference, largest):
    """Return the first end of a set that is reached as lam falls; t is lam counted from the anchor."""
    t = lam - points.anchor
    y, w, low, status, slope_of_total = points.y, points.w, points.low, points.status, points.tube.total1
    E, u, v, _ = elbow
    m0, m1, p, q = points.m0, points.m1, candidates.p, candidates.q
    slow, tiny = _slow(v, largest)
    best, second, position, point, outside = lam_end - points.anchor, NEVER, NO_POINT, NO_POINT, 0.0
    # Only a root above the second counts, and few are.  The rest is seen by one comparison without a division: which way each
    # point goes is not to be foreseen, and a branch on it costs several times the rest of the loop.
    indices, bar = candidates.points, best - ROUNDED * abs(best)
    for k in range(indices.size):
        i = indices[k]
        way = (ELBOW - status[i]) * y[i]  # the sign of a slope towards the margin, zero in the elbow
        counts = way * (m0[i] - p[k]) > bar * max(way * (q[k] - m1[i]), 0.0)
        if points.tube.is_two_sided:  # inside it the margin of the other side may
            side = -y[i] if status[i] == RIGHT else 0.0
            n0, n1 = points.target0[i] - side * points.tube.eps0, points.target1[i] - side * points.tube.eps1
            counts |= side * (n0 - p[k]) > bar * max(side * (q[k] - n1), 0.0)
        if counts:
            if points.tube.is_two_sided:
                _choose_side(i, t, points, p[k], q[k], tiny)
            root = _margin_root(status[i], t, y[i] * (p[k] - m0[i]), y[i] * (q[k] - m1[i]), tiny)
            if root > best:
                best, second, point = root, best if point != NO_POINT else NEVER, i
            elif root > second and point != NO_POINT:
                second = root
            last = second if point != NO_POINT else best
            bar = last - ROUNDED * abs(last)
    # The last point of the elbow stays, even at a bound, so that there is always a system to solve; ong's elbow may be empty
    # (Remark 4).  Where the sum of b stays its v is zero and its b stays, so that what seems to be outside the box is rounding.
    if E.size > 1 or slope_of_total != 0.0:
        for k in range(E.size):
            i = E[k]
            a, rate = y[i] * u[k], y[i] * v[k]
            past = max(low[i] - (a + t * rate), (a + t * rate) - w[i])
            if past > 0.0:
                outside = max(outside, past / (w[i] - low[i]))
            if (low[i] - a if rate > 0.0 else a - w[i]) > bar * abs(rate):
                root = _bound_root(t, low[i], w[i], a, rate, slow)
                if root > best:
                    best, second, point, position = root, best if point != NO_POINT else NEVER, i, k
                elif root > second and point != NO_POINT:
                    second = root
                last = second if point != NO_POINT else best
                bar = last - ROUNDED * abs(last)
    turn = departure(m1, slope_of_total, elbow, reference, candidates)
    # About the anchor itself slopes do not show: at the farther end of the segment they do.
    left_over, size = line_residual(max(abs(t), abs(best)), lam, m0, m1, elbow, candidates)
    first = lam_end if point == NO_POINT else min(_rounded(points.anchor, best, position != NO_POINT), lam)
    return FirstEnd(first, position, point, points.anchor + second, left_over, size, turn, outside)


@jit
def tied_candidates(near, lam, points, elbow, candidates, largest):
    """Look at all events down to ``near``: return the fastest point that leaves the elbow, if any does, else all that enter.

    Leaving makes no elbow worse, so it comes first.  Also returns the lam at which the first of those that leave is at its
    bound: points that enter before are off their margins by rounding, while beyond it a coefficient would be outside its box.
    """
    y, w, low, status = points.y, points.w, points.low, points.status
    E, u, v, _ = elbow
    near, t = near - points.anchor, lam - points.anchor
    slow, tiny = _slow(v, largest)
    position, point, entering, count = NO_POINT, NO_POINT, np.empty(candidates.points.size, dtype=np.int64), 0
    leaves_at = NEVER
    if E.size > 1 or points.tube.total1 != 0.0:  # else the last one stays, as in ``ratio_test``
        fastest, first = 0.0, NEVER
        for k in range(E.size):
            i = E[k]
            root = _bound_root(t, low[i], w[i], y[i] * u[k], y[i] * v[k], slow)
            # Of two that are as fast, as a pair that exchanges its coefficients, it is the first.
            is_as_fast = abs(v[k]) >= (1.0 - TIE) * fastest and root > first
            if root >= near and (abs(v[k]) > (1.0 + TIE) * fastest or is_as_fast):
                position, point, fastest, first = k, i, abs(v[k]), root
            leaves_at = max(leaves_at, root)
    if position == NO_POINT:
        for k in range(candidates.points.size):
            i = candidates.points[k]
            if points.tube.is_two_sided:
                _choose_side(i, t, points, candidates.p[k], candidates.q[k], tiny)
            p, slope = y[i] * (candidates.p[k] - points.m0[i]), y[i] * (candidates.q[k] - points.m1[i])
            if status[i] != ELBOW and _margin_root(status[i], t, p, slope, tiny) >= near:
                entering[count] = i
                count += 1
    return position, point, entering[:count], min(_rounded(points.anchor, leaves_at, True), lam)


@jit
def lines_hold(left_over, size, lam, largest_rounding, scale):
    """Whether the lines, updated many times, still solve the elbow's system, and were not much steeper meanwhile.

    Also returns the rounding of the steepest so far.
    """
    rounding, tolerance = scale.unit_error * size, scale.left_over * lam + scale.rounding
    largest_rounding = max(largest_rounding, rounding)
    return left_over <= tolerance and largest_rounding <= ROUGH * rounding + tolerance, largest_rounding


@inline
def _is_ordinary(first, lam, n_capped, points, size, room):
    """Whether an event is alone, near, and leaves room, a point of the elbow, and one at rest off zero."""
    if first.point == NO_POINT or first.lam < LONG * lam:
        return False
    if first.second >= first.lam - TIE * lam or first.lam > (1.0 - TIE) * lam:
        return False
    if first.position != NO_POINT:
        return size > 1
    return size < room and (n_capped > 1 or _bound(first.point, points.status[first.point], points) == 0.0)


@inline
def _bound(i, target, points):
    """Return the coefficient of a point that is in a set, as far as the set tells."""
    if target == ELBOW:
        return 0.0
    return points.y[i] * (points.w[i] if target == LEFT else points.low[i])


@inline
def _continue(lam, k, position, points, E, u, v, edges, numbers):
    """Let segment k of a log begin where the one before has ended, within the box; see ``SingleEngine._continued``.

    ``position`` is that of the point which has left the elbow in between; NO_POINT if one has entered it, as the last.
    """
    begin, size, old = edges[k], edges[k + 1] - edges[k], edges[k - 1]
    end, u0, v0, _ = numbers[k]
    _, old_u0, old_v0, anchor = numbers[k - 1]
    for j in range(size):
        i, e = E[begin + j], old + j + (position != NO_POINT and j >= position)
        b = points.b[i] if position == NO_POINT and j == size - 1 else u[e] + (lam - anchor) * v[e]
        a, b_end = min(max(points.y[i] * b, points.low[i]), points.w[i]), u[begin + j] + end * v[begin + j]
        u[begin + j], v[begin + j] = b_end, (b_end - points.y[i] * a) / (end - lam)
    bias, bias_end = old_u0 + (lam - anchor) * old_v0, u0 + end * v0
    numbers[k, 1], numbers[k, 2], numbers[k, 3] = bias_end, (bias_end - bias) / (end - lam), end


@inline
def _on_lines(K, elbow, m1, kept):
    """Return that no point is screened out, all having been evaluated on the lines of the elbow."""
    reference = Reference(elbow.points.copy(), elbow.v.copy(), elbow.v0, m1[elbow.points])
    return Kept(False, K, kept.store, len(K), 0, reference, NO_LIMIT, kept.since, kept.moves)


@inline
def _is_safe(kept, way):
    """Whether no point that is screened out can be reached by a displacement."""
    since, allowed = kept.since, kept.allowed
    is_far = since.decrease + way.decrease > allowed.decrease or since.bias + way.bias > allowed.bias
    return not kept.is_screened or not (is_far or since.normal + way.normal > allowed.normal)


@inline
def _sum_at_rest(K, points):
    """Sum g and the b at rest afresh, as ``Sets.sum_bound_contribution``; return the sum, how many there are, and rounding."""
    resting, at_rest, count = np.empty(points.y.size, dtype=np.int64), np.empty(points.y.size), 0
    total, lost, largest = 0.0, 0.0, 0.0
    for i in range(points.y.size):
        bound = _bound(i, points.status[i], points)
        if bound != 0.0:
            resting[count], at_rest[count] = i, bound
            count += 1
            total, more = two_sum(total, bound)
            lost += more
    g = weighted_rows(K, resting[:count], at_rest[:count])
    for i in range(g.size):
        points.g[i], largest = g[i], max(largest, abs(g[i]))
    return total + lost, count, SUM_ERROR * largest


@jit
def pass_ordinary(lam_end, max_events, points, system, room, whole, moving, scale):
    """Pass up to so many ordinary events, and solve for the lines in between; return a log of them, how many they are, what
    is moving behind the last, and whether the next is known not to be ordinary.

    Lines that are no longer good enough, or lead to where screening is not safe, are solved for afresh.  Those that this leaves
    unsure are returned as old as lines can be.  What points at rest add to decision values is summed afresh on the way.
    """
    y, status, b, g, sides = points.y, points.status, points.b, points.g, points.tube.is_two_sided
    K, E_all, factor, forward_ones, tau, _ = system
    lam, u, v, u0, v0, m, age, largest_rounding, capped_sum, n_capped, kept, summed_at, rounding_of_g = moving
    size_of_log = min(max_events * (m + max_events), LOG + m)
    log_E, log_u, log_v = np.empty(size_of_log, dtype=np.int64), np.empty(size_of_log), np.empty(size_of_log)
    edges, numbers, last_position = np.zeros(max_events + 1, dtype=np.int64), np.empty((max_events, 4)), NO_POINT
    moves, count, is_special, work = np.empty((max_events, 3), dtype=np.int64), 0, False, 0
    is_evaluated = False  # whether all points have just been, on lines that were not solved for
    while count < max_events and edges[count] + m <= size_of_log and work < WORK:
        if lam < scale.least:
            if not whole.is_hinge:
                break  # the lines are to be solved for as well
            capped_sum, n_capped, rounding_of_g = _sum_at_rest(K, points)
            summed_at, age, work = lam, STALE, work + n_capped * g.size
            scale = Scale(
                scale.largest, scale.unit_error, scale.left_over, scale.outside, rounding_of_g, REFRESH_BELOW * lam
            )
        if age >= whole.lasting:
            age = STALE
            if not whole.is_hinge:
                break  # their anchor moves, and their tolerances with it
            new = renew(lam, E_all[:m], points, system, capped_sum, n_capped, whole, scale, kept, room)
            u, v, u0, v0, kept, work = new.u, new.v, new.u0, new.v0, new.kept, work + 2 * m * (m + g.size)
            if not new.is_good:
                break
            age, largest_rounding = 0, scale.unit_error * new.size
        elbow = ElbowLines(E_all[:m], u, v, v0)
        p, q = room.values[0, : kept.n_candidates], room.values[1, : kept.n_candidates]
        candidates = Candidates(room.columns[: kept.n_candidates], room.place_of, p, q)
        first = ratio_test(lam_end, lam, points, elbow, candidates, kept.reference, scale.largest)
        is_good, rounding = lines_hold(first.left_over, first.size, lam, largest_rounding, scale)
        if not is_good and age > 0:
            age = STALE
            continue
        is_outside = first.outside > scale.outside
        is_special = not is_good or not _is_ordinary(first, lam, n_capped, points, m, E_all.size)
        # Where the segment before has ended is not known here; and what is steep is continued about where it begins.
        is_special |= is_outside and (count == 0 or not whole.is_hinge)
        if is_special:
            break
        fall, i = lam - first.lam, first.point
        way = Displacement(fall, fall * first.departure, fall * abs(v0 - kept.reference.v0))
        if not whole.is_hinge and not kept.is_screened and kept.moves >= HORIZON_OF_TUBE:  # the lines of all are known
            kept, way = _on_lines(K, elbow, points.m1, kept), Displacement(fall, 0.0, 0.0)
            is_evaluated = True
        if (age == 0 or is_evaluated) and not kept.is_screened:  # all have just been evaluated
            is_evaluated = False
            kept = screened(K, y, points.m0, points.m1, status, points.tube, lam, points.anchor, way, kept, room)
        since, allowed = kept.since, kept.allowed
        after = Displacement(since.decrease + way.decrease, since.normal + way.normal, since.bias + way.bias)
        if not _is_safe(kept, way):
            if not whole.is_hinge and kept.moves > 1:  # else the lines are solved for as well
                evaluate(K, E_all[:m], u, v, u0, v0, g, room)
                kept, is_evaluated, work = _on_lines(K, elbow, points.m1, kept), True, work + 2 * m * g.size
                continue  # a point that was screened out may be reached before
            is_special = age == 0
            if is_special:
                break
            age = STALE
            continue
        begin, origin = edges[count], status[i]
        for k in range(m):
            log_E[begin + k], log_u[begin + k], log_v[begin + k] = E_all[k], u[k], v[k]
        edges[count + 1] = begin + m
        numbers[count, 0], numbers[count, 1], numbers[count, 2], numbers[count, 3] = first.lam, u0, v0, points.anchor
        if is_outside:
            _continue(lam, count, last_position, points, log_E, log_u, log_v, edges, numbers)
        if first.position == NO_POINT:
            target, d = ELBOW, np.empty(m)
            is_in, d0 = append_point(K, i, E_all, factor, forward_ones, m, tau, d)
            if not is_in:
                is_special = True
                break
            E_all[m] = i
        else:
            target = RIGHT if y[i] * v[first.position] > 0.0 else LEFT
            m -= 1
            d = np.empty(m)
            d0 = remove_point(E_all, factor, forward_ones, m, first.position, d)
            b[i] = _bound(i, target, points)
        u, v, du, dv, n_candidates, filled = change_candidates(
            K,
            i,
            points.m0[i],
            points.m1[i],
            b[i],
            first.position,
            E_all[:m],
            u,
            v,
            d,
            d0,
            room,
            kept.is_screened,
            kept.rows,
            kept.n_candidates,
            kept.filled,
        )
        kept = Kept(
            kept.is_screened, kept.rows, kept.store, n_candidates, filled, kept.reference, allowed, after, kept.moves + 1
        )  # fmt: skip
        m += first.position == NO_POINT
        before, behind = _bound(i, origin, points), _bound(i, target, points)
        if before != behind:
            add_row(K, i, behind - before, g)
            capped_sum += behind - before
            n_capped += int(behind != 0.0) - int(before != 0.0)
        status[i] = target
        sign = -1 if sides and y[i] < 0.0 else 1
        moves[count, 0], moves[count, 1], moves[count, 2] = i, sign * origin, sign * target
        u0, v0 = u0 + du * d0, v0 + dv * d0
        age, largest_rounding, lam, work = age + 1, rounding, first.lam, work + m * (2 * m + n_candidates)
        last_position = first.position
        count += 1
    log = Log(edges, log_E, log_u, log_v, numbers, moves)
    moving = Moving(lam, u, v, u0, v0, m, age, largest_rounding, capped_sum, n_capped, kept, summed_at, rounding_of_g)
    return log, count, moving, is_special
