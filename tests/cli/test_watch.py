"""boundwatch watch, run as the program it is."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import boundwatch as bw

PROGRAM = [sys.executable, "-c", "from boundwatch.cli import main; main()"]
COSTS = np.random.default_rng(8).beta(1.0, 4.0, 60).round(3)


@pytest.fixture
def certificate(tmp_path):
    path = tmp_path / "certificate.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.25, delta=0.01).save(path)
    return path


def run(*arguments, text=None):
    return subprocess.run(
        [*PROGRAM, "watch", *map(str, arguments)],
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


def test_a_malformed_line_is_named_and_not_counted(certificate):
    text = "0.1\nabc\n\n0.2\n1.4\n"
    done = run(certificate, "-", text=text)
    assert done.returncode == 0
    assert "line 2 skipped" in done.stderr
    assert "line 5 skipped" in done.stderr
    assert "episodes      2," in done.stdout
    assert "2 malformed lines" in done.stdout
    assert "a number is read as a cost (highest is worst)" in done.stdout
    assert "assumes that no episode was left out" in done.stdout
    strict = run(certificate, "-", "--strict", text=text)
    assert strict.returncode == 1
    assert strict.stderr.startswith("boundwatch: line 2:")
    assert strict.stderr.count("\n") == 1


def test_killed_in_mid_stream_it_resumes_where_it_was(certificate, tmp_path):
    state = tmp_path / "state.json"
    command = [*PROGRAM, "watch", str(certificate), "-", "--state", str(state), "--json"]
    position, printed = 0, 0
    for survive in (7, 23):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, text=True, **pipes) as program:
            program.stdin.write(as_lines(COSTS[position:]))
            program.stdin.flush()
            for _ in range(survive):
                line = json.loads(program.stdout.readline())
            program.send_signal(signal.SIGKILL)
            message = program.stderr.read()
            printed = max(
                [line["n"], *(json.loads(rest)["n"] for rest in program.stdout if rest.endswith("\n"))]
            )
        stored = json.loads(state.read_text())
        # What was printed is in the state; at most one episode was stored and not printed.
        assert printed <= stored["lines"] <= printed + 1
        if position:
            assert f"resuming after episode {position} " in message
        position = stored["lines"]
    last = run(certificate, "-", "--state", state, text=as_lines(COSTS[position:]))
    assert last.returncode == 0
    uninterrupted = bw.SequentialTest(bw.Certificate.load(certificate))
    uninterrupted.update_many(COSTS)
    assert json.loads(state.read_text())["detector"] == uninterrupted.state_dict()


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
    state = tmp_path / "state"
    assert run(certificate, "-", "--state", state, text="0.1\n").returncode == 0
    for options in (["--alpha-adverse", "0.1"], ["--detector", "change-detector"]):
        done = run(certificate, "-", "--state", state, *options, text="0.1\n")
        assert done.returncode == 1
        assert done.stderr.startswith("boundwatch: ")
    other = tmp_path / "other.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.3, delta=0.01).save(other)
    refused = run(other, "-", "--state", state, text="0.1\n").stderr
    assert refused.startswith(f"boundwatch: {state}: the state belongs to certificate")


def test_the_change_detector_says_when_and_how_rarely_it_errs(certificate):
    done = run(certificate, "-", "--detector", "change-detector", text=as_lines([0.1] * 30 + [0.9] * 20))
    assert done.returncode == 0
    assert "about episode 31" in done.stdout
    assert "on average after 1000 episodes" in done.stdout


@pytest.mark.parametrize("options", [["--follow"], ["--interval", "--detector", "change-detector"]])
def test_options_that_do_not_go_together(certificate, options):
    assert run(certificate, "-", *options, text="").returncode == 2


@pytest.mark.parametrize("text", ["", "\n", "1.4\n", '{"a": 1}\n'])
def test_a_watch_that_judged_nothing_does_not_pass(certificate, text):
    for options in ([], ["--json"]):
        done = run(certificate, "-", *options, text=text)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.endswith("no episode was counted, so nothing was judged; send at least one\n")


@pytest.mark.parametrize("header", ["success", "is_success", "trial,success", "abc"])
def test_a_header_is_never_skipped(certificate, tmp_path, header):
    """Without the header, failures would be read as costs of 0."""
    text = f"{header}\n0\n0\n"
    done = run(certificate, "-", text=text)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"line 1 = '{header}' is neither a number nor JSON" in done.stderr
    assert "--format csv" in done.stderr
    (tmp_path / "log").write_text(text)
    file = run(certificate, tmp_path / "log", "--json")
    costs = [json.loads(line)["cost"] for line in file.stdout.splitlines()]
    assert (file.returncode, costs) == ((0, [1, 1]) if header == "success" else (1, []))


def test_a_table_on_standard_input_is_read_as_a_whole(certificate):
    done = run(certificate, "-", "--format", "csv", "--json", text="success\n0\n1\n")
    assert [json.loads(line)["cost"] for line in done.stdout.splitlines()] == [1, 0]


def test_a_header_after_a_restart_is_refused(certificate, tmp_path):
    state = tmp_path / "state"
    assert run(certificate, "-", "--state", state, text="0.1\n").returncode == 0
    before = state.read_bytes()
    done = run(certificate, "-", "--state", state, text="abc\n0\n")
    assert done.returncode == 1
    assert "line 2 = 'abc' is neither" in done.stderr
    assert state.read_bytes() == before


def test_a_file_that_was_rewritten_is_not_resumed(certificate, tmp_path):
    log, state = tmp_path / "log", tmp_path / "state"
    log.write_text("0.1\n0.2\n")
    run(certificate, log, "--state", state)
    log.write_text("0.9\n0.2\n0.9\n")
    done = run(certificate, log, "--state", state)
    assert done.returncode == 1
    assert done.stderr.startswith(f"boundwatch: {state}: the 2 lines that it counted are no longer")


def test_an_alarm_before_its_interval_is_explained(tmp_path):
    """The exact threshold of binary costs, see docs/anytime.md."""
    path = tmp_path / "binary.json"
    bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True).save(path)
    early = run(path, "-", "--until-alarm", text="0\n" * 4 + "1\n" * 6)
    assert "ADVERSE" in early.stdout
    assert "the alarm may precede the interval" in early.stdout
    assert "may precede" not in run(path, "-", text="1\n" * 40).stdout


def test_standard_input_that_is_closed(certificate):
    program = f"{sys.executable} -c 'from boundwatch.cli import main; main()' watch {certificate} - <&-"
    done = subprocess.run(program, shell=True, capture_output=True, text=True, check=False)  # noqa: S602
    assert done.stderr == "boundwatch: standard input: cannot be read; pipe or redirect a file into it\n"


def test_a_table_is_read_as_one(certificate, tmp_path):
    """A CSV file with a header is no file of lines: its column is found as everywhere else."""
    for name, text in {"one.csv": "success\n1\n0\n0\n", "two.csv": "trial,success\n1,1\n2,0\n3,0\n"}.items():
        (tmp_path / name).write_text(text)
        result = run(certificate, tmp_path / name, "--json")
        assert [json.loads(line)["mean_cost"] for line in result.stdout.splitlines()][-1] == pytest.approx(
            2 / 3
        )
        assert "skipped" not in result.stderr
