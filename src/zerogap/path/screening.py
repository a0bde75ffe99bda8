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


class ScreeningArrays(NamedTuple):
    """The arrays of a ``Screening``, for compiled code."""

    is_screened: bool
    rows: np.ndarray  # kernel rows over the candidates; all of K if none is screened out
    slots: np.ndarray  # which of them are the elbow's, in its order
    columns: np.ndarray  # the candidates; more than are in use
    values: np.ndarray  # their p and q
    place_of: np.ndarray  # of a point among the candidates
    reference: Reference
    allowed: Displacement


class Candidates(NamedTuple):
    """The points that are not screened out, where each is among them, and their F = p + lam q."""

    points: np.ndarray
    place_of: np.ndarray
    p: np.ndarray
    q: np.ndarray


class Screening:
    """The points that are not screened out, their p and q, and the kernel rows of the elbow over them."""

    def __init__(self, K: np.ndarray, sets: Sets, ahead: int):
        self.n = n = len(K)
        self.K, self.sets, self._ahead = K, sets, ahead  # ahead: changes of the elbow that a screening is to last for
        self._indices, self._norm = np.arange(n), np.sqrt(np.maximum(np.diagonal(K), 0.0))
        self._all, self._store = np.empty((2, n)), np.empty(0)
        self.place_of = np.arange(n)  # of a candidate among them
        self._since, self._allowed, self._moves = NO_DISPLACEMENT, NO_LIMIT, 0
        self._keep_all()

    def _keep_all(self) -> None:
        self.points, self._rows, self.is_screened = self._indices, self.K, False
        self.p, self.q = self._all
        self.place_of[:] = self._indices

    def evaluate_all(self, segment: Segment, g: np.ndarray) -> None:
        """Evaluate the lines of all points; ``g`` is the bound contribution K_L b_L."""
        if self.is_screened:
            self._keep_all()
        E, u, v, u0, v0, _ = segment
        lines(self.K, E, u, v, u0, v0, g, self.p, self.q)
        self.line, self._line_m1, self._allowed = segment, self.sets.m1[E], NO_LIMIT

    def screen(self, lam: float, displacement: Displacement) -> None:
        """Screen: keep the points whose margin can be reached in the displacement to come, and in some more as last time."""
        if self.is_screened:
            return
        before, moves = self._since, self._moves
        self._since, self._moves = NO_DISPLACEMENT, 0
        if moves < 2:  # too little is known of what is to come
            return
        times = self._ahead / moves  # as many moves are to come as were made since the last screening
        # With every event lam falls about as much as of late.  Departures grow from event to event, so that their sum grows
        # like the square of the number of events.
        allowed = Displacement(
            displacement.decrease + times * before.decrease,
            displacement.normal + times**2 * before.normal,
            displacement.bias + times**2 * before.bias,
        )
        E, sets = self.line.points, self.sets
        near = _reachable(
            sets.y, sets.m0, sets.m1, sets.status, sets.tube, self.p, self.q, lam, sets.anchor, self._norm, E, allowed
        )
        if near.size > MAX_CANDIDATES * self.n:
            return
        self.is_screened, self._allowed, self._n_candidates = True, allowed, near.size
        self._columns = np.concatenate([near, np.zeros(self._ahead, dtype=np.int64)])
        self._values = np.zeros((2, self._columns.size))
        self._values[:, : near.size] = self._all[:, near]
        self.place_of[:] = SCREENED_OUT
        self.place_of[near] = self._indices[: near.size]
        self._show()
        size = (E.size + self._ahead) * self._columns.size
        if self._store.size < size:
            self._store = np.empty(2 * size)
        self._rows = self._store[:size].reshape(-1, self._columns.size)
        self._slots, self._filled = np.arange(E.size + self._ahead), E.size
        gather(self.K, E, near, self._rows)

    def _show(self) -> None:
        self.points, (self.p, self.q) = self._columns[: self._n_candidates], self._values[:, : self._n_candidates]

    def is_safe(self, displacement: Displacement) -> bool:
        """Whether no point that is screened out can be reached by a displacement."""
        if not self.is_screened:
            return True
        return all(d <= limit for d, limit in zip(self._after(displacement), self._allowed, strict=True))

    def accumulate(self, displacement: Displacement) -> None:
        """Add a displacement to those since the last screening."""
        self._since, self._moves = self._after(displacement), self._moves + 1

    def _after(self, displacement: Displacement) -> Displacement:
        since = self._since
        return Displacement(
            since.decrease + displacement.decrease, since.normal + displacement.normal, since.bias + displacement.bias
        )

    @property
    def candidates(self) -> Candidates:
        """The candidates, for compiled code."""
        return Candidates(self.points, self.place_of, self.p, self.q)

    @property
    def reference(self) -> Reference:
        """The elbow's line when all points were evaluated."""
        return Reference(self.line.points, self.line.v, self.line.v0, self._line_m1)

    def arrays(self) -> ScreeningArrays:
        """Return the arrays, which compiled code may change: it tells what came of it by ``take``."""
        slots, columns, values = self._indices, self._indices, self._all
        if self.is_screened:
            slots, columns, values = self._slots, self._columns, self._values
        return ScreeningArrays(
            self.is_screened, self._rows, slots, columns, values, self.place_of, self.reference, self._allowed
        )

    def progress(self) -> tuple[int, int, Displacement]:
        """Return how many candidates there are, the rows that are filled, and the displacement since all were evaluated."""
        return (self._n_candidates, self._filled, self._since) if self.is_screened else (self.n, 0, self._since)

    def take(self, moves: int, n_candidates: int, filled: int, since: Displacement) -> None:
        """Take over what compiled code has made of the arrays in so many moves."""
        self._since, self._moves = since, self._moves + moves
        if self.is_screened:
            self._n_candidates, self._filled = n_candidates, filled
            self._show()

    def enter(self, elbow: ElbowLines, response: Response, i: int, bound: float) -> Change:
        """Let point i, which the elbow answers with ``response``, leave its bound."""
        return self._change(elbow, response, i, NO_POINT, bound)

    def leave(self, elbow: ElbowLines, response: Response, i: int, position: int, bound: float) -> Change:
        """Let point i, which was at a position of the elbow, come to rest at a bound; u and v still have it."""
        return self._change(elbow, response, i, position, bound)

    def _change(self, elbow: ElbowLines, response: Response, i: int, position: int, bound: float) -> Change:
        n_candidates, filled, since = self.progress()
        m0, m1, (d, d0) = float(self.sets.m0[i]), float(self.sets.m1[i]), response
        *change, n_candidates, filled = change_candidates(
            self.K, i, m0, m1, bound, position, *elbow[:3], d, d0, self.arrays(), n_candidates, filled
        )
        self.take(0, n_candidates, filled, since)
        return Change(*change)


@jit
def change_candidates(K, i, m0, m1, bound, position, E, u, v, d, d0, screening, n_candidates, filled):
    """Let point i leave its bound for the elbow, or, if it has a position there, the elbow for its bound.

    E are the others, which respond with d, d0; u and v are those of before.  When it enters, F = m0 + lam m1 there.
    Return new u and v, the change du + lam dv of its coefficient, and how many candidates and filled rows there are now.
    """
    m, enters, rows, slots, slot = d.size, position == NO_POINT, screening.rows, E, i
    p, q = screening.values[0], screening.values[1]
    if screening.is_screened:
        slots = screening.slots
        if enters:
            slot, slots[m] = filled, filled
            filled += 1
            for k in range(n_candidates):
                rows[slot, k] = K[i, screening.columns[k]]
        else:
            slot = slots[position]
            for k in range(position, m):
                slots[k] = slots[k + 1]
            if screening.place_of[i] == SCREENED_OUT:  # it was on the elbow, where p = m0 and q = m1
                for j in range(m):
                    rows[slots[j], n_candidates] = K[i, E[j]]
                rows[slot, n_candidates] = K[i, i]
                screening.columns[n_candidates], screening.place_of[i] = i, n_candidates
                p[n_candidates], q[n_candidates] = m0, m1
                n_candidates += 1
    if enters:
        slope, column = K[i, i] + d0, screening.place_of[i]  # slope: of F at i over its b
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
def _reachable(y, m0, m1, status, tube, p, q, lam, anchor, norm, E, allowed):
    """Return some of E, and the points that reach a margin within a displacement, on their line or by their departure."""
    t = lam - anchor
    is_near, near, floor = (
        np.empty(y.size, dtype=np.bool_),
        np.empty(y.size, dtype=np.int64),
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
    return near[:count].copy()


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
