"""How far the result in wind hangs on the jet's place and width, neither of which is published.

The quick setting's policy; the same environments in every row.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import trained
from boundwatch.detectors import ConfidenceInterval
from boundwatch.tasks.navigation import TRAINING, Wind
from boundwatch.tasks.navigation.policy import Navigation
from boundwatch.tasks.navigation.train import QUICK, Draw, Run

SEED = 0
FLIGHTS = 1024
SPEEDS = (2.5, 5.0)
N = 10
LEVEL = 0.05
JETS = {
    "center 1 m": {"center": 1.0},
    "center 2 m": {"center": 2.0},
    "center 3 m, width 0.75 m (default)": {},
    "center 4 m": {"center": 4.0},
    "center 5.5 m": {"center": 5.5},
    "width 0.4 m": {"width": 0.4},
    "everywhere": {"width": math.inf},
}


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    return measure(trained.drone(replace(QUICK, seed=SEED)))


def measure(run: Run) -> dict[str, Any]:
    """Return mean costs and shares of alarms."""
    rows = {"calm": fly(run, None)}
    for jet, place in JETS.items():
        for speed in SPEEDS:
            rows[f"{jet}, {speed:g} m/s"] = fly(run, Wind(speed, **place))
    upper = run.certificate.upper
    return {"seed": SEED, "flights": FLIGHTS, "n": N, "level": LEVEL, "upper": upper, "rows": rows}


def fly(run: Run, wind: Wind | None) -> dict[str, float]:
    """Return what one wind costs, and in what share of the datasets the interval says ADVERSE."""
    task = Navigation(run.world, replace(TRAINING, name="jet", wind=wind), run.recipe.d_thresh)
    costs, _ = task.deploy(run.policy, FLIGHTS, seed=(run.recipe.seed, Draw.DEPLOYMENT, SEED))
    interval = ConfidenceInterval(run.certificate, false_positive_rate=LEVEL, false_negative_rate=LEVEL)
    verdicts = interval.decide_many(costs[: FLIGHTS // N * N].reshape(-1, N)).verdict
    return {"mean_cost": float(costs.mean()), "adverse": float(np.mean(verdicts == "adverse"))}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(
        f"certified at most {result['upper']:.4f}; mean cost, and ADVERSE in % of datasets of {result['n']}"
    )
    for name, row in result["rows"].items():
        print(f"  {name:44} {row['mean_cost']:.3f} {100 * row['adverse']:5.1f}")
