"""LeRobotDataset v3: a folder of Parquet files, one row per frame, read with pyarrow alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from boundwatch._support.files import read_bytes
from boundwatch._support.text import shown
from boundwatch.episodes.table import Table
from boundwatch.errors import InvalidCost, InvalidSetting, MissingExtra

INFO = Path("meta", "info.json")
"""The file by which a folder is known to be a dataset."""

_TASKS = Path("meta", "tasks.parquet")
_FETCH = "fetch the whole dataset again"


def read_dataset(folder: Path) -> Table:
    """Read a dataset: one row per frame, ``episode_index`` says of which episode, ``task`` of which task.

    An episode succeeds if ``next.success`` is true in any of its frames, as in lerobot-eval; its return is
    the sum of ``next.reward``.

    Parameters
    ----------
    folder
        The dataset's root, the folder that holds ``meta`` and ``data``.
    """
    source = str(folder)
    info = _info(folder)
    paths = sorted(folder.glob("data/*/*.parquet"))
    if not paths:
        raise InvalidCost(f"{source}: has no data/chunk-*/file-*.parquet; {_FETCH}")
    files = [_open(path) for path in paths]
    names = list(dict.fromkeys(name for file in files for name in file.schema_arrow.names))
    for name in ("episode_index", "task_index"):
        if name not in names:
            raise InvalidCost(f"{paths[0]}: has no column {name!r}; {_FETCH}")

    def values(column: str) -> list[Any]:
        if column == "task":
            return _task_texts(folder, values("task_index"))
        found: list[Any] = []
        for path, file in zip(paths, files, strict=True):
            if column not in file.schema_arrow.names:
                raise InvalidCost(f"{path}: has no column {column!r}, unlike the other files; {_FETCH}")
            found += _column(path, file, column)
        # A feature of shape (1,) is stored as a number, or by other writers as a list with one.
        return [value[0] if isinstance(value, list) and len(value) == 1 else value for value in found]

    episodes = values("episode_index")
    for name, counted in {"total_frames": len(episodes), "total_episodes": len(set(episodes))}.items():
        if info[name] != counted:
            raise InvalidCost(
                f"{folder / INFO}: {name} = {info[name]}, but the data hold {counted}; {_FETCH}, "
                "because missing episodes make every guarantee wrong"
            )
    outcomes = [name for name in ("next.success", "next.reward") if name in names]
    return Table(
        [*names, "task"],
        True,
        values,
        place=lambda row, column: f"frame {row}, column {column!r}",
        preferred=outcomes[0] if outcomes else None,
        meanings={"next.success": "success", "next.reward": "reward"},
        episode="episode_index",
        task="task",
        detail=f"{len(episodes)} frames",
        warnings=_same_start(paths, files),
    )


def _info(folder: Path) -> dict[str, Any]:
    path = folder / INFO
    if not path.is_file():
        raise InvalidSetting(f"{folder}: has no {INFO}; give the root folder of a LeRobotDataset")
    try:
        info = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InvalidCost(f"{path}: is not valid JSON, so cut short or altered; {_FETCH}") from error
    version = info.get("codebase_version") if isinstance(info, dict) else None
    if not isinstance(version, str):
        raise InvalidCost(f"{path}: has no text 'codebase_version'; {_FETCH}")
    if not version.startswith("v3."):
        raise InvalidCost(
            f"{path}: codebase_version = {version!r} is not read, only v3; convert the dataset with "
            "lerobot's convert_dataset_v21_to_v30"
        )
    for name in ("total_episodes", "total_frames"):
        if not isinstance(info.get(name), int) or isinstance(info[name], bool):
            raise InvalidCost(f"{path}: {name} = {shown(info.get(name))} is not a whole number; {_FETCH}")
    if info["total_episodes"] == 0:
        raise InvalidCost(f"{folder}: holds no episodes (total_episodes = 0); record at least one")
    return dict(info)


def _task_texts(folder: Path, indices: list[Any]) -> list[str]:
    path = folder / _TASKS
    if not path.is_file():
        raise InvalidCost(f"{path}: is missing, so tasks have no names; {_FETCH}, or use --by task_index")
    file = _open(path)
    # pandas wrote it with the text as its index, which has a name only in newer files.
    text = next((name for name in ("task", "__index_level_0__") if name in file.schema_arrow.names), None)
    if text is None or "task_index" not in file.schema_arrow.names:
        raise InvalidCost(f"{path}: lacks the columns task and task_index; {_FETCH}, or use --by task_index")
    texts = dict(zip(_column(path, file, "task_index"), _column(path, file, text), strict=True))
    if unknown := [index for index in indices if index not in texts]:
        raise InvalidCost(f"{path}: has no task_index {unknown[0]}, which the data use; {_FETCH}")
    return [texts[index] for index in indices]


def _same_start(paths: list[Path], files: list[Any]) -> tuple[str, ...]:
    """Warn when all that was observed (images apart) at the start of each episode is the same."""
    starts: dict[Any, Any] = {}
    for path, file in zip(paths, files, strict=True):
        schema = file.schema_arrow
        observed = [
            name for name in schema.names if name.startswith("observation.") and _numeric(schema, name)
        ]
        if not observed:
            return ()
        first: dict[Any, int] = {}
        for row, episode in enumerate(_column(path, file, "episode_index")):
            if episode not in starts:
                first.setdefault(episode, row)
        columns = [_column(path, file, name, list(first.values())) for name in observed]
        starts |= dict(zip(first, zip(*columns, strict=True), strict=True))
    values = list(starts.values())
    if len(values) < 2 or any(value != values[0] for value in values[1:]):
        return ()
    return (
        f"all {len(values)} episodes start from the same recorded state (images apart); unless something "
        "else varied, they are not independent draws, and no error rate holds for other starts",
    )


def _numeric(schema: Any, name: str) -> bool:
    from pyarrow import types

    kind = schema.field(name).type
    while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(types.is_floating(kind) or types.is_integer(kind))


def _open(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("reading a LeRobotDataset", "io") from error
    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidCost(f"{path}: the Parquet data is damaged or cut short; {_FETCH}") from error


def _column(path: Path, file: Any, name: str, rows: list[int] | None = None) -> list[Any]:
    """Return a column, or some of its rows."""
    import pyarrow

    try:
        column = file.read(columns=[name]).column(name)
        if len(column) != file.metadata.num_rows:  # pyarrow reads some damaged pages as shorter ones
            raise ValueError("rows are missing")
        taken = column if rows is None else column.take(pyarrow.array(rows, pyarrow.int64()))
        return list(taken.to_pylist())
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise InvalidCost(f"{path}: the Parquet data is damaged or cut short; {_FETCH}") from error
