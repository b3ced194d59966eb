"""Speed of grasping: whole grasps against the bare steps of the physics engine. Times are of this machine."""

from __future__ import annotations

import time
from typing import Any

import mujoco
import numpy as np

from benchmarks.speed import seconds
from boundwatch._support.parallel import in_parallel
from boundwatch.tasks.grasping import Physics, attempt, draw_scenes, expert_grasp, photograph
from boundwatch.tasks.grasping.motion import plan
from boundwatch.tasks.grasping.world import compile_scene

GRASPS = 60


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rng = np.random.default_rng(7)
    scenes = draw_scenes(GRASPS, rng)
    grasps = [
        expert_grasp(scene, float(angle))
        for scene, angle in zip(scenes, rng.uniform(-1.5, 1.5, GRASPS), strict=True)
    ]
    physics = Physics()
    attempt(scenes[0], grasps[0])  # the first one of a process compiles the arm
    whole, steps = 0.0, 0.0
    for scene, grasp in zip(scenes, grasps, strict=True):
        whole += seconds(attempt, scene, grasp)
        steps += seconds(bare_steps, compile_scene(scene, physics), plan(grasp, physics.timestep).controls)
    images = sum(seconds(photograph, scene) for scene in scenes)
    work = [(scene, grasp) for scene, grasp in zip(scenes, grasps, strict=True) for _ in range(8)]
    in_parallel(attempt, work[:8], jobs=2)  # starts the processes
    start = time.perf_counter()
    in_parallel(attempt, work, jobs=2)
    clock = time.perf_counter() - start
    simulated = physics.timestep * sum(len(plan(grasp, physics.timestep).controls) for grasp in grasps)
    return {
        "grasps": GRASPS,
        "milliseconds_a_grasp": 1e3 * whole / GRASPS,
        "milliseconds_an_image": 1e3 * images / GRASPS,
        "grasps_a_second_of_2_processors": 2 * GRASPS / whole,
        "grasps_a_second_by_the_clock_on_2_processes": len(work) / clock,
        "times_faster_than_reality": simulated / whole,
        "times_the_bare_steps": whole / steps,
    }


def bare_steps(model: mujoco.MjModel, controls: np.ndarray) -> None:
    """Step the engine as often as a grasp does, with the same servos and contacts on the table."""
    data = mujoco.MjData(model)
    data.qpos[:9] = controls[0]
    for control in controls:
        data.ctrl[:] = control
        mujoco.mj_step(model, data)


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    for name, value in result.items():
        print(f"{name.replace('_', ' '):<48}{value:>10.1f}")
