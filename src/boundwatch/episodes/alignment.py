"""Episodes of several policies: of the same measure, and their tasks in the same order."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from boundwatch.episodes.former import Episodes
from boundwatch.episodes.steps import in_blocks
from boundwatch.errors import InvalidCost, InvalidSetting


def align(evaluations: Sequence[Episodes], *, paired: bool) -> list[Episodes]:
    """Return the episodes of all policies such that those of a pair have one measure and one task.

    If all policies ran the same tasks, these take turns (see `take_in_turn`): nobody can tell from a file
    that their order was drawn at random. Partners stay together. Tasks that differ are taken for one mixture,
    unless they are in blocks.

    Parameters
    ----------
    evaluations
        One entry per policy.
    paired
        Whether the i-th episodes of all of them are partners.

    Raises
    ------
    InvalidCost
        If partners are missing or have different tasks, or a policy lacks a task or the column that names it.
    InvalidSetting
        See `of_one_measure`.

    Examples
    --------
    >>> labels = {"task": ("mug", "mug", "bowl", "bowl")}
    >>> one = Episodes(np.array([0.1, 0.2, 0.3, 0.4]), False, "x", "cost", "cost", labels=labels)
    >>> [each.costs.tolist() for each in align([one, one], paired=True)]
    [[0.1, 0.3, 0.2, 0.4], [0.1, 0.3, 0.2, 0.4]]
    """
    read = of_one_measure(evaluations)
    first = read[0]
    for each in read[1:] if paired else []:
        if len(each) != len(first):
            raise InvalidCost(
                f"{each.source}: has {len(each)} trials, but {first.source} has {len(first)}; paired trials "
                "must be equal in number, so match them by seed"
            )
    several = {column for each in read for column, tasks in each.labels.items() if len(set(tasks)) > 1}
    columns = [column for each in read for column in each.labels if column in several]
    named = [_name_tasks(each, list(dict.fromkeys(columns))) for each in read]
    tasks = set(named[0].tasks)
    alike = len(tasks) > 1 and all(set(each.tasks) == tasks for each in named)
    if not alike and not any(in_blocks(each.tasks) for each in named):
        return read
    for each in named:
        if not each.tasks:
            raise InvalidCost(
                f"{each.source}: has no column {each.by!r}, and another policy ran one {each.by} after the "
                f"other; add that column, so that each pair can have one {each.by}"
            )
        apart = first_apart(named[0].tasks, each.tasks) if paired else None
        if apart is not None:
            place, one, other = apart
            raise InvalidCost(
                f"{each.source}: trial {place + 1} has {each.by} {other}, but its partner in "
                f"{first.source} has {one}; match the rows by seed, or compare without --paired"
            )
    # Partners of the same tasks take turns alike, and stay together.
    return take_in_turn(named)


def _name_tasks(episodes: Episodes, columns: Sequence[str]) -> Episodes:
    """Return episodes with the task of each, from all columns that tell tasks apart; none if one lacks."""
    tasks: tuple[str, ...] = ()
    if columns and all(column in episodes.labels for column in columns):
        rows = zip(*(episodes.labels[column] for column in columns), strict=True)
        tasks = tuple(" ".join(row) for row in rows)
    missing = [column for column in columns if column not in episodes.labels]
    return dataclasses.replace(episodes, by=" and ".join(missing or columns), tasks=tasks)


def first_apart(ones: Sequence[str], others: Sequence[str]) -> tuple[int, str, str] | None:
    """Return the place of the first pair of different tasks, and these; None if there is none.

    Examples
    --------
    >>> first_apart(["mug", "mug"], ["mug", "bowl", "bowl"])
    (1, 'mug', 'bowl')
    """
    pairs = enumerate(zip(ones, others, strict=False))
    return next(((place, one, other) for place, (one, other) in pairs if one != other), None)


def take_in_turn(evaluations: Sequence[Episodes]) -> list[Episodes]:
    """Return the episodes of all policies in complete turns: one of each task, then the next of each.

    The i-th of each policy is then of the same task. What completes no turn is left out, with a warning.

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
    tasks = tuple(dict.fromkeys(evaluations[0].tasks))
    for each in evaluations[1:]:
        for task in set(tasks) ^ set(each.tasks):
            lacks = each if task in tasks else evaluations[0]
            raise InvalidCost(
                f"{lacks.source}: no episodes of {task}, which another policy was tried on; compare policies "
                "on the same tasks"
            )
    grouped = [each.by_task() for each in evaluations]
    turns = min(costs.size for group in grouped for costs in group.values())
    aligned = []
    for each, group in zip(evaluations, grouped, strict=True):
        costs = np.stack([group[task][:turns] for task in tasks], axis=1).ravel()
        warnings = each.warnings
        if extra := each.costs.size - costs.size:
            warnings += (
                f"{each.source}: {extra} episodes are left out: they complete no turn, in which each of "
                f"{len(tasks)} tasks is run once",
            )
        aligned.append(dataclasses.replace(each, costs=costs, tasks=tasks * turns, warnings=warnings))
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


def different_tasks(one: Sequence[str], other: Sequence[str], names: tuple[str, str]) -> str:
    """Say that as many trials of two policies clearly differ in their tasks; nothing if they do not.

    Examples
    --------
    >>> different_tasks(["mug"] * 5, ["bowl"] * 5, ("a.csv", "b.csv"))
    'of 5 trials each, a.csv has 5 of mug, b.csv has 0, so a verdict may be about the tasks'
    """
    task = most_apart(one, other)
    if task is None:
        return ""
    return (
        f"of {len(one)} trials each, {names[0]} has {one.count(task)} of {task or 'no task'}, {names[1]} "
        f"has {other.count(task)}, so a verdict may be about the tasks"
    )


def warn_of_tasks(evaluations: Mapping[str, Episodes], n: int | None = None) -> dict[str, Episodes]:
    """Return the episodes of all policies, with a warning where the first n (or all) clearly differ in tasks.

    Examples
    --------
    >>> tried = {
    ...     name: Episodes(np.zeros(5), True, "x.csv", "success", "success", labels={"task": (task,) * 5})
    ...     for name, task in {"old": "mug", "new": "bowl"}.items()
    ... }
    >>> warn_of_tasks(tried)["new"].warnings[0][:58]
    'x.csv: of 5 trials each, old has 5 of mug, new has 0, so a'
    """
    (leader, first), *others = evaluations.items()
    if first.tasks:  # they took turns
        return dict(evaluations)
    warned = {leader: first}
    for name, each in others:
        end = min(len(first), len(each)) if n is None else n
        said = {
            column: different_tasks(tasks[:end], each.labels[column][:end], (leader, name))
            for column, tasks in first.labels.items()
            if column in each.labels
        }
        warnings = (
            f"{each.source}: {why}; compare policies on the same ones, sorted by {column}, which are taken "
            "in turn"
            for column, why in said.items()
            if why
        )
        warned[name] = dataclasses.replace(each, warnings=(*each.warnings, *warnings))
    return warned


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
