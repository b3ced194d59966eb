"""What is known after each complete round, for each of the questions; and how many rounds are needed."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from boundwatch._support.validation import check_number
from boundwatch.certificates.campaign import Campaign
from boundwatch.certificates.certificate import Certificate
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.finding import ComparisonFinding, ComparisonVerdict
from boundwatch.comparison.policy_comparison import PolicyComparison
from boundwatch.comparison.ranking import RankedPair, Ranking, close, letter_display, rank
from boundwatch.detectors.sequential import SequentialTest
from boundwatch.detectors.verdicts import Finding, Verdict
from boundwatch.episodes.measure import Design
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.evaluation.protocol import Protocol
from boundwatch.reporting.compared import comparison_evidence, ranking_headline, ranking_notes
from boundwatch.reporting.wording import answer, basis, evidence, limits, points, promise

Round = Mapping[str, Sequence[float]]
"""The costs of a complete round: of each policy that was in, one per task and in the same order."""
_RUNS = {"certify": 60}  # its limits take a few milliseconds per look
_LONGEST = 2000  # rounds that are played


class Evidence(ABC):
    """What the rounds so far say about a question; each question has one."""

    guarantee: str
    """With alpha and 1 - alpha to fill in."""
    paired = False
    """Whether policies are compared in random order, so that drift favors none."""

    def __init__(self, protocol: Protocol) -> None:
        self.protocol = protocol
        self.policies = list(protocol.policies)
        """Those that are still in."""
        self.tasks = list(protocol.weights) if protocol.slots > 1 else None
        self.is_binary = protocol.measure == "success"

    @property
    @abstractmethod
    def answered(self) -> bool:
        """Whether the question is."""

    @abstractmethod
    def take(self, costs: Round) -> None:
        """Count a complete round."""

    @abstractmethod
    def finding(self) -> Any:
        """Return what is known; refused before the first complete round."""

    @abstractmethod
    def said(self, finding: Any, rounds: str, counts: str) -> str:
        """Say it in a sentence."""

    @abstractmethod
    def rows(self, finding: Any) -> Iterable[tuple[str, str]]:
        """Return the evidence as labeled lines."""


class _OfRounds(PolicyComparison):
    drifting = True  # conditions may, from round to round


class _Comparing(Evidence):
    """Two policies, paired by round; randomization makes each pair a fair one if they are equal."""

    paired = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        design: Any = {"paired": True, "margin": protocol.margin, "tasks": protocol.slots}
        self.test = _OfRounds(protocol.alpha, binary=self.is_binary, **design)

    @property
    def answered(self) -> bool:
        """Whether there is a verdict, or with a margin, whether the second is shown to be no worse."""
        decided = self.test.verdict is not ComparisonVerdict.UNDECIDED
        return self.test.no_worse if self.protocol.margin else decided

    def take(self, costs: Round) -> None:
        self.test.update_many(*(costs[name] for name in self.policies))

    def finding(self) -> Any:
        """Return the comparison of the first policy (A) with the second (B)."""
        first, second = self.policies
        return dataclasses.replace(self.test.finding(), names=(first, second))

    @property
    def guarantee(self) -> str:  # type: ignore[override]
        if self.protocol.margin:
            return (
                "If the second policy is worse than the first by more than the margin in every round, it is "
                "ever called no worse with probability at most {0:g}"
            )
        return (
            "If the policies are equal in every task, one of them is ever called better with probability at "
            "most {0:g} per side"
        )

    def said(self, finding: ComparisonFinding, rounds: str, counts: str) -> str:
        seen, (first, second) = f"({rounds}: {counts})", self.policies
        if margin := self.protocol.margin:
            shown = "is" if finding.no_worse else "is not shown to be"
            return f"{second} {shown} at most {points(margin, 'nearest')} worse than {first} {seen}."
        if finding.verdict is ComparisonVerdict.UNDECIDED:
            return f"No difference is shown between {first} and {second} {seen}."
        better, worse = (first, second) if finding.verdict is ComparisonVerdict.A_BETTER else (second, first)
        mean = f" in the mean over {len(self.protocol.weights)} tasks" if self.tasks else ""
        return f"{better} is better than {worse}{mean} {seen}."

    def rows(self, finding: ComparisonFinding) -> Iterable[tuple[str, str]]:
        return [row for row in comparison_evidence(finding) if row[0] != "guarantee"]


class _Racing(Evidence):
    """Several policies: bets on every ordered pair; one that is beaten by another drops out.

    The e-value of a pair that has lost a policy stays as it is, so all of them remain e-processes, and by
    closed testing no statement is ever wrong but with probability `alpha`, whatever dropped out when.
    """

    guarantee = "With probability at least {1:g}, every policy that is called better is better"
    paired = True

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self._alpha = protocol.alpha
        self._bets = DifferenceBets()
        self._pairs = list(permutations(self.policies, 2))
        self._logs = np.tile(self._bets.log_shares, (len(self._pairs), 1))
        self._costs: dict[str, list[float]] = {name: [] for name in self.policies}
        self._decided: dict[tuple[str, str], float] = {}

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
            self._decided.setdefault(self._pairs[i], float(adjusted[i]))
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
            if (known := self._decided.get((better, worse))) is not None:
                p_value = min(pair.adjusted_p if better == pair.better else 1.0, math.exp(-known))
                return dataclasses.replace(pair, better=better, worse=worse, decided=True, adjusted_p=p_value)
        return dataclasses.replace(pair, decided=False, adjusted_p=max(pair.adjusted_p, self._alpha))

    def said(self, finding: Ranking, rounds: str, counts: str) -> str:  # noqa: ARG002
        return f"{ranking_headline(finding)} ({rounds})."

    def rows(self, finding: Ranking) -> Iterable[tuple[str, str]]:
        decided = [str(pair) for pair in finding.pairs if pair.decided]
        return [("shown", "; ".join(decided) or "nothing"), ("groups", ranking_notes(finding)[0])]


class _Certifying(Evidence):
    """One policy, until its limits are narrow enough."""

    guarantee = "The limits hold with probability at least {1:g}"

    def __init__(self, protocol: Protocol) -> None:
        super().__init__(protocol)
        self.campaign = Campaign(protocol.alpha, binary=self.is_binary, strata=self.tasks)

    @property
    def answered(self) -> bool:
        """Whether the limits are as close as the protocol wants them."""
        return self.campaign.n > 0 and self.campaign.width <= (self.protocol.until_width or 0)

    def take(self, costs: Round) -> None:
        self.campaign.update_many(costs[self.policies[0]], self.tasks)

    def finding(self) -> Certificate:
        """Return the certificate of the trials so far."""
        design = Design(strata="task" if self.tasks else None)
        return self.campaign.certificate(measure=self.protocol.measured, design=design)

    def said(self, finding: Certificate, rounds: str, counts: str) -> str:  # noqa: ARG002
        what = f"fails in {limits(finding)} of trials"
        if not finding.binary:
            what = f"has an expected cost of {limits(finding)}"
        return f"{self.policies[0]} {what} ({rounds})."

    def rows(self, finding: Certificate) -> Iterable[tuple[str, str]]:
        return [("promise", " ".join(promise(finding))), ("basis", " ".join(basis(finding)))]


class _Checking(Evidence):
    """One policy against a certificate."""

    guarantee = "A verdict is wrong with probability at most {0:g} per side"

    def __init__(self, protocol: Protocol, certificate: Certificate) -> None:
        super().__init__(protocol)
        self.certificate = certificate
        levels: Any = dict.fromkeys(("alpha_adverse", "alpha_benign"), protocol.alpha)
        self.test = SequentialTest(certificate, margin=protocol.margin or None, **levels)

    @property
    def answered(self) -> bool:
        """Whether there is a verdict, or it is shown that the cost rose by at most the margin."""
        decided = self.test.verdict is not Verdict.WITHIN
        return decided or (self.test.n > 0 and bool(self.test.finding().no_worse))

    def take(self, costs: Round) -> None:
        tasks = self.protocol.weights if self.certificate.strata else [None]
        for cost, task in zip(costs[self.policies[0]], tasks, strict=True):
            self.test.update(cost, task)

    def finding(self) -> Any:
        return self.test.finding()

    def said(self, finding: Finding, rounds: str, counts: str) -> str:  # noqa: ARG002
        return f"{self.policies[0]}: {answer(finding)} ({rounds})."

    def rows(self, finding: Finding) -> Iterable[tuple[str, str]]:
        return evidence(self.certificate, finding)


def evidence_of(protocol: Protocol, certificate: Mapping[str, Any] | None = None) -> Evidence:
    """Return what gathers the evidence for the question of a protocol."""
    if protocol.question == "check":
        return _Checking(protocol, Certificate.from_dict(dict(certificate or {})))
    kinds: dict[str, Any] = {"compare": _Comparing, "rank": _Racing, "certify": _Certifying}
    found: Evidence = kinds[protocol.question](protocol)
    return found


@dataclass(frozen=True)
class Planned:
    """What came of playing a protocol with outcomes of known rates.

    Attributes
    ----------
    rounds
        After how many rounds the question was answered in nine of ten plays; None if that takes longer.
    median
        The same of every second play.
    answered
        The share of plays that were answered within the most rounds.
    most_rounds, rates
        What was played.
    """

    rounds: int | None
    median: int | None
    answered: float
    most_rounds: int
    rates: tuple[float, ...]

    def __str__(self) -> str:
        expected = ", ".join(f"{rate:g}" for rate in self.rates)
        needed = f"about {self.rounds} rounds (half of the time {self.median})"
        needed = f"more than {self.most_rounds} rounds are needed" if self.rounds is None else needed
        return (
            f"For 90 % power at success rates of {expected}, {needed}; at most {self.most_rounds} will be "
            f"run, which answer the question with a probability of about {100 * self.answered:.0f} %."
        )

    @property
    def suggested(self) -> int:
        """Half as many rounds again as are needed, to the next five."""
        if self.rounds is None:
            problem = f"cannot be told apart in {_LONGEST} rounds"
            raise InvalidSetting(problem, name="rates", value=self.rates, remedy="choose most_rounds")
        return 5 * math.ceil(1.5 * self.rounds / 5)


def planned(protocol: Protocol, rates: Sequence[float], *, seed: int = 0) -> Planned:
    """Play a protocol with outcomes that succeed at these rates, whatever the task.

    Scores are drawn as the worst or the best one, for which the most rounds are needed.
    """
    if len(rates) != len(protocol.policies):
        problem, remedy = f"are {len(rates)}", f"give one for each of {', '.join(protocol.policies)}"
        raise InvalidSetting(problem, name="rates", value=tuple(rates), remedy=remedy)
    for rate in rates:
        check_number(rate, "rates", "in [0, 1]", 0, 1, remedy="give shares of successes")
    certificate = None if protocol.certificate is None else Certificate.load(protocol.certificate).to_dict()
    rng, most, found = np.random.default_rng(seed), min(protocol.most_rounds, _LONGEST), []
    looks = 5 if protocol.question == "certify" else 1
    for _ in range(_RUNS.get(protocol.question, 400)):
        evidence, number = evidence_of(protocol, certificate), 0
        while number < most and (number % looks or not evidence.answered):
            failed = (rng.random((len(rates), protocol.slots)) >= np.array(rates)[:, None]).astype(float)
            drawn = dict(zip(protocol.policies, failed.tolist(), strict=True))
            evidence.take({name: drawn[name] for name in evidence.policies})
            number += 1
        found.append(number if evidence.answered else math.inf)
        if len(found) == 40 and np.mean(np.isinf(found)) > 0.5:  # no more is to be learned
            break
    needed, half = (np.quantile(found, share, method="higher") for share in (0.9, 0.5))
    rounds, median = (None if math.isinf(each) else int(each) for each in (needed, half))
    return Planned(rounds, median, float(np.mean(np.isfinite(found))), protocol.most_rounds, tuple(rates))
