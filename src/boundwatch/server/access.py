"""Who may do what: tokens with scopes, sessions of browsers, and a record of every administrative act."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from sqlalchemy import RowMapping, delete, insert, select, update
from sqlalchemy.engine import Connection
from starlette.concurrency import run_in_threadpool

from boundwatch.errors import InvalidSetting
from boundwatch.server.database import Database
from boundwatch.server.models import Name, check
from boundwatch.server.tables import audit, sessions, tokens

SCOPES = ("report", "read", "label", "administer")
SESSION_SECONDS = 12 * 3600.0
_REMEMBERED = 1.0  # seconds; within two a revoked token is refused everywhere


@dataclass(frozen=True)
class Actor:
    """Somebody who may do something."""

    name: str
    scopes: frozenset[str]
    streams: tuple[str, ...] = ("*",)

    def may(self, scope: str) -> bool:
        """Return whether the actor has a scope; one that administers may also read and label."""
        return scope in self.scopes or (scope in ("read", "label") and "administer" in self.scopes)

    def may_report(self, stream: str) -> bool:
        """Return whether the actor may report episodes of a stream."""
        return "report" in self.scopes and any(fnmatchcase(stream, pattern) for pattern in self.streams)


EVERYBODY = Actor("local", frozenset(SCOPES))
"""Anybody who reaches a server that listens on loopback only, before the first token is created."""


def create_token(
    connection: Connection, name: str, scopes: Iterable[str], streams: Iterable[str] = ("*",), *, by: str
) -> str:
    """Create a token and return it; only its hash is kept, so this is the only time it is seen."""
    name = check(Name, name, "name")
    chosen, patterns = sorted(set(scopes)), list(streams)
    if unknown := set(chosen or [""]) - set(SCOPES):
        remedy = f"choose from {', '.join(SCOPES)}"
        raise InvalidSetting("is unknown", name="scope", value=min(unknown), remedy=remedy)
    if connection.execute(select(tokens.c.id).where(tokens.c.name == name)).first():
        problem = "is taken, also by revoked tokens"
        raise InvalidSetting(problem, name="name", value=name, remedy="choose another name")
    token = f"bw_{secrets.token_urlsafe(32)}"
    kept = {"name": name, "scopes": " ".join(chosen), "streams": json.dumps(patterns)}
    connection.execute(insert(tokens).values(hash=hashed(token), created=time.time(), **kept))
    record(connection, by, "token created", f"{name}: {' '.join(chosen)}; streams {' '.join(patterns)}")
    return token


def revoke_token(connection: Connection, name: str, *, by: str) -> None:
    """Revoke a token and end its sessions."""
    query = select(tokens).where(tokens.c.name == name, tokens.c.revoked.is_(None))
    if (row := connection.execute(query).mappings().first()) is None:
        remedy = "`boundwatch token list` names them"
        raise InvalidSetting("is not a valid token", name="name", value=name, remedy=remedy)
    connection.execute(update(tokens).where(tokens.c.id == row["id"]).values(revoked=time.time()))
    connection.execute(delete(sessions).where(sessions.c.token_id == row["id"]))
    record(connection, by, "token revoked", name)


def list_tokens(connection: Connection) -> list[RowMapping]:
    """Return all tokens, without their hashes."""
    columns = (tokens.c.name, tokens.c.scopes, tokens.c.streams, tokens.c.created, tokens.c.revoked)
    return list(connection.execute(select(*columns).order_by(tokens.c.name)).mappings())


def record(connection: Connection, actor: str, act: str, detail: str) -> None:
    """Write an administrative act into the audit log, in the transaction that does it."""
    connection.execute(insert(audit).values(time=time.time(), actor=actor, act=act, detail=detail[:2000]))


def hashed(secret: str) -> str:
    """Return what is stored of a secret; tokens are 256 random bits, which need no salt."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Gatekeeper:
    """Recognizes tokens and sessions, and remembers what it found for a second."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._found: dict[tuple[str, str], tuple[float, Actor | None]] = {}

    async def recognize(self, kind: str, secret: str) -> Actor | None:
        """Return who comes with a token or session (with neither: whether everybody may); None: nobody."""
        until, actor = self._found.get((kind, secret), (0.0, None))
        if until < time.monotonic():
            actor = await run_in_threadpool(self._look_up, kind, secret)
            if len(self._found) > 10_000:  # somebody is guessing
                self._found.clear()
            self._found[kind, secret] = time.monotonic() + _REMEMBERED, actor
        return actor

    def open_session(self, token: str) -> str | None:
        """Return the secret of a new session for a valid token."""
        now, secret = time.time(), secrets.token_urlsafe(32)
        with self._database.write() as connection:
            query = select(tokens.c.id).where(tokens.c.hash == hashed(token), tokens.c.revoked.is_(None))
            if (token_id := connection.execute(query).scalar()) is None:
                return None
            connection.execute(delete(sessions).where(sessions.c.expires < now))
            row = {"hash": hashed(secret), "token_id": token_id, "expires": now + SESSION_SECONDS}
            connection.execute(insert(sessions).values(created=now, **row))
        return secret

    def close_session(self, secret: str) -> None:
        """End a session."""
        with self._database.write() as connection:
            connection.execute(delete(sessions).where(sessions.c.hash == hashed(secret)))
        self._found.pop(("session", secret), None)

    def _look_up(self, kind: str, secret: str) -> Actor | None:
        query = select(tokens).where(tokens.c.revoked.is_(None))
        if kind == "nothing":
            query = select(tokens).limit(1)
        elif kind == "token":
            query = query.where(tokens.c.hash == hashed(secret))
        else:
            is_open = (sessions.c.hash == hashed(secret)) & (sessions.c.expires > time.time())
            query = query.join(sessions).where(is_open)
        with self._database.read() as connection:
            row = connection.execute(query).mappings().first()
        if kind == "nothing":
            return EVERYBODY if row is None else None
        if row is None:
            return None
        return Actor(row["name"], frozenset(row["scopes"].split()), tuple(json.loads(row["streams"])))
