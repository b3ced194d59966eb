"""Rows of cells, from a CSV file or a spreadsheet: where the header is, and which rows are trials."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn

from boundwatch._support.text import shown
from boundwatch.episodes.numbers import is_missing, parse, parse_decimal
from boundwatch.episodes.table import DEFAULTS, Table
from boundwatch.episodes.words import is_judgment, looks_like_outcome, normal
from boundwatch.errors import InvalidCost

_HEADER_WITHIN = 60  # rows: nobody writes longer titles
_SUMMARY = {
    *("total", "totals", "sum", "mean", "average", "avg", "median", "std", "min", "max", "count", "rate"),
    *("success rate", "success_rate", "overall", "summary", "grand total", "standard deviation", "std dev"),
    *(
        "summe",
        "gesamt",
        "mittelwert",
        "durchschnitt",
        "anzahl",
        "erfolgsquote",
        "moyenne",
        "somme",
        "promedio",
    ),
}
_SUMMARY_WITHIN = 5  # of the last rows
# Names of columns that number the trials.
_NUMBERING = re.compile(
    r"#|(trial|run|episode|rollout|attempt|test|n[or]|number|index|id)s?"
    r"([ _.-]*(id|n[or]|number|index))?\.?",
    re.IGNORECASE,
)


class Row(NamedTuple):
    """The cells of a row and the number of its line."""

    cells: list[Any]
    line: int


def read_sheet(
    rows: Sequence[Row],
    source: str,
    asked: Collection[str] = (),
    *,
    where: str = "line",
    commas: bool = False,
) -> Table:
    """Return the table in rows of cells.

    The header is the first row that names one of the columns asked for (or, if none is, one of those that
    are read by default) and is as wide as the rows below it. What is above it is skipped and said. Rows
    without any content are skipped. A sheet whose first row is all data has no header.

    Parameters
    ----------
    rows
        The cells, text or values.
    source
        The file, for errors.
    asked
        The names of columns that somebody asked for.
    where
        What a row is called in errors: a line of text or a row of a sheet.
    commas
        Whether decimals have commas in this file.
    """
    filled = [row for row in rows if any(not _blank(cell) for cell in row.cells)]
    if not filled:
        raise InvalidCost(f"{source}: is empty; at least one episode is needed")
    start, named = _find_header(filled, asked, source, where)
    header, above = (filled[start], filled[:start]) if named else (None, [])
    body = filled[start + 1 :] if named else filled
    notes = _skipped(above, where)
    body, comments = _without_comments(body, header, source, where)
    width = _width(header, body)
    names = _names(header, width)
    body, repeated = _without_repeated_header(body, names if named else None)
    cells = [_fit(row, width, names, body, source, where) for row in body]
    keep = [i for i in range(width) if names[i] or any(not _blank(row[i]) for row in cells)]
    _refuse_summary(cells, names, body, source, where)
    if named:
        _refuse_units(cells, body, source, where)
    else:
        _refuse_numbers_as_names(cells, body, source, where)
    columns = [names[i] for i in keep]
    lines = [row.line for row in body]

    def sheet_place(row: int, column: str) -> str:
        return f"row {lines[row]} of the sheet, column {column!r}"

    place = sheet_place if where == "row" else None
    positions = {name: keep[i] for i, name in reversed(list(enumerate(columns)))}
    if comments:
        many = len(comments) > 1
        notes += (
            f"{len(comments)} comments skipped" if many else f"comment in {where} {comments[0]} skipped",
        )
    if repeated:
        notes += (f"{where} {repeated[0].line} repeats the header and was skipped",)
    return Table(
        columns,
        named,
        lambda name: [row[positions[name]] for row in cells],
        lines,
        commas=commas,
        notes=notes,
        place=place,
    )


def header_fits(rows: Sequence[Row], asked: Collection[str]) -> tuple[bool, float, int]:
    """Say how well rows fit a table: whether a header is found, the share of rows of one width, that width.

    Examples
    --------
    >>> header_fits([Row(["trial", "cost"], 1), Row(["1", "0.5"], 2)], ())
    (True, 1.0, 2)
    """
    filled = [row for row in rows if any(not _blank(cell) for cell in row.cells)]
    if not filled:
        return False, 0.0, 0
    try:
        start, named = _find_header(filled, asked, "", "line")
    except InvalidCost:  # reading it says so
        start, named = 0, True
    wanted = {normal(name) for name in asked} or set(DEFAULTS)
    found = named and bool(wanted & set(_header_cells(filled[start].cells)))
    width = _usual_width(filled)
    below = filled[start:] if named else filled
    same = sum(_extent(row.cells) == width for row in below) / len(below)
    return found, same if width > 1 or found else 0.0, width


def _blank(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _find_header(rows: Sequence[Row], asked: Collection[str], source: str, where: str) -> tuple[int, bool]:
    """Return the position of the header among rows with content, and whether there is one at all."""
    head = rows[:_HEADER_WITHIN]
    wanted = {normal(name) for name in asked if not _numeric(name)} or set(() if asked else DEFAULTS)
    needed = _usual_width(rows)
    plausible: int | None = None  # the first row that is all names, whichever they are
    for start, row in enumerate(head):
        cells = _header_cells(row.cells)
        if not _could_be_header(cells, needed):
            if plausible is None and _pandas_header(row, rows[start + 1 :]):
                return start, True
            continue
        names = not any(_numeric(cell) for cell in cells)
        for column in (i for i, cell in enumerate(cells) if cell in wanted):
            if not looks_like_outcome(cells[column]):
                return start, True
            # A column of successes may be called what its cells say: is this its name, or a trial?
            below = {normal(str(row.cells[column])) for row in rows[start + 1 :] if column < len(row.cells)}
            if names and not any(map(is_judgment, below)):
                return start, True
            if plausible is None:
                _refuse_outcome_as_header(cells, column, below, row.line, source, where)
                return start, True
        if plausible is None:
            outcomes = all(map(looks_like_outcome, filter(None, cells)))
            if not names or (outcomes and any(map(_is_outcome, _below(rows, start)))):
                break  # a row of data, with no names above it
            plausible = start
    # No row of names has such a name: what looks like names is still the header, for the error to list them.
    if plausible is None:
        for start, row in enumerate(head):
            if any(cell in wanted and not looks_like_outcome(cell) for cell in _header_cells(row.cells)):
                return start, True  # too narrow for the rows below it, which is for them to complain about
        return 0, False
    return plausible, True


def _is_outcome(cell: object) -> bool:
    return isinstance(cell, str) and looks_like_outcome(cell)


def _below(rows: Sequence[Row], start: int) -> list[Any]:
    return [cell for row in rows[start + 1 : start + _HEADER_WITHIN] for cell in row.cells]


def _header_cells(cells: Sequence[Any]) -> list[str]:
    """Return the names in a row, without the # that NumPy puts before them."""
    names = ["" if cell is None else normal(str(cell)) for cell in cells]
    if names and names[0].startswith("#") and names[0] != "#":
        names[0] = names[0].lstrip("# ")
    return names


def _could_be_header(cells: list[str], needed: int) -> bool:
    filled = [cell for cell in cells if cell]
    # An index without a name, as pandas writes it, is allowed; a padded title is not.
    return len(filled) >= max(1, needed - 1) and len(cells) >= needed and not all(map(_numeric, filled))


def _usual_width(rows: Sequence[Row]) -> int:
    """Return how many cells most rows fill up to their last one with content."""
    widths = Counter(_extent(row.cells) for row in rows[:1000])
    most = max(widths.values())
    return max(width for width, times in widths.items() if times == most)


def _extent(cells: Sequence[Any]) -> int:
    return max((i + 1 for i, cell in enumerate(cells) if not _blank(cell)), default=0)


def _numeric(cell: object) -> bool:
    return not isinstance(parse(cell), bool | None) or (
        isinstance(cell, str) and parse_decimal(cell) is not None
    )


def _pandas_header(row: Row, below: Sequence[Row]) -> bool:
    """Return whether a row of numbers has no name for the index below it, as pandas numbers columns."""
    return (
        len(row.cells) > 1
        and _blank(row.cells[0])
        and all(_numeric(cell) for cell in row.cells[1:])
        and bool(below)
        and all(other.cells and not _blank(other.cells[0]) for other in below)
    )


def _refuse_outcome_as_header(
    cells: list[str], column: int, below: Collection[str], line: int, source: str, where: str
) -> None:
    """Refuse a first row that may be the name of a column or a trial, if nothing else tells."""
    others = [cell for i, cell in enumerate(cells) if i != column and cell]
    if cells[column] in below and all(map(looks_like_outcome, others)):
        raise InvalidCost(
            f"{source}: {where} {line} = {cells[column]!r} could be the column's name or a trial; put "
            f"another name "
            "above it, such as outcome, and read it with --success outcome"
        )


def _refuse_numbers_as_names(cells: list[list[Any]], body: list[Row], source: str, where: str) -> None:
    """Refuse a first row of whole numbers that pandas may have written as names."""
    first, rest = cells[0], cells[1:]
    texts = [str(cell).strip() for cell in first]
    counted = texts == [str(i) for i in range(len(texts))]
    if not counted or not rest:
        return
    index = [str(row[0]).strip() for row in cells]
    if len(texts) > 1 and index == [str(i) for i in range(len(index))]:
        return  # episodes counted from 0
    pointed = all("." in str(cell) for row in rest for cell in row)
    if len(texts) > 1 or pointed:
        raise InvalidCost(
            f"{source}: {where} {body[0].line} = {shown(','.join(texts))} could be data or the numbers "
            f"that pandas "
            "writes above columns without names; give the columns names"
        )


def _skipped(above: list[Row], where: str) -> tuple[str, ...]:
    if not above:
        return ()
    first = next(str(cell).strip() for cell in above[0].cells if not _blank(cell))
    count = f"{where} {above[0].line}" if len(above) == 1 else f"{len(above)} {where}s"
    return (f"{count} above the header skipped ({shown(first)}{', ...' if len(above) > 1 else ''})",)


COMMENTED_OUT = (
    "looks like a trial that was commented out; a trial that is left out makes every guarantee wrong, so "
    "take out the #, or delete the line for good"
)


def commented_out(cells: Sequence[Any], header: Sequence[Any]) -> bool:
    """Return whether a row that begins with # is a trial under this header (or like this first row).

    A remark has one cell, or few. A row as wide as the table is a trial, however many of its cells are empty.

    Examples
    --------
    >>> names = ["trial", "object", "grasped", "notes"]
    >>> commented_out(["#7", "mug", "no", ""], names), commented_out(["# lunch", "", "", ""], names)
    (True, False)
    >>> commented_out(["# 0.5"], ["cost"]), commented_out(["# lunch"], ["cost"])
    (True, False)
    """
    width = _extent(header)
    filled = sum(not _blank(cell) for cell in cells)
    rest = str(cells[0]).strip("# ")
    is_value = _numeric(rest) or looks_like_outcome(rest)
    return (filled > 1 and filled >= width - 1) or (len(cells) >= width and (filled > 1 or is_value))


def _without_comments(
    body: list[Row], header: Row | None, source: str, where: str
) -> tuple[list[Row], list[int]]:
    """Take out remarks; a trial that was commented out is no remark."""
    kept, lines = [], []
    for row in body:
        first = row.cells[0].strip() if row.cells and isinstance(row.cells[0], str) else ""
        if not first.startswith("#"):
            kept.append(row)
            continue
        if commented_out(row.cells, (header or body[0]).cells):
            raise InvalidCost(f"{source}: {where} {row.line} = {shown(first)} {COMMENTED_OUT}")
        lines.append(row.line)
    return kept, lines


def _width(header: Row | None, body: list[Row]) -> int:
    return len(header.cells) if header is not None else max((len(row.cells) for row in body), default=0)


def _names(header: Row | None, width: int) -> list[str]:
    if header is None:
        return [str(position) for position in range(1, width + 1)]
    names = ["" if cell is None else " ".join(str(cell).split()) for cell in header.cells]
    if names and names[0].startswith("#") and names[0] != "#":
        names[0] = names[0].lstrip("# ")
    return names


def _without_repeated_header(body: list[Row], names: list[str] | None) -> tuple[list[Row], list[Row]]:
    """Take out copies of the header, which come from files that were put together."""
    if names is None:
        return body, []
    wanted = [normal(name) for name in names]
    first = names[0].casefold()
    copies = [
        row
        for row in body
        if str(row.cells[0]).strip("# ").casefold() == first
        and _header_cells(row.cells)[: len(wanted)] == wanted
    ]
    return ([row for row in body if row not in copies], copies) if copies else (body, [])


def _fit(row: Row, width: int, names: list[str], body: list[Row], source: str, where: str) -> list[Any]:
    """Return a row's cells, as many as there are columns; refuse a row that cannot be matched with them."""
    cells = row.cells
    if len(cells) == width:
        return cells
    if len(cells) > width:
        if all(_blank(cell) for cell in cells[width:]):
            return cells[:width]
        _refuse_width(row, width, source, where, "write decimals with a point or in quotes, ")
    # Spreadsheets leave out separators of columns that are often empty; anything else shifts the columns.
    full = [other.cells for other in body if len(other.cells) >= width]
    missing = range(len(cells), width)
    if full and all(not names[i] or any(_blank(other[i]) for other in full) for i in missing):
        return [*cells, *("" for _ in missing)]
    return _refuse_width(row, width, source, where, "")


def _refuse_width(row: Row, width: int, source: str, where: str, remedy: str) -> NoReturn:
    raise InvalidCost(
        f"{source}: {where} {row.line} has {len(row.cells)} fields, the header has {width}; "
        f"{remedy}complete it, "
        "or take it out"
    )


def summary_fault(
    cells: Sequence[Any], names: Sequence[str], is_known: Callable[[int], bool] = lambda _: False
) -> str:
    """Say that a row is a total or a mean among the trials: it would count as one more trial.

    The same words may be conditions of trials. A row that has the number of a trial is one.

    Parameters
    ----------
    cells, names
        The row, and the names above it.
    is_known
        Returns whether the word at a position came before in its column, as conditions do.

    Examples
    --------
    >>> summary_fault(["Mean", "0.13"], ["task", "cost"])[:32]
    "looks like a summary ('Mean'), n"
    >>> summary_fault(["7", "max", "0.2"], ["trial", "speed", "cost"])
    ''
    """
    words = {i: cell for i, cell in enumerate(cells) if isinstance(cell, str) and _is_summary(cell)}
    found = next((word for i, word in words.items() if not is_known(i)), None)
    if found is None:
        return ""
    if any(i not in words and not _blank(cells[i]) for i in numbering(names)):
        return ""
    return (
        f"looks like a summary ({shown(found)}), not a trial; take it out or, if it is a trial, write "
        "another word or number the trials in a column 'trial'"
    )


def numbering(names: Sequence[str]) -> list[int]:
    """Return where the columns are that number trials.

    Examples
    --------
    >>> numbering(["Trial", "speed", "run_id"])
    [0, 2]
    """
    index = not names[0].strip()  # pandas numbers rows without a name
    return [i for i, name in enumerate(names) if _NUMBERING.fullmatch(name.strip()) or (index and i == 0)]


@lru_cache(maxsize=1000)  # a column has few different words
def _is_summary(cell: str) -> bool:
    return normal(cell).rstrip(":. ") in _SUMMARY


def _refuse_summary(
    cells: list[list[Any]], names: list[str], body: list[Row], source: str, where: str
) -> None:
    def came_before(row: int, column: int) -> bool:
        word = normal(str(cells[row][column]))
        return any(normal(str(other[column])) == word for other in cells[: row - 1])

    for row in range(max(1, len(cells) - _SUMMARY_WITHIN), len(cells)):
        if fault := summary_fault(cells[row], names, partial(came_before, row)):
            raise InvalidCost(f"{source}: {where} {body[row].line} {fault}")
    if len(cells) > 3 and not all(map(_blank, cells[-1][1:])):
        # Trials have numbers or names; a row without any of what all others have is no trial.
        always = [i for i in range(len(cells[0])) if all(not _blank(row[i]) for row in cells[:-1])]
        missing = [i for i in always if _blank(cells[-1][i])]
        if missing and missing[0] == 0 and len(always) - len(missing) == 1:
            raise InvalidCost(
                f"{source}: {where} {body[-1].line} has nothing but one value; complete it if it is a trial, "
                "or take it out if it is a total"
            )


def _refuse_units(cells: list[list[Any]], body: list[Row], source: str, where: str) -> None:
    """Refuse a row of units below the header: it would count as one more trial."""
    for column, first in enumerate(cells[0] if len(cells) > 2 else []):
        if not isinstance(first, str) or is_missing(first) or _numeric(first):
            continue
        below = [row[column] for row in cells[1:]]
        if looks_like_outcome(first) and all(parse(cell) in (0, 1) for cell in below):
            continue  # yes and 1 in one column
        if all(map(_numeric, below)):
            raise InvalidCost(
                f"{source}: {where} {body[0].line} looks like units ({shown(first)}), not a trial; take it "
                "out"
            )


def has_decimal_commas(rows: Sequence[Row]) -> bool:
    """Return whether any number has a decimal comma.

    Examples
    --------
    >>> has_decimal_commas([Row(["1", "0,5"], 1)]), has_decimal_commas([Row(["1", "5"], 1)])
    (True, False)
    """
    cells = (cell for row in rows for cell in row.cells if isinstance(cell, str) and "," in cell)
    return any(parse_decimal(cell) is not None for cell in cells)
