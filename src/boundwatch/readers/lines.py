"""Bytes become whole lines, from a pipe or a file, and a position says how far they were counted."""

from __future__ import annotations

import hashlib
import os
import select
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from msgspec import Meta

from boundwatch._support.schema import convert
from boundwatch.readers.table import Line
from boundwatch.readers.text import LONGEST_LINE, long_line

POLL = 0.1
"""Seconds between two looks at what does not grow."""
CHUNK = 1 << 20
_Whole = Annotated[int, Meta(ge=0)]
_EMPTY = hashlib.sha256().hexdigest()


@dataclass(frozen=True)
class Position:
    """How far a file has been counted: all lines up to byte `offset`, whose SHA-256 is `digest`."""

    offset: _Whole = 0
    lines: _Whole = 0
    digest: str = _EMPTY
    device: _Whole = 0
    inode: _Whole = 0

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, whatever its name."""
        return self.device, self.inode

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Position:
        """Return what `to_dict` wrote."""
        return convert(cls, content, "position")


@dataclass(frozen=True)
class Batch:
    """The whole lines that were there at one look, all from the same file; none if nothing came."""

    lines: Sequence[Line] = ()
    begins: bool = False  # the first one is the first of its file: another header may follow
    torn: bool = False  # the last one has no newline: its sender ended in the middle of it, or will go on
    note: str = ""  # what people should know about the source
    start: Position = Position()
    before: Any = None  # the digest of all bytes before these lines, as hashlib keeps it

    def position(self, count: int | None = None) -> Position:
        """Return the position after so many of these lines; left out, after all."""
        counted = self.lines if count is None else self.lines[:count]
        if not counted:
            return self.start
        whole = len(counted) < len(self.lines) or not self.torn
        data = b"\n".join([line.raw for line in counted]) + b"\n" * whole
        digest = self.before.copy()
        digest.update(data)
        where = self.start.offset + len(data), counted[-1].number
        return Position(*where, digest.hexdigest(), self.start.device, self.start.inode)


class LineSplitter:
    """Makes lines of bytes as they come."""

    def __init__(self, source: str, start: Position = Position(), digest: Any = None) -> None:  # noqa: B008
        self.source, self.at = source, start
        self.digest = digest or hashlib.sha256()
        self.rest = b""

    def feed(self, chunk: bytes) -> Batch:
        """Take bytes, and return the lines that are whole by now."""
        data = self.rest + chunk
        cut = data.rfind(b"\n") + 1
        self.rest = data[cut:]
        if len(self.rest) > LONGEST_LINE:
            raise long_line(self.source, self.at.lines + data.count(b"\n") + 1)
        return self._batch(data[:cut], torn=False) if cut else Batch(start=self.at)

    def finish(self) -> Iterator[Batch]:
        """Yield the last line, which has no newline, if there is one."""
        if self.rest:
            data, self.rest = self.rest, b""
            yield self._batch(data, torn=True)

    def _batch(self, data: bytes, *, torn: bool) -> Batch:
        at, parts = self.at, data.removesuffix(b"\n").split(b"\n")
        lines = [Line(number, raw) for number, raw in enumerate(parts, start=at.lines + 1)]
        batch = Batch(lines, at.lines == 0, torn, "", at, self.digest.copy())
        self.digest.update(data)
        end, count = at.offset + len(data), at.lines + len(lines)
        self.at = replace(at, offset=end, lines=count, digest=self.digest.hexdigest())
        return batch


def pipe_lines(handle: int, source: str, *, follow: bool = False) -> Iterator[Batch]:
    """Yield whole lines from a pipe until its last sender has ended; `follow` waits for the next one.

    While nothing comes, empty batches do, so that whoever iterates can stop or do something else. A last line
    without newline is torn: it is never joined to what another sender writes.
    """
    splitter = LineSplitter(source)
    while True:
        if not select.select([handle], [], [], POLL)[0]:
            yield Batch(start=splitter.at)
        elif chunk := os.read(handle, CHUNK):
            if (batch := splitter.feed(chunk)).lines:
                yield batch
        else:
            yield from splitter.finish()
            if not follow:
                return
            yield Batch(start=splitter.at)
            time.sleep(POLL)
