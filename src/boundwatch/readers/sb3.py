"""The files of Stable-Baselines3: ``*.monitor.csv`` of `Monitor`, ``evaluations.npz`` of `EvalCallback`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from typing import IO

import numpy as np

from boundwatch.episodes.declared import Declared, Said
from boundwatch.episodes.measure import Kind
from boundwatch.errors import InvalidCost, Place
from boundwatch.readers import npy
from boundwatch.readers.table import Table, damaged, of_log

_ARRAYS: dict[str, Kind | None] = {"successes": "success", "results": "reward", "ep_lengths": None}


def is_monitor(line: str) -> bool:
    """Return whether a first line is that of a `Monitor`."""
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


def read_evaluations(file: IO[bytes], source: str, declared: Declared) -> Table:
    """Read what `EvalCallback` evaluated: results (returns), ep_lengths and maybe successes.

    The column ``evaluation`` counts from 1; if there are several, one of them must be chosen.
    """
    arrays = {}
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in (*_ARRAYS, "timesteps"):
                with archive.open(member) as content:
                    arrays[name] = npy.load(content, source, member.file_size)
    count, episodes = arrays["results"].shape
    for name, array in arrays.items():
        fits = array.shape == ((count,) if name == "timesteps" else (count, episodes))
        if not fits or array.dtype.kind not in "biuf":
            raise damaged(source, "NPZ")
    columns = {name: arrays[name].ravel() for name in _ARRAYS if name in arrays}
    columns["evaluation"] = np.repeat(np.arange(1, count + 1), episodes)
    says = {name: kind for name, kind in _ARRAYS.items() if kind is not None}
    return of_log(source, "sb3-evaluations", columns, declared, says=says, one_of="evaluation")
