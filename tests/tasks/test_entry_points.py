"""A task from another package: installed, listed, trained, deployed and checked through the command line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from invoking import invoke

EXAMPLE = Path(__file__).parents[2] / "examples" / "pendulum"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install the example into a folder of its own, and return the folder."""
    source, target = tmp_path_factory.mktemp("source") / "pendulum", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)  # a build leaves files beside the source
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--no-index", "--target", target, source], check=True)
    return target


@pytest.fixture
def program(installed, run, monkeypatch):
    """Return a function that runs ``boundwatch`` where the example is installed."""
    monkeypatch.syspath_prepend(installed)
    return run


def test_an_installed_task_is_trained_and_deployed_by_the_command_line(program, tmp_path):
    small = ["train", "pendulum", "-o", "run", "--environments", "20", "--steps", "2"]
    trained = program(*small, "--json")
    assert trained.code == 0, trained.err
    certificate = json.loads(trained.out)
    assert certificate["n"] == 20
    assert certificate["summary"]["cost"] == certificate["mean_cost"] < 0.3
    files = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    again = program(*small)
    assert "Trained: run" in again.out, again.err
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == files
    rolled = program("rollout", "pendulum", "--policy", "run", "--mass", "3", "-n", "12", "-o", "new.csv")
    assert rolled.out.startswith("Wrote new.csv: 12 episodes, mean cost "), rolled.err
    assert len((tmp_path / "new.csv").read_text().splitlines()) == 13
    other = program("train", "pendulum", "-o", "run", "--seed", "1")
    assert (other.code, other.err.count("\n")) == (1, 1)
    assert "already holds a training with other settings" in other.err


@pytest.mark.parametrize("group", ["train", "rollout"])
def test_tasks_are_listed_with_their_help_and_none_other(group):
    listed = invoke([group, "--help"]).output
    assert "navigation" in listed
    assert "grasping" in listed
    assert "Fly a" in listed
    unknown = invoke([group, "juggling"])
    assert unknown.exit_code == 2


def test_a_package_that_cannot_be_imported_does_not_stop_the_others(installed, program):
    info = installed / "broken-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[boundwatch.tasks]\njuggling = no_such_module\n")
    listed = program("train", "--help")
    assert "navigation" in listed.out
    asked = program("train", "juggling")
    assert (asked.code, asked.err.count("\n")) == (1, 1)
    assert "task 'juggling' of broken cannot be loaded, ModuleNotFoundError" in asked.err
    shutil.rmtree(info)
