"""Alarms on their way out: written with the episode that raised them, delivered at least once.

A delivery is a row. A thread takes those that are due, tries, and either marks them delivered or puts them
off: 1, 2, 4, … seconds, at most five minutes, until the receiver accepts. A delivery's id tells repeats.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import smtplib
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Any
from urllib.parse import quote, urlsplit

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.engine import Connection

from boundwatch.errors import InvalidSetting
from boundwatch.server.database import Database
from boundwatch.server.tables import deliveries
from boundwatch.watching.alarms import check_command, run_command

_LOG = logging.getLogger("boundwatch.server")
_LEASE = 90.0  # a server that dies with a delivery in hand gives it back after so many seconds
_LONGEST_PAUSE = 300.0
_TIMEOUT = 10.0


@dataclass(frozen=True)
class Channel:
    """Where alarms go: a webhook, a command, or an e-mail address.

    Examples
    --------
    >>> Channel("webhook", "https://hooks.example.com/T0/secret").label
    'hooks.example.com#f4df2084'
    """

    kind: str
    target: str
    secret: str = field(default="", repr=False)
    smtp: str = ""
    sender: str = "boundwatch@localhost"
    monitor: str = ""
    """The address of the pages that messages link to; without one they have no link."""

    def __post_init__(self) -> None:
        if self.kind == "webhook" and urlsplit(self.target).scheme not in ("http", "https"):
            host = self.target.partition("/")[0]  # what follows may be a secret
            raise InvalidSetting(
                f"webhook = '{host[:60]}…' does not begin with http:// or https://; give the full address"
            )
        if self.kind == "command":
            check_command(self.target)
        if self.kind == "email" and "@" not in self.target:
            raise InvalidSetting(f"email = {self.target!r} is not an address; give name@host")
        if not (self.smtp.partition(":")[2] or "25").isdecimal():
            raise InvalidSetting(f"smtp = {self.smtp!r} is not the address of a mail server; give host:port")

    @property
    def label(self) -> str:
        """What the database and the logs call it: addresses of webhooks are secrets."""
        digest = hashlib.sha256(self.target.encode()).hexdigest()[:8]
        if self.kind == "webhook":
            return f"{urlsplit(self.target).hostname}#{digest}"
        return f"{self.target[:60]}#{digest}" if self.kind == "email" else f"command#{digest}"

    def send(self, delivery_id: str, payload: str) -> None:
        """Deliver, or raise an `OSError` or `InvalidSetting` that says why not."""
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
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "boundwatch",
            "X-Boundwatch-Delivery": delivery_id,
            "X-Boundwatch-Timestamp": moment,
        }
        if self.secret:
            headers["X-Boundwatch-Signature"] = "sha256=" + sign(self.secret, moment, body)
        request = urllib.request.Request(self.target, body, headers)  # noqa: S310 - http(s) only, see above
        opener = urllib.request.build_opener(_NoRedirect)
        with opener.open(request, timeout=_TIMEOUT):
            pass

    def _mail(self, delivery_id: str, subject: str, alarm: dict[str, Any]) -> None:
        message = EmailMessage()
        message["Subject"] = " ".join(subject.split())[:150]
        message["From"], message["To"] = self.sender, self.target
        message["Message-ID"] = f"<{delivery_id}@boundwatch>"
        message.set_content(f"{alarm['text']}\n\n{json.dumps(alarm, indent=2)}\n")
        host, _, port = self.smtp.partition(":")
        with smtplib.SMTP(host or "localhost", int(port or 25), timeout=_TIMEOUT) as smtp:
            smtp.send_message(message)


def sign(secret: str, moment: str, body: bytes) -> str:
    """Return the HMAC-SHA256 that a webhook's receiver computes again, of ``timestamp.body``.

    Examples
    --------
    >>> sign("s3cret", "1763280000", b"{}")[:16]
    '8b90db3ab70a26a0'
    """
    return hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()


def enqueue(
    connection: Connection,
    channels: Iterable[Channel],
    stream: str,
    watch: RowMapping,
    alarm: Mapping[str, Any],
    standing: Mapping[str, Any],
) -> None:
    """Put an alarm into the outbox of every channel, in the transaction that raised it."""
    n, mean = standing["n"], standing["total"] / standing["n"]
    what, seen = (
        ("it fails more often than certified", f"{standing['total']:.0f} of {n} episodes failed")
        if standing["binary"]
        else ("its costs have risen above what was certified", f"mean cost {mean:.3g} over {n} episodes")
    )
    payload = {
        "text": f"boundwatch: stream {stream} is ADVERSE: {what} ({seen}, generation {watch['generation']}).",
        "kind": "alarm",
        "alarm": alarm["id"],
        "stream": stream,
        "generation": watch["generation"],
        "verdict": alarm["verdict"],
        "episode_number": alarm["number"],
        "mean_cost": mean,
        "evidence": standing["evidence_adverse"],
        "threshold": standing["threshold_adverse"],
        "time": alarm["created"],
    }
    put(connection, channels, payload)


def put(connection: Connection, channels: Iterable[Channel], payload: Mapping[str, Any]) -> None:
    """Put a message into the outbox of every channel."""
    now = time.time()
    text = json.dumps(payload, sort_keys=True, allow_nan=False)
    for channel in channels:
        row = {
            "id": secrets.token_hex(16),
            "channel": channel.kind,
            "target": channel.label,
            "payload": text,
            "created": now,
            "attempts": 0,
            "due": now,
        }
        connection.execute(insert(deliveries).values(row))


class Courier:
    """The thread that delivers.

    Parameters
    ----------
    database, channels
        Where the outbox is, and where it may go.
    """

    def __init__(self, database: Database, channels: Iterable[Channel]) -> None:
        self.database = database
        self.channels = {(channel.kind, channel.label): channel for channel in channels}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)
        if self.channels:
            self._thread.start()

    def close(self) -> None:
        """Stop after the delivery in hand; what is left is delivered by the next server."""
        self._stop.set()
        if self.channels:
            self._thread.join(_TIMEOUT + 1)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                while not self._stop.is_set() and self.deliver_one():
                    pass
            except Exception:  # the thread must outlive whatever the database does
                _LOG.exception("the outbox cannot be read")

    def deliver_one(self) -> bool:
        """Try one delivery that is due; return whether there was one."""
        now = time.time()
        with self.database.write() as connection:
            targets = {label for _, label in self.channels}
            due = (
                select(deliveries)
                .where(
                    deliveries.c.delivered.is_(None),
                    deliveries.c.due <= now,
                    deliveries.c.target.in_(targets),
                )
                .order_by(deliveries.c.due)
                .limit(1)
                .with_for_update(skip_locked=True)
            )
            if (row := connection.execute(due).mappings().first()) is None:
                return False
            attempts = row["attempts"] + 1
            this = update(deliveries).where(deliveries.c.id == row["id"])
            connection.execute(this.values(attempts=attempts, due=now + _LEASE))
        try:
            self.channels[row["channel"], row["target"]].send(row["id"], row["payload"])
            changes: dict[str, Any] = {"delivered": time.time(), "error": None}
        except (OSError, InvalidSetting, smtplib.SMTPException) as error:
            reason = (
                f"HTTP {error.code}" if isinstance(error, urllib.error.HTTPError) else type(error).__name__
            )
            pause = min(_LONGEST_PAUSE, 2.0 ** min(attempts - 1, 16))
            changes = {"due": time.time() + pause, "error": reason}
            _LOG.warning(
                "delivery %s to %s failed (%s), again in %g s", row["id"], row["target"], reason, pause
            )
        with self.database.write() as connection:
            connection.execute(this.values(changes))
        return True


def lag(connection: Connection) -> tuple[int, float]:
    """Return how many deliveries wait, and for how many seconds the oldest has."""
    waiting = select(func.count(), func.min(deliveries.c.created)).where(deliveries.c.delivered.is_(None))
    count, oldest = connection.execute(waiting).one()
    return count, 0.0 if oldest is None else max(0.0, time.time() - oldest)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A signed message goes where it was addressed, nowhere else."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        return None
