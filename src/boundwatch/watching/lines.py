"""Bytes become whole lines, and a position says how far a file of them has been counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

LONGEST_LINE = 1 << 20
"""Bytes; a longer line is malformed and is not kept in memory."""
TORN = b" <cut off>"
"""What a spool has at the end of a line that its sender did not finish, for people to see and replace."""
CUT_OFF = "was cut off: its sender ended in the middle of it"
_TOO_LONG = f"is longer than {LONGEST_LINE >> 20} MiB"

Identity = tuple[int, int]
"""Device and inode: which file it is, whatever its name."""


class Line(NamedTuple):
    """A line of a stream: its number in its file, from 1; its bytes; the byte after it; why it is no line."""

    number: int
    raw: bytes
    end: int
    fault: str = ""


@dataclass(frozen=True)
class Position:
    """How far a file has been counted: all lines up to byte `end`, whose SHA-256 is `digest`."""

    device: int = 0
    inode: int = 0
    end: int = 0
    lines: int = 0
    digest: str = hashlib.sha256().hexdigest()

    @property
    def identity(self) -> Identity:
        """Which file it is."""
        return self.device, self.inode


@dataclass(frozen=True)
class Batch:
    """The whole lines that were there at one look, all from the same file."""

    identity: Identity
    lines: list[Line]
    data: bytes
    start: int
    digest: Any  # of everything before `data`, as hashlib keeps it
    said: str = ""
    """What people should know about the source while they wait for it."""

    @property
    def begins_file(self) -> bool:
        """Whether the first line is the first one of its file."""
        return self.lines[0].number == 1

    def position(self, lines: int) -> Position:
        """Return the position after so many lines of this batch, at least one."""
        last = self.lines[lines - 1]
        digest = self.digest.copy()
        digest.update(memoryview(self.data)[: last.end - self.start])
        return Position(*self.identity, last.end, last.number, digest.hexdigest())


class LineSplitter:
    r"""Makes lines of bytes as they come; a line that is too long is counted but not kept.

    Examples
    --------
    >>> splitter = LineSplitter((0, 0))
    >>> [[line.raw for line in batch.lines] for batch in splitter.feed(b"0.1\n0.2\n0.")]
    [[b'0.1', b'0.2']]
    >>> [[line.raw for line in batch.lines] for batch in splitter.feed(b"3\n")]
    [[b'0.3']]
    """

    def __init__(self, identity: Identity, end: int = 0, number: int = 0, digest: Any = None) -> None:
        self.identity = identity
        self.end = end
        self.number = number
        self._digest = digest or hashlib.sha256()
        self._rest = b""
        self._dropping = False

    @property
    def unfinished(self) -> bool:
        """Whether the last line has no newline yet."""
        return bool(self._rest) or self._dropping

    @property
    def fed(self) -> int:
        """The byte after everything that was fed: that of the last line included, whole or not."""
        return self.end + len(self._rest)

    def feed(self, chunk: bytes) -> Iterator[Batch]:
        """Take bytes and yield the lines that are whole by now."""
        if self._dropping:
            cut = chunk.find(b"\n") + 1
            self._skip(chunk[:cut] or chunk)
            if not cut:
                return
            self._dropping = False
            yield self._too_long()
            chunk = chunk[cut:]
        data = self._rest + chunk
        cut = data.rfind(b"\n") + 1
        if cut:
            yield self._batch(data[:cut])
        self._rest = data[cut:]
        if len(self._rest) > LONGEST_LINE:
            self._skip(self._rest)
            self._rest, self._dropping = b"", True

    def finish(self, fault: str = "") -> Iterator[Batch]:
        """Yield the last line, which has no newline."""
        if self._dropping:
            self._dropping = False
            yield self._too_long()
        elif self._rest:
            rest, self._rest = self._rest, b""
            yield self._batch(rest, fault)

    def _batch(self, data: bytes, fault: str = "") -> Batch:
        start, number, end = self.end, self.number, self.end
        lines = []
        for raw in data.removesuffix(b"\n").split(b"\n"):
            number += 1
            end += len(raw) + 1
            if len(raw) > LONGEST_LINE:
                lines.append(Line(number, b"", end, _TOO_LONG))
            elif raw.endswith(TORN):
                lines.append(Line(number, raw, end, CUT_OFF))
            else:
                lines.append(Line(number, raw, end, fault))
        if not data.endswith(b"\n"):
            lines[-1] = lines[-1]._replace(end=end - 1)
        before = self._digest.copy()
        self._digest.update(data)
        self.number, self.end = number, start + len(data)
        return Batch(self.identity, lines, data, start, before)

    def _skip(self, data: bytes) -> None:
        self._digest.update(data)
        self.end += len(data)

    def _too_long(self) -> Batch:
        self.number += 1
        lines = [Line(self.number, b"", self.end, _TOO_LONG)]
        return Batch(self.identity, lines, b"", self.end, self._digest.copy())


def awaited(number: int) -> str:
    """Say that a line is not finished.

    Examples
    --------
    >>> awaited(3)
    'line 3 has no newline yet; it is counted once it has one'
    """
    return f"line {number} has no newline yet; it is counted once it has one"
