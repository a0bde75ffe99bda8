"""What the commands that solve have in common: checks, warm-up, and the certificate of another program's model."""

import warnings
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap.cli.arguments import UsageError
from zerogap.cli.report import Report
from zerogap.limits import interruptible

WARM_UP_SECONDS = 1.0


def check_solver(name: str, problem_options: dict[str, Any]) -> None:
    """Refuse a solver that is unknown, or that does not take problems of this kind."""
    from zerogap import DualProblem, Gram
    from zerogap.solvers import SOLVERS

    if name not in SOLVERS:
        raise UsageError(f"--solver: unknown solver {name!r}; choose one of {', '.join(SOLVERS)}")
    loss, C = problem_options["loss"], problem_options["C"]
    problem = getattr(DualProblem, loss)(Gram([[0.0], [1.0]], "linear"), [-1.0, 1.0], C, *problem_options["more"])
    entry = SOLVERS[name]
    if not entry.claims(problem):
        needs = (
            "Gaussian processes" if not entry.constraints else "hard margins and squared hinges" if entry.hulls else ""
        )
        raise UsageError(f"--solver {name} is for {needs or 'problems whose bias is fixed'}; --solver auto takes any")


def toy(n_features: int, n: int, n_classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Return a few points that run every compiled function: loading them is no part of a training time."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.standard_normal((n, n_features)) + y[:, None], y


def warm_up(report: Report, fit: Any) -> None:
    """Load compiled code, or compile it, before the clock starts."""
    title = "loading compiled code (the first time it is compiled)"
    with report.working(title), interruptible(), warnings.catch_warnings():
        # A compiler may take longer than the limit, and nobody asked for these points.
        warnings.simplefilter("ignore")
        fit()


def ended(is_interrupted: bool) -> int:
    """Return the exit code of a command that has shown its results, all or those there were when Ctrl-C came."""
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def as_list(value: Any) -> list[Any]:
    """Return what a model has for each pair of classes."""
    return value if isinstance(value, list) else [value]


class Part(NamedTuple):
    """Two classes of a model, or a regression: rows, target, signed coefficients."""

    rows: np.ndarray
    target: np.ndarray
    beta: np.ndarray


def certificates(model: Any, X: Any, y: np.ndarray) -> list[Any]:
    """Return the certificates of a fitted SVC or SVR, ours or another program's, one for each pair of classes.

    They are computed from the points, and from the coefficients of the model alone.
    """
    from zerogap import Gram

    kernel = getattr(model, "_kernel", None)
    found = []
    for part in parts(model, y):
        if kernel is not None:
            gram = Gram.of_checked(X[part.rows], kernel, model.cache_size)
        else:
            gram = Gram(X[part.rows], model.kernel, gamma=model._gamma, degree=model.degree, coef0=model.coef0)
        weights = _class_weights(model, y)[part.rows] if hasattr(model, "classes_") else None
        problem = _problem(model, gram, part.target, weights)
        beta = np.clip(part.beta, problem.lower, problem.upper)
        found.append(problem.certify(problem.restore_sum(beta) if problem.total is not None else beta))
    return found


def _problem(model: Any, gram: Any, target: np.ndarray, weights: np.ndarray | None) -> Any:
    """Return the problem that a model says it has solved."""
    from zerogap import DualProblem

    options = {"sample_weight": weights, "fit_intercept": getattr(model, "fit_intercept", True)}
    if hasattr(model, "classes_"):
        return getattr(DualProblem, getattr(model, "loss", "hinge"))(gram, target, model.C, **options)
    loss = getattr(model, "loss", "epsilon_insensitive")
    return getattr(DualProblem, loss)(gram, target, model.C, model.epsilon, **options)


def _class_weights(model: Any, y: np.ndarray) -> np.ndarray:
    from sklearn.utils.class_weight import compute_sample_weight

    weights = getattr(model, "class_weight", None)
    return np.ones(y.size) if weights is None else compute_sample_weight(weights, y)


def parts(model: Any, y: np.ndarray) -> Iterator[Part]:
    """Yield every pair of classes, as LIBSVM lays out their coefficients; a regression is one."""
    of_support = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    dual = np.zeros((len(of_support), y.size))
    dual[:, model.support_] = of_support
    if not hasattr(model, "classes_"):
        yield Part(np.arange(y.size), y, dual[0])
        return
    count = model.classes_.size
    # The first class is positive, but in scikit-learn's models and ours the second if there are only two.
    yield from pairs(dual, np.searchsorted(model.classes_, y), count, is_first_positive=count > 2)


def pairs(dual: np.ndarray, codes: np.ndarray, count: int, is_first_positive: bool) -> Iterator[Part]:
    """Yield the pairs of so many classes: row b - 1 of the coefficients is that of class a < b against b, row a the other."""
    for a, b in combinations(range(count), 2):
        rows = np.flatnonzero((codes == a) | (codes == b))
        is_a = codes[rows] == a
        target = np.where(is_a == is_first_positive, 1.0, -1.0)
        yield Part(rows, target, np.where(is_a, dual[b - 1, rows], dual[a, rows]))
