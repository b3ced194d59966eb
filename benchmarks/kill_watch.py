"""kill -9 at random moments of a watch: of files, as they are rewritten, rotated and emptied, and of pipes.

A sender writes a known stream while the watch is killed and started again. At the end every episode must have
been counted once: the state's detector must have the same bytes as one that was never interrupted.

Watches are forked from a process that has imported everything, so that kills come while lines are counted
and not while Python starts.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw
from boundwatch.episodes.declared import Declared
from boundwatch.watching.loop import Counted, Watch, build_detectors
from boundwatch.watching.resuming import resume
from boundwatch.watching.store import Store
from boundwatch.watching.trials import TrialReader

WAYS = ("file", "renamed", "numbered", "dated", "emptied", "ids")
LIFE = 0.5  # seconds that a watch lives at most
STALL = 30.0  # seconds without progress after which a watch, or what starts them, is given up
_SERVER = """
import json, os, select, signal, sys
from benchmarks.kill_watch import watch
print("ready", flush=True)
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        stdin = order["stdin"]
        os.dup2(os.open(stdin, os.O_RDONLY), 0)
        os.dup2(os.open(order["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(os.open(order["stderr"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        sys.stdin, sys.stdout = os.fdopen(0), os.fdopen(1, "w")
        try:
            watch(*order["arguments"])
        except BaseException as error:
            os.write(2, (str(error) + chr(10)).encode())
        sys.stdout.flush()
        os._exit(0)
    print(child, flush=True)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if select.select([0], [], [], 0.01)[0]:  # nobody asks before the answer: whoever did is gone
            os.kill(child, signal.SIGKILL)
    print(ended[1], flush=True)
"""


def watch(certificate: str, stream: str, state: str, number: str | None) -> None:
    """Count a stream as the command does, and print what was counted."""
    loaded = bw.Certificate.load(certificate)
    with Store(state, "watch") as store:
        reader = TrialReader(Declared.of(id=number), stream)
        session = Watch(build_detectors(loaded, "sequential-test", {}), stream, store, reader)
        resume(session, {})
        source = session.open(stream, follow=stream != "-")
        print(json.dumps({"n": session.episodes}), flush=True)  # which file it is, is in the state by now
        for events in session.run(source):
            for event in events:
                if isinstance(event, Counted):
                    print(json.dumps({"n": event.finding.n}), flush=True)


class Watches:
    """Starts watches, one at a time."""

    def __init__(self, arguments: list[str | None], folder: Path) -> None:
        self.arguments = arguments
        self.output, self.errors = folder / "printed", folder / "errors"
        self.output.touch()  # the first watch may be killed before it makes it
        self._server = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # what was read ahead would not be waited for
        )
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._orders, self._answers = self._server.stdin, self._server.stdout
        self._answer()  # it is ready

    def start(self, stdin: str = os.devnull) -> int:
        """Start a watch and return its process."""
        order = {"arguments": self.arguments, "stdin": stdin}
        order |= {"stdout": str(self.output), "stderr": str(self.errors)}
        self._orders.write(json.dumps(order).encode() + b"\n")
        return int(self._answer())

    def counted(self) -> int:
        """Return how many were printed; -1 if nothing was. What is printed is in the state."""
        try:
            return int(json.loads(self.output.read_text().splitlines()[-1])["n"])
        except (OSError, ValueError, IndexError):
            return -1

    def kill(self, process: int, after: float = 0) -> None:
        """Kill it after so many seconds, unless it has ended by then."""
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
        self._answer()

    def finish(self, process: int, enough: float = math.inf) -> None:
        """Let it count so many, or end by itself; kill it then, or when it stalls: the rest is lost."""
        best, limit = -2, 0.0
        while not self._has_answered(0.02) and best < enough:
            if (count := self.counted()) > best:
                best, limit = count, time.monotonic() + STALL
            if time.monotonic() > limit:
                break
        self.kill(process)

    def close(self) -> None:
        """End."""
        self._server.communicate(timeout=STALL)

    def _has_answered(self, seconds: float) -> bool:
        return bool(select.select([self._answers], [], [], seconds)[0])

    def _answer(self) -> bytes:
        if not self._has_answered(STALL):
            self._server.kill()
            raise TimeoutError("the process that starts watches does not answer")
        return self._answers.readline()


def run_way(way: str, kills: int, episodes: int, seed: int, folder: Path) -> dict[str, Any]:
    """Kill a watch so often while a stream comes in; return what was counted, and whether it is right."""
    rng = random.Random(f"{way} {seed}")
    costs = np.random.default_rng(seed).beta(2, 6, episodes).round(4).tolist()
    lines = [f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in enumerate(costs, 1)]
    certificate, state = folder / "c.json", folder / "state"
    bw.Certificate.from_bounds(lower=0.1, upper=0.4, delta=0.01).save(certificate)
    stream = "-" if way == "ids" else str(folder / "log.jsonl")
    arguments = [str(certificate), stream, str(state), "n" if way == "ids" else None]
    if way == "ids":
        busy = _numbered(arguments, lines, kills, rng, folder)
    else:
        busy = _followed(arguments, lines, kills, rng, folder, way)
    expected = bw.SequentialTest(bw.Certificate.load(certificate))
    expected.update_many(costs)
    with Store(state, "watch") as store:
        found = store.facts["detector "]
    wanted = expected.content()
    errors = folder / "errors"
    return {
        "kills": kills,
        "kills_in_mid_stream": busy,
        "episodes": episodes,
        "lost_or_doubled": abs(found["n"] - episodes),
        "same_bytes": json.dumps(found) == json.dumps(wanted),
        "refused": errors.read_text() if errors.exists() else "",
    }


def _pieces(lines: list[str], kills: int) -> Iterator[str]:
    """Yield the stream in pieces that end in the middle of lines, at a pace that outlasts the kills."""
    text = "".join(lines)
    size = max(1, len(text) // (kills * 15))
    for place in range(0, len(text), size):
        yield text[place : place + size]
        time.sleep(0.02)


def _followed(
    arguments: list[str | None], lines: list[str], kills: int, rng: random.Random, folder: Path, way: str
) -> int:
    log = folder / "log.jsonl"
    log.touch()
    watches = Watches(arguments, folder)
    # What is rotated away before a watch has seen it is nobody's loss.
    watches.finish(watches.start(), enough=0)
    turns = {"renamed": _rewrite, "numbered": _rotate, "dated": _date, "emptied": _empty}

    def write() -> None:
        rest, written, turned, before = "", 0, 0.0, -1
        for piece in _pieces(lines, kills):
            whole, newline, rest = (rest + piece).rpartition("\n")
            with log.open("a") as file:
                file.write(whole + newline)
            written += (whole + newline).count("\n")
            # A writer ends its line before it rotates, and not twice before any of the file was counted.
            if way in turns and time.monotonic() - turned > 1.5 and rng.random() < 0.2:
                counted = watches.counted()
                if counted == written if way == "emptied" else counted > before:
                    turns[way](log, written)
                    turned, before = time.monotonic(), written
        with log.open("a") as file:
            file.write(rest)

    writer = threading.Thread(target=write)
    writer.start()
    busy = 0
    for _ in range(kills):
        watches.kill(watches.start(), rng.uniform(0, LIFE))
        busy += writer.is_alive()
    writer.join()
    watches.finish(watches.start(), enough=len(lines))
    watches.close()
    return busy


def _numbered(
    arguments: list[str | None], lines: list[str], kills: int, rng: random.Random, folder: Path
) -> int:
    """Let the sender repeat what was not printed, and sometimes more."""
    watches = Watches(arguments, folder)
    printed = busy = 0
    for attempt in range(kills + 1):
        fifo = folder / f"fifo{attempt}"
        os.mkfifo(fifo)
        start = max(0, printed - rng.choice([0, 0, 5, 50]))
        ended = threading.Event()
        sender = threading.Thread(target=_send, args=(fifo, lines[start:], ended))
        sender.start()
        process = watches.start(str(fifo))
        if attempt < kills:
            watches.kill(process, rng.uniform(0, LIFE))
        else:
            watches.finish(process)
        ended.set()
        sender.join()
        for line in watches.output.read_text().splitlines(keepends=True):
            if line.startswith("{") and line.endswith("\n"):
                printed = max(printed, json.loads(line)["n"])
        busy += printed < len(lines)
    watches.close()
    return busy


def _rewrite(log: Path, _: int) -> None:
    """As editors and rsync do."""
    copy = log.with_name("copy")
    copy.write_bytes(log.read_bytes())
    copy.rename(log)


def _rotate(log: Path, _: int) -> None:
    numbers = sorted(int(other.suffix[1:]) for other in log.parent.glob("log.jsonl.*"))
    for number in reversed(numbers):
        log.with_name(f"{log.name}.{number}").rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))
    log.touch()


def _date(log: Path, written: int) -> None:
    log.rename(log.with_name(f"{log.name}-{20_000_000 + written}"))


def _empty(log: Path, _: int) -> None:
    """As copytruncate does, once all is counted."""
    os.truncate(log, 0)


def _send(fifo: Path, lines: list[str], ended: threading.Event) -> None:
    """Send lines to whoever reads; to nobody if the reader has ended before it opened the pipe."""
    while not ended.is_set():
        try:
            handle = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # there is no reader yet
            time.sleep(0.002)
            continue
        os.set_blocking(handle, True)
        with contextlib.suppress(BrokenPipeError), os.fdopen(handle, "w") as pipe:
            for place in range(0, len(lines), 5):
                pipe.write("".join(lines[place : place + 5]))
                pipe.flush()
                time.sleep(0.004)
        return


def campaign(kills: int, episodes: int, seed: int) -> dict[str, Any]:
    """Run every way; each has an equal share of the kills."""
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
