"""The tables, and how an older database becomes a newer one. Nothing here ever drops or rewrites data.

Times are seconds since 1970. Costs are doubles, which both databases return bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, MetaData, String, Table, Text
from sqlalchemy import UniqueConstraint as Unique
from sqlalchemy.engine import Connection

metadata = MetaData()
_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only what is called INTEGER
_KINDS: dict[Any, str] = {
    _Key: "id stream_id watch_id certificate_id token_id number counted last seed",
    Integer(): "version value binary generation place n labeled labels first_alarm attempts beat",
    Double(): "applied created closed time received cost total last_cost last_seen due "
    "delivered revoked expires acknowledged alpha_adverse alpha_benign threshold_adverse threshold_benign "
    "evidence_adverse evidence_benign",
    String(20): "verdict channel",
    String(40): "detector act",
    String(64): "fingerprint hash digest",
    String(100): "name created_by acknowledged_by scopes actor",
    String(200): "episode",
    String(500): "reason target error",
    Text(): "content curve state meta payload streams detail",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}


def _table(name: str, *parts: str | Column[Any] | Unique | Index) -> Table:
    """Return a table from the names of its columns, and the rest.

    ``x?`` may be empty, ``x!`` is in the primary key, ``x>t`` refers to table t. A column has the same type
    in all tables.
    """
    made: list[Column[Any] | Unique | Index] = []
    for part in parts:
        for word in part.split() if isinstance(part, str) else ():
            column, _, table = word.rstrip("?!").partition(">")
            refers = [ForeignKey(f"{table}.id")] if table else []
            options: dict[str, Any] = {"nullable": word.endswith("?"), "primary_key": word.endswith("!")}
            made.append(Column(column, _KIND_OF[column], *refers, autoincrement=column == "id", **options))
        if not isinstance(part, str):
            made.append(part)
    return Table(name, metadata, *made)


schema_versions = _table("schema_versions", "version! applied")
# What was declared once and must not change, because promises rest on it.
declarations = _table("declarations", "name! value")
certificates = _table(
    "certificates",
    "id! name version fingerprint binary content created created_by",
    Unique("fingerprint"),
    Unique("name", "version"),
)
streams = _table("streams", "id! name generation created", Unique("name"))
# One row per generation of a stream: what it is watched with, which never changes, then where it stands.
watches = _table(
    "watches",
    "id! stream_id>streams generation certificate_id>certificates",
    "detector seed? alpha_adverse alpha_benign place? threshold_adverse? threshold_benign?",
    "created created_by reason",
    "closed? n labeled total verdict first_alarm? evidence_adverse evidence_benign curve last_cost? digest",
    "last_seen? counted",
    Unique("place"),
    Unique("stream_id", "generation"),
)
# A detector's state after some episodes of a watch; the later ones are replayed on top of it.
checkpoints = _table("checkpoints", "watch_id>watches! state")
# The log: all episodes, numbered as they were stored, without gaps. A watch counted those up to `counted`.
# Where `labels` is not empty, the row is what people said of that episode of the watch: a machine judged it.
episodes = _table(
    "episodes",
    "number! stream_id episode watch_id cost time? received meta? labels?",
    Unique("stream_id", "episode"),
    Index("episodes_watch", "watch_id", "number"),
)
# One row: the number of the last episode in the log. Who appends to it changes it first, so others wait.
log = _table("log", "last")
alarms = _table(
    "alarms",
    Column("id", String(32), primary_key=True),
    "watch_id>watches verdict number created acknowledged? acknowledged_by? reason?",
    Unique("watch_id", "verdict"),
)
deliveries = _table(
    "deliveries",
    Column("id", String(32), primary_key=True),
    "channel target payload created attempts due delivered? error?",
    Index("deliveries_due", "delivered", "due"),
)
tokens = _table("tokens", "id! name hash scopes streams created revoked?", Unique("name"), Unique("hash"))
sessions = _table("sessions", "hash! token_id>tokens created expires")
# Who shares the database, while it runs; see `roster`.
processes = _table("processes", Column("id", String(32), primary_key=True), "beat")
audit = _table("audit", "id! time actor act detail")

_PASSING = schema_versions, sessions, processes, log
DATA = tuple(table for table in metadata.tables.values() if table not in _PASSING)
"""What a backup holds, of deliveries those that wait, in an order in which references come first."""


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(log.insert().values(last=0))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_create,)
"""Step k brings a database from version k to k + 1. Steps are only ever appended, and only ever add."""
