"""What a server does by itself: deliver alarms, say that a stream is silent, and forget what is old."""

from __future__ import annotations

import logging
import time
from functools import partial

from sqlalchemy import delete, or_, select, update
from sqlalchemy.engine import Connection

from boundwatch.server import outbox
from boundwatch.server.database import Chore, Database
from boundwatch.server.settings import Settings
from boundwatch.server.tables import episodes, streams, watches

_LOG = logging.getLogger("boundwatch.server")


def begin(database: Database, settings: Settings) -> list[Chore]:
    """Begin what the settings ask for: to deliver, per channel, to tell silence, and to forget."""

    def tell() -> None:
        with database.write() as connection:
            tell_silence(connection, settings.silent_before or 0.0, settings)

    def forget() -> None:
        with database.write() as connection:
            prune(connection, time.time() - 86400 * settings.retain_days)

    chores = [Chore(partial(outbox.deliver, database, channel), 0.5) for channel in settings.channels]
    if settings.silent_minutes:
        chores.append(Chore(tell, 15.0))
    if settings.retain_days:
        chores.append(Chore(forget, 3600.0))
    return chores


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
