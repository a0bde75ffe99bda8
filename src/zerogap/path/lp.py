"""Engine "lp": SVMP, the path on degenerate data by linear programs (Ong, Shao and Yang).

Symbols: as in ``increments``, but p and q are the paper's: d_p and U solve the bordered system of the elbow (27);
p = d_p'k_i - 1 and q = U'k_i (35), so that after a move (delta, beta) the slacks are slack - p delta - q'beta.
IR, SR and BR are the paper's routines: the start by SMO, the special events, and the backup by SMO.
Where its outline leaves a choice:
the sets are updated after every linear program, also one that moves nothing, else nothing would ever change;
after more than ``ell`` special events in a row the linear program has its turn, whatever they say;
of the constraints that hold with equality, those count that the move has reached or that stop it, not those that merely
held before: a point that has just entered would leave at once.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from zerogap import validation
from zerogap.gram import Gram
from zerogap.kernels import UNIT
from zerogap.path.bordered_matrix import LINEAR_SYSTEMS, Directions
from zerogap.path.engine import ELBOW, LEFT, RIGHT, Segment, balanced, optimum, segment_between
from zerogap.path.family import Family
from zerogap.path.increments import IncrementalEngine
from zerogap.path.threaded import call_in_thread
from zerogap.problem import DualProblem
from zerogap.solution import Solution, Status
from zerogap.solvers import SOLVERS, Solver, get_solver
from zerogap.stopping import KKTViolation

# What differs by less than this, relative to lam or to a coefficient's cap, is equal.
EQUAL = 1e-10

PATIENCE = 4  # backups in a row by the paper's step


@dataclass(frozen=True)
class LP:
    """Engine "lp", by the parameters of the paper's outline, with its names and values.

    Attributes
    ----------
    linear_system : str
        "svd", "qr" or "qr-update"; "svd" by default.
    epsilon_svd : float
        A singular value is zero below this times m and the largest one (26).
    epsilon_kkt : float
        Violation of (56) that calls the backup, and that the backup may leave.
    epsilon_smo : float
        Violation that the initialisation may leave (54).
    tau : float
        Rates below this count as zero, (48)-(49) and (S1)-(S4).
    tau_2 : float
        Steps in lam below this count as none.
    gamma : float
        The backup goes on at (1 - gamma) lam.
    ell : int
        So many blocked events, or special ones in a row, are put up with.
    check_kkt : bool
        Whether (56) is checked after every event.
    incremental : bool
        Whether xi is updated by (39), else it is computed by (16).
    solver : str or Solver
        Of the initialisation and the backup: "any procedure that solves DP" (section IV), the soft margin with a free bias;
        SMO by default.

    Examples
    --------
    >>> from zerogap import svm_path
    >>> from zerogap.path import LP
    >>> X, y = [[0.0], [0.0], [1.0], [3.0]], [-1, -1, -1, 1]
    >>> svm_path(X, y, C_max=10.0, engine=LP("qr", epsilon_kkt=1e-8), merge_duplicates=False).status
    'complete'
    """

    linear_system: str = "svd"
    epsilon_svd: float = 1e-14
    epsilon_kkt: float = 1e-3
    epsilon_smo: float = 1e-6
    tau: float = 1e-4
    tau_2: float = 1e-8
    gamma: float = 0.01
    ell: int = 50
    check_kkt: bool = True
    incremental: bool = True
    solver: str | Solver = "smo"

    def __post_init__(self) -> None:
        _check_solver(get_solver(self.solver))
        validation.check_choice("linear_system", self.linear_system, tuple(LINEAR_SYSTEMS))
        for name in ("epsilon_svd", "epsilon_kkt", "epsilon_smo", "tau", "tau_2", "gamma"):
            validation.check_positive(name, getattr(self, name))

    def start(
        self,
        gram: Gram,
        family: Family,
        lam: float,
        beta: np.ndarray | None = None,
        status: np.ndarray | None = None,
    ) -> "LPEngine":
        """Initialisation routine (IR): SMO, or another solver, from (55)."""
        beta = family.y * balanced(family.y, family.w) / lam if beta is None else beta
        solution = optimum(gram, family, lam, KKTViolation(self.epsilon_smo), beta, self.solver)
        return LPEngine(self, gram, family, lam, solution)

    @property
    def violation(self) -> float:
        """The violation of the optimality conditions that a path may have."""
        return max(self.epsilon_kkt, self.epsilon_smo) if self.check_kkt else np.inf

    def __str__(self) -> str:
        return f"lp, {self.linear_system}"


def _check_solver(solver: Solver) -> None:
    """Refuse a solver that cannot solve what every C of a path asks for."""
    problem = DualProblem.hinge(Gram([[0.0], [1.0]]), np.array([-1.0, 1.0]), C=1.0)
    try:
        solver.init(problem)
    except ValueError as error:
        reason = str(error).split(". ")[0].rstrip(".")  # the rest is advice for solve()
        able = ", ".join(repr(name) for name, entry in SOLVERS.items() if entry.claims(problem))
        raise ValueError(
            f"{reason}. The path starts from the soft margin with a free bias, which these can solve: {able}."
        ) from error


class LPStep(NamedTuple):
    """The solution of a linear program, and the constraints it reached."""

    delta: float
    beta: np.ndarray
    reached: np.ndarray  # (m,) of the elbow's points
    touched: np.ndarray  # (n,) of all others


class Snapshot(NamedTuple):
    """Where a step began."""

    lam: float
    b: np.ndarray
    bias: float
    status: np.ndarray


class LPEngine(IncrementalEngine):
    """SVMP's state, and one pass of its main loop."""

    def __init__(self, options: LP, gram: Gram, family: Family, lam: float, solution: Solution):
        self.options = options
        self._in_a_row = self._blocked = 0  # special events, and events that did not move lam
        self._failed_backups = 0  # backups since an event moved lam and left no violation
        self._was_solved = True  # whether the last backup reached its tolerance: where digits are missing, none does
        super().__init__(gram, family)
        self._take(lam, solution)
        self._system = LINEAR_SYSTEMS[options.linear_system](self.K, family.y, options.epsilon_svd)
        self._lam_c, self._repaired = lam, np.inf  # where a step last moved lam, and where the backup was last called

    def _take(self, lam: float, solution: Solution) -> None:
        """Take over what the solver found at lam."""
        a, problem = self.y * solution.beta, solution.problem
        alpha = np.where(a >= problem.upper - problem.lower, self.w, np.clip(lam * a, 0.0, self.w))
        self._place(lam, alpha, lam * solution.bias)

    def step(self, lam_end: float) -> tuple[Segment, float]:
        """One pass of the main loop: a special event, a linear program, or the backup."""
        self.counts.events += 1
        since = Snapshot(self.lam, self.y * self.alpha, self.bias, self.status.copy())
        E, p, q, d = self._linearise()
        self.counts.largest_null_space = max(self.counts.largest_null_space, d.null.shape[1])
        if not (self.status == LEFT).any():
            return self._finish(lam_end, E)
        if self._in_a_row <= self.options.ell and d.null.shape[1] == 0 and (moves := self._special(E, p, d.particular)):
            self._in_a_row += 1
            self.counts.special += 1
            self._assign(moves)
            return self._still(), self.lam
        self._in_a_row = 0
        move = None if self._blocked > self.options.ell else self._program(E, p, q, d, lam_end)
        if move is None:  # looping, or rounding has made the program's constraints contradict each other
            self.counts.loop_backups += 1
            return self._back_up(self._next_lam(lam_end), since)
        segment = self._update(move, E, p, q, d, lam_end)
        if self._lam_c - self.lam < self.options.tau_2 * min(1.0, self.lam):
            self._blocked += 1
        else:
            self._blocked, self._lam_c = 0, self.lam
        if self.options.check_kkt and self._violation() > self._kkt_tolerance():
            self.counts.kkt_backups += 1
            # Where it has just been called it does no good a second time: go on from a little further.
            is_worth_it = self.lam < self._repaired and self._was_solved
            lam = self.lam if is_worth_it else self._next_lam(lam_end)
            return self._back_up(lam, since)
        if self._blocked == 0:
            self._failed_backups = 0
        return segment, self.lam

    def _next_lam(self, lam_end: float) -> float:
        """Return where a backup goes on: a step of gamma is the paper's.  They grow, if none of them leads to a good event."""
        self._failed_backups += 1
        reach = min(
            self.options.gamma * 2.0 ** np.clip(self._failed_backups - PATIENCE, 0, 60), max(self.options.gamma, 0.5)
        )
        return max((1 - reach) * self.lam, lam_end)

    # The general solution (27) and what follows from it for every point (35).

    def _linearise(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, Directions]:
        E = np.array(self.elbow, dtype=np.int64)
        n = self.y.size
        if E.size == 0:  # Remark 4
            return E, np.full(n, -1.0), np.zeros((n, 0)), Directions(np.zeros(1), np.zeros((1, 0)))
        d = self._system.directions(E)
        p = self._rates(E, d.particular) - 1.0
        q = np.empty((n, 0))
        if d.null.shape[1]:
            q = self.y[:, None] * (d.null[0] + (self.K[E].T @ (self.y[E, None] * d.null[1:])))
        return E, p, q, d

    # Special-event routine (SR).

    def _special(self, E: np.ndarray, p: np.ndarray, d: np.ndarray) -> dict[int, int]:
        """Return the points that block lam by rounding alone, and the set of each, (S1)-(S4) and (57)-(60)."""
        tau, tau_2 = self.options.tau, self.options.tau_2 * min(1.0, self.lam)
        a, room, rate, xi = self.alpha[E], self.w[E] - self.alpha[E], d[1:], self.slack / self.lam
        near = tau * self.w[E]
        with np.errstate(divide="ignore", invalid="ignore"):
            up = (rate < -tau) & (room < near) & (room / rate > -tau_2)  # (S1)
            down = (rate > tau) & (a < near) & (-a / rate > -tau_2)  # (S2)
            blocks = (self.slack / p) > -tau_2
            right = (self.status == RIGHT) & (p > tau) & (-xi < tau) & blocks  # (S3)
            left = (self.status == LEFT) & (p < -tau) & (xi < tau) & blocks  # (S4)
        moves = dict.fromkeys(np.flatnonzero(right | left).tolist(), ELBOW)
        moves |= dict.fromkeys(E[up].tolist(), LEFT) | dict.fromkeys(E[down].tolist(), RIGHT)
        return moves

    # The linear program.

    def _program(self, E: np.ndarray, p: np.ndarray, q: np.ndarray, d: Directions, lam_end: float) -> LPStep | None:
        """Solve (30)-(34): in closed form if the elbow system is regular."""
        return self._simplex(E, p, q, d, lam_end) if d.null.shape[1] else self._closed_form(E, p, d.particular, lam_end)

    def _closed_form(self, E: np.ndarray, p: np.ndarray, d: np.ndarray, lam_end: float) -> LPStep:
        """The largest of the lower bounds on delta, (47)-(49)."""
        tau, rate = self.options.tau, d[1:]
        with np.errstate(divide="ignore", invalid="ignore"):
            inner = np.where(rate < -tau, (self.w[E] - self.alpha[E]) / rate, -np.inf)
            inner = np.where(rate > tau, -self.alpha[E] / rate, inner)
            counts = ((self.status == RIGHT) & (p > tau)) | ((self.status == LEFT) & (p < -tau))
            outer = np.where(counts, self.slack / p, -np.inf)
        inner, outer = np.minimum(inner, 0.0), np.minimum(outer, 0.0)
        delta = max(inner.max(initial=-np.inf), outer.max(initial=-np.inf), lam_end - self.lam)
        equal = EQUAL * self.lam
        return LPStep(float(delta), np.zeros(0), inner >= delta - equal, outer >= delta - equal)

    def _simplex(self, E: np.ndarray, p: np.ndarray, q: np.ndarray, d: Directions, lam_end: float) -> LPStep | None:
        """Solve the program by HiGHS, over (delta / lam, beta) so that its rows are of one size."""
        lam, m, others = self.lam, E.size, np.flatnonzero(self.status != ELBOW)
        sign = np.where(self.status[others] == RIGHT, -1.0, 1.0)  # (32) turned round, (33) as it is
        inner = np.column_stack([lam * d.particular[1:], d.null[1:]])
        outer = sign[:, None] * np.column_stack([lam * p[others], q[others]])
        room = [self.alpha[E], self.w[E] - self.alpha[E], np.maximum(sign * self.slack[others], 0.0)]
        result = call_in_thread(
            m + others.size,
            linprog,
            np.eye(1, inner.shape[1])[0],
            A_ub=np.concatenate([-inner, inner, outer]),
            b_ub=np.concatenate(room),
            bounds=[(lam_end / lam - 1.0, None)] + [(None, None)] * d.null.shape[1],
            method="highs-ds",
            options={
                "primal_feasibility_tolerance": 1e-10,
                "dual_feasibility_tolerance": 1e-10,
                "maxiter": 100 * (m + self.y.size + d.null.shape[1]),  # of degenerate programs some go round in circles
            },
        )
        if result.status != 0:
            return None
        had, has, blocks = np.concatenate(room), result.slack, np.abs(result.ineqlin.marginals) > EQUAL
        size = np.concatenate([self.w[E], self.w[E], np.full(others.size, max(lam, EQUAL))])
        reached = (has <= EQUAL * size) & ((had > EQUAL * size) | blocks)
        touched = np.zeros(self.y.size, dtype=bool)
        touched[others] = reached[2 * m :]
        return LPStep(min(lam * result.x[0], 0.0), result.x[1:], reached[:m] | reached[m : 2 * m], touched)

    # Updates.

    def _update(
        self, move: LPStep, E: np.ndarray, p: np.ndarray, q: np.ndarray, d: Directions, lam_end: float
    ) -> Segment:
        """Carry everything over to the end of the move, and let the points that reached a boundary change sets, (36)-(46)."""
        step = d.particular * move.delta + d.null @ move.beta  # (37)
        segment = self._move(move.delta, lam_end, E, step, (p + 1.0) * move.delta + q @ move.beta)
        # A rate below tau may have taken a coefficient past its bound: clipped (38), it is no longer free either.
        beyond = ((self.alpha[E] <= 0.0) & (step[1:] < 0)) | ((self.alpha[E] >= self.w[E]) & (step[1:] > 0))
        self.alpha[E] = np.clip(self.alpha[E], 0.0, self.w[E])
        if not self.options.incremental:
            self.slack = self.true_slack()
        leaving = E[move.reached | beyond]
        moves = {int(i): LEFT if 2 * self.alpha[i] > self.w[i] else RIGHT for i in leaving}  # (40)-(41)
        moves |= dict.fromkeys(np.flatnonzero(move.touched).tolist(), ELBOW)  # (42)-(43)
        self._assign(moves)
        return segment

    def _violation(self) -> float:
        """Return the largest violation of (56)."""
        xi = self.slack / self.lam
        violations = np.where(self.status == ELBOW, np.abs(xi), np.where(self.status == RIGHT, xi, -xi))
        return float(violations.max())

    def _kkt_tolerance(self) -> float:
        """Return the violation that is tolerated: that of rounding, if it is more than ``epsilon_kkt``."""
        size = 1.0 + float(np.abs(self.alpha).sum()) / self.lam * float(np.diagonal(self.K).max())
        return max(self.options.epsilon_kkt, 8.0 * UNIT * size)

    def _finish(self, lam_end: float, E: np.ndarray) -> tuple[Segment, float]:
        """Without a capped point nothing changes any more but in proportion to lam."""
        share = lam_end / self.lam
        step = np.concatenate([[self.bias], self.alpha[E]]) * (share - 1.0)
        segment = self._move(lam_end - self.lam, lam_end, E, step, self._rates(E, step))
        return segment, self.lam

    def _still(self) -> Segment:
        """A segment without length, which the path drops."""
        return Segment(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0), self.bias, 0.0)

    # Backup routine (BR).

    def _back_up(self, lam: float, since: Snapshot) -> tuple[Segment, float]:
        """Solve anew at lam; from the last event to there, (53) for every point that has moved."""
        sets, stop = self.status, KKTViolation(self._kkt_tolerance())
        solution = self.solve_at(lam, self.y * self.alpha, stop, self.options.solver)
        self._was_solved = solution.status is Status.CONVERGED
        self._take(lam, solution)
        self.record(sets)
        self._blocked, self._lam_c, self._repaired = 0, lam, lam
        b = self.y * self.alpha
        moved = np.flatnonzero((since.b != b) | (since.status == ELBOW))
        return segment_between(moved, since.lam, lam, since.b[moved], b[moved], since.bias, self.bias), lam
