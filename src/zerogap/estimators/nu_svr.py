"""The nu-SVR: a share of the points in place of the width of the tube, looked up on the exact path over epsilon.

The nu-SVR minimises 1/2 |f|² + C (nu epsilon sum_i w_i + sum_i w_i max(0, |y_i - f(x_i)| - epsilon)) over f and epsilon too.
At its epsilon f is the SVR, and the derivative in epsilon, C nu sum(w) - sum |beta|, is zero: so it is where the path over
epsilon has this nu.
"""

import time
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.estimators.base import Outcome, judged
from zerogap.estimators.incremental import Rows, Training
from zerogap.estimators.nu_svc import STATUS, Absent, growing
from zerogap.estimators.svr import SVR
from zerogap.limits import limits, unlimited
from zerogap.path import EpsilonPath, svr_path
from zerogap.path.result import SAME_SIZE
from zerogap.solution import Status, Trace

BELOW = 0.9  # of the epsilon at which the tube holds all points: where many of them enter it at once is passed over
SHRINK, SMALL = (
    0.7,
    1e-3,
)  # of epsilon, from one look at nu to the next; below a part of the largest the rest is followed


class NuSVR(SVR):
    """Support vector regression that is told a share of the points in place of epsilon, with a certificate.

    A drop-in for ``sklearn.svm.NuSVR``.  The exact path over epsilon is followed as far as ``nu`` asks for, and the model is
    the SVR at the epsilon that it finds there: its certificate is that of this SVR.  Any other nu is then a lookup, ``at_nu``.

    Parameters
    ----------
    nu : float, default 0.5
        Above 0 and at most 1: no more than this share of the points is outside the tube, and no less are support vectors.
    C : float, default 1.0
        Cost of a deviation beyond the tube, above 0 and finite.
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
    tol : float, default 1e-4
        Certified relative duality gap; that of a path is far smaller as a rule.
    cache_size : float, default 1000
        As in scikit-learn; a path holds the whole kernel matrix.
    max_iter : int, default -1
        Limit on the events of the path; -1 is none.
    max_time : float, optional
        Limit in seconds.
    verbose : bool, default False
        Show progress of paths that take longer than a second.

    Attributes
    ----------
    path_ : EpsilonPath
        The exact path over epsilon, as far as it was followed.
    epsilon_ : float
        Half the width of the tube.
    nu_ : float
        sum |beta| / (C sum w): ``nu`` but for rounding, unless a limit has come first, or less if there is no tube any more.
    support_ : array of shape (s,)
        Rows of the support vectors.
    support_vectors_ : array or CSR matrix of shape (s, d)
        The support vectors; none with a precomputed kernel, or if points are no rows of numbers.
    n_support_ : array of shape (1,)
        Their number.
    dual_coef_ : array or CSR matrix of shape (1, s)
        Signed coefficients; CSR if the support vectors are.
    intercept_ : array of shape (1,)
        The bias.
    coef_ : array or CSR matrix of shape (1, d)
        Weights of the features, to be read only; only for the linear kernel.
    fit_status_ : int
        0 if the model has converged, else 1; ``status_`` says more.
    shape_fit_ : tuple
        Shape of the training points.
    n_iter_ : int
        Changes of sets on the path.
    certificate_, status_, trace_ : Certificate, Status and Trace
        Of the SVR with epsilon = ``epsilon_``.
    duality_gap_ : float
        The relative duality gap.
    kernel_evaluations_ : int
        Kernel values computed.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from zerogap import NuSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = NuSVR(nu=0.4, C=10.0).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-9), round(model.nu_, 6), bool(model.at_nu(0.2).epsilon_ > model.epsilon_)
    (True, 0.4, True)
    """

    # What an SVR may choose, and a path has given.
    loss, solver, fit_intercept, warm_start, random_state = "epsilon_insensitive", "auto", True, False, None
    partial_fit, forget = Absent("SVR", "the epsilon"), Absent("SVR", "the epsilon")

    def __init__(
        self,
        *,
        nu: float = 0.5,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        tol: float = 1e-4,
        cache_size: float = 1000,
        max_iter: int = -1,
        max_time: float | None = None,
        verbose: Any = False,
    ):
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.max_time = max_time
        self.verbose = verbose

    def _check_options(self) -> None:
        super()._check_options()
        validation.check_positive(
            "C", self.C, advice="Without a limit on the coefficients no nu is a share of the points."
        )
        validation.check_nu(self.nu)

    def _fit(self, X: Any, y: Any, sample_weight: Any, *, keep_gram: bool = False) -> "NuSVR":
        self._check_options()
        X, y = self._check_training(X, y, y_numeric=True, copy=True)
        y = np.array(y, dtype=np.float64)
        weight = validation.check_weights(sample_weight, X.shape[0]).copy()
        self._prepare(X, y, weight)
        self._rows, self._cost = Rows(X, y, weight), self.C
        self.__dict__.pop("path_", None)
        self._look_up()
        self._release_objects()
        return self

    def at_nu(self, nu: float) -> "NuSVR":
        """Return the model of another nu: a lookup on the path, which is followed further for a larger one.

        Parameters
        ----------
        nu : float
            Above 0 and at most 1.

        Returns
        -------
        NuSVR
            A model of its own, the one ``NuSVR(nu=nu).fit`` would give.
        """
        check_is_fitted(self)
        model = self._twin()
        model.nu = nu
        model._check_options()
        with growing:
            model._look_up()
        model._release_objects()
        return model

    def _look_up(self) -> None:
        """Follow the path until it has come to nu, and take the model that it has there."""
        with limits():
            status = self._follow()
            with unlimited():
                path: EpsilonPath = self.path_
                assert path.gram is not None
                self._kernel = path.gram.kernel  # its origin is about the points that count
                if path.has_segments:
                    end = max(float(path.epsilon[-1]), 0.0)
                    some = path._epsilons_of_nu(self.nu) if status is Status.CONVERGED else (end, end)
                    self.epsilon_ = 0.5 * sum(some)  # of an interval the middle, as in LIBSVM
                outcome = self._outcome(path, status)
                self.nu_ = float(np.abs(outcome.beta).sum() / (self.C * path.points.weight.sum()))
                of_rows = np.zeros(self._rows.y.size)
                if path.has_segments:
                    of_rows = path._coefficients_at(self.epsilon_, on_few=True, beta=outcome.beta)
        self._store(self._rows.X, of_rows, outcome)
        self._warn([outcome])

    def _follow(self) -> Status:
        """Follow the path over epsilon until its nu is large enough; return what ended that."""
        began, rows, path = time.perf_counter(), self._rows, getattr(self, "path_", None)
        largest = 0.5 * float(np.ptp(rows.y[rows.weight > 0])) or 1.0
        first = 0 if path is None else path.counts.events
        begin = epsilon = BELOW * largest
        while True:
            if path is not None and path.has_segments:
                least = path._size_on(0, path.lam[0])
                is_within = path.epsilon[0] < 0.5 * (1.0 + BELOW) * largest
                if is_within and least >= self.nu * path.family.w.sum() * (1.0 - SAME_SIZE):
                    path, begin, epsilon = None, largest, largest  # it begins with this nu, or a larger one
                    continue
                # Beyond it, so that an interval of epsilon with one nu is known to its end.
                if path._size_on(-1, path.lam[-1]) > self.nu * path.family.w.sum() * (1.0 + SAME_SIZE):
                    break
                if path.epsilon[-1] <= 0.0:
                    break
                epsilon = float(path.epsilon[-1])
            events = (
                None if self.max_iter == -1 else self.max_iter - (0 if path is None else path.counts.events - first)
            )
            if events is not None and events <= 0:
                return Status.MAX_STEPS
            path = svr_path(
                rows.X,
                rows.y,
                over="epsilon",
                kernel="precomputed" if self._is_precomputed else self._kernel,
                sample_weight=rows.weight,
                C=self.C,
                epsilon_max=begin,
                epsilon_min=SHRINK * epsilon if epsilon > SMALL * largest else 0.0,
                max_events=events,
                max_time=self._time_left(began),
                resume=path,
                verbose=bool(self.verbose),
            )
            assert isinstance(path, EpsilonPath)
            self.path_ = path
            if path.status in STATUS:
                return STATUS[path.status]
        return Status.CONVERGED

    def _outcome(self, path: EpsilonPath, status: Status) -> Outcome:
        assert path.gram is not None
        if not path.has_segments:  # a limit has come before anything was known
            self.epsilon_ = float(path.value_of(path.lam[0]))
            nothing = np.zeros(path.y.size)
            return Outcome(nothing, 0.0, Certificate.nothing(), status, 0, Trace(), path.gram.evaluations)
        beta = self._beta_of_nu(path) if status is Status.CONVERGED else path.beta_at(self.epsilon_)
        [certificate] = path.certificates(np.array([self.epsilon_]), betas=[beta])
        gap = certificate.relative_gap
        if status is Status.CONVERGED:
            status, gap = judged(certificate, path, self.epsilon_, self.tol)
        return Outcome(beta, certificate.bias, certificate, status, path.n_events, Trace(), path.gram.evaluations, gap)

    def _beta_of_nu(self, path: EpsilonPath) -> np.ndarray:
        """Return coefficients at epsilon whose sum is that of nu.

        Where nu jumps those before the jump are optimal, those behind it and all in between: one decision function, of which
        these have the sum.
        """
        total, lam = self.C * float(path.points.weight.sum()), float(path._lam(self.epsilon_))
        k, beta = path._position(lam), path.beta_at(self.epsilon_)
        excess = float(np.abs(beta).sum()) - self.nu * total
        step = -1 if excess > 0.0 else 1
        while abs(excess) > SAME_SIZE * total:
            edge, k, before, excess_before = max(k, k + step), k + step, beta, excess
            if k > len(path.lam) - 2 or abs(path.lam[edge] - lam) > 8.0 * np.spacing(lam):
                break  # no jump: rounding, or no tube is left, where nu may be less
            # With a tube wider than the first all coefficients are zero.
            beta = np.zeros(beta.size) if k < 0 else path.solution_at(self.epsilon_, on=k)[0]
            excess = float(np.abs(beta).sum()) - self.nu * total
            if excess * step >= 0.0:
                return before + excess_before / (excess_before - excess) * (beta - before)
        return path.beta_at(self.epsilon_)

    def _shortfall(self, status: Status, outcomes: Any, count: int) -> str:
        if status not in (Status.MAX_STEPS, *STATUS.values()):
            return super()._shortfall(status, outcomes, count)
        advice = "" if status is Status.INTERRUPTED else " Raise max_iter or max_time, or choose a smaller nu."
        return (
            f"NuSVR was stopped ({status.name.lower()}) on its way to nu={self.nu:g}: it has come to nu={self.nu_:g}, and the "
            f"model is the one there.{advice}"
        )

    @property
    def _way_to_go_on(self) -> str:
        return ""

    def _kept_training(self) -> Training:
        raise ValueError(
            "The rows of a NuSVR cannot come, go or be left out one by one: every row changes the epsilon of all. Use an SVR "
            "with the epsilon that it has found, model.epsilon_."
        )

    def _restore_paths(self) -> None:
        """Give a path that was stored without its kernel matrix this again."""
        if self.path_.gram is None:
            self.path_.gram = self._gram(self._rows.X, self.path_.points.rows)
