"""Folds of a cross-validation on the command line: shuffled, of each class its share, each scaled by its own training rows."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.cli.data import Data, label_text
from zerogap.tables import TableError
from zerogap.wording import count, number


def splitter(number_of: int, seed: int, *, is_regression: bool = False) -> Any:
    """Return what splits rows into folds: files are often sorted, so these are shuffled."""
    from sklearn.model_selection import KFold, StratifiedKFold

    return (KFold if is_regression else StratifiedKFold)(number_of, shuffle=True, random_state=seed)


def scaler(X: Any, is_raw: bool) -> Any:
    """Return what is fitted to the training rows of each fold; a sparse matrix is not shifted."""
    from sklearn.preprocessing import StandardScaler

    return None if is_raw else StandardScaler(with_mean=not sp.issparse(X))


def check_rows(data: Data, number_of: int) -> None:
    """Refuse more folds than there are rows for."""
    advice = f"too few for {number_of} folds; lower --cv"
    if data.preparation.is_regression:
        if data.y.size < number_of:
            raise TableError(f"{data.name} has {count(data.y.size, 'row')}, {advice}.")
        return
    classes, counts = np.unique(data.y, return_counts=True)
    if counts.min() < number_of:
        rows, label = count(int(counts.min()), "row"), label_text(classes[counts.argmin()])
        if counts.min() == 1:  # no number of folds has it among both, training and test rows
            advice = f"too few for {number_of} folds, and for any; find more of them"
        raise TableError(f"{data.name}: {data.target} has {rows} of class {label}, {advice}, or leave the class out.")


def in_words(best: list[tuple[float, float]], most: int = 3) -> str:
    """Return the intervals of C that have a score, the widest of them in their order."""
    kept = sorted(sorted(best, key=lambda ends: -ends[1] / (ends[0] or 1.0))[:most])
    words = [number(low) if low == high else f"{number(low)} to {number(high)}" for low, high in kept]
    more = f" and {count(len(best) - most, 'other')}" if len(best) > most else ""
    return (", ".join(words) + more) or "-"


def choice(found: dict[str, Any] | None) -> tuple[float, str] | None:
    """Return the C that a cross-validation has chosen, and how; None without one."""
    return None if found is None else (found["C"], f"chosen by {found['folds']} folds")
