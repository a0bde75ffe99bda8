"""Engine "hastie": the plain algorithm that the others improve on (Hastie, Rosset, Tibshirani and Zhu, 2004; §II.A of ong).

Symbols: as in ``increments``; p is ong's (35).  The elbow system is taken to be regular (23), every lam at which some point
reaches a boundary is a candidate, whichever way it moves, and the largest below the present one is the next event.  On data
with duplicates, dependent points or ties that goes wrong, and it says so: it is here to compare with.

It starts at the largest lam with an event.  Above it the lighter class is capped, and the heavier one has the coefficients of
least norm with the same sum: all at their caps too if both weigh the same, else the solution of a quadratic program.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg as la

from zerogap import limits
from zerogap.active_set import ActiveSet
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.path.bordered_matrix import SVD
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Counts, NotStarted, Segment, balanced, segment_between
from zerogap.path.family import Family
from zerogap.path.increments import IncrementalEngine, at_bound
from zerogap.path.single import Single, SingleEngine
from zerogap.path.tolerances import OPTIMAL
from zerogap.problem import DualProblem

EQUAL = 1e-10  # candidates this near to lam, relative to it, are the event we come from
SINGULAR = 1e-12  # reciprocal condition number of an elbow system that has no one solution
LARGEST_VIOLATION = 1e-5  # violation of the optimality conditions at which the path is lost


@dataclass(frozen=True)
class Hastie:
    """Engine "hastie": the plain algorithm; needs no options.

    Examples
    --------
    >>> from zerogap import svm_path
    >>> from zerogap.path import Hastie
    >>> svm_path([[0.0], [1.0], [3.0]], [-1, -1, 1], C_max=10.0, engine=Hastie()).status
    'complete'
    """

    def start(
        self,
        gram: Gram,
        family: Family,
        lam: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> "HastieEngine":
        """Return the engine at the largest lam or, if that is at a smaller C, as far as lam; one that is resumed begins there.

        An error in the start would stay to the end: to resume, the solution at lam is made exact.
        """
        if beta is not None or status is not None:
            return HastieEngine.from_exact(Single().start(gram, family, lam, beta, status))
        y, w = family.y, family.w
        try:
            start = largest_lam(gram, y, w)
            size = float(np.abs(gram.diagonal).max() * w.sum())
            if not start.lam > SINGULAR * size:  # the classes have one mean: whatever lam, nothing happens
                return HastieEngine(gram, family, lam, start.alpha, start.bias(lam))
            engine = HastieEngine(gram, family, start.lam, start.alpha, start.bias(start.lam), start.reached)
            if engine.lam <= lam:  # the path has the part above, and what comes to the elbow at its end
                return engine
            while engine.lam > lam:
                limits.check()
                engine.step(lam)
        except limits.Exceeded:
            raise NotStarted(y * balanced(y, w) / lam) from None
        engine.transitions.clear()
        engine.counts = Counts()
        return engine

    @property
    def violation(self) -> float:
        """The violation of the optimality conditions that a path may have."""
        return LARGEST_VIOLATION

    def __str__(self) -> str:
        return "hastie"


class Start(NamedTuple):
    """The solution at the largest lam with an event."""

    lam: float
    alpha: np.ndarray  # (n,)
    reached: np.ndarray  # the points at their caps that have come to their margins there
    sign: float  # label of the heavier class, ...
    margin: float  # ... and y F of its points on the margin but for the bias

    def bias(self, lam: float) -> float:
        """Return the bias at the largest lam and above."""
        return self.sign * (lam - self.margin)


def largest_lam(gram: Gram, y: np.ndarray, w: np.ndarray) -> Start:
    """Return where both classes first have points on their margins, as lam falls from infinity."""
    sign = 1.0 if y @ w >= 0.0 else -1.0  # of the heavier class
    alpha = _least_norm(gram, y, w, sign)
    g = y * gram.dot(y * alpha)  # y F but for the bias
    near = EQUAL * float(np.abs(g).max())
    lighter, heavier = (_first(g, side, alpha, w, near) for side in (y == -sign, y == sign))
    lam = 0.5 * (g[lighter[0]] + g[heavier[0]])  # g + y bias = lam for both
    capped = [i for i in (*lighter, *heavier) if alpha[i] == w[i]]
    return Start(float(lam), alpha, np.array(capped, dtype=np.int64), sign, float(g[heavier[0]]))


def _least_norm(gram: Gram, y: np.ndarray, w: np.ndarray, sign: float) -> np.ndarray:
    """Return the coefficients above the largest lam: caps, and of the heavier class those of least |sum y alpha phi|."""
    alpha, heavier = w.copy(), np.flatnonzero(y == sign)
    share = float(w[y == -sign].sum() / w[heavier].sum())
    if share >= 1.0 - 4.0 * UNIT:
        return alpha
    alpha[heavier] *= share  # the same sum, to all its digits however small it is beside the caps
    box = np.where(y > 0, w, 0.0), np.where(y > 0, 0.0, -w)
    whole = DualProblem(gram, target=np.zeros(y.size), lower=box[1], upper=box[0], ridge=np.zeros(y.size), total=0.0)
    b = y * alpha
    part = whole.restricted(heavier, b)
    active = ActiveSet(part, b[heavier])
    active.optimise(part, OPTIMAL * float(np.abs(part.target).max()))
    limits.check()
    alpha[heavier] = np.clip(sign * active.beta, 0.0, w[heavier])
    near = at_bound(alpha, w)
    return np.where(alpha <= near, 0.0, np.where(w - alpha <= near, w, alpha))


def _first(g: np.ndarray, side: np.ndarray, alpha: np.ndarray, w: np.ndarray, near: float) -> np.ndarray:
    """Return the points of one class that come to their margin first: those inside their box, which all do, or capped ones."""
    free = side & (alpha > 0.0) & (alpha < w)
    if free.any():
        return np.flatnonzero(free)
    capped = side & (alpha >= w)
    return np.flatnonzero(capped & (g >= g[capped].max() - near))


class HastieEngine(IncrementalEngine):
    """The state between two events."""

    def __init__(
        self,
        gram: Gram,
        family: Family,
        lam: float,
        alpha: np.ndarray,
        bias: float,
        reached: np.ndarray | None = None,
    ):
        super().__init__(gram, family)
        self._place(lam, alpha, bias)
        if reached is not None:
            self._assign({int(i): ELBOW for i in reached if self.status[i] != ELBOW})

    @classmethod
    def from_exact(cls, exact: SingleEngine) -> "HastieEngine":
        """Take over from engine "single", which keeps a point on the elbow even at a bound."""
        bias = exact.segment().bias(exact.lam)
        return cls(exact.gram, exact.family, exact.lam, exact.y * exact.sets.b, bias)

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """Go to the nearest candidate below lam."""
        self.counts.events += 1
        if not self.elbow:
            return self._restart(lam_end)
        E = np.array(self.elbow)
        self.slack[E] = 0.0  # by definition
        d = self._direction(E)
        p = self._rates(E, d) - 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            to_zero, to_cap = -self.alpha[E] / d[1:], (self.w[E] - self.alpha[E]) / d[1:]
            outer = np.where(self.status == ELBOW, -np.inf, self.slack / p)
        below = -EQUAL * self.lam
        inner = np.maximum(*(np.where(c < below, c, -np.inf) for c in (to_zero, to_cap)))
        outer = np.where(outer < below, outer, -np.inf)
        delta = max(float(inner.max()), float(outer.max()), lam_end - self.lam)
        segment = self._move(delta, lam_end, E, d * delta, (p + 1.0) * delta)
        if self.lam > lam_end:
            leaving = E[inner >= delta + below]  # two alone on the elbow leave it together
            moves = {int(i): LEFT if 2 * self.alpha[i] > self.w[i] else RIGHT for i in leaving}
            self.slack[leaving] = 0.0
            self._assign(moves | dict.fromkeys(np.flatnonzero(outer >= delta + below).tolist(), ELBOW))
        self._check()
        return segment, self.lam

    def _direction(self, E: np.ndarray) -> np.ndarray:
        """Return d_p = A^-1 1, (23)."""
        A = SVD(self.K, self.y, 0.0)._matrix(E)
        lu, pivots, info = la.lapack.dgetrf(A)
        condition, _ = la.lapack.dgecon(lu, np.abs(A).sum(axis=0).max())
        if info > 0 or condition < SINGULAR:
            raise np.linalg.LinAlgError(
                f"The system of the {E.size} points on the margin is singular at C={1 / self.lam:g} (reciprocal condition "
                f"{condition:.1e}): duplicate or dependent points. Engine 'hastie' cannot go on; use engine='single'."
            )
        return la.lapack.dgetrs(lu, pivots, np.concatenate([[0.0], np.ones(E.size)]))[0]

    def _restart(self, lam_end: float) -> tuple[Segment, float]:
        """With an empty elbow the bias has an interval, which closes where a capped point of each class meets its margin."""
        g = self.lam - self.slack - self.y * self.bias  # y K b
        positive, negative = (np.flatnonzero((self.status == LEFT) & (self.y == s)) for s in (1.0, -1.0))
        old, old_bias = self.lam, self.bias
        lam, bias = lam_end, old_bias
        if positive.size and negative.size:  # bias <= lam - g of the one, bias >= g - lam of the other
            i, j = positive[np.argmax(g[positive])], negative[np.argmax(g[negative])]
            lam = max(0.5 * (g[i] + g[j]), lam_end)
            if lam > old:
                raise np.linalg.LinAlgError(
                    f"No point is left on the margin at C={1 / old:g}, and none comes there further on: several have reached a "
                    "boundary together. Engine 'hastie' cannot resolve ties; use engine='single'."
                )
            bias = 0.5 * (g[j] - g[i])
        self.slack += lam - old - self.y * (bias - old_bias)
        self.lam, self.bias = lam, bias
        if lam > lam_end:
            self._assign({int(i): ELBOW, int(j): ELBOW})
        none = np.zeros(0)
        return segment_between(none.astype(np.int64), old, lam, none, none, old_bias, bias), lam

    def _check(self) -> None:
        """Notice when the path is lost."""
        xi = self.slack / self.lam
        violations = np.where(self.status == RIGHT, xi, np.where(self.status == LEFT, -xi, np.abs(xi)))
        outside = np.maximum(-self.alpha, self.alpha - self.w)
        worst = max(float(violations.max()), float(outside.max()))
        if worst > LARGEST_VIOLATION:
            raise np.linalg.LinAlgError(
                f"The optimality conditions are violated by {worst:.1e} at C={1 / self.lam:g}: several points have reached a "
                "boundary together. Engine 'hastie' cannot resolve ties; use engine='single'."
            )
