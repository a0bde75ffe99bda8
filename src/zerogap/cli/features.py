"""From the columns of a file to points, in training and again in prediction: order, categories, missing values, scale."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap import tables
from zerogap.wording import count

ERROR, DROP, MEAN = "error", "drop", "mean"
ARRAYS = ("fill", "mean", "scale")
SHOWN = 5  # names in a message


@dataclass(frozen=True)
class Preparation:
    """What was done to the columns of the training file, so that it can be done to another file."""

    columns: list[str]  # of the features, in the order of training
    is_named: bool = False  # by a header; else they are counted
    categories: dict[str, list[str]] = field(default_factory=dict)  # of the columns that are one-hot
    target: str | None = None
    place: int | None = None  # of the target, among all columns of a file without header
    base: int | None = None  # of the indices of an svmlight file: 0 or 1
    is_sparse: bool = False  # whether the points were, in training
    missing: str = ERROR
    is_regression: bool = False
    rows: int = 0  # of the training file
    test_size: float = 0.0  # of them held out
    seed: int = 0
    fill: np.ndarray | None = None  # (d,) in place of missing values
    mean: np.ndarray | None = None  # (d,)
    scale: np.ndarray | None = None  # (d,)

    @property
    def width(self) -> int:
        """Number of features of a point."""
        return sum(len(self.categories.get(name, [""])) for name in self.columns)

    @property
    def feature_names(self) -> list[str]:
        """Names of the features of a point."""
        names: list[str] = []
        for name in self.columns:
            names += [f"{name}={value}" for value in self.categories[name]] if name in self.categories else [name]
        return names

    # Files.

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the arrays, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if key not in ARRAYS}

    # Points.

    def points(self, table: tables.Table, places: Sequence[int]) -> np.ndarray:
        """Return points (n, d) of the columns at these places, NaN where a value is missing."""
        parts = []
        for name, k in zip(self.columns, places, strict=True):
            parts.append(self._one_hot(table, name, k) if name in self.categories else table.numbers(k)[:, None])
        return np.concatenate(parts, axis=1) if parts else np.empty((len(table), 0))

    def _one_hot(self, table: tables.Table, name: str, k: int) -> np.ndarray:
        cells, known = table.text(k), self.categories[name]
        codes = {value: code for code, value in enumerate(known)}
        found = np.array([codes.get(cell, -1) for cell in cells])
        values = (found[:, None] == np.arange(len(known))).astype(np.float64)
        values[cells == ""] = np.nan
        return values

    def unknown(self, table: tables.Table, places: Sequence[int]) -> list[str]:
        """Return a complaint for every column that holds categories training has not seen."""
        said = []
        for name, k in zip(self.columns, places, strict=True):
            if name in self.categories:
                cells, known = table.text(k), {*self.categories[name], ""}
                rows = [row for row, cell in enumerate(cells) if cell not in known]
                if rows:
                    more = f" (and {count(len(rows) - 1, 'more such row')})" if len(rows) > 1 else ""
                    said.append(
                        f"{table.place(rows[0], k)}: {cells[rows[0]]!r} was not in training{more}; it counts as none of the "
                        "values that were"
                    )
        return said

    def refuse_missing(self, table: tables.Table, X: np.ndarray, places: Sequence[int]) -> None:
        """Raise for the first missing value."""
        rows, columns = np.nonzero(np.isnan(X))
        if not rows.size:
            return
        widths = [len(self.categories.get(name, [""])) for name in self.columns]
        owner = np.repeat(np.arange(len(widths)), widths)
        others = np.unique(rows).size - 1
        more = f", as are values in {count(others, 'more row')}" if others else ""
        raise tables.MissingValue(f"{table.place(rows[0], places[owner[columns[0]]])}: the value is missing{more}.")

    # Scale.

    def fitted(self, X: Any, is_scaled: bool) -> "Preparation":
        """Return the preparation with means of the training points, and their scale if it is asked for."""
        fill = _means(X) if self.missing == MEAN and not sp.issparse(X) else None
        if not is_scaled:
            return replace(self, fill=fill)
        from sklearn.preprocessing import StandardScaler

        # A sparse matrix is not shifted, so that it stays sparse.
        scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X if fill is None else _filled(X, fill))
        return replace(self, fill=fill, mean=scaler.mean_ if scaler.with_mean else None, scale=scaler.scale_)

    def apply(self, X: Any) -> Any:
        """Return points with missing values filled in, and scaled as those of training."""
        if self.fill is not None and not sp.issparse(X):
            X = _filled(X, self.fill)
        if self.scale is None:
            return X
        if sp.issparse(X):
            return sp.csr_matrix((X.data / self.scale[X.indices], X.indices, X.indptr), shape=X.shape)
        return (X if self.mean is None else X - self.mean) / self.scale


def _means(X: np.ndarray) -> np.ndarray:
    is_there = ~np.isnan(X)
    return np.where(is_there, X, 0.0).sum(axis=0) / np.maximum(is_there.sum(axis=0), 1)


def _filled(X: np.ndarray, fill: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(X), fill, X)


def places_by_training(preparation: Preparation, table: tables.Table, target: int | None = None) -> list[int]:
    """Return where the features of training are in another table: by name, or by number where there are no names.

    ``target`` is the place of the target if it is known.
    """
    if table.is_named and preparation.is_named:
        lacking = [name for name in preparation.columns if name not in table.names]
        if lacking:
            more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
            raise tables.NoColumn(
                f"{table.source} lacks column{'s' * (len(lacking) > 1)} {', '.join(map(repr, lacking[:SHOWN]))}{more} "
                f"that the model was trained on; it has {', '.join(table.names[:20])}."
            )
        return [table.names.index(name) for name in preparation.columns]
    width, found = len(preparation.columns), len(table.names)
    if found == width:
        return list(range(found))
    target = preparation.place if target is None else target
    if found == width + 1 and target is not None:  # by default where it was in training
        return [k for k in range(found) if k != target]
    raise tables.NoColumn(
        f"{table.source} has {count(found, 'column')}; the model was trained on {count(width, 'feature')}"
        f"{' and a target' if preparation.place is not None else ''}. Without names in both files, columns go by their number."
    )
