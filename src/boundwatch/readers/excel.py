"""Excel workbooks (.xlsx, extra ``io``)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from itertools import chain, islice
from typing import IO, Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidSetting, MissingExtra, Place
from boundwatch.readers.table import MOST_ABOVE, Row, Rows, Table, empty, in_parts, label

_MOST_COLUMNS = 1024  # a cell far to the right makes every row as wide
_LOOKED_AT = 4 * MOST_ABOVE  # rows of each sheet, to find the one that has the columns
_LOOKUPS = 3  # cells without a value that may be formulas


def read(file: IO[bytes], source: str, declared: Declared, sheet: str | None) -> Table:
    """Read a sheet of a workbook: the one asked for, the only one, or the only one that has the columns."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtra("reading XLSX", "io") from error
    # Values as they were last computed, not formulas.
    book = load_workbook(file, read_only=True, data_only=True)
    name = _choose(book, source, declared, sheet)
    lines = _rows(book[name])
    rows = Rows(declared, source if len(book.worksheets) == 1 else f"{source} (sheet {name})", "row")
    first = next((line for line in lines if rows.find([list(map(label, line[1]))]) is not None), None)
    if first is None:
        rows.refuse()

    def filled() -> Iterator[Row]:
        place, lookups = rows.names.index(rows.wanted[0]), _LOOKUPS
        for row, values in chain([] if rows.named else [first], lines):
            values += [None] * (len(rows.names) - len(values))
            if values[place] is None and lookups:  # a formula whose result was never computed, or nothing
                lookups -= 1
                file.seek(0)
                formulas = load_workbook(file, read_only=True)[name].iter_rows(row, row, place + 1, place + 1)
                values[place] = next((cell.value for each in formulas for cell in each), None)
            yield row, values

    rows.file_format, rows.blocks = "xlsx", filter(None, map(rows.take, in_parts(filled())))
    return rows


def _choose(book: Any, source: str, declared: Declared, sheet: str | None) -> str:
    names, where = [str(each.title) for each in book.worksheets], Place(source)
    if sheet is not None:
        numbered = {str(number): name for number, name in enumerate(names, start=1)}
        known = numbered | {name.casefold(): name for name in names}  # Excel has no two that differ by case
        if sheet.casefold() not in known:
            listed = f"choose one of {', '.join(map(repr, names))}"
            raise InvalidSetting("is not in it", where=where, name="sheet", value=sheet, remedy=listed)
        return known[sheet.casefold()]
    filled, fitting = [], []
    for name in names:
        heads = [list(map(label, cells)) for _, cells in islice(_rows(book[name]), _LOOKED_AT)]
        filled += [name] if heads else []
        fitting += [name] if any(declared.fitting([cells])[0] for cells in heads) else []
    if not filled:
        raise empty(source)
    if len(filled) > 1 and len(fitting) != 1:
        problem = f"{len(fitting) or len(filled)} of its sheets could be meant"
        remedy = ("choose one with ", Argument("sheet"), f": {', '.join(map(repr, fitting or filled))}")
        raise InvalidSetting(problem, where=where, remedy=remedy)
    return (fitting or filled)[0]


def _rows(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows of a sheet that have a value, however large it says that it is."""
    # Programs that append rows may leave the extent as it was, and reading would end there.
    sheet.reset_dimensions()
    for number, cells in enumerate(sheet.iter_rows(), start=1):
        values = [_value(cell) for cell in cells[:_MOST_COLUMNS]]
        while values and values[-1] is None:
            values.pop()
        if values:
            yield number, values


def _value(cell: Any) -> Any:
    """Return what a cell holds: percentages and durations as people see them.

    0.05 and 5 % must not be mixed up. 0:29 is kept as 29 minutes, whoever typed it: only a cell that shows
    seconds holds a duration.
    """
    value, written = cell.value, str(cell.number_format or "").lower()
    if isinstance(value, str):
        return value.strip() or None
    if type(value) in (int, float) and "%" in written:
        return f"{round(value * 100, 10):.15g}%"
    if isinstance(value, datetime.time | datetime.timedelta) and "s" in written:
        return value.isoformat() if isinstance(value, datetime.time) else str(value)
    return (datetime.datetime.min + value).time() if isinstance(value, datetime.timedelta) else value
