"""Large files through pyarrow: the same costs as the careful reader, or left to it."""

import gzip

import numpy as np
import pytest

from boundwatch.episodes import fast, read_costs
from boundwatch.errors import BoundwatchError, InvalidCost

COSTS = np.random.default_rng(6).random(300).round(5)
ROWS = list(enumerate(COSTS.tolist()))
FILES = {
    "x.csv": "episode,cost\n" + "".join(f"{n},{c}\n" for n, c in ROWS),
    "x.tsv": "episode\tcost\n" + "".join(f"{n}\t{c}\n" for n, c in ROWS),
    "x.jsonl": "".join(f'{{"episode": {n}, "cost": {c}}}\n' for n, c in ROWS),
    "success.csv": "success\n" + "".join(f"{n % 3 > 0:d}\n" for n, _ in ROWS),
    "words.csv": "success\n" + "".join(f"{'yes' if n % 3 else 'no'}\n" for n, _ in ROWS),
    "robots.csv": "robot,time,cost\n"
    + "".join(f"0{n % 2},2026-11-16T09:00:{n % 60:02},{c}\n" for n, c in ROWS),
    "robots.jsonl": "".join(
        f'{{"robot": "0{n % 2}", "time": "2026-11-16T09:00:{n % 60:02}", "cost": {c}}}\n' for n, c in ROWS
    ),
    "times.jsonl": "".join(f'{{"task": "2026-11-1{n % 2} 09:00:00", "cost": {c}}}\n' for n, c in ROWS),
}
CAREFUL = {
    "title": "Trials of May\n" + FILES["x.csv"],
    "comma": "episode;cost\n" + "".join(f"{n};{c}\n".replace(".", ",") for n, c in ROWS),
    "missing": FILES["x.csv"] + "300,\n",
    "blank": FILES["x.csv"] + "\n301,0.5\n",
    "total": FILES["x.csv"] + "total,0.5\n",
    "comment": FILES["x.csv"] + "# moved the table\n301,0.5\n",
    "not a number": FILES["x.csv"] + "301,nan\n",
    "blank line of objects": FILES["x.jsonl"] + '\n{"episode": 301, "cost": 1.5}\n',
    "two objects in a line": FILES["x.jsonl"]
    + '{"episode": 301, "cost": 0.5} {"episode": 302, "cost": 0.5}\n',
    "new field": FILES["x.jsonl"] + '{"episode": 301, "cost": 0.5, "success": 1}\n',
    "field missing": FILES["x.jsonl"] + '{"episode": 301}\n',
    "quoted": '"episode","cost"\n1,0.5\n',
}


@pytest.fixture
def quick(monkeypatch):
    """Let small files be read as large ones, and count how often that worked."""
    taken = []
    whole = fast.read_table

    def count(*arguments):
        table = whole(*arguments)
        taken.append(table is not None)
        return table

    monkeypatch.setattr(fast, "SMALLEST", 0)
    monkeypatch.setattr(fast, "read_table", count)
    return taken


@pytest.mark.parametrize("name", FILES)
def test_the_costs_are_the_same(tmp_path, quick, name):
    path = tmp_path / name
    path.write_text(FILES[name])
    squeezed = tmp_path / f"{name}.gz"
    squeezed.write_bytes(gzip.compress(FILES[name].encode()))
    by = next((column for column in ("robot", "task") if column in FILES[name][:20]), None)
    found, unpacked = (read_costs(each, by=by) for each in (path, squeezed))
    assert quick == [True, True]
    fast.SMALLEST = 1 << 30
    careful = read_costs(path, by=by)
    assert np.array_equal(found.costs, careful.costs)
    assert np.array_equal(unpacked.costs, careful.costs)
    for same in ("binary", "column", "tasks", "warnings", "notes"):
        assert getattr(found, same) == getattr(careful, same)


def test_a_wrong_value_is_named_with_its_line(tmp_path, quick):
    path = tmp_path / "x.csv"
    path.write_text(FILES["x.csv"] + "300,1.5\n")
    with pytest.raises(InvalidCost, match=r"row 301 \(line 302\), column 'cost' = 1.5 is outside"):
        read_costs(path)
    assert quick == [True]


@pytest.mark.parametrize("name", CAREFUL)
def test_what_is_unusual_is_left_to_the_careful_reader(tmp_path, quick, name):
    path = tmp_path / "x.csv"
    path.write_text(CAREFUL[name])
    found = [_outcome(path)]
    assert not any(quick) or name in ("missing", "not a number")  # explained in the same words
    fast.SMALLEST = 1 << 30
    assert found == [_outcome(path)]


WIDE = 5000  # characters per row: more than a megabyte, and still few rows
LONG = [
    f"t{n},{'yes' if n % 3 else 'no'},{c},arm {n % 2},{'a remark':{WIDE}}\n".encode()
    for n, c in enumerate(np.random.default_rng(7).random(240).round(4).tolist())
]
HEADER = b"trial,success,cost,robot,note\n"
ODD = {
    "nothing": b"",
    "repeated header": HEADER,
    "repeated header in capitals": HEADER.upper(),
    "comment": b"# moved the table\n",
    "comment as wide as a row": b"# moved, the, table, to, here\n",
    "trial commented out": b"#t9,yes,0.5,arm 1,x\n",
    "blank line": b"\n",
    "spaces": b"  \n",
    "blank cells": b",,,,\n",
    "short row": b"t9,yes,0.5\n",
    "long row": b"t9,yes,0.5,arm 1,x,y\n",
    "long blank row": b"t9,yes,0.5,arm 1,x,\n",
    "Windows-1252 in a name": b"t9,yes,0.5,\xe4rm,x\n",
    "Windows-1252 elsewhere": b"t9,yes,0.5,arm 1,\xe4\n",
    "no character at all": b"t9,yes,0.5,arm 1,\x81\n",
    "end of line in quotes": b't9,yes,0.5,arm 1,"x\ny"\n',
    "quote left open": b't9,yes,0.5,arm 1,"x\n',
    "text after quotes": b't9,yes,0.5,arm 1,"x"y\n',
    "end of line of old": b"t9,yes,0.5,arm 1,x\r",
    "spaces around": b" t9 , yes , 0.5 , arm 1 , x \n",
    "missing success": b"t9,,0.5,arm 1,x\n",
    "missing cost": b"t9,yes,,arm 1,x\n",
    "missing name": b"t9,yes,0.5,,x\n",
    "missing trial": b",yes,0.5,arm 1,x\n",
    "name of the column": b"t9,success,cost,arm 1,x\n",
    "mean": b"mean,yes,0.5,arm 1,x\n",
}


@pytest.mark.parametrize("what", [{"success": "success"}, {"cost": "cost", "by": "robot"}], ids=str)
@pytest.mark.parametrize("name", ODD)
def test_oddities_in_the_middle_are_read_as_with_care(tmp_path, monkeypatch, name, what):
    path = tmp_path / "x.csv"
    middle = len(LONG) // 2
    path.write_bytes(HEADER + b"".join([*LONG[:middle], ODD[name], *LONG[middle:]]))
    assert path.stat().st_size > fast.SMALLEST
    assert name != "nothing" or fast.read_table(path, "csv", (), pytest.fail) is not None
    found = _outcome(path, **what)
    monkeypatch.setattr(fast, "SMALLEST", 1 << 30)
    assert found == _outcome(path, **what)


@pytest.mark.parametrize("smallest", [0, 1 << 30])
def test_a_decimal_comma_anywhere_makes_points_ambiguous(tmp_path, monkeypatch, smallest):
    monkeypatch.setattr(fast, "SMALLEST", smallest)
    before = "weight;force\n" + "300;1.234\n" * 3000 + "0,"
    monkeypatch.setattr(fast, "_CHUNK", len(before))
    path = tmp_path / "x.csv"
    path.write_text(f"{before}5;1.234\n" + "300;1.234\n" * 3000)
    with pytest.raises(InvalidCost, match=r"'force' = 1.234 could have a decimal mark or a mark between"):
        read_costs(path, cost="force", cost_range=(0, 10))


@pytest.mark.parametrize("cell", ["1", "yes", "ok"])
@pytest.mark.parametrize("odd", ["", "# moved\n", "#1\n", "success\n", "Success \n", "\n"])
def test_oddities_in_the_middle_of_a_single_column(tmp_path, monkeypatch, odd, cell):
    path = tmp_path / "x.csv"
    rows = f"{cell:{WIDE}}\n" * 120
    path.write_text(f"success\n{rows}{odd}{rows}")
    assert path.stat().st_size > fast.SMALLEST
    found = _outcome(path)
    monkeypatch.setattr(fast, "SMALLEST", 1 << 30)
    assert found == _outcome(path)


def test_a_file_that_grows_has_columns_of_one_length(tmp_path, quick, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_bytes(HEADER + b"".join(LONG[:200]))
    whole = fast.read_table

    def grow(*arguments):
        table = whole(*arguments)
        with path.open("ab") as file:
            file.write(LONG[200])
        return table

    monkeypatch.setattr(fast, "read_table", grow)
    found = read_costs(path, cost="cost", by="robot")
    assert quick == [True]
    assert len(found.costs) == len(found.tasks) == 200


def test_a_byte_that_is_no_utf8_in_an_object_is_left_to_the_careful_reader(tmp_path, quick):
    path = tmp_path / "x.jsonl"
    path.write_bytes(FILES["robots.jsonl"].encode() + b'{"robot": "\xe4rm", "time": "x", "cost": 0.5}\n')
    found = read_costs(path, by="robot")
    assert quick == [False]
    assert found.tasks[-1] == "ärm"


def _outcome(path, **what):
    try:
        found = read_costs(path, **what)
    except BoundwatchError as error:
        return str(error)
    same = ("binary", "column", "tasks", "warnings", "notes", "detail")
    return [found.costs.tolist(), *(getattr(found, each) for each in same)]
