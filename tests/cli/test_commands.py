"""What the commands print, write and return when all is well, and on wrong usage."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.cli import app
from boundwatch.cli.options import parsed
from program import PROGRAM, forked

pytestmark = pytest.mark.usefixtures("folder")


def test_version(run):
    assert run("--version").out == f"boundwatch {bw.__version__}\n"


def test_without_arguments_help_and_usage_error(run):
    result = run()
    assert result.code == 2
    assert "Commands:" in result.out + result.err


def commands(group=None, *path):
    """Return the path of every command that does something."""
    group = group or app
    if not hasattr(group, "names"):
        return [path]
    return [found for name in group.names() for found in commands(group.find(name), *path, name)]


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_ends_with_examples_that_parse_and_begin_with_the_command(run, path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*path, "--help")
    assert result.code == 0
    assert len(result.out.splitlines()) <= 60
    lines = result.out[result.out.index("Example:") :].strip().splitlines()[1:]
    examples = [shlex.split(line[line.index("boundwatch ") :].split(" < ")[0])[1:] for line in lines]
    assert tuple(examples[0][: len(path)]) == path
    for words in examples:
        command, words = app, list(words)
        while hasattr(command, "find"):
            command = command.find(words.pop(0))
        parsed(command.options, words)  # refuses what it does not know
        assert all(each.text for each in command.options)


def test_examples_in_help_run(run, folder):
    """Paste every example into a shell, over files of the names that it uses."""
    (folder / "new.csv").write_text((folder / "worse.csv").read_text())
    (folder / "certificates").mkdir()
    (folder / "certificates" / "act.json").write_text((folder / "certificate.json").read_text())
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"return": [-3.0] * 9 + [-180]}), folder / "episodes.parquet")
    (folder / "trials.csv").write_text(
        "trial,grasped,force\n" + "".join(f"{2 * i},yes,12\n{2 * i + 1},no,{i}.5\n" for i in range(9))
    )
    metrics = [{"successes": [True] * 9 + [False]}, {"successes": [False, True] * 5}]
    tasks = [{"task_group": "libero_goal", "task_id": i, "metrics": m} for i, m in enumerate(metrics)]
    (folder / "eval_info.json").write_text(json.dumps({"per_task": tasks}, indent=2))
    for each in metrics:
        each["successes"] = [True, True, *each["successes"]]
    (folder / "new_eval_info.json").write_text(json.dumps({"per_task": tasks}, indent=2))
    expected = {
        "certify": [0, 0, 0, 0, 0, 0],
        "verify": [0, 0],
        "show": [0],
        "check": [0, 3, 3, 0],
        "report": [0, 0],
        "plan": [0, 0, 0, 0, 0, 0],
    }
    for command, codes in expected.items():
        bw.Certificate.from_held_out(np.loadtxt(folder / "costs.csv", skiprows=1)).save(
            folder / "certificate.json"
        )
        lines = re.findall(r"^ {4}(boundwatch .*)$", run(command, "--help").out, flags=re.MULTILINE)
        assert len(lines) == len(codes)
        for line, code in zip(lines, codes, strict=True):
            shell = f"PATH={forked()}:$PATH\n{line}"
            done = subprocess.run(shell, shell=True, cwd=folder, capture_output=True, check=False)  # noqa: S602
            assert (line, done.returncode, done.stderr) == (line, code, b"")


def test_certify_writes_what_the_library_would(run, folder):
    result = run("certify", "costs.csv", "-o", "new.json", "--delta", "0.05", "--method", "kl", "--seed", "7")
    assert result.code == 0
    written = bw.Certificate.load(folder / "new.json")
    costs = np.loadtxt(folder / "costs.csv", skiprows=1)
    made = bw.Certificate.from_held_out(costs, delta=0.05, method="kl", seed=7)
    assert (written.lower, written.upper, written.delta) == (made.lower, made.upper, 0.05)
    assert written.provenance.seed == 7
    assert written.provenance.costs_sha256 == made.provenance.costs_sha256
    assert "Wrote new.json" in result.out
    assert "200 episodes" in result.out


def test_certify_options_reach_the_certificate(run, folder):
    (folder / "policy.bin").write_bytes(b"weights")
    result = run(
        *("certify", "success.csv", "-o", "new.json", "--json", "--policy-file", "policy.bin"),
        *("--delta-upper", "0.02", "--delta-lower", "0.03"),
    )
    content = json.loads(result.out)
    assert content == json.loads((folder / "new.json").read_text())
    assert content["binary"] is True
    assert content["method"] == "exact"
    assert (content["delta"], content["delta_upper"], content["delta_lower"]) == (0.05, 0.02, 0.03)
    assert re.fullmatch("[0-9a-f]{64}", content["provenance"]["policy_sha256"])


def test_certify_from_standard_input_with_column_and_range(run, folder):
    result = run(
        *("certify", "-", "-o", "new.json", "--reward", "REWARD", "--cost-range", "-200", "0"),
        stdin=b"episode,reward\n1,-200\n2,0\n3,-50\n4,-150\n",
    )
    assert result.code == 0
    assert "standard input, column reward, rescaled to a cost" in result.out
    assert bw.Certificate.load(folder / "new.json").mean_cost == 0.5


def test_show_says_what_is_promised_when_and_what_it_is_not(run, folder):
    text = run("show", "binary.json").out
    certificate = bw.Certificate.load(folder / "binary.json")
    assert f"to {math.ceil(1000 * certificate.upper) / 10} % of trials (99 % confidence)" in text
    for phrase in (
        "fails with probability at most 0.005",
        "either with at most 0.01",
        "200 episodes",
        "independent draws from one distribution",
        "the one that was certified, unchanged",
        "Every cost is 0 or 1",
        'WITHIN reads "no evidence of a shift", never "safe"',
        "probability of being wrong given an alarm",
        certificate.fingerprint,
        str(certificate.provenance.costs_sha256),
    ):
        assert phrase in text
    assert "vacuous" not in text


def test_what_is_taken_on_trust_comes_with_a_remedy_that_works(run, folder):
    bw.Certificate.from_bounds(lower=0.1, upper=0.5, delta=0.01).save(folder / "c.json")
    for command in (["show", "c.json"], ["check", "c.json", "same.csv"], ["watch", "c.json", "same.csv"]):
        said = run(*command).err
        assert (
            "note: taken on trust: both limits, which were proved elsewhere; --key checks who signed" in said
        )
        assert "--costs" not in said  # it has none


def test_show_rounds_limits_outward(run, folder):
    bw.Certificate.from_bounds(lower=0.12349, upper=0.56781, delta=0.01).save(folder / "c.json")
    assert "at least 0.1234 and at most 0.5679" in run("show", "c.json").out


@pytest.mark.parametrize(
    ("lower", "upper", "phrases"),
    [
        (0.0, 0.5, ["lower limit is vacuous"]),
        (0.1, 1.0, ["upper limit is vacuous"]),
        (0.0, 1.0, ["lower limit is vacuous", "upper limit is vacuous"]),
    ],
)
def test_vacuous_limits_are_named(run, folder, lower, upper, phrases):
    bw.Certificate.from_bounds(lower=lower, upper=upper, delta=0.01).save(folder / "c.json")
    for text in (run("show", "c.json").out, run("check", "c.json", "same.csv").out):
        assert all(phrase in text for phrase in phrases)
        assert text.count("is vacuous") == len(phrases)
    content = json.loads(run("show", "c.json", "--json").out)
    assert (content["vacuous_lower"], content["vacuous_upper"]) == (lower <= 0, upper >= 1)


@pytest.mark.parametrize(
    ("make", "phrase"),
    [
        (lambda c: bw.Certificate.from_pac_bayes(c, renyi=0.4), "D2(P || P0) = 0.4"),
        (lambda c: bw.Certificate.from_pac_bayes(c, renyi=0.4, method="pinsker"), "Pinsker's inequality"),
        (lambda c: bw.Certificate.from_pointwise(c, log_ratio=1.3), "ln P(w)/P0(w) = 1.3"),
        (lambda c: bw.Certificate.from_held_out(c, method="hoeffding"), "Hoeffding's inequality"),
        (lambda _: bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.1), "proved elsewhere"),
    ],
)
def test_show_names_the_basis_of_every_kind(run, folder, make, phrase):
    certificate = make(np.loadtxt(folder / "costs.csv", skiprows=1))
    certificate.save(folder / "c.json")
    text = run("show", "c.json").out
    assert phrase in text
    assert ("prior was chosen before" in text) == (certificate.source in ("pac-bayes", "pointwise"))


def test_verify_lists_every_check(run, folder):
    plain, full = run("verify", "binary.json"), run("verify", "binary.json", "--costs", "success.csv")
    assert (plain.code, full.code) == (0, 0)
    assert len(full.out.splitlines()) == len(bw.Certificate.load(folder / "binary.json").verify([0, 1])) == 6
    assert all(line.split()[0] == "ok" for line in full.out.splitlines())
    content = json.loads(run("verify", "binary.json", "--costs", "success.csv", "--json").out)
    assert content["ok"] is True
    assert {"name", "ok", "detail"} == set(content["checks"][0])


def test_verify_compares_the_policys_file(run, folder):
    (folder / "policy.pt").write_bytes(b"weights")
    run("certify", "costs.csv", "--policy-file", "policy.pt", "-o", "with-policy.json")
    assert run("verify", "with-policy.json", "--policy-file", "policy.pt").code == 0
    (folder / "policy.pt").write_bytes(b"retrained")
    other = run("verify", "with-policy.json", "--policy-file", "policy.pt")
    assert other.code == 1
    assert "failed policy_sha256" in other.err


def test_verify_fails_on_other_costs(run):
    result = run("verify", "certificate.json", "--costs", "same.csv")
    assert result.code == 1
    assert "FAILED  costs_sha256" in result.out
    assert result.err.count("\n") == 1
    content = run("verify", "certificate.json", "--costs", "same.csv", "--json")
    assert content.code == 1
    assert json.loads(content.out)["ok"] is False


CHECKS = [("worse.csv", "adverse"), ("same.csv", "within"), ("better.csv", "benign")]


@pytest.mark.parametrize(("costs", "verdict"), CHECKS)
def test_check_says_verdict_and_evidence(run, folder, costs, verdict):
    result = run("check", "certificate.json", costs)
    assert result.code == 0
    assert ("all 60 episodes cost 0.01" if costs == "better.csv" else "") in result.err
    certificate = bw.Certificate.load(folder / "certificate.json")
    finding = bw.HypothesisTest(certificate).decide(np.loadtxt(folder / costs, skiprows=1))
    assert result.out.startswith(f"{verdict.upper()}: ")
    for phrase in (
        f"{finding.n}, mean cost {finding.mean_cost:.4f}",
        "probability at most 0.055 (delta 0.005 included) in any world that is not worse",
        "probability at most 0.055 (delta 0.005 included) in any world that is worse",
        "hypothesis-test, new episodes judged jointly",
        "not the probability that a verdict is wrong",
        "one look at a number of episodes fixed in advance",
    ):
        assert phrase in result.out
    assert ('does not mean "safe"' in result.out) == (verdict == "within")
    assert run("check", "certificate.json", costs, "--exit-code").code == (3 if verdict == "adverse" else 0)


def test_a_gate_with_a_margin_is_closed_until_the_margin_is_shown_and_on_adverse(run, folder):
    """WITHIN is not enough for a margin, and a margin that is kept does not excuse ADVERSE."""

    def check(new, margin, *options, by=""):
        (folder / "new.csv").write_text(f"success{by and ',' + by}\n" + "".join(f"{row}\n" for row in new))
        done = run("check", "c.json", "new.csv", "--margin", margin, "--json", *options)
        found = json.loads(done.out)
        assert run("check", "c.json", "new.csv", "--margin", margin, "--exit-code", *options).code == (
            3 if found["verdict"] == "adverse" or not found["no_worse"] else 0
        )
        return found["verdict"], found["no_worse"]

    bw.Certificate.from_held_out(successes=[1] * 92 + [0] * 8).save(folder / "c.json")
    assert check([1] * 9 + [0], "0.05") == ("within", False)
    assert check([1] * 46 + [0] * 4, "0.3") == ("within", True)
    assert check([1] * 70 + [0] * 30, "0.6") == ("adverse", True)
    assert check([0] * 30, "0.05") == ("adverse", False)
    family = {"a": [0] * 92 + [1] * 8, "b": [0] * 92 + [1] * 8}
    bw.CertificateFamily.from_held_out(family, binary=True, by="robot").save(folder / "c.json")
    both = [f"1,{robot}" for robot in "ab"] * 46 + [f"0,{robot}" for robot in "ab"] * 4
    assert check(both, "0.3", by="robot") == ("within", True)
    assert check(both, "0.05", by="robot") == ("within", False)
    assert check([row for row in both if row.endswith("a")], "0.3", by="robot") == ("within", False)


def test_check_json_has_the_fields_of_the_library(run, folder):
    certificate = bw.Certificate.load(folder / "certificate.json")
    options = ["--alpha-adverse", "0.01", "--alpha-benign", "0.02", "--tail", "hoeffding"]
    content = json.loads(run("check", "certificate.json", "worse.csv", "--json", *options).out)
    test = bw.HypothesisTest(certificate, alpha_adverse=0.01, alpha_benign=0.02, tail="hoeffding")
    finding = test.decide(np.loadtxt(folder / "worse.csv", skiprows=1))
    assert content == finding.to_dict() | {
        "source": "worse.csv",
        "format": "csv",
        "measure": {"kind": "cost", "column": "cost", "cost_range": None, "success_values": []},
        "design": {},
        "notes": [],
        "warnings": [],
        "certificate": {
            "lower": certificate.lower,
            "upper": certificate.upper,
            "delta": certificate.delta,
            "fingerprint": certificate.fingerprint,
        },
    }


def test_the_headline_has_the_digits_of_the_evidence(run):
    first, second, *rows = run("check", "certificate.json", "worse.csv").out.splitlines()
    said = " ".join(rows)
    assert re.search(r"up by at least (0\.\d{4}) ", first)[1] in re.search(r"changed by \+(0\.\d+)", said)[1]
    assert re.search(r"expected cost ([\d.]+ to [\d.]+)", second)[1] in said
    assert re.search(r"mean (0\.\d{4})", second)[1] in said


def test_the_reference_page_lists_every_field_of_check_json(run, folder):
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    one, several = (
        page.partition("## What check --json prints")[2].split("\n## ")[0].split("With several tasks")
    )
    content = json.loads(run("check", "certificate.json", "worse.csv", "--json").out)
    assert {*content, *content["certificate"]} <= set(re.findall(r"`(\w+)`", one))
    (folder / "tasks.csv").write_text("task,cost\n" + "a,0.1\nb,0.3\n" * 30)
    assert run("certify", "tasks.csv", "--by", "task", "-o", "tasks.json").code == 0
    (folder / "new.csv").write_text("task,cost\n" + "a,0.2\nb,0.4\n" * 9)
    found = json.loads(run("check", "tasks.json", "new.csv", "--json").out)
    fields = {*found, *found["tasks"][0]} - set(content)  # those that say where the costs came from
    said = set(re.findall(r"`(\w+)`", several))  # a task has the fields of one finding, and its own
    assert fields | {"verdict", "no_worse"} <= said
    assert set(found["tasks"][0]) <= said | set(re.findall(r"`(\w+)`", one))


REWARDS = "reward\n" + "-20\n-10\n-40\n-60\n" * 20


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (REWARDS, ["--cost-range", "-400", "0"]),
        ("success\n1\n1\n0\n", []),
        ("cost\n0.2\n0.3\n", []),
        ("old_reward\n-20\n-30\n", ["--reward", "old_reward", "--cost-range", "-200", "0"]),
        (
            "trial,reward\n1,-20\n1,-3\n2,-9\n",
            ["--episode", "trial", "--reduce", "max", "--cost-range", "-200", "0"],
        ),
    ],
)
def test_costs_measured_otherwise_are_warned_of(run, folder, text, options):
    (folder / "rewards.csv").write_text(REWARDS)
    assert run("certify", "rewards.csv", "--cost-range", "-200", "0", "-o", "r.json").code == 0
    measured = "cost = (0 - reward)/200, column reward"
    assert f"How its costs were measured: {measured}." in run("show", "r.json").out
    (folder / "new.csv").write_text(text)
    done = run("check", "r.json", "new.csv", "--json", *options)
    assert "warning: new.csv: these costs are not measured the way the certificate's were" in done.err
    assert f"certified {measured}" in " ".join(json.loads(done.out)["warnings"])
    report = run("report", "r.json", "new.csv", "-o", "report.html", *options)
    assert "not measured the way" in report.err
    assert "not measured the way" in (folder / "report.html").read_text(encoding="utf-8")


def test_costs_measured_alike_are_not(run, folder):
    (folder / "rewards.csv").write_text(REWARDS)
    options = ["--cost-range", "-200", "0"]
    assert run("certify", "rewards.csv", *options, "-o", "r.json").code == 0
    (folder / "steps.csv").write_text("trial,reward\n" + "1,-20\n1,-3\n2,-9\n")
    assert run("check", "r.json", "steps.csv", *options, "--episode", "trial", "--reduce", "sum").err == ""
    assert (
        "measured" not in run("check", "binary.json", "success.csv", "--allow-own").err
    )  # that one keeps no rule


def test_too_few_episodes_to_alarm_are_said_to_be(run, folder):
    (folder / "one.csv").write_text("success\n0\n")
    (folder / "ten.csv").write_text("success\n" + "1\n" * 10)
    phrase = "With 1 episode, even if every one had failed, the verdict could not have been ADVERSE"
    assert phrase in run("check", "binary.json", "one.csv").out
    assert "could not have been ADVERSE" not in run("check", "binary.json", "ten.csv").out


def test_tasks_without_new_episodes_are_counted_and_warned_of(run, folder):
    (folder / "tasks.csv").write_text("task,success\n" + "a,1\nb,1\na,0\nb,1\n" * 30)
    assert run("certify", "tasks.csv", "--by", "task", "-o", "tasks.json").code == 0
    (folder / "new.csv").write_text("task,success\na,1\n")
    done = run("check", "tasks.json", "new.csv")
    assert done.out.startswith("WITHIN: no evidence of a shift, for 1 of 2 tasks, 1 not judged\n")
    assert "warning: new.csv: no new episodes of b, so that 1 of 2 certified tasks are not judged" in done.err
    assert "b (certified, but no new episodes)" in done.out
    assert "Too few episodes of a: no outcome could have been ADVERSE" in done.out
    content = json.loads(run("check", "tasks.json", "new.csv", "--json").out)
    assert (content["not_judged"], len(content["warnings"])) == (["b"], 1)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_check_draws(run, folder, ending):
    assert run("check", "certificate.json", "worse.csv", "--plot", f"figure.{ending}").code == 0
    assert (folder / f"figure.{ending}").stat().st_size > 1000


def test_check_draws_each_task(run, folder):
    (folder / "lab.csv").write_text("task,success\n" + "pick,1\nplace,1\nplace,0\n" * 50)
    (folder / "new.csv").write_text("task,success\n" + "pick,0\nplace,1\n" * 12)
    for declared in ("--by", "--strata"):
        assert run("certify", "lab.csv", declared, "task", "-o", "tasks.json", "--force").code == 0
        done = run("check", "tasks.json", "new.csv", "--plot", "tasks.svg", "--no-title")
        assert done.code == 0, done.err
        assert "<svg" in (folder / "tasks.svg").read_text()


def test_watch_draws_every_stream(run, folder):
    assert run("watch", "certificate.json", "worse.csv", "--plot", "watch.pdf").code == 0
    assert (folder / "watch.pdf").read_bytes().startswith(b"%PDF")
    (folder / "lab.csv").write_text("task,success\n" + "pick,1\nplace,1\nplace,0\n" * 50)
    (folder / "new.csv").write_text("task,success\n" + "pick,0\n" * 12)
    assert run("certify", "lab.csv", "--by", "task", "-o", "tasks.json").code == 0
    arguments = ("watch", "tasks.json", "new.csv", "--plot", "watch.png", "--state", "watch.state")
    assert run(*arguments).code == 0
    (folder / "watch.png").unlink()
    assert run(*arguments).code == 0  # nothing came, so there is nothing new to draw
    assert not (folder / "watch.png").exists()


USAGE = {
    "check": "boundwatch check: the following arguments are required: CERTIFICATE, COSTS. Try boundwatch",
    "check certificate.json": "COSTS",
    "check a b --zzz": "boundwatch check: unrecognized arguments: --zzz. Try",
    "check a b --tail magic": "boundwatch check: --tail: invalid choice: 'magic' (choose from",
    "check a b --cost-range 0": "--cost-range",
    "check tasks.json new.csv --format xml": "--format: invalid choice: 'xml'",
    "certify costs.csv": "--output",
    "certify costs.csv -o x --delta small": "--delta",
    "certify costs.csv -o x --method magic": "'betting', 'tuned', 'kl', 'hoeffding', 'exact'",
    "certify costs.csv -o x --delta 0.1 --delta-upper 0.1": "give either --delta, or --delta-upper and",
    "plan --cost high": "boundwatch plan: --cost: 'high' is not a number",
    "plan -n 2.5": "boundwatch plan: -n: '2.5' is not a whole number",
    "compare --once=yes": "boundwatch compare: --once: takes no value",
    "report certificate.json same.csv": "--output",
    "watch certificate.json - --follow": "--follow is for files",
    "report certificate.json costs.csv -o x --success a --cost b": "--success a and --cost b go together",
    "verify certificate.json --success ok": "--success goes with --costs",
    "verify certificate.json --cost-range 0 1": "--cost-range goes with --costs",
    "verify certificate.json --by task": "--by goes with --costs",
    "verify certificate.json --costs costs.csv --by task": "--by goes with certificates of several tasks",
    "compare costs.csv --success a --against 4/5 --paired": "--paired does not go with --against",
    "compare costs.csv --success a --against 4/5 --pair-by seed": "--pair-by does not go with --against",
    "compare costs.csv a.csv --once --table csv --json": "give either --table or --json, not both",
    "watch certificate.json costs.csv --margin 0 --detector change-detector": "--margin goes with --detector",
    "plan --compare 0.1 0.25 --width 0.1": "--compare does not go with --width",
    "plan costs.csv --width 0.1": "boundwatch plan: CERTIFICATE does not go with --width",
    "plan --width 0.1 -n 3": "boundwatch plan: -n does not go with --width",
    "plan --width 0.1 --seed 0": "--seed is for simulations",
    "plan certificate.json --cost 0.9 --seed 3": "--seed is for simulations",
    "plan --cost 0.1 --new-cost 0.3 --seed 3": "--seed does not go with a plan without CERTIFICATE",
    "plan --cost 0.1 --new-cost 0.3 --force": "--force goes with --plot",
    "certify costs.csv -o x --judge=": "--judge and --labels go together",
    "certify costs.csv -o x --tasks 3": "--tasks goes with --until-width, --until-upper or --at-most",
    "check certificate.json costs.csv --no-title": "--no-title goes with --plot",
    "check certificate.json costs.csv --force": "--force goes with --plot",
    "watch certificate.json costs.csv --force": "--force goes with --plot",
    "show certificate.json --force": "--force goes with --output",
    "compare costs.csv same.csv --no-title": "--no-title goes with --plot",
    "compare costs.csv same.csv --force": "--force goes with --plot or --report",
    "card certificate.json -o c --title x": "--title goes with a folder of certificates",
    "report": "the following arguments are required: CERTIFICATE, COSTS, -o/--output. Try",
    "certify -o x -- -a.csv -b.csv": "unrecognized arguments: -b.csv. Try",
    "certify --success -- -a.csv -o x": "--success: needs its value before --",
    "token nothing": "boundwatch token: No such command 'nothing'. Try boundwatch token --help.",
    "magic": "No such command",
}


@pytest.mark.parametrize("line", USAGE)
def test_wrong_usage_is_one_line_and_exits_with_two_and_writes_nothing(run, folder, line):
    bw.CertificateFamily.from_held_out({"a": [0, 1] * 9, "b": [0] * 9}, binary=True).save("tasks.json")
    (folder / "new.csv").write_text("task,cost\n" + "a,1\nb,0\n" * 9)
    before = sorted(folder.iterdir())
    result = run(*line.split())
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert USAGE[line] in result.err
    assert sorted(folder.iterdir()) == before


def test_what_follows_two_dashes_is_no_option(run, folder):
    (folder / "-x.csv").write_text((folder / "costs.csv").read_text())
    assert run("certify", "-o", "c.json", "--", "-x.csv").code == 0
    assert run("check", "--json", "c.json", "--allow-own", "--", "-x.csv").code == 0
    assert run("compare", "same.csv", "--", "-x.csv").code == 0


@pytest.mark.parametrize("path", commands(), ids=" ".join)
def test_help_has_no_doubled_brackets_and_its_own_option_is_no_argument(run, path):
    text = run(*path, "--help").out
    assert "[[" not in text
    assert "  -h, --help" not in text.partition("\nArguments:\n")[2].partition(":\n")[0]


def ended(line, folder):
    """Return the exit code of the program in a pipe, or with closed streams, and what it said."""
    words = {"PATH": f"{forked()}:{os.environ['PATH']}"}
    script = f"set -o pipefail; {line}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=os.environ | words,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("boundwatch --help | (exec <&-; sleep 1)", 141),
        ("boundwatch watch certificate.json worse.csv --exit-code | (exec <&-; sleep 1)", 3),
        ("boundwatch check certificate.json worse.csv --exit-code | (exec <&-; sleep 1)", 3),
        ("boundwatch check certificate.json worse.csv | (exec <&-; sleep 1)", 141),
    ],
)
def test_nobody_reads_on(folder, line, code):
    found, said = ended(line, folder)
    assert found in {code, 141}  # 141 if it was told while it printed, before it had a verdict's code
    assert "cannot print" not in said
    assert "Traceback" not in said


def test_a_closed_output_is_one_line(folder):
    program = shlex.join([*PROGRAM, "check", "certificate.json", "worse.csv"])
    code, said = ended(f"{program} >&-", folder)
    assert code == 1
    assert said == "boundwatch: cannot print the result, standard output is closed; send it to a file\n"
    assert ended(f"{program} --json 2>&- | python3 -m json.tool", folder)[0] == 0
