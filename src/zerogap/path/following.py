"""From a path without a segment, or one that was begun, to a value of its parameter: by an engine, or by solutions."""

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from zerogap import validation
from zerogap.compiled import HUGE
from zerogap.gram import Gram, PreciseProduct
from zerogap.limits import Exceeded, check, heard, limits, raises
from zerogap.path.approximate import ApproximatePath, walk
from zerogap.path.engine import Log, NotStarted, Options, Segment, Step, Transition
from zerogap.path.exactness import EXACT, OVERFLOW, check_result
from zerogap.path.family import RIGHT
from zerogap.path.middle import centre_biases
from zerogap.path.proving import Proving, proving
from zerogap.path.result import Path
from zerogap.path.single import SingleEngine
from zerogap.path.tolerances import STALE
from zerogap.progress import PathProgress
from zerogap.threads import UNTHREADED, alone

# Engines work with kernel values of moderate size: others are divided by a power of two, and lam with them.
MODERATE = 1e6
AROUND = STALE  # segments before a gap, and behind it, that are followed again: no lines last for longer
HALF_EXACT = 0.5 * EXACT  # a gap that leaves room for the rounding of what is read
MOST_MENDED = 3  # gaps: where float64 has too few digits there are many, and all of them stay
SMALLEST_C = 1e-290  # in the units of kernel values that are hardly numbers any more


def follow(
    begin: Callable[[], Path],
    begun: Path | None,
    end: float,
    options: Options,
    max_events: int | None,
    max_time: float | None,
    verbose: bool,
    *,
    prove: bool = True,
) -> Path:
    """Follow a new path, or one that was begun, to a value of its parameter; seal it, and warn of what is not exact.

    Without ``prove`` the largest gap is left open: ``largest_gap_`` proves it when it is asked for.
    """
    if begun is not None:  # who goes on with a path that was interrupted knows of that
        heard()
    with limits(max_time) as limit, small_products():
        path = begin() if begun is None else begun
        first = max(len(path._segments) - 1, 0)  # the last of them may grow
        try:
            refuse_overflow(path, end)
            if path.engine is None:
                refuse_indefinite(path)
                start_engine(path, options, path.lam_of(end))
            status = follow_on(path, end, max_events, verbose, prove=prove)
        except Exceeded:
            status = "interrupted" if limit.was_interrupted else "max_time"
        path.seal(status)
        mend(path, options, end, first)
        centre_biases(path, first)
        check_result(path, options)
    warn_if_interrupted(path, end)
    return path


def warn_if_interrupted(path: Path, end: float) -> None:
    """Tell where Ctrl-C has ended a path, unless it is one of a search, which ends with it."""
    if path.status != "interrupted" or raises():
        return
    name, estimator = path.function, path.path_estimator
    also = f"; the path of an {estimator} is its path_" if estimator else ""
    warnings.warn(
        f"{name} was stopped (interrupted) on its way to {path.end_name}={end:g}: the path {path._where_it_ends}. Go on "
        f"with {name}({path.rows_of_data}, ..., resume=path){also}.",
        ConvergenceWarning,
        stacklevel=validation.callers_level(),
    )


def approximated(
    begin: Callable[[], Any], C_max: float, max_time: float | None, *, verbose: bool, share: float | None = None
) -> ApproximatePath:
    """Go along an approximate path to C_max, from where it ends; seal it, and warn where more than its gap is left.

    A ``share`` of the time, in seconds, ends it at the earliest behind its first segment.
    """
    with limits(max_time) as limit:
        path: ApproximatePath = begin()
        try:
            refuse_overflow(path, C_max)
            refuse_indefinite(path)
            status = walk(path, C_max, verbose=verbose, share=share)
        except Exceeded:
            status = "interrupted" if limit.was_interrupted else "max_time"
        path.seal(status)
    if path.proved.gap > path.gap:
        gap, C = path.largest
        warnings.warn(
            f"The path is not within gap={path.gap:g}: at {path.words(C)} no relative gap below {gap:.1e} can be proved in "
            "float64. Ask for a larger gap, scale the features, or end at a smaller C.",
            RuntimeWarning,
            stacklevel=validation.callers_level(),
        )
    return path


def small_products() -> AbstractContextManager[None]:
    """Hold BLAS to one thread for a whole path: of the many products of a proof each is small."""
    return alone(UNTHREADED)


def refuse_indefinite(path: Path) -> None:
    """Along an indefinite kernel the solution is no continuous path: ask the matrix, where the kernel does not tell."""
    assert path.gram is not None
    gram = path.gram
    if gram.is_positive:
        return
    is_small = gram.holds_all or not isinstance(path, ApproximatePath)
    if not (validation.is_positive_semidefinite(gram.full()) if is_small else gram.seems_positive()):
        raise ValueError(
            f"{path.function} needs a positive semidefinite kernel; the {gram.kernel.name} kernel has a negative eigenvalue on "
            "this data, so the dual problem is not convex and has no path. Choose another kernel, such as rbf, or use "
            f"{path.estimator}, which finds a stationary point at one {path.parameter}."
        )


def refuse_overflow(path: Path, end: float) -> None:
    """The objective is about (C sum(w))² times a kernel value."""
    assert path.gram is not None
    scale = path.scale_at(end)
    size, weight = float(np.abs(path.gram.diagonal).max()), scale * float(path.family.w.sum())
    if size > 0 and np.log(size) + 2.0 * max(np.log(weight), 0.0) > np.log(OVERFLOW):
        raise ValueError(
            f"Kernel values of {size:.1g} with C up to {scale:g} and weights of {weight / scale:.1g} in all are too large for "
            "float64: the objective overflows. Divide the kernel by its largest value (and multiply C by it), or scale the "
            "features."
        )


def start_engine(path: Path, options: Options, lam_end: float) -> None:
    """Put an engine at the end of the path, which may be its beginning."""
    assert path.gram is not None
    began, is_new = time.perf_counter(), not path.has_segments
    gram, path.unit = _in_units(path.gram, SMALLEST_C * path.lam[-1])
    # From some lam on upwards nothing but the bias changes: the engine begins there, where lam is not all that is seen.
    family, lam = path.family.in_units(path.unit), path.lam[-1] / path.unit
    if is_new:  # without any distance between the points all of the path is like that
        lam = min(lam, path.constant_from(gram) or lam_end / path.unit)
    try:
        beta, status = path.reached, None
        if not is_new:
            beta, status = family.scale(lam) * path.scaled_at(path.lam[-1]), path.sets_at(None)
        path.engine = options.start(gram, family, lam, beta, status)
    except NotStarted as cut:
        path.reached = cut.beta if is_new else None
        raise
    finally:
        path.counts.start_seconds += time.perf_counter() - began
    path.engine.counts.start_seconds = path.counts.start_seconds
    if is_new:
        path.start = path.engine.signed_status().astype(np.int8)
        for transition in reversed(
            path.engine.transitions
        ):  # made where the engine stands, which the path has yet to reach
            path.start[transition.point] = transition.origin
        path.counts = path.engine.counts
    else:
        path.engine.counts = path.counts
        path.engine.record(path.sets_at(None))  # points on a boundary may be in another set now
        path.note(_scaled_back(t, path.unit) for t in path.engine.take_transitions())


def _in_units(gram: Gram, least: float) -> tuple[Gram, float]:
    """Return a kernel matrix of moderate size, and the power of two that it was divided by: at least this."""
    size = float(np.abs(gram.diagonal).max())
    gram.full()
    if size == 0.0 or 1.0 / MODERATE <= size <= MODERATE:
        return gram, 1.0
    unit = 2.0 ** np.floor(np.log2(size))
    if unit < least:
        unit = 2.0 ** np.ceil(np.log2(least))
    return _Scaled(gram, float(unit)), float(unit)


class _Scaled(Gram):
    """A kernel matrix divided by a power of two, which still knows the data for sums in twice the precision."""

    def __init__(self, gram: Gram, unit: float):
        super().__init__(gram.full() / unit, "precomputed")
        self._of_data, self._unit = gram, unit

    def precise_dot(self, beta: np.ndarray, rows: np.ndarray, *, from_data: bool = True) -> PreciseProduct:
        """Return K beta at some rows in twice the precision."""
        high, low, error = self._of_data.precise_dot(beta, rows, from_data=from_data)
        return PreciseProduct(high / self._unit, low / self._unit, error / self._unit)


def follow_on(path: Path, C_max: float, max_events: int | None, verbose: bool, *, prove: bool = True) -> str:
    """Step from event to event until C_max or a limit, and prove what was passed; return the path's status."""
    if not prove:
        return _follow_events(path, C_max, max_events, verbose)
    with proving(path) as proof:
        return _follow_events(path, C_max, max_events, verbose, proof)


def _follow_events(
    path: Path, C_max: float, max_events: int | None, verbose: bool, proof: Proving | None = None
) -> str:
    engine, counts, lam_end, unit = path.engine, path.counts, path.lam_of(C_max), path.unit
    assert engine is not None
    progress = PathProgress(path, C_max) if verbose else None
    first, began = counts.events, time.perf_counter()
    try:
        _follow_constant(path, lam_end)
        while engine.lam * unit > lam_end and path.end > lam_end:
            if path.has_segments:  # else the start was of no use: there is nothing yet that could be read
                check()
            left = sys.maxsize if max_events is None else max_events - (counts.events - first)
            if left <= 0:
                return "max_events"
            counts.largest_elbow = max(counts.largest_elbow, engine.elbow_size)
            steps = engine.steps(lam_end / unit, left)
            if isinstance(steps, Log) and unit != 1.0:
                steps = steps.steps()
            if isinstance(steps, Log):
                path.add_all(steps)
            else:
                if unit != 1.0:
                    steps = [
                        Step(_scaled(s, unit), lam * unit, [_scaled_back(t, unit) for t in ts]) for s, lam, ts in steps
                    ]
                for segment, lam, transitions in steps:
                    path.add(segment, max(lam, lam_end), transitions)
            if proof is not None:
                proof.go_on()
            if progress is not None:
                progress(counts.events, path.value_of(path.end), engine.elbow_size)
        return "complete"
    except Exceeded:
        if not path.is_at(engine.lam * path.unit):
            path.engine = None  # it was left in the middle of a step: resume starts from the last breakpoint
        raise
    finally:
        if progress is not None:
            progress.close()
        counts.tracking_seconds += time.perf_counter() - began


def mend(path: Path, options: Options, end: float, first: int = 0) -> None:
    """Follow what is not as exact as promised again, segments from ``first`` on alone, as long as that helps.

    Rounding that has gathered in lines that last for many events is gone if they are exact at every event.  That takes
    ten times as long, and is needed on few paths: so it is done where the proof has found a gap, a few events around it.
    """
    is_proved = path.status == "complete" and not path.n_unproved and len(path) > 1
    if not is_proved or not isinstance(path.engine, SingleEngine):
        return
    with suppress(Exceeded):
        for _ in range(MOST_MENDED):
            if _is_exact(path) or not _is_better_again(path, options, end, first):
                return


def _is_exact(path: Path) -> bool:
    """Whether the largest gap is as promised, also where it is read: below that the proof may have but a rough bound.

    Both are about kernel values as they are: what these are off, no other lines would change.
    """
    gap, at = path.largest
    if gap <= HALF_EXACT or gap > EXACT:
        return gap <= HALF_EXACT
    known = path.certificates(np.array([at]), from_data=False)[0]
    return path.relative_gap(replace(known, rounding=0.0), at) <= HALF_EXACT


def _is_better_again(path: Path, options: Options, end: float, first: int) -> bool:
    """Follow the part with the largest gap again, and all behind it; if the gap is not less, leave the path as it was."""
    (gap, at), n_backups, before = path.largest, path.n_backups, path._copied_record()
    worst = min(int(np.count_nonzero(path.lam > path.lam_of(at))), len(path) - 2)
    if worst < first:
        return False
    assert isinstance(path.engine, SingleEngine)
    # What was mended farther on is followed again as well.
    exact_until = min(float(path.lam[min(worst + AROUND, len(path) - 1)]) / path.unit, path.engine.lines.exact_until)
    try:
        path._cut_back(max(worst - AROUND, first))
        start_engine(path, options, path.lam_of(end))
        assert isinstance(path.engine, SingleEngine)
        path.engine.be_exact_until(exact_until)
        path.seal(follow_on(path, end, None, verbose=False))
        is_better = path.largest.gap < gap and path.n_backups <= n_backups
    except Exceeded:
        is_better = False
    if not is_better:
        path.__dict__.update(before)
    return is_better


def _follow_constant(path: Path, lam_end: float) -> None:
    """Go down to where the engine stands, from larger lam: b stays, and the bias keeps one class on its margin."""
    engine = path.engine
    assert engine is not None
    lam = max(engine.lam * path.unit, lam_end)
    if path.end <= lam:
        return
    segment = path.constant_segment(engine)
    is_there = engine.lam * path.unit >= lam
    transitions = [_scaled_back(t, path.unit) for t in engine.take_transitions()] if is_there else []
    if path.begins_at_rest:
        status = engine.signed_status()
        for t in reversed(transitions if is_there else engine.transitions):
            status[t.point] = t.origin
        path.start[:] = RIGHT
        if is_there:
            transitions = [Transition(lam, int(i), RIGHT, int(status[i])) for i in np.flatnonzero(status)] + transitions
    path.add(_scaled(segment, path.unit), lam, transitions)


def _scaled(segment: Segment, unit: float) -> Segment:
    """Return the lines for lam and decision values in their own units."""
    if unit == 1.0:
        return segment
    E, u, v, u0, v0, anchor = segment
    with np.errstate(over="ignore"):  # no lam tells the ends of a segment apart that is as steep as that
        slope = np.clip(v / unit, -HUGE, HUGE)
    return Segment(E, u, slope, u0 * unit, v0, anchor * unit)


def _scaled_back(transition: Transition, unit: float) -> Transition:
    return transition if unit == 1.0 else transition._replace(lam=transition.lam * unit)
