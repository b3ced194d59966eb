"""Where lines come from: a file that may grow, or a pipe.

Ctrl-C and SIGTERM end the wait for lines, never the counting of some that have come.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boundwatch.errors import InvalidSetting, Place
from boundwatch.readers.lines import Batch, GrowingFile, Position, pipe_lines


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
    """Return the lines of a file, from a position, or of a pipe.

    `follow` waits for a file to grow, or for the next sender of a named pipe.
    """
    if path != "-" or not is_pipe(path):
        return GrowingFile("/dev/stdin" if path == "-" else path, position, follow=follow)
    try:
        return pipe_lines(sys.stdin.fileno(), name_of(path))
    except (OSError, AttributeError, ValueError) as error:
        raise _unreadable(path) from error


def _unreadable(path: str) -> InvalidSetting:
    return InvalidSetting(
        "cannot be read", where=Place(name_of(path)), remedy="pipe or redirect a file into it"
    )


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end what is done inside as Ctrl-C does, by KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():  # no other one hears of signals
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C and SIGTERM end the wait for more, never what is done with a batch; a second one ends all.

    Yields what says whether one has come.
    """
    stopped = threading.Event()

    def stop(number: int, _: object) -> None:
        stopped.set()
        signal.signal(number, before[number])

    in_main = threading.current_thread() is threading.main_thread()  # no other one hears of signals
    signals = (signal.SIGINT, signal.SIGTERM) if in_main else ()
    before: dict[int, Any] = {number: signal.signal(number, stop) for number in signals}
    try:
        yield stopped.is_set
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
