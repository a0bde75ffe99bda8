"""Support vector regression."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.duplicates import Distinct
from zerogap.estimators.base import Outcome
from zerogap.estimators.incremental import Incremental, Rows, Training, check_can_change
from zerogap.gram import Gram
from zerogap.limits import limits
from zerogap.problem import DualProblem
from zerogap.solution import Solution, Status

# C = inf, in units of the largest target over the largest k(x, x): the first C, what it grows by, and how often at most.  A
# solution is one for every larger C if its coefficients are below this share of it.
FIRST_COST, GROWTH, MOST_COSTS, BELOW_CAP = 1e6, 100.0, 4, 0.5
# What is beyond the tube, summed, is at most the gap over C, and there should be nothing: this share of tol, if it can be had.
FINER, FINEST = 1e-4, 1e-12
LEAST = 1e-100  # of that unit, where all targets are the same or k(x, x) is zero


class SVR(RegressorMixin, Incremental):
    """Support vector regression with a certificate.

    A drop-in for ``sklearn.svm.SVR`` that says how far from the optimum it is.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a deviation beyond the tube; ``np.inf`` allows none.  That is solved with a C so large that no coefficient
        reaches it, so that a larger one changes nothing; the certificate is that of this C.
    epsilon : float, default 0.1
        Half width of the tube within which deviations are free.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a function of two sets of points, or a kernel object with its own
        parameters.  A function may take points that are no rows of numbers, such as texts: it is then called with all of
        them, and the whole matrix is kept while fitting.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.  In X.var() a row of
        ``sample_weight`` two counts twice.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    loss : str, default "epsilon_insensitive"
        "epsilon_insensitive", C sum_i max(0, |y_i - f(x_i)| - epsilon), or "squared_epsilon_insensitive", C/2 times the sum of
        its squares.
    tol : float, default 1e-4
        Certified relative duality gap.
    solver : str or Solver, default "auto"
        Name of a solver, or a configured one.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero.
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
        Signed coefficients, laid out as in scikit-learn; CSR if the support vectors are.
    intercept_ : array
        The bias.
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
    >>> from zerogap import SVR
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = SVR(C=10.0, epsilon=0.05).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(1.0)) < 0.1), bool(model.duality_gap_ <= 1e-4)
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "epsilon_insensitive",
        tol: float = 1e-4,
        solver: Any = "auto",
        fit_intercept: bool = True,
        shrinking: bool = True,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: Any = False,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.  If the kernel is a function, any
            list of points that it takes.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVR
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight))

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_positive(
            "C", self.C, infinite=True, advice="Use np.inf to allow no deviation beyond the tube."
        )
        validation.check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, keep_gram: bool = False) -> "SVR":
        began = time.perf_counter()
        self._check_options()
        X, y = self._check_training(X, y, y_numeric=True, copy=True)
        y = np.array(y, dtype=np.float64)
        weight = validation.check_weights(sample_weight, X.shape[0]).copy()
        points = self._prepare(X, y, weight)
        last = self._last_coefficients() if self.warm_start else None
        start = points.gather(last) if last is not None and last.shape == y.shape else None
        with limits(self._time_left(began)):
            gram, target = self._gram(X, points.rows), y[points.rows]
            if np.isinf(self.C):
                self._cost, solution = self._solve_hard_tube(gram, target, start)
            else:
                self._cost = self.C
                solution = self._solve(self._problem(gram, target, points.weight), start, "fit")
        outcome = Outcome.of(solution)
        training = self._training = Training(Rows(X, y, weight), points, outcome.beta[None].copy())
        self._take(training, [outcome])
        if keep_gram:
            training.outcomes, training.grams = [outcome], [gram]
        else:
            self._warn([outcome])
        self._release_objects()
        return self

    def _last_coefficients(self) -> np.ndarray | None:
        """Return the coefficients of the last fit, which may have been one without ``warm_start``."""
        last = getattr(self, "_last_beta", None)
        if last is None and hasattr(self, "dual_coef_"):
            last = np.zeros(self.shape_fit_[0])
            last[self.support_] = self._coefficients[0]
        return last

    def _take(self, training: Training, outcomes: list[Outcome]) -> None:
        (outcome,), (beta,), points = outcomes, training.beta, training.points
        is_boxed = self._solved_loss == "epsilon_insensitive"  # a ridge shares coefficients by weight
        weight = training.rows.weight
        caps = self._cost * np.where(weight > 0, 1.0, 0.0) if np.isinf(self.C) else self.C * weight
        of_rows = points.on_few(beta, caps) if is_boxed else points.spread(beta)
        if self.warm_start:
            self._last_beta = of_rows
        self._store(training.rows.X, of_rows, outcome)

    def _store(self, X: Any, of_rows: np.ndarray, outcome: Outcome) -> None:
        """Keep the coefficients over all rows, and what is known of them."""
        self._store_support(X, np.flatnonzero(of_rows))
        self.dual_coef_ = self._sparse_if_points_are(of_rows[None, self.support_])
        self._set_biases([outcome.bias])
        self.n_support_ = np.array([self.support_.size], dtype=np.int32)
        self.n_iter_ = outcome.n_iter
        self.certificate_, self.status_, self.trace_ = outcome.certificate, outcome.status, outcome.trace
        self.duality_gap_ = outcome.relative_gap
        self.fit_status_ = int(outcome.status is not Status.CONVERGED)
        self.kernel_evaluations_ = outcome.kernel_evaluations

    def _pieces(self, rows: Rows, points: Distinct) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(np.arange(points.rows.size), rows.y[points.rows])]

    @property
    def _solved_loss(self) -> str:
        """The loss that is solved for: where no deviation is allowed both are the same, and this one has the bound C."""
        return "epsilon_insensitive" if np.isinf(self.C) else self.loss

    def _problem(self, gram: Gram, target: np.ndarray, weight: np.ndarray, C: float | None = None) -> DualProblem:
        build, C = getattr(DualProblem, self._solved_loss), self.C if C is None else C
        return build(gram, target, C, self.epsilon, sample_weight=weight, fit_intercept=self.fit_intercept)

    def _solve_hard_tube(self, gram: Gram, target: np.ndarray, start: np.ndarray | None) -> tuple[float, Solution]:
        """Solve with a C that grows until no coefficient is near it: the penalty is exact then, and all is within the tube.

        Where no function of the kernel is within the tube coefficients grow with C, as the dual has no bound.  A solution
        short of ``tol`` tells nothing, and a larger C is harder to solve for: it is the last.
        """
        weight = np.ones(target.size)  # a deviation that costs infinitely much has no weight
        size = float(np.abs(target - np.median(target)).max()) / max(float(gram.diagonal.max()), LEAST)
        C, finer = FIRST_COST * max(size, LEAST), self._twin()
        finer.tol = max(FINER * self.tol, FINEST)
        for k in range(MOST_COSTS):
            C *= GROWTH if k else 1.0
            solution = finer._solve(self._problem(gram, target, weight, C), start, "fit")
            start = solution.beta
            if solution.certificate.relative_gap <= self.tol:
                solution = replace(solution, status=Status.CONVERGED)
            if solution.status is not Status.CONVERGED or float(np.abs(start).max()) < BELOW_CAP * C:
                return C, solution
        return C, replace(solution, status=Status.UNBOUNDED)

    def _shortfall(self, status: Status, outcomes: Sequence[Outcome | Solution], count: int) -> str:
        if status is not Status.UNBOUNDED or not np.isinf(self.C):
            return super()._shortfall(status, outcomes, count)
        return (
            f"SVR(C=inf) found no function of this kernel within epsilon={self.epsilon:g} of every target: rows may be the "
            "same but for their targets, or the kernel too simple. Use a finite C, or a larger epsilon."
        )

    # Exact changes of a fitted model.

    def _kept_training(self) -> Training:
        self._refuse_hard_tube()
        return super()._kept_training()

    def _refuse_hard_tube(self) -> None:
        if np.isinf(self.C):
            raise ValueError(
                "The rows of SVR(C=inf) cannot come and go one by one: without a bound on the coefficients there is no exact "
                "way from one model to the next. Use a finite C, or fit the model to the rows you want."
            )

    @available_if(check_can_change)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
        """Add rows to those seen so far, and go to the exact optimum of them all by a few exchanges.

        The model is the one ``fit`` would give on all rows with the kernel's parameters of the first call: ``gamma="scale"``
        is computed there.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            More points.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVR
            The fitted model itself.
        """
        self._check_options()
        self._refuse_hard_tube()
        self._check_more(X)
        if not hasattr(self, "support_"):
            return self._first_fit(X, y, sample_weight, self.max_time)
        training = self._kept_training()
        X, y = self._check_points(X, y, y_numeric=True, reset=False)
        more = Rows(X, np.asarray(y, dtype=np.float64), validation.check_weights(sample_weight, X.shape[0]))
        return self._change(training, lambda model: training.add(model, more))

    @available_if(check_can_change)
    def forget(self, indices: Any) -> "SVR":
        """Take rows out of the model, as if they had never been seen.

        Rows that remain keep their order and are counted anew from zero.

        Parameters
        ----------
        indices : int, array of int, or mask
            Rows among those that the model holds, in the order they came.

        Returns
        -------
        SVR
            The fitted model itself.
        """
        check_is_fitted(self)
        self._check_options()
        training = self._kept_training()
        kept = self._check_forgotten(training, indices)
        if not training.rows.weight[kept].any():
            raise ValueError("Without these rows no point is left to fit. Add rows with partial_fit first.")
        return self._change(training, lambda model: training.forget(model, kept))

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            Predicted targets.
        """
        now = self._twin()  # another thread may store another model meanwhile
        check_is_fitted(now)
        return now._products(X, [(slice(None), now._coefficients.T)])[0][:, 0] + now._biases[0]

    def _weights(self) -> np.ndarray:
        return np.asarray(self._coefficients @ self._moved_support())
