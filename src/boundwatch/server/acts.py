"""What administrators do, from the API and from the page alike; each act is in the audit log."""

from __future__ import annotations

import time
from collections.abc import Iterable

from sqlalchemy import select, update
from sqlalchemy.engine import Connection

from boundwatch.errors import InvalidSetting
from boundwatch.server.access import record
from boundwatch.server.ledger import Refused
from boundwatch.server.reports import check_stream, shown
from boundwatch.server.tables import alarms, streams, watches
from boundwatch.server.watches import Binding, add_certificate, bind, find_certificate

MOST_STREAMS = 1000


def upload(connection: Connection, content: object, name: object, *, by: str) -> dict[str, object]:
    """Keep a certificate and return how it is called here."""
    row = add_certificate(connection, content, check_stream(name, "name"), by)
    called = {key: row[key] for key in ("name", "version", "fingerprint")}
    record(
        connection,
        by,
        "certificate uploaded",
        f"{row['name']} version {row['version']}: {row['fingerprint']}",
    )
    return called


def watch(
    connection: Connection,
    names: Iterable[object],
    certificate: object,
    *,
    by: str,
    detector: object = None,
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    reason: object = None,
    new_generation: bool = False,
) -> dict[str, int]:
    """Bind streams, all or none, and return the generation of each."""
    checked = list(dict.fromkeys(check_stream(name, f"streams[{index}]") for index, name in enumerate(names)))
    if not 1 <= len(checked) <= MOST_STREAMS:
        raise InvalidSetting(f"streams has {len(checked)} entries; name 1 to {MOST_STREAMS}")
    why = check_text(reason, "reason", required=new_generation)
    row = find_certificate(connection, check_text(certificate, "certificate", required=True))
    kind = "sequential-test" if detector in (None, "") else check_text(detector, "detector", required=True)
    binding = Binding.checked(row["id"], kind, alpha_adverse, alpha_benign)
    bound = {
        name: bind(connection, name, binding, actor=by, reason=why, new_generation=new_generation)
        for name in sorted(checked)
    }
    for name, generation in bound.items():
        record(
            connection,
            by,
            "stream bound",
            f"{name}, generation {generation}: {row['name']} version {row['version']}, {kind}, "
            f"alpha_adverse {binding.alpha_adverse:g}, alpha_benign {binding.alpha_benign:g}. {why}".strip(),
        )
    return bound


def acknowledge(connection: Connection, alarm_id: str, reason: object, *, by: str) -> None:
    """Acknowledge an alarm: it stays in the history, with who did it and why."""
    why = check_text(reason, "reason", required=True)
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


def check_text(value: object, field: str, *, required: bool = False, longest: int = 500) -> str:
    """Return a text of a form or request, or say what is wrong with it."""
    if value is None and not required:
        return ""
    text = value.strip() if isinstance(value, str) else None
    if (
        text is None
        or len(text) > longest
        or (required and not text)
        or not text.replace("\n", " ").isprintable()
    ):
        need = "is needed; " if value in (None, "") else f"= {shown(value)} is not valid; "
        raise InvalidSetting(f"{field} {need}give 1 to {longest} printable characters")
    return text
