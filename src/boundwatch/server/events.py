"""Server-sent events: tells open pages that something changed; they fetch what they show by themselves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request, Response
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from boundwatch.server import queries
from boundwatch.server.access import Actor
from boundwatch.server.api import actor_of
from boundwatch.server.database import Database, log_failure
from boundwatch.server.models import Refused

router = APIRouter(include_in_schema=False)
_LOOK_EVERY = 1.0
_LOOK_BACK = 120.0
_BREATHE_EVERY = 15.0
_ASK_AGAIN = 0.5  # whether the token is still valid
MOST_LISTENERS = 200


class Announcer:
    """Looks once per second what any server process has counted, while somebody listens."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.listeners: set[asyncio.Queue[str]] = set()

    async def look(self) -> None:
        """Look until canceled."""
        seen: dict[str, float] = {}
        alarms = -1
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if not self.listeners:
                continue
            try:
                found, waiting = await run_in_threadpool(self._ask)
                names = [name for name, moment in found.items() if seen.get(name) != moment]
                if names or waiting != alarms:
                    message = json.dumps({"streams": names, "alarms": waiting})
                    for listener in self.listeners:
                        if listener.empty():  # who has not taken the last message needs no second one
                            listener.put_nowait(message)
                seen, alarms = found, waiting
            except Exception as error:  # the task must outlive whatever the database does
                log_failure("cannot look for changes", error)

    def _ask(self) -> tuple[dict[str, float], int]:
        # An episode's time is taken before its commit, which may be slow, or another server's.
        since = time.time() - _LOOK_BACK
        with self.database.read() as connection:
            return queries.changed_since(connection, since), queries.totals(connection)["open_alarms"]


@router.get("/events")
async def events(request: Request) -> Response:
    """Say whenever a stream has changed."""
    actor_of(request, "read")
    announcer: Announcer = request.app.state.announcer
    if len(announcer.listeners) >= MOST_LISTENERS:
        raise Refused(503, f"{MOST_LISTENERS} pages listen already", remedy="reload this one by hand")

    async def messages() -> AsyncIterator[str]:
        listener: asyncio.Queue[str] = asyncio.Queue()
        announcer.listeners.add(listener)
        try:
            yield "retry: 3000\n\n"
            breathed = time.monotonic()
            while await _may_listen(request):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_ASK_AGAIN):
                        message = await listener.get()
                    yield f"event: changed\ndata: {message}\n\n"
                if time.monotonic() > breathed + _BREATHE_EVERY:
                    yield ": still here\n\n"  # else proxies close what looks idle
                    breathed = time.monotonic()
        finally:
            announcer.listeners.discard(listener)

    return StreamingResponse(messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def _may_listen(request: Request) -> bool:
    """Return whether who has begun to listen may go on: a token may have been revoked since."""
    try:
        actor: Actor | None = await request.state.recognize()
    except SQLAlchemyError:  # nobody can say so now, and nothing is told meanwhile
        return True
    return actor is not None and actor.may("read")
