"""The tables, and how an older database becomes a newer one. Nothing here ever drops or rewrites data.

Times are seconds since 1970. Costs are doubles, which both databases return bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    BigInteger,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.engine import Connection

metadata = MetaData()
_Key = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only what is called INTEGER

schema_versions = Table(
    "schema_versions",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("applied", Double, nullable=False),
)

# What was declared once and must not change, because promises rest on it.
declarations = Table(
    "declarations",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Integer, nullable=False),
)

certificates = Table(
    "certificates",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("name", String(100), nullable=False),
    Column("version", Integer, nullable=False),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("binary", Integer, nullable=False),
    Column("content", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("created_by", String(100), nullable=False),
    UniqueConstraint("name", "version"),
)

streams = Table(
    "streams",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("generation", Integer, nullable=False),
    Column("created", Double, nullable=False),
)

# One row per generation of a stream: what it is watched with, which never changes, then where it stands.
watches = Table(
    "watches",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("stream_id", _Key, ForeignKey("streams.id"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("certificate_id", _Key, ForeignKey("certificates.id"), nullable=False),
    Column("detector", String(40), nullable=False),
    Column("alpha_adverse", Double, nullable=False),
    Column("alpha_benign", Double, nullable=False),
    Column("place", Integer, unique=True),
    Column("threshold_adverse", Double, nullable=False),
    Column("threshold_benign", Double, nullable=False),
    Column("created", Double, nullable=False),
    Column("created_by", String(100), nullable=False),
    Column("reason", String(500), nullable=False),
    Column("closed", Double),
    Column("n", Integer, nullable=False, default=0),
    Column("total", Double, nullable=False, default=0.0),
    Column("verdict", String(20), nullable=False, default="within"),
    Column("first_alarm", Integer),
    Column("evidence_adverse", Double, nullable=False),
    Column("evidence_benign", Double, nullable=False),
    Column("curve", Text, nullable=False, default="[[],[]]"),
    Column("last_cost", Double),
    Column("last_seen", Double),
    Column("silence_told", Double),
    Column("pruned", Integer, nullable=False, default=0),
    UniqueConstraint("stream_id", "generation"),
    Index("watches_last_seen", "last_seen"),
)

# A detector's state after the first n episodes of a watch; the later ones are replayed on top of it.
checkpoints = Table(
    "checkpoints",
    metadata,
    Column("watch_id", _Key, ForeignKey("watches.id"), primary_key=True, autoincrement=False),
    Column("n", Integer, nullable=False),
    Column("state", Text, nullable=False),
)

episodes = Table(
    "episodes",
    metadata,
    Column("watch_id", _Key, ForeignKey("watches.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("stream_id", _Key, nullable=False),
    Column("episode", String(200), nullable=False),
    Column("cost", Double, nullable=False),
    Column("time", Double),
    Column("received", Double, nullable=False),
    Column("meta", Text),
    UniqueConstraint("stream_id", "episode"),
)

alarms = Table(
    "alarms",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("watch_id", _Key, ForeignKey("watches.id"), nullable=False),
    Column("verdict", String(20), nullable=False),
    Column("number", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("acknowledged", Double),
    Column("acknowledged_by", String(100)),
    Column("reason", String(500)),
    UniqueConstraint("watch_id", "verdict"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("channel", String(20), nullable=False),
    Column("target", String(500), nullable=False),
    Column("payload", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Column("delivered", Double),
    Column("error", String(500)),
    Index("deliveries_due", "delivered", "due"),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True),
    Column("scopes", String(100), nullable=False),
    Column("streams", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("revoked", Double),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("token_id", _Key, ForeignKey("tokens.id"), nullable=False),
    Column("created", Double, nullable=False),
    Column("expires", Double, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("id", _Key, primary_key=True),
    Column("time", Double, nullable=False),
    Column("actor", String(100), nullable=False),
    Column("act", String(40), nullable=False),
    Column("detail", Text, nullable=False),
)

DATA = (
    declarations,
    certificates,
    streams,
    watches,
    checkpoints,
    episodes,
    alarms,
    deliveries,
    tokens,
    audit,
)
"""What a backup holds, of deliveries those that wait, in an order in which references come first."""


def _first(connection: Connection) -> None:
    metadata.create_all(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first,)
"""Step k brings a database from version k to k + 1. Steps are only ever appended, and only ever add."""
