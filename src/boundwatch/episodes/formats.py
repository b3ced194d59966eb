"""The file formats, one function each: bytes in, a `Table` out, or an error that names the place."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

import numpy as np

from boundwatch.episodes.table import Table, not_a_number, parse, shown
from boundwatch.errors import InvalidCost, MissingExtra


def read_csv(text: str, source: str, first_line: int = 1) -> Table:
    """Read values between commas, semicolons or tabs; a first row that is not all numbers is the header."""
    # Blank lines at the end; an empty quoted cell there is a missing value, and stays.
    text = text.rstrip(" \r\n")
    first = text.splitlines()[0]
    if declared := re.match(r'"?sep=([,;\t])"?\r?\n', text, re.IGNORECASE):  # for Excel
        text, first_line = text[declared.end() :], first_line + 1
        delimiter = declared[1]
    else:
        delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    try:
        for cells in reader:
            rows.append([cell.strip() for cell in cells])
            lines.append(reader.line_num + first_line - 1)
    except csv.Error as error:
        line = reader.line_num + first_line - 1
        raise InvalidCost(f"{source}: line {line} is not valid CSV ({error}); correct it") from error
    for cell in rows[0]:
        # Not a header, but what somebody took for a number or a comment; # alone is a name for a count.
        if parse(cell) is None and re.fullmatch(r"#.+|[-+]?\d[\d.,' ]*%?", cell):
            raise InvalidCost(f"{source}: line {lines[0]}: {shown(cell)} {not_a_number(cell)}")
    width = len(rows[0])
    for cells, line in zip(rows, lines, strict=True):
        if len(cells) != width:
            fault = f"has {len(cells)} fields, the first line has {width}" if cells else "is empty"
            point = "write decimals with a point, " if delimiter == "," and len(cells) > width else ""
            raise InvalidCost(f"{source}: line {line} {fault}; {point}complete it, or take it out")
    named = any(parse(cell) is None for cell in rows[0])
    names = rows[0] if named else _positions(width)
    rows, lines = rows[named:], lines[named:]
    return Table(names, named, lambda name: [cells[names.index(name)] for cells in rows], lines)


def read_jsonl(text: str, source: str) -> Table:
    """Read one JSON object a line (lines of bare numbers are CSV as well, and read as such)."""
    rows: list[dict[str, Any]] = []
    for line, item in enumerate(text.rstrip().split("\n"), start=1):
        try:
            row = json.loads(item)
        except (ValueError, RecursionError) as error:
            raise InvalidCost(
                f"{source}: line {line} is not valid JSON; put one object on each line"
            ) from error
        if not isinstance(row, dict):
            raise InvalidCost(
                f"{source}: line {line} is not a JSON object; put one on each line (jq -c '.[]')"
            )
        rows.append(row)

    def values(name: str) -> list[Any]:
        for line, row in enumerate(rows, start=1):
            if name not in row:
                raise InvalidCost(
                    f"{source}: row {line} (line {line}) has no {name!r}; every episode needs one"
                )
        return [row[name] for row in rows]

    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(names, True, values, list(range(1, len(rows) + 1)))


def read_npy(data: bytes, source: str) -> Table:
    """Read a NumPy array: one value a row, several unnamed columns, or the named fields of a record."""
    try:
        array = np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError, MemoryError, SyntaxError) as error:
        reason = "holds Python objects" if "allow_pickle" in str(error) else "is damaged or cut short"
        raise InvalidCost(
            f"{source}: the NPY data {reason}; save a plain numeric array with numpy.save"
        ) from error
    if array.ndim not in (1, 2) or (array.dtype.names and array.ndim != 1):
        raise InvalidCost(f"{source}: the array has shape {array.shape}; it must be (n,) or (n, columns)")
    if array.dtype.names:
        return Table(list(array.dtype.names), True, lambda name: array[name].tolist())
    columns = array.reshape(len(array), -1) if array.size else array.reshape(0, 1)
    return Table(_positions(columns.shape[1]), False, lambda name: columns[:, int(name) - 1].tolist())


def read_parquet(data: bytes, source: str) -> Table:
    """Read the one column of a Parquet file that is asked for."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading Parquet", "io") from error
    damaged = f"{source}: the Parquet data is damaged or cut short; fetch or write it again"
    try:
        file = pyarrow.parquet.ParquetFile(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidCost(damaged) from error

    def values(name: str) -> list[Any]:
        try:
            column: list[Any] = file.read(columns=[name]).column(name).to_pylist()
            if len(column) != file.metadata.num_rows:  # pyarrow reads some damaged pages as shorter ones
                raise ValueError("rows are missing")
        except (pyarrow.ArrowException, OSError, ValueError) as error:
            raise InvalidCost(damaged) from error
        return column

    return Table(list(file.schema_arrow.names), True, values)


def _positions(width: int) -> list[str]:
    return [str(position) for position in range(1, width + 1)]
