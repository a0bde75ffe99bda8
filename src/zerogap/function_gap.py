"""How far any function is above a lower bound on the optimum.

Let f be a function with intercept b, and beta a feasible point of the dual problem, which makes f_beta.  With
z_i = t_i - f(x_i) - b

    P(f, b) + D(beta) = sum_i [loss_i(z_i) + conjugate_i(beta_i) - beta_i z_i] + 1/2 |f - f_beta|² - b (sum(beta) - total)

No term is negative but the last one, which is zero but for rounding, so nothing cancels.  The dual objective -D(beta) is at
most the optimum: the sum is at least how far the function is above it.  The function need not come from beta: a linear model is
its vector w alone, and a kernel model has coefficients that may be a little outside the box.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap import precision
from zerogap.certificate import Certificate, Residual, measured, stretched_gap
from zerogap.kernels import UNDERFLOW, UNIT
from zerogap.problem import DualProblem

DECIDES = 1e-10  # a relative rounding below this needs no more digits


@dataclass(frozen=True)
class Compared:
    """A function and a feasible point, seen from the training points."""

    residual: Residual  # t - f(x), without the intercept
    bias: float
    beta: np.ndarray
    dual_residual: Residual  # t - f_beta(x)
    distance: float  # 1/2 |f - f_beta|²
    distance_error: float


def appraised(problem: DualProblem, pair: Compared) -> Certificate:
    """Return primal objective of the function, lower bound, and gap, with a bound on the rounding."""
    beta, r = pair.beta, pair.dual_residual
    plain = r.high + r.low
    square = float(precision.dot(beta, problem.target - plain))  # |f_beta|²
    is_indefinite = square < -float(np.abs(beta) @ (r.error + 2.0 * UNIT * np.abs(problem.target)))
    if is_indefinite or not np.isfinite(square + plain @ beta + pair.residual.high @ beta + pair.distance):
        return Certificate.nothing()
    box = problem.lower, problem.upper, problem.ridge, problem.eps
    found = measured(beta, problem.target, *r.arrays(), *box, pair.bias)
    if problem.is_hard:  # stretched until every margin holds: what it is with its own intercept
        gap, error = stretched_gap(problem.loss, problem.target, beta, pair.residual, pair.bias)
    else:
        own = measured(beta, problem.target, *pair.residual.arrays(), *box, pair.bias)
        gap, error = own.gap, own.gap_error
    gap, error = gap + pair.distance, error + pair.distance_error
    error += UNIT * (2.0 * abs(found.dual) + 4.0 * gap)  # of the sums here
    found = found._replace(gap=gap, gap_error=error)
    return Certificate.of(found, pair.bias, problem.excess(beta), has_bias=problem.total is not None)


def expansion_certificate(problem: DualProblem, coefficients: np.ndarray, bias: float, beta: np.ndarray) -> Certificate:
    """Return that of f = sum_i coefficients_i k(x_i, .), of which the feasible point is beta as a rule, or near it."""
    with np.errstate(over="ignore", invalid="ignore"):
        plain = _plain(problem, coefficients)
        difference = coefficients - beta
        moved, error = problem.gram.dot(difference), problem.gram.dot_error(difference)
        found = appraised(problem, _compared(plain, bias, beta, difference, moved, error))
        for from_data in (False, True):  # a sum of kernel values as they are is cheap, and often precise enough
            if found.rounding <= max(0.1 * found.gap, DECIDES * abs(found.primal)):
                break
            finer = _precise(problem, coefficients, beta, plain, bias, from_data)
            found = appraised(problem, _compared(finer, bias, beta, difference, moved, error))
    return found


def _plain(problem: DualProblem, coefficients: np.ndarray) -> Residual:
    product = problem.gram.dot(coefficients)
    r = problem.target - product
    return Residual(r, np.zeros(r.size), problem.gram.dot_error(coefficients) + 2.0 * UNIT * np.abs(r))


def _compared(
    own: Residual, bias: float, beta: np.ndarray, difference: np.ndarray, moved: np.ndarray, error: np.ndarray
) -> Compared:
    """K beta is K coefficients less K difference, of which only a few entries are not zero as a rule."""
    size = np.abs(difference)
    if not size.any():
        return Compared(own, bias, beta, own, 0.0, 0.0)
    low = own.low + moved
    r = Residual(own.high, low, own.error + error + 2.0 * UNIT * (np.abs(low) + np.abs(moved)))
    square, off = float(precision.dot(difference, moved)), float(size @ error)
    if square < -off:  # more than rounding does: no inner product, and no distance
        square = np.inf
    square = max(square, 0.0)
    return Compared(own, bias, beta, r, 0.5 * square, 0.5 * off + 4.0 * UNIT * square)


def _precise(
    problem: DualProblem, coefficients: np.ndarray, beta: np.ndarray, r: Residual, bias: float, from_data: bool
) -> Residual:
    """Compute anew, in twice the precision, the residuals that matter: of support vectors and near the margin."""
    near = coefficients != 0
    if not problem.is_hard:
        z, error = r.high - bias, 2.0 * np.asarray(r.error)
        shares = np.maximum(problem.gap_shares(beta, z - error), problem.gap_shares(beta, z + error))
        near |= (shares > 0) | (beta != 0)
    return problem.refined(coefficients, r, np.flatnonzero(near | problem.is_hard), from_data)


def vector_certificate(
    problem: DualProblem,
    X: Any,
    w: np.ndarray,
    beta: np.ndarray,
    offset_error: float = 0.0,
    bias: float = 0.0,
    *,
    centre: np.ndarray | None = None,
    v: np.ndarray | None = None,
    enough: float = 0.0,
    decides: float = DECIDES,
) -> Certificate:
    """Return that of the linear function <w, x - centre> + bias, w any vector; a value may be off by ``offset_error`` besides.

    |f - f_beta|² is |w - X'beta|², and w need not be a combination of the points; v is X'beta, of ``vector``, where known.
    More digits are computed where a relative gap is more than ``enough``, and a relative rounding more than ``decides``.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        lengths, size = np.sqrt(np.maximum(problem.gram.diagonal, 0.0)), float(np.linalg.norm(w))
        values, error = _values(X, w, centre), 1.01 * (w.size + 3) * UNIT * lengths  # Cauchy and Schwarz
        own = _residual(problem, values, np.zeros(beta.size), error * size + offset_error)
        v = vector(X, beta, centre) if v is None else v
        away = float(np.linalg.norm(w - v))
        off = 2.0 * UNIT * (away + size) + 2.0 * ((beta.size + 4) * UNIT) ** 2 * float(lengths @ np.abs(beta))
        distance, distance_error = 0.5 * away**2, away * off + 0.5 * off**2 + 2.0 * UNIT * (w.size + 4) * away**2
        is_same = away <= 4.0 * UNIT * size  # then <v, x> is <w, x> but for that
        more = lengths * (off + (away if is_same else 0.0)) + _underflow(lengths, beta, w.size)
        dual = _residual(
            problem,
            values if is_same else _values(X, v, centre),
            np.zeros(beta.size),
            error * (size + away) + more,
        )
        found = appraised(problem, Compared(own, bias, beta, dual, distance, distance_error))
        if found.relative_gap > enough and found.rounding > max(0.1 * found.gap, decides * abs(found.primal)):
            high, low = precision.products(X, np.zeros(w.size) if centre is None else centre, w, np.zeros(w.size))
            error = 4.0 * ((w.size + 4) * UNIT) ** 2 * lengths * size
            own = _residual(problem, high, low, error + offset_error)
            dual = problem.refined(beta, dual, np.arange(beta.size))
            found = appraised(problem, Compared(own, bias, beta, dual, distance, distance_error))
    return found


def _values(X: Any, w: np.ndarray, centre: np.ndarray | None) -> np.ndarray:
    """Return <w, x - centre> for every row."""
    return np.asarray(X @ w if centre is None else (X - centre) @ w)


def _underflow(lengths: np.ndarray, beta: np.ndarray, d: int) -> np.ndarray:
    """Return what <X'beta, x> may lose below the normal numbers."""
    return UNDERFLOW * ((np.count_nonzero(beta) + 2.0) * math.sqrt(d) * lengths + (d + 2.0))


def vector(X: Any, beta: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    """Return (X - centre)'beta, summed in twice the precision: of large coefficients little may be left."""
    high, low = precision.combination(X, np.zeros(X.shape[1]) if centre is None else centre, beta)
    return high + low


def _residual(problem: DualProblem, values: np.ndarray, low: np.ndarray, error: np.ndarray) -> Residual:
    """Return the targets less values that are off by an error."""
    high = problem.target - values
    part = high - problem.target
    rest = ((problem.target - (high - part)) - (values + part)) - low  # with what rounding took from the difference
    return Residual(high, rest, error + 2.0 * UNIT * np.abs(rest))
