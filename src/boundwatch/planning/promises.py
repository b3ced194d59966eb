"""The advertised error rates of a certificate's detectors, simulated where they are hardest to keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, Fleet, SequentialTest, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.stream import StreamDetector
from boundwatch.errors import InvalidLevel, InvalidSetting

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]

SIZES = (10, 50)
EPISODES = 200
STREAMS = 250  # for the detectors that take one stream at a time
# How unlikely a count must be under the promise before the promise is called broken. Some 40 promises are
# tried, so a false cry has a chance of 4e-5.
UNBELIEVABLE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A promised rate and what the simulation says about it.

    Attributes
    ----------
    detector, verdict, world
        Who promises not to declare what, in which world; `world` has no such shift.
    promised
        The largest probability of declaring it, if the certificate holds.
    rate, low, high
        The simulated rate with its 95 % interval.
    runs
        How many datasets or streams were simulated.
    kept
        False only if a count this high has a chance below one in a million under the promise.
    """

    detector: str
    verdict: Verdict
    world: str
    promised: float
    rate: float
    low: float
    high: float
    runs: int
    kept: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self) | {"verdict": self.verdict.value}


def simulate_promises(
    certificate: Certificate,
    *,
    costs: ArrayLike | None = None,
    detectors: Sequence[FixedSampleDetector] | None = None,
    alpha_adverse: float = 0.04,
    alpha_benign: float = 0.04,
    runs: int = 4000,
    seed: int = 0,
) -> list[Promise]:
    """Simulate how often each detector errs in worlds that lie exactly at the certified limits.

    The worlds are those that come closest to breaking a promise: costs of 0 and 1, and costs of 0 and twice
    the limit, with the largest mean that is still certified; besides them the certificate's own costs. A
    wrong ADVERSE is counted at the upper limit, a wrong BENIGN at the lower one. The certificate's own delta
    is not simulated: it comes on top of every rate.

    Parameters
    ----------
    certificate
        The certificate whose detectors are tried.
    costs
        Its own costs, if at hand; they must be the ones it was made from.
    detectors
        Fixed-sample detectors to try. Left out: the hypothesis test with every valid tail and the confidence
        interval, with the levels below.
    alpha_adverse, alpha_benign
        Levels of the two sides, of the sequential test, too.
    runs
        Datasets or streams for each promise.
    seed
        For the simulation.

    Examples
    --------
    >>> import boundwatch as bw
    >>> certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    >>> all(promise.kept for promise in simulate_promises(certificate, runs=500))
    True
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InvalidSetting(f"runs = {runs!r} is not a whole number of at least 1")
    if detectors is None:
        detectors = _detectors(_limits_alone(certificate), alpha_adverse, alpha_benign)
    levels = {Verdict.ADVERSE: alpha_adverse, Verdict.BENIGN: alpha_benign}
    limits = _limits_alone(certificate)
    rng = np.random.default_rng(seed)
    promises = []
    for verdict, world, draw in _worlds(certificate, costs):
        side = 0 if verdict is Verdict.ADVERSE else 1
        for detector in detectors:
            for n in SIZES:
                hits = int((detector.decide_many(draw(rng, (runs, n))).verdict == verdict).sum())
                name = f"{detector.name}, {detector.tail_name}, n = {n}"
                promises.append(_judge(name, verdict, world, detector.levels[side], hits, runs))
        fleet = Fleet(limits, alpha_adverse=alpha_adverse, alpha_benign=alpha_benign)
        for column in draw(rng, (EPISODES, runs)):
            fleet.update(np.arange(runs), column)
        hits = sum(found is verdict for found in fleet.verdicts)
        name = f"fleet, read {EPISODES} times"
        promises.append(_judge(name, verdict, world, levels[verdict], hits, runs))
        streams = draw(rng, (min(runs, STREAMS), EPISODES))
        test = SequentialTest(limits, alpha_adverse=alpha_adverse, alpha_benign=alpha_benign)
        hits = _count_alarms(test, verdict, streams)
        name = f"sequential-test, read {EPISODES} times"
        promises.append(_judge(name, verdict, world, levels[verdict], hits, len(streams)))
        change = ChangeDetector(limits)
        hits = _count_alarms(change, verdict, streams)
        name = f"change-detector, {EPISODES} episodes"
        alpha = change.alpha_adverse if verdict is Verdict.ADVERSE else change.alpha_benign
        promises.append(_judge(name, verdict, world, min(1.0, EPISODES * alpha), hits, len(streams)))
    return promises


def _detectors(
    certificate: Certificate, alpha_adverse: float, alpha_benign: float
) -> list[FixedSampleDetector]:
    levels = {"alpha_adverse": alpha_adverse, "alpha_benign": alpha_benign}
    tails = [tail for tail in TAILS if tail != "exact" or certificate.binary]
    found: list[FixedSampleDetector] = [HypothesisTest(certificate, tail=tail, **levels) for tail in tails]
    totals = alpha_adverse + certificate.delta_upper, alpha_benign + certificate.delta_lower
    if max(totals) >= 1:
        raise InvalidLevel(f"alpha and delta add up to {max(totals):g}; choose a smaller alpha")
    return [
        *found,
        ConfidenceInterval(certificate, false_positive_rate=totals[0], false_negative_rate=totals[1]),
    ]


def _worlds(certificate: Certificate, costs: ArrayLike | None) -> list[tuple[Verdict, str, Draw]]:
    upper, lower = certificate.upper, certificate.lower
    points = [(Verdict.ADVERSE, 0.0, 1.0, upper), (Verdict.BENIGN, 0.0, 1.0, lower)]
    if not certificate.binary and 0 < 2 * upper < 1:
        points.append((Verdict.ADVERSE, 0.0, 2 * upper, upper))
    if not certificate.binary and 0 < 2 * lower - 1 < 1:
        points.append((Verdict.BENIGN, 2 * lower - 1, 1.0, lower))
    worlds: list[tuple[Verdict, str, Draw]] = [
        (verdict, f"{low:.3g} or {high:.3g}, mean {mean:.3g}", partial(_two_point, verdict, low, high, mean))
        for verdict, low, high, mean in points
    ]
    if costs is not None:
        own = certificate.check_costs(costs)
        failed = [check.detail for check in certificate.verify(own) if not check.ok]
        if failed:
            raise InvalidSetting(f"costs are not the certificate's own ({failed[0]}); pass those, or none")
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            worlds.append((verdict, f"its own costs, mean {own.mean():.3g}", partial(_resample, own)))
    return worlds


def _two_point(
    verdict: Verdict, low: float, high: float, mean: float, rng: np.random.Generator, shape: tuple[int, int]
) -> Array:
    # Rounded to the next float on the side of the mean where the verdict would be wrong.
    chance = np.nextafter((mean - low) / (high - low), 0.0 if verdict is Verdict.ADVERSE else 1.0)
    return np.where(rng.random(shape) < chance, high, low)


def _resample(costs: Array, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.choice(costs, size=shape)


def _limits_alone(certificate: Certificate) -> Certificate:
    """Return the promise without the costs behind it: what is simulated is whether detectors keep to it."""
    return Certificate.from_bounds(
        lower=certificate.lower,
        upper=certificate.upper,
        delta=certificate.delta,
        delta_upper=certificate.delta_upper,
        delta_lower=certificate.delta_lower,
        binary=certificate.binary,
    )


def _count_alarms(detector: StreamDetector[Any], verdict: Verdict, streams: Array) -> int:
    hits = 0
    for stream in streams:
        detector.reset()
        detector.update_many(stream)
        hits += detector.verdict is verdict
    return hits


def _judge(detector: str, verdict: Verdict, world: str, promised: float, hits: int, runs: int) -> Promise:
    return Promise(
        detector=detector,
        verdict=verdict,
        world=world,
        promised=promised,
        rate=hits / runs,
        low=float(bounds.clopper_pearson_lower(hits, runs, 0.025)),
        high=float(bounds.clopper_pearson_upper(hits, runs, 0.025)),
        runs=runs,
        kept=bool(binom.sf(hits - 1, runs, promised) >= UNBELIEVABLE),
    )
