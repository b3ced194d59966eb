"""Where lines come from: a file that may grow, a pipe, or a pipe that is kept before it is counted.

Ctrl-C and SIGTERM end the wait for lines, never the counting of some that have come.
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import signal
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from boundwatch.errors import InvalidSetting, Place
from boundwatch.readers.lines import POLL, Batch, GrowingFile, LineSplitter, Position, pipe_lines

TORN = b" <cut off>"
"""What is kept at the end of a line that its sender did not finish, for people to see and replace."""
_CHUNK = 1 << 16  # bytes that a pipe holds
_SILENCE = 1.0  # seconds; a sender that is silent for so long has sent what it had
_LONGEST_REST = 10.0  # seconds; one that never is cannot be waited for

Identity = tuple[int, int]


def name_of(path: str) -> str:
    """Return what to call a stream in a message."""
    return "standard input" if path == "-" else path


def is_pipe(path: str) -> bool:
    """Return whether a stream cannot be read twice; refuse what is neither a pipe nor a file."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if path == "-" else Path(path).stat().st_mode
    except (OSError, AttributeError, ValueError):
        mode = stat.S_IFDIR if path == "-" else stat.S_IFREG  # opening the file says why not
    if path == "-" and stat.S_ISDIR(mode):
        raise _unreadable(path)
    is_terminal = path in ("-", "/dev/tty") or (path == "/dev/stdin" and os.isatty(0))
    if (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)) and not is_terminal:
        remedy = "name a file, or - for standard input"
        raise InvalidSetting("is a device, not a file", where=Place(path), remedy=remedy)
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def open_lines(path: str, position: Position | None = None, *, follow: bool = False) -> Iterable[Batch]:
    """Return the lines of a file, from a position, or of a pipe of which nothing is kept.

    `follow` waits for a file to grow.
    """
    if not is_pipe(path):
        return GrowingFile("/dev/stdin" if path == "-" else path, position, follow=follow)
    return _pipe_lines(path)


def _pipe_lines(path: str) -> Iterator[Batch]:
    with os.fdopen(_open_pipe(path), "rb", buffering=0, closefd=path != "-") as stream:
        yield from pipe_lines(stream.fileno(), name_of(path))


class KeptPipe:
    """A pipe whose lines are appended to a file beside the state, and counted from there.

    **Guarantee**: on Linux the kernel moves the bytes from the pipe to the file in one step, so that a kill
    at any moment loses none. Elsewhere they are read and written, and a kill between the two loses them.
    A line that its sender did not finish is marked as cut off; it is never joined to another sender's:
    `sender` says which pipe the last line came from, None if others may have written to it since.
    """

    def __init__(self, pipe: str, path: Path, position: Position, sender: Identity | None = None) -> None:
        self.path, self.position = path, position
        self._pipe = os.dup(_open_pipe(pipe)) if pipe == "-" else _open_pipe(pipe)
        self.sender = _sender(self._pipe)
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
            if sender is None or sender != self.sender:
                self._end_line()  # the other half went with the other sender
        except OSError as error:
            raise self._refusal(f"cannot be written, {error.strerror}", "choose another state") from error

    def __iter__(self) -> Iterator[Batch]:
        splitter = LineSplitter(str(self.path), self.position, hashlib.sha256())
        if os.fstat(self._file).st_size < self.position.offset:
            raise self._refusal("is shorter than what was counted of it", "restore it, or start a new state")
        more = True
        while True:
            os.lseek(self._file, splitter.at.offset + len(splitter.rest), os.SEEK_SET)
            if chunk := os.read(self._file, _CHUNK):
                yield splitter.feed(chunk)
            elif not more:
                return
            elif _is_ready(self._pipe, POLL):
                more = self._move() or self._end_line()
            else:
                yield Batch(start=splitter.at)

    def keep_rest(self) -> None:
        """Move what the sender has sent to the file, until it ends or is silent."""
        ends = time.monotonic() + _LONGEST_REST
        with suppress(OSError, InvalidSetting):  # why to stop is known by now
            while _is_ready(self._pipe, _SILENCE) and time.monotonic() < ends:
                if not self._move():
                    return

    def close(self) -> None:
        """Let go of the pipe and the file."""
        os.close(self._pipe)
        os.close(self._file)

    def _move(self) -> bool:
        """Move what the pipe holds to the file; return whether there was anything, or the sender ended."""
        try:
            os.lseek(self._file, 0, os.SEEK_END)
            moved = _splice(self._pipe, self._file)
            os.fsync(self._file)
        except OSError as error:
            problem = f"cannot be written, {error.strerror}"
            raise self._refusal(problem, "free the disk, and start again") from error
        return moved > 0

    def _end_line(self) -> bool:
        """Mark a line that was not finished; return whether there was one."""
        size = os.lseek(self._file, 0, os.SEEK_END)
        os.lseek(self._file, max(size - 1, 0), os.SEEK_SET)
        torn = os.read(self._file, 1) not in (b"\n", b"")
        if torn:
            os.write(self._file, TORN + b"\n")
            os.fsync(self._file)
        return torn

    def _refusal(self, problem: str, remedy: str) -> InvalidSetting:
        return InvalidSetting(problem, where=Place(str(self.path)), remedy=remedy)


def _open_pipe(path: str) -> int:
    """Return a handle of standard input, or of a named pipe, once somebody writes to it."""
    try:
        return sys.stdin.fileno() if path == "-" else os.open(path, os.O_RDONLY)
    except (OSError, AttributeError, ValueError) as error:
        raise _unreadable(path) from error


def _sender(handle: int) -> Identity | None:
    """Return which pipe it is; None for one with a name, which others may have opened before."""
    own = os.pipe()
    state, device = os.fstat(handle), os.fstat(own[0]).st_dev
    for end in own:
        os.close(end)
    named = not stat.S_ISFIFO(state.st_mode) or state.st_dev != device
    return None if named else (state.st_dev, state.st_ino)


def _is_ready(handle: int, seconds: float) -> bool:
    """Wait a little for a pipe, and return whether to read from it; yes where that cannot be known."""
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    except (OSError, ValueError):  # Windows waits for no pipe
        return True


def _splice(pipe: int, file: int) -> int:
    """Move what a pipe holds to a file, and return how many bytes that was: 0 when the pipe has ended."""
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


def _unreadable(path: str) -> InvalidSetting:
    return InvalidSetting(
        "cannot be read", where=Place(name_of(path)), remedy="pipe or redirect a file into it"
    )


@contextmanager
def until_interrupted(batches: Iterator[Batch]) -> Iterator[Iterator[Batch]]:
    """Let Ctrl-C and SIGTERM end the wait for the next batch, never what is done with one."""
    stopped = waits = False

    def stop(*_: object) -> None:
        nonlocal stopped
        stopped = True
        if waits:
            raise KeyboardInterrupt

    def each() -> Iterator[Batch]:
        nonlocal waits
        while not stopped:
            waits = True
            batch = next(batches, None)
            waits = False
            if batch is None:
                return
            yield batch

    in_main = threading.current_thread() is threading.main_thread()  # no other one hears of signals
    signals = (signal.SIGINT, signal.SIGTERM) if in_main else ()
    before = {number: signal.signal(number, stop) for number in signals}
    try:
        with suppress(KeyboardInterrupt):  # the usual end of a file that is followed
            yield each()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
