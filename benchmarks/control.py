"""Policies for Gymnasium's Pendulum, HalfCheetah and Hopper, and what their episodes cost step by step.

Trained with Stable-Baselines3 (SAC, and PPO for the other two) for a few minutes each and kept in a folder:
they are good enough to have something to lose, and no better. The worlds are changed in three ways: mass,
actuator, sensor.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.trained import CACHE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Plant:
    """One system, how its policy is trained, and how a step becomes a cost."""

    name: str
    steps: int
    """Of training."""
    horizon: int
    """Steps per episode."""
    episodes: int
    """Run in a changed world; three times as many at home."""
    reward_range: tuple[float, float]
    """A step's reward is cut to this range and becomes a cost in [0, 1]; a fallen robot costs 1 per step."""
    mass: float
    """Factor on all masses."""
    actuator: float
    """Factor on what the motors give."""
    sensor: float
    """Standard deviation of the noise on every observation."""


PLANTS = {
    "pendulum": Plant("Pendulum-v1", 8_000, 200, 2000, (-16.3, 0.0), 1.4, 0.7, 0.2),
    "cheetah": Plant("HalfCheetah-v5", 300_000, 200, 300, (-2.0, 12.0), 1.15, 0.85, 0.1),
    "hopper": Plant("Hopper-v5", 300_000, 200, 300, (0.0, 5.0), 1.1, 0.9, 0.03),
}
WORLDS = ("home", "mass", "actuator", "sensor")


def make(plant: Plant) -> Any:
    """Return the environment; nothing is drawn, so what only drawing needs may be missing."""
    for module in ("glfw", "imageio"):
        try:
            __import__(module)
        except ImportError:
            sys.modules[module] = types.ModuleType(module)
    return gymnasium.make(plant.name)


def policy(name: str, seed: int = 0) -> Callable[[Array], Array]:
    """Return the trained policy, from observations to actions; from the folder if it is there."""
    from stable_baselines3 import PPO, SAC
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(1)
    path, plant = CACHE / f"{name}-{seed}.zip", PLANTS[name]
    CACHE.mkdir(parents=True, exist_ok=True)
    if name == "pendulum":
        if not path.exists():
            model: Any = SAC(
                "MlpPolicy",
                make(plant),
                learning_rate=1e-3,
                learning_starts=500,
                buffer_size=plant.steps,
                gamma=0.98,
                policy_kwargs={"net_arch": [64, 64]},
                seed=seed,
                device="cpu",
            )
            model.learn(plant.steps).save(path)
        model = SAC.load(path, device="cpu")
        return lambda seen: model.predict(seen, deterministic=True)[0]
    scale = path.with_suffix(".npz")
    if not scale.exists():
        env = VecNormalize(make_vec_env(lambda: make(plant), 8, seed=seed))
        model = PPO(
            "MlpPolicy",
            env,
            n_steps=512,
            batch_size=256,
            learning_rate=3e-4,
            clip_range=0.2,
            policy_kwargs={"log_std_init": -1.0},
            seed=seed,
            device="cpu",
        )
        model.learn(plant.steps).save(path)
        np.savez(scale, mean=env.obs_rms.mean, variance=env.obs_rms.var)
    model, moments = PPO.load(path, device="cpu"), np.load(scale)
    mean, spread = moments["mean"], np.sqrt(moments["variance"] + 1e-8)
    return lambda seen: model.predict(np.clip((seen - mean) / spread, -10, 10), deterministic=True)[0]


def step_costs(name: str, world: str, seed: int = 0) -> Array:
    """Return step costs, shape (n, horizon), of which each episode's mean is its cost; kept in the folder."""
    n = PLANTS[name].episodes * (3 if world == "home" else 1)
    path = CACHE / f"{name}-{world}-{n}-{seed}.npy"
    if path.exists():
        kept: Array = np.load(path).astype(np.float64)
        return kept
    plant, act = PLANTS[name], policy(name)
    torch.set_num_threads(1)
    rng = np.random.default_rng([seed, n, WORLDS.index(world)])
    found = [_batch(plant, act, world, min(_BATCH, n - start), rng) for start in range(0, n, _BATCH)]
    np.save(path, np.concatenate(found).astype(np.float32))
    return np.concatenate(found)


_BATCH = 100


def _batch(
    plant: Plant, act: Callable[[Array], Array], world: str, n: int, rng: np.random.Generator
) -> Array:
    envs = [make(plant) for _ in range(n)]
    for env in envs:
        if world == "mass" and plant.name == "Pendulum-v1":
            env.unwrapped.m *= plant.mass
        elif world == "mass":
            env.unwrapped.model.body_mass *= plant.mass
            env.unwrapped.model.body_inertia *= plant.mass
    low, high = plant.reward_range
    seen = np.stack([env.reset(seed=int(rng.integers(2**31)))[0] for env in envs])
    costs = np.ones((n, plant.horizon))  # what a fallen robot pays
    standing = np.ones(n, dtype=bool)
    for step in range(plant.horizon):
        if world == "sensor":
            seen = seen + plant.sensor * rng.standard_normal(seen.shape)
        actions = act(seen.astype(np.float32))
        actions = actions * (plant.actuator if world == "actuator" else 1.0)
        seen = np.array(seen)
        for number in np.flatnonzero(standing):
            seen[number], reward, fell, _, _ = envs[number].step(actions[number])
            costs[number, step] = (high - np.clip(reward, low, high)) / (high - low)
            standing[number] = not fell
    return costs
