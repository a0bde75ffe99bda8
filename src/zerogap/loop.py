"""solve() and iterate(): the only solver loop, with its outcomes and its trace."""

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from zerogap import validation
from zerogap.certificate import TINY, Certificate
from zerogap.compiled import jit
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.limits import Exceeded, Limit, is_over, limits, unlimited
from zerogap.problem import DualProblem
from zerogap.solvers import Info, Solver, get_solver, name_of
from zerogap.stopping import RelativeGap, Stop
from zerogap.threads import alone
from zerogap.wording import count, duration, number

# A trace row is recorded, and the stopping rule tested, after about this many updated residuals,
# a tenth of a second: often enough for Ctrl-C, time limits and the trace, too seldom to cost anything.  Counting work
# instead of time keeps runs repeatable.
WORK_PER_TRACE_ROW = 100_000_000

# Kernel values that are computed for the certificate after a limit was reached; where it takes more, it is made from the
# running residual, and says how far that may be off.
WORK_PAST_LIMIT = 20_000_000

# Kernel values, up to which a run does without threads of BLAS.
MOST_ALONE = 4_000_000

# Points whose residual is computed from the data where the solver is believed about the others.
LOOKED_AT = 100

# Running residuals gather rounding errors; after this many iterations they are computed afresh.
REFRESH_EVERY = 100_000

# A solver that makes no progress worth the name in this many iterations (or 100 n) gets no further; one whose iterations are
# smaller than a pair's has a ``patience`` of so many times that.
PATIENCE = 1_000_000

# Signs that come sooner: a point that has not moved at all in so many iterations (and 2 n); a gap and a dual objective that
# have changed by less than this share of the gap, or a dual objective that has grown by rounding alone, in so many (or 10 n).
UNMOVED_AFTER, FROZEN_AFTER, FROZEN = 1000, 50_000, 1e-6

# What rounding can do to a point that is to be feasible: a few roundings of a coefficient at its bound; and of their sum, which
# is put right whenever the residual is computed afresh, one for each of the ``REFRESH_EVERY`` iterations in between.
OUTSIDE_BOX, WRONG_SUM = 16.0 * UNIT, 1e-9


class Status(Enum):
    """How a run ended, and what to do about it.

    Attributes
    ----------
    CONVERGED : Status
        The stopping rule is met, by the certificate.
    MAX_STEPS, MAX_TIME, INTERRUPTED, STOPPED : Status
        A limit, Ctrl-C, the callback or the loop over :func:`zerogap.iterate` has ended the run.
    STALLED, PRECISION : Status
        Rounding errors hold it up, or are larger than the gap.
    NO_PROGRESS, EXHAUSTED, DIVERGED : Status
        The solver does not get further, or ended by a rule of its own, or its learning rate is too large.
    UNBOUNDED : Status
        The dual objective has no bound.
    advice : str
        What happened and what to do.

    Examples
    --------
    >>> from zerogap import Status
    >>> Status.MAX_TIME.advice
    'the time limit was reached; raise it, or resume from this solution'
    """

    CONVERGED = "the stopping rule is met, by the certificate"
    MAX_STEPS = "the limit on iterations was reached; raise it, loosen the tolerance, or resume from this solution"
    MAX_TIME = "the time limit was reached; raise it, or resume from this solution"
    INTERRUPTED = "interrupted; resume from this solution to go on"
    STOPPED = "stopped by the callback, or by the loop that stepped through it; resume from this solution to go on"
    STALLED = (
        "no further progress: rounding errors or a badly conditioned kernel hold it up; scale the features, lower C, "
        "or accept this gap"
    )
    PRECISION = (
        "float64 has no more digits for this data, and rounding errors count as part of the gap; centre and scale the features "
        "(StandardScaler), lower C or gamma, or accept this gap"
    )
    NO_PROGRESS = (
        "this solver no longer makes progress, although the optimum is not reached; use another, such as 'simple-svm', and "
        "scale the features"
    )
    EXHAUSTED = "the solver's own rule ended it short of the optimum; use a solver with a guarantee, such as 'smo'"
    DIVERGED = (
        "the dual objective fell: the learning rate is too large for some point, above 2 / K_ii; lower it, or leave it out for "
        "1 / K_ii"
    )
    UNBOUNDED = (
        "the dual objective has no bound: the classes cannot be separated with this kernel, so no hard margin exists, or the "
        "kernel is no inner product; use a finite C, with loss='hinge' if the kernel is indefinite"
    )

    @property
    def advice(self) -> str:
        """What happened and what to do."""
        return self.value

    @classmethod
    def of(cls, certificate: Certificate, tol: float) -> "Status":
        """Return the status of a point that was not found by a run: by its certificate alone.

        Parameters
        ----------
        certificate : Certificate
            That of the point.
        tol : float
            Relative gap asked for.

        Returns
        -------
        Status
            CONVERGED, PRECISION or STALLED.
        """
        if certificate.relative_gap <= tol:
            return cls.CONVERGED
        is_near = certificate.gap <= tol * abs(certificate.primal) < np.inf  # nothing is known beyond float64
        return cls.PRECISION if is_near else cls.STALLED

    # A stored status is its name: the words of advice may change.

    @classmethod
    def _missing_(cls, value: object) -> "Status | None":
        return cls.__members__.get(str(value))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return self.__reduce__()


# Results.


class TraceRow(NamedTuple):
    """A row of the trace: where a run is after so many iterations.

    Attributes
    ----------
    step : int
        Iterations so far.
    seconds : float
        Time so far.
    dual : float
        Dual objective, growing.
    violation : float
        KKT violation.
    gap : float
        Relative duality gap.
    kernel_evaluations : int
        Kernel values computed so far.
    support : int
        Nonzero coefficients.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> solution = solve(DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0))
    >>> solution.trace[0].step, solution.trace[0].support
    (0, 0)
    """

    step: int
    seconds: float
    dual: float
    violation: float
    gap: float
    kernel_evaluations: int
    support: int

    def __repr__(self) -> str:
        return (
            f"TraceRow(step {count(self.step)}: relative gap {self.gap:.2g}, dual {number(self.dual, 7)}, violation "
            f"{self.violation:.2g}, {count(self.support, 'support vector')}, {count(self.kernel_evaluations, 'kernel value')}, "
            f"{duration(self.seconds)})"
        )


class Trace:
    """The history of a run, a table: ``trace["gap"]`` is a column, ``trace[3]`` a row.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns: step, seconds, dual, violation, gap, kernel_evaluations, support.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> trace = solve(DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)).trace
    >>> bool(trace["dual"][-1] > trace["dual"][0])
    True
    """

    columns = TraceRow._fields

    def __init__(self, rows: list[TraceRow] | None = None):
        self.rows = rows or []

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TraceRow]:
        return iter(self.rows)

    def __getitem__(self, key: str | int) -> Any:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"{key!r} is no column of the trace; it has {', '.join(self.columns)}.")
            return np.array([getattr(row, key) for row in self.rows])
        return self.rows[key]

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists.

        Returns
        -------
        dict of str to list
            Every column by its name.
        """
        return {name: self[name].tolist() for name in self.columns}

    def __repr__(self) -> str:
        lines = [
            f"{'step':>9} {'seconds':>8} {'dual':>14} {'violation':>10} {'gap':>9} {'evaluations':>12} {'support':>8}"
        ]
        for row in self._shown():
            lines.append(
                "      ..."
                if row is None
                else f"{row.step:>9} {row.seconds:>8.3f} {row.dual:>14.8g} {row.violation:>10.2e} {row.gap:>9.2e} "
                f"{row.kernel_evaluations:>12} {row.support:>8}"
            )
        return "\n".join(lines)

    def _shown(self) -> "list[TraceRow | None]":
        """Return the rows that are shown; None stands for those left out."""
        return [*self.rows] if len(self) <= 12 else [*self.rows[:6], None, *self.rows[-5:]]

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_trace

        return of_trace(self, self._shown())


@dataclass(frozen=True)
class Solution:
    """A feasible point, its certificate, and how it was reached.

    Attributes
    ----------
    beta : array of shape (n,)
        Signed coefficients.
    bias : float
        The bias: f(x) = sum_i beta_i k(x_i, x) + bias.
    certificate : Certificate
        How far from the optimum the point is, from the data.
    status : Status
        How the run ended.
    n_iter : int
        Iterations of the solver; for SMO, pairs moved.
    trace : Trace
        The history of the run.
    problem : DualProblem
        What was solved.
    solver : Solver
        What it was solved by.
    state : object
        The solver's own, from which ``resume`` goes on.
    support : array of int
        Indices of the nonzero coefficients.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> solution = solve(DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0))
    >>> solution.status.name, solution.support.size
    ('CONVERGED', 3)
    """

    beta: np.ndarray
    bias: float
    certificate: Certificate
    status: Status
    n_iter: int
    trace: Trace
    problem: DualProblem = field(repr=False)
    solver: Solver = field(repr=False)
    state: Any = field(repr=False)

    @property
    def support(self) -> np.ndarray:
        """Indices of the nonzero coefficients."""
        return np.flatnonzero(self.beta)

    def __repr__(self) -> str:
        took = f" and {duration(self.trace[-1].seconds)}" if len(self.trace) else ""
        return (
            f"Solution({self.status.name} by {name_of(self.solver)} after {count(self.n_iter, 'iteration')}{took}: "
            f"{self.certificate._in_words()}; {count(self.support.size, 'support vector')} of {count(self.beta.size, 'point')})"
        )

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_solution

        return of_solution(self)


# The loop.


def solve(
    problem: DualProblem,
    solver: str | Solver = "auto",
    *,
    stop: Stop = RelativeGap(1e-4),
    max_steps: int | None = None,
    max_time: float | None = None,
    callback: Callable[[Any, TraceRow], Any] | None = None,
    resume: "Solution | np.ndarray | None" = None,
    trace_every: int | None = None,
    random_state: int = 0,
) -> Solution:
    """Solve a dual problem.

    Parameters
    ----------
    problem : DualProblem
        What to solve.
    solver : str or Solver, default "auto"
        A name, such as "smo" or "smo-platt", or a configured solver.
    stop : Stop, default RelativeGap(1e-4)
        When to stop; what the solver claims is checked by a certificate computed from the data.
    max_steps : int, optional
        Limit on the solver's iterations in this call; those of the run that ``resume`` goes on with do not count.
    max_time : float, optional
        Limit on this call's seconds.
    callback : callable, optional
        Called as ``callback(state, row)`` for every row of the trace; a true result ends the run.  Copy what you keep.
    resume : Solution or array of shape (n,), optional
        A solution to go on from, or signed coefficients to start at.
    trace_every : int, optional
        Iterations between two rows of the trace; by default as many as keep its cost negligible.
    random_state : int, default 0
        Seed of the solvers that draw points at random.

    Returns
    -------
    Solution
        Always a feasible point with its certificate; ``status`` says how the run ended.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, RelativeGap, datasets, solve
    >>> X, y = datasets.two_spirals()
    >>> solution = solve(DualProblem.hinge(Gram(X), y, C=10.0), "smo", stop=RelativeGap(1e-8))
    >>> solution.status.name, bool(solution.certificate.relative_gap <= 1e-8)
    ('CONVERGED', True)
    """
    solver = get_solver(solver, random_state)
    check_limits(stop, max_steps, max_time, trace_every)
    per_row = trace_every or int(np.clip(WORK_PER_TRACE_ROW // problem.n, 20, 20_000))
    few = alone(problem.n**2, MOST_ALONE)
    # Numbers beyond float64 are found by tests of ours, and end a run; NumPy need not warn of them.
    with problem.gram.exclusive() as gram, limits(max_time) as limit, few, np.errstate(over="ignore", invalid="ignore"):
        try:
            run = _Run(problem, gram, solver, stop, resume, limit)
        except Exceeded:
            return _not_begun(problem, solver, resume, limit)
        for row in run.rows(per_row, run.last_step(max_steps)):
            if callback is not None and callback(run.state, row):
                return run.solution(Status.STOPPED)
        assert run.status is not None
        return run.solution(run.status)


def iterate(
    problem: DualProblem,
    solver: str | Solver = "smo",
    *,
    stop: Stop = RelativeGap(1e-4),
    max_steps: int | None = None,
    max_time: float | None = None,
    resume: "Solution | np.ndarray | None" = None,
    trace_every: int = 1,
    random_state: int = 0,
) -> "Steps":
    """Step through a solver: the loop of :func:`zerogap.solve`, which stands still after every step.

    Parameters
    ----------
    problem : DualProblem
        What to solve.
    solver : str or Solver, default "smo"
        A name, or a solver of one's own: an object with ``init`` and ``step``.
    stop : Stop, default RelativeGap(1e-4)
        When to stop; the steps end where a certificate says that it is met.
    max_steps : int, optional
        Limit on the solver's iterations in this call.
    max_time : float, optional
        Limit on the seconds of the solver; what is done between two steps does not count.
    resume : Solution or array of shape (n,), optional
        A solution to go on from, or signed coefficients to start at.
    trace_every : int, default 1
        Iterations of a step: 1 shows every move that the solver makes.
    random_state : int, default 0
        Seed of the solvers that draw points at random.

    Returns
    -------
    Steps
        An iterator over ``(state, info)``.  ``state.beta`` is a feasible point, ``state.residual`` goes with it, ``info`` is
        the row of the trace: step, seconds, dual, violation, gap, kernel_evaluations, support.  Arrays of the state are updated
        in place: copy what you keep.  ``steps.solution`` is the certified solution where the run is, at the end and before it.

    Notes
    -----
    Nothing is held between two steps, so a loop may be left at any time.  Ctrl-C raises ``KeyboardInterrupt``, as in any loop
    of Python, but never in the middle of a move: the steps can be gone on with, and ``solution`` read.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, iterate
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]], "linear"), [-1, -1, 1, 1], C=10.0)
    >>> steps = iterate(problem, "smo")
    >>> for state, info in steps:
    ...     print(info.step, state.beta.round(3).tolist(), round(info.dual, 3))
    1 [0.0, -2.0, 2.0, 0.0] 2.0
    >>> steps.solution.status.name, round(steps.solution.bias, 3)
    ('CONVERGED', -3.0)
    """
    check_limits(stop, max_steps, max_time, trace_every)
    return Steps(problem, get_solver(solver, random_state), stop, max_steps, max_time, resume, trace_every)


class Steps:
    """A run that stands still between two steps, an iterator over ``(state, info)``.  Made by :func:`zerogap.iterate`.

    Attributes
    ----------
    state : object
        The solver's own, with ``beta`` and ``residual``; before the first step its start.
    trace : Trace
        The rows so far, that of the start included.
    status : Status or None
        How the run ended; None as long as it can go on.
    solution : Solution
        The point where the run is, with its certificate; STOPPED where the run has not ended.  It can be resumed.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, iterate
    >>> steps = iterate(DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0), "smo-platt")
    >>> state, info = next(steps)
    >>> info.step, steps.status is None, steps.solution.status.name
    (1, True, 'STOPPED')
    """

    def __init__(
        self,
        problem: DualProblem,
        solver: Solver,
        stop: Stop,
        max_steps: int | None,
        max_time: float | None,
        resume: "Solution | np.ndarray | None",
        trace_every: int,
    ):
        self._problem, self._solver, self._every, self._left = problem, solver, trace_every, max_time
        self._run: _Run | None = None
        self._paused = 0.0  # when the last step ended
        self._solution: Solution | None = None  # once the run has ended
        with self._at_work() as limit:
            try:
                self._run = _Run(problem, problem.gram, solver, stop, resume, limit)
            except Exceeded:
                self._solution = _not_begun(problem, solver, resume, limit)
        _raise_interrupt(limit)
        if self._run is not None:
            self._last = self._run.last_step(max_steps)
            self._rows = self._run.rows(self._every, self._last)
            next(self._rows)  # the start

    @contextmanager
    def _at_work(self) -> Iterator[Limit]:
        """Work for a step as ``solve`` does, under what is left of the limit; the clock of the trace stands still between."""
        gram, few = self._problem.gram.exclusive(wait=True), alone(self._problem.n**2, MOST_ALONE)
        with gram, limits(self._left) as limit, few, np.errstate(over="ignore", invalid="ignore"):
            began = time.perf_counter()
            if self._run is not None:
                self._run.began += began - self._paused
                self._run.limit = limit
            try:
                yield limit
            finally:
                self._paused = time.perf_counter()
                if self._left is not None:
                    self._left = max(self._left - (self._paused - began), 0.0)

    def __iter__(self) -> "Steps":
        return self

    def __next__(self) -> tuple[Any, TraceRow]:
        run = self._run
        if run is None or self.status is not None:
            raise StopIteration
        before, row = run.steps, None
        with self._at_work() as limit:
            for row in self._rows:
                if row.step > before or limit.was_interrupted:  # else nothing has moved
                    break
        if limit.was_interrupted:
            run.status, self._rows = None, run.rows(self._every, self._last)
            next(self._rows)
            _raise_interrupt(limit)
        if run.status is not None:
            raise StopIteration
        assert row is not None
        return run.state, row

    @property
    def state(self) -> Any:
        """The solver's own state."""
        return None if self._run is None else self._run.state

    @property
    def trace(self) -> Trace:
        """The rows so far."""
        return Trace() if self._run is None else self._run.trace

    @property
    def status(self) -> Status | None:
        """How the run ended; None as long as it can go on."""
        return self._run.status if self._run is not None else self.solution.status

    @property
    def solution(self) -> Solution:
        """The point where the run is, with its certificate."""
        if self._solution is not None:
            return self._solution
        assert self._run is not None
        run, status = self._run, self._run.status
        if status is None:  # nothing that the certificate changes is the run's own
            run = copy.copy(run)
            run.state, run.trace = copy.deepcopy(run.state), Trace(list(run.trace))
        with self._at_work():
            solution = run.solution(status or Status.STOPPED)
        if status is not None:
            self._solution = solution
        return solution

    def __repr__(self) -> str:
        if self._run is None:
            return f"Steps({name_of(self._solver)}: not begun, {self.solution.status.name})"
        run, said = self._run, self._run.status.name if self._run.status else "can go on"
        return (
            f"Steps({name_of(run.solver)}: {said} after {count(run.steps, 'iteration')}, relative gap "
            f"{run.now.relative_gap:.2g})"
        )


def _raise_interrupt(limit: Limit) -> None:
    """A loop of the user's own ends by Ctrl-C as any other does; the run stays as it is."""
    if limit.was_interrupted:
        raise KeyboardInterrupt


def _not_begun(problem: DualProblem, solver: Solver, resume: Any, limit: Limit) -> "Solution":
    """Return the starting point of a run whose limit was reached before anything was known of it."""
    start = getattr(resume, "beta", resume)
    beta = problem.feasible_start() if start is None else problem.feasible(start)
    status = Status.INTERRUPTED if limit.was_interrupted else Status.MAX_TIME
    return Solution(beta, 0.0, Certificate.nothing(), status, 0, Trace(), problem, solver, None)


def default_max_steps(n: int) -> int:
    """Return a limit where the user has set none: so many pairs end a run that crawls, with a warning that says so."""
    return max(10_000_000, 100 * n)


def check_limits(stop: Any, max_steps: Any, max_time: Any, trace_every: Any) -> None:
    """Refuse limits and rules that mean nothing."""
    if not isinstance(stop, Stop):
        raise TypeError(
            f"stop must be a stopping rule, such as RelativeGap(1e-4), KKTViolation(1e-3) or both joined with |; got {stop!r}."
        )
    for name, value in (("max_steps", max_steps), ("trace_every", trace_every)):
        if value is not None and (not isinstance(value, int | np.integer) or value < (name == "trace_every")):
            raise ValueError(f"{name} must be a whole number of iterations, or None for no limit; got {value!r}.")
    if max_time is not None:
        validation.check_positive("max_time", max_time, zero=True, infinite=True, advice="It is in seconds.")


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


class _Run:
    """The moving parts of the loop: state, trace, and the signs that nothing moves any more."""

    def __init__(
        self,
        problem: DualProblem,
        gram: Gram,
        solver: Solver,
        stop: Stop,
        resume: "Solution | np.ndarray | None",
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
        self.refreshed_at = self.steps
        # Since then: the largest of residuals and the sums they are made of, and how far off they are by what the solver says.
        self.largest, self.told = self._sizes()
        if isinstance(resume, Solution) and self._is_own(resume):
            self.is_fresh, self.largest, self.told = False, np.inf, np.inf  # what the earlier part knew of it
            if np.array_equal(resume.beta, self.state.beta):
                self.now, self.rounding, self.is_certified = resume.certificate, resume.certificate.rounding, True
        self.progress, self.idle = _Progress(self.steps, self.state.beta), 0

    def _begin(self, resume: "Solution | np.ndarray | None") -> None:
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

    def _is_own(self, resume: "Solution") -> bool:
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
        if np.isinf(self.largest):
            self._refresh()
        self.before, before = self.now, self.state.beta.copy()
        try:
            step = self.solver.step(self.problem, self.state, most, self.stop.kkt_target(self.now))
            self.state, self.info = self._checked(step)
        except Exceeded:  # a product that was not finished has changed nothing
            self.info = Info(0)
        self.steps += self.info.iterations
        if self.info.iterations or np.isfinite(self.info.drift):
            self.told += self.info.drift
        self.is_fresh = self.is_certified = False
        if not np.isfinite(self.state.beta).all():  # beyond float64: the last point that was not is kept
            self.is_finite = False
            self.state.beta[:] = before
            self._refresh()
        if self._can_be_expensive:
            self.largest = max(self.largest, self._size())
        if self.steps - self.refreshed_at >= REFRESH_EVERY:
            self._refresh()
        self.now = self.problem.estimate(self.state.beta, self.state.residual, self.rounding)

    def _size(self) -> float:
        scale = float(np.abs(self.problem.gram.diagonal).max())
        return float(np.abs(self.state.residual).max() + np.abs(self.state.beta).sum() * scale)

    def _refresh(self) -> None:
        """Let no rounding error of the solver's running arrays into what follows."""
        beta = self.problem.restore_sum(self.state.beta.copy())
        try:
            residual = self.problem.residual(beta)
        except Exceeded:  # both stay as they are, in step with each other
            return
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
                self.rounding, self.is_certified = self.now.rounding, True
                return
        if not self.is_fresh:
            self._refresh()
        is_cut = not self.is_fresh  # by a limit
        if is_cut and not self._can_be_expensive:  # how far the residual is off is not known
            raise Exceeded
        drift = self._drift() if is_cut else 0.0
        self.now = self.problem.certify(self.state.beta, self.state.residual, drift=drift)
        for from_data in (False, True):  # a sum of kernel values as they are is cheap, and often precise enough
            if self._is_met() or not (self._is_met(rounding=0.0) or (is_last and self.now.rounding > self.now.gap)):
                break
            with suppress(Exceeded):
                self.now = self.problem.certify(
                    self.state.beta, self.state.residual, precisely=True, from_data=from_data, drift=drift
                )
        self.rounding, self.is_certified = self.now.rounding, True

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
        if self.limit.was_interrupted:
            return Status.INTERRUPTED
        if self.limit.is_over:
            return Status.MAX_TIME
        return Status.MAX_STEPS if self.steps >= last else None

    def verdict(self) -> Status | None:
        """Return how the run ends, or None if it goes on."""
        if self.info.is_unbounded or self.problem.is_unbounded(self.state.beta, self.state.residual):
            self._certify()
            has_grown = not self.now.dual < 0  # else rounding has taken the point somewhere, not a dual without bound
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
        beta, problem = self.state.beta, self.problem
        rounding = problem.rounding(beta)
        dual_rounding = float(
            np.finfo(float).eps * (np.abs(beta) @ (np.abs(problem.target) + np.abs(self.state.residual)))
        )
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
        if not self.is_certified:
            self._certify_end(status)
        is_astray = self.now.dual < 0.0 or np.isinf(self.now.relative_gap)
        beta = self._better_start() if is_astray else self.state.beta.copy()
        return Solution(
            beta, self.now.bias, self.now, status, self.steps, self.trace, self.asked, self.solver, self.state
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
        cut_short = (Status.MAX_TIME, Status.INTERRUPTED, Status.MAX_STEPS, Status.STOPPED)
        with unlimited():
            is_late = status in (Status.MAX_TIME, Status.INTERRUPTED)
            if is_late and self._is_expensive() and self._sum_is_right():
                self._refuse_infeasible()
                self.now = self.problem.certify(self.state.beta, self.state.residual, drift=self._drift())
            else:
                self._certify(is_last=status not in cut_short)

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
