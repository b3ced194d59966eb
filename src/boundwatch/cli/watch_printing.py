"""How `watch` prints: a line per episode, a summary, and on standard error what people should know."""

from __future__ import annotations

import dataclasses
import json
import sys
from typing import Any

from boundwatch._support.text import printable
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
    out.warn(
        f"resuming after episode {session.episodes} ({last}), which is counted even if it was not printed"
    )


def print_json(events: Events, interval: bool) -> None:
    """Print an object per episode, with all fields but those that take long unless asked for."""
    lines: list[str] = []
    names: list[str] = []
    for event in events:
        if isinstance(event, Notice):
            out.warn(event.text)
            continue
        finding = event.finding
        if not names:  # the same for all: they come from one kind of detector
            names = [field.name for field in dataclasses.fields(finding)]
            names = [name for name in names if interval or not name.startswith("shift_")]
        head: dict[str, Any] = {"line": event.line, "cost": event.cost, "skipped": event.skipped}
        if event.stream:
            head["stream"] = event.stream
        lines.append(json.dumps(head | {name: getattr(finding, name) for name in names}, allow_nan=False))
    _print_lines(lines)


def print_text(events: Events, interval: bool) -> None:
    """Print a line per episode; of a backlog, evidence only at alarms and at its end: it takes long."""
    console = None
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True, markup=False)
    brief = not interval and len(events) > _BACKLOG
    lines: list[str] = []
    for event in events:
        if isinstance(event, Notice):
            _print_lines(lines)
            lines = []
            out.warn(event.text)
            continue
        finding = event.finding
        evidence = ""
        if not brief or finding.first_alarm == finding.n or event is events[-1]:
            evidence = _evidence(finding, interval)
        line = _text_line(event, evidence)
        if console is None:
            lines.append(line)
        else:
            console.print(line, style=_STYLES[finding.verdict])
    _print_lines(lines)


def _evidence(finding: Any, interval: bool) -> str:
    if finding.e_adverse is None:  # of a change detector
        return (
            f" statistic {finding.statistic_adverse:<9.4g} alarm at {finding.mean_run_length_adverse:<6.6g}"
        )
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


def _text_line(event: Counted, evidence: str) -> str:
    finding = event.finding
    whose = f"{printable(event.stream)}  " if event.stream else ""
    seen = f"episode {finding.n:>5}  cost {event.cost:<6.4g} mean {finding.mean_cost:<7.4f}"
    if finding.binary:
        outcome = "failed" if event.cost else "succeeded"
        seen = f"trial {finding.n:>5}  {outcome:<9}  {wording.failed(finding):<16}"
    shown = ""
    if finding.no_worse:
        margin = wording.points(finding.margin, "nearest") if finding.binary else f"{finding.margin:g}"
        shown = f", worse by at most {margin}"
    return f"{whose}{seen}{evidence} {finding.verdict.name}{shown}"


def _print_lines(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines), flush=True)


def print_notes(session: Watch) -> None:
    """Say how lines were read, and whether the last one was whole."""
    for note in [] if session.reader is None else session.reader.notes:
        out.warn(f"note: {session.source}: {note}")
    if session.unfinished is not None:
        out.warn(f"line {session.unfinished} has no newline yet; it is left for the next time")


def print_end(session: Watch, *, as_json: bool) -> None:
    """Print what is known in the end, and say which alarms nobody was told of."""
    print_notes(session)
    if not as_json:
        _print_summary(session)
    again = "with --state, a second start would try again"
    if session.store.path is not None:
        again = "run the same command to try again"
    for stream, reason in session.alarms.undelivered.items():
        whose = f"{stream}: " if stream else ""
        out.warn(f"{whose}the alarm was not delivered, {reason}; {again}")


def _print_summary(session: Watch) -> None:
    """Print what is known of every stream at the end."""
    for stream, detector in session.detectors.items():
        if detector.n:
            said = wording.says(detector.verdict, binary=detector.certificate.binary)
            print(f"\n{f'{printable(stream)}: ' if stream else ''}{said}")
            _stream_summary(detector)
    if missing := [printable(stream) for stream, one in session.detectors.items() if one.n == 0]:
        print(f"\nNo episodes of {', '.join(missing)}: not judged.")
    for measure in session.reader.measures.values() if session.reader is not None else ():
        print(f"  costs         {session.source}: {measure}")
    assumed = "the guarantee assumes that no episode was left out"
    if session.skipped:
        print(f"  skipped       {count(session.skipped, 'malformed line')}, not counted; {assumed}")
    if session.repeated:
        again = "with an id that was counted before, not counted again"
        print(f"  repeated      {count(session.repeated, 'line')} {again}")
    if session.gaps:
        print(f"  gaps          {count(session.gaps, 'time')} an id was missing or out of order; {assumed}")
    if len(session.detectors) > 1:
        each = list(session.detectors.values())
        chance = f"has a chance of at most {sum(one.alpha_adverse for one in each):.6g} plus"
        if changes := [one for one in each if isinstance(one, ChangeDetector)]:  # the chance grows with time
            total = sum(one.false_alarm_probability(one.n) for one in changes)
            chance = f"so far has a chance of at most {min(total, 1.0):.4g}, which includes"
        print(
            f"  levels        {len(each)} streams, each at an equal share: any false ADVERSE {chance} "
            "the certificates' delta"
        )


def _stream_summary(detector: Any) -> None:
    finding = detector.finding()
    one = "trial" if finding.binary else "episode"
    reached = "" if detector.first_alarm is None else f"; first alarm at {one} {detector.first_alarm}"
    if finding.binary:
        print(f"  trials        {wording.failed(finding)} ({wording.percent(finding.mean_cost)}){reached}")
    else:
        print(f"  episodes      {detector.n}, mean cost {finding.mean_cost:.4f}{reached}")
    if finding.e_adverse is not None:  # of a change detector there is none
        print(f"  shift         {wording.shift(finding)}, valid at all times at once")
        if detector.verdict is not Verdict.WITHIN and finding.shift_lower <= 0 <= finding.shift_upper:
            print("  note          with binary costs the alarm may precede the interval: see docs/anytime.md")
        print(
            f"  false alarms  ADVERSE is ever declared with probability at most "
            f"{finding.false_positive_rate:.6g} in any world that is not worse"
        )
        for label, text in wording.margin_words(finding):
            print(f"  {label:<13} {text}")
        return
    if finding.change_began is not None:
        print(f"  began         about episode {finding.change_began} (an estimate)")
    print(
        f"  false alarms  within these {detector.n} with probability at most "
        f"{finding.false_alarm_probability:.4g}; if the certificate holds, "
        f"on average after {finding.mean_run_length_adverse:g} episodes or more"
    )
