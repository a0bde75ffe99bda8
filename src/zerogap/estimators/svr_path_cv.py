"""Support vector regression with the best C of all, by cross-validated paths."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import get_scorer

from zerogap import validation
from zerogap.estimators.fold_matrix import FoldMatrix
from zerogap.estimators.fold_paths import Fold, Rows
from zerogap.estimators.path_cv import Candidate, PathCV
from zerogap.estimators.svr import SVR
from zerogap.estimators.svr_path import SVRPath
from zerogap.gram import Gram
from zerogap.kernels import Kernel
from zerogap.path import ErrorCurve, Single
from zerogap.path.error_curve import check_scoring
from zerogap.path.following import follow
from zerogap.path.regression import Regression


class FoldSVRPath(SVRPath):
    """The path of a fold: its largest gap is not proved, and where a limit ends it the search over all folds tells."""

    _matrix_of_all: FoldMatrix | None = None

    def share(self, matrix: FoldMatrix) -> None:
        """Take kernel values from a matrix of all rows, if it is to be had."""
        self._matrix_of_all = matrix

    def _part_of_matrix(self, kernel: Kernel, rows: np.ndarray) -> Gram | None:
        if self._matrix_of_all is None:
            return None
        return self._matrix_of_all.part(self._asked_kernel(), kernel, rows, has_bias=self.fit_intercept)

    def _against(self, X: Any) -> np.ndarray:
        K = None if self._matrix_of_all is None else self._matrix_of_all.held_out
        return super()._against(X) if K is None else K

    def _followed(self, X: Any, y: np.ndarray, sample_weight: Any, epsilon_max: float | None) -> Any:
        data = Regression(X, y, self._asked_kernel(), sample_weight, merge=True, has_bias=self.fit_intercept)
        data.part_of_matrix = self._part_of_matrix
        return follow(
            lambda: data.begin(self.C_min, self.epsilon),
            None,
            self.C_max,
            Single(),
            None,
            self.max_time,
            False,
            prove=False,
        )

    def _warn_of_limit(self) -> None:
        pass


class Reader(NamedTuple):
    """Scores the path of a fold."""

    scoring: str

    def __call__(self, model: SVRPath, X: Any, y: np.ndarray, weight: np.ndarray | None) -> ErrorCurve:
        """Return the curve of held-out points."""
        return model._curve(X, y, weight, self.scoring)


class SVRPathCV(RegressorMixin, PathCV):
    """Support vector regression whose C is the best of all from C_min to C_max, not of a grid, by cross-validation.

    Every fold has an exact path, and with it its error for every C, a piecewise quadratic function.  So is their mean: its
    minimum over all C has a closed form.  Of several kernels, gammas or epsilons each has such a curve, and the best is chosen.

    Parameters
    ----------
    kernel : str, callable, Kernel or list of these, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points; of a list the best is chosen.
    gamma : float, str or list of these, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()) of the training points of each fold, as in
        scikit-learn's searches, "auto" is 1 / n_features.  Of a list the best is chosen, for each kernel by name that has one.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    epsilon : float or list of floats, default 0.1
        Half the width of the tube within which errors cost nothing; of a list the best is chosen.
    C_min, C_max : float, default 1e-2 and 1e3
        The range of C.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero, and nothing constrains the sum of coefficients.
    cv : int, splitter or iterable, default 5
        The folds, as in scikit-learn: a number of them, a splitter, or pairs of training and test rows.
    scoring : str, optional
        "neg_mean_squared_error", the default, "neg_mean_absolute_error" or "r2", as scikit-learn has them.
    selection : str, default "best"
        "best", the C with the best score; or "one_se", the smallest C whose score is within one standard error of it: the
        simplest model that is about as good.
    transformer : transformer, optional
        Fitted to the training points of each fold, and to all points for the final model, such as ``StandardScaler()``.
    max_time : float, optional
        Stop after so many seconds; the paths share the time.  The choice is then among the C that all folds have come to, and a
        ConvergenceWarning says so.
    n_jobs : int, optional
        Paths at once, as joblib counts them: None is one, -1 all cores.  In threads, a long search in processes, unless
        ``joblib.parallel_config`` chooses another backend.
    verbose : bool, default False
        Show progress.

    Attributes
    ----------
    C_ : float
        The C that was chosen.
    gamma_ : float or None
        The gamma of the final model; None if its kernel has none.
    kernel_ : str, callable or Kernel
        The kernel that was chosen.
    epsilon_ : float
        The epsilon that was chosen.
    best_score_ : float
        The cross-validated score at ``C_``; with "one_se" a little below ``cv_curve_.best_score``.
    best_std_error_ : float
        Its standard error over the folds.
    best_intervals_ : list of tuple
        All C that have the best score, with this kernel and epsilon.
    cv_curve_ : CVCurve
        The cross-validated score for every C, with this kernel and epsilon.
    cv_curves_ : list of CVCurve
        That of every candidate.
    cv_results_ : dict of arrays
        A row for every candidate, at its own best C, with names as in scikit-learn's searches; pandas makes a data frame of it.
        ``cv_curve_.table()`` has a row for every piece of the curve.  ``largest_gap`` is the largest relative duality gap of
        its paths, at three C of each: a check, as the paths of folds are not proved; 0.0 where rounding leaves none.
    best_index_ : int
        The candidate that was chosen: of equally good ones that with the widest interval of C, then that with the smallest C.
    best_params_ : dict
        Its parameters, and ``C_``.
    best_estimator_ : SVR or Pipeline
        Fitted to all points at ``C_``; behind the transformer, if there is one.
    n_splits_ : int
        Number of folds.
    n_events_ : int
        Number of changes of sets, of all paths.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap import SVRPathCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = SVRPathCV(epsilon=10.0, scoring="r2", C_max=100.0).fit(X[:200], y[:200])
    >>> bool(model.best_score_ >= model.cv_curve_(np.geomspace(0.01, 100.0, 1000)).max())
    True
    """

    _targets = "targets"

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epsilon: Any = 0.1,
        C_min: float = 1e-2,
        C_max: float = 1e3,
        fit_intercept: bool = True,
        cv: Any = 5,
        scoring: str | None = None,
        selection: str = "best",
        transformer: Any = None,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epsilon = epsilon
        self.C_min = C_min
        self.C_max = C_max
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.transformer = transformer
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "SVRPathCV":
        """Follow a path for every fold and candidate, choose the best C of all, and fit that to all points.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Targets.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points, in the scores as well.
        groups : array of shape (n,), optional
            For splitters that keep groups together, such as ``GroupKFold``.

        Returns
        -------
        SVRPathCV
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight, groups))

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> "SVRPathCV":
        check_scoring(self._error)
        X, y = self._checked(X, y, y_numeric=True)
        return self._fit_rows(X, np.array(y, dtype=np.float64), sample_weight, groups, stratified=False)

    @property
    def _error(self) -> str:
        return "neg_mean_squared_error" if self.scoring is None else self.scoring

    _scoring = _error

    def _check_folds(self, rows: Rows, folds: Sequence[Fold]) -> None:
        """Refuse folds without a point to learn from, or to score."""
        weight = np.ones(rows.y.size) if rows.weight is None else rows.weight
        for fold in folds:
            for some, kind in ((fold.train, "training"), (fold.test, "test")):
                if not (weight[some] > 0).any():
                    raise ValueError(f"{fold} has no {kind} point with a weight above zero. Use other folds.")

    def _path_model(self, candidate: Candidate) -> SVRPath:
        degree, coef0 = self._shape_of(candidate.kernel)
        return FoldSVRPath(
            kernel=candidate.kernel,
            gamma=candidate.gamma,
            degree=degree,
            coef0=coef0,
            epsilon=self._width(candidate),
            C_min=self.C_min,
            C_max=self.C_max,
            fit_intercept=self.fit_intercept,
        )

    def _final_model(self, candidate: Candidate, C: float) -> SVR:
        degree, coef0 = self._shape_of(candidate.kernel)
        return SVR(
            C,
            self._width(candidate),
            kernel=candidate.kernel,
            gamma=candidate.gamma,
            degree=degree,
            coef0=coef0,
            tol=1e-9,
            fit_intercept=self.fit_intercept,
        )

    @staticmethod
    def _width(candidate: Candidate) -> float:
        """Return the epsilon of a candidate, which every one of a regression has."""
        return validation.check_positive("epsilon", candidate.epsilon, zero=True)

    def _reader(self) -> Reader:
        return Reader(self._error)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the model that was chosen: by ``scoring``, as scikit-learn's searches do, or r2 without one.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their targets.
        sample_weight : array of shape (n,), optional
            Weights of the points in the score.

        Returns
        -------
        float
            The score.
        """
        scoring = self._as_fitted("scoring")
        if scoring is None:
            return super().score(X, y, sample_weight)
        options = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(get_scorer(scoring)(self, X, y, **options))
