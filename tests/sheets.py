"""Sheets as labs have them, each with the costs that a person would read off, or with how it is refused.

`write(folder)` writes all of them as files, for trying them by hand::

    python -c "import sheets, pathlib; sheets.write(pathlib.Path('sheets'))"
"""

from __future__ import annotations

import datetime
import io
import json
import re
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import openpyxl

from boundwatch.errors import InvalidCost, InvalidSetting, Refusal

# The outcomes that most sheets hold: whether each trial succeeded.
OUTCOMES = [True, True, False, True, False, True, True, True]
COSTS = [0.0 if outcome else 1.0 for outcome in OUTCOMES]


@dataclass(frozen=True)
class Sheet:
    """A file, what somebody would declare, and the costs in it or the refusal, with what that asks for."""

    name: str
    data: bytes
    flags: dict[str, Any] = field(default_factory=dict)
    costs: list[float] | None = None
    refused: type[Refusal] | None = None
    asks: tuple[str, ...] = ()
    noted: str = ""


def rows(good: str, bad: str, separator: str = ",", end: str = "\n", extra: str = "") -> str:
    return "".join(
        f"{i}{separator}{good if outcome else bad}{extra}{end}" for i, outcome in enumerate(OUTCOMES, start=1)
    )


def text(name: str, content: str, flags: dict[str, Any] | None = None, **what: Any) -> Sheet:
    encoding = what.pop("encoding", "utf-8")
    return Sheet(name, content.encode(encoding), flags or {}, **what)


def workbook(
    name: str, sheets: dict[str, list[list[Any]]], flags: dict[str, Any] | None = None, **what: Any
) -> Sheet:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, lines in sheets.items():
        sheet = book.create_sheet(title)
        for line in lines:
            sheet.append(line)
        for row in sheet.iter_rows():
            for cell in row:
                if what.get("percent") and isinstance(cell.value, float):
                    cell.number_format = "0.0%"
                if isinstance(cell.value, datetime.time):
                    cell.number_format = what["time"]
    what.pop("percent", None)
    what.pop("time", None)
    for row in what.pop("hidden", ()):
        sheet.row_dimensions[row].hidden = True
    file = io.BytesIO()
    book.save(file)
    return Sheet(name, file.getvalue(), flags or {}, **what)


def declared(extent: str, sheet: Sheet) -> Sheet:
    """Return a workbook whose sheet says that it has this extent, whatever it has."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(sheet.data)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            extent_tag = f'<dimension ref="{extent}"'.encode()
            new.writestr(name, re.sub(rb'<dimension ref="[^"]*"', extent_tag, old.read(name)))
    return replace(sheet, data=file.getvalue())


ROBOT = [
    ["Trial", "Robot", "Success"],
    *([i, "arm-1", "yes" if ok else "no"] for i, ok in enumerate(OUTCOMES, 1)),
]
JSON = [{"trial": i, "outcome": "pass" if ok else "fail"} for i, ok in enumerate(OUTCOMES, start=1)]
ASK = ("success", "cost", "reward")
COUNTS = ("successes", "trials")

OK_N = {"successes": "ok", "trials": "n"}
OK_OF_N = {"successes": "successes", "trials": "trials"}


def counts(*pairs: tuple[int, int]) -> list[float]:
    """Return the costs of k successes in n trials, row by row."""
    return [float(cost) for k, n in pairs for cost in [0] * k + [1] * (n - k)]


SHEETS = [
    # Typed by hand
    text("yes_no.csv", "trial,success\n" + rows("yes", "no"), costs=COSTS),
    text("Yes_No_capital_header.csv", "Trial,SUCCESS\n" + rows("Yes", "NO"), costs=COSTS),
    text("pass_fail.csv", "trial,result\n" + rows("pass", "fail"), {"success": "result"}, costs=COSTS),
    text("ok_nok.csv", "trial,check\n" + rows("OK", "nok"), {"success": "check"}, costs=COSTS),
    text("y_n_tabs.tsv", "trial\tgrasped\n" + rows("y", "N", "\t"), {"success": "Grasped"}, costs=COSTS),
    text("success_failure.csv", "trial,outcome\n" + rows("Success", "Failure"), {"success": "outcome"}, costs=COSTS),
    text("ones.csv", "trial,lifted\n" + rows("1", "0"), {"success": "lifted"}, costs=COSTS),
    text("is_success.csv", "trial,is_success\n" + rows("True", "False"), costs=COSTS),
    text("ticks.csv", "trial,placed\n" + rows("✓", "✗"), {"success": "placed"}, costs=COSTS),
    text("mixed_words.csv", "trial,ok\n1,yes\n2,Y\n3,no\n4,1\n5,fail\n6,pass\n7,TRUE\n8,ok\n", {"success": "ok"}, costs=COSTS),
    text("blank_lines.csv", "\n\ntrial,success\n\n" + rows("yes", "no").replace("4,", "\n4,") + "\n\n", costs=COSTS),
    text("trailing_commas.csv", "trial,success,,\n" + rows("yes", "no", extra=",,") + ",,,\n,,,\n", costs=COSTS),
    text("notes_cut_short.csv", "trial,success,note\n1,yes,\n2,yes,\n3,no,slipped\n4,yes\n5,no\n6,yes\n7,yes\n8,yes\n", costs=COSTS),
    text("title.csv", "Grasping trials\nMay 2026, Ulm\n\ntrial,success\n" + rows("yes", "no"), costs=COSTS, noted="above the header: 2"),
    text("comments.csv", "# robot: arm-1\n# policy: v7\ntrial,success\n" + rows("yes", "no"), costs=COSTS, noted="above the header: 2"),
    text("padded_title.csv", "Grasping trials,,\n,,\ntrial,robot,success\n" + rows("arm,yes", "arm,no"), costs=COSTS, noted="above the header: 2"),
    text("remark_below.csv", "trial,success,notes\n1,yes,\n2,no,\n# lunch,,\n3,yes,\n", refused=InvalidCost),
    text("remarks.csv", "trial,success,notes,video\n# hot, dry\n" + rows("yes", "no", extra=",,") + "# end,,,\n", refused=InvalidCost),
    text("collision.csv", "trial,collision\n" + rows("no", "yes"), {"cost": "collision"}, costs=COSTS),
    text("failed.csv", "trial,failed\n" + rows("0", "1"), {"cost": "failed"}, costs=COSTS),
    text("concatenated.csv", "trial,success\n" + rows("yes", "no") + "trial,success\n" + rows("yes", "no"), costs=COSTS * 2, noted="repeat the header"),
    text("words.csv", "trial,end\n" + rows("in the box", "floor"), {"success": "end", "success_values": "in the box"}, costs=COSTS, noted="became failures"),
    # Spreadsheets in three locales
    text("excel_en.csv", "\ufeffTrial,Force,Success\r\n" + rows("0.5,TRUE", "0.7,FALSE", end="\r\n"), costs=COSTS),
    text("excel_de.csv", "Versuch;Kraft;Erfolg\r\n" + rows("0,5;WAHR", "0,7;FALSCH", ";", "\r\n"), {"success": "Erfolg"}, encoding="cp1252", costs=COSTS),
    text("excel_de_umlaut.csv", "Prüfling;Größe;Ergebnis\r\n" + rows("0,5;i.O.", "0,7;n.i.O.", ";", "\r\n"), {"success": "ergebnis"}, encoding="cp1252", costs=COSTS),
    text("excel_fr.csv", "Essai;Réussi\r\n" + rows("Oui", "Non", ";", "\r\n"), {"success": "réussi"}, encoding="cp1252", costs=COSTS),
    text("excel_unicode.txt", "Trial\tSuccess\r\n" + rows("yes", "no", "\t", "\r\n"), encoding="utf-16", costs=COSTS),
    text("sep.csv", "sep=;\r\nTrial;Success\r\n" + rows("ja", "nein", ";", "\r\n"), costs=COSTS),
    text("kosten_de.csv", "Versuch;Kosten\n1;0,25\n2;1\n3;0,5\n", {"cost": "Kosten"}, costs=[0.25, 1, 0.5]),
    text("google_de.csv", 'Versuch,cost\n1,"0,25"\n2,1\n3,"0,5"\n', costs=[0.25, 1, 0.5]),
    text("google_en.csv", 'Trial,"Cost",Note\n1,0.25,"slow, then fine"\n2,1,\n3,0.5,"said ""ouch"""\n', costs=[0.25, 1, 0.5]),
    text("one_column_de.csv", "cost\n0,25\n1\n0,5\n", costs=[0.25, 1, 0.5]),
    text("percent.csv", "trial;cost\n1;25 %\n2;100 %\n3;12,5 %\n", {"cost_range": (0, 100)}, costs=[0.25, 1, 0.125]),
    workbook("trials.xlsx", {"Sheet1": ROBOT}, costs=COSTS),
    workbook("title.xlsx", {"May": [["Grasping, May 2026"], [], *ROBOT]}, costs=COSTS, noted="above the header"),
    workbook("two_sheets.xlsx", {"Read me": [["Made by Kim"]], "Trials": ROBOT}, costs=COSTS),
    workbook("days.xlsx", {"Monday": ROBOT, "Tuesday": ROBOT[:4]}, {"sheet": "tuesday"}, costs=COSTS[:3]),
    workbook("truths.xlsx", {"Sheet1": [["Trial", "Grasped"], *([i, ok] for i, ok in enumerate(OUTCOMES, 1))]}, {"success": "grasped"}, costs=COSTS),
    workbook("percent.xlsx", {"S": [["trial", "cost"], [1, 0.25], [2, 0.125]]}, {"cost_range": (0, 100)}, percent=True, costs=[0.25, 0.125]),
    workbook("gaps.xlsx", {"S": [ROBOT[0], ROBOT[1], [], ROBOT[2], [None, None, None]]}, costs=COSTS[:2]),
    workbook("hidden.xlsx", {"S": ROBOT}, hidden=[3, 4], costs=COSTS),
    declared("A1", workbook("extent_of_a_cell.xlsx", {"S": ROBOT}, costs=COSTS)),
    declared("A1:B3", workbook("rows_appended.xlsx", {"S": [["trial", "success", "note"], [1, "yes"], [2, "no", "slipped"], [3, "yes"], [], [4, "no"]]}, costs=[0.0, 1.0, 0.0, 1.0])),
    # Programs
    text("array.json", json.dumps(JSON, indent=1), {"success": "outcome"}, costs=COSTS),
    text("lines.jsonl", "\n".join(map(json.dumps, JSON)) + "\n\n", {"success": "outcome"}, costs=COSTS),
    text("columns.json", json.dumps({"is_success": OUTCOMES}), refused=InvalidCost),
    text("pandas.csv", ",success\n" + rows("True", "False"), costs=COSTS),
    text("numpy.txt", "# cost\n2.500e-01\n1.000e+00\n5.000e-01\n", refused=InvalidSetting, asks=ASK),
    text("monitor.csv", '#{"t_start": 1.0, "env_id": "Reach"}\nr,l,t,is_success\n-3.1,50,0.5,True\n-9.9,50,1.0,False\n', costs=[0, 1]),
    text("wandb.csv", '"Step","run - eval/return","run - eval/return__MIN","run - eval/return__MAX"\n"100","-150","-150","-150"\n"2000","-50","-50","-50"\n', {"reward": "run - eval/return", "cost_range": (-200, 0)}, costs=[0.75, 0.25]),
    text("returns.csv", "episode,return\n1,-150\n2,-50\n", {"reward": "Return", "cost_range": (-200, 0)}, costs=[0.75, 0.25]),
    # More than one would expect
    text("german_title.csv", "Greifversuche Halle 3;;\r\nDatum: 12.05.2026;;\r\n;;\r\nNr;Kraft;Erfolg\r\n" + rows("12,5;Ja", "7,25;Nein", ";", "\r\n"), {"success": "Erfolg"}, encoding="cp1252", costs=COSTS, noted="above the header: 3"),
    text("no_bom.txt", "Trial\tSuccess?\tNotes\r\n" + rows("Yes", "No", "\t", "\r\n", "\t"), {"success": "success?"}, encoding="utf-16-le", refused=InvalidCost),
    text("big_endian.txt", "\ufeffTrial\tSuccess\r\n" + rows("Yes", "No", "\t", "\r\n"), encoding="utf-16-be", costs=COSTS),
    text("pipes.csv", "trial|success\n" + rows("yes", "no", "|"), refused=InvalidSetting, asks=ASK),
    text("spaces.txt", "trial  success\n" + rows("yes", "no", "      "), refused=InvalidSetting, asks=ASK),
    text("savetxt.txt", "1.00 2.500e-01\n2.00 1.000e+00\n", {"cost": "2"}, refused=InvalidSetting, asks=("cost",)),
    text("old_mac.csv", "trial,success\r" + rows("yes", "no", end="\r"), refused=InvalidCost),
    text("full_width.csv", "trial,cost\n1,０．２５\n2,１\n", costs=[0.25, 1]),
    text("narrow_spaces.csv", "trial,\u00a0cost\u00a0\n1,0.25\u2009\n2,\u202f1\n", costs=[0.25, 1]),
    text("two_headers.csv", ",Setup,,Result,\ntrial,robot,object,success,notes\n" + rows("a,mug,yes,", "a,mug,no,"), costs=COSTS, noted="above the header: 1"),
    text("status.csv", "run,status,held\n1,success,no\n2,success,yes\n", {"success": "success"}, refused=InvalidCost),
    text("status_in_words.csv", "scene,status\nleft,success\nright,success\n", refused=InvalidCost),
    text("status_titled.csv", "Runs\nrun,status,held\n1,success,no\n2,success,yes\n", refused=InvalidCost),
    workbook("status.xlsx", {"May": [["run", "status"], [1, "success"], [2, "success"]]}, refused=InvalidCost),
    text("header_with_newline.csv", 'trial,"success\n(y/n)"\n1,y\n2,n\n', {"success": "success (y/n)"}, costs=[0, 1]),
    text("note_with_newline.csv", 'trial,note,success\n1,"slipped\nbut held",yes\n2,"fell\n\n",no\n', costs=[0, 1]),
    text("form.csv", '"Timestamp","Did the robot succeed?"\n"5/1/2026 10:00:00","Yes"\n"5/1/2026 10:01:00","No"\n', {"success": "did the robot succeed?"}, costs=[0, 1]),
    text("nested.jsonl", "".join(json.dumps({"ep": i, "info": {"is_success": ok}}) + "\n" for i, ok in enumerate(OUTCOMES)), {"success": "info.is_success"}, costs=COSTS),
    text("nested_array.json", json.dumps([{"metrics": {"success": ok}} for ok in OUTCOMES]), {"success": "metrics.success"}, costs=COSTS),
    text("within.json", json.dumps({"policy": "v7", "results": [{"success": ok} for ok in OUTCOMES]}), refused=InvalidCost, asks=ASK),
    text("only_episodes.json", json.dumps({"episodes": [{"success": ok} for ok in OUTCOMES]}), refused=InvalidCost, asks=ASK),
    text("by_name.json", json.dumps({f"ep{i}": {"success": ok} for i, ok in enumerate(OUTCOMES)}), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("wandb_table.json", json.dumps({"columns": ["trial", "success"], "data": [[i, ok] for i, ok in enumerate(OUTCOMES)]}), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("pandas.json", json.dumps({"trial": {str(i): i for i in range(8)}, "success": {str(i): ok for i, ok in enumerate(OUTCOMES)}}), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("semicolons_below.csv", "Versuch;Erfolg;;\r\n" + rows("ja", "nein", ";", "\r\n", ";;") + ";;;\r\n;;;\r\n", {"success": "Erfolg"}, costs=COSTS),
    text("chinese.csv", "编号,成功\n" + rows("是", "否"), {"success": "成功"}, costs=COSTS),
    # Refused: the direction was not said, or is contradicted
    text("grasped.csv", "trial,grasped\n" + rows("1", "0"), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("erfolg.csv", "Versuch;Erfolg\n" + rows("ja", "nein", ";"), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("failure.csv", "trial,failure\n" + rows("no", "yes"), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("failure_as_success.csv", "trial,failure\n" + rows("no", "yes"), {"success": "failure"}, costs=[1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
    text("success_as_cost.csv", "trial,success\n" + rows("1", "0"), {"cost": "success"}, costs=[1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]),
    text("done.csv", "trial,done\n" + rows("1", "1"), refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("bare.csv", "".join(f"{int(ok)}\n" for ok in OUTCOMES), refused=InvalidSetting, asks=ASK),
    text("bare_words.csv", "".join("yes\n" if ok else "no\n" for ok in OUTCOMES), refused=InvalidSetting, asks=ASK),
    text("bare_array.json", json.dumps(OUTCOMES), refused=InvalidSetting, asks=ASK),
    text("two_candidates.csv", "success,reward\n1,3\n0,1\n", refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("twice.csv", "trial,success,success\n1,yes,no\n", refused=InvalidSetting),
    text("pass_as_cost.csv", "trial,cost\n" + rows("pass", "fail"), refused=InvalidCost, asks=("success",)),
    # Refused: a cell that says nothing, or two things
    text("aborted.csv", "trial,success\n1,yes\n2,\n3,no\n", refused=InvalidCost, asks=("empty_as",)),
    text("not_available.csv", "trial,success\n1,yes\n2,n/a\n", refused=InvalidCost),
    text("kinda.csv", "trial,success\n1,yes\n2,kinda\n", refused=InvalidCost, asks=("success_values",)),
    text("score.csv", "trial,success\n1,0.85\n2,0.9\n", refused=InvalidCost, asks=("reward", "cost_range", *COUNTS)),
    text("grade.csv", "trial,success\n1,1\n2,2\n", refused=InvalidCost, asks=("reward", "cost_range", *COUNTS)),
    text("thousands.csv", 'trial,cost\n1,"1,234"\n2,"2,500"\n', {"cost_range": (0, 5000)}, refused=InvalidCost),
    text("points_and_commas.csv", "trial;cost\n1;0,25\n2;0.5\n", refused=InvalidCost),
    text("bare_commas.csv", "0,25\n1,0\n0,5\n", {"cost": "1"}, refused=InvalidCost),
    text("date.csv", "trial,cost\n1,0.2\n2,2026-05-01\n", refused=InvalidCost),
    text("percent_without_range.csv", "trial,cost\n1,1%\n2,0%\n", refused=InvalidCost, asks=("cost_range",)),
    text("percent_by_name.csv", "trial,cost in %\n1,1\n2,0.5\n", {"cost": "cost in %"}, costs=[1.0, 0.5]),
    text("mean_below.csv", "trial,cost\n1,0.25\n2,0.75\nMean,0.5\n", refused=InvalidCost),
    text("commented_out.csv", "trial,success\n1,yes\n#2,no\n3,yes\n", costs=[0.0, 1.0, 0.0]),
    text("commented_out_wide.csv", "trial,object,grasped,notes,video\n1,mug,yes,,\n#7,mug,no,,\n", {"success": "grasped"}, costs=[0.0, 1.0]),
    text("unquoted_note.csv", "trial,success,note\n1,yes,fine\n2,no,slipped, then fell\n", refused=InvalidCost),
    workbook("several.xlsx", {"Monday": ROBOT, "Tuesday": ROBOT}, refused=InvalidSetting, asks=("sheet",)),
    workbook("date.xlsx", {"S": [["trial", "success"], [1, "yes"], [2, datetime.date(2026, 5, 1)]]}, refused=InvalidCost),
    workbook("hole.xlsx", {"S": [["trial", "success"], [1, "yes"], [2, None]]}, refused=InvalidCost, asks=("empty_as",)),
    # Refused: more, or something else, than one trial per row
    text("letters.csv", "trial,success\n" + rows("P", "F"), refused=InvalidCost, asks=("success_values",)),
    text("stages.csv", "trial,success\n1,S\n2,P\n3,F\n", refused=InvalidCost, asks=("success_values",)),
    text("circles.csv", "trial,success\n" + rows("○", "×"), costs=COSTS),
    text("asterisk.csv", "trial,success\n1,yes\n2,yes*\n3,no\n", refused=InvalidCost, asks=("success_values",)),
    text("percent_of_trials.csv", "run,success\n1,85 %\n2,90 %\n", refused=InvalidCost, asks=COUNTS),
    text("eight_of_ten.csv", "object,success\nmug,8/10\nbowl,3/10\n", refused=InvalidCost, asks=("successes",)),
    text("units.csv", "trial,force,cost\n-,N,1\n1,12,0.2\n2,14,0.4\n", refused=InvalidCost),
    text("markdown.md", "| trial | success |\n|---|---|\n| 1 | yes |\n| 2 | no |\n", refused=InvalidSetting, asks=ASK),
    text("bare_total.csv", "trial,success\n1,1\n2,0\n3,0\n4,0\n,1\n", refused=InvalidCost),
    text("table_below.csv", "trial,success\n" + rows("1", "0") + "\nobject,grasped\n1,1\n2,0\n", refused=InvalidCost),
    text("page.xls", "<html><table><tr><td>success</td></tr></table></html>", refused=InvalidCost),
    text("training_curve.csv", '"_step","eval/success_rate"\n100,0.1\n200,0.5\n', refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("gbk.csv", "编号,成功\n" + rows("是", "否"), {"success": "成功"}, encoding="gbk", refused=InvalidCost),
    workbook("formulas.xlsx", {"S": [["trial", "ok"], [1, "=TRUE()"], [2, "=FALSE()"]]}, {"success": "ok"}, refused=InvalidCost),
    declared("A1:B2", workbook("formulas_appended.xlsx", {"S": [["trial", "ok"], [1, True], [2, "=FALSE()"]]}, {"success": "ok"}, refused=InvalidCost)),
    workbook("total.xlsx", {"S": [["trial", "success"], [1, 1], [2, 0], ["Total", 1]]}, refused=InvalidCost),
    workbook("side_by_side.xlsx", {"S": [["trial", "success", None, "trial", "success"], [1, "y", None, 2, "n"]]}, refused=InvalidSetting),
    Sheet("old.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, refused=InvalidCost),
    # What people were refused although they had said what they mean
    text("operator_max.csv", "operator,success\nAnn,1\nBob,0\nCid,1\nMax,1\n", costs=[0, 1, 0, 0]),
    text("seconds.csv", "trial,completion_seconds\n1,30\n2,15\n3,60\n", {"cost": "completion_seconds", "cost_range": (0, 60)}, costs=[0.5, 0.25, 1]),
    text("dropped_in_bin.csv", "trial,dropped_in_bin\n" + rows("1", "0"), {"success": "dropped_in_bin"}, costs=COSTS),
    text("blade_score.csv", "trial,blade_score\n1,5\n2,4\n3,0\n", {"reward": "blade_score", "cost_range": (0, 5)}, costs=[0, 0.2, 1]),
    text("no_failure.csv", "trial,no_failure\n" + rows("yes", "no"), {"success": "no_failure"}, costs=COSTS),
    text("missed_frames.csv", "trial,success_time\n1,0.5\n2,1\n", {"cost": "success_time"}, costs=[0.5, 1]),
    text("conditions.csv", "condition,success\nmin,1\nmean,0\nmax,1\naverage,1\n", costs=[0, 1, 0, 0]),
    text("total_grasp.csv", "object,success\ntotal grasp,yes\nmug,no\nsum,yes\n", costs=[0, 1, 0]),
    text("mean_last.csv", "lighting,success\nbright,yes\ndark,no\nmean,yes\n", costs=[0, 1, 0]),
    text("done_declared.csv", "trial,done\n" + rows("1", "0"), {"success": "done"}, costs=COSTS),
    text("ids.csv", "id,success\n#1,yes\n#2,no\n#3,yes\n", costs=[0, 1, 0]),
    text("redo.csv", "trial,success\n16,yes\n17,no\n17 (redo),yes\n18b,yes\n", costs=[0, 1, 0, 0]),
    text("declared_list.txt", "1\n0\n1\n", {"success": "1"}, costs=[0, 1, 0]),
    text("declared_costs.json", "[0.5, 0.25]", {"cost": "1"}, costs=[0.5, 0.25]),
    text("yes_of_a_hundred.csv", "trial,damage\n1,no\n2,yes\n", {"cost": "damage", "cost_range": (0, 100)}, refused=InvalidCost),
    text("first_is_units.csv", "time,note\n[s],\n3,a\n6,b\n", {"cost": "time", "cost_range": (0, 12)}, refused=InvalidCost),
    # Other sheets that were tried
    text("variation.csv", "trial,success\n" + rows("✔️", "✖️"), costs=COSTS),
    text("boxes.csv", "trial,success\n" + rows("✅", "❌"), costs=COSTS),
    text("thumbs.csv", "trial,success\n" + rows("👍", "👎"), costs=COSTS),
    text("s_f.csv", "trial,success\n" + rows("S", "F"), costs=COSTS),
    text("chinese_words.csv", "编号,结果\n" + rows("成功", "失败"), {"success": "结果"}, costs=COSTS),
    text("japanese_words.csv", "番号,結果\n" + rows("成功", "失敗"), {"success": "結果"}, costs=COSTS),
    text("shift_jis.csv", "番号,結果\n" + rows("成功", "失敗"), {"success": "結果"}, encoding="shift-jis", refused=InvalidCost),
    text("good_bad.csv", "trial,grade\n" + rows("good", "bad"), {"success": "grade"}, costs=COSTS),
    text("rubric.csv", "trial,score\n1,5\n2,0\n3,2.5\n", {"reward": "score", "cost_range": (0, 5)}, costs=[0, 1, 0.5]),
    text("halves.csv", "trial,success\n1,1\n2,0.5\n3,0\n", {"reward": "success", "cost_range": (0, 1)}, costs=[0, 0.5, 1]),
    text("beside_time.csv", "trial,time,success\n1,29.5,yes\n2,60,no\n", costs=[0, 1]),
    text("two_successes.csv", "trial,picked,placed\n1,yes,no\n2,yes,yes\n", {"success": "placed"}, costs=[1, 0]),
    text("interventions.csv", "trial,interventions\n1,0\n2,3\n", {"cost": "interventions", "cost_range": (0, 10)}, costs=[0, 0.3]),
    text("notes_twice.csv", "trial,notes,success,notes\n1,a,yes,b\n2,,no,\n", costs=[0, 1]),
    text("total_at_right.csv", "trial,success,,total\n1,yes,,2 of 3\n2,no,,\n3,yes,,\n", costs=[0, 1, 0]),
    text("site.csv", "trial,site,success\n1,lab,yes\n2,kitchen,no\n3,Lab,no\n", {"where": {"site": "lab"}}, costs=[0, 1]),
    text("attempts.csv", "trial,attempt,success\n1,1,no\n1,2,yes\n2,1,no\n", {"success": "success", "episode": "trial"}, costs=[0, 1]),
    text("attempts_as_trials.csv", "trial,attempt,success\n1,1,no\n1,2,yes\n2,1,no\n", costs=[1, 0, 1], noted="episode='trial'"),
    text("pasted_twice.csv", "trial,success\n1,yes\n2,no\n3,yes\n2,no\n", costs=[0, 1, 0, 1], noted="pasted twice?"),
    text("counts.csv", "condition,successes,trials\nmug,9,10\nbowl,7,10\n", refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("failures.csv", "robot,failures,attempts\na,1,10\nb,3,10\n", refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("three_of_five.csv", "trial,score\n1,3/5\n2,5/5\n", {"reward": "score", "cost_range": (0, 5)}, costs=[0.4, 0]),
    text("wide.csv", "trial,ACT,DP\n1,yes,no\n2,no,no\n", refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("transposed.csv", "policy,T1,T2,T3,total\nACT,1,0,1,2\nDP,0,0,1,1\n", refused=InvalidSetting, asks=(*ASK, *COUNTS)),
    text("timeout.csv", "trial,time\n1,29\n2,timeout\n", {"cost": "time", "cost_range": (0, 60)}, refused=InvalidCost, asks=("timeout_as",)),
    text("minutes.csv", "trial,time\n1,0:29\n2,0:31\n", {"cost": "time", "cost_range": (0, 60)}, costs=[29 / 60, 31 / 60]),
    workbook("duration.xlsx", {"S": [["trial", "time"], [1, datetime.timedelta(seconds=12)]]}, {"cost": "time", "cost_range": (0, 60)}, costs=[0.2]),
    workbook("nine_of_ten_date.xlsx", {"S": [["object", "success"], ["mug", datetime.datetime(2026, 9, 10)]]}, refused=InvalidCost),
    text("not_run_yet.csv", "trial,success\n1,yes\n2,no\n3,\n4,\n", refused=InvalidCost, asks=("empty_as",)),
    text("short_failures.csv", "trial,notes,success\n1,fine,yes\n2,no\n", refused=InvalidCost),
    text("subheadings.csv", "trial,success\nmug,\n1,yes\n2,no\nbowl,\n1,yes\n", refused=InvalidCost),
    text("subtotals.csv", "trial,object,success\n1,mug,1\n2,mug,0\nmug total,,1\n3,bowl,1\n", refused=InvalidCost),
    text("named_totals.csv", "object,success\nmug,1\nmug,0\nmug total,1\nbowl,1\nbowl,0\nbowl,0\nbowl total,1\n", refused=InvalidCost, asks=("as_is",)),
    text("named_mean.csv", "object,success\nmug,1\nmug,1\nmug mean,1\n", {"strata": "object"}, refused=InvalidCost, asks=("as_is",)),
    text("named_mean_as_is.csv", "object,success\nmug,1\nmug,1\nmug mean,1\n", {"as_is": True}, costs=[0, 0, 0]),
    text("score_mean.csv", "task;score\nmug;4\nmug;2\nbowl;5\nbowl;4\nSchnitt;3,75\n", {"reward": "score", "cost_range": (0, 5)}, refused=InvalidCost, asks=("as_is",)),
    text("last_task_begun.csv", "task,success\nmug,1\nmug,1\nbowl,1\nbowl,1\ncup,1\n", costs=[0.0] * 5),
    text("last_score.csv", "task,score\nmug,4\nmug,2\nbowl,5\nbowl,4\ncup,5\n", {"reward": "score", "cost_range": (0, 5)}, costs=[0.2, 0.6, 0, 0.2, 0]),
    text("longer_name.csv", "object,success\nmug,1\nmug,0\nmug,1\nmug red,0\nmug red,1\n", costs=[0, 1, 0, 1, 0]),
    text("mug_mean.csv", "trial,object,success\n1,mug,1\n2,mug,1\nmug mean,,1\n", refused=InvalidCost),
    text("failure_modes.csv", "trial,failure mode\n1,\n2,slipped\n", {"cost": "failure mode"}, refused=InvalidCost, asks=("empty_as",)),
    text("partial.csv", "trial,success\n1,yes\n2,Partial\n", refused=InvalidCost, asks=("success_values",)),
    text("words_of_failure.csv", "trial,result\n1,ok\n2,slipped\n", {"success": "result"}, refused=InvalidCost, asks=("success_values",)),
    text("ticks_and_blanks.csv", "trial,success\n1,✓\n2,\n", refused=InvalidCost, asks=("empty_as",)),
    text("numbers_and_words.csv", "trial,success\n1,1\n2,0\n3,yes\n", costs=[0, 1, 0]),
    workbook("colors.xlsx", {"S": [["trial", "success"], [1, None], [2, None]]}, refused=InvalidCost, asks=("empty_as",)),
    workbook("per_policy.xlsx", {"ACT": ROBOT, "DP": ROBOT}, refused=InvalidSetting, asks=("sheet",)),
    workbook("merged_policy.xlsx", {"S": [["policy", "success"], ["ACT", "yes"], [None, "no"]]}, {"success": "success", "policy": "policy"}, refused=InvalidCost, asks=("fill_down",)),
    workbook("summary_beside.xlsx", {"Summary": [["mean", 0.5]], "Raw": ROBOT}, costs=COSTS),
    # Counts
    text("successes.csv", "condition,successes,trials\nmug,9,10\nbowl,7,10\n", OK_OF_N, costs=counts((9, 10), (7, 10))),
    text("failures_of.csv", "robot,failures,attempts\na,1,10\nb,3,10\n", {"failures": "failures", "trials": "attempts"}, costs=counts((9, 10), (7, 10))),
    text("k_of_n.csv", "object,success\nmug,9/10\nbowl,7 / 10\ncup,3 of 5\n", {"successes": "success"}, costs=counts((9, 10), (7, 10), (3, 5))),
    text("failed_k_of_n.csv", "object;failed\nmug;1/10\nbowl;3 von 10\n", {"failures": "failed"}, costs=counts((9, 10), (7, 10))),
    text("k_of_n_twice.csv", "object,ok,n\nmug,9/10,10\n", {"successes": "ok", "trials": "n"}, costs=counts((9, 10))),
    text("k_of_other_n.csv", "object,ok,n\nmug,9/10,20\n", {"successes": "ok", "trials": "n"}, refused=InvalidCost),
    text("percent_of_n.csv", "task,rate,n\nmug,85%,20\nbowl,33 %,3\ncup,100%,4\n", {"successes": "rate", "trials": "n"}, costs=counts((17, 20), (1, 3), (4, 4))),
    text("percent_de.csv", "Aufgabe;Quote;n\nTasse;66,7 %;3\n", {"successes": "Quote", "trials": "n"}, costs=counts((2, 3))),
    text("percent_of_none.csv", "task,rate,n\nmug,85%,20\nbowl,85%,30\n", {"successes": "rate", "trials": "n"}, refused=InvalidCost),
    text("percent_of_several.csv", "task,rate,n\nmug,85%,1000\nbowl,33%,1001\n", {"successes": "rate", "trials": "n"}, refused=InvalidCost),
    text("share_of_n.csv", "policy,n,success rate\nACT,20,0.85\n", {"successes": "success rate", "trials": "n", "cost_range": (0, 1)}, costs=counts((17, 20))),
    text("share_undeclared.csv", "policy,n,success rate\nACT,20,0.85\n", {"successes": "success rate", "trials": "n"}, refused=InvalidCost, asks=("cost_range",)),
    text("ones_pointed.csv", "task,ok,n\nmug,1.0,20\nbowl,1.0,20\n", OK_N, refused=InvalidCost, asks=("cost_range", "as_is")),
    text("ones_pointed_some.csv", "task,ok,n\nmug,1.0,20\nbowl,0.0,1\n", OK_N, refused=InvalidCost, asks=("cost_range", "as_is")),
    text("ones.csv", "task,ok,n\nmug,1,20\nbowl,0,20\n", OK_N, refused=InvalidCost, asks=("cost_range", "as_is")),
    text("ones_failed.csv", "task,bad,n\nmug,1,20\nbowl,1,10\n", {"failures": "bad", "trials": "n"}, refused=InvalidCost, asks=("cost_range", "as_is")),
    text("ones_as_is.csv", "task,ok,n\nmug,1.0,20\nbowl,1,20\n", OK_N | {"as_is": True}, costs=counts((1, 20), (1, 20))),
    text("ones_shares.csv", "task,ok,n\nmug,1.0,20\nbowl,1,20\n", OK_N | {"cost_range": (0, 1)}, costs=counts((20, 20), (20, 20))),
    text("ones_of_one.csv", "task,ok,n\nmug,1,1\nbowl,1,3\n", OK_N, costs=counts((1, 1), (1, 3))),
    text("ones_pointed_among.csv", "task,ok,n\nmug,1.0,20\nbowl,7.0,20\n", OK_N, costs=counts((1, 20), (7, 20))),
    text("zeros.csv", "task,ok,n\nmug,0.0,20\nbowl,0,20\n", OK_N, costs=counts((0, 20), (0, 20))),
    text("percent_one.csv", "task,ok,n\nmug,5%,20\nbowl,5%,20\n", OK_N, costs=counts((1, 20), (1, 20))),
    text("percent_rounded.csv", "task,ok,n\nmug,99%,1000\n", OK_N, refused=InvalidCost),
    text("percent_all.csv", "task,ok,n\nmug,100%,1000\n", OK_N, refused=InvalidCost),
    text("percent_tenths.csv", "task,ok,n\nmug,99.0%,1000\n", OK_N, costs=counts((990, 1000))),
    text("share_rounded.csv", "task,ok,n\nmug,0.99,1000\n", OK_N | {"cost_range": (0, 1)}, refused=InvalidCost),
    text("share_short.csv", "task,ok,n\nmug,0.5,20\n", OK_N | {"cost_range": (0, 1)}, costs=counts((10, 20))),
    text("share_of_hundred.csv", "task,n,rate\nmug,20,85\n", {"successes": "rate", "trials": "n", "cost_range": (0, 100)}, costs=counts((17, 20))),
    workbook("percent_of_n.xlsx", {"S": [["task", "n", "rate"], ["mug", 20, 0.85], ["bowl", 3, 2 / 3]]}, {"successes": "rate", "trials": "n"}, percent=True, costs=counts((17, 20), (2, 3))),
    workbook("counts.xlsx", {"S": [["task", "ok", "n"], ["mug", 9, 10], ["bowl", 7.0, 10]]}, {"successes": "ok", "trials": "n"}, costs=counts((9, 10), (7, 10))),
    text("more_than_n.csv", "task,successes,trials\nmug,9,10\nbowl,11,10\n", OK_OF_N, refused=InvalidCost),
    text("negative.csv", "task,successes,trials\nmug,-1,10\n", OK_OF_N, refused=InvalidCost),
    text("half.csv", "task,successes,trials\nmug,8.5,10\n", OK_OF_N, refused=InvalidCost),
    text("half_trials.csv", "task,successes,trials\nmug,8,10.5\n", OK_OF_N, refused=InvalidCost),
    text("no_trials.csv", "task,successes,trials\nmug,8,10\nbowl,7,\n", OK_OF_N, refused=InvalidCost),
    text("none_run.csv", "task,successes,trials\nmug,8,10\nbowl,0,0\n", OK_OF_N, refused=InvalidCost),
    text("without_n.csv", "task,successes\nmug,9\n", {"successes": "successes"}, refused=InvalidCost, asks=("trials", "failures")),
    text("both_counted.csv", "task,success,fail\nmug,9,1\nbowl,7,3\n", {"successes": "success", "failures": "fail"}, costs=counts((9, 10), (7, 10))),
    text("both_counted_total.csv", "task,ok,bad\nmug,9,1\nbowl,7,3\ntotal,16,4\n", {"successes": "ok", "failures": "bad"}, refused=InvalidCost, asks=("as_is",)),
    text("both_counted_half.csv", "task,ok,bad\nmug,9,1\nbowl,7,\n", {"successes": "ok", "failures": "bad"}, refused=InvalidCost),
    text("counts_total.csv", "task,successes,trials\nmug,9,10\nbowl,7,10\nTotal,16,20\n", OK_OF_N, refused=InvalidCost, asks=("as_is",)),
    text("counts_subtotal.csv", "task,ok\nmug 1,9/10\nmug 2,8/10\nmug,17/20\nbowl 1,3/10\nbowl 2,4/10\nbowl,7/20\n", {"successes": "ok"}, refused=InvalidCost, asks=("as_is",)),
    text("counts_no_total.csv", "task,ok\na,5/5\nb,5/5\nc,10/10\n", {"successes": "ok", "as_is": True}, costs=[0.0] * 20),
    text("thousands_counted.csv", 'task,successes,trials\nmug,"2,000","3,000"\n', OK_OF_N, refused=InvalidCost),
    text("counts_mean.csv", "task,successes,trials\nmug,9,10\nbowl,7,10\nmean,8,\n", OK_OF_N, refused=InvalidCost),
    text("pivot.csv", "object,success,count\nmug,1,9\nmug,0,1\nbowl,1,7\nbowl,0,3\n", {"count": "count"}, costs=[0.0] * 9 + [1] + [0] * 7 + [1] * 3),
    text("pivot_words.csv", "object,outcome,count\nmug,placed,9\nmug,dropped,0\nbowl,dropped,3\n", {"success": "outcome", "success_values": "placed", "count": "count"}, costs=[0.0] * 9 + [1] * 3),
    text("pivot_total.csv", "object,success,count\nmug,1,9\nmug,0,1\nbowl,1,7\nbowl,0,3\ntotal,1,16\ntotal,0,4\n", {"count": "count"}, refused=InvalidCost, asks=("as_is",)),
    text("pivot_grand_total.csv", "object,success,count\nmug,1,9\nmug,0,1\nTotal,,10\n", {"count": "count"}, refused=InvalidCost, asks=("empty_as",)),
    text("pivot_small.csv", "object,success,count\na,1,1\nb,1,1\nc,1,2\n", {"count": "count"}, refused=InvalidCost, asks=("as_is",)),
    text("histogram.csv", "score,count\n5,2\n0,1\n", {"reward": "score", "cost_range": (0, 5), "count": "count"}, costs=[0, 0, 1]),
    text("pivot_unused.csv", "object,success,count\nmug,1,9\nmug,0,1\n", refused=InvalidSetting, asks=(*COUNTS, "failures", "count", "as_is")),
    text("trials_unused.csv", "task,trials,success\nmug,10,1\nbowl,10,0\n", refused=InvalidSetting, asks=(*COUNTS, "failures", "count", "as_is")),
    text("n_unused.csv", "policy,N,success rate\nACT,20,0.85\n", {"reward": "success rate", "cost_range": (0, 1)}, refused=InvalidSetting, asks=(*COUNTS, "failures", "count", "as_is")),
    text("n_as_is.csv", "n,success\n1,1\n2,0\n", {"as_is": True}, costs=[0, 1]),
    text("n_of_one.csv", "object,n,success\nmug,1,1\ncup,1,0\n", costs=[0, 1]),
    workbook("nine_of_ten.xlsx", {"S": [["object", "ok"], ["mug", datetime.datetime(2026, 9, 10)]]}, {"successes": "ok"}, refused=InvalidCost),
    text("ten_sep.csv", "object,ok\nmug,10-Sep\n", {"successes": "ok"}, refused=InvalidCost),
    text("ten_sep_as_success.csv", "object,success\nmug,10-Sep\n", refused=InvalidCost),
    text("per_policy_counts.csv", "object,ACT,DP\nmug,9/10,4/10\nbowl,7/10,5/10\n", {"successes": "dp"}, costs=counts((4, 10), (5, 10))),
    text("scenes_counted.csv", "scene,ok,n\na,1,2\nb,2,2\n", {"successes": "ok", "trials": "n", "cluster": "scene"}, costs=[0.5, 0]),
    text("counted_steps.csv", "scene,ok,n\na,1,2\n", {"successes": "ok", "trials": "n", "episode": "scene"}, refused=InvalidSetting),
    text("counted_where.csv", "site,ok\nlab,9/10\nkitchen,3/4\n", {"successes": "ok", "where": {"site": "kitchen"}}, costs=counts((3, 4))),
    text("k_of_n.json", json.dumps([{"object": "mug", "ok": "9/10"}, {"object": "cup", "ok": "2/3"}]), {"successes": "ok"}, costs=counts((9, 10), (2, 3))),
    # Times, scores, what was declared for a word or for nothing, merged cells
    text("timeout_as.csv", "trial,time\n1,29\n2,Timeout\n3,timed out\n", {"cost": "time", "cost_range": (0, 60), "timeout_as": 60}, costs=[29 / 60, 1, 1]),
    text("timeout_in_minutes.csv", "trial,time\n1,0:30\n2,TIMEOUT\n3,1:00\n", {"cost": "time", "cost_range": (0, 60), "timeout_as": 60}, costs=[0.5, 1, 1]),
    text("hours.csv", "trial,time\n1,0:30:00\n2,1:00:00\n", {"cost": "time", "cost_range": (0, 3600)}, costs=[0.5, 1]),
    text("minutes_without_range.csv", "trial,cost\n1,0:29\n", refused=InvalidCost, asks=("cost_range",)),
    text("minutes_and_seconds.csv", "trial,time\n1,0:29\n2,31\n", {"cost": "time", "cost_range": (0, 60)}, refused=InvalidCost),
    text("minutes_beyond.csv", "trial,time\n1,0:29\n2,1:01\n", {"cost": "time", "cost_range": (0, 60)}, refused=InvalidCost, asks=("cost_range",)),
    workbook("time_of_day.xlsx", {"S": [["trial", "time"], [1, datetime.time(0, 1)]]}, {"cost": "time", "cost_range": (0, 60)}, time="h:mm", refused=InvalidCost),
    workbook("time_with_seconds.xlsx", {"S": [["trial", "time"], [1, datetime.time(0, 0, 30)]]}, {"cost": "time", "cost_range": (0, 60)}, time="h:mm:ss", costs=[0.5]),
    text("score_of_ten.csv", "trial,score\n1,3/10\n", {"reward": "score", "cost_range": (0, 5)}, refused=InvalidCost, asks=("cost_range", "successes")),
    text("score_date.csv", "trial,score\n1,5-Mar\n", {"reward": "score", "cost_range": (0, 5)}, refused=InvalidCost),
    text("empty_is_failure.csv", "trial,success\n1,✓\n2,\n", {"empty_as": "no"}, costs=[0, 1]),
    text("empty_is_zero.csv", "trial,cost\n1,0.5\n2,\n", {"empty_as": 0}, costs=[0.5, 0]),
    text("empty_mode.csv", "trial,failure mode\n1,\n2,slipped\n3,timeout\n", {"cost": "failure mode", "empty_as": "0"}, costs=[0, 1, 1], noted="'slipped' (1)"),
    text("mode_of_nothing.csv", "trial,failure mode\n1,\n2,n/a\n", {"cost": "failure mode", "empty_as": "0"}, refused=InvalidCost),
    text("ok_mode.csv", "trial,failure mode\n1,\n2,ok\n", {"cost": "failure mode", "empty_as": "0"}, refused=InvalidCost, asks=("success",)),
    workbook("filled_down.xlsx", {"S": [["policy", "success"], ["ACT", "yes"], [None, "no"], ["DP", "no"], [None, "yes"]]}, {"policy": "policy", "fill_down": "policy", "where": {"policy": "DP"}}, costs=[1, 0]),
    text("filled_down.csv", "task,trial,success\nmug,1,1\n,2,0\nbowl,1,1\n", {"strata": "task", "fill_down": ["task"]}, costs=[0, 1, 0]),
    text("nothing_above.csv", "task,success\n,1\nmug,0\n", {"strata": "task", "fill_down": "task"}, refused=InvalidCost, asks=("fill_down",)),
    # Small ones
    text("gbk_beside_ascii.csv", "trial,object,成功\n1,mug,是\n", {"success": "成功"}, encoding="gbk", refused=InvalidSetting, asks=("success",)),
    text("gbk_words.csv", "trial,object,success\n1,mug,是\n", encoding="gbk", refused=InvalidCost, asks=("success_values",)),
    text("gaps.csv", "trial,success\n" + "".join(f"{i},1\n" for i in range(1, 31) if i not in (4, 11, 17)), costs=[0.0] * 27, noted="no row has trial 4, 11, 17"),
    text("gaps_as_is.csv", "trial,success\n" + "".join(f"{i},1\n" for i in range(1, 31) if i != 4), {"as_is": True}, costs=[0.0] * 29),
    text("redone.csv", "trial,success\n16,yes\n17,no\n17 (redo),yes\n", costs=[0, 1, 0], noted="17 (redo) stands beside 17"),
    text("scenes_again.csv", "scene,success\n" + "kitchen,1\ntable,0\nkitchen,0\ntable,1\n" * 2, costs=[0, 1, 1, 0] * 2, noted="cluster='scene'"),
    text("object_total.csv", "object,success\nmug,1\nmug,0\nmug total,9\n", refused=InvalidCost, asks=("reward", "cost_range", *COUNTS)),
]  # fmt: skip


def write(folder: Path) -> None:
    """Write every sheet into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for sheet in SHEETS:
        (folder / sheet.name).write_bytes(sheet.data)
