"""The environments, how a policy for each is trained, what counts as failure, and the changed worlds.

Nothing here was written by us except the numbers: the strength of each change was chosen in a pilot of 100
episodes per world on other seeds, for the failure rate only, before any detector saw an episode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Info = dict[str, Any]


@dataclass(frozen=True)
class World:
    """One place to run in, as plain data, so that its episodes can be kept under the hash of it.

    Attributes
    ----------
    name
        As the tables show it.
    hurts
        What it was chosen for: "no" (looks different), "weak" or "strong".
    noise
        Standard deviation added to each observation, in units of its own in the usual world.
    delay
        Steps between a command and its effect.
    gain
        Factor on continuous commands.
    lost
        Chance that a command is lost and the previous one holds.
    make, physics, start
        Arguments for the environment, for the task's `change`, and for `reset`.
    """

    name: str
    hurts: str = "no"
    noise: float = 0.0
    delay: int = 0
    gain: float = 1.0
    lost: float = 0.0
    make: dict[str, Any] = field(default_factory=dict)
    physics: dict[str, float] = field(default_factory=dict)
    start: dict[str, Any] = field(default_factory=dict)


USUAL = World("usual")


@dataclass(frozen=True)
class Last:
    """What is left of an episode: sum of rewards, whether it ended early, the last observation and info."""

    rewards: float
    terminated: bool
    observation: np.ndarray
    info: Info


@dataclass(frozen=True)
class Task:
    """An environment of somebody else.

    Attributes
    ----------
    name, package
        As the tables show it; where it comes from.
    make
        From a world's arguments to an environment with flat observations.
    failure
        When an episode counts as failed, in words.
    failed
        The same as a function.
    training
        Settings of PPO; ``steps`` and ``envs`` are ours.
    worlds
        Three changes that hurt at two strengths, and two that only look different.
    change
        Sets the physics of a world in an environment.
    idle
        The discrete command that stands for "none yet" while a delay fills up.
    episodes
        In the usual world and in each other.
    """

    name: str
    package: str
    make: Callable[..., Any]
    failure: str
    failed: Callable[[Last], bool]
    training: dict[str, Any]
    worlds: tuple[World, ...]
    change: Callable[[Any, dict[str, float]], None]
    idle: int = 0
    episodes: tuple[int, int] = (1300, 200)


def set_attributes(env: Any, physics: dict[str, float]) -> None:
    """Set numbers that the environment keeps as attributes."""
    for name, value in physics.items():
        assert hasattr(env.unwrapped, name), name
        setattr(env.unwrapped, name, value)


def set_cart_pole(env: Any, physics: dict[str, float]) -> None:
    """Set the numbers of CartPole, and those that it derives from them."""
    set_attributes(env, physics)
    pole = env.unwrapped
    pole.total_mass = pole.masspole + pole.masscart
    pole.polemass_length = pole.masspole * pole.length


def scale_mujoco(env: Any, physics: dict[str, float]) -> None:
    """Multiply masses (with inertia), damping, gears, friction or gravity of a MuJoCo model."""
    model = env.unwrapped.model
    for name, factor in physics.items():
        if name == "mass":
            model.body_mass[:] *= factor
            model.body_inertia[:] *= factor
        else:
            array = {
                "damping": model.dof_damping,
                "gear": model.actuator_gear,
                "friction": model.geom_friction,
                "gravity": model.opt.gravity,
            }[name]
            array[:] *= factor


def plain(name: str, **usual: Any) -> Callable[..., Any]:
    """Return what makes a registered environment."""

    def make(**changed: Any) -> Any:
        import gymnasium

        return gymnasium.make(name, **(usual | changed))

    return make


def reacher(**changed: Any) -> Any:
    """Return Reacher; ``side=1`` mirrors its targets into the half-plane x > 0."""
    import gymnasium

    side = changed.pop("side", 0)
    env = gymnasium.make("Reacher-v5", **changed)
    if side:
        arm = env.unwrapped
        draw = arm.reset_model

        def reset_model() -> Any:
            draw()
            position = arm.data.qpos.copy()
            position[-2] = abs(position[-2])
            arm.goal = position[-2:]
            arm.set_state(position, arm.data.qvel.copy())
            return arm._get_obs()

        arm.reset_model = reset_model
    return env


def highway(**changed: Any) -> Any:
    """Return highway-fast with a lidar, fewer cars and a shorter drive than its default, for speed."""
    import gymnasium
    import highway_env

    gymnasium.register_envs(highway_env)
    lidar = {"type": "LidarObservation", "cells": 16, "maximum_range": 60, "normalize": True}
    usual = {"vehicles_count": 8, "lanes_count": 3, "duration": 10, "observation": lidar}
    env = gymnasium.make("highway-fast-v0", config=usual | changed)
    return gymnasium.wrappers.FlattenObservation(env)


def quadrotors(count: int, *, wind: float = 0.0, start: float = 2.0, payload: float = 0.0) -> Any:
    """Return so many of rotorpy's drones in one batch; commands are velocities.

    A payload, as a share of the weight, is one that the drone's own controller does not know of.
    """
    import torch
    from rotorpy.learning.quadrotor_environments import QuadrotorEnv
    from rotorpy.vehicles.crazyflie_params import quad_params
    from rotorpy.wind.default_winds import BatchedConstantWind

    state = {name: torch.zeros(count, 3).double() for name in ("x", "v", "w", "wind")}
    state["q"] = torch.tensor([0.0, 0.0, 0.0, 1.0]).repeat(count, 1).double()
    state["rotor_speeds"] = torch.full((count, 4), 1788.53).double()
    env = QuadrotorEnv(
        count,
        state,
        quad_params=quad_params,
        control_mode="cmd_vel",
        max_time=3,
        sim_rate=50,
        wind_profile=BatchedConstantWind(count, wind, 0.0, 0.0),
        reset_options={"initial_states": "random", "pos_bound": start, "vel_bound": 0, "params": "fixed"},
    )
    env.quad_params.weight[:, -1] *= 1 + payload
    return env


def not_terminated(last: Last) -> bool:
    """Tell whether the episode ended before its time: a fall."""
    return last.terminated


def below(threshold: float) -> Callable[[Last], bool]:
    """Return whether the rewards of an episode add up to less than this."""
    return lambda last: last.rewards < threshold


def pair(name: str, weak: dict[str, Any], strong: dict[str, Any]) -> tuple[World, World]:
    """Return a change that hurts, at two strengths."""
    return World(f"{name}, weak", "weak", **weak), World(f"{name}, strong", "strong", **strong)


TASKS = {
    task.name: task
    for task in (
        Task(
            "CartPole",
            "gymnasium",
            plain("CartPole-v1"),
            "the pole falls or the cart leaves within 500 steps",
            not_terminated,
            {
                "steps": 50_000,
                "envs": 8,
                "n_steps": 32,
                "batch_size": 256,
                "n_epochs": 20,
                "gae_lambda": 0.8,
                "gamma": 0.98,
                "learning_rate": 1e-3,
            },
            (
                *pair("longer pole", {"physics": {"length": 0.74}}, {"physics": {"length": 0.77}}),
                *pair("lost commands", {"lost": 0.22}, {"lost": 0.27}),
                *pair("sensor noise", {"noise": 0.7}, {"noise": 0.8}),
                World("starts on the left", start={"low": -0.05, "high": 0.0}),
                World("shorter pole", physics={"length": 0.4}),
            ),
            set_cart_pole,
        ),
        Task(
            "Acrobot",
            "gymnasium",
            plain("Acrobot-v1"),
            "return below -100, the registered threshold",
            below(-100),
            {
                "steps": 150_000,
                "envs": 16,
                "n_steps": 256,
                "batch_size": 256,
                "n_epochs": 4,
                "gae_lambda": 0.94,
                "gamma": 0.99,
                "learning_rate": 1e-3,
            },
            (
                *pair("heavier link", {"physics": {"LINK_MASS_2": 1.1}}, {"physics": {"LINK_MASS_2": 1.5}}),
                *pair("lost commands", {"lost": 0.4}, {"lost": 0.6}),
                *pair("delay", {"delay": 1}, {"delay": 2}),
                World("starts on one side", start={"low": 0.0, "high": 0.1}),
                World("lighter link", physics={"LINK_MASS_2": 0.98}),
            ),
            set_attributes,
            idle=1,
        ),
        Task(
            "Pendulum",
            "gymnasium",
            plain("Pendulum-v1", max_episode_steps=120),
            "more than 18 degrees from upright after 120 steps (our criterion)",
            lambda last: float(last.observation[0]) < 0.95,
            {
                "steps": 100_000,
                "envs": 4,
                "n_steps": 1024,
                "batch_size": 256,
                "n_epochs": 10,
                "gamma": 0.9,
                "learning_rate": 1e-3,
                "use_sde": True,
                "sde_sample_freq": 4,
            },
            (
                *pair("sensor noise", {"noise": 0.2}, {"noise": 0.3}),
                *pair("delay", {"delay": 2}, {"delay": 3}),
                *pair("weak motor", {"gain": 0.75}, {"gain": 0.7}),
                World("starts lower", start={"x_init": 3.14, "y_init": 0.3}),
                World("lighter", physics={"m": 0.95}),
            ),
            set_attributes,
        ),
        Task(
            "LunarLander",
            "gymnasium (Box2D)",
            plain("LunarLander-v3"),
            "return below 200, the registered threshold",
            below(200),
            {
                "steps": 400_000,
                "envs": 16,
                "n_steps": 512,
                "batch_size": 256,
                "n_epochs": 6,
                "gae_lambda": 0.98,
                "gamma": 0.999,
                "ent_coef": 0.01,
                "learning_rate": 1e-3,
            },
            (
                *pair(
                    "wind",
                    {"make": {"enable_wind": True, "wind_power": 8.0}},
                    {"make": {"enable_wind": True, "wind_power": 16.0}},
                ),
                *pair("lost commands", {"lost": 0.6}, {"lost": 0.8}),
                *pair("sensor noise", {"noise": 0.7}, {"noise": 1.2}),
                World("weaker gravity", make={"gravity": -9.5}),
                World("a breeze", make={"enable_wind": True, "wind_power": 1.0, "turbulence_power": 0.1}),
            ),
            set_attributes,
        ),
        Task(
            "InvertedPendulum",
            "gymnasium (MuJoCo)",
            plain("InvertedPendulum-v5", max_episode_steps=200),
            "the pole falls within 200 steps",
            not_terminated,
            {"steps": 60_000, "envs": 8, "n_steps": 64, "batch_size": 128, "n_epochs": 10, "gamma": 0.98},
            (
                *pair("gravity", {"physics": {"gravity": 4.6}}, {"physics": {"gravity": 5.2}}),
                *pair("lost commands", {"lost": 0.45}, {"lost": 0.5}),
                *pair("sensor noise", {"noise": 22.0}, {"noise": 26.0}),
                World("starts closer to upright", make={"reset_noise_scale": 0.002}),
                World("lighter", physics={"mass": 0.8}),
            ),
            scale_mujoco,
        ),
        Task(
            "Reacher",
            "gymnasium (MuJoCo)",
            reacher,
            "more than 5 cm from the target at the end (our criterion)",
            lambda last: float(np.linalg.norm(last.observation[8:10])) > 0.05,
            {
                "steps": 200_000,
                "envs": 16,
                "n_steps": 128,
                "batch_size": 256,
                "n_epochs": 8,
                "gamma": 0.95,
                "learning_rate": 1e-3,
            },
            (
                *pair("weak motors", {"gain": 0.3}, {"gain": 0.2}),
                *pair("delay", {"delay": 3}, {"delay": 4}),
                *pair("sensor noise", {"noise": 0.8}, {"noise": 1.6}),
                World("targets on the right", make={"side": 1}),
                World("lighter arm", physics={"mass": 0.8}),
            ),
            scale_mujoco,
        ),
        Task(
            "highway",
            "highway-env",
            highway,
            "a crash within 10 s",
            lambda last: bool(last.info["crashed"]),
            {
                "steps": 8_000,
                "envs": 8,
                "n_steps": 64,
                "batch_size": 64,
                "n_epochs": 10,
                "gamma": 0.8,
                "learning_rate": 1e-3,
            },
            (
                *pair(
                    "denser traffic", {"make": {"vehicles_density": 1.5}}, {"make": {"vehicles_density": 2.0}}
                ),
                *pair("lost commands", {"lost": 0.7}, {"lost": 0.95}),
                *pair("tailgating", {"make": {"ego_spacing": 1.1}}, {"make": {"ego_spacing": 0.8}}),
                World("fewer cars", make={"vehicles_count": 6}),
                World("four lanes", make={"lanes_count": 4}),
            ),
            set_attributes,
            idle=1,
            episodes=(1150, 130),
        ),
        Task(
            "quadrotor",
            "rotorpy",
            quadrotors,
            "more than 0.5 m from the hover point after 3 s, or out of bounds (our criterion)",
            lambda last: last.terminated or float(np.linalg.norm(last.observation[:3])) > 0.5,
            {
                "steps": 400_000,
                "envs": 64,
                "n_steps": 64,
                "batch_size": 512,
                "n_epochs": 10,
                "gamma": 0.97,
                "learning_rate": 1e-3,
                "policy_kwargs": {"log_std_init": -1.0},
            },
            (
                *pair("wind", {"make": {"wind": 8.0}}, {"make": {"wind": 14.0}}),
                *pair("payload", {"make": {"payload": 0.15}}, {"make": {"payload": 0.3}}),
                *pair("delay", {"delay": 10}, {"delay": 20}),
                World("starts closer", make={"start": 1.5}),
                World("a breeze", make={"wind": 0.5}),
            ),
            set_attributes,
        ),
    )
}
