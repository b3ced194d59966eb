"""Where the detector of a watch stands: the checkpoint, and the episodes after it.

A replay of all episodes must give the same bytes; `verify` tells whether it does.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, func, select
from sqlalchemy.engine import Connection

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, SequentialTest
from boundwatch.detectors.change import ChangeFinding
from boundwatch.detectors.evidence import EvidenceFinding
from boundwatch.errors import SchemaMismatch
from boundwatch.server.database import Database
from boundwatch.server.tables import certificates, checkpoints, episodes, streams, watches

DETECTORS: dict[str, type[SequentialTest] | type[ChangeDetector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
}
_MOST_SHARED = 200_000
_SHARED_EVIDENCE: dict[tuple[str, int, float], tuple[float, float]] = {}
_EVIDENCE = "evidence_adverse", "evidence_benign"
SUMMARY = "n", "total", "verdict", "first_alarm", *_EVIDENCE, "curve", "last_cost"
"""The columns that say where a watch stands, in the order of `LiveDetector.summary`."""


@dataclass
class Curve:
    """The evidence at some episodes, as 1000 log10 of it, in whole numbers.

    Evidence takes a millisecond to compute, a verdict microseconds. So it is computed at every episode up to
    the twentieth, and then whenever there are a tenth more: at 135 of a million.

    Examples
    --------
    >>> curve = Curve([1000] * 28, [0] * 28)
    >>> curve.episodes[-4:], curve.due
    ([33, 36, 39, 42], 42)
    """

    adverse: list[int] = field(default_factory=list)
    benign: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.episodes = [1]
        """The episodes of all points, and of the next one."""
        for _ in self.adverse:
            self._plan()
        self._json: str | None = None  # it is stored with every commit, and grows rarely

    @property
    def due(self) -> int:
        """The episode at which the evidence is to be added next."""
        return self.episodes[-1]

    def add(self, adverse: float, benign: float) -> None:
        """Take the evidence at the episode that is due."""
        self.adverse.append(_milli_log10(adverse))
        self.benign.append(_milli_log10(benign))
        self._plan()
        self._json = None

    def to_json(self) -> str:
        """Return it as it is stored."""
        if self._json is None:
            self._json = str([self.adverse, self.benign]).replace(" ", "")  # ten times as quick as json.dumps
        return self._json

    @classmethod
    def from_json(cls, text: str) -> Curve:
        """Return what `to_json` stored."""
        return cls(*json.loads(text))

    def _plan(self) -> None:
        last = self.episodes[-1]
        self.episodes.append(last + max(1, last // 10))


class LiveDetector:
    """The detector of one watch with its curve: what the server keeps in memory of a stream."""

    def __init__(self, detector: SequentialTest | ChangeDetector, curve: Curve) -> None:
        self.detector = detector
        self.curve = curve
        self.total = 0.0
        self.last_cost = 0.0
        start = 1.0 if isinstance(detector, SequentialTest) else 0.0
        self.evidence = (start, start)
        """Of both sides, at the last point of the curve.

        Never refreshed at an alarm: the episode it belongs to would then depend on the costs after a point,
        and its expected value in a world that is not worse could exceed 1.
        """
        self.checkpointed = detector.n
        # What joint counts say is a function of two numbers, so the streams of a fleet share it.
        self.is_exact = isinstance(detector, SequentialTest) and detector.thresholds is None
        """Whether it alarms at an exact line of failures, not when the evidence reaches a threshold."""
        self._shared = detector.certificate.fingerprint if self.is_exact else None

    def count(self, cost: float) -> None:
        """Count one episode."""
        finding = self.detector.update(cost)
        self.total += cost
        self.last_cost = cost
        if finding.n == self.curve.due:
            self.evidence = self._evidence(finding)
            self.curve.add(*self.evidence)

    def _evidence(self, finding: EvidenceFinding | ChangeFinding) -> tuple[float, float]:
        if self._shared is None:
            return evidence(finding)
        key = self._shared, finding.n, self.total
        if (known := _SHARED_EVIDENCE.get(key)) is None:
            if len(_SHARED_EVIDENCE) >= _MOST_SHARED:
                _SHARED_EVIDENCE.clear()
            known = _SHARED_EVIDENCE[key] = evidence(finding)
        return known

    def summary(self) -> dict[str, Any]:
        """Return the columns of `watches` that say where it stands, after at least one episode."""
        detector = self.detector
        standing = detector.n, self.total, detector.verdict.value, detector.first_alarm, *self.evidence
        return dict(zip(SUMMARY, (*standing, self.curve.to_json(), self.last_cost), strict=True))

    def state(self) -> str:
        """Return everything as canonical JSON: equal states are equal bytes."""
        content = {
            "detector": self.detector.state_dict(),
            "curve": json.loads(self.curve.to_json()),
            "total": self.total,
            "last_cost": self.last_cost,
            "evidence": self.evidence,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_state(cls, text: str, kind: str) -> LiveDetector:
        """Return the live whose `state` this is."""
        content = json.loads(text)
        live = cls(DETECTORS[kind].from_state_dict(content["detector"]), Curve(*content["curve"]))
        live.total, live.last_cost = content["total"], content["last_cost"]
        live.evidence = tuple(content["evidence"])
        return live


def evidence(finding: EvidenceFinding | ChangeFinding) -> tuple[float, float]:
    """Return the evidence of both sides: e-values, or the change detector's statistics."""
    if isinstance(finding, ChangeFinding):
        return finding.statistic_adverse, finding.statistic_benign
    return finding.e_adverse, finding.e_benign


def thresholds(detector: SequentialTest | ChangeDetector) -> tuple[float, float]:
    """Return the evidence at which each side alarms."""
    if isinstance(detector, SequentialTest):
        # Counts that are judged jointly alarm at an exact line, mostly before the evidence is that large.
        promised = detector.certificate
        adverse, benign = detector.thresholds or (
            1 / (promised.delta_upper + detector.alpha_adverse),
            1 / (promised.delta_lower + detector.alpha_benign),
        )
        return min(adverse, sys.float_info.max), min(benign, sys.float_info.max)  # JSON has no infinity
    return 1 / detector.alpha_adverse, 1 / detector.alpha_benign


def load_detector(connection: Connection, watch: RowMapping, upto: int | None = None) -> LiveDetector:
    """Return a watch's detector as it is stored: the checkpoint, and the episodes after it."""
    row = connection.execute(select(checkpoints).where(checkpoints.c.watch_id == watch["id"])).mappings()
    live = None
    if (stored := row.first()) is not None and (upto is None or stored["n"] <= upto):
        with suppress(SchemaMismatch):  # written by another version of the detector: the episodes tell all
            live = LiveDetector.from_state(stored["state"], watch["detector"])
    if live is None:
        live = _new_detector(connection, watch)
    return _count_after(connection, watch, live, upto)


def _new_detector(connection: Connection, watch: RowMapping) -> LiveDetector:
    certificate = load_certificate(connection, watch["certificate_id"])
    levels = {"alpha_adverse": watch["alpha_adverse"], "alpha_benign": watch["alpha_benign"]}
    return LiveDetector(DETECTORS[watch["detector"]](certificate, **levels), Curve())


def _count_after(
    connection: Connection, watch: RowMapping, live: LiveDetector, upto: int | None = None
) -> LiveDetector:
    """Count a watch's episodes after those that its detector has counted."""
    after = (episodes.c.watch_id == watch["id"]) & (episodes.c.number > live.detector.n)
    query = select(episodes.c.cost).where(after)
    if upto is not None:
        query = query.where(episodes.c.number <= upto)
    result = connection.execute(query.order_by(episodes.c.number), execution_options={"yield_per": 1000})
    for cost in result.scalars():
        live.count(cost)
    return live


class Replayed(NamedTuple):
    """What a replay of one watch gave."""

    stream: str
    generation: int
    n: int
    fault: str
    """What differs; empty if nothing does, and for episodes that retention has removed."""
    pruned: bool


def verify(database: Database) -> Iterator[Replayed]:
    """Replay the watches one by one; the states must be equal byte for byte, and so must all that is shown.

    It reads a consistent picture per watch, so the server may go on counting meanwhile.
    """
    with database.read() as connection:
        query = select(watches.c.id, streams.c.name).select_from(watches.join(streams))
        keys = connection.execute(query.order_by(streams.c.name, watches.c.generation)).all()
    for key, name in keys:
        with database.read() as connection:
            watch = connection.execute(select(watches).where(watches.c.id == key)).mappings().one()
            fault = "" if watch["pruned"] else _fault(connection, watch)
            yield Replayed(name, watch["generation"], watch["n"], fault, bool(watch["pruned"]))


def _fault(connection: Connection, watch: RowMapping) -> str:
    numbers = select(func.count(), func.max(episodes.c.number)).where(episodes.c.watch_id == watch["id"])
    count, last = connection.execute(numbers).one()
    if not count == (last or 0) == watch["n"]:
        return f"{count} episodes are stored, the last has number {last}, {watch['n']} are shown"
    again = _count_after(connection, watch, _new_detector(connection, watch))
    if again.state() != load_detector(connection, watch).state():
        return "the stored state differs from that of a replay"
    wrong = [name for name, value in again.summary().items() if watch["n"] and watch[name] != value]
    return f"{', '.join(wrong)} differ from those of a replay" if wrong else ""


def load_certificate(connection: Connection, certificate_id: int) -> Certificate:
    """Return a stored certificate."""
    query = select(certificates.c.content).where(certificates.c.id == certificate_id)
    return parse_certificate(connection.execute(query).scalar_one())


@lru_cache(maxsize=256)
def parse_certificate(content: str) -> Certificate:
    """Return the certificate that a text holds, verified."""
    return Certificate.from_dict(json.loads(content))


def _milli_log10(value: float) -> int:
    return round(1000 * math.log10(value)) if value > 1e-12 else -12000
