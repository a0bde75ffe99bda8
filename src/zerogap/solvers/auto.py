"""What ``solver="auto"`` does: pairs as long as they get on quickly, then exchanges to the exact optimum.

Some thousand points: the whole kernel matrix at once, whose tiles are cheaper than rows one after the other.  Pairs find out
which points are free far sooner than what their coefficients are.  So the free points are then solved for directly, and the
few that pairs have filed in the wrong set are exchanged (``ActiveSet``).  Where the pairs that are left cost less than the
factor of the free points, pairs go on.  More points, or more than memory holds: parts of some thousand points, of which the
first is drawn.  Pairs of a part read kernel values in float32; with the others the part itself is brought into step in float64,
so nothing that is rounded stays.  Rows are used once and not kept, but for those of free points that will move again, if memory
is left.
A linear kernel on more points than features is solved for its vector w (``linear.Descent``), without the matrix.  So are sparse
points with many features, by sweeps (``linear_cd``), as long as these take no longer than the matrix would.
"""

import copy
import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from zerogap import limits
from zerogap.active_set import ActiveSet
from zerogap.kernels import UNIT
from zerogap.problem import DualProblem, Known
from zerogap.solvers import linear, linear_cd, pair, smo
from zerogap.solvers.base import Info
from zerogap.solvers.linear_cd import LinearCD, Sweeps
from zerogap.solvers.pair import PairState
from zerogap.solvers.smo import SMO, Shrunk

WHOLE = 12_000  # points, up to which all kernel values are computed
# Points, up to which pairs take less time than to ask how far they are: first they go much further, with so many for each.
FEW, FAR, RUSH = 500, 0.001, 10
SQUARE_AND_FACTOR = 1.118  # times the points: so large a matrix has room for theirs, and for one of nearly half of them
# Of what coefficients can sum to: where they sum to less, rows of a few points are cheaper than all rows, or than parts.
LIGHT, LIGHTER = 0.15, 0.06
MANY = 3000  # points, from which it pays to set some aside once most are known not to move

# Share of the range of the targets: at such a violation pairs have found nearly all free points.
ROUGH = 0.025

# Seconds, to compare one with the other: a pair, and more for each point; what exchanges take however few, a multiplication of
# the factor, and of an exchange.
PAIR, PER_POINT = 0.2e-6, 1.4e-9
BEGINNING, FACTORED, EXCHANGED = 3e-4, 0.03e-9, 0.5e-9
# Exchanges that are left: some as a rule, and more where many points at a bound violate their conditions; these enter together.
EXCHANGES, PER_VIOLATOR = 6, 0.25
# Times that, or for each point, so many pairs are moved at most: where they crawl they do not say so beforehand.  After so many
# for each point the violation is smaller than it was, or they crawl.
PATIENCE, SOON = 6, 2
TOGETHER = 8  # points that enter the free set at once: each costs little beside bringing all residuals into step
TIGHT = 0.1  # of the violation asked for: smaller ones are left alone

# More points than have their whole matrix.
LARGEST_ROUNDED = 1e30  # kernel values, and their inverse, for which float32 has room
SMALLEST_PART, LARGEST_PART = 64, 6000  # points that are solved for alone
# Points of a part of all free ones for each of these, and as many at least; the share of the room that it takes.
FREE_AND_MORE, LEAST_MORE, ROOM_OF_PART = 1.1, 1.02, 0.8
HELD_PART = 5000  # points of a part, for which memory is left when rows are kept
# To this share of the violation that chose them; to that where no others violate as much, or all free points are among them.
PART, LAST_PART = 0.1, 0.01
# Of the violation asked for, to which a part is solved at most: pairs cost little beside the rows of all that have moved, which
# every further part takes.
TIGHTER = 0.1

SWEPT = 2.0  # times what the kernel values of sparse points cost: so long sweeps are tried before

PAIRS = SMO(shrinking=False)


class Part(NamedTuple):
    """Some of the points, which are solved for alone."""

    points: np.ndarray
    problem: DualProblem
    state: PairState
    violation: float  # at the beginning
    target: float  # that at which it counts as solved


class Memory(Shrunk):
    """What is known of a run besides its point."""

    def __init__(self) -> None:
        super().__init__()
        self.per_halving = 0.0  # pairs that have halved the violation last; zero where that is not known
        self.may_exchange = True
        self.needs_digits = False  # for exchanges, which a part in float32 has not
        self.is_under_way = False
        self.is_part = False  # points that were chosen because they are likely to move: none is set aside once more
        self.spent, self.start = 0, 0.0  # pairs since the last exchanges, and the violation then
        self.first: np.ndarray | None = None  # points of the first part
        self.in_parts = False  # whether the last step worked on one
        self.open: Part | None = None  # what was not solved when the last step ended
        self.has_all_free = False  # whether that part had room for all points between their bounds
        self.target = 0.0  # violation to which the last part was solved
        self.unseen = 0  # pairs of that part that the others do not know of yet
        self.drift = 0.0  # how far rounding has put residuals off since the last step
        self.may_round = True  # whether kernel values in float32 bring parts on
        self.is_rounded = False  # the last part
        self.rough = 0.0  # the violation at which pairs have found nearly all free points
        self.linear: linear.Descent | None = None
        self.sweeps: Sweeps | None = None

    def leave_parts(self) -> None:
        """Forget a part that is open, or not put back yet: all points move from here on, and it would undo that."""
        if self.in_parts:
            self.open, self.moved, self.gram, self.points = None, None, None, np.empty(0, dtype=np.int64)
            self.in_parts, self.unseen = False, 0

    def taken_drift(self) -> float:
        """Return how far rounding has put residuals off since this was last asked."""
        drift, self.drift = self.drift, 0.0
        return drift

    def __deepcopy__(self, memo: dict[int, object]) -> "Memory":
        copied = copy.copy(self)
        copied.points, copied.gram = np.empty(0, dtype=np.int64), None
        copied.moved, copied.linear = copy.deepcopy(self.moved, memo), copy.deepcopy(self.linear, memo)
        copied.sweeps = copy.deepcopy(self.sweeps, memo)
        if self.open is not None:  # its kernel matrix is only read
            copied.open = self.open._replace(state=copy.deepcopy(self.open.state, memo))
        return copied


@dataclass(frozen=True)
class Auto:
    """SMO to a rough point, then exchanges of free points to the exact optimum.

    Attributes
    ----------
    whole : int
        Number of points up to which the whole kernel matrix is computed, if memory holds it; 12000 by default.
    shrinking : bool
        Whether pairs set points aside where there are many; True by default.
    leaves_stretching : bool
        True: margins that are a little short are made longer at the end of a run, and not by pairs.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, RelativeGap, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0)
    >>> bool(solve(problem, "auto", stop=RelativeGap(1e-12)).certificate.relative_gap < 1e-12)
    True
    """

    whole: int = WHOLE
    shrinking: bool = True
    leaves_stretching: ClassVar[bool] = True  # of margins that are a little short, to the end of a run

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        if linear.suits(problem):
            state = self._begin(problem, beta)
            state.memory.linear = linear.Descent(problem)
            return state
        if linear_cd.suits(problem):
            state = self._begin(problem, beta)
            state.memory.sweeps = Sweeps(problem, state.beta, 0)
            return state
        if self._has_whole(problem):
            if not _is_light(problem):
                problem.gram.full()
            return self._begin(problem, beta)
        state = self._begin(problem, beta)
        if beta is None and not problem.total and not problem.gram.is_complete and self._is_large(problem):
            most = self._most(problem, is_rounded=_can_round(problem))  # at zero all points are alike
            if problem.n > most:
                state.memory.first = np.sort(np.random.default_rng(0).choice(problem.n, most, replace=False))
        return state

    @staticmethod
    def _begin(problem: DualProblem, beta: np.ndarray | None) -> PairState:
        state = pair.start(problem, beta, Memory())
        # One class has no targets: what there is to be made equal are the values of its f.
        state.memory.rough = ROUGH * float(np.ptp(problem.target) or np.ptp(state.residual))
        return state

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Move pairs, or exchange points, until the violation is at most ``kkt_target``."""
        if state.memory.linear is not None:
            return state, self._step_in_w(problem, state, max_steps, kkt_target)
        if state.memory.sweeps is not None:
            return state, self._sweep(problem, state, max_steps, kkt_target)
        return self._step(problem, state, max_steps, kkt_target)

    def _step_in_w(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> Info:
        """Go on with a linear kernel: by pairs as long as they may be cheaper, then for w."""
        memory, violation = state.memory, _violation(problem, state)
        descent = memory.linear
        if descent.pairs > 0:
            problem.gram.full()
            _, info = self._step(problem, state, min(max_steps, descent.pairs), kkt_target)
            is_near = violation <= max(memory.rough, kkt_target)
            descent.pairs = 0 if is_near else descent.pairs - info.iterations
            descent.is_near = is_near and memory.may_exchange
            return info
        info = descent.step(problem, state, max_steps)
        if descent.is_lost:
            memory.linear = None
            if self._has_whole(problem):
                problem.gram.full()
        return info

    def _sweep(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> Info:
        """Sweep over sparse points; where that takes too long, or ends too soon, kernel values are computed after all."""
        memory, n = state.memory, problem.n
        _, info = LinearCD(newton=False).step(problem, state._replace(memory=memory.sweeps), max_steps, kkt_target)
        matrix = 0.5 * n * (linear.VALUE * n + linear.SCATTERED * memory.sweeps.nonzeros)
        if info.is_done or memory.sweeps.seconds > SWEPT * matrix:
            memory.sweeps = None
            if self._has_whole(problem):
                problem.gram.full()
        return Info(info.iterations)

    def _step(
        self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float
    ) -> tuple[PairState, Info]:
        is_few = self._has_whole(problem) or _is_light(problem, LIGHTER)
        if not (problem.gram.is_complete or is_few) and self._is_large(problem):
            return state, self._work_on_part(problem, state, max_steps, kkt_target)
        state.memory.leave_parts()
        if not problem.gram.is_complete and is_few:
            left = PATIENCE * problem.n - state.memory.spent
            if left > 0:
                _, info = SMO(shrinking=self.shrinking).step(problem, state, _at_most(max_steps, left), kkt_target)
                state.memory.spent += info.iterations
                return state, info
            if self._has_whole(problem):
                problem.gram.full()
                state.memory.spent = 0
        if not problem.gram.is_complete:
            return SMO(shrinking=self.shrinking).step(problem, state, max_steps, kkt_target)
        memory, violation = state.memory, _violation(problem, state)
        rough = max(memory.rough, kkt_target)
        if violation > rough and problem.n <= FEW and not memory.is_under_way:
            memory.is_under_way = True
            return PAIRS.step(problem, state, min(max_steps, RUSH * problem.n), FAR * rough)
        may_exchange = memory.may_exchange and problem.gram.is_positive
        memory.start = memory.start if memory.spent else violation
        left, moved, info = self._left(problem, state, violation) if may_exchange else math.inf, 0, Info(0)
        while left > 0.0 and violation > rough and moved < max_steps:
            info = self._approach(problem, state, _at_most(max_steps - moved, left), rough)
            memory.spent, moved = memory.spent + info.iterations, moved + info.iterations
            if info.is_done or info.is_unbounded or not info.iterations or limits.is_over():
                break
            violation = _violation(problem, state)
            left = self._left(problem, state, violation) if may_exchange else math.inf
        if moved or info.is_done or info.is_unbounded:
            return state, replace(info, iterations=moved)
        if left <= 0.0 or (may_exchange and not self._pays(problem, state, violation, kkt_target)):
            if problem.gram.is_rounded:
                memory.needs_digits = True
                return state, Info(0)
            at_hand = _alone(problem, state) if memory.is_part else problem
            entered, is_better, is_unbounded = _exchange(at_hand, state, max_steps, TIGHT * kkt_target)
            if not (is_better or is_unbounded) and limits.is_over():  # a run that is resumed tries them again
                return state, Info(0)
            memory.may_exchange, memory.spent, left = is_better, 0, math.inf
            if is_better or is_unbounded:
                return state, Info(max(entered, 1), is_unbounded=is_unbounded)
        may_shrink = self.shrinking and not memory.is_part and problem.n >= MANY
        may_shrink = may_shrink and _fits(problem, smo.WORTH_SHRINKING * problem.n)
        pairs = SMO() if may_shrink else PAIRS
        _, info = pairs.step(problem, state, _at_most(max_steps, left), kkt_target)
        memory.spent += info.iterations
        return state, info

    def _has_whole(self, problem: DualProblem) -> bool:
        """Whether the whole matrix is computed: then memory holds it, and beside it the factor of half of the points."""
        gram = problem.gram
        is_held = gram.holds_all and (gram.is_complete or _fits(problem, SQUARE_AND_FACTOR * problem.n))
        return problem.n <= self.whole and is_held

    # More points than have their whole matrix.

    def _is_large(self, problem: DualProblem) -> bool:
        """Whether it is solved part by part: memory or time is short for all rows, but not for a part of some size."""
        return not self._has_whole(problem) and self._most(problem) >= SMALLEST_PART

    @staticmethod
    def _most(problem: DualProblem, *, is_rounded: bool = False) -> int:
        """Return how many points are worked on alone: with a matrix of half of the room, or of most where no factor follows."""
        share = ROOM_OF_PART if is_rounded else 0.5
        return max(min(int(math.sqrt(share * problem.gram.room / _bytes(is_rounded))), LARGEST_PART), 2)

    def _work_on_part(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> Info:
        """Solve for the points that violate their conditions, or nearly do, alone; then bring the others into step."""
        memory = state.memory
        if not memory.in_parts:  # rows that came late belong to other points
            memory.in_parts, memory.moved = True, None
        if not _put_back(problem, state):
            return Info(0)
        if memory.open is None:
            b_up, b_low = smo.bounds(problem, state)
            if b_up - b_low <= kkt_target:
                return Info(0, is_done=b_up <= b_low, drift=memory.taken_drift())
            try:
                memory.open = self._opened(problem, state, kkt_target, b_up, b_low)
            except limits.Exceeded:  # what was put back before counts
                return Info(0, drift=memory.taken_drift())
        points, part, part_state, before, target = memory.open
        moved, info = 0, Info(0)
        while moved < max_steps and not limits.is_over() and _violation(part, part_state) > target:
            _, info = self.step(part, part_state, max_steps - moved, target)
            moved += info.iterations
            if info.is_done or info.is_unbounded or not info.iterations:
                break
        memory.unseen += moved
        if moved < max_steps or _violation(part, part_state) <= target:
            memory.open, memory.gram = None, None  # the next part has its memory
        elif memory.unseen < problem.n:
            return Info(moved, is_pending=True, drift=memory.taken_drift())
        memory.unseen = 0
        old = state.beta[points]
        memory.moved = smo.Moved(points, part_state, old, state.residual)
        if part.gram.is_rounded and (info.is_unbounded or part_state.memory.needs_digits):
            memory.may_round = False
            memory.first, has_room = points, points.size <= math.sqrt(ROOM_OF_PART * problem.gram.room / 8.0)
            if not has_room:  # in float64: of fewer what was begun with all would be in the way
                some = np.linspace(0, points.size - 1, self._most(problem)).astype(np.int64)
                memory.first, memory.has_all_free = points[some], False
            if info.is_unbounded or not has_room:  # rounding may have taken the curvature away
                memory.moved, memory.open, info = None, None, Info(0)
        if _put_back(problem, state):
            part_state.residual[:] = state.residual[points]
            if memory.open is None and part.gram.is_rounded:
                memory.may_round &= bool(_violation(part, part_state) <= max(target, 0.5 * before))
        may_wait = part.gram.is_rounded or memory.moved is not None  # it was not put back, or not yet
        is_pending = may_wait and moved > 0 and np.array_equal(old, state.beta[points])
        return Info(moved, is_unbounded=info.is_unbounded, is_pending=is_pending, drift=memory.taken_drift())

    def _opened(self, problem: DualProblem, state: PairState, kkt_target: float, b_up: float, b_low: float) -> Part:
        """Return the next points to be solved for alone, and how far."""
        memory = state.memory
        may_round = memory.may_round and _can_round(problem)
        points, memory.first, most = memory.first, None, self._most(problem, is_rounded=may_round)
        # Free points that are not worked on together crawl: for all of them a part may take the room of a factor as well.
        free, room = _count_free(problem, state), math.sqrt(ROOM_OF_PART * problem.gram.room / _bytes(may_round))
        if free <= room / LEAST_MORE:
            most = max(most, min(int(FREE_AND_MORE * free), int(room)))
        if points is None:
            points = smo.working_set(problem, state, b_up, b_low, most)
            assert points is not None
            memory.has_all_free = points.size < most
        is_last = memory.has_all_free or b_up - b_low <= 1.5 * memory.target
        memory.target = max(TIGHTER * kkt_target, (LAST_PART if is_last else PART) * (b_up - b_low))
        part, part_state = smo.restrict(problem, state, points)
        memory.is_rounded = may_round
        if may_round:
            memory.gram = part.gram.rounded()
            part = replace(part, gram=memory.gram)
        part.gram.full()
        part_state = part_state._replace(memory=Memory())
        part_state.memory.rough, part_state.memory.is_under_way = memory.rough, True
        part_state.memory.is_part = True
        return Part(points, part, part_state, b_up - b_low, memory.target)

    # Points whose matrix is in memory.

    def _approach(self, problem: DualProblem, state: PairState, max_steps: int, target: float) -> Info:
        """Move pairs to a rough point; the last halving of the violation tells what the next would cost."""
        _, first = PAIRS.step(problem, state, max_steps, 2.0 * target)
        if first.is_done or first.is_unbounded or first.iterations >= max_steps:
            return first
        _, second = PAIRS.step(problem, state, max_steps - first.iterations, target)
        state.memory.per_halving = float(second.iterations) if first.iterations else 0.0
        moved = first.iterations + second.iterations
        return Info(moved, is_done=second.is_done, is_unbounded=second.is_unbounded)

    def _left(self, problem: DualProblem, state: PairState, violation: float) -> float:
        """Return how many pairs may be moved before exchanges take over; none where pairs have hardly begun to get on."""
        memory, soon = state.memory, SOON * problem.n
        if memory.spent < soon:
            return float(soon - memory.spent)
        if violation >= memory.start:
            return 0.0
        return PATIENCE * max(self._worth(problem, state), problem.n) - memory.spent

    def _pays(self, problem: DualProblem, state: PairState, violation: float, kkt_target: float) -> bool:
        """Whether the pairs that are left cost less than exchanges."""
        if not 0.0 < kkt_target < violation:
            return violation <= kkt_target
        pairs = (state.memory.per_halving or _count_free(problem, state)) * math.log2(violation / kkt_target)
        exchanges = max(EXCHANGES, PER_VIOLATOR * _count_violators(problem, state))
        return bool(pairs <= self._worth(problem, state, exchanges))

    @staticmethod
    def _worth(problem: DualProblem, state: PairState, count: float = EXCHANGES) -> float:
        """Return how many pairs cost as much as a factor and some exchanges."""
        m, n = _count_free(problem, state), problem.n
        if not _fits(problem, m):
            return math.inf
        exchanges = BEGINNING + FACTORED * m**3 / 3.0 + count * EXCHANGED * m * (4.0 * m + n)
        return exchanges / (PAIR + PER_POINT * n)

    def __str__(self) -> str:
        return "auto"


def _is_light(problem: DualProblem, share: float = LIGHT) -> bool:
    """Whether most coefficients are zero for certain, as those of one class with a small nu, and rows come a few at a time."""
    total = problem.total or 0.0
    return problem.n > smo.SMALL and 0.0 < abs(total) < share * float(
        problem.upper.sum() if total > 0 else -problem.lower.sum()
    )


def _at_most(max_steps: int, left: float) -> int:
    return max_steps if left >= max_steps else int(left) + 1


def _count_free(problem: DualProblem, state: PairState) -> int:
    beta = state.beta
    return int(np.count_nonzero((beta != 0.0) & (beta > problem.lower) & (beta < problem.upper)))


def _count_violators(problem: DualProblem, state: PairState) -> int:
    """Return how many points at a bound violate their condition at the present bias, by more than a tenth of the largest."""
    beta, r = state.beta, state.residual
    bias = problem.best_bias(r + problem.ridge * beta)
    violations = np.maximum(r + state.up_offset - bias, bias - r - state.low_offset)
    at_bound = (beta == 0.0) | (beta == problem.lower) | (beta == problem.upper)
    return int(np.count_nonzero(violations[at_bound] > 0.1 * violations.max(initial=0.0)))


def _fits(problem: DualProblem, m: float) -> bool:
    """Whether there is room for another matrix of so many points; a small one takes no more than the points themselves."""
    return m <= 2 * FEW or 8.0 * m * m <= problem.gram.room


def _put_back(problem: DualProblem, state: PairState) -> bool:
    """Bring all points into step with those that moved; return False if a limit came first: then it is done later.

    Those that moved are among all: what their residuals have gathered while they moved is not known as well.
    """
    moved = state.memory.moved
    if moved is None:
        return True
    try:
        if moved.left.size:
            change = np.zeros(problem.n)
            change[moved.points] = moved.change
            if state.memory.has_all_free:
                _hold(problem, moved, _bytes(state.memory.may_round and _can_round(problem)))
            residual = moved.residual - problem.gram.product(moved.points[moved.left], moved.change[moved.left])
            residual -= problem.ridge * change
            size = float(np.abs(residual).max() + np.abs(problem.ridge * change).max())
            error = 2.0 * float(problem.gram.dot_error(change).max()) + 4.0 * UNIT * size  # a change is rounded
            state.memory.drift += error
            moved = copy.copy(moved)  # until all is done nothing is: Ctrl-C may come in between
            moved.own, moved.residual, moved.left = residual[moved.points], residual, moved.left[:0]
            state.memory.moved = moved
    except limits.Exceeded:
        return False
    if state.memory.is_rounded and not _is_better(problem, state, moved):
        state.memory.moved, state.memory.open, state.memory.may_round = None, None, False
        return True
    moved.put_back(state)
    return True


def _is_better(problem: DualProblem, state: PairState, moved: smo.Moved) -> bool:
    """Whether the objective is no worse, but for rounding, where points have moved."""
    beta = state.beta.copy()
    beta[moved.points] = moved.beta
    before, now = problem.objective(state.beta, state.residual), problem.objective(beta, moved.residual)
    return bool(now <= before + 64.0 * UNIT * abs(before))


def _can_round(problem: DualProblem) -> bool:
    """Whether pairs of a part may read kernel values in float32: what these are off ends where the part is put back."""
    gram = problem.gram
    return gram.is_positive and bool(1.0 / LARGEST_ROUNDED <= gram.diagonal.max() <= LARGEST_ROUNDED)


def _bytes(is_rounded: bool) -> float:
    """Return those of a kernel value."""
    return 4.0 if is_rounded else 8.0


def _hold(problem: DualProblem, moved: smo.Moved, size: float) -> None:
    """Keep rows of points that are free now, and that will move again, in the memory that parts of such values leave."""
    beta, lower, upper = moved.beta, problem.lower[moved.points], problem.upper[moved.points]
    is_free = (beta != 0.0) & (lower < beta) & (beta < upper)
    wanted = moved.points[is_free & (moved.change != 0.0)]
    if problem.gram.is_quick:
        if problem.known is not None:  # a run from another's solution: in those that follow about the same points move
            problem.gram.hold(wanted, 16.0 * LARGEST_PART**2)
    elif not problem.gram.kernel.is_linear:
        next_part = FREE_AND_MORE * np.count_nonzero(is_free) + 1.0
        problem.gram.hold(wanted, size * max(2.0 * HELD_PART**2, next_part**2 / ROOM_OF_PART))


def _violation(problem: DualProblem, state: PairState) -> float:
    b_up, b_low = problem.bias_interval(state.beta, state.residual)
    return max(b_up - b_low, 0.0)


def _alone(part: DualProblem, state: PairState) -> DualProblem:
    """Return the problem of a part with what the others do in its target, where objectives need it, and its own sum."""
    product = part.gram.dot(state.beta)
    target = state.residual + product + part.ridge * state.beta
    total = None if part.total is None else float(state.beta.sum())
    return replace(part, target=target, total=total, known=Known(state.beta.copy(), product))


def _exchange(problem: DualProblem, state: PairState, max_steps: int, tolerance: float) -> tuple[int, bool, bool]:
    """Go to the minimum by exchanges; return how many points entered, whether that is better, and if there is no bound.

    If rounding has led them astray the point stays where it was.
    """
    before = problem.estimate(state.beta, state.residual)
    active = ActiveSet(problem, state.beta.copy())
    entered = active.optimise(problem, tolerance, max_steps, TOGETHER)
    if active.is_unbounded:
        return entered, False, True
    dual = -problem.objective(active.beta, active.residual)
    if not before.dual <= dual <= before.primal * (1.0 + 1e-9) or limits.is_over():  # weak duality
        return entered, False, False
    state.beta[:], state.residual[:] = active.beta, active.residual
    state.up_offset[:], state.low_offset[:] = problem.up_offset(active.beta), problem.low_offset(active.beta)
    return entered, True, False
