"""Cost files in: CSV, JSON lines, NPY and Parquet, from a path or from standard input, gzipped or not.

`formats` turns bytes into a `Table`, one function a format; `table` turns a column of it into costs.
"""

from __future__ import annotations

import gzip
import os
import sys
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundwatch import files
from boundwatch.episodes import formats
from boundwatch.episodes.table import Meaning, check_range, to_costs
from boundwatch.errors import InvalidCost, InvalidSetting

__all__ = ["Episodes", "read_costs"]

_GZIP_MAGIC = b"\x1f\x8b"


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


def read_costs(
    path: str | os.PathLike[str],
    *,
    column: str | None = None,
    cost_range: tuple[float, float] | None = None,
    binary: bool = False,
) -> Episodes:
    r"""Read one cost per episode from a file.

    Parameters
    ----------
    path : path
        A CSV file (with or without header; commas, semicolons or tabs), JSON lines (numbers or objects),
        NPY (no pickle) or Parquet (extra ``io``), gzipped or not; ``-`` is standard input. The format is
        recognised by content.
    column : str, optional
        The column to read; needed unless exactly one is named ``cost``, ``success`` or ``reward``, or there
        is only one and it has no name. Columns without names are numbered from 1. The last word of a name
        says what it holds: ``is_success`` a success (true, false, 0 or 1; cost = 1 - success, binary),
        ``episode_reward`` (or ``return``) a reward, anything else a cost.
    cost_range : (low, high), optional
        The range that a cost or a reward can have, rescaled to [0, 1]; a reward needs it: cost =
        (high - reward) / (high - low). It must be known before the data: one read off the data is no bound.
    binary : bool
        Promise that every cost is 0 or 1.

    Raises
    ------
    InvalidCost
        For a value that cannot be a cost (the message has file, row, column, value and remedy), or a file
        that is empty, damaged or in no known format.
    InvalidSetting
        For a path, column or range that does not fit.
    MissingExtra
        For Parquet without pyarrow.

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
    data = _read_standard_input() if path == "-" else files.read_bytes(path)
    if data.startswith(_GZIP_MAGIC):
        data = _decompress(data, source)
    table = formats.read(data, source)
    name, meaning = table.choose(column, source)
    if meaning == "reward" and cost_range is None:
        raise InvalidSetting(
            f"{source}: column {name!r} holds rewards; pass their least and greatest value as "
            "cost_range=(low, high) (--cost-range LOW HIGH)"
        )
    if meaning == "success" and cost_range is not None:
        raise InvalidSetting(
            f"{source}: column {name!r} holds successes, not numbers in a range; "
            "leave out cost_range (--cost-range)"
        )
    costs = to_costs(table, name, meaning, ends, binary=binary, source=source)
    column = name if table.named or len(table.names) > 1 else None
    return Episodes(costs, binary or meaning == "success", source, column, meaning)


def _read_standard_input() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except (OSError, AttributeError) as error:  # a folder, or closed
        raise InvalidSetting("standard input: cannot be read; pipe or redirect a file into it") from error


def _decompress(data: bytes, source: str) -> bytes:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidCost(
            f"{source}: the gzip data is damaged or cut short; fetch or compress it again"
        ) from error
