"""Slow, obvious versions of what the package computes, as oracles."""

import functools
from collections.abc import Callable
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
from numba import njit

from zerogap import DualProblem, Path, Solution, Status

UNIT = 2.0**-53  # unit roundoff


@functools.cache
def from_python(helper: Any) -> Callable[..., Any]:
    """A helper of compiled functions, so that a test can call it; compiled once."""
    return njit(error_model="numpy")(helper.py_func)


def sum_rounding(n: int, *terms: float) -> float:
    """Bound on how far apart two float64 sums of the same n terms are, whose sizes add up to the given ones, in any order."""
    return 2 * (n + 2) * UNIT * sum(terms)


def rbf_rounding(X: np.ndarray, gamma: float) -> float:
    """Bound on how far apart two float64 values of exp(-gamma |x - z|²) are, if |x|² + |z|² - 2 <x, z> is how one computes it.

    Each of the three is a sum of d products, none larger than the largest |x|²; what they are off, the exponential is off.
    """
    square = float((X**2).sum(axis=1).max())
    return 2 * (X.shape[1] + 8) * UNIT * (1 + 4 * gamma * square)


def matrix(problem: DualProblem) -> np.ndarray:
    """K + diag(ridge), every entry by the kernel's definition."""
    K = (
        problem.gram.kernel(problem.gram.X, problem.gram.X)
        if problem.gram.kernel.name != "precomputed"
        else problem.gram.X
    )
    return K + np.diag(problem.ridge)


def reference_objective(problem: DualProblem) -> float:
    """Return the least D(beta), by a general interior-point QP solver; solvers that share a problem share its reference."""
    arrays = (matrix(problem), problem.target, problem.lower, problem.upper)
    key = (*(array.tobytes() for array in arrays), problem.eps, problem.total)
    if key not in _references:
        _references[key] = _reference_objective(problem)
    return _references[key]


_references: dict[tuple, float] = {}


def _reference_objective(problem: DualProblem) -> float:
    """Solve the QP.

    beta = A x with x >= 0: a coefficient that can be positive has an x of its own, one that can be negative another.
    """
    up, down = np.flatnonzero(problem.upper > 0), np.flatnonzero(problem.lower < 0)
    A = np.concatenate([np.eye(problem.n)[:, up], -np.eye(problem.n)[:, down]], axis=1)
    cap = np.concatenate([problem.upper[up], -problem.lower[down]])
    finite = np.isfinite(cap)
    m = cap.size
    rows, bounds = [-np.eye(m), np.eye(m)[finite]], [np.zeros(m), cap[finite]]
    cones = [clarabel.NonnegativeConeT(m + int(finite.sum()))]
    if problem.total is not None:
        rows.insert(0, A.sum(axis=0)[None])
        bounds.insert(0, np.array([problem.total]))
        cones.insert(0, clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sp.triu(sp.csc_matrix(A.T @ matrix(problem) @ A), format="csc")
    constraints = sp.csc_matrix(np.concatenate(rows))
    solution = clarabel.DefaultSolver(
        P, problem.eps - A.T @ problem.target, constraints, np.concatenate(bounds), cones, settings
    ).solve()
    # Asked for more digits than it has, it may end short of them: what counts is that its own two bounds agree.
    assert abs(solution.obj_val - solution.obj_val_dual) <= 1e-8 * max(1.0, abs(solution.obj_val)), solution.status
    return solution.obj_val


def gap_of_rounding(problem: DualProblem, beta: np.ndarray) -> float:
    """What the gap can be where no residual is known better than rounding allows: that, times the boxes of the free points.

    A run ends when the KKT violation is ten roundings of the residual, and may then be a few times that.
    """
    free = (beta > problem.lower) & (beta < problem.upper) & (beta != 0)
    return 100.0 * problem.rounding(beta) * float((problem.upper - problem.lower)[free].sum())


def assert_optimal(solution: Solution, problem: DualProblem) -> None:
    """Converged to a gap of 1e-8, feasible, and with the reference's objective, whose own two bounds agree to 1e-8."""
    assert solution.status is Status.CONVERGED
    assert solution.certificate.relative_gap <= 1e-8
    reference = reference_objective(problem)
    assert abs(objective(problem, solution.beta) - reference) <= 2e-8 * max(1.0, abs(reference))
    assert (solution.beta >= problem.lower).all()
    assert (solution.beta <= problem.upper).all()
    assert abs(solution.certificate.sum_residual) <= 1e-12 * max(1.0, np.abs(solution.beta).sum())


def objective(problem: DualProblem, beta: np.ndarray) -> float:
    return 0.5 * beta @ matrix(problem) @ beta - problem.target @ beta + problem.eps * np.abs(beta).sum()


def primal(problem: DualProblem, beta: np.ndarray, bias: float, loss) -> float:
    """1/2 |f|² + sum of losses of t - f(x) - b, the loss given as the textbook writes it."""
    K = matrix(problem) - np.diag(problem.ridge)
    return 0.5 * beta @ K @ beta + sum(loss(i, r) for i, r in enumerate(problem.target - K @ beta - bias))


def violation(problem: DualProblem, beta: np.ndarray) -> float:
    """Largest violation of the optimality conditions, point by point."""
    r = problem.target - matrix(problem) @ beta
    below, above = -np.inf, np.inf
    for i, b in enumerate(beta):
        if b < problem.upper[i]:
            below = max(below, r[i] - problem.eps * (1 if b >= 0 else -1))
        if b > problem.lower[i]:
            above = min(above, r[i] - problem.eps * (1 if b > 0 else -1))
    if problem.total is None:
        below, above = max(below, 0.0), min(above, 0.0)
    return max(below - above, 0.0)


def values_along(path: Path, count: int, seed: int = 0) -> np.ndarray:
    """Values of all sizes within a path, its ends among them."""
    share = np.append(np.random.default_rng(seed).uniform(size=count), [0.0, 1.0])
    first, last = path.value_of(path.lam[[0, -1]])
    return first * (last / first) ** share if path.parameter == "C" else first + share * (last - first)
