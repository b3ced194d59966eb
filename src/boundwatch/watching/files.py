"""Lines of a file that may grow and be rotated, from the place where they were last counted."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from boundwatch.episodes.text import is_utf16
from boundwatch.errors import InvalidSetting
from boundwatch.watching.lines import Batch, Identity, LineSplitter, Position, awaited
from boundwatch.watching.sources import CHUNK, NOTHING, name_of

_TAIL = 64  # bytes before the place that was read; they change when a file is emptied and filled again
_POLL = 0.1  # seconds between two looks at a file that does not grow
_LOOKS = 10  # at a line without newline, after which nobody is writing it right now


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
                moved_on = yield from self._read_on(handle, splitter)
                following = self._open_successor(splitter.identity)
                if following is None and moved_on and self.follow:
                    continue  # the next file was renamed before it could be opened: another will come
                if following is None and self.once:
                    yield from splitter.finish()
                    return
                if following is None:
                    self.unfinished = splitter.number + 1 if splitter.unfinished else None
                    return
                read, handle = handle, following
                os.close(read)
                yield from splitter.finish("has no newline, and its file was rotated")
                splitter = LineSplitter(identity_of(os.fstat(handle)))
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
            return handle, LineSplitter(identity_of(os.fstat(handle)))
        identity = identity_of(os.fstat(handle))
        if self.path != "-" and identity != known.identity:
            for renamed in _siblings(self.path, known.identity):
                other = _open_file(str(renamed))
                if digest := _same_beginning(other, known):
                    os.close(handle)
                    return other, LineSplitter(known.identity, known.end, known.lines, digest)
                os.close(other)
        if digest := _same_beginning(handle, known):
            return handle, LineSplitter(identity, known.end, known.lines, digest)
        os.close(handle)
        raise InvalidSetting(
            f"{name_of(self.path)}: the {known.lines} lines that were counted are no longer its first ones, "
            "and it was not renamed in its folder; restore it, or start a new --state"
        )

    def _read_on(self, handle: int, splitter: LineSplitter) -> Generator[Batch, None, bool]:
        """Yield what a file holds until it ends; wait for more while it is the one of that name.

        Return whether its writer has moved on to another file.
        """
        base = os.lseek(handle, 0, os.SEEK_CUR) if self.path == "-" else 0
        offset = splitter.fed
        tail = pread(handle, min(_TAIL, offset), base + max(0, offset - _TAIL))
        moved_on = False
        looks = 0
        while True:
            size = os.fstat(handle).st_size - base
            overwritten = size > offset and pread(handle, len(tail), base + offset - len(tail)) != tail
            if size < offset or overwritten:
                raise self._shrunk(splitter.number)
            if chunk := pread(handle, CHUNK, base + offset):
                offset += len(chunk)
                tail = (tail + chunk)[-_TAIL:]
                looks = 0
                yield from splitter.feed(chunk)
            elif moved_on:
                return True
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
                    return False

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
        return identity_of(named) != identity_of(state) and named.st_size > 0

    def _open_successor(self, identity: Identity) -> int | None:
        """Open the file that was begun after this one; None if there is none, or none any more."""
        following = self._successor(identity)
        while following is not None:
            try:
                handle = _open_file(following)
            except FileNotFoundError:  # rotated once more, since it was found
                handle = None
            before, following = following, self._successor(identity)
            if handle is not None and following == before:
                return handle
            if handle is not None:
                os.close(handle)  # it has got the name only now, and others come before it
        return None

    def _successor(self, identity: Identity) -> str | None:
        """Return the file that was begun after this one, None if this is the newest."""
        if self.path == "-":
            return None
        try:
            named = Path(self.path).stat()
        except FileNotFoundError:
            return None
        if identity_of(named) == identity or named.st_size == 0:
            return None
        for renamed in _siblings(self.path, identity):
            if between := _next_rotation(self.path, renamed.name):
                return str(between)
        return self.path


def beginning(path: str) -> Position:
    """Return the position before the first line of a file; which file it is counts from here on."""
    try:
        state = Path(path).stat()
    except OSError:  # opening it says why not
        return Position()
    return Position(*identity_of(state))


def is_text(path: str) -> bool:
    """Return whether a file may hold lines; standard input and a file that is not there yet may."""
    if path == "-" or not Path(path).is_file():
        return not Path(path).is_dir()
    try:
        with Path(path).open("rb") as file:
            head = file.read(CHUNK)
    except OSError as error:
        raise _unreadable(path, error) from error
    first = head.split(b"\n", 1)[0]
    binary = head.startswith((b"\x1f\x8b", b"PK", b"PAR1")) or b"\0" in first
    return not binary or is_utf16(first)  # which the reader of its lines refuses by name


def pread(handle: int, count: int, offset: int) -> bytes:
    """Return at most so many bytes of a file from a place on; where it is read next does not change."""
    if hasattr(os, "pread"):
        return os.pread(handle, count, offset)
    before = os.lseek(handle, 0, os.SEEK_CUR)  # Windows
    try:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, count)
    finally:
        os.lseek(handle, before, os.SEEK_SET)


def identity_of(state: os.stat_result) -> Identity:
    """Return which file it is."""
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
            if other != named and identity_of(other.stat()) == identity:
                found.append(other)
        except OSError:  # gone since it was listed
            continue
    return found


def _next_rotation(path: str, renamed: str) -> Path | None:
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
    while left and (chunk := pread(handle, min(left, 1 << 20), offset)):
        digest.update(chunk)
        left -= len(chunk)
        offset += len(chunk)
    return digest if left == 0 and digest.hexdigest() == known.digest else None


def _unreadable(path: str, error: OSError) -> InvalidSetting:
    return InvalidSetting(f"{name_of(path)}: cannot be read, {error.strerror}; check the path")
