"""Which event is next, and a compiled loop over the ordinary ones.

Symbols: as in ``engine``.  An event is ordinary if it is alone at its lam, its lines are known well enough, screening is
safe for it, and the point that enters does not depend on the elbow.  All other events are left to ``single``, which can do
these as well: the loop gives the same segments, without returning to the interpreter between them.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.free_system import append_point, remove_point
from zerogap.path.engine import (
    ELBOW,
    LEFT,
    RIGHT,
    Segment,
    Step,
    Transition,
    add_row,
    lines_after_entering,
    lines_after_leaving,
)
from zerogap.path.screening import SCREENED_OUT, departure

NEVER = -1.0  # no lam

# The lines are solved for afresh after so many events, and when they leave too much on the elbow, relative to lam.
FRESH_EVERY = 25
LEFT_OVER = 1e-11
LONG = 0.5  # over a segment on which lam falls below this share, what the lines leave over grows relative to lam
TIE = 1e-10  # events nearer than this, relative to lam or to the box, happen at once
OUTSIDE = 1e-14  # a coefficient beyond its bound by more than this part of its box is not there by rounding alone
ROUGH = 10.0  # lines were too steep if their rounding was so many times as large as it is now


class PointArrays(NamedTuple):
    """What is known of all points; sets, coefficients and g change in place."""

    y: np.ndarray
    w: np.ndarray
    status: np.ndarray
    b: np.ndarray
    g: np.ndarray  # K_L b_L


class ElbowFactor(NamedTuple):
    """The system of the elbow: ``DenseFreeSystem``."""

    K: np.ndarray
    points: np.ndarray
    factor: np.ndarray
    forward_ones: np.ndarray
    tau: float


class Lines(NamedTuple):
    """Where the path is, and what changes there with an event."""

    lam: float
    u: np.ndarray
    v: np.ndarray
    u0: float
    v0: float
    size: int  # of the elbow
    age: int
    largest_rounding: float
    capped: float  # sum of b_L
    n_capped: int
    n_candidates: int
    filled: int  # kernel rows that are kept
    t: float  # displacement since all points were evaluated
    w: float
    bias: float


class Scale(NamedTuple):
    """Sizes that rounding is compared with."""

    largest: float  # kernel value
    unit_error: float  # of a decision value, for each unit of coefficients
    rounding: float  # of the decision values that the capped points make
    least: float  # lam at which they are to be summed afresh


class Log(NamedTuple):
    """The segments passed, one after another, and the transition at the end of each."""

    edges: np.ndarray  # where each segment begins in the next three
    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    numbers: np.ndarray  # lam at the end, u0, v0
    moves: np.ndarray  # point, origin, target


def steps_of(log: Log) -> list[Step]:
    """Return the steps of a log."""
    edges = log.edges.tolist()
    return [
        Step(Segment(log.points[begin:end], log.u[begin:end], log.v[begin:end], u0, v0), lam, [Transition(lam, *move)])
        for begin, end, (lam, u0, v0), move in zip(
            edges[:-1], edges[1:], log.numbers.tolist(), log.moves.tolist(), strict=True
        )
    ]


@jit
def line_residual(lam, y, E, u, v, candidates, position, p, q):
    """Return how far p_E = 0 and q_E = y_E are from true at the candidates, and the size of the coefficients."""
    worst, size = 0.0, 0.0
    for k in range(E.size):
        j = position[E[k]]
        if j != SCREENED_OUT:
            worst = max(worst, abs(p[j]) + lam * abs(q[j] - y[E[k]]))
        size += abs(u[k]) + lam * abs(v[k])
    return worst, size


@inline
def _margin_root(status, lam, p, slope, tiny):
    """Return the lam at which a point at a bound gets to its margin, (49) of ong, y F - lam there being p + lam slope.

    Only one that moves towards it as lam falls counts; one that is past it by rounding gets there at once.
    """
    if (status == RIGHT and slope > tiny) or (status == LEFT and slope < -tiny):
        return min(lam, -p / slope)
    return NEVER


@inline
def _bound_root(lam, w, u, v, slow):
    """Return the lam at which a point of the elbow, y b = u + lam v, gets to a bound, (48) of ong."""
    if v > slow:
        return min(lam, -u / v)
    if v < -slow:
        return min(lam, (w - u) / v)
    return NEVER


@inline
def _slow(v, largest):
    """Return the rates of coefficients, and the slopes of decision values, that are rounding."""
    fastest, total = 0.0, 0.0
    for k in range(v.size):
        fastest = max(fastest, abs(v[k]))
        total += abs(v[k])
    return 1e-13 * fastest, 1e-13 * (1.0 + total * largest)


@jit
def ratio_test(lam_end, lam, w, status, largest, E_then, v_then, y, E, u, v, candidates, position, p, q):
    """Look at the lines; return what ``line_residual`` and ``departure`` do, and the first end of a set that is reached:

    lam, the position in the elbow of the point that leaves it, or -1, the point, and the lam of the second; then how far a
    coefficient is outside its box.
    """
    left_over, size = line_residual(lam, y, E, u, v, candidates, position, p, q)
    slow, tiny = _slow(v, largest)
    best, second, where, index, outside = lam_end, NEVER, -1, -1, 0.0
    for k in range(candidates.size):
        i = candidates[k]
        if status[i] != ELBOW:
            root = _margin_root(status[i], lam, y[i] * p[k], y[i] * q[k] - 1.0, tiny)
            if root > best:
                best, second, index = root, best if index >= 0 else NEVER, i
            elif root > second and index >= 0:
                second = root
    if E.size > 1:
        for k in range(E.size):
            i = E[k]
            root = _bound_root(lam, w[i], y[i] * u[k], y[i] * v[k], slow)
            a = y[i] * (u[k] + lam * v[k])
            outside = max(outside, max(-a, a - w[i]) / w[i])
            if root > best:
                best, second, index, where = root, best if index >= 0 else NEVER, i, k
            elif root > second and index >= 0:
                second = root
    return left_over, size, departure(y, E, v, E_then, v_then, position, q), best, where, index, second, outside


@jit
def tied_candidates(near, lam, w, status, largest, y, E, u, v, candidates, position, p, q):
    """Look at all events down to ``near``: return the fastest point that leaves the elbow, if any does, else all that enter.

    Leaving makes no elbow worse, so it comes first.
    """
    slow, tiny = _slow(v, largest)
    where, index, entering, count = -1, -1, np.empty(candidates.size, dtype=np.int64), 0
    if E.size > 1:
        fastest = 0.0
        for k in range(E.size):
            i = E[k]
            root = _bound_root(lam, w[i], y[i] * u[k], y[i] * v[k], slow)
            if root >= near and abs(v[k]) > fastest:
                where, index, fastest = k, i, abs(v[k])
    if where < 0:
        for k in range(candidates.size):
            i = candidates[k]
            if status[i] != ELBOW and _margin_root(status[i], lam, y[i] * p[k], y[i] * q[k] - 1.0, tiny) >= near:
                entering[count] = i
                count += 1
    return where, index, entering[:count]


@jit
def pass_ordinary(lam_end, most, points, system, screening, lines, scale):
    """Pass up to ``most`` ordinary events; return a log of them, and the lines behind the last."""
    y, w, status, b, g = points
    K, E_all, factor, forward_ones, tau = system
    is_screened, rows, slots, columns, values, position, E_then, v_then, v0_then, allowed = screening
    lam, u, v, u0, v0, m, age, largest_rounding, capped, n_capped, n_candidates, filled, t, dw, dbias = lines
    room = most * (m + most)
    log_E, log_u, log_v = np.empty(room, dtype=np.int64), np.empty(room), np.empty(room)
    edges, numbers, moves = np.zeros(most + 1, dtype=np.int64), np.empty((most, 3)), np.empty((most, 3), dtype=np.int64)
    count = 0
    while count < most and 0 < age < FRESH_EVERY and lam >= scale.least:
        E, candidates, p, q = E_all[:m], columns[:n_candidates], values[0, :n_candidates], values[1, :n_candidates]
        left_over, size, turned, then, where, i, second, outside = ratio_test(
            lam_end, lam, w, status, scale.largest, E_then, v_then, y, E, u, v, candidates, position, p, q
        )
        rough, tolerance = max(largest_rounding, scale.unit_error * size), LEFT_OVER * lam + scale.rounding
        if not (left_over <= tolerance and rough <= ROUGH * scale.unit_error * size + tolerance):
            break
        is_alone = second < then - TIE * lam and then <= (1.0 - TIE) * lam
        if i < 0 or not is_alone or then < LONG * lam or outside > OUTSIDE:
            break
        fall = lam - then
        t_then, dw_then, dbias_then = t + fall, dw + fall * turned, dbias + fall * abs(v0 - v0_then)
        if is_screened and not (t_then <= allowed.t and dw_then <= allowed.w and dbias_then <= allowed.bias):
            break
        origin = status[i]
        if where < 0 and (m == E_all.size or (origin == LEFT and n_capped == 1)):
            break
        begin = edges[count]
        for k in range(m):
            log_E[begin + k], log_u[begin + k], log_v[begin + k] = E[k], u[k], v[k]
        edges[count + 1], numbers[count, 0], numbers[count, 1], numbers[count, 2] = begin + m, then, u0, v0
        if where < 0:
            target, d = ELBOW, np.empty(m)
            is_in, d0 = append_point(K, i, E_all, factor, forward_ones, m, tau, d)
            if not is_in:
                break
            slot, others = i, E
            if is_screened:
                slot, others = filled, slots[:m]
                for k in range(n_candidates):
                    rows[slot, k] = K[i, candidates[k]]
                slots[m] = slot
                filled += 1
            u, v, du, dv = lines_after_entering(K, E, rows, others, d, d0, i, slot, position[i], y[i], b[i], u, v, p, q)
            E_all[m] = i
            m += 1
            sign = -1 if origin == LEFT else 0
        else:
            target = RIGHT if y[i] * v[where] > 0.0 else LEFT
            m -= 1
            d = np.empty(m)
            d0 = remove_point(K, E_all, factor, forward_ones, m, where, tau, d)
            E = E_all[:m]
            slot, others = i, E
            if is_screened:
                slot = slots[where]
                for k in range(where, m):
                    slots[k] = slots[k + 1]
                others = slots[:m]
                if position[i] == SCREENED_OUT:  # it was on the elbow, where p = 0 and q = y
                    k = n_candidates
                    for j in range(m):
                        rows[others[j], k] = K[i, E[j]]
                    rows[slot, k] = K[i, i]
                    columns[k], values[0, k], values[1, k], position[i] = i, 0.0, y[i], k
                    n_candidates += 1
            p, q = values[0, :n_candidates], values[1, :n_candidates]
            bound = y[i] * w[i] if target == LEFT else 0.0
            u, v, du, dv = lines_after_leaving(rows, others, d, d0, slot, where, bound, u, v, p, q)
            b[i] = bound
            sign = 1 if target == LEFT else 0
        if sign:
            add_row(K, i, sign * (y[i] * w[i]), g)
            capped += sign * (y[i] * w[i])
            n_capped += sign
        status[i] = target
        moves[count, 0], moves[count, 1], moves[count, 2] = i, origin, target
        u0, v0, age, largest_rounding, lam = u0 + du * d0, v0 + dv * d0, age + 1, rough, then
        t, dw, dbias = t_then, dw_then, dbias_then
        count += 1
    used = edges[count]
    log = Log(
        edges[: count + 1],
        log_E[:used].copy(),
        log_u[:used].copy(),
        log_v[:used].copy(),
        numbers[:count],
        moves[:count],
    )
    return log, Lines(lam, u, v, u0, v0, m, age, largest_rounding, capped, n_capped, n_candidates, filled, t, dw, dbias)
