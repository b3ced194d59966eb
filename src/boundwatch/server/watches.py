"""What a stream is watched with, and where its detector stands.

A stream is bound to a certificate, a detector and levels before its first episode. That never changes:
another watch is a new generation, with an error budget of its own. A detector's state is the checkpoint
of its watch and the episodes after it; a replay of all episodes must give the same bytes.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import RowMapping, func, insert, select, text, update
from sqlalchemy.engine import Connection

from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, SequentialTest, Verdict
from boundwatch.errors import CertificateError, InvalidSetting, SchemaMismatch
from boundwatch.server.tables import certificates, checkpoints, declarations, episodes, streams, watches

DETECTORS: dict[str, type[SequentialTest] | type[ChangeDetector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
}
_LEVELS = {"sequential-test": 0.04, "change-detector": 0.001}
CURVE_POINTS = 96
USUAL_FLEET = 20
SUMMARY = (
    "n",
    "total",
    "verdict",
    "first_alarm",
    "evidence_adverse",
    "evidence_benign",
    "curve",
    "last_cost",
)
"""The columns that say where a watch stands, in the order of `Watcher.summary`."""
_PLACES_LOCK = 0x706C6163


@dataclass(frozen=True)
class Binding:
    """What a stream is to be watched with.

    Examples
    --------
    >>> Binding.checked(7, "sequential-test").alpha_adverse
    0.04
    """

    certificate_id: int
    detector: str
    alpha_adverse: float
    alpha_benign: float

    @classmethod
    def checked(
        cls,
        certificate_id: int,
        detector: str = "sequential-test",
        alpha_adverse: float | None = None,
        alpha_benign: float | None = None,
    ) -> Binding:
        """Return a binding with the detector's usual levels where none are given."""
        if detector not in DETECTORS:
            raise InvalidSetting(f"detector = {detector!r} is unknown; choose {' or '.join(DETECTORS)}")
        usual = _LEVELS[detector]
        adverse = usual if alpha_adverse is None else check_level(alpha_adverse, "alpha_adverse")
        benign = usual if alpha_benign is None else check_level(alpha_benign, "alpha_benign")
        return cls(certificate_id, detector, adverse, benign)


@dataclass
class Curve:
    """The evidence so far at no more than 96 episodes, evenly spaced: 1000 log10 of it, as whole numbers.

    Examples
    --------
    >>> curve = Curve()
    >>> for n in range(1, 201):
    ...     curve.add(n, 10.0, 1.0)
    >>> curve.stride, len(curve.adverse), curve.adverse[-1]
    (4, 50, 1000)
    """

    stride: int = 1
    adverse: list[int] = field(default_factory=list)
    benign: list[int] = field(default_factory=list)

    def add(self, n: int, adverse: float, benign: float) -> None:
        """Take the evidence after episode n, if n is one of the points."""
        if n % self.stride:
            return
        self.adverse.append(_milli_log10(adverse))
        self.benign.append(_milli_log10(benign))
        if len(self.adverse) > CURVE_POINTS:
            self.stride *= 2
            self.adverse, self.benign = self.adverse[1::2], self.benign[1::2]

    def to_json(self) -> str:
        """Return it as it is stored."""
        return str([self.stride, self.adverse, self.benign]).replace(
            " ", ""
        )  # ten times as quick as json.dumps

    @classmethod
    def from_json(cls, text: str) -> Curve:
        """Return what `to_json` stored."""
        return cls(*json.loads(text))


class Watcher:
    """The detector of one watch with its curve: what the server keeps in memory of a stream."""

    def __init__(self, detector: SequentialTest | ChangeDetector, curve: Curve) -> None:
        self.detector = detector
        self.curve = curve
        self.total = 0.0
        self.checkpointed = detector.n

    def count(self, cost: float) -> None:
        """Count one episode."""
        finding = self.detector.update(cost)
        self.total += cost
        adverse, benign = evidence(finding)
        self.curve.add(finding.n, adverse, benign)
        self.last = (cost, adverse, benign)

    def summary(self) -> dict[str, Any]:
        """Return the columns of `watches` that say where it stands, after at least one episode."""
        cost, adverse, benign = self.last
        detector = self.detector
        standing = detector.n, self.total, detector.verdict.value, detector.first_alarm
        return dict(zip(SUMMARY, (*standing, adverse, benign, self.curve.to_json(), cost), strict=True))

    def state(self) -> str:
        """Return everything as canonical JSON: equal states are equal bytes."""
        content = {
            "detector": self.detector.state_dict(),
            "curve": json.loads(self.curve.to_json()),
            "total": self.total,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_state(cls, text: str, kind: str) -> Watcher:
        """Return the watcher whose `state` this is."""
        content = json.loads(text)
        watcher = cls(DETECTORS[kind].from_state_dict(content["detector"]), Curve(*content["curve"]))
        watcher.total = content["total"]
        return watcher


def evidence(finding: Any) -> tuple[float, float]:
    """Return the evidence of both sides: e-values, or the change detector's statistics."""
    if hasattr(finding, "e_adverse"):
        return finding.e_adverse, finding.e_benign
    return finding.statistic_adverse, finding.statistic_benign


def thresholds(detector: SequentialTest | ChangeDetector) -> tuple[float, float]:
    """Return the evidence at which each side alarms."""
    if isinstance(detector, SequentialTest):
        # Counts that are judged jointly alarm at an exact line, mostly before the evidence is that large.
        levels = (
            detector.certificate.delta_upper + detector.alpha_adverse,
            (detector.certificate.delta_lower + detector.alpha_benign),
        )
        adverse, benign = detector.thresholds or (1 / levels[0], 1 / levels[1])
        return min(adverse, sys.float_info.max), min(benign, sys.float_info.max)  # JSON has no infinity
    return 1 / detector.alpha_adverse, 1 / detector.alpha_benign


def new_watcher(watch: RowMapping, certificate: Certificate) -> Watcher:
    """Return the watcher of a watch before its first episode."""
    build = DETECTORS[watch["detector"]]
    levels = {"alpha_adverse": watch["alpha_adverse"], "alpha_benign": watch["alpha_benign"]}
    return Watcher(build(certificate, **levels), Curve())


def load_watcher(connection: Connection, watch: RowMapping, upto: int | None = None) -> Watcher:
    """Return a watch's detector as it is stored: the checkpoint, and the episodes after it."""
    row = connection.execute(select(checkpoints).where(checkpoints.c.watch_id == watch["id"])).mappings()
    watcher = None
    if (stored := row.first()) is not None and (upto is None or stored["n"] <= upto):
        try:
            watcher = Watcher.from_state(stored["state"], watch["detector"])
        except SchemaMismatch:
            watcher = None  # written by another version of the detector: the episodes tell all
    if watcher is None:
        watcher = new_watcher(watch, load_certificate(connection, watch["certificate_id"]))
    for cost in costs_after(connection, watch["id"], watcher.detector.n, upto):
        watcher.count(cost)
    return watcher


def replay(connection: Connection, watch: RowMapping) -> Watcher:
    """Return a watch's detector after counting all its episodes again, from the first."""
    watcher = new_watcher(watch, load_certificate(connection, watch["certificate_id"]))
    for cost in costs_after(connection, watch["id"], 0):
        watcher.count(cost)
    return watcher


def costs_after(
    connection: Connection, watch_id: int, number: int, upto: int | None = None
) -> Iterator[float]:
    """Yield the costs of a watch's episodes after one, in their order."""
    query = select(episodes.c.cost).where(episodes.c.watch_id == watch_id, episodes.c.number > number)
    if upto is not None:
        query = query.where(episodes.c.number <= upto)
    result = connection.execute(query.order_by(episodes.c.number), execution_options={"yield_per": 1000})
    yield from result.scalars()


def load_certificate(connection: Connection, certificate_id: int) -> Certificate:
    """Return a stored certificate."""
    query = select(certificates.c.content).where(certificates.c.id == certificate_id)
    return parse_certificate(connection.execute(query).scalar_one())


@lru_cache(maxsize=256)
def parse_certificate(content: str) -> Certificate:
    """Return the certificate that a text holds, verified."""
    return Certificate.from_dict(json.loads(content))


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
            raise CertificateError("the certificate does not survive storage; certify again from the costs")
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
    now = time.time()
    query = select(streams).where(streams.c.name == name).with_for_update()
    stream = connection.execute(query).mappings().first()
    if stream is not None and not new_generation:
        raise InvalidSetting(
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
        "n": 0,
        "total": 0.0,
        "verdict": Verdict.WITHIN.value,
        "evidence_adverse": 1.0 if binding.detector == "sequential-test" else 0.0,
        "evidence_benign": 1.0 if binding.detector == "sequential-test" else 0.0,
        "curve": Curve().to_json(),
        "pruned": 0,
    }
    connection.execute(insert(watches).values(values))
    return generation


def declare_fleet(connection: Connection, size: int | None = None) -> int:
    """Return for how many tests the first half of the false discovery rate is, which is said once.

    Raises
    ------
    InvalidSetting
        When another number was declared before: a number chosen after a look keeps no rate.
    """
    query = select(declarations.c.value).where(declarations.c.name == "fleet_size")
    known = connection.execute(query).scalar()
    if known is None:
        known = USUAL_FLEET if size is None else size
        connection.execute(insert(declarations).values(name="fleet_size", value=known))
    if size is not None and size != known:
        raise InvalidSetting(
            f"fleet_size = {size}, but {known} was declared when the first stream was bound, and a number "
            "chosen after a look keeps no false discovery rate; leave it out, or start a new database"
        )
    return known


def _next_place(connection: Connection) -> int:
    """Return how many sequential tests have begun, of all streams and generations."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _PLACES_LOCK})
    declare_fleet(connection)
    return (connection.execute(select(func.max(watches.c.place))).scalar() or 0) + 1


def _milli_log10(value: float) -> int:
    return round(1000 * math.log10(value)) if value > 1e-12 else -12000
