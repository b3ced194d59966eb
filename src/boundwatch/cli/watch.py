"""boundwatch watch: one line per episode from a stream, valid after every one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Literal

from boundwatch._support import files
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli import watch_printing as printing
from boundwatch.cli.audit import Labels
from boundwatch.cli.judging import exit_if_worse
from boundwatch.cli.options import refuse_if
from boundwatch.cli.reading import ANSWERS, Loaded, Reading, metrics_of
from boundwatch.cli.root import command
from boundwatch.episodes.compatibility import refuse_other_weights
from boundwatch.episodes.measure import KINDS
from boundwatch.errors import Argument, InvalidSetting, Place
from boundwatch.watching.alarms import Alarms, check_command, run_command
from boundwatch.watching.resuming import resume
from boundwatch.watching.sources import is_pipe, name_of
from boundwatch.watching.store import Store
from boundwatch.watching.trials import Trial, trials_of
from boundwatch.watching.watch import Watch, build_detectors, counted


@command(
    example="boundwatch watch certificate.json episodes.jsonl --follow --state watch.state\n"
    "my-robot | boundwatch watch certificate.json - --id episode --state watch.state\n"
    "boundwatch watch certificates.json log.csv --by robot --on-alarm ./call-somebody"
)
def watch(
    certificate: Path,
    stream: str,
    *,
    alpha_adverse: float | None = None,
    alpha_benign: float | None = None,
    margin: float | None = None,
    detector: Literal["sequential-test", "change-detector"] = "sequential-test",
    until_alarm: bool = False,
    key: Path | None = None,
    reading: Reading,
    labels: Labels,
    by: str | None = None,
    follow: bool = False,
    state: Path | None = None,
    number: str | None = None,
    allow_gaps: bool = False,
    skip_malformed: bool = False,
    predicted: str | None = None,
    unlabeled: str | None = None,
    on_alarm: str | None = None,
    plot: Path | None = None,
    force: bool = False,
    as_json: bool = False,
    exit_code: bool = False,
) -> None:
    """Watch a stream of episodes and alarm as soon as there is evidence of a shift.

    Look after every episode; stop whenever you like. With --state, the same command continues
    after a crash. Exits with 1 if nothing was counted, or an alarm was not delivered. Of more than 100 lines
    at once, only alarms and the last show their evidence; --json has all. With the certificate of a
    mean over tasks (certify --strata), looks come after 1, 2, 4, 8, ... rounds.

    Options
    -------
    stream STREAM: A number or JSON object per line, or CSV; - is stdin. Other files are read whole, without
        --follow, --state.
    alpha_adverse P: Level of ADVERSE. [default: 0.04; change-detector: .001]
    alpha_benign P: Level of BENIGN. [default: 0.04; change-detector: .001]
    detector NAME: sequential-test: P[ever a false alarm] <= alpha + delta; change-detector, for late shifts:
        one per 1/alpha episodes.
    until_alarm: Stop at the first alarm.
    follow: Wait for the file to grow; follow its rotation.
    state FILE: Keep the state here, and resume from it.
    number FIELD: Sender's episode number: repeats count once.
    allow_gaps: Only report ids that are missing or out of order.
    skip_malformed: Skip malformed lines; this voids the guarantee.
    predicted FIELD: Cost predicted for the trial's scene; saves trials.
    unlabeled FIELD: With it: predictions for scenes that were not run.
    on_alarm COMMAND: Run it when the verdict changes, with the finding as JSON on stdin, again until it exits
        with 0.
    plot FILE: Draw each stream's mean, and where it alarms.
    as_json: Print one JSON object per episode.
    """
    given = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign, "margin": margin}
    levels = {name: value for name, value in given.items() if value is not None}
    others: dict[str, Any] = {"by": by, "strata": reading.strata, "follow": follow, "state": state}
    others |= {"number": number, "skip_malformed": skip_malformed, "predicted": predicted, "margin": margin}
    drawing = labels.settings(stream, others | {"detector": detector != "sequential-test"})
    kind = "judged-test" if drawing else detector if predicted is None else "predicted-test"
    read = reading.arguments()
    refuse_if(
        {
            "--follow is for files; standard input is always waited for": follow and stream == "-",
            "--allow-gaps goes with --id": allow_gaps and number is None,
            "--predicted and --unlabeled must be given together": (predicted is None) != (unlabeled is None),
            "--predicted cannot be used with --detector change-detector or with --margin": kind != detector
            and not (detector == "sequential-test" and margin is None),
            "--margin goes with --detector sequential-test": margin is not None and kind != "sequential-test",
        }
    )
    out.protect({"plot": plot}, [certificate, stream], force=force)
    if state is not None:  # what is no state is refused when it is opened
        files.protect(state, [certificate, stream], force=True)
    if on_alarm is not None:
        check_command(on_alarm)
    out.warn_of_levels({name: value for name, value in levels.items() if name != "margin"})
    loaded = out.load_trusted(certificate, key)
    strata = _column_of_tasks(loaded, str(certificate), by, reading.strata)
    refuse_if(
        {
            "--detector change-detector and --predicted do not go with the mean over tasks": strata
            is not None
            and kind != "sequential-test"
        }
    )
    by = loaded.by if by is None and not isinstance(loaded, Certificate) else by
    answers = ANSWERS if strata else ("by", "where")
    names: dict[str, Any] = {"by": by, "id": number, "strata": strata}
    others = {**names, "predicted": predicted, "unlabeled": unlabeled, "answers": answers}
    if isinstance(loaded, Certificate):
        refuse_other_weights(read["weights"], loaded)
    reader = None
    if state or number or predicted or follow or skip_malformed or stream == "-" or is_pipe(stream):
        options = "--follow, --state, --id, --predicted, --skip-malformed or a pipe"
        reader = reading.read_lines(stream, options, certificate=loaded, **others)
    columns = (*KINDS, "cost_range", "success_values", "timeout_as", "empty_as", "where")
    settings = {
        "source": stream if stream == "-" else str(Path(stream).absolute()),
        "detector": kind,
        **{name: list(read[name]) if isinstance(read[name], tuple) else read[name] for name in columns},
        **names,
        "predicted": predicted,
        "unlabeled": unlabeled,
    }
    trials: list[Trial] = []
    with Store(state, "watch") as store:
        session = Watch(
            build_detectors(loaded, kind, levels | drawing),
            name_of(stream),
            store,
            reader,
            settings=settings,
            alarms=Alarms(None if on_alarm is None else partial(run_command, on_alarm)),
            allow_gaps=allow_gaps,
            lenient=skip_malformed,
            until_alarm=until_alarm,
        )
        if reader is not None:
            resume(session, levels)
            printing.say_where(session)
            found = session.run(session.open(stream, follow=follow))
        else:
            said: dict[str, Any] = {"by": by, "answers": answers, "strata": strata}
            whole, trials = labels.trials(stream, reading, loaded) if drawing else (None, [])
            whole = whole or reading.read(stream, certificate=loaded, **said)
            out.print_warnings(whole)
            found = session.run_whole(trials or trials_of(whole))
        seen: list[tuple[str, Any]] = []
        for events in found:
            printing.print_events(events, as_json=as_json)
            seen += counted(events) if plot is not None else ()
    printing.print_end(session, as_json=as_json, rows=[trial.number for trial in trials])
    out.draw(plot if seen else None, "plot_watch", session.detectors, seen)
    if exit_code:
        exit_if_worse(session.verdict, session.no_worse)
    if session.alarms.undelivered:
        raise SystemExit(1)


def _column_of_tasks(loaded: Loaded, path: str, by: str | None, given: str | None) -> str | None:
    """Return the column of the tasks whose mean is certified; refuse what cannot be watched."""
    where = Place(path)
    if metrics_of(loaded):
        remedy = "certify the column to watch by itself; check judges all of them"
        raise InvalidSetting("holds certificates of several columns", where=where, remedy=remedy)
    if by is not None and isinstance(loaded, Certificate):
        problem = f"holds one certificate, but --by {by} watches several tasks or robots, which must be known"
        remedy = f"certify each with: boundwatch certify COSTS --by {by} -o FILE"
        raise InvalidSetting(f"{problem} in advance", where=where, remedy=remedy)
    if not (isinstance(loaded, Certificate) and loaded.strata):
        if given is None:
            return None
        certify = f"certify it with: boundwatch certify COSTS --strata {given} -o FILE"
        problem, remedy = "is not of the mean over tasks", f"{certify}; or watch each task with --by"
        raise InvalidSetting(problem, where=where, remedy=remedy)
    if given is None and loaded.design.strata is None:
        problem = "does not say which column the tasks are in"
        raise InvalidSetting(problem, where=where, remedy=("give ", Argument("strata")))
    return given or loaded.design.strata
