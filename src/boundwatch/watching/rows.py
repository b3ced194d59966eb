"""A line of a stream becomes an episode: its cost, its id, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.steps import task_names
from boundwatch.episodes.table import Meaning, Table, Wanted
from boundwatch.errors import InvalidCost


class Row(NamedTuple):
    """What a line holds: a cost, the id that its sender gave it, the task or robot, and predictions.

    Predictions are that for the trial's scene, and those for scenes that were not run.
    """

    cost: float
    id: Any = None
    stream: str = ""
    predictions: tuple[Any, Any] | None = None


@dataclass(frozen=True)
class Rule:
    """How lines are read. It is part of a state: the same lines must mean the same at every start.

    Attributes
    ----------
    success, cost, reward, cost_range, success_values, binary
        As in `read_costs`.
    bare_costs
        Whether a number without a name is a cost if nothing else was said.
    id
        The field by which the sender numbers its episodes, or ``line``.
    by
        The field that names the task or robot.
    predicted, unlabelled
        The fields with predictions, if there are any.
    """

    success: str | None = None
    cost: str | None = None
    reward: str | None = None
    cost_range: tuple[float, float] | None = None
    success_values: tuple[str, ...] = ()
    binary: bool = False
    bare_costs: bool = True
    id: str | None = None
    by: str | None = None
    predicted: str | None = None
    unlabelled: str | None = None


@dataclass
class Rows:
    r"""Reads lines by one rule: numbers, JSON objects, or the rows of a CSV table under its header.

    The first line decides; the header of a table is remembered, so that it can be kept in a state.

    Examples
    --------
    >>> rows = Rows(Rule())
    >>> rows.read("0.25"), rows.read('{"episode": 3, "success": true}').cost
    (Row(cost=0.25, id=None, stream='', predictions=None), 0.0)
    >>> table = Rows(Rule(id="trial"))
    >>> table.read("trial;success"), table.read("7;no")
    (None, Row(cost=1.0, id=7, stream='', predictions=None))
    """

    rule: Rule
    _lines: LineReader = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rule = self.rule
        self._lines = LineReader(
            Wanted.of(success=rule.success, cost=rule.cost, reward=rule.reward),
            rule.cost_range,
            rule.binary,
            rule.success_values,
            rule.bare_costs,
        )

    @property
    def header(self) -> list[str] | None:
        """The names above the columns of a table, once they have come."""
        return self._lines.header

    @property
    def column(self) -> tuple[str, Meaning] | None:
        """The column of the table and what it holds, once its header has come."""
        header, rule = self._lines.header, self.rule
        if header is None:
            return None
        wanted = Wanted.of(success=rule.success, cost=rule.cost, reward=rule.reward)
        return Table(header, True, lambda _: []).choose(wanted, "the header")

    def to_dict(self) -> dict[str, Any]:
        """Return what the first lines decided, as plain JSON values."""
        lines = self._lines
        return {"started": lines.values_only, "header": lines.header, "delimiter": lines.delimiter}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Go on as decided when `to_dict` was called."""
        header = content["header"]
        self._lines.values_only, self._lines.delimiter = bool(content["started"]), str(content["delimiter"])
        self._lines.header = None if header is None else [str(name) for name in header]

    def begin_file(self) -> None:
        """Expect that the header comes once more."""
        self._lines.begin_file()

    def read(self, text: str) -> Row | None:
        """Return the episode in a line, None for an empty line or a header.

        Raises
        ------
        InvalidCost
            When the line holds no cost.
        InvalidSetting
            When all lines like it would be misread.
        """
        found = self._lines.read(text)
        if found is None:
            return None
        rule = self.rule
        if rule.id is None and rule.by is None and rule.predicted is None:
            return Row(found.cost)
        named = self._lines.header is not None or not self._lines.values_only
        names = (rule.id, rule.by, rule.predicted, rule.unlabelled)
        wanted = [name for name in names if name not in (None, "line")]
        if not named and wanted:
            raise InvalidCost(
                f"{text.strip()!r} has no {' and '.join(map(repr, wanted))}; send JSON objects, or a "
                f"table with "
                "a header"
            )
        fields = found.fields
        return Row(found.cost, self._id(fields), self._stream(fields), self._predictions(fields))

    def _predictions(self, values: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return both kinds of predictions, None where the line leaves both empty."""
        found = []
        for option in ("predicted", "unlabelled"):
            name = getattr(self.rule, option)
            if name is None:
                return None
            if name not in values:
                raise InvalidCost(
                    f"has no {name!r} (--{option} {name}); leave it empty where there is no prediction"
                )
            value = values[name]
            found.append(value if isinstance(value, list) else _numbers(value, name))
        if not found[0] and not found[1]:
            return None
        if len(found[0]) != 1:
            raise InvalidCost(f"has {len(found[0])} numbers in {self.rule.predicted!r}; give one prediction")
        return found[0][0], found[1]

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
        return task_names(Table(list(values), True, lambda name: [values[name]]), by, "the line")[0]


def _numbers(value: Any, name: str) -> list[Any]:
    """Return the numbers of a field: one, or several with blanks or semicolons between them."""
    if value is None or isinstance(value, int | float):
        return [] if value is None else [value]
    words = str(value).replace(";", " ").split()
    try:
        return [float(word) for word in words]
    except ValueError:
        raise InvalidCost(f"has {name!r} = {value!r}, which is not made of numbers") from None
