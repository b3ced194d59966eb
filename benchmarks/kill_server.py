"""Kill the live monitor with SIGKILL at random moments under load; no acknowledged episode may be lost.

Eight clients report; each resends what was not acknowledged, sometimes hangs up before the answer, and
sometimes repeats what was. In the end every acknowledged episode must be stored once, with its cost,
nothing else may be, and every detector's state must equal a replay byte for byte.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import select

import boundwatch as bw
from benchmarks.serve import free_port, postgresql, start_server
from boundwatch.server.database import Database
from boundwatch.server.live_detectors import verify
from boundwatch.server.tables import episodes, streams

SEED = 20261116
KILLS = 100
CLIENTS = 8
STREAMS = 12
LONGEST_LIFE = 1.0  # seconds from being ready, or from the first answer, to being killed


def run() -> dict[str, Any]:
    """Kill a hundred times on each database and return what was found."""
    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as url:
        return {
            "seed": SEED,
            "clients": CLIENTS,
            "streams": STREAMS,
            "sqlite": campaign(str(Path(folder) / "monitor.sqlite"), KILLS, Path(folder)),
            "postgresql": campaign(url, KILLS, Path(folder)),
        }


def campaign(database: str, kills: int, folder: Path, *, seed: int = SEED) -> dict[str, Any]:
    """Run the server and kill it `kills` times; return the counts, of which the faults must be 0."""
    certificate = folder / "certificate.json"
    costs = (np.random.default_rng(seed).random(200) < 0.1).astype(float)
    bw.Certificate.from_held_out(costs, binary=True).save(certificate)
    port = free_port()
    clients = [_Client(number, port, seed) for number in range(CLIENTS)]
    for client in clients:
        client.thread.start()
    moments = random.Random(seed)
    began = time.monotonic()
    for _ in range(kills):
        process = _start(database, certificate, port)
        if moments.random() < 0.8:  # in the middle of its work; else also before the first answer
            _wait_for_an_answer(clients)
        time.sleep(moments.uniform(0, LONGEST_LIFE))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    process = _start(database, certificate, port)  # the last one lives until all is delivered
    for client in clients:
        client.ended.set()
        client.thread.join()
    os.killpg(process.pid, signal.SIGTERM)
    process.wait()
    return {"kills": kills, "seconds": round(time.monotonic() - began, 1), **_judge(database, clients)}


def _wait_for_an_answer(clients: list[_Client]) -> None:
    before = sum(len(client.acknowledged) for client in clients)
    deadline = time.monotonic() + 60
    while sum(len(client.acknowledged) for client in clients) == before and time.monotonic() < deadline:
        time.sleep(0.005)


class _Client:
    def __init__(self, number: int, port: int, seed: int) -> None:
        self.number, self.port = number, port
        self.random = random.Random(seed * 1000 + number)
        self.sent: dict[tuple[str, str], float] = {}
        self.acknowledged: dict[tuple[str, str], float] = {}
        self.refused: list[str] = []
        self.hung_up = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        while not self.ended.is_set():
            batch = [self._episode() for _ in range(self.random.choice((1, 1, 1, 5, 20)))]
            if self.acknowledged and self.random.random() < 0.1:  # a repeat
                (stream, episode), cost = self.random.choice(list(self.acknowledged.items())[-50:])
                batch.append({"stream": stream, "episode": episode, "cost": cost})
            while not self._send(batch):
                time.sleep(0.02)

    def _episode(self) -> dict[str, Any]:
        stream = f"arm-{self.random.randrange(STREAMS)}"
        episode = f"{self.number}-{len(self.sent)}"
        cost = float(self.random.random() < 0.1)
        self.sent[stream, episode] = cost
        return {"stream": stream, "episode": episode, "cost": cost}

    def _send(self, batch: list[dict[str, Any]]) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            body = json.dumps(batch)
            connection.request("POST", "/api/v1/episodes", body, {"Content-Type": "application/json"})
            if self.random.random() < 0.05:  # the network fails after the request
                self.hung_up += 1
                return False
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 200:
                for each in batch:
                    self.acknowledged[each["stream"], each["episode"]] = each["cost"]
                return True
            if answer.status != 503:
                self.refused.append(f"{answer.status} {text[:200]!r}")
                return True
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return False


def _start(database: str, certificate: Path, port: int) -> subprocess.Popen[bytes]:
    process = start_server(port, database, "--certificate", str(certificate))
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return process
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with code {process.returncode}") from None
            time.sleep(0.01)


def _judge(database: str, clients: list[_Client]) -> dict[str, Any]:
    opened = Database(database)
    with opened.read() as connection:
        query = select(streams.c.name, episodes.c.episode, episodes.c.cost)
        rows = connection.execute(query.join(streams, streams.c.id == episodes.c.stream_id)).all()
    stored = {(row.name, row.episode): row.cost for row in rows}
    acknowledged = {key: cost for client in clients for key, cost in client.acknowledged.items()}
    sent = {key: cost for client in clients for key, cost in client.sent.items()}
    replayed = list(verify(opened))
    opened.close()
    return {
        "acknowledged": len(acknowledged),
        "hung_up": sum(client.hung_up for client in clients),
        "lost": sum(key not in stored for key in acknowledged),
        "twice": len(rows) - len(stored),
        "altered": sum(stored[key] != cost for key, cost in sent.items() if key in stored),
        "invented": sum(key not in sent for key in stored),
        "refused": sum(len(client.refused) for client in clients),
        "watches": len(replayed),
        "replay_differs": sum(bool(each.fault) for each in replayed),
    }


def show(result: dict[str, Any]) -> None:
    """Print the counts."""
    for kind in ("sqlite", "postgresql"):
        print(f"  {kind:11}", "  ".join(f"{name} {value}" for name, value in result[kind].items()))
