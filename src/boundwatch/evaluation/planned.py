"""How many rounds a protocol needs, by playing it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boundwatch._support.validation import check_number
from boundwatch.certificates.certificate import Certificate
from boundwatch.errors import InvalidSetting
from boundwatch.evaluation.protocol import Protocol
from boundwatch.evaluation.questions import evidence_of

_RUNS = {"certify": 60}  # its limits take a few milliseconds per look
_LONGEST = 2000  # rounds that are played


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
