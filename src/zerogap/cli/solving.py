"""What the commands that solve have in common: checks, warm-up, and the certificate of another program's model."""

import argparse
import warnings
from itertools import combinations
from typing import Any

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
        needs = "Gaussian processes" if not entry.constraints else "hard margins and squared hinges" if entry.hulls else ""
        raise UsageError(f"--solver {name} is for {needs or 'problems whose bias is fixed'}; --solver auto takes any")


def toy(n_features: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a few points that run every compiled function: loading them is no part of a training time."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    return rng.standard_normal((n, n_features)) + y[:, None], y


def warm_up(report: Report, fit: Any) -> None:
    """Load compiled code, or compile it, before the clock starts."""
    with report.working("loading compiled code (the first time it is compiled)"), interruptible():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a compiler may take longer than the limit, and nobody asked for these points
            fit()


def ended(is_interrupted: bool) -> int:
    """Return the exit code of a command that has shown its results, all or those there were when Ctrl-C came."""
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def as_list(value: Any) -> list[Any]:
    """Return what a model has for each pair of classes."""
    return value if isinstance(value, list) else [value]


def certificates(model: Any, X: Any, y: np.ndarray) -> list[Any]:
    """Return our certificates of any program's SVC or SVR, one for each pair of classes."""
    from zerogap import DualProblem, Gram

    found = []
    for rows, target, beta in pairs(model, y):
        gram = Gram(X[rows], model.kernel, gamma=model._gamma, degree=model.degree, coef0=model.coef0)
        if hasattr(model, "classes_"):
            problem = DualProblem.hinge(gram, target, model.C)
        else:
            problem = DualProblem.epsilon_insensitive(gram, target, model.C, model.epsilon)
        found.append(problem.certify(problem.restore_sum(np.clip(beta, problem.lower, problem.upper))))
    return found


def pairs(model: Any, y: np.ndarray) -> Any:
    """Yield rows, target and signed coefficients of each pair of classes, as LIBSVM lays them out; a regression is one."""
    of_support = model.dual_coef_.toarray() if sp.issparse(model.dual_coef_) else model.dual_coef_
    dual = np.zeros((len(of_support), y.size))
    dual[:, model.support_] = of_support
    if not hasattr(model, "classes_"):
        yield np.arange(y.size), y, dual[0]
        return
    k, codes = model.classes_.size, np.searchsorted(model.classes_, y)
    for a, b in combinations(range(k), 2):
        rows = np.flatnonzero((codes == a) | (codes == b))
        is_a = codes[rows] == a
        # The first class is positive, but the second if there are only two.
        yield rows, np.where(is_a == (k > 2), 1.0, -1.0), np.where(is_a, dual[b - 1, rows], dual[a, rows])


def kernel_words(options: argparse.Namespace) -> str:
    """Return the kernel as the options say it."""
    return f"kernel {options.kernel!r}"
