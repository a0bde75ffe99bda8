"""A C whose nu is a little above a given one: where the path begins that passes it soon.

nu falls as lam does.  With b = lam beta scaled so that each class has half of nu sum(w), the margin rho at which that is the
weight of the points within it is what LIBSVM takes for lam: at the solution it is the right one, and near it a good guess.
"""

import math
from dataclasses import replace

import numpy as np

from zerogap.loop import solve
from zerogap.problem import DualProblem
from zerogap.stopping import PlainGap

ROUGH = PlainGap(1e-3)  # solutions that are only to tell nu
ABOVE, POINTS_ABOVE = 0.1, 20.0  # how much larger than the nu asked for it is at the most, as a share and in points
MOST_SOLVES, STEPS_PER_POINT = 12, 100  # where classes overlap and nu is too small, pairs crawl
FAR = 4.0  # steps of a search that has no bracket yet


def near_nu(unit: DualProblem, nu: float, C_limit: float) -> tuple[float, np.ndarray] | None:
    """Return a C below a limit and about the coefficients there; None if no such C is found.

    ``unit`` is the problem with C = 1.
    """
    w, y = unit.upper - unit.lower, unit.target
    total, sides = float(w.sum()), (y > 0, y < 0)
    highest = 2.0 * min(float(w[side].sum()) for side in sides) / total
    above = min(nu + max(ABOVE * nu, POINTS_ABOVE / y.size), highest)
    aim = 0.5 * (nu + above)
    if above <= nu:
        return None  # all of the lighter class is within the margin, and C as small as one likes
    b = np.zeros(y.size)
    lam_above, lam_below = math.inf, 0.0
    values: dict[float, float] = {}
    lam, last = 0.0, None
    for _ in range(MOST_SOLVES):
        if math.isinf(lam_above) or lam_below == 0.0:
            guess = _margin(unit, _with_share(b if b.any() else y * w, w, sides, aim * total), w, sides, aim * total)
            if lam == 0.0:
                lam = guess
            else:
                lam = min(max(guess, lam / FAR), lam * FAR)
                if not lam_below < lam < lam_above or lam in values:
                    lam = lam_below * FAR if math.isinf(lam_above) else lam_above / FAR
        else:
            share = (aim - values[lam_below]) / (values[lam_above] - values[lam_below])
            lam = lam_below * (lam_above / lam_below) ** min(max(share, 0.1), 0.9)
        if not 1.0 / C_limit < lam < math.inf:
            return last
        problem = replace(unit, lower=unit.lower / lam, upper=unit.upper / lam)
        start = b / lam if b.any() else None
        solution = solve(problem, "auto", stop=ROUGH, resume=start, max_steps=STEPS_PER_POINT * y.size)
        b = lam * solution.beta
        values[lam] = size = float(np.abs(b).sum()) / total
        if size >= nu:
            lam_above, last = lam, (1.0 / lam, solution.beta)
        else:
            lam_below = lam
        if nu < size <= above:
            return 1.0 / lam, solution.beta
    return last


def _with_share(b: np.ndarray, w: np.ndarray, sides: tuple[np.ndarray, np.ndarray], size: float) -> np.ndarray:
    """Return b with the coefficients of each class scaled to half of the size, as far as their caps allow."""
    b = b.copy()
    for side in sides:
        own = float(np.abs(b[side]).sum())
        b[side] *= 0.5 * size / own if own > 0.0 else 0.0
    return np.clip(b, -w, w)


def _margin(
    unit: DualProblem, b: np.ndarray, w: np.ndarray, sides: tuple[np.ndarray, np.ndarray], size: float
) -> float:
    """Return the margin within which the points of each class weigh half of the size."""
    f = unit.gram.dot(b)
    found = 0.0
    for side, sign in zip(sides, (1.0, -1.0), strict=True):
        values, weight = sign * f[side], w[side]
        order = np.argsort(values)
        k = int(np.searchsorted(np.cumsum(weight[order]), 0.5 * size))
        found += 0.5 * float(values[order[min(k, order.size - 1)]])
    return found if found > 0.0 else 0.1 * float(np.abs(f - f.mean()).mean())  # the classes overlap, with this b
