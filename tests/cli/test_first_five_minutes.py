"""The mistakes that people make in their first five minutes: each has one line that answers."""

from __future__ import annotations

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.episodes.compatibility import by_chance

SHEET = "Trial;Operator;Grasped\r\n" + "".join(
    f"{i};{'Kim' if i % 3 else 'Ada'};{'no' if i in (4, 11, 17) else 'yes'}\r\n" for i in range(1, 31)
)
NEW = "Trial;Operator;Grasped\r\n" + "".join(
    f"{i};Kim;{'yes' if i % 3 == 0 else 'no'}\r\n" for i in range(1, 13)
)


@pytest.fixture
def lab(tmp_path, run):
    (tmp_path / "lab.csv").write_text(SHEET)
    (tmp_path / "new.csv").write_text(NEW)
    assert run("certify", "lab.csv", "--success", "grasped", "-o", "c.json").code == 0
    return tmp_path


@pytest.mark.usefixtures("lab")
def test_from_a_yes_no_sheet_to_a_verdict(run):
    checked = run("check", "c.json", "new.csv", "--success", "Grasped")
    lines = checked.out.splitlines()
    assert lines[0].startswith("ADVERSE: worse than in the lab; at least ")
    assert lines[0].endswith(
        "points more failures (94.5 % confidence: 5.5 % for errors of test and certificate)"
    )
    assert lines[1].startswith("Certified: it fails in ")
    assert lines[1].endswith("of trials (99 % confidence). New: 8 of 12 failed.")
    assert "expected cost" not in checked.out
    assert "it did\n" in checked.out  # one short line of p-values


def test_no_input_is_ever_replaced(lab, run):
    os.link(lab / "lab.csv", lab / "hard.csv")
    (lab / "soft.csv").symlink_to("lab.csv")
    (lab / "data").symlink_to(".")
    same = ["lab.csv", "./lab.csv", lab / "lab.csv", "hard.csv", "soft.csv", "data/lab.csv"]
    before = (lab / "lab.csv").read_bytes()
    certificate = (lab / "c.json").read_bytes()
    for output in same:
        for force in ([], ["--force"]):
            done = run("certify", "lab.csv", "--success", "grasped", "-o", output, *force)
            assert (done.code, done.out) == (1, "")
            assert done.err.startswith(f"boundwatch: {Path(output)}: is an input and would be replaced;")
    commands = [
        ("check", "c.json", "new.csv", "--success", "grasped", "--plot", "new.csv"),
        ("report", "c.json", "new.csv", "--success", "grasped", "-o", "c.json"),
        ("watch", "c.json", "new.csv", "--success", "grasped", "--state", "new.csv"),
        ("plan", "c.json", "--cost", "0.9", "--plot", "c.json"),
        ("show", "c.json", "-o", "c.json"),
    ]
    new = (lab / "new.csv").read_bytes()
    for command in commands:
        done = run(*command)
        assert (done.code, done.out) == (1, ""), command
        assert "is an input and would be replaced" in done.err
    assert (lab / "lab.csv").read_bytes() == before
    assert ((lab / "c.json").read_bytes(), (lab / "new.csv").read_bytes()) == (certificate, new)


def test_a_file_of_somebody_else_is_replaced_with_force_only(lab, run):
    for name, content in {
        "notes.txt": "mine",
        "other.json": "{}",
        "page.html": "<!DOCTYPE html>mine",
    }.items():
        (lab / name).write_text(content)
        arguments = ("report", "c.json", "new.csv", "--success", "grasped", "-o", name)
        refused = run(*arguments)
        assert (refused.code, refused.out) == (1, "")
        assert "already exists and was not written by boundwatch" in refused.err
        assert "--force" in refused.err
        assert (lab / name).read_text() == content
        assert run(*arguments, "--force").code == 0
        assert run(*arguments).code == 0  # ours by now


def test_the_certificates_own_costs_are_no_judgment(lab, run):
    for command in (["check"], ["report", "-o", "r.html"]):
        done = run(command[0], "c.json", "lab.csv", "--success", "grasped", *command[1:])
        assert (done.code, done.out) == (1, "")
        assert "these are the costs that the certificate was made from" in done.err
        assert not (lab / "r.html").exists()
    forced = run("check", "c.json", "lab.csv", "--success", "grasped", "--allow-own")
    assert forced.code == 0
    assert "cannot judge them" in forced.err


@pytest.mark.parametrize(
    "command", [["check"], ["report", "-o", "r.html"], ["watch"], ["watch", "--state", "s.json"]]
)
def test_the_certificates_own_costs_at_the_top_of_a_sheet_that_grew(lab, run, command):
    (lab / "grown.csv").write_text(SHEET + "".join(f"{i};Kim;no\r\n" for i in range(31, 51)))
    done = run(command[0], "c.json", "grown.csv", "--success", "grasped", *command[1:])
    assert (done.code, "WITHIN: " in done.out, (lab / "r.html").exists()) == (1, False, False)
    assert "are the costs that the certificate was made from" in done.err
    assert ("--allow-own" in done.err) == (command[0] != "watch")
    if "--state" in command:
        assert "grown.csv: line 31: these are" in done.err
    else:
        assert "grown.csv: the first 30 of 50 are" in done.err
        assert "give only the 20 after them" in done.err


def test_one_robots_own_costs_or_one_metrics_are_noticed_too(tmp_path, run):
    rng = np.random.default_rng(3)
    own = {name: (rng.random(30) < 0.3).astype(int).tolist() for name in ("arm-1", "arm-2")}
    bw.CertificateFamily.from_held_out(own, by="robot", binary=True).save(tmp_path / "arms.json")
    new = {"arm-1": [0, 1] * 10, "arm-2": [*own["arm-2"], 0, 1, 1]}
    rows = "".join(f"{robot},{cost}\n" for robot, costs in new.items() for cost in costs)
    (tmp_path / "arms.csv").write_text("robot,cost\n" + rows)
    done = run("check", "arms.json", "arms.csv")
    assert (done.code, done.out) == (1, "")
    assert "arms.csv: arm-2: the first 30 of 33 are the costs that" in done.err
    sheet = "ok,force\n" + "".join(f"{1 - cost},{10 + 20 * rng.random():.3f}\n" for cost in own["arm-1"])
    (tmp_path / "lab.csv").write_text(sheet)
    columns = ("--success", "ok", "--cost", "force", "--cost-range", "0", "50")
    assert run("certify", "lab.csv", *columns, "-o", "metrics.json").code == 0
    (tmp_path / "grown.csv").write_text(sheet + "0,40\n" * 5)
    done = run("check", "metrics.json", "grown.csv", *columns)
    assert (done.code, "the first 30 of 35 are the costs that" in done.err) == (1, True)


def test_new_episodes_that_happen_to_begin_like_the_certificates_are_judged(tmp_path, run):
    for name, costs, said in [("all", [0] * 20, "note"), ("one", [0, 0, 1, 0, 0], "warning")]:
        bw.Certificate.from_held_out(costs, binary=True).save(tmp_path / f"{name}.json")
        (tmp_path / f"{name}.csv").write_text("cost\n" + "".join(f"{cost}\n" for cost in [*costs, 1, 0, 1]))
        for command in (["check"], ["watch"], ["watch", "--state", f"{name}.state"]):
            done = run(command[0], f"{name}.json", f"{name}.csv", *command[1:])
            assert done.code == 0
            assert "costs match the certificate's one by one, possibly by chance" in done.err
            if command == ["check"]:
                assert f"boundwatch: {said}: {name}.csv: the first {len(costs)} costs" in done.err
        read = bw.read_costs(tmp_path / f"{name}.csv", binary=True)
        assert len(read.against(bw.Certificate.load(tmp_path / f"{name}.json")).costs) == len(costs) + 3


def test_a_coincidence_of_any_costs_is_refused_at_most_once_in_a_thousand_times():
    grid = [(a / 20, b / 20, (20 - a - b) / 20) for a in range(21) for b in range(21 - a)]
    for counts in itertools.product(range(7), repeat=3):
        if not by_chance(np.repeat([0.1, 0.5, 0.9], counts)):
            assert max(math.prod(p**k for p, k in zip(each, counts, strict=True)) for each in grid) <= 0.001
    assert not by_chance(np.repeat([0.0, 1.0], [17, 3]))  # a usual sheet is not called chance
    # One of n values each time, all alike, is the most likely way to repeat n different ones: n**-n.
    assert [n for n in range(1, 9) if by_chance(np.linspace(0, 1, n))] == [1, 2, 3, 4]


def test_a_certificate_remembers_its_range(tmp_path, run):
    (tmp_path / "lab.csv").write_text("Cost\n" + "5 %\n12 %\n0 %\n20 %\n" * 10)
    (tmp_path / "new.csv").write_text("cost\n55%\n60%\n70%\n45%\n65%\n")
    assert run("certify", "lab.csv", "--cost-range", "0", "100", "-o", "c.json").code == 0
    assert bw.Certificate.load(tmp_path / "c.json").measure.cost_range == (0, 100)
    done = json.loads(run("check", "c.json", "new.csv", "--json").out)
    assert (done["mean_cost"], done["warnings"]) == (pytest.approx(0.59), [])
    assert done["measure"]["cost_range"] == [0, 100]


@pytest.mark.parametrize(("meaning", "other"), [("cost", "success"), ("success", "cost")])
def test_a_certificate_remembers_which_customary_column_it_is_of(tmp_path, run, meaning, other):
    def sheet(name, rows, header="trial,cost,success"):
        (tmp_path / name).write_text(header + "\n" + "".join(f"{i},{row}\n" for i, row in enumerate(rows)))

    rng = np.random.default_rng(3)
    sheet("lab.csv", [f"{rng.random():.3f},{'no' if rng.random() < 0.3 else 'yes'}" for _ in range(40)])
    sheet("new.csv", ["0.25,no", "0.75,yes", "0.25,no", "0.75,no"])
    assert run("certify", "lab.csv", f"--{meaning}", meaning, "-o", "c.json").code == 0
    mean = {"cost": 0.5, "success": 0.75}[meaning]
    done = run("check", "c.json", "new.csv", "--json")
    assert json.loads(done.out)["mean_cost"] == mean
    for option in ((), ("--state", "s")):
        done = run("watch", "c.json", "new.csv", "--json", *option)
        costs = [json.loads(line)["cost"] for line in done.out.splitlines()]
        assert sum(costs) / 4 == mean
    assert run("verify", "c.json", "--costs", "lab.csv").code == 0
    sheet("other.csv", ["0", "1"], f"trial,{other}")  # the only one is read as ever, with a warning
    done = run("check", "c.json", "other.csv")
    assert "not measured the way the certificate's were" in done.err


def test_a_column_called_like_its_trials_loses_none_of_them(tmp_path, run):
    """Each success would be the header once more, and only failures would be left."""
    (tmp_path / "log.csv").write_text("success\nfailure\n" + "success\n" * 9 + "failure\n")
    bw.Certificate.from_held_out([0, 1] * 9, binary=True, measure=bw.Measure("success")).save("c.json")
    for command in (("certify", "log.csv", "-o", "new.json"), ("watch", "c.json", "log.csv", "--state", "s")):
        done = run(*command)
        assert (done.code, "line 3" in done.err, "name or a trial" in done.err) == (1, True, True)


@pytest.mark.usefixtures("lab")
def test_unusual_levels_are_said(run):
    done = run("check", "c.json", "new.csv", "--success", "grasped", "--alpha-adverse", "0.5")
    assert "--alpha-adverse 0.5 lets the promise fail in up to 50 of 100 cases" in done.err
    done = run("certify", "lab.csv", "--success", "grasped", "-o", "d.json", "--delta", "0.99")
    assert "--delta 0.99 lets the promise fail" in done.err


def test_title_robot_and_site_are_in_the_report(lab, run):
    more = ("--title", "Kitchen <1>", "--robot", "arm-3", "--site", "Ulm")
    assert run("report", "c.json", "new.csv", "--success", "grasped", "-o", "r.html", *more).code == 0
    page = (lab / "r.html").read_text(encoding="utf-8")
    assert "Kitchen &lt;1&gt;" in page
    assert "robot arm-3; site Ulm" in page


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file; check the path"):
        bw.read_costs(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError):
        bw.Certificate.load(tmp_path / "none.json")


def test_truths_are_certified_as_successes():
    with pytest.raises(bw.errors.InvalidCost, match="successes="):
        bw.Certificate.from_held_out([True, False, True])
    made = bw.Certificate.from_held_out(successes=[True, False, True, True])
    assert (made.mean_cost, made.binary) == (0.25, True)
    with pytest.raises(bw.errors.InvalidSetting, match="either costs or successes"):
        bw.Certificate.from_held_out([0, 1], successes=[True])


def test_episodes_carry_what_a_certificate_keeps(tmp_path):
    path = tmp_path / "lab.csv"
    path.write_text("cost\n3\n5\n9\n")
    made = bw.Certificate.from_held_out(bw.read_costs(path, cost_range=(0, 10)))
    assert (made.measure, made.binary) == (bw.Measure("cost", "cost", (0, 10)), False)
    path.write_text("grasped\nyes\nno\nyes\n")
    made = bw.Certificate.from_held_out(bw.read_costs(path, success="grasped"))
    assert (made.binary, made.method) == (True, "exact")
    assert bw.HypothesisTest(made).decide(bw.read_costs(path, success="grasped").costs).n == 3
    with pytest.warns(UserWarning, match="match the certificate's one by one, possibly by chance"):
        bw.HypothesisTest(made).decide(bw.read_costs(path, success="grasped"))


def test_the_predictions_of_stable_baselines3_are_actions():
    import gymnasium

    class Model:
        def predict(self, observation, state=None):  # noqa: ARG002 - as there
            return np.int64(observation[2] + 0.5 * observation[3] > 0), None

    costs = bw.gym.rollout(gymnasium.make("CartPole-v1"), Model().predict, 2, cost=(0, 500), seed=7)
    assert costs.tolist() == [0, 0]


def test_paths_of_other_cases_on_a_disk_that_does_not_care(lab, run, monkeypatch):
    """This disk does care; what a file is, is asked of the disk."""
    monkeypatch.setattr(Path, "samefile", lambda self, other: str(self).lower() == str(other).lower())
    (lab / "LAB.csv").write_text("x")
    done = run("certify", "lab.csv", "--success", "grasped", "-o", "LAB.csv", "--force")
    assert "is an input and would be replaced" in done.err
