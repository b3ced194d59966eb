"""What the rows of a log amount to: each is derived again from the protocol and the secret, or refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boundwatch.errors import InvalidSetting
from boundwatch.evaluation.log import Row
from boundwatch.evaluation.protocol import Protocol
from boundwatch.evaluation.questions import Evidence, evidence_of
from boundwatch.evaluation.schedule import Place, Schedule

MEASURED = ("success", "score", "milestones")
LEFT = ("aborted", "discarded")


@dataclass(frozen=True)
class Trial:
    """A trial to be run now.

    Attributes
    ----------
    number
        Its number, from 1.
    policy
        The letter of its policy, or its name if the protocol is not blind.
    task, scene
        What to run; empty if the protocol names none.
    round, most_rounds, most_trials
        How far the evaluation is.
    station
        Who runs it.
    """

    number: int
    policy: str
    task: str
    scene: str
    round: int
    most_rounds: int
    most_trials: int
    station: str

    def __str__(self) -> str:
        where = "".join(f", {what} {name}" for what, name in self.where)
        return f"Trial {self.number} of at most {self.most_trials}: policy {self.policy}{where}"

    @property
    def where(self) -> list[tuple[str, str]]:
        """The task and the scene, where there are any."""
        return [each for each in (("task", self.task), ("scene", self.scene)) if each[1]]


def one_line(text: object, name: str = "reason") -> str:
    """Return a text on one line; refuse what is none."""
    if not isinstance(text, str) or not text.strip():
        raise InvalidSetting("is not a text", name=name, value=text, remedy="say why")
    return " ".join(text.split())


def row_of(trial: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the log keeps of an outcome as somebody gives it."""
    said: dict[str, Any] = {"trial": trial}
    for name in (*MEASURED, *LEFT, "note"):
        if (value := given.get(name)) is not None:
            said[name] = one_line(value, name) if name in (*LEFT, "note") else value
    if "milestones" in said:
        said["milestones"] = sorted(set(said["milestones"]))
    return said


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    time: str
    station: str
    cost: float
    said: Mapping[str, Any]

    @property
    def left(self) -> str:
        """Why it was aborted or discarded; empty if it was neither."""
        return next((f"{kind}: {self.said[kind]}" for kind in LEFT if kind in self.said), "")


@dataclass(eq=False)
class Block:
    """The trials of all policies at one place of the schedule, run one after the other at one station."""

    place: Place
    scene: str
    station: str | None
    policies: list[str]
    labels: list[str]
    first: int
    outcomes: list[Outcome | None] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether all of its trials have an outcome."""
        return all(outcome is not None for outcome in self.outcomes)

    @property
    def due(self) -> int | None:
        """The number of the trial that is to be run now; None if all are."""
        return None if self.complete else self.first + self.outcomes.index(None)


class Replay:
    """The state of an evaluation after some rows of its log."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.protocol: Protocol
        self.schedule: Schedule
        self.evidence: Evidence
        self.certificate: dict[str, Any] | None = None
        self.sealed = ""
        """The hash of the row that seals it."""
        self.attempts: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        """What was ever said of a trial, also what was taken back or repeated."""
        self.blocks: list[Block] = []
        self.rounds = 0
        """How many are complete and counted, in their order."""
        self.ended = ""
        self.closed = False
        self.events: list[tuple[int, str, str]] = []
        """What the report must name: row, time, sentence."""
        self._by_round: dict[int, list[Block]] = defaultdict(list)
        self._undoable: dict[str, int] = {}
        self._open: list[Block] = []  # not complete; without a station, for the next one that asks
        self._trials = 0
        self._row = Row(0, "", "", {}, "")

    def apply(self, row: Row) -> None:
        """Take in the next row, or refuse one that does not follow: what is written, and what is read."""
        act = getattr(self, f"_on_{row.kind}", None)
        if (row.number == 1) != (row.kind == "protocol") or act is None:
            raise InvalidSetting("is not what comes there")
        before, self._row = self._row, row
        if row.time < before.time:
            self._name(f"the clock was set back, from {before.time} to {row.time}")
        act(**row.content)

    def next_block(self, station: str) -> tuple[str, dict[str, Any]] | None:
        """Return the row that gives a station its next block; None if there is none for it."""
        if (free := next((block for block in self._open if block.station is None), None)) is not None:
            return "take", {"block": self.blocks.index(free), "station": station}
        if len(self.blocks) == len(self.schedule):
            return None
        return "open", self._expected() | {"station": station}

    def current(self, station: str) -> Trial | None:
        """Return the trial that a station is to run now, if it has one."""
        block = next((block for block in self._open if block.station == station), None)
        if self.ended or block is None or block.due is None:
            return None
        return self.trial(block, block.due)

    def trial(self, block: Block, number: int) -> Trial:
        """Return a trial of a block."""
        place, most = block.place, self.protocol
        about = block.labels[number - block.first], place.task, block.scene, place.round
        return Trial(number, *about, most.most_rounds, most.most_trials, block.station or "")

    def block_of(self, number: object) -> Block | None:
        """Return the block of a trial, the latest first; None if it was not handed out."""
        for block in reversed(self.blocks):
            if number in range(block.first, block.first + len(block.policies)):
                return block
        return None

    def outcome_of(self, number: int) -> Outcome | None:
        """Return what came of a trial, if it is known."""
        block = self.block_of(number)
        return None if block is None else block.outcomes[number - block.first]

    def _running(self, number: int) -> Block:
        """Return the block of a trial that is to be recorded now; refuse any other trial."""
        block, remedy = self.block_of(number), "record what next() returns"
        if block is None:
            problem = "was not handed out"
        elif block.outcomes[number - block.first] is not None:
            problem, remedy = "has another outcome already", "undo that first"
        elif number != block.due:
            problem = "is not to be run now"
        elif not block.station:
            problem = "was released to other stations"
        else:
            return block
        raise InvalidSetting(problem, name="trial", value=number, remedy=remedy)

    def undoable(self, station: str) -> int | None:
        """Return the trial whose outcome a station may still take back."""
        return None if self.ended else self._undoable.get(station)

    @property
    def recorded(self) -> Iterator[tuple[Trial, str, Outcome]]:
        """All trials that have an outcome, with the names of their policies, in the order of their blocks."""
        for block in self.blocks:
            for slot, outcome in enumerate(block.outcomes):
                if outcome is not None:
                    yield self.trial(block, block.first + slot), block.policies[slot], outcome

    def cost_of(self, said: Mapping[str, Any]) -> float | None:
        """Return what an outcome counts as; None if its trial is to be repeated."""
        found = {kind: said[kind] for kind in (*MEASURED, *LEFT) if kind in said}
        if len(found) != 1:
            remedy = "give success, score, milestones, aborted or discarded"
            raise InvalidSetting("one outcome is needed", remedy=remedy)
        for kind in found.keys() & LEFT:
            return 1.0 if getattr(self.protocol, kind) == "failure" else None
        return self.protocol.cost(**found)

    def _on_protocol(
        self,
        protocol: dict[str, Any],
        fingerprint: str,
        certificate: dict[str, Any] | None,
        others: list[str],
        commitment: str,
    ) -> None:
        self.protocol = Protocol.from_dict(protocol)
        if fingerprint != self.protocol.fingerprint:
            raise InvalidSetting("has a protocol that its fingerprint does not fit")
        self.schedule, self.sealed = Schedule(self.protocol, self._secret), self._row.hash
        if commitment != self.schedule.commitment:
            raise InvalidSetting("has a commitment that the key of letters and order does not fit")
        self.certificate, self.evidence = certificate, evidence_of(self.protocol, certificate)
        if others:
            self._name(f"these policies were evaluated before, in {', '.join(others)}")

    def _expected(self) -> dict[str, Any]:
        """Return what the row that opens the next place must say."""
        place = self.schedule.place(len(self.blocks))
        letters = self.schedule.letters(place.round)
        labels = [letters[name] for name in self._order(place)]
        scene = self.schedule.scene(place)
        return {"place": list(place), "scene": scene, "labels": labels, "first": self._trials + 1}

    def _order(self, place: Place) -> list[str]:
        begun = self._by_round.get(place.round)  # who is in at its beginning stays in for a round
        return self.schedule.order(begun[0].policies if begun else self.evidence.policies, place)

    def _on_open(self, station: str, **said: Any) -> None:
        if self.ended or self.current(station) is not None or said != self._expected():
            raise InvalidSetting("does not follow from the schedule")
        place = self.schedule.place(len(self.blocks))
        block = Block(place, said["scene"], station, self._order(place), said["labels"], said["first"])
        block.outcomes = [None] * len(block.policies)
        self._trials += len(block.policies)
        for group in (self.blocks, self._open, self._by_round[place.round]):
            group.append(block)

    def _on_take(self, block: int, station: str) -> None:
        if self.blocks[block].station is not None or self.current(station) is not None:
            raise InvalidSetting("takes a block that was not released")
        self.blocks[block].station = station

    def _on_release(self, station: str, reason: str) -> None:
        for block in self._open:
            if block.station == station:
                block.station = None
        self._undoable.pop(station, None)
        self._name(f"station {station} was released: {reason}")

    def _on_outcome(self, trial: int, **_: Any) -> None:
        said, block = self._row.content, self._running(trial)
        cost, station = self.cost_of(said), str(block.station)
        self.attempts[trial].append(said)
        for kind in LEFT:
            if kind in said:
                counts = "counts as a failure" if cost else "was repeated"
                self._name(f"trial {trial} was {kind} and {counts}: {said[kind]}")
        if "note" in said:
            self._name(f"note on trial {trial}: {said['note']}")
        if cost is None:
            return
        block.outcomes[trial - block.first] = Outcome(self._row.time, station, cost, said)
        self._undoable[station] = trial
        if self.ended:
            self._name(f"trial {trial} was recorded after the end and is not counted")
        if block.complete:
            self._open.remove(block)
            self._count_rounds()

    def _on_undo(self, trial: int | None, station: str, reason: str) -> None:
        block = self.block_of(trial)
        if trial is None or block is None or self.undoable(station) != trial:
            problem = "the evaluation has ended" if self.ended else "no outcome can be taken back"
            raise InvalidSetting(problem, remedy="only the latest one of a station can; write a note instead")
        self._name(f"the outcome of trial {trial} was taken back: {reason}")
        del self._undoable[station]
        if block.complete:
            self._open.insert(0, block)
        block.outcomes[trial - block.first] = None
        if block.place.round <= self.rounds:
            self.rounds, self.evidence = 0, evidence_of(self.protocol, self.certificate)
            self._count_rounds()

    def _on_note(self, text: str) -> None:
        self._name(f"note: {text}")

    def _on_look(self, what: str) -> None:
        self._name(f"results by policy were looked at ({what})")

    def _on_stop(self, reason: str) -> None:
        if self.ended:
            raise InvalidSetting("stops what has ended")
        self.ended = "stopped"
        self._name(f"stopped before the rule did: {reason}")

    def _on_end(self, **said: Any) -> None:
        if said != self.end or self.closed:
            raise InvalidSetting("does not tell the end that follows from the rows before")
        self.closed = True

    @property
    def end(self) -> dict[str, Any]:
        """What the row at the end says: why, after how many rounds, and the key that was committed."""
        return {"why": self.ended, "rounds": self.rounds, "secret": self._secret} if self.ended else {}

    def _count_rounds(self) -> None:
        """Count complete rounds in their order; a later one waits for those before it."""
        while not self.ended and self._is_complete(self.rounds + 1):
            self.rounds += 1
            self.evidence.take(self.costs(self.rounds))
            if self.evidence.answered:
                self.ended = "answered"
            elif self.rounds == self.protocol.most_rounds:
                self.ended = "most rounds"

    def _is_complete(self, number: int) -> bool:
        blocks = self._by_round.get(number, [])
        return len(blocks) == self.protocol.slots and all(block.complete for block in blocks)

    def costs(self, number: int) -> dict[str, list[float]]:
        """Return the costs of a complete round, of each policy in the order of the declared tasks."""
        tasks, blocks = list(self.protocol.weights), self._by_round[number]
        costs: dict[str, list[float]] = {
            name: [] for name in self.protocol.policies if name in blocks[0].policies
        }
        for block in sorted(blocks, key=lambda each: (tasks.index(each.place.task), each.place.repeat)):
            for name, outcome in zip(block.policies, block.outcomes, strict=True):
                costs[name].append(outcome.cost if outcome else 1.0)
        return costs

    def _name(self, sentence: str) -> None:
        self.events.append((self._row.number, self._row.time, sentence))
