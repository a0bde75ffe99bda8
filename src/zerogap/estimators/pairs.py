"""Pairs of classes as LIBSVM, and so scikit-learn, lays them out: their order, their signs, and where coefficients stand.

Classes are numbers from 0 to k - 1, and the pairs are (0, 1), (0, 2), ..., (k - 2, k - 1).  A support vector of class c has a
coefficient for each of the other classes: row b - 1 holds that of a against b for the vectors of a, row a for those of b.
"""

import math
from collections.abc import Callable
from contextvars import copy_context
from itertools import combinations
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs


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


def each(work: Callable[[int], Any], count: int, n_jobs: int | None) -> list[Any]:
    """Return ``work(k)`` for k up to a count, on ``n_jobs`` threads; limits hold in all of them."""
    if count <= 1 or effective_n_jobs(n_jobs) == 1:
        return [work(k) for k in range(count)]
    # All of them now: joblib asks for later ones in threads of its own, which know of no limit.
    tasks = [delayed(copy_context().run)(work, k) for k in range(count)]
    return Parallel(n_jobs=n_jobs, prefer="threads", require="sharedmem")(tasks)


def check_present(name: str, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> None:
    """Refuse labels of which fewer than two classes, or not all, have weight; ``name`` is the estimator's."""
    present = np.bincount(codes, weights=weight, minlength=classes.size) > 0
    if present.sum() < 2:
        raise ValueError(
            f"{name} needs at least two classes to separate; y has {classes.size} class(es), {present.sum()} of them "
            "with positive weight. Add points of another class, or give them weight."
        )
    if not present.all():
        raise ValueError(
            f"Every point of class {classes[~present][0]} has weight zero. Drop those rows, or give them weight."
        )


def class_factors(class_weight: Any, classes: np.ndarray, codes: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return what multiplies C for each class; "balanced" counts a point of weight two twice."""
    if class_weight is None:
        return np.ones(classes.size)
    if isinstance(class_weight, str) and class_weight == "balanced":
        sums = np.array([math.fsum(weight[codes == k]) for k in range(classes.size)])
        return math.fsum(weight) / (classes.size * sums)
    from sklearn.utils.class_weight import compute_class_weight  # a second to load, which --help can do without

    factors = compute_class_weight(class_weight, classes=classes, y=classes[codes])
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ValueError(f"class_weight must be above 0 and finite for every class; got {factors.tolist()}.")
    return factors


def chosen(decisions: np.ndarray, n_classes: int, *, break_ties: bool = False) -> np.ndarray:
    """Return the number of the class that most pairs vote for, or with ``break_ties`` that of the largest value.

    ``decisions`` (n, pairs) are positive for the first class of a pair, with two classes for the second.
    """
    if n_classes == 2:
        return (decisions.ravel() > 0).astype(int)
    if break_ties:
        return by_class(decisions, n_classes).argmax(axis=1)
    votes = np.zeros((len(decisions), n_classes), dtype=int)
    for p, (a, b) in enumerate(pairs_of(n_classes)):
        votes[:, a] += decisions[:, p] > 0
        votes[:, b] += decisions[:, p] <= 0
    return votes.argmax(axis=1)


def by_class(decisions: np.ndarray, n_classes: int) -> np.ndarray:
    """Return a column for each class from one for each pair of them; two classes have one column either way."""
    if n_classes == 2:
        return decisions
    from sklearn.utils.multiclass import _ovr_decision_function

    return _ovr_decision_function(decisions < 0, -decisions, n_classes)


def shaped(decisions: np.ndarray, n_classes: int, shape: str) -> np.ndarray:
    """Return the decision values of pairs of classes in the shape "ovr" or "ovo"."""
    if n_classes == 2:
        return decisions.ravel()
    return decisions if shape == "ovo" else by_class(decisions, n_classes)


def check_ties(*, break_ties: bool, shape: str) -> None:
    """Refuse to break ties by columns that no class has."""
    if break_ties and shape == "ovo":
        raise ValueError(
            "break_ties must be False when decision_function_shape is 'ovo': with a column for each pair no class has "
            'the largest value. Use decision_function_shape="ovr".'
        )
