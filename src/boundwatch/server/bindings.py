"""What a stream is watched with.

A stream is bound to a certificate, a detector and levels before its first episode. That never changes:
another watch is a new generation, with an error budget of its own.
"""

from __future__ import annotations

import json
import secrets
import time
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, func, insert, select, update
from sqlalchemy.engine import Connection

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, CHANGE_LEVEL
from boundwatch.errors import InvalidSetting
from boundwatch.server.access import record
from boundwatch.server.database import lock
from boundwatch.server.live_detectors import LiveDetector, begin, load_certificate, thresholds
from boundwatch.server.models import Bind, Refused, Upload
from boundwatch.server.tables import certificates, declarations, streams, tokens, watches

_LEVELS = {"sequential-test": ANYTIME_LEVEL, "change-detector": CHANGE_LEVEL, "judged-test": ANYTIME_LEVEL}
_FLEET_SIZE = select(declarations.c.value).where(declarations.c.name == "fleet_size")
_USUAL_FLEET = 20
BINDING_LOCK = 0x706C6163  # who binds streams holds it, and asks for it before locking any stream


class Binding(NamedTuple):
    """What a stream is to be watched with."""

    certificate_id: int
    detector: str = "sequential-test"
    alpha_adverse: float | None = None
    alpha_benign: float | None = None

    @property
    def levels(self) -> dict[str, Any]:
        """The levels, the detector's usual ones where none are given."""
        given = {"alpha_adverse": self.alpha_adverse, "alpha_benign": self.alpha_benign}
        return {name: _LEVELS[self.detector] if alpha is None else alpha for name, alpha in given.items()}

    def drawn(self) -> dict[str, Any]:
        """Return what a watch is made with; of a judge's, the coin that no judge can know."""
        seed = secrets.randbits(60) if self.detector == "judged-test" else None
        return self._asdict() | self.levels | {"seed": seed}


def upload(connection: Connection, sent: Upload, *, by: str) -> RowMapping:
    """Keep a certificate as the next version of its name, verified; the same one again changes nothing."""
    certificate = Certificate.from_dict(sent.certificate)
    if certificate.strata:
        problem = "is of the mean over tasks, which is watched in rounds and not by a monitor"
        remedy = "certify each task by itself, or watch the stream on the command line"
        raise InvalidSetting(problem, name="certificate", value=sent.name, remedy=remedy)
    lock(connection, BINDING_LOCK)  # another server may be about to keep it
    known = select(certificates).where(certificates.c.fingerprint == certificate.fingerprint)
    if (row := connection.execute(known).mappings().first()) is None:
        versions = select(certificates.c.version).where(certificates.c.name == sent.name)
        values = {
            "name": sent.name,
            "version": max(connection.execute(versions).scalars(), default=0) + 1,
            "fingerprint": certificate.fingerprint,
            "binary": int(certificate.binary),
            "content": json.dumps(certificate.to_dict(), sort_keys=True, allow_nan=False),
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
    binding = Binding(row["id"], sent.detector, sent.alpha_adverse, sent.alpha_benign)
    bound = {
        name: bind(connection, name, binding, by=by, reason=why, new_generation=sent.new_generation)
        for name in sorted(set(sent.streams))
    }
    levels = ", ".join(f"{name} {alpha:g}" for name, alpha in binding.levels.items())
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
    is_early: bool = True,
) -> int:
    """Bind a stream and return its generation; an existing stream needs `new_generation`.

    Unless it `is_early`, it takes no place among those that share one half of the false discovery rate.
    """
    lock(connection, BINDING_LOCK)
    now = time.time()
    query = select(streams).where(streams.c.name == name).with_for_update()
    stream = connection.execute(query).mappings().first()
    if stream is not None and not new_generation:
        problem = "is already watched, which cannot be changed"
        remedy = "ask for a new generation, which starts a new watch with its own error budget"
        raise Refused(409, problem, name="stream", value=name, remedy=remedy)
    if stream is None:
        generation = 1
        connection.execute(insert(streams).values(name=name, generation=1, created=now))
        stream = connection.execute(query).mappings().one()
    else:
        generation = stream["generation"] + 1
        connection.execute(update(streams).where(streams.c.id == stream["id"]).values(generation=generation))
        current = (watches.c.stream_id == stream["id"]) & watches.c.closed.is_(None)
        connection.execute(update(watches).where(current).values(closed=now))
    made = binding.drawn()
    start = _start(connection, made)
    adverse, benign = thresholds(start.detector)
    kept: dict[str, Any] = {"stream_id": stream["id"], "generation": generation}
    kept |= {"created": now, "created_by": by, "reason": reason, **made}
    kept |= {"threshold_adverse": adverse, "threshold_benign": benign, "place": None}
    if binding.detector != "change-detector":  # how many of them have begun, of all streams and generations
        size, taken = declare_fleet(connection), select(func.max(watches.c.place))
        early = connection.execute(taken.where(watches.c.place <= size)).scalar() or 0
        last = connection.execute(taken).scalar() or 0
        kept["place"] = early + 1 if is_early and early < size else max(size, last) + 1
    connection.execute(insert(watches).values(kept | start.summary() | {"last_cost": None}))
    return generation


def _start(connection: Connection, made: dict[str, Any]) -> LiveDetector:
    return begin(made, load_certificate(connection, made["certificate_id"]))


def early_places(connection: Connection) -> int:
    """Return how many of the first places one token may take by reporting: as many as each other."""
    reporting = tokens.c.revoked.is_(None) & tokens.c.scopes.contains("report")
    sharing = connection.execute(select(func.count()).where(reporting)).scalar_one()
    return -(-declare_fleet(connection) // max(1, sharing))


def warm(connection: Connection, binding: Binding) -> None:
    """Compute what all streams of a certificate share, half a second's work, before the first comes."""
    _start(connection, binding.drawn()).count(0.0)


def declare_fleet(connection: Connection, size: int | None = None) -> int:
    """Return for how many tests the first half of the false discovery rate is, which is said once.

    Another number is refused: one that is chosen after a look does not keep a rate.
    """
    known = connection.execute(_FLEET_SIZE).scalar()
    if known is None:
        known = _USUAL_FLEET if size is None else size
        connection.execute(insert(declarations).values(name="fleet_size", value=known))
    if size is not None and size != known:
        problem = f"is not the {known} declared when the first stream was bound"
        remedy = (
            "leave it out, or start a new database: one chosen after a look keeps no false discovery rate"
        )
        raise InvalidSetting(problem, name="fleet_size", value=size, remedy=remedy)
    return known


def fleet_size(connection: Connection) -> int:
    """Return what `declare_fleet` would, without declaring it."""
    return connection.execute(_FLEET_SIZE).scalar() or _USUAL_FLEET
