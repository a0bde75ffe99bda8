"""Linear support vector regression in w."""

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin

from zerogap import threads, validation
from zerogap.duplicates import distinct
from zerogap.estimators.linear_base import LinearMachine
from zerogap.limits import limits
from zerogap.problem import DualProblem


class LinearSVR(RegressorMixin, LinearMachine):
    """Linear support vector regression with a certificate, for many points and many, mostly sparse features.

    A drop-in for ``sklearn.svm.LinearSVR``, with the same objective, in which the intercept counts, too:

        1/2 |w|² + 1/2 (intercept / intercept_scaling)² + C sum_i loss(y_i - f(x_i)),   f(x) = <w, x> + intercept

    Parameters
    ----------
    epsilon : float, default 0.0
        Half width of the tube within which deviations are free.
    tol : float, default 1e-4
        Certified relative duality gap.
    C : float, default 1.0
        Cost of a deviation beyond the tube.
    loss : str, default "epsilon_insensitive"
        "epsilon_insensitive", C sum_i max(0, |y_i - f(x_i)| - epsilon), or "squared_epsilon_insensitive", C times the sum of
        its squares.
    fit_intercept : bool, default True
        Whether there is an intercept.
    intercept_scaling : float, default 1.0
        Value of the constant feature whose weight the intercept is; the larger, the less the intercept counts.
    free_intercept : bool, default False
        Whether the intercept does not count at all, as in :class:`zerogap.SVR`; ``intercept_scaling`` has no part then.
    dual : "auto" or bool, default "auto"
        Without effect: the dual problem is solved along with the primal one, and proves how good it is.
    verbose : bool, default False
        Show progress on fits that take longer than a second.
    random_state : int or RandomState, default None
        Seed of the order in which points are visited.
    max_iter : int, default -1
        Limit on sweeps over the points and Newton steps; -1 is no limit but one that keeps a fit from crawling for ever.
    max_time : float, optional
        Limit in seconds.

    Attributes
    ----------
    coef_ : array of shape (d,)
        Weights of the features.
    intercept_ : array of shape (1,), or 0.0
        The intercept.
    dual_coef_ : array of shape (1, n)
        Signed coefficients of all rows: w is their combination, and the point that proves it.
    n_iter_ : int
        Sweeps and Newton steps.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution.
    duality_gap_ : float
        The relative duality gap.
    fit_status_ : int
        0 if the solution has converged, else 1; ``status_`` says more.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap import LinearSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(LinearSVR(C=100.0, epsilon=5.0).fit(X, y).duality_gap_ <= 1e-4)
    True
    """

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        free_intercept: bool = False,
        dual: Any = "auto",
        verbose: Any = False,
        random_state: Any = None,
        max_iter: int = -1,
        max_time: float | None = None,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.free_intercept = free_intercept
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_time = max_time

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_choice("loss", self.loss, ("epsilon_insensitive", "squared_epsilon_insensitive"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVR":
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training points.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        LinearSVR
            The fitted model itself.
        """
        with threads.several_at_once():  # vectors are too short for threads of BLAS
            return self._become(self._twin()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "LinearSVR":
        self._check_options()
        X, y = self._check_points(X, y, y_numeric=True)
        target = np.array(y, dtype=np.float64)
        points = distinct(X, target, validation.check_weights(sample_weight, X.shape[0]))
        is_squared = self.loss == "squared_epsilon_insensitive"
        C = 2.0 * self.C if is_squared else self.C
        with limits(self.max_time):
            options = {"sample_weight": points.weight, "fit_intercept": self._has_free_bias()}
            problem = getattr(DualProblem, self.loss)(
                self._points_of(X, points), target[points.rows], C, self.epsilon, **options
            )
            self._keep([self._solved(problem, "fit")], points)
        self.coef_ = self.coef_[0]
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array of shape (n,)
            Predicted targets.
        """
        return self._values(X)[:, 0]
