"""kill -9 at random moments of training: navigation, grasping, and a task that is installed beside them.

The trainings are small, but run the code of `boundwatch train`. Each is killed, continued and killed again,
until it ends; its files must then be those of a training that was never interrupted, byte for byte, and the
certificate's date that of the first start. Trainings are forked from a process that has imported everything,
so that kills come while they train.

The second part starts trainings of full size and notes how much of their time passes before the first thing
is on the disk from which a killed one would go on.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TASKS = ("navigation", "grasping", "pendulum")
_TICKS = os.sysconf("SC_CLK_TCK")
_EXAMPLE = Path(__file__).parents[1] / "examples" / "pendulum"


def train(task: str, folder: Path, *, small: bool) -> None:
    """Run a training of full size, or one that takes a few seconds."""
    if task == "navigation":
        from boundwatch.tasks.navigation import train

        sizes = {"environments": 100, "prior_environments": 100, "prior_steps": 100, "steps": 20}
        train.train(train.Recipe(**(sizes if small else {})), folder)
    elif task == "grasping":
        from boundwatch.tasks.grasping import train

        sizes = {"demonstrations": 260, "clone_steps": 30, "prior_environments": 8, "environments": 8}
        train.train(train.Recipe(**(sizes | {"steps": 2} if small else {})), folder)
    else:
        _pendulum().train(folder, **({"environments": 16, "steps": 5} if small else {}))


def _pendulum() -> Any:
    sys.path.insert(0, str(_EXAMPLE))
    import pendulum_task

    return pendulum_task


def start(task: str, folder: Path, *, small: bool = True) -> int:
    """Start a training in a process of its own, and return its number."""
    process = os.fork()
    if process == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        try:
            train(task, folder, small=small)
            code = 0
        finally:
            os._exit(code)
    return process


def finished(process: int, within: float = math.inf) -> bool:
    """Let a process have so many seconds of the processor, and return whether it came to its end."""
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            assert status == 0, f"the training ended with {status}"
            return True
        if used(process) >= within:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return False
        time.sleep(0.002)


def used(process: int) -> float:
    """Return the processor time of a process so far: its moments are the same on a busy machine."""
    return sum(map(int, Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) / _TICKS


def time_of_children() -> float:
    """Return the processor time of all processes that have ended."""
    taken = os.times()
    return taken.children_user + taken.children_system


def files(folder: Path, created: str) -> dict[str, bytes]:
    """Return what a training left, without its lock, and with a date that does not depend on the clock."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".lock" not in path.name)
    return {
        str(path.relative_to(folder)): path.read_bytes().replace(created.encode(), b"DATE") for path in found
    }


def run_task(task: str, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill trainings of a task so often, and return whether all ended with the same files."""
    rng = random.Random(f"{task} {seed}")
    began = time_of_children()
    finished(start(task, folder / "whole"))
    length = time_of_children() - began
    expected = files(folder / "whole", _created(folder / "whole"))
    killed = trainings = same = dates = 0
    while killed < kills:
        trainings += 1
        run, first = folder / f"run{trainings}", None
        while True:
            # Most kills come in the first half, so that there are several to each training.
            last = killed >= kills
            if finished(start(task, run), math.inf if last else rng.uniform(0, 0.7 * length)):
                break
            killed += 1
            note = run / "checkpoints" / "started"
            if first is None and note.exists() and note.read_bytes():
                first = note.read_text()
        same += files(run, _created(run)) == expected
        dates += first in (None, _created(run))
    return {"kills": killed, "trainings": trainings, "same_bytes": same, "date_of_first_start": dates}


def _created(folder: Path) -> str:
    return str(json.loads((folder / "certificate.json").read_text())["provenance"]["created"])


def first_checkpoint(task: str, folder: Path) -> dict[str, float]:
    """Return the time, on the clock and of the processor, until a training of full size can be continued."""
    process = start(task, folder, small=False)
    began, checkpoints = time.monotonic(), folder / "checkpoints"
    while not checkpoints.exists() or not any(p.suffix == ".safetensors" for p in checkpoints.iterdir()):
        assert os.waitpid(process, os.WNOHANG) == (0, 0), "the training ended before its first checkpoint"
        time.sleep(0.01)
    taken = {"seconds": round(time.monotonic() - began, 2), "cpu": round(used(process), 2)}
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return taken


def campaign(kills: int, seed: int, *, full: bool = True) -> dict[str, Any]:
    """Kill trainings of all tasks so often together, and time the first checkpoints."""
    # Imported before the processes are forked.
    for module in ("torch", "boundwatch.tasks.navigation.train", "boundwatch.tasks.grasping.train"):
        importlib.import_module(module)
    sys.modules["torch"].set_num_threads(1)
    _pendulum()
    result: dict[str, Any] = {"seed": seed}
    for number, task in enumerate(TASKS):
        share = kills // len(TASKS) + (number < kills % len(TASKS))
        with tempfile.TemporaryDirectory() as name:
            result[task] = run_task(task, share, seed, Path(name))
        if full:
            with tempfile.TemporaryDirectory() as name:
                result[task]["first_checkpoint"] = first_checkpoint(task, Path(name) / "run")
    return result


def run() -> dict[str, Any]:
    """Kill 50 times, and return the numbers."""
    return campaign(50, seed=18)


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    for task in TASKS:
        print(f"{task:<12}{result[task]}")


if __name__ == "__main__":
    show(campaign(int(sys.argv[1]), int(sys.argv[2])))
