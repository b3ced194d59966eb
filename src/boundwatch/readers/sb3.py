"""The files of Stable-Baselines3: ``*.monitor.csv`` of `Monitor`, ``evaluations.npz`` of `EvalCallback`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from typing import IO, Any

from numpy.typing import NDArray

from boundwatch.episodes.declared import Declared, Said
from boundwatch.episodes.measure import Kind
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers import npy
from boundwatch.readers.table import Table, damaged, of_log

_ARRAYS = ("results", "ep_lengths", "successes")


def is_monitor(line: str) -> bool:
    """Return whether a first line is that of a `Monitor`."""
    if not line.startswith("#{"):
        return False
    try:
        return isinstance(json.loads(line.removeprefix("#")), dict)
    except (ValueError, RecursionError):
        return False


def monitored(names: Sequence[str], source: str) -> Said:
    """Return what a `Monitor` measures by itself; refuse columns that it does not write."""
    if missing := [name for name in ("r", "l", "t") if name not in names]:
        problem = f"has no column {missing[0]!r}, and a Monitor's columns begin with r, l, t"
        remedy = "give a file that Monitor wrote, unchanged"
        raise InvalidCost(problem, where=Place(source, "line", 2), remedy=remedy)
    return ("success", "is_success") if "is_success" in names else ("reward", "r")


def read_evaluations(file: IO[bytes], source: str, declared: Declared, evaluation: int | None) -> Table:
    """Read one evaluation that `EvalCallback` made: results (returns), ep_lengths and maybe successes."""
    arrays = _load(file, source)
    shapes = {name: array.shape for name, array in arrays.items()}
    if not {"timesteps", "results"} <= set(arrays):
        problem = f"has the arrays {', '.join(arrays) or 'none'}, not timesteps and results"
        remedy = "give the evaluations.npz of an EvalCallback"
        raise InvalidCost(problem, where=Place(source), remedy=remedy)
    count = shapes["timesteps"][0] if len(shapes["timesteps"]) == 1 else -1
    expected = (count, *shapes["results"][1:2])
    if wrong := [name for name in _ARRAYS if name in arrays and shapes[name] != expected]:
        problem = f"{wrong[0]} has shape {shapes[wrong[0]]}, and there are {count} evaluations"
        raise InvalidCost(problem, where=Place(source), remedy="fetch or write the file again")
    row = _choose(evaluation, count, source)
    columns = {name: arrays[name][row] for name in _ARRAYS if name in arrays}
    says: dict[str, Kind] = {"successes": "success", "results": "reward"}
    table = of_log(source, "sb3-evaluations", columns, declared, says)
    table.notes.append(f"evaluation {row + 1} of {count}, after {arrays['timesteps'][row]} steps")
    return table


def _load(file: IO[bytes], source: str) -> dict[str, NDArray[Any]]:
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name not in (*_ARRAYS, "timesteps"):
                continue
            with archive.open(member) as content:
                arrays[name] = npy.load(content, source, member.file_size)
            if arrays[name].dtype.kind not in "biuf":
                raise damaged(source, "NPZ")
    return arrays


def _choose(evaluation: int | None, count: int, source: str) -> int:
    row = -1 if evaluation is None else evaluation - 1 if evaluation > 0 else evaluation
    if count < 1:
        raise InvalidCost("holds no evaluation", where=Place(source), remedy="at least one is needed")
    if evaluation == 0 or not -count <= row < count:
        problem, remedy = f"is not among the {count} evaluations", f"choose 1 to {count}, or -1 for the last"
        raise InvalidSetting(problem, where=Place(source), name="evaluation", value=evaluation, remedy=remedy)
    return row % count
