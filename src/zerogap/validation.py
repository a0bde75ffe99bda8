"""Every check on what a user passes: what was expected, what came, what to do.  Further in, inputs are trusted."""

import numbers
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf
from scipy.special import gammaln
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

# A kernel matrix is computed with rounding: eigenvalues this small against the largest entry count as zero.
ROUNDING = 1e-9
FLOAT32_ROUNDING = 1e-5
SKEW_TILE = 512  # rows and columns of a matrix that are compared with their mirror image at a time

# Points are on another scale than others if it would be this improbable among draws from one distribution, whichever it is,
# and if in one feature half of them are farther from the range of the others than that is wide, or if in half of the features
# they all lie where at most this share of the others does: data split by time or by group is not alike either, but near.
IMPROBABLE, NARROW = 1e-9, 0.2


def check_positive(name: str, value: Any, *, advice: str = "", infinite: bool = False, zero: bool = False) -> float:
    """Return a number above zero (or at least zero) as a float."""
    if not is_number(value):
        raise ValueError(f"{name} must be a number; got {value!r} of type {type(value).__name__}. {advice}".rstrip())
    number = float(value)
    is_allowed = number > 0 or (zero and number == 0)
    if not is_allowed or (np.isinf(number) and not infinite):
        bounds = "at least 0" if zero else "above 0"
        finite = "" if infinite else " and finite"
        raise ValueError(f"{name} must be {bounds}{finite}; got {name}={value!r}. {advice}".rstrip())
    return number


def check_single(name: str, value: Any) -> float:
    """Return the value that a model of a path is asked for; refuse several of them."""
    if np.ndim(value) != 0:
        raise ValueError(
            f"at({name}) is the model of one {name}; got {np.size(value)} of them. Use "
            f"[model.at({name}) for {name} in ...], or predict(X, {name}=...), which takes several."
        )
    return check_values(name, value, expected="a number")[0]


def check_values(name: str, values: Any, *, expected: str = "a number, or several in a row") -> list[float]:
    """Return a value on a path, or several in a row, as floats."""
    found = np.atleast_1d(np.asarray(values))
    if found.ndim > 1:
        raise ValueError(f"{name} must be {expected}; got an array of shape {found.shape}. Flatten it.")
    wrong = [one for one in found.tolist() if not is_number(one)]
    if wrong:
        raise ValueError(
            f"{name} must be {expected}; got {wrong[0]!r} of type {type(wrong[0]).__name__}. Use one "
            "within the range of the path."
        )
    return [float(one) for one in found.tolist()]


def check_places(name: str, values: Any) -> np.ndarray:
    """Return values at which a curve is asked for, an array of any shape or one without dimensions, as floats."""
    found = np.asarray(values)
    if found.dtype.kind not in "iuf":
        found = np.reshape(check_values(name, found.ravel(), expected="a number, or an array of them"), found.shape)
    return found.astype(np.float64)


def check_nu(nu: Any) -> float:
    """Return a share of the points, above zero and at most one, as a float."""
    nu = check_positive("nu", nu, advice="It is a share of the points, at most 1.")
    if nu > 1.0:
        raise ValueError(f"nu must be at most 1, as it is a share of the points; got nu={nu!r}.")
    return nu


def check_count(name: str, value: Any, *, advice: str = "") -> int:
    """Return a whole number above zero."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_) or value <= 0:
        raise ValueError(f"{name} must be a whole number above 0; got {name}={value!r}. {advice}".rstrip())
    return int(value)


def check_max_time(max_time: Any, *, zero: bool = False, infinite: bool = False) -> None:
    """Refuse a time limit that is none; None is no limit."""
    if max_time is not None:
        advice = "It is in seconds; use None for no limit."
        check_positive("max_time", max_time, zero=zero, infinite=infinite, advice=advice)


def check_flag(name: str, value: Any) -> bool:
    """Return True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False; got {name}={value!r}.")
    return bool(value)


def check_choice(name: str, value: Any, choices: tuple[str, ...], advice: str = "") -> str:
    """Return a name that is one of the known ones."""
    if not isinstance(value, str) or value not in choices:
        more = f" {advice}" if advice else ""
        raise ValueError(f"Unknown {name} {value!r}. Choose one of {', '.join(map(repr, choices))}.{more}")
    return str(value)


def is_number(value: Any) -> bool:
    """Whether this is a real number, and no truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)


def check_degree(degree: Any) -> int:
    """Return the degree of a polynomial, a whole number."""
    if not isinstance(degree, numbers.Integral) or isinstance(degree, bool | np.bool_) or degree < 0:
        raise ValueError(f"degree must be a whole number, 0 or more; got degree={degree!r}.")
    return int(degree)


def check_coef0(coef0: Any) -> float:
    """Return the constant of a polynomial or sigmoid kernel, a finite number."""
    if not isinstance(coef0, numbers.Real) or not np.isfinite(float(coef0)):
        raise ValueError(f"coef0 must be a finite number; got coef0={coef0!r}.")
    return float(coef0)


def check_kernel_values(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Return what a user's kernel gave for two sets of points: a real number for each pair of them."""
    expected = f"The {name} kernel must return the matrix of kernel values between two sets of points"
    array = values.toarray() if sp.issparse(values) else np.asarray(values)  # a product of sparse points is one
    if array.dtype.kind not in "fiub":
        kind = type(values).__name__ if array.dtype == object else f"values of type {array.dtype}"
        raise ValueError(f"{expected}, an array of real numbers; got {kind}.")
    if array.shape != shape:
        raise ValueError(
            f"{expected}: for {shape[0]} and {shape[1]} points an array of shape {shape}; got {array.shape}."
        )
    if not np.isfinite(array.sum(dtype=np.float64)) and np.isnan(array).any():
        raise ValueError(f"{expected}; it returned NaN. Every pair of points needs a number.")
    return array.astype(np.float64, copy=False)


def check_kernel_diagonal(values: Any, n: int, name: str) -> np.ndarray:
    """Return what the diagonal method of a kernel gave for n points: a real number for each of them."""
    expected = f"diagonal of the {name} kernel must return k(x, x) for each of the {n} points"
    array = np.asarray(values)
    if array.shape != (n,):
        raise ValueError(f"{expected}, shape ({n},); got shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{expected}, an array of real numbers; got values of type {array.dtype}.")
    return array.astype(np.float64, copy=False)


def check_points(X: Any) -> Any:
    """Return points as a float64 array or CSR matrix without NaN or infinity."""
    return summed_up(check_array(X, accept_sparse="csr", dtype=np.float64, order="C", input_name="X"))


def summed_up(X: Any) -> Any:
    """Return sparse points with one entry for each feature: several mean their sum, and their squares are not its square."""
    if not sp.issparse(X) or X.has_canonical_format:
        return X
    X = X.copy()  # it may be the user's own
    X.sum_duplicates()
    return X


def check_gram(gram: Any) -> None:
    """Refuse what is no kernel matrix, such as the points themselves."""
    if not (hasattr(gram, "n") and hasattr(gram, "row")):
        raise TypeError(
            f"gram must be a Gram, the kernel matrix of the points; got {type(gram).__name__}. Pass Gram(X) or "
            "Gram(X, 'linear') for points X, and Gram(K, 'precomputed') for a matrix."
        )


def check_problem(problem: Any, *, solvers: Any = None) -> None:
    """Refuse what is no problem; ``solvers`` came after it, and may be one."""
    if _is_problem(problem):
        return
    advice = (
        "The problem comes first, then the solvers."
        if _is_problem(solvers)
        else "For points X and labels y that is DualProblem.hinge(Gram(X), y, C=1.0), or fit an SVC or SVR."
    )
    raise TypeError(f"problem must be a DualProblem; got {type(problem).__name__}. {advice}")


def _is_problem(value: Any) -> bool:
    return hasattr(value, "gram") and hasattr(value, "certify")


def check_target(y: Any, n: int, *, advice: str = "") -> np.ndarray:
    """Return one finite number per point."""
    try:
        y = np.asarray(y, dtype=np.float64)
    except (ValueError, TypeError):
        first = np.asarray(y, dtype=object).ravel()[0]
        raise TypeError(
            f"y must hold one number for each of the {n} points; it begins with {first!r}. {advice}".rstrip()
        ) from None
    if y.shape != (n,):
        raise ValueError(f"y must hold one number for each of the {n} points, shape ({n},); got shape {y.shape}.")
    if not np.isfinite(y).all():
        raise ValueError(
            f"y holds NaN or infinity at row {np.flatnonzero(~np.isfinite(y))[0]}. Drop or impute those rows."
        )
    return y


def check_signs(y: Any, n: int) -> np.ndarray:
    """Return labels that are -1 or +1, both present."""
    advice = "Encode two classes as -1/+1, or use SVC, which takes any labels and any number of classes."
    y = check_target(y, n, advice=advice)
    positive = np.count_nonzero(y == 1.0)
    if not (0 < positive < n and np.count_nonzero(y == -1.0) == n - positive):
        found = np.unique(y)
        raise ValueError(f"y must hold the labels -1 and +1, both of them; got {found[:5].tolist()}. {advice}")
    return y


def check_labels(y: np.ndarray) -> None:
    """Refuse targets that are no labels of classes, as scikit-learn does; those that plainly are take no time."""
    if not (y.ndim == 1 and (y.dtype.kind in "biu" or (y.dtype.kind == "f" and (y == np.floor(y)).all()))):
        check_classification_targets(y)


def check_known_labels(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the numbers of the classes of labels, among those that are known, sorted."""
    is_known = np.isin(y, classes)
    if not is_known.all():
        unknown = np.unique(y[~is_known])[:5].tolist()
        raise ValueError(f"y must hold labels out of {classes.tolist()[:5]}; got {unknown}.")
    return np.searchsorted(classes, y)


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Return one finite weight per point, none negative, not all zero."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n, float(sample_weight))
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have shape ({n},), one weight for each point; got shape {weight.shape}.")
    if not np.isfinite(weight).all() or (weight < 0).any():
        worst = weight[~(np.isfinite(weight) & (weight >= 0))][0]
        raise ValueError(
            f"sample_weight must be finite and at least 0; got {worst}. Give a point weight 0 to leave it out."
        )
    if not weight.any():
        raise ValueError(
            "sample_weight is zero for every point: nothing is left to fit. Give at least two points a weight."
        )
    return weight


def check_indices(name: str, indices: Any, n: int) -> np.ndarray:
    """Return row numbers from 0 to n - 1; negative ones count from the end, and a mask of n entries stands for its rows."""
    indices = np.atleast_1d(np.asarray(indices))
    if indices.dtype == bool and indices.shape == (n,):
        return np.flatnonzero(indices)
    if indices.size == 0:
        return np.empty(0, dtype=np.int64)
    if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(
            f"{name} must be row numbers, or a mask of {n} entries; got {indices.dtype} of shape {indices.shape}."
        )
    if indices.min() < -n or indices.max() >= n:
        worst = indices[(indices < -n) | (indices >= n)][0]
        raise ValueError(f"{name} must be rows out of 0 to {n - 1}; got {worst}.")
    return np.where(indices < 0, indices + n, indices)


def check_precomputed(K: Any) -> np.ndarray:
    """Return a kernel matrix that is square, symmetric and positive semidefinite."""
    refuse_sparse_kernel(K)
    tolerance = FLOAT32_ROUNDING if getattr(K, "dtype", None) in (np.float32, np.float16) else ROUNDING
    K = check_array(K, dtype=np.float64, order="C", input_name="the precomputed kernel")
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"A precomputed kernel must be a square matrix, kernel values between all training points; got shape {K.shape}. "
            "For features pass them with another kernel."
        )
    scale = np.abs(K).max()
    if not np.isfinite(float(scale) * K.size):
        raise ValueError(
            f"A precomputed kernel with values up to {scale:.2g} overflows float64 when they are summed. Divide it by that."
        )
    skew = _skew(K)
    if skew > tolerance * scale:
        raise ValueError(
            f"A precomputed kernel must be symmetric; entries differ from their mirror image by up to {skew:.2g}. "
            "Use (K + K.T) / 2 if the difference is noise."
        )
    if not is_positive_semidefinite(K, tolerance):
        raise ValueError(
            "A precomputed kernel must be positive semidefinite; this matrix has a negative eigenvalue, so it is no "
            "inner product and the dual problem no convex one. Clip its eigenvalues at zero, or choose another kernel."
            + _float32_hint(K, tolerance)
        )
    return K


def _skew(K: np.ndarray) -> float:
    """Return by how much entries differ from their mirror image, tile by tile."""
    starts = range(0, K.shape[0], SKEW_TILE)
    tiles = ((slice(a, a + SKEW_TILE), slice(b, b + SKEW_TILE)) for a in starts for b in starts if a <= b)
    return max((float(np.abs(K[rows, columns] - K[columns, rows].T).max()) for rows, columns in tiles), default=0.0)


def check_symmetric(K: np.ndarray) -> np.ndarray:
    """Return the matrix that a user's function gave for all training points, symmetric to the last bit; refuse others."""
    skew = _skew(K)
    if skew > ROUNDING * np.abs(K).max():
        raise ValueError(
            f"The kernel function gives a matrix that is not symmetric for the training points: entries differ from their "
            f"mirror image by up to {skew:.2g}. A kernel is the same number with its two points exchanged."
        )
    return 0.5 * K + 0.5 * K.T


def _float32_hint(K: np.ndarray, tolerance: float) -> str:
    """Return what to do with a matrix that was computed in float32, and is one of float64 now."""
    if tolerance >= FLOAT32_ROUNDING or not is_positive_semidefinite(K, FLOAT32_ROUNDING):
        return ""
    return (
        f" The eigenvalue is above -{FLOAT32_ROUNDING:g} of the largest entry, as rounding to float32 leaves it: if the "
        "matrix was computed in float32, compute it in float64, or pass it as float32, where as much is allowed for."
    )


def refuse_sparse_kernel(K: Any) -> None:
    """Refuse a sparse matrix of kernel values: hardly any of them is zero."""
    if sp.issparse(K):
        raise TypeError("Sparse precomputed kernels are not supported, only dense arrays. Pass K.toarray().")


def is_positive_semidefinite(K: np.ndarray, tolerance: float = ROUNDING) -> bool:
    """Whether K has no eigenvalue below -tolerance times its largest entry, by a shifted Cholesky factor."""
    shifted = K.copy()
    shifted.flat[:: K.shape[0] + 1] += tolerance * max(np.abs(K).max(), np.finfo(float).tiny)
    return dpotrf(shifted.T, lower=0, clean=0, overwrite_a=1)[1] == 0


def other_scale(X: Any, known: Any) -> str:
    """Say in which way points are on another scale than those known; nothing if they are not, or if it cannot be told.

    Of m points drawn like n others, with at most this probability h are above the largest of all of these:
    C(m, h) / C(n + m, h).  And at most k of the n lie between the smallest and the largest of the m with probability
    sum over j <= k of (n - j + 1) C(m - 2 + j, j) / C(n + m, m).  Ties make both smaller.  Sparse points are not looked at:
    most of their features are zero in most of them, on every scale.
    """
    if sp.issparse(X) or sp.issparse(known):
        return ""
    low, high = known.min(axis=0), known.max(axis=0)
    varies = high > low
    if not varies.any():
        return ""
    X, known, low, high = X[:, varies], known[:, varies], low[varies], high[varies]
    (m, d), n = X.shape, known.shape[0]
    with np.errstate(over="ignore", invalid="ignore"):
        far_above, far_below = X - high > high - low, low - X > high - low
    far = np.maximum(far_above.sum(axis=0), far_below.sum(axis=0))
    h = int(far.max())
    if 2 * h >= m and np.log(2 * d) + _log_choose(m, h) - _log_choose(n + m, h) <= np.log(IMPROBABLE):
        count = int(np.count_nonzero(2 * far >= m))
        return f"in {count} of {d} features most of them are farther from the training points than these are from each other"
    inside = ((known >= X.min(axis=0)) & (known <= X.max(axis=0))).sum(axis=0)
    k = int(np.sort(inside)[d // 2])  # in more than half of the features there are at most so many
    if m > 1 and k <= NARROW * n:
        j = np.arange(k + 1)
        terms = np.log(n - j + 1) + _log_choose(m - 2 + j, j) - _log_choose(n + m, m)
        if np.log(d) + np.logaddexp.reduce(terms) <= np.log(IMPROBABLE):
            return f"in most of the {d} features all of them lie where only {k} or fewer of {n} training points do"
    return ""


def _log_choose(n: Any, k: Any) -> Any:
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def callers_level() -> int:
    """Return the stack level of the first caller outside this package, the line a warning should point to."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("zerogap."):
        level, frame = level + 1, frame.f_back
    return level
