"""What the pages' forms do: sign in and out, upload, bind, acknowledge. They work without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from boundwatch._support import schema
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.server import acts, models
from boundwatch.server.access import SESSION_SECONDS
from boundwatch.server.api import Alarm, actor_of, database_of
from boundwatch.server.counting import Refused
from boundwatch.server.guard import COOKIE, FORMS, problem
from boundwatch.server.pages import local_path, render

router = APIRouter(include_in_schema=False)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Exchange a token for a session in a cookie that scripts cannot read."""
    form = await _form(request)
    after = local_path(form.get("next", "/"))
    gatekeeper = request.app.state.gatekeeper
    token = form.get("token", "").strip()
    # Behind a proxy all come from one address: who guesses must not keep out who has a token.
    if not request.state.may_guess and await run_in_threadpool(gatekeeper.recognize, "token", token) is None:
        return problem(429, "too many attempts to sign in; wait a minute", **{"Retry-After": "60"})
    secret = await run_in_threadpool(gatekeeper.open_session, token)
    if secret is None:
        error = "This token is not valid. Check that you copied all of it, or ask for a new one."
        return await run_in_threadpool(render, request, "sign_in.html", 403, after=after, error=error)
    answer = RedirectResponse(after, 303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """End the session."""
    if secret := request.cookies.get(COOKIE):
        await run_in_threadpool(request.app.state.gatekeeper.close_session, secret)
    answer = RedirectResponse("/sign-in", 303)
    answer.delete_cookie(COOKIE)
    return answer


@router.post("/certificates")
async def upload(request: Request) -> Response:
    """Take a certificate that was chosen as a file, or pasted."""
    actor = actor_of(request, "administer")
    form = await _form(request)
    text = form.get("file", "").strip() or form.get("certificate", "").strip()
    name = form.get("name", "").strip() or Path(form.get("file_name", "")).stem[: models.LONGEST_NAME]

    def work(connection: Connection) -> str:
        if not text:
            raise InvalidSetting("certificate is missing; choose its file, or paste what the file holds")
        content = schema.decode(text.encode(), "certificate")
        sent = models.check(models.Upload, {"name": name, "certificate": content})
        return f"/certificates/{acts.upload(connection, sent, by=actor.name)['fingerprint']}"

    return await _act(request, work)


@router.post("/streams")
async def bind(request: Request) -> Response:
    """Bind streams, or start a new generation, from the form."""
    actor = actor_of(request, "administer")
    form = await _form(request)

    def work(connection: Connection) -> str:
        given: dict[str, object] = {
            name: value.strip() for name, value in form.items() if value.strip() and name != "next"
        }
        given["streams"] = [name.strip() for name in form.get("streams", "").splitlines() if name.strip()]
        bound = acts.bind_streams(connection, models.check(models.Bind, given, strict=False), by=actor.name)
        return f"/streams/{quote(next(iter(bound)), safe='')}"

    return await _act(request, work)


@router.post("/alarms/{alarm}/acknowledge")
async def acknowledge(request: Request, alarm: Alarm) -> Response:
    """Acknowledge an alarm from the form."""
    actor = actor_of(request, "administer")
    form = await _form(request)

    def work(connection: Connection) -> str:
        sent = models.check(models.Acknowledge, {"reason": form.get("reason", "")})
        acts.acknowledge(connection, alarm, sent, by=actor.name)
        return local_path(form.get("next", "/alarms"))

    return await _act(request, work)


async def _act(request: Request, work: Callable[[Connection], str]) -> Response:
    """Do something in one transaction, and go where that says."""

    def write() -> str:
        with database_of(request).write() as connection:
            return work(connection)

    try:
        return RedirectResponse(await run_in_threadpool(write), 303)
    except BoundwatchError as error:
        status = error.status if isinstance(error, Refused) else 422
        message = " ".join(str(error).split())
        return await run_in_threadpool(render, request, "error.html", status, message=message)


async def _form(request: Request) -> dict[str, str]:
    """Return the texts of a form; of a file, its content, and its name beside it."""
    if not request.headers.get("content-type", "").lower().startswith(FORMS):
        raise Refused(415, "send the form of the page")
    fields: dict[str, str] = {}
    try:
        async with request.form(max_files=1, max_fields=20) as form:
            for name, value in form.multi_items():
                if isinstance(value, str):
                    fields[name] = value
                elif value.filename:  # a form without a chosen file sends one without a name
                    fields[name] = (await value.read()).decode("utf-8-sig")
                    fields[f"{name}_name"] = value.filename
    except (HTTPException, ValueError) as error:
        raise Refused(400, "the form cannot be read; send it again from the page") from error
    return fields
