"""Alarms on their way out: signed, retried until they are accepted, at least once, with an id."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from sqlalchemy import select, update

from boundwatch.errors import InvalidSetting
from boundwatch.server import outbox, upkeep
from boundwatch.server.ledger import Ledger
from boundwatch.server.outbox import Channel, Courier, sign
from boundwatch.server.reports import Report
from boundwatch.server.settings import Settings
from boundwatch.server.tables import deliveries, episodes, watches
from boundwatch.server.watches import Binding, add_certificate


class Receiver:
    """A web server that refuses some requests first, and keeps the others."""

    def __init__(self, refuse=0):
        self.seen, self.refuse = [], refuse
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.seen.append((dict(self.headers), body))
                self.send_response(500 if len(outer.seen) <= outer.refuse else 204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks/secret"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def alarm(database, certificate, *channels):
    with database.write() as connection:
        binding = Binding.checked(add_certificate(connection, certificate.to_dict(), "lab", "test")["id"])
    ledger = Ledger(database, default=binding, channels=channels)
    ledger.submit([Report("arm-1", str(i), 1.0, None, '{"cell":2}') for i in range(30)]).result()
    ledger.close()


def waiting(database):
    with database.read() as connection:
        return outbox.lag(connection)[0]


def test_a_webhook_is_signed_and_retried_until_it_is_accepted(database, certificate):
    receiver = Receiver(refuse=2)
    channel = Channel("webhook", receiver.url, "s3cret", monitor="https://monitor.example.com")
    alarm(database, certificate, channel)
    courier = Courier(database, [])  # no thread: the test decides when
    courier.channels = {(channel.kind, channel.label): channel}
    for _ in range(3):
        assert courier.deliver_one()
        assert waiting(database) == (len(receiver.seen) < 3)
        with database.write() as connection:  # do not wait for the pause between attempts
            connection.execute(update(deliveries).values(due=0.0))
    assert not courier.deliver_one()
    receiver.close()
    assert len({headers["X-Boundwatch-Delivery"] for headers, _ in receiver.seen}) == 1
    headers, body = receiver.seen[-1]
    assert headers["X-Boundwatch-Signature"] == "sha256=" + sign(
        "s3cret", headers["X-Boundwatch-Timestamp"], body
    )
    content = json.loads(body)
    assert (content["stream"], content["verdict"], content["kind"]) == ("arm-1", "adverse", "alarm")
    assert content["text"].startswith("boundwatch: stream arm-1 is ADVERSE")  # what Slack shows
    assert content["text"].endswith(f"). {content['page']}")
    assert content["page"] == "https://monitor.example.com/streams/arm-1?generation=1"
    # As variables of an alarm's command they must not redirect what it calls: that reads these two.
    assert not {"url", "token"} & content.keys()


def test_attempts_are_spaced_out_and_nothing_secret_is_stored(database, certificate):
    channel = Channel("webhook", "http://127.0.0.1:9/hooks/secret", "s3cret")
    alarm(database, certificate, channel)
    courier = Courier(database, [])
    courier.channels = {(channel.kind, channel.label): channel}
    pauses = []
    for _ in range(4):
        assert courier.deliver_one()
        with database.write() as connection:
            row = connection.execute(select(deliveries)).mappings().one()
            pauses.append(round(row["due"] - time.time()))
            connection.execute(update(deliveries).values(due=0.0))
    assert pauses == [1, 2, 4, 8]
    assert row["error"] == "URLError"
    assert not any("secret" in str(value) or "s3cret" in str(value) for value in row.values())
    assert "s3cret" not in repr(channel)


def test_a_command_and_a_mail_get_the_alarm(database, certificate, tmp_path, monkeypatch):
    sent = []

    class Smtp:
        def __init__(self, host, port, timeout):
            sent.append((host, port, timeout))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def send_message(self, message):
            sent.append(message)

    monkeypatch.setattr("smtplib.SMTP", Smtp)
    target = tmp_path / "alarm.json"
    command = Channel("command", f"tee {target}")
    surroundings = Channel("command", f"sh -c 'env > {tmp_path}/environment'")
    for name in ("WEBHOOK_SECRET", "TOKEN", "INTERNAL_SETTINGS"):
        monkeypatch.setenv(f"BOUNDWATCH_{name}", "s3cret")
    mail = Channel("email", "oncall@example.com", smtp="mail.example.com:2525", monitor="http://here:8080")
    alarm(database, certificate, command, surroundings, mail)
    courier = Courier(database, [command, surroundings, mail])
    deadline = time.monotonic() + 20
    while waiting(database) and time.monotonic() < deadline:
        time.sleep(0.05)
    courier.close()
    assert json.loads(target.read_text())["stream"] == "arm-1"
    assert sent[0][:2] == ("mail.example.com", 2525)
    assert sent[1]["To"] == "oncall@example.com"
    assert "arm-1 is ADVERSE: it fails more often than certified" in sent[1]["Subject"]
    body = sent[1].get_content()
    assert body.startswith(f"{sent[1]['Subject']} http://here:8080/streams/arm-1?generation=1\n")
    environment = (tmp_path / "environment").read_text()
    assert "ALARM_STREAM=arm-1" in environment
    assert "BOUNDWATCH_STREAM" not in environment  # settings are called so
    assert "s3cret" not in environment


@pytest.mark.parametrize(
    ("kind", "target"),
    [
        ("webhook", "ftp://x"),
        ("webhook", "x"),
        ("command", "'"),
        ("command", ""),
        ("command", "no-such-program"),
        ("email", "me"),
    ],
)
def test_a_channel_that_cannot_work_is_refused(kind, target):
    with pytest.raises(InvalidSetting):
        Channel(kind, target)


def test_silence_is_told_once_and_is_no_verdict(database, certificate):
    channel = Channel("command", "true")
    settings = Settings(silent_minutes=10, on_alarm=("true",))
    alarm(database, certificate)
    with database.write() as connection:
        assert upkeep.tell_silence(connection, time.time() + 1, settings) == ["arm-1"]
        assert upkeep.tell_silence(connection, time.time() + 1, settings) == []
        row = connection.execute(select(deliveries)).mappings().one()
        assert connection.execute(select(watches.c.verdict)).scalar() == "adverse"
    assert (row["channel"], row["target"]) == ("command", channel.label)
    content = json.loads(row["payload"])
    assert content["kind"] == "notice"
    assert "not a verdict" in content["text"]


def test_retention_keeps_what_an_open_watch_needs(database, certificate):
    from boundwatch.server import acts, verifying

    alarm(database, certificate)
    with database.write() as connection:
        assert upkeep.prune(connection, time.time() + 1) == (0, 30)
        assert len(connection.execute(select(episodes)).all()) == 30
    assert [each.fault for each in verifying.verify(database)] == [""]
    with database.write() as connection:
        acts.watch(connection, ["arm-1"], "lab", by="me", reason="repaired", new_generation=True)
        assert upkeep.prune(connection, time.time() + 1) == (1, 0)
        assert connection.execute(select(episodes)).all() == []
        assert connection.execute(select(watches.c.n).order_by(watches.c.generation)).scalars().all() == [
            30,
            0,
        ]
    assert [(each.fault, each.pruned) for each in verifying.verify(database)] == [("", True), ("", False)]
