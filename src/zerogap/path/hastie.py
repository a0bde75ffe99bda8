"""Engine "hastie": the plain algorithm that the others improve on (Hastie, Rosset, Tibshirani and Zhu, 2004; §II.A of ong).

Symbols: as in ``increments``; p is ong's (35).  The elbow system is taken to be regular (23), every lam at which some point
reaches a boundary is a candidate, whichever way it moves, and the largest below the present one is the next event.  On data
with duplicates, dependent points or ties that goes wrong, and it says so: it is here to compare with.
"""

from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from zerogap.gram import Gram
from zerogap.path.bordered_matrix import SVD
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Segment, segment_between
from zerogap.path.increments import IncrementalEngine
from zerogap.path.single import Single, SingleEngine

EQUAL = 1e-10  # candidates this near to lam, relative to it, are the event we come from
SINGULAR = 1e-12  # reciprocal condition number of an elbow system that has no one solution
LARGEST_VIOLATION = 1e-5  # violation of the optimality conditions at which the path is lost


@dataclass(frozen=True)
class Hastie:
    """The plain algorithm; needs no options."""

    def start(
        self,
        gram: Gram,
        y: np.ndarray,
        w: np.ndarray,
        C: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> "HastieEngine":
        """Return the engine at C, from the exact solution there: an error in it would stay to the end."""
        return HastieEngine(Single().start(gram, y, w, C, beta, status))

    @property
    def violation(self) -> float:
        """The violation of the optimality conditions that a path may have."""
        return LARGEST_VIOLATION

    def __str__(self) -> str:
        return "hastie"


class HastieEngine(IncrementalEngine):
    """The state between two events."""

    def __init__(self, exact: SingleEngine):
        super().__init__(exact.gram, exact.y, exact.w)
        segment = exact.segment()
        alpha = exact.y * exact.sets.b
        alpha[np.abs(alpha) <= EQUAL * exact.w] = 0.0  # engine "single" keeps a point on the elbow even at a bound
        alpha = np.where(exact.w - alpha <= EQUAL * exact.w, exact.w, alpha)
        self._place(exact.lam, alpha, segment.bias(exact.lam))

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
