"""Where the detector of a watch stands: the checkpoint, and the episodes after it.

A replay of all episodes must give the same bytes; `verify` tells whether it does.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, func, select
from sqlalchemy.engine import Connection

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, JudgedTest, SequentialTest, saving
from boundwatch.detectors.change import ChangeFinding
from boundwatch.detectors.evidence import EvidenceFinding
from boundwatch.detectors.judged_test import JudgedFinding
from boundwatch.errors import SchemaMismatch
from boundwatch.server.database import Database, find_rows
from boundwatch.server.tables import alarms, certificates, checkpoints, episodes, streams, watches

Detector = SequentialTest | ChangeDetector | JudgedTest
DETECTORS: dict[str, type[Detector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
    "judged-test": JudgedTest,
}
_MOST_SHARED = 200_000
_SHARED_EVIDENCE: dict[tuple[str, int, float], tuple[float, float]] = {}
_EVIDENCE = "evidence_adverse", "evidence_benign"
_LAST = "last_cost", "digest", "last_seen", "counted"
SUMMARY = "n", "labeled", "total", "verdict", "first_alarm", *_EVIDENCE, "curve", *_LAST
"""The columns that say where a watch stands, in the order of `LiveDetector.summary`."""


def _points() -> Iterator[int]:
    episode = 1
    while episode < 2**31:
        yield episode
        episode += max(1, episode // 10)


POINTS = tuple(_points())
"""The episodes at which evidence is computed, which takes a millisecond; a verdict takes microseconds.

Every one up to the twentieth, and then whenever there are a tenth more: 135 of a million.
"""


class LiveDetector:
    """The detector of one watch with its curve: what the server keeps in memory of a stream."""

    def __init__(self, detector: Detector) -> None:
        self.detector = detector
        self.n = self.labeled = 0
        """How many episodes were reported, and how many of them people labeled."""
        self.total = self.last_cost = 0.0
        self.last_seen: float | None = None
        self.number = 0
        """Of the last that was counted, in the log."""
        self.digest = ""
        """Of all that was counted, with ids and times: an edited episode does not give the same."""
        self.curve = array("i"), array("i")
        """The evidence of both sides at the first of `POINTS`, as 1000 log10 of it, in whole numbers."""
        self._curve = ""  # it is stored with every commit, and grows rarely
        start = 1.0 if isinstance(detector, SequentialTest) else 0.0
        self.evidence = (start, start)
        """Of both sides, at the last point of the curve.

        Never refreshed at an alarm: the episode it belongs to would then depend on the costs after a point,
        and its expected value in a world that is not worse could exceed 1.
        """
        self.checkpointed = detector.n
        # What joint counts say is a function of two numbers, so the streams of a fleet share it.
        is_exact = isinstance(detector, SequentialTest) and detector.thresholds is None
        self._shared = detector.certificate.fingerprint if is_exact else None

    def count(
        self,
        cost: float,
        episode: str = "",
        time: float | None = None,
        received: float | None = None,
        labels: int | None = None,
        number: int = 0,
    ) -> None:
        """Count one episode, or what people said of one."""
        kept = f"{self.digest} {cost!r} {time!r} {received!r} {labels} {episode}"
        self.digest = hashlib.blake2b(kept.encode(), digest_size=16).hexdigest()
        self.number = number
        finding: EvidenceFinding | ChangeFinding | JudgedFinding
        if labels is not None and isinstance(self.detector, JudgedTest):
            finding = self.detector.label(labels, cost)
            self.labeled += 1
        else:
            finding = self.detector.update(cost)
            self.n += 1
            self.total += cost
            self.last_seen, self.last_cost = received, cost
        while finding.n >= POINTS[len(self.curve[0])]:  # a label may let several episodes count
            self.evidence = self._evidence(finding)
            for side, value in zip(self.curve, self.evidence, strict=True):
                side.append(round(1000 * math.log10(value)) if value > 1e-12 else -12000)
            self._curve = ""

    def _evidence(self, finding: EvidenceFinding | ChangeFinding | JudgedFinding) -> tuple[float, float]:
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
        self._curve = self._curve or str(self._lists()).replace(" ", "")  # ten times as quick as json.dumps
        known = self.n, self.labeled, self.total
        standing = *known, detector.verdict.value, detector.first_alarm, *self.evidence
        last = self.last_cost, self.digest, self.last_seen, self.number
        return dict(zip(SUMMARY, (*standing, self._curve, *last), strict=True))

    def _lists(self) -> list[list[int]]:
        return [side.tolist() for side in self.curve]

    def state(self) -> str:
        """Return everything as canonical JSON: equal states are equal bytes."""
        content = {
            "version": saving.VERSION,
            "detector": self.detector.content(),
            "curve": self._lists(),
            "digest": self.digest,
            "last_seen": self.last_seen,
            "number": self.number,
            "known": (self.n, self.labeled),
            "total": self.total,
            "last_cost": self.last_cost,
            "evidence": self.evidence,
        }
        return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)

    @classmethod
    def from_state(cls, text: str, kind: str, certificate: Certificate) -> LiveDetector:
        """Return the live whose `state` this is."""
        content = json.loads(text)
        if content.get("version") != saving.VERSION:
            raise SchemaMismatch("is of another version", name="state")
        live = cls(DETECTORS[kind].from_content(content["detector"], certificate))
        live.total, live.last_cost, live.digest = content["total"], content["last_cost"], content["digest"]
        live.last_seen, live.number = content["last_seen"], content["number"]
        live.n, live.labeled = content["known"]
        live.curve = array("i", content["curve"][0]), array("i", content["curve"][1])
        live.evidence = tuple(content["evidence"])
        return live


def evidence(finding: EvidenceFinding | ChangeFinding | JudgedFinding) -> tuple[float, float]:
    """Return the evidence of both sides: e-values, or the change detector's statistics."""
    if isinstance(finding, ChangeFinding):
        return finding.statistic_adverse, finding.statistic_benign
    return finding.e_adverse, finding.e_benign


def thresholds(detector: Detector) -> tuple[float | None, float | None]:
    """Return the evidence at which each side alarms; None if it does at an exact line of failures."""
    if not isinstance(detector, SequentialTest):
        return 1 / detector.alpha_adverse, 1 / detector.alpha_benign
    if detector.thresholds is None:
        return None, None
    adverse, benign = detector.thresholds
    return min(adverse, sys.float_info.max), min(benign, sys.float_info.max)  # JSON has no infinity


def load_detector(connection: Connection, watch: RowMapping, *, replay: bool = False) -> LiveDetector:
    """Return a watch's detector: the checkpoint, unless all is to be replayed, and the episodes after it."""
    lives = load_checkpoints(connection, [watch], use=not replay)
    catch_up(connection, lives, [watch], yield_per=1000)
    return lives[watch["id"]]


def load_checkpoints(
    connection: Connection, found: Sequence[RowMapping], *, use: bool = True
) -> dict[int, LiveDetector]:
    """Return the detectors of watches where their checkpoints stand, or at the beginning."""
    if not found:
        return {}
    query = select(checkpoints.c.watch_id, checkpoints.c.state)
    query = query.where(checkpoints.c.watch_id.in_([watch["id"] for watch in found]))
    states = {row.watch_id: row.state for row in connection.execute(query)} if use else {}
    promised = {key: load_certificate(connection, key) for key in {each["certificate_id"] for each in found}}
    lives = {}
    for watch in found:
        certificate = promised[watch["certificate_id"]]
        live = None
        with suppress(SchemaMismatch):  # written by another version of the detector: the episodes tell all
            if watch["id"] in states:
                live = LiveDetector.from_state(states[watch["id"]], watch["detector"], certificate)
        if live is None:
            live = begin(watch, certificate)
        lives[watch["id"]] = live
    return lives


def begin(watch: RowMapping | Mapping[str, Any], certificate: Certificate) -> LiveDetector:
    """Return the detector of a watch before its first episode; of a judge's, with the seed of its coin."""
    names = ["alpha_adverse", "alpha_benign", *(["seed"] if watch["seed"] is not None else [])]
    return LiveDetector(DETECTORS[watch["detector"]](certificate, **{name: watch[name] for name in names}))


def catch_up(
    connection: Connection, lives: Mapping[int, LiveDetector], found: Iterable[RowMapping], **options: Any
) -> None:
    """Count what has been counted of these watches since where their detectors stand, whoever has."""
    asked = {(watch["id"], lives[watch["id"]].number, watch["counted"]) for watch in found}
    if not asked:
        return
    with find_rows(connection, LATER, asked, ("bigint",) * 3, **options) as stored:
        kept: list[Any]
        for key, *kept in stored:
            lives[key].count(*kept)


LATER = (
    "SELECT watch_id, cost, episode, time, received, labels, number FROM ASKED CROSS JOIN episodes "
    "WHERE watch_id = asked.column1 AND number > asked.column2 AND number <= asked.column3 "
    "ORDER BY watch_id, number"
)
"""The episodes of watches after one number of the log, up to another."""


class Replayed(NamedTuple):
    """What a replay of one watch gave."""

    stream: str
    generation: int
    n: int
    fault: str
    """What differs; empty if nothing does."""


UNSEEN = (
    "not compared: meta, tokens, acknowledgments, the audit log, ids of alarms, who set a stream up, "
    "when and why; nor is it noticed if streams are gone or renamed as a whole, or if somebody rewrote "
    "episodes and states so that they fit: keep exports elsewhere"
)
"""What `verify` cannot see."""


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
            faults = (look(connection, watch) for look in (_replay, _check_history, _check_alarm))
            try:
                fault = next(filter(None, faults), "")
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                fault = f"cannot be replayed, {type(error).__name__}"
            yield Replayed(name, watch["generation"], watch["n"], fault)


def _replay(connection: Connection, watch: RowMapping) -> str:
    counted = (episodes.c.watch_id == watch["id"]) & (episodes.c.number <= watch["counted"])
    found = connection.execute(select(func.count(), func.count(episodes.c.labels)).where(counted)).one()
    if tuple(found) != (watch["n"] + watch["labeled"], watch["labeled"]):
        return f"{found[0]} episodes and labels are stored, {watch['n']} and {watch['labeled']} are shown"
    again = load_detector(connection, watch, replay=True)
    if again.state() != load_detector(connection, watch).state():
        return "the stored state differs from that of a replay"
    wrong = [name for name, value in again.summary().items() if watch["n"] and watch[name] != value]
    return f"{', '.join(wrong)} differ from those of a replay" if wrong else ""


def _check_history(connection: Connection, watch: RowMapping) -> str:
    """Find out whether a generation was closed when the next began, and the last is open."""
    query = select(watches.c.created).where(watches.c.stream_id == watch["stream_id"])
    after = connection.execute(query.where(watches.c.generation == watch["generation"] + 1)).scalar()
    last = select(streams.c.generation).where(streams.c.id == watch["stream_id"])
    is_last = connection.execute(last).scalar() == watch["generation"]
    is_right = watch["closed"] == after and is_last == (after is None)
    return "" if is_right else "closed is not when the next generation began"


def _check_alarm(connection: Connection, watch: RowMapping) -> str:
    query = select(alarms.c.verdict, alarms.c.number, alarms.c.created >= watch["created"])
    own = (alarms.c.watch_id == watch["id"]) & (alarms.c.verdict != "discovery")
    found = connection.execute(query.where(own)).all()
    expected = [("adverse", watch["first_alarm"], True)] if watch["verdict"] == "adverse" else []
    return "" if found == expected else "its alarm is missing, or of another episode or time"


def load_certificate(connection: Connection, certificate_id: int) -> Certificate:
    """Return a stored certificate."""
    query = select(certificates.c.content).where(certificates.c.id == certificate_id)
    return parse_certificate(connection.execute(query).scalar_one())


@lru_cache(maxsize=256)
def parse_certificate(content: str) -> Certificate:
    """Return the certificate that a text holds, verified."""
    return Certificate.from_dict(json.loads(content))
