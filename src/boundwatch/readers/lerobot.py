"""LeRobot: the ``eval_info.json`` of lerobot-eval, and the folder of a LeRobotDataset v3 (extra ``io``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from boundwatch._support.files import read_bytes
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Kind
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers import parquet
from boundwatch.readers.block import Block, Table, columnar, first_of, wanted
from boundwatch.readers.json_rows import document

INFO = Path("meta", "info.json")
"""The file by which a folder is known to be a dataset."""

_TASKS = Path("meta", "tasks.parquet")
_FETCH = "fetch the whole dataset again"
_WRITER = "give the eval_info.json that lerobot-eval wrote"
_OUTCOMES: dict[str, Kind] = {"success": "success", "sum_reward": "reward", "max_reward": "reward"}
# The name of a list in metrics, and what the same thing is called in per_episode.
_METRICS = {
    "successes": "success",
    "sum_rewards": "sum_reward",
    "max_rewards": "max_reward",
    "safety_costs": "safety_cost",
    "violation_steps": "violation_steps",
}


def read_evaluation(data: bytes, source: str, declared: Declared) -> Table:
    """Read the episodes of an evaluation, task by task or, in older files, of a single one.

    The columns are success, sum_reward and max_reward; task (group/id), task_group and task_id
    (``per_task``), or seed (``per_episode``).
    """
    content = document(data, source)
    key = "per_task" if isinstance(content, dict) and "per_task" in content else "per_episode"
    entries = content.get(key) if isinstance(content, dict) else None
    if not isinstance(entries, list) or not entries or not all(isinstance(e, dict) for e in entries):
        raise InvalidCost(f"{key} is no list of objects", where=Place(source), remedy=_WRITER)
    columns = _tasks(entries, source) if key == "per_task" else _episodes(entries, source)
    table = columnar(source, "lerobot-eval", columns, declared, _OUTCOMES)
    table.strata = "task" if "task" in columns else None
    table.warnings += _suspicions(columns)
    tasks = len(set(columns.get("task", ())))
    if tasks > 1 and declared.design.by is None and declared.design.strata is None:
        mixed = "tasks, one after the other, are taken for one mixture; keep them apart with by='task'"
        table.warnings.append(f"{tasks} {mixed}")
    return table


def _tasks(entries: list[dict[str, Any]], source: str) -> dict[str, list[Any]]:
    lists = [_metrics(entry, Place(f"{source}: per_task[{n}]")) for n, entry in enumerate(entries)]
    shared = [name for name in lists[0] if all(name in each for each in lists)]
    tasks = [f"{entry['task_group']}/{entry['task_id']}" for entry in entries]
    if repeated := [name for name, times in Counter(tasks).items() if times > 1]:
        problem, remedy = f"per_task has {repeated[0]!r} more than once", "keep one entry per task"
        raise InvalidCost(problem, where=Place(source), remedy=remedy)
    columns = {_METRICS[name]: [value for each in lists for value in each[name]] for name in shared}
    places = [n for n, each in enumerate(lists) for _ in next(iter(each.values()))]
    for name in ("task_group", "task_id"):
        columns[name] = [entries[n][name] for n in places]
    return columns | {"task": [tasks[n] for n in places]}


def _metrics(entry: dict[str, Any], where: Place) -> dict[str, list[Any]]:
    """Return the lists of one task, which must be of one length and agree with the counts beside them."""
    for name, kinds in {"task_group": str, "task_id": int | str, "metrics": dict}.items():
        if not isinstance(entry.get(name), kinds) or isinstance(entry[name], bool):
            problem, remedy = "is missing or of the wrong type", _WRITER
            raise InvalidCost(problem, where=where, name=name, value=entry.get(name), remedy=remedy)
    columns = {name: entry["metrics"][name] for name in _METRICS if name in entry["metrics"]}
    lengths = {len(values) if isinstance(values, list) else 0 for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise InvalidCost("metrics are not lists of one length", where=where, remedy=_WRITER)
    counts = {"n_episodes": lengths.pop()}
    if "successes" in columns:
        counts["n_success"] = sum(value is True or value == 1 for value in columns["successes"])
    for name, counted in counts.items():
        if name in entry and entry[name] != counted:
            problem, remedy = f"but its metrics hold {counted}", "the file was altered: fetch it again"
            raise InvalidCost(problem, where=where, name=name, value=entry[name], remedy=remedy)
    return columns


def _episodes(entries: list[dict[str, Any]], source: str) -> dict[str, list[Any]]:
    for number, entry in enumerate(entries, start=1):
        if missing := [name for name in entries[0] if name not in entry]:
            where = Place(source, "episode", number, missing[0])
            raise InvalidCost("is missing, unlike in the first one", where=where, remedy=_WRITER)
    return {name: [entry[name] for entry in entries] for name in entries[0]}


def _suspicions(columns: dict[str, list[Any]]) -> Iterator[str]:
    seeds = [seed for seed in columns.get("seed", []) if isinstance(seed, int)]
    if len(set(seeds)) < len(seeds):
        yield (
            f"{len(seeds)} episodes have only {len(set(seeds))} different seed(s); "
            "episodes that start alike are not independent, and no error rate holds for them"
        )
    if "success" in columns and all(success in (False, 0) for success in columns["success"]):
        yield (
            "no episode succeeded; lerobot-eval also writes false if the environment reports no success: "
            "then read reward=sum_reward or reward=max_reward with its cost_range"
        )


def read_dataset(folder: Path, declared: Declared) -> Table:
    """Read a dataset: one row per frame, ``episode_index`` says of which episode, ``task`` of which task.

    An episode succeeds if ``next.success`` is true in any of its frames, as in lerobot-eval; its return is
    the sum of ``next.reward``.
    """
    info, source = _info(folder), str(folder)
    paths = map(str, sorted(folder.glob("data/*/*.parquet")))
    files = {path: parquet.open_parquet(path, path) for path in paths}
    if not files:
        raise _incomplete(source, "has no data/chunk-*/file-*.parquet")
    names = tuple(dict.fromkeys(name for file in files.values() for name in file.schema_arrow.names))
    own = first_of(names, {"next.success": "success", "next.reward": "reward"})
    measure = declared.resolve((*names, "task"), own)
    columns = wanted((*names, "task"), declared, measure)
    frames = [n for n in dict.fromkeys([*columns, "episode_index", "task_index"]) if n != "task"]
    table = Table(source, "lerobot-dataset", (*names, "task"), measure, iter(()), episode="episode_index")
    table.strata = "task"

    def blocks() -> Iterator[Block]:
        number, episodes = 0, set[Any]()
        texts = _task_texts(folder) if "task" in columns else {}
        for path, file in files.items():
            _need(file, path, frames)
            for cells in parquet.parts(file, frames, path):
                rows = len(cells["episode_index"])
                episodes.update(np.unique(cells["episode_index"]).tolist())
                if texts:
                    cells["task"] = [texts.get(int(index), "") for index in cells["task_index"]]
                yield Block("frame", range(number, number + rows), cells)
                number += rows
        for name, counted in {"total_frames": number, "total_episodes": len(episodes)}.items():
            if info[name] != counted:
                problem = f"{name} is {info[name]}, but the data hold {counted}"
                raise _incomplete(str(folder / INFO), f"{problem}: missing episodes make guarantees wrong")
        table.notes.append(f"{number} frames")
        table.warnings += _same_start(files)

    table.blocks = blocks()
    return table


def _need(file: Any, path: str, columns: Iterable[str]) -> None:
    if missing := [name for name in columns if name not in file.schema_arrow.names]:
        raise _incomplete(path, f"has no column {missing[0]!r}")


def _incomplete(source: str, problem: str) -> InvalidCost:
    return InvalidCost(problem, where=Place(source), remedy=_FETCH)


def _info(folder: Path) -> dict[str, Any]:
    path = folder / INFO
    if not path.is_file():
        remedy = "give the root folder of a LeRobotDataset"
        raise InvalidSetting(f"has no {INFO}", where=Place(str(folder)), remedy=remedy)
    info = document(read_bytes(path), str(path))
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if not isinstance(version, str) or not version.startswith("v3."):
        where, remedy = Place(str(path)), "convert the dataset with lerobot's convert_dataset_v21_to_v30"
        problem, name = "is not read, only v3", "codebase_version"
        raise InvalidCost(problem, where=where, name=name, value=version, remedy=remedy)
    if wrong := [n for n in ("total_episodes", "total_frames") if type(info.get(n)) is not int]:
        raise _incomplete(str(path), f"{wrong[0]} is not a whole number")
    return dict(info)


def _task_texts(folder: Path) -> dict[int, str]:
    path = str(folder / _TASKS)
    if not Path(path).is_file():
        raise _incomplete(path, "is missing, so tasks have no names (task_index has their numbers)")
    file = parquet.open_parquet(path, path)
    # pandas wrote it with the text as its index, which has a name only in newer files.
    text = "task" if "task" in file.schema_arrow.names else "__index_level_0__"
    _need(file, path, ("task_index", text))
    texts: dict[int, str] = {}
    for cells in parquet.parts(file, ["task_index", text], path):
        texts |= {int(index): str(task) for index, task in zip(cells["task_index"], cells[text], strict=True)}
    return texts


def _same_start(files: dict[str, Any]) -> Iterator[str]:
    """Warn when all that was observed (images apart) at the start of each episode is the same."""
    starts: dict[Any, Any] = {}
    for path, file in files.items():
        fields = [field for field in file.schema_arrow if field.name.startswith("observation.")]
        observed = [field.name for field in fields if _numeric(field.type)]
        for cells in parquet.parts(file, ["episode_index", *observed], path) if observed else []:
            episodes, first = np.unique(cells["episode_index"], return_index=True)
            for episode, row in zip(episodes.tolist(), first.tolist(), strict=True):
                starts.setdefault(episode, [str(cells[name][row]) for name in observed])
    values = list(starts.values())
    if len(values) > 1 and all(value == values[0] for value in values[1:]):
        yield (
            f"all {len(values)} episodes start from the same recorded state (images apart); unless something "
            "else varied, they are not independent draws, and no error rate holds for other starts"
        )


def _numeric(kind: Any) -> bool:
    from pyarrow import types

    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))
