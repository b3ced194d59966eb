"""JSON: one object per line, or an array of objects or values; a field of a field is called outer.inner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.table import Row, Rows, Table, empty, in_parts

_ONE = "write one object per line, one per episode, or an array of them"
_DEEPEST = 32


def open_lines(number: int, text: str, rows: Rows) -> None:
    """Take the columns of JSON lines from the first one; refuse a document that holds all episodes."""
    where = rows.place(number)
    open_ended = text.count("{") > text.count("}") and text.rstrip().endswith(("{", "[", ",", ":"))
    if text.lstrip().startswith("[") or open_ended:  # not a line that may be skipped
        problem = "begins a JSON document over several lines, which cannot be read line by line"
        raise InvalidSetting(problem, where=where, remedy="write one object per line, one per episode")
    first = _flat(document(text, where), where)
    lists = [name for name, value in first.items() if isinstance(value, list)]
    whole = [name for name in lists if first[name] and isinstance(first[name][0], dict)]
    if rows.declared.measure is None and whole:
        kinds = (Argument("success"), ", ", Argument("cost"), " or ", Argument("reward"))
        problem = f"could be one episode or a document, as it has a list {whole[0]!r} of objects"
        ways = ("for an episode name its column with ", *kinds, f"; for a document, {_ONE}")
        raise InvalidCost(problem, where=where, remedy=ways)
    try:
        rows.open(tuple(first), named=False)
    except InvalidSetting as error:
        if lists or any("." in name for name in first):
            error.remedy += (f"; if this is a document of all episodes, {_ONE}",)
        raise


def rows(lines: Iterable[tuple[int, str]], table: Rows) -> Iterator[Row]:
    """Yield the cells of each object, in the order of the first one's names."""
    for number, text in lines:
        if text and not text.isspace():
            yield number, _cells(document(text, table.place(number)), table, number)


def read_array(data: bytes, source: str, declared: Declared) -> Table:
    """Read an array: its elements are rows, all of them objects or none."""
    elements = document(data, Place(source))
    if not elements or not isinstance(elements, list):
        raise empty(source)
    names = tuple(_flat(elements[0], Place(source, "row", 1))) if isinstance(elements[0], dict) else ()
    table = Rows(declared, source, "row")
    table.open(names or ("1",), named=False)

    def cells() -> Iterator[Row]:
        for number, element in enumerate(elements, start=1):
            content = element if names or isinstance(element, dict) else {"1": element}
            yield number, _cells(content, table, number)

    table.file_format, table.blocks = "json", filter(None, map(table.keep, in_parts(cells())))
    return table


def document(data: bytes | str, where: Place) -> Any:
    """Return what JSON holds; NaN is read as JSON's writers in Python write it, a name twice is refused."""
    try:
        return json.loads(data, object_pairs_hook=_unique)
    except InvalidCost as error:
        raise error.at(where) from None
    except (ValueError, RecursionError) as error:
        if where.number is None and isinstance(error, json.JSONDecodeError):
            where = Place(where.source, "line", error.lineno)
        raise InvalidCost("is not valid JSON", where=where, remedy=f"was it cut short? {_ONE}") from None


def _cells(element: object, table: Rows, number: int) -> list[Any]:
    """Return an object's cells; what was asked for must be there, and be a value."""
    content = _flat(element, table.place(number))
    for name in table.wanted:
        if name not in content:
            where = table.place(number, name)
            raise InvalidCost("is missing", where=where, remedy="every episode needs it")
        if isinstance(content[name], list) and name not in table.lists:
            where, problem = table.place(number, name), "is a list, not the value of one episode"
            raise InvalidCost(problem, where=where, value=content[name], remedy=_ONE)
    return [value.strip() if isinstance(value, str) else value for value in map(content.get, table.names)]


def _flat(content: object, where: Place) -> dict[str, Any]:
    """Return an object without objects within; refuse anything else."""
    if not isinstance(content, dict):
        raise InvalidCost("is not a JSON object", where=where, value=content, remedy=_ONE)
    try:
        return _unique(list(fields(content)))
    except InvalidCost as error:
        raise error.at(where) from None


def fields(content: dict[str, Any], prefix: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object, and of objects within."""
    for name, value in content.items():
        if isinstance(value, dict) and depth:
            yield from fields(value, f"{prefix}{name}.", depth - 1)
        else:
            yield f"{prefix}{name}", value


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidCost(f"has {double!r} twice", remedy="name each value once")
    return content
