"""Logs and several tasks from end to end, by sniffing and by --format; faults in one line."""

from __future__ import annotations

import json

import numpy as np
import openpyxl
import pytest

import boundwatch as bw


def evaluation(rates, n=40, seed=0):
    """An eval_info.json with one task a rate of success."""
    rng = np.random.default_rng(seed)
    tasks = [
        {"task_group": "goal", "task_id": i, "metrics": {"successes": (rng.random(n) < rate).tolist()}}
        for i, rate in enumerate(rates)
    ]
    return json.dumps({"per_task": tasks, "overall": {"avg_sum_reward": float("nan")}}, indent=2)


def monitor(low, high, n=40, seed=0):
    rows = "".join(
        f"{value:.3f},200,{0.5 * i}\n"
        for i, value in enumerate(np.random.default_rng(seed).uniform(low, high, n))
    )
    return f'#{{"t_start": 0.0, "env_id": "Pendulum-v1"}}\nr,l,t\n{rows}'


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "eval_info.json").write_text(evaluation([0.9, 0.5, 0.8]))
    (tmp_path / "same.json").write_text(evaluation([0.9, 0.5, 0.8], n=15, seed=5))
    (tmp_path / "worse.json").write_text(evaluation([0.9, 0.5, 0.1], n=15, seed=6))
    (tmp_path / "0.monitor.csv").write_text(monitor(-400, -100))
    (tmp_path / "1.monitor.csv").write_text(monitor(-1500, -1200))
    np.savez(
        tmp_path / "evaluations.npz",
        timesteps=[500, 1000],
        results=np.array([np.full(30, -1500.0), np.full(30, -200.0)]),
        ep_lengths=np.full((2, 30), 200),
    )
    return tmp_path


RANGE = ["--cost-range", "-1627", "0"]


@pytest.mark.parametrize("forced", [[], ["--format", "lerobot-eval"]], ids=["sniffed", "named"])
def test_lerobot(run, logs, forced):
    result = run("certify", "eval_info.json", "-o", "c.json", *forced)
    assert result.code == 0
    assert "column success, cost = 1 - success; lerobot-eval, 120 episodes" in result.out
    assert bw.Certificate.load(logs / "c.json").binary
    assert "lerobot-eval, 45 episodes" in run("check", "c.json", "same.json", *forced).out


@pytest.mark.parametrize("forced", [[], ["--format", "sb3-monitor"]], ids=["sniffed", "named"])
def test_monitor(run, logs, forced):
    result = run("certify", "0.monitor.csv", *RANGE, *forced, "-o", str(logs / "c.json"))
    assert "column r, rescaled to a cost from the range -1627 to 0: -1627 is worst; sb3-monitor" in result.out
    assert run("check", "c.json", "1.monitor.csv", *RANGE, *forced, "--exit-code").code == 3


def test_evaluations(run, logs):
    run("certify", "evaluations.npz", *RANGE, "--where", "evaluation=1", "-o", str(logs / "c.json"))
    assert "BENIGN" in run("check", "c.json", "evaluations.npz", *RANGE, "--where", "evaluation=2").out
    several = run("check", "c.json", "evaluations.npz", *RANGE)
    assert (several.code, "--where evaluation=2" in several.err) == (1, True)


def test_what_was_made_of_the_rows_is_said(run, logs):
    (logs / "bare.csv").write_text("0.1\n0.3\n")
    bare = run("certify", "bare.csv", "--cost", "1", "-o", "c")
    (logs / "steps.csv").write_text("episode,step,success\n1,1,0\n1,2,1\n2,1,0\n")
    assert "bare.csv, column 1, read as a cost: 1 is worst; csv, 2 episodes" in bare.out
    rows = run("certify", "steps.csv", "-o", "c")
    assert "csv, 3 episodes." in rows.out
    episodes = run("certify", "steps.csv", "--episode", "episode", "-o", "c")
    assert "cost = 1 - success; csv, 2 episodes (any of the rows with the same episode)" in episodes.out
    assert episodes.err == ""
    content = json.loads(run("check", "c", "steps.csv", "--json", "--allow-own").out)
    assert content["design"] == {"episode": "episode", "reduce": "any"}


def test_several_tasks(run, logs):
    certified = run("certify", "eval_info.json", "--by", "task", "-o", "c.json", "--delta", "0.03")
    assert certified.err == ""
    assert "For each of 3 tasks (column task)" in certified.out
    family = bw.CertificateFamily.load(logs / "c.json")
    assert list(family) == ["goal/0", "goal/1", "goal/2"]
    assert family.delta == pytest.approx(0.03)
    checked = run("check", "c.json", "worse.json", "--exit-code")
    assert checked.code == 3
    assert "ADVERSE: evidence of more failures than in the lab, for 1 of 3 tasks" in checked.out
    verdicts = {line.split()[-1]: line.split()[0] for line in checked.out.splitlines() if "goal/" in line}
    assert verdicts == {"goal/0": "WITHIN", "goal/1": "WITHIN", "goal/2": "ADVERSE"}
    assert run("check", "c.json", "same.json", "--exit-code").code == 0
    assert "goal/2" in run("show", "c.json").out
    assert "Certificate c.json, goal/1" in run("show", "c.json", "--task", "goal/1", "-o", "one.json").out
    assert bw.Certificate.load(logs / "one.json") == family["goal/1"]
    assert run("verify", "c.json", "--costs", "eval_info.json").code == 0


def test_json_of_several_tasks_is_what_the_library_says(run, logs):
    run("certify", "eval_info.json", "--by", "task", "-o", "c.json")
    content = json.loads(run("check", "c.json", "worse.json", "--json").out)
    family = bw.CertificateFamily.load(logs / "c.json")
    finding = bw.FamilyTest(family).decide(_costs(logs / "worse.json")).to_dict()
    assert {name: content[name] for name in finding} == json.loads(json.dumps(finding))
    assert content["certificates"]["goal/1"]["upper"] == family["goal/1"].upper
    assert (content["design"]["by"], content["format"]) == ("task", "lerobot-eval")


def _costs(path):
    tasks = json.loads(path.read_text())["per_task"]
    return {f"goal/{task['task_id']}": [1 - int(s) for s in task["metrics"]["successes"]] for task in tasks}


def test_one_certificate_and_several_robots(run, logs):
    (logs / "lab.csv").write_text("success\n" + "1\n1\n1\n0\n" * 50)
    (logs / "fleet.csv").write_text("robot,success\n" + "arm-1,1\narm-2,0\narm-3,1\n" * 30)
    run("certify", "lab.csv", "-o", "c.json")
    content = json.loads(run("check", "c.json", "fleet.csv", "--by", "robot", "--json").out)
    assert {task["task"]: task["verdict"] for task in content["tasks"]} == {
        "arm-1": "benign",
        "arm-2": "adverse",
        "arm-3": "benign",
    }
    assert content["false_positive_rate"] == pytest.approx(0.055), "one certificate counts once"


@pytest.mark.usefixtures("logs")
def test_watch_reads_logs(run):
    run("certify", "0.monitor.csv", *RANGE, "-o", "c.json")
    result = run("watch", "c.json", "1.monitor.csv", *RANGE)
    assert result.code == 0
    assert "ADVERSE" in result.out


def test_watch_reads_a_log_as_a_whole(run, logs):
    run("certify", "eval_info.json", "-o", "c.json")
    (logs / "single.json").write_text(evaluation([0.2], n=15))
    result = run("watch", "c.json", "single.json", "--json")
    assert len(result.out.splitlines()) == 15
    assert run("watch", "c.json", "single.json", "--state", "s.json").code in (1, 2)
    assert not (logs / "s.json").exists()


@pytest.mark.parametrize(
    ("suffix", "where"), [("csv", "line 9"), ("jsonl", "line 8"), ("json", "row 8"), ("xlsx", "row 9")]
)
def test_an_unknown_robot_is_found_where_the_steps_of_its_episode_begin(run, tmp_path, suffix, where):
    bw.CertificateFamily.from_held_out({"x": [0, 1], "y": [0, 1]}, by="robot", binary=True).save(
        tmp_path / "c.json"
    )
    steps = [(1, "x"), (2, "y"), (1, "x"), (1, "x"), (2, "y"), (2, "y"), (2, "y"), (3, "z"), (3, "z")]
    names = ["ep", "robot", "success"]
    rows = [[*step, 1] for step in steps]
    objects = [dict(zip(names, row, strict=True)) for row in rows]
    new = tmp_path / f"new.{suffix}"
    if suffix == "xlsx":
        book = openpyxl.Workbook()
        for row in [names, *rows]:
            book.active.append(row)
        book.save(new)
    elif suffix == "csv":
        new.write_text("".join(",".join(map(str, row)) + "\n" for row in [names, *rows]))
    else:
        lines = [json.dumps(each) for each in objects]
        new.write_text("\n".join(lines) if suffix == "jsonl" else f"[{','.join(lines)}]")
    done = run("check", "c.json", new.name, "--episode", "ep")
    assert done.code == 1
    assert f"new.{suffix}: {where}, column 'robot' = 'z' has no certificate" in done.err


FAULTS = {
    "check c.json four.json --allow-own": "'goal/3' has no certificate, only 'goal/0'",
    "check c.json same.json --by robot": "there is no column 'robot'",
    "check c.json plain.csv": "plain.csv: there is no column 'task'",
    "check c.json same.json --format mcap": "is damaged, or not what it seems",
    "verify c.json --costs two.json": "task 'goal/2' is certified, but is not in",
    "verify c.json --costs same.json": "failed goal/0: costs_sha256",
    "plan c.json --cost 0.5": "holds the certificates of several tasks",
    "show c.json --task goal/7 -o x.json": "holds 'goal/0', 'goal/1', 'goal/2'; name",
    "show one.json --task goal/1": "one.json: holds a single one; name",
    "show altered.json": "altered.json: task 'goal/1': upper: ",
    "show newer.json": "newer.json: schema_version = 2 is unknown",
    "certify nameless.csv --by task -o x.json": "line 3, column 'task'",
    "certify high.csv --by task -o x.json": "line 2, column 'cost' = 1.5",
    "certify . -o x.json": "meta/info.json",
    "certify cut.json -o x.json": "is not valid JSON",
}


@pytest.mark.parametrize("line", FAULTS)
def test_faults_are_one_line_and_nothing_is_written(run, logs, line):
    run("certify", "eval_info.json", "--by", "task", "-o", "c.json")
    run("certify", "eval_info.json", "-o", "one.json")
    family = json.loads((logs / "c.json").read_text())
    (logs / "newer.json").write_text(json.dumps(family | {"schema_version": 2}))
    family["certificates"][1]["upper"] = 0.9
    (logs / "altered.json").write_text(json.dumps(family))
    (logs / "four.json").write_text(evaluation([0.9, 0.5, 0.8, 0.9]))
    (logs / "two.json").write_text(evaluation([0.9, 0.5]))
    (logs / "cut.json").write_text(evaluation([0.9, 0.5])[:300])
    (logs / "plain.csv").write_text("success\n1\n")
    (logs / "nameless.csv").write_text("task,cost\npick,0.1\n,0.1\n")
    (logs / "high.csv").write_text("task,cost\npick,1.5\n")
    before = {path.name: path.read_bytes() for path in logs.iterdir()}
    result = run(*line.split())
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert FAULTS[line] in result.err
    assert ";" in result.err
    assert {path.name: path.read_bytes() for path in logs.iterdir()} == before
