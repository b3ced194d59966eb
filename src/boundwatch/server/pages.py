"""The pages: rendered here, readable without JavaScript, live with it."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

from fastapi import APIRouter, Path, Query, Request, Response
from jinja2 import Environment, PackageLoader, StrictUndefined
from sqlalchemy import RowMapping
from starlette.responses import HTMLResponse

from boundwatch.detectors.base import Finding
from boundwatch.detectors.change import ChangeFinding
from boundwatch.errors import InvalidSetting
from boundwatch.planning import time_to_alarm
from boundwatch.reporting import wording
from boundwatch.server import drawing, phrases, queries
from boundwatch.server.access import list_tokens
from boundwatch.server.api import Page, VerdictName, Words, actor_of, database_of, settings_of
from boundwatch.server.bindings import find_certificate
from boundwatch.server.counting import Refused
from boundwatch.server.live_detectors import (
    DETECTORS,
    Curve,
    evidence,
    load_certificate,
    load_detector,
    parse_certificate,
)

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
_SHOWN_COSTS = 200
_templates = Environment(
    loader=PackageLoader("boundwatch.server"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals |= {"quote": lambda text: quote(text, safe=""), "wording": wording, "phrases": phrases}


def render(request: Request, template: str, status: int = 200, **context: Any) -> Response:
    """Return a page; the template knows who sees it."""
    actor = getattr(request.state, "actor", None)
    with database_of(request).read() as connection:
        silent = queries.silent_before(settings_of(request).silent_minutes)
        counts = queries.totals(connection, silent) if actor and actor.may("read") else None
    page = _templates.get_template(template)
    text = page.render(actor=actor, totals=counts, path=request.url.path, **context)
    return HTMLResponse(text, status)


@router.get("/")
def streams_page(
    request: Request,
    verdict: VerdictName = "",
    search: Words = "",
    certificate: Words = "",
    silent: Annotated[str, Query(pattern="^(|1)$")] = "",
    page: Page = 1,
) -> Response:
    """All streams, or what to do first when there is none."""
    actor_of(request, "read")
    settings = settings_of(request)
    before = queries.silent_before(settings.silent_minutes)
    filters = queries.Filters(verdict, search, certificate, before if silent else None)
    with database_of(request).read() as connection:
        rows, total = queries.list_streams(connection, filters, page=page)
        known = queries.list_certificates(connection)
    chosen = {"verdict": verdict, "search": search, "certificate": certificate, "silent": silent}
    given = {name: value for name, value in chosen.items() if value}
    return render(
        request,
        "streams.html",
        rows=[_row(row, before) for row in rows],
        total=total,
        page=page,
        pages=max(1, math.ceil(total / queries.PAGE)),
        chosen=chosen,
        filtered=bool(given),
        link=lambda number: "/?" + urlencode(given | {"page": number}),
        certificates=known,
        default=settings.certificate,
        silent_minutes=settings.silent_minutes,
        base=str(request.base_url).rstrip("/"),
    )


@router.get("/fleet")
def fleet_page(request: Request, rate: Annotated[float | None, Query(gt=0, lt=1)] = None) -> Response:
    """Show the streams whose costs have risen, at one false discovery rate."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        found = queries.fleet(connection, rate or settings_of(request).discovery_rate)
    return render(
        request, "fleet.html", fleet=found, rows=[_row(row, None) for row in found.discoveries[:500]]
    )


@router.get("/streams/{stream}")
def stream_page(
    request: Request,
    stream: Annotated[str, Path(max_length=100)],
    generation: Annotated[int | None, Query(ge=1, le=1_000_000)] = None,
) -> Response:
    """One stream: its costs, the certified band, the evidence, the shift and its history."""
    actor = actor_of(request, "read")
    before = queries.silent_before(settings_of(request).silent_minutes)
    with database_of(request).read() as connection:
        row = queries.find_stream(connection, stream, generation)
        certificate = load_certificate(connection, row["certificate_id"])
        finding = None
        if row["n"] and not row["pruned"]:
            finding = load_detector(connection, row, row["n"]).detector.finding()
        episodes = queries.list_episodes(connection, row["id"], after=max(0, row["n"] - _SHOWN_COSTS))
        alarms = queries.list_alarms(connection, watch_id=row["id"])
        history = queries.generations(connection, row["stream_id"])
        known = queries.list_certificates(connection) if actor.may("administer") else []
    costs = [episode["cost"] for episode in episodes]
    now = (row["evidence_adverse"], row["evidence_benign"]) if finding is None else evidence(finding)
    return render(
        request,
        "stream.html",
        row=_row(row, before),
        certificate=certificate,
        finding=finding,
        shift=_shift(finding),
        costs=drawing.draw_costs(certificate, costs, episodes[0]["number"]) if costs else None,
        now=now,
        evidence=drawing.draw_evidence(
            Curve.from_json(row["curve"]), queries.threshold_of(row, "adverse"), row["n"], now[0]
        ),
        powers=_powers(json.dumps(certificate.to_dict()), row["alpha_adverse"])
        if row["detector"] == "sequential-test"
        else [],
        latest=episodes[::-1][:20],
        alarms=alarms,
        history=history,
        certificates=known,
        detectors=list(DETECTORS),
    )


@router.get("/certificates")
def certificates_page(request: Request) -> Response:
    """All certificates, and the forms to upload one and to bind streams."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        rows = queries.list_certificates(connection)
    listed = [dict(row) | {"promise": wording.headline(parse_certificate(row["content"]))} for row in rows]
    return render(request, "certificates.html", rows=listed, detectors=list(DETECTORS))


@router.get("/certificates/{fingerprint}")
def certificate_page(request: Request, fingerprint: Annotated[str, Path(max_length=100)]) -> Response:
    """One certificate in words."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        try:
            row = find_certificate(connection, fingerprint)
        except InvalidSetting as error:
            raise Refused(404, str(error)) from error
    certificate = parse_certificate(row["content"])
    return render(
        request,
        "certificate.html",
        row=row,
        certificate=certificate,
        promise=wording.promise(certificate),
        basis=wording.basis(certificate),
        assumptions=wording.assumptions(certificate),
        misreadings=wording.misreadings(),
        checks=certificate.verify(),
        content=json.dumps(certificate.to_dict(), indent=2),
    )


@router.get("/alarms")
def alarms_page(request: Request) -> Response:
    """Alarms that wait for somebody, then those that were acknowledged."""
    actor_of(request, "read")
    with database_of(request).read() as connection:
        waiting = queries.list_alarms(connection, waiting=True)
        done = queries.list_alarms(connection, waiting=False)
    return render(request, "alarms.html", waiting=waiting, done=done)


@router.get("/administration")
def administration_page(request: Request) -> Response:
    """Tokens and the audit log."""
    actor_of(request, "administer")
    with database_of(request).read() as connection:
        tokens = [dict(row) | {"streams": json.loads(row["streams"])} for row in list_tokens(connection)]
        acted = queries.list_audit(connection)
    return render(request, "administration.html", tokens=tokens, acted=acted)


@router.get("/sign-in")
def sign_in_page(
    request: Request, after: Annotated[str, Query(alias="next", max_length=500)] = "/"
) -> Response:
    """Show the form to sign in with a token."""
    return render(request, "sign_in.html", after=local_path(after), error="")


def local_path(target: str) -> str:
    """Return a path of this server; anything that would lead elsewhere becomes the first page."""
    parts = urlsplit(target)
    safe = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return target if safe and target.isprintable() else "/"


def _row(row: RowMapping, before: float | None) -> dict[str, Any]:
    curve = Curve.from_json(row["curve"])
    seen = row["last_seen"] or row["created"]
    threshold = queries.threshold_of(row, "adverse")
    return dict(row) | {
        "threshold": threshold,
        "spark": drawing.sparkline(curve, threshold),
        "silent": before is not None and seen < before,
    }


def _shift(finding: Finding | None) -> tuple[float, float] | None:
    if finding is None or isinstance(finding, ChangeFinding):  # there is no one shift
        return None
    return finding.shift_lower, finding.shift_upper


@lru_cache(maxsize=64)
def _powers(content: str, alpha: float) -> list[dict[str, Any]]:
    """Return how soon the watch would notice rises; of bounded costs, a test against the certified limit."""
    certificate = parse_certificate(content)
    found = []
    for cost in sorted(
        {round(certificate.upper + rise * (1 - certificate.upper), 2) for rise in (0.15, 0.3, 0.6)}
    ):
        if not certificate.upper < cost <= 1:
            continue
        answer = time_to_alarm(certificate, cost=cost, alpha=alpha)
        found.append({"cost": cost, "half": answer.trials[0.5], "most": answer.trials[0.9]})
    return found
