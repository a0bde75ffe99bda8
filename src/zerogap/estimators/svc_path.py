"""The support vector classifier for every C at once."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.estimators.base import KernelMachine, Outcome
from zerogap.estimators.svc import SVC
from zerogap.path import ScoreCurve, score_curve, svm_path
from zerogap.solution import Status, Trace


class SVCPath(ClassifierMixin, KernelMachine):
    """Two-class support vector classifier, solved exactly for every C from C_min to C_max.

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
    C_min, C_max : float, default 1e-4 and 1e3
        The range of C.
    C : float, default 1.0
        The one that ``predict`` and ``decision_function`` use unless told otherwise.
    engine : str or options, default "single"
        How the path is followed: "single", "lp" or "hastie", see :func:`zerogap.svm_path`.
    linear_system : str, optional
        "svd", "qr" or "qr-update", for engine "lp".
    max_events : int, optional
        Stop after so many events; the path then ends at a smaller C, and a ConvergenceWarning says at which.
    max_time : float, optional
        Stop after so many seconds; the path then ends at a smaller C, and a ConvergenceWarning says at which.
    verbose : bool, default False
        Show progress.

    Attributes
    ----------
    path_ : Path
        The solution for every C.
    breakpoints_ : array
        Its C, ascending.
    n_events_ : int
        Number of changes of sets.
    classes_ : array of shape (2,)
        The labels, sorted.
    largest_gap_ : float
        The largest relative duality gap over every C of the path.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerogap import SVCPath
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = SVCPath(C_max=100.0).fit(X[::2], y[::2])
    >>> curve = path.score_curve(X[1::2], y[1::2])
    >>> bool(curve.best_score >= path.at(1.0).score(X[1::2], y[1::2]))
    True
    """

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C_min: float = 1e-4,
        C_max: float = 1e3,
        C: float = 1.0,
        engine: Any = "single",
        linear_system: str | None = None,
        max_events: int | None = None,
        max_time: float | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C_min = C_min
        self.C_max = C_max
        self.C = C
        self.engine = engine
        self.linear_system = linear_system
        self.max_events = max_events
        self.max_time = max_time
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVCPath":
        """Follow the path.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Labels of two classes.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVCPath
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "SVCPath":
        self._asked_kernel()
        X, y = self._check_points(X, y)
        validation.check_labels(y)
        self.classes_ = np.unique(y)
        if self.classes_.size != 2:
            raise ValueError(
                f"Only binary classification is supported. SVCPath follows two-class problems; y has {self.classes_.size} "
                f"class(es) {self.classes_[:5].tolist()}. Wrap it in OneVsRestClassifier or OneVsOneClassifier, or use SVC."
            )
        self.path_ = svm_path(
            X,
            y,
            kernel=self.kernel,
            gamma=self.gamma,
            degree=self.degree,
            coef0=self.coef0,
            sample_weight=sample_weight,
            C_min=self.C_min,
            C_max=self.C_max,
            engine=self.engine,
            linear_system=self.linear_system,
            max_events=self.max_events,
            max_time=self.max_time,
            verbose=bool(self.verbose),
        )
        assert self.path_.gram is not None
        self._X, self._y, self._kernel = self._own(X), y.copy(), self.path_.gram.kernel
        self.breakpoints_, self.n_events_ = self.path_.C, self.path_.n_events
        if self.path_.status in ("max_time", "max_events"):  # of Ctrl-C the path itself warns
            self._warn_of_limit()
        return self

    def _own(self, X: Any) -> Any:
        """Return a copy of the points, which no caller can change; of a kernel matrix only its shape is needed."""
        return np.broadcast_to(0.0, X.shape) if self._is_precomputed else X.copy()

    def _warn_of_limit(self) -> None:
        path = self.path_
        warnings.warn(
            f"SVCPath was stopped ({path.status}={getattr(self, path.status)}) on its way to C_max={self.C_max:g}: the path "
            f"{path._where_it_ends}. Raise the limit, or go on with svm_path(X, y, ..., resume=model.path_).",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )

    @property
    def largest_gap_(self) -> float:
        """The largest relative duality gap over every C of the path."""
        check_is_fitted(self)
        return self.path_.largest_gap_

    def at(self, C: float) -> SVC:
        """Return the fitted SVC for this C, the one ``SVC(C=C).fit`` would give.

        It has converged if its certificate says so; else its status and a ConvergenceWarning tell the gap.

        Parameters
        ----------
        C : float
            Within the range of the path.

        Returns
        -------
        SVC
            A model of its own.
        """
        check_is_fitted(self)
        path = self.path_
        gamma = getattr(self._kernel, "gamma", self.gamma) if isinstance(self.kernel, str) else self.gamma
        model = SVC(C=C, kernel=self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, tol=1e-9)
        model.classes_, model._kernel, model.n_features_in_ = self.classes_, self._kernel, self.n_features_in_
        model.class_weight_ = np.ones(2)
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        assert path.gram is not None
        certificate = path.certificate_at(C)
        status, bias = Status.of(certificate, model.tol), path.bias_in_gram(C)
        b_up, b_low = certificate.bias_interval
        if not b_up <= bias <= b_low:  # rounding has moved it: the certificate is about its own
            bias = certificate.bias
        outcome = Outcome(path.beta_at(C), bias, certificate, status, 0, Trace(), path.gram.evaluations)
        model._warn([outcome])
        codes = (self._y == self.classes_[1]).astype(int)
        model._store(self._X, codes, path._coefficients_at(C, on_few=True)[None], [outcome])
        return model

    def decision_function(self, X: Any, C: Any = None) -> np.ndarray:
        """Return f(x), positive for ``classes_[1]``.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        C : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            Decision values.
        """
        now = self._twin()  # another thread may store another path meanwhile
        K = now._against(X)
        C, path = now._default(C), now.path_
        several = [float(c) for c in np.atleast_1d(C)]
        values = np.atleast_2d([path.beta_at(c) for c in several]) @ K
        values += np.array([[path.bias_in_gram(c)] for c in several])
        return values[0] if np.ndim(C) == 0 else values

    def predict(self, X: Any, C: Any = None) -> np.ndarray:
        """Return the class of each point.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        C : float or array of shape (k,), optional
            By default the model's own.

        Returns
        -------
        array of shape (n,) or (k, n)
            Labels.
        """
        now = self._twin()  # another thread may store another path meanwhile
        is_second = now.decision_function(X, C) > 0
        return now.classes_[is_second.astype(int)]

    def score_curve(self, X: Any, y: Any, sample_weight: Any = None) -> ScoreCurve:
        """Return the accuracy on held-out data for every C of the path: every change of it, not samples.

        Of a pipeline that ends in a path it is :func:`zerogap.score_curve`, which transforms the points as the pipeline does.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their labels.
        sample_weight : array of shape (n,), optional
            Weights of the points in the accuracy.

        Returns
        -------
        ScoreCurve
            Piecewise constant in C.

        Warns
        -----
        UserWarning
            If the points are plainly on another scale than the training points, as those are that a pipeline has yet to scale.
        """
        now = self._twin()
        K = now._against(X)
        now._warn_of_other_scale(X)
        y = np.asarray(y)
        if y.shape != (K.shape[1],) or not np.isin(y, now.classes_).all():
            raise ValueError(f"y must hold {K.shape[1]} labels out of {now.classes_.tolist()}; got shape {y.shape}.")
        signs = np.where(y == now.classes_[1], 1.0, -1.0)
        return score_curve(now.path_, K, signs, validation.check_weights(sample_weight, y.size))

    def _warn_of_other_scale(self, X: Any) -> None:
        """The last step of a pipeline does not know what the steps before it do; scores of raw points mean nothing."""
        how = "" if self._is_precomputed else validation.other_scale(self._check_points(X, reset=False), self._X)
        if how:
            warnings.warn(
                f"The points are on another scale than those the path was fitted to: {how}. If SVCPath is the last step of a "
                "pipeline, use zerogap.score_curve(pipe, X, y), which transforms them first; else scale them as those were.",
                UserWarning,
                stacklevel=validation.callers_level(),
            )

    def _against(self, X: Any) -> np.ndarray:
        """Kernel values of the path's distinct points against new ones."""
        check_is_fitted(self)
        X, rows = self._check_points(X, reset=False), self.path_.points.rows
        return np.ascontiguousarray((X[:, rows] if self._is_precomputed else self._kernel(X, self._X[rows])).T)

    def _default(self, C: Any) -> Any:
        """Return C, or the model's own: where the path does not reach that it says so."""
        return self.C if C is None else C
