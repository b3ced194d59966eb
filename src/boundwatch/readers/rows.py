"""The rules for rows of cells, the same for a text that comes line by line and for a sheet."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from operator import mul
from typing import Any

from boundwatch.episodes.cells import normal, outcome
from boundwatch.episodes.costs import Notation
from boundwatch.episodes.declared import Declared, Said
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers.block import ONLY, ROWS, Block, Cells

_NUMBER = re.compile(r"[-+−－]?[\d.,．'’\s]*\d[\d.,．'’\s]*(e[+-]?\d+)?\s*[%％]?", re.IGNORECASE).fullmatch
_COMMA = re.compile(r"[-+]?\d+,\d+").fullmatch
_NUMBERED = re.compile(r"#?\s*\d+(?![.,]?\d)").match  # 17, #17, 17b, 17 (redo), 2026-05-01, but not 0.5
_ID = re.compile(r"#\s*\d+\S*").fullmatch
_NUMBERING = {"trial", "attempt", "run", "episode"}
_KNOWN = 2  # rows that must be numbered before one without a number is noticed
_SHOWN = ("named", "counted", "numbered", "odd", "skipped")

Row = tuple[int, Sequence[Any]]
"""A row's number in its file, and its cells."""


def in_blocks(rows: Iterable[Row], take: Callable[[list[Row]], Block | None]) -> Iterator[Block]:
    """Yield the blocks of rows, so many at a time."""
    coming = iter(rows)
    while some := list(islice(coming, ROWS)):
        if (block := take(some)) is not None:
            yield block


@dataclass
class Rows:
    """Rows under a header become blocks; what is no row is skipped with a note, or refused.

    A row is refused because of the rows above it, so that a stream and a file mean the same.
    """

    names: tuple[str, ...]
    declared: Declared
    measure: Measure
    source: str
    unit: str = "line"
    named: bool = True
    counted: int = 0
    """Rows so far."""
    numbered: dict[str, bool] = field(default_factory=dict)
    """Whether these columns have numbered all rows so far, the first one perhaps aside."""
    odd: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The first row, and its cell, in those columns that do not number it."""
    skipped: dict[str, int] = field(default_factory=dict)
    """What was skipped, and how often."""
    notation: Notation = field(default_factory=Notation)
    """How what is measured is written, which whoever converts it keeps up to date."""

    def __post_init__(self) -> None:
        self.located = self.declared.locate(self.names)
        self.asked = self.declared.asked(self.names)
        self.column = self.measure.column or ONLY
        self.wanted = list(dict.fromkeys([self.column, *self.located.values()]))  # what every row must have
        self._places = dict(zip(self.wanted, map(self.names.index, self.wanted), strict=True))
        self._header = list(map(str.strip, self.names))
        for index, name in enumerate(self.names):
            first = index == 0 and (self.named or name == ONLY)  # fields of an object have no first one
            numbering = first or name.strip().casefold() in _NUMBERING
            # What is declared has a meaning of its own; an episode's column may well number.
            if numbering and name not in self.wanted and self.names.count(name) == 1:
                self.numbered.setdefault(name, True)

    @property
    def shown(self) -> dict[str, Any]:
        """What the rows so far have shown: fields as plain JSON values."""
        fields = {name: getattr(self, name) for name in _SHOWN}
        return fields | {"notation": dataclasses.asdict(self.notation)}

    def take(self, rows: Sequence[Row]) -> Block | None:
        """Return the block of some rows; None if none of them is an episode's."""
        return self.keep([row for row in rows if self._is_row(*row)])

    def keep(self, kept: Sequence[Row]) -> Block | None:
        """Return the block of rows that are known to be an episode's, as wide as what is read."""
        if not kept:
            return None
        numbers = [number for number, _ in kept]
        labels: dict[str, Sequence[str]] = {}
        for name in [name for name, going_on in self.numbered.items() if going_on]:
            index = self.names.index(name)
            labels[name] = [_text(cells, index) for _, cells in kept]
            self.numbered[name] = self._check_numbering(name, numbers, labels[name])
        columns: dict[str, Cells] = {n: [cells[at] for _, cells in kept] for n, at in self._places.items()}
        for name in self.asked:  # a short row may lack it
            index = self.names.index(name)
            columns[name] = [cells[index] if index < len(cells) else None for _, cells in kept]
        self.counted += len(kept)
        return Block(self.unit, numbers, columns, {n: each for n, each in labels.items() if self.numbered[n]})

    def place(self, number: int, column: str | None = None) -> Place:
        """Return where something is."""
        return Place(self.source, self.unit, number, column)

    def notes(self) -> list[str]:
        """Say what was skipped."""
        return [f"skipped {what}: {n}" for what, n in self.skipped.items()]

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
            self._refuse_outcome(number, str(cells[0]))
            self.skip("rows that repeat the header")
            return False
        if self._is_remark(cells, filled):
            self.skip("remarks")
            return False
        if count > width and any(cell is not None and cell != "" for cell in cells[width:]):
            problem = f"has {count} cells, the header has {width}"
            remedy = "if a comma is in a note, put the note in quotes"
            raise InvalidCost(problem, where=self.place(number), remedy=remedy)
        for name, index in self._places.items():
            if index >= count:
                problem = f"ends before this cell: it has {count} cells, the header has {width}"
                remedy = "write the cell, with separators for empty cells before it"
                raise InvalidCost(problem, where=self.place(number, name), remedy=remedy)
        return True

    def _refuse_outcome(self, number: int, cell: str) -> None:
        """Refuse a header that may be a trial: skipped, only failures would be left."""
        words = map(normal, self.measure.success_values)
        if len(self.names) == 1 and (normal(cell) in words or outcome(cell) is not None):
            problem, remedy = "could be the column's name or a trial", "put another name above the column"
            raise InvalidCost(problem, where=self.place(number), value=cell, remedy=remedy)

    def _is_remark(self, cells: Sequence[Any], filled: Sequence[Any]) -> bool:
        """Return whether a row begins with # and lacks what is read; ids may be called #1, #2."""
        first = filled[0]
        if not isinstance(first, str) or not first.startswith("#"):
            return False
        if len(self.names) == 1:
            return True
        complete = all(_text(cells, place) for place in self._places.values())
        return not _ID(first) and (len(filled) == 1 or not complete)

    def _check_numbering(self, name: str, numbers: Sequence[int], cells: Sequence[str]) -> bool:
        """Return whether a column still numbers all rows; refuse the only one that it does not."""
        for above, (number, cell) in enumerate(zip(numbers, cells, strict=True), start=self.counted):
            first = self.odd.get(name)
            if _NUMBERED(cell):
                if first is not None and above == _KNOWN:
                    raise self._unnumbered(name, *first, f"{above} rows below it")
            elif above == 0:
                self.odd[name] = number, cell
            elif above >= _KNOWN and first is None:
                raise self._unnumbered(name, number, cell, f"{above} rows above it")
            else:
                return False
        return True

    def _unnumbered(self, name: str, number: int, cell: str, others: str) -> InvalidCost:
        problem = f"is not numbered like the {others}"
        remedy = "if it is a total, a mean, a unit or a remark, delete it; if it is a trial, number it"
        return InvalidCost(problem, where=self.place(number, name), value=cell, remedy=remedy)


def _text(cells: Sequence[Any], index: int) -> str:
    return "" if index >= len(cells) or cells[index] is None else str(cells[index]).strip()


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(map(_NUMBER, cells))


MOST_ABOVE = 50
"""Rows with content among which the header is looked for."""


@dataclass
class Header:
    """Looks for the row that has the declared columns; `says` is what the format measures by itself."""

    declared: Declared
    source: str
    unit: str
    says: Callable[[Sequence[str]], Said | None] | None = None
    above: int = 0
    remarks: int = 0
    widest: Sequence[str] = ()

    def take(self, readings: Sequence[Sequence[Any]]) -> tuple[Rows, int] | None:
        """Look at a row in every way that it may be read; return the rows below it, and which way it was.

        The first row of a table without names is a row itself: `Rows.named` tells.
        """
        texts = [["" if cell is None else str(cell).strip() for cell in cells] for cells in readings]
        if not any(map(any, texts)):
            return None
        first = texts[0][0]
        widths = list(map(len, texts))
        way = widths.index(max(widths))
        # Nothing but numbers, where no names are wanted, is a row already.
        bare = any(map(_are_numbers, texts)) and (self.declared.is_numbered or not self.declared.columns)
        # The widest reading that has the columns; a log says itself which ones it has.
        fits = [0] * len(texts) if bare else list(map(mul, map(self.declared.fits, texts), widths))
        says = self.says(texts[way]) if self.says is not None else None
        if any(fits) or (says is not None and self.declared.measure is None):
            way = fits.index(max(fits)) if any(fits) else way
            names = tuple(texts[way])
            return self._rows(names, self.declared.resolve(names, says)), way
        remark = first.startswith("#") and not _ID(first)
        if not remark and self.above == 0 and (bare or self.declared.is_numbered):
            return self._unnamed(texts, way), way
        self.above += not remark
        self.remarks += remark
        self.widest = max(self.widest, *texts, key=lambda cells: sum(map(bool, cells)))
        if self.above >= MOST_ABOVE:
            self.refuse()
        return None

    def _rows(self, names: tuple[str, ...], measure: Measure, *, named: bool = True) -> Rows:
        rows = Rows(names, self.declared, measure, self.source, self.unit, named)
        if self.above:
            rows.skipped[f"{self.unit}s above the header"] = self.above
        if self.remarks:
            rows.skipped["remarks"] = self.remarks
        return rows

    def refuse(self) -> None:
        """Refuse a table none of whose first rows has the declared columns."""
        self._resolve(self.widest)
        self.declared.locate(self.widest)
        raise InvalidCost("no row names the columns", where=Place(self.source), remedy="put names above them")

    def _resolve(self, names: Sequence[str]) -> Measure:
        try:
            return self.declared.resolve(names, self.says(names) if self.says is not None else None)
        except InvalidSetting as error:
            if len(names) < 2 and self.unit == "line":
                error.remedy += ("; commas, semicolons or tabs separate columns",)
            raise

    def _unnamed(self, texts: Sequence[Sequence[str]], way: int) -> Rows:
        width = len(texts[way])
        alone = not set(self.declared.columns) - {"1"}
        if alone and width == 2 and any(_COMMA(cells[0]) for cells in texts if len(cells) == 1):
            raise InvalidCost(
                "could be a number with a decimal comma, or two columns",
                where=Place(self.source, self.unit, 1),
                value=",".join(texts[way]),
                remedy="write decimals with a point, or put a name above every column",
            )
        names = tuple(str(position) for position in range(1, width + 1))
        return self._rows(names, self._resolve(names if width > 1 else ()), named=False)
