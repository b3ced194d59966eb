"""boundwatch scenes: a notice about inputs; never a verdict."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from boundwatch.cli import output as out
from boundwatch.cli.root import command
from boundwatch.errors import Argument, Refusal
from boundwatch.readers import read_costs


@command(example="boundwatch scenes lab.csv site.csv --predicted predicted")
def scenes(
    lab: str, new: str, *, predicted: str = "predicted", alpha: float = 0.05, as_json: bool = False
) -> None:
    """Say whether new scenes look harder, easier or different to a predictor; this is not a verdict.

    No trial is needed. You may look again whenever there are more scenes. Whether the policy does worse is
    for `check` and `watch` to say: it can cope where scenes look different, or fail where they look alike.

    Options
    -------
    lab LAB: Predictions on scenes of the certified world. One row per scene, in any form that `check` reads;
        the order is that of observation.
    new NEW: Predictions on new scenes, run or not.
    predicted COL: Column of predicted costs, in [0, 1].
    alpha P: Probability of a notice, ever, if all scenes come from one world.
    """
    from boundwatch.prediction.scenes import SceneWatch

    reference, found = (_read(path, predicted) for path in (lab, new))
    notice = SceneWatch(reference, alpha=alpha).update(found)
    if as_json:
        out.print_json(dataclasses.asdict(notice) | {"alpha": alpha, "verdict": None, "text": notice.text})
    else:
        print(notice.text)


def _read(path: str, column: str) -> NDArray[np.float64]:
    """Read predictions as costs; refusals name the option that this command has."""
    try:
        return read_costs(path, cost=column).costs
    except Refusal as error:
        if any(isinstance(part, Argument) for part in error.remedy):
            error.remedy = ("give a column of numbers in [0, 1] with ", Argument("predicted"))
        raise
