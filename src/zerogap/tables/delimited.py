"""Delimited text: its delimiter and its header are found out from the content unless they are given."""

import contextlib
import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from zerogap.tables.table import (
    DECIMAL_COMMA,
    SPACE,
    Form,
    Table,
    TableError,
    delimiter_in_words,
    is_missing,
    number_in,
    shortened,
    without_index,
)

DELIMITERS = (",", ";", "\t", "|")

COUNTED = 3  # numbers 0, 1, 2 or 1, 2, 3 in the first line are taken for names of columns
SAMPLE = 50  # lines that tell delimiter and header
CHUNK = 4000  # rows converted at a time: their text need not be held longer


def read_delimited(name: str, text: str, form: Form, kind: str, wanted: Sequence[str | None]) -> Table:
    """Return the columns of a text; those that are wanted as text stay text, None being the last."""
    lines = (text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text).split("\n")
    reader = _Reader(name, lines, form, "\t" if kind == "tsv" and not form.delimiter else form.delimiter)
    as_text = {reader.table().index(column) for column in wanted}
    columns = reader.columns(as_text)
    while late := {k for k, values in enumerate(columns) if values is None}:
        as_text |= late  # text where numbers were expected: read again
        columns = reader.columns(as_text)
    return without_index(reader.table([values for values in columns if values is not None]))


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
            f"{delimiter_in_words(self.delimiter)}; got {len(row)}.{hint}"
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
        values = [number_in(cell, self.decimal) for cell in cells]
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
        numbers = sum(number_in(cell) is not None or bool(DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
        score = (round(numbers / len(cells), 2), width) if delimiter != SPACE else (numbers / len(cells) - 1.0, width)
        if score > best or (best == (0.0, 0) and delimiter == SPACE and numbers > 0.5 * len(cells)):
            best, found = score, delimiter
    return found


def is_header(cells: Sequence[str], rows: Sequence[Sequence[str]], decimal: str = ".") -> bool:
    """Whether the cells of the first line name columns.

    None is a number, or the numbers only count the columns, as pandas writes columns without a name.  Text that stands in its
    column again further down is a value.
    """
    texts = [k for k, cell in enumerate(cells) if not is_missing(cell) and number_in(cell, decimal) is None]
    counted = [cell.strip() for k, cell in enumerate(cells) if k not in texts and not is_missing(cell)]
    if any(map(DECIMAL_COMMA.fullmatch, cells)):
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
