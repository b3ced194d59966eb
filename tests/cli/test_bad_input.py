"""Bad input, end to end: exit code 1, one line on standard error, nothing written, no traceback."""

from __future__ import annotations

import gzip
import io
import json
import os
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest

from program import PROGRAM

pytestmark = pytest.mark.usefixtures("folder")


def npy(values):
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


COSTS = {
    "cost 1.4 at row 17": (b"cost\n" + b"0.2\n" * 16 + b"1.4\n", []),
    "the same without header": (b"0.2\n" * 16 + b"1.4\n", ["--cost", "1"]),
    "the same in NPY": (npy([0.2] * 16 + [1.4]), ["--cost", "1"]),
    "negative": (b"-0.1\n", ["--cost", "1"]),
    "an aborted trial": (b"trial,success\n1,yes\n2,\n", []),
    "an unknown word": (b"trial,success\n1,yes\n2,kinda\n", []),
    "words that are not there": (b"end\nbin\nfloor\n", ["--success", "end", "--success-values", "tray"]),
    "percent": (b"cost\n3%\n1%\n", []),
    "thousands": (b'cost\n"1,234"\n', ["--cost-range", "0", "5"]),
    "NaN": (b"cost\n0.1\nnan\n", []),
    "empty file": (b"", []),
    "header only": (b"cost\n", []),
    "missing column": (b"a,b\n1,2\n", ["--cost", "c"]),
    "missing task": (b"a,cost\n1,0\n", ["--by", "task"]),
    "missing stratum": (b"a,cost\n1,0\n", ["--strata", "task"]),
    "missing cluster": (b"a,cost\n1,0\n", ["--cluster", "scene"]),
    "missing episode": (b"a,cost\n1,0\n", ["--episode", "run", "--reduce", "sum"]),
    "missing condition": (b"a,cost\n1,0\n", ["--where", "site=lab"]),
    "condition of no row": (b"site,cost\nlab,0\n", ["--where", "site=home"]),
    "rule alone": (b"a,cost\n1,0\n", ["--reduce", "sum"]),
    "steps without a rule": (b"run,cost\n1,0\n", ["--episode", "run"]),
    "no known column": (b"a,b\n1,2\n", []),
    "two known columns": (b"cost,success\n1,0\n", []),
    "a column twice": (b"cost,cost\n1,0\n", []),
    "text in a number column": (b"cost\n0.1\nhigh\n", []),
    "a total": (b"trial,cost\n1,0.1\n2,0.1\n3,0.2\nmean,0.2\n", []),
    "empty cell": (b"a,cost\n1,\n", []),
    "ragged row": (b"a,cost\n1,0.1\n2\n", []),
    "long row": (b"a,cost\n1,0.1\n2,0.2,well, almost\n", []),
    "reward without range": (b"reward\n-3\n", []),
    "range the wrong way": (b"cost\n3\n", ["--cost-range", "4", "0"]),
    "cost outside the range": (b"cost\n9\n", ["--cost-range", "0", "4"]),
    "range for successes": (b"success\n1\n", ["--cost-range", "0", "1"]),
    "words for costs": (b"cost\n1\n", ["--cost", "cost", "--success-values", "ok"]),
    "fractional success": (b"success\n0.5\n", []),
    "sheet of a text": (b"cost\n1\n", ["--sheet", "2"]),
    "truncated gzip": (gzip.compress(b"cost\n0.1\n")[:-4], []),
    "not text": (b"cost\n0.1\n\x81", []),
    "pickled objects": (npy(np.array([{}])), []),
    "truncated Parquet": (b"PAR1\x00", []),
}
SENTENCES = Path(__file__).with_name("sentences.txt")
"""What is refused, and how; ``WRITE_SENTENCES=yes`` writes it anew."""


def assert_one_line(result, fault=""):
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("boundwatch: ")
    assert result.err.count("\n") == 1
    assert fault in result.err
    assert ";" in result.err, "no remedy"


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_bad_costs_and_the_sentences_of_refusals(run, folder):
    lines = []
    for case, (data, options) in COSTS.items():
        (folder / "bad").write_bytes(data)
        before = snapshot(folder)
        refused = run("certify", "bad", "-o", "certificate.json", *options)
        assert_one_line(refused)
        assert snapshot(folder) == before
        lines.append(f"{case}\n    {refused.err}")
    lines += [f"{line[:70]}\n    {run(*line.split()).err}" for line in SETTINGS]
    if os.environ.get("WRITE_SENTENCES") == "yes":
        SENTENCES.write_text("".join(lines), encoding="utf-8")
    assert "".join(lines) == SENTENCES.read_text(encoding="utf-8")
    refusals = [line for line in lines if "is a folder" not in line]
    assert not any("cost_range=" in line or "success_values=" in line for line in refusals)


@pytest.mark.parametrize(
    "arguments",
    [
        ["certify", "bad", "-o", "new.json"],
        ["check", "certificate.json", "bad", "--plot", "figure.png", "--exit-code"],
        ["verify", "certificate.json", "--costs", "bad"],
        ["report", "certificate.json", "bad", "-o", "report.html"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_every_command_refuses_bad_costs(run, folder, arguments):
    """One case each: all of them read costs by the same function."""
    (folder / "bad").write_bytes(COSTS["cost 1.4 at row 17"][0])
    before = snapshot(folder)
    assert_one_line(run(*arguments), "line 18, column 'cost' = 1.4")
    assert snapshot(folder) == before


SETTINGS = [
    *(f"certify costs.csv -o new.json --delta {delta}" for delta in (0, 1, "nan")),
    "certify costs.csv -o new.json --delta-upper 0.1",
    "certify costs.csv -o new.json --method exact",
    "certify costs.csv -o new.json --binary",
    "certify costs.csv -o new.json --policy-file missing.pt",
    "certify missing.csv -o new.json",
    "certify . -o new.json",
    *(f"certify costs.csv -o {output}" for output in (".", "-", "missing/new.json")),
    "check certificate.json costs.csv --alpha-adverse 1",
    "check certificate.json costs.csv --alpha-benign 0",
    "check certificate.json costs.csv --tail exact",
    "check certificate.json same.csv --plot figure.txt",
    "check certificate.json same.csv --plot missing/figure.png",
    "check binary.json costs.csv",
    "check certificate.json .",
    "check . costs.csv",
    "check costs.csv costs.csv",
    "show .",
    "show missing.json",
    "verify missing.json",
]
TOO_LONG = "x" * 300


WATCH = (f"watch certificate.json {TOO_LONG}", f"watch certificate.json costs.jsonl --state {TOO_LONG}")


@pytest.mark.parametrize("line", [*SETTINGS, f"certify {TOO_LONG} -o new.json", *WATCH])
def test_bad_settings_and_paths(run, folder, line):
    before = snapshot(folder)
    assert_one_line(run(*line.split()))
    assert snapshot(folder) == before


def alter(**changes):
    return lambda content: content | changes


CERTIFICATES = {
    "newer schema": (alter(schema_version=99), "schema_version = 99"),
    "no schema": (
        lambda content: {k: v for k, v in content.items() if k != "schema_version"},
        "no schema_version",
    ),
    "numbers that do not match": (alter(upper=0.2), "upper"),
    "deltas that do not match": (alter(delta=0.001), "delta"),
    "lower above upper": (alter(lower=0.9), "lower = 0.9 is above upper"),
    "outside the range": (alter(upper=1.5), "upper = 1.5"),
    "text for a number": (alter(upper="0.3"), "upper = '0.3'"),
    "missing field": (lambda content: {k: v for k, v in content.items() if k != "delta"}, "delta is missing"),
    "unknown field": (alter(extra=1), "extra is not"),
    "not an object": (lambda _: [1, 2], "no schema_version"),
}


@pytest.mark.parametrize("case", CERTIFICATES)
@pytest.mark.parametrize("command", ["show", "verify", "check"])
def test_bad_certificates(run, folder, command, case):
    change, fault = CERTIFICATES[case]
    content = json.loads((folder / "binary.json").read_text())
    (folder / "bad.json").write_text(json.dumps(change(content)))
    before = snapshot(folder)
    arguments = ["success.csv", "--plot", "figure.png"] if command == "check" else []
    result = run(command, "bad.json", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("boundwatch: bad.json: ")
    assert fault in result.err
    assert result.err.count("\n") == 1
    assert snapshot(folder) == before


def test_certificate_cut_short_anywhere(run, folder):
    data = (folder / "certificate.json").read_bytes()
    for end in [*range(0, len(data) - 2, 23), len(data) - 2]:
        (folder / "bad.json").write_bytes(data[:end])
        result = run("check", "bad.json", "costs.csv")
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"NaN", b'{"schema_version": NaN}', b"null", b"[]", b"0.5"])
def test_certificate_that_is_none(run, folder, data):
    (folder / "bad.json").write_bytes(data)
    result = run("show", "bad.json")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)


def test_real_process_prints_one_line_and_no_traceback(folder):
    (folder / "bad.csv").write_text("cost\n1.4\n")
    command = [*PROGRAM, "certify", "bad.csv", "-o", "new.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert done.stderr.startswith(b"boundwatch: bad.csv: line 2, column 'cost' = 1.4")
    assert done.stderr.count(b"\n") == 1
    assert not (folder / "new.json").exists()


@pytest.mark.parametrize(
    ("redirection", "fault"),
    [("> /dev/full", b"cannot print the result"), ("<&-", b"standard input: cannot be read")],
)
def test_broken_streams(folder, redirection, fault):
    program = shlex.join([*PROGRAM, "check", "certificate.json"])
    costs = "-" if "<" in redirection else "worse.csv"
    done = subprocess.run(  # noqa: S602 - only a shell closes streams
        f"{program} {costs} {redirection}", shell=True, cwd=folder, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert fault in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_certificate_through_a_pipe(folder):
    done = subprocess.run(  # noqa: S602 - a pipe of the shell
        f"{shlex.join(PROGRAM)} certify costs.csv --json -o /dev/stdout | cat",
        shell=True,
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.stderr == b""
    assert b"cannot be written" not in done.stdout
    assert done.stdout.count(b'"schema_version"') == 2


def test_verify_reads_the_columns_and_ranges_of_several_certificates(run, tmp_path):
    lab, both, limits = tmp_path / "lab.csv", ("--success", "ok", "--cost", "force"), ("--cost-range", 0, 50)
    lab.write_text("robot,ok,force\n" + "a,yes,10\nb,no,20\na,no,40\n" * 5)
    (tmp_path / "other.csv").write_text(lab.read_text().replace("40", "41"))
    for columns in (both[:2], (*both[2:], *limits)):
        assert run("certify", "lab.csv", *columns, "--by", "robot", "-o", "family.json").code == 0
        assert run("verify", "family.json", "--costs", "lab.csv").code == 0
    assert "failed a: costs_sha256" in run("verify", "family.json", "--costs", "other.csv").err
    (tmp_path / "more.csv").write_text(lab.read_text() + "c,yes,10\n")
    for command, costs in {"verify": ("--costs", "more.csv"), "check": ("more.csv",)}.items():
        done = run(command, "family.json", *costs)
        assert (done.code, "has no certificate, only 'a', 'b'" in done.err) == (1, True)
    assert run("certify", "lab.csv", *both, *limits, "-o", "metrics.json").code == 0
    assert run("verify", "metrics.json", "--costs", "lab.csv", *both).code == 0
    done = run("verify", "metrics.json", "--costs", "other.csv", *both)
    assert "failed force: costs_sha256" in done.err
    assert run("verify", "metrics.json", "--costs", "lab.csv").code == 0
    done = run("verify", "metrics.json", "--costs", "lab.csv", *both[:2])
    assert "the same ones: --success ok --cost force" in done.err
