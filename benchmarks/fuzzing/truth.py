"""What is true of a point, from the raw data in extended precision; shares no code with zerogap.

The same formulas run in two arithmetics: ``np.longdouble``, vectorised, with a bound on its own error, and ``decimal`` with as
many digits as the problem needs, where that bound is too coarse to decide (or long double is no longer than double).

    minimise  D(beta) = 1/2 beta'(K + diag(ridge)) beta - t'beta + eps |beta|_1,   lower <= beta <= upper, sum(beta) = 0
    P(beta, b) = 1/2 beta'K beta + sum_i loss_i(t_i - (K beta)_i - b)

Floats that define a problem (data, C times weight, 1 / (C weight), gamma as a number) are taken as exact.
"""

import decimal
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

UNIT = float(np.finfo(float).eps)


class Long:
    """Arithmetic of ``np.longdouble`` arrays."""

    unit = np.finfo(np.longdouble).eps
    is_longer = np.finfo(np.longdouble).eps < 2.0**-60

    @staticmethod
    def of(values: Any) -> np.ndarray:
        return np.asarray(values, dtype=np.longdouble)

    exp, tanh = staticmethod(np.exp), staticmethod(np.tanh)


class Digits:
    """Arithmetic of arrays of ``Decimal`` with the digits of the current context."""

    unit = Decimal(0)

    @staticmethod
    def of(values: Any) -> np.ndarray:
        array = np.asarray(values)
        if array.dtype == object:
            return array
        high = array.astype(np.float64)
        with np.errstate(invalid="ignore"):
            low = np.where(np.isfinite(high), array - high, 0.0).astype(np.float64)  # of a long double
        return np.asarray(np.frompyfunc(lambda a, b: Decimal(a) + Decimal(b), 2, 1)(high, low), dtype=object)

    @staticmethod
    def exp(values: np.ndarray) -> np.ndarray:
        return np.frompyfunc(lambda v: v.exp() if v > -20000 else Decimal(0), 1, 1)(values)

    @classmethod
    def tanh(cls, values: np.ndarray) -> np.ndarray:
        def one(v: Decimal) -> Decimal:
            e = (-2 * abs(v)).exp() if abs(v) < 10000 else Decimal(0)
            return ((1 - e) / (1 + e)).copy_sign(v)

        return np.frompyfunc(one, 1, 1)(values)


@dataclass(frozen=True)
class KernelSpec:
    """A kernel: its name and numbers, or the float64 values themselves (precomputed, callables)."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    tau: float = 0.0

    def values(self, X: np.ndarray, Z: np.ndarray, A: Any) -> np.ndarray:
        """Return the kernel values between rows of X and Z; for given matrices X is the matrix."""
        K = self._plain(X, Z, A)
        return K + A.of(self.tau) * A.of(self.tau) if self.tau else K

    def _plain(self, X: np.ndarray, Z: np.ndarray, A: Any) -> np.ndarray:
        if self.name in ("precomputed", "callable"):
            return A.of(X)
        X, Z, gamma, coef0 = A.of(X), A.of(Z), A.of(self.gamma), A.of(self.coef0)
        if self.name == "rbf":
            squares = A.of(np.zeros((len(X), len(Z))))
            for k in range(X.shape[1]):
                difference = X[:, k, None] - Z[None, :, k]
                squares = squares + difference * difference
            return A.exp(-gamma * squares)
        products = X @ Z.T
        if self.name == "linear":
            return products
        inner = gamma * products + coef0
        return A.tanh(inner) if self.name == "sigmoid" else _power(inner, self.degree, A)

    def size(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return S such that evaluating k in an arithmetic of unit u is off by at most about (d + 3 degree + 8) u S."""
        A = Long
        if self.name in ("precomputed", "callable"):
            S = np.abs(A.of(X))
        elif self.name == "rbf":
            K = self._plain(X, Z, A)
            with np.errstate(divide="ignore", invalid="ignore"):
                S = np.where(K > 0, K * (1 - np.log(K)), 0)
        else:
            S = np.abs(A.of(X)) @ np.abs(A.of(Z)).T
            if self.name != "linear":
                S = A.of(self.gamma) * S + abs(A.of(self.coef0))
                S = 1 + S if self.name == "sigmoid" else _power(S, self.degree, A)
        return S + A.of(self.tau) ** 2


def _power(base: np.ndarray, degree: int, A: Any) -> np.ndarray:
    result = A.of(np.ones(base.shape))
    for _ in range(degree):
        result = result * base
    return result


@dataclass
class Problem:
    """A formulation over given points, as floats."""

    kernel: KernelSpec
    X: np.ndarray  # (n, d), or the matrix
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    eps: float = 0.0
    has_bias: bool = True
    total: float = 0.0  # what the coefficients sum to
    _matrices: dict[Any, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        return self.target.size

    @cached_property
    def is_hard(self) -> bool:
        """Whether an error costs infinitely much for some point."""
        return bool((np.isinf(self.upper - self.lower) & (self.ridge == 0)).any())

    @cached_property
    def sizes(self) -> np.ndarray:
        """Sizes of what is summed in every kernel value."""
        return self.kernel.size(self.X, self.X)

    def matrix(self, A: Any) -> np.ndarray:
        key = A if A is Long else decimal.getcontext().prec
        if key not in self._matrices:
            self._matrices[key] = self.kernel.values(self.X, self.X, A)
        return self._matrices[key]

    @cached_property
    def has_finite_kernel(self) -> bool:
        """Whether every kernel value is well within the range of float64."""
        return bool(np.abs(self.matrix(Long)).max() < 1e290 and np.isfinite(self.matrix(Long)).all())

    @cached_property
    def is_indefinite(self) -> bool:
        """Whether the kernel matrix may have a negative eigenvalue; the named inner products never do."""
        if self.kernel.name in ("linear", "rbf") or (self.kernel.name == "poly" and self.kernel.coef0 >= 0):
            return False
        K = self.matrix(Long)
        scale = np.abs(K).max()
        if not np.isfinite(scale) or scale == 0:
            return bool(scale != 0)
        # Rows and columns scaled alike keep the signs of all eigenvalues; so an outlier does not hide the others.
        diagonal = np.abs(np.diagonal(K))
        size = np.sqrt(np.where(diagonal > 0, diagonal, scale * Long.unit**2))
        values = np.linalg.eigvalsh((K / size / size[:, None]).astype(np.float64))
        return bool(values[0] < -1e-13 * self.n * max(values[-1], 0.0))


@dataclass(frozen=True)
class Truth:
    """What a point is worth; ``error`` bounds the error of each number."""

    primal: Any  # least over the bias (hard margin: stretched until every margin holds)
    dual: Any
    gap: Any  # sum of the shares, so primal - dual + bias sum(beta)
    at_bias: Any  # the gap at the bias that was reported
    at_bias_primal: Any  # and the primal objective there
    bias: Any  # the best one
    primal_error: float
    dual_error: float
    gap_error: float
    at_bias_error: float  # what one unit in the last place of the bias does included


def evaluate(problem: Problem, beta: np.ndarray, bias: float, A: Any = Long) -> Truth:
    """Evaluate a point in one arithmetic."""
    if A is Digits:
        with decimal.localcontext() as context:
            context.prec, context.Emax, context.Emin = _digits(problem, beta), 999999, -999999
            return _evaluate(problem, beta, bias, Digits)
    with np.errstate(all="ignore"):
        return _evaluate(problem, beta, bias, Long)


def _digits(problem: Problem, beta: np.ndarray) -> int:
    """Enough that cancellation between the largest kernel values leaves fifty."""
    with np.errstate(all="ignore"):
        largest = problem.sizes.max() * (np.abs(beta).sum() + 1)
        digits = float(np.log10(largest + 1)) if np.isfinite(largest) else 4000.0
    return int(90 + 2 * digits)


def _evaluate(problem: Problem, beta: np.ndarray, bias: float, A: Any) -> Truth:
    K, b, t = problem.matrix(A), A.of(beta), A.of(problem.target)
    f = K @ b
    r = t - f
    half = A.of(0.5)
    quadratic = (b * f).sum()
    ridge = A.of(problem.ridge)
    conjugate = half * (ridge * b * b).sum() + A.of(problem.eps) * np.abs(b).sum()
    dual = (t * b).sum() - half * quadratic - conjugate
    noise = _noise(problem, beta) if A is Long else np.zeros(problem.n)
    dual_error = float((np.abs(beta) * noise).sum()) + float(4 * problem.n * A.unit * (np.abs(t * b).sum() + conjugate))
    if problem.is_hard:
        return _hard(problem, A, r, dual, quadratic, bias, noise, dual_error)
    best = _best_bias(problem, r, A) if problem.has_bias else A.of(0.0)[()]
    gap, gap_error = _gap(problem, A, b, r - best, noise)
    ulp = np.spacing(abs(bias)) if problem.has_bias else 0.0
    at_bias, at_error = _gap(problem, A, b, r - A.of(bias), noise + float(ulp))
    stray = b.sum() - A.of(problem.total)[()]
    primal = dual + gap - best * stray
    reported = dual + at_bias - A.of(bias)[()] * stray
    return Truth(primal, dual, gap, at_bias, reported, best, dual_error + gap_error, dual_error, gap_error, at_error)


def _noise(problem: Problem, beta: np.ndarray) -> np.ndarray:
    """Bound on the error of each residual in long double."""
    steps = (problem.X.shape[1] if problem.kernel.name not in ("precomputed", "callable") else 0) + problem.n
    factor = (steps + 3 * problem.kernel.degree + 12) * Long.unit
    return np.asarray(factor * (problem.sizes @ np.abs(Long.of(beta)) + np.abs(problem.target)), dtype=np.longdouble)


def _response(problem: Problem, r: np.ndarray, A: Any) -> np.ndarray:
    """The c in the box at which c r - eps |c| - ridge c²/2 is largest."""
    eps, zero = A.of(problem.eps)[()], A.of(0.0)[()]
    lower, upper, ridge = (A.of(v) for v in (problem.lower, problem.upper, problem.ridge))
    shrunk = np.where(r > eps, r - eps, np.where(r < -eps, r + eps, zero))
    has_ridge = problem.ridge > 0
    smooth = np.minimum(np.maximum(shrunk / np.where(has_ridge, ridge, A.of(1.0)), lower), upper)
    return np.where(has_ridge, smooth, np.where(shrunk > 0, upper, np.where(shrunk < 0, lower, zero)))


def _shares(problem: Problem, A: Any, b: np.ndarray, r: np.ndarray) -> np.ndarray:
    """loss_i(r_i) + conjugate_i(beta_i) - beta_i r_i, none negative."""
    c = _response(problem, r, A)
    return (c - b) * (r - A.of(0.5) * A.of(problem.ridge) * (c + b)) - A.of(problem.eps) * (np.abs(c) - np.abs(b))


def _gap(problem: Problem, A: Any, b: np.ndarray, r: np.ndarray, noise: np.ndarray) -> tuple[Any, float]:
    shares = _shares(problem, A, b, r)
    off = A.of(np.asarray(noise, dtype=np.float64) * (1 + 1e-15)) if A is Digits else noise
    spread = np.maximum(*(np.abs(_shares(problem, A, b, r + side * off) - shares) for side in (1, -1)))
    return shares.sum(), float(spread.sum() + 4 * problem.n * A.unit * shares.sum())


def _best_bias(problem: Problem, r: np.ndarray, A: Any) -> Any:
    """The bias at which the sum of losses is least: between two knots it is a parabola."""
    eps, ridge, total = A.of(problem.eps)[()], A.of(problem.ridge), A.of(problem.total)[()]
    ends = [r - eps, r + eps]
    for bound, sign in ((problem.upper, -1), (problem.lower, 1)):
        inner = np.isfinite(bound) & (problem.ridge > 0)
        ends.append((r + sign * eps)[inner] - ridge[inner] * A.of(bound)[inner])
    knots = np.sort(np.concatenate(ends))

    def excess(bias: Any) -> Any:
        return _response(problem, r - bias, A).sum() - total

    low, high = 0, len(knots) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(knots[middle]) > 0 else (low, middle)
    candidates = list(knots[max(low - 1, 0) : high + 2])
    for a, z in list(pairwise(candidates)):
        if z > a:  # the slope is linear inside: from two points of the inside it is known
            first, second = a + (z - a) / 4, a + 3 * (z - a) / 4
            left, right = excess(first), excess(second)
            if left > right:
                candidates.append(min(max(first + (second - first) * left / (left - right), a), z))
    return min(candidates, key=lambda bias: _loss(problem, r - bias, A) + bias * total)


def _loss(problem: Problem, r: np.ndarray, A: Any) -> Any:
    c = _response(problem, r, A)
    return (c * r - A.of(problem.eps) * np.abs(c) - A.of(0.5) * A.of(problem.ridge) * c * c).sum()


def _hard(
    problem: Problem,
    A: Any,
    r: np.ndarray,
    dual: Any,
    quadratic: Any,
    bias: float,
    noise: np.ndarray,
    dual_error: float,
) -> Truth:
    """Stretch f until all margins are one: 1/2 |f|² over the square of the least margin."""
    positive, negative = problem.upper > 0, problem.lower < 0
    best = A.of(0.0)[()]
    if problem.has_bias and positive.any() and negative.any():
        best = (r[positive].max() + r[negative].min()) / 2
    elif problem.has_bias:
        best = A.of(bias)[()]  # one class alone: any bias far enough out
    # Beside the residuals the last place of a float64 bias moves the margins.
    off = float(noise.max(initial=0.0))
    primal, error = _stretched(A, r, best, positive, negative, quadratic, off, dual_error)
    ulp = float(np.spacing(abs(bias))) if problem.has_bias else 0.0
    reported, at_error = _stretched(A, r, A.of(bias)[()], positive, negative, quadratic, off + ulp, dual_error)
    gap, at_bias = primal - dual, reported - dual
    errors = error, dual_error, error + dual_error, at_error + dual_error
    return Truth(primal, dual, gap, at_bias, reported, best, *errors)


def _stretched(
    A: Any,
    r: np.ndarray,
    bias: Any,
    positive: np.ndarray,
    negative: np.ndarray,
    quadratic: Any,
    off: float,
    error: float,
) -> tuple[Any, float]:
    violations = [*(r[positive] - bias), *(bias - r[negative])]
    margin = 1 - max(violations) if violations else A.of(1.0)[()]
    infinite = A.of(np.inf)[()]
    if margin <= 0:
        return infinite, np.inf if margin + A.of(off)[()] > 0 else 0.0
    primal = A.of(0.5)[()] * quadratic / (margin * margin)
    short = float(margin) - off
    if short <= 0:
        return primal, np.inf
    return primal, float(primal) * 2.1 * off / short * (float(margin) / short) ** 2 + 2 * error / short**2
