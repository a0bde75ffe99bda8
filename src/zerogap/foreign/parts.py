"""The problems that a fitted model solves, each with what the model has for a solution.

A classifier of several classes is one problem for each pair of them, or for each class against the rest.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from zerogap.certificate import Certificate
from zerogap.function_gap import expansion_certificate, vector_certificate
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.loop import default_max_steps, solve
from zerogap.problem import DualProblem
from zerogap.solution import Solution, Status
from zerogap.stopping import RelativeGap

LOOKED_AT, SOLVED = 64.0, 1000.0  # megabytes for kernel rows: to look at a point, and to solve
FAR = 1e-3  # of the coefficients: float32 leaves 1e-6, wrong data as much as they are
LINEAR_TOL = 1e-9  # of the lower bound for a vector w, which brings none of its own


class Bound(NamedTuple):
    """A feasible point, for its dual objective, and what is known of it."""

    beta: np.ndarray
    certificate: Certificate
    status: Status

    @classmethod
    def of(cls, solution: Solution) -> "Bound":
        """Return that of a run."""
        return cls(solution.beta, solution.certificate, solution.status)

    def shortfall(self, model: Certificate, tol: float) -> str:
        """Return in what it is short of the tolerance that was asked for, and why; nothing if it is not.

        A model within the tolerance of a bound shows that the bound is, too.
        """
        gap = self.certificate.relative_gap
        if min(gap, model.relative_gap) <= tol:
            return ""
        reached = f"solved to a gap of {gap:.2g}, not {tol:g}" if np.isfinite(gap) else "not solved for"
        return f"bound {reached}: {self.status.name.lower()}"


class Found(NamedTuple):
    """How far a model is off in one of its problems."""

    certificate: Certificate
    shortfall: str = ""  # why the bound is not the one that was to be solved for


@dataclass(frozen=True)
class Part:
    """One of the problems of a model."""

    name: str  # "a against b", where there are several
    problem: DualProblem
    rows: np.ndarray  # of the training data that it is about
    gram: Callable[[float], Gram]  # the matrix, within so many megabytes

    @property
    def n_support(self) -> int:
        """Number of coefficients that are not zero, or of features."""
        raise NotImplementedError

    def found(self, tol: float | None, max_time: float | None) -> Found:
        """Return how far the model is above the optimum, by its own point, or one of a solution to a tolerance."""
        raise NotImplementedError

    def solution(self, tol: float, max_time: float | None, start: np.ndarray | None = None) -> Solution:
        """Solve the problem."""
        return solved(replace(self.problem, gram=self.gram(SOLVED)), tol, max_time, start)


def solved(
    problem: DualProblem, tol: float, max_time: float | None, start: np.ndarray | None, solver: str = "auto"
) -> Solution:
    """Return the solution to a tolerance, or what the time was enough for; Ctrl-C is raised."""
    most = default_max_steps(problem.n)
    solution = solve(problem, solver, stop=RelativeGap(tol), max_steps=most, max_time=max_time, resume=start)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


@dataclass(frozen=True)
class Expansion(Part):
    """f = sum_i coefficients_i k(x_i, .) + bias."""

    coefficients: np.ndarray
    bias: float

    @property
    def n_support(self) -> int:
        """Number of support vectors."""
        return int(np.count_nonzero(self.coefficients))

    @property
    def hint(self) -> str:
        """What else may be wrong with coefficients that are far from feasible."""
        return ""

    def feasible(self) -> np.ndarray:
        """Return the feasible point that the coefficients are, but for rounding and tolerances."""
        beta = self._projected(self.coefficients)
        self._refuse_far(beta)
        return beta

    def _projected(self, coefficients: np.ndarray) -> np.ndarray:
        """Return a feasible point near the coefficients."""
        return self.problem.restore_sum(np.clip(coefficients, self.problem.lower, self.problem.upper))

    def _refuse_far(self, beta: np.ndarray) -> None:
        """Refuse coefficients that are no solution of this problem, however rough."""
        size, moved = float(np.abs(self.coefficients).sum()), float(np.abs(self.coefficients - beta).sum())
        if moved > FAR * size:
            raise ValueError(
                f"The coefficients of the model{f' for {self.name}' if self.name else ''} are no feasible point of the problem "
                f"that its parameters, X, y and sample_weight state: {moved / size:.2g} of them are outside of their bounds or "
                "in excess of their sum. Pass the very data and weights the model was fitted on, in that order, and parameters "
                "as they were." + self.hint
            )

    def found(self, tol: float | None, max_time: float | None) -> Found:
        """Return how far the model is above the optimum."""
        own = self.feasible()
        if tol is None:
            return Found(self._above([own])[0])
        solved = self._optimal(tol, max_time, own)
        best = min(self._above([own, solved.beta]), key=lambda certificate: certificate.relative_gap)
        return Found(best, solved.shortfall(best, tol))

    def _optimal(self, tol: float, max_time: float | None, start: np.ndarray) -> Bound:
        """Return the point of a solution."""
        return Bound.of(self.solution(tol, max_time, start))

    def polished(self, tol: float, max_time: float | None) -> tuple[Self, Bound]:
        """Return the exact model in place of this one, and the point of the solution.

        Half of the tolerance is left to what coefficients are rounded by when the model gets them.
        """
        new, solved = self._exactly(0.5 * tol, max_time)
        if solved.certificate.relative_gap <= tol:
            return new, solved
        # Where digits or time are short, the model that was there may be the better one.
        return min((new, self), key=lambda one: one._above([solved.beta])[0].primal), solved

    def against(self, solved: Bound, tol: float) -> Found:
        """Return how far the model is above the optimum, by its own point, or by a solution's if that proves too little."""
        best = self.found(None, None).certificate
        if not best.relative_gap <= tol:
            best = min(best, *self._above([solved.beta]), key=lambda certificate: certificate.relative_gap)
        return Found(best, solved.shortfall(best, tol))

    def _exactly(self, tol: float, max_time: float | None) -> tuple[Self, Bound]:
        """Return the model of a solution, and its point."""
        solved = self._optimal(tol, max_time, self.feasible())
        return replace(self, coefficients=solved.beta, bias=solved.certificate.bias), solved

    def as_held(self) -> tuple[np.ndarray, float]:
        """Return coefficients and intercept in the scale that the model has them in."""
        return self.coefficients, self.bias

    def _above(self, points: list[np.ndarray]) -> list[Certificate]:
        """Return how far the model is above the bound of each of some feasible points, rounding counted."""
        return [expansion_certificate(self.problem, self.coefficients, self.bias, beta) for beta in points]


@dataclass(frozen=True)
class Vector(Part):
    """f = <w, x>, the intercept being the weight of a constant feature, if there is one."""

    X: Any
    w: np.ndarray
    intercept: float  # of which the last entry of w is a rounded quotient

    @property
    def n_support(self) -> int:
        """Number of weights."""
        return int(np.count_nonzero(self.w))

    def found(self, tol: float | None, max_time: float | None) -> Found:
        """Return how far the model is above the optimum; the lower bound has to be found, as w brings none."""
        tol = LINEAR_TOL if tol is None else tol
        solved = Bound.of(self.solution(tol, max_time))
        certificate = self.against(solved.beta)
        return Found(certificate, solved.shortfall(certificate, tol))

    def against(self, beta: np.ndarray) -> Certificate:
        """Return how far the model is above the bound of a feasible point."""
        if self.problem.total is not None:  # the intercept is no weight
            return vector_certificate(self.problem, self.X, self.w, beta, bias=self.intercept)
        return vector_certificate(self.problem, self.X, self.w, beta, 2.0 * UNIT * abs(self.intercept))

    def solution(self, tol: float, max_time: float | None, start: np.ndarray | None = None) -> Solution:
        """Solve the problem in w: no kernel value is needed, however many points there are."""
        return solved(self.problem, tol, max_time, start, "linear-cd")
