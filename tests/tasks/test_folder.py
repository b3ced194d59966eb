"""A training's folder: one owner, kept through a kill, refused when it is another's or damaged."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from boundwatch.errors import InvalidSetting, SchemaMismatch
from boundwatch.tasks import folder as folders
from program import started

HOLD = """
import sys
from boundwatch.tasks.folder import claim
with claim(sys.argv[1], "coin", {"seed": 1}) as claimed:
    print(claimed.started, flush=True)
    sys.stdin.read()
"""


def test_a_second_training_is_refused_and_a_killed_one_is_continued(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with started(command, stdin=subprocess.PIPE) as first:
        then = first.stdout.readline().strip()
        refused = pytest.raises(InvalidSetting, match=r"another training is at work in .*; wait until")
        with refused, folders.claim(tmp_path, "coin", {"seed": 1}):
            pass
        (tmp_path / "checkpoints" / "half").write_text("done")
        (tmp_path / "checkpoints" / "started").write_text(then.replace("20", "19", 1))
        first.kill()
    with folders.claim(tmp_path, "coin", {"seed": 1}) as claimed:
        assert not claimed.finished
        assert claimed.started == then.replace("20", "19", 1)  # that of the first start
        assert (claimed.checkpoints / "half").read_text() == "done"
        claimed.finish({"cost": 0.5})
    assert not claimed.checkpoints.exists()
    with folders.claim(tmp_path, "coin", {"seed": 1}) as claimed:
        assert claimed.finished


def test_other_settings_make_way_until_a_policy_is_drawn(tmp_path):
    with folders.claim(tmp_path, "coin", {"seed": 1}) as claimed:
        (claimed.checkpoints / "half").write_text("done")
    with folders.claim(tmp_path, "coin", {"seed": 2}) as claimed:
        assert not (claimed.checkpoints / "half").exists()
    (tmp_path / "draw.json").write_text("{}")
    refused = pytest.raises(InvalidSetting, match="already holds a training with other settings")
    with refused, folders.claim(tmp_path, "coin", {"seed": 1}):
        pass
    with folders.claim(tmp_path, "coin", {"seed": 2}) as claimed:
        assert not claimed.finished
    (tmp_path / "file").touch()
    with pytest.raises(InvalidSetting, match="cannot be made"), folders.claim(tmp_path / "file", "coin", {}):
        pass


@pytest.mark.parametrize("content", ["{", "[1]", "{}", '"coin"', "null"])
def test_settings_that_are_none_are_one_line(tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(SchemaMismatch, match="is not a whole training of coin"):
        folders.load(tmp_path, "coin")
    (tmp_path / "settings.json").write_text(json.dumps({"task": "coin"}))
    (tmp_path / "summary.json").write_text("[1")
    with pytest.raises(SchemaMismatch, match="is not a whole training of coin"):
        folders.load(tmp_path, "coin")
