"""What a stream is watched with.

A stream is bound to a certificate, a detector and levels before its first episode. That never changes:
another watch is a new generation, with an error budget of its own.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.engine import Connection

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import ANYTIME_LEVEL, CHANGE_LEVEL
from boundwatch.errors import CertificateError, InvalidSetting
from boundwatch.server.access import record
from boundwatch.server.database import lock
from boundwatch.server.live_detectors import DETECTORS, load_certificate, parse_certificate, thresholds
from boundwatch.server.models import Bind, Refused, Upload
from boundwatch.server.tables import certificates, declarations, streams, watches

_LEVELS = {"sequential-test": ANYTIME_LEVEL, "change-detector": CHANGE_LEVEL}
_FLEET_SIZE = select(declarations.c.value).where(declarations.c.name == "fleet_size")
_USUAL_FLEET = 20
_BINDING_LOCK = 0x706C6163


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


def upload(connection: Connection, sent: Upload, *, by: str) -> RowMapping:
    """Keep a certificate as the next version of its name, verified; the same one again changes nothing."""
    certificate = Certificate.from_dict(sent.certificate)
    known = select(certificates).where(certificates.c.fingerprint == certificate.fingerprint)
    if (row := connection.execute(known).mappings().first()) is None:
        stored = json.dumps(certificate.to_dict(), sort_keys=True, allow_nan=False)
        if parse_certificate(stored).fingerprint != certificate.fingerprint:
            raise CertificateError(
                "the certificate cannot be stored without loss", remedy="certify again from the costs"
            )
        versions = select(certificates.c.version).where(certificates.c.name == sent.name)
        values = {
            "name": sent.name,
            "version": max(connection.execute(versions).scalars(), default=0) + 1,
            "fingerprint": certificate.fingerprint,
            "binary": int(certificate.binary),
            "content": stored,
            "created": time.time(),
            "created_by": by,
        }
        connection.execute(insert(certificates).values(values))
        row = connection.execute(known).mappings().one()
    detail = f"{row['name']} version {row['version']}: {row['fingerprint']}"
    record(connection, by, "certificate uploaded", detail)
    return row


def find_certificate(connection: Connection, reference: str) -> RowMapping:
    """Return the certificate with a fingerprint (12 digits are enough) or, by name, its latest version."""
    query = select(certificates).order_by(certificates.c.version.desc())
    found = connection.execute(query.where(certificates.c.name == reference)).mappings().first()
    if found is None and len(reference) >= 12 and reference.isalnum():
        begins = certificates.c.fingerprint.startswith(reference)
        found = connection.execute(query.where(begins)).mappings().first()
    if found is None:
        remedy = "upload it, then give its name or fingerprint"
        raise InvalidSetting("is not here", name="certificate", value=reference[:80], remedy=remedy)
    return found


def bind_streams(connection: Connection, sent: Bind, *, by: str) -> dict[str, int]:
    """Bind streams, all or none, and return the generation of each."""
    why = sent.reason.strip()
    if sent.new_generation and not why:
        raise InvalidSetting("is needed", name="reason", remedy="say why the stream starts anew")
    row = find_certificate(connection, sent.certificate.strip())
    binding = Binding.of(row["id"], sent.detector, sent.alpha_adverse, sent.alpha_benign)
    bound = {
        name: bind(connection, name, binding, by=by, reason=why, new_generation=sent.new_generation)
        for name in sorted(set(sent.streams))
    }
    levels = f"alpha_adverse {binding.alpha_adverse:g}, alpha_benign {binding.alpha_benign:g}"
    chosen = f"{row['name']} version {row['version']}, {sent.detector}, {levels}. {why}".strip()
    for name, generation in bound.items():
        record(connection, by, "stream bound", f"{name}, generation {generation}: {chosen}")
    return bound


def bind(
    connection: Connection,
    name: str,
    binding: Binding,
    *,
    by: str,
    reason: str = "",
    new_generation: bool = False,
) -> int:
    """Bind a stream and return its generation; an existing stream needs `new_generation`."""
    lock_bindings(connection)
    now = time.time()
    query = select(streams).where(streams.c.name == name).with_for_update()
    stream = connection.execute(query).mappings().first()
    if stream is not None and not new_generation:
        remedy = "ask for a new generation, which starts a new watch with its own error budget"
        raise Refused(
            409, "is already watched, which cannot be changed", name="stream", value=name, remedy=remedy
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
    is_test = binding.detector == "sequential-test"
    kept = {"stream_id": stream["id"], "generation": generation, "certificate_id": binding.certificate_id}
    kept |= {"detector": binding.detector, "place": _next_place(connection) if is_test else None, **levels}
    kept |= {"threshold_adverse": adverse, "threshold_benign": benign}
    kept |= {"created": now, "created_by": by, "reason": reason}
    start = {"n": 0, "total": 0.0, "verdict": "within", "curve": "[[],[]]", "pruned": 0}
    start |= dict.fromkeys(("evidence_adverse", "evidence_benign"), 1.0 if is_test else 0.0)
    connection.execute(insert(watches).values(kept | start))
    return generation


def lock_bindings(connection: Connection) -> None:
    """Keep other servers from binding streams until the transaction ends; ask before locking any stream."""
    lock(connection, _BINDING_LOCK)


def declare_fleet(connection: Connection, size: int | None = None) -> int:
    """Return for how many tests the first half of the false discovery rate is, which is said once.

    Another number is refused: one that is chosen after a look does not keep a rate.
    """
    known = connection.execute(_FLEET_SIZE).scalar()
    if known is None:
        known = _USUAL_FLEET if size is None else size
        connection.execute(insert(declarations).values(name="fleet_size", value=known))
    if size is not None and size != known:
        raise InvalidSetting(
            f"is not the {known} declared when the first stream was bound, and a number chosen after a look "
            "does not keep a false discovery rate",
            name="fleet_size",
            value=size,
            remedy="leave it out, or start a new database",
        )
    return known


def fleet_size(connection: Connection) -> int:
    """Return what `declare_fleet` would, without declaring it."""
    return connection.execute(_FLEET_SIZE).scalar() or _USUAL_FLEET


def _next_place(connection: Connection) -> int:
    """Return how many sequential tests have begun, of all streams and generations, and one."""
    declare_fleet(connection)
    return (connection.execute(select(func.max(watches.c.place))).scalar() or 0) + 1
