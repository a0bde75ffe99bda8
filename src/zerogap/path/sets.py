"""Which set every point is in, the coefficients of those at a bound, and what the capped ones add to every decision value.

Symbols: as in ``engine``.
"""

import numpy as np

from zerogap.path.engine import ELBOW, LEFT, sets_of
from zerogap.path.rows import add_row, weighted_rows
from zerogap.path.tolerances import REFRESH_BELOW, REFRESH_EVERY, SUM_ERROR


class Sets:
    """Right, elbow and left, with b and g = K_L b_L; the elbow's b are those of some lam before, except where said."""

    def __init__(self, K: np.ndarray, y: np.ndarray, w: np.ndarray, status: np.ndarray):
        self.K, self.y, self.w, self.status = K, y, w, status
        self.b, self.g = np.zeros(y.size), np.zeros(y.size)
        self.capped_sum, self.n_capped = 0.0, 0  # of the b_L
        self.summed_at, self.rounding = np.inf, 0.0  # the lam at which g was last summed, and what rounding left in it

    def place(self, b: np.ndarray, status: np.ndarray | None = None) -> None:
        """Take over coefficients, and the sets if they are known: on the boundary of a set coefficients do not tell."""
        self.b = b.copy()
        self.status[:] = sets_of(self.y * b, self.w) if status is None else status
        is_at_bound = self.status != ELBOW
        self.b[is_at_bound] = np.where(self.status == LEFT, self.y * self.w, 0.0)[is_at_bound]

    def bound(self, i: int, target: int) -> float:
        """Return the coefficient of a point that is in the right or the left set."""
        return float(self.y[i] * self.w[i]) if target == LEFT else 0.0

    def move(self, i: int, target: int) -> bool:
        """Put a point into another set; return whether the lines end there, as no point is capped any more."""
        sign, at_cap = int(target == LEFT) - int(self.status[i] == LEFT), self.y[i] * self.w[i]
        self.status[i] = target
        if target != ELBOW:
            self.b[i] = at_cap if target == LEFT else 0.0
        if not sign:
            return False
        add_row(self.K, i, sign * at_cap, self.g)
        self.capped_sum += sign * at_cap
        self.n_capped += sign
        if self.n_capped:
            return False
        # From here on b is in proportion to lam: what rounding left must not stay.
        self.g[:], self.capped_sum = 0.0, 0.0
        return True

    def is_due(self, events: int, lam: float) -> bool:
        """Whether g is to be summed afresh after so many events."""
        return events % REFRESH_EVERY == 0 or lam < REFRESH_BELOW * self.summed_at

    def sum_bound_contribution(self, lam: float) -> None:
        """Sum g afresh."""
        left = np.flatnonzero(self.status == LEFT)
        at_caps = self.y[left] * self.w[left]
        self.g = weighted_rows(self.K, left, at_caps)
        self.capped_sum, self.n_capped = float(at_caps.sum()), left.size
        self.summed_at, self.rounding = lam, SUM_ERROR * float(np.abs(self.g).max())
