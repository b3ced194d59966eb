"""JSON: one object per line, or an array of objects or values; a field of a field is called outer.inner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.block import ONLY, Table, empty
from boundwatch.readers.rows import Row, Rows, in_blocks

_ONE = "write one object per line, one per episode, or an array of them"
_DEEPEST = 32
_NOTHING = object()


def open_lines(number: int, text: str, declared: Declared, source: str) -> Rows:
    """Return the rows of JSON lines from the first one; refuse a document that holds all episodes."""
    where = Place(source, "line", number)
    array = text.lstrip().startswith("[")
    open_ended = text.count("{") > text.count("}") and text.rstrip().endswith(("{", "[", ",", ":"))
    if array or open_ended:  # not a line that may be skipped: what is within is no list of episodes
        problem = f"begins a JSON {'array' if array else 'object over several lines'}"
        problem += ", which cannot be read line by line"
        raise InvalidSetting(problem, where=where, remedy="write one object per line, one per episode")
    first = _parse(text, where)
    names = tuple(first)
    lists = [name for name, value in first.items() if isinstance(value, list)]
    if declared.measure is None and (whole := [n for n in lists if first[n] and _is_object(first[n][0])]):
        kinds = (Argument("success"), ", ", Argument("cost"), " or ", Argument("reward"))
        problem = f"could be one episode or a document, as it has a list {whole[0]!r} of objects"
        ways = ("for an episode name its column with ", *kinds, f"; for a document, {_ONE}")
        raise InvalidCost(problem, where=where, remedy=ways)
    try:
        return Rows(names, declared, declared.resolve(names), source, named=False)
    except InvalidSetting as error:
        if lists or any("." in name for name in names):
            error.remedy += (f"; if this is a document of all episodes, {_ONE}",)
        raise


def rows(lines: Iterable[tuple[int, str]], table: Rows) -> Iterator[Row]:
    """Yield the cells of each object, in the order of the first one's names."""
    for number, text in lines:
        if text and not text.isspace():
            yield number, _cells(_parse(text, table.place(number)), table, number)


def document(data: bytes, source: str) -> Any:
    """Return what a whole document holds; NaN is read as JSON's writers in Python write it."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        where, remedy = Place(source, "line", line), "it was cut short: fetch it again"
        raise InvalidCost("is not valid JSON", where=where, remedy=remedy) from error


def read_array(data: bytes, source: str, declared: Declared) -> Table:
    """Read an array: its elements are rows, all of them objects or none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidCost("is not UTF-8", where=Place(source), remedy="write it again as UTF-8") from error
    elements = _elements(text, source)
    first = next(elements, _NOTHING)
    if first is _NOTHING:
        raise empty(source)
    names = tuple(_flat(first, Place(source, "row", 1))) if _is_object(first) else ()
    table = Rows(names or (ONLY,), declared, declared.resolve(names), source, "row", named=False)

    def cells() -> Iterator[Row]:
        for number, element in enumerate(chain([first], elements), start=1):
            content = element if names or _is_object(element) else {ONLY: element}
            yield number, _cells(_flat(content, table.place(number)), table, number)

    return Table(source, "json", names, table.measure, in_blocks(cells(), table.keep))


def _cells(content: Mapping[str, Any], table: Rows, number: int) -> list[Any]:
    """Return an object's cells; what was asked for must be there, and be a value."""
    for name in table.wanted:
        where = table.place(number, name)
        if name not in content:
            raise InvalidCost("is missing", where=where, remedy="every episode needs it")
        value = content[name]
        if isinstance(value, list) and name not in table.declared.design.lists:
            problem = "is a list, not the value of one episode"
            raise InvalidCost(problem, where=where, value=value, remedy=_ONE)
    found = map(content.get, table.names)
    return [value.strip() if isinstance(value, str) else value for value in found]


def _parse(text: str, where: Place) -> dict[str, Any]:
    try:
        content = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise _broken(error, where) from None
    return _flat(content, where)


def _flat(content: object, where: Place) -> dict[str, Any]:
    """Return an object without objects within; refuse anything else."""
    if not isinstance(content, dict):
        raise InvalidCost("is not a JSON object", where=where, value=content, remedy=_ONE)
    if not any(map(_is_object, content.values())):
        return content
    try:
        return _unique(list(_fields(content, "", _DEEPEST)))
    except InvalidCost as error:
        raise error.at(where) from None


def _fields(content: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict) and depth:
            yield from _fields(value, f"{prefix}{name}.", depth - 1)
        else:
            yield f"{prefix}{name}", value


def _elements(text: str, source: str) -> Iterator[Any]:
    """Yield what an array holds, so that only one element at a time is kept."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique)
    blank = json.decoder.WHITESPACE.match  # type: ignore[attr-defined]
    place, mark = blank(text, blank(text, 0).end() + 1).end(), ","
    if text.startswith("]", place):
        place, mark = place + 1, "]"
    try:
        while mark != "]":
            element, place = decoder.raw_decode(text, place)
            yield element
            place = blank(text, place).end()
            mark = text[place : place + 1]
            if mark not in (",", "]"):
                raise ValueError
            place = blank(text, place + 1).end()
        if text[place:].strip():
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise _broken(error, Place(source, "line", text.count("\n", 0, place) + 1)) from None


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise InvalidCost(f"has {double!r} twice", remedy="name each value once")
    return content


def _broken(error: Exception, where: Place) -> InvalidCost:
    not_json = InvalidCost("is not valid JSON", remedy=_ONE)
    return (error if isinstance(error, InvalidCost) else not_json).at(where)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)
