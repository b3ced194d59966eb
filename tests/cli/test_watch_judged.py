"""`watch --judge --label`: which rows people should label, and what the labels say."""

import json

import numpy as np
import pytest

import boundwatch as bw

WATCH = ("watch", "c.json", "log.csv", "--judge", "vlm", "--label", "human", "--seed", "3")
RNG = np.random.default_rng(5)
TRUTH = RNG.random(120) < 0.5
JUDGED = np.where(RNG.random(120) < 0.9, TRUTH, ~TRUTH)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bw.Certificate.from_bounds(lower=0.05, upper=0.15, delta=0.01, binary=True).save("c.json")
    return tmp_path


def write(folder, rows=(), n=120):
    words = {True: "no", False: "yes"}
    lines = [
        f"{words[bool(said)]},{words[bool(truth)] if row in rows else ''}\n"
        for row, (said, truth) in enumerate(zip(JUDGED[:n], TRUTH, strict=False), 2)
    ]
    (folder / "log.csv").write_text("vlm,human\n" + "".join(lines))


def waiting(result):
    return [int(row) for row in result.out.split("rows: ")[1].split(".")[0].split(", ")]


def test_the_rows_to_label_are_named_and_their_labels_decide(run, folder):
    write(folder)
    first = run(*WATCH)
    assert "By" not in first.err
    assert "WITHIN" in first.out
    assert f"Of 120 episodes the judge calls {100 * JUDGED.mean():.1f}".removesuffix(".0") in first.out
    assert "counted, no label yet" in first.out
    rows = waiting(first)
    write(folder, rows[:5])
    assert waiting(run(*WATCH)) == rows[5:]
    write(folder, rows)
    last = run(*WATCH, "--exit-code")
    assert (last.code, "Label " in last.out) == (3, False)
    assert f"by {len(rows)} labels" in last.out
    lines = last.out.splitlines()
    alarm = next(line.split()[1] for line in lines if line.endswith(" ADVERSE"))
    assert any(line.endswith(f"since row {alarm}") for line in lines)
    write(folder, range(200))  # labels of rows that were not drawn change nothing
    assert run(*WATCH).out == run(*WATCH).out == last.out
    found = json.loads(run(*WATCH, "--json").out.splitlines()[-1])
    assert (found["verdict"], found["labels"], found["judged"]) == ("adverse", len(rows), 120)


def test_other_options_are_refused(run, folder):
    write(folder)
    assert "--judge needs --label and --seed" in run(*WATCH[:-2]).err
    assert "--seed goes with --judge" in run("watch", "c.json", "log.csv", "--seed", "3").err
    for options in (("--state", "s"), ("--follow",), ("--by", "vlm"), ("--margin", "0.1")):
        assert "does not go with --judge" in run(*WATCH, *options).err
    assert "give a file" in run("watch", "c.json", "-", *WATCH[3:]).err
    same = ("watch", "c.json", "log.csv", "--judge", "vlm", "--label", "vlm", "--seed", "3")
    assert "give another column than --judge" in run(*same).err
    assert "two probabilities" in run(*WATCH, "--rates", "0", "0.5").err
