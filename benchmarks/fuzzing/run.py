"""Run one case and judge it; write a failure as a snippet."""

import contextlib
import signal
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import zerogap
from fuzzing.checks import CHECKS, WARNINGS, Checker, has_room, refusal
from fuzzing.draw import ONE_AT_A_TIME, Case, draw
from zerogap.path import ENGINES
from zerogap.path.one_class import one_class_path
from zerogap.path.regression import svr_path
from zerogap.solvers import SOLVERS

LITERALS = 60  # rows up to which a snippet holds the data itself


class Outcome(NamedTuple):
    """What came of a case; small enough to be sent by the thousand."""

    number: int
    kind: str
    about: dict[str, Any]
    failures: list[str]
    refused: str | None
    notes: dict[str, Any]
    seconds: float  # of processor time
    snippet: str | None


@contextlib.contextmanager
def processor_limit(seconds: float | None) -> Iterator[None]:
    """Raise TimeoutError after so much processor time: that ends loops in Python; what is compiled the pool has to end."""
    if seconds is None or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(signum: int, frame: Any) -> None:
        raise TimeoutError(f"hangs: no result after {seconds:g} seconds of processor time")

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def run(seed: int, number: int, only: str | None = None, limit: float | None = None) -> Outcome:
    """Draw a case, run its code with warnings as errors, and check what it leaves behind.

    A case that takes more than ``limit`` seconds of processor time has failed.
    """
    began = time.process_time()
    case = draw(seed, number, only)
    check, refused = Checker(case), None
    scope = {"np": np, "sp": sp, "zerogap": zerogap, "signal": signal, "tempfile": tempfile, **case.data}
    try:
        with processor_limit(limit):
            _execute(case, scope)
    except (Exception, KeyboardInterrupt) as error:
        refused = refusal(error)
        if refused is None:
            check.fail("exception", f"{type(error).__name__}: {error} [{_where(error)}]")
        elif "too large for float64" in str(error) and has_room(case):
            check.fail("refusal", f"all kernel values and squares are far from overflow, yet: {error}")
    else:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                CHECKS[case.kind](check, scope)
            except Exception as error:  # the campaign goes on, and says that it cannot judge this one
                check.fail("checker", f"{type(error).__name__}: {error} [{_where(error)}]")
    snippet = write_snippet(case, check.failures, only) if check.failures else None
    return Outcome(
        number, case.kind, case.about, check.failures, refused, check.notes, time.process_time() - began, snippet
    )


def warm_up() -> None:
    """Load (or compile) once what the cases run, so that no case has to wait for it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 2)), np.where(np.arange(24) % 2, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SOLVERS:
            gram = zerogap.Gram(X)
            for problem in (
                zerogap.DualProblem.hinge(gram, y, 10.0, fit_intercept=name not in ONE_AT_A_TIME),
                zerogap.DualProblem.squared_hinge(gram, y, 10.0, fit_intercept=name not in ONE_AT_A_TIME),
                zerogap.DualProblem.epsilon_insensitive(gram, X[:, 0] * y, 1.0, fit_intercept=False),
                zerogap.DualProblem.gaussian_process(gram, y, 0.1),
            ):
                with contextlib.suppress(ValueError):
                    zerogap.solve(problem, name, max_steps=2000)
        for engine in ENGINES:
            with contextlib.suppress(np.linalg.LinAlgError):
                zerogap.svm_path(X, y, engine=engine, C_min=0.1, C_max=10.0)
        for path in (lambda: svr_path(X, X[:, 0]), lambda: svr_path(X, y, over="epsilon"), lambda: one_class_path(X)):
            path()
        model = zerogap.SVC().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:]).forget([0, 1])
        zerogap.leave_one_out(model)


def _execute(case: Case, scope: dict[str, Any]) -> None:
    """Run the lines of a case; documented warnings are counted, all others raised."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        for category, message in WARNINGS:
            warnings.filterwarnings("always", message, category)
        exec(compile("\n".join(case.code), f"<case {case.number}>", "exec"), scope)
    scope["warned"] = [str(w.message) for w in seen if not issubclass(w.category, ConvergenceWarning)]


def _where(error: BaseException) -> str:
    """The innermost line of zerogap that the exception passed through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "zerogap" in Path(f.filename).parts] or frames
    return f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}"


def write_snippet(case: Case, failures: list[str], only: str | None = None) -> str:
    """Return Python that does what the case did: the data as literals, or drawn by the same recipe."""
    again = f"python benchmarks/fuzz.py --seed {case.seed} --case {case.number}" + (f" --only {only}" if only else "")
    lines = ['"""' + again, "", case.describe(), "", *(f.replace("\\", "\\\\") for f in failures), '"""', ""]
    lines += [
        "import signal",
        "import tempfile",
        "",
        "import numpy as np",
        "import scipy.sparse as sp",
        "",
        "import zerogap",
        "",
    ]
    if len(case.data["y"]) <= LITERALS:
        with np.printoptions(threshold=10**6, floatmode="unique", linewidth=120):
            for name, value in case.data.items():
                lines.append(f"{name} = np.array({np.asarray(value).tolist()!r}, dtype=np.{np.asarray(value).dtype})")
    else:
        lines += [
            "import sys", "sys.path.insert(0, 'benchmarks')  # run from the repository's root",
            "from fuzzing.draw import draw", f"case = draw({case.seed}, {case.number}, {only!r})",
            *(f"{name} = case.data[{name!r}]" for name in case.data),
        ]  # fmt: skip
    result = {
        "path": "path",
        "families": "path",
        "incremental": "model.status_, model.certificate_",
        "gp": "model.status_, model.certificate_",
    }
    shown = result.get(case.kind, "model.status_, model.certificate_" if case.kind == "estimator" else "solution")
    return "\n".join([*lines, "", *case.code, f"print({shown})", ""])
