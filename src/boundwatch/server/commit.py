"""One commit of a process: what was reported to it, and what others have stored of its streams.

An episode's number is its place in its watch, and is given with the watch's row locked, by whichever process
stores it. The first `n` of a watch are counted; those behind wait for the process that counts the stream.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import RowMapping, func, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from boundwatch.detectors import Verdict
from boundwatch.server import outbox
from boundwatch.server.access import EVERYBODY
from boundwatch.server.bindings import BINDING_LOCK, bind
from boundwatch.server.database import find_rows, lock, write_rows
from boundwatch.server.live_detectors import LATER, SUMMARY, LiveDetector, evidence
from boundwatch.server.models import Refused, Report
from boundwatch.server.roster import SHARDS, Roster
from boundwatch.server.tables import checkpoints, episodes, handed, streams, watches

if TYPE_CHECKING:
    from boundwatch.server.counting import Ledger

MOST_PER_COMMIT = 4000
CHECKPOINT_EVERY = 128
_COLUMNS = (
    "watches.id, stream_id, watches.generation, certificate_id, detector, watches.created, n, verdict, "
    "alpha_adverse, alpha_benign, threshold_adverse, certificates.binary, streams.name"
)
_WATCHES = (
    f"SELECT {_COLUMNS} FROM ASKED CROSS JOIN watches "  # noqa: S608 - words of ours
    "JOIN certificates ON certificates.id = certificate_id JOIN streams ON streams.id = stream_id "
    "WHERE watches.id = asked.column1"
)
_CURRENT = _WATCHES.replace("watches.id = asked.column1", "stream_id = asked.column1 AND closed IS NULL")
_HANDED = select(handed.c.watch_id, watches.c.stream_id).select_from(handed.join(watches))
_TAILS = "SELECT asked.column1, (SELECT max(number) FROM episodes WHERE watch_id = asked.column1) FROM ASKED"
# SQLite uses the index with this order of tables; for (stream_id, episode) IN … it reads all episodes.
_FIND_EPISODES = (
    "SELECT stream_id, episode, cost FROM ASKED CROSS JOIN episodes "
    "WHERE episodes.stream_id = asked.column1 AND episodes.episode = asked.column2"
)


class Again(Exception):
    """Look again, after binding streams of which the first episode has come, or if a generation began."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = names


class Request(NamedTuple):
    """Reports that are taken whole or not at all, who sent them, and what will be the answer."""

    reports: Sequence[Report]
    actor: str
    future: Future[dict[str, Any]]


_Counted = tuple[float, str, float | None, float]
"""What a detector counts of an episode: its cost, id, time, and when it was received."""


class Commit:
    """One commit: looks everything up, judges each request, stores what is new, counts what is its own."""

    def __init__(self, ledger: Ledger, group: list[Request], *, drains: bool, alone: set[int]) -> None:
        self.ledger, self.group, self.drains, self.alone = ledger, group, drains, alone
        self.now = time.time()
        self.too_many: set[str] = set()
        self.rows: list[tuple[Any, ...]] = []
        self.new: dict[int, list[_Counted]] = defaultdict(list)
        self.left: set[int] = set()
        """The watches of which what is stored is counted later, mostly by others."""
        self.faulty: dict[int, Exception] = {}
        self.live: dict[int, LiveDetector] = {}

    def run(self, connection: Connection, new: Sequence[str]) -> list[dict[str, Any] | Refused]:
        """Store and count, after binding new streams; raise `Again` if others have to be bound first."""
        self._bind(connection, new)
        names = sorted({report.stream for request in self.group for report in request.reports})
        self.ids = self._find_streams(connection, names)
        missing = [name for name in names if name not in self.ids and name not in self.too_many]
        if missing and self.ledger.default is not None:
            raise Again(missing)
        waiting = waiting_watches(connection, self.ledger.roster, self.alone) if self.drains else {}
        keys = {*self.ids.values(), *waiting.values()}
        self.current = _find_watches(connection, keys)
        if len(self.current) < len(keys):
            raise Again()
        self.watches = {row["id"]: row for row in self.current.values()}
        # One that was stored while a new generation began belongs to the one before.
        if closed := waiting.keys() - self.watches.keys():
            self.watches |= _find_watches(connection, closed, _WATCHES)
        self._find_waiting(connection, waiting)
        self.known = self._find_episodes(connection)
        judged = [self._judge(request) for request in self.group]
        self._write(connection, waiting)
        return [answer if isinstance(answer, Refused) else self._answer(answer) for answer in judged]

    def _find_streams(self, connection: Connection, names: list[str]) -> dict[str, int]:
        found = {name: known for name in names if (known := self.ledger.ids.get(name)) is not None}
        if left := [name for name in names if name not in found]:
            query = select(streams.c.name, streams.c.id).where(streams.c.name.in_(left))
            found |= {row.name: row.id for row in connection.execute(query)}
        return found

    def _bind(self, connection: Connection, names: Sequence[str]) -> None:
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

    def _find_waiting(self, connection: Connection, waiting: Collection[int]) -> None:
        """Find out how many episodes are stored of each watch, and those that this process is to count."""
        roster = self.ledger.roster
        self.tails = {key: row["n"] for key, row in self.watches.items()}
        if self.watches and (waiting or not roster.is_alone or self.ledger.may_wait):
            keys = [(key,) for key in self.watches]
            found: Iterable[Any] = find_rows(connection, _TAILS, keys, ("bigint",))
            self.tails = {row[0]: row[1] or 0 for row in found}
        behind = {key for key, row in self.watches.items() if row["n"] < self.tails[key]}
        asked, room = [], MOST_PER_COMMIT
        for key in behind & set(waiting):
            n = self.watches[key]["n"]
            asked += [(key, n, min(self.tails[key], n + room))] if room > 0 else []
            room -= self.tails[key] - n
        stored: Iterable[Any] = find_rows(connection, LATER, asked, ("bigint",) * 3) if asked else ()
        for key, *kept in stored:
            self.new[key].append(tuple(kept))
        theirs = {key for key, row in self.watches.items() if not roster.owns(row["stream_id"])}
        whole = {key for key, *_ in asked if self.watches[key]["n"] + len(self.new[key]) == self.tails[key]}
        self.left = (theirs | behind | self.alone) - whole

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
            self.tails[watch_id] += 1
            self.rows.append(
                (*key, watch_id, self.tails[watch_id], report.cost, report.time, self.now, report.meta)
            )
            if watch_id not in self.left:
                self.new[watch_id].append((report.cost, report.episode, report.time, self.now))
        streams = {report.stream for report in request.reports}
        return {"counted": len(fresh), "repeated": len(request.reports) - len(fresh), "streams": streams}

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

    def _write(self, connection: Connection, waiting: Collection[int]) -> None:
        saved = self._count(connection, list(self.new)) if self.new else []
        if self.rows:
            write_rows(connection, episodes, self.rows)
        if self.live:
            standing = [(*live.summary().values(), key) for key, live in self.live.items()]
            write_rows(connection, watches, standing, " ".join(SUMMARY), "id")
        if saved:
            replaced = checkpoints.c.watch_id.in_([each["watch_id"] for each in saved])
            connection.execute(checkpoints.delete().where(replaced))
            connection.execute(insert(checkpoints), saved)
        if to_hand := sorted({row[2] for row in self.rows if row[2] in self.left}):
            write_rows(connection, handed, [(key,) for key in to_hand], once=True)
        if done := set(waiting) - self.left:
            connection.execute(handed.delete().where(handed.c.watch_id.in_(done)))

    def _count(self, connection: Connection, keys: list[int]) -> list[dict[str, Any]]:
        """Count what is new of watches, but leave those whose detector fails; return checkpoints to write."""
        try:
            with connection.begin_nested():
                lives = self.ledger.live(connection, [self.watches[key] for key in keys])
                saved = [each for key in keys for each in self._count_one(connection, key, lives[key])]
            self.live |= lives
            return saved
        except SQLAlchemyError:
            raise
        except Exception as error:  # one detector must not silence the others
            self.ledger.forget(keys)
            if len(keys) == 1:
                self.faulty[keys[0]] = error
                self.left.add(keys[0])
                return []
        middle = len(keys) // 2
        return self._count(connection, keys[:middle]) + self._count(connection, keys[middle:])

    def _count_one(self, connection: Connection, key: int, live: LiveDetector) -> list[dict[str, Any]]:
        for each in self.new[key]:
            before = live.detector.verdict
            live.count(*each)
            if live.detector.verdict is not before and live.detector.verdict is Verdict.ADVERSE:
                self._alarm(connection, self.watches[key], live)
        if live.detector.n - live.checkpointed < CHECKPOINT_EVERY:
            return []
        live.checkpointed = live.detector.n
        return [{"watch_id": key, "n": live.detector.n, "state": live.state()}]

    def _alarm(self, connection: Connection, watch: RowMapping, live: LiveDetector) -> None:
        n, total = live.detector.n, live.total
        what = "its costs have risen above what was certified"
        seen = f"mean cost {total / n:.3g} over {n} episodes"
        if watch["binary"]:
            what = "it fails more often than " + ("certified" if watch["threshold_adverse"] else "in the lab")
            seen = f"{total:.0f} of {n} episodes failed"
        fields = {"verdict": "adverse", "episode_number": n, "mean_cost": total / n}
        # What is stored may be as of an earlier episode; the message says what was known at this one.
        fields |= {"evidence": evidence(live.detector.finding())[0], "threshold": watch["threshold_adverse"]}
        text = f"is ADVERSE: {what} ({seen}, generation {watch['generation']})."
        outbox.announce(connection, self.ledger.channels, watch, text, **fields)

    def _answer(self, judged: dict[str, Any]) -> dict[str, Any]:
        standing = {}
        for name in judged["streams"]:
            watch = self.current[self.ids[name]]
            n, verdict = watch["n"], watch["verdict"]
            if live := self.live.get(watch["id"]):
                n, verdict = live.detector.n, live.detector.verdict.value
            shown = {"generation": watch["generation"], "n": n, "verdict": verdict}
            standing[name] = shown | {"waiting": self.tails[watch["id"]] - n}
        return {**judged, "streams": standing}


def waiting_watches(connection: Connection, roster: Roster, alone: set[int]) -> dict[int, int]:
    """Return the watches, and their streams, that this process counts and of which episodes wait."""
    query = _HANDED
    if not roster.is_alone:
        query = query.where((watches.c.stream_id % SHARDS).in_(roster.owned))
    found = connection.execute(query.limit(MOST_PER_COMMIT // 4 + len(alone)))
    return {row.watch_id: row.stream_id for row in found if row.watch_id not in alone}


def _find_watches(
    connection: Connection, keys: Collection[int], query: str = _CURRENT
) -> dict[int, RowMapping]:
    """Return the current watches of streams, locked in one order, so that nobody waits for each other."""
    if connection.dialect.name == "postgresql":
        query += " ORDER BY stream_id FOR UPDATE OF watches"
    found = find_rows(connection, query, [(key,) for key in keys], ("bigint",)).mappings() if keys else ()
    return {row["stream_id" if query.startswith(_CURRENT) else "id"]: row for row in found}


def _utc(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
