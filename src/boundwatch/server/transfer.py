"""Backup and restore: one JSON object per line, from either database into either database."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Table, func, insert, select, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from boundwatch._support.files import open_binary
from boundwatch.errors import InvalidSetting
from boundwatch.server.database import Database
from boundwatch.server.tables import DATA, MIGRATIONS, deliveries

_KIND = "boundwatch monitor backup"
_CHUNK = 1000


def export(database: Database, path: str | os.PathLike[str]) -> int:
    """Write everything but sessions and what was delivered to a new file; return the number of rows.

    The file is one consistent picture, taken while the server goes on. It holds the hashes of tokens.
    """
    target = Path(path)
    try:
        file = target.open("x", encoding="utf-8")
    except FileExistsError:
        raise InvalidSetting(f"{path}: exists, and is not replaced; name a new file") from None
    except OSError as error:
        raise InvalidSetting(f"{path}: cannot be written, {error.strerror}; choose another path") from error
    with file, database.read() as connection:
        target.chmod(0o600)
        file.write(json.dumps({"kind": _KIND, "schema": len(MIGRATIONS)}) + "\n")
        count = 0
        for table, row in _rows(connection):
            file.write(json.dumps({"table": table, "row": row}, allow_nan=False) + "\n")
            count += 1
        file.write(json.dumps({"rows": count}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return count


def restore(database: Database, path: str | os.PathLike[str]) -> int:
    """Read a backup into an empty database, whole or not at all; return the number of rows."""
    tables = {table.name: table for table in DATA}
    with open_binary(path) as file, database.write() as connection:
        for table in DATA:
            if connection.execute(select(func.count()).select_from(table)).scalar():
                raise InvalidSetting(f"{database.shown}: is not empty; restore into a new database")
        count, chunk, current, ended = 0, list[dict[str, Any]](), "", False
        for number, line in enumerate(file, start=1):
            content = _parse(line, number, path)
            if number == 1:
                _check_head(content, path)
            elif ended:
                raise InvalidSetting(f"{path}: line {number} comes after the end; take another backup")
            elif "rows" in content:
                ended = content["rows"] == count
            else:
                if str(content.get("table")) not in tables or not isinstance(content.get("row"), dict):
                    raise InvalidSetting(
                        f"{path}: line {number} is not a row of a known table; it is damaged"
                    )
                if content["table"] != current or len(chunk) >= _CHUNK:
                    _insert(connection, tables.get(current), chunk)
                    chunk, current = [], content["table"]
                chunk.append(content["row"])
                count += 1
        _insert(connection, tables.get(current), chunk)
        if not ended:
            raise InvalidSetting(f"{path}: ends early or misses rows; take another backup")
        if database.kind == "postgresql":
            for table in DATA:
                if "id" in table.c and table.c["id"].type.python_type is int:
                    _continue_counting(connection, table)
    return count


def _rows(connection: Connection) -> Iterator[tuple[str, dict[str, Any]]]:
    for table in DATA:
        query = select(table).order_by(*table.primary_key.columns)
        if table is deliveries:
            query = query.where(deliveries.c.delivered.is_(None))
        for row in connection.execute(query, execution_options={"yield_per": _CHUNK}).mappings():
            yield table.name, dict(row)


def _parse(line: bytes, number: int, path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise InvalidSetting(f"{path}: line {number} is not a JSON object; it is damaged")
    return content


def _check_head(content: dict[str, Any], path: str | os.PathLike[str]) -> None:
    if content.get("kind") != _KIND:
        raise InvalidSetting(f"{path}: is not a backup that `boundwatch serve --export` wrote; name one")
    if content.get("schema") != len(MIGRATIONS):
        raise InvalidSetting(
            f"{path}: has schema {content.get('schema')!r}, this boundwatch {len(MIGRATIONS)}; "
            "restore it with the version of boundwatch that wrote it, then upgrade"
        )


def _insert(connection: Connection, table: Table | None, chunk: list[dict[str, Any]]) -> None:
    if table is not None and chunk:
        if any(set(row) != set(table.c.keys()) for row in chunk):
            raise InvalidSetting(
                f"a row of {table.name} has other columns than this boundwatch; it is damaged"
            )
        try:
            connection.execute(insert(table), chunk)
        except (SQLAlchemyError, OverflowError, TypeError, ValueError) as error:
            raise InvalidSetting(
                f"rows of {table.name} do not fit, so the backup misses rows or is damaged; take another"
            ) from error


def _continue_counting(connection: Connection, table: Table) -> None:
    name = table.name
    query = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), coalesce(max(id), 1)) FROM {name}"  # noqa: S608
    connection.execute(text(query))
