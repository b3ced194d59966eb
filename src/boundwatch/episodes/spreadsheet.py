"""Excel workbooks (.xlsx, extra ``io``)."""

from __future__ import annotations

import dataclasses
import io
import zipfile
import zlib
from collections.abc import Collection
from typing import Any
from xml.etree.ElementTree import ParseError

from boundwatch.episodes.sheet import Row, header_fits, read_sheet
from boundwatch.episodes.table import Table
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingExtra

OLD_MAGIC = b"\xd0\xcf\x11\xe0"
"""The bytes that workbooks of Excel before 2007 (.xls) begin with."""


def looks_like_workbook(data: bytes) -> bool:
    r"""Return whether a ZIP archive is a workbook of Excel; a damaged one counts, too.

    Examples
    --------
    >>> looks_like_workbook(b"PK\x03\x04 and then no more")
    False
    """
    return b"xl/workbook.xml" in data or b"xl/worksheets" in data


def read_workbook(data: bytes, source: str, sheet: str | None, asked: Collection[str]) -> Table:
    """Read a sheet of a workbook: the one asked for, the only one, or the only one that has the column."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise MissingExtra("reading XLSX", "io") from error
    try:
        # Values as they were last computed, not formulas.
        book = load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        sheets = {each.title: _rows(each) for each in book.worksheets}
        name = _choose(sheets, sheet, asked, source)
        if any(cell is None for row in sheets[name] for cell in row.cells):
            _name_formulas(sheets[name], load_workbook(io.BytesIO(data), read_only=True)[name])
    except (zipfile.BadZipFile, zlib.error, ParseError, OSError, EOFError) as error:
        raise _damaged(source) from error
    except BoundwatchError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise _damaged(source) from error
    table = read_sheet(sheets[name], f"{source} (sheet {name})", asked, where="row")
    return dataclasses.replace(table, detail=f"sheet {name}") if len(sheets) > 1 else table


def _choose(sheets: dict[str, list[Row]], sheet: str | None, asked: Collection[str], source: str) -> str:
    if sheet is not None:
        found = [name for name in sheets if name == sheet] or [
            n for n in sheets if n.casefold() == sheet.casefold()
        ]
        if not found and sheet.isdigit() and 1 <= int(sheet) <= len(sheets):
            found = [list(sheets)[int(sheet) - 1]]
        if not found:
            raise InvalidSetting(
                f"{source}: has no sheet {sheet!r}; choose one of {', '.join(map(repr, sheets))} (--sheet "
                f"NAME)"
            )
        return found[0]
    filled = [
        name for name, rows in sheets.items() if any(any(c is not None for c in row.cells) for row in rows)
    ]
    if not filled:
        raise InvalidCost(f"{source}: is empty; at least one episode is needed")
    fitting = [name for name in filled if header_fits(sheets[name], asked)[0]]
    if len(filled) > 1 and len(fitting) != 1:
        raise InvalidSetting(
            f"{source}: has several sheets; choose one of {', '.join(map(repr, filled))} with sheet=... "
            f"(--sheet NAME)"
        )
    return (fitting or filled)[0]


def _rows(sheet: Any) -> list[Row]:
    """Return all rows of a sheet, each as wide as the widest."""
    # Programs that append rows may leave the extent as it was, and reading would end there.
    sheet.reset_dimensions()
    rows = [[_value(cell) for cell in cells] for cells in sheet.iter_rows()]
    width = max(map(len, rows), default=0)
    return [Row(cells + [None] * (width - len(cells)), number) for number, cells in enumerate(rows, start=1)]


def _name_formulas(rows: list[Row], sheet: Any) -> None:
    """Put formulas where their results were never computed, for the error to show them."""
    sheet.reset_dimensions()
    for row, cells in zip(rows, sheet.iter_rows(), strict=False):
        for column, cell in enumerate(cells[: len(row.cells)]):
            if row.cells[column] is None and isinstance(cell.value, str):
                row.cells[column] = cell.value


def _value(cell: Any) -> Any:
    """Return what a cell holds; a percentage as people see it, for 0.05 and 5 % must not be mixed up."""
    value = cell.value
    if isinstance(value, str):
        return value.strip()
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and "%" in str(cell.number_format or "")
    ):
        return f"{round(value * 100, 10):.15g}%"
    return value


def _damaged(source: str) -> InvalidCost:
    return InvalidCost(f"{source}: the XLSX data is damaged, cut short or encrypted; save it again in Excel")
