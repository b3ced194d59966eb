"""The loop: lines in, each counted exactly once, and nothing said that is not on the disk."""

from __future__ import annotations

import dataclasses
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from boundwatch._support.text import shown
from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, no_certificate
from boundwatch.detectors.base import Verdict
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.predicted import PredictedTest, check_predictions
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.episodes.fit import OWN, OwnCosts, begins_like, measured_otherwise
from boundwatch.episodes.text import decode_line
from boundwatch.errors import (
    BoundwatchError,
    CertificateError,
    InvalidCost,
    InvalidSetting,
    ProvenanceMismatch,
    SchemaMismatch,
)
from boundwatch.watching.files import FileSource, beginning
from boundwatch.watching.ids import MOST_REMEMBERED, Ids, RecentCosts
from boundwatch.watching.lines import CUT_OFF, TORN, Batch, Identity, Line, Position
from boundwatch.watching.pipes import PipeSource, is_pipe
from boundwatch.watching.rows import Row, Rows
from boundwatch.watching.sources import Source, name_of
from boundwatch.watching.spool import SpooledPipe
from boundwatch.watching.state import StateFile

Detector = SequentialTest | ChangeDetector | PredictedTest
DETECTORS: dict[str, type[Detector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
    "predicted-test": PredictedTest,
}


class Counted(NamedTuple):
    """An episode that was counted: its line and cost, its task or robot, the finding after it."""

    line: int
    cost: float
    stream: str
    finding: Any
    skipped: int
    alarmed: bool


class Notice(NamedTuple):
    """Something to say about a line that was not counted, or was counted in spite of something."""

    text: str


OnAlarm = Callable[[dict[str, Any]], None]


@dataclass
class _Wait:
    """How long to leave a program alone that could not be told of an alarm: it may hang, or page somebody."""

    seconds: float = 1.0
    until: float = 0.0

    def is_too_early(self) -> bool:
        """Return whether to pass over it for now."""
        return time.monotonic() < self.until

    def prolong(self) -> None:
        """Wait, and the next time twice as long, for at most five minutes."""
        self.until = time.monotonic() + self.seconds
        self.seconds = min(2 * self.seconds, 300.0)


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
    >>> import boundwatch as bw
    >>> from boundwatch.watching.rows import Rule
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
    _waits: dict[str, _Wait] = field(default_factory=dict, init=False, repr=False)
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
        with _interrupted_between_batches() as interrupted:
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
        if done:
            self.position = batch.position(done) if self.state is not None else self.position
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
                own.add(row.stream)
                fault = fault or ProvenanceMismatch(
                    f"{whose}these {OWN}; it cannot judge them, so watch only what comes after them"
                )
        return own, fault

    def _update(self, line: Line, row: Row, events: list[Counted | Notice]) -> None:
        detector = self.detectors[row.stream]
        if detector.n == 0 and not self.compared:
            whose = f"{row.stream}: " if row.stream else ""
            different = measured_otherwise(detector.certificate, self.rows.measured(row.stream))
            events += [Notice(f"warning: {self._called}: {whose}{each}") for each in different]
        before = detector.verdict
        if isinstance(detector, PredictedTest) and row.predictions is not None:
            finding: Any = detector.update(row.cost, *row.predictions)
        else:
            finding = detector.update(row.cost)
        self.last = row
        events.append(
            Counted(line.number, row.cost, row.stream, finding, self.skipped, detector.verdict is not before)
        )

    def _announce(self, on_alarm: OnAlarm | None, *, at_once: bool = False) -> list[Counted | Notice]:
        """Tell what has changed; return what to say about alarms that could not be told."""
        said: list[Counted | Notice] = []
        if on_alarm is None or not self.alarmed:
            return said
        for stream, detector in self.detectors.items():
            verdict = detector.verdict.value
            if detector.first_alarm is not None and self.announced.get(stream) != verdict:
                wait = self._waits.setdefault(stream, _Wait())
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
        self._compare_rule(content["rule"])
        stored = content["detectors"]
        if sorted(stored) != sorted(self.detectors):
            raise InvalidSetting("it watches other tasks or robots; start a new state")
        for stream, detector in self.detectors.items():
            if stored[stream]["kind"] != type(detector).__name__:
                raise InvalidSetting("it belongs to another detector; name it with --detector, or start over")
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

    def _compare_rule(self, stored: Mapping[str, Any]) -> None:
        for name, value in dataclasses.asdict(self.rows.rule).items():
            was = stored.get(name)  # a state begun before there was such an option has none
            was = tuple(was) if isinstance(was, list) else was
            if name == "bare_costs":  # no option: it follows from the certificate, which is compared, too
                continue
            if name == "cost_range" and value is None and was in self.rows.ranges.values():
                continue  # earlier versions kept the certificate's here
            if was != value:
                raise InvalidSetting(
                    f"it was begun with {_flag(name, was)}, not with {_flag(name, value)}; read lines as "
                    "then, or start a new state"
                )


def build_detectors(
    certificate: Certificate | CertificateFamily, detector: str, levels: Mapping[str, float]
) -> dict[str, Detector]:
    """Return a detector for the one stream ``""``, or one per task of a family at its share of the level.

    Examples
    --------
    >>> import boundwatch as bw
    >>> family = bw.CertificateFamily.from_held_out({"arm-1": [0, 1], "arm-2": [0, 0]}, binary=True)
    >>> build_detectors(family, "sequential-test", {})["arm-2"].alpha_adverse
    0.02
    """
    build: Callable[..., Detector] = DETECTORS[detector]
    if isinstance(certificate, Certificate):
        return {"": build(certificate, **levels)}
    detectors: dict[str, Detector] = {}
    for stream, promise in certificate.items():
        one = build(promise, **levels)
        shares = {name: getattr(one, name) / len(certificate) for name in ("alpha_adverse", "alpha_benign")}
        if "margin" in levels:
            shares["margin"] = levels["margin"]
        detectors[stream] = build(promise, **shares)
    return detectors


def open_source(watch: Watch, stream: str, *, spool: Path | None = None, follow: bool = False) -> Source:
    """Return where the lines of a watch come from, at the place where it left off.

    Raises
    ------
    InvalidSetting
        When there is a state, and the stream could be counted twice or lost.
    """
    if spool is not None:
        if not is_pipe(stream):
            raise InvalidSetting(f"{name_of(stream)}: is a file, which needs no --spool; leave it out")
        source = SpooledPipe(str(spool), watch.position, watch.pipe)
        watch.pipe = source.pipe
        watch.save()  # before the first byte: whose line it is that may be cut off
        return source
    if not is_pipe(stream):
        if watch.state is not None and stream != "-" and watch.position == Position():
            watch.position = beginning(stream)  # it may be rotated before its first line is counted
            watch.save()
        return FileSource(stream, watch.position, follow=follow, once=watch.state is None)
    by_line = watch.rows.rule.id == "line"
    if watch.state is not None and watch.rows.rule.id is None:
        raise InvalidSetting(
            f"{name_of(stream)}: is a pipe, and what is read from it when this process is killed is lost; "
            "with --state, number the episodes (--id FIELD), or keep the lines (--spool FILE)"
        )
    return PipeSource(stream, replayed=watch.position if by_line else None, once=watch.state is None)


def resume(watch: Watch, levels: Mapping[str, float]) -> bool:
    """Go on from the watch's state, if there is one, and return whether there was."""
    assert watch.state is not None  # noqa: S101  (only called with one)
    content = watch.state.read()
    if content is None:
        return False
    try:
        asked = {
            stream: {name: getattr(detector, name) for name in levels}
            for stream, detector in watch.detectors.items()
        }
        watch.restore(content)
        for stream, detector in watch.detectors.items():
            for name, value in asked[stream].items():
                if getattr(detector, name) != value:
                    flag = f"--{name.replace('_', '-')}"
                    was = getattr(detector, name)
                    if was is None:
                        raise InvalidSetting(f"was begun without {flag}; leave it out, or start a new state")
                    begun = was if name == "margin" else was * len(watch.detectors)
                    raise InvalidSetting(f"was begun with {flag} {begun:g}; leave {flag} out, or give that")
    except (CertificateError, InvalidSetting) as error:
        raise type(error)(f"{watch.state.path}: {error}") from error
    return True


@dataclass
class _Interrupted:
    """Whether Ctrl-C was pressed, and whether it may end the wait at once."""

    now: bool = False
    waiting: bool = False

    def while_waiting(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield batches; only the wait for the next one is cut short."""
        while not self.now:
            self.waiting = True
            batch = next(batches, None)
            self.waiting = False
            if batch is None:
                return
            yield batch


@contextmanager
def _interrupted_between_batches() -> Iterator[_Interrupted]:
    """End at Ctrl-C and SIGTERM, but never between counting a line and storing it."""
    interrupted = _Interrupted()
    if threading.current_thread() is not threading.main_thread():
        yield interrupted
        return

    def stop(*_: object) -> None:
        interrupted.now = True
        if interrupted.waiting:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupted
    except KeyboardInterrupt:
        pass  # the usual end of a file that is followed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
        return f"replace {kept} in that file by the whole line, if you know how the episode ended"
    return "let its sender send it again" if line.fault == CUT_OFF else "correct it"


def _flag(name: str, value: object) -> str:
    if value is None or value is False:
        return f"no --{name.replace('_', '-')}"
    shown_value = " ".join(map(str, value)) if isinstance(value, tuple | list) else value
    return f"--{name.replace('_', '-')} {shown_value}"


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError
    return value


def source_key(stream: str, spool: Path | None) -> str:
    """Return the name under which a state keeps its source: the same from every folder."""
    if spool is not None:
        return f"spool {Path(spool).absolute()}"
    return stream if stream == "-" else str(Path(stream).absolute())
