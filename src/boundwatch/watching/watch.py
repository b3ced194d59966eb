"""The loop: lines in, each counted exactly once, and nothing said that is not on the disk."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from boundwatch._support.text import shown
from boundwatch._support.validation import shortest
from boundwatch.certificates.family import no_certificate
from boundwatch.detectors.base import Verdict
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.predicted import PredictedTest, check_predictions
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.episodes.fit import (
    OWN,
    Likeness,
    OwnCosts,
    begins_like,
    is_time_to_look,
    measured_otherwise,
)
from boundwatch.episodes.text import decode_line
from boundwatch.errors import (
    BoundwatchError,
    InvalidCost,
    InvalidSetting,
    ProvenanceMismatch,
    SchemaMismatch,
)
from boundwatch.watching.alarms import OnAlarm, Wait
from boundwatch.watching.ids import MOST_REMEMBERED, Ids, RecentCosts
from boundwatch.watching.interruption import interrupted_between_batches
from boundwatch.watching.lines import CUT_OFF, TORN, Batch, Identity, Line, Position
from boundwatch.watching.rows import Row, Rows
from boundwatch.watching.sources import Source, name_of
from boundwatch.watching.spool import SpooledPipe
from boundwatch.watching.state import StateFile

Detector = SequentialTest | ChangeDetector | PredictedTest


class Counted(NamedTuple):
    """An episode that was counted: its line and cost, its task or robot, the finding after it."""

    line: int
    cost: float
    stream: str
    finding: Any
    skipped: int


class Notice(NamedTuple):
    """Something to say about a line that was not counted, or was counted in spite of something."""

    text: str


@dataclass
class Watch:
    r"""Detectors, and how much of their stream they have counted.

    **Guarantee**: that of the detectors. With a state, every line of a file, of a spooled pipe, or of a pipe
    whose sender numbers its episodes and repeats what was not printed, is counted exactly once, whenever the
    process is killed. **Assumes**: a file is only appended to, and rotated by renaming.

    With several detectors (one per task or robot), each has an equal share of the levels, so that the chance
    of any false ADVERSE is at most the level plus the family's delta. The level of a `ChangeDetector` is one
    over a run length: within N episodes of each, that chance is at most N times the level plus the delta.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import boundwatch as bw
    >>> from boundwatch.watching.files import FileSource
    >>> from boundwatch.watching.rows import Rule
    >>> from boundwatch.watching.starting import build_detectors
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> log = Path(tempfile.mkdtemp()) / "log"
    >>> _ = log.write_text("0.7\n0.4\n0.9\n0.8\n")
    >>> watch = Watch(build_detectors(certificate, "sequential-test", {}), Rows(Rule()), str(log))
    >>> for events in watch.run(FileSource(str(log))):
    ...     print([(event.line, event.finding.verdict.value) for event in events])
    [(1, 'within'), (2, 'within'), (3, 'within'), (4, 'adverse')]
    """

    detectors: dict[str, Detector]
    rows: Rows
    source: str
    position: Position = field(default_factory=Position)
    pipe: Identity | None = None
    ids: dict[str, Ids] = field(default_factory=dict)
    costs: RecentCosts = field(default_factory=RecentCosts)
    skipped: int = 0
    repeated: int = 0
    gaps: int = 0
    last: Row | None = None
    announced: dict[str, str] = field(default_factory=dict)
    """The verdict of each stream that `on_alarm` was told."""
    undelivered: dict[str, str] = field(default_factory=dict, init=False)
    """Why `on_alarm` could not be told of a stream, if it could not."""
    state: StateFile | None = None
    name: str = ""
    """What people call the source, where that is not the name under which the state keeps it."""
    compared: bool = False
    """Whether somebody has compared these episodes with the certificate already."""
    _followed: dict[str, OwnCosts] = field(default_factory=dict, init=False, repr=False)
    _likeness: dict[str, Likeness] = field(default_factory=dict, init=False, repr=False)
    _waits: dict[str, Wait] = field(default_factory=dict, init=False, repr=False)
    _encoding: str = field(default="", init=False, repr=False)

    @property
    def episodes(self) -> int:
        """How many episodes were counted, over all streams."""
        return sum(detector.n for detector in self.detectors.values())

    @property
    def verdict(self) -> Verdict:
        """ADVERSE if any stream is; BENIGN if all are."""
        verdicts = {detector.verdict for detector in self.detectors.values()}
        if Verdict.ADVERSE in verdicts:
            return Verdict.ADVERSE
        return verdicts.pop() if len(verdicts) == 1 else Verdict.WITHIN

    @property
    def no_worse(self) -> bool | None:
        """Whether every stream was shown to be worse by at most its margin; None if there is no margin."""
        # A state brings its own margin, so the detectors are asked.
        asked = [one for one in self.detectors.values() if getattr(one, "margin", None) is not None]
        shown = all(one.n > 0 and getattr(one.finding(), "no_worse", None) for one in asked)
        return shown if asked else None

    @property
    def alarmed(self) -> bool:
        """Whether any stream has alarmed."""
        return any(detector.first_alarm is not None for detector in self.detectors.values())

    def run(
        self,
        source: Source,
        *,
        lenient: bool = False,
        allow_gaps: bool = False,
        until_alarm: bool = False,
        on_alarm: OnAlarm | None = None,
    ) -> Iterator[list[Counted | Notice]]:
        """Count the lines of a source; what is yielded is in the state.

        Parameters
        ----------
        source
            Where lines come from.
        lenient
            Whether to pass over malformed lines instead of raising `InvalidCost`.
        allow_gaps
            Whether ids may be missing or out of order.
        until_alarm
            Whether to end at the first alarm.
        on_alarm
            Called with what is known, once it is in the state, whenever a verdict changes; again after a
            crash that came before it returned. If it raises `InvalidSetting`, a notice says so, the alarm
            is `undelivered`, and it is called again, whether or not lines come: after a second at first, then
            less and less often, at the end and at the next start.
        """
        if untold := self._announce(on_alarm, at_once=True):
            yield untold
        if until_alarm and self.alarmed:
            return
        with interrupted_between_batches() as interrupted:
            source.restless = bool(self.undelivered)
            for batch in interrupted.while_waiting(source.batches()):
                events: list[Counted | Notice] = []
                if batch.said:
                    events.append(Notice(f"note: {self._called}: {batch.said}"))
                fault: BoundwatchError | None = None
                if batch.lines:
                    fault = self._count(batch, events, lenient, allow_gaps, until_alarm)
                    self.save()
                nothing = self.position.lines == 0
                if isinstance(fault, ProvenanceMismatch):
                    nothing = self.episodes == 0
                if fault is not None and nothing and self.state is not None:
                    self.state.path.unlink(missing_ok=True)  # nothing came of it: leave nothing behind
                if events:
                    yield events
                if untold := self._announce(on_alarm, at_once=fault is not None):
                    yield untold
                source.restless = bool(self.undelivered)
                if fault is not None:
                    if isinstance(source, SpooledPipe):
                        source.keep_rest()
                    raise fault
                if until_alarm and self.alarmed:
                    break
        if self.undelivered:  # one last try
            self._announce(on_alarm, at_once=True)

    @property
    def _called(self) -> str:
        return name_of(self.name or self.source)

    def _place(self, line: Line) -> str:
        return f"{self._called}: line {line.number}"

    def save(self) -> None:
        """Write the state, if there is one."""
        if self.state is not None:
            self.state.write(self.to_dict())

    def _count(
        self,
        batch: Batch,
        events: list[Counted | Notice],
        lenient: bool,
        allow_gaps: bool,
        until_alarm: bool,
    ) -> BoundwatchError | None:
        """Count the lines of a batch; return what made it stop, after which nothing was counted."""
        if batch.begins_file:
            self.rows.begin_file()
        done = 0
        fault: BoundwatchError | None = None
        unknown: list[int] = []
        for line in batch.lines:
            repeated = False
            try:
                rows = self._rows(line, events)
                repeated = bool(rows) and self._is_repeated(rows)
                if self.rows.noticed:
                    events.append(Notice(f"note: {self._place(line)} {self.rows.noticed}"))
            except InvalidCost as error:
                if not lenient:
                    fault = InvalidCost(
                        f"{self._place(line)}{_join(error)}; {_remedy(line)}, or pass --skip-malformed"
                    )
                    break
                self.skipped += 1
                events.append(Notice(f"line {line.number} skipped, not counted: {error}"))
                rows = []
            except InvalidSetting as error:
                fault = InvalidSetting(f"{self._place(line)}: {error}")
                break
            if rows:
                missing = self._missing(rows[0])
                if missing and not allow_gaps:
                    fault = InvalidSetting(
                        f"{self._place(line)}: {missing}; send every episode once and in order, or pass "
                        "--allow-gaps"
                    )
                    break
                if missing:
                    self.gaps += 1
                    events.append(Notice(f"line {line.number}: {missing}; counted"))
                if repeated and self.costs.of(rows[0].stream, rows[0].id) is None:
                    unknown.append(line.number)
                if not repeated:
                    own, fault = self._own(line, rows, events)
                    self._remember(rows)
                    for row in rows:
                        if row.stream not in own:
                            self._update(line, row, events)
            done += 1
            if fault is not None:  # a second start goes on after the certificate's own
                break
            if until_alarm and self.alarmed:
                following = batch.lines[done].number if done < len(batch.lines) else None
                if following != line.number:  # else it is another metric of the same episode
                    break
        if unknown:
            first, several = unknown[0], len(unknown) > 1
            where = f"{len(unknown)} lines from {first} on" if several else f"line {first}"
            events.append(Notice(f"{where}: ids that came too long ago to compare their costs; not counted"))
        if done and self.state is not None:
            self.position = batch.position(done)
        return fault

    def _rows(self, line: Line, events: list[Counted | Notice]) -> list[Row]:
        if line.fault:
            raise InvalidCost(line.fault)
        text, encoding = decode_line(line.raw)
        if encoding and not self._encoding:  # said once: a whole file is like this
            self._encoding = encoding
            events.append(Notice(f"note: {self._place(line)} is not UTF-8, {encoding}"))
        rows = self.rows.read(text)
        for row in rows:
            if row.stream not in self.detectors:
                fault = no_certificate(row.stream, self.detectors).partition("; ")[0]
                raise InvalidCost(f"is of {shown(row.stream)}, which {fault}")
            if self.detectors[row.stream].certificate.binary and row.cost not in (0, 1):
                raise InvalidCost(f"has cost {row.cost:g}, which is not 0 or 1; binary costs were promised")
            if row.predictions is not None:
                try:
                    check_predictions(*row.predictions)
                except InvalidSetting as error:  # a fault of this line, not of the stream
                    raise InvalidCost(f"is not whole: {error}") from None
        return rows

    def _missing(self, row: Row) -> str:
        if row.id is None:
            return ""
        known = self.ids[row.stream]
        return "" if row.id in known else known.fault(row.id)

    def _is_repeated(self, rows: list[Row]) -> bool:
        row = rows[0]
        if row.id is None or row.id not in self.ids.setdefault(row.stream, Ids()):
            return False
        counted, costs = self.costs.of(row.stream, row.id), [each.cost for each in rows]
        if counted not in (None, costs):
            was, now = (", ".join(map(shortest, each)) for each in (counted or [], costs))
            raise InvalidCost(
                f"has id {shown(row.id)} and cost {now}, but this id was counted with cost {was}; an id "
                "names one episode"
            )
        self.repeated += 1
        return True

    def _remember(self, rows: list[Row]) -> None:
        row = rows[0]
        if row.id is not None:
            self.ids[row.stream].add(row.id)
            self.costs.add(row.stream, row.id, [each.cost for each in rows])

    def _own(
        self, line: Line, rows: list[Row], events: list[Counted | Notice]
    ) -> tuple[set[str], BoundwatchError | None]:
        """Return which streams turn out to be the certificate's own costs, and that this is why to stop."""
        own: set[str] = set()
        fault: BoundwatchError | None = None
        for row in rows:
            detector = self.detectors[row.stream]
            if detector.n == 0 and not self.compared:
                self._followed[row.stream] = OwnCosts(detector.certificate)
            followed = self._followed.get(row.stream)  # none if somebody has compared them, or they are many
            found = "" if followed is None else followed.repeats(row.cost)
            if not found:
                continue
            whose = f"{self._place(line)}: {f'{row.stream}: ' if row.stream else ''}"
            if found == "chance":
                events.append(Notice(f"note: {whose}{begins_like(detector.n + 1)}"))
            if found == "own":
                detector.reset()  # they are no evidence; what other streams have seen is
                self.announced.pop(row.stream, None)
                self._likeness.pop(row.stream, None)
                own.add(row.stream)
                fault = fault or ProvenanceMismatch(
                    f"{whose}these {OWN}; it cannot judge them, so watch only what comes after them"
                )
        return own, fault

    def _update(self, line: Line, row: Row, events: list[Counted | Notice]) -> None:
        detector = self.detectors[row.stream]
        whose = f"{self._called}: {row.stream}: " if row.stream else f"{self._called}: "
        events += [Notice(f"warning: {whose}{each}") for each in self._doubts(row)]
        if isinstance(detector, PredictedTest) and row.predictions is not None:
            finding: Any = detector.update(row.cost, *row.predictions)
        else:
            finding = detector.update(row.cost)
        self.last = row
        events.append(Counted(line.number, row.cost, row.stream, finding, self.skipped))

    def _doubts(self, row: Row) -> list[str]:
        """Return what makes a verdict on a stream doubtful that did not before this row."""
        detector, found = self.detectors[row.stream], []
        if detector.n == 0 and not self.compared:
            found = measured_otherwise(detector.certificate, self.rows.measured(row.stream))
            self._likeness[row.stream] = Likeness(detector.certificate)
        if (likeness := self._likeness.get(row.stream)) is not None:
            _, meaning, cost_range = self.rows.chosen(row.stream)
            look = is_time_to_look(detector.n + 1, detector.certificate.n)
            doubts = likeness.take([row.cost], meaning, cost_range, look=look)
            found += [f"so far, {each}" for each in doubts]
            if likeness.is_settled:
                del self._likeness[row.stream]
        return found

    def _announce(self, on_alarm: OnAlarm | None, *, at_once: bool = False) -> list[Counted | Notice]:
        """Tell what has changed; return what to say about alarms that could not be told."""
        said: list[Counted | Notice] = []
        if on_alarm is None or not self.alarmed:
            return said
        for stream, detector in self.detectors.items():
            verdict = detector.verdict.value
            if detector.first_alarm is not None and self.announced.get(stream) != verdict:
                wait = self._waits.setdefault(stream, Wait())
                if not at_once and wait.is_too_early():
                    continue
                finding = detector.finding().to_dict()
                whose = {"stream": stream} if stream else {}
                alarm = {"source": name_of(self.source), **whose}
                try:
                    on_alarm(alarm | {"certificate": detector.certificate.fingerprint} | finding)
                except InvalidSetting as error:
                    if self.undelivered.get(stream) != str(error):  # it may fail time after time
                        said.append(Notice(f"warning: {error}; the alarm is not delivered yet"))
                    self.undelivered[stream] = str(error)
                    wait.prolong()
                    continue
                self.undelivered.pop(stream, None)
                del self._waits[stream]
                self.announced[stream] = verdict
                self.save()
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values."""
        return {
            "source": self.source,
            "rule": dataclasses.asdict(self.rows.rule),
            "table": self.rows.to_dict(),
            "position": dataclasses.asdict(self.position),
            "pipe": self.pipe,
            "ids": {stream: ids.to_list() for stream, ids in self.ids.items()},
            "skipped": self.skipped,
            "repeated": self.repeated,
            "costs": self.costs.to_list(),
            "gaps": self.gaps,
            "last_cost": None if self.last is None else self.last.cost,
            "last_id": None if self.last is None else self.last.id,
            "announced": self.announced,
            "followed": {
                stream: own.costs
                for stream, own in self._followed.items()
                if own.costs and len(own.costs) <= MOST_REMEMBERED
            },
            "likeness": {stream: [each.costs, each.highest] for stream, each in self._likeness.items()},
            "detectors": {stream: detector.state_dict() for stream, detector in self.detectors.items()},
        }

    def restore(self, content: Mapping[str, Any]) -> None:
        """Take over what `to_dict` described; it must be about the same source, rule and detectors."""
        try:
            self._restore(content)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            if isinstance(error, BoundwatchError):
                raise
            raise SchemaMismatch("it is damaged; start a new one") from error

    def _restore(self, content: Mapping[str, Any]) -> None:
        if content["source"] != self.source:
            raise InvalidSetting(
                f"it follows {shown(content['source'])}, not {shown(self.source)}; use one state per source"
            )
        self.rows.refuse_other_rule(content["rule"])
        stored = content["detectors"]
        if sorted(stored) != sorted(self.detectors):
            raise InvalidSetting("it watches other tasks or robots; start a new state")
        for stream, detector in self.detectors.items():
            if stored[stream]["kind"] != type(detector).__name__:
                raise InvalidSetting("it belongs to another detector; name it with --detector, or start over")
            if stored[stream]["settings"].get("sharing", 1) != getattr(detector, "sharing", 1):
                raise InvalidSetting("it divides the certificate's delta otherwise; start a new state")
            self.detectors[stream] = type(detector).from_state_dict(stored[stream], detector.certificate)
        self.position = Position(**content["position"])
        self.rows.restore(content["table"], begun=self.position.lines > 0)
        for name in ("device", "inode", "end", "lines"):
            _whole(getattr(self.position, name))
        self.pipe = None if content["pipe"] is None else (content["pipe"][0], content["pipe"][1])
        self.ids = {stream: Ids.from_list(ids) for stream, ids in content["ids"].items()}
        self.skipped, self.repeated, self.gaps = (
            _whole(content[name]) for name in ("skipped", "repeated", "gaps")
        )
        self.costs = RecentCosts.from_list(content.get("costs", []))  # older states have none
        cost = content["last_cost"]
        self.last = None if cost is None else Row(float(cost), content["last_id"])
        self.announced = dict(content["announced"])
        for stream, costs in content.get("followed", {}).items():  # older states have none
            if len(costs) != self.detectors[stream].n:
                raise ValueError
            self._followed[stream] = OwnCosts(self.detectors[stream].certificate, list(map(float, costs)))
        for stream, (costs, highest) in content.get("likeness", {}).items():  # older states have none
            if costs is not None and len(costs) != self.detectors[stream].n:
                raise ValueError
            self._likeness[stream] = Likeness(
                self.detectors[stream].certificate,
                None if costs is None else list(map(float, costs)),
                None if highest is None else float(highest),
            )


def _join(error: Exception) -> str:
    text = str(error)
    if text.startswith("column "):
        return f", {text}"
    if text.startswith(("columns ", "no column ")):
        return f": {text}"
    return f" {text}" if text.startswith(("has ", "is ", "was ", "holds ", "looks ")) else f" = {text}"


def _remedy(line: Line) -> str:
    if line.raw.endswith(TORN):
        kept = shown(line.raw.decode("utf-8", "replace"))
        return f"replace {kept} in that file with the complete line, if you know how the episode ended"
    return "let its sender send it again" if line.fault == CUT_OFF else "correct it"


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value
