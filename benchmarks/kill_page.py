"""Kill the page of an evaluation with SIGKILL at random moments; no acknowledged outcome may be lost.

Phones at two stations keep what they record until it is acknowledged, as the page's script does. They hang up
before the answer, repeat what was acknowledged, abort trials that are then run again, and lose their network.
In the end every acknowledged outcome must be in the log once, nothing else may be, and after each restart
a station must be told the trial that it had.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import os
import random
import socket
import tempfile
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import boundwatch as bw
from boundwatch.evaluation.phones import serve

SEED = 20261118
KILLS = 200
STATIONS = ("left", "right", "right")  # two phones share one
LONGEST_LIFE = 0.4  # seconds from the first answer to the end
PROCESSES = multiprocessing.get_context("forkserver")


class Phone:
    """What the script of the page does, with a network that fails at random."""

    def __init__(self, station: str, port: int, seed: object = 0, *, token: str | None = None) -> None:
        self.station, self.port, self.token = station, port, token
        self.random = random.Random(f"{seed} {station}")
        self.state: dict[str, Any] = {}
        self.waiting: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []
        self.acknowledged: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.changed: list[str] = []
        self.answers = self.hung_up = 0
        self.shares = self.offline = False
        self.faults = 0.0  # how often an answer is lost

    def ask(self, path: str, content: object) -> tuple[int, Any]:
        """Return status and answer; raise OSError where there is none."""
        if self.offline:
            raise OSError("no network")
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        try:
            connection.request("POST", path, json.dumps(content), headers)
            if self.random.random() < self.faults:
                self.hung_up += 1
                raise OSError("hung up")
            answer = connection.getresponse()
            content = json.loads(answer.read())
        except (http.client.HTTPException, ValueError) as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        if answer.status >= 500:
            raise OSError(content)
        self.answers += 1
        return answer.status, content

    def due(self) -> list[dict[str, Any]]:
        """Return the trials that were handed out and not recorded here since."""
        trials = [dict(each) for each in self.state.get("trials", ())]
        for item in self.waiting:
            for each in list(trials):
                if (each["number"], each["attempt"]) == (item["trial"], item["attempt"]):
                    if any(kind in item for kind in self.state["repeated"]):
                        each["attempt"] += 1
                    else:
                        trials.remove(each)
        return trials

    def record(self, **outcome: Any) -> None:
        """Keep the outcome of the trial at hand until it is acknowledged."""
        trial = self.due()[0]
        item = {"evaluation": self.state["evaluation"], "station": self.station}
        self.waiting.append(item | {"trial": trial["number"], "attempt": trial["attempt"], **outcome})
        self.sent.append(self.waiting[-1])

    def send(self) -> None:
        """Send what waits, then ask for what is next."""
        while self.waiting:
            status, content = self.ask("/api/record", self.waiting[0])
            if status == 200:
                self.acknowledged.append(self.waiting[0])
                self.state = content
            else:
                self.refused.append(f"{status} {content} {self.waiting[0]}")
            self.waiting.pop(0)
        had = self.due()
        self.state = self.ask("/api/next", {"station": self.station})[1]
        if had and not self.shares and had[0] != self.due()[0]:
            self.changed.append(f"{had[0]} became {self.due()[0]}")

    def run(self, ended: threading.Event) -> None:
        """Record trials until told to end; what waits then is still sent."""
        while not ended.is_set() or self.waiting:
            try:
                self.send()
                if self.acknowledged and self.random.random() < 0.1:  # once more, for nothing
                    self.ask("/api/record", self.random.choice(self.acknowledged[-20:]))
            except OSError:
                time.sleep(0.01)
            for _ in range(self.random.choice((1, 1, 2))):  # the second without having asked
                if not ended.is_set() and self.due():
                    self.record(**self._outcome())

    def _outcome(self) -> dict[str, Any]:
        if self.random.random() < 0.1:
            return {"aborted": f"fault {len(self.sent)}"}
        return {"success": self.random.random() < 0.5}


def _serve(path: Path, port: int) -> None:
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # noqa: PTH123
        serve(path, port=port)


def start(path: Path, port: int) -> Any:
    """Return the process of a page."""
    PROCESSES.set_forkserver_preload(["boundwatch.evaluation.phones"])
    process = PROCESSES.Process(target=_serve, args=(path, port), daemon=True)
    process.start()
    return process


def campaign(folder: Path, kills: int, *, seed: int = SEED) -> dict[str, Any]:
    """Kill the page so often while phones record; return the counts, of which the faults must be 0."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    path = folder / "eval.db"
    settings: dict[str, Any] = {"tasks": ["mug", "bowl"], "aborted": "repeat", "seed": seed, "alpha": 1e-9}
    protocol = bw.Protocol(question="compare", policies=["a", "b"], most_rounds=100_000, **settings)
    bw.Evaluation.start(path, protocol).close()
    phones = [Phone(name, port, f"{seed} {number}") for number, name in enumerate(STATIONS)]
    for phone in phones:
        phone.faults, phone.shares = 0.05, STATIONS.count(phone.station) > 1
    ended, moments, began = threading.Event(), random.Random(seed), time.monotonic()
    threads = [threading.Thread(target=phone.run, args=(ended,), daemon=True) for phone in phones]
    for thread in threads:
        thread.start()
    for kill in range(kills + 1):  # the last one lives until all is sent
        process, before = start(path, port), sum(phone.answers for phone in phones)
        while process.is_alive() and sum(phone.answers for phone in phones) < before + (kill % 5 > 0):
            time.sleep(0.005)
        phones[-1].offline = kill % 7 == 6 and kill < kills
        time.sleep(moments.uniform(0, LONGEST_LIFE))
        if kill == kills:
            while process.is_alive() and (_acknowledged(phones) < 100 or not any(p.hung_up for p in phones)):
                time.sleep(0.01)  # however slow the machine is, there is something to judge
            ended.set()
            for thread in threads:
                thread.join()
        process.kill()
        process.join()
    return {"kills": kills, "seconds": round(time.monotonic() - began, 1), **judge(path, phones)}


def _acknowledged(phones: list[Phone]) -> int:
    return sum(len(phone.acknowledged) for phone in phones)


def judge(path: Path, phones: list[Phone]) -> dict[str, Any]:
    """Compare what phones know with what the log holds."""
    with bw.Evaluation.open(path) as evaluation:
        evaluation.verify()
        known = evaluation.replay()
    kept = {(trial, place): dict(s) for trial, said in known.attempts.items() for place, s in enumerate(said)}
    counted = [trial.number for trial, *_ in known.recorded]
    acknowledged = [item for phone in phones for item in phone.acknowledged]
    sent = [(_place(item), _said(item)) for phone in phones for item in phone.sent]
    alone = [phone for phone in phones if not phone.shares]
    return {
        "acknowledged": len(acknowledged),
        "rows": len(kept),
        "hung_up": sum(phone.hung_up for phone in phones),
        "shared": sum(len(phone.refused) for phone in phones if phone.shares),
        "lost": sum(kept.get(_place(item)) != _said(item) for item in acknowledged),
        "twice": len(counted) - len(set(counted)),
        "invented": sum(item not in sent for item in kept.items()),
        "refused": sum(len(phone.refused) for phone in alone),
        "changed": sum(len(phone.changed) for phone in alone),
    }


FAULTS = ("lost", "twice", "invented", "refused", "changed")


def _place(item: dict[str, Any]) -> tuple[int, int]:
    return item["trial"], item["attempt"]


def _said(item: dict[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in ("trial", "success", "aborted") if name in item}


def run() -> dict[str, Any]:
    """Kill two hundred times and return what was found."""
    with tempfile.TemporaryDirectory() as folder:
        return {"seed": SEED, "phones": len(STATIONS), **campaign(Path(folder), KILLS)}


def show(result: dict[str, Any]) -> None:
    """Print the counts; `shared` are outcomes of a trial that the other phone of the station had recorded."""
    print(" ", "  ".join(f"{name} {value}" for name, value in result.items()))
