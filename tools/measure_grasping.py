"""Measure the numbers in docs/grasping.md: ``python tools/measure_grasping.py RUN [JOBS]``.

RUN is what ``boundwatch train grasping`` wrote. If that was with ``--harder``, other parts are measured. The
settings of the detectors, and those of the tables of failures, were fixed before the first measurement; the
last three parts explain what was found. 22,500 grasps, 11,000 in the harder world.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

import boundwatch as bw
from boundwatch._support.parallel import in_parallel
from boundwatch.tasks.grasping import (
    Bowl,
    Mug,
    Physics,
    Scene,
    VariedMug,
    attempt,
    draw_scenes,
    expert_grasp,
    photograph,
    pictures,
)
from boundwatch.tasks.grasping.camera import CAMERA_HEIGHT, VIEW
from boundwatch.tasks.grasping.motion import Grasp, plan
from boundwatch.tasks.grasping.policy import LATENT, Grasping, LatentCosts
from boundwatch.tasks.grasping.scenes import CENTER, FAMILIES, PLACEMENTS
from boundwatch.tasks.grasping.train import Draw, Run, load_run
from boundwatch.training import LatentPolicy

ASSETS = Path(__file__).parents[1] / "docs" / "assets"
FRESH, TABLE, DATASETS, TRIALS, STREAM, WHY = 2000, 500, 20, 10, 25, 200
PRIOR_DRAWS = 10
ANY_POLICY = ("expert", "timesteps", "reflex")
"""What is measured without a policy."""
FRICTIONS = (0.1, 0.2, 0.3, 0.4, 0.5)
NOISY = 500
NOISE = {"small": (0.01, 0.01, 0.2), "large": (0.02, 0.015, 0.3)}
"""Standard deviations added to the expert's grasp: meters along x and y, meters along z, radians."""


def fresh(run: Run, jobs: int) -> dict[str, Any]:
    """Return the expected cost on new mugs, with its exact 99 % interval."""
    failures = int(run.deploy(FRESH, seed=0, jobs=jobs).costs.sum())
    low = bw.bounds.clopper_pearson_lower(failures, FRESH, 0.005)
    high = bw.bounds.clopper_pearson_upper(failures, FRESH, 0.005)
    return {"n": FRESH, "failures": failures, "interval": [float(low), float(high)]}


def placements(run: Run, jobs: int) -> list[dict[str, Any]]:
    """Return failures over the six placements, and what the detectors say to small datasets."""
    rows = []
    for placement in range(1, 7):
        costs = run.deploy(TABLE, placement=placement, seed=1, jobs=jobs).costs
        datasets = run.deploy(DATASETS * TRIALS, placement=placement, seed=2, jobs=jobs).costs
        sets = datasets.reshape(DATASETS, TRIALS)
        row = {"placement": placement, "n": TABLE, "failures": int(costs.sum())} | alarms(run, sets)
        rows.append(row | {"sequential_trials": first_alarms(run, sets)})
        print(row, flush=True)
    return rows


def alarms(run: Run, sets: np.ndarray) -> dict[str, int]:
    """Return on how many datasets each fixed-sample detector declares an adverse shift."""
    counts = {}
    for tail in ("hoeffding", "exact"):
        test = bw.HypothesisTest(run.certificate, alpha_adverse=0.05, alpha_benign=0.05, tail=tail)
        interval = bw.ConfidenceInterval(
            run.certificate, false_positive_rate=0.05, false_negative_rate=0.05, tail=tail
        )
        for name, detector in (("test", test), ("interval", interval)):
            verdicts = [detector.decide(costs).verdict for costs in sets]
            counts[f"{name}_{tail}"] = sum(verdict is bw.Verdict.ADVERSE for verdict in verdicts)
    return counts


def first_alarms(run: Run, streams: np.ndarray) -> list[int | None]:
    """Return the trial at which the sequential test declares an adverse shift in each stream, if it does."""
    trials = []
    for costs in streams:
        test = bw.SequentialTest(run.certificate, alpha_adverse=0.04, alpha_benign=0.04)
        finding = test.update_many(costs)
        trials.append(test.first_alarm if finding.verdict is bw.Verdict.ADVERSE else None)
    return trials


def crockery(run: Run, jobs: int) -> list[dict[str, Any]]:
    """Return failures by object and friction, and the sequential test's first alarm over trials."""
    rows = []
    for friction in FRICTIONS:
        physics = dataclasses.replace(run.physics, pad_friction=friction)
        for objects in ("mugs", "bowls", "wide-bowls"):
            costs = run.deploy(TABLE, objects=objects, physics=physics, seed=3, jobs=jobs).costs
            trials = first_alarms(run, costs.reshape(-1, STREAM))
            row = {"objects": objects, "friction": friction, "n": TABLE, "failures": int(costs.sum())}
            rows.append(row | {"streams": len(trials), "sequential_trials": trials})
            print(rows[-1], flush=True)
    return rows


def expert(jobs: int) -> list[dict[str, Any]]:
    """Return how often the expert lifts bowls."""
    rows = []
    for index, objects in enumerate(("bowls", "wide-bowls")):
        rng = np.random.default_rng([0, 1 + index])
        scenes = draw_scenes(TABLE, rng, objects=objects)
        angles = rng.uniform(-np.pi, np.pi, TABLE)
        grasps = [expert_grasp(scene, angle) for scene, angle in zip(scenes, angles, strict=True)]
        outcomes = in_parallel(attempt, list(zip(scenes, grasps, strict=True)), jobs=jobs, label=objects)
        failures = int(sum(outcome.cost for outcome in outcomes))
        rows.append({"objects": objects, "n": TABLE, "failures": failures})
    return rows


def timesteps(jobs: int) -> list[dict[str, Any]]:
    """Return how often half and a quarter of the time step agree on noisy grasps."""
    rows = []
    for name in NOISE:
        work = noisy(name)
        costs = {
            step: np.array([outcome.cost for outcome in in_parallel(attempt, calls, jobs=jobs, label=name)])
            for step in (0.004, 0.002, 0.001)
            for calls in [[(*pair, Physics(timestep=step)) for pair in work]]
        }
        row = {"noise": name, "n": NOISY, "failures": int(costs[0.004].sum())}
        for step in (0.002, 0.001):
            row[f"agree_{step}"] = int((costs[step] == costs[0.004]).sum())
        rows.append(row)
        print(row, flush=True)
    return rows


def noisy(name: str) -> list[tuple[Scene, Grasp]]:
    """Return mugs, and the expert's grasps with noise."""
    rng = np.random.default_rng([1, 1 + list(NOISE).index(name)])
    across, up, turn = NOISE[name]
    work = []
    for scene in draw_scenes(NOISY, rng):
        grasp = expert_grasp(scene, float(rng.uniform(-0.5 * np.pi, 0.5 * np.pi)))
        x, y, z, yaw = rng.normal(0.0, (across, across, up, turn)).tolist()
        work.append((scene, Grasp(grasp.x + x, grasp.y + y, max(grasp.z + z, 0.005), grasp.yaw + yaw)))
    return work


def reflex() -> list[dict[str, Any]]:
    """Return how many very noisy grasps fail for several thresholds of the reflex, and what the arm feels."""
    module: ModuleType = sys.modules[attempt.__module__]
    usual, rows = module.REFLEX, []
    for threshold in (usual, 0.5 * usual, 2.0 * usual, np.inf):
        module.REFLEX = threshold  # of this process alone
        outcomes = [attempt(*pair) for pair in noisy("large")[:WHY]]
        rows.append({"newtons": str(threshold), "costs": [outcome.cost for outcome in outcomes]})
    peaks = [peak_force(*pair) for pair in noisy("large")[:WHY]]
    module.REFLEX = usual
    same = [int(np.equal(row["costs"], rows[0]["costs"]).sum()) for row in rows]
    return [
        {"newtons": row["newtons"], "n": WHY, "failures": int(sum(row["costs"])), "as_usual": agreed}
        for row, agreed in zip(rows, same, strict=True)
    ] + [
        {
            "largest_force_below": max(peak for peak in peaks if peak <= usual),
            "smallest_above": min(peak for peak in peaks if peak > usual),
        }
    ]


def peak_force(scene: Scene, grasp: Grasp) -> float:
    """Return the largest force, newtons, on a finger on the way down."""
    forces: list[float] = []
    attempt(scene, grasp, observer=lambda _, data: forces.append(float(data.sensordata[1:].max())))
    motion = plan(grasp, Physics().timestep)
    return 0.0 if motion is None else max(forces[: motion.descent])


class Beaker(Mug):
    """A mug without a handle."""

    def _handle(self, _density: float) -> Any:
        return iter(())


def properties(run: Run, jobs: int) -> list[dict[str, Any]]:
    """Return failures with one property changed at a time, and how far inside the rim the grasps lie."""
    rng = np.random.default_rng([2, 1])
    mugs = draw_scenes(WHY, rng)
    bowls = [scene.item for scene in draw_scenes(WHY, rng, objects="bowls")]

    def beaker(mug: Mug) -> Beaker:
        return Beaker(**dataclasses.asdict(mug))

    def wide(mug: Mug, bowl: Bowl) -> Mug:
        return dataclasses.replace(mug, radius=bowl.radius)

    def low(mug: Mug, bowl: Bowl) -> Mug:
        return dataclasses.replace(mug, height=bowl.height)

    changes = {
        "mugs": lambda mug, _: mug,
        "without handle": lambda mug, _: beaker(mug),
        "as wide as bowls": wide,
        "as low as bowls": low,
        "wide and low": lambda mug, bowl: low(wide(mug, bowl), bowl),
        "wide, low, without handle": lambda mug, bowl: beaker(low(wide(mug, bowl), bowl)),
        "bowls": lambda _, bowl: bowl,
    }
    task, rows = Grasping(physics=run.physics, jobs=jobs), []
    for name, change in changes.items():
        scenes = [
            dataclasses.replace(scene, item=change(scene.item, bowl))
            for scene, bowl in zip(mugs, bowls, strict=True)
        ]
        grasps = task.grasps(run.policy, task.photographs(scenes))
        failures = int(sum(outcome.cost for outcome in task.attempts(scenes, grasps)))
        inside = [
            scene.item.radius - 0.5 * scene.item.wall - np.hypot(grasp.x - scene.x, grasp.y - scene.y)
            for scene, grasp in zip(scenes, grasps, strict=True)
        ]
        rows.append({"objects": name, "n": WHY, "failures": failures, "inside_mm": 1e3 * np.mean(inside)})
        print(rows[-1], flush=True)
    return rows


def places(run: Run, jobs: int) -> list[dict[str, Any]]:
    """Return by placement how often the expert fails, and the policy, by where the mug stands."""
    rows = []
    for placement in PLACEMENTS:
        found = run.deploy(WHY, placement=placement, seed=4, jobs=jobs)
        angles = np.random.default_rng([3, placement]).uniform(-0.5 * np.pi, 0.5 * np.pi, WHY)
        grasps = [expert_grasp(*pair) for pair in zip(found.scenes, angles.tolist(), strict=True)]
        task = Grasping(placement=placement, physics=run.physics, jobs=jobs)
        reasons = [outcome.reason for outcome in task.attempts(found.scenes, grasps)]
        row: dict[str, Any] = {"placement": placement, "n": WHY, "expert": {}}
        for reason in sorted(set(reasons)):
            row["expert"][reason] = reasons.count(reason)
        kinds = np.array([place(scene) for scene in found.scenes])
        for kind in ("as in training", "in view", "not wholly in view"):
            row[kind] = [int(found.costs[kinds == kind].sum()), int((kinds == kind).sum())]
        rows.append(row)
        print(row, flush=True)
    return rows


def place(scene: Scene) -> str:
    """Return whether a mug stands where those of training did, else whether its whole body is seen."""
    away = max(abs(scene.x - CENTER[0]), abs(scene.y - CENTER[1]))
    if away <= PLACEMENTS[1]:
        return "as in training"
    # What is nearer to the camera needs more of its view.
    seen = 0.5 * VIEW * (CAMERA_HEIGHT - scene.item.height) / CAMERA_HEIGHT
    return "in view" if away + scene.item.radius <= seen else "not wholly in view"


def prior_draws(run: Run, jobs: int) -> dict[str, Any]:
    """Return what policies drawn from the prior would be certified at, by the same bound on the same mugs."""
    task = Grasping(run.recipe.objects, 1, run.physics, jobs, "loky", run.recipe.depth_noise)
    scenes = task.draw(run.recipe.environments, run.recipe.generator(Draw.TRAINING))
    costs = LatentCosts(task, run.policy.network, scenes, task.photographs(scenes))
    latents = run.recipe.generator(Draw.PRIOR_LATENTS, 1).standard_normal((PRIOR_DRAWS, LATENT))
    failures = []
    for latent in torch.from_numpy(latents).float():
        failures.append(int(costs(LatentPolicy(run.policy.network, latent)).sum()))
        print("prior draw:", failures[-1], flush=True)
    n, delta = len(scenes), run.recipe.delta
    uppers = [float(bw.bounds.pointwise_upper(failed / n, n, delta, 0.0)) for failed in failures]
    return {"n": n, "failures": failures, "uppers": uppers, "mean_upper": float(np.mean(uppers))}


def harder_placements(run: Run, jobs: int) -> list[dict[str, Any]]:
    """Return failures over the six placements, and on other objects where the training's mugs stood."""
    settings = [{"placement": placement} for placement in PLACEMENTS]
    settings += [{"objects": objects} for objects in ("mugs", "bowls")]
    rows = []
    for setting in settings:
        costs = run.deploy(TABLE, **setting, seed=1, jobs=jobs).costs
        rows.append(setting | {"n": len(costs), "failures": int(costs.sum())})
        print(rows[-1], flush=True)
    return rows


def draw_families(path: Path) -> None:
    """Draw a mug of each family from the side, and what the camera sees without and with noise."""
    rng = np.random.default_rng(7)
    size, gap = 220, 22
    sheet = Image.new("RGB", (size * len(FAMILIES), gap + 3 * size), "white")
    pen = ImageDraw.Draw(sheet)
    for column, (name, (foot, belly)) in enumerate(FAMILIES.items()):
        mug = VariedMug.draw(rng)
        while not (foot[0] <= mug.taper <= foot[1] and belly[0] <= mug.belly <= belly[1]):
            mug = VariedMug.draw(rng)
        scene = Scene(mug, *CENTER, float(rng.uniform(-0.4, 0.6)))
        side = Image.fromarray(pictures.view(*pictures.at_home(scene, Physics()), Grasp(*CENTER, 0.05, 0.0)))
        views = [side.crop((148, 153, 260, 265)).resize((size, size), Image.Resampling.LANCZOS)]
        for noisy in (False, True):
            seen = Image.fromarray(photograph(scene, noisy=noisy)[::-1, ::-1]).point(lambda grey: 1.7 * grey)
            views.append(seen.crop((34, 27, 94, 87)).resize((size, size), Image.Resampling.NEAREST))
        for row, view in enumerate(views):
            sheet.paste(view.convert("RGB"), (column * size, gap + row * size))
        pen.text((column * size + 6, 5), name, fill=(60, 60, 60))
    sheet.save(path)


def main(folder: str, jobs: int) -> None:
    """Measure everything, part by part; parts that are there already are kept."""
    run = load_run(folder)
    harder = run.recipe.objects == "varied-mugs"
    path = ASSETS / ("grasping-harder.json" if harder else "grasping.json")
    results = json.loads(path.read_text()) if path.exists() else {}
    if results.get("certificate") != run.certificate.fingerprint:
        interval = [run.certificate.lower, run.certificate.upper]
        kept = {name: results[name] for name in ANY_POLICY if name in results}
        results = {"certificate": run.certificate.fingerprint, "interval": interval, "summary": run.summary}
        results |= kept
    parts = {
        "fresh": lambda: fresh(run, jobs),
        "placements": lambda: placements(run, jobs),
        "crockery": lambda: crockery(run, jobs),
        "expert": lambda: expert(jobs),
        "timesteps": lambda: timesteps(jobs),
        "reflex": reflex,
        "properties": lambda: properties(run, jobs),
        "places": lambda: places(run, jobs),
    }
    if harder:
        parts = {
            "prior_draws": lambda: prior_draws(run, jobs),
            "fresh": lambda: fresh(run, jobs),
            "placements": lambda: harder_placements(run, jobs),
        }
        draw_families(ASSETS / "varied-mugs.png")
    for name, measure in parts.items():
        if name not in results:
            results[name] = measure()
            print(name, json.dumps(results[name]), flush=True)
            path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
