"""`boundwatch serve --demo`: drones from the simulation, most of the flights done, the rest as you watch.

The flights were recorded by ``tools/record_flights.py``, so that nobody needs the simulator to see the page.
"""

from __future__ import annotations

import dataclasses
import json
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

from boundwatch.server import application
from boundwatch.server.bindings import bind_streams, upload
from boundwatch.server.client import Client
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Database
from boundwatch.server.models import Bind, Report, Upload
from boundwatch.server.settings import Settings

_SHOWN_AT_ONCE = 44  # a few flights after the wind began: the alarm comes while you watch
_PAUSE = 1.0


def serve_demo(settings: Settings, announce: Callable[[str], None]) -> None:
    """Serve a temporary database with the recorded flights until the process is told to end."""
    with tempfile.TemporaryDirectory(prefix="boundwatch-demo-") as folder:
        chosen = dataclasses.replace(settings, database=str(Path(folder) / "demo.sqlite"), certificate=None)
        with closing(application.prepare(chosen)) as database:
            application.settle(chosen, database)
            flights = load_flights()
            fill(database, flights, _SHOWN_AT_ONCE)
        announce(f"boundwatch serve: {chosen.url}  (a demo; nothing is kept; Ctrl+C ends it)")
        announce(f"  {flights['windy']} flies into wind; its alarm comes within a minute")
        ended, client = threading.Event(), Client(chosen.url, spool=Path(folder) / "spool.sqlite")
        thread = threading.Thread(target=_fly, args=(client, flights["drones"], ended), daemon=True)
        thread.start()
        try:
            application.run(chosen)
        finally:
            ended.set()
            thread.join(5)
            client.close(timeout=0)


def load_flights() -> dict[str, Any]:
    """Return the recorded flights: the certificate, and the costs of each drone."""
    content: dict[str, Any] = json.loads(files("boundwatch.demo").joinpath("flights.json").read_text())
    return content


def fill(database: Database, flights: dict[str, Any], count: int) -> None:
    """Bind the drones and count the first flights of each."""
    with database.write() as connection:
        upload(connection, Upload("drone", flights["certificate"]), by="demo")
        bind_streams(connection, Bind(list(flights["drones"]), "drone"), by="demo")
    ledger, now = Ledger(database), time.time()
    for name, costs in flights["drones"].items():
        reports = [
            Report(name, f"flight {number}", cost, now - 60 * (count - number), None)
            for number, cost in enumerate(costs[:count], start=1)
        ]
        ledger.submit(reports).result()
    ledger.close()


def _fly(client: Client, drones: dict[str, list[float]], ended: threading.Event) -> None:
    for number in range(_SHOWN_AT_ONCE, max(map(len, drones.values()))):
        for name, costs in drones.items():
            if ended.wait(_PAUSE / len(drones)):
                return
            client.report(name, cost=costs[number], episode=f"flight {number + 1}")
