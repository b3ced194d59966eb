"""Episodes of several policies: of one measure, partners matched by what they share, tasks in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.two_sample import log_choose
from boundwatch.episodes.compatibility import rule_of
from boundwatch.episodes.episodes import Episodes, Role
from boundwatch.episodes.notes import rows_of
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.readers.lerobot import MIXED

PairBy = Sequence[str] | str | Mapping[str, Sequence[Any]] | None
Keys = tuple[str, ...]
SORTED_LEVEL = 1e-4
"""Trials that are sorted by chance more rarely than this are refused where their order counts."""
_MOST_RUNS = 500  # more are not looked at: nobody sorts like that
_SHOWN = 5
_UNPAIRED = ("compare without ", Argument("paired", True))


def tasks_of(episodes: Episodes) -> tuple[str, ...]:
    """Return the task (stratum) of each episode; nothing if none are declared."""
    return episodes.keys.get("strata", ())


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
        checked.append(replace(each, warnings=warnings))
    return checked


def partners(keys: Sequence[Sequence[Hashable]]) -> list[tuple[list[int], list[Any]]]:
    """Return where each policy has the keys that all have, in the order of the first, and its other keys."""
    common = set(keys[0]).intersection(*keys[1:])
    found = []
    for mine in keys:
        places = {key: place for place, key in enumerate(mine)}
        alone = [key for key in mine if key not in common]
        found.append(([places[key] for key in keys[0] if key in common], alone))
    return found


def keys_of(policies: Mapping[str, Episodes], pair_by: PairBy) -> list[Keys]:
    """Return the keys of each policy's trials; refuse trials without one, repeats, and strangers."""
    keys = [_keys_of(str(name), each, pair_by) for name, each in policies.items()]
    for (one, a), (other, b) in combinations(zip(policies, keys, strict=True), 2):
        if not set(a) & set(b):
            problem = f"no trial of {one} ({_listed(a)}) has a partner among those of {other} ({_listed(b)})"
            raise InvalidCost(problem, remedy="they share no key: compare them unpaired")
    if not set(keys[0]).intersection(*keys[1:]):
        raise InvalidCost("no key is shared by all policies", remedy="compare two of them")
    return keys


def _keys_of(name: str, episodes: Episodes, pair_by: PairBy) -> Keys:
    if isinstance(pair_by, Mapping):
        if len(keys := tuple(map(str, pair_by.get(name, ())))) != len(episodes):
            problem = f"has {len(keys)} keys for the {len(episodes)} trials of {name!r}"
            raise InvalidSetting(problem, name="pair_by", remedy="give one per trial of each policy")
    else:
        columns = pair_by.split(",") if isinstance(pair_by, str) else list(pair_by or ())
        declared = list(episodes.design.pair_by)
        if "pair" not in episodes.keys or (declared and declared != [each.strip() for each in columns]):
            problem = f"the trials of {name!r} were not read with these keys"
            remedy = ("pass ", Argument("pair_by"), " to read_costs, too, or a list of keys per policy")
            raise InvalidSetting(problem, name="pair_by", value=list(columns), remedy=remedy)
        keys = episodes.keys["pair"]
    if repeated := [key for key, times in Counter(keys).items() if times > 1]:
        raise InvalidCost(
            f"{len(repeated)} keys occur more than once ({_listed(repeated)}): whose partner is whose?",
            where=Place(episodes.source or name),
            remedy=("add a column that tells them apart to ", Argument("pair_by"), ", or compare unpaired"),
        )
    return keys


def matched(policies: Mapping[str, Episodes], pair_by: PairBy) -> dict[str, Episodes]:
    """Return the trials of all policies whose key every policy has, in the order of the first policy."""
    found = {}
    for (name, each), (rows, alone) in zip(
        policies.items(), partners(keys_of(policies, pair_by)), strict=True
    ):
        said = (
            f"{each.source or name}: {len(alone)} trials have no partner and are left out: {_listed(alone)}"
        )
        found[name] = each.take(rows, warnings=(*each.warnings, said) if alone else each.warnings)
    return found


def _listed(keys: Sequence[str]) -> str:
    return ", ".join(keys[:_SHOWN]) + (", ..." if len(keys) > _SHOWN else "")


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
            problem = f"has {len(each)} trials, but {first.source} has {len(first)}"
            remedy = "paired trials must be equal in number: match them by seed"
            raise InvalidCost(problem, where=Place(each.source), remedy=remedy)
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
    if not paired:
        for (one, mine), (other, theirs) in combinations(zip(evaluations, names, strict=True), 2):
            if shared := set(mine) & set(theirs):
                problem = f"has {min(shared)[0]!r}, on which {one.source} ran, too"
                where = Place(other.source, column=other.design.cluster)
                remedy = ("compare matched clusters with ", Argument("paired", True), ", or name them apart")
                raise InvalidSetting(problem, where=where, remedy=remedy)
        return list(evaluations)
    found = []
    for each, (rows, alone) in zip(evaluations, partners(names), strict=True):
        if not rows:
            problem, where = "has no cluster that another policy ran on", Place(evaluations[-1].source)
            raise InvalidCost(problem, where=where, remedy=_UNPAIRED)
        listed = ", ".join(name[0] for name in alone)
        said = (f"{each.source}: {listed} left out: not every policy ran there",) if alone else ()
        found.append(each.take(rows, warnings=(*each.warnings, *said)))
    return found


def refuse_apart(one: Episodes, other: Episodes) -> None:
    """Refuse partners of different tasks, scenes or keys."""
    columns: dict[Role, str | None] = {
        "strata": "task",
        "cluster": one.design.cluster,
        "pair": ", ".join(one.design.pair_by),
    }
    for role, column in columns.items():
        both = zip(one.keys.get(role, ()), other.keys.get(role, ()), strict=False)
        for place, (mine, theirs) in enumerate(both):
            if mine == theirs:
                continue
            a, b = (each.numbers[place] if len(each.numbers) else place + 1 for each in (one, other))
            raise InvalidCost(
                f"is of {column} {theirs}, but its partner by row, {one.unit} {a} of {one.source}, "
                f"is of {mine}",
                where=Place(other.source, other.unit, b),
                remedy=("match them by what they share: ", Argument("pair_by"), "; or ", *_UNPAIRED),
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
        problem = (
            "the trials are sorted by their outcome, or nearly so (by chance in fewer than "
            f"{SORTED_LEVEL:g} of files), and their order is read as time"
        )
        remedy = ("give them in the order in which they ran, or ", Argument("once", True), " if all are done")
        raise InvalidCost(problem, where=Place(episodes.source), remedy=remedy)


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
    places = [rows_of(tasks_of(each)) for each in evaluations]
    tasks = same_tasks(evaluations, places)
    turns = min(rows.size for each in places for rows in each.values())
    found = []
    for each, groups in zip(evaluations, places, strict=True):
        rows = np.stack([groups[task][:turns] for task in tasks], axis=1).ravel()
        extra = f"{each.source}: {len(each) - rows.size} episodes are left out: they complete no turn, "
        extra += f"in which each of {len(tasks)} tasks is run once"
        warnings = each.warnings if rows.size == len(each) else (*each.warnings, extra)
        found.append(each.take(rows, warnings=warnings))
    return found


def same_tasks(evaluations: Sequence[Episodes], places: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the tasks of all policies; refuse one that a policy was not tried on."""
    tasks = list(dict.fromkeys(task for each in places for task in each))
    for each, known in zip(evaluations, places, strict=True):
        if missing := [task for task in tasks if task not in known]:
            problem = f"has no trials of {missing[0]}, which another policy was tried on"
            raise InvalidCost(problem, where=Place(each.source), remedy="compare policies on the same tasks")
    return tasks
