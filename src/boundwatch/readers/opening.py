"""The bytes of a source, as a file that can be read again: out of a pipe or gzip; and their format."""

from __future__ import annotations

import codecs
import os
import re
import stat
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import IO

from boundwatch._support.describing import printable
from boundwatch._support.files import open_binary
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, Place, Refusal
from boundwatch.readers.table import Format, damaged, too_large

MAGIC: dict[bytes, Format] = {
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"PK\x03\x04": "xlsx",  # or another archive
    b"\x89MCAP0\r\n": "mcap",
    b"SQLite format 3\0": "vla-eval",
}
_LOGS: dict[Format, bytes] = {
    "inspect-robots": rb'"inspect_robots_version"\s*:',
    "vla-eval": rb'"harness_version"\s*:',
    "lerobot-eval": rb'"per_(task|episode)"\s*:\s*\[',
}
_FOREIGN = {
    rb"\xd0\xcf\x11\xe0": ("is a workbook of Excel before 2007, or encrypted", "save it as .xlsx"),
    rb"\s*<(!doctype|html|table|\?xml)": ("is a web page (HTML or XML)", "save it as CSV or .xlsx"),
}
_GZIP = b"\x1f\x8b"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_CHUNK = 1 << 20
_HEAD = 1 << 16
_MOST_HELD = 256 << 20  # bytes that are kept at once where a format cannot be read in parts
_FREE = 16 << 20  # bytes that any small file may become when it is decompressed
_RATIO = 40  # how many times as large a larger one may become


@contextmanager
def placed(source: str) -> Iterator[None]:
    """Say in which source something was refused; turn whatever a parser raises on damage into a refusal.

    numpy, pyarrow, zipfile and openpyxl raise almost anything on bytes that nobody meant for them; there is
    no list to catch. The cause stays attached, for debugging in Python.
    """
    try:
        yield
    except Refusal as error:
        if error.where is not None:
            raise
        raise error.at(Place(source)) from error.__cause__
    except (BoundwatchError, ImportError, GeneratorExit):
        raise
    except MemoryError as error:
        raise too_large(source, "it does not fit into memory") from error
    except Exception as error:
        reason = printable(" ".join(f"{type(error).__name__}: {error}".split())[:100])
        problem, remedy = f"is damaged, or not what it seems ({reason})", "fetch or write it again"
        raise InvalidCost(problem, where=Place(source), remedy=remedy) from error


@contextmanager
def open_source(path: str, source: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input (``-``), at its start; what comes through a pipe or gzip is copied."""
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            remedy = "pipe or redirect a file into it"
            raise InvalidSetting("cannot be read", where=Place(source), remedy=remedy)
        with _copied(sys.stdin.buffer, sys.stdin.buffer.read(_HEAD), source) as copy:
            yield copy
        return
    with open_binary(path) as file:
        kind = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or path == "/dev/null"):
            problem, remedy = "is not a file", "name a file, or a folder of one"
            raise InvalidSetting(problem, where=Place(source), remedy=remedy)
        head = file.read(_HEAD)
        if file.seekable() and not head.startswith((_GZIP, *_MARKS)):
            file.seek(0)
            yield file
            return
        with _copied(file, head, source) as copy:
            yield copy


@contextmanager
def _copied(file: IO[bytes], head: bytes, source: str) -> Iterator[IO[bytes]]:
    """Copy what a file holds into a temporary one, out of gzip, and into UTF-8 where a mark says UTF-16."""
    parts: Iterable[bytes] = chain([head], iter(partial(file.read, _CHUNK), b""))
    if head.startswith(_GZIP):
        parts = _unpack(parts, source)
        head = next(parts, b"")
        parts = chain([head], parts)
    if encoding := _MARKS.get(head[:2]):
        parts = codecs.iterencode(codecs.iterdecode(parts, encoding), "utf-8")
    with tempfile.SpooledTemporaryFile(max_size=_MOST_HELD) as copy:
        copy.writelines(parts)
        copy.seek(0)
        yield copy


def _unpack(parts: Iterable[bytes], source: str) -> Iterator[bytes]:
    """Yield what gzip data holds, as long as it does not grow without bound."""
    stream, taken, given = zlib.decompressobj(wbits=31), 0, 0
    for part in parts:
        data = part
        taken += len(part)
        while data:
            out = stream.decompress(data, _CHUNK)
            given += len(out)
            if given > _FREE + _RATIO * taken:
                raise too_large(source, f"{taken} bytes of gzip data became more than {given - len(out)}")
            if out:
                yield out
            data = stream.unconsumed_tail
            if stream.eof:
                data = stream.unused_data.lstrip(b"\0")  # some writers pad to a block
                stream = zlib.decompressobj(wbits=31) if data else stream
    if not stream.eof:
        raise damaged(source, "gzip")


def whole(file: IO[bytes], source: str) -> bytes:
    """Return all bytes of a file; refuse too many."""
    data = file.read(_MOST_HELD + 1)
    if len(data) > _MOST_HELD:
        raise too_large(source, f"more than {_MOST_HELD >> 20} MiB at once")
    return data


def recognize(file: IO[bytes], source: str) -> Format:
    """Return the format of a file by its first bytes; ``csv`` stands for all that is read by lines."""
    head = file.read(_HEAD)
    file.seek(0)
    for magic, found in MAGIC.items():
        if head.startswith(magic):
            return found if found != "xlsx" else check_archive(file, source)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    for sign, (problem, remedy) in _FOREIGN.items():
        if re.match(sign, text, re.IGNORECASE):
            raise InvalidCost(problem, where=Place(source), remedy=remedy)
    for name, sign in _LOGS.items() if text.startswith(b"{") else ():
        if re.search(sign, text):
            return name
    return "json" if text.startswith(b"[") else "csv"


def check_archive(file: IO[bytes], source: str) -> Format:
    """Return what is in a ZIP archive; refuse one that is far larger than it looks."""
    size = file.seek(0, 2)
    with zipfile.ZipFile(file) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
        names = set(archive.namelist())
    file.seek(0)
    if unpacked > min(_FREE + _RATIO * size, 2 * _MOST_HELD):
        raise too_large(source, f"{size} bytes would become {unpacked}")
    if not names.isdisjoint(("timesteps.npy", "results.npy")):
        return "sb3-evaluations"
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    problem, remedy = "is a ZIP archive, but neither .xlsx nor evaluations.npz", "save it as CSV, XLSX or NPY"
    raise InvalidCost(problem, where=Place(source), remedy=remedy)
