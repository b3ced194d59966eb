"""boundwatch watch, run as the program it is."""

import json
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

import boundwatch as bw
from program import PROGRAM, forked, started

COSTS = np.random.default_rng(8).beta(1.0, 4.0, 60).round(3)


@pytest.fixture
def certificate(tmp_path):
    path = tmp_path / "certificate.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.25, delta=0.01).save(path)
    return path


def run(*arguments, text=None):
    return subprocess.run(
        [forked() / "boundwatch", "watch", *map(str, arguments)],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def as_lines(costs):
    return "".join(f"{cost}\n" for cost in costs)


def test_json_lines_hold_what_the_library_says(certificate):
    done = run(certificate, "-", "--json", text=as_lines(COSTS[:5]))
    assert done.returncode == 0
    test = bw.SequentialTest(bw.Certificate.load(certificate))
    for number, (line, cost) in enumerate(zip(done.stdout.splitlines(), COSTS, strict=False), start=1):
        expected = test.update(cost).to_dict() | {"line": number, "cost": cost, "skipped": 0}
        del expected["shift_lower"], expected["shift_upper"]  # they take long
        assert json.loads(line) == expected


def test_a_backlog_shows_evidence_at_its_alarms_and_at_its_end(certificate, tmp_path):
    log = tmp_path / "log"
    log.write_text(as_lines([0.9] * 150))
    lines = [line for line in run(certificate, log).stdout.splitlines() if line.startswith("episode")]
    alarm = next(number for number, line in enumerate(lines) if line.endswith("ADVERSE"))
    assert [number for number, line in enumerate(lines) if "worse: e" in line] == [alarm, 149]
    log.write_text(as_lines([0.9] * 90))
    assert run(certificate, log).stdout.count("worse: e") == 90


def test_lines_are_chosen_by_where(certificate, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("site,cost\nlab,0.1\nhall,0.9\nlab,0.2\n")
    for options in ([], ["--state", tmp_path / "s"]):
        done = run(certificate, log, "--where", "site=lab", "--json", *options)
        assert [json.loads(line)["cost"] for line in done.stdout.splitlines()] == [0.1, 0.2]


def test_a_folder_leaves_no_state_behind(certificate, tmp_path):
    (tmp_path / "logs").mkdir()
    assert run(certificate, tmp_path / "logs", "--state", tmp_path / "s").returncode == 1
    assert not (tmp_path / "s").exists()


def test_until_alarm_stops_and_the_exit_code_says_adverse(certificate, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"cost": 0.9}\n' * 30)
    done = run(certificate, log, "--until-alarm", "--exit-code")
    assert done.returncode == 3
    assert ", since episode " in done.stdout
    assert done.stdout.count("episode ") < 10
    assert run(certificate, log, "--until-alarm").returncode == 0


def test_the_exit_code_with_a_margin_says_whether_it_is_shown(certificate):
    good = as_lines([0.1] * 60)
    for text, margin, code in ((good, "0.3", 0), (good[:16], "0.3", 3), (as_lines([0.9] * 30), "0.9", 3)):
        assert run(certificate, "-", "--margin", margin, "--exit-code", text=text).returncode == code
    assert run(certificate, "-", "--margin", "0.3", text=good[:16]).returncode == 0


def test_a_margin_that_the_state_brings_keeps_the_gate_closed(certificate, tmp_path):
    log = tmp_path / "log"
    gate = (certificate, log, "--state", tmp_path / "s", "--exit-code")
    for good, options, code in ((4, ("--margin", "0.3"), 3), (8, (), 3), (80, (), 0)):
        log.write_text(as_lines([0.1] * good))
        assert run(*gate, *options).returncode == code


def test_a_malformed_line_ends_the_watch_unless_it_may_be_skipped(certificate):
    text = "0.1\nabc\n\n0.2\n1.4\n"
    strict = run(certificate, "-", text=text)
    assert strict.returncode == 1
    assert strict.stderr.splitlines()[-1].startswith("boundwatch: standard input: line 2")
    assert "--skip-malformed" not in strict.stderr  # it may be a trial
    assert strict.stderr.count("\n") == 2  # what is taken on trust, and the error
    assert "episode     1" in strict.stdout
    done = run(certificate, "-", "--skip-malformed", text=text)
    assert done.returncode == 0
    assert "line 2 skipped" in done.stderr
    assert "line 5 skipped" in done.stderr
    assert "episodes      2," in done.stdout
    assert "2 malformed lines" in done.stdout
    assert "assumes that no episode was left out" in done.stdout


def test_a_redirected_file_counts_nothing_twice(certificate, tmp_path):
    log = tmp_path / "log"
    log.write_text(as_lines(COSTS[:20]))
    for _ in range(2):
        with log.open() as file:
            done = subprocess.run(
                [forked() / "boundwatch", "watch", certificate, "-", "--state", tmp_path / "s"],
                stdin=file,
                capture_output=True,
                text=True,
                check=False,
            )
        assert "episodes      20," in done.stdout


def test_a_growing_table_is_resumed_under_its_header(certificate, tmp_path):
    log, state = tmp_path / "log.csv", tmp_path / "state"
    log.write_text("trial,success\n1,1\n2,0\n3,")
    first = run(certificate, log, "--state", state, "--json", "--id", "trial")
    assert [json.loads(line)["cost"] for line in first.stdout.splitlines()] == [0, 1]
    log.rename(tmp_path / "log.csv.1")
    with (tmp_path / "log.csv.1").open("a") as file:
        file.write("0\n")
    log.write_text("trial,success\n4,1\n5,1\n")
    second = run(certificate, log, "--state", state, "--json", "--id", "trial")
    assert [json.loads(line)["cost"] for line in second.stdout.splitlines()] == [1, 0, 0]


def test_every_robot_is_watched_with_its_own_certificate(tmp_path):
    family = bw.CertificateFamily.from_held_out({"a": [0.1, 0.2] * 30, "b": [0.3] * 60}, by="robot")
    family.save(tmp_path / "family.json")
    log = tmp_path / "log.csv"
    log.write_text("robot,cost\n" + "a,0.1\nb,0.9\n" * 12)
    for options in ([], ["--state", tmp_path / "state"]):
        done = run(tmp_path / "family.json", log, "--by", "robot", "--exit-code", *options)
        assert done.returncode == 3
        assert "\nb: ADVERSE" in done.stdout
        assert "\na: WITHIN" in done.stdout
        assert "any false ADVERSE has a chance of at most 0.04" in done.stdout
    single = tmp_path / "single.json"
    family["a"].save(single)
    refused = run(single, log, "--by", "robot")
    assert refused.returncode == 1
    assert "certify COSTS --by robot" in refused.stderr


def test_an_alarm_runs_a_command(certificate, tmp_path):
    told = tmp_path / "told"
    command = f"{sys.executable} -c \"import sys; open('{told}', 'a').write(sys.stdin.read())\""
    assert run(certificate, "-", "--on-alarm", command, text="0.9\n" * 30).returncode == 0
    (alarm,) = map(json.loads, told.read_text().splitlines())
    assert (alarm["verdict"], alarm["source"]) == ("adverse", "standard input")


def test_an_alarm_that_was_not_delivered_is_tried_again(certificate, tmp_path):
    log, state, told = tmp_path / "log", tmp_path / "state", tmp_path / "told"
    log.write_text("0.9\n" * 30)
    watched = (certificate, log, "--state", state, "--on-alarm")
    broken = run(*watched, "false")
    assert broken.returncode == 1
    assert "warning: the alarm command 'false' ended with code 1" in broken.stderr
    assert "the alarm was not delivered, the alarm command 'false' ended with code 1" in broken.stderr
    assert run(*watched, "false", "--exit-code").returncode == 3
    for _ in range(2):
        assert run(*watched, f"tee {told}").returncode == 0
        assert json.loads(told.read_text())["verdict"] == "adverse"  # once: tee would have emptied it
        told.write_text(told.read_text())
    once = run(certificate, log, "--on-alarm", "false", "--until-alarm")
    assert (once.returncode, "with --state" in once.stderr) == (1, True)


def test_a_command_that_is_not_there_is_refused_before_the_first_episode(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.9\n" * 30)
    done = run(certificate, log, "--state", state, "--on-alarm", "no-such-program --loud")
    assert (done.returncode, done.stdout, state.exists()) == (1, "", False)
    assert "'no-such-program' is not a program that can be run" in done.stderr


def test_what_the_command_prints_is_not_among_the_findings(certificate):
    done = run(certificate, "-", "--json", "--on-alarm", "echo help", text="0.9\n" * 30)
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 30
    assert "help" in done.stderr


def test_a_second_watch_of_the_same_state_is_refused(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.1\n")
    follow = [*PROGRAM, "watch", str(certificate), str(log), "--state", str(state), "--follow"]
    with started(follow, stderr=subprocess.PIPE) as program:
        program.stdout.readline()
        done = run(certificate, log, "--state", state)
        program.send_signal(signal.SIGTERM)
        program.communicate()
    assert program.returncode == 0
    assert done.returncode == 1
    assert str(state) in done.stderr


def test_a_growing_file_is_resumed_without_loss_or_repetition(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text(as_lines(COSTS[:20]) + "0.")
    first = run(certificate, log, "--state", state)
    assert "no newline yet" in first.stderr
    with log.open("a") as file:
        file.write("5\n" + as_lines(COSTS[20:]))
    follow = [*PROGRAM, "watch", str(certificate), str(log), "--state", str(state), "--json", "--follow"]
    with started(follow, stderr=subprocess.PIPE) as program:
        for _ in range(41):
            line = json.loads(program.stdout.readline())
        program.send_signal(signal.SIGINT)
    assert program.returncode == 0
    assert (line["n"], line["line"]) == (61, 61)
    again = run(certificate, log, "--state", state)
    assert "episodes      61," in again.stdout


def test_a_state_is_not_mixed_with_other_settings(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.1\n")
    assert run(certificate, log, "--state", state).returncode == 0
    wrong = (
        ["--alpha-adverse", "0.1"],
        ["--detector", "change-detector"],
        ["--cost-range", "0", "2"],
        ["--id", "n"],
    )
    for options in wrong:
        done = run(certificate, log, "--state", state, *options)
        assert done.returncode == 1
        assert str(state) in done.stderr.splitlines()[-1]
    other = tmp_path / "other.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01).save(other)
    refused = run(other, log, "--state", state).stderr
    assert "belongs to certificate" in refused.splitlines()[-1]


def test_the_change_detector_says_when_and_how_rarely_it_errs(certificate):
    done = run(certificate, "-", "--detector", "change-detector", text=as_lines([0.1] * 30 + [0.9] * 20))
    assert done.returncode == 0
    assert "about episode 31" in done.stdout
    assert "on average after 1000 episodes" in done.stdout


@pytest.mark.parametrize("text", ["", "\n", "1.4\n", '{"a": 1}\n'])
def test_a_watch_that_judged_nothing_does_not_pass(certificate, text):
    for options in ([], ["--json"]):
        done = run(certificate, "-", "--skip-malformed", *options, text=text)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[-1].startswith("boundwatch: ")


@pytest.mark.parametrize(
    ("header", "costs"), [("success", [1, 1]), ("trial,success", None), ("abc", None), ("is_success", [1, 1])]
)
def test_a_header_is_never_skipped(certificate, tmp_path, header, costs):
    """Without the header, failures would be read as costs of 0."""
    text = f"{header}\n0\n0\n"
    (tmp_path / "log").write_text(text)
    for done in (run(certificate, "-", "--json", text=text), run(certificate, tmp_path / "log", "--json")):
        found = [json.loads(line)["cost"] for line in done.stdout.splitlines()]
        assert (done.returncode, found) == ((0, costs) if costs else (1, []))


def test_a_file_that_was_rewritten_is_not_resumed(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.1\n0.2\n")
    run(certificate, log, "--state", state)
    log.write_text("0.9\n0.2\n0.9\n")
    done = run(certificate, log, "--state", state)
    assert done.returncode == 1
    assert f"boundwatch: {log}: " in done.stderr


def test_an_alarm_before_its_interval_is_explained(tmp_path):
    """The exact threshold of binary costs, see docs/anytime.md."""
    path = tmp_path / "binary.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).save(path)
    early = run(path, "-", "--until-alarm", text="0\n" * 4 + "1\n" * 6)
    assert "ADVERSE" in early.stdout
    assert "may fall back after it" in early.stdout
    assert "may precede" not in run(path, "-", text="1\n" * 40).stdout


def test_standard_input_that_is_closed(certificate):
    program = f"{shlex.join(PROGRAM)} watch {certificate} - <&-"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.stderr.endswith(
        "\nboundwatch: standard input: cannot be read; pipe or redirect a file into it\n"
    )
