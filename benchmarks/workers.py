"""What several processes take that share one PostgreSQL, and what many streams cost.

Batches of 100 over 100 streams, any stream over any connection; then batches over 1,000, 10,000 and 30,000
streams by one process. All run beside the clients and the database on the same cores, so the processor time
per episode, of the servers and of PostgreSQL, says more than the rate.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import psycopg

from benchmarks.serve import SEED, _drive, _Episodes, _memory, postgresql, save_lab, serving

WORKERS = 1, 2, 4
STREAMS = 1_000, 10_000, 30_000
_PATH = "/api/v1/episodes"
_CLIENTS, _SECONDS, TURNS = 8, 2.0, 7


def run() -> dict[str, Any]:
    """Measure one, two and four workers, and many streams."""
    with tempfile.TemporaryDirectory(prefix="boundwatch-bench-") as name:
        folder = Path(name)
        certificate = save_lab(folder)
        result: dict[str, Any] = {"seed": SEED, "load_before": os.getloadavg()[0]}
        result["workers"] = measure_workers(
            folder, {each: ("--certificate", str(certificate)) for each in WORKERS}
        )
        result["streams"] = {}
        for streams in STREAMS:
            options = ("--certificate", str(certificate), "--fleet-size", str(streams))
            with serving(str(folder / f"{streams}.sqlite"), *options) as (port, process):
                turn = itertools.cycle(range(streams // 100))
                episodes = _Episodes()

                def build(turn: Any = turn, episodes: _Episodes = episodes) -> Any:
                    first = 100 * next(turn)
                    made = episodes.build(100)
                    return [{**each, "stream": f"arm-{first + i}"} for i, each in enumerate(made)]

                begun = 0
                while begun < 2 * streams:  # first all streams are begun
                    begun += (
                        100
                        * _drive(process, port, _PATH, build, clients=_CLIENTS, size=100, seconds=3)[
                            "requests"
                        ]
                    )
                load = _drive(process, port, _PATH, build, clients=_CLIENTS, size=100)
                result["streams"][streams] = load | {"memory_mb": round(_memory(process.pid) / 1e6)}
        return result


def measure_workers(folder: Path, options: dict[int, tuple[str, ...]]) -> dict[int, dict[str, Any]]:
    """Drive servers with so many workers in turns, so that what else the machine does meets all alike."""
    turns: dict[int, list[dict[str, Any]]] = {workers: [] for workers in options}
    singles: dict[int, list[dict[str, Any]]] = {workers: [] for workers in options}
    with postgresql(folder) as url, ExitStack() as stack:
        servers = {}
        for workers, given in options.items():
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(f"CREATE DATABASE workers{workers}")
            own = url.replace("/monitor?", f"/workers{workers}?")
            servers[workers] = stack.enter_context(serving(own, *given, "--workers", str(workers)))
        for turn in range(TURNS + 1):
            for workers, (port, process) in servers.items():
                build = partial(_Episodes().build, 100)
                before = _postgres_seconds(folder)
                found = _drive(process, port, _PATH, build, clients=_CLIENTS, size=100, seconds=_SECONDS)
                found["postgres"] = 1e4 * (_postgres_seconds(folder) - before) / found["requests"]
                alone = _drive(process, port, _PATH, partial(_Episodes().build, 1), seconds=_SECONDS)
                if turn:  # the first is to warm up
                    turns[workers].append(found)
                    singles[workers].append(alone)
        result = {}
        for workers, (port, process) in servers.items():
            build, found, alone = partial(_Episodes().build, 100), turns[workers], singles[workers]
            rate = _middle(found, "episodes_per_s")
            load = _drive(process, port, _PATH, build, rate=max(10.0, rate / 200), size=100)
            ones = zip(found, turns[min(options)], strict=True)
            result[workers] = {
                "episodes_per_s": round(rate),
                "of_one": float(np.median([a["episodes_per_s"] / b["episodes_per_s"] for a, b in ones])),
                "p99_at_half_load_ms": load["p99_ms"],
                "single_reports_per_s": round(_middle(alone, "episodes_per_s")),
                "server_cpu_us_per_episode": _middle(found, "server_cpu_us_per_episode"),
                "postgres_cpu_us_per_episode": _middle(found, "postgres"),
            }
        return result


def _middle(found: list[dict[str, Any]], name: str) -> float:
    return float(np.median([each[name] for each in found]))


def _postgres_seconds(folder: Path) -> float:
    """Return the processor time of PostgreSQL and all its processes, also of those that have ended."""
    pid = int((folder / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    postmaster = psutil.Process(pid)
    spent = sum(postmaster.cpu_times()[:4])
    for each in postmaster.children():
        with suppress(psutil.NoSuchProcess):
            spent += sum(each.cpu_times()[:2])
    return float(spent)


def show(result: dict[str, Any]) -> None:
    """Print both tables."""
    print(
        "workers  episodes/s  of one  p99 at half load  single reports/s  us per episode: servers, PostgreSQL"
    )
    for workers, found in result["workers"].items():
        used = f"{found['server_cpu_us_per_episode']:22.0f} {found['postgres_cpu_us_per_episode']:11.0f}"
        half, single = found["p99_at_half_load_ms"], found["single_reports_per_s"]
        rates = f"{found['episodes_per_s']:10,}  {found['of_one']:6.2f}"
        print(f"{workers:7}  {rates}  {half:13.0f} ms  {single:16,}  {used}")
    print("streams  episodes/s  us per episode  p99  memory")
    for streams, found in result["streams"].items():
        used = (
            f"{found['server_cpu_us_per_episode']:14.0f}  {found['p99_ms']:.0f} ms  {found['memory_mb']} MB"
        )
        print(f"{streams:7,}  {found['episodes_per_s']:10,}  {used}")
