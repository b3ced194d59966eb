"""What is in a file must not be able to end the program: the boundary around every reader."""

from __future__ import annotations

import functools
import inspect
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from typing import ParamSpec, TypeVar

from boundwatch._support.files import LARGEST
from boundwatch._support.text import printable
from boundwatch.errors import BoundwatchError, InvalidCost

MOST_COLUMNS = 100_000
LONGEST_NAME = 1_000

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def refuses_damage(read: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Turn whatever a parser raises on damaged data into `InvalidCost`.

    numpy, pyarrow, zipfile and the tokenizer raise almost anything on bytes that nobody meant for them; there
    is no list to catch. The cause stays attached, for debugging in Python. Arguments that the reader does not
    have are a `TypeError`, as of any function.
    """
    signature = inspect.signature(read)

    @functools.wraps(read)
    def bounded(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            raise TypeError(f"{read.__name__}() {error}") from None
        try:
            return read(*arguments, **options)
        except (BoundwatchError, ImportError):
            raise
        except MemoryError as error:
            raise InvalidCost(
                f"{_source(arguments)}: does not fit into memory; give fewer episodes"
            ) from error
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
            raise InvalidCost(
                f"{_source(arguments)}: is damaged, or not what it seems ({printable(reason)}); fetch or "
                "write it again"
            ) from error

    return bounded


def decompress(data: bytes, source: str) -> bytes:
    """Return what gzip data holds, up to the largest size.

    Examples
    --------
    >>> import gzip
    >>> decompress(gzip.compress(b"0.5") + gzip.compress(b" 0.6"), "x.gz")
    b'0.5 0.6'
    """
    parts, size, rest = [], 0, data
    try:
        while rest:
            stream = zlib.decompressobj(wbits=31)
            parts.append(stream.decompress(rest, LARGEST - size + 1))
            size += len(parts[-1])
            if size > LARGEST:
                raise InvalidCost(f"{source}: {_too_large()}")
            if not stream.eof:
                raise EOFError
            rest = stream.unused_data.lstrip(b"\0")  # some writers pad to a block
    except (zlib.error, EOFError) as error:
        raise InvalidCost(
            f"{source}: the gzip data is damaged or cut short; fetch or compress it again"
        ) from error
    return b"".join(parts)


def refuse_bombs(data: bytes, source: str) -> None:
    """Refuse a ZIP archive (NPZ, XLSX) that says it is larger than the largest size."""
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
    except zipfile.BadZipFile:  # the reader of the format says what is wrong with it
        return
    if size > LARGEST:
        raise InvalidCost(f"{source}: {_too_large()}")


def _too_large() -> str:
    return f"is larger than {LARGEST >> 30} GiB when it is decompressed; give fewer episodes"


def _source(arguments: tuple[object, ...]) -> str:
    path = str(arguments[0]) if arguments else "the file"
    return "standard input" if path == "-" else path
