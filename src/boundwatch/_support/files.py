"""Files in and out: whole or not at all, with one clear line when it cannot be done."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from boundwatch.errors import Argument, InvalidSetting, MissingFile, Place, Remedy

AnyPath = str | os.PathLike[str]
LARGEST = 4 << 30
"""Bytes that a file may have."""
_CHUNK = 1 << 24
_FAILURES = (OSError, ValueError, RuntimeError)  # a path with a null byte, or links in a circle
_encode = json.JSONEncoder(allow_nan=False).encode


def read_bytes(path: AnyPath) -> bytes:
    """Return the content of a file; raise `InvalidSetting` when there is none to read."""
    with open_binary(path) as file:
        try:
            return read_limited(file, str(path))
        except OSError as error:
            raise _unreadable(path, error) from error


def read_limited(file: IO[bytes], source: str) -> bytes:
    """Return what is left of a file that is open; refuse one that is too large or, like a device, has no end.

    Examples
    --------
    >>> read_bytes("/dev/zero")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/zero: is an endless device; name a file
    """
    with suppress(OSError, AttributeError):  # what is only in memory has no mode
        mode = os.fstat(file.fileno())
        memory = hasattr(os, "major") and os.major(mode.st_rdev) == 1 and os.minor(mode.st_rdev) != 3
        if stat.S_ISBLK(mode.st_mode) or (stat.S_ISCHR(mode.st_mode) and memory):  # /dev/null has an end
            raise _refusal(source, "is an endless device", "name a file")
    parts, size = [], 0
    while part := file.read(_CHUNK):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise _refusal(source, f"is larger than {LARGEST >> 30} GiB", "give fewer episodes")
    return b"".join(parts)


def open_binary(path: AnyPath) -> IO[bytes]:
    """Open a file for reading; raise `InvalidSetting` when there is none to read."""
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def sha256_file(path: AnyPath) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with open_binary(path) as file:
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # it is buffered
        except OSError as error:
            raise _unreadable(path, error) from error


def one_page(content: object) -> str:
    r"""Return a value as indented JSON, with every list of numbers on one line.

    Examples
    --------
    >>> print(one_page({"weights": [1, 2.5], "seed": None}), end="")
    {
      "weights": [1, 2.5],
      "seed": null
    }
    """
    return _indented(content, "\n") + "\n"


def _indented(content: object, newline: str) -> str:
    deeper = newline + "  "
    if isinstance(content, dict) and content:
        items = [f"{_encode(str(key))}: {_indented(each, deeper)}" for key, each in content.items()]
        return f"{{{deeper}{f',{deeper}'.join(items)}{newline}}}"
    if isinstance(content, list | tuple) and not set(map(type, content)) <= {int, float}:
        return f"[{deeper}{f',{deeper}'.join(_indented(each, deeper) for each in content)}{newline}]"
    return _encode(content)


def write_text(path: AnyPath, text: str) -> None:
    """Write UTF-8 text, whole or not at all; see `write_bytes`."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # half a pair of surrogates has no bytes


def write_costs(path: AnyPath, costs: NDArray[np.float64]) -> None:
    """Write costs as a table with the one column ``cost``, in digits that give the same numbers back."""
    write_text(path, "cost\n" + "".join(f"{cost!r}\n" for cost in costs.tolist()))


def write_bytes(path: AnyPath, data: bytes) -> None:
    r"""Write a file such that a reader sees the old content or the new, never a part.

    The bytes go to a temporary file in the same folder, reach the disk, and are renamed over the target.
    An existing file keeps its permissions; a new one gets those of the umask. A link is followed.

    Raises
    ------
    InvalidSetting
        When the path cannot be written. What was there before is untouched.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "data"
    >>> write_bytes(path, b"\x00\x01")
    >>> sha256_file(path)[:8], [p.name for p in path.parent.iterdir()]
    ('b413f47d', ['data'])
    """
    target = Path(path)
    if str(target) == "-":
        raise _refusal("-", "files are not written to standard output", "name a file, or /dev/stdout")
    try:
        special = target.exists() and not target.is_file() and not target.is_dir()
        if special:  # a pipe or /dev/stdout: there is nothing to replace, nor to resolve
            target.write_bytes(data)
    except _FAILURES as error:
        raise _unwritable(path, error) from error
    if not special:
        with replacing(path) as temporary:
            temporary.write_bytes(data)


@contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """Give a temporary file to write to, which takes the place of a file once it is whole and on the disk."""
    temporary = None
    try:
        target = Path(path).resolve()
        # Not tempfile: its files are private (0600), and the umask cannot be read without changing it.
        temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
        with suppress(OSError):  # where a folder can be opened, its new name survives a power failure, too
            handle = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
    except _FAILURES as error:
        raise _unwritable(path, error) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()


def write_new(path: AnyPath, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file that must not be there yet, with these permissions (less the umask) from the first byte.

    Examples
    --------
    >>> write_new("/dev/null", b"")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/null: cannot be written, file exists; choose another path
    """
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except _FAILURES as error:
        raise _unwritable(path, error) from error


def protect(output: AnyPath, inputs: Iterable[AnyPath | None], *, force: bool = False) -> None:
    r"""Refuse an output that is one of the inputs, or a file that boundwatch did not write.

    Call it before anything is read. An input is recognized by any path, link, hard link or case; a file in a
    folder that is an input counts, too, and no force replaces any of them.

    Parameters
    ----------
    output
        The file that is about to be written.
    inputs
        The files and folders that are read; None and ``-`` are none.
    force
        Replace a file that boundwatch did not write.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "trials.csv"
    >>> _ = path.write_text("cost\n0.1\n")
    >>> protect(path, [path], force=True)
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: ...trials.csv: is an input and would be replaced; choose another output
    """
    target = Path(output)
    with suppress(OSError):  # the code that reads or writes it says why it cannot be
        if not target.is_file():  # there is nothing to replace, or a pipe
            return
        if any(each is not None and str(each) != "-" and _holds(Path(each), target) for each in inputs):
            raise _refusal(output, "is an input and would be replaced", "choose another output")
        if not force and not _is_ours(target):
            remedy = ("choose another name, or replace it with ", Argument("force", True))
            raise _refusal(output, "already exists and was not written by boundwatch", remedy)


def _holds(source: Path, target: Path) -> bool:
    """Return whether a file is a source, or in a folder that is one."""
    if source.is_dir():
        return any(parent.samefile(source) for parent in target.resolve().parents)
    return source.exists() and target.samefile(source)


def _is_ours(path: Path) -> bool:
    """Return whether boundwatch wrote a file: a certificate, a state, a page or a figure."""
    with path.open("rb") as file:
        head = file.read(1 << 20)
    if head.lstrip().startswith(b"{"):
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return False
        return isinstance(content, dict) and not {"schema_version", "family_version", "kind"}.isdisjoint(
            content
        )
    drawn = head.startswith((b"\x89PNG", b"%PDF", b"<?xml", b"<!DOCTYPE html>"))
    return drawn and b"boundwatch" in path.read_bytes()


def make_folder(path: AnyPath) -> None:
    """Make a folder and those above it, before hours of work wait to be written there.

    Examples
    --------
    >>> make_folder("/dev/null/runs")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/null/runs: cannot be made, ...; choose another folder
    """
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _refusal(path, f"cannot be made, {reason(error)}", "choose another folder") from error


def refuse_special(path: AnyPath) -> None:
    """Refuse a path that is there and is not a file, such as a device.

    Examples
    --------
    >>> refuse_special("/dev/null")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/null: is not a file; name one
    """
    with suppress(OSError):  # nothing can be there
        if Path(path).exists() and not Path(path).is_file():
            raise _refusal(path, "is not a file", "name one")


def _refusal(path: AnyPath, problem: str, remedy: Remedy) -> InvalidSetting:
    return InvalidSetting(problem, where=Place(str(path)), remedy=remedy)


def _unwritable(path: AnyPath, error: Exception) -> InvalidSetting:
    why = "is a folder" if isinstance(error, IsADirectoryError) else reason(error)
    return _refusal(path, f"cannot be written, {why}", "choose another path")


def _unreadable(path: AnyPath, error: Exception) -> InvalidSetting:
    if isinstance(error, FileNotFoundError):
        return MissingFile("no such file", where=Place(str(path)), remedy="check the path")
    if isinstance(error, IsADirectoryError):
        return _refusal(path, "is a folder, not a file", "name a file in it")
    return _refusal(path, f"cannot be read, {reason(error)}", "check the path and its permissions")


def reason(error: Exception) -> str:
    """Return what the system says about an error, to be continued after a comma."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
