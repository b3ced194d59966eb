"""The side of a certificate on which a shift is suspected, and the detectors that watch it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from boundwatch.bounds.bets import SMALLEST_BOUND, Bets, bet_bounds
from boundwatch.bounds.joint_region import SMALLEST_TOTAL, alarm_line
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors.base import EvidenceName, TailName, Verdict
from boundwatch.detectors.fixed_sample import TAILS
from boundwatch.detectors.joint import reference_of
from boundwatch.detectors.mixture import Mark, alarm_counts
from boundwatch.errors import InvalidSetting
from boundwatch.planning.power import (
    ALPHA_ONCE,
    ALPHA_WATCH,
    Array,
    Counts,
    Power,
    first_reaching,
    mean_wait,
)

_Costs = TypeVar("_Costs", float, Array)
POWERS = (0.5, 0.8, 0.9, 0.95)
# Beyond this many trials the answer is "more than", not a number.
MOST_TRIALS = 5000


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
    def tails(self) -> list[TailName]:
        """The tails that are valid for the certified kind of cost."""
        return [tail for tail in TAILS if tail != "exact" or self.binary]

    @property
    def one_look(self) -> list[tuple[str, TailName, float]]:
        """The detectors that look once: name, tail, level."""
        rows: list[tuple[str, TailName, float]] = []
        if self.reference is not None:
            rows.append(("hypothesis-test", "joint", round(self.levels["hypothesis-test"] + self.delta, 12)))
        for name in ("hypothesis-test", "confidence-interval"):
            rows += [(name, tail, self.levels[name]) for tail in self.tails]
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
    if alpha is None and delta >= ALPHA_ONCE:
        raise InvalidSetting(
            f"delta = {delta:g} leaves nothing of the default rate of {ALPHA_ONCE:g}; pass alpha"
        )
    levels = {
        "hypothesis-test": alpha or ALPHA_ONCE,
        "confidence-interval": alpha or ALPHA_ONCE - delta,
        "sequential-test": alpha or ALPHA_WATCH,
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
