"""The start of engine "single": from nearly optimal coefficients to the sets and the elbow of the optimum, by exchanges.

Symbols: as in ``engine``.  In the scaled coefficients the problem at lam is: minimise b'K b / 2 - t'b subject to sum(b) = 0 and
0 <= y b <= w.  t = lam y, less any constant: the label s of the larger class, the one that is free where C is small, makes
t = lam (y - s) zero for its points.  Their residuals are then as precise as decision values are, however large lam is.
Other families are in units in which their targets are as small as that.
"""

from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.active_set import ActiveSet, feasible
from zerogap.compiled import NO_POINT
from zerogap.free_system import DenseFreeSystem
from zerogap.gram import Gram
from zerogap.path.engine import ELBOW, NotStarted, sets_of
from zerogap.path.family import Family
from zerogap.path.tolerances import AT_CAP, OPTIMAL
from zerogap.problem import DualProblem

VISIBLE = 1e-6  # share of the targets that is far above their rounding
LEAST = float(np.finfo(float).tiny)  # decision values below this are zero


class Start(NamedTuple):
    """An optimal point: its coefficients and sets, the system of its elbow, and whether it is optimal but for rounding."""

    b: np.ndarray
    status: np.ndarray
    system: DenseFreeSystem
    is_optimal: bool


def optimal_elbow(gram: Gram, family: Family, lam: float, b: np.ndarray) -> Start:
    """Go from nearly optimal coefficients to the optimum; ``NotStarted`` if a limit is reached on the way."""
    (lower, upper), target = family.box, family.target0 + lam * family.target1
    if family.is_hinge and family.has_bias:
        y, w = family.y, family.w
        target = lam * (y - (1.0 if w[y > 0].sum() >= w[y < 0].sum() else -1.0))
    b, total = np.clip(b, lower, upper), family.total(lam)
    if family.low.any():  # counted from there: exchanges take a coefficient of zero for one at a bound, or at a kink
        least = family.y * family.low
        b, lower, upper, total = b - least, lower - least, upper - least, total - float(least.sum())
        target = target - gram.dot(least)
    problem = DualProblem(gram, target, lower, upper, ridge=np.zeros(family.n), eps=family.eps(lam), total=total)
    near = AT_CAP * family.w
    b = np.where((upper > 0.0) & (upper - b <= near), upper, np.where((lower < 0.0) & (b - lower <= near), lower, b))
    b, system = feasible(problem, b), DenseFreeSystem(gram.full())
    try:
        active = ActiveSet(problem, b, system=system)
        return _optimum(problem, active, system, family, lam)
    except limits.Exceeded:
        raise NotStarted(family.scale(lam) * (b + family.low * family.y)) from None


def _optimum(problem: DualProblem, active: ActiveSet, system: DenseFreeSystem, family: Family, lam: float) -> Start:
    """Let violators enter until none is left, and file every point in its set."""
    # Where C is so small that all of a class is capped, lam is far above all that decision values differ by.
    tolerance = OPTIMAL * min(lam, _largest_product(problem, active))
    active.optimise(problem, tolerance)
    limits.check()
    # Where they cancel, as those of classes at the same places do, the bias has the rounding of the free points.
    of_bias = float(problem.roundings(active.beta)[active.free].max(initial=LEAST))
    is_optimal = active.worst(problem, active.tolerances(problem, max(tolerance, of_bias))) == NO_POINT
    if not active.free.size and family.total1 == 0.0:
        active.free_an_end(problem)
    elif not active.free.size:  # the sum is about to fall
        active.free_alone(problem, int(np.argmin(active.residual + problem.low_offset(active.beta))), rises=False)
    E, y = active.free, family.y
    if family.is_two_sided:
        y = np.where(active.beta < 0.0, -1.0, 1.0)
        y[E] = active.side[E]
    a, w, low = y * active.beta + family.low, family.w, family.low
    is_inside = np.ones(family.n, dtype=bool)
    is_inside[E] = False
    is_inside &= (a > low) & (a < w)  # if it has ended before its time: at a bound they are violators like others
    a[is_inside] = np.where(2.0 * a > w + low, w, low)[is_inside]
    status = sets_of(a, w, low)
    status[E] = ELBOW
    return Start(y * a, np.where(y == family.y, status, -status), system, is_optimal)


def _largest_product(problem: DualProblem, active: ActiveSet) -> float:
    """Return the largest |K b|: what the residual lacks to the target, where rounding leaves enough of that."""
    largest = float(np.abs(problem.target - active.residual).max())
    if largest > VISIBLE * float(np.abs(problem.target).max()):
        return largest
    return float(np.abs(problem.gram.dot(active.beta)).max())
