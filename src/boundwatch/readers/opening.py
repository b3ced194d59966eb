"""Bytes of a source: from a file or standard input, out of gzip, in UTF-8; and which format they are in."""

from __future__ import annotations

import codecs
import io
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from boundwatch._support.files import open_binary
from boundwatch._support.text import printable
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingFile, Place, Refusal
from boundwatch.readers.block import Format, damaged, too_large
from boundwatch.readers.text import LONGEST_LINE, long_line

CHUNK = 8 << 20
MAGIC: dict[bytes, Format] = {
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"PK\x03\x04": "xlsx",  # or another archive
    b"\x89MCAP0\r\n": "mcap",
}
_GZIP = b"\x1f\x8b"
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
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


class Source:
    """The bytes of a file, or of standard input (``-``), without gzip around them."""

    def __init__(self, path: str) -> None:
        self.name = "standard input" if path == "-" else path
        self.path = None if path == "-" else Path(path)
        if self.path is not None and not self._is_ordinary(self.path):
            raise InvalidSetting(
                "is no file", where=Place(self.name), remedy="name a file, or a folder of one"
            )
        self._file = self._open()
        self._parts = self._chunks()
        self.head = b""
        try:
            while len(self.head) < _HEAD and (part := next(self._parts, b"")):
                self.head += part
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close a file; standard input is not ours."""
        if self.path is not None:
            self._file.close()

    @staticmethod
    def _is_ordinary(path: Path) -> bool:
        try:
            kind = path.stat().st_mode
        except (OSError, ValueError):
            return True  # opening it says why it cannot be
        return stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or path == Path("/dev/null")

    def _open(self) -> IO[bytes]:
        if self.path is not None:
            try:
                return open_binary(self.path)
            except MissingFile:
                raise MissingFile("no such file", where=Place(self.name), remedy="check the path") from None
        if sys.stdin is None or sys.stdin.closed:
            raise InvalidSetting(
                "cannot be read", where=Place(self.name), remedy="pipe or redirect a file into it"
            )
        return sys.stdin.buffer

    def _chunks(self) -> Iterator[bytes]:
        raw = iter(lambda: self._file.read(CHUNK), b"")
        first = self._file.read(_HEAD)
        self.packed = first.startswith(_GZIP)
        chunks = _chain(first, raw)
        yield from _unpack(chunks, self.name) if self.packed else chunks

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes, as UTF-8 where a mark says that they are UTF-16 or UTF-32."""
        parts = _chain(self.head, self._parts)
        for mark, encoding in _MARKS.items():
            if self.head.startswith(mark):
                return _recode(parts, encoding, len(mark), self.name)
        return parts

    def lines(self) -> Iterator[bytes]:
        """Yield all bytes in parts that end with a newline, the last one perhaps without."""
        rest, lines = b"", 0
        for chunk in self.chunks():
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest += chunk
                if len(rest) > LONGEST_LINE:
                    raise long_line(self.name, lines + 1)
                continue
            whole, rest = rest + chunk[:cut], chunk[cut:]
            lines += whole.count(b"\n")
            yield whole
        if rest:
            yield rest

    def seekable(self) -> IO[bytes]:
        """Return the file itself, or a copy of it in memory where it comes through a pipe or gzip."""
        if not self.packed and self.path is not None and self._file.seekable():
            self._file.seek(0)
            return self._file
        return io.BytesIO(self.whole())

    def whole(self) -> bytes:
        """Return all bytes; refuse too many."""
        parts, size = [], 0
        for part in self.chunks():
            parts.append(part)
            size += len(part)
            if size > _MOST_HELD:
                raise too_large(self.name, f"more than {_MOST_HELD >> 20} MiB at once")
        return b"".join(parts)


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


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


def _recode(parts: Iterator[bytes], encoding: str, mark: int, source: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for part in parts:
            yield decoder.decode(part[mark:]).encode("utf-8")
            mark = 0
        decoder.decode(b"", final=True)
    except UnicodeError as error:
        raise damaged(source, encoding.upper(), "save it as UTF-8 (in Excel: CSV UTF-8)") from error


def recognize(source: Source) -> Format:
    """Return the format of a source by its first bytes; ``csv`` stands for all that is read by lines."""
    head, where = source.head, Place(source.name)
    for magic, found in MAGIC.items():
        if head.startswith(magic):
            return found if found != "xlsx" else _archive(source)
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        problem, remedy = "is a workbook of Excel before 2007 (.xls) or an encrypted one", "save it as .xlsx"
        raise InvalidCost(problem, where=where, remedy=remedy)
    text = head.removeprefix(codecs.BOM_UTF8).lstrip()
    if re.match(rb"<(!doctype|html|table|\?xml)", text, re.IGNORECASE):
        raise InvalidCost("is a web page (HTML or XML)", where=where, remedy="save it as CSV or .xlsx")
    tight = b"".join(text.split())
    if tight.startswith(b"{") and (b'"per_task":[' in tight or b'"per_episode":[' in tight):
        return "lerobot-eval"
    return "json" if text.startswith(b"[") else "csv"


def _archive(source: Source) -> Format:
    check_archive(source)
    with zipfile.ZipFile(source.seekable()) as archive:
        names = set(archive.namelist())
    if "timesteps.npy" in names or "results.npy" in names:
        return "sb3-evaluations"
    if any(name.startswith("xl/") for name in names):
        return "xlsx"
    problem = "is a ZIP archive, but neither .xlsx nor evaluations.npz"
    remedy = "save the costs as CSV, XLSX or NPY"
    raise InvalidCost(problem, where=Place(source.name), remedy=remedy)


def check_archive(source: Source) -> None:
    """Refuse a ZIP archive that is damaged, or that is far larger than it looks."""
    file = source.seekable()
    size = file.seek(0, 2)
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise damaged(source.name, "XLSX or NPZ") from error
    if unpacked > min(_FREE + _RATIO * size, 2 * _MOST_HELD):
        raise too_large(source.name, f"{size} bytes would become {unpacked}")
