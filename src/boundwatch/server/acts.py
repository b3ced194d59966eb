"""What administrators do, from the API and from the page alike; each act is in the audit log."""

from __future__ import annotations

import time

from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from boundwatch.errors import InvalidSetting
from boundwatch.server.access import record
from boundwatch.server.bindings import Binding, add_certificate, bind, find_certificate
from boundwatch.server.counting import Refused
from boundwatch.server.models import Acknowledge, Bind, Upload
from boundwatch.server.tables import alarms, streams, watches


def upload(connection: Connection, sent: Upload, *, by: str) -> dict[str, object]:
    """Keep a certificate and return how it is called here."""
    row = add_certificate(connection, sent.certificate, sent.name, by)
    called = {key: row[key] for key in ("name", "version", "fingerprint")}
    detail = f"{row['name']} version {row['version']}: {row['fingerprint']}"
    record(connection, by, "certificate uploaded", detail)
    return called


def bind_streams(connection: Connection, sent: Bind, *, by: str) -> dict[str, int]:
    """Bind streams, all or none, and return the generation of each."""
    why = sent.reason.strip()
    if sent.new_generation and not why:
        raise InvalidSetting("is needed", name="reason", remedy="say why the stream starts anew")
    row = find_certificate(connection, sent.certificate.strip())
    binding = Binding.of(row["id"], sent.detector, sent.alpha_adverse, sent.alpha_benign)
    bound = {
        name: bind(connection, name, binding, actor=by, reason=why, new_generation=sent.new_generation)
        for name in sorted(set(sent.streams))
    }
    for name, generation in bound.items():
        record(
            connection,
            by,
            "stream bound",
            f"{name}, generation {generation}: {row['name']} version {row['version']}, {sent.detector}, "
            f"alpha_adverse {binding.alpha_adverse:g}, alpha_benign {binding.alpha_benign:g}. {why}".strip(),
        )
    return bound


def acknowledge(connection: Connection, alarm_id: str, sent: Acknowledge, *, by: str) -> None:
    """Acknowledge an alarm: it stays in the history, with who did it and why."""
    why = sent.reason.strip()
    query = (
        select(alarms, streams.c.name)
        .select_from(alarms.join(watches).join(streams))
        .where(alarms.c.id == alarm_id)
    )
    if (alarm := connection.execute(query).mappings().first()) is None:
        raise Refused(404, f"alarm = {alarm_id[:40]!r} is unknown; GET /api/v1/alarms lists them")
    free = (alarms.c.id == alarm_id) & alarms.c.acknowledged.is_(None)
    values = {"acknowledged": time.time(), "acknowledged_by": by, "reason": why}
    if connection.execute(update(alarms).where(free).values(values)).rowcount != 1:
        raise Refused(
            409, f"alarm = {alarm_id!r} was acknowledged by {alarm['acknowledged_by']}; nothing was changed"
        )
    record(connection, by, "alarm acknowledged", f"{alarm['name']}, alarm {alarm_id}: {why}")
