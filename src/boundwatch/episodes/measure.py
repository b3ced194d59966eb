"""How a row becomes a cost: declared once, kept in the certificate, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

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
                raise InvalidSetting(
                    "is not the name of a column", name=name, value=column, remedy="give one"
                )
        if self.cost_range is not None:
            object.__setattr__(self, "cost_range", check_range(self.cost_range))
        if self.success_values != ():
            object.__setattr__(self, "success_values", split_words(self.success_values))
        for name, kinds in _GOES_WITH.items():
            if getattr(self, name) not in (None, ()) and self.kind not in kinds:
                usual = [
                    kind for kind in kinds if {kind, self.kind} != {"success", "cost"}
                ]  # not the reverse
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
