"""Bad input, end to end: exit code 1, one line on standard error, nothing written, no traceback."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import subprocess

import numpy as np
import pytest

import boundwatch as bw
from program import PROGRAM

pytestmark = pytest.mark.usefixtures("folder")


def npy(values):
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


COSTS = {
    "cost 1.4 at row 17": (b"cost\n" + b"0.2\n" * 16 + b"1.4\n", [], "row 17 (line 18), column 'cost' = 1.4"),
    "the same without header": (
        b"0.2\n" * 16 + b"1.4\n",
        ["--cost", "1"],
        "row 17 (line 17) = 1.4 is outside [0, 1]",
    ),
    "the same in NPY": (npy([0.2] * 16 + [1.4]), ["--cost", "1"], "row 17 = 1.4 is outside [0, 1]"),
    "negative": (b"-0.1\n", ["--cost", "1"], "row 1 (line 1) = -0.1 is outside [0, 1]"),
    "no direction": (b"1\n1\n0\n", [], "no column has a name; say what to read: success=COL"),
    "a success as a cost": (
        b"trial,grasped\n1,1\n2,0\n",
        ["--cost", "grasped"],
        "column 'grasped' sounds like something good, but was given as a cost",
    ),
    "a failure as a success": (
        b"trial,failed\n1,1\n2,0\n",
        ["--success", "failed"],
        "column 'failed' sounds like something bad, but was given as a success",
    ),
    "an aborted trial": (
        b"trial,success\n1,yes\n2,\n",
        [],
        "row 2 (line 3), column 'success' = '' says nothing; a trial that was stopped is a failure",
    ),
    "an unknown word": (
        b"trial,success\n1,yes\n2,kinda\n",
        [],
        "row 2 (line 3), column 'success' = 'kinda' is not a word for success or failure",
    ),
    "percent": (
        b"cost\n3%\n1%\n",
        [],
        "= '3%' is a percentage; pass cost_range=(0, 100) (--cost-range 0 100)",
    ),
    "thousands": (
        b'cost\n"1,234"\n',
        ["--cost-range", "0", "5"],
        "could have a decimal mark or a mark between",
    ),
    "NaN": (b"cost\n0.1\nnan\n", [], "row 2 (line 3), column 'cost' = nan is not finite"),
    "empty file": (b"", [], "is empty; at least one episode is needed"),
    "header only": (b"cost\n", [], "holds no episodes"),
    "missing column": (
        b"a,b\n1,2\n",
        ["--cost", "c"],
        "has no column 'c'; choose one with cost=... (--cost NAME)",
    ),
    "no known column": (b"a,b\n1,2\n", [], "no column is called cost, success, is_success or reward"),
    "two known columns": (b"cost,success\n1,0\n", [], "columns cost, success could all be meant"),
    "text in a number column": (
        b"cost\n0.1\nhigh\n",
        [],
        "row 2 (line 3), column 'cost' = 'high' is not a number",
    ),
    "empty cell": (b"a,cost\n1,\n", [], "row 1 (line 2), column 'cost' = '' is not a number"),
    "ragged row": (b"a,cost\n1,0.1\n2\n", [], "line 3 has 1 fields, the header has 2"),
    "reward without range": (b"reward\n-3\n", [], "pass their least and greatest value as cost_range"),
    "range the wrong way": (
        b"cost\n3\n",
        ["--cost-range", "4", "0"],
        "cost_range = (4.0, 0.0) is not a range",
    ),
    "cost outside the range": (b"cost\n9\n", ["--cost-range", "0", "4"], "= 9 is outside [0, 4]"),
    "range for successes": (
        b"success\n1\n",
        ["--cost-range", "0", "1"],
        "leave out cost_range (--cost-range)",
    ),
    "fractional success": (b"success\n0.5\n", [], "= 0.5 is neither 0 nor 1"),
    "truncated gzip": (gzip.compress(b"cost\n0.1\n")[:-4], [], "the gzip data is damaged or cut short"),
    "not text": (b"cost\n0.1\n\x81", [], "is not text (byte 9)"),
    "pickled objects": (npy(np.array([{}])), [], "holds Python objects"),
    "truncated Parquet": (b"PAR1\x00", [], "the Parquet data is damaged or cut short"),
}


def assert_one_line(result, fault):
    assert result.code == 1
    assert result.out == ""
    assert result.err.startswith("boundwatch: ")
    assert result.err.count("\n") == 1
    assert fault in result.err
    assert ";" in result.err, "no remedy"


def snapshot(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("case", COSTS)
def test_bad_costs(run, folder, case):
    data, options, fault = COSTS[case]
    (folder / "bad").write_bytes(data)
    before = snapshot(folder)
    assert_one_line(run("certify", "bad", "-o", "certificate.json", *options), fault)
    assert snapshot(folder) == before


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
    data, _, fault = COSTS["cost 1.4 at row 17"]
    (folder / "bad").write_bytes(data)
    before = snapshot(folder)
    assert_one_line(run(*arguments), fault)
    assert snapshot(folder) == before


def test_bad_costs_on_standard_input(run, folder):
    before = snapshot(folder)
    result = run("certify", "-", "-o", "new.json", stdin=b"cost\n0.1\n1.4\n")
    assert_one_line(result, "standard input: row 2 (line 3), column 'cost' = 1.4")
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["certify", "costs.csv", "-o", "new.json", "--delta", "0"], "delta = 0 is outside (0, 1)"),
        (["certify", "costs.csv", "-o", "new.json", "--delta", "1"], "delta = 1 is outside (0, 1)"),
        (["certify", "costs.csv", "-o", "new.json", "--delta", "nan"], "delta = nan is outside (0, 1)"),
        (["certify", "costs.csv", "-o", "new.json", "--delta-upper", "0.1"], "delta_lower go together"),
        (["certify", "costs.csv", "-o", "new.json", "--method", "exact"], "'exact' needs binary costs"),
        (
            ["certify", "costs.csv", "-o", "new.json", "--binary"],
            "is not 0 or 1, but binary costs were promised",
        ),
        (["certify", "costs.csv", "-o", "new.json", "--policy", "missing.pt"], "missing.pt: no such file"),
        (["certify", "missing.csv", "-o", "new.json"], "missing.csv: no such file"),
        (["certify", ".", "-o", "new.json"], ".: is a folder, not a file"),
        (["certify", "costs.csv", "-o", "."], ".: cannot be written, is a folder"),
        (["certify", "costs.csv", "-o", "-"], "-: files are not written to standard output"),
        (["certify", "x" * 300, "-o", "new.json"], "cannot be read, file name too long"),
        (["watch", "certificate.json", "x" * 300], "cannot be read, File name too long"),
        (
            ["watch", "certificate.json", "costs.jsonl", "--state", "x" * 300],
            "cannot be locked, file name too long; choose another path",
        ),
        (["certify", "costs.csv", "-o", "missing/new.json"], "missing/new.json: cannot be written"),
        (
            ["check", "certificate.json", "costs.csv", "--alpha-adverse", "1"],
            "alpha_adverse = 1 is outside (0, 1)",
        ),
        (
            ["check", "certificate.json", "costs.csv", "--alpha-benign", "0"],
            "alpha_benign = 0 is outside (0, 1)",
        ),
        (
            ["check", "certificate.json", "costs.csv", "--tail", "exact"],
            "'exact' needs a certificate for binary",
        ),
        (
            ["check", "certificate.json", "same.csv", "--plot", "figure.txt"],
            "end the name in .png, .svg or .pdf",
        ),
        (["check", "certificate.json", "same.csv", "--plot", "missing/figure.png"], "cannot be written"),
        (
            [
                "check",
                "certificate.json",
                "costs.csv",
                "--detector",
                "confidence-interval",
                "--false-positive-rate",
                "0.005",
            ],
            "is already spent by the certificate's delta",
        ),
        (["check", "binary.json", "costs.csv"], "is not 0 or 1, but binary costs were promised"),
        (["check", "certificate.json", "."], ".: is a folder, not a file"),
        (["check", ".", "costs.csv"], ".: is a folder, not a file"),
        (["check", "costs.csv", "costs.csv"], "costs.csv: "),
        (["show", "."], ".: is a folder, not a file"),
        (["show", "missing.json"], "missing.json: no such file"),
        (["verify", "missing.json"], "missing.json: no such file"),
    ],
)
def test_bad_settings_and_paths(run, folder, arguments, fault):
    before = snapshot(folder)
    assert_one_line(run(*arguments), fault)
    assert snapshot(folder) == before


def alter(**changes):
    return lambda content: content | changes


CERTIFICATES = {
    "newer schema": (alter(schema_version=99), "schema_version = 99 is newer"),
    "no schema": (
        lambda content: {k: v for k, v in content.items() if k != "schema_version"},
        "no schema_version",
    ),
    "numbers that do not match": (alter(upper=0.2), "upper"),
    "deltas that do not match": (alter(delta=0.001), "delta"),
    "lower above upper": (alter(lower=0.9), "lower = 0.9 is above upper"),
    "outside the range": (alter(upper=1.5), "upper = 1.5 is not allowed"),
    "text for a number": (alter(upper="0.3"), "upper = '0.3' is not allowed"),
    "missing field": (lambda content: {k: v for k, v in content.items() if k != "delta"}, "delta is missing"),
    "unknown field": (alter(extra=1), "extra is not a field"),
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
    assert done.stderr.startswith(b"boundwatch: bad.csv: row 1 (line 2), column 'cost' = 1.4")
    assert done.stderr.count(b"\n") == 1
    assert not (folder / "new.json").exists()


def test_library_errors_are_the_same(folder):
    certificate = bw.Certificate.load(folder / "binary.json")
    with pytest.raises(bw.errors.InvalidCost, match="binary costs were promised"):
        bw.HypothesisTest(certificate).decide([0.5])


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


def test_a_certificate_given_as_costs(run):
    bw.CertificateFamily({"a": bw.Certificate.from_held_out([0, 1], binary=True)}).save("family.json")
    assert "family.json: is a certificate, not costs" in run("compare", "family.json", "family.json").err
    for command in ("compare", "check"):
        done = run(command, "certificate.json", "certificate.json")
        assert done.code == 1
        assert "certificate.json: is a certificate, not costs; give the file of the episodes" in done.err


def test_verify_reads_the_column_that_was_certified(run, tmp_path):
    (tmp_path / "lab.csv").write_text("trial,grasped\n" + "1,yes\n2,no\n" * 5)
    run("certify", "lab.csv", "--success", "grasped", "-o", "lab.json")
    assert run("verify", "lab.json", "--costs", "lab.csv").code == 0
    assert run("verify", "lab.json", "--costs", "lab.csv", "--success", "grasped").code == 0


def test_verify_reads_the_columns_and_ranges_of_several_certificates(run, tmp_path):
    lab, both, limits = tmp_path / "lab.csv", ("--success", "ok", "--cost", "force"), ("--cost-range", 0, 50)
    lab.write_text("robot,ok,force\n" + "a,yes,10\nb,no,20\na,no,40\n" * 5)
    (tmp_path / "other.csv").write_text(lab.read_text().replace("40", "41"))
    for columns in (both[:2], (*both[2:], *limits)):
        assert run("certify", "lab.csv", *columns, "--by", "robot", "-o", "family.json").code == 0
        assert run("verify", "family.json", "--costs", "lab.csv").code == 0
    assert "failed a: costs_sha256" in run("verify", "family.json", "--costs", "other.csv").err
    named = "certify it, or leave it out.csv"  # what is certified says something else to those who judge
    (tmp_path / named).write_text(lab.read_text() + "c,yes,10\n")
    for command, remedy in {
        "verify": "give the costs that the certificates",
        "check": "certify it, or",
    }.items():
        costs = ("--costs", named) if command == "verify" else (named,)
        fault = f"{named}: line 17: robot 'c' has no certificate, only 'a', 'b'; {remedy}"
        assert fault in run(command, "family.json", *costs).err
    for by, failed in (((), "force"), (("--by", "robot"), "a/force")):
        assert run("certify", "lab.csv", *both, *limits, *by, "-o", "metrics.json").code == 0
        assert run("verify", "metrics.json", "--costs", "lab.csv", *both).code == 0
        done = run("verify", "metrics.json", "--costs", "other.csv", *both)
        assert f"failed {failed}: costs_sha256" in done.err
        done = run("verify", "metrics.json", "--costs", "lab.csv")
        assert "name the same ones: --success ok --cost force" in done.err
