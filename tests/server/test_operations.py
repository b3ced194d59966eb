"""Running it: settings, migrations, backup and restore, a clean end, metrics, and what OpenAPI allows."""

from __future__ import annotations

import dataclasses
import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest
from sqlalchemy import insert, select, text

import boundwatch as bw
from boundwatch.cli import app
from boundwatch.cli.monitor import list_, revoke, serve
from boundwatch.demo.drones import fill, load_flights
from boundwatch.errors import BoundwatchError, InvalidSetting
from boundwatch.server import api, transfer
from boundwatch.server.database import Database
from boundwatch.server.live_detectors import verify
from boundwatch.server.settings import Settings
from boundwatch.server.tables import DATA, schema_versions
from network import episode


@pytest.fixture
def filled(database):
    fill(database, load_flights(), 70)
    return database


def test_a_backup_restores_everything_into_either_database(filled, tmp_path, postgres):
    backup = tmp_path / "backup.jsonl"
    rows = transfer.export(filled, backup)
    for url in (str(tmp_path / "copy.sqlite"), postgres()):
        copy = Database(url)
        copy.migrate()
        assert transfer.restore(copy, backup) == rows
        again = tmp_path / f"again-{copy.kind}.jsonl"
        transfer.export(copy, again)
        assert again.read_bytes() == backup.read_bytes()
        assert [each for each in verify(copy) if each.fault] == []
        with copy.write() as connection:  # ids go on where they were
            connection.execute(insert(DATA[-1]).values(time=0.0, actor="a", act="b", detail="c"))
        with pytest.raises(InvalidSetting, match="is not empty"):
            transfer.restore(copy, backup)
        copy.close()
    with pytest.raises(InvalidSetting, match="exists, and is not replaced"):
        transfer.export(filled, backup)


@pytest.fixture(scope="module")
def backup(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backup")
    source = Database(str(folder / "source.sqlite"))
    source.migrate()
    fill(source, load_flights(), 3)
    transfer.export(source, folder / "backup.jsonl")
    source.close()
    return folder / "backup.jsonl"


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda lines: lines[:-1], None),
        (lambda lines: lines[:5] + lines[6:], None),
        (lambda lines: ["{}", *lines[1:]], 1),
        (lambda lines: [lines[0].replace('"schema": 1', '"schema": 99'), *lines[1:]], 1),
        (lambda lines: [*lines[:3], "x", *lines[3:]], 4),
        (lambda lines: [*lines, lines[1]], -1),
    ],
)
def test_a_damaged_backup_leaves_nothing_behind(tmp_path, sqlite, backup, damage, line):
    lines = damage(backup.read_text().splitlines())
    (tmp_path / "damaged.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(InvalidSetting) as refused:
        transfer.restore(sqlite, tmp_path / "damaged.jsonl")
    assert refused.value.where.number == (len(lines) if line == -1 else line)
    with sqlite.read() as connection:
        assert all(connection.execute(select(table)).first() is None for table in DATA)


def test_migrations_are_versioned_and_never_go_back(database_url):
    first, second = Database(database_url), Database(database_url)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(Database.migrate, (first, second))) == [1, 1]
    with first.write() as connection:
        connection.execute(insert(schema_versions).values(version=99, applied=0.0))
    with pytest.raises(InvalidSetting, match="schema version 99"):
        first.migrate()
    first.close()
    second.close()


def test_acknowledged_is_durable_by_configuration(sqlite):
    with sqlite.write() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2  # FULL


@pytest.mark.parametrize(
    "url", ["mysql://x/y", "postgresql://nobody@127.0.0.1:9/x", "no/such/folder/x.sqlite", "/"]
)
def test_a_database_that_cannot_be_opened_is_named(url):
    with pytest.raises(InvalidSetting, match=r"database = |cannot be opened"):
        Database(url).migrate()


@pytest.fixture(scope="module")
def shared(start_shared):
    return start_shared()


def test_an_address_in_use_is_named_in_one_line(shared):
    for options in ([], ["--demo"]):
        done = shared.run("serve", "--port", str(shared.port), *options)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"boundwatch: {shared.url}: cannot be listened on, Address already in")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "options",
    [
        {"certificate": Path("typo.json")},
        {"certificate": Path("family.json")},
        {"certificate": Path("lab.json"), "alpha_adverse": 2.0},
        {"certificate": Path("lab (1).json")},  # not a valid name
        {"alpha_benign": 2.0},
        {"webhook": ["hooks.example.com/secret"]},
        {"on_alarm": ["no-such-program"]},
        {"tls_certificate": Path("typo.pem")},
        {"tls_key": Path("key.pem")},
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_said(
    tmp_path, monkeypatch, capsys, certificate, options
):
    monkeypatch.chdir(tmp_path)
    for name in ("lab.json", "lab (1).json"):
        certificate.save(name)
    costs = {"pick": [0.0, 1.0] * 20, "place": [0.0] * 40}
    bw.CertificateFamily.from_held_out(costs, binary=True).save("family.json")
    with pytest.raises(BoundwatchError) as refused:
        serve(port=0, **options)
    assert list(options)[-1] in str(refused.value) or str(list(options.values())[-1]) in str(refused.value)
    assert capsys.readouterr().out == ""


def test_a_backup_is_restored_where_a_certificate_and_a_fleet_are_set(
    tmp_path, backup, certificate_file, capsys
):
    serve(database=str(tmp_path / "new.sqlite"), certificate=certificate_file, fleet_size=7, restore=backup)
    assert capsys.readouterr().out.startswith("restored ")


def test_a_database_that_is_not_there_is_neither_read_nor_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exporting, verifying = partial(serve, export=Path("backup.jsonl")), partial(serve, verify=True)
    for command in (exporting, verifying, list_, partial(revoke, "cell-2")):
        with pytest.raises(InvalidSetting, match=r"typo\.sqlite"):
            command(database="typo.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_settings_come_from_options_then_the_environment():
    environment = {"BOUNDWATCH_PORT": "2000", "BOUNDWATCH_WORKERS": "3"}
    environment |= {"BOUNDWATCH_WEBHOOK": "https://a.example/x", "BOUNDWATCH_WEBHOOK_SECRET": "s3cret"}
    settings = Settings.gather({"port": 3000, "workers": None}, environment)
    assert (settings.port, settings.workers) == (3000, 3)
    assert settings.channels[0].secret == environment["BOUNDWATCH_WEBHOOK_SECRET"]
    assert "s3cret" not in repr(settings)
    assert "a.example" not in repr(settings)
    assert msgspec.json.decode(msgspec.json.encode(settings), type=Settings) == settings


def test_options_and_variables_have_the_same_names():
    options = {option.name for option in app.find("serve").options}
    acts = {"demo", "verify", "export", "restore"}
    only_settings = {"discovery_rate", "rate_limit", "streams_per_token", "webhook_secret"}
    assert {field.name for field in dataclasses.fields(Settings)} - only_settings == options - acts
    environment = {
        "BOUNDWATCH_ON_ALARM": "notify --all\npage 'the night shift'",
        "BOUNDWATCH_ALLOW_HOST": "a.example.com b.example.com",
    }
    settings = Settings.gather({}, environment)
    assert settings.on_alarm == ("notify --all", "page 'the night shift'")
    assert settings.allow_host == ("a.example.com", "b.example.com")


@pytest.mark.parametrize(
    ("meant", "variables"),
    [
        ("BOUNDWATCH_WEBHOOK,", "WEBHOOKS WEBHOOK_URLS SLACK_WEBHOOK"),
        ("BOUNDWATCH_ON_ALARM,", "ALARM"),
        ("BOUNDWATCH_ALLOW_HOST,", "ALLOW_HOSTS"),
        ("BOUNDWATCH_PORT,", "PROT port"),
        ("BOUNDWATCH_TLS_CERTIFICATE,", "TLS_CERT"),
        ("one of BOUNDWATCH_DATABASE, BOUNDWATCH_HOST, ", "VERSION"),
    ],
)
def test_a_variable_that_is_no_setting_is_refused(meant, variables):
    for variable in variables.split():
        with pytest.raises(InvalidSetting, match=f"correct it to {meant}") as refused:
            Settings.gather({}, {f"BOUNDWATCH_{variable}": "x"})
        assert refused.value.name == f"BOUNDWATCH_{variable}"


def test_variables_of_other_parts_are_no_settings():
    others = ("TOKEN", "URL", "INTERNAL_SETTINGS", "SCREENSHOTS")
    # What Kubernetes sets in pods beside Services named boundwatch and boundwatch-db.
    services = ("SERVICE_HOST", "SERVICE_PORT_HTTP", "PORT_80_TCP_ADDR", "DB_SERVICE_PORT", "DB_PORT_80_TCP")
    environment = {f"BOUNDWATCH_{name}": "x" for name in (*others, *services)}
    environment |= {"WEBHOOKS": "x", "EMAIL": "x"}
    environment |= {f"BOUNDWATCH_{name}": "tcp://10.0.0.1:8080" for name in ("PORT", "DB_PORT")}
    assert Settings.gather({}, environment) == Settings()


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"host": "localhost", "port": 80}, "http://localhost:80"),
        ({"host": "::1", "tls_certificate": "x.pem"}, "https://[::1]:8080"),
        ({"public_url": "https://monitor.example.com/"}, "https://monitor.example.com"),
        ({"allow_host": ["monitor.example.com"]}, ""),  # its scheme and port are the proxy's
    ],
)
def test_alarms_link_to_what_people_open(options, address):
    settings = Settings.gather({**options, "on_alarm": ["true", "false"]}, {})
    assert [channel.monitor for channel in settings.channels] == [address] * 2
    assert settings.channels is settings.channels  # not checked anew with every notice


@pytest.mark.parametrize(
    ("name", "value"), [("port", "x"), ("port", "true"), ("public_url", "monitor"), ("workers", "0")]
)
def test_a_wrong_setting_is_named(name, value):
    with pytest.raises(InvalidSetting) as refused:
        Settings.gather({}, {f"BOUNDWATCH_{name.upper()}": value})
    assert refused.value.name == f"BOUNDWATCH_{name.upper()}"


def test_two_processes_share_one_postgresql_and_end_cleanly(start, postgres):
    server = start("--workers", "2", database=postgres())

    def report(i):
        number = i // 2
        return server.report(episode(f"arm-{number % 4}", number, number % 5 != 0))

    with ThreadPoolExecutor(8) as pool:  # every episode is sent twice, to whichever process answers
        answers = list(pool.map(report, range(200)))
    assert {status for status, _ in answers} == {200}
    assert sum(answer["counted"] for _, answer in answers) == 100
    status, answer = server.ask("GET", "/api/v1/streams")
    assert (status, answer["total"]) == (200, 4)
    server.stop(signal.SIGTERM)
    log = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    assert sum(entry["message"] == "stopped" for entry in log) == 2
    verified = server.run("serve", "--verify")
    assert (verified.returncode, verified.stdout.splitlines()[0]) == (
        0, "replayed 100 episodes of 4 watches: 0 differ"
    )  # fmt: skip
    assert verified.stdout.count("\n") == 2  # the other says what it cannot see


def test_what_was_acknowledged_before_the_end_is_there_after_it(start):
    server = start("--silent-minutes", "60")
    server.report(*(episode("arm-1", i, False) for i in range(30)))
    status, metrics = server.ask("GET", "/metrics")
    numbers = {"episodes": 30.0, 'streams{verdict="adverse"}': 1.0, 'stream_verdict{stream="arm-1"}': 1.0}
    numbers |= {"open_alarms": 1.0, "silent_streams": 0.0, "delivery_lag_seconds": 0.0}
    assert [name for name, n in numbers.items() if f"boundwatch_{name} {n}\n" not in metrics] == []
    assert server.ask("GET", "/healthz") == (200, {"status": "alive"})
    server.stop(signal.SIGTERM)
    server.start()
    page = server.ask("GET", "/streams/arm-1")[1]
    status, answer = server.ask("GET", "/api/v1/streams/arm-1")
    assert "30 of 30 failed; certified: fails in " in page
    assert "expected cost" not in page
    assert "It alarms at an exact line of failures" in page
    line = re.search(r'aria-label="30 failures in 30 trials; the alarm is at (\d+)\."', page)
    assert line is not None, "failures are drawn against the line at which they alarm"
    assert 5 <= int(line[1]) <= 25
    assert page.count(f">declared at {answer['first_alarm']}<") == 2  # there, and beside the evidence
    assert "<strong>1</strong> stream</a>" in server.ask("GET", "/")[1]
    status, answer = server.ask("GET", "/api/v1/streams/arm-1")
    assert (answer["n"], answer["verdict"]) == (30, "adverse")
    alarm = server.ask("GET", "/api/v1/alarms?waiting=true")[1]["alarms"][0]
    path = f"/api/v1/alarms/{alarm['id']}/acknowledge"
    assert server.ask("POST", path, {"reason": "gripper worn"})[0] == 200
    assert server.ask("POST", path, {"reason": "again"})[0] == 409
    (known,) = server.ask("GET", "/api/v1/certificates")[1]["certificates"]
    for named, status in {known["name"]: 409, "arm-1 is already watched": 422}.items():
        bound = {"streams": ["arm-1"], "certificate": named}
        assert server.ask("POST", "/api/v1/streams", bound)[0] == status
    assert server.ask("GET", "/api/v1/alarms")[1]["alarms"][0]["reason"] == "gripper worn"
    acts = [entry["act"] for entry in server.ask("GET", "/api/v1/audit")[1]["audit"]]
    assert acts == ["alarm acknowledged", "certificate uploaded"]


def test_every_page_is_shown(start):
    server = start("--silent-minutes", "30", bound=False)
    database = Database(server.database)
    fill(database, load_flights(), 80)
    database.close()
    for options in (
        {"streams": ["drone-3"], "new_generation": True, "reason": "rotor"},
        {"streams": ["new"]},
    ):
        kind = {"certificate": "drone", "detector": "change-detector"}
        assert server.ask("POST", "/api/v1/streams", options | kind)[0] == 201
    listed = server.ask("GET", "/certificates")[1]
    (certificate,) = set(re.findall(r"/certificates/(\w{64})", listed))
    streams = ("/streams/drone-7", "/streams/drone-3", "/streams/drone-3?generation=1", "/streams/new")
    for path in ("/", "/?silent=1", "/fleet", "/alarms", "/administration", "/sign-in", *streams):
        status, page = server.ask("GET", path)
        assert (status, "</html>" in page) == (200, True), path
    assert "What it promises" in server.ask("GET", f"/certificates/{certificate}")[1]


def test_the_demo_shows_drones_and_keeps_nothing(start):
    server = start("--demo", bound=False)
    status, answer = server.ask("GET", "/api/v1/streams")
    assert (status, answer["total"]) == (200, 12)
    assert min(each["n"] for each in answer["streams"]) >= 44
    server.stop()
    assert not Path(server.database).exists()


def test_an_open_page_hears_of_changes(shared):
    before = shared.ask("GET", "/changes")[1]
    shared.report(episode("arm-1", 1))
    after = shared.ask("GET", "/changes")[1]
    assert after["episodes"] > before["episodes"]


def test_nothing_that_openapi_allows_breaks_the_server(start):
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi import checks

    declared = [checks.status_code_conformance, checks.content_type_conformance]
    options = {"max_examples": 8, "deadline": None, "derandomize": True, "phases": [Phase.generate]}
    options["suppress_health_check"] = list(HealthCheck)
    server = start()  # its own: what is made up here is in no other test's way
    sent = {"Authorization": f"Bearer {server.token('all', 'administer', 'report')}"}
    schema = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json", headers=sent)
    tried, answers = set(), set()
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(**options)
        @given(case=operation.as_strategy())
        def call(case):
            answer = case.call(base_url=server.url, headers=sent)
            assert answer.status_code < 500
            case.validate_response(answer, checks=declared)
            answers.add(answer.status_code)

        call()
        tried.add((operation.method.upper(), operation.path))
    assert ("POST", "/api/v1/episodes") in tried
    assert len(tried) == 13
    assert answers >= {200, 404, 422}
    assert '"level": "error"' not in server.log()


def test_openapi_declares_what_is_refused_and_who_may_ask(shared):
    document = shared.ask("GET", "/api/v1/openapi.json")[1]
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    # None of FastAPI's own, which are not sent.
    assert set(document["components"]["schemas"]) == set(api.COMPONENTS)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["security"] == [{"HTTPBearer": []}], path
            answers = operation["responses"]
            assert {"401", "403", "429", "503"} <= set(answers), path
            for status, answer in answers.items():
                kind = "application/json" if status < "300" else "application/problem+json"
                assert list(answer["content"]) == [kind], (path, status)
            assert method == "get" or operation["requestBody"]["content"]["application/json"]["schema"], path
    bad = shared.ask("POST", "/api/v1/episodes", b"{")
    assert (bad[0], set(bad[1])) == (400, set(document["components"]["schemas"]["Problem"]["required"]))
    table = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
    listed = {status for row in re.findall(r"^\| ([\d, ]+) \|", table, re.M) for status in row.split(", ")}
    assert listed == set(document["paths"]["/api/v1/episodes"]["post"]["responses"])
