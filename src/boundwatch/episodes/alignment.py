"""Episodes of several tasks, in the same order for every policy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from boundwatch.episodes import Episodes
from boundwatch.errors import InvalidCost


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
