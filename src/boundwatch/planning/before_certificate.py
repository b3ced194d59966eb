"""Planning before there is a certificate: how many trials in the lab, and how many at the new site."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from boundwatch._support.describing import one_line
from boundwatch._support.validation import check_level, check_margin
from boundwatch.bounds import rate_difference
from boundwatch.bounds.rate_difference import Alarms, typical_rank
from boundwatch.bounds.two_sample import chances
from boundwatch.detectors.verdicts import LOOK_LEVEL
from boundwatch.errors import Argument, InvalidSetting
from boundwatch.planning.power import DELTA, Array, chance_of, check_rate, check_size, fewest

POWERS = (0.8, 0.9)
# Beyond this many trials of one kind nobody books hardware; the answer is then that no number will do.
MOST_TRIALS = 200_000


@dataclass(frozen=True)
class Booking:
    """Trials in the lab and at the site, and the probability that `check` then answers the question.

    That power is `exact`, or an approximation for numbers that are too large to enumerate.
    """

    lab: int
    site: int
    power: float
    exact: bool

    def __str__(self) -> str:
        return f"{self.lab} trials in the lab and {self.site} at the site have a power of {self.power:.4g}"


@dataclass(frozen=True, kw_only=True)
class TrialPlan:
    """The answer of `boundwatch.plan_trials`; for costs of 0 and 1.

    Attributes
    ----------
    question
        ``"worse"`` (is the new rate higher?), ``"better"``, or ``"no worse"`` than by the margin.
    cost, new_cost, margin, lab_trials, site_trials
        What was asked; None if left open.
    rate, alpha
        The probability of a wrong answer, over the draw of the lab's trials and the new ones, and the part of
        it that is the test's; the rest is the certificate's delta of that side.
    bookings
        Power to the trials that reach it: the fewest at the site if the lab's number is given, else the
        fewest in total; None if no number will do.
    asked
        What the site trials asked for achieve, with the lab's asked for or recommended; else None.
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
        answers = f"check says {verdict}" + ("" if self.margin is None else f" than by {self.margin:g}")
        world = (
            f"if the failure rate is {self.cost:g} in the lab and {self.new_cost:g} at the new site, and "
            f"wrongly with a probability of at most {self.rate:g}."
        )
        asked, best, text = self.asked, self.recommended, ""
        if asked is not None:
            text = f"With {asked.lab} trials in the lab and {asked.site} at the new site, {answers} with a "
            text += f"probability of {100 * asked.power:.0f} % {world} "
        if best is None:
            few = f"{self.lab_trials} trials in the lab are too few: the power stays below 80 %."
            close = f"The rates are too close: more than {MOST_TRIALS:,} trials would be needed."
            return text + (close if self.lab_trials is None else few)
        about = "" if best.exact else "about "
        total = "" if self.lab_trials is not None else f", {best.lab + best.site:,} in all, about the fewest"
        text += f"Run {about}{best.lab:,} trials in the lab and {best.site:,} at the new site{total}: "
        if asked is not None:
            return text + f"that is a power of {100 * best.power:.0f} %."
        return text + f"{answers} with a probability of {100 * best.power:.0f} % {world}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        content = dataclasses.asdict(self)
        content["bookings"] = {str(power): found for power, found in content["bookings"].items()}
        return content | {"recommendation": self.recommendation}

    def curve(self) -> tuple[int, Array, Array]:
        """Return a number of lab trials, numbers of trials at the new site, and the power of each."""
        best = self.recommended or self.asked
        lab = self.lab_trials or (best.lab if best else 100)
        last = max(1.5 * best.site if best else 100, self.site_trials or 0, 10)
        sites = np.unique(np.linspace(1, last, 24).round().astype(int))
        levels = self.alpha, round(self.rate - self.alpha, 12)
        question = Question(self.question, self.cost, self.new_cost, self.margin or 0.0, *levels)
        return lab, sites * 1.0, np.array([question.power(lab, int(site)).power for site in sites])


@dataclass(frozen=True)
class Question:
    """What is to be shown by a test of two rates, at the levels of the test and of the certificate's side."""

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

    def power(self, lab: int, site: int) -> Booking:
        """Return what so many trials achieve: exactly, or approximately where that is slow."""
        if rate_difference.is_computable(lab, site):
            return Booking(lab, site, _exact_power(self, lab, site), True)
        close = _margin_power if self.name == "no worse" else Question.approximate_power
        return Booking(lab, site, close(self, lab, site), False)

    def approximate_power(self, lab: int, site: int) -> float:
        """Return the normal approximation of the power."""
        error = math.sqrt(_variance(self.cost, lab) / lab + _variance(self.new_cost, site) / site)
        worse = self.cost + self.margin - self.new_cost
        gap = worse if self.name == "no worse" else abs(self.new_cost - self.cost)
        return float(special.ndtr(gap / error - special.ndtri(1 - self.rate)))

    def fewest_at_site(self, lab: int, power: float) -> Booking | None:
        """Return about the fewest trials at the new site that reach a power, with so many in the lab."""
        low, found = 0, self._approximate_site(lab, power)
        if found is None:
            found = 4 * lab if rate_difference.is_computable(lab, 4 * lab) else MOST_TRIALS
        while (answer := self.power(lab, found)).power < power:
            low, found = found, max(found + 1, int(found * 1.3))
            if found > MOST_TRIALS:
                return None
        step = max(1, found // 8)
        # Powers go up and down by a little, as failures are whole: fewer may do, and a few more may not.
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
        tried = {
            factor: self.fewest_at_site(max(2, round(best[highest] * factor)), highest)
            for factor in (0.85, 1.0, 1.2)
        }
        reached = [(found.lab + found.site, factor) for factor, found in tried.items() if found is not None]
        if not reached:
            return dict.fromkeys(POWERS)
        _, ratio = min(reached)
        others = {p: self.fewest_at_site(max(2, round(best[p] * ratio)), p) for p in POWERS[:-1]}
        return {**others, highest: tried[ratio]}

    def _approximate_site(self, lab: int, power: float) -> int | None:
        if self.approximate_power(lab, MOST_TRIALS) < power:
            return None
        return fewest(lambda site: self.approximate_power(lab, site) >= power, 0, MOST_TRIALS)


@lru_cache(maxsize=4096)
def _exact_power(question: Question, lab: int, site: int) -> float:
    """Enumerate the unconditional test of two rates, which `HypothesisTest` uses."""
    (n0, p0), (n1, p1) = (lab, question.cost), (site, question.new_cost)
    if question.name != "worse":  # the lab's rate exceeds the new one by more than minus the margin
        (n0, p0), (n1, p1) = (n1, p1), (n0, p0)
    needed = rate_difference.rate_difference_region(n0, n1, question.rate, -question.margin)
    return min(float(chances(n0, np.array(p0)) @ chance_of(needed, n1, p1)), 1.0)


@lru_cache(maxsize=4096)
def _margin_power(question: Question, lab: int, site: int) -> float:
    """Return the power if all outcomes had to reach the rank that the expected one must reach."""
    margin, seen, score = -question.margin, round(site * question.new_cost), special.ndtri(question.rate)
    for _ in range(3):  # until the test's level is met; 1.03 for its intervals
        alarms = Alarms.ranked(site, seen, lab, margin, typical_rank(float(special.ndtr(score))))
        level = special.ndtri(min(1.03 * alarms.upper(margin, at_some=True), 0.99))
        score += special.ndtri(question.rate) - level
    alarms = Alarms.ranked(site, seen, lab, margin, typical_rank(float(special.ndtr(score))))
    return float(alarms.chances(np.array([question.new_cost]), np.array([question.cost]))[0])


def plan_trials(
    *,
    cost: float,
    new_cost: float,
    lab_trials: int | None = None,
    trials: int | None = None,
    margin: float | None = None,
    alpha: float | None = None,
    delta: float = DELTA,
) -> TrialPlan:
    """Compute how many trials to run in the lab and at the new site, before there is a certificate.

    Parameters
    ----------
    cost, new_cost
        The failure rates that you expect in the lab and suspect at the new site.
    lab_trials, trials
        The trials that you can run in the lab and at the new site; left out, the answer is the split that
        needs the fewest in total.
    margin
        Plan for showing that the new site is at most this much worse.
    alpha
        The level of the test, delta not included. Left out: 0.05.
    delta
        The delta that the certificate will have.

    Examples
    --------
    >>> import boundwatch as bw
    >>> booked = bw.plan_trials(cost=0.1, new_cost=0.5, lab_trials=30).recommended
    >>> booked.site, round(booked.power, 2)
    (16, 0.92)
    """
    question = _ask(check_rate(cost, "cost"), check_rate(new_cost, "new_cost"), margin, alpha, delta)
    lab = None if lab_trials is None else check_size(lab_trials, "lab_trials =")
    site = None if trials is None else check_size(trials, "trials =")
    if lab is None:
        bookings = question.fewest_in_total()
    else:
        bookings = {power: question.fewest_at_site(lab, power) for power in POWERS}
    best = bookings[0.9] or bookings[0.8]
    lab_run = lab or (None if best is None else best.lab)
    return TrialPlan(
        question=question.name,
        cost=question.cost,
        new_cost=question.new_cost,
        margin=None if margin is None else question.margin,
        rate=question.rate,
        alpha=question.alpha,
        lab_trials=lab,
        site_trials=site,
        bookings=bookings,
        asked=None if lab_run is None or site is None else question.power(lab_run, site),
    )


def _ask(cost: float, new_cost: float, margin: float | None, alpha: float | None, delta: float) -> Question:
    level = LOOK_LEVEL if alpha is None else check_level(alpha, "alpha")
    side = check_level(delta, "delta") / 2
    if level + side >= 1:
        raise InvalidSetting("alpha and half of delta add up to 1 or more; choose smaller ones")
    if margin is None:
        if cost == new_cost:
            worse = Argument("margin"), " to plan for showing that the new site is no worse"
            problem, remedy = "is the cost, so there is no shift to notice", ("give another, or ", *worse)
            raise InvalidSetting(problem, name="new_cost", value=new_cost, remedy=remedy)
        return Question("worse" if new_cost > cost else "better", cost, new_cost, 0.0, level, side)
    allowed = check_margin(margin)
    if not new_cost < cost + allowed:
        problem = f"is not below cost + margin = {cost + allowed:g}, so it cannot be shown to be no worse"
        larger = "give a larger margin or a smaller new cost"
        raise InvalidSetting(problem, name="new_cost", value=new_cost, remedy=larger)
    return Question("no worse", cost, new_cost, allowed, level, side)


def _variance(rate: float, n: float) -> float:
    """Return the variance of a trial, with two trials added: it must not vanish at rates of 0 and 1."""
    smoothed = (rate * n + 1) / (n + 2)
    return smoothed * (1 - smoothed)
