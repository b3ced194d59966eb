"""Prints the speeds of a tree as JSON; run it with the Python of each tree, one after the other."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw

PROGRAM = Path(sys.executable).parent / "boundwatch"
ROWS = 10_000_000
LINES = 20_000
READERS = {
    "nothing": "import boundwatch, pyarrow.csv",
    "boundwatch": "import boundwatch as bw, pyarrow.csv; bw.read_costs({path!r}, cost='cost')",
    "pyarrow": "import boundwatch, pyarrow.csv as p; p.read_csv({path!r})",
}
MEASURE = (
    "import resource, json; {work}; u = resource.getrusage(resource.RUSAGE_SELF); "
    "print(json.dumps([u.ru_utime + u.ru_stime, u.ru_maxrss / 1024]))"
)


def updates() -> dict[str, Any]:
    """Return microseconds of an update, by certificate.

    Held-out evidence may be computed when a finding is read, and tables in the first update: the median of
    `update` alone would hide both.
    """
    rng = np.random.default_rng(7)
    failures, costs = (rng.random(2000) < 0.15).astype(float), rng.beta(1, 5, 2000)
    make, found = bw.Certificate, {}
    for kind, stream, binary in (("binary", failures, True), ("bounded", costs, False)):
        for source, certificate in (
            ("external", make.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=binary)),
            ("held-out 200", make.from_held_out(stream[:200], binary=binary)),
            ("held-out 1500", make.from_held_out(stream[:1500], binary=binary)),
        ):
            cold, warm, read = (_timed(certificate, stream, read) for read in (False, False, True))
            found[f"{kind} {source}"] = {
                "update, median": round(float(np.median(warm)), 2),
                "update, mean": round(float(np.mean(warm)), 2),
                "update and read e-value, median": round(float(np.median(read)), 2),
                "first run, slowest": round(float(np.max(cold))),
            }
    return found


def _timed(certificate: Any, stream: Any, read: bool) -> list[float]:
    test, taken = bw.SequentialTest(certificate), []
    for cost in stream.tolist():
        start = time.perf_counter()
        finding = test.update(cost)
        if read:
            _ = finding.e_adverse
        taken.append((time.perf_counter() - start) * 1e6)
    return taken


def fleets() -> dict[str, Any]:
    """Return costs per second of fleets of 10,000 streams, and seconds to read all e-values."""
    rng, found = np.random.default_rng(8), {}
    ids = rng.integers(0, 10_000, 300_000)
    for binary, kind in ((True, "binary"), (False, "bounded")):
        costs = (rng.random(ids.size) < 0.15).astype(float) if binary else rng.random(ids.size)
        external = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=binary)
        held_out = bw.Certificate.from_held_out(costs[:200], binary=binary)
        for source, certificate in (("external", external), ("held-out 200", held_out)):
            fleet = bw.Fleet(certificate)
            fleet.update(np.arange(10_000), costs[:10_000])
            speed = ids.size / _best(lambda f=fleet, c=costs: f.update(ids, c))
            reading = _best(lambda f=fleet: f.e_adverse, 1)
            found[f"{kind} {source}"] = {"costs/s": round(speed), "e-values, seconds": round(reading, 3)}
    return found


def _best(work: Callable[[], Any], times: int = 3) -> float:
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return min(taken)


def reading(folder: Path) -> dict[str, Any]:
    """Return CPU seconds and MB to read ten million rows, beside pyarrow's; imports are taken off."""
    path = folder / "long.csv"
    cells = np.char.mod("%.4f", np.random.default_rng(9).random(100_000))
    with path.open("w") as file:
        file.write("cost\n")
        for _ in range(ROWS // cells.size):
            file.write("\n".join(cells) + "\n")
    found: dict[str, Any] = {}
    for name, work in READERS.items():
        code = MEASURE.format(work=work.format(path=str(path)))
        runs = [json.loads(subprocess.check_output([sys.executable, "-c", code])) for _ in range(2)]
        cpu, memory = min(run[0] for run in runs), max(run[1] for run in runs)
        spent = cpu - found["nothing"]["cpu_seconds"] if found else cpu
        found[name] = {"cpu_seconds": round(spent, 3), "max_rss_mb": round(memory)}
    found["times pyarrow"] = round(found["boundwatch"]["cpu_seconds"] / found["pyarrow"]["cpu_seconds"], 2)
    return found


def watching(folder: Path) -> dict[str, float]:
    """Return lines per second of CPU of `watch` on a file, a pipe and with a state; starting is taken off."""
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).save(folder / "c.json")
    failures = (np.random.default_rng(10).random(LINES) < 0.15).astype(int)
    long, short = (f"cost\n{chr(10).join(map(str, costs))}\n" for costs in (failures, failures[:1]))
    (folder / "long.csv").write_text(long)
    (folder / "short.csv").write_text(short)
    spent = {}
    for name, source, given, counted, runs in (
        ("start", "short.csv", "", 1, 3),
        ("file", "long.csv", "", LINES, 2),
        ("pipe", "-", long, LINES, 2),
        ("state", "long.csv", "", LINES, 1),
    ):
        more = ["--state", "state"] if name == "state" else []
        command = [str(PROGRAM), "watch", "c.json", source, "--cost", "cost", "--json", *more]
        spent[name] = min(_cpu(command, folder, given, counted) for _ in range(runs))
    speeds = {name: round(LINES / (spent[name] - spent["start"])) for name in ("file", "pipe", "state")}
    return speeds | {"start, seconds": round(spent["start"], 3)}


def _cpu(command: list[str], folder: Path, given: str = "", lines: int | None = None) -> float:
    """Return the CPU seconds of a command, which must print this many lines."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(
        command, cwd=folder, input=given, text=True, capture_output=True, check=True
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if lines is not None and printed.count("\n") != lines:
        raise RuntimeError(f"{command} printed {printed.count(chr(10))} lines instead of {lines}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def importing(folder: Path) -> dict[str, float]:
    """Return seconds of CPU to import boundwatch, beside numpy and scipy.special alone."""
    nothing, base, ours = (
        min(_cpu([sys.executable, "-c", code], folder) for _ in range(5))
        for code in ("pass", "import numpy, scipy.special", "import boundwatch")
    )
    return {
        "boundwatch": round(ours, 3),
        "base": round(base, 3),
        "ratio": round((ours - nothing) / (base - nothing), 2),
    }


def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "update, microseconds": updates(),
            "fleet": fleets(),
            "watch, lines per second of CPU": watching(folder),
            "import": importing(folder),
            "read_costs": reading(folder),
        }
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
