"""JSON lines: one object per line; what is in an object within is called outer.inner."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, Place
from boundwatch.readers.rows import Row, Rows

_ONE = "put one object on each line, one per episode (jq -c '.[]')"
_DEEPEST = 32


def open_lines(number: int, text: str, declared: Declared, source: str) -> Rows:
    """Return the rows of JSON lines from the first one.

    Raises
    ------
    Refusal
        If the line is part of a document that holds all episodes: what it means depends on who wrote it.
    """
    where = Place(source, "line", number)
    if text.lstrip().startswith("["):
        raise InvalidCost(
            "begins a JSON array, which is read as a whole",
            where=where,
            remedy=f"give it as a file, or {_ONE}",
        )
    first = parse(text, where)
    names = tuple(first)
    lists = [name for name, value in first.items() if isinstance(value, list) and _objects(value)]
    if lists and declared.measure is None:
        raise InvalidCost(
            f"could be one episode or a document, as it has a list {lists[0]!r} of objects",
            where=where,
            remedy=(
                "for an episode name its column with ",
                Argument("success"),
                ", ",
                Argument("cost"),
                " or ",
                Argument("reward"),
                f"; for a document, {_ONE}",
            ),
        )
    return Rows(names, declared, declared.resolve(names), source, named=False)


def rows(lines: Iterable[tuple[int, str]], table: Rows) -> Iterator[Row]:
    """Yield the cells of each object, in the order of the first one's names."""
    for number, text in lines:
        if text and not text.isspace():
            yield number, cells(parse(text, table.place(number)), table, number)


def cells(content: Mapping[str, Any], table: Rows, number: int) -> list[Any]:
    """Return an object's cells; what was asked for must be there, and be a value."""
    for name in table.wanted:
        if name not in content:
            raise InvalidCost("is missing", where=table.place(number, name), remedy="every episode needs it")
        if isinstance(content[name], list) and name not in table.declared.design.lists:
            raise InvalidCost(
                "is a list, not the value of one episode",
                where=table.place(number, name),
                value=content[name],
                remedy=_ONE,
            )
    return [_stripped(content.get(name)) for name in table.names]


def parse(text: str, where: Place) -> dict[str, Any]:
    """Return the object on a line, flat."""
    try:
        content = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        twice = str(error) if isinstance(error, EqualNamesError) else ""
        raise InvalidCost(
            twice or "is not valid JSON", where=where, remedy="name each value once" if twice else _ONE
        ) from None
    return flat(content, where)


def flat(content: object, where: Place) -> dict[str, Any]:
    """Return an object without objects within; refuse anything else.

    Examples
    --------
    >>> flat({"cost": 1, "at": {"x": 2}}, Place())
    {'cost': 1, 'at.x': 2}
    """
    if not isinstance(content, dict):
        raise InvalidCost("is not a JSON object", where=where, value=content, remedy=_ONE)
    if not any(isinstance(value, dict) for value in content.values()):
        return content
    pairs = list(_flat(content, "", _DEEPEST))
    try:
        return unique(pairs)
    except EqualNamesError as error:
        raise InvalidCost(str(error), where=where, remedy="name each value once") from None


def _flat(content: dict[str, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict) and depth:
            yield from _flat(value, f"{prefix}{name}.", depth - 1)
        else:
            yield f"{prefix}{name}", value


class EqualNamesError(ValueError):
    """An object has a name twice."""


def unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse one that has a name twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise EqualNamesError(f"has {twice!r} twice")
    return content


def _objects(value: Sequence[Any]) -> bool:
    return bool(value) and all(isinstance(each, dict) for each in value)


def _stripped(value: Any) -> Any:
    return value.strip() if isinstance(value, str) else value
