"""The one parser of text: CSV with commas, semicolons or tabs, JSON lines, and bare values."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from boundwatch.episodes.declared import Declared, Said
from boundwatch.errors import InvalidCost, Place, Refusal
from boundwatch.readers import arrow, json_rows, sb3
from boundwatch.readers.block import Block, Format, Line
from boundwatch.readers.rows import Header, Row, Rows, remembered, restore

LONGEST_LINE = 4 << 20
"""Bytes of a line; a longer one is no episode."""
_DELIMITERS = (",", ";", "\t")
_QUOTED = re.compile(r'\s*"((?:[^"]++|"")*+)"')  # possessive, so that it takes linear time
_QUOTE = re.compile(r'\s*"')
_MOST_LINES = 200  # of a cell in quotes
_MOST_TEXT = 1 << 18
_CAREFUL = 256  # first lines, which are never read fast: they show what the columns hold
_LOOKED_FOR = ("above", "remarks", "widest", "separator")  # what a header knows
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE)


class TextRows:
    r"""Reads a text line by line, however many lines come at a time.

    Parameters
    ----------
    declared
        What to read.
    source
        What people call it.
    state
        What `state` was after the lines that were taken before.

    Examples
    --------
    >>> rows = TextRows(Declared(), "lab.csv")
    >>> rows.take([Line(1, b"trial,cost"), Line(2, b"1,0.5"), Line(3, b"2,0.25")]).columns["cost"]
    array([0.5 , 0.25])
    """

    def __init__(self, declared: Declared, source: str, state: Mapping[str, Any] | None = None) -> None:
        self.declared, self.source = declared, source
        self.rows: Rows | None = None
        self.file_format: Format = "csv"
        self.lines = 0
        self._delimiter = ""
        self._header = Header(declared, source, "line", self._own)
        self._pending: list[tuple[int, str]] = []  # lines of a cell in quotes that is not closed yet
        self._windows = False
        if state is not None:
            self._restore(state)

    @property
    def notes(self) -> list[str]:
        """What was done to read the lines so far."""
        found = [] if self.rows is None else self.rows.notes()
        return [*found, "read as Windows-1252"] if self._windows else found

    @property
    def state(self) -> dict[str, Any]:
        """What must be known to go on after these lines, as plain JSON values."""
        rows = self.rows
        return {
            "format": self.file_format,
            "lines": self.lines,
            "windows": self._windows,
            "pending": [list(line) for line in self._pending],
            "above": {name: getattr(self._header, name) for name in _LOOKED_FOR},
            "delimiter": self._delimiter,
            "names": None if rows is None else list(rows.names),
            "rows": None if rows is None else remembered(rows),
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self.file_format, self.lines = state["format"], state["lines"]
        self._windows, self._delimiter = state["windows"], state["delimiter"]
        self._pending = [(number, text) for number, text in state["pending"]]
        self._header = replace(self._header, **state["above"])
        self._header.widest = tuple(self._header.widest)
        if (known := state["rows"]) is not None:
            names = tuple(state["names"])
            bare = not known["named"] and self.file_format == "csv" and len(names) == 1
            measure = self.declared.resolve(() if bare else names, self._own(names))
            self.rows = Rows(names, self.declared, measure, self.source)
            restore(self.rows, known)

    def feed(self, data: bytes) -> Iterable[Block]:
        """Take whole lines as they are in a file, the last one perhaps without its newline."""
        start = 0
        while start < len(data) and self.rows is None:
            cut = data.find(b"\n", start) + 1 or len(data)
            yield from filter(None, [self.take([Line(self.lines + 1, data[start:cut].rstrip(b"\n"))])])
            start = cut
        if start < len(data) and self.lines < _CAREFUL:
            few = data[start:].split(b"\n", _CAREFUL)
            rest = few.pop() if len(few) > _CAREFUL or not few[-1] else b""
            start = len(data) - len(rest)
            yield from filter(None, [self.take(self._numbered(few))])
        if start >= len(data):
            return
        rest = data[start:] if start else data
        block = None
        if self.file_format != "jsonl" and not self._pending and self.rows is not None:
            block = arrow.read(rest, self.rows, self._delimiter, self.lines + 1)
        if block is not None:
            self.lines += len(block)
            yield block
            return
        lines = rest.removesuffix(b"\n").split(b"\n")
        for begin in range(0, len(lines), _CAREFUL << 6):
            part = lines[begin : begin + (_CAREFUL << 6)]
            yield from filter(None, [self.take(self._numbered(part))])

    def _numbered(self, raw: Sequence[bytes]) -> list[Line]:
        return [Line(number, line) for number, line in enumerate(raw, start=self.lines + 1)]

    def take(self, lines: Sequence[Line]) -> Block | None:
        """Return the rows that are whole with these lines; None if there is none."""
        texts = [(line.number, self._decode(line)) for line in lines]
        if lines:
            self.lines = lines[-1].number
        begin = 0
        ready: list[Row] = []
        while self.rows is None and begin < len(texts):
            ready = self._open(*texts[begin])
            begin += 1
        if self.rows is None:
            return None
        if self.file_format == "jsonl":
            return self.rows.keep([*ready, *json_rows.rows(texts[begin:], self.rows)])
        for number, text in texts[begin:]:
            if '"' not in text and not self._pending:
                cells = text.split(self._delimiter) if self._delimiter else [text]
                ready.append((number, [cell.strip() for cell in cells]))
            elif (whole := self._join(number, text)) is not None:
                ready.append(whole)
        return self.rows.take(ready)

    def end(self) -> Block | None:
        """Say that no more lines come; refuse what is not whole."""
        if self._pending:
            raise self._unclosed()
        if self.rows is None:
            if self._header.above:
                self._header.refuse()
            raise InvalidCost("has no episode", where=Place(self.source), remedy="at least one is needed")
        return None

    def _open(self, number: int, text: str) -> list[Row]:
        """Look for the header; return the rows that this line holds already."""
        if self._header.above == 0 and text.lstrip().startswith(("{", "[")):
            self.file_format = "jsonl"
            self.rows = json_rows.open_lines(number, text, self.declared, self.source)
            return list(json_rows.rows([(number, text)], self.rows))
        if number == 1 and sb3.is_monitor(text):
            self.file_format = "sb3-monitor"
            return []
        if "\r" in text and '"' not in text:
            problem, remedy = "its lines end with a carriage return alone", "save it as CSV UTF-8"
            raise InvalidCost(problem, where=Place(self.source), remedy=remedy)
        self._pending.append((number, text))
        whole, first = "\n".join(line for _, line in self._pending), self._pending[0][0]
        readings = [split(whole, delimiter) for delimiter in _DELIMITERS]
        if None in readings:
            return self._await(whole)
        self._pending = []
        found = self._header.take(list(filter(None, readings)))
        if found is None:
            return []
        self.rows, way = found
        cells = readings[way] or []
        self._delimiter = _DELIMITERS[way] if len(cells) > 1 else ""
        return [] if self.rows.named else [(first, cells)]

    def _own(self, names: Sequence[str]) -> Said | None:
        return sb3.monitored(names, self.source) if self.file_format == "sb3-monitor" else None

    def _join(self, number: int, text: str) -> Row | None:
        """Return the cells of lines that have quotes, once every quote is closed."""
        self._pending.append((number, text))
        if len(self._pending) > 1 and '"' not in text and len(self._pending) <= _MOST_LINES:
            return None
        whole = "\n".join(line for _, line in self._pending)
        cells = split(whole, self._delimiter)
        if cells is None:
            self._await(whole)
            return None
        first, self._pending = self._pending[0][0], []
        return first, cells

    def _await(self, whole: str) -> list[Row]:
        if len(self._pending) > _MOST_LINES or len(whole) > _MOST_TEXT:
            raise self._unclosed()
        return []

    def _unclosed(self) -> Refusal:
        number, text = self._pending[0]
        problem = "opens a quote that is not closed"
        remedy = 'close it, or write "" for a quote within a cell'
        return InvalidCost(problem, where=self._at(number), value=text, remedy=remedy)

    def _at(self, number: int) -> Place:
        return Place(self.source, "line", number)

    def _decode(self, line: Line) -> str:
        number, raw = line
        if len(raw) > LONGEST_LINE:
            raise long_line(self.source, number)
        if number == 1:
            if raw.startswith(_WIDE_MARKS):
                problem = "is UTF-16, and a text that grows is read as UTF-8"
                remedy = "save it as UTF-8 (in Excel: CSV UTF-8)"
                raise InvalidCost(problem, where=Place(self.source), remedy=remedy)
            raw = raw.removeprefix(codecs.BOM_UTF8)
        if b"\0" in raw:
            raise InvalidCost(
                "holds a NUL byte, so it is no text", where=self._at(number), remedy="save it as CSV UTF-8"
            )
        try:
            return raw.decode("utf-8").removesuffix("\r")
        except UnicodeDecodeError:
            pass
        try:
            text = raw.decode("cp1252").removesuffix("\r")
        except UnicodeDecodeError:
            raise self._foreign(number) from None
        self._windows = True
        if self.rows is None and sum(letter > "\x7f" for letter in text) > len(text) // 3:
            raise self._foreign(number)
        return text

    def _foreign(self, number: int) -> Refusal:
        problem = "is neither UTF-8 nor Windows-1252"
        remedy = "if it is GBK or Shift-JIS, save it as UTF-8 (in Excel: CSV UTF-8)"
        return InvalidCost(problem, where=self._at(number), remedy=remedy)


def long_line(source: str, number: int) -> Refusal:
    """Refuse a line that is too long to be an episode."""
    problem, remedy = f"is longer than {LONGEST_LINE >> 20} MiB", "put one episode on each line"
    return InvalidCost(problem, where=Place(source, "line", number), remedy=remedy)


def split(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a row, without spaces around them; None if a quote is not closed."""
    if '"' not in text:
        return [cell.strip() for cell in (text.split(delimiter) if delimiter else [text])]
    cells, start = [], 0
    while True:
        quoted = _QUOTED.match(text, start)
        if quoted is None and _QUOTE.match(text, start):
            return None
        after = start if quoted is None else quoted.end()
        end = text.find(delimiter, after) if delimiter else -1
        rest = text[after:] if end < 0 else text[after:end]
        inside = "" if quoted is None else quoted[1].replace('""', '"')
        cells.append(f"{inside}{rest if quoted is None else rest.rstrip()}".strip())
        if end < 0:
            return cells
        start = end + 1
