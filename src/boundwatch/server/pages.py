"""The pages and their forms: rendered here, usable without JavaScript, live with it."""

from __future__ import annotations

import json
import math
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import fastapi
from fastapi import APIRouter, Query, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse

from boundwatch.errors import InvalidSetting
from boundwatch.reporting import wording
from boundwatch.server import api, bindings, live_detectors, queries, showing
from boundwatch.server.access import SESSION_SECONDS, list_tokens
from boundwatch.server.api import reading, settings_of
from boundwatch.server.guard import COOKIE, is_form, problem
from boundwatch.server.live_detectors import DETECTORS, parse_certificate
from boundwatch.server.models import Refused

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_SHOWN_COSTS = 200
_templates = Environment(
    loader=PackageLoader("boundwatch.server"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals |= {"quote": lambda text: quote(text, safe=""), "wording": wording, "phrases": showing}
_templates.globals |= {"detectors": list(DETECTORS)}


def render(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a page; the template knows who sees it. One that refuses needs no database."""
    actor, counts = request.state.actor, None
    if actor and actor.may("read") and status == 200:
        with reading(request) as connection:
            counts = queries.totals(connection, settings_of(request).silent_before)
    context |= {"actor": actor, "totals": counts, "path": request.url.path, "settings": settings_of(request)}
    return HTMLResponse(_templates.get_template(template).render(context), status)


@router.get("/")
def streams_page(
    request: Request,
    verdict: api.VerdictName = "",
    search: api.Words = "",
    silent: Annotated[str, Query(pattern="^(|1)$")] = "",
    page: api.Page = 1,
) -> Response:
    """All streams, or what to do first when there is none."""
    before = settings_of(request).silent_before
    asked: dict[str, Any] = {"verdict": verdict, "search": search}
    with reading(request) as connection:
        silent_before = before if silent else None
        rows, total = queries.list_streams(connection, **asked, silent_before=silent_before, page=page)
    given = {name: value for name, value in (asked | {"silent": silent}).items() if value}
    return render(
        request,
        "streams.html",
        rows=[queries.standing(row, before) for row in rows],
        total=total,
        page=page,
        pages=max(1, math.ceil(total / queries.PAGE)),
        chosen=asked,
        filtered=bool(given),
        link=lambda number: "/?" + urlencode(given | {"page": number}),
        base=str(request.base_url).rstrip("/"),
    )


@router.get("/changes")
def changes(request: Request) -> Response:
    """Say in a few bytes whether a page that is open is out of date: it asks every second."""
    with reading(request) as connection:
        return JSONResponse(queries.latest(connection))


@router.get("/fleet")
def fleet_page(request: Request, rate: Annotated[float | None, Query(gt=0, lt=1)] = None) -> Response:
    """Show the streams whose costs have risen, at one false discovery rate."""
    with reading(request) as connection:
        found = queries.fleet(connection, rate or settings_of(request).discovery_rate)
    rows = [queries.standing(row) for row in found.discoveries[:500]]
    return render(request, "fleet.html", fleet=found, rows=rows)


@router.get("/streams/{stream}")
def stream_page(
    request: Request, stream: Annotated[str, fastapi.Path(max_length=100)], generation: api.Generation = None
) -> Response:
    """One stream: its costs, the certified band, the evidence, the shift and its history."""
    with reading(request) as connection:
        found = queries.find_stream(connection, stream, generation)
        row = queries.standing(found, settings_of(request).silent_before)
        certificate = live_detectors.load_certificate(connection, row["certificate_id"])
        finding = None
        if row["n"]:
            finding = live_detectors.load_detector(connection, found).detector.finding()
        episodes = queries.list_episodes(connection, found, after=max(0, row["n"] - _SHOWN_COSTS))
        alarms = queries.list_alarms(connection, watch_id=row["id"])
        history = queries.generations(connection, row["stream_id"])
        is_administrator = request.state.actor.may("administer")
        known = queries.list_certificates(connection) if is_administrator else []
    now = row["evidence_adverse"], row["evidence_benign"]
    if finding is not None:
        now = live_detectors.evidence(finding)
    counted = finding is not None and row["threshold_adverse"] is None and episodes and not certificate.strata
    return render(
        request,
        "stream.html",
        row=row,
        certificate=certificate,
        finding=finding,
        costs=showing.draw_costs(certificate, episodes) if episodes else None,
        now=now,
        failures=showing.draw_failures(row, certificate, finding.false_positive_rate, episodes)
        if counted and finding is not None
        else None,
        evidence=showing.draw_evidence(row, now[0]),
        latest=episodes[::-1][:20],
        alarms=alarms,
        history=history,
        certificates=known,
    )


@router.get("/streams/{stream}/labels")
def labels_page(request: Request, stream: Annotated[str, fastapi.Path(max_length=100)]) -> Response:
    """Show the first episode that waits for a label, without what the machine said of it."""
    with reading(request, "label") as connection:
        row, waiting, found = queries.list_waiting(connection, stream, 1)
    meta = json.loads(found[0]["meta"] or "{}") if found else {}
    return render(request, "labels.html", row=row, waiting=waiting, episode=found and found[0], meta=meta)


@router.get("/certificates")
def certificates_page(request: Request) -> Response:
    """All certificates, and the forms to upload one and to bind streams."""
    with reading(request) as connection:
        rows = queries.list_certificates(connection)
    listed = [dict(row) | {"promise": wording.headline(parse_certificate(row["content"]))} for row in rows]
    return render(request, "certificates.html", rows=listed)


@router.get("/certificates/{fingerprint}")
def certificate_page(request: Request, fingerprint: Annotated[str, fastapi.Path(max_length=100)]) -> Response:
    """One certificate in words."""
    with reading(request) as connection:
        try:
            row = bindings.find_certificate(connection, fingerprint)
        except InvalidSetting as error:
            raise Refused(404, str(error)) from error
    certificate = parse_certificate(row["content"])
    content = json.dumps(certificate.to_dict(), indent=2)
    return render(request, "certificate.html", row=row, certificate=certificate, content=content)


@router.get("/alarms")
def alarms_page(request: Request) -> Response:
    """Alarms that wait for somebody, then those that were acknowledged."""
    with reading(request) as connection:
        waiting = queries.list_alarms(connection, waiting=True)
        done = queries.list_alarms(connection, waiting=False)
    return render(request, "alarms.html", waiting=waiting, done=done)


@router.get("/administration")
def administration_page(request: Request) -> Response:
    """Tokens and the audit log."""
    with reading(request, "administer") as connection:
        tokens = [dict(row) | {"streams": json.loads(row["streams"])} for row in list_tokens(connection)]
        acted = queries.list_audit(connection)
    return render(request, "administration.html", tokens=tokens, acted=acted)


@router.get("/sign-in")
def sign_in_page(
    request: Request, after: Annotated[str, Query(alias="next", max_length=500)] = "/"
) -> Response:
    """Show the form to sign in with a token."""
    return render(request, "sign_in.html", after=local_path(after), error="")


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Exchange a token for a session in a cookie that scripts cannot read."""
    if not is_form(request.headers):
        raise Refused(415, "send the form of the page")
    form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    after = local_path(form.get("next", "/"))
    gatekeeper = request.app.state.gatekeeper
    token = form.get("token", "").strip()
    # Behind a proxy all come from one address: who guesses must not keep out who has a token.
    if not request.state.may_guess and await gatekeeper.recognize("token", token) is None:
        return problem(429, "too many attempts to sign in; wait a minute", **{"Retry-After": "60"})
    secret = await run_in_threadpool(gatekeeper.open_session, token)
    if secret is None:
        error = "This token is not valid. Check that you copied all of it, or ask for a new one."
        return render(request, "sign_in.html", 403, after=after, error=error)
    answer = RedirectResponse(after, 303)
    is_safe, seconds = request.url.scheme == "https", int(SESSION_SECONDS)
    answer.set_cookie(COOKIE, secret, seconds, httponly=True, samesite="strict", secure=is_safe)
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    if secret := request.cookies.get(COOKIE):
        await run_in_threadpool(request.app.state.gatekeeper.close_session, secret)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer


def local_path(target: str) -> str:
    """Return a path of this server; anything that would lead elsewhere becomes the first page."""
    parts = urlsplit(target)
    safe = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return target if safe and target.isprintable() else "/"
