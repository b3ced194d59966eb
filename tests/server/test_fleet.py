"""One false discovery rate over the fleet, kept when streams are begun anew until one looks bad."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sqlalchemy import select

import boundwatch as bw
from boundwatch.server import queries
from boundwatch.server.bindings import bind_streams, declare_fleet, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.live_detectors import LiveDetector, evidence
from boundwatch.server.metrics import collect
from boundwatch.server.models import Bind, Report, Upload
from boundwatch.server.tables import watches
from rates import assert_rate_at_most

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
