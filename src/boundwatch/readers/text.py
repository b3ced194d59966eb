"""The one parser of text: CSV with commas, semicolons or tabs, JSON, and bare values.

A field of a field of a JSON object is called outer.inner.
"""

from __future__ import annotations

import codecs
import copy
import csv
import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from operator import itemgetter
from typing import IO, Any

from boundwatch.episodes.cells import Notation
from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers import arrow, sb3
from boundwatch.readers.table import ABOVE, Block, Format, Line, Row, Rows, Table, empty, in_parts

LONGEST_LINE = 4 << 20
"""Bytes of a line; a longer one is not an episode."""
_FIRST, _CHUNK = 1 << 16, 8 << 20  # bytes of a file that are read at once; the first with care
_DELIMITERS = (",", ";", "\t")
_MOST_LINES = 200  # of a cell in quotes
_MOST_TEXT = 1 << 18
_AT_ONCE = 1 << 14  # lines that are read with care
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_KEPT = (
    *("file_format", "lines", "delimiter", "pending", "windows"),
    *("says", "names", "named", "counted", "numbering", "skipped", "widest", "above", "asked", "distinct"),
)
_SAVE = "save it as UTF-8 (in Excel: CSV UTF-8)"


class TextRows(Rows):
    """Reads a text line by line, however many lines come at a time; `state` is that of an earlier one."""

    def __init__(self, declared: Declared, source: str, state: Mapping[str, Any] | None = None) -> None:
        super().__init__(declared, source)
        self.file_format: Format = "csv"
        self.lines = 0
        self.delimiter = ""
        self.pending: list[tuple[int, str]] = []  # lines of a cell in quotes that is not closed yet
        if state is not None:
            vars(self).update(copy.deepcopy(dict(state)))  # whoever keeps it may go back to it again
            self.notation = Notation(**state["notation"])
            if self.names:
                self.open(self.names, named=self.named)

    @property
    def state(self) -> dict[str, Any]:
        """What must be known to go on after these lines, as plain JSON values."""
        return {name: getattr(self, name) for name in _KEPT} | {"notation": dataclasses.asdict(self.notation)}

    def read(self, file: IO[bytes]) -> Table:
        """Return the table of a whole file."""
        blocks = self._blocks(file)
        if (first := next(blocks, None)) is None:
            raise empty(self.source)
        self.blocks = chain([first], blocks)
        return self

    def _blocks(self, file: IO[bytes]) -> Iterator[Block]:
        size = _FIRST
        while data := file.read(size):
            yield from self.feed(data + file.readline(LONGEST_LINE + 1))
            size = _CHUNK
        self.end()

    def feed(self, data: bytes) -> Iterator[Block]:
        """Take whole lines as they are in a file, the last one perhaps without its newline."""
        block = None
        if self.names and self.file_format != "jsonl" and not self.pending:
            block = arrow.read(data, self, self.delimiter, self.lines + 1)
        if block is not None:
            self.lines += len(block)
            yield block
            return
        lines = data.removesuffix(b"\n").split(b"\n")
        for begin in range(0, len(lines), _AT_ONCE):
            part = enumerate(lines[begin : begin + _AT_ONCE], start=self.lines + 1)
            if block := self.take_lines(list(starmap(Line, part))):
                yield block

    def take_lines(self, lines: Sequence[Line]) -> Block | None:
        """Return the rows that are whole with these lines; None if there is none."""
        texts = self._decoded(lines)
        ready: list[Row] = []
        while not self.names:
            if (line := next(texts, None)) is None:
                return None
            ready = self._open_text(*line)
        if self.file_format == "jsonl":
            return self.keep([*ready, *_objects(texts, self)])
        for number, text in texts:
            if '"' not in text and not self.pending:
                cells = text.split(self.delimiter) if self.delimiter else [text]
                ready.append((number, list(map(str.strip, cells))))
            elif (whole := self._join(number, text, [self.delimiter])) is not None:
                ready.append((whole[0], whole[1][0]))
        return self.take(ready)

    def end(self) -> None:
        """Say that no more lines come; refuse what is not whole."""
        if self.pending:
            raise self._unclosed()
        if not self.names:
            self.refuse()

    def _open_text(self, number: int, text: str) -> list[Row]:
        """Look for the header; return the rows that this line holds already."""
        if ABOVE not in self.skipped and text.lstrip().startswith(("{", "[")):
            self.file_format = "jsonl"
            _open_objects(number, text, self)
            return list(_objects([(number, text)], self))
        if number == 1 and text.startswith("#{") and sb3.is_monitor(text):
            self.file_format, self.says = "sb3-monitor", ("reward", "r")
            return []
        if "\r" in text and '"' not in text:
            problem, remedy = "its lines end with a carriage return alone", "save it as CSV UTF-8"
            raise InvalidCost(problem, where=Place(self.source), remedy=remedy)
        whole = self._join(number, text, _DELIMITERS)
        if whole is not None and self.file_format == "sb3-monitor":
            self.says = sb3.monitored(whole[1][0], self.source)
        way = None if whole is None else self.find(whole[1])
        if whole is None or way is None:
            return []
        first, cells = whole[0], whole[1][way]
        self.delimiter = _DELIMITERS[way] if len(cells) > 1 else ""
        return [] if self.named else [(first, cells)]

    def _join(self, number: int, text: str, delimiters: Iterable[str]) -> tuple[int, list[list[str]]] | None:
        """Return where a row begins, and its cells with each delimiter, once every quote is closed."""
        self.pending.append((number, text))
        if len(self.pending) > 1 and '"' not in text and len(self.pending) <= _MOST_LINES:
            return None
        whole = "\n".join(map(itemgetter(1), self.pending))
        readings = [_split(whole, delimiter) for delimiter in delimiters]
        closed = [cells for cells in readings if cells is not None]
        if len(closed) < len(readings):
            if len(self.pending) > _MOST_LINES or len(whole) > _MOST_TEXT:
                raise self._unclosed()
            return None
        first, self.pending = self.pending[0][0], []
        return first, closed

    def _unclosed(self) -> InvalidCost:
        number, text = self.pending[0]
        problem = "opens a quote that is not closed"
        remedy = 'close it, or write "" for a quote within a cell'
        return InvalidCost(problem, where=self.place(number), value=text, remedy=remedy)

    def _decoded(self, lines: Iterable[Line]) -> Iterator[tuple[int, str]]:
        for number, raw in lines:
            self.lines = number
            if len(raw) > LONGEST_LINE:
                raise long_line(self.source, number)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError:
                text = self._foreign(number, raw)
            if "\0" in text:
                problem, remedy = "holds a NUL byte, so it is not text", "save it as CSV UTF-8"
                raise InvalidCost(problem, where=self.place(number), remedy=remedy)
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).removesuffix("\r")

    def _foreign(self, number: int, raw: bytes) -> str:
        """Return a line as Windows-1252; refuse what is not that, either."""
        if number == 1 and raw.startswith(_WIDE_MARKS):
            problem = "is UTF-16, and a text that grows is read as UTF-8"
            raise InvalidCost(problem, where=Place(self.source), remedy=_SAVE)
        try:
            text = raw.decode("cp1252")
        except UnicodeDecodeError:
            text = ""
        if not text or (not self.names and sum(letter > "\x7f" for letter in text) > len(text) // 3):
            problem, remedy = "is neither UTF-8 nor Windows-1252", f"if it is GBK or Shift-JIS, {_SAVE}"
            raise InvalidCost(problem, where=self.place(number), remedy=remedy)
        self.windows = True
        return text


def long_line(source: str, number: int) -> InvalidCost:
    """Refuse a line that is too long to be an episode."""
    problem, remedy = f"is longer than {LONGEST_LINE >> 20} MiB", "put one episode on each line"
    return InvalidCost(problem, where=Place(source, "line", number), remedy=remedy)


def _split(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a row, without spaces around them; None if a quote is not closed."""
    if '"' not in text:
        return list(map(str.strip, text.split(delimiter) if delimiter else [text]))
    try:
        rows = list(csv.reader([text, "end"], delimiter=delimiter or "\x1f", skipinitialspace=True))
    except csv.Error:  # a newline outside of quotes: with this delimiter it is no table
        return [text.strip()]
    return list(map(str.strip, rows[0])) if len(rows) == 2 else None


_ONE = "write one object per line, one per episode, or an array of them"
_DEEPEST = 32


def _open_objects(number: int, text: str, rows: Rows) -> None:
    """Take the columns of JSON lines from the first one; refuse a document that holds all episodes."""
    where = rows.place(number)
    open_ended = text.count("{") > text.count("}") and text.rstrip().endswith(("{", "[", ",", ":"))
    if text.lstrip().startswith("[") or open_ended:  # not a line that may be skipped
        problem = "begins a JSON document over several lines, which cannot be read line by line"
        raise InvalidSetting(problem, where=where, remedy="write one object per line, one per episode")
    first = _flat(document(text, where), where)
    lists = [name for name, value in first.items() if isinstance(value, list)]
    whole = [name for name in lists if first[name] and isinstance(first[name][0], dict)]
    if rows.declared.measure is None and whole:
        kinds = (Argument("success"), ", ", Argument("cost"), " or ", Argument("reward"))
        problem = f"could be one episode or a document, as it has a list {whole[0]!r} of objects"
        ways = ("for an episode name its column with ", *kinds, f"; for a document, {_ONE}")
        raise InvalidCost(problem, where=where, remedy=ways)
    try:
        rows.open(tuple(first), named=False)
    except InvalidSetting as error:
        if lists or any("." in name for name in first):
            error.remedy += (f"; if this is a document of all episodes, {_ONE}",)
        raise


def _objects(lines: Iterable[tuple[int, str]], table: Rows) -> Iterator[Row]:
    """Yield the cells of each object, in the order of the first one's names."""
    for number, text in lines:
        if text and not text.isspace():
            yield number, _cells(document(text, table.place(number)), table, number)


def read_array(data: bytes, source: str, declared: Declared) -> Table:
    """Read an array: its elements are rows, all of them objects or none."""
    elements = document(data, Place(source))
    if not elements or not isinstance(elements, list):
        raise empty(source)
    names = tuple(_flat(elements[0], Place(source, "row", 1))) if isinstance(elements[0], dict) else ()
    table = Rows(declared, source, "row")
    table.open(names or ("1",), named=False)

    def cells() -> Iterator[Row]:
        for number, element in enumerate(elements, start=1):
            content = element if names or isinstance(element, dict) else {"1": element}
            yield number, _cells(content, table, number)

    table.file_format, table.blocks = "json", filter(None, map(table.keep, in_parts(cells())))
    return table


def document(data: bytes | str, where: Place) -> Any:
    """Return what JSON holds; NaN is read as JSON's writers in Python write it, a name twice is refused."""
    try:
        return json.loads(data, object_pairs_hook=_unique)
    except InvalidCost as error:
        raise error.at(where) from None
    except (ValueError, RecursionError) as error:
        if where.number is None and isinstance(error, json.JSONDecodeError):
            where = Place(where.source, "line", error.lineno)
        raise InvalidCost("is not valid JSON", where=where, remedy=f"was it cut short? {_ONE}") from None


def _cells(element: object, table: Rows, number: int) -> list[Any]:
    """Return an object's cells; what was asked for must be there, and be a value."""
    content = _flat(element, table.place(number))
    for name in table.wanted:
        if name not in content:
            where = table.place(number, name)
            raise InvalidCost("is missing", where=where, remedy="every episode needs it")
        if isinstance(content[name], list) and name not in table.lists:
            where, problem = table.place(number, name), "is a list, not the value of one episode"
            raise InvalidCost(problem, where=where, value=content[name], remedy=_ONE)
    return [value.strip() if isinstance(value, str) else value for value in map(content.get, table.names)]


def _flat(content: object, where: Place) -> dict[str, Any]:
    """Return an object without objects within; refuse anything else."""
    if not isinstance(content, dict):
        raise InvalidCost("is not a JSON object", where=where, value=content, remedy=_ONE)
    if dict not in map(type, content.values()):  # the usual case
        return content
    try:
        return _unique(list(fields(content)))
    except InvalidCost as error:
        raise error.at(where) from None


def fields(content: dict[str, Any], prefix: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, and of objects within."""
    for name, value in content.items():
        if isinstance(value, dict) and depth:
            yield from fields(value, f"{prefix}{name}.", depth - 1)
        else:
            yield f"{prefix}{name}", value


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidCost(f"has {double!r} twice", remedy="name each value once")
    return content
