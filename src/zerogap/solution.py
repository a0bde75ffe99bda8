"""What a run leaves: how it ended, its trace, and the point with its certificate."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from zerogap.certificate import Certificate
from zerogap.limits import Limit
from zerogap.problem import DualProblem
from zerogap.solvers import Solver, name_of
from zerogap.wording import count, duration, number


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


def cut_short(limit: Limit) -> Status | None:
    """Return how a limit has ended what was under way, or None if it has not."""
    if limit.was_interrupted:
        return Status.INTERRUPTED
    return Status.MAX_TIME if limit.is_over else None


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
    drift : float
        How far ``state.residual`` can be off; zero if it is one product with beta, and infinite if nothing is known of it.
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
    drift: float = field(default=np.inf, repr=False)

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

    def plot(self, y: str = "gap", x: str = "step", ax: Any = None) -> Any:
        """Draw how the run converged, from its trace; ``solve(..., trace_every=10)`` makes a fine one.

        Parameters
        ----------
        y : str, default "gap"
            Column to draw: "gap", "dual", "violation" or "support".
        x : str, default "step"
            Against: "step", "seconds" or "kernel_evaluations".
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_solution

        return plot_solution(self, y, x, ax)

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_solution

        return of_solution(self)
