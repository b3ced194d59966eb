"""What exact and simulated planning share: the side of the certificate in question, a detector's power."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundwatch.bounds.wealth import Bets, bet_bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import Verdict
from boundwatch.detectors.fixed_sample import TAILS, TailName
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
        What it may spend on a false alarm, the certificate's delta not included.
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
    tail: str
    level: float
    trials: dict[float, int | None]
    mean_trials: float | None = None
    median_trials: int | None = None
    mean_trials_at_least: float | None = None
    n: Array = dataclasses.field(repr=False)
    power: Array = dataclasses.field(repr=False)

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
    threshold: float
    bets: Bets

    @property
    def tails(self) -> list[TailName]:
        """The tails that are valid for the certified kind of cost."""
        return [tail for tail in TAILS if tail != "exact" or self.certificate.binary]

    @property
    def fixed_detectors(self) -> list[tuple[str, TailName, float]]:
        """The detectors that look once: name, tail, level."""
        names = ("hypothesis-test", "confidence-interval")
        return [(name, tail, self.levels[name]) for name in names for tail in self.tails]


def choose_side(certificate: Certificate, mean: float, alpha: float | None) -> tuple[Verdict, Side]:
    """Return which shift a mean cost would be, and the side of the certificate that it leaves."""
    adverse = mean > certificate.upper
    if not adverse and mean >= certificate.lower:
        raise InvalidSetting(
            f"cost = {mean:g} is inside the certified [{certificate.lower:g}, {certificate.upper:g}], so no "
            "detector should notice it; choose one above or below"
        )
    delta = certificate.delta_upper if adverse else certificate.delta_lower
    if alpha is None and delta >= 0.05:
        raise InvalidSetting(f"delta = {delta:g} leaves nothing of the default rate of 0.05; pass alpha")
    levels = {
        "hypothesis-test": alpha or 0.05,
        "confidence-interval": alpha or 0.05 - delta,
        "sequential-test": alpha or 0.04,
    }
    null_mean = bet_bounds(certificate.lower, certificate.upper)[not adverse]
    threshold = Mark(null_mean, levels["sequential-test"], certificate.binary).threshold
    side = Side(certificate, null_mean, levels, threshold, Bets.for_costs(binary=certificate.binary))
    return (Verdict.ADVERSE if adverse else Verdict.BENIGN), side


def sequential_power(side: Side, reached: Array, mean: float | None) -> Power:
    """Describe the sequential test by the probabilities of an alarm within 0, 1, 2, … trials."""
    trials = {power: int(np.argmax(reached >= power)) if reached[-1] >= power else None for power in POWERS}
    end = int(np.argmax(reached >= 0.99)) if reached[-1] >= 0.99 else reached.size - 1
    return Power(
        detector="sequential-test",
        tail="mixture",
        level=side.levels["sequential-test"],
        trials=trials,
        mean_trials=mean,
        median_trials=trials[0.5],
        mean_trials_at_least=float((1 - reached[:-1]).sum()),
        n=np.arange(1.0, end + 1),
        power=reached[1 : end + 1],
    )
