"""A line of a stream becomes an episode: its cost, its id, and whose it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from boundwatch.episodes import measured
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.steps import Order, task_names
from boundwatch.episodes.table import Meaning, Table, Wanted
from boundwatch.errors import InvalidCost, InvalidSetting


class Row(NamedTuple):
    """What a line holds: a cost, the sender's id, the task, robot or metric, and predictions.

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
        As in `read_costs`; of several columns each is a metric of its own.
    bare_costs
        Whether a number without a name is a cost if nothing else was said.
    id
        The field by which the sender numbers its episodes, or ``line``.
    by
        The field that names the task or robot.
    predicted, unlabeled
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
    unlabeled: str | None = None


@dataclass
class Rows:
    r"""Reads lines by one rule: numbers, JSON objects, or the rows of a CSV table under its header.

    The first line decides; the header of a table is remembered, so that it can be kept in a state.

    Examples
    --------
    >>> rows = Rows(Rule())
    >>> rows.read("0.25"), rows.read('{"episode": 3, "cost": 0.5}')[0].cost
    ([Row(cost=0.25, id=None, stream='', predictions=None)], 0.5)
    >>> table = Rows(Rule(id="trial"))
    >>> table.read("trial;success"), table.read("7;no")
    ([], [Row(cost=1.0, id=7, stream='', predictions=None)])
    >>> metrics = Rows(Rule(success="ok", cost="force", cost_range=(0, 50)))
    >>> [(row.stream, row.cost) for row in metrics.read('{"ok": true, "force": 5}')]
    [('ok', 0.0), ('force', 0.1)]
    """

    rule: Rule
    certified: Wanted = field(default_factory=Wanted)
    """The column that the certificate was made from; it is read where there is one, if none is named."""
    ranges: Mapping[Meaning, tuple[float, float]] = field(default_factory=dict)
    """The range that the certificate has for costs, or for rewards; for lines that hold the same."""
    _readers: dict[str, LineReader] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rule = self.rule
        meanings: tuple[Meaning, ...] = ("success", "cost", "reward")
        named = {
            meaning: getattr(rule, meaning) for meaning in meanings if getattr(rule, meaning) is not None
        }
        several = len(named) > 1
        self._readers = {}
        wanted = [Wanted(column, meaning) for meaning, column in named.items()] or [Wanted()]
        for one in wanted:
            self._readers[str(one.column) if several else ""] = LineReader(
                one,
                None if several and one.meaning == "success" else rule.cost_range,
                rule.binary,
                () if several and one.meaning != "success" else rule.success_values,
                rule.bare_costs,
                self.certified,
                self.ranges,
                order=Order(mixture=rule.by is None, by=rule.by, numbered=rule.id not in (None, "line")),
            )

    @property
    def _lines(self) -> LineReader:
        """The reader of the first metric: all of them see the same lines."""
        return next(iter(self._readers.values()))

    @property
    def header(self) -> list[str] | None:
        """The names above the columns of a table, once they have come."""
        return self._lines.header

    @property
    def noticed(self) -> str:
        """What should be said about the latest line: why it was passed over, or how it is read."""
        return self._lines.noticed

    @property
    def columns(self) -> list[tuple[str, Meaning, tuple[float, float] | None]]:
        """The columns of the table, what each holds, and in which range, once its header has come."""
        header = self._lines.header
        if header is None:
            return []
        table = Table(header, True, lambda _: [])
        found = [(each, *each.choose(table)) for each in self._readers.values()]
        return [(column, meaning, each.range_of(meaning)) for each, column, meaning in found]

    def chosen(self, stream: str) -> tuple[str | None, Meaning, tuple[float, float] | None]:
        """Return the column of the latest cost of a stream, what it holds, and in which range."""
        reader = self._readers.get(stream.rpartition("/")[2]) or self._lines
        column, meaning = reader.chosen
        return column, meaning, reader.range_of(meaning)

    def measured(self, stream: str) -> str:
        """Say in one line what the latest cost of a stream is."""
        return measured(*self.chosen(stream))

    def to_dict(self) -> dict[str, Any]:
        """Return what the first lines decided, as plain JSON values."""
        lines = self._lines
        return {
            "started": lines.values_only,
            "header": lines.header,
            "delimiter": lines.delimiter,
            "by_certified": lines.by_certified,
            "above": lines.above,
            "order": lines.order.to_dict(),
            "columns": {
                metric: {"measure": each.measure, "mark": each.mark} for metric, each in self._readers.items()
            },
        }

    def restore(self, content: Mapping[str, Any], *, begun: bool = True) -> None:
        """Go on as decided when `to_dict` was called, before any line if it was not `begun`."""
        header = content["header"]
        for metric, lines in self._readers.items():
            lines.values_only, lines.delimiter = bool(content["started"]), str(content["delimiter"])
            lines.header = None if header is None else [str(name) for name in header]
            certified = content.get("by_certified")  # states of earlier versions lack it
            lines.by_certified = None if certified is None else bool(certified)
            # An earlier state does not say whether there is anything above: then there may be.
            lines.above = int(content.get("above", begun and not content["started"]))
            # Nor do they have any of the rest; it is then found out anew.
            columns = content.get("columns", {}).get(metric, {})
            if begun:
                lines.go_on()
            lines.order.restore(content.get("order", {}))
            lines.mark = str(columns.get("mark", ""))
            if (measure := columns.get("measure")) is not None:
                column, meaning = measure
                if meaning not in get_args(Meaning):
                    raise ValueError
                lines.measure = None if column is None else str(column), meaning

    def refuse_other_rule(self, stored: Mapping[str, Any]) -> None:
        """Refuse to go on from a state whose lines were read by another rule, as `stored` describes it."""
        for name, value in dataclasses.asdict(self.rule).items():
            was = stored.get(name)  # a state begun before there was such an option has none
            was = tuple(was) if isinstance(was, list) else was
            if name in ("bare_costs", "binary"):  # no options: they follow from the certificate
                continue
            if name == "cost_range" and value is None and was in self.ranges.values():
                continue  # earlier versions kept the certificate's here
            if was != value:
                raise InvalidSetting(
                    f"it was begun with {_flag(name, was)}, not with {_flag(name, value)}; read lines as "
                    "then, or start a new state"
                )

    def begin_file(self) -> None:
        """Expect that the header comes once more."""
        for lines in self._readers.values():
            lines.begin_file()

    def read(self, text: str) -> list[Row]:
        """Return the episode in a line, once per metric; nothing for an empty line or a header.

        Raises
        ------
        InvalidCost
            When the line holds no cost.
        InvalidSetting
            When all lines like it would be misread.
        """
        found = {metric: reader.read(text) for metric, reader in self._readers.items()}
        if len(found) > 1:
            self._share_header()
        fields = next((episode.fields for episode in found.values() if episode is not None), None)
        if fields is None:
            return []
        rule, number, stream, predictions = self.rule, None, "", None
        if rule.id is not None or rule.by is not None or rule.predicted is not None:
            named = self._lines.header is not None or not self._lines.values_only
            names = (rule.id, rule.by, rule.predicted, rule.unlabeled)
            wanted = [name for name in names if name not in (None, "line")]
            if not named and wanted:
                raise InvalidCost(
                    f"{text.strip()!r} has no {' and '.join(map(repr, wanted))}; send JSON objects, or a "
                    "table with a header"
                )
            number, stream = self._id(fields), self._stream(fields)
            predictions = self._predictions(fields)
        return [
            Row(episode.cost, number, "/".join(part for part in (stream, metric) if part), predictions)
            for metric, episode in found.items()
            if episode is not None
        ]

    def _share_header(self) -> None:
        """Refuse a header without the column of one metric: its episodes would be passed over as titles."""
        headers = [reader.header for reader in self._readers.values() if reader.header is not None]
        if 0 < len(headers) < len(self._readers):
            for reader in self._readers.values():
                reader.choose(Table(headers[0], True, lambda _: []))

    def _predictions(self, values: Mapping[str, Any]) -> tuple[Any, Any] | None:
        """Return both kinds of predictions, None where the line leaves both empty."""
        found = []
        for option in ("predicted", "unlabeled"):
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


def _flag(name: str, value: object) -> str:
    if value is None or value is False:
        return f"no --{name.replace('_', '-')}"
    shown_value = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
    return f"--{name.replace('_', '-')} {shown_value}"
