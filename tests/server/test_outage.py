"""A database that is away: frozen or stopped, everybody is told so soon, and it is taken back by itself."""

from __future__ import annotations

import contextlib
import http.client
import json
import signal
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg
import pytest
from sqlalchemy import Column, MetaData, String, Table, text
from sqlalchemy.exc import SQLAlchemyError

from boundwatch.server.database import Database, write_rows
from network import episode, wait_until

READING = ("/", "/api/v1/streams", "/api/v1/fleet", "/metrics")
OTHERS = ("/readyz", "/static/live.js", "/sign-in")  # they are refused once it is known


@contextlib.contextmanager
def frozen(url):
    """Stop every process of a PostgreSQL, as a machine does that is suspended, and let them go on."""
    database = Database(url)
    with database.read() as connection:
        backend = psutil.Process(connection.execute(text("SELECT pg_backend_pid()")).scalar())
    postmaster = backend.parent()
    database.close()
    stopped = [postmaster, *postmaster.children(recursive=True)]
    try:
        for each in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):  # one that has served its connection
                each.send_signal(signal.SIGSTOP)
        yield
    finally:
        for each in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(signal.SIGCONT)


def ask(server, path, content=None):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    method = "GET" if content is None else "POST"
    connection.request(method, path, content, {"Content-Type": "application/json", "Accept": "text/html"})
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def ask_all(server, paths):
    """Return all answers to questions, and reports, that are sent at once."""
    during = json.dumps(episode("arm-1", "during"))
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(ask, server, path) for path in paths * 6]
        asked += [pool.submit(ask, server, "/api/v1/episodes", during) for _ in range(6)]
        return [each.result() for each in asked]


def wait_until_ready(server):
    wait_until(lambda: ask(server, "/readyz")[0] == 200, 30, server.log)


def messages(server):
    """Return what was logged, without what every start says."""
    entries = [json.loads(line) for line in server.log().splitlines() if line.startswith("{")]
    return [each["message"] for each in entries if not each["message"].startswith("ready on")]


AWAY = "the database does not answer; requests are refused until it does"
BACK = "the database answers again"


def check_refused(answers):
    for status, headers, body in answers:
        assert (status, headers["Content-Type"]) == (503, "application/problem+json")
        assert headers["Retry-After"] == "1"
        assert json.loads(body)["title"] == "Service Unavailable"


def test_a_frozen_database_is_told_and_taken_back(start, postgres):
    url = postgres()
    server = start("--silent-minutes", "1", database=url)
    assert server.report(episode("arm-1", "before"))[0] == 200
    for outage in (1, 2):
        with frozen(url):
            check_refused(ask_all(server, READING))  # these wait for it when it is noticed
            check_refused(ask_all(server, READING + OTHERS))
            assert ask(server, "/healthz")[0] == 200
        wait_until_ready(server)
        assert messages(server) == [AWAY, BACK] * outage
    assert server.report(episode("arm-1", "during"))[0] == 200
    status, answer = server.report(episode("arm-1", "after"))
    assert (status, answer["streams"]["arm-1"]["n"]) == (200, 3)  # however often it was sent
    server.stop()
    assert "replayed 3 episodes of 1 watches: 0 differ" in server.run("serve", "--verify").stdout


@contextlib.contextmanager
def shut(url):
    """End all connections to a database, and let nobody in, as a PostgreSQL does that is stopped."""
    address, _, name = url.partition("?")[0].rpartition("/")
    elsewhere = url.replace(f"{address}/{name}", f"{address}/postgres")
    with psycopg.connect(elsewhere, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name]
        )
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


def test_a_database_that_lets_nobody_in_is_told_and_taken_back(start, postgres):
    url = postgres()
    server = start("--silent-minutes", "1", "--on-alarm", "true", database=url)
    assert server.report(episode("arm-1", "before"))[0] == 200
    with shut(url):
        check_refused(ask_all(server, READING))
        wait_until(lambda: AWAY in server.log())
        check_refused(ask_all(server, READING + OTHERS))
        assert ask(server, "/healthz")[0] == 200
    wait_until_ready(server)
    assert server.report(episode("arm-1", "after"))[0] == 200
    assert messages(server) == [AWAY, BACK]


def test_errors_of_the_database_carry_no_episodes(database):
    nothing = Table("nothing", MetaData(), Column("episode", String()))
    with pytest.raises(SQLAlchemyError) as failed, database.write() as connection:
        write_rows(connection, nothing, [("an episode of ours",)])
    assert "an episode of ours" not in str(failed.value)
