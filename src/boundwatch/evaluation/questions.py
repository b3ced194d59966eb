"""What is known after each complete round, for each of the questions that an evaluation can ask."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations
from typing import Any
from typing import Protocol as Interface

import numpy as np

from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison.evidence import DifferenceBets
from boundwatch.comparison.finding import ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.comparison.ranking import RankedPair, close, letter_display, rank
from boundwatch.detectors.base import Verdict
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.episodes.design import Design
from boundwatch.errors import InvalidCost
from boundwatch.evaluation.protocol import Protocol

Round = Mapping[str, Sequence[float]]
"""The costs of a complete round: of each policy that was in, one per task and in the same order."""


class Evidence(Interface):
    """What the rounds so far say about a question."""

    policies: list[str]
    """Those that are still in."""

    @property
    def answered(self) -> bool:
        """Whether the question is."""

    def take(self, costs: Round) -> None:
        """Count a complete round."""

    def finding(self) -> Any:
        """Return what is known."""


class _OfRounds(PolicyComparison):
    drifting = True  # conditions may, from round to round


class Comparing:
    """Two policies, paired by round; randomization makes each pair a fair one if they are equal."""

    def __init__(self, protocol: Protocol) -> None:
        self.policies, self._margin = list(protocol.policies), protocol.margin
        self.test = _OfRounds(
            protocol.alpha,
            binary=protocol.measure == "success",
            paired=True,
            margin=protocol.margin,
            tasks=protocol.slots,
        )

    @property
    def answered(self) -> bool:
        """Whether there is a verdict, or with a margin, whether the second is shown to be no worse."""
        return self.test.no_worse if self._margin else self.test.verdict is not ComparisonVerdict.UNDECIDED

    def take(self, costs: Round) -> None:
        """Count a complete round."""
        self.test.update_many(*(costs[name] for name in self.policies))

    def finding(self) -> Any:
        """Return the comparison of the first policy (A) with the second (B)."""
        first, second = self.policies
        return dataclasses.replace(self.test.finding(), names=(first, second))


class Racing:
    """Several policies: bets on every ordered pair; one that is beaten by another drops out.

    The e-value of a pair that has lost a policy stays as it is, so all of them remain e-processes, and by
    closed testing no statement is ever wrong but with probability `alpha`, whatever dropped out when.
    """

    def __init__(self, protocol: Protocol) -> None:
        self.policies, self._alpha = list(protocol.policies), protocol.alpha
        self._bets = DifferenceBets()
        self._pairs = list(permutations(self.policies, 2))
        self._logs = np.tile(self._bets.log_shares, (len(self._pairs), 1))
        self._costs: dict[str, list[float]] = {name: [] for name in self.policies}
        self._decided: dict[tuple[str, str], tuple[float, float]] = {}

    @property
    def answered(self) -> bool:
        """Whether one is left: all others are beaten by one that is better, so it is the best."""
        return len(self.policies) == 1

    def take(self, costs: Round) -> None:
        """Count a complete round, and drop who is beaten."""
        for name, values in costs.items():
            self._costs[name] += values
        running = [i for i, (a, b) in enumerate(self._pairs) if a in costs and b in costs]
        better = np.array([costs[self._pairs[i][0]] for i in running])
        worse = np.array([costs[self._pairs[i][1]] for i in running])
        self._logs[running] += self._bets.log_factors(better[..., None], worse[..., None]).sum(axis=1)
        logs = np.logaddexp.reduce(self._logs, axis=1)
        if logs.max() < math.log(1 / self._alpha):  # no average can be larger
            return
        adjusted = close(logs)
        for i in np.flatnonzero(adjusted >= math.log(1 / self._alpha)).tolist():
            known = (float(logs[i]), float(adjusted[i]))
            self._decided.setdefault(self._pairs[i], known)
        beaten = {worse for _, worse in self._decided}
        self.policies = [name for name in self.policies if name not in beaten]

    def finding(self) -> Any:
        """Return the ranking, in which what was ever decided stays so."""
        if not all(self._costs.values()):
            raise InvalidCost("no round is complete", remedy="run one first")
        ranking = rank(self._costs, self._alpha, binary=False)  # tasks take turns
        pairs = tuple(self._kept(pair) for pair in ranking.pairs)
        names = [policy.name for policy in ranking.policies]
        letters = letter_display(names, [(pair.better, pair.worse) for pair in pairs if pair.decided])
        policies = tuple(
            dataclasses.replace(policy, letters=letters[policy.name]) for policy in ranking.policies
        )
        return dataclasses.replace(ranking, policies=policies, pairs=pairs, paired=True)

    def _kept(self, pair: RankedPair) -> RankedPair:
        for better, worse in ((pair.better, pair.worse), (pair.worse, pair.better)):
            if (better, worse) in self._decided:
                p_value = min(pair.adjusted_p if better == pair.better else 1.0, self._at(better, worse))
                return dataclasses.replace(pair, better=better, worse=worse, decided=True, adjusted_p=p_value)
        return dataclasses.replace(pair, decided=False, adjusted_p=max(pair.adjusted_p, self._alpha))

    def _at(self, better: str, worse: str) -> float:
        return math.exp(-self._decided[better, worse][1])


class Certifying:
    """One policy, until its limits are narrow enough."""

    def __init__(self, protocol: Protocol) -> None:
        self.policies, self._protocol = list(protocol.policies), protocol
        self._tasks = list(protocol.weights) if protocol.slots > 1 else None
        self.campaign = Campaign(protocol.alpha, binary=protocol.measure == "success", strata=self._tasks)

    @property
    def answered(self) -> bool:
        """Whether the limits are as close as the protocol wants them."""
        return self.campaign.n > 0 and self.campaign.width <= (self._protocol.until_width or 0)

    def take(self, costs: Round) -> None:
        """Count a complete round."""
        self.campaign.update_many(costs[self.policies[0]], self._tasks)

    def finding(self) -> Certificate:
        """Return the certificate of the trials so far."""
        design = Design(strata=None if self._tasks is None else "task")
        return self.campaign.certificate(measure=self._protocol.measured, design=design)


class Checking:
    """One policy against a certificate."""

    def __init__(self, protocol: Protocol, certificate: Certificate) -> None:
        self.policies, self._margin = list(protocol.policies), protocol.margin
        self._tasks = list(protocol.weights) if certificate.strata else [None]
        self.test = SequentialTest(
            certificate,
            alpha_adverse=protocol.alpha,
            alpha_benign=protocol.alpha,
            margin=protocol.margin or None,
        )

    @property
    def answered(self) -> bool:
        """Whether there is a verdict, or it is shown that the cost rose by at most the margin."""
        if self.test.n == 0:
            return False
        shown = bool(self._margin) and bool(self.test.finding().no_worse)
        return shown or self.test.verdict is not Verdict.WITHIN

    def take(self, costs: Round) -> None:
        """Count a complete round."""
        for cost, task in zip(costs[self.policies[0]], self._tasks, strict=True):
            self.test.update(cost, task)

    def finding(self) -> Any:
        """Return the finding so far."""
        return self.test.finding()


_KINDS: dict[str, Callable[[Protocol], Evidence]] = {
    "compare": Comparing,
    "rank": Racing,
    "certify": Certifying,
}


def evidence_of(protocol: Protocol, certificate: Mapping[str, Any] | None = None) -> Evidence:
    """Return what gathers the evidence for the question of a protocol."""
    if protocol.question == "check":
        return Checking(protocol, Certificate.from_dict(dict(certificate or {})))
    return _KINDS[protocol.question](protocol)
