"""LeRobot: the ``eval_info.json`` of lerobot-eval, and the folder of a LeRobotDataset v3 (extra ``io``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from boundwatch._support.files import read_bytes
from boundwatch.episodes.cells import Cells
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Kind
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers import parquet
from boundwatch.readers.table import Table, by_columns, of_log
from boundwatch.readers.text import document

_INFO = Path("meta", "info.json")  # by which a folder is known to be a dataset
_FETCH = "fetch the whole dataset again"
MIXED = "tasks, one after the other, are taken for one mixture; keep them apart with by='task'"
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
    content = document(data, Place(source))
    columns: dict[str, list[Any]] = {}
    if "per_task" in content:
        shared = set.intersection(*(set(_METRICS) & set(task["metrics"]) for task in content["per_task"]))
        columns |= {_METRICS[name]: [] for name in _METRICS if name in shared}
        columns |= {"task_group": [], "task_id": [], "task": []}
        for place, entry in enumerate(content["per_task"]):
            _add(entry, columns, Place(f"{source}: per_task[{place}]"))
    else:
        entries = content["per_episode"]
        columns = {name: [entry[name] for entry in entries] for name in entries[0]}
    table = of_log(source, "lerobot-eval", columns, declared, says=_OUTCOMES)
    table.strata = "task" if "task" in columns else None
    tasks = len(set(columns.get("task", ())))
    if tasks > 1 and declared.design.by is None and declared.design.strata is None:
        table.warnings.append(f"{tasks} {MIXED}")
    if "success" in columns and not any(columns["success"]):
        table.warnings.append("no episode succeeded; this is also written if no success is reported")
    return table


def _add(entry: dict[str, Any], columns: dict[str, list[Any]], where: Place) -> None:
    """Add the episodes of a task, whose lists must be of one length and agree with the counts beside them."""
    own = {name: entry[name] for name in ("task_group", "task_id")}
    own["task"] = f"{own['task_group']}/{own['task_id']}"
    lists = {each: entry["metrics"][name] for name, each in _METRICS.items() if name in entry["metrics"]}
    lengths = {len(values) if isinstance(values, list) else 0 for values in lists.values()}
    succeeded = sum(value is True or value == 1 for value in lists.get("success", ()))
    told = {entry.get("n_episodes", n) for n in lengths}, {entry.get("n_success", succeeded)}
    if own["task"] in columns["task"] or (lengths, {succeeded}) != told or len(lengths) != 1 or 0 in lengths:
        problem = f"task {own['task']!r} is there twice, or its lists and counts contradict each other"
        raise InvalidCost(problem, where=where, remedy="give the eval_info.json that lerobot-eval wrote")
    for name, cells in columns.items():
        cells += lists[name] if name in lists else [own[name]] * min(lengths)


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
    names = dict.fromkeys(name for file in files.values() for name in file.schema_arrow.names)

    def parts(wanted: list[str]) -> Iterator[dict[str, Cells]]:
        frames, episodes = 0, set[Any]()
        texts = _task_texts(folder) if "task" in wanted else {}
        columns = [each for each in dict.fromkeys([*wanted, "episode_index", "task_index"]) if each != "task"]
        for path, file in files.items():
            for cells in _cells(file, path, columns):
                if texts:
                    cells["task"] = [texts.get(int(index), "") for index in cells["task_index"]]
                yield cells
                frames += len(cells["episode_index"])
                episodes.update(np.unique(cells["episode_index"]).tolist())
        for name, counted in {"total_frames": frames, "total_episodes": len(episodes)}.items():
            if info[name] != counted:
                problem = f"{name} is {info[name]}, but the data hold {counted}"
                raise _incomplete(str(folder / _INFO), f"{problem}: missing episodes make guarantees wrong")
        table.notes.append(f"{frames} frames")

    says: dict[str, Kind] = {"next.success": "success", "next.reward": "reward"}
    columns = [*names, "task"]
    table = by_columns(source, "lerobot-dataset", columns, declared, parts, says=says, unit="frame")
    table.episode, table.strata = "episode_index", "task"
    return table


def _cells(file: Any, path: str, columns: list[str]) -> Iterator[dict[str, Cells]]:
    if missing := [name for name in columns if name not in file.schema_arrow.names]:
        raise _incomplete(path, f"has no column {missing[0]!r}")
    return parquet.parts(file, columns, path)


def _incomplete(source: str, problem: str) -> InvalidCost:
    return InvalidCost(problem, where=Place(source), remedy=_FETCH)


def _info(folder: Path) -> dict[str, Any]:
    path = folder / _INFO
    if not path.is_file():
        remedy = "give the root folder of a LeRobotDataset"
        raise InvalidSetting(f"has no {_INFO}", where=Place(str(folder)), remedy=remedy)
    info: dict[str, Any] = document(read_bytes(path), Place(str(path)))
    if not str(version := info.get("codebase_version")).startswith("v3."):
        where, remedy = Place(str(path)), "convert the dataset with lerobot's convert_dataset_v21_to_v30"
        problem, name = "is not read, only v3", "codebase_version"
        raise InvalidCost(problem, where=where, name=name, value=version, remedy=remedy)
    return info


def _task_texts(folder: Path) -> dict[int, str]:
    path = str(folder / "meta" / "tasks.parquet")
    if not Path(path).is_file():
        raise _incomplete(path, "is missing, so tasks have no names (task_index has their numbers)")
    file = parquet.open_parquet(path, path)
    # pandas wrote it with the text as its index, which has a name only in newer files.
    text = "task" if "task" in file.schema_arrow.names else "__index_level_0__"
    parts = _cells(file, path, ["task_index", text])
    both = (each for cells in parts for each in zip(cells["task_index"], cells[text], strict=True))
    return {int(index): str(task) for index, task in both}
