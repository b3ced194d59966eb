"""One owner, all or nothing, and nothing that is not ours is touched."""

import os
import sqlite3
import stat
import subprocess
import sys

import pytest

from boundwatch.errors import InvalidSetting, SchemaMismatch
from boundwatch.watching.store import Store
from program import started

HOLD = (
    "import sys\nfrom boundwatch.watching.store import Store\n"
    "with Store(sys.argv[1], 'watch') as store:\n"
    "    store.keep({'n': 1})\n    store.commit()\n    store.keep({'n': 2})\n"
    "    print('locked', flush=True)\n    sys.stdin.read()"
)


def test_what_was_committed_is_there_and_nothing_else(tmp_path):
    with Store(tmp_path / "s", "watch") as store:
        store.keep({"n": 1})
        store.remember("a", 7, 0.25)
        store.commit()
        store.keep({"n": 2})
        store.remember("a", 8, 0.5)
    with Store(tmp_path / "s", "watch") as store:
        assert store.facts == {"kind": "watch", "n": 1}
        assert (store.cost_of("a", 7), store.cost_of("a", 8), store.cost_of("b", 7)) == (
            0.25,
            None,
            None,
        )
        store.keep({"n": 3})
        store.commit()
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
        assert modes == {"s": 0o600, "s-wal": 0o600}
    assert [file.name for file in tmp_path.iterdir()] == ["s"]  # one file, which may be moved


@pytest.mark.parametrize("kind", ["path", "symbolic link", "hard link"])
def test_a_store_has_one_owner_by_any_path_and_survives_its_kill(tmp_path, kind):
    path, link = tmp_path / "s", tmp_path / "link"
    command = [sys.executable, "-c", HOLD, str(path)]
    with started(command, stdin=subprocess.PIPE) as other:
        assert other.stdout.readline() == "locked\n"
        if kind != "path":
            (os.link if kind == "hard link" else os.symlink)(path, link)
        with pytest.raises(InvalidSetting) as refused:
            Store(path if kind == "path" else link, "watch")
        assert refused.value.problem.startswith(("is in use", "has several names"))
        other.kill()
    link.unlink(missing_ok=True)
    with Store(path, "watch") as store:
        assert store.facts["n"] == 1  # 2 was not committed
        with pytest.raises(InvalidSetting):
            Store(path, "watch")  # in this process, which must not give up the lock by looking
        with started(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as other:
            assert "is in use" in other.stderr.read()


@pytest.mark.parametrize("content", [b"hello", b"{}", b"SQLite format 3\0" + bytes(200), b"0.1\n0.2\n"])
def test_what_is_no_store_is_refused_and_stays(tmp_path, content):
    (tmp_path / "s").write_bytes(content)
    with pytest.raises(SchemaMismatch) as refused:
        Store(tmp_path / "s", "watch")
    assert (refused.value.where.source, "\n" in str(refused.value)) == (str(tmp_path / "s"), False)
    assert (tmp_path / "s").read_bytes() == content


def test_another_database_is_refused_and_stays(tmp_path):
    other = sqlite3.connect(tmp_path / "s")
    other.execute("CREATE TABLE mine (a)")
    other.commit()
    other.close()
    before = (tmp_path / "s").read_bytes()
    with pytest.raises(SchemaMismatch):
        Store(tmp_path / "s", "watch")
    assert (tmp_path / "s").read_bytes() == before


@pytest.mark.parametrize("place", [100, 4096, 5000, 8192])
def test_a_damaged_store_is_one_line(tmp_path, place):
    with Store(tmp_path / "s", "watch") as store:
        store.keep({f"fact {n}": "x" * 500 for n in range(60)})
        store.commit()
    data = bytearray((tmp_path / "s").read_bytes())
    data[place : place + 3000] = b"\xff" * 3000
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(SchemaMismatch) as refused, Store(tmp_path / "s", "watch") as store:
        store.facts  # noqa: B018  (reads)
    assert (refused.value.problem, refused.value.where.source) == ("is damaged", str(tmp_path / "s"))


def test_another_kind_and_another_version_are_refused(tmp_path):
    Store(tmp_path / "s", "spool").close()
    with pytest.raises(SchemaMismatch, match="keeps something else"):
        Store(tmp_path / "s", "watch")
    database = sqlite3.connect(tmp_path / "s")
    database.execute("PRAGMA user_version = 2")
    database.commit()
    database.close()
    with pytest.raises(SchemaMismatch, match="has version 2, and this release reads version 1"):
        Store(tmp_path / "s", "spool")


def test_ids_of_any_kind_are_told_apart():
    store = Store(None, "watch")
    ids = [1, "1", 1.5, True, "a", ["a"], {"a": 1}, 10**30, -5]
    for cost, name in enumerate(ids):
        store.remember("", name, float(cost))
    assert [store.cost_of("", name) for name in ids] == list(map(float, range(len(ids))))
