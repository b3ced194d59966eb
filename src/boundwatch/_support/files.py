"""Files in and out: whole or not at all, with one clear line when it cannot be done."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from json.encoder import encode_basestring_ascii as _encode_text
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.errors import InvalidSetting, MissingFile

_CHUNK = 1 << 20
_encode = json.JSONEncoder(allow_nan=False).encode
_SIMPLE: dict[type, Callable[[Any], str]] = {  # what the encoder writes, too, but takes longer to
    str: _encode_text,
    int: repr,
    float: lambda value: repr(value) if math.isfinite(value) else _encode(value),
    type(None): lambda _: "null",
}
LARGEST = 4 << 30
"""Bytes that a file may have."""


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; raise `InvalidSetting` when there is none to read.

    Examples
    --------
    >>> read_bytes("no/such/file")
    Traceback (most recent call last):
    boundwatch.errors.MissingFile: no/such/file: no such file; check the path
    """
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
    kind = stat.S_IFREG
    with suppress(OSError, AttributeError):  # what is only in memory has no mode
        mode = os.fstat(file.fileno())
        kind = stat.S_IFMT(mode.st_mode)
        endless = hasattr(os, "major") and os.major(mode.st_rdev) == 1 and os.minor(mode.st_rdev) != 3
        if kind == stat.S_IFBLK or (kind == stat.S_IFCHR and endless):  # memory devices, except /dev/null
            raise InvalidSetting(f"{source}: is an endless device; name a file")
    parts, size = [], 0
    while part := file.read(_CHUNK << 4):
        parts.append(part)
        size += len(part)
        if size > LARGEST:
            raise InvalidSetting(f"{source}: is larger than {LARGEST >> 30} GiB; give fewer episodes")
    return b"".join(parts)


def open_binary(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; raise `InvalidSetting` when there is none to read.

    Examples
    --------
    >>> open_binary("no/such/file")
    Traceback (most recent call last):
    boundwatch.errors.MissingFile: no/such/file: no such file; check the path
    """
    try:
        return Path(path).open("rb")
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    r"""Write UTF-8 text, whole or not at all; see `write_bytes`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_text(path, "done\n")
    >>> path.read_text()
    'done\n'
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # half a pair of surrogates has no bytes


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
    """Return JSON as `json.dumps` indents it, except for lists of numbers."""
    deeper = newline + "  "
    if isinstance(content, dict) and content:
        items = [
            f"{_encode_text(str(key))}: "
            f"{_SIMPLE[type(each)](each) if type(each) in _SIMPLE else _indented(each, deeper)}"
            for key, each in content.items()
        ]
        return f"{{{deeper}{f',{deeper}'.join(items)}{newline}}}"
    if isinstance(content, list | tuple):
        if not set(map(type, content)) <= {int, float}:
            return f"[{deeper}{f',{deeper}'.join(_indented(each, deeper) for each in content)}{newline}]"
        text = repr(list(content))  # as JSON has it, unless there is an inf or a nan, which it refuses
        if "n" not in text:
            return text
    return _encode(content)


def write_costs(path: str | os.PathLike[str], costs: NDArray[np.float64]) -> None:
    r"""Write costs as a table with the one column ``cost``, in digits that give the same numbers back.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "costs.csv"
    >>> write_costs(path, np.array([0.1, 1.0]))
    >>> path.read_text()
    'cost\n0.1\n1.0\n'
    """
    write_text(path, "cost\n" + "".join(f"{cost!r}\n" for cost in costs.tolist()))


def write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
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
        raise InvalidSetting("-: files are not written to standard output; name a file, or /dev/stdout")
    try:
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)  # a pipe or /dev/stdout: there is nothing to replace, nor to resolve
        else:
            _replace(target.resolve(), data)
    except (OSError, ValueError, RuntimeError) as error:
        why = "is a folder" if target.is_dir() else reason(error)
        raise InvalidSetting(f"{path}: cannot be written, {why}; choose another path") from error


def write_new(path: str | os.PathLike[str], data: bytes, *, mode: int = 0o666) -> None:
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
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{path}: cannot be written, {reason(error)}; choose another path") from error


def protect(
    output: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None], *, force: bool = False
) -> None:
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
    >>> protect(path, [])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: ...trials.csv: already exists and was not written by boundwatch; choose
    another ...
    """
    target = Path(output)
    try:
        if not target.is_file():  # there is nothing to replace, or a pipe
            return
        for each in inputs:
            if each is not None and str(each) != "-" and _holds(Path(each), target):
                raise InvalidSetting(f"{output}: is an input and would be replaced; choose another output")
        if not force and not _is_ours(target):
            raise InvalidSetting(
                f"{output}: already exists and was not written by boundwatch; choose another "
                "name, or replace it with force=True (--force)"
            )
    except OSError:  # the code that reads or writes it says why it cannot be
        return


def _holds(source: Path, target: Path) -> bool:
    """Return whether a file is a source, or in a folder that is one."""
    if not source.exists():
        return False
    if source.is_dir():
        return any(parent.samefile(source) for parent in target.resolve().parents)
    return target.samefile(source)


def _is_ours(path: Path) -> bool:
    """Return whether boundwatch wrote a file: a certificate, a state, a page or a figure."""
    with path.open("rb") as file:
        head = file.read(_CHUNK)
    if head.lstrip().startswith(b"{"):
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return False
        known = {"schema_version", "family_version", "kind"}
        return isinstance(content, dict) and bool(known & set(content))
    figure = head.startswith((b"\x89PNG", b"%PDF", b"<?xml"))
    page = head.startswith(b"<!DOCTYPE html>")
    return (figure or page) and b"boundwatch" in path.read_bytes()


def make_folder(path: str | os.PathLike[str]) -> None:
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
        raise InvalidSetting(f"{path}: cannot be made, {reason(error)}; choose another folder") from error


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    r"""Remove what a process that was killed left of writing a file; only its owner may call this.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state"
    >>> path.with_name(".state.0123456789abcdef.tmp").touch()
    >>> remove_leftovers(path)
    >>> list(path.parent.iterdir())
    []
    """
    target = Path(path)
    pattern = re.compile(rf"\.{re.escape(target.name[:64])}\.[0-9a-f]{{16}}\.tmp")
    for other in target.parent.iterdir():
        if pattern.fullmatch(other.name):
            other.unlink(missing_ok=True)


def refuse_special(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is there and is not a file, such as a device.

    Examples
    --------
    >>> refuse_special("/dev/null")
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: /dev/null: is not a file; name one
    """
    regular = True
    with suppress(OSError, ValueError):  # nothing is there, or nothing can be
        regular = stat.S_ISREG(Path(path).stat().st_mode)
    if not regular:
        raise InvalidSetting(f"{path}: is not a file; name one")


def sha256_file(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file in hexadecimal, reading a mebibyte at a time.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "empty"
    >>> write_bytes(path, b"")
    >>> sha256_file(path)[:16]
    'e3b0c44298fc1c14'
    """
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return digest.hexdigest()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary file to write to, which takes the place of a file once it is whole and on the disk."""
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be written, {reason(error)}; choose another path") from error
    finally:
        temporary.unlink(missing_ok=True)


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    # Not tempfile: its files are private (0600), and the umask cannot be read without changing it.
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
        _sync_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power failure, too, where a folder can be opened."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _unreadable(path: str | os.PathLike[str], error: Exception) -> InvalidSetting:
    if isinstance(error, FileNotFoundError):
        return MissingFile(f"{path}: no such file; check the path")
    if isinstance(error, IsADirectoryError):
        return InvalidSetting(f"{path}: is a folder, not a file; name a file in it")
    return InvalidSetting(f"{path}: cannot be read, {reason(error)}; check the path and its permissions")


def reason(error: Exception) -> str:
    """Return what the system says about an error, to be continued after a comma."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text[:1].lower() + text[1:]
