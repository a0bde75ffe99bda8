"""The score on held-out data for every C: exact and piecewise constant if it is one of predictions, else sampled."""

from typing import Any, NamedTuple

import numpy as np

from zerogap import validation
from zerogap.path.predictions import Predictions, of_two_classes
from zerogap.path.reading import BEYOND_END
from zerogap.path.result import Path
from zerogap.wording import count, number


class _Steps(NamedTuple):
    """A pair; a class of its own, so that what is made of it can have attributes beside it."""

    C: np.ndarray
    score: np.ndarray


class ScoreCurve(_Steps):
    """A score for every C: ``score[k]`` between ``C[k]`` and ``C[k + 1]``; call it with a C, or an array of them.

    Attributes
    ----------
    C : array of shape (k + 1,)
        Where the score changes, ascending, and both ends.
    score : array of shape (k,)
        The score in between.
    best_score : float
        The largest score.
    best_intervals : list of tuple
        The intervals of C that have it.
    best_C : float
        The middle, in log C, of the widest of these: far from where predictions change.
    is_exact : bool
        Whether every C has the score of its interval; that of a :class:`SampledScoreCurve` is known at some C only.
    name : str
        What the score is called, such as "accuracy", in pictures; "score" if nobody has said.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap.path import ScoreCurve
    >>> curve = ScoreCurve(np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.75]))
    >>> float(curve(2.0)), curve.best_intervals, round(curve.best_C, 3)
    (0.75, [(1.0, 10.0)], 3.162)
    """

    name = "score"

    def __call__(self, C: Any) -> Any:
        """Return the score at C, or at each of an array."""
        x, slack = validation.check_places("C", C), BEYOND_END * self.C[-1]
        if not ((x >= self.C[0] - slack) & (x <= self.C[-1] + slack)).all():
            raise ValueError(
                f"The curve runs from C={self.C[0]:g} to C={self.C[-1]:g}; got {C}. Follow the path over a wider range."
            )
        k = np.clip(np.searchsorted(self.C, x, side="right") - 1, 0, self.score.size - 1)
        return self.score[k]

    @property
    def is_exact(self) -> bool:
        """Whether every C has the score of its interval."""
        return True

    @property
    def best_score(self) -> float:
        """The largest score; those that are not defined, NaN, do not count."""
        return float(np.fmax.reduce(self.score))

    @property
    def best_intervals(self) -> list[tuple[float, float]]:
        """The intervals of C that have it."""
        return runs(self.C, self.score == self.best_score)

    @property
    def best_C(self) -> float:
        """The middle, in log C, of the widest interval that has the best score, the first of equally wide ones."""
        if not self.best_intervals:
            raise ValueError("The score is not defined, NaN, at any C: there is no best one. Use another score.")
        return middle(*widest(self.best_intervals))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(C from {number(self.C[0])} to {number(self.C[-1])}, {self._extent}: {self._best}, "
            f"worst {number(float(np.fmin.reduce(self.score)))})"
        )

    @property
    def _extent(self) -> str:
        return count(self.score.size, "interval")

    @property
    def _best(self) -> str:
        """The best score, and where, in words."""
        if not self.best_intervals:
            return "no score is defined"
        (low, high), *others = self.best_intervals
        more = f" and {count(len(others), 'other interval')}" if others else ""
        return f"best {number(self.best_score)} for C from {number(low)} to {number(high)}{more}"

    def plot(self, grid: Any = None, *, ax: Any = None, label: str | None = None) -> Any:
        """Draw the score over C, its best intervals shaded.

        Parameters
        ----------
        grid : int or array, optional
            A grid beside it, what a search over these C would have seen: their number, or the values.
        ax : matplotlib axes, optional
            Where to draw; by default in a new figure.
        label : str, optional
            What the score is called; by default by its ``name``.

        Returns
        -------
        matplotlib axes
            The drawing.
        """
        from zerogap.plots import plot_score_curve

        return plot_score_curve(self, grid, ax=ax, label=label)

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_score_curve

        return of_score_curve(self)


class SampledScoreCurve(ScoreCurve):
    """A score known at some C: every breakpoint of the path, and the middle, in log C, of every interval between two.

    What is not constant between changes of predictions, such as the area under the ROC curve, may take any value in between.
    Every C is given the score of the sample that is nearest in log C.

    Attributes
    ----------
    samples : array of shape (k,)
        The C at which the score was computed, ascending.
    C : array of shape (k + 1,)
        The smallest C, the middles between the samples, and the largest C.
    score : array of shape (k,)
        The score at each sample.
    is_exact : bool
        False.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap.path import SampledScoreCurve
    >>> curve = SampledScoreCurve.at(np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.75, 0.6]))
    >>> float(curve(2.0)), curve.is_exact
    (0.75, False)
    """

    samples: np.ndarray

    @classmethod
    def at(cls, samples: np.ndarray, score: np.ndarray) -> "SampledScoreCurve":
        """Return the curve of scores at some C.

        Parameters
        ----------
        samples : array of shape (k,)
            C, ascending.
        score : array of shape (k,)
            The score at each.

        Returns
        -------
        SampledScoreCurve
            The curve.
        """
        curve = cls(np.concatenate([samples[:1], np.sqrt(samples[:-1] * samples[1:]), samples[-1:]]), score)
        curve.samples = samples
        return curve

    @property
    def is_exact(self) -> bool:
        """False: between the samples the score is not known."""
        return False

    @property
    def best_C(self) -> float:
        """The sample nearest, in log C, to the middle of the widest interval that has the best score."""
        return self.nearest(super().best_C)

    def nearest(self, C: float) -> float:
        """Return the sample that is nearest in log C.

        Parameters
        ----------
        C : float
            Any.

        Returns
        -------
        float
            One of ``samples``.
        """
        return float(self.samples[np.abs(np.log(self.samples / C)).argmin()])

    @property
    def _extent(self) -> str:
        return f"sampled at {count(self.score.size)} C, not exact in between"


def score_curve(path: Path, K: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> ScoreCurve:
    """Return the accuracy on held-out points for every C.

    Parameters
    ----------
    path : Path
        The path.
    K : array of shape (m, t)
        Kernel values of the path's distinct points against t held-out ones.
    y : array of shape (t,)
        Their labels, -1 or +1; a decision value of zero predicts -1.
    weight : array of shape (t,), optional
        Their weights in the accuracy.

    Returns
    -------
    ScoreCurve
        Piecewise constant in C.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import svm_path
    >>> from zerogap.path import score_curve
    >>> path = svm_path([[0.0], [1.0], [3.0]], [-1, -1, 1], kernel="linear", C_max=10.0)
    >>> points, held_out = np.array([[0.0], [1.0], [3.0]])[path.points.rows], np.array([[0.5], [4.0]])
    >>> float(score_curve(path, points @ held_out.T, np.array([-1.0, 1.0])).best_score)
    1.0
    """
    return accuracy_curve(of_two_classes(path, K), (y > 0).astype(np.int64), weight)


def accuracy_curve(found: Predictions, codes: np.ndarray, weight: np.ndarray | None = None) -> ScoreCurve:
    """Return the share, by weight, of the predictions that are the classes ``codes``, for every C."""
    curve = joined(*_shares_of_true(found, codes, weight))
    curve.name = "accuracy"
    return curve


def _shares_of_true(found: Predictions, codes: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of pieces, and the share of true predictions in each."""
    edges, before = found.pieces()
    is_counted = weight is None or bool((weight == weight[0]).all())
    share = np.ones(codes.size) if is_counted else weight
    assert share is not None
    true = codes[found.point]
    steps = share[found.point] * ((found.code == true).astype(float) - (found.left() == true))
    total = float(share @ (found.start == codes)) + np.concatenate([[0.0], np.cumsum(steps)])[before]
    # Counts are exact; of weights the last digits depend on the order in which they were added.
    return edges, total / share.sum() if is_counted else np.round(total / share.sum(), 12)


def joined(edges: np.ndarray, scores: np.ndarray) -> ScoreCurve:
    """Return the curve of scores between edges; neighbours with one score are one interval."""
    keep = np.concatenate([[True], np.diff(scores) != 0])
    return ScoreCurve(np.append(edges[:-1][keep], edges[-1]), scores[keep])


def runs(edges: np.ndarray, holds: np.ndarray) -> list[tuple[float, float]]:
    """Return the intervals between edges in which something holds, neighbours as one."""
    steps = np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8))
    first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return [(float(edges[a]), float(edges[b])) for a, b in zip(first, last, strict=True)]


def widest(intervals: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the widest, in log C; the first of equally wide ones."""
    return max(intervals, key=lambda ends: ends[1] / ends[0])


def middle(low: float, high: float) -> float:
    """Return the middle in log C, between the two whatever rounding does."""
    return float(np.clip(np.sqrt(low) * np.sqrt(high), low, high))
