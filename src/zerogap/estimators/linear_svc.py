"""Linear support vector classification in w."""

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from zerogap import threads, validation
from zerogap.duplicates import distinct
from zerogap.estimators.linear_base import LinearMachine
from zerogap.estimators.pairs import check_present, class_factors, each
from zerogap.limits import limits
from zerogap.problem import DualProblem


class LinearSVC(ClassifierMixin, LinearMachine):
    """Linear support vector classifier with a certificate, for many points and many, mostly sparse features.

    A drop-in for ``sklearn.svm.LinearSVC``, with the same objective, in which the intercept counts, too:

        1/2 |w|² + 1/2 (intercept / intercept_scaling)² + C sum_i loss(y_i f(x_i)),   f(x) = <w, x> + intercept

    It says how far from the optimum it is: ``duality_gap_`` is at most ``tol`` unless a ``ConvergenceWarning`` says otherwise.
    No kernel value is computed, and sparse points stay sparse.

    Parameters
    ----------
    penalty : str, default "l2"
        The norm of w; there is no other.
    loss : str, default "squared_hinge"
        "squared_hinge", C sum_i max(0, 1 - y_i f(x_i))², or "hinge", C times the sum without squares.
    dual : "auto" or bool, default "auto"
        Without effect: the dual problem is solved along with the primal one, and proves how good it is.
    tol : float, default 1e-4
        Certified relative duality gap.
    C : float, default 1.0
        Cost of a violated margin.
    multi_class : str, default "ovr"
        Each class against the rest; there is no other.
    fit_intercept : bool, default True
        Whether there is an intercept.
    intercept_scaling : float, default 1.0
        Value of the constant feature whose weight the intercept is; the larger, the less the intercept counts.
    free_intercept : bool, default False
        Whether the intercept does not count at all, as in :class:`zerogap.SVC`; ``intercept_scaling`` has no part then.
    class_weight : dict or "balanced", default None
        Multiplies C per class; with more than two classes that of the class that is looked for, as in scikit-learn.
    verbose : bool, default False
        Show progress on fits that take longer than a second.
    random_state : int or RandomState, default None
        Seed of the order in which points are visited.
    max_iter : int, default -1
        Limit on sweeps over the points and Newton steps; -1 is no limit but one that keeps a fit from crawling for ever.
    max_time : float, optional
        Limit in seconds for each class.
    n_jobs : int, optional
        Threads for several classes, as joblib counts them: None is one, -1 all.

    Attributes
    ----------
    coef_ : array of shape (1 or n_classes, d)
        Weights of the features.
    intercept_ : array of shape (1 or n_classes,), or 0.0
        The intercepts.
    dual_coef_ : array of shape (1 or n_classes, n)
        Signed coefficients of all rows: w is their combination, and the point that proves it.
    classes_ : array
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        What multiplies C for each class.
    n_iter_ : int
        Sweeps and Newton steps, the most over all classes.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution; with more than two classes lists, an entry a class.  Squared losses have half of 2 C in them.
    duality_gap_ : float
        The relative duality gap, the largest over classes.
    fit_status_ : int
        0 if every class has converged, else 1; ``status_`` says more.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from zerogap import LinearSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = LinearSVC(C=0.01).fit(X / 16, y)
    >>> model.coef_.shape, bool(model.duality_gap_ <= 1e-4)
    ((10, 64), True)
    """

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: Any = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        free_intercept: bool = False,
        class_weight: Any = None,
        verbose: Any = False,
        random_state: Any = None,
        max_iter: int = -1,
        max_time: float | None = None,
        n_jobs: int | None = None,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.free_intercept = free_intercept
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        if self.penalty != "l2":
            raise ValueError(
                f"penalty={self.penalty!r} is no support vector machine: its margin is measured by another norm, and the dual "
                'problem is another one. penalty="l2" is what there is; for an l1 penalty use sklearn.svm.LinearSVC.'
            )
        if self.multi_class != "ovr":
            raise ValueError(
                f"multi_class={self.multi_class!r} is one problem over all classes, of another form. "
                'multi_class="ovr", a class against the rest, is what there is.'
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LinearSVC":
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training points.
        y : array of shape (n,)
            Labels, of two or more classes.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        LinearSVC
            The fitted model itself.
        """
        with threads.several_at_once():  # vectors are too short for threads of BLAS
            return self._become(self._twin()._fit(X, y, sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> "LinearSVC":
        self._check_options()
        X, y = self._check_points(X, y)
        validation.check_labels(y)
        weight = validation.check_weights(sample_weight, X.shape[0])
        self.classes_, codes = np.unique(y, return_inverse=True)
        check_present(type(self).__name__, self.classes_, codes, weight)
        self.class_weight_ = class_factors(self.class_weight, self.classes_, codes, weight)
        points = distinct(X, codes.astype(np.float64), weight)
        gram = self._points_of(X, points)

        def separate(k: int) -> Any:
            with limits(self.max_time):
                sign, cost = self._signs_and_costs(codes[points.rows], points.weight, k)
                build, C = (
                    (DualProblem.hinge, self.C) if self.loss == "hinge" else (DualProblem.squared_hinge, 2.0 * self.C)
                )
                problem = build(gram, sign, C, sample_weight=cost, fit_intercept=self._has_free_bias())
                return self._solved(problem, f"{self.classes_[k]} against the rest")

        with limits():
            ks = [1] if self.classes_.size == 2 else range(self.classes_.size)
            self._keep(each(lambda i: separate(ks[i]), len(ks), self.n_jobs), points)
        return self

    def _signs_and_costs(self, codes: np.ndarray, weight: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the signs of class k against the rest, and the weight of each row with that of its class.

        Of several classes only the one that is looked for has a weight, as LIBLINEAR has it.
        """
        is_own, factors = codes == k, self.class_weight_[codes]
        cost = factors if self.classes_.size == 2 else np.where(is_own, factors, 1.0)
        return np.where(is_own, 1.0, -1.0), weight * cost

    def _class_factors(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return class_factors(self.class_weight, self.classes_, codes, weight)

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array of shape (n,) or (n, n_classes)
            For two classes positive for ``classes_[1]``; else a column a class.
        """
        values = self._values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each point.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Points.

        Returns
        -------
        array of shape (n,)
            Labels; with more than two classes the one with the largest decision value.
        """
        values = self.decision_function(X)
        return self.classes_[(values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)]
