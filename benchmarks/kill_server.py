"""Kill live monitors with SIGKILL at random moments under load; no acknowledged episode may be lost.

Two servers share a database, and eight clients report to either of them, whatever the stream. One of the
servers is killed, now and then both, and the database goes away in between. A client resends what was not
acknowledged, often to the other server, sometimes hangs up before the answer, and sometimes repeats what was.
In the end every acknowledged episode must be stored once, with its cost, nothing else may be, all must be
counted, and every detector's state must equal a replay byte for byte.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from sqlalchemy import select

import boundwatch as bw
from benchmarks.serve import free_port, postgresql, start_server
from boundwatch.server.database import Database
from boundwatch.server.live_detectors import verify
from boundwatch.server.queries import totals
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
    """Run two servers and kill one `kills` times; return the counts, of which the faults must be 0."""
    certificate = folder / "certificate.json"
    costs = (np.random.default_rng(seed).random(200) < 0.1).astype(float)
    bw.Certificate.from_held_out(costs, binary=True).save(certificate)
    ports = [free_port(), free_port()]
    clients = [_Client(number, ports, seed) for number in range(CLIENTS)]
    draw = random.Random(seed)
    began = time.monotonic()
    servers = [_start(database, certificate, port) for port in ports]
    for client in clients:
        client.thread.start()
    killed = outages = 0
    while killed < kills:
        if draw.random() < 0.8:  # in the middle of their work; else also before the first answer
            _wait_for_an_answer(clients)
        time.sleep(draw.uniform(0, LONGEST_LIFE))
        if draw.random() < 0.1:
            outages += 1
            with _away(database):
                time.sleep(draw.uniform(0.2, 1.5))
            _wait_for_an_answer(clients)
        for index in draw.choice(((0,), (1,), (0,), (1,), (0, 1))):
            _end(servers[index], signal.SIGKILL)
            killed += 1
        for index, server in enumerate(servers):
            if server.returncode is not None:
                servers[index] = _start(database, certificate, ports[index], wait=draw.random() < 0.5)
    for client in clients:  # these two live until all is delivered
        client.ended.set()
        client.thread.join()
    for server in servers:
        _end(server, signal.SIGTERM)
    found = {"kills": killed, "outages": outages, "seconds": round(time.monotonic() - began, 1)}
    return {**found, **_judge(database, clients)}


def _end(server: subprocess.Popen[bytes], how: signal.Signals) -> None:
    os.killpg(server.pid, how)
    server.wait()


@contextmanager
def _away(database: str) -> Iterator[None]:
    """Let nobody into a database: PostgreSQL ends all connections, of SQLite somebody else holds the lock."""
    if not database.startswith("postgresql"):
        with contextlib.closing(sqlite3.connect(database, timeout=60, isolation_level=None)) as held:
            held.execute("BEGIN IMMEDIATE")
            yield
        return
    address, _, name = database.partition("?")[0].rpartition("/")
    with psycopg.connect(
        database.replace(f"{address}/{name}", f"{address}/postgres"), autocommit=True
    ) as held:
        held.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        held.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            held.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def _wait_for_an_answer(clients: list[_Client]) -> None:
    before = sum(len(client.acknowledged) for client in clients)
    deadline = time.monotonic() + 60
    while sum(len(client.acknowledged) for client in clients) == before and time.monotonic() < deadline:
        time.sleep(0.005)


class _Client:
    def __init__(self, number: int, ports: list[int], seed: int) -> None:
        self.number, self.ports = number, ports
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
        connection = http.client.HTTPConnection("127.0.0.1", self.random.choice(self.ports), timeout=30)
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


def _start(database: str, certificate: Path, port: int, *, wait: bool = True) -> subprocess.Popen[bytes]:
    process = start_server(port, database, "--certificate", str(certificate))
    while wait:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            break
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with code {process.returncode}") from None
            time.sleep(0.01)
    return process


def _judge(database: str, clients: list[_Client]) -> dict[str, Any]:
    opened = Database(database)
    with opened.read() as connection:
        query = select(streams.c.name, episodes.c.episode, episodes.c.cost)
        rows = connection.execute(query.join(streams, streams.c.id == episodes.c.stream_id)).all()
        waiting = totals(connection)["episodes_waiting"]
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
        "not_counted": waiting,
        "refused": sum(len(client.refused) for client in clients),
        "watches": len(replayed),
        "replay_differs": sum(bool(each.fault) for each in replayed),
    }


def show(result: dict[str, Any]) -> None:
    """Print the counts."""
    for kind in ("sqlite", "postgresql"):
        print(f"  {kind:11}", "  ".join(f"{name} {value}" for name, value in result[kind].items()))
