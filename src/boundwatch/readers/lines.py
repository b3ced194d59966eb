"""Bytes become whole lines, from a pipe or a file that grows, each of them once.

A position says how far a file was counted, through renames and rotations.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import select
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Annotated, Any, NoReturn

from msgspec import Meta

from boundwatch.errors import InvalidSetting, MissingFile, Place
from boundwatch.readers.table import Line
from boundwatch.readers.text import LONGEST_LINE, long_line

POLL = 0.1
"""Seconds between two looks at what does not grow."""
CHUNK = 1 << 20
_Whole = Annotated[int, Meta(ge=0)]
_EMPTY = hashlib.sha256().hexdigest()
_EDGE = 4096  # bytes at the beginning and before the place: they change if a file is emptied and refilled
_PATIENCE = 20  # looks until a name that holds nothing, or less than was counted, is an error
_NUMBER = r"\d[\d.\-_:TZ]*"
_ANOTHER = "it was written anew: it begins with the {} lines counted"
_ANEW = "start anew with all of its files, or restore the one that was counted"


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


@dataclass(frozen=True)
class Batch:
    """The whole lines that were there at one look, all from the same file; none if nothing came."""

    lines: Sequence[Line] = ()
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

    def __init__(self, source: str, start: Position, digest: Any = None) -> None:
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
        batch = Batch(lines, torn, "", at, self.digest.copy())
        self.digest.update(data)
        end, count = at.offset + len(data), at.lines + len(lines)
        self.at = replace(at, offset=end, lines=count, digest=self.digest.hexdigest())
        return batch


def pipe_lines(handle: int, source: str, *, follow: bool = False) -> Iterator[Batch]:
    """Yield whole lines from a pipe until its last sender has ended; `follow` waits for the next one.

    While nothing comes, empty batches do, so that whoever iterates can stop or do something else. A last line
    without newline is torn: it is never joined to what another sender writes.
    """
    splitter = LineSplitter(source, Position())
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


class GrowingFile:
    """Batches of whole lines of a file, or of a named pipe, from the position where they were last counted.

    The open file is read to its end, then the new one under its name. If the old one got a number or a date
    (``log.csv.1``, ``log-2026-11-15.csv``), it was rotated. If it has no name anymore, or that of an editor's
    backup (``log.csv~``), and the new one begins with what was counted, it is the same file written anew.
    Under any other name it was rotated if the new one is shorter by a quarter, and begins otherwise.
    Anything else is refused: lines would be lost or counted twice.

    `follow` waits for more. While nothing comes, empty batches do, so that whoever iterates can stop or do
    something else. A last line without newline is then left for later; else it is yielded as torn.

    Guarantee: no line is yielded twice or skipped as long as files are only appended to, renamed, or replaced
    by ones that begin with what was there; what contradicts that within the first and last 4 KiB that were
    counted is refused.
    """

    def __init__(
        self, path: str | os.PathLike[str], position: Position | None = None, *, follow: bool
    ) -> None:
        self.path, self.follow = Path(path), follow
        self.known = position or Position()
        self._opened: list[IO[bytes]] = []
        self._file: IO[bytes]
        self._lines: LineSplitter
        self._edges = (b"", b"")
        self._rest, self._told = b"", 0
        self._numbered, self._rotated = map(self._named, (_NUMBER, f"({_NUMBER}|bak|old|prev|orig|)"))

    def __iter__(self) -> Iterator[Batch]:
        try:
            for _ in range(_PATIENCE if self.known.inode else 0):  # it may just be rotated
                if self.path.exists():
                    break
                time.sleep(POLL)
            if self.path.exists() and not self.path.is_file():  # a pipe, or a terminal
                # Open until the end, or what a sender writes between two others would be lost.
                yield from pipe_lines(self._open().fileno(), str(self.path), follow=self.follow)
                return
            self._resume()
            if self.known.inode and self._lines.at.identity != self.known.identity and self.known.lines:
                yield Batch(note=_ANOTHER.format(self.known.lines))
            yield from self._go_on()
        except FileNotFoundError as error:
            raise MissingFile("no such file", where=Place(str(self.path)), remedy="check the path") from error
        except OSError as error:
            self._refuse(f"cannot be read ({error.strerror})", "check the path")
        finally:
            for file in self._opened:
                file.close()

    def _go_on(self) -> Iterator[Batch]:
        while True:
            yield from self._read()
            replaced = self._replaced()
            if replaced is not None:
                yield from self._read()  # what was written before the name changed
                yield from self._turn_to(replaced)
            elif not self.follow:
                yield from self._lines.finish()
                return
            else:
                yield Batch(start=self._lines.at, note=self._resting())
                time.sleep(POLL)

    def _resting(self) -> str:
        """Say once that a line has no newline, when it stays so."""
        rest, number = self._lines.rest, self._lines.at.lines + 1
        stays, self._rest = bool(rest) and rest == self._rest, rest
        if not stays or number == self._told:
            return ""
        self._told = number
        return f"line {number} has no newline yet; it is counted once it has one"

    def _refuse(self, problem: str, remedy: str = _ANEW) -> NoReturn:
        raise InvalidSetting(problem, where=Place(str(self.path)), remedy=remedy)

    def _open(self, path: Path | None = None) -> IO[bytes]:
        self._opened.append((path or self.path).open("rb", buffering=0))
        return self._opened[-1]

    def _begin(self, file: IO[bytes], at: Position, digest: Any = None) -> None:
        for other in self._opened:
            if other is not file:
                other.close()
        self._opened = [file]
        device, inode = _identity(os.fstat(file.fileno()))
        self._file = file
        self._lines = LineSplitter(str(self.path), replace(at, device=device, inode=inode), digest)
        self._edges = self._look(at.offset)

    def _look(self, end: int) -> tuple[bytes, bytes]:
        """Return the bytes at the beginning, and those before the place that was read."""
        self._file.seek(0)
        head = self._file.read(min(_EDGE, end))
        self._file.seek(max(0, end - _EDGE))
        return head, self._file.read(min(_EDGE, end))

    def _read(self) -> Iterator[Batch]:
        """Yield what the open file holds up to its end."""
        while True:
            end = self._lines.at.offset + len(self._lines.rest)
            size = os.fstat(self._file.fileno()).st_size
            if size == 0 and end and not self._lines.rest:
                self._begin(self._file, Position())
                yield Batch(note="the file was emptied after all of it was counted; going on from its start")
                continue
            if size == end and not end:
                return
            self._file.seek(end)
            chunk = self._file.read(CHUNK)
            if size < end or self._look(end) != self._edges:
                self._refuse(
                    f"became shorter or was overwritten after line {self._lines.at.lines} was counted",
                    f"rotate by renaming; {_ANEW}",
                )
            if not chunk:
                return
            batch = self._lines.feed(chunk)
            self._edges = self._look(end + len(chunk))
            if batch.lines:
                yield batch

    def _replaced(self) -> os.stat_result | None:
        """Return what is under the name if that is another file with something in it."""
        for _ in range(_PATIENCE):
            state = os.fstat(self._file.fileno())
            try:
                named = self.path.stat()
            except FileNotFoundError:
                named = None
            if named is not None and _identity(named) == _identity(state):
                return None
            if state.st_nlink > 0:  # renamed: its writer may still use it until there is another one
                return named if named is not None and named.st_size else None
            if named is not None and named.st_size >= self._lines.at.offset > 0:
                return named
            if named is None and not self.follow:
                return None
            time.sleep(POLL)
        how = "deleted" if named is None else "replaced by a shorter file"
        return self._refuse(f"was {how} after line {self._lines.at.lines} was counted")

    def _turn_to(self, named: os.stat_result) -> Iterator[Batch]:
        file, at = self._open(), self._lines.at
        old = os.fstat(self._file.fileno())
        digest = _same_beginning(file, at)
        kept = [each.name for each in self._siblings() if _identity(each.stat()) == _identity(old)]
        is_backup = any(name.endswith("~") for name in kept)
        if digest and (is_backup or not old.st_nlink):
            if is_backup:
                yield Batch(note=_ANOTHER.format(at.lines))
            else:
                self._refuse_copy(at)
            self._begin(file, at, digest)
            return
        if not old.st_nlink:
            self._refuse(f"was replaced by a file that does not begin with the {at.lines} lines counted")
        is_like = (digest and at.lines) or 4 * named.st_size >= 3 * old.st_size
        if is_backup or (is_like and not any(map(self._numbered.fullmatch, kept))):
            now = kept[0] if kept else "another folder"
            self._refuse(
                f"what was counted is in {now} now; whether the new file has other trials cannot be told"
            )
        self._refuse_between(old, named)
        yield from self._lines.finish()
        self._begin(file, Position())

    def _refuse_copy(self, at: Position) -> None:
        """Refuse a file that begins with what was counted, if one that was rotated does, too."""
        rotated = [each for each in self._siblings() if self._numbered.fullmatch(each.name)]
        if found := [each.name for each in rotated if at.lines and _begins_with(each, at)]:
            self._refuse(f"begins with the {at.lines} lines that were counted, and so does {found[-1]}")

    def _named(self, when: str) -> re.Pattern[str]:
        """Return the names of rotated files."""
        stem, suffix = map(re.escape, (self.path.stem, self.path.suffix))
        return re.compile(rf"{stem}({suffix}[.\-_]*{when}|[.\-_]+{when}{suffix})(\.(gz|bz2|xz|zst))?")

    def _refuse_between(self, old: os.stat_result, named: os.stat_result) -> None:
        """Refuse files that may have been rotated after the open one and before the one under the name.

        Also one that begins as the open one does: those of two good days may.
        """
        between = []
        for other in self._siblings():
            state = other.stat()
            is_later = state.st_size > 0 and state.st_mtime_ns >= old.st_mtime_ns
            if is_later and self._rotated.fullmatch(other.name):
                between += [] if _identity(state) in map(_identity, (old, named)) else [other.name]
        if between:
            self._refuse(f"was rotated more than once, and these were not counted: {', '.join(between)}")

    def _siblings(self) -> list[Path]:
        """Return the files beside this one whose names begin like its own."""
        own, stem = self.path.name, self.path.stem
        begins = (own, *(f"{stem}{mark}" for mark in ".-_"))
        beside = [each for each in self.path.parent.iterdir() if each.name != own and each.is_file()]
        return sorted(each for each in beside if each.name.startswith(begins))

    def _resume(self) -> None:
        """Open the file that was being counted, which may have been renamed since."""
        file, known = self._open(), self.known
        if _identity(os.fstat(file.fileno())) != known.identity:
            same = [each for each in self._siblings() if _identity(each.stat()) == known.identity]
            renamed = next((each for each in same if _begins_with(each, known)), None)
            file = file if renamed is None else self._open(renamed)  # its writer may still add to it
        if (digest := _same_beginning(file, known)) is None:
            beside = ", ".join(other.name for other in self._siblings()) or "nothing"
            problem = f"does not begin with the {known.lines} lines that were counted"
            self._refuse(f"{problem}, and the file that did is not beside it: {beside} is")
        if _identity(os.fstat(file.fileno())) != known.identity:
            self._refuse_copy(known)
        self._begin(file, known, digest)


def _identity(state: os.stat_result) -> tuple[int, int]:
    return state.st_dev, state.st_ino


def _same_beginning(file: IO[bytes], known: Position) -> Any:
    """Return the digest of what was counted, as hashlib keeps it; None if the file begins otherwise."""
    digest, left = hashlib.sha256(), known.offset
    file.seek(0)
    while left and (chunk := file.read(min(left, CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    return digest if left == 0 and digest.hexdigest() == known.digest else None


def _begins_with(path: Path, known: Position) -> bool:
    """Return whether a file, packed by gzip or not, begins with what was counted."""
    unpack: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with suppress(OSError, EOFError, zlib.error), unpack(path, "rb") as file:
        return _same_beginning(file, known) is not None
    return False
