"""The loss that a box, a tube and a ridge make, and the bias that makes it least.

    loss_i(r) = max over lower_i <= c <= upper_i of  c r - eps |c| - ridge_i c²/2

Its slopes are the ends of the box, a flat part around zero is the tube, and a rounded corner is a ridge.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.kernels import UNIT

MANY, SAMPLED = 4096, 512  # knots, from which so many tell near which the crossing is
SURE = 4.0  # times what a sum over drawn knots is off as a rule


@dataclass(frozen=True, eq=False)
class Loss:
    """The losses of n points, each as its box and its ridge have it."""

    lower: np.ndarray  # (n,)
    upper: np.ndarray  # (n,)
    ridge: np.ndarray  # (n,)
    eps: float

    @cached_property
    def has_ridge(self) -> bool:
        """Whether any corner is rounded."""
        return bool(self.ridge.any())

    @cached_property
    def is_hard(self) -> bool:
        """Whether a violated margin costs infinitely much, so that the primal may have no feasible point."""
        return bool((np.isinf(self.upper - self.lower) & (self.ridge == 0)).any())

    def response(self, r: np.ndarray) -> np.ndarray:
        """Return the c in the box that attains loss_i(r_i); the lesser one where two ends do."""
        if not self.has_ridge:
            at_most = np.where(r <= -self.eps, self.lower, 0.0) if self.eps else self.lower
            return np.where(r > self.eps, self.upper, at_most)
        shrunk = np.where(r > self.eps, r - self.eps, np.minimum(r + self.eps, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = np.clip(shrunk / self.ridge, self.lower, self.upper)
        at_most = np.where(r <= -self.eps, self.lower, 0.0)
        return np.where(self.ridge > 0, smooth, np.where(r > self.eps, self.upper, at_most))

    def gap_shares(self, beta: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Return loss_i(r_i) + conjugate_i(beta_i) - beta_i r_i, at least 0 (Fenchel and Young): the gap of each point."""
        c = self.response(r)
        return (c - beta) * (r - 0.5 * self.ridge * (c + beta)) - self.eps * (np.abs(c) - np.abs(beta))

    def _widest_bias(self, r: np.ndarray) -> float:
        """Return the bias halfway between the nearest points of both classes."""
        highest = float(r[np.isinf(self.upper)].max(initial=-np.inf))
        lowest = float(r[np.isinf(self.lower)].min(initial=np.inf))
        if np.isinf(highest) or np.isinf(lowest):
            # One class alone: its margins hold with any bias that is large enough.
            return lowest if np.isfinite(lowest) else highest if np.isfinite(highest) else 0.0
        return 0.5 * highest + 0.5 * lowest

    def best_bias(self, r: np.ndarray, total: float) -> float:
        """Return the bias b that minimises sum_i loss_i(r_i - b) + b total, the middle one if there are many.

        The derivative is total - S(b), where S = sum_i response_i(r_i - b) falls as b grows.
        """
        if self.is_hard:
            return self._widest_bias(r)
        with np.errstate(over="ignore", invalid="ignore"):
            bias = self._root_of_slopes(r, total) if self.has_ridge else self._root_of_steps(r, total)
        return bias if np.isfinite(bias) else 0.0

    @cached_property
    def _steps(self) -> tuple[np.ndarray | slice, np.ndarray, float]:
        """The knots of a problem without ridge that S falls at, how far at each, and how much of a difference is rounding.

        A point with an empty box is not there: it must not end an interval of the bias.
        """
        drops = np.concatenate([self.upper, -self.lower]) if self.eps else self.upper - self.lower
        falls = slice(None) if drops.all() or not drops.any() else np.flatnonzero(drops)
        return falls, drops[falls], 1e-13 * float(drops.sum())

    def _root_of_steps(self, r: np.ndarray, total: float) -> float:
        """Where S, constant but for a step at each knot, falls to the total."""
        falls, drops, rounding = self._steps
        knots = np.concatenate([r - self.eps, r + self.eps]) if self.eps else r
        if not isinstance(falls, slice):
            knots = knots[falls]
        excess = self._top - total
        if knots.size > MANY and (near := _near_crossing(knots, drops, excess, rounding)) is not None:
            knots, drops, excess = near
        return float(crossing(knots, drops, excess, rounding))

    @cached_property
    def _top(self) -> float:
        return float(self.upper.sum())

    def _root_of_slopes(self, r: np.ndarray, total: float) -> float:
        """Where S, linear between knots with perhaps a step at one, falls to the total: bisect, then interpolate."""
        with np.errstate(invalid="ignore"):  # of an infinite box times no ridge
            starts, stops = r - self.eps - self.ridge * self.upper, r + self.eps - self.ridge * self.lower
        ends = np.concatenate([starts, r - self.eps, r + self.eps, stops])
        knots = np.unique(ends[np.isfinite(ends)])
        if not knots.size:
            return 0.0

        def excess(bias: float) -> float:
            return float(self.response(r - bias).sum()) - total

        low, high = -1, knots.size  # excess(knots[low]) > 0 >= excess(knots[high]), the ends standing for -inf and inf
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if excess(knots[middle]) > 0 else (low, middle)
        if high == 0:  # left of all knots S has one slope
            a, unit = knots[0], max(1.0, abs(knots[0]))
            near, far = excess(a - unit), excess(a - 2 * unit)
            before, slope = 2 * near - far, (far - near) / unit
            return float(a + before / slope) if before < 0 < slope else float(a)
        if high == knots.size:  # and right of them too
            a, unit = knots[-1], max(1.0, abs(knots[-1]))
            slope = (excess(a) - excess(a + unit)) / unit
            return float(a + excess(a) / slope) if slope > 0 else float(a)
        a, b = knots[low], knots[high]
        at_a = excess(a)
        before_b = 2 * excess(0.5 * (a + b)) - at_a  # the limit from the left: at b itself S may step down
        return float(a + (b - a) * at_a / (at_a - before_b)) if before_b < 0 else float(b)


def _near_crossing(
    knots: np.ndarray, drops: np.ndarray, excess: float, rounding: float
) -> tuple[np.ndarray, np.ndarray, float] | None:
    """Return the knots among which ``crossing`` finds what it finds among all, and what is left to fall there.

    Some of the knots tell about where that is (Floyd and Rivest, 1975); None where they are wrong.  Then all have to be
    looked at only once.
    """
    some = slice(0, None, knots.size // SAMPLED)
    falls = drops[some]
    whole = float(drops.sum())
    if not 0.0 < whole < np.inf:
        return None
    share, part = float(falls.sum()) / whole, min(max(excess / whole, 0.0), 1.0)
    error = SURE * math.sqrt(float(falls @ falls) * max(part * (1.0 - part), 1.0 / SAMPLED))
    low, high = (float(crossing(knots[some], falls, share * excess + off, rounding)) for off in (-error, error))
    below, (inside, steps) = between(knots, drops, low, high)
    left = excess - below
    # At both ends it must be certain that S is above the total before, and below it behind.
    return (inside, steps, left) if rounding < left and left + rounding < steps.sum() else None


@jit
def between(knots, drops, low, high):
    """Return how far S falls below ``low``, and the knots from there to ``high`` with what it falls at each."""
    inside, steps, below, kept = np.empty(knots.size), np.empty(knots.size), 0.0, 0
    for k in range(knots.size):
        knot, drop = knots[k], drops[k]
        inside[kept], steps[kept] = knot, drop
        below += drop if knot < low else 0.0
        kept += low <= knot <= high
    return below, (inside[:kept].copy(), steps[:kept].copy())


@jit
def crossing(knots, drops, excess, rounding):
    """Return where S falls to the total, ``excess`` being how far it is above it left of all knots; they are in any order.

    A pivot parts the knots that are left into those below, at and above it, as quickselect does: each time S is known right of
    it, and one part goes on.  Nothing but the crossing is sorted.
    """
    left, falls, count = knots.copy(), drops.copy(), knots.size
    above, least_knot = np.inf, np.inf  # the least knot known to be above those that are left; and of all
    for k in range(count):
        least_knot = min(least_knot, knots[k])
    while count > 0:
        pivot = _middle(left[0], left[count // 2], left[count - 1])
        below, here = 0.0, 0.0  # how far S falls below the pivot, and at it
        for k in range(count):
            if left[k] < pivot:
                below += falls[k]
            elif not left[k] > pivot:
                here += falls[k]
        if excess - below <= rounding:  # below the pivot already
            is_left, least = True, pivot
        elif excess - below - here <= rounding:
            for k in range(count):
                above = min(above, left[k]) if left[k] > pivot else above
            is_level = excess - below - here >= -rounding and above < np.inf  # up to the next knot
            return 0.5 * (pivot + above) if is_level else pivot
        else:
            is_left, least, excess = False, above, excess - below - here
        kept, above = 0, least
        for k in range(count):
            if (left[k] < pivot) if is_left else (left[k] > pivot):
                left[kept], falls[kept] = left[k], falls[k]
                kept += 1
        count = kept
    return least_knot


@inline
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))


@inline
def _share(beta, r, lower, upper, ridge, eps):
    """Return what ``gap_shares`` does, for one point."""
    if ridge > 0.0:
        shrunk = r - eps if r > eps else min(r + eps, 0.0)
        c = min(max(shrunk / ridge, lower), upper)
    elif r > eps:
        c = upper
    else:
        c = lower if r <= -eps else 0.0
    return (c - beta) * (r - 0.5 * ridge * (c + beta)) - eps * (abs(c) - abs(beta))


@inline
def summed_shares(beta, high, low, error, bias, lower, upper, ridge, eps):
    """Return the sum of all shares at r = high + low - bias, and the largest it can be with r off by the error.

    A share is convex in r, so that within the error it is largest at an end.  Without an error, an empty array, only the sum.
    """
    total, largest = 0.0, 0.0
    for i in range(beta.size):
        r = (high[i] - bias) + low[i]
        total += _share(beta[i], r, lower[i], upper[i], ridge[i], eps)
        if error.size:
            e = error[i] + 4.0 * UNIT * (abs(r) + abs(ridge[i] * beta[i]) + (eps if beta[i] != 0.0 else 0.0))
            below = _share(beta[i], r - e, lower[i], upper[i], ridge[i], eps)
            above = _share(beta[i], r + e, lower[i], upper[i], ridge[i], eps)
            largest += max(below, above)
    return total, largest
