"""boundwatch watch: one line an episode from a stream, valid after every one."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.check import EXIT_ADVERSE
from boundwatch.cli.options import (
    CertificateFile,
    Column,
    CostRange,
    Episode,
    Evaluation,
    FileFormat,
    Reduce,
)
from boundwatch.cli.root import command
from boundwatch.detectors import Verdict
from boundwatch.episodes import Episodes, holds_lines, read_costs
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.reporting import wording
from boundwatch.watching.live import DETECTORS, Line, Watch, parse_line, read_lines, refuse_header

_STYLES = {Verdict.ADVERSE: "bold red", Verdict.BENIGN: "green", Verdict.WITHIN: "default"}


@command(
    example="my-robot | boundwatch watch certificate.json - --strict --state watch.state.json\n"
    "boundwatch watch certificate.json episodes.jsonl --strict --follow --until-alarm --exit-code"
)
def watch(
    certificate: CertificateFile,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="One number or JSON object per line; - reads standard input. Any other file that `check` "
            "reads is read as a whole, without --follow and --state.",
        ),
    ],
    detector: Annotated[
        Literal["sequential-test", "change-detector"],
        typer.Option(
            help="sequential-test: P[ever a false alarm] <= alpha + the certificate's delta. "
            "change-detector: the shift may begin at any time; if the certificate holds, false alarms come "
            "on average after 1/alpha episodes or more."
        ),
    ] = "sequential-test",
    alpha_adverse: Annotated[
        float | None,
        typer.Option(metavar="P", help="Level of ADVERSE. [default: 0.04; change-detector: 0.001]"),
    ] = None,
    alpha_benign: Annotated[
        float | None,
        typer.Option(metavar="P", help="Level of BENIGN. [default: 0.04; change-detector: 0.001]"),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the state here after every line, and resume from it."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for the file to grow.")] = False,
    until_alarm: Annotated[bool, typer.Option("--until-alarm", help="Stop at the first alarm.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 3 if the verdict is ADVERSE.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Stop at a malformed line instead of skipping it: episodes that are left out make it wrong.",
        ),
    ] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Print the limits on the shift, too (3 ms a line).")
    ] = False,
    column: Column = None,
    cost_range: CostRange = None,
    file_format: FileFormat = None,
    episode: Episode = None,
    reduce: Reduce = None,
    evaluation: Evaluation = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per episode.")] = False,
) -> None:
    """Watch a stream of episodes and alarm as soon as there is evidence of a shift.

    You may look after every episode and stop whenever you like. A line is printed once its episode is in the
    state file. After a crash, give the same command: it says which line was the last one counted. Exits with
    1 if no episode was counted.
    """
    loaded = Certificate.load(certificate)
    given = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign}
    levels: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if interval and detector != "sequential-test":
        raise typer.BadParameter("--interval goes with --detector sequential-test only")
    if follow and stream == "-":
        raise typer.BadParameter("--follow is for files; standard input is always waited for")
    rules: dict[str, Any] = {"column": column, "cost_range": cost_range, "binary": loaded.binary}
    layout: dict[str, Any] = {
        "file_format": file_format,
        "episode": episode,
        "reduce": reduce,
        "evaluation": evaluation,
    }
    episodes: Episodes | None = None
    if any(value is not None for value in layout.values()) or not holds_lines(stream):
        if follow or state is not None:
            raise typer.BadParameter(
                "--follow and --state are for a number or JSON object a line; leave them out"
            )
        episodes = read_costs(stream, **rules, **layout)
        if episodes.blocks_of is not None:
            raise InvalidSetting(
                f"{stream}: comes {episodes.blocks_of} by {episodes.blocks_of}, so that a hard one would "
                f"alarm by its place; watch one at a time, or use check with --by {episodes.blocks_of}"
            )
        out.print_warnings(episodes)
        rules |= {"column": None, "cost_range": None}  # they are costs by now
    source = stream if stream == "-" else os.path.abspath(stream)  # noqa: PTH100  (links stay as named)
    if state is not None and state.exists():
        session = _resume(state, loaded, source, detector, levels)
    else:
        session = Watch(DETECTORS[detector](loaded, **levels), source)
    first = stream == "-" or session.end == 0
    show = _json_line if as_json else _text_line
    try:
        if not (until_alarm and session.detector.first_alarm):
            # With a state, an unfinished last line is left for the next time; it may be half a number.
            lines = read_lines(stream, start=session.end, number=session.lines, wait=follow)
            for line in lines if episodes is None else _as_lines(episodes):
                if state is not None and stream != "-" and not line.text.endswith("\n"):
                    _warn(f"line {line.number} has no newline yet; it is left for the next time")
                    break
                if episodes is None and line.text.strip():
                    refuse_header(line, stream, first=first)
                    first = False
                cost = _cost(line, strict, **rules)
                if cost is None:
                    session.skip(line, malformed=bool(line.text.strip()))
                    finding = None
                else:
                    finding = session.count(line, cost)
                if state is not None:
                    session.save(state)
                if finding is not None:
                    show(session, finding, interval)
                    if until_alarm and session.detector.first_alarm:
                        break
    except KeyboardInterrupt:
        pass  # the usual end of --follow
    if session.detector.n == 0:
        raise InvalidCost(f"{stream}: no episode was counted, so nothing was judged; send at least one")
    if not as_json:
        _summary(session)
        rule = "lines: a number is read as a cost (highest is worst), an object by the name of its column"
        print(f"  costs         {rule if episodes is None else out.describe_source(episodes)}")
    if exit_code and session.detector.verdict is Verdict.ADVERSE:
        raise typer.Exit(EXIT_ADVERSE)


def _resume(
    state: Path, certificate: Certificate, source: str, detector: str, levels: dict[str, float]
) -> Watch:
    session = Watch.load(state, certificate, source)
    if not isinstance(session.detector, DETECTORS[detector]):
        raise InvalidSetting(f"{state}: belongs to another detector; name it with --detector, or start anew")
    for name, value in levels.items():
        stored = getattr(session.detector, name)
        if stored != value:
            flag = f"--{name.replace('_', '-')}"
            raise InvalidSetting(
                f"{state}: was begun with {flag} {stored:g}, not {value:g}; leave {flag} out"
            )
    last = f"line {session.lines}" + (
        "" if session.last_cost is None else f", last cost {session.last_cost:g}"
    )
    again = "Do not send that line again" if source == "-" else "It goes on with the next line"
    _warn(
        f"resuming after episode {session.detector.n} ({last}), which is counted even if it was not printed. "
        f"{again}."
    )
    return session


def _as_lines(episodes: Episodes) -> Iterator[Line]:
    return (Line(row, repr(cost), 0) for row, cost in enumerate(episodes.costs.tolist(), start=1))


def _cost(line: Line, strict: bool, **rules: Any) -> float | None:
    if not line.text.strip():
        return None
    try:
        return parse_line(line.text, **rules)
    except InvalidCost as error:
        if strict:
            raise InvalidCost(f"line {line.number}: {error}; correct it, or leave out --strict") from error
        _warn(f"line {line.number} skipped, not counted: {error}")
        return None


def _json_line(session: Watch, finding: Any, interval: bool) -> None:
    fields = [field.name for field in dataclasses.fields(finding)]
    content = {name: getattr(finding, name) for name in fields if interval or not name.startswith("shift_")}
    head = {"line": session.lines, "cost": session.last_cost, "skipped": session.skipped}
    print(json.dumps(head | content, allow_nan=False), flush=True)


def _text_line(session: Watch, finding: Any, interval: bool) -> None:
    if hasattr(finding, "e_adverse"):
        evidence = (
            f"worse: e {finding.e_adverse:<8.3g} p {finding.p_adverse:<8.3g} "
            f"better: e {finding.e_benign:<8.3g} p {finding.p_benign:<8.3g}"
        )
    else:
        evidence = (
            f"statistic {finding.statistic_adverse:<9.4g} alarm at {finding.mean_run_length_adverse:<6.6g}"
        )
    shift = ""
    if interval:
        lower, upper = wording.floor(finding.shift_lower, "+"), wording.ceiling(finding.shift_upper, "+")
        shift = f" shift {lower} to {upper} "
    text = (
        f"episode {finding.n:>5}  cost {session.last_cost:<6.4g} mean {finding.mean_cost:<7.4f} "
        f"{evidence}{shift} {finding.verdict.name}"
    )
    if sys.stdout.isatty():
        from rich.console import Console

        Console(highlight=False, soft_wrap=True).print(text, style=_STYLES[finding.verdict])
    else:
        print(text, flush=True)


def _summary(session: Watch) -> None:
    detector = session.detector
    finding = detector.finding()
    print(f"\n{wording.HEADLINES[detector.verdict]}")
    reached = "" if detector.first_alarm is None else f"; first alarm at episode {detector.first_alarm}"
    print(f"  episodes      {detector.n}, mean cost {finding.mean_cost:.4f}{reached}")
    if session.skipped:
        print(
            f"  skipped       {session.skipped} malformed lines, not counted; the guarantee assumes that no "
            "episode was left out"
        )
    if hasattr(finding, "e_adverse"):
        print(
            f"  shift         expected cost changed by {wording.floor(finding.shift_lower, '+')} "
            f"to {wording.ceiling(finding.shift_upper, '+')}, valid at all times at once"
        )
        if detector.verdict is not Verdict.WITHIN and finding.shift_lower <= 0 <= finding.shift_upper:
            print("  note          with binary costs the alarm may precede the interval: see docs/anytime.md")
        print(
            f"  false alarms  ADVERSE is ever declared with probability at most "
            f"{finding.false_positive_rate:.6g} in any world that is not worse"
        )
        return
    if finding.change_began is not None:
        print(f"  began         about episode {finding.change_began} (an estimate)")
    print(
        f"  false alarms  within these {detector.n} with probability at most "
        f"{finding.false_alarm_probability:.4g}; if the certificate holds, "
        f"on average after {finding.mean_run_length_adverse:g} episodes or more"
    )


def _warn(message: str) -> None:
    print(f"boundwatch: {message}", file=sys.stderr, flush=True)
