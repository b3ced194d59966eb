"""Runs the server: one process or several, one line of JSON per log entry, and a clean end."""

from __future__ import annotations

import json
import logging
import os
import socket
import ssl
import sys
import time
from typing import Any

import uvicorn
from sqlalchemy import func, select

from boundwatch.errors import InvalidSetting
from boundwatch.server.application import SETTINGS_VARIABLE, create_application, default_binding
from boundwatch.server.bindings import declare_fleet
from boundwatch.server.database import Database
from boundwatch.server.guard import Impatient
from boundwatch.server.settings import Settings
from boundwatch.server.tables import tokens

_GRACE = 5  # seconds for requests in flight; open event streams are cut then


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "process": record.process,
            "message": record.getMessage(),
        }
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content)


def configure_logs() -> None:
    """Write logs as one JSON object per line to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    for name in ("boundwatch.server", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:], logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "boundwatch.server" else logging.WARNING)


def prepare(settings: Settings, *, create: bool = True) -> Database:
    """Open and migrate the database, and refuse what would be open to strangers; see `Database.migrate`."""
    database = Database(settings.database)
    if settings.workers > 1 and database.kind == "sqlite":
        raise InvalidSetting(
            f"workers = {settings.workers} cannot share an SQLite file well; use 1, or --database postgresql://…"
        )
    database.migrate(create=create)
    if not settings.is_local:
        with database.read() as connection:
            valid = select(func.count()).select_from(tokens).where(tokens.c.revoked.is_(None))
            if not connection.execute(valid).scalar():
                raise InvalidSetting(
                    f"host = {settings.host!r} can be reached from other machines, and there is no token; "
                    "create one first: boundwatch token create admin --scope administer, or use 127.0.0.1"
                )
    return database


def settle(settings: Settings, database: Database) -> None:
    """Use every setting once, and keep certificate and fleet size, before anything is announced.

    Raises
    ------
    BoundwatchError
        When one of them cannot be used. The server itself would find out too late to say so in one line.
    """
    _ = settings.channels
    _check_tls(settings)
    _check_address(settings)
    default_binding(settings, database)
    if settings.fleet_size is not None:
        with database.write() as connection:
            declare_fleet(connection, settings.fleet_size)


def _check_tls(settings: Settings) -> None:
    if settings.tls_certificate is None and settings.tls_key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            settings.tls_certificate or "", settings.tls_key
        )
    except OSError as error:
        raise InvalidSetting(
            f"tls_certificate = {settings.tls_certificate!r}, tls_key = {settings.tls_key!r} cannot be used, "
            f"{error.strerror or error}; give a PEM file and its key"
        ) from error


def _check_address(settings: Settings) -> None:
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        raise InvalidSetting(
            f"{settings.url}: cannot be listened on, {error.strerror or error}; stop what listens there, or "
            "choose another --port or --host"
        ) from error


def run(settings: Settings) -> None:
    """Serve until the process is told to end; a database that has been prepared is needed."""
    configure_logs()
    options: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "timeout_graceful_shutdown": _GRACE,
        "ssl_certfile": settings.tls_certificate,
        "ssl_keyfile": settings.tls_key,
        "timeout_worker_healthcheck": 30,  # a busy process is not a dead one
        "backlog": 2048,
        "http": Impatient,
    }
    if settings.workers == 1:
        uvicorn.Server(uvicorn.Config(create_application(settings), **options)).run()
        return
    os.environ[SETTINGS_VARIABLE] = settings.to_json()
    uvicorn.run(
        "boundwatch.server.application:from_environment", factory=True, workers=settings.workers, **options
    )
