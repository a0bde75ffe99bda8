"""svm_path(): from rows to a Path."""

import numbers
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from zerogap import validation
from zerogap.compiled import HUGE
from zerogap.duplicates import distinct
from zerogap.gram import Gram, PreciseProduct
from zerogap.kernels import UNIT, Kernel, as_kernel
from zerogap.limits import Exceeded, check, heard, limits
from zerogap.loss import Loss
from zerogap.path.approximate import ApproximatePath, walk
from zerogap.path.engine import Log, NotStarted, Options, Segment, Step, Transition
from zerogap.path.family import RIGHT, Family
from zerogap.path.hastie import Hastie
from zerogap.path.lp import LP
from zerogap.path.middle import centre_biases
from zerogap.path.proving import Proving, proving
from zerogap.path.result import Path, digest_of
from zerogap.path.single import Single
from zerogap.progress import PathProgress
from zerogap.threads import UNTHREADED, alone

EXACT = 1e-9  # the largest relative gap that a path of engine "single" may have, at any C

EXACT_ROUNDED = (
    1e-7  # the same with all that rounding may have done to kernel values and sums, much of which is only a bound
)
SURE = 0.1 * EXACT_ROUNDED  # a bound below this at all those C leaves enough for what is between them
SOME_COORDINATES, MOST_COORDINATES = 5_000_000, 50_000_000  # read to compute kernel values there, at one C and at all
SAMPLES = 5  # C at which that is asked, and about as many segments
PRECISE = 2  # so many of them are computed in twice the precision, if need be; and those of which the bound is rough

# Engines work with kernel values of moderate size: others are divided by a power of two, and lam with them.
MODERATE = 1e6
SMALLEST_C = 1e-290  # in the units of kernel values that are hardly numbers any more
OVERFLOW = 1e300

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
    fit_intercept: bool = True,
    merge_duplicates: bool = True,
    max_events: int | None = None,
    max_time: float | None = None,
    resume: Path | None = None,
    gap: float | None = None,
    cache_size: float = 1000,
    verbose: bool = False,
) -> Path:
    """Return the solution of the soft margin SVM for every C from C_min to C_max.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d)
        Points, or the kernel matrix (n, n) itself with ``kernel="precomputed"``.
    y : array of shape (n,)
        Two classes of any labels; the second in sorted order is the positive one.
    kernel : str, callable or Kernel, default "rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", or a function of two sets of points.
    gamma : float or str, default "scale"
        Coefficient of rbf, poly and sigmoid, "scale" or "auto", as in :class:`zerogap.SVC`.
    degree : int, default 3
        Degree of the polynomial kernel.
    coef0 : float, default 0.0
        Constant of the polynomial and sigmoid kernels.
    sample_weight : array of shape (n,), optional
        A point of weight two counts as two points.
    C_min, C_max : float, default 1e-4 and 1e3
        The range of C.
    engine : str or options, default "single"
        "single", one transition at a time; "lp", the algorithm of ong with its linear programs; "hastie", the plain algorithm
        both improve on; or configured options, such as ``zerogap.path.LP(epsilon_kkt=1e-8)``.
    linear_system : str, optional
        "svd", "qr" or "qr-update", for engine "lp".
    fit_intercept : bool, default True
        Whether the bias is free; without it f(x) = sum_i beta_i k(x_i, x), and nothing constrains the sum of coefficients.
        Engine "single" only.
    merge_duplicates : bool, default True
        Whether rows that agree in every feature and label become one weighted point; the result is the same.
    max_events : int, optional
        Stop after so many events of this call; ``resume`` goes on from there.  With 0 only the start is solved.
    max_time : float, optional
        Stop after so many seconds, wherever that is; ``resume`` goes on from there.
    resume : Path, optional
        A path of the same data that ended early, or at a smaller C_max; it is extended in place.  It keeps its C_min, and
        its engine if that is in memory still; one that was loaded goes on with ``engine``.
    gap : float, optional
        A relative duality gap that is small enough: then the path is approximate, straight lines between a few solutions, and
        its gap is proved to be at most this at every C.  Kernel rows take no more than ``cache_size``, so that there may be
        many points.  Without it the path is exact.
    cache_size : float, default 1000
        Megabytes for kernel rows, with ``gap``; an exact path holds the whole matrix.
    verbose : bool, default False
        Show progress.

    Returns
    -------
    Path
        With ``status`` "complete", "max_events", "max_time" or "interrupted"; a limit and Ctrl-C keep the part computed, and if
        that is less than one segment the path says so when it is read.  ``largest_gap_`` is the largest relative duality gap
        over every C of it.  With ``gap`` an :class:`zerogap.path.ApproximatePath`.

    Warns
    -----
    ConvergenceWarning
        If Ctrl-C has ended the path, with the C it has come to; a limit that was asked for is told by ``status`` alone.
    RuntimeWarning
        If the largest gap is above what the engine promises (1e-9 for "single"), or above ``gap``, with the C that has it.

    Examples
    --------
    >>> from zerogap import datasets, svm_path
    >>> X, y = datasets.spiral(100, random_state=0)
    >>> path = svm_path(X, y, C_min=0.1, C_max=10.0)
    >>> path.status, bool(path.largest_gap_ <= 1e-9)
    ('complete', True)

    Within a thousandth of the optimum at every C, from a few solutions:

    >>> svm_path(X, y, C_min=0.1, C_max=10.0, gap=1e-3).n_solutions < len(path)
    True
    """
    validation.check_flag("fit_intercept", fit_intercept)
    options = _options(engine, linear_system, fit_intercept)
    C_min, C_max = check_range("C", C_min, C_max, advice="The path ends by itself when no point is left at its cap.")
    check_limits(max_events, max_time)
    _check_gap(gap, cache_size, engine, linear_system, max_events, fit_intercept)
    chosen = as_kernel(kernel, gamma, degree, coef0)
    data = TwoClasses(X, y, chosen, sample_weight, merge_duplicates, has_bias=fit_intercept)
    data.gap, data.cache_size = gap, cache_size
    begun = None if resume is None else data.check_same(resume)
    if gap is not None:
        if begun is not None:
            heard()
        path = approximated(lambda: data.begin(C_min) if begun is None else begun, C_max, max_time, verbose=verbose)
        _warn_if_interrupted(path, C_max)
        return path
    return follow(lambda: data.begin(C_min), begun, C_max, options, max_events, max_time, verbose)


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
            _refuse_overflow(path, end)
            if path.engine is None:
                _refuse_indefinite(path)
                _start(path, options, path.lam_of(end))
            status = _follow(path, end, max_events, verbose, prove=prove)
        except Exceeded:
            status = "interrupted" if limit.was_interrupted else "max_time"
        path.seal(status)
        centre_biases(path, first)
        _check_result(path, options)
    _warn_if_interrupted(path, end)
    return path


def _warn_if_interrupted(path: Path, end: float) -> None:
    if path.status != "interrupted":
        return
    name, estimator = path.function, path.path_estimator
    also = f"; the path of an {estimator} is its path_" if estimator else ""
    warnings.warn(
        f"{name} was stopped (interrupted) on its way to {path.end_name}={end:g}: the path {path._where_it_ends}. Go on "
        f"with {name}({path.rows_of_data}, ..., resume=path){also}.",
        ConvergenceWarning,
        stacklevel=validation.callers_level(),
    )


def approximated(begin: Callable[[], Any], C_max: float, max_time: float | None, *, verbose: bool) -> ApproximatePath:
    """Go along an approximate path to C_max, from where it ends; seal it, and warn where more than its gap is left."""
    with limits(max_time) as limit:
        path: ApproximatePath = begin()
        try:
            _refuse_overflow(path, C_max)
            _refuse_indefinite(path)
            status = walk(path, C_max, verbose=verbose)
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


def _check_result(path: Path, options: Options) -> None:
    """Warn of what is not exact, under the limits of the path."""
    with suppress(Exceeded):
        if len(path) > 1 and not path.n_unproved and not _warn_if_inexact(path, options):
            _warn_if_rough(path)


def check_range(name: str, least: Any, largest: Any, *, advice: str = "") -> tuple[float, float]:
    """Return both ends of a path, checked."""
    least = validation.check_positive(f"{name}_min", least)
    largest = validation.check_positive(f"{name}_max", largest, advice=advice)
    if least >= largest:
        raise ValueError(f"{name}_min must be below {name}_max; got {name}_min={least:g} and {name}_max={largest:g}.")
    return least, largest


def check_limits(max_events: Any, max_time: Any) -> None:
    if max_events is not None and (
        not isinstance(max_events, numbers.Integral) or isinstance(max_events, bool | np.bool_) or max_events < 0
    ):
        raise ValueError(f"max_events must be a whole number, 0 or more, or None for no limit; got {max_events!r}.")
    validation.check_max_time(max_time, zero=True, infinite=True)


def _check_gap(
    gap: Any, cache_size: Any, engine: Any, linear_system: Any, max_events: Any, fit_intercept: bool = True
) -> None:
    """Refuse a gap that means nothing, and options of exact paths beside one."""
    validation.check_positive("cache_size", cache_size, advice="It is the memory for kernel rows in megabytes.")
    if gap is None:
        return
    validation.check_positive("gap", gap, advice="It is the relative duality gap to stay below, for instance 1e-3.")
    if not EXACT <= gap < 1.0:
        raise ValueError(
            f"gap must be below 1, the relative duality gap of doing nothing, and at least {EXACT:g}, which an exact path has, "
            f"svm_path(...) without gap; got {gap!r}."
        )
    if not fit_intercept:
        raise ValueError(
            f"fit_intercept=False is for exact paths so far; with gap={gap:g} leave it out, or leave out gap for an exact path."
        )
    for name, value in (("engine", engine), ("linear_system", linear_system), ("max_events", max_events)):
        if value is not None and value != "single":
            raise ValueError(
                f"{name}={value!r} is an option of exact paths, which go from event to event; with gap={gap:g} leave it out, "
                "and limit the time with max_time."
            )


def _options(engine: str | Options, linear_system: str | None, fit_intercept: bool = True) -> Options:
    if not isinstance(engine, str):
        if not hasattr(engine, "start"):
            raise TypeError(
                f"engine must be a name or configured options; got {engine!r}. Names: {', '.join(ENGINES)}."
            )
    else:
        validation.check_choice("engine", engine, tuple(ENGINES))
    options = ENGINES[engine] if isinstance(engine, str) else engine
    if not fit_intercept and not isinstance(options, Single):
        raise ValueError(
            f"fit_intercept=False is followed by engine 'single' alone; got engine={str(engine)!r}, whose elbow is never "
            "without the equation of the bias."
        )
    if linear_system is None:
        return options
    if not isinstance(options, LP):
        raise ValueError(f"linear_system={linear_system!r} is a choice of engine 'lp'; engine is {str(engine)!r}.")
    return replace(options, linear_system=linear_system)


class Data:
    """What a path is made from, checked: distinct points, their targets and weights, and the kernel."""

    targets = "y"
    path_type: type[Path] = Path
    moves_origin = True  # of a linear kernel: coefficients sum to zero, if the bias is free
    gap: float | None = None  # of an approximate path
    cache_size = 1000.0

    def __init__(self, X: Any, y: Any, kernel: Kernel, sample_weight: Any, merge: bool, *, has_bias: bool = True):
        self.has_bias = has_bias
        is_coarse = kernel.is_precomputed and getattr(X, "dtype", None) in (np.float32, np.float16)
        X = validation.check_precomputed(X) if kernel.is_precomputed else validation.check_points(X)
        target, weight = self.checked(y, X.shape[0]), validation.check_weights(sample_weight, X.shape[0])
        self.points = distinct(X, target, weight, merge=merge and not kernel.is_precomputed)
        rows = self.points.rows
        self.y = target[rows]
        self.check_enough()
        self.X = kernel.taken(X, rows)  # indexed by arrays: our own copy
        if is_coarse:  # symmetric and definite but for rounding in single precision: Gram is to know that too
            self.X = (0.5 * (self.X + self.X.T)).astype(np.float32)
        self.kernel = kernel.resolved(self.X, self.points.weight)
        if self.moves_origin and has_bias:
            self.kernel = self.kernel.centred(self.X)

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the targets of n points."""
        raise NotImplementedError

    def check_enough(self) -> None:
        """Raise if there is no problem without the points of weight zero."""

    def check_same(self, path: Path) -> Path:
        """Return the path, if it was made from these data."""
        if not isinstance(path, self.path_type):
            name = self.path_type.__name__
            raise TypeError(
                f"resume= takes the {name} that an earlier call returned, or {name}.load(file); got {type(path).__name__}. "
                "That of a fitted estimator is its path_."
            )
        if self.has_bias != path.fit_intercept:
            raise ValueError(
                f"The path of resume= was made with fit_intercept={path.fit_intercept}, not with {self.has_bias}. {SAME}"
            )
        self._refuse_other_gap(path)
        if self.points.group.size != path.points.group.size:
            raise ValueError(
                f"resume= goes on with a path of {path.points.group.size} rows; X has {self.points.group.size}. {SAME}"
            )
        if not all(map(np.array_equal, (self.points.rows, self.points.group), (path.points.rows, path.points.group))):
            raise ValueError(
                f"X or y is not what the path of resume= was made from, or merge_duplicates is not. {SAME}"
            )
        if not np.array_equal(self.y, path.target):
            raise ValueError(f"y is not what the path of resume= was made from. {SAME}")
        if not np.array_equal(self.points.weight, path.points.weight):
            raise ValueError(f"sample_weight is not what the path of resume= was made from. {SAME}")
        if not (_are_equal(self.X, path.X) if path.X is not None else digest_of(self.X) == path.digest):
            raise ValueError(f"X is not what the path of resume= was made from. {SAME}")
        if path.X is None:  # it was loaded, and does not know its kernel: but it is optimal with no other
            path.gram = Gram(self.X, self.kernel, cache_size=self.cache_size)
            if path.has_segments and not path.is_optimal_at_end():
                path.gram = None
                raise ValueError(
                    f"The path of resume= was not made with kernel {self.kernel!r}: it is not optimal. {SAME}"
                )
        assert path.gram is not None
        if not self.kernel.is_close(path.gram.kernel):
            raise ValueError(
                f"The path of resume= was made with kernel {path.gram.kernel!r}, not with {self.kernel!r}. {SAME}"
            )
        return path

    def _refuse_other_gap(self, path: Path) -> None:
        """Refuse to go on exactly with an approximate path, the other way round, or with another gap."""
        begun = path.gap if isinstance(path, ApproximatePath) else None
        if begun != self.gap:
            found, asked = ("exact" if gap is None else f"one with gap={gap:g}" for gap in (begun, self.gap))
            raise ValueError(
                f"The path of resume= is {found}; {asked} was asked for. Go on with gap={begun}, or follow a new one."
            )

    def begun(self, path: Path) -> Path:
        """Return a path without a segment, which knows its points."""
        path.X = self.X
        return path


class TwoClasses(Data):
    """Labels of two classes."""

    def checked(self, y: Any, n: int) -> np.ndarray:
        """Return the labels as -1 and 1."""
        return _two_classes(y, n)

    def check_enough(self) -> None:
        """Raise if one class has no weight."""
        if np.unique(self.y).size < 2:
            raise ValueError("Every point of one class has weight zero; a path needs both classes.")

    def begin(self, C_min: float) -> Path:
        """Return a path without a segment."""
        family, status = Family.hinge(self.y, self.points.weight, has_bias=self.has_bias), np.zeros(self.y.size)
        gram = Gram(self.X, self.kernel, cache_size=self.cache_size)
        if self.gap is None:
            return self.begun(Path(family, self.points, status, 1.0 / C_min, gram))
        return self.begun(ApproximatePath(family, self.points, status, 1.0 / C_min, gram, gap=self.gap))


SAME = "Resume with the data and kernel the path was begun with, or follow a new one."


def _are_equal(X: Any, other: Any) -> bool:
    if sp.issparse(X) and sp.issparse(other):
        return X.shape == other.shape and abs(X - other).nnz == 0
    X, other = (Z.toarray() if sp.issparse(Z) else Z for Z in (X, other))
    return np.array_equal(X, other)


def _refuse_indefinite(path: Path) -> None:
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


def _refuse_overflow(path: Path, end: float) -> None:
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


def _start(path: Path, options: Options, lam_end: float) -> None:
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


def _two_classes(y: Any, n: int) -> np.ndarray:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y must hold one label for each of the {n} points, shape ({n},); got shape {y.shape}.")
    classes = np.unique(y)
    if classes.size != 2:
        raise ValueError(
            f"A path is followed for two classes; y has {classes.size}: {classes[:5].tolist()}. SVCPath takes more."
        )
    return np.where(y == classes[1], 1.0, -1.0)


def _follow(path: Path, C_max: float, max_events: int | None, verbose: bool, *, prove: bool = True) -> str:
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


def _warn_if_inexact(path: Path, options: Options) -> bool:
    """Compare the largest gap with what the engine promises, and warn: one that has lost its way would not notice."""
    gap, C = path.largest
    promised = _promised(path, options, C)
    if gap > promised:
        warnings.warn(
            f"The path is not exact: the relative gap at {path.words(C)} is {gap:.1e}, where {promised:.1g} or less was "
            f"expected. Look at path.certificate_at({path.parameter}), and fit {path.estimator} where it is large; scaled "
            f"features and {path.easier} at the end help.",
            RuntimeWarning,
            stacklevel=validation.callers_level(),
        )
    return gap > promised


def _warn_if_rough(path: Path) -> None:
    """The proof is about kernel values as they were computed; here they are computed from the data, at a few C."""
    assert path.gram is not None
    samples = _samples(path)
    check()
    betas = [path.beta_at(float(C)) for C in samples]
    coarse = path.certificates(samples, precisely=False, betas=betas)
    gaps = np.array([path.relative_gap(certificate, C) for certificate, C in zip(coarse, samples, strict=True)])
    if gaps.max() <= SURE:
        return
    known = 10.0 * path.largest_gap_  # what the engine may leave
    if gaps.max() > EXACT_ROUNDED:  # the bounds count the rounding of coefficients, and more
        primal = [abs(certificate.primal) + path.floor_at(C) for certificate, C in zip(coarse, samples, strict=True)]
        least = max(EXACT_ROUNDED, known)
        is_quiet = all(
            _relative(_most_noise(path, *at), size) <= least for *at, size in zip(samples, betas, primal, strict=True)
        )
        noise = [] if is_quiet else [_relative(_noise(path, C), size) for C, size in zip(samples, primal, strict=True)]
        if max(noise, default=0.0) > least:  # it may be, and some of it is seen
            lost = [_relative(_gap_as_read(path, C), size) for C, size in zip(samples, primal, strict=True)]
            many = _dense_samples(path)  # what is rounding at one C is nothing at the next
            for C, at in zip(many, path.certificates(many, from_data=False), strict=True):
                check()
                seen = max(at.gap, _gap_of_shares(path, C), _gap_as_read(path, C, from_data=False))
                lost.append(_relative(seen, abs(at.primal) + path.floor_at(C)))
            if max(lost) > EXACT:
                C = samples[np.argmax(noise)]
                _warn_of_precision(path, C, max(noise), "the last digits of its coefficients alone may make")
                return
    is_open = gaps > SURE
    again = [betas[k] for k in np.flatnonzero(is_open)]
    finer = path.certificates(samples[is_open], from_data=False, betas=again)
    gaps[is_open] = [path.relative_gap(*found) for found in zip(finer, samples[is_open], strict=True)]
    n, work = path.y.size, 0
    precise = PRECISE if path.gram.precise_work(n, n) <= MOST_COORDINATES else 0
    suspect = [k for rank, k in enumerate(np.argsort(-gaps)) if gaps[k] > (SURE if rank < precise else EXACT_ROUNDED)]
    for rank, k in enumerate(suspect):
        check()
        work += path.gram.precise_work(n, int(np.count_nonzero(path.beta_at(samples[k]))))
        if rank > 0 and work > MOST_COORDINATES:  # the worst of them is asked at any rate
            return
        C, certificate = float(samples[k]), path.certificate_at(samples[k])
        gap = _relative(max(certificate.gap, _gap_as_read(path, C)), abs(certificate.primal) + path.floor_at(C))
        certified = path.relative_gap(certificate, C)
        if gap > max(EXACT, known) or certified > max(EXACT_ROUNDED, known):
            gap = max(gap, certified)
            _warn_of_precision(path, C, gap, "for kernel values with all their digits it has")
            return


def _samples(path: Path) -> np.ndarray:
    """Return a few C of all sizes, and a few in the middle of segments: of all, if there are so few."""
    lam = path.lam
    k = np.unique(np.linspace(0, lam.size - 2, SAMPLES - 1).astype(int))
    some = np.clip([*np.geomspace(lam[0], lam[-1], SAMPLES), *np.sqrt(lam[k]) * np.sqrt(lam[k + 1])], lam[-1], lam[0])
    return np.unique(path.value_of(some))


def _warn_of_precision(path: Path, C: float, gap: float, cause: str) -> None:
    assert path.gram is not None
    warnings.warn(
        f"The {path.gram.kernel.name} kernel has too few digits on this data: the path is exact for its values as float64 has "
        f"them, but at {path.words(C)} {cause} a relative gap of {gap:.1e}. Centre and scale the features, or end at "
        f"{path.easier}.",
        RuntimeWarning,
        stacklevel=validation.callers_level(),
    )


def _noise(path: Path, C: float) -> float:
    """Return the gap that the rounding of every coefficient at C may make, through the points on the margin."""
    assert path.gram is not None
    near = path.on_margin_at(C)
    off = np.abs(path.gram.full()[near]) @ np.abs(path.beta_at(C))
    return UNIT * path.scale_at(C) * float(path.family.w[near] @ off)


def _most_noise(path: Path, C: float, beta: np.ndarray) -> float:
    """Return a bound on that without a product: all points are on the margin, and |K_ij| is at most norm_i norm_j."""
    w, norm = path.family.w, path.norm
    return 2.0 * UNIT * path.scale_at(C) * float(w @ norm) * float(norm @ np.abs(beta))


def _gap_as_read(path: Path, C: float, *, from_data: bool = True) -> float:
    """Return the gap with the coefficients and the bias as they are read: a certificate has a bias of its own.

    ``from_data``: with kernel values in twice the precision, where they are not too many.
    """
    assert path.gram is not None
    problem, beta, bias = path.problem_at(C), path.beta_at(C), path.bias_in_gram(C)
    error = path.gram.dot_error(beta)
    rows = np.flatnonzero((beta != 0) | (path.excess_at(C)[0] < error))
    from_data = from_data and path.gram.precise_work(int(np.count_nonzero(beta)), rows.size) <= SOME_COORDINATES
    product = path.gram.precise_dot(beta, rows, from_data=from_data)
    low = product.low + path.gram.full()[rows] @ path.share_error_at(C)
    loss = Loss(problem.lower[rows], problem.upper[rows], problem.ridge[rows], problem.eps)
    return float(loss.gap_shares(beta[rows], ((problem.target[rows] - product.high) - bias) - low).sum())


def _dense_samples(path: Path) -> np.ndarray:
    """Return many C of all sizes."""
    return path.value_of(np.geomspace(path.lam[0], path.lam[-1], 64)[1:-1])


def _gap_of_shares(path: Path, C: float) -> float:
    """Return the gap that comes of what rows which share the coefficient of a point have more or less than it."""
    assert path.gram is not None
    error = path.share_error_at(C)
    if not error.any():
        return 0.0
    near = path.on_margin_at(C)
    return float(path.scale_at(C) * path.family.w[near] @ np.abs(path.gram.full()[near] @ error))


def _relative(gap: float, primal: float) -> float:
    if gap < OVERFLOW * float(primal):  # NumPy's numbers would warn where this is infinite
        return gap / primal
    return np.inf if gap > 0.0 else 0.0


def _promised(path: Path, options: Options, C: float) -> float:
    """Return the relative gap that an engine may leave at C.

    A violation of v at the breakpoint before costs v times the weight of all points, and more as lam falls.
    """
    violation = getattr(options, "violation", None)
    if violation is None:
        return EXACT
    before = path.C[max(int(np.searchsorted(path.C, C)) - 1, 0)]
    primal = path.certificate_at(C).primal
    return float(1.1 * violation * (C / before) * C * path.points.weight.sum() / primal) if primal > 0 else np.inf
