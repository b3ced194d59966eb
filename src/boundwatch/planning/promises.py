"""The advertised error rates of a certificate's detectors, simulated where they are hardest to keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv
from scipy.stats import binom

from boundwatch import bounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, Fleet, SequentialTest, Verdict
from boundwatch.detectors.confidence_interval import ConfidenceInterval
from boundwatch.detectors.fixed_sample import TAILS, FixedSampleDetector
from boundwatch.detectors.hypothesis_test import HypothesisTest
from boundwatch.detectors.roll import Roll
from boundwatch.detectors.stream import StreamDetector
from boundwatch.errors import InvalidLevel, InvalidSetting

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
Count = Callable[[np.random.Generator, int], int]

SIZES = (5, 10, 25, 50, 100)
EPISODES = 200
RUNS = 6000
"""Enough to notice an error rate of one and a half times any level of 0.04 or more, nearly always."""
STREAMS = 5
RATE = 0.05
MARGIN = 0.1
_JOINT_RUNS = 300  # of bounded costs judged jointly, which take a tenth of a second each
_STREAM_RUNS = 1000  # of the detectors that take one stream at a time; a fleet takes all
# How unlikely a count must be under the promise before the promise is called broken. Some 100 promises are
# tried, so a false cry has a chance of 1e-4.
UNBELIEVABLE = 1e-6


@dataclass(frozen=True, kw_only=True)
class Promise:
    """A promised rate and what the simulation says about it.

    Attributes
    ----------
    detector, verdict, world
        Who promises not to declare what, in which world; `world` has no such shift.
    promised
        The largest probability of declaring it: if the certificate holds, or, where `world` says that the
        lab is drawn, too, over the draw of both.
    rate, low, high
        The simulated rate with its 95 % interval.
    runs
        How many datasets or streams were simulated.
    sees
        The smallest true rate that would be called broken with 99 % probability at so many runs.
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
    sees: float
    kept: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return dataclasses.asdict(self) | {"verdict": self.verdict.value}


@dataclass(frozen=True)
class Claim:
    """A promise to be tried: who may not declare what, where and how often, and how to count it."""

    detector: str
    verdict: Verdict
    world: str
    promised: float
    count: Count
    most_runs: int | None = None


@dataclass(frozen=True)
class World:
    """Costs of two values (or others) whose mean lies where declaring `verdict` is just wrong."""

    verdict: Verdict
    name: str
    mean: float
    draw: Draw


def simulate_promises(
    certificate: Certificate,
    *,
    costs: ArrayLike | None = None,
    detectors: Sequence[FixedSampleDetector] | None = None,
    alpha_adverse: float = 0.05,
    alpha_benign: float = 0.05,
    runs: int = RUNS,
    seed: int = 0,
) -> list[Promise]:
    """Simulate how often each detector errs in worlds that lie exactly at the certified limits.

    The worlds are those that come closest to breaking a promise: costs of 0 and 1, of 0 and twice the limit,
    and of 0 and just above the limit, with the largest mean that is still certified; besides them the
    certificate's own costs. A wrong ADVERSE is counted at the upper limit, a wrong BENIGN at the lower one,
    and so is every limit on the shift that excludes it. The certificate's own delta is not simulated there:
    it comes on top. Of a held-out certificate the trials behind it are drawn again as well, from a world that
    does not change: there the totals are tried, delta included.

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
    >>> all(promise.kept for promise in simulate_promises(certificate, runs=10))
    True
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise InvalidSetting(f"runs = {runs!r} is not a whole number of at least 1")
    rng = np.random.default_rng(seed)
    levels = {Verdict.ADVERSE: alpha_adverse, Verdict.BENIGN: alpha_benign}
    return [_judge(claim, rng, runs) for claim in _claims(certificate, costs, detectors, levels)]


def _claims(
    certificate: Certificate,
    costs: ArrayLike | None,
    detectors: Sequence[FixedSampleDetector] | None,
    levels: dict[Verdict, float],
) -> Iterator[Claim]:
    limits = _limits_alone(certificate)
    if detectors is None:
        detectors = _detectors(limits, levels)
    for world in _worlds(certificate, costs):
        yield from _fixed_claims(world, detectors)
        yield from _stream_claims(world, limits, levels)
    if certificate.source == "held-out" and certificate.method != "anytime":
        yield from _joint_claims(certificate, levels)


def _limits_alone(certificate: Certificate) -> Certificate:
    """Return the certificate as somebody would see it who knows its limits and nothing else."""
    return Certificate.from_bounds(
        lower=certificate.lower,
        upper=certificate.upper,
        delta=certificate.delta,
        delta_upper=certificate.delta_upper,
        delta_lower=certificate.delta_lower,
        binary=certificate.binary,
    )


def _detectors(certificate: Certificate, levels: dict[Verdict, float]) -> list[FixedSampleDetector]:
    alpha_adverse, alpha_benign = levels[Verdict.ADVERSE], levels[Verdict.BENIGN]
    tails = [tail for tail in TAILS if tail != "exact" or certificate.binary]
    found: list[FixedSampleDetector] = [
        HypothesisTest(certificate, tail=tail, alpha_adverse=alpha_adverse, alpha_benign=alpha_benign)
        for tail in tails
    ]
    totals = alpha_adverse + certificate.delta_upper, alpha_benign + certificate.delta_lower
    if max(totals) >= 1:
        raise InvalidLevel(f"alpha and delta add up to {max(totals):g}; choose a smaller alpha")
    interval = ConfidenceInterval(certificate, false_positive_rate=totals[0], false_negative_rate=totals[1])
    return [*found, interval]


def _worlds(certificate: Certificate, costs: ArrayLike | None) -> list[World]:
    upper, lower = certificate.upper, certificate.lower
    points = [(Verdict.ADVERSE, 0.0, 1.0, upper), (Verdict.BENIGN, 0.0, 1.0, lower)]
    if not certificate.binary:
        # Just above the limit hardly a cost is 0, and the first ones decide: the hardest world known.
        for factor in (2, 1.05):
            if 0 < factor * upper < 1:
                points.append((Verdict.ADVERSE, 0.0, factor * upper, upper))
            if 0 < 1 - factor * (1 - lower) < 1:
                points.append((Verdict.BENIGN, 1 - factor * (1 - lower), 1.0, lower))
    worlds = [
        World(
            verdict,
            f"{low:.3g} or {high:.3g}, mean {mean:.3g}",
            mean,
            partial(_two_point, verdict, low, high, mean),
        )
        for verdict, low, high, mean in points
    ]
    if costs is not None:
        own = certificate.check_costs(costs)
        failed = [check.detail for check in certificate.verify(own) if not check.ok]
        if failed:
            raise InvalidSetting(f"costs are not the certificate's own ({failed[0]}); pass those, or none")
        mean = float(own.mean())
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            worlds.append(World(verdict, f"its own costs, mean {mean:.3g}", mean, partial(_resample, own)))
    return worlds


def _fixed_claims(world: World, detectors: Sequence[FixedSampleDetector]) -> Iterator[Claim]:
    side = 0 if world.verdict is Verdict.ADVERSE else 1
    for detector in detectors:
        name, level = f"{detector.name}, {detector.tail_name}", detector.levels[side]
        for n in SIZES:
            declared = partial(_count_declared, detector, world, n)
            yield Claim(f"{name}, n = {n}", world.verdict, world.name, level, declared)
        excluded = partial(_count_excluded, detector, world, SIZES[1])
        limit = "lower" if side == 0 else "upper"
        yield Claim(f"{name}, {limit} shift limit", world.verdict, world.name, level, excluded)


def _count_declared(
    detector: FixedSampleDetector, world: World, n: int, rng: np.random.Generator, runs: int
) -> int:
    return int((detector.decide_many(world.draw(rng, (runs, n))).verdict == world.verdict).sum())


def _count_excluded(
    detector: FixedSampleDetector, world: World, n: int, rng: np.random.Generator, runs: int
) -> int:
    """Count limits that exclude the shift from the certified limit of their side, which is the true one."""
    found, certificate = detector.decide_many(world.draw(rng, (runs, n))), detector.certificate
    if world.verdict is Verdict.ADVERSE:
        return int((found.shift_lower > world.mean - certificate.upper + 1e-9).sum())
    return int((found.shift_upper < world.mean - certificate.lower - 1e-9).sum())


def _stream_claims(world: World, certificate: Certificate, levels: dict[Verdict, float]) -> Iterator[Claim]:
    verdict = world.verdict
    alphas = {"alpha_adverse": levels[Verdict.ADVERSE], "alpha_benign": levels[Verdict.BENIGN]}
    declared = partial(_count_streams, certificate, alphas, world)
    yield Claim(f"fleet, read {EPISODES} times", verdict, world.name, levels[verdict], declared)
    test = SequentialTest(certificate, **alphas)
    alarmed = partial(_count_alarms, test, world)
    name = f"sequential-test, read {EPISODES} times"
    yield Claim(name, verdict, world.name, levels[verdict], alarmed, most_runs=_STREAM_RUNS)
    if verdict is Verdict.ADVERSE:
        listed = partial(_count_lists, certificate, world)
        yield Claim(f"discoveries in {STREAMS} streams", verdict, world.name, RATE, listed)
    change = ChangeDetector(certificate)
    alpha = change.alpha_adverse if verdict is Verdict.ADVERSE else change.alpha_benign
    name, promised = f"change-detector, run length <= {EPISODES}", min(1.0, EPISODES * alpha)
    yield Claim(
        name, verdict, world.name, promised, partial(_count_alarms, change, world), most_runs=_STREAM_RUNS
    )


def _count_streams(
    certificate: Certificate, alphas: dict[str, float], world: World, rng: np.random.Generator, runs: int
) -> int:
    fleet = Fleet(certificate, **alphas)
    for column in world.draw(rng, (EPISODES, runs)):
        fleet.update(np.arange(runs), column)
    return sum(found is world.verdict for found in fleet.verdicts)


def _count_lists(certificate: Certificate, world: World, rng: np.random.Generator, runs: int) -> int:
    """Count fleets of a few streams, none of them worse, that list one at any of ten looks."""
    fleet, shares = Fleet(certificate), Roll().look(STREAMS)
    needed = -np.log(RATE * np.arange(1, STREAMS + 1))
    listed = np.zeros(runs, dtype=bool)
    for n, column in enumerate(world.draw(rng, (EPISODES, STREAMS * runs)), start=1):
        fleet.update(np.arange(STREAMS * runs), column)
        if n % (EPISODES // 10) == 0:
            evidence = np.log(fleet.e_adverse).reshape(runs, STREAMS) + shares
            listed |= (np.sort(evidence, axis=1)[:, ::-1] >= needed).any(axis=1)
    return int(listed.sum())


def _count_alarms(detector: StreamDetector[Any], world: World, rng: np.random.Generator, runs: int) -> int:
    hits = 0
    for stream in world.draw(rng, (runs, EPISODES)):
        detector.reset()
        detector.update_many(stream)
        hits += detector.verdict is world.verdict
    return hits


def _joint_claims(certificate: Certificate, levels: dict[Verdict, float]) -> Iterator[Claim]:
    """Try the totals over the draw of the lab's trials and the new ones, in worlds that do not change."""
    deltas = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
    means = sorted({certificate.lower, certificate.mean_cost or 0.0, certificate.upper})
    for mean in means:
        if not 0 < mean < 1:
            continue
        world = f"0 or 1, mean {mean:.3g}, lab drawn, too"
        for verdict, level in levels.items():
            total = level + deltas[verdict]
            for n in (10, 50) if certificate.binary else (10,):
                once = partial(_count_joint, certificate, mean, verdict, n, levels, False)
                few = None if certificate.binary else _JOINT_RUNS
                yield Claim(f"hypothesis-test, total, n = {n}", verdict, world, total, once, most_runs=few)
            if verdict is Verdict.BENIGN and certificate.binary and mean + MARGIN < 1:
                shown = partial(_count_no_worse, certificate, mean, levels)
                place = f"0 or 1, {mean:.3g} to {mean + MARGIN:.3g}, lab drawn, too"
                yield Claim(f"hypothesis-test, margin {MARGIN:g}, n = 50", verdict, place, total, shown)
            if certificate.binary:  # for others a wrong alarm takes minutes to find, and is far rarer
                always = partial(_count_joint, certificate, mean, verdict, EPISODES, levels, True)
                yield Claim(f"fleet, total, {EPISODES} times", verdict, world, total, always)


def _count_joint(
    certificate: Certificate,
    mean: float,
    verdict: Verdict,
    n: int,
    levels: dict[Verdict, float],
    always: bool,
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Draw the lab's trials, certify them alike, and judge new trials of the same world."""
    adverse, benign = levels[Verdict.ADVERSE], levels[Verdict.BENIGN]
    hits = 0
    for redrawn, count in _labs(certificate, mean, rng, runs):
        new = (rng.random((count, n)) < mean).astype(np.float64)
        if always:
            fleet = Fleet(redrawn, alpha_adverse=adverse, alpha_benign=benign)
            for column in new.T:
                fleet.update(np.arange(count), column)
            hits += sum(found is verdict for found in fleet.verdicts)
        else:
            test = HypothesisTest(redrawn, alpha_adverse=adverse, alpha_benign=benign)
            hits += int((test.decide_many(new).verdict == verdict).sum())
    return hits


def _labs(
    certificate: Certificate, mean: float, rng: np.random.Generator, runs: int
) -> Iterator[tuple[Certificate, int]]:
    """Yield certificates from trials drawn again, and how many of the runs have each."""
    size = certificate.n or 1
    # Labs with the same number of failures have the same certificate.
    for failures, count in zip(*np.unique(rng.binomial(size, mean, runs), return_counts=True), strict=True):
        redrawn = Certificate.from_held_out(
            np.repeat([1.0, 0.0], [failures, size - failures]),
            method=cast("Any", certificate.method),
            binary=certificate.binary,
            delta_upper=certificate.delta_upper,
            delta_lower=certificate.delta_lower,
        )
        yield redrawn, int(count)


def _count_no_worse(
    certificate: Certificate,
    mean: float,
    levels: dict[Verdict, float],
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Count sites that are said to be at most a margin worse, and are worse by just that."""
    hits = 0
    for redrawn, count in _labs(certificate, mean, rng, runs):
        test = HypothesisTest(redrawn, alpha_benign=levels[Verdict.BENIGN], margin=MARGIN)
        found = test.decide_many((rng.random((count, 50)) < mean + MARGIN).astype(np.float64))
        hits += 0 if found.no_worse is None else int(found.no_worse.sum())
    return hits


def _two_point(
    verdict: Verdict, low: float, high: float, mean: float, rng: np.random.Generator, shape: tuple[int, int]
) -> Array:
    # Rounded to the next float on the side of the mean where the verdict would be wrong.
    chance = np.nextafter((mean - low) / (high - low), 0.0 if verdict is Verdict.ADVERSE else 1.0)
    return np.where(rng.random(shape) < chance, high, low)


def _resample(costs: Array, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.choice(costs, size=shape)


def _judge(claim: Claim, rng: np.random.Generator, runs: int) -> Promise:
    runs = min(runs, claim.most_runs or runs)
    hits = claim.count(rng, runs)
    return Promise(
        detector=claim.detector,
        verdict=claim.verdict,
        world=claim.world,
        promised=claim.promised,
        rate=hits / runs,
        low=float(bounds.clopper_pearson_lower(hits, runs, 0.025)),
        high=float(bounds.clopper_pearson_upper(hits, runs, 0.025)),
        runs=runs,
        sees=visible_rate(claim.promised, runs),
        kept=bool(binom.sf(hits - 1, runs, claim.promised) >= UNBELIEVABLE),
    )


def visible_rate(promised: float, runs: int) -> float:
    """Return the smallest true rate that so many runs call broken with a probability of 99 %.

    Examples
    --------
    >>> round(visible_rate(0.04, 6000), 3), visible_rate(0.04, 3)
    (0.06, 1.0)
    """
    needed = int(binom.isf(UNBELIEVABLE, runs, promised)) + 1
    # P[at least `needed` of runs] = 0.99 is an incomplete beta function of the rate.
    return 1.0 if needed > runs else float(betaincinv(needed, runs - needed + 1, 0.99))
