"""Predicted costs, one per scene: numbers in [0, 1], with none of the choices that costs of trials leave."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from boundwatch._support.text import shown
from boundwatch.episodes.damage import refuses_damage
from boundwatch.episodes.numbers import read_numbers
from boundwatch.episodes.opening import open_table
from boundwatch.episodes.table import Wanted
from boundwatch.episodes.words import sense
from boundwatch.errors import InvalidCost, InvalidSetting


@refuses_damage
def read_predictions(path: str, column: str) -> NDArray[np.float64]:
    r"""Read the predicted costs in a column of a file, in any format that `read_costs` reads.

    Parameters
    ----------
    path
        The file, one row per scene; ``-`` is standard input.
    column
        The column, higher where the policy is expected to do worse.

    Raises
    ------
    InvalidCost
        For a value that is not a number in [0, 1].
    InvalidSetting
        For a column that is not there, or that promises something good.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> scenes = pathlib.Path(tempfile.mkdtemp()) / "scenes.csv"
    >>> _ = scenes.write_text("scene,critic\nmug,0.25\nbowl,0.5\n")
    >>> read_predictions(str(scenes), "critic")
    array([0.25, 0.5 ])
    """
    source = "standard input" if path == "-" else path
    wanted = Wanted(column, "cost")
    found, table = open_table(None if path == "-" else Path(path), source, None, wanted, None, None)
    name = table.find((found == "mcap" and table.preferred) or column, source, "predicted")
    if table.episode is not None:
        raise InvalidSetting(f"{source}: its rows are steps of episodes; give one row per scene")
    if table.named and sense(name) == "good":
        raise InvalidSetting(
            f"{source}: column {name!r} sounds like something good, but a predicted cost is higher where the "
            "policy does worse; give such a column, or rename it if its name misleads (--predicted NAME)"
        )
    raw = table.values(name)
    if not raw:
        raise InvalidCost(f"{source}: holds no scenes; at least one row is needed")

    def refuse(row: int, fault: str) -> NoReturn:
        raise InvalidCost(f"{source}: {table.locate(row, name)} = {shown(raw[row])} {fault}")

    numbers, percent = read_numbers(raw, refuse, commas_elsewhere=table.commas)
    outside = ~((numbers >= 0) & (numbers <= 1))
    if percent:
        refuse(0, "is a percentage; give predicted costs as numbers in [0, 1]")
    if outside.any():
        refuse(int(outside.argmax()), "is not in [0, 1]; give predicted costs that are")
    return numbers
