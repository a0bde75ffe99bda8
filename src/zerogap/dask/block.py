"""What a worker keeps: the rows of a partition, checked, and what it has computed of them."""

import hashlib
import math
import threading
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap import duplicates, validation

STEP = np.uint64(0x9E3779B97F4A7C15)  # odd: it tells rows apart in the fingerprint


class Block:
    """The rows of one partition, a result that Dask keeps, moves and computes again.

    ``states`` are what rounds have computed of them, a residual above all.  They are no part of the value: a block that is
    moved to another worker, or read again after a fault, comes without, and they are computed from coefficients.
    """

    def __init__(self, number: int, X: Any, y: np.ndarray, weight: np.ndarray, names: list[str] | None = None):
        self.number = number  # among all partitions
        self.names = names  # of the features, if a dataframe has them
        self.X = X  # (n, d) float64, an array or CSR
        self.y = y  # (n,) labels or targets
        self.weight = weight  # (n,)
        self.states: dict[str, Any] = {}
        self.lock = threading.Lock()  # a worker of several threads may be asked the same twice: a change is made once

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("states", "lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, states={}, lock=threading.Lock())

    def __sizeof__(self) -> int:
        """Bytes, by which Dask decides what to move and what to spill."""
        states = sum(state.nbytes for state in list(self.states.values()))
        return nbytes(self.X) + nbytes(self.y) + nbytes(self.weight) + states


class Summary(NamedTuple):
    """What the coordinator has to know of a partition before the first round."""

    n: int
    d: int
    is_sparse: bool
    names: list[str] | None  # of the features, if a dataframe has them
    labels: np.ndarray  # of classes that are there; none in a regression
    weights: np.ndarray  # of each of them, summed; of all rows in a regression
    sums: np.ndarray  # (d,) weighted features
    plain: np.ndarray  # (d,) features summed without weights


def nbytes(value: Any) -> int:
    """Return the bytes of arrays, also within tuples and lists; all else counts as a number."""
    if sp.issparse(value):
        return int(value.data.nbytes + value.indices.nbytes + value.indptr.nbytes)
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, tuple | list):
        return sum(map(nbytes, value))
    return 8


def load(X: Any, y: Any, weight: Any, number: int, is_classifier: bool) -> Block:
    """Return the rows of a partition, checked as ``fit`` of one machine checks all of them; messages name the partition."""
    try:
        return _loaded(X, y, weight, number, is_classifier)
    except (ValueError, TypeError) as error:
        kind = (
            TypeError if isinstance(error, TypeError) else ValueError
        )  # those made from them may take other arguments
        raise kind(f"Partition {number}: {error}") from error


def _loaded(X: Any, y: Any, weight: Any, number: int, is_classifier: bool) -> Block:
    names = list(X.columns) if hasattr(X, "columns") else None
    if names is not None and not all(isinstance(name, str) for name in names):
        names = None  # scikit-learn knows features by text alone
    y = _column("y", y)
    n = X.shape[0]
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features; got shape {X.shape}.")
    if y.shape[0] != n:
        raise ValueError(
            f"X has {n} rows and y has {y.shape[0]}. Give both the same partitions: the same chunks of rows, or columns of one "
            "dataframe."
        )
    points = validation.check_points(X) if n else np.empty((0, X.shape[1]))
    checked = np.ones(n) if weight is None else _weights(_column("sample_weight", weight), n)
    y = _labels(y) if is_classifier else validation.check_target(y, n)
    return Block(number, points, y, checked, names)


def _column(name: str, values: Any) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must be one column; got shape {values.shape}.")
    return values


def _labels(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"y holds NaN or infinity at row {np.flatnonzero(~np.isfinite(y))[0]}. Drop those rows.")
    missing = [row for row, label in enumerate(y.tolist()) if _is_missing(label)] if y.dtype.kind == "O" else []
    if missing:
        raise ValueError(
            f"y has no label at row {missing[0]}; got {y[missing[0]]!r}. Drop those rows, or give them a label."
        )
    if y.size:
        validation.check_labels(y)
    return y


def _is_missing(label: Any) -> bool:
    """Whether this stands for no label: None, NaN, or what pandas has for it, which may not be installed."""
    return (
        label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
    )


def _weights(weight: np.ndarray, n: int) -> np.ndarray:
    """Return weights as they are checked everywhere, but all of a partition may be zero."""
    if weight.shape == (n,) and not weight.any():
        return np.zeros(n)
    return validation.check_weights(weight, n)


def summary(block: Block, is_classifier: bool) -> Summary:
    """Return what the coordinator has to know of it."""
    X, weight = block.X, block.weight
    labels, codes = block.y[:0], np.zeros(block.y.size, dtype=np.int64)
    if is_classifier:
        labels, codes = np.unique(block.y, return_inverse=True)
    weights = np.array([math.fsum(weight[codes == k]) for k in range(labels.size if is_classifier else 1)])
    with np.errstate(over="ignore", invalid="ignore"):  # sums beyond float64 are refused with gamma
        sums, plain = (np.asarray(X.T @ w).ravel() for w in (weight, np.ones(weight.size)))
    n, d = X.shape
    return Summary(n, d, sp.issparse(X), block.names, labels, weights, sums, plain)


def squares(block: Block, mean: float, centre: np.ndarray) -> tuple[float, float]:
    """Return weighted squares of all entries about their mean, and squares of the rows about a centre, both summed."""
    X, weight = block.X, block.weight
    if sp.issparse(X):
        entries = np.repeat(weight, np.diff(X.indptr))
        missing = float(weight.sum()) * X.shape[1] - float(entries.sum())
        return float(entries @ (X.data - mean) ** 2) + missing * mean**2, math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        entries = np.einsum("ij,ij->i", X - mean, X - mean)
        about = X - centre
        return float(weight @ entries), float(np.einsum("ij,ij->", about, about))


def fingerprint(block: Block, offset: int) -> int:
    """Return 64 bits that depend on every row, its label, its weight and its place among all, however these are parted."""
    n = block.y.size
    if not n:
        return 0
    target = block.y if block.y.dtype.kind in "fiub" else np.array([hash_of(label) for label in block.y.tolist()])
    with np.errstate(over="ignore"):
        keys = duplicates._hash(block.X, target.astype(np.float64), 0)
        keys = keys * np.uint64(3) + duplicates._hash(block.weight[:, None], np.zeros(n), 1)
        places = np.arange(offset, offset + n, dtype=np.uint64) * STEP
        return int(np.bitwise_xor.reduce((keys ^ (keys >> np.uint64(29))) * (places | np.uint64(1))))


def hash_of(label: Any) -> float:
    """Return a number for a label that is none, the same in every process."""
    return float(int.from_bytes(hashlib.blake2b(str(label).encode(), digest_size=6).digest(), "little"))
