"""boundwatch plan."""

import json

import pytest

import boundwatch as bw


@pytest.fixture
def binary(tmp_path):
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).save(tmp_path / "b.json")
    return "b.json"


def test_table_and_plot(run, binary, tmp_path):
    done = run("plan", binary, "--cost", "0.5", "-n", "20", "-n", "40", "--plot", "power.svg")
    assert done.code == 0
    assert "Run 21 trials and look once (check), or at most 35 and look after each" in done.out
    assert "check (exact)" in done.out
    assert "beyond the certified upper limit" in done.out
    assert (tmp_path / "power.svg").read_bytes().startswith(b"<?xml")


def test_a_held_out_certificate_is_planned_jointly(run, tmp_path):
    bw.Certificate.from_held_out([0] * 46 + [1] * 4, binary=True).save(tmp_path / "lab.json")
    done = run("plan", "lab.json", "--cost", "0.5", "-n", "12", "--plot", "power.svg")
    assert done.code == 0, done.err
    assert all(f"{name} (joint)" in done.out for name in ("check", "watch"))
    assert "from the certified trials' mean" in done.out
    assert "judged together with this certificate's" in done.out


def test_json_is_what_the_library_says(run, binary, tmp_path):
    done = run("plan", binary, "--cost", "0.5", "--json")
    assert json.loads(done.out) == bw.plan(bw.Certificate.load(tmp_path / binary), cost=0.5).to_dict()


def test_bounded_costs_come_with_a_caveat(run, binary, tmp_path):
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01).save(tmp_path / "bounded.json")
    assert "may need more" in run("plan", "bounded.json", "--cost", "0.5", "-n", "10").out
    assert "may need more" not in run("plan", binary, "--cost", "0.5", "-n", "10").out


def test_without_a_suspicion_it_says_what_is_noticed(run, binary, tmp_path):
    said = run("plan", binary, "-n", "40").out
    rate = json.loads(run("plan", binary, "-n", "40", "--json").out)["cost"]
    assert said.startswith(f"40 trials notice a failure rate of {100 * rate:g} % or more")
    plan = bw.plan(bw.Certificate.load(tmp_path / binary), cost=rate, sizes=[40])
    assert plan.powers[0].trials[0.9] <= 40
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01).save(tmp_path / "bounded.json")
    assert "that you suspect" in run("plan", "bounded.json").err
    assert "1 trial notices no shift with 90 % power; give a larger -n" in run("plan", binary, "-n", "1").err
    assert run("plan", binary, "-n", "1000000").err.startswith(
        "boundwatch: -n = 1000000 is more than the 5,000"
    )
    assert "too many trials" not in run("plan", binary, "--cost", "0.2001").out


def test_usage_errors(run, binary):
    assert "--cost" in run("plan").err
    for option, remedy in (("--new-cost", "say it as --cost"), ("--margin", ""), ("--lab-trials", "")):
        assert f"{option} does not go with a CERTIFICATE; {remedy or 'leave it out'}" in (
            run("plan", binary, option, "1").err
        )
    for given, called in (
        (("--width", "0"), "--width = 0 is not a width"),
        (("--width", "0.1", "--repeats", "5", "--correlation", "2"), "--correlation = 2 is not in [0, 1]"),
        (("--cost", "0.1", "--new-cost", "0.1"), "--new-cost = 0.1 is the cost"),
        (("--cost", "0.1", "--new-cost", "0.4", "--margin", "0.2"), "--new-cost = 0.4 is not below"),
        (("--cost", "0.1", "--new-cost", "0.3", "--alpha-adverse", "2"), "--alpha-adverse = 2 is outside"),
        (("--compare", "0", "0.1"), "--compare = 0 is not"),
    ):
        assert run("plan", *given).err.startswith(f"boundwatch: {called}")
    assert "--format goes with --after" in run("plan", binary, "--cost", "0.5", "--format", "csv").err
    done = run("plan", binary, "--cost", "0.15")
    assert done.code == 1
    assert "inside the certified" in done.err


def test_levels_are_those_of_the_shift(run, binary):
    for cost, level, other in (("0.5", "adverse", "benign"), ("0.01", "benign", "adverse")):
        content = json.loads(run("plan", binary, "--cost", cost, f"--alpha-{level}", "0.02", "--json").out)
        assert (content["verdict"], {power["level"] for power in content["powers"]}) == (level, {0.02})
        done = run("plan", binary, "--cost", cost, f"--alpha-{other}", "0.02")
        assert done.code == 2
        assert f"give --alpha-{level} alone" in done.err


def test_a_comparison_is_planned(run, tmp_path):
    done = run("plan", "--compare", "0.1", "0.4", "--plot", "power.png")
    assert done.code == 0
    assert "independent trials" in done.out
    assert (tmp_path / "power.png").exists()
    plan = json.loads(
        run("plan", "--compare", "0.1", "0.4", "--paired", "--correlation", "0.2", "--json").out
    )
    assert plan["paired"]
    assert plan["mean_pairs"] < 28
    strict = json.loads(run("plan", "--compare", "0.1", "0.4", "--alpha", "0.01", "--json").out)
    assert (plan["alpha"], strict["alpha"]) == (0.05, 0.01)
    for option in ("--cost", "--alpha-adverse", "--alpha-benign", "--seed"):
        done = run("plan", "--compare", "0.1", "0.4", option, "1")
        assert (done.code, f"{option} does not go with --compare" in done.err) == (2, True)
    for option in (["--paired"], ["--alpha", "0.1"]):
        done = run("plan", *option, "--cost", "0.1", "--new-cost", "0.3")
        assert (done.code, f"{option[0]} does not go with a plan without CERTIFICATE" in done.err) == (
            2,
            True,
        )
    assert run("plan", "--compare", "0.1", "0.1").err.startswith("boundwatch: --compare = 0.1 is both")


def test_trials_for_a_width_over_tasks_on_scenes_and_after_some(run, tmp_path):
    assert run("plan", "--width", "0.1").out.startswith(
        "Run 172 trials: the failure rate is then known within"
    )
    tasks = run("plan", "--width", "0.1", "--cost", "0.2", "--tasks", "10", "--delta", "0.05")
    assert tasks.out.startswith("Run 90 trials, 9 of each task: the mean failure rate of 10 tasks")
    scenes = run("plan", "--width", "0.2", "--cost", "0.3", "--repeats", "5", "--correlation", "0.4")
    assert "More scenes, not more repeats" in " ".join(scenes.out.split())
    assert "Simulated, seed 0; two trials of a scene are correlated by 0.4." in scenes.out
    rows = [f"{task},{'no' if number % 5 == 0 else 'yes'}" for number in range(10) for task in ("mug", "lid")]
    (tmp_path / "had.csv").write_text("\n".join(["task,ok", *rows, ""]))
    given = "plan", "--width", "0.15", "--after", "had.csv", "--success", "ok"
    after = run(*given, "--strata", "task")
    assert after.code == 0, after.err
    assert after.out.startswith("Run about ")
    assert "go on with the limits of certify --until-width 0.3" in after.out
    assert json.loads(run(*given, "--strata", "task", "--json").out)["had"] == 20
    assert "declare it: --strata task" in run(*given).err
    assert "--cost does not go with --after" in run(*given, "--strata", "task", "--cost", "0.1").err
    assert "--plot does not go with --width" in run("plan", "--width", "0.1", "--plot", "a.png").err
    assert "--tasks does not go with" in run("plan", "--cost", "0.1", "--new-cost", "0.3", "--tasks", "3").err


def test_how_many_more_after_counts_tasks_and_scenes(run, tmp_path):
    rows = ["mug,18,20", "bowl,14,20", "lid,40,40"]
    (tmp_path / "counts.csv").write_text("\n".join(["task,ok,n", *rows, ""]))
    given = "plan", "--width", "0.1", "--after", "counts.csv", "--successes", "ok", "--trials", "n"
    assert "declare it: --strata task" in run(*given).err
    pooled = run(*given, "--where", "task=bowl")
    assert pooled.out.startswith("Run about "), pooled.err
    assert "counts have none" in pooled.out
    content = json.loads(run(*given, "--strata", "task", "--json").out)
    assert (content["had"], content["tasks"], content["counted"]) == (80, 3, True)
    # Which of the trials of a task come first is not known: the same counts in other rows plan the same.
    order = ["task,ok,n", "mug,2,4", "mug,16,16", "bowl,0,6", "bowl,14,14", "lid,40,40", ""]
    (tmp_path / "counts.csv").write_text("\n".join(order))
    again = json.loads(run(*given, "--strata", "task", "--json").out)
    assert again["trials"] == pytest.approx(content["trials"], rel=0.1)
    trials = [f"s{scene},{'no' if scene % 3 == 0 else 'yes'}" for scene in range(12) for _ in range(4)]
    (tmp_path / "scenes.csv").write_text("\n".join(["scene,ok", *trials, ""]))
    done = run("plan", "--width", "0.2", "--after", "scenes.csv", "--success", "ok", "--cluster", "scene")
    said = " ".join(done.out.split())
    assert "More scenes, not more repeats:" in said
    assert "The 48 trials so far told the rate and that" in said


def test_rounds_of_tasks_are_planned_with_the_certificate_of_their_mean(run, tmp_path):
    lab = bw.Episodes([1.0, *[0.0] * 19] * 3, strata=["mug"] * 20 + ["lid"] * 20 + ["cup"] * 20)
    bw.Certificate.from_held_out(lab, binary=True).save(tmp_path / "mean.json")
    done = run("plan", "mean.json", "--cost", "0.4")
    assert done.code == 0, done.err
    assert done.out.startswith("Run ")
    assert "rounds of 3 tasks and look once (check)" in " ".join(done.out.split())
    assert json.loads(run("plan", "mean.json", "--cost", "0.4", "--json").out)["tasks"] == 3
    assert "-n does not go with" in run("plan", "mean.json", "--cost", "0.4", "-n", "9").err
