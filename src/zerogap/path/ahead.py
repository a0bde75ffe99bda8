"""Many points that enter a large elbow one after another: what they do to it is computed for all of them ahead, as products
of matrices.

Symbols: as in ``engine``; E, the elbow as it is, m points with the factor L of A = K_EE + tau; T, the points outside it whose
margins its lines reach first; f = L^-1 1.  One event costs O(m²), all of it reading the factor and the kernel rows once or
twice.  But as long as points only enter, L stays, and gets rows.  For all of T at once are computed

    Z = L^-1 A_ET,  D = L^-T Z,  S = A_TT - Z'Z,  Q = K_T - K_E D over the candidates,

and with them what an event needs costs O(k m) if k points have entered before: their rows of the factor are Z and the factor
M of S over them, and the response of the elbow to the next one, i, is

    d_T = M^-T (c f_T - M^-1 S_Ti),  d_E = c L^-T f - D_i - D d_T,  d0 = -c.

The events themselves are those of ``events.pass_ordinary``; where one is not the entering of a point of T, this ends.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import NO_POINT, inline, jit
from zerogap.free_system import INDEPENDENT, DenseFreeSystem
from zerogap.path.engine import ELBOW, Log
from zerogap.path.events import (
    Moving,
    PointArrays,
    _bound,
    _is_ordinary,
    lines_hold,
    ratio_test,
)
from zerogap.path.rows import ElbowLines, add_row
from zerogap.path.screening import Candidates, Displacement, Kept, Screening
from zerogap.path.tolerances import FRESH_EVERY

LARGE = 200  # points of an elbow from which on this is faster than one point after another
LONG_STREAK = 16  # points that have entered since one has left, from which on it is tried: else the next may well leave
LEAST, MOST = 8, 32  # points that are looked ahead at: twice as many as have entered last time


class Ahead(NamedTuple):
    """What is known of the points that may enter, rows for points."""

    place: np.ndarray  # (n,) the row of a point; NO_POINT if it has none
    Z: np.ndarray  # (T, m)
    D: np.ndarray  # (T, m)
    S: np.ndarray  # (T, T)
    Q: np.ndarray  # (T, candidates)
    h: np.ndarray  # (T,) Z f
    D_f: np.ndarray  # (m,) L^-T f
    R_f: np.ndarray  # (candidates,) K_E L^-T f
    squared_norm: float  # of f


def look_ahead(system: DenseFreeSystem, screening: Screening, points: np.ndarray) -> Ahead:
    """Compute all that for some points, which are candidates."""
    m, kept, room = system.size, screening.kept, screening.room
    f, E, near = system._forward_ones[:m], system.points, screening.points
    Z, corner = system.forward(points)
    D = system.back(np.vstack([Z, f]))
    if kept.is_screened:
        slots = room.slots[:m]
        is_in_order = slots[-1] == m - 1 and (slots == np.arange(m)).all()
        rows = (kept.rows[:m] if is_in_order else kept.rows[slots])[:, : near.size]
    else:
        rows = system.K[E]
    R = D @ rows
    place = np.full(len(system.K), NO_POINT)
    place[points] = np.arange(points.size)
    Q = system.K[np.ix_(points, near)] - R[:-1]
    return Ahead(place, Z, D, corner - Z @ Z.T, Q, Z @ f, D[-1], R[-1], float(f @ f))


def next_to_enter(lam: float, points: PointArrays, candidates: Candidates, count: int) -> np.ndarray:
    """Return the points outside the elbow whose margins the present lines reach first, at most so many."""
    i, t = candidates.points, lam - points.anchor
    slope = points.y[i] * (candidates.q - points.m1[i])
    excess = points.y[i] * (candidates.p - points.m0[i])
    way = ELBOW - points.status[i]
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.where(way * slope > 0.0, np.minimum(-excess / slope, t), -np.inf)
    first = np.argsort(-root, kind="stable")[:count]
    return i[first[root[first] > -np.inf]]


@jit
def pass_entering(lam_end, points, system, room, moving, scale, ahead):
    """Pass ordinary events as long as a point that was looked ahead at enters; return what ``pass_ordinary`` does."""
    status, (K, E, factor, f, tau, _) = points.status, system
    lam, u, v, u0, v0, base, age, largest_rounding, capped_sum, n_capped, kept, summed_at, rounding_of_g = moving
    most = min(len(ahead.Z), FRESH_EVERY)
    log_E = np.empty(most * (base + most), dtype=np.int64)
    log_u, log_v = np.empty(log_E.size), np.empty(log_E.size)
    edges, numbers, moves = np.zeros(most + 1, dtype=np.int64), np.empty((most, 4)), np.empty((most, 3), dtype=np.int64)
    rows, d, rate = np.empty(most, dtype=np.int64), np.empty(base + most), np.empty(room.columns.size)
    count, squared_norm = 0, ahead.squared_norm
    while count < most and age < FRESH_EVERY and lam >= scale.least:
        m, size = base + count, kept.n_candidates
        elbow, p, q = ElbowLines(E[:m], u, v, v0), room.values[0, :size], room.values[1, :size]
        first = ratio_test(
            lam_end, lam, points, elbow, Candidates(room.columns[:size], room.place_of, p, q), kept.reference, scale.largest
        )  # fmt: skip
        is_good, rounding = lines_hold(first.left_over, first.size, lam, largest_rounding, scale)
        if not is_good or first.outside > scale.outside or first.position != NO_POINT:
            break
        i = first.point
        if not _is_ordinary(first, lam, n_capped, points, m, E.size) or ahead.place[i] == NO_POINT:
            break
        fall, since, allowed = lam - first.lam, kept.since, kept.allowed
        after = Displacement(
            since.decrease + fall,
            since.normal + fall * first.departure,
            since.bias + fall * abs(v0 - kept.reference.v0),
        )
        is_safe = after.decrease <= allowed.decrease and after.normal <= allowed.normal and after.bias <= allowed.bias
        if kept.is_screened and not is_safe:
            break
        is_in, c = _append(ahead, rows, count, base, K[i, i] + tau, factor, f, squared_norm, ahead.place[i])
        if not is_in:
            break
        begin, origin = edges[count], status[i]
        for k in range(m):
            log_E[begin + k], log_u[begin + k], log_v[begin + k] = E[k], u[k], v[k]
        edges[count + 1] = begin + m
        numbers[count, 0], numbers[count, 1], numbers[count, 2], numbers[count, 3] = first.lam, u0, v0, points.anchor
        moves[count, 0], moves[count, 1], moves[count, 2] = i, origin, ELBOW
        _respond(ahead, rows, count, base, c, factor, f, d, rate[:size])
        slope, bound = K[i, i] - c, _bound(i, origin, points)
        for k in range(m):
            slope += K[i, E[k]] * d[k]
        du, dv = (points.m0[i] - p[room.place_of[i]]) / slope, (points.m1[i] - q[room.place_of[i]]) / slope
        for k in range(size):
            p[k] += du * rate[k]
            q[k] += dv * rate[k]
        new_u, new_v = np.empty(m + 1), np.empty(m + 1)
        for k in range(m):
            new_u[k], new_v[k] = u[k] + du * d[k], v[k] + dv * d[k]
        new_u[m], new_v[m] = points.b[i] + du, dv
        u, v, u0, v0 = new_u, new_v, u0 - du * c, v0 - dv * c
        filled = kept.filled
        if kept.is_screened:
            room.slots[m] = filled
            for k in range(size):
                kept.rows[filled, k] = K[i, room.columns[k]]
            filled += 1
        kept = Kept(
            kept.is_screened, kept.rows, kept.store, size, filled, kept.reference, allowed, after, kept.moves + 1
        )  # fmt: skip
        if bound != 0.0:
            add_row(K, i, -bound, points.g)
            capped_sum -= bound
            n_capped -= 1
        E[m], status[i], squared_norm = i, ELBOW, squared_norm + f[m] ** 2
        age, largest_rounding, lam = age + 1, rounding, first.lam
        count += 1
    log = Log(edges, log_E, log_u, log_v, numbers, moves)
    moving = Moving(
        lam, u, v, u0, v0, base + count, age, largest_rounding, capped_sum, n_capped, kept, summed_at, rounding_of_g
    )  # fmt: skip
    return log, count, moving


@inline
def _append(ahead, rows, count, base, corner, factor, f, squared_norm, row):
    """Give the factor its next row, if the point is plainly independent; return whether it is, and c of its response."""
    new, m = factor[base + count], base + count
    left, product = ahead.S[row, row], ahead.h[row]  # product: with f
    for j in range(count):
        x = ahead.S[row, rows[j]]
        for k in range(j):
            x -= new[base + k] * factor[base + j, base + k]
        x /= factor[base + j, base + j]
        new[base + j] = x
        left -= x * x
        product += x * f[base + j]
    if left <= INDEPENDENT * corner:
        return False, 0.0
    for k in range(base):
        new[k] = ahead.Z[row, k]
    new[m] = np.sqrt(left)
    f[m] = (1.0 - product) / new[m]
    rows[count] = row
    return True, (product - 1.0) / squared_norm


@inline
def _respond(ahead, rows, count, base, c, factor, f, d, rate):
    """Leave in d how the elbow responds to the point of the last row, and in ``rate`` what that does to the candidates."""
    new, row = factor[base + count], rows[count]
    for j in range(count - 1, -1, -1):
        x = c * f[base + j] - new[base + j]
        for k in range(j + 1, count):
            x -= factor[base + k, base + j] * d[base + k]
        d[base + j] = x / factor[base + j, base + j]
    for k in range(base):
        d[k] = c * ahead.D_f[k] - ahead.D[row, k]
    for k in range(rate.size):
        rate[k] = (c * ahead.R_f[k] - c) + ahead.Q[row, k]
    for j in range(count):
        x, D, Q = d[base + j], ahead.D[rows[j]], ahead.Q[rows[j]]
        for k in range(base):
            d[k] -= x * D[k]
        for k in range(rate.size):
            rate[k] += x * Q[k]
