"""solve() and iterate(): the only solver loop, to its end or step by step."""

import copy
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.limits import Exceeded, Limit, heard, limits
from zerogap.problem import DualProblem
from zerogap.run import SolverRun
from zerogap.solution import Solution, Status, Trace, TraceRow, cut_short
from zerogap.solvers import Solver, get_solver, linear, linear_cd, name_of
from zerogap.solvers.linear_cd import LinearCD
from zerogap.stopping import RelativeGap, Stop
from zerogap.threads import alone
from zerogap.wording import count

# A trace row is recorded, and the stopping rule tested, after about this many updated residuals,
# a tenth of a second: often enough for Ctrl-C, time limits and the trace, too seldom to cost anything.  Counting work
# instead of time keeps runs repeatable.
WORK_PER_TRACE_ROW = 100_000_000

# Kernel values, up to which a run does without threads of BLAS.  A run in w has products of vectors alone: for these it takes
# its threads longer to wait for each other than to multiply.
MOST_ALONE = 4_000_000


def solve(
    problem: DualProblem,
    solver: str | Solver = "auto",
    *,
    stop: Stop = RelativeGap(1e-4),
    max_steps: int | None = None,
    max_time: float | None = None,
    callback: Callable[[Any, TraceRow], Any] | None = None,
    resume: Solution | np.ndarray | None = None,
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
    validation.check_problem(problem, solvers=solver)
    solver = get_solver(solver, random_state)
    check_limits(stop, max_steps, max_time, trace_every)
    per_row = trace_every or int(np.clip(WORK_PER_TRACE_ROW // problem.n, 20, 20_000))
    few = _alone(problem, solver)
    _know_of_ctrl_c(resume)
    # Numbers beyond float64 are found by tests of ours, and end a run; NumPy need not warn of them.
    with problem.gram.exclusive() as gram, limits(max_time) as limit, few, np.errstate(over="ignore", invalid="ignore"):
        try:
            run = SolverRun(problem, gram, solver, stop, resume, limit)
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
    resume: Solution | np.ndarray | None = None,
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
        Limit on the solver's iterations in this call; those of the run that ``resume`` goes on with do not count.
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
    validation.check_problem(problem, solvers=solver)
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
        resume: Solution | np.ndarray | None,
        trace_every: int,
    ):
        self._problem, self._solver, self._every, self._left = problem, solver, trace_every, max_time
        self._run: SolverRun | None = None
        self._paused = 0.0  # when the last step ended
        self._solution: Solution | None = None  # once the run has ended
        _know_of_ctrl_c(resume)
        with self._at_work() as limit:
            try:
                self._run = SolverRun(problem, problem.gram, solver, stop, resume, limit)
            except Exceeded:
                self._solution = _not_begun(problem, solver, resume, limit)
        _raise_interrupt(limit)
        if self._run is not None:
            self._last = self._run.last_step(max_steps)
            self._begin_rows(self._run)  # the start

    @contextmanager
    def _at_work(self) -> Iterator[Limit]:
        """Work for a step as ``solve`` does, under what is left of the limit; the clock of the trace stands still between."""
        gram, few = self._problem.gram.exclusive(wait=True), _alone(self._problem, self._solver)
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
        try:
            with self._at_work() as limit:
                for row in self._rows:
                    if row.step > before or limit.was_interrupted:  # else nothing has moved
                        break
        except KeyboardInterrupt:  # a second one, for which nothing is brought to its end
            self._begin_rows(run)
            raise
        if limit.was_interrupted:
            self._begin_rows(run)
            _raise_interrupt(limit)
        if run.status is not None:
            raise StopIteration
        assert row is not None
        return run.state, row

    def _begin_rows(self, run: SolverRun) -> None:
        """Go on where the run is."""
        run.status, self._rows = None, run.rows(self._every, self._last)
        next(self._rows)  # of where it is

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


def _alone(problem: DualProblem, solver: Solver) -> AbstractContextManager[None]:
    """Do without threads of BLAS where they do not pay."""
    is_in_w = isinstance(solver, LinearCD) or linear.suits(problem) or linear_cd.suits(problem)
    return alone(problem.n**2, math.inf if is_in_w else MOST_ALONE)


def _raise_interrupt(limit: Limit) -> None:
    """A loop of the user's own ends by Ctrl-C as any other does; the run stays as it is."""
    if limit.was_interrupted:
        heard()
        raise KeyboardInterrupt


def _know_of_ctrl_c(resume: Any) -> None:
    """Whoever goes on with a run that was interrupted knows of it."""
    if isinstance(resume, Solution):
        heard()


def _not_begun(problem: DualProblem, solver: Solver, resume: Any, limit: Limit) -> Solution:
    """Return the starting point of a run whose limit was reached before anything was known of it."""
    start = getattr(resume, "beta", resume)
    beta = problem.feasible_start() if start is None else problem.feasible(start)
    status = cut_short(limit) or Status.MAX_TIME
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
    validation.check_max_time(max_time, zero=True, infinite=True)
