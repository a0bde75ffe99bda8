"""What an approximation of the kernel costs: a linear model on Nyström features, seen from the problem of the kernel itself.

Nyström features are phi(x) = N k(Z, x) with some rows Z of the data.  So a linear function of them is f = sum_m c_m k(z_m, .),
c = N'w: a function of the kernel's own space, whose objective needs kernel values against Z alone.  The coefficients of the
linear problem are in the box of the kernel problem too: with the right sum they are a feasible point, and its dual objective,
which takes the kernel values of all support vectors, a lower bound.  Nothing of the approximation is in either.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import Pipeline

from zerogap import validation
from zerogap.certificate import Certificate
from zerogap.foreign.certifying import refuse_indefinite
from zerogap.foreign.parts import LOOKED_AT, SOLVED, Part
from zerogap.foreign.reading import Training, dense_weights, parts_of
from zerogap.foreign.report import ModelCertificate
from zerogap.function_gap import expansion_certificate
from zerogap.gram import Gram
from zerogap.kernels import Kernel, as_kernel
from zerogap.limits import interruptible
from zerogap.loop import solve
from zerogap.problem import DualProblem
from zerogap.solution import Solution
from zerogap.stopping import RelativeGap

VERY_DATA = "Pass the very data the pipeline was fitted on, rows in that order."
WHOLE = 0.98  # of a point: a bound that is better by less is not worth another product with all kernel values
POINT_TOL = 1e-6  # to which a linear problem is solved whose model has kept no coefficients
# scikit-learn's own defaults of kernels by name; it has no other that is named the same here.
POLY: dict[str, Any] = {"degree": 3, "coef0": 1.0}
DEFAULTS: dict[str, dict[str, Any]] = {"poly": POLY, "polynomial": POLY, "sigmoid": {"coef0": 1.0}}


@dataclass(frozen=True, repr=False)
class FullCertificate(ModelCertificate):
    """How far from the optimum of the kernel problem an approximate model is, and a point to go on from.

    What :class:`ModelCertificate` says holds for the problem with the kernel itself.

    Attributes
    ----------
    estimator : str
        Names of the classes of model and features.
    names : tuple of str
        The problems it consists of: one, or classes against the rest.
    certificates : tuple of Certificate
        One for each: ``primal`` is the objective of the model, ``dual`` the bound, ``bias`` its intercept.
    n_support : tuple of int
        Dual coefficients of each that are not zero.
    n_points : int
        Number of training points.
    shortfalls : tuple of str
        Empty: nothing was to be solved to a tolerance.
    problems : tuple of DualProblem
        The kernel problems: one, or classes against the rest.
    points : tuple of arrays of shape (n,)
        A feasible point of each, from the coefficients of the linear model.

    Examples
    --------
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from zerogap import LinearSVC, certify_full, datasets
    >>> X, y = datasets.two_spirals()
    >>> model = make_pipeline(Nystroem(gamma=1.0, n_components=50, random_state=0), LinearSVC(loss="hinge")).fit(X, y)
    >>> certify_full(model, X, y).resume(tol=1e-6).status.name
    'CONVERGED'
    """

    problems: tuple[DualProblem, ...] = field(default=())
    points: tuple[np.ndarray, ...] = field(default=())

    def resume(self, tol: float = 1e-4, **options: Any) -> "Solution | list[Solution]":
        """Solve the kernel problem exactly, from the point of the approximation.

        Parameters
        ----------
        tol : float, default 1e-4
            Certified relative duality gap.
        **options : dict
            What :func:`zerogap.solve` takes besides, such as ``max_time``.

        Returns
        -------
        Solution or list of Solution
            That of the one problem, or one for each.
        """
        found = []
        for problem, beta in zip(self.problems, self.points, strict=True):
            roomy = replace(problem, gram=Gram.of_checked(problem.gram.X, problem.gram.kernel, SOLVED))
            found.append(solve(roomy, stop=RelativeGap(tol), resume=beta, **options))
        return found[0] if len(found) == 1 else found


def certify_full(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    kernel: Any = None,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    max_time: float | None = None,
) -> FullCertificate:
    """Tell how far an approximate kernel machine is from the optimum of the problem with the kernel itself.

    The kernel problem is that of :class:`zerogap.SVC` or :class:`zerogap.SVR` with the C, loss and weights of the linear model
    (of squared losses with 2 C, as theirs count half), with a free intercept if there is one: the regularised intercept of
    LinearSVC is part of the approximation.  Its objective at the model, as it predicts, is compared with the dual objective
    of the model's own dual coefficients, given the sum zero that a free intercept asks for; scikit-learn's LinearSVC keeps
    none, and theirs are solved for.  Kernel values are computed block by block, and not kept.

    Of features that are no Nyström features, such as ``RBFSampler``'s, nothing tells their norm in the space of the kernel:
    what is certified then is the kernel machine with the model's dual coefficients; pass the kernel.

    Parameters
    ----------
    model : Pipeline
        Fitted, its last two steps ``Nystroem``, or another map to features, and a LinearSVC or LinearSVR of zerogap or
        scikit-learn; or a search whose best estimator is such a pipeline.
    X : array or CSR matrix of shape (n, d)
        The points it was fitted on.
    y : array of shape (n,)
        Labels or targets.
    sample_weight : array of shape (n,), optional
        Weights it was fitted with.
    kernel : str or Kernel, optional
        The kernel that is approximated; by default that of ``Nystroem``.
    gamma : float or str, default "scale"
        Coefficient of a kernel that is passed by name.
    degree : int, default 3
        Degree of one.
    coef0 : float, default 0.0
        Constant of one.
    max_time : float, optional
        Limit in seconds for each linear problem that has to be solved for its dual coefficients.

    Returns
    -------
    FullCertificate
        Objective, bound and gap for each kernel problem; its ``resume`` solves them from there.

    Examples
    --------
    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> from zerogap import LinearSVC, certify_full, datasets
    >>> X, y = datasets.two_spirals()
    >>> model = make_pipeline(Nystroem(gamma=1.0, n_components=180, random_state=0), LinearSVC(loss="hinge")).fit(X, y)
    >>> bool(certify_full(model, X, y).relative_gap < 0.05)
    True
    """
    validation.check_max_time(max_time)
    with interruptible():
        before, features, linear = _split(model)
        for step in before:
            X = step.transform(X)
        X = validation.check_points(X)
        training = Training(linear, features.transform(X), y, sample_weight)
        if not training.kind.startswith("Linear"):
            raise TypeError(_expected(model))
        _check_data(training, features)
        full_kernel = (_kernel_of(features, X) if kernel is None else as_kernel(kernel, gamma, degree, coef0)).resolved(
            X
        )
        gram = Gram.of_checked(X, full_kernel, LOOKED_AT)
        refuse_indefinite(gram)
        found = list(_certified(training, features, gram, max_time, is_given=kernel is not None))
    names, certificates, sizes, problems, points = zip(*found, strict=True)
    name = f"{type(linear).__name__} on {type(features).__name__} features"
    return FullCertificate(name, names, certificates, sizes, training.n, ("",) * len(names), problems, points)


def _certified(
    training: Training, features: Any, gram: Gram, max_time: float | None, *, is_given: bool
) -> Iterator[tuple[str, Certificate, int, DualProblem, np.ndarray]]:
    """Yield name, certificate, number of support vectors, kernel problem and feasible point of each problem."""
    model = training.model
    for k, part in enumerate(parts_of(training)):
        problem = replace(part.problem, gram=gram, total=0.0 if model.fit_intercept else None)
        beta = problem.feasible(_coefficients(part, model, k, max_time))
        w, bias = (
            np.atleast_2d(dense_weights(model.coef_))[k],
            float(np.resize(model.intercept_, k + 1)[k]),
        )  # one zero, or one for each
        own = _on_rows(features, gram.X, np.ravel(w)) if isinstance(features, Nystroem) and not is_given else None
        certificate = _against(problem, own, bias, beta)
        share = _best_share(problem, beta, certificate)
        if share < WHOLE:
            smaller = problem.restore_sum(share * beta)
            tried = [(certificate, beta), (_against(problem, own, bias, smaller), smaller)]
            certificate, beta = min(tried, key=lambda pair: pair[0].relative_gap)
        yield part.name, certificate, int(np.count_nonzero(beta)), problem, beta


def _against(problem: DualProblem, own: np.ndarray | None, bias: float, beta: np.ndarray) -> Certificate:
    """Return how far the function of some coefficients, or beta's own, is above the bound of a feasible point."""
    return problem.certify(beta) if own is None else expansion_certificate(problem, own, bias, beta)


def _best_share(problem: DualProblem, beta: np.ndarray, certificate: Certificate) -> float:
    """Return the part of a feasible point, at most all of it, whose dual objective is the largest.

    The features see less of the kernel than there is: with it beta'K beta may be far larger.  Along beta the dual objective is
    s slope - s² square / 2, and at s = 1 it is known.
    """
    slope = float(problem.target @ beta) - problem.eps * float(np.abs(beta).sum())
    square = 2.0 * (slope - certificate.dual)
    return max(slope / square, 0.0) if 0.0 < abs(square) < np.inf and slope < square else 1.0


def _coefficients(part: Part, model: Any, k: int, max_time: float | None) -> np.ndarray:
    """Return the dual coefficients of the linear model, or those of a solution of its problem where it has kept none."""
    own = getattr(model, "dual_coef_", None)
    return part.solution(POINT_TOL, max_time).beta if own is None else np.asarray(own[k])


def _check_data(training: Training, features: Any) -> None:
    """Refuse data that cannot be what the pipeline was fitted on."""
    n, own = training.n, getattr(training.model, "dual_coef_", None)
    if own is not None and own.shape[1] != n:
        raise ValueError(f"The model was fitted on {own.shape[1]} rows; X has {n}. {VERY_DATA}")
    least = int(features.component_indices_.max()) + 1 if isinstance(features, Nystroem) else 0
    if least > n:
        raise ValueError(f"The Nystroem step was fitted on {least} rows or more; X has {n}. {VERY_DATA}")
    if training.kind == "LinearSVC" and (missing := np.setdiff1d(training.classes, training.y)).size:
        raise ValueError(
            f"y must hold all {training.classes.size} classes that the model was fitted on; got none of "
            f"{missing.tolist()[:5]}. {VERY_DATA}"
        )


def _on_rows(features: Nystroem, X: Any, w: np.ndarray) -> np.ndarray:
    """Return c = N'w as coefficients of the rows of X that the features are made with."""
    rows, chosen = features.component_indices_, features.components_
    own = X[rows]
    difference = own - chosen
    if (
        own.shape != chosen.shape
        or (abs(difference).max() if sp.issparse(difference) else np.abs(difference).max()) != 0
    ):
        raise ValueError(
            f"The components of the Nystroem step are not the rows of X that it names (component_indices_). {VERY_DATA}"
        )
    found = np.zeros(X.shape[0])
    np.add.at(found, rows, features.normalization_.T @ w)
    return found


def _split(model: Any) -> tuple[list[Any], Any, Any]:
    """Return the steps before the map to features, the map, and the linear model."""
    steps = list(_steps(model))
    if len(steps) < 2 or not all(hasattr(step, "transform") for step in steps[:-1]):
        raise TypeError(_expected(model))
    return steps[:-2], steps[-2], steps[-1]


def _steps(model: Any) -> Iterator[Any]:
    """Yield the steps of a pipeline, or of a search's best one, those of pipelines in it among them."""
    model = getattr(model, "best_estimator_", model)
    if not isinstance(model, Pipeline):
        yield model
        return
    for _, step in model.steps:
        if step is not None and not isinstance(step, str):  # "passthrough"
            yield from _steps(step)


def _expected(model: Any) -> str:
    return (
        "A fitted Pipeline is expected whose last two steps are a map to features, such as Nystroem, and a LinearSVC or "
        f"LinearSVR; got {type(model).__name__}. For a model that is no approximation use zerogap.certify."
    )


def _kernel_of(features: Any, X: Any) -> Kernel:
    """Return the kernel that Nyström features approximate, with scikit-learn's defaults."""
    if not isinstance(features, Nystroem):
        raise ValueError(
            f"Which kernel {type(features).__name__} approximates is not known here: pass it, as in certify_full(model, X, y, "
            'kernel="rbf", gamma=0.1).'
        )
    name = features.kernel
    options = {"gamma": 1.0 / X.shape[1], **DEFAULTS.get(name if isinstance(name, str) else "", {})}
    given = {key: getattr(features, key) for key in ("gamma", "degree", "coef0")}
    options |= {key: value for key, value in given.items() if value is not None}
    if features.kernel_params or name not in ("rbf", "poly", "polynomial", "linear", "sigmoid"):
        raise ValueError(
            f"Nystroem(kernel={name!r}) with its parameters is no kernel known here by that name: pass it to certify_full "
            "as kernel=, a name or a kernel object of zerogap.kernels."
        )
    return as_kernel(
        {"polynomial": "poly"}.get(name, name), options["gamma"], options.get("degree", 3), options.get("coef0", 0.0)
    )
