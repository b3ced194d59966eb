"""Episodes line by line, from a table that is still being written or from a stream."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from boundwatch._support.notebook import flatten
from boundwatch._support.text import shown
from boundwatch.episodes.formats import AS_FILE, document_fault, listed_too, one_or_two, separator
from boundwatch.episodes.numbers import decimal_mark, parse, parse_decimal
from boundwatch.episodes.sheet import COMMENTED_OUT, Row, commented_out, header_fits, numbering, summary_fault
from boundwatch.episodes.steps import Order, task_columns
from boundwatch.episodes.table import (
    CUSTOMARY,
    DEFAULTS,
    Meaning,
    Table,
    Wanted,
    as_certified,
    check_range,
    in_percent,
    success_words,
    to_costs,
)
from boundwatch.episodes.words import looks_like_outcome, normal
from boundwatch.errors import InvalidCost, InvalidSetting

_LINE = "the line"
_TITLES = 60  # lines above a header, at most


class LineEpisode(NamedTuple):
    """The cost in a line, and all its fields by name, for those who need an id or the name of a robot."""

    cost: float
    fields: Mapping[str, Any]


@dataclass
class LineReader:
    r"""Reads lines as `read_costs` reads files: values, JSON objects, or rows of CSV under their header.

    The first lines decide which. The header of a table is kept, so that it can be put into a state and given
    back (`header`, `delimiter`) when reading goes on in the middle of the file.

    Parameters
    ----------
    wanted
        The column and what it holds, as `Wanted.of` returns it.
    cost_range, binary, success_values
        As in `read_costs`.
    bare_costs
        Whether lines that are numbers, without any name, are costs if nothing else was said.
    certified
        The column that a certificate was made from: it is read where there is one, if none is wanted.
    ranges
        The range that a certificate has for costs, or for rewards: each is for columns that hold the same, if
        there is no `cost_range`.

    Examples
    --------
    >>> lines = LineReader(Wanted.of(success="grasped", cost=None, reward=None))
    >>> [lines.read(text) for text in ("Trials of May", "trial;grasped", "")]
    [None, None, None]
    >>> lines.read("7;Ja").cost, lines.read("8;nein").cost, lines.header
    (0.0, 1.0, ['trial', 'grasped'])
    >>> LineReader(Wanted()).read('{"episode": 3, "success": true}').cost
    0.0
    """

    wanted: Wanted = field(default_factory=Wanted)
    cost_range: tuple[float, float] | None = None
    binary: bool = False
    success_values: Sequence[str] | str = ()
    bare_costs: bool = False
    certified: Wanted = field(default_factory=Wanted)
    ranges: Mapping[Meaning, tuple[float, float]] = field(default_factory=dict)
    header: list[str] | None = None
    delimiter: str = ","
    values_only: bool = False
    """Whether lines were found to be bare values."""
    by_certified: bool | None = None
    """Whether objects are read by the certified column, all of them or none; None before the first."""
    order: Order = field(default_factory=Order)
    """Follows the tasks and episodes that lines name."""
    chosen: tuple[str | None, Meaning] = (None, "cost")
    """The column of the latest line and what it holds; the column is None for bare values."""
    measure: tuple[str | None, Meaning] | None = None
    """The same of the first line, which all others must have, too; None before it."""
    mark: str = ""
    """The decimal mark of the first number that has one, which all others must have, too."""
    noticed: str = ""
    """What should be said about the latest line: why it holds no episode, or how it is read."""
    above: int = 0
    """How many lines have come that are neither values nor objects, before any header."""
    _fresh: bool = True
    _begins: bool = False
    _plans: dict[tuple[str, ...], tuple[str, Meaning]] = field(default_factory=dict, repr=False)
    _failures: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        self.success_values = success_words(self.success_values)

    def range_of(self, meaning: Meaning) -> tuple[float, float] | None:
        """Return the range of a column that holds this: the one that was given, or the certificate's."""
        return self.ranges.get(meaning) if self.cost_range is None else self.cost_range

    def begin_file(self) -> None:
        """Expect that the header comes once more, in a file that goes on where another ended."""
        self._fresh = self._begins = True

    def go_on(self) -> None:
        """Expect no beginning of a file: lines came before."""
        self._fresh = False

    def read(self, text: str) -> LineEpisode | None:
        """Return the episode in a line; None for a blank line, a title, a comment or a header.

        Raises
        ------
        InvalidCost
            When this line holds no cost.
        InvalidSetting
            When it was not said what lines like it hold, or they would be misread.
        """
        self.noticed = ""
        bare = (text.removeprefix("\ufeff") if self._fresh else text).strip()
        if not bare:
            return None
        fields, named = self._fields(bare)
        if fields is None:
            return None
        column, meaning = self._plan(fields, named=named)
        value, chosen = fields[column], ((column if named else None), meaning)
        self._refuse_other_measure(chosen, value)
        mark = "" if meaning == "success" else self._same_mark(chosen, value)
        cost = self._cost(fields, column, meaning, named=named)
        if said := self.order.take(fields) if named else "":
            self._notice(said)
        self.chosen, self.measure, self.mark = chosen, self.measure or chosen, self.mark or mark
        return LineEpisode(cost, fields)

    def _refuse_other_measure(self, chosen: tuple[str | None, Meaning], value: object) -> None:
        """Refuse a line that is not measured the way earlier lines were, which can happen with objects."""
        if self.measure is None or self.measure == chosen or _kind(*self.measure) == _kind(*chosen):
            return
        (was, before), (column, meaning) = self.measure, chosen
        what = shown(value) if column is None else f"column {column!r}"
        had = "no name" if was is None else f"column {was!r}"
        raise InvalidCost(
            f"{what} is a {meaning}, but lines above it had {had}, a {before}; name one with --success, "
            "--cost or --reward"
        )

    def _same_mark(self, chosen: tuple[str | None, Meaning], value: object) -> str:
        """Return the decimal mark of a number; refuse one that is not that of the lines before it."""
        if not isinstance(value, str) or (self.mark == "." and "," not in value):  # the usual case, quickly
            return self.mark
        mark = decimal_mark(value)
        if mark and self.mark and mark != self.mark:
            found, others = ("point", "commas") if mark == "." else ("comma", "points")
            where = "" if chosen[0] is None else f"column {chosen[0]!r} = "
            raise InvalidCost(
                f"{where}{shown(value)} has a decimal {found}, but lines above it have {others}; write all "
                "of them alike"
            )
        return mark

    def _notice(self, said: str) -> None:
        self.noticed = f"{self.noticed}; it {said}" if self.noticed else said

    def _fields(self, text: str) -> tuple[Mapping[str, Any] | None, bool]:
        if self.header is not None:
            return self._cells(text), True
        if text[0] == "{":
            asked, named = (*self._asked(), self.certified.column or ""), self.wanted.column is not None
            if self._fresh and (fault := document_fault(text, asked, named=named)):
                raise InvalidSetting(fault)
            content = _decode(text)
            if self._fresh and named and (twice := listed_too(content, self._asked())) is not None:
                listed, name = twice
                self._notice(
                    f"has {name!r}, and so have the objects in its list {listed!r}: it is counted as one "
                    f"episode; if it is a document of several, give it {AS_FILE}"
                )
            self._fresh = False
            return content, True
        if self.values_only or self._is_value(text):
            if self.above and self.wanted.column != "1":
                raise InvalidSetting(
                    "what is above the numbers may be their header, and without it they mean nothing; "
                    "name the "
                    "column with --success, --cost or --reward"
                )
            if not self.values_only and re.fullmatch(r"\d+,\d+", text):
                raise InvalidSetting(one_or_two(*text.split(",")))
            self.values_only, self._fresh = True, False
            if not self._is_value(text) and self._is_header(text):
                raise InvalidSetting(
                    f"{shown(text)} is the header of a table in the middle of bare values; send one kind "
                    f"of lines"
                )
            return {"1": text.strip('"')}, False
        self._look_for_header(text)
        return None, True

    def _is_value(self, text: str) -> bool:
        bare = text.strip('"')
        if parse(bare) is not None or parse_decimal(bare) is not None:
            return True
        return self.wanted.column == "1" and self.wanted.meaning == "success" and looks_like_outcome(bare)

    def _is_header(self, text: str) -> bool:
        row = Row(_split(text, separator([text], self._asked())), 0)
        return header_fits([row], self._asked())[0]

    def _asked(self) -> tuple[str, ...]:
        return () if self.wanted.column is None else (self.wanted.column,)

    def _look_for_header(self, text: str) -> None:
        asked = self._asked()
        delimiter = separator([text], asked)
        fits = header_fits([Row(_split(text, delimiter), 0)], asked)[0]
        if not fits and not asked and self.certified.column is not None:
            delimiter = separator([text], (self.certified.column,))
            fits = header_fits([Row(_split(text, delimiter), 0)], (self.certified.column,))[0]
        if not fits:
            if self.wanted == Wanted("1", "success") and text[0] != "#":
                raise InvalidSetting(
                    f"{shown(text)} may be a trial or a title; write yes or no, or 1 or 0, or put a name "
                    "above your own words and read them by it (--success NAME)"
                )
            if fault := document_fault(text):
                raise InvalidSetting(fault)
            self.above += 1
            if self.above > _TITLES:
                raise InvalidSetting(
                    f"{shown(text)} is neither a value, a JSON object nor a header with the column to "
                    f"read; name "
                    "that column with --success, --cost or --reward"
                )
            return
        names = _split(text, delimiter)
        names[0] = names[0].lstrip("# ") if names[0] != "#" else names[0]
        table = Table(names, True, lambda _: [])
        found = self.choose(table)  # one that cannot be read ends here
        lines = "the line above it was" if self.above == 1 else f"{self.above} lines above it were"
        said = [f"{lines} skipped"] if self.above else []
        if not asked and table.as_certified(self.certified).column is not None:
            said.append(as_certified(*found))
        if said:
            self._notice(f"is the header, and {'; '.join(said)}")
        self.header, self.delimiter, self._fresh, self._begins = names, delimiter, False, False

    def _cells(self, text: str) -> Mapping[str, Any] | None:
        header = self.header or []
        cells = _split(text, self.delimiter)
        begins, self._fresh, self._begins = self._begins, False, False
        if [normal(cell) for cell in cells] == [normal(name) for name in header]:
            if not begins and all(map(self._is_outcome, filter(None, cells))):
                raise InvalidSetting(
                    f"{shown(text)} could be the column's name or a trial; put another name above it, such "
                    "as outcome, and read it with --success outcome"
                )
            self.noticed = "" if begins else "repeats the header and was skipped"
            return None
        if cells[0].startswith("#"):
            if commented_out(cells, header):
                raise InvalidCost(f"{shown(cells[0])} {COMMENTED_OUT}")
            return None
        if not any(cells):
            return None
        while len(cells) > len(header) and not cells[-1]:
            cells.pop()
        if len(cells) != len(header):
            raise InvalidCost(f"has {len(cells)} fields, the header has {len(header)}; complete it")

        def is_condition(i: int) -> bool:
            # Nobody knows which line is the last. In a full row, such a word is a condition (`max` speed)
            # unless it stands where trials are numbered or tasks are named.
            return all(cells) and i not in numbering(header) and not task_columns([header[i]])

        if fault := summary_fault(cells, header, is_condition):
            raise InvalidCost(fault)
        return dict(zip(header, cells, strict=True))

    def _is_outcome(self, cell: str) -> bool:
        return looks_like_outcome(cell) or normal(cell) in map(normal, self.success_values)

    def _plan(self, fields: Mapping[str, Any], *, named: bool) -> tuple[str, Meaning]:
        if not named and self.bare_costs and self.wanted.column is None:
            if isinstance(parse(fields["1"]), bool):
                raise InvalidCost(
                    f"{shown(fields['1'])} could be a success or a failure; say so with --success 1"
                )
            return "1", "cost"
        key = tuple(fields) if named else ("",)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) > 1000:  # objects with ever new names
                self._plans.clear()
            table = Table(list(fields), named, lambda name: [fields[name]])
            if named and self.header is None and self.wanted.column is None:
                found = self._same_column(table)
            else:
                found = self.choose(table)
            self._plans[key] = found
        return found

    def _same_column(self, table: Table) -> tuple[str, Meaning]:
        """Return the column of an object; refuse one that would not be read the way earlier ones were."""
        column = self.certified.column
        there = table.has(column)
        if self.by_certified is not None and there != self.by_certified:
            if there:
                raise InvalidCost(
                    f"has {column!r}, which was certified, but the first object did not; send it in all, "
                    "or name the column to read with --success, --cost or --reward"
                )
            raise InvalidCost(f"has no {column!r}, which was certified and is read since the first object")
        found = self.choose(table)
        if self.by_certified is None and there:
            self.noticed = f"is the first object, and {as_certified(*found)}"
        self.by_certified = there
        return found

    def choose(self, table: Table) -> tuple[str, Meaning]:
        """Return the column of a table that is read, and what it holds."""
        is_object = table.named and self.header is None and all(map(table.values, table.names[:1]))
        wanted = self.wanted
        # Objects may differ: what is clear in one of them is not in the next.
        if wanted.column is None and (self.certified.column is not None or not is_object):
            wanted = table.as_certified(self.certified)
        try:
            return table.choose(wanted, _LINE)
        except InvalidSetting as error:
            # Other objects may have what this one lacks; all rows of a table, and all bare values, lack it.
            # But if the first object has too much, so have the others.
            many = sum(normal(name) in DEFAULTS for name in table.names) > 1
            undecided = many and wanted.column is None and self.by_certified is None
            kind = InvalidCost if is_object and not undecided else InvalidSetting
            raise kind(str(error).removeprefix(f"{_LINE}: ")) from error

    def _cost(self, fields: Mapping[str, Any], column: str, meaning: Meaning, *, named: bool) -> float:
        value = fields[column]
        cost_range = self.range_of(meaning)
        if meaning == "cost" and not self.binary and not self.success_values:  # the usual case, quickly
            low, high = check_range(cost_range)
            number = value if type(value) is float or type(value) is int else _float(value)
            if number is not None and low <= number <= high and (cost_range or not in_percent(column)):
                return (number - low) / (high - low)
        table = Table(list(fields), named, lambda name: [fields[name]])
        try:
            costs, said = to_costs(
                table,
                column,
                meaning,
                cost_range,
                binary=self.binary,
                source=_LINE,
                success_values=self.success_values,
            )
        except InvalidCost as error:
            message = str(error).removeprefix(f"{_LINE}: row 1").removeprefix(", ").removeprefix(" = ")
            raise InvalidCost(message) from error
        except InvalidSetting as error:
            raise InvalidSetting(str(error).removeprefix(f"{_LINE}: ")) from error
        if said:
            self._notice_failure(str(value).strip())
        return float(costs[0])

    def _notice_failure(self, word: str) -> None:
        """Say once that a word is not among those for success."""
        if word in self._failures:
            return
        if len(self._failures) > 1000:  # texts that are ever new
            self._failures.clear()
        self._failures.add(word)
        self._notice(f"holds {shown(word)}, counted as a failure because it is not among --success-values")


def _kind(column: str | None, meaning: Meaning) -> tuple[str, Meaning]:
    """Return what tells measures apart: neither customary names of the same thing do, nor a lack of names."""
    name = "" if column is None else normal(column)
    return ("" if meaning in CUSTOMARY.get(name, ()) else name), meaning


def _float(value: object) -> float | None:
    found = parse(value) if isinstance(value, str) else None
    return found if isinstance(found, float) else None


def _split(text: str, delimiter: str) -> list[str]:
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter, strict=True))]
    except csv.Error as error:
        raise InvalidCost(f"{shown(text)} is not valid CSV ({error})") from error


def _decode(text: str) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(text, object_pairs_hook=_unique)  # { begins an object
    except InvalidCost:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidCost(f"{shown(text[:40])} is not JSON ({error})") from error
    if any(isinstance(value, dict) for value in content.values()):
        return content | flatten(content)  # what is in an object within is also called outer.inner
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        raise InvalidCost(f"has the name {shown(next(n for n in names if names.count(n) > 1))} twice")
    return values
