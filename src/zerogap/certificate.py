"""The proof that a point is near the optimum: the duality gap, and how far float64 can have put it off."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import precision
from zerogap.compiled import HUGE, jit, jit_sums
from zerogap.kernels import UNIT
from zerogap.loss import Loss, summed_shares
from zerogap.wording import objectives

TINY = np.finfo(float).tiny


@dataclass(frozen=True)
class Certificate:
    """How far a point is from the optimum, computed from the data in float64, with a bound on the error of float64.

    The optimum lies between ``dual - rounding`` and ``primal + rounding``, and the point at most ``gap + rounding`` above it.

    Attributes
    ----------
    primal : float
        P at beta with the bias that makes it least (hard margin: stretched until every margin holds).
    dual : float
        -D(beta), a lower bound on every primal objective.
    gap : float
        primal - dual, summed from terms that cannot be negative, so without cancellation.
    rounding : float
        Primal, dual and gap are off by at most this: kernel values, K beta and the sums.
    kkt_violation : float
        Largest violation of the optimality conditions (7)-(9) of ong: b_up - b_low, at least 0.
    bias_interval : tuple of two floats
        (b_up, b_low), the largest lower and the smallest upper bound on the bias; crossed if conditions are violated.
    bias : float
        The bias used in ``primal``.
    sum_residual : float
        sum(beta) - total, zero but for rounding.
    is_zero : bool
        Whether beta is zero and all losses are, but for the last digits of the targets: then it is optimal for targets that
        differ by no more, and there is nothing that a gap could be relative to.
    relative_gap : float
        (gap + rounding) / (|primal| - rounding); infinite where rounding is larger than the primal objective, and zero where
        ``is_zero``.
    feasibility_gap : float
        The ratio (7.3) of chapter7.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import DualProblem, Gram
    >>> problem = DualProblem.hard_margin(Gram([[0.0], [1.0], [2.0]], "linear"), [-1, -1, 1])
    >>> certificate = problem.certify(np.array([0.0, -2.0, 2.0]))
    >>> float(certificate.primal), certificate.dual, bool(certificate.relative_gap < 1e-13)
    (2.0, 2.0, True)
    """

    primal: float
    dual: float
    gap: float
    rounding: float
    kkt_violation: float
    bias_interval: tuple[float, float]
    bias: float
    sum_residual: float
    is_zero: bool = False

    @property
    def relative_gap(self) -> float:
        """Gap over the primal objective, both as bad as rounding can have made them look good."""
        return 0.0 if self.is_zero else self._over(abs(self.primal))

    @property
    def feasibility_gap(self) -> float:
        """The ratio (7.3) of chapter7: gap over primal objective plus one."""
        return self._over(self.primal + 1.0)

    def _over(self, size: float) -> float:
        if not np.isfinite(self.gap + self.rounding) or size < self.rounding:
            return np.inf
        return (self.gap + self.rounding) / (size - self.rounding + TINY)

    @classmethod
    def of(
        cls, found: "Measured", bias: float, sum_residual: float, *, has_bias: bool = True, rounding: float = 0.0
    ) -> "Certificate":
        """Return what sums over all points say; ``rounding`` comes on top of what they say of it.

        Parameters
        ----------
        found : Measured
            The sums.
        bias : float
            The one they were made with.
        sum_residual : float
            sum(beta) - total.
        has_bias : bool, default True
            Whether the bias is free; else it is zero, a bound from both sides.
        rounding : float, default 0.0
            More of it.

        Returns
        -------
        Certificate
            That of nothing, where numbers are beyond float64.
        """
        loose = abs(bias * sum_residual)  # a sum that is not exact moves primal and gap by this
        gap = found.gap + loose
        primal, rounding = found.dual + gap, rounding + found.gap_error + found.dual_error + 2.0 * loose
        if not math.isfinite(found.dual) or math.isnan(primal + rounding):
            return cls.nothing()
        b_up, b_low = (found.b_up, found.b_low) if has_bias else (max(found.b_up, 0.0), min(found.b_low, 0.0))
        return cls(primal, found.dual, gap, rounding, max(b_up - b_low, 0.0), (b_up, b_low), bias, sum_residual)

    @classmethod
    def nothing(cls) -> "Certificate":
        """Return the certificate of a point of which nothing is known: its numbers are beyond float64, or not computed.

        Returns
        -------
        Certificate
            Primal, gap and violation infinite.
        """
        return cls(np.inf, -np.inf, np.inf, np.inf, np.inf, (-np.inf, np.inf), 0.0, 0.0)

    def __str__(self) -> str:
        return (
            f"primal {self.primal:.10g}, dual {self.dual:.10g}, relative gap {self.relative_gap:.2e}, "
            f"KKT violation {self.kkt_violation:.2e}"
        )

    def __repr__(self) -> str:
        return f"Certificate({self._in_words()}; KKT violation {self.kkt_violation:.2g}, rounding {self.rounding:.2g})"

    def _in_words(self) -> str:
        """Return what is proved of the optimum."""
        if not np.isfinite(self.relative_gap):
            return "nothing is proved"
        dual, primal = objectives(self)
        return f"relative gap {self.relative_gap:.2g}, optimum between {dual} and {primal}"

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_certificate

        return of_certificate(self)


class Residual(NamedTuple):
    """r = t - K beta as an unevaluated sum ``high + low``, and a bound on how far each is off."""

    high: np.ndarray
    low: np.ndarray | float
    error: np.ndarray | None  # None: not asked for

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return high, low and error for compiled code, the error empty if it was not asked for."""
        low = self.low if isinstance(self.low, np.ndarray) else np.zeros(self.high.size)
        return self.high, low, np.empty(0) if self.error is None else self.error

    def less(self, bias: float) -> np.ndarray:
        """Return r - bias."""
        return (self.high - bias) + self.low


class Measured(NamedTuple):
    """What the sums over all points say of a point, but for the bias; compiled code returns it."""

    b_up: float
    b_low: float
    dual: float
    dual_error: float  # how far rounding can have put that off; zero where no error of the residual was given
    gap: float
    gap_error: float  # by how much it can have made that too small


@jit_sums
def product(x, z):
    """Return x'z.  For ten thousand numbers BLAS takes its threads, which then ask for more at the cost of a core each."""
    s = 0.0
    for i in range(x.size):
        s += x[i] * z[i]
    return s


@jit
def measured(beta, target, high, low, error, lower, upper, ridge, eps, bias):
    """Return the sums over all points, at a residual of high + low that is off by at most the error, or by an unknown one.

    A point at the bound that the sign of its residual determines has a share of zero in the gap, which stays zero unless the
    error reaches the margin.
    """
    residual, slope = np.empty(beta.size), np.empty(beta.size)
    size, rounded, off = 0.0, 0.0, 0.0
    for i in range(beta.size):
        r, pull = high[i] + low[i], ridge[i] * beta[i]
        residual[i] = r - pull
        slope[i] = target[i] + residual[i]
        size += abs(beta[i])
        rounded += abs(beta[i]) * (abs(target[i]) + abs(r) + abs(pull))
        if error.size:
            off += abs(beta[i]) * error[i]
    b_up, b_low = extremes(beta, residual, lower, upper, eps)
    objective = 0.5 * precision.dot(beta, slope)
    gap, largest = summed_shares(beta, high, low, error, bias, lower, upper, ridge, eps)
    dual_error, gap_error = 0.0, 0.0
    if error.size:  # half of what the residual is off, and the roundings of two sums
        dual_error = 0.5 * off + UNIT * (rounded + 4.0 * abs(objective) + (beta.size + 4) * eps * size)
        gap_error = max(largest - gap, 0.0) + 2.0 * (beta.size + 4) * UNIT * largest
    return Measured(b_up, b_low, objective - eps * size, dual_error, gap, gap_error)


@jit
def extremes(beta, residual, lower, upper, eps):
    """Return the largest lower bound on the bias, of points that can rise, and the least upper one, of those that can fall."""
    b_up, b_low = -HUGE, HUGE
    for i in range(beta.size):
        if beta[i] < upper[i]:
            b_up = max(b_up, residual[i] - (eps if beta[i] >= 0 else -eps))
        if beta[i] > lower[i]:
            b_low = min(b_low, residual[i] - (eps if beta[i] > 0 else -eps))
    return b_up, b_low


def stretched_gap(loss: Loss, target: np.ndarray, beta: np.ndarray, r: Residual, bias: float) -> tuple[float, float]:
    """Stretch f until every margin is at least one: that point is feasible, and its objective an upper bound.

    With the least margin m, primal - dual is |f|²/2 (1/m² - 1) - beta'(r - bias): no difference of large numbers.
    Returns it with the error that rounding can have made.
    """
    z = r.less(bias)
    rising, falling = loss.upper > 0, loss.lower < 0
    if not (rising | falling).any():
        return 0.0, 0.0

    def gap(slack: np.ndarray, extra: float) -> float:  # with residuals off by the slack, and both sums by extra
        shortfall = max((z + slack)[rising].max(initial=-np.inf), (slack - z)[falling].max(initial=-np.inf))
        if shortfall >= 1.0:
            return np.inf
        return 0.5 * (square + extra) * shortfall * (2.0 - shortfall) / (1.0 - shortfall) ** 2 - slope + extra

    slope = float(precision.dot(beta, z))
    found = float(precision.dot(beta, target - (r.high + r.low)))
    square = max(found, 0.0)
    now = max(gap(np.zeros(beta.size), 0.0), 0.0)
    if r.error is None or np.isinf(now):  # some margin is not positive: f separates nothing yet
        return now, 0.0
    size, error = np.abs(beta), r.error + 2.0 * UNIT * np.abs(z)
    extra = float(size @ (error + 2.0 * UNIT * (np.abs(target) + np.abs(r.high))))
    extra += 4.0 * UNIT * (square + abs(slope))
    if found < -extra:  # more than rounding does: the kernel is no inner product, and nothing is bounded
        return np.inf, 0.0
    return now, max(gap(error, extra) - now, 0.0) + 16.0 * UNIT * (now + square)
