"""The robot's side: nothing is lost while the server is away, and order is kept."""

from __future__ import annotations

import signal
import socket
import subprocess
import time

import pytest

import boundwatch as bw
from boundwatch.server.reports import parse_reports
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


def test_what_the_server_refuses_is_put_aside_and_the_rest_goes_on(start, spool):
    server = start()
    server.report({"stream": "arm-1", "episode": "1", "success": True})
    with bw.Client(server.url, spool=spool) as client:
        client.report("arm-1", success=False, episode="1")  # another cost than was counted
        client.report("arm-1", cost=0.5, episode="2")  # the certificate promises 0 or 1
        client.report("arm-1", success=True, episode="3")
        assert client.flush()
        reasons = [each.reason for each in client.rejected]
    assert counted(server, "arm-1") == ["1", "3"]
    assert ["was counted with cost" in reasons[0], "is not 0 or 1" in reasons[1]] == [True, True]


def test_a_stream_that_nobody_watches_waits_and_holds_no_other_up(start, spool, certificate):
    server = start(bound=False)
    content = {"name": "lab", "certificate": certificate.to_dict()}
    assert server.ask("POST", "/api/v1/certificates", content)[0] == 201
    assert server.ask("POST", "/api/v1/streams", {"streams": ["arm-1"], "certificate": "lab"})[0] == 201
    client = bw.Client(server.url, spool=spool)
    client.report("arm-2", success=True, episode="1")
    client.report("arm-1", success=True, episode="1")
    deadline = time.monotonic() + 20
    while client.waiting > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
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


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ({"cost": 1.4}, r"cost = 1.4 is outside \[0, 1\]"),
        ({"cost": float("nan")}, "is outside"),
        ({"cost": True}, "send success instead"),
        ({}, "send exactly one of the two"),
        ({"cost": 0.1, "success": True}, "send exactly one of the two"),
        ({"cost": 0.1, "episode": "a\nb"}, "is not a valid id"),
        ({"cost": 0.1, "time": "yesterday"}, "is not a time"),
        ({"cost": 0.1, "meta": {"x": "y" * 5000}}, "longer than 4096"),
    ],
)
def test_what_is_not_valid_is_not_reported(spool, report, message):
    client = bw.Client("http://127.0.0.1:9", spool=spool)
    with pytest.raises(bw.errors.InvalidSetting, match=message):
        client.report("arm-1", **report)
    assert client.waiting == 0
    client.close(timeout=0)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "send 1 to 1000"),
        ("x", "neither an episode nor a list"),
        ([1], r"episodes\[0\] = 1 is not an object"),
        ({"episodes": 1}, "is not a list"),
        ({"episodes": [], "x": 1}, "unknown beside"),
        ({"stream": "a", "episode": "1", "cost": "0.1"}, "is not a number; send a number from 0 to 1"),
        ({"stream": "a", "episode": "1", "cost": 0.1, "robot": 1}, "robot is unknown"),
        ({"stream": "a", "episode": "1", "success": 1}, "is not true or false"),
        ({"stream": "a", "cost": 1}, "episode = None is not a valid id"),
        ({"stream": "a", "episode": "1", "cost": 1, "meta": []}, "is not an object"),
    ],
)
def test_a_malformed_body_is_refused_with_its_field(body, message):
    with pytest.raises(bw.errors.InvalidSetting, match=message):
        parse_reports(body)


def test_the_shell_command_keeps_what_cannot_be_delivered(start, spool):
    server = start()
    arguments = ("report-episode", "arm-1", "--success", "true", "--url", server.url, "--spool", str(spool))
    done = _run(*arguments, "--episode", "1")
    assert (done.returncode, done.stdout) == (0, "counted: arm-1 1\n")
    conflict = _run(*arguments[:3], "false", *arguments[4:], "--episode", "1")
    assert conflict.returncode == 1
    assert conflict.stderr.count("was counted with cost 0, not 1") == 1
    assert conflict.stderr.count("\n") == 1
    server.stop()
    kept = _run(*arguments, "--episode", "2", "--wait", "0.1")
    assert (kept.returncode, kept.stdout) == (0, "")
    assert "kept for later, 1 waiting" in kept.stderr
    server.start()
    assert _run(*arguments, "--episode", "3").returncode == 0
    assert counted(server, "arm-1") == ["1", "2", "3"]


def _run(*arguments):
    return subprocess.run([forked() / "boundwatch", *arguments], capture_output=True, text=True, check=False)
