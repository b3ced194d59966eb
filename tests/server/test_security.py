"""Nobody without a token reads or writes anything, and nothing that anybody sends is believed."""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
import time
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.routing import Mount

from boundwatch.cli.monitor import revoke
from boundwatch.errors import InvalidSetting
from boundwatch.server import guard
from boundwatch.server.access import create_token
from boundwatch.server.application import create_application, prepare
from boundwatch.server.database import Database
from boundwatch.server.settings import Settings
from network import episode, wait_until

PUBLIC = {"/healthz", "/readyz", "/sign-in", "/static"}
NASTY = [
    "<script>alert(1)</script>",
    "'; DROP TABLE streams; --",
    "../../etc/passwd",
    "a\x00b",
    "",
    "x" * 101,
    "‮evil",
]


@pytest.fixture(scope="module")
def guarded(start_shared):
    server = start_shared()
    server.report(episode("arm-1", 1), episode("leg-1", 1))
    tokens = {
        "admin": server.token("admin", "administer"),
        "reader": server.token("reader", "read"),
        "cell": server.token("cell", "report", streams=["arm-*"]),
    }
    return SimpleNamespace(server=server, **tokens)


@pytest.fixture(scope="module")
def routes(tmp_path_factory):
    """Return every method and path of the application that is not public, with parameters filled in."""
    url = str(tmp_path_factory.mktemp("routes") / "routes.sqlite")
    Database(url).migrate()
    stack, found = list(create_application(Settings(database=url)).routes), []
    while stack:
        route = stack.pop()
        if isinstance(route, Mount):
            found.append(("GET", route.path))
        elif hasattr(route, "methods"):
            path = route.path.replace("{stream}", "arm-1").replace("{alarm}", "0")
            found += [(name, path.replace("{fingerprint}", "lab")) for name in route.methods - {"HEAD"}]
        else:  # a router that was included
            stack += list(route.original_router.routes)
    kinds = "/ /changes /metrics /api/v1/episodes /api/v1/openapi.json /streams/arm-1 /alarms"
    assert set(kinds.split()) <= {path for _, path in found}
    return [(method, path) for method, path in sorted(found) if path not in PUBLIC]


def test_no_route_answers_without_a_token(guarded, routes):
    for method, path in routes:
        body = b"{}" if method == "POST" else None
        for sent in ({}, {"Authorization": "Bearer bw_wrong"}, {"Authorization": "Bearer "}):
            headers = {"Accept": "application/json", **sent}
            status, answer = guarded.server.ask(method, path, body, headers=headers)
            assert status == 401, (method, path)
            assert set(answer) == {"type", "title", "status", "detail"}
        if method == "GET":
            status, text = guarded.server.ask(method, path, headers={"Accept": "text/html"})
            assert (status, text) == (303, ""), path


def test_a_token_does_nothing_beyond_its_scope(guarded, routes):
    administered = {"/administration", "/api/v1/audit"}
    for method, path in routes:
        body = b"{}" if method == "POST" else None
        if path not in {"/api/v1/episodes", "/api/v1/openapi.json", "/sign-out"}:
            assert guarded.server.ask(method, path, body, token=guarded.cell)[0] == 403, (method, path)
        if (method == "POST" and path != "/sign-out") or path in administered:
            assert guarded.server.ask(method, path, body, token=guarded.reader)[0] == 403, (method, path)


def test_a_token_for_one_stream_cannot_touch_another(guarded):
    server = guarded.server
    assert server.report(episode("arm-1", 2), token=guarded.cell)[0] == 200
    status, problem = server.report(episode("arm-1", 3), episode("leg-1", 3), token=guarded.cell)
    assert (status, "'leg-1'" in problem["detail"]) == (403, True)
    counted = server.ask("GET", "/api/v1/streams/arm-1/episodes", token=guarded.admin)[1]["episodes"]
    assert [each["episode"] for each in counted] == ["1", "2"]  # the batch was refused whole


def test_a_revoked_token_is_refused_within_two_seconds(guarded):
    server, leaving = guarded.server, guarded.server.token("leaving", "read")
    assert server.ask("GET", "/changes", token=leaving)[0] == 200
    revoke("leaving", database=server.database)
    until = time.monotonic() + 2
    while server.ask("GET", "/changes", token=leaving)[0] == 200:
        assert time.monotonic() < until
        time.sleep(0.05)
    assert server.ask("GET", "/changes", token=leaving)[0] == 401
    assert server.ask("GET", "/changes", token=guarded.reader)[0] == 200


def test_only_hashes_are_stored_and_nothing_secret_is_logged(guarded):
    server = guarded.server
    raw = b"".join(path.read_bytes() for path in server.folder.glob("monitor.sqlite*"))
    for token in (guarded.admin, guarded.reader, guarded.cell):
        assert token.encode() not in raw
        assert token not in server.log()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "", "localhost.evil.example", "a b"])
def test_another_host_name_is_refused(guarded, host):
    status, _ = guarded.server.ask("GET", "/healthz", headers={"Host": host})
    assert status in (400, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
    ],
)
def test_a_request_from_another_site_is_refused(guarded, headers):
    status, problem = guarded.server.ask("POST", "/sign-in", b"token=x", headers=headers)
    assert (status, problem["title"]) == (403, "Forbidden")


def test_a_plain_text_body_is_refused(guarded):
    sent = {"token": guarded.cell, "headers": {"Content-Type": "text/plain"}}
    assert guarded.server.ask("POST", "/api/v1/episodes", episode("arm-1", 9), **sent)[0] == 415


def test_oversized_bodies_are_refused(guarded):
    large = b"[" + b" " * guard.LARGEST_BODY + b"]"
    try:
        assert guarded.server.ask("POST", "/api/v1/episodes", large, token=guarded.cell)[0] == 413
    except OSError as error:  # refused before all was sent
        assert isinstance(getattr(error, "reason", error), BrokenPipeError | ConnectionResetError)  # noqa: PT017
    many = [episode("arm-1", i) for i in range(1001)]
    assert guarded.server.report(*many, token=guarded.cell)[0] == 422
    connection = http.client.HTTPConnection("127.0.0.1", guarded.server.port, timeout=10)
    headers = {"Authorization": f"Bearer {guarded.cell}", "Content-Type": "application/json"}
    chunks = (b" " * 65536 for _ in range(40))  # its length is not announced
    try:
        connection.request("POST", "/api/v1/episodes", chunks, headers, encode_chunked=True)
        status = connection.getresponse().status
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # refused before all was sent
    assert status == 413
    connection.close()


@pytest.mark.slow
def test_a_slow_client_is_cut_off(guarded):
    with socket.create_connection(("127.0.0.1", guarded.server.port)) as slow:
        kinds = "Content-Type: application/json\r\nContent-Length: 100"
        sent = f"Host: localhost\r\nAuthorization: Bearer {guarded.cell}\r\n{kinds}\r\n\r\n{{"
        slow.sendall(f"POST /api/v1/episodes HTTP/1.1\r\n{sent}".encode())
        slow.settimeout(guard.SLOWEST_BODY + 5)
        assert b" 408 " in slow.recv(1000)
    assert guarded.server.ask("GET", "/healthz")[0] == 200


@pytest.fixture
def impatient(monkeypatch):
    """Return the port of a server of one route that waits half a second for headers."""
    monkeypatch.setattr(guard, "SLOWEST_HEADERS", 0.5)

    async def answer(_scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    config = uvicorn.Config(answer, port=0, http=guard.Impatient, lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    wait_until(lambda: server.started)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def _trickle(connection, drops):
    """Send drop after drop until the other end closes, and return what it said; it must close."""
    connection.settimeout(0.05)
    said = b""
    for drop in drops:
        try:
            connection.sendall(drop)
            while part := connection.recv(1000):
                said += part
            return said  # closed
        except TimeoutError:
            continue
        except OSError:
            return said
    raise AssertionError("it would have read on for ever")


def _take_answer(connection):
    said = b""
    while not said.endswith(b"\r\nok"):
        said += connection.recv(1000) or pytest.fail(f"cut off after {said!r}")


@pytest.mark.parametrize("kept", [False, True])
def test_a_client_that_sends_headers_slowly_is_cut_off(impatient, kept):
    with socket.create_connection(("127.0.0.1", impatient)) as slow:
        if kept:  # it was served before, and came back
            slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            _take_answer(slow)
        head = (f"X-{number}: 1\r\n".encode() for number in range(1000))
        said = _trickle(slow, itertools.chain([b"GET / HTTP/1.1\r\n"], head))
    assert said.startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("drop", [b"", b"\r\n"])
def test_a_client_that_sends_no_request_is_cut_off(impatient, drop):
    with socket.create_connection(("127.0.0.1", impatient)) as slow:
        assert _trickle(slow, itertools.repeat(drop, 1000)) == b""


def test_headers_without_end_are_refused(impatient):
    with socket.create_connection(("127.0.0.1", impatient)) as greedy:
        head = itertools.chain([b"GET / HTTP/1.1\r\nX: "], itertools.repeat(b"x" * 60_000, 1000))
        assert _trickle(greedy, head).startswith(b"HTTP/1.1 431 ")


def test_the_time_for_headers_is_not_the_time_for_the_answer(impatient):
    with socket.create_connection(("127.0.0.1", impatient)) as patient:
        patient.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo")
        time.sleep(0.7)
        patient.sendall(b"dy")
        _take_answer(patient)


@pytest.mark.parametrize(
    "path", ["/static/../application.py", "/static/%2e%2e/application.py", "/static//etc/passwd"]
)
def test_no_file_outside_is_served(guarded, path):
    status, _ = guarded.server.ask("GET", path, token=guarded.admin)
    assert status == 404


@pytest.mark.parametrize("name", NASTY)
def test_nasty_names_are_refused_or_escaped(guarded, name):
    server = guarded.server
    assert server.report(episode(name, 1), token=guarded.cell)[0] == 422
    assert server.report(episode("arm-1", name), token=guarded.cell)[0] in (200, 422)
    for path in ("/api/v1/certificates", "/api/v1/streams"):
        content = {"name": name, "certificate": name, "streams": [name]}
        assert server.ask("POST", path, content, token=guarded.admin)[0] == 422
    assert server.ask("GET", "/api/v1/streams", token=guarded.admin)[1]["total"] == 2


def test_names_in_links_and_searches_are_escaped(guarded):
    for path in ("/?search=%3Cscript%3Ealert(1)%3C/script%3E", "/?search=%25", "/?search='%20OR%201=1"):
        status, text = guarded.server.ask("GET", path, token=guarded.admin)
        assert status == 200
        assert "<script>alert" not in text
        assert "No stream matches" in text
    status, _ = guarded.server.ask("GET", "/streams/%3Cscript%3E", token=guarded.admin)
    assert status == 404


def test_every_answer_has_a_strict_policy(guarded):
    connection = http.client.HTTPConnection("127.0.0.1", guarded.server.port)
    for path in ("/", "/sign-in", "/api/v1/streams", "/static/live.js", "/nothing"):
        connection.request("GET", path, headers={"Authorization": f"Bearer {guarded.admin}"})
        answer = connection.getresponse()
        text = answer.read().decode()
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "<script>" not in text
        assert "style=" not in text
        assert "http://" not in text.replace(guarded.server.url, "")
    connection.close()


def test_signing_in_is_limited(guarded):
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": guarded.server.url}
    answers = [guarded.server.ask("POST", "/sign-in", b"token=x", headers=headers)[0] for _ in range(15)]
    assert answers[0] == 403
    assert answers[-1] == 429
    # Whoever has a token and comes from the same address, as all do behind a proxy, is let in.
    valid = f"token={guarded.reader}".encode()
    assert guarded.server.ask("POST", "/sign-in", valid, headers=headers)[0] == 303
    assert guarded.server.ask("POST", "/sign-in", b"token=x", headers=headers)[0] == 429


@pytest.mark.parametrize("options", [(), ("--proxy", "127.0.0.1")])
def test_who_guesses_is_known_by_what_a_declared_proxy_says(start, options):
    server = start(*options)
    server.token("reader", "read")
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": server.url}

    def guess(client):
        sent = headers | {"X-Forwarded-For": client}
        return [server.ask("POST", "/sign-in", b"token=x", headers=sent)[0] for _ in range(15)][-1]

    assert guess("192.0.2.1") == 429
    first = server.ask("POST", "/sign-in", b"token=x", headers=headers | {"X-Forwarded-For": "192.0.2.2"})
    assert first[0] == (403 if options else 429)  # another name gains nothing where nobody is believed


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_leads_nowhere_else(target):
    from boundwatch.server.pages import local_path

    assert local_path(target) == "/"
    assert local_path("/streams/arm-1?generation=2") == "/streams/arm-1?generation=2"


def test_without_a_token_only_loopback_is_served(tmp_path):
    open_to_all = Settings(host="0.0.0.0", database=str(tmp_path / "new.sqlite"))  # noqa: S104
    with pytest.raises(InvalidSetting) as refused:
        prepare(open_to_all)
    assert refused.value.name == "host"
    database = Database(open_to_all.database)
    with database.write() as connection:
        create_token(connection, "admin", ["administer"], by="test")
    database.close()
    prepare(open_to_all).close()
    for host in ("127.0.0.1", "localhost", "::1"):
        assert Settings(host=host).is_local
