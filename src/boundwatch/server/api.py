"""The JSON routes. Every answer that is not a success is application/problem+json with the remedy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, cast

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool

from boundwatch._support import schema
from boundwatch.errors import SchemaMismatch
from boundwatch.server import bindings, models, outbox, queries
from boundwatch.server.access import Actor
from boundwatch.server.counting import Ledger
from boundwatch.server.models import Refused
from boundwatch.server.settings import Settings

_PROBLEMS = {
    400: "The body is not JSON, or ended early.",
    401: "A token is needed.",
    403: "The token has no such scope, or the request comes from another site.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    409: "It conflicts with what is stored; nothing was changed.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    421: "The server has no such name.",
    422: "A field is not valid; nothing was changed.",
    429: "Too many requests: send the same again later.",
    503: "The database does not answer: send the same again later.",
}
COMPONENTS: dict[str, Any] = {}
"""What OpenAPI's document refers to."""


def _schema(kind: Any) -> dict[str, Any]:
    (found,), components = msgspec.json.schema_components([kind], ref_template="#/components/schemas/{name}")
    COMPONENTS.update(components)
    return found


def _takes(kind: Any) -> dict[str, Any]:
    """Return what OpenAPI says of the body of a request."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": _schema(kind)}}}}


_PROBLEM = {"application/problem+json": {"schema": _schema(models.Problem)}}
_BEARER = HTTPBearer(
    auto_error=False,  # the guard has refused whoever needs a token and has none
    description="A token of `boundwatch token create`; nobody needs one before the first is created.",
)
router = APIRouter(
    prefix="/api/v1",
    dependencies=[Security(_BEARER)],
    default_response_class=JSONResponse,
    responses={status: {"description": said, "content": _PROBLEM} for status, said in _PROBLEMS.items()},
)

Stream = Annotated[str, Path(max_length=100, pattern=models.PRINTABLE)]
Generation = Annotated[int | None, Query(ge=1, le=1_000_000)]
Page = Annotated[int, Query(ge=1, le=1_000_000)]
VerdictName = Annotated[str, Query(pattern="^(|adverse|benign|within)$")]
Words = Annotated[str, Query(max_length=100, pattern=models.PRINTABLE)]
Alarm = Annotated[str, Path(max_length=32, pattern=models.PRINTABLE)]
Size = Annotated[int, Query(ge=1, le=1000)]


def actor_of(request: Request, scope: str) -> Actor:
    """Return who asks, or refuse: the guard has let in only who has some token."""
    actor: Actor | None = request.state.actor
    if actor is None or not actor.may(scope):
        raise Refused(403, f"this token has no scope {scope!r}", remedy="ask an administrator for one")
    return actor


@contextmanager
def reading(request: Request, scope: str = "read") -> Iterator[Connection]:
    """Read the database for who has a scope, or refuse."""
    actor_of(request, scope)
    with request.app.state.database.read() as connection:
        yield connection


def settings_of(request: Request) -> Settings:
    """Return the settings of the application."""
    return cast("Settings", request.app.state.settings)


async def read_json(request: Request) -> Any:
    """Return the JSON body of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        remedy = "send the header 'Content-Type: application/json'"
        raise Refused(415, "the body must be JSON", remedy=remedy)
    try:
        return schema.decode(await request.body(), "body")
    except SchemaMismatch as error:
        raise Refused(400, f"the body is not JSON that can be used: {error}"[:200]) from error


async def act(request: Request, work: Callable[..., models.Kind], *arguments: Any) -> models.Kind:
    """Return what somebody who administers does in one transaction, in a thread."""
    by = actor_of(request, "administer").name

    def write() -> models.Kind:
        with request.app.state.database.write() as connection:
            return work(connection, *arguments, by=by)

    return await run_in_threadpool(write)


async def _read(request: Request, kind: type[models.Kind]) -> models.Kind:
    actor_of(request, "administer")
    return models.check(kind, await read_json(request))


def _chosen(rows: Iterable[Mapping[Any, Any]], names: str) -> list[dict[str, Any]]:
    return [{name: row[name] for name in names.split()} for row in rows]


@router.post("/episodes", openapi_extra=_takes(models.Episode | models.Episodes))
async def report(request: Request) -> Response:
    """Report one episode or many; the answer comes when they are on the disk."""
    actor = actor_of(request, "report")
    reports = models.parse_reports(await read_json(request))
    for name in {report.stream for report in reports}:
        if not actor.may_report(name):
            problem = f"this token may not report for stream = {name!r}"
            raise Refused(403, problem, remedy="ask for one that may")
    ledger: Ledger = request.app.state.ledger
    return JSONResponse(await asyncio.wrap_future(ledger.submit(reports, actor.name)))


@router.get("/streams")
def list_streams(
    request: Request, verdict: VerdictName = "", search: Words = "", page: Page = 1, size: Size = 100
) -> dict[str, Any]:
    """List streams, the strongest evidence first."""
    asked: dict[str, Any] = {"verdict": verdict, "search": search}
    with reading(request) as connection:
        rows, total = queries.list_streams(connection, **asked, page=page, size=size)
    silent = settings_of(request).silent_before
    return {"total": total, "page": page, "streams": [queries.as_json(row, silent) for row in rows]}


@router.post("/streams", openapi_extra=_takes(models.Bind), status_code=201)
async def bind(request: Request) -> Response:
    """Bind streams to a certificate, a detector and levels, before their first episode."""
    done = await act(request, bindings.bind_streams, await _read(request, models.Bind))
    return JSONResponse({"generations": done}, 201)


@router.get("/streams/{stream}")
def show_stream(request: Request, stream: Stream, generation: Generation = None) -> dict[str, Any]:
    """Say where one stream stands."""
    with reading(request) as connection:
        row = queries.find_stream(connection, stream, generation)
    return queries.as_json(row, settings_of(request).silent_before)


@router.get("/streams/{stream}/episodes")
def list_episodes(
    request: Request,
    stream: Stream,
    generation: Generation = None,
    after: Annotated[int, Query(ge=0, le=2_000_000_000)] = 0,
    size: Size = 500,
) -> dict[str, Any]:
    """List episodes of a stream in the order in which they were counted."""
    with reading(request) as connection:
        row = queries.find_stream(connection, stream, generation)
        found = queries.list_episodes(connection, row, after=after, limit=size)
    listed = _chosen(found, "number episode cost time received meta")
    for each in listed:
        each["meta"] = each["meta"] and json.loads(each["meta"])
    return {"stream": row["name"], "generation": row["generation"], "n": row["n"], "episodes": listed}


@router.get("/streams/{stream}/labels")
def list_waiting(request: Request, stream: Stream) -> dict[str, Any]:
    """List the first episodes that a machine judged and people are to label, without what it said."""
    with reading(request, "label") as connection:
        row, count, found = queries.list_waiting(connection, stream)
    listed = _chosen(found, "episode time received meta")
    for each in listed:
        each["meta"] = each["meta"] and json.loads(each["meta"])
    return {"stream": row["name"], "waiting": count, "labeled": row["labeled"], "episodes": listed}


@router.post("/streams/{stream}/labels", openapi_extra=_takes(models.Label), status_code=201)
async def label(request: Request, stream: Stream) -> Response:
    """Say whether an episode failed that was drawn; the answer comes when that is on the disk."""
    by = actor_of(request, "label").name
    sent = models.check(models.Label, await read_json(request))

    def find() -> models.Report:
        with request.app.state.database.read() as connection:
            return queries.report_label(connection, stream, sent, by=by)

    await asyncio.wrap_future(request.app.state.ledger.submit([await run_in_threadpool(find)], by))
    return JSONResponse({"stream": stream, "episode": str(sent.episode)}, 201)


@router.get("/fleet")
def show_fleet(
    request: Request, rate: Annotated[float | None, Query(gt=0, lt=1, allow_inf_nan=False)] = None
) -> dict[str, Any]:
    """List the streams whose costs have risen, at one false discovery rate."""
    with reading(request) as connection:
        found = queries.fleet(connection, rate or settings_of(request).discovery_rate)
    listed = [queries.as_json(row) for row in found.discoveries]
    counts = {"streams": found.streams, "left_out": found.left_out}
    return {"rate": found.rate, "delta": found.delta, **counts, "discoveries": listed}


@router.get("/certificates")
def list_certificates(request: Request) -> dict[str, Any]:
    """List the certificates."""
    with reading(request) as connection:
        rows = queries.list_certificates(connection)
    return {"certificates": _chosen(rows, "name version fingerprint created created_by streams")}


@router.post("/certificates", openapi_extra=_takes(models.Upload), status_code=201)
async def upload(request: Request) -> Response:
    """Upload a certificate; it is verified on arrival and gets the next version of its name."""
    row = await act(request, bindings.upload, await _read(request, models.Upload))
    return JSONResponse(_chosen([row], "name version fingerprint")[0], 201)


@router.get("/alarms")
def list_alarms(request: Request, waiting: bool | None = None) -> dict[str, Any]:
    """List alarms, the latest first."""
    names = "id stream generation verdict number created acknowledged acknowledged_by reason"
    with reading(request) as connection:
        rows = queries.list_alarms(connection, waiting=waiting)
    return {"alarms": _chosen(rows, names)}


@router.post("/alarms/{alarm}/acknowledge", openapi_extra=_takes(models.Acknowledge))
async def acknowledge(request: Request, alarm: Alarm) -> dict[str, Any]:
    """Acknowledge an alarm and say why; it stays in the history."""
    await act(request, outbox.acknowledge, alarm, await _read(request, models.Acknowledge))
    return {"alarm": alarm, "acknowledged_by": request.state.actor.name}


@router.get("/audit")
def list_audit(request: Request) -> dict[str, Any]:
    """List the latest administrative acts."""
    with reading(request, "administer") as connection:
        return {"audit": [dict(row) for row in queries.list_audit(connection)]}
