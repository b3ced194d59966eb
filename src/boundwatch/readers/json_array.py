"""A JSON array of objects or values, taken apart one element at a time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers import json_lines
from boundwatch.readers.block import ROWS, Block, Table, empty
from boundwatch.readers.rows import Rows

_SHAPE = "give an array of objects or of values, one per episode"


def read(data: bytes, source: str, declared: Declared) -> Table:
    """Read an array: its elements are rows, all of them objects or none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidCost("is not UTF-8", where=Place(source), remedy="write it again as UTF-8") from error
    elements = _elements(text, source)
    first = next(elements, _NOTHING)
    if first is _NOTHING:
        raise empty(source)
    if isinstance(first, dict):
        names = tuple(json_lines.flat(first, Place(source, "row", 1)))
        rows = Rows(names, declared, declared.resolve(names), source, "row", named=False)
    else:
        names = ()
        rows = Rows(("1",), declared, declared.resolve(()), source, "row", named=False)
    table = Table(source, "json", names, rows.measure, iter(()))
    table.blocks = _blocks(first, elements, rows)
    return table


def _blocks(first: object, elements: Iterator[Any], rows: Rows) -> Iterator[Block]:
    kept = [(1, _cells(1, first, rows))]
    for number, element in enumerate(elements, start=2):
        kept.append((number, _cells(number, element, rows)))
        if len(kept) == ROWS:
            yield from filter(None, [rows.keep(kept)])
            kept = []
    yield from filter(None, [rows.keep(kept)])


def _cells(number: int, element: object, rows: Rows) -> list[Any]:
    where = rows.place(number)
    if rows.names != ("1",) or isinstance(element, dict):
        return json_lines.cells(json_lines.flat(element, where), rows, number)
    if isinstance(element, list):
        raise InvalidCost("is a list in a JSON array", where=where, value=element, remedy=_SHAPE)
    return [element.strip() if isinstance(element, str) else element]


_NOTHING = object()


def _elements(text: str, source: str) -> Iterator[Any]:
    """Yield what an array holds, so that only one element at a time is kept."""
    decoder = json.JSONDecoder(object_pairs_hook=json_lines.unique)
    blank = json.decoder.WHITESPACE.match  # type: ignore[attr-defined]
    place, closed = blank(text, 0).end() + 1, False
    place = blank(text, place).end()
    if text[place : place + 1] == "]":
        closed, place = True, place + 1
    while not closed:
        try:
            element, place = decoder.raw_decode(text, place)
        except json_lines.EqualNamesError as error:
            line = text.count("\n", 0, place) + 1
            raise InvalidCost(
                str(error), where=Place(source, "line", line), remedy="name each value once"
            ) from None
        except (ValueError, RecursionError) as error:
            raise _broken(text, place, source) from error
        yield element
        place = blank(text, place).end()
        closed = text[place : place + 1] == "]"
        if not closed and text[place : place + 1] != ",":
            raise _broken(text, place, source)
        place = blank(text, place + 1).end()
    if text[place:].strip():
        raise _broken(text, place, source)


def _broken(text: str, place: int, source: str) -> InvalidCost:
    line = text.count("\n", 0, place) + 1
    return InvalidCost("is not valid JSON", where=Place(source, "line", line), remedy=_SHAPE)
