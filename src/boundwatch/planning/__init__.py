"""How many trials until a suspected shift is noticed: the question to ask before the hardware is booked."""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from boundwatch import bounds
from boundwatch._support.describing import one_line
from boundwatch._support.text import shown
from boundwatch._support.validation import check_level
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors.base import LOOK_LEVEL, Verdict
from boundwatch.errors import InvalidSetting
from boundwatch.planning.before import Booking, TrialPlan, plan_before
from boundwatch.planning.exact import exact_powers, smallest_shift
from boundwatch.planning.side import MOST_TRIALS, Power, choose_side
from boundwatch.planning.simulated import MOST_DRAWS, RUNS, information_rate, simulated_powers

__all__ = ["Booking", "Plan", "Power", "TrialPlan", "plan"]

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
    verdict
        Which shift it is: ADVERSE or BENIGN.
    cost
        The suspected expected cost.
    exact
        Whether the powers were enumerated, for costs of 0 and 1; else they were simulated.
    caveat
        What they then do not say about other costs of this mean; None if costs are binary or a sample.
    standard_error
        Largest standard error of a simulated power; 0 if exact.
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
        names = ("verdict", "cost", "exact", "information_limit", "powers")
        return one_line(self, {name: getattr(self, name) for name in names} | {"powers": len(self.powers)})

    def __str__(self) -> str:
        once = min((power.trials[0.9] or math.inf for power in self.powers[:-1]), default=math.inf)
        found = "no number of trials that was computed suffices"
        if once < math.inf:
            found = f"{once:g} trials suffice with a power of 90 % for one look"
        how = "judged jointly with the certificate's" if self.joint else "against the certified limit"
        return (
            f"{self.verdict.name} at an expected cost of {self.cost:.4g}: {found}, {how}; no test needs "
            f"fewer than about {self.information_limit:.1f} on average"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return content | {"verdict": self.verdict.value, "powers": [power.to_dict() for power in self.powers]}


@overload
def plan(
    certificate: Certificate,
    *,
    cost: float | None = None,
    costs: ArrayLike | None = None,
    alpha: float | None = None,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> Plan: ...


@overload
def plan(
    *,
    cost: float,
    new_cost: float,
    lab_trials: int | None = None,
    trials: int | None = None,
    margin: float | None = None,
    alpha: float | None = None,
    delta: float = 0.01,
) -> TrialPlan: ...


def plan(
    certificate: Certificate | None = None,
    *,
    cost: float | None = None,
    costs: ArrayLike | None = None,
    new_cost: float | None = None,
    lab_trials: int | None = None,
    trials: int | None = None,
    margin: float | None = None,
    alpha: float | None = None,
    delta: float | None = None,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> Plan | TrialPlan:
    """Compute how many trials each detector needs to notice a suspected shift.

    With a certificate, the answer is a `Plan`. If it is held-out and for costs of 0 and 1, the plan is for
    judging its trials and the new ones jointly, as `check` and `watch` do; else for tests against its limits.

    Before there is a certificate, `cost` and `new_cost` are what you expect in the lab and suspect at the new
    site, as failure rates, and the answer is a `TrialPlan`: how many trials to run in both places.

    Parameters
    ----------
    certificate
        The promise to compare with; left out before there is one.
    cost
        The suspected expected cost (without a certificate: the one expected in the lab). Costs are then taken
        to be 0 or 1, for which every power is exact. Other costs of this mean usually need fewer trials, but
        may need more: pass a sample of them.
    costs
        Or a sample of costs from the suspected world; powers are simulated by drawing from it.
    alpha
        The level of every detector, delta not included. Left out: what each takes by default (0.05 for the
        hypothesis test, 0.05 less delta for the confidence interval, 0.04 for the sequential test).
    new_cost
        Without a certificate: the failure rate suspected at the new site.
    lab_trials, trials
        Without a certificate: the trials that you can run in the lab and at the new site; left out, the
        answer is the split that needs the fewest in total.
    margin
        Without a certificate: plan for showing that the new site is at most this much worse.
    delta
        Without a certificate: the delta that the certificate will have, 0.01 if left out.
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
    >>> booked = bw.plan(cost=0.1, new_cost=0.5, lab_trials=30).recommended
    >>> booked.site, round(booked.power, 2)
    (16, 0.92)
    """
    if certificate is None:
        intended = 0.01 if delta is None else delta
        return _plan_before(cost, new_cost, lab_trials, trials, margin, alpha, intended, costs)
    require_certificate(certificate)
    for name, value in {
        "new_cost": new_cost,
        "lab_trials": lab_trials,
        "trials": trials,
        "margin": margin,
        "delta": delta,
    }.items():
        if value is not None:
            raise InvalidSetting(f"{name} is for planning without a certificate; leave one of them out")
    if (cost is None) == (costs is None):
        raise InvalidSetting("give either cost, the suspected expected cost, or costs, a sample; not both")
    wanted = [_check_size(size, "sizes has") for size in sizes]
    sample = None if costs is None else certificate.check_costs(costs)
    mean = _check_cost(cost) if sample is None else float(sample.mean())
    verdict, side = choose_side(certificate, mean, None if alpha is None else check_level(alpha, "alpha"))
    if verdict is Verdict.BENIGN:
        mean, sample = 1 - mean, None if sample is None else 1 - sample
    if sample is None or certificate.binary:  # draws of 0 and 1 are known by their mean
        sample, powers = None, exact_powers(side, mean)
        information = float(bounds.binary_kl(mean, side.known_mean))
    else:
        powers = simulated_powers(side, sample, np.random.default_rng(seed))
        information = information_rate(sample, side.null_mean)
    return Plan(
        verdict=verdict,
        cost=mean if verdict is Verdict.ADVERSE else 1 - mean,
        exact=sample is None,
        caveat=CAVEAT if sample is None and not certificate.binary else None,
        standard_error=0.0 if sample is None else math.sqrt(0.25 / RUNS),
        most_trials=MOST_TRIALS if sample is None else MOST_DRAWS,
        information_limit=math.log(1 / side.sequential[1]) / information,
        powers=powers,
        smallest_shifts=[smallest_shift(side, n) for n in wanted],
        joint=side.reference is not None,
    )


def _plan_before(
    cost: float | None,
    new_cost: float | None,
    lab_trials: int | None,
    trials: int | None,
    margin: float | None,
    alpha: float | None,
    delta: float,
    costs: ArrayLike | None,
) -> TrialPlan:
    if cost is None or new_cost is None or costs is not None:
        raise InvalidSetting(
            "without a certificate give cost, expected in the lab, and new_cost, suspected at the new site"
        )
    side = check_level(delta, "delta") / 2
    level = None if alpha is None else check_level(alpha, "alpha")
    if (level or LOOK_LEVEL) + side >= 1:
        raise InvalidSetting("alpha and half of delta add up to 1 or more; choose smaller ones")
    return plan_before(
        _check_cost(cost),
        _check_cost(new_cost, "new_cost"),
        lab_trials=None if lab_trials is None else _check_size(lab_trials, "lab_trials ="),
        site_trials=None if trials is None else _check_size(trials, "trials ="),
        margin=None if margin is None else check_level(margin, "margin"),
        alpha=level,
        delta=side,
    )


def _check_cost(cost: object, name: str = "cost") -> float:
    if isinstance(cost, bool) or not isinstance(cost, numbers.Real) or not 0 <= float(cost) <= 1:
        raise InvalidSetting(f"{name} = {shown(cost)} is outside [0, 1]; give the suspected expected cost")
    return float(cost)


def _check_size(size: int, name: str) -> int:
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise InvalidSetting(f"{name} {shown(size)}; give whole numbers of trials, of at least 1")
    return int(size)
