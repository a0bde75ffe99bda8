"""The formulations: what box, tube and ridge each loss of the textbook has.

A weight of two is the point twice: it doubles the box, or halves the ridge.
"""

from typing import Any, NamedTuple, Self

import numpy as np

from zerogap import validation
from zerogap.gram import Gram


class Formulations:
    """The constructors of ``DualProblem``, which has them from here: each returns the problem in normal form."""

    @classmethod
    def hinge(
        cls, gram: Gram, y: np.ndarray, C: float, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> Self:
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
        validation.check_gram(gram)
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, class_terms("hinge", y, C, weight), fit_intercept)

    @classmethod
    def hard_margin(
        cls, gram: Gram, y: np.ndarray, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> Self:
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
        validation.check_gram(gram)
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, _signed_terms(y, _uncapped(weight), np.zeros(gram.n)), fit_intercept)

    @classmethod
    def squared_hinge(
        cls, gram: Gram, y: np.ndarray, C: float, *, sample_weight: np.ndarray | None = None, fit_intercept: bool = True
    ) -> Self:
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
        validation.check_gram(gram)
        y, weight = validation.check_signs(y, gram.n), validation.check_weights(sample_weight, gram.n)
        return cls._signed(gram, class_terms("squared_hinge", y, C, weight), fit_intercept)

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
    ) -> Self:
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
        validation.check_gram(gram)
        weight = validation.check_weights(sample_weight, gram.n)
        return cls._two_sided(gram, y, "epsilon_insensitive", C, weight, epsilon, fit_intercept)

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
    ) -> Self:
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
        validation.check_gram(gram)
        weight = validation.check_weights(sample_weight, gram.n)
        return cls._two_sided(gram, y, "squared_epsilon_insensitive", C, weight, epsilon, fit_intercept)

    @classmethod
    def one_class(cls, gram: Gram, nu: float, *, sample_weight: np.ndarray | None = None) -> Self:
        """Return the one-class problem: 1/2 |f|² - nu rho sum_i w_i + sum_i w_i max(0, rho - f(x_i)).

        It looks for a plane that most points are beyond, as far from the origin as it can be: the bias is -rho, no more than a
        share nu of the points is left behind, and no less are support vectors.  Coefficients are in [0, w_i] and sum to
        nu sum_i w_i, as those of scikit-learn do.

        Parameters
        ----------
        gram : Gram
            Kernel matrix of the points.
        nu : float
            Above 0 and at most 1.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points; by default 1.

        Returns
        -------
        DualProblem
            The problem in normal form.
        """
        nu = validation.check_nu(nu)
        validation.check_gram(gram)
        weight, zero = validation.check_weights(sample_weight, gram.n), np.zeros(gram.n)
        return cls._made(gram=gram, target=zero, lower=zero, upper=weight, ridge=zero, total=nu * float(weight.sum()))

    @classmethod
    def gaussian_process(cls, gram: Gram, y: np.ndarray, noise: float) -> Self:
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
        validation.check_gram(gram)
        terms = _two_sided_terms(validation.check_target(y, gram.n), np.full(gram.n, np.inf), np.full(gram.n, noise))
        return cls._made(gram=gram, **terms._asdict(), total=None)

    @classmethod
    def _signed(cls, gram: Gram, terms: "Terms", fit_intercept: bool) -> Self:
        return cls._made(gram=gram, **terms._asdict(), total=0.0 if fit_intercept else None)

    @classmethod
    def _two_sided(
        cls, gram: Gram, y: np.ndarray, loss: str, C: float, weight: np.ndarray, epsilon: float, fit_intercept: bool
    ) -> Self:
        terms = regression_terms(loss, validation.check_target(y, gram.n), C, weight)
        eps = validation.check_positive("epsilon", epsilon, zero=True, advice="It is the half width of the tube.")
        return cls._made(gram=gram, **terms._asdict(), eps=eps, total=0.0 if fit_intercept else None)

    @classmethod
    def _made(cls, **fields: Any) -> Self:
        """Return the problem with these fields; what they are, ``DualProblem`` says."""
        return cls(**fields)


class Terms(NamedTuple):
    """What a loss is at some points; arrays of shape (n,)."""

    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray


def class_terms(loss: str, y: np.ndarray, C: float, weight: np.ndarray) -> Terms:
    """Return what "hinge" or "squared_hinge" is at points with labels -1 or +1."""
    if loss == "hinge":
        return _signed_terms(y, C * weight, np.zeros(y.size))
    return _signed_terms(y, _uncapped(weight), _ridge(C, weight))


def regression_terms(loss: str, y: np.ndarray, C: float, weight: np.ndarray) -> Terms:
    """Return what "epsilon_insensitive" or "squared_epsilon_insensitive" is at points with targets."""
    if loss == "epsilon_insensitive":
        return _two_sided_terms(y, C * weight, np.zeros(y.size))
    return _two_sided_terms(y, _uncapped(weight), _ridge(C, weight))


def _signed_terms(y: np.ndarray, cap: np.ndarray, ridge: np.ndarray) -> Terms:
    """A class is a side of the box."""
    return Terms(y, np.where(y < 0, -cap, 0.0), np.where(y > 0, cap, 0.0), ridge)


def _two_sided_terms(y: np.ndarray, cap: np.ndarray, ridge: np.ndarray) -> Terms:
    return Terms(y, -cap, cap, ridge)


def _uncapped(weight: np.ndarray) -> np.ndarray:
    """No bound, but for points of weight zero, which are not there."""
    return np.where(weight > 0, np.inf, 0.0)


def _ridge(C: float, weight: np.ndarray) -> np.ndarray:
    """1/(C w), and zero for points of weight zero, whose box is empty anyway."""
    is_there = weight > 0
    return np.where(is_there, 1.0 / (C * np.where(is_there, weight, 1.0)), 0.0)
