"""The page of an evaluation for phones: the next trial in large letters, its outcome by one large button.

Whoever has no token sees an empty sheet. A phone sends each outcome until it is acknowledged, with how often
its trial was recorded before (`attempt`): so the log tells a repeated message from a second outcome.
"""

from __future__ import annotations

import asyncio
import hmac
import io
import ipaddress
import re
import secrets
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, TextIO, TypeVar
from urllib.parse import quote, urlsplit

from msgspec import Meta

from boundwatch._support import schema
from boundwatch.errors import InvalidSetting, MissingExtra, Refusal, SchemaMismatch
from boundwatch.evaluation.evaluation import Evaluation
from boundwatch.evaluation.replay import LEFT, Replay, row_of

try:
    import segno
    import uvicorn
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.datastructures import Headers, MutableHeaders
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import FileResponse, JSONResponse, Response
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError as error:
    raise MissingExtra("the page of an evaluation", "serve") from error

PORT = 8090
LARGEST_BODY = 1 << 16
SLOWEST_BODY = 10.0
SHORTEST_TOKEN = 12
_STATIC = Path(__file__).with_name("static")
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; media-src blob:; connect-src 'self'; worker-src 'self'; form-action 'none'; "
    "frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_Text = Annotated[str, Meta(min_length=1, max_length=500)]
_Station = Annotated[str, Meta(max_length=40, pattern=r"^(?! )[^\x00-\x1f\x7f-\x9f]+(?<! )$")]
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class _Next:
    """Who asks for a trial; without a station, how far it is."""

    station: _Station | None


@dataclass(frozen=True)
class _Undo(_Next):
    """Which outcome a phone takes back."""

    evaluation: str
    trial: int
    reason: _Text


@dataclass(frozen=True)
class _Outcome(_Next):
    """What a phone says of a trial."""

    evaluation: str
    trial: int
    attempt: Annotated[int, Meta(ge=0)]
    success: bool | None = None
    score: float | None = None
    milestones: list[_Text] | None = None
    aborted: _Text | None = None
    discarded: _Text | None = None
    note: _Text | None = None


class Sheet:
    """What the page may know and do; nothing in it names a policy that the protocol hides."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation, self._lock = evaluation, threading.Lock()

    def next(self, sent: _Next) -> dict[str, Any]:
        """Hand out the trial of a station; the same until it is recorded."""
        with self._lock:
            return self._state(sent.station)

    def record(self, sent: _Outcome) -> dict[str, Any]:
        """Keep an outcome, unless this very message was taken before."""
        with self._lock:
            known, said = self._known(sent.evaluation), row_of(sent.trial, vars(sent))
            before, block = known.attempts.get(sent.trial, []), known.block_of(sent.trial)
            if sent.attempt == len(before) and (not before or (block and sent.trial == block.due)):
                self._evaluation.record(**said)
            elif before[sent.attempt : sent.attempt + 1] != [said]:
                raise HTTPException(
                    409, f"trial {sent.trial} has another outcome already; look at the next trial"
                )
            return self._state(sent.station)

    def undo(self, sent: _Undo) -> dict[str, Any]:
        """Take back the latest outcome of a station."""
        with self._lock:
            if sent.station is None or self._known(sent.evaluation).undoable(sent.station) != sent.trial:
                raise HTTPException(409, f"the outcome of trial {sent.trial} cannot be taken back (any more)")
            self._evaluation.undo(sent.reason, sent.station)
            return self._state(sent.station)

    def _known(self, sealed: str) -> Replay:
        known = self._evaluation.replay()
        if sealed != known.sealed:
            raise HTTPException(412, "this is an outcome of another evaluation; open the page of that one")
        return known

    def _state(self, station: str | None) -> dict[str, Any]:
        """Return how far it is and, for a station, what is to be run: the rest of a block, in its order."""
        trial = None if station is None else self._evaluation.next(station)
        status, known = self._evaluation.status, self._evaluation.replay()
        protocol, trials = known.protocol, []
        if trial is not None and (block := known.block_of(trial.number)) is not None:
            for number in range(trial.number, block.first + len(block.policies)):
                attempt = len(known.attempts.get(number, ()))
                trials.append(asdict(known.trial(block, number)) | {"attempt": attempt})
        return {
            "evaluation": known.sealed,
            "stations": sorted({each.station for each in known.blocks if each.station}),
            "measure": protocol.measure,
            "score_range": protocol.score_range,
            "milestones": protocol.milestones and list(protocol.milestones.items()),
            "repeated": [kind for kind in LEFT if getattr(protocol, kind) == "repeat"],
            "status": {name: status[name] for name in ("state", "rounds", "most_rounds", "trials")},
            "undo": None if station is None else known.undoable(station),
            "trials": trials,
        }


def application(evaluation: Evaluation, token: str | None = None) -> ASGIApp:
    """Return the page of an open evaluation; with a token, what it shows is for those who have that."""
    sheet = Sheet(evaluation)
    return guarded(
        "page.html",
        [
            Route("/worker.js", lambda _: FileResponse(_STATIC / "worker.js")),  # its place is its scope
            acting("/api/next", _Next, sheet.next),
            acting("/api/record", _Outcome, sheet.record),
            acting("/api/undo", _Undo, sheet.undo),
        ],
        token,
    )


def acting(path: str, kind: type[Kind], act: Callable[[Kind], dict[str, Any]]) -> Route:
    """Return what answers messages of a kind."""

    async def answer(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(act, await _received(kind, request)))

    return Route(path, answer, methods=["POST"])


def guarded(first: str, routes: list[Route], token: str | None) -> ASGIApp:
    """Return a page with its routes, behind the guard."""
    page = [
        Route("/", lambda _: FileResponse(_STATIC / first)),
        Mount("/static", StaticFiles(directory=_STATIC)),
    ]
    answers: Any = {HTTPException: _refused, Refusal: _said}
    return _Guard(Starlette(routes=[*page, *routes], exception_handlers=answers), token)


def _refused(_: Request, error: HTTPException) -> Response:
    return JSONResponse({"detail": error.detail}, error.status_code)


def _said(_: Request, refusal: Refusal) -> Response:
    """Answer what was refused; what is wrong with the file is said in the terminal, and to be sent again."""
    if refusal.where is None and not isinstance(refusal, SchemaMismatch):
        return JSONResponse({"detail": str(refusal)}, 409)
    sys.stderr.write(f"boundwatch: {refusal}\n")
    return JSONResponse({"detail": "the file of the evaluation cannot be used now; see its terminal"}, 503)


async def _received(kind: type[Kind], request: Request) -> Kind:
    body = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_BODY:
                    raise HTTPException(413, f"this is more than {LARGEST_BODY} bytes; write a shorter note")
        return schema.convert(kind, schema.decode(bytes(body), "message"))
    except TimeoutError:
        raise HTTPException(408, "the message did not arrive in time; send it again") from None
    except SchemaMismatch as mismatch:
        raise HTTPException(422, str(mismatch)) from None


class _Guard:
    """ASGI middleware: host, origin and token of a request, before anything else looks at it.

    The token comes in a header, never in a cookie, so no other site can make a browser send it. Without one
    the page is for this machine, and a name that somebody else may point here (DNS rebinding) is refused.
    """

    def __init__(self, app: ASGIApp, token: str | None) -> None:
        self.app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        is_asked = scope["path"].startswith("/api/")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS | {"Cache-Control": "no-store" if is_asked else "no-cache"})
            await send(message)

        refused = self._refuse(scope["method"], Headers(scope=scope), is_asked)
        answer = self.app if refused is None else JSONResponse({"detail": refused[1]}, refused[0])
        await answer(scope, receive, send_guarded)

    def _refuse(self, method: str, headers: Headers, is_asked: bool) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if self._token is None and not is_loopback(_hostname(host)):
            return 421, "without a token this page is for its own machine, by the name localhost"
        if method not in ("GET", "HEAD"):
            origin, site = headers.get("origin"), headers.get("sec-fetch-site")
            foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
            if foreign or site not in (None, "same-origin", "none"):
                return 403, "the request comes from another site; open this page itself"
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return 415, "send JSON"
        given = headers.get("authorization", "").encode()
        if is_asked and self._token and not hmac.compare_digest(given, f"Bearer {self._token}".encode()):
            return 401, "this link is not valid any more; open the one in the terminal"
        return None


def _hostname(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def serve(
    path: str | PathLike[str], *, host: str = "127.0.0.1", port: int = PORT, token: str | None = None
) -> None:
    """Serve the page of an evaluation until the process is told to end, and print its link.

    Parameters
    ----------
    path
        The file of the evaluation.
    host, port
        Where to listen; port 0 takes a free one. Beyond this machine the link has a token, and a QR code.
    token
        The one to use, which keeps links valid after a restart; None draws one where one is needed.
    """
    with Evaluation.open(path) as evaluation:
        run(
            lambda known: application(evaluation, known),
            (host, port, token),
            (f"{fspath(path)}: the trial sheet", "record outcomes"),
        )


def run(
    page: Callable[[str | None], ASGIApp], where: tuple[str, int, str | None], what: tuple[str, str]
) -> None:
    """Serve the page of a token at (host, port, token) until the process is told to end; see `serve`.

    `what` is what the page is and what one can do on it.
    """
    host, port, token = where
    if token is not None and (len(token) < SHORTEST_TOKEN or not re.fullmatch("[!-~]+", token)):
        remedy = f"give {SHORTEST_TOKEN} letters and digits or more, or leave it out"
        raise InvalidSetting("is too easy to guess, or no plain text", name="token", remedy=remedy)
    if token is None and not is_loopback(host):
        token = secrets.token_urlsafe(16)
    with _listening(host, port) as listener:
        greet(*what, _url(host, listener.getsockname()[1], token), sys.stdout)
        settings: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False}
        settings |= {"timeout_graceful_shutdown": 2, "limit_concurrency": 500}
        uvicorn.Server(uvicorn.Config(page(token), **settings)).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listening(host: str, port: int) -> socket.socket:
    try:
        if not 0 <= port < 1 << 16:  # getaddrinfo would take another
            raise OSError("no such port")
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=128)
    except OSError as error:
        problem = f"{host}:{port} cannot be listened on, {error.strerror or error}"
        raise InvalidSetting(problem, remedy="stop what listens there, or choose another port") from error


def _url(host: str, port: int, token: str | None) -> str:
    """Return the link to open; of all addresses, the one by which other machines are reached."""
    if host in ("", "0.0.0.0", "::"):  # noqa: S104  (a comparison)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
                host = probe.getsockname()[0]
            except OSError:
                host = socket.gethostname()
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/" + ("" if token is None else f"#{quote(token)}")


def greet(what: str, act: str, url: str, terminal: TextIO) -> None:
    """Print the link, and for phones its QR code: white on black whatever the colors of the terminal are."""
    terminal.write(f"{what} is at {url}  (Ctrl+C ends it; nothing is lost)\n")
    if is_loopback(_hostname(urlsplit(url).netloc)):
        terminal.write("  for this machine only; phones need --host 0.0.0.0\n")
    else:
        terminal.write(f"  anyone with this link can {act}; others on the network may read it\n")
        if terminal.isatty() and (terminal.encoding or "").lower().startswith("utf"):
            drawn = io.StringIO()
            segno.make_qr(url, error="l").terminal(drawn, border=2, compact=True)
            for line in drawn.getvalue().splitlines():
                terminal.write(f"\033[97;40m{line}\033[0m\n")
    terminal.flush()
