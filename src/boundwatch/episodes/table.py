"""A table of episodes: which column is meant, what it was said to hold, and the costs in it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown
from boundwatch._support.validation import shortest
from boundwatch.episodes.numbers import is_missing, parse, parse_decimal, read_numbers
from boundwatch.episodes.words import affirmed, close_to, is_judgment, judged, normal, sense
from boundwatch.errors import InvalidCost, InvalidSetting

Meaning = Literal["cost", "success", "reward"]

DEFAULTS: Mapping[str, Meaning] = {
    "cost": "cost",
    "success": "success",
    "is_success": "success",
    "reward": "reward",
}
"""The columns that are read without being asked for, in any case, and what they hold."""

CUSTOMARY: Mapping[str, tuple[Meaning, ...]] = {
    "cost": ("cost",),
    **dict.fromkeys(("success", "is_success", "next.success", "successes"), ("success",)),
    **dict.fromkeys(("reward", "next.reward", "sum_reward", "results", "r"), ("reward",)),
    "data": ("cost", "success", "reward"),
}
"""The names under which logs keep their outcomes, and what they hold: one is as good as the other."""

_FLAGS = (
    "success=COL (yes/no or 1/0), cost=COL (higher is worse) or reward=COL (higher is better, with "
    "cost_range) "
    "(--success, --cost, --reward)"
)
_MOST_WORDS = 5
_MOST_COLUMNS = 8


@dataclass(frozen=True)
class Wanted:
    """The column to read and what it holds, as far as that was said.

    Examples
    --------
    >>> Wanted.of(success="grasped", cost=None, reward=None)
    Wanted(column='grasped', meaning='success')
    >>> Wanted.of(success="a", cost="b", reward=None)
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: success and cost were both given; say one thing about one column...
    """

    column: str | None = None
    meaning: Meaning | None = None

    @classmethod
    def of(cls, *, success: str | None, cost: str | None, reward: str | None) -> Wanted:
        """Return what was said; refuse to be told two things."""
        named: dict[Meaning, str | None] = {"success": success, "cost": cost, "reward": reward}
        given = [meaning for meaning, column in named.items() if column is not None]
        if len(given) > 1:
            flags = " and ".join(f"--{meaning}" for meaning in given)
            raise InvalidSetting(
                f"{' and '.join(given)} were {'both' if len(given) == 2 else 'all'} given; say one thing "
                f"about "
                f"one column ({flags})"
            )
        return cls(named[given[0]], given[0]) if given else cls()


@dataclass(frozen=True)
class Table:
    """What a file holds, before it is decided what it means.

    One row per episode, unless `episode` names the column that says which episode a row is a step of.

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
    array
        Returns a column of numbers at once, None for one that holds anything else.
    preferred
        The column to read when none is asked for; left out, one of `DEFAULTS`.
    meanings
        What columns hold by the format's own rules, whatever their names.
    context
        What the names stand in, such as a topic, should they not say by themselves what they hold.
    episode, task
        The columns that say which episode and which task a row belongs to, where the format has them.
    commas
        Whether decimals are written with commas somewhere in the file.
    detail, notes, warnings
        What else was found out while reading, for people: about the file, about what was done with it, and
        about what may make the guarantees wrong.
    """

    names: list[str]
    named: bool
    values: Callable[[str], list[Any]]
    lines: Sequence[int] | None = None
    labels: Callable[[str], list[Any]] | None = None
    place: Callable[[int, str], str] | None = None
    array: Callable[[str], NDArray[np.float64] | None] | None = None
    preferred: str | None = None
    meanings: Mapping[str, Meaning] = field(default_factory=dict)
    episode: str | None = None
    task: str | None = None
    context: str = ""
    commas: bool = False
    detail: str = ""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def choose(self, wanted: Wanted, source: str) -> tuple[str, Meaning]:
        """Return the column to read and what it holds; raise `InvalidSetting` when that was not said."""
        if wanted.column is None or wanted.meaning is None:
            return self._only_candidate(source)
        name = self.find(wanted.column, source, wanted.meaning)
        self._refuse_contradiction(name, wanted.meaning, source)
        return name, wanted.meaning

    def has(self, column: str | None) -> bool:
        """Return whether there is just one column of this name, in any case."""
        return column is not None and self.named and [*map(normal, self.names)].count(normal(column)) == 1

    def as_certified(self, certified: Wanted) -> Wanted:
        """Return the column to read like a certificate's, if none is named; nothing where that is not clear.

        A customary name is not kept. Where several columns have one, it was the only one that holds such
        values.

        Examples
        --------
        >>> Table(["trial", "cost", "success"], True, lambda _: []).as_certified(Wanted(None, "success"))
        Wanted(column='success', meaning='success')
        """
        if certified.column is not None:
            return certified if self.has(certified.column) else Wanted()
        if certified.meaning is None or not self.named or self.preferred is not None:
            return Wanted()
        known = [name for name in self.names if normal(name) in CUSTOMARY]
        fitting = [name for name in known if certified.meaning in CUSTOMARY[normal(name)]]
        return Wanted(fitting[0], certified.meaning) if len(fitting) == 1 < len(known) else Wanted()

    def find(self, column: str, source: str, option: str) -> str:
        """Return the one column of this name, in any case; raise `InvalidSetting` unless there is one."""
        found = [name for name in self.names if name == column]
        found = found or [name for name in self.names if normal(name) == normal(column)]
        if not found:
            raise InvalidSetting(f"{source}: has no column {column!r}; {self._offer(option)}")
        if len(found) > 1:
            several = ", ".join(repr(name) for name in dict.fromkeys(found))
            raise InvalidSetting(f"{source}: has several columns named {several}; rename all but one")
        return found[0]

    def locate(self, row: int, column: str) -> str:
        """Say where a value is, for an error."""
        if self.place is not None:
            return self.place(row, column)
        line = f" (line {self.lines[row]})" if self.lines is not None else ""
        return f"row {row + 1}{line}" + (f", column {column!r}" if self.named or len(self.names) > 1 else "")

    def _only_candidate(self, source: str) -> tuple[str, Meaning]:
        if self.preferred is not None:
            return self.preferred, self.meanings.get(self.preferred) or DEFAULTS[normal(self.preferred)]
        known = [name for name in self.names if self.named and normal(name) in DEFAULTS]
        if not known:
            what = (
                "no column is called cost, success, is_success or reward"
                if self.named
                else "no column has a name"
            )
            raise InvalidSetting(f"{source}: {what}; say what to read: {_FLAGS}; {self._columns()}")
        if len(known) > 1:
            if len({normal(name) for name in known}) == 1:
                several = ", ".join(repr(name) for name in dict.fromkeys(known))
                raise InvalidSetting(f"{source}: has several columns named {several}; rename all but one")
            raise InvalidSetting(
                f"{source}: columns {', '.join(known)} could all be meant; say which one to read: {_FLAGS}"
            )
        return known[0], DEFAULTS[normal(known[0])]

    def _refuse_contradiction(self, name: str, meaning: Meaning, source: str) -> None:
        known = self.meanings.get(name)
        if known is not None:
            found: str | None = "bad" if known == "cost" else "good"
        else:
            found = (sense(name) or sense(self.context)) if self.named else None
        if found == "bad" and meaning != "cost":
            raise InvalidSetting(
                f"{source}: column {name!r} sounds like something bad, but was given as a {meaning}; use "
                f"cost={name!r} (--cost), or rename the column if its name misleads"
            )
        if found == "good" and meaning == "cost":
            raise InvalidSetting(
                f"{source}: column {name!r} sounds like something good, but was given as a cost, where "
                f"more is "
                f"worse; use success={name!r} or reward={name!r} (--success, --reward), or rename the column"
            )

    def _columns(self) -> str:
        """Say which columns there are, with a few values of each."""
        if not self.names:
            return "it has no columns at all"
        listed = []
        for name in self.names[:_MOST_COLUMNS]:
            try:
                values = [str(value)[:12] for value in self.values(name)[:3]]
            except InvalidCost:
                values = []
            listed.append(f"{name[:24]} ({', '.join(values)})" if values else name[:24])
        return f"columns: {', '.join(listed)}{', ...' if len(self.names) > _MOST_COLUMNS else ''}"

    def _offer(self, option: str) -> str:
        if not self.names:
            return "it has no columns at all; give every episode a cost"
        if not self.named and len(self.names) == 1:
            return f"it is a list without a header: its only column is 1 ({option}='1', --{option} 1)"
        return f"choose one with {option}=... (--{option} NAME); {self._columns()}"


def as_certified(column: str, meaning: Meaning) -> str:
    """Say that a column is read because a certificate was made from it.

    Examples
    --------
    >>> as_certified("time_s", "cost")
    "column 'time_s' is read as a cost, as certified; name another with --success, --cost or --reward"
    """
    return (
        f"column {column!r} is read as a {meaning}, as certified; name another with --success, --cost or "
        "--reward"
    )


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
        raise InvalidSetting(
            f"cost_range = {shown(cost_range)} is not a range; pass (low, high), both finite"
        )
    return low, high


@lru_cache(maxsize=1000)  # a stream asks for the same name line after line
def in_percent(column: str) -> bool:
    """Return whether a column says by its name that it holds percentages, which then need a range.

    Examples
    --------
    >>> in_percent("failure_pct"), in_percent("failures")
    (True, False)
    """
    return re.search(r"%|percent|prozent|pct", column, re.IGNORECASE) is not None


def success_words(success_values: Sequence[str] | str) -> tuple[str, ...]:
    """Return the words that mean success one by one: several may be given with commas between them.

    Examples
    --------
    >>> success_words(["grasped,placed", "in the box"])
    ('grasped', 'placed', 'in the box')
    """
    if not isinstance(success_values, Iterable):
        raise InvalidSetting(f"success_values = {shown(success_values)} is not a list of words; give one")
    words = [success_values] if isinstance(success_values, str) else list(success_values)
    return tuple(part.strip() for word in words for part in str(word).split(",") if part.strip())


def never_said(words: Sequence[str], raw: Sequence[Any]) -> bool:
    """Return whether a column has none of the words for success, and others that do not say failure, either.

    Then every trial failed, or the words were misspelled.

    Examples
    --------
    >>> never_said(["In Bin"], ["floor", "in  bin"]), never_said(["in bin"], ["floor", "no"])
    (False, True)
    """
    return {_key(word) for word in words}.isdisjoint(map(_key, raw)) and not all(map(_is_failure, raw))


def to_costs(
    table: Table,
    column: str,
    meaning: Meaning,
    cost_range: tuple[float, float] | None,
    *,
    binary: bool,
    source: str,
    success_values: Sequence[str] = (),
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return the costs that a column holds, and what should be said about how they were read.

    Raises
    ------
    InvalidCost
        At the first value that is no cost.
    InvalidSetting
        For rewards without a range, or successes with one.
    """
    array = None if table.array is None or success_values else table.array(column)
    if array is not None and meaning == "success" and not np.isin(array, (0, 1)).all():
        array = None  # words, which take longer
    raw: Any = table.values(column) if array is None else array
    if len(raw) == 0:
        raise InvalidCost(f"{source}: holds no episodes; at least one row is needed")

    def refuse(row: int, fault: str) -> NoReturn:
        # A number that came as text is shown as the file has it, without quotes.
        value = raw[row] if array is None else shortest(raw[row])
        if isinstance(value, str) and value.startswith("="):
            fault = (
                "is a formula whose result is not in the file; open and save it in a spreadsheet program, "
                "or give it as CSV"
            )
        if array is None and not (isinstance(value, str) and parse(value) is not None):
            value = shown(value)
        raise InvalidCost(f"{source}: {table.locate(row, column)} = {value} {fault}")

    if meaning == "success":
        if cost_range is not None:
            raise InvalidSetting(
                f"{source}: column {column!r} holds successes, not numbers in a range; leave out cost_range "
                "(--cost-range), or read it as a reward (--reward)"
            )
        if array is not None:
            return 1.0 - array, ()
        successes, notes = read_successes(raw, refuse, success_values)
        return 1.0 - successes, notes
    if success_values:
        raise InvalidSetting(
            f"{source}: success_values goes with success=... (--success COL), not with a {meaning}; leave "
            f"it out"
        )
    low, high = check_range(cost_range)
    if meaning == "reward" and cost_range is None:
        raise InvalidSetting(
            f"{source}: column {column!r} holds rewards; pass their least and greatest value as "
            "cost_range=(low, high), known in advance (--cost-range LOW HIGH)"
        )
    if cost_range is None and in_percent(column):
        raise InvalidSetting(
            f"{source}: column {column!r} is in percent by its name; pass cost_range=(0, 100) "
            f"(--cost-range 0 100)"
        )
    if array is not None:
        numbers, percent = array, False
    else:
        cells = _affirmations(raw, refuse) if meaning == "cost" else raw
        numbers, percent = read_numbers(cells, refuse, commas_elsewhere=table.commas)
    if percent and (low, high) != (0, 100):
        refuse(0, "is a percentage; pass cost_range=(0, 100) (--cost-range 0 100)")

    def refuse_where(found: NDArray[np.bool_], fault: str) -> None:
        if found.any():
            refuse(int(np.argmax(found)), fault)

    if not (numbers.min() >= low and numbers.max() <= high):
        refuse_where(
            ~np.isfinite(numbers),
            "is not finite; give every episode a number (a failed one usually the worst)",
        )
        refuse_where(
            (numbers < low) | (numbers > high),
            f"is outside [{shortest(low)}, {shortest(high)}]; rescale, or pass the range that it can have, "
            "known in advance, as cost_range=(low, high) (--cost-range LOW HIGH)",
        )
    if (meaning, low, high) == ("cost", 0, 1):
        costs = numbers
    else:
        costs = (high - numbers if meaning == "reward" else numbers - low) / (high - low)
    if binary:
        refuse_where(
            ~np.isin(costs, (0, 1)),
            "is not 0 or 1, but binary costs were promised; certify with --no-binary (binary=False)",
        )
    return costs, ()


def read_successes(
    raw: list[Any], refuse: Callable[[int, str], NoReturn], wanted: Sequence[str]
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Return 1 for every success and 0 for every failure, and which other words were taken for failures."""
    # A column has few different values: each is understood once.
    known: dict[Any, bool] = {}
    others: Counter[str] = Counter()
    wishes = {_key(word) for word in wanted}
    out = np.empty(len(raw))
    for row, value in enumerate(raw):
        key = (type(value), value)
        try:
            found = known.get(key)
        except TypeError:  # a list, say
            refuse(row, "is neither a success nor a failure; write yes or no, or 1 or 0")
        if found is None:
            found = known[key] = _one_success(value, raw, wishes, partial(refuse, row))
        if wishes and not found and not _is_failure(value):
            others[str(value).strip()] += 1
        out[row] = found
    if not others:
        return out, ()
    listed = ", ".join(f"{word!r} ({times})" for word, times in others.most_common(6))
    return out, (f"counted as failures because they are not among --success-values: {listed}",)


def _one_success(value: object, raw: list[Any], wishes: set[str], refuse: Callable[[str], NoReturn]) -> bool:
    if is_missing(value):
        refuse("says nothing; a trial that was stopped is a failure, so write no or 0 there, or how it ended")
    if wishes:
        if (key := _key(value)) in wishes:
            return True
        if _usual(value):
            refuse("usually means success, but is not among --success-values; add it, or change the cell")
        if slip := close_to(key, wishes):
            refuse(f"looks like {slip!r}; correct it, or add it to --success-values")
        return False
    found = _usual(value)
    if found is None:
        number = parse_decimal(value) if isinstance(value, str) else parse(value)
        if number is not None:
            refuse(
                "is neither 0 nor 1; if the column is a score or a rate, read it with --reward and "
                "--cost-range"
            )
        if re.fullmatch(r"[\d.,\s]+[%％]", str(value)):
            refuse("is a percentage, not one trial; read it with --reward and --cost-range 0 100")
        if re.fullmatch(r"\d+\s*(/|of|von|out of)\s*\d+", str(value), re.IGNORECASE):
            refuse("counts several trials; give one row per trial")
        words = [shown(word) for word in dict.fromkeys(str(each).strip() for each in raw) if word]
        refuse(
            "is not a word for success or failure that boundwatch knows; write yes or no, or name the words "
            "that mean success with success_values=[...] (--success-values WORD,WORD); the column holds "
            f"{', '.join(words[:_MOST_WORDS])}{', ...' if len(words) > _MOST_WORDS else ''}"
        )
    return found


def _usual(value: object) -> bool | None:
    """Return what a value means in a column of successes: True, False or, if it is neither, None."""
    if isinstance(value, str):
        if (found := judged(value)) is not None:
            return found
        number = parse_decimal(value)
    else:
        number = parse(value)
    return bool(number) if number in (0, 1) else None


def _is_failure(value: object) -> bool:
    return _usual(value) is False


def _key(value: object) -> str:
    number = None if isinstance(value, bool) else parse(value)
    return normal(str(value)) if number is None or isinstance(number, bool) else shortest(number)


def _affirmations(raw: list[Any], refuse: Callable[[int, str], NoReturn]) -> list[Any]:
    """Return 1 and 0 for a column of costs that says yes and no; refuse words that say how a trial went."""
    texts = [value for value in raw if isinstance(value, str) and parse(value) is None]
    if not texts or not any(affirmed(text) is not None or is_judgment(text) for text in texts):
        return raw
    cells: list[Any] = []
    for row, value in enumerate(raw):
        if isinstance(value, str) and is_judgment(value):
            refuse(row, "says how the trial went, not what it cost; read the column with --success")
        found = affirmed(value) if isinstance(value, str) else None
        cells.append(value if found is None else float(found))
    return cells
