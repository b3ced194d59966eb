"""boundwatch watch: one line per episode from a stream, valid after every one."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from boundwatch._support import files
from boundwatch._support.describing import printable
from boundwatch.certificates.certificate import Certificate
from boundwatch.cli import output as out
from boundwatch.cli.audit import Labels
from boundwatch.cli.file_options import ANSWERS, Loaded, Reading, metrics_of
from boundwatch.cli.judging import exit_if_worse
from boundwatch.cli.options import refuse_if
from boundwatch.cli.root import command
from boundwatch.detectors import ChangeDetector, Finding, Verdict
from boundwatch.detectors.judged_test import JudgedFinding, JudgedTest
from boundwatch.detectors.predicted import PredictedFinding
from boundwatch.detectors.rounds import RoundsTest
from boundwatch.episodes.compatibility import refuse_other_weights
from boundwatch.episodes.measure import KINDS
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place
from boundwatch.reporting import wording
from boundwatch.reporting.families import strata_rates
from boundwatch.reporting.wording import count
from boundwatch.watching.alarms import Alarms, check_command, run_command
from boundwatch.watching.loop import Counted, Events, Notice, Watch, build_detectors, counted
from boundwatch.watching.resuming import resume
from boundwatch.watching.sources import is_pipe, name_of
from boundwatch.watching.store import Store
from boundwatch.watching.trials import Trial, trials_of


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
            if session.resumed:
                last = f"episode {session.episodes} (line {session.position.lines})"
                out.warn(f"resuming after {last}, which is counted even if it was not printed")
            found = session.run(session.open(stream, follow=follow))
        else:
            said: dict[str, Any] = {"by": by, "answers": answers, "strata": strata}
            whole, trials = labels.trials(stream, reading, loaded) if drawing else (None, [])
            whole = whole or reading.read(stream, certificate=loaded, **said)
            out.print_warnings(whole)
            found = session.run_whole(trials or trials_of(whole))
        seen: list[tuple[str, Any]] = []
        for events in found:
            _print_events(events, as_json=as_json)
            seen += counted(events) if plot is not None else ()
    _print_end(session, as_json=as_json, rows=[trial.number for trial in trials])
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


_COLORS = {Verdict.ADVERSE: "\x1b[1;31m", Verdict.BENIGN: "\x1b[32m"}
_UNLIKE = 0.001  # level of the notice that predictions of trials rank unlike others
_BACKLOG = 100  # episodes that came at once; of more, people read the last


def _print_events(events: Events, *, as_json: bool) -> None:
    """Print a line per episode; of a backlog, evidence only at alarms and at its end: it takes long."""
    brief = len(events) > _BACKLOG
    for event in events:
        if isinstance(event, Notice):
            out.warn(event.text)
        elif as_json:
            print(_json_line(event))
        else:
            alarms = event.finding.first_alarm == event.finding.n
            line = _text_line(event, shown=not brief or alarms or event is events[-1])
            color = _COLORS.get(event.finding.verdict) if sys.stdout.isatty() else None
            print(f"{color}{line}\x1b[0m" if color else line)
    sys.stdout.flush()


def _json_line(event: Counted) -> str:
    """Return an episode with all fields of its finding but the limits on the shift."""
    head: dict[str, Any] = {"line": event.line, "cost": event.cost, "skipped": event.skipped}
    if event.stream:
        head["stream"] = event.stream
    if event.finding.tasks:
        head |= {"stratum": event.stratum, "tasks_adverse": event.finding.called(Verdict.ADVERSE)}
    for field in dataclasses.fields(event.finding):
        if field.name != "tasks" and not field.name.startswith("shift_"):  # those take long
            head[field.name] = getattr(event.finding, field.name)
    return json.dumps(head, allow_nan=False)


def _text_line(event: Counted, *, shown: bool) -> str:
    """Return an episode as people read it, with its evidence if that is shown."""
    finding = event.finding
    line = f"{printable(event.stream)}  " if event.stream else ""
    if isinstance(finding, JudgedFinding):
        drawn = "label it" if finding.judged in finding.waiting else ""
        line += f"row {event.line:>5}  judge: {'failed' if event.cost else 'succeeded':<9}  {drawn:<8}"
    else:
        line += f"{'trial' if finding.binary else 'episode'} {finding.n:>5}  {out.seen(finding, event.cost)}"
    if finding.tasks:
        line += f" {printable(event.stratum):<12} worse: p {finding.p_adverse:<8.3g} "
        line += f"better: p {finding.p_benign:<8.3g}"
    elif shown and finding.e_adverse is None:  # of a change detector
        line += f" statistic {finding.statistic_adverse:<9.4g} "
        line += f"alarm at {finding.mean_run_length_adverse:<6.6g}"
    elif shown:
        line += f" worse: e {finding.e_adverse:<8.3g} p {finding.p_adverse:<8.3g} "
        line += f"better: e {finding.e_benign:<8.3g} p {finding.p_benign:<8.3g}"
    line += f" {finding.verdict.name}"
    if finding.no_worse:
        margin = wording.points(finding.margin, "nearest") if finding.binary else f"{finding.margin:g}"
        line += f", worse by at most {margin}"
    return line


def _print_end(session: Watch, *, as_json: bool, rows: Sequence[int] = ()) -> None:
    """Say how lines were read, what is known of every stream, and which alarms nobody was told of.

    `rows` are the numbers of the rows that a machine judged.
    """
    for note in [] if session.reader is None else session.reader.said:
        out.warn(f"note: {session.source}: {note}")
    if session.unfinished is not None:
        out.warn(f"line {session.unfinished} has no newline yet; it is left for the next time")
    if session.episodes == 0 and not any(isinstance(one, JudgedTest) for one in session.detectors.values()):
        problem = "no episode was counted, so nothing was judged"
        raise InvalidCost(problem, where=Place(session.source), remedy="send at least one")
    if not as_json:
        _print_waiting(session, rows)
        _print_summary(session, rows)
    again = "with --state, a second start would try again"
    if session.store.path is not None:
        again = "run the same command to try again"
    for stream, reason in session.alarms.undelivered.items():
        out.warn(f"{f'{stream}: ' if stream else ''}the alarm was not delivered, {reason}; {again}")


def _print_waiting(session: Watch, numbers: Sequence[int]) -> None:
    """Say which rows were drawn and have no label yet, and what the machine says by itself."""
    for detector in session.detectors.values():
        if isinstance(detector, JudgedTest):
            finding = detector.finding()
            says = wording.percent(finding.judge_says)
            print(f"\nOf {count(finding.judged, 'episode')} the judge calls {says} failures: no evidence.")
            if rows := [str(numbers[episode - 1]) for episode in finding.waiting]:
                print(f"Label {count(len(rows), 'row')}: {', '.join(rows)}. What follows the first waits.")


def _print_summary(session: Watch, rows: Sequence[int]) -> None:
    for stream, detector in session.detectors.items():
        if detector.n:
            finding, since = detector.finding(), _alarm(detector, rows)
            binary, joint = detector.certificate.binary, finding.tail == "joint"
            said = wording.says(detector.verdict, binary=binary, joint=joint)
            said += "" if since is None else f", since {since}{'' if rows else f' of {detector.n}'}"
            print(f"\n{f'{printable(stream)}: ' if stream else ''}{said}")
            _print_rows(_of_stream(detector, finding, since))
    if missing := [printable(stream) for stream, one in session.detectors.items() if stream and one.n == 0]:
        print(f"\nNo episodes of {', '.join(missing)}: not judged.")
    _print_rows(_of_all(session))


def _print_rows(rows: Iterator[tuple[str, str]]) -> None:
    for label, text in rows:
        print(f"  {label:<13} {text}")


def _of_all(session: Watch) -> Iterator[tuple[str, str]]:
    if session.reader is not None and session.reader.names:
        yield "costs", f"{session.source}: {session.reader.layout.measure}"
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


def _alarm(detector: Any, rows: Sequence[int]) -> Any:
    """Say where the first alarm was, if there was one; by its row in a file that a machine judged."""
    first, one = detector.first_alarm, "trial" if detector.certificate.binary else "episode"
    return first and (f"row {rows[first - 1]}" if rows else f"{one} {first}")


def _of_stream(detector: Any, finding: Any, since: str | None) -> Iterator[tuple[str, str]]:
    if finding.binary or finding.labels == 0:
        share = f" ({wording.percent(finding.mean_cost)})" if finding.labels is None else ""
        yield "trials", f"{wording.failed(finding)}{share}"
    else:
        yield "episodes", f"{detector.n}, mean cost {finding.mean_cost:.4f}"
    if isinstance(detector, RoundsTest):
        yield from _of_rounds(detector, finding)
    elif finding.e_adverse is not None:  # of a change detector there is none
        yield "shift", f"{wording.shift(finding)}, valid at all times at once"
        if detector.verdict is not Verdict.WITHIN and finding.shift_lower <= 0 <= finding.shift_upper:
            stands = f"the alarm at {since} stands"
            yield "note", f"{stands}; limits and e-values are of all {detector.n} and may fall back after it"
        limit = f"with probability at most {finding.false_positive_rate:.6g}"
        yield "false alarms", f"ADVERSE is ever declared {limit} in any world that is not worse"
        yield from wording.margin_words(finding)
        if isinstance(finding, PredictedFinding) and finding.p_exchangeable <= _UNLIKE:
            told = f"those of trials rank unlike those of scenes not run (p = {finding.p_exchangeable:.2g})"
            yield "predictions", f"{told}: if any was made with its cost known, no rate holds"
    if not isinstance(detector, ChangeDetector):
        return
    if finding.change_began is not None:
        yield "began", f"about episode {finding.change_began} (an estimate)"
    limit = f"within these {detector.n} with probability at most {finding.false_alarm_probability:.4g}"
    mean = f"on average after {finding.mean_run_length_adverse:g} episodes or more"
    yield "false alarms", f"{limit}; if the certificate holds, {mean}"


def _of_rounds(detector: RoundsTest, finding: Finding) -> Iterator[tuple[str, str]]:
    """Say what is known of the mean over tasks, and of each."""
    looks = f"looked after {detector.looked}" if detector.looked else "no look yet"
    yield "rounds", f"{detector.rounds} complete, {looks}; the next look comes after {detector.next_look}"
    if waiting := detector.waiting:
        listed = ", ".join(f"{printable(task)} {number}" for task, number in waiting.items())
        yield "waiting", f"for a trial of every other task: {listed}"
    for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
        if called := finding.called(verdict):
            yield "by itself", f"{verdict.name}: {', '.join(map(printable, called))}"
    yield "shift", f"{wording.shift(finding)}, in the mean over tasks, valid at all times at once"
    yield from strata_rates(finding)
