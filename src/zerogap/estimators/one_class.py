"""The one-class machine: which points are unlike the others."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.estimators.base import KernelMachine, Outcome, are_numbers
from zerogap.kernels import UNIT, Function
from zerogap.limits import limits
from zerogap.problem import DualProblem
from zerogap.solution import Status
from zerogap.stopping import RelativeGap

# Of the largest |phi(x)|: a plane nearer to the origin goes through it, as far as float64 can tell.
NO_DISTANCE = 1e-6
ROUNDED = 64.0 * UNIT  # of the terms of a decision value: what their sum and the solution are off, some dozen roundings


@dataclass(frozen=True)
class _GapOrNoPlane(RelativeGap):
    """Stop at a relative gap, or where it is known that no plane lies between the origin and the points.

    The optimum is at most zero, the objective of f = 0, and at least the dual objective, -|f|²/2 of any feasible f.
    """

    least: float = 0.0  # the size of an objective that is zero

    def is_met(self, now: Certificate, before: Certificate | None) -> bool:
        """Whether the gap is small enough, or the optimum zero."""
        return super().is_met(now, before) or self.is_zero(now)

    def is_zero(self, now: Certificate) -> bool:
        """Whether the optimum is zero."""
        return now.dual >= -self.least


class OneClassSVM(OutlierMixin, KernelMachine):
    """One-class support vector machine with a certificate: unsupervised detection of outliers.

    A drop-in for ``sklearn.svm.OneClassSVM`` that says how far from the optimum it is.  It minimises
    1/2 |f|² - nu rho sum_i w_i + sum_i w_i max(0, rho - f(x_i)): a plane that most points are beyond, as far from the origin
    as it can be.  No more than a share ``nu`` of the points is left behind it, and no less are support vectors.

    Parameters
    ----------
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a function of two sets of points, or a kernel object with its own
        parameters.  A function may take points that are no rows of numbers, such as texts: it is then called with all of
        them, and the whole matrix is kept while fitting.
    degree : int, default 3
        Degree of the polynomial kernel.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.  In X.var() a row of
        ``sample_weight`` two counts twice.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    tol : float, default 1e-4
        Certified relative duality gap.
    nu : float, default 0.5
        Share of the points, above 0 and at most 1: an upper bound on those left behind, a lower one on support vectors.
    solver : str or Solver, default "auto"
        Name of a solver, or a configured one.
    shrinking : bool, default True
        Whether solvers that can, "auto" and "smo", set points aside that are at a bound; a configured solver has its own.
    cache_size : float, default 1000
        Memory for kernel rows in megabytes.
    max_iter : int, default -1
        Limit on the solver's steps; -1 leaves only the one that keeps a fit from crawling for ever, ten million.
    max_time : float, optional
        Limit in seconds.
    warm_start : bool, default False
        Start from the coefficients of the last fit, if the data has as many rows.
    random_state : int or RandomState, default None
        Seed of solvers that draw points at random.
    verbose : bool, default False
        Show progress on fits that take longer than a second.

    Attributes
    ----------
    support_ : array of shape (s,)
        Rows of the support vectors.
    support_vectors_ : array or CSR matrix of shape (s, d)
        The support vectors; none with a precomputed kernel, or if points are no rows of numbers.
    n_support_ : array
        Their number.
    dual_coef_ : array or CSR matrix of shape (1, s)
        Coefficients between 0 and the weight of the row, which sum to ``nu`` times all weight; CSR if the support vectors are.
    intercept_ : array of shape (1,)
        -rho.
    offset_ : array of shape (1,)
        rho: ``decision_function`` is ``score_samples`` less this.
    coef_ : array or CSR matrix
        Weights of the features, to be read only; only for the linear kernel.
    n_iter_ : int
        Steps of the solver.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution.
    duality_gap_ : float
        The relative duality gap.
    fit_status_ : int
        0 if the solution has converged, else 1; ``status_`` says more.
    shape_fit_ : tuple
        Shape of the training points.
    kernel_evaluations_ : int
        Kernel values computed.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import OneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = OneClassSVM(nu=0.1).fit(X)
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]]).tolist(), bool(model.duality_gap_ <= 1e-4)
    ([1, -1], True)
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-4,
        nu: float = 0.5,
        solver: Any = "auto",
        shrinking: bool = True,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.nu = nu
        self.solver = solver
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVM":
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.  If the kernel is a function, any
            list of points that it takes.
        y : object, optional
            Ignored; it is there for pipelines.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        OneClassSVM
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, sample_weight))

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_nu(self.nu)

    def _fit(self, X: Any, sample_weight: Any) -> "OneClassSVM":
        began = time.perf_counter()
        self._check_options()
        X = self._check_unlabelled(X)
        weight = validation.check_weights(sample_weight, X.shape[0]).copy()
        points = self._prepare(X, np.zeros(X.shape[0]), weight)
        last = self._last_coefficients() if self.warm_start else None
        start = points.gather(last) if last is not None and last.shape == weight.shape else None
        with limits(self._time_left(began)):
            problem = DualProblem.one_class(self._gram(X, points.rows), self.nu, sample_weight=points.weight)
            solution = self._solve(problem, start, "fit")
        has_plane = not self._stop(problem).is_zero(solution.certificate)
        outcome = Outcome.of(solution)
        if not has_plane and outcome.certificate.relative_gap > self.tol:
            outcome = replace(outcome, status=Status.STALLED)
        self._take(X, points.on_few(outcome.beta, weight), outcome)
        if has_plane:
            self._warn([outcome])
        else:
            self._warn_of_no_plane()
        self._release_objects()
        return self

    def _check_unlabelled(self, X: Any) -> Any:
        """Return X as ``_check_training`` does, without labels."""
        if isinstance(self._asked_kernel(), Function) and not are_numbers(X):
            return self._check_training(X, np.zeros(len(X)))[0]
        self._objects = None
        return self._check_points(X, copy=True)

    def _last_coefficients(self) -> np.ndarray | None:
        """Return the coefficients of the last fit, which may have been one without ``warm_start``."""
        last = getattr(self, "_last_beta", None)
        if last is None and hasattr(self, "dual_coef_"):
            last = np.zeros(self.shape_fit_[0])
            last[self.support_] = self._coefficients[0]
        return last

    def _stop(self, problem: DualProblem) -> _GapOrNoPlane:
        assert problem.total is not None
        reach = NO_DISTANCE * problem.total
        return _GapOrNoPlane(self.tol, 0.5 * reach * reach * float(problem.gram.diagonal.max()))

    def _warn_of_no_plane(self) -> None:
        warnings.warn(
            f"OneClassSVM found no plane between the origin and the points: with this kernel the origin is among them, as far "
            f"as nu={self.nu:g} allows, so that f is zero and its signs mean nothing. Use kernel='rbf', whose points are all "
            "on one side of the origin, or a larger nu.",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )

    def _take(self, X: Any, of_rows: np.ndarray, outcome: Outcome) -> None:
        if self.warm_start:
            self._last_beta = of_rows
        self._store_support(X, np.flatnonzero(of_rows))
        self.dual_coef_ = self._sparse_if_points_are(of_rows[None, self.support_])
        self._set_biases([outcome.bias])
        self.offset_ = -self.intercept_
        self.n_support_ = np.array([self.support_.size], dtype=np.int32)
        self.n_iter_ = outcome.n_iter
        self.certificate_, self.status_, self.trace_ = outcome.certificate, outcome.status, outcome.trace
        self.duality_gap_ = outcome.relative_gap
        self.fit_status_ = int(outcome.status is not Status.CONVERGED)
        self.kernel_evaluations_ = outcome.kernel_evaluations

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) - rho, positive for points like those of the training.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            Distances from the plane, times |f|.
        """
        now = self._twin()  # another thread may store another model meanwhile
        return now._values(X) + now._biases[0]

    def score_samples(self, X: Any) -> np.ndarray:
        """Return f(x), the decision values before ``offset_`` is taken off.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            The larger, the more like the training points.
        """
        return self._twin()._values(X)

    def predict(self, X: Any) -> np.ndarray:
        """Return on which side of the plane each point is.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            1 for points like those of the training, -1 for outliers.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1)

    def _values(self, X: Any) -> np.ndarray:
        """Return sum_i beta_i k(x_i, x)."""
        check_is_fitted(self)
        values = self._products(X, [(slice(None), self._coefficients.T)])[0][:, 0]
        return with_margin(values, self._biases[0])

    def _weights(self) -> np.ndarray:
        return np.asarray(self._coefficients @ self._moved_support())


def with_margin(values: np.ndarray, bias: Any) -> np.ndarray:
    """Return values, those of points on the margin without rounding: they are no outliers, however a sum is made.

    The last digits of a product depend on the points beside.
    """
    is_there = np.abs(values + bias) <= ROUNDED * (np.abs(values) + np.abs(bias))
    return np.where(is_there, -bias, values)
