"""One process at a time in a folder, on every platform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from boundwatch._support.files import make_folder
from boundwatch.errors import InvalidSetting, Place


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder inside the block, made if it is not there; refuse at once what another process holds.

    The lock ends with the block or with the process, however either ends. Its file, ``.lock``, stays.
    """
    make_folder(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        problem = f"another {what} is computing in {folder}"
        raise InvalidSetting(problem, remedy="wait until it ends, or choose another folder") from error
    except OSError as error:
        problem = f"cannot be locked, {error.strerror or 'the file system has no locks'}"
        raise InvalidSetting(problem, where=Place(str(folder)), remedy="choose another folder") from error
    try:
        yield
    finally:
        lock.release()
