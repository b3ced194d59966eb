"""Counts, in every command: k of n is n trials, of which n - k failed; refused where their order matters."""

import json

import pytest

LAB = "object,successes,trials\nmug,9,10\nbowl,8,10\ncup,9,10\n"
NEW = "object,successes,trials\nmug,5,10\nbowl,4,10\ncup,6,10\n"
OF = ("--successes", "successes", "--trials", "trials")


def rows(table):
    """Return the same with a row per trial."""
    lines = [line.split(",") for line in table.splitlines()[1:]]
    cells = [(name, "1" if i < int(k) else "0") for name, k, n in lines for i in range(int(n))]
    return "object,success\n" + "".join(f"{name},{cell}\n" for name, cell in cells)


@pytest.fixture
def tables(tmp_path):
    for name, table in (("lab", LAB), ("new", NEW)):
        (tmp_path / f"{name}.csv").write_text(table)
        (tmp_path / f"{name}_rows.csv").write_text(rows(table))
    return tmp_path


def test_counts_are_the_trials_that_they_count(run, tables):
    done = run("certify", "lab.csv", *OF, "-o", "c.json")
    assert (done.code, "30 episodes, 4 failed" in done.out, done.err) == (0, True, "")
    kept = json.loads((tables / "c.json").read_text())["measure"]
    assert (kept["kind"], kept["column"], kept["trials"]) == ("successes", "successes", "trials")
    assert run("certify", "lab_rows.csv", "-o", "d.json").code == 0
    one, other = (json.loads((tables / name).read_text()) for name in ("c.json", "d.json"))
    assert (one["lower"], one["upper"], one["n"]) == (other["lower"], other["upper"], other["n"])
    # Nothing has to be said again; and counts judge rows as rows judge counts.
    answers = [
        json.loads(run("check", *files, "--json").out)
        for files in (("c.json", "new.csv"), ("c.json", "new_rows.csv", "--success", "success"))
    ]
    answers.append(json.loads(run("check", "d.json", "new.csv", *OF, "--json").out))
    assert {(each["verdict"], each["n"], each["p_adverse"]) for each in answers} == {
        ("adverse", 30, answers[0]["p_adverse"])
    }
    assert [each["warnings"] for each in answers[::2]] == [[], []]
    assert run("verify", "c.json", "--costs", "lab.csv").code == 0
    assert run("report", "c.json", "new.csv", "-o", "r.html").code == 0
    assert "successes in column successes of the trials in column trials" in run("show", "c.json").out


def test_tasks_and_sites_of_counts(run, tables):
    done = run("certify", "lab.csv", *OF, "--strata", "object", "-o", "c.json")
    assert (done.code, "mean over 3 tasks" in done.out) == (0, True)
    assert run("check", "c.json", "new.csv").code == 0
    assert run("certify", "lab.csv", *OF, "--by", "object", "-o", "e.json").code == 0
    assert (
        "10 episodes, 2 failed"
        in run("certify", "lab.csv", *OF, "--where", "object=bowl", "-o", "f.json").out
    )
    (tables / "pivot.csv").write_text("object,success,count\nmug,1,9\nmug,0,1\nbowl,1,8\nbowl,0,2\n")
    done = run("certify", "pivot.csv", "--count", "count", "-o", "g.json")
    assert (done.code, "20 episodes, 3 failed" in done.out, done.err) == (0, True, "")
    asked = run("certify", "pivot.csv", "-o", "h.json")
    assert (asked.code, "--count count (so many trials like this row)" in asked.err) == (1, True)
    again = run("check", "c.json", "lab.csv")  # the same counts are nothing unusual, unlike the same order
    assert (again.code, "possibly by chance" in again.err) == (0, True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch", "c.json", "new.csv"),
        ("watch", "c.json", "new.csv", *OF),
        ("watch", "c.json", "new.csv", *OF, "--state", "s"),
        ("certify", "lab.csv", *OF, "--at-most", "20", "-o", "d.json"),
        ("certify", "lab.csv", *OF, "--at-most", "20", "--follow", "-o", "d.json"),
        ("compare", "lab.csv", "new.csv", *OF),
        ("compare", "lab.csv", "new.csv", *OF, "--follow"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("tables")
def test_counts_are_refused_where_order_matters(run, arguments):
    run("certify", "lab.csv", *OF, "-o", "c.json")
    done = run(*arguments)
    assert (done.code, "counts trials, and their order matters here" in done.err) == (1, True)


def test_counts_of_two_policies(run, tables):
    answer = json.loads(run("compare", "lab.csv", "new.csv", *OF, "--once", "--json").out)
    assert (answer["verdict"], answer["n_a"], answer["n_b"]) == ("a-better", 30, 30)
    (tables / "wide.csv").write_text("object,ACT,DP\nmug,9/10,4/10\nbowl,8/10,5/10\n")
    wide = ("compare", "wide.csv", "--successes", "ACT", "--successes", "DP", "--once", "--json")
    answer = json.loads(run(*wide).out)
    assert (answer["n_a"], answer["n_b"], answer["a"]["name"]) == (20, 20, "ACT")
    (tables / "four.csv").write_text("object,a,na,b,nb\nmug,9,10,4,8\nbowl,8,10,5,8\n")
    four = ["compare", "four.csv", "--successes", "a", "--trials", "na", "--successes", "b", "--trials", "nb"]
    answer = json.loads(run(*four, "--once", "--json").out)
    assert (answer["n_a"], answer["n_b"], answer["mean_cost_b"]) == (20, 16, 7 / 16)
    (tables / "long.csv").write_text("policy,n,success rate\nACT,20,0.85\nDP,20,0.4\n")
    asked = run(
        "compare", "long.csv", "--policy", "policy", "--reward", "success rate", "--cost-range", "0", "1"
    )
    assert (asked.code, "column 'n' = 20 is not used" in asked.err) == (1, True)
    shares = ("--successes", "success rate", "--trials", "n", "--cost-range", "0", "1", "--once", "--json")
    answer = json.loads(run("compare", "long.csv", "--policy", "policy", *shares).out)
    assert (answer["n_a"], answer["mean_cost_b"]) == (20, 0.6)
    paired = run("compare", "lab.csv", "new.csv", *OF, "--once", "--paired")
    assert (paired.code, "nobody knows which are partners" in paired.err) == (1, True)
    tasks = run("compare", "lab.csv", "new.csv", *OF, "--once", "--strata", "object")
    assert (tasks.code, "bowl" in tasks.out) == (0, True)


def test_several_counts_are_several_metrics(run, tables):
    (tables / "stages.csv").write_text("object,picked,placed,n\nmug,9,8,10\nbowl,8,5,10\n")
    both = ("--successes", "picked", "--successes", "placed", "--trials", "n")
    done = run("certify", "stages.csv", *both, "-o", "m.json")
    assert (done.code, "3 of 20" in done.out, "7 of 20" in done.out) == (0, True, True)
    assert run("check", "m.json", "stages.csv", "--allow-own").code == 0
    (tables / "times.csv").write_text("trial,time,success\n1,0:30,yes\n2,timeout,no\n")
    options = ("--cost", "time", "--cost-range", "0", "60", "--timeout-as", "60", "--success", "success")
    assert run("certify", "times.csv", *options, "-o", "n.json").code == 0
    (tables / "cells.csv").write_text("object,result\nmug,5/10\n")  # trials go with the certificate's column
    run("certify", "lab.csv", *OF, "-o", "c.json")
    assert "5 of 10 failed" in run("check", "c.json", "cells.csv", "--successes", "result").out


def test_notes_spell_flags_and_come_once(run, tables):
    lines = [f"{policy},{scene},{trial % 3 // 2}" for trial in range(8) for policy in "AB" for scene in "xy"]
    (tables / "scenes.csv").write_text("policy,scene,success\n" + "\n".join(lines) + "\n")
    done = run("compare", "scenes.csv", "--policy", "policy")
    assert done.err.count("--cluster scene") == 1
    assert "--cluster scene" not in run("compare", "scenes.csv", "--policy", "policy", "--as-is").err
