"""svm_path(): from rows to a Path."""

from typing import Any

from zerogap import validation
from zerogap.kernels import as_kernel
from zerogap.limits import heard
from zerogap.path.checks import check_gap, check_limits, check_range, engine_of
from zerogap.path.data import TwoClasses
from zerogap.path.engine import Options
from zerogap.path.following import approximated, follow, warn_if_interrupted
from zerogap.path.result import Path


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
    options = engine_of(engine, linear_system, fit_intercept)
    C_min, C_max = check_range("C", C_min, C_max, advice="The path ends by itself when no point is left at its cap.")
    check_limits(max_events, max_time)
    check_gap(gap, cache_size, engine, linear_system, max_events, fit_intercept)
    chosen = as_kernel(kernel, gamma, degree, coef0)
    data = TwoClasses(X, y, chosen, sample_weight, merge_duplicates, has_bias=fit_intercept)
    data.gap, data.cache_size = gap, cache_size
    begun = None if resume is None else data.check_same(resume)
    if gap is not None:
        if begun is not None:
            heard()
        path = approximated(lambda: data.begin(C_min) if begun is None else begun, C_max, max_time, verbose=verbose)
        warn_if_interrupted(path, C_max)
        return path
    return follow(lambda: data.begin(C_min), begun, C_max, options, max_events, max_time, verbose)
