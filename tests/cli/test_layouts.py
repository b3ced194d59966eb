"""Layouts of several policies and metrics: a column, a sheet or rows for each, as labs keep them."""

import json

import openpyxl
import pytest

ACT = [True] * 9 + [False] + [True] * 9 + [False]
DP = [True, False, False, True] * 5


def word(outcome):
    return "yes" if outcome else "no"


@pytest.fixture
def wide(tmp_path):
    rows = [f"{i},{word(a)},{word(b)}" for i, (a, b) in enumerate(zip(ACT, DP, strict=True), start=1)]
    (tmp_path / "wide.csv").write_text("trial,ACT,DP\n" + "\n".join(rows) + "\n")
    return "wide.csv"


@pytest.fixture
def book(tmp_path):
    book = openpyxl.Workbook()
    for name, outcomes in (("ACT", ACT), ("DP", DP[:18])):
        sheet = book.create_sheet(name)
        for row in (["trial", "grasped"], *([i, word(each)] for i, each in enumerate(outcomes, start=1))):
            sheet.append(row)
    book.remove(book.worksheets[0])
    book.save(tmp_path / "book.xlsx")
    return "book.xlsx"


def counted(answer):
    return [
        (answer[side]["name"], answer[f"n_{side}"], round(answer[f"n_{side}"] * answer[f"mean_cost_{side}"]))
        for side in "ab"
    ]


def test_a_column_per_policy(run, wide):
    answer = json.loads(run("compare", wide, "--success", "ACT", "--success", "dp", "--json").out)
    assert (counted(answer), answer["paired"]) == ([("ACT", 20, 2), ("dp", 20, 10)], False)
    assert answer["b"]["warnings"] == []  # another column is another policy, not another measure
    columns = ("--cost", "ACT", "--cost", "DP", "--paired")
    done = run("compare", wide, *columns, "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert (counted(answer), answer["paired"]) == ([("ACT", 20, 18), ("DP", 20, 10)], True)
    assert "name each column once" in run("compare", wide, "--success", "ACT", "--success", "act").err
    assert "goes with one file" in run("compare", wide, "x.csv", "--success", "ACT", "--success", "DP").err
    assert "is not measured the way" in run("compare", wide, "--success", "ACT", "--cost", "DP").err
    mixed = run("compare", wide, "--success", "ACT", "--success", "DP", "--policy", "trial")
    assert "goes with one file" in mixed.err


def test_a_sheet_per_policy(run, book):
    options = ("--success", "grasped", "--json")
    answer = json.loads(run("compare", book, "--sheet", "ACT", "--sheet", "DP", *options).out)
    assert counted(answer) == [("ACT", 20, 2), ("DP", 18, 9)]
    for names in (("ACT", "act"), ("ACT", "1"), ("ACT", "ACT")):
        twice = run("compare", book, "--sheet", names[0], "--sheet", names[1], *options)
        assert (twice.code, "the same sheet was given twice" in twice.err) == (1, True)
    assert (
        "several --sheet go with compare"
        in run("certify", book, "--sheet", "ACT", "--sheet", "DP", "-o", "c").err
    )


def test_one_file_is_asked_how_it_holds_the_policies(run, wide):
    done = run("compare", wide)
    assert done.code == 2
    for way in ("--policy COL", "--success A --success B", "--sheet A --sheet B"):
        assert way in done.err


def test_several_columns_are_several_metrics(run, wide):
    done = run("certify", wide, "--success", "ACT", "--success", "DP", "-o", "c.json")
    assert done.code == 0, done.err
    rows = {
        line.split()[-1]: " ".join(line.split()[-4:-1]) for line in done.out.splitlines() if " of 20 " in line
    }
    assert rows == {"ACT": "2 of 20", "DP": "10 of 20"}
    assert run("check", "c.json", wide, "--allow-own").code == 0
    assert (
        "name none, or the same ones: --success ACT --success DP"
        in run("check", "c.json", wide, "--success", "ACT").err
    )
    for options in (["--at-most", "3"], ["--at-most", "3", "--follow"]):
        refused = run("certify", wide, "--success", "ACT", "--success", "DP", "-o", "d.json", *options)
        assert (refused.code, "name one column" in refused.err) == (2, True)


@pytest.mark.parametrize(
    "options",
    [
        ("--cost-range", "0", "1", "--cost-range", "0", "2"),
        ("--strata", "a", "--strata", "b"),
        ("--binary", "--no-binary"),
    ],
)
def test_what_is_given_twice_is_refused(run, wide, options):
    done = run("certify", wide, "--success", "ACT", "-o", "c.json", *options)
    assert (done.code, "can be given once" in done.err) == (2, True)
