"""The store that counts exactly once: one SQLite file with one owner, whose commits are all or nothing."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from boundwatch._support import files
from boundwatch.errors import InvalidCost, InvalidSetting, Place, SchemaMismatch, shown

VERSION = 1
"""Version of the file that this release writes and reads."""

_APPLICATION = 0x426E6457  # "BndW", where SQLite and file(1) look for it
_OWNED: set[tuple[int, int]] = set()  # by this process: closing a file twice opened gives up its lock
_MAGIC = b"SQLite format 3\0"
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE ids (stream TEXT, id, cost REAL NOT NULL, PRIMARY KEY (stream, id)) WITHOUT ROWID;
CREATE TABLE waiting (number INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL, line TEXT NOT NULL);
"""


class Store:
    """Facts, ids and waiting lines, committed together, in a file that belongs to one process at a time.

    **Guarantee**: what `commit` was called for is on the disk when it returns; after a kill the file holds
    the latest commit, whole. A second owner is refused, by whichever path or link it comes. **Assumes**: the
    file is on a disk that keeps what it has acknowledged, and after a kill is moved only with its ``-wal``.

    Without a `path` everything is in memory, for those who do not come back. A store of another `kind` is
    refused.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "watch.state"
    >>> with Store(path, "watch") as store:
    ...     store.keep({"lines": 3})
    ...     store.remember("arm-1", 7, 0.25)
    ...     store.commit()
    >>> with Store(path, "watch") as store:
    ...     store.facts["lines"], store.cost_of("arm-1", 7), store.cost_of("arm-2", 7)
    (3, 0.25, None)
    """

    def __init__(self, path: str | os.PathLike[str] | None, kind: str) -> None:
        self.path = None if path is None else Path(path)
        self.kind = kind
        self._identity: tuple[int, int] | None = None
        self._lock = threading.RLock()
        self._written: dict[str, str] = {}
        with self._naming():
            self._file = self._opened()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was not committed, and let others have the file."""
        with self._lock, suppress(sqlite3.Error):  # a full disk must not hide why somebody ends
            self._file.close()
            _OWNED.discard(self._identity or (0, 0))

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that was kept, by name; nothing if the store is new."""
        self._written = dict(self._ask("SELECT name, value FROM facts"))
        return {name: self._parsed(value) for name, value in self._written.items()}

    def keep(self, facts: Mapping[str, Any]) -> None:
        """Replace some facts; JSON values. They are on the disk after `commit`."""
        texts = {name: json.dumps(value) for name, value in facts.items()}
        changed = [(name, text) for name, text in texts.items() if self._written.get(name) != text]
        if changed:
            self._write("INSERT OR REPLACE INTO facts VALUES (?, ?)", changed)
            self._written.update(changed)

    def cost_of(self, stream: str, number: object) -> float | None:
        """Return the cost with which an id was counted; None if it is new."""
        rows = self._ask("SELECT cost FROM ids WHERE stream = ? AND id = ?", (stream, _key(number)))
        return float(rows[0][0]) if rows else None

    def remember(self, stream: str, number: object, cost: float) -> None:
        """Keep the cost of an id that is new."""
        self._write("INSERT INTO ids VALUES (?, ?, ?)", [(stream, _key(number), cost)])

    def append(self, lines: Iterable[tuple[str, str]]) -> None:
        """Let lines of streams wait, after those that wait already; on the disk when this returns.

        Examples
        --------
        >>> store = Store(None, "spool")
        >>> store.append([("arm-1", "first"), ("arm-2", "second"), ("arm-1", "third")])
        >>> store.oldest(2), store.oldest(2, without=["arm-1"])
        ([(1, 'arm-1', 'first'), (2, 'arm-2', 'second')], [(2, 'arm-2', 'second')])
        >>> store.remove([1, 2])
        >>> store.waiting
        1
        """
        with self._lock:
            self._write("INSERT INTO waiting (stream, line) VALUES (?, ?)", list(lines))
            self.commit()

    def oldest(self, count: int, *, without: Sequence[str] = ()) -> list[tuple[int, str, str]]:
        """Return the lines that have waited longest, with their numbers, except those of some streams."""
        marks = ",".join("?" * len(without))
        query = f"SELECT * FROM waiting WHERE stream NOT IN ({marks}) ORDER BY number LIMIT ?"  # noqa: S608
        return self._ask(query, (*without, count))

    def remove(self, numbers: Iterable[int]) -> None:
        """Delete lines that were acknowledged."""
        with self._lock:
            self._write("DELETE FROM waiting WHERE number = ?", [(number,) for number in numbers])
            self.commit()

    @property
    def waiting(self) -> int:
        """How many lines wait."""
        return int(self._ask("SELECT count(*) FROM waiting")[0][0])

    def commit(self) -> None:
        """Put all that was kept, remembered and removed on the disk, or nothing of it."""
        with self._lock, self._naming():
            if self._file.in_transaction:
                self._file.execute("COMMIT")

    def delete(self) -> None:
        """Remove the file: nothing came of it."""
        self.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _parsed(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError, TypeError):
            raise self._damaged() from None

    def _ask(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._lock, self._naming():
            return self._file.execute(query, values).fetchall()

    def _write(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with self._lock, self._naming():
            if not self._file.in_transaction:
                self._file.execute("BEGIN IMMEDIATE")
            self._file.executemany(statement, rows)

    def _opened(self) -> sqlite3.Connection:
        if self.path is None:
            connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            connection.executescript(_SCHEMA)
            return connection
        if self.path.exists() and _identity(self.path) in _OWNED:
            raise self._in_use()
        _claim(self.path)
        path = self.path.absolute()
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            # SQLite locks the file itself, not its name, and a kill releases the lock.
            for statement in ("locking_mode = EXCLUSIVE", "synchronous = FULL"):
                connection.execute(f"PRAGMA {statement}")
            connection.execute("BEGIN EXCLUSIVE")
            self._check(connection)
            connection.execute("COMMIT")
            # After that: until the first commit is moved to the file, its head must say whose it is.
            connection.execute("PRAGMA journal_mode = WAL")
        except BaseException:
            connection.close()
            raise
        self._identity = _identity(self.path)
        _OWNED.add(self._identity)
        return connection

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make the tables of a new file; refuse one of another kind or version, or damaged."""
        ask, kind = connection.execute, json.dumps(self.kind)
        if ask("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            numbers = (f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {VERSION}")
            for statement in (*numbers, *filter(str.strip, _SCHEMA.split(";"))):
                ask(statement)
            ask("INSERT INTO facts VALUES ('kind', ?)", (kind,))
            return
        (version,) = ask("PRAGMA user_version").fetchone()
        if version != VERSION:
            problem = f"has version {version}, and this release reads version {VERSION}"
            remedy = "finish it with the release that began it, or start a new one"
            raise SchemaMismatch(problem, where=self._place, remedy=remedy)
        if ask("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise self._damaged()
        if ask("SELECT value FROM facts WHERE name = 'kind'").fetchone() != (kind,):
            problem = f"keeps something else than a {self.kind}"
            raise SchemaMismatch(problem, where=self._place, remedy="name another file")

    @property
    def _place(self) -> Place:
        return Place(str(self.path))

    def _in_use(self) -> InvalidSetting:
        remedy = "end that one, or use a file of its own"
        return InvalidSetting("is in use by another process", where=self._place, remedy=remedy)

    def _damaged(self) -> SchemaMismatch:
        return SchemaMismatch("is damaged", where=self._place, remedy="restore it, or start a new one")

    @contextmanager
    def _naming(self) -> Iterator[None]:
        """Say in one line of which file it is that SQLite cannot use it."""
        try:
            yield
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "decode" in str(error):  # what should be text is none
                raise (self._in_use() if "locked" in str(error) else self._damaged()) from None
            remedy = "free the disk, or choose another path"
            raise InvalidSetting(f"cannot be written, {error}", where=self._place, remedy=remedy) from error
        except sqlite3.DatabaseError:
            raise self._damaged() from None


def _identity(path: Path) -> tuple[int, int]:
    state = path.stat()
    return state.st_dev, state.st_ino


def _claim(path: Path) -> None:
    """Make the file if there is none, for its owner only; refuse one that is not ours."""
    files.refuse_special(path)
    where = Place(str(path))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with path.open("rb") as file:
            head, links = file.read(100), os.fstat(file.fileno()).st_nlink
    except OSError as error:
        problem = f"cannot be written, {files.reason(error)}"
        raise InvalidSetting(problem, where=where, remedy="choose another path") from error
    ours = head.startswith(_MAGIC) and head[68:72] == _APPLICATION.to_bytes(4, "big")
    if head and not ours:
        problem = "is not a state that boundwatch wrote"
        raise SchemaMismatch(problem, where=where, remedy="name another file")
    if links > 1:  # after a kill, SQLite finds the latest commits by the file's name
        problem = "has several names (hard links), of which only one may be used"
        remedy = "delete the others, or use a file of its own"
        raise InvalidSetting(problem, where=where, remedy=remedy)


def _key(number: object) -> int | str:
    """Return an id as the index keeps it: a whole number, or the digest of any other JSON value."""
    if type(number) is int and abs(number) < 1 << 63:
        return number
    try:
        text = json.dumps(number, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidCost(f"the id {shown(number)} is not a JSON value") from error
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
