"""What the commands that solve have in common: checks, warm-up, and the certificate of another program's model."""

import math
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from zerogap.cli.arguments import UsageError
from zerogap.cli.report import Report
from zerogap.limits import interruptible

WARM_UP_SECONDS = 1.0


def check_solver(name: str, loss: str, C: float, *more: float) -> None:
    """Refuse a solver that is unknown, or that does not take problems of this kind."""
    from zerogap import DualProblem, Gram
    from zerogap.solvers import SOLVERS

    if name not in SOLVERS:
        raise UsageError(f"--solver: unknown solver {name!r}; choose one of {', '.join(SOLVERS)}")
    problem = getattr(DualProblem, loss)(Gram([[0.0], [1.0]], "linear"), [-1.0, 1.0], C, *more)
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
    with report.working(title), telling_of_compilation(report), interruptible(), warnings.catch_warnings():
        # A compiler may take longer than the limit, and nobody asked for these points.
        warnings.simplefilter("ignore")
        fit()


def telling_of_compilation(report: Report) -> AbstractContextManager[Any]:
    """Say once that functions are compiled, if any is: on a terminal a line says so anyway."""
    if report.is_live or report.is_quiet:
        return nullcontext()
    from numba.core import event

    class Told(event.Listener):
        is_told = False

        def on_start(self, event: Any) -> None:
            if not self.is_told:
                self.is_told = True
                report.note("compiling the inner loops, which takes about a minute; later runs load them from disk")

        def on_end(self, event: Any) -> None:
            pass

    return event.install_listener("numba:compile", Told())


def timed_fit(report: Report, title: str, model: Any, X: Any, y: np.ndarray) -> float:
    """Fit a model, with a line on the terminal; return the seconds it took."""
    began = time.perf_counter()
    with report.working(title):
        model.fit(X, y)
    return time.perf_counter() - began


def unless_interrupted(work: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what some work beside our own finds, or nothing, and whether Ctrl-C has ended it: what we have is then shown."""
    try:
        return work(), False
    except KeyboardInterrupt:
        return None, True


def ended(is_interrupted: bool) -> int:
    """Return the exit code of a command that has shown its results, all or those there were when Ctrl-C came."""
    if is_interrupted:
        raise KeyboardInterrupt
    return 0


def as_list(value: Any) -> list[Any]:
    """Return what a model has for each pair of classes."""
    return value if isinstance(value, list) else [value]


def ended_by(model: Any, name: str) -> bool:
    """Whether the fit of a model of ours, or of one of its pairs of classes, has a status of this name."""
    return any(status.name == name for status in as_list(model.status_))


def certified_gap(model: Any, X: Any, y: np.ndarray) -> float:
    """Return the relative gap of any program's model; NaN where none is a proof, as with a kernel that is indefinite."""
    from zerogap import certify

    try:
        return float(certify(model, X, y).relative_gap)
    except ValueError:
        return math.nan
