"""The one problem every formulation is written in, and the proof that a point solves it.

    minimise  D(beta) = 1/2 beta'(K + diag(ridge)) beta - t'beta + eps |beta|_1
    subject to  lower <= beta <= upper  and  sum(beta) = total  (no sum constraint if total is None)

The coefficients are signed, beta_i = y_i alpha_i, so labels appear in the targets and the box only.  The primal is

    minimise  P(f, b) = 1/2 |f|² + sum_i loss_i(t_i - f(x_i) - b) + b total,
    loss_i(r) = max over lower_i <= c <= upper_i of  c r - eps |c| - ridge_i c²/2

which is the hinge, the squared hinge, an insensitive or a squared loss, as the box, eps and the ridge have it.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from zerogap import precision, validation
from zerogap.compiled import HUGE, jit
from zerogap.gram import Gram
from zerogap.kernels import UNIT

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


class Residual(NamedTuple):
    """r = t - K beta as an unevaluated sum ``high + low``, and a bound on how far each is off."""

    high: np.ndarray
    low: np.ndarray | float
    error: np.ndarray | None  # None: not asked for

    def less(self, bias: float) -> np.ndarray:
        """Return r - bias."""
        return (self.high - bias) + self.low


class Known(NamedTuple):
    """A point of which K beta is known: at another one only the rows of the coefficients that differ are needed."""

    beta: np.ndarray  # (n,)
    product: np.ndarray  # (n,) K beta


@dataclass(frozen=True, eq=False)
class DualProblem:
    """Minimise 1/2 beta'(K + diag(ridge)) beta - t'beta + eps |beta|_1 subject to sum(beta) = total, lower <= beta <= upper.

    Made by one of its constructors: ``hinge``, ``hard_margin``, ``squared_hinge``, ``epsilon_insensitive``,
    ``squared_epsilon_insensitive`` or ``gaussian_process``.

    Attributes
    ----------
    gram : Gram
        Kernel matrix (n, n), rows on demand.
    target : array of shape (n,)
        t: labels, or regression targets.
    lower, upper : arrays of shape (n,)
        The box: lower is at most 0, upper at least 0.
    ridge : array of shape (n,)
        Added to the diagonal of K.
    eps : float
        Weight of the 1-norm: the half width of a tube.
    total : float or None
        What the coefficients sum to; None if the bias is fixed to zero and nothing constrains the sum.
    known : Known or None
        A point of which K beta is known: residuals are computed from there, if not from nothing.
    n : int
        Number of coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import DualProblem, Gram, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]], "linear"), [-1, -1, 1, 1], C=10.0)
    >>> solution = solve(problem)
    >>> np.abs(solution.beta).round(3).tolist(), round(solution.bias, 3)
    ([0.0, 2.0, 2.0, 0.0], -3.0)
    """

    gram: Gram
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    eps: float = 0.0
    total: float | None = 0.0
    known: Known | None = None

    # Formulations.  A weight of two is the point twice: it doubles the box, or halves the ridge.

    @classmethod
    def hinge(
        cls, gram: Gram, y: np.ndarray, C: float, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> "DualProblem":
        """Return the 1-norm soft margin (7.1): 1/2 |f|² + C sum_i w_i max(0, 1 - y_i f(x_i)).

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Labels, -1 or +1, both present.
        C : float
            Cost of a violated margin, above 0; infinite is the hard margin.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points; by default 1.
        fit_intercept : bool, default True
            Whether the bias is free; else it is zero, and nothing constrains sum(beta).

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        C = validation.check_positive("C", C, infinite=True)
        if np.isinf(C):
            return cls.hard_margin(gram, y, sample_weight=sample_weight, fit_intercept=fit_intercept)
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, y, C * weight, np.zeros(gram.n), fit_intercept)

    @classmethod
    def hard_margin(
        cls, gram: Gram, y: np.ndarray, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> "DualProblem":
        """Return the maximal margin: 1/2 |f|² subject to y_i f(x_i) >= 1.

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Labels, -1 or +1, both present.
        sample_weight : array of shape (n,), optional
            A weight matters only by being zero or not; by default 1.
        fit_intercept : bool, default True
            Whether the bias is free; else it is zero, and nothing constrains sum(beta).

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, y, np.where(weight > 0, np.inf, 0.0), np.zeros(gram.n), fit_intercept)

    @classmethod
    def squared_hinge(
        cls, gram: Gram, y: np.ndarray, C: float, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> "DualProblem":
        """Return the 2-norm soft margin (Remark 7.10): 1/2 |f|² + C/2 sum_i w_i max(0, 1 - y_i f(x_i))².

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Labels, -1 or +1, both present.
        C : float
            Cost of a violated margin, above 0; infinite is the hard margin.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points; by default 1.
        fit_intercept : bool, default True
            Whether the bias is free; else it is zero, and nothing constrains sum(beta).

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        C = validation.check_positive("C", C, infinite=True)
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, y, np.where(weight > 0, np.inf, 0.0), _ridge(C, weight), fit_intercept)

    @classmethod
    def epsilon_insensitive(
        cls,
        gram: Gram,
        y: np.ndarray,
        C: float,
        epsilon: float = 0.1,
        *,
        sample_weight: np.ndarray | None = None,
        fit_intercept: bool = True,
    ) -> "DualProblem":
        """Return linear eps-insensitive regression (7.2): 1/2 |f|² + C sum_i w_i max(0, |y_i - f(x_i)| - epsilon).

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Targets.
        C : float
            Cost of a deviation beyond the tube, above 0 and finite.
        epsilon : float, default 0.1
            Half width of the tube, at least 0.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points; by default 1.
        fit_intercept : bool, default True
            Whether the bias is free; else it is zero, and nothing constrains sum(beta).

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        C = validation.check_positive("C", C, advice="For a hard tube use a large C.")
        weight = validation.check_weights(sample_weight, gram.n)
        return cls._two_sided(gram, y, C * weight, np.zeros(gram.n), epsilon, fit_intercept)

    @classmethod
    def squared_epsilon_insensitive(
        cls,
        gram: Gram,
        y: np.ndarray,
        C: float,
        epsilon: float = 0.1,
        *,
        sample_weight: np.ndarray | None = None,
        fit_intercept: bool = True,
    ) -> "DualProblem":
        """Return quadratic eps-insensitive regression (7.2): 1/2 |f|² + C/2 sum_i w_i max(0, |y_i - f(x_i)| - epsilon)².

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Targets.
        C : float
            Cost of a deviation beyond the tube, above 0 and finite.
        epsilon : float, default 0.1
            Half width of the tube, at least 0.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points; by default 1.
        fit_intercept : bool, default True
            Whether the bias is free; else it is zero, and nothing constrains sum(beta).

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        C = validation.check_positive("C", C, advice="For a hard tube use a large C.")
        weight = validation.check_weights(sample_weight, gram.n)
        cap = np.where(weight > 0, np.inf, 0.0)
        return cls._two_sided(gram, y, cap, _ridge(C, weight), epsilon, fit_intercept)

    @classmethod
    def gaussian_process(cls, gram: Gram, y: np.ndarray, noise: float) -> "DualProblem":
        """Return a Gaussian process, or kernel ridge (§7.6): 1/2 |f|² + 1/(2 noise) sum_i (y_i - f(x_i))², without a bias.

        The solution is beta = (K + noise I)^-1 y.

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        y : array of shape (n,)
            Targets.
        noise : float
            Variance sigma² of the observations, above 0.

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        noise = validation.check_positive("noise", noise, advice="It is the variance of the observations.")
        return cls._two_sided(gram, y, np.full(gram.n, np.inf), np.full(gram.n, noise), 0.0, False)

    @classmethod
    def _signed(
        cls, gram: Gram, y: np.ndarray, cap: np.ndarray, ridge: np.ndarray, fit_intercept: bool
    ) -> "DualProblem":
        """A class is a side of the box."""
        lower, upper = np.where(y < 0, -cap, 0.0), np.where(y > 0, cap, 0.0)
        return cls(gram, y, lower, upper, ridge, 0.0, 0.0 if fit_intercept else None)

    @classmethod
    def _two_sided(
        cls, gram: Gram, y: np.ndarray, cap: np.ndarray, ridge: np.ndarray, epsilon: float, fit_intercept: bool
    ) -> "DualProblem":
        y = validation.check_target(y, gram.n)
        epsilon = validation.check_positive("epsilon", epsilon, zero=True, advice="It is the half width of the tube.")
        return cls(gram, y, -cap, cap, ridge, epsilon, 0.0 if fit_intercept else None)

    def restricted(
        self,
        points: np.ndarray,
        beta: np.ndarray | None = None,
        *,
        residual: np.ndarray | None = None,
        gram: Gram | None = None,
    ) -> "DualProblem":
        """Return the problem of some of the points, the others staying where they are.

        All the others do is to shift the target of those that move, and to take their part of the sum:

            t_W - K_{W,rest} beta_rest  =  r_W + (K_WW + diag(ridge_W)) beta_W,   sum(beta_W) = total - sum(beta_rest)

        so residuals are those of the whole problem, and objectives differ by a constant.

        Parameters
        ----------
        points : array of shape (m,)
            Their numbers.
        beta : array of shape (n,), optional
            The feasible point the others stay at; without it they are at zero.
        residual : array of shape (n,), optional
            That of beta, if it is known; what it is off, certificates of the part do not count.
        gram : Gram, optional
            The matrix of the points, if there is one already; otherwise ``gram.subset(points)``.

        Returns
        -------
        DualProblem
            The problem of m points.
        """
        part = replace(
            self,
            gram=self.gram.subset(points) if gram is None else gram,
            target=self.target[points],
            lower=self.lower[points],
            upper=self.upper[points],
            ridge=self.ridge[points],
            known=None,
        )
        if beta is None:
            return part
        own, r = beta[points], (self.residual(beta) if residual is None else residual)[points]
        others_are_zero = np.count_nonzero(own) == np.count_nonzero(beta)  # then K_WW beta_W follows from the residual
        product = part.target - r - part.ridge * own if others_are_zero else part.gram.dot(own)
        return replace(
            part,
            target=r + product + part.ridge * own,
            total=None if self.total is None else float(own.sum()),
            known=Known(own, product),
        )

    # The mathematics.

    @property
    def n(self) -> int:
        """Number of coefficients."""
        return self.gram.n

    @property
    def diagonal(self) -> np.ndarray:
        """Diagonal of K + diag(ridge)."""
        return self.gram.diagonal + self.ridge

    @cached_property
    def has_ridge(self) -> bool:
        """Whether any diagonal entry is shifted."""
        return bool(self.ridge.any())

    @cached_property
    def is_hard(self) -> bool:
        """Whether a violated margin costs infinitely much, so that the primal may have no feasible point."""
        return bool((np.isinf(self.upper - self.lower) & (self.ridge == 0)).any())

    @cached_property
    def is_linear_system(self) -> bool:
        """Whether the solution is that of (K + diag(ridge)) beta = t: no box, no tube, no bias, and a ridge everywhere."""
        is_free = np.isinf(self.lower).all() and np.isinf(self.upper).all() and (self.ridge > 0).all()
        return bool(is_free) and not self.eps and self.total is None

    @property
    def may_be_unbounded(self) -> bool:
        """Whether the dual objective can grow for ever: with a box or a ridge, and an inner product, it cannot."""
        is_tiny = self.gram.diagonal.max() < 1e-130  # so that coefficients are beyond float64 before they can tell
        return (self.is_hard and not is_tiny) or not self.gram.seems_positive()

    def residual(self, beta: np.ndarray) -> np.ndarray:
        """Return t - (K + diag(ridge)) beta: minus the gradient of the smooth part of D.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        array of shape (n,)
            The residual.  It is the gradient of the dual objective -D, but for eps |beta|_1.
        """
        return self.target - self._product(beta) - self.ridge * beta

    def _product(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta."""
        if self.known is None:
            return self.gram.dot(beta)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.known.product + self.gram.dot(beta - self.known.beta)

    def _product_error(self, beta: np.ndarray) -> np.ndarray:
        """Return a bound on how far each entry of that is off."""
        error = self.gram.dot_error(beta)
        if self.known is not None:  # it is a sum of two products
            error = error + self.gram.dot_error(self.known.beta) + self.gram.dot_error(beta - self.known.beta)
        return error

    def rounding(self, beta: np.ndarray) -> float:
        """Return about how far rounding puts a residual off: no KKT violation below this can be told from zero.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        float
            An estimate, not a bound.
        """
        target, diagonal = self._largest
        with np.errstate(over="ignore", invalid="ignore"):
            size = target + float(np.abs(beta).sum()) * diagonal
            if self.has_ridge:
                size += float(np.abs(self.ridge * beta).max())
        return 2.0 * UNIT * size if size < HUGE else HUGE

    def roundings(self, beta: np.ndarray) -> np.ndarray:
        """Return about how far rounding puts each residual off.

        |K_ij| <= sqrt(K_ii K_jj): the large kernel values of an outlier do not count at the others, where its coefficient is
        the smaller for it.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        array of shape (n,)
            Estimates, not bounds.
        """
        if not self.gram.is_positive:
            return np.full(self.n, self.rounding(beta))
        root, size = self._root_diagonal, np.abs(beta)
        with np.errstate(over="ignore", invalid="ignore"):
            found = 2.0 * UNIT * (np.abs(self.target) + root * float(root @ size) + self.ridge * size)
        return np.where(found < HUGE, found, HUGE)

    @cached_property
    def _root_diagonal(self) -> np.ndarray:
        return np.sqrt(np.maximum(self.gram.diagonal, 0.0))

    @cached_property
    def _largest(self) -> tuple[float, float]:
        """The largest target and the largest kernel value of a point with itself."""
        return float(np.abs(self.target).max()), float(self.gram.diagonal.max())

    def objective(self, beta: np.ndarray, residual: np.ndarray | None = None) -> float:
        """Return D(beta); the dual objective of a certificate is minus this.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        residual : array of shape (n,), optional
            ``residual(beta)``, if it is known.

        Returns
        -------
        float
            The objective that is minimised.
        """
        residual = self.residual(beta) if residual is None else residual
        return float(-0.5 * beta @ (self.target + residual) + self.eps * np.abs(beta).sum())

    def up_offset(self, beta: np.ndarray) -> np.ndarray:
        """Return what, added to the residual, bounds the bias from below; the largest of these bounds is b_up.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        array of shape (n,)
            -eps s⁺, or -HUGE where beta cannot rise.
        """
        return np.where(beta < self.upper, np.where(beta >= 0, -self.eps, self.eps), -HUGE)

    def low_offset(self, beta: np.ndarray) -> np.ndarray:
        """Return what, added to the residual, bounds the bias from above; the smallest of these bounds is b_low.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        array of shape (n,)
            -eps s⁻, or HUGE where beta cannot fall.
        """
        return np.where(beta > self.lower, np.where(beta > 0, -self.eps, self.eps), HUGE)

    def bias_interval(self, beta: np.ndarray, residual: np.ndarray) -> tuple[float, float]:
        """Return b_up and b_low; beta is optimal if and only if they do not cross.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        residual : array of shape (n,)
            ``residual(beta)``.

        Returns
        -------
        tuple of two floats
            The largest lower and the smallest upper bound on the bias.
        """
        b_up, b_low = _extremes(beta, residual, self.lower, self.upper, self.eps)
        if self.total is None:  # the bias is fixed to zero
            b_up, b_low = max(b_up, 0.0), min(b_low, 0.0)
        return b_up, b_low

    def certify(
        self,
        beta: np.ndarray,
        residual: np.ndarray | None = None,
        *,
        precisely: bool = False,
        from_data: bool = True,
        drift: float = 0.0,
    ) -> Certificate:
        """Return the certificate of a feasible point.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients in the box, with the right sum.
        residual : array of shape (n,), optional
            ``residual(beta)``, if it is known; it must come from the data.
        precisely : bool, default False
            Sum the residual in twice the precision, for where rounding decides.
        from_data : bool, default True
            With ``precisely``, compute kernel values in twice the precision too.
        drift : float, default 0.0
            How far the residual that is passed may be off, besides the rounding of one product.

        Returns
        -------
        Certificate
            Objectives, gap, a bound on the rounding, and the KKT violation.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # beyond float64 nothing is certified
            r = self._plain_residual(beta, residual, drift)
            return self._certificate(beta, self._precise_residual(beta, r, from_data) if precisely else r)

    def estimate(self, beta: np.ndarray, residual: np.ndarray, rounding: float = 0.0) -> Certificate:
        """Return the certificate that follows from a solver's running arrays: to see how far a run has come.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        residual : array of shape (n,)
            ``residual(beta)``.
        rounding : float, default 0.0
            What to take the rounding for.

        Returns
        -------
        Certificate
            As good as the residual is.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            return self._certificate(beta, Residual(residual + self.ridge * beta, 0.0, None), rounding)

    def precise_residual(self, beta: np.ndarray) -> np.ndarray:
        """Return what ``residual`` does, in twice the precision where that changes the certificate.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        array of shape (n,)
            The residual.
        """
        r = self._precise_residual(beta, self._plain_residual(beta, None, 0.0), from_data=True)
        return r.high + r.low - self.ridge * beta

    def _plain_residual(self, beta: np.ndarray, residual: np.ndarray | None, drift: float) -> Residual:
        r = self.target - self._product(beta) if residual is None else residual + self.ridge * beta
        error = self._product_error(beta) + drift
        if beta.any():  # else r is the target
            error = error + 2.0 * UNIT * (np.abs(r) + np.abs(self.ridge * beta))
        return Residual(r, 0.0, error)

    def _precise_residual(self, beta: np.ndarray, r: Residual, from_data: bool) -> Residual:
        """Compute anew, in twice the precision, the residuals that matter: of support vectors and near the margin."""
        bias = self.best_bias(r.high)
        z, error = r.high - bias, 2.0 * r.error  # type: ignore[operator]
        near = np.ones(beta.size, dtype=bool)
        if not self.is_hard:
            near = np.maximum(self.gap_shares(beta, z - error), self.gap_shares(beta, z + error)) > 0
        rows = np.flatnonzero(near | (beta != 0))
        product = self.gram.precise_dot(beta, rows, from_data=from_data)
        target = self.target[rows]
        high = target - product.high
        part = high - target
        rest = ((target - (high - part)) - (product.high + part)) - product.low
        if not np.isfinite(high + rest).all():
            return r
        r = Residual(r.high.copy(), np.zeros(beta.size), r.error.copy())  # type: ignore[union-attr]
        r.high[rows], r.low[rows] = high, rest  # type: ignore[index]
        r.error[rows] = product.error + 2.0 * UNIT * np.abs(rest)  # type: ignore[index]
        return r

    def _certificate(self, beta: np.ndarray, r: Residual, known_rounding: float = 0.0) -> Certificate:
        plain = r.high + r.low
        if not math.isfinite(plain @ beta):  # an infinity or NaN in either shows in their product
            return Certificate.nothing()
        residual = plain - self.ridge * beta
        b_up, b_low = self.bias_interval(beta, residual)
        objective = 0.5 * float(precision.dot(beta, self.target + residual))
        dual = objective - (self.eps * float(np.abs(beta).sum()) if self.eps else 0.0)
        bias = self.best_bias(plain)
        gap, rounding = (self._stretched_gap if self.is_hard else self._summed_gap)(beta, r, bias)
        sum_residual = self.excess(beta)
        loose = abs(bias * sum_residual)  # a sum that is not exact moves primal and gap by this
        rounding += known_rounding if r.error is None else self._dual_error(beta, r, objective) + 2.0 * loose
        gap += loose
        primal = dual + gap
        if not np.isfinite(dual) or np.isnan(primal + rounding):
            return Certificate.nothing()
        violation = max(b_up - b_low, 0.0)
        return Certificate(primal, dual, gap, rounding, violation, (b_up, b_low), bias, sum_residual)

    def _dual_error(self, beta: np.ndarray, r: Residual, objective: float) -> float:
        """Return how far the dual objective is off: half of what the residual is, and the roundings of two sums."""
        size, plain = np.abs(beta), np.abs(r.high + r.low)
        error = 0.5 * r.error + UNIT * (np.abs(self.target) + plain + np.abs(self.ridge * beta))  # type: ignore[operator]
        return float(size @ error) + UNIT * (4.0 * abs(objective) + (beta.size + 4) * self.eps * float(size.sum()))

    def _summed_gap(self, beta: np.ndarray, r: Residual, bias: float) -> tuple[float, float]:
        """Return the sum of the points' shares in the gap, and by how much rounding can have made it too small.

        A share is convex in the residual, so that within the error it is largest at an end.  A point at the bound that the sign
        of its residual determines has a share of zero, which stays zero unless the error reaches the margin.
        """
        z = r.less(bias)
        total = float(self.gap_shares(beta, z).sum())
        if r.error is None:
            return total, 0.0
        error = r.error + 4.0 * UNIT * (np.abs(z) + np.abs(self.ridge * beta) + np.where(beta, self.eps, 0.0))
        largest = float(np.maximum(self.gap_shares(beta, z - error), self.gap_shares(beta, z + error)).sum())
        return total, max(largest - total, 0.0) + 2.0 * (beta.size + 4) * UNIT * largest

    def _response(self, r: np.ndarray) -> np.ndarray:
        """Return the c in the box that attains loss_i(r_i); the lesser one where two ends do."""
        if not self.has_ridge:
            at_most = np.where(r <= -self.eps, self.lower, 0.0) if self.eps else self.lower
            return np.where(r > self.eps, self.upper, at_most)
        shrunk = np.where(r > self.eps, r - self.eps, np.minimum(r + self.eps, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = np.clip(shrunk / self.ridge, self.lower, self.upper)
        at_most = np.where(r <= -self.eps, self.lower, 0.0)
        return np.where(self.ridge > 0, smooth, np.where(r > self.eps, self.upper, at_most))

    def gap_shares(self, beta: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return loss_i(r_i) + conjugate_i(beta_i) - beta_i r_i: what each point adds to the duality gap.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        r : array of shape (n,)
            t - K beta - bias.

        Returns
        -------
        array of shape (n,)
            At least 0 (Fenchel and Young); for the hinge the terms of Remark 7.2 of chapter7 with the bias inside: their
            sum is the same.
        """
        c = self._response(r)
        return (c - beta) * (r - 0.5 * self.ridge * (c + beta)) - self.eps * (np.abs(c) - np.abs(beta))

    def _stretched_gap(self, beta: np.ndarray, r: Residual, bias: float) -> tuple[float, float]:
        """Stretch f until every margin is at least one: that point is feasible, and its objective an upper bound.

        With the least margin m, primal - dual is |f|²/2 (1/m² - 1) - beta'(r - bias): no difference of large numbers.
        Returns it with the error that rounding can have made.
        """
        z = r.less(bias)
        rising, falling = self.upper > 0, self.lower < 0
        if not (rising | falling).any():
            return 0.0, 0.0

        def gap(slack: np.ndarray, more: float) -> float:
            shortfall = max((z + slack)[rising].max(initial=-np.inf), (slack - z)[falling].max(initial=-np.inf))
            if shortfall >= 1.0:
                return np.inf
            return 0.5 * (square + more) * shortfall * (2.0 - shortfall) / (1.0 - shortfall) ** 2 - slope + more

        slope = float(precision.dot(beta, z))
        square = max(float(precision.dot(beta, self.target - (r.high + r.low))), 0.0)
        now = max(gap(np.zeros(beta.size), 0.0), 0.0)
        if r.error is None or np.isinf(now):  # some margin is not positive: f separates nothing yet
            return now, 0.0
        size, error = np.abs(beta), r.error + 2.0 * UNIT * np.abs(z)
        more = float(size @ (error + 2.0 * UNIT * (np.abs(self.target) + np.abs(r.high)))) + 4.0 * UNIT * (
            square + abs(slope)
        )
        return now, max(gap(error, more) - now, 0.0) + 16.0 * UNIT * (now + square)

    def is_unbounded(self, beta: np.ndarray, residual: np.ndarray) -> bool:
        """Return whether beta shows that a hard margin is impossible: the convex hulls of the classes meet.

        With s = sum(alpha) / 2, f / s is the difference of two points of these hulls.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        residual : array of shape (n,)
            ``residual(beta)``.

        Returns
        -------
        bool
            Whether they meet, to a millionth of their radius.
        """
        if not self.is_hard:
            return False
        half_sum = 0.5 * float(np.abs(beta).sum())
        if not 0 < half_sum < np.inf:
            return False
        hull = float((beta / half_sum) @ ((self.target - residual) / half_sum))  # |f / s|², with no overflow on the way
        return hull <= 1e-12 * float(self.gram.diagonal.max())

    def _widest_bias(self, r: np.ndarray) -> float:
        """Return the bias halfway between the nearest points of both classes."""
        highest = float(r[np.isinf(self.upper)].max(initial=-np.inf))
        lowest = float(r[np.isinf(self.lower)].min(initial=np.inf))
        if np.isinf(highest) or np.isinf(
            lowest
        ):  # one class alone: its margins hold with any bias that is large enough
            return lowest if np.isfinite(lowest) else highest if np.isfinite(highest) else 0.0
        return 0.5 * highest + 0.5 * lowest

    def best_bias(self, r: np.ndarray) -> float:
        """Return the bias that minimises the primal objective, the middle one if there are many.

        The derivative of P by the bias is total - S(bias), where S = sum_i response_i(r_i - bias) falls as the bias grows.

        Parameters
        ----------
        r : array of shape (n,)
            t - K beta.

        Returns
        -------
        float
            Zero if the bias is fixed.
        """
        if self.total is None:
            return 0.0
        if self.is_hard:
            return self._widest_bias(r)
        with np.errstate(over="ignore", invalid="ignore"):
            bias = self._root_of_slopes(r) if self.has_ridge else self._root_of_steps(r)
        return bias if np.isfinite(bias) else 0.0

    @cached_property
    def _steps(self) -> tuple[np.ndarray, float]:
        """How far S falls at each knot of a problem without ridge, and how much of a difference is rounding."""
        drops = np.concatenate([self.upper, -self.lower]) if self.eps else self.upper - self.lower
        return drops, 1e-13 * float(drops.sum())

    def _root_of_steps(self, r: np.ndarray) -> float:
        """Where S, constant but for a step at each knot, falls to the total."""
        drops, rounding = self._steps
        knots = np.concatenate([r - self.eps, r + self.eps]) if self.eps else r
        order = np.argsort(knots)
        excess = self.upper.sum() - self.total - np.cumsum(drops[order])  # just right of each knot
        k = int(np.argmax(excess <= rounding))
        if excess[k] >= -rounding and k + 1 < order.size:  # level with the total up to the next knot
            return 0.5 * float(knots[order[k]] + knots[order[k + 1]])
        return float(knots[order[k]])

    def _root_of_slopes(self, r: np.ndarray) -> float:
        """Where S, linear between knots with perhaps a step at one, falls to the total: bisect, then interpolate."""
        with np.errstate(invalid="ignore"):  # of an infinite box times no ridge
            starts, stops = r - self.eps - self.ridge * self.upper, r + self.eps - self.ridge * self.lower
        ends = np.concatenate([starts, r - self.eps, r + self.eps, stops])
        knots = np.unique(ends[np.isfinite(ends)])
        if not knots.size:
            return 0.0

        def excess(bias: float) -> float:
            return float(self._response(r - bias).sum()) - self.total  # type: ignore[operator]

        low, high = -1, knots.size  # excess(knots[low]) > 0 >= excess(knots[high]), the ends standing for -inf and inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if excess(knots[middle]) > 0 else (low, middle)
        if high == 0:  # left of all knots S has one slope
            a, unit = knots[0], max(1.0, abs(knots[0]))
            near, far = excess(a - unit), excess(a - 2 * unit)
            before, slope = 2 * near - far, (far - near) / unit
            return float(a + before / slope) if before < 0 < slope else float(a)
        if high == knots.size:  # and right of them too
            a, unit = knots[-1], max(1.0, abs(knots[-1]))
            slope = (excess(a) - excess(a + unit)) / unit
            return float(a + excess(a) / slope) if slope > 0 else float(a)
        a, b = knots[low], knots[high]
        at_a = excess(a)
        before_b = 2 * excess(0.5 * (a + b)) - at_a  # the limit from the left: at b itself S may step down
        return float(a + (b - a) * at_a / (at_a - before_b)) if before_b < 0 else float(b)

    # Feasible points.

    def excess(self, beta: np.ndarray) -> float:
        """Return sum(beta) - total.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        float
            Rounded once; zero where nothing constrains the sum.
        """
        return 0.0 if self.total is None else math.fsum([*beta.tolist(), -self.total])

    def feasible(self, beta: np.ndarray) -> np.ndarray:
        """Return a feasible point near beta: clipped to the box, then the side in excess scaled down.

        Parameters
        ----------
        beta : array of shape (n,)
            Any coefficients.

        Returns
        -------
        array of shape (n,)
            Coefficients in the box, with the right sum.
        """
        beta = np.asarray(beta, dtype=np.float64)
        beta = np.clip(np.where(np.isfinite(beta), beta, 0.0), self.lower, self.upper)
        if self.total is None:
            return beta
        excess = self.excess(beta)
        side = beta > 0 if excess > 0 else beta < 0
        weight = np.abs(beta[side]).sum()
        if abs(excess) <= 4.0 * UNIT * np.abs(beta).sum():
            return self.restore_sum(beta)  # rounding alone: coefficients at their bounds stay there
        if weight > abs(excess):
            beta[side] *= 1.0 - abs(excess) / weight
        elif excess:
            return self._fill()
        return self.restore_sum(beta)

    def _fill(self) -> np.ndarray:
        """Return a feasible point made from nothing: zero, or the total spread over the room there is."""
        beta = np.zeros(self.n)
        if self.total:
            room = self.upper if self.total > 0 else self.lower
            filled = np.cumsum(np.minimum(np.abs(room), abs(self.total)))
            beta = np.sign(self.total) * np.diff(np.minimum(filled, abs(self.total)), prepend=0.0)
        return beta

    def feasible_start(self) -> np.ndarray:
        """Return the point solvers start from.

        Returns
        -------
        array of shape (n,)
            Zero, or the total spread over the box.
        """
        return self._fill()

    def restore_sum(self, beta: np.ndarray) -> np.ndarray:
        """Put what rounding left in sum(beta) - total on the free coefficient with the most room.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients, changed in place.

        Returns
        -------
        array of shape (n,)
            beta itself.
        """
        for _ in range(2):  # a coefficient that was large before leaves a little to rounding once more
            drift = self.excess(beta)
            if drift == 0.0:
                break
            room = np.minimum(self.upper - beta, beta - self.lower)
            if self.eps:  # a coefficient at zero is not free: |beta| has a kink there
                room = np.minimum(room, np.abs(beta))
            k = int(np.argmax(room))
            if abs(drift) < room[k]:
                beta[k] -= drift
                continue
            way = beta - self.lower if drift > 0 else self.upper - beta
            inside = np.where(room > 0, way, 0.0)  # one near a bound may have the room on the side that is wanted
            k = int(np.argmax(inside))
            if abs(drift) <= inside[k] * (1.0 + 4.0 * UNIT):
                beta[k] = np.clip(beta[k] - drift, self.lower[k], self.upper[k])
            elif abs(drift) > 16.0 * UNIT * float(np.abs(beta).sum()):  # none free, and more than rounding: off a bound
                k = int(np.argmax(way))
                beta[k] -= np.sign(drift) * min(abs(drift), way[k])
        return beta


@jit
def _extremes(beta, residual, lower, upper, eps):
    """Return the largest lower bound on the bias, of points that can rise, and the least upper one, of those that can fall."""
    b_up, b_low = -HUGE, HUGE
    for i in range(beta.size):
        if beta[i] < upper[i]:
            b_up = max(b_up, residual[i] - (eps if beta[i] >= 0 else -eps))
        if beta[i] > lower[i]:
            b_low = min(b_low, residual[i] - (eps if beta[i] > 0 else -eps))
    return b_up, b_low


def _ridge(C: float, weight: np.ndarray) -> np.ndarray:
    """1/(C w), and zero for points of weight zero, whose box is empty anyway."""
    is_there = weight > 0
    return np.where(is_there, 1.0 / (C * np.where(is_there, weight, 1.0)), 0.0)
