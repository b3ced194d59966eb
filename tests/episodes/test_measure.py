"""Measure and Design: declared, refused where they contradict themselves, and kept as JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch._support.schema import convert
from boundwatch.episodes.declared import Declared
from boundwatch.episodes.measure import Design, Measure
from boundwatch.errors import Argument, InvalidSetting, SchemaMismatch

NAMES = st.text(min_size=1, max_size=8).filter(str.strip)
RANGES = st.tuples(st.integers(-50, 50), st.integers(1, 50)).map(lambda ends: (ends[0], ends[0] + ends[1]))
WORDS = st.lists(st.text("abc", min_size=1), max_size=3).map(tuple)
MEASURES = st.one_of(
    st.builds(Measure, st.just("success"), NAMES | st.none(), success_values=WORDS),
    st.builds(Measure, st.just("cost"), NAMES | st.none(), RANGES | st.none()),
    st.builds(Measure, st.just("reward"), NAMES | st.none(), RANGES),
    st.builds(Measure, st.sampled_from(["successes", "failures"]), NAMES, trials=NAMES | st.none()),
    st.builds(Measure, st.just("cost"), NAMES, count=NAMES, empty_as=st.text(), timeout_as=st.floats(0, 1)),
)
DESIGNS = st.builds(
    Design,
    strata=NAMES | st.none(),
    cluster=NAMES | st.none(),
    pair_by=st.lists(st.text("abc", min_size=1), max_size=2).map(tuple),
    episode=NAMES,
    reduce=st.sampled_from([None, "any", "sum", "mean", "max", "last"]),
    where=st.dictionaries(NAMES, st.text()),
)


@given(MEASURES)
def test_a_measure_survives_json(measure):
    again = convert(Measure, json.loads(json.dumps(measure.to_dict())))
    assert (again, hash(again)) == (measure, hash(measure))


@given(DESIGNS)
def test_a_design_survives_json(design):
    again = convert(Design, json.loads(json.dumps(design.to_dict())))
    assert (again, hash(again)) == (design, hash(design))


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ({"kind": "success", "cost_range": (0, 5)}, "cost_range"),
        ({"kind": "reward"}, "cost_range"),
        ({"kind": "cost", "success_values": ("yes",)}, "success_values"),
        ({"kind": "reward", "cost_range": (0, 5), "success_values": ("yes",)}, "success_values"),
        ({"kind": "success", "trials": "n"}, "successes"),
        ({"kind": "successes", "count": "n"}, "success"),
        ({"kind": "failures", "trials": "n", "empty_as": "0"}, "cost"),
        ({"kind": "success", "timeout_as": 1}, "reward"),
        ({"kind": "successes", "cost_range": (0, 1)}, "trials"),
        ({"kind": "successes", "trials": "n", "success_values": ("yes",)}, "success_values"),
    ],
)
def test_contradictions_are_refused_with_the_argument_at_fault(arguments, remedy):
    with pytest.raises(InvalidSetting) as refused:
        Measure(column="x", **arguments)
    assert Argument(remedy) in refused.value.remedy


@pytest.mark.parametrize("ends", [(1, 0), (0, 0), (0, float("inf")), (float("nan"), 1), (1,), 3, "ab"])
def test_what_is_no_range_is_refused(ends):
    with pytest.raises(InvalidSetting) as refused:
        Measure("cost", "x", ends)
    assert (refused.value.name, refused.value.value) == ("cost_range", ends)


def test_one_column_is_read():
    assert Declared.of().measure is None
    assert Declared.of(cost="time", cost_range=(0, 60)).measure == Measure("cost", "time", (0, 60))
    with pytest.raises(InvalidSetting):
        Declared.of(cost="time", success="grasped")
    with pytest.raises(InvalidSetting) as refused:
        Declared.of(success=" ")
    assert refused.value.name == "success"


@pytest.mark.parametrize(
    ("kind", "content", "name"),
    [
        (Measure, {"kind": "luck"}, "measure.kind"),
        (Measure, {}, "measure.kind"),
        (Measure, {"kind": "cost", "unit": "s"}, "measure.unit"),
        (Measure, {"kind": "cost", "cost_range": [0, float("inf")]}, "measure"),
        (Design, {"strata": 3}, "design.strata"),
        (Design, {"task": "x"}, "design.task"),
        (Design, {"where": {"site": 3}}, "design.where[...]"),
        (Design, {"reduce": "median", "episode": "e"}, "design.reduce"),
    ],
)
def test_other_json_is_refused_with_the_path_of_its_field(kind, content, name):
    with pytest.raises(SchemaMismatch) as refused:
        convert(kind, content, kind.__name__.lower())
    assert refused.value.name == name


def test_reduce_goes_with_episode():
    with pytest.raises(InvalidSetting) as refused:
        Design(reduce="mean")
    assert refused.value.name == "reduce"
    assert Argument("episode") in refused.value.remedy
