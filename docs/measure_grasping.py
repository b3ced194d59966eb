"""Measure the numbers in docs/grasping.md: ``python docs/measure_grasping.py RUN [JOBS]``, 15,000 grasps.

RUN is what ``boundwatch train grasping`` wrote. Every setting below, of the detectors too, was fixed before
the first measurement.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw
from boundwatch.parallel import in_parallel
from boundwatch.tasks.grasping import Physics, attempt, draw_scenes, expert_grasp
from boundwatch.tasks.grasping.motion import Grasp
from boundwatch.tasks.grasping.runs import Run, load_run

RESULTS = Path(__file__).parent / "assets" / "grasping.json"
FRESH, TABLE, DATASETS, TRIALS, STREAM = 2000, 500, 20, 10, 25
FRICTIONS = (0.1, 0.2, 0.3, 0.4, 0.5)
NOISY = 500
NOISE = {"small": (0.01, 0.01, 0.2), "large": (0.02, 0.015, 0.3)}
"""Standard deviations added to the expert's grasp: metres along x and y, metres along z, radians."""


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
        interval = bw.ConfidenceInterval(run.certificate, false_positive=0.05, false_negative=0.05, tail=tail)
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
    for objects in ("bowls", "wide-bowls"):
        rng = np.random.default_rng([0, len(objects)])
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
    for name, (across, up, turn) in NOISE.items():
        rng = np.random.default_rng([1, len(name)])
        work = []
        for scene in draw_scenes(NOISY, rng):
            grasp = expert_grasp(scene, float(rng.uniform(-0.5 * np.pi, 0.5 * np.pi)))
            x, y, z, yaw = rng.normal(0.0, (across, across, up, turn)).tolist()
            work.append((scene, Grasp(grasp.x + x, grasp.y + y, max(grasp.z + z, 0.005), grasp.yaw + yaw)))
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


def main(folder: str, jobs: int) -> None:
    """Measure everything, part by part; parts that are there already are kept."""
    run = load_run(folder)
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if results.get("certificate") != run.certificate.fingerprint:
        interval = [run.certificate.lower, run.certificate.upper]
        results = {"certificate": run.certificate.fingerprint, "interval": interval, "summary": run.summary}
    parts = {
        "fresh": lambda: fresh(run, jobs),
        "placements": lambda: placements(run, jobs),
        "crockery": lambda: crockery(run, jobs),
        "expert": lambda: expert(jobs),
        "timesteps": lambda: timesteps(jobs),
    }
    for name, measure in parts.items():
        if name not in results:
            results[name] = measure()
            print(name, json.dumps(results[name]), flush=True)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)
