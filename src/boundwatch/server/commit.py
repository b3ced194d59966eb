"""The two steps of a process: it stores in the log what was reported to it, and counts what is its own there.

The log has one order, that in which others see what was stored. What is counted follows from the log alone,
so counting needs no lock: whoever counts the same comes to the same.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import RowMapping, func, insert, select, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from boundwatch.detectors import Verdict
from boundwatch.detectors.judged_test import JudgedFinding
from boundwatch.server import outbox
from boundwatch.server.access import EVERYBODY
from boundwatch.server.bindings import BINDING_LOCK, Binding, bind, early_places
from boundwatch.server.database import append_rows, find_rows, lock, write_rows
from boundwatch.server.live_detectors import LATER, SUMMARY, LiveDetector, evidence
from boundwatch.server.models import Refused, Report
from boundwatch.server.roster import Roster
from boundwatch.server.tables import checkpoints, episodes, log, streams, watches

if TYPE_CHECKING:
    from boundwatch.server.counting import Ledger

MOST_PER_COMMIT = 4000
MOST_COUNTED = 10_000
CHECKPOINT_EVERY = 128
LEAVE_ALONE = 5.0  # seconds after a detector has failed
_COLUMNS = (
    "watches.id, stream_id, watches.generation, certificate_id, detector, seed, watches.created, n, verdict, "
    "alpha_adverse, alpha_benign, threshold_adverse, certificates.binary, streams.name, counted"
)
_WATCHES = (
    f"SELECT {_COLUMNS} FROM ASKED CROSS JOIN watches "  # noqa: S608 - words of ours
    "JOIN certificates ON certificates.id = certificate_id JOIN streams ON streams.id = stream_id "
    "WHERE watches.id = asked.column1"
)
_CURRENT = _WATCHES.replace("watches.id = asked.column1", "stream_id = asked.column1 AND closed IS NULL")
# SQLite uses the index with this order of tables; for (stream_id, episode) IN … it reads all episodes.
_FIND_EPISODES = (
    "SELECT stream_id, episode, cost FROM ASKED CROSS JOIN episodes "
    "WHERE episodes.stream_id = asked.column1 AND episodes.episode = asked.column2"
)


class Again(Exception):
    """Look again, after binding streams of which the first episode has come."""


class Request(NamedTuple):
    """Reports that are taken whole or not at all, who sent them, and what will be the answer."""

    reports: Sequence[Report]
    actor: str
    future: Future[dict[str, Any]]


class Storing:
    """Stores what was reported: looks everything up, judges each request, appends what is new to the log."""

    def __init__(self, ledger: Ledger, group: list[Request]) -> None:
        self.ledger, self.group = ledger, group
        self.now = time.time()
        self.missing: list[str] = []
        """The streams to bind."""
        self.too_many: set[str] = set()
        self.current: dict[int, RowMapping] = {}
        self.judged: list[Refused | dict[str, Any]] = []
        self.ids: dict[str, int] = {}

    def run(self, connection: Connection) -> None:
        """Store; raise `Again` if streams have to be bound first."""
        self.rows: list[tuple[Any, ...]] = []
        names = sorted({report.stream for request in self.group for report in request.reports})
        self.ids = self._find_streams(connection, names)
        missing = [name for name in names if name not in self.ids and name not in self.too_many]
        if missing and self.ledger.default is not None:
            self.missing = missing
            raise Again
        rows = _find_watches(connection, self.ids.values(), _CURRENT)
        self.current = {row["stream_id"]: row for row in rows}
        self.known = self._find_episodes(connection)
        self.judged = [self._judge(request) for request in self.group]
        if self.rows:
            append_rows(connection, episodes, log, self.rows)

    def _find_streams(self, connection: Connection, names: list[str]) -> dict[str, int]:
        found = {name: known for name in names if (known := self.ledger.ids.get(name)) is not None}
        if left := [name for name in names if name not in found]:
            query = select(streams.c.name, streams.c.id).where(streams.c.name.in_(left))
            found |= {row.name: row.id for row in connection.execute(query)}
        return found

    def bind(self, connection: Connection, default: Binding) -> None:
        """Bind the streams that are missing."""
        names = self.missing
        lock(connection, BINDING_LOCK)
        # Another server may have bound some of them since they were missed.
        bound = set(connection.execute(select(streams.c.name).where(streams.c.name.in_(names))).scalars())
        by = {each.stream: request.actor for request in reversed(self.group) for each in request.reports}
        begun = {EVERYBODY.name: 0}
        early = early_places(connection)
        for name in names:
            actor = by[name]
            if actor not in begun:
                own = select(func.count()).where(watches.c.created_by == actor, watches.c.generation == 1)
                begun[actor] = connection.execute(own).scalar_one()
            is_free = actor == EVERYBODY.name  # without tokens there is no limit
            if name not in bound and (is_free or begun[actor] < self.ledger.most_begun):
                is_early = is_free or begun[actor] < early
                begun[actor] += 1
                bind(connection, name, default, by=actor, reason="first episode", is_early=is_early)
            elif name not in bound:
                self.too_many.add(name)

    def _find_episodes(self, connection: Connection) -> dict[tuple[int, str], float]:
        keys = {
            (self.ids[report.stream], report.episode)
            for request in self.group
            for report in request.reports
            if report.stream in self.ids
        }
        if not keys:
            return {}
        found: Iterable[Any] = find_rows(connection, _FIND_EPISODES, keys, ("bigint", "text"))
        return {(row[0], row[1]): row[2] for row in found}

    def _judge(self, request: Request) -> Refused | dict[str, Any]:
        fresh: dict[tuple[int, str], Report] = {}
        for index, report in enumerate(request.reports):
            where = f"episodes[{index}]." if len(request.reports) > 1 else ""
            if (stream_id := self.ids.get(report.stream)) is None:
                return self._refuse_stream(report.stream, where)
            key = stream_id, report.episode
            seen = fresh[key].cost if key in fresh else self.known.get(key)
            if seen is None:
                if refused := self._refuse(report, self.current[stream_id], where):
                    return refused
                fresh[key] = report
            elif seen != report.cost:
                problem = f"of stream {report.stream!r} was counted with cost {seen:g}, not {report.cost:g}"
                remedy = "nothing was changed; give a new episode its own id"
                return Refused(409, problem, name=f"{where}episode", value=report.episode, remedy=remedy)
        for key, report in fresh.items():
            self.known[key] = report.cost
            watch_id = self.current[key[0]]["id"]
            labels = report.labels and report.labels[1]
            self.rows.append((*key, watch_id, report.cost, report.time, self.now, report.meta, labels))
        streams = {report.stream for report in request.reports}
        new = Counter(report.stream for report in fresh.values())
        counts = {"counted": len(fresh), "repeated": len(request.reports) - len(fresh)}
        return {**counts, "streams": {name: new[name] for name in streams}}

    def _refuse_stream(self, name: str, where: str) -> Refused:
        if name in self.too_many:
            problem = f"is new, and this token has begun {self.ledger.most_begun} streams"
            status, remedy = 403, "bind it on the page, or raise streams_per_token"
        else:
            status, problem = 404, "is not watched"
            remedy = "bind it to a certificate first, or start the server with --certificate for new streams"
        return Refused(status, problem, name=f"{where}stream", value=name, remedy=remedy)

    def _refuse(self, report: Report, watch: RowMapping, where: str) -> Refused | None:
        """Return why a watch does not count a new episode; None if it does."""
        if report.labels and report.labels[0] != watch["id"]:
            return Refused(409, "began a new generation meanwhile", name="stream", value=report.stream)
        if watch["binary"] and report.cost not in (0.0, 1.0):
            problem = f"is not 0 or 1, as the certificate of stream {report.stream!r} promises"
            remedy = "send success, or a cost of 0 or 1"
            return Refused(422, problem, name=f"{where}cost", value=report.cost, remedy=remedy)
        # What a robot did before its repair and reports after it says nothing about the repaired robot.
        if watch["generation"] > 1 and report.time is not None and report.time < watch["created"]:
            problem = (
                f"of stream {report.stream!r} ended at {_utc(report.time)}, before generation "
                f"{watch['generation']} began at {_utc(watch['created'])}, so it was not counted"
            )
            remedy = "if it ran later, set the robot's clock and report it again"
            return Refused(409, problem, name=f"{where}episode", value=report.episode, remedy=remedy)
        return None


class Counting:
    """Counts what the log holds of this process's streams, since where it was read last."""

    def __init__(self, ledger: Ledger, storing: Storing) -> None:
        self.ledger, self.storing = ledger, storing
        self.known = {row["id"]: row for row in storing.current.values()}
        self.new: dict[int, list[Any]] = {}
        self.is_repeated = False

    def run(self, connection: Connection) -> None:
        """Count, so that what was stored is on the disk when this is."""
        if self.is_repeated:  # another process may have counted them
            self.ledger.forget(self.new)
            self.known = {row["id"]: row for row in _find_watches(connection, self.known)}
        self.is_repeated = True
        self.new = defaultdict(list)
        self.faulty: dict[int, Exception] = {}
        self.live: dict[int, LiveDetector] = {}
        self._read(connection)
        saved, alarms = self._count(list(self.new), connection) if self.new else ([], [])
        if not self._write(connection, saved, alarms) and self.end:  # only what writes waits for the disk
            self.ledger.roster.beat(connection)

    def _read(self, connection: Connection) -> None:
        """Read the log up to its end, and from where each of them stands that are behind it."""
        self.end = end_of_log(connection)
        self.late, since = dict(self.ledger.late), self.ledger.seen
        if since is None:  # other streams are this process's
            self.late, since = dict.fromkeys(_find_late(connection, self.ledger.roster), 0.0), self.end
        query = _LOG.format(self.ledger.roster.condition)
        limits = {"since": since, "end": self.end, "most": MOST_COUNTED}
        found = connection.execute(text(query), limits).all() if since < self.end else []
        self.has_more = len(found) == MOST_COUNTED
        if self.has_more:
            self.end = found[-1].number
        found = [row for row in found if row.watch_id not in self.late]
        now = time.monotonic()
        due = [key for key, when in self.late.items() if when <= now]
        self.has_more |= len(due) > MOST_PER_COMMIT
        del due[MOST_PER_COMMIT:]
        keys = {*due, *(row.watch_id for row in found)}
        self.watches = {key: self.known[key] for key in keys & self.known.keys()}
        self.watches |= {row["id"]: row for row in _find_watches(connection, keys - self.known.keys())}
        if due:
            found += self._read_late(connection, due)
        for key, *kept in found:
            self.new[key].append(kept)

    def _read_late(self, connection: Connection, due: list[int]) -> list[Any]:
        asked = [(key, self.watches[key]["counted"], self.end) for key in due]
        query = f"{LATER} LIMIT {MOST_COUNTED}"
        found = list(find_rows(connection, query, asked, ("bigint",) * 3))
        is_whole = len(found) < MOST_COUNTED
        self.has_more |= not is_whole
        for key in due:
            if is_whole or key < found[-1][0]:
                del self.late[key]
        return found

    def _write(self, connection: Connection, saved: list[dict[str, Any]], alarms: list[Any]) -> int:
        changed = 0
        if self.live:
            standing = [(*live.summary().values(), key) for key, live in sorted(self.live.items())]
            changed = write_rows(connection, watches, standing, " ".join(SUMMARY), "id", grows="counted")
        if saved:
            replaced = checkpoints.c.watch_id.in_([each["watch_id"] for each in saved])
            connection.execute(checkpoints.delete().where(replaced))
            connection.execute(insert(checkpoints), saved)
        for watch, said, fields in alarms:
            outbox.announce(connection, self.ledger.channels, watch, said, **fields)
        return changed

    def _count(self, keys: list[int], connection: Connection) -> tuple[list[dict[str, Any]], list[Any]]:
        """Count what is new of watches, but leave those whose detector fails; return what is to be written.

        These are checkpoints, and alarms.
        """
        try:
            lives = self.ledger.live(connection, [self.watches[key] for key in keys])
            alarms = [alarm for key in keys for alarm in self._count_one(self.watches[key], lives[key])]
        except SQLAlchemyError:
            raise
        except Exception as error:  # one detector must not silence the others
            self.ledger.forget(keys)
            if len(keys) == 1:
                self.faulty[keys[0]] = error
                self.late[keys[0]] = time.monotonic() + LEAVE_ALONE
                return [], []
        else:
            self.live |= lives
            return self._save(lives), alarms
        middle = len(keys) // 2
        first, second = (self._count(half, connection) for half in (keys[:middle], keys[middle:]))
        return first[0] + second[0], first[1] + second[1]

    def _save(self, lives: dict[int, LiveDetector]) -> list[dict[str, Any]]:
        saved = []
        for key, live in lives.items():
            if live.detector.n - live.checkpointed >= CHECKPOINT_EVERY:
                live.checkpointed = live.detector.n
                saved.append({"watch_id": key, "state": live.state()})
        return saved

    def _count_one(self, watch: RowMapping, live: LiveDetector) -> Iterable[Any]:
        for each in self.new[watch["id"]]:
            if each[-1] <= live.number:  # by another process, to which it belonged a moment ago
                continue
            before = live.detector.verdict
            live.count(*each)
            if live.detector.verdict is not before and live.detector.verdict is Verdict.ADVERSE:
                yield self._alarm(watch, live)

    def _alarm(self, watch: RowMapping, live: LiveDetector) -> Any:
        finding = live.detector.finding()
        n, total = finding.n, live.total
        what = "its costs have risen above what was certified"
        seen = f"mean cost {total / n:.3g} over {n} episodes"
        if watch["binary"]:
            what = "it fails more often than " + ("certified" if watch["threshold_adverse"] else "in the lab")
            seen = f"{total:.0f} of {n} episodes failed"
        if isinstance(finding, JudgedFinding):
            seen = (
                f"about {finding.mean_cost:.3g} of {n} episodes by {finding.labels} labels; the judge says "
            )
            seen, total = seen + f"{finding.judge_says:.3g}", n * finding.mean_cost
        fields = {"verdict": "adverse", "episode_number": live.detector.first_alarm, "mean_cost": total / n}
        # What is stored may be as of an earlier episode; the message says what was known at this one.
        fields |= {"evidence": evidence(finding)[0], "threshold": watch["threshold_adverse"]}
        return watch, f"is ADVERSE: {what} ({seen}, generation {watch['generation']}).", fields

    @property
    def answers(self) -> list[dict[str, Any] | Refused]:
        """What is said to each request: what is new, where its streams stand, how many of its own wait."""
        standing = {}
        for key, row in self.known.items():
            n, verdict = row["n"], row["verdict"]
            if live := self.live.get(key):
                n, verdict = live.n, live.detector.verdict.value
            is_whole = (
                key not in self.late and not self.has_more and self.ledger.roster.owns(row["stream_id"])
            )
            shown = {"generation": row["generation"], "n": n, "verdict": verdict}
            standing[row["name"]] = shown, 0 if is_whole else 1
        answers: list[dict[str, Any] | Refused] = []
        for judged in self.storing.judged:
            if isinstance(judged, Refused):
                answers.append(judged)
                continue
            found = {name: (*standing[name], new) for name, new in judged["streams"].items()}
            said = {name: {**shown, "waiting": waits * new} for name, (shown, waits, new) in found.items()}
            answers.append({**judged, "streams": said})
        return answers


_LOG = (
    "SELECT watch_id, cost, episode, time, received, labels, number FROM episodes WHERE number > :since AND "
    "number <= :end AND {} ORDER BY number LIMIT :most"
)
_LATE = (
    "SELECT id FROM watches WHERE {} AND "
    "counted < (SELECT max(number) FROM episodes WHERE watch_id = watches.id)"
)


def end_of_log(connection: Connection) -> int:
    """Return the number of the last episode that anybody stored."""
    end: int = connection.execute(select(log.c.last)).scalar_one()
    return end


def _find_late(connection: Connection, roster: Roster) -> Iterable[int]:
    """Return the watches that this process counts and of which episodes wait."""
    return connection.execute(text(_LATE.format(roster.condition))).scalars()


def _find_watches(
    connection: Connection, keys: Collection[int], query: str = _WATCHES
) -> Iterable[RowMapping]:
    if not keys:
        return ()
    return find_rows(connection, query, [(key,) for key in keys], ("bigint",)).mappings()


def _utc(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
