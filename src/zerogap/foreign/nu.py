"""nu-SVC and nu-SVR: problems with one more unknown, and what fixes it.

nu-SVC, S = nu sum_i c_i.  Its model is a margin rho wide,

    minimise over f, b, rho >= 0    1/2 |f|² - rho S + sum_i c_i max(0, rho - y_i (f(x_i) + b))
    maximise                        -1/2 beta'K beta     subject to  0 <= y_i beta_i <= c_i,  sum(beta) = 0,  sum |beta| >= S

For a given rho that is the hinge with targets rho y, less rho S: its gap is that of the hinge and rho (sum |beta| - S).
Predictions do not depend on the scale of f, b and rho, and libraries divide all by rho; coefficients tell it by their sum, S.

nu-SVR, S = C nu sum_i w_i.  Its tube has a width of its own,

    minimise over f, b, eps >= 0    1/2 |f|² + eps S + C sum_i w_i max(0, |y_i - f(x_i) - b| - eps)
    maximise                        y'beta - 1/2 beta'K beta     subject to  |beta_i| <= C w_i,  sum(beta) = 0,  sum |beta| <= S

For a given eps that is the insensitive loss, and eps S: its gap is that of this loss and eps (S - sum |beta|).

A model has f and b; rho and eps are those that make its objective least, a weighted quantile.

The exact solution is found over the one unknown s, rho or eps.  beta(s) is piecewise linear and sum |beta(s)| monotone, so that
between two values of s on one piece the solution is a combination of both: the secant ends there.
"""

import math
import time
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from zerogap.certificate import Certificate
from zerogap.foreign.parts import SOLVED, Bound, Expansion, solved
from zerogap.function_gap import expansion_certificate
from zerogap.kernels import UNIT
from zerogap.loss import Loss
from zerogap.problem import DualProblem
from zerogap.solution import Status

MOST_SOLVES = 100
SMALLEST_GAP = 1e-13  # that float64 may show
SOON = 1e-9  # seconds that are left when none are
NO_WIDTH = 1e-12  # of the range of the targets: a tube that is none
NO_MARGIN = 1e-6  # of the margin a model has: one that is none


# By whether sum |beta| is below S: the last s and beta of that side, and the sum.
Sides = dict[bool, tuple[float, np.ndarray, float]]


class Exact(NamedTuple):
    """The solution of a nu problem."""

    beta: np.ndarray
    s: float  # rho or eps
    certificate: Certificate
    status: Status


@dataclass(frozen=True)
class _Nu(Expansion):
    nu: float
    sum_of_sizes: float  # S

    @property
    def cap(self) -> np.ndarray:
        """(n,) the largest size of each coefficient."""
        return self.problem.upper - self.problem.lower

    def problem_at(self, s: float) -> DualProblem:
        """Return the problem with rho or eps fixed."""
        raise NotImplementedError

    def best(self, values: np.ndarray, bias: float) -> float:
        """Return the rho or eps that makes the objective of a function least, from its values without intercept."""
        raise NotImplementedError

    def excess(self, beta: np.ndarray, s: float) -> tuple[float, float]:
        """Return what the gap is more than with s fixed, less than zero by rounding only, and what the objectives are more."""
        raise NotImplementedError

    def _optimal(self, tol: float, max_time: float | None, start: np.ndarray) -> Bound:
        exact = self.exact(tol, max_time)
        return Bound(exact.beta, exact.certificate, exact.status)

    def _above(self, points: list[np.ndarray]) -> list[Certificate]:
        s = self._own()
        return [self._certificate(self.coefficients, self.bias, beta, s) for beta in points]

    def _certificate(self, coefficients: np.ndarray, bias: float, beta: np.ndarray, s: float) -> Certificate:
        found = expansion_certificate(self.problem_at(s), coefficients, bias, beta)
        more, shift = self.excess(beta, s)
        dual, gap = found.dual + shift, found.gap + abs(more)
        rounding = found.rounding + 8.0 * UNIT * (abs(found.dual) + abs(shift) + gap) + 2.0 * max(-more, 0.0)
        return replace(found, primal=dual + gap, dual=dual, gap=gap, rounding=rounding)

    def _own(self) -> float:
        """Return rho or eps of the model."""
        return self.best(self.problem.gram.dot(self.coefficients), self.bias)

    def exact(self, tol: float, max_time: float | None) -> Exact:
        """Return the solution."""
        raise NotImplementedError

    def _search(self, tol: float, max_time: float | None, start: np.ndarray, s: float, rises: bool) -> Exact:
        """Find s at which the sizes of the coefficients sum to S, between two that are on either side.

        ``rises``: whether the sum does, as s grows.
        """
        gram, began = self.gram(SOLVED), time.perf_counter()
        sides: Sides = {}

        def time_left() -> float | None:
            return None if max_time is None else max(max_time - (time.perf_counter() - began), SOON)

        def look(at: float, near: np.ndarray | None) -> bool:
            problem = replace(self.problem_at(at), gram=gram)
            # The objective with s fixed is larger by s S, and its share that is to be known the smaller.
            beta = solved(problem, max(0.01 * tol, SMALLEST_GAP), time_left(), near).beta
            size = _size(beta)
            is_short = size < self.sum_of_sizes
            sides[is_short] = (at, beta, size)
            return is_short

        is_short, factor = look(s, start), 1.1
        least = NO_MARGIN * s if rises else NO_WIDTH * float(np.ptp(self.problem.target))
        for _ in range(MOST_SOLVES):  # outwards
            if len(sides) == 2 or s == 0.0 or time_left() == SOON:
                break
            s = s * factor if is_short == rises else s / factor
            s = 0.0 if s < least else s
            if rises and s == 0.0:
                # The classes meet: there is no margin, and the sum has no price, as beside a tube of no width.
                sides[is_short] = (s, *sides[is_short][1:])
                break
            is_short, factor = look(s, sides[is_short][1]), min(factor**2, 1e3)
        best: Exact | None = None
        for count in range(1, MOST_SOLVES):
            s, beta = self._between(sides)
            problem = replace(self.problem_at(s), gram=gram)
            found = self._certificate(beta, problem.best_bias(problem.residual(beta)), beta, s)
            if best is None or found.gap < best.certificate.gap:
                best = Exact(beta, s, found, Status.of(found, tol))
            if found.relative_gap <= tol or len(sides) < 2 or time_left() == SOON:
                break
            ends = sides[True][0], sides[False][0]
            if count % 4 == 0:  # a secant may come from one side for ever
                s = 0.5 * (ends[0] + ends[1])
            if s in ends:
                break
            look(s, beta)
        assert best is not None
        is_short = best.status is not Status.CONVERGED and time_left() == SOON
        return best._replace(status=Status.MAX_TIME) if is_short else best

    def _between(self, sides: Sides) -> tuple[float, np.ndarray]:
        """Return the point between two whose sizes sum to S: the solution, if both are on one piece."""
        if len(sides) < 2:
            ((s, beta, _),) = sides.values()
            return s, beta if self.excess(beta, 1.0)[0] >= 0.0 else self._projected(beta)
        (s, beta, size), (other, beta_of_other, size_of_other) = sides[True], sides[False]
        share = (self.sum_of_sizes - size) / (size_of_other - size)
        return s + share * (other - s), self._projected(beta + share * (beta_of_other - beta))


@dataclass(frozen=True)
class NuClassifier(_Nu):
    """Two classes with a margin rho wide; the problem is the hinge with C = 1."""

    scale: float  # by which the coefficients of the model were multiplied, to sum to S

    @property
    def hint(self) -> str:
        """What else may be wrong with coefficients that are far from feasible."""
        return f" Or nu={self.nu:g} is too small for the data: with a margin below zero all coefficients have the wrong sign."

    @classmethod
    def of(cls, hinge: Expansion, nu: float) -> Self:
        """Return the problem of a model whose coefficients have been divided by rho."""
        upper, lower = hinge.problem.upper, hinge.problem.lower
        wanted, most = nu * float((upper - lower).sum()), 2.0 * min(float(upper.sum()), -float(lower.sum()))
        if wanted > most * (1.0 + upper.size * UNIT):  # more than rounding
            raise ValueError(
                f"nu={nu:g} is infeasible{f' for {hinge.name}' if hinge.name else ''}: the coefficients of each class sum to "
                f"{0.5 * wanted:g}, nu/2 of all weights, and the lighter class has weights of {0.5 * most:g}. Pass y and "
                "sample_weight as the model was fitted with them, and nu as it was."
            )
        wanted, size = min(wanted, most), _size(hinge.coefficients)
        scale = wanted / size if size else 1.0
        scaled = replace(hinge, coefficients=scale * hinge.coefficients, bias=scale * hinge.bias)
        return cls(**vars(scaled), nu=nu, sum_of_sizes=wanted, scale=scale)

    def problem_at(self, s: float) -> DualProblem:
        """Return the hinge with targets rho y."""
        return replace(self.problem, target=s * self.problem.target)

    def best(self, values: np.ndarray, bias: float) -> float:
        """Return the largest rho at which the weights of the points within the margin are no more than S."""
        margins = self.problem.target * (values + bias)
        order = np.argsort(margins)
        k = int(np.searchsorted(np.cumsum(self.cap[order]), self.sum_of_sizes, side="right"))
        return max(float(margins[order[min(k, order.size - 1)]]), 0.0)

    def excess(self, beta: np.ndarray, s: float) -> tuple[float, float]:
        """Return rho (sum |beta| - S), and -rho sum |beta|."""
        size = _size(beta)
        return s * (size - self.sum_of_sizes), -s * size

    def _projected(self, coefficients: np.ndarray) -> np.ndarray:
        """Each class has half of S."""
        beta, half = np.zeros(coefficients.size), 0.5 * self.sum_of_sizes
        for sign in (1.0, -1.0):
            side = self.problem.target == sign
            beta[side] = sign * _with_sum(sign * coefficients[side], self.cap[side], half)
        return beta

    def exact(self, tol: float, max_time: float | None) -> Exact:
        """Return the solution."""
        return self._search(tol, max_time, self.feasible(), self._own() or self.scale, rises=True)

    def with_margin(self, tol: float, max_time: float | None) -> Exact:
        """Return the solution, by whose rho it can be divided; where there is no margin it is refused.

        LIBSVM may end with a margin below zero, where its tolerance is coarse beside it.  Its point divided by that has
        coefficients of the wrong sign, all of them: with the other sign they are where it ended.
        """
        flipped = replace(self, coefficients=-self.coefficients, bias=-self.bias)
        exact = (self if self.problem.target @ self.coefficients >= 0 else flipped).exact(tol, max_time)
        if not exact.s > 0:
            raise ValueError(
                f"nu={self.nu:g} is too small for this data{f', {self.name}' if self.name else ''}: the classes cannot be told "
                "apart with so few errors, and the optimum is f = 0, without a margin. Use a larger nu, or SVC."
            )
        return exact

    def _exactly(self, tol: float, max_time: float | None) -> tuple[Self, Bound]:
        exact = self.with_margin(tol, max_time)
        rho, bias = self._middle(exact.beta)
        new = replace(self, coefficients=exact.beta, bias=bias, scale=rho)
        if not (rho > 0 and new._above([exact.beta])[0].relative_gap <= tol):  # by its last digits, or an early end
            new = replace(new, bias=exact.certificate.bias, scale=exact.s)
        return new, Bound(exact.beta, exact.certificate, exact.status)

    def _middle(self, beta: np.ndarray) -> tuple[float, float]:
        """Return rho and bias that go with a solution, as LIBSVM does the middle ones if there are many.

        The objective is a sum over the classes: that of rho - y b, a quantile of y f(x) with the weight S / 2 below it.
        """
        values, half = self.problem.gram.dot(beta), 0.5 * self.sum_of_sizes
        levels = []
        for sign in (1.0, -1.0):
            side = self.problem.target == sign
            zero = np.zeros(int(side.sum()))
            levels.append(-Loss(zero, self.cap[side], zero, 0.0).best_bias(-sign * values[side], half))
        return 0.5 * (levels[0] + levels[1]), 0.5 * (levels[1] - levels[0])

    def as_held(self) -> tuple[np.ndarray, float]:
        """Return coefficients and intercept divided by rho."""
        return self.coefficients / self.scale, self.bias / self.scale


@dataclass(frozen=True)
class NuRegressor(_Nu):
    """Regression with a tube of a width of its own; the problem is that of eps = 0."""

    @classmethod
    def of(cls, insensitive: Expansion, nu: float) -> Self:
        """Return the problem of a model."""
        return cls(**vars(insensitive), nu=nu, sum_of_sizes=nu * float(insensitive.problem.upper.sum()))

    @property
    def cap(self) -> np.ndarray:
        """(n,) the largest size of each coefficient."""
        return self.problem.upper

    def problem_at(self, s: float) -> DualProblem:
        """Return the insensitive loss of a tube of this half width."""
        return replace(self.problem, eps=s)

    def best(self, values: np.ndarray, bias: float) -> float:
        """Return the least eps at which the costs of the points outside of the tube are no more than S."""
        sizes = np.abs(self.problem.target - values - bias)
        order = np.argsort(-sizes)
        k = int(np.searchsorted(np.cumsum(self.cap[order]), self.sum_of_sizes, side="right"))
        return float(sizes[order[k]]) if k < order.size else 0.0

    def excess(self, beta: np.ndarray, s: float) -> tuple[float, float]:
        """Return eps (S - sum |beta|), and eps sum |beta|."""
        size = _size(beta)
        return s * (self.sum_of_sizes - size), s * size

    def _projected(self, coefficients: np.ndarray) -> np.ndarray:
        beta = super()._projected(coefficients)
        size = _size(beta)
        if size <= self.sum_of_sizes:
            return beta
        return self.problem.restore_sum(beta * (self.sum_of_sizes / size))  # the sum stays zero but for rounding

    def exact(self, tol: float, max_time: float | None) -> Exact:
        """Return the solution."""
        width = self._own() or 0.1 * float(np.ptp(self.problem.target))
        return self._search(tol, max_time, self.feasible(), width, rises=False)


def _with_sum(x: np.ndarray, cap: np.ndarray, total: float) -> np.ndarray:
    """Return x within 0 and its caps, with no less than the total as a sum, and no more but for rounding."""
    x = np.clip(x, 0.0, cap)
    for _ in range(4):
        missing = math.fsum([total, *(-x)])
        if missing == 0.0:
            break
        room = cap - x if missing > 0 else x
        order = np.lexsort((-room, ~((x > 0) & (x < cap))))  # free ones first, those with the most room
        taken = np.diff(np.minimum(np.cumsum(room[order]), abs(missing)), prepend=0.0)
        x[order] = np.clip(x[order] + math.copysign(1.0, missing) * taken, 0.0, cap[order])
    return x


def _size(beta: np.ndarray) -> float:
    """Return sum |beta|."""
    return math.fsum(np.abs(beta).tolist())
