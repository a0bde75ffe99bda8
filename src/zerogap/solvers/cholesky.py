"""Gaussian processes by the direct solution of (K + diag(ridge)) beta = y (chapter7 §7.6)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from scipy.linalg.blas import dsymv, dtrsm
from scipy.linalg.lapack import dpotrf

from zerogap import limits
from zerogap.gram import Gram
from zerogap.problem import DualProblem
from zerogap.solvers.base import Info
from zerogap.solvers.conjugate_gradient import refuse_constraints

AT_ONCE = 2000  # points: a matrix up to this size is factored in one call
PANEL = 256  # columns of a larger one between two questions whether the limit is over


class Factor:
    """Cholesky factor L of C = K + diag(ridge), in the memory of one matrix: L below the diagonal, K still above it."""

    def __init__(self, gram: Gram, ridge: np.ndarray):
        K = gram.matrix().T  # symmetric, so this is K in the column order LAPACK wants
        K[np.diag_indices_from(K)] = gram.diagonal + ridge
        self._array, self._diagonal = K, gram.diagonal
        if not _factor(K):
            raise ValueError(
                f"The kernel matrix plus {ridge.min():g} on its diagonal is not positive definite in float64. "
                "Raise noise, or choose a kernel that is an inner product."
            )

    def __deepcopy__(self, memo: object) -> "Factor":
        return self  # nothing changes it

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Return C^-1 right."""
        return scipy.linalg.cho_solve((self._array, True), right, check_finite=False)

    def half_solve(self, right: np.ndarray) -> np.ndarray:
        """Return L^-1 right."""
        return scipy.linalg.solve_triangular(self._array, right, lower=True, check_finite=False)

    def kernel_times(self, beta: np.ndarray) -> np.ndarray:
        """Return K beta, from the triangle the factor left alone."""
        return dsymv(1.0, self._array, beta, lower=0) + (self._diagonal - np.diagonal(self._array)) * beta

    def log_determinant(self) -> float:
        """Return log det C."""
        return 2.0 * float(np.log(np.diagonal(self._array)).sum())


def _factor(K: np.ndarray) -> bool:
    """Put L with K = L L' below the diagonal of K, panel by panel; return whether K is positive definite.

    The columns of a panel take off what those to their left explain, then the panel is factored by itself.  K is in column
    order, and stays as it is above its diagonal.
    """
    n = len(K)
    if n <= AT_ONCE:
        K[:], info = dpotrf(K, lower=1, clean=0, overwrite_a=1)
        return info == 0
    for a in range(0, n, PANEL):
        limits.check()
        b = min(a + PANEL, n)
        left = K[a:b, :a]
        corner, info = dpotrf(np.tril(K[a:b, a:b] - left @ left.T), lower=1, clean=0)
        if info:
            return False
        below = dtrsm(1.0, corner, K[b:, a:b] - K[b:, :a] @ left.T, side=1, lower=1, trans_a=1)
        K[b:, a:b] = below
        own = np.tril_indices(b - a)
        K[a:b, a:b][own] = corner[own]
    return True


class CholeskyState(NamedTuple):
    """The point and the factor; arrays are updated in place."""

    beta: np.ndarray
    residual: np.ndarray
    factor: Factor


@dataclass(frozen=True)
class Cholesky:
    """Factor the whole matrix, then solve; further iterations refine the solution with what it leaves over.

    O(n³) time, and one (n, n) array whatever the budget of the Gram matrix.  For Gaussian processes, problems without a box.

    Examples
    --------
    >>> from zerogap import DualProblem, Gram, solve
    >>> from zerogap.solvers import Cholesky
    >>> problem = DualProblem.gaussian_process(Gram([[0.0], [1.0], [2.0], [3.0]]), [0.0, 1.0, 0.0, 1.0], noise=0.1)
    >>> solve(problem, Cholesky()).status.name
    'CONVERGED'
    """

    def init(self, problem: DualProblem, beta: np.ndarray | None = None) -> CholeskyState:
        """Start at beta, or at zero, with the factor computed."""
        refuse_constraints(problem, "The Cholesky factor")
        beta = np.zeros(problem.n) if beta is None else np.array(beta, dtype=np.float64)
        factor = Factor(problem.gram, problem.ridge)
        return CholeskyState(beta, _residual(problem, factor, beta), factor)

    def step(
        self, problem: DualProblem, state: CholeskyState, max_steps: int, kkt_target: float
    ) -> tuple[CholeskyState, Info]:
        """Solve for the residual, once; done when that no longer makes it smaller."""
        beta = state.beta + state.factor.solve(state.residual)
        residual = _residual(problem, state.factor, beta)
        if np.linalg.norm(residual) > 0.5 * np.linalg.norm(state.residual):
            return state, Info(0, is_done=True)
        state.beta[:], state.residual[:] = beta, residual
        return state, Info(1)

    def __str__(self) -> str:
        return "cholesky"


def _residual(problem: DualProblem, factor: Factor, beta: np.ndarray) -> np.ndarray:
    return problem.target - factor.kernel_times(beta) - problem.ridge * beta
