"""Puts the server together, prepares it and runs it: one process or several, and a clean end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy import func, select
from sqlalchemy.exc import DataError, SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.server import api, bindings, metrics, pages, roster, upkeep
from boundwatch.server.access import Gatekeeper
from boundwatch.server.bindings import Binding
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Chore, Database, Sentinel, log_failure
from boundwatch.server.guard import Guard, Impatient, no_answer, problem
from boundwatch.server.models import Name, Refused, Upload, check
from boundwatch.server.settings import Settings
from boundwatch.server.tables import tokens

_SETTINGS_VARIABLE = "BOUNDWATCH_INTERNAL_SETTINGS"
_LOG = logging.getLogger("boundwatch.server")
_GRACE = 5  # seconds for requests in flight; what is open then is cut


def create_application(settings: Settings) -> FastAPI:
    """Return the ASGI application of a server whose database has been migrated."""
    database = Database(settings.database)
    sentinel = Sentinel(database)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        default = await run_in_threadpool(default_binding, settings, database, warm=True)
        most = settings.streams_per_token
        told = settings.channels if settings.tell == "streams" else ()
        ledger = Ledger(database, default=default, channels=told, most_begun=most)
        threads: list[Ledger | Chore] = [ledger, *upkeep.begin(database, settings, ledger.roster)]
        app.state.ledger, watching = ledger, asyncio.create_task(sentinel.watch())
        _LOG.info("ready on %s", database.shown)
        yield
        watching.cancel()
        await asyncio.gather(*(run_in_threadpool(each.close) for each in threads))
        database.close()
        _LOG.info("stopped")

    app = FastAPI(
        title="boundwatch",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads its scripts from elsewhere
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.database, app.state.settings = database, settings
    app.state.gatekeeper = Gatekeeper(database)
    for each in (api, pages, metrics):
        app.include_router(each.router)
    for path in ("/healthz", "/readyz"):
        app.add_api_route(path, _say_status, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")
    _handle_errors(app)
    app.openapi()["components"]["schemas"] = api.COMPONENTS  # FastAPI, which keeps it, knows its own only
    hosts = {"localhost", socket.gethostname(), settings.host, *settings.allow_host}
    app.add_middleware(Guard, app.state.gatekeeper, sentinel, hosts, settings.rate_limit)
    return app


def from_environment() -> FastAPI:
    """Return the application for one of several processes."""
    _configure_logs()
    return create_application(msgspec.json.decode(os.environ[_SETTINGS_VARIABLE], type=Settings))


def default_binding(settings: Settings, database: Database, *, warm: bool = False) -> Binding | None:
    """Return what new streams are bound to, and keep its certificate; ready for the first, if asked for."""
    if settings.certificate is None:
        return None
    certificate = Certificate.load(settings.certificate)
    name = check(Name, Path(settings.certificate).stem[:100], f"{settings.certificate}: name")
    with database.write() as connection:
        row = bindings.upload(connection, Upload(name, certificate.to_dict()), by="command line")
    binding = Binding(row["id"], settings.detector, settings.alpha_adverse, settings.alpha_benign)
    if warm:
        with database.read() as connection:
            bindings.warm(connection, binding)
    return binding


async def _say_status(request: Request) -> dict[str, str]:  # of the database, the guard knows
    return {"status": "alive" if request.url.path == "/healthz" else "ready"}


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(BoundwatchError)
    async def refused(_request: Request, error: BoundwatchError) -> Response:
        status = error.status if isinstance(error, Refused) else 422
        return problem(
            status, " ".join(str(error).split()), **({"Retry-After": "1"} if status == 503 else {})
        )

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Response:
        fields = {".".join(str(part) for part in each["loc"][1:]): each for each in error.errors()}
        said = (f"{name} = {str(e.get('input'))[:60]!r}: {e['msg'].lower()}" for name, e in fields.items())
        return problem(422, "; ".join(said))

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        detail = f"{request.method} {request.url.path[:80]}: {str(error.detail).lower()}"
        return problem(error.status_code, detail, **(error.headers or {}))

    @app.exception_handler(SQLAlchemyError)
    async def no_database(_request: Request, error: SQLAlchemyError) -> Response:
        if isinstance(error, DataError):  # PostgreSQL knows no character zero
            return problem(422, "a text holds what no database can; leave out unprintable characters")
        log_failure("the database failed", error)
        return no_answer()


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{record.msecs:03.0f}Z"
        content: dict[str, Any] = {"time": moment, "level": record.levelname.lower()}
        content |= {"process": record.process, "message": record.getMessage()}
        if record.exc_info:
            content["error"] = self.formatException(record.exc_info)
        return json.dumps(content)


def _configure_logs() -> None:
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
        remedy = "use 1, or --database postgresql://…"
        reason = "cannot share an SQLite file well"
        raise InvalidSetting(reason, name="workers", value=settings.workers, remedy=remedy)
    database.migrate(create=create)
    if not settings.is_local:
        with database.read() as connection:
            valid = select(func.count()).select_from(tokens).where(tokens.c.revoked.is_(None))
            if not connection.execute(valid).scalar():
                remedy = "create one: boundwatch token create admin --scope administer; or use 127.0.0.1"
                reason = "can be reached from other machines, and there is no token"
                raise InvalidSetting(reason, name="host", value=settings.host, remedy=remedy)
    return database


def settle(settings: Settings, database: Database) -> None:
    """Use every setting once, and keep certificate and fleet size, before anything is announced.

    The server itself would find out too late to refuse one in one line.
    """
    _ = settings.channels
    _check_tls(settings)
    _check_address(settings)
    default_binding(settings, database)
    roster.clear(database)
    if settings.fleet_size is not None:
        with database.write() as connection:
            bindings.declare_fleet(connection, settings.fleet_size)


def _check_tls(settings: Settings) -> None:
    if settings.tls_certificate is None and settings.tls_key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_certificate or "", settings.tls_key)
    except OSError as error:
        given = f"tls_certificate = {settings.tls_certificate!r}, tls_key = {settings.tls_key!r}"
        reason = f"{given} cannot be used, {error.strerror or error}"
        raise InvalidSetting(reason, remedy="give a PEM file and its key") from error


def _check_address(settings: Settings) -> None:
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(address)
    except OSError as error:
        reason = f"{settings.url}: cannot be listened on, {error.strerror or error}"
        remedy = "stop what listens there, or choose another --port or --host"
        raise InvalidSetting(reason, remedy=remedy) from error


def run(settings: Settings) -> None:
    """Serve until the process is told to end; a database that has been prepared is needed."""
    _configure_logs()
    options: dict[str, Any] = {"host": settings.host, "port": settings.port, "http": Impatient}
    options |= {"log_config": None, "access_log": False, "server_header": False, "backlog": 2048}
    options |= {"ssl_certfile": settings.tls_certificate, "ssl_keyfile": settings.tls_key}
    options |= {"timeout_graceful_shutdown": _GRACE}
    # Anybody may send X-Forwarded-For, so it is believed only of who is declared.
    options |= {"proxy_headers": bool(settings.proxy), "forwarded_allow_ips": list(settings.proxy)}
    options |= {"timeout_worker_healthcheck": 30}  # a busy process is not a dead one
    if settings.workers == 1:
        uvicorn.Server(uvicorn.Config(create_application(settings), **options)).run()
        return
    os.environ[_SETTINGS_VARIABLE] = msgspec.json.encode(settings).decode()
    uvicorn.run(
        "boundwatch.server.application:from_environment", factory=True, workers=settings.workers, **options
    )
