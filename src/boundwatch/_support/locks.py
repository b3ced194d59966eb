"""One process at a time in a folder, on every platform."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from boundwatch._support.files import make_folder
from boundwatch.errors import InvalidSetting


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder inside the block, made if it is not there; refuse at once what another process holds.

    The lock ends with the block or with the process, however either ends. Its file, ``.lock``, stays.

    Examples
    --------
    >>> import tempfile
    >>> with locked(Path(tempfile.mkdtemp()), "training"), locked(Path("/dev/null/run"), "training"):
    ...     pass
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/null/run: cannot be made, ...; choose another folder
    """
    make_folder(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InvalidSetting(
            f"another {what} is computing in {folder}; wait until it ends, or choose another folder"
        ) from error
    except OSError as error:
        reason = error.strerror or "the file system has no locks"
        raise InvalidSetting(f"{folder}: cannot be locked, {reason}; choose another folder") from error
    try:
        yield
    finally:
        lock.release()
