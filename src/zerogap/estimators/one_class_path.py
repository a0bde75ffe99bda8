"""The one-class machine for every nu at once."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import OutlierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import Outcome, judged
from zerogap.estimators.one_class import OneClassSVM
from zerogap.estimators.path_machine import OnePath
from zerogap.path import one_class_path
from zerogap.solution import Trace


class OneClassSVMPath(OutlierMixin, OnePath):
    """One-class support vector machine, solved exactly for every nu from nu_max down to nu_min.

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
    nu_min, nu_max : float, default 0.01 and 1.0
        The range of nu.
    nu : float, default 0.5
        The one that ``predict`` and the others use unless told otherwise.
    max_events : int, optional
        Stop after so many events; the path then ends at a larger nu, and a ConvergenceWarning says at which.
    max_time : float, optional
        Stop after so many seconds; the path then ends at a larger nu, and a ConvergenceWarning says at which.
    verbose : bool, default False
        Show progress.

    Attributes
    ----------
    path_ : NuPath
        The solution for every nu.
    breakpoints_ : array
        Its nu, descending.
    n_events_ : int
        Number of changes of sets.
    largest_gap_ : float
        The largest relative duality gap over every nu of the path.
    offset_ : array of shape (1,)
        rho at the model's own nu: ``decision_function`` is ``score_samples`` less this.

    Examples
    --------
    >>> import numpy as np
    >>> from zerogap import OneClassSVMPath
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> path = OneClassSVMPath().fit(X)
    >>> path.predict([[5.0, 5.0]], nu=[0.1, 0.5]).tolist(), bool(path.largest_gap_ <= 1e-9)
    ([[-1], [-1]], True)
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        nu_min: float = 0.01,
        nu_max: float = 1.0,
        nu: float = 0.5,
        max_events: int | None = None,
        max_time: float | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.nu_min = nu_min
        self.nu_max = nu_max
        self.nu = nu
        self.max_events = max_events
        self.max_time = max_time
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> "OneClassSVMPath":
        """Follow the path.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : object, optional
            Ignored; it is there for pipelines.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        OneClassSVMPath
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, sample_weight))

    def _fit(self, X: Any, sample_weight: Any) -> "OneClassSVMPath":
        self._asked_kernel()
        X = self._check_points(X)
        self.path_ = one_class_path(
            X,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=sample_weight,
            nu_min=self.nu_min,
            nu_max=self.nu_max,
            max_events=self.max_events,
            max_time=self.max_time,
            verbose=bool(self.verbose),
        )
        assert self.path_.gram is not None
        self._X, self._kernel = self._own(X), self.path_.gram.kernel
        self.breakpoints_, self.n_events_ = self.path_.nu, self.path_.n_events
        if self.path_.status in ("max_time", "max_events"):  # of Ctrl-C the path itself warns
            warnings.warn(
                f"OneClassSVMPath was stopped ({self.path_.status}={getattr(self, self.path_.status)}) on its way to "
                f"nu_min={self.nu_min:g}: the path {self.path_._where_it_ends}. Raise the limit, or go on with "
                "one_class_path(X, ..., resume=model.path_).",
                ConvergenceWarning,
                stacklevel=validation.callers_level(),
            )
        return self

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over every nu of the path."""
        check_is_fitted(self)
        return self.path_.largest_gap_

    def at(self, nu: float) -> OneClassSVM:
        """Return the fitted OneClassSVM for this nu, the one ``OneClassSVM(nu=nu).fit`` would give.

        It has converged if its certificate says so; else its status and a ConvergenceWarning tell the gap.

        Parameters
        ----------
        nu : float
            Within the range of the path.

        Returns
        -------
        OneClassSVM
            A model of its own.
        """
        check_is_fitted(self)
        nu = validation.check_single("nu", nu)
        path, model = self.path_, self._model(nu)
        certificate = path.certificate_at(nu)
        status, gap = judged(certificate, path, nu, model.tol)
        bias = path.bias_in_gram(nu)
        b_up, b_low = certificate.bias_interval
        if not b_up <= bias <= b_low:  # rounding has moved it: the certificate is about its own
            bias = certificate.bias
        outcome = Outcome(path.beta_at(nu), bias, certificate, status, 0, Trace(), path.gram.evaluations, gap)
        model._warn([outcome])
        model._take(self._X, path._coefficients_at(nu, on_few=True), outcome)
        return model

    def _model(self, nu: float) -> OneClassSVM:
        """Return a model with the coefficients of a nu, of which nothing else is known."""
        gamma = getattr(self._kernel, "gamma", self.gamma) if isinstance(self.kernel, str) else self.gamma
        model = OneClassSVM(kernel=self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, nu=nu, tol=1e-9)
        model._kernel, model.n_features_in_ = self._kernel, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        of_rows = self.path_._coefficients_at(nu, on_few=True)
        model._store_support(self._X, np.flatnonzero(of_rows))
        model.dual_coef_ = model._sparse_if_points_are(of_rows[None, model.support_])
        model._set_biases([self.path_.bias_in_gram(nu)])
        return model

    @property
    def offset_(self) -> np.ndarray:
        """rho at the model's own nu: ``decision_function`` is ``score_samples`` less this."""
        check_is_fitted(self)
        return np.array([-self.path_.bias_in_gram(float(self.nu))])

    def decision_function(self, X: Any, nu: Any = None) -> np.ndarray:
        """Return f(x) - rho, positive for points like those of the training.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        nu : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            Decision values.
        """
        values, biases = self._twin()._values(X, nu)
        return values + biases

    def score_samples(self, X: Any, nu: Any = None) -> np.ndarray:
        """Return f(x), the decision values before rho is taken off.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        nu : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            The larger, the more like the training points.
        """
        return self._twin()._values(X, nu)[0]

    def predict(self, X: Any, nu: Any = None) -> np.ndarray:
        """Return on which side of the plane each point is.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        nu : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            1 for points like those of the training, -1 for outliers.
        """
        return np.where(self.decision_function(X, nu) >= 0.0, 1, -1)

    def _values(self, X: Any, nu: Any) -> tuple[np.ndarray, Any]:
        """Return sum_i beta_i k(x_i, x), and the bias.

        By models: training points on the margin have a decision value of zero, and its sign must not depend on other points.
        """
        check_is_fitted(self)
        nu = self.nu if nu is None else nu
        models = [self._model(one) for one in validation.check_values("nu", nu)]
        values, biases = np.stack([model._values(X) for model in models]), np.array([model._biases for model in models])
        return (values[0], biases[0, 0]) if np.ndim(nu) == 0 else (values, biases)
