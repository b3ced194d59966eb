"""Cells become costs: alike in one piece and one by one, and refused by the cell that is at fault."""

import dataclasses
import datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundwatch.episodes.cells import Notation, convert
from boundwatch.episodes.measure import Measure
from boundwatch.errors import Argument, InvalidCost, Place

SUCCESS, COST, TIME = Measure("success", "ok"), Measure("cost", "x"), Measure("cost", "t", (0, 60))
PERCENT, SCORE = Measure("cost", "p", (0, 100)), Measure("reward", "r", (0, 5))
NAMED = Measure("success", "ok", success_values=("grasped", "in bin"))

TEXTS = (
    "yes no S F 1 0 0.5 0,5 1,234 5% 7 n/a - pass failed maybe 9/10 grasped graspd nan inf 1_0 1.234,5 =A1 30"
)
OTHERS = [True, False, 0, 1, 0.25, 3, 70, None, float("nan"), float("inf"), 10**400, ["a"], "", "in  bin"]
OTHERS += ["5 %", datetime.date(2026, 9, 10), datetime.timedelta(seconds=12)]
CELLS = st.sampled_from([*TEXTS.split(), *OTHERS])
MEASURES = st.sampled_from([SUCCESS, COST, TIME, PERCENT, SCORE, NAMED])


def outcome(measure, cells, notation=None):
    try:
        found = convert(measure, cells, notation)
    except InvalidCost as error:
        return None, error
    return found, None


@settings(max_examples=1000)
@given(MEASURES, st.lists(CELLS, max_size=8), st.integers(0, 8))
def test_a_column_in_two_blocks_is_the_column_in_one(measure, cells, cut):
    """So a file, its blocks and a stream of its rows cannot be read in different ways."""
    notation, shown = Notation(), Notation()
    whole, refused = outcome(measure, cells, notation)
    first, early = outcome(measure, cells[:cut], shown)
    kept = Notation(**dataclasses.asdict(shown))
    second, late = (None, None) if first is None else outcome(measure, cells[cut:], kept)
    if refused is None:
        assert early is late is None
        assert np.append(first.costs, second.costs).tolist() == whole.costs.tolist()
        assert kept == notation
    else:
        index = early.cells.start if early is not None else late.cells.start + len(cells[:cut])
        found = early if early is not None else late
        assert (index, found.problem) == (refused.cells.start, refused.problem)


@given(st.sampled_from([COST, TIME, PERCENT, SCORE]), st.lists(st.floats(-1, 70) | st.just(float("nan"))))
def test_an_array_is_read_as_the_list_of_its_texts(measure, values):
    by_array, refused = outcome(measure, np.array(values, dtype=float))
    by_text, also = outcome(measure, [repr(value) for value in values])
    if refused is None:
        assert by_array.costs.tolist() == by_text.costs.tolist()
    else:
        assert (refused.cells.start, refused.problem) == (also.cells.start, also.problem)


GOOD = "yes Ja OUI sí WAHR pass ok ✓ ✔ ✔\ufe0f ✅ ☑ 👍 ○ 成功 是 i.O. éxito S 1 1.0 1,0"
BAD = "no Nein faux FALSCH fail nok ✗ ✘ ✖ ✖\ufe0f ❌ 👎 × 失败 失敗 否 n.i.O. échec F 0 0.0"
WORDS = [*((1, word) for word in GOOD.split()), *((0, word) for word in BAD.split())]


@pytest.mark.parametrize(("success", "word"), WORDS)
def test_words_for_success_and_failure(success, word):
    assert SUCCESS.costs([word, f" {word} "]).tolist() == [1 - success] * 2


def test_numbers_and_truth_values_are_outcomes():
    assert SUCCESS.costs([True, 0, 1.0, "0"]).tolist() == [0, 1, 0, 1]
    assert SUCCESS.costs(np.array([True, False])).tolist() == [0, 1]
    assert SUCCESS.costs(np.array(["yes", "no"])).tolist() == [0, 1]
    assert COST.costs(["0.5", True, 0]).tolist() == [0.5, 1, 0]


@pytest.mark.parametrize("cells", [["yes", "no", "0.5"], [0.5, "no"], ["no", 1]])
def test_a_column_of_costs_has_words_or_numbers(cells):
    with pytest.raises(InvalidCost) as refused:
        COST.costs(cells)
    assert refused.value.value == cells[-1]


@pytest.mark.parametrize("cells", [["S", "F", "T"], ["yes", "S"], ["S", "no"], ["S", "1"], ["S", "pass"]])
def test_initials_stand_alone(cells):
    """T may be a timeout beside S and F, though it is true beside F."""
    assert SUCCESS.costs(["S", "F", "s", "f"]).tolist() == [0, 1, 0, 1]
    assert SUCCESS.costs(["T", "F"]).tolist() == [0, 1]
    with pytest.raises(InvalidCost) as refused:
        SUCCESS.costs(cells)
    assert refused.value.cells.start == len(cells) - 1


REFUSED = [
    (SUCCESS, ["yes", "maybe"], 1, "success_values"),
    (SUCCESS, ["yes", "0.5"], 1, "reward"),
    (SUCCESS, [1, 3], 1, "reward"),
    (SUCCESS, ["9/10"], 0, "successes"),
    (SUCCESS, ["85 %"], 0, "successes"),
    (SUCCESS, [datetime.date(2026, 9, 10)], 0, None),
    (NAMED, ["grasped", "yes"], 1, "success_values"),
    (NAMED, ["grasped", "graspd"], 1, "success_values"),
    (COST, ["0.5", "7"], 1, "cost_range"),
    (COST, [0.5, 7], 1, "cost_range"),
    (COST, np.array([0.5, 7]), 1, "cost_range"),
    (COST, ["5 %"], 0, "cost_range"),
    (TIME, ["5 %"], 0, "cost_range"),
    (COST, ["failed"], 0, "success"),
    (COST, ["timeout"], 0, "timeout_as"),
    (COST, [10**400], 0, None),
    (PERCENT, ["5 %", "0.05"], 1, None),
    (PERCENT, ["0.05", "5 %"], 1, None),
    (TIME, ["0,5", "1.5"], 1, None),
    (TIME, ["1.5", "0,5"], 1, None),
    (TIME, ["1,234", "0,5"], 0, None),
    (TIME, ["12", datetime.timedelta(seconds=12)], 1, None),
    (TIME, ["=A1"], 0, None),
    (PERCENT, ["yes"], 0, None),
    (SCORE, ["good"], 0, "success"),
    (SCORE, ["yes"], 0, "success"),
    (SCORE, ["mug"], 0, None),
]


@pytest.mark.parametrize(("measure", "cells", "index", "argument"), REFUSED)
def test_the_cell_at_fault_is_named_with_the_argument_that_helps(measure, cells, index, argument):
    with pytest.raises(InvalidCost) as refused:
        measure.costs(cells)
    named = [part.name for part in refused.value.remedy if isinstance(part, Argument)]
    assert refused.value.cells == range(index, index + 1)
    assert named[:1] == ([] if argument is None else [argument])
    placed = refused.value.at(Place("lab.csv", "line", 17, "x"))
    assert (placed.cells.start, placed.where.number) == (index, 17)


def test_a_decimal_comma_settles_what_the_ones_after_it_mean():
    assert TIME.costs(["0,5", "1,234"]).tolist() == [0.5 / 60, 1.234 / 60]


@pytest.mark.parametrize("measure", [SUCCESS, COST, SCORE, NAMED])
@pytest.mark.parametrize("nothing", ["", None, float("nan"), " n/a "])
def test_trials_without_an_outcome_are_named_from_the_first_to_the_last(measure, nothing):
    """Nobody is told to write a failure where a trial may not have been run."""
    cells = ["grasped" if measure is NAMED else "1", nothing, nothing, "1"]
    with pytest.raises(InvalidCost) as refused:
        measure.costs(cells)
    assert refused.value.cells == range(1, 3)
    assert "not run yet?" in refused.value.remedy[0]


def test_words_that_become_failures_are_counted():
    found = convert(NAMED, ["grasped", "Floor", "in  bin", "Floor", "no"])
    assert (found.costs.tolist(), found.others) == ([0, 1, 0, 1, 1], {"Floor": 2})


def test_a_promise_of_0_and_1_is_kept():
    assert convert(COST, [0, "1"], binary=True).costs.tolist() == [0, 1]
    with pytest.raises(InvalidCost) as refused:
        convert(COST, [0, 0.5], binary=True)
    assert (refused.value.cells.start, refused.value.value) == (1, 0.5)


@given(st.lists(st.floats(0, 5), min_size=1))
def test_rewards_and_costs_of_one_range_are_complements(values):
    costs = Measure("cost", "r", (0, 5)).costs(values)
    assert SCORE.costs(values) == pytest.approx(1 - costs, abs=1e-12)
    assert ((costs >= 0) & (costs <= 1)).all()


@pytest.mark.parametrize("cells", [[True], [40, True], ["yes"]])
@pytest.mark.parametrize("kind", ["cost", "reward"])
def test_yes_is_no_number_in_another_range_than_0_to_1(kind, cells):
    with pytest.raises(InvalidCost):
        Measure(kind, "force", (0, 100)).costs(cells)
    assert Measure("cost", "dropped").costs([True, False]).tolist() == [1, 0]
