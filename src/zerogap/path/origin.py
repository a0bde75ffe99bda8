"""The point at the origin, which makes a free bias zero: into what an engine works on, and out of what it returns.

Symbols: as in ``engine``; ``family`` says why.  It is the last of the points.
"""

import numpy as np

from zerogap.gram import Gram, PreciseProduct
from zerogap.path.engine import Segment


class WithOrigin(Gram):
    """A kernel matrix with a last row and column of zeros, which still knows the data for sums in twice the precision."""

    def __init__(self, gram: Gram):
        K = np.zeros((gram.n + 1, gram.n + 1))
        K[:-1, :-1] = gram.full()
        super().__init__(K, "precomputed")
        self._of_data = gram

    def precise_work(self, rows: int, columns: int) -> int:
        """Return about how many coordinates are read to compute kernel values in twice the precision."""
        return self._of_data.precise_work(rows, columns)

    def precise_dot(self, beta: np.ndarray, rows: np.ndarray, *, from_data: bool = True) -> PreciseProduct:
        """Return K beta at some rows in twice the precision; that at the origin is zero."""
        own = rows < self._of_data.n
        product = self._of_data.precise_dot(beta[:-1], rows[own], from_data=from_data)
        at_rows = np.zeros((3, rows.size))
        at_rows[:, own] = product
        return PreciseProduct(*at_rows)


def with_coefficient(b: np.ndarray) -> np.ndarray:
    """Return coefficients with that of the origin, so that all sum to zero."""
    return np.append(b, -b.sum())


def without(segment: Segment, origin: int) -> Segment:
    """Return a segment without the origin, and with a bias of zero."""
    E, u, v = segment.points, segment.u, segment.v
    if E.size and E[0] == origin:  # as a rule it was the first in the elbow
        E, u, v = E[1:], u[1:], v[1:]
    else:
        own = np.flatnonzero(E - origin)
        E, u, v = E[own], u[own], v[own]
    return Segment(E, u, v, 0.0, 0.0, segment.anchor)
