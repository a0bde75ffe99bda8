"""Exact minima by exchanges: one point enters the free set or leaves it, and the free points are solved for directly.

Symbols: E, the free points (S of ssvm, whose E are the capped ones); r = t - (K + diag(ridge)) beta; s = +1 or -1, the
side of zero a coefficient is on.
On the free set the optimum has r_i - eps s_i = bias.  The *KKT error* of a free point is r_i - eps s_i - bias: zero for all but
those that have just entered.  The minimum over E is at beta_E + d, where (K + ridge)_EE d + db 1 = kkt_error_E and sum(d) = 0;
db is the change of the bias.  The way there is followed until a coefficient meets the end of its box, or zero where eps kinks
the objective; that point leaves.

This is (4)-(9) of ssvm and its pruning, for a box with two ends and any loss.  A point that depends on the free ones in feature
space is exchanged for one of them along the direction that moves no decision value.

Every loop has a bound, and ends early when the limit it works under is reached: the point is feasible then, the free points
that were not solved for keep their KKT errors, and points inside their box that are not free are violators like any other.
"""

import copy

import numpy as np

from zerogap import limits
from zerogap.compiled import HUGE, NO_POINT, jit
from zerogap.free_system import DEPENDENT, FreeSystem, append_row, remove_row, solve_factor
from zerogap.problem import DualProblem, arrays_of

SUM_TOLERANCE = 1e-12  # a sum off its total by this share of the sum of absolute values is right but for rounding
LARGEST_RESULT = 1e300  # coefficients above this are no result: float64 ends
FEW = 20  # points whose factor is as soon made row by row
TOGETHER_FROM = 0.25  # of the worst violation: points that violate less do not enter together with the worst
NOISE = 1e-14  # share of the longest move that is rounding: a point at its bound does not block a step because of it


class ActiveSet:
    """A feasible point, its free set with the factor that solves it, and the moves between free sets.

    The residual is that of ``synced``, the coefficients at the last ``sync`` or ``refresh``: in between, only what a step
    needs is computed.
    """

    def __init__(
        self,
        problem: DualProblem,
        beta: np.ndarray,
        floor: float = 0.0,
        system: FreeSystem | None = None,
        *,
        keep_rows: bool = True,
    ):
        self.beta = beta  # (n,) feasible
        self.residual = np.empty(beta.size)
        self.synced = beta.copy()
        self.side = np.zeros(beta.size, dtype=np.int8)  # of the free points: which side of zero they live on; else 0
        self.kkt_error = np.zeros(beta.size)  # of the free points: residual - eps side - bias; else 0
        self.bias = 0.0
        self.is_unbounded = False
        self.keep_rows = keep_rows  # of the points that enter; else their values with the free points are computed anew
        self.asked = 0  # kernel values of all attempts to enter, that of the first and those after a point has left
        if system is None:
            tau = typical_size(problem.diagonal)
            system = FreeSystem(tau, has_border=problem.total is not None, floor=floor)
        self.system = system
        self.refresh(problem)
        self._collect(problem)

    def restart(self, problem: DualProblem) -> None:
        """Begin anew at the feasible point nearest to the coefficients."""
        self.beta[:] = feasible(problem, self.beta)
        self.side[:], self.kkt_error[:], self.bias, self.is_unbounded = 0, 0.0, 0.0, False
        self.system.clear()
        self.refresh(problem)
        self._collect(problem)

    @property
    def free(self) -> np.ndarray:
        """The free points; a view."""
        return self.system.points

    def copy(self) -> "ActiveSet":
        """Return one that can move without this one."""
        twin = copy.copy(self)
        for name in ("beta", "residual", "synced", "side", "kkt_error"):
            setattr(twin, name, getattr(self, name).copy())
        twin.system = self.system.copy()
        return twin

    def renumbered(self, problem: DualProblem, origin: np.ndarray) -> "ActiveSet":
        """Return the same set among other points: number k of ``problem`` is our point ``origin[k]``, or new where that is -1.

        No point that is missing among the others may have a coefficient.
        """
        twin, old = copy.copy(self), origin >= 0
        for name in ("beta", "side", "kkt_error"):
            values = np.zeros(origin.size, dtype=getattr(self, name).dtype)
            values[old] = getattr(self, name)[origin[old]]
            setattr(twin, name, values)
        index = np.full(self.beta.size, -1)
        index[origin[old]] = np.flatnonzero(old)
        twin.system = self.system.copy()
        twin.system.renumber(index)
        twin.residual, twin.synced = problem.residual(twin.beta), twin.beta.copy()
        return twin

    # The residual.

    def sync(self, problem: DualProblem) -> None:
        """Bring the residual into step with the coefficients that have moved."""
        moved = np.flatnonzero(self.beta != self.synced)
        if moved.size:
            change = self.beta[moved] - self.synced[moved]
            problem.gram.subtract(moved, change, self.residual)
            self.residual[moved] -= problem.ridge[moved] * change
            self.synced[moved] = self.beta[moved]

    def refresh(self, problem: DualProblem) -> None:
        """Compute the residual from the data."""
        self.residual[:] = problem.residual(self.beta)
        self.synced[:] = self.beta

    def refine(self, problem: DualProblem) -> bool:
        """Solve the free set once more for what rounding has left over, by the present residual; return whether it moved."""
        E, has_moved = self.free, False
        if E.size:
            self.kkt_error[E] = self.residual[E] - problem.eps * self.side[E] - self.bias
            if (np.abs(self.kkt_error[E]) > problem.roundings(self.beta)[E]).any():
                shortfall = 0.0 if problem.total is None else problem.total - float(self.beta.sum())
                has_moved = self.descend(problem, shortfall)
            self.kkt_error[self.free] = 0.0
        return has_moved

    # Moves.

    def optimise(
        self, problem: DualProblem, tolerance: float = 0.0, max_steps: int | None = None, together: int = 1
    ) -> int:
        """Let the worst violator enter until none is worse than the tolerance; return how many did.

        The tolerance of a point is that of its rounding if that is larger.  Ends short of it at a limit, or if rounding
        leads in a circle.  Violators may enter ``together``: on the way to the minimum over all free points the objective falls
        as well, and those that would leave their box at once leave the free set.
        """
        max_steps = 50 * problem.n + 1000 if max_steps is None else max_steps
        max_idle = 2 * problem.n + 100  # violators in a row without a change: the exchanges cycle
        count, refinements, idle = 0, 2, 0
        if not np.isfinite(self.beta).all():
            self.restart(problem)
        self.sync(problem)
        while count < max_steps and idle < max_idle and not self.is_unbounded and not limits.is_over():
            if self._is_compiled(problem) and self.system.size:
                moved, idle = self._exchanges(problem, tolerance, max_steps - count, together, idle, max_idle)
                count += moved
                if count >= max_steps or idle >= max_idle or limits.is_over():
                    break
            i = self.worst(problem, self.tolerances(problem, tolerance))
            if i != NO_POINT:
                idle = 0 if self.enter(problem, i) else idle + 1
                count += 1
            elif refinements and self.refine(problem):
                refinements -= 1
            else:
                break
            if not np.abs(self.beta).max() <= LARGEST_RESULT:  # an indefinite kernel: the objective falls for ever
                self.beta[:], self.is_unbounded = self.synced, True
            self.sync(problem)
        return count

    def _is_compiled(self, problem: DualProblem) -> bool:
        """Whether the matrix is there for compiled code and LAPACK."""
        return problem.gram.is_complete and self.keep_rows and not self.system.is_stricter

    def _exchanges(
        self, problem: DualProblem, tolerance: float, max_steps: int, together: int, idle: int, max_idle: int
    ) -> tuple[int, int]:
        """Let violators enter in compiled code while nothing out of the ordinary happens; return how many did, and idle."""
        system, K, count, arrays = self.system, problem.gram.full(), 0, arrays_of(problem)
        tolerances, scratch = self.tolerances(problem, tolerance), np.empty((4, problem.n))
        while count < max_steps and idle < max_idle and not limits.is_over():
            system.reserve()
            most = min(
                max_steps - count, 1 + limits.WORK_PER_QUESTION // (system.size * (problem.n + 4 * system.size) + 1)
            )
            is_paused, moved, idle, system.size, self.bias, self.asked = _exchange(
                arrays, K, self.beta, self.residual, self.side, self.kkt_error, system._points, system._factor,
                system._forward_ones, system.size, system.tau, system.floor, system.has_border, self.bias, tolerances,
                most, together, idle, max_idle, self.asked, scratch,
            )  # fmt: skip
            count += moved
            self.synced[:] = self.beta
            if not is_paused:
                break
        return count, idle

    def adapt(self, old: DualProblem, new: DualProblem) -> int:
        """Go from the optimum of one problem to that of another with other boxes or ridges; return how many points entered."""
        changed = np.flatnonzero((old.ridge != new.ridge) & (self.beta != 0))
        for i in changed[self.side[changed] != 0]:
            self._drop(self._position(i))
        self.residual[changed] -= (new.ridge[changed] - old.ridge[changed]) * self.beta[changed]
        inside = np.clip(self.beta, new.lower, new.upper)
        outside = np.flatnonzero(inside != self.beta)
        if not self.drive(new, outside, inside[outside]):
            self.restart(new)
        return self.optimise(new)

    def tolerances(self, problem: DualProblem, tolerance: float) -> np.ndarray:
        """Return the violation of every point that is none: the tolerance, or what rounding may have made."""
        return np.maximum(tolerance, 4.0 * problem.roundings(self.beta))

    def worst(self, problem: DualProblem, tolerance: np.ndarray) -> int:
        """Return the point that breaks the optimality conditions most, by more than its tolerance; the residual is in step."""
        if not self.system.size and self.system.has_border:
            up, low = self.residual + problem.up_offset(self.beta), self.residual + problem.low_offset(self.beta)
            i, j = int(np.argmax(up)), int(np.argmin(low))
            if up[i] - low[j] <= max(tolerance[i], tolerance[j]):
                return NO_POINT
            self.free_an_end(problem)
        beta, bounds = self.beta, (problem.lower, problem.upper)
        return int(_worst(beta, self.residual, self.side, *bounds, problem.eps, self.bias, tolerance)[0])

    def enter(self, problem: DualProblem, i: int) -> bool:
        """Free a point that breaks the optimality conditions, and go to the minimum over the free set.

        ``residual[i]`` must be in step.  Returns whether any coefficient moved.
        """
        rises = self.residual[i] - self.bias > 0
        before = self.beta[i]
        is_positive = before > 0 or (before == 0 and rises)
        self.side[i] = 1 if is_positive else -1
        self.kkt_error[i] = self.residual[i] - problem.eps * self.side[i] - self.bias
        self.asked += self.system.size + 1
        if not self._admit(problem, i):
            return bool(self.beta[i] != before)
        return self.descend(problem)

    def descend(self, problem: DualProblem, shortfall: float = 0.0) -> bool:
        """Go to the minimum over the free set; points that block the way leave it.  Returns whether a coefficient changed.

        ``shortfall`` is what the sum of the coefficients lacks: total - sum(beta).
        """
        has_moved = False
        while self.system.size and not limits.is_over():
            E = self.free
            if E.size == 1 and self.system.has_border:  # held by the sum: only the bias can give way
                self.bias += float(self.kkt_error[E[0]])
                self.kkt_error[E] = 0.0
                break
            d, bias_change = self.system.solve_one(self.kkt_error[E], shortfall)
            step, k = _first_block(E, d, self.beta, self.side, problem.lower, problem.upper, 1.0)
            has_moved |= step > 0
            self._move(problem, d, step, k)
            self.bias += step * bias_change
            if k == NO_POINT:
                self.kkt_error[self.free] = 0.0
                break
            self.kkt_error[E] *= 1.0 - step
            shortfall *= 1.0 - step
            self._drop(k)
            self.asked += self.system.size
        return has_moved

    def drive(self, problem: DualProblem, points: np.ndarray, values: np.ndarray) -> bool:
        """Take the coefficients of some points to given values, the free points moving along; no coefficient leaves its box.

        The points are not free afterwards.  The result is feasible, and optimal but for points that have become violators.
        Returns whether the way was gone to its end; if a limit or rounding has cut it short, only ``restart`` goes on.
        """
        for i in points[self.side[points] != 0]:
            self._drop(self._position(i))
        change = np.zeros(problem.n)
        change[points] = values - self.beta[points]
        if not change.any():
            return True
        contribution = problem.gram.dot(change)  # none of the points is free, so the ridge has no part in it
        remaining, sum_change = 1.0, float(change.sum())  # remaining: the share of the change still to be made
        # Every pass takes a free point to an end; one is used only if it has room that way, once on each side of zero.
        for _ in range(self.system.size + 2 * problem.n + 2):
            if limits.is_over() or not self._ensure_free_point(problem, points, -sum_change):
                return False
            E = self.free
            d, bias_change = self._solve(
                problem, self.kkt_error[E] - remaining * contribution[E], -remaining * sum_change
            )
            step, k = _first_block(E, d, self.beta, self.side, problem.lower, problem.upper, 1.0)
            self._move(problem, d, step, k)
            self.bias += step * bias_change
            self.kkt_error[E] *= 1.0 - step
            remaining = 0.0 if k == NO_POINT else remaining * (1.0 - step)
            if k != NO_POINT:
                self._drop(k)
            self.beta[points] = values - remaining * change[points]
            if remaining == 0.0:
                return True
        return False

    def _solve(self, problem: DualProblem, rhs: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        """Solve the system of the free set.  That of one point alone is solved exactly: its coefficient is the total."""
        if self.system.size == 1 and self.system.has_border:
            return np.array([total]), float(rhs[0] - float(problem.diagonal[self.free[0]]) * total)
        return self.system.solve_one(rhs, total)

    # The free set.

    def _collect(self, problem: DualProblem) -> None:
        """Build the free set of the present coefficients; of dependent points some move to a bound."""
        beta = self.beta
        free = np.flatnonzero((beta != 0) & (beta > problem.lower) & (beta < problem.upper))
        if not free.size:
            return
        side = np.sign(beta[free])
        biases = self.residual[free] - problem.eps * side  # at the optimum all are the same
        self.bias = float(biases.mean()) if self.system.has_border else 0.0
        room = np.minimum(
            np.minimum(beta[free] - problem.lower[free], problem.upper[free] - beta[free]), np.abs(beta[free])
        )
        order, done = np.arange(free.size), 0
        if free.size > FEW and self._is_compiled(problem):

            def write(A: np.ndarray) -> None:
                problem.gram.submatrix(free, A)
                A[order, order] += problem.ridge[free]

            done = self.system.load(positions := order.copy(), write)
            self.system.renumber(free)
            order, taken = positions[done:], free[positions[:done]]
            self.side[taken], self.kkt_error[taken] = side[positions[:done]], biases[positions[:done]] - self.bias
        elif free.size > FEW and self.system.append_all(free):
            self.side[free], self.kkt_error[free], order = side, biases - self.bias, order[:0]
        for k in order[np.argsort(-room[order], kind="stable")]:  # those that can give way come first
            if limits.is_over():
                break
            i = int(free[k])
            self.side[i], self.kkt_error[i] = int(side[k]), biases[k] - self.bias
            self._admit(problem, i)
        self.descend(problem)
        self.sync(problem)

    def _admit(self, problem: DualProblem, i: int) -> bool:
        """Add a point to the free set, if need be in exchange; returns False if it went to an end of its box instead."""
        corner = float(problem.gram.diagonal[i] + problem.ridge[i])
        try:
            column = self._column(problem, i)
            while not self.system.insert(i, column, corner):
                if not self._exchange(problem, i, column):
                    return False
                column = self._column(problem, i)
        except limits.Exceeded:  # its kernel values came too late: it is not free
            self.side[i], self.kkt_error[i] = 0, 0.0
            raise
        return True

    def _column(self, problem: DualProblem, i: int) -> np.ndarray:
        """Return the kernel values of a point with the free ones."""
        return problem.gram.row(i)[self.free] if self.keep_rows else problem.gram.values(i, self.free)

    def _exchange(self, problem: DualProblem, i: int, column: np.ndarray) -> bool:
        """Move a dependent point and the free ones so that no decision value changes, until one meets its end.

        Returns whether that was a free point, which has left; else it was the point itself, or none.  A ridge too small to
        make the points independent still adds curvature, and ends the move at its minimum.
        """
        E = self.free
        d = self.system.dependence_on(column)
        slope = self.kkt_error[i] + float(d @ self.kkt_error[E])
        direction = np.sign(slope) if slope else -float(self.side[i])
        d *= direction
        curvature = float(problem.ridge[i] + problem.ridge[E] @ d**2)
        longest = abs(slope) / curvature if curvature > 0 else np.inf
        step, k = _first_block(E, d, self.beta, self.side, problem.lower, problem.upper, longest)
        end = _end(self.side[i], direction, problem.lower[i], problem.upper[i])
        room = abs(end - self.beta[i])
        if np.isinf(min(step, room)):
            self.is_unbounded = True
            room = 0.0
        if room <= step or k == NO_POINT:
            step = min(room, step)
            self._move(problem, d, step, NO_POINT)
            is_at_end = step == abs(end - self.beta[i]) and np.isfinite(end)
            self.beta[i] = end if is_at_end else self.beta[i] + direction * step
            self.side[i], self.kkt_error[i] = 0, 0.0
            return False
        self.beta[i] += direction * step
        self._move(problem, d, step, k)
        self._drop(k)
        return True

    def _move(self, problem: DualProblem, d: np.ndarray, step: float, blocker: int) -> None:
        _move(self.free, d, step, blocker, self.beta, self.side, problem.lower, problem.upper)

    def _position(self, i: int) -> int:
        return int(np.flatnonzero(self.free == i)[0])

    def _drop(self, position: int) -> None:
        i = self.free[position]
        self.side[i], self.kkt_error[i] = 0, 0.0
        self.system.remove(position)

    def free_an_end(self, problem: DualProblem) -> None:
        """With every point at a bound the bias has an interval: free the point that ends it from below."""
        self.free_alone(problem, int(np.argmax(self.residual + problem.up_offset(self.beta))), rises=True)

    def _ensure_free_point(self, problem: DualProblem, excluded: np.ndarray, sum_change: float) -> bool:
        """Whether some free point can change the sum; if none is free, the worst violator that can is freed."""
        if self.system.size or not self.system.has_border:
            return True
        self.sync(problem)
        violation = (
            self.residual + problem.up_offset(self.beta)
            if sum_change > 0
            else -self.residual - problem.low_offset(self.beta)
        )
        violation[excluded] = -np.inf
        i = int(np.argmax(violation))
        if violation[i] <= -0.5 * HUGE:
            return False
        self.free_alone(problem, i, rises=sum_change > 0)
        return True

    def free_alone(self, problem: DualProblem, i: int, *, rises: bool) -> None:
        """Let a point into an empty free set: the bias is its own."""
        is_positive = self.beta[i] > 0 or (self.beta[i] == 0 and rises)
        self.side[i] = 1 if is_positive else -1
        self.bias = float(self.residual[i] - problem.eps * self.side[i])
        self._admit(problem, i)


def feasible(problem: DualProblem, beta: np.ndarray) -> np.ndarray:
    """Return a feasible point near beta; beta itself if only rounding is between it and one, so that capped points stay so."""
    excess = 0.0 if problem.total is None else float(beta.sum()) - problem.total
    is_inside = ((problem.lower <= beta) & (beta <= problem.upper)).all()
    if is_inside and abs(excess) <= SUM_TOLERANCE * np.abs(beta).sum():
        return problem.restore_sum(beta.copy())
    return problem.feasible(beta)


def typical_size(diagonal: np.ndarray) -> float:
    """Return the size most kernel values have: beside a tau of an outlier's size the others would all be rounding."""
    size = np.abs(diagonal)
    return float(np.median(size)) or float(size.mean()) or 1.0


@jit
def _end(side, direction, lower, upper):
    """Return where a coefficient on a side of zero ends if it moves in a direction."""
    if direction > 0:
        return upper if side > 0 else 0.0
    return 0.0 if side > 0 else lower


@jit
def _first_block(E, d, beta, side, lower, upper, longest_step):
    """Return how far the free points can move along d, and the position of the one that blocks, or NO_POINT."""
    largest = 0.0
    for k in range(E.size):
        largest = max(largest, abs(d[k]))
    step, blocker = longest_step, NO_POINT
    for k in range(E.size):
        if abs(d[k]) > NOISE * largest:
            i = E[k]
            room = (_end(side[i], d[k], lower[i], upper[i]) - beta[i]) / d[k]
            if room < step:
                step, blocker = max(room, 0.0), k
    return step, blocker


@jit
def _move(E, d, step, blocker, beta, side, lower, upper):
    """Move the free points by a step along d, within their ends; the one that blocks lands on its end exactly."""
    for k in range(E.size):
        if d[k] != 0:
            i = E[k]
            end = _end(side[i], d[k], lower[i], upper[i])
            value = beta[i] + step * d[k]
            is_past = value > end if d[k] > 0 else value < end
            beta[i] = end if is_past or k == blocker else value


@jit
def _worst(beta, residual, side, lower, upper, eps, bias, tolerance):
    """Return the point outside the free set that violates the optimality conditions most, and by more than its tolerance.

    And by how much that is.
    """
    largest, worst = -np.inf, NO_POINT
    for i in range(beta.size):
        if side[i] == 0:
            violation = violation_of(beta[i], residual[i] - bias, lower[i], upper[i], eps)
            if violation > largest and violation > tolerance[i]:
                largest, worst = violation, i
    return worst, largest


@jit
def _exchange(
    problem, K, beta, residual, side, kkt_error, points, factor, forward_ones, size, tau, floor, has_border, bias, tolerance,
    max_steps, together, idle, max_idle, asked, scratch,
):  # fmt: skip
    """Let violators enter, some together, as ``enter``, ``descend`` and ``sync`` do, while there is room in the factor.

    Returns whether it may go on, how many entered, and the numbers that have changed.  Ends before a violator that depends on
    the free points, and before the last of them would leave.
    """
    lower, upper, eps = problem.lower, problem.upper, problem.eps
    column, d, before, count = scratch[0], scratch[1], scratch[2], 0
    while count < max_steps:
        entered, least = 0, 0.0
        while entered < min(together, max_steps - count) and idle < max_idle:
            i, violation = _worst(beta, residual, side, lower, upper, eps, bias, tolerance)
            if i == NO_POINT or violation < least:
                break
            if size == points.size:
                if entered == 0:
                    return True, count, idle, size, bias, asked
                break
            for k in range(size):
                column[k] = K[i, points[k]] + tau
            corner = K[i, i] + problem.ridge[i] + tau
            if not append_row(factor, forward_ones, size, column[:size], corner, max(DEPENDENT * corner, floor)):
                break
            asked += size + 1
            rises = residual[i] - bias > 0
            side[i] = 1 if beta[i] > 0 or (beta[i] == 0 and rises) else -1
            kkt_error[i] = residual[i] - eps * side[i] - bias
            points[size] = i
            size += 1
            entered, least = entered + 1, TOGETHER_FROM * violation if entered == 0 else least
        if entered == 0:
            return False, count, idle, size, bias, asked
        first = size  # points whose coefficients may change: those that leave are kept behind the others
        moved = np.empty(size, dtype=np.int64)
        for k in range(size):
            moved[k], before[k] = points[k], beta[points[k]]
        has_moved = False
        while size > 0:
            E = points[:size]
            if size == 1 and has_border:
                bias += kkt_error[E[0]]
                kkt_error[E[0]] = 0.0
                break
            for k in range(size):
                d[k] = kkt_error[E[k]]
            change = solve_factor(factor, forward_ones, size, has_border, d[:size], 0.0)
            step, k = _first_block(E, d[:size], beta, side, lower, upper, 1.0)
            has_moved = has_moved or step > 0
            _move(E, d[:size], step, k, beta, side, lower, upper)
            bias += step * change
            if k == NO_POINT:
                for m in range(size):
                    kkt_error[E[m]] = 0.0
                break
            for m in range(size):
                kkt_error[E[m]] *= 1.0 - step
            side[E[k]], kkt_error[E[k]] = 0, 0.0
            remove_row(factor, forward_ones, size, k)
            for m in range(k, size - 1):
                points[m] = points[m + 1]
            size -= 1
            asked += size
        for k in range(first):
            p = moved[k]
            c = beta[p] - before[k]
            if c != 0.0:
                row = K[p]
                for m in range(residual.size):
                    residual[m] -= c * row[m]
                residual[p] -= problem.ridge[p] * c
                if not abs(beta[p]) <= LARGEST_RESULT:
                    return False, count + entered, idle, size, bias, asked
        count, idle = count + entered, 0 if has_moved else idle + entered
        if size == 0:
            return False, count, idle, size, bias, asked
    return True, count, idle, size, bias, asked


@jit
def violation_of(beta, r, lower, upper, eps):
    """Return the violation of the optimality conditions at a point off the free set, r being its residual less the bias."""
    violation = -np.inf
    if beta < upper:
        violation = r - (eps if beta >= 0 else -eps)
    if beta > lower:
        violation = max(violation, (eps if beta > 0 else -eps) - r)
    return violation
