"""The rules for rows of cells, the same for a text that comes line by line and for a sheet."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boundwatch.episodes.decimals import is_missing
from boundwatch.episodes.declared import Declared, Said
from boundwatch.episodes.measure import Measure
from boundwatch.episodes.outcomes import normal
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers.block import Block, Cells, measured, wanted

_PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?", re.ASCII).fullmatch
_NUMBER = re.compile(r"[-+−－]?[\d.,．'’\s]*\d[\d.,．'’\s]*(e[+-]?\d+)?\s*[%％]?", re.IGNORECASE).fullmatch
_NUMBERED = re.compile(r"\W*\d").match
_DIGIT = re.compile(r"\d").search
_ID = re.compile(r"#\s*\d+\S*").fullmatch
_NUMBERING = {"trial", "attempt", "run", "episode"}
_MARKS = {",": "comma", ".": "point"}
_KNOWN = 3  # rows that must be numbered before one without a number is noticed

Row = tuple[int, Sequence[Any]]
"""A row's number in its file, and its cells."""


@dataclass
class Rows:
    """Rows under a header become blocks; what is no row is skipped with a note, or refused.

    The rules look only at the rows above, so that a stream and a file mean the same.

    Parameters
    ----------
    names
        The header; numbers from 1 where there is none.
    declared, measure
        What is read.
    source, unit
        For refusals.
    named
        Whether the names are a row of the file, which may come again.
    """

    names: tuple[str, ...]
    declared: Declared
    measure: Measure
    source: str
    unit: str = "line"
    named: bool = True
    counted: int = 0
    """Rows so far."""
    numeric: bool | None = None
    """Whether what is measured has been a number in all rows so far; None before the first one."""
    mark: str = ""
    """The decimal mark of what is measured, once a row has shown it."""
    percent: bool | None = None
    """Whether what is measured is written with a percent sign."""
    numbered: dict[str, bool] = field(default_factory=dict)
    """Whether these columns have numbered all rows so far."""
    skipped: dict[str, int] = field(default_factory=dict)
    """What was skipped, and how often."""

    def __post_init__(self) -> None:
        self.column = measured(self.measure)
        self.wanted = wanted(self.names, self.declared, self.measure)
        self._places = [self.names.index(name) for name in self.wanted]
        self._header = [name.strip() for name in self.names]
        for index, name in enumerate(self.names):
            numbering = index == 0 or normal(name) in _NUMBERING
            # What is declared has a meaning of its own; an episode's column may well number.
            if numbering and name not in self.wanted and self.names.count(name) == 1:
                self.numbered.setdefault(name, True)

    def take(self, rows: Sequence[Row]) -> Block | None:
        """Return the block of some rows; None if none of them is an episode's."""
        return self.keep([row for row in rows if self._is_row(*row)])

    def keep(self, kept: Sequence[Row]) -> Block | None:
        """Return the block of rows that are known to be an episode's, as wide as what is read."""
        if not kept:
            return None
        numbers = [number for number, _ in kept]
        for name in self.numbered:
            index = self.names.index(name)
            self._check_numbering(name, numbers, [_text(c, index) for _, c in kept])
        columns: dict[str, Cells] = {}
        for name, index in zip(self.wanted, self._places, strict=True):
            columns[name] = [cells[index] for _, cells in kept]
        columns[self.column] = self._check_kind(numbers, columns[self.column])
        self.counted += len(kept)
        return Block(self.unit, numbers, columns)

    def place(self, number: int, column: str | None = None) -> Place:
        """Return where something is."""
        return Place(self.source, self.unit, number, column)

    def notes(self) -> list[str]:
        """Say what was skipped."""
        return [f"skipped {n} {what}" for what, n in self.skipped.items() if n]

    def skip(self, what: str, times: int = 1) -> None:
        """Count what is skipped."""
        self.skipped[what] = self.skipped.get(what, 0) + times

    def _is_row(self, number: int, cells: Sequence[Any]) -> bool:
        width, count = len(self.names), len(cells)
        if count == width and cells[0] and cells[0] != self._header[0] and str(cells[0])[0] != "#":
            return True  # the usual case
        filled = [cell for cell in cells if cell is not None and cell != ""]
        if not filled:
            return False
        if self.named and list(cells[:width]) == self._header:
            self.skip("rows that repeat the header")
            return False
        first = filled[0]
        remark = len(filled) == 1 and isinstance(first, str) and first.startswith("#")
        if remark and (width == 1 or not _ID(first)):  # ids may be called #1, #2
            self.skip("remarks")
            return False
        if count > width and any(cell is not None and cell != "" for cell in cells[width:]):
            raise InvalidCost(
                f"has {count} cells, the header has {width}",
                where=self.place(number),
                remedy="if a comma is in a note, put the note in quotes",
            )
        for name, index in zip(self.wanted, self._places, strict=True):
            if index >= count:
                raise InvalidCost(
                    f"ends before this cell: it has {count} cells, the header has {width}",
                    where=self.place(number, name),
                    remedy="write the cell, with separators for empty cells before it",
                )
        return True

    def _check_numbering(self, name: str, numbers: Sequence[int], cells: Sequence[str]) -> None:
        if not self.numbered[name]:
            return
        for above, (number, cell) in enumerate(zip(numbers, cells, strict=True), start=self.counted):
            if _NUMBERED(cell):
                continue
            if above >= _KNOWN and not _DIGIT(cell):
                raise InvalidCost(
                    f"is not numbered like the {above} rows above it",
                    where=self.place(number, name),
                    value=cell,
                    remedy="if it is a total or a mean, delete it; if it is a trial, number it",
                )
            self.numbered[name] = False
            return

    def _check_kind(self, numbers: Sequence[int], cells: Cells) -> Cells:
        if self.numeric is not False and all(type(cell) is str and _PLAIN(cell) for cell in cells):
            mark = "." if any("." in cell for cell in cells) else ""
            if self.note_numbers(mark):
                return np.array([float(cell) for cell in cells])
        for above, (number, cell) in enumerate(zip(numbers, cells, strict=True), start=self.counted):
            missing = is_missing(cell)
            is_text = isinstance(cell, str) and not missing and cell[0] != "=" and not _NUMBER(cell)
            if self.numeric is None and not missing:
                self.numeric = not is_text and not isinstance(cell, bool)
            if self.numeric and isinstance(cell, str) and not missing:
                self._check_number(number, cell, above, is_text=is_text)
        return cells

    def note_numbers(self, mark: str) -> bool:
        """Remember how plain numbers are written; return whether that is how those above are."""
        if self.percent or (mark and self.mark == ","):
            return False
        self.numeric, self.percent, self.mark = True, False, self.mark or mark
        return True

    def _check_number(self, number: int, cell: str, above: int, *, is_text: bool) -> None:
        """Refuse text among numbers, and a number that is written unlike those above it."""
        percent = cell.endswith(("%", "％"))
        mark = "," if "," in cell else "." if "." in cell else ""
        problem = ""
        if is_text:
            problem = f"is text where {above} rows have numbers"
        elif percent and self.percent is False:
            problem = "has a %, unlike the rows above it"
        elif mark and self.mark and mark != self.mark:
            problem = f"has a decimal {_MARKS[mark]}, unlike the rows above it"
        self.percent, self.mark = percent if self.percent is None else self.percent, self.mark or mark
        if problem:
            raise InvalidCost(
                problem,
                where=self.place(number, self.column),
                value=cell,
                remedy="if it is a total, delete the row; if it is a trial, write its number"
                if is_text
                else "write all numbers of a column in one way",
            )


def _text(cells: Sequence[Any], index: int) -> str:
    return "" if index >= len(cells) or cells[index] is None else str(cells[index]).strip()


MOST_ABOVE = 50
"""Rows with content among which the header is looked for."""


@dataclass
class Header:
    """Looks for the row that has the declared columns.

    Parameters
    ----------
    declared
        What is wanted.
    source, unit
        For refusals.
    says
        What the format measures by itself, given its columns.
    """

    declared: Declared
    source: str
    unit: str
    says: Callable[[Sequence[str]], Said | None] = lambda _: None
    above: int = 0
    widest: tuple[str, ...] = ()

    def take(self, readings: Sequence[Sequence[Any]]) -> tuple[Rows, int] | None:
        """Look at a row in every way that it may be read; return the rows below it, and which way it was.

        The first row of a table without names is a row itself: `Rows.named` tells.
        """
        readings = [[_name(cell) for cell in cells] for cells in readings]
        filled = [cells for cells in readings if any(cells)]
        if not filled:
            return None
        bare = self._is_bare(filled)
        ways = range(len(readings))
        fitting = [way for way in ways if not bare and self.declared.fits(readings[way])]
        if not fitting and self.declared.measure is None:  # a log says itself which columns it has
            widest = max(ways, key=lambda way: len(readings[way]))
            fitting = [widest] if self.says(readings[widest]) is not None else []
        if fitting:
            way = max(fitting, key=lambda way: len(readings[way]))
            names = tuple(readings[way])
            measure = self.declared.resolve(names, self.says(names))
            return Rows(names, self.declared, measure, self.source, self.unit), way
        remark = filled[0][0].startswith("#") and not _ID(filled[0][0])
        if not remark and self.above == 0 and (bare or self.declared.is_numbered):
            way = max(ways, key=lambda way: len(readings[way]))
            return self._unnamed(len(readings[way])), way
        self.above += not remark or self.above > 0
        self.widest = max(self.widest, *map(tuple, filled), key=lambda cells: sum(map(bool, cells)))
        if self.above >= MOST_ABOVE:
            self.refuse()
        return None

    def refuse(self) -> None:
        """Refuse a table none of whose first rows has the declared columns."""
        self.declared.resolve(self.widest, self.says(self.widest))
        self.declared.locate(self.widest)
        raise InvalidCost("no row names the columns", where=Place(self.source), remedy="put names above them")

    def _unnamed(self, width: int) -> Rows:
        names = tuple(str(position) for position in range(1, width + 1))
        measure = self.declared.resolve(names if width > 1 else ())
        return Rows(names, self.declared, measure, self.source, self.unit, named=False)

    def _is_bare(self, readings: Sequence[Sequence[str]]) -> bool:
        """Return whether a row has nothing but numbers, and no names are wanted."""
        if self.declared.columns and not self.declared.is_numbered:
            return False
        return any(all(_NUMBER(cell) for cell in cells) for cells in readings)


def _name(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()
