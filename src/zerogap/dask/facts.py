"""What is known of all rows before the first round, from a few numbers of every partition."""

import math
from typing import NamedTuple

import numpy as np

from zerogap.dask import block
from zerogap.dask.block import Summary
from zerogap.dask.cluster import Cluster
from zerogap.kernels import Kernel
from zerogap.kernels.products import centre_about


class Facts(NamedTuple):
    """The shape of the data, its labels, and what the parameters of kernels depend on."""

    edges: np.ndarray  # (partitions + 1,) number of the first row of each among all
    d: int
    is_sparse: bool
    names: list[str] | None  # of the features
    labels: np.ndarray
    weights: np.ndarray  # of each label, summed; of all rows in a regression
    mean: float  # of all entries of X, by weight
    variance: float
    centre: np.ndarray  # (d,) mean of the rows, without weights
    spread: float  # root mean square of the distance from it; infinite if points are sparse

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.edges[-1])

    def resolved(self, kernel: Kernel, *, has_bias: bool) -> Kernel:
        """Return the kernel with its parameters as numbers, as ``fit`` of one machine would find them.

        All that kernels of ours ask of the data is the variance of its entries: two rows that have it stand for all.
        """
        is_ours = type(kernel).__module__.startswith("zerogap.") or type(kernel).resolved is Kernel.resolved
        if not is_ours:
            raise ValueError(
                f"The {kernel.name} kernel computes its parameters from all points, which are not in one place. Give them as "
                "numbers."
            )
        deviation = np.sqrt(self.variance)
        rows = np.full((2, self.d), self.mean) + np.array([[deviation], [-deviation]])
        kernel = kernel.resolved(rows)
        if kernel.is_linear and has_bias and (origin := centre_about(self.centre, self.spread)) is not None:
            return kernel.about(origin)
        return kernel


def gather(cluster: Cluster, *, is_classifier: bool) -> Facts:
    """Ask all partitions what they hold; refuse what does not belong together."""
    summaries: list[Summary] = cluster.map(block.summary, is_classifier)
    filled = {k: one for k, one in enumerate(summaries) if one.n}
    if not filled:
        raise ValueError("All partitions are empty: there is nothing to fit. Look at the filters that made them.")
    _check_features(filled)
    some, edges = list(filled.values()), np.cumsum([0, *(one.n for one in summaries)])
    if is_classifier:
        _check_labels(filled)
    labels, weights = _labels(some) if is_classifier else (some[0].labels, _total(some))
    if not weights.any():
        raise ValueError("sample_weight is zero for every point: nothing is left to fit. Give some a weight.")
    d, total = some[0].d, math.fsum(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = math.fsum(one.sums.sum() for one in some) / (total * d)
        centre = (
            np.array([math.fsum(feature) for feature in zip(*(one.plain for one in some), strict=True)]) / edges[-1]
        )
        squares = cluster.map(block.squares, mean, centre)
    about, around = (math.fsum(squares[k][side] for k in filled) for side in (0, 1))
    is_sparse = any(one.is_sparse for one in some)
    spread = math.sqrt(around / float(edges[-1]))
    return Facts(edges, d, is_sparse, some[0].names, labels, weights, mean, about / (total * d), centre, spread)


def _check_features(filled: dict[int, Summary]) -> None:
    """Refuse partitions that have other features than the first."""
    first, one = next(iter(filled.items()))
    for k, other in filled.items():
        if other.d != one.d:
            raise ValueError(
                f"Partition {first} has {one.d} features and partition {k} has {other.d}. Every row needs the same ones."
            )
        if other.names != one.names:
            raise ValueError(
                f"The columns of partition {k} are {other.names}, and those of partition {first} {one.names}. They must be the "
                "same, in the same order."
            )


def _check_labels(filled: dict[int, Summary]) -> None:
    """Refuse labels that are text in one partition and none in another: joined they would all be text."""
    first, one = next(iter(filled.items()))
    for k, other in filled.items():
        if isinstance(other.labels[0], str) != isinstance(one.labels[0], str):
            raise ValueError(
                f"Labels must be of one type; got {one.labels[0]!r} in partition {first} and {other.labels[0]!r} in partition "
                f"{k}. Convert them, such as y.astype(str)."
            )


def _labels(some: list[Summary]) -> tuple[np.ndarray, np.ndarray]:
    """Return all labels, sorted, and the weight of each."""
    labels = np.unique(np.concatenate([one.labels for one in some]))
    parts: list[list[float]] = [[] for _ in labels]
    for one in some:
        for code, weight in zip(np.searchsorted(labels, one.labels), one.weights, strict=True):
            parts[code].append(float(weight))
    return labels, np.array([math.fsum(of_one) for of_one in parts])


def _total(some: list[Summary]) -> np.ndarray:
    return np.array([math.fsum(float(one.weights.sum()) for one in some)])
