"""The report of an evaluation: one page that follows from its log, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape
from pathlib import Path

import numpy as np

from boundwatch._support.files import read_bytes, sha256_file
from boundwatch._version import __version__
from boundwatch.certificates import signing
from boundwatch.errors import InvalidSetting, Place, part_of
from boundwatch.evaluation.evaluation import Evaluation
from boundwatch.evaluation.protocol import Protocol
from boundwatch.evaluation.results import Results
from boundwatch.reporting import page, svg, wording
from boundwatch.reporting.families import name_first
from boundwatch.reporting.page import Html
from boundwatch.reporting.report import signature

_MOST_CELLS = 1000
_DRIFT = {
    True: "whatever drifts over the day or differs between stations (the order was drawn at random), and "
    "whenever somebody looks or stops.",
    False: "whenever somebody looks or stops, if conditions stay the same.",
}
_CONFIRM = (
    "The policies were final before the first trial, and operators did not know which letter was which.",
    "Each trial was run as the sheet said, with the policy, the task and the scene that it named.",
    "Every trial that was begun was recorded, by rules that were fixed before.",
)


def render(evaluation: Evaluation) -> str:
    """Return the page."""
    known = evaluation.replay()
    found, protocol = Results(known), known.protocol
    times = sorted(outcome.time for *_, outcome in known.recorded)
    when = f", {times[0][:10]} {times[0][11:16]} to {times[-1][:10]} {times[-1][11:16]} UTC" if times else ""
    promise = known.evidence.guarantee.format(protocol.alpha, 1 - protocol.alpha)
    named = [f"{time[:19]}: {said} (row {row})" for row, time, said in known.events]
    sealed = [(name, _said(each)) for name, each in protocol.to_dict().items() if each not in (None, {}, [])]
    departed = sum(not said.startswith("note") for *_, said in known.events)
    notes = [f"Departures from the plan: {departed or 'none'}{', listed below' if departed else ''}."]
    if protocol.blind and protocol.seed is not None:
        notes.append("Whoever knows the seed in the protocol could work out the letters before the end.")
    sections = [
        page.heading(f"Evaluation: {', '.join(protocol.policies)}", level=1),
        page.paragraph(f"{protocol}; {len(times)} trials{when}; {known.ended or 'not finished'}", "lead"),
        page.verdict("within", found.answer, [f"{promise}, {_DRIFT[known.evidence.paired]}", *notes]),
        *(_found(found) if found.seen else ()),
        page.heading("Departures from the plan, and notes"),
        page.bullets(named or ["None: no abort, no undo, no look at results, no deviation."]),
        page.heading("What was sealed before the first trial"),
        page.rows(sealed),
        page.heading("Provenance"),
        page.rows(_provenance(evaluation), code=True),
        *signature(_CONFIRM),
    ]
    return page.page(found.answer, sections)


def _said(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({each:g})" for name, each in value.items())
    if isinstance(value, list):
        return ", ".join(map(_said, value)) or "nothing"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _found(found: Results) -> Iterator[Html]:
    """Yield what was seen: tables, figures, every trial, and rows for a paper."""
    yield page.heading("What was found")
    yield page.table(*name_first(found.overall))
    yield page.rows(found.known.evidence.rows(found.finding))
    bars = [
        (f"{name}, {task}" if task else name, [found.units(x) for x in (seen.cost, seen.upper, seen.lower)])
        for (name, task), seen in sorted(found.seen.items(), key=lambda each: each[0][1] != "")
    ]
    low, high = found.units(1), found.units(0)
    what = {"success": "success rate", "score": "score", "rubric": "points"}[found.protocol.measure]
    yield page.figure(
        svg.draw_limits(bars, (low, high), what),
        f"Mean {what} of each policy, with limits that hold at all times with probability "
        f"{wording.percent(1 - found.protocol.alpha)} each, if conditions stay the same.",
    )
    if found.protocol.slots > 1:
        yield page.heading("By task", level=3)
        yield page.table(*name_first(found.by_task))
        yield page.paragraph("For reading: the answer is about the mean over tasks, not about one of them.")
    yield from _order(found)
    yield page.heading("Rows for a paper")
    for kind, text in found.paper().items():
        yield Html(f"<p>{kind}</p><pre><code>{escape(text)}</code></pre>")


def _order(found: Results) -> Iterator[Html]:
    """Yield the trials in their order, and how failures rose or fell over them."""
    trials = sorted(found.known.recorded, key=lambda each: each[0].number)
    costs = np.array([outcome.cost for *_, outcome in trials])
    yield page.heading("The trials in their order")
    yield page.figure(
        svg.draw_order([(trial.policy[:2], outcome.cost) for trial, _, outcome in trials[:_MOST_CELLS]]),
        f"One cell per trial (of at most {_MOST_CELLS}) with the letter of its policy, from left to right; "
        "the stronger its color, the higher the cost, such as that of a failure.",
    )
    if costs.size >= 10:
        first, last = costs[: costs.size // 2].mean(), costs[costs.size // 2 :].mean()
        yield page.paragraph(
            f"Mean cost of all policies together: {first:.2f} in the first half of the trials, {last:.2f} in "
            "the second. The order is random, so drift favors none."
        )
    lines = [
        (str(t.number), t.policy, name, t.task, t.scene, _outcome(each.said), each.time, each.station)
        for t, name, each in trials
    ]
    heads = ("trial", "letter", "policy", "task", "scene", "outcome", "time", "station")
    yield Html(f"<details><summary>Every trial</summary>{page.table(heads, lines)}</details>")


def _outcome(said: Mapping[str, object]) -> str:
    return "; ".join(f"{name} {_said(value)}" for name, value in said.items() if name != "trial")


def _provenance(evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    known, status = evaluation.replay(), evaluation.status
    yield from evaluation.seal.items()
    if known.closed:
        yield "opened key", f"{known.end['secret']}, which fits the commitment"
        letters = sorted((letter, name) for name, letter in known.schedule.letters(1).items())
        yield "letters", ", ".join(map(" ".join, letters))
    else:
        yield "key", "sealed until the end"
    yield "log", f"{status['rows']} rows, chained by SHA-256; the last is {status['head']}"
    yield "boundwatch", __version__


def check(evaluation: Evaluation, path: Path, others: Iterable[Path], key: Path | None) -> dict[str, str]:
    """Return what was derived again; refuse a file that does not follow from the log."""
    known, status = evaluation.replay(), evaluation.status
    opened = "opened, fits its commitment" if known.closed else "sealed until the end, fits its commitment"
    found = {
        "log": f"{status['rows']} rows, each follows from the one before; the last is {status['head']}",
        "protocol": f"{known.protocol} ({known.protocol.fingerprint})",
        "key": opened,
        "state": f"{known.ended or 'go on'} after {wording.count(known.rounds, 'round')}",
    }
    if known.closed:
        found["answer"] = Results(known).answer
    if key is not None:
        with part_of(str(path)):
            signing.check_signature(path, evaluation.seal, key)
        found["signature"] = f"what was sealed, by the holder of {key}"
    for other in others:
        if other.suffix == ".toml":
            same = Protocol.load(other) == known.protocol
        else:
            derived = render(evaluation) if other.suffix == ".html" else Results(known).as_csv()
            same = read_bytes(other) == derived.encode()
        if not same:
            problem, remedy = "does not follow from the log", "it was edited, or is of another evaluation"
            raise InvalidSetting(problem, where=Place(str(other)), remedy=remedy)
        found[other.name] = "follows from the log"
        if key is not None and signing.signature_path(other).exists():
            with part_of(str(other)):
                signing.check_signature(other, {"report": sha256_file(other)}, key)
            found[other.name] += f", signed by the holder of {key}"
    return found
