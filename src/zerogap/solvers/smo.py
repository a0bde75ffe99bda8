"""Sequential minimal optimisation: the pair is chosen among all points, by largest violation or largest gain.

Symbols: r = t - K beta; high = max of r over points that can rise, low = min of r over points that can fall, each less
eps s of DESIGN's optimality condition; beta is optimal when high <= low, and high - low is the KKT violation.
"""

from dataclasses import dataclass

import numpy as np

from zerogap.compiled import HUGE, fmax, fmin, jit
from zerogap.problem import DualProblem
from zerogap.solvers import pair
from zerogap.solvers.pair import NEEDS_ROW, NOBODY, ORIGIN, QUIET, SPENT, UNBOUNDED, Info, PairState

BLOCK = 512  # points a reduction covers before it is asked where its extreme was

# Rows computed together: one matrix product is far cheaper than as many calls, even if not all of it is used; and for few
# points the whole matrix is cheaper than finding out which rows are.
FEWEST_FETCHED, MOST_FETCHED, SMALL = 8, 32, 800


@dataclass(frozen=True)
class SMO:
    """Exact descent on two coefficients at a time, chosen by the size of the gain (ong §IV) or of the violation.

    With ``second_order`` the point i that bounds the bias most from below is paired with the j that gains most,
    (r_i - r_j)² / (K_ii + K_jj - 2 K_ij); without it the most violating pair is taken, as SVM-Light does with two
    variables (spiral §2.2.2).
    """

    second_order: bool = True
    rows_at_once: int | None = None  # kernel rows computed together; 1 computes none that is not used

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        return pair.start(problem, beta)

    def step(self, problem: DualProblem, state: PairState, most: int, until: float) -> tuple[PairState, Info]:
        """Move up to ``most`` pairs, or until the violation is at most ``until``."""
        moved = 0
        nothing = np.zeros(problem.n)
        while True:
            why, count, violation, wanted = _descend(
                *pair.arguments(problem, state), nothing, self.second_order, most - moved, until
            )
            moved += count
            if why != NEEDS_ROW:
                return state, Info(moved, violation, is_done=violation <= 0, is_unbounded=why == UNBOUNDED)
            problem.gram.fetch(_likely(problem, state, wanted, self.rows_at_once))

    def __str__(self) -> str:
        return "smo" if self.second_order else "smo-mvp"


def _likely(problem: DualProblem, state: PairState, wanted: int, at_once: int | None) -> np.ndarray:
    """The row that is wanted now, and those most likely to be wanted next: the other large violators."""
    gram = problem.gram
    if at_once is None and problem.n <= min(SMALL, len(gram.rows)):
        return np.arange(problem.n)
    missing = gram.slot < 0
    known = problem.n - int(np.count_nonzero(missing))
    room = (min(MOST_FETCHED, max(FEWEST_FETCHED, known // 4)) if at_once is None else at_once - 1) // 2
    room = min(room, problem.n - 1)
    if room == 0:
        return np.array([wanted])
    below, above = state.residual + state.rise, state.residual + state.fall
    middle = 0.5 * (below.max() + above.min())
    below[~missing], above[~missing] = -HUGE, HUGE
    rising = np.argpartition(below, -room)[-room:]
    falling = np.argpartition(above, room)[:room]
    return np.concatenate([[wanted], rising[below[rising] > middle], falling[above[falling] < middle]])


# Each reduction runs over slices: within one LLVM knows that no index is negative, and only then vectorises.  The slice
# that held the extreme is all that has to be searched for its place.


@jit
def _highest(residual, rise):
    """Return the point that bounds the bias most from below, and its bound."""
    best, where = -HUGE, 0
    for a in range(0, residual.size, BLOCK):
        r, offset = residual[a : a + BLOCK], rise[a : a + BLOCK]
        top = -HUGE
        for k in range(r.size):
            top = fmax(top, r[k] + offset[k])
        if top > best:
            best, where = top, a
    return _place(residual, rise, best, where), best


@jit
def _update_and_highest(row_i, row_j, step, residual, rise):
    """Bring the residual into step with a moved pair; return what _highest does, in the same pass over memory."""
    best, where = -HUGE, 0
    for a in range(0, residual.size, BLOCK):
        r, offset, ki, kj = residual[a : a + BLOCK], rise[a : a + BLOCK], row_i[a : a + BLOCK], row_j[a : a + BLOCK]
        top = -HUGE
        for k in range(r.size):
            r[k] -= step * (ki[k] - kj[k])
            top = fmax(top, r[k] + offset[k])
        if top > best:
            best, where = top, a
    return _place(residual, rise, best, where), best


@jit
def _lowest(residual, fall):
    """Return the point that bounds the bias most from above, and its bound."""
    best, where = HUGE, 0
    for a in range(0, residual.size, BLOCK):
        r, offset = residual[a : a + BLOCK], fall[a : a + BLOCK]
        bottom = HUGE
        for k in range(r.size):
            bottom = fmin(bottom, r[k] + offset[k])
        if bottom < best:
            best, where = bottom, a
    return _place(residual, fall, best, where), best


@jit
def _most_gain(row_i, kii, diagonal, high, residual, fall):
    """Return the partner with which i gains most, that gain doubled, and the lowest bound on the bias from above."""
    best, where, low = 0.0, 0, HUGE
    for a in range(0, residual.size, BLOCK):
        r, offset = residual[a : a + BLOCK], fall[a : a + BLOCK]
        ki, kk = row_i[a : a + BLOCK], diagonal[a : a + BLOCK]
        top, bottom = 0.0, HUGE
        for k in range(r.size):
            bound = r[k] + offset[k]
            bottom = fmin(bottom, bound)
            top = fmax(top, _gain(high - bound, kii + kk[k], ki[k]))
        low = min(low, bottom)
        if top > best:
            best, where = top, a
    if best > 0:
        for k in range(where, residual.size):
            if _gain(high - (residual[k] + fall[k]), kii + diagonal[k], row_i[k]) == best:
                return k, best, low
    return NOBODY, 0.0, low


@jit
def _gain(slope, squares, product):
    """Return slope² / curvature, zero where there is no descent."""
    slope = fmax(slope, 0.0)
    return slope * slope / fmax(squares - 2.0 * product, pair.SAME_POINT * squares + pair.SMALLEST)


@jit
def _place(residual, offset, wanted, start):
    for k in range(start, residual.size):
        if residual[k] + offset[k] == wanted:
            return k
    return NOBODY


@jit
def _descend(
    rows, slot, stamp, diagonal, ridge, lower, upper, eps, has_origin, beta, residual, rise, fall,
    nothing, second_order, most, until,
):  # fmt: skip
    """Move pairs; return (why it stopped, pairs moved, violation, row wanted)."""
    clock = stamp.max() + 1
    i, high = _highest(residual, rise)
    for moved in range(most):
        if has_origin and high < 0:
            i, high = ORIGIN, 0.0
        if high <= -HUGE / 2:
            return QUIET, moved, 0.0, NOBODY
        if i != ORIGIN and slot[i] < 0 and second_order:
            return NEEDS_ROW, moved, np.inf, i
        row_i = rows[slot[i]] if i != ORIGIN and slot[i] >= 0 else nothing
        kii = diagonal[i] if i != ORIGIN else 0.0
        if second_order:
            j, gain, low = _most_gain(row_i, kii, diagonal, high, residual, fall)
            if has_origin and high > 0 and high * high / max(kii, pair.SMALLEST) > gain:
                j = ORIGIN
        else:
            j, low = _lowest(residual, fall)
            if has_origin and low > 0:
                j = ORIGIN
        if has_origin:
            low = min(low, 0.0)
        violation = high - low
        if violation <= until or j == NOBODY:
            return QUIET, moved, max(violation, 0.0), NOBODY
        if i != ORIGIN and slot[i] < 0:
            return NEEDS_ROW, moved, violation, i
        if j != ORIGIN and slot[j] < 0:
            if i != ORIGIN:
                stamp[slot[i]] = clock + moved
            return NEEDS_ROW, moved, violation, j

        kij = row_i[j] if j != ORIGIN else 0.0
        step, bi, bj = pair.pair_step(i, j, kij, diagonal, lower, upper, eps, beta, residual)
        if step == np.inf:
            return UNBOUNDED, moved, violation, NOBODY
        pair.set_coefficients(i, j, bi, bj, step, ridge, lower, upper, eps, beta, residual, rise, fall)
        if i != ORIGIN:
            stamp[slot[i]] = clock + moved
        if j != ORIGIN:
            stamp[slot[j]] = clock + moved
        row_j = rows[slot[j]] if j != ORIGIN else nothing
        i, high = _update_and_highest(row_i, row_j, step, residual, rise)
    return SPENT, most, np.inf, NOBODY
