"""Several processes and one database: anybody takes any report, one counts it, and who dies is replaced."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import event, select, update

from boundwatch.server import commit, queries, roster, transfer
from boundwatch.server.bindings import Binding, bind_streams, upload
from boundwatch.server.counting import Ledger
from boundwatch.server.database import Database
from boundwatch.server.live_detectors import LiveDetector, verify
from boundwatch.server.models import Bind, Refused, Report, Upload
from boundwatch.server.roster import SHARDS
from boundwatch.server.tables import episodes, processes, watches
from network import wait_until

NAMES = [f"arm-{i}" for i in range(12)]


def report(stream, episode, cost=0):
    return Report(stream, str(episode), float(cost), None, None)


@pytest.fixture
def two(database, database_url, certificate):
    """Return two ledgers that know of each other, and have the streams bound."""
    with database.write() as connection:
        binding = Binding(upload(connection, Upload("lab", certificate.to_dict()), by="test")["id"])
        bind_streams(connection, Bind(NAMES, "lab"), by="test")
    opened = [database, Database(database_url)]
    ledgers = [Ledger(each, default=binding) for each in opened]
    wait_until(lambda: sum(len(each.roster.owned) for each in ledgers) == SHARDS)
    assert not any(each.roster.is_alone for each in ledgers)
    yield ledgers
    for each in ledgers:
        each.close()
    opened[1].close()


def owned(ledger, other):
    """Return a stream that a ledger counts, and one that the other does."""
    ids = {name: other.submit([report(name, "first")]).result() and other.ids[name] for name in NAMES}
    mine = [name for name, key in ids.items() if ledger.roster.owns(key)]
    theirs = [name for name, key in ids.items() if other.roster.owns(key)]
    return mine[0], theirs[0]


def numbers(database):
    query = select(watches.c.n).order_by(watches.c.id)
    with database.read() as connection:
        return connection.execute(query).scalars().all()


def waiting(database):
    with database.read() as connection:
        return queries.totals(connection)["episodes_waiting"]


def assert_replays(database):
    assert [each for each in verify(database) if each.fault] == []


def test_the_answer_says_what_another_process_is_to_count(two):
    first, other = two
    mine, theirs = owned(first, other)
    wait_until(lambda: waiting(first.database) == 0)
    answer = first.submit([report(mine, 2), report(theirs, 2), report(theirs, 3)]).result()
    assert (answer["counted"], answer["repeated"]) == (3, 0)
    assert answer["streams"][mine] == {"generation": 1, "n": 2, "verdict": "within", "waiting": 0}
    assert answer["streams"][theirs] == {"generation": 1, "n": 1, "verdict": "within", "waiting": 2}
    wait_until(lambda: waiting(first.database) == 0, 5)
    again = first.submit([report(theirs, 3)]).result()
    assert (again["repeated"], again["streams"][theirs]["n"]) == (1, 3)
    assert_replays(first.database)


def test_what_one_client_sends_is_counted_in_its_order_by_whoever_counts(two):
    first, other = two
    _, theirs = owned(first, other)
    for start in range(0, 200, 20):
        first.submit([report(theirs, i) for i in range(start, start + 20)]).result()
    wait_until(lambda: waiting(first.database) == 0, 5)
    order = select(episodes.c.episode).where(episodes.c.stream_id == first.ids[theirs])
    with first.database.read() as connection:
        found = connection.execute(order.order_by(episodes.c.number)).scalars().all()
    assert found == ["first", *(str(i) for i in range(200))]
    assert_replays(first.database)


def test_an_id_with_two_costs_at_two_processes_counts_once_and_is_refused_once(two):
    results = []
    for turn in range(20):
        sent = [(each, [report(name, turn, cost) for name in NAMES]) for cost, each in enumerate(two)]
        with ThreadPoolExecutor(2) as pool:
            for future in pool.map(lambda both: both[0].submit(both[1]), sent):
                try:
                    results.append(future.result(30)["counted"])
                except Refused as refused:
                    results.append(refused.status)
    assert sorted(results) == [12] * 20 + [409] * 20
    wait_until(lambda: waiting(two[0].database) == 0, 5)
    assert numbers(two[0].database) == [20] * 12
    assert_replays(two[0].database)


def test_who_dies_is_replaced_and_what_was_left_to_it_is_counted(two, monkeypatch):
    first, other = two
    _, theirs = owned(first, other)
    wait_until(lambda: waiting(first.database) == 0)
    monkeypatch.setattr(roster, "_DEAD_AFTER", 1.0)
    real = other._gather
    other._gather = lambda: time.sleep(8) or real()  # as if it were frozen
    time.sleep(0.5)
    answer = first.submit([report(theirs, i) for i in range(5)]).result()
    assert answer["streams"][theirs]["waiting"] == 5
    wait_until(lambda: first.roster.is_alone, 5)
    wait_until(lambda: waiting(first.database) == 0, 5)
    assert first.submit([report(theirs, 9)]).result()["streams"][theirs] == {
        "generation": 1, "n": 7, "verdict": "within", "waiting": 0
    }  # fmt: skip
    other._gather = real
    wait_until(lambda: not first.roster.is_alone and not other.roster.is_alone, 15)  # it comes back
    assert_replays(first.database)


def test_two_that_both_think_a_stream_is_theirs_count_it_in_turns(two, monkeypatch):
    for each in two:
        monkeypatch.setattr(each.roster, "look", lambda: False)
        each.roster.owned = frozenset(range(SHARDS))
    with ThreadPoolExecutor(8) as pool:
        sent = [(two[i % 2], [report(name, i) for name in NAMES]) for i in range(120)]
        done = list(pool.map(lambda both: both[0].submit(both[1]).result(60), sent))
    assert sum(answer["counted"] for answer in done) == 120 * 12
    assert {stream["waiting"] for answer in done for stream in answer["streams"].values()} == {0}
    assert numbers(two[0].database) == [120] * 12
    assert_replays(two[0].database)


def test_what_was_stored_before_a_repair_counts_before_it(two, monkeypatch):
    first, other = two
    _, theirs = owned(first, other)
    wait_until(lambda: waiting(first.database) == 0)
    monkeypatch.setattr(other, "_after", time.monotonic() + 3600)  # it has no time for what others store
    first.submit([report(theirs, i, 1) for i in range(5)]).result()
    with first.database.write() as connection:
        bind_streams(connection, Bind([theirs], "lab", reason="repaired", new_generation=True), by="me")
    assert first.submit([report(theirs, "after")]).result()["streams"][theirs]["generation"] == 2
    other._after = 0.0
    wait_until(lambda: waiting(first.database) == 0, 5)
    query = select(watches.c.generation, watches.c.n).where(watches.c.stream_id == first.ids[theirs])
    with first.database.read() as connection:
        assert sorted(map(tuple, connection.execute(query))) == [(1, 6), (2, 1)]
    assert_replays(first.database)


def one_that_fails_and_one_that_does_not(first, other, monkeypatch):
    """Return two streams that the other process counts, one of which will fail at the episode "bad"."""
    _, theirs = owned(first, other)
    sound = next(name for name in NAMES if name != theirs and other.roster.owns(other.ids[name]))
    wait_until(lambda: waiting(first.database) == 0)
    real = LiveDetector.count

    def fail(self, cost, episode="", *rest):
        if episode == "bad":
            raise ValueError("a detector with a fault")
        real(self, cost, episode, *rest)

    monkeypatch.setattr(LiveDetector, "count", fail)
    return theirs, sound


def test_what_cannot_be_counted_keeps_no_other_stream_from_it(two, monkeypatch, caplog):
    (first, other), real = two, LiveDetector.count
    theirs, sound = one_that_fails_and_one_that_does_not(first, other, monkeypatch)
    monkeypatch.setattr(commit, "LEAVE_ALONE", 0.5)
    first.submit([report(theirs, "bad")]).result()
    for turn in range(10):
        streams = other.submit([report(theirs, turn), report(sound, turn)]).result()["streams"]
        assert (streams[theirs]["n"], streams[theirs]["waiting"]) == (1, 1)
        assert (streams[sound]["n"], streams[sound]["waiting"]) == (turn + 2, 0)
        time.sleep(0.1)
    assert waiting(first.database) == 11
    assert "a detector with a fault" in caplog.text
    assert caplog.text.count("Traceback") < 10
    monkeypatch.setattr(LiveDetector, "count", real)
    wait_until(lambda: waiting(first.database) == 0, 5)
    assert_replays(first.database)


def test_a_handed_stream_alarms_beside_one_that_cannot_be_counted(two, monkeypatch):
    first, other = two
    theirs, sound = one_that_fails_and_one_that_does_not(first, other, monkeypatch)
    handed = [report(sound, i, 1) for i in range(5)]
    first.submit([report(theirs, "bad"), *handed]).result()
    wait_until(lambda: waiting(first.database) == 1, 4)
    first.submit(
        [report(sound, f"again-{i}", 1) for i in range(15)]
    ).result()  # while the other is left alone
    wait_until(lambda: waiting(first.database) == 1, 4)
    answer = other.submit([report(sound, "direct", 1)]).result()
    assert answer["streams"][sound] == {"generation": 1, "n": 22, "verdict": "adverse", "waiting": 0}
    assert_replays(first.database)


def test_the_last_to_leave_counts_what_is_left(two):
    first, other = two
    owned(first, other)
    futures = [each.submit([report(name, f"{i}") for name in NAMES]) for i in range(30) for each in two]
    other.close()
    first.close()
    assert sum(future.result()["counted"] for future in futures) == 30 * 12
    assert waiting(first.database) == 0
    assert numbers(first.database) == [31] * 12
    with first.database.read() as connection:
        assert connection.execute(select(processes)).all() == []


def test_who_is_alone_writes_nothing_of_itself(database):
    ledger = Ledger(database)
    written = []
    event.listen(database.engine, "before_cursor_execute", lambda *arguments: written.append(arguments[2]))
    time.sleep(2)
    ledger.close()
    changes = [sql for sql in written if not sql.lstrip().startswith(("SELECT", "BEGIN", "PRAGMA"))]
    assert len(changes) <= 4, changes  # it comes, and goes
    assert len([sql for sql in written if "episodes" in sql]) <= 4


def test_what_waits_is_in_a_backup_and_is_counted_after_it(two, sqlite, tmp_path, monkeypatch):
    first, other = two
    _, theirs = owned(first, other)
    wait_until(lambda: waiting(first.database) == 0)
    monkeypatch.setattr(other, "_after", time.monotonic() + 3600)
    first.submit([report(theirs, i, 1) for i in range(7)]).result()
    transfer.export(first.database, tmp_path / "backup.jsonl")
    transfer.restore(sqlite, tmp_path / "backup.jsonl")
    assert waiting(sqlite) == 7
    Ledger(sqlite).close()
    assert waiting(sqlite) == 0
    assert sum(numbers(sqlite)) == 12 + 7
    assert_replays(sqlite)


def test_shards_are_dealt_evenly_and_few_move(database):
    names = [f"{i:016x}" for i in range(4)]
    deals = {}
    for left in (4, 3):
        for name in names[:left]:
            each = roster.Roster(database)
            each.me = name
            each._deal(set(names[:left]))
            deals[left, name] = each.owned
    for left in (4, 3):
        dealt = [deals[left, name] for name in names[:left]]
        assert sorted(shard for shards in dealt for shard in shards) == list(range(SHARDS))
        assert min(len(shards) for shards in dealt) > SHARDS / left / 2
    assert all(deals[4, name] <= deals[3, name] for name in names[:3])  # who stays keeps all


def test_an_edited_time_of_a_stored_episode_is_noticed_once_it_counted(two):
    first, other = two
    owned(first, other)
    wait_until(lambda: waiting(first.database) == 0)
    with first.database.write() as connection:
        connection.execute(update(episodes).values(received=episodes.c.received + 1))
    assert len([each for each in verify(first.database) if each.fault]) == 12
