"""What exact and simulated planning share: the side of the certificate in question, a detector's power."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.bets import SMALLEST_BOUND, Bets, bet_bounds
from boundwatch.bounds.joint_region import SMALLEST_TOTAL
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import ANYTIME_LEVEL, LOOK_LEVEL, EvidenceName, TailName, Verdict
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.joint import reference_of
from boundwatch.detectors.mixture import Mark
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]

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


@dataclass(frozen=True)
class Side:
    """One side of the certificate, turned such that the shift is upward from `null_mean`."""

    certificate: Certificate
    null_mean: float
    levels: dict[str, float]
    bets: Bets
    reference: tuple[int, int] | None
    """Trials and failures of the certificate, if new costs of 0 and 1 are judged jointly with them."""
    delta: float
    """The certificate's, of this side; what is judged jointly spends it together with the level."""

    @cached_property  # takes half a second, and what is judged jointly needs none
    def threshold(self) -> float:
        """The wealth at which the sequential test alarms against the certified limit."""
        return Mark(self.null_mean, self.levels["sequential-test"], self.certificate.binary).threshold

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
    def tails(self) -> list[TailName]:
        """The tails that are valid for the certified kind of cost."""
        return [tail for tail in TAILS if tail != "exact" or self.certificate.binary]

    @property
    def fixed_detectors(self) -> list[tuple[str, TailName, float]]:
        """The detectors that look once: name, tail, level."""
        rows: list[tuple[str, TailName, float]] = []
        if self.reference is not None:
            rows.append(("hypothesis-test", "joint", round(self.levels["hypothesis-test"] + self.delta, 12)))
        for name in ("hypothesis-test", "confidence-interval"):
            rows += [(name, tail, self.levels[name]) for tail in self.tails]
        return rows


def choose_side(certificate: Certificate, mean: float, alpha: float | None) -> tuple[Verdict, Side]:
    """Return which shift a mean cost would be, and the side of the certificate that it leaves."""
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
    null_mean = bet_bounds(certificate.lower, certificate.upper)[not adverse]
    reference = None
    if record is not None and SMALLEST_TOTAL <= levels["sequential-test"] + delta < 1:
        failures = round(record.n * record.mean)
        reference = record.n, (failures if adverse else record.n - failures)
    bets = Bets.for_costs(binary=certificate.binary)
    side = Side(certificate, null_mean, levels, bets, reference, delta)
    return (Verdict.ADVERSE if adverse else Verdict.BENIGN), side


def sequential_power(side: Side, reached: Array, mean: float | None) -> Power:
    """Describe the sequential test by the probabilities of an alarm within 0, 1, 2, … trials."""
    trials = {power: int(np.argmax(reached >= power)) if reached[-1] >= power else None for power in POWERS}
    end = int(np.argmax(reached >= 0.99)) if reached[-1] >= 0.99 else reached.size - 1
    tail, level = side.sequential
    return Power(
        detector="sequential-test",
        tail=tail,
        level=round(level, 12),
        trials=trials,
        mean_trials=mean,
        median_trials=trials[0.5],
        mean_trials_at_least=float((1 - reached[:-1]).sum()),
        n=np.arange(1.0, end + 1),
        power=reached[1 : end + 1],
    )
