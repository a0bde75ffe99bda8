"""svm_path(): from rows to a Path."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from zerogap import validation
from zerogap.distinct import distinct
from zerogap.gram import Gram
from zerogap.kernels import NAMES, gamma_value
from zerogap.limits import limits
from zerogap.path.engine import Options
from zerogap.path.hastie import Hastie
from zerogap.path.lp import LP
from zerogap.path.path import Path
from zerogap.path.single import Single, SingleEngine
from zerogap.progress import PathProgress

# Breakpoints certified at the end, and the relative gap that is put up with there.
CHECKED, EXACT = 16, 1e-7

ENGINES: dict[str, Options] = {"single": Single(), "lp": LP(), "hastie": Hastie()}


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
    engine: str | Options = "single",
    linear_system: str | None = None,
    merge_duplicates: bool = True,
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
    engine : "single", one transition at a time; "lp", the algorithm of ong with its linear programs; "hastie", the plain
        algorithm both improve on; or configured options, such as ``zerogap.path.LP(epsilon_kkt=1e-8)``
    linear_system : "svd", "qr" or "qr-update", for engine "lp"
    merge_duplicates : whether rows that agree in every feature and label become one weighted point; the result is the same
    max_events : stop after so many events; ``resume`` goes on from there
    resume : a path of the same data that ended early, or at a smaller C_max; it is extended in place
    verbose : show progress

    Returns
    -------
    Path : with ``status`` "complete", "max_events" or "interrupted"; Ctrl-C keeps the part computed
    """
    options = _options(engine, linear_system)
    C_min = validation.check_positive("C_min", C_min)
    C_max = validation.check_positive(
        "C_max", C_max, advice="The path ends by itself when no point is left at its cap."
    )
    if C_min >= C_max:
        raise ValueError(f"C_min must be below C_max; got C_min={C_min:g} and C_max={C_max:g}.")
    validation.check_kernel_parameters(kernel, NAMES, gamma, degree, coef0)
    path = resume
    if path is None:
        path = _prepare(X, y, kernel, gamma, degree, coef0, sample_weight, C_min, merge_duplicates)
    elif path.gram is None:
        raise ValueError("A path loaded without its data cannot be resumed. Set path.gram first.")
    if path.engine is None:
        _start(path, options)
    return _follow(path, C_max, max_events, verbose)


def _options(engine: str | Options, linear_system: str | None) -> Options:
    if not isinstance(engine, str):
        if not hasattr(engine, "start"):
            raise TypeError(
                f"engine must be a name or configured options; got {engine!r}. Names: {', '.join(ENGINES)}."
            )
    else:
        validation.check_choice("engine", engine, tuple(ENGINES))
    options = ENGINES[engine] if isinstance(engine, str) else engine
    if linear_system is None:
        return options
    if not isinstance(options, LP):
        raise ValueError(f"linear_system={linear_system!r} is a choice of engine 'lp'; engine is {str(engine)!r}.")
    return replace(options, linear_system=linear_system)


def _prepare(
    X: Any, y: Any, kernel: Any, gamma: Any, degree: int, coef0: float, sample_weight: Any, C_min: float, merge: bool
) -> Path:
    """Merge duplicates, and compute the kernel matrix."""
    is_precomputed = isinstance(kernel, str) and kernel == "precomputed"
    X = validation.check_precomputed(X) if is_precomputed else validation.check_points(X)
    signs = _two_classes(y, X.shape[0])
    points = distinct(X, signs, validation.check_weights(sample_weight, X.shape[0]), merge=merge and not is_precomputed)
    if np.unique(signs[points.rows]).size < 2:
        raise ValueError("Every point of one class has weight zero; a path needs both classes.")
    if is_precomputed:
        gram = Gram(X[np.ix_(points.rows, points.rows)], "precomputed")
    else:
        value = gamma_value(gamma, X[points.rows], points.weight)
        gram = Gram(X[points.rows], kernel, gamma=value, degree=degree, coef0=coef0)
    gram.full()
    return Path(signs[points.rows], points, np.zeros(points.rows.size), 1.0 / C_min, gram)


def _start(path: Path, options: Options) -> None:
    """Put an engine at the end of the path, which may be its beginning."""
    assert path.gram is not None
    began, C, is_new = time.perf_counter(), path.C[-1], path.lam.size == 1
    beta = None if is_new else path.scaled_at(path.lam[-1]) * C
    path.engine = options.start(path.gram, path.y, path.points.weight, C, beta)
    if is_new:
        path.start = path.engine.status.astype(np.int8)
        path.counts = path.engine.counts
    else:
        path.engine.counts = path.counts
        path.engine.record(path.sets_at(None))  # who lies on a boundary may be in another set now
    path.counts.start_seconds += time.perf_counter() - began


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


def _follow(path: Path, C_max: float, max_events: int | None, verbose: bool) -> Path:
    """Step from event to event until C_max, a limit, or Ctrl-C."""
    engine, counts, lam_end = path.engine, path.counts, 1.0 / C_max
    assert engine is not None
    progress = PathProgress(path.C[-1], C_max) if verbose else None
    status, first, began = "complete", counts.events, time.perf_counter()
    with limits() as limit:
        while engine.lam > lam_end:
            if limit.was_interrupted:
                status = "interrupted"
                break
            if max_events is not None and counts.events - first >= max_events:
                status = "max_events"
                break
            counts.largest_elbow = max(counts.largest_elbow, engine.elbow_size)
            segment, lam = engine.step(lam_end)
            path.add(segment, lam, engine.take_transitions())
            if progress is not None:
                progress(counts.events, 1.0 / lam, engine.elbow_size)
    if progress is not None:
        progress.close()
    counts.tracking_seconds += time.perf_counter() - began
    path.seal(status)
    if isinstance(engine, SingleEngine) and len(path) > 1:
        _warn_if_lost(path)
    return path


def _warn_if_lost(path: Path) -> None:
    """Certify a few breakpoints: an engine that has lost its way would not notice."""
    some = path.C[np.unique(np.linspace(0, len(path) - 1, CHECKED).astype(int))]
    gaps = [certificate.relative_gap for certificate in path.certificate_at(some)]
    worst = int(np.argmax(gaps))
    if gaps[worst] > EXACT:
        warnings.warn(
            f"The path is not exact: the relative gap at C={some[worst]:g} is {gaps[worst]:.1e}, where {EXACT:g} or less was "
            "expected. Look at path.certificate_at(C), and fit SVC where it is large.",
            RuntimeWarning,
            stacklevel=4,
        )
