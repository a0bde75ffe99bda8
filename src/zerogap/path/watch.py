"""The decision values F = p + lam q of the points whose margin can be reached before all are looked at again.

Symbols: as in ``engine``; w = sum of b_i phi(x_i), dw and dv0 how w and the scaled bias change with lam.
While the sets stay, every F is a straight line.  As points join and leave the elbow, dw departs from what it was when all were
looked at, by an amount known exactly: K_EE v = y_E - v0 and sum(v) = 0 make |dw|² = v'y_E.  A decision value departs from its
line by no more than sqrt(K_ii) times that, and the bias' part, for as long as lam falls.  Who is farther from the margin than
this, all along the line, need not be looked at.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import jit
from zerogap.elbow import Response
from zerogap.path.engine import Segment, bend_in, bend_out, lines

WORTH = 0.7  # watching more than this share of the points is no gain
SAMPLE = 32  # points of the elbow that are watched, to see whether its lines still hold
UNWATCHED = -1
ON = 1e-8  # nearer to the margin than this, relative to lam, may be on it but for rounding


class Move(NamedTuple):
    """A fall of lam, and how far w and the bias depart from their lines meanwhile."""

    t: float
    w: float
    bias: float


NOTHING, NO_LIMIT = Move(0.0, 0.0, 0.0), Move(np.inf, np.inf, np.inf)

Bent = tuple[np.ndarray, np.ndarray, float, float]  # u and v of the elbow, and by how much a point's own have changed


class Watched(NamedTuple):
    """The arrays of a ``Watch``, for compiled code."""

    is_narrow: bool
    rows: np.ndarray
    slots: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    position: np.ndarray
    line_points: np.ndarray
    line_v: np.ndarray
    line_v0: float
    allowed: Move


class Watch:
    """Who is watched, their p and q, and the kernel rows of the elbow over them."""

    def __init__(self, K: np.ndarray, y: np.ndarray, ahead: int):
        n = y.size
        self.K, self.y, self._ahead = K, y, ahead  # ahead: changes of the elbow that the points watched are to last for
        self._everyone, self._norm = np.arange(n), np.sqrt(np.maximum(np.diagonal(K), 0.0))
        self._all, self._store = np.empty((2, n)), np.empty(0)
        self.position = np.arange(n)  # of a watched point among them
        self._since, self._allowed, self._moves = NOTHING, NO_LIMIT, 0
        self._watch_everyone()

    def _watch_everyone(self) -> None:
        self.points, self._rows, self.is_narrow = self._everyone, self.K, False
        self.p, self.q = self._all
        self.position[:] = self._everyone

    def look(self, segment: Segment, g: np.ndarray) -> None:
        """Look at all points; ``g`` is the pull of the capped ones."""
        if self.is_narrow:
            self._watch_everyone()
        E, u, v, u0, v0, _ = segment
        lines(self.K, E, u, v, u0, v0, g, self.p, self.q)
        self.line, self._allowed = segment, NO_LIMIT

    def narrow(self, lam: float, move: Move) -> None:
        """Having looked at all, watch only those who can be reached in the move to come, and in some more as last time."""
        if self.is_narrow:
            return
        share = self._ahead / max(self._moves, 1)
        before, self._since, self._moves = self._since, NOTHING, 0
        if share > self._ahead / 2:  # too little is known of what is to come
            return
        allowed = Move(move.t + share * before.t, move.w + share**2 * before.w, move.bias + share**2 * before.bias)
        E = self.line.points
        near = _within(self.y, self.p, self.q, lam, self._norm, E, *allowed)
        if near.size > WORTH * self.y.size:
            return
        self.is_narrow, self._allowed, self._n_watched = True, allowed, near.size
        self._columns = np.concatenate([near, np.zeros(self._ahead, dtype=np.int64)])
        self._values = np.zeros((2, self._columns.size))
        self._values[:, : near.size] = self._all[:, near]
        self.position[:] = UNWATCHED
        self.position[near] = self._everyone[: near.size]
        self._show()
        size = (E.size + self._ahead) * self._columns.size
        if self._store.size < size:
            self._store = np.empty(2 * size)
        self._rows = self._store[:size].reshape(-1, self._columns.size)
        self._slots, self._filled = np.arange(E.size + self._ahead), E.size
        gather(self.K, E, near, self._rows)

    def _show(self) -> None:
        self.points, (self.p, self.q) = self._columns[: self._n_watched], self._values[:, : self._n_watched]

    def covers(self, move: Move) -> bool:
        """Whether nobody else can be reached by a move."""
        if not self.is_narrow:
            return True
        (t, w, bias), (t_most, w_most, bias_most) = self._after(move), self._allowed
        return t <= t_most and w <= w_most and bias <= bias_most

    def note(self, move: Move) -> None:
        """Take note of a move."""
        self._since, self._moves = self._after(move), self._moves + 1

    def _after(self, move: Move) -> Move:
        (t, w, bias), (dt, dw, dbias) = self._since, move
        return Move(t + dt, w + dw, bias + dbias)

    def record(self) -> Watched:
        """Return the arrays, which compiled code may change: it tells what came of it by ``take``."""
        E, _, v, _, v0, _ = self.line
        if self.is_narrow:
            slots, columns, values = self._slots, self._columns, self._values
        else:
            slots, columns, values = self._everyone, self._everyone, self._all
        return Watched(self.is_narrow, self._rows, slots, columns, values, self.position, E, v, v0, self._allowed)

    def progress(self) -> tuple[int, int, float, float, float]:
        """Return how many points are watched, the rows that are filled, and the moves since all were looked at."""
        return (self._n_watched, self._filled, *self._since) if self.is_narrow else (self.y.size, 0, *self._since)

    def take(self, moves: int, n_watched: int, filled: int, t: float, w: float, bias: float) -> None:
        """Take over what compiled code has made of the arrays in so many moves."""
        self._since, self._moves = Move(t, w, bias), self._moves + moves
        if self.is_narrow:
            self._n_watched, self._filled = n_watched, filled
            self._show()

    def join(self, E: np.ndarray, response: Response, i: int, value: float, u: np.ndarray, v: np.ndarray) -> Bent:
        """Let point i, of E's answer ``response``, leave its bound ``value``; return the elbow's new lines."""
        rows, slots, slot = self._rows, E, i
        if self.is_narrow:
            slots, slot = self._slots[: E.size], self._filled
            rows[slot, : self._n_watched] = self.K[i, self.points]
            self._slots[E.size], self._filled = slot, slot + 1
        where, label = self.position[i], self.y[i]
        return bend_in(self.K, E, rows, slots, *response, i, slot, where, label, value, u, v, self.p, self.q)

    def leave(
        self, E: np.ndarray, response: Response, i: int, position: int, bound: float, u: np.ndarray, v: np.ndarray
    ) -> Bent:
        """Let point i, which was at a position of the elbow, come to rest at a bound; return the others' new lines."""
        rows, slots, slot = self._rows, E, i
        if self.is_narrow:
            slot = int(self._slots[position])
            self._slots[position : E.size] = self._slots[position + 1 : E.size + 1]
            slots = self._slots[: E.size]
            if self.position[i] == UNWATCHED:
                self._add(i, slot, E, slots)
        return bend_out(rows, slots, *response, slot, position, bound, u, v, self.p, self.q)

    def _add(self, i: int, slot: int, E: np.ndarray, slots: np.ndarray) -> None:
        """Watch a point of the elbow, which has just left it."""
        k = self._n_watched
        self._rows[slots, k], self._rows[slot, k] = self.K[i, E], self.K[i, i]
        self._columns[k], self._values[1, k], self.position[i] = i, self.y[i], k  # on the elbow p = 0 and q = y
        self._n_watched += 1
        self._show()


@jit
def _within(y, p, q, lam, norm, E, t, w, bias):
    """Return some of E, and who reaches the margin while lam falls by t, along a line or by what may depart from it."""
    is_near, floor = np.zeros(y.size, dtype=np.bool_), bias + ON * lam
    for i in range(y.size):
        now = y[i] * (p[i] + lam * q[i]) - lam
        then = now - t * (y[i] * q[i] - 1.0)
        is_near[i] = now * then <= 0.0 or min(abs(now), abs(then)) <= w * norm[i] + floor
    for k in range(E.size):
        is_near[E[k]] = k < SAMPLE
    return np.flatnonzero(is_near)


@jit
def departure(y, E, v, E_then, v_then, position, q):
    """Return |dw - dw_then|: those who were in the elbow then are watched or in it still, so that their q tells K v there."""
    square = 0.0
    for k in range(E.size):
        square += v[k] * y[E[k]]
    for k in range(E_then.size):
        i = E_then[k]
        j = position[i]
        square += v_then[k] * (y[i] - 2.0 * (q[j] if j != UNWATCHED else y[i]))
    return np.sqrt(max(square, 0.0))


@jit
def gather(K, E, near, rows):
    """Copy the kernel rows of E over the points near into ``rows``."""
    for k in range(E.size):
        row, out = K[E[k]], rows[k]
        for j in range(near.size):
            out[j] = row[near[j]]
