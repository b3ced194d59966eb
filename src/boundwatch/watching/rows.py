"""A line of a stream becomes an episode: its cost, its id, and whose it is."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from boundwatch.episodes.steps import task_names
from boundwatch.episodes.table import Meaning, Table, check_range, kinds, parse, shown, to_costs
from boundwatch.errors import InvalidCost, InvalidSetting

_LINE = "the line"


class Row(NamedTuple):
    """What a line holds: a cost, the id that its sender gave it, and the task or robot."""

    cost: float
    id: Any = None
    stream: str = ""


class _Plan(NamedTuple):
    """Which column holds the cost, and what it means."""

    column: str
    meaning: Meaning
    low: float
    high: float


@dataclass(frozen=True)
class Rule:
    """How lines are read. It is part of a state: the same lines must mean the same at every start.

    Attributes
    ----------
    column, cost_range, binary
        As in `read_costs`.
    id
        The field by which the sender numbers its episodes, or ``line``.
    by
        The field that names the task or robot.
    """

    column: str | None = None
    cost_range: tuple[float, float] | None = None
    binary: bool = False
    id: str | None = None
    by: str | None = None


@dataclass
class Rows:
    r"""Reads lines by one rule: numbers, JSON objects, or the rows of a CSV table under its header.

    The first line decides; the header of a table is remembered, so that it can be kept in a state.

    Examples
    --------
    >>> rows = Rows(Rule())
    >>> rows.read("0.25"), rows.read('{"episode": 3, "success": true}').cost
    (Row(cost=0.25, id=None, stream=''), 0.0)
    >>> table = Rows(Rule(id="trial"))
    >>> table.read("trial;success"), table.read("7;0")
    (None, Row(cost=1.0, id=7, stream=''))
    """

    rule: Rule
    header: list[str] | None = None
    delimiter: str = ","
    started: bool = False
    """Whether the first line has decided what lines are."""
    _may_be_header: bool = field(default=True, repr=False)
    _number: dict[str, Any] = field(default_factory=dict, repr=False)  # a line that is a number
    _plans: dict[tuple[str, ...], _Plan] = field(default_factory=dict, repr=False)

    def begin_file(self) -> None:
        """Expect that the header comes once more."""
        self._may_be_header = True

    def read(self, text: str) -> Row | None:
        """Return the episode in a line, None for an empty line or a header.

        Raises
        ------
        InvalidCost
            When the line holds no cost.
        InvalidSetting
            When all lines like it would be misread.
        """
        bare = text.removeprefix("\ufeff").strip() if self._may_be_header else text.strip()
        if not bare:
            return None
        values = self._values(bare)
        if values is None:
            return None
        cost = self._cost(values, named=values is not self._number)
        rule = self.rule
        if rule.id is None and rule.by is None:
            return Row(cost)
        return Row(cost, self._id(values), self._stream(values))

    def _values(self, text: str) -> Mapping[str, Any] | None:
        may_be_header, self._may_be_header = self._may_be_header, False
        if self.header is not None:
            return self._cells(text, may_be_header=may_be_header)
        if text[0] == "{":
            self.started = True
            return _decode(text)
        if text[0] in '["' and not self.started:
            raise InvalidCost(f"{shown(text)} is neither a number nor a JSON object")
        if parse(text) is not None:
            self.started = True
        elif not self.started:
            self._begin_table(text)
            return None
        elif kinds(text) & {"success", "reward"}:
            # Lines after it would be read as costs, that is, the wrong way round.
            raise InvalidSetting(
                f"{shown(text)} is the header of a table in the middle of a stream of numbers; send one kind "
                "of lines"
            )
        if self.rule.id not in (None, "line") or self.rule.by is not None:
            wanted = " and ".join(
                f"{name!r}" for name in (self.rule.id, self.rule.by) if name not in (None, "line")
            )
            raise InvalidCost(f"{shown(text)} has no {wanted}; send JSON objects, or a table with a header")
        self._number["1"] = text
        return self._number

    def _begin_table(self, text: str) -> None:
        delimiter = max(",;\t", key=text.count)
        names = _split(text, delimiter)
        table = Table(names, True, lambda _: [])
        plan = table.choose(self.rule.column, _LINE)  # a table without such a column ends here
        table.meaning(plan, _LINE)
        for name, option in ((self.rule.id, "id"), (self.rule.by, "by")):
            if name is not None and not (option == "id" and name == "line"):
                table.require(name, _LINE, option)
        self.header, self.delimiter, self.started = names, delimiter, True

    def _cells(self, text: str, *, may_be_header: bool) -> Mapping[str, Any] | None:
        assert self.header is not None  # noqa: S101  (the caller looked)
        cells = _split(text, self.delimiter)
        if may_be_header and cells == self.header:
            return None
        if len(cells) != len(self.header):
            raise InvalidCost(f"has {len(cells)} fields, the header has {len(self.header)}")
        return dict(zip(self.header, cells, strict=True))

    def _cost(self, values: Mapping[str, Any], *, named: bool) -> float:
        names = (*values, "named") if named else ("1",)
        plan = self._plans.get(names)
        if plan is None:
            plan = self._plans[names] = self._plan(values, named=named)
        column, meaning, low, high = plan
        value = values[column]
        number = value
        if type(value) is str and "_" not in value:  # Python reads 0_1 as 1
            try:
                number = float(value)
            except ValueError:
                number = None
        if (type(number) is float or type(number) is int) and low <= number <= high:
            if meaning == "cost":
                cost = (number - low) / (high - low)
            elif meaning == "reward" and self.rule.cost_range is not None:
                cost = (high - number) / (high - low)
            elif meaning == "success" and self.rule.cost_range is None and number in (0, 1):
                cost = 1.0 - number
            else:
                cost = -1.0
            if cost >= 0 and (not self.rule.binary or cost in (0, 1)):
                return cost
        # Whatever is not simple is for the reader of files to judge, and to explain.
        table = Table(list(values), named, lambda name: [values[name]])
        try:
            costs = to_costs(
                table, column, meaning, self.rule.cost_range, binary=self.rule.binary, source=_LINE
            )
        except InvalidCost as error:
            raise InvalidCost(str(error).removeprefix(f"{_LINE}: row 1 = ")) from error
        return float(costs[0])

    def _plan(self, values: Mapping[str, Any], *, named: bool) -> _Plan:
        table = Table(list(values), named, lambda name: [values[name]])
        if len(self._plans) > 1000:  # objects with ever new names
            self._plans.clear()
        try:
            column = table.choose(self.rule.column, _LINE)
        except InvalidSetting as error:
            raise InvalidCost(str(error)) from error
        return _Plan(column, table.meaning(column, _LINE), *check_range(self.rule.cost_range))

    def _id(self, values: Mapping[str, Any]) -> Any:
        name = self.rule.id
        if name is None or name == "line":
            return None
        value = values.get(name)
        if value is None or value == "":
            raise InvalidCost(f"has no {name!r}, by which episodes are numbered (--id {name})")
        if self.header is not None and isinstance(value, str) and value.isdecimal():
            return int(value)
        return value

    def _stream(self, values: Mapping[str, Any]) -> str:
        by = self.rule.by
        if by is None:
            return ""
        if by not in values:
            raise InvalidCost(f"has no {by!r}, which names the task or robot (--by {by})")
        return task_names(Table(list(values), True, lambda name: [values[name]]), by, _LINE)[0]


def _split(text: str, delimiter: str) -> list[str]:
    if '"' not in text:
        return [cell.strip() for cell in text.split(delimiter)]
    try:
        cells = next(csv.reader([text], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise InvalidCost(f"{shown(text)} is not valid CSV ({error})") from error
    return [cell.strip() for cell in cells]


def _decode(text: str) -> dict[str, Any]:
    try:
        values = json.loads(text, object_pairs_hook=_unique)
    except InvalidCost:
        raise
    except RecursionError as error:
        raise InvalidCost(f"{shown(text[:40])} is nested too deeply") from error
    except ValueError as error:
        raise InvalidCost(f"{shown(text[:40])} is not JSON ({error})") from error
    return values  # type: ignore[no-any-return]  # text that begins with { is an object


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidCost(f"has the name {shown(twice)} twice")
    return values
