"""The bias that makes the loss of all partitions least, from a few numbers of each.

The derivative of the loss in the bias b is total - S(b), S(b) = sum_i response_i(r_i - b), which falls as b grows.  Partitions
tell S at some biases, then at more of them where it passes the total, until few knots are left there.  What is left is settled
as on one machine: with steps alone by ``loss.crossing``, the middle where S is level, and else on a straight line.
"""

import math
from collections.abc import Callable

import numpy as np

from zerogap.loss import crossing

AROUND = np.array([1e-9, 1e-6, 1e-4, 1e-2, 1e-1, 1.0])  # of the range of r: biases to ask first, about a guess
BETWEEN = 16  # more, where S passes the total
FEW = 10_000  # knots that are sent
FEWER = 0.9  # of the knots, that are left between more biases; else most of them are one and the same number, and are merged
MOST_PASSES = 40  # each divides an interval by 17, until float64 has nothing between its ends
ROUNDING = 1e-13  # of the largest sum

Interval = tuple[float, float]
Slopes = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
Knots = Callable[[tuple[Interval, ...]], tuple[np.ndarray, np.ndarray]]


def first_biases(least: float, largest: float, guess: float) -> np.ndarray:
    """Return biases to ask first: both ends of what is possible, and some about the guess."""
    width = max(largest - least, float(np.spacing(max(abs(least), abs(largest)))))
    low, high = least - 1e-3 * width, largest + 1e-3 * width
    guess = min(max(guess, low), high)
    return np.unique(np.clip([low, *(guess - width * AROUND), guess, *(guess + width * AROUND), high], low, high))


def best_bias(
    grid: np.ndarray, slopes: Slopes, knots: Knots, total: float, *, has_ridge: bool, rough: float = 0.0
) -> float:
    """Return the bias that minimises sum_i loss_i(r_i - b) + b total, the middle one if there are many.

    ``grid`` are biases in ascending order, with all knots that matter between its ends.  ``slopes`` gives S at such, and the
    number of knots up to each from the one before; ``knots`` those in some intervals, and how far S falls at each.  Where it is
    known to within ``rough`` that is enough.
    """
    before = math.inf
    for _ in range(MOST_PASSES):
        sums, counts = slopes(grid)
        rounding = ROUNDING * float(np.abs(sums).max())
        cells = _passed(sums, total, 0.0 if has_ridge else rounding)
        if not cells:  # S is on one side of the total everywhere
            return float(grid[0] if sums[0] <= total else grid[-1])
        inside = tuple((float(grid[cell - 1]), float(grid[cell])) for cell in cells)
        if inside[-1][1] - inside[0][0] <= rough:
            return 0.5 * (inside[0][0] + inside[-1][1])
        count = int(counts[cells].sum())
        if count <= (0 if has_ridge else FEW) or count > FEWER * before:
            break
        finer, before = [np.linspace(*interval, BETWEEN + 2) for interval in inside], count
        if has_ridge and count <= FEW:  # between its knots S is straight
            finer.append(knots(inside)[0])
            before = math.inf
        finer_grid = np.unique(np.concatenate(finer))
        if finer_grid.size <= 2 * len(cells):  # nothing is between
            break
        grid = finer_grid
    if has_ridge:
        (low, high), above, below = inside[0], float(sums[cells[0] - 1]) - total, float(sums[cells[0]]) - total
        return low + (high - low) * (above / (above - below))
    places, drops = knots(inside)
    return float(crossing(places, drops, float(sums[cells[0] - 1]) - total, rounding))


def _passed(sums: np.ndarray, total: float, rounding: float) -> list[int]:
    """Return the biases up to which, from the one before, S falls to the total, and on to less; often they are one."""
    reached = np.flatnonzero(sums <= total + rounding)
    if not reached.size or reached[0] == 0:
        return []
    passed = np.flatnonzero(sums < total - rounding)
    return sorted({int(reached[0]), int(passed[0])} if passed.size and rounding else {int(reached[0])})
