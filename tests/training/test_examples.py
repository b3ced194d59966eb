"""The examples run as documented; the larger one at a smaller size."""

import subprocess
import sys
from pathlib import Path

from boundwatch import Certificate

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, folder, *arguments):
    command = [sys.executable, EXAMPLES / name, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_own_network_and_simulator(tmp_path):
    text = run("own_simulator.py", tmp_path)
    certificate = Certificate.load(tmp_path / "runs" / "brake" / "certificate.json")
    assert certificate.upper < 0.5  # the untrained prior has a training cost of about 0.9
    assert f"certified below {certificate.upper:.3f}" in text


def test_cartpole(tmp_path):
    text = run("cartpole.py", tmp_path, "--environments", "50", "--steps", "3", "--jobs", "1")
    certificate = Certificate.load(tmp_path / "runs" / "cartpole" / "certificate.json")
    assert certificate.n == 50
    assert "as trained: mean cost" in text
    assert "worn motor: mean cost" in text


def test_the_examples_are_as_short_as_promised():
    for name, limit in (("cartpole.py", 60), ("own_simulator.py", 30)):
        assert len((EXAMPLES / name).read_text().splitlines()) < limit
