"""One kernel matrix for all folds of a candidate: each takes the part of its rows.

Folds differ in their rows and not in kernel values, unless the kernel follows the training rows, as gamma="scale" does.  So the
matrix of all rows is computed once, and copying a part of it takes a third of the time that computing it would.  Every process
computes its own, whose digits are the same: to send it would take longer.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.gram import Gram
from zerogap.kernels import Kernel
from zerogap.limits import Exceeded

# Bytes of a matrix that is kept beside those of the folds.  Of a larger one a copy waits for memory about as long as computing
# takes; not so if values are computed by a user's own code.
MOST, MOST_OF_OTHERS = 40_000_000, 200_000_000
IDLE = 10.0  # seconds after which another process lets go of it


class FoldMatrix:
    """The kernel values of a fold: those of its training rows, and of these against what is held out."""

    def __init__(self, search: str, X: Any, weight: np.ndarray | None, train: np.ndarray, test: np.ndarray):
        every = np.arange(X.shape[0])
        self._search, self._X, self._weight = search, X, weight
        self._train, self._test = every[train], every[test]  # they may be told by True and False
        self.held_out: np.ndarray | None = None  # (training points, held-out points), once there is a matrix

    def part(self, asked: Kernel, own: Kernel, points: np.ndarray, *, has_bias: bool) -> Gram | None:
        """Return the matrix of some training rows with the fold's own kernel; None if all rows would have another.

        ``asked`` is the kernel before the training rows had any part in it.
        """
        n = self._X.shape[0]
        if own.is_precomputed or 8 * n * n > (MOST if own.can_share else MOST_OF_OTHERS):
            return None
        # A row without weight, or a held-out one, may be what no kernel value can be computed of: the fold will tell.
        with suppress(ValueError, Exceeded):
            whole = asked.resolved(self._X, self._weight)
            whole = whole.centred(self._X) if has_bias else whole
            if whole != own:
                return None
            gram, rows = _last.matrix(self._search, self._X, own), self._train[points]
            self.held_out = gram.values_between(rows, self._test)
            return gram.subset(rows)
        return None


class _Last:
    """The matrix that was last used in this process: tasks of a candidate follow each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._search, self._gram = "", None  # type: str, Gram | None
        self._timer: threading.Timer | None = None

    def matrix(self, search: str, X: Any, kernel: Kernel) -> Gram:
        """Return the matrix of all rows of a search; while a thread computes it others wait."""
        with self._lock:
            if self._gram is None or search != self._search or self._gram.kernel != kernel:
                self._gram = None  # before there is another
                gram = Gram(_own(X), kernel, cache_size=MOST_OF_OTHERS / 1e6)
                gram.full()
                self._search, self._gram = search, gram
            return self._gram

    def forget(self, search: str | None = None) -> None:
        """Let go of it, or of that of one search only."""
        with self._lock:
            if search is None or search == self._search:
                self._gram = None

    @contextmanager
    def kept_for_a_while(self) -> Iterator[None]:
        """Let go of it some time after a task, unless there is another: no process knows which task is its last."""
        self._stop_timer()
        try:
            yield
        finally:
            self._stop_timer()
            with self._lock:
                if self._gram is not None:
                    self._timer = threading.Timer(IDLE, self.forget)
                    self._timer.daemon = True
                    self._timer.start()

    def _stop_timer(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = None


def _own(X: Any) -> Any:
    """Return points in memory of our own: the end of a search waits for files of joblib's that a process still reads."""
    parts = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return X.copy() if any(_is_mapped(part) for part in parts) else X


def _is_mapped(array: Any) -> bool:
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None


_last = _Last()
forget, kept_for_a_while = _last.forget, _last.kept_for_a_while

if hasattr(os, "register_at_fork"):  # a lock may be held for ever there
    os.register_at_fork(after_in_child=_last.__init__)  # type: ignore[misc]
