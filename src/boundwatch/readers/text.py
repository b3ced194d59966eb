"""The one parser of text: CSV with commas, semicolons or tabs, JSON lines, and bare values."""

from __future__ import annotations

import codecs
import copy
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from boundwatch.episodes.cells import Notation
from boundwatch.episodes.declared import Declared, Said
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers import arrow, json_rows, sb3
from boundwatch.readers.table import ABOVE, Block, Format, Header, Line, Row, Rows, Table

LONGEST_LINE = 4 << 20
"""Bytes of a line; a longer one is not an episode."""
_CHUNK = 8 << 20  # bytes of a file that are read at once
_DELIMITERS = (",", ";", "\t")
_QUOTED = re.compile(r'\s*"((?:[^"]++|"")*+)"')  # possessive, so that it takes linear time
_QUOTE = re.compile(r'\s*"')
_MOST_LINES = 200  # of a cell in quotes
_MOST_TEXT = 1 << 18
_AT_ONCE = 1 << 14  # lines that are read with care
_WIDE_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAVE = "save it as UTF-8 (in Excel: CSV UTF-8)"


class TextRows:
    """Reads a text line by line, however many lines come at a time; `state` is that of an earlier one."""

    def __init__(self, declared: Declared, source: str, state: Mapping[str, Any] | None = None) -> None:
        self.declared, self.source = declared, source
        self.rows: Rows | None = None
        self.file_format: Format = "csv"
        self.lines = 0
        self._delimiter = ""
        self._header = Header(declared, source, "line")
        self._pending: list[tuple[int, str]] = []  # lines of a cell in quotes that is not closed yet
        self._windows = False
        if state is not None:
            self._restore(**state)

    @property
    def notes(self) -> list[str]:
        """What was done to read the lines so far."""
        skipped = [] if self.rows is None else self.rows.notes
        return [*skipped, "read as Windows-1252"] if self._windows else skipped

    @property
    def state(self) -> dict[str, Any]:
        """What must be known to go on after these lines, as plain JSON values."""
        return {
            "read": [self.file_format, self.lines, self._windows, self._delimiter],
            "pending": self._pending,
            "above": {"skipped": self._header.skipped, "widest": self._header.widest},
            "names": None if self.rows is None else self.rows.names,
            "shown": None if self.rows is None else self.rows.shown,
        }

    def _restore(self, read: Any, pending: Any, above: Any, names: Any, shown: Any) -> None:
        self.file_format, self.lines, self._windows, self._delimiter = read
        self._pending = [(number, text) for number, text in pending]
        # Rows change what they have shown; whoever keeps the state may go back to it again.
        self._header = Header(self.declared, self.source, "line", **copy.deepcopy(above))
        if self.file_format == "sb3-monitor":
            self._header.says = self._monitored
        if names is not None:
            names, shown = tuple(names), copy.deepcopy(shown) | {"notation": Notation(**shown["notation"])}
            bare = not shown["named"] and self.file_format == "csv" and len(names) == 1
            measure = self.declared.resolve(() if bare else names, self._header.says(names))
            self.rows = Rows(names, self.declared, measure, self.source, **shown)

    def table(self, file: IO[bytes]) -> Table:
        """Return the table of a whole file."""
        blocks = self._blocks(file)
        first, rows = next(blocks, None), self.rows
        if first is None or rows is None:
            self._header.refuse()
        listed = rows.names if rows.named or len(rows.names) > 1 or self.file_format == "jsonl" else ()
        table = Table(self.source, self.file_format, listed, rows.measure, iter(()), notation=rows.notation)

        def to_the_end() -> Iterator[Block]:
            yield first
            yield from blocks
            table.notes += self.notes

        table.blocks = to_the_end()
        return table

    def _blocks(self, file: IO[bytes]) -> Iterator[Block]:
        while data := file.read(_CHUNK):
            yield from self.feed(data + file.readline(LONGEST_LINE + 1))
        self.end()

    def feed(self, data: bytes) -> Iterator[Block]:
        """Take whole lines as they are in a file, the last one perhaps without its newline."""
        block = None
        if self.rows is not None and self.file_format != "jsonl" and not self._pending:
            block = arrow.read(data, self.rows, self._delimiter, self.lines + 1)
        if block is not None:
            self.lines += len(block.numbers)
            yield block
            return
        lines = data.removesuffix(b"\n").split(b"\n")
        for begin in range(0, len(lines), _AT_ONCE):
            part = enumerate(lines[begin : begin + _AT_ONCE], start=self.lines + 1)
            if (block := self.take([Line(*line) for line in part])) is not None:
                yield block

    def take(self, lines: Sequence[Line]) -> Block | None:
        """Return the rows that are whole with these lines; None if there is none."""
        texts = self._decoded(lines)
        ready: list[Row] = []
        while self.rows is None:
            if (line := next(texts, None)) is None:
                return None
            ready = self._open(*line)
        if self.file_format == "jsonl":
            return self.rows.keep([*ready, *json_rows.rows(texts, self.rows)])
        for number, text in texts:
            if '"' not in text and not self._pending:
                cells = text.split(self._delimiter) if self._delimiter else [text]
                ready.append((number, list(map(str.strip, cells))))
            elif (whole := self._join(number, text, [self._delimiter])) is not None:
                ready.append((whole[0], whole[1][0]))
        return self.rows.take(ready)

    def end(self) -> None:
        """Say that no more lines come; refuse what is not whole."""
        if self._pending:
            raise self._unclosed()
        if self.rows is None:
            self._header.refuse()

    def _open(self, number: int, text: str) -> list[Row]:
        """Look for the header; return the rows that this line holds already."""
        if ABOVE not in self._header.skipped and text.lstrip().startswith(("{", "[")):
            self.file_format = "jsonl"
            self.rows = json_rows.open_lines(number, text, self.declared, self.source)
            return list(json_rows.rows([(number, text)], self.rows))
        if number == 1 and text.startswith("#{") and sb3.is_monitor(text):
            self.file_format, self._header.says = "sb3-monitor", self._monitored
            return []
        if "\r" in text and '"' not in text:
            problem, remedy = "its lines end with a carriage return alone", "save it as CSV UTF-8"
            raise InvalidCost(problem, where=Place(self.source), remedy=remedy)
        whole = self._join(number, text, _DELIMITERS)
        found = None if whole is None else self._header.take(whole[1])
        if whole is None or found is None:
            return []
        self.rows, way = found
        first, cells = whole[0], whole[1][way]
        self._delimiter = _DELIMITERS[way] if len(cells) > 1 else ""
        return [] if self.rows.named else [(first, cells)]

    def _monitored(self, names: Sequence[str]) -> Said | None:
        return sb3.monitored(names, self.source)

    def _join(self, number: int, text: str, delimiters: Iterable[str]) -> tuple[int, list[list[str]]] | None:
        """Return where a row begins, and its cells with each delimiter, once every quote is closed."""
        self._pending.append((number, text))
        if len(self._pending) > 1 and '"' not in text and len(self._pending) <= _MOST_LINES:
            return None
        whole = "\n".join(line for _, line in self._pending)
        readings = [split(whole, delimiter) for delimiter in delimiters]
        closed = [cells for cells in readings if cells is not None]
        if len(closed) < len(readings):
            if len(self._pending) > _MOST_LINES or len(whole) > _MOST_TEXT:
                raise self._unclosed()
            return None
        first, self._pending = self._pending[0][0], []
        return first, closed

    def _unclosed(self) -> InvalidCost:
        number, text = self._pending[0]
        problem = "opens a quote that is not closed"
        remedy = 'close it, or write "" for a quote within a cell'
        return InvalidCost(problem, where=Place(self.source, "line", number), value=text, remedy=remedy)

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
                raise InvalidCost(problem, where=Place(self.source, "line", number), remedy=remedy)
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
        if not text or (self.rows is None and sum(letter > "\x7f" for letter in text) > len(text) // 3):
            problem, remedy = "is neither UTF-8 nor Windows-1252", f"if it is GBK or Shift-JIS, {_SAVE}"
            raise InvalidCost(problem, where=Place(self.source, "line", number), remedy=remedy)
        self._windows = True
        return text


def long_line(source: str, number: int) -> InvalidCost:
    """Refuse a line that is too long to be an episode."""
    problem, remedy = f"is longer than {LONGEST_LINE >> 20} MiB", "put one episode on each line"
    return InvalidCost(problem, where=Place(source, "line", number), remedy=remedy)


def split(text: str, delimiter: str) -> list[str] | None:
    """Return the cells of a row, without spaces around them; None if a quote is not closed."""
    if '"' not in text:
        return list(map(str.strip, text.split(delimiter) if delimiter else [text]))
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
