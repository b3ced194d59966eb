"""The robot's side: reports episodes to a server without ever waiting for it, and loses none."""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import re
import socket
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from time import time as clock
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from boundwatch._support.describing import one_line
from boundwatch.errors import InvalidSetting, Refusal
from boundwatch.server.models import is_address, parse_reports
from boundwatch.watching.store import Store

_LOG = logging.getLogger("boundwatch.client")
_BATCH = 100
_TIMEOUT = 10.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0
_HOLD = 30.0
_MOST_OWNERS = 20  # programs of one user that report to one server at a time
_ROUTE = "/api/v1/episodes"
# What the server says about an episode, and will say again. It says 415 and 421, too, but these are about
# what stands between, since the client itself declares JSON and calls the server by the name it was given.
_FOR_GOOD = (400, 409, 422)


class Rejected(NamedTuple):
    """An episode that the server will never take, and why."""

    stream: str
    episode: str
    reason: str

    def __str__(self) -> str:
        return f"episode {self.episode} of stream {self.stream} was rejected: {self.reason}"


class Client:
    """Reports episodes to `boundwatch serve`.

    `report` writes the episode to a file on this machine and returns; a thread sends it. While the network
    or the server is down, episodes wait in the file, also when the program ends; they are sent in their
    order when it is back. The server counts each once, however often it is sent.

    Parameters
    ----------
    url, token
        The server, such as ``"http://monitor:8080"``, and a token with the scope ``report``; left out: the
        environment variable ``BOUNDWATCH_TOKEN``.
    spool
        The file in which episodes wait, for one client at a time. Left out: one per server in
        ``~/.local/state/boundwatch``, with a number if other programs report to this server meanwhile.

    Examples
    --------
    >>> import tempfile
    >>> client = Client("http://127.0.0.1:9", spool=tempfile.mkdtemp() + "/spool.sqlite")
    >>> client.report("arm-1", cost=0.2, episode="2026-11-16/17")
    '2026-11-16/17'
    >>> client.waiting  # nobody listens there: it is kept
    1
    >>> client.close(timeout=0)
    """

    def __init__(
        self, url: str, *, token: str | None = None, spool: str | os.PathLike[str] | None = None
    ) -> None:
        self.url = str(url).strip().rstrip("/")
        if not is_address(self.url):
            problem, remedy = "is not the address of a server", "give http://host:port"
            raise InvalidSetting(problem, name="url", value=url, remedy=remedy)
        self._parts = parts = urlsplit(self.url)
        # Somebody may have put a password into the address.
        self._server = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
        token = str(os.environ.get("BOUNDWATCH_TOKEN", "") if token is None else token).strip()
        if not (token.isascii() and token.isprintable()) or " " in token:
            remedy = "give it as `boundwatch token create` printed it"
            raise InvalidSetting("token or BOUNDWATCH_TOKEN has characters that no token has", remedy=remedy)
        self._headers = {"Content-Type": "application/json", "User-Agent": "boundwatch-client"}
        self._headers |= {"Authorization": f"Bearer {token}"} if token else {}
        if not isinstance(spool, str | os.PathLike | None):
            raise InvalidSetting("is not a path", name="spool", value=spool, remedy="name a file")
        self._spool = _open_default(parts.netloc) if spool is None else Store(spool, "spool")
        self._rejected: list[list[str]] = self._spool.facts.get("rejected", [])
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._held: dict[str, float] = {}
        self._connection: http.client.HTTPConnection | None = None
        self.problem: str | None = None
        """Why the last attempt to deliver failed; None if it did not."""
        self._is_unknown = False  # the token, to the server
        self._forbidden: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="boundwatch-client", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return one_line(self, {"url": self._server, "spool": str(self._spool.path), "problem": self.problem})

    def __str__(self) -> str:
        state = "closed" if self._ended.is_set() else "open"
        failure = "" if self.problem is None else f"; the last attempt failed: {self.problem}"
        return f"Client that reports to {self._server}, {state}{failure}"

    def report(
        self,
        stream: str,
        *,
        cost: float | None = None,
        success: bool | None = None,
        episode: str | None = None,
        time: datetime | str | float | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> str:
        """Report one episode and return its id. It is on this machine's disk when this returns.

        Parameters
        ----------
        stream
            Whose episode it is: a robot, or a robot and a task.
        cost, success
            Its cost in [0, 1], or whether it succeeded; one of the two.
        episode
            An id of its own within the stream; left out: a new one. Give one if the same episode may be
            reported twice, for example by a program that is started again.
        time
            When it ended; left out: now. A `datetime` without a zone is local time, a text without one UTC.
        meta
            What else to keep with it: JSON values.
        """
        with contextlib.suppress(ValueError, OverflowError):  # a year that no clock has is refused below
            time = time.astimezone().isoformat() if isinstance(time, datetime) else time
        given = {
            "stream": stream,
            "episode": str(uuid.uuid4()) if episode is None else episode,
            "time": round(clock(), 3) if time is None else time,
            "cost": cost,
            "success": success,
            "meta": dict(meta) if isinstance(meta, Mapping) else meta,
        }
        content = {name: _plain(value) for name, value in given.items() if value is not None}
        checked = parse_reports(content)[0]
        self._refuse_closed()
        self._spool.append([(checked.stream, json.dumps(content, allow_nan=False))])
        self._wake.set()
        return checked.episode

    @property
    def waiting(self) -> int:
        """How many episodes have not been acknowledged yet."""
        self._refuse_closed()
        return self._spool.waiting

    @property
    def rejected(self) -> list[Rejected]:
        """The episodes that the server refused for good; they stay in the file."""
        self._refuse_closed()
        return [Rejected(stream, episode, reason) for stream, episode, _, reason in self._rejected]

    def is_forbidden(self, stream: str) -> bool:
        """Return whether the server does not accept the token, or not for this stream; episodes wait then."""
        return self._is_unknown or stream in self._forbidden

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything is delivered, at most so many seconds; return whether it is."""
        deadline = time.monotonic() + timeout
        self._wake.set()
        while self.waiting and time.monotonic() < deadline and not self._ended.is_set():
            time.sleep(0.01)
        return self.waiting == 0

    def close(self, timeout: float = 10.0) -> None:
        """Deliver what can be delivered within so many seconds; the rest waits for the next client."""
        if self._ended.is_set():
            return
        if timeout > 0:
            self.flush(timeout)
        self._ended.set()
        self._wake.set()
        connection = self._connection
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)  # the thread may be waiting for an answer
        self._thread.join(_TIMEOUT)
        self._spool.close()

    def _refuse_closed(self) -> None:
        if self._ended.is_set():
            remedy = "make a new one, with the same spool if you named one"
            raise InvalidSetting("the client is closed", remedy=remedy)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _run(self) -> None:
        pause = _SHORTEST_PAUSE
        while not self._ended.is_set():
            self._wake.clear()
            try:
                delivered = self._deliver()
                self.problem, pause = self.problem if self._held else None, _SHORTEST_PAUSE
                if not delivered:
                    self._wake.wait(1.0 if self._held else 5.0)
            except Exception as error:  # the thread must outlive whatever network, server and disk do
                self._hang_up()
                self.problem = str(error)
                if isinstance(error, OSError | http.client.HTTPException):
                    reason = getattr(error, "strerror", None) or type(error).__name__
                    self.problem = f"{self._server} cannot be reached, {reason}; check that it runs there"
                _LOG.debug("cannot deliver: %s", self.problem, exc_info=True)
                self._ended.wait(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        self._hang_up()

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.close()

    def _deliver(self) -> bool:
        """Send the oldest episodes; return whether any was taken off the spool."""
        now = time.monotonic()
        self._held = {stream: until for stream, until in self._held.items() if until > now}
        rows = self._spool.oldest(_BATCH, without=list(self._held))
        if not rows:
            return False
        status, detail = self._post([row[2] for row in rows])
        if status < 300:
            self._take_off(rows)
            return True
        if len(rows) == 1:
            return self._settle(rows[0], status, detail)
        for row in rows:  # a batch is taken whole or not at all: find the one that is refused
            if row[1] not in self._held:
                status, detail = self._post([row[2]])
                self._take_off([row]) if status < 300 else self._settle(row, status, detail)
        return True

    def _settle(self, row: tuple[int, str, str], status: int, detail: str) -> bool:
        """Keep an episode that may be taken later; put one that never will be aside."""
        number, stream, body = row
        self.problem = detail
        if status == 413:
            raise _Later(detail)
        if status in (403, 404):  # somebody has to bind the stream, or to allow it
            _LOG.warning("stream %s waits: %s", stream, detail)
            self._held[stream] = time.monotonic() + _HOLD
            if status == 403:
                self._forbidden.add(stream)
            return False
        episode = str(json.loads(body)["episode"])
        _LOG.warning("episode %s of stream %s was refused: %s", episode, stream, detail)
        rejected = [*self._rejected, [stream, episode, body, detail]]
        self._spool.keep({"rejected": rejected})
        self._spool.remove([number])
        self._rejected = rejected
        return True

    def _take_off(self, rows: list[tuple[int, str, str]]) -> None:
        self._is_unknown = False
        self._forbidden.difference_update(row[1] for row in rows)
        self._spool.remove(row[0] for row in rows)

    def _post(self, bodies: list[str]) -> tuple[int, str]:
        """Send episodes; return 200, or the status and reason for which the server does not take these.

        An answer that is not about these episodes, but about the server or what stands before it, raises
        `_Later`.
        """
        if self._connection is None:
            is_safe = self._parts.scheme == "https"
            kind = http.client.HTTPSConnection if is_safe else http.client.HTTPConnection
            self._connection = kind(str(self._parts.hostname), self._parts.port, timeout=_TIMEOUT)
        path = self._parts.path.rstrip("/") + _ROUTE
        self._connection.request("POST", path, f"[{','.join(bodies)}]", self._headers)
        answer = self._connection.getresponse()
        text = answer.read(1 << 20)
        try:
            content = json.loads(text)
            if 200 <= answer.status < 300 and content["counted"] + content["repeated"] == len(bodies):
                return 200, ""
            is_ours = answer.headers.get_content_type() == "application/problem+json"
            reason = str(content["detail"])
        except (ValueError, KeyError, TypeError):
            is_ours, reason = False, ""
        said = f"the server answered {answer.status}"
        if is_ours and answer.status in (*_FOR_GOOD, 403, 404):
            return answer.status, reason
        if is_ours:
            said += f": {reason}"
        elif moved := answer.headers.get("Location"):
            said += f", a redirect to {moved.removesuffix(_ROUTE)!r}; give the client the final address"
        else:
            said += ", but not as a boundwatch server does; check the address, and any proxy in between"
        if answer.status in (403, 404, 413):
            return answer.status, said
        self.problem, self._is_unknown = said, answer.status == 401
        raise _Later(said)


def _plain(value: Any) -> Any:
    """Return a number or truth value of NumPy as Python's own."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


class _Later(Exception):
    """Nothing can be delivered now."""


def _open_default(netloc: str) -> Store:
    """Return a file for a server that nobody else has open, with what waits in others that nobody has."""
    base = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "boundwatch"
    safe = re.sub(r"[^\w.-]", "_", netloc.rpartition("@")[2])
    try:
        base.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        problem = f"{base}: cannot be made, {error.strerror}"
        raise InvalidSetting(problem, remedy="name a file with spool") from error
    name = f"spool-{safe}-{socket.gethostname()}"
    numbers = ("", *(f"-{number}" for number in range(2, _MOST_OWNERS)))
    paths = [base / f"{name}{number}.sqlite" for number in numbers]
    for path in paths:
        with contextlib.suppress(InvalidSetting):  # another program has it
            mine = Store(path, "spool")
            break
    else:
        mine = Store(paths[0], "spool")  # says why not
    for path in paths:
        if path != mine.path and path.exists():
            with contextlib.suppress(Refusal), Store(path, "spool") as left:
                lines = left.oldest(sys.maxsize)
                mine.append((stream, body) for _, stream, body in lines)
                left.remove(number for number, *_ in lines)  # after a kill both have them: they count once
    return mine
