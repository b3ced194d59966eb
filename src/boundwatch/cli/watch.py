"""boundwatch watch: one line per episode from a stream, valid after every one."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch._support import files
from boundwatch._support.text import printable
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli import output as out
from boundwatch.cli.family import is_of_metrics, tasks_of_metrics
from boundwatch.cli.judge import ExitCode, Margin, exit_if_worse
from boundwatch.cli.options import By, CertificateFile, Key
from boundwatch.cli.reading import Reading
from boundwatch.cli.root import command
from boundwatch.detectors import ChangeDetector, Verdict
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers import read_costs
from boundwatch.readers.opening import MAGIC
from boundwatch.reporting import wording
from boundwatch.watching.alarms import Alarms, check_command, run_command
from boundwatch.watching.resuming import open_source, resume
from boundwatch.watching.sources import is_pipe, name_of
from boundwatch.watching.store import Store
from boundwatch.watching.trials import Trial, TrialReader, WithPredictions, declare, trials_of
from boundwatch.watching.watch import Counted, Notice, Watch, build_detectors

_STYLES = {Verdict.ADVERSE: "bold red", Verdict.BENIGN: "green", Verdict.WITHIN: "default"}


@command(
    example="boundwatch watch certificate.json episodes.jsonl --follow --state watch.state\n"
    "my-robot | boundwatch watch certificate.json - --id episode --state watch.state\n"
    "boundwatch watch certificates.json log.csv --by robot --on-alarm ./call-somebody\n"
    "boundwatch watch certificate.json log.jsonl --predicted critic --unlabeled others"
)
def watch(
    certificate: CertificateFile,
    stream: Annotated[
        str,
        typer.Argument(
            metavar="STREAM",
            help="One number or JSON object per line, or a CSV table with a header; - reads standard input. "
            "Any other file that `check` reads is read as a whole, without --follow and --state.",
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
    margin: Margin = None,
    predicted: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field with the cost predicted for the trial's scene, in [0, 1]: a good predictor saves "
            "trials, a bad one costs some; the guarantee holds for any. Needs --unlabeled.",
        ),
    ] = None,
    unlabeled: Annotated[
        str | None,
        typer.Option(
            metavar="FIELD",
            help="Field with predictions for scenes of the same world that were observed but not run: a JSON "
            "list, or numbers with blanks between them.",
        ),
    ] = None,
    by: By = None,
    key: Key = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the state here before anything is printed, and resume from it; the lines of a pipe, "
            "too.",
        ),
    ] = None,
    number: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="FIELD",
            help="Field with the sender's episode number: a repeated number counts once, a gap is an error. "
            "`line`: after a restart, the sender sends the stream again from its first line.",
        ),
    ] = None,
    allow_gaps: Annotated[
        bool, typer.Option("--allow-gaps", help="Report ids that are missing or out of order, and continue.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for the file to grow; follow its rotation.")
    ] = False,
    until_alarm: Annotated[bool, typer.Option("--until-alarm", help="Stop at the first alarm.")] = False,
    on_alarm: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Run COMMAND when the verdict changes, with the finding as JSON on its standard input; "
            "if it does not exit with 0, run it again after a second, then less and less often, at the end, "
            "and with --state at the next start.",
        ),
    ] = None,
    exit_code: ExitCode = False,
    skip_malformed: Annotated[
        bool,
        typer.Option(
            "--skip-malformed",
            help="Skip malformed lines instead of stopping. Leaving out episodes voids the guarantee.",
        ),
    ] = False,
    interval: Annotated[
        bool, typer.Option("--interval", help="Print the limits on the shift, too (a few ms per line).")
    ] = False,
    *,
    reading: Reading,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per episode.")] = False,
) -> None:
    """Watch a stream of episodes and alarm as soon as there is evidence of a shift.

    You may look after every episode and stop whenever you like. A line is printed once its episode is in the
    state file. After a crash, run the same command: it continues where it stopped. Exits with 1 if no
    episode was counted, or if an alarm could not be delivered. With the certificates of several tasks or
    robots, each is watched at an equal share of the level.
    """
    if (predicted is None) != (unlabeled is None):
        raise typer.BadParameter("--predicted and --unlabeled must be given together")
    _refuse_with(detector, margin=margin, predicted=predicted, interval=interval)
    if follow and stream == "-":
        raise typer.BadParameter("--follow is for files; standard input is always waited for")
    if allow_gaps and number is None:
        raise typer.BadParameter("--allow-gaps goes with --id")
    if state is not None:  # what is no state is refused when it is opened
        files.protect(state, [certificate, stream], force=True)
    if on_alarm is not None:
        check_command(on_alarm)
    loaded = load(certificate, key=key)
    out.print_trust(loaded, key)
    design = _design(loaded, _streams(loaded, by, certificate), number, predicted, unlabeled)
    by_line = follow or skip_malformed or is_pipe(stream) or stream == "-"
    by_line = by_line or any(option is not None for option in (state, number, predicted))
    given = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign, "margin": margin}
    levels = {name: value for name, value in given.items() if value is not None}
    kind = detector if predicted is None else "predicted-test"
    told = None if on_alarm is None else partial(run_command, on_alarm)
    with Store(state, "watch") as store:
        session = Watch(
            build_detectors(loaded, kind, levels),
            name_of(stream),
            store,
            settings=_settings(stream, kind, reading, design, number),
            alarms=Alarms(told),
            allow_gaps=allow_gaps,
            lenient=skip_malformed,
            until_alarm=until_alarm,
        )
        printer = _print_json if as_json else _print_text
        runs = _run_lines if by_line else _run_whole
        for events in runs(session, loaded, stream, reading, design, levels=levels, follow=follow):
            printer(events, interval)
    if session.unfinished is not None:
        _warn(f"line {session.unfinished} has no newline yet; it is left for the next time")
    if session.episodes == 0:
        raise InvalidCost(
            "no episode was counted, so nothing was judged",
            where=Place(name_of(stream)),
            remedy="send at least one",
        )
    if not as_json:
        _summary(session)
    _warn_of_undelivered(session)
    if exit_code:
        exit_if_worse(session.verdict, session.no_worse)
    if session.alarms.undelivered:
        raise typer.Exit(1)


def _refuse_with(detector: str, *, margin: float | None, predicted: str | None, interval: bool) -> None:
    """Refuse what a detector does not have."""
    if predicted is not None and (detector != "sequential-test" or margin is not None):
        raise typer.BadParameter(
            "--predicted cannot be used with --detector change-detector or with --margin"
        )
    for option, given in {"--interval": interval, "--margin": margin is not None}.items():
        if given and detector != "sequential-test":
            raise typer.BadParameter(f"{option} works only with --detector sequential-test")


def _streams(loaded: Certificate | CertificateFamily, by: str | None, path: Path) -> str | None:
    """Return the column that names the task or robot, which goes with the certificates of several."""
    if isinstance(loaded, CertificateFamily) and is_of_metrics(loaded):
        return tasks_of_metrics(loaded)
    if isinstance(loaded, CertificateFamily):
        return by or loaded.by
    if by is not None:
        raise InvalidSetting(
            f"{path}: holds one certificate, but --by {by} watches several tasks or robots, which must be "
            f"known in advance; certify each with: boundwatch certify COSTS --by {by} -o FILE"
        )
    return None


def _design(
    loaded: Certificate | CertificateFamily,
    by: str | None,
    number: str | None,
    predicted: str | None,
    unlabeled: str | None,
) -> Design:
    """Return how lines relate: as the certificate says, and by the options."""
    certified = _each(loaded)[0].design
    settings: dict[str, Any] = {
        "by": by,
        "id": None if number == "line" else number,
        "where": certified.where,
    }
    if predicted is None or unlabeled is None:
        return Design(**settings)
    return WithPredictions(**settings, predicted=predicted, unlabeled=unlabeled)


def _settings(
    stream: str, detector: str, reading: Reading, design: Design, number: str | None
) -> dict[str, Any]:
    """Return what a second start must declare in the same way."""
    columns = {"success": reading.success, "cost": reading.cost, "reward": reading.reward}
    declared = dataclasses.asdict(design) | {"id": number, "where": dict(design.where)}
    plain = {
        "source": stream if stream == "-" else str(Path(stream).absolute()),
        "detector": detector,
        **columns,
        "cost_range": reading.cost_range,
        "success_values": reading.success_values or [],
        **{name: declared.get(name) for name in ("id", "by", "where", "predicted", "unlabeled")},
    }
    content: dict[str, Any] = json.loads(json.dumps(plain))
    return content


def _each(loaded: Certificate | CertificateFamily) -> list[Certificate]:
    return [loaded] if isinstance(loaded, Certificate) else list(loaded.values())


def _run_lines(
    session: Watch,
    loaded: Certificate | CertificateFamily,
    stream: str,
    reading: Reading,
    design: Design,
    *,
    levels: dict[str, float],
    follow: bool,
) -> Iterator[list[Counted | Notice]]:
    """Count lines as they come."""
    several = isinstance(loaded, CertificateFamily) and is_of_metrics(loaded)
    reading.refuse_several(loaded if several else None)  # type: ignore[arg-type]
    _refuse_whole(reading, stream)
    measures = {
        column: _certified(loaded, column if several else None) for column in ("", *reading.columns.values())
    }
    session.reader = TrialReader(
        declare(
            reading.columns,
            design,
            cost_range=reading.cost_range,
            success_values=tuple(reading.success_values or ()),
            certified=measures,
        ),
        name_of(stream),
        binary=all(one.binary for one in _each(loaded)),
    )
    resume(session, levels)
    if session.resumed:
        _say_where(session)
    yield from session.run(open_source(session, stream, follow=follow))
    yield [Notice(f"note: {name_of(stream)}: {note}") for note in session.reader.notes]


def _certified(loaded: Certificate | CertificateFamily, metric: str | None) -> Measure | None:
    """Return the measure of the certificates (of one metric), if they agree."""
    if isinstance(loaded, Certificate):
        return loaded.measure
    members = [
        one for name, one in loaded.items() if metric is None or name == metric or name.endswith(f"/{metric}")
    ]
    found = {one.measure for one in members}
    return found.pop() if len(found) == 1 else None


def _refuse_whole(reading: Reading, stream: str) -> None:
    """Refuse what is no text, and options of files that are read as a whole."""
    reading.refuse_whole_files(
        "lines that are read one by one (--follow, --state, --id, --skip-malformed, a pipe)"
    )
    if is_pipe(stream) or stream == "-" or not Path(stream).exists():
        return
    head = b""
    if not Path(stream).is_dir():
        with files.open_binary(stream) as file:
            head = file.read(8)
    if not head or head.startswith((b"\x1f\x8b", *MAGIC)):
        raise typer.BadParameter(
            "--follow, --state, --id, --predicted and --skip-malformed are for one number, JSON object or "
            "CSV row per line; leave them out"
        )


def _run_whole(
    session: Watch,
    loaded: Certificate | CertificateFamily,
    stream: str,
    reading: Reading,
    design: Design,
    *,
    levels: dict[str, float],  # noqa: ARG001  (a store goes with lines)
    follow: bool,  # noqa: ARG001
) -> Iterator[list[Counted | Notice]]:
    """Count the trials of a file that is read as a whole."""
    several = isinstance(loaded, CertificateFamily) and is_of_metrics(loaded)
    reading.refuse_several(loaded if several else None)  # type: ignore[arg-type]
    settings: dict[str, Any] = {
        name: getattr(reading, name) for name in ("file_format", "sheet", "episode", "reduce", "evaluation")
    }
    columns = reading.columns.items() if several else [(None, "")]
    found = []
    for kind, column in columns:
        given = reading.columns.items() if kind is None else [(kind, column)]
        named: dict[str, Any] = {str(kind): column for kind, column in given}
        if kind != "success":
            named["cost_range"] = reading.cost_range
        if kind in (None, "success"):
            named["success_values"] = reading.success_values or ()
        promise = _of_metric(loaded, column, design.by) if several else loaded
        episodes = read_costs(stream, by=design.by, certificate=promise, **named, **settings)
        out.print_warnings(episodes)
        found.append((column, trials_of(episodes)))
    yield from session.run_whole(_joined(found))


def _of_metric(
    loaded: Certificate | CertificateFamily, metric: str, by: str | None
) -> Certificate | dict[str, Certificate]:
    assert isinstance(loaded, CertificateFamily)  # noqa: S101
    if by is None:
        return loaded[metric]
    return {
        name.removesuffix(f"/{metric}"): one for name, one in loaded.items() if name.endswith(f"/{metric}")
    }


def _joined(found: Sequence[tuple[str, list[Trial]]]) -> list[Trial]:
    """Return the trials of several metrics, those of a row together."""
    if len(found) == 1:
        return found[0][1]
    rows = zip(*(trials for _, trials in found), strict=True)
    return [
        Trial(
            row[0].number,
            tuple(cost for each in row for cost in each.costs),
            tuple(
                "/".join(filter(None, (each.streams[0], metric)))
                for (metric, _), each in zip(found, row, strict=True)
            ),
        )
        for row in rows
    ]


def _say_where(session: Watch) -> None:
    last = f"line {session.position.lines}"
    if session.last is not None:
        last += f", last cost {session.last.costs[-1]:g}"
        last += "" if session.last.id is None else f", id {session.last.id}"
    _warn(f"resuming after episode {session.episodes} ({last}), which is counted even if it was not printed")


def _print_json(events: list[Counted | Notice], interval: bool) -> None:
    lines: list[str] = []
    names: list[str] = []
    for event in events:
        if isinstance(event, Notice):
            _warn(event.text)
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


def _print_text(events: list[Counted | Notice], interval: bool) -> None:
    lines: list[str] = []
    console = None
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, soft_wrap=True, markup=False)
    for event in events:
        if isinstance(event, Notice):
            _print_lines(lines)
            lines = []
            _warn(event.text)
        elif console is not None:
            console.print(_text_line(event, interval), style=_STYLES[event.finding.verdict])
        else:
            lines.append(_text_line(event, interval))
    _print_lines(lines)


def _text_line(event: Counted, interval: bool) -> str:
    finding = event.finding
    if finding.e_adverse is not None:  # of a change detector there is none
        evidence = (
            f"worse: e {finding.e_adverse:<8.3g} p {finding.p_adverse:<8.3g} "
            f"better: e {finding.e_benign:<8.3g} p {finding.p_benign:<8.3g}"
        )
    else:
        evidence = (
            f"statistic {finding.statistic_adverse:<9.4g} alarm at {finding.mean_run_length_adverse:<6.6g}"
        )
    shift = ""
    if interval and finding.binary:
        shift = f" shift {wording.signed_points(finding.shift_lower, finding.shift_upper)} "
    elif interval:
        lower, upper = wording.floor(finding.shift_lower, "+"), wording.ceiling(finding.shift_upper, "+")
        shift = f" shift {lower} to {upper} "
    whose = f"{printable(event.stream)}  " if event.stream else ""
    margin = finding.margin if getattr(finding, "no_worse", None) else None
    worse = "" if margin is None else wording.points(margin, "nearest") if finding.binary else f"{margin:g}"
    shown = f", worse by at most {worse}" if worse else ""
    seen = f"episode {finding.n:>5}  cost {event.cost:<6.4g} mean {finding.mean_cost:<7.4f}"
    if finding.binary:
        outcome = "failed" if event.cost else "succeeded"
        seen = f"trial {finding.n:>5}  {outcome:<9}  {wording.failed(finding):<16}"
    return f"{whose}{seen} {evidence}{shift} {finding.verdict.name}{shown}"


def _print_lines(lines: list[str]) -> None:
    if lines:
        print("\n".join(lines), flush=True)


def _summary(session: Watch) -> None:
    for stream, detector in session.detectors.items():
        if detector.n:
            said = wording.says(detector.verdict, binary=detector.certificate.binary)
            print(f"\n{f'{printable(stream)}: ' if stream else ''}{said}")
            _stream_summary(detector)
    if missing := [printable(stream) for stream, one in session.detectors.items() if one.n == 0]:
        print(f"\nNo episodes of {', '.join(missing)}: not judged.")
    for measure in session.reader.measures.values() if session.reader is not None else ():
        print(f"  costs         {session.source}: {measure}")
    if session.skipped:
        print(
            f"  skipped       {session.skipped} malformed lines, not counted; the guarantee assumes that no "
            "episode was left out"
        )
    if session.repeated:
        print(
            f"  repeated      {session.repeated} lines with an id that was counted before, not counted again"
        )
    if session.gaps:
        print(
            f"  gaps          {session.gaps} times an id was missing or out of order; the guarantee assumes "
            "that no episode was left out"
        )
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


def _warn_of_undelivered(session: Watch) -> None:
    again = "run the same command to try again"
    if session.store.path is None:
        again = "with --state, a second start would try again"
    for stream, reason in session.alarms.undelivered.items():
        whose = f"{stream}: " if stream else ""
        _warn(f"{whose}the alarm was not delivered, {reason}; {again}")


def _warn(message: str) -> None:
    print(f"boundwatch: {printable(message)}", file=sys.stderr, flush=True)
