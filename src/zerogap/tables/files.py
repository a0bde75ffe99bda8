"""From the bytes of a file to a table or to sparse points: what it is, compressed or not; svmlight and Parquet."""

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from zerogap.tables.delimited import read_delimited
from zerogap.tables.table import Form, Points, Table, TableError, is_missing, number_in, shortened, without_index

FORMATS = ("csv", "tsv", "svmlight", "parquet")
ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
COMPRESSED = (".gz", ".bz2", ".xz")
BLOCK = 1 << 24  # bytes read at a time: Ctrl-C acts in between

_SVMLIGHT = re.compile(r"\s*[-+]?[\d.][-+.\deE]*(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?")


def read(
    source: str | Path, form: Form | None = None, text: Sequence[str | None] = (), stream: Any = None
) -> Table | Points:
    """Read a file, or an open stream of bytes; columns in ``text`` are kept as text, None being the last."""
    form, name = form or Form(), str(source)
    data = _decompressed(name, _all_bytes(name, stream))
    if not data.strip():
        raise TableError(f"{name} is empty.")
    kind = form.format or _kind(name, data)
    if kind == "parquet":
        return _read_parquet(name, data)
    if kind == "svmlight":
        return read_svmlight(name, data)
    return read_delimited(name, _decoded(name, data), form, kind, text)


def _all_bytes(name: str, stream: Any) -> bytes:
    if stream is not None:
        return b"".join(iter(lambda: stream.read(BLOCK), b""))
    with open(name, "rb") as file:
        return b"".join(iter(lambda: file.read(BLOCK), b""))


def _decompressed(name: str, data: bytes) -> bytes:
    """Return the content of a gzip, bzip2 or xz file, told by its first bytes."""
    try:
        if data[:2] == b"\x1f\x8b":
            return gzip.decompress(data)
        if data[:3] == b"BZh":
            return bz2.decompress(data)
        if data[:6] == b"\xfd7zXZ\x00":
            return lzma.decompress(data)
    except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise TableError(f"{name} is compressed, and damaged or cut off ({error}).") from error
    return data


def _kind(name: str, data: bytes) -> str:
    """Return the format that the content shows, or the name's ending says."""
    if data[:4] == b"PAR1":
        return "parquet"
    path = Path(name)
    ending = Path(path.stem).suffix if path.suffix.lower() in COMPRESSED else path.suffix
    said = ENDINGS.get(ending.lower())
    if said in ("svmlight", "parquet"):
        return said
    lines = [line for line in data[:100_000].decode("latin-1").splitlines() if line.strip() and line[0] != "#"]
    if lines and all(_SVMLIGHT.fullmatch(line) for line in lines[: min(3, max(len(lines) - 1, 1))]):
        return "svmlight"
    return said or "csv"


def _decoded(name: str, data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", errors="replace")
    if b"\0" in data or _looks_binary(data[:10_000]):
        raise TableError(
            f"{name} is no text: expected CSV, TSV, svmlight or Parquet, plain or compressed by gzip, bzip2 or xz."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:  # old spreadsheets; numbers and delimiters are the same
        return data.decode("cp1252", errors="replace")


def _looks_binary(start: bytes) -> bool:
    control = sum(byte < 32 and byte not in (9, 10, 12, 13) for byte in start)
    return control > 0.05 * len(start)


# svmlight.


def read_svmlight(name: str, data: bytes) -> Points:
    """Read svmlight's form: a number, then index:value for every feature that is not zero."""
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(io.BytesIO(data), zero_based=True)
    except (ValueError, OverflowError) as error:
        raise TableError(_bad_line(name, data) or f"{name} is no svmlight file ({error}).") from error
    if not y.size:
        raise TableError(f"{name} has no rows.")
    base = int(X.nnz == 0 or X.indices.min() > 0)
    if X.nnz == 0:
        raise TableError(f"{name} has no features: an svmlight line is a label and index:value pairs.")
    wrong = np.flatnonzero(~np.isfinite(y))
    if wrong.size:
        raise TableError(f"{name}, row {wrong[0] + 1}: the label is not a finite number.")
    wrong = np.flatnonzero(~np.isfinite(X.data))
    if wrong.size:
        row = int(np.searchsorted(X.indptr, wrong[0], side="right")) - 1
        index = X.indices[wrong[0]]
        raise TableError(f"{name}, row {row + 1}, feature {index}: the value is missing or infinite.")
    X = X[:, base:]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # other libraries take no larger ones
    return Points(name, X, y, base)


def widened(X: Any, width: int) -> Any:
    """Return sparse points with zeros for features up to a width."""
    return sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], max(X.shape[1], width)))


def dense_or_sparse(X: Any) -> Any:
    """Return sparse points as an array if half of the entries or more are there: it is smaller and faster."""
    return X.toarray() if X.nnz * 2 >= np.prod(X.shape) else X


def _bad_line(name: str, data: bytes) -> str:
    """Return what is wrong with the first line that is no svmlight."""
    for number, line in enumerate(data.decode("latin-1").split("\n"), start=1):
        label, *pairs = line.partition("#")[0].split() or [""]
        if label and (number_in(label) is None or is_missing(label)):
            return f"{name}, line {number}: an svmlight line begins with a number, the label; got {shortened(label)!r}."
        last = -1
        for pair in pairs:
            index, colon, text = pair.partition(":")
            if index == "qid" and colon:
                continue
            if not (colon and index.isdigit() and number_in(text) is not None):
                return f"{name}, line {number}: expected index:value; got {shortened(pair)!r}."
            if int(index) <= last:
                return f"{name}, line {number}: indices must increase; {index} comes after {last}."
            last = int(index)
    return ""


# Parquet.


def _read_parquet(name: str, data: bytes) -> Table:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ImportError(f'{name} is a Parquet file: pip install "zerogap[parquet]" (pyarrow) to read it.') from error
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} is no Parquet file, or damaged ({error}).") from error
    if not table.num_rows or not table.num_columns:
        raise TableError(f"{name} has {table.num_columns} columns and {table.num_rows} rows: nothing to read.")
    columns = [_arrow_column(table.column(k), pa) for k in range(table.num_columns)]
    return without_index(Table(name, list(table.column_names), columns, is_named=True))


def _arrow_column(column: Any, pa: Any) -> np.ndarray:
    """Return numbers, or whatever else there is as text: dates may be in a column that is left out."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int8())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return np.array(["" if cell is None else str(cell) for cell in column.to_pylist()], dtype=object)
    values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.array(values, dtype=np.float64)
