"""The files of Stable-Baselines3: ``*.monitor.csv`` of `Monitor`, ``evaluations.npz`` of `EvalCallback`."""

from __future__ import annotations

import dataclasses
import io
import json
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.episodes.formats import read_csv
from boundwatch.episodes.table import Meaning, Table
from boundwatch.errors import InvalidCost, InvalidSetting

_MONITOR = ("r", "l", "t")
_MONITOR_MEANS: dict[str, Meaning] = {"r": "reward", "is_success": "success"}
_EVALUATIONS = ("results", "ep_lengths", "successes")
_EVALUATIONS_MEAN: dict[str, Meaning] = {"results": "reward", "successes": "success"}


def looks_like_monitor(text: str) -> bool:
    """Return whether a text begins like the CSV of a `Monitor`.

    Examples
    --------
    >>> looks_like_monitor('#{"t_start": 0}'), looks_like_monitor("r,l,t")
    (True, False)
    """
    return text.startswith("#{")


def read_monitor(text: str, source: str) -> Table:
    r"""Read the episodes that `Monitor` wrote: r (return), l (length), t (time), and what else it kept.

    Examples
    --------
    >>> read_monitor('#{"t_start": 0, "env_id": "Pendulum-v1"}\nr,l,t\n-130.5,200,0.3\n', "x").values("r")
    ['-130.5']
    """
    first, _, rest = text.partition("\n")
    try:
        header = json.loads(first.removeprefix("#"))
    except (ValueError, RecursionError) as error:
        raise InvalidCost(
            f"{source}: line 1 is not the '#{{...}}' of a Monitor; give a file that Monitor wrote, unchanged"
        ) from error
    if not rest.strip():
        raise InvalidCost(f"{source}: holds no episodes, only the first line of a Monitor; let one finish")
    table = read_csv(rest, source, ("r",), first_line=2)
    if missing := [name for name in _MONITOR if name not in table.names]:
        raise InvalidCost(
            f"{source}: line 2 has no column {missing[0]!r}; a Monitor's columns begin with r, l, t"
        )
    name = header.get("env_id") if isinstance(header, dict) else None
    return dataclasses.replace(
        table,
        meanings=_MONITOR_MEANS,
        preferred="is_success" if "is_success" in table.names else "r",
        detail=f"environment {name}" if isinstance(name, str) and name not in ("", "None") else "",
    )


def looks_like_evaluations(data: bytes) -> bool:
    r"""Return whether a ZIP archive has the arrays of `EvalCallback`; a damaged one counts, too.

    Examples
    --------
    >>> looks_like_evaluations(b"PK\x03\x04 and then no more")
    False
    """
    # The names are in the headers of the archive's members, which a file that was cut short still has.
    return b"timesteps.npy" in data or b"results.npy" in data


def read_evaluations(data: bytes, source: str, evaluation: int | None) -> Table:
    """Read one evaluation that `EvalCallback` made: results (returns), ep_lengths and maybe successes.

    Parameters
    ----------
    data
        The content of ``evaluations.npz``.
    source
        The file, for errors.
    evaluation
        Which one, counted from 1, or from the end with -1; left out, the last.
    """
    arrays = _load(data, source)
    for name in ("timesteps", "results"):
        if name not in arrays:
            raise InvalidCost(f"{source}: has no array {name!r}; give the evaluations.npz of an EvalCallback")
    count = len(arrays["timesteps"]) if arrays["timesteps"].ndim == 1 else -1
    for name in _EVALUATIONS:
        if name in arrays and (
            arrays[name].shape != arrays["results"].shape or arrays[name].shape[:1] != (count,)
        ):
            raise InvalidCost(
                f"{source}: {name} has shape {arrays[name].shape}, results {arrays['results'].shape} and "
                f"timesteps {arrays['timesteps'].shape}; they must be (evaluations, episodes) and "
                "(evaluations,), so fetch or write the file again"
            )
    row = _choose(evaluation, count, source)
    columns = {name: arrays[name][row].tolist() for name in _EVALUATIONS if name in arrays}
    return Table(
        list(columns),
        True,
        columns.__getitem__,
        place=lambda episode, name: f"{name}[{row}, {episode}]",
        preferred="successes" if "successes" in columns else "results",
        meanings=_EVALUATIONS_MEAN,
        detail=f"evaluation {row + 1} of {count}, after {arrays['timesteps'][row]} steps",
    )


def _load(data: bytes, source: str) -> dict[str, NDArray[Any]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, SyntaxError) as error:
        if "allow_pickle" in str(error):
            raise InvalidCost(
                f"{source}: holds Python objects (evaluations of different lengths?); "
                "save plain numeric arrays of one shape"
            ) from error
        raise _damaged(source) from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, AttributeError) as error:
        raise _damaged(source) from error


def _damaged(source: str) -> InvalidCost:
    return InvalidCost(f"{source}: the NPZ data is damaged or cut short; fetch or write it again")


def _choose(evaluation: int | None, count: int, source: str) -> int:
    if count == 0:
        raise InvalidCost(f"{source}: holds no evaluation; at least one is needed")
    row = -1 if evaluation is None else evaluation - 1 if evaluation > 0 else evaluation
    if evaluation == 0 or not -count <= row < count:
        raise InvalidSetting(
            f"{source}: evaluation = {evaluation} is not among its {count}; choose 1 to {count}, "
            "or -1 for the last"
        )
    return row % count
