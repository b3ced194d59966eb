"""boundwatch certify --bounds: limits that somebody else proved."""

from __future__ import annotations

import pytest

import boundwatch as bw


def test_limits_proved_elsewhere_are_taken_over(run, folder):
    done = run("certify", "--bounds", "0", "0.22216", "--delta", "0.01", "-o", folder / "taken.json")
    assert done.code == 0
    assert "proved elsewhere" in done.out
    taken = bw.Certificate.load(folder / "taken.json")
    assert (taken.lower, taken.upper, taken.delta, taken.source) == (0.0, 0.22216, 0.01, "external")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--bounds", "0", "0.2"], 2, "--bounds needs --delta"),
        ([], 2, "give a file of costs, or --bounds LOWER UPPER"),
        (["costs.csv", "--bounds", "0", "0.2", "--delta", "0.01"], 2, "give a file of costs, or --bounds"),
        (["--bounds", "0.3", "0.2", "--delta", "0.01"], 1, "lower = 0.3, upper = 0.2 is not an interval"),
        (["--bounds", "0", "0.2", "--delta", "2"], 1, "delta = 2"),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(run, folder, arguments, code, message):
    done = run("certify", *arguments, "-o", folder / "new.json")
    assert done.code == code
    assert message in " ".join(done.err.replace("\u2502", " ").split())
    assert not (folder / "new.json").exists()
