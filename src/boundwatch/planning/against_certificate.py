"""How many trials until a suspected shift is noticed: the question to ask before the hardware is booked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors.base import Verdict
from boundwatch.errors import InvalidSetting
from boundwatch.planning import curves
from boundwatch.planning.power import MOST_TRIALS, Power, check_rate, check_size, choose_side

SIZES = (10, 25, 50, 100, 250)
CAVEAT = (
    "exact for costs of 0 and 1; other costs of this mean usually need fewer trials, but may need more: "
    "a sample of them shows it"
)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer of `plan`.

    Attributes
    ----------
    verdict, cost
        Which shift it is, ADVERSE or BENIGN, and the suspected expected cost.
    exact, standard_error
        Whether the powers were enumerated, for costs of 0 and 1; else they were simulated, with this largest
        standard error.
    caveat
        What they then do not say about other costs of this mean; None if costs are binary or a sample.
    most_trials
        How far one look was computed; more trials than these are None.
    information_limit
        ln(1/alpha)/KL_inf at the level of the sequential test: even a bettor who knew the new distribution
        would need about this many trials on average, against the certified limit or, if costs are judged
        jointly, if the certified rate were known exactly.
    powers
        One entry per detector and tail.
    smallest_shifts
        For each number of trials, the smallest shift that each detector notices with 90 % power, for costs
        of 0 and 1; None if there is none. It is beyond the certified limit or, if costs are judged jointly,
        beyond the mean of the certificate's costs.
    joint
        Whether `check` and `watch` judge new costs jointly with those of this certificate. Planned for costs
        of 0 and 1; for others, numbers are for tests against the certified limit.
    """

    verdict: Verdict
    cost: float
    exact: bool
    caveat: str | None
    standard_error: float
    most_trials: int
    information_limit: float
    powers: list[Power]
    smallest_shifts: list[dict[str, Any]]
    joint: bool

    def __repr__(self) -> str:
        names = ("verdict", "cost", "exact", "information_limit")
        return one_line(self, {name: getattr(self, name) for name in names} | {"powers": len(self.powers)})

    def __str__(self) -> str:
        once = [trials for power in self.powers[:-1] if (trials := power.trials[0.9]) is not None]
        found = "no number of trials that was computed suffices"
        if once:
            found = f"{min(once)} trials suffice with a power of 90 % for one look"
        how = "judged jointly with the certificate's" if self.joint else "against the certified limit"
        return (
            f"{self.verdict.name} at an expected cost of {self.cost:.4g}: {found}, {how}; no test needs "
            f"fewer than about {self.information_limit:.1f} on average"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return content | {"verdict": self.verdict.value, "powers": [power.to_dict() for power in self.powers]}


def plan(
    certificate: Certificate,
    *,
    cost: float | None = None,
    costs: ArrayLike | None = None,
    alpha: float | None = None,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> Plan:
    """Compute how many trials each detector needs to notice a suspected shift from a certificate.

    If the certificate is held-out and for costs of 0 and 1, the plan is for judging its trials and the new
    ones jointly, as `check` and `watch` do; else for tests against its limits. Before there is a certificate,
    `plan_trials` says how many trials to run in both places.

    Parameters
    ----------
    certificate
        The promise to compare with.
    cost
        The suspected expected cost. Costs are then taken to be 0 or 1, for which every power is exact. Other
        costs of this mean usually need fewer trials, but may need more: pass a sample of them.
    costs
        Or a sample of costs from the suspected world; powers are simulated by drawing from it.
    alpha
        The level of every detector, delta not included. Left out: what each takes by default (0.05 for the
        hypothesis test, 0.05 less delta for the confidence interval, 0.04 for the sequential test).
    sizes
        Numbers of trials for which to find the smallest shift that would be noticed.
    seed
        For the simulation.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> answer = bw.plan(certificate, cost=0.5)
    >>> {(p.detector, p.tail): p.trials[0.9] for p in answer.powers if p.detector != "confidence-interval"}
    {('hypothesis-test', 'hoeffding'): 37, ('hypothesis-test', 'kl'): 33, ('hypothesis-test', 'exact'): 21,
     ('hypothesis-test', 'betting'): 37, ('sequential-test', 'mixture'): 35}
    >>> round(answer.powers[-1].mean_trials, 1), round(answer.information_limit, 1)
    (16.5, 14.4)
    """
    require_certificate(certificate)
    if certificate.strata:
        problem = "certificate is of the mean over tasks, each of which has its own rate"
        raise InvalidSetting(problem, remedy="use boundwatch.planning.plan_tasks")
    if (cost is None) == (costs is None):
        raise InvalidSetting("give either cost, the suspected expected cost, or costs, a sample; not both")
    wanted = [check_size(size, "sizes has") for size in sizes]
    sample = None if costs is None else certificate.check_costs(costs)
    mean = check_rate(cost, "cost") if sample is None else float(sample.mean())
    side = choose_side(certificate, mean, None if alpha is None else check_level(alpha, "alpha"))
    rate = side.turned(mean)
    if sample is None or certificate.binary:  # draws of 0 and 1 are known by their mean
        sample, powers = None, curves.exact_powers(side, rate)
        information = float(bounds.binary_kl(rate, side.known_mean))
    else:
        sample = side.turned(sample)
        powers = curves.simulated_powers(side, sample, np.random.default_rng(seed))
        information = curves.information_rate(sample, side.null_mean)
    return Plan(
        verdict=side.verdict,
        cost=side.turned(rate),
        exact=sample is None,
        caveat=CAVEAT if sample is None and not certificate.binary else None,
        standard_error=0.0 if sample is None else curves.STANDARD_ERROR,
        most_trials=MOST_TRIALS if sample is None else curves.MOST_DRAWS,
        information_limit=math.log(1 / side.sequential[1]) / information,
        powers=powers,
        smallest_shifts=[curves.smallest_shift(side, n) for n in wanted],
        joint=side.reference is not None,
    )


def time_to_alarm(certificate: Certificate, *, cost: float, alpha: float | None = None) -> Power:
    """Return how long the sequential test takes to notice a suspected failure rate.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> time_to_alarm(certificate, cost=0.5).median_trials
    13
    """
    side = choose_side(certificate, cost, alpha)
    return curves.exact_sequential(side, side.turned(cost))
