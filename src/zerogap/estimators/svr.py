"""Support vector regression."""

import time
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from zerogap import validation
from zerogap.estimators.base import KernelMachine
from zerogap.limits import limits
from zerogap.problem import DualProblem


class SVR(RegressorMixin, KernelMachine):
    """Support vector regression with a certificate.

    A drop-in for ``sklearn.svm.SVR``; parameters and attributes are those of :class:`zerogap.SVC`, and

    Parameters
    ----------
    C : float, default 1.0
        Cost of a deviation beyond the tube.
    epsilon : float, default 0.1
        Half width of the tube within which deviations are free.
    loss : "epsilon_insensitive" or "squared_epsilon_insensitive"
        C sum_i max(0, |y_i - f(x_i)| - epsilon), or C/2 times the sum of its squares.
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
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVR":
        """Fit the model to points X (n, d) with targets y; a sample weight of two is the point twice."""
        began = time.perf_counter()
        self._check_options()
        validation.check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))
        X, y = self._check_points(X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        weight = validation.check_weights(sample_weight, X.shape[0])
        points = self._prepare(X, y, weight)
        last = getattr(self, "_last_beta", None) if self.warm_start else None
        start = points.gather(last) if last is not None and last.shape == y.shape else None
        with limits(self._time_left(began)):
            problem = getattr(DualProblem, self.loss)(
                self._gram(X, points.rows),
                y[points.rows],
                self.C,
                self.epsilon,
                sample_weight=points.weight,
                fit_intercept=self.fit_intercept,
            )
            solution = self._solve(problem, start, "fit")
        self._warn([solution])
        beta = points.spread(solution.beta)
        if self.warm_start:
            self._last_beta = beta

        self._store_support(X, np.flatnonzero(beta))
        self.dual_coef_ = beta[None, self.support_]
        self._set_biases([solution.bias])
        self.n_support_ = np.array([self.support_.size], dtype=np.int32)
        self.n_iter_ = solution.n_iter
        self.certificate_, self.status_, self.trace_ = solution.certificate, solution.status, solution.trace
        self.duality_gap_ = solution.certificate.relative_gap
        self.kernel_evaluations_ = problem.gram.evaluations
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x) for every row."""
        parts = [K @ self.dual_coef_[0] for _, K in self._kernel_values(X)]
        return np.concatenate(parts) + self._biases[0]

    def _weights(self) -> np.ndarray:
        return np.asarray(self.dual_coef_ @ self._kernel.moved(self.support_vectors_))
