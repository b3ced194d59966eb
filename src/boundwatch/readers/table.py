"""What every reader gives: the rows of a source, some at a time, column by column; and the rules for rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import itemgetter
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from boundwatch._support.validation import shortest
from boundwatch.episodes.cells import Cells, Converted, Notation, convert, normal, number, outcome
from boundwatch.episodes.counts import expand
from boundwatch.episodes.declared import Declared, Layout, Question, Said, one_value
from boundwatch.episodes.measure import Kind
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place, Refusal

Format = Literal[
    "csv", "json", "jsonl", "npy", "parquet", "xlsx",
    "lerobot-eval", "lerobot-dataset", "sb3-monitor", "sb3-evaluations", "mcap",
    "inspect-robots", "vla-eval",
]  # fmt: skip
"""The names of the formats."""

ROWS = 1 << 16
"""Rows in a block of a format that says how many it has."""
MOST_LABELS = 300_000
"""Rows at the beginning of a file whose own numbers are looked at."""
MOST_ABOVE = 50
"""Rows with content among which the header is looked for."""
ABOVE = "rows above the header"
"""What is skipped before there are names."""
_LONGEST_NAME = 1000
_SHOWN = 6
_NUMBERED = re.compile(r"#?\s*\d+(?![.,]?\d)").match  # 17, #17, 17b, 17 (redo), 2026-05-01, but not 0.5

Row = tuple[int, Sequence[Any]]
"""A row's number in its file, and its cells."""


class Line(NamedTuple):
    """A line of a text: its number from 1, and its bytes without the newline."""

    number: int
    raw: bytes


def label(value: object) -> str:
    """Return the name that a cell holds; nothing if it holds none."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return shortest(float(value)) if np.isfinite(value) else ""
    return str(value).strip()[: _LONGEST_NAME + 1]


@dataclass(frozen=True)
class Block:
    """Some rows, column by column."""

    source: str
    unit: str  # what a row is called in its file: line, row, episode, frame or message
    numbers: Sequence[int]  # where each row is
    columns: Mapping[str, Cells]  # those that were asked for, by their name in the file
    labels: tuple[str, ...] = ()  # those of them that number rows, for notes
    first: str | None = None  # the first column, which may name totals

    def __len__(self) -> int:
        return len(self.numbers)

    def place(self, column: str | None, first: int, last: int | None = None) -> Place:
        """Return where a row of these is, or several are."""
        end = None if last is None else self.numbers[last]
        return Place(self.source, self.unit, self.numbers[first], column, end)

    def labelled(self, column: str) -> list[str]:
        """Return the names in a column, each made once; nothing where a cell holds none."""
        cells = self.columns[column]
        values = cells.tolist() if isinstance(cells, np.ndarray) else cells
        try:
            known = dict(zip(unique := dict.fromkeys(values), map(label, unique), strict=True))
        except TypeError:  # a list, say
            return list(map(label, values))
        return list(map(known.__getitem__, values))

    def names(self, column: str) -> list[str]:
        """Return the names in a column, of which every row must have one."""
        found = self.labelled(column)
        lengths = list(map(len, found))
        for wrong in {length for length in lengths if not 0 < length <= _LONGEST_NAME}:
            problem = "is longer than any name" if wrong else "has no name"
            raise self._needs_name(column, lengths.index(wrong), problem)
        return found

    def where(self, conditions: Mapping[str, str]) -> Block:
        """Return the rows that have these values in these columns of the file; refuse an empty cell there."""
        kept = np.ones(len(self), dtype=bool)
        for column, value in conditions.items():
            wanted, found = normal(value), self.labelled(column)
            if wanted and "" in found:
                raise self._needs_name(column, found.index(""), "is empty, and rows are chosen by it")
            same = {name: normal(name) == wanted for name in set(found)}
            kept &= np.fromiter(map(same.__getitem__, found), bool, len(found))
        return self if kept.all() else self.take(np.flatnonzero(kept).tolist())

    def _needs_name(self, column: str, row: int, problem: str) -> InvalidCost:
        remedy = "give every row a short text or a whole number there; if empty means the one above it, pass "
        said = (remedy, Argument("fill_down", column))
        return InvalidCost(problem, where=self.place(column, row), remedy=said)

    def take(self, rows: Sequence[int]) -> Block:
        """Return some of the rows, or some of them several times."""
        columns: dict[str, Cells] = {}
        for name, cells in self.columns.items():
            columns[name] = cells[rows] if isinstance(cells, np.ndarray) else [cells[row] for row in rows]
        return replace(self, numbers=[self.numbers[row] for row in rows], columns=columns)


class Table:
    """A source that was opened; its blocks can be read once, and its notes are complete after them.

    Its `layout` is known as soon as its columns are.
    """

    file_format: Format
    layout: Layout
    blocks: Iterable[Block]
    episode: str | None = None  # the column that tells episodes apart, where the format's rows are steps
    strata: str | None = None  # that of the tasks, where the format runs a fixed set of them
    by_line = False  # whether its lines are read one by one after a refusal

    def __init__(self, source: str, declared: Declared) -> None:
        self.source, self.declared = source, declared  # what people call it: a path, or standard input
        self.notation = Notation()
        """How what is measured is written, which `costs` keeps up to date."""
        self.asked: dict[str, dict[str, str]] = {}
        """The values of columns that are asked about so far, for each policy or robot."""
        self.filled: dict[str, Any] = {}  # the last cell of every column that is filled down
        self.seen: dict[str, None] | None = {}  # what columns had as long as no row was meant
        self.warnings: list[str] = []
        self.notes: list[str] = []

    @property
    def said(self) -> list[str]:
        """What was done to read it so far."""
        return self.notes

    def chosen(self, block: Block) -> Block:
        """Return the rows that are meant; refuse a second value of a column that is asked about."""
        roles, where = self.layout.roles, self.declared.design.where
        if "fill_down" in roles:
            block = self._filled_down(block, roles["fill_down"])
        if where:
            kept = block.where(dict(zip(roles["where"], where.values(), strict=True)))
            if len(kept):
                self.seen = None
            elif self.seen is not None and len(self.seen) < _SHOWN:
                for column in roles["where"]:
                    self.seen |= dict.fromkeys(f"{column}={each}" for each in block.labelled(column))
            block = kept
        if self.layout.questions and len(block):
            apart = [block.labelled(*roles[role]) for role in ("policy", "by") if role in roles]
            offered = self.declared.answers or ("where", "count")
            groups = list(zip(*apart, strict=True)) if apart else [()] * len(block)
            for column, question in self.layout.questions.items():
                values = zip(groups, block.labelled(column), strict=True)
                place = block.place(column, 0) if self.by_line else Place(self.source, column=column)
                one_value(question, values, self.asked.setdefault(column, {}), place, offered)
        return block

    def _filled_down(self, block: Block, names: Sequence[str]) -> Block:
        """Return the rows with the cell above in every empty one of some columns."""
        columns = dict(block.columns)
        for column in names:
            columns[column] = cells = list(block.columns[column])
            for row, cell in enumerate(cells):
                self.filled[column] = cells[row] = cell if label(cell) else self.filled.get(column)
        return replace(block, columns=columns)

    def costs(self, block: Block, *, scaled: bool = True) -> Converted:
        """Return the cost of every row, or of its trials; refuse a cell with its place."""
        measure, binary = self.layout.measure, bool(self.declared.binary)
        try:
            if measure.counted:
                columns = list(map(block.columns.__getitem__, measure.columns))
                return expand(measure, columns, self.notation, binary=binary)
            cells = block.columns[measure.columns[0]]
            return convert(measure, cells, self.notation, binary=binary, scaled=scaled)
        except InvalidCost as error:
            column = measure.column if error.where is None else error.where.column
            raise error.at(block.place(column, error.cells[0], error.cells[-1])) from None

    def empty(self) -> Refusal:
        """Refuse a source without rows, or with none that is meant: show what some have instead."""
        if not (self.declared.design.where and self.seen):
            return empty(self.source)
        remedy = f"give a value that the column has: {', '.join(list(self.seen)[:_SHOWN])}"
        at, wanted = Place(self.source), dict(self.declared.design.where)
        return InvalidSetting("matches no row", where=at, name="where", value=wanted, remedy=remedy)


def by_columns(
    source: str,
    file_format: Format,
    names: Sequence[str],
    declared: Declared,
    parts: Callable[[list[str]], Iterable[Mapping[str, Cells]]],
    *,
    says: Mapping[str, Kind] | None = None,
    one_of: str | None = None,
    unit: str = "row",
) -> Table:
    """Return the table of a source that is read by columns: `parts` gives the cells of those asked for.

    `says` has the columns in which a log keeps its outcomes: the first of them that it has is read. `one_of`
    is a column of which one value must be chosen if there are several.
    """
    own: list[Said] = [(kind, column) for column, kind in (says or {}).items() if column in names]
    layout = declared.layout(names, own[0] if own else None)
    if one_of is not None and [one_of] not in layout.roles.values() and not declared.as_is:
        layout.questions.setdefault(one_of, Question("and one is meant", ("where",), "all are meant"))
    wanted = list(dict.fromkeys([*layout.wanted, *layout.questions]))
    labels = tuple(layout.scenes) if unit == "episode" else ()

    def blocks() -> Iterator[Block]:
        number = 0 if unit == "frame" else 1
        for cells in parts(wanted):
            rows = len(cells[wanted[0]])
            yield Block(source, unit, range(number, number + rows), cells, labels)
            number += rows

    table = Table(source, declared)
    table.file_format, table.layout, table.blocks = file_format, layout, blocks()
    return table


def of_log(
    source: str, file_format: Format, columns: Mapping[str, Cells], declared: Declared, **others: Any
) -> Table:
    """Return the table of a log that is read at once; `others` are arguments of `by_columns`."""
    names = tuple(columns)
    return by_columns(source, file_format, names, declared, lambda _: [columns], unit="episode", **others)


def in_parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield rows so many at a time."""
    coming = iter(rows)
    while some := list(islice(coming, ROWS)):
        yield some


def empty(source: str) -> InvalidCost:
    """Refuse a source without rows."""
    return InvalidCost("has no episode", where=Place(source), remedy="at least one is needed")


def damaged(source: str, what: str, remedy: str = "fetch or write it again") -> InvalidCost:
    """Refuse data that its own parser does not understand."""
    return InvalidCost(f"the {what} data is damaged or cut short", where=Place(source), remedy=remedy)


def too_large(source: str, what: str) -> InvalidCost:
    """Refuse what would not fit into memory, before it is taken."""
    return InvalidCost(f"is too large to read: {what}", where=Place(source), remedy="give fewer episodes")


class Rows(Table):
    """Rows of cells become blocks, below the header, which is looked for first.

    What is not a row is skipped with a note, or refused: because of the rows above it, so that a stream and a
    file mean the same.
    """

    says: Said | None = None
    """What the format measures by itself."""

    def __init__(self, declared: Declared, source: str, unit: str = "line") -> None:
        super().__init__(source, declared)
        self.unit = unit
        self.names: tuple[str, ...] = ()  # none as long as there is no header
        self.named = True  # whether there is one: columns may just be numbered
        self.counted = 0  # rows so far
        self.numbering: dict[str, tuple[str, int, str]] | None = None
        """The columns that may number rows: whether the first two do (11, 01), and the first row and cell."""
        self.skipped: dict[str, int] = {}  # what was skipped, and how often
        self.widest: Sequence[str] = ()  # the row above the header that has most of the columns, or cells
        self.above: list[list[int]] = []  # how many cells of each have content, in every way to read it
        self.windows = self.distinct = False  # read as Windows-1252; trials are not written as the header

    @property
    def said(self) -> list[str]:
        """What was skipped, and what else was done to read the rows so far."""
        found = [f"skipped {what}: {n}" for what, n in self.skipped.items()]
        return [*found, *(["read as Windows-1252"] if self.windows else []), *self.notes]

    def open(self, names: Sequence[str], *, named: bool = True) -> None:
        """Say which columns there are."""
        self.names, self.named = tuple(names), named
        listed = () if self.names == ("1",) and not named else self.names  # a list has no names
        try:
            self.layout = self.declared.layout(listed, self.says)
        except InvalidSetting as error:
            raise error if error.where is not None else error.at(Place(self.source)) from None
        self.wanted, roles = self.layout.wanted, self.layout.roles
        self.lists = [*roles.get("predicted", ()), *roles.get("unlabeled", ())]
        first, self.scenes = "" if not named and self.names != ("1",) else self.names[0], self.layout.scenes
        usable = first not in self.wanted and self.names.count(first) == 1  # an object has no first one
        if self.numbering is None:
            self.numbering = dict.fromkeys([*[first][:usable], *self.layout.numbering], ("", 0, ""))
        self.first = first if usable and named and not self.declared.as_is else None
        self._places = {name: self.names.index(name) for name in self.wanted}
        self._header = list(map(str.strip, self.names))

    def find(self, texts: Sequence[Sequence[str]]) -> int | None:
        """Look for the columns in a row, in every way that it may be read; return which way has them.

        The first row of a table without names is a row itself: `named` tells.
        """
        if not any(map(any, texts)):
            return None
        widest = max(texts, key=len)
        names, is_row = self.declared.fitting(texts)
        if names or (self.says is not None and self.declared.measure is None):  # a log says what it has
            self.open(names or widest)
            way = texts.index(names or widest)
            if self.above:
                self._check_above([counts[way] for counts in self.above])
            return way
        if ABOVE not in self.skipped and is_row:
            self._refuse_half(texts, widest)
            self.open([str(place + 1) for place in range(len(widest))], named=False)
            return texts.index(widest)
        self._skip(ABOVE)
        self.above.append([0 if widest[0].startswith("#") else sum(map(bool, cells)) for cells in texts])
        self.widest = max(self.widest, *texts, key=self.declared.known)
        if self.skipped.get(ABOVE) == MOST_ABOVE:
            self.refuse()
        return None

    def _check_above(self, counts: Sequence[int]) -> None:
        """Refuse a header that may be the first trial, in which a status says success."""
        filled = [*filter(None, self.names)]
        counts = counts[: len(counts) if any(number(name) is not None for name in filled) else 1]
        if len(filled) > 1 and max(counts, default=0) >= len(filled):
            row = ", ".join(filter(None, self.widest))[:60]
            problem = f"is in a row below one with as many cells ({row})"
            remedy = "if that one is the header, name its column; only if it is a title, delete it"
            raise InvalidCost(problem, where=Place(self.source, column=self.wanted[0]), remedy=remedy)

    def _refuse_half(self, texts: Sequence[Sequence[str]], widest: Sequence[str]) -> None:
        """Refuse 0,5 in the first row of a table without names: a number, or two."""
        numbers = [number(cells[0]) for cells in texts if len(cells) == 1]
        two = len(widest) == 2 and any(each is not None and each.mark == "," for each in numbers)
        if two and not set(self.declared.columns) - {"1"}:
            problem = "could be a number with a decimal comma, or two columns"
            remedy = "write decimals with a point, or put a name above every column"
            raise InvalidCost(problem, where=self.place(1), value=",".join(widest), remedy=remedy)

    def refuse(self) -> NoReturn:
        """Refuse a table none of whose first rows has the declared columns, or that has no rows."""
        if ABOVE not in self.skipped:
            raise empty(self.source)
        try:
            self.open(self.widest)
        except InvalidSetting as error:
            if len(self.widest) < 2 and self.unit == "line":
                error.remedy += ("; commas, semicolons or tabs separate columns",)
            raise
        raise InvalidCost("no row names the columns", where=Place(self.source), remedy="put names above them")

    def take(self, rows: Sequence[Row]) -> Block | None:
        """Return the block of some rows; None if none of them is an episode's."""
        width, first = len(self.names), self._header[0]
        return self.keep(
            [  # the usual row needs no look
                row
                for row in rows
                if (len(row[1]) == width and row[1][0] and row[1][0] != first) or self._is_row(*row)
            ]
        )

    def keep(self, kept: Sequence[Row]) -> Block | None:
        """Return the block of rows that are known to be an episode's, as wide as what is read."""
        if not kept:
            return None
        numbers, rows = zip(*kept, strict=True)
        taken = {name: list(map(itemgetter(at), rows)) for name, at in self._places.items()}
        columns: dict[str, Cells] = {**taken}
        numbering = self.numbering or {}
        for name in (*self.layout.questions, *numbering, *self.scenes, *filter(None, [self.first])):
            at = self.names.index(name)  # a short row may lack it
            cells = [row[at] if at < len(row) else None for row in rows]
            columns[name] = [str(cell).strip() if cell is not None else "" for cell in cells]
        for name in list(numbering):
            self._check_numbering(name, numbers, columns[name])
        self.counted += len(kept)
        labels = (*(self.numbering or ()), *self.scenes)
        return Block(self.source, self.unit, numbers, columns, labels, self.first)

    def place(self, number: int, column: str | None = None) -> Place:
        """Return where something is."""
        return Place(self.source, self.unit, number, column)

    def _is_row(self, number: int, cells: Sequence[Any]) -> bool:
        width, count = len(self.names), len(cells)
        if all(cell is None or cell == "" for cell in cells):
            return False
        if self.named and list(cells[:width]) == self._header:
            self._skip("rows that repeat the header", number, str(cells[0]))
            return False
        if count > width and any(cell is not None and cell != "" for cell in cells[width:]):
            problem = f"has {count} cells, the header has {width}"
            remedy = "if a comma is in a note, put the note in quotes"
            raise InvalidCost(problem, where=self.place(number), remedy=remedy)
        if missing := [name for name, index in self._places.items() if index >= count]:
            problem = f"ends before this cell: it has {count} of {width}"
            remedy = "write the cell, with separators for empty ones before it; a heading? delete the row"
            raise InvalidCost(problem, where=self.place(number, missing[0]), remedy=remedy)
        return True

    def _skip(self, what: str, number: int = 0, cell: str = "") -> None:
        """Count what is skipped; refuse what may be a trial, not the next file's header."""
        if len(self.names) == 1 and cell and not (number == 1 and self.distinct):
            words = map(normal, self.layout.measure.success_values)
            if normal(cell) in words or outcome(cell) is not None:
                problem, remedy = "could be the column's name or a trial", "put another name above the column"
                raise InvalidCost(problem, where=self.place(number), value=cell, remedy=remedy)
        self.skipped[what] = self.skipped.get(what, 0) + 1

    def _check_numbering(self, name: str, numbers: Sequence[int], cells: Cells) -> None:
        """Refuse the only row that a column does not number; forget a column that does not number rows."""
        numbering, counted = self.numbering or {}, self.counted
        for place, cell in zip(numbers, cells, strict=True):
            known, first, odd = numbering[name]
            seen = known + str(int(_NUMBERED(cell) is not None))
            if seen in ("0", "1", "01", "11"):
                numbering[name] = (seen, first, odd) if known else (seen, place, cell)
            elif seen in ("110", "011"):
                others = f"{counted} rows {'above' if seen == '110' else 'below'} it"
                first, odd = (place, cell) if seen == "110" else (first, odd)
                remedy = "if it is a total, a mean, a unit or a remark, delete it; a trial? number it"
                where = self.place(first, name)
                raise InvalidCost(f"is not numbered like the {others}", where=where, value=odd, remedy=remedy)
            elif seen != "111":
                del numbering[name]
                return
            counted += 1
