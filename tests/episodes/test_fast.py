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
    for same in ("binary", "column", "tasks"):
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
    assert not any(quick) or name == "not a number"  # explained in the same words
    fast.SMALLEST = 1 << 30
    assert found == [_outcome(path)]


def _outcome(path):
    try:
        return read_costs(path).costs.tolist()
    except BoundwatchError as error:
        return str(error)
