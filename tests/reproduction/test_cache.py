"""The cache refuses what would mix: two runs in it, and source that changed while something was made."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest
from reproduction.artifacts import Cache, key
from reproduction.source import sources

from boundwatch.errors import InvalidSetting
from doctored.number import Number
from program import started
from reproduction import artifacts

HOLD = """
import sys
from pathlib import Path
from boundwatch._support.files import locked
with locked(Path(sys.argv[1]), "run"):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_while_the_first_computes(tmp_path):
    cache = Cache(tmp_path / "cache")
    cache.build([Number(1)], lambda _: None)
    command = [sys.executable, "-c", HOLD, str(cache.root)]
    with started(command, stdin=subprocess.PIPE) as first:
        assert first.stdout.readline() == "locked\n"
        with pytest.raises(InvalidSetting, match=r"another run is at work in .*cache; wait until it ends"):
            cache.build([Number(2)], lambda _: None)
        assert not (cache.root / key(Number(2))).exists()
        cache.build([Number(1)], lambda _: None)  # what is there can be drawn meanwhile
        first.kill()  # however it ends, the lock goes with it
    cache.build([Number(2)], lambda _: None)
    assert (cache.folder(Number(2)) / "number.txt").read_text() == "2"


KILLED = """
from pathlib import Path
import sys
from reproduction.artifacts import Cache
from doctored.number import Number
numbers = [Number(value) for value in range(1000)]
Cache(Path(sys.argv[1])).build(numbers, lambda number: print(number.value, flush=True))
"""


def test_a_killed_run_goes_on_where_it_was(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with started(command, env=environment) as process:
        assert [process.stdout.readline() for _ in range(3)] == ["0\n", "1\n", "2\n"]
        process.kill()
    complete = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("number-*")}
    assert 3 <= len(complete) < 1000
    Cache(tmp_path).build([Number(value) for value in range(len(complete) + 2)], lambda _: None)
    assert all((tmp_path / name).stat().st_mtime_ns == stamp for name, stamp in complete.items())
    assert len(list(tmp_path.glob("number-*"))) == len(complete) + 2


def test_source_that_changes_while_something_is_made_is_noticed(tmp_path, monkeypatch):
    source = tmp_path / "source.txt"
    source.write_text("old")
    monkeypatch.setattr(artifacts, "source_digest", functools.cache(lambda _module: source.read_text()))
    cache = Cache(tmp_path / "cache")
    assert cache.folder(Number(1)).is_dir()
    with pytest.raises(InvalidSetting, match="the source changed during the run; run the command again"):
        cache.folder(Number(2, changes=str(source)))
    # Not even as a beginning: the next run would go on with what two versions made.
    assert [path.name for path in cache.root.iterdir()] == [key(Number(1))]


@pytest.mark.parametrize("line", ["from . import limits", "from .limits import FORCE"])
def test_relative_imports_are_refused_rather_than_overlooked(tmp_path, line):
    package = tmp_path / "robot"
    package.mkdir()
    (package / "arm.py").write_text(f"import math\n{line}\n")
    (package / "limits.py").write_text("FORCE = 1\n")
    with pytest.raises(ImportError, match=r"arm\.py, line 2: relative imports are not followed"):
        sources("robot.arm", (package,))
    (package / "arm.py").write_text("from robot.limits import FORCE\n")
    assert sorted(sources("robot.arm", (package,))) == ["robot.arm", "robot.limits"]
