"""Memory for kernel matrices, which the next one uses again.

The system clears every page that it hands out, which takes longer than the kernel values that are written there.  So memory
that nobody reads any more is kept for the next matrix, and the system is told that it may take the pages back whenever it needs
them (``MADV_FREE``).  Where it cannot be told, nothing is kept.
"""

import mmap
import weakref
from contextlib import suppress
from typing import Any

import numpy as np

LEAST = 2**21  # bytes: smaller arrays NumPy has at hand
MOST = 2**30  # bytes that are kept in all
SPARE = 4  # times the memory needed, that a piece may have

_CAN_KEEP = all(hasattr(mmap, name) for name in ("MADV_FREE", "MAP_PRIVATE", "MAP_ANONYMOUS"))
# In the order they came back.  Pieces come one by one, and go so, which no lock has to guard.
_kept: list[mmap.mmap] = []


def matrix(rows: int, columns: int, dtype: Any = np.float64) -> np.ndarray:
    """Return a matrix with anything in it."""
    size = np.dtype(dtype).itemsize * rows * columns
    if not _CAN_KEEP or not LEAST <= size <= MOST:
        return np.empty((rows, columns), dtype)
    piece = _taken(size) or _new(size)
    if piece is None:
        return np.empty((rows, columns), dtype)
    lent = np.frombuffer(piece, dtype=np.uint8)  # every view of it keeps it
    weakref.finalize(lent, _keep, piece).atexit = False
    return lent[:size].view(dtype).reshape(rows, columns)


def _taken(size: int) -> mmap.mmap | None:
    """Return the smallest piece that was kept and is large enough, unless it is far too large.

    Else large ones would be taken for little, and the next large matrix would need another.
    """
    while fitting := [piece for piece in _kept if size <= len(piece) <= SPARE * size]:
        found = min(reversed(fitting), key=len)  # of equal ones that which came back last
        with suppress(ValueError):  # another thread has taken it meanwhile
            _kept.remove(found)
            return found
    return None


def _new(size: int) -> mmap.mmap | None:
    """Return a new piece, and let go of that which was used longest ago: matrices grow, and small pieces would gather."""
    with suppress(IndexError):
        _kept.pop(0)
    with suppress(OSError, ValueError):
        piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with suppress(OSError, AttributeError):  # no large pages
            piece.madvise(mmap.MADV_HUGEPAGE)
        return piece
    return None


def _keep(piece: mmap.mmap) -> None:
    with suppress(OSError, IndexError):
        piece.madvise(mmap.MADV_FREE)
        _kept.append(piece)
        while sum(map(len, _kept)) > MOST:
            _kept.pop(0)
