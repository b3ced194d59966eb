"""Lines of standard input or of a named pipe: what was read from it is gone."""

from __future__ import annotations

import os
import select
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from boundwatch.errors import InvalidSetting
from boundwatch.watching.lines import CUT_OFF, Batch, LineSplitter, Position
from boundwatch.watching.sources import CHUNK, NOTHING, name_of

_WAIT = 0.1  # seconds for a pipe to have something to read, before others have their turn


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
                while self.restless and not is_ready(handle):
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
            raise _unreadable(name_of(path)) from error
        return False
    if path == "-" and stat.S_ISDIR(mode):
        raise _unreadable(name_of(path))
    if path != "-" and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not _is_terminal(path):
        raise InvalidSetting(f"{path}: is a device, not a file; name a file, or - for standard input")
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def is_ready(handle: int) -> bool:
    """Wait a little for a pipe, and return whether to read from it; yes where that cannot be known."""
    try:
        return bool(select.select([handle], [], [], _WAIT)[0])
    except (OSError, ValueError):  # Windows waits for no pipe
        return True


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
    if rest := batch.lines[passed:]:
        yield replace(batch, lines=rest)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Yield a handle of standard input, which stays open, or of another pipe."""
    try:
        handle = sys.stdin.fileno() if path == "-" else os.open(path, os.O_RDONLY)
    except (OSError, AttributeError, ValueError) as error:
        raise _unreadable(name_of(path)) from error
    try:
        yield handle
    finally:
        if path != "-":
            os.close(handle)


def _read(handle: int, source: str) -> bytes:
    try:
        return os.read(handle, CHUNK)
    except OSError as error:
        raise _unreadable(source) from error


def _unreadable(source: str) -> InvalidSetting:
    return InvalidSetting(f"{source}: cannot be read; pipe or redirect a file into it")
