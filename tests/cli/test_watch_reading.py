"""What `watch` makes of files and lines: their columns, words, tasks and encodings, and own costs."""

import json

import numpy as np
import pytest

import boundwatch as bw


@pytest.fixture
def robots(tmp_path):
    """Return the files of two robots' certificates and of their log."""
    family, log = tmp_path / "family.json", tmp_path / "log.csv"
    bw.CertificateFamily.from_held_out({"a": [0.1, 0.2] * 30, "b": [0.3] * 60}, by="robot").save(family)
    log.write_text("robot,cost\n" + "a,0.1\nb,0.3\n" * 12)
    return family, log


def test_change_detectors_of_several_robots_promise_no_level(run, robots):
    done = run("watch", *robots, "--detector", "change-detector")
    # 12 episodes of each at 0.0005, and the upper half of the certificates' delta of 0.01
    assert "any false ADVERSE so far has a chance of at most 0.017, which includes the" in done.out


def test_malformed_rows_of_a_table_are_skipped(run, robots):
    family, log = robots
    log.write_text("robot,cost\na,0.1\nc,0.1\nb,\nb,0.3\n")
    assert run("watch", family, log).code == 1
    done = run("watch", family, log, "--skip-malformed")
    assert (done.code, done.out.count("  episode     1"), "2 malformed lines" in done.out) == (0, 2, True)
    assert ("line 3 skipped" in done.err, "line 4 skipped" in done.err) == (True, True)


def test_a_table_is_counted_alike_as_a_whole_and_line_by_line(run, tmp_path):
    rng = np.random.default_rng(2)
    sheet = "Trials of May\nrobot,ok,force\n" + "".join(
        f"{'ab'[i % 2]},{'no' if rng.random() < 0.2 else 'yes'},{30 * rng.random():.2f}\n" for i in range(40)
    )
    (tmp_path / "lab.csv").write_text(sheet)
    (tmp_path / "new.csv").write_text("robot,ok,force\na,no,40\nb,no,20\nrobot,ok,force\n" + "a,no,30\n" * 9)
    columns = ("--cost", "force", "--cost-range", "0", "50")
    for by in ((), ("--by", "robot")):
        assert run("certify", "lab.csv", *columns, *by, "-o", "c.json", "--force").code == 0
        for until in ((), ("--until-alarm",)):
            (tmp_path / "state").unlink(missing_ok=True)
            watched = ("watch", "c.json", "new.csv", *columns, "--json", *until)
            whole, lines = run(*watched), run(*watched, "--state", "state")
            assert whole.out == lines.out
            found = [json.loads(line) for line in whole.out.splitlines()]
            assert [one["line"] for one in found[:3]] == [2, 3, 5]
            assert (whole.code, lines.code, len(found) < 11) == (0, 0, bool(until))
            if not until:
                assert "repeat" in whole.err


def test_a_line_is_named_as_people_know_it(run, tmp_path):
    bw.CertificateFamily.from_held_out({"arm-1": [0, 1] * 9, "arm-2": [0, 0, 1] * 9}, by="robot").save(
        "c.json"
    )
    for name, said in {
        "arm-7": "has no certificate, only 'arm-1', 'arm-2'",
        "Arm-2": "has no certificate, but 'arm-2' has",
    }.items():
        (tmp_path / "new.csv").write_text(f"robot,cost\narm-1,0\n{name},1\n")
        for command in ("check", "watch"):
            done = run(command, "c.json", "new.csv")
            assert (done.code, f"'{name}'" in done.err, said in done.err) == (1, True, True)
        done = run("watch", "c.json", "new.csv", "--state", "s")
        assert (done.code, f"'{name}'" in done.err) == (1, True)
        (tmp_path / "s").unlink()
    bw.Certificate.from_held_out([0, 1] * 9, binary=True, measure=bw.Measure("success")).save("one.json")
    (tmp_path / "log.csv").write_text("success\nyes\nmaybe\n")
    done = run("watch", "one.json", "log.csv", "--state", "s")
    assert "boundwatch: log.csv: line 3, column 'success' = 'maybe' is not a known word" in done.err


def test_the_certified_column_is_read_if_none_is_named(run, tmp_path):
    rows = "".join(f"{i},{10 + 7 * i % 40},yes\n" for i in range(1, 31))
    (tmp_path / "lab.csv").write_text("trial,Time_s,success\n" + rows)
    certified = ("certify", "lab.csv", "--cost", "time_s", "--cost-range", "0", "100", "-o", "c.json")
    assert run(*certified).code == 0
    (tmp_path / "new.csv").write_text("trial,time_s,success\n1,90,no\n2,80,yes\n")
    (tmp_path / "new.jsonl").write_text('{"time_s": 90}\n{"time_s": 80}\n')
    for command in (["check"], ["watch"], ["watch", "--state", "s"]):
        done = run(command[0], "c.json", "new.csv", *command[1:])
        assert (done.code, "warning" in done.err) == (0, False)
        assert "0.85" in done.out
    assert "mean 0.8500" in run("watch", "c.json", "new.jsonl").out
    assert "cost = 1 - success" in run("check", "c.json", "new.csv", "--success", "success").out
    assert run("verify", "c.json", "--costs", "lab.csv").code == 0
    (tmp_path / "other.csv").write_text("trial,seconds\n1,90\n")
    assert "it was not said what to read" in run("check", "c.json", "other.csv").err
    assert run("watch", "c.json", "-", stdin=b"0.9\n0.8\n").code == 1  # no pipe in this process


def test_a_stream_is_compared_with_the_certificate(run, tmp_path):
    lab = "".join(f"{cost}\n" for cost in (20, 35, 10, 50, 5, 80, 15, 30, 25, 60))
    (tmp_path / "lab.csv").write_text("score\n" + lab)
    assert run("certify", "lab.csv", "--cost", "score", "--cost-range", "0", "100", "-o", "c.json").code == 0
    (tmp_path / "new.csv").write_text("score\n45\n70\n")
    for option in ((), ("--state", "new.json")):  # read as a whole, and line by line
        done = run("watch", "c.json", "new.csv", "--cost", "score", *option)  # the range is the certificate's
        assert (done.code, "cost 0.45" in done.out, done.err) == (0, True, "")
    for option in ((), ("--state", "other.json")):
        scaled = ("--cost", "score", "--cost-range", "0", "200")
        done = run("watch", "c.json", "new.csv", *scaled, *option)
        assert done.err.count("new.csv: these costs are not measured the way the certificate's were") == 1
    done = run("watch", "c.json", "lab.csv", "--cost", "score")
    assert (done.code, "the costs that the certificate was made from" in done.err) == (1, True)
    done = run("watch", "c.json", "lab.csv", "--cost", "score", "--state", "s.json")
    assert "line 11: these are the costs that the certificate was made from" in done.err
    assert not (tmp_path / "s.json").exists()


def test_a_stream_of_own_costs_leaves_the_others_as_they_were(run, tmp_path):
    rng = np.random.default_rng(0)
    lab = {name: rng.random(40).round(3).tolist() for name in "ab"}
    bw.CertificateFamily.from_held_out(lab, by="robot").save(tmp_path / "c.json")
    log = tmp_path / "log.csv"
    log.write_text("robot,cost\n" + "".join(f"a,{cost}\n" for cost in rng.random(30).round(3)))
    watched = ("watch", "c.json", "log.csv", "--by", "robot", "--state", "s.json")
    assert run(*watched).code == 0
    with log.open("a") as file:
        file.writelines(f"b,{cost}\n" for cost in lab["b"])
    done = run(*watched)
    assert (done.code, "b: these are the costs" in done.err) == (1, True)
    log.write_text(log.read_text() + "a,0.5\n")
    done = run(*watched)  # b's own costs are no evidence, and a's episodes stay
    assert (done.code, "a  episode    31" in done.out, "b  episode" in done.out) == (0, True, False)


def test_a_repeated_id_with_another_cost_is_reported(run, tmp_path):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    log = tmp_path / "log.jsonl"
    for costs in ((1, 0.25), (2, 0.5)), ((2, 0.75), (2, 0.5)):  # the second time after a crash
        with log.open("a") as file:
            file.writelines(f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in costs)
        done = run("watch", "c.json", "log.jsonl", "--id", "n", "--state", "s.json")
    assert done.code == 1
    assert "line 3" in done.err
    assert "0.75" in done.err
    done = run("watch", "c.json", "log.jsonl", "--id", "n", "--state", "s.json", "--skip-malformed")
    assert "line 3" in done.err
    assert "2, mean cost 0.3750" in done.out


def test_a_certificate_of_rewards_turns_no_cost_round(run, tmp_path):
    returns = [40, 45, 30, 48, 44, 41, 47, 39, 46, 43] * 3
    (tmp_path / "lab.csv").write_text("ret\n" + "".join(f"{value}\n" for value in returns))
    certified = run("certify", "lab.csv", "--reward", "ret", "--cost-range", "0", "50", "-o", "c.json")
    assert certified.code == 0
    (tmp_path / "numbers").write_text("45\n" * 20)
    named = run("watch", "c.json", "numbers", "--reward", "1")
    assert (named.code, "cost 0.1 " in named.out, "ADVERSE: evidence" in named.out) == (0, True, False)
    (tmp_path / "costs.jsonl").write_text('{"cost": 0.9}\n' * 20)
    other = run("watch", "c.json", "costs.jsonl")
    assert "not measured the way the certificate's were (now cost as given" in other.err
    assert other.out.count("cost 0.9 ") == 20
    assert "ADVERSE: evidence that the expected cost is higher" in other.out


DOCUMENTS = [
    '{"episodes": [\n{"success": true},\n{"success": false}\n]}\n',
    '[\n{"success": true},\n{"success": false}\n]\n',
    '{\n"success": true\n}\n',
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_json_document_is_never_read_line_by_line(run, tmp_path, document):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    (tmp_path / "log.json").write_text(document)
    (tmp_path / "log.csv").write_text("success\n1\n")
    watch = ("watch", "c.json", "log.json")
    for command in (
        (*watch, "--state", "s"),
        (*watch, "--state", "s", "--skip-malformed"),
        (*watch, "--follow"),
        ("certify", "log.json", "-o", "d.json", "--at-most", "9", "--follow"),
        ("compare", "log.csv", "log.json", "--follow"),
    ):
        done = run(*command)
        assert (done.code, done.out) == (1, "")
        assert "log.json: line 1 " in done.err
        assert "one object per line" in done.err
        assert "--skip-malformed" not in done.err


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be"])
def test_rows_in_another_encoding_are_read_or_refused_but_never_skipped(run, tmp_path, encoding):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    text = "Größe;cost\n" + "Maß;0.5\nmug;0.25\n" * 2
    (tmp_path / "log.csv").write_bytes(text.encode(encoding))
    done = run("watch", "c.json", "log.csv", "--state", "s", "--skip-malformed")
    if encoding == "cp1252":
        assert (done.code, "4, mean cost 0.3750" in done.out) == (0, True)
        assert done.err.count("Windows-1252") == 1
    else:
        assert (done.code, done.out) == (1, "")
        assert "log.csv: " in done.err


@pytest.mark.parametrize("lenient", [(), ("--skip-malformed",)])
def test_of_two_outcomes_the_certified_kind_is_read(run, tmp_path, lenient):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")  # of an expected cost
    (tmp_path / "log.jsonl").write_text('{"cost": 0.5, "success": true}\n' * 2)
    assert "2, mean cost 0.5000" in run("watch", "c.json", "log.jsonl", *lenient).out
    (tmp_path / "log.jsonl").write_text('{"reward": 0.5, "success": true}\n' * 2)
    done = run("watch", "c.json", "log.jsonl", *lenient)
    assert (done.code, done.out) == (1, "")
    assert "--success" in done.err
    assert "--reward" in done.err


def test_failures_in_ones_own_words_are_counted_from_the_first_on(run, tmp_path):
    words = ("--success", "end", "--success-values", "in bin,on table")
    (tmp_path / "lab.csv").write_text("trial,end\n" + "1,in bin\n2,on table\n3,floor\n" * 10)
    assert run("certify", "lab.csv", *words, "-o", "c.json").code == 0
    (tmp_path / "new.csv").write_text("trial,end\n" + "1,floor\n" * 20 + "2,on table\n")
    done = run("watch", "c.json", "new.csv", *words, "--state", "s")
    assert "20 of 21 failed" in done.out
    (tmp_path / "worst.csv").write_text("trial,end\n" + "1,floor\n" * 20)
    worst = run("check", "c.json", "worst.csv", *words)
    assert (worst.code, worst.out.startswith("ADVERSE")) == (0, True)
    assert "so every trial counts as a failure" in worst.err
    refused = run("certify", "worst.csv", *words, "-o", "d.json")
    assert (refused.code, "--success-values" in refused.err, "write no" in refused.err) == (1, True, True)
