"""Counting: once each, whole or not at all, and equal to a replay byte for byte."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import delete, func, insert, select, update

import boundwatch as bw
from boundwatch.errors import InvalidSetting
from boundwatch.server import commit, counting, queries
from boundwatch.server.bindings import Binding, bind_streams, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Database
from boundwatch.server.live_detectors import POINTS, LiveDetector, verify
from boundwatch.server.models import Acknowledge, Bind, Refused, Report, Upload
from boundwatch.server.outbox import acknowledge
from boundwatch.server.tables import alarms, checkpoints, episodes, streams, watches
from network import wait_until


@pytest.fixture
def binding(database, certificate):
    with database.write() as connection:
        return Binding(upload(connection, Upload("lab", certificate.to_dict()), by="test")["id"])


@pytest.fixture
def ledger(database, binding):
    opened = Ledger(database, default=binding)
    yield opened
    opened.close()


def report(stream, episode, cost):
    return Report(stream, str(episode), float(cost), None, None)


def waiting(database):
    with database.read() as connection:
        return queries.totals(connection)["episodes_waiting"]


def assert_replays(database):
    assert [each for each in verify(database) if each.fault] == []


def test_the_mean_over_tasks_is_not_watched_trial_by_trial(database):
    lab = bw.Episodes([0, 1] * 10, strata=["mug", "lid"] * 10, binary=True)
    sent = Upload("lab", bw.Certificate.from_held_out(lab, binary=True).to_dict())
    with database.write() as connection, pytest.raises(InvalidSetting, match="is of the mean over tasks"):
        upload(connection, sent, by="test")


def test_counts_what_the_detector_counts(database, ledger, certificate):
    costs = (np.random.default_rng(1).random(300) < 0.3).astype(float)
    for start in range(0, 300, 7):
        batch = [report("arm", start + i, cost) for i, cost in enumerate(costs[start : start + 7])]
        answer = ledger.submit(batch).result()
    finding = bw.SequentialTest(certificate).update_many(costs)
    assert answer["streams"]["arm"] == {"generation": 1, "n": 300, "verdict": "adverse", "waiting": 0}
    with database.read() as connection:
        row = connection.execute(select(watches)).mappings().one()
        alarm = connection.execute(select(alarms)).mappings().one()
    last = POINTS[len(json.loads(row["curve"])[0]) - 1]
    assert last == max(point for point in POINTS if point <= 300)
    assert row["evidence_adverse"] == bw.SequentialTest(certificate).update_many(costs[:last]).e_adverse
    assert row["first_alarm"] == alarm["number"] == finding.first_alarm
    assert_replays(database)


def test_a_repeat_counts_once_and_another_cost_is_a_conflict(ledger):
    assert ledger.submit([report("arm", 1, 0)]).result()["counted"] == 1
    assert ledger.submit([report("arm", 1, 0)]).result()["repeated"] == 1
    with pytest.raises(Refused) as refused:
        ledger.submit([report("arm", 1, 1)]).result()
    assert (refused.value.status, refused.value.name, refused.value.value) == (409, "episode", "1")
    same = ledger.submit([report("arm", 2, 1), report("arm", 2, 1)]).result()
    assert (same["counted"], same["repeated"], same["streams"]["arm"]["n"]) == (1, 1, 2)


def test_a_batch_is_taken_whole_or_not_at_all(database, ledger):
    good, bad = report("arm", 1, 0), report("arm", 1, 1)
    futures = [
        ledger.submit(batch) for batch in ([good, bad], [report("arm", 2, 0.5)], [report("arm", 3, 0)])
    ]
    for future, status in zip(futures[:2], (409, 422), strict=True):
        with pytest.raises(Refused) as refused:
            future.result()
        assert refused.value.status == status
    assert futures[2].result()["streams"]["arm"]["n"] == 1
    with database.read() as connection:
        assert connection.execute(select(episodes.c.episode)).scalars().all() == ["3"]


def test_an_unknown_stream_is_refused_without_a_default(database):
    strict = Ledger(database)
    with pytest.raises(Refused) as refused:
        strict.submit([report("arm", 1, 0)]).result()
    assert refused.value.status == 404
    strict.close()


def test_two_servers_and_the_same_streams_count_each_episode_once(database, database_url, ledger, binding):
    other_database = Database(database_url)
    other = Ledger(other_database, default=binding)
    names = [f"arm-{i}" for i in range(5)]
    sent = [(name, i, float(i % 9 == 0)) for name in names for i in range(80)]

    def send(seed):
        rng = np.random.default_rng(seed)
        mine = [sent[i] for i in rng.permutation(len(sent))]
        servers = [ledger, other]
        futures = [
            servers[rng.integers(2)].submit([report(*x) for x in mine[i : i + 8]]) for i in range(0, 400, 8)
        ]
        return sum(future.result()["counted"] for future in futures)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(send, range(4))) == len(sent)
    wait_until(lambda: waiting(database) == 0)
    other.close()
    other_database.close()
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(episodes)).scalar() == len(sent)
        assert connection.execute(select(watches.c.n)).scalars().all() == [80] * 5
    assert_replays(database)


def test_a_stream_that_another_server_binds_in_between_is_not_an_error(postgres, certificate, monkeypatch):
    databases = [Database(url) for url in [postgres()] * 2]
    databases[0].migrate()
    with databases[0].write() as connection:
        added = upload(connection, Upload("lab", certificate.to_dict()), by="test")
    first, other = (Ledger(each, default=Binding(added["id"])) for each in databases)
    real = commit.Storing._find_streams

    def find(self, connection, names):
        found = real(self, connection, names)
        if self.ledger is first and not found:  # it is about to bind the stream
            other.submit([report("arm", "other", 0)]).result()
        return found

    monkeypatch.setattr(commit.Storing, "_find_streams", find)
    answer = first.submit([report("arm", "first", 0), report("leg", "first", 0)]).result()
    assert answer["streams"]["arm"] == {"generation": 1, "n": 2, "verdict": "within", "waiting": 0}
    assert answer["streams"]["leg"]["n"] == 1
    assert_replays(databases[0])
    for each in (first, other, *databases):
        each.close()


def test_what_failed_is_counted_once_when_it_is_sent_again(database, ledger, monkeypatch):
    ledger.submit([report("arm", 1, 1)]).result()
    for turn, step in enumerate((commit.Storing, commit.Counting), 2):
        real = step.run

        def fail(self, connection, real=real):
            real(self, connection)
            raise OSError("disk full")

        monkeypatch.setattr(step, "run", fail)
        with pytest.raises(Refused) as refused:
            ledger.submit([report("arm", turn, 1)]).result()
        assert refused.value.status == 503
        monkeypatch.setattr(step, "run", real)
        assert ledger.submit([report("arm", turn, 1)]).result()["streams"]["arm"]["n"] == turn
    assert_replays(database)


@pytest.mark.parametrize("where", ["count", "load"])
def test_a_detector_that_fails_silences_no_other_stream(database, ledger, monkeypatch, caplog, where):
    real_count, real_load = LiveDetector.count, counting.load_checkpoints

    def count(self, cost, episode="", *rest):
        if episode.startswith("poisoned"):
            raise ValueError("a detector with a fault")
        real_count(self, cost, episode, *rest)

    def load(connection, found):
        if any(each["name"] == "poisoned" for each in found):
            raise ValueError("a detector with a fault")
        return real_load(connection, found)

    monkeypatch.setattr(commit, "LEAVE_ALONE", 0.5)
    if where == "count":
        monkeypatch.setattr(LiveDetector, "count", count)
    else:
        monkeypatch.setattr(counting, "load_checkpoints", load)
    names = ["arm-1", "arm-2", "poisoned", "arm-3"]
    for turn in range(2):
        batches = [[report(name, f"{name}-{turn}-{i}", 1) for i in range(10)] for name in names]
        answers = [each.result() for each in [ledger.submit(batch) for batch in batches]]
        for name, answer in zip(names, answers, strict=True):
            is_bad = name == "poisoned"
            assert answer["counted"] == 10
            assert answer["streams"][name]["n"] == (0 if is_bad else 10 * turn + 10)
            assert answer["streams"][name]["waiting"] == (10 if is_bad else 0)
        time.sleep(1.2)  # it is tried again, in vain
    mixed = ledger.submit([report("poisoned", "poisoned", 1), report("arm-1", "last", 1)]).result()
    assert [mixed["streams"][name]["n"] for name in ("poisoned", "arm-1")] == [0, 21]
    assert waiting(database) == 21
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(alarms)).scalar() == 3
    assert caplog.text.count("Traceback") == 1
    assert "a detector with a fault" in caplog.text
    assert_replays(database)
    monkeypatch.setattr(LiveDetector, "count", real_count)
    monkeypatch.setattr(counting, "load_checkpoints", real_load)
    wait_until(lambda: waiting(database) == 0, 5)
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(alarms)).scalar() == 4
    assert_replays(database)


def test_whatever_changes_is_seen_by_a_page_that_is_open(database, ledger, monkeypatch):
    def see():
        with database.read() as connection:
            return queries.latest(connection)

    def fail(stream):
        ledger.submit([report(stream, i, 1) for i in range(20)]).result()

    def act(what, *arguments):
        with database.write() as connection:
            what(connection, *arguments, by="me")

    def acknowledge_and_alarm():
        with database.read() as connection:
            (alarm,) = queries.list_alarms(connection)
        act(acknowledge, alarm["id"], Acknowledge("worn"))
        fail("leg")

    def count_an_older_one():
        clock = SimpleNamespace(
            time=lambda: 5.0, monotonic=time.monotonic, gmtime=time.gmtime, strftime=time.strftime
        )
        monkeypatch.setattr(commit, "time", clock)
        ledger.submit([report("leg", "older", 0)]).result()

    seen = see()
    for change in (
        partial(fail, "arm"),
        partial(act, bind_streams, Bind(["new"], "lab")),
        partial(act, bind_streams, Bind(["arm"], "lab", reason="repaired", new_generation=True)),
        acknowledge_and_alarm,
        count_an_older_one,
    ):
        change()
        before, seen = seen, see()
        assert before != seen
        assert all(before[name] <= seen[name] for name in seen)


def test_states_survive_checkpoints_and_cold_caches(database, ledger, monkeypatch):
    monkeypatch.setattr(commit, "CHECKPOINT_EVERY", 10)
    monkeypatch.setattr(counting, "CACHED_DETECTORS", 2)
    rng = np.random.default_rng(3)
    for i in range(40):
        ledger.submit(
            [report(f"arm-{j}", f"{i}-{k}", rng.random() < 0.2) for j in range(4) for k in range(3)]
        ).result()
    with database.read() as connection:
        assert connection.execute(select(func.count()).select_from(checkpoints)).scalar() == 4
    assert_replays(database)


def test_a_state_of_another_version_is_rebuilt(database, ledger, monkeypatch):
    monkeypatch.setattr(commit, "CHECKPOINT_EVERY", 5)
    ledger.submit([report("arm", i, i % 5 == 0) for i in range(20)]).result()
    with database.write() as connection:
        state = connection.execute(select(checkpoints.c.state)).scalar_one()
        connection.execute(update(checkpoints).values(state=state.replace('"version":1', '"version":0')))
    ledger._detectors.clear()
    assert ledger.submit([report("arm", 20, 0)]).result()["streams"]["arm"]["n"] == 21


ONE = update(episodes).where(episodes.c.number == 30)


@pytest.mark.parametrize(
    "change",
    [
        update(watches).values(n=39),
        update(watches).values(evidence_adverse=2.0),
        update(watches).values(verdict="benign"),
        update(watches).values(last_seen=1.0),
        update(watches).where(watches.c.generation == 2).values(closed=1.0),
        update(watches).where(watches.c.generation == 1).values(closed=None),
        update(watches).where(watches.c.generation == 1).values(closed=1.0),
        update(streams).values(generation=3),
        ONE.values(cost=1.0),
        ONE.values(episode="another"),
        ONE.values(time=1.0),
        ONE.values(received=1.0),
        delete(alarms),
        update(alarms).values(number=3),
        update(alarms).values(verdict="benign"),
        update(alarms).values(created=1.0),
        update(watches).values(detector="another"),
        insert(checkpoints).values(watch_id=2, state="{"),
        ONE.values(cost=0.5),
    ],
)
def test_verify_notices_what_was_altered(database, ledger, change):
    ledger.submit([report("arm", i, i % 2 == 0) for i in range(40)]).result()
    with database.write() as connection:
        bind_streams(connection, Bind(["arm"], "lab", reason="repaired", new_generation=True), by="me")
    ledger.submit([report("arm", 100 + i, i % 7 == 0) for i in range(20)]).result()
    assert_replays(database)
    with database.write() as connection:
        connection.execute(change)
    assert {each.stream for each in verify(database) if each.fault} == {"arm"}


def test_a_binding_cannot_be_changed_and_a_new_generation_starts_anew(database, ledger):
    ledger.submit([report("arm", i, 1) for i in range(20)]).result()
    anew = Bind(["arm"], "lab", reason="gripper replaced", new_generation=True)
    with database.write() as connection, pytest.raises(Refused, match="cannot be changed"):
        bind_streams(connection, Bind(["arm"], "lab", alpha_adverse=0.01), by="me")
    with database.write() as connection:
        bound = bind_streams(connection, anew, by="me")
    assert bound == {"arm": 2}
    answer = ledger.submit([report("arm", 100, 0)]).result()["streams"]["arm"]
    assert answer == {"generation": 2, "n": 1, "verdict": "within", "waiting": 0}
    late = ledger.submit([report("arm", 3, 1)]).result()  # an episode of the generation before, sent again
    assert (late["counted"], late["repeated"]) == (0, 1)
    assert_replays(database)


def test_what_ran_before_a_repair_does_not_count_after_it(database, ledger):
    measured = bw.Certificate.from_held_out([0.1, 0.4] * 50)
    with database.write() as connection:
        upload(connection, Upload("measured", measured.to_dict()), by="me")
        bind_streams(connection, Bind(["arm"], "measured"), by="me")
    long_ago = Report("arm", "counted then", 0.5, 1e9, None)  # a first generation takes what is old, too
    assert ledger.submit([long_ago]).result()["counted"] == 1
    with database.write() as connection:
        bind_streams(connection, Bind(["arm"], "lab", reason="repaired", new_generation=True), by="me")
        began = connection.execute(select(func.max(watches.c.created))).scalar_one()
    before = [Report("arm", f"before {i}", 1.0, began - 1 - i, None) for i in range(40)]
    with pytest.raises(Refused) as refused:
        ledger.submit(before).result()
    assert (refused.value.status, refused.value.value) == (409, "before 0")
    after = [Report("arm", "after", 0.0, began, None), report("arm", "without a time", 0)]
    answer = ledger.submit([long_ago, *after]).result()  # what was counted then is a repeat, not an error
    assert (answer["counted"], answer["repeated"]) == (2, 1)
    assert answer["streams"]["arm"] == {"generation": 2, "n": 2, "verdict": "within", "waiting": 0}
    assert_replays(database)


def test_the_change_detector_is_watched_alike(database, ledger):
    with database.write() as connection:
        bind_streams(connection, Bind(["arm"], "lab", detector="change-detector"), by="me")
    ledger.submit([report("arm", i, i >= 50) for i in range(70)]).result()
    with database.read() as connection:
        row = connection.execute(select(watches)).mappings().one()
    assert (row["verdict"], row["alpha_adverse"]) == ("adverse", 0.001)
    assert_replays(database)


def test_looking_for_known_episodes_never_reads_all_of_them(sqlite):
    query = commit._FIND_EPISODES.replace("ASKED", "(VALUES (1, 'a'), (2, 'b')) AS asked")
    with sqlite.read() as connection:
        plan = " ".join(str(row) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
    assert "SEARCH episodes USING INDEX" in plan
    assert "SCAN episodes" not in plan
