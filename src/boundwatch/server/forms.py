"""What the pages' forms do: sign in and out, upload, bind, acknowledge. They work without JavaScript."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi import Path as PathParameter
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse

from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.server import acts
from boundwatch.server.access import SESSION_SECONDS
from boundwatch.server.api import actor_of, database_of
from boundwatch.server.guard import COOKIE, FORMS, problem
from boundwatch.server.ledger import Refused
from boundwatch.server.pages import local_path, render
from boundwatch.server.reports import LONGEST_NAME, shown

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
    name = form.get("name", "").strip() or Path(form.get("file_name", "")).stem[:LONGEST_NAME]

    def work() -> str:
        if not text:
            raise InvalidSetting("certificate is missing; choose its file, or paste what the file holds")
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidSetting("certificate is not JSON; choose the file that certify wrote") from None
        with database_of(request).write() as connection:
            return str(acts.upload(connection, content, name, by=actor.name)["fingerprint"])

    return await _act(request, work, lambda fingerprint: f"/certificates/{fingerprint}")


@router.post("/streams")
async def bind(request: Request) -> Response:
    """Bind streams, or start a new generation, from the form."""
    actor = actor_of(request, "administer")
    form = await _form(request)

    def work() -> str:
        names = [name.strip() for name in form.get("streams", "").splitlines() if name.strip()]
        with database_of(request).write() as connection:
            bound = acts.watch(
                connection,
                names,
                form.get("certificate"),
                by=actor.name,
                detector=form.get("detector"),
                alpha_adverse=_number(form, "alpha_adverse"),
                alpha_benign=_number(form, "alpha_benign"),
                reason=form.get("reason"),
                new_generation=form.get("new_generation") == "1",
            )
        return next(iter(bound))

    return await _act(request, work, lambda name: f"/streams/{quote(name, safe='')}")


@router.post("/alarms/{alarm}/acknowledge")
async def acknowledge(request: Request, alarm: Annotated[str, PathParameter(max_length=32)]) -> Response:
    """Acknowledge an alarm from the form."""
    actor = actor_of(request, "administer")
    form = await _form(request)

    def work() -> str:
        with database_of(request).write() as connection:
            acts.acknowledge(connection, alarm, form.get("reason"), by=actor.name)
        return local_path(form.get("next", "/alarms"))

    return await _act(request, work, lambda after: after)


async def _act(request: Request, work: Callable[[], str], target: Callable[[str], str]) -> Response:
    try:
        done = await run_in_threadpool(work)
    except BoundwatchError as error:
        status = error.status if isinstance(error, Refused) else 422
        return await run_in_threadpool(
            render, request, "error.html", status, message=" ".join(str(error).split())
        )
    return RedirectResponse(target(done), 303)


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


def _number(form: Mapping[str, str], name: str) -> float | None:
    text = form.get(name, "").strip()
    try:
        return float(text) if text else None
    except ValueError:
        raise InvalidSetting(
            f"{name} = {shown(text)} is not a number; give one above 0 and below 1"
        ) from None
