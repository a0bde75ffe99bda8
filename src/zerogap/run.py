"""A run of a solver from start to end: its steps, certificates on the way, and the signs that nothing moves any more."""

import copy
import math
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap.certificate import TINY, Certificate, product
from zerogap.compiled import jit
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.limits import Exceeded, Limit, is_over, unlimited
from zerogap.problem import DualProblem
from zerogap.solution import Solution, Status, Trace, TraceRow, cut_short
from zerogap.solvers import Info, Solver, name_of
from zerogap.stopping import Stop

# Kernel values that are computed for the certificate after a limit was reached; where it takes more, it is made from the
# running residual, and says how far that may be off.
WORK_PAST_LIMIT = 20_000_000

# Points whose residual is computed from the data where the solver is believed about the others.
LOOKED_AT = 100

# Running residuals gather rounding errors; after this many iterations they are computed afresh.
REFRESH_EVERY = 100_000

# Gaps once margins are long enough: one from which the tolerance is farther than this is left to solvers as it is, and so is
# one of which rounding is more than that share.
NEAR_STRETCHED, ROUNDING_STRETCHED = 1e-5, 0.01

# Where that takes long, only those of a solver that does not tell that they are off by less than this share of the violation.
SHARP = 0.01

# A solver that makes no progress worth the name in this many iterations (or 100 n) gets no further; one whose iterations are
# smaller than a pair's has a ``patience`` of so many times that.
PATIENCE = 1_000_000

# Signs that come sooner: a point that has not moved at all in so many iterations (and 2 n); a gap and a dual objective that
# have changed by less than this share of the gap, or a dual objective that has grown by rounding alone, in so many (or 10 n).
UNMOVED_AFTER, FROZEN_AFTER, FROZEN = 1000, 50_000, 1e-6

# What rounding can do to a point that is to be feasible: a few roundings of a coefficient at its bound; and of their sum, which
# is put right whenever the residual is computed afresh, one for each of the ``REFRESH_EVERY`` iterations in between.
OUTSIDE_BOX, WRONG_SUM = 16.0 * UNIT, 1e-9


class _Progress:
    """Since when a run has gained nothing, by several measures; iterations are what counts."""

    def __init__(self, steps: int, beta: np.ndarray):
        self.gap, self.dual, self.at = np.inf, -np.inf, steps  # at the last progress worth the name
        self.beta, self.moved_at = beta.copy(), steps
        self.highest, self.grown_at = -np.inf, steps
        self.frozen, self.frozen_at = (np.inf, -np.inf), steps  # gap and dual objective since when they hardly change

    def note(self, steps: int, now: Certificate, beta: np.ndarray, rounding: float) -> bool:
        """Record the present point; return whether there was progress.  ``rounding`` is that of the dual objective."""
        gap, dual = now.gap, now.dual
        if not np.array_equal(beta, self.beta):
            self.beta, self.moved_at = beta.copy(), steps
        if dual > self.highest + rounding:
            self.highest, self.grown_at = dual, steps
        least = FROZEN * (gap if np.isfinite(gap) else abs(dual))
        if not (abs(gap - self.frozen[0]) <= least or gap == self.frozen[0]) or abs(dual - self.frozen[1]) > least:
            self.frozen, self.frozen_at = (gap, dual), steps
        # A tenth off the gap is progress, and so is a dual objective that has made up for a hundredth of it.
        if gap < 0.9 * self.gap or dual - self.dual > (0.01 * gap if np.isfinite(gap) else 0.01 * abs(dual)):
            self.gap, self.dual, self.at = min(gap, self.gap), dual, steps
            return True
        return False

    def is_over(self, steps: int, n: int, patience: float) -> bool:
        """Whether nothing is to be hoped for any more."""
        since_growth = steps - max(self.at, self.grown_at)
        return (
            steps - self.moved_at >= UNMOVED_AFTER + 2 * n
            or max(since_growth, steps - self.frozen_at) >= patience * max(FROZEN_AFTER, 10 * n)
            or steps - self.at >= patience * max(PATIENCE, 100 * n)
        )


class SolverRun:
    """The moving parts of the loop: state, trace, and the signs that nothing moves any more."""

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        solver: Solver,
        stop: Stop,
        resume: Solution | np.ndarray | None,
        limit: Limit,
    ):
        self.asked = problem  # and the same problem, with the cache of kernel rows that is this run's own
        self.problem = problem if gram is problem.gram else replace(problem, gram=gram)
        self.solver, self.stop, self.limit = solver, stop, limit
        self.status: Status | None = None  # how the run ended
        self.began = time.perf_counter()
        self.steps, self.trace = 0, Trace()
        self._begin(resume)
        self.info = Info(0)
        self.is_finite = True
        self.rounding = 0.0  # of the last certificate from the data: what the stopping rule has to allow for
        self.now: Certificate = self.problem.estimate(self.state.beta, self.state.residual)
        self.before: Certificate | None = None
        self.is_fresh = self._sum_is_exact()  # whether the residual has just been computed from the data
        self.is_certified = False  # and whether the certificate has
        self.drift = np.inf  # what the certificate has counted for a residual that is not fresh
        self.refreshed_at = self.steps
        # Since then: the largest of residuals and the sums they are made of, and how far off they are by what the solver says.
        self.largest, self.told = self._sizes()
        if isinstance(resume, Solution) and self._is_own(resume):
            self.is_fresh, self.largest, self.told = False, np.inf, np.inf  # what the earlier part knew of it
            if np.array_equal(resume.beta, self.state.beta):
                self.now, self.rounding, self.is_certified = resume.certificate, resume.certificate.rounding, True
        self.progress, self.idle = _Progress(self.steps, self.state.beta), 0

    def _begin(self, resume: Solution | np.ndarray | None) -> None:
        if isinstance(resume, Solution):
            _refuse_other_data(resume.problem, self.asked)
        if isinstance(resume, Solution) and self._is_own(resume):
            self.state = copy.deepcopy(resume.state)
            self.steps, self.trace = resume.n_iter, Trace(list(resume.trace))
            self.began -= self.trace[-1].seconds
            return
        start: np.ndarray | None = None
        if resume is not None:
            start = resume.beta if isinstance(resume, Solution) else np.asarray(resume, dtype=np.float64)
            if start.shape != (self.problem.n,) or not np.isfinite(start).all():
                raise ValueError(
                    f"resume must hold {self.problem.n} coefficients, one finite number per point; got shape {start.shape}"
                    f"{'' if np.isfinite(start).all() else ' with NaN or infinity in it'}."
                )
            start = self.problem.feasible(start)
        self.state = self.solver.init(self.problem, start)
        self._refuse_other_state()

    def _refuse_other_state(self) -> None:
        """Refuse what ``init`` returned, if it is not what one has to return."""
        shape = (self.problem.n,)
        for name in ("beta", "residual"):
            value: Any = getattr(self.state, name, None)
            is_array = isinstance(value, np.ndarray)
            if not is_array or value.shape != shape or value.dtype != np.float64:
                found = f"{value.dtype} of shape {value.shape}" if is_array else f"a {type(value).__name__}"
                raise TypeError(
                    f"init of solver {name_of(self.solver)} has to return a state with beta and residual, arrays of {shape[0]} "
                    f"float64, as zerogap.solvers.State says; got a {type(self.state).__name__} whose {name} is {found}."
                )

    def _checked(self, step: Any) -> tuple[Any, Info]:
        """Return what a step returned, if it is what one has to return."""
        if not (isinstance(step, tuple) and len(step) == 2 and isinstance(step[1], Info)):
            found = (
                f"({', '.join(type(part).__name__ for part in step)})"
                if isinstance(step, tuple)
                else type(step).__name__
            )
        elif not isinstance(step[1].iterations, int | np.integer) or step[1].iterations < 0:
            found = f"Info({step[1].iterations!r}), and iterations are a whole number"
        else:
            return step
        raise TypeError(
            f"A step of solver {name_of(self.solver)} has to return its state and an Info, as zerogap.solvers.Solver says; got "
            f"{found}."
        )

    def _sum_is_exact(self) -> bool:
        """Whether the sum of the coefficients at the start is right: a solver that begins by exchanges may leave a little."""
        problem, beta = self.problem, self.state.beta
        size = float(np.abs(beta).sum())
        return size == 0.0 or bool(abs(problem.excess(beta)) <= 2.0 * UNIT * size)

    def _is_own(self, resume: Solution) -> bool:
        """Whether a solution is that of an earlier part of this run."""
        return resume.state is not None and resume.problem is self.asked and resume.solver == self.solver

    def last_step(self, max_steps: int | None) -> float:
        """Return the step at which a limit on the iterations from here on ends the run."""
        return math.inf if max_steps is None else self.steps + max_steps

    def rows(self, per_row: int, last: float) -> Iterator[TraceRow]:
        """The loop: yield a row at the start and after every step of the solver; in the end ``status`` says why it ended."""
        while True:
            yield self.record()
            try:
                status = self.verdict()
            except Exceeded:  # in a certificate, of which nothing has come: the limit says how the run ends
                status = None
            self.status = status or self.limit_reached(last)
            if self.status is not None:
                return
            self.advance(int(min(per_row, last - self.steps)))

    def advance(self, most: int) -> None:
        """Let the solver make at most so many iterations."""
        if np.isinf(self.largest):
            self._refresh()
        self.before, before = self.now, self.state.beta.copy()
        try:
            step = self.solver.step(self.problem, self.state, most, self.stop.kkt_target(self._as_if_stretched()))
            self.state, self.info = self._checked(step)
        except Exceeded:  # a product that was not finished has changed nothing
            self.info = Info(0)
        self.steps += self.info.iterations
        if self.info.is_pending:
            self.before = None
        if self.info.iterations or np.isfinite(self.info.drift):
            self.told += self.info.drift
        self.is_fresh = self.is_certified = False
        if not np.isfinite(self.state.beta).all():  # beyond float64: the last point that was not is kept
            self.is_finite = False
            self.state.beta[:] = before
            self._refresh()
        if self._can_be_expensive:
            self.largest = max(self.largest, self._size())
        if self.steps - self.refreshed_at >= REFRESH_EVERY and not self._is_known_to_be_sharp():
            self._refresh()
        self.now = self.problem.estimate(self.state.beta, self.state.residual, self.rounding)
        if not self._is_met() and self.stop.is_met(self._as_if_stretched(), self.before):
            self._go_to_stretched()

    def _is_known_to_be_sharp(self) -> bool:
        """Whether residuals that would take long to compute afresh are off by next to nothing, as the solver tells."""
        return self._is_expensive() and self.told <= SHARP * self.now.kkt_violation

    def _as_if_stretched(self) -> Certificate:
        """Return what the certificate will be once margins are long enough, if the solver leaves that to the end.

        Where the cap is far above the coefficients a margin that is a little short costs far more than its coefficient, and
        without this pairs would go on until none is.  Where a gap is far off yet, or hardly more than rounding, other ways
        are shorter.
        """
        now = self.now
        if not getattr(self.solver, "leaves_stretching", False) or self._is_met():
            return now
        longer = self.problem.stretched(self.state.beta, self.state.residual)
        if longer is None or not (gap := self._stretched_gap(longer)) < now.gap:
            return now
        if self.problem.product_error(self.state.beta) * float(np.abs(longer).sum()) > ROUNDING_STRETCHED * gap:
            return now
        stretched = replace(now, gap=gap, primal=now.dual + gap)
        return stretched if self.stop.is_met(replace(stretched, gap=NEAR_STRETCHED * gap), self.before) else now

    def _go_to_stretched(self) -> None:
        """Make margins as long as they are to be; a limit that comes before leaves the point as it is."""
        longer = self.problem.stretched(self.state.beta, self.state.residual)
        if longer is not None:
            with suppress(Exceeded):
                self._move_to(longer)
                self.now = self.problem.estimate(self.state.beta, self.state.residual, self.rounding)

    def _stretched_gap(self, longer: np.ndarray) -> float:
        """Return about the gap of margins that were made longer.

        None is short of one then: they cost what they are longer than one now, what they are stretched by, and about as much
        again for rounding.
        """
        beta = self.state.beta
        return 2.0 * float(np.abs(longer - beta).sum()) - float(product(beta, self.state.residual))

    def _size(self) -> float:
        scale = float(np.abs(self.problem.gram.diagonal).max())
        return float(np.abs(self.state.residual).max() + np.abs(self.state.beta).sum() * scale)

    def _refresh(self) -> None:
        """Let no rounding error of the solver's running arrays into what follows."""
        with suppress(Exceeded):  # both arrays stay as they are, in step with each other
            self._move_to(self.state.beta.copy())

    def _move_to(self, beta: np.ndarray) -> None:
        """Go to a point, with the right sum and the residual from the data."""
        beta = self.problem.restore_sum(beta)
        residual = self.problem.residual(beta)
        self.state.beta[:], self.state.residual[:] = beta, residual
        self.is_fresh, self.refreshed_at = True, self.steps
        self.largest, self.told = self._sizes()

    def _sizes(self) -> tuple[float, float]:
        """Return the size of what is summed, and how far residuals just computed are off, where that may be asked."""
        return (self._size(), self.problem.product_error(self.state.beta)) if self._can_be_expensive else (0.0, 0.0)

    def _certify(self, *, is_last: bool = False) -> None:
        """Certify from the data: first cheaply, then in twice the precision, if rounding is what the rule is not met for.

        At the end of a run that is worth its while also where rounding is most of what is known.
        """
        self._refuse_infeasible()
        is_told = not self.is_fresh and np.isfinite(self.told)
        if is_told and self._is_expensive() and self._sum_is_right() and self._agrees():
            self.now = self.problem.certify(self.state.beta, self.state.residual, drift=self.told)
            if self._is_met():
                self.rounding, self.is_certified, self.drift = self.now.rounding, True, self.told
                return
        if not self.is_fresh:
            self._refresh()
        is_cut = not self.is_fresh  # by a limit
        if is_cut and not self._can_be_expensive:  # how far the residual is off is not known
            raise Exceeded
        drift = self.drift = self._drift() if is_cut else 0.0
        self._appraise(drift)
        for from_data in (False, True):  # a sum of kernel values as they are is cheap, and often precise enough
            if self._is_met() or not (self._is_met(rounding=0.0) or (is_last and self.now.rounding > self.now.gap)):
                break
            with suppress(Exceeded):
                self._appraise(drift, precisely=True, from_data=from_data)
        self.rounding, self.is_certified = self.now.rounding, True

    def _appraise(self, drift: float, **digits: bool) -> None:
        """Certify with so many digits; where rounding alone is in the way, once more with margins that are longer."""
        self.now = self.problem.certify(self.state.beta, self.state.residual, drift=drift, **digits)
        if self.is_fresh and self._is_met(rounding=0.0) and not self._is_met() and self._stretch():
            self.now = self.problem.certify(self.state.beta, self.state.residual, **digits)

    def _stretch(self) -> bool:
        """Make margins longer by what rounding may have taken from them, if the rule can be met then; return whether so."""
        longer = self.problem.stretched(self.state.beta, self.state.residual, self.now.rounding)
        if longer is None:
            return False
        if not self._is_met(gap=self._stretched_gap(longer), rounding=0.0):
            return False
        self._move_to(longer)
        return True

    def _agrees(self) -> bool:
        """Whether the residual of some points is what the data say, but for what the solver has told."""
        problem, beta = self.problem, self.state.beta
        rows = np.unique(np.linspace(0, problem.n - 1, LOOKED_AT).astype(int))
        part = problem.gram.part_of_product(rows, beta)
        off = np.abs(self.state.residual[rows] - (problem.target[rows] - part - (problem.ridge * beta)[rows]))
        return bool((off <= self.told + problem.product_error(beta) + 8.0 * UNIT * self._size()).all())

    def _sum_is_right(self) -> bool:
        """Whether the coefficients have the sum they are to have, but for rounding of what they are now."""
        return abs(self.problem.excess(self.state.beta)) <= WRONG_SUM * float(np.abs(self.state.beta).sum())

    def _refuse_infeasible(self) -> None:
        """Refuse a point outside the box, or with another sum, by more than rounding: its "gap" would prove nothing.

        Coefficients that were large on their way here have left their rounding in the sum, which may be more than all of them
        now: ``_refresh`` puts that right.  They may have been anywhere in their box.
        """
        problem, beta = self.problem, self.state.beta
        k, excess = _outside(beta, problem.lower, problem.upper), problem.excess(beta)
        if k >= 0:
            found = f"coefficient {k} is {beta[k]:g}, outside its box of {problem.lower[k]:g} to {problem.upper[k]:g}"
        elif abs(excess) > WRONG_SUM * float((problem.upper - problem.lower).sum()):
            found = f"the coefficients sum to {float(beta.sum()):g}, not to {problem.total:g}"
        else:
            return
        raise RuntimeError(
            f"Solver {name_of(self.solver)} left a point that is not feasible: {found}. Every step has to return a feasible "
            "point, as zerogap.solvers.Solver and docs/add-a-solver.md say."
        )

    def _is_met(self, **changes: Any) -> bool:
        return self.stop.is_met(replace(self.now, **changes) if changes else self.now, self.before)

    def record(self) -> TraceRow:
        """Return the row of the trace that says where the run is, and keep it if anything has happened since the last."""
        row = TraceRow(
            self.steps,
            time.perf_counter() - self.began,
            self.now.dual,
            self.now.kkt_violation,
            self.now.relative_gap,
            self.problem.gram.evaluations,
            int(np.count_nonzero(self.state.beta)),
        )
        if not self.trace or self.trace[-1].step < row.step:
            self.trace.rows.append(row)
        return row

    def limit_reached(self, last: float) -> Status | None:
        """Return the limit that ends the run, or None."""
        return cut_short(self.limit) or (Status.MAX_STEPS if self.steps >= last else None)

    def verdict(self) -> Status | None:
        """Return how the run ends, or None if it goes on."""
        if self.info.is_unbounded or self.problem.is_unbounded(self.state.beta, self.state.residual):
            self._certify()
            # Else the hulls are close, seen from the origin, but do not meet; rounding may hide that.
            if not self.problem.has_margin(self.now) and not self.problem.has_margin(
                self.problem.certify(self.state.beta, precisely=True)
            ):
                has_grown = not self.now.dual < 0  # else rounding has led the point astray, not a dual without bound
                return Status.UNBOUNDED if self.problem.may_be_unbounded and has_grown else Status.PRECISION
        if self.info.is_divergent:
            return Status.DIVERGED
        if not self.is_finite:
            return Status.PRECISION
        if self.info.is_done or self._is_met():
            if not self.is_certified:
                self._certify()
            if self._is_met():
                return Status.CONVERGED
            if self._is_met(rounding=0.0) and not self._is_met(gap=0.0):  # however small the gap becomes
                return Status.PRECISION
        status = self._stalled()
        if status not in (Status.STALLED, Status.NO_PROGRESS):
            return status
        self._certify(is_last=True)
        if self._is_met():
            return Status.CONVERGED
        return status if self._is_met(gap=0.0) else Status.PRECISION

    def _stalled(self) -> Status | None:
        if is_over() or (self.info.iterations > 0 and self.steps < UNMOVED_AFTER and not self.info.is_done):
            return None  # the step may have been cut short, or it is too soon to tell
        if self.info.is_pending:  # that the point has not moved tells nothing
            self.progress.moved_at += self.info.iterations
        beta, problem = self.state.beta, self.problem
        rounding = problem.rounding(beta)
        size = product(np.abs(beta), np.abs(problem.target) + np.abs(self.state.residual))
        dual_rounding = float(np.finfo(float).eps * size)
        if self.progress.note(self.steps, self.now, beta, dual_rounding):
            self.idle = 0
        elif self.info.iterations == 0 or self.now.kkt_violation <= 10 * rounding:
            self.idle += 1
            self._refresh()
        is_at_end = self.info.is_done and (self.idle >= 3 or self.info.iterations == 0)
        if is_at_end and self.info.is_own_rule:
            return Status.EXHAUSTED
        patience = getattr(self.solver, "patience", 1)
        if is_at_end or self.idle >= 10 or self.progress.is_over(self.steps, problem.n, patience):
            return Status.STALLED if self.now.kkt_violation <= 100 * rounding else Status.NO_PROGRESS
        return None

    def solution(self, status: Status) -> Solution:
        """Return the point where the run is, with its certificate."""
        if not self.is_certified:
            self._certify_end(status)
        is_astray = self.now.dual < 0.0 or np.isinf(self.now.relative_gap)
        beta = self._better_start() if is_astray else self.state.beta.copy()
        return Solution(
            beta,
            self.now.bias,
            self.now,
            status,
            self.steps,
            self.trace,
            self.asked,
            self.solver,
            self.state,
            self.drift,
        )

    def _better_start(self) -> np.ndarray:
        """Return the point solvers start from, if rounding has led to a worse one: its dual objective is zero."""
        start = self.problem.feasible_start()
        with unlimited():
            known = self.problem.certify(start)
        if not known.gap < self.now.gap:
            return self.state.beta.copy()
        self.now = known
        return start

    def _certify_end(self, status: Status) -> None:
        """Certify the point a run ends at; of one that a limit has ended from the running residual, if that is cheaper."""
        asked_to_end = (Status.MAX_TIME, Status.INTERRUPTED, Status.MAX_STEPS, Status.STOPPED)
        with unlimited():
            is_late = status in (Status.MAX_TIME, Status.INTERRUPTED)
            if is_late and self._is_expensive() and self._sum_is_right():
                self._refuse_infeasible()
                self.drift = min(self._drift(), self.told if self._agrees() else np.inf)
                self.now = self.problem.certify(self.state.beta, self.state.residual, drift=self.drift)
            else:
                self._certify(is_last=status not in asked_to_end)

    @property
    def _can_be_expensive(self) -> bool:
        return self.problem.n**2 > WORK_PAST_LIMIT

    def _is_expensive(self) -> bool:
        """Whether the certificate from the data would take long to compute."""
        return (
            self._can_be_expensive
            and not self.is_fresh
            and self.problem.gram.work_of(self.state.beta) > WORK_PAST_LIMIT
        )

    def _drift(self) -> float:
        """Return how far the running residual can be off: every iteration sums up to m products of at most this size.

        By way of w the products with it, one for each feature, come in besides.
        """
        gram = self.problem.gram
        m = np.count_nonzero(self.state.beta) + 8.0 + (gram.X.shape[1] if gram.kernel.is_linear else 0.0)
        return 2.0 * UNIT * m * (self.steps - self.refreshed_at + 1.0) * self.largest


def _refuse_other_data(old: DualProblem, new: DualProblem) -> None:
    """Refuse to go on from the solution of other points, targets or another kernel: its coefficients mean nothing here."""
    if old is new:
        return
    if not old.gram.is_same_as(new.gram) or not np.array_equal(old.target, new.target):
        raise ValueError(
            "resume is the solution of other data, or of another kernel. Start without it, or pass its coefficients, "
            "resume=solution.beta, if you mean them as a mere starting point."
        )


@jit
def _outside(beta, lower, upper):
    """Return a coefficient that is outside its box by more than rounding, the worst; -1 if none is."""
    worst, where = 0.0, -1
    for k in range(beta.size):
        outside = max(lower[k] - beta[k], beta[k] - upper[k]) - (OUTSIDE_BOX * abs(beta[k]) + TINY)
        if outside > worst:
            worst, where = outside, k
    return where
