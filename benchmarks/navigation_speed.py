"""Speed and memory of the drone's simulation, beside a plain NumPy version in the same run."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from boundwatch.tasks.navigation import TRAINING, Scene, World, place_obstacles
from boundwatch.tasks.navigation.train import Recipe, train

OURS, PLAIN, EVALUATED = 40 * 1024, 4 * 1024, 50_000
REPEATS = 3
GIGABYTE = 2**30


def run() -> dict[str, Any]:
    """Measure, and return the numbers: the best of three, by the clock and by the CPU (others may use it)."""
    world = World()
    rates = {
        "1 worker": best(ours, world, 1),
        "2 workers": best(ours, world, 2),
        "plain NumPy": best(plain_numpy, world),
    }
    with tempfile.TemporaryDirectory() as folder:
        start, cpu = time.perf_counter(), time.process_time()
        train(Recipe(), folder)
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        evaluation = evaluate_in_a_process(folder)
    return {
        "environments_per_second": {name: rate for name, (rate, _) in rates.items()},
        "environments_per_cpu_second": {name: rate for name, (_, rate) in rates.items()},
        "times_faster_than_plain": rates["2 workers"][0] / rates["plain NumPy"][0],
        "training_seconds": seconds,
        "training_cpu_seconds": cpu,
        "evaluated": EVALUATED,
        **evaluation,
    }


def best(draw: Callable[..., int], *arguments: Any) -> tuple[float, float]:
    """Return environments with images per second, and per second of CPU."""
    taken = []
    for _ in range(REPEATS):
        start, cpu = time.perf_counter(), time.process_time()
        count = draw(*arguments)
        taken.append((count / (time.perf_counter() - start), count / (time.process_time() - cpu)))
    by_clock, by_cpu = zip(*taken, strict=True)
    return max(by_clock), max(by_cpu)


def ours(world: World, workers: int) -> int:
    """Draw environments with images; return how many."""
    return sum(len(part.images) for part in world.stream(TRAINING, OURS, seed=0, workers=workers))


def plain_numpy(world: World) -> int:
    """Do the same in plain NumPy on one core: whole batches, single precision, steps near the obstacles."""
    scene: Scene = world.scene
    rng = np.random.default_rng(0)
    paths = np.stack(world.recordings.paths).astype(np.float32)
    near = np.flatnonzero(np.any(np.abs(paths[..., 1] - np.mean(scene.y_range)) < 2.5, axis=(0, 1)))
    paths = paths[:, :, near]
    radii = scene.obstacle_radius + scene.drone_radius
    count = 0
    while count < PLAIN:
        obstacles = place_obstacles(scene, 64, TRAINING.obstacles, rng)
        flown = paths[np.arange(7), world.recordings.draw(64, rng)][:, :, None]
        away_x = flown[..., 0] - obstacles[:, None, :, None, 0]
        away_y = flown[..., 1] - obstacles[:, None, :, None, 1]
        gaps = np.sqrt((away_x * away_x + away_y * away_y).min(axis=(2, 3))) - radii
        obstacles = obstacles[gaps.max(axis=1) > TRAINING.gap_above]
        sin, cos = np.sin(scene.rays).astype(np.float32), np.cos(scene.rays).astype(np.float32)
        along = obstacles[:, :, 0, None] * sin + obstacles[:, :, 1, None] * cos
        across = obstacles[:, :, 0, None] * cos - obstacles[:, :, 1, None] * sin
        chord = scene.obstacle_radius**2 - across * across
        depth = np.where(chord > 0, along - np.sqrt(np.maximum(chord, 0)), np.inf).min(axis=1)
        images = np.minimum(depth[:, None, :] / cos[:, None], scene.depth_range)
        count += len(images)
    return count


def evaluate_in_a_process(folder: str) -> dict[str, float]:
    """Evaluate a policy with images in a fresh process, so that its peak memory is its own."""
    code = (
        "import sys, time; from benchmarks.navigation_speed import peak_gigabytes\n"
        "from boundwatch.tasks.navigation.train import load_run\n"
        f"run = load_run({folder!r}); start = time.perf_counter()\n"
        f"run.deploy('training', {EVALUATED}); print(time.perf_counter() - start, peak_gigabytes())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, peak = map(float, done.stdout.split())
    return {"evaluation_seconds": seconds, "evaluation_peak_gigabytes": peak}


def peak_gigabytes() -> float:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE


def show(result: dict[str, Any]) -> None:
    """Print the numbers."""
    for name, rate in result["environments_per_second"].items():
        cpu_rate = result["environments_per_cpu_second"][name]
        print(
            f"  {name:12} {rate:9.0f} environments per second, images included; "
            f"{cpu_rate:9.0f} per CPU second"
        )
    print(f"  {result['times_faster_than_plain']:.1f} times the plain version")
    seconds, cpu = result["training_seconds"], result["training_cpu_seconds"]
    print(f"  training one threshold: {seconds:.0f} s ({cpu:.0f} s of CPU)")
    print(
        f"  evaluating {result['evaluated']} environments: {result['evaluation_seconds']:.1f} s, "
        f"peak {result['evaluation_peak_gigabytes']:.2f} GB"
    )
