"""Rows of the kernel matrix of points that are bits, kept as counts: in how many features points differ, a byte each.

An eighth of the memory of the values themselves, and to look a value up takes a third of the time of counting bits anew.
"""

from typing import Any

import numpy as np

from zerogap import limits, threads
from zerogap.kernels import binary

AT_ONCE = 512  # rows that are counted between two questions whether the limit is over
STRETCH = 2 * binary.CHUNK  # of a sum, that a thread adds up at a time
SHARED = 1_000_000  # values that are looked up: fewer take one thread less time than to wake another


class CountedRows:
    """Some rows, those used longest ago first to go."""

    def __init__(self, columns: Any, prepared: Any, capacity: int):
        n = columns.points.size
        self._columns, self._prepared = columns, prepared
        self._rows = np.empty((capacity, n), dtype=np.uint8)  # memory not yet written to costs nothing
        self._slot, self._point_in = np.full(n, -1), np.full(capacity, -1)
        self._stamp, self._clock = np.zeros(capacity, dtype=np.int64), 0

    @property
    def bytes_used(self) -> int:
        """Bytes of the rows that are there."""
        return int(np.count_nonzero(self._point_in >= 0)) * self._rows.shape[1]

    def has(self, points: np.ndarray) -> np.ndarray:
        """Return, for each of some points, whether its row is there."""
        return self._slot[points] >= 0

    def hold(self, wanted: np.ndarray) -> int:
        """Count the rows of some points as far as there is room; return how many kernel values they stand for.

        If a limit comes in between, the rows that have come are kept.
        """
        self._clock += 1
        there = self._slot[wanted]
        self._stamp[there[there >= 0]] = self._clock
        missing = wanted[there < 0]
        places = np.argsort(self._stamp, kind="stable")[: missing.size]
        places = places[self._stamp[places] < self._clock]
        missing = missing[: places.size]
        for start in range(0, missing.size, AT_ONCE):
            limits.check()
            points, at = missing[start : start + AT_ONCE], places[start : start + AT_ONCE]
            evicted = self._point_in[at]
            self._slot[evicted[evicted >= 0]] = -1
            self._point_in[at] = -1
            self._columns.write_counts(self._prepared[points], self._rows, at)
            self._slot[points], self._point_in[at], self._stamp[at] = at, points, self._clock
        return int(missing.size) * self._rows.shape[1]

    def product(self, points: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return the product of rows that are there with coefficients."""
        slots, n = self._slot[points], self._rows.shape[1]
        self._clock += 1
        self._stamp[slots] = self._clock
        product, table = np.zeros(n), self._columns.table
        if slots.size * n < SHARED:
            binary.add_counted(self._rows, slots, change, table, 0, n, product)
            return product

        def add(begin: int) -> None:
            binary.add_counted(self._rows, slots, change, table, begin, min(begin + STRETCH, n), product)

        threads.share(add, range(0, n, STRETCH))
        return product
