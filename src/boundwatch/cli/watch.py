"""boundwatch watch: one line per episode from a stream, valid after every one."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, load
from boundwatch.cli import output as out
from boundwatch.cli import watch_printing as printing
from boundwatch.cli.judge import exit_if_worse
from boundwatch.cli.options import refuse_if
from boundwatch.cli.reading import Reading, conditions, is_of_metrics, tasks_of_metrics
from boundwatch.cli.root import command
from boundwatch.episodes.design import Design
from boundwatch.episodes.measure import KINDS, Measure
from boundwatch.errors import InvalidCost, InvalidSetting, Place
from boundwatch.watching.alarms import Alarms, check_command, run_command
from boundwatch.watching.resuming import resume
from boundwatch.watching.sources import is_pipe, name_of
from boundwatch.watching.store import Store
from boundwatch.watching.trials import Trial, WithPredictions, trials_of
from boundwatch.watching.watch import Watch, build_detectors


@command(
    example="boundwatch watch certificate.json episodes.jsonl --follow --state watch.state\n"
    "my-robot | boundwatch watch certificate.json - --id episode --state watch.state\n"
    "boundwatch watch certificates.json log.csv --by robot --on-alarm ./call-somebody\n"
    "boundwatch watch certificate.json log.jsonl --predicted critic --unlabeled others"
)
def watch(
    certificate: Path,
    stream: str,
    *,
    detector: Literal["sequential-test", "change-detector"] = "sequential-test",
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    margin: float | None = None,
    predicted: str | None = None,
    unlabeled: str | None = None,
    by: str | None = None,
    key: Path | None = None,
    state: Path | None = None,
    number: str | None = None,
    allow_gaps: bool = False,
    follow: bool = False,
    until_alarm: bool = False,
    on_alarm: str | None = None,
    exit_code: bool = False,
    skip_malformed: bool = False,
    interval: bool = False,
    reading: Reading,
    as_json: bool = False,
) -> None:
    """Watch a stream of episodes and alarm as soon as there is evidence of a shift.

    You may look after every episode and stop whenever you like. A line is printed once its episode is in the
    state file. After a crash, run the same command: it continues where it stopped. Exits with 1 if no
    episode was counted, or if an alarm could not be delivered. With the certificates of several tasks or
    robots, each is watched at an equal share of the level. Of more than 100 lines that come at once, only
    alarms and the last show e-values and p-values; --json has them all.

    Options
    -------
    stream STREAM: One number or JSON object per line, or a CSV table with a header; - reads standard input.
        Any other file that `check` reads is read as a whole, without --follow and --state.
    detector: sequential-test: P[ever a false alarm] <= alpha + the certificate's delta. change-detector: the
        shift may begin at any time; if the certificate holds, false alarms come on average after 1/alpha
        episodes or more.
    alpha_adverse P: Level of ADVERSE. [default: 0.04; change-detector: 0.001]
    alpha_benign P: Level of BENIGN. [default: 0.04; change-detector: 0.001]
    predicted FIELD: Field with the cost predicted for the trial's scene, in [0, 1]: a good predictor saves
        trials, a bad one costs some; the guarantee holds for any. Needs --unlabeled.
    unlabeled FIELD: Field with predictions for scenes of the same world that were observed but not run: a
        JSON list, or numbers with blanks between them.
    state FILE: Keep the state here before anything is printed, and resume from it; the lines of a pipe, too.
    number FIELD: Field with the sender's episode number: a repeated number counts once, a gap is an error.
        `line`: after a restart, the sender sends the stream again from its first line.
    allow_gaps: Report ids that are missing or out of order, and continue.
    follow: Wait for the file to grow; follow its rotation.
    until_alarm: Stop at the first alarm.
    on_alarm COMMAND: Run COMMAND when the verdict changes, with the finding as JSON on its standard input; if
        it does not exit with 0, run it again after a second, then less and less often, at the end, and with
        --state at the next start.
    skip_malformed: Skip malformed lines instead of stopping. Leaving out episodes voids the guarantee.
    interval: Print the limits on the shift, too (a few ms per line).
    as_json: Print one JSON object per episode.
    """
    sequential, is_predicted = detector == "sequential-test", predicted is not None
    refuse_if(
        {
            "--follow is for files; standard input is always waited for": follow and stream == "-",
            "--allow-gaps goes with --id": allow_gaps and number is None,
            "--predicted and --unlabeled must be given together": is_predicted != (unlabeled is not None),
            "--predicted cannot be used with --detector change-detector or with --margin": is_predicted
            and not (sequential and margin is None),
            "--interval works only with --detector sequential-test": interval and not sequential,
            "--margin works only with --detector sequential-test": margin is not None and not sequential,
            "watch judges one mixture or each task by itself: use --by": reading.strata is not None,
        }
    )
    if state is not None:  # what is no state is refused when it is opened
        files.protect(state, [certificate, stream], force=True)
    alarms = _alarms(on_alarm)
    loaded = load(certificate, key=key)
    out.print_trust(loaded, key)
    design = _design(reading, _streams(loaded, by, certificate), number, predicted, unlabeled)
    if metrics := isinstance(loaded, CertificateFamily) and is_of_metrics(loaded):
        reading = reading.of_metrics(loaded)
    else:
        reading.refuse_several()
    given = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign, "margin": margin}
    levels = {name: value for name, value in given.items() if value is not None}
    kind = detector if predicted is None else "predicted-test"
    reader = None
    kept = any(option is not None for option in (state, number, predicted))
    if kept or follow or skip_malformed or stream == "-" or is_pipe(stream):
        options = "--follow, --state, --id, --predicted, --skip-malformed or a pipe"
        known: dict[str, Any] = {"certified": _certified(loaded)}
        known["certified_where"] = _each(loaded)[0].design.where
        known["binary"] = all(one.binary for one in _each(loaded))
        reader = reading.read_lines(stream, design, options, "by", "where", **known)
    with Store(state, "watch") as store:
        session = Watch(
            build_detectors(loaded, kind, levels),
            name_of(stream),
            store,
            reader,
            settings=_settings(stream, kind, reading, design, number),
            alarms=alarms,
            allow_gaps=allow_gaps,
            lenient=skip_malformed,
            until_alarm=until_alarm,
        )
        if reader is not None:
            resume(session, levels)
            printing.say_where(session)
            found = session.run(session.open(stream, follow=follow))
        else:
            found = session.run_whole(_whole(loaded, stream, reading, design.by, metrics=metrics))
        for events in found:
            printing.print_events(events, as_json=as_json, interval=interval)
    printing.print_notes(session)
    if session.episodes == 0:
        problem = "no episode was counted, so nothing was judged"
        raise InvalidCost(problem, where=Place(session.source), remedy="send at least one")
    if not as_json:
        printing.print_summary(session)
    printing.warn_of_undelivered(session)
    if exit_code:
        exit_if_worse(session.verdict, session.no_worse)
    if session.alarms.undelivered:
        raise typer.Exit(1)


def _alarms(command: str | None) -> Alarms:
    if command is None:
        return Alarms(None)
    check_command(command)
    return Alarms(partial(run_command, command))


def _streams(loaded: Certificate | CertificateFamily, by: str | None, path: Path) -> str | None:
    """Return the column that names the task or robot, which goes with the certificates of several."""
    if isinstance(loaded, CertificateFamily):
        return tasks_of_metrics(loaded) if is_of_metrics(loaded) else by or loaded.by
    if by is not None:
        raise InvalidSetting(
            f"{path}: holds one certificate, but --by {by} watches several tasks or robots, which must be "
            f"known in advance; certify each with: boundwatch certify COSTS --by {by} -o FILE"
        )
    return None


def _design(
    reading: Reading,
    by: str | None,
    number: str | None,
    predicted: str | None,
    unlabeled: str | None,
) -> Design:
    """Return how lines relate."""
    where = conditions(reading.where) or {}
    names: dict[str, Any] = {"by": by, "id": None if number == "line" else number}
    if predicted is None or unlabeled is None:
        return Design(**names, where=where)
    return WithPredictions(**names, where=where, predicted=predicted, unlabeled=unlabeled)


def _settings(
    stream: str, detector: str, reading: Reading, design: Design, number: str | None
) -> dict[str, Any]:
    """Return what a second start must declare in the same way."""
    declared = dataclasses.asdict(design) | {"id": number, "where": dict(design.where)}
    plain: dict[str, Any] = {
        "source": stream if stream == "-" else str(Path(stream).absolute()),
        "detector": detector,
        **{kind: getattr(reading, kind) for kind in KINDS},
        "cost_range": reading.cost_range,
        "success_values": reading.success_values or [],
        **{name: declared.get(name) for name in ("id", "by", "where", "predicted", "unlabeled")},
    }
    content: dict[str, Any] = json.loads(json.dumps(plain))
    return content


def _each(loaded: Certificate | CertificateFamily) -> list[Certificate]:
    return [loaded] if isinstance(loaded, Certificate) else list(loaded.values())


def _certified(loaded: Certificate | CertificateFamily) -> dict[str, Measure | None]:
    """Return the measure of the certificates, if they agree, and that of each metric."""
    measures = {one.measure for one in _each(loaded)}
    agreed = {"": next(iter(measures)) if len(measures) == 1 else None}
    return agreed | {str(each.column): each for each in measures if each is not None}


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
