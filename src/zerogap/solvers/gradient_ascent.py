"""Stochastic gradient ascent on one coefficient at a time (chapter7 §7.2, Table 7.1), and its over-relaxed form.

Symbols: r = t - (K + diag(ridge)) beta, the gradient of the dual objective but for eps; eta = learning rates, one for each
point.
The step is Table 7.1's: along the gradient, then clipped to the box.  In regression the kink of eps |beta| at zero lies in
between, a soft threshold:  beta_i <- clip(soft(beta_i + eta_i r_i, eta_i eps)).  It climbs as long as eta_i < 2 / K_ii.
With a free bias sum(beta) is fixed and no coefficient can move alone: these solvers are for a fixed bias, but for
``strip_ascent.py``, which lets the sum go off a little.  ``batch_ascent.py`` moves all coefficients by one gradient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zerogap import limits, validation
from zerogap.problem import DualProblem, arrays_of
from zerogap.solvers import batch_ascent, compiled_loops, strip_ascent
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import FINISHED, NEEDS_ROW, PAUSED, UNBOUNDED
from zerogap.solvers.pair import SMALLEST, PairState
from zerogap.solvers.passes import DIVERGED, ORDERS, PASSES, RATE, TURN, ascend, begin, rows_ahead, step_back

RATE_ADVICE = "Leave it out for 1 / K_ii, each point's own."


class OneAtATime:
    """What both solvers share; they differ in their learning rates."""

    order: str
    patience: float = 10  # a move of one coefficient does little, and the gap goes up and down on its way

    def rates(self, state: PairState) -> np.ndarray:
        """Return the learning rates of the pass that a state is in, one for each point."""
        raise NotImplementedError

    @property
    def is_timed(self) -> bool:
        """Whether the rates depend on the pass."""
        return False

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> PairState:
        """Start at beta, or at zero, with a full pass."""
        if problem.total is not None:
            raise ValueError(
                f"{str(self)!r} moves one coefficient at a time, which a free bias forbids: it fixes sum(beta). Use a solver "
                "that moves pairs, such as 'smo'; or fix the bias with fit_intercept=False, if need be on "
                'Gram(..., tau="radius"), which brings back a bias that counts in the norm (Remark 7.4).'
            )
        state = begin(problem, beta, by_pass=self.is_timed)
        self.rates(state)  # says what is wrong with them
        return state

    def step(self, problem: DualProblem, state: PairState, max_steps: int, kkt_target: float) -> tuple[PairState, Info]:
        """Make up to ``max_steps`` moves, or until after a full pass the violation is at most ``kkt_target``."""
        arrays, point, gram = arrays_of(problem), state.iterate, problem.gram
        rates, heuristic = self.rates(state), ORDERS.index(self.order)
        moved = 0
        while True:
            max_moves = max_steps - moved
            reason, count = ascend(arrays, point, gram.cache(), rates, state.memory, heuristic, max_moves, kkt_target)
            moved += count
            if reason == NEEDS_ROW and compiled_loops.fetch(gram, rows_ahead(problem, state)):
                continue
            if reason not in (PAUSED, TURN) or limits.is_over():
                break
            if reason == TURN:
                rates = self.rates(state)
        if reason == DIVERGED:
            step_back(problem, state)
        return state, Info(
            moved,
            is_done=reason == FINISHED,
            is_unbounded=reason == UNBOUNDED,
            is_divergent=reason == DIVERGED,
        )


@dataclass(frozen=True)
class GradientAscent(OneAtATime):
    """Table 7.1: each point in turn moves along its own gradient, clipped to the box.  One iteration is one such move.

    The default ``rate``, 1 / K_ii (of K + ridge), maximises exactly over each coefficient: Hildreth's method.  On the hard
    margin that is the kernel-Adatron (Remark 7.5).  A number is the same rate for every point, a sequence holds one for
    each, and a function of the pass, 0 at first, returns either: rates that change with time.  Above 2 / K_ii the dual
    objective may fall; a run whose pass loses ground ends as DIVERGED, whatever rates were to come.  Rates that fall off
    too soon end it as NO_PROGRESS.

    ``order`` is "sequential"; "free-first", which passes over the points off their bounds until these are quiet, then over
    all; or "ranked", the same with the nonzero coefficients in ascending size (Remark 7.8).

    ``batch`` is the strict gradient ascent of §7.2: all coefficients move by one gradient, then all are clipped.  One
    iteration is one such pass.  The default rate is then 1 / L, the same for all, L the largest sum of |K_ij| over a row,
    which no eigenvalue exceeds; above 2 / the largest eigenvalue a pass may lose ground, and the run ends as DIVERGED.

    ``strip`` takes problems with a free bias (§7.2): the sum may be off by zeta_t in pass t.  A number is zeta_0, and
    zeta_t = zeta_0 / (t + 1); a function of the pass returns zeta_t, which must not grow.  The point of the state is the
    best one with the right sum so far.  There is no proof that this reaches the optimum, and mostly it does not: a run
    ends as EXHAUSTED where nothing moves within the strip, as NO_PROGRESS, or where its limit is, and the certificate tells
    how near.

    Attributes
    ----------
    rate : float, sequence, callable or None
        Learning rate; None for 1 / K_ii.
    order : str
        "sequential", "free-first" or "ranked".
    batch : bool
        Whether all coefficients move by one gradient.
    strip : float, callable or None
        How far the sum may be off, for problems with a free bias.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import GradientAscent
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0, fit_intercept=False)
    >>> solve(problem, GradientAscent(rate=0.5)).status.name
    'CONVERGED'
    """

    rate: float | Sequence[float] | Callable[[int], Any] | None = None
    order: str = "sequential"
    batch: bool = False
    strip: float | Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        validation.check_choice("order", self.order, ORDERS)
        validation.check_flag("batch", self.batch)
        if validation.is_number(self.rate):
            validation.check_positive("rate", self.rate, advice=RATE_ADVICE)
        elif self.rate is not None and not callable(self.rate):  # a tuple: two solvers must be comparable
            object.__setattr__(self, "rate", tuple(_checked_rates(self.rate, None).tolist()))
        if self.strip is not None and not callable(self.strip):
            validation.check_positive("strip", self.strip, advice="It is how far the sum may be off in the first pass.")
        if self.batch and (self.order != ORDERS[0] or self.strip is not None):
            raise ValueError("batch moves all coefficients at once, so that order and strip mean nothing to it.")

    @property
    def patience(self) -> float:  # type: ignore[override]
        """How long the loop waits for progress: an iteration of a batch moves all points."""
        return 0.1 if self.batch else OneAtATime.patience

    @property
    def is_timed(self) -> bool:
        """Whether the rates depend on the pass."""
        return callable(self.rate)

    def rates(self, state: PairState) -> np.ndarray:
        """Return the learning rates of the pass that a state is in, one for each point."""
        n, memory = state.beta.size, state.memory
        if self.rate is None:
            return np.full(n, memory.numbers[RATE]) if self.batch else 1.0 / np.maximum(state.diagonal, SMALLEST)
        if not callable(self.rate):
            return _checked_rates(self.rate, n)
        when = int(memory.integers[PASSES])
        return _checked_rates(self.rate(when), n, f" in pass {when}")

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> Any:
        """Start at beta, or at zero, with a full pass."""
        if self.strip is not None:
            return strip_ascent.init(self, problem, beta)
        state = super().init(problem, beta)
        if self.batch and self.rate is None:
            state.memory.numbers[RATE] = batch_ascent.safe_rate(problem)
        return state

    def step(self, problem: DualProblem, state: Any, max_steps: int, kkt_target: float) -> tuple[Any, Info]:
        """Make up to ``max_steps`` moves, or until after a full pass the violation is at most ``kkt_target``."""
        if self.strip is not None:
            return strip_ascent.step(self, problem, state, max_steps, kkt_target)
        if self.batch:
            return batch_ascent.step(self, problem, state, max_steps, kkt_target)
        return super().step(problem, state, max_steps, kkt_target)

    def __str__(self) -> str:
        return "gradient-ascent"


@dataclass(frozen=True)
class SOR(OneAtATime):
    """Successive over-relaxation (Remark 7.6): gradient ascent with rates ``omega`` / K_ii, 0 < omega < 2.

    At 1 it is gradient ascent itself.  Above 1 every step overshoots the best value of its coefficient, which still climbs,
    and gains where neighbouring points move the same way.  ``order`` is that of GradientAscent.

    Attributes
    ----------
    omega : float
        Factor of the rates, between 0 and 2.
    order : str
        "sequential", "free-first" or "ranked".

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import SOR
    >>> problem = DualProblem.hinge(Gram([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], C=10.0, fit_intercept=False)
    >>> solve(problem, SOR(omega=1.5)).status.name
    'CONVERGED'
    """

    omega: float = 1.3
    order: str = "sequential"

    def __post_init__(self) -> None:
        validation.check_choice("order", self.order, ORDERS)
        advice = "From 2 on the dual objective does not climb."
        if validation.check_positive("omega", self.omega, advice=advice) >= 2:
            raise ValueError(f"omega must be above 0 and below 2; got omega={self.omega!r}. {advice}")

    def rates(self, state: PairState) -> np.ndarray:
        """Return omega / K_ii."""
        return self.omega / np.maximum(state.diagonal, SMALLEST)

    def __str__(self) -> str:
        return "sor"


def _checked_rates(rate: Any, n: int | None, when: str = "") -> np.ndarray:
    """Return a rate for each of n points (None: as many as there are), or refuse what cannot be one."""
    try:
        rates = np.asarray(rate, dtype=np.float64)
    except (TypeError, ValueError):
        rates = np.empty((0, 0))
    is_shape = rates.shape == (n,) or (rates.ndim == 0 and n is not None) or (rates.ndim == 1 and n is None)
    if not is_shape or not (np.isfinite(rates) & (rates > 0)).all():
        count = "one for each point" if n is None else f"one for each of {n} points"
        raise ValueError(f"rate must be a number above 0 and finite, or {count}; got {rate!r}{when}. {RATE_ADVICE}")
    return np.full(n, float(rates)) if rates.ndim == 0 else rates  # type: ignore[arg-type]
