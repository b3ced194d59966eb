"""A table of episodes: which column is meant, and what costs it holds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown as shown
from boundwatch._support.validation import shortest
from boundwatch.errors import InvalidCost, InvalidSetting

Meaning = Literal["cost", "success", "reward"]

# A column that is better when it is higher must never pass for a cost: the verdict would be turned round.
_REWARD = {"reward", "rewards", "return", "returns"}
_COST = {
    *("cost", "costs", "loss", "error", "errors", "failure", "failures", "collision", "collisions"),
    *("violation", "violations"),
}
_PART = {"rate", "ratio", "fraction", "percent", "percentage", "share"}
_UNCLEAR = {
    *("score", "scores", "accuracy", "precision", "recall", "progress", "performance", "quality"),
    *("utility", "fitness", "completion", "completed", "finished", "done", "solved", "reached", "achieved"),
    *("pass", "passed", "win", "wins", "won", "ok", "good", "valid", "correct", "survived"),
    *("no", "not", "non", "without"),
}


@dataclass(frozen=True)
class Table:
    """What a file holds, before it is decided what it means.

    One row an episode, unless `episode` names the column that says which episode a row is a step of.

    Attributes
    ----------
    names, named
        The columns' names or, when they have none (`named` is False), their positions from 1.
    values
        Returns a column.
    lines
        The line of each row, for text.
    labels
        Returns a column of names (of tasks or robots), where that takes more than `values`.
    place
        Says in the format's own words where a row and column are; left out, row, line and column.
    preferred
        The column to read when none is asked for; left out, the one called cost, success or reward.
    meanings
        What columns hold whose names do not say it.
    episode, task
        The columns that say which episode and which task a row belongs to, where the format has them.
    detail, warnings
        What else was found out while reading, for people.
    """

    names: list[str]
    named: bool
    values: Callable[[str], list[Any]]
    lines: list[int] | None = None
    labels: Callable[[str], list[Any]] | None = None
    place: Callable[[int, str], str] | None = None
    preferred: str | None = None
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    episode: str | None = None
    task: str | None = None
    detail: str = ""
    warnings: tuple[str, ...] = ()

    def choose(self, column: str | None, source: str) -> str:
        """Return the column to read; raise `InvalidSetting` when that is not clear."""
        if column is None:
            column = self.preferred or self._only_candidate(source)
        self.require(column, source)
        return column

    def require(self, column: str, source: str, option: str = "column") -> None:
        """Raise `InvalidSetting` unless there is exactly one column of this name."""
        if column not in self.names:
            raise InvalidSetting(f"{source}: has no column {column!r}; {self._offer(option)}")
        if self.names.count(column) > 1:
            raise InvalidSetting(f"{source}: has several columns named {column!r}; rename all but one")

    def meaning(self, column: str, source: str) -> Meaning:
        """Return what a column holds; raise `InvalidSetting` when its name may say that higher is better."""
        if not self.named:
            return "cost"
        if column in self.meanings:
            return self.meanings[column]
        found = kinds(column)
        if len(found) > 1 or "unclear" in found:
            raise InvalidSetting(
                f"{source}: column {column!r} may be better when it is higher; rename it to cost if it is "
                "worse, to success if it is true or false, else to reward, with its range as --cost-range"
            )
        return "success" if "success" in found else "reward" if "reward" in found else "cost"

    def locate(self, row: int, column: str) -> str:
        """Say where a value is, for an error."""
        if self.place is not None:
            return self.place(row, column)
        line = f" (line {self.lines[row]})" if self.lines is not None else ""
        return f"row {row + 1}{line}" + (f", column {column!r}" if self.named or len(self.names) > 1 else "")

    def _only_candidate(self, source: str) -> str:
        if not self.named and len(self.names) == 1:
            return self.names[0]
        known = [name for name in self.names if name.lower().strip() in ("cost", "success", "reward")]
        if not known:
            what = (
                "no column named cost, success or reward" if self.named else "several columns without names"
            )
            raise InvalidSetting(f"{source}: has {what}; {self._point()}{self._offer()}")
        if len(known) > 1:
            self.require(known[0], source)
            raise InvalidSetting(
                f"{source}: columns {', '.join(known)} could all be meant; "
                f"choose one with column={known[0]!r} (--column {known[0]})"
            )
        return known[0]

    def _offer(self, option: str = "column") -> str:
        if not self.names:
            return "it has no columns at all; give every episode a cost"
        if not self.named and len(self.names) == 1 and option == "column":
            return "it is a list of numbers without names, read as costs; leave out column (--column)"
        offered = ", ".join(shown(name) for name in self.names[:8]) + (", ..." if len(self.names) > 8 else "")
        return f"choose one of {offered} with {option}=... (--{option} NAME)"

    def _point(self) -> str:
        """Say that 0,25 is no number, should all rows look like that."""
        if self.named or len(self.names) != 2 or self.lines is None:
            return ""
        cells = [cell for name in self.names for cell in self.values(name)]
        return "write decimals with a point (0.25) or " if all(map(str.isdigit, cells)) else ""


def kinds(name: str) -> set[str]:
    """Return what the words of a name speak of: success, reward, cost; ``unclear`` if that may be better.

    Examples
    --------
    >>> kinds("Success?"), kinds("episodeReturn"), kinds("failure_rate"), kinds("gap")
    ({'success'}, {'reward'}, {'cost'}, set())
    >>> kinds("accuracy"), sorted(kinds("success_rate"))
    ({'unclear'}, ['success', 'unclear'])
    """
    words = re.split(r"[\W_\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())
    found = set()
    for word in filter(None, words):
        if word.startswith("succe"):
            found.add("success")
        elif word in _REWARD:
            found.add("reward")
        elif word in _COST:
            found.add("cost")
        elif word in _UNCLEAR:
            found.add("unclear")
    return found | ({"unclear"} if _PART & set(words) and found != {"cost"} else set())


def check_range(cost_range: tuple[float, float] | None) -> tuple[float, float]:
    """Return the ends of a range, [0, 1] by default; raise `InvalidSetting` when it is none.

    Examples
    --------
    >>> check_range((-200, 0))
    (-200.0, 0.0)
    >>> check_range((1, 0))
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: cost_range = (1, 0) is not a range; pass (low, high), both finite
    """
    if cost_range is None:
        return 0.0, 1.0
    try:
        low, high = (float(end) for end in cost_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (low < high and math.isfinite(high - low)):
        raise InvalidSetting(f"cost_range = {cost_range} is not a range; pass (low, high), both finite")
    return low, high


def to_costs(
    table: Table,
    column: str,
    meaning: Meaning,
    cost_range: tuple[float, float] | None,
    *,
    binary: bool,
    source: str,
) -> NDArray[np.float64]:
    """Return the costs that a column holds.

    Raises
    ------
    InvalidCost
        At the first value that is no cost.
    InvalidSetting
        For rewards without a range, or successes with one.
    """
    low, high = check_range(cost_range)
    raw = table.values(column)
    if len(raw) == 0:
        raise InvalidCost(f"{source}: holds no episodes; at least one row is needed")
    parsed = [parse(value) for value in raw]

    def refuse(found: NDArray[np.bool_], fault: str) -> None:
        if found.any():
            row = int(np.argmax(found))
            # A number that came as text is shown as the file has it, without quotes.
            value = raw[row] if parsed[row] is not None and isinstance(raw[row], str) else shown(raw[row])
            raise InvalidCost(f"{source}: {table.locate(row, column)} = {value} {fault}")

    unknown = np.array([value is None for value in parsed])
    if unknown.any():
        refuse(unknown, not_a_number(raw[int(np.argmax(unknown))], meaning))
    numbers = np.array(parsed, dtype=np.float64)
    if meaning == "success":
        refuse(
            ~np.isin(numbers, (0, 1)), "is not true, false, 0 or 1; give a success rate as a cost, 1 - rate"
        )
        if cost_range is not None:
            raise InvalidSetting(
                f"{source}: column {column!r} holds successes, not numbers in a range; "
                "leave out cost_range (--cost-range)"
            )
        return 1 - numbers
    if not table.named:
        is_truth = np.array([isinstance(value, bool) for value in parsed])
        refuse(
            is_truth, "could be success or failure; write costs as 0 and 1 (1 is worse), or name the column"
        )
    refuse(
        ~np.isfinite(numbers), "is not finite; give every episode a number (a failed one usually the worst)"
    )
    if meaning == "reward" and cost_range is None:
        raise InvalidSetting(
            f"{source}: column {column!r} holds rewards; pass their least and greatest value as "
            "cost_range=(low, high), known beforehand (--cost-range LOW HIGH)"
        )
    refuse(
        (numbers < low) | (numbers > high),
        f"is outside [{shortest(low)}, {shortest(high)}]; rescale, or pass the range that it can have, "
        "known beforehand, as cost_range=(low, high) (--cost-range LOW HIGH)",
    )
    costs = (high - numbers if meaning == "reward" else numbers - low) / (high - low)
    if binary:
        refuse(
            ~np.isin(costs, (0, 1)),
            "is not 0 or 1, but binary costs were promised; certify without --binary (binary=True)",
        )
    return costs


def not_a_number(value: object, meaning: Meaning = "cost", row: str = "episode") -> str:
    """Say what is wrong with a value that `parse` did not understand, and the remedy.

    Examples
    --------
    >>> not_a_number("yes", "success")
    'is not true, false, 0 or 1; write one of these'
    >>> not_a_number("5%")
    'is not a number; write 0.05, not 5%'
    """
    text = value.strip() if isinstance(value, str) else ""
    if text.startswith("#"):
        return "is a comment; take out the # if it names columns, else the line"
    if meaning == "success":
        return "is not true, false, 0 or 1; write one of these"
    remedy = f"every {row} needs one"
    if re.fullmatch(r"[-+]?[\d.,]+\s*%", text):
        remedy = "write 0.05, not 5%"
    elif re.fullmatch(r"[-+]?\d[\d.,' ]*", text):
        remedy = "write decimals with a point, and nothing between thousands (1234.5)"
    return f"is not a number; {remedy}"


def parse(value: object) -> float | bool | None:
    """Return a number or a truth value, also from text; None for what is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    if isinstance(value, str) and "_" in value:  # Python reads 0_1 as 1
        return None
    try:
        return float(value)  # type: ignore[arg-type]  # whatever cannot be converted says so
    except (TypeError, ValueError, OverflowError):
        return None
