"""The rounds of one problem, seen by the coordinator (chapter7 §7.4): choose, gather, solve, broadcast, certify.

Symbols: W = working set; r = t - K beta; b_up, b_low = largest and smallest bounds on the bias, of points that can rise and
fall.  The points outside of W keep their coefficients: all they do is to shift the target of those inside,

    t_W - K_{W,rest} beta_rest = r_W + K_WW beta_W,

and r_W, which partitions know, is all the coordinator needs of them.  W holds the most violating pair, and its solver begins at
the coefficients there are: the dual objective grows with every round, and no set of coefficients comes twice.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zerogap import precision
from zerogap.certificate import Certificate, Measured
from zerogap.dask import bias
from zerogap.dask.checkpoint import Start
from zerogap.dask.cluster import Cluster
from zerogap.dask.partition import (
    Advance,
    Has,
    Knots,
    Measure,
    Measurement,
    Offer,
    Renewal,
    Sample,
    Slope,
    Slopes,
    Spec,
    Stand,
    Standing,
)
from zerogap.dask.table import Table
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.limits import Exceeded, Limit
from zerogap.loop import solve
from zerogap.problem import DualProblem, Known
from zerogap.solution import Status, Trace, TraceRow, cut_short
from zerogap.stopping import KKTViolation

# A working set is solved to this share of the violation that chose it: a tenth of what would do for the tolerance, if the
# gap falls with the violation, but not finer and not coarser than these.
FINEST, COARSEST = 1e-5, 1e-2
ITERATIONS_PER_POINT, MIN_ITERATIONS = 200, 200_000  # of the solver of a working set
IDLE_ROUNDS, SLOW_ROUNDS = 3, 100  # without any growth of the dual objective; without a tenth off the gap
ROUGH_BIAS = 1e-3  # of the violation: a bias so near the best one changes the gap by hardly more than that share
PRECISIONS = ("", "sums", "data")  # of a residual computed afresh, see ``Renewal``


class Round(NamedTuple):
    """What a round has cost."""

    working_set: int
    changed: int  # coefficients, whose points were sent
    solving: float  # seconds on the coordinator
    updating: float  # seconds until all residuals were in step
    working: float  # of partitions for that, summed: what one worker would have taken
    seconds: float  # in all, the certificate and the choice before it included
    bytes_moved: int


class Point(NamedTuple):
    """Coefficients, and what is known of them."""

    table: Table
    certificate: Certificate


class Chosen(NamedTuple):
    """A working set: the numbers of its points among all, in order, and their residuals."""

    numbers: np.ndarray
    r: np.ndarray


class Rounds:
    """A run over the partitions of a cluster: from coefficients to better ones, round after round."""

    def __init__(
        self, cluster: Cluster, spec: Spec, edges: np.ndarray, empty: Table, *,
        fit_intercept: bool, tol: float, solver: Any, cache_size: float, size: int,
    ):  # fmt: skip
        self.cluster, self.spec = cluster, spec
        self.edges = edges  # (partitions + 1,) number of the first row of each among all
        self.table = empty
        self.total = 0.0 if fit_intercept else None
        self.tol, self.solver, self.cache_size = tol, solver, cache_size
        self.least_size = max(int(size), 2)
        self.largest_size = max(self.least_size, int(math.sqrt(cache_size * 1e6 / 16.0)))
        self.version, self.precision, self.bias = 0, "", 0.0
        self.trace, self.rounds = Trace(), list[Round]()
        self.evaluations = 0
        self.n = 0  # points that have a part in the problem
        self.best: Point | None = None
        self._ends: tuple[float, float] | None = None  # of r, less and plus eps, when it was last asked for
        self._biases = np.empty(0)  # at which partitions were asked for slopes with the last question
        self._sharper = 1.0  # by how much working sets are solved more finely, since nothing has moved

    # Where it begins.

    def _begin(self, start: Start) -> None:
        """Begin at coefficients of some points, brought into their boxes; those that belong to other classes now are left."""
        self._renew()
        owner = np.searchsorted(self.edges, start.numbers, side="right") - 1
        has = np.concatenate(self._ask(Has(self.spec, self.version, owner, start.numbers - self.edges[owner])))
        start = Start(start.numbers[has], start.beta[has])
        if not start.numbers.size:
            return
        self._measured(start.numbers)
        table = self.table
        gram = Gram.of_checked(table.points, self.spec.kernel, 1.0)
        problem = DualProblem(gram, table.target, table.lower, table.upper, table.ridge, self.spec.eps, self.total)
        self.table = table._replace(beta=problem.feasible(start.beta))

    def _renewal(self) -> Renewal:
        return Renewal(self.spec, self.version, self.table.coefficients(), self.bias, self.precision)

    def _renew(self, how: str = "") -> list[Standing]:
        """Let all partitions compute their residuals afresh."""
        self.version, self.precision = self.version + 1, how
        self._biases = self._first_biases(self.bias)
        question = Stand(self.spec, self.version, self._most_offered, self._biases)
        standings = self.cluster.ask(question, self._renewal, is_new=True)
        self.n = sum(one.n for one in standings)
        self.evaluations += int(np.count_nonzero(self.table.beta)) * self.n
        return standings

    def _first_biases(self, guess: float) -> np.ndarray:
        """Return biases at which partitions tell the slope of the loss at once; none before the range of r is known."""
        if self._ends is None or self.total is None:
            return np.empty(0)
        return bias.first_biases(*self._ends, guess)

    def _ask(self, question: Any) -> list[Any]:
        return self.cluster.ask(question, self._renewal)

    # The loop.

    def run(
        self, limit: Limit, max_rounds: float, watch: Callable[["Rounds", TraceRow], None], start: Start | None = None
    ) -> Status:
        """Go round after round to the tolerance or a limit; ``best`` is the point, and ``watch`` is told of every row."""
        began, progress = time.perf_counter(), _Progress()
        self._at, self._moved = began, self.cluster.bytes_moved  # when the last round ended, and what was moved by then
        try:
            if start is not None and start.numbers.size:
                self._begin(start)
            standings = self._renew()
            while True:
                chosen, now = self._certify(standings)
                watch(self, self._record(now, began))
                status = self._verdict(now, progress, limit, max_rounds)
                if status is not None:
                    return status
                standings = self._next(chosen, now)
        except Exceeded:  # in the middle of a round: the best point is one of those before
            return cut_short(limit) or Status.MAX_TIME

    def _verdict(self, now: Certificate, progress: "_Progress", limit: Limit, max_rounds: float) -> Status | None:
        if now.relative_gap <= self.tol:
            return Status.CONVERGED
        if (status := cut_short(limit)) is not None:
            return status
        if self._is_near(now) and replace(now, gap=0.0).relative_gap > self.tol:  # however small the gap becomes
            return Status.PRECISION
        if progress.is_over(now):
            return Status.of(now, self.tol)
        self._sharper = 10.0**-progress.idle
        return Status.MAX_STEPS if len(self.rounds) >= max_rounds else None

    def _record(self, now: Certificate, began: float) -> TraceRow:
        if self.best is None or now.relative_gap <= self.best.certificate.relative_gap:
            self.best = Point(self.table, now)
        row = TraceRow(
            len(self.rounds),
            time.perf_counter() - began,
            now.dual,
            now.kkt_violation,
            now.relative_gap,
            self.evaluations,
            int(np.count_nonzero(self.table.beta)),
        )
        self.trace.rows.append(row)
        return row

    # The certificate.

    def _certify(self, standings: list[Standing]) -> tuple[Chosen, Certificate]:
        """Return the next working set and the certificate.

        Where rounding alone is what the tolerance is missed for, residuals are computed afresh, then in twice the precision.
        """
        chosen, now = self._measure(standings)
        if (
            self._is_near(now) and self.total is not None
        ):  # it may be the last: with the bias that one machine would find
            chosen, now = self._measure(standings, exactly=True)
        for how in PRECISIONS:
            if now.relative_gap <= self.tol or not self._is_near(now):
                break
            chosen, now = self._measure(self._renew(how), exactly=True)
        return chosen, now

    def _is_near(self, now: Certificate) -> bool:
        """Whether the gap is within the tolerance, but for rounding."""
        return now.gap <= self.tol * abs(now.primal) < math.inf

    def _measure(self, standings: list[Standing], *, exactly: bool = False) -> tuple[Chosen, Certificate]:
        if self.total is not None:
            self.bias = self._best_bias(standings, exactly=exactly)
        numbers = self._choose(standings)
        answers, r = self._measured(numbers)
        return Chosen(numbers, r), self._certificate(answers)

    def _measured(self, numbers: np.ndarray) -> tuple[list[Measurement], np.ndarray]:
        """Return the sums of all partitions, and the residuals of some points, which are in the table then."""
        owner = np.searchsorted(self.edges, numbers, side="right") - 1
        is_new = ~self.table.has(numbers)
        answers = self._ask(Measure(self.spec, self.version, self.bias, owner, numbers - self.edges[owner], is_new))
        new = []
        for k, answer in enumerate(answers):
            own, (points, part, _) = numbers[is_new & (owner == k)], answer.rows
            of_all = own, np.full(own.size, k), part.rows, points
            new.append(Table(*of_all, part.target, part.lower, part.upper, part.ridge, np.zeros(own.size)))
        self.table = self.table.joined(*new)
        return answers, np.concatenate([answer.rows.r for answer in answers])

    def _certificate(self, answers: list[Measurement]) -> Certificate:
        """Join the sums of all partitions: no term of the gap can be negative, so that nothing cancels."""
        sums = [answer.sums for answer in answers]
        b_up, b_low = max(one.b_up for one in sums), min(one.b_low for one in sums)
        dual, dual_error, gap, gap_error = (math.fsum(one[k] for one in sums) for k in range(2, 6))
        joined = Measured(b_up, b_low, dual, dual_error + 2.0 * UNIT * abs(dual), gap, gap_error + 2.0 * UNIT * gap)
        excess = 0.0 if self.total is None else float(precision.total(self.table.beta, 0.0))
        now = Certificate.of(joined, self.bias, excess, has_bias=self.total is not None)
        is_zero = not self.table.beta.any() and now.gap <= math.fsum(answer.nearly_zero for answer in answers)
        return replace(now, is_zero=is_zero)

    def _best_bias(self, standings: list[Standing], *, exactly: bool) -> float:
        """Return the best bias; while violations are large, one that is as good."""
        known = [_joined_slopes([one.slopes for one in standings])]  # the first of them, answered already
        self._ends, grid = _ends(standings, self.spec.eps), self._biases
        if not (grid.size and known[0][0][0] > 0.0 > known[0][0][-1]):  # it is elsewhere
            grid = bias.first_biases(*self._ends, 0.5 * sum(self._ends))
            known.clear()

        def slopes(biases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return known.pop() if known else _joined_slopes(self._ask(Slope(self.spec, self.version, biases)))

        def knots(intervals: tuple[bias.Interval, ...]) -> tuple[np.ndarray, np.ndarray]:
            places, drops = zip(*self._ask(Knots(self.spec, self.version, intervals)), strict=True)
            return np.concatenate(places), np.concatenate(drops)

        violation = max(one.b_up for one in standings) - min(one.b_low for one in standings)
        rough = 0.0 if exactly else ROUGH_BIAS * max(violation, 0.0)
        has_ridge = self.spec.loss.startswith("squared")
        return bias.best_bias(grid, slopes, knots, 0.0, has_ridge=has_ridge, rough=rough)

    # The working set.

    @property
    def _size(self) -> int:
        """Points in a working set: twice as many as are free, so that there is room for others, if memory has it."""
        free = int(np.count_nonzero(self.table.is_free))
        return min(max(self.least_size, 2 * free), self.largest_size)

    @property
    def _most_offered(self) -> int:
        """Points that a partition offers on either side: half a working set, as all that violate most may be its own."""
        return self._size // 2 + 1

    def _choose(self, standings: list[Standing]) -> np.ndarray:
        """Return the numbers of the next working set: those that violate most, then free points, then others it had."""
        size, table = self._size, self.table
        if not table.beta.any() and not self.rounds:
            return self._sample(size)
        b_up, b_low = max(one.b_up for one in standings), min(one.b_low for one in standings)
        offers = [one.offer for one in standings]
        up, up_value = self._offered(offers, 0)
        low, low_value = self._offered(offers, 2)
        if self.total is None:  # the bias is zero: points that can rise violate above it, whatever others can
            b_up, b_low = max(b_up, 0.0), min(b_low, 0.0)
        is_up, is_low = up_value > b_low, low_value < b_up
        up, low = up[is_up][np.argsort(-up_value[is_up])], low[is_low][np.argsort(low_value[is_low])]
        free = int(np.count_nonzero(table.is_free))
        half = max(size // 2, size - free) // 2
        wanted = np.union1d(up[: max(half, 1)], low[: max(half, 1)])
        others = np.setdiff1d(table.number, wanted)
        order = np.argsort(~table.is_free[table.at(others)], kind="stable")
        return np.union1d(wanted, others[order][: max(size - wanted.size, 0)])

    def _sample(self, size: int) -> np.ndarray:
        """Return the numbers of points of both sides, drawn at random: at zero all points of a class violate alike."""
        share = size / (2.0 * max(self.n, 1))
        most = int(np.ceil(share * float(np.diff(self.edges).max()))) + 1
        offers: list[Offer] = self._ask(Sample(self.spec, self.version, most))
        rng = np.random.default_rng(0)  # the seed is only there to mix the points: the optimum does not depend on it
        sides = [self._offered(offers, k)[0] for k in (0, 2)]
        half = size // 2
        drawn = [side if side.size <= half else rng.choice(side, half, replace=False) for side in sides]
        return np.union1d(*drawn)

    def _offered(self, offers: list[Offer], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of points that partitions offer on one side, and their values."""
        numbers = [offer[k] + edge for offer, edge in zip(offers, self.edges, strict=False)]
        return np.concatenate(numbers), np.concatenate([offer[k + 1] for offer in offers])

    # A round.

    def _next(self, chosen: Chosen, now: Certificate) -> list[Standing]:
        """Solve the working set, and bring all partitions into step with it."""
        began = time.perf_counter()
        beta, guess = self._solve(chosen, now)
        solved = time.perf_counter()
        change, self.table = beta - self.table.beta, self.table._replace(beta=beta)
        sent = self.table.coefficients(change)
        kept = (self.table.beta != 0) | np.isin(self.table.number, chosen.numbers)
        self.table = self.table.taken(np.flatnonzero(kept))
        self.version, self.precision = self.version + 1, ""
        self._biases = self._first_biases(guess)
        standings = self._ask(Advance(self.spec, self.version, self._most_offered, self._biases, sent))
        self.evaluations += sent.values.size * self.n
        updated, working = time.perf_counter(), sum(self.cluster.seconds)
        self.rounds.append(
            Round(chosen.numbers.size, sent.values.size, solved - began, updated - solved, working, updated - self._at,
                  self.cluster.bytes_moved - self._moved)
        )  # fmt: skip
        self._at, self._moved = updated, self.cluster.bytes_moved
        return standings

    def _solve(self, chosen: Chosen, now: Certificate) -> tuple[np.ndarray, float]:
        """Solve the problem of the working set, the others staying where they are; return coefficients of all, and its bias."""
        at = self.table.at(chosen.numbers)
        own = self.table.taken(at)
        gram = Gram.of_checked(own.points, self.spec.kernel, self.cache_size)
        product = gram.dot(own.beta)
        rest = np.delete(self.table.beta, at)
        total = None if self.total is None else -math.fsum(rest)
        problem = DualProblem(
            gram, chosen.r + product, own.lower, own.upper, own.ridge, self.spec.eps, total, Known(own.beta, product)
        )
        share = 0.1 * self.tol / max(now.relative_gap, self.tol)
        stop = KKTViolation(max(now.kkt_violation * float(np.clip(share, FINEST, COARSEST)) * self._sharper, 1e-300))
        most = max(ITERATIONS_PER_POINT * own.size, MIN_ITERATIONS)
        solution = solve(problem, self.solver, stop=stop, max_steps=most, resume=own.beta)
        self.evaluations += gram.evaluations
        beta = self.table.beta.copy()
        beta[at] = solution.beta
        return beta, solution.bias


def _joined_slopes(found: list[Slopes]) -> tuple[np.ndarray, np.ndarray]:
    """Return S and the number of knots of all partitions."""
    sums = np.array([math.fsum(of_one) for of_one in zip(*(one.sums for one in found), strict=True)])
    return sums, np.sum([one.knots for one in found], axis=0)


def _ends(standings: list[Standing], eps: float) -> tuple[float, float]:
    """Return what all knots that matter are between."""
    return min(one.least for one in standings) - eps, max(one.largest for one in standings) + eps


class _Progress:
    """Since when rounds have gained nothing."""

    def __init__(self) -> None:
        self.idle, self.slow, self.dual, self.gap = 0, 0, -math.inf, math.inf

    def is_over(self, now: Certificate) -> bool:
        """Whether nothing is to be hoped for any more."""
        has_grown = now.dual > self.dual + 4.0 * UNIT * abs(now.dual)
        is_faster = now.gap < 0.9 * self.gap
        self.idle = 0 if has_grown else self.idle + 1
        self.slow = 0 if is_faster else self.slow + 1
        self.dual, self.gap = max(self.dual, now.dual), now.gap if is_faster else self.gap
        return self.idle >= IDLE_ROUNDS or self.slow >= SLOW_ROUNDS
