"""kill -9 at random moments of `watch`: a file, a rotated file, a spooled pipe, a pipe with ids.

A sender writes a known stream while the watch is killed and started again. At the end every episode must have
been counted once: the state's detector must have the same bytes as one that was never interrupted.

Watches are forked from a process that has imported everything, so that kills come while lines are counted
and not while Python starts.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw

WAYS = ("file", "rotated", "spool", "ids")
LIFE = 0.5  # seconds that a watch lives at most
_SERVER = """
import json, os, signal, sys
from boundwatch.cli import main
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        stdin = order["stdin"]
        os.dup2(os.open(stdin, os.O_RDONLY) if isinstance(stdin, str) else stdin, 0)
        os.dup2(os.open(order["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stdin, sys.stdout, sys.argv = os.fdopen(0), os.fdopen(1, "w"), ["boundwatch", *order["arguments"]]
        try:
            main()
        except BaseException:
            pass
        sys.stdout.flush()
        os._exit(0)
    print(child, flush=True)
    _, status = os.waitpid(child, 0)
    print(status, flush=True)
"""


class Watches:
    """Starts watches, one at a time."""

    def __init__(self, arguments: list[str], folder: Path, keep: int | None = None) -> None:
        self.arguments = arguments
        self.output = folder / "printed"
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=() if keep is None else (keep,),
        )
        self.wait()  # until it is ready

    def start(self, stdin: int | str = os.devnull) -> int:
        """Start a watch and return its process."""
        order = {"arguments": self.arguments, "stdin": stdin, "stdout": str(self.output)}
        self._server.stdin.write(json.dumps(order) + "\n")  # type: ignore[union-attr]
        self._server.stdin.flush()  # type: ignore[union-attr]
        return int(self._server.stdout.readline())  # type: ignore[union-attr]

    def wait(self) -> None:
        """Wait for its end."""
        self._server.stdout.readline()  # type: ignore[union-attr]

    def kill(self, process: int, after: float) -> None:
        """Kill it after so many seconds, unless it has ended by then."""
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        self.wait()

    def close(self) -> None:
        """End."""
        self._server.communicate()


def run_way(way: str, kills: int, episodes: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a watch so often while a stream comes in; return what was counted, and whether it is right."""
    rng = random.Random(f"{way} {seed}")
    costs = np.random.default_rng(seed).beta(2, 6, episodes).round(4).tolist()
    lines = [f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in enumerate(costs, 1)]
    certificate, state = folder / "c.json", folder / "state.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.4, delta=0.01).save(certificate)
    arguments = ["watch", str(certificate), *_arguments(way, folder), "--state", str(state), "--json"]
    ways: dict[str, Callable[..., int]] = {
        "file": _followed,
        "rotated": _followed,
        "spool": _spooled,
        "ids": _numbered,
    }
    busy = ways[way](arguments, lines, kills, rng, folder)
    expected = bw.SequentialTest(bw.Certificate.load(certificate))
    expected.update_many(costs)
    found = json.loads(state.read_text())["content"]["detectors"][""]
    return {
        "kills": kills,
        "kills_in_mid_stream": busy,
        "episodes": episodes,
        "lost_or_doubled": abs(found["n"] - episodes),
        "same_bytes": json.dumps(found) == json.dumps(expected.state_dict()),
    }


def _arguments(way: str, folder: Path) -> list[str]:
    if way == "spool":
        return ["-", "--spool", str(folder / "spool")]
    name = "log" if way == "file" else "log.jsonl"
    return ["-", "--id", "n"] if way == "ids" else [str(folder / name), "--follow"]


def _counted(folder: Path) -> int:
    try:
        return int(json.loads((folder / "state.json").read_text())["content"]["detectors"][""]["n"])
    except (OSError, ValueError):
        return 0


def _wait_until(test: Callable[[], bool]) -> None:
    limit = time.monotonic() + 900  # a machine may be busy with other things
    while not test():
        assert time.monotonic() < limit, "the watch did not finish"
        time.sleep(0.02)


def _pieces(lines: list[str], kills: int) -> Iterator[str]:
    """Yield the stream in pieces that end in the middle of lines, at a pace that outlasts the kills."""
    text = "".join(lines)
    size = max(1, len(text) // (kills * 15))
    for place in range(0, len(text), size):
        yield text[place : place + size]
        time.sleep(0.02)


def _followed(arguments: list[str], lines: list[str], kills: int, rng: random.Random, folder: Path) -> int:
    log = Path(arguments[2])
    log.touch()
    watches = Watches(arguments, folder)
    process = watches.start()
    # What is rotated away before a watch was ever begun is nobody's loss.
    _wait_until((folder / "state.json").exists)
    watches.kill(process, 0)

    def write() -> None:
        rest, rotations = "", 0
        for piece in _pieces(lines, kills):
            with log.open("a") as file:
                if log.name == "log" or rng.random() > 0.05:
                    file.write(rest + piece)
                    rest = ""
                    continue
                # A writer ends its line before it rotates.
                whole, newline, after = (rest + piece).rpartition("\n")
                file.write(whole + newline)
                rest = after
            if newline:
                for number in range(rotations, 0, -1):
                    (folder / f"{log.name}.{number}").rename(folder / f"{log.name}.{number + 1}")
                log.rename(folder / f"{log.name}.1")
                rotations += 1
                log.touch()
        with log.open("a") as file:
            file.write(rest)

    writer = threading.Thread(target=write)
    writer.start()
    busy = 0
    for _ in range(kills):
        watches.kill(watches.start(), rng.uniform(0, LIFE))
        busy += writer.is_alive()
    writer.join()
    process = watches.start()
    _wait_until(lambda: _counted(folder) >= len(lines))
    watches.kill(process, 0)
    watches.close()
    return busy


def _spooled(arguments: list[str], lines: list[str], kills: int, rng: random.Random, folder: Path) -> int:
    """Let the pipe outlive its readers, as a supervisor does; what is in it waits for the next one."""
    receive, send = os.pipe()
    watches = Watches(arguments, folder, keep=receive)

    def write() -> None:
        for piece in _pieces(lines, kills):
            os.write(send, piece.encode())
        os.close(send)

    writer = threading.Thread(target=write)
    writer.start()
    busy = 0
    for _ in range(kills):
        watches.kill(watches.start(receive), rng.uniform(0, LIFE))
        busy += writer.is_alive()
    watches.start(receive)
    watches.wait()
    writer.join()
    os.close(receive)
    watches.close()
    return busy


def _numbered(arguments: list[str], lines: list[str], kills: int, rng: random.Random, folder: Path) -> int:
    """Let the sender repeat what was not printed, and sometimes more."""
    watches = Watches(arguments, folder)
    printed = busy = 0
    for attempt in range(kills + 1):
        fifo = folder / f"fifo{attempt}"
        os.mkfifo(fifo)
        start = max(0, printed - rng.choice([0, 0, 5, 50]))
        threading.Thread(target=_send, args=(fifo, lines[start:]), daemon=True).start()
        process = watches.start(str(fifo))
        if attempt < kills:
            watches.kill(process, rng.uniform(0, LIFE))
        else:
            watches.wait()
        for line in watches.output.read_text().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                printed = max(printed, json.loads(line)["n"])
        busy += printed < len(lines)
    watches.close()
    return busy


def _send(fifo: Path, lines: list[str]) -> None:
    with contextlib.suppress(BrokenPipeError), fifo.open("w") as pipe:
        for place in range(0, len(lines), 5):
            pipe.write("".join(lines[place : place + 5]))
            pipe.flush()
            time.sleep(0.004)


def campaign(kills: int, episodes: int, seed: int) -> dict[str, Any]:
    """Run every way; each has a quarter of the kills."""
    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            found[way] = run_way(way, kills // len(WAYS), episodes, seed, Path(folder))
    return found


def run() -> dict[str, Any]:
    """Kill 500 times, and return the numbers."""
    return campaign(500, 20_000, seed=18)


def show(result: dict[str, Any]) -> None:
    """Print what was counted each way."""
    for way, found in result.items():
        print(f"{way:<10}{found}")


if __name__ == "__main__":
    show(campaign(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
