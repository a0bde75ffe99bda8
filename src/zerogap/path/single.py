"""Engine "single": one transition at a time (Sentelle, Anagnostopoulos and Georgiopoulos, 2016), segments solved directly.

Symbols: as in ``engine``; g = K_L b_L, the pull of the capped points.
On a segment b_E = u + lam v and F = p + lam q, both determined by the sets alone.  When a point changes sets, these lines
change by a multiple of its response: one solve, and one combination of kernel rows.  What they leave of p_E = 0 and q_E = y_E
is looked at every time, and now and then they are solved for afresh, so nothing drifts.
The elbow stays affinely independent: a point that depends on it is exchanged for one of its points, along the direction that
moves no decision value; and the last point of the elbow stays, even at a bound, so that it is never empty.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from zerogap.compiled import jit
from zerogap.elbow import ElbowSystem
from zerogap.gram import Gram
from zerogap.path.engine import (
    ELBOW,
    LEFT,
    RIGHT,
    Engine,
    Segment,
    Transition,
    bend_in,
    bend_out,
    lines,
    optimum,
    sets_of,
    weighted_rows,
)
from zerogap.stopping import RelativeGap

START = RelativeGap(1e-12)  # of the solution the path starts from; the elbow is then made exact

# The pull of the capped points is summed afresh after so many events, and whenever lam has halved: what rounding leaves in
# it counts relative to lam.
REFRESH_EVERY = 500

# The lines are solved for afresh after so many events, and when they leave too much on the elbow, relative to lam.
FRESH_EVERY = 25
LEFT_OVER = 1e-11
LONG = 0.9  # a segment over which lam falls to less than this share is worth fresh lines
TIE = 1e-10  # events nearer than this, relative to lam, happen at once

# Transitions at one and the same C, per point, before a tie counts as a circle.
MOST_AT_ONCE = 10


@dataclass(frozen=True)
class Single:
    """One transition at a time; needs no options."""

    def start(
        self, gram: Gram, y: np.ndarray, w: np.ndarray, C: float, beta: np.ndarray | None = None
    ) -> "SingleEngine":
        """Return the engine at C."""
        return SingleEngine(gram, y, w, 1.0 / C, optimum(gram, y, w, C, START, beta).beta / C)

    def __str__(self) -> str:
        return "single"


class SingleEngine(Engine):
    """The state between two transitions."""

    def __init__(self, gram: Gram, y: np.ndarray, w: np.ndarray, lam: float, b: np.ndarray):
        super().__init__(gram, y, w)
        self._p, self._q = np.empty(y.size), np.empty(y.size)
        self._largest = float(np.abs(np.diagonal(self.K)).max())
        self._place(lam, b)

    @property
    def elbow_size(self) -> int:
        """Number of points in the elbow."""
        return self.system.size

    def _place(self, lam: float, b: np.ndarray) -> None:
        """Begin at lam with nearly optimal scaled coefficients."""
        self.lam, self.b = lam, b.copy()  # of the elbow those at ``lam``
        self.system = ElbowSystem(self.K)
        self.status = sets_of(self.y * b, self.w)
        self._at_once = 0  # transitions without a change of lam
        self._build_elbow()
        self._sum_pull()
        self._make_optimal()
        self.transitions.clear()  # what brought us to the start is no event of the path

    # One event.

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """Go to the next event, or to ``lam_end``; return the segment passed and where it ends."""
        if self._at_once > MOST_AT_ONCE * self.y.size + 100:
            return self._back_up(lam_end)
        segment = self.segment()
        lam, index, target = self._next_event(segment, lam_end)
        if lam < LONG * self.lam and self._age > 1:  # what the lines leave over counts relative to the lam they lead to
            self._solve_lines()
            segment = self.segment()
            lam, index, target = self._next_event(segment, lam_end)
        if index >= 0 and lam > (1.0 - TIE) * self.lam:
            lam = self.lam
        self._at_once = self._at_once + 1 if lam == self.lam else 0
        self._move_to(lam, segment)
        if index >= 0:
            self.counts.events += 1
            self._change(index, target)
            if self.counts.events % REFRESH_EVERY == 0 or self.lam < 0.5 * self._pull_lam:
                self._sum_pull()
        return segment, lam

    def _back_up(self, lam_end: float) -> tuple[Segment, float]:
        """Leave a circle of ties: solve anew a little further on."""
        warnings.warn(
            f"The path met a tie at C={1 / self.lam:g} that it could not settle; it was solved anew a little further on.",
            RuntimeWarning,
            stacklevel=5,
        )
        lam, before = max(self.lam * (1 - 1e-6), lam_end), self.status
        self._place(lam, self.solve_at(lam, self.b, START).beta * lam)
        self.record(before)
        self.counts.loop_backups += 1
        return self.segment(), lam

    def segment(self) -> Segment:
        """Return the lines of the elbow; p and q are those of all points."""
        E = self.system.points
        if self._age >= FRESH_EVERY or not _left_over(self._p, self._q, self.y, E, self.lam) <= self._tolerance():
            self._solve_lines()
        self._age += 1
        return Segment(E.copy(), self.u, self.v, self.u0, self.v0)

    def _tolerance(self) -> float:
        return LEFT_OVER * self.lam + self._rounding

    def _solve_lines(self) -> None:
        """Solve the elbow system for both coefficients of lam, with one step of refinement."""
        E = self.system.points
        x, bias = self.system.solve(np.stack([-self.g[E], self.y[E]]), np.array([-self.capped, 0.0]))
        lines(self.K, E, x[0], x[1], bias[0], bias[1], self.g, self._p, self._q)
        # On the elbow p is zero and q is y: what they are instead refines the solution.
        left_over = np.stack([-self._p[E], self.y[E] - self._q[E]])
        correction, shift = self.system.solve(left_over, np.array([-self.capped, 0.0]) - x.sum(axis=1))
        x, bias = x + correction, bias + shift
        if np.abs(left_over).max() > 1e-10 * (1.0 + np.abs(self.g[E]).max()):
            lines(self.K, E, x[0], x[1], bias[0], bias[1], self.g, self._p, self._q)
        self.u, self.v, self.u0, self.v0 = x[0], x[1], float(bias[0]), float(bias[1])
        self._age = 0
        if not self._n_capped:
            self._clear_margins()

    def _clear_margins(self) -> None:
        """Stretch the last segment by about its rounding error, so that every margin is met however large C becomes.

        Without capped points F = lam q, and a margin short by 1e-14 costs C times that at each of the points on it.
        """
        short = float((1.0 - self.y * self._q).max())
        if short < 1e-9:
            stretch = 1.0 + 2.0 * max(short, 0.0) + 1e-13
            self.v, self.v0 = self.v * stretch, self.v0 * stretch
            self._q *= stretch

    def _next_event(self, segment: Segment, lam_end: float) -> tuple[float, int, int]:
        tiny = self._tiny_slope(segment)
        return _next_event(self.lam, lam_end, self.y, self.w, self.status, self._p, self._q, *segment[:3], tiny)

    def _tiny_slope(self, segment: Segment) -> float:
        """Slopes of decision values below this are rounding."""
        return 1e-13 * (1.0 + float(np.abs(segment.v).sum()) * self._largest)

    def _move_to(self, lam: float, segment: Segment) -> None:
        self.lam = lam
        self.b[segment.points] = segment.coefficients(lam)

    # Changes of the sets.

    def _change(self, index: int, target: int) -> None:
        if target == ELBOW:
            self._enter(index)
        else:
            self._leave(int(np.flatnonzero(self.system.points == index)[0]), target)

    def _set(self, index: int, target: int) -> None:
        """Enter a point in a set, the pull of the capped points with it."""
        origin = int(self.status[index])
        pull = self.y[index] * self.w[index]
        sign = int(target == LEFT) - int(origin == LEFT)
        if sign:
            self.g += sign * pull * self.K[index]
            self.capped += sign * pull
            self._n_capped += sign
            if not self._n_capped:  # from here on b is in proportion to lam: what rounding left must not stay
                self._clear_pull()
        if target != ELBOW:
            self.b[index] = pull if target == LEFT else 0.0
        self.status[index] = target
        self.transitions.append(Transition(self.lam, index, origin, target))

    def _leave(self, position: int, target: int) -> None:
        index, (d, d0) = int(self.system.points[position]), self.system.take_out(position)
        E = self.system.points
        if self._age < FRESH_EVERY and E.size:
            bound = self.y[index] * self.w[index] if target == LEFT else 0.0
            self._take(d0, *bend_out(self.K, E, d, d0, index, position, bound, self.u, self.v, self._p, self._q))
        else:
            self._age = FRESH_EVERY
        self._set(index, target)

    def _join(self, index: int) -> bool:
        """Let a point into the elbow, unless it depends on it."""
        response = self.system.append(index)
        if response is None:
            return False
        E, (d, d0) = self.system.points[:-1], response
        if self._age < FRESH_EVERY and E.size:
            label, value = self.y[index], self.b[index]
            self._take(d0, *bend_in(self.K, E, d, d0, index, label, value, self.u, self.v, self._p, self._q))
        else:
            self._age = FRESH_EVERY
        return True

    def _take(self, d0: float, u: np.ndarray, v: np.ndarray, du: float, dv: float) -> None:
        """Take over the elbow's new lines, after one point's has changed by du + lam dv."""
        self.u, self.v = u, v
        self.u0, self.v0 = self.u0 + du * d0, self.v0 + dv * d0

    def _enter(self, index: int) -> None:
        """Let a point into the elbow; if it depends on it, in exchange for one of its points."""
        if self._join(index):
            self._set(index, ELBOW)
            return
        inward = self.y[index] if self.status[index] == RIGHT else -self.y[index]
        d = inward * self.system.dependence(index)
        E = self.system.points
        a, rate = self.y[E] * self.b[E], self.y[E] * d
        rate = np.where(np.abs(rate) > 1e-12 * np.abs(rate).max(initial=0.0), rate, 0.0)
        room = _room(a, rate, self.w[E])
        k = int(np.argmin(room)) if room.size else -1
        if k < 0 or room[k] >= self.w[index]:  # the point crosses to its other bound before any of the elbow is stopped
            self.b[E] += self.w[index] * d
            self._set(index, LEFT if self.status[index] == RIGHT else RIGHT)
            self._age = FRESH_EVERY
            return
        self.b[E] += room[k] * d
        bound = self.b[index]
        self._leave(k, RIGHT if rate[k] < 0 else LEFT)
        if not self._join(index):
            raise FloatingPointError("an exchange left the elbow singular")
        self.b[index] = bound + room[k] * inward
        self._set(index, ELBOW)

    # The start: from nearly optimal coefficients to an optimal elbow.

    def _build_elbow(self) -> None:
        free = np.flatnonzero(self.status == ELBOW)
        self.g, self.capped, self._n_capped = np.zeros(self.y.size), 0.0, 0
        self.status[free] = RIGHT  # until each has found its place
        room = np.minimum(self.y * self.b, self.w - self.y * self.b)
        for i in free[np.argsort(-room[free])]:
            kept = self.b[i]
            self.status[i] = ELBOW
            if self.system.append(int(i)) is not None:
                continue
            self._settle_dependent(int(i), kept)

    def _settle_dependent(self, i: int, value: float) -> None:
        """A free point that depends on the elbow goes to a bound, or takes the place of one that gets there first."""
        E = self.system.points
        d = -self.y[i] * self.system.dependence(i)  # with i falling towards zero
        a, rate = self.y[E] * self.b[E], self.y[E] * d
        room = _room(a, rate, self.w[E])
        k = int(np.argmin(room))
        step = min(float(room[k]), self.y[i] * value)
        self.b[E] += step * d
        self.b[i] = value - step * self.y[i]
        if step >= self.y[i] * value:
            self.b[i], self.status[i] = 0.0, RIGHT
            return
        j = int(E[k])
        self.system.remove(k)
        self.status[j] = RIGHT if rate[k] < 0 else LEFT
        self.b[j] = 0.0 if rate[k] < 0 else self.y[j] * self.w[j]
        if self.system.append(i) is None:
            raise FloatingPointError("an exchange left the elbow singular")

    def _sum_pull(self) -> None:
        left = self.status == LEFT
        pulls = self.y[left] * self.w[left]
        self.g = weighted_rows(self.K, np.flatnonzero(left), pulls)
        self.capped, self._n_capped = float(pulls.sum()), int(left.sum())
        self._pull_lam = self.lam
        self._rounding = 1e-14 * float(np.abs(self.g).max())
        self._age = FRESH_EVERY

    def _clear_pull(self) -> None:
        self.g[:] = 0.0
        self.capped, self._age = 0.0, FRESH_EVERY

    def _make_optimal(self) -> None:
        """Active-set steps at fixed lam: towards the elbow's solution as far as the box allows, then the worst violator."""
        if not self.system.size:
            self._seed()
        for _ in range(20 * self.y.size + 100):
            segment = self.segment()
            E, aim = segment.points, segment.coefficients(self.lam)
            a, change = self.y[E] * self.b[E], self.y[E] * (aim - self.b[E])
            part = _room(a, change, self.w[E])
            k = int(np.argmin(part))
            if part[k] < 1.0 and self.system.size > 1:
                self.b[E] += part[k] * (aim - self.b[E])
                self._leave(k, RIGHT if change[k] < 0 else LEFT)
                continue
            self.b[E] = aim
            h = self.y * (self._p + self.lam * self._q) - self.lam
            breach = np.where(self.status == RIGHT, -h, np.where(self.status == LEFT, h, 0.0))
            worst = int(np.argmax(breach))
            if breach[worst] <= 1e-11 * max(self.lam, float(np.abs(self._p).max())):
                return
            self._enter(worst)
        raise FloatingPointError("no optimal elbow was found at the start of the path")

    def _seed(self) -> None:
        """With every point at a bound the bias has an interval: put a point that ends it into the elbow."""
        rising = ((self.status == RIGHT) & (self.y > 0)) | ((self.status == LEFT) & (self.y < 0))
        bounds = self.lam * self.y - self.g
        ends = np.where(rising, bounds, -np.inf)
        self.system.append(int(np.argmax(ends)))
        self._set(int(np.argmax(ends)), ELBOW)


def _room(a: np.ndarray, rate: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return how far each y b = a can go at its rate before it is at 0 or w."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(rate < 0, a / -rate, np.where(rate > 0, (w - a) / rate, np.inf)), 0.0)


@jit
def _left_over(p, q, y, E, lam):
    """Return how far p_E = 0 and q_E = y_E are from true."""
    worst = 0.0
    for k in range(E.size):
        worst = max(worst, abs(p[E[k]]) + lam * abs(q[E[k]] - y[E[k]]))
    return worst


@jit
def _next_event(lam, lam_end, y, w, status, p, q, E, u, v, tiny):
    """Return the largest lam below the present one at which a point reaches the end of its set; (48)-(49) of ong.

    Only points that move towards their end as lam falls count; one that is past it by rounding changes at once.
    """
    best, index, target = lam_end, -1, ELBOW
    for i in range(y.size):
        if status[i] == ELBOW:
            continue
        slope = y[i] * q[i] - 1.0
        if (status[i] == RIGHT and slope > tiny) or (status[i] == LEFT and slope < -tiny):
            root = min(lam, lam - (y[i] * p[i] + lam * slope) / slope)
            if root > best:
                best, index, target = root, i, ELBOW
    if E.size > 1:
        largest = np.abs(v).max()
        for k in range(E.size):
            i = E[k]
            rate, a = y[i] * v[k], y[i] * (u[k] + lam * v[k])
            if abs(rate) <= 1e-13 * largest:
                continue
            root = min(lam, lam - a / rate) if rate > 0 else min(lam, lam - (w[i] - a) / -rate)
            if root > best:
                best, index, target = root, i, RIGHT if rate > 0 else LEFT
    return best, index, target
