"""What the compiled loops of the solvers share: the problem as arrays, the reasons to return, and kernel rows on demand.

A compiled loop cannot compute kernel rows, and sees neither Ctrl-C nor a time limit.  So it returns to its solver with a
reason, such as a row that is missing.  The solver calls it again, and it goes on where it stopped.
"""

import numpy as np

from zerogap import limits
from zerogap.compiled import inline
from zerogap.gram import Gram

# Why a compiled loop returned: it has made all its steps; the violation is at its target; a kernel row is missing; the dual
# objective is unbounded; nothing is left to do; it is time to ask whether the limit is over.
SPENT, QUIET, NEEDS_ROW, UNBOUNDED, FINISHED, PAUSED = range(6)

# A coefficient this large is on its way to infinity; its square, times a kernel value, is still finite.
LARGEST = 1e140

# Kernel values computed between two questions whether the limit is over: some hundredths of a second.
VALUES_PER_QUESTION = 4_000_000


def pairs_per_question(n: int) -> int:
    """Return how many pairs a compiled loop moves before it comes back to ask whether it may go on."""
    return max(1, limits.WORK_PER_QUESTION // n)


def rows_per_question(gram: Gram) -> int:
    """Return how many kernel rows are computed before it is asked again: not so many that they drive each other out."""
    count = VALUES_PER_QUESTION // gram.n
    return max(1, count if gram.holds_all else min(count, gram.capacity // 4))


def fetch(gram: Gram, rows: np.ndarray) -> bool:
    """Bring rows into memory, some at a time; return False if the limit is over before all of them are there."""
    if gram.has_rows(rows).all():
        if not gram.holds_all:
            gram.fetch(rows)  # marks them as used, so that others make room
        return True
    at_once = rows_per_question(gram)
    try:
        for start in range(0, rows.size, at_once):
            limits.check()
            gram.fetch(rows[start : start + at_once])
    except limits.Exceeded:
        return False
    return True


@inline
def land(start, move, end):
    """Return start + move, or the end itself if only rounding keeps them apart: a bound is met exactly or not at all."""
    place = start + move
    return end if abs(end - place) <= 4e-16 * (abs(start) + abs(move)) else place
