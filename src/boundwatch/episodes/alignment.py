"""Episodes of several policies: of the same measure, and their tasks in the same order."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from boundwatch.episodes import Episodes
from boundwatch.errors import InvalidCost, InvalidSetting


def take_in_turn(evaluations: Sequence[Episodes]) -> list[Episodes]:
    """Return the episodes of all policies such that the i-th of each is of the same task.

    Logs list the episodes of one task after those of another. Compared as they come, one policy's first task
    would meet another's second. Here the tasks take turns: one episode of each, then the next of each. What
    one policy has more of in a task than another is left out, with a warning.

    Parameters
    ----------
    evaluations
        One entry per policy, with the task of each episode.

    Raises
    ------
    InvalidCost
        If a task is missing in one of them.

    Examples
    --------
    >>> one = Episodes(np.array([0.1, 0.2, 0.3]), False, "x", "cost", "cost", tasks=("a", "a", "b"))
    >>> other = Episodes(np.array([0.4, 0.5]), False, "y", "cost", "cost", tasks=("b", "a"))
    >>> [each.costs.tolist() for each in take_in_turn([one, other])]
    [[0.1, 0.3], [0.5, 0.4]]
    """
    tasks = list(dict.fromkeys(evaluations[0].tasks))
    for each in evaluations[1:]:
        for task in set(tasks) ^ set(each.tasks):
            lacks = each if task in tasks else evaluations[0]
            raise InvalidCost(
                f"{lacks.source}: no episodes of {task}, which another policy was tried on; compare policies "
                "on the same tasks"
            )
    grouped = [each.by_task() for each in evaluations]
    fewest = {task: min(group[task].size for group in grouped) for task in tasks}
    order = sorted((turn, place) for place, task in enumerate(tasks) for turn in range(fewest[task]))
    aligned = []
    for each, group in zip(evaluations, grouped, strict=True):
        costs = np.array([group[tasks[place]][turn] for turn, place in order])
        extra = each.costs.size - costs.size
        warnings = each.warnings
        if extra:
            warnings += (
                f"{each.source}: {extra} episodes are left out, as another policy has fewer of a task",
            )
        aligned.append(
            dataclasses.replace(
                each, costs=costs, tasks=tuple(tasks[place] for _, place in order), warnings=warnings
            )
        )
    return aligned


def most_apart(one: Sequence[str], other: Sequence[str]) -> str | None:
    """Return the task whose numbers of trials differ most between two policies, if they clearly differ.

    In a random order, of s trials of a task x are of one policy and s - x of the other, and |x - (s - x)| is
    at most √s on average. They clearly differ if the sum of these differences exceeds the sum of these √s.
    Trials that name no task tell nothing.

    Examples
    --------
    >>> most_apart(["mug"] * 5, ["bowl"] * 5), most_apart(["mug", "bowl"] * 3, ["mug"] * 4 + ["bowl"] * 2)
    ('mug', None)
    """
    if not any(one) or not any(other):
        return None
    ones, others = Counter(one), Counter(other)
    apart = {task: abs(ones[task] - others[task]) for task in ones | others}
    if sum(apart.values()) <= sum(math.sqrt(n) for n in (ones + others).values()):
        return None
    return max(apart, key=apart.__getitem__)


def of_one_measure(evaluations: Sequence[Episodes]) -> list[Episodes]:
    """Return the episodes of all policies, with a warning where their columns differ in nothing but the name.

    Raises
    ------
    InvalidSetting
        If their costs are not measured in the same way: a comparison would mean nothing.

    Examples
    --------
    >>> one = Episodes(np.array([0.1, 0.2]), False, "old.csv", "cost", "cost")
    >>> other = Episodes(np.array([0.0, 1.0]), True, "new.csv", "success", "success")
    >>> of_one_measure([one, other])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: new.csv: column 'success' (cost = 1 - success) is not measured the...
    """
    first = evaluations[0]
    checked = [first]
    for each in evaluations[1:]:
        if _rule(each) != _rule(first):
            raise InvalidSetting(
                f"{each.source}: column {each.column!r} ({_rule(each)}) is not measured the way column "
                f"{first.column!r} of {first.source} is ({_rule(first)}); compare the same measure: name a "
                "column that all files have with --success, --cost or --reward"
            )
        warnings = each.warnings
        if each.measured != first.measured:
            warnings += (
                f"{each.source}: these costs are from column {each.column!r}, those of {first.source} from "
                f"{first.column!r}; a verdict means nothing unless both measure the same",
            )
        checked.append(dataclasses.replace(each, warnings=warnings))
    return checked


def _rule(episodes: Episodes) -> str:
    """Say how costs are measured, whatever their column is called."""
    return dataclasses.replace(episodes, column=None).measured
