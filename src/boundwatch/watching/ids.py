"""Episodes that their sender has numbered: what was counted, what comes twice, and what is missing."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections import OrderedDict
from typing import Any

from boundwatch._support.text import shown
from boundwatch.errors import InvalidCost, SchemaMismatch

MOST_REMEMBERED = 4096
"""Ids whose costs are kept: more than any sender repeats of what it does not know to be counted."""


class Ids:
    """The ids that were counted.

    Whole numbers are kept as ranges, so that a stream without gaps takes no memory, and gaps are noticed. Of
    any other JSON value 8 bytes of a hash are kept; it can only be told whether it came before.

    Examples
    --------
    >>> ids = Ids()
    >>> for number in (1, 2, 3, 5):
    ...     ids.add(number)
    >>> ids.to_list(), 3 in ids, ids.fault(7), ids.fault(4)
    ([[1, 3], [5, 5]], True, 'id 7 follows id 5: 1 missing', 'id 4 comes after id 5: out of order')
    """

    def __init__(self) -> None:
        self._ranges: list[list[int]] = []
        self._others: dict[str, None] = {}

    def __contains__(self, value: object) -> bool:
        if type(value) is not int:
            return _hash(value) in self._others
        if not self._ranges or value > self._ranges[-1][1]:  # the usual case
            return False
        place = bisect_right(self._ranges, value, key=lambda ends: ends[0]) - 1
        return place >= 0 and value <= self._ranges[place][1]

    def fault(self, value: object) -> str:
        """Say what is missing before an id that is new, or nothing."""
        if type(value) is not int or not self._ranges or value == self._ranges[-1][1] + 1:
            return ""
        last = self._ranges[-1][1]
        if value < last:
            return f"id {value} comes after id {last}: out of order"
        return f"id {value} follows id {last}: {value - last - 1} missing"

    def add(self, value: object) -> None:
        """Remember an id that is new."""
        if type(value) is not int:
            self._others[_hash(value)] = None
        elif self._ranges and value == self._ranges[-1][1] + 1:
            self._ranges[-1][1] = value
        else:
            self._ranges = _merged([*self._ranges, [value, value]])

    def to_list(self) -> list[Any]:
        """Return everything as plain JSON values."""
        return [*self._ranges, *self._others]

    @classmethod
    def from_list(cls, content: object) -> Ids:
        """Rebuild what `to_list` described."""
        ids = cls()
        if not isinstance(content, list):
            raise SchemaMismatch("its ids are not a list; it is damaged")
        for item in content:
            if isinstance(item, str):
                ids._others[item] = None
            elif isinstance(item, list) and len(item) == 2 and all(type(end) is int for end in item):
                ids._ranges.append(item)
            else:
                raise SchemaMismatch("its ids are neither ranges nor hashes; it is damaged")
        return ids


class RecentCosts:
    """The costs of the last ids, so that an id that comes again with another cost is noticed.

    Examples
    --------
    >>> recent = RecentCosts()
    >>> recent.add("arm-1", 7, [0.25])
    >>> recent.of("arm-1", 7), recent.of("arm-2", 7)
    ([0.25], None)
    """

    def __init__(self) -> None:
        self._costs: OrderedDict[tuple[str, int | str], list[float]] = OrderedDict()

    def add(self, stream: str, value: object, costs: list[float]) -> None:
        """Remember the costs of an id, one per metric, and forget the oldest if there are too many."""
        self._costs[stream, _key(value)] = costs
        if len(self._costs) > MOST_REMEMBERED:
            self._costs.popitem(last=False)

    def of(self, stream: str, value: object) -> list[float] | None:
        """Return the costs with which an id was counted, None if that is too long ago."""
        return self._costs.get((stream, _key(value)))

    def to_list(self) -> list[Any]:
        """Return everything as plain JSON values."""
        return [[*key, costs] for key, costs in self._costs.items()]

    @classmethod
    def from_list(cls, content: object) -> RecentCosts:
        """Rebuild what `to_list` described."""
        recent = cls()
        if not isinstance(content, list):
            raise SchemaMismatch("its costs are not a list; it is damaged")
        for stream, key, costs in content:
            if not isinstance(stream, str) or type(key) not in (int, str):
                raise SchemaMismatch("its costs belong to no ids; it is damaged")
            recent._costs[stream, key] = [float(cost) for cost in costs]
        return recent


def _merged(ranges: list[list[int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(high, merged[-1][1])
        else:
            merged.append([low, high])
    return merged


def _key(value: object) -> int | str:
    return value if type(value) is int else _hash(value)


def _hash(value: object) -> str:
    try:
        text = json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidCost(f"the id {shown(value)} is not a JSON value") from error
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
