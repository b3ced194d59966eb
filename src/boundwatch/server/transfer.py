"""Backup and restore: one JSON object per line, from either database into either database."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy import Table, func, insert, select, text, update
from sqlalchemy.exc import SQLAlchemyError

from boundwatch._support import schema
from boundwatch._support.files import open_binary
from boundwatch.errors import InvalidSetting, Place, SchemaMismatch
from boundwatch.server.database import Database
from boundwatch.server.models import check
from boundwatch.server.tables import DATA, MIGRATIONS, deliveries, episodes, log

_KIND = "boundwatch monitor backup"
_CHUNK = 1000


class _Line(Struct, forbid_unknown_fields=True):
    table: str
    row: dict[str, Any]


class _End(Struct, forbid_unknown_fields=True):
    rows: int


def export(database: Database, path: str | os.PathLike[str]) -> int:
    """Write everything but sessions and what was delivered to a new file; return the number of rows.

    The file is one consistent picture, taken while the server goes on. It holds the hashes of tokens.
    """
    target = Path(path)
    try:
        file = target.open("x", encoding="utf-8")
    except OSError as error:
        problem, where = f"cannot be written, {error.strerror}", Place(str(path))
        if isinstance(error, FileExistsError):
            problem = "exists, and is not replaced"
        raise InvalidSetting(problem, where=where, remedy="name a new file") from error
    with file, database.read() as connection:
        target.chmod(0o600)
        file.write(json.dumps({"kind": _KIND, "schema": len(MIGRATIONS)}) + "\n")
        count = 0
        for table in DATA:
            query = select(table).order_by(*table.primary_key.columns)
            if table is deliveries:
                query = query.where(deliveries.c.delivered.is_(None))
            for row in connection.execute(query, execution_options={"yield_per": _CHUNK}).mappings():
                file.write(json.dumps({"table": table.name, "row": dict(row)}, allow_nan=False) + "\n")
                count += 1
        file.write(json.dumps({"rows": count}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return count


def restore(database: Database, path: str | os.PathLike[str]) -> int:
    """Read a backup into an empty database, whole or not at all; return the number of rows."""
    with open_binary(path) as file, database.write() as connection:
        for table in DATA:
            if connection.execute(select(func.count()).select_from(table)).scalar():
                where, remedy = Place(database.shown), "restore into a new database"
                raise InvalidSetting("is not empty", where=where, remedy=remedy)
        count = 0
        try:
            for table, chunk in itertools.groupby(_read(file), key=lambda each: each[0]):
                while rows := [row for _, row in itertools.islice(chunk, _CHUNK)]:
                    count += len(rows)
                    connection.execute(insert(table), rows)
        except (SQLAlchemyError, OverflowError) as error:
            problem = "rows do not fit each other, so it misses rows or is damaged"
            where, remedy = Place(str(path)), "take another backup"
            raise InvalidSetting(problem, where=where, remedy=remedy) from error
        except InvalidSetting as error:
            raise error.inside(str(path)) from error
        connection.execute(
            update(log).values(last=select(func.coalesce(func.max(episodes.c.number), 0)).scalar_subquery())
        )
        if database.kind == "postgresql":
            for table in DATA:
                if "id" in table.c and table.c["id"].type.python_type is int:
                    sequence = f"pg_get_serial_sequence('{table.name}', 'id')"
                    query = f"SELECT setval({sequence}, coalesce(max(id), 1)) FROM {table.name}"  # noqa: S608
                    connection.execute(text(query))
    return count


def _read(file: Iterable[bytes]) -> Iterator[tuple[Table, dict[str, Any]]]:
    """Yield the rows of a backup; refuse one that has not the head, rows and end that were written."""
    tables = {table.name: (table, _row_type(table)) for table in DATA}
    count, ended = 0, False
    for number, line in enumerate(file, start=1):
        try:
            content = schema.decode(line, "backup")
            if number == 1:
                _check_head(content)
            elif ended:
                raise InvalidSetting("comes after the end", remedy="take another backup")
            elif isinstance(content, dict) and "rows" in content:
                ended = check(_End, content).rows == count
            else:
                found = check(_Line, content)
                if found.table not in tables:
                    raise InvalidSetting("is not of a known table", value=found.table, remedy="it is damaged")
                table, kind = tables[found.table]
                check(kind, found.row, found.table)
                count += 1
                yield table, found.row
        except SchemaMismatch as error:
            where = Place("", "line", number)
            raise InvalidSetting(error.problem, remedy="it is damaged", where=where) from error
        except InvalidSetting as error:
            raise error.at(Place("", "line", number)) from error
    if not ended:
        raise InvalidSetting("ends early or misses rows", remedy="take another backup")


def _row_type(table: Table) -> type[Struct]:
    """Return the type of a table's rows, as its columns say."""
    types: list[Any] = [
        (str(column.name), column.type.python_type | None if column.nullable else column.type.python_type)
        for column in table.columns
    ]
    return msgspec.defstruct(str(table.name), types, forbid_unknown_fields=True)


def _check_head(content: object) -> None:
    head = content if isinstance(content, dict) else {}
    if head.get("kind") != _KIND:
        raise InvalidSetting("is not a backup that `boundwatch serve --export` wrote", remedy="name one")
    if head.get("schema") != len(MIGRATIONS):
        problem = f"has schema {head.get('schema')!r}, this boundwatch {len(MIGRATIONS)}"
        remedy = "restore it with the version of boundwatch that wrote it, then upgrade"
        raise InvalidSetting(problem, remedy=remedy)
