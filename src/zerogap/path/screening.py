"""The decision values F = p + lam q, lam counted from an anchor, of the points whose margin can be reached before all are
evaluated again: safe screening of the others.

Symbols: as in ``engine``; N = sum of b_i phi(x_i), the normal vector (w where w is not the weights); dN = sum of v_i phi(x_i)
and v0 are the derivatives of N and of the scaled bias in lam.
While the sets stay, every F is a straight line.  As points enter and leave the elbow, dN departs from what it was when all were
evaluated, by an amount known exactly: K_EE v = m1_E - v0 and sum(v) = S, the slope of the total, make |dN|² = v'm1_E - v0 S.
A decision value departs from its line by no more than sqrt(K_ii) times that, and the bias' part, for as long as lam falls.  A
point farther from the margin than this, all along the line, is screened out; the others are the candidates.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import NO_POINT, inline, jit
from zerogap.free_system import Response
from zerogap.path.engine import RIGHT, Segment
from zerogap.path.rows import Change, ElbowLines, change_lines, lines
from zerogap.path.sets import Sets
from zerogap.path.tolerances import ON_MARGIN

MAX_CANDIDATES = 0.7  # screening that keeps more than this share of the points is no gain
SAMPLE = 32  # points of the elbow that stay candidates, to see whether its lines still hold
SCREENED_OUT = -1
# Moves that a screening is to last for.  Margins on both sides of a tube, which get nearer to each other, reach more points.
HORIZON, HORIZON_OF_TUBE = 25, 12


class Displacement(NamedTuple):
    """A decrease of lam, and how far the normal vector and the bias depart from their lines meanwhile."""

    decrease: float
    normal: float
    bias: float


NO_DISPLACEMENT, NO_LIMIT = Displacement(0.0, 0.0, 0.0), Displacement(np.inf, np.inf, np.inf)


class Reference(NamedTuple):
    """The elbow's line when all points were evaluated."""

    points: np.ndarray
    v: np.ndarray
    v0: float
    m1: np.ndarray  # of the points, on the side they were on


class Room(NamedTuple):
    """Arrays that a ``Screening`` keeps for good; more of them is there than is in use."""

    slots: np.ndarray  # which rows are the elbow's, in its order
    columns: np.ndarray  # the candidates
    values: np.ndarray  # their p and q
    place_of: np.ndarray  # of a point among the candidates
    norm: np.ndarray  # |phi(x)|
    ahead: int  # changes of the elbow that there is room for before the next screening


class Kept(NamedTuple):
    """Who is screened out, and for how long: what changes along the path."""

    is_screened: bool
    rows: np.ndarray  # kernel rows over the candidates; all of K if none is screened out
    store: np.ndarray  # memory for such rows
    n_candidates: int
    filled: int  # rows that are there
    reference: Reference
    allowed: Displacement
    since: Displacement  # since all points were evaluated
    moves: int  # since then


class Candidates(NamedTuple):
    """The points that are not screened out, where each is among them, and their F = p + lam q."""

    points: np.ndarray
    place_of: np.ndarray
    p: np.ndarray
    q: np.ndarray


class Screening:
    """The points that are not screened out, their p and q, and the kernel rows of the elbow over them."""

    def __init__(self, K: np.ndarray, sets: Sets, ahead: int):
        n = len(K)
        self.K, self.sets = K, sets
        self.place_of, norm = np.arange(n), np.sqrt(np.maximum(np.diagonal(K), 0.0))
        size = n + ahead
        self.room = Room(
            np.zeros(size, dtype=np.int64), np.arange(size), np.empty((2, size)), self.place_of, norm, ahead
        )
        nothing = np.zeros(0)
        reference = Reference(np.zeros(0, dtype=np.int64), nothing, 0.0, nothing)
        self.take(Kept(False, K, nothing, n, 0, reference, NO_LIMIT, NO_DISPLACEMENT, 0))

    @property
    def is_screened(self) -> bool:
        """Whether some points are screened out."""
        return self.kept.is_screened

    def take(self, kept: Kept) -> None:
        """Take over what compiled code has made of the arrays."""
        room, count = self.room, kept.n_candidates
        self.kept = kept
        self.points, self.p, self.q = room.columns[:count], room.values[0, :count], room.values[1, :count]

    def evaluate_all(self, segment: Segment, g: np.ndarray) -> None:
        """Evaluate the lines of all points; ``g`` is the bound contribution K_L b_L."""
        E, u, v, u0, v0, _ = segment
        evaluate(self.K, E, u, v, u0, v0, g, self.room)
        kept, reference = self.kept, Reference(E, v, v0, self.sets.m1[E])
        self.take(Kept(False, self.K, kept.store, len(self.K), 0, reference, NO_LIMIT, kept.since, kept.moves))

    def screen(self, lam: float, displacement: Displacement) -> None:
        """Screen: keep the points whose margin can be reached in the displacement to come, and in some more as last time."""
        if not self.is_screened:
            sets = self.sets
            arrays = sets.y, sets.m0, sets.m1, sets.status, sets.tube
            self.take(screened(self.K, *arrays, lam, sets.anchor, displacement, self.kept, self.room))

    def is_safe(self, displacement: Displacement) -> bool:
        """Whether no point that is screened out can be reached by a displacement."""
        if not self.is_screened:
            return True
        after = farther(self.kept.since, displacement)
        return all(d <= limit for d, limit in zip(after, self.kept.allowed, strict=True))

    def accumulate(self, displacement: Displacement) -> None:
        """Add a displacement to those since the last screening."""
        kept = self.kept
        self.kept = kept._replace(since=farther(kept.since, displacement), moves=kept.moves + 1)

    @property
    def candidates(self) -> Candidates:
        """The candidates, for compiled code."""
        return Candidates(self.points, self.place_of, self.p, self.q)

    @property
    def reference(self) -> Reference:
        """The elbow's line when all points were evaluated."""
        return self.kept.reference

    def enter(self, elbow: ElbowLines, response: Response, i: int, bound: float) -> Change:
        """Let point i, which the elbow answers with ``response``, leave its bound."""
        return self._change(elbow, response, i, NO_POINT, bound)

    def leave(self, elbow: ElbowLines, response: Response, i: int, position: int, bound: float) -> Change:
        """Let point i, which was at a position of the elbow, come to rest at a bound; u and v still have it."""
        return self._change(elbow, response, i, position, bound)

    def _change(self, elbow: ElbowLines, response: Response, i: int, position: int, bound: float) -> Change:
        m0, m1, (d, d0), kept = float(self.sets.m0[i]), float(self.sets.m1[i]), response, self.kept
        *change, n_candidates, filled = change_candidates(
            self.K, i, m0, m1, bound, position, *elbow[:3], d, d0, self.room, kept.is_screened, kept.rows,
            kept.n_candidates, kept.filled,
        )  # fmt: skip
        self.take(kept._replace(n_candidates=n_candidates, filled=filled))
        return Change(*change)


def farther(since: Displacement, more: Displacement) -> Displacement:
    """Return the sum of two displacements."""
    return Displacement(since.decrease + more.decrease, since.normal + more.normal, since.bias + more.bias)


@jit
def evaluate(K, E, u, v, u0, v0, g, room):
    """Evaluate the lines of all points, which are candidates then."""
    n = g.size
    for i in range(n):
        room.columns[i] = room.place_of[i] = i
    lines(K, E, u, v, u0, v0, g, room.values[0, :n], room.values[1, :n])


@jit
def change_candidates(K, i, m0, m1, bound, position, E, u, v, d, d0, room, is_screened, rows, n_candidates, filled):
    """Let point i leave its bound for the elbow, or, if it has a position there, the elbow for its bound.

    E are the others, which respond with d, d0; u and v are those of before.  When it enters, F = m0 + lam m1 there.
    Return new u and v, the change du + lam dv of its coefficient, and how many candidates and filled rows there are now.
    """
    m, enters, slots, slot = d.size, position == NO_POINT, E, i
    p, q = room.values[0], room.values[1]
    if is_screened:
        slots = room.slots
        if enters:
            slot, slots[m] = filled, filled
            filled += 1
            for k in range(n_candidates):
                rows[slot, k] = K[i, room.columns[k]]
        else:
            slot = slots[position]
            for k in range(position, m):
                slots[k] = slots[k + 1]
            if room.place_of[i] == SCREENED_OUT:  # it was on the elbow, where p = m0 and q = m1
                for j in range(m):
                    rows[slots[j], n_candidates] = K[i, E[j]]
                rows[slot, n_candidates] = K[i, i]
                room.columns[n_candidates], room.place_of[i] = i, n_candidates
                p[n_candidates], q[n_candidates] = m0, m1
                n_candidates += 1
    if enters:
        slope, column = K[i, i] + d0, room.place_of[i]  # slope: of F at i over its b
        for k in range(m):
            slope += K[i, E[k]] * d[k]
        du, dv = (m0 - p[column]) / slope, (m1 - q[column]) / slope
    else:
        du, dv = bound - u[position], -v[position]
    change_lines(rows, slots, slot, d, d0, du, dv, p[:n_candidates], q[:n_candidates])
    new_u, new_v = np.empty(m + enters), np.empty(m + enters)
    for k in range(m):
        old = k if enters or k < position else k + 1
        new_u[k], new_v[k] = u[old] + du * d[k], v[old] + dv * d[k]
    if enters:  # its own line is the last
        new_u[m], new_v[m] = bound + du, dv
    return new_u, new_v, du, dv, n_candidates, filled


@jit
def screened(K, y, m0, m1, status, tube, lam, anchor, displacement, kept, room):
    """Keep the points whose margin can be reached in the displacement to come, and in some more as last time."""
    since, n, E = kept.since, len(K), kept.reference.points
    all_of_them = Kept(False, K, kept.store, n, 0, kept.reference, NO_LIMIT, NO_DISPLACEMENT, 0)
    if kept.moves < 2:  # too little is known of what is to come
        return all_of_them
    # So many moves are to come, relative to those since the last screening.
    times = (HORIZON_OF_TUBE if tube.is_two_sided else HORIZON) / kept.moves
    # With every event lam falls about as much as of late.  Departures grow from event to event, so that their sum grows
    # like the square of the number of events.
    allowed = Displacement(
        displacement.decrease + times * since.decrease,
        displacement.normal + times**2 * since.normal,
        displacement.bias + times**2 * since.bias,
    )
    p, q = room.values[0], room.values[1]
    count = _find_reachable(y, m0, m1, status, tube, p, q, lam, anchor, E, allowed, room)
    if count > MAX_CANDIDATES * n:
        for i in range(n):
            room.columns[i] = i
        return all_of_them
    width = count + room.ahead
    size, store = (E.size + room.ahead) * width, kept.store
    if store.size < size:
        store = np.empty(2 * size)
    rows = store[:size].reshape((E.size + room.ahead, width))
    for i in range(n):
        room.place_of[i] = SCREENED_OUT
    for k in range(count):
        i = room.columns[k]
        room.place_of[i], p[k], q[k] = k, p[i], q[i]
    for k in range(E.size + room.ahead):
        room.slots[k] = k
    gather(K, E, room.columns[:count], rows)
    return Kept(True, rows, store, count, E.size, kept.reference, allowed, NO_DISPLACEMENT, 0)


@inline
def _find_reachable(y, m0, m1, status, tube, p, q, lam, anchor, E, allowed, room):
    """List some of E, and the points that reach a margin within a displacement, on their line or by their departure."""
    t = lam - anchor
    is_near, near, norm, floor = (
        np.empty(y.size, dtype=np.bool_),
        room.columns,
        room.norm,
        allowed.bias + ON_MARGIN * lam,
    )
    for i in range(y.size):
        slope, reach = y[i] * (q[i] - m1[i]), allowed.normal * norm[i] + floor
        excess = y[i] * (p[i] - m0[i]) + t * slope
        is_near[i] = _is_reached(excess, excess - allowed.decrease * slope, reach)
        if tube.is_two_sided and status[i] == RIGHT:  # the other side of the tube
            width, other = 2.0 * (tube.eps0 + t * tube.eps1), -slope + 2.0 * tube.eps1
            is_near[i] |= _is_reached(width - excess, width - excess - allowed.decrease * other, reach)
    for k in range(E.size):
        is_near[E[k]] = k < SAMPLE
    count = 0
    for i in range(y.size):
        near[count] = i
        count += is_near[i]
    return count


@inline
def _is_reached(excess, excess_end, reach):
    return excess * excess_end <= 0.0 or min(abs(excess), abs(excess_end)) <= reach


@jit
def departure(m1, slope_of_total, elbow, reference, candidates):
    """Return |dN - dN_then|, whose square is v'm1 + v_then'(m1_then - 2 q) + S (v0 - v0_then), over the elbow of each v.

    |dN|² = v'm1 - v0 S and |dN_then|² likewise, as above; and dN'dN_then = v_then'K v = v_then'q - v0 S, since q = K v + v0.
    Points of the elbow of then are candidates, whose q is known, or screened out and in it still, where q = m1.
    """
    squared = slope_of_total * (elbow.v0 - reference.v0)
    for k in range(elbow.points.size):
        squared += elbow.v[k] * m1[elbow.points[k]]
    for k in range(reference.points.size):
        j, then = candidates.place_of[reference.points[k]], reference.m1[k]
        squared += reference.v[k] * (then - 2.0 * (candidates.q[j] if j != SCREENED_OUT else then))
    return np.sqrt(max(squared, 0.0))


@jit
def gather(K, E, near, rows):
    """Copy the kernel rows of E over the points near into ``rows``."""
    for k in range(E.size):
        row, out = K[E[k]], rows[k]
        for j in range(near.size):
            out[j] = row[near[j]]
