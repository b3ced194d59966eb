"""The robot's side: nothing is lost while the server is away, and order is kept."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from datetime import UTC, datetime

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.server import client as client_module
from boundwatch.server.models import parse_reports
from network import Listener, wait_until
from program import forked


@pytest.fixture
def spool(tmp_path):
    return tmp_path / "spool.sqlite"


def counted(server, stream):
    return [
        each["episode"] for each in server.ask("GET", f"/api/v1/streams/{stream}/episodes")[1]["episodes"]
    ]


def test_episodes_wait_while_the_server_is_away_and_arrive_in_order(start, spool):
    server = start()
    with bw.Client(server.url, spool=spool) as client:
        client.report("arm-1", success=True, episode="0")
        assert client.flush()
        server.stop(signal.SIGKILL)
        began = time.monotonic()
        for i in range(1, 60):
            client.report("arm-1", success=i % 7 != 0, episode=str(i))
        assert time.monotonic() - began < 30  # nothing waited for the network
        client.close(timeout=0)
    again = bw.Client(server.url, spool=spool)  # the program was restarted in between
    assert again.waiting >= 59
    server.start()
    assert again.flush(30)
    assert counted(server, "arm-1") == [str(i) for i in range(60)]
    again.close()


def test_a_stream_that_nobody_watches_waits_and_holds_no_other_up(start, spool, certificate):
    server = start(bound=False)
    content = {"name": "lab", "certificate": certificate.to_dict()}
    assert server.ask("POST", "/api/v1/certificates", content)[0] == 201
    assert server.ask("POST", "/api/v1/streams", {"streams": ["arm-1"], "certificate": "lab"})[0] == 201
    client = bw.Client(server.url, spool=spool)
    client.report("arm-2", success=True, episode="1")
    client.report("arm-1", success=True, episode="1")
    wait_until(lambda: client.waiting <= 1)
    assert counted(server, "arm-1") == ["1"]
    assert "is not watched" in client.problem
    server.ask("POST", "/api/v1/streams", {"streams": ["arm-2"], "certificate": "lab"})
    client._held.clear()
    assert client.flush()
    assert counted(server, "arm-2") == ["1"]
    client.close()


def test_a_server_that_never_answers_does_not_hold_the_robot_up(spool):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = bw.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", spool=spool)
        ids = [client.report("arm-1", cost=0.1) for _ in range(20)]
        assert len(set(ids)) == client.waiting == 20
        client.close(timeout=0)


def says(status, kind="application/problem+json", body='{"detail": "the reason"}', **headers):
    return lambda _: (status, {"Content-Type": kind, **headers}, body)


class Stranger(Listener):
    """What answers at the server's address: the server, a proxy before it, or something else."""

    def __init__(self):
        super().__init__(self.take)
        self.counted, self.headers, self.says = [], {}, self.count

    def take(self, headers, body):
        self.headers = headers
        return self.says(json.loads(body))

    def count(self, episodes):
        self.counted += [each["episode"] for each in episodes]
        return 200, {"Content-Type": "application/json"}, f'{{"counted": {len(episodes)}, "repeated": 0}}'


@pytest.fixture
def stranger(monkeypatch):
    monkeypatch.setattr(client_module, "_SHORTEST_PAUSE", 0.001)
    monkeypatch.setattr(client_module, "_LONGEST_PAUSE", 0.001)
    opened = Stranger()
    yield opened
    opened.close()


def wait_for(client, problem):
    wait_until(lambda: problem in (client.problem or ""), why=lambda: client.problem)


def report_three(client):
    for i in range(3):
        client.report("arm-1", success=True, episode=str(i))


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        *((says(status), f"answered {status}: the reason") for status in (401, 415, 421)),
        *(
            (says(status, "text/html", "<html>"), f"answered {status}, but")
            for status in (200, 400, 405, 413)
        ),
        (says(308, "text/html", Location="https://monitor/api/v1/episodes"), "redirect to 'https://monitor'"),
        (says(422, "application/json"), "answered 422, but"),
        (says(200, "application/json", '{"counted": 7, "repeated": 0}'), "answered 200, but"),
        (says(204, "text/html", ""), "answered 204, but"),
    ],
)
def test_an_answer_that_is_not_about_the_episodes_loses_none(stranger, spool, answer, problem):
    stranger.says = answer
    client = bw.Client(stranger.url, spool=spool)
    report_three(client)
    wait_for(client, problem)
    assert (client.waiting, client.rejected) == (3, [])
    stranger.says = stranger.count  # somebody has mended it
    assert client.flush()
    assert stranger.counted == ["0", "1", "2"]
    client.close()


@pytest.mark.parametrize("status", [400, 409, 422])
def test_an_episode_that_the_server_refuses_blocks_no_other(stranger, spool, status):
    refuse = says(status)

    def answer(episodes):
        return (refuse if any(each["episode"] == "1" for each in episodes) else stranger.count)(episodes)

    stranger.says = answer
    with bw.Client(stranger.url, spool=spool) as client:
        report_three(client)
        assert client.flush()
        assert client.rejected == [("arm-1", "1", "the reason")]
    assert stranger.counted == ["0", "2"]


def test_the_thread_outlives_a_spool_that_cannot_be_written(stranger, spool):
    stranger.says = says(409, body=json.dumps({"detail": "x" * 20_000}))
    client = bw.Client(stranger.url, spool=spool)
    with client._spool._lock:
        client._spool._file.execute("PRAGMA max_page_count = 1")  # no more than there are
    client.report("arm-1", success=True, episode="0")
    wait_for(client, f"{spool}: cannot be written, database or disk is full; free the disk")
    assert client.report("arm-1", success=True, episode="1") == "1"  # no half transaction takes it along
    assert (client.waiting, client.rejected) == (2, [])
    with client._spool._lock:
        client._spool._file.execute("PRAGMA max_page_count = 100000")
    assert client.flush()
    assert [each.episode for each in client.rejected] == ["0", "1"]
    client.close()
    with bw.Client(stranger.url, spool=spool) as again:  # they are still there
        assert [each.episode for each in again.rejected] == ["0", "1"]


def test_a_spool_has_one_owner_and_programs_without_a_name_for_it_share_none(tmp_path, spool, monkeypatch):
    with (
        bw.Client("http://127.0.0.1:9", spool=spool),
        pytest.raises(bw.errors.InvalidSetting, match="is in use by another process"),
    ):
        bw.Client("http://127.0.0.1:9", spool=spool)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first, second = (bw.Client("http://127.0.0.1:9") for _ in range(2))
    first.report("arm-1", success=True, episode="1")
    second.report("arm-1", success=True, episode="2")
    for client in (first, second):
        client.close(timeout=0)
    with bw.Client("http://127.0.0.1:9") as third:  # it sends what either has left
        assert third.waiting == 2
        third.close(timeout=0)


def test_a_token_from_a_file_has_its_line_end_taken_off(stranger, spool, monkeypatch):
    monkeypatch.setenv("BOUNDWATCH_TOKEN", "bw_x\n")
    with bw.Client(f"{stranger.url}/\n", spool=spool) as client:
        client.report("arm-1", success=True)
        assert client.flush()
    assert stranger.headers["Authorization"] == "Bearer bw_x"
    with pytest.raises(bw.errors.InvalidSetting, match="has characters that no token has"):
        bw.Client(stranger.url, token="bw_x\nbw_y", spool=spool)  # noqa: S106


@pytest.mark.parametrize(
    "url", ["monitor:8080", "http://monitor:8080x", "http://monitor:99999", "http://[::1", "http://a b", None]
)
def test_an_address_that_is_none_is_refused_at_once(spool, url):
    with pytest.raises(bw.errors.InvalidSetting, match="is not the address of a server; give http://host"):
        bw.Client(url, spool=spool)


def test_a_time_without_a_zone_is_that_of_the_robot(spool, monkeypatch):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "PST8")
        time.tzset()
        client.report("arm-1", success=True, time=datetime(2026, 11, 16, 8, 30, tzinfo=UTC))
        client.report("arm-1", success=True, time=datetime(2026, 11, 16, 0, 30))
    time.tzset()
    bodies = [json.loads(body) for _, _, body in client._spool.oldest(2)]
    moments = [parse_reports(body)[0].time for body in bodies]
    assert moments[0] == moments[1] == 1794817800
    client.close(timeout=0)


def test_a_client_that_is_closed_says_so(spool):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    client.close(timeout=0)
    for use in (lambda: client.report("arm-1", cost=0.5), lambda: client.waiting, lambda: client.rejected):
        with pytest.raises(bw.errors.InvalidSetting, match=r"^the client is closed; make a new one"):
            use()
    client.close()  # once more does no harm


EPISODE = {"stream": "a", "episode": "1"}
DEEP: list = []
for _ in range(20):
    DEEP = [DEEP]
WRONG = [
    ({"cost": 1.4}, "cost"),
    ({"cost": float("nan")}, "cost"),
    ({"cost": True}, "cost"),
    ({}, None),  # neither cost nor success
    ({"cost": 0.1, "success": True}, None),
    ({"cost": 0.1, "episode": "a\nb"}, "episode"),
    ({"cost": 0.1, "time": "yesterday"}, "time"),
    ({"cost": 0.1, "time": 10**400}, "time"),
    *(
        ({"cost": 0.1, "meta": {"x": value}}, "meta")
        for value in ("y" * 5000, "\ud800", float("nan"), {1, 2}, DEEP)
    ),
    ({"success": 1}, "success"),
    ({"cost": 0.1, "episode": 10**5000}, "episode"),
    ({"cost": "0.1"}, "cost"),
]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"meta": 5}, "meta"),
        ({"meta": [1]}, "meta"),
        ({"time": datetime.min}, "time"),
        ({"time": []}, "time"),
    ],
)
def test_what_only_python_can_pass_is_refused_in_one_line_too(spool, given, name):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    with pytest.raises(bw.errors.InvalidSetting) as refused:
        client.report("arm-1", success=True, **given)
    assert (refused.value.name, refused.value.remedy == ()) == (name, False)
    client.close(timeout=0)
    with pytest.raises(bw.errors.InvalidSetting, match="spool = 5 is not a path"):
        bw.Client("http://127.0.0.1:9", spool=5)


def test_numbers_of_numpy_are_numbers_and_a_server_that_is_away_is_named(spool):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    client.report("arm-1", cost=np.float32(0.5), episode=np.int64(7))
    client.report("arm-1", success=np.bool_(False), episode="8")
    bodies = [parse_reports(json.loads(body))[0] for _, _, body in client._spool.oldest(2)]
    assert [(each.episode, each.cost) for each in bodies] == [("7", 0.5), ("8", 1.0)]
    wait_for(client, "http://127.0.0.1:9 cannot be reached, Connection refused; check that it runs there")
    client.close(timeout=0)


def test_the_client_refuses_what_the_server_would(spool):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    for report, name in WRONG:
        with pytest.raises(bw.errors.InvalidSetting) as refused:
            client.report("arm-1", **report)
        assert (refused.value.name, client.waiting) == (name, 0), report
    client.close(timeout=0)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ([], "episodes"),
        ("x", "the body"),
        ([1], "episodes[0]"),
        ({"episodes": []}, "episodes"),
        *((EPISODE | report, name) for report, name in WRONG),
        (EPISODE | {"cost": 0.1, "robot": 1}, "robot"),
        ({"stream": "a", "cost": 1}, "episode"),
        (EPISODE | {"cost": 1, "meta": []}, "meta"),
    ],
)
def test_a_malformed_body_is_refused_with_its_field(body, name):
    with pytest.raises(bw.errors.InvalidSetting) as refused:
        parse_reports(body)
    assert refused.value.name == name


def test_the_shell_command_keeps_what_cannot_be_delivered(start, spool):
    server = start()
    arguments = ("report-episode", "arm-1", "--success", "true", "--url", server.url, "--spool", str(spool))
    long = ("--wait", "60")  # a busy machine may need more than the usual 10 s
    done = _run(*arguments, *long, "--episode", "1")
    assert (done.returncode, done.stdout) == (0, "counted: arm-1 1\n")
    conflict = _run(*arguments[:3], "false", *arguments[4:], *long, "--episode", "1")
    assert conflict.returncode == 1
    assert conflict.stderr.count("was counted with cost 0, not 1") == 1
    assert conflict.stderr.count("\n") == 1
    server.stop()
    kept = _run(*arguments, "--episode", "2", "--wait", "0.1")
    assert (kept.returncode, kept.stdout) == (0, "")
    assert "kept for later, 1 waiting" in kept.stderr
    server.start()
    assert _run(*arguments, *long, "--episode", "3").returncode == 0
    assert counted(server, "arm-1") == ["1", "2", "3"]


def test_the_shell_command_fails_if_its_token_is_not_accepted_and_keeps_the_episode(start, spool):
    server = start()
    token = server.token("cell-2", "report", streams=("arm-2",))
    arguments = ("--success", "true", "--url", server.url, "--spool", str(spool))
    for stream, secret, status in (("arm-2", "", 401), ("arm-2", "bw_x", 401), ("arm-1", token, 403)):
        told = _run("report-episode", stream, *arguments, "--wait", "60", BOUNDWATCH_TOKEN=secret)
        assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
        reason = "this token may not report" if status == 403 else "the server answered 401"
        assert f"{server.url} does not allow it, {reason}" in told.stderr
    # What another stream's episode waits for does not concern this one.
    done = _run("report-episode", "arm-2", *arguments, "--wait", "1", BOUNDWATCH_TOKEN=token)
    assert done.returncode == 0


def _run(*arguments, **environment):
    command = [forked() / "boundwatch", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | environment)
