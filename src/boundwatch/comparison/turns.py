"""Episodes of several policies: of the same measure, their declared tasks in complete turns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import combinations, repeat

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.two_sample import log_choose
from boundwatch.episodes.compatibility import rule_of
from boundwatch.episodes.episodes import Episodes
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.lerobot import MIXED

SORTED_LEVEL = 1e-4
"""Trials that are sorted by chance more rarely than this are refused where their order counts."""
_MOST_RUNS = 500  # more are not looked at: nobody sorts like that


def tasks_of(episodes: Episodes) -> tuple[str, ...]:
    """Return the task (stratum) of each episode; nothing if none are declared."""
    return episodes.keys.get("strata", ())


def align(evaluations: Sequence[Episodes], *, paired: bool, in_order: bool = True) -> list[Episodes]:
    """Return the episodes of all policies such that those of a pair have one measure and one task.

    Several tasks take turns (see `take_in_turn`): nobody can tell from a file that their order was drawn at
    random. Partners stay together, for those of the same tasks take turns alike. Unless `in_order`, nothing
    is moved or refused because of the order.
    """
    read = match_clusters(of_one_measure(evaluations), paired=paired)
    for each in read if in_order else []:
        refuse_sorted(each)
    first = read[0]
    for each in read[1:] if paired else []:
        if len(each) != len(first):
            raise InvalidCost(
                f"has {len(each)} trials, but {first.source} has {len(first)}",
                where=Place(each.source),
                remedy="paired trials must be equal in number: match them by seed",
            )
        refuse_apart(first, each)
    several = len({task for each in read for task in tasks_of(each)}) > 1
    return take_in_turn(read) if several and in_order else read


def match_clusters(evaluations: Sequence[Episodes], *, paired: bool) -> list[Episodes]:
    """Return the episodes of all policies such that the i-th costs of all are of one cluster, if `paired`.

    Two policies that ran on the same scene are no independent trials: refuse that without `paired`.
    """
    names = [
        list(zip(each.keys.get("cluster", ()), tasks_of(each) or repeat(""), strict=False))
        for each in evaluations
    ]
    if not all(names):
        return list(evaluations)
    common = set(names[0]).intersection(*names[1:])
    if not paired:
        for one, other in combinations(range(len(names)), 2):
            if shared := set(names[one]) & set(names[other]):
                example = min(shared)[0]
                problem = f"has {example!r}, on which {evaluations[one].source} ran, too"
                remedy = ("compare matched clusters with ", Argument("paired", True), ", or name them apart")
                column = evaluations[other].design.cluster
                raise InvalidSetting(
                    problem, where=Place(evaluations[other].source, column=column), remedy=remedy
                )
        return list(evaluations)
    if not common:
        problem = "has no cluster that another policy ran on"
        raise InvalidCost(
            problem,
            where=Place(evaluations[-1].source),
            remedy=("compare without ", Argument("paired", True)),
        )
    order = [name for name in names[0] if name in common]
    found = []
    for each, known in zip(evaluations, names, strict=True):
        alone = ", ".join(name[0] for name in known if name not in common)
        said = (f"{each.source}: {alone} left out: not every policy ran there",) if alone else ()
        places = {name: place for place, name in enumerate(known)}
        found.append(each.take([places[name] for name in order], warnings=(*each.warnings, *said)))
    return found


def refuse_apart(one: Episodes, other: Episodes) -> None:
    """Refuse partners of different tasks, scenes or keys."""
    for role in ("strata", "cluster", "pair"):
        columns = {"strata": "task", "cluster": one.design.cluster, "pair": ", ".join(one.design.pair_by)}
        both = zip(one.keys.get(role, ()), other.keys.get(role, ()), strict=False)
        for place, (mine, theirs) in enumerate(both):
            if mine == theirs:
                continue
            a, b = (each.numbers[place] if len(each.numbers) else place + 1 for each in (one, other))
            raise InvalidCost(
                f"is of {columns[role]} {theirs}, but its partner by row, {one.unit} {a} of {one.source}, "
                f"is of {mine}",
                where=Place(other.source, other.unit, b),
                remedy=(
                    "match them by what they share: ",
                    Argument("pair_by"),
                    "; or compare without ",
                    Argument("paired", True),
                ),
            )


def refuse_sorted(episodes: Episodes) -> None:
    """Refuse trials that are sorted by their outcome, or nearly so, where their order is read as time.

    What counts is the number of runs of low and of high costs (Wald and Wolfowitz), of all tasks together: no
    more than half of what independent trials have on average, and so few by chance in 1e-4 of files.
    """
    groups = rows_of(tasks_of(episodes)).values() if tasks_of(episodes) else [np.arange(len(episodes))]
    runs, average, chances = 0, 0.0, np.ones(1)
    for rows in groups:
        high = episodes.costs[rows] > episodes.costs[rows].mean()
        ones, n = int(high.sum()), high.size
        runs += int(np.count_nonzero(np.diff(high))) + 1
        average += 2 * ones * (n - ones) / n + 1
        chances = np.convolve(chances, _runs(ones, n - ones, _MOST_RUNS))[: _MOST_RUNS + 1]
    if runs <= min(average / 2, _MOST_RUNS) and float(chances[: runs + 1].sum()) <= SORTED_LEVEL:
        raise InvalidCost(
            "the trials are sorted by their outcome, or nearly so (by chance in fewer than "
            f"{SORTED_LEVEL:g} of files), and their order is read as time",
            where=Place(episodes.source),
            remedy=(
                "give them in the order in which they ran, or ",
                Argument("once", True),
                " if all are done",
            ),
        )


def _runs(ones: int, zeros: int, most: int) -> NDArray[np.float64]:
    """Return the chances of 0, 1, …, `most` runs in a random order of ones and zeros."""
    runs = np.arange(most + 1)
    if not ones or not zeros:
        return np.asarray(runs == 1, dtype=np.float64)
    cut, other = runs // 2 - 1, (runs + 1) // 2 - 1  # of the ones and of the zeros, or the other way round
    total = log_choose(ones + zeros, ones)
    logs = [
        log_choose(ones - 1, a) + log_choose(zeros - 1, b) - total for a, b in ((cut, other), (other, cut))
    ]
    return np.asarray(np.where(runs < 2, 0.0, np.exp(logs).sum(axis=0)))


def take_in_turn(evaluations: Sequence[Episodes]) -> list[Episodes]:
    """Return the episodes of all policies in complete turns: one of each task, then the next of each.

    The i-th of each policy is then of the same task. What completes no turn is left out, with a warning.
    """
    tasks = list(dict.fromkeys(task for each in evaluations for task in tasks_of(each)))
    places = [_places(each, tasks) for each in evaluations]
    turns = min(len(rows) for each in places for rows in each)
    return [
        _chosen(each, np.stack([rows[:turns] for rows in groups], axis=1).ravel(), len(tasks))
        for each, groups in zip(evaluations, places, strict=True)
    ]


def _places(episodes: Episodes, tasks: Sequence[str]) -> list[NDArray[np.int64]]:
    """Return the places of the episodes of each task."""
    named = np.array(tasks_of(episodes), dtype=object)
    places = [np.flatnonzero(named == task) for task in tasks]
    for task, rows in zip(tasks, places, strict=True):
        if not rows.size:
            raise InvalidCost(
                f"has no episodes of {task}, which another policy was tried on",
                where=Place(episodes.source),
                remedy="compare policies on the same tasks",
            )
    return places


def _chosen(episodes: Episodes, rows: NDArray[np.int64], tasks: int) -> Episodes:
    warnings = episodes.warnings
    if extra := len(episodes) - rows.size:
        warnings += (
            f"{episodes.source}: {extra} episodes are left out: they complete no turn, in which each of "
            f"{tasks} tasks is run once",
        )
    return episodes.take(rows, warnings=warnings)


def of_one_measure(evaluations: Sequence[Episodes]) -> list[Episodes]:
    """Return the episodes of all policies, warned of where their columns differ; refuse other measures."""
    first = evaluations[0]
    column, rule = rule_of(first.measure, first.design)
    checked = []
    for each in evaluations:
        of_each, its_rule = rule_of(each.measure, each.design)
        if its_rule != rule:
            columns = (Argument("success"), ", ", Argument("cost"), " or ", Argument("reward"))
            raise InvalidSetting(
                f"{each.measure}, is not measured the way {first.source} is ({first.measure})",
                where=Place(each.source),
                remedy=("compare the same measure: name a column that all files have with ", *columns),
            )
        warnings = tuple(said for said in each.warnings if not said.endswith(MIXED))  # they are kept apart
        if of_each != column:
            warnings += (
                f"{each.source}: its costs are from column {each.measure.column!r}, those of {first.source} "
                f"from {first.measure.column!r}; a verdict means nothing unless both measure the same",
            )
        checked.append(dataclasses.replace(each, warnings=warnings))
    return checked
