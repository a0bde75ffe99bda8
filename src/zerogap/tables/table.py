"""A table: columns by name or number, cells as numbers or text, and words for where they stand."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# What stands for a missing value in other programs' files.  A class may well be called none.
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "?"}
MISSING_NUMBER = MISSING | {"none", "."}
EXACT = 2.0**53  # below it float64 tells whole numbers apart
TRUTH = {"true": 1.0, "false": 0.0}
SPACE = " "  # any run of white space

THOUSANDS = re.compile(r"\s*[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?\s*")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


class TableError(ValueError):
    """A file that cannot be read as what it was taken for."""


class NotANumber(TableError):
    """A cell, or a whole column, that holds text where a number is needed."""

    def __init__(self, message: str, column: str):
        super().__init__(message)
        self.column = column
        self.remedy: str | None = None  # of a command that cannot train on the column as text


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
        kind = delimiter_in_words(self.delimiter)
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
        found = [number_in(cell, self.decimal) for cell in values]
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
        texts = (row for row, cell in enumerate(values) if number_in(cell, self.decimal) is None)
        row = next(texts, None)
        if row is None:  # kept as text, although every cell is a number
            raise AssertionError(f"{self.column_place(k)} of {self.source} holds numbers")
        cell = values[row]
        return f"{self.place(row, k)}: {shortened(cell)!r} is no number.{_hint(self, k, row)}"


def _hint(table: Table, k: int, row: int) -> str:
    cell = table.columns[k][row]
    with_comma = [other for other in table.columns[k] if "," in other]
    if "," in cell and table.decimal == "." and all(map(THOUSANDS.fullmatch, with_comma)):
        if all(map(DECIMAL_COMMA.fullmatch, with_comma)):
            return (
                " A comma may separate thousands here: then write numbers without it. Or it is the decimal point, and "
                "1,000 is 1."
            )
        return " Commas separate thousands here: write numbers without them."  # such as 1,000,000 or 1,000.5
    if DECIMAL_COMMA.fullmatch(cell):
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


def delimiter_in_words(delimiter: str) -> str:
    """Return what separates cells."""
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


def number_in(cell: str, decimal: str = ".") -> float | None:
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


def without_index(table: Table) -> Table:
    """Leave out a first column without a name that counts the rows, as pandas writes its index."""
    if not (table.is_named and len(table.names) > 1 and table.names[0] in ("", "Unnamed: 0", "__index_level_0__")):
        return table
    first = table.columns[0]
    if first.dtype == object or not (np.diff(first) == 1.0).all() or first[0] not in (0.0, 1.0):
        return table
    note = "the first column has no name and counts the rows: it is left out"
    return replace(table, names=table.names[1:], columns=table.columns[1:], notes=[*table.notes, note], skipped=1)
