"""What one detector achieves, the certified side that it watches, and the searches that every plan shares."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc

from boundwatch._support.validation import check_number
from boundwatch.bounds.bets import SMALLEST_BOUND, Bets, bet_bounds
from boundwatch.bounds.joint_region import SMALLEST_TOTAL, alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import ANYTIME_LEVEL, LOOK_LEVEL, EvidenceName, TailName, Verdict
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.joint import reference_of
from boundwatch.detectors.mixture import Mark, alarm_counts
from boundwatch.errors import InvalidSetting, shown

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
_Costs = TypeVar("_Costs", float, Array)

DELTA = 0.01
POWERS = (0.5, 0.8, 0.9, 0.95)
# Beyond this many trials the answer is "more than", not a number.
MOST_TRIALS = 5000


@dataclass(frozen=True, kw_only=True)
class Power:
    """What one detector achieves.

    Attributes
    ----------
    detector, tail
        Which one. ``sequential-test`` may be read after every trial, the others once.
    level
        What it may spend on a false alarm: in all if the tail is ``joint``, else without the certificate's
        delta.
    trials
        Power to the fewest trials that reach it, None if the plan's `most_trials` do not suffice. For the
        sequential test: the number within which the alarm comes with this probability.
    mean_trials, median_trials
        Trials to the alarm; of the sequential test only. None if too many streams outlast the computation.
    mean_trials_at_least
        What is then sure of the mean: streams that have not alarmed count as if they did at the end.
    n, power
        The curve: numbers of trials, and the power at each.
    """

    detector: str
    tail: EvidenceName
    level: float
    trials: dict[float, int | None]
    mean_trials: float | None = None
    median_trials: int | None = None
    mean_trials_at_least: float | None = None
    n: Array = dataclasses.field(repr=False)
    power: Array = dataclasses.field(repr=False)

    def __str__(self) -> str:
        needed = ", ".join(
            f"{'more than were computed' if trials is None else trials} for a power of {100 * power:g} %"
            for power, trials in self.trials.items()
        )
        return f"{self.detector} with {self.tail} evidence at level {self.level:g} needs trials: {needed}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the curve is left out."""
        content = dataclasses.asdict(self) | {"trials": {str(k): v for k, v in self.trials.items()}}
        return {name: value for name, value in content.items() if name not in ("n", "power")}


def chance_of(needed: ArrayLike, n: ArrayLike, rate: float) -> Array:
    """Return P[at least so many failures among n]."""
    least, trials = np.asarray(needed), np.asarray(n)
    chances = np.where(least <= 0, 1.0, bdtrc(np.maximum(least - 1, 0), trials, rate))
    return np.where(least > trials, 0.0, chances)


def first_reaching(curve: Array, power: float) -> int | None:
    """Return the first place of a curve with at least this power."""
    return int(np.argmax(curve >= power)) if curve.max() >= power else None


def fewest(suffices: Callable[[int], bool], low: int, high: int) -> int:
    """Halve the range between a number that does not suffice and one that does.

    Powers go up and down by a little, as failures are whole: this is one after which they stay above.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if suffices(middle) else (middle, high)
    return high


def refined(target: float, curve: Array, sizes: list[int], power: Callable[[int], float]) -> int | None:
    """Return the fewest trials that reach a power, from the powers of a grid of sizes; None if none does."""
    first = first_reaching(curve, target)
    if first is None:
        return None
    return fewest(lambda n: power(n) >= target, sizes[first - 1] if first else 0, sizes[first])


def mean_wait(reached: Array) -> float:
    """Return the mean number of trials, from P[done within 0, 1, …]; who is not done counts as at the end."""
    return float((1 - reached[:-1]).sum())


def check_rate(value: object, name: str, *, inside: bool = False) -> float:
    """Return an expected cost in [0, 1], or in (0, 1) if neither end has a plan, or raise an error."""
    what = f"an expected cost in {'(0, 1)' if inside else '[0, 1]'}"
    least, most = (math.nextafter(0, 1), math.nextafter(1, 0)) if inside else (0, 1)
    return check_number(value, name, what, least, most, remedy="give one such as 0.1")


def check_size(size: object, name: str) -> int:
    """Return a number of trials, or raise an error."""
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
        raise InvalidSetting(f"{name} {shown(size)}; give whole numbers of trials, of at least 1")
    return int(size)


@dataclass(frozen=True)
class CertifiedSide:
    """One side of a certificate, turned such that the shift is upward from `null_mean`."""

    verdict: Verdict
    binary: bool
    null_mean: float
    levels: dict[str, float]
    reference: tuple[int, int] | None
    """Trials and failures of the certificate, if new costs of 0 and 1 are judged jointly with them."""
    delta: float
    """The certificate's, of this side; what is judged jointly spends it together with the level."""

    def turned(self, costs: _Costs) -> _Costs:
        """Return costs, or a mean of them, such that more is further beyond this side; and back."""
        return costs if self.verdict is Verdict.ADVERSE else 1 - costs

    @cached_property
    def bets(self) -> Bets:
        """The bets of the sequential test."""
        return Bets.for_costs(binary=self.binary)

    @cached_property  # takes half a second, and what is judged jointly needs none
    def threshold(self) -> float:
        """The wealth at which the sequential test alarms against the certified limit."""
        return Mark(self.null_mean, self.levels["sequential-test"], self.binary).threshold

    @property
    def known_mean(self) -> float:
        """The mean that one who knew the certified one would test against."""
        if self.reference is None:
            return self.null_mean
        n, failures = self.reference
        return max(failures / n, SMALLEST_BOUND)

    @property
    def sequential(self) -> tuple[EvidenceName, float]:
        """The evidence of the sequential test and its level, with delta where that is spent together."""
        level = self.levels["sequential-test"]
        return ("mixture", level) if self.reference is None else ("joint", level + self.delta)

    @property
    def one_look(self) -> list[tuple[str, TailName, float]]:
        """The detectors that look once: name, tail, level."""
        rows: list[tuple[str, TailName, float]] = []
        if self.reference is not None:
            rows.append(("hypothesis-test", "joint", round(self.levels["hypothesis-test"] + self.delta, 12)))
        tails = [tail for tail in TAILS if tail != "exact" or self.binary]
        for name in ("hypothesis-test", "confidence-interval"):
            rows += [(name, tail, self.levels[name]) for tail in tails]
        return rows

    def alarm_line(self, trials: int) -> Counts:
        """Return how many failures alarm the sequential test after 0, 1, … trials."""
        if self.reference is None:
            return alarm_counts(self.bets, self.null_mean, math.log(self.threshold), trials)
        return alarm_line(*self.reference, self.sequential[1]).needed(trials)[: trials + 1]

    def sequential_power(self, reached: Array, mean: float | None) -> Power:
        """Describe the sequential test by the probabilities of an alarm within 0, 1, 2, … trials."""
        trials = {power: first_reaching(reached, power) for power in POWERS}
        end = first_reaching(reached, 0.99)
        last = reached.size - 1 if end is None else end
        tail, level = self.sequential
        return Power(
            detector="sequential-test",
            tail=tail,
            level=round(level, 12),
            trials=trials,
            mean_trials=mean,
            median_trials=trials[0.5],
            mean_trials_at_least=mean_wait(reached),
            n=np.arange(1.0, last + 1),
            power=reached[1 : last + 1],
        )


def choose_side(certificate: Certificate, mean: float, alpha: float | None) -> CertifiedSide:
    """Return the side of the certificate that a suspected mean leaves."""
    record = reference_of(certificate) if certificate.binary else None
    adverse = mean > (certificate.upper if record is None else record.mean)
    if record is None and not adverse and mean >= certificate.lower:
        raise InvalidSetting(
            f"cost = {mean:g} is inside the certified [{certificate.lower:g}, {certificate.upper:g}], so no "
            "detector should notice it; choose one above or below"
        )
    if record is not None and mean == record.mean:
        raise InvalidSetting(f"cost = {mean:g} is what was certified, so there is no shift; choose another")
    delta = certificate.delta_upper if adverse else certificate.delta_lower
    if alpha is None and delta >= LOOK_LEVEL:
        raise InvalidSetting(
            f"delta = {delta:g} leaves nothing of the default rate of {LOOK_LEVEL:g}; pass alpha"
        )
    levels = {
        "hypothesis-test": alpha or LOOK_LEVEL,
        "confidence-interval": alpha or LOOK_LEVEL - delta,
        "sequential-test": alpha or ANYTIME_LEVEL,
    }
    reference = None
    if record is not None and SMALLEST_TOTAL <= levels["sequential-test"] + delta < 1:
        failures = round(record.n * record.mean)
        reference = record.n, (failures if adverse else record.n - failures)
    return CertifiedSide(
        verdict=Verdict.ADVERSE if adverse else Verdict.BENIGN,
        binary=certificate.binary,
        null_mean=bet_bounds(certificate.lower, certificate.upper)[not adverse],
        levels=levels,
        reference=reference,
        delta=delta,
    )
