"""The file formats, one function each: bytes in, a `Table` out, or an error that names the place."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from boundwatch._support.notebook import flatten
from boundwatch._support.text import shown
from boundwatch.episodes.numbers import parse
from boundwatch.episodes.sheet import Row, has_decimal_commas, header_fits, read_sheet
from boundwatch.episodes.table import DEFAULTS, Table
from boundwatch.episodes.words import normal
from boundwatch.errors import InvalidCost, MissingExtra

LINE_FORMATS = (None, "csv", "jsonl")
"""The formats that can be named where lines are read one by one; None if none is."""
_SEPARATORS = "\t;,|"  # in case of doubt the first: commas are decimals in half of the world
_HEAD = 1 << 16  # characters from which the separator is told


def read_csv(text: str, source: str, asked: Collection[str] = (), first_line: int = 1) -> Table:
    """Read values between commas, semicolons, tabs, bars or spaces, with or without a header."""
    # Blank lines at the end; an empty quoted cell there is a missing value, and stays.
    text = text.rstrip(" \r\n")
    if declared := re.match(r'"?sep=([,;|\t])"?\r?\n', text, re.IGNORECASE):  # for Excel
        text, first_line = text[declared.end() :], first_line + 1
        delimiter = declared[1]
    else:
        delimiter = separator(text[:_HEAD].splitlines()[:200], asked)
    lines = text[:_HEAD].splitlines()[:200]
    if not declared and _by_spaces(lines, delimiter, asked):
        text, delimiter = re.sub(r"(?<=\S)[^\S\r\n]+(?=\S)", "\t", text), "\t"
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[Row] = []
    try:
        for cells in reader:
            if cells:
                rows.append(Row([cell.strip() for cell in cells], reader.line_num + first_line - 1))
    except csv.Error as error:
        line = reader.line_num + first_line - 1
        raise InvalidCost(f"{source}: line {line} is not valid CSV ({error}); correct it") from error
    table = read_sheet(rows, source, asked, commas=has_decimal_commas(rows))
    if not table.named and delimiter == ",":
        _refuse_decimal_commas(table, source)
    return table


def separator(lines: Sequence[str], asked: Collection[str] = ()) -> str:
    """Return the separator by which most lines have the same number of cells, and the header its names.

    Examples
    --------
    >>> separator(["trial;cost", "1;0,5", "2;0,25"]), separator(["trial,cost", "1,0.5"])
    (';', ',')
    """

    def fit(delimiter: str) -> tuple[bool, float, int]:
        rows = [Row(cells, 0) for cells in csv.reader(lines, delimiter=delimiter) if cells]
        return header_fits(rows, asked)

    return max(_SEPARATORS, key=fit)  # the first of those that fit alike


def _by_spaces(lines: Sequence[str], delimiter: str, asked: Collection[str]) -> bool:
    """Return whether columns are aligned with spaces, as `numpy.savetxt` writes them: nothing else fits."""
    rows = [line.lstrip("# ").split() for line in lines if line.strip()]
    if not rows or any(delimiter in line for line in lines) or len({len(cells) for cells in rows}) > 1:
        return False
    numbers = all(parse(cell) is not None for cells in rows for cell in cells)
    return len(rows[0]) > 1 and (numbers or header_fits([Row(cells, 0) for cells in rows], asked)[0])


def _refuse_decimal_commas(table: Table, source: str) -> None:
    """Refuse two columns of whole numbers that could be one column with decimal commas."""
    if len(table.names) != 2:
        return
    first, second = (table.values(name) for name in table.names)
    if not all(cell.isdigit() for cell in (*first, *second)):
        return
    numbers = [int(cell) for cell in first]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers))) or len(numbers) < 2:
        raise InvalidCost(f"{source}: {one_or_two(first[0], second[0])}")


def one_or_two(first: str, second: str) -> str:
    """Say that whole numbers with a comma between them could be one number or two.

    Examples
    --------
    >>> one_or_two("0", "5")[:50]
    '0,5 could be one number with a decimal comma or tw'
    """
    return (
        f"{first},{second} could be one number with a decimal comma or two columns; write {first}.{second}, "
        "or give the columns names"
    )


def read_json(text: str, source: str, asked: Collection[str] = ()) -> Table:
    """Read a JSON array of objects or values, an object of columns or episodes, or one object per line."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.lstrip().startswith("["):
            line = f"line {error.lineno} " if isinstance(error, json.JSONDecodeError) else ""
            raise InvalidCost(
                f"{source}: {line}is not valid JSON; give an array of objects, or one object per line"
            ) from error
        return _read_lines(text, source)
    if isinstance(content, list):
        return _from_list(content, source)
    if (
        isinstance(content, dict)
        and "schema_version" in content
        and {"delta", "certificates"} & content.keys()
    ):
        raise InvalidCost(f"{source}: is a certificate, not costs; give the file of the episodes themselves")
    if isinstance(content, dict) and (table := _from_document(content, source, asked)) is not None:
        return table
    return _read_lines(text, source)


AS_FILE = "as a file, without what goes line by line (--follow, --state, --at-most, ...)"
"""How to give a JSON document."""


def document_fault(line: str, asked: Collection[str] = (), *, named: bool = False, cut: bool = False) -> str:
    """Say why a first line is not one episode: JSON that goes on in the next, or may hold all of them.

    A line that was cut off by its writer seldom ends where a document breaks its lines.

    Parameters
    ----------
    line
        The line.
    asked
        The names of columns that may be read; an empty one is none.
    named
        Whether somebody named the column: then an object that has it is an episode, whatever else is in it.
    cut
        Whether this is only the beginning of a line that is too long for an episode.

    Returns
    -------
    str
        The fault and its remedy; nothing if the line may be read as an episode.

    Examples
    --------
    >>> [bool(document_fault(line)) for line in ('{"episodes": [', "[0.5, 1]", '{"all": [{"cost": 0.5}]}')]
    [True, True, True]
    >>> document_fault('{"cost": 0.5}'), document_fault('{"cost": 0.')
    ('', '')
    """
    array = re.match(r'\[\s*([{["\d\]-]|$)', line) is not None
    if not array and not line.startswith("{"):
        return ""
    if not array and not cut and not line.rstrip().endswith(("{", "[", ",", ":")):
        try:
            content = json.loads(line)
            if not named and (twice := listed_too(content, asked)) is not None:
                listed, name = twice
                return (
                    f"{shown(line)} could be one episode or a document, as both it and its list {listed!r} "
                    f"have {name!r}; for an episode name the column with --success, --cost or --reward, or "
                    f"give a document {AS_FILE}"
                )
            if _own_values(content, asked) or _from_document(content, "", asked) is None:
                return ""
        except (ValueError, RecursionError):  # the one who reads it says what is wrong
            return ""
    kind, how = ("array", " (jq -c '.[]')") if array else ("document", "")
    return (
        f"{shown(line)} begins a JSON {kind}, which is read as a whole: give it {AS_FILE}, or put one object "
        f"on each line{how}"
    )


def _own_values(content: dict[str, Any], asked: Collection[str]) -> set[str]:
    """Return the names under which an object has a value to read: those asked for, else the usual ones."""
    found = content | flatten(content)  # what is in an object within is also called outer.inner
    names = {normal(name) for name, value in found.items() if not isinstance(value, list | dict)}
    return names & set(map(normal, filter(None, asked))) or names & set(DEFAULTS)


def listed_too(content: dict[str, Any], asked: Collection[str]) -> tuple[str, str] | None:
    """Return the list in an object whose objects have its column, too, and that column; None if none does.

    Examples
    --------
    >>> listed_too({"cost": 0.2, "episodes": [{"cost": 0.1}, {"cost": 0.3}]}, ["cost"])
    ('episodes', 'cost')
    """
    wanted = _own_values(content, asked)
    for listed, each in content.items():
        if isinstance(each, list) and each and all(isinstance(row, dict) for row in each):
            for name in flatten(each[0]):
                if normal(name) in wanted:
                    return listed, name
    return None


def _from_document(content: dict[str, Any], source: str, asked: Collection[str]) -> Table | None:
    """Read the episodes in a larger object, as Weights & Biases, pandas and many a script write them."""
    if content and all(isinstance(each, list) for each in content.values()):
        lengths = {len(each) for each in content.values()}
        is_columns = not any(isinstance(value, dict) for each in content.values() for value in each)
        if len(lengths) == 1 and is_columns and not {"columns", "data"} <= content.keys():
            return Table(list(content), True, lambda name: list(content[name]))
    names, data = content.get("columns"), content.get("data")
    if isinstance(names, list) and isinstance(data, list):
        if all(isinstance(row, list) and len(row) == len(names) for row in data):
            return _from_objects([dict(zip(map(str, names), row, strict=True)) for row in data], source, None)
        raise InvalidCost(f"{source}: its rows do not have one value per column; write it again")
    objects = [each for each in content.values() if isinstance(each, dict)]
    if len(content) > 1 and len(objects) == len(content) and len({tuple(each) for each in objects}) == 1:
        wanted = {normal(name) for name in asked} or set(DEFAULTS)
        if wanted & set(map(normal, content)):  # names outside, numbers of rows inside
            return Table(list(content), True, lambda name: list(content[name].values()))
        if wanted & {normal(name) for name in flatten(objects[0])}:
            return _from_objects(objects, source, None)
    lists = {name: each for name, each in content.items() if isinstance(each, list) and each}
    lists = {name: each for name, each in lists.items() if all(isinstance(row, dict) for row in each)}
    if len(lists) != 1:
        return None
    ((name, rows),) = lists.items()
    table = _from_objects(rows, source, None)
    return replace(table, notes=(*table.notes, f"read the list {name!r}, and nothing else of the file"))


def _from_list(content: list[Any], source: str) -> Table:
    if not content:
        raise InvalidCost(f"{source}: is empty; at least one episode is needed")
    kinds = {dict if isinstance(each, dict) else list if isinstance(each, list) else None for each in content}
    if kinds == {dict}:
        return _from_objects(content, source, lines=None)
    if kinds == {None}:
        return Table(["1"], False, lambda _: list(content))
    raise InvalidCost(
        f"{source}: the JSON array holds lists or a mixture; give one object or value per episode"
    )


def _read_lines(text: str, source: str) -> Table:
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    for line, item in enumerate(text.rstrip().split("\n"), start=1):
        if not item.strip():
            continue
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
        lines.append(line)
    return _from_objects(rows, source, lines)


def _from_objects(objects: list[dict[str, Any]], source: str, lines: list[int] | None) -> Table:
    rows = [flatten(row) for row in objects]  # what is in an object within is called outer.inner

    def values(name: str) -> list[Any]:
        for row, content in enumerate(rows):
            if name not in content:
                where = "" if lines is None else f" (line {lines[row]})"
                raise InvalidCost(f"{source}: row {row + 1}{where} has no {name!r}; every episode needs one")
        return [content[name] for content in rows]

    names = list(dict.fromkeys(name for row in rows for name in row))
    return Table(names, True, values, lines)


def read_npy(data: bytes, source: str) -> Table:
    """Read a NumPy array: one value per row, several unnamed columns, or the named fields of a record."""
    try:
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:  # the header is Python, and its parser raises whatever it likes
        reason = "holds Python objects" if "allow_pickle" in str(error) else "is damaged or cut short"
        raise InvalidCost(
            f"{source}: the NPY data {reason}; save a plain numeric array with numpy.save"
        ) from error
    if array.ndim not in (1, 2) or (array.dtype.names and array.ndim != 1):
        raise InvalidCost(f"{source}: the array has shape {array.shape}; it must be (n,) or (n, columns)")
    if array.dtype.names:
        return Table(list(array.dtype.names), True, lambda name: array[name].tolist())
    columns = array.reshape(len(array), -1) if array.size else array.reshape(0, 1)
    positions = [str(position) for position in range(1, columns.shape[1] + 1)]
    return Table(positions, False, lambda name: columns[:, int(name) - 1].tolist())


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
