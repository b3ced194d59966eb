"""Streams of a judge: people label what a coin drew, and nothing else decides."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.certificates.judged import AUDIT_RATES, is_drawn
from boundwatch.server import bindings, live_detectors
from boundwatch.server.bindings import bind_streams, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Database
from boundwatch.server.models import Bind, Label, Refused, Report, Upload
from boundwatch.server.queries import find_stream, list_waiting, report_label, totals
from boundwatch.server.transfer import restore


@pytest.fixture
def ledger(database, certificate, monkeypatch):
    seeds = itertools.count(7)
    monkeypatch.setattr(bindings.secrets, "randbits", lambda _: next(seeds))
    with database.write() as connection:
        upload(connection, Upload("lab", certificate.to_dict()), by="test")
        bind_streams(connection, Bind(["arm"], "lab", detector="judged-test"), by="test")
    ledger = Ledger(database)
    yield ledger
    ledger.close()


def report(ledger, costs, start=0):
    sent = [Report("arm", f"e{start + i}", float(cost), None, None) for i, cost in enumerate(costs)]
    return ledger.submit(sent).result(60)


def say(ledger, episode, success):
    with ledger.database.read() as connection:
        found = report_label(connection, "arm", Label(episode, success=success), by="ana")
    return ledger.submit([found], "ana").result(60)


def standing(ledger):
    with ledger.database.read() as connection:
        return dict(find_stream(connection, "arm"))


def waiting(ledger):
    with ledger.database.read() as connection:
        return [each["episode"] for each in list_waiting(connection, "arm")[2]]


def is_whole(database):
    return [each.fault for each in live_detectors.verify(database)] == [""]


def test_labels_decide_and_the_judge_alone_never_does(database, ledger):
    report(ledger, np.ones(80))  # to the judge, all failed
    assert standing(ledger)["verdict"] == "within"
    assert ledger.submit([Report("arm", "x", 1.0, None, None)]).result(60)["streams"]["arm"]["n"] == 81
    while drawn := waiting(ledger):  # to people, none did
        for episode in drawn:
            say(ledger, episode, success=True)
    now = standing(ledger)
    assert (now["verdict"], now["n"], now["total"]) == ("within", 81, 81)
    assert now["labeled"] > 20
    report(ledger, np.zeros(300), start=100)  # now it sees no failure, and people see them all
    for episode in waiting(ledger):
        say(ledger, episode, success=False)
    while drawn := waiting(ledger):
        for episode in drawn:
            say(ledger, episode, success=False)
    assert standing(ledger)["verdict"] == "adverse"
    with database.read() as connection:
        assert totals(connection)["open_alarms"] == 1
        assert totals(connection)["episodes_waiting"] == 0
    assert is_whole(database)


def test_it_is_the_test_of_the_library_with_a_coin_of_its_own(database, ledger, certificate):
    seed, rng = standing(ledger)["seed"], np.random.default_rng(4)
    assert seed is not None
    failed = rng.random(300) < 0.3
    judge = np.where(rng.random(300) < 0.1, ~failed, failed)
    test = bw.JudgedTest(certificate, seed=seed)
    for start in range(0, 300, 60):
        report(ledger, judge[start : start + 60], start=start)
        for cost in judge[start : start + 60]:
            test.update(float(cost))
        for episode in waiting(ledger)[::-1]:
            number = int(episode[1:]) + 1
            say(ledger, episode, success=not failed[number - 1])
            test.label(number, float(failed[number - 1]))
    now, finding = standing(ledger), test.finding()
    assert (now["verdict"], now["first_alarm"]) == (finding.verdict.value, finding.first_alarm)
    assert now["labeled"] == len(test._drawing.labels)
    assert now["n"] == finding.judged == 300
    assert is_whole(database)


def test_only_what_was_drawn_takes_a_label_and_only_one(database, ledger):
    report(ledger, np.zeros(80))
    seed, drawn = standing(ledger)["seed"], waiting(ledger)
    assert drawn == [f"e{i}" for i in range(80) if is_drawn(seed, AUDIT_RATES, i + 1, 0.0)]
    other = next(f"e{i}" for i in range(80) if f"e{i}" not in drawn)
    with pytest.raises(Refused, match=r"'e.*was not drawn; label those that wait"):
        say(ledger, other, success=False)
    with pytest.raises(Refused, match="was not judged"):
        say(ledger, "e99", success=False)
    say(ledger, drawn[0], success=True)
    assert say(ledger, drawn[0], success=True)["repeated"] == 1
    with pytest.raises(Refused, match="has another label; a label"):
        say(ledger, drawn[0], success=False)
    assert waiting(ledger) == drawn[1:]
    with pytest.raises(Refused, match="was counted with cost"):
        ledger.submit([Report("arm", drawn[0], 1.0, None, None)]).result(60)
    with database.read() as connection:
        late = report_label(connection, "arm", Label(drawn[1], success=True), by="ana")
    with database.write() as connection:
        again = Bind(["arm"], "lab", detector="judged-test", reason="repaired", new_generation=True)
        bind_streams(connection, again, by="test")
    with pytest.raises(Refused, match="began a new generation"):
        ledger.submit([late]).result(60)
    assert standing(ledger)["seed"] != seed


def test_who_labels_needs_a_token_for_it_and_sees_no_opinion(start):
    server = start("--detector", "judged-test")
    admin = server.token("admin", "administer")
    robot, people = server.token("robot", "report"), server.token("people", "label")
    sent = [
        {"stream": "arm", "episode": str(i), "success": i % 2 == 0, "meta": {"clip": i}} for i in range(60)
    ]
    assert server.report(*sent, token=robot)[0] == 200
    path = "/api/v1/streams/arm/labels"
    assert server.ask("GET", path, token=robot)[0] == server.ask("POST", path, {}, token=robot)[0] == 403
    listed = server.ask("GET", path, token=people)[1]
    assert listed["waiting"] == len(listed["episodes"]) > 0
    first = listed["episodes"][0]
    assert set(first) == {"episode", "time", "received", "meta"}
    assert first["meta"] == {"clip": int(first["episode"])}
    label = {"episode": first["episode"], "success": False}
    assert server.ask("POST", path, label, token=robot)[0] == 403
    assert server.ask("POST", path, label, token=people)[0] == 201
    assert server.ask("POST", path, {**label, "success": True}, token=people)[0] == 409
    assert server.ask("POST", path, {"episode": first["episode"]}, token=people)[0] == 422
    assert server.ask("GET", path, token=people)[1]["labeled"] == 1
    page = server.ask("GET", "/streams/arm", token=admin)[1]
    assert "wait for a label" in page
    assert "the judge says 30 of 60 failed, which decides nothing" in page
    status, blind = server.ask("GET", "/streams/arm/labels", token=people)
    assert status == 200
    assert server.ask("GET", "/streams/arm", token=people)[0] == 403
    assert "Success</button>" in blind
    assert "failed" not in blind
    backup, other = server.folder / "backup.jsonl", server.folder / "restored.sqlite"
    assert server.run("serve", "--export", str(backup)).returncode == 0
    database = Database(str(other))
    database.migrate()
    restore(database, backup)
    assert is_whole(database)
    database.close()
