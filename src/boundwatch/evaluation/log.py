"""The log of an evaluation: rows that are only ever added, each chained to the one before by SHA-256."""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

from boundwatch._support import files
from boundwatch.errors import InvalidSetting, MissingFile, Place, SchemaMismatch

_APPLICATION = 0x426E6445  # "BndE"
_VERSION = 1
_PATIENCE = 20.0  # seconds to wait while another station writes
_START = "0" * 64
_SCHEMA = (
    "CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, time TEXT NOT NULL, kind TEXT NOT NULL, "
    "content TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE TABLE sealed (secret TEXT NOT NULL)",
    "CREATE TRIGGER unchanged BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'rows are never changed'); END",
    "CREATE TRIGGER undeleted BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'rows are never deleted'); END",
)


class Row(NamedTuple):
    """One row of the log."""

    number: int
    time: str
    kind: str
    content: dict[str, Any]
    hash: str


def is_log(path: Path) -> bool:
    """Return whether a file is the log of an evaluation, by its first bytes."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(72)
    return head.startswith(b"SQLite format 3\0") and head[68:] == _APPLICATION.to_bytes(4)


def _digest(previous: str, number: int, time: str, kind: str, text: str) -> str:
    return hashlib.sha256("\n".join((previous, str(number), time, kind, text)).encode()).hexdigest()


class Log:
    """A chain of rows in one SQLite file that several stations may use at once; in memory without a path.

    **Guarantee**: a row is on the disk, whole, when the block of `writing` that added it ends, or it is not
    there at all. **Assumes**: a disk that keeps what it has acknowledged.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *, new: bool = False) -> None:
        self.path = None if path is None else Path(path)
        self.head, self.length = _START, 0
        with self._naming():
            self._file = self._opened(new)

    def rewind(self) -> None:
        """Let `rows` begin with the first again."""
        self.head, self.length = _START, 0

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep others from writing; what was added in the block is on the disk after it, or none of it."""
        with self._naming():
            self._ask("BEGIN IMMEDIATE")
            try:
                yield
                self._ask("COMMIT")
            except BaseException:
                self.rewind()
                with suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")
                raise

    def _ask(self, statement: str, *values: int) -> sqlite3.Cursor:
        """Run a statement that others may keep waiting, and ask often: SQLite does ten times per second."""
        ends = monotonic() + _PATIENCE
        while True:
            try:
                return self._file.execute(statement, values)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or monotonic() >= ends:
                    raise
            sleep(random.uniform(0.0005, 0.01))  # noqa: S311

    def append(self, kind: str, content: dict[str, Any]) -> Row:
        """Add a row, inside `writing`."""
        number, time = self.length + 1, datetime.now(UTC).isoformat(timespec="milliseconds")
        text = json.dumps(content, separators=(",", ":"), allow_nan=False)  # in order: pages list tasks by it
        digest = _digest(self.head, number, time, kind, text)
        self._file.execute("INSERT INTO log VALUES (?, ?, ?, ?, ?)", (number, time, kind, text, digest))
        self.head, self.length = digest, number
        return Row(number, time, kind, json.loads(text), digest)

    def rows(self) -> Iterator[Row]:
        """Yield the rows that were added since the last time; one that does not follow is refused."""
        with self._naming():
            rows = self._ask("SELECT * FROM log WHERE number > ? ORDER BY number", self.length).fetchall()
        for number, time, kind, text, digest in rows:
            if number != self.length + 1:
                raise self._broken(f"row {self.length + 1} is missing")
            if not isinstance(text, str) or digest != _digest(self.head, number, time, kind, text):
                raise self._broken(f"row {number} was altered, its hash does not follow from the row before")
            self.head, self.length = digest, number
            yield Row(number, time, kind, json.loads(text), digest)

    def check_end(self) -> None:
        """Refuse a log whose last rows were deleted."""
        with self._naming():
            latest = self._ask("SELECT seq FROM sqlite_sequence WHERE name = 'log'").fetchone()
        if latest is None or latest[0] != self.length:
            raise self._broken(f"rows after {self.length} are missing")

    def seal(self, secret: str) -> None:
        """Keep the secret beside the log, until it is opened."""
        self._file.execute("INSERT INTO sealed VALUES (?)", (secret,))

    @property
    def secret(self) -> str:
        """What the order and the letters are drawn from."""
        with self._naming():
            found = self._ask("SELECT secret FROM sealed").fetchall()
        if len(found) != 1:
            raise self._broken("its sealed key is missing")
        return str(found[0][0])

    def _opened(self, new: bool) -> sqlite3.Connection:
        if self.path is not None:
            files.refuse_special(self.path)
            self._refuse_other(self.path, new)
        target = ":memory:" if self.path is None else self.path.absolute()
        file = sqlite3.connect(target, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        try:
            file.execute("PRAGMA synchronous = FULL")
            if new:
                pragmas = f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {_VERSION}"
                for statement in ("BEGIN EXCLUSIVE", *pragmas, *_SCHEMA, "COMMIT"):
                    file.execute(statement)
            if file.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION:
                problem = "is not an evaluation that boundwatch wrote"
                raise SchemaMismatch(problem, where=self._place, remedy="name another file")
            if (version := file.execute("PRAGMA user_version").fetchone()[0]) != _VERSION:
                problem = f"has version {version}, and this release reads version {_VERSION}"
                raise SchemaMismatch(problem, where=self._place, remedy="use the release that began it")
            file.execute("PRAGMA busy_timeout = 0")  # from now on, `_ask` waits
        except BaseException:
            file.close()
            raise
        return file

    def _refuse_other(self, path: Path, new: bool) -> None:
        """Refuse a file that cannot be begun or opened, and claim the name of a new one."""
        if new and path.exists():
            problem = "exists, and an evaluation is never started over"
            raise InvalidSetting(problem, where=self._place, remedy="choose another name")
        if new:
            files.write_new(path, b"", mode=0o600)
        elif not path.exists():
            raise MissingFile("no such file", where=self._place, remedy="check the path")
        elif path.suffix == ".toml":
            remedy = f"seal it first: boundwatch evaluate start {path} -o eval.db, then name eval.db"
            raise SchemaMismatch("is a protocol, not an evaluation", where=self._place, remedy=remedy)

    @property
    def _place(self) -> Place:
        return Place("the evaluation" if self.path is None else str(self.path))

    def _broken(self, problem: str) -> SchemaMismatch:
        return SchemaMismatch(problem, where=self._place, remedy="use an untouched copy")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Say in one line of which file it is that SQLite cannot use it."""
        try:
            yield
        except sqlite3.OperationalError as error:
            problem, remedy = f"cannot be used, {error}", "free the disk, or end what holds the file"
            raise InvalidSetting(problem, where=self._place, remedy=remedy) from error
        except sqlite3.DatabaseError as error:
            raise self._broken(f"is damaged ({error})") from None
