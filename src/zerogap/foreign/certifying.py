"""Certificates of fitted models, whoever fitted them."""

import warnings
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from zerogap import validation
from zerogap.foreign.parts import Found, Part
from zerogap.foreign.reading import Training, parts_of
from zerogap.foreign.report import ModelCertificate
from zerogap.foreign.wrappers import core_of
from zerogap.gram import Gram
from zerogap.limits import interruptible


def certify(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    tol: float | None = None,
    max_time: float | None = None,
) -> ModelCertificate:
    """Tell how far from optimal a fitted support vector machine is, whoever fitted it.

    The problem is the one that the model's own parameters state.  Its objective P is that of the model as it predicts, with its
    own coefficients and intercept; a point that is feasible in the dual problem has an objective D that is below the optimum.
    ``relative_gap`` is (P - D) / |P|, with all that float64 can have done to both added: the model is at most that far from
    its optimum.

    D comes from the model's own dual coefficients, moved into their bounds where rounding has left them outside, so one product
    with the kernel values of the support vectors is all it takes.  What D is below the optimum counts against the model then.
    With ``tol`` the problem is solved to that gap for the bound, which leaves how far the model is off, to this tolerance.
    LinearSVC and LinearSVR keep no dual coefficients: theirs is always solved, to 1e-9.

    The objective is 1/2 |w|² plus costs, as documented in scikit-learn; that of LinearSVC and LinearSVR counts the intercept in
    |w|², squared losses have C, not C/2.  Those of NuSVC and OneClassSVM have a term -rho, so that their optimum is -1/2 |w|².

    Parameters
    ----------
    model : estimator
        A fitted SVC, NuSVC, SVR, NuSVR, OneClassSVM, LinearSVC or LinearSVR of scikit-learn, scikit-learn-intelex or zerogap,
        or a Pipeline, a search or a TransformedTargetRegressor that ends in one.
    X : array or CSR matrix of shape (n, d)
        The points it was fitted on, as its ``fit`` took them; a kernel matrix for ``kernel="precomputed"``.
    y : array of shape (n,), optional
        Labels or targets; not needed for OneClassSVM.
    sample_weight : array of shape (n,), optional
        Weights it was fitted with.
    tol : float, optional
        Solve the problem to this relative gap for the bound.
    max_time : float, optional
        Limit in seconds for each problem that is solved; the bound is then what was reached, and a ConvergenceWarning tells.
        Ctrl-C raises KeyboardInterrupt.

    Returns
    -------
    ModelCertificate
        Objective, bound and gap, for each pair of classes, or each class against the rest.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from zerogap import certify
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), SVC(C=1e4)).fit(X, y)
    >>> certify(model, X, y)
    SVC: up to 14.3 % off the optimum: objective 473.0773, optimum at least 405.3664
    """
    if tol is not None:
        validation.check_positive("tol", tol, advice="It is a relative duality gap, for instance 1e-9.")
    validation.check_max_time(max_time)
    with interruptible():  # half a bound tells nothing of the model
        core = core_of(model, X, y)
        training = Training(core.model, core.X, core.y, sample_weight)
        found = [(part.name, *certified(part, tol, max_time), part.n_support) for part in parts_of(training)]
    names, certificates, shortfalls, sizes = zip(*found, strict=True)
    result = ModelCertificate(type(core.model).__name__, names, certificates, sizes, training.n, shortfalls)
    _warn(result)
    return result


def _warn(found: ModelCertificate) -> None:
    """Say if the bound is short of what was asked for: the model then looks further off than it is."""
    short = [k for k, shortfall in enumerate(found.shortfalls) if shortfall]
    if short:
        k = max(short, key=lambda k: found.certificates[k].relative_gap)
        several = f" in {len(short)} of {len(found.names)} problems, the worst {found.names[k]}"
        warnings.warn(
            f"{found.estimator}: {found.shortfalls[k]}{several if len(found.names) > 1 else ''}. The model may be far less off "
            "than it looks. Raise max_time if there is one; else float64 has no more digits for this data: scale the features "
            "(StandardScaler).",
            ConvergenceWarning,
            stacklevel=validation.callers_level(),
        )


def certified(part: Part, tol: float | None = None, max_time: float | None = None) -> Found:
    """Return the certificate of one of the problems of a model; where no gap is a proof it is refused."""
    refuse_indefinite(part.problem.gram)
    return part.found(tol, max_time)


def refuse_indefinite(gram: Gram) -> None:
    """Refuse a problem that is not convex."""
    if not gram.seems_positive():
        raise ValueError(
            f"A kernel that is an inner product is expected; the {gram.kernel.name} kernel is not positive semidefinite on "
            "this data: the problem is not convex, and no gap proves anything. Use another kernel, such as rbf, which has no "
            "such problem."
        )
