"""Several solvers on one problem, under the same counters: one table, all traces."""

import copy
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from zerogap import validation
from zerogap.limits import Limit, is_over, limits
from zerogap.loop import check_limits, solve
from zerogap.problem import DualProblem
from zerogap.solution import Solution, TraceRow
from zerogap.solvers import SOLVERS, Solver, get_solver, name_of
from zerogap.stopping import RelativeGap

# Each solver first runs on so many of the points: loading or compiling code is part of no solver's time.  The larger
# problem is there because some solvers do things with many points that they do not do with few.
WARM_UP = (30, 1100)
WARM_UP_STEPS, WARM_UP_SECONDS = 2000, 0.5

REFERENCE = 1e-12  # relative gap of the point distances are measured from
REFERENCE_SECONDS = 30.0
TRACE_ROWS_AT_ONCE = 64

COLUMNS = ("solver", "status", "iterations", "kernel_evaluations", "seconds", "relative_gap", "support_vectors")


class Frame(NamedTuple):
    """Where a solver was after some iterations.

    Attributes
    ----------
    step : int
        Iterations so far.
    seconds : float
        Time so far.
    kernel_evaluations : int
        Kernel values computed so far.
    gap : float
        Relative duality gap, as in the trace.
    bias : float
        The bias that goes with the coefficients.
    support : array of shape (k,)
        Points whose coefficients are not zero.
    values : array of shape (k,)
        Their coefficients.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, compare
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]], "linear"), [-1, -1, 1], C=10.0)
    >>> [frame.support.tolist() for frame in compare(problem, ["smo"], frames=10)["smo"].frames]
    [[], [1, 2]]
    """

    step: int
    seconds: float
    kernel_evaluations: int
    gap: float
    bias: float
    support: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class Run:
    """The run of one solver: a row of the table, and its trace.

    Attributes
    ----------
    name : str
        The solver's.
    solution : Solution or None
        None if the solver cannot solve this problem, or was never started.
    reason : str
        Why not.
    seconds : float
        Time of the run, compilation left out.
    kernel_evaluations : int
        Kernel values computed.
    trace : dict of str to array
        Columns of the solution's trace, the margin, and the distance if that was asked for.
    why : str
        The status if there is no solution: REFUSED, or INTERRUPTED for those that Ctrl-C came before.
    frames : list of Frame
        The coefficients at some rows of the trace, if they were asked for.
    row : dict
        The row of the table.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, compare
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)
    >>> compare(problem, ["smo", "cholesky"])["cholesky"].why
    'REFUSED'
    """

    name: str
    solution: Solution | None = field(repr=False)
    reason: str
    seconds: float
    kernel_evaluations: int
    trace: dict[str, np.ndarray] = field(repr=False)
    why: str = "REFUSED"
    frames: list[Frame] = field(default_factory=list, repr=False)

    @property
    def row(self) -> dict[str, Any]:
        """The row of the table."""
        if self.solution is None:
            return dict(zip(COLUMNS, (self.name, self.why, None, None, None, None, None), strict=True))
        solution = self.solution
        values = (
            *(self.name, solution.status.name, solution.n_iter, self.kernel_evaluations, self.seconds),
            *(solution.certificate.relative_gap, int(solution.support.size)),
        )
        return dict(zip(COLUMNS, values, strict=True))

    def __repr__(self) -> str:
        said = f"{self.why}, {self.reason}" if self.solution is None else repr(self.solution)
        return f"Run({self.name}: {said})"


class Comparison:
    """Runs of several solvers on one problem; ``print`` it for the table, ``plot`` it for the convergence.

    Made by :func:`zerogap.compare`; ``comparison["smo"]`` is a Run.

    Attributes
    ----------
    problem : DualProblem
        What was solved.
    runs : dict of str to Run
        The runs by name of the solver.
    reference : Solution or None
        The solution that distances are measured from.
    solutions : dict of str to Solution
        Solutions by name, without the solvers that refused.
    traces : dict of str to dict
        Columns of the traces by name.
    rows : list of dict
        The table.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, compare
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0]]), [-1, -1, 1], C=1.0)
    >>> [row["status"] for row in compare(problem, ["smo", "smo-platt"]).rows]
    ['CONVERGED', 'CONVERGED']
    """

    columns = COLUMNS

    def __init__(self, problem: DualProblem, runs: Iterable[Run], reference: Solution | None = None):
        self.problem, self.reference = problem, reference
        self.runs = {run.name: run for run in runs}

    def __getitem__(self, name: str) -> Run:
        if name not in self.runs:
            raise KeyError(f"No solver {name!r} took part; there are {', '.join(map(repr, self.runs))}.")
        return self.runs[name]

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def solutions(self) -> dict[str, Solution]:
        """Solutions by name of the solver, without those that refused."""
        return {name: run.solution for name, run in self.runs.items() if run.solution is not None}

    @property
    def traces(self) -> dict[str, dict[str, np.ndarray]]:
        """Columns of the traces, by name of the solver."""
        return {name: run.trace for name, run in self.runs.items() if run.solution is not None}

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table."""
        return [run.row for run in self.runs.values()]

    def to_dict(self) -> dict[str, Any]:
        """Return table and traces as lists and numbers, ready for JSON.

        Returns
        -------
        dict
            points, rows, refused (the reasons by name) and traces.
        """
        reasons = {name: run.reason for name, run in self.runs.items() if run.reason}
        traces = {
            name: {column: [_finite(value) for value in values.tolist()] for column, values in trace.items()}
            for name, trace in self.traces.items()
        }
        rows = [{column: _finite(value) for column, value in row.items()} for row in self.rows]
        return {"points": self.problem.n, "rows": rows, "refused": reasons, "traces": traces}

    def to_frame(self) -> Any:
        """Return the table as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row a solver.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas; pip install pandas, or use rows or to_dict().") from error
        return pd.DataFrame(self.rows, columns=list(COLUMNS)).set_index("solver")

    def plot(self, y: str = "gap", x: str = "step", ax: Any = None) -> Any:
        """Draw the convergence of every solver.

        Parameters
        ----------
        y : str, default "gap"
            Column to draw: "gap", "dual", "margin", "distance", "violation" or "support".
        x : str, default "step"
            Against: "step", "seconds" or "kernel_evaluations".
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_comparison

        return plot_comparison(self, y, x, ax)

    def explore(self, file: Any = None, *, feature_names: Any = None, title: str | None = None) -> Any:
        """Show the solvers at work, side by side and step by step: a page, or without a file a widget in a notebook.

        The steps are those that ``compare(..., frames=200)`` has kept; with more than two features they are shown in the plane
        of two principal components.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        feature_names : list of str, optional
            Names of the features.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file, or the widget.
        """
        from zerogap.explorer.page import shown
        from zerogap.explorer.replay import of_comparison

        return shown(of_comparison(self, feature_names=feature_names, title=title), file)

    def __repr__(self) -> str:
        width = max(len("solver"), *(len(name) for name in self.runs))
        titles = f"{'iterations':>10} {'evaluations':>12} {'seconds':>8} {'gap':>8} {'support':>8}"
        lines = [f"{'solver':<{width}}  {'status':<11} {titles}"]
        for run in self.runs.values():
            if run.solution is None:
                lines.append(f"{run.name:<{width}}  {run.why.lower():<11} {run.reason}")
                continue
            row = run.row
            lines.append(
                f"{run.name:<{width}}  {row['status'].lower():<11} {row['iterations']:>10} {row['kernel_evaluations']:>12} "
                f"{row['seconds']:>8.3f} {row['relative_gap']:>8.1e} {row['support_vectors']:>8}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_comparison

        return of_comparison(self)


def compare(
    problem: DualProblem,
    solvers: Iterable[str | Solver] | Mapping[str, str | Solver] | None = None,
    *,
    distance: bool = False,
    reference: Solution | None = None,
    frames: int | None = None,
    **solve_options: Any,
) -> Comparison:
    """Run several solvers on one problem.

    Each has the kernel matrix to itself: nothing another one has computed is there when it starts, and every kernel value it
    asks for is counted.  Compilation is not part of its time.  A solver that cannot solve the problem is a row that says why.
    Ctrl-C ends the whole: what there is stays, and the solvers that have not run say so.

    Parameters
    ----------
    problem : DualProblem
        What to solve.
    solvers : list or dict, optional
        Names, configured solvers, or a dict of either by the name to show; by default all there are.
    distance : bool, default False
        Also record, in every trace row, the distance |beta - beta*| in the norm of K + diag(ridge).
    reference : Solution, optional
        The solution beta* to measure from; by default the best one found, taken further to a gap of 1e-12.
    frames : int, optional
        Keep the coefficients at so many rows of every trace, for ``explore``.  Every iteration is then a row, unless
        ``trace_every`` says otherwise; of more rows the first are kept, and then every second, fourth, ...
    **solve_options : dict
        Of :func:`zerogap.solve`: stop, max_steps, max_time, trace_every, ...  A small ``trace_every`` makes fine traces, and
        each row takes time, which the seconds contain.

    Returns
    -------
    Comparison
        Table, solutions and traces.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, RelativeGap, compare, datasets
    >>> X, y = datasets.two_spirals()
    >>> comparison = compare(DualProblem.hinge(Gram(X), y, C=1.0), ["smo", "simple-svm"], stop=RelativeGap(1e-6))
    >>> all(solution.certificate.relative_gap <= 1e-6 for solution in comparison.solutions.values())
    True
    """
    validation.check_problem(problem, solvers=solvers)
    check_limits(
        solve_options.get("stop", RelativeGap()),
        **{name: solve_options.get(name) for name in ("max_steps", "max_time", "trace_every")},
    )
    if frames is not None:
        validation.check_count("frames", frames)
        solve_options = {**solve_options, "trace_every": solve_options.get("trace_every") or 1}
    named = _named(solvers, solve_options.get("random_state", 0))
    recorders = {name: _Recorder(solve_options.get("callback"), keep=distance, frames=frames or 0) for name in named}
    with limits() as limit:
        runs = [_run(name, solver, problem, recorders[name], solve_options, limit) for name, solver in named.items()]
        if distance and any(run.solution for run in runs) and not limit.was_interrupted:
            reference = reference or _reference(runs, problem)
    if distance and reference is not None:
        for run in runs:
            if run.solution is not None:
                run.trace["distance"] = _distances(problem, recorders[run.name].iterates, reference.beta)
    if limit.was_interrupted:
        _warn_of_interrupt(runs)
    return Comparison(problem, runs, reference)


def _warn_of_interrupt(runs: list[Run]) -> None:
    ended = sum(run.row["status"] not in ("INTERRUPTED", "REFUSED") for run in runs)
    warnings.warn(
        f"compare was interrupted: {ended} of {len(runs)} solvers had ended.", ConvergenceWarning, stacklevel=3
    )


def _named(solvers: Any, seed: int) -> dict[str, Solver]:
    if solvers is None:
        solvers = [name for name in SOLVERS if name != "auto"]
    if isinstance(solvers, str):
        solvers = [solvers]
    if isinstance(solvers, Mapping):
        return {name: get_solver(solver, seed) for name, solver in solvers.items()}
    named: dict[str, Solver] = {}
    for solver in solvers:
        name = solver if isinstance(solver, str) else name_of(solver)
        if name in named:
            raise ValueError(f"Two solvers are called {name!r}. Pass a dict, with a name of your choice for each.")
        named[name] = get_solver(solver, seed)
    if not named:
        raise ValueError("There is no solver to compare. Pass names, such as ['smo', 'smo-platt'].")
    return named


def _run(
    name: str, solver: Solver, problem: DualProblem, recorder: "_Recorder", options: dict[str, Any], limit: Limit
) -> Run:
    own = replace(problem, gram=problem.gram.fresh())
    if not limit.was_interrupted:
        warm_up(own, solver)
    if limit.was_interrupted:
        return Run(name, None, "not run", 0.0, 0, {}, "INTERRUPTED")
    recorder.problem = own
    began = time.perf_counter()
    try:
        solution = solve(own, solver, **{**options, "callback": recorder})
    except ValueError as error:
        if recorder.margins:  # it did start
            raise
        return Run(name, None, str(error), 0.0, 0, {})
    seconds = time.perf_counter() - began
    trace = {column: solution.trace[column] for column in solution.trace.columns}
    trace["margin"] = np.array(recorder.margins)
    own.gram.forget()  # or every solution would hold a kernel matrix of its own; a copied state drops its caches too
    kept, film = replace(solution, state=copy.deepcopy(solution.state)), recorder.film.all
    return Run(name, kept, "", seconds, own.gram.evaluations, trace, frames=film)


def warm_up(problem: DualProblem, solver: Solver) -> None:
    """Run a solver on some of the points, so that its compiled code is there when the clock starts."""
    for size in WARM_UP:
        if is_over():
            return
        part = _thinned(problem, size)
        with suppress(ValueError):  # the run itself will say what is wrong
            # To the last digits: there is code that only they need.
            solve(part, solver, stop=RelativeGap(1e-12), max_steps=WARM_UP_STEPS, max_time=WARM_UP_SECONDS)
        if part.n == problem.n:
            return


def _thinned(problem: DualProblem, size: int) -> DualProblem:
    """Return the problem of some of the points, of each class its share and at least one."""
    if size >= problem.n:
        return replace(problem, gram=problem.gram.fresh())
    kinds = np.stack([problem.lower < 0, problem.upper > 0]).T
    chosen = np.zeros(problem.n, dtype=bool)
    for kind in np.unique(kinds, axis=0):
        members = np.flatnonzero((kinds == kind).all(axis=1))
        count = max(1, round(size * members.size / problem.n))
        chosen[members[np.linspace(0, members.size - 1, count).astype(int)]] = True
    rows = np.flatnonzero(chosen)
    part = problem.restricted(rows, gram=problem.gram.fresh().subset(rows))
    return replace(part, total=None if problem.total is None else problem.total * rows.size / problem.n)


class _Recorder:
    """A callback that keeps, for every row of the trace, the margin and the nonzero coefficients."""

    def __init__(self, callback: Callable[[Any, TraceRow], Any] | None, keep: bool, frames: int = 0):
        self.callback, self.keep, self.film = callback, keep, _Film(frames)
        self.problem: DualProblem | None = None
        self.margins: list[float] = []
        self.iterates: list[tuple[np.ndarray, np.ndarray]] = []
        self._step = -1

    def __call__(self, state: Any, row: TraceRow) -> Any:
        if row.step > self._step:  # a step without an iteration is no row of the trace
            self._step = row.step
            self.margins.append(margin(self.problem, state.beta, state.residual))  # type: ignore[arg-type]
            if self.keep:
                support = np.flatnonzero(state.beta)
                self.iterates.append((support, state.beta[support]))
            if self.film.most:
                self.film.add(lambda: self._frame(state, row))
        return self.callback(state, row) if self.callback is not None else None

    def _frame(self, state: Any, row: TraceRow) -> Frame:
        problem, support = self.problem, np.flatnonzero(state.beta)
        assert problem is not None
        bias = problem.best_bias(state.residual + problem.ridge * state.beta)
        return Frame(row.step, row.seconds, row.kernel_evaluations, row.gap, bias, support, state.beta[support])


class _Film:
    """At most so many frames of a run: a third of them its first rows, where most happens, then rows at even distances."""

    def __init__(self, most: int):
        self.most, self.first = most, most // 3
        self.frames: list[Frame] = []
        self.last: Frame | None = None  # that of the last row, if it is not among them
        self._rows, self._every = 0, 1

    def add(self, make: Callable[[], Frame]) -> None:
        """Keep a row, or not; the last one stays until the next comes."""
        frame, after = make(), self._rows - self.first
        self._rows += 1
        if after >= 0 and after % self._every == 0 and len(self.frames) >= self.most - 1:
            self.frames[self.first :] = self.frames[self.first :: 2]
            self._every *= 2
        is_kept = after < 0 or after % self._every == 0
        if is_kept:
            self.frames.append(frame)
        self.last = None if is_kept else frame

    @property
    def all(self) -> list[Frame]:
        """The frames, the last row included."""
        return self.frames + ([] if self.last is None else [self.last])


def margin(problem: DualProblem, beta: np.ndarray, residual: np.ndarray) -> float:
    """Return the margin of a classifier (chapter7, exercise 1); NaN for other problems and for beta = 0.

    Soft margins: 1 / |f|, the distance from the boundary to where the decision value is one.  Hard margin: the distance
    from the boundary to the nearest point, which is negative while a point is on the wrong side.
    """
    is_one_sided = not ((problem.lower < 0) & (problem.upper > 0)).any()
    r = residual + problem.ridge * beta  # t - K beta
    norm = np.sqrt(max(float(beta @ (problem.target - r)), 0.0))
    if not is_one_sided or problem.eps or not problem.target.all() or norm == 0:
        return np.nan
    if not problem.is_hard:
        return 1 / norm
    slack = np.where(problem.upper > 0, 1.0, -1.0) * (r - problem.best_bias(r))
    return (1.0 - float(slack.max())) / norm


# Distances.


def _reference(runs: list[Run], problem: DualProblem) -> Solution:
    """Return the solution with the least gap, taken further if that is not small enough."""
    solutions = [run.solution for run in runs if run.solution is not None]
    best = min(solutions, key=lambda solution: solution.certificate.relative_gap)
    if best.certificate.relative_gap <= REFERENCE:
        return best
    own = replace(problem, gram=problem.gram.fresh())
    further = solve(own, best.solver, stop=RelativeGap(REFERENCE), resume=best.beta, max_time=REFERENCE_SECONDS)
    return further if further.certificate.relative_gap < best.certificate.relative_gap else best


def _distances(
    problem: DualProblem, iterates: list[tuple[np.ndarray, np.ndarray]], reference: np.ndarray
) -> np.ndarray:
    """Return |beta - beta*| in the norm of K + diag(ridge) for every trace row (spiral, figures 2 to 5)."""
    gram, found = problem.gram.fresh(), []
    for a in range(0, len(iterates), TRACE_ROWS_AT_ONCE):
        part = iterates[a : a + TRACE_ROWS_AT_ONCE]
        change = np.repeat(-reference[:, None], len(part), axis=1)
        for k, (support, values) in enumerate(part):
            change[support, k] += values
        squares = np.einsum("ij,ij->j", change, gram.multiply(change) + problem.ridge[:, None] * change)
        found.append(np.sqrt(np.maximum(squares, 0.0)))
    return np.concatenate(found)


def _finite(value: Any) -> Any:
    """Return None for the numbers that JSON has no word for."""
    return None if isinstance(value, float) and not np.isfinite(value) else value
