"""Sheets as labs have them, each with the costs that a person would read off, or with the remedy it needs.

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

# The outcomes that most sheets hold: whether each trial succeeded.
OUTCOMES = [True, True, False, True, False, True, True, True]
COSTS = [0.0 if outcome else 1.0 for outcome in OUTCOMES]


@dataclass(frozen=True)
class Sheet:
    """A file, the flags that somebody would give, and the costs in it or the words that refuse it."""

    name: str
    data: bytes
    flags: dict[str, Any] = field(default_factory=dict)
    costs: list[float] | None = None
    refused: str | None = None
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
    what.pop("percent", None)
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
NO_DIRECTION = "say what to read: success=COL"

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
    text("title.csv", "Grasping trials\nMay 2026, Ulm\n\ntrial,success\n" + rows("yes", "no"), costs=COSTS, noted="2 lines above"),
    text("comments.csv", "# robot: arm-1\n# policy: v7\ntrial,success\n" + rows("yes", "no"), costs=COSTS, noted="2 lines above"),
    text("padded_title.csv", "Grasping trials,,\n,,\ntrial,robot,success\n" + rows("arm,yes", "arm,no"), costs=COSTS, noted="above"),
    text("remarks.csv", "trial,success,notes,video\n# hot, dry\n" + rows("yes", "no", extra=",,") + "# end,,,\n", costs=COSTS, noted="2 comments skipped"),
    text("collision.csv", "trial,collision\n" + rows("no", "yes"), {"cost": "collision"}, costs=COSTS),
    text("failed.csv", "trial,failed\n" + rows("0", "1"), {"cost": "failed"}, costs=COSTS),
    text("concatenated.csv", "trial,success\n" + rows("yes", "no") + "trial,success\n" + rows("yes", "no"), costs=COSTS * 2, noted="repeats the header"),
    text("words.csv", "trial,end\n" + rows("in the box", "floor"), {"success": "end", "success_values": "in the box"}, costs=COSTS, noted="counted as failures"),
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
    text("columns.json", json.dumps({"is_success": OUTCOMES}), costs=COSTS),
    text("pandas.csv", ",success\n" + rows("True", "False"), costs=COSTS),
    text("numpy.txt", "# cost\n2.500e-01\n1.000e+00\n5.000e-01\n", costs=[0.25, 1, 0.5]),
    text("monitor.csv", '#{"t_start": 1.0, "env_id": "Reach"}\nr,l,t,is_success\n-3.1,50,0.5,True\n-9.9,50,1.0,False\n', costs=[0, 1]),
    text("wandb.csv", '"Step","run - eval/return","run - eval/return__MIN","run - eval/return__MAX"\n"100","-150","-150","-150"\n"2000","-50","-50","-50"\n', {"reward": "run - eval/return", "cost_range": (-200, 0)}, costs=[0.75, 0.25]),
    text("returns.csv", "episode,return\n1,-150\n2,-50\n", {"reward": "Return", "cost_range": (-200, 0)}, costs=[0.75, 0.25]),
    # More than one would expect
    text("german_title.csv", "Greifversuche Halle 3;;\r\nDatum: 12.05.2026;;\r\n;;\r\nNr;Kraft;Erfolg\r\n" + rows("12,5;Ja", "7,25;Nein", ";", "\r\n"), {"success": "Erfolg"}, encoding="cp1252", costs=COSTS, noted="2 lines above"),
    text("no_bom.txt", "Trial\tSuccess?\tNotes\r\n" + rows("Yes", "No", "\t", "\r\n", "\t"), {"success": "success?"}, encoding="utf-16-le", costs=COSTS),
    text("big_endian.txt", "\ufeffTrial\tSuccess\r\n" + rows("Yes", "No", "\t", "\r\n"), encoding="utf-16-be", costs=COSTS),
    text("pipes.csv", "trial|success\n" + rows("yes", "no", "|"), costs=COSTS),
    text("spaces.txt", "trial  success\n" + rows("yes", "no", "      "), costs=COSTS),
    text("savetxt.txt", "1.00 2.500e-01\n2.00 1.000e+00\n", {"cost": "2"}, costs=[0.25, 1]),
    text("old_mac.csv", "trial,success\r" + rows("yes", "no", end="\r"), costs=COSTS),
    text("full_width.csv", "trial,cost\n1,０．２５\n2,１\n", costs=[0.25, 1]),
    text("narrow_spaces.csv", "trial,\u00a0cost\u00a0\n1,0.25\u2009\n2,\u202f1\n", costs=[0.25, 1]),
    text("two_headers.csv", ",Setup,,Result,\ntrial,robot,object,success,notes\n" + rows("a,mug,yes,", "a,mug,no,"), costs=COSTS, noted="line 1 above"),
    text("header_with_newline.csv", 'trial,"success\n(y/n)"\n1,y\n2,n\n', {"success": "success (y/n)"}, costs=[0, 1]),
    text("note_with_newline.csv", 'trial,note,success\n1,"slipped\nbut held",yes\n2,"fell\n\n",no\n', costs=[0, 1]),
    text("form.csv", '"Timestamp","Did the robot succeed?"\n"5/1/2026 10:00:00","Yes"\n"5/1/2026 10:01:00","No"\n', {"success": "did the robot succeed?"}, costs=[0, 1]),
    text("nested.jsonl", "".join(json.dumps({"ep": i, "info": {"is_success": ok}}) + "\n" for i, ok in enumerate(OUTCOMES)), {"success": "info.is_success"}, costs=COSTS),
    text("nested_array.json", json.dumps([{"metrics": {"success": ok}} for ok in OUTCOMES]), {"success": "metrics.success"}, costs=COSTS),
    text("within.json", json.dumps({"policy": "v7", "results": [{"success": ok} for ok in OUTCOMES]}), costs=COSTS, noted="read the list 'results'"),
    text("only_episodes.json", json.dumps({"episodes": [{"success": ok} for ok in OUTCOMES]}), costs=COSTS),
    text("by_name.json", json.dumps({f"ep{i}": {"success": ok} for i, ok in enumerate(OUTCOMES)}), costs=COSTS),
    text("wandb_table.json", json.dumps({"columns": ["trial", "success"], "data": [[i, ok] for i, ok in enumerate(OUTCOMES)]}), costs=COSTS),
    text("pandas.json", json.dumps({"trial": {str(i): i for i in range(8)}, "success": {str(i): ok for i, ok in enumerate(OUTCOMES)}}), costs=COSTS),
    text("semicolons_below.csv", "Versuch;Erfolg;;\r\n" + rows("ja", "nein", ";", "\r\n", ";;") + ";;;\r\n;;;\r\n", {"success": "Erfolg"}, costs=COSTS),
    text("chinese.csv", "编号,成功\n" + rows("是", "否"), {"success": "成功"}, costs=COSTS),
    # Refused: the direction was not said, or is contradicted
    text("grasped.csv", "trial,grasped\n" + rows("1", "0"), refused=NO_DIRECTION),
    text("erfolg.csv", "Versuch;Erfolg\n" + rows("ja", "nein", ";"), refused="columns: Versuch (1, 2, 3), Erfolg (ja, ja, nein)"),
    text("failure.csv", "trial,failure\n" + rows("no", "yes"), refused=NO_DIRECTION),
    text("failure_as_success.csv", "trial,failure\n" + rows("no", "yes"), {"success": "failure"}, refused="use cost='failure' (--cost)"),
    text("success_as_cost.csv", "trial,success\n" + rows("1", "0"), {"cost": "success"}, refused="use success='success'"),
    text("done.csv", "trial,done\n" + rows("1", "1"), refused=NO_DIRECTION),
    text("bare.csv", "".join(f"{int(ok)}\n" for ok in OUTCOMES), refused=NO_DIRECTION),
    text("bare_words.csv", "".join("yes\n" if ok else "no\n" for ok in OUTCOMES), refused=NO_DIRECTION),
    text("bare_array.json", json.dumps(OUTCOMES), refused=NO_DIRECTION),
    text("two_candidates.csv", "success,reward\n1,3\n0,1\n", refused="columns success, reward could all be meant"),
    text("twice.csv", "trial,success,success\n1,yes,no\n", refused="several columns named 'success'"),
    text("pass_as_cost.csv", "trial,cost\n" + rows("pass", "fail"), refused="read the column with --success"),
    # Refused: a cell that says nothing, or two things
    text("aborted.csv", "trial,success\n1,yes\n2,\n3,no\n", refused="row 2 (line 3), column 'success' = '' says nothing"),
    text("not_available.csv", "trial,success\n1,yes\n2,n/a\n", refused="a trial that was stopped is a failure"),
    text("kinda.csv", "trial,success\n1,yes\n2,kinda\n", refused="(--success-values WORD,WORD)"),
    text("score.csv", "trial,success\n1,0.85\n2,0.9\n", refused="read it with --reward and --cost-range"),
    text("grade.csv", "trial,success\n1,1\n2,2\n", refused="row 2 (line 3), column 'success' = 2 is neither 0 nor 1"),
    text("thousands.csv", 'trial,cost\n1,"1,234"\n2,"2,500"\n', {"cost_range": (0, 5000)}, refused="1.2340"),
    text("points_and_commas.csv", "trial;cost\n1;0,25\n2;0.5\n", refused="write all of them alike"),
    text("bare_commas.csv", "0,25\n1,0\n0,5\n", {"cost": "1"}, refused="one number with a decimal comma or two columns"),
    text("date.csv", "trial,cost\n1,0.2\n2,2026-05-01\n", refused="'2026-05-01' is not a number"),
    text("percent_without_range.csv", "trial,cost\n1,1%\n2,0%\n", refused="(--cost-range 0 100)"),
    text("percent_by_name.csv", "trial,cost in %\n1,1\n2,0.5\n", {"cost": "cost in %"}, refused="(--cost-range 0 100)"),
    text("mean_below.csv", "trial,cost\n1,0.25\n2,0.75\nMean,0.5\n", refused="line 4 looks like a summary ('Mean')"),
    text("commented_out.csv", "trial,success\n1,yes\n#2,no\n3,yes\n", refused="looks like a trial that was commented out"),
    text("commented_out_wide.csv", "trial,object,grasped,notes,video\n1,mug,yes,,\n#7,mug,no,,\n", {"success": "grasped"}, refused="line 3 = '#7' looks like a trial that was commented out"),
    text("unquoted_note.csv", "trial,success,note\n1,yes,fine\n2,no,slipped, then fell\n", refused="in quotes"),
    workbook("several.xlsx", {"Monday": ROBOT, "Tuesday": ROBOT}, refused="choose one of 'Monday', 'Tuesday' with sheet="),
    workbook("date.xlsx", {"S": [["trial", "success"], [1, "yes"], [2, datetime.date(2026, 5, 1)]]}, refused="row 3 of the sheet"),
    workbook("hole.xlsx", {"S": [["trial", "success"], [1, "yes"], [2, None]]}, refused="column 'success' = None says nothing"),
    # Refused: more, or something else, than one trial per row
    text("letters.csv", "trial,success\n" + rows("P", "F"), refused="the column holds 'P', 'F'"),
    text("stages.csv", "trial,success\n1,S\n2,P\n3,F\n", refused="the column holds 'S', 'P', 'F'"),
    text("circles.csv", "trial,success\n" + rows("○", "×"), refused="(--success-values WORD,WORD)"),
    text("asterisk.csv", "trial,success\n1,yes\n2,yes*\n3,no\n", refused="the column holds 'yes', 'yes*', 'no'"),
    text("percent_of_trials.csv", "run,success\n1,85 %\n2,90 %\n", refused="read it with --reward and --cost-range 0 100"),
    text("eight_of_ten.csv", "object,success\nmug,8/10\nbowl,3/10\n", refused="give one row per trial"),
    text("units.csv", "trial,force,cost\n-,N,1\n1,12,0.2\n2,14,0.4\n", refused="line 2 looks like units ('N')"),
    text("markdown.md", "| trial | success |\n|---|---|\n| 1 | yes |\n| 2 | no |\n", refused="line 2 looks like units ('---')"),
    text("bare_total.csv", "trial,success\n1,1\n2,0\n3,0\n4,0\n,1\n", refused="line 6 has nothing but one value"),
    text("table_below.csv", "trial,success\n" + rows("1", "0") + "\nobject,grasped\n1,1\n2,0\n", refused="line 11"),
    text("page.xls", "<html><table><tr><td>success</td></tr></table></html>", refused="is a web page"),
    text("training_curve.csv", '"_step","eval/success_rate"\n100,0.1\n200,0.5\n', refused=NO_DIRECTION),
    text("gbk.csv", "编号,成功\n" + rows("是", "否"), {"success": "成功"}, encoding="gbk", refused="has no column '成功'"),
    workbook("formulas.xlsx", {"S": [["trial", "ok"], [1, "=TRUE()"], [2, "=FALSE()"]]}, {"success": "ok"}, refused="is a formula whose result is not in the file"),
    declared("A1:B2", workbook("formulas_appended.xlsx", {"S": [["trial", "ok"], [1, True], [2, "=FALSE()"]]}, {"success": "ok"}, refused="is a formula whose result is not in the file")),
    workbook("total.xlsx", {"S": [["trial", "success"], [1, 1], [2, 0], ["Total", 1]]}, refused="looks like a summary ('Total')"),
    workbook("side_by_side.xlsx", {"S": [["trial", "success", None, "trial", "success"], [1, "y", None, 2, "n"]]}, refused="several columns named 'success'"),
    Sheet("old.xls", b"\xd0\xcf\x11\xe0" + b"\0" * 600, refused="save it as .xlsx"),
]  # fmt: skip


def write(folder: Path) -> None:
    """Write every sheet into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for sheet in SHEETS:
        (folder / sheet.name).write_bytes(sheet.data)
