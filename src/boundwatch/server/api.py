"""The JSON routes. Every answer that is not a success is application/problem+json with the remedy."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response, Security
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBearer
from starlette.concurrency import run_in_threadpool

from boundwatch.errors import InvalidSetting
from boundwatch.server import acts, views
from boundwatch.server.access import Actor
from boundwatch.server.database import Database
from boundwatch.server.ledger import Ledger, Refused
from boundwatch.server.reports import MOST_EPISODES, parse_reports, shown
from boundwatch.server.settings import Settings

PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, where, and what to do."},
    },
}
"""What OpenAPI says about an answer that is not a success, as the component ``Problem`` (RFC 9457)."""

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
_ALWAYS, _OF_A_BODY = (401, 403, 421, 429, 503), (400, 408, 413, 415, 422)


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    schema = {"schema": {"$ref": "#/components/schemas/Problem"}}
    return {
        status: {"description": _PROBLEMS[status], "content": {"application/problem+json": schema}}
        for status in statuses
    }


def _answers(status: int, *problems: int, **properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return what OpenAPI says about the answers of a route, beyond those that every route gives."""
    schema = {"type": "object", "required": list(properties), "properties": properties}
    success = {"description": "Done.", "content": {"application/json": {"schema": schema}}}
    return {"status_code": status, "responses": {status: success, **_problems(*problems)}}


_BEARER = HTTPBearer(
    auto_error=False,  # the guard has refused whoever needs a token and has none
    description="A token of `boundwatch token create`; nobody needs one before the first is created.",
)
router = APIRouter(prefix="/api/v1", dependencies=[Security(_BEARER)], responses=_problems(*_ALWAYS))

_COUNT = {"type": "integer", "minimum": 0}
_OBJECT = {"type": "object"}
_LIST = {"type": "array", "items": _OBJECT}
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_MAYBE = {"type": ["number", "null"]}
_STANDING: dict[str, Mapping[str, Any]] = {
    "stream": _TEXT,
    "generation": _COUNT,
    "certificate": _OBJECT,
    "detector": _TEXT,
    "alpha_adverse": _NUMBER,
    "alpha_benign": _NUMBER,
    "verdict": {"enum": ["adverse", "benign", "within"]},
    "first_alarm": {"type": ["integer", "null"]},
    "n": _COUNT,
    "mean_cost": _MAYBE,
    "evidence_adverse": _NUMBER,
    "evidence_benign": _NUMBER,
    "threshold_adverse": _MAYBE,
    "threshold_benign": _MAYBE,
    "last_seen": _MAYBE,
    "silent": {"type": "boolean"},
    "closed": _MAYBE,
}
_STREAMS = {
    "type": "array",
    "items": {"type": "object", "required": list(_STANDING), "properties": _STANDING},
}
_NAME = {"type": "string", "minLength": 1, "maxLength": 100}
_EPISODE = {
    "type": "object",
    "required": ["stream", "episode"],
    "additionalProperties": False,
    "properties": {
        "stream": _NAME,
        "episode": {"type": "string", "minLength": 1, "maxLength": 200},
        "cost": {"type": "number", "minimum": 0, "maximum": 1},
        "success": {"type": "boolean"},
        "time": {"type": ["string", "number"]},
        "meta": {"type": "object"},
    },
}
_REPORTS = {
    "anyOf": [_EPISODE, {"type": "array", "items": _EPISODE, "minItems": 1, "maxItems": MOST_EPISODES}]
}
_UPLOAD = {
    "type": "object",
    "required": ["name", "certificate"],
    "properties": {"name": _NAME, "certificate": {"type": "object"}},
}
_WATCH = {
    "type": "object",
    "required": ["streams", "certificate"],
    "properties": {
        "streams": {"type": "array", "items": _NAME, "minItems": 1},
        "certificate": {"type": "string"},
        "detector": {"enum": ["sequential-test", "change-detector"]},
        "alpha_adverse": {"type": "number"},
        "alpha_benign": {"type": "number"},
        "reason": {"type": "string", "maxLength": 500},
        "new_generation": {"type": "boolean"},
    },
}
_ACKNOWLEDGE = {
    "type": "object",
    "required": ["reason"],
    "properties": {"reason": {"type": "string", "minLength": 1, "maxLength": 500}},
}
Stream = Annotated[str, Path(max_length=100)]
Page = Annotated[int, Query(ge=1, le=1_000_000)]
VerdictName = Annotated[str, Query(pattern="^(|adverse|benign|within)$")]
Words = Annotated[str, Query(max_length=100)]
Size = Annotated[int, Query(ge=1, le=1000)]


def body_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return what OpenAPI says about a JSON body that the route reads by itself."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def actor_of(request: Request, scope: str) -> Actor:
    """Return who asks, or refuse: the guard has let in only who has some token."""
    actor: Actor | None = request.state.actor
    if actor is None or not actor.may(scope):
        raise Refused(403, f"this token has no scope {scope!r}; ask an administrator for one that has")
    return actor


def database_of(request: Request) -> Database:
    """Return the database of the application."""
    database: Database = request.app.state.database
    return database


def settings_of(request: Request) -> Settings:
    """Return the settings of the application."""
    settings: Settings = request.app.state.settings
    return settings


async def read_json(request: Request) -> Any:
    """Return the JSON body of a request."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body must be JSON; send the header 'Content-Type: application/json'")
    body = await request.body()
    try:
        content = json.loads(body, parse_constant=_number, parse_int=_whole, object_pairs_hook=_object)
        if b"\\ud" in body.lower():
            json.dumps(content, ensure_ascii=False).encode()  # half a pair of surrogates is no character
        return content
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON, {str(error)[:100]}; correct it") from error


async def read_object(request: Request, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with known fields only."""
    content = await read_json(request)
    if not isinstance(content, dict):
        raise InvalidSetting(f"the body = {shown(content)} is not an object; send one")
    known = schema["properties"]
    if unknown := [name for name in content if name not in known]:
        raise InvalidSetting(f"{unknown[0][:40]} is unknown; known are {', '.join(known)}")
    return content


@router.post(
    "/episodes",
    openapi_extra=body_of(_REPORTS),
    **_answers(200, *_OF_A_BODY, 404, 409, counted=_COUNT, repeated=_COUNT, streams=_OBJECT),
)
async def report(request: Request) -> Response:
    """Report one episode or many; the answer comes when they are on the disk."""
    actor = actor_of(request, "report")
    reports = parse_reports(await read_json(request))
    for name in {report.stream for report in reports}:
        if not actor.may_report(name):
            raise Refused(403, f"this token may not report for stream = {name!r}; ask for one that may")
    ledger: Ledger = request.app.state.ledger
    return JSONResponse(await asyncio.wrap_future(ledger.submit(reports, actor.name)))


@router.get("/streams", **_answers(200, 422, total=_COUNT, page=_COUNT, streams=_STREAMS))
def list_streams(
    request: Request,
    verdict: VerdictName = "",
    search: Words = "",
    certificate: Words = "",
    page: Page = 1,
    size: Size = 100,
) -> dict[str, Any]:
    """List streams, the strongest evidence first."""
    actor_of(request, "read")
    silent = views.silent_before(settings_of(request).silent_minutes)
    filters = views.Filters(verdict, _printable(search, "search"), _printable(certificate, "certificate"))
    with database_of(request).read() as connection:
        rows, total = views.list_streams(connection, filters, page=page, size=size)
    return {"total": total, "page": page, "streams": [views.as_json(row, silent) for row in rows]}


@router.post(
    "/streams", openapi_extra=body_of(_WATCH), **_answers(201, *_OF_A_BODY, 409, generations=_OBJECT)
)
async def watch(request: Request) -> Response:
    """Bind streams to a certificate, a detector and levels, before their first episode."""
    actor = actor_of(request, "administer")
    content = await read_object(request, _WATCH)
    names = content.get("streams")
    if not isinstance(names, list):
        raise InvalidSetting(f"streams = {shown(names)} is not a list; send a list of names")
    renew = content.get("new_generation", False)
    if not isinstance(renew, bool):
        raise InvalidSetting(f"new_generation = {shown(renew)} is not true or false; send either")

    def work() -> dict[str, int]:
        with database_of(request).write() as connection:
            return acts.watch(
                connection,
                names,
                content.get("certificate"),
                by=actor.name,
                detector=content.get("detector"),
                alpha_adverse=_level(content, "alpha_adverse"),
                alpha_benign=_level(content, "alpha_benign"),
                reason=content.get("reason"),
                new_generation=renew,
            )

    return JSONResponse({"generations": await run_in_threadpool(work)}, 201)


@router.get("/streams/{stream}", **_answers(200, 404, 422, **_STANDING))
def show_stream(
    request: Request, stream: Stream, generation: Annotated[int | None, Query(ge=1, le=1_000_000)] = None
) -> dict[str, Any]:
    """Say where one stream stands."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        row = views.find_stream(connection, _printable(stream, "stream"), generation)
    return views.as_json(row, views.silent_before(settings_of(request).silent_minutes))


@router.get(
    "/streams/{stream}/episodes",
    **_answers(200, 404, 422, stream=_TEXT, generation=_COUNT, n=_COUNT, episodes=_LIST),
)
def list_episodes(
    request: Request,
    stream: Stream,
    generation: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
    after: Annotated[int, Query(ge=0, le=2_000_000_000)] = 0,
    size: Size = 500,
) -> dict[str, Any]:
    """List episodes of a stream in the order in which they were counted."""
    actor_of(request, "read")
    fields = ("number", "episode", "cost", "time", "received")
    with database_of(request).read() as connection:
        row = views.find_stream(connection, _printable(stream, "stream"), generation)
        found = views.list_episodes(connection, row["id"], after=after, limit=size)
    listed = [
        {name: each[name] for name in fields} | {"meta": each["meta"] and json.loads(each["meta"])}
        for each in found
    ]
    return {"stream": row["name"], "generation": row["generation"], "n": row["n"], "episodes": listed}


@router.get(
    "/fleet",
    **_answers(200, 422, rate=_NUMBER, delta=_NUMBER, streams=_COUNT, left_out=_COUNT, discoveries=_STREAMS),
)
def show_fleet(
    request: Request, rate: Annotated[float | None, Query(gt=0, lt=1, allow_inf_nan=False)] = None
) -> dict[str, Any]:
    """List the streams whose costs have risen, at one false discovery rate."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        found = views.fleet(connection, rate or settings_of(request).discovery_rate)
    return {
        "rate": found.rate,
        "delta": found.delta,
        "streams": found.streams,
        "left_out": found.left_out,
        "discoveries": [views.as_json(row) for row in found.discoveries],
    }


@router.get("/certificates", **_answers(200, certificates=_LIST))
def list_certificates(request: Request) -> dict[str, Any]:
    """List the certificates."""
    actor_of(request, "read")
    fields = ("name", "version", "fingerprint", "created", "created_by", "streams")
    with database_of(request).read() as connection:
        rows = views.list_certificates(connection)
    return {"certificates": [{name: row[name] for name in fields} for row in rows]}


@router.post(
    "/certificates",
    openapi_extra=body_of(_UPLOAD),
    **_answers(201, *_OF_A_BODY, name=_TEXT, version=_COUNT, fingerprint=_TEXT),
)
async def upload(request: Request) -> Response:
    """Upload a certificate; it is verified on arrival and gets the next version of its name."""
    actor = actor_of(request, "administer")
    content = await read_object(request, _UPLOAD)

    def work() -> dict[str, object]:
        with database_of(request).write() as connection:
            return acts.upload(connection, content.get("certificate"), content.get("name"), by=actor.name)

    return JSONResponse(await run_in_threadpool(work), 201)


@router.get("/alarms", **_answers(200, 422, alarms=_LIST))
def list_alarms(request: Request, waiting: bool | None = None) -> dict[str, Any]:
    """List alarms, the latest first."""
    actor_of(request, "read")
    fields = ("id", "stream", "generation", "verdict", "number", "created")
    answers = ("acknowledged", "acknowledged_by", "reason")
    with database_of(request).read() as connection:
        rows = views.list_alarms(connection, waiting=waiting)
    return {"alarms": [{name: row[name] for name in fields + answers} for row in rows]}


@router.post(
    "/alarms/{alarm}/acknowledge",
    openapi_extra=body_of(_ACKNOWLEDGE),
    **_answers(200, *_OF_A_BODY, 404, 409, alarm=_TEXT, acknowledged_by=_TEXT),
)
async def acknowledge(request: Request, alarm: Annotated[str, Path(max_length=32)]) -> dict[str, Any]:
    """Acknowledge an alarm and say why; it stays in the history."""
    actor = actor_of(request, "administer")
    content = await read_object(request, _ACKNOWLEDGE)

    def work() -> None:
        with database_of(request).write() as connection:
            acts.acknowledge(connection, _printable(alarm, "alarm"), content.get("reason"), by=actor.name)

    await run_in_threadpool(work)
    return {"alarm": alarm, "acknowledged_by": actor.name}


@router.get("/audit", **_answers(200, audit=_LIST))
def list_audit(request: Request) -> dict[str, Any]:
    """List the latest administrative acts."""
    actor_of(request, "administer")
    with database_of(request).read() as connection:
        return {"audit": [dict(row) for row in views.list_audit(connection)]}


def _level(content: Mapping[str, Any], name: str) -> float | None:
    value = content.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidSetting(f"{name} = {shown(value)} is not a number; give one above 0 and below 1")
    return float(value)


def _printable(value: str, field: str) -> str:
    if value and not value.isprintable():
        raise InvalidSetting(f"{field} = {shown(value)} has unprintable characters; leave them out")
    return value


def _whole(text: str) -> int:
    return int(text) if len(text) <= 300 else int(_number(text))


def _number(text: str) -> float:
    raise ValueError(f"{text[:20]} is not a JSON number that a double holds")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same name twice")
    return content
