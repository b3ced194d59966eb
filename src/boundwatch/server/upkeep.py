"""What a server does by itself: deliver alarms, tell discoveries."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.engine import Connection

from boundwatch.server import outbox, queries
from boundwatch.server.bindings import fleet_size
from boundwatch.server.database import Chore, Database, lock
from boundwatch.server.live_detectors import evidence, load_detector
from boundwatch.server.roster import Roster
from boundwatch.server.settings import Settings
from boundwatch.server.tables import alarms, streams, watches

_LOG = logging.getLogger("boundwatch.server")
_IS_DISCOVERY = alarms.c.verdict == "discovery"
_DISCOVERY_LOCK = 0x64697363


def begin(database: Database, settings: Settings, roster: Roster) -> list[Chore]:
    """Begin what the settings ask for: to deliver, per channel, and to tell."""

    def discover() -> None:
        if not roster.owns(0):  # one process is enough
            return
        with database.read() as connection:  # most often there is nothing to write
            found = find_discoveries(connection, settings.discovery_rate)
        if found:
            with database.write() as connection:
                tell_discoveries(connection, settings.discovery_rate, settings.channels)

    chores = [Chore(partial(outbox.deliver, database, channel), 0.5) for channel in settings.channels]
    if settings.tell == "discoveries":
        chores.append(Chore(discover, 1.0))
    return chores


def find_discoveries(connection: Connection, rate: float) -> list[dict[str, Any]]:
    """Return the watches to tell of that nobody has been told of, with their ``evidence`` at this moment.

    **Guarantee**: of all that is ever told, up to any moment, the expected share whose world is not worse is
    at most `rate`, plus the delta of certificates that keep no costs. **Assumes**: as in `queries.Fleet`, but
    for when one looks; and each cost's expected value is not risen given all earlier episodes of all streams.

    Who was told of stays among those that are counted: so e-BH takes its evidence as infinite. What is stored
    only tells which of the others to compute; where evidence is not, it counts as 0, which is never too much.
    """
    told = set(connection.execute(select(alarms.c.watch_id).where(_IS_DISCOVERY)).scalars())
    size = fleet_size(connection)
    last = connection.execute(select(func.max(watches.c.place))).scalar() or size
    # No share is above 1/(2 size), and no list longer than the tests that have begun.
    may_be = watches.c.closed.is_(None) & (watches.c.evidence_adverse >= 2 * size / (rate * max(size, last)))
    query = select(watches, streams.c.name).join(streams).where(watches.c.place.is_not(None))
    rows = connection.execute(query.where(may_be | watches.c.id.in_(told))).mappings().all()
    places = [row["place"] for row in rows]

    def select_new(values: Sequence[float]) -> list[int]:
        known = [math.inf if row["id"] in told else value for row, value in zip(rows, values, strict=True)]
        listed = queries.select_discoveries(known, places, size=size, rate=rate)
        return [index for index in listed if rows[index]["id"] not in told]

    now = [0.0] * len(rows)
    for index in select_new([row["evidence_adverse"] for row in rows]):
        now[index] = evidence(load_detector(connection, rows[index]).detector.finding())[0]
    return [{**rows[index], "evidence": now[index]} for index in select_new(now)]


def tell_discoveries(connection: Connection, rate: float, channels: Iterable[outbox.Channel]) -> list[str]:
    """Tell the channels that ask for them of new discoveries, each once; return their streams."""
    lock(connection, _DISCOVERY_LOCK)
    found = find_discoveries(connection, rate)
    for row in found:
        fields = {"verdict": "discovery", "episode_number": row["n"], "mean_cost": row["total"] / row["n"]}
        fields |= {"evidence": row["evidence"], "rate": rate, "kind": "discovery"}
        shown = f"evidence {row['evidence']:.3g} after {row['n']} episodes, generation {row['generation']}"
        text = f"costs more: a discovery at a false discovery rate of {rate:g} over the fleet ({shown})."
        outbox.announce(connection, channels, row, text, **fields)
    return [row["name"] for row in found]
