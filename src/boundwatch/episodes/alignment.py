"""Episodes of several policies: of the same measure, and their tasks in the same order."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.declared import is_customary
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.outcomes import normal
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place


def align(evaluations: Sequence[Episodes], *, paired: bool) -> list[Episodes]:
    """Return the episodes of all policies such that those of a pair have one measure and one stratum.

    If all policies ran the same strata, these take turns (see `take_in_turn`): nobody can tell from a file
    that their order was drawn at random. Partners stay together. Where none are declared, and where they
    differ, all are taken for one mixture.

    Parameters
    ----------
    evaluations
        One entry per policy.
    paired
        Whether the i-th episodes of all of them are partners.

    Raises
    ------
    InvalidCost
        If partners are missing or of different strata.
    InvalidSetting
        See `of_one_measure`.

    Examples
    --------
    >>> one = Episodes([0.1, 0.2, 0.3, 0.4], strata=["mug", "mug", "bowl", "bowl"])
    >>> [each.costs.tolist() for each in align([one, one], paired=True)]
    [[0.1, 0.3, 0.2, 0.4], [0.1, 0.3, 0.2, 0.4]]
    """
    read = of_one_measure(evaluations)
    first = read[0]
    for each in read[1:] if paired else []:
        if len(each) != len(first):
            raise InvalidCost(
                f"has {len(each)} trials, but {first.source} has {len(first)}",
                where=Place(each.source),
                remedy="paired trials must be equal in number, so match them by seed",
            )
        apart = first_apart(_tasks(first), _tasks(each))
        if apart is not None:
            place, one, other = apart
            raise InvalidCost(
                f"trial {place + 1} is of {other}, but its partner in {first.source} of {one}",
                where=Place(each.source),
                remedy=("match the rows by seed, or compare without ", Argument("paired", True)),
            )
    tasks = set(_tasks(first))
    alike = len(tasks) > 1 and all(set(_tasks(each)) == tasks for each in read)
    return take_in_turn(read) if alike else read


def _tasks(episodes: Episodes) -> tuple[str, ...]:
    return episodes.keys.get("strata", ())


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
    >>> one = Episodes([0.1, 0.2, 0.3], strata=("a", "a", "b"))
    >>> other = Episodes([0.4, 0.5], strata=("b", "a"))
    >>> [each.costs.tolist() for each in take_in_turn([one, other])]
    [[0.1, 0.3], [0.5, 0.4]]
    """
    tasks = tuple(dict.fromkeys(_tasks(evaluations[0])))
    for each in evaluations[1:]:
        for task in set(tasks) ^ set(_tasks(each)):
            lacks = each if task in tasks else evaluations[0]
            raise InvalidCost(
                f"no episodes of {task}, which another policy was tried on",
                where=Place(lacks.source),
                remedy="compare policies on the same tasks",
            )
    grouped = [_rows(each) for each in evaluations]
    turns = min(rows.size for group in grouped for rows in group.values())
    aligned = []
    for each, group in zip(evaluations, grouped, strict=True):
        rows = np.stack([group[task][:turns] for task in tasks], axis=1).ravel()
        warnings = each.warnings
        if extra := each.costs.size - rows.size:
            warnings += (
                f"{each.source}: {extra} episodes are left out: they complete no turn, in which each of "
                f"{len(tasks)} tasks is run once",
            )
        keys = {role: tuple(names[row] for row in rows) for role, names in each.keys.items()}
        numbers = [each.numbers[row] for row in rows.tolist()] if len(each.numbers) else ()
        aligned.append(
            dataclasses.replace(each, costs=each.costs[rows], keys=keys, numbers=numbers, warnings=warnings)
        )
    return aligned


def _rows(episodes: Episodes) -> dict[str, NDArray[np.int64]]:
    """Return the places of the episodes of each stratum."""
    tasks = np.array(_tasks(episodes))
    return {str(task): np.flatnonzero(tasks == task) for task in np.unique(tasks)}


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
    ...     name: Episodes(np.zeros(5), strata=(task,) * 5, source="x.csv")
    ...     for name, task in {"old": "mug", "new": "bowl"}.items()
    ... }
    >>> warn_of_tasks(tried)["new"].warnings[0][:58]
    'x.csv: of 5 trials each, old has 5 of mug, new has 0, so a'
    """
    (leader, first), *others = evaluations.items()
    warned = {leader: first}
    for name, each in others:
        end = min(len(first), len(each)) if n is None else n
        why = different_tasks(_tasks(first)[:end], _tasks(each)[:end], (leader, name))
        warnings = [f"{each.source}: {why}; compare policies on the same ones"] if why else []
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
    >>> one = Episodes([0.1, 0.2], source="old.csv", measure=Measure("cost", "cost"))
    >>> other = Episodes([0.0, 1.0], source="new.csv", measure=Measure("success", "success"))
    >>> of_one_measure([one, other])
    Traceback (most recent call last):
    boundwatch.errors.InvalidSetting: new.csv: cost = 1 - success, column success, is not measured the way...
    """
    first = evaluations[0]
    checked = [first]
    for each in evaluations[1:]:
        if _rule(each) != _rule(first):
            raise InvalidSetting(
                f"{each.measure}, is not measured the way {first.source} is ({first.measure})",
                where=Place(each.source),
                remedy=(
                    "compare the same measure: name a column that all files have with ",
                    Argument("success"),
                    ", ",
                    Argument("cost"),
                    " or ",
                    Argument("reward"),
                ),
            )
        warnings = each.warnings
        column, of_first = each.measure.column, first.measure.column
        usual = is_customary(each.measure) and is_customary(first.measure)  # logs have several names for it
        if normal(column or "") != normal(of_first or "") and not usual:
            warnings += (
                f"{each.source}: these costs are from column {column!r}, those of {first.source} from "
                f"{of_first!r}; a verdict means nothing unless both measure the same",
            )
        checked.append(dataclasses.replace(each, warnings=warnings))
    return checked


def _rule(episodes: Episodes) -> tuple[object, ...]:
    """Return how costs are measured, whatever their column is called."""
    measure = episodes.measure
    return measure.kind, measure.ends, frozenset(map(normal, measure.success_values)), episodes.design.reduce
