"""Counts episodes: each exactly once, in order per stream, on the disk before it is acknowledged.

One thread per process takes whatever has been reported since the last commit and commits it at once, so
all who wait share the price of a durable write. A request is taken whole or not at all; those that share
a commit do not share their errors.
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from sqlalchemy import RowMapping, func, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from boundwatch.detectors import Verdict
from boundwatch.server import outbox
from boundwatch.server.access import EVERYBODY
from boundwatch.server.bindings import BINDING_LOCK, Binding, bind
from boundwatch.server.database import Database, find_rows, lock, log_failure
from boundwatch.server.live_detectors import SUMMARY, LiveDetector, catch_up, evidence, load_checkpoints
from boundwatch.server.models import Refused, Report
from boundwatch.server.tables import alarms, certificates, checkpoints, streams, watches

MOST_PER_COMMIT = 4000
MOST_WAITING = 2000
CHECKPOINT_EVERY = 128
CACHED_DETECTORS = 20_000  # some 10 kB each
_ATTEMPTS = 5
_LONGEST_END = 30.0


class _Unbound(Exception):
    """Streams of which the first episode has come."""

    def __init__(self, names: list[str]) -> None:
        self.names = names


class _Request(NamedTuple):
    reports: Sequence[Report]
    actor: str
    future: Future[dict[str, Any]]


class Ledger:
    """Takes reports from any number of threads and counts them in one.

    A stream is bound to `default` when its first episode comes; without one, unknown streams are refused.
    Alarms go to the `channels`. One token may begin `most_begun` streams by reporting for them.
    """

    def __init__(
        self,
        database: Database,
        *,
        default: Binding | None = None,
        channels: Iterable[outbox.Channel] = (),
        most_begun: int = 1000,
    ) -> None:
        self.database, self.default = database, default
        self.channels, self.most_begun = tuple(channels), most_begun
        self._detectors: OrderedDict[int, LiveDetector] = OrderedDict()
        self._requests: queue.Queue[_Request | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def submit(self, reports: Sequence[Report], actor: str = "local") -> Future[dict[str, Any]]:
        """Return what will be the acknowledgment, or raise `Refused` when too many wait already."""
        future: Future[dict[str, Any]] = Future()
        try:
            self._requests.put_nowait(_Request(reports, actor, future))
        except queue.Full:
            remedy = "send this one again in a second"
            raise Refused(503, "too many reports are waiting", remedy=remedy) from None
        return future

    def close(self) -> None:
        """Count what waits, then stop; do not wait for a database that is away: nobody was told it counts."""
        self._requests.put(None)
        self._thread.join(_LONGEST_END)

    def _run(self) -> None:
        is_open = True
        while is_open and (first := self._requests.get()) is not None:
            group, size = [first], len(first.reports)
            while size < MOST_PER_COMMIT and not self._requests.empty():  # nobody else takes from it
                if (request := self._requests.get()) is None:
                    is_open = False
                    break
                group.append(request)
                size += len(request.reports)
            for request, answer in zip(group, self._commit(group), strict=True):
                if isinstance(answer, Refused):
                    request.future.set_exception(answer)
                else:
                    request.future.set_result(answer)

    def _commit(self, group: list[_Request]) -> list[dict[str, Any] | Refused]:
        new: list[str] = []
        for attempt in range(1, _ATTEMPTS + 1):
            count = _Count(self, group)
            try:
                with self.database.write() as connection:
                    return count.run(connection, new)
            except _Unbound as found:
                new = found.names
            except Exception as error:  # the thread must outlive whatever the database does
                for watch_id in count.touched:
                    self._detectors.pop(watch_id, None)
                if attempt == _ATTEMPTS or not _is_transient(error):
                    log_failure(f"a commit of {len(group)} requests failed", error)
                    break
        problem = "the database did not take it; nothing was counted"
        return [Refused(503, problem, remedy="send it again")] * len(group)

    def live(self, connection: Connection, found: Sequence[RowMapping]) -> dict[int, LiveDetector]:
        """Return the detectors of watches whose streams are locked.

        What this process has in memory is brought up to what others have counted since, so that reports of
        one stream may come to any of them.
        """
        missing = [watch for watch in found if watch["id"] not in self._detectors]
        self._detectors.update(load_checkpoints(connection, missing))
        lives = {watch["id"]: self._detectors[watch["id"]] for watch in found}
        catch_up(
            connection,
            {watch["id"]: each for watch in found if (each := lives[watch["id"]]).detector.n < watch["n"]},
        )
        for key in lives:
            self._detectors.move_to_end(key)
        while len(self._detectors) > max(CACHED_DETECTORS, len(lives)):
            self._detectors.popitem(last=False)
        return lives


class _Count:
    """One commit: looks everything up, judges each request, counts what is new."""

    def __init__(self, ledger: Ledger, group: list[_Request]) -> None:
        self.ledger, self.group, self.now = ledger, group, time.time()
        self.touched: list[int] = []
        self.too_many: set[str] = set()
        self.new: dict[int, list[Report]] = defaultdict(list)
        self.live: dict[int, LiveDetector] = {}

    def run(self, connection: Connection, new: list[str]) -> list[dict[str, Any] | Refused]:
        """Count, after binding new streams; raise `_Unbound` if others have to be bound first."""
        self._bind(connection, new)
        names = sorted({report.stream for request in self.group for report in request.reports})
        self.streams = self._lock(connection, names)
        missing = [name for name in names if name not in self.streams and name not in self.too_many]
        if missing and self.ledger.default is not None:
            raise _Unbound(missing)
        current = _WATCHES.where(watches.c.stream_id.in_([row["id"] for row in self.streams.values()]))
        self.watches = {row["stream_id"]: row for row in connection.execute(current).mappings()}
        self.known = self._find_episodes(connection)
        judged = [self._judge(request) for request in self.group]
        self._write(connection)
        return [answer if isinstance(answer, Refused) else self._answer(answer) for answer in judged]

    def _bind(self, connection: Connection, names: list[str]) -> None:
        if not names or self.ledger.default is None:
            return
        lock(connection, BINDING_LOCK)
        # Another server may have bound some of them since they were missed.
        bound = set(connection.execute(select(streams.c.name).where(streams.c.name.in_(names))).scalars())
        by = {each.stream: request.actor for request in reversed(self.group) for each in request.reports}
        left = {EVERYBODY.name: len(names)}  # without tokens there is no limit
        for name in names:
            actor = by[name]
            if actor not in left:
                begun = select(func.count()).where(watches.c.created_by == actor, watches.c.generation == 1)
                left[actor] = self.ledger.most_begun - connection.execute(begun).scalar_one()
            if name not in bound and left[actor] > 0:
                left[actor] -= 1
                bind(connection, name, self.ledger.default, by=actor, reason="first episode")
            elif name not in bound:
                self.too_many.add(name)

    def _lock(self, connection: Connection, names: list[str]) -> dict[str, RowMapping]:
        # Locks are taken in one order, so two servers cannot wait for each other.
        query = select(streams).where(streams.c.name.in_(names)).order_by(streams.c.id).with_for_update()
        return {row["name"]: row for row in connection.execute(query).mappings()}

    def _find_episodes(self, connection: Connection) -> dict[tuple[int, str], float]:
        keys = {
            (self.streams[report.stream]["id"], report.episode)
            for request in self.group
            for report in request.reports
            if report.stream in self.streams
        }
        if not keys:
            return {}
        found = find_rows(connection, _FIND_EPISODES, keys, ("bigint", "text"))
        return {(stream_id, episode): cost for stream_id, episode, cost in found}

    def _judge(self, request: _Request) -> Refused | dict[str, Any]:
        fresh: dict[tuple[int, str], Report] = {}
        for index, report in enumerate(request.reports):
            where = f"episodes[{index}]." if len(request.reports) > 1 else ""
            if (stream := self.streams.get(report.stream)) is None:
                return self._refuse_stream(report.stream, where)
            key = stream["id"], report.episode
            seen = fresh[key].cost if key in fresh else self.known.get(key)
            if seen is None:
                if refused := self._refuse(report, self.watches[stream["id"]], where):
                    return refused
                fresh[key] = report
            elif seen != report.cost:
                problem = f"of stream {report.stream!r} was counted with cost {seen:g}, not {report.cost:g}"
                remedy = "nothing was changed; give a new episode its own id"
                return Refused(409, problem, name=f"{where}episode", value=report.episode, remedy=remedy)
        for (stream_id, episode), report in fresh.items():
            self.known[stream_id, episode] = report.cost
            self.new[stream_id].append(report)
        names = dict.fromkeys(report.stream for report in request.reports)
        return {"counted": len(fresh), "repeated": len(request.reports) - len(fresh), "streams": names}

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

    def _write(self, connection: Connection) -> None:
        rows: list[tuple[Any, ...]] = []
        saved: list[dict[str, Any]] = []
        self.touched = [self.watches[stream_id]["id"] for stream_id in self.new]
        lives = self.ledger.live(connection, [self.watches[stream_id] for stream_id in self.new])
        for stream_id, reports in self.new.items():
            watch = self.watches[stream_id]
            live = lives[watch["id"]]
            for report in reports:
                before = live.detector.verdict
                live.count(report.cost)
                if live.detector.verdict is not before and live.detector.verdict is Verdict.ADVERSE:
                    self._alarm(connection, report.stream, watch, live)
                key = watch["id"], live.detector.n, stream_id
                rows.append((*key, report.episode, report.cost, report.time, self.now, report.meta))
            self.live[stream_id] = live
            if live.detector.n - live.checkpointed >= CHECKPOINT_EVERY:
                saved.append({"watch_id": watch["id"], "n": live.detector.n, "state": live.state()})
                live.checkpointed = live.detector.n
        if rows:
            self.ledger.database.run_many(connection, _INSERT_EPISODE, rows)
            standing = (
                (*live.summary().values(), self.now, self.watches[key]["id"])
                for key, live in self.live.items()
            )
            self.ledger.database.run_many(connection, _UPDATE_WATCH, list(standing))
        if saved:
            replaced = checkpoints.c.watch_id.in_([each["watch_id"] for each in saved])
            connection.execute(checkpoints.delete().where(replaced))
            connection.execute(insert(checkpoints), saved)

    def _alarm(self, connection: Connection, stream: str, watch: RowMapping, live: LiveDetector) -> None:
        number, verdict = live.detector.first_alarm, live.detector.verdict.value
        alarm = {"id": secrets.token_hex(16), "verdict": verdict, "number": number, "created": self.now}
        connection.execute(insert(alarms).values(watch_id=watch["id"], **alarm))
        n, mean, generation = live.detector.n, live.total / live.detector.n, watch["generation"]
        what = "its costs have risen above what was certified"
        seen = f"mean cost {mean:.3g} over {n} episodes"
        if watch["binary"]:
            what, seen = "it fails more often than certified", f"{live.total:.0f} of {n} episodes failed"
        payload = {
            "text": f"boundwatch: stream {stream} is ADVERSE: {what} ({seen}, generation {generation}).",
            "kind": "alarm",
            "alarm": alarm["id"],
            "stream": stream,
            "generation": generation,
            "verdict": verdict,
            "episode_number": number,
            "mean_cost": mean,
            # What is stored may be as of an earlier episode; the message says what was known at this one.
            "evidence": evidence(live.detector.finding())[0],
            "threshold": None if live.is_exact else watch["threshold_adverse"],
            "time": self.now,
        }
        outbox.put(connection, self.ledger.channels, payload)

    def _answer(self, judged: dict[str, Any]) -> dict[str, Any]:
        standing = {}
        for name in judged["streams"]:
            watch = self.watches[self.streams[name]["id"]]
            n, verdict = watch["n"], watch["verdict"]
            if live := self.live.get(watch["stream_id"]):
                n, verdict = live.detector.n, live.detector.verdict.value
            standing[name] = {"generation": watch["generation"], "n": n, "verdict": verdict}
        return {**judged, "streams": standing}


_WATCHES = select(watches, certificates.c.binary).join(certificates).where(watches.c.closed.is_(None))
# The three statements of every commit, written out: building them anew each time took half of it.
_EPISODE_COLUMNS = "watch_id, number, stream_id, episode, cost, time, received, meta"
_INSERT_EPISODE = f"INSERT INTO episodes ({_EPISODE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
_UPDATE_WATCH = (
    f"UPDATE watches SET {', '.join(f'{name} = ?' for name in SUMMARY)}, last_seen = ? WHERE id = ?"  # noqa: S608
)
# SQLite uses the index with this order of tables; for (stream_id, episode) IN … it reads all episodes.
_FIND_EPISODES = (
    "SELECT stream_id, episode, cost FROM ASKED CROSS JOIN episodes "
    "WHERE episodes.stream_id = asked.column1 AND episodes.episode = asked.column2"
)


def _utc(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def _is_transient(error: Exception) -> bool:
    """Return whether another server was quicker, or the connection was lost: then look again."""
    if isinstance(error, IntegrityError):
        return True
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return isinstance(error, DBAPIError) and (error.connection_invalidated or state in ("40001", "40P01"))
