"""Episodes in: cost files, and the logs of LeRobot, Stable-Baselines3 and MCAP.

`opening` finds out which format a file has; `formats`, `lerobot`, `lerobot_dataset`, `stable_baselines3` and
`mcap` turn it into a `Table`; `steps` makes one row an episode of it; `table` turns a column into costs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.opening import Format, holds_lines, open_table
from boundwatch.episodes.steps import Reduction, reduction, repeated_episodes, task_names, to_episodes
from boundwatch.episodes.table import Meaning, Table, check_range, to_costs
from boundwatch.errors import InvalidCost, InvalidSetting

__all__ = ["Episodes", "Format", "Reduction", "holds_lines", "read_costs"]


@dataclass(frozen=True)
class Episodes:
    """The costs of some episodes, and where they came from."""

    costs: NDArray[np.float64]
    """One cost per episode, in [0, 1], higher is worse."""
    binary: bool
    """Whether every cost is promised to be 0 or 1."""
    source: str
    """The path that was read, or ``standard input``."""
    column: str | None
    """The name of the column, or its position when there are several without names; else None."""
    meaning: Meaning
    """What the column held: a ``cost``, a ``success`` (cost = 1 - success) or a ``reward``."""
    file_format: Format = "csv"
    """The format that the file was read as."""
    cost_range: tuple[float, float] | None = None
    """The declared range of the column, where there was one."""
    by: str | None = None
    """The column that names the task (or robot) of each episode, where one was asked for."""
    tasks: tuple[str, ...] = ()
    """The task of each episode; empty unless asked for."""
    detail: str = ""
    """What else is worth knowing about what was read."""
    blocks_of: str | None = None
    """The column of tasks (or robots) that are taken together although they come one after the other."""
    warnings: tuple[str, ...] = ()
    """What may make the guarantees wrong, one sentence each."""
    episode: str | None = None
    """The column that said which episode a row is a step of, where rows were not episodes."""
    reduce: Reduction | None = None
    """How the steps of an episode became one value, where rows were not episodes."""

    def by_task(self) -> Mapping[str, NDArray[np.float64]]:
        """Return the costs of each task, in the order in which the tasks appear.

        Examples
        --------
        >>> read = Episodes(np.array([0.1, 0.2, 0.3]), False, "x", "cost", "cost", tasks=("a", "b", "a"))
        >>> read.by_task()
        {'a': array([0.1, 0.3]), 'b': array([0.2])}
        """
        tasks = np.array(self.tasks)
        return {task: self.costs[tasks == task] for task in dict.fromkeys(self.tasks)}


def read_costs(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    cost_range: tuple[float, float] | None = None,
    binary: bool = False,
    file_format: str | None = None,
    by: str | None = None,
    episode: str | None = None,
    reduce: str | None = None,
    evaluation: int | None = None,
) -> Episodes:
    r"""Read one cost per episode from a file.

    Parameters
    ----------
    path : path
        A CSV file (with or without header; commas, semicolons or tabs), JSON lines (numbers or objects),
        NPY (no pickle) or Parquet (extra ``io``); lerobot-eval's ``eval_info.json`` or the folder of a
        LeRobotDataset v3 (extra ``io``); Stable-Baselines3's ``*.monitor.csv`` or ``evaluations.npz``; MCAP
        (extra ``mcap``). Files may be gzipped; ``-`` is standard input.
    column : str, optional
        The column to read. Left out: the success of a log, or its reward if it has none; elsewhere the only
        one named ``cost``, ``success`` or ``reward``, or the only one if it has no name. Columns without
        names are numbered from 1; those of MCAP are ``/topic.field``. The words of a name say what it
        holds: ``is_success`` a success (true, false, 0 or 1; cost = 1 - success, binary), ``episode_reward``
        (or ``return``) a reward, anything else a cost; names like ``score`` or ``success_rate``, of which
        more may be better, are refused.
    cost_range : (low, high), optional
        The range that a cost or a reward can have, rescaled to [0, 1]; a reward needs it: cost =
        (high - reward) / (high - low). It must be known before the data: one read off the data is no bound.
    binary : bool
        Promise that every cost is 0 or 1.
    file_format : str, optional
        One of `Format`; left out, it is recognised by content.
    by : str, optional
        The column that names the task (or robot) of each episode.
    episode : str, optional
        The column that says which episode a row is a step of, where one row is not one episode.
    reduce : str, optional
        How the values of an episode's steps become one: ``any``, ``sum``, ``mean``, ``max`` or ``last``; left
        out, ``any`` for successes, ``sum`` for rewards; costs need it.
    evaluation : int, optional
        Which evaluation of ``evaluations.npz``, counted from 1; left out, the last.

    Raises
    ------
    InvalidCost
        For a value that cannot be a cost (the message has file, place, value and remedy), or a file that is
        empty, damaged or in no known format.
    InvalidSetting
        For a path, column or range that does not fit.
    MissingExtra
        For Parquet without pyarrow, or MCAP without mcap.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> log = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = log.write_text("episode,success\n1,true\n2,false\n3,true\n")
    >>> read = read_costs(log)
    >>> read.costs, read.binary, read.column
    (array([0., 1., 0.]), True, 'success')
    """
    ends = check_range(cost_range)
    source = "standard input" if path == "-" else str(path)
    found, table = open_table(None if path == "-" else Path(path), source, file_format, column, evaluation)
    if found == "mcap":  # the reader took the topic off the column
        column = table.preferred
    if (episode := episode or table.episode) is not None:
        table = to_episodes(table, episode, reduce, source)
    elif reduce is not None:
        raise InvalidSetting(
            f"{source}: reduce needs episode, the column that tells episodes apart (--episode)"
        )
    name = table.choose(column, source)
    meaning = table.meaning(name, source)
    costs = to_costs(table, name, meaning, cost_range, binary=binary, source=source)
    tasks = () if by is None else tuple(task_names(table, by, source))
    pooled = _pooled(table, source) if by is None else {}
    repeated = () if episode is not None else repeated_episodes(table, by or pooled.get("column"), source)
    return Episodes(
        costs=costs,
        binary=binary or meaning == "success",
        source=source,
        column=name if table.named or len(table.names) > 1 else None,
        meaning=meaning,
        file_format=found,
        cost_range=None if cost_range is None else ends,
        by=by,
        tasks=tasks,
        detail=table.detail,
        blocks_of=pooled.get("blocks_of"),
        warnings=(*table.warnings, *pooled.get("warnings", ()), *repeated),
        episode=episode,
        reduce=None if episode is None else reduction(reduce, meaning),
    )


def _pooled(table: Table, source: str) -> dict[str, Any]:
    """Warn when episodes of several tasks are about to be taken for draws from one distribution."""
    column = table.task or next((name for name in table.names if name.lower() in ("task", "robot")), None)
    if column is None:
        return {}
    try:
        tasks = task_names(table, column, source)
    except InvalidCost:  # it only looked like names of tasks
        return {}
    different = len(set(tasks))
    if different < 2:
        return {}
    blocks = sum(task != last for last, task in pairwise(tasks)) == different - 1 and len(tasks) > different
    warning = (
        f"{source}: {different} different values of {column}{' in a row' if blocks else ''} are taken for "
        f"one mixture; certify and check keep them apart with --by {column}"
    )
    return {"column": column, "blocks_of": column if blocks else None, "warnings": (warning,)}
