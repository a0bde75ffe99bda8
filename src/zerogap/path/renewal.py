"""The lines of the elbow solved for afresh, compiled: what ``lines`` does where nothing is out of the ordinary.

Symbols: as in ``engine``.  For two classes alone: the lines of other families are about an anchor that moves, and how good they
have to be follows from the objective there.  They are left to ``lines``, and so is the line behind the last event.
"""

from typing import NamedTuple

import numpy as np

from zerogap.compiled import inline, jit
from zerogap.free_system import solve_two
from zerogap.path.rows import add_exactly
from zerogap.path.screening import NO_LIMIT, Kept, Reference, evaluate
from zerogap.path.tolerances import LEFT_OVER, ROUNDS, UNSURE, VISIBLE


class Whole(NamedTuple):
    """What a family says of all its coefficients together."""

    total0: float  # what they sum to
    total1: float
    is_hinge: bool
    lasting: int  # events after which lines are solved for afresh


class Renewed(NamedTuple):
    """Lines, all points evaluated on them, and whether they are good."""

    is_good: bool
    u: np.ndarray
    v: np.ndarray
    u0: float
    v0: float
    size: float  # of the coefficients
    kept: Kept


@jit
def renew(lam, E, points, system, capped_sum, n_capped, whole, scale, kept, room):
    """Solve the elbow's system for both coefficients of lam, with refinement, and evaluate all points."""
    K, m, n, g, m0, m1 = system.K, E.size, points.g.size, points.g, points.m0, points.m1
    x, left_over = np.empty((2, m)), np.empty((2, m))
    for k in range(m):
        i = E[k]
        x[0, k], x[1, k] = m0[i] - g[i], m1[i]
    totals = np.empty(2)
    totals[0], totals[1] = whole.total0 - capped_sum, whole.total1
    bias = _solve(system, m, x, totals)
    evaluate(K, E, x[0], x[1], bias[0], bias[1], g, room)
    worst0, worst1, missing, p, q = 0.0, 0.0, totals.copy(), room.values[0, :n], room.values[1, :n]
    for k in range(m):
        i = E[k]
        left_over[0, k], left_over[1, k] = m0[i] - p[i], m1[i] - q[i]
        worst0, worst1 = max(worst0, abs(left_over[0, k])), max(worst1, abs(left_over[1, k]))
        missing[0] -= x[0, k]
        missing[1] -= x[1, k]
    evaluated, shift, is_sure, is_level = x[1].copy(), _solve(system, m, left_over, missing), True, whole.total1 == 0.0
    for k in range(m):
        i = E[k]
        is_sure &= abs(left_over[0, k] + lam * left_over[1, k]) <= UNSURE * points.w[i]
        is_level &= m1[i] == m1[E[0]]
        x[0, k], x[1, k] = x[0, k] + left_over[0, k], x[1, k] + left_over[1, k]
    v0, bias[0], bias[1] = bias[1], bias[0] + shift[0], bias[1] + shift[1]
    if not is_sure:
        _refine(E, points, system, totals, x, bias)
    if is_level:
        bias[1] = m1[E[0]]
        for k in range(m):
            x[1, k] = 0.0
    if m == 1 and whole.total1 == 0.0:  # the sum tells it, and a small kernel value would lose its digits
        x[0, 0] = totals[0]
    if not is_sure or worst0 + lam * worst1 > VISIBLE * (LEFT_OVER * lam + scale.rounding):
        evaluate(K, E, x[0], x[1], bias[0], bias[1], g, room)
        evaluated, v0 = x[1].copy(), bias[1]
    size = 0.0
    for k in range(m):
        size += abs(x[0, k]) + lam * abs(x[1, k])
    is_good = n_capped > 0
    kept = Kept(False, K, kept.store, n, 0, Reference(E.copy(), evaluated, v0, m1[E]), NO_LIMIT, kept.since, kept.moves)
    return Renewed(is_good, x[0], x[1], bias[0], bias[1], size, kept)


@inline
def _refine(E, points, system, totals, x, bias):
    """Refine both rows of x and the biases, in place, by what is left over in twice the precision."""
    left_over, error, minus = np.empty((2, E.size)), np.empty((2, E.size)), np.empty((2, E.size))
    for _ in range(ROUNDS):
        missing = totals.copy()
        for k in range(E.size):
            i, error[0, k], error[1, k] = E[k], 0.0, 0.0
            minus[0, k], minus[1, k] = -x[0, k], -x[1, k]
            left_over[0, k], left_over[1, k] = points.m0[i] - points.g[i], points.m1[i]
            missing[0] -= x[0, k]
            missing[1] -= x[1, k]
        for r in range(2):
            add_exactly(system.K, E, minus[r], E, left_over[r], error[r])
            for k in range(E.size):
                left_over[r, k] = (left_over[r, k] - bias[r]) + error[r, k]
        shift = _solve(system, E.size, left_over, missing)
        for r in range(2):
            bias[r] += shift[r]
            for k in range(E.size):
                x[r, k] += left_over[r, k]


@inline
def _solve(system, m, x, totals):
    """Solve for both rows of x, in place; return the biases."""
    bias = totals.copy()
    solve_two(system.factor, system.forward_ones, m, system.has_border, x, bias)
    for r in range(2):
        bias[r] += system.tau * totals[r]
    return bias
