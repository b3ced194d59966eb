"""``train navigation`` and ``rollout navigation``, end to end at a tiny size."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from boundwatch.tasks.navigation import Recordings, World
from doctored.tiny import RECIPE


@pytest.fixture
def small(monkeypatch):
    """Let the commands train the tiny recipe."""
    monkeypatch.setattr("boundwatch.tasks.navigation.train.QUICK", RECIPE)


@pytest.mark.usefixtures("small")
def test_train_and_rollout_commands(run, tmp_path):
    code, out, err = run("train", "navigation", "-o", "run", "--quick", "--d-thresh", "300")
    assert (code, err) == (0, "")
    assert "Trained: run" in out
    assert json.loads((tmp_path / "run" / "settings.json").read_text())["recipe"]["d_thresh"] == 0.3
    code, out, err = run(
        "rollout", "navigation", "--policy", "run", "--distribution", "easier", "-o", "e.csv"
    )
    assert (code, err) == (0, "")
    assert len((tmp_path / "e.csv").read_text().splitlines()) == 11
    code, out, err = run("rollout", "navigation", "--policy", "run", "-n", "1", "-o", "one.csv", "--json")
    assert json.loads(out)["standard_error"] is None


@pytest.mark.usefixtures("small")
def test_train_with_trajectories(run, tmp_path):
    World().recordings.save(tmp_path / "flights.npz")
    code, out, err = run(
        "train", "navigation", "-o", "run", "--quick", "--trajectories", "flights.npz", "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["summary"]["trained"]["cost"] <= 1.0
    assert Recordings.load(tmp_path / "run" / "recordings.npz").counts == (5,) * 7
    code, out, err = run("rollout", "navigation", "--policy", "run", "--distribution", "windy", "-o", "w.csv")
    assert code == 1
    assert err.count("\n") == 1
    assert "recorded trajectories cannot fly" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "navigation", "-o", "run", "--trajectories", "none.csv"], "none.csv cannot be read"),
        (["train", "navigation", "-o", "run", "--d-thresh", "0"], "d_thresh = 0.0 is not above 0"),
        (["train", "navigation", "-o", "run", "--quick", "--delta", "2"], "delta = 2"),
        (["rollout", "navigation", "--policy", "nowhere", "-o", "c.csv"], "holds no settings.json"),
    ],
)
def test_mistakes_are_one_line(run, tmp_path, arguments, message):
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    assert err.startswith("boundwatch: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["demo"],
        ["train", "navigation", "-o", "run"],
        ["rollout", "navigation", "--policy", "run", "-o", "c.csv"],
    ],
)
def test_without_torch_the_extra_is_named(tmp_path, arguments):
    code = """if True:
        import sys

        class NoTorch:
            def find_spec(self, name, path=None, target=None):
                if name == "torch":
                    raise ModuleNotFoundError("No module named 'torch'")

        sys.meta_path.insert(0, NoTorch())
        from boundwatch.cli import main
        main()
    """
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "pip install 'boundwatch[train]'" in done.stderr
