"""The file that a watch goes on from after a crash: one owner, whole or not at all, and checked when read."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout

from boundwatch._support import files
from boundwatch._support.text import shown
from boundwatch.errors import BoundwatchError, InvalidSetting, SchemaMismatch

VERSION = 3
"""Version of the state that this release writes and reads."""

_KIND = "watch"


class StateFile:
    """A state on disk that belongs to one process at a time.

    Used as a context: it is locked inside, and a second watch of the same state is refused. The lock is a
    file beside it, and goes with the process that holds it, however that ends.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "watch.json"
    >>> with StateFile(path) as state:
    ...     state.write({"lines": 3})
    ...     state.read()
    {'lines': 3}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._lock_path = self.path.with_name(f".{self.path.name}.lock")
        self._lock = FileLock(self._lock_path, timeout=0)

    def __enter__(self) -> StateFile:
        files.refuse_special(self.path)
        try:
            self._lock.acquire()
        except Timeout:
            raise InvalidSetting(
                f"{self.path}: is in use by {self._owner()}; end that watch, or use a state of its own"
            ) from None
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"{self.path}: cannot be locked, {files.reason(error)}; choose another path"
            ) from error
        with suppress(OSError):  # nobody will read whose it is
            self._lock_path.write_text(f"{os.getpid()}\n")
            files.remove_leftovers(self.path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # Windows removes no file that is open
            self._lock_path.unlink()  # who opened it meanwhile sees that, and tries again
        self._lock.release()

    def _owner(self) -> str:
        try:
            return f"process {int(self._lock_path.read_text())}"
        except (OSError, ValueError):
            return "another process"

    def read(self) -> dict[str, Any] | None:
        """Return the content, None if there is no such file yet.

        Raises
        ------
        SchemaMismatch
            When it is something else, of another version, or was altered.
        """
        if not self.path.exists():
            return None
        try:
            sealed = json.loads(files.read_bytes(self.path))
        except BoundwatchError:
            raise
        except (ValueError, RecursionError) as error:
            raise SchemaMismatch(f"{self.path}: is not JSON; name another file, or delete it") from error
        if not isinstance(sealed, dict) or sealed.get("kind") != _KIND:
            raise SchemaMismatch(
                f"{self.path}: is not a state that `boundwatch watch` wrote; name another file"
            )
        if sealed.get("version") != VERSION:
            raise SchemaMismatch(
                f"{self.path}: has version {shown(sealed.get('version'))}, and this release reads "
                f"version {VERSION}; finish it with the release that began it, or start a new one"
            )
        content = sealed.get("content")
        if not isinstance(content, dict) or sealed.get("checksum") != _checksum(content):
            raise SchemaMismatch(
                f"{self.path}: was altered or damaged, its checksum does not match; restore it, or start over"
            )
        return content

    def write(self, content: dict[str, Any]) -> None:
        """Replace the content; when this returns it is on the disk, and the old one was until then."""
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
        checksum = hashlib.sha256(text.encode()).hexdigest()
        head = f'{{"kind":"{_KIND}","version":{VERSION},"checksum":"{checksum}"'
        files.write_text(self.path, f'{head},"content":{text}}}\n')


def _checksum(content: dict[str, Any]) -> str:
    # JSON keeps the order of names and every digit of a number, so that this is the text that was written.
    try:
        text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()
