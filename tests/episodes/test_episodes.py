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
from hypothesis import given
from hypothesis import strategies as st

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
    episodes = read(compress(encode(COSTS)))
    assert episodes.costs.tolist() == COSTS
    assert episodes.costs.dtype == np.float64
    assert episodes.binary is False
    assert episodes.meaning == "cost"
    assert episodes.column == (None if encode in (as_bare_csv, as_npy) else "cost")


@pytest.mark.parametrize("encode", FORMATS)
@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_costs_survive_to_the_last_bit(tmp_path_factory, encode, values):
    path = tmp_path_factory.mktemp("costs") / "log"
    path.write_bytes(encode(values))
    assert read_costs(path).costs.tolist() == values


@given(rows=st.lists(st.tuples(st.text(), st.floats(0, 1)), min_size=1), quoting=st.sampled_from([0, 1]))
def test_other_columns_may_hold_any_text(tmp_path_factory, rows, quoting):
    path = tmp_path_factory.mktemp("costs") / "log.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=quoting).writerows([("note", "cost"), *rows])
    assert read_costs(path).costs.tolist() == [cost for _, cost in rows]


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
        "0.5\n1e0\n",
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
    episodes = read(as_csv(values, name), column=name)
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
    episodes = read(as_csv([-200, -100, 0], name), column=name, cost_range=(-200, 0))
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
    assert read("0\n1\n", binary=True).binary is True
    assert read("0\n1\n").binary is False
    assert read("10\n20\n", cost_range=(10, 20), binary=True).costs.tolist() == [0, 1]
    with pytest.raises(
        InvalidCost, match=r"row 2 \(line 2\) = 0.4 is not 0 or 1, but binary costs were promised"
    ):
        read("0\n0.4\n", binary=True)


def test_columns_without_names_are_numbered(read):
    assert read("1,0.5\n2,0.25\n", column="2").costs.tolist() == [0.5, 0.25]
    assert read(as_npy(np.array([[1, 0.5], [2, 0.25]])), column="2").costs.tolist() == [0.5, 0.25]
    assert read(as_npy(np.array([[0.5], [0.25]]))).costs.tolist() == [0.5, 0.25]


def test_a_column_by_any_other_name_is_a_cost_when_chosen(read):
    assert read("collision,cost\ntrue,0.1\nfalse,0.2\n", column="collision").costs.tolist() == [1, 0]


BAD_VALUES = [
    (
        "cost\n" + "0.2\n" * 16 + "1.4\n",
        r"row 17 (line 18), column 'cost' = 1.4 is outside [0, 1]",
        "known beforehand, as cost_range=(low, high) (--cost-range LOW HIGH)",
    ),
    ("0.2\n" * 16 + "1.4\n", "row 17 (line 17) = 1.4 is outside [0, 1]", "--cost-range LOW HIGH"),
    ("a,cost\n1,0.2\n2,-3\n", "row 2 (line 3), column 'cost' = -3 is outside [0, 1]", "known beforehand"),
    ("cost\nnan\n", "row 1 (line 2), column 'cost' = nan is not finite", "give every episode a number"),
    ("cost\n0.1\ninf\n", "row 2 (line 3), column 'cost' = inf is not finite", "give every episode a number"),
    ("cost\n0.1\nabc\n", "row 2 (line 3), column 'cost' = 'abc' is not a number", "every episode needs one"),
    ('cost\n0.1\n""\n', "row 2 (line 3), column 'cost' = '' is not a number", "every episode needs one"),
    ("a,cost\n1,0.1\n2,\n", "row 2 (line 3), column 'cost' = '' is not a number", "every episode needs one"),
    ("cost\n0.1\n" + "x" * 90, "row 2 (line 3), column 'cost' = 'xxxx", "every episode needs one"),
    ("success\n1\n0.5\n", "row 2 (line 3), column 'success' = 0.5 is not true, false, 0 or 1", "1 - rate"),
    ("success\nyes\n", "row 1 (line 2), column 'success' = 'yes' is not true, false, 0 or 1", "one of these"),
    ("success\nY\n", "row 1 (line 2), column 'success' = 'Y' is not true, false, 0 or 1", "one of these"),
    ("cost\n5%\n", "row 1 (line 2), column 'cost' = '5%' is not a number", "write 0.05, not 5%"),
    ("5%\n3%\n", "line 1: '5%' is not a number", "write 0.05, not 5%"),
    ("a;cost\n1;0,25\n", "row 1 (line 2), column 'cost' = '0,25' is not a number", "decimals with a point"),
    ('"0,25"\n"0,5"\n', "line 1: '0,25' is not a number", "decimals with a point"),
    ("cost\n0,25\n", "line 2 has 2 fields, the first line has 1", "decimals with a point"),
    ('cost\n"1,234.5"\n', "row 1 (line 2), column 'cost' = '1,234.5' is not", "nothing between thousands"),
    ("cost\n0_1\n", "row 1 (line 2), column 'cost' = '0_1' is not a number", "every episode needs one"),
    (
        "reward\n3\nbad\n",
        "row 2 (line 3), column 'reward' = 'bad' is not a number",
        "every episode needs one",
    ),
    ("cost\n# broken\n0.1\n", "row 1 (line 2), column 'cost' = '# broken' is a comment", "take out the #"),
    ("# costs\n0.1\n", "line 1: '# costs' is a comment", "take out the #"),
    ("# made by us\na,cost\n1,0.1\n", "line 1: '# made by us' is a comment", "take out the #"),
    ("true\nfalse\n", "row 1 (line 1) = true could be success or failure", "name the column"),
    ('{"cost": 0.1}\n{"cost": null}\n', "row 2 (line 2), column 'cost' = None is not a number", "needs one"),
    ('{"cost": 0.1}\n{"cost": [1]}\n', "row 2 (line 2), column 'cost' = [1] is not a number", "needs one"),
    ('{"cost": 0.1}\n{"cost": NaN}\n', "row 2 (line 2), column 'cost' = nan is not finite", "every episode"),
    ('{"cost": 1e400}\n', "row 1 (line 1), column 'cost' = inf is not finite", "every episode"),
    ('{"cost": 1' + "0" * 400 + "}\n", "row 1 (line 1), column 'cost' = 1000", "every episode needs one"),
    ('{"cost": 0.1}\n{"price": 1}\n', "row 2 (line 2) has no 'cost'", "every episode needs one"),
    (as_npy([0.1, np.nan]), "row 2 = nan is not finite", "give every episode a number"),
    (as_npy([0.1, 2.5]), "row 2 = 2.5 is outside [0, 1]", "known beforehand"),
    (as_npy([True, False]), "row 1 = True could be success or failure", "name the column"),
    (as_npy(["a", "b"]), "row 1 = 'a' is not a number", "every episode needs one"),
    (as_npy([1j]), "row 1 = 1j is not a number", "every episode needs one"),
    (as_parquet([0.1, None]), "row 2, column 'cost' = None is not a number", "every episode needs one"),
    (as_parquet([0.1, 7.0]), "row 2, column 'cost' = 7.0 is outside [0, 1]", "known beforehand"),
]

NPY = as_npy(COSTS)
PARQUET = as_parquet(COSTS)
PARQUET_FOOTER = int.from_bytes(PARQUET[-8:-4], "little") + 8
BAD_FILES = [
    ("", "is empty", "at least one episode is needed"),
    (" \n\n", "is empty", "at least one episode is needed"),
    ("\ufeff", "is empty", "at least one episode is needed"),
    ("cost\n", "holds no episodes", "at least one row is needed"),
    (as_npy([]), "holds no episodes", "at least one row is needed"),
    (as_npy(np.zeros((3, 0))), "holds no episodes", "at least one row is needed"),
    (as_parquet([]), "holds no episodes", "at least one row is needed"),
    ("a,cost\n1,0.1\n2\n", "line 3 has 1 fields, the first line has 2", "complete it"),
    ("a,cost\n1,0.1\n2,0.1,7\n", "line 3 has 3 fields, the first line has 2", "complete it"),
    ("cost\n0.1\n\n0.2\n", "line 3 is empty", "take it out"),
    ('cost\n"0.1\n', "line 2 is not valid CSV", "correct it"),
    ('{"cost": 0.1}\n\n{"cost": 0.1}\n', "line 2 is not valid JSON", "one object on each line"),
    ('{"cost": 0.1\n', "line 1 is not valid JSON", "one object on each line"),
    ('{"cost": 0.1}\n0.2\n', "line 2 is not a JSON object", "jq -c"),
    ("[0.1, 0.2]\n", "line 1 is not a JSON object", "jq -c"),
    ("[" * 100_000, "line 1 is not valid JSON", "one object on each line"),
    ("kosten: 0,5\u20ac".encode("latin-1", "replace") + b"\xff", "is not UTF-8 text (byte 12)", "CSV UTF-8"),
    ("cost\n0.1\n".encode("utf-16"), "is not UTF-8 text (byte 0)", "in Excel"),
    (b"PK\x03\x04rest", "is a ZIP archive", "numpy.save"),
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


BAD_CHOICES = [
    ("cost,success\n1,0\n", {}, "columns cost, success could all be meant; choose one with column='cost'"),
    ("a,b\n1,0\n", {}, "has no column named cost, success or reward; choose one of 'a', 'b' with column=..."),
    ("is_success\n1\n", {}, "has no column named cost, success or reward; choose one of 'is_success'"),
    (
        "a,b\n1,0\n",
        {"column": "cost"},
        "has no column 'cost'; choose one of 'a', 'b' with column=... (--column NAME)",
    ),
    ("0.1\n", {"column": "cost"}, "has no column 'cost'; it is a list of numbers without names"),
    ("1,0.1\n", {}, "has several columns without names; choose one of '1', '2'"),
    ("cost,cost\n0,1\n", {"column": "cost"}, "has several columns named 'cost'; rename all but one"),
    ("cost,cost\n0,1\n", {}, "has several columns named 'cost'; rename all but one"),
    (
        "0,25\n0,5\n",
        {},
        "has several columns without names; write decimals with a point (0.25) or choose one",
    ),
    (
        "reward\n-3\n",
        {},
        "column 'reward' holds rewards; pass their least and greatest value as cost_range",
    ),
    ("success\n1\n", {"cost_range": (0, 1)}, "column 'success' holds successes, not numbers in a range"),
    (",".join(f"c{i}" for i in range(99)) + "\n" + "0," * 98 + "0\n", {}, "has no column named"),
]


@pytest.mark.parametrize(("data", "options", "fault"), BAD_CHOICES)
def test_unclear_choices_are_refused_with_the_way_out(read, tmp_path, data, options, fault):
    with pytest.raises(InvalidSetting) as caught:
        read(data, **options)
    assert str(caught.value).startswith(f"{tmp_path / 'log'}: {fault}")
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


@pytest.mark.parametrize(
    "ends", [(1, 0), (1, 1), (0, float("inf")), (float("nan"), 1), (-1e308, 1e308), (0, 1, 2), ("a", "b"), 3]
)
def test_bad_ranges_are_refused_before_anything_is_read(ends):
    with pytest.raises(
        InvalidSetting, match=r"^cost_range = .* is not a range; pass \(low, high\), both finite$"
    ):
        read_costs("no/such/file", cost_range=ends)


def test_no_range_is_suggested_from_the_data(read):
    with pytest.raises(InvalidCost, match=r"= -150.5 is outside \[-100, -10\]; .*known beforehand") as caught:
        read("reward\n-150.5\n", cost_range=(-100, -10))
    assert str(caught.value).endswith("as cost_range=(low, high) (--cost-range LOW HIGH)")


BETTER = [
    "score",
    "accuracy",
    "success_rate",
    "SuccessRate",
    "progress",
    "not_success",
    "success_reward",
    "rate",
]


@pytest.mark.parametrize("name", BETTER)
def test_names_of_which_more_may_be_better_are_refused(read, name):
    for options in ({}, {"cost_range": (0, 1)}):
        with pytest.raises(InvalidSetting, match="may be better when it is higher; rename it to cost if"):
            read(as_csv([1, 0], name), column=name, **options)


@pytest.mark.parametrize(
    "name", ["Success?", "succeeded", "successful", "success (0/1)", "isSuccess", "SUCCESS"]
)
def test_successes_by_other_names(read, name):
    episodes = read(as_csv([1, 0], name), column=name)
    assert (episodes.costs.tolist(), episodes.meaning) == ([0.0, 1.0], "success")


@pytest.mark.parametrize("name", ["gap", "failure_rate", "collision", "Error?", "cost [1]"])
def test_costs_by_other_names(read, name):
    episodes = read(as_csv([1, 0], name), column=name)
    assert (episodes.costs.tolist(), episodes.meaning) == ([1.0, 0.0], "cost")


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
