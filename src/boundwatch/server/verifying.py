"""Replays every episode and compares: what the server shows must be what the episodes say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import func, select

from boundwatch.server.database import Database
from boundwatch.server.live_detectors import load_detector, replay
from boundwatch.server.tables import episodes, streams, watches


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
            fault = ""
            if not watch["pruned"]:
                numbers = select(func.count(), func.max(episodes.c.number)).where(episodes.c.watch_id == key)
                count, last = connection.execute(numbers).one()
                again = replay(connection, watch)
                if not count == (last or 0) == watch["n"]:
                    fault = f"{count} episodes are stored, the last has number {last}, {watch['n']} are shown"
                elif again.state() != load_detector(connection, watch).state():
                    fault = "the stored state differs from that of a replay"
                elif watch["n"]:
                    shown = again.summary()
                    wrong = [each for each, value in shown.items() if watch[each] != value]
                    fault = f"{', '.join(wrong)} differ from those of a replay" if wrong else ""
            yield Replayed(name, watch["generation"], watch["n"], fault, bool(watch["pruned"]))
