"""A pipe with a copy on disk, from which its lines are counted, so that none is lost with a process."""

from __future__ import annotations

import errno
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from boundwatch.errors import InvalidSetting
from boundwatch.watching.files import FileSource, identity_of, pread
from boundwatch.watching.lines import TORN, Identity, Position
from boundwatch.watching.pipes import is_ready
from boundwatch.watching.sources import CHUNK

_SILENCE = 1.0  # seconds; a sender that is silent for so long has sent what it had
_LONGEST_REST = 10.0  # seconds; one that never is cannot be waited for


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
        self.pipe = identity_of(os.fstat(sys.stdin.fileno()))
        try:
            self._spool = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            size = os.lseek(self._spool, 0, os.SEEK_END)
            if size and self.pipe != pipe and pread(self._spool, 1, size - 1) != b"\n":
                os.write(self._spool, TORN + b"\n")  # the other half went with the other pipe
        except OSError as error:
            raise InvalidSetting(
                f"{path}: cannot be written, {error.strerror}; choose another --spool"
            ) from error

    def more(self) -> bool:
        """Move what the pipe holds to the file; return False when the sender has closed it."""
        if self.restless and not is_ready(sys.stdin.fileno()):
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


def _splice(pipe: int, file: int) -> int:
    """Move what a pipe holds to a file, and return how many bytes that was: 0 when the pipe has ended."""
    move: Callable[..., int] | None = getattr(os, "splice", None)
    if move is not None:
        try:
            return move(pipe, file, CHUNK)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):  # a terminal, or an old file system
                raise
    data = os.read(pipe, CHUNK)
    written = 0
    while written < len(data):
        written += os.write(file, data[written:])
    return len(data)
