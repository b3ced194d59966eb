"""inspect-robots: a log of scenes, each tried in several epochs. ``status`` is that of the run."""

from __future__ import annotations

from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Place
from boundwatch.readers.table import Table, of_log
from boundwatch.readers.text import document

_JUDGES = {"console": "human", "prompt": "human", "vlm": "judge", None: "nobody"}
_OPERATOR = "operator"  # the scorer that writes 0 where nobody judged


def read(data: bytes, source: str, declared: Declared) -> Table:
    """Read the trials: a column for each scorer, and scene_id, epoch and judged_by.

    A trial that ended in an error has no scores, and one that nobody judged none of the operator's.
    """
    content, trials = document(data, Place(source)), list[dict[str, Any]]()
    for sample in content["samples"]:
        scored = sample["epochs"]
        verdicts = sample.get("operator_judgements") or scored
        judges = sample.get("judgement_sources") or [None] * len(scored)
        for epoch, (scores, verdict, judge) in enumerate(zip(scored, verdicts, judges, strict=True)):
            kept = {name: score for name, score in scores.items() if verdict is not None or name != _OPERATOR}
            own = {"scene_id": sample.get("scene_id"), "epoch": epoch, "judged_by": _JUDGES.get(judge, judge)}
            trials.append(kept | own)
    last = dict.fromkeys(("scene_id", "epoch", "judged_by"))
    names = {name: None for trial in trials for name in trial if name not in last} | last
    columns: dict[str, list[Any]] = {name: [trial.get(name) for trial in trials] for name in names}
    table = of_log(source, "inspect-robots", columns, declared)
    scorer = columns[table.layout.measure.columns[0]]
    if (status := content["status"]) != "success":
        table.warnings.append(f"the run did not come to its end (status {status!r}); were trials left out?")
    if missing := scorer.count(None):
        table.notes.append(f"{missing} of {len(trials)} trials have no outcome: an error, or nobody judged")
    if table.layout.measure.column == _OPERATOR and (by_model := columns["judged_by"].count("judge")):
        table.notes.append(f"{by_model} of {len(trials)} trials were judged by a model, not by a person")
    return table
