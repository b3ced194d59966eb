"""Planning before there is a certificate: how many trials in the lab, and how many at the new site."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from boundwatch._support.describing import one_line
from boundwatch.bounds import rate_difference
from boundwatch.bounds.joint_region import MOST_REFERENCE_TRIALS, SMALLEST_TOTAL, joint_region
from boundwatch.detectors.base import ANYTIME_LEVEL, LOOK_LEVEL
from boundwatch.detectors.mixture import alarm_distribution
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]

POWERS = (0.8, 0.9)
# Beyond this many trials of one kind nobody books hardware; the answer is then that no number will do.
MOST_TRIALS = 200_000
_WATCHED = 1000


@dataclass(frozen=True)
class Booking:
    """Numbers of trials and what they achieve.

    Attributes
    ----------
    lab, site
        Trials before and after.
    power
        The probability that `check` then answers the question, if the costs are as suspected.
    exact
        Whether it was enumerated; else it is the normal approximation, for numbers too large for that.
    """

    lab: int
    site: int
    power: float
    exact: bool

    def __str__(self) -> str:
        return f"{self.lab} trials in the lab and {self.site} at the site have a power of {self.power:.4g}"


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """The answer of `boundwatch.plan` without a certificate; for costs of 0 and 1.

    Attributes
    ----------
    question
        ``"worse"`` (is the new rate higher?), ``"better"``, or ``"no worse"`` than by the margin.
    cost, new_cost, margin
        The failure rates expected in the lab and suspected at the new site, and the margin if there is one.
    rate
        The probability of a wrong answer, over the draw of the lab's trials and the new ones.
    alpha
        The part of it that is the test's; the rest is the certificate's delta of that side.
    lab_trials, site_trials
        What was asked for; None if left open.
    bookings
        Power to the trials that reach it: the fewest at the site if the lab's number is given, else the
        fewest in total; None if no number will do.
    asked
        What the site trials asked for achieve, with the lab's asked for or recommended; else None.
    watch_mean, watch_power
        With `watch`, looking after every trial: trials to the alarm on average (not beyond 1,000), and the
        probability of an alarm within the site trials. Only for "worse"; None elsewhere.
    """

    question: str
    cost: float
    new_cost: float
    margin: float | None
    rate: float
    alpha: float
    lab_trials: int | None
    site_trials: int | None
    bookings: dict[float, Booking | None]
    asked: Booking | None
    watch_mean: float | None
    watch_power: float | None

    def __repr__(self) -> str:
        names = ("question", "cost", "new_cost", "margin", "rate", "lab_trials", "site_trials", "recommended")
        return one_line(self, {name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        return self.recommendation

    @property
    def recommended(self) -> Booking | None:
        """The booking for a power of 90 %, or of 80 % if there is no other."""
        return self.bookings[0.9] or self.bookings[0.8]

    @property
    def recommendation(self) -> str:
        """The answer in words."""
        verdict = {"worse": "ADVERSE", "better": "BENIGN"}.get(self.question, "NO WORSE")
        limit = "" if self.margin is None else f" than by {self.margin:g}"
        world = f"the failure rate is {self.cost:g} in the lab and {self.new_cost:g} at the new site"
        answers = f"check says {verdict}{limit}"
        rate = f"and wrongly with a probability of at most {self.rate:g}"
        asked, best = self.asked, self.recommended
        text = ""
        if asked is not None:
            text = (
                f"With {asked.lab} trials in the lab and {asked.site} at the new site, {answers} with a "
                f"probability of {100 * asked.power:.0f} % if {world}, {rate}. "
            )
        if best is None and self.lab_trials is not None:
            return text + (
                f"{self.lab_trials} trials in the lab are too few: however many follow at the new site, the "
                "power stays below 80 %. Run more in the lab."
            )
        if best is None:
            return text + f"The rates are too close: more than {MOST_TRIALS:,} trials would be needed."
        about = "" if best.exact else "about "
        total = "" if self.lab_trials is not None else f", {best.lab + best.site:,} in all, about the fewest"
        text += f"Run {about}{best.lab:,} trials in the lab and {best.site:,} at the new site{total}: "
        if asked is not None:
            return text + f"that is a power of {100 * best.power:.0f} %."
        return text + f"{answers} with a probability of {100 * best.power:.0f} % if {world}, {rate}."

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = dataclasses.asdict(self)
        content["bookings"] = {str(power): found for power, found in content["bookings"].items()}
        return content | {"recommendation": self.recommendation}

    def curve(self) -> tuple[int, Array, Array]:
        """Return a number of lab trials, numbers of trials at the new site, and the power of each."""
        best = self.recommended or self.asked
        lab = self.lab_trials or (best.lab if best is not None else 100)
        last = max(1.5 * best.site if best is not None else 100, self.site_trials or 0, 10)
        sites = np.unique(np.linspace(1, last, 24).round().astype(int))
        levels = self.alpha, round(self.rate - self.alpha, 12)
        question = Question(self.question, self.cost, self.new_cost, self.margin or 0.0, *levels)
        return lab, sites * 1.0, np.array([question.power(lab, int(site)).power for site in sites])


@dataclass(frozen=True)
class Question:
    """What is to be shown, turned into a test of two rates at fixed numbers of trials.

    `alpha` and `delta` are the levels of the test and of the certificate's limit on that side, which `check`
    spends together.
    """

    name: str
    cost: float
    new_cost: float
    margin: float
    alpha: float
    delta: float

    @property
    def rate(self) -> float:
        """The probability of a wrong answer."""
        return round(self.alpha + self.delta, 12)  # 0.05 + 0.005 prints as it is meant

    @property
    def gap(self) -> float:
        """How far the suspected rates are from what must be refuted."""
        if self.name == "no worse":
            return self.cost + self.margin - self.new_cost
        return abs(self.new_cost - self.cost)

    def power(self, lab: int, site: int) -> Booking:
        """Return what so many trials achieve: exactly, or by the normal approximation where that is slow."""
        if rate_difference.is_computable(lab, site):
            return Booking(lab, site, _exact_power(self, lab, site), True)
        return Booking(lab, site, self.approximate_power(lab, site), False)

    def approximate_power(self, lab: int, site: int) -> float:
        """Return the normal approximation of the power."""
        before = math.sqrt(_variance(self.cost, lab) / lab)
        after = math.sqrt(_variance(self.new_cost, site) / site)
        error = math.hypot(before, after)
        needed = special.ndtri(1 - self.rate) * error
        if self.name == "no worse" and not rate_difference.is_computable(lab, site):
            share = rate_difference.share_of_second(lab, site)  # each rate then has a limit of its own
            needed = special.ndtri(1 - (1 - share) * self.rate) * before
            needed += special.ndtri(1 - share * self.rate) * after
        return float(special.ndtr((self.gap - needed) / error))

    def fewest_at_site(self, lab: int, power: float) -> Booking | None:
        """Return the fewest trials at the new site that reach a power, with so many in the lab."""
        low, found = 0, self._approximate_site(lab, power)
        if found is None:
            found = 4 * lab if rate_difference.is_computable(lab, 4 * lab) else MOST_TRIALS
        while (answer := self.power(lab, found)).power < power:
            low, found = found, max(found + 1, int(found * 1.3))
            if found > MOST_TRIALS:
                return None
        step = max(1, found // 8)
        # Powers go up and down by a little, as failures are whole: this finds where they first stay above.
        while found - low > 1:
            middle = max(found - step, (low + found) // 2)
            if (tried := self.power(lab, middle)).power >= power:
                found, answer = middle, tried
            else:
                low = middle
        return answer

    def fewest_in_total(self) -> dict[float, Booking | None]:
        """Return the splits with the fewest trials: approximately first, then exactly around that."""
        labs = np.unique(np.geomspace(2, MOST_TRIALS, 120).astype(int)).tolist()
        best: dict[float, int] = {}
        for power in POWERS:
            totals = [(self._approximate_site(lab, power) or math.inf) + lab for lab in labs]
            if math.isinf(min(totals)):
                return dict.fromkeys(POWERS)
            best[power] = labs[int(np.argmin(totals))]
        highest = max(POWERS)
        tried = [(factor, self.fewest_at_site(max(2, round(best[highest] * factor)), highest))
                 for factor in (0.85, 1.0, 1.2)]  # fmt: skip
        reached = [(found.lab + found.site, factor, found) for factor, found in tried if found is not None]
        if not reached:
            return dict.fromkeys(POWERS)
        _, ratio, answer = min(reached, key=lambda item: item[0])
        others = {
            power: self.fewest_at_site(max(2, round(best[power] * ratio)), power) for power in POWERS[:-1]
        }
        return {**others, highest: answer}

    def _approximate_site(self, lab: int, power: float) -> int | None:
        low, high = 0, MOST_TRIALS
        if self.approximate_power(lab, high) < power:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            reached = self.approximate_power(lab, middle) >= power
            low, high = (low, middle) if reached else (middle, high)
        return high


@lru_cache(maxsize=4096)
def _exact_power(question: Question, lab: int, site: int) -> float:
    """Enumerate the unconditional test of two rates, which `HypothesisTest` uses."""
    if question.name == "worse":
        first, second = (lab, question.cost), (site, question.new_cost)
    else:  # the lab's rate exceeds the new one by more than minus the margin
        first, second = (site, question.new_cost), (lab, question.cost)
    (n0, p0), (n1, p1) = first, second
    needed = rate_difference.rate_difference_region(n0, n1, question.rate, -question.margin)
    reached = np.where(needed > n1, 0.0, special.bdtrc(needed - 1.0, n1, p1))
    reached = np.where(needed <= 0, 1.0, reached)
    k0 = np.arange(n0 + 1)
    logs = special.gammaln(n0 + 1) - special.gammaln(k0 + 1) - special.gammaln(n0 - k0 + 1)
    chances = np.exp(logs + special.xlogy(k0, p0) + special.xlog1py(n0 - k0, -p0))
    return float(min(chances @ reached, 1.0))


def watched(cost: float, new_cost: float, lab: int, rate: float) -> Array:
    """Return the probability that `watch` alarms within 0, 1, …, 1,000 trials, over the lab's draw, too."""
    region = joint_region(lab, rate)
    failures = np.arange(lab + 1)
    logs = special.gammaln(lab + 1) - special.gammaln(failures + 1) - special.gammaln(lab - failures + 1)
    chances = np.exp(logs + special.xlogy(failures, cost) + special.xlog1py(lab - failures, -cost))
    reached = np.zeros(_WATCHED + 1)
    for k in np.flatnonzero(chances > 1e-6).tolist():
        alarms, _, _ = alarm_distribution(region.line(k).needed(_WATCHED)[: _WATCHED + 1], new_cost)
        reached += chances[k] * np.cumsum(alarms)
    return reached


def plan_before(
    cost: float,
    new_cost: float,
    *,
    lab_trials: int | None,
    site_trials: int | None,
    margin: float | None,
    alpha: float | None,
    delta: float,
) -> TrialPlan:
    """Answer `boundwatch.plan` without a certificate; see there."""
    if margin is None and cost == new_cost:
        raise InvalidSetting(
            f"cost = new_cost = {cost:g}: there is no shift to notice; give another new_cost, or a margin, "
            "to plan for showing that the new site is no worse"
        )
    if margin is not None and not new_cost < cost + margin:
        raise InvalidSetting(
            f"new_cost = {new_cost:g} is not below cost + margin = {cost + margin:g}, so it cannot be shown "
            "to be no worse; give a larger margin or a smaller new_cost"
        )
    name = "no worse" if margin is not None else "worse" if new_cost > cost else "better"
    question = Question(name, cost, new_cost, margin or 0.0, alpha or LOOK_LEVEL, delta)
    bookings = (
        question.fewest_in_total()
        if lab_trials is None
        else {power: question.fewest_at_site(lab_trials, power) for power in POWERS}
    )
    best = bookings[0.9] or bookings[0.8]
    lab = lab_trials or (best.lab if best is not None else None)
    asked = question.power(lab, site_trials) if lab is not None and site_trials is not None else None
    watch_mean = watch_power = None
    total = (alpha or ANYTIME_LEVEL) + delta
    if name == "worse" and lab is not None and lab <= MOST_REFERENCE_TRIALS and total >= SMALLEST_TOTAL:
        reached = watched(cost, new_cost, lab, total)
        watch_mean = float((1 - reached[:-1]).sum())
        site = site_trials or (best.site if best is not None else None)
        watch_power = float(reached[site]) if site is not None and site <= _WATCHED else None
    return TrialPlan(
        question=name,
        cost=cost,
        new_cost=new_cost,
        margin=margin,
        rate=question.rate,
        alpha=question.alpha,
        lab_trials=lab_trials,
        site_trials=site_trials,
        bookings=bookings,
        asked=asked,
        watch_mean=watch_mean,
        watch_power=watch_power,
    )


def _variance(rate: float, n: float) -> float:
    """Return the variance of a trial, with two trials added: it must not vanish at rates of 0 and 1."""
    smoothed = (rate * n + 1) / (n + 2)
    return smoothed * (1 - smoothed)
