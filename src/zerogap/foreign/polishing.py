"""The exact model in place of a fitted one, started from it."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.estimators.base import KernelMachine
from zerogap.estimators.svc import SVC
from zerogap.estimators.svr import SVR
from zerogap.foreign.nu import model_of
from zerogap.foreign.parts import Expansion, Part, Vector
from zerogap.foreign.reading import Training, parts_of
from zerogap.foreign.report import ModelCertificate
from zerogap.foreign.wrappers import core_of


def polish(model: Any, X: Any, y: Any = None, sample_weight: Any = None, *, tol: float = 1e-9) -> Any:
    """Return the exact model in place of a fitted one: the problem its parameters state, solved from where it is.

    A kernel machine becomes a :class:`zerogap.SVC` or :class:`zerogap.SVR` with the same C, kernel (gamma as the number that
    was used), weights of classes and shape of decisions.  A LinearSVC or LinearSVR stays one: a copy of it has the exact
    ``coef_`` and ``intercept_``, and besides ``certificate_``, a :class:`ModelCertificate`.  A NuSVC of two classes becomes the SVC, a
    NuSVR the SVR, whose C or epsilon has that nu.  In a Pipeline or a TransformedTargetRegressor the machine is replaced; of a
    search the best estimator is returned.

    Parameters
    ----------
    model : estimator
        What :func:`certify` takes, but OneClassSVM and a NuSVC of more than two classes.
    X : array or CSR matrix of shape (n, d)
        The points it was fitted on.
    y : array of shape (n,)
        Labels or targets.
    sample_weight : array of shape (n,), optional
        Weights it was fitted with.
    tol : float, default 1e-9
        Relative duality gap of the new model.

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
    core = core_of(model, X, y)
    training = Training(core.model, core.X, core.y, sample_weight)
    if training.kind == "OneClassSVM":
        raise TypeError(
            "polish has no model to return for a OneClassSVM. certify(model, X, tol=1e-9) tells how far it is off; its exact "
            "coefficients are those of zerogap.solve(zerogap.DualProblem.one_class(zerogap.Gram(X, ...), nu))."
        )
    parts = parts_of(training)
    if training.kind == "NuSVC" and len(parts) > 1:
        raise TypeError(
            f"A NuSVC of {training.classes.size} classes has another C for every pair of them, which no SVC has. Wrap it in "
            "OneVsOneClassifier and polish its estimators, or use SVC."
        )
    if training.kind.startswith("Linear"):
        return core.wrap(_linear(training, parts, tol))
    return core.wrap(_machine(training, core.X, core.y, parts, sample_weight, tol))


def _machine(training: Training, X: Any, y: Any, parts: list[Part], sample_weight: Any, tol: float) -> KernelMachine:
    """Fit our own estimator from the coefficients."""
    options: dict[str, Any] = {}
    starts = np.zeros((len(parts), training.n))
    for start, part in zip(starts, parts, strict=True):
        assert isinstance(part, Expansion)
        start[part.rows] = part.feasible() if not training.kind.startswith("Nu") else 0.0
    if training.kind == "NuSVC":
        beta, rho, _ = model_of(parts[0], 0.1 * tol)
        if not rho > 0:
            raise ValueError(
                f"The margin of the optimum of nu={training.model.nu} is zero: it is the trivial model f = 0. Use a smaller nu."
            )
        starts, options = beta[None] / rho, {"C": 1.0 / rho}
    elif training.kind == "NuSVR":
        beta, epsilon, _ = model_of(parts[0], 0.1 * tol)
        starts, options = beta[None], {"epsilon": epsilon}
    new = _like(training, **options)
    new.set_params(tol=tol, warm_start=True)
    new._last_beta = starts if isinstance(new, SVC) else starts[0]
    new.fit(X, y, sample_weight)
    new.set_params(warm_start=getattr(training.model, "warm_start", False))
    del new._last_beta
    return new


def _like(training: Training, **options: Any) -> Any:
    """Return an estimator of ours, not fitted, of the same problem."""
    model, kernel = training.model, training.kernel
    is_classifier = training.kind.endswith("SVC")
    if training.is_own:
        own = type(model)(**model.get_params(deep=False))
        if (
            isinstance(model.kernel, str)
            and isinstance(model.gamma, str)
            and kernel is not None
            and hasattr(kernel, "gamma")
        ):
            own.set_params(gamma=kernel.gamma)
        return own
    options = {"kernel": model.kernel, "degree": model.degree, "coef0": model.coef0} | options
    options["gamma"] = getattr(kernel, "gamma", "scale")
    options.setdefault("C", model.C if hasattr(model, "C") else 1.0)
    if not is_classifier:
        options.setdefault("epsilon", getattr(model, "epsilon", 0.0))
        return SVR(**options)
    weighs = model.class_weight is not None and training.kind != "NuSVC"
    return SVC(
        class_weight=dict(zip(training.classes.tolist(), training.class_factors.tolist(), strict=True))
        if weighs
        else None,
        decision_function_shape=model.decision_function_shape,
        random_state=model.random_state,
        **options,
    )


def _linear(training: Training, parts: list[Part], tol: float) -> Any:
    """Return a copy of the model with the exact vectors."""
    new, certificates = copy.deepcopy(training.model), []
    vectors = []
    for part in parts:
        assert isinstance(part, Vector)
        beta = part.solution(tol).beta
        w = part.X.T @ beta
        vectors.append(w)
        intercept = float(w[-1]) * new.intercept_scaling if new.fit_intercept else 0.0
        certificates.append(replace(part, w=w, intercept=intercept).against(beta))
    W = np.array(vectors)
    if new.fit_intercept:
        W, new.intercept_ = W[:, :-1], W[:, -1] * new.intercept_scaling
    new.coef_ = W if training.kind == "LinearSVC" else W[0]
    names, sizes = tuple(part.name for part in parts), tuple(int(np.count_nonzero(w)) for w in vectors)
    new.certificate_ = ModelCertificate(training.kind, names, tuple(certificates), sizes, training.n)
    return new
