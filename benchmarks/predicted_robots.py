"""Trials saved by a critic and by a twin on the drone and the arm, with real worlds that the twin gets wrong.

Part of `python -m benchmarks predicted`; alone: `python -m benchmarks.predicted_robots`. Three questions: how
many trials it takes to alarm (`watch`), for limits as narrow (`certify`, one look at 150), and to a verdict
on two policies (`compare`). The other policy is the same with noise: on the drone's preferences, as large as
these vary, and of 1 cm (standard deviation, each way) on the arm's grasps.

A stream draws its trials, and the scenes that are not run, from a world of many scenes. Everything that a
predictor says about a scene was computed before, and the "real" outcome has randomness of its own.

Drone: the twin knows the obstacles and the drone, not the wind, nor which of the recorded flights will be
flown. The critic sees the depth image. Arm: the real one has other friction, density and grip in every trial;
the twin has the nominal ones, and sees the object 5 mm and 5 degrees (standard deviations) off.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from benchmarks import trained
from benchmarks.drone import every_rollout
from boundwatch.prediction import train_critic

SEED = 11
STREAMS = 100
LOOKS = 50  # streams of the limits
ONCE = 150
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


class Robots(NamedTuple):
    """A world of many scenes: costs of both policies there, and what each predictor says of them."""

    costs: tuple[Array, Array]
    predictions: dict[str, tuple[Array, Array]]


def measure_drone() -> dict[str, Any]:
    """Return the trials of the drone in its worlds."""
    from boundwatch.tasks.navigation import scene as scenes
    from boundwatch.tasks.navigation.policy import Policy, logits_of
    from boundwatch.tasks.navigation.train import Draw
    from boundwatch.tasks.navigation.world import TRAINING

    run = trained.drone()
    known = run.world.draw(TRAINING, run.recipe.environments, seed=(run.recipe.seed, Draw.TRAINING))
    costs = run.task().costs(logits_of(run.policy, known.images), known)
    critic = train_critic(Policy(primitives=1), known.images, costs, steps=1500, learning_rate=2e-3)
    rows, rng = {}, np.random.default_rng(SEED)
    for name in DRONE_WORLDS:
        task = run.task(name)
        seed = (run.recipe.seed, Draw.DEPLOYMENT, SEED)
        flown = run.world.draw(task.distribution, DRONE_SCENES, seed=seed)
        logits = logits_of(run.policy, flown.images)
        both = logits, logits + rng.normal(0, logits.std(), logits.shape).astype(logits.dtype)
        every = np.nanmean(
            scenes.cost(every_rollout(run.world, flown.obstacles), run.recipe.d_thresh), axis=2
        )
        twin = [every[np.arange(len(each)), each.argmax(axis=1)] for each in both]
        said = critic(flown.images)
        world = Robots(
            (task.costs(both[0], flown), task.costs(both[1], flown)),
            {"critic": (said, said), "twin": (twin[0], twin[1])},
        )
        rows[name] = measure(run.certificate, world)
        print(say("drone", name, rows[name]), flush=True)
    return {"upper": run.certificate.upper, "critic": critic.correlation, "worlds": rows}


def measure_arm() -> dict[str, Any]:
    """Return the trials of the arm in its worlds."""
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
        said, chosen = critic(pixels(images)), world.grasps(run.policy, images)
        costs, twin = [], []
        for noise in (0.0, 0.01):
            moves = noise * rng.standard_normal((ARM_SCENES, 2))
            grasps = [
                replace(each, x=each.x + x, y=each.y + y) for each, (x, y) in zip(chosen, moves, strict=True)
            ]
            seen = [
                replace(
                    scene,
                    x=scene.x + 0.005 * rng.standard_normal(),
                    y=scene.y + 0.005 * rng.standard_normal(),
                    yaw=scene.yaw + math.radians(5) * rng.standard_normal(),
                )
                for scene in scenes
            ]
            twin.append(np.array([outcome.cost for outcome in world.attempts(seen, grasps, label="")]))
            real = []
            for scene, grasp in zip(scenes, grasps, strict=True):
                physics = replace(
                    run.physics,
                    pad_friction=run.physics.pad_friction * rng.uniform(0.6, 1.2),
                    density=run.physics.density * rng.uniform(0.7, 1.5),
                    grip_force=run.physics.grip_force * rng.uniform(0.7, 1.1),
                )
                real.append(
                    Grasping(objects, placement, physics).attempts([scene], [grasp], label="")[0].cost
                )
            costs.append(np.array(real))
        robots = Robots((costs[0], costs[1]), {"critic": (said, said), "twin": (twin[0], twin[1])})
        name = f"{objects}, placement {placement}"
        rows[name] = measure(run.certificate, robots)
        print(say("arm", name, rows[name]), flush=True)
    return {"upper": run.certificate.upper, "critic": critic.correlation, "worlds": rows}


def pixels(images: list[Any]) -> NDArray[np.float32]:
    """Return images as numbers around 1, as a network likes them."""
    return (np.stack(images) / max(float(images[0].max()), 1.0)).astype(np.float32)


def feed(test: bw.PredictedTest, costs: Array, scenes: Array, others: Array) -> Any:
    """Count trials with their predictions, and return the last finding."""
    for each in zip(costs.tolist(), scenes.tolist(), others, strict=True):
        finding = test.update(*each)
    return finding


def measure(certificate: bw.Certificate, world: Robots) -> dict[str, Any]:
    """Return mean trials with and without each predictor, on the same streams, of each question."""
    rng = np.random.default_rng(SEED)
    binary = all(bool(np.isin(each, (0, 1)).all()) for each in world.costs)
    taken: dict[str, dict[str, list[float]]] = {}
    for stream in range(STREAMS):
        trials, unrun = [], []
        for costs in world.costs:
            trials.append(rng.integers(costs.size, size=MOST))
            unrun.append(rng.integers(costs.size, size=(MOST, UNRUN)))
        drawn = [costs[each] for costs, each in zip(world.costs, trials, strict=True)]
        for name in ("alone", *world.predictions):
            said = [
                None if name == "alone" else (of[here], of[rest])
                for of, here, rest in zip(
                    world.predictions.get(name, world.costs), trials, unrun, strict=True
                )
            ]
            found = {
                "watch": watched(certificate, drawn[0], said[0]),
                "compare": compared(drawn, said, binary=binary),
            }
            if stream < LOOKS:
                found["certify"] = certified(drawn[0][:ONCE], said[0], binary=binary)
            for what, number in found.items():
                taken.setdefault(what, {}).setdefault(name, []).append(number)
    row: dict[str, Any] = {"cost": [float(each.mean()) for each in world.costs]}
    for name, values in world.predictions.items():
        spread = np.ptp(values[0]) > 0 and np.ptp(world.costs[0]) > 0
        row[f"{name}_correlation"] = float(np.corrcoef(values[0], world.costs[0])[0, 1]) if spread else 0.0
    for what, numbers in taken.items():
        base = np.array(numbers["alone"])
        if what == "certify":
            base = np.full(LOOKS, ONCE, dtype=float)
        row[what] = {"alone": float(base.mean())}
        for name in world.predictions:
            each = np.array(numbers[name])
            if what == "certify":  # numbers are widths
                each = base * (each / np.array(numbers["alone"])) ** 2
            saved = 1 - each.mean() / base.mean()
            error = (each - base * each.mean() / base.mean()).std() / math.sqrt(len(base)) / base.mean()
            row[what][name] = {"saved": float(saved), "error": float(error)}
    return row


Said = tuple[Array, Array] | None


def watched(certificate: bw.Certificate, costs: Array, said: Said) -> float:
    """Return after how many trials there is an alarm."""
    test: Any = (bw.SequentialTest if said is None else bw.PredictedTest)(certificate, alpha_adverse=0.05)
    for start in range(0, MOST, 20):
        part = slice(start, start + 20)
        if said is None:
            test.update_many(costs[part])
        else:
            feed(test, costs[part], said[0][part], said[1][part])
        if test.verdict is bw.Verdict.ADVERSE:
            return float(test.first_alarm)
    return float(MOST)


def certified(costs: Array, said: Said, *, binary: bool) -> float:
    """Return the width of the limits."""
    given: dict[str, Any] = {}
    if said is not None:
        given = {"predicted": said[0][: costs.size].tolist(), "unlabeled": list(said[1][: costs.size])}
    limits = bw.Certificate.from_held_out(costs, binary=binary, **given)
    return limits.upper - limits.lower


def compared(costs: list[Array], said: list[Said], *, binary: bool) -> float:
    """Return after how many pairs there is a verdict."""
    test = bw.PolicyComparison(binary=binary, paired=False, predictions=said[0] is not None)
    for i in range(MOST):
        given: dict[str, Any] = {}
        for name, each in zip("ab", said, strict=True):
            if each is not None:
                given |= {f"predicted_{name}": float(each[0][i]), f"unlabeled_{name}": each[1][i]}
        if test.update(float(costs[0][i]), float(costs[1][i]), **given).first_alarm is not None:
            break
    return float(test.pairs)


def say(robot: str, name: str, row: dict[str, Any]) -> str:
    """Say what was found in a world."""
    lines = [f"{robot}, {name}: costs {row['cost'][0]:.2f} and {row['cost'][1]:.2f}"]
    for what in ("watch", "certify", "compare"):
        found = row[what]
        said = "  ".join(
            f"{each} ({row[f'{each}_correlation']:.2f}) saved {found[each]['saved']:+.0%} "
            f"+- {found[each]['error']:.0%}"
            for each in ("critic", "twin")
        )
        lines.append(f"  {what:8s} alone {found['alone']:.0f}  {said}")
    return "\n".join(lines)


def show(results: dict[str, Any]) -> None:
    """Print the tables, in each the losses first."""
    print(f"{results['streams']} streams of {results['most']} trials, {results['unrun']} unrun scenes each")
    for robot in ("drone", "arm"):
        found = results[robot]
        print(f"{robot}, certified at most {found['upper']:.3f}, critic's correlation {found['critic']:.2f}")
        worlds = found["worlds"].items()
        for name, row in sorted(
            worlds, key=lambda each: min(each[1]["certify"][p]["saved"] for p in ("critic", "twin"))
        ):
            print(say(robot, name, row))


if __name__ == "__main__":
    show(run())
