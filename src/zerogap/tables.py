"""Files with data: delimited text, svmlight and Parquet, plain or compressed, as columns or as sparse points.

What a file is, its delimiter and whether it has a header are found out from the content unless they are given.  Every complaint
names the file, the row and the column.
"""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

FORMATS = ("csv", "tsv", "svmlight", "parquet")
ENDINGS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight",
    ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
COMPRESSED = (".gz", ".bz2", ".xz")
DELIMITERS = (",", ";", "\t", "|")
SPACE = " "  # any run of white space

# What stands for a missing value in other programs' files.  A class may well be called none.
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"}
MISSING_NUMBER = MISSING | {"none", "."}
EXACT = 2.0**53  # below it float64 tells whole numbers apart
TRUTH = {"true": 1.0, "false": 0.0}

COUNTED = 3  # numbers 0, 1, 2 or 1, 2, 3 in the first line are taken for names of columns
SAMPLE = 50  # lines that tell delimiter and header
CHUNK = 4000  # rows converted at a time: their text need not be held longer
BLOCK = 1 << 24  # bytes read at a time: Ctrl-C acts in between

_SVMLIGHT = re.compile(r"\s*[-+]?[\d.][-+.\deE]*(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


class TableError(ValueError):
    """A file that cannot be read as what it was taken for."""


class NotANumber(TableError):
    """A cell, or a whole column, that holds text where a number is needed."""

    def __init__(self, message: str, column: str):
        super().__init__(message)
        self.column = column


class MissingValue(TableError):
    """A cell without a value."""


class NoColumn(TableError):
    """A column that the file does not have."""


@dataclass(frozen=True)
class Form:
    """How a file is to be read; what is None is found out."""

    format: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    decimal: str = "."


@dataclass(frozen=True)
class Points:
    """An svmlight file: sparse points, and a number for each; ``base`` is the index of the first feature, 0 or 1."""

    source: str
    X: Any
    y: np.ndarray
    base: int


@dataclass(frozen=True)
class Table:
    """Columns of equal length: float64 with NaN where a value is missing, or text in an array of objects."""

    source: str
    names: list[str]
    columns: list[np.ndarray]
    is_named: bool
    lines: np.ndarray | None = None  # of the text file, for every row
    notes: list[str] = field(default_factory=list)  # what the reader decided, for the user to see
    doubled: frozenset[str] = frozenset()  # names that stood there more than once
    decimal: str = "."
    delimiter: str = ""  # of a text file
    skipped: int = 0  # columns before the first that were left out: numbers count them

    def __len__(self) -> int:
        return len(self.columns[0]) if self.columns else 0

    def index(self, column: str | int | None) -> int:
        """Return the place of a column that is given by its name or its number, counted from 1; None is the last."""
        if column is None:
            return len(self.names) - 1
        found = column_index(["\0"] * self.skipped + self.names, str(column), self.source, self.doubled)
        if found < self.skipped:
            raise NoColumn(f"{self.source}: column {column} has no name and counts the rows: it is left out.")
        return found - self.skipped

    def place(self, row: int, k: int) -> str:
        """Return words for a cell."""
        return f"{self.row_place(row)}, {self.column_place(k)}"

    @property
    def described(self) -> str:
        """Words for what the file was taken for."""
        kind = _delimiter_in_words(self.delimiter)
        named = "names in the first line" if self.is_named else "no header"
        return f"{named}, separated by {kind}" if kind else "Parquet"

    def row_place(self, row: int) -> str:
        """Return words for a row."""
        line = "" if self.lines is None else f" (line {self.lines[row]})"
        return f"{self.source}, row {row + 1}{line}"

    def column_place(self, k: int) -> str:
        """Return words for a column."""
        return f"column {self.names[k]!r}" if self.is_named else f"column {k + 1}"

    def is_text(self, k: int) -> bool:
        """Whether a column holds something that is no number."""
        return self.columns[k].dtype == object and self._truth(k) is None

    def numbers(self, k: int) -> np.ndarray:
        """Return a column as numbers, NaN where they are missing; text is refused."""
        values = self.columns[k]
        if values.dtype == object:
            truth = self._truth(k)
            if truth is None:
                raise NotANumber(self._first_text(k), self.names[k])
            values = truth
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            raise TableError(f"{self.place(infinite[0], k)}: the number is infinite, or too large for float64.")
        return values

    def text(self, k: int) -> np.ndarray:
        """Return a column as text, "" where it is missing."""
        values = self.columns[k]
        if values.dtype == object:
            return np.array([cell if not is_missing(cell) else "" for cell in values], dtype=object)
        return np.array(["" if np.isnan(value) else number_text(value) for value in values], dtype=object)

    def labels(self, k: int) -> np.ndarray:
        """Return a target: numbers if all cells are numbers that float64 tells apart, else text; "" or NaN where missing."""
        values = self.columns[k]
        if values.dtype != object:
            return values
        found = [_number(cell, self.decimal) for cell in values]
        exact = all(value is not None and not abs(value) >= EXACT for value in found)
        return np.array(found, dtype=np.float64) if exact and not np.isnan(found).all() else self.text(k).astype(str)  # type: ignore

    def _truth(self, k: int) -> np.ndarray | None:
        """Return a column of true and false as ones and zeros."""
        found = {cell.casefold() for cell in set(self.columns[k]) if not is_missing(cell)}
        if not found or not found <= set(TRUTH):
            return None
        return np.array([TRUTH.get(cell.casefold(), np.nan) for cell in self.columns[k]])

    def _first_text(self, k: int) -> str:
        values = self.columns[k]
        texts = (row for row, cell in enumerate(values) if _number(cell, self.decimal) is None)
        row = next(texts, None)
        if row is None:  # kept as text, although every cell is a number
            raise AssertionError(f"{self.column_place(k)} of {self.source} holds numbers")
        cell = values[row]
        return f"{self.place(row, k)}: {shortened(cell)!r} is no number.{_hint(self, row, cell)}"


def _hint(table: Table, row: int, cell: str) -> str:
    if _DECIMAL_COMMA.fullmatch(cell):
        return " A comma seems to be the decimal point here."
    return " The first line was not taken for a header." if row == 0 and not table.is_named else ""


def column_index(names: Sequence[str], column: str, source: str, doubled: frozenset[str] = frozenset()) -> int:
    """Return the place of a column by its name, or by its number from 1 on."""
    if column in doubled:
        raise NoColumn(f"{source} has several columns called {column!r}. Give the number of the one you mean.")
    if column in names:
        return list(names).index(column)
    if re.fullmatch(r"-?\d+", column) and 0 < abs(int(column)) <= len(names):
        return int(column) - 1 if int(column) > 0 else len(names) + int(column)
    names = [name for name in names if name != "\0"]
    known = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
    numbered = f", numbered from 1 to {len(names)}" if re.fullmatch(r"-?\d+", column) else ""
    raise NoColumn(f"{source} has no column {column!r}; it has {known}{numbered}.")


def _delimiter_in_words(delimiter: str) -> str:
    words = {",": "commas", ";": "semicolons", "\t": "tabs", SPACE: "white space"}
    return words.get(delimiter, delimiter)


def is_missing(cell: str) -> bool:
    """Whether a cell of text stands for a missing value."""
    return cell.strip().casefold() in MISSING


def number_text(value: float) -> str:
    """Return a number as one would write it: whole ones without a point."""
    return str(int(value)) if value == int(value) and abs(value) < 1e16 else repr(float(value))


def shortened(cell: str, length: int = 40) -> str:
    """Return a text of at most so many characters."""
    return cell if len(cell) <= length else f"{cell[: length - 3]}..."


def _number(cell: str, decimal: str = ".") -> float | None:
    """Return the number in a cell, NaN for a missing one, None for text."""
    cell = cell if decimal == "." else cell.replace(decimal, ".")
    if cell.strip().casefold() in MISSING_NUMBER:
        return np.nan
    if "_" in cell:  # Python's, but nobody's data
        return None
    try:
        return float(cell)
    except ValueError:
        return None


# Bytes.


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
    return _read_delimited(name, _decoded(name, data), form, kind, text)


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
        raise TableError(f"{name} is no text: expected CSV, TSV, svmlight or Parquet, plain or compressed by gzip.")
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
        if label and (_number(label) is None or is_missing(label)):
            return f"{name}, line {number}: an svmlight line begins with a number, the label; got {shortened(label)!r}."
        last = -1
        for pair in pairs:
            index, colon, text = pair.partition(":")
            if index == "qid" and colon:
                continue
            if not (colon and index.isdigit() and _number(text) is not None):
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
    return _tidied(Table(name, list(table.column_names), columns, is_named=True))


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


# Delimited text.


def _read_delimited(name: str, text: str, form: Form, kind: str, wanted: Sequence[str | None]) -> Table:
    lines = (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")
    reader = _Reader(name, lines, form, "\t" if kind == "tsv" and not form.delimiter else form.delimiter)
    as_text = {reader.table().index(column) for column in wanted}
    columns = reader.columns(as_text)
    while late := {k for k, values in enumerate(columns) if values is None}:
        as_text |= late  # text where numbers were expected: read again
        columns = reader.columns(as_text)
    return _tidied(reader.table([values for values in columns if values is not None]))


class _Reader:
    """Turns lines into columns, some thousand at a time."""

    def __init__(self, name: str, lines: list[str], form: Form, delimiter: str | None):
        self.name, self.lines, self.form = name, lines, form
        self.has_quotes = any('"' in line for line in lines)
        sample = [line for line in lines[: 4 * SAMPLE] if line.strip()][:SAMPLE]
        if not sample:
            raise TableError(f"{name} is empty.")
        self.delimiter = delimiter or find_delimiter(sample)
        rows = self._rows(0)
        first, self.begin = next(rows)
        following = [row for row, _ in islice(rows, SAMPLE)]
        self.is_named = is_header(first, following, form.decimal) if form.header is None else form.header
        if not self.is_named:
            self.begin = 0
        if self.is_named and not following:
            raise TableError(f"{name} has a header, {shortened(', '.join(first))!r}, and no rows.")
        self.names = self._names(first)
        self.numbers: list[int] = []

    def _names(self, first: list[str]) -> list[str]:
        names = [cell.strip() for cell in first]
        if len(names) > 1 and not names[-1] and self._ends_empty(len(names)):
            names = names[:-1]
        return names if self.is_named else [str(k + 1) for k in range(len(names))]

    def _ends_empty(self, width: int) -> bool:
        """Whether every line ends with a delimiter: there is no column after it."""
        return all(len(row) < width or not row[width - 1].strip() for row, _ in self._rows(self.begin))

    def _rows(self, begin: int) -> Iterator[tuple[list[str], int]]:
        """Yield the cells of every row that has any, and the number of its last line."""
        if self.delimiter == SPACE:
            for number in range(begin, len(self.lines)):
                if cells := self.lines[number].split():
                    yield cells, number + 1
            return
        reader = csv.reader(self.lines[begin:], delimiter=self.delimiter, skipinitialspace=True, strict=True)
        number = begin
        try:
            for row in reader:
                number = begin + reader.line_num
                if row and (row[0].strip() or any(map(str.strip, row))):
                    yield row, number
        except csv.Error as error:
            raise TableError(f"{self.name}, line {number + 1}: {error} (is a quote left open?).") from error

    def table(self, columns: list[np.ndarray] | None = None) -> Table:
        names, doubled = _distinct(self.names)
        notes = [f"columns of the same name are called {', '.join(doubled.values())}"] if doubled else []
        return Table(
            self.name, names, columns or [], self.is_named, np.array(self.numbers, dtype=np.int64), notes,
            frozenset(doubled), self.form.decimal, self.delimiter,
        )  # fmt: skip

    def columns(self, as_text: set[int]) -> list[np.ndarray | None]:
        """Return the columns; None for one that turned out to be text, where it ends."""
        self.numbers = []
        parts = _Parts(len(self.names), as_text, self.form.decimal)
        plain = not self.has_quotes and self.delimiter != SPACE and self.form.decimal == "."
        for begin in range(self.begin, len(self.lines), CHUNK) if plain else ():
            chunk = [(line, k + 1) for k, line in enumerate(self.lines[begin : begin + CHUNK], begin) if line.strip()]
            if chunk and not parts.add_lines([line for line, _ in chunk], self.delimiter):
                self._add_rows(parts, [(line.split(self.delimiter), number) for line, number in chunk])
            else:
                self.numbers += [number for _, number in chunk]
            if parts.late:
                break
        rows = iter(()) if plain else self._rows(self.begin)
        while not parts.late and (chunk_rows := list(islice(rows, CHUNK))):
            self._add_rows(parts, chunk_rows)
        if not self.numbers:
            raise TableError(f"{self.name} has no rows.")
        return parts.whole()

    def _add_rows(self, parts: "_Parts", rows: list[tuple[list[str], int]]) -> None:
        """Add rows whose cells need a closer look; empty ones are left out."""
        kept, width = [], len(self.names)
        for row, number in rows:
            if not row[0].strip() and not any(map(str.strip, row)):
                continue
            if len(row) == width + 1 and not row[-1].strip():
                row = row[:-1]
            if len(row) != width:
                raise TableError(self._wrong_width(row, number))
            kept.append(row)
            self.numbers.append(number)
        if kept:
            parts.add_rows(kept)

    def _wrong_width(self, row: list[str], number: int) -> str:
        what = "the header" if self.is_named else "the first row"
        hint = " Text with the delimiter in it needs quotes." if len(row) > len(self.names) else ""
        return (
            f"{self.name}, line {number}: expected {len(self.names)} values as in {what}, separated by "
            f"{_delimiter_in_words(self.delimiter)}; got {len(row)}.{hint}"
        )


class _Parts:
    """Columns that grow by chunks, as numbers for as long as they are numbers."""

    def __init__(self, width: int, as_text: set[int], decimal: str):
        self.as_text, self.decimal = as_text, decimal
        self.chunks: list[list[Any]] = [[] for _ in range(width)]
        self.late: set[int] = set()

    def add_lines(self, lines: list[str], delimiter: str) -> bool:
        """Add lines without quotes by NumPy's reader, which is four times as fast; False if it meets anything but numbers."""
        width = len(self.chunks)
        of_numbers = [k for k in range(width) if k not in self.as_text]
        if not of_numbers or any(line.count(delimiter) != width - 1 for line in lines):
            return False
        try:
            block = np.loadtxt(lines, delimiter=delimiter, usecols=of_numbers, comments=None, ndmin=2)
        except ValueError:
            return False
        for k, values in zip(of_numbers, block.T, strict=True):
            self.chunks[k].append(values.copy())
        for k in self.as_text:
            if k == width - 1:
                self.chunks[k] += [line.rpartition(delimiter)[2].strip() for line in lines]
            else:
                self.chunks[k] += [line.split(delimiter, k + 1)[k].strip() for line in lines]
        return True

    def add_rows(self, rows: list[list[str]]) -> None:
        for k, cells in enumerate(zip(*rows, strict=True)):
            if k in self.as_text:
                self.chunks[k] += [cell.strip() for cell in cells]
            elif k not in self.late:
                values = self._numbers(cells)
                if values is None:
                    self.late.add(k)
                else:
                    self.chunks[k].append(values)

    def _numbers(self, cells: Sequence[str]) -> np.ndarray | None:
        if self.decimal == "." and not any("_" in cell for cell in cells):
            with contextlib.suppress(ValueError):
                return np.array([float(cell or "nan") for cell in cells])
        values = [_number(cell, self.decimal) for cell in cells]
        return None if any(value is None for value in values) else np.array(values, dtype=np.float64)

    def whole(self) -> list[np.ndarray | None]:
        return [None if k in self.late else self._whole(k) for k in range(len(self.chunks))]

    def _whole(self, k: int) -> np.ndarray:
        return np.array(self.chunks[k], dtype=object) if k in self.as_text else np.concatenate(self.chunks[k])


def find_delimiter(lines: Sequence[str]) -> str:
    """Return the delimiter that cuts every line into as many cells, as many of them numbers as possible."""
    best, found = (0.0, 0), ","
    for delimiter in (*DELIMITERS, SPACE):
        try:
            rows = [line.split() for line in lines] if delimiter == SPACE else [*csv.reader(lines, delimiter=delimiter)]
        except csv.Error:  # a field without end: it is told where rows are read
            continue
        width = len(rows[-1]) if rows else 0
        # Some lines may be wrong, and are told; the last, the header and most others agree on the right one.
        alike = sum(len(row) == width or (len(row) == width + 1 and not row[-1].strip()) for row in rows)
        if width < 2 or alike < 0.8 * len(rows):
            continue
        cells = [cell for row in rows for cell in row]
        numbers = sum(_number(cell) is not None or bool(_DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
        score = (round(numbers / len(cells), 2), width) if delimiter != SPACE else (numbers / len(cells) - 1.0, width)
        if score > best or (best == (0.0, 0) and delimiter == SPACE and numbers > 0.5 * len(cells)):
            best, found = score, delimiter
    return found


def is_header(cells: Sequence[str], rows: Sequence[Sequence[str]], decimal: str = ".") -> bool:
    """Whether the cells of the first line name columns.

    None is a number, or the numbers only count the columns, as pandas writes columns without a name.  Text that stands in its
    column again further down is a value.
    """
    texts = [k for k, cell in enumerate(cells) if not is_missing(cell) and _number(cell, decimal) is None]
    counted = [cell.strip() for k, cell in enumerate(cells) if k not in texts and not is_missing(cell)]
    if any(map(_DECIMAL_COMMA.fullmatch, cells)):
        return False
    if counted and not any(counted == [str(k + first) for k in range(len(counted))] for first in (0, 1)):
        return False
    again = [any(len(row) > k and row[k].strip() == cells[k].strip() for row in rows) for k in texts]
    if counted:
        return (bool(texts) or len(counted) >= COUNTED) and not any(again)
    return bool(texts) and not (len(rows) > 1 and all(again))


def _distinct(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return names of which no two are equal, and what the second of those that were is called."""
    seen, found = set(names), []
    doubled: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        new, count = name, 1
        while new in taken or (new != name and new in seen):
            new, count = f"{name}.{count}", count + 1
        if new != name:
            doubled.setdefault(name, new)
        taken.add(new)
        found.append(new)
    return found, doubled


def _tidied(table: Table) -> Table:
    """Leave out a first column without a name that counts the rows, as pandas writes its index."""
    if not (table.is_named and len(table.names) > 1 and table.names[0] in ("", "Unnamed: 0", "__index_level_0__")):
        return table
    first = table.columns[0]
    if first.dtype == object or not (np.diff(first) == 1.0).all() or first[0] not in (0.0, 1.0):
        return table
    note = "the first column has no name and counts the rows: it is left out"
    return replace(table, names=table.names[1:], columns=table.columns[1:], notes=[*table.notes, note], skipped=1)
