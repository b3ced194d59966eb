"""Files that other harnesses wrote with their own writers: see `tools/record_harnesses.py`."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from boundwatch.errors import Argument, InvalidCost, InvalidSetting
from boundwatch.readers import read_costs

HERE = Path(__file__).parent / "harness"
LOG, HALTED = HERE / "inspect_robots.json", HERE / "inspect_robots_halted.json"
RECORDING = HERE / "vla_eval.sqlite"
MUG, BOWL = [0, 0, 1, 0], [1, 0, 1, 1]


def changed(path, into, change):
    content = json.loads(path.read_text())
    change(content)
    into.write_text(json.dumps(content))
    return into


def test_the_status_of_a_run_is_no_outcome(tmp_path):
    for flags in ({}, {"success": "status"}, {"cost": "status"}):
        with pytest.raises(InvalidSetting) as refused:
            read_costs(LOG, **flags)
        assert "columns: operator, success_at_end, scene_id, epoch, judged_by" in str(refused.value)
        assert "status" not in str(refused.value.remedy)
    (sheet := tmp_path / "sheet.csv").write_text("run,status\n1,success\n2,failure\n")
    with pytest.raises(InvalidCost, match=r"\(run, status\); if that one is the header, name its column"):
        read_costs(sheet)


def test_trials_are_epochs_and_scores_are_columns():
    read = read_costs(LOG, success="success_at_end", where={"scene_id": "far"})
    assert (read.file_format, read.costs.tolist()) == ("inspect-robots", [1, 1, 1])
    assert "1 of 12 trials have no outcome" in read.notes[0]
    near = read_costs(LOG, success="success_at_end", where={"scene_id": "near"}, cluster="scene_id")
    assert (near.costs.tolist(), near.trials.n) == ([0], 3)
    assert read_costs(LOG, success="operator", where={"judged_by": "judge"}).costs.tolist() == [0, 0]
    judged = read_costs(LOG, success="operator", where={"judged_by": "human"})
    assert judged.costs.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]
    assert any("2 of 12 trials were judged by a model" in note for note in judged.notes)


@pytest.mark.parametrize(("scorer", "trial"), [("success_at_end", 2), ("operator", 2)])
def test_a_trial_without_outcome_is_refused(scorer, trial):
    with pytest.raises(InvalidCost, match="has no outcome") as refused:
        read_costs(LOG, success=scorer)
    assert refused.value.where.number == trial


def test_what_a_trial_without_outcome_is_can_be_declared():
    read = read_costs(LOG, success="success_at_end", empty_as="no")
    assert (int(read.costs.sum()), len(read)) == (4, 12)
    assert any("cluster='scene_id'" in note for note in read.notes)
    with pytest.raises(InvalidCost) as refused:
        read_costs(LOG, success="success_at_end")
    assert Argument("empty_as", "no") in refused.value.remedy


def test_what_nobody_judged_is_no_failure():
    with pytest.raises(InvalidCost, match="has no outcome") as refused:
        read_costs(LOG, success="operator", where={"scene_id": "near"})
    assert refused.value.where.number == 9


def test_a_run_that_was_halted_says_so(tmp_path):
    read = read_costs(HALTED, success="success_at_end", where={"scene_id": "right"})
    assert "status 'error'" in read.warnings[0]
    assert "2 of 7 trials have no outcome" in read.notes[0]
    for scene in ({"scene_id": "a"}, {"scene_id": "a", "epochs": 3}, {"scene_id": "a", "epochs": [1]}):
        path = changed(LOG, tmp_path / "log", lambda log, scene=scene: log["samples"].append(scene))
        with pytest.raises(InvalidCost, match="not what it seems"):
            read_costs(path, success="operator")


@pytest.mark.parametrize("name", ["vla_eval.json", "vla_eval_aggregate.json", "vla_eval.sqlite"])
def test_results_and_recordings_have_the_same_episodes(name):
    where = {"benchmark": "libero"}
    read = read_costs(HERE / name, where=where, strata="task")
    tasks = dict(zip(read.keys["strata"], read.costs, strict=True))
    assert (read.file_format, set(tasks), read.binary) == ("vla-eval", {"mug", "bowl"}, True)
    for task, costs in (("mug", MUG), ("bowl", BOWL)):
        assert read_costs(HERE / name, where=where | {"task": task}).costs.tolist() == costs
    assert any("broke off with an error" in note for note in read.notes)


def test_several_benchmarks_are_asked_about():
    with pytest.raises(InvalidSetting) as refused:
        read_costs(RECORDING)
    assert Argument("where", {"benchmark": "libero"}) in refused.value.remedy
    assert read_costs(RECORDING, where={"benchmark": "simpler"}).costs.tolist() == MUG


def test_tasks_of_results_are_offered_where_order_matters():
    read = read_costs(HERE / "vla_eval.json", answers=["strata", "where"])
    assert read.design.strata == "task"


def test_an_evaluation_that_is_not_complete(tmp_path):
    path = changed(HERE / "vla_eval_aggregate.json", tmp_path / "a", lambda each: each.update(partial=True))
    assert "not complete" in read_costs(path).warnings[0]
    path = Path(shutil.copy(RECORDING, tmp_path / "b"))
    with sqlite3.connect(path) as own:
        own.execute("INSERT INTO work_queue VALUES ('r1-libero', 0, 0, NULL, 0)")
    own.close()
    assert "not complete" in read_costs(path, where={"benchmark": "libero"}).warnings[0]
    Path(f"{path}-journal").touch()
    with pytest.raises(InvalidCost, match="being written to"):
        read_costs(path)


def test_other_documents_are_refused(tmp_path):
    for change in (lambda each: each.update(tasks=3), lambda each: each["tasks"][0].pop("episodes")):
        with pytest.raises(InvalidCost, match="not what it seems"):
            read_costs(changed(HERE / "vla_eval.json", tmp_path / "c", change))
    with sqlite3.connect(tmp_path / "d") as other:
        other.execute("CREATE TABLE trials (success)")
    other.close()
    with pytest.raises(InvalidCost, match="no such table"):
        read_costs(tmp_path / "d")
    (tmp_path / "e").write_bytes(RECORDING.read_bytes()[:3000])
    with pytest.raises(InvalidCost):
        read_costs(tmp_path / "e")
