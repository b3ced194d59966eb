"""One false discovery rate over the fleet, kept when streams are begun anew until one looks bad."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from sqlalchemy import select

import boundwatch as bw
from boundwatch.server import outbox, queries, upkeep
from boundwatch.server.bindings import bind_streams, declare_fleet, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.live_detectors import LiveDetector, evidence, verify
from boundwatch.server.metrics import collect
from boundwatch.server.models import Bind, Report, Upload
from boundwatch.server.tables import deliveries, watches
from network import episode, wait_until
from rates import assert_rate_at_most, min_trials

RATE, STREAMS, RESTARTS, TRIALS = 0.05, 5, 50, 4000
LARGE = 400.0  # an e-value of 400 with probability 1/400, else 0: its expected value is 1


def _share_of_false_lists(place):
    """Return how often a list is not empty when every stream is begun anew until its e-value is large."""
    rng = np.random.default_rng(20261116)
    hits = 0
    for _ in range(TRIALS):
        tries = rng.geometric(1 / LARGE, size=STREAMS)
        e_values = np.where(tries <= RESTARTS, LARGE, 0.0)
        used = np.minimum(tries, RESTARTS)
        # Streams take turns: the r-th watch of stream s began as number r STREAMS + s.
        places = [place(int(turn), stream) for stream, turn in enumerate(used)]
        hits += bool(queries.select_discoveries(e_values.tolist(), places, size=STREAMS, rate=RATE))
    return hits


def test_starting_anew_until_a_stream_looks_bad_keeps_the_rate():
    hits = _share_of_false_lists(lambda turn, stream: (turn - 1) * STREAMS + stream + 1)
    assert_rate_at_most(hits, TRIALS, RATE)


def test_dividing_by_the_streams_there_are_would_not():
    hits = _share_of_false_lists(lambda _turn, stream: stream + 1)
    with pytest.raises(AssertionError):
        assert_rate_at_most(hits, TRIALS, RATE)


class _RefreshedAtTheAlarm(LiveDetector):
    """The broken twin: which episode its evidence belongs to depends on whether an alarm came."""

    def count(self, cost):
        before = self.detector.verdict
        super().count(cost)
        if self.detector.verdict is not before:
            self.evidence = evidence(self.detector.finding())


def _largest_expectation(kind, upper=0.2, episodes=21):
    """Return the largest expected stored evidence of a rise, over all sequences of costs of 0 and 1."""
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=upper, delta=0.01, binary=True)
    reached = {(): (1.0, kind(bw.SequentialTest(certificate)).state())}
    expectations = []
    for _ in range(episodes):
        merged = {}
        for chance, state in reached.values():
            for cost, share in ((1.0, upper), (0.0, 1 - upper)):
                live = kind.from_state(state, "sequential-test", certificate)
                live.count(cost)
                key = live.total, live.evidence, live.detector.verdict
                merged[key] = merged.get(key, (0.0,))[0] + chance * share, live.state()
        reached = merged
        expectations.append(sum(chance * key[1][0] for key, (chance, _) in reached.items()))
    return max(expectations)


def test_the_stored_evidence_is_an_e_value():
    assert _largest_expectation(LiveDetector) == pytest.approx(1, abs=1e-12)


def test_evidence_refreshed_at_the_alarm_would_not_be():
    assert _largest_expectation(_RefreshedAtTheAlarm) == pytest.approx(1.0075, abs=1e-4)


@pytest.fixture
def database(database, certificate):
    with database.write() as connection:
        upload(connection, Upload("lab", certificate.to_dict()), by="test")
    return database


def test_it_lists_what_the_library_lists(database, certificate):
    rng = np.random.default_rng(3)
    names = [f"arm-{i:02}" for i in range(10)]
    costs = {name: (rng.random(60) < (0.5 if i < 3 else 0.1)).astype(float) for i, name in enumerate(names)}
    with database.write() as connection:
        declare_fleet(connection, len(names))
        bind_streams(connection, Bind(names, "lab"), by="test")
        bind_streams(connection, Bind(["drone"], "lab", detector="change-detector"), by="test")
    ledger = Ledger(database)
    fleet = bw.Fleet(certificate)
    for name in names:
        reports = [Report(name, str(i), cost, None, None) for i, cost in enumerate(costs[name].tolist())]
        ledger.submit(reports).result()
        fleet.update([name] * 60, costs[name])
    ledger.close()
    with database.read() as connection:
        found = queries.fleet(connection, 0.05)
    assert [row["name"] for row in found.discoveries] == fleet.discoveries(0.05) != []
    assert set(fleet.discoveries(0.05)) <= set(names[:3])
    assert (found.streams, found.left_out, found.size) == (10, 1, 10)
    assert found.delta == 0  # judged jointly with the certificate's costs


def test_delta_comes_on_top_once_per_certificate_that_keeps_no_costs(database):
    external = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    with database.write() as connection:
        upload(connection, Upload("vendor", external.to_dict()), by="test")
        bind_streams(connection, Bind(["a"], "lab"), by="test")
        bind_streams(connection, Bind(["b", "c"], "vendor"), by="test")
        bind_streams(connection, Bind(["d"], "vendor", alpha_adverse=0.01), by="test")
        assert queries.fleet(connection, 0.05).delta == external.delta_upper


def test_joint_counts_have_no_threshold(database):
    external = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    with database.write() as connection:
        upload(connection, Upload("vendor", external.to_dict()), by="test")
        bind_streams(connection, Bind(["joint"], "lab"), by="test")
        bind_streams(connection, Bind(["limits"], "vendor"), by="test")
        bind_streams(connection, Bind(["change"], "lab", detector="change-detector"), by="test")
        rows = {row["name"]: row for row in queries.list_streams(connection)[0]}
        exported = "".join(collect(connection))
    shown = {name: queries.as_json(row)["threshold_adverse"] for name, row in rows.items()}
    assert shown.pop("joint") is None
    assert shown["limits"] == bw.SequentialTest(external).thresholds[0]
    samples = re.findall(r'^boundwatch_stream_threshold{stream="(.*)"} (.*)$', exported, re.M)
    assert {name: float(value) for name, value in samples} == shown


def test_every_watch_takes_its_own_place_and_the_size_is_said_once(database):
    with database.write() as connection:
        bind_streams(connection, Bind(["a", "b"], "lab"), by="test")
        bind_streams(connection, Bind(["a"], "lab", reason="repaired", new_generation=True), by="test")
        assert connection.execute(select(watches.c.place).order_by(watches.c.id)).scalars().all() == [1, 2, 3]
        assert declare_fleet(connection) == declare_fleet(connection, 20) == 20
        with pytest.raises(bw.errors.InvalidSetting) as refused:
            declare_fleet(connection, 30)
        assert (refused.value.name, refused.value.value) == ("fleet_size", 30)


BOUND, WORSE, LEVEL = 0.2, 0.6, 0.04
TWINS = {0: 0.3, 3: 0.1, 12: 0.15}  # how often a stream that is told of is not worse, or the test must notice


def _told(rng, *, worse, told, episodes=60, streams=20):
    """Return who is told of, after every round, of streams that are exactly at the certified limit.

    The evidence bets a third on every failure, so that it moves much between two looks.
    """
    e_values, listed = np.ones(streams), []
    chances = np.where(np.arange(streams) < worse, WORSE, BOUND)
    for _ in range(episodes):
        e_values *= 1 + (rng.random(streams) < chances) / (3 * BOUND) - 1 / 3
        listed = told(e_values, listed)
    return listed


def _discoveries(e_values, before):
    """Return who has ever been told of: as `upkeep.find_discoveries` does, with those before as infinite."""
    known = np.where(np.isin(np.arange(e_values.size), before), np.inf, e_values).tolist()
    return queries.select_discoveries(known, range(1, e_values.size + 1), size=e_values.size, rate=RATE)


def _alarms(e_values, before):
    """The broken twin: every stream alarms at its own level."""
    return sorted({*before, *np.flatnonzero(e_values >= 1 / LEVEL).tolist()})


def _false_shares(told, *, worse):
    """Return in how many trials a stream drawn from those told of was not worse."""
    rng, trials = np.random.default_rng(20261117), min_trials(RATE, TWINS[worse])
    hits = 0
    for _ in range(trials):
        found = _told(rng, worse=worse, told=told)
        hits += bool(found) and found[rng.integers(len(found))] >= worse
    return hits, trials


@pytest.mark.parametrize("worse", [0, 3, 12])
def test_of_all_discoveries_that_are_ever_told_few_are_false(worse):
    assert_rate_at_most(*_false_shares(_discoveries, worse=worse), RATE)


@pytest.mark.parametrize("worse", [0, 3])
def test_alarms_of_twenty_streams_would_keep_no_such_rate(worse):
    with pytest.raises(AssertionError):
        assert_rate_at_most(*_false_shares(_alarms, worse=worse), RATE)


def test_who_is_worse_is_found():
    rng = np.random.default_rng(1)
    found = [sum(each < 3 for each in _told(rng, worse=3, told=_discoveries)) for _ in range(200)]
    assert np.mean(found) > 2.9


def test_a_discovery_is_told_once_and_alarms_of_streams_are_listed(database):
    channels = [outbox.Channel("webhook", f"http://127.0.0.1:9/{of}") for of in ("streams", "discoveries")]
    with database.write() as connection:
        declare_fleet(connection, 10)
        bind_streams(connection, Bind([f"arm-{i}" for i in range(10)], "lab"), by="test")
    ledger = Ledger(database, channels=channels[:1])
    told = []

    def report(stream, start, costs):
        batch = [Report(stream, str(start + i), float(cost), None, None) for i, cost in enumerate(costs)]
        ledger.submit(batch).result()
        with database.write() as connection:
            told.extend(upkeep.tell_discoveries(connection, RATE, channels[1:]))

    unlucky = [1, 1, 1, 1, 1, 0, 0, 1] + [
        0,
        0,
        0,
        1,
    ] * 8  # enough for an alarm, not for a discovery among ten
    report("arm-1", 0, unlucky)
    report("arm-2", 0, [1] * 15)
    report("arm-2", 100, [1] * 15)  # it was told of
    report("arm-3", 0, [0, 0, 1] * 5)
    ledger.close()
    assert told == ["arm-2"]
    with database.read() as connection:
        rows = connection.execute(select(deliveries.c.target, deliveries.c.payload)).all()
        kept = queries.list_alarms(connection)
        listed = [row["name"] for row in queries.fleet(connection, RATE).discoveries]
    assert listed == ["arm-2"]
    sent = sorted((label, json.loads(text)["kind"], json.loads(text)["stream"]) for label, text in rows)
    labels = [channel.label for channel in channels]
    expected = [
        (labels[0], "alarm", "arm-1"),
        (labels[0], "alarm", "arm-2"),
        (labels[1], "discovery", "arm-2"),
    ]
    assert sent == sorted(expected)
    assert {(each["stream"], each["verdict"]) for each in kept} == {
        ("arm-1", "adverse"), ("arm-2", "adverse"), ("arm-2", "discovery")
    }  # fmt: skip
    assert [each for each in verify(database) if each.fault] == []


def test_a_discovery_reaches_who_asked_for_it(start, tmp_path):
    called = tmp_path / "called"
    server = start("--tell", "discoveries", "--on-alarm", f"tee -a {called}", "--fleet-size", "5")
    for number in range(30):
        assert server.report(episode("arm-1", number, success=False), episode("arm-2", number))[0] == 200
    wait_until(lambda: called.exists() and called.read_text(), 20, server.log)
    content = json.loads(called.read_text())
    assert (content["kind"], content["stream"], content["rate"]) == ("discovery", "arm-1", 0.05)
    assert "a discovery at a false discovery rate of 0.05" in content["text"]
    kinds = {(each["stream"], each["verdict"]) for each in server.ask("GET", "/api/v1/alarms")[1]["alarms"]}
    assert kinds == {("arm-1", "adverse"), ("arm-1", "discovery")}
    for path, said in (
        ("/alarms", "was found among all streams"),
        ("/fleet", "People are called for"),
        ("/streams/arm-1", "Discovery at"),
    ):
        assert said in server.ask("GET", path)[1], path
