"""Gaussian process regression."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import KernelMachine
from zerogap.gram import Gram
from zerogap.limits import limits
from zerogap.problem import DualProblem
from zerogap.solvers import Cholesky, ConjugateGradient
from zerogap.solvers.cholesky import Factor
from zerogap.solvers.conjugate_gradient import Nystrom, log_determinant, solve_columns

SMALL_CACHE = 1.0  # megabytes
COLUMNS = 256  # test points whose deviations are computed together: they share the kernel values of every product


class GaussianProcessRegressor(RegressorMixin, KernelMachine):
    """Gaussian process regression with a certificate (chapter7 §7.6).

    The mean is f(x) = k(x)'beta with (K + noise I) beta = y; hyperparameters are taken as given.  The same model as
    ``sklearn.gaussian_process.GaussianProcessRegressor(kernel, alpha=noise, optimizer=None)``.

    Parameters
    ----------
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    noise : float, default 0.1
        Variance of the observations, added to the diagonal of the kernel matrix.
    solver : "cholesky" or "cg", default "cholesky"
        A factor of the whole matrix, in O(n³) time and O(n²) memory whatever the ``cache_size``; or conjugate gradient, in
        O(n²) time for each of some tens of iterations, and with as little memory as ``cache_size`` says.
    tol : float, default 1e-10
        Certified relative duality gap: how closely Skilling's bounds enclose y'(K + noise I)^-1 y.  No prediction is further
        from the exact one than sqrt(2 certificate_.gap k(x, x)).
    std_tol : float, default 1e-10
        With "cg", how far a predicted variance may be above the exact one, as a part of the prior variance k(x, x).
    normalize_y : bool, default False
        Fit to targets of mean 0 and variance 1.
    preconditioner : "nystrom" or None, default "nystrom"
        With "cg": ``rank`` kernel rows, chosen greedily, stand for the matrix; far fewer iterations then.
    rank : int, default 300
        Kernel rows of the preconditioner.
    cache_size : float, default 1000
        Memory for kernel rows in megabytes; with "cg", what does not fit is computed anew for every product.
    max_iter : int, default -1
        Limit on the products of "cg"; -1 is none.
    max_time : float, optional
        Limit in seconds for "cg".
    verbose : bool, default False
        Show progress on fits that take longer than a second.

    Attributes
    ----------
    dual_coef_ : array of shape (1, n)
        The coefficients beta.
    support_vectors_ : array of shape (n, d)
        The training points.
    support_ : array of shape (n,)
        All their indices.
    log_marginal_likelihood_ : float
        Of the (normalised) targets; with "cg" see :meth:`log_marginal_likelihood`.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution.
    duality_gap_ : float
        The relative duality gap.
    n_iter_ : int
        Steps of the solver.
    kernel_evaluations_ : int
        Kernel values computed.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import GaussianProcessRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> model = GaussianProcessRegressor(noise=0.01).fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.0], [20.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.01), bool(std[1] > 0.99)
    (True, True)
    """

    random_state = None  # nothing in a fit is random

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        noise: float = 0.1,
        solver: str = "cholesky",
        tol: float = 1e-10,
        std_tol: float = 1e-10,
        normalize_y: bool = False,
        preconditioner: str | None = "nystrom",
        rank: int = 300,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.noise = noise
        self.solver = solver
        self.tol = tol
        self.std_tol = std_tol
        self.normalize_y = normalize_y
        self.preconditioner = preconditioner
        self.rank = rank
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose

    def _chosen_solver(self) -> Any:
        validation.check_choice("solver", self.solver, ("cholesky", "cg"))
        return Cholesky() if self.solver == "cholesky" else ConjugateGradient(self.preconditioner, self.rank)

    def fit(self, X: Any, y: Any) -> "GaussianProcessRegressor":
        """Fit the model.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Targets.

        Returns
        -------
        GaussianProcessRegressor
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y))

    def _fit(self, X: Any, y: Any) -> "GaussianProcessRegressor":
        self._check_options()
        validation.check_positive("std_tol", self.std_tol, advice="It is a part of the prior variance.")
        X, y = self._check_points(X, y, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._y_mean, self._y_scale = 0.0, 1.0
        if self.normalize_y:
            self._y_mean, self._y_scale = float(y.mean()), float(y.std()) or 1.0
        self._fix_kernel(X)
        with limits(self.max_time):
            gram = self._training_gram(X)
            problem = DualProblem.gaussian_process(gram, (y - self._y_mean) / self._y_scale, self.noise)
            solution = self._solve(problem, None, "fit")
        self._warn([solution])

        self._store_support(X, np.arange(y.size))
        self._factor: Factor | None = getattr(solution.state, "factor", None)
        self._precondition: Nystrom | None = getattr(solution.state, "precondition", None)
        self._training_matrix, self._target, self._ridge = gram, problem.target, problem.ridge
        self.dual_coef_ = solution.beta[None]
        self.n_iter_ = solution.n_iter
        self.certificate_, self.status_, self.trace_ = solution.certificate, solution.status, solution.trace
        self.duality_gap_ = solution.certificate.relative_gap
        self.kernel_evaluations_ = problem.gram.evaluations
        return self

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        gram = state.pop("_training_matrix", None)  # kernel values can be computed again, unless they are the user's
        if gram is not None and self._is_precomputed:
            state["_matrix"] = gram.X
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        matrix = state.pop("_matrix", None)
        super().__setstate__(state)
        if "_kernel" in state and "_training_matrix" not in state:
            self._training_matrix = self._training_gram(self.support_vectors_ if matrix is None else matrix)

    def _training_gram(self, X: Any) -> Gram:
        # The factor takes the place of the matrix; rows kept besides would only double the memory.
        return self._gram(X, np.arange(X.shape[0]), self.cache_size if self.solver == "cg" else SMALL_CACHE)

    # Predictions.

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Return the mean at every row of X, and if asked the standard deviation or the covariance of f there.

        The noise of the observations is not part of it.  With "cg" the variances are never below the exact ones, and at
        most ``std_tol`` times the prior variance above.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        return_std, return_cov : bool, default False
            Whether to return standard deviations, or the covariance matrix; not both.

        Returns
        -------
        array of shape (n,), or a tuple of it and an array of shape (n,) or (n, n)
            The mean, and the deviations or the covariance.
        """
        return self._twin()._predict(X, return_std, return_cov)  # another thread may store another model meanwhile

    def _predict(self, X: Any, return_std: bool, return_cov: bool) -> Any:
        if return_std and return_cov:
            raise ValueError("Ask for return_std or return_cov, not for both: the deviations are on cov's diagonal.")
        check_is_fitted(self)
        if (return_std or return_cov) and self._is_precomputed:
            raise ValueError(
                "Deviations need k(x, x) of the new points, which a precomputed kernel does not tell. "
                "Pass the kernel as a function instead, or predict the mean alone."
            )
        if return_cov:
            return self._mean_and_covariance(X)
        means, variances = [], []
        for part, K in self._kernel_values(X):
            means.append(K @ self.dual_coef_[0])
            if return_std:
                prior = self._prior(X, part)
                variances.append(prior - self._explained(np.ascontiguousarray(K.T), prior))
        mean = self._y_mean + self._y_scale * np.concatenate(means)
        if not return_std:
            return mean
        # Rounding can make a variance that is all but zero negative.
        return mean, self._y_scale * np.sqrt(np.maximum(np.concatenate(variances), 0.0))

    def _prior(self, X: Any, part: slice) -> np.ndarray:
        """Return k(x, x) for some rows."""
        return self._kernel.checked_diagonal(self._check_points(X, reset=False)[part])

    def _explained(self, V: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """Return v'(K + noise I)^-1 v for every column of V (n, m), the lower bound on it if by conjugate gradient."""
        if self._factor is not None:
            half = self._factor.half_solve(V)
            return np.einsum("ij,ij->j", half, half)
        found = [
            self._solve_columns(V[:, a : a + COLUMNS], prior[a : a + COLUMNS]) for a in range(0, V.shape[1], COLUMNS)
        ]
        return np.concatenate([np.einsum("ij,ij->j", U, W) for U, W in found])

    def _solve_columns(self, V: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return U ~ C^-1 V and V + R, where R = V - C U: U'(V + R) is below V'C^-1 V by R'C^-1 R, of second order only."""
        solved = solve_columns(self._training_matrix, self._ridge, V, self.std_tol * prior, self._precondition)
        worst = float((solved.gap / prior).max(initial=0.0))
        if worst > self.std_tol:
            warnings.warn(
                f"Predicted variances may be {worst:.1g} of the prior variance too large, not the std_tol={self.std_tol:g} "
                "asked for: rounding errors hold conjugate gradient up. Raise std_tol or noise, or use solver='cholesky'.",
                ConvergenceWarning,
                stacklevel=validation.callers_level(),
            )
        return solved.x, V + solved.residual

    def _mean_and_covariance(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        V = np.ascontiguousarray(np.concatenate([K for _, K in self._kernel_values(X)]).T)
        X = self._check_points(X, reset=False)
        prior = self._kernel(X, X)
        if self._factor is not None:
            half = self._factor.half_solve(V)
            explained = half.T @ half
        else:
            U, W = self._solve_columns(V, np.diagonal(prior))
            explained = 0.5 * (U.T @ W + W.T @ U)
        mean = self._y_mean + self._y_scale * (self.dual_coef_[0] @ V)
        return mean, self._y_scale**2 * (prior - explained)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Return values of functions drawn from the posterior.

        Parameters
        ----------
        X : array of shape (n, d)
            Points.
        n_samples : int, default 1
            Number of functions.
        random_state : int, RandomState or None, default 0
            Source of randomness.

        Returns
        -------
        array of shape (n, n_samples)
            One function a column.
        """
        mean, covariance = self.predict(X, return_cov=True)
        return check_random_state(random_state).multivariate_normal(mean, covariance, n_samples).T

    # Evidence.

    @property
    def log_marginal_likelihood_(self) -> float:
        """Logarithm of the probability density of the (normalised) targets."""
        check_is_fitted(self)
        if self._factor is None:
            raise AttributeError(
                "The log marginal likelihood needs the determinant of the matrix, which conjugate gradient does not compute. "
                "Call log_marginal_likelihood('lanczos') for an estimate or log_marginal_likelihood() for the exact value, or "
                "fit with solver='cholesky'."
            )
        return self.log_marginal_likelihood()

    def log_marginal_likelihood(
        self, method: str = "cholesky", *, n_probes: int = 20, random_state: Any = 0, return_error: bool = False
    ) -> Any:
        """Return -1/2 (y'(K + noise I)^-1 y + log det(K + noise I) + n log 2 pi).

        Parameters
        ----------
        method : str, default "cholesky"
            "cholesky" is exact and takes the whole matrix, of which a fit by "cholesky" has the factor already; "lanczos",
            after a fit by "cg", estimates the determinant from products with random vectors.
        n_probes : int, default 20
            Their number.
        random_state : int, RandomState or None, default 0
            Their source.
        return_error : bool, default False
            Whether to return the standard error too.

        Returns
        -------
        float, or a tuple of two
            The logarithm of the density of the (normalised) targets, and its standard error.
        """
        check_is_fitted(self)
        validation.check_choice("method", method, ("cholesky", "lanczos"))
        error = 0.0
        if method == "cholesky" or self._factor is not None:
            factor = self._factor or Factor(self._training_matrix, self._ridge)
            determinant = factor.log_determinant()
        else:
            rng = check_random_state(random_state)
            determinant, error = log_determinant(self._training_matrix, self._ridge, self._precondition, n_probes, rng)
        # y'C^-1 y is twice the optimal value; the dual is below it by no more than the gap.
        value = -self.certificate_.dual - 0.5 * (determinant + self._target.size * np.log(2 * np.pi))
        return (value, 0.5 * error) if return_error else value

    def _weights(self) -> np.ndarray:
        return np.asarray(self._y_scale * self.dual_coef_ @ self.support_vectors_)
