"""Which column is read: the flag is the law, and a name is never judged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.certificates.certificate import Certificate
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidSetting

HEADER = ["trial", "robot", "grasped", "time"]


@given(st.sampled_from(["success", "cost", "reward"]), st.text(min_size=1).filter(str.strip))
def test_any_name_can_be_declared_to_hold_anything(kind, name):
    ends = None if kind == "success" else (0, 60)
    declared = Declared.of(**{kind: name}, cost_range=ends)
    assert declared.layout(["", name, "b" * 400]).measure == Measure(kind, name, ends)


def test_columns_are_found_in_any_case_and_spacing():
    declared = Declared.of(success=" GRASPED", by="Robot")
    assert declared.layout(HEADER).measure.column == "grasped"
    assert declared.layout(HEADER).roles == {"by": ["robot"]}
    assert Declared.of(cost="a").layout(["A", "a"]).measure.column == "a"


def test_the_header_is_the_row_that_has_the_declared_columns():
    declared = Declared.of(success="grasped", where={"robot": "arm-1"})
    assert declared.fitting([HEADER])[0]
    assert not declared.fitting([["Results of May", "", "grasped"]])[0]
    assert Declared().fitting([["trial", "Success"]])[0]
    assert not Declared().fitting([["trial", "grasped"]])[0]
    assert Declared(certified=Measure("success", "grasped")).fitting([["trial", "grasped"]])[0]


@pytest.mark.parametrize(
    ("declared", "names", "argument"),
    [
        (Declared.of(success="lifted"), HEADER, "success"),
        (Declared.of(cost="lifted"), HEADER, "cost"),
        (Declared(), HEADER, "success"),
        (Declared(), ["cost", "success"], "success"),
        (Declared.of(success="2"), [], "success"),
        (Declared(), [], "success"),
        (Declared(certified=Measure("success", "ok")), [], "success"),
        (Declared(), ["reward"], "cost_range"),
    ],
)
def test_what_is_not_known_is_asked_for(declared, names, argument):
    with pytest.raises(InvalidSetting) as refused:
        declared.layout(names)
    assert next(part for part in refused.value.remedy if isinstance(part, Argument)).name == argument


@pytest.mark.parametrize("design", [{"by": "site"}, {"where": {"site": "lab"}}, {"pair_by": ("site",)}])
def test_a_column_of_the_design_that_is_not_there_is_asked_for(design):
    with pytest.raises(InvalidSetting) as refused:
        Declared.of(success="grasped", **design).layout(HEADER)
    assert Argument(next(iter(design))) in refused.value.remedy


def test_columns_of_one_name_are_refused():
    for declared, names in ((Declared.of(cost="a"), ["A", "A "]), (Declared(), ["cost", "Cost"])):
        with pytest.raises(InvalidSetting, match="2 columns"):
            declared.layout(names)


def certified(measure):
    return Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, measure=measure)


FORCE, GRASPED = Measure("cost", "force", (0, 50)), Measure("success", "grasped", success_values=("in bin",))


@pytest.mark.parametrize(
    ("declared", "names", "says", "expected"),
    [
        (Declared(certified=GRASPED), HEADER, None, GRASPED),
        (Declared(certified=GRASPED), ["cost"], None, Measure("cost", "cost")),
        (Declared(certified=Measure("success", "success")), ["cost", "is_success"], None, "is_success"),
        (Declared(certified=Measure("success")), ["cost", "success"], None, "success"),
        (Declared(certified=FORCE), ["trial", "force"], None, FORCE),
        (Declared.of(certified(FORCE), cost="force"), ["force"], None, FORCE),
        (Declared.of(certified(FORCE), cost="grip"), ["grip"], None, Measure("cost", "grip", (0, 50))),
        (Declared.of(certified(FORCE), cost="force", cost_range=(0, 9)), ["force"], None, (0, 9)),
        (Declared.of(certified(FORCE), success="force"), ["force"], None, Measure("success", "force")),
        (Declared.of(cost_range=(0, 5)), ["reward"], None, Measure("reward", "reward", (0, 5))),
        (Declared(), ["a", "b"], ("success", "b"), Measure("success", "b")),
        (Declared(certified=Measure("cost")), [], None, Measure("cost")),
        (Declared(certified=FORCE), [], None, Measure("cost", None, (0, 50))),
        (Declared(certified=Measure("success")), [], None, Measure("success")),
        (Declared.of(success="1"), [], None, Measure("success", "1")),
        (Declared.of(certified(Measure("reward", "r", (0, 1))), reward="r"), ["r"], None, (0, 1)),
    ],
)
def test_what_is_read(declared, names, says, expected):
    """The declared column; else the certificate's; else the format's; else the customary one."""
    found = declared.layout(names, says).measure
    if isinstance(expected, str):
        assert found.column == expected
    elif isinstance(expected, tuple):
        assert found.cost_range == expected
    else:
        assert found == expected


@pytest.mark.parametrize("role", ["strata", "cluster", "by", "policy", "id"])
def test_a_column_is_not_measured_and_something_else(role):
    with pytest.raises(InvalidSetting, match=f"{role} = 'Grasped' is a column that is measured"):
        Declared.of(success="grasped", **{role: "Grasped"}).layout(HEADER)
