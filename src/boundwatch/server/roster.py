"""Which process counts which streams. This is about speed: to count the same twice gives the same.

Streams are dealt to `SHARDS` by their number, and every shard belongs to one of the processes on the roster:
the one whose name, hashed with the shard's, is largest, so that few move when somebody comes or goes. Who is
not alone raises its beat twice per second; whose beat stays the same for five seconds, the others take off.
No clock is compared with another's. While two disagree, both count a stream, and who got further is kept.
"""

from __future__ import annotations

import hashlib
import secrets
import time

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection

from boundwatch.server.database import Database
from boundwatch.server.tables import processes

SHARDS = 256
_LOOK_EVERY, _DEAD_AFTER = 0.5, 5.0


class Roster:
    """The processes that share a database, this one among them; for one thread."""

    def __init__(self, database: Database) -> None:
        self._database, self.me = database, secrets.token_hex(8)
        self._names: set[str] = set()
        self._beats: dict[str, tuple[int, float]] = {}  # and since when
        self._due, self._has_left = 0.0, False
        self.owned = frozenset(range(SHARDS))

    @property
    def is_alone(self) -> bool:
        """Whether all streams are this process's."""
        return len(self.owned) == SHARDS

    @property
    def condition(self) -> str:
        """The condition, in SQL, that a stream is one that this process counts."""
        owned = ", ".join(map(str, sorted(self.owned)))
        return "1 = 1" if self.is_alone else f"(stream_id & {SHARDS - 1}) IN ({owned or -1})"

    def owns(self, stream_id: int) -> bool:
        """Return whether this process is to count a stream."""
        return stream_id % SHARDS in self.owned

    def look(self) -> bool:
        """Say that this process lives, and see who else does; return whether streams may have moved."""
        now = time.monotonic()
        if now < self._due:
            return False
        self._due = now + _LOOK_EVERY
        with self._database.read() as connection:
            found = {row.id: (row.beat, now) for row in connection.execute(select(processes))}
        old = self._beats
        self._beats = {
            key: old[key] if old.get(key, (-1,))[0] == new[0] else new for key, new in found.items()
        }
        dead = {key for key, (_, since) in self._beats.items() if now - since > _DEAD_AFTER} - {self.me}
        if found.keys() != {self.me}:
            with self._database.write() as connection:
                connection.execute(delete(processes).where(processes.c.id.in_(dead)))
                self.beat(connection)
        return self._deal({self.me, *found} - dead)

    def beat(self, connection: Connection) -> None:
        """Say that this process lives, unless it has left."""
        if self._has_left:
            return
        mine = update(processes).where(processes.c.id == self.me).values(beat=processes.c.beat + 1)
        if connection.execute(mine).rowcount == 0:
            connection.execute(insert(processes).values(id=self.me, beat=0))

    def leave(self) -> bool:
        """Take this process off; it owns nothing then, unless it was the last."""
        self._has_left = True
        with self._database.write() as connection:
            connection.execute(delete(processes).where(processes.c.id == self.me))
            left = set(connection.execute(select(processes.c.id)).scalars())
        return self._deal(left or {self.me})

    def _deal(self, names: set[str]) -> bool:
        if has_changed := names != self._names:
            self._names = names
            owners = (max(names, key=lambda name: _weight(name, shard)) for shard in range(SHARDS))
            self.owned = frozenset(shard for shard, owner in enumerate(owners) if owner == self.me)
        return has_changed


def clear(database: Database) -> None:
    """Take everybody off: those that live come back by themselves, those that were killed do not."""
    with database.write() as connection:
        connection.execute(delete(processes))


def _weight(name: str, shard: int) -> bytes:
    return hashlib.blake2b(f"{name} {shard}".encode(), digest_size=8).digest()
