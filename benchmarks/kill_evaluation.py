"""Kill stations of an evaluation with SIGKILL at random moments; no acknowledged outcome may be lost.

One station is the terminal page on a pseudo terminal, whose keys are pressed when a trial is shown; one has
its keys piped; one is a program that calls `next` and `record`. All write to the same file and are killed
and started again. In the end every acknowledged outcome must be in the log once and as it was given, and
after each restart a station must be told the trial that it had, unless its outcome is in the log.
"""

from __future__ import annotations

import multiprocessing
import os
import pty
import random
import re
import select
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import boundwatch as bw
from boundwatch.evaluation import terminal

SEED = 20261119
KILLS = 201
WAYS = ("terminal", "pipe", "program")
LONGEST_LIFE = 0.5  # seconds from the first trial that a station shows to its end
TRIAL = 0.01  # seconds that a program needs for one; without any, it would keep the others from writing
PROCESSES = multiprocessing.get_context("forkserver")
_TOLD = re.compile(r"(?P<shown>Trial )(\d+)(?:\x1b\[0m)? of|(?P<kept>Kept: trial )(\d+), (success|failure)")
FAULTS = ("lost", "twice", "changed", "forgotten")


def succeeds(number: int) -> bool:
    """Return the outcome of a trial."""
    return number % 3 > 0


def _run(path: Path, way: str, tty: str | None, keys: str, screen: str) -> None:
    """Be a station until killed."""
    os.environ["TERM"] = "xterm"
    terminal._PAUSE = 0.0
    for target, name, mode in ((0, tty or keys, os.O_RDWR), (1, tty or screen, os.O_WRONLY)):
        os.dup2(os.open(name, mode), target)
    sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
    with bw.Evaluation.open(path) as evaluation:
        if way != "program":
            terminal.Terminal(evaluation, way).run()
            return
        while (trial := evaluation.next(way)) is not None:
            print(f"Trial {trial.number} of", flush=True)
            time.sleep(TRIAL)
            evaluation.record(trial, success=succeeds(trial.number))
            said = "success" if succeeds(trial.number) else "failure"
            print(f"Kept: trial {trial.number}, {said}", flush=True)


class Station:
    """One life of a station: what it showed and what it acknowledged."""

    def __init__(self, path: Path, way: str, folder: Path) -> None:
        self.way, self.shown, self.kept, self._text = way, 0, dict[int, bool](), ""
        pipes = [str(folder / f"{way}.{name}") for name in ("keys", "screen")]
        for name in pipes:
            if not Path(name).exists():
                os.mkfifo(name)
        self._ends: list[int] = []
        tty = None
        if way == "terminal":
            reads, slave = pty.openpty()
            writes, tty = reads, os.ttyname(slave)
            self._ends = [slave]
        else:
            writes, reads = (os.open(name, os.O_RDWR) for name in pipes)
        self._reads, self._writes, self._ends = reads, writes, [*self._ends, *{reads, writes}]
        self.process = PROCESSES.Process(target=_run, args=(path, way, tty, *pipes), daemon=True)
        self.process.start()

    def go_on(self, patience: float) -> None:
        """Read what was printed, and press the key of each trial that is shown for the first time."""
        while select.select([self._reads], [], [], patience)[0]:
            patience = 0.0
            self._text += os.read(self._reads, 1 << 16).decode("utf-8", "replace")
            end = 0
            for found in _TOLD.finditer(self._text):
                end = found.end()
                if found["kept"]:
                    self.kept[int(found[4])] = found[5] == "success"
                elif int(found[2]) != self.shown:
                    self.shown = int(found[2])
                    os.write(self._writes, b"y" if succeeds(self.shown) else b"n")
            self._text = self._text[end:]

    def kill(self) -> None:
        """End it at once, and read what it printed before."""
        self.process.kill()
        self.process.join()
        self.go_on(0.0)
        for end in self._ends:
            os.close(end)


def campaign(folder: Path, kills: int, *, seed: int = SEED) -> dict[str, Any]:
    """Kill stations so often; return the counts, of which the faults must be 0."""
    path = folder / "eval.db"
    settings: dict[str, Any] = {"tasks": ["mug", "bowl"], "seed": seed, "alpha": 1e-9}
    protocol = bw.Protocol(question="compare", policies=["a", "b"], most_rounds=100_000, **settings)
    bw.Evaluation.start(path, protocol).close()
    PROCESSES.set_forkserver_preload(["benchmarks.kill_evaluation"])
    moments, began = random.Random(seed), time.monotonic()
    kept: dict[int, bool] = {}
    faults = dict.fromkeys(FAULTS, 0)
    for _ in range(0, kills, len(WAYS)):
        stations = [Station(path, way, folder) for way in WAYS]
        waits = time.monotonic() + 60
        while not all(each.shown for each in stations) and time.monotonic() < waits:
            for each in stations:
                each.go_on(0.01)
        ends = time.monotonic() + moments.uniform(0, LONGEST_LIFE)
        while time.monotonic() < ends:
            for each in stations:
                each.go_on(0.002)
        for each in stations:
            each.kill()
            kept |= each.kept
        with bw.Evaluation.open(path) as evaluation:
            evaluation.verify()
            recorded = [
                (trial.number, not outcome.cost) for trial, _, outcome in evaluation.replay().recorded
            ]
            there = dict(recorded)
            faults["twice"] += len(recorded) - len(there)
            faults["lost"] += sum(number not in there for number in kept)
            faults["changed"] += sum(there.get(number, said) != said for number, said in kept.items())
            for each in stations:
                trial = evaluation.next(each.way)
                faults["forgotten"] += each.shown not in there and (
                    trial is None or trial.number != each.shown
                )
    seconds = round(time.monotonic() - began, 1)
    return {"kills": kills, "seconds": seconds, "acknowledged": len(kept), "rows": len(there), **faults}


def run() -> dict[str, Any]:
    """Kill the three of them, sixty-seven times each."""
    with tempfile.TemporaryDirectory() as folder:
        return {"seed": SEED, **campaign(Path(folder), KILLS)}


def show(results: dict[str, Any]) -> None:
    """Print the counts."""
    print(", ".join(f"{name} {value}" for name, value in results.items()))
