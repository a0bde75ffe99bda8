"""A path within a guaranteed gap of the exact one: straight lines between a few solutions, each line proved for every C on it.

Between two solutions b = lam beta and the bias are linear in lam = 1 / C, and so is F = K b: the largest duality gap in between
follows in closed form from what is known at both ends (``straight_line``).  A line that is not good enough gets a solution on
it (Giesen, Jaggi and Laue, 2012).  Kernel rows are asked for by the solver alone, within its cache.
"""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap import limits
from zerogap.certificate import Residual, product
from zerogap.duplicates import Distinct
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.loop import default_max_steps, solve
from zerogap.path.engine import Transition, segment_between
from zerogap.path.family import ELBOW, LEFT, RIGHT, Family
from zerogap.path.proof import LargestGap
from zerogap.path.reading import PRECISE_ABOVE
from zerogap.path.result import Path
from zerogap.path.solution_set import SolutionSet
from zerogap.path.straight_line import Anchor, Points, largest_ratio
from zerogap.problem import Certificate, DualProblem, Known
from zerogap.progress import PathProgress
from zerogap.solution import Solution
from zerogap.stopping import RelativeGap
from zerogap.wording import count

SHARE = 0.5  # of the gap that is guaranteed, to which solutions are solved: the rest is left for what is between them
FIRST_STEP = math.log(4.0)  # the first line, in log C
# The gap of a line is about as the cube of its length: points that change sets on it, times how far coefficients and decision
# values depart from it.  The next line is as long as that allows, less a little, and not much longer than the last that was too
# long should have been.
POWER, CAUTION, RELAXED = 1.0 / 3.0, 0.9, 1.2
NOISE = 0.2  # of the gap: less than this is not told from what solutions have of their own, and lengthens no line
SHORTER = 0.1  # a line is cut into so many parts at most, as a share of it
FAR_OFF = 10.0  # times the gap: a line with more is no place to start from
KNOWN = 1e-3  # of the gap: by how much of a margin a product may be off that is not computed anew
ENOUGH = 0.75  # of the gap: where rounding keeps solutions themselves above this, lines need not be much better than they are
NUDGE = 0.01  # of the room a coefficient has in its box: what it takes of a sum that is put right, if others can take the rest
SHORT = 0.8  # of a line: what would be left at the end joins the last one.  If that is too long, a solution on it costs less
SHORTEST = 1e-6  # relative: lines are not cut any shorter


class ApproximatePath(Path):
    """A solution for every C from ``C[0]`` to ``C[-1]`` whose relative duality gap is at most ``gap``.

    ``C`` are those that were solved for; in between the scaled coefficients lam beta, lam = 1/C, and the scaled bias are linear
    in lam.  What is proved of them holds at every C, not at samples.  Made by :func:`zerogap.svm_path` with ``gap=``.

    Attributes
    ----------
    gap : float
        The relative duality gap that was asked for.
    largest_gap_ : float
        The largest there is over every C, rounding included, as it was proved; at most ``gap``, or there was a warning.
    C : array of shape (k,)
        Where the solutions are, ascending.
    lam : array of shape (k,)
        1 / C.
    n_solutions : int
        Their number.
    status : str
        "complete", "max_time" or "interrupted".
    events : list
        Empty: where points change sets between two solutions is not known.
    n_free : array of shape (k,)
        Points whose coefficients move on the line that begins at each C, or stay between their bounds; the last is repeated.
    points : Distinct
        The distinct points of the data, and their rows.
    y : array of shape (m,)
        Their labels, -1 or +1.
    gram : Gram or None
        Their kernel matrix, rows on demand; None if the path was loaded without it.

    Examples
    --------
    >>> from zerogap import datasets, svm_path
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> path = svm_path(X, y, C_min=0.1, C_max=10.0, gap=1e-2)
    >>> bool(path.largest_gap_ <= 1e-2), path.n_solutions < len(svm_path(X, y, C_min=0.1, C_max=10.0))
    (True, True)
    >>> bool(path.certificate_at(2.0).relative_gap <= 1e-2)
    True
    """

    kind = "ApproximatePath"

    def __init__(
        self,
        family: Family,
        points: Distinct,
        status: np.ndarray,
        lam: float,
        gram: Gram | None = None,
        *,
        gap: float,
    ):
        super().__init__(family, points, status, lam, gram)
        self.gap = gap
        self._front: Anchor | None = None  # the solution where the path ends, with all that is known of it
        self._step, self._limit = FIRST_STEP, math.inf  # length of the next line, and what it may be at most
        self._now = status  # the sets on the last line

    # Growing.

    def append(self, first: Anchor, last: Anchor, proved: LargestGap) -> None:
        """Append the straight line between two solutions, with what is proved of it."""
        a, w = self.y * first.b, self.points.weight
        moves = (first.b != last.b) | ((a > 0.0) & (a < w))
        status = np.where(moves, ELBOW, np.where(a > 0.0, LEFT, RIGHT))
        if self._segments:
            changed = np.flatnonzero(status != self._now)
            self.note(Transition(first.lam, int(i), int(self._now[i]), int(status[i])) for i in changed)
        else:
            self.start = status.astype(np.int8)
        self._now = status
        E = np.flatnonzero(moves)
        segment = segment_between(E, first.lam, last.lam, first.b[E], last.b[E], first.bias, last.bias)
        self.add(segment, last.lam, [])
        self._proved, self._largest = len(self._segments), max(self._largest, proved)
        self._front = last

    def _begin_proof(self, k: int) -> Any:
        raise NotImplementedError  # a line is proved before it is appended

    # Reading.

    @property
    def n_solutions(self) -> int:
        """Number of C that were solved for."""
        return self.lam.size if self._segments else 0

    @property
    def n_events(self) -> int:
        """Zero: events are those of the exact path."""
        return 0

    @property
    def events(self) -> list[Any]:
        """Empty: where points change sets between two solutions is not known."""
        return []

    def certificates(
        self, C: np.ndarray, *, precisely: bool = True, from_data: bool = True, betas: list[np.ndarray] | None = None
    ) -> list[Certificate]:
        """Certify a few C, with kernel rows as they come."""
        found = []
        for k, value in enumerate(C.tolist()):
            limits.check()
            problem = self.problem_at(value)
            beta = np.clip(self.beta_at(value) if betas is None else betas[k], problem.lower, problem.upper)
            residual = problem.residual(beta)
            now = problem.certify(beta, residual)
            if precisely and now.relative_gap > PRECISE_ABOVE and now.rounding > now.gap:
                now = problem.certify(beta, residual, precisely=True, from_data=from_data)
            found.append(now)
        return found

    def ever_used(self) -> np.ndarray:
        """Return the distinct points that have a coefficient at some C."""
        is_used = self.start != RIGHT
        for segment in self._segments:
            is_used[segment.points] = True
        is_used[self._moved[self._moved[:, 1] != RIGHT, 0]] = True
        return np.flatnonzero(is_used)

    def is_optimal_at_end(self) -> bool:
        """Whether the gap where the path ends is what it was proved to be; of rounding a proof may count less."""
        now = self.certificate_at(self.C[-1])
        return bool(now.gap - now.rounding <= self.proved.gap * (1.0 + 1e-6) * abs(now.primal))

    def solution_set_at(self, C: float) -> SolutionSet:
        """Refuse: only an exact path knows all solutions.

        Parameters
        ----------
        C : float
            Not used.

        Returns
        -------
        SolutionSet
            None, ever.
        """
        raise ValueError(f"{ONLY_EXACT} which points are on their margins, and with them all solutions.")

    def C_of_nu(self, nu: float) -> float:
        """Refuse: only an exact path has one nu for every C.

        Parameters
        ----------
        nu : float
            Not used.

        Returns
        -------
        float
            None, ever.
        """
        raise ValueError(f"{ONLY_EXACT} which C has which nu.")

    def __repr__(self) -> str:
        ends = self.C[[0, -1]]
        proved = f"; largest relative gap {self.proved.gap:.1e}" if self._segments else ""
        return (
            f"{type(self).__name__}({self.status}: C from {ends[0]:g} to {ends[1]:g} within a relative gap of {self.gap:g}, "
            f"{count(self.n_solutions, 'solution')} for {count(self.points.rows.size, 'distinct point')}{proved})"
        )

    # Storing.

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the Gram matrix as arrays.

        Returns
        -------
        dict of str to array
            What ``from_dict`` takes.
        """
        return super().to_dict() | {"gap": self.gap}

    @classmethod
    def _bare(cls, data: dict[str, Any], points: Distinct, gram: Gram | None) -> "ApproximatePath":
        family, start = Family.hinge(np.asarray(data["y"]), points.weight), np.asarray(data["start"])
        return cls(family, points, start, 1.0, gram, gap=float(data["gap"]))

    def seal(self, status: str) -> "ApproximatePath":
        """Finish growing for now."""
        super().seal(status)
        self._now = self.sets_at(None)
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is known of the last solution only to go on from it."""
        return {**super().__getstate__(), "_front": None}


ONLY_EXACT = "This path is approximate; only an exact one, svm_path(...) without gap=, tells"


class Walk:
    """Goes along a path from one solution to the next; those further on that are solved already wait in ``ahead``."""

    def __init__(self, path: ApproximatePath, lam_end: float):
        assert path.gram is not None
        self.path, self.gram, self.lam_end = path, path.gram, lam_end
        self.y, self.w = path.y, path.points.weight
        self.points = Points(self.y, self.w, self.gram.rounding.magnitude)
        self.stop = RelativeGap(SHARE * path.gap)
        self.before: Anchor | None = None  # the solution before the one where the path ends
        self.ahead: list[Anchor] = []  # the nearest is the last

    def advance(self) -> None:
        """Add one line to the path, or put a solution on the one that is not good enough."""
        path = self.path
        if path._front is None:
            path._front = self._first()
        if not self.ahead:
            self.ahead.append(self._beyond(path._front, self._next(path._front)))
        first, last = path._front, self.ahead[-1]
        ratio, lam = largest_ratio(first, last, self.points)
        gap, reached, length = relative(ratio), max(first.gap, last.gap), math.log(first.lam / last.lam)
        allowed = path.gap if reached <= ENOUGH * path.gap else max(path.gap, 2.0 * reached)
        # How much longer a line could be for the gap that is left to it: in its middle it has half of what both ends have.
        own = 0.5 * (first.gap + last.gap)
        share = ((allowed - own) / max(gap - own, NOISE * allowed)) ** POWER
        if gap <= allowed or length <= SHORTEST:
            path.append(first, self.ahead.pop(), LargestGap(gap, 1.0 / lam))
            path._limit *= RELAXED
            path._step = max(min(CAUTION * share * length, path._limit), SHORTEST)
            self.before = first
            return
        path._limit = CAUTION * share * length
        middle = first.lam * math.exp(-length / max(2, math.ceil(1.0 / max(share, SHORTER))))
        is_near = gap <= FAR_OFF * allowed
        self.ahead.append(self._between(first, last, middle) if is_near else self._beyond(first, middle))

    def _next(self, front: Anchor) -> float:
        """Return where the next line is to end."""
        lam, step = front.lam * math.exp(-self.path._step), self.path._step
        return self.lam_end if lam < self.lam_end * math.exp(SHORT * step) else lam  # no short line at the end

    # Solutions.

    def _first(self) -> Anchor:
        """Return the solution where the path begins, or where one that was stored ends."""
        path, lam = self.path, self.path.end
        start = path.reached if not path.has_segments else path.scaled_at(lam) / lam
        return self._solved(lam, None if start is None else lam * start)

    def _beyond(self, front: Anchor, lam: float) -> Anchor:
        """Solve further on: from where the last line would lead to, or from the last solution."""
        before = self.before
        if before is None:
            return self._solved(lam, front.b, (front.b, front.product, front.error))
        t = (front.lam - lam) / (before.lam - front.lam)
        b, product = front.b + t * (front.b - before.b), front.product + t * (front.product - before.product)
        size = np.abs(front.product) + np.abs(before.product)
        error = (1.0 + t) * (front.error + 8.0 * UNIT * size) + t * before.error
        return self._solved(lam, self._feasible(b), (b, product, error))

    def _between(self, first: Anchor, last: Anchor, lam: float) -> Anchor:
        """Solve on a line, from the point there."""
        t = (first.lam - lam) / (first.lam - last.lam)
        ends = zip((first.b, first.product, first.error), (last.b, last.product, last.error), strict=True)
        b, product, error = ((1.0 - t) * begin + t * end for begin, end in ends)
        error = error + 8.0 * UNIT * np.maximum(np.abs(first.product), np.abs(last.product))
        return self._solved(lam, self._feasible(b), (b, product, error))

    def _feasible(self, b: np.ndarray) -> np.ndarray:
        """Return b in the box, with its sum put right by a few points between their bounds: all others stay where they are.

        Of each that is changed a kernel row may have to be computed.
        """
        a = np.clip(self.y * b, 0.0, self.w)
        excess = float(product(self.y, a))
        if excess == 0.0:
            return self.y * a
        rises = self.y * excess < 0.0  # whose a has to grow
        room = np.where((a > 0.0) & (a < self.w), np.where(rises, self.w - a, a), 0.0)
        most = np.argsort(-room, kind="stable")
        all_room = np.cumsum(room[most])
        if all_room[-1] > abs(excess):
            most = most[: np.searchsorted(all_room, abs(excess) / NUDGE) + 1]
            share = abs(excess) / float(room[most].sum())
            a[most] += np.where(rises[most], share, -share) * room[most]
        return self.y * np.clip(a, 0.0, self.w)

    def _solved(self, lam: float, b: np.ndarray | None, known: tuple[np.ndarray, ...] | None = None) -> Anchor:
        """Solve at lam, from b if there is one; ``known`` are coefficients, their product with K and how far that is off."""
        C = 1.0 / lam
        problem = DualProblem.hinge(self.gram, self.y, C, sample_weight=self.w)
        # What a product is off by grows from line to line: where that is too much it is computed anew.
        is_cheap = self.gram.is_complete or self.gram.kernel.is_linear
        if known is not None and not is_cheap and C * known[2].max() <= KNOWN * self.path.gap:
            problem = replace(problem, known=Known(*(C * part for part in known)))
        solution = solve(
            problem,
            stop=self.stop,
            resume=None if b is None else problem.restore_sum(np.clip(C * b, problem.lower, problem.upper)),
            max_steps=default_max_steps(problem.n),
        )
        if not self.path.has_segments:
            self.path.reached = solution.beta
        limits.check()
        return self._anchor(lam, solution)

    def _anchor(self, lam: float, solution: Solution) -> Anchor:
        """Return what is known of a solution; in twice the precision, if rounding leaves too much of the gap open."""
        beta, problem, state, drift = solution.beta, solution.problem, solution.state, solution.drift
        is_known = np.isfinite(drift) and np.array_equal(beta, state.beta)
        r, drift = (state.residual, drift) if is_known else (problem.residual(beta), 0.0)
        # What a solver tells of running residuals has the product in it that they began with.
        rough = Residual(r, 0.0, drift + problem._product_error(beta) * (drift == 0.0))
        anchor = self._scaled(lam, solution, rough)
        for from_data in (False, True):  # as certificates do
            if anchor.gap <= max(ENOUGH * self.path.gap, 2.0 * solution.certificate.relative_gap):
                break
            precise = problem._precise_residual(beta, rough, from_data)
            anchor = min(anchor, self._scaled(lam, solution, precise), key=lambda one: one.gap)
        return anchor

    def _scaled(self, lam: float, solution: Solution, residual: Residual) -> Anchor:
        """Return a solution in the scale of lam beta, with the gap that is proved of it alone."""
        beta, problem, bias = solution.beta, solution.problem, solution.certificate.bias
        is_capped = (beta != 0.0) & ((beta == problem.lower) | (beta == problem.upper))
        b = self.y * np.where(is_capped, self.w, np.minimum(lam * np.abs(beta), self.w))
        r = residual.less(0.0)
        error = residual.error + 8.0 * UNIT * (1.0 + np.abs(r) + abs(bias))
        anchor = Anchor(lam, b, lam * bias, lam * (self.y - r), lam * residual.less(bias), lam * error, np.inf)
        return anchor._replace(gap=relative(largest_ratio(anchor, anchor, self.points)[0]))


def relative(ratio: float) -> float:
    """Return gap / primal from gap / dual."""
    return ratio / (1.0 + ratio) if np.isfinite(ratio) else 1.0


def walk(path: ApproximatePath, C_max: float, *, verbose: bool = False, share: float | None = None) -> str:
    """Go along a path until C_max; a limit leaves what is proved so far, a ``share`` of the time at least one segment."""
    began, lam_end = time.perf_counter(), 1.0 / C_max
    progress = PathProgress(path, C_max) if verbose else None
    try:
        steps = Walk(path, lam_end)
        while path.end > lam_end:
            left = None if share is None or not path.has_segments else share - (time.perf_counter() - began)
            with limits.limits(left):
                limits.check()
                steps.advance()
            if progress is not None:
                progress(0, 1.0 / path.end, 0)
        return "complete"
    finally:
        path.counts.tracking_seconds += time.perf_counter() - began
        if progress is not None:
            progress.close()
