"""The action for pull requests: its steps, run as the runner runs them."""

import subprocess
from pathlib import Path

import pytest
import yaml

import boundwatch as bw
from program import forked

ACTION = yaml.safe_load((Path(__file__).parents[1] / "action.yml").read_text())
CHECK = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "check")


def test_every_input_is_used_and_said():
    used = str(ACTION["runs"])
    for name, about in ACTION["inputs"].items():
        assert f"inputs.{name}" in used
        assert about["description"].endswith(".")


@pytest.mark.parametrize(
    ("failures", "arguments", "code", "verdict"),
    [(1, "", 0, "within"), (18, "--alpha-adverse 0.01", 3, "adverse"), (1, "--margin 0.001", 3, "within")],
)
def test_the_check_ends_as_documented_and_says_why(tmp_path, failures, arguments, code, verdict):
    bw.Certificate.from_held_out([1] * 16 + [0] * 184, binary=True).save(tmp_path / "lab.json")
    rows = ["success", *["0"] * failures, *["1"] * (20 - failures)]
    (tmp_path / "new.csv").write_text("\n".join(rows) + "\n")
    found, output, summary = run(tmp_path, FILE="new.csv", ARGUMENTS=arguments)
    assert found.returncode == code
    assert output == f"verdict={verdict}\n"
    assert summary.startswith(f"## {verdict.upper()}: ")
    assert "How often it fails" in summary


def test_an_error_is_an_error(tmp_path):
    bw.Certificate.from_held_out([1] * 16 + [0] * 184, binary=True).save(tmp_path / "lab.json")
    found, output, summary = run(tmp_path, FILE="missing.csv", ARGUMENTS="")
    assert found.returncode == 1
    assert "missing.csv" in found.stderr
    assert output == summary == ""


def run(folder, **inputs):
    files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for path in files.values():
        path.touch()
    (folder / "temp").mkdir()
    variables = {"PATH": f"{forked()}:/usr/bin:/bin", "RUNNER_TEMP": str(folder / "temp"), **inputs}
    variables |= {"CERTIFICATE": "lab.json", **{name: str(path) for name, path in files.items()}}
    found = subprocess.run(  # as the runner does
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", CHECK["run"]],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return found, files["GITHUB_OUTPUT"].read_text(), files["GITHUB_STEP_SUMMARY"].read_text()
