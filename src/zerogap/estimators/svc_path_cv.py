"""The support vector classifier with the best C of all, by cross-validated paths."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin

from zerogap import validation
from zerogap.estimators.fold_matrix import FoldMatrix
from zerogap.estimators.fold_paths import Fold, Rows
from zerogap.estimators.pairs import check_present, check_ties
from zerogap.estimators.path_cv import Candidate, PathCV
from zerogap.estimators.scoring import as_scorer, check_scoring
from zerogap.estimators.svc import SVC
from zerogap.estimators.svc_path import SVCPath
from zerogap.gram import Gram
from zerogap.kernels import Kernel, as_kernel
from zerogap.path import Path, ScoreCurve, Single, svm_path
from zerogap.path.data import TwoClasses
from zerogap.path.following import follow
from zerogap.path.pairwise import Shared

MANY_CLASSES = 0.1  # of the rows: so many different numbers are hardly classes
SAMPLES_PER_DECADE = 100  # of C, for scores of decision values: the same in all folds


class FoldSVCPath(SVCPath):
    """The path of a fold: its largest gap is not proved, and where a limit ends it the search over all folds tells."""

    _proves = False
    gap: float | None = None  # of an approximate path
    _matrix_of_all: FoldMatrix | None = None

    def share(self, matrix: FoldMatrix) -> None:
        """Take kernel values from a matrix of all rows, if it is to be had."""
        self._matrix_of_all = matrix if self.gap is None else None  # approximate paths compute few rows

    def _part_of_matrix(self, kernel: Kernel, rows: np.ndarray) -> Gram | None:
        if self._matrix_of_all is None:
            return None
        return self._matrix_of_all.part(self._asked_kernel(), kernel, rows, has_bias=self._has_bias)

    def _share(self, X: Any) -> Shared:
        part = self._part_of_matrix(self._kernel, self._rows)
        return super()._share(X) if part is None else Shared(part)

    def _against(self, X: Any) -> Callable[[], Iterator[np.ndarray]]:
        K = None if self._matrix_of_all is None else self._matrix_of_all.held_out
        return super()._against(X) if K is None else lambda: iter((K,))

    def _followed(self, X: Any, codes: np.ndarray, weight: np.ndarray, kernel: dict[str, Any]) -> Path:
        ends: dict[str, Any] = {"C_min": self.C_min, "C_max": self.C_max}
        if self.gap is not None:
            approximate: Any = svm_path
            ends |= {"gap": self.gap, "cache_size": self.cache_size, "max_time": self.max_time}
            return approximate(X, codes, **kernel, sample_weight=weight, **ends)
        data = TwoClasses(X, codes, as_kernel(**kernel), weight, merge=True, has_bias=self.fit_intercept)
        data.part_of_matrix = self._part_of_matrix
        return follow(
            lambda: data.begin(self.C_min), None, self.C_max, Single(), None, self.max_time, False, prove=False
        )

    def _warn_of_limit(self) -> None:
        pass


class Reader(NamedTuple):
    """Scores the path of a fold."""

    scoring: Any
    samples: np.ndarray

    def __call__(self, model: SVCPath, X: Any, y: np.ndarray, weight: np.ndarray | None) -> ScoreCurve:
        """Return the curve of held-out points."""
        return model._curve(X, y, weight, self.scoring, self.samples)


class SVCPathCV(ClassifierMixin, PathCV):
    """Support vector classifier whose C is the best of all from C_min to C_max, not of a grid, by cross-validation.

    Every fold has an exact path, and with it its score for every C.  Their mean is a piecewise constant function of C, which is
    known everywhere: so is its maximum.  Of several kernels, or gammas, each has such a curve, and the best of all is chosen.

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
    C_min, C_max : float, default 1e-2 and 1e3
        The range of C.
    class_weight : dict or "balanced", default None
        Multiplies C per class; "balanced" counts the training points of each fold.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero, and nothing constrains the sum of coefficients.  Not beside ``gap``.
    cv : int, splitter or iterable, default 5
        The folds, as in scikit-learn: a number of stratified ones, a splitter, or pairs of training and test rows.
    scoring : str or callable, default "accuracy"
        The score to be largest, as in :meth:`zerogap.SVCPath.score_curve`; None is the accuracy.  One of decision values, such
        as "roc_auc", is known at 100 C a decade only, and the curve says so.  "f1" and its like are of the class with label 1:
        of text labels name it, ``make_scorer(f1_score, pos_label="yes")``.
    selection : str, default "best"
        "best", the C in the middle of the widest interval with the best score; or "one_se", the smallest C whose score is
        within one standard error of the best: the simplest model that is about as good.
    gap : float, optional
        Follow paths approximately, with at most this relative duality gap at every C; by default they are exact.
    cache_size : float, default 1000
        Megabytes for kernel rows of each path, with ``gap``, and of the final model; an exact path holds the whole matrix.
    transformer : transformer, optional
        Fitted to the training points of each fold, and to all points for the final model, such as ``StandardScaler()``.
    decision_function_shape : str, default "ovr"
        Of ``decision_function`` with more than two classes: "ovr", a column a class, or "ovo", a column a pair of them.
    break_ties : bool, default False
        Whether of more than two classes the largest decision value decides where votes are equal, in the scores as well.
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
    best_score_ : float
        The cross-validated score at ``C_``; with "one_se" a little below ``cv_curve_.best_score``.
    best_std_error_ : float
        Its standard error over the folds.
    best_intervals_ : list of tuple
        All C that have the best score, with this kernel.
    cv_curve_ : CVCurve
        The cross-validated score for every C, with this kernel.
    cv_curves_ : list of CVCurve
        That of every candidate.
    cv_results_ : dict of arrays
        A row for every candidate, at its own best C, with names as in scikit-learn's searches; pandas makes a data frame of it.
        ``cv_curve_.table()`` has a row for every interval of C.  ``largest_gap`` is the largest relative duality gap of its
        paths, at three C of each: a check, as the paths of folds are not proved; 0.0 where rounding leaves none.
    best_index_ : int
        The candidate that was chosen: of equally good ones that with the widest interval of C, then that with the smallest C.
    best_params_ : dict
        Its parameters, and ``C_``.
    best_estimator_ : SVC or Pipeline
        Fitted to all points at ``C_``; behind the transformer, if there is one.
    n_splits_ : int
        Number of folds.
    n_events_ : int
        Number of changes of sets, of all paths.
    classes_ : array of shape (n_classes,)
        The labels, sorted.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from zerogap import SVCPathCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVCPathCV(gamma=[0.003, 0.01, 0.03], transformer=StandardScaler(), C_max=100.0).fit(X, y)
    >>> bool(model.best_score_ > 0.97), len(model.cv_curves_)
    (True, 3)
    >>> model.predict(X[:3]).tolist()
    [0, 0, 0]
    """

    _targets = "labels"

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        C_min: float = 1e-2,
        C_max: float = 1e3,
        class_weight: Any = None,
        fit_intercept: bool = True,
        cv: Any = 5,
        scoring: Any = "accuracy",
        selection: str = "best",
        gap: float | None = None,
        cache_size: float = 1000,
        transformer: Any = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        max_time: float | None = None,
        n_jobs: int | None = None,
        verbose: Any = False,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.C_min = C_min
        self.C_max = C_max
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.gap = gap
        self.cache_size = cache_size
        self.transformer = transformer
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "SVCPathCV":
        """Follow a path for every fold and candidate, choose the best C of all, and fit that to all points.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.
        y : array of shape (n,)
            Labels, of two or more classes.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points, in the scores as well.
        groups : array of shape (n,), optional
            For splitters that keep groups together, such as ``GroupKFold``.

        Returns
        -------
        SVCPathCV
            The fitted model itself.
        """
        return self._become(self._twin()._fit(X, y, sample_weight, groups))

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> "SVCPathCV":
        validation.check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))
        check_ties(break_ties=validation.check_flag("break_ties", self.break_ties), shape=self.decision_function_shape)
        if self.scoring is not None:
            as_scorer(self.scoring)
        X, y = self._checked(X, y)
        validation.check_labels(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        weight = validation.check_weights(sample_weight, y.size)
        check_present(type(self).__name__, self.classes_, codes, weight)
        if self.scoring is not None:
            check_scoring(self.scoring, self.classes_, y, None if sample_weight is None else weight)
        return self._fit_rows(X, y, sample_weight, groups, stratified=True)

    def _check_folds(self, rows: Rows, folds: Sequence[Fold]) -> None:
        """Refuse folds without a class to learn from."""
        weight = np.ones(rows.y.size) if rows.weight is None else rows.weight
        advice = "Use fewer folds, or a splitter that stratifies, such as StratifiedKFold or StratifiedGroupKFold."
        _, sizes = np.unique(rows.y[weight > 0], return_counts=True)
        for fold in folds:
            known, tested = (np.unique(rows.y[some][weight[some] > 0]) for some in (fold.train, fold.test))
            if known.size < 2:
                if sizes.size == 2 and sizes.min() == 1:  # no folds can help
                    advice = "The other has one row in all, which cannot be learnt and tested: find more of them."
                raise ValueError(f"{fold} has training points of one class only, {known.tolist()}. {advice}")
            if not tested.size:
                raise ValueError(
                    f"{fold} has no test point with a weight above zero. Leave out rows without weight, or use fewer folds."
                )
            missing = np.setdiff1d(tested, known)
            if missing.size:
                label = missing[0]
                if np.count_nonzero(rows.y == label) == 1:  # no folds can help
                    advice = "It has one row in all: leave that out, or find more of them."
                if rows.y.dtype.kind in "iuf" and self.classes_.size > MANY_CLASSES * rows.y.size:
                    advice += f" If these {self.classes_.size} numbers are no classes, SVRPathCV is what you want."
                raise ValueError(f"{fold} has test points of class {label.item()!r}, and no training point. {advice}")

    def _path_model(self, candidate: Candidate) -> SVCPath:
        degree, coef0 = self._shape_of(candidate.kernel)
        model = FoldSVCPath(
            kernel=candidate.kernel,
            gamma=candidate.gamma,
            degree=degree,
            coef0=coef0,
            C_min=self.C_min,
            C_max=self.C_max,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            cache_size=self.cache_size,
        )
        model.gap = self.gap
        return model

    def _final_model(self, candidate: Candidate, C: float) -> SVC:
        degree, coef0 = self._shape_of(candidate.kernel)
        return SVC(
            C,
            kernel=candidate.kernel,
            gamma=candidate.gamma,
            degree=degree,
            coef0=coef0,
            tol=1e-9,
            fit_intercept=self.fit_intercept,
            class_weight=self.class_weight,
            decision_function_shape=self.decision_function_shape,
            break_ties=self.break_ties,
            cache_size=self.cache_size,
            n_jobs=self.n_jobs,
        )

    def _reader(self) -> Reader:
        decades = np.log10(self.C_max) - np.log10(self.C_min)
        return Reader(
            self.scoring, np.geomspace(self.C_min, self.C_max, int(np.ceil(decades * SAMPLES_PER_DECADE)) + 1)
        )

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) of the model that was chosen.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,) or (n, columns)
            For two classes positive for ``classes_[1]``; else a column a class, or a pair of classes with "ovo".
        """
        model, X = self._read(X)
        return model.decision_function(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the model that was chosen, by ``scoring``, as scikit-learn's searches do.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.
        y : array of shape (n,)
            Their labels.
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
        return float(as_scorer(scoring)(self, X, y, **options))

    @property
    def _scoring(self) -> str:
        return "accuracy" if self.scoring is None else super()._scoring
