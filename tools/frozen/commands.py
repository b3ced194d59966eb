"""Records the commands: exit codes, numbers and verdicts of their JSON and of the certificates they write."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flat import flatten

DATA = Path(__file__).parents[2] / "examples" / "data"
PROGRAM = Path(sys.executable).parent / "boundwatch"

RENAMED = {
    "compare--by": "--policy",
    "certify--policy": "--policy-file",
    "verify--policy": "--policy-file",
    "watch--unlabelled": "--unlabeled",
}
"""Flags that later trees call otherwise; the later name is used where the command's help has it."""

COMMANDS = """
lab: certify @/lab.csv -o lab.json --json
lab trials: certify @/lab_trials.csv --success grasped -o trials.json --json
lab by: certify @/lab_trials.csv --success grasped --by object -o objects.json --json
bounds: certify --bounds 0 0.22216 --delta 0.01 -o drone.json --json
bounds binary: certify --bounds 0.05 0.2 --delta 0.02 --binary -o external.json --json
flights: certify @/flights/no-wind.csv --no-binary -o flights.json --json
hoeffding: certify @/lab.csv --method hoeffding --delta 0.05 -o hoeffding.json --json
kl: certify @/lab.csv --method kl -o kl.json --json
betting: certify @/lab.csv --method betting --no-binary -o betting.json --json
policy: certify @/lab.csv --policy sheet.csv --seed 3 -o policy.json --json
until width: certify @/lab.csv --until-width 0.25 --at-most 200 -o width.json --json
until upper: certify sheet.csv --success ok --until-upper 0.5 --at-most 60 -o upper.json --json
at most: certify sheet.csv --cost force --cost-range 0 50 --at-most 40 -o most.json --json
two metrics: certify sheet.csv --success ok --cost force --cost-range 0 50 -o metrics.json --json
lerobot: certify @/lerobot/eval_info.json -o lerobot.json --json
lerobot by: certify @/lerobot/eval_info.json --by task -o lerobots.json --json
dataset: certify @/lerobot/dataset -o dataset.json --json
dataset reward: certify @/lerobot/dataset --reward next.reward --cost-range 0 1 -o reward.json --json
monitor file: certify @/sb3/0.monitor.csv --cost-range -3255 0 -o pendulum.json --json
evaluations: certify @/sb3/evaluations.npz --cost-range -3255 0 --where evaluation=2 -o ev.json --json
mcap: certify @/robot.mcap --success /episode/result.success -o robot.json --json
mcap by: certify @/robot.mcap --success /episode/result.success --by robot -o robots.json --json
mcap steps: certify @/robot.mcap --cost /safety.cost --episode episode --reduce max -o safety.json --json
range: certify sheet.csv --cost force --cost-range 0 50 -o force.json --json
reward: certify sheet.csv --reward score --cost-range 0 10 -o score.json --json
by robot: certify sheet.csv --success ok --by robot -o by-robot.json --json
words: certify words.csv --success result --success-values placed,held -o words.json --json
semicolons: certify semicolons.csv --cost force --cost-range 0 50 -o semicolons.json --json
tabs: certify tabs.tsv --success ok -o tabs.json --json
json array: certify sheet.json --success ok -o array.json --json
json lines: certify sheet.jsonl --cost force --cost-range 0 50 -o lines.json --json
npy: certify costs.npy --cost 1 -o npy.json --json
parquet: certify sheet.parquet --success ok -o parquet.json --json
xlsx: certify sheet.xlsx --success ok -o xlsx.json --json
gzip: certify sheet.csv.gz --success ok -o gzip.json --json
steps sum: certify steps.csv --cost cost --cost-range 0 12 --episode episode --reduce sum -o sum.json --json
steps any: certify steps.csv --success reached --episode episode --reduce any -o any.json --json
stdin: certify - --success ok -o stdin.json --json < sheet.csv
no range: certify sheet.csv --cost force -o never.json --json
no column: certify sheet.csv --success nothing -o never.json --json
no flag: certify sheet.csv -o never.json --json
not a number: certify broken.csv --cost force --cost-range 0 50 -o never.json --json
check: check lab.json @/kitchen.csv --json
check exit: check lab.json @/kitchen.csv --json --exit-code
check tail: check lab.json @/kitchen.csv --tail exact --json
check hoeffding: check lab.json @/kitchen.csv --tail hoeffding --alpha-adverse 0.01 --json
check kl: check lab.json @/kitchen.csv --tail kl --json
check interval: check lab.json @/kitchen.csv --detector confidence-interval --false-positive-rate 0.04 --json
check margin: check lab.json @/kitchen.csv --margin 0.05 --json --exit-code
check own: check lab.json @/lab.csv --json
check allow own: check lab.json @/lab.csv --allow-own --json
check trials: check trials.json @/kitchen_trials.csv --success grasped --json
check objects: check objects.json @/kitchen_trials.csv --success grasped --by object --json
check by: check trials.json @/kitchen_trials.csv --success grasped --by object --json
check drone: check drone.json @/flights/wind-100.csv --json
check easier: check flights.json @/flights/easier.csv --json
check harder: check flights.json @/flights/harder.csv --json
check lerobot: check lerobots.json @/lerobot/after_update.json --by task --json
check evaluations: check pendulum.json @/sb3/evaluations.npz --cost-range -3255 0 --where evaluation=2 --json
check force: check force.json new.csv --cost force --cost-range 0 50 --json
check force kept: check force.json new.csv --json
check metrics: check metrics.json new.csv --success ok --cost force --json
check robots: check by-robot.json new.csv --success ok --by robot --margin 0.3 --json
check stdin: check lab.json - --json --exit-code < @/kitchen.csv
report: report lab.json @/kitchen.csv -o report.html
watch: watch lab.json @/kitchen.csv --json --exit-code
watch interval: watch lab.json @/kitchen.csv --interval --json
watch flights: watch flights.json @/flights/harder.csv --json
watch change: watch lab.json @/kitchen.csv --detector change-detector --json
watch numbers: watch drone.json - --json < numbers.txt
watch lines: watch force.json - --cost force --cost-range 0 50 --json < new.jsonl
watch margin: watch lab.json new.csv --success ok --margin 0.2 --json --exit-code
watch until: watch lab.json @/kitchen.csv --until-alarm --json
watch tasks: watch by-robot.json new.csv --success ok --by robot --json
watch metrics: watch metrics.json new.csv --success ok --cost force --json
watch predicted: watch external.json predicted.jsonl --predicted guess --unlabelled others --json
watch first half: watch lab.json half.csv --success ok --state watch.state --json
watch grown: watch lab.json half.csv --success ok --state watch.state --json <> whole.csv
watch again: watch lab.json half.csv --success ok --state watch.state --json
watch at once: watch lab.json whole.csv --success ok --state whole.state --json
watch pipe: watch lab.json - --success ok --id trial --state pipe.state --json < begun.csv
watch pipe again: watch lab.json - --success ok --id trial --state pipe.state --json < whole.csv
compare: compare @/lab.csv @/kitchen.csv --json --exit-code
compare by: compare sheet.csv --success ok --by policy --json
compare paired: compare sheet.csv --success ok --by policy --paired --margin 0.1 --json --exit-code
compare horizon: compare sheet.csv --success ok --by policy --horizon 60 --alpha 0.1 --json
compare force: compare sheet.csv --cost force --cost-range 0 50 --by policy --json
compare lerobot: compare @/lerobot/eval_info.json @/lerobot/after_update.json --json
compare three: compare sheet.csv --success ok --by robot --json
compare flights: compare @/flights/no-wind.csv @/flights/easier.csv @/flights/harder.csv --json
plan: plan --cost 0.1 --new-cost 0.3 --lab-trials 50 -n 20 --json
plan margin: plan --cost 0.1 --new-cost 0.1 --margin 0.2 --json
plan compare: plan --compare 0.1 0.25 --paired --correlation 0.2 --json
plan certificate: plan lab.json --cost 0.5 --json
plan pilot: plan drone.json --costs @/flights/harder.csv -n 20 --json
verify: verify lab.json --json
verify costs: verify lab.json --costs @/lab.csv --json
verify others: verify lab.json --costs @/kitchen.csv --json
verify family: verify objects.json --costs @/lab_trials.csv --success grasped --by object --json
verify campaign: verify width.json --json
verify force: verify force.json --costs sheet.csv --cost force --cost-range 0 50 --json
show: show lab.json --json
show shift: show flights.json --under-shift 0.1 --json
show task: show objects.json --task mug --json
selftest: selftest external.json --runs 60 --seed 5 --json
scenes: scenes scenes-lab.csv scenes-new.csv --json
scenes alpha: scenes scenes-lab.csv scenes-lab.csv --alpha 0.1 --json
"""
"""Name: arguments [< standard input, or <> what half.csv has grown to]; ``@`` is examples/data. Other files
are made below or by earlier commands."""


def _csv(path: Path, rows: list[dict[str, Any]], mark: str = ",") -> None:
    lines = [mark.join(rows[0]), *(mark.join(str(cell) for cell in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def _trials(seed: int, n: int, failing: float) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [
        {
            "trial": number + 1,
            "robot": ("arm-1", "arm-2", "arm-3")[number % 3],
            "policy": ("act", "dp")[number % 2],
            "ok": "no" if rng.random() < failing + 0.2 * (number % 2) else "yes",
            "force": round(float(rng.uniform(0, 40)) + 1.25, 2),
            "score": round(float(rng.uniform(0, 10)), 1) + 0.05,
        }
        for number in range(n)
    ]


def make_files(folder: Path) -> None:
    """Write the sheets that the commands read, one per format, the same bytes in every run."""
    trials, new = _trials(41, 120, 0.1), _trials(42, 45, 0.4)
    _csv(folder / "sheet.csv", trials)
    _csv(folder / "new.csv", new)
    _csv(folder / "half.csv", new[:20])
    _csv(folder / "begun.csv", new[:20])
    _csv(folder / "whole.csv", new)
    _csv(folder / "tabs.tsv", trials, "\t")
    _csv(folder / "broken.csv", [*trials[:9], trials[9] | {"force": "n/a"}, *trials[10:]])
    _csv(
        folder / "semicolons.csv",
        [row | {"force": f"{row['force']:.2f}".replace(".", ",")} for row in trials],
        ";",
    )
    words = {"yes": ("placed", "held"), "no": ("dropped", "missed")}
    _csv(
        folder / "words.csv", [{"run": t["trial"], "result": words[t["ok"]][t["trial"] % 2]} for t in trials]
    )
    steps = [
        {
            "episode": t["trial"],
            "step": s,
            "cost": (s * t["trial"]) % 4,
            "reached": int(s == 2 and t["ok"] == "yes"),
        }
        for t in trials[:40]
        for s in range(3)
    ]
    _csv(folder / "steps.csv", steps)
    (folder / "sheet.json").write_text(json.dumps(trials))
    (folder / "sheet.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trials))
    (folder / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in new))
    (folder / "sheet.csv.gz").write_bytes(gzip.compress((folder / "sheet.csv").read_bytes(), mtime=0))
    rng = np.random.default_rng(43)
    np.save(folder / "costs.npy", rng.random(80))
    (folder / "numbers.txt").write_text("".join(f"{cost:.3f}\n" for cost in rng.beta(2, 3, 60)))
    guesses = [{"cost": int(r["ok"] == "no"), "guess": round(rng.random(), 3)} for r in new]
    lines = [json.dumps(each | {"others": rng.random(4).round(3).tolist()}) for each in guesses]
    (folder / "predicted.jsonl").write_text("\n".join(lines) + "\n")
    for name, low in (("lab", 0.0), ("new", 0.25)):
        scenes = [{"scene": k, "predicted": round(low + 0.7 * rng.random(), 3)} for k in range(60)]
        _csv(folder / f"scenes-{name}.csv", scenes)
    _write_tables(folder, trials)


def _write_tables(folder: Path, trials: list[dict[str, Any]]) -> None:
    import openpyxl
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_pylist(trials), folder / "sheet.parquet")
    book = openpyxl.Workbook()
    for row in (list(trials[0]), *(list(each.values()) for each in trials)):
        book.active.append(row)
    book.save(folder / "sheet.xlsx")


def _parse(text: str) -> Any:
    """Return the JSON that a command printed: one document, or one per line."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def run(folder: Path, line: str, renamed: dict[str, str]) -> dict[str, Any]:
    """Run one line of the table in the folder, and return what it gave."""
    line, _, grown = line.partition(" <> ")
    words, _, source = line.partition(" < ")
    if grown:
        shutil.copyfile(folder / grown, folder / "half.csv")
    arguments = [word.replace("@", str(DATA), 1) if word.startswith("@/") else word for word in words.split()]
    arguments = [renamed.get(arguments[0] + word, word) for word in arguments]
    given = (folder / source.replace("@", str(DATA), 1)).read_bytes() if source else b""
    done = subprocess.run([PROGRAM, *arguments], cwd=folder, input=given, capture_output=True, check=False)
    answer = _parse(done.stdout.decode()) if "--json" in arguments else None
    found = {"exit code": done.returncode, **flatten({"json": answer})}
    if done.returncode:
        found["~"] = done.stderr.decode().strip()[-300:]
    written = folder / arguments[arguments.index("-o") + 1] if "-o" in arguments else None
    if written is not None and written.suffix == ".json":
        found |= flatten({"file": json.loads(written.read_text()) if written.exists() else None})
    return found


def _known_by(flag: str, command: str) -> bool:
    asked = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=False)
    return f"{flag} " in asked.stdout


def renames(given: Iterable[str]) -> dict[str, str]:
    """Return, by command and old flag, the flag to use in this tree: as given, or as its help says."""
    known = {old: new for old, new in RENAMED.items() if _known_by(new, old.partition("--")[0])}
    return known | dict(each.split("=", 1) for each in given)


def record_commands(given: Iterable[str] = ()) -> dict[str, Any]:
    """Return exit codes, numbers and verdicts of every command in the table."""
    renamed, found = renames(given), {}
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        for line in COMMANDS.strip().splitlines():
            name, _, arguments = line.partition(": ")
            found[name] = run(Path(folder), arguments, renamed)
    return found
