"""What detectors promise while a certificate holds, and how often they err where that is hardest to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, Fleet, SequentialTest, Verdict
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.detectors.fixed_sample import FixedSampleDetector
from boundwatch.errors import InvalidSetting

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]
Count = Callable[[np.random.Generator, int], int]
Levels = dict[Verdict, float]

SIZES = (5, 10, 25, 50, 100)
EPISODES = 200
STREAMS = 5
ROBOTS = 20
RATE = 0.05
MARGIN = 0.1
LOOKS = 10
_AT_ONCE = 4096  # costs that a fleet sees with one call: a call for each episode takes longer than the test
_READ = (10, 50, 200)  # the numbers of new trials at which limits are read that hold at all times


@dataclass(frozen=True)
class Claim:
    """A promise to be tried: who may not declare what, where and how often, and how to count it.

    `scale` is how many simulations it takes for each one that was asked for: the rarer an error may be, the
    more, and the more often it may be, the fewer.
    """

    detector: str
    verdict: Verdict
    world: str
    promised: float
    count: Count
    scale: float = 1.0


@dataclass(frozen=True)
class World:
    """Costs of two values (or others) whose mean lies where declaring `verdict` is just wrong."""

    verdict: Verdict
    name: str
    mean: float
    draw: Draw

    @classmethod
    def of_two(cls, verdict: Verdict, low: float, high: float, mean: float) -> World:
        """Return the world of two costs with a mean."""
        name = f"{low:.3g} or {high:.3g}, mean {mean:.3g}"
        return cls(verdict, name, mean, partial(_two_point, verdict, low, high, mean))


def claims_given_limits(
    certificate: Certificate,
    places: Sequence[World],
    detectors: Sequence[FixedSampleDetector],
    levels: Levels,
) -> Iterator[Claim]:
    """Return what is promised while the limits hold, which are all that is known of this certificate."""
    for world in places:
        yield from _fixed_claims(world, detectors)
        yield from _stream_claims(world, certificate, levels)
    yield from _restart_claims(certificate)
    yield from _margin_claims(certificate, levels)


def worlds(certificate: Certificate, costs: ArrayLike | None) -> list[World]:
    """Return the worlds in which the promises of a certificate's detectors are hardest to keep."""
    found = [
        World.of_two(verdict, low, high, mean)
        for verdict, mean in ((Verdict.ADVERSE, certificate.upper), (Verdict.BENIGN, certificate.lower))
        for low, high in two_costs(verdict, mean, binary=certificate.binary)
    ]
    if costs is not None:
        own = certificate.check_costs(costs)
        failed = [check.detail for check in certificate.verify(own) if not check.ok]
        if failed:
            raise InvalidSetting(f"costs are not the certificate's own ({failed[0]}); pass those, or none")
        mean = float(own.mean())
        for verdict in (Verdict.ADVERSE, Verdict.BENIGN):
            found.append(World(verdict, f"its own costs, mean {mean:.3g}", mean, partial(_resample, own)))
    return found


def two_costs(verdict: Verdict, mean: float, *, binary: bool) -> list[tuple[float, float]]:
    """Return pairs of costs with a mean between them, on which evidence for a verdict is won most easily.

    Besides 0 and 1, these are 0 and twice the mean, and 0 and just above it: there hardly a cost is 0, and
    the first ones decide, which is the hardest world known. For BENIGN they are mirrored.
    """
    pairs = [(0.0, 1.0)]
    for factor in () if binary else (2, 1.05):
        pair = (0.0, factor * mean) if verdict is Verdict.ADVERSE else (1 - factor * (1 - mean), 1.0)
        if 0 <= pair[0] < pair[1] <= 1 and pair not in pairs:
            pairs.append(pair)
    return pairs


def is_declared(verdicts: Sequence[Verdict], verdict: Verdict) -> Flags:
    """Return where a verdict is the one."""
    return np.array([found is verdict for found in verdicts])


def run_fleet(fleet: Fleet, streams: Array) -> Fleet:
    """Let a fleet see streams, one per column."""
    rows = max(1, _AT_ONCE // streams.shape[1])
    for start in range(0, len(streams), rows):
        part = streams[start : start + rows]
        fleet.update(np.tile(np.arange(part.shape[1]), len(part)), part.ravel())
    return fleet


def count_lists(certificate: Certificate, streams: Array) -> int:
    """Count fleets of a few streams, none of them worse, that list one at any of ten looks."""
    # These streams share half the rate: nothing is listed with an e-value below two over the rate, and a test
    # with the rate for its level alarms before.
    near = run_fleet(_listing_fleet(certificate), streams)
    groups = is_declared(near.verdicts, Verdict.ADVERSE).reshape(-1, STREAMS).any(axis=1)
    split = streams.reshape(LOOKS, -1, groups.size, STREAMS)
    return sum(_lists(certificate, split[:, :, group]) for group in np.flatnonzero(groups).tolist())


def _listing_fleet(certificate: Certificate) -> Fleet:
    """Return a fleet for its list. Its levels have no say there, and equal ones have one line of alarms."""
    return Fleet(certificate, alpha_adverse=RATE, alpha_benign=RATE)


def _lists(certificate: Certificate, looks: Array, *, restarting: bool = False) -> bool:
    fleet = _listing_fleet(certificate)
    for costs in looks:
        fleet.update(np.tile(np.arange(STREAMS), len(costs)), costs.ravel())
        if fleet.discoveries(RATE):
            return True
        for stream in np.flatnonzero(fleet.e_adverse < 1).tolist() if restarting else ():
            fleet.reset(stream)
    return False


def _fixed_claims(world: World, detectors: Sequence[FixedSampleDetector]) -> Iterator[Claim]:
    side = 0 if world.verdict is Verdict.ADVERSE else 1
    for detector in detectors:
        name, level = f"{detector.name}, {detector.tail_name}", detector.levels[side]
        for n in SIZES:
            declared = partial(_count_declared, detector, world, n)
            yield Claim(f"{name}, n = {n}", world.verdict, world.name, level, declared)
        excluded = partial(_count_excluded, detector, world, SIZES[1])
        yield Claim(f"{name}, {limit_of(world.verdict)}", world.verdict, world.name, level, excluded)


def limit_of(verdict: Verdict) -> str:
    """Return which limit on the shift goes with a verdict."""
    return "lower shift limit" if verdict is Verdict.ADVERSE else "upper shift limit"


def _count_declared(
    detector: FixedSampleDetector, world: World, n: int, rng: np.random.Generator, runs: int
) -> int:
    return int((detector.decide_many(world.draw(rng, (runs, n))).verdict == world.verdict).sum())


def _count_excluded(
    detector: FixedSampleDetector, world: World, n: int, rng: np.random.Generator, runs: int
) -> int:
    """Count limits that exclude the shift from the certified limit of their side, which is the true one."""
    return int(excludes(world, detector.certificate, detector.decide_many(world.draw(rng, (runs, n)))).sum())


def excludes(world: World, certificate: Certificate, found: Any) -> Flags:
    """Return whether the limits of a finding, or of many, exclude the true shift from a certified limit."""
    if world.verdict is Verdict.ADVERSE:
        return np.asarray(found.shift_lower > world.mean - certificate.upper + 1e-9)
    return np.asarray(found.shift_upper < world.mean - certificate.lower - 1e-9)


def _stream_claims(world: World, certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    verdict, name = world.verdict, world.name
    alphas = {"alpha_adverse": levels[Verdict.ADVERSE], "alpha_benign": levels[Verdict.BENIGN]}
    declared = partial(_count_streams, certificate, alphas, world)
    yield Claim(f"fleet, read {EPISODES} times", verdict, name, levels[verdict], declared)
    alarmed = partial(_count_alarms, certificate, alphas, world)
    yield Claim(f"sequential-test, read {EPISODES} times", verdict, name, levels[verdict], alarmed)
    missed = partial(_count_missed, certificate, alphas, world)
    yield Claim(f"sequential-test, {limit_of(verdict)}", verdict, name, levels[verdict], missed)
    if verdict is Verdict.ADVERSE:
        listed = partial(_count_lists, certificate, world)
        yield Claim(f"discoveries in {STREAMS} streams", verdict, name, RATE, listed)
    change = ChangeDetector(certificate)
    alpha = change.alpha_adverse if verdict is Verdict.ADVERSE else change.alpha_benign
    length, promised = f"change-detector, run length <= {EPISODES}", min(1.0, EPISODES * alpha)
    yield Claim(length, verdict, name, promised, partial(_count_declared_at_last, change, world), scale=1 / 6)


def _count_streams(
    certificate: Certificate, alphas: dict[str, float], world: World, rng: np.random.Generator, runs: int
) -> int:
    fleet = run_fleet(Fleet(certificate, **alphas), world.draw(rng, (EPISODES, runs)))
    return int(is_declared(fleet.verdicts, world.verdict).sum())


def _count_alarms(
    certificate: Certificate, alphas: dict[str, Any], world: World, rng: np.random.Generator, runs: int
) -> int:
    return _count_declared_at_last(SequentialTest(certificate, **alphas), world, rng, runs)


def _count_missed(
    certificate: Certificate, alphas: dict[str, Any], world: World, rng: np.random.Generator, runs: int
) -> int:
    test = SequentialTest(certificate, **alphas)
    return count_missed(test, world.draw(rng, (EPISODES, runs)), partial(excludes, world, certificate))


def count_missed(test: SequentialTest, streams: Array, errs: Callable[[Any], Flags]) -> int:
    """Count streams, one per column, whose limits err at any of three looks, whatever the e-values say."""
    missed = np.zeros(streams.shape[1], dtype=np.bool_)
    for n in _READ:
        # Streams of the same costs, in whatever order, have the same limits: an alarm on the way can only
        # move one to zero, which excludes nothing.
        ordered = np.sort(streams[:n], axis=0)
        _, first, group = np.unique(ordered, axis=1, return_index=True, return_inverse=True)
        wrong = np.zeros(first.size, dtype=np.bool_)
        for number, stream in enumerate(first.tolist()):
            test.reset()
            wrong[number] = errs(test.update_many(streams[:n, stream]))
        missed |= wrong[group.ravel()]
    return int(missed.sum())


def _count_lists(certificate: Certificate, world: World, rng: np.random.Generator, runs: int) -> int:
    return count_lists(certificate, world.draw(rng, (EPISODES, STREAMS * runs)))


def _count_declared_at_last(
    detector: SequentialTest | ChangeDetector, world: World, rng: np.random.Generator, runs: int
) -> int:
    return count_found(detector, world.draw(rng, (runs, EPISODES)).T, partial(declares, world.verdict))


def count_found(
    detector: SequentialTest | ChangeDetector, streams: Array, errs: Callable[[Any], bool]
) -> int:
    """Count streams, one per column, whose last finding errs: what was found once stays found."""
    hits = 0
    for stream in streams.T:
        detector.reset()
        hits += errs(detector.update_many(stream))
    return hits


def declares(verdict: Verdict, found: Any) -> bool:
    """Return whether a finding has a verdict."""
    return bool(found.verdict is verdict)


def shows_no_worse(found: Any) -> bool:
    """Return whether a finding says that the cost rose by no more than the margin."""
    return bool(found.no_worse)


def _restart_claims(certificate: Certificate) -> Iterator[Claim]:
    """Try the list of discoveries where streams that look fine are begun again until one does not."""
    low, high = two_costs(Verdict.ADVERSE, certificate.upper, binary=certificate.binary)[0]
    world = World.of_two(Verdict.ADVERSE, low, high, certificate.upper)
    name = f"discoveries, {STREAMS} streams, restarted"
    yield Claim(name, world.verdict, world.name, RATE, partial(_count_restarts, certificate, world))


def _count_restarts(certificate: Certificate, world: World, rng: np.random.Generator, runs: int) -> int:
    """Count fleets that list a stream at any look, after each of which streams without evidence restart."""
    streams = world.draw(rng, (EPISODES, STREAMS * runs)).reshape(LOOKS, -1, STREAMS * runs)
    fleet, rolls = _listing_fleet(certificate), [DiscoveryShares() for _ in range(runs)]
    near = np.zeros(runs, dtype=np.bool_)
    for costs in streams:
        evidence = run_fleet(fleet, costs).e_adverse
        shares = np.exp([roll.look(STREAMS) for roll in rolls])
        # Not even a list of all streams could hold one with less.
        near |= (evidence.reshape(runs, STREAMS) * shares >= 1 / (STREAMS * RATE)).any(axis=1)
        for stream in np.flatnonzero(evidence < 1).tolist():
            fleet.reset(stream)
            rolls[stream // STREAMS].restart(stream % STREAMS)
    split = streams.reshape(LOOKS, -1, runs, STREAMS)
    return sum(
        _lists(certificate, split[:, :, run], restarting=True) for run in np.flatnonzero(near).tolist()
    )


def _margin_claims(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Try "no worse by more than a margin" where the cost is worse by just that."""
    level, mean = levels[Verdict.BENIGN], certificate.lower + MARGIN
    if mean >= 1:
        return
    for low, high in two_costs(Verdict.BENIGN, mean, binary=certificate.binary):
        world = World.of_two(Verdict.BENIGN, low, high, mean)
        words = f"margin {MARGIN:g}, read {EPISODES} times"
        shown = partial(_count_shown_by_fleet, certificate, level, world)
        yield Claim(f"fleet, {words}", world.verdict, world.name, level, shown)
        if is_tried_alone(low, high):
            shown = partial(_count_shown, certificate, level, world)
            yield Claim(f"sequential-test, {words}", world.verdict, world.name, level, shown)


def is_tried_alone(low: float, high: float) -> bool:
    """Return whether two costs are those with which a fleet's streams are also tried one by one.

    The fleet is tried in every world. The sequential test takes up to twenty times as long for as many
    streams, so it gets costs of 0 and 1 alone, on which either errs about as often as on any others.
    """
    return low == 0 and high == 1


def _count_shown_by_fleet(
    certificate: Certificate, alpha: float, world: World, rng: np.random.Generator, runs: int
) -> int:
    fleet = Fleet(certificate, alpha_benign=alpha, margin=MARGIN)
    return sum(run_fleet(fleet, world.draw(rng, (EPISODES, runs))).no_worse or [])


def _count_shown(
    certificate: Certificate, alpha: float, world: World, rng: np.random.Generator, runs: int
) -> int:
    test = SequentialTest(certificate, alpha_benign=alpha, margin=MARGIN)
    return count_found(test, world.draw(rng, (EPISODES, runs)), shows_no_worse)


def _two_point(
    verdict: Verdict, low: float, high: float, mean: float, rng: np.random.Generator, shape: tuple[int, int]
) -> Array:
    return np.where(rng.random(shape) < chance_of_high(verdict, low, high, mean), high, low)


def chance_of_high(verdict: Verdict, low: float, high: float, mean: float) -> float:
    """Return the chance of the higher cost, rounded to where the verdict would be wrong."""
    return float(np.nextafter((mean - low) / (high - low), 0.0 if verdict is Verdict.ADVERSE else 1.0))


def _resample(costs: Array, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    return rng.choice(costs, size=shape)
