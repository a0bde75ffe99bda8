"""The proof that a point is near the optimum: the duality gap, and how far float64 can have put it off."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from zerogap import precision
from zerogap.compiled import jit
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
    relative_gap : float
        (gap + rounding) / (|primal| - rounding); infinite where rounding is larger than the primal objective.
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

    @property
    def relative_gap(self) -> float:
        """Gap over the primal objective, both as bad as rounding can have made them look good."""
        return self._over(abs(self.primal))

    @property
    def feasibility_gap(self) -> float:
        """The ratio (7.3) of chapter7: gap over primal objective plus one."""
        return self._over(self.primal + 1.0)

    def _over(self, size: float) -> float:
        if not np.isfinite(self.gap + self.rounding) or size < self.rounding:
            return np.inf
        return (self.gap + self.rounding) / (size - self.rounding + TINY)

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


def dual_error(loss: Loss, target: np.ndarray, beta: np.ndarray, r: Residual, objective: float) -> float:
    """Return how far the dual objective is off: half of what the residual is, and the roundings of two sums."""
    error, size = _dual_error(beta, target, *r.arrays(), loss.ridge)
    return float(error) + UNIT * (4.0 * abs(objective) + (beta.size + 4) * loss.eps * float(size))


@jit
def _dual_error(beta, target, high, low, error, ridge):
    total, size = 0.0, 0.0
    for i in range(beta.size):
        rounded = UNIT * (abs(target[i]) + abs(high[i] + low[i]) + abs(ridge[i] * beta[i]))
        total += abs(beta[i]) * (0.5 * error[i] + rounded)
        size += abs(beta[i])
    return total, size


def summed_gap(loss: Loss, beta: np.ndarray, r: Residual, bias: float) -> tuple[float, float]:
    """Return the sum of the points' shares in the gap, and by how much rounding can have made it too small.

    A point at the bound that the sign of its residual determines has a share of zero, which stays zero unless the error
    reaches the margin.
    """
    total, largest = summed_shares(beta, *r.arrays(), bias, loss.lower, loss.upper, loss.ridge, loss.eps)
    if r.error is None:
        return float(total), 0.0
    return float(total), max(float(largest - total), 0.0) + 2.0 * (beta.size + 4) * UNIT * float(largest)


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
    square = max(float(precision.dot(beta, target - (r.high + r.low))), 0.0)
    now = max(gap(np.zeros(beta.size), 0.0), 0.0)
    if r.error is None or np.isinf(now):  # some margin is not positive: f separates nothing yet
        return now, 0.0
    size, error = np.abs(beta), r.error + 2.0 * UNIT * np.abs(z)
    extra = float(size @ (error + 2.0 * UNIT * (np.abs(target) + np.abs(r.high))))
    extra += 4.0 * UNIT * (square + abs(slope))
    return now, max(gap(error, extra) - now, 0.0) + 16.0 * UNIT * (now + square)
