"""Rows that are steps of an episode: one value per episode out of many; and the names of tasks."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from math import lgamma, log
from operator import eq
from typing import Any, Literal, NoReturn, get_args

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown
from boundwatch._support.validation import shortest
from boundwatch.episodes.damage import LONGEST_NAME
from boundwatch.episodes.numbers import read_numbers
from boundwatch.episodes.table import Meaning, Table, read_successes
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting

Reduction = Literal["any", "sum", "mean", "max", "last"]

# As in LeRobot: an episode succeeds if any step says so, and its return is the sum of its rewards.
# There is no such custom for costs: the worst step and the average one are both common.
_CUSTOM: dict[Meaning, Reduction] = {"success": "any", "reward": "sum"}

# Not episode_reward or episode_length, which may well repeat.
_EPISODE = re.compile(r"(episodes?|ep)([\W_]*(id|index|idx|number|num|nr|no))?", re.IGNORECASE)

_MOST_BLOCKS = 1000  # tasks, one after the other; a column with more of them names something else

Array = NDArray[np.float64]
_RULES: dict[Reduction, Callable[[Array], float]] = {
    "any": lambda values: float(values.max()),
    "sum": lambda values: float(values.sum()),
    "mean": lambda values: float(values.mean()),
    "max": lambda values: float(values.max()),
    "last": lambda values: float(values[-1]),
}


def to_episodes(
    table: Table,
    episode: str,
    reduce: Reduction | None,
    source: str,
    meaning: Meaning,
    success_values: Sequence[str] = (),
    by: str | None = None,
) -> Table:
    """Return a table with one row per episode from one whose rows are steps.

    Parameters
    ----------
    table
        The steps, those of each episode in their order; episodes may be interleaved.
    episode
        The column that says which episode a step belongs to.
    reduce
        How an episode's values become one; left out, ``any`` for successes and ``sum`` for rewards.
    source
        The file, for errors.
    meaning, success_values
        What the column that will be read holds, and the words for success in it.
    by
        The column of tasks (or robots), if each numbers its own episodes.

    Raises
    ------
    InvalidSetting
        If an episode has several tasks or robots: episodes that share a number would become one.

    Examples
    --------
    >>> columns = {"episode": [7, 7, 8], "reward": [1.0, 2.0, 5.0]}
    >>> steps = Table(list(columns), True, columns.__getitem__)
    >>> to_episodes(steps, "episode", None, "x.csv", "reward").values("reward")
    [3.0, 5.0]
    """
    if reduce is not None and reduce not in get_args(Reduction):
        rules = ", ".join(get_args(Reduction))
        raise InvalidSetting(f"reduce = {reduce!r} is unknown; choose one of {rules} (--reduce)")
    episode = table.find(episode, source, "episode")
    by = None if by is None else table.find(by, source, "by")
    numbers = _names(table, episode, table.values(episode), source)
    shared = episode != table.episode  # a format's own numbers are unique
    # Every task may count its episodes from 1.
    tasks = task_names(table, by, source) if by is not None and shared else [""] * len(numbers)
    rows: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(numbers, tasks, strict=True)):
        rows.setdefault(key, []).append(row)
    names = [f"{number} of {task}" if task else number for number, task in rows]
    groups = [np.array(members) for members in rows.values()]

    def refuse_several(column: str, found: list[Any], kind: type[BoundwatchError], remedy: str) -> None:
        for name, members in zip(names, groups, strict=True):
            several = dict.fromkeys(found[row] for row in members if found[row] is not None)
            if len(several) > 1:
                first, second = list(several)[:2]
                raise kind(f"{source}: episode {name} has {column} = {first!r} and {second!r}{remedy}")

    for column in task_columns(table.names) if shared else []:
        try:
            found = [_name(value) for value in table.values(column)]
        except InvalidCost:  # not every row has it
            continue
        apart = f"keep them apart with --by {column}, or give" if by is None else "give"
        refuse_several(
            column,
            found,
            InvalidSetting,
            f", so several episodes would become one; {apart} --episode a column that no two episodes share "
            f"(rename {column} if it changes within an episode)",
        )

    def values(column: str) -> list[Any]:
        rule = reduction(reduce, meaning)
        if rule is None:
            raise InvalidSetting(
                f"{source}: column {column!r} has a cost for every step of an episode; "
                "choose what makes them one with reduce='mean', 'max', 'last' or 'sum' (--reduce)"
            )
        numbers = _numbers(table, column, meaning, source, success_values)
        return [_RULES[rule](numbers[members]) for members in groups]

    def labels(column: str) -> list[Any]:
        found = task_names(table, column, source)
        refuse_several(
            column, found, InvalidCost, "; an episode has one, so split it, or choose another column"
        )
        return [found[members[0]] for members in groups]

    def place(row: int, column: str) -> str:
        return f"episode {names[row]}, column {column!r}"

    lines = None if table.lines is None else [table.lines[members[0]] for members in rows.values()]
    return dataclasses.replace(
        table, values=values, labels=labels, lines=lines, array=None, place=place, episode=None
    )


def reduction(reduce: Reduction | None, meaning: Meaning) -> Reduction | None:
    """Return the rule that makes steps one value, the customary one if none is asked for.

    Examples
    --------
    >>> reduction(None, "success"), reduction("last", "success"), reduction(None, "cost")
    ('any', 'last', None)
    """
    return reduce or _CUSTOM.get(meaning)


def counts_episodes(column: str) -> bool:
    """Return whether a column says by its name which episode a row belongs to.

    Examples
    --------
    >>> counts_episodes("Episode ID"), counts_episodes("episode_reward")
    (True, False)
    """
    return _EPISODE.fullmatch(column.strip()) is not None


def task_columns(names: Iterable[str]) -> list[str]:
    """Return the columns that name tasks or robots.

    Examples
    --------
    >>> task_columns(["trial", "Robot", "task_score"])
    ['Robot']
    """
    return [name for name in names if name.strip().lower() in ("task", "robot")]


def in_blocks(tasks: Sequence[str]) -> bool:
    """Return whether one task comes after the other, each in a row.

    Examples
    --------
    >>> in_blocks(["mug", "mug", "bowl"]), in_blocks(["mug", "bowl", "mug"]), in_blocks(["mug", "mug"])
    (True, False, False)
    """
    different = len(set(tasks))
    changes = sum(task != last for last, task in pairwise(tasks))
    return len(tasks) > different > 1 and changes == different - 1


def in_turns(tasks: Sequence[str]) -> bool:
    """Return whether tasks take turns in an order that stays the same.

    Examples
    --------
    >>> in_turns(["mug", "bowl", "mug", "bowl"]), in_turns(["mug", "bowl", "bowl"]), in_turns(["mug", "bowl"])
    (True, False, False)
    """
    different = len(set(tasks))
    return len(tasks) > different > 1 and all(map(eq, tasks, tasks[different:]))


def _hardly_random(counts: Collection[int]) -> bool:
    """Return whether a random order of trials is in blocks, or in turns, in at most 1 of 10,000 cases."""
    trials, tasks = sum(counts), len(counts)
    if not trials > tasks > 1:
        return False
    # k! orders of k blocks, or of k tasks that take turns, out of all orders of trials with these tasks.
    orders = lgamma(tasks + 1) + sum(lgamma(n + 1) for n in counts)
    return orders - lgamma(trials + 1) <= log(1e-4)


def _stays_in_blocks(rows: dict[str, int], task: str) -> bool:
    return task not in rows or task == next(reversed(rows))


def _stays_in_turn(rows: dict[str, int], task: str) -> bool:
    done = sum(rows.values())
    if done == len(rows):  # the first turn
        return task not in rows or (task == next(iter(rows)) and done > 1)
    return task == list(rows)[done % len(rows)]


@dataclass
class Order:
    """Follows rows that come one by one: whether tasks come in a fixed order, and whether rows are steps.

    Parameters
    ----------
    mixture
        Whether all tasks (or robots) are taken for one mixture, so that blocks and turns are refused.
    by
        The column that keeps tasks apart, if there is one: each may number its own episodes.
    numbered
        Whether the sender numbers its episodes, and may send one again.

    Examples
    --------
    >>> order = Order(mixture=True)
    >>> [order.take({"episode": n, "task": "mug"}) for n in (1, 2)], order.blocks
    (['', ''], {'task': {'mug': 2}})
    >>> order.take({"episode": 2, "task": "mug"})[:34]
    'has the same episode as the line a'
    """

    mixture: bool = False
    by: str | None = None
    numbered: bool = False
    blocks: dict[str, dict[str, int] | None] = field(default_factory=dict)
    """By column, how many rows each task has while one comes after the other; None once they do not."""
    turns: dict[str, dict[str, int] | None] = field(default_factory=dict)
    """The same while tasks take turns in one order."""
    last: list[str] | None = None
    """The episode of the latest row, and whose it is."""
    said: bool = False
    """Whether it was said that rows may be steps."""

    def take(self, fields: Mapping[str, Any]) -> str:
        """Take a row, and return what should be said about it.

        Raises
        ------
        InvalidSetting
            If tasks that are taken for one mixture are in blocks or take turns, in a way that a random order
            has in about 1 of 10,000 cases. The first few rows of any order may look like that.
        """
        tasks, episodes = _order_columns(tuple(fields))
        if not tasks and not episodes:
            return ""
        named = {column: task for column in tasks if (task := _name(fields[column])) is not None}
        mixed = [self._mixed(*each) for each in named.items()] if self.mixture else []
        owner = " ".join(named.values())
        repeated = "" if self.numbered or self.said else self._repeated(fields, episodes, owner)
        return "; it ".join(filter(None, (*mixed, repeated)))

    def _mixed(self, column: str, task: str) -> str:
        blocks = self.blocks.get(column, {})
        latest = next(reversed(blocks), task) if blocks is not None else task
        for orders, stays, said in (
            (self.blocks, _stays_in_blocks, f"lists one {column} after the other"),
            (self.turns, _stays_in_turn, f"takes each {column} in turn, always in the same order"),
        ):
            rows = orders.setdefault(column, {})
            if rows is None:
                continue
            if (rows and not stays(rows, task)) or len(rows) > _MOST_BLOCKS:
                orders[column] = None
                continue
            rows[task] = rows.get(task, 0) + 1
            if _hardly_random(rows.values()):
                raise InvalidSetting(
                    f"{said}, so a hard one would decide because of its place among the lines; take one at a "
                    f"time, or give certify and check the whole file with --by {column}"
                )
        if task == latest or len(self.blocks[column] or ()) != 2:
            return ""
        return (
            f"is of {column} {shown(task)}, lines above it of {shown(latest)}: they are taken for one "
            f"mixture; certify and check keep them apart with --by {column}"
        )

    def _repeated(self, fields: Mapping[str, Any], columns: Sequence[str], owner: str) -> str:
        numbers = {column: name for column in columns if (name := _name(fields[column])) is not None}
        if not numbers:
            return ""
        column, number = next(iter(numbers.items()))
        before, self.last = self.last, [number, owner, str(fields.get(self.by or "", ""))]
        if self.last != before:
            return ""
        self.said = True
        return (
            f"has the same {column} as the line above it; if lines are steps, no error rate holds for them: "
            f"send one line per episode, or read the whole file with --episode {column}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what the rows so far have shown, as plain JSON values."""
        return {"blocks": self.blocks, "turns": self.turns, "last": self.last, "said": self.said}

    def restore(self, content: Mapping[str, Any]) -> None:
        """Go on as when `to_dict` was called; a state of an earlier version has nothing of it."""
        last = content.get("last")
        self.blocks, self.turns = (
            {
                str(column): None if tasks is None else {str(task): int(rows) for task, rows in tasks.items()}
                for column, tasks in content.get(name, {}).items()
            }
            for name in ("blocks", "turns")
        )
        every = (rows for orders in (self.blocks, self.turns) for rows in orders.values() if rows)
        if not all(0 < n < 1 << 63 for rows in every for n in rows.values()):
            raise ValueError
        self.last = None if last is None else [str(part) for part in last]
        self.said = bool(content.get("said"))


@lru_cache(maxsize=1000)  # a stream has the same names line after line
def _order_columns(names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return the columns of tasks, and those that say which episode a row belongs to."""
    return task_columns(names), [name for name in names if counts_episodes(name)]


def repeated_episodes(table: Table, by: str | None, source: str) -> tuple[str, ...]:
    """Warn when rows are taken for episodes although a column says that several belong to the same one.

    Examples
    --------
    >>> columns = {"episode": [1, 1, 2], "cost": [0, 0, 1]}
    >>> repeated_episodes(Table(list(columns), True, columns.__getitem__), None, "x.csv")[0][:56]
    'x.csv: 3 rows have only 2 different values of episode; i'
    """
    column = next((name for name in table.names if counts_episodes(name)), None)
    if not table.named or column is None or table.names.count(column) > 1:
        return ()
    numbers = None if table.array is None else table.array(column)
    if numbers is not None and (numbers[1:] > numbers[:-1]).all():
        return ()
    values = [str(value) for value in table.values(column)]
    # Every task may count its episodes from 1.
    tasks = values if by is None else task_names(table, by, source)
    if (different := len(set(zip(values, tasks, strict=True)))) == len(values):
        return ()
    return (
        f"{source}: {len(values)} rows have only {different} different values of {column}; if rows are "
        f"steps, no error rate holds for them: make them episodes with --episode {column}",
    )


def task_names(table: Table, by: str, source: str) -> list[str]:
    """Return the name of every row's task (or robot), from a column of texts or whole numbers.

    Examples
    --------
    >>> table = Table(["task"], True, lambda name: ["pick", 3, 4.0])
    >>> task_names(table, "task", "x.jsonl")
    ['pick', '3', '4']
    """
    by = table.find(by, source, "by")
    return _names(table, by, (table.labels or table.values)(by), source)


def _names(table: Table, column: str, raw: list[Any], source: str) -> list[str]:
    if set(map(type, raw)) <= {str}:  # the usual case: a file has few tasks and many rows
        known = {text: text.strip() for text in set(raw)}
        if all(known.values()) and max(map(len, known.values()), default=0) <= LONGEST_NAME:
            return [known[text] for text in raw]
    names = [_name(value) for value in raw]
    for row, name in enumerate(names):
        if name is None:
            raise InvalidCost(
                f"{source}: {table.locate(row, column)} = {shown(raw[row])} is not a valid name; "
                "give every row a text or a whole number there"
            )
        if len(name) > LONGEST_NAME:
            raise InvalidCost(
                f"{source}: {table.locate(row, column)} = {shown(raw[row])} is a name of {len(name)} "
                f"characters; at most {LONGEST_NAME} are read"
            )
    return names  # type: ignore[return-value]  # the loop above let no None through


def _name(value: object) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return str(value)
    return shortest(value) if isinstance(value, float) and value.is_integer() else None


def _numbers(
    table: Table, column: str, meaning: Meaning, source: str, success_values: Sequence[str]
) -> Array:
    raw = table.values(column)

    def refuse(row: int, fault: str) -> NoReturn:
        raise InvalidCost(f"{source}: {table.locate(row, column)} = {shown(raw[row])} {fault}")

    if meaning == "success":
        return read_successes(raw, refuse, success_values)[0]
    numbers, percent = read_numbers(raw, refuse, commas_elsewhere=table.commas)
    if percent:
        refuse(0, "is a percentage, which is not read step by step; write numbers without %")
    return numbers
