"""What a reader gives: some rows at a time, column by column, and only the columns that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from boundwatch.episodes.costs import Cells as Cells
from boundwatch.episodes.costs import Converted, Notation, convert
from boundwatch.episodes.declared import Declared, Said
from boundwatch.episodes.measure import Kind, Measure
from boundwatch.errors import InvalidCost, Place

Format = Literal[
    "csv", "json", "jsonl", "npy", "parquet", "xlsx",
    "lerobot-eval", "lerobot-dataset", "sb3-monitor", "sb3-evaluations", "mcap",
    "inspect-robots", "vla-eval",
]  # fmt: skip
"""The names of the formats."""

ONLY = "1"
"""The name of the column of a list that has no names."""

ROWS = 1 << 16
"""Rows in a block of a format that says how many it has."""

MOST_LABELS = 300_000
"""Rows at the beginning of a file whose own numbers are looked at."""


class Line(NamedTuple):
    """A line of a text: its number from 1, and its bytes without the newline."""

    number: int
    raw: bytes


@dataclass(frozen=True)
class Block:
    """Some rows, column by column."""

    unit: str  # what a row is called in its file: line, row, episode, frame or message
    numbers: Sequence[int]  # where each row is
    columns: Mapping[str, Cells]  # those that were asked for, by their name in the file
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)  # those that number rows, for notes

    def __len__(self) -> int:
        return len(self.numbers)

    def costs(self, measure: Measure, notation: Notation, source: str, *, binary: bool = False) -> Converted:
        """Return the cost of every row; refuse a cell with its place."""
        try:
            return convert(measure, self.columns[measure.column or ONLY], notation, binary=binary)
        except InvalidCost as error:
            cells = error.cells
            first, last = (self.numbers[cell] for cell in (cells[0], cells[-1]))
            raise error.at(Place(source, self.unit, first, measure.column, last)) from None


@dataclass
class Table:
    """A source that was opened; its blocks can be read once, and its notes are complete after them."""

    source: str  # what people call it: a path, or standard input
    file_format: Format
    names: tuple[str, ...]  # all its columns; none for a list of values
    measure: Measure
    blocks: Iterator[Block]
    episode: str | None = None  # the column that tells episodes apart, where the format's rows are steps
    strata: str | None = None  # the column of the tasks, where the format runs a fixed set of them
    cluster: str | None = None  # the column of the scenes, where the format repeats them
    located: Mapping[str, str] | None = None  # names in the file, by those declared
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notation: Notation = field(default_factory=Notation)

    @property
    def column(self) -> str:
        """The name under which blocks have what is measured."""
        return self.measure.column or ONLY


def wanted(names: Sequence[str], declared: Declared, measure: Measure) -> list[str]:
    """Return the columns to read: what is measured, those that place a row, and those to ask about."""
    located = declared.locate(names).values()
    return list(dict.fromkeys([measure.column or ONLY, *located, *declared.asked(names)]))


def first_of(names: Iterable[str], outcomes: Mapping[str, Kind]) -> Said | None:
    """Return what a log says about itself: the first of these columns that it has."""
    there = set(names)
    return next((Said(kind, column) for column, kind in outcomes.items() if column in there), None)


def columnar(
    source: str,
    file_format: Format,
    columns: Mapping[str, Cells],
    declared: Declared,
    outcomes: Mapping[str, Kind],
) -> Table:
    """Return the table of a log that is read at once, which names its outcomes itself."""
    names = tuple(columns)
    measure = declared.resolve(names, first_of(names, outcomes))
    cells = {name: columns[name] for name in wanted(names, declared, measure)}
    rows = len(cells[measure.column or ONLY])
    if rows == 0:
        raise empty(source)
    return Table(source, file_format, names, measure, iter([Block("episode", range(1, rows + 1), cells)]))


def empty(source: str) -> InvalidCost:
    """Refuse a source without rows."""
    return InvalidCost("has no episode", where=Place(source), remedy="at least one is needed")


def damaged(source: str, what: str, remedy: str = "fetch or write it again") -> InvalidCost:
    """Refuse data that its own parser does not understand."""
    return InvalidCost(f"the {what} data is damaged or cut short", where=Place(source), remedy=remedy)


def too_large(source: str, what: str) -> InvalidCost:
    """Refuse what would not fit into memory, before it is taken."""
    return InvalidCost(f"is too large to read: {what}", where=Place(source), remedy="give fewer episodes")
