"""svm_path(): from rows to a Path."""

import warnings
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.distinct import distinct
from zerogap.gram import Gram
from zerogap.interrupts import interrupts
from zerogap.kernels import NAMES, gamma_value
from zerogap.loop import solve
from zerogap.path.path import Path
from zerogap.path.single import SingleEngine
from zerogap.problem import DualProblem
from zerogap.progress import PathProgress
from zerogap.stopping import RelativeGap

START_GAP = 1e-12  # of the solution the path starts from; the elbow is then made exact

# Transitions at one and the same C, per point, before a tie counts as a circle.
MOST_AT_ONCE = 10


def svm_path(
    X: Any,
    y: Any,
    *,
    kernel: Any = "rbf",
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 0.0,
    sample_weight: Any = None,
    C_min: float = 1e-4,
    C_max: float = 1e3,
    engine: str = "single",
    max_events: int | None = None,
    resume: Path | None = None,
    verbose: bool = False,
) -> Path:
    """Return the solution of the soft margin SVM for every C from C_min to C_max.

    Parameters
    ----------
    X : array or CSR matrix (n, d), or the kernel matrix itself with kernel="precomputed"
    y : two classes of any labels; the second in sorted order is the positive one
    kernel, gamma, degree, coef0, sample_weight : as in :class:`zerogap.SVC`
    C_min, C_max : the range of C
    engine : "single", one transition at a time
    max_events : stop after so many events; ``resume`` goes on from there
    resume : a path of the same data that ended early, or at a smaller C_max; it is extended in place
    verbose : show progress

    Returns
    -------
    Path : with ``status`` "complete", "max_events" or "interrupted"; Ctrl-C keeps the part computed
    """
    validation.check_choice("engine", engine, ("single",))
    C_min = validation.check_positive("C_min", C_min)
    C_max = validation.check_positive(
        "C_max", C_max, advice="The path ends by itself when no point is left at its cap."
    )
    if C_min >= C_max:
        raise ValueError(f"C_min must be below C_max; got C_min={C_min:g} and C_max={C_max:g}.")
    validation.check_kernel_parameters(kernel, NAMES, gamma, degree, coef0)
    path = resume
    if path is None:
        path = _start(X, y, kernel, gamma, degree, coef0, sample_weight, C_min)
    elif path.gram is None:
        raise ValueError("A path loaded without its data cannot be resumed. Set path.gram first.")
    return _follow(path, C_max, max_events, verbose)


def _start(
    X: Any, y: Any, kernel: Any, gamma: Any, degree: int, coef0: float, sample_weight: Any, C_min: float
) -> Path:
    """Merge duplicates, and solve at C_min."""
    is_precomputed = isinstance(kernel, str) and kernel == "precomputed"
    X = validation.check_precomputed(X) if is_precomputed else validation.check_points(X)
    signs = _two_classes(y, X.shape[0])
    points = distinct(X, signs, validation.check_weights(sample_weight, X.shape[0]), merge=not is_precomputed)
    if np.unique(signs[points.rows]).size < 2:
        raise ValueError("Every point of one class has weight zero; a path needs both classes.")
    if is_precomputed:
        gram = Gram(X[np.ix_(points.rows, points.rows)], "precomputed")
    else:
        value = gamma_value(gamma, X[points.rows], points.weight)
        gram = Gram(X[points.rows], kernel, gamma=value, degree=degree, coef0=coef0)
    gram.full()
    path = Path(signs[points.rows], points, np.zeros(points.rows.size), 1.0 / C_min, gram)
    engine = _engine(path, C_min, None)
    path.start = engine.status.astype(np.int8)
    path.engine = engine
    return path


def _two_classes(y: Any, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} points, shape ({n},); got shape {y.shape}.")
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(
            f"A path is followed for two classes; y has {classes.size}: {classes[:5].tolist()}. "
            "Wrap SVCPath in sklearn.multiclass.OneVsOneClassifier or OneVsRestClassifier for more."
        )
    return np.where(y == classes[1], 1.0, -1.0)


def _engine(path: Path, C: float, beta: np.ndarray | None) -> SingleEngine:
    """Return the engine at C, from the coefficients there if they are known."""
    assert path.gram is not None
    problem = DualProblem.hinge(path.gram, path.y, C, sample_weight=path.points.weight)
    solution = solve(problem, stop=RelativeGap(START_GAP), resume=beta)
    return SingleEngine(path.gram.full(), path.y, path.points.weight, 1.0 / C, solution.beta / C)


def _follow(path: Path, C_max: float, max_events: int | None, verbose: bool) -> Path:
    """Step from event to event until C_max, a limit, or Ctrl-C."""
    engine, lam_end = path.engine or _engine(path, path.C[-1], path.scaled_at(path.lam[-1]) * path.C[-1]), 1.0 / C_max
    path.engine = engine
    progress = PathProgress(path.C[-1], C_max) if verbose else None
    at_once, status, first = 0, "complete", engine.n_events
    with interrupts() as was_interrupted:
        while engine.lam > lam_end:
            if was_interrupted():
                status = "interrupted"
                break
            if max_events is not None and engine.n_events - first >= max_events:
                status = "max_events"
                break
            before = engine.lam
            segment, lam = engine.step(lam_end)
            path.add(segment, lam, engine.take_transitions())
            at_once = at_once + 1 if lam == before else 0
            if at_once > MOST_AT_ONCE * path.y.size + 100:
                engine, at_once = _back_up(path, engine), 0
            if progress is not None:
                progress(engine.n_events, 1.0 / lam, engine.system.size)
    if progress is not None:
        progress.close()
    return path.seal(status)


def _back_up(path: Path, engine: SingleEngine) -> SingleEngine:
    """Leave a circle of ties: solve anew a little further on."""
    warnings.warn(
        f"The path met a tie at C={1 / engine.lam:g} that it could not settle; it was solved anew a little further on.",
        RuntimeWarning,
        stacklevel=4,
    )
    lam = engine.lam * (1 - 1e-6)
    fresh = _engine(path, 1.0 / lam, engine.b / lam)
    fresh.n_events = engine.n_events
    changed = np.flatnonzero(fresh.status != engine.status)
    path.add(fresh.segment(), lam, fresh.transitions_from(engine.status, changed))
    path.n_backups += 1
    path.engine = fresh
    return fresh
