"""boundwatch token: who may report, read and administer."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from boundwatch.cli import output as out
from boundwatch.cli.root import PARTS, Group, command
from boundwatch.errors import MissingExtra

if TYPE_CHECKING:
    from boundwatch.server.database import Database

group: dict[str, Any] = {}


@command(
    group=group,
    example="boundwatch token create admin --scope administer\n"
    "boundwatch token create cell-2 --scope report --stream 'arm-*'",
)
def create(
    name: str,
    *,
    scope: list[str],
    stream: list[str] | None = None,
    database: str | None = None,
) -> None:
    """Create a token and print it. Only its hash is kept: this is the only time you see it.

    Options
    -------
    name NAME: What pages and the audit log call it.
    scope SCOPE: report, read, label or administer (which includes read and label).
    stream PATTERN: Streams that it may report for, such as 'arm-*'. [default: all]
    """
    with _open(database, create=True) as opened, opened.write() as connection:
        from boundwatch.server.access import create_token

        token = create_token(connection, name, scope, stream or ["*"], by="command line")
    print(token)


@command(group=group, example="boundwatch token revoke cell-2")
def revoke(name: str, *, database: str | None = None) -> None:
    """Revoke a token and end its sessions; running servers refuse it within two seconds.

    Options
    -------
    name NAME: Which one.
    """
    with _open(database) as opened, opened.write() as connection:
        from boundwatch.server.access import revoke_token

        revoke_token(connection, name, by="command line")
    print(f"revoked {name}")


@command(group=group, example="boundwatch token list")
def list_(*, database: str | None = None, as_json: bool = False) -> None:
    """List the tokens, valid and revoked."""
    with _open(database) as opened, opened.read() as connection:
        from boundwatch.server.access import list_tokens

        rows = [dict(row) for row in list_tokens(connection)]
    if as_json:
        out.print_json(rows)
        return
    for row in rows:
        day = time.strftime("%Y-%m-%d", time.gmtime(row["created"]))
        state = "revoked" if row["revoked"] else "valid"
        streams = " ".join(json.loads(row["streams"]))
        print(f"  {state:8} {day}  {row['scopes']:24} {streams:20} {row['name']}")


def _open(database: str | None, *, create: bool = False) -> closing[Database]:
    try:
        from boundwatch.server.database import Database
        from boundwatch.server.settings import Settings
    except ImportError as error:
        raise MissingExtra("boundwatch token", "serve") from error
    opened = Database(Settings.gather({"database": database}).database)
    opened.migrate(create=create)
    return closing(opened)


_ABOUT = "Create, list and revoke the tokens of a live monitor. Needs the extra `serve`."
PARTS["token"] = Group(_ABOUT, group.keys, group.__getitem__)
