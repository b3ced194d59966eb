"""Episodes that a machine judges: which of them a coin draws, and a campaign with their labels."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from boundwatch._support.schema import convert
from boundwatch._support.validation import check_costs, check_flag, shortest
from boundwatch.bounds.judged_bets import JudgedBets
from boundwatch.certificates.certificate import Certificate
from boundwatch.certificates.limits import split_delta
from boundwatch.errors import InvalidCost, InvalidSetting

AUDIT_RATES = 0.1, 0.4
"""How likely an episode is to be labeled that the judge calls a success, and one that it calls a failure."""
_GRID = np.linspace(0.0, 1.0, 257)[1:-1]


def is_drawn(seed: int, rates: tuple[float, float], episode: int, judged: float) -> bool:
    """Return whether the coin draws an episode, counted from 1, that a machine judged so."""
    coin = hashlib.sha256(f"boundwatch label {seed} {episode}".encode()).digest()
    return int.from_bytes(coin[:8], "big") < rates[judged >= 0.5] * 2**64


class Drawing:
    """What a machine said of episodes, which of them a coin draws, and what people said of these.

    Episodes count in their order, up to the first one that waits for its label. They have numbers from 1.
    """

    def __init__(self, seed: int, rates: Sequence[float]) -> None:
        found = tuple(map(float, rates))
        if len(found) != 2 or not all(0 < rate <= 1 for rate in found):
            remedy = "give two, for what the judge calls successes and failures, above 0 and at most 1"
            raise InvalidSetting("are not two probabilities", name="rates", value=rates, remedy=remedy)
        self.seed, self.rates = seed, (found[0], found[1])
        self.judged = list[float]()
        self.labels = dict[int, float]()
        self._open = dict[int, None]()
        self.n = 0
        """How many episodes count."""

    def is_drawn(self, episode: int) -> bool:
        """Return whether people are to label an episode that was judged."""
        if not 1 <= episode <= len(self.judged):
            problem, remedy = "was not judged", "give the number of an episode, counted from 1"
            raise InvalidSetting(problem, name="episode", value=episode, remedy=remedy)
        return is_drawn(self.seed, self.rates, episode, self.judged[episode - 1])

    @property
    def waiting(self) -> tuple[int, ...]:
        """The episodes that were drawn and have no label yet."""
        return tuple(self._open)

    def receive(self, judged: float, label: float | None) -> None:
        """Take an episode, and its label if it is known; that counts only if the episode is drawn."""
        self.judged.append(judged)
        if self.is_drawn(len(self.judged)):
            self._open[len(self.judged)] = None
            if label is not None:
                self.label(len(self.judged), label)

    def label(self, episode: int, cost: float) -> None:
        """Take the label of an episode that was drawn; it is final."""
        if not self.is_drawn(episode):
            remedy = "label those that wait: who chooses episodes chooses the outcome"
            raise InvalidSetting("was not drawn", name="episode", value=episode, remedy=remedy)
        if self.labels.setdefault(episode, cost) != cost:
            problem = f"has the label {shortest(self.labels[episode])} already"
            raise InvalidCost(problem, name="episode", value=episode, remedy="a label is final")
        self._open.pop(episode, None)

    def counted(self) -> Iterator[tuple[bool, float | None]]:
        """Yield what the judge called a failure, and its label, of episodes that count from now on."""
        while self.n < len(self.judged) and self.n + 1 not in self._open:
            self.n += 1
            yield self.judged[self.n - 1] >= 0.5, self.labels.get(self.n)

    def state(self) -> dict[str, Any]:
        """Return what was said as plain JSON values."""
        labels = [self.labels.get(each) for each in range(1, len(self.judged) + 1)]
        return {"judged": list(self.judged), "labels": labels}

    @staticmethod
    def said(state: Mapping[str, Any]) -> Iterator[tuple[float, float | None]]:
        """Yield what was said of each episode, as `receive` takes it."""
        judged = convert(list[float], state.get("judged"), "state.judged")
        return zip(judged, convert(list[float | None], state.get("labels"), "state.labels"), strict=True)


class JudgedCampaign:
    """Bounds a policy's expected cost while a machine judges its trials and people label some of them.

    **Guarantee**: with probability at least 1 - `delta` the expected cost lies between `lower` and `upper` at
    all times, for any judge. **Assumes**: what `Campaign` assumes, right labels, and a judge and trials that
    do not know the coin.

    Parameters
    ----------
    seed, rates
        As in `boundwatch.JudgedTest`.
    delta, binary, delta_upper, delta_lower
        As in `Campaign`.

    Examples
    --------
    >>> import boundwatch as bw
    >>> campaign = bw.JudgedCampaign(seed=7, delta=0.1, binary=True)
    >>> for trial in range(300):
    ...     failed = float(trial % 10 == 0)
    ...     campaign = campaign.update(failed, label=failed)
    >>> campaign
    JudgedCampaign(judged=300, labels=32, waiting=0, lower=0.05078, upper=0.2461, delta=0.1)
    """

    def __init__(
        self,
        *,
        seed: int,
        rates: Sequence[float] = AUDIT_RATES,
        delta: float = 0.01,
        binary: bool = False,
        delta_upper: float | None = None,
        delta_lower: float | None = None,
    ) -> None:
        self.delta, self.delta_upper, self.delta_lower = split_delta(
            "held-out", delta, delta_upper, delta_lower
        )
        self.binary = check_flag(binary, "binary")
        self._drawing = Drawing(seed, rates)
        self._bets = JudgedBets(_GRID, self._drawing.rates)

    @property
    def waiting(self) -> tuple[int, ...]:
        """The trials, counted from 1, that were drawn and have no label yet."""
        return self._drawing.waiting

    @property
    def lower(self) -> float:
        """The lower limit on the expected cost."""
        return float(_GRID[self._bets.best[0] >= math.log(1 / self.delta_lower)].max(initial=0.0))

    @property
    def upper(self) -> float:
        """The upper limit on the expected cost."""
        return float(_GRID[self._bets.best[1] >= math.log(1 / self.delta_upper)].min(initial=1.0))

    def update(self, judged: float, label: float | None = None) -> JudgedCampaign:
        """Take what the judge says of one more trial, and its label if it is known; return the campaign."""
        costs = [judged] if label is None else [judged, label]
        said, *labels = check_costs(costs, binary=self.binary).tolist()
        self._drawing.receive(said, labels[0] if labels else None)
        return self._go_on()

    def label(self, trial: int, cost: float) -> JudgedCampaign:
        """Take the label of a trial that was drawn; return the campaign."""
        self._drawing.label(trial, float(check_costs([cost], binary=self.binary)[0]))
        return self._go_on()

    def certificate(self) -> Certificate:
        """Return a certificate with the limits as they are; it cannot derive them again."""
        return Certificate.from_bounds(
            lower=min(self.lower, self.upper),  # limits that cross are moved outward
            upper=max(self.lower, self.upper),
            delta=self.delta,
            binary=self.binary,
            delta_upper=self.delta_upper,
            delta_lower=self.delta_lower,
        )

    def _go_on(self) -> JudgedCampaign:
        for failed, label in self._drawing.counted():
            self._bets.step(failed, label)
        return self

    def __repr__(self) -> str:
        numbers = f"judged={len(self._drawing.judged)}, labels={len(self._drawing.labels)}"
        limits = f"lower={self.lower:.4g}, upper={self.upper:.4g}, delta={self.delta:g}"
        return f"JudgedCampaign({numbers}, waiting={len(self.waiting)}, {limits})"

    def __str__(self) -> str:
        known = f"{len(self._drawing.judged)} judged trials and {len(self._drawing.labels)} labels"
        what = "failure rate" if self.binary else "expected cost"
        return f"the {what} is between {self.lower:.4g} and {self.upper:.4g} after {known}"
