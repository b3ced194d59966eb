"""Several metrics of one file under one error rate."""

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


def test_metrics_of_several_robots(run, trials, tmp_path):
    lab, new = trials("lab.csv", 0.1, 10, 100), trials("new.csv", 0.1, 10, 30)
    assert run("certify", lab, *COLUMNS, "--by", "robot", "-o", "c.json").code == 0
    family = bw.CertificateFamily.load(tmp_path / "c.json")
    assert sorted(family) == ["a/force", "a/ok", "b/force", "b/ok"]
    done = run("check", "c.json", new, *COLUMNS)
    assert done.code == 0
    assert done.out.startswith("WITHIN")


def test_what_is_refused(run, trials):
    lab = trials("lab.csv", 0.1, 10, 30)
    run("certify", lab, *COLUMNS, "-o", "c.json")
    assert "name the same columns" in run("check", "c.json", lab, "--success", "ok").err
    done = run("certify", lab, *COLUMNS, "--method", "kl", "-o", "d.json")
    assert done.code == 2
    assert "do not go with several columns" in " ".join(done.err.split())
