"""Dask collections, and plain arrays, as lists of partitions."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp
from dask.utils import is_dataframe_like, is_series_like

from zerogap.dask.block import load
from zerogap.dask.cluster import workers_of


def is_collection(value: Any) -> bool:
    """Whether this is an array or a dataframe of Dask."""
    return dask.is_dask_collection(value)


def check_alike(**given: Any) -> bool:
    """Return whether what was passed are Dask collections; refuse a mixture of these and others."""
    kinds = {name: is_collection(value) for name, value in given.items() if value is not None}
    if len(set(kinds.values())) > 1:
        names = {name: type(given[name]).__module__.partition(".")[0] for name in kinds}
        raise TypeError(
            "X, y and sample_weight must all be Dask collections, or all be plain arrays; got "
            f"{', '.join(f'{name} of {module}' for name, module in names.items())}. Pass dask.array.from_array(y, "
            "chunks=X.chunks[0]) for a plain y, or compute the others."
        )
    return any(kinds.values())


def blocks_of(client: Any, X: Any, y: Any, weight: Any, *, is_classifier: bool) -> list[Any]:
    """Return a future for the rows of every partition; workers read and check them."""
    if check_alike(X=X, y=y, sample_weight=weight):
        load_one = dask.delayed(load, pure=False)
        parts = enumerate(parts_of(X, y, weight))
        return list(client.compute([load_one(*part, number, is_classifier) for number, part in parts]))
    return [
        client.submit(load, *part, number, is_classifier, pure=False)
        for number, part in enumerate(_cut(X, y, weight, len(workers_of(client))))
    ]


def parts_of(X: Any, y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the parts of collections, rows that belong together, as delayed objects."""
    _check_kinds(X=X, y=y, sample_weight=weight)
    if _is_frame(X) and _is_frame(y) and (weight is None or _is_frame(weight)):
        return _parts_of_frame(X, y, weight)
    given = {"X": X, "y": _like(y, X), "sample_weight": None if weight is None else _like(weight, X)}
    parts = {name: None if value is None else _parts(name, value) for name, value in given.items()}
    x_parts = parts["X"] or []
    for name, others in parts.items():
        if others is not None and len(others) != len(x_parts):
            _refuse_other_partitions(name, len(x_parts), len(others))
    return list(zip(x_parts, *(parts[name] or [None] * len(x_parts) for name in ("y", "sample_weight")), strict=True))


def _is_frame(value: Any) -> bool:
    """Whether this is a dataframe or a series of Dask."""
    return is_collection(value) and (is_dataframe_like(value) or is_series_like(value))


def _parts_of_frame(X: Any, y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the parts of dataframes, read together: on its own each might be read in partitions of another size.

    Rows belong together by their place.  Dask would join them by their index where it does not see that they are of one
    dataframe: a shuffle, which leaves out, repeats and reorders rows.  An index that differs is refused (``_beside``).
    """
    columns = {"y": _series(y)} | ({} if weight is None else {"sample_weight": _series(weight)})
    columns = {name: _divided_like(X, name, column) for name, column in columns.items()}
    whole = X.map_partitions(_beside, *columns.values(), align_dataframes=False, enforce_metadata=False, meta=X._meta)
    take = dask.delayed(_taken, pure=True)
    return [
        (*(take(part, k) for k in range(1 + len(columns))), *(None,) * (weight is None)) for part in whole.to_delayed()
    ]


def _series(column: Any) -> Any:
    return column[column.columns[0]] if column.ndim == 2 and len(column.columns) == 1 else column


def _divided_like(X: Any, name: str, column: Any) -> Any:
    """Return a column in the partitions of X, where it is known which rows those are."""
    if X.known_divisions and column.known_divisions and X.divisions != column.divisions:
        (first, last), (low, high) = ((frame.divisions[0], frame.divisions[-1]) for frame in (column, X))
        if first < low or last > high:
            raise ValueError(
                f"The index of {name} is from {first} to {last}, and that of X from {low} to {high}. Make {name} a column of "
                "the same dataframe."
            )
        return column.repartition(divisions=X.divisions, force=True)
    if column.npartitions != X.npartitions:
        _refuse_other_partitions(name, X.npartitions, column.npartitions)
    return column


def _beside(X: Any, *columns: Any) -> tuple[Any, ...]:
    """Return a partition and its columns; rows of the same place have the same index, or they are none."""
    for name, column in zip(("y", "sample_weight"), columns, strict=False):
        if len(column) == len(X) and not column.index.equals(X.index):
            raise ValueError(
                f"The index of {name} is not that of X: it begins {column.index[:3].tolist()}, and that of X "
                f"{X.index[:3].tolist()}. Make {name} a column of the same dataframe; or, if rows belong together in the order "
                f"that they have, pass {name}.values."
            )
    return X, *columns


def _taken(parts: tuple[Any, ...], k: int) -> Any:
    return parts[k]


def _check_kinds(**given: Any) -> None:
    for name, value in given.items():
        if value is not None and not (isinstance(value, da.Array) or _is_frame(value)):
            raise TypeError(
                f"{name} must be a Dask array or dataframe, or a plain array; got {type(value).__name__}. "
                "Bags and delayed objects become arrays by dask.array.from_delayed."
            )


def _refuse_other_partitions(name: str, count: int, other: int) -> None:
    raise ValueError(
        f"X has {count} partitions and {name} has {other}, and the number of rows in them is not known. Call "
        f"compute_chunk_sizes() on arrays, or make X and {name} of the same dataframe."
    )


def _like(value: Any, X: Any) -> Any:
    """Return a column with the chunks of X, if both are known."""
    if isinstance(value, da.Array) and isinstance(X, da.Array) and value.chunks[0] != X.chunks[0]:
        if np.isnan(value.shape[0]) or np.isnan(X.shape[0]):
            return value
        if value.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and another array {value.shape[0]}. Each row needs one entry.")
        return value.rechunk({0: X.chunks[0]})
    return value


def _parts(name: str, value: Any) -> list[Any]:
    if isinstance(value, da.Array):
        if value.ndim == 2 and value.numblocks[1] > 1:
            value = value.rechunk({1: -1})
        if value.ndim not in (1, 2):
            raise ValueError(f"{name} must have rows, and one or more columns; got {value.ndim} dimensions.")
        return list(value.to_delayed().ravel())
    return list(value.to_delayed(optimize_graph=False))  # which may merge partitions


def _cut(X: Any, y: Any, weight: Any, count: int) -> list[tuple[Any, Any, Any]]:
    """Return plain arrays in as many parts as there are workers."""
    if not (sp.issparse(X) or hasattr(X, "iloc")):
        X = np.asarray(X)
    X = X.tocsr() if sp.issparse(X) else X
    y, weight = np.asarray(y), None if weight is None else np.asarray(weight)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features; got shape {X.shape}.")
    n = X.shape[0]
    for name, value in (("y", y), ("sample_weight", weight)):
        if value is not None and (not value.ndim or value.shape[0] != n):
            raise ValueError(f"X has {n} rows, and {name} shape {value.shape}. Each row needs one entry.")
    rows = [slice(a, b) for a, b in _intervals(n, count)]
    taken = X.iloc if hasattr(X, "iloc") else X
    return [(taken[part], y[part], None if weight is None else weight[part]) for part in rows]


def _intervals(n: int, count: int) -> list[tuple[int, int]]:
    edges = np.linspace(0, n, min(count, max(n, 1)) + 1).astype(int)
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
