"""Counts episodes: each exactly once, in order per stream, on the disk before it is acknowledged.

One thread per process takes whatever has been reported since the last commit and commits it at once, so
all who wait share the price of a durable write. A request is taken whole or not at all; those that share
a commit do not share their errors.

Any process may take any report. It stores all, and counts those of the streams that are its own (see
`roster`); the others it hands to their owners, who count them soon, in the order in which they were stored.
A stream whose detector fails is stored likewise and tried again every few seconds; the rest is counted.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from sqlalchemy import RowMapping
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

from boundwatch.server.bindings import Binding
from boundwatch.server.commit import MOST_PER_COMMIT, Again, Commit, Request, waiting_watches
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
_LOOK_EVERY, _DRAIN_EVERY = 0.2, 0.1  # seconds at which what others have stored is counted: idle, and busy
_LEAVE_ALONE = 5.0  # seconds for which that is left where it is after a failure


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
        self.may_wait, self._after, self._next = True, 0.0, 0.0
        """Whether others may have stored episodes that this process is to count; when to look for them."""
        self._faulty: dict[int, float] = {}
        """The watches of which the detector failed, and until when they are left alone."""
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
            self.may_wait |= self._try(self.roster.look)
            if group or self._is_waited_for():
                self._settle(group)
        self._try(self.roster.leave)
        self.may_wait = True
        while self._is_waited_for():
            self._settle([])

    def _gather(self) -> tuple[list[Request], bool]:
        """Return what has been reported, after a pause if nothing was, and whether more may come."""
        group: list[Request] = []
        size = 0
        with suppress(queue.Empty):
            while size < MOST_PER_COMMIT:
                request = self._requests.get_nowait() if group else self._requests.get(timeout=_LOOK_EVERY)
                if request is None:
                    return group, False
                group.append(request)
                size += len(request.reports)
        return group, True

    def _try(self, ask: Callable[[], bool]) -> bool:
        try:
            return ask()
        except Exception as error:  # the thread must outlive whatever the database does
            log_failure("cannot see what other processes do", error)
            return False

    def _is_waited_for(self) -> bool:
        """Return whether others have stored episodes that this process is to count."""

        def ask() -> bool:
            with self.database.read() as connection:
                found = bool(waiting_watches(connection, self.roster, self._left_alone()))
            self.may_wait = found or bool(self._faulty) or not self.roster.is_alone
            return found

        return self.may_wait and time.monotonic() >= self._after and self._try(ask)

    def _settle(self, group: list[Request]) -> None:
        for request, answer in zip(group, self._commit(group), strict=True):
            if isinstance(answer, Refused):
                request.future.set_exception(answer)
            else:
                request.future.set_result(answer)

    def _commit(self, group: list[Request]) -> list[dict[str, Any] | Refused]:
        new: Sequence[str] = ()
        now = time.monotonic()
        drains = self.may_wait and now >= (max(self._after, self._next) if group else self._after)
        if drains:
            self._next = now + _DRAIN_EVERY
        for attempt in range(1, _ATTEMPTS + 1):
            count = Commit(self, group, drains=drains, alone=self._left_alone())
            try:
                with self.database.write() as connection:
                    answers = count.run(connection, new)
            except Again as found:
                new = found.names
            except Exception as error:  # as above
                self.forget(count.new)
                self.may_wait |= isinstance(error, IntegrityError)  # another process has just come
                if attempt == _ATTEMPTS or not _is_transient(error):
                    log_failure(f"a commit of {len(group)} requests failed", error)
                    if not drains:
                        break
                    # What others have stored must not keep what comes here from being counted.
                    drains, self._after = False, time.monotonic() + _LEAVE_ALONE
            else:
                self._remember(count)
                return answers
        problem = "the database did not take it; nothing was counted"
        return [Refused(503, problem, remedy="send it again")] * len(group)

    def _remember(self, count: Commit) -> None:
        if len(self.ids) > _CACHED_NAMES:
            self.ids.clear()
        self.ids.update(count.ids)
        self._faulty = {key: until for key, until in self._faulty.items() if key not in count.live}
        if new := [
            key for key in count.faulty if key not in self._faulty
        ]:  # said once, until it counts again
            names = ", ".join(count.watches[key]["name"] for key in new[:10])
            log_failure(f"cannot count what is stored of {names}", count.faulty[new[0]])
        self._faulty |= dict.fromkeys(count.faulty, time.monotonic() + _LEAVE_ALONE)
        self.may_wait |= bool(count.faulty)

    def _left_alone(self) -> set[int]:
        return {key for key, until in self._faulty.items() if time.monotonic() < until}

    def forget(self, watch_ids: Iterable[int]) -> None:
        """Forget detectors that have counted what is not stored, or only half of it."""
        for watch_id in watch_ids:
            self._detectors.pop(watch_id, None)

    def live(self, connection: Connection, found: Sequence[RowMapping]) -> dict[int, LiveDetector]:
        """Return the detectors of watches whose streams are locked.

        What this process has in memory is brought up to what others have counted since, so that reports of
        one stream may come to any of them.
        """
        missing = [watch for watch in found if watch["id"] not in self._detectors]
        self._detectors.update(load_checkpoints(connection, missing))
        lives = {watch["id"]: self._detectors[watch["id"]] for watch in found}
        behind = [watch for watch in found if lives[watch["id"]].detector.n < watch["n"]]
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
