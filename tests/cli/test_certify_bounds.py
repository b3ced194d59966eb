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
    run("certify", "--bounds", "0", "0.2", "--delta", "0.01", "--seed", "7", "--binary", "-o", "seeded.json")
    seeded = bw.Certificate.load(folder / "seeded.json")
    assert (seeded.provenance.seed, seeded.binary) == (7, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--bounds", "0", "0.2"], 2, "--bounds needs --delta"),
        ([], 2, "give a file of costs, or --bounds LOWER UPPER"),
        (["costs.csv", "--bounds", "0", "0.2", "--delta", "0.01"], 2, "give a file of costs, or --bounds"),
        (
            ["--bounds", "0.3", "0.2", "--delta", "0.01"],
            1,
            "lower = 0.3 is not a limit between 0 and upper = 0.2",
        ),
        (["--bounds", "0", "0.2", "--delta", "2"], 1, "delta = 2"),
        *(
            (["--bounds", "0", "0.2", "--delta", "0.01", *option], 2, f"{option[0]} goes with a file of")
            for option in (
                ["--success", "grasped"],
                ["--cost-range", "0", "50"],
                ["--success-values", "good"],
                ["--format", "csv"],
                ["--by", "robot"],
                ["--method", "kl"],
                ["--until-width", "0.1"],
                ["--at-most", "9"],
                ["--follow"],
            )
        ),
    ],
)
def test_what_is_missing_is_said_and_nothing_is_written(run, folder, arguments, code, message):
    done = run("certify", *arguments, "-o", folder / "new.json")
    assert done.code == code
    assert message in " ".join(done.err.replace("\u2502", " ").split())
    assert not (folder / "new.json").exists()
