"""Several metrics of one file under one error rate."""

import json
import shlex

import numpy as np
import pytest

import boundwatch as bw

COLUMNS = ("--success", "ok", "--cost", "force", "--cost-range", "0", "50")


@pytest.fixture
def trials(tmp_path):
    rng = np.random.default_rng(81)

    def write(name, rate, force, n):
        rows = [
            f"{'ab'[i % 2]},{int(rng.random() > rate)},{f:.2f}" for i, f in enumerate(rng.normal(force, 2, n))
        ]
        (tmp_path / name).write_text("robot,ok,force\n" + "\n".join(rows) + "\n")
        return name

    return write


def test_one_family_and_one_error_rate_for_all_columns(run, trials, tmp_path):
    lab, new = trials("lab.csv", 0.1, 10, 100), trials("new.csv", 0.1, 30, 30)
    assert run("certify", lab, *COLUMNS, "-o", "c.json").code == 0
    family = bw.CertificateFamily.load(tmp_path / "c.json")
    assert (list(family), family.by, family.delta) == (["ok", "force"], "metric", pytest.approx(0.01))
    assert (family["ok"].binary, family["force"].binary) == (True, False)
    done = run("check", "c.json", new, *COLUMNS, "--exit-code")
    assert done.code == 3  # the force rose, the successes did not
    lines = {line.split()[-1]: line.split()[0] for line in done.out.splitlines() if line.strip()}
    assert (lines["force"], lines["ok"]) == ("ADVERSE", "WITHIN")
    assert "0.06" in done.out  # 0.05 for all metrics, and their delta
    said = " ".join(done.out.split())
    assert "new.csv, column ok, cost = 1 - success; csv, 30 episodes" in said
    assert "new.csv, column force, rescaled to a cost from the range 0 to 50: 50 is worst; csv, 30 ep" in said
    assert "column metric" not in said
    assert "for 1 of 2 metrics" in said
    assert "the probability that any metric that is not worse is called ADVERSE" in said
    assert "all tasks" not in said
    report = run("report", "c.json", new, *COLUMNS, "-o", "report.html")
    assert "for 1 of 2 metrics" in report.out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Report on 2 metrics" in page


@pytest.mark.parametrize(
    ("success", "cost"), [("ok", "force/N"), ("g/ok", "g/Force/N"), ("success", "cost"), ("success", "a/b c")]
)
def test_the_columns_that_are_offered_may_have_slashes(run, tmp_path, success, cost):
    rows = "".join(f"{'ab'[i % 2]}/0,{i % 3 % 2},{i}\n" for i in range(30))
    (tmp_path / "lab.csv").write_text(f"robot,{success},{cost}\n{rows}")
    columns = ("--success", success, "--cost", cost)
    assert run("certify", "lab.csv", *columns, "--cost-range", "0", "50", "-o", "c.json").code == 0
    done = run("check", "c.json", "lab.csv", *columns[:2])
    assert (done.code, f"the same ones: {shlex.join(columns)}\n" in done.err) == (1, True)
    assert run("check", "c.json", "lab.csv", "--allow-own").code == 0  # it knows them


def test_what_is_refused(run, trials):
    lab = trials("lab.csv", 0.1, 10, 30)
    run("certify", lab, *COLUMNS, "-o", "c.json")
    done = run("check", "c.json", lab, "--success", "ok")
    assert "the same ones: --success ok --cost force" in done.err
    for option in (("--method", "exact"), ("--binary",)):  # force is neither
        assert run("certify", lab, *COLUMNS, *option, "-o", "d.json").code == 1
    levels = ("--delta-upper", "0.1", "--delta-lower", "0.01")
    done = run("certify", lab, *COLUMNS, *levels, "-o", "d.json", "--json")
    assert [each["delta_upper"] for each in json.loads(done.out)["certificates"]] == [0.05, 0.05]  # shares
    assert "holds certificates of several columns" in run("watch", "c.json", lab).err
    assert run("certify", lab, "--success", "ok", "-o", "one.json").code == 0
    for command in ("watch", "report"):
        done = run(command, "one.json", lab, *COLUMNS, *(("-o", "r.html") if command == "report" else ()))
        assert (done.code, "--success ok and --cost force go together" in done.err) == (2, True)
    done = run("certify", lab, *COLUMNS, "--by", "robot", "-o", "d.json")
    assert (done.code, "--by goes with one column" in done.err) == (2, True)


def test_each_metric_is_judged_by_its_own_certificate(run, tmp_path):
    """With its range; and failures throughout are no mistake of the words for success."""
    words = ("--success", "end", "--success-values", "bin", "--reward", "score")
    lab = [f"{'floor' if i % 9 == 8 else 'bin'},{40 + i % 7}\n" for i in range(60)]
    (tmp_path / "lab.csv").write_text("end,score\n" + "".join(lab))
    assert run("certify", "lab.csv", *words, "--cost-range", "0", "50", "-o", "c.json").code == 0
    (tmp_path / "new.csv").write_text("end,score\n" + "floor,42\nfloor,43\n" * 10)
    done = run("check", "c.json", "new.csv", *words)
    assert "so every trial counts as a failure" in done.err
    verdicts = {line.split()[-1]: line.split()[0] for line in done.out.splitlines() if line.strip()}
    assert (verdicts["end"], verdicts["score"]) == ("ADVERSE", "WITHIN")


def test_an_option_that_goes_with_no_column_is_refused(run, trials):
    lab = trials("lab.csv", 0.1, 10, 30)
    refused = run("certify", lab, *COLUMNS, "--trials", "nope", "-o", "c.json")
    assert (refused.code, "--trials goes with none of these columns" in refused.err) == (2, True)
