"""Sequential minimal optimisation: the pair is chosen among all points, by largest violation or largest gain.

Symbols: r = t - (K + diag(ridge)) beta; b_up = max of r over points that can rise, b_low = min of r over points that can
fall, each less eps s, the kink of |beta| at zero; beta is optimal when b_up <= b_low, and b_up - b_low is the KKT violation.
"""

import copy
from dataclasses import dataclass, replace

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, NO_POINT, fmax, fmin, inline, jit
from zerogap.gram import Gram, has_row, mark_used, next_stamp, row_of
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import compiled_loops, pair
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import NEEDS_ROW, QUIET, SPENT, UNBOUNDED
from zerogap.solvers.pair import ORIGIN, PairState

BLOCK = 128  # points a reduction covers before it is asked where its extreme was
KEPT = (
    2048  # gains that are kept while the best of all is found: of more points those of its block are computed once more
)

# Rows computed together: one matrix product is far cheaper than as many calls, even if not all of it is used; and for few
# points the whole matrix is cheaper than finding out which rows are.
MIN_FETCHED, MAX_FETCHED, SMALL = 8, 64, 1500

# Shrinking.
SHRINK_FROM = 1000  # points; with fewer it does not pay
SHRINK_AFTER = 100  # pairs moved among all points before it is tried again
WORTH_SHRINKING = 0.7  # the largest part of the points that is worked on alone
FIRST_SAMPLE = 4  # at the start one point in so many
WORKING_SET_FACTOR, WORKING_SET_SPARE = 1.25, 200  # points of the working set for each violating one, and some more
SLACK = 0.25  # of the violation: a point whose condition holds by more than that is left out


class Moved:
    """A part of the points that has moved, while the others are being brought into step: a limit may come in between."""

    def __init__(self, points: np.ndarray, part: PairState, before: np.ndarray, residual: np.ndarray):
        self.points, self.beta, self.up_offset, self.low_offset = points, part.beta, part.up_offset, part.low_offset
        self.change = part.beta - before
        self.left = np.flatnonzero(self.change)  # of the points, those whose rows are still to be subtracted
        self.own, self.residual = part.residual, residual.copy()  # of the part, and of all points

    def put_back(self, state: PairState) -> None:
        """Make it part of the state; the residuals of the others are in step."""
        self.residual[self.points] = self.own
        state.residual[:] = self.residual
        for whole, own in (
            (state.beta, self.beta),
            (state.up_offset, self.up_offset),
            (state.low_offset, self.low_offset),
        ):
            whole[self.points] = own
        state.memory.moved = None


class Shrunk:
    """The points last worked on alone, and their Gram matrix: kept, for the next working set is most likely the same."""

    def __init__(self) -> None:
        self.points = np.empty(0, dtype=np.int64)
        self.gram: Gram | None = None
        self.moved: Moved | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> "Shrunk":
        copied = Shrunk()
        copied.moved = copy.deepcopy(self.moved, memo)
        return copied


@dataclass(frozen=True)
class SMO:
    """Exact descent on two coefficients at a time, chosen by the size of the gain (ong §IV) or of the violation.

    With ``second_order`` the point i that bounds the bias most from below is paired with the j that gains most,
    (r_i - r_j)² / (K_ii + K_jj - 2 K_ij); without it the most violating pair is taken, as SVM-Light does with two
    variables (spiral §2.2.2).  With ``shrinking`` points at a bound that belong to no violating pair are set aside for a while;
    every step ends with all of them.

    Attributes
    ----------
    second_order : bool
        Whether a pair is chosen by its gain; True by default.
    shrinking : bool
        Whether points are set aside; True by default.
    rows_at_once : int or None
        Kernel rows computed together; 1 computes none that is not used.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import SMO
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> solve(problem, SMO(second_order=False)).status.name
    'CONVERGED'
    """

    second_order: bool = True
    shrinking: bool = True
    rows_at_once: int | None = None

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        return pair.start(problem, beta, Shrunk())

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move up to ``max_steps`` pairs, or until the violation is at most ``kkt_target``."""
        if not self.shrinking or problem.n < SHRINK_FROM:
            return state, self._descend(problem, state, max_steps, kkt_target)
        moved = 0
        while True:
            if not expand(problem, state):
                return state, Info(moved)
            b_up, b_low = bounds(problem, state)
            if b_up - b_low <= kkt_target or moved >= max_steps or (moved > 0 and limits.is_over()):
                return state, Info(moved, is_done=b_up <= b_low)
            info = self._descend_part(problem, state, max_steps - moved, kkt_target, b_up, b_low)
            moved += info.iterations
            if info.is_unbounded or (not moved and limits.is_over()):
                expand(problem, state)
                return state, replace(info, iterations=moved, is_done=False)

    def _descend_part(
        self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float, b_up: float, b_low: float
    ) -> Info:
        """Move pairs of the working set, or of all points; the others are brought into step by ``_expand``."""
        shrunk = state.memory
        is_start = not state.beta.any() and not shrunk.points.size
        points = _sample(problem.n) if is_start else working_set(problem, state, b_up, b_low)
        if points is None:
            return self._descend(problem, state, min(SHRINK_AFTER, max_steps), kkt_target)
        part, part_state = restrict(problem, state, points)
        # Bounds of points left out go stale as the others move: evaluate them again after some progress.
        info = self._descend(part, part_state, max_steps, max(kkt_target, 0.1 * (b_up - b_low)))
        shrunk.moved = Moved(points, part_state, state.beta[points], state.residual)
        return info

    def _descend(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> Info:
        arrays, point, gram = arrays_of(problem), state.iterate, problem.gram
        zero_row = np.zeros(problem.n, gram.cache().rows.dtype)
        moved, pairs_per_call = 0, compiled_loops.pairs_per_question(problem.n)
        while True:
            max_pairs = min(max_steps - moved, pairs_per_call)
            reason, count, violation, wanted = descend(
                arrays, point, gram.cache(), state.diagonal, zero_row, self.second_order, max_pairs, kkt_target
            )
            moved += count
            if reason == NEEDS_ROW:
                rows = _rows_to_fetch(problem, state, wanted, self.rows_at_once)
                if compiled_loops.fetch(gram, rows):
                    continue
            if reason == SPENT and moved < max_steps and not limits.is_over():
                continue
            return Info(moved, is_done=violation <= 0, is_unbounded=reason == UNBOUNDED)

    def __str__(self) -> str:
        return "smo" if self.second_order else "smo-mvp"


# Shrinking.


def bounds(problem: DualProblem, state: PairState) -> tuple[float, float]:
    """Return b_up and b_low."""
    b_up, b_low = float((state.residual + state.up_offset).max()), float((state.residual + state.low_offset).min())
    return (max(b_up, 0.0), min(b_low, 0.0)) if problem.total is None else (b_up, b_low)


def _sample(n: int) -> np.ndarray:
    """Return some points to begin with: at zero all are alike, and few of them already tell where the others belong."""
    return np.sort(np.random.default_rng(0).choice(n, max(n // FIRST_SAMPLE, 400), replace=False))


def working_set(
    problem: DualProblem, state: PairState, b_up: float, b_low: float, most: int | None = None
) -> np.ndarray | None:
    """Return the points that violate their condition at the present bias, or nearly do; None if they are nearly all.

    With ``most`` so many that violate it most, or are nearest to doing so.

    The bias is taken between b_up and b_low, so the most violating pair is always among them.
    """
    bias = min(max(problem.best_bias(state.residual + problem.ridge * state.beta), b_low), b_up)
    violations = np.maximum(state.residual + state.up_offset - bias, bias - state.residual - state.low_offset)
    violating = int(np.count_nonzero(violations > 0))
    size = int(WORKING_SET_FACTOR * violating) + WORKING_SET_SPARE
    if most is not None:  # its whole matrix is computed, so that each point takes as much as there are others
        most = min(most, violating + WORKING_SET_SPARE)
        pair = (np.argmax(state.residual + state.up_offset), np.argmin(state.residual + state.low_offset))
        return np.union1d(pair, np.argpartition(violations, -min(most, violations.size))[-most:])
    if size > WORTH_SHRINKING * violations.size:
        return None
    threshold = max(np.partition(violations, -size)[-size], -SLACK * (b_up - b_low))
    movable = violations >= threshold
    count = np.count_nonzero(movable)
    last = state.memory.points
    if last.size and np.count_nonzero(movable[last]) == count > 0.5 * last.size:
        return last  # a Gram matrix is at hand that holds them all, and not too many others
    return np.flatnonzero(movable)


def restrict(problem: DualProblem, state: PairState, points: np.ndarray) -> tuple[DualProblem, PairState]:
    """Return the problem of some points alone, the others staying where they are: that is all in the residual."""
    shrunk = state.memory
    if points is not shrunk.points or shrunk.gram is None:
        shrunk.points, shrunk.gram = points, problem.gram.subset(points)
    # Its target and total are those with the others at zero: pairs look at residuals alone, which tell where the others are.
    if problem.total:  # other than zero, it may be more than so few can sum to
        problem = replace(problem, total=float(state.beta[points].sum()))
    part = problem.restricted(points, gram=shrunk.gram)
    beta, residual, up_offset, low_offset, diagonal = (array[points] for array in state[:5])
    return part, PairState(beta, residual, up_offset, low_offset, diagonal, shrunk)


def expand(problem: DualProblem, state: PairState) -> bool:
    """Bring the points left out into step with those that moved; return False if a limit came first: then it goes on later.

    Only with the last of the rows does the point itself change: before, its sum and its residual would not be in order.
    """
    moved = state.memory.moved
    if moved is None:
        return True
    at_once = compiled_loops.rows_per_question(problem.gram)
    while moved.left.size:
        some = moved.left[:at_once]
        if not compiled_loops.fetch(problem.gram, moved.points[some]):
            return False
        problem.gram.subtract(moved.points[some], moved.change[some], moved.residual)
        moved.left = moved.left[at_once:]
    moved.put_back(state)
    return True


# The pairs.


def _rows_to_fetch(problem: DualProblem, state: PairState, wanted: int, at_once: int | None) -> np.ndarray:
    """The row that is wanted now, and those most likely to be wanted next: the other large violators."""
    gram = problem.gram
    if at_once is None and problem.n <= min(SMALL, gram.capacity):
        return np.arange(problem.n)
    missing = ~gram.has_rows(slice(None))
    known = problem.n - int(np.count_nonzero(missing))
    room = (min(MAX_FETCHED, max(MIN_FETCHED, known // 4)) if at_once is None else at_once - 1) // 2
    room = min(room, problem.n - 1)
    if room == 0:
        return np.array([wanted])
    below, above = state.residual + state.up_offset, state.residual + state.low_offset
    middle = 0.5 * (below.max() + above.min())
    below[~missing], above[~missing] = -HUGE, HUGE
    rising = np.argpartition(below, -room)[-room:]
    falling = np.argpartition(above, room)[:room]
    return np.concatenate([[wanted], rising[below[rising] > middle], falling[above[falling] < middle]])


# Each reduction runs over slices: within one LLVM knows that no index is negative, and only then vectorises.  The slice
# that held the extreme is all that has to be searched for its place.


@inline
def _update_and_highest(row_i, row_j, step, residual, up_offset):
    """Bring the residual into step with a moved pair; return the point that bounds the bias most from below, and its bound."""
    best, where = -HUGE, residual.size
    for a in range(0, residual.size, BLOCK):
        r, offset, ki, kj = (
            residual[a : a + BLOCK],
            up_offset[a : a + BLOCK],
            row_i[a : a + BLOCK],
            row_j[a : a + BLOCK],
        )
        top = -HUGE
        for k in range(r.size):
            r[k] -= step * (ki[k] - kj[k])
            top = fmax(top, r[k] + offset[k])
        if top > best:
            best, where = top, a
    return _place(residual, up_offset, best, where), best


@inline
def _lowest(residual, low_offset):
    """Return the point that bounds the bias most from above, and its bound."""
    best, where = HUGE, residual.size
    for a in range(0, residual.size, BLOCK):
        r, offset = residual[a : a + BLOCK], low_offset[a : a + BLOCK]
        bottom = HUGE
        for k in range(r.size):
            bottom = fmin(bottom, r[k] + offset[k])
        if bottom < best:
            best, where = bottom, a
    return _place(residual, low_offset, best, where), best


@inline
def _most_gain(row_i, kii, diagonal, b_up, residual, low_offset, gains):
    """Return the partner with which i gains most, that gain doubled, and the lowest bound on the bias from above.

    ``gains`` is memory for all of them, or those of a block: to find the best one is then a comparison, not a division.
    """
    best, where, b_low, is_kept = 0.0, residual.size, HUGE, gains.size == residual.size
    for a in range(0, residual.size, BLOCK):
        at = a if is_kept else 0
        top, bottom = _write_gains(row_i, kii, diagonal, b_up, residual, low_offset, a, gains[at : at + BLOCK])
        b_low = min(b_low, bottom)
        if top > best:
            best, where = top, a
    if best > 0:
        at = where if is_kept else 0
        block = gains[at : at + BLOCK]
        if not is_kept:
            _write_gains(row_i, kii, diagonal, b_up, residual, low_offset, where, block)
        for k in range(block.size):
            if block[k] == best:
                return where + k, best, b_low
    return NO_POINT, 0.0, b_low


@inline
def _write_gains(row_i, kii, diagonal, b_up, residual, low_offset, a, gains):
    """Write what i gains with the points of a block; return the most, and the lowest bound on the bias from above."""
    r, offset = residual[a : a + BLOCK], low_offset[a : a + BLOCK]
    ki, kk = row_i[a : a + BLOCK], diagonal[a : a + BLOCK]
    top, bottom = 0.0, HUGE
    for k in range(r.size):
        bound = r[k] + offset[k]
        bottom = fmin(bottom, bound)
        gains[k] = _gain(b_up - bound, kii + kk[k], ki[k])
        top = fmax(top, gains[k])
    return top, bottom


@inline
def _gain(slope, squares, product):
    """Return slope² / curvature, zero where there is no descent."""
    slope = fmax(slope, 0.0)
    return slope * slope / fmax(squares - 2.0 * product, pair.SAME_POINT * abs(squares) + pair.SMALLEST)


@inline
def _place(residual, offset, wanted, start):
    for k in range(start, residual.size):
        if residual[k] + offset[k] == wanted:
            return k
    return NO_POINT


@jit
def descend(problem, point, cache, diagonal, zero_row, second_order, max_pairs, kkt_target):
    """Move pairs; return (reason to return, pairs moved, violation, row wanted).

    ``diagonal`` is that of K + diag(ridge), ``zero_row`` the kernel row of the origin.
    """
    residual, up_offset, low_offset = point.residual, point.up_offset, point.low_offset
    has_origin, clock, gains = (
        problem.has_fixed_bias,
        next_stamp(cache),
        np.empty(residual.size if residual.size <= KEPT else BLOCK),
    )
    i, b_up = _update_and_highest(zero_row, zero_row, 0.0, residual, up_offset)
    for moved in range(max_pairs):
        if has_origin and b_up < 0:
            i, b_up = ORIGIN, 0.0
        if b_up <= -HUGE / 2:
            return QUIET, moved, 0.0, NO_POINT
        if i != ORIGIN and not has_row(cache, i) and second_order:
            return NEEDS_ROW, moved, np.inf, i
        row_i = row_of(cache, i) if i != ORIGIN and has_row(cache, i) else zero_row
        kii = diagonal[i] if i != ORIGIN else 0.0
        if second_order:
            j, gain, b_low = _most_gain(row_i, kii, diagonal, b_up, residual, low_offset, gains)
            if has_origin and b_up > 0 and b_up * b_up / max(kii, pair.SMALLEST) > gain:
                j = ORIGIN
        else:
            j, b_low = _lowest(residual, low_offset)
            if has_origin and b_low > 0:
                j = ORIGIN
        if has_origin:
            b_low = min(b_low, 0.0)
        violation = b_up - b_low
        if violation <= kkt_target or j == NO_POINT:
            return QUIET, moved, max(violation, 0.0), NO_POINT
        if i != ORIGIN and not has_row(cache, i):
            return NEEDS_ROW, moved, violation, i
        if j != ORIGIN and not has_row(cache, j):
            if i != ORIGIN:
                mark_used(cache, i, clock + moved)
            return NEEDS_ROW, moved, violation, j

        kij = row_i[j] if j != ORIGIN else 0.0
        step, bi, bj = pair.pair_step(i, j, kij, problem, point)
        if step == np.inf:
            return UNBOUNDED, moved, violation, NO_POINT
        pair.set_coefficients(i, j, bi, bj, step, problem, point)
        if i != ORIGIN:
            mark_used(cache, i, clock + moved)
        if j != ORIGIN:
            mark_used(cache, j, clock + moved)
        row_j = row_of(cache, j) if j != ORIGIN else zero_row
        i, b_up = _update_and_highest(row_i, row_j, step, residual, up_offset)
    return SPENT, max_pairs, np.inf, NO_POINT
