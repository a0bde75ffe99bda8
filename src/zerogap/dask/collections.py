"""Dask collections, and plain arrays, as lists of partitions."""

from typing import Any

import dask
import dask.array as da
import numpy as np
import scipy.sparse as sp

from zerogap.dask.block import load


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
        parts = _delayed(X, y, weight)
        load_one = dask.delayed(load, pure=False)
        tasks = [load_one(*part, number, is_classifier) for number, part in enumerate(parts)]
        return list(client.compute(tasks, optimize_graph=True))
    return [
        client.submit(load, *part, number, is_classifier, pure=False)
        for number, part in enumerate(_cut(X, y, weight, len(client.nthreads())))
    ]


def _delayed(X: Any, y: Any, weight: Any) -> list[tuple[Any, Any, Any]]:
    """Return the parts of collections, row by row of them."""
    x_parts = _parts("X", X)
    y_parts, w_parts = (
        [None] * len(x_parts) if value is None else _parts(name, _like(value, X))
        for name, value in (("y", y), ("sample_weight", weight))
    )
    for name, parts in (("y", y_parts), ("sample_weight", w_parts)):
        if len(parts) != len(x_parts):
            raise ValueError(
                f"X has {len(x_parts)} partitions and {name} has {len(parts)}, and the number of rows in them is not known. Call "
                f"compute_chunk_sizes() on arrays, or make X and {name} of the same dataframe."
            )
    return list(zip(x_parts, y_parts, w_parts, strict=True))


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
        return list(value.to_delayed())
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
