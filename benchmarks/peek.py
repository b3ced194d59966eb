"""How much earlier an alarm comes when the running episode is peeked at: Pendulum and the drone.

python -m benchmarks.peek FOLDER DRONE      of benchmarks.control, and of `boundwatch train navigation`
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from benchmarks.control import step_costs

SEEDS = 100
MOST = 100
SEED = 5
DRONE_WORLDS = ("harder", "difficulty:3.5", "windy:3")
Array = NDArray[np.float64]


def run(folder: Path, drone: Path) -> dict[str, Any]:
    """Measure, and return the numbers."""
    home = step_costs("pendulum", "home", folder)
    rows: dict[str, Any] = {}
    for world in ("mass", "actuator", "sensor"):
        partial = np.cumsum(step_costs("pendulum", world, folder), axis=1) / home.shape[1]
        certificate = bw.Certificate.from_held_out(home[:200].mean(axis=1), delta=0.01)
        rows[f"pendulum {world}"] = measure(certificate, partial)
    rows |= measure_drone(drone)
    return {"seeds": SEEDS, "most": MOST, "rows": rows}


def measure_drone(folder: Path) -> dict[str, Any]:
    """Return the same for the drone, whose cost so far is that of the smallest clearance so far."""
    from boundwatch.tasks.navigation import scene as scenes
    from boundwatch.tasks.navigation.policy import logits_of
    from boundwatch.tasks.navigation.recipe import Draw
    from boundwatch.tasks.navigation.runs import load_run

    run = load_run(folder)
    rows = {}
    for name in DRONE_WORLDS:
        task = run.task(name)
        flown = run.world.draw(
            task.distribution, 2048, seed=(run.recipe.seed, Draw.DEPLOYMENT, SEED), flights=True
        )
        chosen = logits_of(run.policy, flown.images).argmax(axis=1)
        paths = flown.flights[np.arange(len(chosen)), chosen]
        away = np.linalg.norm(paths[:, :, None] - flown.obstacles[:, None], axis=3).min(axis=2)
        clearance = away - run.world.scene.obstacle_radius - run.world.scene.drone_radius
        partial = scenes.cost(np.minimum.accumulate(clearance, axis=1), run.recipe.d_thresh)
        rows[f"drone {name}"] = measure(run.certificate, partial)
    return rows


def measure(certificate: bw.Certificate, partial: Array) -> dict[str, float]:
    """Return how many steps of the alarming episode are left when a peek says ADVERSE."""
    horizon = partial.shape[1]
    left, episodes, earlier = [], [], 0
    for seed in range(SEEDS):
        rng = np.random.default_rng([SEED, seed])
        test = bw.SequentialTest(certificate)
        for number, episode in enumerate(partial[rng.choice(len(partial), MOST, replace=False)], start=1):
            before = test.state_dict()
            if test.update(float(min(episode[-1], 1.0))).verdict is not bw.Verdict.ADVERSE:
                continue
            running = bw.SequentialTest.from_state_dict(before, certificate)
            low, high = 0, horizon - 1  # the verdict of a peek never falls back, so halving finds the first
            while low < high:
                middle = (low + high) // 2
                adverse = running.peek(float(min(episode[middle], 1.0))).verdict is bw.Verdict.ADVERSE
                low, high = (low, middle) if adverse else (middle + 1, high)
            left.append(horizon - 1 - low)
            episodes.append(number)
            earlier += low < horizon - 1
            break
    found = {"cost": float(partial[:, -1].mean()), "alarms": len(left) / SEEDS}
    if not left:
        return found
    return found | {
        "episodes": float(np.mean(episodes)),
        "steps_earlier": float(np.mean(left)),
        "steps_earlier_median": float(np.median(left)),
        "steps_earlier_error": float(np.std(left) / np.sqrt(len(left))),
        "horizon": horizon,
        "share_earlier": earlier / len(left),
    }


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), Path(sys.argv[2])), indent=1))
