"""What LinearSVC and LinearSVR share: a vector w for each problem, found and certified without kernel values."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from zerogap import precision, validation
from zerogap.certificate import Certificate
from zerogap.compiled import jit
from zerogap.duplicates import Distinct
from zerogap.estimators.base import KernelMachine, Outcome
from zerogap.function_gap import DECIDES, vector, vector_certificate
from zerogap.gram import Gram
from zerogap.kernels import UNIT, Linear
from zerogap.limits import unlimited
from zerogap.loop import default_max_steps, solve
from zerogap.problem import DualProblem
from zerogap.solution import Solution, Status
from zerogap.solvers.linear_cd import AHEAD, Rows, ask_for

Stored = tuple[np.ndarray, float, np.ndarray, Outcome]  # weights, intercept, coefficients, and what is known of them
LITTLE = 1.0  # megabytes for kernel rows, of which none is computed
# Where sweeps get no further, and there are no more points than that, the kernel matrix is computed after all; its megabytes.
MOST_IN_MEMORY, MEMORY = 4000, 200.0
LIMITED = (Status.MAX_TIME, Status.INTERRUPTED)
STUCK = (Status.NO_PROGRESS, Status.STALLED, Status.PRECISION)


class LinearMachine(KernelMachine):
    """Base of the linear estimators."""

    kernel, gamma, degree, coef0, solver, cache_size = "linear", "scale", 3, 0.0, "linear-cd", LITTLE
    C: float
    loss: str
    fit_intercept: bool
    intercept_scaling: float
    free_intercept: bool
    dual: Any

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_positive("C", self.C, advice='For a hard margin use SVC(kernel="linear", C=np.inf).')
        validation.check_flag("free_intercept", self.free_intercept)
        if self.fit_intercept and not self.free_intercept:
            validation.check_positive(
                "intercept_scaling", self.intercept_scaling, advice="It is the value of a constant feature."
            )
        if not (self.dual == "auto" or isinstance(self.dual, bool | np.bool_)):
            raise ValueError(
                f'dual must be "auto", True or False, which mean the same here: both problems are solved; got {self.dual!r}.'
            )

    @property
    def _is_regularised(self) -> bool:
        """Whether the intercept is the weight of a constant feature."""
        return bool(self.fit_intercept) and not self.free_intercept

    def _points_of(self, X: Any, points: Distinct) -> Gram:
        """Return the matrix of the points, with a constant feature if the intercept is the weight of one; never computed."""
        X = rows_of(X, points.rows, float(self.intercept_scaling) if self._is_regularised else 0.0)
        kernel = Linear().centred(X) if self.fit_intercept and self.free_intercept else Linear()
        return Gram.of_checked(X, kernel, LITTLE, keep_sparse=True)

    def _has_free_bias(self) -> bool:
        return bool(self.fit_intercept) and bool(self.free_intercept)

    def _solved(self, problem: DualProblem, title: str) -> Stored:
        """Return w, the intercept, the coefficients and what is known of them."""
        solution = self._solve(problem, None, title)
        if solution.status in STUCK and problem.n <= MOST_IN_MEMORY:
            solution = self._exactly(problem, solution)
        with unlimited():
            found = self._as_stored(problem, solution)
        is_short = found[-1].status in STUCK and problem.n <= MOST_IN_MEMORY and self.max_iter == -1
        return self._as_if_free(problem, found) if is_short and self._is_regularised else found

    def _as_if_free(self, problem: DualProblem, found: Stored) -> Stored:
        """Return the better of what was found and the solution with a free intercept.

        Beside a large constant feature the kernel values of all others are lost in float64, but the intercept hardly counts.
        """
        other = replace(problem, gram=Gram.of_checked(problem.gram.X[:, :-1], Linear(), MEMORY), total=0.0)
        free = solve(other, stop=self._stop(problem), max_steps=default_max_steps(problem.n))
        with unlimited():
            better = self._as_stored(problem, free, intercept=float(free.bias))
        return min(found, better, key=lambda one: one[-1].certificate.relative_gap)

    def _exactly(self, problem: DualProblem, solution: Solution) -> Solution:
        """Go on where neither sweeps nor Newton steps in w get further, with the kernel matrix in memory."""
        gram = Gram.of_checked(problem.gram.X, problem.gram.kernel, MEMORY)
        left = default_max_steps(problem.n) if self.max_iter == -1 else int(self.max_iter) - solution.n_iter
        stop, start = self._stop(problem), solution.beta
        found = solve(replace(problem, gram=gram), stop=stop, max_steps=max(left, 0), resume=start)
        found = replace(found, n_iter=found.n_iter + solution.n_iter)
        return min(solution, found, key=lambda one: one.certificate.relative_gap)

    def _as_stored(self, problem: DualProblem, solution: Solution, intercept: float | None = None) -> Stored:
        """Return weights and intercept as they predict, rounded, and the certificate of these."""
        beta, found, centre = solution.beta, Outcome.of(solution), problem.gram.kernel.centre
        X = problem.gram.features if centre is None else problem.gram.X
        X = X.toarray() if centre is not None and sp.issparse(X) else X
        v, is_other = (
            vector(X, beta, centre),
            intercept is not None,
        )  # the solution of another problem, with this intercept
        w = v.copy()
        bias, off, scale = float(solution.bias) if self._has_free_bias() else 0.0, 0.0, 0.0
        if self._is_regularised:  # its weight is a quotient, that of what is stored as far as float64 has it
            scale = float(self.intercept_scaling)
            intercept = scale * float(w[-1]) if intercept is None else intercept
            w[-1], off = intercept / scale, 2.0 * UNIT * abs(intercept)
        elif centre is not None:
            moved = _product(w, centre)
            intercept = _sum(bias, *(-part for part in moved))
            bias = _sum(intercept, *moved)
            off = UNIT * abs(bias) + 4.0 * ((w.size + 4) * UNIT) ** 2 * float(np.abs(w) @ np.abs(centre))
        else:
            intercept = bias
        if is_other or not found.certificate.is_zero:
            # Past a limit there is no time for more digits.
            decides = math.inf if found.status in LIMITED else min(DECIDES, 0.1 * self.tol)
            options: dict[str, Any] = {"centre": centre, "v": v, "enough": self.tol, "decides": decides}
            certificate = vector_certificate(problem, X, w, beta, off, bias, **options)
            found = replace(found, certificate=certificate, status=self._status(found.status, certificate))
        return w[:-1] if scale else w, intercept, beta, found

    def _status(self, status: Status, certificate: Certificate) -> Status:
        """Return how a run has ended, by the certificate of what is stored."""
        is_short = certificate.relative_gap > self.tol
        return Status.PRECISION if status is Status.CONVERGED and is_short else status

    def _keep(self, found: list[Stored], points: Distinct) -> None:
        """Store the vectors, and what is known of them."""
        w, intercepts, beta, outcomes = zip(*found, strict=True)
        self.coef_ = np.array(w)
        self.intercept_: Any = np.array(intercepts) if self.fit_intercept else 0.0
        self.dual_coef_ = points.spread(np.array(beta))
        self.n_iter_ = max(outcome.n_iter for outcome in outcomes)
        self.duality_gap_ = max(outcome.certificate.relative_gap for outcome in outcomes)
        self.fit_status_ = int(any(outcome.status is not Status.CONVERGED for outcome in outcomes))
        is_one = len(outcomes) == 1
        for name in ("certificate", "status", "trace"):
            of_all = [getattr(outcome, name) for outcome in outcomes]
            setattr(self, f"{name}_", of_all[0] if is_one else of_all)
        self._warn(outcomes)

    @property
    def coef_(self) -> Any:
        """Weights of the features."""
        if "_w" not in self.__dict__:
            raise AttributeError(f"This {type(self).__name__} has no coef_ yet: it is not fitted.")
        return self._w

    @coef_.setter
    def coef_(self, value: Any) -> None:
        self._w = value

    def _values(self, X: Any) -> np.ndarray:
        """Return <w, x> + intercept, a column for each w."""
        now = self._twin()  # another thread may store another model meanwhile
        check_is_fitted(now)
        X = now._check_points(X, reset=False)
        coef = now.coef_
        values = X @ (coef.T if coef.ndim == 2 else coef[:, None])
        return np.asarray(values.toarray() if sp.issparse(values) else values) + now.intercept_

    def densify(self) -> Any:
        """Make ``coef_`` an array again.

        Returns
        -------
        estimator
            The fitted model itself.
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def sparsify(self) -> Any:
        """Make ``coef_`` a CSR matrix, which takes less memory where most weights are zero.

        Returns
        -------
        estimator
            The fitted model itself.
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(self.coef_)
        return self


def _product(w: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Return <w, x> in twice the precision."""
    none = np.zeros(w.size)
    high, low = precision.products(x[None, :], none, w, none)
    return float(high[0]), float(low[0])


def _sum(*parts: float) -> float:
    """Return the sum, rounded once."""
    return math.fsum(parts) if abs(sum(parts)) < math.inf else sum(parts)


def rows_of(X: Any, rows: np.ndarray, constant: float) -> Any:
    """Return some rows, and behind their features a constant one if it is not zero; sparse ones stay sparse."""
    d = X.shape[1]
    more = int(constant != 0.0)
    if not sp.issparse(X):
        taken = np.full((rows.size, d + more), constant)
        taken[:, :d] = X[rows]
        return taken
    edges = np.concatenate([[0], np.cumsum(np.diff(X.indptr)[rows] + more)])
    data, indices = np.empty(edges[-1]), np.empty(edges[-1], dtype=np.int32)
    _copy_rows(Rows.of(X, False), rows, edges, constant, d, data, indices)
    return sp.csr_matrix((data, indices, edges), shape=(rows.size, d + more), copy=False)


@jit
def _copy_rows(source, rows, edges, constant, last, data, indices):
    """Copy rows of a CSR matrix, one after the other, each with a constant behind it where there is room for one."""
    for k in range(rows.size):
        if k + AHEAD < rows.size:
            ask_for(source, rows[k + AHEAD])
        m = edges[k]
        for old in range(source.starts[rows[k]], source.stops[rows[k]]):
            data[m], indices[m] = source.values[old], source.indices[old]
            m += 1
        if m < edges[k + 1]:
            data[m], indices[m] = constant, last
