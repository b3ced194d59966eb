"""Refusals: fields first, and one sentence made of them."""

import pickle

import pytest

from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place, Refusal, sentence

REFUSED = InvalidCost("is outside [0, 1]", value="7", remedy=("pass ", Argument("cost_range", (0, 60))))


def test_a_refusal_is_completed_by_those_who_know_more():
    placed = REFUSED.of(3).at(Place("lab.csv", "line", 5, "time")).inside("archive")
    assert (placed.cells, placed.where.source) == (range(3, 4), "archive: lab.csv")
    assert (REFUSED.cells, REFUSED.where) == (range(1), None)
    assert REFUSED.of(45, 59).cells == range(45, 60)


def test_it_is_the_same_in_another_process():
    again = pickle.loads(pickle.dumps(REFUSED.of(3).at(Place("lab.csv"))))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.cells.start) == (InvalidCost, f"lab.csv: {REFUSED}", 3)


@pytest.mark.parametrize(
    ("refusal", "line"),
    [
        (REFUSED, "'7' is outside [0, 1]; pass cost_range=(0, 60)"),
        (REFUSED.at(Place("a", "line", 5)), "a: line 5 = 7 is outside [0, 1]; pass cost_range=(0, 60)"),
        (InvalidSetting("is no range", name="r", value=[1, 0]), "r = [1, 0] is no range"),
        (Refusal("have no outcome", where=Place("a", "row", 46, None, 60)), "a: rows 46-60 have no outcome"),
        (Refusal("is damaged").inside("task 'pick'").inside("a"), "a: task 'pick': is damaged"),
        (REFUSED.at(Place("a", column="c")), "a: column 'c' = 7 is outside [0, 1]; pass cost_range=(0, 60)"),
        (Refusal("is no", value=2.0, remedy=("give ", Argument("once"))), "2 is no; give once=..."),
        (Refusal("is long", value=[*range(99)]), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11... is long"),
    ],
)
def test_the_sentence_is_made_of_the_fields(refusal, line):
    assert str(refusal) == line


def test_the_reader_spells_arguments():
    assert sentence(REFUSED, lambda argument: f"--{argument.name}").endswith("pass --cost_range")
