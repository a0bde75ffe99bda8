"""What the coordinator knows of single points: the support vectors, and the working set."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from zerogap.dask.partition import Coefficients


class Table(NamedTuple):
    """Some of all points, in the order of their numbers among all."""

    number: np.ndarray  # (m,) among all rows of the data
    owner: np.ndarray  # (m,) partition
    place: np.ndarray  # (m,) row in the partition
    points: Any  # (m, d)
    target: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ridge: np.ndarray
    beta: np.ndarray  # coefficients

    @classmethod
    def empty(cls, d: int, *, is_sparse: bool) -> "Table":
        """Return that of no points."""
        nothing, none = np.empty(0), np.empty(0, dtype=np.int64)
        return cls(none, none, none, sp.csr_matrix((0, d)) if is_sparse else np.empty((0, d)), *(nothing,) * 5)

    @property
    def size(self) -> int:
        """Number of points."""
        return int(self.number.size)

    @property
    def is_free(self) -> np.ndarray:
        """Whether each coefficient is strictly inside its box, and not zero."""
        return (self.lower < self.beta) & (self.beta < self.upper) & (self.beta != 0)

    def has(self, numbers: np.ndarray) -> np.ndarray:
        """Return whether points are in the table."""
        return np.isin(numbers, self.number)

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return where points are that are in it."""
        return np.searchsorted(self.number, numbers)

    def taken(self, rows: np.ndarray) -> "Table":
        """Return some of its rows, in order."""
        return Table(*(part[rows] for part in self))

    def joined(self, *others: "Table") -> "Table":
        """Return the points of all, which have none in common."""
        tables = [self, *(other for other in others if other.size)]
        if len(tables) == 1:
            return self
        order = np.argsort(np.concatenate([table.number for table in tables]), kind="stable")
        return Table(*(_stacked(parts)[order] for parts in zip(*tables, strict=True)))

    def coefficients(self, values: np.ndarray | None = None) -> Coefficients:
        """Return what partitions are sent: the points with a coefficient, or those with a value that is not zero."""
        values = self.beta if values is None else values
        some = np.flatnonzero(values)
        return Coefficients(self.points[some], values[some], self.owner[some], self.place[some], self.beta[some])


def _stacked(parts: tuple[Any, ...]) -> Any:
    is_sparse = any(sp.issparse(part) for part in parts)
    return sp.vstack(parts, format="csr") if is_sparse else np.concatenate(parts)
