"""What the rows of a log amount to: each is derived again from the protocol and the secret, or refused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from boundwatch.errors import Refusal, SchemaMismatch
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
    def due(self) -> list[int]:
        """The number of the trial that is to be run now; nothing if all are."""
        return [] if self.complete else [self.first + self.outcomes.index(None)]


class Replay:
    """The state of an evaluation after some rows of its log."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self.protocol: Protocol
        self.schedule: Schedule
        self.evidence: Evidence
        self.seal: dict[str, Any] = {}
        self.sealed = ""
        """The hash of the rows before the first trial."""
        self.attempts: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        """What was ever said of a trial, also what was taken back or repeated."""
        self.blocks: list[Block] = []
        self.rounds = 0
        """How many are complete and counted, in their order."""
        self.ended = ""
        self.closed = False
        self.events: list[tuple[int, str, str]] = []
        """What the report must name: row, time, sentence."""
        self._in: dict[int, list[str]] = {}
        self._complete: dict[int, int] = defaultdict(int)
        self._undoable: dict[str, int] = {}
        self._running: dict[str, list[Block]] = defaultdict(list)  # of each station, what is not complete
        self._free: list[Block] = []  # released, for the next station that asks
        self._times: list[str] = []
        self._trials = 0
        self._kinds: dict[str, Callable[[Row], None]] = {
            "protocol": self._on_protocol,
            "sealed": self._on_sealed,
            "open": self._on_open,
            "take": self._on_take,
            "outcome": self._on_outcome,
            "undo": self._on_undo,
            "note": lambda row: self._name(row, f"note: {row.content['text']}"),
            "look": lambda row: self._name(row, f"results by policy were looked at ({row.content['what']})"),
            "release": self._on_release,
            "stop": self._on_stop,
            "end": self._on_end,
        }

    def apply(self, row: Row) -> None:
        """Take in the next row, or refuse one that does not follow."""
        if (row.number == 1) != (row.kind == "protocol") or row.kind not in self._kinds:
            raise self._wrong(row, "is not what comes there")
        if self._times and row.time < self._times[-1]:
            self._name(row, f"the clock was set back, from {self._times[-1]} to {row.time}")
        self._times.append(row.time)
        try:
            self._kinds[row.kind](row)
        except (KeyError, TypeError, IndexError, AttributeError):
            raise self._wrong(row, f"is not a valid {row.kind} row") from None

    def next_block(self, station: str) -> tuple[str, dict[str, Any]] | None:
        """Return the row that gives a station its next block; None if there is none for it."""
        if self._free:
            return "take", {"block": self.blocks.index(self._free[0]), "station": station}
        if len(self.blocks) == len(self.schedule):
            return None
        content = self._expected(self.schedule.place(len(self.blocks)))
        return "open", content | {"station": station}

    def current(self, station: str) -> Trial | None:
        """Return the trial that a station is to run now, if it has one."""
        if self.ended or not (running := self._running[station]):
            return None
        return self.trial(running[0], running[0].due[0])

    def trial(self, block: Block, number: int) -> Trial:
        """Return a trial of a block."""
        return Trial(
            number=number,
            policy=block.labels[number - block.first],
            task=block.place.task,
            scene=block.scene,
            round=block.place.round,
            most_rounds=self.protocol.most_rounds,
            most_trials=self.protocol.most_trials,
            station=block.station or "",
        )

    def block_of(self, number: int) -> Block | None:
        """Return the block of a trial, the latest first; None if it was not handed out."""
        for block in reversed(self.blocks):
            if block.first <= number < block.first + len(block.policies):
                return block
        return None

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
        for kind in LEFT:
            if kind in said:
                return 1.0 if getattr(self.protocol, kind) == "failure" else None
        return self.protocol.cost(**{kind: said[kind] for kind in MEASURED if kind in said})

    def _on_protocol(self, row: Row) -> None:
        self.seal = row.content
        self.protocol = Protocol.from_dict(row.content["protocol"])
        if row.content["fingerprint"] != self.protocol.fingerprint:
            raise self._wrong(row, "has a protocol that its fingerprint does not fit")
        self.schedule = Schedule(self.protocol, self._secret)
        self.evidence = evidence_of(self.protocol, row.content["certificate"])
        if others := row.content["others"]:
            self._name(row, f"these policies were evaluated before, in {', '.join(others)}")

    def _on_sealed(self, row: Row) -> None:
        if row.content["commitment"] != self.schedule.commitment:
            raise self._wrong(row, "is a commitment that the key of letters and order does not fit")
        self.sealed = row.hash

    def _on_open(self, row: Row) -> None:
        place = self.schedule.place(len(self.blocks))
        content = row.content
        expected = self._expected(place)
        if {name: content[name] for name in expected} != expected or self.ended:
            raise self._wrong(row, "does not follow from the schedule")
        policies = self.schedule.order(self._in.setdefault(place.round, self.evidence.policies), place)
        block = Block(place, content["scene"], content["station"], policies, content["labels"], self._next)
        block.outcomes = [None] * len(policies)
        self._trials += len(policies)
        self.blocks.append(block)
        self._running[content["station"]].append(block)

    @property
    def _next(self) -> int:
        return self._trials + 1

    def _expected(self, place: Place) -> dict[str, Any]:
        """Return what the row that opens a place must say."""
        policies = self.schedule.order(self._in.get(place.round, self.evidence.policies), place)
        letters = self.schedule.letters(place.round)
        labels = [letters[name] for name in policies]
        return {
            "place": list(place),
            "scene": self.schedule.scene(place),
            "labels": labels,
            "first": self._next,
        }

    def _on_take(self, row: Row) -> None:
        block = self.blocks[row.content["block"]]
        if block.station is not None:
            raise self._wrong(row, "takes a block that was not released")
        self._free.remove(block)
        block.station = station = row.content["station"]
        self._running[station].append(block)

    def _on_release(self, row: Row) -> None:
        station = row.content["station"]
        for block in self._running.pop(station, []):
            block.station = None
            self._free.append(block)
        self._undoable.pop(station, None)
        self._name(row, f"station {station} was released: {row.content['reason']}")

    def _on_outcome(self, row: Row) -> None:
        said, number = row.content, row.content["trial"]
        block = self.block_of(number)
        if block is None or block.station is None or number not in block.due:
            raise self._wrong(row, f"has an outcome of trial {number}, which was not to be run then")
        try:
            cost = self.cost_of(said)
        except Refusal as error:
            raise self._wrong(row, f"has an outcome that the protocol does not know ({error})") from None
        self.attempts[number].append(said)
        for kind in LEFT:
            if kind in said:
                counts = "counts as a failure" if cost else "was repeated"
                self._name(row, f"trial {number} was {kind} and {counts}: {said[kind]}")
        if "note" in said:
            self._name(row, f"note on trial {number}: {said['note']}")
        if cost is None:
            return
        block.outcomes[number - block.first] = Outcome(row.time, block.station, cost, said)
        self._undoable[block.station] = number
        if self.ended:
            self._name(row, f"trial {number} was recorded after the end and is not counted")
        if block.complete:
            self._running[block.station].remove(block)
            self._complete[block.place.round] += 1
            self._count_rounds()

    def _on_undo(self, row: Row) -> None:
        number = row.content["trial"]
        block = self.block_of(number)
        station = row.content["station"]
        if block is None or self.undoable(station) != number:
            raise self._wrong(row, f"takes back trial {number}, which is not the latest")
        self._name(row, f"the outcome of trial {number} was taken back: {row.content['reason']}")
        del self._undoable[station]
        if block.complete:
            self._complete[block.place.round] -= 1
            self._running[station].insert(0, block)
        block.outcomes[number - block.first] = None
        if block.place.round <= self.rounds:
            self.rounds = 0
            self.evidence = evidence_of(self.protocol, self.seal["certificate"])
            self._count_rounds()

    def _on_stop(self, row: Row) -> None:
        if self.ended:
            raise self._wrong(row, "stops what has ended")
        self.ended = "stopped"
        self._name(row, f"stopped before the rule did: {row.content['reason']}")

    def _on_end(self, row: Row) -> None:
        if row.content != self.end or self.closed:
            raise self._wrong(row, "does not tell the end that follows from the rows before")
        self.closed = True

    @property
    def end(self) -> dict[str, Any]:
        """What the row at the end says: why, after how many rounds, and the key that was committed."""
        return {"why": self.ended, "rounds": self.rounds, "secret": self._secret} if self.ended else {}

    def _count_rounds(self) -> None:
        """Count complete rounds in their order; a later one waits for those before it."""
        while not self.ended and self._complete[self.rounds + 1] == self.protocol.slots:
            self.rounds += 1
            self.evidence.take(self.costs(self.rounds))
            if self.evidence.answered:
                self.ended = "answered"
            elif self.rounds == self.protocol.most_rounds:
                self.ended = "most rounds"

    def costs(self, number: int) -> dict[str, list[float]]:
        """Return the costs of a complete round, of each policy in the order of the declared tasks."""
        tasks = list(self.protocol.weights)
        size = self.protocol.block * self.protocol.slots
        group = self.blocks[(number - 1) // self.protocol.block * size :][:size]
        blocks = [block for block in group if block.place.round == number]
        blocks.sort(key=lambda block: (tasks.index(block.place.task), block.place.repeat))
        costs: dict[str, list[float]] = {name: [] for name in self._in[number]}
        for block in blocks:
            for name, outcome in zip(block.policies, block.outcomes, strict=True):
                costs[name].append(outcome.cost if outcome else 1.0)
        return costs

    def counted(self, trial: Trial) -> bool:
        """Return whether a trial is in the answer: its round is complete, and so are those before it."""
        return trial.round <= self.rounds

    def _name(self, row: Row, sentence: str) -> None:
        self.events.append((row.number, row.time, sentence))

    def _wrong(self, row: Row, problem: str) -> SchemaMismatch:
        return SchemaMismatch(f"row {row.number} {problem}", remedy="it was not written by boundwatch")
