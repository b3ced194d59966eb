"""LeRobot: the ``eval_info.json`` of lerobot-eval. Its datasets are in `lerobot_dataset`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from boundwatch._support.text import shown
from boundwatch.episodes.table import Table
from boundwatch.errors import InvalidCost

# The name of a list in metrics, and what the same thing is called in per_episode.
_METRICS = {
    "successes": "success",
    "sum_rewards": "sum_reward",
    "max_rewards": "max_reward",
    "safety_costs": "safety_cost",
    "violation_steps": "violation_steps",
}
_WRITER = "give the eval_info.json that lerobot-eval wrote"


def looks_like_evaluation(text: str) -> bool:
    """Return whether a text is an ``eval_info.json``, possibly a damaged one.

    Examples
    --------
    >>> looks_like_evaluation('{"per_task": [{"task_group": "pusht", ')
    True
    >>> looks_like_evaluation('{"cost": 0.1}')
    False
    """
    tight = "".join(text[:100_000].split())
    return tight.startswith("{") and ('"per_task":[' in tight or '"per_episode":[' in tight)


def read_evaluation(text: str, source: str) -> Table:
    """Read the episodes of an evaluation, task by task or, in older files, of a single one.

    The columns are success, sum_reward and max_reward; task (group/id), task_group and task_id
    (``per_task``), or seed (``per_episode``). NaN is read as JSON's writers in Python write it.

    Examples
    --------
    >>> task = {"task_group": "pusht", "task_id": 0, "metrics": {"successes": [True, False]}}
    >>> table = read_evaluation(json.dumps({"per_task": [task]}), "eval_info.json")
    >>> table.values("success"), table.values("task")
    ([True, False], ['pusht/0', 'pusht/0'])
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = f"line {error.lineno} " if isinstance(error, json.JSONDecodeError) else ""
        raise InvalidCost(
            f"{source}: {line}is not valid JSON; the evaluation was cut short or altered: fetch it again"
        ) from error
    if not isinstance(content, dict) or not ("per_task" in content or "per_episode" in content):
        raise InvalidCost(f"{source}: has neither 'per_task' nor 'per_episode'; {_WRITER}")
    key = "per_task" if "per_task" in content else "per_episode"
    entries = content[key]
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InvalidCost(f"{source}: {key} = {shown(entries)} is not a list of objects; {_WRITER}")
    if not entries:
        raise InvalidCost(f"{source}: {key} is empty; at least one episode is needed")
    return _from_tasks(entries, source) if key == "per_task" else _from_episodes(entries, source)


def _from_tasks(entries: list[dict[str, Any]], source: str) -> Table:
    lists = [_metrics(entry, f"per_task[{index}]", source) for index, entry in enumerate(entries)]
    lengths = [len(next(iter(columns.values()))) for columns in lists]
    tasks = [f"{entry['task_group']}/{entry['task_id']}" for entry in entries]
    if repeated := [name for name, times in Counter(tasks).items() if times > 1]:
        raise InvalidCost(f"{source}: per_task has {repeated[0]!r} more than once; keep one entry per task")
    spread = {
        "task": tasks,
        "task_group": [entry["task_group"] for entry in entries],
        "task_id": [entry["task_id"] for entry in entries],
    }
    positions = [(task, episode) for task, length in enumerate(lengths) for episode in range(length)]
    plural = {singular: name for name, singular in _METRICS.items()}

    def values(column: str) -> list[Any]:
        if column in spread:
            return [spread[column][task] for task, _ in positions]
        for index, columns in enumerate(lists):
            if plural[column] not in columns:
                raise InvalidCost(
                    f"{source}: per_task[{index}].metrics has no {plural[column]!r}; every task needs it"
                )
        return [value for columns in lists for value in columns[plural[column]]]

    def place(row: int, column: str) -> str:
        task, episode = positions[row]
        return f"per_task[{task}].metrics.{plural.get(column, column)}[{episode}]"

    names = [_METRICS[name] for name in _METRICS if any(name in columns for columns in lists)]
    return Table(
        [*names, *spread],
        True,
        values,
        place=place,
        preferred="success" if "success" in names else None,
        meanings={"success": "success", "sum_reward": "reward", "max_reward": "reward"},
        task="task",
        warnings=_no_success(values("success")) if "success" in names else (),
    )


def _metrics(entry: dict[str, Any], place: str, source: str) -> dict[str, list[Any]]:
    """Return the lists of one task, which must be of one length and agree with the counts beside them."""
    for name, kinds in {"task_group": str, "task_id": int | str, "metrics": dict}.items():
        if name not in entry:
            raise InvalidCost(f"{source}: {place} has no {name!r}; {_WRITER}")
        if not isinstance(entry[name], kinds) or isinstance(entry[name], bool):
            raise InvalidCost(
                f"{source}: {place}.{name} = {shown(entry[name])} is of the wrong type; {_WRITER}"
            )
    columns = {name: entry["metrics"][name] for name in _METRICS if name in entry["metrics"]}
    if not columns:
        raise InvalidCost(f"{source}: {place}.metrics has neither 'successes' nor 'sum_rewards'; {_WRITER}")
    first, length = next(iter(columns)), None
    for name, values in columns.items():
        if not isinstance(values, list):
            raise InvalidCost(
                f"{source}: {place}.metrics.{name} = {shown(values)} is not a list, one value per episode; "
                f"{_WRITER}"
            )
        if not values:
            raise InvalidCost(
                f"{source}: {place}.metrics.{name} is empty; every task needs at least one episode"
            )
        length = length or len(values)
        if len(values) != length:
            raise InvalidCost(
                f"{source}: {place}.metrics.{name} has {len(values)} values, {first} has {length}; "
                "they must be the same episodes, so fetch the file again"
            )
    counts = {"n_episodes": length}
    if "successes" in columns:
        counts["n_success"] = sum(value is True or value == 1 for value in columns["successes"])
    for name, counted in counts.items():
        if name in entry and entry[name] != counted:
            raise InvalidCost(
                f"{source}: {place}.{name} = {shown(entry[name])}, but its metrics hold {counted}; "
                "the file was altered: fetch it again"
            )
    return columns


def _from_episodes(entries: list[dict[str, Any]], source: str) -> Table:
    for index, entry in enumerate(entries):
        if missing := [name for name in entries[0] if name not in entry]:
            raise InvalidCost(
                f"{source}: per_episode[{index}] has no {missing[0]!r}, unlike per_episode[0]; {_WRITER}"
            )
    names = list(entries[0])
    if not {"success", "sum_reward"} & set(names):
        raise InvalidCost(f"{source}: per_episode[0] has neither 'success' nor 'sum_reward'; {_WRITER}")
    warnings = _shared_seeds([entry["seed"] for entry in entries]) if "seed" in names else ()
    if "success" in names:
        warnings += _no_success([entry["success"] for entry in entries])
    return Table(
        names,
        True,
        lambda column: [entry[column] for entry in entries],
        place=lambda row, column: f"per_episode[{row}].{column}",
        preferred="success" if "success" in names else None,
        meanings={"success": "success", "sum_reward": "reward", "max_reward": "reward"},
        warnings=warnings,
    )


def _shared_seeds(seeds: list[Any]) -> tuple[str, ...]:
    known = [seed for seed in seeds if isinstance(seed, int)]
    different = len(set(known))
    if different == len(known):
        return ()
    return (
        f"{len(known)} episodes have only {different} different seed{'s' if different > 1 else ''}; "
        "episodes that start alike are not independent, and no error rate holds for them",
    )


def _no_success(successes: list[Any]) -> tuple[str, ...]:
    if any(success not in (False, 0) for success in successes):
        return ()
    return (
        "no episode succeeded; lerobot-eval also writes false if the environment reports no success: "
        "then use --reward sum_reward or --reward max_reward with --cost-range",
    )
