"""How `watch` prints: a line per episode, a summary, and on standard error what people should know."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from typing import Any

from boundwatch._support.describing import printable
from boundwatch.cli import output as out
from boundwatch.detectors import ChangeDetector, Verdict
from boundwatch.reporting import wording
from boundwatch.reporting.wording import count
from boundwatch.watching.watch import Counted, Events, Notice, Watch

_STYLES = {Verdict.ADVERSE: "bold red", Verdict.BENIGN: "green", Verdict.WITHIN: "default"}
_BACKLOG = 100  # episodes that came at once; of more, people read the last


def say_where(session: Watch) -> None:
    """Say where a watch goes on, if it does."""
    if not session.resumed:
        return
    last = f"line {session.position.lines}"
    if session.last is not None:
        last += f", last cost {session.last.costs[-1]:g}"
        last += "" if session.last.id is None else f", id {session.last.id}"
    counted = "which is counted even if it was not printed"
    out.warn(f"resuming after episode {session.episodes} ({last}), {counted}")


def print_events(events: Events, *, as_json: bool, interval: bool) -> None:
    """Print a line per episode; of a backlog, evidence only at alarms and at its end: it takes long."""
    brief = not interval and len(events) > _BACKLOG
    lines: list[tuple[str, Verdict]] = []
    for event in events:
        if isinstance(event, Notice):
            _print_lines(lines)
            lines = []
            out.warn(event.text)
            continue
        finding = event.finding
        shown = not brief or finding.first_alarm == finding.n or event is events[-1]
        line = _json_line(event, interval) if as_json else _text_line(event, interval, shown=shown)
        lines.append((line, finding.verdict))
    _print_lines(lines)


def _print_lines(lines: list[tuple[str, Verdict]]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True, markup=False)
        for line, verdict in lines:
            console.print(line, style=_STYLES[verdict])
    elif lines:
        print("\n".join(line for line, _ in lines), flush=True)


def _json_line(event: Counted, interval: bool) -> str:
    """Return an episode with all fields of its finding but those that take long unless asked for."""
    head: dict[str, Any] = {"line": event.line, "cost": event.cost, "skipped": event.skipped}
    if event.stream:
        head["stream"] = event.stream
    for field in dataclasses.fields(event.finding):
        if interval or not field.name.startswith("shift_"):
            head[field.name] = getattr(event.finding, field.name)
    return json.dumps(head, allow_nan=False)


def _text_line(event: Counted, interval: bool, *, shown: bool) -> str:
    finding = event.finding
    whose = f"{printable(event.stream)}  " if event.stream else ""
    one = "trial" if finding.binary else "episode"
    seen = f"{one} {finding.n:>5}  {out.seen(finding, event.cost)}"
    kept = ""
    if finding.no_worse:
        margin = wording.points(finding.margin, "nearest") if finding.binary else f"{finding.margin:g}"
        kept = f", worse by at most {margin}"
    return f"{whose}{seen}{_evidence(finding, interval) if shown else ''} {finding.verdict.name}{kept}"


def _evidence(finding: Any, interval: bool) -> str:
    if finding.e_adverse is None:  # of a change detector
        limit = f"{finding.mean_run_length_adverse:<6.6g}"
        return f" statistic {finding.statistic_adverse:<9.4g} alarm at {limit}"
    evidence = (
        f" worse: e {finding.e_adverse:<8.3g} p {finding.p_adverse:<8.3g} "
        f"better: e {finding.e_benign:<8.3g} p {finding.p_benign:<8.3g}"
    )
    if not interval:
        return evidence
    if finding.binary:
        return f"{evidence} shift {wording.signed_points(finding.shift_lower, finding.shift_upper)} "
    lower, upper = wording.floor(finding.shift_lower, "+"), wording.ceiling(finding.shift_upper, "+")
    return f"{evidence} shift {lower} to {upper} "


def print_notes(session: Watch) -> None:
    """Say how lines were read, and whether the last one was whole."""
    for note in [] if session.reader is None else session.reader.notes:
        out.warn(f"note: {session.source}: {note}")
    if session.unfinished is not None:
        out.warn(f"line {session.unfinished} has no newline yet; it is left for the next time")


def print_summary(session: Watch) -> None:
    """Print what is known of every stream at the end."""
    for stream, detector in session.detectors.items():
        if detector.n:
            said = wording.says(detector.verdict, binary=detector.certificate.binary)
            print(f"\n{f'{printable(stream)}: ' if stream else ''}{said}")
            _print_rows(_of_stream(detector))
    if missing := [printable(stream) for stream, one in session.detectors.items() if one.n == 0]:
        print(f"\nNo episodes of {', '.join(missing)}: not judged.")
    _print_rows(_of_all(session))


def _print_rows(rows: Iterator[tuple[str, str]]) -> None:
    for label, text in rows:
        print(f"  {label:<13} {text}")


def _of_all(session: Watch) -> Iterator[tuple[str, str]]:
    for measure in session.reader.measures.values() if session.reader is not None else ():
        yield "costs", f"{session.source}: {measure}"
    assumed = "the guarantee assumes that no episode was left out"
    if session.skipped:
        yield "skipped", f"{count(session.skipped, 'malformed line')}, not counted; {assumed}"
    if session.repeated:
        again = "with an id that was counted before, not counted again"
        yield "repeated", f"{count(session.repeated, 'line')} {again}"
    if session.gaps:
        yield "gaps", f"{count(session.gaps, 'time')} an id was missing or out of order; {assumed}"
    if len(each := session.detectors.values()) > 1:
        chance = f"has a chance of at most {sum(one.alpha_adverse for one in each):.6g} plus"
        if changes := [one for one in each if isinstance(one, ChangeDetector)]:  # the chance grows with time
            total = sum(one.false_alarm_probability(one.n) for one in changes)
            chance = f"so far has a chance of at most {min(total, 1.0):.4g}, which includes"
        shares = f"{len(each)} streams, each at an equal share"
        yield "levels", f"{shares}: any false ADVERSE {chance} the certificates' delta"


def _of_stream(detector: Any) -> Iterator[tuple[str, str]]:
    finding = detector.finding()
    one = "trial" if finding.binary else "episode"
    reached = "" if detector.first_alarm is None else f"; first alarm at {one} {detector.first_alarm}"
    if finding.binary:
        yield "trials", f"{wording.failed(finding)} ({wording.percent(finding.mean_cost)}){reached}"
    else:
        yield "episodes", f"{detector.n}, mean cost {finding.mean_cost:.4f}{reached}"
    if finding.e_adverse is not None:  # of a change detector there is none
        yield "shift", f"{wording.shift(finding)}, valid at all times at once"
        if detector.verdict is not Verdict.WITHIN and finding.shift_lower <= 0 <= finding.shift_upper:
            yield "note", "with binary costs the alarm may precede the interval: see docs/anytime.md"
        limit = f"with probability at most {finding.false_positive_rate:.6g}"
        yield "false alarms", f"ADVERSE is ever declared {limit} in any world that is not worse"
        yield from wording.margin_words(finding)
        return
    if finding.change_began is not None:
        yield "began", f"about episode {finding.change_began} (an estimate)"
    limit = f"within these {detector.n} with probability at most {finding.false_alarm_probability:.4g}"
    mean = f"on average after {finding.mean_run_length_adverse:g} episodes or more"
    yield "false alarms", f"{limit}; if the certificate holds, {mean}"


def warn_of_undelivered(session: Watch) -> None:
    """Say which alarms nobody was told of."""
    again = "with --state, a second start would try again"
    if session.store.path is not None:
        again = "run the same command to try again"
    for stream, reason in session.alarms.undelivered.items():
        out.warn(f"{f'{stream}: ' if stream else ''}the alarm was not delivered, {reason}; {again}")
