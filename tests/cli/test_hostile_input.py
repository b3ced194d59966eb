"""Input that nobody meant well: one line and exit code 1, nothing printed that a terminal acts upon."""

import io
import json
import os
import zipfile

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from benchmarks import mutation
from benchmarks.mutation import npy

import boundwatch as bw
from boundwatch._support.describing import printable
from boundwatch.readers import read_costs


def npz(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def parquet(**columns):
    buffer = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), buffer)
    return buffer.getvalue()


def header(text):
    raw = text.encode()
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw


COSTS = npy(np.array([0.1, 0.2]))
EXTREME = 2**63 - 1
REFUSED = {
    "unterminated header": (header("{'descr': '<f8', 'fortran_order': False, 'shape': (2,"), ["--cost", "1"]),
    "shape of 2**80": (
        header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**80},)}}\n"),
        ["--cost", "1"],
    ),
    "NUL in the header": (COSTS.replace(b"fortran", b"fort\0an"), ["--cost", "1"]),
    "damaged U dtype": (npy(np.array(["0.1"])).replace(b"1\0\0\0", b"\xff\xff\xff\xff"), ["--cost", "1"]),
    "members that are not NPY": (npz(timesteps=b"x", results=b"y"), []),
    "evaluations as npy": (npz(timesteps=COSTS, results=COSTS), ["--format", "npy", "--cost", "1"]),
    "npy as evaluations": (COSTS, ["--format", "sb3-evaluations"]),
    "durations as costs": (npy(np.array([0, 1], "timedelta64[s]")), ["--cost", "1"]),
    "times as costs": (npy(np.array([0, 1], "datetime64[s]")), ["--cost", "1"]),
    "durations in Parquet": (parquet(cost=pyarrow.array([0, EXTREME], pyarrow.duration("us"))), []),
    "times in Parquet": (parquet(cost=pyarrow.array([0, EXTREME], pyarrow.timestamp("us"))), []),
    "dates in Parquet": (parquet(cost=pyarrow.array([0, 2**31 - 1], pyarrow.date32())), []),
    "times as tasks": (
        parquet(cost=[0.1, 0.2], task=pyarrow.array([0, EXTREME], pyarrow.timestamp("us"))),
        ["--by", "task"],
    ),
    "nested without end": (b"[" * 100_000, []),
    "nested in a line": (b'{"cost": ' + b"[" * 100_000, []),
    "a task name of 5,000 letters": (f"task,cost\n{'x' * 5000},0.1\n".encode(), ["--by", "task"]),
    "too many columns": (",".join(f"c{i}" for i in range(100_001)).encode() + b"\n", ["--cost", "c1"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_ended_in_a_traceback_is_one_line(run, folder, name):
    content, options = REFUSED[name]
    (folder / "x").write_bytes(content)
    result = run("certify", "x", "-o", "new.json", *options)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("boundwatch: ")
    assert result.err.count("\n") == 1
    assert len(result.err) < 700
    assert not (folder / "new.json").exists()


def test_unused_columns_may_hold_anything(run, folder):
    times = pyarrow.array([0, EXTREME], pyarrow.timestamp("us"))
    (folder / "x").write_bytes(parquet(cost=[0.1, 0.2], when=times))
    assert run("certify", "x", "-o", "new.json").code == 0


@pytest.mark.parametrize("column", ["episode_index", "task_index"])
def test_a_dataset_whose_indices_are_lists(run, folder, column):
    (folder / "logs").mkdir()
    mutation.example_logs.write_dataset(folder / "logs" / "dataset", episodes=4, frames=3, seed=1)
    for path in (folder / "logs" / "dataset" / "data").rglob("*.parquet"):
        table = pyarrow.parquet.read_table(path)
        lists = pyarrow.array([[value] for value in table[column].to_pylist()])
        place = table.schema.get_field_index(column)
        pyarrow.parquet.write_table(table.set_column(place, column, lists), path)
    result = run("certify", "logs/dataset", "--by", column, "-o", "new.json")
    assert result.code == 0  # a list of one is as good a name as any
    assert "Traceback" not in result.err


HOSTILE = "arm\x1b[2J\r\nWITHIN: no evidence of a shift\u202e"


@pytest.mark.parametrize("command", ["certify", "check", "show", "watch", "check-missing"])
def test_names_from_files_do_not_reach_the_terminal_raw(run, folder, command):
    lines = [json.dumps({"task": task, "cost": cost}) for task in (HOSTILE, "b") for cost in (0.1, 0.2, 0.9)]
    (folder / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "b.jsonl").write_text("\n".join(lines[3:]) + "\n")
    first = run("certify", "tasks.jsonl", "--by", "task", "-o", "family.json")
    results = {
        "certify": lambda: first,
        "check": lambda: run("check", "family.json", "tasks.jsonl", "--allow-own"),
        "check-missing": lambda: run("check", "family.json", "b.jsonl", "--allow-own"),
        "show": lambda: run("show", "family.json"),
        "watch": lambda: run("watch", "family.json", "tasks.jsonl"),
    }
    result = results[command]()
    assert result.code == 0
    assert "\\x1b[2J\\r\\nWITHIN" in result.out + result.err
    for text in (result.out, result.err):
        assert not any(letter in text for letter in "\x1b\r\u202e")
        assert not any(line.startswith("WITHIN: no evidence") for line in text.splitlines()[1:])


def test_a_certificate_that_could_not_be_loaded_is_not_written(run, folder):
    rows = [json.dumps({"task": task, "cost": 0.1}) for task in ("half \ud800", "b")]
    (folder / "tasks.jsonl").write_text("\n".join(rows) + "\n")
    done = run("certify", "tasks.jsonl", "--by", "task", "-o", "family.json")
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert not (folder / "family.json").exists()


def test_what_a_certificate_says_of_itself_is_escaped(run, folder):
    content = json.loads((folder / "certificate.json").read_text())
    content["provenance"]["versions"]["x"] = HOSTILE
    content["measure"] = {"kind": "cost", "column": HOSTILE, "cost_range": None, "success_values": []}
    (folder / "forged.json").write_text(json.dumps(content))
    for arguments in (["show", "forged.json"], ["check", "forged.json", "same.csv"]):
        result = run(*arguments)
        assert result.code == 0
        assert "\x1b" not in result.out + result.err


def test_a_file_name_that_is_not_utf8(run, folder):
    name = os.fsdecode(b"log\xff\x1b[2J.csv")
    (folder / name).write_text("cost\n0.1\n0.2\n")
    for arguments in (["certify", name, "-o", "new.json"], ["check", "certificate.json", name]):
        result = run(*arguments)
        assert result.code == 0
        assert "\x1b" not in result.out + result.err
    assert run("check", name, name).code == 1
    assert run("report", "certificate.json", name, "-o", "report.html").code == 0


def test_tasks_that_differ_by_a_nul_are_two(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps({"task": task, "cost": 0.1}) + "\n" for task in ("a", "a\0", "a\0\0")))
    assert len(read_costs(path, by="task").split()) == 3


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
@pytest.mark.usefixtures("folder")
def test_devices_without_end_are_refused(run, device):
    for arguments in (
        ["certify", device, "-o", "x.json"],
        ["show", device],
        ["watch", "certificate.json", device],
    ):
        result = run(*arguments)
        assert result.code == 1
        assert device in result.err


@pytest.mark.usefixtures("folder")
def test_memory_that_does_not_suffice_is_said(run, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(bw.Certificate, "from_held_out", fail)
    assert run("certify", "costs.csv", "-o", "new.json").err.startswith(
        "boundwatch: there is not enough memory"
    )


def test_some_damaged_files_of_every_kind():
    """A small part of `python -m benchmarks mutation`."""
    assert mutation.campaign(63, seed=7, report=pytest.fail)["faults"] == 0


def test_ordinary_text_stays_as_it_is():
    for text in ("größer als 5 µm", "日本", "a b", ""):
        assert printable(text) == text
