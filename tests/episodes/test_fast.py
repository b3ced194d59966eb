"""Large files through pyarrow: the same costs as the careful reader, or left to it."""

import numpy as np
import pytest

from boundwatch.episodes import fast, read_costs
from boundwatch.errors import InvalidCost

COSTS = np.random.default_rng(6).random(300).round(5)
ROWS = list(enumerate(COSTS.tolist()))
FILES = {
    "x.csv": "episode,cost\n" + "".join(f"{n},{c}\n" for n, c in ROWS),
    "x.tsv": "episode\tcost\n" + "".join(f"{n}\t{c}\n" for n, c in ROWS),
    "x.jsonl": "".join(f'{{"episode": {n}, "cost": {c}}}\n' for n, c in ROWS),
    "success.csv": "success\n" + "".join(f"{n % 3 > 0:d}\n" for n, _ in ROWS),
}
CAREFUL = {
    "title": "Trials of May\n" + FILES["x.csv"],
    "comma": "episode;cost\n" + "".join(f"{n};{c}\n".replace(".", ",") for n, c in ROWS),
    "missing": FILES["x.csv"] + "300,\n",
    "blank": FILES["x.csv"] + "\n301,0.5\n",
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
    found = read_costs(path)
    assert quick == [True]
    fast.SMALLEST = 1 << 30
    careful = read_costs(path)
    assert np.array_equal(found.costs, careful.costs)
    assert (found.binary, found.column, found.warnings) == (careful.binary, careful.column, careful.warnings)


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
    assert not any(quick) or name == "missing"  # text to both
    fast.SMALLEST = 1 << 30
    assert found == [_outcome(path)]


def _outcome(path):
    try:
        return read_costs(path).costs.tolist()
    except InvalidCost as error:
        return str(error)
