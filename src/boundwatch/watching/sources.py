"""Where lines come from: files that grow and are rotated, pipes, and pipes with a copy on disk.

A source yields batches: all whole lines that are there now. The one who counts them stores the `Position`
behind the last one, and can go on from it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from boundwatch.episodes.text import is_utf16
from boundwatch.errors import InvalidSetting

LONGEST_LINE = 1 << 20
"""Bytes; a longer line is malformed and is not kept in memory."""
TORN = b" <cut off>"
"""What a spool has at the end of a line that its sender did not finish, for people to see and replace."""
_SILENCE = 1.0  # seconds; a sender that is silent for so long has sent what it had
_LONGEST_REST = 10.0  # seconds; one that never is cannot be waited for

_CHUNK = 1 << 16  # what a pipe holds
_TAIL = 64  # bytes before the place that was read; they change when a file is emptied and filled again
_POLL = 0.1  # seconds between two looks at a file that does not grow
_LOOKS = 10  # at a line without newline, after which nobody is writing it right now

Identity = tuple[int, int]  # device and inode


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
        """Device and inode: which file it is, whatever its name."""
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


NOTHING = Batch((0, 0), [], b"", 0, None)
"""What a source yields now and then while it waits, for those who have something else to do (`restless`)."""


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


CUT_OFF = "was cut off: its sender ended in the middle of it"
_TOO_LONG = f"is longer than {LONGEST_LINE >> 20} MiB"


class RowSource:
    """Costs that were read as a whole, one line each.

    Parameters
    ----------
    lines
        What is counted.
    numbers
        The line of the file that each comes from; left out, they are numbered from 1.
    """

    def __init__(self, lines: list[str], numbers: Sequence[int] = ()) -> None:
        self._lines = lines
        self.restless = False  # it never waits
        self._numbers = numbers or range(1, len(lines) + 1)

    def batches(self) -> Iterator[Batch]:
        """Yield all lines."""
        for batch in LineSplitter((0, 0)).feed("".join(f"{line}\n" for line in self._lines).encode()):
            numbered = zip(batch.lines, self._numbers, strict=True)
            yield replace(batch, lines=[line._replace(number=number) for line, number in numbered])


class PipeSource:
    """Standard input, or another pipe: what was read is gone.

    Parameters
    ----------
    path
        ``-``, or the path of a named pipe.
    replayed
        What was counted of a stream that is now sent again from its first line.
    once
        Whether nobody comes back: a last line without newline is then taken as it is, else it is malformed.
    """

    def __init__(self, path: str, *, replayed: Position | None = None, once: bool = False) -> None:
        self.path = path
        self.once = once
        self.restless = False
        """Whether to yield `NOTHING` while no line comes."""
        self._replayed = replayed

    def batches(self) -> Iterator[Batch]:
        """Yield lines as they come, until the sender closes the pipe.

        A stream that is sent again from its beginning is passed over up to the position given, if it is the
        same up to there.
        """
        source = name_of(self.path)
        with _opened(self.path) as handle:
            splitter = LineSplitter((0, 0))
            known = self._replayed or Position()
            while True:
                while self.restless and not _is_ready(handle):
                    yield NOTHING
                if not (chunk := _read(handle, source)):
                    break
                for batch in splitter.feed(chunk):
                    yield from _beyond(batch, known, source)
            for batch in splitter.finish("" if self.once else CUT_OFF):
                yield from _beyond(batch, known, source)
            if splitter.end < known.end:
                raise InvalidSetting(
                    f"{source}: ended before line {known.lines}, the last one counted; send the same stream "
                    "again from its first line, or start a new --state"
                )


class FileSource:
    """A file from a position on. Rotation is followed; a file that shrinks or vanishes is an error.

    Parameters
    ----------
    path
        The file; ``-`` for standard input that was redirected from one.
    position
        Where to go on; the file, or one beside it that was renamed since, must still hold what was counted.
    follow
        Whether to wait for more.
    once
        Whether nobody comes back: a last line without newline is then yielded, else left for the next time.
    """

    def __init__(
        self, path: str, position: Position | None = None, *, follow: bool = False, once: bool = False
    ) -> None:
        self.path = path
        self.position = position
        self.follow = follow
        self.once = once
        self.restless = False
        """Whether to yield `NOTHING` while no line comes."""
        self.unfinished: int | None = None
        """The number of the last line, if it had no newline when the file ended."""
        self._said = False

    def batches(self) -> Iterator[Batch]:
        """Yield lines until the file ends or, if it is followed, for ever."""
        try:
            handle, splitter = self._resume()
        except OSError as error:
            raise _unreadable(self.path, error) from error
        try:
            while True:
                yield from self._read_on(handle, splitter)
                following = self._successor(splitter.identity)
                if following is None and self.once:
                    yield from splitter.finish()
                    return
                if following is None:
                    self.unfinished = splitter.number + 1 if splitter.unfinished else None
                    return
                yield from splitter.finish("has no newline, and its file was rotated")
                os.close(handle)
                handle = _open_file(following)
                splitter = LineSplitter(_identity(os.fstat(handle)))
        except OSError as error:
            raise _unreadable(self.path, error) from error
        finally:
            os.close(handle)

    def more(self) -> bool:
        """Wait for more, and return whether there may be some; a spool is filled here."""
        if self.follow:
            time.sleep(_POLL)
        return self.follow

    def _resume(self) -> tuple[int, LineSplitter]:
        """Open the file that was being read and go to the place."""
        handle = _open_file(self.path)
        known = self.position
        if known is None or known == Position():
            return handle, LineSplitter(_identity(os.fstat(handle)))
        moved = _siblings(self.path, known.identity) if self.path != "-" else []
        for candidate in [] if _identity(os.fstat(handle)) == known.identity else moved:
            other = _open_file(str(candidate))
            if digest := _same_beginning(other, known):
                os.close(handle)
                return other, LineSplitter(known.identity, known.end, known.lines, digest)
            os.close(other)
        if digest := _same_beginning(handle, known):
            return handle, LineSplitter(_identity(os.fstat(handle)), known.end, known.lines, digest)
        os.close(handle)
        raise InvalidSetting(
            f"{name_of(self.path)}: the {known.lines} lines that were counted are no longer its first ones, "
            "and it was not renamed in its folder; restore it, or start a new --state"
        )

    def _read_on(self, handle: int, splitter: LineSplitter) -> Iterator[Batch]:
        """Yield what a file holds until it ends; wait for more while it is the one of that name."""
        base = os.lseek(handle, 0, os.SEEK_CUR) if self.path == "-" else 0
        offset = splitter.end
        tail = _pread(handle, min(_TAIL, offset), base + max(0, offset - _TAIL))
        moved_on = False
        looks = 0
        while True:
            size = os.fstat(handle).st_size - base
            if size < offset:
                raise self._shrunk(splitter.number)
            if size > offset and _pread(handle, len(tail), base + offset - len(tail)) != tail:
                raise self._shrunk(splitter.number)
            if chunk := _pread(handle, _CHUNK, base + offset):
                offset += len(chunk)
                tail = (tail + chunk)[-_TAIL:]
                looks = 0
                yield from splitter.feed(chunk)
            elif moved_on:
                return
            else:
                # The writer has moved on once it has written to the next file; only then is this one done,
                # and it is read once more, because the last lines may have come before that.
                moved_on = self._moved_on(handle)
                looks += 1
                if looks == _LOOKS and splitter.unfinished and not self._said:
                    self._said = True
                    yield replace(NOTHING, said=awaited(splitter.number + 1))
                elif self.restless:
                    yield NOTHING
                if not moved_on and not self.more():
                    return

    def _shrunk(self, lines: int) -> InvalidSetting:
        return InvalidSetting(
            f"{name_of(self.path)}: became shorter or was overwritten after line {lines} was counted, so "
            f"that episodes may be lost; rotate by renaming, and {self._start_over}"
        )

    @property
    def _start_over(self) -> str:
        return "start again" if self.once else "start a new --state"

    def _moved_on(self, handle: int) -> bool:
        if self.path == "-":
            return False
        state = os.fstat(handle)
        try:
            named = Path(self.path).stat()
        except FileNotFoundError:
            if state.st_nlink == 0:
                raise InvalidSetting(
                    f"{self.path}: was deleted while it was watched; everything in it was counted, but what "
                    f"its writer adds now is lost: restart the writer, and {self._start_over}"
                ) from None
            return False  # renamed; its successor is not there yet
        return _identity(named) != _identity(state) and named.st_size > 0

    def _successor(self, identity: Identity) -> str | None:
        """Return the file that was begun after this one, None if this is the newest."""
        if self.path == "-":
            return None
        try:
            named = Path(self.path).stat()
        except FileNotFoundError:
            return None
        if _identity(named) == identity or named.st_size == 0:
            return None
        for renamed in _siblings(self.path, identity):
            if between := _newer_rotations(self.path, renamed.name):
                return str(between)
        return self.path


class SpooledPipe(FileSource):
    """A pipe whose lines are appended to a file, and counted from there.

    On Linux the kernel moves the bytes from the pipe to the file in one step, so that a kill at any moment
    loses none. Elsewhere they are read and written, and a kill between the two loses them.

    Parameters
    ----------
    path
        The file that keeps the lines.
    position
        As in `FileSource`.
    pipe
        Device and inode of the pipe that the last line came from; None if that is not known.
    """

    def __init__(self, path: str, position: Position | None = None, pipe: Identity | None = None) -> None:
        super().__init__(path, position, follow=True)
        self.pipe = pipe_identity()
        try:
            self._spool = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            size = os.lseek(self._spool, 0, os.SEEK_END)
            if size and self.pipe != pipe and _pread(self._spool, 1, size - 1) != b"\n":
                os.write(self._spool, TORN + b"\n")  # the other half went with the other pipe
        except OSError as error:
            raise InvalidSetting(
                f"{path}: cannot be written, {error.strerror}; choose another --spool"
            ) from error

    def more(self) -> bool:
        """Move what the pipe holds to the file; return False when the sender has closed it."""
        if self.restless and not _is_ready(sys.stdin.fileno()):
            return True
        try:
            moved = _splice(sys.stdin.fileno(), self._spool)
            if moved:
                os.fsync(self._spool)
            return moved > 0
        except OSError as error:
            raise InvalidSetting(
                f"{self.path}: cannot be written, {error.strerror}; free the disk, and start again"
            ) from error

    def keep_rest(self) -> None:
        """Move what the sender has sent to the file, until it ends or is silent."""
        ends = time.monotonic() + _LONGEST_REST
        with suppress(OSError, InvalidSetting):  # Windows waits for no pipe; why to stop is known by now
            while select.select([sys.stdin.fileno()], [], [], _SILENCE)[0] and time.monotonic() < ends:
                if not self.more():
                    return

    def _moved_on(self, handle: int) -> bool:
        if os.fstat(handle).st_nlink == 0:
            raise InvalidSetting(f"{self.path}: was deleted while lines were added to it; start a new one")
        return False

    def _successor(self, identity: Identity) -> str | None:  # noqa: ARG002  (a spool has none)
        return None


def name_of(path: str) -> str:
    """Return what to call a stream in a message."""
    return "standard input" if path == "-" else path


def is_pipe(path: str) -> bool:
    """Return whether a stream cannot be read twice; refuse what is neither a pipe nor a file.

    Examples
    --------
    >>> is_pipe("no/such/file")
    False
    >>> is_pipe("/dev/zero")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/zero: is a device, not a file; name a file, or - for ...
    """
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if path == "-" else Path(path).stat().st_mode
    except (OSError, AttributeError, ValueError) as error:
        if path == "-":
            raise InvalidSetting("standard input: cannot be read; pipe or redirect a file into it") from error
        return False
    if path == "-" and stat.S_ISDIR(mode):
        raise InvalidSetting("standard input: cannot be read; pipe or redirect a file into it")
    if path != "-" and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not _is_terminal(path):
        raise InvalidSetting(f"{path}: is a device, not a file; name a file, or - for standard input")
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def beginning(path: str) -> Position:
    """Return the position before the first line of a file; which file it is counts from here on."""
    try:
        state = Path(path).stat()
    except OSError:  # opening it says why not
        return Position()
    return Position(*_identity(state))


def awaited(number: int) -> str:
    """Say that a line is not finished.

    Examples
    --------
    >>> awaited(3)
    'line 3 has no newline yet; it is counted once it has one'
    """
    return f"line {number} has no newline yet; it is counted once it has one"


def is_text(path: str) -> bool:
    """Return whether a file may hold lines; standard input and a file that is not there yet may."""
    if path == "-" or not Path(path).is_file():
        return not Path(path).is_dir()
    try:
        with Path(path).open("rb") as file:
            head = file.read(_CHUNK)
    except OSError as error:
        raise _unreadable(path, error) from error
    first = head.split(b"\n", 1)[0]
    binary = head.startswith((b"\x1f\x8b", b"PK", b"PAR1")) or b"\0" in first
    return not binary or is_utf16(first)  # which the reader of its lines refuses by name


def pipe_identity() -> Identity:
    """Return device and inode of standard input."""
    return _identity(os.fstat(sys.stdin.fileno()))


def _is_terminal(path: str) -> bool:
    return path == "/dev/tty" or (path == "/dev/stdin" and os.isatty(0))


def _beyond(batch: Batch, known: Position, source: str) -> Iterator[Batch]:
    """Yield the lines of a batch that come after a position."""
    passed = sum(line.number <= known.lines for line in batch.lines)
    reached = passed and batch.lines[passed - 1].number == known.lines
    if reached and batch.position(passed).digest != known.digest:
        raise InvalidSetting(
            f"{source}: its first {known.lines} lines are not those that were counted; send the same "
            "stream again from its first line, or start a new --state"
        )
    rest = batch.lines[passed:]
    if rest:
        yield Batch(batch.identity, rest, batch.data, batch.start, batch.digest)


class _opened:  # noqa: N801  (used as a function)
    """A handle of standard input, which stays open, or of another pipe."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> int:
        try:
            self.handle = sys.stdin.fileno() if self.path == "-" else os.open(self.path, os.O_RDONLY)
        except (OSError, AttributeError, ValueError) as error:
            raise InvalidSetting(
                f"{name_of(self.path)}: cannot be read; pipe or redirect a file into it"
            ) from error
        return self.handle

    def __exit__(self, *_: object) -> None:
        if self.path != "-":
            os.close(self.handle)


def _read(handle: int, source: str) -> bytes:
    try:
        return os.read(handle, _CHUNK)
    except OSError as error:
        raise InvalidSetting(f"{source}: cannot be read; pipe or redirect a file into it") from error


def _is_ready(handle: int) -> bool:
    """Wait a little for a pipe, and return whether to read from it; yes where that cannot be known."""
    try:
        return bool(select.select([handle], [], [], _POLL)[0])
    except (OSError, ValueError):  # Windows waits for no pipe
        return True


def _splice(pipe: int, file: int) -> int:
    move: Callable[..., int] | None = getattr(os, "splice", None)
    if move is not None:
        try:
            return move(pipe, file, _CHUNK)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):  # a terminal, or an old file system
                raise
    data = os.read(pipe, _CHUNK)
    written = 0
    while written < len(data):
        written += os.write(file, data[written:])
    return len(data)


def _pread(handle: int, count: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(handle, count, offset)
    before = os.lseek(handle, 0, os.SEEK_CUR)  # Windows
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, count)
    finally:
        os.lseek(handle, before, os.SEEK_SET)


def _identity(state: os.stat_result) -> Identity:
    return state.st_dev, state.st_ino


def _open_file(path: str) -> int:
    if path == "-":
        return os.dup(sys.stdin.fileno())
    return os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


def _siblings(path: str, identity: Identity) -> list[Path]:
    """Return the files beside a path that are this one under another name."""
    named = Path(path)
    found = []
    for other in named.parent.glob(f"{_literal(named.name)}*"):
        try:
            if other != named and _identity(other.stat()) == identity:
                found.append(other)
        except OSError:  # gone since it was listed
            continue
    return found


def _newer_rotations(path: str, renamed: str) -> Path | None:
    """Return the file that was rotated right after the one that is now called `renamed`, if there is one.

    ``log.2`` is followed by ``log.1``; ``log-20261115`` by the next suffix of that length.
    """
    named = Path(path)
    suffix = renamed.removeprefix(named.name)
    if suffix[:1] == "." and suffix[1:].isdigit():
        newer = named.with_name(f"{named.name}.{int(suffix[1:]) - 1}")
        return newer if int(suffix[1:]) > 1 and newer.exists() else None
    later = [
        other
        for other in named.parent.glob(f"{_literal(named.name)}*")
        if len(other.name) == len(renamed) and other.name > renamed
    ]
    return min(later, default=None)


def _literal(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _same_beginning(handle: int, known: Position) -> Any:
    """Return the digest of what was counted, as hashlib keeps it; None if the file begins otherwise."""
    base = os.lseek(handle, 0, os.SEEK_CUR)
    digest, left, offset = hashlib.sha256(), known.end, base
    while left and (chunk := _pread(handle, min(left, 1 << 20), offset)):
        digest.update(chunk)
        left -= len(chunk)
        offset += len(chunk)
    return digest if left == 0 and digest.hexdigest() == known.digest else None


def _unreadable(path: str, error: OSError) -> InvalidSetting:
    return InvalidSetting(f"{name_of(path)}: cannot be read, {error.strerror}; check the path")
