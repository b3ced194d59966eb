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
    """Return the content of a file; refuse one that is missing, too large or, like a device, without end."""
    parts, size = [], 0
    with open_binary(path) as file:
        try:
            kind = os.fstat(file.fileno())
            memory = hasattr(os, "major") and os.major(kind.st_rdev) == 1 and os.minor(kind.st_rdev) != 3
            if stat.S_ISBLK(kind.st_mode) or (stat.S_ISCHR(kind.st_mode) and memory):  # /dev/null has an end
                raise _refusal(path, "is an endless device", "name a file")
            while part := file.read(_CHUNK):
                parts.append(part)
                size += len(part)
                if size > LARGEST:
                    raise _refusal(path, f"is larger than {LARGEST >> 30} GiB", "give fewer episodes")
        except OSError as error:
            raise _unreadable(path, error) from error
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


def one_page(content: object, newline: str = "\n") -> str:
    """Return a value as indented JSON, with every list of numbers on one line."""
    deeper = newline + "  "
    if isinstance(content, dict) and content:
        items = [f"{_encode(str(key))}: {one_page(each, deeper)}" for key, each in content.items()]
        return f"{{{deeper}{f',{deeper}'.join(items)}{newline}}}"
    if isinstance(content, list | tuple) and not set(map(type, content)) <= {int, float}:
        return f"[{deeper}{f',{deeper}'.join(one_page(each, deeper) for each in content)}{newline}]"
    return _encode(content)


def canonical(content: object) -> bytes:
    """Return a value as JSON that equal values have in common, to be hashed or signed."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def write_text(path: AnyPath, text: str) -> None:
    """Write UTF-8 text, whole or not at all; see `write_bytes`."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # half a pair of surrogates has no bytes


def write_costs(path: AnyPath, costs: NDArray[np.float64]) -> None:
    """Write costs as a table with the one column ``cost``, in digits that give the same numbers back."""
    write_text(path, "cost\n" + "".join(f"{cost!r}\n" for cost in costs.tolist()))


def write_bytes(path: AnyPath, data: bytes) -> None:
    """Write a file such that a reader sees the old content or the new, never a part; a link is followed."""
    if str(path) == "-":
        raise _refusal("-", "files are not written to standard output", "name a file, or /dev/stdout")
    temporary = None
    try:
        target = Path(path)
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(data)  # a pipe or /dev/stdout: there is nothing to replace, nor to resolve
            return
        target = target.resolve()
        # Not tempfile: its files are private (0600), and the umask cannot be read without changing it.
        temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
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
    """Write a file that must not be there yet; it has these permissions (less the umask) at once."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(path, flags, mode), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except _FAILURES as error:
        raise _unwritable(path, error) from error


def protect(output: AnyPath, inputs: Iterable[AnyPath | None], *, force: bool = False) -> None:
    """Refuse an output that is one of the inputs or, without force, a file that boundwatch did not write.

    Call it before anything is read. An input is recognized by any path, link, hard link or case, and so is a
    file in a folder that is one; None and ``-`` are none.
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
        return "schema_version" in content or "kind" in content
    drawn = head.startswith(
        (b"\x89PNG", b"%PDF", b"<?xml", b"<!DOCTYPE html>", b"<!-- Written", b"# Written")
    )
    return drawn and b"boundwatch" in path.read_bytes()


def make_folder(path: AnyPath) -> None:
    """Make a folder and those above it, before hours of work wait to be written there."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _refusal(path, f"cannot be made, {reason(error)}", "choose another folder") from error


def refuse_special(path: AnyPath) -> None:
    """Refuse a path that is there and is not a file, such as a device."""
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


@contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold a folder inside the block, made if it is not there; refuse at once what another process holds.

    The lock ends with the block or with the process, however either ends. Its file, ``.lock``, stays.
    """
    from filelock import FileLock, Timeout  # only training and its like lock a folder

    make_folder(folder)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        problem = f"another {what} is at work in {folder}"
        raise InvalidSetting(problem, remedy="wait until it ends, or choose another folder") from error
    except OSError as error:
        problem = f"cannot be locked, {error.strerror or 'the file system has no locks'}"
        raise InvalidSetting(problem, where=Place(str(folder)), remedy="choose another folder") from error
    try:
        yield
    finally:
        lock.release()
