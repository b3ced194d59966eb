"""Large CSV and JSON-lines files through pyarrow, where they are simple enough to mean the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.formats import read_csv, separator
from boundwatch.episodes.table import Table
from boundwatch.errors import BoundwatchError

SMALLEST = 1 << 22
"""Bytes below which nothing is gained."""
_HEAD = 1 << 16


def read_table(data: bytes, found: str, asked: tuple[str, ...]) -> Table | None:
    """Return the table of a large file; None if pyarrow is not there or might read it otherwise than we do.

    Whatever is unusual (titles above the header, quotes in it, decimal commas, blank lines, missing values)
    is left to the careful reader, which also explains what is wrong.
    """
    if len(data) < SMALLEST or b"\n\n" in data or b"\n\r\n" in data:  # blank lines are rows to pyarrow
        return None
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.json
    except ImportError:
        return None
    try:
        buffer = pyarrow.BufferReader(data)
        if found == "jsonl":
            columns, first = pyarrow.json.read_json(buffer), 1
        else:
            delimiter = _simple_delimiter(data, asked)
            if delimiter is None:
                return None
            columns, first = (
                pyarrow.csv.read_csv(
                    buffer,
                    parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False),
                    convert_options=pyarrow.csv.ConvertOptions(null_values=[], strings_can_be_null=False),
                ),
                2,
            )
    except (pyarrow.ArrowException, UnicodeDecodeError):
        return None
    names = columns.column_names
    if len(set(names)) < len(names) or any(column.null_count for column in columns.columns):
        return None
    return Table(
        names,
        True,
        lambda name: columns.column(name).to_pylist(),
        array=lambda name: _numbers(columns.column(name)),
        place=lambda row, name: f"row {row + 1} (line {row + first}), column {name!r}",
    )


def _simple_delimiter(data: bytes, asked: tuple[str, ...]) -> str | None:
    """Return the separator if the first line is a plain header and the lines after it are plain, too."""
    head = data[:_HEAD].decode("utf-8")
    lines = head.splitlines()[:-1]
    if not lines or '"' in lines[0] or "#" in lines[0] or lines[0].startswith("\ufeff"):
        return None
    try:
        careful = read_csv("\n".join(lines), "head", asked)
    except BoundwatchError:
        return None
    delimiter = separator(lines[:200], asked)
    same = careful.named and careful.names == [name.strip() for name in lines[0].split(delimiter)]
    return delimiter if same and not careful.commas and careful.names == lines[0].split(delimiter) else None


def _numbers(column: Any) -> NDArray[np.float64] | None:
    """Return a column of numbers as an array, None for any other."""
    import pyarrow

    kind = column.type
    if not (pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)):
        return None
    values: NDArray[np.float64] = column.to_numpy().astype(np.float64, copy=False)
    return values
