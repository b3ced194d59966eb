"""boundwatch report-episode: tell a live monitor about one episode, from a shell script."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time as clock
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Annotated, Any, Literal

from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_0
from boundwatch.cli.root import command
from boundwatch.errors import InvalidSetting


@command(
    example="boundwatch report-episode arm-1 --success true\n"
    "boundwatch report-episode arm-1 --cost 0.25 --episode 2026-11-16/17 --url http://monitor:8080"
)
def report_episode(
    stream: str,
    *,
    cost: float | None = None,
    success: Literal["true", "false"] | None = None,
    episode: str | None = None,
    time: str | None = None,
    meta: str | None = None,
    url: str | None = None,
    spool: Path | None = None,
    wait: Annotated[float, AT_LEAST_0] = 10.0,
) -> None:
    """Report one episode to a live monitor. The token comes from BOUNDWATCH_TOKEN.

    The episode is on this machine's disk first. If the server cannot be reached, it stays there and the next
    call delivers it; that is not an error. Exits with 1 if the server refuses it for good, or does not
    accept the token; then it waits, too.

    Options
    -------
    stream STREAM: Whose episode it is.
    cost X: Its cost, from 0 (best) to 1 (worst).
    success: Or whether it succeeded.
    episode ID: Its own id in the stream; sent again, it counts once. [default: a new one]
    time TIME: When it ended. [default: now]
    meta JSON: What else to keep with it, as a JSON object.
    url URL: The server. [default: BOUNDWATCH_URL, or http://127.0.0.1:8080]
    spool FILE: Where episodes wait while the server is away.
    wait SECONDS: How long to try now.
    """
    from boundwatch.server.client import Client

    url = url or os.environ.get("BOUNDWATCH_URL", "http://127.0.0.1:8080")
    log = BufferingHandler(100_000)  # what is said of any episode, also of those that had waited
    log.setLevel(logging.WARNING)
    logging.getLogger("boundwatch.client").addHandler(log)
    client = Client(url, spool=spool)
    name = client.report(
        stream,
        cost=cost,
        success=None if success is None else success == "true",
        episode=episode,
        time=time,
        meta=None if meta is None else _parse(meta),
    )
    end = clock.monotonic() + wait
    while not (delivered := client.flush(min(wait, 0.05))):
        if clock.monotonic() >= end or client.is_forbidden(stream):
            break
    refused = [each.reason for each in client.rejected if (each.stream, each.episode) == (stream, name)]
    waiting, problem, is_forbidden = client.waiting, client.problem, client.is_forbidden(stream)
    client.close(timeout=0)
    for record in log.buffer:
        of: Any = record.args
        if of[:2] != (name, stream) and of[:1] != (stream,):  # those are told below
            out.warn(f"warning: {record.getMessage()}")
    if refused:
        raise InvalidSetting(f"{url} refused it: {refused[-1]}")
    if delivered:
        print(f"counted: {stream} {name}")
    elif is_forbidden:
        raise InvalidSetting(f"{url} does not allow it, {problem}; kept for later, {waiting} waiting")
    else:
        reason = f" ({problem})" if problem else ""
        out.warn(f"kept for later, {waiting} waiting{reason}")


def _parse(meta: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        if isinstance(content := json.loads(meta), dict):
            return content
    raise InvalidSetting("is not a JSON object", name="--meta", value=meta, remedy='give {"cell": 2}')
