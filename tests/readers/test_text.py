"""The parser of lines: headers, rows that are no trials, quotes, encodings; the same however lines come."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Refusal
from boundwatch.readers import Line, TextRows, arrow


def lines(data):
    return [Line(number, raw) for number, raw in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1)]


def read(data, declared=None, cuts=(), restart=False):
    """Return numbers, costs and the labels of a text that comes in these parts; a restart between them."""
    rows = TextRows(declared or Declared(), "lab.csv")
    taken = lines(data)
    blocks = []
    for start, end in zip([0, *cuts], [*cuts, len(taken)], strict=True):
        blocks += converted(rows, rows.take_lines(taken[start:end]))
        if restart:
            rows = TextRows(declared or Declared(), "lab.csv", json.loads(json.dumps(rows.state)))
    rows.end()
    return together(blocks)


def converted(rows, block):
    if block is None:
        return []
    keys = [block.columns[name] for name in rows.wanted[1:]]
    return [(block, rows.costs(block), keys)]


def together(blocks):
    costs, numbers, labels = [], [], []
    for block, found, keys in blocks:
        costs += found.costs.tolist()
        numbers += list(block.numbers)
        labels += [tuple(map(str, each)) for each in zip(*keys, strict=True)]
    return numbers, costs, labels


def of(**given):
    return Declared.of(**given)


OBJECTS = '{"n": 1, "cost": 1}\n{"n": 2, "cost": 0}\n'
READ = {  # beside what sheets.py has
    "bare numbers": ("0.5\n\n1\n", {"cost": "1"}, [1, 3], [0.5, 1]),
    "columns by number": ("1,yes\n2,no\n", {"success": "2"}, [1, 2], [0, 1]),
    "titles above the header": ("Lab 3, May\n\nsep=;\nt;ok\n1;yes\n", {"success": "ok"}, [5], [0]),
    "semicolons, and commas in a name": ("a;cost, scaled\n1;0,5\n", {"cost": "cost, scaled"}, [2], [0.5]),
    "quotes with commas and newlines": ('cost,note\n0.5,"a, ""b""\nc"\n1,"d"\n', {}, [2, 4], [0.5, 1]),
    "a quote within a cell": ('note,cost\n5" nail,0.5\n', {}, [2], [0.5]),
    "a repeated header": ("trial,cost\n1,0.5\ntrial,cost\n2,1\n", {}, [2, 4], [0.5, 1]),
    "rows that end early": ("cost,note\n0.5\n1,x\n", {}, [2, 3], [0.5, 1]),
    "empty cells at the end": ("cost,note\n0.5,x,,\n1,y\n", {}, [2, 3], [0.5, 1]),
    "blank rows": ("cost,note\n0.5,x\n,\n\n1,y\n", {}, [2, 5], [0.5, 1]),
    "tasks with numbers": ("task,cost\ntask1,0\ntask2,0\ntask3,0\nmug,1\n", {}, [2, 3, 4, 5], [0, 0, 0, 1]),
    "JSON lines": ('{"cost": 0.5}\n\n{"cost": 1, "x": 2}\n', {}, [1, 3], [0.5, 1]),
    "an empty first field": (OBJECTS + '{"n": null, "cost": 1}\n', {}, [1, 2, 3], [1, 0, 1]),
    "lists beside it": ('{"cost": 1, "steps": [{"cost": 0}]}\n', {"cost": "cost"}, [1], [1]),
    "a Monitor's returns": ('#{"t_start": 1}\nr,l,t\n5,1,2\n0,1,2\n', {"cost_range": (0, 5)}, [3, 4], [0, 1]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "numbers", "costs"), READ.values(), ids=READ)
def test_read_and_the_same_line_by_line_and_after_restarts(text, declared, numbers, costs):
    data = text.encode()
    whole = read(data, of(**declared))
    assert whole[:2] == (numbers, costs)
    each = range(1, len(lines(data)))
    assert read(data, of(**declared), each) == whole
    assert read(data, of(**declared), each, restart=True) == whole


TRIALS = OBJECTS.replace('"n"', '"trial"')
NUMBERED = "trial,cost\n1,0.5\n2,1\n3,0\n"
REFUSED = {
    "one number or two": ("0,5\n1,0\n", {"cost": "1"}, 1, None, "0,5"),
    "units in a row that looks like a trial": ("trial,cost\n-,1\n1,0.2\n2,0.4\n", {}, 2, "trial", "-"),
    "a remark": ("# lab\ncost,note\n0.5,x\n# lunch\n1,y\n", {}, 4, "cost", "# lunch"),
    "a total": (NUMBERED + "Total,0.5\n", {}, 5, "trial", "Total"),
    "a total without a name": (NUMBERED + ",0.5\n", {}, 5, "trial", ""),
    "a subtotal in a column run": ("x,run,cost\na,1,0\na,2,0\na,3,0\na,mean,0\n", {}, 5, "run", "mean"),
    "text among numbers": ("cost,note\n0.5,a\n1,b\ntimeout,c\n", {}, 4, "cost", "timeout"),
    "a word among numbers": ("cost,note\n0.5,a\n1,b\nno,c\n", {}, 4, "cost", "no"),
    "a units row": ("time,note\n3,x\n[s],\n", {"cost": "time", "cost_range": (0, 9)}, 3, "time", "[s]"),
    "another decimal mark": ("cost;x\n0.5;a\n0,25;b\n", {}, 3, "cost", "0,25"),
    "a percentage among numbers": ("cost;x\n1;a\n50%;b\n", {}, 3, "cost", "50%"),
    "a comma in a note": ("cost,note\n0.5,a, b\n", {}, 2, None, None),
    "a missing cell": ("trial,note,cost\n1,a\n", {}, 2, "cost", None),
    "a quote without end": ('cost,note\n0.5,"a\n' + "1,b\n" * 300, {}, 2, None, '0.5,"a'),
    "bytes of zero": ("cost\n0.\0005\n", {}, 2, None, None),
    "a mean among objects": (TRIALS + '{"trial": "mean", "cost": 0.5}\n', {}, 3, "trial", "mean"),
    "JSON that is cut": ('{"cost": 1}\n{"cost": 0.\n', {}, 2, None, None),
    "equal names": ('{"cost": 1, "cost": 0}\n', {}, 1, None, None),
    "equal names within": ('{"a.b": 1, "a": {"b": 2}, "cost": 0}\n', {}, 1, None, None),
    "a missing value": ('{"cost": 1}\n{"kost": 0}\n', {}, 2, "cost", None),
    "a list of costs": ('{"cost": [1, 0]}\n', {}, 1, "cost", [1, 0]),
    "a document": ('{"cost": 1, "episodes": [{"cost": 0}]}\n', {}, 1, None, None),
    "an array": ("[1,\n0]\n", {}, 1, None, None),
    "a number among objects": ('{"cost": 1}\n0.5\n', {}, 2, None, 0.5),
    "GBK": ("试验编号,成功\n1,是\n".encode("gbk"), {"success": "成功"}, 1, None, None),
    "UTF-16 that grows": ("cost\n1\n".encode("utf-16"), {}, None, None, None),
}  # fmt: skip


@pytest.mark.parametrize(("text", "declared", "number", "column", "value"), REFUSED.values(), ids=REFUSED)
def test_refused_at_a_place_also_line_by_line(text, declared, number, column, value):
    data = text if isinstance(text, bytes) else text.encode()
    for cuts in [(), range(1, len(lines(data)))]:
        with pytest.raises((InvalidCost, InvalidSetting)) as refused:
            read(data, of(**declared), cuts)
        where = refused.value.where
        assert (where.source, where.number, where.column) == ("lab.csv", number, column)
        assert refused.value.remedy != ("",)
        if value is not None:
            assert refused.value.value == value


@pytest.mark.parametrize(
    ("text", "declared", "argument"),
    [
        ("trial,ok\n1,yes\n", {}, "success"),
        ("trial,ok\n1,yes\n", {"success": "done"}, "success"),
        ("trial,ok\n1,yes\n", {"success": "ok", "by": "robot"}, "by"),
        ("x\n" * 60, {"cost": "cost"}, "cost"),
        ("1;2\n3;4\n", {}, "cost"),
        ("1\n0\n", {}, "success"),
        ('{"ok": 1}\n', {}, "reward"),
    ],
)
def test_a_column_that_is_not_there_is_asked_for(text, declared, argument):
    with pytest.raises(InvalidSetting) as refused:
        read(text.encode(), of(**declared))
    assert argument in [part.name for part in refused.value.remedy if isinstance(part, Argument)]


def test_a_state_stays_as_it_was_whatever_comes_after_it():
    rows = TextRows(of(cost="cost"), "lab.csv")
    rows.take_lines(lines(b"# lab\ntrial,cost\n1,0\n"))
    state = json.dumps(rows.state)
    given = json.loads(state)
    TextRows(of(cost="cost"), "lab.csv", given).take_lines([Line(4, b"x,0.5"), Line(5, b"trial,cost")])
    assert given == json.loads(state)


def test_nothing_is_refused():
    with pytest.raises(InvalidCost):
        read(b"\n\n", of())


@pytest.mark.parametrize(("text", "notes"), [("# a\nx,y\ncost\n1\ncost\n", 2), ("cost\n1\n", 0)])
def test_what_was_skipped_is_noted(text, notes):
    rows = TextRows(Declared(), "lab.csv")
    rows.take_lines(lines(text.encode()))
    assert len(rows.said) == notes


def test_windows_letters_are_read_and_noted():
    rows = TextRows(Declared(), "lab.csv")
    rows.take_lines(lines("Prüfer,cost\nJürgen,0.5\n".encode("cp1252")))
    assert rows.said == ["read as Windows-1252"]


plain = st.floats(0, 1).map(repr) | st.sampled_from(["0", "1", "0.5", ".5", "1.", "1e-3"])
cells = plain | st.sampled_from(
    ["", "0,5", "50%", "nan", "x", " 1 ", "+1", "１", "inf", "1e999", "0x1", "1_0"]
)
words = st.sampled_from(["mug", "can", "größe", "#1", "#x", "", "a b", "total", "5"])
tables = st.tuples(
    st.sampled_from([",", ";", "\t"]),
    st.lists(
        st.tuples(st.sampled_from(["1", "2", "#3", "4b", "x"]), cells | plain, words), min_size=1, max_size=9
    ),
    st.lists(plain, min_size=12, max_size=12),
    st.sampled_from(["", "id;cost;task\n", "\n", "# note\n", "9;1\n", '9;1;"q"\n', "9;1;x;\n", "9;1;x;y\n"]),
)


def outcome(reads):
    try:
        return reads()
    except Refusal as refused:  # which of two refusals comes first depends on what is looked at together
        return type(refused)


@settings(max_examples=300, deadline=None)
@given(tables, st.booleans())
def test_fast_and_careful_give_the_same(table, by):
    mark, rows, first, odd = table
    head = [f"{number};{cost};mug" for number, cost in enumerate(first)]
    text = "\n".join(["id;cost;task", *head, *map(";".join, rows), ""]) + odd
    data = text.replace(";", mark).encode()
    declared = of(cost="cost", **({"by": "task"} if by else {}))

    def careful():
        return read(data, declared)

    def fast():
        parser = TextRows(declared, "lab.csv")
        begun = data.index(b"\n11" + mark.encode()) + 1
        parts = [data[:begun], data[begun:]]
        blocks = [each for part in parts for block in parser.feed(part) for each in converted(parser, block)]
        parser.end()
        return together(blocks)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow, "SMALLEST", 0)
        assert outcome(fast) == outcome(careful)


def test_the_fast_path_is_taken():
    data = b"id,cost,task\n" + b"".join(b"%d,%d,mug\n" % (n, n % 2) for n in range(30_000))
    parser = TextRows(of(cost="cost", by="task"), "lab.csv")
    begun = data.index(b"\n", 3000) + 1
    parts = [data[:begun], data[begun:]]
    blocks = [each for part in parts for block in parser.feed(part) for each in converted(parser, block)]
    assert isinstance(blocks[-1][0].numbers, range)
    assert isinstance(blocks[-1][0].columns["cost"], np.ndarray)
    assert together(blocks) == read(data, of(cost="cost", by="task"))


@settings(max_examples=200, deadline=None)
@given(tables, st.data(), st.booleans())
def test_any_cuts_give_the_same(table, data, restart):
    mark, rows, first, odd = table
    text = "\n".join(
        ["id;cost;task", *(f"{n};{c};can" for n, c in enumerate(first[:2])), *map(";".join, rows), ""]
    )
    content = (text + odd).replace(";", mark).encode()
    count = len(lines(content))
    cuts = sorted(data.draw(st.sets(st.integers(1, count - 1), max_size=5)))

    whole = outcome(lambda: read(content, of(cost="cost")))
    assert outcome(lambda: read(content, of(cost="cost"), cuts, restart)) == whole


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(plain, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
        min_size=1,
        max_size=9,
    )
)
def test_other_columns_may_hold_any_text(rows):
    """Whatever is in a column that is neither declared nor numbers rows, costs are the same."""

    def quoted(text):
        return '"' + text.replace('"', '""').replace("\0", "") + '"'

    data = "".join(["cost,note\n", *(f"{cost},{quoted(note)}\n" for cost, note in rows)]).encode()
    assert read(data, of(cost="cost"))[1] == [float(cost) for cost, _ in rows]


def test_a_refused_layout_says_of_which_stream():
    with pytest.raises(InvalidSetting, match=r"^log: is a list, and "):
        TextRows(Declared(), "log").take_lines([Line(1, b"0")])
