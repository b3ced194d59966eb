"""Records the monitor: what it answers, its exported database, and what replaying that finds."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from commands import PROGRAM
from flat import flatten
from streams import costs_of

import boundwatch as bw

API = "/api/v1"


def _ask(url: str, content: Any = None) -> Any:
    data = None if content is None else json.dumps(content).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def _start(folder: Path, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with (folder / "log").open("wb") as log:
        command = [PROGRAM, "serve", "--database", "monitor.sqlite", "--port", port, *options]
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    for _ in range(600):
        try:
            _ask(f"{url}{API}/streams")
            return process, url
        except OSError:
            time.sleep(0.1)
    process.terminate()
    raise RuntimeError((folder / "log").read_text())


def _send(url: str, rng: np.random.Generator, generation: int) -> list[Any]:
    """Report episodes of eight streams in batches, every batch twice, and return the answers."""
    answers = []
    for batch in range(8):
        episodes = []
        for place in range(40):
            name, bounded = f"arm-{place % 6}", place % 8 >= 6
            if bounded:
                name = f"drone-{place % 8}"
            cost = float(costs_of(rng, 1, 0.05 + 0.09 * (place % 8), binary=not bounded)[0])
            episodes.append({"stream": name, "episode": f"{generation}-{batch}-{place}", "cost": cost})
        answers += [_ask(f"{url}{API}/episodes", episodes) for _ in range(2)]
    return answers


def _drive(url: str, bounded: Any) -> dict[str, Any]:
    rng, found = np.random.default_rng(44), {}
    _ask(f"{url}{API}/certificates", {"name": "bounded", "certificate": bounded.to_dict()})
    drones = {"streams": ["drone-6", "drone-7"], "certificate": "bounded", "detector": "change-detector"}
    found["bound"] = _ask(f"{url}{API}/streams", drones | {"alpha_adverse": 0.01})
    found["first"] = _send(url, rng, 1)
    again = {"streams": ["arm-5"], "certificate": "lab", "new_generation": True, "reason": "new gripper"}
    found["renewed"] = _ask(f"{url}{API}/streams", again)
    found["second"] = _send(url, rng, 2)
    listed = _ask(f"{url}{API}/streams")
    found["streams"] = {each["stream"]: each for each in listed["streams"]}
    for name in ("fleet", "alarms"):
        found[name] = _ask(f"{url}{API}/{name}")
    return {name: flatten(each) for name, each in found.items()}


def _exported(path: Path) -> dict[str, Any]:
    """Return the rows of a backup by table; JSON that is kept as text in a column is opened.

    Alarms have random ids and are written by them, so rows are numbered by what they are about.
    """
    contents = [json.loads(line) for line in path.read_text().splitlines()]
    rows = [(each["table"], each["row"]) for each in contents if "table" in each]
    rows.sort(key=lambda each: [each[1].get(key) or 0 for key in ("watch_id", "number")])
    counts, found = Counter[str](), {}
    for table, row in rows:
        opened = {key: json.loads(cell) if str(cell)[:1] in ("{", "[") else cell for key, cell in row.items()}
        if "closed" in opened:
            opened["closed"] = opened["closed"] is not None  # it is the time
        found |= flatten(opened, f"{table}.{counts[table]}")
        counts[table] += 1
    return found | flatten({"rows": counts})


def record_monitor() -> dict[str, Any]:
    """Return the answers of a monitor to 640 episodes, its backup, and what verifying both says."""
    costs = (np.random.default_rng(45).random(200) < 0.1).astype(float)
    bounded = bw.Certificate.from_held_out(np.random.default_rng(46).beta(1, 4, 90))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bw.Certificate.from_held_out(costs, binary=True).save(folder / "lab.json")
        process, url = _start(folder, "--certificate", "lab.json", "--fleet-size", "12")
        try:
            found = _drive(url, bounded)
        finally:
            process.terminate()
            process.wait(60)
        for title, options in {
            "verify": ("--verify", "--database", "monitor.sqlite"),
            "export": ("--export", "backup.jsonl", "--database", "monitor.sqlite"),
            "import": ("--import", "backup.jsonl", "--database", "copy.sqlite"),
            "verify the copy": ("--verify", "--database", "copy.sqlite"),
        }.items():
            done = subprocess.run(
                [PROGRAM, "serve", *options], cwd=folder, capture_output=True, text=True, check=False
            )
            numbers = [int(number) for number in re.findall(r"\b\d+\b", done.stdout)]
            found[title] = flatten({"exit code": done.returncode, "numbers": numbers}) | {
                "~": done.stderr[-300:]
            }
        found["backup"] = _exported(folder / "backup.jsonl")
    return found
