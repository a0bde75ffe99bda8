"""What the engines of the path have in common: sets, segments, transitions, and the solution they start from.

Symbols: lam = 1/C, decreasing; b = lam beta, so 0 <= y b <= w; F = K b + bias, all scaled by lam.
excess = y F - lam, by how much a point is beyond its margin: minus the slack lam xi of ong.
Sets: right (b = 0, excess >= 0), elbow E (excess = 0), left L (y b = w, excess <= 0).
On a segment b_E = u + lam v, the scaled bias is u0 + lam v0, and F = p + lam q, so that excess = y p + lam (y q - 1).
g = K_L b_L, the bound contribution; a = y b; d and d0, the response of elbow and bias to another coefficient.

These are the letters of two classes.  In any other ``family`` the margin is where F = m0 + lam m1, m = t - y eps being the
target on the side of the tube that y tells, and excess = y (F - m); lam is what the family says, the right set is y b = low,
and g is the contribution of all points at rest.  A set of a side that is not a point's own y, of a family with two sides, is
negative: -2 at the lower cap, -1 on the lower margin, 0 inside the tube, 1 on the upper margin, 2 at the upper cap.

Letters that mean other things in ong:

    ours                                                in ong
    p, q    F = p + lam q                               p_i = y_i q - 1, the slope of the excess; q_i = U'k_i (35)
    u, v    b_E = u + lam v                             u_j, directions of the elbow that move no decision value (27)
    w       cap of y b: the weight of a point           the normal vector, here N
    b       lam beta, signed (y_i alpha^_i in ong)      the bias, minus ours: alpha^_0 = lam b is -(u0 + lam v0)
    d, d0   response to a coefficient                   d_p, rates in lam (23): y v, and -v0 for the bias
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from zerogap import limits
from zerogap.gram import Gram
from zerogap.loop import default_max_steps, solve
from zerogap.path.family import ELBOW, LEFT, RIGHT, Family
from zerogap.solution import Solution, Status
from zerogap.solvers import Solver
from zerogap.stopping import Stop

# Ten pairs a point are the rule, and a thousand are many; then exchanges, which solve for all free points at once, are cheaper.
PAIRS_PER_POINT = 30_000
EXCHANGES_PER_POINT = 50


class Segment(NamedTuple):
    """The solution between two breakpoints, linear in lam: b_E = u + (lam - anchor) v, scaled bias = u0 + (lam - anchor) v0."""

    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    u0: float
    v0: float
    anchor: float = 0.0  # the lam at which b_E = u; the end of one so short and steep that u at zero has no digits

    def coefficients(self, lam: float) -> np.ndarray:
        """Return b_E at lam."""
        return self.u + (lam - self.anchor) * self.v

    def bias(self, lam: float) -> float:
        """Return the scaled bias at lam."""
        return self.u0 + (lam - self.anchor) * self.v0


def segment_between(
    points: np.ndarray,
    lam: float,
    end: float,
    b: np.ndarray,
    b_end: np.ndarray,
    bias: float,
    bias_end: float,
    *,
    about_beginning: bool = False,
) -> Segment:
    """Return the straight line between the solutions at two lam, (53), about its end or its beginning.

    There nothing is rounded, and at the other a little is.
    """
    width = end - lam or 1.0  # the slope of a segment without length is not used
    v, v0 = (b_end - b) / width, (bias_end - bias) / width
    return Segment(points, b, v, bias, v0, lam) if about_beginning else Segment(points, b_end, v, bias_end, v0, end)


class Transition(NamedTuple):
    """A point changes sets."""

    lam: float
    point: int
    origin: int
    target: int


class Step(NamedTuple):
    """A segment, the lam at which it ends, and the transitions made there."""

    segment: Segment
    lam: float
    transitions: list[Transition]


class Log(NamedTuple):
    """Many segments, one behind another, and the transition at the end of each: as compiled code leaves them."""

    edges: np.ndarray  # where each segment begins in the next three, and where the last one ends
    points: np.ndarray
    u: np.ndarray
    v: np.ndarray
    numbers: np.ndarray  # (segments, 4) lam at the end, u0, v0, anchor
    moves: np.ndarray  # (segments, 3) point, origin, target

    @property
    def n_segments(self) -> int:
        """Number of segments."""
        return len(self.moves)

    def first(self, count: int) -> "Log":
        """Return the first segments, without memory that is not used."""
        size = int(self.edges[count])
        points, u, v = (x[:size] if 2 * size >= x.size else x[:size].copy() for x in (self.points, self.u, self.v))
        return Log(self.edges[: count + 1], points, u, v, self.numbers[:count], self.moves[:count])

    def segment(self, k: int) -> Segment:
        """Return a segment."""
        begin, end = self.edges[k : k + 2].tolist()
        return Segment(self.points[begin:end], self.u[begin:end], self.v[begin:end], *self.numbers[k, 1:].tolist())

    def transitions(self) -> list[Transition]:
        """Return the transitions at the ends of all segments."""
        return list(map(Transition, self.numbers[:, 0].tolist(), *self.moves.T.tolist()))

    def steps(self) -> list[Step]:
        """Return segments and transitions one by one."""
        return [Step(self.segment(k), made.lam, [made]) for k, made in enumerate(self.transitions())]


@dataclass
class Counts:
    """What an engine met on its way; the columns of ong's Tables II-IV, with those of its own names in brackets."""

    events: int = 0  # passes of the engine's main loop (iota_max)
    largest_elbow: int = 0  # (|E|max)
    largest_null_space: int = 0  # free directions of a singular elbow system ((m-r)max)
    special: int = 0  # calls of the special-event routine that moved a point (N_SR)
    kkt_backups: int = 0  # solved anew because the optimality conditions were violated (N_kkt)
    loop_backups: int = 0  # solved anew because nothing moved any more
    start_seconds: float = 0.0  # (t_IR)
    tracking_seconds: float = 0.0  # (t_S)


class Engine:
    """The path's state at some lam; ``step`` goes to the next event."""

    def __init__(self, gram: Gram, family: Family):
        self.gram, self.K, self.family, self.y, self.w = gram, gram.full(), family, family.y, family.w
        self.lam = np.inf
        self.status = np.zeros(family.n, dtype=np.int64)
        self.transitions: list[Transition] = []
        self.counts = Counts()

    @property
    def elbow_size(self) -> int:
        """Number of points in the elbow."""
        raise NotImplementedError

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """Go to the next event, or to ``lam_end``; return the segment passed and where it ends."""
        raise NotImplementedError

    def steps(self, lam_end: float, max_events: int) -> list[Step] | Log:
        """Go to the next event or events, at most so many; return what was passed."""
        segment, lam = self.step(lam_end)
        return [Step(segment, lam, self.take_transitions())]

    def current_solution(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return the elbow, its b, and the scaled bias, at the present lam."""
        raise NotImplementedError

    def take_transitions(self) -> list[Transition]:
        """Return the transitions since the last call."""
        taken, self.transitions = self.transitions, []
        return taken

    def solve_at(self, lam: float, b: np.ndarray, stop: Stop, solver: str | Solver = "smo") -> Solution:
        """Solve anew at lam, from the scaled coefficients of a lam near by."""
        return optimum(self.gram, self.family, lam, stop, self.family.scale(lam) * b, solver)

    def signed_status(self) -> np.ndarray:
        """Return the set of every point, negative on a side that is not its own."""
        return self.status.copy()

    def record(self, before: np.ndarray) -> None:
        """Enter the transitions that lead from other sets to the present ones."""
        now = self.signed_status()
        for i in np.flatnonzero(before != now):
            self.transitions.append(Transition(self.lam, int(i), int(before[i]), int(now[i])))


class NotStarted(limits.Exceeded):
    """A limit was reached before the solution a path starts from was optimal; it can be gone on with from ``beta``."""

    def __init__(self, beta: np.ndarray):
        super().__init__()
        self.beta = beta


class Options(Protocol):
    """How an engine is configured: frozen options that start it."""

    def start(
        self,
        gram: Gram,
        family: Family,
        lam: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> Engine:
        """Return the engine at lam, from the coefficients there, and the sets, if they are known."""


def optimum(
    gram: Gram, family: Family, lam: float, stop: Stop, beta: np.ndarray | None, solver: str | Solver = "smo"
) -> Solution:
    """Solve the problem at one lam; ``NotStarted`` if a limit is reached on the way.

    Where the solver does not get there, as pairs with weights of very different size, exchanges go on from where it is.
    """
    problem = family.problem(gram, lam)
    max_steps = min(default_max_steps(problem.n), PAIRS_PER_POINT * problem.n)
    solution = solve(problem, solver, stop=stop, resume=beta, max_steps=max_steps)
    if solution.status is not Status.CONVERGED and not limits.is_over():
        exact = solve(problem, "simple-svm", stop=stop, resume=solution.beta, max_steps=EXCHANGES_PER_POINT * problem.n)
        is_better = exact.certificate.gap < solution.certificate.gap
        solution = exact if exact.status is Status.CONVERGED or is_better else solution
    if limits.is_over():
        raise NotStarted(solution.beta)
    return solution


def balanced(y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Every point at its cap, but for the first ones of the larger class, as many as it has too many; (55) of ong."""
    alpha = w.copy()
    larger = np.flatnonzero(y * (y @ w) > 0)
    too_many = abs(y @ w) - np.concatenate([[0.0], np.cumsum(w[larger])[:-1]])
    alpha[larger] -= np.clip(too_many, 0.0, w[larger])
    return alpha


def sets_of(a: np.ndarray, w: np.ndarray, low: np.ndarray | float = 0.0) -> np.ndarray:
    """Return the set of every point from a = y b; (17) of ong."""
    return np.where(a <= low, RIGHT, np.where(a >= w, LEFT, ELBOW))
