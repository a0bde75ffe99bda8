"""What engines "lp" and "hastie" share: coefficients and slacks carried from event to event by increments, (36)-(46) of ong.

Symbols: as in ``engine``; alpha = y b (ong's alpha hat), slack = lam xi = lam - y F, minus the excess, so that slack <= 0 on
the right, zero on the elbow, >= 0 on the left.  A move changes lam by delta, and the bias and the elbow's alpha by d, which
solves A d = 1 delta.
"""

import numpy as np

from zerogap.path.engine import ELBOW, LEFT, RIGHT, Engine, Segment, Transition, segment_between
from zerogap.path.rows import weighted_rows

# A coefficient this near to a bound, relative to its box, is at it: a solver's rounding must not put a point on the elbow.
# Unless its slack, relative to lam, has the other sign by more than this: then the point is on its way off the bound.
AT_BOUND = 1e-9


def at_bound(alpha: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return how near to a bound a coefficient is at it; beside a class that weighs little all may be far below their caps."""
    return AT_BOUND * np.minimum(w, alpha.max())


class IncrementalEngine(Engine):
    """An elbow, and increments."""

    @property
    def elbow_size(self) -> int:
        """Number of points in the elbow."""
        return len(self.elbow)

    def _place(self, lam: float, alpha: np.ndarray, bias: float) -> None:
        """Take over the solution at lam, every point in its set (17), and one at a bound there exactly."""
        self.lam, self.alpha, self.bias, w = lam, alpha, bias, self.w
        self.slack = self.true_slack()
        xi = self.slack / lam
        # Nor may that move a decision value by more than a tenth of it.
        near = at_bound(alpha, w) * min(1.0, 0.1 * lam / float((np.diagonal(self.K) * w).max() or 1.0))
        at_zero = (alpha <= 0.0) | ((alpha <= near) & (xi <= AT_BOUND))
        at_cap = (alpha >= w) | ((w - alpha <= near) & (xi >= -AT_BOUND))
        self.status = np.where(at_zero, RIGHT, np.where(at_cap, LEFT, ELBOW))
        E = np.flatnonzero(self.status == ELBOW)
        self.elbow = E.tolist()
        excess = float(self.y @ alpha)
        snapped = np.where(at_zero, 0.0, np.where(at_cap, w, alpha))
        if E.size and not np.array_equal(snapped, alpha):  # the sum stays what it was
            k = E[np.argmax(np.minimum(alpha, w - alpha)[E])]
            snapped[k] = np.clip(snapped[k] - self.y[k] * (float(self.y @ snapped) - excess), 0.0, w[k])
        self.alpha = snapped
        self.slack = self.true_slack()

    def current_solution(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the elbow, its b, and the scaled bias, at the present lam."""
        E = np.array(self.elbow, dtype=np.int64)
        return E, self.y[E] * self.alpha[E], float(self.bias)

    def true_slack(self) -> np.ndarray:
        """Return lam - y F from the coefficients, (16)."""
        support = np.flatnonzero(self.alpha)
        F = weighted_rows(self.K, support, (self.y * self.alpha)[support]) + self.bias
        return self.lam - self.y * F

    def _rates(self, E: np.ndarray, d: np.ndarray) -> np.ndarray:
        """Return d'k_i for every point: how fast y F changes when the bias and the elbow move along d."""
        return self.y * (d[0] + weighted_rows(self.K, E, self.y[E] * d[1:]))

    def _move(self, delta: float, lam_end: float, E: np.ndarray, d: np.ndarray, rates: np.ndarray) -> Segment:
        """Change lam by delta, the elbow and the bias by d, (36)-(39); return the segment, by (53)."""
        old, old_bias, before = self.alpha[E], self.bias, self.lam
        self.alpha[E] += d[1:]
        self.bias += d[0]
        self.slack += delta - rates
        self.lam = before + delta if before + delta > lam_end * (1 + 1e-14) else lam_end
        return segment_between(E, before, self.lam, self.y[E] * old, self.y[E] * self.alpha[E], old_bias, self.bias)

    def _assign(self, moves: dict[int, int]) -> None:
        """Let points change sets, (44)-(46); one that reaches a bound is put there exactly."""
        for i, target in moves.items():
            origin = int(self.status[i])
            if target == ELBOW:
                self.elbow.append(i)
            else:
                self.alpha[i] = self.w[i] if target == LEFT else 0.0
                if origin == ELBOW:
                    self.elbow.remove(i)
            self.status[i] = target
            self.transitions.append(Transition(self.lam, i, origin, target))
