"""How many trials until a suspected shift is noticed: the question to ask before the hardware is booked."""

from __future__ import annotations

import dataclasses
import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from scipy.special import betaincinv

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_level
from boundwatch.bounds.bets import SMALLEST_BOUND, Bets, bet_bounds
from boundwatch.bounds.joint_region import alarm_line
from boundwatch.certificates.certificate import Certificate, require_certificate
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.joint import counts_of, is_joint, reference_of
from boundwatch.detectors.mixture import Mark, alarm_counts, alarm_distribution
from boundwatch.detectors.verdicts import ANYTIME_LEVEL, LOOK_LEVEL, EvidenceName, TailName, Verdict
from boundwatch.errors import InvalidSetting
from boundwatch.planning.power import (
    MOST_TRIALS,
    POWERS,
    Array,
    Counts,
    Power,
    chance_of,
    check_rate,
    check_size,
    fewest,
    first_reaching,
)

SIZES = (10, 25, 50, 100, 250)
_TOOTH = 10
CAVEAT = "for costs of 0 and 1; others of this mean usually need fewer trials, but may need more"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The answer of `plan`.

    Attributes
    ----------
    verdict, cost
        Which shift it is, ADVERSE or BENIGN, and the suspected expected cost.
    caveat
        What powers do not say about other costs than 0 and 1; None if the certificate is of such costs.
    powers
        Of one look (`check`) and of looking after every trial (`watch`), with the evidence that these take.
    smallest_shifts
        For each number of trials, the smallest shift that is noticed with 90 % power, for costs of 0 and 1;
        None if there is none. It is beyond the certified limit or, if costs are judged jointly, beyond the
        mean of the certificate's costs.
    joint
        Whether new costs are judged jointly with those of the certificate: of costs of 0 and 1 alone.
    """

    verdict: Verdict
    cost: float
    caveat: str | None
    powers: list[Power]
    smallest_shifts: list[dict[str, Any]]
    joint: bool

    def __repr__(self) -> str:
        names = ("verdict", "cost", "joint")
        trials = [power.trials[0.9] for power in self.powers]
        return one_line(self, {name: getattr(self, name) for name in names} | {"trials": trials})

    def __str__(self) -> str:
        once = self.powers[0].trials[0.9]
        found = "no number of trials that was computed suffices"
        if once is not None:
            found = f"one look has a power of 90 % after {once} trials (a few more may have slightly less)"
        how = "judged jointly with the certificate's" if self.joint else "against the certified limit"
        what = "a failure rate" if self.caveat is None else "an expected cost"
        return f"{self.verdict.name} at {what} of {self.cost:.4g}: {found}, {how}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return content | {"verdict": self.verdict.value, "powers": [power.to_dict() for power in self.powers]}


def plan(
    certificate: Certificate,
    *,
    cost: float,
    alpha: float | None = None,
    tail: TailName | None = None,
    sizes: Sequence[int] = SIZES,
) -> Plan:
    """Compute how many trials `check` and `watch` need to notice a suspected shift from a certificate.

    Before there is a certificate, `plan_trials` says how many trials to run in both places.

    Parameters
    ----------
    certificate
        The promise to compare with. One of other costs than 0 and 1 is compared by its limits; judged jointly
        with its own, as `check` and `watch` do, costs usually need fewer trials.
    cost
        The suspected expected cost, of costs of 0 and 1, for which every power is exact. Others of this mean
        usually need fewer trials, but may need more.
    alpha
        The level of both detectors, delta not included. Left out: what each takes by default (0.05 for one
        look, 0.04 after every trial).
    tail
        Of the look, as in `HypothesisTest`.
    sizes
        Numbers of trials, up to 5,000, for which to find the smallest shift that would be noticed.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> answer = bw.plan(certificate, cost=0.5)
    >>> {power.detector: power.trials[0.9] for power in answer.powers}
    {'hypothesis-test': 21, 'sequential-test': 35}
    >>> round(answer.powers[-1].mean_trials, 1)
    16.5
    """
    require_certificate(certificate)
    if certificate.strata:
        problem = "certificate is of the mean over tasks, each of which has its own rate"
        raise InvalidSetting(problem, remedy="use boundwatch.planning.plan_tasks")
    wanted = [check_size(size, "sizes has") for size in sizes]
    if max(wanted, default=0) > MOST_TRIALS:
        problem = f"is more than the {MOST_TRIALS:,} trials that are computed"
        raise InvalidSetting(problem, name="sizes", value=max(wanted), remedy="give fewer")
    mean = check_rate(cost, "cost")
    side = _Side.of(certificate, mean, None if alpha is None else check_level(alpha, "alpha"), tail)
    return Plan(
        verdict=side.verdict,
        cost=mean,
        caveat=None if certificate.binary else CAVEAT,
        powers=[_exact_look(side, mean), _exact_watch(side, mean)],
        smallest_shifts=[{"n": n, "shift": _smallest_shift(side, n)} for n in wanted],
        joint=side.look.tail_name == "joint",
    )


def time_to_alarm(certificate: Certificate, *, cost: float, alpha: float | None = None) -> Power:
    """Return how long the sequential test takes to notice a suspected failure rate.

    Costs of another certificate than a binary one are compared with its limits, which may take longer.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    >>> time_to_alarm(certificate, cost=0.5).median_trials
    13
    """
    return _exact_watch(_Side.of(certificate, cost, alpha), cost)


@dataclass(frozen=True)
class _Side:
    """The side of a certificate that a suspected mean leaves, and what watches it."""

    certificate: Certificate
    verdict: Verdict
    look: HypothesisTest
    alpha: float
    """The level of the sequential test, delta not included."""

    @classmethod
    def of(
        cls, certificate: Certificate, mean: float, alpha: float | None, tail: TailName | None = None
    ) -> _Side:
        if not certificate.binary:  # by the limits, which hold for costs of any kind
            names = ("lower", "upper", "delta", "delta_upper", "delta_lower")
            certificate = Certificate.from_bounds(**{name: getattr(certificate, name) for name in names})
        record = reference_of(certificate)
        if record is not None and mean == record.mean:
            problem = f"cost = {mean:g} is what was certified, so there is no shift"
            raise InvalidSetting(problem, remedy="choose another")
        if record is None and certificate.lower <= mean <= certificate.upper:
            within = f"[{certificate.lower:g}, {certificate.upper:g}]"
            problem = f"cost = {mean:g} is inside the certified {within}, so no detector should notice it"
            raise InvalidSetting(problem, remedy="choose one above or below")
        adverse = mean > (certificate.upper if record is None else record.mean)
        level = alpha or LOOK_LEVEL
        look = HypothesisTest(certificate, alpha_adverse=level, alpha_benign=level, tail=tail)
        verdict = Verdict.ADVERSE if adverse else Verdict.BENIGN
        return cls(certificate, verdict, look, alpha or ANYTIME_LEVEL)

    @property
    def delta(self) -> float:
        """What is spent together with the level where costs are judged jointly."""
        deltas = self.certificate.delta_upper, self.certificate.delta_lower
        return deltas[self.verdict is Verdict.BENIGN]

    @property
    def watched(self) -> tuple[EvidenceName, float]:
        """The evidence of the sequential test, and its level."""
        if is_joint(self.certificate, (self.alpha, self.alpha)):
            return "joint", round(self.alpha + self.delta, 12)
        return "mixture", self.alpha

    @cached_property
    def bound(self) -> float:
        """The certified limit, turned such that costs rise beyond it."""
        benign = self.verdict is Verdict.BENIGN
        return bet_bounds(self.certificate.lower, self.certificate.upper)[benign]

    @property
    def known(self) -> float:
        """Where shifts begin, turned likewise: the mean of the certificate's costs, or its limit."""
        record = reference_of(self.certificate)
        return self.bound if record is None else max(self.turned(record.mean), SMALLEST_BOUND)

    def turned(self, rate: float) -> float:
        """Return a mean such that more is further beyond this side."""
        return rate if self.verdict is Verdict.ADVERSE else 1 - rate

    def fewest(self, n: int) -> int:
        """Return how many of n costs, 0 or 1, must be beyond for the verdict of a look; n + 1 if none do."""
        if self.verdict is Verdict.ADVERSE:
            found = self.look.fewest_adverse(n)
            return n + 1 if found is None else found

        def called(good: int) -> bool:
            costs = np.where(np.arange(n) < good, 0.0, 1.0)
            return bool(self.look.decide_many(costs[None]).verdict[0] == self.verdict)

        return bisect_left(range(n + 1), True, key=called)

    def line(self, trials: int) -> Counts:
        """Return how many such costs alarm the sequential test after 0, 1, … trials."""
        tail, level = self.watched
        if tail == "joint":
            counts = counts_of(self.certificate, self.verdict is Verdict.BENIGN)
            return alarm_line(*counts, level).needed(trials)[: trials + 1]
        binary = self.certificate.binary
        threshold = Mark(self.bound, self.alpha, binary).threshold
        return alarm_counts(Bets.for_costs(binary=binary), self.bound, math.log(threshold), trials)

    def look_power(self, n: Array, power: Array, trials: dict[float, int | None]) -> Power:
        """Describe one look by its powers at some numbers of trials."""
        tail = self.look.tail_name
        level = round(self.look.alpha_adverse + self.delta * (tail == "joint"), 12)
        return Power(detector=self.look.name, tail=tail, level=level, trials=trials, n=n, power=power)

    def watch_power(self, reached: Array, mean: float | None) -> Power:
        """Describe the sequential test by the probabilities of an alarm within 0, 1, 2, … trials."""
        trials = {power: first_reaching(reached, power) for power in POWERS}
        last = first_reaching(reached, 0.99) or reached.size - 1
        tail, level = self.watched
        return Power(
            detector="sequential-test",
            tail=tail,
            level=level,
            trials=trials,
            mean_trials=mean,
            median_trials=trials[0.5],
            n=np.arange(1.0, last + 1),
            power=reached[1 : last + 1],
        )


def _exact_look(side: _Side, mean: float) -> Power:
    """Return the power of one look, at as few numbers of trials as can be told from."""

    @lru_cache
    def power(n: int) -> float:
        return float(chance_of(side.fewest(n), n, side.turned(mean)))

    def reaches(target: float, n: int) -> bool:
        return power(n) >= target

    sizes, reached = [*(2**k for k in range(13)), MOST_TRIALS], list[float]()
    while not reached or (reached[-1] < POWERS[-1] and len(reached) < len(sizes)):
        reached.append(power(sizes[len(reached)]))
    trials = dict[float, int | None](dict.fromkeys(POWERS))
    for target in POWERS:
        if (first := first_reaching(np.array(reached), target)) is not None:
            before = sizes[first - 1] if first else 0
            found = fewest(partial(reaches, target), before, sizes[first])
            near = range(max(before, found - _TOOTH) + 1, found + 1)  # powers go up and down by a little
            trials[target] = next(n for n in near if power(n) >= target)
    most = trials[POWERS[-1]]
    end = sizes[len(reached) - 1] if most is None else int(1.25 * most) + 1
    drawn = np.unique(np.linspace(1, end, 40).round().astype(int))
    return side.look_power(drawn * 1.0, np.array([power(int(n)) for n in drawn]), trials)


def _exact_watch(side: _Side, mean: float) -> Power:
    """Return the power of the sequential test on costs of 0 and 1."""
    horizon = 250
    while True:
        alarms, _, _ = alarm_distribution(side.line(horizon), side.turned(mean))
        missing = 1 - alarms.sum()
        if missing < 1e-9 or horizon >= 4 * MOST_TRIALS:
            break
        horizon *= 2
    wait = float(alarms @ np.arange(alarms.size)) if missing < 1e-6 else None
    return side.watch_power(np.cumsum(alarms), wait)


def _smallest_shift(side: _Side, n: int) -> dict[str, float | None]:
    """Return the smallest shift that n trials notice with 90 % power, by a look and by watching."""
    needed = side.fewest(n)
    # P[at least k of n] = 0.9 is an incomplete beta function of the rate.
    rate = float(betaincinv(needed, n - needed + 1, 0.9)) if 0 < needed <= n else None
    check = None if rate is None else max(rate - side.known, 0.0)
    return {"check": check, "watch": _smallest_alarmed(side, n)}


def _smallest_alarmed(side: _Side, n: int) -> float | None:
    """Return the smallest shift for which the sequential test alarms within n trials, with 90 % power."""
    line = side.line(n)

    def is_noticed(rate: float) -> bool:
        return bool(alarm_distribution(line, rate)[0].sum() >= 0.9)

    low, high = side.known, 1.0
    if not is_noticed(high):
        return None
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if is_noticed(middle) else (middle, high)
    return high - side.known
