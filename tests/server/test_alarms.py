"""Alarms on their way out: signed, retried until they are accepted, at least once, with an id."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from functools import partial

import pytest
from sqlalchemy import select, update

from boundwatch.errors import InvalidSetting
from boundwatch.server import outbox, transfer
from boundwatch.server.bindings import Binding, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Chore
from boundwatch.server.models import Report, Upload
from boundwatch.server.outbox import Channel, deliver, sign
from boundwatch.server.tables import deliveries
from network import Listener, wait_until


class Receiver(Listener):
    """A web server that refuses some requests first, and keeps the others."""

    def __init__(self, refuse=0, status=500):
        super().__init__(self.take)
        self.url += "/hooks/secret"
        self.seen, self.refuse, self.status = [], refuse, status

    def take(self, headers, body):
        self.seen.append((headers, body))
        elsewhere = {"Location": self.url}
        return (self.status, elsewhere, "") if len(self.seen) <= self.refuse else (204, {}, "")

    @property
    def streams(self):
        return [json.loads(body)["stream"] for _, body in self.seen]


def alarm(database, certificate, *channels):
    with database.write() as connection:
        binding = Binding(upload(connection, Upload("lab", certificate.to_dict()), by="test")["id"])
    ledger = Ledger(database, default=binding, channels=channels)
    ledger.submit([Report("arm-1", str(i), 1.0, None, '{"cell":2}') for i in range(30)]).result()
    ledger.close()


def waiting(database):
    with database.read() as connection:
        return outbox.lag(connection)[0]


@pytest.mark.parametrize("status", [500, 302, 307])
def test_a_webhook_is_signed_and_retried_until_it_is_accepted(database, certificate, status):
    receiver = Receiver(refuse=2, status=status)  # a redirect is not followed
    channel = Channel("webhook", receiver.url, "s3cret", monitor="https://monitor.example.com")
    alarm(database, certificate, channel)
    for _ in range(3):
        assert deliver(database, channel)
        assert waiting(database) == (len(receiver.seen) < 3)
        with database.write() as connection:  # do not wait for the pause between attempts
            connection.execute(update(deliveries).values(due=0.0))
    assert not deliver(database, channel)
    receiver.close()
    assert len({headers["X-Boundwatch-Delivery"] for headers, _ in receiver.seen}) == 1
    headers, body = receiver.seen[-1]
    signature = sign("s3cret", headers["X-Boundwatch-Timestamp"], body)
    assert headers["X-Boundwatch-Signature"] == f"sha256={signature}"
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
    pauses = []
    for _ in range(4):
        assert deliver(database, channel)
        with database.write() as connection:
            row = connection.execute(select(deliveries)).mappings().one()
            pauses.append(round(row["due"] - time.time()))
            connection.execute(update(deliveries).values(due=0.0))
    assert pauses == [1, 2, 4, 8]
    assert row["error"] == "ConnectionRefusedError"
    assert not any("secret" in str(value) or "s3cret" in str(value) for value in row.values())
    assert "s3cret" not in repr(channel)


class Unkind:
    """A receiver that takes connections and answers nothing, or without end, a byte at a time."""

    def __init__(self, greeting=b""):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.came, self.greeting = [], greeting
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self):
        with contextlib.suppress(OSError):
            while True:
                self.came.append(self.listener.accept()[0])
                threading.Thread(target=self._drip, args=(self.came[-1],), daemon=True).start()

    def _drip(self, connection):
        with contextlib.suppress(OSError):
            connection.sendall(self.greeting)
            while self.greeting:
                connection.sendall(b"x")
                time.sleep(0.05)

    def close(self):
        for each in (self.listener, *self.came):
            each.close()


@pytest.mark.parametrize(
    ("kind", "scheme", "greeting"),
    [
        ("webhook", "http://", b""),
        ("webhook", "http://", b"HTTP/1.1 204 No "),
        ("webhook", "https://", b"\x16\x03\x03\x3f\xff"),  # a handshake that never ends
    ],
)
def test_a_delivery_ends_at_its_deadline_however_bytes_drip(monkeypatch, kind, scheme, greeting):
    monkeypatch.setattr(outbox, "_DEADLINE", 0.5)
    receiver = Unkind(greeting)
    channel = Channel(kind, f"{scheme}{receiver.address}/hooks/secret")
    with pytest.raises(OSError, match=r"timed out|not done within"):
        channel.send("1", '{"text": "x", "stream": "arm-1"}')
    receiver.close()


def couriers(database, *channels):
    return [Chore(partial(deliver, database, channel), 0.5) for channel in channels]


def put(database, channels, names):
    with database.write() as connection:
        for name in names:
            outbox.put(connection, channels, {"text": name, "stream": name})


def test_no_receiver_waits_for_another_and_each_gets_its_alarms_in_order(database):
    names = [f"arm-{number}" for number in range(30)]
    healthy, hanging, dripping = Receiver(refuse=1), Unkind(), Unkind(b"HTTP/1.1 204 No ")
    urls = (f"http://{hanging.address}/x", f"http://{dripping.address}/x", healthy.url)
    channels = [Channel("webhook", url) for url in urls]
    put(database, channels, names)
    threads = couriers(database, *channels)
    # The two others have 10 s for their first delivery, and are still at it when the last of these is there.
    wait_until(lambda: len(healthy.seen) >= 31)
    assert (len(hanging.came), len(dripping.came)) == (1, 1)
    for each in (hanging, dripping, healthy, *threads):
        each.close()
    assert healthy.streams == ["arm-0", *names]


def test_two_servers_deliver_a_channel_in_order_and_once(database):
    names = [f"arm-{number}" for number in range(120)]
    receiver = Receiver()
    channel = Channel("webhook", receiver.url)
    put(database, [channel], names)
    threads = couriers(database, *[channel] * 3)
    wait_until(lambda: not waiting(database))
    for each in (*threads, receiver):
        each.close()
    assert receiver.streams == names


def test_what_was_not_delivered_is_in_the_backup(database, sqlite, tmp_path):
    receiver = Receiver()
    channel, away = Channel("webhook", receiver.url), Channel("webhook", "http://127.0.0.1:9/hooks/secret")
    put(database, [channel, away], ["arm-1", "arm-2"])
    assert deliver(database, channel)
    assert deliver(database, away)
    receiver.close()
    transfer.export(database, tmp_path / "backup.jsonl")
    transfer.restore(sqlite, tmp_path / "backup.jsonl")
    with sqlite.read() as connection:
        rows = connection.execute(select(deliveries).order_by(deliveries.c.created)).all()
    left = [(json.loads(row.payload)["stream"], row.target) for row in rows]
    assert left == [("arm-1", away.label), ("arm-2", away.label)]


def test_a_command_gets_the_alarm(database, certificate, tmp_path, monkeypatch):
    target = tmp_path / "alarm.json"
    command = Channel("command", f"tee {target}", monitor="http://here:8080")
    surroundings = Channel("command", f"sh -c 'env > {tmp_path}/environment'")
    for name in ("WEBHOOK_SECRET", "TOKEN", "INTERNAL_SETTINGS"):
        monkeypatch.setenv(f"BOUNDWATCH_{name}", "s3cret")
    alarm(database, certificate, command, surroundings)
    threads = couriers(database, command, surroundings)
    wait_until(lambda: not waiting(database))
    for each in threads:
        each.close()
    told = json.loads(target.read_text())
    assert told["text"].startswith("boundwatch: stream arm-1 is ADVERSE: it fails more often than in the lab")
    assert told["text"].endswith(" http://here:8080/streams/arm-1?generation=1")
    environment = (tmp_path / "environment").read_text()
    assert "ALARM_STREAM=arm-1" in environment
    assert "BOUNDWATCH_STREAM" not in environment  # settings are called so
    assert "s3cret" not in environment


HOOKS = ("ftp://x", "x", "https://", "https://hooks.example.com:x/y", "https://hooks.example.com/a secret")


@pytest.mark.parametrize(
    ("kind", "targets"),
    [("webhook", HOOKS), ("command", ("'", "", "no-such-program"))],
)
def test_a_channel_that_cannot_work_is_refused(kind, targets):
    for target in targets:
        with pytest.raises(InvalidSetting):
            Channel(kind, target)
