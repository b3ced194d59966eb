"""How reports of one stream fare that reach several processes, and what more streams than fit in memory cost.

PostgreSQL, batches of 100 over 100 streams, any stream over any connection; then batches over 10,000 and
30,000 streams by one process.
"""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.serve import SEED, _drive, _Episodes, postgresql, save_lab, serving

WORKERS = 1, 2, 4
STREAMS = 10_000, 30_000
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
                    result["workers"][workers] = _measure(port, process)
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

                for seconds in (streams / 600, 10.0):  # first all streams are begun
                    load = _drive(process, port, _PATH, build, clients=_CLIENTS, size=100, seconds=seconds)
                result["streams"][streams] = load
        return result


def _measure(port: int, process: Any) -> dict[str, Any]:
    build = _Episodes().build
    _drive(process, port, _PATH, lambda: build(100), clients=_CLIENTS, size=100, seconds=3)
    mixed = _drive(process, port, _PATH, lambda: build(100), clients=_CLIENTS, size=100)
    half = mixed["episodes_per_s"] / 200
    return {
        "mixed": mixed,
        "single": _drive(process, port, _PATH, lambda: build(1)),
        "mixed_at_half": _drive(process, port, _PATH, lambda: build(100), rate=half, size=100),
    }


def show(result: dict[str, Any]) -> None:
    """Print both tables."""
    one = result["workers"][1]["mixed"]["episodes_per_s"]
    print("workers  episodes/s  of one  p99 at half load  single reports/s")
    for workers, found in result["workers"].items():
        rate = found["mixed"]["episodes_per_s"]
        half, single = found["mixed_at_half"]["p99_ms"], found["single"]["episodes_per_s"]
        print(f"{workers:7}  {rate:10,}  {rate / one:6.2f}  {half:13.0f} ms  {single:16,}")
    print("streams  episodes/s")
    for streams, found in result["streams"].items():
        print(f"{streams:7,}  {found['episodes_per_s']:10,}")
