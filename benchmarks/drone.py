"""The drone beside the published recordings: calibration, acceptance, costs of simple policies."""

from __future__ import annotations

from typing import Any

import numpy as np
from reproduction.recorded import THRESHOLDS

from boundwatch.tasks.navigation import TRAINING, World, place_obstacles
from boundwatch.tasks.navigation.scene import cost

ENVIRONMENTS = 50_000
SEED = 0
LINES = (4.0, 5.5, 7.0)
# Of the published motion-capture recordings, mm: lateral positions at the lines, spread at the middle one.
TARGETS = (
    (-1714, -2193, -2344),
    (-1184, -1542, -1681),
    (-690, -817, -830),
    (-17, -16, -11),
    (544, 578, 533),
    (1105, 1398, 1477),
    (1595, 2031, 2128),
)
SPREADS = (123, 175, 231, 52, 83, 58, 129)
PUBLISHED = {"acceptance": 0.878, "best": 0.257, "aware": 0.277, "random": 0.81}


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    world = World()
    rows = []
    for number, flights in enumerate(world.recordings.paths):
        crossings = np.array([[lateral(flight, y) for y in LINES] for flight in flights])
        rows.append(
            {
                "primitive": number,
                "target_mm": TARGETS[number],
                "mean_mm": crossings.mean(axis=0).tolist(),
                "target_spread_mm": SPREADS[number],
                "spread_mm": float(crossings[:, 1].std(ddof=1)),
            }
        )
    paths = np.concatenate(world.recordings.paths)
    steps = 1000 * np.linalg.norm(np.diff(paths, axis=1), axis=2)[:, 150:270]
    return {
        "seed": SEED,
        "environments": ENVIRONMENTS,
        "calibration": rows,
        "step_mm": [float(steps.min()), float(steps.mean()), float(steps.max())],
        "end_m": [float(paths[:, -1, 1].min()), float(paths[:, -1, 1].max())],
        "acceptance": acceptance(world),
        "costs": simple_policies(world),
    }


def lateral(flight: np.ndarray, y: float) -> float:
    """Return where a flight crosses a line ahead, in mm."""
    return float(1000 * np.interp(y, flight[:, 1], flight[:, 0]))


def every_rollout(world: World, obstacles: np.ndarray) -> np.ndarray:
    """Return the clearance of every recording in every environment: (n, primitives, rollouts).

    Where fewer were recorded than of another primitive, the rest is NaN.
    """
    counts = world.recordings.counts
    each = (np.full((len(obstacles), len(counts)), rollout) for rollout in range(max(counts)))
    return np.stack([world._clearances(obstacles, rollouts) for rollouts in each], axis=2)


def acceptance(world: World) -> float:
    """Return the share of candidates that the training distribution accepts."""
    rng = np.random.default_rng(SEED)
    obstacles = place_obstacles(world.scene, ENVIRONMENTS, TRAINING.obstacles, rng)
    rollouts = world.recordings.draw(ENVIRONMENTS, rng)
    every = every_rollout(world, obstacles)
    best = np.take_along_axis(every, rollouts[:, :, None], axis=2)[:, :, 0].max(axis=1)
    return float(np.mean(best > TRAINING.gap_above))


def simple_policies(world: World) -> list[dict[str, float]]:
    """Return the costs of policies that need no training, at every threshold."""
    environments = world.draw(TRAINING, ENVIRONMENTS, seed=SEED, images=False)
    every = every_rollout(world, environments.obstacles)
    rows = []
    for d_thresh in THRESHOLDS:
        drawn, expected = environments.costs(d_thresh), cost(every, d_thresh).mean(axis=2)
        aware = np.take_along_axis(drawn, expected.argmin(axis=1)[:, None], axis=1)
        rows.append(
            {
                "d_thresh_mm": 1000 * d_thresh,
                "best": float(drawn.min(axis=1).mean()),
                "aware": float(aware.mean()),
                "random": float(drawn.mean()),
            }
        )
    return rows


def show(result: dict[str, Any]) -> None:
    """Print the numbers as tables."""
    print("lateral position, mm: recorded / model")
    for row in result["calibration"]:
        pairs = "  ".join(f"{t:6d} / {m:6.0f}" for t, m in zip(row["target_mm"], row["mean_mm"], strict=True))
        print(f"  {row['primitive']}  {pairs}   spread {row['target_spread_mm']} / {row['spread_mm']:.0f}")
    low, mean, high = result["step_mm"]
    print(f"steps 150-270: {mean:.1f} mm ({low:.1f} to {high:.1f}); ends at y = {result['end_m']} m")
    print(f"acceptance {result['acceptance']:.4f} (published {PUBLISHED['acceptance']})")
    print("d_thresh   best sampled   knows obstacles   random")
    for row in result["costs"]:
        print(f"{row['d_thresh_mm']:8.0f} {row['best']:12.4f} {row['aware']:15.4f} {row['random']:12.4f}")
