"""The elbow's system, and the straight lines on which its solution moves between two events.

Symbols: as in ``engine``.  On a segment b_E = u + t v, the scaled bias is u0 + t v0, and F = p + t q, t = lam - anchor; all are
determined by the sets alone.  Over C the anchor is zero: where C is large b is in proportion to lam.  So it is over nu where no
point is capped.  Elsewhere it is where the lines were solved for last: they may be so steep that of u at zero nothing would be
left at lam.
When a point changes sets, the lines change by a multiple of its response: one solve, and one combination of kernel rows.  What
they leave of p_E = m0_E and q_E = m1_E is tested every time, and now and then they are solved for afresh, so nothing drifts.
``screening`` knows which p and q are needed.
"""

import math
from functools import cached_property

import numpy as np

from zerogap.compiled import NO_POINT
from zerogap.free_system import DenseFreeSystem
from zerogap.gram import Gram
from zerogap.path.ahead import LARGE, LEAST, LONG_STREAK, MOST, look_ahead, next_to_enter, pass_entering
from zerogap.path.engine import ELBOW, Log, Segment, segment_between
from zerogap.path.events import (
    ElbowFactor,
    FirstEnd,
    Moving,
    PointArrays,
    Scale,
    line_residual,
    lines_hold,
    pass_ordinary,
    ratio_test,
    tied_candidates,
)
from zerogap.path.renewal import Whole, renew
from zerogap.path.rows import Change, ElbowLines, add_block_exactly, add_exactly
from zerogap.path.screening import Displacement, Screening, gather
from zerogap.path.sets import Sets
from zerogap.path.tolerances import (
    CLEAR,
    FRESH_EVERY,
    LEFT_OVER,
    LENGTHS,
    MANY_TIED,
    MAX_COORDINATES,
    NEAR,
    OPEN,
    OUTSIDE,
    OUTSIDE_STEEP,
    REFRESH_BELOW,
    ROUNDS,
    ROUNDS_OF_TIES,
    SEEN_LEFT_OVER,
    SEEN_OUTSIDE,
    SHORT,
    SLOW,
    STALE,
    TIE,
    UNIT_ERROR,
    UNSURE,
    VISIBLE,
)
from zerogap.precision import add_to, with_sum_zero


class Lines:
    """The points of the elbow with the factor of their system, u, v, p and q, and how long ago they were solved for."""

    def __init__(self, gram: Gram, sets: Sets):
        self.gram, self.sets = gram, sets
        self.K, self.w = sets.K, sets.w
        self.screening = Screening(self.K, sets, STALE)
        self.largest = float(np.abs(np.diagonal(self.K)).max())  # kernel value
        self.u, self.v, self.u0, self.v0 = np.empty(0), np.empty(0), 0.0, 0.0
        self._largest_rounding = 0.0  # that of the steepest lines since they were last solved for
        self.left_over = LEFT_OVER  # that may stay on the margins of the elbow, relative to lam
        self.outside = OUTSIDE  # how far a coefficient may be outside its box, as a part of it
        self._streak = 0  # points that have entered the elbow since one has left it, as far as compiled loops know
        self.is_fine = False  # whether what is left over for speed would be seen in the gap
        self.is_exact = False  # whether they were last solved for in twice the precision
        self.exact_until = np.inf  # the lam down to which it has been seen
        self._block = np.empty(0)
        self.clear()

    def clear(self) -> None:
        """Begin with an empty elbow."""
        self.adopt(DenseFreeSystem(self.K))

    def adopt(self, system: DenseFreeSystem) -> None:
        """Begin with the elbow of a system."""
        self.system = system
        self.invalidate()

    def invalidate(self) -> None:
        """Let the lines be solved for afresh before they are used again."""
        self.age = STALE  # events since they were solved for

    @property
    def is_stale(self) -> bool:
        """Whether the lines have to be solved for before they are used."""
        return self.age >= self._lasting

    @property
    def _lasting(self) -> int:
        """Number of events after which they are: where the origin takes up the sum, rounding gathers sooner."""
        family = self.sets.family
        return FRESH_EVERY if family.is_hinge or family.has_origin else STALE

    @property
    def points(self) -> np.ndarray:
        """The elbow, in the order of its system; a view."""
        return self.system.points

    @property
    def is_level(self) -> bool:
        """Whether all margins of the elbow move alike, as those of one class: then only the bias does, and rounding no b."""
        m1 = self.sets.m1[self.points]
        return self.sets.family.total1 == 0.0 and bool((m1 == m1[0]).all())

    @property
    def about_beginning(self) -> bool:
        """Whether a line between two solutions is exact at the first: as the tube gets wider the objective falls to zero.

        That of one class falls with nu, and its lines are exact at the end.
        """
        family = self.sets.family
        return not family.is_over_C and family.total1 == 0.0

    def segment(self) -> Segment:
        """Return the elbow's lines as they are."""
        return Segment(self.points.copy(), self.u, self.v, self.u0, self.v0, self.sets.anchor)

    def coefficients(self, lam: float) -> np.ndarray:
        """Return b of the elbow."""
        return self.u + (lam - self.sets.anchor) * self.v

    def decision_values(self, lam: float) -> np.ndarray:
        """Return F of all points, which must have just been evaluated."""
        return self.screening.p + (lam - self.sets.anchor) * self.screening.q

    # What compiled code works on.

    @property
    def _elbow(self) -> ElbowLines:
        return ElbowLines(self.points, self.u, self.v, self.v0)

    @property
    def _point_arrays(self) -> PointArrays:
        sets = self.sets
        return PointArrays(
            sets.y, sets.w, sets.low, sets.status, sets.b, sets.g, sets.target0, sets.family.target1, sets.m0, sets.m1,
            sets.tube, sets.anchor,
        )  # fmt: skip

    @property
    def scale(self) -> Scale:
        """Sizes that rounding is compared with."""
        sets = self.sets
        return Scale(
            self.largest, UNIT_ERROR * self.largest, self.left_over, self.outside, sets.rounding,
            REFRESH_BELOW * sets.summed_at,
        )  # fmt: skip

    @cached_property
    def _whole(self) -> Whole:
        family = self.sets.family
        return Whole(family.total0, family.total1, family.is_hinge, self._lasting)

    # Solving for them.

    def ensure(self, lam: float) -> None:
        """Solve for the lines, unless they are good."""
        if self.is_stale or not self.hold(lam, *self._residual(lam)):
            self.solve(lam)

    def _residual(self, lam: float) -> tuple[float, float]:
        sets = self.sets
        return line_residual(lam - sets.anchor, lam, sets.m0, sets.m1, self._elbow, self.screening.candidates)

    def hold(self, lam: float, left_over: float, size: float) -> bool:
        """Whether the lines, updated many times, still solve the elbow's system, and were not much steeper meanwhile."""
        is_good, self._largest_rounding = lines_hold(left_over, size, lam, self._largest_rounding, self.scale)
        return bool(is_good)

    def solve(self, lam: float, *, exactly: bool = False) -> None:
        """Solve the elbow's system for both coefficients of lam, with refinement, and evaluate all points."""
        E, g, screening, family = self.points, self.sets.g, self.screening, self.sets.family
        # As the lines before, and as the last ones will have to be: else they would be solved for twice.
        exactly |= self.is_fine or (not self.sets.n_capped and family.is_hinge)
        if not family.is_over_C:
            self.sets.move_anchor(0.0 if self._is_in_proportion else lam)
        m0, m1, whole = self.sets.m0[E], self.sets.m1[E], np.array([family.total(self.sets.anchor), family.total1])
        totals = whole - np.array([self.sets.capped_sum, 0.0])
        x, bias = self.system.solve(np.stack([m0 - g[E], m1]), totals)
        screening.evaluate_all(_segment(E, x, bias), g)
        # On the elbow p is m0 and q is m1: what they are instead refines the solution.
        left_over = np.stack([m0 - screening.p[E], m1 - screening.q[E]])
        correction, shift = self.system.solve(left_over, totals - x.sum(axis=1))
        x, bias = x + correction, bias + shift
        reach = self._reach(lam, x[1])
        is_unsure = (np.abs(correction[0] + reach * correction[1]) / self.w[E]).max() > UNSURE
        if exactly:
            x, bias = self._refine(x, bias, np.stack([m0, m1]), whole, (True, False))
        elif is_unsure:
            x, bias = self._refine(x, bias, np.stack([m0 - g[E], m1]), totals, (False, False))
        if self.is_level:
            x[1], bias[1] = 0.0, m1[0]
        if E.size == 1 and family.total1 == 0.0:  # the sum tells it, and a small kernel value would lose its digits
            x[0] = totals[0]
        tolerance = self.left_over * lam + self.sets.rounding
        is_visible = np.abs(left_over[0]).max() + reach * np.abs(left_over[1]).max() > VISIBLE * tolerance
        if exactly or is_unsure or is_visible:
            screening.evaluate_all(_segment(E, x, bias), g)
        self.u, self.v, self.u0, self.v0 = x[0], x[1], float(bias[0]), float(bias[1])
        size_u, size_v = float(np.abs(self.u).sum()), float(np.abs(self.v).sum())
        self.age, self.is_exact, self._largest_rounding = 0, exactly, self.scale.unit_error * (size_u + lam * size_v)
        if not self.sets.n_capped and family.is_hinge:
            self._clear_margins()
        elif self._is_in_proportion:
            self._clear_margin_of_one_class()
        is_rounding_seen = self._take_tolerances(lam, size_u + reach * size_v)
        # Of two classes and of one, lines without capped points are in proportion to lam, and so is their rounding.
        may_be_fine = bool(self.sets.n_capped) or not (family.is_hinge or family.total1 != 0.0)
        self.is_fine = is_rounding_seen or (lam > self.exact_until and may_be_fine)
        if self.is_fine and not exactly:
            self.solve(lam, exactly=True)

    @property
    def _is_in_proportion(self) -> bool:
        """Whether b is in proportion to lam: of one class without capped points, so that rounding is as well."""
        return self.sets.family.total1 != 0.0 and not self.sets.n_capped

    def _reach(self, lam: float, v: np.ndarray) -> float:
        """Return how far from the anchor lines are used: at most until one of them has crossed its box."""
        if self.sets.anchor == 0.0:
            return lam
        E = self.points
        with np.errstate(divide="ignore"):
            return min(lam, float(((self.w[E] - self.sets.low[E]) / np.abs(v)).min()))

    @np.errstate(over="ignore", invalid="ignore")  # of kernel values near the ends of float64 nothing is known
    def _take_tolerances(self, lam: float, size: float) -> bool:
        """Let lines leave no more on the margins of the elbow than what costs a part of the objective that does not count.

        Where a tube is about to hold all targets the objective falls to zero, and decision values do not; and steep lines
        leave more than others.  Returns whether their rounding alone may cost more.
        """
        E, sets, family = self.points, self.sets, self.sets.family
        if family.is_hinge or family.total1 != 0.0:
            return False
        b = sets.at_rest
        b[E] = self.coefficients(lam)
        objective = float(b @ (sets.margins(lam) - 0.5 * self.decision_values(lam)))
        weight = float(family.cost[E].sum()) or 1.0
        allowed = OPEN * (objective + family.floor(lam, self.largest)) / weight  # in decision values
        if not family.is_over_C:
            box = self.largest * float(family.cost[E].max()) or 1.0
            self.outside = min(SEEN_OUTSIDE * allowed / box, OUTSIDE_STEEP)
        self.left_over = min(LEFT_OVER, SEEN_LEFT_OVER * allowed / lam)
        # Over C the objective stays away from zero, and rounding is as a rule far below its bound.
        seen = 1.0 if family.is_over_C else SEEN_LEFT_OVER
        return self.scale.unit_error * size + self.sets.rounding > seen * allowed

    def _refine(
        self, x: np.ndarray, bias: np.ndarray, margins: np.ndarray, totals: np.ndarray, rests: tuple[bool, bool]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Refine two solutions by what is left over in twice the precision, where less would be all rounding.

        ``margins`` are what F is to be, ``rests`` tells which of them have the points at rest among their terms.
        """
        E, at_rest = self.points, self.sets.at_rest
        resting = np.flatnonzero(at_rest)
        rhs, lost, totals = margins.copy(), np.zeros((2, E.size)), totals.copy()
        pull, rest = np.zeros((2, E.size))
        if any(rests):
            add_exactly(self.K, resting, -at_rest[resting], E, pull, rest)
        for k in (k for k in range(2) if rests[k]):
            add_to(rhs[k], lost[k], pull)
            lost[k] += rest
            totals[k] = math.fsum([totals[k], *-at_rest[resting]])
        block = self._elbow_block()
        for _ in range(ROUNDS):
            left_over, error = rhs.copy(), lost.copy()
            for k in range(2):
                add_block_exactly(block, -x[k], left_over[k], error[k])
            correction, shift = self.system.solve((left_over - bias[:, None]) + error, totals - x.sum(axis=1))
            x, bias = x + correction, bias + shift
        return x, bias

    def _elbow_block(self) -> np.ndarray:
        """Return K_EE, gathered into memory that is used again: that takes as long as several sums over it."""
        E = self.points
        if self._block.size < E.size**2:
            self._block = np.empty((E.size + STALE) ** 2)
        block = self._block[: E.size**2].reshape((E.size, E.size))
        gather(self.K, E, E, block)
        return block

    def between(self, lam: float, end: float, position: int, target: int) -> Segment:
        """Return the line between the solutions at two lam, each solved for by itself: of steep lines u + lam v has few digits.

        At the end a point may leave the elbow for the bound of a set.  It is there, and its margin is off by what ``end`` is.
        """
        E, sets, at = self.points.copy(), self.sets, np.array([lam, end])
        t = at - sets.anchor
        x, bias = self.u + t[:, None] * self.v, self.u0 + t * self.v0
        if not self.is_level:
            margins = sets.m0[E] + t[:, None] * sets.m1[E]
            x, bias = self._refine(x, bias, margins, sets.family.total(at), (True, True))
        if position != NO_POINT:
            unit = np.zeros((2, E.size))
            unit[:, position] = 1.0
            (way, _), (shift, _) = self.system.solve(unit, np.zeros(2))
            bound = sets.bound(int(E[position]), target)
            if way[position] != 0.0:  # of a point alone in the elbow the sum tells
                part = (bound - x[1, position]) / way[position]
                x[1], bias[1] = x[1] + part * way, bias[1] + part * shift
            x[1, position] = bound
        return segment_between(E, lam, end, *x, *bias.tolist(), about_beginning=self.about_beginning)

    def _clear_margins(self) -> None:
        """Stretch the last segment by about its rounding error, so that every margin is met however large C becomes.

        Without capped points F = lam q, and a margin short by 1e-14 costs C times that at each of the points on it.  Rounding
        v changes margins anew every time: a few lengths are tried.  If none will do, the line stays as it is, and the proof
        tells what gap that leaves.
        """
        is_near, stretch = self.sets.y * self.screening.q < 1.0 + NEAR, 1.0
        is_near[self.points] = True  # whatever rounding made of their margins: there are some of either class
        has_bias = self.sets.family.has_bias
        if not has_bias:  # the origin has no margin
            is_near[-1] = False
        near = np.flatnonzero(is_near)
        for _ in range(LENGTHS):
            v = with_sum_zero(self.v * stretch) if has_bias else self.v * stretch
            least, largest = self._bias_between(v, near)
            # Half way between the two biases both classes are short by the same; one that is fixed is zero.
            short = 0.5 * (least - largest) if has_bias else max(least, -largest)
            short += CLEAR * (1.0 + abs(least))
            if short > SHORT:
                return
            if short <= 0.0:
                self.v, self.v0 = v, 0.5 * (least + largest) if has_bias else 0.0
                self.screening.q *= stretch
                return
            # About ``short`` itself would make up for it.  Half of that does not overshoot, which would cost objective.
            stretch += max(0.5 * short, CLEAR)

    def _clear_margin_of_one_class(self) -> None:
        """Let the bias of the last segment meet all margins: one short by 1e-16 of lam costs that times its cap."""
        E, q = self.points, self.screening.q
        is_near = q < NEAR * np.abs(q).max()
        is_near[E] = True
        near = np.flatnonzero(is_near)
        product, _ = self._product_between(self.v, near)
        least = float(-product.min())
        v0 = least + CLEAR * (abs(least) + float(np.abs(product[np.isin(near, E)]).max()))
        if abs(v0 - self.v0) <= SHORT * self.largest * float(np.abs(self.v).sum()):  # else that is more than rounding
            self.screening.q += v0 - self.v0
            self.v0 = v0

    def _bias_between(self, v: np.ndarray, near: np.ndarray) -> tuple[float, float]:
        """Return which biases meet the margins of the points near them."""
        y = self.sets.y[near]
        margin = np.minimum(*(y * product for product in self._product_between(v, near)))
        short = 1.0 - margin
        return float(short[y > 0].max(initial=-np.inf)), float(-short[y < 0].max(initial=-np.inf))

    def _product_between(self, v: np.ndarray, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the least and largest K_E v at points near, by the kernel matrix and, if not too dear, the data."""
        E, beta, (high, low) = self.points, np.zeros(self.w.size), np.zeros((2, near.size))
        add_exactly(self.K, E, v, near, high, low)
        product = high + low
        if self.gram.precise_work(E.size, near.size) > MAX_COORDINATES:
            return product, product
        beta[E] = v
        exact = self.gram.precise_dot(beta, near)
        value = exact.high + exact.low
        return np.minimum(product, value - exact.error), np.maximum(product, value + exact.error)

    # Where they lead to.

    def first_end(self, lam: float, lam_end: float) -> FirstEnd:
        """Return the first end of a set that is reached as lam falls, by lines that are good."""
        if self.is_stale:
            self.solve(lam)
        found = self._ratio_test(lam, lam_end)
        if not self.hold(lam, found.left_over, found.size) and self.age:
            self.solve(lam)
            found = self._ratio_test(lam, lam_end)
        return found

    def _ratio_test(self, lam: float, lam_end: float) -> FirstEnd:
        screening = self.screening
        return ratio_test(
            lam_end, lam, self._point_arrays, self._elbow, screening.candidates, screening.reference, self.largest
        )

    def choose_among_tied(self, near: float, lam: float) -> tuple[int, int, np.ndarray, float]:
        """Return the position and the point of the event, of all down to ``near``, that makes the elbow least dependent.

        If it is one that enters the elbow, also all others that do; else the lam at which the first of those that leave does.
        """
        position, point, entering, leaves_at = tied_candidates(
            near, lam, self._point_arrays, self._elbow, self.screening.candidates, self.largest
        )
        if position == NO_POINT:
            point = self.system.farthest(entering)
        return position, point, entering, leaves_at

    def pass_ordinary(self, lam: float, lam_end: float, max_events: int) -> tuple[Log | None, float, bool]:
        """Pass up to so many ordinary events in a compiled loop.

        Return a log of them, if there are any, the lam it came to, and whether the next event is known not to be ordinary.
        """
        self.system.reserve(STALE)
        made = self._pass_entering(lam, lam_end, max_events)
        if made is not None:
            return made, float(made.numbers[-1, 0]), False
        log, count, moving, is_special = pass_ordinary(
            lam_end, max_events, self._point_arrays, self._factor, self.screening.room, self._whole, self._moving(lam),
            self.scale,
        )  # fmt: skip
        self._take_moving(moving)
        leaves = np.flatnonzero(log.moves[:count, 2] != ELBOW)
        self._streak = count - 1 - int(leaves[-1]) if leaves.size else self._streak + count
        return log.first(count) if count else None, moving.lam, bool(is_special)

    def _pass_entering(self, lam: float, lam_end: float, max_events: int) -> Log | None:
        """Pass events by which points enter a large elbow, if of late no other were met."""
        screening = self.screening
        if not self._whole.is_hinge or self.system.size < LARGE or self._streak < LONG_STREAK:
            return None
        if self.age > FRESH_EVERY - LEAST and not self._renew(lam):
            return None
        first = self._ratio_test(lam, lam_end)
        if self.age and not screening.is_safe(self._displacement(lam, first)):
            if not self._renew(lam):
                return None
            first = self._ratio_test(lam, lam_end)
        is_tied = first.second >= first.lam - TIE * lam or first.lam > (1.0 - TIE) * lam
        if first.position != NO_POINT or is_tied or first.outside > self.outside:
            return None
        if self.age == 0:
            screening.screen(lam, self._displacement(lam, first))
        room = FRESH_EVERY - self.age
        some = min(max(2 * self._streak, LEAST), MOST, room, max_events)
        points = next_to_enter(lam, self._point_arrays, screening.candidates, some)
        if not points.size:
            return None
        ahead = look_ahead(self.system, screening, points)
        log, count, moving = pass_entering(
            lam_end, self._point_arrays, self._factor, screening.room, self._moving(lam), self.scale, ahead
        )
        self._take_moving(moving)
        self._streak = max(count, self._streak // 2)
        return log.first(count) if count else None

    def _renew(self, lam: float) -> bool:
        """Solve for the lines of two classes as the compiled loop does; return whether they are good."""
        new = renew(
            lam, self.points, self._point_arrays, self._factor, self.sets.capped_sum, self.sets.n_capped, self._whole,
            self.scale, self.screening.kept, self.screening.room,
        )  # fmt: skip
        self.u, self.v, self.u0, self.v0 = new.u, new.v, new.u0, new.v0
        self.screening.take(new.kept)
        self.age, self._largest_rounding = 0 if new.is_good else STALE, self.scale.unit_error * new.size
        return bool(new.is_good)

    def _displacement(self, lam: float, first: FirstEnd) -> Displacement:
        fall = lam - first.lam
        return Displacement(fall, fall * first.departure, fall * abs(self.v0 - self.screening.reference.v0))

    @property
    def _factor(self) -> ElbowFactor:
        system = self.system
        return ElbowFactor(self.K, system._points, system._factor, system._forward_ones, system.tau, system.has_border)

    def _moving(self, lam: float) -> Moving:
        sets = self.sets
        return Moving(
            lam, self.u, self.v, self.u0, self.v0, self.system.size, self.age, self._largest_rounding, sets.capped_sum,
            sets.n_capped, self.screening.kept, sets.summed_at, sets.rounding,
        )  # fmt: skip

    def _take_moving(self, moving: Moving) -> None:
        (
            _, self.u, self.v, self.u0, self.v0, self.system.size, self.age, self._largest_rounding, self.sets.capped_sum,
            self.sets.n_capped, kept, self.sets.summed_at, self.sets.rounding,
        ) = moving  # fmt: skip
        self.screening.take(kept)

    # Changes of the elbow.

    def enter(self, i: int) -> bool:
        """Let a point into the elbow, unless it depends on it."""
        before = self._elbow
        response = self.system.append(i)
        if response is None:
            return False
        if self.is_stale or self.is_fine or not before.points.size:
            self.invalidate()
        else:
            self._take(self.screening.enter(before, response, i, self.sets.b[i]), response.d0)
        return True

    def enter_all(self, points: np.ndarray) -> np.ndarray:
        """Let points that tie into the elbow at once, those that then move into their boxes as lam falls; return them.

        None, if they are few, or depend on each other or on the elbow.
        """
        system, sets = self.system, self.sets
        for _ in range(ROUNDS_OF_TIES):
            if points.size < MANY_TIED or not system.append_all(points):
                break
            v, _ = system.solve_one(sets.m1[system.points], sets.family.total1)
            rate = sets.y[points] * v[-points.size :] * (ELBOW - sets.status[points])
            is_inward = rate < -SLOW * np.abs(v).max()
            if is_inward.all():
                self.invalidate()
                return points
            system.remove_last(points.size)
            points = points[is_inward]
        return points[:0]

    def leave(self, position: int, target: int) -> int:
        """Let the point at a position come to rest at the bound of a set; return it."""
        i, response = int(self.points[position]), self.system.remove_with_response(position)
        if self.is_stale or self.is_fine or not self.points.size:
            self.invalidate()
        else:
            bound = self.sets.bound(i, target)
            self._take(self.screening.leave(self._elbow, response, i, position, bound), response.d0)
        return i

    def _take(self, change: Change, d0: float) -> None:
        """Take over the elbow's new lines."""
        self.age += 1
        self.u, self.v, du, dv = change
        self.u0, self.v0 = self.u0 + du * d0, self.v0 + dv * d0


def _segment(E: np.ndarray, x: np.ndarray, bias: np.ndarray) -> Segment:
    return Segment(E.copy(), x[0], x[1], float(bias[0]), float(bias[1]))
