"""Alarms on their way out: written with the episode that raised them, delivered at least once.

A delivery is a row. Every channel has a queue, and in `upkeep` a thread, of its own: its deliveries go out in
their order, and a receiver that is slow, or away, keeps nothing from the others. The first that fails is put
off: 1, 2, 4, … seconds, at most five minutes, until the receiver accepts. A delivery's id tells repeats.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import secrets
import smtplib
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from http.client import HTTPResponse
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
_DEADLINE = 10.0  # seconds for one delivery, from the name's look-up to the end of the answer's headers
_SPARE = 5.0  # a server that dies with a delivery in hand gives it back so many seconds after its deadline
_AT_ONCE, _SECONDS_AT_ONCE = 50, 1.0  # deliveries that share two commits


@dataclass(frozen=True)
class Channel:
    """Where alarms go: a webhook, a command, or an e-mail address."""

    kind: str
    target: str
    secret: str = field(default="", repr=False)
    smtp: str = ""
    sender: str = "boundwatch@localhost"
    monitor: str = ""
    """The address of the pages that messages link to; without one they have no link."""
    tell: str = "streams"
    """Of what it hears: of every stream's alarm, or of ``"discoveries"`` at one rate over the fleet."""

    def __post_init__(self) -> None:
        if self.kind == "webhook" and not is_address(self.target):
            host = self.target.partition("/")[0]  # what follows may be a secret
            problem, remedy = "is not an http:// or https:// address", "give all of it, with %20 for a space"
            raise InvalidSetting(problem, name="webhook", value=f"{host[:60]}…", remedy=remedy)
        if self.kind == "command":
            check_command(self.target)
        if self.kind == "email" and "@" not in self.target:
            remedy = "give name@host"
            raise InvalidSetting("is not an address", name="email", value=self.target, remedy=remedy)
        if not (self.smtp.partition(":")[2] or "25").isdecimal():
            problem = "is not the address of a mail server"
            raise InvalidSetting(problem, name="smtp", value=self.smtp, remedy="give host:port")

    @property
    def label(self) -> str:
        """What the database and the logs call it: addresses of webhooks are secrets."""
        digest = hashlib.sha256(self.target.encode()).hexdigest()[:8]
        if self.kind == "webhook":
            return f"{urlsplit(self.target).hostname}#{digest}"
        return f"{self.target[:60]}#{digest}" if self.kind == "email" else f"command#{digest}"

    def send(self, delivery_id: str, payload: str) -> None:
        """Deliver before the deadline, or raise the error that says why not."""
        content = json.loads(payload)
        subject = content["text"]
        if self.monitor:
            generation = f"?generation={content['generation']}" if "generation" in content else ""
            content["page"] = f"{self.monitor}/streams/{quote(content['stream'], safe='')}{generation}"
            content["text"] += f" {content['page']}"
        if self.kind == "webhook":
            self._post(delivery_id, json.dumps(content, sort_keys=True).encode())
        elif self.kind == "command":
            run_command(self.target, content)
        else:
            self._mail(delivery_id, subject, content)

    def _post(self, delivery_id: str, body: bytes) -> None:
        moment = str(int(time.time()))
        headers = {"Content-Type": "application/json", "User-Agent": "boundwatch"}
        headers |= {"X-Boundwatch-Delivery": delivery_id, "X-Boundwatch-Timestamp": moment}
        if self.secret:
            headers["X-Boundwatch-Signature"] = "sha256=" + sign(self.secret, moment, body)
        request = urllib.request.Request(self.target, body, headers)  # noqa: S310 - http(s) only, see above
        twins: list[socket.socket] = []
        opener = urllib.request.build_opener(_Handler(twins))
        with _ended_by(_DEADLINE, lambda: twins), opener.open(request, timeout=_DEADLINE):
            pass

    def _mail(self, delivery_id: str, subject: str, alarm: dict[str, Any]) -> None:
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())[:150]
        message["From"], message["To"] = self.sender, self.target
        message["Message-ID"] = f"<{delivery_id}@boundwatch>"
        message.set_content(f"{alarm['text']}\n\n{json.dumps(alarm, indent=2)}\n")
        host, _, port = self.smtp.partition(":")
        smtp = smtplib.SMTP(timeout=_DEADLINE)
        with _ended_by(_DEADLINE, lambda: [smtp.sock] if smtp.sock else []), smtp:
            smtp.connect(host or "localhost", int(port or 25))
            smtp.send_message(message)


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
    """Keep an alarm, of `verdict` at `episode_number`, and tell those who hear of its kind."""
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
    of = "discoveries" if fields["verdict"] == "discovery" else "streams"
    put(connection, (channel for channel in channels if channel.tell == of), payload)


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
            reason = type(error).__name__
            if isinstance(error, urllib.error.HTTPError):
                reason = f"HTTP {error.code}"
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


@contextlib.contextmanager
def _ended_by(seconds: float, connections: Callable[[], Iterable[socket.socket]]) -> Iterator[None]:
    """Cut connections off after so many seconds; a socket's own timeout begins anew with every byte."""
    late = threading.Event()

    def cut_off() -> None:
        late.set()
        for each in connections():
            with contextlib.suppress(OSError):  # it has ended
                each.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_off)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():  # whatever it looks like: headers that were cut off look complete
            raise TimeoutError(f"not done within {seconds:g} s")


class _Handler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler, urllib.request.HTTPRedirectHandler):
    """Opens connections of which it keeps twins: TLS takes the original away before it shakes hands.

    A signed message goes where it was addressed, nowhere else: redirects are errors.
    """

    def __init__(self, twins: list[socket.socket]) -> None:
        super().__init__()
        self._twins = twins

    def do_open(self, http_class: Any, req: urllib.request.Request, **options: Any) -> HTTPResponse:
        """Open one."""

        def make(host: str, **more: Any) -> Any:
            connection = http_class(host, **more)
            connection._create_connection = self._connect
            return connection

        try:
            return super().do_open(make, req, **options)
        finally:
            for each in self._twins:
                each.close()

    def _connect(self, *arguments: Any, **options: Any) -> socket.socket:
        made = socket.create_connection(*arguments, **options)
        self._twins.append(made.dup())
        return made

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Refuse."""
