"""The loop: trials in, each counted exactly once, and nothing said that is not in the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import to_builtins

from boundwatch._support.validation import shortest
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.family import CertificateFamily, no_certificate
from boundwatch.detectors.change import ChangeDetector
from boundwatch.detectors.judged_test import JudgedTest
from boundwatch.detectors.predicted import PredictedTest
from boundwatch.detectors.rounds import RoundsTest
from boundwatch.detectors.saving import Count
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.verdicts import Verdict
from boundwatch.episodes.compatibility import OWN, measured_otherwise, own_costs
from boundwatch.errors import Argument, InvalidCost, InvalidSetting, Place, ProvenanceMismatch, Refusal, shown
from boundwatch.readers.lines import Batch, Position
from boundwatch.watching.alarms import Alarms
from boundwatch.watching.sources import interruptible, is_pipe, open_lines
from boundwatch.watching.store import Store
from boundwatch.watching.trials import Trial, TrialReader, explained

Detector = SequentialTest | ChangeDetector | PredictedTest | JudgedTest
DETECTORS: dict[str, type[Detector]] = {
    "sequential-test": SequentialTest,
    "change-detector": ChangeDetector,
    "predicted-test": PredictedTest,
    "judged-test": JudgedTest,
}
_PART = 4096  # trials of a file that was read as a whole, after which they are printed


class Counted(NamedTuple):
    """An episode that was counted: its line and cost, its task or robot, the finding after it.

    `stratum` is its task, where the mean over tasks is judged.
    """

    line: int
    cost: float
    stream: str
    finding: Any
    skipped: int
    stratum: str = ""


class Notice(NamedTuple):
    """Something to say about a line that was not counted, or was counted in spite of something."""

    text: str


Events = list[Counted | Notice]


def counted(events: Events) -> list[tuple[str, Any]]:
    """Return the stream and the finding of every episode among events."""
    return [(event.stream, event.finding) for event in events if isinstance(event, Counted)]


@dataclass
class Progress:
    """How far a watch has come: what its store keeps besides the detectors."""

    position: Position = field(default_factory=Position, init=False)
    skipped: Count = field(default=0, init=False)
    repeated: Count = field(default=0, init=False)
    gaps: Count = field(default=0, init=False)
    highest: dict[str, int] = field(default_factory=dict, init=False)
    """The highest id of each stream, where ids are numbers."""


@dataclass
class Watch(Progress):
    """Detectors, and how much of their stream they have counted.

    **Guarantee**: that of the detectors. With a store in a file, every line of a file, or of a pipe whose
    sender numbers its episodes and repeats what was not printed, is counted exactly once, whenever the
    process is killed. **Assumes**: a file is only appended to or rewritten with lines added, and rotated by
    renaming.

    With several detectors (one per task or robot), each has an equal share of the levels, so that the chance
    of any false ADVERSE is at most the level plus the family's delta. The level of a `ChangeDetector` is one
    over a run length: within N episodes of each, that chance is at most N times the level plus the delta.

    A `reader` makes trials of lines, unless a file was read as a whole. `settings` are JSON values that a
    second start must declare alike; `allow_gaps` lets ids be missing, `lenient` passes over malformed lines.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> watch = Watch(build_detectors(certificate, "sequential-test", {}), "log", Store(None, "watch"))
    >>> trials = [Trial(line, cost) for line, cost in enumerate([0.7, 0.4, 0.9, 0.8], 1)]
    >>> [(event.line, event.finding.verdict.value) for part in watch.run_whole(trials) for event in part]
    [(1, 'within'), (2, 'within'), (3, 'within'), (4, 'adverse')]
    """

    detectors: dict[str, Detector]
    source: str
    store: Store
    reader: TrialReader | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    alarms: Alarms = field(default_factory=lambda: Alarms(None))
    allow_gaps: bool = False
    lenient: bool = False
    until_alarm: bool = False
    resumed: bool = field(default=False, init=False)
    unfinished: int | None = field(default=None, init=False)  # the last line, if it has no newline yet
    likeness: dict[str, list[float]] = field(default_factory=dict, init=False)
    _changed: set[str] = field(default_factory=set, init=False, repr=False)
    _is_pipe: bool = field(default=False, init=False, repr=False)

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
        tests = [one for one in self.detectors.values() if isinstance(one, SequentialTest)]
        asked = [one for one in tests if one.margin is not None]  # a store brings its own margin
        return all(one.n > 0 and bool(one.finding().no_worse) for one in asked) if asked else None

    @property
    def _may_go_on(self) -> bool:
        """Whether those who come back find the rest of what is not whole yet."""
        return self.store.path is not None and not self._is_pipe

    @property
    def _is_over(self) -> bool:
        return self.until_alarm and any(one.first_alarm is not None for one in self.detectors.values())

    def save(self) -> None:
        """Put everything into the store."""
        facts = {
            "settings": self.settings,
            "certificates": {name: one.certificate.fingerprint for name, one in self.detectors.items()},
            "progress": to_builtins({each.name: getattr(self, each.name) for each in fields(Progress)}),
            "text": None if self.reader is None else self.reader.state,
            "told": self.alarms.told,
            "likeness": {stream: list(costs) for stream, costs in self.likeness.items()},
        }
        for stream in self._changed:
            facts[f"detector {stream}"] = self.detectors[stream].content()
        self._changed.clear()
        self.store.keep(facts)
        self.store.commit()

    def open(self, stream: str, *, follow: bool = False) -> Iterable[Batch]:
        """Return where the lines come from, at the place where the watch left off."""
        path = self.store.path
        self._is_pipe = is_pipe(stream)
        if self._is_pipe:
            if path is not None and self.reader is not None:
                if self.reader.declared.design.id is None:
                    problem = "is a pipe, of which a kill loses what was read and not counted yet"
                    remedy = "number its episodes, name the field with ", Argument("id"), ", or watch a file"
                    raise InvalidSetting(problem, where=Place(self.source), remedy=remedy)
                self.reader.begin()
            self.position = Position()
        elif path is not None and self.position == Position() and Path(stream).exists():
            named = Path(stream).stat()  # it may be rotated before its first line is counted
            self.position = Position(device=named.st_dev, inode=named.st_ino)
            self.save()
        return open_lines(stream, self.position, follow=follow)

    def run(self, source: Iterable[Batch]) -> Iterator[Events]:
        """Count the lines of a source; what is yielded is in the store.

        Whenever a verdict changes, the alarm is told once that is in the store; again after a crash that came
        before that. If it cannot be told, a notice says so, and it is tried again, whether or not lines come:
        after a second at first, then less and less often, at the end and at the next start. A malformed line
        raises `InvalidCost`; what came before it is counted.
        """
        batches = iter(source)
        try:
            yield from self._say([], at_once=True)
            if not self._is_over:
                yield from self._run(batches)
                yield from self._end()
        except Refusal as fault:
            is_own = isinstance(fault, ProvenanceMismatch)
            if self.episodes == 0 and (is_own or self.position.lines == 0):  # nothing came of it
                self.store.delete()
            raise
        finally:
            if isinstance(batches, Generator):
                batches.close()

    def _run(self, batches: Iterator[Batch]) -> Iterator[Events]:
        held: Batch | None = None  # its last line has no newline
        with interruptible() as stopped:
            for batch in batches:
                events: Events = [Notice(f"note: {self.source}: {batch.note}")] if batch.note else []
                fault = None
                if batch.lines:
                    if held is not None:
                        fault = self._refuse_torn(held, events)
                    held = batch if batch.torn else None
                    if fault is None and held is None:
                        fault = self._take(batch, events)
                yield from self._say(events, fault)
                if self._is_over:
                    return
                if stopped():
                    break
        if held is not None and self._may_go_on:
            self.unfinished = held.lines[-1].number  # left for those who come back
        elif held is not None:
            events = []
            is_kept = self.store.path is not None
            fault = self._refuse_torn(held, events) if is_kept else self._take(held, events)
            yield from self._say(events, fault)

    def run_whole(self, trials: Sequence[Trial]) -> Iterator[Events]:
        """Count the trials of a file that was read as a whole, and compared with the certificate then."""
        for start in range(0, len(trials), _PART):
            events: Events = []
            fault = self._count(trials[start : start + _PART], events)[1]
            yield from self._say(events, fault)
            if self._is_over:
                break
        yield from self._end()

    def _say(
        self, events: Events, fault: Refusal | None = None, *, at_once: bool = False
    ) -> Iterator[Events]:
        """Yield what was counted, tell of alarms, and raise what made it stop."""
        if events:
            yield events
        alarmed = {name: one for name, one in self.detectors.items() if one.first_alarm is not None}
        verdicts = {stream: detector.verdict.value for stream, detector in alarmed.items()}
        said: Events = []
        for stream in self.alarms.due(verdicts, at_once=at_once or fault is not None) if alarmed else ():
            detector = alarmed[stream]
            whose = {"stream": stream} if stream else {}
            alarm = {"source": self.source, **whose, "certificate": detector.certificate.fingerprint}
            if failed := self.alarms.deliver(stream, verdicts[stream], alarm | detector.finding().to_dict()):
                said.append(Notice(f"warning: {failed}"))
            self.save()
        if said:
            yield said
        if fault is not None:
            raise fault

    def _end(self) -> Iterator[Events]:
        if self.alarms.undelivered:
            yield from self._say([], at_once=True)  # one last try
        alarmed = any(one.first_alarm is not None for one in self.detectors.values())
        if self.reader is not None and not self._may_go_on and not alarmed:
            self.reader.end()

    def _refuse_torn(self, held: Batch, events: Events) -> Refusal | None:
        """Return that the last line of a file, or of a sender, is not whole, and never will be."""
        number = held.lines[-1].number
        problem = "has no newline: what wrote it ended in the middle of it"
        fault = explained(InvalidCost(problem, where=Place(self.source, "line", number)))
        if not self.lenient:
            return fault
        self._skip(number, fault, events)
        return None

    def _skip(self, number: int, fault: Refusal, events: Events) -> None:
        self.skipped += 1
        events.append(Notice(f"line {number} skipped, not counted: {fault}"))

    def _take(self, batch: Batch, events: Events) -> Refusal | None:
        """Count the lines of a batch and put that into the store; return what made it stop."""
        assert self.reader is not None  # noqa: S101  (lines are read by it)
        before = self.reader.state
        taken = self.reader.trials(batch.lines, lenient=self.lenient)
        lines, fault = taken.lines, taken.fault
        counted, stopped = self._count(taken.trials, events)
        if stopped is not None or counted < len(taken.trials):
            lines, fault = self.reader.go_back(before, batch.lines, counted), stopped
        elif self._is_over:  # the last trial before a line that nobody asks about any more
            fault = None
        reached = batch.lines[lines - 1].number if lines else 0
        for number, refusal in taken.skipped:
            if number <= reached:  # those who come back read the lines after that then
                self._skip(number, refusal, events)
        if lines:
            self.position = batch.position(lines)
        self.save()
        return None if fault is None else explained(fault)

    def _count(self, trials: Iterable[Trial], events: Events) -> tuple[int, Refusal | None]:
        """Count trials; return how many were, and what made it stop, if that was not an alarm."""
        done = 0
        for trial in trials:
            try:
                is_new = self._is_new(trial, events)
            except Refusal as error:
                if not self.lenient or not isinstance(error, InvalidCost):
                    return done, error
                self._skip(trial.number, error, events)
                is_new = False
            done += 1
            own = self._update(trial, events) if is_new else None
            if own is not None or (is_new and self._is_over):
                return done, own
        return done, None

    def _is_new(self, trial: Trial, events: Events) -> bool:
        """Return whether to count a trial; refuse costs that its detector would not take, and wrong ids."""
        where, stream = Place(self.source, "line", trial.number), trial.stream
        detector = self.detectors.get(stream)
        if detector is None:
            problem, remedy = no_certificate(stream, self.detectors)
            raise InvalidCost(f"is of {shown(stream)}, which {problem}", where=where, remedy=remedy)
        if detector.certificate.binary and trial.cost not in (0, 1):
            problem = f"has cost {trial.cost:g}, which is not 0 or 1; binary costs were promised"
            raise InvalidCost(problem, where=where)
        if isinstance(detector, RoundsTest):
            detector.refuse_other(trial.stratum, where)
        if trial.id is None:
            return True
        counted = self.store.cost_of(stream, trial.id)
        if counted is not None:
            if counted != trial.cost:
                was, now = shortest(counted), shortest(trial.cost)
                problem = f"has id {shown(trial.id)} and cost {now}, but this id was counted with cost {was}"
                raise InvalidCost(problem, where=where, remedy="an id names one episode: correct it")
            self.repeated += 1
            return False
        highest = self.highest.get(stream)
        if type(trial.id) is int and highest is not None and trial.id != highest + 1:
            missing = trial.id - highest - 1
            order = f"{missing} missing" if missing > 0 else "out of order"
            problem = f"id {trial.id} comes after id {highest}: {order}"
            if not self.allow_gaps:
                passing = ("send every episode once and in order, or pass ", Argument("allow_gaps", True))
                raise InvalidSetting(problem, where=where, remedy=passing)
            self.gaps += 1
            events.append(Notice(f"line {trial.number}: {problem}; counted"))
        return True

    def _update(self, trial: Trial, events: Events) -> Refusal | None:
        """Count a trial; return why not, for streams that turn out to be the certificate's own costs."""
        stream, cost = trial.stream, trial.cost
        detector = self.detectors[stream]
        self._changed.add(stream)
        fault = None
        if detector.n == 0 or stream in self.likeness:
            fault = self._compare(trial, events)
        if fault is None or detector.n > 0:
            more: tuple[Any, ...] = trial.predictions or ()
            if isinstance(detector, RoundsTest):
                more = (trial.stratum,)
            if isinstance(detector, JudgedTest):
                more = (trial.label,)
            finding = detector.update(cost, *more)
            events.append(Counted(trial.number, cost, stream, finding, self.skipped, trial.stratum))
        if trial.id is not None:
            self.store.remember(stream, trial.id, cost)
            if type(trial.id) is int:
                self.highest[stream] = max(trial.id, self.highest.get(stream, trial.id))
        return fault

    def _compare(self, trial: Trial, events: Events) -> ProvenanceMismatch | None:
        """Say what makes a verdict doubtful that did not before; return that these are no new costs."""
        if self.reader is None:  # a whole file was compared when it was read
            return None
        stream, measure = trial.stream, self.reader.layout.measure
        detector = self.detectors[stream]
        called = ": ".join(filter(None, (self.source, stream)))
        if detector.n == 0:
            self.likeness[stream] = []
            doubts = measured_otherwise(detector.certificate, measure)
            events += [Notice(f"warning: {called}: {doubt}") for doubt in doubts]
        costs, certified = self.likeness[stream], detector.certificate
        costs.append(trial.cost)
        if len(costs) < (certified.n or 0):
            return None
        del self.likeness[stream]
        own = own_costs(certified, measure, np.array(costs))
        if own is not None and own.kind == "own":
            detector.reset()  # they are no evidence; what other streams have seen is
            self.alarms.told.pop(stream, None)
            where = Place(f"{self.source}: line {trial.number}{f': {stream}' if stream else ''}")
            return ProvenanceMismatch(f"these {OWN}", where=where, remedy="watch only what comes after them")
        if own is not None:
            events.append(Notice(f"note: {called}: so far, {own}"))
        return None


def build_detectors(
    certificate: Certificate | CertificateFamily, detector: str, levels: Mapping[str, float]
) -> dict[str, Detector]:
    """Return a detector for the one stream ``""``, or one per task of a family at its share of the level.

    **Guarantee**: any stream of a family that is not worse is ever called ADVERSE with probability at most
    the level of all plus the family's `delta_upper`, in which a certificate that several share counts once;
    and likewise BENIGN. (That of a `ChangeDetector` is in `Watch`.)

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
    whole = build(next(iter(certificate.values())), **levels)
    given = {name: getattr(whole, name) / len(certificate) for name in ("alpha_adverse", "alpha_benign")}
    shares = {**levels, **given}
    if build is not SequentialTest:  # the others judge by the limits, which pay their delta once
        return {stream: build(promise, **shares) for stream, promise in certificate.items()}
    sharing = Counter(map(id, certificate.values()))
    return {stream: build(one, **shares, sharing=sharing[id(one)]) for stream, one in certificate.items()}
