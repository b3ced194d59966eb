"""boundwatch certify with a stopping rule."""

import json
import signal
import subprocess
import time

import pytest

import boundwatch as bw
from program import PROGRAM, started


def trials(count: int, every: int) -> str:
    return "".join(f"{trial},{'no' if trial % every == 0 else 'yes'}\n" for trial in range(1, count + 1))


def test_it_stops_at_the_width_and_the_certificate_holds_what_was_printed(run, tmp_path):
    (tmp_path / "trials.csv").write_text("trial,ok\n" + trials(300, 10))
    done = run("certify", "trials.csv", "--success", "ok", "--until-width", "0.3", "-o", "c.json")
    assert done.code == 0
    assert "Stopped: the width is at most 0.3\n" in done.out
    certificate = bw.Certificate.load(tmp_path / "c.json")
    lines = [line for line in done.out.splitlines() if line.startswith("trial")]
    assert (len(lines), certificate.method, certificate.binary) == (certificate.n, "anytime", True)
    assert certificate.upper - certificate.lower <= 0.3
    campaign = bw.Campaign(binary=True).update_many(
        [float(trial % 10 == 0) for trial in range(1, certificate.n)]
    )
    assert campaign.width > 0.3  # one trial fewer would not have done
    assert run("verify", "c.json").code == 0
    own = run("verify", "c.json", "--costs", "trials.csv")
    assert own.code == 0
    assert f"after {certificate.n} of these 300 costs" in own.out
    (tmp_path / "other.csv").write_text("trial,ok\n" + trials(300, 9))
    assert "failed costs_sha256" in run("verify", "c.json", "--costs", "other.csv").err


def test_both_limits_must_be_met_or_the_number(run, tmp_path):
    (tmp_path / "trials.csv").write_text("trial,ok\n" + trials(300, 10))
    rule = ("--until-width", "0.3", "--until-upper", "0.25", "--at-most", "150")
    done = run("certify", "trials.csv", "--success", "ok", *rule, "-o", "c.json", "--json")
    *steps, end = map(json.loads, done.out.splitlines())
    assert end["stopped"] == "the width is at most 0.3 and the upper limit is at most 0.25"
    assert steps[-1]["upper"] <= 0.25 < steps[-2]["upper"]
    done = run("certify", "trials.csv", "--success", "ok", "--at-most", "7", "-o", "c.json")
    assert "Stopped: after 7 trials" in done.out


def test_a_stream_that_ends_leaves_a_certificate_and_says_so(run, tmp_path):
    (tmp_path / "costs.txt").write_text("0.2\n0.4\n")
    done = run("certify", "costs.txt", "--cost", "1", "--until-width", "0.1", "-o", "c.json")
    assert done.code == 0
    assert "the trials ended before the rule was met" in done.out
    assert bw.Certificate.load(tmp_path / "c.json").n == 2


def test_numbers_of_0_and_1_are_recognized_in_a_file_and_declared_in_a_stream(run, tmp_path):
    text = "trial,cost\n1,0\n2,0\n3,1\n4,0\n"
    (tmp_path / "trials.csv").write_text(text)
    binary, bounded = (bw.Campaign(binary=kind).update_many([0, 0, 1, 0]).upper for kind in (True, False))
    for stream, said, upper, note in (
        ("trials.csv", (), binary, "all 4 costs are 0 or 1, so each is read as a trial"),
        ("trials.csv", ("--no-binary",), bounded, ""),
        (
            "trials.csv",
            ("--follow",),
            bounded,
            "all costs are 0 or 1; if they always are, --binary needs fewer",
        ),
        ("trials.csv", ("--follow", "--binary"), binary, ""),
    ):
        done = run("certify", stream, "--at-most", "4", *said, "-o", "c.json")
        assert (note in done.err, bool(done.err)) == (True, bool(note))
        assert ("say so: --no-binary" in done.err) == note.startswith("all 4")
        assert bw.Certificate.load(tmp_path / "c.json").upper == upper
    (tmp_path / "trials.csv").write_text(f"{text}5,0.5\n")
    done = run("certify", "trials.csv", "--at-most", "5", "--follow", "--binary", "-o", "d.json")
    assert (done.code, "line 6" in done.err) == (1, True)


def test_a_growing_file_is_followed(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_text('{"ok": true}\n')
    command = [*PROGRAM, "certify", str(path), "--success", "ok", "--at-most", "3"]
    with started([*command, "--follow", "-o", str(tmp_path / "c.json")]) as running:
        assert running.stdout.readline().startswith("trial     1")
        with path.open("a") as file:
            for _ in range(2):
                file.write('{"ok": false}\n')
                file.flush()
                time.sleep(0.01)
        out, _ = running.communicate()
    assert running.returncode == 0
    assert "after 3 trials" in out
    assert bw.Certificate.load(tmp_path / "c.json").failures == 2


def test_what_is_refused(run, tmp_path):
    (tmp_path / "bad.txt").write_text("0.2\nx\n")
    (tmp_path / "empty.txt").write_text("")
    for arguments, complaint in {
        ("bad.txt", "--cost", "1", "--at-most", "9"): "line 2",
        ("empty.txt", "--cost", "1", "--at-most", "9"): "at least one is needed",
        ("bad.txt", "--cost", "1", "--until-width", "0"): "--until-width = 0 is outside (0, 1)",
        ("bad.txt", "--cost", "1", "--until-width", "3"): "--until-width = 3 is outside (0, 1)",
        ("bad.txt", "--cost", "1", "--at-most", "9", "--by", "robot"): "--by does not go",
        ("bad.txt", "--cost", "1", "--at-most", "9", "--method", "kl"): "--method does not go",
        ("bad.txt", "--cost", "1", "--at-most", "9", "--episode", "e"): "--episode COL",
        ("bad.txt", "--cost", "1", "--follow"): "--follow goes with",
        ("-", "--cost", "1", "--follow", "--at-most", "9"): "--follow is for files",
    }.items():
        done = run("certify", *arguments, "-o", "c.json")
        assert done.code in (1, 2), arguments
        assert complaint in " ".join(done.err.split()), arguments
        assert not (tmp_path / "c.json").exists()
    done = run("certify", "bad.txt", "--cost", "1", "--at-most", "1", "-o", "bad.txt")
    assert "would be replaced" in done.err


def test_a_cost_of_yes_and_no_is_binary_as_without_a_rule(run, tmp_path):
    (tmp_path / "words.csv").write_text("failed\n" + "FALSE\n" * 9 + "TRUE\n")
    (tmp_path / "numbers.csv").write_text("force\n0.2\n0.4\n")
    assert run("certify", "words.csv", "--cost", "failed", "--at-most", "10", "-o", "c.json").code == 0
    assert bw.Certificate.load(tmp_path / "c.json").binary
    assert run("certify", "numbers.csv", "--cost", "force", "--at-most", "2", "-o", "d.json").code == 0
    assert not bw.Certificate.load(tmp_path / "d.json").binary


def test_failures_in_ones_own_words_are_counted(run, tmp_path):
    (tmp_path / "trials.csv").write_text("trial,end\n1,floor\n2,on table\n3,in bin\n4,floor\n")
    words = ("--success", "end", "--success-values", "in bin,on table")
    done = run("certify", "trials.csv", *words, "--at-most", "4", "-o", "c.json")
    assert "words that became failures: 'floor' (2)" in done.err
    assert bw.Certificate.load(tmp_path / "c.json").failures == 2


def in_blocks(rounds: int, *, cups: int | None = None) -> str:
    lines = [f"mug,{'no' if trial % 10 == 0 else 'yes'}\n" for trial in range(rounds)]
    lines += [f"cup,{'no' if trial % 3 else 'yes'}\n" for trial in range(rounds if cups is None else cups)]
    return "task,ok\n" + "".join(lines)


def test_tasks_in_blocks_are_taken_in_rounds(run, tmp_path):
    (tmp_path / "trials.csv").write_text(in_blocks(100, cups=97))
    by_task = ("certify", "trials.csv", "--success", "ok", "--strata", "task", "-o", "c.json")
    done = run(*by_task, "--until-width", "0.3")
    assert "Stopped: the width is at most 0.3\n" in done.out
    assert "of trials, in the mean over 2 tasks (99 % confidence)" in done.out
    certificate = bw.Certificate.load(tmp_path / "c.json")
    assert certificate.method == "rounds"
    assert certificate.design.strata == "task"
    assert [stratum.name for stratum in certificate.strata] == ["mug", "cup"]
    lines = [line for line in done.out.splitlines() if line.startswith("round")]
    assert len(lines) == certificate.strata[0].n == certificate.n / 2
    assert run("verify", "c.json").code == 0
    own = run("verify", "c.json", "--costs", "trials.csv")
    assert (own.code, f"after {certificate.n} of these 197 costs" in own.out) == (0, True)
    (tmp_path / "other.csv").write_text(in_blocks(100).replace("mug,no\nmug,yes", "mug,yes\nmug,no", 1))
    assert "failed costs_sha256" in run("verify", "c.json", "--costs", "other.csv").err
    done = run(*by_task, "--at-most", "1000", "--json")
    assert "these trials complete none and are not used: 3 of mug" in done.err
    *rounds, end = map(json.loads, done.out.splitlines())
    assert (len(rounds), rounds[-1]["rounds"], end["certificate"]["n"]) == (97, 97, 194)


def test_weights_are_kept_and_name_the_tasks(run, tmp_path):
    (tmp_path / "trials.csv").write_text(in_blocks(30))
    by_task = ("certify", "trials.csv", "--success", "ok", "--strata", "task", "-o", "c.json")
    assert run(*by_task, "--at-most", "60", "--weights", "mug=3,cup=1").code == 0
    certificate = bw.Certificate.load(tmp_path / "c.json")
    assert [stratum.weight for stratum in certificate.strata] == [0.75, 0.25]
    assert certificate.design.weights == {"mug": 3, "cup": 1}
    done = run(*by_task, "--at-most", "60", "--weights", "mug=3")
    assert "'cup' is not a task whose mean is meant" in done.err
    done = run(*by_task, "--at-most", "60", "--weights", "mug,cup,bowl")
    assert "has no trial of bowl, so no round is complete" in done.err
    assert "TASK=NUMBER" in run(*by_task, "--at-most", "60", "--weights", "mug=x").err


def test_tasks_that_come_one_by_one_are_counted_or_named(run, tmp_path):
    (tmp_path / "trials.csv").write_text(in_blocks(30))
    by_task = ("--success", "ok", "--strata", "task", "--at-most", "60", "-o", "c.json")
    followed = ("certify", "trials.csv", "--follow", *by_task)
    assert "--tasks N" in run(*followed).err
    for how in (("--tasks", "2"), ("--weights", "mug,cup")):
        done = run(*followed, *how)
        assert (done.code, done.out.count("round ")) == (0, 30)
        assert bw.Certificate.load(tmp_path / "c.json").n == 60
    assert "'cup' is not a task" in run(*followed, "--tasks", "1").err
    assert "--tasks goes with" in run("certify", "trials.csv", *by_task, "--tasks", "2").err
    piped = [*PROGRAM, "certify", "-", *by_task, "--tasks", "3"]
    ended = subprocess.run(piped, input=in_blocks(3), capture_output=True, text=True, check=False)
    assert "only 2 of 3 tasks came" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_campaign_with_its_certificate(tmp_path, number):
    words = ["certify", "-", "--cost", "1", "--at-most", "50", "-o", str(tmp_path / "c.json")]
    with started([*PROGRAM, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.stdin.write("0.2\n0.4\n")
        program.stdin.flush()
        for _ in range(2):
            assert program.stdout.readline().startswith("trial")
        program.send_signal(number)
        assert "Stopped: it was interrupted" in program.stdout.read()
    assert program.returncode == 0
    assert bw.Certificate.load(tmp_path / "c.json").n == 2
