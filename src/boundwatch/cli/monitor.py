"""boundwatch serve, token and report-episode: the live monitor, who may use it, and what a robot tells it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time as clock
from contextlib import closing
from dataclasses import fields
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from boundwatch.cli import output as out
from boundwatch.cli.options import AT_LEAST_0, AT_LEAST_1
from boundwatch.cli.root import PARTS, Group, command
from boundwatch.errors import BoundwatchError, InvalidSetting, MissingExtra

if TYPE_CHECKING:
    from boundwatch.server.database import Database
    from boundwatch.server.settings import Settings

group: dict[str, Any] = {}


@command(
    example="boundwatch serve --certificate lab.json\n"
    "boundwatch serve --demo\n"
    "boundwatch serve --database postgresql://monitor@db/boundwatch --host 0.0.0.0 --workers 4\n"
    "boundwatch serve --verify"
)
def serve(
    *,
    database: str | None = None,
    certificate: Path | None = None,
    detector: Literal["sequential-test", "change-detector", "judged-test"] | None = None,
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    host: str | None = None,
    port: Annotated[int | None, (1, 65535)] = None,
    workers: Annotated[int | None, (1, 64)] = None,
    allow_host: list[str] | None = None,
    proxy: list[str] | None = None,
    public_url: str | None = None,
    tls_certificate: Path | None = None,
    tls_key: Path | None = None,
    webhook: list[str] | None = None,
    on_alarm: list[str] | None = None,
    tell: Literal["streams", "discoveries"] | None = None,
    fleet_size: Annotated[int | None, AT_LEAST_1] = None,
    silent_minutes: Annotated[float | None, AT_LEAST_0] = None,
    demo: bool = False,
    verify: bool = False,
    export: Path | None = None,
    restore: Path | None = None,
) -> None:
    """Run the live monitor: robots report episodes, people look at one page, alarms reach them.

    Options up to --silent-minutes can also be set as variables such as BOUNDWATCH_PORT.

    Options
    -------
    certificate FILE: Bind every new stream to this certificate, before its first episode.
    detector: What new streams are watched with; judged-test if a machine judges. [default: sequential-test]
    alpha_adverse P: Level of ADVERSE for new streams. [default: 0.04; change-detector: 0.001]
    alpha_benign P: Level of BENIGN for new streams. [default: the same]
    host: Address to listen on; beyond this machine only with a token. [default: 127.0.0.1]
    port: Port. [default: 8080]
    workers: Processes; more than 1 needs PostgreSQL. [default: 1]
    allow_host NAME: Host name that clients may use for this server, such as the name of a proxy.
    proxy ADDRESS: Proxy in front, whose X-Forwarded-For and -Proto are believed: an address or a network.
    public_url URL: Address that people open, for the links in alarms, if a proxy is in front.
    tls_certificate FILE: PEM file, for HTTPS.
    tls_key FILE: Its key.
    webhook URL: POST alarms here; signed with BOUNDWATCH_WEBHOOK_SECRET if it is set.
    on_alarm COMMAND: Run this at an alarm, which it reads as JSON from standard input.
    tell: Of what people hear: alarms of all streams, or discoveries at one rate. [default: streams]
    fleet_size N: About how many streams there will be; the first N divide one half of the false discovery
        rate. Set it once, before the first stream is bound. [default: 20]
    silent_minutes N: Call a stream silent after N minutes without an episode.
    demo: Fill a temporary database with drones, one of which meets wind.
    verify: Replay all episodes, compare with what is shown, and exit.
    export FILE: Write a backup as JSON lines, and exit.
    restore FILE: Read a backup into an empty database, and exit.
    """
    given = dict(locals())
    try:
        from sqlalchemy.exc import SQLAlchemyError

        from boundwatch.server import application
        from boundwatch.server.settings import Settings
    except ImportError as error:
        raise MissingExtra("boundwatch serve", "serve") from error

    known = {field.name for field in fields(Settings)}
    settings = Settings.gather({name: value for name, value in given.items() if name in known})
    if demo:
        from boundwatch.demo.drones import serve_demo

        serve_demo(settings, partial(print, flush=True))
        return
    # A backup of a database that is not there would be missed when it is needed.
    opened = application.prepare(settings, create=restore is not None or (export is None and not verify))
    try:
        if _maintain(opened, verify=verify, export=export, restore=restore):
            return
        application.settle(settings, opened)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        problem = f"{opened.shown}: cannot be read, {reason}"
        raise InvalidSetting(problem, remedy="restore a backup") from error
    finally:
        opened.close()
    _greet(settings)
    application.run(settings)


def _maintain(database: Database, *, verify: bool, export: Path | None, restore: Path | None) -> bool:
    """Do what ends without serving; return whether anything did."""
    from boundwatch.server import live_detectors, transfer

    if restore is not None:
        print(f"restored {transfer.restore(database, restore)} rows from {restore}")
    if export is not None:
        print(f"wrote {transfer.export(database, export)} rows to {export}")
    if verify:
        checked = list(live_detectors.verify(database))
        faults = [each for each in checked if each.fault]
        for each in faults:
            print(f"DIFFERS  {each.stream}, generation {each.generation}: {each.fault}")
        watched = f"{sum(each.n for each in checked)} episodes of {len(checked)} watches"
        print(f"replayed {watched}: {len(faults)} differ\n{live_detectors.UNSEEN}")
        if faults:
            problem = f"{len(faults)} watches differ from a replay; restore a backup, or report a bug"
            raise BoundwatchError(problem)
    return verify or export is not None or restore is not None


def _greet(settings: Settings) -> None:
    from boundwatch.server.database import Database

    print(f"boundwatch serve: {settings.url}  (database {Database(settings.database).shown}; Ctrl+C ends it)")
    if settings.certificate is None:
        print("  no --certificate: bind streams to a certificate on the page before they report")
    print("  report an episode:")
    print(f"    boundwatch report-episode arm-1 --success true --url {settings.url}", flush=True)


@command(
    group=group,
    example="boundwatch token create admin --scope administer\n"
    "boundwatch token create cell-2 --scope report --stream 'arm-*'",
)
def create(
    name: str,
    *,
    scope: list[str],
    stream: list[str] | None = None,
    database: str | None = None,
) -> None:
    """Create a token and print it. Only its hash is kept: this is the only time you see it.

    Options
    -------
    name NAME: What pages and the audit log call it.
    scope SCOPE: report, read, label or administer (which includes read and label).
    stream PATTERN: Streams that it may report for, such as 'arm-*'. [default: all]
    """
    with _open(database, create=True) as opened, opened.write() as connection:
        from boundwatch.server.access import create_token

        token = create_token(connection, name, scope, stream or ["*"], by="command line")
    print(token)


@command(group=group, example="boundwatch token revoke cell-2")
def revoke(name: str, *, database: str | None = None) -> None:
    """Revoke a token and end its sessions; running servers refuse it within two seconds.

    Options
    -------
    name NAME: Which one.
    """
    with _open(database) as opened, opened.write() as connection:
        from boundwatch.server.access import revoke_token

        revoke_token(connection, name, by="command line")
    print(f"revoked {name}")


@command(group=group, example="boundwatch token list")
def list_(*, database: str | None = None, as_json: bool = False) -> None:
    """List the tokens, valid and revoked."""
    with _open(database) as opened, opened.read() as connection:
        from boundwatch.server.access import list_tokens

        rows = [dict(row) for row in list_tokens(connection)]
    if as_json:
        out.print_json(rows)
        return
    for row in rows:
        day = clock.strftime("%Y-%m-%d", clock.gmtime(row["created"]))
        state = "revoked" if row["revoked"] else "valid"
        streams = " ".join(json.loads(row["streams"]))
        print(f"  {state:8} {day}  {row['scopes']:24} {streams:20} {row['name']}")


def _open(database: str | None, *, create: bool = False) -> closing[Database]:
    try:
        from boundwatch.server.database import Database
        from boundwatch.server.settings import Settings
    except ImportError as error:
        raise MissingExtra("boundwatch token", "serve") from error
    opened = Database(Settings.gather({"database": database}).database)
    opened.migrate(create=create)
    return closing(opened)


_ABOUT = "Create, list and revoke the tokens of a live monitor. Needs the extra `serve`."
PARTS["token"] = Group(_ABOUT, group.keys, group.__getitem__)


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
