"""What a browser needs of the points and the kernel: coordinates, planes to look at, and kernel values it cannot compute.

A plane is centre + s e1 + t e2 with orthonormal e1 and e2, through the mean of the points.  A point is known by its coordinates
there, the square of its distance, and <x - o, centre - o>, o being the origin of the kernel: so kernels of |x - z| and of
<x, z> can be evaluated on the plane, whatever the number of features.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from zerogap.explorer.encoding import array
from zerogap.gram import Gram
from zerogap.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid
from zerogap.wording import count, kernel_in_words

COORDINATES = 500_000  # that a page holds at most; of more features some are chosen
KERNEL_VALUES = 500_000  # among the points, for kernels that a browser does not know
GRID_VALUES = 750_000  # of all points on a grid, likewise
LEAST_SIDE, LARGEST_SIDE = 24, 64  # of that grid
MANY = 500  # points and features, of which only two singular vectors are computed
PAD = 0.08  # of the range, on either side; planes.js has the same
KNOWN = (RBF, Linear, Polynomial, Sigmoid)
NUMBERS = ("gamma", "degree", "coef0")


def described(gram: Gram, X: Any, y: np.ndarray, feature_names: Any = None) -> dict[str, Any]:
    """Return all about the points but the path: kernel, features, planes, kernel values, and notes on what is missing."""
    kernel = gram.kernel
    found: dict[str, Any] = {"n": gram.n, "kernel": _kernel(gram), "note": ""}
    points = None if kernel.is_precomputed else _numbers(X)
    is_known = type(kernel) in KNOWN and points is not None
    if points is not None:
        found |= _features(points, kernel, y, _names(feature_names, points.shape[1]), is_known=is_known)
    found["ordinate"] = _ordinate(gram, points, feature_names)
    is_whole = points is not None and points.size <= COORDINATES
    if not (is_known and is_whole) and gram.n**2 <= KERNEL_VALUES:
        found["gram"] = array(gram.full())
    elif not (is_known and is_whole):
        found["note"] += (
            " There are too many points to hold their kernel values: no decision axis, no gap evaluated here."
        )
    found["note"] = found["note"].strip()
    return found


def _kernel(gram: Gram) -> dict[str, Any]:
    kernel = gram.kernel
    name = kernel.name if type(kernel) in KNOWN else "other"
    numbers = {key: float(getattr(kernel, key)) for key in NUMBERS if hasattr(kernel, key)} if name != "other" else {}
    return {"name": name, **numbers, "words": f"kernel {kernel_in_words(gram)}"}


def _numbers(X: Any) -> np.ndarray | None:
    """Return points as an array; None if they are something else, such as texts."""
    if sp.issparse(X):
        return X.toarray() if X.shape[0] * X.shape[1] <= 20 * COORDINATES else None
    X = np.asarray(X)
    return X.astype(np.float64) if X.ndim == 2 and X.shape[1] and X.dtype.kind in "fiub" else None


def _names(names: Any, d: int) -> list[str]:
    if names is None:
        return [f"x{k + 1}" for k in range(d)]
    if len(names) != d:
        raise ValueError(f"feature_names must have a name for each of the {d} features; got {len(names)}.")
    return [f"feature {name}" if str(name).isdigit() else str(name) for name in names]


def _features(X: np.ndarray, kernel: Kernel, y: np.ndarray, names: list[str], *, is_known: bool) -> dict[str, Any]:
    """Return the columns, or some of them, and the plane of two principal components."""
    (n, d), mean = X.shape, X.mean(axis=0)
    centre = getattr(kernel, "centre", None)
    origin = np.zeros(d) if centre is None else np.asarray(centre)
    chosen = _chosen(X, y, max(COORDINATES // n, 2))
    about = X - mean
    base = array((X - origin) @ (mean - origin))
    features = {
        "d": d, "names": [names[k] for k in chosen], "mean": mean[chosen].tolist(),
        "columns": [array(X[:, k]) for k in chosen], "square": array(np.square(about).sum(axis=1)), "base": base,
    }  # fmt: skip
    found: dict[str, Any] = {"features": features, "origin": origin[chosen].tolist()}
    if len(chosen) < d:
        found["note"] = f"{len(chosen)} of {count(d)} features can be shown, {_reason(y)}."
    if d == 2 and not is_known:
        features["grid"] = _grid(X, kernel, mean, np.eye(2), about)
        found |= {} if features["grid"] else {"note": TOO_MANY}
    if d > 2:
        found["principal"] = _principal(X, kernel, mean, origin, is_known=is_known)
        if not is_known:
            found["note"] = SLICE_ONLY if found["principal"]["grid"] else TOO_MANY
    return found


TOO_MANY = "A browser does not know this kernel, and its values on a grid of so many points are too many: no boundary is drawn."
SLICE_ONLY = "A browser does not know this kernel: its values are held for the plane of the principal components alone."


def _chosen(X: np.ndarray, y: np.ndarray, most: int) -> list[int]:
    """Return all features in their order, or those that go most with y; those that vary most, if it is the same for all."""
    if X.shape[1] <= most:
        return list(range(X.shape[1]))
    deviation, goes_with_y = X.std(axis=0), np.abs((y - y.mean()) @ (X - X.mean(axis=0)))
    # Of two classes that is, but for one factor, how far apart their means are.
    worth = goes_with_y / np.where(deviation > 0, deviation, np.inf) if np.ptp(y) > 0 else deviation
    return np.argsort(-worth, kind="stable")[:most].tolist()


def _reason(y: np.ndarray) -> str:
    """Return in words how ``_chosen`` chooses."""
    values = np.unique(y).size
    return (
        "those that vary most",
        "those whose means differ most between the classes",
        "those that go most with the target",
    )[min(values, 3) - 1]


def principal_axes(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two orthonormal directions (2, d) of largest variance, and their shares of it; the largest entry is positive."""
    about = X - X.mean(axis=0)
    total = float(np.square(about).sum())
    if min(X.shape) > MANY:
        _, singular, axes = svds(about, k=2, v0=np.ones(min(X.shape)))
        values, axes = singular[::-1] ** 2, axes[::-1]
    else:
        _, singular, axes = np.linalg.svd(about, full_matrices=X.shape[0] < 2)
        values, axes = singular[:2] ** 2, axes[:2]
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * signs[:, None], values / total if total > 0 else np.zeros(len(axes))


def _principal(
    X: np.ndarray, kernel: Kernel, mean: np.ndarray, origin: np.ndarray, *, is_known: bool
) -> dict[str, Any]:
    axes, shares = principal_axes(X)
    about = X - mean
    place = about @ axes.T
    rest = np.square(about - place @ axes).sum(axis=1)
    names = [f"component {k + 1} ({100 * share:.0f} % of the variance)" for k, share in enumerate(shares)]
    ox, oy = (axes @ (mean - origin)).tolist()
    grid = None if is_known else _grid(X, kernel, mean, axes, place)
    plane = {
        "px": array(place[:, 0]), "py": array(place[:, 1]), "rest": array(rest), "ox": ox, "oy": oy, "xName": names[0],
        "yName": names[1], "grid": grid,
    }  # fmt: skip
    return plane | ({"xRange": grid["xRange"], "yRange": grid["yRange"]} if grid else {})


def _grid(
    X: np.ndarray, kernel: Kernel, mean: np.ndarray, axes: np.ndarray, place: np.ndarray
) -> dict[str, Any] | None:
    """Return kernel values of all points on a grid in a plane, from the top; None where that would be too many."""
    side = min(int(np.sqrt(GRID_VALUES / X.shape[0])), LARGEST_SIDE)
    if side < LEAST_SIDE:
        return None
    low, high = place.min(axis=0), place.max(axis=0)
    pad = np.where(high > low, PAD * (high - low), 1.0)
    low, high = low - pad, high + pad
    s, t = np.meshgrid(np.linspace(low[0], high[0], side), np.linspace(high[1], low[1], side))
    corners = mean + s.reshape(-1, 1) * axes[0] + t.reshape(-1, 1) * axes[1]
    return {
        "values": array(kernel(X, corners)), "columns": side, "rows": side, "a": 0, "b": 1,
        "xRange": [low[0], high[0]], "yRange": [low[1], high[1]],
    }  # fmt: skip


def _ordinate(gram: Gram, points: np.ndarray | None, names: Any) -> dict[str, Any]:
    """Return a coordinate to tell points apart by beside their decision values: the first principal component, or the row."""
    if points is None:
        return {"values": array(np.arange(gram.n)), "name": "number of the point"}
    if points.shape[1] == 1:
        return {"values": array(points[:, 0]), "name": _names(names, 1)[0]}
    axes, _ = principal_axes(points)
    return {"values": array((points - points.mean(axis=0)) @ axes[0]), "name": "first principal component"}
