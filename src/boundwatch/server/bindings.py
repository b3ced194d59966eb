"""What a stream is watched with.

A stream is bound to a certificate, a detector and levels before its first episode. That never changes:
another watch is a new generation, with an error budget of its own.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, func, insert, select, text, update
from sqlalchemy.engine import Connection

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import ANYTIME_LEVEL, CHANGE_LEVEL
from boundwatch.errors import CertificateError, InvalidSetting
from boundwatch.server.live_detectors import DETECTORS, load_certificate, parse_certificate, thresholds
from boundwatch.server.tables import certificates, declarations, streams, watches

_LEVELS = {"sequential-test": ANYTIME_LEVEL, "change-detector": CHANGE_LEVEL}
USUAL_FLEET = 20
_BINDING_LOCK = 0x706C6163


class AlreadyBound(InvalidSetting):
    """A stream that is bound cannot be bound otherwise."""


@dataclass(frozen=True)
class Binding:
    """What a stream is to be watched with.

    Examples
    --------
    >>> Binding.of(7, "sequential-test").alpha_adverse
    0.04
    """

    certificate_id: int
    detector: str
    alpha_adverse: float
    alpha_benign: float

    @classmethod
    def of(
        cls,
        certificate_id: int,
        detector: str = "sequential-test",
        alpha_adverse: float | None = None,
        alpha_benign: float | None = None,
    ) -> Binding:
        """Return a binding with the detector's usual levels where none are given."""
        usual = _LEVELS[detector]
        adverse = usual if alpha_adverse is None else alpha_adverse
        return cls(certificate_id, detector, adverse, usual if alpha_benign is None else alpha_benign)


def add_certificate(connection: Connection, content: object, name: str, actor: str) -> RowMapping:
    """Keep a certificate under a name, verified; the same one again changes nothing.

    Raises
    ------
    CertificateError
        When its numbers do not follow from each other.
    """
    certificate = Certificate.from_dict(content)
    known = select(certificates).where(certificates.c.fingerprint == certificate.fingerprint)
    if (row := connection.execute(known).mappings().first()) is None:
        stored = json.dumps(certificate.to_dict(), sort_keys=True, allow_nan=False)
        if parse_certificate(stored).fingerprint != certificate.fingerprint:
            raise CertificateError(
                "the certificate cannot be stored without loss; certify again from the costs"
            )
        versions = select(certificates.c.version).where(certificates.c.name == name)
        values = {
            "name": name,
            "version": max(connection.execute(versions).scalars(), default=0) + 1,
            "fingerprint": certificate.fingerprint,
            "binary": int(certificate.binary),
            "content": stored,
            "created": time.time(),
            "created_by": actor,
        }
        connection.execute(insert(certificates).values(values))
        row = connection.execute(known).mappings().one()
    return row


def find_certificate(connection: Connection, reference: str) -> RowMapping:
    """Return the certificate with a fingerprint (12 digits are enough) or, by name, its latest version."""
    query = select(certificates).order_by(certificates.c.version.desc())
    by_name = query.where(certificates.c.name == reference)
    found = connection.execute(by_name).mappings().first()
    if found is None and len(reference) >= 12 and reference.isalnum():
        found = (
            connection.execute(query.where(certificates.c.fingerprint.startswith(reference)))
            .mappings()
            .first()
        )
    if found is None:
        raise InvalidSetting(
            f"certificate = {reference[:80]!r} is not here; upload it, then give its name or fingerprint"
        )
    return found


def bind(
    connection: Connection,
    name: str,
    binding: Binding,
    *,
    actor: str,
    reason: str = "",
    new_generation: bool = False,
) -> int:
    """Bind a stream and return its generation; an existing stream needs `new_generation`."""
    lock_bindings(connection)
    now = time.time()
    query = select(streams).where(streams.c.name == name).with_for_update()
    stream = connection.execute(query).mappings().first()
    if stream is not None and not new_generation:
        raise AlreadyBound(
            f"stream = {name!r} is already watched, which cannot be changed; "
            "ask for a new generation, which starts a new watch with its own error budget"
        )
    if stream is None:
        generation = 1
        connection.execute(insert(streams).values(name=name, generation=1, created=now))
        stream = connection.execute(query).mappings().one()
    else:
        generation = stream["generation"] + 1
        connection.execute(update(streams).where(streams.c.id == stream["id"]).values(generation=generation))
        current = (watches.c.stream_id == stream["id"]) & watches.c.closed.is_(None)
        connection.execute(update(watches).where(current).values(closed=now))
    certificate = load_certificate(connection, binding.certificate_id)
    levels: dict[str, Any] = {"alpha_adverse": binding.alpha_adverse, "alpha_benign": binding.alpha_benign}
    adverse, benign = thresholds(DETECTORS[binding.detector](certificate, **levels))
    values: dict[str, Any] = {
        "stream_id": stream["id"],
        "generation": generation,
        "certificate_id": binding.certificate_id,
        "detector": binding.detector,
        **levels,
        "place": _next_place(connection) if binding.detector == "sequential-test" else None,
        "threshold_adverse": adverse,
        "threshold_benign": benign,
        "created": now,
        "created_by": actor,
        "reason": reason,
        "evidence_adverse": 1.0 if binding.detector == "sequential-test" else 0.0,
        "evidence_benign": 1.0 if binding.detector == "sequential-test" else 0.0,
    }
    connection.execute(insert(watches).values(values))
    return generation


def lock_bindings(connection: Connection) -> None:
    """Keep other servers from binding streams until the transaction ends; ask before locking any stream."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _BINDING_LOCK})


def declare_fleet(connection: Connection, size: int | None = None) -> int:
    """Return for how many tests the first half of the false discovery rate is, which is said once.

    Raises
    ------
    InvalidSetting
        When another number was declared before: a number chosen after a look does not keep a rate.
    """
    query = select(declarations.c.value).where(declarations.c.name == "fleet_size")
    known = connection.execute(query).scalar()
    if known is None:
        known = USUAL_FLEET if size is None else size
        connection.execute(insert(declarations).values(name="fleet_size", value=known))
    if size is not None and size != known:
        raise InvalidSetting(
            f"fleet_size = {size}, but {known} was declared when the first stream was bound, and a number "
            "chosen after a look does not keep a false discovery rate; leave it out, or start a new database"
        )
    return known


def _next_place(connection: Connection) -> int:
    """Return how many sequential tests have begun, of all streams and generations."""
    declare_fleet(connection)
    return (connection.execute(select(func.max(watches.c.place))).scalar() or 0) + 1
