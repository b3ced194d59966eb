"""Alarms on their way out: written with the episode that raised them, delivered at least once.

A delivery is a row. Every channel has a queue, and in `upkeep` a thread, of its own: its deliveries go out in
their order, and a receiver that is slow, or away, keeps nothing from the others. The first that fails is put
off: 1, 2, 4, … seconds, at most five minutes, until the receiver accepts. A delivery's id tells repeats.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from sqlalchemy import Row, func, insert, select, update
from sqlalchemy.engine import Connection

from boundwatch.errors import InvalidSetting
from boundwatch.server.access import record
from boundwatch.server.database import Database
from boundwatch.server.models import Acknowledge, Refused, is_address
from boundwatch.server.tables import alarms, deliveries, streams, watches
from boundwatch.watching.alarms import LONGEST_COMMAND, check_command, run_command

_LOG = logging.getLogger("boundwatch.server")
_LONGEST_PAUSE = 300.0
_DEADLINE = 10.0  # seconds for one delivery, from the name's look-up to the answer
_SPARE = 5.0  # a server that dies with a delivery in hand gives it back so many seconds after its deadline
_AT_ONCE, _SECONDS_AT_ONCE = 50, 1.0  # deliveries that share two commits


@dataclass(frozen=True)
class Channel:
    """Where alarms go: a webhook, or a command."""

    kind: str
    target: str
    secret: str = field(default="", repr=False)
    monitor: str = ""
    """The address of the pages that messages link to; without one they have no link."""

    def __post_init__(self) -> None:
        if self.kind == "webhook" and not is_address(self.target):
            host = self.target.partition("/")[0]  # what follows may be a secret
            problem, remedy = "is not an http:// or https:// address", "give all of it, with %20 for a space"
            raise InvalidSetting(problem, name="webhook", value=f"{host[:60]}…", remedy=remedy)
        if self.kind == "command":
            check_command(self.target)

    @property
    def label(self) -> str:
        """What the database and the logs call it: addresses of webhooks are secrets."""
        digest = hashlib.sha256(self.target.encode()).hexdigest()[:8]
        return f"{urlsplit(self.target).hostname if self.kind == 'webhook' else 'command'}#{digest}"

    def send(self, delivery_id: str, payload: str) -> None:
        """Deliver before the deadline, or raise the error that says why not."""
        content = json.loads(payload)
        if self.monitor:
            generation = f"?generation={content['generation']}" if "generation" in content else ""
            content["page"] = f"{self.monitor}/streams/{quote(content['stream'], safe='')}{generation}"
            content["text"] += f" {content['page']}"
        if self.kind == "command":
            run_command(self.target, content)
            return
        body, moment = json.dumps(content, sort_keys=True).encode(), str(int(time.time()))
        headers = {"Content-Type": "application/json", "User-Agent": "boundwatch"}
        headers |= {"X-Boundwatch-Delivery": delivery_id, "X-Boundwatch-Timestamp": moment}
        if self.secret:
            headers["X-Boundwatch-Signature"] = "sha256=" + sign(self.secret, moment, body)
        try:
            asyncio.run(asyncio.wait_for(_post(self.target, headers, body), _DEADLINE))
        except TimeoutError:
            raise TimeoutError(f"not done within {_DEADLINE:g} s") from None


class _Answered(OSError):
    """A receiver that does not accept; redirects are errors, too: what is signed goes nowhere else."""


async def _post(url: str, headers: Mapping[str, str], body: bytes) -> None:
    """Send a request until the receiver says that it accepts; whoever waits for this may cut it off."""
    parts = urlsplit(url)
    is_safe = parts.scheme == "https"
    port = parts.port or (443 if is_safe else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=is_safe or None)
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        head = {"Host": parts.netloc.rpartition("@")[2], "Connection": "close"}
        lines = [
            f"POST {path} HTTP/1.1",
            *(
                f"{name}: {value}"
                for name, value in {**head, **headers, "Content-Length": str(len(body))}.items()
            ),
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        await writer.drain()
        protocol, _, status = (await reader.readline()).decode("latin-1").partition(" ")
    finally:
        writer.transport.abort()
    if not (protocol.startswith("HTTP/1.") and status.startswith("2")):
        raise _Answered(f"HTTP {status[:3]}")


def sign(secret: str, moment: str, body: bytes) -> str:
    """Return the HMAC-SHA256 that a webhook's receiver computes again, of ``timestamp.body``."""
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


def acknowledge(connection: Connection, alarm_id: str, sent: Acknowledge, *, by: str) -> None:
    """Acknowledge an alarm: it stays in the history, with who did it and why."""
    why = sent.reason.strip()
    query = select(alarms, streams.c.name).select_from(alarms.join(watches).join(streams))
    alarm = connection.execute(query.where(alarms.c.id == alarm_id)).mappings().first()
    if alarm is None:
        remedy = "GET /api/v1/alarms lists them"
        raise Refused(404, "is unknown", name="alarm", value=alarm_id[:40], remedy=remedy)
    free = (alarms.c.id == alarm_id) & alarms.c.acknowledged.is_(None)
    values = {"acknowledged": time.time(), "acknowledged_by": by, "reason": why}
    if connection.execute(update(alarms).where(free).values(values)).rowcount != 1:
        problem = f"was acknowledged by {alarm['acknowledged_by']}; nothing was changed"
        raise Refused(409, problem, name="alarm", value=alarm_id)
    record(connection, by, "alarm acknowledged", f"{alarm['name']}, alarm {alarm_id}: {why}")


def announce(
    connection: Connection, channels: Iterable[Channel], watch: Any, text: str, **fields: Any
) -> None:
    """Keep an alarm, of `verdict` at `episode_number`, and tell the channels."""
    key, moment = secrets.token_hex(16), time.time()
    alarm = {"id": key, "watch_id": watch["id"], "created": moment, "verdict": fields["verdict"]}
    connection.execute(insert(alarms).values(alarm | {"number": fields["episode_number"]}))
    payload = {
        "text": f"boundwatch: stream {watch['name']} {text}",
        "alarm": key,
        "time": moment,
        "kind": "alarm",
    }
    payload |= {"stream": watch["name"], "generation": watch["generation"], **fields}
    put(connection, channels, payload)


def put(connection: Connection, channels: Iterable[Channel], payload: Mapping[str, Any]) -> None:
    """Put a message into the outbox of every channel."""
    now = time.time()
    text = json.dumps(payload, sort_keys=True, allow_nan=False)
    for channel in channels:
        row: dict[str, Any] = {"id": secrets.token_hex(16), "channel": channel.kind, "target": channel.label}
        row |= {"payload": text, "created": now, "attempts": 0, "due": now}
        connection.execute(insert(deliveries).values(row))


def deliver(database: Database, channel: Channel) -> bool:
    """Try a channel's oldest deliveries, in order, up to the first that fails; return if there were any.

    The first is leased: while its time has not come, nobody delivers those behind it.
    """
    rows = _lease(database, channel)
    changes: list[tuple[str, dict[str, Any]]] = []
    end = time.monotonic() + _SECONDS_AT_ONCE
    for row in rows:
        attempts = row.attempts + 1
        try:
            channel.send(row.id, row.payload)
            changes.append((row.id, {"delivered": time.time(), "attempts": attempts, "error": None}))
        except Exception as error:  # whatever it is, it must not keep the next attempt from being made
            pause = min(_LONGEST_PAUSE, 2.0 ** min(attempts - 1, 16))
            # Its text may hold the address, which is a secret.
            reason = str(error) if isinstance(error, _Answered) else type(error).__name__
            changes.append((row.id, {"due": time.time() + pause, "attempts": attempts, "error": reason}))
            _LOG.warning("delivery %s to %s failed (%s), again in %g s", row.id, row.target, reason, pause)
            break
        if time.monotonic() > end:
            break
    if changes:
        with database.write() as connection:
            for key, values in changes:
                connection.execute(update(deliveries).where(deliveries.c.id == key).values(values))
    return bool(rows)


def _lease(database: Database, channel: Channel) -> Sequence[Row[Any]]:
    """Return the deliveries to try now, the first of which nobody else will try until its deadline."""
    theirs = (deliveries.c.channel == channel.kind) & (deliveries.c.target == channel.label)
    waiting = select(deliveries).where(deliveries.c.delivered.is_(None), theirs)
    waiting = waiting.order_by(deliveries.c.created, deliveries.c.id)
    first = waiting.limit(1)
    with database.read() as connection:  # most often there is nothing to write
        row = connection.execute(first).first()
    if row is None or row.due > time.time():
        return []
    with database.write() as connection:
        row = connection.execute(first.with_for_update()).first()
        if row is None or row.due > time.time():  # another server was quicker
            return []
        longest = LONGEST_COMMAND if channel.kind == "command" else _DEADLINE
        lease = time.time() + longest + _SECONDS_AT_ONCE + _SPARE
        connection.execute(update(deliveries).where(deliveries.c.id == row.id).values(due=lease))
        return connection.execute(waiting.limit(_AT_ONCE)).all()


def lag(connection: Connection) -> tuple[int, float]:
    """Return how many deliveries wait, and for how many seconds the oldest has."""
    waiting = select(func.count(), func.min(deliveries.c.created)).where(deliveries.c.delivered.is_(None))
    count, oldest = connection.execute(waiting).one()
    return count, 0.0 if oldest is None else max(0.0, time.time() - oldest)
