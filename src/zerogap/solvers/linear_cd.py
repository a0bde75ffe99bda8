"""One coefficient at a time for the linear kernel, by way of its vector w (chapter7 §7.2; Hsieh et al. 2008).

Symbols: X, the points; w = X'beta; r = t - X w - ridge beta - b; q_i = |x_i|² + ridge_i, the curvature; b, the multiplier.

A coefficient goes to the least D along it,  beta_i <- clip(soft(q_i beta_i + r_i, eps) / q_i),  and w follows: that costs the
nonzeros of one row twice, and no kernel value.  A sweep takes the points in random order, chunk by chunk of neighbours, so that
memory is read nearly in sequence: at random it takes three times as long.  Points at a bound that their residual holds them to
by more than the largest violation of the sweep before are set aside.  After some sweeps the residuals of all points are
computed, and tell who comes back.

With a free bias the sum is fixed, and no coefficient could move alone.  The method of multipliers puts b (sum(beta) - total)
+ rho/2 (sum(beta) - total)² in its place, one more feature for the sweeps, and b grows by rho times what the sum is off.  The
point of the state is the best one with the right sum so far.

Where sweeps are slow, as with few features and a large C, the Newton steps in w of ``linear.Descent`` go on.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import limits, precision, validation
from zerogap.compiled import inline, inline_sums, jit, prefetch
from zerogap.kernels import UNIT
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import linear, pair
from zerogap.solvers.base import Info
from zerogap.solvers.pair import SMALLEST, PairState

# Points are visited at random; where they take more bytes than caches hold, so many neighbours one after the other, at random.
HELD, CHUNK = 64_000_000, 8
AHEAD, LINE = 4, 64  # visits, and bytes of memory that come at once
FIRST_VISITS, MORE_VISITS = 2.0, 0.1  # in a step: times the points, and of all visits so far
RENEWED = 50  # sweeps after which w is computed afresh
# Seconds, to compare one with the other: a sweep, and more for each nonzero entry.  Newton steps that it takes, as a rule, with
# corners and without; sweeps that it takes at least.
SWEEP, VISITED, CORNER_STEPS, SMOOTH_STEPS, LEAST_SWEEPS = 5e-6, 4e-9, 25, 10, 60
SOME = 100  # points, from which sparse ones are swept over before kernel values are computed
NARROW = 0.1  # of the range of the targets: width of the first stretch after sweeps
REACH = 0.1  # rho, as a share of the mean curvature


class Rows(NamedTuple):
    """Points for compiled code: CSR, or an array row after row, without indices."""

    values: np.ndarray
    indices: np.ndarray
    starts: np.ndarray
    stops: np.ndarray
    is_sparse: bool

    @classmethod
    def of(cls, X: Any, has_constant: bool) -> "Rows":
        """Return those of a matrix, without the last feature if it is a constant one."""
        n, d = X.shape
        if sp.issparse(X):
            # Unsigned: Numba need not ask whether an index counts from the end.
            indices = X.indices.astype(np.int32, copy=False).view(np.uint32)
            edges = X.indptr.astype(np.int64)
            return cls(X.data, indices, edges[:-1], edges[1:] - has_constant, True)
        starts = np.arange(n) * d
        return cls(
            np.ascontiguousarray(X).reshape(-1), np.empty(0, dtype=np.uint32), starts, starts + d - has_constant, False
        )


class Sweeps:
    """How far a run is."""

    def __init__(self, problem: DualProblem, beta: np.ndarray, seed: int):
        X, n = problem.gram.features, problem.n
        self.constant = constant_feature(X) if problem.total is None else 0.0
        self.X, self.rows, self.arrays = X, Rows.of(X, self.constant != 0.0), arrays_of(problem)
        self.beta, self.w = beta.copy(), X.T @ beta
        self.nonzeros = X.nnz if sp.issparse(X) else X.size
        curvature = np.maximum(self.arrays.kernel_diagonal - self.constant**2, 0.0) + problem.ridge
        has_bias = problem.total is not None or self.constant != 0.0
        # Multiplier, rho, and what the sum is off.
        rho = _penalty(problem, curvature) if has_bias else 0.0
        self.bias = np.array([self.constant**2 * float(beta.sum()), rho, 0.0])
        self._balance(problem)
        self.curvature = np.maximum(curvature + rho, SMALLEST)
        self.active, self.count, self.threshold = np.arange(n), n, math.inf
        self.seed = np.array([2 * seed + 0x9E3779B97F4A7C15], dtype=np.uint64)
        self.chunk = CHUNK if self.rows.values.nbytes + self.rows.indices.nbytes > HELD else 1
        self.visits, self.sweeps, self.renewed = 0, 0, 0
        self.gaps: list[tuple[float, int]] = []  # gap and visits, after every step
        self.descent: linear.Descent | None = None
        self.may_descend = linear.suits(problem)

    def __deepcopy__(self, memo: dict[int, object]) -> "Sweeps":
        copied = Sweeps.__new__(Sweeps)
        copied.__dict__.update(self.__dict__)
        for name in ("beta", "w", "bias", "active", "seed"):
            setattr(copied, name, getattr(self, name).copy())
        copied.gaps = list(self.gaps)
        if self.descent is not None:
            copied.descent = self.descent.__deepcopy__(memo)
        return copied

    @property
    def seconds(self) -> float:
        """About how long the sweeps have taken."""
        return SWEEP * self.sweeps + VISITED * self.nonzeros * self.visits / self.beta.size

    def sweep(self, problem: DualProblem, max_steps: int, target: float) -> tuple[int, float]:
        """Sweep until the violation is at most a target, or for a while; return how often, and the largest violation."""
        most = self.visits + FIRST_VISITS * problem.n + MORE_VISITS * self.visits
        done, worst = 0, math.inf
        while done < max_steps and self.visits < most and not limits.is_over():
            self.visits += self.count
            before = self.count
            self.count, worst = _sweep(
                self.rows, self.arrays, self.curvature, self.beta, self.w, self.bias, self.active, self.count,
                self.threshold, self.seed, self.chunk,
            )  # fmt: skip
            self.threshold = worst if worst > 0.0 else math.inf
            done += 1
            self._balance(problem)
            if not before or (not self.bias[1] and worst <= target):
                break  # with a free bias a target says little: it is that of a point with the right sum
        self.sweeps += done
        return done, worst

    def _balance(self, problem: DualProblem) -> None:
        """Let the multiplier follow what the sum is off; of a constant feature, from the sum whose bias the multiplier is."""
        if problem.total is not None:
            self.bias[2] = problem.excess(self.beta)
        elif self.constant:
            total, square = float(precision.total(self.beta, 0.0)), self.constant**2
            self.bias[2] = total - (self.bias[0] + self.bias[1] * total) / (square + self.bias[1])
        self.bias[0] += self.bias[1] * self.bias[2]

    def residual(self, problem: DualProblem) -> np.ndarray:
        """Return t - (K + ridge) beta of the point of the sweeps."""
        if self.constant:
            self.w[-1] = self.constant * float(precision.total(self.beta, 0.0))
        if self.sweeps - self.renewed >= RENEWED:
            self.w, self.renewed = self.X.T @ self.beta, self.sweeps
        return problem.target - self.X @ self.w - problem.ridge * self.beta

    def gather(self, problem: DualProblem, residual: np.ndarray) -> None:
        """Take back the points that are not held to their bounds."""
        r = residual - self.bias[0]
        if self.constant:  # in place of its own
            r += self.constant * self.w[-1]
        up, low = r + problem.up_offset(self.beta), r + problem.low_offset(self.beta)
        worst = max(float(up.max()), float(-low.min()), 0.0)
        kept = np.flatnonzero((up >= -worst) | (low <= worst)) if worst > 0.0 else np.arange(problem.n)
        self.active[: kept.size], self.count, self.threshold = kept, kept.size, worst or math.inf


@dataclass(frozen=True)
class LinearCD:
    """Dual coordinate descent in w, for the linear kernel alone.  One iteration is one sweep over the points not set aside.

    Sparse points stay sparse.  Where sweeps are slow, Newton steps in w go on, if there are at most some thousand features.

    Attributes
    ----------
    newton : bool
        Whether Newton steps may go on.
    random_state : int
        Seed of the order.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, RelativeGap, solve
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]], "linear"), [-1, -1, 1, 1], C=10.0)
    >>> bool(solve(problem, "linear-cd", stop=RelativeGap(1e-8)).certificate.relative_gap < 1e-8)
    True
    """

    newton: bool = True
    random_state: int = 0

    patience = 1e-3  # a sweep moves many coefficients

    def __post_init__(self) -> None:
        validation.check_flag("newton", self.newton)

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero."""
        if not takes(problem):
            raise ValueError(
                "'linear-cd' keeps the vector w of a linear kernel: it takes a linear kernel, a loss that is finite (no hard "
                "margin), and coefficients that sum to zero if they have a sum. Use a solver that takes all, such as 'smo'."
            )
        state = pair.start(problem, beta, None)
        sweeps = Sweeps(problem, state.beta, self.random_state)
        sweeps.may_descend &= self.newton
        if sweeps.may_descend and self._is_newton_cheaper(problem, sweeps, LEAST_SWEEPS):
            sweeps.descent = linear.Descent(problem, share=linear.FIRST)
        return state._replace(memory=sweeps)

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Sweep for a while, or take Newton steps."""
        sweeps = state.memory
        if sweeps.descent is not None:
            return state, self._descend(problem, state, max_steps)
        done, worst = sweeps.sweep(problem, max_steps, kkt_target)
        own = sweeps.residual(problem)
        self._take(problem, state, own)
        sweeps.gather(problem, own)
        self._consider_newton(problem, state, kkt_target)
        return state, Info(done, is_done=not worst > 0.0)

    @staticmethod
    def _take(problem: DualProblem, state: PairState, residual: np.ndarray) -> None:
        """Go to the point of the sweeps; with a free bias to one with the right sum, if it is better."""
        sweeps = state.memory
        if problem.total is None:
            linear.go_to(problem, state, sweeps.beta, residual)
            return
        beta = problem.feasible(sweeps.beta)
        change = beta - sweeps.beta
        if change.any():
            residual = residual - sweeps.X @ (sweeps.X.T @ change) - problem.ridge * change
        # Near the optimum objectives differ by rounding alone, while the violation still falls.
        slack = 4.0 * UNIT * float(np.abs(beta) @ (np.abs(problem.target) + np.abs(residual)))
        if problem.objective(beta, residual) <= problem.objective(state.beta, state.residual) + slack:
            linear.go_to(problem, state, beta, residual)

    def _descend(self, problem: DualProblem, state: PairState, max_steps: int) -> Info:
        """Take Newton steps; where they are lost, sweeps go on from where they have led."""
        sweeps, done = state.memory, 0
        if not sweeps.sweeps and sp.issparse(sweeps.X) and not linear.has_corner(problem).any():
            # From zero all points are on their stretch at first, and each step costs the more of them there are.
            done, _ = sweeps.sweep(problem, 1, 0.0)
            self._take(problem, state, sweeps.residual(problem))
        info = sweeps.descent.step(problem, state, max_steps - done) if done < max_steps else Info(0)
        info = replace(info, iterations=info.iterations + done)
        if sweeps.descent.is_lost:
            sweeps.descent, sweeps.may_descend = None, False
            sweeps.beta[:], sweeps.w, sweeps.renewed = state.beta, sweeps.X.T @ state.beta, sweeps.sweeps
            sweeps.bias[0] = problem.best_bias(state.residual + problem.ridge * state.beta)
            sweeps.gather(problem, state.residual)
        return info

    def _consider_newton(self, problem: DualProblem, state: PairState, kkt_target: float) -> None:
        """Let Newton steps go on where the sweeps that are left, by the pace of the last ones, would take longer."""
        sweeps = state.memory
        if not sweeps.may_descend:
            return
        now = problem.estimate(state.beta, state.residual)
        sweeps.gaps.append((now.gap, sweeps.visits))
        if len(sweeps.gaps) < 2 or not 0.0 < kkt_target < now.kkt_violation or not 0.0 < now.gap < np.inf:
            return
        (before, then), (gap, visits) = sweeps.gaps[-2:]
        gained = math.log(before / gap) if before > gap else 0.0
        wanted = math.log(now.kkt_violation / kkt_target)
        left = wanted / gained * (visits - then) / problem.n if gained > 0.0 else math.inf
        if self._is_newton_cheaper(problem, sweeps, left):
            sweeps.descent = linear.Descent(problem, share=NARROW)

    @staticmethod
    def _is_newton_cheaper(problem: DualProblem, sweeps: Sweeps, left: float) -> bool:
        """Whether Newton steps take less time than so many full sweeps."""
        n, d = sweeps.X.shape
        steps = CORNER_STEPS if linear.has_corner(problem).any() else SMOOTH_STEPS
        return steps * linear.seconds_of_step(n, d, sweeps.nonzeros) < left * (SWEEP + VISITED * sweeps.nonzeros)

    def __str__(self) -> str:
        return "linear-cd"


def _penalty(problem: DualProblem, curvature: np.ndarray) -> float:
    """Return rho: a share of the curvature, and enough for the multiplier to go past all targets in one sweep.

    It moves by rho times what the sum is off, which is no more than all of the box: with short points, or a small C, the
    curvature alone would have it creep.
    """
    room = float((problem.upper - problem.lower).sum())  # infinite with squared losses, whose ridge is in the curvature
    return max(REACH * float(curvature.mean()), float(np.ptp(problem.target)) / room if room > 0.0 else 0.0)


def takes(problem: DualProblem) -> bool:
    """Whether a problem is one for sweeps in w."""
    return problem.gram.kernel.is_linear and not problem.is_hard and problem.total in (None, 0.0)


def suits(problem: DualProblem) -> bool:
    """Whether sweeps in w are tried before kernel values are computed: sparse points, too many features for Newton steps."""
    gram = problem.gram
    is_new = problem.known is None and not gram.is_complete and not linear.suits(problem)
    return is_new and takes(problem) and gram.n >= SOME and sp.issparse(gram.features)


def constant_feature(X: Any) -> float:
    """Return the value of the last feature where all points have the same, else zero.

    It makes every pair of points alike, so that coefficients one at a time come on slowly: it is treated as a bias is.
    """
    d = X.shape[1]
    if not sp.issparse(X):
        last = X[:, -1]
    else:
        ends = X.indptr[1:] - 1
        if not (np.diff(X.indptr) > 0).all() or not (X.indices[ends] == d - 1).all():
            return 0.0
        last = X.data[ends]
    return float(last[0]) if (last == last[0]).all() else 0.0


@inline
def _next_random(seed):
    """Return the next of the random numbers (Marsaglia's xorshift)."""
    seed ^= seed << np.uint64(13)
    seed ^= seed >> np.uint64(7)
    return seed ^ (seed << np.uint64(17))


@inline
def _shuffle(items, start, stop, seed):
    """Shuffle a stretch of an array (Fisher and Yates); return the seed."""
    for k in range(stop - 1, start, -1):
        seed = _next_random(seed)
        j = start + np.int64((seed >> np.uint64(33)) % np.uint64(k - start + 1))
        items[k], items[j] = items[j], items[k]
    return seed


@inline_sums
def _dense_value(values, start, stop, w):
    """Return <x, w> for a row of an array."""
    total = 0.0
    for k in range(start, stop):
        total += values[k] * w[k - start]
    return total


@inline
def _value(rows, i, w):
    """Return <x_i, w>; a few entries in sequence are faster than gathered by vector instructions."""
    if not rows.is_sparse:
        return _dense_value(rows.values, rows.starts[i], rows.stops[i], w)
    total = 0.0
    for m in range(rows.starts[i], rows.stops[i]):
        total += rows.values[m] * w[rows.indices[m]]
    return total


@inline
def _add(rows, i, change, w):
    """Add a multiple of x_i to w."""
    start = rows.starts[i]
    if rows.is_sparse:
        for m in range(start, rows.stops[i]):
            w[rows.indices[m]] += change * rows.values[m]
    else:
        for m in range(start, rows.stops[i]):
            w[m - start] += change * rows.values[m]


@inline
def ask_for(rows, i):
    """Ask for the memory of a row."""
    a, b = rows.starts[i], rows.stops[i]
    for address in range(rows.values.ctypes.data + 8 * a, rows.values.ctypes.data + 8 * b, LINE):
        prefetch(address)
    if rows.is_sparse:
        for address in range(rows.indices.ctypes.data + 4 * a, rows.indices.ctypes.data + 4 * b, LINE):
            prefetch(address)


@inline
def _shuffled(active, count, chunk, seed):
    """Return the first active points in random order, chunk by chunk of neighbours, and the seed."""
    order, starts, filled = np.empty(count, dtype=np.int64), np.arange((count + chunk - 1) // chunk), 0
    seed = _shuffle(starts, 0, starts.size, seed)
    for c in range(starts.size):
        first = starts[c] * chunk
        size = min(chunk, count - first)
        for k in range(size):
            order[filled + k] = first + k
        seed = _shuffle(order, filled, filled + size, seed)
        filled += size
    return order, seed


@jit
def _sweep(rows, problem, curvature, beta, w, bias, active, count, threshold, seeds, chunk):
    """Visit every active point once; return how many are left, in their order, and the largest violation that was met.

    A point is set aside where every way that is open to it leads up by more than the threshold.
    """
    target, ridge, lower, upper, eps = problem.target, problem.ridge, problem.lower, problem.upper, problem.eps
    order, seeds[0] = _shuffled(active, count, chunk, seeds[0])
    worst = 0.0
    for k in range(count):
        if k + AHEAD < count:
            ask_for(rows, active[order[k + AHEAD]])
        i = active[order[k]]
        x = beta[i]
        r = target[i] - _value(rows, i, w) - ridge[i] * x - (bias[0] + bias[1] * bias[2])
        up = r - (eps if x >= 0.0 else -eps) if x < upper[i] else -np.inf
        low = r - (eps if x > 0.0 else -eps) if x > lower[i] else np.inf
        if up < -threshold and low > threshold:
            active[order[k]] = -1
            continue
        violation = max(up, -low)
        if not violation > 0.0:
            continue
        worst = max(worst, violation)
        z = curvature[i] * x + r
        z = z - eps if z > eps else min(z + eps, 0.0)
        new = min(max(z / curvature[i], lower[i]), upper[i])
        change = new - x
        if change != 0.0:
            beta[i] = new
            bias[2] += change
            _add(rows, i, change, w)
    left = 0
    for k in range(count):
        if active[k] >= 0:
            active[left] = active[k]
            left += 1
    return left, worst
