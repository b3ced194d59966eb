"""How a row becomes a cost: declared once, kept in the certificate, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.schema import convert as convert_fields
from boundwatch._support.validation import check_choice, shortest
from boundwatch.episodes.cells import Cells, convert
from boundwatch.errors import Argument, InvalidSetting, Remedy

Kind = Literal["success", "cost", "reward"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Measure:
    """How a row becomes a cost in [0, 1]: what its column holds, in which range, in which words.

    Attributes
    ----------
    kind
        ``"success"`` (cost = 1 - success), ``"cost"`` (more is worse) or ``"reward"`` (more is better).
    column
        The column's name, or its number from 1 where columns have no names; None where there are no columns.
    cost_range
        The range that a cost or a reward can have, scaled to [0, 1]; None for a cost that is in [0, 1].
    success_values
        The words that mean success; empty if they are the usual ones.

    Examples
    --------
    >>> print(Measure("success", "grasped"))
    cost = 1 - success, column grasped
    >>> print(Measure("reward", "score", (0, 5)))
    cost = (5 - reward)/5, column score
    >>> Measure.from_dict(Measure("cost", "force", (0.0, 50.0)).to_dict())
    Measure(kind='cost', column='force', cost_range=(0.0, 50.0), success_values=())
    """

    kind: Kind
    column: str | None = None
    cost_range: tuple[float, float] | None = None
    success_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            check_choice(self.kind, "kind", KINDS)
        if self.column is not None and not (isinstance(self.column, str) and self.column.strip()):
            problem, remedy = "is not the name of a column", "give one"
            raise InvalidSetting(problem, name=self.kind, value=self.column, remedy=remedy)
        if self.cost_range is not None:
            object.__setattr__(self, "cost_range", check_range(self.cost_range))
        if self.success_values != ():
            object.__setattr__(self, "success_values", split_words(self.success_values))
        ranged, worded = self.cost_range is not None, bool(self.success_values)
        allowed = {"success": not ranged, "cost": not worded, "reward": ranged and not worded}
        if not allowed[self.kind]:
            raise self._contradiction()

    def _contradiction(self) -> InvalidSetting:
        holds = "" if self.column is None else f"column {self.column!r} holds "
        ends, words = Argument("cost_range"), Argument("success_values")
        if self.kind == "success":
            remedy: Remedy = ("leave out ", ends, ", or read a score with ", Argument("reward"))
            return InvalidSetting(f"{holds}successes, not numbers in a range", remedy=remedy)
        if self.success_values:
            remedy = ("leave out ", words, ", or use ", Argument("success"))
            return InvalidSetting(f"{holds}a {self.kind}, and words for success were given", remedy=remedy)
        remedy = ("pass the least and the greatest possible value as ", ends)
        return InvalidSetting(f"{holds}rewards, whose range is not known", remedy=remedy)

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the greatest value that the column can have."""
        return self.cost_range or (0.0, 1.0)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose cells make a cost; the only one of a list is called 1."""
        return (self.column or "1",)

    def costs(self, cells: Cells) -> NDArray[np.float64]:
        """Return the cost of every cell; `boundwatch.episodes.cells.convert` goes on from block to block.

        Examples
        --------
        >>> Measure("success").costs(["yes", "no", 1]), Measure("reward", "score", (0, 5)).costs([5, 4])
        (array([0., 1., 0.]), array([0. , 0.2]))
        """
        return convert(self, cells).costs

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        ends = None if self.cost_range is None else list(self.cost_range)
        words = list(self.success_values)
        return {"kind": self.kind, "column": self.column, "cost_range": ends, "success_values": words}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return what `to_dict` wrote."""
        return convert_fields(cls, content, "measure")

    def __str__(self) -> str:
        rule = "cost as given" if self.kind == "cost" else f"cost = 1 - {self.kind}"
        if self.cost_range not in (None, (0.0, 1.0)):
            low, high = self.ends
            reading = "reading" if low == 0 else f"(reading - {shortest(low)})"
            rule = f"({shortest(high)} - reward)" if self.kind == "reward" else reading
            rule = f"cost = {rule}/{shortest(high - low)}"
        return rule if self.column is None else f"{rule}, column {self.column}"


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
