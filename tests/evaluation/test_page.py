"""The page of an evaluation, over a real connection: each outcome once, nobody let in, nothing unblinded."""

import hmac
import http.client
import importlib
import io
import json
import re
import signal
import socket
import sqlite3
import sys
import threading
from contextlib import contextmanager

import pytest
import segno
import uvicorn
from benchmarks.kill_page import FAULTS, Phone, campaign, judge

from boundwatch import Evaluation, Protocol
from boundwatch.errors import MissingExtra, Refusal
from boundwatch.evaluation import phones
from network import wait_until
from program import LIMIT, PROGRAM, started

NAMES = ["act-7f3a", "diffusion-99c1"]
TOKEN = "-".join(["nobody", "guesses", "this"])


def protocol(**settings):
    given = {"question": "compare", "policies": NAMES, "tasks": ["mug", "bowl"], "most_rounds": 20, "seed": 3}
    return Protocol(**given | settings)


@contextmanager
def served(evaluation, token=None):
    """Serve a page from a thread, and yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            phones.application(evaluation, token), log_level="warning", server_header=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            wait_until(lambda: server.started)
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()
    evaluation.close()


@pytest.fixture
def serving():
    """Return a function that serves a new evaluation and returns it with a phone at its page."""
    stack = []

    def begin(path=None, token=None, station="1", **settings):
        evaluation = Evaluation.start(path, protocol(**settings))
        stack.append(served(evaluation, token))
        return evaluation, Phone(station, stack[-1].__enter__(), token=token)

    yield begin
    for each in reversed(stack):
        each.__exit__(None, None, None)


def request(port, method, path, body=b"", **headers):
    """Return status, headers and text of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} | names)
        answer = connection.getresponse()
        return answer.status, dict(answer.headers), answer.read().decode()
    finally:
        connection.close()


def test_no_answer_names_a_policy_or_the_key_while_it_is_blind(serving):
    evaluation, phone = serving()
    answers = [request(phone.port, "GET", f"/static/{name}")[2] for name in ("page.js", "page.css")]
    answers += [request(phone.port, "GET", path)[2] for path in ("/", "/worker.js", "/nothing", "/api/next")]

    def ask(path, content):
        answers.append(request(phone.port, "POST", path, json.dumps(content))[2])
        return json.loads(answers[-1])

    key = evaluation._log.secret
    state, asked = ask("/api/next", {"station": None}), 0
    assert state["trials"] == []
    letters = {name: letter for letter in "AB" for name in NAMES if _letter(evaluation, name) == letter}
    while (state := ask("/api/next", {"station": "1"}))["trials"]:
        trial, asked = state["trials"][0], asked + 1
        about = {"evaluation": state["evaluation"], "station": "1", "trial": trial["number"]}
        said = about | {"attempt": trial["attempt"], "success": trial["policy"] == letters[NAMES[1]]}
        ask("/api/record", said | {"milestones": ["x"]})
        ask("/api/record", said)
        ask("/api/record", said | {"success": not said["success"]})
        if asked == 2:
            ask("/api/undo", about | {"reason": "wrong button"})
            ask("/api/undo", about | {"reason": "wrong button"})
    assert (state["status"]["state"], asked) == ("answered", evaluation.status["trials"] + 1)
    assert set(letters.values()) == {"A", "B"}
    for text in answers:
        assert key not in text
        assert not any(name in text for name in NAMES)


def _letter(evaluation, name):
    return evaluation.replay().schedule.letters(1)[name]


def test_the_rest_of_a_pair_is_handed_out_at_once(serving):
    evaluation, phone = serving(scenes=3)
    phone.send()
    first, second = phone.due()
    assert (first["number"], second["number"]) == (1, 2)
    assert (first["task"], first["scene"]) == (second["task"], second["scene"])
    assert {first["policy"], second["policy"]} == {"A", "B"}
    phone.offline = True
    phone.record(success=True)
    phone.record(success=False)
    assert phone.due() == []
    with pytest.raises(OSError, match="no network"):
        phone.send()
    assert evaluation.status["trials"] == 0
    phone.offline = False
    phone.send()
    assert phone.due()[0]["number"] == 3
    assert [outcome.cost for *_, outcome in evaluation.replay().recorded] == [0, 1]


@pytest.mark.parametrize(
    ("settings", "said", "cost", "wrong"),
    [
        ({"measure": "score", "score_range": (0, 5)}, {"score": 4}, 0.2, {"score": 6}),
        ({"measure": "score", "score_range": (0, 5)}, {"score": 2.5}, 0.5, {"success": True}),
        (
            {"measure": "rubric", "milestones": {"grasped": 1, "placed": 3}},
            {"milestones": ["placed", "placed"]},
            0.25,
            {"milestones": ["dropped"]},
        ),
        ({}, {"aborted": "the  camera froze"}, 1, {"aborted": " "}),
        ({}, {"discarded": "a person walked in", "note": "again"}, 1, {"success": True, "discarded": "why"}),
    ],
)
def test_outcomes_of_every_measure(serving, settings, said, cost, wrong):
    evaluation, phone = serving(**settings)
    phone.send()
    phone.record(**wrong)
    phone.send()
    assert phone.refused[0].startswith("409")
    phone.record(**said)
    phone.send()
    ((_, _, outcome),) = evaluation.replay().recorded
    assert outcome.cost == pytest.approx(cost)
    phone.ask("/api/record", phone.sent[1])  # the same, once more
    assert len(evaluation.replay().attempts[1]) == 1
    assert len(phone.refused) == 1


def test_a_message_that_comes_twice_counts_once_also_where_trials_are_repeated(serving):
    evaluation, phone = serving(aborted="repeat")
    phone.send()
    phone.record(aborted="camera")
    phone.record(aborted="camera")  # the second attempt ended in the same way
    phone.record(success=True)
    phone.send()
    for item in phone.sent * 2:
        assert phone.ask("/api/record", item)[0] == 200
    aborted, kept = {"trial": 1, "aborted": "camera"}, {"trial": 1, "success": True}
    assert evaluation.replay().attempts[1] == [aborted, aborted, kept]
    later = phone.sent[0] | {"attempt": 4}
    for other in (phone.sent[2] | {"success": False}, phone.sent[0] | {"aborted": "other"}, later):
        assert phone.ask("/api/record", other)[0] == 409
    assert evaluation.status["trials"] == 1
    # By the number of the trial alone, an abort that is sent twice is there twice.
    evaluation.record(2, aborted="camera")
    evaluation.record(2, aborted="camera")
    assert len(evaluation.replay().attempts[2]) == 2


def test_a_late_copy_of_what_was_taken_back_is_not_taken_again(serving):
    evaluation, phone = serving()
    phone.send()
    phone.record(success=True)
    phone.send()
    about = {"evaluation": phone.state["evaluation"], "station": "1", "reason": "wrong button"}
    assert phone.ask("/api/undo", about | {"trial": 2})[0] == 409
    status, phone.state = phone.ask("/api/undo", about | {"trial": 1})
    assert (status, phone.due()[0]["number"], phone.due()[0]["attempt"]) == (200, 1, 1)
    assert phone.ask("/api/undo", about | {"trial": 1})[0] == 409
    assert phone.ask("/api/record", phone.sent[0])[0] == 200
    assert evaluation.status["trials"] == 0
    phone.record(success=False)
    phone.send()
    ((trial, _, outcome),) = evaluation.replay().recorded
    assert (trial.number, outcome.cost) == (1, 1)
    assert "taken back: wrong button" in evaluation.verify()[0]


def test_an_outcome_of_another_evaluation_is_refused(serving):
    _, phone = serving()
    evaluation, other = serving()
    phone.send()
    other.send()
    assert phone.state["evaluation"] != other.state["evaluation"]  # of the same protocol and seed
    phone.record(success=True)
    assert other.ask("/api/record", phone.sent[0])[0] == 412
    about = {"evaluation": phone.state["evaluation"], "station": "1", "trial": 1, "reason": "x"}
    assert other.ask("/api/undo", about)[0] == 412
    assert evaluation.status["trials"] == 0


def test_two_stations_and_a_phone_that_is_offline_for_long(serving, tmp_path):
    path = tmp_path / "e.db"
    evaluation, left = serving(path, station="left", alpha=1e-9, most_rounds=200)
    right, twin = (Phone("right", left.port, seed) for seed in ("one", "two"))
    left.send()
    left.record(success=True)
    left.offline = True
    left.record(success=False)
    for _ in range(60):
        with pytest.raises(OSError, match="no network"):
            left.send()
        right.send()
        right.record(success=right.random.random() < 0.5)
    assert evaluation.status["rounds"] == 0  # its round waits for the first
    left.offline = False
    left.send()
    right.send()
    twin.send()
    assert evaluation.status["rounds"] == 15
    assert evaluation.status["trials"] == 62
    assert twin.due() == right.due()  # a second phone at the station sees what it has
    found = judge(path, [left, right])
    assert {name: found[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)
    assert found["acknowledged"] == found["rows"] == 62


@pytest.mark.parametrize("kills", [3, pytest.param(200, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_by_kills(kills, tmp_path):
    found = campaign(tmp_path, kills, seed=7)
    assert found["acknowledged"] >= 100
    assert found["hung_up"]
    assert {name: found[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0)


def test_a_lost_outcome_would_be_found(serving, tmp_path):
    _, phone = serving(tmp_path / "e.db")
    phone.send()
    phone.record(success=True)
    phone.acknowledged.append(phone.sent[0])  # which it was not
    assert judge(tmp_path / "e.db", [phone])["lost"] == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "[::1]:{port}"}, 200),
        ({"Host": "evil.example:{port}"}, 421),
        ({"Host": "192.168.1.7:{port}"}, 421),
        ({"Host": "["}, 421),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_who_may_ask_without_a_token(serving, headers, status):
    evaluation, phone = serving()
    sent = {name: value.format(port=phone.port) for name, value in headers.items()}
    found, answered, _ = request(phone.port, "POST", "/api/next", '{"station": "1"}', **sent)
    assert found == status
    assert ("1" in {block.station for block in evaluation.replay().blocks}) == (status == 200)
    assert answered["Cache-Control".lower()] == "no-store"
    if status == 421:
        assert request(phone.port, "GET", "/", **sent)[0] == 421


def test_every_answer_keeps_the_policy_and_nothing_comes_from_elsewhere(serving):
    _, phone = serving()
    for path in ("/", "/worker.js", "/static/page.js", "/static/page.css", "/nothing", "/static/../page.py"):
        status, headers, text = request(phone.port, "GET", path)
        assert status == (404 if "nothing" in path or ".." in path else 200)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-frame-options"] == "DENY"
        assert not re.search(r"https?://", text), path
        assert "<script>" not in text
        assert not re.search(r"\son\w+=|style=", text), path
    assert request(phone.port, "GET", "/api/next")[0] == 405


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", f"bearer {TOKEN}", f"Bearer {TOKEN}x", "Bearer é"]
)
def test_with_a_token_nothing_is_shown_to_others(serving, header):
    evaluation, phone = serving(token=TOKEN)
    for path in ("/api/next", "/api/record", "/api/undo", "/api/nothing", "/%61pi/next"):
        status, _, text = request(phone.port, "POST", path, '{"station": "1"}', Authorization=header.encode())
        assert status == 401
        assert "terminal" in text
    for path in ("//api/next", "/static/../api/next", "/API/next"):
        assert request(phone.port, "POST", path, '{"station": "1"}')[0] in (404, 405)
    assert evaluation.status["rows"] == 1
    assert request(phone.port, "GET", "/")[0] == 200  # the empty sheet
    phone.send()
    assert phone.due()
    allowed = {"Authorization": f"Bearer {TOKEN}", "Host": "robots.example"}  # behind a proxy
    assert request(phone.port, "POST", "/api/next", '{"station": "1"}', **allowed)[0] == 200
    foreign = allowed | {"Origin": "https://evil.example"}
    assert request(phone.port, "POST", "/api/next", '{"station": "1"}', **foreign)[0] == 403


def test_tokens_are_compared_in_constant_time(serving, monkeypatch):
    _, phone = serving(token=TOKEN)
    seen = []
    compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda a, b: seen.append(a) or compare(a, b))
    phone.send()
    assert seen == [f"Bearer {TOKEN}".encode()]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 422),
        (b"[]", 422),
        (b'{"station": 1}', 422),
        (b'{"station": ""}', 422),
        (b'{"station": " left"}', 422),
        (b'{"station": "a\\u0007"}', 422),
        (b'{"station": "\\ud800"}', 422),
        (b'{"station": "' + b"x" * 41 + b'"}', 422),
        (b'{"station": "1", "policy": "act"}', 422),
        (b"[" * 30_000, 422),
        (b"x" * (phones.LARGEST_BODY + 1), 413),
        ('{"station": "Тест"}'.encode(), 200),
    ],
)
def test_what_is_not_a_message_is_refused(serving, content, status):
    _, phone = serving()
    found, _, text = request(phone.port, "POST", "/api/next", content)
    assert found == status
    assert status == 200 or json.loads(text)["detail"]


def test_a_message_that_does_not_arrive_is_given_up(serving, monkeypatch):
    monkeypatch.setattr(phones, "SLOWEST_BODY", 0.1)
    _, phone = serving()
    with socket.create_connection(("127.0.0.1", phone.port), timeout=LIMIT) as slow:
        slow.sendall(b"POST /api/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        slow.sendall(b"Content-Length: 20\r\n\r\n{")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_what_is_wrong_with_the_file_is_not_said_to_phones_and_sent_again(
    serving, tmp_path, capfd, monkeypatch
):
    path = tmp_path / f"{NAMES[0]}.db"
    evaluation, phone = serving(path)
    phone.send()
    phone.record(success=True)
    monkeypatch.setattr("boundwatch.evaluation.log._PATIENCE", 0.0)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    status, _, text = request(phone.port, "POST", "/api/record", json.dumps(phone.sent[0]))
    assert status == 503
    assert NAMES[0] not in text
    assert f"{NAMES[0]}.db: cannot be used" in capfd.readouterr().err
    with pytest.raises(OSError, match="terminal"):
        phone.send()
    blocker.execute("ROLLBACK")
    blocker.close()
    phone.send()
    assert evaluation.status["trials"] == 1


@pytest.mark.parametrize("host", ["localhost", "0.0.0.0"])  # noqa: S104
def test_the_link_that_it_prints_opens_the_page(tmp_path, host):
    Evaluation.start(tmp_path / "e.db", protocol()).close()
    command = [*PROGRAM, "evaluate", "run", "e.db", "--page", "--host", host, "--port", "0"]
    with started(command, cwd=tmp_path) as process:
        line, remark = process.stdout.readline(), process.stdout.readline()
        address, port, token = re.fullmatch(r"e\.db: .* http://(.+):(\d+)/(?:#(\S+))?  .*\n", line).groups()
        phone = Phone("1", int(port), token=token)
        phone.send()
        assert phone.due()[0]["number"] == 1
        if host == "localhost":
            assert (address, token) == ("localhost", None)
            assert "phones need --host" in remark
        else:
            assert address != host
            assert len(token) >= 22
            assert "anyone with this link" in remark
            assert request(int(port), "POST", "/api/next", '{"station": "1"}')[0] == 401
        process.send_signal(signal.SIGINT)
        assert "█" not in process.stdout.read()  # it is no terminal
    with Evaluation.open(tmp_path / "e.db") as evaluation:
        assert evaluation.next().number == 1


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def test_the_code_fits_a_terminal_and_holds_the_link():
    terminal, url = Terminal(), "http://192.168.178.123:8090/#" + "x" * 22
    phones.greet("e.db: the trial sheet", "record outcomes", url, terminal)
    lines = [line for line in terminal.getvalue().splitlines() if line.startswith("\033[97;40m")]
    rows = [line.removeprefix("\033[97;40m").removesuffix("\033[0m") for line in lines]
    assert len(rows) + 3 <= 24
    assert max(map(len, rows)) <= 80
    halves = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}
    drawn = [[halves[cell][half] for cell in row] for row in rows for half in (0, 1)]
    code = [list(row) for row in segno.make_qr(url, error="l").matrix_iter(border=2)]
    assert drawn[: len(code)] == code
    for other in (Terminal(), Terminal()):
        other.encoding = "latin-1"
        phones.greet("e.db: the trial sheet", "record outcomes", url, other)
        assert "█" not in other.getvalue()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"token": "short"}, "token is too easy to guess"),
        ({"token": "ü" * 20}, "token is too easy to guess"),
        ({"token": "with a space, and so not a header"}, "token is too easy to guess"),
        ({"host": "no.such.host.invalid"}, "cannot be listened on"),
        ({"port": 99999}, "cannot be listened on"),
    ],
)
def test_what_cannot_be_served_is_refused_in_one_line(tmp_path, settings, said):
    Evaluation.start(tmp_path / "e.db", protocol()).close()
    with pytest.raises(Refusal, match=said) as refused:
        phones.serve(tmp_path / "e.db", **{"port": 0} | settings)
    assert "\n" not in str(refused.value)
    assert settings.get("token", "...") not in str(refused.value)


def test_an_address_in_use_and_a_missing_file_are_refused(tmp_path):
    Evaluation.start(tmp_path / "e.db", protocol()).close()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Refusal, match="in use"):
        phones.serve(tmp_path / "e.db", port=taken.getsockname()[1])
    with pytest.raises(Refusal, match="no such file"):
        phones.serve(tmp_path / "nothing.db", port=0)


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "segno", None)
    monkeypatch.delitem(sys.modules, "boundwatch.evaluation.phones")
    with pytest.raises(MissingExtra, match=r"boundwatch\[serve\]"):
        importlib.import_module("boundwatch.evaluation.phones")
