"""The exact model in place of a fitted one, started from it."""

import copy
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from zerogap import validation
from zerogap.estimators.base import KernelMachine
from zerogap.estimators.svc import SVC
from zerogap.estimators.svr import SVR
from zerogap.foreign import libsvm
from zerogap.foreign.certifying import refuse_indefinite
from zerogap.foreign.nu import NuClassifier, NuRegressor
from zerogap.foreign.parts import Bound, Expansion, Vector
from zerogap.foreign.reading import Training, parts_of
from zerogap.foreign.report import ModelCertificate
from zerogap.foreign.wrappers import Core, core_of
from zerogap.function_gap import vector
from zerogap.limits import interruptible

# Parameters that mean the same in both libraries.  tol, cache_size and max_iter are of the solver that was used.
SHARED = (
    *(
        "C",
        "epsilon",
        "kernel",
        "degree",
        "coef0",
        "shrinking",
        "decision_function_shape",
        "break_ties",
        "random_state",
    ),
    "verbose",
)
KEPT = {"warm_start": False, "max_time": None}  # of a model of ours, which a fit needs otherwise


def polish(
    model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, tol: float = 1e-9, max_time: float | None = None
) -> Any:
    """Return the exact model in place of a fitted one: the problem its parameters state, solved from where it is.

    A kernel machine becomes a :class:`zerogap.SVC` or :class:`zerogap.SVR` with the same parameters: gamma is the number that
    was used, and so are weights of classes; with ``probability=True`` probabilities are calibrated anew, on X and y;
    ``cache_size`` and ``max_iter`` are the solver's, and zerogap's.  A NuSVC of two classes becomes the SVC, a NuSVR the SVR,
    whose C or epsilon has that nu.  The others stay what they are, a copy that has ``certificate_``, a
    :class:`ModelCertificate`, besides: LinearSVC and LinearSVR with the exact ``coef_`` and ``intercept_``; OneClassSVM, and a
    NuSVC of more than two classes, with the exact ``dual_coef_``, ``intercept_`` and support vectors.  In a Pipeline or a
    TransformedTargetRegressor the machine is replaced; of a search the best estimator is returned.

    Parameters
    ----------
    model : estimator
        What :func:`certify` takes, but a NuSVC of scikit-learn-intelex of more than two classes.
    X : array or CSR matrix of shape (n, d)
        The points it was fitted on.
    y : array of shape (n,), optional
        Labels or targets; not needed for OneClassSVM.
    sample_weight : array of shape (n,), optional
        Weights it was fitted with.
    tol : float, default 1e-9
        Relative duality gap of the new model.
    max_time : float, optional
        Limit in seconds for each problem that is solved; a ConvergenceWarning tells if it was reached.  Ctrl-C raises
        KeyboardInterrupt.

    Returns
    -------
    estimator
        A new model; the one that was passed stays as it is.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from zerogap import datasets, polish
    >>> X, y = datasets.two_spirals()
    >>> exact = polish(SVC(C=1e4).fit(X, y), X, y)
    >>> bool(exact.duality_gap_ <= 1e-9)
    True
    """
    validation.check_positive("tol", tol, advice="It is a relative duality gap, for instance 1e-9.")
    validation.check_max_time(max_time)
    with interruptible():  # a copy that is not exact is of no use
        return _polished(model, X, y, sample_weight, tol, max_time)


def _polished(model: Any, X: Any, y: Any, sample_weight: Any, tol: float, max_time: float | None) -> Any:
    core = core_of(model, X, y)
    training = Training(core.model, core.X, core.y, sample_weight)
    # A NuSVC of several classes has another C for every pair of them, which no SVC has.
    if training.kind == "OneClassSVM" or (training.kind == "NuSVC" and training.classes.size > 2):
        return core.wrap(_libsvm(training, core.X, core.y, sample_weight, tol, max_time))
    if training.kind.startswith("Linear"):
        exact = _refitted(core, sample_weight, tol, max_time) if training.is_own else _linear(training, tol, max_time)
        return core.wrap(exact)
    return core.wrap(_machine(training, core.X, core.y, sample_weight, tol, max_time))


def _machine(
    training: Training, X: Any, y: Any, sample_weight: Any, tol: float, max_time: float | None
) -> KernelMachine:
    """Fit our own estimator from the coefficients."""
    options: dict[str, Any] = {}
    starts = []
    for part in parts_of(training):
        assert isinstance(part, Expansion)
        start = np.zeros(training.n)
        if isinstance(part, NuClassifier | NuRegressor):
            start[part.rows], options = _of_nu(part, tol, max_time)
        else:
            start[part.rows] = part.feasible()
        starts.append(start)
    new = _like(training, **options)
    new.set_params(tol=tol, max_time=max_time, warm_start=True)
    new._last_beta = np.array(starts) if isinstance(new, SVC) else starts[0]
    new.fit(X, y, sample_weight)
    new.set_params(**{name: getattr(training.model, name, default) for name, default in KEPT.items()})
    del new._last_beta
    return new


def _of_nu(part: NuClassifier | NuRegressor, tol: float, max_time: float | None) -> tuple[np.ndarray, dict[str, float]]:
    """Return the exact coefficients of a nu problem, and the C or epsilon that has this nu."""
    exact = part.with_margin(tol, max_time) if isinstance(part, NuClassifier) else part.exact(tol, max_time)
    _warn_if_short(exact.certificate.relative_gap, tol, "The nu problem")
    if isinstance(part, NuRegressor):
        return exact.beta, {"epsilon": exact.s}
    return exact.beta / exact.s, {"C": 1.0 / exact.s}


def _warn_if_short(gap: float, tol: float, name: str) -> None:
    if not gap <= tol:
        warnings.warn(
            f"{name} was solved to a relative duality gap of {gap:.2g}, not the tol={tol:g} asked for: raise max_time if there "
            "is one; else float64 has no more digits for this data. Scale the features (StandardScaler).",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )


def _like(training: Training, **options: Any) -> Any:
    """Return an estimator of ours, not fitted, of the same problem."""
    model, kernel = training.model, training.kernel
    is_classifier = training.kind.endswith("SVC")
    if training.is_own:
        own = type(model)(**model.get_params(deep=False))
        if isinstance(model.kernel, str):
            own.set_params(gamma=getattr(kernel, "gamma", model.gamma))
        return own
    new: Any = SVC() if is_classifier else SVR()
    ours = new.get_params(deep=False)
    new.set_params(**{name: getattr(model, name) for name in SHARED if name in ours and hasattr(model, name)})
    new.set_params(gamma=getattr(kernel, "gamma", "scale"), **options)
    if is_classifier:
        # scikit-learn's default is a word, which asks for none.
        new.set_params(probability=getattr(model, "probability", False) in (True, 1))
        if model.class_weight is not None and training.weighs_classes:
            new.set_params(
                class_weight=dict(zip(training.classes.tolist(), training.class_factors.tolist(), strict=True))
            )
    return new


def _libsvm(training: Training, X: Any, y: Any, sample_weight: Any, tol: float, max_time: float | None) -> Any:
    """Return a copy of the model with the exact coefficients and intercepts."""
    libsvm.refuse_others(training)
    coefficients, biases, bounds = [], [], []
    for part in parts_of(training):
        assert isinstance(part, Expansion)
        refuse_indefinite(part.problem.gram)
        exact, bound = part.polished(tol, max_time)
        own, bias = exact.as_held()
        coefficients.append(np.zeros(training.n))
        coefficients[-1][part.rows] = own
        biases.append(bias)
        bounds.append(bound)
    new = libsvm.with_coefficients(training, np.array(coefficients), np.array(biases))
    names, found, sizes = [], [], []
    for part, bound in zip(parts_of(Training(new, X, y, sample_weight)), bounds, strict=True):  # of what it holds
        assert isinstance(part, Expansion)
        names.append(part.name)
        found.append(part.against(bound, tol))
        sizes.append(part.n_support)
    certificates, shortfalls = zip(*found, strict=True)
    new.certificate_ = ModelCertificate(
        training.kind, tuple(names), certificates, tuple(sizes), training.n, tuple(shortfalls)
    )
    new.fit_status_ = int(not new.certificate_.relative_gap <= tol)
    worst = new.certificate_.worst
    if new.fit_status_ and worst.primal + worst.rounding >= 0.0:
        warnings.warn(
            f"{training.kind} has objective {worst.primal:.2g}, no better than zero, which f = 0 has; the optimum is at least "
            f"{worst.dual:.2g}. If that is zero, as with a linear kernel and points all around the origin, there is nothing to "
            "solve: use another kernel, such as rbf. Else raise max_time if there is one.",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )
    else:
        _warn_if_short(new.certificate_.relative_gap, tol, training.kind)
    return new


def _refitted(core: Core, sample_weight: Any, tol: float, max_time: float | None) -> Any:
    """Return a linear model of ours fitted to a tolerance, with the parameters that it had."""
    new = copy.deepcopy(core.model)
    new.set_params(tol=tol, max_time=max_time).fit(core.X, core.y, sample_weight)
    return new.set_params(tol=core.model.tol, max_time=core.model.max_time)


def _linear(training: Training, tol: float, max_time: float | None) -> Any:
    """Return a copy of the model with the exact vectors."""
    new, found, shortfalls = copy.deepcopy(training.model), [], []
    for part in parts_of(training):
        assert isinstance(part, Vector)
        solved = Bound.of(part.solution(tol, max_time))
        beta = solved.beta
        w = vector(part.X, beta)
        intercept = float(w[-1]) * new.intercept_scaling if new.fit_intercept else 0.0
        # Where digits are short, the vector that was there may be the better one.
        tried = [(one, one.against(beta)) for one in (replace(part, w=w, intercept=intercept), part)]
        found.append(min(tried, key=lambda pair: pair[1].primal))
        shortfalls.append(solved.shortfall(found[-1][1], tol))
    W = np.array([part.w for part, _ in found])
    if new.fit_intercept:
        W, new.intercept_ = W[:, :-1], np.array([part.intercept for part, _ in found])
    new.coef_ = W if training.kind == "LinearSVC" else W[0]
    names, sizes = tuple(part.name for part, _ in found), tuple(part.n_support for part, _ in found)
    certificates = tuple(certificate for _, certificate in found)
    new.certificate_ = ModelCertificate(training.kind, names, certificates, sizes, training.n, tuple(shortfalls))
    _warn_if_short(new.certificate_.relative_gap, tol, training.kind)
    return new
