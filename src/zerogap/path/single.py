"""Engine "single": one transition at a time (Sentelle, Anagnostopoulos and Georgiopoulos, 2016), segments solved directly.

Symbols: as in ``engine``; g = K_L b_L, the bound contribution.
On a segment b_E = u + lam v and F = p + lam q, both determined by the sets alone.  When a point changes sets, these lines
change by a multiple of its response: one solve, and one combination of kernel rows.  What they leave of p_E = 0 and q_E = y_E
is tested every time, and now and then they are solved for afresh, so nothing drifts.
The elbow stays affinely independent: a point that depends on it is exchanged for one of its points, along the direction that
moves no decision value; and the last point of the elbow stays, even at a bound, so that it is never empty.
``screening`` knows which p and q are needed, ``tie`` resolves what one exchange after another does not.
"""

import math
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.free_system import DenseFreeSystem
from zerogap.gram import Gram
from zerogap.path.engine import (
    ELBOW,
    LEFT,
    RIGHT,
    Engine,
    NotStarted,
    Segment,
    Step,
    Transition,
    add_exactly,
    add_row,
    optimum,
    segment_between,
    sets_of,
    weighted_rows,
)
from zerogap.path.events import (
    FRESH_EVERY,
    LEFT_OVER,
    LONG,
    OUTSIDE,
    ROUGH,
    TIE,
    ElbowFactor,
    Lines,
    PointArrays,
    Scale,
    line_residual,
    pass_ordinary,
    ratio_test,
    steps_of,
    tied_candidates,
)
from zerogap.path.screening import Displacement, Screening
from zerogap.path.tie import entering_points
from zerogap.precision import with_sum_zero
from zerogap.stopping import PlainGap

MOST_COORDINATES = 20_000  # that are read to compute kernel values in twice the precision: half a millisecond
START = PlainGap(1e-12)  # of the solution the path starts from; the elbow is then made exact

# The bound contribution is summed afresh after so many events, and whenever lam has halved: what rounding leaves in
# it counts relative to lam.
REFRESH_EVERY = 500

UNSURE = 1e-10  # a coefficient that refinement changes by more than this is not known well enough
# On the last segment margins are measured for points this near to them, and what they are short by, up to so much, is made
# up for; in so many trials.  They are then clear by more than rounding makes of it.
NEAR, SHORT, LENGTHS, CLEAR = 1e-6, 1e-9, 50, 1e-13

NOISE = 1e-12  # part of the fastest rate of an exchange that is rounding

# Transitions at one and the same C before a tie is resolved as a whole, and before that is given up.
PATIENCE = 50
MOST_DEGENERATE = 10 * PATIENCE
BACKUP_STEP = 1e-6  # part of lam by which the backup goes on
TIED = 1e-9  # what is nearer to the boundary of its set than this, relative to lam or to the box, is tied


class NextEvent(NamedTuple):
    """A point reaches the end of its set."""

    lam: float
    point: int  # -1: none does, before the end of the path
    position: int  # in the elbow, if it leaves that; else -1
    target: int
    displacement: Displacement
    outside: float  # how far the lines begin outside the box


@dataclass(frozen=True)
class Single:
    """One transition at a time; needs no options."""

    def start(
        self,
        gram: Gram,
        y: np.ndarray,
        w: np.ndarray,
        C: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> "SingleEngine":
        """Return the engine at C."""
        return SingleEngine(gram, y, w, 1.0 / C, optimum(gram, y, w, C, START, beta).beta / C, status)

    def __str__(self) -> str:
        return "single"


class SingleEngine(Engine):
    """The state between two transitions."""

    def __init__(
        self, gram: Gram, y: np.ndarray, w: np.ndarray, lam: float, b: np.ndarray, status: np.ndarray | None = None
    ):
        super().__init__(gram, y, w)
        self.screening = Screening(self.K, y, FRESH_EVERY)
        self._largest = float(np.abs(np.diagonal(self.K)).max())
        self._unit_error = 1e-16 * self._largest  # rounding error of a decision value, for each unit of coefficients
        self._age = FRESH_EVERY  # events since the lines were solved for
        self.u, self.v, self.u0, self.v0 = np.empty(0), np.empty(0), 0.0, 0.0
        # Where the backup was last called, and how far it went.
        self._last_backup, self._backup_step = np.inf, BACKUP_STEP
        self._largest_rounding = 0.0  # that of the steepest lines since they were last solved for
        self.capped, self._n_capped = 0.0, 0  # sum and number of the b_L
        # Where g was last summed, and what rounding left in it.
        self._bound_contribution_lam, self._rounding = np.inf, 0.0
        self._place(lam, b, status)

    @property
    def elbow_size(self) -> int:
        """Number of points in the elbow."""
        return self.system.size

    def _place(self, lam: float, b: np.ndarray, status: np.ndarray | None = None) -> None:
        """Begin at lam with nearly optimal scaled coefficients, and their sets if an engine was here before.

        Where it stopped points are on the boundary of their sets, and the coefficients alone do not tell on which side.
        """
        self.lam, self.b = lam, b.copy()  # the elbow's are stale until ``_update_elbow_coefficients``
        self.system = DenseFreeSystem(self.K)
        self.status = sets_of(self.y * b, self.w)
        if status is not None:
            self.status[:] = status
            self.b[self.status == RIGHT], is_capped = 0.0, self.status == LEFT
            self.b[is_capped] = (self.y * self.w)[is_capped]
        self._passed: Segment | None = None  # the last segment of some length
        self._degenerate_steps = 0  # transitions without a change of lam
        try:
            self._build_elbow()
            self._sum_bound_contribution()
            if status is None or not self._goes_on():
                self._make_optimal()
        except limits.Exceeded:
            raise NotStarted(self.b / lam) from None
        self.transitions.clear()  # what brought us to the start is no event of the path

    # Many events, one event.

    def steps(self, lam_end: float, most: int) -> list[Step]:
        """Pass ordinary events in a compiled loop; where the next one is not, make one step."""
        made = []
        if self._degenerate_steps == 0 and 0 < self._age < FRESH_EVERY:
            made = self._pass_ordinary(
                lam_end, min(most, REFRESH_EVERY - self.counts.events % REFRESH_EVERY, FRESH_EVERY)
            )
        return made or super().steps(lam_end, most)

    def _pass_ordinary(self, lam_end: float, most: int) -> list[Step]:
        system, screening = self.system, self.screening
        log, now = pass_ordinary(
            lam_end, most, PointArrays(self.y, self.w, self.status, self.b, self.g),
            ElbowFactor(self.K, system._points, system._factor, system._forward_ones, system.tau), screening.record(),
            Lines(
                self.lam, self.u, self.v, self.u0, self.v0, system.size, self._age, self._largest_rounding, self.capped,
                self._n_capped, *screening.progress(),
            ),
            Scale(self._largest, self._unit_error, self._rounding, 0.5 * self._bound_contribution_lam),
        )  # fmt: skip
        if len(log.moves) == 0:
            return []
        (
            self.lam, self.u, self.v, self.u0, self.v0, system.size, self._age, self._largest_rounding, self.capped,
            self._n_capped, *progress,
        ) = now  # fmt: skip
        screening.take(len(log.moves), *progress)
        self.counts.events += len(log.moves)
        self.counts.largest_elbow = max(self.counts.largest_elbow, int(np.diff(log.edges).max()))
        made = steps_of(log)
        self._passed = made[-1].segment
        self._refresh()
        return made

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """Go to the next event, or to ``lam_end``; return the segment passed and where it ends."""
        if self._degenerate_steps > MOST_DEGENERATE:
            return self._back_up(lam_end)
        if self._degenerate_steps % PATIENCE == PATIENCE - 1:
            segment = self.segment()
            self._resolve_tie()
            return segment, self.lam
        event = self._next_event(lam_end)
        is_long = event.lam < LONG * self.lam
        if is_long or not self.screening.is_safe(event.displacement):
            self._solve_lines(exactly=is_long)
            event = self._next_event(lam_end)
            is_long = event.lam < LONG * self.lam  # other lines may meet a point sooner
        if self._age == 0:  # all have just been evaluated
            self.screening.screen(self.lam, event.displacement)
        segment = self._lines()
        if event.outside > (0.0 if is_long else OUTSIDE) and self._passed is not None:
            if is_long:  # what is not exact in the line from before must not reach far
                event = _shortened(event, self.lam)
            segment = self._continued(segment, event.lam)
        if event.lam < self.lam:
            self._passed = segment
        self._move_to(event.lam, event.displacement)
        if event.point >= 0:
            self.counts.events += 1
            try:
                if event.position >= 0:
                    self._leave(event.position, event.target)
                else:
                    self._enter(event.point)
            except FloatingPointError:
                self._degenerate_steps = MOST_DEGENERATE + 1  # solve anew, further on
            self._refresh()
        return segment, self.lam

    def _refresh(self) -> None:
        """Sum the decision values that the capped points make afresh, if it is time to."""
        if self.counts.events % REFRESH_EVERY == 0 or self.lam < 0.5 * self._bound_contribution_lam:
            self._sum_bound_contribution()

    def _continued(self, segment: Segment, end: float) -> Segment:
        """Return the line to the end of a segment from where the one before has ended.

        An event found a little late, by rounding, makes new lines begin outside the box, though they are right further on.
        """
        assert self._passed is not None
        E, b = segment.points, self.b.copy()
        b[self._passed.points] = self._passed.coefficients(self.lam)
        before = self.y[E] * np.clip(self.y[E] * b[E], 0.0, self.w[E])
        bias = self._passed.bias(self.lam)
        return segment_between(E, self.lam, end, before, segment.coefficients(end), bias, segment.bias(end))

    def _back_up(self, lam_end: float) -> tuple[Segment, float]:
        """Leave a circle of ties: solve anew a little further on."""
        warnings.warn(
            f"The path met a tie at C={1 / self.lam:g} that it could not resolve; it was solved anew a little further on.",
            RuntimeWarning,
            stacklevel=5,
        )
        since, before, bias = self.lam, self.status, self.segment().bias(self.lam)
        self._update_elbow_coefficients()
        b = self.b
        # Where the last one has led to the next, farther every time: few of them get over any number of ties.
        is_near = self._last_backup - since < 10.0 * self._backup_step * since
        self._backup_step = min(2.0 * self._backup_step, 0.1) if is_near else BACKUP_STEP
        self._last_backup = since
        lam = max(since * (1.0 - self._backup_step), lam_end)
        self._place(lam, self.solve_at(lam, b, START).beta * lam)
        self.record(before)
        self.counts.loop_backups += 1
        moved = np.flatnonzero((b != self.b) | (before == ELBOW))
        return segment_between(moved, since, lam, b[moved], self.b[moved], bias, self.segment().bias(lam)), lam

    def segment(self) -> Segment:
        """Return the lines of the elbow, solved for afresh if need be."""
        if self._age >= FRESH_EVERY or not self._lines_hold(*line_residual(self.lam, *self._now())):
            self._solve_lines()
        return self._lines()

    def current_solution(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the elbow, its b, and the scaled bias, at the present lam."""
        segment = self.segment()
        return segment.points, segment.coefficients(self.lam), segment.bias(self.lam)

    def _lines(self) -> Segment:
        return Segment(self.system.points.copy(), self.u, self.v, self.u0, self.v0)

    def _now(self) -> tuple[np.ndarray, ...]:
        """Return what the lines are, for compiled code: labels, the elbow's lines, and those of the candidates."""
        some = self.screening
        return self.y, self.system.points, self.u, self.v, some.points, some.position, some.p, some.q

    def _lines_hold(self, left_over: float, size: float) -> bool:
        """Whether the lines, updated many times, still solve the elbow's system, and have not been much steeper in between."""
        rounding, tolerance = self._unit_error * size, self._tolerance()
        self._largest_rounding = max(self._largest_rounding, rounding)
        return left_over <= tolerance and self._largest_rounding <= ROUGH * rounding + tolerance

    def _invalidate_lines(self) -> None:
        """Let them be solved for afresh before they are used again."""
        self._age = FRESH_EVERY

    def _tolerance(self) -> float:
        return LEFT_OVER * self.lam + self._rounding

    def _solve_lines(self, *, exactly: bool = False) -> None:
        """Solve the elbow system for both coefficients of lam, with refinement."""
        E, screening, totals = self.system.points, self.screening, np.array([-self.capped, 0.0])
        x, bias = self.system.solve(np.stack([-self.g[E], self.y[E]]), totals)
        screening.evaluate_all(_segment(E, x, bias), self.g)
        # On the elbow p is zero and q is y: what they are instead refines the solution.
        left_over = np.stack([-screening.p[E], self.y[E] - screening.q[E]])
        correction, shift = self.system.solve(left_over, totals - x.sum(axis=1))
        x, bias = x + correction, bias + shift
        is_unsure = (np.abs(correction[0] + self.lam * correction[1]) / self.w[E]).max() > UNSURE
        if self._has_one_class():
            x[1], bias[1] = 0.0, self.y[E[0]]
        if exactly or is_unsure:
            x, bias = self._refine(x, bias, totals, with_bound_contribution=exactly)
        visible = np.abs(left_over[0]).max() + self.lam * np.abs(left_over[1]).max() > 0.1 * self._tolerance()
        if exactly or is_unsure or visible:
            screening.evaluate_all(_segment(E, x, bias), self.g)
        self.u, self.v, self.u0, self.v0 = x[0], x[1], float(bias[0]), float(bias[1])
        self._age, self._largest_rounding = (
            0,
            self._unit_error * float(np.abs(self.u).sum() + self.lam * np.abs(self.v).sum()),
        )
        if not self._n_capped:
            self._clear_margins()

    def _refine(
        self, x: np.ndarray, bias: np.ndarray, totals: np.ndarray, *, with_bound_contribution: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Refine by what is left over in twice the precision, where less would be all rounding.

        ``with_bound_contribution``: the bound contribution is summed so as well.
        """
        E = self.system.points
        rhs, lost = np.stack([-self.g[E], self.y[E]]), np.zeros((2, E.size))
        if with_bound_contribution:
            capped = np.flatnonzero(self.status == LEFT)
            at_caps, rhs[0] = self.y[capped] * self.w[capped], 0.0
            add_exactly(self.K, capped, -at_caps, E, rhs[0], lost[0])
            totals = np.array([-math.fsum(at_caps), 0.0])
        for _ in range(2):
            left_over, error = rhs.copy(), lost.copy()
            for k in range(2):
                add_exactly(self.K, E, -x[k], E, left_over[k], error[k])
            correction, shift = self.system.solve((left_over - bias[:, None]) + error, totals - x.sum(axis=1))
            x, bias = x + correction, bias + shift
        if self._has_one_class():
            x[1], bias[1] = 0.0, self.y[E[0]]
        return x, bias

    def _has_one_class(self) -> bool:
        """Whether the elbow is of one class: then v is zero and the bias has slope y in lam; rounding must not move b."""
        label = self.y[self.system.points]
        return bool((label == label[0]).all())

    def _clear_margins(self) -> None:
        """Stretch the last segment by about its rounding error, so that every margin is met however large C becomes.

        Without capped points F = lam q, and a margin short by 1e-14 costs C times that at each of the points on it.  Rounding
        v changes margins anew every time: a few lengths are tried.
        """
        is_near, stretch = self.y * self.screening.q < 1.0 + NEAR, 1.0
        is_near[self.system.points] = True  # whatever rounding made of their margins: there are some of either class
        near = np.flatnonzero(is_near)
        for _ in range(LENGTHS):
            v = with_sum_zero(self.v * stretch)
            least, most = self._bias_between(v, near)
            short = 0.5 * (least - most) + CLEAR * (1.0 + abs(least))
            if short > SHORT:
                return
            if short <= 0.0:
                self.v, self.v0 = v, 0.5 * (least + most)
                self.screening.q *= stretch
                return
            stretch += max(0.5 * short, CLEAR)

    def _bias_between(self, v: np.ndarray, near: np.ndarray) -> tuple[float, float]:
        """Return which biases meet the margins of the points near them, by the kernel matrix and, if not too dear, the data."""
        E, beta, (high, low) = self.system.points, np.zeros(self.y.size), np.zeros((2, near.size))
        add_exactly(self.K, E, v, near, high, low)
        y = self.y[near]
        margin = y * (high + low)
        if self.gram.precise_work(E.size, near.size) <= MOST_COORDINATES:
            beta[E] = v
            product = self.gram.precise_dot(beta, near)
            margin = np.minimum(margin, y * (product.high + product.low) - product.error)
        short = 1.0 - margin
        return float(short[y > 0].max(initial=-np.inf)), float(-short[y < 0].max(initial=-np.inf))

    def _next_event(self, lam_end: float) -> NextEvent:
        """Find the next event; of those that happen at once, the one that keeps the elbow farthest from dependent.

        Where very many points tie, as on a grid, any other choice leads to elbows that are singular but for rounding.
        """
        if self._age >= FRESH_EVERY:
            self._solve_lines()
        found = self._ratio_test(lam_end)
        if not self._lines_hold(*found[:2]) and self._age:
            self._solve_lines()
            found = self._ratio_test(lam_end)
        _, _, turned, lam, position, index, second, outside = found
        width = TIE * self.lam
        if second >= lam - width:
            # lam stays that of the first: beyond it a coefficient would be outside its box.
            position, index = self._choose_among_tied(lam - width)
        if index >= 0 and lam > (1.0 - TIE) * self.lam:
            lam = self.lam
        target = ELBOW
        if position >= 0:
            target = RIGHT if self.y[index] * self.v[position] > 0 else LEFT
        t = self.lam - lam
        displacement = Displacement(t, t * turned, t * abs(self.v0 - self.screening.line.v0))
        return NextEvent(lam, index, position, target, displacement, outside)

    def _ratio_test(self, lam_end: float) -> tuple[float, float, float, float, int, int, float, float]:
        line = self.screening.line
        return ratio_test(lam_end, self.lam, self.w, self.status, self._largest, line.points, line.v, *self._now())

    def _choose_among_tied(self, near: float) -> tuple[int, int]:
        position, index, entering = tied_candidates(near, self.lam, self.w, self.status, self._largest, *self._now())
        if position < 0:
            index = int(entering[np.argmax(self.system.distances(entering))])
        return position, index

    def _move_to(self, lam: float, displacement: Displacement) -> None:
        self._degenerate_steps = self._degenerate_steps + 1 if lam == self.lam else 0
        self.lam = lam
        self.screening.accumulate(displacement)

    def _update_elbow_coefficients(self) -> None:
        """Bring the elbow's b to the present lam; as long as its lines hold, they are not needed."""
        self.b[self.system.points] = self.u + self.lam * self.v

    # Changes of the sets.

    def _set(self, index: int, target: int) -> None:
        """Enter a point in a set, and update the bound contribution."""
        origin = int(self.status[index])
        at_cap = self.y[index] * self.w[index]
        sign = int(target == LEFT) - int(origin == LEFT)
        if sign:
            add_row(self.K, index, sign * at_cap, self.g)
            self.capped += sign * at_cap
            self._n_capped += sign
            if not self._n_capped:  # from here on b is in proportion to lam: what rounding left must not stay
                self._clear_bound_contribution()
        if target != ELBOW:
            self.b[index] = at_cap if target == LEFT else 0.0
        self.status[index] = target
        self.transitions.append(Transition(self.lam, index, origin, target))

    def _leave(self, position: int, target: int) -> None:
        index, response = int(self.system.points[position]), self.system.remove_with_response(position)
        E = self.system.points
        if self._age < FRESH_EVERY and E.size:
            bound = self.y[index] * self.w[index] if target == LEFT else 0.0
            self._take(response.d0, *self.screening.leave(E, response, index, position, bound, self.u, self.v))
        else:
            self._invalidate_lines()
        self._set(index, target)

    def _join(self, index: int) -> bool:
        """Let a point into the elbow, unless it depends on it."""
        response = self.system.append(index)
        if response is None:
            return False
        E = self.system.points[:-1]
        if self._age < FRESH_EVERY and E.size:
            self._take(response.d0, *self.screening.join(E, response, index, self.b[index], self.u, self.v))
        else:
            self._invalidate_lines()
        return True

    def _take(self, d0: float, u: np.ndarray, v: np.ndarray, du: float, dv: float) -> None:
        """Take over the elbow's new lines, after one point's has changed by du + lam dv."""
        self._age += 1
        self.u, self.v = u, v
        self.u0, self.v0 = self.u0 + du * d0, self.v0 + dv * d0

    def _enter(self, index: int) -> None:
        """Let a point into the elbow; if it depends on it, in exchange for one of its points."""
        if self._join(index):
            self._set(index, ELBOW)
            return
        self._update_elbow_coefficients()
        bound, inward, moved = self.b[index], self.y[index] if self.status[index] == RIGHT else -self.y[index], 0.0
        for _ in range(self.system.size + 1):  # each time round the elbow loses a point
            k, part = self._exchange(index, inward, self.w[index] - moved)
            if k < 0:  # it got to its other bound before any of the elbow was stopped
                self._set(index, LEFT if self.status[index] == RIGHT else RIGHT)
                self._invalidate_lines()
                return
            moved += part
            self._leave(k, self._nearer_bound(k))
            if self._join(index):
                break
        else:
            raise FloatingPointError("a point depends on the elbow whatever leaves it")
        self.b[index] = bound + moved * inward
        self._set(index, ELBOW)

    def _exchange(self, index: int, way: float, room: float) -> tuple[int, float]:
        """Let the elbow answer a move of a dependent point by at most ``room``, so that no decision value changes.

        Returns the position of the point that stops it, -1 if none does, and how far it got.
        """
        E, d = self.system.points, way * self.system.dependence(index)
        rate = self.y[E] * d
        rate[np.abs(rate) <= NOISE * np.abs(rate).max()] = 0.0
        k, stop = _harris_ratio_test(self.y[E] * self.b[E], rate, self.w[E])
        part = min(stop, room)
        self.b[E] += part * d
        return (k, part) if stop < room else (-1, part)

    def _nearer_bound(self, position: int) -> int:
        i = self.system.points[position]
        return LEFT if 2.0 * self.y[i] * self.b[i] > self.w[i] else RIGHT

    def _resolve_tie(self) -> None:
        """Put all tied points at once where they belong as lam falls, and begin with a new elbow."""
        self._solve_lines()  # which evaluates all points
        self._update_elbow_coefficients()
        E, a, screening = self.system.points, self.y * self.b, self.screening
        margin = self.y * (screening.p + self.lam * screening.q) - self.lam
        inside = np.minimum(a, self.w - a) > TIED * self.w
        inner = E[inside[E]]
        is_tied = (self.status == ELBOW) & ~inside | (self.status != ELBOW) & (np.abs(margin) <= TIED * self.lam)
        tied = np.flatnonzero(is_tied)
        self._degenerate_steps += 1
        self.counts.events += 1
        if not tied.size:
            return
        is_low = 2.0 * a[tied] < self.w[tied]
        entering = entering_points(self.K, self.y, inner, tied, is_low == (self.y[tied] > 0))
        self.system = DenseFreeSystem(self.K)
        for i in (*inner, *entering):
            self.system.append(int(i))
        target = np.where(is_low, RIGHT, LEFT)
        target[np.isin(tied, self.system.points)] = ELBOW
        for i, new in zip(tied.tolist(), target.tolist(), strict=True):
            if self.status[i] != new:
                self._set(i, new)
        self._invalidate_lines()

    # The start: from nearly optimal coefficients to an optimal elbow.

    def _build_elbow(self) -> None:
        """Let the free points into the elbow; one that depends on it falls to zero, or takes another's place."""
        free = np.flatnonzero(self.status == ELBOW)
        self.g, self.capped, self._n_capped = np.zeros(self.y.size), 0.0, 0
        self.status[free] = RIGHT  # until each has found its place
        room = np.minimum(self.y * self.b, self.w - self.y * self.b)
        for i in free[np.argsort(-room[free])].tolist():
            limits.check()
            # Each time round the elbow loses a point, and none depends on an empty one.
            while self.system.append(i) is None:
                k, part = self._exchange(i, -self.y[i], self.y[i] * self.b[i])
                self.b[i] -= part * self.y[i]
                if k < 0:
                    self.b[i] = 0.0
                    break
                j, target = int(self.system.points[k]), self._nearer_bound(k)
                self.system.remove(k)
                self.status[j], self.b[j] = target, self.y[j] * self.w[j] if target == LEFT else 0.0
            else:
                self.status[i] = ELBOW

    def _sum_bound_contribution(self) -> None:
        left = self.status == LEFT
        at_caps = self.y[left] * self.w[left]
        self.g = weighted_rows(self.K, np.flatnonzero(left), at_caps)
        self.capped, self._n_capped = float(at_caps.sum()), int(left.sum())
        self._bound_contribution_lam = self.lam
        self._rounding = 1e-14 * float(np.abs(self.g).max())
        self._invalidate_lines()

    def _clear_bound_contribution(self) -> None:
        self.g[:] = 0.0
        self.capped = 0.0
        self._invalidate_lines()

    def _make_optimal(self) -> None:
        """Active-set steps at fixed lam: towards the elbow's solution as far as the box allows, then the worst violator."""
        if not self.system.size:
            self._seed()
        for _ in range(20 * self.y.size + 100):
            limits.check()
            segment = self.segment()
            E, solved = segment.points, segment.coefficients(self.lam)
            a, change = self.y[E] * self.b[E], self.y[E] * (solved - self.b[E])
            k, part = _harris_ratio_test(a, change, self.w[E])
            if part < 1.0 and self.system.size > 1:
                self.b[E] += part * (solved - self.b[E])
                self._leave(k, RIGHT if change[k] < 0 else LEFT)
                continue
            self.b[E] = solved
            h = self.y * (self.screening.p + self.lam * self.screening.q) - self.lam
            violations = np.where(self.status == RIGHT, -h, np.where(self.status == LEFT, h, 0.0))
            worst = int(np.argmax(violations))
            # With one class on the margin nothing but the bias depends on lam.
            size = max(0.0 if self._has_one_class() else self.lam, float(np.abs(self.screening.p).max()))
            if violations[worst] <= 1e-11 * size + 10.0 * self._rounding:
                return
            try:
                self._enter(worst)
            except FloatingPointError:
                break
        self.counts.kkt_backups += 1
        warnings.warn(
            f"No exactly optimal free set was found at C={1 / self.lam:g}, so the path goes on from a nearly optimal one. "
            "path.largest_gap_ tells what that costs.",
            RuntimeWarning,
            stacklevel=2,
        )

    def _goes_on(self) -> bool:
        """Take over the elbow's solution, if every point is in its set but for rounding."""
        if not self.system.size:
            return False
        segment = self.segment()
        E, a = segment.points, self.y[segment.points] * segment.coefficients(self.lam)
        h = self.y * (self.screening.p + self.lam * self.screening.q) - self.lam
        violations = np.where(self.status == RIGHT, -h, np.where(self.status == LEFT, h, 0.0))
        is_inside = (np.maximum(-a, a - self.w[E]) <= TIED * self.w[E]).all()
        if not is_inside or violations.max() > TIED * self.lam:
            return False
        self.b[E] = self.y[E] * np.clip(a, 0.0, self.w[E])
        # The next segment begins where the last one has ended, inside the box.
        self._passed = Segment(E, self.b[E], np.zeros(E.size), segment.bias(self.lam), 0.0)
        return True

    def _seed(self) -> None:
        """With every point at a bound the bias has an interval: put a point that ends it into the elbow."""
        rising = ((self.status == RIGHT) & (self.y > 0)) | ((self.status == LEFT) & (self.y < 0))
        bounds = self.lam * self.y - self.g
        ends = np.where(rising, bounds, -np.inf)
        self.system.append(int(np.argmax(ends)))
        self._set(int(np.argmax(ends)), ELBOW)


def _shortened(event: NextEvent, lam: float) -> NextEvent:
    """Return a part of the way to an event, on which no point changes sets."""
    part = 0.25 * lam / (lam - event.lam)
    return NextEvent(0.75 * lam, -1, -1, ELBOW, Displacement(*(part * x for x in event.displacement)), event.outside)


def _segment(E: np.ndarray, x: np.ndarray, bias: np.ndarray) -> Segment:
    return Segment(E.copy(), x[0], x[1], float(bias[0]), float(bias[1]))


def _harris_ratio_test(a: np.ndarray, rate: np.ndarray, w: np.ndarray) -> tuple[int, float]:
    """Return which y b = a is the first to be at 0 or w at these rates, and how far it gets; (-1, inf) if none moves.

    Of those that stop at once it is the fastest: the slower a coefficient, the less is known of where it stops, and the nearer
    to singular is the system in which another point takes its place (Harris, 1973).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        speed, room = np.abs(rate), np.where(rate < 0, a, w - a)
        stop, latest = np.maximum(room / speed, 0.0), (np.maximum(room, 0.0) + TIE * w) / speed
    stop[speed == 0], latest[speed == 0] = np.inf, np.inf
    if not np.isfinite(latest.min(initial=np.inf)):
        return -1, np.inf
    k = int(np.argmax(np.where(stop <= latest.min(), speed, -1.0)))
    return k, float(stop[k])
