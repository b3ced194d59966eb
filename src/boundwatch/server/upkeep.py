"""What a server does by itself from time to time: say that a stream is silent, and forget what is old."""

from __future__ import annotations

import logging
import threading
import time

from sqlalchemy import delete, or_, select, update
from sqlalchemy.engine import Connection

from boundwatch.server import outbox
from boundwatch.server.database import Database, log_failure
from boundwatch.server.settings import Settings
from boundwatch.server.tables import episodes, streams, watches

_LOG = logging.getLogger("boundwatch.server")
_EVERY = 15.0


class Upkeep:
    """The thread that does so."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join(_EVERY)

    def _run(self) -> None:
        pruned = 0.0
        while True:
            try:
                if (before := self.settings.silent_before) is not None:
                    with self.database.write() as connection:
                        tell_silence(connection, before, self.settings)
                if self.settings.retain_days > 0 and time.monotonic() > pruned + 3600:
                    with self.database.write() as connection:
                        prune(connection, time.time() - 86400 * self.settings.retain_days)
                    pruned = time.monotonic()
            except Exception as error:  # the thread must outlive whatever the database does
                log_failure("upkeep failed", error)
            if self._stop.wait(_EVERY):
                return


def tell_silence(connection: Connection, before: float, settings: Settings) -> list[str]:
    """Tell once per silence which streams have had no episode since a moment; this is no verdict."""
    untold = or_(watches.c.silence_told.is_(None), watches.c.silence_told < watches.c.last_seen)
    query = (
        select(watches.c.id, watches.c.last_seen, streams.c.name)
        .select_from(watches.join(streams))
        .where(watches.c.closed.is_(None), watches.c.last_seen < before, untold)
        .order_by(streams.c.name)
        .limit(1000)
        .with_for_update(of=watches)
    )
    told = []
    for row in connection.execute(query).all():
        payload = {
            "text": f"boundwatch: no episode of stream {row.name} for {settings.silent_minutes:g} minutes. "
            "This is a notice about its connection, not a verdict about its costs.",
            "kind": "notice",
            "stream": row.name,
            "last_seen": row.last_seen,
        }
        outbox.put(connection, settings.channels, payload)
        connection.execute(update(watches).where(watches.c.id == row.id).values(silence_told=row.last_seen))
        told.append(row.name)
        _LOG.info("no episode of stream %s for %g minutes", row.name, settings.silent_minutes)
    return told


def prune(connection: Connection, before: float) -> tuple[int, int]:
    """Remove the episodes of generations closed before a moment, and older episodes' meta; count both.

    What an open generation's state needs, its costs and their ids, stays.
    """
    closed = select(watches.c.id).where(watches.c.closed < before, watches.c.pruned == 0, watches.c.n > 0)
    keys = list(connection.execute(closed).scalars())
    for key in keys:
        connection.execute(delete(episodes).where(episodes.c.watch_id == key))
        connection.execute(update(watches).where(watches.c.id == key).values(pruned=1))
    old = (episodes.c.received < before) & episodes.c.meta.is_not(None)
    emptied = connection.execute(update(episodes).where(old).values(meta=None)).rowcount
    return len(keys), emptied
