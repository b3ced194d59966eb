"""How long an alarm takes to a healthy receiver while one beside it drips and one hangs.

A hundred streams turn ADVERSE one after the other, every tenth of a second. The dripping receiver sends its
answer a byte at a time without end; the hanging one takes the connection and says nothing.
"""

from __future__ import annotations

import contextlib
import json
import socket
import tempfile
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw
from benchmarks.serve import postgresql
from boundwatch.server.bindings import Binding, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Chore, Database
from boundwatch.server.models import Report, Upload
from boundwatch.server.outbox import Channel, deliver

SEED = 20261118
ALARMS = 100
EVERY = 0.1  # seconds
LIMIT = 3.0  # seconds, of the 99th percentile


def run() -> dict[str, Any]:
    """Return the latencies, in seconds, on each database."""
    with tempfile.TemporaryDirectory() as folder, postgresql(Path(folder)) as url:
        return {
            "seed": SEED,
            "alarms": ALARMS,
            "limit": LIMIT,
            "sqlite": measure(str(Path(folder) / "monitor.sqlite")),
            "postgresql": measure(url),
        }


def measure(url: str) -> dict[str, Any]:
    """Raise the alarms and return how late the healthy receiver had them."""
    came: dict[str, float] = {}
    order: list[str] = []

    class Healthy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            stream = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["stream"]
            came.setdefault(stream, time.monotonic())
            order.append(stream)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    healthy = ThreadingHTTPServer(("127.0.0.1", 0), Healthy)
    threading.Thread(target=healthy.serve_forever, daemon=True).start()
    unkind = [_listen(b""), _listen(b"HTTP/1.1 204 No Content\r\nX: ")]
    ports = [*(each.getsockname()[1] for each in unkind), healthy.server_port]
    channels = [Channel("webhook", f"http://127.0.0.1:{port}/") for port in ports]
    sent = _raise_alarms(url, channels, came)
    for each in unkind:
        each.close()
    healthy.shutdown()
    healthy.server_close()
    late = [came[stream] - moment for stream, moment in sent.items()]
    return {
        "median": float(np.median(late)),
        "p99": float(np.quantile(late, 0.99)),
        "largest": max(late),
        "in_order": order == list(sent),
    }


def _raise_alarms(url: str, channels: list[Channel], came: dict[str, float]) -> dict[str, float]:
    costs = (np.random.default_rng(SEED).random(200) < 0.1).astype(float)
    certificate = bw.Certificate.from_held_out(costs, binary=True)
    database = Database(url)
    database.migrate()
    with database.write() as connection:
        binding = Binding(upload(connection, Upload("lab", certificate.to_dict()), by="bench")["id"])
    ledger = Ledger(database, default=binding, channels=channels)
    couriers = [Chore(partial(deliver, database, channel), 0.5) for channel in channels]
    sent = {}
    for number in range(ALARMS):
        stream = f"arm-{number}"
        sent[stream] = time.monotonic()
        ledger.submit([Report(stream, str(i), 1.0, None, None) for i in range(30)]).result()
        time.sleep(EVERY)
    end = time.monotonic() + 120
    while len(came) < ALARMS and time.monotonic() < end:
        time.sleep(0.01)
    for each in (ledger, *couriers):
        each.close()
    database.close()
    return sent


def _listen(greeting: bytes) -> socket.socket:
    """Return a receiver that says nothing, or something without end."""
    listener = socket.create_server(("127.0.0.1", 0))

    def drip(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(greeting)
            while True:
                connection.sendall(b"x" if greeting else b"")
                time.sleep(1.0)

    def take() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=take, daemon=True).start()
    return listener


def show(result: dict[str, Any]) -> None:
    """Print a table."""
    for kind in ("sqlite", "postgresql"):
        each = result[kind]
        print(
            f"{kind:>10}: median {each['median']:.2f} s, 99 % within {each['p99']:.2f} s, "
            f"largest {each['largest']:.2f} s, in order: {each['in_order']}"
        )
