"""How a row becomes a cost, and how rows relate: declared once, kept in the certificate, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import check_choice, check_number, shortest
from boundwatch.episodes.cells import Cells, convert
from boundwatch.errors import Argument, InvalidSetting, Remedy

Kind = Literal["success", "cost", "reward", "successes", "failures"]
KINDS: tuple[Kind, ...] = get_args(Kind)
COUNTS: tuple[Kind, ...] = ("successes", "failures")
"""What a row can count: a cell is 9/10, or the number (or the share) of the trials in another column."""
_SINGLE: tuple[Kind, ...] = ("success", "cost", "reward")
_BESIDE = ("trials", "failures", "count")  # columns, too
_USUAL = ("kind", "column", "cost_range", "success_values")
_GOES_WITH: Mapping[str, tuple[Kind, ...]] = {
    "cost_range": KINDS[1:],
    "success_values": ("success",),
    **dict.fromkeys(("count", "empty_as"), _SINGLE),
    "timeout_as": _SINGLE[1:],
    "trials": COUNTS,
    "failures": COUNTS[:1],
}
"""The kinds of measure that each of the other fields says something about."""


@dataclass(frozen=True)
class Measure:
    """How a row becomes a cost in [0, 1]: what its column holds, in which range, in which words.

    Attributes
    ----------
    kind
        ``"success"`` (cost = 1 - success), ``"cost"`` (more is worse) or ``"reward"`` (more is better); or
        what a row counts, ``"successes"`` or ``"failures"``.
    column
        The column's name, or its number from 1 where columns have no names; None where there are no columns.
    cost_range
        The range that a cost or a reward can have, scaled to [0, 1]; None for a cost that is in [0, 1]. Of
        counts, the range of a share of the trials.
    success_values
        The words that mean success; empty if they are the usual ones.
    trials
        The column with the number of trials behind a count; None if cells are 9/10, or with `failures`.
    failures
        The column with the number of trials that failed, beside that of successes.
    count
        The column that says for how many trials like it a row stands; None if for one.
    timeout_as, empty_as
        What the word timeout is worth, in the range; and what is read where a cell is empty.

    Examples
    --------
    >>> print(Measure("success", "grasped"))
    cost = 1 - success, column grasped
    >>> print(Measure("reward", "score", (0, 5)))
    cost = (5 - reward)/5, column score
    >>> print(Measure("successes", "ok", trials="n"))
    cost = 1 - success, successes in column ok of the trials in column n
    """

    kind: Kind
    column: str | None = None
    cost_range: tuple[float, float] | None = None
    success_values: tuple[str, ...] = ()
    trials: str | None = None
    failures: str | None = None
    count: str | None = None
    timeout_as: float | None = None
    empty_as: str | None = None

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", KINDS)
        for name in ("column", *_BESIDE):
            column = getattr(self, name)
            if column is not None and not (isinstance(column, str) and column.strip()):
                name = self.kind if name == "column" else name
                problem = "is not the name of a column"
                raise InvalidSetting(problem, name=name, value=column, remedy="give one")
        if self.cost_range is not None:
            object.__setattr__(self, "cost_range", check_range(self.cost_range))
        if self.success_values != ():
            object.__setattr__(self, "success_values", split_words(self.success_values))
        for name, kinds in _GOES_WITH.items():
            if getattr(self, name) not in (None, ()) and self.kind not in kinds:
                usual = [kind for kind in kinds if {kind, self.kind} != {"success", "cost"}]  # not reversed
                others = [part for kind in usual for part in (", or use ", Argument(kind))]
                leave: Remedy = ("leave out ", Argument(name), *others)
                holds = "" if self.column is None else f"column {self.column!r}, which holds "
                raise InvalidSetting(f"does not go with {holds}{self.kind}", name=name, remedy=leave)
        self._check_numbers()

    def _check_numbers(self) -> None:
        """Refuse a reward without a range, a share without trials, and a timeout out of its range."""
        if self.kind == "reward" and self.cost_range is None:
            remedy: Remedy = ("pass the least and the greatest possible value as ", Argument("cost_range"))
            holds = "rewards" if self.column is None else f"column {self.column!r} holds rewards"
            raise InvalidSetting(f"{holds}, whose range is not known", remedy=remedy)
        if self.kind in COUNTS and self.cost_range is not None and (self.ends[0] or self.trials is None):
            problem = "is not the range of a share of the trials in another column"
            remedy = ("give ", Argument("cost_range", (0, 1)), " with ", Argument("trials"))
            raise InvalidSetting(problem, name="cost_range", value=self.cost_range, remedy=remedy)
        if self.timeout_as is not None:
            ends = " to ".join(map(shortest, self.ends))
            what, within = "a number in the range of the others", f"give one from {ends}"
            worth = check_number(self.timeout_as, "timeout_as", what, *self.ends, remedy=within)
            object.__setattr__(self, "timeout_as", worth)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value that the column can have."""
        return self.cost_range or (0.0, 1.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose cells make costs; the only one of a list is called 1."""
        return tuple(filter(None, (self.column or "1", self.trials, self.failures, self.count)))

    @property
    def counted(self) -> bool:
        """Whether a row stands for several trials, whose order nobody knows."""
        return self.kind in COUNTS or self.count is not None

    @property
    def succeeds(self) -> bool:
        """Whether a trial succeeds or fails, and nothing is in between."""
        return self.kind == "success" or self.kind in COUNTS

    def costs(self, cells: Cells) -> NDArray[np.float64]:
        """Return the cost of every cell; `boundwatch.episodes.cells.convert` goes on from block to block.

        Examples
        --------
        >>> Measure("success").costs(["yes", "no", 1]), Measure("reward", "score", (0, 5)).costs([5, 4])
        (array([0., 1., 0.]), array([0. , 0.2]))
        """
        return convert(self, cells).costs

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; of what is rare, only what there is."""
        ends = None if self.cost_range is None else list(self.cost_range)
        rare = {name: each for name, each in vars(self).items() if each is not None and name not in _USUAL}
        found = {"kind": self.kind, "column": self.column, "cost_range": ends}
        return found | {"success_values": list(self.success_values)} | rare

    def __str__(self) -> str:
        rule = "cost as given" if self.kind == "cost" else f"cost = 1 - {self.kind}"
        if self.kind in COUNTS:
            where = "" if self.column is None else f" in column {self.column}"
            where += "" if self.trials is None else f" of the trials in column {self.trials}"
            where += "" if self.failures is None else f", failures in column {self.failures}"
            return f"cost = 1 - success, {'shares of ' if self.cost_range else ''}{self.kind}{where}"
        if self.cost_range not in (None, (0.0, 1.0)):
            low, high = self.ends
            reading = "reading" if low == 0 else f"(reading - {shortest(low)})"
            rule = f"({shortest(high)} - reward)" if self.kind == "reward" else reading
            rule = f"cost = {rule}/{shortest(high - low)}"
        rule += "" if self.column is None else f", column {self.column}"
        rule += "" if self.count is None else f", as many trials as column {self.count} says"
        rule += "" if self.timeout_as is None else f", timeout read as {shortest(self.timeout_as)}"
        return rule if self.empty_as is None else f"{rule}, empty read as {self.empty_as}"


def check_range(cost_range: Sequence[float]) -> tuple[float, float]:
    """Return the range that costs had before they were scaled."""
    try:
        low, high = map(float, cost_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        remedy = "give (low, high), both finite"
        raise InvalidSetting("is not a range", name="cost_range", value=cost_range, remedy=remedy)
    return low, high


def split_words(given: Iterable[str] | str) -> tuple[str, ...]:
    """Return words one by one: several may be given with commas between them."""
    if not isinstance(given, Iterable):
        raise InvalidSetting("is not a list of words", name="success_values", value=given, remedy="give one")
    words = [given] if isinstance(given, str) else list(given)
    return tuple(part.strip() for word in words for part in str(word).split(",") if part.strip())


SMALLEST_WEIGHT = 1e-9
Reduction = Literal["any", "sum", "mean", "max", "last"]

# As in LeRobot: an episode succeeds if any step says so, and its return is the sum of its rewards.
# There is no such custom for costs: the worst step and the average one are both common.
USUAL_REDUCTION: Mapping[str, Reduction] = {"success": "any", "reward": "sum"}


@dataclass(frozen=True)
class Design:
    """How rows relate to each other; every field names columns.

    Attributes
    ----------
    strata
        A fixed set of tasks or conditions: the mean over them is meant.
    weights
        What each of them counts in that mean, by its name; nothing if all that occur count alike.
    cluster
        Repeats of one scene, seed or day, which are not independent.
    by
        A verdict for each robot or task.
    policy
        Which policy a trial is of.
    pair_by
        Keys that match the trials of two policies.
    episode, reduce
        Which episode a row is a step of, and how its steps become one value.
    id
        The number or name that its sender gave an episode, which counts once.
    where
        Rows to read: those with these values in these columns.
    fill_down
        Columns in which an empty cell means what the one above it does, as in merged cells.
    predicted, unlabeled
        What was predicted for the trial, and for scenes that were not run.

    Examples
    --------
    >>> design = Design(strata="task", where={"site": "lab"})
    >>> design.columns
    ('task', 'site')
    >>> design.to_dict()
    {'strata': 'task', 'where': {'site': 'lab'}}
    """

    strata: str | None = None
    cluster: str | None = None
    by: str | None = None
    policy: str | None = None
    pair_by: tuple[str, ...] = ()
    episode: str | None = None
    reduce: Reduction | None = None
    id: str | None = None
    where: Mapping[str, str] = field(default_factory=FrozenMapping)
    weights: Mapping[str, float] = field(default_factory=FrozenMapping)
    fill_down: tuple[str, ...] = ()
    predicted: str | None = None
    unlabeled: str | None = None

    def __post_init__(self) -> None:
        for several in ("pair_by", "fill_down"):
            given = getattr(self, several)
            names = given.split(",") if isinstance(given, str) else given
            object.__setattr__(self, several, tuple(filter(None, map(str.strip, names))))
        where: object = self.where
        if not isinstance(where, Mapping):
            problem, example = "is not a mapping of columns to values", 'give {"site": "lab"}'
            raise InvalidSetting(problem, name="where", value=where, remedy=example)
        texts = zip(map(str, where), map(str, where.values()), strict=True)
        object.__setattr__(self, "where", FrozenMapping(texts))
        if self.weights:
            object.__setattr__(self, "weights", FrozenMapping(check_weights(self.weights)))
        for name in _NAMED:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value.strip()):
                raise InvalidSetting("is not the name of a column", name=name, value=value, remedy="give one")
        if self.reduce is not None:
            check_choice(self.reduce, "reduce", get_args(Reduction))
        for name, column in (("weights", "strata"), ("reduce", "episode")):
            if getattr(self, name) and getattr(self, column) is None:
                remedy = ("give ", Argument(column))
                raise InvalidSetting(f"goes with a column for {column}", name=name, remedy=remedy)

    @property
    def named(self) -> list[tuple[str, str]]:
        """Every argument that names a column, with that column."""
        found: list[tuple[str, str]] = []
        for name in _NAMED:
            if column := getattr(self, name):
                found.append((name, column))
        for name in ("pair_by", "where", "fill_down"):
            found += zip(repeat(name), getattr(self, name))
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed to place a row, each once."""
        return tuple(dict.fromkeys(map(itemgetter(1), self.named)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values: what was declared and nothing else."""
        kinds = {"pair_by": list, "fill_down": list, "where": dict, "weights": dict}
        plain = {name: each for name, each in vars(self).items() if each}
        return {name: kinds[name](each) if name in kinds else each for name, each in plain.items()}

    def __str__(self) -> str:
        named = [f"{name} {column}" for name in _NAMED if (column := getattr(self, name))]
        named += [f"pairs by {', '.join(self.pair_by)}"] if self.pair_by else []
        named += [f"{column} is {value}" for column, value in self.where.items()]
        return ", ".join(["a step per row" if self.episode else "an episode per row", *named])


_NAMED = ("strata", "cluster", "by", "policy", "episode", "id", "predicted", "unlabeled")


def check_weights(weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of tasks, positive numbers that are shares of their sum."""
    remedy = 'give positive numbers by name, {"mug": 2, "bowl": 1}'
    if not isinstance(weights, Mapping) or not weights:
        problem = "is not a mapping of tasks to weights"
        raise InvalidSetting(problem, name="weights", value=weights, remedy=remedy)
    what = "a weight above 0"
    return {
        str(task): check_number(weight, f"weights[{task!r}]", what, SMALLEST_WEIGHT, remedy=remedy)
        for task, weight in weights.items()
    }
