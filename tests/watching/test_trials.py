"""Lines become trials; a stream and a file mean the same."""

import json

import pytest

from boundwatch.episodes.declared import Declared
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.readers import Line, read_costs
from boundwatch.watching.sources import open_lines
from boundwatch.watching.trials import Trial, TrialReader, read_on, trials_of


def lines(text):
    return [Line(number, raw) for number, raw in enumerate(text.encode().split(b"\n"), 1) if raw]


def reader(**columns):
    return TrialReader(Declared.of(**columns), "log")


SHEETS = {
    "a title above the header": "My trials\n\ntrial,operator,ok\n1,Ann,yes\n2,Max,no\n3,Max,yes\n",
    "semicolons and decimal commas": "trial;cost\n1;0,5\n2;0,25\n3;1\n",
    "JSON lines": '{"n": 1, "ok": true}\n{"n": 2, "ok": false}\n',
    "bare numbers": "0.5\n0.25\n1\n",
    "notes in quotes over two lines": 'ok,note\nyes,"a\nb"\nno,c\n',
    "repeated header": "trial,ok\n1,yes\ntrial,ok\n2,no\n",
}


@pytest.mark.parametrize("sheet", SHEETS)
def test_a_stream_and_a_file_mean_the_same(tmp_path, sheet):
    text = SHEETS[sheet]
    (tmp_path / "f.csv").write_text(text)
    columns = {"success": "ok"} if "ok" in text else {"cost": "1"} if text[0] == "0" else {}
    whole = trials_of(read_costs(tmp_path / "f.csv", **columns))
    followed = [
        one for one in read_on(open_lines(str(tmp_path / "f.csv")), reader(**columns)) if type(one) is Trial
    ]
    assert [(one.number, one.cost) for one in followed] == [(one.number, one.cost) for one in whole]
    for size in (1, 2, 3):
        some, given = reader(**columns), lines(text)
        found = []
        for start in range(0, len(given), size):
            taken = some.trials(given[start : start + size])
            found += taken.trials
            again = reader(**columns)  # as after a kill
            again.restore(json.loads(json.dumps(some.state)))
            some = again
        assert found == followed


def test_lines_before_a_malformed_one_are_read_and_the_rest_if_it_is_passed_over():
    given = lines("trial,cost\n1,0.5\n2,x\n3,0.25\n")
    strict = reader().trials(given)
    assert ([one.cost for one in strict.trials], strict.lines) == ([0.5], 2)
    assert (strict.fault.where.number, strict.fault.where.column) == (3, "cost")
    lenient = reader().trials(given, lenient=True)
    assert [one.number for one in lenient.trials] == [2, 4]
    assert [number for number, _ in lenient.skipped] == [3]


def test_reading_goes_back_to_the_last_trial_that_was_counted():
    some, given = reader(), lines("cost\n0.5\n\n0.25\n0.75\n")
    before = some.state
    assert len(some.trials(given).trials) == 3
    done = some.go_back(before, given, 2)
    assert [one.cost for one in some.trials(given[done:]).trials] == [0.75]


def test_ids_and_tasks():
    some = reader(success="ok", by="robot", id="n", where={"site": "lab"})
    found = some.trials(lines("n;robot;site;ok\n7;arm;lab;no\n8;arm;home;no\nx;arm;lab;yes\n")).trials
    assert found == [Trial(2, 1.0, "arm", 7), Trial(4, 0.0, "arm", "x")]
    fault = some.trials([Line(5, b";arm;lab;yes")]).fault
    assert (fault.where.number, fault.where.column) == (5, "n")


def test_predictions_are_columns():
    some = reader(predicted="critic", unlabeled="others")
    text = '{"cost": 0.5, "critic": 0.4, "others": "0.1 0.2"}\n{"cost": 0.5, "critic": null, "others": ""}\n'
    assert [one.predictions for one in some.trials(lines(text)).trials] == [(0.4, [0.1, 0.2]), None]
    assert isinstance(some.trials([Line(3, b'{"cost": 0, "critic": "x", "others": ""}')]).fault, InvalidCost)


def test_a_missing_column_is_refused_by_its_name():
    fault = reader(success="grasped").trials(lines('{"ok": true}\n')).fault
    assert isinstance(fault, InvalidCost | InvalidSetting)
    assert "grasped" in str(fault)


def test_rows_that_were_not_asked_for_may_lack_an_outcome_in_a_stream_as_in_a_file(tmp_path):
    text = "site,ok\nfield,yes\nlab,\nlab,aborted\nfield,no\n"
    (tmp_path / "f.csv").write_text(text)
    whole = trials_of(read_costs(tmp_path / "f.csv", success="ok", where={"site": "field"}))
    for size in (1, 2, 5):
        some, given = reader(success="ok", where={"site": "field"}), lines(text)
        taken = [some.trials(given[start : start + size]) for start in range(0, len(given), size)]
        assert [each.fault for each in taken] == [None] * len(taken)
        found = [one for each in taken for one in each.trials]
        assert [(one.number, one.cost) for one in found] == [(one.number, one.cost) for one in whole]
    assert [one.cost for one in whole] == [0.0, 1.0]


def test_an_id_of_thousands_of_digits_is_a_name():
    digits = "9" * 5000
    taken = reader(success="ok", id="n").trials(lines(f"n,ok\n7,yes\n{digits},no\n"))
    assert [one.id for one in taken.trials] == [7, digits]


MIXED = {
    "a word above numbers": ["yes", "0.5", "0.25"],
    "a number below words": ["no", "yes", "0.5"],
    "far below": ["no"] * 700 + ["1"],
    "a word below numbers": ["0.5", "yes"],
}


@pytest.mark.parametrize("mixed", MIXED)
def test_words_and_numbers_in_a_column_of_costs_are_refused_however_lines_come(tmp_path, mixed):
    text = "".join(f"{cell}\n" for cell in ["v", *MIXED[mixed]])
    (tmp_path / "f.csv").write_text(text)
    with pytest.raises(InvalidCost):
        read_costs(tmp_path / "f.csv", cost="v")
    for size in (1, 2, 1000):
        some, given = reader(cost="v"), lines(text)
        faults = [some.trials(given[at : at + size]).fault for at in range(0, len(given), size)]
        assert any(isinstance(fault, InvalidCost) for fault in faults)


def test_a_row_that_was_not_asked_for_may_be_empty_below_a_word(tmp_path):
    (tmp_path / "f.csv").write_text("site,v\nlab,no\nfield,\n")
    assert read_costs(tmp_path / "f.csv", cost="v", where={"site": "lab"}).costs.tolist() == [0.0]


def test_a_whole_number_is_one_id_however_json_writes_it():
    some = reader(success="ok", id="trial")
    lines = [Line(1, b'{"trial": 1, "ok": true}'), Line(2, b'{"trial": 1.0, "ok": true}')]
    assert [repr(trial.id) for trial in some.trials(lines).trials] == ["1", "1"]
