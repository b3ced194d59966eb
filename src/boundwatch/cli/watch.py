"""boundwatch watch: one line per episode from a stream, valid after every one."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli import output as out
from boundwatch.cli import watch_printing as printing
from boundwatch.cli.family import is_of_metrics, tasks_of_metrics
from boundwatch.cli.judge import ExitCode, Margin, exit_if_worse
from boundwatch.cli.options import By, CertificateFile, Key
from boundwatch.cli.reading import Reading, conditions
from boundwatch.cli.root import command
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import Measure
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.readers.opening import MAGIC
from boundwatch.watching.alarms import Alarms, check_command, run_command
from boundwatch.watching.resuming import open_source, resume
from boundwatch.watching.sources import is_pipe, name_of
from boundwatch.watching.store import Store
from boundwatch.watching.trials import (
    Trial,
    TrialReader,
    WithPredictions,
    declare,
    refuse_document,
    trials_of,
)
from boundwatch.watching.watch import Watch, build_detectors


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
    robots, each is watched at an equal share of the level. Of more than 100 lines that come at once, only
    alarms and the last show e-values and p-values; --json has them all.
    """
    _refuse_with(detector, margin=margin, predictions=(predicted, unlabeled), interval=interval)
    reading.refuse_strata("watch judges one mixture or each task by itself: use --by")
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
    by = _streams(loaded, by, certificate)
    design = _design(loaded, reading, by, number, (predicted, unlabeled))
    by_line = follow or skip_malformed or is_pipe(stream) or stream == "-"
    by_line = by_line or any(option is not None for option in (state, number, predicted))
    if metrics := isinstance(loaded, CertificateFamily) and is_of_metrics(loaded):
        reading = reading.of_metrics(loaded)
    else:
        reading.refuse_several(None)
    given = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign, "margin": margin}
    levels = {name: value for name, value in given.items() if value is not None}
    kind = detector if predicted is None else "predicted-test"
    reader = _line_reader(loaded, stream, reading, design) if by_line else None
    with Store(state, "watch") as store:
        session = Watch(
            build_detectors(loaded, kind, levels),
            name_of(stream),
            store,
            reader,
            settings=_settings(stream, kind, reading, design, number),
            alarms=Alarms(None if on_alarm is None else partial(run_command, on_alarm)),
            allow_gaps=allow_gaps,
            lenient=skip_malformed,
            until_alarm=until_alarm,
        )
        if by_line:
            if session.reader is not None:
                refuse_document(stream, session.reader)
            resume(session, levels)
            printing.say_where(session)
            found = session.run(open_source(session, stream, follow=follow))
        else:
            found = session.run_whole(_whole(loaded, stream, reading, design.by, metrics=metrics))
        for events in found:
            (printing.print_json if as_json else printing.print_text)(events, interval)
    _conclude(session, as_json=as_json, exit_code=exit_code)


def _conclude(session: Watch, *, as_json: bool, exit_code: bool) -> None:
    """Say what is known in the end, and end with the code that says it, too."""
    for note in [] if session.reader is None else session.reader.notes:
        printing.warn(f"note: {session.source}: {note}")
    if session.unfinished is not None:
        printing.warn(f"line {session.unfinished} has no newline yet; it is left for the next time")
    if session.episodes == 0:
        raise InvalidCost(
            "no episode was counted, so nothing was judged",
            where=Place(session.source),
            remedy="send at least one",
        )
    if not as_json:
        printing.print_summary(session)
    printing.warn_of_undelivered(session)
    if exit_code:
        exit_if_worse(session.verdict, session.no_worse)
    if session.alarms.undelivered:
        raise typer.Exit(1)


def _design(
    loaded: Certificate | CertificateFamily,
    reading: Reading,
    by: str | None,
    number: str | None,
    predictions: tuple[str | None, str | None],
) -> Design:
    """Return how lines relate: the certificate's rows are meant unless others are."""
    where = conditions(reading.where)
    declared: dict[str, Any] = {"by": by, "id": None if number == "line" else number, "where": where}
    if where is None:
        declared["where"] = _each(loaded)[0].design.where
    predicted, unlabeled = predictions
    if predicted is None or unlabeled is None:
        return Design(**declared)
    return WithPredictions(**declared, predicted=predicted, unlabeled=unlabeled)


def _refuse_with(
    detector: str, *, margin: float | None, predictions: tuple[str | None, str | None], interval: bool
) -> None:
    """Refuse what a detector does not have."""
    predicted, unlabeled = predictions
    if (predicted is None) != (unlabeled is None):
        raise typer.BadParameter("--predicted and --unlabeled must be given together")
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


def _line_reader(
    loaded: Certificate | CertificateFamily, stream: str, reading: Reading, design: Design
) -> TrialReader:
    """Return what reads lines as they come."""
    _refuse_whole(reading, stream)
    several = len(reading.columns) > 1
    names = ("", *reading.columns.values())
    declared = declare(
        reading.columns,
        design,
        cost_range=reading.cost_range,
        success_values=tuple(reading.success_values or ()),
        certified={column: _certified(loaded, column if several else None) for column in names},
    )
    return TrialReader(
        declared,
        name_of(stream),
        binary=all(one.binary for one in _each(loaded)),
        answers=reading.answers("by", "where"),
    )


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
    reading.refuse_whole_files("--follow, --state, --id, --skip-malformed or a pipe")
    if is_pipe(stream) or stream == "-" or not Path(stream).exists():
        return
    head = b""
    if not Path(stream).is_dir():
        with files.open_binary(stream) as file:
            head = file.read(8)
    if Path(stream).is_dir() or head.startswith((b"\x1f\x8b", *MAGIC)):
        raise typer.BadParameter(
            "--follow, --state, --id, --predicted and --skip-malformed are for one number, JSON object or "
            "CSV row per line; leave them out"
        )


def _whole(
    loaded: Certificate | CertificateFamily, stream: str, reading: Reading, by: str | None, *, metrics: bool
) -> list[Trial]:
    """Return the trials of a file that is read as a whole, in the order of its rows."""
    found = reading.read_all(stream, by=by, certificates=loaded, answers=["by", "where"])
    out.print_warnings(*found.sources)
    if not metrics:
        return trials_of(found.sources[0])
    rows: dict[int, list[tuple[str, float]]] = {}
    for name, each in found.parts.items():
        for trial in trials_of(each):
            rows.setdefault(trial.number, []).append((name, trial.costs[0]))
    return [
        Trial(number, tuple(cost for _, cost in row), tuple(name for name, _ in row))
        for number, row in sorted(rows.items())
    ]
