"""Tasks that nobody declared: asked about where rows are read as time, whatever the format."""

import json
from dataclasses import replace

import pyarrow
import pytest
from openpyxl import Workbook
from pyarrow import parquet

import boundwatch as bw
from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, InvalidCost, InvalidSetting
from boundwatch.readers import Line, read_costs
from boundwatch.watching.trials import TrialReader

ROWS = [{"Task": "mug", "success": 1}, {"Task": None, "success": 0}, {"Task": "bowl", "success": 1}]
TEXTS = {
    "csv": "success,Task\n1,mug\n0,\n1,bowl\n",
    "jsonl": "\n".join(map(json.dumps, ROWS)),
    "json": json.dumps(ROWS),
}
ANSWERS = ("strata", "by", "where")


@pytest.mark.parametrize("name", [*TEXTS, "parquet", "xlsx"])
def test_several_tasks_are_asked_about_in_every_format(tmp_path, name):
    path = tmp_path / f"log.{name}"
    if name == "parquet":
        parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    elif name == "xlsx":
        book = Workbook()
        for row in (ROWS[0], *(each.values() for each in ROWS)):
            book.active.append(list(row))
        book.save(path)
    else:
        path.write_text(TEXTS[name])
    with pytest.raises(InvalidSetting) as refused:
        read_costs(path, answers=ANSWERS)
    assert refused.value.where.column == "Task"
    assert [part for part in refused.value.remedy if isinstance(part, Argument)] == [
        Argument("strata", "Task"),
        Argument("by", "Task"),
        Argument("where", {"Task": "mug"}),
        Argument("as_is", True),
    ]
    assert read_costs(path).costs.tolist() == [0, 1, 0]  # nobody who reads them as a whole is asked
    with pytest.raises(InvalidCost, match="is empty, and rows are chosen by it"):
        read_costs(path, where={"task": "mug"}, answers=ANSWERS)


def test_a_task_by_another_name_or_one_task_is_no_question(tmp_path):
    (tmp_path / "log.csv").write_text("success,subtask,task\n1,a,mug\n0,b,mug\n1\n")
    assert len(read_costs(tmp_path / "log.csv", answers=ANSWERS)) == 3


def test_large_files_are_asked_about_as_small_ones(tmp_path):
    (tmp_path / "log.csv").write_text("task,cost\n" + "mug,0.5\n" * 200_000 + "bowl,0.5\n")
    with pytest.raises(InvalidSetting, match=r"mug, bowl"):
        read_costs(tmp_path / "log.csv", answers=ANSWERS)


def test_strata_of_a_certificate_are_no_answer_where_none_are_judged(tmp_path):
    (tmp_path / "log.csv").write_text("task,success\n" + "mug,1\nbowl,0\n" * 20)
    certificate = bw.Certificate.from_held_out(read_costs(tmp_path / "log.csv", strata="task"))
    (tmp_path / "new.csv").write_text("task,success\n" + "bowl,1\nmug,0\nmug,1\n" * 9)
    with pytest.raises(InvalidSetting, match="several values"):
        read_costs(tmp_path / "new.csv", certificate=certificate, answers=["by"])


def test_a_stream_is_asked_about_at_the_second_task_also_after_a_restart():
    def reader(**design):
        declared = Declared.of(success="ok", **design)
        return TrialReader(replace(declared, answers=("by", "where")), "log")

    first, second = [Line(1, b"task,ok"), Line(2, b"mug,yes")], [Line(3, b"mug,no"), Line(4, b"bowl,no")]
    before = reader()
    assert len(before.trials(first).trials) == 1
    after = reader()
    after.restore(before.state)
    taken = after.trials(second, lenient=True)
    assert (len(taken.trials), taken.lines, taken.fault.where.number) == (1, 1, 4)
    for design in ({"by": "task"}, {"where": {"task": "mug"}}):
        assert reader(**design).trials(first + second).fault is None
