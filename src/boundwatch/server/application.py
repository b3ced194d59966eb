"""Puts the server together: routes behind the guard, a ledger and a courier that live as long as it does."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from sqlalchemy import select
from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from boundwatch._version import __version__
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import BoundwatchError
from boundwatch.server import acts, api, events, forms, metrics, pages
from boundwatch.server.access import Gatekeeper
from boundwatch.server.bindings import AlreadyBound, Binding
from boundwatch.server.counting import Ledger, Refused
from boundwatch.server.database import Database, Sentinel, log_failure
from boundwatch.server.guard import Guard, no_answer, problem
from boundwatch.server.models import Name, Upload, check
from boundwatch.server.outbox import Courier
from boundwatch.server.settings import Settings
from boundwatch.server.tables import certificates
from boundwatch.server.upkeep import Upkeep

SETTINGS_VARIABLE = "BOUNDWATCH_INTERNAL_SETTINGS"
_LOG = logging.getLogger("boundwatch.server")


def create_application(settings: Settings) -> FastAPI:
    """Return the ASGI application of a server.

    Parameters
    ----------
    settings
        Its database must have been migrated.
    """
    database = Database(settings.database)
    sentinel = Sentinel(database)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        default = await run_in_threadpool(default_binding, settings, database)
        most = settings.streams_per_token
        ledger = Ledger(database, default=default, channels=settings.channels, most_begun=most)
        courier = Courier(database, settings.channels)
        upkeep = Upkeep(database, settings)
        app.state.ledger = ledger
        events.start(app, database)
        watching = asyncio.create_task(sentinel.watch())
        _LOG.info("ready on %s", database.shown)
        yield
        await events.stop(app)
        watching.cancel()
        for each in (ledger, upkeep, courier):
            await run_in_threadpool(each.close)
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
    app.state.database = database
    app.state.settings = settings
    app.state.gatekeeper = Gatekeeper(database)
    for each in (api, pages, forms, events, metrics):
        app.include_router(each.router)
    app.add_api_route("/healthz", _is_alive, include_in_schema=False)
    app.add_api_route("/readyz", _is_ready, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=Path(__file__).with_name("static")), name="static")
    _handle_errors(app)
    _describe(app)
    hosts = {"localhost", socket.gethostname(), settings.host, *settings.allow_host}
    app.add_middleware(
        Guard, gatekeeper=app.state.gatekeeper, sentinel=sentinel, hosts=hosts, rate=settings.rate_limit
    )
    return app


def from_environment() -> FastAPI:
    """Return the application for one of several processes."""
    from boundwatch.server.process import configure_logs

    configure_logs()
    return create_application(Settings.from_json(os.environ[SETTINGS_VARIABLE]))


def default_binding(settings: Settings, database: Database) -> Binding | None:
    """Return what new streams are bound to, and keep its certificate."""
    binding = Binding.of(0, settings.detector, settings.alpha_adverse, settings.alpha_benign)
    if settings.certificate is None:
        return None
    certificate = Certificate.load(settings.certificate)
    known = select(certificates.c.id).where(certificates.c.fingerprint == certificate.fingerprint)
    with contextlib.suppress(IntegrityError), database.write() as connection:  # another was quicker
        if connection.execute(known).scalar() is None:
            name = check(Name, Path(settings.certificate).stem[:100], f"{settings.certificate}: name")
            acts.upload(connection, Upload(name, certificate.to_dict()), by="command line")
    with database.read() as connection:
        found = connection.execute(known).scalar_one()
    return dataclasses.replace(binding, certificate_id=found)


async def _is_alive() -> dict[str, str]:
    return {"status": "alive"}


async def _is_ready() -> dict[str, str]:
    return {"status": "ready"}  # the guard answers while the database is away


def _describe(app: FastAPI) -> None:
    """Add to the OpenAPI document the types that all routes refer to; FastAPI knows its own only."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        document["components"]["schemas"] = api.COMPONENTS
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_request: Request, error: Refused) -> Response:
        headers = {"Retry-After": "1"} if error.status == 503 else {}
        return problem(error.status, str(error), **headers)

    @app.exception_handler(BoundwatchError)
    async def invalid(_request: Request, error: BoundwatchError) -> Response:
        status = 409 if isinstance(error, AlreadyBound) else 422
        return problem(status, " ".join(str(error).split()))

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Response:
        return problem(422, "; ".join(_say(each) for each in error.errors()))

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


def _say(error: Any) -> str:
    field = ".".join(str(part) for part in error["loc"][1:])
    return f"{field} = {str(error.get('input'))[:60]!r}: {error['msg'].lower()}"
