"""Where very many points tie: the set that enters the elbow is itself the solution of a small quadratic program.

Symbols: as in ``engine``; T, the tied points, each at a bound and on its margin; I, those of the elbow strictly inside their
box; z = -db/dlam, how b changes as lam falls; H, what z_T does to F_T when I answers so that its own margins stay.
The path goes on along the z that minimises 1/2 z'H z - t'z over those that lead into the box: the right derivative of the
solution.  Without I the bias answers alone, and z sums to what the sum of b falls by: to zero where that stays.
"""

import numpy as np

from zerogap import limits
from zerogap.active_set import ActiveSet
from zerogap.gram import Gram
from zerogap.path.threaded import call_in_thread
from zerogap.path.tolerances import COINCIDENT, LEVEL
from zerogap.problem import DualProblem


def entering_points(
    K: np.ndarray, m1: np.ndarray, inner: np.ndarray, tied: np.ndarray, is_rising: np.ndarray, total1: float = 0.0
) -> np.ndarray | None:
    """Return those of the tied points that belong into the elbow as lam falls; ``is_rising`` tells whose b can only rise.

    None if there is no derivative: over eps, points at one place with different targets go to their caps at once.
    """
    H, t, z = K[np.ix_(tied, tied)], -m1[tied], np.zeros(tied.size)
    if inner.size:
        m = inner.size + 1
        A, B, right = np.zeros((m, m)), np.ones((m, tied.size)), np.zeros(m)
        A[0, 1:], A[1:, 0], A[1:, 1:] = 1.0, 1.0, K[np.ix_(inner, inner)]
        B[1:], right[0], right[1:] = K[np.ix_(inner, tied)], total1, m1[inner]
        answer = call_in_thread(m, np.linalg.solve, A, np.column_stack([B, right]))
        H, t = H - B.T @ answer[:, :-1], B.T @ answer[:, -1] + t
    # In these coordinates H is a matrix of inner products in spite of rounding.
    values, vectors = call_in_thread(tied.size, np.linalg.eigh, 0.5 * (H + H.T))
    problem = DualProblem(
        Gram(vectors * np.sqrt(np.maximum(values, 0.0)), "linear"),
        t,
        lower=np.where(is_rising, 0.0, -np.inf),
        upper=np.where(is_rising, np.inf, 0.0),
        ridge=np.zeros(tied.size),
        total=None if inner.size else -total1,
    )
    if not inner.size and total1 != 0.0:
        z[np.argmin(is_rising)] = -total1
    active = ActiveSet(problem, z, floor=COINCIDENT * float(np.diagonal(K).max()))
    active.optimise(problem, tolerance=LEVEL)
    limits.check()
    if active.is_unbounded:
        return None
    if inner.size or active.free.size:
        return tied[np.sort(active.free)]
    # Only the bias moves, within an interval: the point that ends it enters the elbow.
    return tied[[int(np.argmax(np.where(is_rising, t, -np.inf)))]]
