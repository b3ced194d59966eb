"""inspect-robots: a log of scenes, each tried in several epochs. ``status`` is that of the run."""

from __future__ import annotations

from typing import Any

from boundwatch.episodes.declared import Declared
from boundwatch.readers.block import Table, columnar
from boundwatch.readers.json_rows import document

_JUDGES = {"console": "human", "prompt": "human", "vlm": "judge", None: "nobody"}
_OPERATOR = "operator"  # the scorer that writes 0 where nobody judged


def read(data: bytes, source: str, declared: Declared) -> Table:
    """Read the trials: a column for each scorer, and scene_id, epoch and judged_by.

    A trial that ended in an error has no scores, and one that nobody judged none of the operator's.
    """
    content = document(data, source)
    trials = [trial for sample in content["samples"] for trial in _trials(sample)]
    names = {name: None for trial in trials for name in trial} | dict.fromkeys(_own({}, 0, None))
    columns: dict[str, list[Any]] = {name: [trial.get(name) for trial in trials] for name in names}
    table = columnar(source, "inspect-robots", columns, declared, {})
    table.cluster = "scene_id"
    if (status := content["status"]) != "success":
        table.warnings.append(f"the run did not come to its end (status {status!r}); were trials left out?")
    if missing := columns[table.column].count(None):
        table.notes.append(f"{missing} of {len(trials)} trials have no outcome: an error, or nobody judged")
    if table.column == _OPERATOR and (by_model := columns["judged_by"].count("judge")):
        table.notes.append(f"{by_model} of {len(trials)} trials were judged by a model, not by a person")
    return table


def _trials(sample: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the scores of every trial in a scene, with its own columns."""
    scored, found = sample["epochs"], []
    unknown = [None] * len(scored)
    verdicts, sources = sample.get("operator_judgements"), sample.get("judgement_sources") or unknown
    for epoch, (scores, verdict, judge) in enumerate(zip(scored, verdicts or scored, sources, strict=True)):
        kept = {name: score for name, score in scores.items() if verdict is not None or name != _OPERATOR}
        found.append(kept | _own(sample, epoch, judge))
    return found


def _own(sample: dict[str, Any], epoch: int, judge: str | None) -> dict[str, Any]:
    return {"scene_id": sample.get("scene_id"), "epoch": epoch, "judged_by": _JUDGES.get(judge, judge)}
