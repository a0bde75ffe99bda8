"""The error of a regression on held-out data for every C, or every epsilon: exact, piecewise quadratic.

Between two breakpoints predictions are linear in C, (p + lam q) / lam with lam = 1 / C, and linear in epsilon as well.  With s
from 0 to 1 on a segment a residual is (1 - s) r_0 + s r_1, so that the mean of squares is a quadratic, and the mean of sizes
is linear between the s at which a residual is zero.

Rounding.  Residuals at the breakpoints come from coefficients and kernel values, as a prediction there does; in between they
are averages of two, and no less accurate: nothing is extrapolated.  Every piece is kept about its own minimum,

    error = least + slope |x - at| + curvature (x - at)²,    least, slope, curvature >= 0,

and a sum of terms that are not negative has no cancellation.  ``least`` and the curvature are sums of squares.  The slope,
2 sum w r d with d = r_1 - r_0, may cancel; it is off by n u (sum w r²)^1/2 (sum w d²)^1/2 at most, which times x is no more
than n u times the mean of least and curvature x².  A minimum inside a segment, s = -(sum w r_0 d) / (sum w d²), is off by n u
(s² + least / curvature)^1/2: by the second part of that the error changes no more than by the above, and by the first as if
it were asked for at an s that is off by n u s.  So all of it is known to a relative n u, given the residuals and s.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zerogap import limits, validation
from zerogap.path.reading import BEYOND_END
from zerogap.path.regression import EpsilonPath, RegressionPath
from zerogap.wording import count, number

SCORINGS = ("neg_mean_squared_error", "neg_mean_absolute_error", "r2")
BREAKPOINTS = 64  # whose predictions are computed together, in one matrix product
RESIDUALS = 1_000_000  # held at once where many of them pass zero on one segment
LARGEST = np.finfo(np.float64).max / 1e6  # of an error: the sum of those of many folds is a number too


class Piece(NamedTuple):
    """least + slope |x - at| + curvature (x - at)² between two x."""

    begin: float
    end: float
    at: float
    least: float
    slope: float
    curvature: float


class ErrorCurve(NamedTuple):
    """A score of predictions for every C, or for every epsilon; call it with a value, or an array of them.

    Between ``edges[k]`` and ``edges[k + 1]`` the score at x is ``top[k] - slope[k] * d - curvature[k] * d**2``, where
    d = abs(x - at[k]).

    Attributes
    ----------
    scoring : str
        "neg_mean_squared_error", "neg_mean_absolute_error" or "r2".
    parameter : str
        "C" or "epsilon".
    edges : array of shape (k + 1,)
        Values of it between which the score is one quadratic, or linear, ascending.
    at : array of shape (k,)
        Where each piece has its largest score.
    top : array of shape (k,)
        That score.
    slope, curvature : array of shape (k,)
        How it falls on both sides; neither is negative.
    best_score : float
        The largest score over all values, not over samples.
    best_C, best_epsilon : float
        A value that has it, the least of them; the curve has that of its parameter.
    best_intervals : list of tuple
        All values that have it: from one to another, which may be the same.
    is_exact : bool
        True, as of a :class:`ScoreCurve`: the score is known at every value.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import SVRPath
    >>> X = np.linspace(0.0, 6.0, 60)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> curve = SVRPath(C_min=0.01, C_max=10.0).fit(X[::2], y[::2]).score_curve(X[1::2], y[1::2])
    >>> bool(curve.best_score == curve(curve.best_C) >= curve(np.geomspace(0.01, 10.0, 1000)).max())
    True
    """

    scoring: str
    parameter: str
    edges: np.ndarray
    at: np.ndarray
    top: np.ndarray
    slope: np.ndarray
    curvature: np.ndarray

    def __call__(self, values: Any) -> Any:
        """Return the score at a value, or at each of an array."""
        first, last = float(self.edges[0]), float(self.edges[-1])
        x = validation.check_places(self.parameter, values)
        slack = BEYOND_END * max(abs(first), abs(last))
        if not ((x >= first - slack) & (x <= last + slack)).all():
            raise ValueError(
                f"The curve runs from {self.parameter}={first:g} to {self.parameter}={last:g}; got {values}. Follow the path "
                "over a wider range."
            )
        k = np.clip(np.searchsorted(self.edges, x, side="right") - 1, 0, self.top.size - 1)
        distance = np.abs(np.clip(x, first, last) - self.at[k])
        found = self.top[k] - distance * (self.slope[k] + self.curvature[k] * distance)
        return float(found) if found.ndim == 0 else found

    @property
    def is_exact(self) -> bool:
        """Whether the score is known at every value, not at some."""
        return True

    @property
    def best_score(self) -> float:
        """The largest score."""
        return float(self.top.max())

    @property
    def best_intervals(self) -> list[tuple[float, float]]:
        """All values that have it."""
        found: list[tuple[float, float]] = []
        for k in np.flatnonzero(self.top == self.top.max()):
            is_flat = self.slope[k] == 0.0 and self.curvature[k] == 0.0
            begin, end = (self.edges[k], self.edges[k + 1]) if is_flat else (self.at[k], self.at[k])
            if found and begin <= found[-1][1]:
                begin = found.pop()[0]
            found.append((float(begin), float(end)))
        return found

    @property
    def best_C(self) -> float:
        """The least C that has the best score."""
        return self._best("C")

    @property
    def best_epsilon(self) -> float:
        """The least epsilon that has the best score."""
        return self._best("epsilon")

    def _best(self, parameter: str) -> float:
        if parameter != self.parameter:
            raise AttributeError(f"This curve runs over {self.parameter}: it has best_{self.parameter}.")
        return self.best_intervals[0][0]

    @property
    def worst_score(self) -> float:
        """The smallest score: where it is, a piece ends."""
        ends = np.stack([self.edges[:-1], self.edges[1:]])
        distance = np.abs(ends - self.at)
        return float((self.top - distance * (self.slope + self.curvature * distance)).min())

    def shown_values(self, between: int) -> np.ndarray:
        """Return where to draw it: the edges, where pieces have their largest score, and so many values between.

        Parameters
        ----------
        between : int
            Number of values, spread evenly over the axis: over log C, or over epsilon.

        Returns
        -------
        array
            Values, ascending.
        """
        spread = np.geomspace if self.parameter == "C" else np.linspace
        inner = spread(float(self.edges[0]), float(self.edges[-1]), between)[1:-1]
        return np.unique(np.concatenate([self.edges, self.at, inner]))

    def __repr__(self) -> str:
        (low, high), *others = self.best_intervals
        where = f"at {self.parameter}={number(low)}"
        if low != high:
            where = f"for {self.parameter} from {number(low)} to {number(high)}"
        more = f" and {count(len(others), 'other place')}" if others else ""
        return (
            f"ErrorCurve({self.scoring}, {self.parameter} from {number(self.edges[0])} to {number(self.edges[-1])}, "
            f"{count(self.top.size, 'piece')}: best {number(self.best_score)} {where}{more}, worst {number(self.worst_score)})"
        )

    def plot(self, grid: Any = None, *, ax: Any = None) -> Any:
        """Draw the score over C, or over epsilon, the best of all values marked.

        Parameters
        ----------
        grid : int or array, optional
            A grid beside it, what a search over these values would have seen: their number, or the values.
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_error_curve

        return plot_error_curve(self, grid, ax=ax)

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_error_curve

        return of_error_curve(self)


def check_scoring(scoring: Any) -> str:
    """Return the name of a score whose best value over a whole path has a closed form."""
    advice = "The root of the mean squared error is smallest where that is; other scores need a grid of models, SVRPath.at(C)."
    return validation.check_choice("scoring", scoring, SCORINGS, advice)


def error_curve(
    path: RegressionPath | EpsilonPath,
    K: np.ndarray,
    y: np.ndarray,
    scoring: str = "neg_mean_squared_error",
    weight: np.ndarray | None = None,
) -> ErrorCurve:
    """Return a score of the predictions of held-out points for every value of a path's parameter.

    Parameters
    ----------
    path : RegressionPath or EpsilonPath
        The path.
    K : array of shape (m, t)
        Kernel values of the path's distinct points against t held-out ones, by ``path.gram.kernel``.
    y : array of shape (t,)
        Their targets.
    scoring : str, default "neg_mean_squared_error"
        "neg_mean_squared_error", "neg_mean_absolute_error" or "r2", as scikit-learn has them.
    weight : array of shape (t,), optional
        Their weights in the mean.

    Returns
    -------
    ErrorCurve
        Piecewise quadratic in C, or in epsilon, or linear if it is the absolute error.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import svr_path
    >>> from zerogap.path import error_curve
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> path = svr_path(X, [0.0, 1.0, 3.0], kernel="linear", epsilon=0.0, C_max=10.0)
    >>> K = path.gram.kernel(X[path.points.rows], np.array([[2.0], [4.0]]))
    >>> bool(abs(error_curve(path, K, np.array([2.0, 4.0])).best_score) < 1e-20)
    True
    """
    check_scoring(scoring)
    path.check_not_empty()
    weight = np.ones(y.size) if weight is None else weight
    weight = weight / weight.sum()
    pieces_of = _absolute if scoring == "neg_mean_absolute_error" else _squares
    power = _power(y)
    found = _pieces(path, K, y, weight, partial(_in_units, pieces_of, power))
    pieces = [piece for piece in found if piece.end > piece.begin]
    if path.parameter != "C":  # it is followed downwards
        pieces.reverse()
    edges = np.array([piece.begin for piece in pieces] + [pieces[-1].end])
    at, least, slope, curvature = np.array([piece[2:] for piece in pieces]).T
    size, best = (_variance(np.ldexp(y, -power), weight), 1.0) if scoring == "r2" else (1.0, 0.0)
    power *= {"neg_mean_squared_error": 2, "neg_mean_absolute_error": 1, "r2": 0}[scoring]
    with np.errstate(over="ignore", invalid="ignore"):
        least, slope, curvature = (np.ldexp(part / size, power) for part in (least, slope, curvature))
        curve = ErrorCurve(scoring, path.parameter, edges, at, best - least, slope, curvature)
        _refuse_overflow(curve, y)
    return curve


def _power(y: np.ndarray) -> int:
    """Return k for which y / 2**k is about one: squares of that neither overflow nor vanish, and no digit is lost."""
    return int(np.frexp(np.abs(y).max())[1])


def _in_units(pieces_of: Callable[..., Any], power: int, x0: float, x1: float, *parts: np.ndarray) -> Iterator[Piece]:
    """Yield the pieces of residuals in units of 2**power."""
    r0, r1, weight = parts
    return pieces_of(x0, x1, np.ldexp(r0, -power), np.ldexp(r1, -power), weight)


def _refuse_overflow(curve: ErrorCurve, y: np.ndarray) -> None:
    if not curve.worst_score > -LARGEST:
        size = float(np.abs(y).max())
        raise ValueError(
            f"Targets of {size:.1g} have errors whose {curve.scoring!r} is too large for float64. Divide y and epsilon by "
            f"{size:.1g}, or use scoring='r2', which does not depend on the scale."
        )


def _variance(y: np.ndarray, weight: np.ndarray) -> float:
    variance = float(weight @ np.square(y - weight @ y))
    if y[weight > 0].min() == y[weight > 0].max():
        raise ValueError(
            "scoring='r2' compares with the variance of y, which is zero here. Use 'neg_mean_squared_error', or more points."
        )
    return variance


def _pieces(
    path: RegressionPath | EpsilonPath, K: np.ndarray, y: np.ndarray, weight: np.ndarray, pieces_of: Callable[..., Any]
) -> Iterator[Piece]:
    """Yield the pieces in the order of the path.  Its decision values have no jumps, so one value serves both sides."""
    values = path.value_of(path.lam)
    x, r = values[0], None
    for first in range(0, values.size, BREAKPOINTS):
        limits.check()
        some = values[first : first + BREAKPOINTS]
        betas, biases = zip(*(path.solution_at(value) for value in some), strict=True)
        residuals = (np.stack(betas) @ K + np.array(biases)[:, None]) - y
        for x_next, r_next in zip(some, residuals, strict=True):
            if r is not None:
                yield from pieces_of(x, x_next, r, r_next, weight)
            x, r = x_next, r_next


def _squares(x0: float, x1: float, r0: np.ndarray, r1: np.ndarray, weight: np.ndarray) -> Iterator[Piece]:
    """Yield the quadratic of the mean of squares, about its minimum between the two ends."""
    d, width = r1 - r0, abs(x1 - x0)
    bend, rise0, rise1 = (float(weight @ (other * d)) for other in (d, r0, r1))
    if rise0 >= 0.0:  # a half of the derivative in s at either end
        s, r, slope = 0.0, r0, rise0
    elif rise1 <= 0.0:
        s, r, slope = 1.0, r1, -rise1
    else:
        s, slope = min(-rise0 / bend, 1.0), 0.0
        r = _between(r0, r1, s)
    at = x0 if s == 0.0 else x1 if s == 1.0 else x0 + s * (x1 - x0)
    least = float(weight @ np.square(r))
    if width > 0.0:
        yield Piece(min(x0, x1), max(x0, x1), at, least, 2.0 * slope / width, bend / width**2)


def _absolute(x0: float, x1: float, r0: np.ndarray, r1: np.ndarray, weight: np.ndarray) -> Iterator[Piece]:
    """Yield the lines of the mean of sizes: it has kinks where a residual is zero."""
    passes = (r0 < 0.0) != (r1 < 0.0)
    roots = np.unique(r0[passes] / (r0[passes] - r1[passes]))
    s = np.concatenate([[0.0], roots[(roots > 0.0) & (roots < 1.0)], [1.0]])
    step = max(1, RESIDUALS // r0.size)
    parts = (s[k : k + step, None] for k in range(0, s.size, step))
    means = np.concatenate([np.abs(_between(r0, r1, part)) @ weight for part in parts])
    x = x0 + s * (x1 - x0)
    x[-1] = x1
    for k in range(s.size - 1):
        width, low = abs(x[k + 1] - x[k]), k if means[k] <= means[k + 1] else k + 1
        if width > 0.0:
            slope = abs(means[k + 1] - means[k]) / width
            yield Piece(min(x[k], x[k + 1]), max(x[k], x[k + 1]), x[low], means[low], slope, 0.0)


def _between(r0: np.ndarray, r1: np.ndarray, s: Any) -> np.ndarray:
    return (1.0 - s) * r0 + s * r1
