"""Engine "single": one transition at a time (Sentelle, Anagnostopoulos and Georgiopoulos, 2016), segments solved directly.

Symbols: as in ``engine``.  The next event is where the line of a point, in the elbow or outside it, reaches the end of its set
(``lines``).  There it changes ``sets``, and all lines change with it.
The elbow stays affinely independent: a point that depends on it is exchanged for one of its points, along the direction that
moves no decision value; and the last point of the elbow stays, even at a bound, so that it is never empty.
``tie`` resolves what one exchange after another does not.
"""

import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import validation
from zerogap.compiled import NO_POINT
from zerogap.gram import Gram
from zerogap.path.engine import (
    ELBOW,
    LEFT,
    RIGHT,
    Engine,
    Log,
    NotStarted,
    Segment,
    Step,
    Transition,
    balanced,
    optimum,
    segment_between,
)
from zerogap.path.family import Family
from zerogap.path.lines import Lines
from zerogap.path.origin import WithOrigin, with_coefficient, without
from zerogap.path.rows import weighted_rows
from zerogap.path.screening import Displacement
from zerogap.path.sets import Sets
from zerogap.path.start import optimal_elbow
from zerogap.path.tie import entering_points
from zerogap.path.tolerances import (
    BACKUP_NEAR,
    BACKUP_STEP,
    CAPPED,
    CLEAR,
    LARGEST_BACKUP,
    LONG,
    MAX_DEGENERATE,
    NEARER,
    NOISE,
    OUTSIDE,
    REFRESH_EVERY,
    SAME_LAM,
    SHORTENED,
    START,
    SUM_ERROR,
    TIE,
    TIED,
    TRANSITIONS_PER_TIE,
)
from zerogap.solvers import SMO

PAIRS = SMO(shrinking=False)  # the matrix is there: to take parts of it takes longer than pairs of all points
NOBODY = np.zeros(0, dtype=np.int64)


class NextEvent(NamedTuple):
    """A point reaches the end of its set."""

    lam: float
    point: int  # NO_POINT: none does, before the end of the path
    position: int  # in the elbow, if it leaves that; else NO_POINT
    target: int
    displacement: Displacement
    outside: float  # how far the lines begin outside the box
    tied: np.ndarray = NOBODY  # all points that get to their margins there, if there are several


@dataclass(frozen=True)
class Single:
    """Engine "single": one transition at a time; needs no options.

    Examples
    --------
    >>> from zerogap import svm_path
    >>> from zerogap.path import Single
    >>> svm_path([[0.0], [1.0], [3.0]], [-1, -1, 1], C_max=10.0, engine=Single()).status
    'complete'
    """

    def start(
        self,
        gram: Gram,
        family: Family,
        lam: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> "SingleEngine":
        """Return the engine at lam."""
        if beta is None and family.is_hinge and family.has_bias:
            alpha = family.scale(lam) * balanced(family.y, family.w)
            if float((alpha * gram.diagonal).max()) <= CAPPED:
                beta = family.y * alpha
        solution = optimum(gram, family, lam, START, beta, PAIRS)
        engine = SingleEngine if family.has_bias else FixedBiasEngine
        return engine(gram, family, lam, solution.beta / family.scale(lam), status)

    def __str__(self) -> str:
        return "single"


class SingleEngine(Engine):
    """The state between two transitions."""

    n_hidden = 0  # points of the elbow that are none of the data

    def __init__(self, gram: Gram, family: Family, lam: float, b: np.ndarray, status: np.ndarray | None = None):
        super().__init__(gram, family)
        self.sets = Sets(self.K, family, self.status)
        self.y, self.low = self.sets.y, self.sets.low  # y: the sides as they are now
        self.lines = Lines(gram, self.sets)
        self._last_backup, self._backup_step = np.inf, BACKUP_STEP  # where it was called, and how far it went
        self._is_special = False  # whether the next event is known not to be an ordinary one
        self._place(lam, b, status)

    @property
    def elbow_size(self) -> int:
        """Number of points in the elbow."""
        return self.lines.points.size - self.n_hidden

    def _place(self, lam: float, b: np.ndarray, status: np.ndarray | None = None) -> None:
        """Begin at lam with nearly optimal scaled coefficients, and their sets if an engine was here before.

        Where it stopped points are on the boundary of their sets, and the coefficients alone do not tell on which side.
        """
        self.lam, self._degenerate_steps = lam, 0  # transitions without a change of lam
        if status is None or not self._goes_on(b, status):
            self._start(b)
        # The first segment begins here, inside the box.
        E, bias = self.lines.points.copy(), self.segment().bias(lam)
        self._passed = Segment(E, self.sets.b[E], np.zeros(E.size), bias, 0.0)  # the last segment of some length

    def _start(self, b: np.ndarray) -> None:
        """Begin at the optimum."""
        start = optimal_elbow(self.gram, self.family, self.lam, b)
        self.sets.place(start.b, start.status)
        self.lines.adopt(start.system)
        self._sum_bound_contribution()
        if not start.is_optimal:
            warnings.warn(
                f"No exactly optimal free set was found at {self.family.words(self.lam)}, so the path goes on from a nearly "
                "optimal one. path.largest_gap_ tells what that costs.",
                RuntimeWarning,
                stacklevel=validation.callers_level(),
            )

    def _goes_on(self, b: np.ndarray, status: np.ndarray) -> bool:
        """Take over sets and their elbow's solution, if every point is in its set but for rounding."""
        sets, lines = self.sets, self.lines
        sets.place(b, status)
        lines.clear()
        elbow = np.flatnonzero(self.status == ELBOW)
        if not elbow.size or any(lines.system.append(int(i)) is None for i in elbow):
            return False
        self._sum_bound_contribution()
        segment = self.segment()
        E, a = segment.points, self.y[segment.points] * segment.coefficients(self.lam)
        excess = self._excess()
        violations = np.where(self.status == RIGHT, -excess, np.where(self.status == LEFT, excess, 0.0))
        low, w = self.low[E], self.w[E]
        is_inside = (np.maximum(low - a, a - w) <= TIED * (w - low)).all()
        sets.b[E] = self._inside(E, self.y[E] * a)
        return bool(is_inside and violations.max() <= TIED * self.lam)

    def _excess(self) -> np.ndarray:
        """Return by how much every point is beyond its margin, inside a tube beyond the nearer one; all must be evaluated."""
        F, sets = self.lines.decision_values(self.lam), self.sets
        sets.choose_sides(self.lam, F)
        return sets.y * (F - sets.margins(self.lam))

    def be_exact_until(self, lam: float) -> None:
        """Let lines be exact at every event down to lam."""
        self.lines.exact_until = lam
        self.lines.invalidate()

    def signed_status(self) -> np.ndarray:
        """Return the set of every point, negative on a side that is not its own."""
        return self.sets.signed

    def segment(self) -> Segment:
        """Return the lines of the elbow, solved for afresh if need be."""
        self.lines.ensure(self.lam)
        return self.lines.segment()

    def current_solution(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the elbow, its b, and the scaled bias, at the present lam."""
        segment = self.segment()
        return segment.points, segment.coefficients(self.lam), segment.bias(self.lam)

    # Many events, one event.

    def steps(self, lam_end: float, max_events: int) -> list[Step] | Log:
        """Pass ordinary events in a compiled loop; where the next one is not, make one step."""
        if self._degenerate_steps > MAX_DEGENERATE or self._last_one_is_outside():
            return self._jump(lam_end)
        made = None
        if self._degenerate_steps == 0 and not self._is_special:
            most = min(max_events, REFRESH_EVERY - self.counts.events % REFRESH_EVERY)
            if self.lines.is_stale and not self.family.is_hinge:  # else the compiled loop solves for them
                self._renew(lam_end)
            if self.lam > self.lines.exact_until:
                self.lines.invalidate()
            # Where lines have to be exact at every event, each is a step of its own.
            elif not self.lines.is_fine:
                made = self._pass_ordinary(lam_end, most)
        if made is not None:
            return made
        self._is_special = False
        return super().steps(lam_end, max_events)

    def _renew(self, lam_end: float) -> None:
        """Solve for the lines, and screen for as long as they are to last; ``step`` does so itself where they are long."""
        event = self._next_event(lam_end)
        if event.lam >= LONG * self.lam:
            self.lines.screening.screen(self.lam, event.displacement)

    def _pass_ordinary(self, lam_end: float, max_events: int) -> Log | None:
        made, self.lam, self._is_special = self.lines.pass_ordinary(self.lam, lam_end, max_events)
        if made is not None:
            self.counts.events += made.n_segments
            largest = int((made.edges[1:] - made.edges[:-1]).max()) - self.n_hidden
            self.counts.largest_elbow = max(self.counts.largest_elbow, largest)
            self._passed = made.segment(made.n_segments - 1)
            self._refresh()
        return made

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """Go to the next event, or to ``lam_end``; return the segment passed and where it ends."""
        if self._degenerate_steps % TRANSITIONS_PER_TIE == TRANSITIONS_PER_TIE - 1:
            segment = self.segment()
            self._resolve_tie()
            return segment, self.lam
        lines, screening = self.lines, self.lines.screening
        event = self._next_event(lam_end)
        is_long = event.lam < LONG * self.lam
        is_rough = is_long and not (lines.is_exact and lines.age == 0)
        if is_rough or not screening.is_safe(event.displacement):
            lines.solve(self.lam, exactly=is_long)
            event = self._next_event(lam_end)
            is_long = event.lam < LONG * self.lam  # other lines may meet a point sooner
        if lines.age == 0:  # all have just been evaluated
            screening.screen(self.lam, event.displacement)
        segment = lines.segment()
        is_fine, before = lines.is_fine and not is_long and event.lam < self.lam, self._passed
        outside = event.outside
        if is_fine:
            segment = lines.between(self.lam, event.lam, event.position, event.target)
            outside = self._outside(segment)
            # Behind exchanges the line before has ended at another solution, and the new one is the more exact.
            if self._degenerate_steps and outside <= CLEAR:
                before = segment
        if outside > (0.0 if is_fine or is_long else lines.outside):
            if is_long:  # what is not exact in the line from before must not reach far
                event = _shortened(event, self.lam)
            segment = self._continued(segment, event.lam, before)
        if event.lam < self.lam:
            self._passed = segment
        self._move_to(event.lam, event.displacement)
        if event.point != NO_POINT:
            self.counts.events += 1
            try:
                if event.position != NO_POINT:
                    self._leave(event.position, event.target)
                    if not self.lines.points.size:
                        self._refill()
                elif not self._enter_together(event.tied):
                    self._enter(event.point)
            except FloatingPointError:
                self._degenerate_steps = MAX_DEGENERATE + 1  # solve anew, further on
            self._refresh()
        return segment, self.lam

    def _last_one_is_outside(self) -> bool:
        """Whether the sum asks more of a point alone in the elbow than its box has, so that no segment is right.

        So it is where kernel values times caps are less than events are told apart by.
        """
        if self.lines.points.size != 1 or self.family.total1 != 0.0:
            return False
        i, b = int(self.lines.points[0]), self.family.total0 - self.sets.capped_sum
        a, width = self.y[i] * b - self.low[i], self.w[i] - self.low[i]
        return bool(max(-a, a - width) > TIED * width)

    def _next_event(self, lam_end: float) -> NextEvent:
        """Find the next event; of those that happen at once, the one that keeps the elbow farthest from dependent.

        Where very many points tie, as on a grid, any other choice leads to elbows that are singular but for rounding.
        """
        lines = self.lines
        first = lines.first_end(self.lam, lam_end)
        lam, position, point, tied = first.lam, first.position, first.point, NOBODY
        # Relative to lam: the way there may be long.  Where one made early would be seen, only those at one lam tie.
        for width in (TIE * lam, SAME_LAM * lam):
            if first.second < lam - width:
                break
            # lam stays that of the first, or of the first that leaves: beyond it a coefficient would be outside its box.
            k, i, others, leaves_at = lines.choose_among_tied(lam - width, self.lam)
            made_at = lam if k == NO_POINT else min(lam, leaves_at)
            if width == SAME_LAM * lam or not self._is_early(made_at, k, i):
                lam, position, point, tied = made_at, k, i, others
                break
        is_near, is_here = lam > (1.0 - TIE) * self.lam, lam > (1.0 - SAME_LAM) * self.lam
        if point != NO_POINT and (is_here or (is_near and not self._is_early(self.lam, position, point))):
            # What is left of the way is rounding.  As no way at all it counts among the degenerate steps, so that a circle of
            # ties is noticed, and leaves no segment whose two ends differ by rounding alone.
            lam = self.lam
        target = ELBOW
        if position != NO_POINT:
            target = RIGHT if self.y[point] * lines.v[position] > 0 else LEFT
        t = self.lam - lam
        displacement = Displacement(t, t * first.departure, t * abs(lines.v0 - lines.screening.reference.v0))
        return NextEvent(lam, point, position, target, displacement, first.outside, tied)

    def _is_early(self, lam: float, position: int, point: int) -> bool:
        """Whether it would be seen in the gap if an event were made at lam already, together with another.

        Over C the objective is far larger than what that costs.  Over eps it falls to zero, and a box may be so small that its
        coefficient crosses a visible part of it where lam hardly changes.
        """
        lines, t = self.lines, lam - self.sets.anchor
        if self.family.is_over_C or point == NO_POINT:
            return False
        if position != NO_POINT:
            a, low, w = self.y[point] * (lines.u[position] + t * lines.v[position]), self.low[point], self.w[point]
            return bool(min(abs(a - low), abs(w - a)) > max(lines.outside, OUTSIDE) * (w - low))
        near = lines.screening.candidates
        F = near.p[near.place_of[point]] + t * near.q[near.place_of[point]]
        excess = F - (self.sets.m0[point] + t * self.sets.m1[point])
        return bool(abs(excess) > max(lines.left_over, SUM_ERROR) * lam)

    def _move_to(self, lam: float, displacement: Displacement) -> None:
        self._degenerate_steps = self._degenerate_steps + 1 if lam > (1.0 - TIE) * self.lam else 0
        self.lam = lam
        self.lines.screening.accumulate(displacement)

    def _refresh(self) -> None:
        """Sum the decision values that the capped points make afresh, if it is time to."""
        if self.sets.is_due(self.counts.events, self.lam):
            self._sum_bound_contribution()

    def _sum_bound_contribution(self) -> None:
        self.sets.sum_bound_contribution(self.lam)
        self.lines.invalidate()

    def _update_elbow_coefficients(self) -> None:
        """Bring the elbow's b to the present lam; as long as its lines hold, they are not needed."""
        lines = self.lines
        self.sets.b[lines.points] = lines.coefficients(self.lam)

    def _outside(self, segment: Segment) -> float:
        """Return how far a segment begins outside the box, as a part of it."""
        E, a = segment.points, self.y[segment.points] * segment.coefficients(self.lam)
        low, w = self.low[E], self.w[E]
        return float((np.maximum(low - a, a - w) / (w - low)).max())

    def _continued(self, segment: Segment, end: float, before: Segment) -> Segment:
        """Return the line to the end of a segment from where the one before has ended, inside the box.

        An event found a little late, by rounding, makes new lines begin outside the box, though they are right further on.
        """
        E, b = segment.points, self.sets.b.copy()
        b[before.points] = before.coefficients(self.lam)
        begin = self._inside(E, b[E])
        biases = before.bias(self.lam), segment.bias(end)
        first = self.lines.about_beginning
        return segment_between(E, self.lam, end, begin, segment.coefficients(end), *biases, about_beginning=first)

    def _inside(self, E: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Return coefficients of some points within their boxes, and on their side of zero."""
        return self.y[E] * np.clip(self.y[E] * b, self.low[E], self.w[E])

    def _jump(self, lam_end: float) -> list[Step]:
        """Leave ties that are not resolved: solve anew a little further on, and go back from there if its sets reach as far.

        They do where coefficients jump at one lam.  Else the way between is a straight line, and the proof tells what it costs.
        """
        began_at, before, bias = self.lam, self.signed_status(), self.segment().bias(self.lam)
        was_free = self.status == ELBOW
        self._update_elbow_coefficients()
        b = self.sets.b
        # Where the last one has led to the next, farther every time: few of them get over any number of ties.
        is_near = self._last_backup - began_at < BACKUP_NEAR * self._backup_step * began_at
        self._backup_step = min(2.0 * self._backup_step, LARGEST_BACKUP) if is_near else BACKUP_STEP
        self._last_backup = began_at
        for part in (*NEARER, 1.0):
            lam = max(began_at * (1.0 - part * self._backup_step), lam_end)
            self._place(lam, self._solved(lam, b))
            reaches = self._reaches(began_at)
            if reaches:
                break
        self.record(before)
        made = [t._replace(lam=began_at) for t in self.take_transitions()]
        E, end_bias = self.segment().points, self.segment().bias(lam)
        if reaches:
            segment = self.lines.between(began_at, lam, NO_POINT, ELBOW)
            begin, finish = (self._inside(E, segment.coefficients(at)) for at in (began_at, lam))
            biases = segment.bias(began_at), segment.bias(lam)
            segment = segment_between(
                E, began_at, lam, begin, finish, *biases, about_beginning=self.lines.about_beginning
            )
            self.counts.events += 1
        else:
            warnings.warn(
                f"The path met a tie at {self.family.words(began_at)} that it could not resolve; it was solved anew a little "
                "further on.",
                RuntimeWarning,
                stacklevel=validation.callers_level(),
            )
            self.counts.loop_backups += 1
            moved = np.flatnonzero((b != self.sets.b) | was_free)
            segment = segment_between(moved, began_at, lam, b[moved], self.sets.b[moved], bias, end_bias)
        none = np.zeros(0)
        return [
            Step(Segment(none.astype(np.int64), none, none, 0.0, 0.0), began_at, made),
            Step(segment, lam, []),
        ]

    def _solved(self, lam: float, b: np.ndarray) -> np.ndarray:
        """Return the scaled coefficients of a lam, solved for anew from those of one near by."""
        return self.solve_at(lam, b, START).beta / self.family.scale(lam)

    def _reaches(self, lam: float) -> bool:
        """Whether the lines, which have just been solved for, are optimal back to a larger lam."""
        segment, family = self.segment(), self.family
        E, a = segment.points, self.y[segment.points] * segment.coefficients(lam)
        low, w = self.low[E], self.w[E]
        if not (np.maximum(low - a, a - w) <= TIED * (w - low)).all():
            return False
        r = family.target0 + lam * family.target1 - self.lines.decision_values(lam)
        eps, h = family.eps(lam), self.y * r
        inside = np.abs(r) - eps if family.is_two_sided else h
        violations = np.where(self.status == RIGHT, inside, np.where(self.status == LEFT, eps - h, 0.0))
        return bool(violations.max() <= TIED * lam)

    # Changes of the sets.

    def _set(self, i: int, target: int) -> None:
        """Enter a point in a set."""
        sign = 1 if self.y[i] == self.family.y[i] else -1
        self.transitions.append(Transition(self.lam, i, sign * int(self.status[i]), sign * target))
        if self.sets.move(i, target):
            self.lines.invalidate()

    def _leave(self, position: int, target: int) -> None:
        self._set(self.lines.leave(position, target), target)

    def _enter_together(self, tied: np.ndarray) -> bool:
        """Let many tied points into the elbow at once; return whether any are in."""
        if self._degenerate_steps > 1:  # they were tried when this lam was reached
            return False
        entered = self.lines.enter_all(tied)
        for i in entered.tolist():
            self._set(i, ELBOW)
        return bool(entered.size)

    def _enter(self, index: int) -> None:
        """Let a point into the elbow; if it depends on it, in exchange for one of its points."""
        if self.lines.enter(index):
            self._set(index, ELBOW)
            return
        self._update_elbow_coefficients()
        bound, inward, moved = self.sets.b[index], self.y[index] if self.status[index] == RIGHT else -self.y[index], 0.0
        for _ in range(self.lines.points.size + 1):  # each time round the elbow loses a point
            k, part = self._exchange(index, inward, self.w[index] - self.low[index] - moved)
            if k == NO_POINT:  # it got to its other bound before any of the elbow was stopped
                self._set(index, LEFT if self.status[index] == RIGHT else RIGHT)
                self.lines.invalidate()
                self._begin_here()
                return
            moved += part
            self._leave(k, self._nearer_bound(k))
            if self.lines.enter(index):
                break
        else:
            raise FloatingPointError("a point depends on the elbow whatever leaves it")
        self.sets.b[index] = bound + moved * inward
        self._set(index, ELBOW)
        self._begin_here()

    def _begin_here(self) -> None:
        """Let the next segment begin at the coefficients as they are: at one lam, exchanges lead to another solution."""
        E = self.lines.points.copy()
        self._passed = Segment(E, self.sets.b[E], np.zeros(E.size), self._passed.bias(self.lam), 0.0)

    def _exchange(self, index: int, way: float, room: float) -> tuple[int, float]:
        """Let the elbow answer a move of a dependent point by at most ``room``, so that no decision value changes.

        Returns the position of the point that stops it, NO_POINT if none does, and how far it got.
        """
        E, d = self.lines.points, way * self.lines.system.dependence(index)
        rate = self.y[E] * d
        rate[np.abs(rate) <= NOISE * np.abs(rate).max()] = 0.0
        low = self.low[E]
        k, stop = _harris_ratio_test(self.y[E] * self.sets.b[E] - low, rate, self.w[E] - low)
        part = min(stop, room)
        self.sets.b[E] += part * d
        return (k, part) if stop < room else (NO_POINT, part)

    def _nearer_bound(self, position: int) -> int:
        i = self.lines.points[position]
        return LEFT if 2.0 * self.y[i] * self.sets.b[i] > self.w[i] + self.low[i] else RIGHT

    def _resolve_tie(self) -> None:
        """Put all tied points at once where they belong as lam falls, and begin with a new elbow."""
        self.lines.solve(self.lam)  # which evaluates all points
        self._update_elbow_coefficients()
        excess = self._excess()
        E, a, width = self.lines.points, self.y * self.sets.b - self.low, self.w - self.low
        inside = np.minimum(a, width - a) > TIED * width
        inner = E[inside[E]]
        is_tied = (self.status == ELBOW) & ~inside | (self.status != ELBOW) & (np.abs(excess) <= TIED * self.lam)
        tied = np.flatnonzero(is_tied)
        self._degenerate_steps += 1
        self.counts.events += 1
        if not tied.size:
            return
        is_low = 2.0 * a[tied] < width[tied]
        is_rising = is_low == (self.y[tied] > 0)
        entering = entering_points(self.K, self.sets.m1, inner, tied, is_rising, self.family.total1)
        if entering is None:
            self._degenerate_steps = MAX_DEGENERATE + 1
            return
        self.lines.clear()
        elbow = np.concatenate([inner, entering])
        if not self.lines.system.append_all(elbow):
            for i in elbow:
                self.lines.system.append(int(i))
        target = np.where(is_low, RIGHT, LEFT)
        target[np.isin(tied, self.lines.points)] = ELBOW
        for i, new in zip(tied.tolist(), target.tolist(), strict=True):
            if self.status[i] != new:
                self._set(i, new)
        self.lines.invalidate()

    def _refill(self) -> None:
        """Let a point into the empty elbow, where the sum of all coefficients has to fall: the next that can.

        Only the bias has moved on the way there, and what it is at this lam is not unique.
        """
        F = weighted_rows(self.K, np.flatnonzero(self.sets.b), self.sets.b[self.sets.b != 0.0])
        can_fall = np.flatnonzero(self.sets.b > np.minimum(self.y * self.low, self.y * self.w))
        if not can_fall.size:
            raise FloatingPointError("no coefficient is left that could fall")
        excess = F - self.sets.margins(self.lam)
        i = int(can_fall[np.argmax(excess[can_fall])])
        self.lines.enter(i)
        self._set(i, ELBOW)
        self._passed = Segment(np.array([i]), self.sets.b[[i]], np.zeros(1), self.segment().bias(self.lam), 0.0)


class FixedBiasEngine(SingleEngine):
    """The same without a free bias: one more point, which is hidden, at the origin makes it zero."""

    n_hidden = 1

    def __init__(self, gram: Gram, family: Family, lam: float, b: np.ndarray, status: np.ndarray | None = None):
        self._without = gram, family
        sets = None if status is None else np.append(status, ELBOW)
        try:
            super().__init__(WithOrigin(gram), family.with_origin(), lam, with_coefficient(b), sets)
        except NotStarted as cut:
            raise NotStarted(cut.beta[:-1]) from None

    def signed_status(self) -> np.ndarray:
        """Return the set of every point, negative on a side that is not its own."""
        return super().signed_status()[:-1]

    def current_solution(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the elbow, its b, and the scaled bias, at the present lam."""
        segment = without(self.segment(), self.family.n - 1)
        return segment.points, segment.coefficients(self.lam), 0.0

    def steps(self, lam_end: float, max_events: int) -> list[Step]:
        """Pass events; return the segments without the origin."""
        made, origin = super().steps(lam_end, max_events), self.family.n - 1
        return [
            Step(without(segment, origin), lam, [t for t in transitions if t.point != origin])
            for segment, lam, transitions in (made.steps() if isinstance(made, Log) else made)
        ]

    def _solved(self, lam: float, b: np.ndarray) -> np.ndarray:
        scale = self.family.scale(lam)
        return with_coefficient(optimum(*self._without, lam, START, scale * b[:-1]).beta / scale)


def _shortened(event: NextEvent, lam: float) -> NextEvent:
    """Return a part of the way to an event, on which no point changes sets."""
    part = (1.0 - SHORTENED) * lam / (lam - event.lam)
    way = Displacement(*(part * x for x in event.displacement))
    return NextEvent(SHORTENED * lam, NO_POINT, NO_POINT, ELBOW, way, event.outside)


def _harris_ratio_test(a: np.ndarray, rate: np.ndarray, w: np.ndarray) -> tuple[int, float]:
    """Return which y b = a is the first to be at 0 or w at these rates, and how far it gets; NO_POINT, inf if none moves.

    Of those that stop at once it is the fastest: the slower a coefficient, the less is known of where it stops, and the nearer
    to singular is the system in which another point takes its place (Harris, 1973).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        speed, room = np.abs(rate), np.where(rate < 0, a, w - a)
        stop, latest = np.maximum(room / speed, 0.0), (np.maximum(room, 0.0) + TIE * w) / speed
    stop[speed == 0], latest[speed == 0] = np.inf, np.inf
    if not np.isfinite(latest.min(initial=np.inf)):
        return NO_POINT, np.inf
    k = int(np.argmax(np.where(stop <= latest.min(), speed, -1.0)))
    return k, float(stop[k])
