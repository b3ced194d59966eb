"""How errors are counted: in datasets that are looked at once, and in streams that are read often."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import ChangeDetector, Fleet, SequentialTest, Verdict
from boundwatch.detectors.discovery import DiscoveryShares
from boundwatch.detectors.fixed_sample import Findings, FixedSampleDetector
from boundwatch.selftest.worlds import Array, Claim, Flags, Levels, World

EPISODES, STREAMS, ROBOTS, LOOKS, RESTARTS = 200, 5, 20, 10, 40
RATE, MARGIN = 0.05, 0.1
_AT_ONCE = 4096  # costs that a fleet sees with one call: a call for each episode takes longer than the test
_READ = (10, 50, 200)  # the numbers of new trials at which limits are read that hold at all times


@dataclass(frozen=True)
class Datasets:
    """Datasets of n new trials, looked at once; `errs` says which are answered wrongly."""

    world: World
    detector: Callable[[Certificate], FixedSampleDetector]
    n: int
    errs: Callable[[World, Certificate, Findings], Flags]
    more: float = 0.0
    """By how much the mean of the new trials exceeds that of the world."""

    def __call__(self, rng: np.random.Generator, runs: int) -> int:
        """Return how often one is answered wrongly."""
        hits = 0
        for certificate, count in self.world.certify(rng, runs):
            costs, times = self.world.datasets(rng, (count, self.n), self.more)
            detector = self.detector(certificate)
            found = detector.decide_many(costs)
            hits += int(times[self.errs(self.world, detector.certificate, found)].sum())
        return hits


def is_declared(world: World, certificate: Certificate, found: Findings) -> Flags:  # noqa: ARG001
    """Return which findings have the wrong verdict."""
    return np.asarray(found.verdict == world.verdict)


def is_excluded(world: World, certificate: Certificate, found: Any) -> Flags:
    """Return whether the limits of a finding, or of many, exclude the true shift."""
    shift = world.true_shift(certificate)
    if world.is_adverse:
        return np.asarray(found.shift_lower > shift + 1e-9)
    return np.asarray(found.shift_upper < shift - 1e-9)


def is_shown(world: World, certificate: Certificate, found: Findings) -> Flags:  # noqa: ARG001
    """Return which findings say that the cost rose by no more than the margin."""
    return np.zeros(found.verdict.size, dtype=np.bool_) if found.no_worse is None else found.no_worse


def alphas(levels: Levels, share: int = 1) -> dict[str, Any]:
    """Return levels, or one of several equal shares of them, by the names that detectors give them."""
    return {f"alpha_{verdict.value}": level / share for verdict, level in levels.items()}


@dataclass(frozen=True)
class Streams:
    """Streams of a world; `errs` counts those that are answered wrongly, or groups of them."""

    world: World
    levels: Levels
    errs: Callable[[Watched], int]
    more: float = 0.0
    """By how much the mean of the streams exceeds that of the world."""
    per_run: int = 1
    in_rows: bool = False
    """Whether they are drawn one after the other, as they are read."""

    def __call__(self, rng: np.random.Generator, runs: int) -> int:
        """Return how often one is answered wrongly."""
        hits = 0
        for certificate, count in self.world.certify(rng, runs):
            shape = EPISODES, self.per_run * count
            drawn = self.world.draw(rng, shape[::-1] if self.in_rows else shape, self.more)
            columns = drawn.T if self.in_rows else drawn
            hits += self.errs(Watched(self.world, self.levels, certificate, columns))
        return hits


def claim(name: str, promised: float, count: Datasets | Streams, scale: float = 1.0) -> Claim:
    """Return the promise that wrong answers are rare."""
    return Claim(name, count.world.verdict, count.world.describe(count.more), promised, count, scale)


@dataclass(frozen=True)
class Watched:
    """Streams, one per column, that are watched with a certificate; its methods count wrong answers."""

    world: World
    levels: Levels
    certificate: Certificate
    streams: Array

    def declared_by_fleet(self) -> int:
        """Count streams with the wrong verdict."""
        return int(_is(self.world.verdict, self._fleet(self.levels).verdicts).sum())

    def shown_by_fleet(self) -> int:
        """Count streams that are wrongly called no worse by more than the margin."""
        return sum(self._fleet(self.levels, MARGIN).no_worse or [])

    def declared_by_test(self) -> int:
        """Count streams with the wrong verdict, one by one."""
        return self._count_declared(self._test(), self.streams)

    def shown_by_test(self) -> int:
        """Count streams that are wrongly called no worse by more than the margin, one by one."""
        return sum(bool(found.no_worse) for found in _last_findings(self._test(MARGIN), self.streams))

    def declared_by_change_detector(self) -> int:
        """Count streams in which a change is declared."""
        return self._count_declared(ChangeDetector(self.certificate), self.streams)

    def missed_by_limits(self) -> int:
        """Count streams whose limits on the shift err at any of three looks, whatever the e-values say."""
        missed = np.zeros(self.streams.shape[1], dtype=np.bool_)
        for n in _READ:
            # Streams of the same costs, in whatever order, have the same limits: an alarm on the way can only
            # move one to zero, which excludes nothing.
            ordered = np.sort(self.streams[:n], axis=0)
            _, first, group = np.unique(ordered, axis=1, return_index=True, return_inverse=True)
            found = _last_findings(self._test(), self.streams[:n, first])
            wrong = [bool(is_excluded(self.world, self.certificate, each)) for each in found]
            missed |= np.array(wrong)[group.ravel()]
        return int(missed.sum())

    def declared_in_families(self) -> int:
        """Count families of robots that share a certificate, of which any has the wrong verdict."""
        # A fleet is quick. Each of its streams spends the whole delta, which taken together is far too much.
        shares = {verdict: level / ROBOTS for verdict, level in self.levels.items()}
        near = _is(self.world.verdict, self._fleet(shares).verdicts).reshape(-1, ROBOTS)
        test, families = self._test(sharing=ROBOTS), self.streams.reshape(EPISODES, -1, ROBOTS)
        return sum(
            self._count_declared(test, families[:, run, robots]) > 0
            for run, robots in enumerate(near)
            if robots.any()
        )

    def listed(self) -> int:
        """Count fleets of a few streams, none of them worse, that list one at any of ten looks."""
        # These streams share half the rate: nothing is listed with an e-value below two over the rate, and a
        # test with the rate for its level alarms before.
        fleet = run_fleet(listing_fleet(self.certificate), self.streams)
        return self._count_lists(_is(Verdict.ADVERSE, fleet.verdicts).reshape(-1, STREAMS))

    def listed_after_restarts(self) -> int:
        """Count the same where streams without evidence restart after each look."""
        runs = self.streams.shape[1] // STREAMS
        fleet, rolls = listing_fleet(self.certificate), [DiscoveryShares() for _ in range(runs)]
        near = np.zeros((runs, STREAMS), dtype=np.bool_)
        for costs in self.streams.reshape(RESTARTS, -1, STREAMS * runs):
            evidence = run_fleet(fleet, costs).e_adverse
            shares = np.exp([roll.look(STREAMS) for roll in rolls])
            # Not even a list of all streams could hold one with less.
            near |= evidence.reshape(runs, STREAMS) * shares >= 1 / (STREAMS * RATE)
            for stream in np.flatnonzero(evidence < 1).tolist():
                fleet.reset(stream)
                rolls[stream // STREAMS].restart(stream % STREAMS)
        return self._count_lists(near, restarting=True)

    def _count_lists(self, near: Flags, *, restarting: bool = False) -> int:
        split = self.streams.reshape(RESTARTS if restarting else LOOKS, -1, len(near), STREAMS)
        return sum(
            _lists(self.certificate, split[:, :, run], restarting=restarting)
            for run, streams in enumerate(near)
            if streams.any()
        )

    def _fleet(self, levels: Levels, margin: float | None = None) -> Fleet:
        return run_fleet(Fleet(self.certificate, margin=margin, **alphas(levels)), self.streams)

    def _test(self, margin: float | None = None, sharing: int = 1) -> SequentialTest:
        levels = alphas(self.levels, sharing)
        return SequentialTest(self.certificate, margin=margin, sharing=sharing, **levels)

    def _count_declared(self, detector: SequentialTest | ChangeDetector, streams: Array) -> int:
        return sum(found.verdict is self.world.verdict for found in _last_findings(detector, streams))


def _is(verdict: Verdict, verdicts: Sequence[Verdict]) -> Flags:
    return np.array([found is verdict for found in verdicts])


def run_fleet(fleet: Fleet, streams: Array) -> Fleet:
    """Let a fleet see streams, one per column."""
    rows = max(1, _AT_ONCE // streams.shape[1])
    for start in range(0, len(streams), rows):
        part = streams[start : start + rows]
        fleet.update(np.tile(np.arange(part.shape[1]), len(part)), part.ravel())
    return fleet


def listing_fleet(certificate: Certificate) -> Fleet:
    """Return a fleet for its list. Its levels have no say there, and equal ones have one line of alarms."""
    return Fleet(certificate, alpha_adverse=RATE, alpha_benign=RATE)


def _lists(certificate: Certificate, looks: Array, *, restarting: bool) -> bool:
    fleet = listing_fleet(certificate)
    for costs in looks:
        fleet.update(np.tile(np.arange(STREAMS), len(costs)), costs.ravel())
        if fleet.discoveries(RATE):
            return True
        for stream in np.flatnonzero(fleet.e_adverse < 1).tolist() if restarting else ():
            fleet.reset(stream)
    return False


def _last_findings(detector: SequentialTest | ChangeDetector, streams: Array) -> Iterator[Any]:
    """Yield the last finding of each stream: what was found once stays found."""
    for stream in streams.T:
        detector.reset()
        yield detector.update_many(stream)
