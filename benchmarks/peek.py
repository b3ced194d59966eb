"""How much earlier an alarm comes when the running episode is peeked at: Pendulum and the drone; its level.

Part of `python -m benchmarks predicted`.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from benchmarks import trained
from benchmarks.control import step_costs

SEEDS = 100
MOST = 100
SEED = 5
DRONE_WORLDS = ("harder", "difficulty:3.5", "windy:3")
Array = NDArray[np.float64]
# The level is enumerated with episodes of three steps that cost 0 or 1/3: an episode's expected cost is the
# rate of the steps.
STEPS = 3
LEVEL = 0.3
RATE = 0.3
SMALL = bw.Certificate.from_bounds(lower=0.0, upper=RATE, delta=1e-9)


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    home = step_costs("pendulum", "home")
    rows: dict[str, Any] = {}
    for world in ("mass", "actuator", "sensor"):
        partial = np.cumsum(step_costs("pendulum", world), axis=1) / home.shape[1]
        certificate = bw.Certificate.from_held_out(home[:200].mean(axis=1), delta=0.01)
        rows[f"pendulum {world}"] = measure(certificate, partial)
    rows |= measure_drone()
    chances = {how: alarm_chance(RATE, how) for how in ("peek", "update")}
    # An end that takes half of the cost back: peeks alarm on what is never paid.
    control = {how: alarm_chance(0.9, how, drop=0.5) for how in ("peek", "update")}
    exact = {"level": LEVEL, "rate": RATE, "chances": chances, "control": control}
    return {"seed": SEED, "seeds": SEEDS, "most": MOST, "exact": exact, "rows": rows}


def alarm_chance(rate: float, how: str, *, drop: float = 0.0) -> float:
    """Return the exact probability that two episodes alarm, by peeks along them or by updates alone.

    Parameters
    ----------
    rate
        With which a step costs something, independently of the others.
    how
        ``"peek"`` or ``"update"``.
    drop
        What the end of an episode takes back from its cost: above 0 it breaks what peeks rest on.
    """
    total = 0.0
    for flat in itertools.product((0, 1), repeat=2 * STEPS):
        weight = rate ** sum(flat) * (1 - rate) ** (2 * STEPS - sum(flat))
        total += weight * alarms([flat[:STEPS], flat[STEPS:]], drop=drop)[how]
    return total


def alarms(episodes: Sequence[Sequence[int]], *, drop: float = 0.0) -> dict[str, bool]:
    """Return whether these episodes alarm: by peeks along each, and by updates alone."""
    test = bw.SequentialTest(SMALL, alpha_adverse=LEVEL)
    by_peek = False
    for steps in episodes:
        for partial in np.minimum(np.cumsum(steps) / STEPS, 1.0).tolist():
            by_peek |= test.peek(partial).verdict is bw.Verdict.ADVERSE
        test.update(max(min(sum(steps) / STEPS, 1.0) - drop, 0.0))
    return {"peek": by_peek, "update": test.verdict is bw.Verdict.ADVERSE}


def measure_drone() -> dict[str, Any]:
    """Return the same for the drone, whose cost so far is that of the smallest clearance so far."""
    from boundwatch.tasks.navigation import scene as scenes
    from boundwatch.tasks.navigation.policy import logits_of
    from boundwatch.tasks.navigation.train import Draw

    run = trained.drone()
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


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    exact = results["exact"]
    for name, chances in (
        ("exact, at the limit", exact["chances"]),
        ("control: a cost that falls again", exact["control"]),
    ):
        print(
            f"{name}: alarms by peeks {chances['peek']:.4f}, by updates {chances['update']:.4f}, "
            f"level {exact['level']}"
        )
    for name, row in results["rows"].items():
        found = f"{name:22s} cost {row['cost']:.3f}  alarms {row['alarms']:.0%} of {results['seeds']}"
        if "episodes" in row:
            found += (
                f"  after {row['episodes']:.1f} episodes, {row['steps_earlier']:.0f} +- "
                f"{row['steps_earlier_error']:.0f} of {row['horizon']} steps before the end"
            )
        print(found)
