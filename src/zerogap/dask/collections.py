"""Dask collections, and plain arrays, as lists of partitions."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from zerogap.dask.block import load
from zerogap.dask.cluster import workers_of

TARGET, WEIGHT = "zerogap: y", "zerogap: sample_weight"  # columns beside the features


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
    return hasattr(value, "to_delayed") and hasattr(value, "map_partitions")


def _parts_of_frame(X: Any, y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the parts of dataframes, made columns of one: on its own each might be read in partitions of another size."""
    columns = {TARGET: _series(y)} | ({} if weight is None else {WEIGHT: _series(weight)})
    for name, column in columns.items():
        if column.npartitions != X.npartitions and not (X.known_divisions and column.known_divisions):
            _refuse_other_partitions("y" if name == TARGET else "sample_weight", X.npartitions, column.npartitions)
    whole = X.assign(**columns)
    take = dask.delayed(_taken, pure=True)
    names = list(X.columns)
    return [
        (take(part, names), take(part, TARGET), None if weight is None else take(part, WEIGHT))
        for part in whole.to_delayed()
    ]


def _series(column: Any) -> Any:
    return column[column.columns[0]] if column.ndim == 2 else column


def _taken(frame: Any, names: Any) -> Any:
    return frame[names]


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
    if hasattr(value, "to_delayed"):
        return list(value.to_delayed(optimize_graph=False))  # which may merge partitions
    raise TypeError(
        f"{name} must be a Dask array or dataframe, or a plain array; got {type(value).__name__}. "
        "Bags and delayed objects become arrays by dask.array.from_delayed."
    )


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
