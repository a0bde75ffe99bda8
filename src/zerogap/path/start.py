"""The start of engine "single": from nearly optimal coefficients to the sets and the elbow of the optimum, by exchanges.

Symbols: as in ``engine``.  In the scaled coefficients the problem at lam is: minimise b'K b / 2 - t'b subject to sum(b) = 0 and
0 <= y b <= w.  t = lam y, less any constant: the label s of the larger class, the one that is free where C is small, makes
t = lam (y - s) zero for its points.  Their residuals are then as precise as decision values are, however large lam is.
"""

from typing import NamedTuple

import numpy as np

from zerogap import limits
from zerogap.active_set import ActiveSet, feasible
from zerogap.compiled import NO_POINT
from zerogap.free_system import DenseFreeSystem
from zerogap.gram import Gram
from zerogap.path.engine import ELBOW, NotStarted, sets_of
from zerogap.path.tolerances import AT_CAP, OPTIMAL
from zerogap.problem import DualProblem


class Start(NamedTuple):
    """An optimal point: its coefficients and sets, the system of its elbow, and whether it is optimal but for rounding."""

    b: np.ndarray
    status: np.ndarray
    system: DenseFreeSystem
    is_optimal: bool


def optimal_elbow(gram: Gram, y: np.ndarray, w: np.ndarray, lam: float, b: np.ndarray) -> Start:
    """Go from nearly optimal coefficients to the optimum; ``NotStarted`` if a limit is reached on the way."""
    label = 1.0 if w[y > 0].sum() >= w[y < 0].sum() else -1.0
    problem = DualProblem(
        gram,
        target=lam * (y - label),
        lower=np.minimum(y * w, 0.0),
        upper=np.maximum(y * w, 0.0),
        ridge=np.zeros(y.size),
        total=0.0,
    )
    a = np.clip(y * b, 0.0, w)
    b, system = feasible(problem, y * np.where(w - a <= AT_CAP * w, w, a)), DenseFreeSystem(gram.full())
    try:
        active = ActiveSet(problem, b, system=system)
        return _optimum(problem, active, system, y, w, lam)
    except limits.Exceeded:
        raise NotStarted(b / lam) from None


def _optimum(
    problem: DualProblem, active: ActiveSet, system: DenseFreeSystem, y: np.ndarray, w: np.ndarray, lam: float
) -> Start:
    """Let violators enter until none is left, and file every point in its set."""
    # Where C is so small that all of a class is capped, lam is far above all that decision values differ by.
    tolerance = OPTIMAL * min(lam, float(np.abs(problem.gram.dot(active.beta)).max()))
    active.optimise(problem, tolerance)
    limits.check()
    is_optimal = active.worst(problem, active.tolerances(problem, tolerance)) == NO_POINT
    if not active.free.size:
        active.free_an_end(problem)
    a, E = y * active.beta, active.free
    is_inside = np.ones(y.size, dtype=bool)
    is_inside[E] = False
    is_inside &= (a > 0.0) & (a < w)  # if it has ended before its time: at a bound they are violators like others
    a[is_inside] = np.where(2.0 * a > w, w, 0.0)[is_inside]
    status = sets_of(a, w)
    status[E] = ELBOW
    return Start(y * a, status, system, is_optimal)
