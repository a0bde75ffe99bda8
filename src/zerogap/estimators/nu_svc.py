"""The nu-SVC: a share of the points in place of a cost, looked up on the exact path.

With b = beta / C and lam = 1 / C the SVM at C is: minimise b'K b / 2 - lam sum |b| subject to sum(b) = 0 and 0 <= y b <= w.
So its b is also the one of least b'K b among those with the same sum |b| = nu sum(w), and that is the nu-SVC; lam is its margin
rho.  Libraries divide its coefficients by rho, which makes them beta (Chang and Lin 2001).
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.estimators.base import Outcome
from zerogap.estimators.incremental import Rows, Training
from zerogap.estimators.nu_search import near_nu
from zerogap.estimators.pairs import pairs_of, signs
from zerogap.estimators.svc import SVC
from zerogap.gram import Gram
from zerogap.limits import Exceeded, is_over, limits, unlimited
from zerogap.path import Path, svm_path
from zerogap.path.result import SAME_SIZE
from zerogap.problem import DualProblem
from zerogap.solution import Status, Trace

# The path's ends, in units of 1 / (largest k(x, x) times weight): of all points, below which only the bias changes, and of one.
SMALLEST_C, LARGEST_C = 1e-2, 1e9
# Of a call that goes on with a path: few enough events to go little too far, and as many as are worth a call.
EVENTS, PER_POINT, GROWTH = 50, 0.05, 10.0
STATUS = {"max_time": Status.MAX_TIME, "interrupted": Status.INTERRUPTED}

growing = threading.RLock()  # models of several nu share their paths, and one at a time goes on with them


class Absent:
    """A method of SVC, or SVR, that is none of a model which looks up another parameter."""

    def __init__(self, instead: str, parameter: str):
        self.instead, self.parameter = instead, parameter

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type) -> NoReturn:
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: every row changes {self.parameter} of all. Use {self.instead}, or fit it "
            "again."
        )


class NuSVC(SVC):
    """Support vector classifier that is told a share of the points in place of C, with a certificate.

    A drop-in for ``sklearn.svm.NuSVC``.  The exact path over C is followed as far as ``nu`` asks for, and the model is the SVC
    at the C that it finds there: its certificate is that of this SVC.  Any other nu is then a lookup, ``at_nu``.

    Parameters
    ----------
    nu : float, default 0.5
        Upper bound on the share of points within the margin, and lower bound on that of support vectors; above 0, and at most
        twice the share of the lighter class of every pair.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a function of two sets of points, or a kernel object with its own
        parameters.  It must be positive semidefinite on the data, which sigmoid often is not: else there is no path.
    degree : int, default 3
        Degree of the polynomial kernel.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid; "scale" is 1 / (n_features * X.var()), "auto" is 1 / n_features.  In X.var() a row
        of ``sample_weight`` two counts twice.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    shrinking : bool, default True
        As in scikit-learn; a path has no use for it.
    probability : bool, default False
        Whether ``fit`` calibrates probabilities too, as :class:`zerogap.SVC` does.
    tol : float, default 1e-4
        Certified relative duality gap; that of a path is far smaller as a rule.
    cache_size : float, default 1000
        As in scikit-learn; a path holds the whole kernel matrix of its two classes.
    class_weight : dict or "balanced", default None
        Multiplies the weight of the points of each class, where scikit-learn's NuSVC ignores it.  With "balanced" any nu up
        to 1 is feasible.
    max_iter : int, default -1
        Limit on the events of a path; -1 is none.
    max_time : float, optional
        Limit in seconds for each two-class problem.
    decision_function_shape : str, default "ovr"
        Of ``decision_function`` with more than two classes: "ovr", a column a class, or "ovo", a column a pair of them.
    break_ties : bool, default False
        Whether ``predict`` takes the class with the largest decision value of "ovr" where there are more than two, not the
        first of those with the most votes.
    n_jobs : int, optional
        Threads for pairs of classes, as joblib counts them: None is one, -1 all.
    random_state : int or RandomState, default None
        With ``probability`` the seed of the folds, which follow the order of the rows without it.
    verbose : bool, default False
        Show progress of paths that take longer than a second.

    Attributes
    ----------
    paths_ : list of Path
        The exact path of each pair of classes, as far as it was followed.
    path_ : Path
        With two classes the one of them.
    C_ : array of shape (n_pairs,)
        The C of each pair: 1 / rho.
    nu_ : array of shape (n_pairs,)
        sum |beta| / (C sum w) of each pair: ``nu`` but for rounding, unless a limit has come first.
    support_ : array of shape (s,)
        Rows of the support vectors.
    support_vectors_ : array or CSR matrix of shape (s, d)
        The support vectors; none with a precomputed kernel, or if points are no rows of numbers.
    n_support_ : array
        Their number in each class.
    dual_coef_ : array or CSR matrix of shape (n_classes - 1, s)
        Signed coefficients, laid out and scaled as in scikit-learn; CSR if the support vectors are.
    intercept_ : array
        The bias, one for each pair of classes.
    coef_ : array or CSR matrix
        Weights of the features, to be read only; only for the linear kernel.
    classes_ : array
        The labels, sorted.
    class_weight_ : array of shape (n_classes,)
        What multiplies the weight of each class.
    calibration_ : array of shape (1 or n_classes, 2), or None
        A and B of p = 1 / (1 + exp(A f + B)), for ``classes_[1]`` or each class against the others; None without
        ``probability``.
    fit_status_ : int
        0 if every pair of classes has converged, else 1; ``status_`` says more.
    shape_fit_ : tuple
        Shape of the training points.
    n_iter_ : array
        Changes of sets on the path of each pair of classes.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the SVC with C = ``C_``; with more than two classes lists, an entry a pair.
    duality_gap_ : float
        The relative duality gap, the largest over pairs of classes.
    kernel_evaluations_ : int
        Kernel values computed.

    Notes
    -----
    Where a whole interval of C has this nu, because points of one class only are on their margins, rho is the middle of the
    interval, as it is in LIBSVM.  At the largest nu that is feasible all points of a class are within the margin, however
    large that is: here it is the least such margin, where scikit-learn refuses the model.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from zerogap import NuSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-9), round(float(model.nu_[0]), 6), round(float(model.at_nu(0.3).nu_[0]), 6)
    (True, 0.2, 0.3)
    """

    # What an SVC may choose, and a path has given.
    loss, solver, fit_intercept, warm_start, C = "hinge", "auto", True, False, 1.0
    partial_fit, forget = Absent("SVC", "the C"), Absent("SVC", "the C")

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = False,
        tol: float = 1e-4,
        cache_size: float = 1000,
        class_weight: Any = None,
        max_iter: int = -1,
        max_time: float | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: Any = False,
    ):
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.max_time = max_time
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_nu(self.nu)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, keep_gram: bool = False) -> "NuSVC":
        self._check_options()
        X, y = self._check_training(X, y, copy=True)
        validation.check_labels(y)
        weight = validation.check_weights(sample_weight, X.shape[0]).copy()
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._check_classes(codes, weight)
        self._prepare(X, codes.astype(np.float64), weight)
        self.class_weight_ = self._class_factors(codes, weight)
        self._rows = Rows(X, codes, weight)
        self.paths_: list[Any] = [None] * len(pairs_of(self.classes_.size))
        self.__dict__.pop("path_", None)
        self._look_up()
        self._release_objects()
        return self

    def at_nu(self, nu: float) -> "NuSVC":
        """Return the model of another nu: a lookup on the paths.

        For a smaller nu they are followed further, for a larger one than they begin with they are begun anew.

        Parameters
        ----------
        nu : float
            Above 0, and at most twice the share of the lighter class of every pair.

        Returns
        -------
        NuSVC
            A model of its own, the one ``NuSVC(nu=nu).fit`` would give, without probabilities.
        """
        check_is_fitted(self)
        model = self._twin()
        model.nu, model.paths_ = nu, list(self.paths_)
        model._check_options()
        if model._objects is not None:  # their kernel values were looked up, and still are in the matrices of the paths
            model._kernel = model.paths_[0].gram.kernel
        with growing:
            model._look_up()
        model._release_objects()
        return model

    # From nu to C.

    def _look_up(self) -> None:
        """Follow the paths until they have passed nu, and take the models that they have there."""
        pairs, rows = pairs_of(self.classes_.size), self._rows
        for a, b in pairs:
            self._check_feasible(a, b)
        outcomes, beta = [], np.zeros((len(pairs), rows.codes.size))
        self.C_, self.nu_ = np.empty(len(pairs)), np.empty(len(pairs))
        with limits():
            found = self._each(lambda k: self._fit_nu(*pairs[k], self.paths_[k]), len(pairs))
            self.paths_ = [path for path, _, _ in found]
            with unlimited():
                for k, (path, C, status) in enumerate(found):
                    outcome = self._outcome(path, C, status)
                    self.C_[k], self.nu_[k] = C, np.abs(outcome.beta).sum() / (C * path.points.weight.sum())
                    if path.has_segments:
                        beta[k, self._rows_of(*pairs[k])] = path._coefficients_at(C, on_few=True)
                    outcomes.append(outcome)
        if len(pairs) == 1:
            self.path_ = self.paths_[0]
            self._kernel = self.path_.gram.kernel  # its origin is about the points that count
        else:
            outcomes = [self._about_own_origin(*one) for one in zip(outcomes, self.paths_, strict=True)]
        self._store(rows.X, rows.codes, beta, outcomes)
        self._warn(outcomes)

    def _rows_of(self, a: int, b: int) -> np.ndarray:
        codes = self._rows.codes
        return np.arange(codes.size) if self.classes_.size == 2 else np.flatnonzero((codes == a) | (codes == b))

    def _weights_of(self, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return the weights of rows with those of their classes."""
        return weight * self.class_weight_[codes]

    def _check_feasible(self, a: int, b: int) -> None:
        """A class has no more than its own weight, and half of sum |b|."""
        codes, weight = self._rows.codes, self._weights_of(self._rows.codes, self._rows.weight)
        of_a, of_b = float(weight[codes == a].sum()), float(weight[codes == b].sum())
        largest = 2.0 * min(of_a, of_b) / (of_a + of_b)
        if self.nu > largest * (1.0 + SAME_SIZE):
            heavy = (
                ""
                if self.class_weight == "balanced"
                else ', or use class_weight="balanced", with which any nu is feasible'
            )
            raise ValueError(
                f"specified nu is infeasible: for the classes {self.classes_[a]} and {self.classes_[b]} it is at most "
                f"{largest:g}, twice the share of the lighter one; got nu={self.nu:g}. Choose a smaller nu{heavy}."
            )

    def _fit_nu(self, a: int, b: int, path: Any) -> tuple[Path, float, Status]:
        """Follow the path of two classes, or go on with it, until it has passed nu; return it, the C, and what ended it."""
        began, rows, of_pair = time.perf_counter(), self._rows, self._rows_of(a, b)
        codes = rows.codes[of_pair]
        weight = self._weights_of(codes, rows.weight[of_pair])
        X = rows.X[np.ix_(of_pair, of_pair)] if self._is_precomputed else rows.X[of_pair]
        with unlimited():
            size = self._scale(X, weight)
        C_min = SMALLEST_C / (size * float(weight.sum()))
        C_limit = LARGEST_C / (size * float(weight[weight > 0].mean()))
        options: dict[str, Any] = {
            "kernel": "precomputed" if self._is_precomputed else self._kernel,
            "sample_weight": weight,
            "C_min": C_min,
            "verbose": bool(self.verbose),
        }
        y = signs(codes, a, b, self.classes_.size)

        def follow(path: Path | None, **more: Any) -> Path:
            return svm_path(X, y, **options, resume=path, **more)

        if path is None or not path.has_segments or not _is_above(path, self.nu):
            with limits(self._time_left(began)):
                path = self._begun(follow, C_min, C_limit)
        first, events = path.counts.events, max(EVENTS, int(PER_POINT * of_pair.size))
        while True:
            if path.has_segments and path.C[0] > C_min * (1.0 + SAME_SIZE) and not _is_above(path, self.nu):
                path = _at_start(follow, C_limit)  # what it began with was too rough to tell
            C_max = min(C_limit, GROWTH * float(path.C[-1]))
            if path.has_segments:
                if _nu_at_end(path) < self.nu - SAME_SIZE:
                    return path, self._C_on(path), Status.CONVERGED
                beyond = path._C_beyond(self.nu)
                if path.C[-1] >= C_limit * (1.0 - SAME_SIZE):  # nothing but a hard margin goes on from here
                    if path._size_on(-1, 0.0) > SAME_SIZE * weight.sum() or beyond is None:
                        return path, self._C_at_limit(path, a, b), Status.CONVERGED
                    C_max = 1.01 * beyond
            some = events
            if self.max_iter != -1:
                some = min(some, self.max_iter - (path.counts.events - first))
                if some <= 0:
                    return path, float(path.C[-1]), Status.MAX_STEPS
            if is_over():  # by Ctrl-C: of it there is one warning, not one for every pair
                return path, float(path.C[-1]), Status.INTERRUPTED
            path = follow(path, C_max=C_max, max_events=some, max_time=self._time_left(began))
            if path.status in STATUS:
                return path, float(path.C[-1]), STATUS[path.status]

    def _begun(self, follow: Callable[..., Path], C_min: float, C_limit: float) -> Path:
        """Return a path without a segment, that begins at a C whose nu is a little above the one asked for.

        All smaller C are passed over, and coefficients are known there from which it starts.
        """
        path = _at_start(follow, C_limit)
        assert path.gram is not None
        try:
            unit = DualProblem.hinge(path.gram, path.y, 1.0, sample_weight=path.points.weight)
            found = near_nu(unit, self.nu, C_limit)
        except Exceeded:
            found = None
        if found is not None and found[0] > C_min:
            path.lam, path.reached = np.array([1.0 / found[0]]), found[1]
        return path

    def _scale(self, X: Any, weight: np.ndarray) -> float:
        """Return the largest kernel value of a point with itself."""
        diagonal = (
            np.diagonal(X) if self._is_precomputed else Gram.of_checked(X, self._kernel, self.cache_size).diagonal
        )
        return float(np.abs(diagonal[weight > 0]).max()) or 1.0

    def _C_on(self, path: Path) -> float:
        """Return the C of nu; of an interval the one whose margin is its middle, and of one that begins at zero the largest."""
        begin, end = path._lam_of_nu(self.nu)
        return 1.0 / (end if begin >= path.lam[0] else 0.5 * (begin + end))

    def _C_at_limit(self, path: Path, a: int, b: int) -> float:
        """Return the C of a nu that no larger one falls below; refuse a nu that no C has."""
        least = _nu_at_end(path)
        if least > self.nu + SAME_SIZE:
            raise ValueError(
                f"specified nu is infeasible: the classes {self.classes_[a]} and {self.classes_[b]} overlap, and at "
                f"C={path.C[-1]:.3g} nu is {least:g} still; got nu={self.nu:g}, with which there is no margin. Choose a nu "
                "above that, or a kernel that separates them better."
            )
        begin, end = path._lam_of_nu(self.nu)
        return 1.0 / (min(max(1.0, end), begin) if begin >= path.lam[0] else begin)

    def _outcome(self, path: Path, C: float, status: Status) -> Outcome:
        assert path.gram is not None
        if not path.has_segments:  # a limit has come before anything was known
            nothing = np.zeros(path.y.size)
            return Outcome(nothing, 0.0, Certificate.nothing(), status, 0, Trace(), path.gram.evaluations)
        beta, certificate = path.beta_at(C), path.certificate_at(C)
        if status is Status.CONVERGED:
            status = Status.of(certificate, self.tol)
        return Outcome(beta, certificate.bias, certificate, status, path.n_events, Trace(), path.gram.evaluations)

    def _about_own_origin(self, outcome: Outcome, path: Path) -> Outcome:
        """Return an outcome with the bias that goes with the model's kernel: a path has moved the origin of its own."""
        assert path.gram is not None
        kernel, centre = path.gram.kernel, self._kernel.centre
        if centre is None and kernel.centre is None:
            return outcome
        origin = np.zeros(self.n_features_in_)
        moved = (origin if centre is None else centre) - (origin if kernel.centre is None else kernel.centre)
        return replace(outcome, bias=outcome.bias + float((outcome.beta @ kernel.moved(path.gram.X)) @ moved))

    def _shortfall(self, status: Status, outcomes: Any, count: int) -> str:
        if status not in (Status.MAX_STEPS, *STATUS.values()):
            return super()._shortfall(status, outcomes, count)
        pairs = "" if count == 1 else f" in {len(outcomes)} of {count} pairs of classes"
        far = self.nu_[self.nu_ > self.nu * (1.0 + SAME_SIZE)]
        come = f"come to nu={far.max():g}, and the model is the one there" if far.size else "not got beyond its start"
        advice = "" if status is Status.INTERRUPTED else " Raise max_iter or max_time, or choose a larger nu."
        return f"NuSVC was stopped{pairs} ({status.name.lower()}) on its way to nu={self.nu:g}: it has {come}.{advice}"

    @property
    def _way_to_go_on(self) -> str:
        return ""

    def _kept_training(self) -> Training:
        raise ValueError(
            "The rows of a NuSVC cannot come, go or be left out one by one: every row changes the C of all. Use an SVC with "
            "the C that it has found, model.C_."
        )

    def _restore_paths(self) -> None:
        """Give paths that were stored without their kernel matrices these again."""
        for path, (a, b) in zip(self.paths_, pairs_of(self.classes_.size), strict=True):
            if path.gram is None:
                path.gram = self._gram(self._rows.X, self._rows_of(a, b)[path.points.rows])


def _at_start(follow: Callable[..., Path], C_limit: float) -> Path:
    """Return a path that has its points and its kernel, and no segment yet."""
    with unlimited():
        return follow(None, C_max=C_limit, max_time=0.0)


def _is_above(path: Path, nu: float) -> bool:
    """Whether a path begins at a C whose nu is larger, so that it shows where the C of nu begin."""
    return path._size_on(0, float(path.lam[0])) / float(path.points.weight.sum()) > nu + SAME_SIZE


def _nu_at_end(path: Path) -> float:
    """Return nu at the largest C of a path."""
    return path._size_on(-1, float(path.lam[-1])) / float(path.points.weight.sum())
