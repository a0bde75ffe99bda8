"""The score on held-out data for every C: exact, piecewise constant.

On a segment the decision value of a point is (p + lam q) / lam, so its prediction changes where lam = -p/q, and nowhere else.
"""

from typing import Any, NamedTuple

import numpy as np

from zerogap.path.engine import LEFT
from zerogap.path.result import Path
from zerogap.path.rows import lines
from zerogap.wording import count, number


class ScoreCurve(NamedTuple):
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

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap.path import ScoreCurve
    >>> curve = ScoreCurve(np.array([0.1, 1.0, 10.0]), np.array([0.5, 0.75]))
    >>> float(curve(2.0)), curve.best_intervals
    (0.75, [(1.0, 10.0)])
    """

    C: np.ndarray
    score: np.ndarray

    def __call__(self, C: Any) -> Any:
        """Return the score at C, or at each of an array."""
        k = np.clip(np.searchsorted(self.C, C, side="right") - 1, 0, self.score.size - 1)
        return self.score[k]

    @property
    def best_score(self) -> float:
        """The largest score."""
        return float(self.score.max())

    @property
    def best_intervals(self) -> list[tuple[float, float]]:
        """The intervals of C that have it."""
        return [(float(self.C[k]), float(self.C[k + 1])) for k in np.flatnonzero(self.score == self.score.max())]

    def __repr__(self) -> str:
        (low, high), *others = self.best_intervals
        more = f" and {count(len(others), 'other interval')}" if others else ""
        return (
            f"ScoreCurve(C from {number(self.C[0])} to {number(self.C[-1])}, {count(self.score.size, 'interval')}: best "
            f"{number(self.best_score)} for C from {number(low)} to {number(high)}{more}, worst {number(self.score.min())})"
        )

    def _repr_html_(self) -> str:
        from zerogap.notebook import of_score_curve

        return of_score_curve(self)


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
    path.check_not_empty()
    weight = np.ones(y.size) if weight is None else weight
    weight = weight / weight.sum()
    status = path.start.copy()
    cap = path.y * path.points.weight
    g = cap[status == LEFT] @ K[status == LEFT]
    p, q = np.empty(y.size), np.empty(y.size)
    edges, scores = [], []
    for lam, end, segment, transitions in path.segments():
        for t in transitions:
            step = int(t.target == LEFT) - int(t.origin == LEFT)
            if step:
                g = g + step * cap[t.point] * K[t.point]
        lines(K, segment.points, segment.coefficients(0.0), segment.v, segment.bias(0.0), segment.v0, g, p, q)
        with np.errstate(divide="ignore", invalid="ignore"):
            roots = np.where(q != 0, -p / q, np.nan)
        inside = np.flatnonzero((roots < lam) & (roots > end))
        inside = inside[np.argsort(-roots[inside])]
        # The prediction before the first root of a segment is read in its middle: at its end a value may be zero by rounding.
        first = 0.5 * (lam + (roots[inside[0]] if inside.size else end))
        right = ((p + first * q > 0) == (y > 0)).astype(float)
        score = float(weight @ right)
        edges.append(lam)
        scores.append(score)
        for k in inside:
            score += weight[k] * (1.0 - 2.0 * right[k])
            edges.append(roots[k])
            scores.append(score)
    edges.append(path.lam[-1])
    values, C = np.round(np.array(scores), 12), 1.0 / np.array(edges)
    keep = np.concatenate([[True], np.diff(values) != 0])
    return ScoreCurve(np.append(C[:-1][keep], C[-1]), values[keep])
