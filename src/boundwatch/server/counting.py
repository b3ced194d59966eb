"""Counts episodes: each exactly once, in order per stream, on the disk before it is acknowledged.

One thread per process takes whatever has been reported since the last commit and commits it at once, so
all who wait share the price of a durable write. A request is taken whole or not at all; those that share
a commit do not share their errors.

Any process may take any report. All append to one log; every stream is counted by one process (see `roster`),
which reads in the log what there is, whoever stored it. What is appended is seen by others at once, and is on
the disk when the count is, before anybody is answered: one write that waits for the disk, not two.
A stream whose detector fails is tried again every few seconds; the rest is counted.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from boundwatch.server.bindings import Binding
from boundwatch.server.commit import (
    LEAVE_ALONE,
    MOST_PER_COMMIT,
    Again,
    Counting,
    Request,
    Storing,
    end_of_log,
)
from boundwatch.server.database import Database, log_failure
from boundwatch.server.live_detectors import LiveDetector, catch_up, load_checkpoints
from boundwatch.server.models import Refused, Report
from boundwatch.server.outbox import Channel
from boundwatch.server.roster import Roster

MOST_WAITING = 2000
CACHED_DETECTORS = 60_000  # some 6 kB each
_CACHED_NAMES = 500_000
_ATTEMPTS = 5
_LONGEST_END = 30.0
_LOOK_EVERY = 0.2  # seconds at which what others have stored is counted, if nothing is reported


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
        channels: Iterable[Channel] = (),
        most_begun: int = 1000,
    ) -> None:
        self.database, self.default = database, default
        self.channels, self.most_begun = tuple(channels), most_begun
        self.roster, self.ids = Roster(database), dict[str, int]()
        self._detectors: OrderedDict[int, LiveDetector] = OrderedDict()
        self._requests: queue.Queue[Request | None] = queue.Queue(MOST_WAITING)
        self.seen: int | None = None
        """Up to which number of the log this process has counted; None if others may have become its own."""
        self.late: dict[int, float] = {}
        """Its watches that are behind that, most often as their detector failed, and when to try again."""
        self._after, self._has_more = 0.0, False
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._thread.start()

    def submit(self, reports: Sequence[Report], actor: str = "local") -> Future[dict[str, Any]]:
        """Return what will be the acknowledgment, or raise `Refused` when too many wait already."""
        future: Future[dict[str, Any]] = Future()
        try:
            self._requests.put_nowait(Request(reports, actor, future))
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
        while is_open:
            group, is_open = self._gather()
            self._look(self.roster.look)
            if group or self._is_waited_for():
                self._settle(group)
        self._look(self.roster.leave)
        while self._is_waited_for():
            self._settle([])

    def _look(self, ask: Callable[[], bool]) -> None:
        if self._try("see what other processes do", ask):
            self.seen = None

    def _gather(self) -> tuple[list[Request], bool]:
        """Return what has been reported, after a pause if nothing was, and whether more may come."""
        group: list[Request] = []
        size = 0
        with suppress(queue.Empty):
            while size < MOST_PER_COMMIT:
                is_due = group or self._has_more
                request = self._requests.get(block=not is_due, timeout=_LOOK_EVERY)
                if request is None:
                    return group, False
                group.append(request)
                size += len(request.reports)
        return group, True

    def _is_waited_for(self) -> bool:
        """Return whether episodes wait that this process is to count."""

        def ask() -> bool:
            with self.database.read() as connection:
                return end_of_log(connection) > (self.seen or 0)

        now = time.monotonic()
        if now < self._after or not self.roster.owned:
            return False
        if self.seen is None or self._has_more or any(when <= now for when in self.late.values()):
            return True
        return not self.roster.is_alone and self._try("see what others have stored", ask)

    def _settle(self, group: list[Request]) -> None:
        storing, problem = Storing(self, group), "the database did not take it; nothing is counted twice"
        answers: Sequence[Any] = [Refused(503, problem, remedy="send it again")] * len(group)
        if not group or self._try(f"store {len(group)} requests", partial(self._store, storing)):
            counting = Counting(self, storing)
            if self._try("count", partial(self._count, counting)):
                self._remember(counting)
                answers = counting.answers
            else:
                self.forget(counting.new)
                self._has_more, self._after = False, time.monotonic() + LEAVE_ALONE
        for request, answer in zip(group, answers, strict=True):
            if isinstance(answer, Refused):
                request.future.set_exception(answer)
            else:
                request.future.set_result(answer)

    def _store(self, storing: Storing) -> bool:
        if storing.missing and self.default is not None:
            with self.database.write() as connection:
                storing.bind(connection, self.default)
        with self.database.append() as connection:
            storing.run(connection)
        return True

    def _count(self, counting: Counting) -> bool:
        with self.database.write() as connection:
            counting.run(connection)
        return True

    def _remember(self, counting: Counting) -> None:
        if len(self.ids) > _CACHED_NAMES:
            self.ids.clear()
        self.ids.update(counting.storing.ids)
        if new := counting.faulty.keys() - self.late.keys():  # said once, until it counts again
            names = ", ".join(counting.watches[key]["name"] for key in sorted(new)[:10])
            log_failure(f"cannot count what is stored of {names}", counting.faulty[min(new)])
        self.seen, self.late, self._has_more = counting.end, counting.late, counting.has_more

    def _try(self, what: str, ask: Callable[[], bool]) -> bool:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return ask()
            except Again:
                continue
            except Exception as error:  # the thread must outlive whatever the database does
                if attempt == _ATTEMPTS or not _is_transient(error):
                    log_failure(f"cannot {what}", error)
                    break
        return False

    def forget(self, watch_ids: Iterable[int]) -> None:
        """Forget detectors that have counted what is not stored, or only half of it."""
        for watch_id in watch_ids:
            self._detectors.pop(watch_id, None)

    def live(self, connection: Connection, found: Sequence[RowMapping]) -> dict[int, LiveDetector]:
        """Return the detectors of watches, brought up to what others have counted since."""
        missing = [watch for watch in found if watch["id"] not in self._detectors]
        self._detectors.update(load_checkpoints(connection, missing))
        lives = {watch["id"]: self._detectors[watch["id"]] for watch in found}
        behind = [watch for watch in found if lives[watch["id"]].number < watch["counted"]]
        catch_up(connection, lives, behind)
        for key in lives:
            self._detectors.move_to_end(key)
        while len(self._detectors) > max(CACHED_DETECTORS, len(lives)):
            self._detectors.popitem(last=False)
        return lives


def _is_transient(error: Exception) -> bool:
    """Return whether another server was quicker, or the connection was lost: then look again."""
    if isinstance(error, IntegrityError):
        return True
    state = getattr(getattr(error, "orig", None), "sqlstate", None)
    return isinstance(error, DBAPIError) and (error.connection_invalidated or state in ("40001", "40P01"))
