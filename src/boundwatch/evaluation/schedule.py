"""Which trial is next: rounds of all tasks, drawn from one committed secret.

Every draw sorts names by a hash of the secret and of what is drawn. So an order among the policies that are
still in is uniform whichever these are, and anybody with the secret derives it again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from functools import lru_cache
from string import ascii_uppercase
from typing import NamedTuple, cast

from boundwatch.evaluation.protocol import Protocol, canonical


class Place(NamedTuple):
    """Where trials stand in the schedule: a round of a task, or one of its trials if it has several."""

    round: int
    task: str
    repeat: int


def new_secret(protocol: Protocol) -> str:
    """Return what all draws come from: at random, or from the seed of the protocol."""
    if protocol.seed is None:
        return secrets.token_hex(32)
    return hashlib.sha256(f"boundwatch evaluation {protocol.fingerprint}".encode()).hexdigest()


class Schedule:
    """The places of all trials, their order and the letters of the policies."""

    def __init__(self, protocol: Protocol, secret: str) -> None:
        self.protocol, self.secret = protocol, secret
        self._group = lru_cache(maxsize=4)(self._drawn)

    def __len__(self) -> int:
        return self.protocol.most_rounds * self.protocol.slots

    def place(self, index: int) -> Place:
        """Return the index-th place of the evaluation."""
        size = self.protocol.block * self.protocol.slots
        return self._group(index // size)[index % size]

    def _drawn(self, group: int) -> list[Place]:
        """Return the places of a group of rounds: its tasks in random order, each with all its rounds."""
        size, tasks = self.protocol.block, self.protocol.weights
        rounds = range(group * size + 1, min((group + 1) * size, self.protocol.most_rounds) + 1)
        return [
            Place(each, task, repeat)
            for task in self.draw(tasks, "tasks", group)
            for each in rounds
            for repeat in range(1, tasks[task] + 1)
        ]

    def order(self, policies: Iterable[str], place: Place) -> list[str]:
        """Return the order in which policies run at a place."""
        return self.draw(policies, "order", *place)

    def scene(self, place: Place) -> str:
        """Return the scene of a place; all scenes come up before one of them does again."""
        scenes = cast("tuple[str, ...]", self.protocol.scenes)
        if not scenes:
            return ""
        weight = self.protocol.weights[place.task]
        turn, position = divmod((place.round - 1) * weight + place.repeat - 1, len(scenes))
        return self.draw(scenes, "scenes", place.task, turn)[position]

    def letters(self, number: int) -> dict[str, str]:
        """Return the label of each policy in a round: a letter, or its own name if nothing is blind."""
        policies = list(self.protocol.policies)
        if not self.protocol.blind:
            return {name: name for name in policies}
        fixed = self.protocol.blind is True
        drawn = self.draw(policies, "letters", 0 if fixed else number)
        return dict(zip(drawn, ascii_uppercase, strict=False))

    def draw(self, names: Iterable[str], *about: object) -> list[str]:
        """Return names in an order that is uniform, and always the same for the same secret."""
        head = self.secret.encode() + canonical(about)
        return sorted(names, key=lambda name: hashlib.sha256(head + name.encode()).digest())

    @property
    def commitment(self) -> str:
        """SHA-256 of the secret and of the letters of the first round, to be published before any trial."""
        return hashlib.sha256(canonical([self.secret, self.letters(1)])).hexdigest()
