"""Policies and episodes, made once and kept on disk: a run that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
import io
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.strangers.tasks import USUAL, Last, Task, World, quadrotors
from boundwatch._support.files import write_bytes

BATCH = 25
SEED = 20_261
Actor = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Pool:
    """The episodes of a policy in a world: failures, what an input detector sees, and the time it took.

    `features` are the mean and the standard deviation of every observation over the episode, as the policy
    saw them; `scale` is the standard deviation of every observation over all steps.
    """

    failures: np.ndarray
    features: np.ndarray
    scale: np.ndarray
    seconds: float


def key(*parts: Any) -> str:
    """Return a name for what follows from these settings."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def train(task: Task, folder: Path) -> tuple[Any, float]:
    """Return the task's policy, and the seconds of processor time that its training took."""
    import torch
    from stable_baselines3 import PPO

    torch.set_num_threads(1)  # the networks are small, and the other processor has its own work
    path = folder / f"{task.name}-policy-{key(task.name, task.training, SEED)}.zip"
    note = path.with_suffix(".json")
    if not note.exists():
        settings = dict(task.training)
        steps, count = settings.pop("steps"), settings.pop("envs")
        began = time.process_time()
        model = PPO("MlpPolicy", training_env(task, count), seed=SEED, device="cpu", **settings)
        model.learn(steps)
        folder.mkdir(parents=True, exist_ok=True)
        model.save(path)
        write_bytes(note, json.dumps({"seconds": time.process_time() - began}).encode())
    return PPO.load(path, device="cpu"), json.loads(note.read_text())["seconds"]


def training_env(task: Task, count: int) -> Any:
    """Return copies of the usual world to train in."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecMonitor

    if task.make is quadrotors:
        return VecMonitor(quadrotors(count))
    return make_vec_env(task.make, count, seed=SEED)


def pool(task: Task, name: str, folder: Path) -> Pool:
    """Return the episodes of the task's policy in a world, from disk if they are there.

    Every episode has its own seed.
    """
    world = next(world for world in (USUAL, *task.worlds) if world.name == name)
    count = task.episodes[0] if world is USUAL else task.episodes[1]
    path = folder / f"{task.name}-{key(task.name, task.training, asdict(world), task.episodes, SEED)}.npz"
    if not path.exists():
        # Sensor noise is in units of what the sensors say in the usual world.
        scale = pool(task, USUAL.name, folder).scale if world.noise else None
        model, _ = train(task, folder)

        def actor(observations: np.ndarray) -> np.ndarray:
            return np.asarray(model.predict(observations.astype(np.float32), deterministic=True)[0])

        began = time.process_time()
        roll = fly if task.make is quadrotors else drive
        failures, features, spread = roll(task, world, actor, count, scale)
        seconds = time.process_time() - began
        file = io.BytesIO()
        np.savez(file, failures=failures, features=features, scale=spread, seconds=seconds)
        write_bytes(path, file.getvalue())
    with np.load(path) as data:
        return Pool(data["failures"], data["features"], data["scale"], float(data["seconds"]))


class Running:
    """Sums over the observations of each running episode."""

    def __init__(self, slots: int, size: int) -> None:
        self.count = np.zeros(slots)
        self.total, self.squares = np.zeros((slots, size)), np.zeros((slots, size))
        self.all = [0.0, np.zeros(size), np.zeros(size)]

    def add(self, observations: np.ndarray, alive: np.ndarray) -> None:
        """Count one observation in every slot that is alive."""
        seen = observations[alive]
        self.count[alive] += 1
        self.total[alive] += seen
        self.squares[alive] += seen**2
        self.all[0] += len(seen)
        self.all[1] += seen.sum(axis=0)
        self.all[2] += (seen**2).sum(axis=0)

    def take(self, slot: int) -> np.ndarray:
        """Return mean and standard deviation of a slot, and begin anew."""
        mean = self.total[slot] / self.count[slot]
        spread = np.sqrt(np.maximum(self.squares[slot] / self.count[slot] - mean**2, 0.0))
        self.count[slot] = 0
        self.total[slot] = self.squares[slot] = 0.0
        return np.concatenate([mean, spread])

    def scale(self) -> np.ndarray:
        """Return the standard deviation of each observation over all steps."""
        count, total, squares = self.all
        return np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0))


class Disturbed:
    """What a world does to the commands of one episode, and to what its sensors say."""

    def __init__(self, world: World, scale: np.ndarray | None, seed: list[int], idle: Any) -> None:
        self.world, self.rng = world, np.random.default_rng(seed)
        self.noise = 0.0 if scale is None else world.noise * scale
        self.queue = deque([idle] * world.delay)
        self.held = idle

    def sense(self, observation: np.ndarray) -> np.ndarray:
        """Return what the policy sees."""
        if not self.world.noise:
            return observation
        return observation + self.noise * self.rng.standard_normal(observation.shape)

    def command(self, action: Any) -> Any:
        """Return what the actuators do."""
        world = self.world
        if world.delay:
            self.queue.append(action)
            action = self.queue.popleft()
        if world.lost and self.rng.random() < world.lost:
            action = self.held
        self.held = action
        return action if world.gain == 1.0 else action * world.gain


def drive(
    task: Task, world: World, actor: Actor, count: int, scale: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run episodes in copies of a Gymnasium environment, side by side: one call of the policy serves all."""
    slots = min(BATCH, count)
    envs = [task.make(**world.make) for _ in range(slots)]
    for env in envs:
        task.change(env, world.physics)
    discrete = hasattr(envs[0].action_space, "n")
    idle = task.idle if discrete else np.zeros(envs[0].action_space.shape, dtype=np.float32)
    size = envs[0].observation_space.shape[0]
    running, seen = Running(slots, size), np.zeros((slots, size))
    episode, rewards = np.arange(slots), np.zeros(slots)
    failures, features = np.zeros(count, dtype=bool), np.zeros((count, 2 * size))
    disturbed: list[Disturbed] = [None] * slots  # type: ignore[list-item]
    salt = int(key(task.name, asdict(world)), 16) % 2**31

    def begin(slot: int) -> None:
        number = int(episode[slot])
        disturbed[slot] = Disturbed(world, scale, [SEED, salt, number], idle)
        first, _ = envs[slot].reset(seed=(salt + number) % 2**31, options=world.start or None)
        seen[slot], rewards[slot] = disturbed[slot].sense(first), 0.0

    for slot in range(slots):
        begin(slot)
    alive, following = np.arange(slots), slots
    while alive.size:
        running.add(seen, alive)
        actions = actor(seen[alive])
        for slot, action in zip(alive.tolist(), actions, strict=True):
            command = disturbed[slot].command(int(action) if discrete else action)
            after, reward, terminated, truncated, info = envs[slot].step(command)
            rewards[slot] += float(reward)
            seen[slot] = disturbed[slot].sense(after)
            if terminated or truncated:
                number = episode[slot]
                failures[number] = task.failed(Last(float(rewards[slot]), bool(terminated), after, info))
                features[number] = running.take(slot)
                if following < count:
                    episode[slot], following = following, following + 1
                    begin(slot)
                else:
                    episode[slot] = -1
        alive = np.flatnonzero(episode >= 0)
    for env in envs:
        env.close()
    return failures, features, running.scale()


def fly(
    task: Task, world: World, actor: Actor, count: int, scale: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fly rotorpy's drones, all episodes in one batch."""
    env = quadrotors(count, **world.make)
    salt = int(key(task.name, asdict(world)), 16) % 2**31
    idle = np.zeros(3, dtype=np.float32)
    disturbed = [Disturbed(world, scale, [SEED, salt, number], idle) for number in range(count)]

    def sense(observations: np.ndarray) -> np.ndarray:
        if not world.noise:
            return observations.astype(float)
        return np.array([one.sense(row) for one, row in zip(disturbed, observations, strict=True)])

    seen = sense(env.reset(seed=salt))
    running = Running(count, seen.shape[1])
    failures, features = np.zeros(count, dtype=bool), np.zeros((count, 2 * seen.shape[1]))
    alive = np.arange(count)
    while alive.size:
        running.add(seen, alive)
        actions = actor(seen)
        commands = np.array([one.command(row) for one, row in zip(disturbed, actions, strict=True)])
        after, rewards, done, infos = env.step(commands)
        for number in alive[done[alive]].tolist():
            info = infos[number]
            final = info["terminal_observation"][number]
            early = not info["TimeLimit.truncated"]
            failures[number] = task.failed(Last(float(rewards[number]), early, final, info))
            features[number] = running.take(number)
        alive = alive[~done[alive]]
        seen = sense(after)
    return failures, features, running.scale()
