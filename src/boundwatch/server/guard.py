"""What stands in front of every route: host, origin, size, speed, rate and identity, in this order.

Nothing behind it runs for a request that is refused here. A route is closed unless it is listed as public.
Slow and large headers are cut off before there is a request.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from sqlalchemy.exc import SQLAlchemyError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from boundwatch.server.access import Actor, Gatekeeper
from boundwatch.server.database import Sentinel, log_failure

COOKIE = "boundwatch_session"
LARGEST_BODY = 1 << 20
SLOWEST_BODY = 10.0
LARGEST_HEADERS = 1 << 16
SLOWEST_HEADERS = 10.0
_SAFE = ("GET", "HEAD", "OPTIONS")
_PUBLIC = ("/healthz", "/readyz", "/sign-in")  # and what is in /static/
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def problem(status: int, detail: str, **headers: str) -> Response:
    """Return an error as application/problem+json (RFC 9457)."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return Response(json.dumps(content), status, headers, media_type="application/problem+json")


def is_form(headers: Headers) -> bool:
    """Return whether what is sent is a form, as browsers send it."""
    kinds = ("application/x-www-form-urlencoded", "multipart/form-data")
    return headers.get("content-type", "").lower().startswith(kinds)


def no_answer() -> Response:
    """Return what is said while the database is away."""
    return problem(503, "the database does not answer; send the same again later", **{"Retry-After": "1"})


class Impatient(HttpToolsProtocol):
    """A connection that ends when the headers of a request take too long or too much space.

    They must be there ten seconds after the connection was made or the last answer was given: one that
    sends a byte now and then uvicorn would keep.
    """

    _timer: asyncio.TimerHandle | None = None
    _received: int | None = None
    """How much has come of headers that are not complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what came, and count it while headers are incomplete."""
        super().data_received(data)
        if self._received is not None:
            self._received += len(data)
            if self._received > LARGEST_HEADERS:
                self._cut_off(b"431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        """Begin to count."""
        super().on_message_begin()
        self._received = 0

    def on_headers_complete(self) -> None:
        """Wait and count no longer."""
        self._received = None
        self._stop()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request, unless it is there already."""
        super().on_response_complete()
        if self.cycle.response_complete:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave nothing behind."""
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop()
        self._timer = self.loop.call_later(SLOWEST_HEADERS, self._cut_off, b"408 Request Timeout")

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _cut_off(self, status: bytes) -> None:
        self._stop()
        if self._received is not None and not self.transport.is_closing():
            # A browser that opens a connection in advance expects no answer, so it gets none.
            head = b"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
            self.transport.write(b"HTTP/1.1 " + status + head)
        self.transport.close()


class Guard:
    """ASGI middleware that lets through what may pass, with the actor in ``scope["state"]["actor"]``.

    The server answers to `hosts`, and to any literal address: DNS rebinding needs a name. One client may
    send `rate` requests per second for long, and two seconds' worth at once.
    """

    def __init__(
        self, app: ASGIApp, gatekeeper: Gatekeeper, sentinel: Sentinel, hosts: Iterable[str], rate: float
    ) -> None:
        self.app, self.gatekeeper, self.sentinel = app, gatekeeper, sentinel
        self.hosts, self.rate = {host.lower() for host in hosts}, rate
        self._left: set[asyncio.Task[None]] = set()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer: ASGIApp | None = self._refuse(scope, Headers(scope=scope))
        if answer is None and scope["path"] == "/healthz":  # it asks for this process, not for the database
            answer = self.app
        if answer is None and self.sentinel.is_away:
            answer = no_answer()
        await (answer or self._answer_in_time)(scope, receive, send_guarded)

    async def _answer_in_time(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say that the database is away as soon as that is known; what waits for it is left."""
        has_begun = is_left = False

        async def send_unless_left(message: Message) -> None:
            nonlocal has_begun
            if not is_left:
                has_begun = True
                await send(message)

        ended = asyncio.Event()
        work = asyncio.create_task(self._answer(scope, receive, send_unless_left))
        work.add_done_callback(lambda _: ended.set())
        self.sentinel.waiting.add(ended)
        try:
            await ended.wait()
            if has_begun or work.done():
                await work
                return
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            self.sentinel.waiting.discard(ended)
        is_left = True
        self._left.add(work)
        work.add_done_callback(self._forget)
        await no_answer()(scope, receive, send)

    def _forget(self, work: asyncio.Task[None]) -> None:
        self._left.discard(work)
        if not work.cancelled():
            work.exception()  # else asyncio logs it

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        scope.setdefault("state", {})["recognize"] = partial(self._recognize, headers)
        try:
            answer = self._admit(scope, headers, await self._recognize(headers))
        except SQLAlchemyError as error:
            log_failure("tokens cannot be read", error)
            answer = no_answer()
        if answer is None and scope["method"] not in _SAFE:
            body = await _read(headers, receive)
            if isinstance(body, bytes):
                await self.app(scope, _again(body, receive), send)
                return
            answer = body
        await (answer or self.app)(scope, receive, send)

    def _refuse(self, scope: Scope, headers: Headers) -> Response | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            said = f"Host = {host[:80]!r} is not a name of this server; add it with --allow-host"
            return problem(421, said)
        if scope["method"] not in _SAFE:
            origin, site = headers.get("origin"), headers.get("sec-fetch-site")
            foreign = origin is not None and urlsplit(origin).netloc.lower() != host.lower()
            is_blind = is_form(headers) and not (origin or site)
            if foreign or site not in (None, "same-origin", "none") or is_blind:
                return problem(403, "the request comes from another site; open this server's own page")
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            return name in self.hosts or bool(ipaddress.ip_address(name))
        except ValueError:
            return False

    async def _recognize(self, headers: Headers) -> Actor | None:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme:
            return await self.gatekeeper.recognize(
                "token", token.strip() if scheme.lower() == "bearer" else ""
            )
        with suppress(CookieError):
            if morsel := SimpleCookie(headers.get("cookie", "")).get(COOKIE):
                found = await self.gatekeeper.recognize("session", morsel.value)
                if found is not None:  # a stale cookie must not lock the owner of loopback out
                    return found
        return await self.gatekeeper.recognize("nothing", "")

    def _admit(self, scope: Scope, headers: Headers, actor: Actor | None) -> Response | None:
        path = scope["path"]
        client = scope["client"][0] if scope.get("client") else "local"
        if path == "/sign-in" and scope["method"] == "POST":
            scope["state"]["may_guess"] = self._spend(f"sign-in {client}", 0.2, 10)
        name = client if actor is None else f"{actor.name} {client}"
        if not self._spend(name, self.rate, 2 * self.rate):
            said = f"more than {self.rate:g} requests per second; slow down"
            return problem(429, said, **{"Retry-After": "1"})
        scope["state"]["actor"] = actor
        if actor is not None or path in _PUBLIC or path.startswith("/static/"):
            return None
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse(f"/sign-in?next={quote(path)}", 303)
        remedy = "send the header 'Authorization: Bearer bw_…'; `boundwatch token create` makes tokens"
        return problem(401, f"no valid token; {remedy}", **{"WWW-Authenticate": "Bearer"})

    def _spend(self, name: str, rate: float, most: float) -> bool:
        now = time.monotonic()
        left, then = self._buckets.pop(name, (most, now))
        left = min(most, left + (now - then) * rate)
        self._buckets[name] = (left - 1 if left >= 1 else left, now)
        if len(self._buckets) > 10_000:
            self._buckets.popitem(last=False)
        return left >= 1


async def _read(headers: Headers, receive: Receive) -> bytes | Response:
    too_large = problem(413, f"the body is larger than {LARGEST_BODY} bytes; send smaller batches")
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > LARGEST_BODY:
        return too_large
    body = bytearray()
    try:
        async with asyncio.timeout(SLOWEST_BODY):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return problem(400, "the body ended early; send it again")
                body += message.get("body", b"")
                if len(body) > LARGEST_BODY:
                    return too_large
                if not message.get("more_body"):
                    return bytes(body)
    except TimeoutError:
        said = f"the body took longer than {SLOWEST_BODY:g} s; send it again"
        return problem(408, said, Connection="close")


def _again(body: bytes, receive: Receive) -> Receive:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
