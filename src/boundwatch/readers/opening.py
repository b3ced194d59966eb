"""Bytes of a source: from a file or standard input, out of gzip, in UTF-8; and which format they are in."""

from __future__ import annotations

import codecs
import io
import os
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import IO

from boundwatch._support.describing import printable
from boundwatch._support.files import open_binary
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, Place, Refusal
from boundwatch.readers.block import Format, damaged, too_large
from boundwatch.readers.text import LONGEST_LINE, long_line

CHUNK = 8 << 20
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
_GZIP = b"\x1f\x8b"
_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
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
def open_source(path: str) -> Iterator[Source]:
    """Open a file, or standard input (``-``), which is not ours to close."""
    if path == "-":
        if sys.stdin is None or sys.stdin.closed:
            where, remedy = Place("standard input"), "pipe or redirect a file into it"
            raise InvalidSetting("cannot be read", where=where, remedy=remedy)
        yield Source(sys.stdin.buffer, "standard input", seekable=False)
        return
    with open_binary(path) as file:
        kind = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or path == "/dev/null"):
            raise InvalidSetting("is no file", where=Place(path), remedy="name a file, or a folder of one")
        yield Source(file, path, seekable=file.seekable())


class Source:
    """The bytes of an open file without gzip around them: `head` has the first ones."""

    def __init__(self, file: IO[bytes], name: str, *, seekable: bool) -> None:
        self.name, self._file = name, file
        first = file.read(_HEAD)
        self._seekable = seekable and not first.startswith(_GZIP)
        self._parts: Iterator[bytes] = chain([first], iter(partial(file.read, CHUNK), b""))
        if first.startswith(_GZIP):
            self._parts = _unpack(self._parts, name)
        self.head = next(self._parts, b"")

    def lines(self) -> Iterator[bytes]:
        """Yield all bytes in parts that end with a newline, the last one perhaps without.

        They are UTF-8 where a mark says that they were UTF-16.
        """
        parts: Iterator[bytes] = chain([self.head], self._parts)
        rest, lines = b"", 0
        if encoding := _MARKS.get(self.head[:2]):
            parts = _recode(parts, encoding, self.name)
        for part in parts:
            cut = part.rfind(b"\n") + 1
            if not cut:
                rest += part
                if len(rest) > LONGEST_LINE:
                    raise long_line(self.name, lines + 1)
                continue
            whole, rest = rest + part[:cut], part[cut:]
            lines += whole.count(b"\n")
            yield whole
        if rest:
            yield rest

    def seekable(self) -> IO[bytes]:
        """Return the file itself, or a copy of it in memory where it comes through a pipe or gzip."""
        if not self._seekable:  # its bytes come once
            self._file, self._seekable = io.BytesIO(self.whole()), True
        self._file.seek(0)
        return self._file

    def whole(self) -> bytes:
        """Return all bytes; refuse too many."""
        parts, size = [self.head], len(self.head)
        for part in self._parts:
            parts.append(part)
            size += len(part)
            if size > _MOST_HELD:
                raise too_large(self.name, f"more than {_MOST_HELD >> 20} MiB at once")
        return b"".join(parts)


def _unpack(parts: Iterator[bytes], source: str) -> Iterator[bytes]:
    """Yield what gzip data holds, as long as it does not grow without bound."""
    stream, taken, given = zlib.decompressobj(wbits=31), 0, 0
    try:
        for part in parts:
            data = part
            taken += len(part)
            while data:
                out = stream.decompress(data, CHUNK if given else _HEAD)
                given += len(out)
                if given > _FREE + _RATIO * taken:
                    raise too_large(source, f"{taken} bytes of gzip data became more than {given - len(out)}")
                if out:
                    yield out
                data = stream.unconsumed_tail
                if stream.eof:
                    data = stream.unused_data.lstrip(b"\0")  # some writers pad to a block
                    stream = zlib.decompressobj(wbits=31) if data else stream
    except zlib.error as error:
        raise damaged(source, "gzip", "fetch or compress it again") from error
    if not stream.eof:
        raise damaged(source, "gzip", "fetch or compress it again")


def _recode(parts: Iterator[bytes], encoding: str, source: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()  # leaves the mark, which the parser takes off
    try:
        for part in parts:
            yield decoder.decode(part).encode("utf-8")
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise damaged(source, encoding.upper(), "save it as UTF-8 (in Excel: CSV UTF-8)") from error


def recognize(source: Source) -> Format:
    """Return the format of a source by its first bytes; ``csv`` stands for all that is read by lines."""
    head, where = source.head, Place(source.name)
    for magic, found in MAGIC.items():
        if head.startswith(magic):
            return found if found != "xlsx" else check_archive(source)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        problem, remedy = "is a workbook of Excel before 2007 (.xls) or an encrypted one", "save it as .xlsx"
        raise InvalidCost(problem, where=where, remedy=remedy)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"<(!doctype|html|table|\?xml)", text, re.IGNORECASE):
        raise InvalidCost("is a web page (HTML or XML)", where=where, remedy="save it as CSV or .xlsx")
    of_logs = [name for name, sign in _LOGS.items() if text.startswith(b"{") and re.search(sign, text)]
    return of_logs[0] if of_logs else "json" if text.startswith(b"[") else "csv"


def check_archive(source: Source) -> Format:
    """Return what is in a ZIP archive; refuse one that is damaged, or far larger than it looks."""
    file = source.seekable()
    size = file.seek(0, 2)
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
            names = set(archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise damaged(source.name, "XLSX or NPZ") from error
    if unpacked > min(_FREE + _RATIO * size, 2 * _MOST_HELD):
        raise too_large(source.name, f"{size} bytes would become {unpacked}")
    if not names.isdisjoint(("timesteps.npy", "results.npy")):
        return "sb3-evaluations"
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    problem, remedy = "is a ZIP archive, but neither .xlsx nor evaluations.npz", "save it as CSV, XLSX or NPY"
    raise InvalidCost(problem, where=Place(source.name), remedy=remedy)
