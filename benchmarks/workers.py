"""What several processes take that share one PostgreSQL, and what many streams cost.

Batches of 100 over 100 streams, any stream over any connection; then batches over 1,000, 10,000 and 30,000
streams by one process. All run beside the clients and the database on the same cores, so the processor time
per episode, of the servers and of PostgreSQL, says more than the rate.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from benchmarks.serve import SEED, _drive, _Episodes, _memory, postgresql, save_lab, serving

WORKERS = 1, 2, 4
STREAMS = 1_000, 10_000, 30_000
_PATH = "/api/v1/episodes"
_CLIENTS = 8


def run() -> dict[str, Any]:
    """Measure one, two and four workers, and many streams."""
    with tempfile.TemporaryDirectory(prefix="boundwatch-bench-") as name:
        folder = Path(name)
        certificate = save_lab(folder)
        result: dict[str, Any] = {"seed": SEED, "load_before": os.getloadavg()[0], "workers": {}}
        with postgresql(folder) as url:
            for workers in WORKERS:
                options = ("--certificate", str(certificate), "--workers", str(workers))
                with serving(url, *options) as (port, process):
                    result["workers"][workers] = _measure(port, process, folder)
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


def _measure(port: int, process: Any, folder: Path) -> dict[str, Any]:
    build = _Episodes().build
    _drive(process, port, _PATH, lambda: build(100), clients=_CLIENTS, size=100, seconds=6)
    before = _postgres_seconds(folder)
    mixed = _drive(process, port, _PATH, lambda: build(100), clients=_CLIENTS, size=100)
    spent = _postgres_seconds(folder) - before
    mixed["postgres_cpu_us_per_episode"] = round(1e4 * spent / mixed["requests"], 1)
    half = max(10.0, mixed["episodes_per_s"] / 200)
    return {
        "mixed": mixed,
        "single": _drive(process, port, _PATH, lambda: build(1)),
        "mixed_at_half": _drive(process, port, _PATH, lambda: build(100), rate=half, size=100),
    }


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
    one = result["workers"][1]["mixed"]["episodes_per_s"]
    print(
        "workers  episodes/s  of one  p99 at half load  single reports/s  us per episode: servers, PostgreSQL"
    )
    for workers, found in result["workers"].items():
        mixed, rate = found["mixed"], found["mixed"]["episodes_per_s"]
        half, single = found["mixed_at_half"]["p99_ms"], found["single"]["episodes_per_s"]
        used = f"{mixed['server_cpu_us_per_episode']:22.0f} {mixed['postgres_cpu_us_per_episode']:11.0f}"
        print(f"{workers:7}  {rate:10,}  {rate / one:6.2f}  {half:13.0f} ms  {single:16,}  {used}")
    print("streams  episodes/s  us per episode  p99  memory")
    for streams, found in result["streams"].items():
        used = (
            f"{found['server_cpu_us_per_episode']:14.0f}  {found['p99_ms']:.0f} ms  {found['memory_mb']} MB"
        )
        print(f"{streams:7,}  {found['episodes_per_s']:10,}  {used}")
