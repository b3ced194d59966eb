"""kill -9 at random moments of `watch`: a file, a rotated file, a spooled pipe, a pipe with ids.

A sender writes a known stream while the watch is killed and started again. At the end every episode must have
been counted once: the state's detector must have the same bytes as one that was never interrupted.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw

PROGRAM = [sys.executable, "-c", "from boundwatch.cli import main; main()", "watch"]
WAYS = ("file", "rotated", "spool", "ids")


def run_way(way: str, kills: int, episodes: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a watch so often while a stream comes in; return what was counted, and whether it is right."""
    rng = random.Random(f"{way} {seed}")
    costs = np.random.default_rng(seed).beta(2, 6, episodes).round(4).tolist()
    lines = [f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in enumerate(costs, 1)]
    certificate, state = folder / "c.json", folder / "state.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.4, delta=0.01).save(certificate)
    command = [*PROGRAM, str(certificate), *_arguments(way, folder), "--state", str(state), "--json"]
    {"file": _files, "rotated": _files, "spool": _spooled, "ids": _numbered}[way](
        command, lines, kills, rng, folder, way == "rotated"
    )
    expected = bw.SequentialTest(bw.Certificate.load(certificate))
    expected.update_many(costs)
    found = json.loads(state.read_text())["content"]["detectors"][""]
    return {
        "kills": kills,
        "episodes": episodes,
        "counted": found["n"],
        "lost_or_doubled": abs(found["n"] - episodes),
        "same_bytes": json.dumps(found) == json.dumps(expected.state_dict()),
    }


def _arguments(way: str, folder: Path) -> list[str]:
    if way == "spool":
        return ["-", "--spool", str(folder / "spool")]
    return ["-", "--id", "n"] if way == "ids" else [str(folder / "log"), "--follow"]


def _wait_until(test: Callable[[], bool], seconds: float = 120) -> None:
    limit = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < limit, "the watch did not finish"
        time.sleep(0.02)


def _counted(folder: Path) -> int:
    try:
        return int(json.loads((folder / "state.json").read_text())["content"]["detectors"][""]["n"])
    except (OSError, ValueError):
        return 0


def _alive(rng: random.Random) -> float:
    """Return how long a watch lives: mostly long enough to start, at times not."""
    return rng.uniform(0.1, 2.5)


def _files(
    command: list[str], lines: list[str], kills: int, rng: random.Random, folder: Path, rotate: bool
) -> None:
    log = folder / "log"
    log.touch()

    def write() -> None:
        """Write in pieces that end in the middle of lines, and rename the file now and then."""
        text, place, rotations = "".join(lines), 0, 0
        piece = max(1, len(text) // (kills * 12))
        while place < len(text):
            with log.open("a") as file:
                file.write(text[place : place + piece])
            place += piece
            if rotate and rng.random() < 0.1 and text[: min(place, len(text))].endswith("\n") is False:
                end = text.find("\n", place) + 1 or len(text)  # a writer finishes its line before it rotates
                with log.open("a") as file:
                    file.write(text[place:end])
                place = end
                for number in range(rotations, 0, -1):
                    (folder / f"log.{number}").rename(folder / f"log.{number + 1}")
                log.rename(folder / "log.1")
                rotations += 1
                log.touch()
            time.sleep(0.05)
        with log.open("a") as file:
            file.write(text[place:])

    # What is rotated away before a watch was ever begun is nobody's loss.
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_until((folder / "state.json").exists)
    first.kill()
    first.wait()
    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(kills):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(_alive(rng))
        process.kill()
        process.wait()
    writer.join()
    last = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _wait_until(lambda: _counted(folder) >= len(lines) or last.poll() is not None)
    last.send_signal(signal.SIGTERM)
    last.communicate()


def _spooled(
    command: list[str], lines: list[str], kills: int, rng: random.Random, _folder: Path, _: bool
) -> None:
    """Let the pipe outlive its readers, as a supervisor does; what is in it waits for the next one."""
    receive, send = os.pipe()

    def write() -> None:
        text = "".join(lines).encode()
        piece = max(1, len(text) // (kills * 12))
        for place in range(0, len(text), piece):
            os.write(send, text[place : place + piece])
            time.sleep(0.05)
        os.close(send)

    writer = threading.Thread(target=write)
    writer.start()
    for _number in range(kills):
        process = subprocess.Popen(
            command, stdin=receive, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(_alive(rng))
        process.kill()
        process.wait()
    last = subprocess.Popen(command, stdin=receive, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    writer.join()
    last.wait(120)
    os.close(receive)


def _numbered(
    command: list[str], lines: list[str], kills: int, rng: random.Random, _folder: Path, _: bool
) -> None:
    """Let the sender repeat what was not printed, and sometimes more."""
    printed = 0
    for attempt in range(kills + 1):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert process.stdin is not None
        start = max(0, printed - rng.choice([0, 0, 5, 50]))
        stop = len(lines) if attempt == kills else min(len(lines), start + len(lines) // kills * 2)
        if attempt < kills:
            threading.Timer(_alive(rng), process.kill).start()
        try:
            process.stdin.write("".join(lines[start:stop]))
            process.stdin.close()
        except OSError:  # killed
            pass
        assert process.stdout is not None
        for line in process.stdout:
            if line.endswith("\n"):
                printed = max(printed, json.loads(line)["n"])
        process.wait()


def campaign(kills: int, episodes: int, seed: int) -> dict[str, Any]:
    """Run every way; each has a quarter of the kills."""
    found = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as folder:
            found[way] = run_way(way, kills // len(WAYS), episodes, seed, Path(folder))
        print(way, found[way], flush=True)
    return found


def run() -> dict[str, Any]:
    """Kill 500 times, and return the numbers."""
    return campaign(500, 20_000, seed=18)


if __name__ == "__main__":
    campaign(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
