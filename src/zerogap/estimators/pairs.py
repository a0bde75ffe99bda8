"""Pairs of classes as LIBSVM, and so scikit-learn, lays them out: their order, their signs, and where coefficients stand.

Classes are numbers from 0 to k - 1, and the pairs are (0, 1), (0, 2), ..., (k - 2, k - 1).  A support vector of class c has a
coefficient for each of the other classes: row b - 1 holds that of a against b for the vectors of a, row a for those of b.
"""

from itertools import combinations

import numpy as np


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of classes, in order."""
    return list(combinations(range(n_classes), 2))


def signs(codes: np.ndarray, a: int, b: int, n_classes: int) -> np.ndarray:
    """Return the signs of points of two classes: the first is positive, but the second if there are only two."""
    return np.where(codes == (b if n_classes == 2 else a), 1.0, -1.0)


def coefficients(of_class: np.ndarray, owner: np.ndarray, a: int, b: int) -> np.ndarray:
    """Return the coefficients of a against b from those laid out (k - 1, s); ``owner`` (s,) is the class of each vector."""
    return np.where(owner == a, of_class[b - 1], np.where(owner == b, of_class[a], 0.0))


def laid_out(of_pair: np.ndarray, n_support: np.ndarray) -> np.ndarray:
    """Return coefficients (k - 1, s) from those of every pair, (pairs, s), of vectors that stand class after class."""
    edges = np.cumsum([0, *n_support])
    found = np.zeros((n_support.size - 1, edges[-1]))
    for own, (a, b) in zip(of_pair, pairs_of(n_support.size), strict=True):
        of_a, of_b = slice(edges[a], edges[a + 1]), slice(edges[b], edges[b + 1])
        found[b - 1, of_a], found[a, of_b] = own[of_a], own[of_b]
    return found
