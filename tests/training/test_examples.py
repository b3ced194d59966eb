"""The examples run as documented; the larger one at a smaller size."""

import runpy
import sys
from pathlib import Path

import pytest

from boundwatch import Certificate

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs an example in an empty folder, as python does, and what it printed."""
    monkeypatch.chdir(tmp_path)

    def run_example(name, *arguments):
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return capsys.readouterr().out

    return run_example


def test_own_network_and_simulator(run, tmp_path):
    text = run("own_simulator.py")
    certificate = Certificate.load(tmp_path / "runs" / "brake" / "certificate.json")
    assert certificate.upper < 0.5  # the untrained prior has a training cost of about 0.9
    assert f"certified below {certificate.upper:.3f}" in text


def test_cartpole(run, tmp_path):
    text = run("cartpole.py", "--environments", "50", "--steps", "3", "--jobs", "1")
    certificate = Certificate.load(tmp_path / "runs" / "cartpole" / "certificate.json")
    assert certificate.n == 50
    assert "as trained: mean cost" in text
    assert "worn motor: mean cost" in text
