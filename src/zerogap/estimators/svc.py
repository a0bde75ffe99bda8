"""Support vector classification."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.duplicates import Distinct
from zerogap.estimators import small_pairs
from zerogap.estimators.base import Outcome
from zerogap.estimators.calibration import Calibrated
from zerogap.estimators.incremental import Rows, Training, check_can_change
from zerogap.estimators.pairs import (
    by_class,
    check_present,
    check_ties,
    chosen,
    class_factors,
    coefficients,
    each,
    laid_out,
    pairs_of,
    shaped,
    signs,
)
from zerogap.gram import Gram
from zerogap.limits import Exceeded, limits
from zerogap.problem import DualProblem
from zerogap.solution import Status


class _Whole(NamedTuple):
    """The kernel matrix of all classes, one class after the other: the part of a pair is then four blocks of it."""

    gram: Gram
    order: np.ndarray  # the distinct points as they come in it
    codes: np.ndarray  # their classes

    def places(self, a: int, b: int) -> np.ndarray:
        """Return where two classes are."""
        return np.flatnonzero((self.codes == a) | (self.codes == b))

    def of(self, points: np.ndarray) -> Gram:
        """Return the part of some distinct points."""
        return self.gram.subset(np.argsort(self.order)[points])


class SVC(ClassifierMixin, Calibrated):
    """Support vector classifier with a certificate.

    A drop-in for ``sklearn.svm.SVC`` that says how far from the optimum it is: ``duality_gap_`` is the relative duality gap,
    recomputed from the data in float64, and at most ``tol`` unless a ``ConvergenceWarning`` says otherwise.

    Parameters
    ----------
    C : float, default 1.0
        Cost of a violated margin; ``np.inf`` is the hard margin.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a function of two sets of points, or a kernel object with its own
        parameters, such as ``zerogap.kernels.RBF(0.5) + zerogap.kernels.Linear()``.  A function may take points that are no
        rows of numbers, such as texts: it is then called with all of them, and the whole matrix is kept while fitting.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  Beside other
        names and functions it has no effect, as in scikit-learn; beside a kernel object it is refused.  In X.var() a row of
        ``sample_weight`` two counts twice; ``class_weight`` has no part in it.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    loss : str, default "hinge"
        "hinge", C sum_i max(0, 1 - y_i f(x_i)), or "squared_hinge", C/2 times the sum of its squares.
    tol : float, default 1e-4
        Certified relative duality gap.
    solver : str or Solver, default "auto"
        Name of a solver, or a configured one.
    fit_intercept : bool, default True
        Whether the bias is free; else it is zero.
    class_weight : dict or "balanced", default None
        Multiplies C per class.
    shrinking : bool, default True
        Whether solvers that can, "auto" and "smo", set points aside that are at a bound; a configured solver has its own.
    probability : bool, default False
        Whether ``fit`` calibrates probabilities too, as ``CalibratedClassifierCV(SVC(), ensemble=False)`` does: a sigmoid of
        the decision values that models of five folds have for the rows they have not seen.
    cache_size : float, default 1000
        Memory for kernel rows in megabytes.
    max_iter : int, default -1
        Limit on the solver's steps; -1 leaves only the one that keeps a fit from crawling for ever, ten million.
    max_time : float, optional
        Limit in seconds for each two-class problem.
    warm_start : bool, default False
        Start from the coefficients of the last fit, if the data has as many rows.
    decision_function_shape : str, default "ovr"
        Of ``decision_function`` with more than two classes: "ovr", a column a class, or "ovo", a column a pair of them.
    break_ties : bool, default False
        Whether ``predict`` takes the class with the largest decision value of "ovr" where there are more than two, not the
        first of those with the most votes.
    n_jobs : int, optional
        Threads for pairs of classes, as joblib counts them: None is one, -1 all.  Kernel values, those of predictions too, are
        computed on as many threads as BLAS has, whatever this is.
    random_state : int or RandomState, default None
        Seed of solvers that draw points at random, and with ``probability`` of the folds, which follow the order of the rows
        without it.
    verbose : bool, default False
        Show progress on fits that take longer than a second.

    Attributes
    ----------
    support_ : array of shape (s,)
        Rows of the support vectors.
    support_vectors_ : array or CSR matrix of shape (s, d)
        The support vectors; none with a precomputed kernel, or if points are no rows of numbers.
    n_support_ : array
        Their number in each class.
    dual_coef_ : array or CSR matrix of shape (n_classes - 1, s)
        Signed coefficients, laid out as in scikit-learn; CSR if the support vectors are.
    intercept_ : array
        The bias, one for each pair of classes.
    coef_ : array or CSR matrix
        Weights of the features, to be read only; only for the linear kernel.
    classes_ : array
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        What multiplies C for each class.
    calibration_ : array of shape (1 or n_classes, 2), or None
        A and B of p = 1 / (1 + exp(A f + B)), for ``classes_[1]`` or each class against the others; None without
        ``probability``, and after ``partial_fit`` or ``forget``.
    fit_status_ : int
        0 if every pair of classes has converged, else 1; ``status_`` says more.
    shape_fit_ : tuple
        Shape of the training points.
    n_iter_ : array
        Steps of the solver, for each pair of classes.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the solution; with more than two classes lists, an entry a pair.
    duality_gap_ : float
        The relative duality gap, the largest over pairs of classes.
    kernel_evaluations_ : int
        Kernel values computed.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerogap import SVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = SVC(C=10.0).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-4)
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "hinge",
        tol: float = 1e-4,
        solver: Any = "auto",
        fit_intercept: bool = True,
        class_weight: Any = None,
        shrinking: bool = True,
        probability: bool = False,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        warm_start: bool = False,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.loss = loss
        self.tol = tol
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.shrinking = shrinking
        self.probability = probability
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.warm_start = warm_start
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SVC":
        """Fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, d)
            Training points, or their kernel matrix (n, n) with ``kernel="precomputed"``.  If the kernel is a function, any
            list of points that it takes.
        y : array of shape (n,)
            Labels, of two or more classes.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        if not self._is_calibrated:
            return self._become(self._twin()._fit(X, y, sample_weight))
        with limits() as limit:
            new = self._twin()._fit(X, y, sample_weight)
            new._calibrate(X, y, sample_weight, limit)
        return self._become(new)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, keep_gram: bool = False) -> "SVC":
        began = time.perf_counter()
        self._check_options()
        X, y = self._check_training(X, y, copy=True)
        validation.check_labels(y)
        weight = validation.check_weights(sample_weight, X.shape[0]).copy()
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_classes(codes, weight)
        points = self._prepare(X, codes.astype(np.float64), weight)
        with limits(self._time_left(began) if self.classes_.size == 2 else None):
            self._fit_rows(Rows(X, codes, weight), points, self._starts(X.shape[0]), keep_gram=keep_gram)
        self._release_objects()
        return self

    def _fit_rows(self, rows: Rows, points: Distinct, starts: np.ndarray | None, *, keep_gram: bool = False) -> "SVC":
        """Separate every pair of classes, from coefficients (pairs, n) if they are given; Ctrl-C leaves the rest there.

        ``keep_gram``: for exchanges that follow, which need kernel values again, and have the last word.
        """
        pairs = pairs_of(self.classes_.size)
        weighted = self._weighted(rows, points)
        with limits():
            with limits(None if self.max_time is None else len(pairs) * self.max_time):
                whole = self._whole_gram(rows, points)
            beta = np.zeros((len(pairs), points.rows.size))
            found: list[Any] = [None] * len(pairs)
            moved = np.full(len(pairs), -1 if starts is None else 0)  # -1: not begun
            if starts is not None:
                beta[:] = [points.gather(start) for start in starts]
            elif whole is not None and self._is_plain:
                found, moved = self._fit_small(whole, weighted, pairs, beta)
            left = [k for k, outcome in enumerate(found) if outcome is None]

            def fit_one(i: int) -> Any:
                k = left[i]
                return self._fit_pair(rows, weighted, *pairs[k], None if moved[k] < 0 else beta[k], whole)

            fitted = self._each(fit_one, len(left))
            for k, (own, outcome, _) in zip(left, fitted, strict=True):
                beta[k], found[k] = own, replace(outcome, n_iter=outcome.n_iter + max(int(moved[k]), 0))
        outcomes: list[Outcome] = found
        training = Training(rows, points, beta)
        self._take(training, outcomes)
        if whole is not None and (len(pairs) > 1 or not left):
            self.kernel_evaluations_ += whole.gram.evaluations
        self._training = training
        if keep_gram:
            training.outcomes, training.whole = list(outcomes), whole
            training.evaluations = self.kernel_evaluations_ if len(pairs) > 1 else 0
            if len(pairs) == 1:
                training.grams = [fitted[0][2] if left else cast(_Whole, whole).gram]
        else:
            self._warn(outcomes)
        return self

    def _take(self, training: Training, outcomes: list[Outcome]) -> None:
        rows = training.rows
        self.class_weight_ = self._class_factors(rows.codes, rows.weight)
        beta = self._row_coefficients(training)
        self._store(rows.X, rows.codes, beta, outcomes)
        if self.warm_start:
            self._last_beta = beta

    # Exact changes of a fitted model.

    @available_if(check_can_change)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "SVC":
        """Add rows to those seen so far, and go to the exact optimum of them all by a few exchanges.

        The model is the one ``fit`` would give on all rows with the kernel's parameters of the first call: ``gamma="scale"``
        is computed there.  Of several classes only the pairs change whose classes get rows.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            More points.
        y : array of shape (n,)
            Their labels.  The first call must hold every class.
        classes : array, optional
            All labels, as other estimators want them; they must be those of the first call.
        sample_weight : array of shape (n,), optional
            A point of weight two counts as two points.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        self._check_options()
        self._refuse_balanced()
        self._check_more(X)
        is_first = not hasattr(self, "classes_")
        X, y = self._check_points(X, y, reset=is_first, copy=not is_first)
        validation.check_labels(y)
        known = np.unique(y if classes is None else classes) if is_first else self.classes_
        if classes is not None and not np.array_equal(np.unique(classes), known):
            raise ValueError(f"classes must be those of the first call, {known.tolist()}; got {list(classes)}.")
        codes = validation.check_known_labels(y, known)
        if is_first:
            if np.unique(y).size < known.size:
                raise ValueError(
                    f"The first call of partial_fit must hold points of every class {known.tolist()}; "
                    f"got {np.unique(y).tolist()} only. Gather rows until all are there."
                )
            return self._first_fit(X, y, sample_weight, self.max_time if known.size == 2 else None)
        training = self._kept_training()
        weight = validation.check_weights(sample_weight, X.shape[0])
        more = Rows(X, codes, weight)
        return self._change(training, lambda model: training.add(model, more))

    @available_if(check_can_change)
    def forget(self, indices: Any) -> "SVC":
        """Take rows out of the model, as if they had never been seen.

        Rows that remain keep their order and are counted anew from zero.

        Parameters
        ----------
        indices : int, array of int, or mask
            Rows among those that the model holds, in the order they came.

        Returns
        -------
        SVC
            The fitted model itself.
        """
        check_is_fitted(self)
        self._check_options()
        self._refuse_balanced()
        training = self._kept_training()
        kept = self._check_forgotten(training, indices)
        left = training.rows.codes[kept]
        present = np.bincount(left, weights=training.rows.weight[kept], minlength=self.classes_.size) > 0
        if not present.all():
            raise ValueError(
                f"Without these rows no point of class {self.classes_[~present][0]} is left to separate from others. "
                "Add rows of that class with partial_fit first."
            )
        return self._change(training, lambda model: training.forget(model, kept))

    def _refuse_balanced(self) -> None:
        if self.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" changes the weight of every row with every call. Give the weights as a dict.'
            )

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_positive("C", self.C, infinite=True, advice="Use np.inf for the hard margin.")
        validation.check_choice("loss", self.loss, ("hinge", "squared_hinge"))
        validation.check_choice("decision_function_shape", self.decision_function_shape, ("ovr", "ovo"))

    # The fit.

    def _pieces(self, rows: Rows, points: Distinct) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the points of every pair of classes, with more than two one class after the other, and their signs."""
        code, k = rows.codes[points.rows], self.classes_.size
        if k == 2:
            return [(np.arange(code.size), np.where(code == 1, 1.0, -1.0))]
        members = [np.flatnonzero(code == c) for c in range(k)]
        pairs = combinations(members, 2)
        return [(np.concatenate([a, b]), np.repeat([1.0, -1.0], [a.size, b.size])) for a, b in pairs]

    def _row_coefficients(self, training: Training) -> np.ndarray:
        """Return coefficients over the rows, (pairs of classes, n), from those over the distinct points."""
        rows, points, beta = training.rows, training.points, training.beta
        if self.loss != "hinge":  # a ridge shares them by weight
            return points.spread(beta)
        weight = np.where(rows.weight > 0, rows.weight, 1.0)  # those without weight have no part in it
        caps = self.C * weight * self._class_factors(rows.codes, rows.weight)[rows.codes]
        return points.on_few(beta, caps)

    def _each(self, work: Callable[[int], Any], count: int) -> list[Any]:
        """Return ``work(k)`` for k up to a count, on ``n_jobs`` threads; limits hold in all of them."""
        return each(work, count, self.n_jobs)

    def _whole_gram(self, rows: Rows, points: Distinct) -> _Whole | None:
        """Return the kernel matrix of all classes, if memory holds it: every pair of classes has its part of it.

        Of two classes only where that is all there is to prepare.
        """
        is_one = self.classes_.size == 2
        is_taken = self._is_plain and small_pairs.takes(self._kernel)
        is_small = is_taken and points.rows.size <= small_pairs.most_points(self._kernel, self.C)
        if not (is_small if is_one else self._kernel.can_share and self.solver == "auto"):
            return None
        codes = rows.codes[points.rows]
        order = np.arange(codes.size) if is_one else np.argsort(codes, kind="stable")
        gram = self._gram(rows.X, points.rows[order])
        if not gram.holds_all:
            return None
        with suppress(Exceeded):
            gram.full()
        return _Whole(gram, order, codes[order]) if gram.is_complete else None

    @property
    def _is_plain(self) -> bool:
        """Whether nothing is asked for that problems of few points have no need of."""
        is_unlimited = self.max_iter == -1 and (self.max_time is None or self.max_time >= small_pairs.MOST_SECONDS)
        return self.solver == "auto" and self.loss == "hinge" and is_unlimited

    def _fit_small(
        self, whole: _Whole, points: Distinct, pairs: list[tuple[int, int]], beta: np.ndarray
    ) -> tuple[list[Any], np.ndarray]:
        """Separate the pairs of few points into coefficients (pairs, m); return outcomes or None, and how many were moved."""
        places = [whole.places(a, b) for a, b in pairs]
        targets = [signs(whole.codes[at], a, b, self.classes_.size) for at, (a, b) in zip(places, pairs, strict=True)]
        caps = [self.C * points.weight[whole.order[place]] for place in places]
        problems = small_pairs.Problems.of(places, targets, caps)
        if not small_pairs.suits(whole.gram, problems):
            return [None] * len(pairs), np.full(len(pairs), -1)
        found = small_pairs.separate(whole.gram, problems, has_bias=self.fit_intercept, tol=self.tol)
        is_short = len(pairs) == 1 and found.outcomes[0] is None and found.n_iter[0] > 0
        if is_short and not small_pairs.has_many(problems):
            problem = self._problem(whole.gram, targets[0], points.weight[whole.order[places[0]]])
            found.outcomes[0] = small_pairs.exchanged(problem, found.beta, int(found.n_iter[0]), tol=self.tol)
            if found.outcomes[0] is None and self._kernel.is_linear:
                found.n_iter[0] = -1
        owner = np.repeat(np.arange(len(pairs)), np.diff(problems.edges))
        beta[owner, whole.order[problems.points]] = found.beta
        return found.outcomes, found.n_iter

    def _fit_pair(
        self, rows: Rows, points: Distinct, a: int, b: int, start: np.ndarray | None, whole: _Whole | None
    ) -> tuple[np.ndarray, Outcome, Gram | None]:
        """Separate class a from class b; return signed coefficients over all distinct points, the outcome, and the matrix.

        With more than two classes that is not kept: memory is to hold one of them at a time.
        """
        code = rows.codes[points.rows]
        if whole is None:
            of_pair = np.flatnonzero((code == a) | (code == b))
        else:
            places = whole.places(a, b)
            of_pair = whole.order[places]
        sign = signs(code[of_pair], a, b, self.classes_.size)
        title = f"{self.classes_[a]} against {self.classes_[b]}"
        with limits(self.max_time):  # a kernel that is a function takes its time for the diagonal already
            if whole is None:
                gram = self._gram(rows.X, points.rows[of_pair])
            else:
                gram = whole.gram if self.classes_.size == 2 else whole.gram.subset(places)
            problem = self._problem(gram, sign, points.weight[of_pair])
            solution = self._solve(problem, None if start is None else start[of_pair], title)
        beta = np.zeros(points.rows.size)
        beta[of_pair] = solution.beta
        return beta, Outcome.of(solution), gram if self.classes_.size == 2 else None

    def _problem(self, gram: Gram, sign: np.ndarray, weight: np.ndarray) -> DualProblem:
        build = DualProblem.hinge if self.loss == "hinge" else DualProblem.squared_hinge
        return build(gram, sign, self.C, sample_weight=weight, fit_intercept=self.fit_intercept)

    def _check_classes(self, codes: np.ndarray, weight: np.ndarray) -> None:
        check_present(type(self).__name__, self.classes_, codes, weight)

    def _weighted(self, rows: Rows, points: Distinct) -> Distinct:
        """Return the points with the weight of their class as part of theirs.

        It multiplies what duplicates have summed to, so that repetition is weight to the last bit.
        """
        factors = self._class_factors(rows.codes, rows.weight)
        return points._replace(weight=points.weight * factors[rows.codes[points.rows]])

    def _class_factors(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return what multiplies C for each class; "balanced" counts a point of weight two twice."""
        return class_factors(self.class_weight, self.classes_, codes, weight)

    def _starts(self, n: int) -> np.ndarray | None:
        """Return the coefficients of the last fit, if they are wanted and fit."""
        if not self.warm_start:
            return None
        last, shape = getattr(self, "_last_beta", None), (len(pairs_of(self.classes_.size)), n)
        if last is None and hasattr(self, "dual_coef_") and self.n_support_.size == self.classes_.size:
            last = np.zeros((shape[0], self.shape_fit_[0]))  # that fit was without warm_start
            last[:, self.support_] = self._pair_coefficients()
        return last if last is not None and last.shape == shape else None

    def _store(self, X: Any, codes: np.ndarray, beta: np.ndarray, outcomes: list[Outcome]) -> None:
        """Lay out the coefficients as LIBSVM does: support vectors by class, a row for each of the other classes."""
        used = np.flatnonzero(beta.any(axis=0))
        support = used[np.argsort(codes[used], kind="stable")]
        self._store_support(X, support)
        self.n_support_ = np.bincount(codes[support], minlength=self.classes_.size).astype(np.int32)
        self.dual_coef_ = self._sparse_if_points_are(laid_out(beta[:, support], self.n_support_))
        self._set_biases([outcome.bias for outcome in outcomes])
        self.n_iter_ = np.array([outcome.n_iter for outcome in outcomes], dtype=np.int32)
        certificates = [outcome.certificate for outcome in outcomes]
        statuses = [outcome.status for outcome in outcomes]
        traces = [outcome.trace for outcome in outcomes]
        self.duality_gap_ = max(certificate.relative_gap for certificate in certificates)
        self.kernel_evaluations_ = sum(outcome.kernel_evaluations for outcome in outcomes)
        is_one = len(outcomes) == 1
        self.certificate_ = certificates[0] if is_one else certificates
        self.status_: Status | list[Status] = statuses[0] if is_one else statuses
        self.trace_ = traces[0] if is_one else traces
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in statuses))
        self.calibration_: np.ndarray | None = None  # that of another model, if there is one

    def _pair_decisions(self, X: Any) -> np.ndarray:
        """Return f(x) for every pair of classes, LIBSVM's way: positive for the first (with two classes the second)."""
        check_is_fitted(self)
        laid = self._coefficients
        if self.classes_.size == 2:
            return self._products(X, [(slice(None), laid.T)])[0] + self._biases
        groups = [slice(a, b) for a, b in pairwise([0, *np.cumsum(self.n_support_)])]
        of_class = self._products(X, [(group, laid[:, group].T) for group in groups])
        pairs = pairs_of(self.classes_.size)
        return np.stack([of_class[a][:, b - 1] + of_class[b][:, a] for a, b in pairs], axis=1) + self._biases

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,) or (n, k)
            For two classes positive for ``classes_[1]``; else a column a class, or a pair of classes with "ovo".
        """
        now = self._twin()  # another thread may store another model meanwhile
        return now._shaped(now._pair_decisions(X))

    def predict(self, X: Any) -> np.ndarray:
        """Return the class of each point.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Points, or kernel values against the training points with ``kernel="precomputed"``.

        Returns
        -------
        array of shape (n,)
            Labels; with more than two classes the one most pairs vote for, or with ``break_ties`` the one of the largest
            decision value.
        """
        now = self._twin()  # another thread may store another model meanwhile
        check_is_fitted(now)
        check_ties(break_ties=now.break_ties, shape=now.decision_function_shape)
        return now.classes_[now._chosen(now._pair_decisions(X))]

    def _shaped(self, decisions: np.ndarray) -> np.ndarray:
        """Return the decision values of pairs of classes in the shape that is asked for."""
        return shaped(decisions, self.classes_.size, self.decision_function_shape)

    def _by_class(self, decisions: np.ndarray) -> np.ndarray:
        """Return a column for each class from one for each pair of them; two classes have one column either way."""
        return by_class(decisions, self.classes_.size)

    def _chosen(self, decisions: np.ndarray) -> np.ndarray:
        """Return the number of the class that most pairs vote for, or with ``break_ties`` that of the largest value."""
        return chosen(decisions, self.classes_.size, break_ties=self.break_ties)

    def _weights(self) -> np.ndarray:
        points = self._moved_support()
        return np.array([own @ points for own in self._pair_coefficients()])

    def _pair_coefficients(self) -> np.ndarray:
        """Return the coefficients of all support vectors for every pair of classes."""
        of_class, owner = self._coefficients, np.repeat(np.arange(self.classes_.size), self.n_support_)
        return np.array([coefficients(of_class, owner, a, b) for a, b in pairs_of(self.classes_.size)])
