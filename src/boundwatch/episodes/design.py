"""How rows relate to each other: declared once, kept in the certificate, never guessed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from operator import itemgetter
from typing import Any, Literal, get_args

from boundwatch._support.schema import FrozenMapping
from boundwatch._support.validation import check_choice, check_number
from boundwatch.errors import Argument, InvalidSetting

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
        for name in _SINGLE:
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
        for name in _SINGLE:
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
        named = [f"{name} {column}" for name in _SINGLE if (column := getattr(self, name))]
        named += [f"pairs by {', '.join(self.pair_by)}"] if self.pair_by else []
        named += [f"{column} is {value}" for column, value in self.where.items()]
        return ", ".join(["a step per row" if self.episode else "an episode per row", *named])


_SINGLE = ("strata", "cluster", "by", "policy", "episode", "id", "predicted", "unlabeled")


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
