"""The one problem every formulation is written in: its objective, its optimality conditions and its feasible points.

    minimise  D(beta) = 1/2 beta'(K + diag(ridge)) beta - t'beta + eps |beta|_1
    subject to  lower <= beta <= upper  and  sum(beta) = total  (no sum constraint if total is None)

The coefficients are signed, beta_i = y_i alpha_i, so labels appear in the targets and the box only.  The primal is

    minimise  P(f, b) = 1/2 |f|² + sum_i loss_i(t_i - f(x_i) - b) + b total,
    loss_i(r) = max over lower_i <= c <= upper_i of  c r - eps |c| - ridge_i c²/2

which is the hinge, the squared hinge, an insensitive or a squared loss, as the box, eps and the ridge have it: ``loss.py``
knows the losses, ``formulations.py`` what each of the textbook is in these terms, ``certificate.py`` how a gap is proved.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from zerogap import precision, validation
from zerogap.certificate import Certificate, Residual, extremes, measured, product, stretched_gap
from zerogap.compiled import HUGE, jit
from zerogap.formulations import Formulations
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.loss import Loss
from zerogap.wording import kernel_in_words, problem_in_words

# What rounding may leave in the sum of coefficients, as a share of the sum of their absolute values.
SUM_ROUNDING = 16.0 * UNIT

# By this part of itself a target may be off where all losses count as zero: it was rounded, and so is its difference to f.
LAST_DIGITS = 8.0 * UNIT

# Coefficients that hold what is left of a sum, one after the other: each is below the rounding of the one before, and numbers
# of float64 have room for forty such.
MOST_PASSES = 64


class Known(NamedTuple):
    """A point of which K beta is known: at another one only the rows of the coefficients that differ are needed."""

    beta: np.ndarray  # (n,)
    product: np.ndarray  # (n,) K beta
    error: np.ndarray | None = None  # (n,) how far that may be off; None for the rounding of one product


@dataclass(frozen=True, eq=False)
class DualProblem(Formulations):
    """Minimise 1/2 beta'(K + diag(ridge)) beta - t'beta + eps |beta|_1 subject to sum(beta) = total, lower <= beta <= upper.

    Made by one of its constructors: ``hinge``, ``hard_margin``, ``squared_hinge``, ``epsilon_insensitive``,
    ``squared_epsilon_insensitive``, ``one_class`` or ``gaussian_process``.

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

    def __post_init__(self) -> None:
        if self.known is not None:  # a part of a problem that was looked at, at a point that may be beyond float64
            return
        validation.check_gram(self.gram)
        for name in ("target", "lower", "upper", "ridge"):
            value = np.asarray(getattr(self, name), dtype=np.float64)
            if value.shape != (self.gram.n,):
                raise ValueError(
                    f"{name} must hold one number for each of the {self.gram.n} points; got shape {value.shape}."
                )
            object.__setattr__(self, name, value)
        is_finite, holds_zero = _are_sound(self.target, self.lower, self.upper, self.ridge)
        if not is_finite:
            raise ValueError("target must be finite, and ridge finite and not negative, at points of weight zero too.")
        if not holds_zero:
            raise ValueError(
                "The box must hold zero, lower <= 0 <= upper at every point, as the box of a loss does that is zero where the "
                "prediction is right. Shift the loss: a slope common to both sides belongs into the target."
            )
        validation.check_positive("eps", self.eps, zero=True, advice="It is the half width of the tube.")
        if self.total is not None:
            below, above = float(self.lower.sum()), float(self.upper.sum())
            slack = UNIT * self.gram.n * max(abs(self.total), min(-below, above))
            if not below - slack <= self.total <= above + slack:
                raise ValueError(
                    f"total must be between {below:g} and {above:g}, the sums of the bounds; got {self.total!r}."
                )

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
        gram = self.gram.subset(points) if gram is None else gram
        target, ridge, total, known = self.target[points], self.ridge[points], self.total, None
        if beta is not None:
            own, r = beta[points], (self.residual(beta) if residual is None else residual)[points]
            others_are_zero = np.count_nonzero(own) == np.count_nonzero(
                beta
            )  # then K_WW beta_W follows from the residual
            product = target - r - ridge * own if others_are_zero else gram.dot(own)
            target, known = r + product + ridge * own, Known(own, product)
            total = None if total is None else float(own.sum())
        lower, upper = self.lower[points], self.upper[points]
        return replace(self, gram=gram, target=target, lower=lower, upper=upper, ridge=ridge, total=total, known=known)

    def reweighted(self, point: int, share: float) -> "DualProblem":
        """Return the problem in which a point has only a share of its weight: a smaller box, or a larger ridge.

        Parameters
        ----------
        point : int
            Its number.
        share : float
            From 0, as if it were not there, to 1.

        Returns
        -------
        DualProblem
            The problem of the same points.
        """
        lower, upper, ridge = self.lower.copy(), self.upper.copy(), self.ridge
        if share == 0:
            lower[point] = upper[point] = 0.0
        else:
            lower[point], upper[point], ridge = share * lower[point], share * upper[point], ridge.copy()
            ridge[point] /= share
        return replace(self, lower=lower, upper=upper, ridge=ridge)

    def __repr__(self) -> str:
        return f"DualProblem({problem_in_words(self)}, {kernel_in_words(self.gram)} kernel)"

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_problem

        return of_problem(self)

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
    def loss(self) -> Loss:
        """The loss of the primal problem."""
        return Loss(self.lower, self.upper, self.ridge, self.eps)

    @property
    def has_ridge(self) -> bool:
        """Whether any diagonal entry is shifted."""
        return self.loss.has_ridge

    @property
    def is_hard(self) -> bool:
        """Whether a violated margin costs infinitely much, so that the primal may have no feasible point."""
        return self.loss.is_hard

    @cached_property
    def is_linear_system(self) -> bool:
        """Whether the solution is that of (K + diag(ridge)) beta = t: no box, no tube, no bias, and a ridge everywhere."""
        is_free = np.isinf(self.lower).all() and np.isinf(self.upper).all() and (self.ridge > 0).all()
        return bool(is_free) and not self.eps and self.total is None

    @cached_property
    def is_nearest_point(self) -> bool:
        """Whether it asks for the nearest points of two convex hulls: classes, a free bias, no tube, and no cap on alpha."""
        rises, falls = self.upper > 0, self.lower < 0
        is_class = np.where(
            rises, np.isinf(self.upper) & (self.target == 1), ~falls | (np.isinf(self.lower) & (self.target == -1))
        )
        has_both = bool(rises.any() and falls.any()) and not (rises & falls).any()
        return has_both and bool(is_class.all()) and self.total == 0 and not self.eps

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
        if self.known is None and not beta.any():
            return self.target.copy()
        r = self.target - self._product(beta)
        return r - self.ridge * beta if self.has_ridge else r

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
            known = self.gram.dot_error(self.known.beta) if self.known.error is None else self.known.error
            error = error + known + self.gram.dot_error(beta - self.known.beta)
        return error

    def product_error(self, beta: np.ndarray) -> float:
        """Return how far any entry of ``residual(beta)`` can be off by the rounding of K beta.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.

        Returns
        -------
        float
            A bound.
        """
        return float(self._product_error(beta).max(initial=0.0))

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
            found = 2.0 * UNIT * (np.abs(self.target) + root * product(root, size) + self.ridge * size)
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
        return float(-0.5 * product(beta, self.target + residual) + self.eps * np.abs(beta).sum())

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
        b_up, b_low = extremes(beta, residual, self.lower, self.upper, self.eps)
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

    def stretched(self, beta: np.ndarray, residual: np.ndarray, rounding: float | None = None) -> np.ndarray | None:
        """Return beta times a little more than one, so that no margin is short of one; None where a bound is in the way.

        A margin that is short of one, or that rounding may have made so, costs the cap times it.  One that is longer costs the
        coefficient times what it is longer: far less where C is large and coefficients are small.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients of a feasible point.
        residual : array of shape (n,)
            ``residual(beta)``.
        rounding : float, optional
            What rounding costs now: it makes margins of support vectors shorter by this over the sum of their caps.  Without it
            they are taken for as short as rounding can make them: residual and bias, before and after, are off by no more.

        Returns
        -------
        array of shape (n,) or None
            Coefficients in the box; their sum is zero but for rounding.
        """
        support = np.flatnonzero(beta)
        if not (self._has_margins and support.size) or (np.abs(beta) >= self.upper - self.lower).any():
            return None
        error = self._product_error(beta)[support]
        short, most = 4.0 * float(error.max()), float(error.max() / error.mean())
        if rounding is not None:
            short = most * rounding / float((self.upper - self.lower)[support].sum())
        short += float((self.target * (residual - self.best_bias(residual))).max())
        longer = beta * (1.0 + short / (1.0 - short)) if short < 0.5 else np.full(beta.size, np.inf)
        return longer if ((self.lower <= longer) & (longer <= self.upper)).all() else None

    @cached_property
    def _has_margins(self) -> bool:
        """Whether it is the 1-norm soft margin of two classes."""
        is_class = bool((np.sign(self.lower + self.upper) == self.target).all())
        return is_class and not (self.eps or self.total or self.has_ridge or self.is_hard)

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
            r = residual + self.ridge * beta if self.has_ridge else residual
            return self._certificate(beta, Residual(r, 0.0, None), rounding)

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
        return self.refined(beta, r, np.flatnonzero(near | (beta != 0)), from_data)

    def refined(self, beta: np.ndarray, r: Residual, rows: np.ndarray, from_data: bool = True) -> Residual:
        """Return t - K beta with some rows computed anew in twice the precision.

        Parameters
        ----------
        beta : array of shape (n,)
            Any coefficients.
        r : Residual
            t - K beta as it is known, with its error.
        rows : array of shape (m,)
            The points that matter.
        from_data : bool, default True
            Compute kernel values in twice the precision too.

        Returns
        -------
        Residual
            With a smaller error at these rows; r itself where numbers are beyond float64.
        """
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
        is_precise = isinstance(r.low, np.ndarray)
        plain = r.high + r.low if is_precise else r.high
        if not math.isfinite(product(plain, beta)):  # an infinity or NaN in either shows in their product
            return Certificate.nothing()
        bias = self.best_bias(plain)
        measure = partial(measured, beta, self.target, *r.arrays(), self.lower, self.upper, self.ridge, self.eps)
        found = measure(bias)
        if is_precise and self.total is not None and not self.is_hard:
            # The best bias may lie between two numbers, and a margin that is short by a last digit costs its cap times that.
            for other in np.nextafter(bias, [-np.inf, np.inf]).tolist():
                there = measure(other)
                if there.gap + there.gap_error < found.gap + found.gap_error:
                    bias, found = other, there
        if self.is_hard:
            gap, gap_error = stretched_gap(self.loss, self.target, beta, r, bias)
            found = found._replace(gap=gap, gap_error=gap_error)
        sum_residual = 0.0 if r.error is None else self.excess(beta)
        has_bias = self.total is not None
        certificate = Certificate.of(found, bias, sum_residual, has_bias=has_bias, rounding=known_rounding)
        return replace(certificate, is_zero=True) if self._is_zero(beta, certificate.gap) else certificate

    def _is_zero(self, beta: np.ndarray, gap: float) -> bool:
        """Whether no coefficient is needed, and the losses are no more than targets cost that are off by a few last digits."""
        if self.is_hard or self.total or beta.any():
            return False
        reach = self.eps + LAST_DIGITS * (self.eps + np.abs(self.target))
        above, below = (self.loss.gap_shares(beta, side * reach) for side in (1.0, -1.0))
        return gap <= float(np.maximum(above, below).sum())

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
        return self.loss.gap_shares(beta, r)

    def best_bias(self, r: np.ndarray) -> float:
        """Return the bias that minimises the primal objective, the middle one if there are many.

        Parameters
        ----------
        r : array of shape (n,)
            t - K beta.

        Returns
        -------
        float
            Zero if the bias is fixed.
        """
        return 0.0 if self.total is None else self.loss.best_bias(r, self.total)

    def is_unbounded(self, beta: np.ndarray, residual: np.ndarray) -> bool:
        """Return whether beta shows that a hard margin is impossible: the convex hulls of the classes meet.

        With s = sum(alpha) / 2, f / s is the difference of two points of these hulls.  Points far from the origin may be that
        close without meeting: ``has_margin`` says whether a certificate proves it.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients.
        residual : array of shape (n,)
            ``residual(beta)``.

        Returns
        -------
        bool
            Whether they meet, to a millionth of the largest |x_i|.
        """
        if not self.is_hard:
            return False
        half_sum = 0.5 * float(np.abs(beta).sum())
        if not 0 < half_sum < np.inf:
            return False
        hull = float((beta / half_sum) @ ((self.target - residual) / half_sum))  # |f / s|², with no overflow on the way
        return hull <= 1e-12 * float(self.gram.diagonal.max())

    def has_margin(self, now: Certificate) -> bool:
        """Return whether a certificate proves that a hard margin exists: its primal point separates the classes.

        Parameters
        ----------
        now : Certificate
            Of a feasible point, from the data.

        Returns
        -------
        bool
            True only where the kernel is an inner product: else no primal objective bounds the dual one.
        """
        return self.is_hard and bool(np.isfinite(now.relative_gap)) and self.gram.seems_positive()

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
            Summed in twice the precision; zero where nothing constrains the sum.
        """
        return 0.0 if self.total is None else float(precision.total(beta, -float(self.total)))

    def feasible(self, beta: np.ndarray) -> np.ndarray:
        """Return a feasible point near beta: clipped to the box, then the side in excess scaled down, or all moved to a bound.

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
            bound = self.lower if excess > 0 else self.upper
            room = float(np.abs(bound - beta).sum()) if self.total else 0.0
            if not abs(excess) <= room < np.inf:
                return self._fill()
            beta += (abs(excess) / room) * (bound - beta)
            beta = np.clip(beta, self.lower, self.upper)
        return self.restore_sum(beta)

    def _fill(self) -> np.ndarray:
        """Return a feasible point made from nothing: zero, or the total spread over the room there is."""
        beta = np.zeros(self.n)
        if self.total:
            room = self.upper if self.total > 0 else self.lower
            filled = np.cumsum(np.minimum(np.abs(room), abs(self.total)))
            beta = np.sign(self.total) * np.diff(np.minimum(filled, abs(self.total)), prepend=0.0)
            # Beside a large bound what is left of a small one in the sum may be more than that.
            beta = self.restore_sum(np.clip(beta, self.lower, self.upper))
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
        """Put what rounding left in sum(beta) - total on the free coefficient with the most room; more, on as many as it takes.

        Parameters
        ----------
        beta : array of shape (n,)
            Signed coefficients, changed in place.

        Returns
        -------
        array of shape (n,)
            beta itself.
        """
        for count in range(MOST_PASSES):  # a coefficient that was large before leaves a little to rounding once more
            drift = self.excess(beta)
            if drift == 0.0 or (count >= 2 and abs(drift) <= SUM_ROUNDING * float(np.abs(beta).sum())):
                break
            room = np.minimum(self.upper - beta, beta - self.lower)
            if self.eps:  # a coefficient at zero is not free: |beta| has a kink there
                room = np.minimum(room, np.abs(beta))
            k = int(np.argmax(room))
            if abs(drift) < room[k]:
                beta[k] -= drift
                continue
            reach = beta - self.lower if drift > 0 else self.upper - beta
            inside = np.where(room > 0, reach, 0.0)  # one near a bound may have the room on the side that is wanted
            k = int(np.argmax(inside))
            if abs(drift) <= inside[k] * (1.0 + 4.0 * UNIT):
                beta[k] = np.clip(beta[k] - drift, self.lower[k], self.upper[k])
            elif abs(drift) > SUM_ROUNDING * float(np.abs(beta).sum()):  # more than rounding: as many as it takes
                order = np.argsort(-reach, kind="stable")
                taken = np.diff(np.minimum(np.cumsum(np.maximum(reach[order], 0.0)), abs(drift)), prepend=0.0)
                k, step = order[taken > 0.0], np.sign(drift) * taken[taken > 0.0]
                beta[k] = np.clip(beta[k] - step, self.lower[k], self.upper[k])
        return beta


class ProblemArrays(NamedTuple):
    """A ``DualProblem`` for compiled code."""

    kernel_diagonal: np.ndarray  # (n,) of K, without the ridge
    ridge: np.ndarray  # (n,)
    target: np.ndarray  # (n,) t
    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)
    eps: float
    has_fixed_bias: bool  # no constraint on the sum


def arrays_of(problem: DualProblem) -> ProblemArrays:
    """Return the arrays of a problem, which stay the same for a whole run."""
    return ProblemArrays(
        problem.gram.diagonal,
        problem.ridge,
        problem.target,
        problem.lower,
        problem.upper,
        problem.eps,
        problem.total is None,
    )


@jit
def _are_sound(target, lower, upper, ridge):
    """Return whether targets and ridges are finite, none of these negative; and whether every box holds zero."""
    is_finite, holds_zero = True, True
    for i in range(target.size):
        is_finite &= np.isfinite(target[i]) and ridge[i] >= 0.0 and np.isfinite(ridge[i])
        holds_zero &= lower[i] <= 0.0 <= upper[i]
    return is_finite, holds_zero
