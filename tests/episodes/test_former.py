"""Cost files: every format gives the same costs, and every fault has a place, a reason and a remedy."""

from __future__ import annotations

import csv
import gzip
import io
import json
import subprocess
import sys

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import boundwatch as bw
from boundwatch.episodes import read_costs
from boundwatch.errors import BoundwatchError, InvalidCost, InvalidSetting, MissingExtra

COSTS = [0.0, 0.25, 1.0, 1 / 3]


def as_csv(values, name="cost"):
    return (f"{name}\n" + "".join(f"{value}\n" for value in values)).encode()


def as_bare_csv(values):
    return "".join(f"{value}\n" for value in values).encode()


def as_jsonl(values, name="cost"):
    return "".join(json.dumps({"episode": i, name: value}) + "\n" for i, value in enumerate(values)).encode()


def as_npy(values):
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


def as_record(values, name="cost"):
    array = np.zeros(len(values), dtype=[("episode", "i4"), (name, "f8")])
    array[name] = values
    return as_npy(array)


def as_parquet(values, name="cost"):
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"episode": range(len(values)), name: values}), file)
    return file.getvalue()


FORMATS = [as_csv, as_bare_csv, as_jsonl, as_npy, as_record, as_parquet]


@pytest.fixture
def read(tmp_path):
    """Return a function that writes bytes to a file named ``log`` and reads the costs in it."""

    def write_and_read(data, **options):
        (tmp_path / "log").write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_costs(tmp_path / "log", **options)

    return write_and_read


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("encode", FORMATS)
def test_every_format_gives_the_same_costs(read, encode, compress):
    unnamed = encode in (as_bare_csv, as_npy)
    episodes = read(compress(encode(COSTS)), cost="1" if unnamed else None)
    assert episodes.costs.tolist() == COSTS
    assert episodes.costs.dtype == np.float64
    assert episodes.binary is False
    assert episodes.meaning == "cost"
    assert episodes.column == (None if unnamed else "cost")


@pytest.mark.parametrize("encode", FORMATS)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_costs_survive_to_the_last_bit(tmp_path_factory, encode, values):
    path = tmp_path_factory.mktemp("costs") / "log"
    path.write_bytes(encode(values))
    named = encode not in (as_bare_csv, as_npy)
    assert read_costs(path, cost=None if named else "1").costs.tolist() == values


@given(rows=st.lists(st.tuples(st.floats(0, 1), st.text()), min_size=1), quoting=st.sampled_from([0, 1]))
def test_other_columns_may_hold_any_text(tmp_path_factory, rows, quoting):
    path = tmp_path_factory.mktemp("costs") / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([("cost", "note"), *rows])
    try:
        found = read_costs(path).costs
    except InvalidCost as error:
        assume("looks like a summary" not in str(error))  # a last row with the note "avg", say
        raise
    assert found.tolist() == [cost for cost, _ in rows]


@given(st.binary(max_size=200))
def test_any_bytes_give_costs_or_one_line(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("costs") / "log"
    for start in (b"", b"\x93NUMPY", b"PAR1", b"\x1f\x8b", b"{", b"cost\n0.5\n"):
        path.write_bytes(start + data)
        message, costs = "", np.array([])
        try:
            costs = read_costs(path).costs
        except BoundwatchError as error:
            message = str(error)
        assert bool(message) != bool(costs.size)
        assert len(message.splitlines()) <= 1
        assert message.startswith(str(path)) or not message
        assert ((costs >= 0) & (costs <= 1)).all()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffcost\n0.5\n1\n",
        "cost\r\n0.5\r\n1\r\n",
        "cost\r0.5\r1\r",
        "cost\n0.5\n1",
        "cost\n0.5\n1\n\n  \r\n\n",
        "episode;cost\n1;0.5\n2;1\n",
        "episode\tcost\n1\t0.5\n2\t1\n",
        'name,cost\n"drone, blue",0.5\n"two\nlines",1\n',
        " Cost \n 0.5 \n 1 \n",
        '{"cost": 0.5}\r\n{"cost": 1, "extra": null}\r\n\r\n',
        '\ufeff{"cost": 0.5}\n{"cost": 1}',
        '{"cost": "0.5"}\n{"cost": true}\n',
        '[{"cost": 0.5}, {"cost": 1}]',
        '{"cost": [0.5, 1]}',
        "cost\n0.5\n\n1\n",
        "cost,\n0.5,\n1,\n,\n",
        "Trials of May\n\nepisode,cost\n1,0.5\n2,1\n",
        "# made by us\na,cost\n1,0.5\n2,1\n",
        "# cost\n0.5\n1\n",
        "a;cost\n1;0,5\n2;1,0\n",
        "cost\n0,5\n1\n",
        'a,cost\n1,"0,5"\n2,"1,0"\n',
    ],
)
def test_variants_of_text(read, text):
    assert read(text).costs.tolist() == [0.5, 1.0]


def test_standard_input():
    code = (
        "from boundwatch.episodes import read_costs; e = read_costs('-'); print(e.costs.tolist(), e.source)"
    )
    for data in (as_csv(COSTS), gzip.compress(as_parquet(COSTS), mtime=0)):
        done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
        assert done.stdout.decode().strip() == f"{COSTS} standard input"


@pytest.mark.parametrize("name", ["success", "Success", "is_success", "next.success"])
@pytest.mark.parametrize(
    "values", [["true", "false", "true"], ["True", "False", "True"], [1, 0, 1], [1.0, 0.0, 1.0]]
)
def test_success_is_turned_round_and_binary(read, name, values):
    episodes = read(as_csv(values, name), success=name)
    assert episodes.costs.tolist() == [0.0, 1.0, 0.0]
    assert episodes.binary is True
    assert episodes.meaning == "success"


def test_success_as_truth_values(read):
    for encode in (as_jsonl, as_parquet):
        assert read(encode([True, False], "success")).costs.tolist() == [0.0, 1.0]
    array = np.array([(True,), (False,)], dtype=[("success", "?")])
    assert read(as_npy(array)).costs.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", ["reward", "episode_reward", "return"])
def test_reward_is_turned_round_within_its_range(read, name):
    episodes = read(as_csv([-200, -100, 0], name), reward=name, cost_range=(-200, 0))
    assert episodes.costs.tolist() == [1.0, 0.5, 0.0]
    assert episodes.meaning == "reward"
    assert episodes.binary is False


def test_cost_range_rescales_costs(read):
    assert read(as_csv([-1, 0, 3]), cost_range=(-1, 3)).costs.tolist() == [0.0, 0.25, 1.0]


@given(
    ends=st.tuples(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300)).filter(lambda ends: ends[0] < ends[1]),
    fraction=st.floats(0, 1),
)
def test_rescaled_costs_never_leave_the_unit_interval(tmp_path_factory, ends, fraction):
    low, high = ends
    value = min(high, max(low, low + fraction * (high - low)))
    path = tmp_path_factory.mktemp("costs") / "log"
    for name in ("cost", "reward"):
        path.write_bytes(as_csv([repr(low), repr(value), repr(high)], name))
        costs = read_costs(path, cost_range=ends).costs
        assert ((costs >= 0) & (costs <= 1)).all()
        assert sorted(costs)[0] == 0
        assert sorted(costs)[-1] == 1


def test_binary_promise_is_kept_and_checked(read):
    assert read("cost\n0\n0\n", binary=True).binary is True
    assert read("cost\n10\n20\n", cost_range=(10, 20), binary=True).costs.tolist() == [0, 1]
    with pytest.raises(
        InvalidCost,
        match=r"row 2 \(line 3\), column 'cost' = 0.4 is not 0 or 1, but binary costs were "
        "promised",
    ):
        read("cost\n0\n0.4\n", binary=True)


def test_costs_of_0_and_1_are_noticed_and_said(read):
    noticed = read("cost\n0\n1\n")
    assert noticed.binary is True
    assert "all 2 costs are 0 or 1" in noticed.notes[0]
    assert "--no-binary" in noticed.notes[0]
    assert (read("cost\n0\n1\n", binary=False).binary, read("cost\n0\n0\n").binary) == (False, False)
    assert read("cost\n0\n0.5\n").notes == ()


def test_two_directions_at_once_are_refused(read):
    with pytest.raises(InvalidSetting, match="success and cost were both given; say one thing"):
        read("a,b\n1,0\n", success="a", cost="b")


def test_columns_without_names_are_numbered(read):
    assert read("1,0.5\n2,0.25\n", cost="2").costs.tolist() == [0.5, 0.25]
    assert read("1,yes\n2,no\n", success="2").costs.tolist() == [0, 1]
    assert read("1,0\n2,1\n3,1\n", success="2").costs.tolist() == [1, 0, 0]
    assert read(as_npy(np.array([[1, 0.5], [2, 0.25]])), cost="2").costs.tolist() == [0.5, 0.25]
    assert read(as_npy(np.array([[0.5], [0.25]])), cost="1").costs.tolist() == [0.5, 0.25]
    assert read("[true, false]", success="1").costs.tolist() == [0, 1]


@pytest.mark.parametrize("words", ["true,false", "yes,no", "Ja,Nein", "1,0"])
def test_what_should_not_happen_is_a_cost_if_it_did(read, words):
    did, did_not = words.split(",")
    assert read(f"collision,t\n{did},3\n{did_not},4\n", cost="collision").costs.tolist() == [1, 0]


BAD_VALUES = [
    (
        "cost\n" + "0.2\n" * 16 + "1.4\n",
        r"row 17 (line 18), column 'cost' = 1.4 is outside [0, 1]",
        "known in advance, as cost_range=(low, high) (--cost-range LOW HIGH)",
    ),
    ("a,cost\n1,0.2\n2,-3\n", "row 2 (line 3), column 'cost' = -3 is outside [0, 1]", "known in advance"),
    ("cost\nnan\n", "row 1 (line 2), column 'cost' = nan is not finite", "give every episode a number"),
    ("cost\n0.1\ninf\n", "row 2 (line 3), column 'cost' = inf is not finite", "give every episode a number"),
    ("cost\n0.1\nabc\n", "row 2 (line 3), column 'cost' = 'abc' is not a number", "every episode needs one"),
    ("a,cost\n1,0.1\n2,\n", "row 2 (line 3), column 'cost' = '' is not a number", "every episode needs one"),
    ("cost\n0.1\n" + "x" * 90, "row 2 (line 3), column 'cost' = 'xxxx", "every episode needs one"),
    ("success\n1\n0.5\n", "row 2 (line 3), column 'success' = 0.5 is neither 0 nor 1", "--reward"),
    ("success\n1\n2\n", "row 2 (line 3), column 'success' = 2 is neither 0 nor 1", "--cost-range"),
    ("success\nyes\nmaybe\n", "row 2 (line 3), column 'success' = 'maybe' is not a word", "--success-values"),
    ("a,success\n1,yes\n2,\n", "row 2 (line 3), column 'success' = '' says nothing", "is a failure"),
    ("a,success\n1,yes\n2,n/a\n", "row 2 (line 3), column 'success' = 'n/a' says nothing", "is a failure"),
    ("cost\n5%\n", "row 1 (line 2), column 'cost' = '5%' is a percentage", "(--cost-range 0 100)"),
    ("cost\n5%\n0.1\n", "row 2 (line 3), column 'cost' = 0.1 has no %", "alike"),
    ("a;cost\n1;0,25\n2;0.5\n", "row 2 (line 3), column 'cost' = 0.5 has a decimal point", "alike"),
    ('a,cost\n1,"1,234"\n', "row 1 (line 2), column 'cost' = '1,234' could have a decimal mark", "thousands"),
    ("a;b;cost\n1;0,5;1.234\n", "row 1 (line 2), column 'cost' = 1.234 could have a decimal", "thousands"),
    ('cost\n"1,234.5"\n', "row 1 (line 2), column 'cost' = '1,234.5' is not", "nothing between thousands"),
    ("cost\n2026-05-01\n", "row 1 (line 2), column 'cost' = '2026-05-01' is not a number", "needs one"),
    ("cost\n0_1\n", "row 1 (line 2), column 'cost' = '0_1' is not a number", "every episode needs one"),
    ("cost\npass\nfail\n", "row 1 (line 2), column 'cost' = 'pass' says how the trial went", "--success"),
    (
        "a,cost\n1,0.1\n#2,0.9\n",
        "line 3 = '#2' looks like a trial that was commented out",
        "take out the #",
    ),
    ("a,cost\n1,0.1\nmean,0.1\n", "line 3 looks like a summary ('mean')", "take it out"),
    ("success\nfailure\nsuccess\n", "line 1 = 'success' could be the column's name or a trial", "--success"),
    ("a,cost\n1,0,25\n2,0,5\n", "line 2 has 3 fields, the header has 2", "in quotes"),
    ('{"cost": 0.1}\n{"cost": null}\n', "row 2 (line 2), column 'cost' = None is not a number", "needs one"),
    ('{"cost": 0.1}\n{"cost": [1]}\n', "row 2 (line 2), column 'cost' = [1] is not a number", "needs one"),
    (
        '{"success": true}\n{"success": [1]}\n',
        "row 2 (line 2), column 'success' = [1] is neither",
        "yes or no",
    ),
    ('{"cost": 0.1}\n{"cost": NaN}\n', "row 2 (line 2), column 'cost' = nan is not finite", "every episode"),
    ('{"cost": 1e400}\n', "row 1 (line 1), column 'cost' = inf is not finite", "every episode"),
    ('{"cost": 1' + "0" * 400 + "}\n", "row 1 (line 1), column 'cost' = 1000", "every episode needs one"),
    ('{"cost": 0.1}\n{"price": 1}\n', "row 2 (line 2) has no 'cost'", "every episode needs one"),
    (as_record([0.1, np.nan]), "row 2, column 'cost' = nan is not finite", "give every episode a number"),
    (as_record([0.1, 2.5]), "row 2, column 'cost' = 2.5 is outside [0, 1]", "known in advance"),
    (as_parquet([0.1, None]), "row 2, column 'cost' = None is not a number", "every episode needs one"),
    (as_parquet([0.1, 7.0]), "row 2, column 'cost' = 7 is outside [0, 1]", "known in advance"),
]

NPY = as_npy(COSTS)
PARQUET = as_parquet(COSTS)
PARQUET_FOOTER = int.from_bytes(PARQUET[-8:-4], "little") + 8
BAD_FILES = [
    ("", "is empty", "at least one episode is needed"),
    (" \n\n", "is empty", "at least one episode is needed"),
    ("\ufeff", "is empty", "at least one episode is needed"),
    ("cost\n", "holds no episodes", "at least one row is needed"),
    (as_parquet([]), "holds no episodes", "at least one row is needed"),
    ("a,cost\n1,0.1\n2\n", "line 3 has 1 fields, the header has 2", "complete it"),
    ("a,cost\n1,0.1\n2,0.1,7\n", "line 3 has 3 fields, the header has 2", "complete it"),
    ('cost\n"0.1\n', "line 2 is not valid CSV", "correct it"),
    ('{"cost": 0.1\n', "line 1 is not valid JSON", "one object on each line"),
    ('{"cost": 0.1}\n0.2\n', "line 2 is not a JSON object", "jq -c"),
    ("[[0.1], 0.2]\n", "the JSON array holds lists or a mixture", "one object or value"),
    ('[{"cost": 0.1}, {"cost"', "line 1 is not valid JSON", "array of objects"),
    ("[" * 100_000, "is not valid JSON", "one object per line"),
    (b"cost\n0,5\x81", "is not text (byte 8)", "CSV UTF-8"),
    (b"cost\n0\x00\x015\xff", "is not text", "CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0rest", "is a workbook of Excel before 2007", "save it as .xlsx"),
    (b"PK\x03\x04rest", "is a ZIP archive", "NPY"),
    (b"PK\x03\x04xl/workbook.xml", "the XLSX data is damaged", "save it again"),
    (gzip.compress(as_csv(COSTS), mtime=0)[:-9], "the gzip data is damaged or cut short", "again"),
    (gzip.compress(as_csv(COSTS), mtime=0)[:5], "the gzip data is damaged or cut short", "again"),
    (NPY[:-1], "the NPY data is damaged or cut short", "numpy.save"),
    (NPY[:20], "the NPY data is damaged or cut short", "numpy.save"),
    (as_npy(np.array([{}])), "the NPY data holds Python objects", "plain numeric array"),
    (as_npy(0.5), "the array has shape ()", "(n,) or (n, columns)"),
    (as_npy(np.zeros((2, 2, 2))), "the array has shape (2, 2, 2)", "(n,) or (n, columns)"),
    (PARQUET[:-1], "the Parquet data is damaged or cut short", "again"),
    (
        b"PAR1" + b"x" * (len(PARQUET) - PARQUET_FOOTER) + PARQUET[-PARQUET_FOOTER:],
        "the Parquet data is damaged or cut short",
        "again",
    ),
]


@pytest.mark.parametrize(("data", "fault", "remedy"), BAD_VALUES + BAD_FILES)
def test_bad_content_has_a_place_a_reason_and_a_remedy(read, tmp_path, data, fault, remedy):
    with pytest.raises(InvalidCost) as caught:
        read(data)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'log'}: {fault}")
    assert remedy in message
    assert "\n" not in message
    assert len(message) < 300 + len(str(tmp_path))


FLAGS = "success=COL (yes/no or 1/0), cost=COL (higher is worse) or reward=COL"
BAD_CHOICES = [
    (
        "cost,success\n1,0\n",
        {},
        "columns cost, success could all be meant; say which one to read: success=COL",
    ),
    ("Cost,COST\n1,0\n", {}, "has several columns named 'Cost', 'COST'; rename all but one"),
    ("a,b\n1,0\n", {}, f"no column is called cost, success, is_success or reward; say what to read: {FLAGS}"),
    (
        "a,b\n1,0\n",
        {"cost": "c"},
        "has no column 'c'; choose one with cost=... (--cost NAME); columns: a (1), b",
    ),
    ("0.1\n", {"cost": "cost"}, "has no column 'cost'; it is a list without a header: its only column is 1"),
    ("0.1\n", {}, f"no column has a name; say what to read: {FLAGS}"),
    ("1\n0\n", {}, f"no column has a name; say what to read: {FLAGS}"),
    ("true\nfalse\n", {}, f"no column has a name; say what to read: {FLAGS}"),
    ("1,0.1\n", {}, f"no column has a name; say what to read: {FLAGS}"),
    (as_npy([True, False]), {}, f"no column has a name; say what to read: {FLAGS}"),
    ("cost,cost\n0,1\n", {"cost": "cost"}, "has several columns named 'cost'; rename all but one"),
    ("cost,cost\n0,1\n", {}, "has several columns named 'cost'; rename all but one"),
    (
        "reward\n-3\n",
        {},
        "column 'reward' holds rewards; pass their least and greatest value as cost_range",
    ),
    ("success\n1\n", {"cost_range": (0, 1)}, "column 'success' holds successes, not numbers in a range"),
    ("cost\n1\n", {"success_values": ["x"]}, "success_values goes with success=... (--success COL)"),
    (
        "cost (%)\n1\n",
        {"cost": "cost (%)"},
        "column 'cost (%)' is in percent by its name; pass cost_range=(0, 100)",
    ),
    ("cost\n1\n", {"sheet": "a"}, "sheet goes with xlsx, this is csv; leave it out (--sheet)"),
    (",".join(f"c{i}" for i in range(99)) + "\n" + "0," * 98 + "0\n", {}, "no column is called"),
]


@pytest.mark.parametrize(("data", "options", "fault"), BAD_CHOICES)
def test_unclear_choices_are_refused_with_the_way_out(read, tmp_path, data, options, fault):
    with pytest.raises(InvalidSetting) as caught:
        read(data, **options)
    assert str(caught.value).removeprefix(f"{tmp_path / 'log'}: ").startswith(fault)
    assert len(str(caught.value)) < 600 + len(str(tmp_path))


@pytest.mark.parametrize(
    "ends", [(1, 0), (1, 1), (0, float("inf")), (float("nan"), 1), (-1e308, 1e308), (0, 1, 2), ("a", "b"), 3]
)
def test_bad_ranges_are_refused_before_anything_is_read(ends):
    with pytest.raises(
        InvalidSetting, match=r"^cost_range = .* is not a range; pass \(low, high\), both finite$"
    ):
        read_costs("no/such/file", cost_range=ends)


def test_no_range_is_suggested_from_the_data(read):
    with pytest.raises(InvalidCost, match=r"= -150.5 is outside \[-100, -10\]; .*known in advance") as caught:
        read("reward\n-150.5\n", cost_range=(-100, -10))
    assert str(caught.value).endswith("as cost_range=(low, high) (--cost-range LOW HIGH)")


GOOD = ["success", "Success?", "isSuccess", "success (0/1)", "reward", "accuracy", "Erfolg", "grasped"]
BAD = ["failure", "failed", "Error?", "collision", "crash", "cost", "Misserfolg", "dropped", "failure_rate"]
OPEN = [
    "gap",
    "outcome",
    "no_collision",
    "not_failed",
    "done",
    "score",
]


@pytest.mark.parametrize("name", GOOD)
def test_what_sounds_good_is_no_cost(read, name):
    with pytest.raises(InvalidSetting, match="sounds like something good, but was given as a cost"):
        read(as_csv([1, 0], name), cost=name)
    assert read(as_csv([1, 0], name), success=name).costs.tolist() == [0, 1]
    assert read(as_csv([1, 0], name), reward=name, cost_range=(0, 1)).costs.tolist() == [0, 1]


@pytest.mark.parametrize("name", BAD)
def test_what_sounds_bad_is_no_success(read, name):
    for options in ({"success": name}, {"reward": name, "cost_range": (0, 1)}):
        with pytest.raises(InvalidSetting, match="sounds like something bad, but was given as a"):
            read(as_csv([1, 0], name), **options)
    assert read(as_csv([1, 0], name), cost=name).costs.tolist() == [1, 0]


@pytest.mark.parametrize("name", OPEN)
def test_other_names_are_what_they_are_said_to_be(read, name):
    assert read(as_csv([1, 0], name), success=name).costs.tolist() == [0, 1]
    assert read(as_csv([1, 0], name), cost=name).costs.tolist() == [1, 0]


@pytest.mark.parametrize("name", sorted({*GOOD, *BAD, *OPEN} - {"success", "reward", "cost"}))
def test_nothing_but_the_four_names_is_read_unasked(read, name):
    with pytest.raises(InvalidSetting, match="no column is called cost, success, is_success or reward"):
        read(as_csv([1, 0], name))


PAIRS = ["yes/no", "y/n", "pass/fail", "ok/nok", "success/failure", "true/false", "WAHR/FALSCH", "Ja/Nein"]
PAIRS += ["oui/non", "1/0", "1.0/0.0", "passed/failed", "i.O./n.i.O.", "✓/✗", "1,0/0,0", "sí/no"]


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("case", [str, str.upper, str.lower])
def test_words_for_success_and_failure(read, pair, case):
    good, bad = map(case, pair.split("/"))
    read_back = read(f"trial;result\n1;{good}\n2;{bad}\n3; {good} \n", success="result")
    assert (read_back.costs.tolist(), read_back.binary) == ([0, 1, 0], True)


def test_words_of_ones_own(read):
    sheet = "trial;end\n1;in bin\n2;floor\n3;In Bin\n4;not in bin\n"
    episodes = read(sheet, success="end", success_values="in bin")
    assert episodes.costs.tolist() == [0, 1, 0, 1]
    assert "counted as failures" in episodes.notes[0]
    assert "'floor' (1)" in episodes.notes[0]
    for cell, fault in [
        ("in bni", "looks like 'in bin'"),
        ("yes", "usually means success"),
        ("", "says nothing"),
    ]:
        with pytest.raises(InvalidCost, match=fault):
            read(f"{sheet}5;{cell}\n", success="end", success_values=["in bin"])
    with pytest.raises(InvalidSetting, match="column 'end' has none of the words that mean success"):
        read(sheet, success="end", success_values=["table"])
    lab = bw.Certificate.from_held_out([0, 0, 0, 1], binary=True)
    failed = read(sheet, success="end", success_values=["table"], certificate=lab)  # the most adverse of all
    assert failed.costs.tolist() == [1, 1, 1, 1]
    assert "(table), so every trial counts as a failure; is one misspelled" in failed.warnings[0]
    said = read("trial;end\n1;no\n2;fail\n", success="end", success_values=["in bin"])
    assert said.costs.tolist() == [1, 1]
    steps = "ep;end\n1;in bin\n1;floor\n2;floor\n"
    last = read(steps, success="end", success_values=["in bin"], episode="ep", reduce="last")
    assert last.costs.tolist() == [1, 1]  # the word is there, if not at the end


def test_a_column_called_like_a_word_for_success_loses_no_trial(read):
    words = ["grasped", "placed"]
    with pytest.raises(InvalidSetting, match="'grasped' is the column's name and a word for success"):
        read("grasped\ngrasped\ndropped\nplaced\n", success="grasped", success_values=words)
    sheet = "trial,grasped\n1,grasped\n2,dropped\n3,placed\n"
    assert read(sheet, success="grasped", success_values=words).costs.tolist() == [0, 1, 0]


def test_what_was_skipped_is_said(read):
    notes = read("Trials of May\nby Kim\ntrial,cost\n1,0.5\n# lunch\ntrial,cost\n1,0.25\n").notes
    assert [note.split(": ")[1] for note in notes] == [
        "2 lines above the header skipped ('Trials of May', ...)",
        "comment in line 5 skipped",
        "line 6 repeats the header and was skipped",
    ]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252"])
def test_encodings(read, encoding):
    text = "Versuch;Größe;Erfolg\r\n1;0,5;ja\r\n2;1,5;nein\r\n"
    assert read(text.encode(encoding), success="erfolg").costs.tolist() == [0, 1]


def test_columns_by_any_case(read):
    episodes = read("Trial,Grasp OK,Robot\n1,yes,a\n2,no,b\n", success="grasp ok", by="ROBOT")
    assert (episodes.column, episodes.by, episodes.tasks) == ("Grasp OK", "Robot", ("a", "b"))


def test_a_header_is_not_looked_for_among_the_trials(read):
    words = "operator,outcome\nkim,success\nada,failure\n"
    with pytest.raises(InvalidSetting, match=r"columns: operator \(kim, ada\), outcome \(success, failure\)"):
        read(words)
    assert read(words, success="outcome").costs.tolist() == [0, 1]
    assert read("outcome\nsuccess\nfailure\n", success="outcome").costs.tolist() == [0, 1]


def test_numbers_that_pandas_writes_above_columns(read):
    assert read(",0\n0,0.5\n1,0.25\n", cost="0").costs.tolist() == [0.5, 0.25]
    for text in ("0\n0.5\n0.25\n", "0,1\n7,0.5\n8,0.25\n"):
        with pytest.raises(InvalidCost, match="numbers that pandas writes above columns"):
            read(text, cost="1")
    assert read("0,1\n1,0\n2,1\n", success="2").costs.tolist() == [0, 1, 0]


def test_decimal_commas_or_two_columns(read):
    with pytest.raises(InvalidCost, match="one number with a decimal comma or two columns"):
        read("0,25\n0,5\n1,0\n", cost="1")


def test_rows_that_a_spreadsheet_cut_short(read):
    assert read("trial,cost,note\n1,0.5,\n2,0.25,slipped\n3,0.75\n").costs.tolist() == [0.5, 0.25, 0.75]


def test_percentages_of_a_range(read):
    assert read("cost\n5 %\n12.5%\n", cost_range=(0, 100)).costs.tolist() == [0.05, 0.125]
    assert read("cost\n5\n12.5\n", cost_range=(0, 100)).costs.tolist() == [0.05, 0.125]


def test_the_separator_that_excel_declares(read):
    assert read("sep=;\r\na, b;cost\r\n1;0.5\r\n").costs.tolist() == [0.5]
    with pytest.raises(InvalidCost, match=r"row 1 \(line 3\), column 'cost' = 'x'"):
        read("sep=;\na;cost\n1;x\n")
    with pytest.raises(BoundwatchError):
        read("sep=;\n")


STEPS = "episode,step,success\n1,1,0\n1,2,1\n2,1,0\n"


def test_rows_that_share_an_episode_are_warned_of(read):
    (warning,) = read(STEPS).warnings
    assert "3 rows have only 2 different values of episode; if rows are steps" in warning
    assert warning.endswith("--episode episode")
    episodes = read(STEPS, episode="episode")
    assert episodes.warnings == ()
    assert (episodes.episode, episodes.reduce, episodes.costs.tolist()) == ("episode", "any", [0.0, 1.0])
    assert read(STEPS, episode="episode", reduce="last").reduce == "last"


NUMBERED_BY_ROBOT = "robot,task,episode,success\nA,pick,1,0\nB,pick,1,1\nA,pick,1,0\nA,pick,2,0\nB,pick,2,1\n"


def test_robots_that_each_count_their_episodes_are_kept_apart(read):
    episodes = read(NUMBERED_BY_ROBOT, episode="episode", by="robot")
    assert episodes.costs.tolist() == [1, 0, 1, 0]
    assert (episodes.tasks, list(episodes.lines)) == (("A", "B", "A", "B"), [2, 3, 5, 6])
    tasks = NUMBERED_BY_ROBOT.replace("A,pick,1,0\nA,pick,2", "A,place,1,0\nA,place,2")
    for text, options, remedy in (
        (NUMBERED_BY_ROBOT, {}, "keep them apart with --by robot, or give --episode a column that no two"),
        # Another column that is the same for both must not hide it.
        ("task,robot,episode,success\npick,A,1,0\npick,B,1,1\n", {}, "has robot = 'A' and 'B'"),
        (tasks, {"by": "robot"}, "would become one; give --episode a column that no two episodes share"),
    ):
        with pytest.raises(InvalidSetting, match=r"episode 1( of A)? has \w+ = '\w+' and '\w+'") as caught:
            read(text, episode="episode", **options)
        assert remedy in str(caught.value)
    # A blank cell elsewhere in the column must not hide it either.
    with pytest.raises(InvalidSetting, match="--by robot"):
        read(NUMBERED_BY_ROBOT + ",pick,3,1\n", episode="episode")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("episode,cost\n1,0\n2,0\n", {}),
        ("episode_length,cost\n9,0\n9,0\n", {}),
        ("robot,episode,cost\na,1,0\nb,1,0\n", {"by": "robot"}),
    ],
)
def test_rows_that_are_episodes_are_not(read, text, options):
    episodes = read(text, **options)
    assert (episodes.warnings, episodes.episode, episodes.reduce) == ((), None, None)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InvalidSetting, match="no such file"):
        read_costs(tmp_path / "missing.csv")
    with pytest.raises(InvalidSetting, match="is a folder, not a file"):
        read_costs(tmp_path)
    with pytest.raises(InvalidSetting, match="cannot be read, file name too long"):
        read_costs("x" * 300)


def test_parquet_without_pyarrow_names_the_extra(read, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"pip install 'boundwatch\[io\]'"):
        read(as_parquet(COSTS))


def test_pyarrow_is_not_imported_for_other_formats(tmp_path):
    (tmp_path / "log.csv").write_bytes(as_csv(COSTS))
    code = (
        "import sys; from boundwatch.episodes import read_costs; read_costs(sys.argv[1]); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "log.csv"], capture_output=True, check=True)
    assert "pyarrow" not in done.stdout.decode().split()
