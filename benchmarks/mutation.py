"""Damaged input of every kind: no traceback, no hang, no file written on error, memory in bounds.

Every kind of file that boundwatch reads is written once, damaged in many ways (bits, bytes, cuts, pieces of
other files, extreme numbers, broken JSON), and given to the commands that read it, in this process. What ends
in
anything but success or one line on stderr is listed with the seed that makes it again.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tools import example_logs

import boundwatch as bw
from boundwatch.cli import main as run_program

_LONGEST = 10  # seconds
_EXTREME = [b"1e400", b"-1", b"NaN", b"0", b"1" * 400, b"9" * 5000, b"-0.0", b"1e-320", b"", b"null", b"true"]
_VALUES: list[Any] = [
    None,
    True,
    -1,
    10**400,
    1e308,
    "",
    "\ud800",
    "\x1b[2J\n",
    "x" * 5000,
    [],
    {},
    [[[[[]]]]],
    {"a": {"b": 1}},
    0.5,
]


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, what it holds, and the commands that read it."""

    name: str
    content: bytes
    commands: list[list[str]]


def kinds(folder: Path) -> list[Kind]:
    """Return a good file of every kind; the certificates that go with them are written to the folder."""
    rng = np.random.default_rng(5)
    costs, failures = rng.beta(2, 6, 40).round(4), (rng.random(40) < 0.3).astype(int)
    lab = bw.Certificate.from_held_out(costs)
    lab.save(folder / "bounded.json")
    bw.Certificate.from_held_out(failures, binary=True).save(folder / "binary.json")
    family = bw.CertificateFamily.from_held_out({"pick": costs, "place": costs[::2]})
    family.save(folder / "family.json")
    csv = "trial,cost\n" + "".join(f"{i},{c}\n" for i, c in enumerate(costs))
    jsonl = "".join(json.dumps({"n": i, "cost": c, "note": "ok"}) + "\n" for i, c in enumerate(costs))
    successes = "success\n" + "".join(f"{1 - f}\n" for f in failures)
    tasks = "task,cost\n" + "".join(f"{'pick' if i % 2 else 'place'},{c}\n" for i, c in enumerate(costs))
    read = [
        ["check", "bounded.json", "FILE"],
        ["certify", "FILE", "-o", "new.json"],
        ["watch", "bounded.json", "FILE"],
    ]
    binary = [["check", "binary.json", "FILE"], ["certify", "FILE", "-o", "new.json"]]
    by_task = [["check", "family.json", "FILE"], ["certify", "FILE", "--by", "task", "-o", "new.json"]]
    unnamed = [[*command, "--cost", "1"] for command in read]
    rewards = [[*command, "--cost-range", "-5000", "5000"] for command in read]
    topic = [[*command, "--success", "/episode/result.success"] for command in binary]
    held = [["show", "FILE"], ["verify", "FILE"], ["check", "FILE", "good.csv"]]
    (folder / "good.csv").write_text(csv)
    logs = _logs(folder / "logs")
    found = [
        Kind("costs.csv", csv.encode(), read),
        Kind("success.csv", successes.encode(), binary),
        Kind("tasks.csv", tasks.encode(), by_task),
        Kind("utf16.csv", csv.encode("utf-16"), read),
        Kind("costs.jsonl", jsonl.encode(), read),
        Kind("costs.json", json.dumps([{"cost": c} for c in costs]).encode(), read),
        Kind("costs.csv.gz", gzip.compress(csv.encode()), read),
        Kind("costs.npy", npy(costs), unnamed),
        Kind("record.npy", npy(np.array([(c, 1) for c in costs], [("cost", "f8"), ("n", "i4")])), read),
        Kind("names.npy", npy(np.array([str(c) for c in costs])), unnamed),
        Kind("costs.parquet", logs["parquet"], read),
        Kind("eval_info.json", logs["eval_info"], [*binary, by_task[1]]),
        Kind("monitor.csv", logs["monitor"], rewards),
        Kind("evaluations.npz", logs["evaluations"], [*rewards, [*read[0], "--format", "npy"]]),
        Kind("log.mcap", logs["mcap"], topic),
        Kind("info.json", logs["info"], [["check", "binary.json", "logs/dataset"]]),
        Kind("episodes.parquet", logs["episodes"], [["check", "binary.json", "logs/dataset"]]),
        Kind("certificate.json", _text(lab.to_dict()), held),
        Kind("certificates.json", _text(family.to_dict()), held[:2]),
        Kind("state.json", _state(folder), [["watch", "bounded.json", "lines.log", "--state", "FILE"]]),
    ]
    with contextlib.suppress(ImportError):
        found.append(Kind("costs.xlsx", _xlsx(costs), read))
    return found


def mutate(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """Return damaged content."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        _damage(data, others, rng)
    return bytes(data)


def _damage(data: bytearray, others: list[bytes], rng: random.Random) -> None:
    place = rng.randrange(len(data) + 1) if data else 0
    end = min(len(data), place + rng.choice([1, 2, 8, 64]))
    match rng.randrange(10):
        case 0 | 1 if data:
            data[min(place, len(data) - 1)] ^= 1 << rng.randrange(8)
        case 2:
            del data[place:end]
        case 3:
            data[place:place] = rng.randbytes(rng.choice([1, 4, 32]))
        case 4:
            del data[place:]
        case 5:
            other = rng.choice(others)
            start = rng.randrange(len(other))
            data[place:end] = other[start : start + rng.choice([4, 64, 1024])]
        case 6:
            numbers = list(re.finditer(rb"-?\d+\.?\d*", bytes(data)))
            if numbers:
                chosen = rng.choice(numbers)
                data[chosen.start() : chosen.end()] = rng.choice(_EXTREME)
        case 7:
            data[place:place] = rng.choice(
                [b"\0", b"\x1b[2J", b"\xff\xfe", b"\r", b"\n\n", b'"', b"[" * 3000, b"{"]
            )
        case 8:
            data[place:place] = bytes(data[place:end]) * rng.choice([2, 50])
        case _:
            _damage_json(data, rng)


def _damage_json(data: bytearray, rng: random.Random) -> None:
    """Replace a value of a JSON document (or of its first line) by one of another type."""
    try:
        first, newline, rest = bytes(data).partition(b"\n{")
        content = json.loads(first if newline else bytes(data))
    except (ValueError, RecursionError):
        return
    places = list(_places(content))
    if places:
        holder, key = rng.choice(places)
        if rng.random() < 0.2:
            del holder[key]
        else:
            holder[key] = rng.choice(_VALUES)
        data[:] = json.dumps(content).encode() + newline + rest


def _places(content: Any) -> Iterator[tuple[Any, Any]]:
    items = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    for key, value in items:
        yield content, key
        yield from _places(value)


@dataclass
class Outcome:
    """How a command ended."""

    code: int
    errors: str
    fault: str = ""


def run_command(arguments: list[str]) -> Outcome:
    """Run a command in this process, in the current folder, for at most 10 s of the processor.

    A busy machine may take longer on the clock; who waits for something that never comes has 10 minutes.
    """
    before = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    streams = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["boundwatch", *arguments]
    fault, code = "", 0
    for number in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(number, _too_long)
    signal.setitimer(signal.ITIMER_PROF, _LONGEST)
    signal.alarm(60 * _LONGEST)
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
            run_program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        fault = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        sys.argv = argv
    errors = streams[1].getvalue()
    if not fault and "Traceback" in errors:
        fault = errors
    if not fault and any(
        letter < " " and letter != "\n" for stream in streams for letter in stream.getvalue()
    ):
        fault = f"a control character was printed: {(streams[0].getvalue() + errors)[:300]!r}"
    after = {path: path.stat().st_mtime_ns for path in Path().rglob("*")}
    if not fault and code not in (0, 3) and after != before:
        fault = f"written although it failed: {sorted(map(str, set(after.items()) ^ set(before.items())))}"
    for path in set(after) - set(before):
        path.unlink(missing_ok=True)
    return Outcome(code, errors, fault)


def campaign(count: int, seed: int, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Damage so many files and return what happened, by kind."""
    faults: list[dict[str, Any]] = []
    table: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        known = kinds(folder)
        contents = [kind.content for kind in known]
        for number in range(count):
            kind = known[number % len(known)]
            rng = random.Random(f"{seed} {number}")
            target = folder / _TARGETS.get(kind.name, kind.name)
            target.write_bytes(mutate(kind.content, contents, rng))
            command = rng.choice(kind.commands)
            outcome = run_command([kind.name if word == "FILE" else word for word in command])
            row = table.setdefault(kind.name, {"files": 0, "refused": 0, "faults": 0})
            row["files"] += 1
            row["refused"] += outcome.code != 0
            if outcome.fault:
                row["faults"] += 1
                faults.append(
                    {"kind": kind.name, "number": number, "command": command, "fault": outcome.fault}
                )
                report(f"{kind.name} ({number}): {outcome.fault}")
            target.write_bytes(kind.content) if kind.name in _TARGETS else target.unlink()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seed": seed, "files": count, "kinds": table, "faults": len(faults), "peak_mb": round(peak)}


def tensor_files(count: int, seed: int) -> int:
    """Damage tensor files and return how many ended in anything but `BoundwatchError`."""
    import torch

    from boundwatch.errors import BoundwatchError
    from boundwatch.training import tensorfile

    good = tensorfile.encode({"a": torch.arange(30.0).reshape(5, 6), "b": torch.ones(3)}, {"kind": "x"})
    wrong = 0
    for number in range(count):
        try:
            tensorfile.decode(mutate(good, [good], random.Random(f"{seed} {number}")))
        except BoundwatchError:
            continue
        except Exception:
            traceback.print_exc()
            wrong += 1
    return wrong


def run() -> dict[str, Any]:
    """Run the whole campaign on two processors, and return the numbers."""
    seeds = (18, 19)
    with ProcessPoolExecutor(len(seeds)) as pool:
        halves = list(pool.map(campaign, [3000] * len(seeds), seeds))
    kinds = {
        name: {what: sum(half["kinds"][name][what] for half in halves) for what in row}
        for name, row in halves[0]["kinds"].items()
    }
    return {
        "seeds": seeds,
        "files": sum(half["files"] for half in halves),
        "kinds": kinds,
        "faults": sum(half["faults"] for half in halves),
        "peak_mb": max(half["peak_mb"] for half in halves),
        "tensor_files": 1000,
        "tensor_faults": tensor_files(1000, seed=18),
    }


def show(result: dict[str, Any]) -> None:
    """Print what happened, by kind."""
    for name, row in result["kinds"].items():
        print(f"  {name:<20}{row['files']:>6} files{row['refused']:>6} refused{row['faults']:>4} faults")
    print(f"  tensor files{result['tensor_files']:>14} files{result['tensor_faults']:>18} faults")
    print(f"  peak memory {result['peak_mb']} MB, {result['faults'] + result['tensor_faults']} faults")


_TARGETS = {"info.json": "logs/dataset/meta/info.json"}


class TooLong(BaseException):
    """A command did not end; nothing that it runs catches this."""


def _too_long(*_: object) -> None:
    raise TooLong


def _text(content: object) -> bytes:
    return json.dumps(content, indent=1).encode()


def npy(values: Any) -> bytes:
    """Return an array as a file of NumPy's."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def _state(folder: Path) -> bytes:
    (folder / "lines.log").write_text("0.1\n0.2\n0.3\n")
    run_in(folder, ["watch", "bounded.json", "lines.log", "--state", "begun.json"])
    return (folder / "begun.json").read_bytes()


def run_in(folder: Path, arguments: list[str]) -> None:
    """Run a command that must succeed, and keep what it writes."""
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        argv, sys.argv = sys.argv, ["boundwatch", *arguments]
        try:
            with contextlib.suppress(SystemExit):
                run_program()
        finally:
            sys.argv = argv


def _logs(folder: Path) -> dict[str, bytes]:
    import pyarrow
    import pyarrow.parquet

    folder.mkdir()
    example_logs.write_evaluation(folder / "eval_info.json", [0.9, 0.5], episodes=10, seed=1)
    example_logs.write_dataset(folder / "dataset", episodes=6, frames=4, seed=2)
    example_logs.write_mcap(folder / "log.mcap", seed=3)
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(
        pyarrow.table({"cost": np.linspace(0, 1, 40), "when": np.arange(40).astype("datetime64[us]")}), buffer
    )
    data = next(path for path in sorted((folder / "dataset").rglob("*.parquet")))
    _TARGETS["episodes.parquet"] = str(data.relative_to(folder.parent))
    return {
        "eval_info": (folder / "eval_info.json").read_bytes(),
        "info": (folder / "dataset" / "meta" / "info.json").read_bytes(),
        "episodes": data.read_bytes(),
        # Made by stable-baselines3; making them again takes ten seconds.
        "monitor": (example_logs.DATA / "sb3/0.monitor.csv").read_bytes(),
        "evaluations": (example_logs.DATA / "sb3/evaluations.npz").read_bytes(),
        "mcap": (folder / "log.mcap").read_bytes(),
        "parquet": buffer.getvalue(),
    }


def _xlsx(costs: Any) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for row in [["cost"], *([float(cost)] for cost in costs)]:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


if __name__ == "__main__":
    print(campaign(int(sys.argv[1]), int(sys.argv[2])))
