"""boundwatch watch, run as the program it is."""

import gzip
import json
import shlex
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

import boundwatch as bw
from program import PROGRAM, forked

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
    done = run(certificate, "-", "--json", "--interval", text=as_lines(COSTS[:5]))
    assert done.returncode == 0
    test = bw.SequentialTest(bw.Certificate.load(certificate))
    for number, (line, cost) in enumerate(zip(done.stdout.splitlines(), COSTS, strict=False), start=1):
        expected = test.update(cost).to_dict() | {"line": number, "cost": cost, "skipped": 0}
        assert json.loads(line) == expected


def test_until_alarm_stops_and_the_exit_code_says_adverse(certificate, tmp_path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"cost": 0.9}\n' * 30)
    done = run(certificate, log, "--until-alarm", "--exit-code")
    assert done.returncode == 3
    assert "first alarm at episode" in done.stdout
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
    assert strict.stderr.splitlines()[-1].startswith("boundwatch: standard input: line 2 = 'abc'")
    assert strict.stderr.endswith("; correct it, or pass --skip-malformed\n")
    assert strict.stderr.count("\n") == 2  # what is taken on trust, and the error
    assert "episode     1" in strict.stdout
    done = run(certificate, "-", "--skip-malformed", text=text)
    assert done.returncode == 0
    assert "line 2 skipped" in done.stderr
    assert "line 5 skipped" in done.stderr
    assert "episodes      2," in done.stdout
    assert "2 malformed lines" in done.stdout
    assert "a number is read as a cost (highest is worst)" in done.stdout
    assert "assumes that no episode was left out" in done.stdout


def numbered(costs):
    return "".join(f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in enumerate(costs, start=1))


def state_of(path):
    """Return the detector's state that a state file holds."""
    return json.loads(path.read_text())["content"]["detectors"][""]


def uninterrupted(certificate, costs=COSTS):
    test = bw.SequentialTest(bw.Certificate.load(certificate))
    test.update_many(costs)
    return test.state_dict()


@pytest.mark.parametrize("way", ["id", "spool"])
def test_killed_in_mid_stream_it_counts_every_episode_once(certificate, tmp_path, way):
    """With ids the sender repeats what was not printed; with a spool what it sent went nowhere else."""
    state, spool = tmp_path / "state.json", tmp_path / "spool"
    options = ["--id", "n"] if way == "id" else ["--spool", str(spool)]
    command = [*PROGRAM, "watch", str(certificate), "-", "--state", str(state), "--json", *options]
    lines = numbered(COSTS).splitlines(keepends=True)
    sent = printed = 0
    for stop in (11, 30):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as program:
            program.stdin.write("".join(lines[printed if way == "id" else sent : stop]))
            program.stdin.flush()
            sent = stop
            printed = json.loads(program.stdout.readline())["n"]
            if way == "spool":  # what is still in a pipe without a reader is the sender's loss
                while json.loads(program.stdout.readline())["n"] < stop:
                    pass
            program.send_signal(signal.SIGKILL)
    rest = "".join(lines[printed if way == "id" else sent :])
    last = run(certificate, "-", "--state", state, *options, text=rest)
    assert last.returncode == 0
    assert "resuming after episode" in last.stderr
    assert state_of(state) == uninterrupted(certificate)
    if way == "spool":
        assert spool.read_text() == numbered(COSTS)


def test_a_pipe_with_a_state_needs_a_way_to_be_resumed(certificate, tmp_path):
    done = run(certificate, "-", "--state", tmp_path / "s", text="0.1\n")
    assert done.returncode == 1
    assert "number the episodes (--id FIELD), or keep the lines (--spool FILE)" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["certificate.json"]


def test_a_redirected_file_or_a_repeated_stream_counts_nothing_twice(certificate, tmp_path):
    log = tmp_path / "log"
    log.write_text(as_lines(COSTS[:20]))
    for options in ([], ["--id", "line"]):
        for _ in range(2):
            with log.open() as file:
                state = tmp_path / f"s{options}"
                done = subprocess.run(
                    [forked() / "boundwatch", "watch", certificate, "-", "--state", state, *options],
                    stdin=file,
                    capture_output=True,
                    text=True,
                    check=False,
                )
            assert "episodes      20," in done.stdout
    for text in (as_lines(COSTS[:20]), as_lines(COSTS[:30])):
        done = run(certificate, "-", "--state", tmp_path / "p", "--id", "line", text=text)
    assert "episodes      30," in done.stdout
    other = run(certificate, "-", "--state", tmp_path / "p", "--id", "line", text=as_lines(COSTS[5:40]))
    assert other.returncode == 1
    assert "its first 30 lines are not those that were counted" in other.stderr


def test_the_line_of_a_sender_that_died_is_not_joined_to_another(certificate, tmp_path):
    """Half of 0.95 is not 0.9, and its other half is not 5."""
    options = ["--state", tmp_path / "s", "--spool", tmp_path / "spool"]
    first = run(certificate, "-", *options, text="0.1\n0.9")
    assert "line 2 has no newline yet" in first.stderr
    done = run(certificate, "-", *options, text="0.25\n")
    assert done.returncode == 1
    assert "line 2 was cut off: its sender ended in the middle of it; replace '0.9 <cut off>'" in done.stderr
    assert (tmp_path / "spool").read_text() == "0.1\n0.9 <cut off>\n0.25\n"  # the new line is not lost
    shutil.copy(tmp_path / "s", tmp_path / "s2")
    skipped = run(certificate, "-", *options, "--skip-malformed", "--json", text="0.5\n")
    assert [json.loads(line)["cost"] for line in skipped.stdout.splitlines()] == [0.25, 0.5]
    shutil.move(tmp_path / "s2", tmp_path / "s")
    (tmp_path / "spool").write_text("0.1\n0.95\n0.25\n")  # as somebody who saw the trial corrects it
    corrected = run(certificate, "-", *options, "--json", text="0.5\n")
    assert [json.loads(line)["cost"] for line in corrected.stdout.splitlines()] == [0.95, 0.25, 0.5]


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
    assert "warning: on_alarm = 'false' ended with code 1" in broken.stderr
    assert "the alarm was not delivered, on_alarm = 'false' ended with code 1" in broken.stderr
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
    with subprocess.Popen(follow, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.stdout.readline()
        done = run(certificate, log, "--state", state)
        program.send_signal(signal.SIGTERM)
        program.communicate()
    assert program.returncode == 0
    assert done.returncode == 1
    assert f"is in use by process {program.pid}" in done.stderr


def test_a_growing_file_is_resumed_without_loss_or_repetition(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text(as_lines(COSTS[:20]) + "0.")
    first = run(certificate, log, "--state", state)
    assert "no newline yet" in first.stderr
    with log.open("a") as file:
        file.write("5\n" + as_lines(COSTS[20:]))
    follow = [*PROGRAM, "watch", str(certificate), str(log), "--state", str(state), "--json", "--follow"]
    with subprocess.Popen(follow, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
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
        ["--id", "line"],
    )
    for options in wrong:
        done = run(certificate, log, "--state", state, *options)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"boundwatch: {state}: ")
    other = tmp_path / "other.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01).save(other)
    refused = run(other, log, "--state", state).stderr
    assert refused.splitlines()[-1].startswith(f"boundwatch: {state}: the state belongs to certificate")


def test_the_change_detector_says_when_and_how_rarely_it_errs(certificate):
    done = run(certificate, "-", "--detector", "change-detector", text=as_lines([0.1] * 30 + [0.9] * 20))
    assert done.returncode == 0
    assert "about episode 31" in done.stdout
    assert "on average after 1000 episodes" in done.stdout


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
    whole = log.with_suffix(".csv.gz")
    whole.write_bytes(gzip.compress(log.read_bytes()))
    refused = run("watch", family, whole, "--skip-malformed")
    said = " ".join(refused.err.replace("\u2502", " ").split())
    assert refused.code == 2
    assert "--skip-malformed are for one number, JSON object or CSV row per line; leave them out" in said


@pytest.mark.parametrize("options", [["--follow"], ["--interval", "--detector", "change-detector"]])
def test_options_that_do_not_go_together(certificate, options):
    assert run(certificate, "-", *options, text="").returncode == 2


@pytest.mark.parametrize("text", ["", "\n", "1.4\n", '{"a": 1}\n'])
def test_a_watch_that_judged_nothing_does_not_pass(certificate, text):
    for options in ([], ["--json"]):
        done = run(certificate, "-", "--skip-malformed", *options, text=text)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith("no episode was counted, so nothing was judged; send at least one\n")


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


def test_a_table_on_standard_input_is_read_as_a_whole(certificate):
    done = run(certificate, "-", "--format", "csv", "--json", text="success\n0\n1\n")
    assert [json.loads(line)["cost"] for line in done.stdout.splitlines()] == [1, 0]


def test_a_file_that_was_rewritten_is_not_resumed(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.1\n0.2\n")
    run(certificate, log, "--state", state)
    log.write_text("0.9\n0.2\n0.9\n")
    done = run(certificate, log, "--state", state)
    assert done.returncode == 1
    assert f"boundwatch: {log}: the 2 lines that were counted are no longer" in done.stderr


def test_an_alarm_before_its_interval_is_explained(tmp_path):
    """The exact threshold of binary costs, see docs/anytime.md."""
    path = tmp_path / "binary.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).save(path)
    early = run(path, "-", "--until-alarm", text="0\n" * 4 + "1\n" * 6)
    assert "ADVERSE" in early.stdout
    assert "the alarm may precede the interval" in early.stdout
    assert "may precede" not in run(path, "-", text="1\n" * 40).stdout


def test_standard_input_that_is_closed(certificate):
    program = f"{shlex.join(PROGRAM)} watch {certificate} - <&-"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.stderr.endswith(
        "\nboundwatch: standard input: cannot be read; pipe or redirect a file into it\n"
    )


def test_a_table_is_read_as_one(certificate, tmp_path):
    """A CSV file with a header is no file of lines: its column is found as everywhere else."""
    for name, text in {"one.csv": "success\n1\n0\n0\n", "two.csv": "trial,success\n1,1\n2,0\n3,0\n"}.items():
        (tmp_path / name).write_text(text)
        result = run(certificate, tmp_path / name, "--json")
        assert [json.loads(line)["mean_cost"] for line in result.stdout.splitlines()][-1] == pytest.approx(
            2 / 3
        )
        assert "skipped" not in result.stderr


def test_a_table_with_a_state_is_described_by_its_column(run, tmp_path):
    bw.Certificate.from_held_out([0] * 18 + [1] * 2, binary=True).save(tmp_path / "c.json")
    (tmp_path / "new.csv").write_text("trial,grasped\n1,yes\n2,no\n")
    done = run("watch", "c.json", "new.csv", "--success", "grasped", "--state", "state.json")
    assert done.code == 0
    assert "costs         new.csv, column grasped, cost = 1 - success" in done.out


def test_a_table_is_counted_alike_as_a_whole_and_line_by_line(run, tmp_path):
    rng = np.random.default_rng(2)
    sheet = "Trials of May\nrobot,ok,force\n" + "".join(
        f"{'ab'[i % 2]},{'no' if rng.random() < 0.2 else 'yes'},{30 * rng.random():.2f}\n" for i in range(40)
    )
    (tmp_path / "lab.csv").write_text(sheet)
    (tmp_path / "new.csv").write_text("robot,ok,force\na,no,40\nb,no,20\nrobot,ok,force\n" + "a,no,30\n" * 9)
    columns = ("--success", "ok", "--cost", "force", "--cost-range", "0", "50")
    for by in ((), ("--by", "robot")):
        assert run("certify", "lab.csv", *columns, *by, "-o", "c.json", "--force").code == 0
        for until in ((), ("--until-alarm",)):
            (tmp_path / "state").unlink(missing_ok=True)
            watched = ("watch", "c.json", "new.csv", *columns, "--json", *until)
            whole, lines = run(*watched), run(*watched, "--state", "state")
            assert whole.out == lines.out
            found = [json.loads(line) for line in whole.out.splitlines()]
            assert [one["line"] for one in found[:6]] == [2, 2, 3, 3, 5, 5]
            assert (whole.code, lines.code, len(found) < 22) == (0, 0, bool(until))
            noted = "note: new.csv: line 4 repeats the header and was skipped"
            assert (noted in whole.err, noted in lines.err) == (True, True)


def test_a_line_is_named_as_people_know_it(run, tmp_path):
    bw.CertificateFamily.from_held_out({"arm-1": [0, 1] * 9, "arm-2": [0, 0, 1] * 9}, by="robot").save(
        "c.json"
    )
    for name, said in {
        "arm-7": "robot 'arm-7' has no certificate, only 'arm-1', 'arm-2'; certify it, or leave it out",
        "Arm-2": "robot 'Arm-2' has no certificate, but 'arm-2' has; if that is meant, write the name",
    }.items():
        (tmp_path / "new.csv").write_text(f"robot,cost\narm-1,0\n{name},1\n")
        for command in ("check", "watch"):
            done = run(command, "c.json", "new.csv")
            assert (done.code, done.err.startswith(f"boundwatch: new.csv: line 3: {said}")) == (1, True)
        done = run("watch", "c.json", "new.csv", "--state", "s")
        assert f"boundwatch: new.csv: line 3 is of '{name}', which has no certificate, " in done.err
        (tmp_path / "s").unlink()
    bw.Certificate.from_held_out([0, 1] * 9, binary=True, measured="cost = 1 - success").save("one.json")
    (tmp_path / "log.csv").write_text("success\nyes\nmaybe\n")
    done = run("watch", "one.json", "log.csv", "--state", "s")
    assert "boundwatch: log.csv: line 3, column 'success' = 'maybe' is not a word for" in done.err
    (tmp_path / "log.jsonl").write_text('{"success": true}\n')
    lines = run("watch", "one.json", "log.jsonl", "--state", "lines")
    assert "lines: an object by the name of its column" in lines.out


def test_the_certified_column_is_read_if_none_is_named(run, tmp_path):
    rows = "".join(f"{i},{10 + 7 * i % 40},yes\n" for i in range(1, 31))
    (tmp_path / "lab.csv").write_text("trial,Time_s,success\n" + rows)
    certified = ("certify", "lab.csv", "--cost", "time_s", "--cost-range", "0", "100", "-o", "c.json")
    assert run(*certified).code == 0
    (tmp_path / "new.csv").write_text("trial,time_s,success\n1,90,no\n2,80,yes\n")
    (tmp_path / "new.jsonl").write_text('{"time_s": 90}\n{"time_s": 80}\n')
    note = "column 'time_s' is read as a cost, as certified; name another with --success, --cost or --reward"
    for command in (["check"], ["watch"], ["watch", "--state", "s"]):
        done = run(command[0], "c.json", "new.csv", *command[1:])
        assert (done.code, done.err.count(note), "warning" in done.err) == (0, 1, False)
        assert "column time_s, rescaled to a cost from the range 0 to 100" in done.out
    assert "mean 0.8500" in run("watch", "c.json", "new.jsonl").out
    assert "cost = 1 - success" in run("check", "c.json", "new.csv", "--success", "success").out
    assert run("verify", "c.json", "--costs", "lab.csv").code == 0
    (tmp_path / "other.csv").write_text("trial,seconds\n1,90\n")
    assert (
        "no column is called cost, success, is_success or reward" in run("check", "c.json", "other.csv").err
    )
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


def test_perfect_trials_are_not_taken_for_the_certificates_own(run, tmp_path):
    (tmp_path / "lab.csv").write_text("success\n" + "yes\n" * 20)
    run("certify", "lab.csv", "-o", "c.json")
    assert run("watch", "c.json", "lab.csv").code == 0
    done = run("check", "c.json", "lab.csv")
    assert (done.code, "may be chance" in done.err) == (0, True)


def test_a_repeated_id_with_another_cost_is_reported(run, tmp_path):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    log = tmp_path / "log.jsonl"
    for costs in ((1, 0.25), (2, 0.5)), ((2, 0.75), (2, 0.5)):  # the second time after a crash
        with log.open("a") as file:
            file.writelines(f'{{"n": {n}, "cost": {cost}}}\n' for n, cost in costs)
        done = run("watch", "c.json", "log.jsonl", "--id", "n", "--state", "s.json")
    assert done.code == 1
    assert "line 3 has id 2 and cost 0.75, but this id was counted with cost 0.5; an id names" in done.err
    done = run("watch", "c.json", "log.jsonl", "--id", "n", "--state", "s.json", "--skip-malformed")
    assert done.err.count("line 3 skipped, not counted: has id 2 and cost 0.75") == 1
    assert "1 lines with an id that was counted before, not counted again" in done.out
    assert "2, mean cost 0.3750" in done.out


def test_a_certificate_of_rewards_turns_no_cost_round(run, tmp_path):
    returns = [40, 45, 30, 48, 44, 41, 47, 39, 46, 43] * 3
    (tmp_path / "lab.csv").write_text("ret\n" + as_lines(returns))
    certified = run("certify", "lab.csv", "--reward", "ret", "--cost-range", "0", "50", "-o", "c.json")
    assert certified.code == 0
    (tmp_path / "numbers").write_text("45\n" * 20)
    refused = run("watch", "c.json", "numbers")
    assert (refused.code, "no column has a name; say what to read" in refused.err) == (1, True)
    named = run("watch", "c.json", "numbers", "--reward", "1")
    assert (named.code, "cost 0.1 " in named.out, "ADVERSE: evidence" in named.out) == (0, True, False)
    (tmp_path / "costs.jsonl").write_text('{"cost": 0.9}\n' * 20)
    other = run("watch", "c.json", "costs.jsonl")
    assert "not measured the way the certificate's were (now cost as given;" in other.err
    assert other.out.count("cost 0.9 ") == 20
    assert "ADVERSE: evidence that the expected cost is higher" in other.out


@pytest.mark.parametrize("lines", [[], ["--state", "s"], ["--state", "s", "--skip-malformed"]])
def test_a_json_document_is_read_as_a_whole_or_not_at_all(run, tmp_path, lines):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    (tmp_path / "log.json").write_text('{"episodes": [\n{"success": true},\n{"success": false}\n]}\n')
    done = run("watch", "c.json", "log.json", *lines)
    if lines:
        assert (done.code, done.out, (tmp_path / "s").exists()) == (1, "", False)
        assert "line 1: '{\"episodes\": [' begins a JSON document, which is read as a whole" in done.err
        assert "or pass --skip-malformed" not in done.err
    else:
        assert (done.code, "2, mean cost 0.5000" in done.out) == (0, True)


@pytest.mark.parametrize("content", ['[{"cost": 0}, {"cost": 1}]', '{"cost": [0, 1]}'])
def test_a_document_without_newline_is_refused_not_waited_for(run, tmp_path, content):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    (tmp_path / "log.json").write_text(content)
    whole = run("watch", "c.json", "log.json")
    assert (whole.code, "2, mean cost 0.5000" in whole.out) == (0, True)
    for command in (
        ("watch", "c.json", "log.json", "--follow"),
        ("compare", "log.json", "log.json", "--follow"),
        ("certify", "log.json", "--until-width", "0.1", "--follow", "-o", "d.json"),
    ):
        done = run(*command)
        assert (done.code, done.out) == (1, "")
        assert "log.json: line 1: " in done.err
        assert "or put one object on each line" in done.err


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "utf-16-be"])
def test_rows_in_another_encoding_are_read_or_refused_but_never_skipped(run, tmp_path, encoding):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    text = "Größe;cost\n" + "Maß;0.5\nmug;0.25\n" * 2
    (tmp_path / "log.csv").write_bytes(text.encode(encoding))
    done = run("watch", "c.json", "log.csv", "--state", "s", "--skip-malformed")
    if encoding == "cp1252":
        assert (done.code, "4, mean cost 0.3750" in done.out) == (0, True)
        assert done.err.count("log.csv: line 1 is not UTF-8, read as Windows-1252") == 1
        assert done.err.count("Windows-1252") == 1
    else:
        assert (done.code, done.out, (tmp_path / "s").exists()) == (1, "", False)
        assert "log.csv: line 1: this is UTF-16, and lines are read as UTF-8; save it as UTF-8" in done.err


@pytest.mark.parametrize("lenient", [(), ("--skip-malformed",)])
def test_objects_with_two_outcomes_need_a_flag(run, tmp_path, lenient):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    (tmp_path / "log.jsonl").write_text('{"cost": 0.5, "success": true}\n' * 2)
    done = run("watch", "c.json", "log.jsonl", *lenient)
    assert (done.code, done.out) == (1, "")
    where = "line 1: " if lenient else ""
    assert f"log.jsonl: {where}columns cost, success could all be meant; say which one to read:" in done.err
    assert "malformed" not in done.err
    assert "2, mean cost 0.5000" in run("watch", "c.json", "log.jsonl", "--cost", "cost", *lenient).out


def test_failures_in_ones_own_words_are_counted_from_the_first_on(run, tmp_path):
    words = ("--success", "end", "--success-values", "in bin,on table")
    (tmp_path / "lab.csv").write_text("trial,end\n" + "1,in bin\n2,on table\n3,floor\n" * 10)
    assert run("certify", "lab.csv", *words, "-o", "c.json").code == 0
    (tmp_path / "new.csv").write_text("trial,end\n" + "1,floor\n" * 20 + "2,on table\n")
    done = run("watch", "c.json", "new.csv", *words, "--state", "s")
    assert done.err.count("line 2 holds 'floor', counted as a failure") == done.err.count("counted as") == 1
    assert "20 of 21 failed" in done.out
    (tmp_path / "worst.csv").write_text("trial,end\n" + "1,floor\n" * 20)
    worst = run("check", "c.json", "worst.csv", *words)
    assert (worst.code, worst.out.startswith("ADVERSE")) == (0, True)
    assert "has none of the words that mean success (in bin, on table), so every trial counts" in worst.err
    refused = run("certify", "worst.csv", *words, "-o", "d.json")
    assert (refused.code, "if every trial failed, write no in that column" in refused.err) == (1, True)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_file_is_read_as_a_whole_whatever_its_format(run, tmp_path, suffix):
    """Line by line, an alarm would come before the tasks are known to be in blocks."""
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")

    def write(names, rows):
        lines = [",".join(names), *(",".join(map(str, row)) for row in rows)]
        if suffix == "jsonl":
            lines = [json.dumps(dict(zip(names, row, strict=True))) for row in rows]
        (tmp_path / f"log.{suffix}").write_text("\n".join(lines) + "\n")

    write(("task", "cost"), [("mug", 0.9)] * 50 + [("bowl", 0.1)] * 50)
    done = run("watch", "c.json", f"log.{suffix}")
    assert (done.code, done.out) == (1, "")
    assert f"log.{suffix}: lists one task after the other, so a hard one would alarm" in done.err
    write(("episode", "cost"), [(step // 5, 0.1) for step in range(50)])
    done = run("watch", "c.json", f"log.{suffix}")
    assert f"log.{suffix}: 50 rows have only 10 different values of episode; if rows are steps" in done.err


def test_what_lines_show_of_tasks_and_steps_is_said(run, tmp_path):
    run("certify", "--bounds", "0.1", "0.2", "--delta", "0.01", "-o", "c.json")
    lines = [f'{{"episode": 1, "task": "{task}", "cost": 0.2}}\n' for task in ("mug", "bowl")]
    (tmp_path / "log.jsonl").write_text(lines[0] * 50 + lines[1] * 50)
    certify = ("certify", "log.jsonl", "-o", "d.json", "--at-most")
    for command in (("watch", "c.json", "log.jsonl", "--state", "s"), (*certify, "90")):
        done = run(*command)
        assert done.code == 1
        assert "log.jsonl: line 53: lists one task after the other, so a hard one" in done.err
        assert done.err.count("line 2 has the same episode as the line above it; if lines are steps") == 1
        assert done.err.count("line 51 is of task 'bowl', lines above it of 'mug'") == 1
    assert not (tmp_path / "d.json").exists()
    done = run(*certify, "20")
    assert (done.code, "note: log.jsonl: every trial is of 'mug'; the" in done.err) == (0, True)
