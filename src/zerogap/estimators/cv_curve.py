"""The cross-validated score for every C: the mean of the folds' curves, and how far it may be off.

Every fold has a curve of its own.  Between the edges of all of them together each is constant, or one quadratic, and so is
their mean: its maximum over all C is known in closed form, not read off a grid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zerogap.path.curve import SampledScoreCurve, ScoreCurve, middle, runs, widest
from zerogap.path.error_curve import ErrorCurve
from zerogap.path.predictions import NO_LENGTH
from zerogap.wording import count, number

DIGITS = (
    12  # of a mean: fold scores are rounded, and means of the same counts in another order differ in the last digits
)
LAST_DIGITS = 1e-14  # relative: scores of folds that differ by no more are equal
INSIDE = 1e-3  # relative: so far from an edge, where a prediction of some fold changes, "one_se" takes its C


class CVScore(NamedTuple):
    """The cross-validated score at one C.

    Attributes
    ----------
    C : float
        The C.
    mean : float
        The mean of the folds' scores.
    std_error : float
        Its standard error: their standard deviation (with n - 1) over the square root of their number.
    folds : array of shape (n_folds,)
        The folds' scores.

    Examples
    --------
    >>> from zerogap import SVCPathCV, datasets
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> found = SVCPathCV(cv=3, C_max=10.0).fit(X, y).cv_curve_.at(1.0)
    >>> found.folds.shape, bool(found.mean == found.folds.mean().round(12))
    ((3,), True)
    """

    C: float
    mean: float
    std_error: float
    folds: np.ndarray


@dataclass(frozen=True, repr=False, eq=False)
class CVCurve:
    """A cross-validated score for every C; call it with a C, or an array of them, for the mean over the folds.

    Attributes
    ----------
    mean : ScoreCurve or ErrorCurve
        The mean over the folds: constant between two edges, or of a regression quadratic.
    folds : tuple of ScoreCurve or ErrorCurve
        The curve of every fold.
    edges : array of shape (k + 1,)
        The C at which the curve of any fold changes its form, ascending, and both ends.
    n_folds : int
        Number of folds.
    is_exact : bool
        Whether every C has its score; one of decision values, such as "roc_auc", is known at some C only.
    best_score : float
        The largest mean over all C.
    best_intervals : list of tuple
        All C that have it, from one to another; of a regression as a rule a single one, twice.
    widest : tuple
        The widest of these, in log C; the first of equally wide ones.
    width : float
        How wide that is: the logarithm of the ratio of its ends.
    best_C : float
        Its middle, in log C.
    one_se_C : float
        The smallest C with a mean within one standard error, that at ``best_C``, of the best.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import SVCPathCV, datasets
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> curve = SVCPathCV(cv=5, C_max=100.0).fit(X, y).cv_curve_
    >>> bool(curve.best_score >= curve(np.geomspace(0.01, 100.0, 1000)).max())
    True
    >>> bool(curve.one_se_C <= curve.best_C)
    True
    """

    mean: Any
    folds: tuple[Any, ...]

    def __call__(self, C: Any) -> Any:
        """Return the mean over the folds at C, or at each of an array."""
        return self.mean(C)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return len(self.folds)

    @property
    def is_exact(self) -> bool:
        """Whether every C has its score."""
        return not isinstance(self.mean, SampledScoreCurve)

    @property
    def edges(self) -> np.ndarray:
        """Where the curve of any fold changes its form, and both ends."""
        return self.mean.edges if isinstance(self.mean, ErrorCurve) else self.mean.C

    def fold_scores(self, C: Any) -> np.ndarray:
        """Return the score of every fold.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the curve.

        Returns
        -------
        array of shape (n_folds,) or (n_folds, k)
            The scores.
        """
        return np.array([fold(C) for fold in self.folds])

    def std_error(self, C: Any) -> Any:
        """Return the standard error of the mean over the folds: their standard deviation over the root of their number.

        It takes the folds for independent, which they are not quite: they share training points.

        Parameters
        ----------
        C : float or array of shape (k,)
            Within the range of the curve.

        Returns
        -------
        float or array of shape (k,)
            The standard error; NaN of a single fold.
        """
        scores = self.fold_scores(C)
        if self.n_folds == 1:
            return np.full(scores.shape[1:], np.nan)[()]
        return spread(scores, ddof=1) / np.sqrt(self.n_folds)

    def at(self, C: float) -> CVScore:
        """Return all that is known at one C.

        Parameters
        ----------
        C : float
            Within the range of the curve.

        Returns
        -------
        CVScore
            Mean, standard error, and the score of every fold.
        """
        if np.ndim(C) != 0:
            raise ValueError(
                f"at(C) is of one C; got {np.size(C)} of them. curve(C), std_error(C) and fold_scores(C) take several."
            )
        mean = float(self(C))
        return CVScore(float(C), mean, float(self.std_error(C)), self.fold_scores(C))

    @property
    def best_score(self) -> float:
        """The largest mean over all C."""
        return self.mean.best_score

    @property
    def best_intervals(self) -> list[tuple[float, float]]:
        """All C that have it."""
        return self.mean.best_intervals

    @property
    def widest(self) -> tuple[float, float]:
        """The widest, in log C, of the intervals that have the best score; the first of equally wide ones."""
        return widest(self.best_intervals)

    @property
    def width(self) -> float:
        """How wide that is: the logarithm of the ratio of its ends."""
        low, high = self.widest
        return float(np.log(high / low))

    @property
    def best_C(self) -> float:
        """The middle, in log C, of the widest interval that has the best score; of equally wide ones that of the smallest C."""
        return self._known(middle(*self.widest))

    @property
    def one_se_C(self) -> float:
        """The smallest C with a mean within one standard error of the best."""
        if self.n_folds == 1:
            raise ValueError(
                "The standard error needs at least two folds; there is one. Use more, or selection='best'."
            )
        least = self.best_score - float(self.std_error(self.best_C))
        if isinstance(self.mean, ErrorCurve):
            return _first_above(self.mean, least)
        low, high = runs(self.mean.C, self.mean.score >= least)[0]
        return self._known(low if low == self.edges[0] else min(low * (1.0 + INSIDE), float(np.sqrt(low * high))))

    def _known(self, C: float) -> float:
        """Return C, or of samples the nearest: the score is known there only."""
        return C if self.is_exact else self.mean.nearest(C)

    def table(self) -> dict[str, np.ndarray]:
        """Return the curve as columns, a row for every interval between two edges; pandas makes a data frame of it.

        Returns
        -------
        dict of arrays
            "C_from" and "C_to"; "C", the middle of the two in log C, or the sample; and there "mean", "std_error" and "fold0",
            "fold1", ...
        """
        low, high = self.edges[:-1], self.edges[1:]
        C = np.sqrt(low) * np.sqrt(high) if self.is_exact else self.mean.samples
        folds = {f"fold{k}": scores for k, scores in enumerate(self.fold_scores(C))}
        return {"C_from": low, "C_to": high, "C": C, "mean": self(C), "std_error": self.std_error(C), **folds}

    def plot(self, grid: Any = None, *, ax: Any = None, label: str | None = None) -> Any:
        """Draw the mean over C, with one standard error on both sides, and its best intervals shaded.

        Parameters
        ----------
        grid : int or array, optional
            A grid beside it, what a search over these C would have seen: their number, or the values.
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.
        label : str, optional
            What the score is called; by default by the name that the folds' curves have.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_cv_curve

        return plot_cv_curve(self, grid, ax=ax, label=label)

    def __repr__(self) -> str:
        low, high = self.edges[0], self.edges[-1]
        return (
            f"CVCurve({count(self.n_folds, 'fold')}, C from {number(low)} to {number(high)}, {self._extent}: "
            f"{self.in_words()})"
        )

    @property
    def _extent(self) -> str:
        if not self.is_exact:
            return f"sampled at {count(self.mean.score.size)} C, not exact in between"
        return count(self.edges.size - 1, "piece" if isinstance(self.mean, ErrorCurve) else "interval")

    def in_words(self) -> str:
        """Return the best score, and where it is.

        Returns
        -------
        str
            Such as "best 0.9767 ± 0.0071 for C from 3.1 to 4.2".
        """
        intervals = self.best_intervals
        if not intervals:
            return "no score is defined"
        low, high = self.widest
        where = f"at C={number(low)}" if low == high else f"for C from {number(low)} to {number(high)}"
        more = f" and {count(len(intervals) - 1, 'other interval')}" if len(intervals) > 1 else ""
        error = "" if self.n_folds == 1 else f" ± {number(float(self.std_error(self.best_C)), 2)}"
        return f"best {number(self.best_score)}{error} {where}{more}"

    def _repr_html_(self) -> str:
        from zerogap.estimators.cv_html import of_cv_curve

        return of_cv_curve(self)


def cv_curve(folds: Sequence[ScoreCurve | ErrorCurve]) -> CVCurve:
    """Return the mean of the folds' curves over the range of C that all of them have.

    Parameters
    ----------
    folds : sequence of ScoreCurve or ErrorCurve
        The curve of every fold; all of one kind.

    Returns
    -------
    CVCurve
        Their mean, with the folds.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap.estimators.cv_curve import cv_curve
    >>> from zerogap.path import ScoreCurve
    >>> one = ScoreCurve(np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.7]))
    >>> other = ScoreCurve(np.array([0.1, 2.0, 10.0]), np.array([0.6, 0.4]))
    >>> cv_curve([one, other]).best_intervals
    [(1.0, 2.0)]
    """
    averaged: Callable[[Sequence[Any]], Any] = _mean_score
    if isinstance(folds[0], ErrorCurve):
        averaged = _mean_error
    elif isinstance(folds[0], SampledScoreCurve):
        averaged = _mean_sampled
    mean = averaged(folds)
    if isinstance(mean, ScoreCurve):
        mean.name = folds[0].name  # type: ignore[union-attr]
    return CVCurve(mean, tuple(folds))


def spread(scores: np.ndarray, ddof: int) -> Any:
    """Return the standard deviation of the scores of folds, (folds, ...); errors of 1e200 have no squares, but a deviation.

    Scores that differ in their last digits are equal.
    """
    power = int(np.frexp(_size(scores))[1])
    with np.errstate(invalid="ignore"):  # a score may be infinite
        scaled = np.ldexp(scores, -power)
        deviation = (scaled - scaled[0]).std(axis=0, ddof=ddof)
        return np.ldexp(np.where(deviation <= LAST_DIGITS * np.abs(scaled).max(axis=0), 0.0, deviation), power)


def _size(scores: np.ndarray) -> float:
    """Return the size of the largest that is a number."""
    return float(np.abs(scores[np.isfinite(scores)]).max(initial=0.0))


def _merged(edges: Sequence[np.ndarray]) -> np.ndarray:
    """Return all edges within the range that all have; those that are the same but for rounding are one."""
    low, high = max(one[0] for one in edges), min(one[-1] for one in edges)
    every = np.unique(np.concatenate(edges))
    inner = every[(every > low * (1.0 + NO_LENGTH)) & (every < high * (1.0 - NO_LENGTH))]
    kept = np.concatenate([[True], inner[1:] > inner[:-1] * (1.0 + NO_LENGTH)])[: inner.size]
    return np.concatenate([[low], inner[kept], [high]])


def _rounded(means: np.ndarray) -> np.ndarray:
    """Return means without the digits that depend on the order of summation, so that equal ones are equal."""
    size = _size(means)
    return np.round(means, DIGITS - int(np.ceil(np.log10(size))) if size > 1.0 else DIGITS)


def _mean_score(folds: Sequence[ScoreCurve]) -> ScoreCurve:
    edges = _merged([fold.C for fold in folds])
    middles = np.sqrt(edges[:-1]) * np.sqrt(edges[1:])
    return ScoreCurve(edges, _rounded(np.mean([fold(middles) for fold in folds], axis=0)))


def _mean_sampled(folds: Sequence[SampledScoreCurve]) -> SampledScoreCurve:
    """Return the mean at the samples that all folds have."""
    samples = folds[0].samples
    for fold in folds[1:]:
        samples = np.intersect1d(samples, fold.samples)
    return SampledScoreCurve.at(samples, _rounded(np.mean([fold(samples) for fold in folds], axis=0)))


def _mean_error(folds: Sequence[ErrorCurve]) -> ErrorCurve:
    """Return the mean of concave pieces, each about its own maximum: where the derivative of the mean is zero, or an end."""
    edges = _merged([fold.edges for fold in folds])
    low, high = edges[:-1], edges[1:]
    middles = low + 0.5 * (high - low)
    falls_low, falls_high, curvature = (np.zeros(low.size) for _ in range(3))  # minus the derivatives at both ends
    for fold in folds:
        k = np.clip(np.searchsorted(fold.edges, middles, side="right") - 1, 0, fold.top.size - 1)
        slope = np.where(middles >= fold.at[k], fold.slope[k], -fold.slope[k])
        falls_low += slope + 2.0 * fold.curvature[k] * (low - fold.at[k])
        falls_high += slope + 2.0 * fold.curvature[k] * (high - fold.at[k])
        curvature += fold.curvature[k]
    is_first, is_last = falls_low >= 0.0, (falls_low < 0.0) & (falls_high <= 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.clip(low - falls_low / (2.0 * curvature), low, high)
    at = np.where(is_first, low, np.where(is_last, high, inside))
    slope = np.where(is_first, falls_low, np.where(is_last, -falls_high, 0.0)) / len(folds)
    top = np.mean([fold(at) for fold in folds], axis=0)
    return ErrorCurve(folds[0].scoring, folds[0].parameter, edges, at, top, slope, curvature / len(folds))


def _first_above(curve: ErrorCurve, least: float) -> float:
    """Return the smallest C with a score of at least this, which some C has."""
    k = int(np.flatnonzero(curve.top >= least)[0])
    if curve(curve.edges[k]) >= least:
        return float(curve.edges[k])
    # slope d + curvature d² = top - least, in the form that does not cancel.
    spare, slope, curvature = (float(values[k]) for values in (curve.top - least, curve.slope, curve.curvature))
    distance = (
        2.0 * spare / (slope + np.hypot(slope, 2.0 * np.sqrt(curvature) * np.sqrt(spare))) if spare > 0.0 else 0.0
    )
    return float(np.clip(curve.at[k] - distance, curve.edges[k], curve.at[k]))
