"""Which set every point is in, the coefficients of those at a bound, and what these add to every decision value.

Symbols: as in ``engine``; a point is at rest in the right and in the left set.
"""

import numpy as np

from zerogap.path.engine import ELBOW, LEFT, RIGHT, sets_of
from zerogap.path.family import Family, Tube
from zerogap.path.rows import add_row, weighted_rows
from zerogap.path.tolerances import REFRESH_BELOW, REFRESH_EVERY, SUM_ERROR


class Sets:
    """Right, elbow and left, with b and g = K_L b_L; the elbow's b are those of some lam before, except where said.

    With two sides y is that of the margin a point is on or beyond, and of one inside the tube either.
    Lines are about ``anchor``: on the margin F = m0 + (lam - anchor) m1.
    """

    def __init__(self, K: np.ndarray, family: Family, status: np.ndarray):
        self.K, self.family, self.w, self.low, self.status = K, family, family.w, family.low, status
        self.y = family.y.copy() if family.is_two_sided else family.y
        self.anchor, self.target0, self.eps0 = 0.0, family.target0, family.eps0  # those at the anchor
        self.m0, self.m1 = np.empty(family.n), np.empty(family.n)
        self.b, self.g = np.zeros(family.n), np.zeros(family.n)
        self.capped_sum, self.n_capped = 0.0, 0  # of the b at rest, and how many of them are not zero
        self.summed_at, self.rounding = np.inf, 0.0  # the lam at which g was last summed, and what rounding left in it
        self.take_sides(self.y)

    def take_sides(self, y: np.ndarray) -> None:
        """Put points on a side of zero."""
        self.y[:] = y
        self.m0[:], self.m1[:] = self.target0 - y * self.eps0, self.family.target1 - y * self.family.eps1

    def move_anchor(self, lam: float) -> None:
        """Let lines be about another lam; those of before do not hold any more."""
        family = self.family
        self.anchor, self.target0 = lam, family.target0 + lam * family.target1
        self.eps0 = family.eps0 + lam * family.eps1
        self.take_sides(self.y)

    def margins(self, lam: float) -> np.ndarray:
        """Return what F is on the margin of every point."""
        return self.m0 + (lam - self.anchor) * self.m1

    @property
    def tube(self) -> Tube:
        """The numbers of the family, about the anchor."""
        return self.family.tube._replace(eps0=self.eps0)

    def place(self, b: np.ndarray, status: np.ndarray | None = None) -> None:
        """Take over coefficients, and the sets if they are known: on the boundary of a set coefficients do not tell."""
        self.b = b.copy()
        if self.family.is_two_sided:
            is_negative = b < 0.0 if status is None else status < 0
            self.take_sides(np.where(is_negative, -1.0, 1.0))
        self.status[:] = sets_of(self.y * b, self.w, self.low) if status is None else np.abs(status)
        is_at_rest = self.status != ELBOW
        self.b[is_at_rest] = self.at_rest[is_at_rest]

    @property
    def at_rest(self) -> np.ndarray:
        """The coefficients of the points at rest, zero for those of the elbow."""
        return self.y * np.where(self.status == LEFT, self.w, np.where(self.status == RIGHT, self.low, 0.0))

    @property
    def signed(self) -> np.ndarray:
        """The sets, negative on a side that is not a point's own."""
        return np.where(self.y == self.family.y, self.status, -self.status)

    def bound(self, i: int, target: int) -> float:
        """Return the coefficient of a point that is in a set, as far as the set tells."""
        return float(self.y[i] * (self.w[i] if target == LEFT else self.low[i] if target == RIGHT else 0.0))

    def choose_sides(self, lam: float, F: np.ndarray) -> None:
        """Let points inside the tube be on the side of the margin that they are nearer to."""
        if self.family.is_two_sided:
            target = self.family.target0 + lam * self.family.target1
            is_inside = self.status == RIGHT
            self.take_sides(np.where(is_inside, np.where(target < F, -1.0, 1.0), self.y))

    def move(self, i: int, target: int) -> bool:
        """Put a point into another set; return whether the lines end there, as no coefficient at rest is left."""
        before, after = self.bound(i, int(self.status[i])), self.bound(i, target)
        self.status[i] = target
        if target != ELBOW:
            self.b[i] = after
        if before == after:
            return False
        add_row(self.K, i, after - before, self.g)
        self.capped_sum += after - before
        self.n_capped += int(after != 0.0) - int(before != 0.0)
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
        at_rest = self.at_rest
        resting = np.flatnonzero(at_rest)
        self.g = weighted_rows(self.K, resting, at_rest[resting])
        self.capped_sum, self.n_capped = float(at_rest[resting].sum()), resting.size
        self.summed_at, self.rounding = lam, SUM_ERROR * float(np.abs(self.g).max())
