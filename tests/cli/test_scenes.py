"""`boundwatch scenes`: a notice in words and in JSON, and never a verdict."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest


def write(path, values):
    path.write_text("\n".join(["predicted", *map(str, values)]) + "\n")


@pytest.mark.parametrize(("shape", "look"), [((2, 8), None), ((6, 4), "harder")])
def test_new_scenes_are_compared_and_no_verdict_is_given(run, tmp_path, shape, look):
    rng = np.random.default_rng(0)
    write(tmp_path / "lab.csv", rng.beta(2, 8, 150))
    write(tmp_path / "new.csv", rng.beta(*shape, 60))
    text = run("scenes", "lab.csv", "new.csv")
    assert text.code == 0
    assert "This is not a verdict" in text.out
    found = json.loads(run("scenes", "lab.csv", "new.csv", "--json").out)
    assert (found["look"], found["verdict"], found["n"], found["reference_n"]) == (look, None, 60, 150)
    assert text.out.startswith(f"The scenes look {look}" if look else "There is no evidence")


def test_what_is_no_prediction_is_refused_in_one_line(run, tmp_path):
    write(tmp_path / "lab.csv", [0.1, 0.2])
    write(tmp_path / "new.csv", [0.3, 1.7])
    result = run("scenes", "lab.csv", "new.csv")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "1.7" in result.err


def test_only_options_that_scenes_has_are_named(run, tmp_path):
    header, row = "time_s,share_pct,empty", "21.9,5%,"
    (tmp_path / "scenes --cost-range.csv").write_text(f"trial,{header}\n1,{row}\n")
    for name in ("predicted", *header.split(",")):
        done = run("scenes", "scenes --cost-range.csv", "scenes --cost-range.csv", "--predicted", name)
        said = done.err.removeprefix("boundwatch: scenes --cost-range.csv: ")  # whatever it is called
        assert (done.code, said.count("\n"), f"{name!r}" in said) == (1, 1, True)
        assert set(re.findall(r"--[\w-]+", said)) <= {"--predicted"}
        assert set(re.findall(r"\w+=", said)) <= {"predicted="}
