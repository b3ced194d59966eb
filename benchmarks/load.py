"""Load: large files against pyarrow reading the same, streams through `watch`, many tasks, a large fleet.

CPU seconds and memory of processes of their own; ratios, not times, are what should stay the same elsewhere.
`python -m benchmarks load` measures at full size, `python -m benchmarks.load ROWS` with files of fewer rows.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, Any

import numpy as np

import boundwatch as bw

ROWS = 10_000_000
PROGRAM = [sys.executable, "-c", "from boundwatch.cli import main; main()"]


_BETTING = """
import json, sys, time
import numpy as np
import boundwatch as bw
costs, new = np.random.default_rng(4).beta(2, 6, (2, int(sys.argv[1])))
taken = {}
for name in ("certify", "check"):
    began = time.perf_counter(), time.process_time()
    if name == "certify":
        certificate = bw.Certificate.from_held_out(costs)
    else:
        bw.HypothesisTest(certificate).decide(new)
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    taken[name] = {"cpu": round(cpu, 2), "seconds": round(seconds, 2)}
print(json.dumps(taken))
"""
_FLEET = """
import json, pathlib, sys, time
import numpy as np
import boundwatch as bw
what, streams, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if what == "save":
    fleet = bw.Fleet(bw.Certificate.from_bounds(lower=0.1, upper=0.4, delta=0.01))
    fleet.update([f"robot-{i}" for i in range(streams)], np.random.default_rng(5).beta(2, 6, streams))
began = time.perf_counter(), time.process_time()
if what == "save":
    pathlib.Path(path).write_text(json.dumps(fleet.state_dict()))
else:
    assert len(bw.Fleet.from_state_dict(json.loads(pathlib.Path(path).read_text())).ids) == streams
seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
print(json.dumps({"cpu": round(cpu, 2), "seconds": round(seconds, 2)}))
"""


# A process begins with the memory of the one that starts it, which must be small.
_START = """
import json, os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[2:])
_, status, used = os.wait4(process.pid, 0)
seconds, cpu = time.perf_counter() - began, used.ru_utime + used.ru_stime
with open(sys.argv[1], "w") as file:
    json.dump({"cpu": round(cpu, 2), "seconds": round(seconds, 2), "mb": used.ru_maxrss // 1024}, file)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measure(command: list[str], printed: IO[bytes] | int = subprocess.DEVNULL) -> dict[str, float]:
    """Run a command; return its CPU seconds, seconds on the clock, and largest memory in MB."""
    with tempfile.NamedTemporaryFile() as found:
        starter = [sys.executable, "-c", _START, found.name, *command]
        subprocess.run(starter, stdin=subprocess.DEVNULL, stdout=printed, check=True)
        measured: dict[str, float] = json.load(found)
        return measured


def write_files(folder: Path, rows: int) -> dict[str, Path]:
    """Write the same costs as CSV and as JSON lines."""
    rng = np.random.default_rng(1)
    paths = {"csv": folder / "costs.csv", "jsonl": folder / "costs.jsonl"}
    with paths["csv"].open("w") as table, paths["jsonl"].open("w") as lines:
        table.write("episode,cost\n")
        for start in range(0, rows, 100_000):
            costs = rng.beta(2, 6, min(100_000, rows - start)).round(6).tolist()
            part = list(enumerate(costs, start))
            table.write("".join(f"{row},{cost}\n" for row, cost in part))
            lines.write("".join(f'{{"episode": {row}, "cost": {cost}}}\n' for row, cost in part))
    return paths


def files(folder: Path, rows: int) -> dict[str, Any]:
    """Certify large files, and let pyarrow read them."""
    found = {}
    for kind, path in write_files(folder, rows).items():
        module = "csv" if kind == "csv" else "json"
        code = f"import pyarrow.{module} as m; m.read_{module}({str(path)!r})"
        theirs = measure([sys.executable, "-c", code])
        ours = measure([*PROGRAM, "certify", str(path), "-o", str(folder / f"{kind}.json")])
        found[kind] = {"ours": ours, "pyarrow": theirs, "ratio": round(ours["cpu"] / theirs["cpu"], 2)}
    return found


def streams(folder: Path, lines: int) -> dict[str, Any]:
    """Return how many lines `watch` takes per CPU second, less its start: of a pipe, or of a file."""
    rng = np.random.default_rng(2)
    costs, failed = rng.beta(2, 6, lines).round(4).tolist(), (rng.random(lines) < 0.1).astype(int).tolist()
    wide = {f"k{i}": i / 2 if i % 2 else f"some text here {i}" for i in range(95)}
    objects = [json.dumps({"n": n, "cost": c} | wide) + "\n" for n, c in enumerate(costs[: lines // 4])]
    numbers = [f"{cost}\n" for cost in costs]
    given = bw.Certificate.from_bounds(lower=0.1, upper=0.4, delta=0.01)
    bounded = bw.Certificate.from_held_out(rng.beta(2, 6, 200))
    binary = bw.Certificate.from_held_out((rng.random(200) < 0.1).astype(float), binary=True)
    base = measure([*PROGRAM, "watch", "--help"])["cpu"]
    program = f"{sys.executable} -c 'from boundwatch.cli import main; main()'"
    found: dict[str, Any] = {}
    for name, certificate, column, text in (
        ("numbers", given, "1", numbers),
        ("2 kB objects", given, "cost", objects),
        ("numbers, held-out bounded", bounded, "1", numbers),
        ("numbers, held-out binary", binary, "1", [f"{each}\n" for each in failed]),
    ):
        path, to = folder / "lines", folder / f"c{len(found)}.json"
        path.write_text("".join(text))
        certificate.save(to)
        for suffix, option in {"": "", " with state": f" --state {folder}/s{len(found)}"}.items():
            source = path if option else "-"  # of a pipe it keeps episodes with ids only
            used = measure(
                ["sh", "-c", f"cat {path} | {program} watch {to} {source} --cost {column}{option}"]
            )
            rate = len(text) / (used["cpu"] - base)
            found[name + suffix] = {"lines": len(text), "per_cpu_second": round(rate), **used}
    return found


def tasks(folder: Path, count: int) -> dict[str, Any]:
    """Certify and check many tasks of 30 episodes each."""
    costs = np.random.default_rng(3).beta(2, 6, (30, count)).round(4)
    path, certificate, fresh = folder / "tasks.csv", folder / "family.json", folder / "fresh.csv"
    for target, values in ((path, costs), (fresh, costs[::-1] * 0.9)):
        rows = "".join(f"t{t},{c:.4f}\n" for row in values.tolist() for t, c in enumerate(row))
        target.write_text(f"task,cost\n{rows}")
    certify = measure([*PROGRAM, "certify", str(path), "--by", "task", "-o", str(certificate)])
    return {"certify": certify, "check": measure([*PROGRAM, "check", str(certificate), str(fresh)])}


def arrays(folder: Path, count: int) -> dict[str, Any]:
    """Derive limits from a large array of costs, and judge as many new ones."""
    return _timed(_BETTING, [str(count)], folder)


def fleet(folder: Path, count: int) -> dict[str, Any]:
    """Save and load the state of a large fleet."""
    path = str(folder / "fleet")
    return {what: _timed(_FLEET, [what, str(count), path], folder) for what in ("save", "load")}


def _timed(code: str, arguments: list[str], folder: Path) -> dict[str, Any]:
    """Run code that times itself and prints it as JSON; add what the whole process used."""
    with (folder / "printed").open("w+b") as printed:
        used = measure([sys.executable, "-c", code, *arguments], printed)
        printed.seek(0)
        return {**json.load(printed), "process": used}


def run(rows: int = ROWS) -> dict[str, Any]:
    """Measure, and return the numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return {
            "rows": rows,
            "files": files(folder, rows),
            "arrays": arrays(folder, rows),
            "streams": streams(folder, 100_000),
            "tasks": tasks(folder, 10_000),
            "fleet": fleet(folder, 1_000_000),
        }


def show(result: dict[str, Any]) -> None:
    """Print the table."""
    for kind, found in result["files"].items():
        ours, theirs = found["ours"], found["pyarrow"]
        print(
            f"certify {result['rows']} rows of {kind}: {ours['cpu']} s of CPU, {ours['mb']} MB; pyarrow "
            f"reads them in {theirs['cpu']} s: {found['ratio']} times"
        )
    for name, used in result["arrays"].items():
        print(f"{name} an array of {result['rows']} costs: {used}")
    for name, used in result["streams"].items():
        print(f"watch {name}: {used['per_cpu_second']} lines per CPU second ({used['lines']} lines)")
    for name, used in result["tasks"].items():
        print(f"{name} 10000 tasks of 30 episodes: {used}")
    for name, used in result["fleet"].items():
        print(f"{name} a fleet of a million: {used}")


if __name__ == "__main__":
    show(run(int(sys.argv[1])))
