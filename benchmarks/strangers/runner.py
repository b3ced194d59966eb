"""Run everything in parts that are kept on disk, two processes at a time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from benchmarks.strangers import detectors, rollouts
from benchmarks.strangers.tasks import TASKS, USUAL
from boundwatch._support.files import write_bytes

PACKAGES = (
    "gymnasium", "highway-env", "rotorpy", "mujoco-core", "stable-baselines3", "torch",
    "mapie", "river",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What a run consists of.

    Attributes
    ----------
    tasks
        Names of tasks.
    references
        Numbers of episodes behind a certificate.
    horizon
        Episodes of a stream.
    runs
        Streams per world, and as many others to tune with.
    """

    tasks: tuple[str, ...] = tuple(TASKS)
    references: tuple[int, ...] = (100, 1000)
    horizon: int = 100
    runs: int = 100


FULL = Settings()
QUICK = Settings(tasks=("CartPole", "Pendulum", "InvertedPendulum"))  # the same numbers as in the full run


def parts(settings: Settings) -> int:
    """Return how many parts a run has."""
    return sum(3 + len(TASKS[name].worlds) for name in settings.tasks)


def run(settings: Settings, folder: Path, *, jobs: int, done: Callable[[str], None]) -> dict[str, Any]:
    """Train, roll out and compare; return the numbers."""

    def stage(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> None:
        tasks = (delayed(function)(folder, *call) for call in calls)
        for what in Parallel(n_jobs=jobs, return_as="generator_unordered")(tasks):
            done(what)

    names = settings.tasks
    stage(_train, [(name,) for name in names])
    stage(_roll, [(name, USUAL.name) for name in names])
    stage(_roll, [(name, world.name) for name in names for world in TASKS[name].worlds])
    stage(_compare, [(name, settings) for name in names])
    return {
        "seed": rollouts.SEED,
        "level": detectors.LEVEL,
        "horizon": settings.horizon,
        "runs": settings.runs,
        "references": list(settings.references),
        "versions": {name: version(name) for name in PACKAGES if _installed(name)},
        "tasks": [_result(folder, name, settings) for name in names],
    }


def _installed(name: str) -> bool:
    try:
        version(name)
    except ImportError:
        return False
    return True


def _train(folder: Path, name: str) -> str:
    rollouts.train(TASKS[name], folder)
    return f"{name}: policy"


def _roll(folder: Path, name: str, world: str) -> str:
    rollouts.pool(TASKS[name], world, folder)
    return f"{name}: {world}"


def _data(folder: Path, name: str) -> detectors.Data:
    task = TASKS[name]
    others = {world.name: rollouts.pool(task, world.name, folder) for world in task.worlds}
    return detectors.Data(rollouts.pool(task, USUAL.name, folder), others)


def _compare(folder: Path, name: str, settings: Settings) -> str:
    path = _path(folder, name, settings)
    if not path.exists():
        began = time.process_time()
        sizes = {"references": settings.references, "horizon": settings.horizon, "runs": settings.runs}
        found = detectors.compare(_data(folder, name), **sizes)
        content = {"detectors": found, "seconds": time.process_time() - began}
        write_bytes(path, json.dumps(content).encode())
    return f"{name}: compared"


def _path(folder: Path, name: str, settings: Settings) -> Path:
    task = TASKS[name]
    worlds = [asdict(world) for world in task.worlds]
    source = Path(detectors.__file__).read_text()
    parts = (
        name,
        task.training,
        worlds,
        task.episodes,
        settings.references,
        settings.horizon,
        settings.runs,
        source,
    )
    return folder / f"{name}-compared-{rollouts.key(*parts)}.json"


def _result(folder: Path, name: str, settings: Settings) -> dict[str, Any]:
    task, data = TASKS[name], _data(folder, name)
    compared = json.loads(_path(folder, name, settings).read_text())
    chosen = {world.name: world.hurts for world in (USUAL, *task.worlds)}
    _, training = rollouts.train(task, folder)
    usual = data.failures[USUAL.name]
    certificates = {}
    for size in settings.references:
        promise = detectors.certificate(usual[:size])
        certificates[str(size)] = [promise.lower, promise.upper]
    worlds = {}
    for world, failures in data.failures.items():
        rate, count = float(failures.mean()), failures.size
        worlds[world] = {"chosen": chosen[world], "episodes": count, "failure_rate": rate}
    return {
        "task": name,
        "package": task.package,
        "failure": task.failure,
        "training_seconds": training,
        "rollout_seconds": sum(pool.seconds for pool in data.pools.values()),
        "comparison_seconds": compared["seconds"],
        "certificates": certificates,
        "worlds": worlds,
        "detectors": compared["detectors"],
    }
