"""Support vector regression for every C, or for every epsilon, at once."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import Outcome, judged
from zerogap.estimators.path_machine import OnePath, check_pair
from zerogap.estimators.svr import SVR
from zerogap.path import ErrorCurve, error_curve, svr_path
from zerogap.path.error_curve import check_scoring
from zerogap.path.regression import smallest_idle_tube
from zerogap.solution import Trace


class SVRPath(RegressorMixin, OnePath):
    """Support vector regression, solved exactly for every C from C_min to C_max, or for every epsilon.

    Parameters
    ----------
    over : str, default "C"
        "C", every C from C_min to C_max at one epsilon; or "epsilon", every epsilon from epsilon_max down to epsilon_min at one
        C.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    C : float, default 1.0
        That of a path over epsilon; of a path over C the one that ``predict`` uses unless told otherwise.
    epsilon : float, default 0.1
        That of a path over C; of a path over epsilon the one that ``predict`` uses unless told otherwise.
    C_min, C_max : float, default 1e-4 and 1e3
        The range of C.
    epsilon_min : float, default 0.0
        The least epsilon.
    epsilon_max : float, optional
        The largest; by default half the range of the targets, from where on the tube holds all of them, or ``epsilon`` if that
        is larger; without a free bias the largest absolute value of the targets.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero, and nothing constrains the sum of coefficients.
    max_events : int, optional
        Stop after so many events; the path then ends before its time, and a ConvergenceWarning says where.
    max_time : float, optional
        Stop after so many seconds; the path then ends before its time, and a ConvergenceWarning says where.
    verbose : bool, default False
        Show progress.

    Attributes
    ----------
    path_ : RegressionPath or EpsilonPath
        The solution for every C, or every epsilon.
    breakpoints_ : array
        Its C, ascending, or its epsilon, descending.
    n_events_ : int
        Number of changes of sets.
    largest_gap_ : float
        The largest relative duality gap over all of the path.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap import SVRPath
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = SVRPath(epsilon=10.0).fit(X[::2], y[::2])
    >>> curve = path.score_curve(X[1::2], y[1::2], scoring="r2")
    >>> best = path.at(curve.best_C)  # the SVR with the best C of all
    >>> bool(abs(best.score(X[1::2], y[1::2]) - curve.best_score) < 1e-9)
    True
    """

    def __init__(
        self,
        *,
        over: str = "C",
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C: float = 1.0,
        epsilon: float = 0.1,
        C_min: float = 1e-4,
        C_max: float = 1e3,
        epsilon_min: float = 0.0,
        epsilon_max: float | None = None,
        fit_intercept: bool = True,
        max_events: int | None = None,
        max_time: float | None = None,
        verbose: Any = False,
    ):
        self.over = over
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C = C
        self.epsilon = epsilon
        self.C_min = C_min
        self.C_max = C_max
        self.epsilon_min = epsilon_min
        self.epsilon_max = epsilon_max
        self.fit_intercept = fit_intercept
        self.max_events = max_events
        self.max_time = max_time
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVRPath":
        """Follow the path.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVRPath
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "SVRPath":
        self._asked_kernel()
        validation.check_choice("over", self.over, ("C", "epsilon"))
        validation.check_flag("fit_intercept", self.fit_intercept)
        X, y = self._check_points(X, y, y_numeric=True)
        y = np.array(y, dtype=np.float64)
        epsilon_max = self.epsilon_max
        if epsilon_max is None and self.over == "epsilon":  # so that the model's own is on the path
            validation.check_positive("epsilon", self.epsilon, zero=True)
            idle = smallest_idle_tube(y, has_bias=self.fit_intercept)
            epsilon_max = max(idle, float(self.epsilon)) or None
        self.path_ = self._followed(X, y, sample_weight, epsilon_max)
        assert self.path_.gram is not None
        self._X, self._kernel = self._own(X), self.path_.gram.kernel
        self.breakpoints_, self.n_events_ = self.path_.value_of(self.path_.lam), self.path_.n_events
        if self.path_.status in ("max_time", "max_events"):  # of Ctrl-C the path itself warns
            self._warn_of_limit()
        return self

    def _followed(self, X: Any, y: np.ndarray, sample_weight: Any, epsilon_max: float | None) -> Any:
        return svr_path(
            X,
            y,
            over=self.over,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=sample_weight,
            C=self.C,
            epsilon=self.epsilon,
            C_min=self.C_min,
            C_max=self.C_max,
            epsilon_min=self.epsilon_min,
            epsilon_max=epsilon_max,
            fit_intercept=self.fit_intercept,
            max_events=self.max_events,
            max_time=self.max_time,
            verbose=bool(self.verbose),
        )

    def _warn_of_limit(self) -> None:
        path, end = self.path_, self.path_.end_name
        warnings.warn(
            f"SVRPath was stopped ({path.status}={getattr(self, path.status)}) on its way to {end}={getattr(self, end):g}: the "
            f"path {path._where_it_ends}. Raise the limit, or go on with svr_path(X, y, ..., resume=model.path_).",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over all of the path."""
        check_is_fitted(self)
        return self.path_.largest_gap_

    def at(self, value: float) -> SVR:
        """Return the fitted SVR for this C, or for this epsilon, the one ``SVR(C, epsilon).fit`` would give.

        It has converged if its certificate says so; else its status and a ConvergenceWarning tell the gap.

        Parameters
        ----------
        value : float
            C, or epsilon if the path is over epsilon; within the range of the path.

        Returns
        -------
        SVR
            A model of its own.
        """
        check_is_fitted(self)
        path = self.path_
        value = validation.check_single(path.parameter, value)
        gamma = getattr(self._kernel, "gamma", self.gamma) if isinstance(self.kernel, str) else self.gamma
        C, epsilon = (value, path.epsilon) if path.parameter == "C" else (path.cost, value)
        model = SVR(
            C, epsilon, kernel=self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, tol=1e-9,
            fit_intercept=self.fit_intercept,
        )  # fmt: skip
        model._cost, model._kernel, model.n_features_in_ = C, self._kernel, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        certificate = path.certificate_at(value)
        status, gap = judged(certificate, path, value, model.tol)
        bias = path.bias_in_gram(value)
        b_up, b_low = certificate.bias_interval
        if not b_up <= bias <= b_low:  # rounding has moved it: the certificate is about its own
            bias = certificate.bias
        outcome = Outcome(path.beta_at(value), bias, certificate, status, 0, Trace(), path.gram.evaluations, gap)
        model._warn([outcome])
        model._store(self._X, path._coefficients_at(value, on_few=True), outcome)
        return model

    def predict(self, X: Any, C: Any = None, epsilon: Any = None) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        C : float or array of shape (k,), optional
            Of a path over C; by default the model's own.
        epsilon : float or array of shape (k,), optional
            Of a path over epsilon; by default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            Predicted targets.
        """
        now = self._twin()  # another thread may store another path meanwhile
        K = now._against(X)
        path = now.path_
        asked, fixed = (C, epsilon) if path.parameter == "C" else (epsilon, C)
        if fixed is not None:
            other, one = ("epsilon", path.epsilon) if path.parameter == "C" else ("C", path.cost)
            raise ValueError(
                f"This path runs over {path.parameter}, at {other}={one:g}: predict takes {path.parameter}=; got "
                f"{other}={fixed}. Fit SVRPath(over={other!r}) for every {other}."
            )
        values = getattr(now, path.parameter) if asked is None else asked
        several = validation.check_values(path.parameter, values)
        betas, biases = zip(*map(path.solution_at, several), strict=True)
        found = np.stack(betas) @ K + np.array(biases)[:, None]
        return found[0] if np.ndim(values) == 0 else found

    def score_curve(
        self, X: Any, y: Any, sample_weight: Any = None, *, scoring: str = "neg_mean_squared_error"
    ) -> ErrorCurve:
        """Return a score of held-out data for every C, or every epsilon, of the path, in closed form.

        Of a pipeline that ends in a path it is :func:`zerogap.score_curve`, which transforms the points as the pipeline does.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            Weights of the points in the score.
        scoring : str, default "neg_mean_squared_error"
            "neg_mean_squared_error", "neg_mean_absolute_error" or "r2", as scikit-learn has them.

        Returns
        -------
        ErrorCurve
            Piecewise quadratic, or linear if it is the absolute error; ``best_C`` or ``best_epsilon`` is the best of all.

        Warns
        -----
        UserWarning
            If the points are plainly on another scale than the training points, as those are that a pipeline has yet to scale.
        """
        check_scoring(scoring)
        now = self._twin()
        check_is_fitted(now)
        now._warn_of_other_scale(X)
        return now._curve(X, y, sample_weight, scoring)

    def explore(
        self,
        file: Any = None,
        X: Any = None,
        y: Any = None,
        *,
        scoring: str = "neg_mean_squared_error",
        curve: ErrorCurve | None = None,
        feature_names: Any = None,
        title: str | None = None,
    ) -> Any:
        """Show the regression at every C, or every epsilon: a page with a slider, or without a file a widget in a notebook.

        Parameters
        ----------
        file : str or path, optional
            The page to write, such as "page.html"; it needs nothing else, and no network.  Without it a widget is returned.
        X : array or CSR matrix of shape (n, d), optional
            Held-out points, whose score is drawn for every C, or every epsilon.
        y : array of shape (n,), optional
            Their targets.
        scoring : str, default "neg_mean_squared_error"
            The score, as in ``score_curve``.
        curve : ErrorCurve, optional
            The score itself, in place of points: ``zerogap.score_curve(pipe, X, y)`` of a pipeline.
        feature_names : list of str, optional
            Names of the features; by default those of the data frame it was fitted to.
        title : str, optional
            Title of the page.

        Returns
        -------
        pathlib.Path or widget
            The file; or the widget, whose ``C`` or ``epsilon`` is the one under the slider.
        """
        check_is_fitted(self)
        check_pair(X, y, "targets")
        if X is not None:
            curve = self.score_curve(X, y, scoring=scoring)
        return super().explore(file, curve=curve, feature_names=feature_names, title=title)

    def _curve(self, X: Any, y: Any, sample_weight: Any, scoring: str) -> ErrorCurve:
        """Return the score for every C, or every epsilon."""
        K = self._against(X)
        y = validation.check_target(y, K.shape[1])
        return error_curve(self.path_, K, y, scoring, validation.check_weights(sample_weight, y.size))
