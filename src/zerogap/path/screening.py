"""The decision values F = p + lam q of the points whose margin can be reached before all are evaluated again:
safe screening of the others.

Symbols: as in ``engine``; w = sum of b_i phi(x_i) here; dw = sum of v_i phi(x_i) and v0 are the derivatives of w and
of the scaled bias in lam.
While the sets stay, every F is a straight line.  As points join and leave the elbow, dw departs from what it was when all were
evaluated, by an amount known exactly: K_EE v = y_E - v0 and sum(v) = 0 make |dw|² = v'y_E.  A decision value departs from its
line by no more than sqrt(K_ii) times that, and the bias' part, for as long as lam falls.  A point farther from the margin than
this, all along the line, is screened out.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import jit
from zerogap.free_system import Response
from zerogap.path.engine import Segment, lines, lines_after_entering, lines_after_leaving

MOST_CANDIDATES = 0.7  # screening that keeps more than this share of the points is no gain
SAMPLE = 32  # points of the elbow that stay candidates, to see whether its lines still hold
SCREENED_OUT = -1
ON = 1e-8  # nearer to the margin than this, relative to lam, may be on it but for rounding


class Displacement(NamedTuple):
    """A decrease of lam, and how far w and the bias depart from their lines meanwhile."""

    t: float
    w: float
    bias: float


NOTHING, NO_LIMIT = Displacement(0.0, 0.0, 0.0), Displacement(np.inf, np.inf, np.inf)

# u and v of the elbow, and by how much a point's own have changed
UpdatedLines = tuple[np.ndarray, np.ndarray, float, float]


class ScreeningArrays(NamedTuple):
    """The arrays of a ``Screening``, for compiled code."""

    is_screened: bool
    rows: np.ndarray
    slots: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    position: np.ndarray
    line_points: np.ndarray
    line_v: np.ndarray
    line_v0: float
    allowed: Displacement


class Screening:
    """The points that are not screened out, their p and q, and the kernel rows of the elbow over them."""

    def __init__(self, K: np.ndarray, y: np.ndarray, ahead: int):
        n = y.size
        self.K, self.y, self._ahead = K, y, ahead  # ahead: changes of the elbow that a screening is to last for
        self._indices, self._norm = np.arange(n), np.sqrt(np.maximum(np.diagonal(K), 0.0))
        self._all, self._store = np.empty((2, n)), np.empty(0)
        self.position = np.arange(n)  # of a candidate among them
        self._since, self._allowed, self._moves = NOTHING, NO_LIMIT, 0
        self._keep_all()

    def _keep_all(self) -> None:
        self.points, self._rows, self.is_screened = self._indices, self.K, False
        self.p, self.q = self._all
        self.position[:] = self._indices

    def evaluate_all(self, segment: Segment, g: np.ndarray) -> None:
        """Evaluate the lines of all points; ``g`` is the bound contribution K_L b_L."""
        if self.is_screened:
            self._keep_all()
        E, u, v, u0, v0, _ = segment
        lines(self.K, E, u, v, u0, v0, g, self.p, self.q)
        self.line, self._allowed = segment, NO_LIMIT

    def screen(self, lam: float, displacement: Displacement) -> None:
        """Screen: keep the points whose margin can be reached in the displacement to come, and in some more as last time."""
        if self.is_screened:
            return
        share = self._ahead / max(self._moves, 1)
        before, self._since, self._moves = self._since, NOTHING, 0
        if share > self._ahead / 2:  # too little is known of what is to come
            return
        allowed = Displacement(
            displacement.t + share * before.t,
            displacement.w + share**2 * before.w,
            displacement.bias + share**2 * before.bias,
        )
        E = self.line.points
        near = _reachable(self.y, self.p, self.q, lam, self._norm, E, *allowed)
        if near.size > MOST_CANDIDATES * self.y.size:
            return
        self.is_screened, self._allowed, self._n_candidates = True, allowed, near.size
        self._columns = np.concatenate([near, np.zeros(self._ahead, dtype=np.int64)])
        self._values = np.zeros((2, self._columns.size))
        self._values[:, : near.size] = self._all[:, near]
        self.position[:] = SCREENED_OUT
        self.position[near] = self._indices[: near.size]
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
        (t, w, bias), (t_most, w_most, bias_most) = self._after(displacement), self._allowed
        return t <= t_most and w <= w_most and bias <= bias_most

    def accumulate(self, displacement: Displacement) -> None:
        """Add a displacement to those since the last screening."""
        self._since, self._moves = self._after(displacement), self._moves + 1

    def _after(self, displacement: Displacement) -> Displacement:
        (t, w, bias), (dt, dw, dbias) = self._since, displacement
        return Displacement(t + dt, w + dw, bias + dbias)

    def record(self) -> ScreeningArrays:
        """Return the arrays, which compiled code may change: it tells what came of it by ``take``."""
        E, _, v, _, v0, _ = self.line
        if self.is_screened:
            slots, columns, values = self._slots, self._columns, self._values
        else:
            slots, columns, values = self._indices, self._indices, self._all
        return ScreeningArrays(
            self.is_screened, self._rows, slots, columns, values, self.position, E, v, v0, self._allowed
        )

    def progress(self) -> tuple[int, int, float, float, float]:
        """Return how many candidates there are, the rows that are filled, and the displacement since all were evaluated."""
        return (self._n_candidates, self._filled, *self._since) if self.is_screened else (self.y.size, 0, *self._since)

    def take(self, moves: int, n_candidates: int, filled: int, t: float, w: float, bias: float) -> None:
        """Take over what compiled code has made of the arrays in so many moves."""
        self._since, self._moves = Displacement(t, w, bias), self._moves + moves
        if self.is_screened:
            self._n_candidates, self._filled = n_candidates, filled
            self._show()

    def join(
        self, E: np.ndarray, response: Response, i: int, value: float, u: np.ndarray, v: np.ndarray
    ) -> UpdatedLines:
        """Let point i, of E's answer ``response``, leave its bound ``value``; return the elbow's new lines."""
        rows, slots, slot = self._rows, E, i
        if self.is_screened:
            slots, slot = self._slots[: E.size], self._filled
            rows[slot, : self._n_candidates] = self.K[i, self.points]
            self._slots[E.size], self._filled = slot, slot + 1
        where, label = self.position[i], self.y[i]
        return lines_after_entering(
            self.K, E, rows, slots, *response, i, slot, where, label, value, u, v, self.p, self.q
        )

    def leave(
        self, E: np.ndarray, response: Response, i: int, position: int, bound: float, u: np.ndarray, v: np.ndarray
    ) -> UpdatedLines:
        """Let point i, which was at a position of the elbow, come to rest at a bound; return the others' new lines."""
        rows, slots, slot = self._rows, E, i
        if self.is_screened:
            slot = int(self._slots[position])
            self._slots[position : E.size] = self._slots[position + 1 : E.size + 1]
            slots = self._slots[: E.size]
            if self.position[i] == SCREENED_OUT:
                self._add(i, slot, E, slots)
        return lines_after_leaving(rows, slots, *response, slot, position, bound, u, v, self.p, self.q)

    def _add(self, i: int, slot: int, E: np.ndarray, slots: np.ndarray) -> None:
        """Make a point of the elbow, which has just left it, a candidate."""
        k = self._n_candidates
        self._rows[slots, k], self._rows[slot, k] = self.K[i, E], self.K[i, i]
        self._columns[k], self._values[1, k], self.position[i] = i, self.y[i], k  # on the elbow p = 0 and q = y
        self._n_candidates += 1
        self._show()


@jit
def _reachable(y, p, q, lam, norm, E, t, w, bias):
    """Return some of E, and the points that reach the margin while lam falls by t, on their line or within their departure."""
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
    """Return |dw - dw_then|: points of the elbow of then are candidates or in it still, so that their q tells K v there."""
    square = 0.0
    for k in range(E.size):
        square += v[k] * y[E[k]]
    for k in range(E_then.size):
        i = E_then[k]
        j = position[i]
        square += v_then[k] * (y[i] - 2.0 * (q[j] if j != SCREENED_OUT else y[i]))
    return np.sqrt(max(square, 0.0))


@jit
def gather(K, E, near, rows):
    """Copy the kernel rows of E over the points near into ``rows``."""
    for k in range(E.size):
        row, out = K[E[k]], rows[k]
        for j in range(near.size):
            out[j] = row[near[j]]
