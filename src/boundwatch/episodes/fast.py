"""Large CSV and JSON-lines files through pyarrow, where they are simple enough to mean the same."""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch._support import files
from boundwatch.episodes.formats import read_csv, read_json, separator
from boundwatch.episodes.numbers import parse
from boundwatch.episodes.steps import counts_episodes
from boundwatch.episodes.table import DEFAULTS, Table
from boundwatch.episodes.words import normal
from boundwatch.errors import BoundwatchError

SMALLEST = 1 << 20
"""Bytes below which nothing is gained."""
_HEAD = 1 << 16
_CHUNK = 1 << 24
_COMMA = re.compile(r",\d")
_SAMPLE = 1000  # lines of the head and of the end that the careful reader looks at


def read_table(
    content: bytes | Path, found: str, asked: tuple[str, ...], careful: Callable[[], Table]
) -> Table | None:
    """Return the table of a large file; None if pyarrow is not there or might read it differently.

    Whatever is unusual (titles above the header, quotes, decimal commas, remarks, blank lines, headers that
    are repeated, rows of another width, other encodings than UTF-8) is left to the careful reader, wherever
    in the file it is. That reader also explains what is wrong.

    Parameters
    ----------
    content
        The text, or the file that it is in.
    found
        ``csv`` or ``jsonl``.
    asked
        The columns that somebody asked for.
    careful
        Reads everything with care, should a column be wanted after all that pyarrow reads differently.
    """
    size = len(content) if isinstance(content, bytes) else content.stat().st_size
    if not SMALLEST <= size <= files.LARGEST:
        return None
    try:
        import pyarrow
    except ImportError:
        return None
    # Opened once and never read beyond this size: a log may grow, or be replaced, in the meantime.
    file = pyarrow.BufferReader(content) if isinstance(content, bytes) else pyarrow.OSFile(str(content))
    try:
        if found == "jsonl":
            return _read_lines(file, size, cache(careful))
        return _read_csv(file, size, asked)
    except (pyarrow.ArrowException, BoundwatchError, UnicodeDecodeError):
        return None


def _read_csv(file: Any, size: int, asked: tuple[str, ...]) -> Table | None:
    import pyarrow
    import pyarrow.csv

    lines = _whole_lines(file.read_at(min(size, _HEAD), 0)).splitlines()
    if not lines or "#" in lines[0] or lines[0].startswith("\ufeff"):
        return None
    delimiter = separator(lines[:200], asked)
    names = lines[0].split(delimiter)
    sample = read_csv("\n".join(lines[:_SAMPLE]), "head", asked)
    if not sample.named or sample.commas or sample.names != names or len(set(names)) < len(names):
        return None
    # What is peculiar about the last rows, such as a total, must not be counted.
    last = file.read_at(min(size, _HEAD), max(0, size - _HEAD)).splitlines()[1:][-_SAMPLE:]
    if last:
        end = read_csv("\n".join([lines[0], *(line.decode("utf-8") for line in last)]), "end", asked)
        if end.names != names or end.notes or len(end.values(names[0])) != len(last):
            return None
    # Quotes may hold separators and ends of lines, or be wrong. A decimal comma in any column makes 1.234 in
    # another ambiguous.
    rows = _count_lines(file, size, refused=b'"\0', commas=delimiter == ",") - 1

    def read(kinds: dict[str, Any]) -> Any:
        table = pyarrow.csv.read_csv(
            file.get_stream(0, size),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, null_values=[], strings_can_be_null=False
            ),
        )
        if table.num_rows != rows:
            raise pyarrow.ArrowInvalid(f"{table.num_rows} rows in {rows + 1} lines")
        return table

    text = pyarrow.string()
    wanted = {normal(name) for name in asked} or set(DEFAULTS)
    kinds = {
        name: pyarrow.float64()
        if all(isinstance(parse(cell), float) for cell in sample.values(name))
        else text
        for name in names
        if name == names[0] or normal(name) in wanted or counts_episodes(name)
    }
    columns = read(kinds)
    # Whether a row is a trial, its first cell tells; one that became a number does.
    if kinds[names[0]] == text and _any_but_trials(columns.column(0), names[0]):
        return None

    def values(name: str) -> list[Any]:
        # All lines are UTF-8 and as wide as the header, so that any other column can still be read.
        found = columns if kinds.get(name) == text else read({name: text})
        return _texts(found.column(name))

    return Table(
        names,
        True,
        values,
        array=lambda name: _numbers(columns.column(name)) if name in kinds else None,
        lines=range(2, rows + 2),
    )


def _texts(column: Any) -> list[str]:
    """Return the cells of a column of text without spaces around them."""
    texts: list[str] = []
    for chunk in column.chunks:
        encoded = chunk.dictionary_encode()  # a text that comes often is made and looked at once
        known = [text.strip() for text in encoded.dictionary.to_pylist()]
        texts += map(known.__getitem__, _array(encoded.indices).tolist())
    return texts


def _any_but_trials(column: Any, name: str) -> bool:
    """Return whether the first cell of any row is blank, a remark, or the name in the header."""
    import pyarrow.compute as compute

    cells = compute.utf8_lower(compute.utf8_trim_whitespace(column))
    # Not with `equal`: pyarrow imports pandas to compare with a text.
    pattern = f"^(#|{re.escape(name.lower())}[# ]*$|$)"
    return bool(compute.any(compute.match_substring_regex(cells, pattern)).as_py())


def _read_lines(file: Any, size: int, careful: Callable[[], Table]) -> Table | None:
    import pyarrow
    import pyarrow.json

    columns = pyarrow.json.read_json(file.get_stream(0, size))
    names, rows = columns.column_names, columns.num_rows
    # One object per line: pyarrow would also take two, or an object that spans several.
    if rows != _count_lines(file, size):
        return None
    if names != read_json(_whole_lines(file.read_at(min(size, _HEAD), 0)), "head").names:
        return None
    if any(column.null_count for column in columns.columns):
        return None

    def values(name: str) -> list[Any]:
        column = columns.column(name)
        kind = column.type
        plain = _is_number(kind) or pyarrow.types.is_string(kind) or pyarrow.types.is_boolean(kind)
        # The file may have grown since.
        found: list[Any] = column.to_pylist() if plain else careful().values(name)[:rows]
        return found

    return Table(
        names,
        True,
        values,
        array=lambda name: _numbers(columns.column(name)),
        lines=range(1, rows + 1),
    )


def _count_lines(file: Any, size: int, refused: bytes = b"", *, commas: bool = True) -> int:
    """Count the lines of a file; raise `BoundwatchError` or `UnicodeDecodeError` if it has other bytes.

    Without `commas`, one before a digit is refused, too.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines, part, text = 0, b"", ""
    for start in range(0, size, _CHUNK):
        part = file.read_at(min(_CHUNK, size - start), start)
        text = text[-1:] + decoder.decode(part)  # a comma may end one part, and its digit begin the next
        if any(byte in part for byte in refused) or not (commas or _COMMA.search(text) is None):
            raise BoundwatchError("left to the careful reader")
        lines += part.count(b"\n")
    decoder.decode(b"", final=True)
    return lines + (not part.endswith(b"\n"))


def _whole_lines(data: bytes) -> str:
    return data[: data.rfind(b"\n") + 1].decode("utf-8")


def _is_number(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind))


def _array(chunk: Any) -> NDArray[Any]:
    # Not a column's to_numpy, which imports pandas.
    kind = np.dtype(chunk.type.to_pandas_dtype())
    return np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)


def _numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column of finite numbers as an array, None for any other."""
    if not _is_number(column.type):
        return None
    parts = [_array(chunk) for chunk in column.chunks if len(chunk)]
    values: NDArray[np.float64] = np.concatenate([np.empty(0), *parts])
    # The careful reader says what is missing.
    return values if math.isfinite(values.min(initial=0)) and math.isfinite(values.max(initial=0)) else None
