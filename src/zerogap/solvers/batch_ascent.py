"""Strict gradient ascent (chapter7 §7.2): all coefficients move by one gradient, then all are clipped to the box.

Symbols as in ``gradient_ascent.py``: a pass is beta <- clip(soft(beta + eta r, eta eps)), one product with the matrix.
Along a change d the dual objective gains d'r - d'(K + diag(ridge)) d / 2 less what eps takes.  With one rate eta for all
points that is at least (1/eta - lambda/2) |d|², lambda the largest eigenvalue: positive below 2 / lambda.
"""

from typing import TYPE_CHECKING

import numpy as np

from zerogap import limits
from zerogap.kernels import UNIT
from zerogap.problem import DualProblem
from zerogap.solvers import passes
from zerogap.solvers.base import Info
from zerogap.solvers.compiled_loops import LARGEST, VALUES_PER_QUESTION
from zerogap.solvers.pair import SMALLEST, PairState

if TYPE_CHECKING:
    from zerogap.solvers.gradient_ascent import GradientAscent

WORK_PER_STEP = 100_000_000  # products of two numbers, some hundredths of a second


def safe_rate(problem: DualProblem) -> float:
    """Return 1 / L, L the largest row sum of |K| + ridge, which bounds every eigenvalue: half of what a rate may be."""
    gram, n = problem.gram, problem.n
    at_once = max(1, VALUES_PER_QUESTION // n)
    sums = np.empty(n)
    for start in range(0, n, at_once):
        limits.check()
        rows = np.arange(start, min(n, start + at_once))
        if gram.holds_all:
            gram.fetch(rows)
        sums[rows] = np.abs(gram.block(rows)).sum(axis=1)
    return 1.0 / max(float((sums + problem.ridge).max()), SMALLEST)


def step(
    solver: "GradientAscent", problem: DualProblem, state: PairState, max_steps: int, kkt_target: float
) -> tuple[PairState, Info]:
    """Make up to ``max_steps`` passes, or until the violation is at most ``kkt_target``."""
    beta, residual, memory = state.beta, state.residual, state.memory
    most = max(1, min(max_steps, WORK_PER_STEP // problem.n**2))
    for taken in range(most):
        rates = solver.rates(state)
        new = moved(problem, beta, residual, rates)
        change = new - beta
        if not change.any():
            return state, Info(taken, is_done=True)
        if np.abs(new).max() > LARGEST:
            is_safe = solver.rate is None
            return state, Info(taken, is_unbounded=is_safe, is_divergent=not is_safe)
        try:
            product = problem.gram.dot(change) + problem.ridge * change
        except limits.Exceeded:
            return state, Info(taken)
        taken_by_eps = problem.eps * (np.abs(new) - np.abs(beta))
        gain = float(change @ (residual - 0.5 * product) - taken_by_eps.sum())
        size = float(np.abs(change) @ (np.abs(residual) + np.abs(product) + problem.eps))
        if not gain > -4.0 * (problem.n + 4) * UNIT * size:  # a loss that rounding cannot explain; NaN beyond float64
            return state, Info(taken, is_divergent=True)
        beta[:] = new
        residual -= product
        state.up_offset[:], state.low_offset[:] = problem.up_offset(beta), problem.low_offset(beta)
        memory.integers[passes.PASSES] += 1
        memory.integers[passes.VISITS] += problem.n
        b_up, b_low = problem.bias_interval(beta, residual)
        if max(b_up, 0.0) - min(b_low, 0.0) <= kkt_target or limits.is_over():
            return state, Info(taken + 1)
    return state, Info(most)


def moved(problem: DualProblem, beta: np.ndarray, residual: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return all coefficients after a pass."""
    up, down = beta + rates * (residual - problem.eps), beta + rates * (residual + problem.eps)
    new = np.where(up > 0, up, np.where(down < 0, down, 0.0))
    return np.clip(new, problem.lower, problem.upper)
