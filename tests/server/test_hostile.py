"""What arrives to do harm: it is refused in one line, and what was let in ends when it may stay no longer."""

from __future__ import annotations

import json
import stat

import pytest
from sqlalchemy import select

import boundwatch as bw
from boundwatch.demo.drones import fill, load_flights
from boundwatch.errors import InvalidSetting
from boundwatch.server import transfer
from boundwatch.server.database import Database
from boundwatch.server.tables import streams, watches
from network import episode


@pytest.fixture(scope="module")
def on_postgresql(start_shared, postgres):
    return start_shared(database=postgres())


EPISODE = '{"stream": "arm-1", "episode": "1", "cost": 1, '


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (EPISODE + '"time": 1' + "0" * 400 + "}", 400),
        (EPISODE + '"time": 1' + "0" * 290 + "}", 422),
        (EPISODE + '"time": 1e400}', 422),
        (EPISODE + '"cost": 0}', 400),  # twice
        (EPISODE + '"meta": {"a": 1, "a": 2}}', 400),
        (EPISODE + '"meta": {"a": "\\ud800"}}', 400),
        (EPISODE + '"meta": {"a": 1e400}}', 422),
        (EPISODE + '"meta": {"a": ' + "[" * 100 + "]" * 100 + "}}", 422),
        (EPISODE + '"meta": {"a": ' + "[" * 2000 + "]" * 2000 + "}}", 400),
        (EPISODE.replace("1,", "1" + "0" * 400 + ","), 400),
    ],
)
def test_a_body_that_no_database_or_reader_can_hold_is_refused(on_postgresql, body, status):
    answered, problem = on_postgresql.ask("POST", "/api/v1/episodes", body.encode())
    assert (answered, problem["status"]) == (status, status)
    assert on_postgresql.ask("GET", "/api/v1/streams")[1]["total"] == 0


def test_a_pair_of_surrogates_is_a_character(on_postgresql):
    body = '{"stream": "leg-1", "episode": "1", "cost": 1, "meta": {"a": "\\ud83e\\udd16"}}'
    assert json.loads(body)["meta"]["a"] == "\N{ROBOT FACE}"
    assert on_postgresql.ask("POST", "/api/v1/episodes", body.encode())[0] == 200
    (episode,) = on_postgresql.ask("GET", "/api/v1/streams/leg-1/episodes")[1]["episodes"]
    assert episode["meta"] == {"a": "\N{ROBOT FACE}"}


def test_a_zero_character_is_no_failure_of_the_database(on_postgresql):
    listing = ("?search=%00", "/%00", "/a%00b/episodes")
    pages = ("/?search=%00", "/streams/%00", "/fleet?search=%00")
    for path in (*pages, *(f"/api/v1/streams{rest}" for rest in listing)):
        assert 200 <= on_postgresql.ask("GET", path)[0] < 500, path


def test_a_token_cannot_begin_streams_without_limit(start):
    server = start("--fleet-size", "4", BOUNDWATCH_STREAMS_PER_TOKEN="3")  # noqa: S106
    first, second = server.token("cell-1", "report"), server.token("cell-2", "report", "read")

    def report(token, *numbers):
        return server.report(*(episode(f"arm-{number}", 1) for number in numbers), token=token)

    assert report(first, 1, 2)[0] == 200
    status, problem = report(first, 1, 3, 4)
    assert (status, "stream = 'arm-4' is new" in problem["detail"]) == (403, True)
    assert report(first, 1, 3)[0] == 200  # streams that there are, it reports for
    assert report(first, 5)[0] == 403
    assert report(second, 5)[0] == 200  # others have a limit of their own
    assert server.ask("GET", "/api/v1/streams", token=second)[1]["total"] == 4
    database = Database(server.database)
    with database.read() as connection:
        places = connection.execute(select(streams.c.name, watches.c.place).join(watches)).all()
    database.close()  # two of the first four each
    assert {tuple(each) for each in places} == {("arm-1", 1), ("arm-2", 2), ("arm-3", 5), ("arm-5", 3)}


def test_what_holds_episodes_is_its_owner_s(tmp_path, sqlite):
    client = bw.Client("http://127.0.0.1:9", spool=tmp_path / "spool.sqlite")
    client.report("arm-1", success=True)
    transfer.export(sqlite, tmp_path / "backup.jsonl")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    client.close(timeout=0)
    assert len(modes) >= 5  # SQLite's logs beside its files, too
    assert set(modes.values()) == {0o600}, modes


HEAD = '{"kind": "boundwatch monitor backup", "schema": 1}\n'


@pytest.mark.parametrize(
    "line",
    [
        '{"table": ["streams"], "row": {}}',
        '{"table": {}, "row": {}}',
        '{"table": "streams", "row": []}',
        '{"table": "streams", "row": {"id": 1' + "0" * 30 + ', "name": "a", "generation": 1, "created": 1}}',
        '{"table": "streams", "row": {"id": 1, "name": {}, "generation": 1, "created": 1}}',
        '{"table": "streams", "row": {"id": 1, "name": "\\ud800", "generation": 1, "created": 1}}',
        '{"table": "streams", "row": {"id": 1, "name": "a", "generation": [], "created": null}}',
        "[" * 100_000,
    ],
)
def test_a_hostile_backup_is_refused_in_one_line(database, tmp_path, line):
    (tmp_path / "backup.jsonl").write_text(HEAD + line + '\n{"rows": 1}\n')
    with pytest.raises(InvalidSetting) as refused:
        transfer.restore(database, tmp_path / "backup.jsonl")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("options", [("--verify",), ("--export", "backup.jsonl"), ("--port", "1")])
@pytest.mark.parametrize("damage", ["head", "middle", "cut"])
def test_a_damaged_sqlite_file_is_named_in_one_line(tmp_path, run, options, damage):
    path = tmp_path / "monitor.sqlite"
    database = Database(str(path))
    database.migrate()
    fill(database, load_flights(), 70)
    database.close()
    content = bytearray(path.read_bytes())
    if damage == "head":
        content[:100] = b"x" * 100
    elif damage == "middle":
        content[4096:] = b"x" * (len(content) - 4096)
    else:
        del content[5000:]
    path.write_bytes(content)
    done = run("serve", "--database", str(path), *options)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("boundwatch: ")
    assert done.err.count("\n") == 1
    assert "monitor.sqlite: cannot be " in done.err
