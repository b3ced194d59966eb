"""SQLite for one machine, PostgreSQL for more: one way to open, migrate, read and write either."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, String, Table, create_engine, event, func, insert, inspect, select, text
from sqlalchemy.engine import Connection, CursorResult, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from boundwatch.errors import InvalidSetting, Place
from boundwatch.server.tables import MIGRATIONS, schema_versions

_LOG = logging.getLogger("boundwatch.server")
_MIGRATION_LOCK = 0x626F756E  # any number, the same for every server
_PATIENCE = 30  # seconds to wait for a lock
_LONGEST_END = 11.0
_ASK_EVERY, _SLOWEST_ANSWER = 0.25, 1.25  # together less than the 2 s within which everybody is told
_SQLITE = {"timeout": _PATIENCE, "check_same_thread": False}
# A machine that is gone sends no word of it; without these a connection to it would wait for hours.
_POSTGRESQL = {
    "connect_timeout": 2,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Database:
    """A database of the live monitor: ``postgresql://user@host/name``, ``sqlite:///file``, or a path."""

    def __init__(self, url: str) -> None:
        self.url = _normalized(url)
        is_file = self.url.startswith("sqlite")
        self.kind, options = ("sqlite", _SQLITE) if is_file else ("postgresql", _POSTGRESQL)
        try:  # errors must not carry episodes into the logs
            self.engine: Engine = create_engine(
                self.url, hide_parameters=True, pool_size=8, pool_pre_ping=not is_file, connect_args=options
            )
        except (ArgumentError, NoSuchModuleError) as error:
            raise InvalidSetting("is not understood", name="database", value=url, remedy=_ALLOWED) from error
        if is_file:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
            return
        self._appending = create_engine(
            self.url, hide_parameters=True, pool_size=1, isolation_level="AUTOCOMMIT", connect_args=options
        )
        event.listen(self._appending, "connect", _prepare_appending)

    @property
    def shown(self) -> str:
        """The address without its password."""
        return make_url(self.url).render_as_string(hide_password=True)

    @contextmanager
    def write(self, synchronous: str = "FULL") -> Iterator[Connection]:
        """Run a transaction that is on the disk when the block ends, or has left nothing."""
        with self.engine.connect() as connection:
            connection = connection.execution_options(write=synchronous)
            with connection.begin():
                yield connection

    @contextmanager
    def append(self) -> Iterator[Connection]:
        """Give a connection for `append_rows`: others see what it appends at once, and wait for it briefly.

        It is on the disk when a later `write` is that wrote anything, whoever's; until then a crash of the
        machine may undo it.
        """
        if self.kind == "sqlite":
            with self.write("NORMAL") as connection:
                yield connection
        else:
            with self._appending.connect() as connection:
                yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Read a consistent state without waiting for writers."""
        with self.engine.connect() as connection:
            if self.kind == "postgresql":
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                yield connection

    def migrate(self, *, create: bool = True) -> int:
        """Bring the schema to this program's version and return it; two servers may do so at once.

        Without `create`, an SQLite file that is not there is not made: who wants to read would find it empty.
        """
        file = make_url(self.url).database if self.kind == "sqlite" else None
        if not create and file is not None and not Path(file).exists():
            remedy = "name the one to read with --database"
            raise InvalidSetting("no such database", where=Place(file), remedy=remedy)
        if file and file != ":memory:":
            with suppress(OSError):  # SQLite says what is wrong
                os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        try:
            with self.write() as connection:
                lock(connection, _MIGRATION_LOCK)
                found = 0
                if inspect(connection).has_table(schema_versions.name):
                    found = connection.execute(select(func.max(schema_versions.c.version))).scalar() or 0
                for number in range(found, len(MIGRATIONS)):
                    MIGRATIONS[number](connection)
                    connection.execute(
                        insert(schema_versions).values(version=number + 1, applied=time.time())
                    )
        except DBAPIError as error:
            problem = f"cannot be opened, {str(error.orig).strip().splitlines()[0]}"
            raise InvalidSetting(problem, where=Place(self.shown), remedy="check --database") from error
        if found > len(MIGRATIONS):
            problem = f"has schema version {found}, and this boundwatch knows {len(MIGRATIONS)}"
            remedy = "use the version of boundwatch that wrote it, or a newer one"
            raise InvalidSetting(problem, where=Place(self.shown), remedy=remedy)
        return len(MIGRATIONS)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
        if self.kind == "postgresql":
            self._appending.dispose()


class Sentinel:
    """Asks the database again and again whether it answers, and says once when that changes.

    Whoever waits for a frozen database cannot be called back. So every request waits for an event that the
    sentinel can set; see `Guard`.
    """

    def __init__(self, database: Database) -> None:
        self.is_away = False
        self.waiting: set[asyncio.Event] = set()
        self._database = Database(database.url)  # a connection of its own: a busy pool is not away
        self._asked: float | None = None
        self._has_failed = False
        self._stop = threading.Event()

    async def watch(self) -> None:
        """Watch until canceled."""
        threading.Thread(target=self._ask, name="sentinel", daemon=True).start()
        try:
            while True:
                await asyncio.sleep(_ASK_EVERY / 2)
                asked = self._asked
                is_late = asked is not None and time.monotonic() - asked > _SLOWEST_ANSWER
                self._settle(self._has_failed or is_late)
        finally:
            self._stop.set()

    def _ask(self) -> None:
        while not self._stop.wait(_ASK_EVERY / 2):
            self._asked = time.monotonic()
            try:
                with self._database.read() as connection:
                    connection.execute(text("SELECT 1"))
                self._has_failed = False
            except SQLAlchemyError:
                self._has_failed = True
            self._asked = None
        self._database.close()

    def _settle(self, is_away: bool) -> None:
        if is_away and not self.is_away:
            _LOG.error("the database does not answer; requests are refused until it does")
        elif self.is_away and not is_away:
            _LOG.info("the database answers again")
        self.is_away = is_away
        if is_away:
            for each in self.waiting:
                each.set()


class Chore:
    """A thread that does something again and again, whatever the database does.

    It pauses so many seconds, unless there is more to do: then `work` returns true.
    """

    def __init__(self, work: Callable[[], object], pause: float) -> None:
        self._work, self._pause, self._stop = work, pause, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after what is in hand, if that does not take too long."""
        self._stop.set()
        self._thread.join(_LONGEST_END)

    def _run(self) -> None:
        while not self._stop.is_set():
            has_more = False
            try:
                has_more = bool(self._work())
            except Exception as error:
                log_failure("what the server does by itself failed", error)
            self._stop.wait(0 if has_more else self._pause)


def find_rows(
    connection: Connection, sql: str, keys: Collection[tuple[Any, ...]], kinds: Sequence[str], **options: Any
) -> CursorResult[Any]:
    """Run a query in which ASKED stands for a table of keys, ``asked.column1`` and so on, of these kinds."""
    if connection.dialect.name == "sqlite":
        row = f"({', '.join('?' * len(kinds))})"
        table = f"(VALUES {', '.join([row] * len(keys))}) AS asked"
        values: tuple[Any, ...] = tuple(value for key in keys for value in key)
    else:
        arrays = ", ".join(f"%s::{kind}[]" for kind in kinds)
        names = ", ".join(f"column{i}" for i in range(1, len(kinds) + 1))
        table = f"unnest({arrays}) AS asked({names})"
        values = tuple(list(each) for each in zip(*keys, strict=True))
    return connection.exec_driver_sql(sql.replace("ASKED", table), values, execution_options=options)


def write_rows(
    connection: Connection,
    table: Table,
    rows: Sequence[tuple[Any, ...]],
    names: str = "",
    keys: str = "",
    *,
    grows: str = "",
) -> int:
    """Insert rows, or set the columns `names` of those with `keys`: the quickest way into either database.

    A row has all columns in their order; one to change has first the values, then the keys. It stays as it is
    where it has come as far, or further, in the column that `grows`. Return how many changed.
    """
    columns = [*names.split(), *keys.split()] or [str(column.name) for column in table.c]
    is_file = connection.dialect.name == "sqlite"
    marks = {name: f"?{i}" if is_file else f"asked.{name}" for i, name in enumerate(columns, 1)}
    sql = f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT {', '.join(marks.values())}"
    if names:
        pairs = ", ".join(f"{name} = {marks[name]}" for name in names.split())
        found = " AND ".join(f"{table.name}.{name} = {marks[name]}" for name in keys.split())
        found += f" AND {table.name}.{grows} < {marks[grows]}" if grows else ""
        sql = f"UPDATE {table.name} SET {pairs} FROM_ASKED WHERE {found}"  # noqa: S608
    if is_file:
        return connection.exec_driver_sql(sql.replace("FROM_ASKED ", ""), list(rows)).rowcount
    asked = f" FROM unnest({_arrays(connection, table, columns)}) AS asked({', '.join(columns)})"
    sql = sql.replace(" FROM_ASKED", asked) if names else sql + asked
    return connection.exec_driver_sql(sql, tuple(list(each) for each in zip(*rows, strict=True))).rowcount


def append_rows(connection: Connection, table: Table, log: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows, of which the first column is numbered on from where the log ends: in one order for all."""
    columns = [str(column.name) for column in table.c]
    if connection.dialect.name == "sqlite":
        end = connection.execute(
            log.update().values(last=log.c.last + len(rows)).returning(log.c.last)
        ).scalar_one()
        write_rows(connection, table, [(n, *row) for n, row in enumerate(rows, end - len(rows) + 1)])
        return
    # One statement, so that nobody waits for this process: not even if it is frozen.
    sql = (
        f"WITH taken AS (UPDATE {log.name} SET last = last + %s RETURNING last - %s AS before) "  # noqa: S608
        f"INSERT INTO {table.name} ({', '.join(columns)}) SELECT before + place, {', '.join(columns[1:])} "
        f"FROM taken, unnest({_arrays(connection, table, columns[1:])}) WITH ORDINALITY "
        f"AS asked({', '.join(columns[1:])}, place)"
    )
    values = (list(each) for each in zip(*rows, strict=True))
    connection.exec_driver_sql(sql, (len(rows), len(rows), *values))


def _arrays(connection: Connection, table: Table, columns: Iterable[str]) -> str:
    types = [table.c[name].type for name in columns]
    kinds = ("text" if isinstance(kind, String) else kind.compile(connection.dialect) for kind in types)
    return ", ".join(f"%s::{kind}[]" for kind in kinds)


def lock(connection: Connection, key: int) -> None:
    """Keep whoever asks for the same from going on until the transaction ends."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": key})


def log_failure(what: str, error: Exception) -> None:
    """Log what went wrong: with no row's values, and not that a database is away, which its sentinel says."""
    if not isinstance(error, SQLAlchemyError):
        _LOG.error(what, exc_info=error)
        return
    origin = getattr(error, "orig", None)
    state = getattr(origin, "sqlstate", "")  # of PostgreSQL: that there is no connection, or none anymore
    if isinstance(origin, sqlite3.Error) or (state and not state.startswith(("08", "57P"))):
        _LOG.error("%s: %s", what, type(origin).__name__)


_ALLOWED = "give postgresql://user@host/name, sqlite:///file, or the path of an SQLite file"


def _normalized(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator:
        path = Path(url)
        if path.is_dir() or not path.absolute().parent.is_dir():
            problem, remedy = "cannot be a file there", "name a file in a folder that exists"
            raise InvalidSetting(problem, name="database", value=url, remedy=remedy)
        return f"sqlite:///{path.absolute()}"
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return f"postgresql+psycopg://{rest}"
    if scheme != "sqlite":
        raise InvalidSetting("is not supported", name="database", value=f"{scheme}://…", remedy=_ALLOWED)
    return url


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # Python's own transactions begin too late to lock anything
    cursor = connection.cursor()
    for pragma in (f"busy_timeout = {1000 * _PATIENCE}", "foreign_keys = ON"):
        cursor.execute(f"PRAGMA {pragma}")
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # Two that turn a new file to WAL do not wait for each other.
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.02)
    cursor.close()


def _prepare_appending(connection: Any, _record: object) -> None:
    connection.autocommit = True
    connection.execute("SET synchronous_commit = off")


def _begin_sqlite(connection: Connection) -> None:
    if writes := connection.get_execution_options().get("write"):
        connection.exec_driver_sql(f"PRAGMA synchronous = {writes}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
