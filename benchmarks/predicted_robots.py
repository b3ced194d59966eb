"""Trials saved by a critic and by a twin on the drone and the arm, with real worlds that the twin gets wrong.

Part of `python -m benchmarks predicted`.

A stream draws its trials, and the scenes that are not run, from a world of many scenes. Everything that a
predictor says about a scene was computed before, and the "real" outcome has randomness of its own.

Drone: the twin knows the obstacles and the drone, not the wind, nor which of the recorded flights will be
flown. The critic sees the depth image. Arm: the real one has other friction, density and grip in every trial;
the twin has the nominal ones, and sees the object 5 mm and 5 degrees (standard deviations) off.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from benchmarks import trained
from benchmarks.drone import every_rollout
from boundwatch.prediction import train_critic

SEED = 11
STREAMS = 100
MOST = 400
UNRUN = 10
DRONE_WORLDS = ("training", "harder", "difficulty:2", "difficulty:3.5", "windy:1.5", "windy:3")
DRONE_SCENES = 8_192
ARM_WORLDS = (("mugs", 1), ("mugs", 3), ("mugs", 5), ("bowls", 1))
ARM_SCENES = 200
Array = NDArray[np.float64]


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    return {"seed": SEED, "streams": STREAMS, "most": MOST, "unrun": UNRUN} | {
        "drone": measure_drone(),
        "arm": measure_arm(),
    }


def measure_drone() -> dict[str, Any]:
    """Return trials to alarm of the drone in its worlds."""
    from boundwatch.tasks.navigation import scene as scenes
    from boundwatch.tasks.navigation.policy import Policy, logits_of
    from boundwatch.tasks.navigation.train import Draw
    from boundwatch.tasks.navigation.world import TRAINING

    run = trained.drone()
    known = run.world.draw(TRAINING, run.recipe.environments, seed=(run.recipe.seed, Draw.TRAINING))
    costs = run.task().costs(logits_of(run.policy, known.images), known)
    critic = train_critic(Policy(primitives=1), known.images, costs, steps=1500, learning_rate=2e-3)
    rows = {}
    for name in DRONE_WORLDS:
        task = run.task(name)
        seed = (run.recipe.seed, Draw.DEPLOYMENT, SEED)
        flown = run.world.draw(task.distribution, DRONE_SCENES, seed=seed)
        logits = logits_of(run.policy, flown.images)
        chosen = logits.argmax(axis=1)
        every = scenes.cost(every_rollout(run.world, flown.obstacles), run.recipe.d_thresh)
        predictions = {
            "critic": critic(flown.images),
            "twin": np.nanmean(every[np.arange(len(chosen)), chosen], axis=1),
        }
        rows[name] = compare(run.certificate, task.costs(logits, flown), predictions)
    return {"upper": run.certificate.upper, "critic": critic.correlation, "worlds": rows}


def measure_arm() -> dict[str, Any]:
    """Return trials to alarm of the arm in its worlds."""
    import torch
    from torch import nn

    from boundwatch.tasks.grasping.policy import Grasping
    from boundwatch.tasks.grasping.train import Draw

    run = trained.arm()
    rng = np.random.default_rng(SEED)
    task = Grasping(physics=run.physics)
    known = task.draw(run.recipe.environments, run.recipe.generator(Draw.TRAINING))
    images = task.photographs(known)
    certified = bw.read_costs(
        trained.folder("boundwatch.tasks.grasping.train", run.recipe) / "costs.csv", cost="cost"
    ).costs
    torch.manual_seed(SEED)
    network = nn.Sequential(nn.Flatten(1), nn.Linear(images[0].size, 32), nn.ReLU(), nn.Linear(32, 1))
    critic = train_critic(network, pixels(images), certified, steps=500)
    rows = {}
    for objects, placement in ARM_WORLDS:
        world = Grasping(objects, placement, run.physics)
        scenes = world.draw(ARM_SCENES, rng)
        images = world.photographs(scenes)
        grasps = world.grasps(run.policy, images)
        seen = [
            replace(
                scene,
                x=scene.x + 0.005 * rng.standard_normal(),
                y=scene.y + 0.005 * rng.standard_normal(),
                yaw=scene.yaw + math.radians(5) * rng.standard_normal(),
            )
            for scene in scenes
        ]
        twin = [outcome.cost for outcome in world.attempts(seen, grasps, label="")]
        costs = []
        for scene, grasp in zip(scenes, grasps, strict=True):
            physics = replace(
                run.physics,
                pad_friction=run.physics.pad_friction * rng.uniform(0.6, 1.2),
                density=run.physics.density * rng.uniform(0.7, 1.5),
                grip_force=run.physics.grip_force * rng.uniform(0.7, 1.1),
            )
            costs.append(Grasping(objects, placement, physics).attempts([scene], [grasp], label="")[0].cost)
        predictions = {"critic": critic(pixels(images)), "twin": np.array(twin)}
        rows[f"{objects}, placement {placement}"] = compare(run.certificate, np.array(costs), predictions)
    return {"upper": run.certificate.upper, "critic": critic.correlation, "worlds": rows}


def pixels(images: list[Any]) -> NDArray[np.float32]:
    """Return images as numbers around 1, as a network likes them."""
    return (np.stack(images) / max(float(images[0].max()), 1.0)).astype(np.float32)


def feed(test: bw.PredictedTest, costs: Array, scenes: Array, others: Array) -> Any:
    """Count trials with their predictions, and return the last finding."""
    for each in zip(costs.tolist(), scenes.tolist(), others, strict=True):
        finding = test.update(*each)
    return finding


def compare(certificate: bw.Certificate, costs: Array, predictions: dict[str, Array]) -> dict[str, Any]:
    """Return mean trials to ADVERSE with and without each predictor, on the same streams."""
    rng = np.random.default_rng(SEED)
    taken: dict[str, list[int]] = {"alone": []} | {name: [] for name in predictions}
    alarms = dict.fromkeys(taken, 0)
    for _ in range(STREAMS):
        trials = rng.integers(costs.size, size=MOST)
        unrun = rng.integers(costs.size, size=(MOST, UNRUN))
        streams: dict[str, Callable[[slice], Any]] = {}
        alone = bw.SequentialTest(certificate, alpha_adverse=0.05)
        streams["alone"] = lambda part, test=alone, trials=trials: test.update_many(costs[trials[part]])
        tests: dict[str, Any] = {"alone": alone}
        for name, values in predictions.items():
            tests[name] = bw.PredictedTest(certificate, alpha_adverse=0.05)
            streams[name] = lambda part, test=tests[name], values=values, trials=trials, unrun=unrun: feed(
                test, costs[trials[part]], values[trials[part]], values[unrun[part]]
            )
        for name, count in streams.items():
            for start in range(0, MOST, 20):
                count(slice(start, start + 20))
                if tests[name].verdict is bw.Verdict.ADVERSE:
                    break
            adverse = tests[name].verdict is bw.Verdict.ADVERSE
            alarms[name] += adverse
            taken[name].append(tests[name].first_alarm if adverse else MOST)
    row: dict[str, Any] = {"cost": float(costs.mean())}
    for name, values in predictions.items():
        spread = np.ptp(values) > 0 and np.ptp(costs) > 0
        row[f"{name}_correlation"] = float(np.corrcoef(values, costs)[0, 1]) if spread else 0.0
    base = np.array(taken["alone"], dtype=float)
    for name, numbers in taken.items():
        row[name] = float(np.mean(numbers))
        row[f"{name}_alarms"] = alarms[name] / STREAMS
        if name != "alone":
            saved = base - np.array(numbers)
            row[f"{name}_saved"] = float(saved.mean() / base.mean())
            row[f"{name}_error"] = float(saved.std() / math.sqrt(STREAMS) / base.mean())
    return row


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    print(f"{results['streams']} streams of {results['most']} trials, {results['unrun']} unrun scenes each")
    for robot in ("drone", "arm"):
        found = results[robot]
        print(f"{robot}, certified at most {found['upper']:.3f}, critic's correlation {found['critic']:.2f}")
        for world, row in found["worlds"].items():
            helped = "  ".join(
                f"{name} {row[name]:.1f} (saved {row[f'{name}_saved']:+.0%} +- {row[f'{name}_error']:.0%}, "
                f"alarms {row[f'{name}_alarms']:.0%})"
                for name in ("critic", "twin")
            )
            print(
                f"  {world:18s} cost {row['cost']:.2f}  alone {row['alone']:.1f} "
                f"(alarms {row['alone_alarms']:.0%})  {helped}"
            )
