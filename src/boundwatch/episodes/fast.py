"""Large CSV and JSON-lines files through pyarrow, where they are simple enough to mean the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise
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


def read_table(
    content: bytes | Path, found: str, asked: tuple[str, ...], careful: Callable[[], Table]
) -> Table | None:
    """Return the table of a large file; None if pyarrow is not there or might read it differently.

    Whatever is unusual (titles above the header, quotes in it, decimal commas, blank lines, missing values)
    is left to the careful reader, which also explains what is wrong.

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
    try:
        if found == "jsonl":
            return _read_lines(content, size, cache(careful))
        return _read_csv(content, size, asked)
    except (pyarrow.ArrowException, BoundwatchError, UnicodeDecodeError):
        return None


def _read_csv(content: bytes | Path, size: int, asked: tuple[str, ...]) -> Table | None:
    import pyarrow
    import pyarrow.csv

    head = _part(content, 0, min(size, _HEAD)).decode("utf-8")
    lines = head.splitlines()[:-1]
    if not lines or '"' in lines[0] or "#" in lines[0] or lines[0].startswith("\ufeff"):
        return None
    delimiter = separator(lines[:200], asked)
    names = lines[0].split(delimiter)
    sample = read_csv("\n".join(lines), "head", asked)
    if not sample.named or sample.commas or sample.names != names or len(set(names)) < len(names):
        return None
    # What is peculiar about the last rows, such as a total, must not be counted.
    last = _part(content, max(0, size - _HEAD), size).splitlines()[1:]
    if last:
        end = read_csv("\n".join([lines[0], *(line.decode("utf-8") for line in last)]), "end", asked)
        if end.names != names or end.notes or len(end.values(names[0])) != len(last):
            return None

    def read(kinds: dict[str, Any]) -> Any:
        return pyarrow.csv.read_csv(
            _opened(content),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=list(kinds), column_types=kinds, null_values=[], strings_can_be_null=False
            ),
        )

    wanted = {normal(name) for name in asked} or set(DEFAULTS)
    numeric = {
        name: pyarrow.float64()
        for name in names
        if (normal(name) in wanted or counts_episodes(name))
        and all(isinstance(parse(cell), float) for cell in sample.values(name))
    }
    numbers: Any = read(numeric) if numeric else None
    return Table(
        names,
        True,
        lambda name: read({name: pyarrow.string()}).column(name).to_pylist(),
        array=lambda name: None if name not in numeric else _numbers(numbers.column(name)),
        place=lambda row, name: f"row {row + 1} (line {row + 2}), column {name!r}",
    )


def _read_lines(content: bytes | Path, size: int, careful: Callable[[], Table]) -> Table | None:
    import pyarrow
    import pyarrow.json

    ends = [*range(0, size, _CHUNK), size]
    lines = sum(_part(content, start, end).count(b"\n") for start, end in pairwise(ends))
    columns = pyarrow.json.read_json(_opened(content))
    names = columns.column_names
    # One object per line: pyarrow would also take two, or an object that spans several.
    if columns.num_rows != lines + (_part(content, size - 1, size) != b"\n"):
        return None
    if names != read_json(_whole_lines(_part(content, 0, min(size, _HEAD))), "head").names:
        return None
    if any(column.null_count for column in columns.columns):
        return None

    def values(name: str) -> list[Any]:
        column = columns.column(name)
        kind = column.type
        plain = _is_number(kind) or pyarrow.types.is_string(kind) or pyarrow.types.is_boolean(kind)
        found: list[Any] = column.to_pylist() if plain else careful().values(name)
        return found

    return Table(
        names,
        True,
        values,
        array=lambda name: _numbers(columns.column(name)),
        place=lambda row, name: f"row {row + 1} (line {row + 1}), column {name!r}",
    )


def _part(content: bytes | Path, start: int, end: int) -> bytes:
    if isinstance(content, bytes):
        return content[start:end]
    with files.open_binary(content) as file:
        file.seek(start)
        return file.read(end - start)


def _whole_lines(data: bytes) -> str:
    return data[: data.rfind(b"\n") + 1].decode("utf-8")


def _opened(content: bytes | Path) -> Any:
    import pyarrow

    return pyarrow.BufferReader(content) if isinstance(content, bytes) else pyarrow.OSFile(str(content))


def _is_number(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind))


def _numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column of finite numbers as an array, None for any other."""
    if not _is_number(column.type):
        return None
    kind = np.dtype(column.type.to_pandas_dtype())
    # Not its to_numpy, which imports pandas.
    parts = [
        np.frombuffer(chunk.buffers()[1], kind, len(chunk), chunk.offset * kind.itemsize)
        for chunk in column.chunks
        if len(chunk)
    ]
    values: NDArray[np.float64] = np.concatenate([np.empty(0), *parts])
    # The careful reader says what is missing.
    return values if math.isfinite(values.min(initial=0)) and math.isfinite(values.max(initial=0)) else None
