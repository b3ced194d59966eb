"""Every format to costs, with its own quirks; damage gives a refusal or costs, never a traceback."""

import codecs
import gzip
import io
import json
import sys
from contextlib import suppress

import numpy as np
import openpyxl
import pyarrow
import pyarrow.parquet
import pytest
from mcap.writer import Writer

from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, MissingExtra, MissingFile, Refusal
from boundwatch.readers import read_costs

ROWS = [("1", "mug", "yes", 0.5), ("2", "can", "no", 0.25), ("3", "mug", "yes", 1.0)]
NAMES = ("trial", "task", "ok", "cost")
CSV = "\n".join(",".join(map(str, row)) for row in [NAMES, *ROWS]) + "\n"
OBJECTS = [dict(zip(NAMES, row, strict=True)) for row in ROWS]


def workbook(*sheets, **named):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in {**{f"s{n}": rows for n, rows in enumerate(sheets)}, **named}.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def parquet(**columns):
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(**arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def mcap(**topics):
    out = io.BytesIO()
    writer = Writer(out)
    writer.start()
    schema = writer.register_schema("episode", "jsonschema", b'{"type": "object"}')
    for topic, messages in topics.items():
        channel = writer.register_channel(f"/{topic}", "json", schema)
        for time, message in enumerate(messages):
            writer.add_message(channel, log_time=time, publish_time=time, data=json.dumps(message).encode())
    writer.finish()
    return out.getvalue()


def evaluation(*tasks):
    entries = [
        {"task_group": "g", "task_id": n, "metrics": {"successes": each, "sum_rewards": [1.0] * len(each)}}
        for n, each in enumerate(tasks)
    ]
    return json.dumps({"per_task": entries}).encode()


COLUMNS = {name: [row[n] for row in ROWS] for n, name in enumerate(NAMES)}
RECORDS = np.array([(int(t), task, ok == "yes", cost) for t, task, ok, cost in ROWS], "i8, U3, ?, f8")
RECORDS.dtype.names = NAMES
FORMATS = {
    "csv": CSV.encode(),
    "csv, UTF-8 with a mark": CSV.encode("utf-8-sig"),
    "csv, UTF-16": codecs.BOM_UTF16_LE + CSV.encode("utf-16-le"),
    "csv, gzip": gzip.compress(CSV.encode()),
    "csv, gzip in parts": gzip.compress(CSV.encode()[:20]) + gzip.compress(CSV.encode()[20:]) + b"\0\0",
    "jsonl": "\n".join(map(json.dumps, OBJECTS)).encode(),
    "json": json.dumps(OBJECTS, indent=1).encode(),
    "xlsx": workbook([["Lab 3"], [], NAMES, *ROWS]),
    "parquet": parquet(**COLUMNS),
    "npy": npy(RECORDS),
    "mcap": mcap(result=OBJECTS, camera=[{"fps": 30}]),
}


def write(tmp_path, data, name="file"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same(tmp_path, name):
    path = write(tmp_path, FORMATS[name])
    found = read_costs(path, success="ok", by="task")
    assert found.costs.tolist() == [0, 1, 0]
    assert found.keys["by"] == ("mug", "can", "mug")
    assert found.file_format == name.split(",")[0]
    assert read_costs(path).costs.tolist() == [0.5, 0.25, 1]
    assert read_costs(path, where={"task": "mug"}).costs.tolist() == [0.5, 1]


@pytest.mark.parametrize("name", FORMATS)
def test_standard_input(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(FORMATS[name])))
    found = read_costs("-")
    assert (found.costs.tolist(), found.source) == ([0.5, 0.25, 1], "standard input")


ARRAYS = [np.array([0.5, 1]), np.array([[0.5], [1]]), np.array([0.5, 1], "f2")]


@pytest.mark.parametrize("data", [b"0.5\n1\n", b"[0.5, 1]", *map(npy, ARRAYS)])
def test_lists_without_names_are_read_as_declared_or_as_certified(tmp_path, data):
    assert read_costs(write(tmp_path, data), cost="1").costs.tolist() == [0.5, 1]
    of_costs = Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    assert read_costs(write(tmp_path, data), certificate=of_costs).measure == Measure("cost")
    of_successes = Certificate.from_held_out([0, 1, 1], binary=True, measure=Measure("success", "ok"))
    for given in ({}, {"certificate": of_successes}):
        with pytest.raises(InvalidSetting) as refused:
            read_costs(write(tmp_path, data), **given)
        assert {Argument("cost", "1"), Argument("success", "1")} <= set(refused.value.remedy)
    assert read_costs(write(tmp_path, data), reward="1", cost_range=(0, 2)).costs.tolist() == [0.75, 0.5]


def test_a_workbook(tmp_path):
    both = write(tmp_path, workbook(a=[NAMES, *ROWS], b=[NAMES, *ROWS[:1]]))
    assert read_costs(both, sheet="2").costs.tolist() == [0.5]
    for given in ({}, {"sheet": "c"}):
        with pytest.raises(InvalidSetting, match="'a', 'b'"):
            read_costs(both, **given)


@pytest.mark.parametrize(
    "row",
    [["=1/2", "4", "mug", "yes", "=1/2"], ["Total", "Total", None, None, 0.5], [None, "4", "mug", "yes"]],
)
def test_rows_of_a_sheet_that_are_no_trials(tmp_path, row):
    value, *cells = row
    with pytest.raises(InvalidCost) as refused:
        read_costs(write(tmp_path, workbook([NAMES, *ROWS, cells])))
    assert (refused.value.where.unit, refused.value.where.number) == ("row", 5)
    assert value is None or refused.value.value == value


def test_an_evaluation_of_lerobot(tmp_path):
    path = write(tmp_path, evaluation([True, False], [True]))
    found = read_costs(path, by="task")
    assert (found.costs.tolist(), found.keys["by"]) == ([0, 1, 0], ("g/0", "g/0", "g/1"))
    assert found.file_format == "lerobot-eval"
    assert read_costs(path, reward="sum_reward", cost_range=(0, 2)).costs.tolist() == [0.5] * 3
    assert "no episode succeeded" in read_costs(write(tmp_path, evaluation([False] * 3))).warnings[0]
    older = {"per_episode": [{"seed": 7, "success": True}, {"seed": 7, "success": False}]}
    found = read_costs(write(tmp_path, json.dumps(older).encode()))
    assert found.costs.tolist() == [0, 1]
    assert "cluster='seed'" in found.notes[0]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_large_workbook_comes_through_a_pipe(monkeypatch, pack):
    values = np.random.default_rng(1).random(9000)
    data = workbook([["cost"], *([value] for value in values.tolist())])
    assert len(data) > 1 << 16  # more than is looked at to recognize it
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(pack(data))))
    assert read_costs("-").costs == pytest.approx(values)  # a cell has 16 digits


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["per_task"][0].update(n_episodes=5),
        lambda e: e["per_task"][0]["metrics"].update(sum_rewards=[1.0]),
        lambda e: e["per_task"].append(e["per_task"][0]),
        lambda e: e.update(per_task=[]),
        lambda e: e["per_task"][0].pop("task_id"),
    ],
)
def test_an_evaluation_that_contradicts_itself_is_refused(tmp_path, change):
    content = json.loads(evaluation([True, False]))
    change(content)
    with pytest.raises(InvalidCost):
        read_costs(write(tmp_path, json.dumps(content).encode()))


def dataset(root, *, total=2):
    frames = {
        "episode_index": [0, 0, 1, 1],
        "task_index": [0, 0, 1, 1],
        "next.success": [False, True, False, False],
        "next.reward": [0.5, 0.5, 0.25, 0.0],
    }
    (root / "data/chunk-000").mkdir(parents=True)
    (root / "meta").mkdir()
    table = pyarrow.table(frames)
    pyarrow.parquet.write_table(table.slice(0, 3), root / "data/chunk-000/file-000.parquet")
    pyarrow.parquet.write_table(table.slice(3), root / "data/chunk-000/file-001.parquet")
    tasks = pyarrow.table({"task_index": [0, 1], "task": ["pick", "place"]})
    pyarrow.parquet.write_table(tasks, root / "meta/tasks.parquet")
    info = {"codebase_version": "v3.0", "total_episodes": total, "total_frames": 4}
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


def test_a_dataset_of_lerobot(tmp_path):
    root = dataset(tmp_path / "a")
    found = read_costs(root, by="task")
    assert (found.costs.tolist(), found.keys["by"]) == ([0, 1], ("pick", "place"))
    assert (found.design.episode, found.design.reduce) == ("episode_index", "any")
    assert not found.warnings
    assert read_costs(root, reward="next.reward", cost_range=(0, 1)).costs.tolist() == [0, 0.75]
    with pytest.raises(InvalidCost, match="total_episodes"):
        read_costs(dataset(tmp_path / "c", total=3))


def test_stable_baselines(tmp_path):
    arrays = {"timesteps": np.array([10, 20]), "results": np.array([[1.0, 2.0], [3.0, 4.0]])}
    arrays["successes"] = np.array([[True, False], [True, True]])
    path = write(tmp_path, npz(**arrays))
    last = {"evaluation": "2"}
    assert read_costs(path, where=last).costs.tolist() == [0, 0]
    assert read_costs(path, where={"evaluation": "1"}).costs.tolist() == [0, 1]
    assert read_costs(path, reward="results", cost_range=(0, 4), where=last).costs.tolist() == [0.25, 0]
    with pytest.raises(InvalidSetting) as refused:  # one of them is meant
        read_costs(path)
    assert Argument("where", {"evaluation": "1"}) in refused.value.remedy
    with pytest.raises(InvalidCost):
        read_costs(write(tmp_path, npz(**arrays | {"results": np.zeros(3)})))
    with pytest.raises(InvalidCost, match="column 't'"):
        read_costs(write(tmp_path, b'#{"t_start": 1}\nr,l,is_success\n1,2,1\n'))


def test_messages(tmp_path):
    rows = [{"success": n % 2 == 0, "at": {"x": n / 4}} for n in range(4)]
    path = write(tmp_path, mcap(result=rows, other=[{"success": True}]))
    found = read_costs(path, cost="/result.at.x")
    assert (found.costs.tolist(), found.measure.column) == ([0, 0.25, 0.5, 0.75], "/result.at.x")
    assert read_costs(path, cost="at.x").measure.column == "/result.at.x"
    with pytest.raises(InvalidSetting, match="several topics"):
        read_costs(path)
    with pytest.raises(InvalidCost) as refused:
        read_costs(write(tmp_path, mcap(result=[*rows, {"success": True}])), cost="at.x")
    assert (refused.value.where.unit, refused.value.where.number) == ("message", 5)


@pytest.mark.parametrize(
    ("data", "given"),
    [
        (b"", {}),
        (b"PK\x03\x04 cut", {}),
        (b"\xd0\xcf\x11\xe0 old", {}),
        (b"<html><table>", {}),
        (gzip.compress(CSV.encode(), mtime=0)[:-9], {}),
        (b'{\n "cost": [1, 0]\n}\n', {}),
        (b'{"cost": {"0": 1, "1": 0}}\n', {}),
        (b'{"columns": ["cost"], "data": [[1], [0]]}\n', {}),
        (b"[[1, 2], [3, 4]]", {}),
        (b"[1, {}]", {}),
        (b"[]", {}),
        (b'[{"cost": 1, "cost": 0}]', {}),
        (npy(np.zeros((2, 2, 2))), {}),
        (npy(np.zeros(0)), {}),
        (npy(np.zeros((3, 2))), {}),
        (CSV.encode(), {"sheet": "a"}),
        (CSV.encode(), {"file_format": "xls"}),
        (CSV.encode(), {"where": {"task": "cup"}}),
        (CSV.encode(), {"cost": "cost", "episode": "task"}),
        (CSV.encode(), {"success": "ok", "success_values": "oui"}),
    ],
)
def test_refused(tmp_path, data, given):
    with pytest.raises(Refusal) as refused:
        read_costs(write(tmp_path, data), **given)
    assert refused.value.where is not None or refused.value.name == "file_format"


def test_paths(tmp_path):
    with pytest.raises(MissingFile):
        read_costs(tmp_path / "none.csv")
    for wrong in (tmp_path, "/dev/zero"):
        with pytest.raises(InvalidSetting):
            read_costs(wrong)
    with pytest.raises(InvalidSetting):
        read_costs([0.5])


@pytest.mark.parametrize(
    ("module", "name"), [("pyarrow", "parquet"), ("openpyxl", "xlsx"), ("mcap.reader", "mcap")]
)
def test_an_extra_that_is_not_installed(tmp_path, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra):
        read_costs(write(tmp_path, FORMATS[name]))


def test_without_pyarrow_large_texts_are_read_with_care(tmp_path, monkeypatch):
    path = write(tmp_path, b"cost\n" + b"0.5\n1\n" * 20_000)
    fast = read_costs(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert read_costs(path).costs.tolist() == fast.costs.tolist()


def test_steps(tmp_path):
    path = write(tmp_path, b"ep,task,cost,reward,ok\n1,a,0.25,1,no\n2,b,0.5,2,no\n1,a,0.75,3,yes\n")
    reductions = {"mean": [0.5, 0.5], "max": [0.75, 0.5], "last": [0.75, 0.5], "sum": [1.0, 0.5]}
    for reduce, costs in reductions.items():
        assert read_costs(path, cost="cost", episode="ep", reduce=reduce).costs.tolist() == costs
    found = read_costs(path, success="ok", episode="ep", by="task")
    assert (found.costs.tolist(), found.keys["by"], list(found.numbers)) == ([0, 1], ("a", "b"), [2, 3])
    assert read_costs(path, reward="reward", cost_range=(0, 4), episode="ep").costs.tolist() == [0, 0.5]
    with pytest.raises(InvalidSetting) as refused:
        read_costs(path, cost="cost", episode="ep")
    assert Argument("reduce") in refused.value.remedy
    mixed = write(tmp_path, b"ep,task,ok\n1,a,no\n1,b,yes\n")
    assert read_costs(mixed, success="ok", episode="ep", by="task").costs.tolist() == [1, 0]
    with pytest.raises(InvalidSetting) as refused:
        read_costs(mixed, success="ok", episode="ep", strata="task")
    assert (refused.value.where.number, refused.value.where.column) == (3, "task")


def test_pairs_and_roles(tmp_path):
    found = read_costs(write(tmp_path, CSV.encode()), success="ok", pair_by=("task", "trial"), strata="task")
    assert found.keys["pair"] == ("mug | 1", "can | 2", "mug | 3")
    assert found.design.strata == "task"


def test_rows_without_an_outcome_are_one_place(tmp_path):
    with pytest.raises(InvalidCost) as refused:
        read_costs(write(tmp_path, b"t,ok\n1,yes\n2,\n3,\n4,\n"), success="ok")
    assert (refused.value.where.number, refused.value.where.last) == (3, 5)


LOGS = {
    "lerobot-eval": evaluation([True, False]),
    "sb3-evaluations": npz(timesteps=[1], results=np.zeros((1, 2)), successes=np.ones((1, 2), bool)),
    "sb3-monitor": b'#{"t_start": 1}\nr,l,t,is_success\n5,1,2,1\n',
}


@pytest.mark.parametrize("data", [*FORMATS.values(), *LOGS.values()], ids=[*FORMATS, *LOGS])
def test_damage_gives_a_refusal_or_costs(tmp_path, data):
    path = tmp_path / "damaged"
    steps = max(1, len(data) // 300)
    for place in range(0, len(data), steps):
        for changed in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
            path.write_bytes(changed)
            with suppress(Refusal):
                found = read_costs(path)
                assert ((found.costs >= 0) & (found.costs <= 1)).all()


def test_a_certificate_says_how_to_read(tmp_path):
    lab = read_costs(write(tmp_path, CSV.encode()), success="ok", where={"task": "mug"})
    certificate = Certificate.from_held_out(lab.costs, binary=True, measure=lab.measure)
    new = write(tmp_path, b"trial,ok,cost\n1,no,0\n2,no,0\n3,yes,0\n", "new")
    found = read_costs(new, certificate=certificate)
    assert (found.costs.tolist(), found.measure) == ([1, 1, 0], Measure("success", "ok"))
