"""Everybody watches the same streams: ours, MAPIE's, river's, and two that look at observations.

All promise, or are tuned to, the same: an alarm within the horizon in at most 5 % of the streams of a world
that did not change. Ours and MAPIE's have that as a stated level. The others have none, so the sensitivity of
each is set, per task and number of reference episodes, to the highest at which at most 5 % of other streams
of the usual world alarm. They see the whole pool for that, which nobody with only the reference could do.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

import boundwatch as bw
from benchmarks.strangers.rollouts import SEED, Pool
from benchmarks.strangers.tasks import USUAL

LEVEL = 0.05
DELTA_UPPER = 0.005
SOON = 50


@dataclass(frozen=True)
class Draw:
    """One reference and one stream per world: numbers of episodes in the pools.

    Episodes are drawn without replacement, and those of the stream of the usual world after those of the
    largest reference: each draw is distributed like fresh episodes. Draws share the pools.
    """

    reference: np.ndarray
    streams: dict[str, np.ndarray]

    def cut(self, size: int) -> Draw:
        """Return the same streams with a shorter reference."""
        return Draw(self.reference[:size], self.streams)


class Data:
    """The episodes of a task in all worlds."""

    def __init__(self, usual: Pool, others: dict[str, Pool]) -> None:
        self.pools = {USUAL.name: usual} | others
        self.failures = {name: pool.failures.astype(float) for name, pool in self.pools.items()}

    def draws(self, count: int, largest: int, horizon: int, salt: int) -> Iterator[Draw]:
        """Draw references and streams."""
        rng = np.random.default_rng([SEED, salt])
        for _ in range(count):
            usual = rng.permutation(self.failures[USUAL.name].size)
            streams = {
                name: rng.permutation(failures.size)[:horizon] for name, failures in self.failures.items()
            }
            streams[USUAL.name] = usual[largest : largest + horizon]
            yield Draw(usual[:largest], streams)

    def costs(self, draw: Draw) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the failures of a draw's reference and streams."""
        streams = {name: self.failures[name][numbers] for name, numbers in draw.streams.items()}
        return self.failures[USUAL.name][draw.reference], streams

    @cached_property
    def standardized(self) -> dict[str, np.ndarray]:
        """What input detectors see, in units of the usual world; what never varies there is left out."""
        usual = self.pools[USUAL.name].features
        center, spread = usual.mean(axis=0), usual.std(axis=0)
        varies = spread > 1e-9 * (1 + np.abs(center))
        return {
            name: (pool.features[:, varies] - center[varies]) / spread[varies]
            for name, pool in self.pools.items()
        }

    @cached_property
    def kernels(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Gaussian kernels of each world's episodes: with the usual world's, and among themselves."""
        usual = self.standardized[USUAL.name]
        some = usual[:500]
        width = np.median(_squares(some, some)[np.triu_indices(len(some), 1)])

        def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            return np.exp(-_squares(a, b) / width).astype(np.float32)

        return {name: (kernel(usual, seen), kernel(seen, seen)) for name, seen in self.standardized.items()}


def _squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1)[None] - 2 * a @ b.T, 0.0)


# From a draw to the episode of the first alarm in each world, 0 for none.
Alarms = dict[str, int]
Detector = Callable[[Draw], Alarms]
# From data, reference size, horizon and draws to tune with, to a detector and what was tuned (None: nothing).
Builder = Callable[[Data, int, list[Draw]], tuple[Detector, float | None]]


def certificate(failures: np.ndarray) -> bw.Certificate:
    """Return the certificate that ours compares with."""
    return bw.Certificate.from_held_out(successes=~failures.astype(bool), delta=2 * DELTA_UPPER)


def sequential(data: Data, size: int, _tuning: list[Draw]) -> tuple[Detector, None]:
    """`SequentialTest`, read after every episode."""
    tests: dict[int, bw.SequentialTest] = {}  # a certificate of 0s and 1s is known by its number of failures

    def watch(draw: Draw) -> Alarms:
        reference, streams = data.costs(draw)
        failures = int(reference.sum())
        if failures not in tests:
            promise = certificate(np.arange(size) < failures)
            tests[failures] = bw.SequentialTest(promise, alpha_adverse=LEVEL - DELTA_UPPER)
        test, alarms = tests[failures], {}
        for name, costs in streams.items():
            test.reset()
            test.update_many(costs)
            alarms[name] = (test.first_alarm or 0) if test.verdict is bw.Verdict.ADVERSE else 0
        return alarms

    return watch, None


def mapie(data: Data, _size: int, _tuning: list[Draw]) -> tuple[Detector, None]:
    """MAPIE's `RiskMonitoring`; without its tolerance of 5 points, so that it asks what we ask."""
    from mapie.exchangeability_testing import RiskMonitoring

    def watch(draw: Draw) -> Alarms:
        reference, streams = data.costs(draw)
        monitor = RiskMonitoring("accuracy", LEVEL, tolerance=0.0, warn=False)
        monitor.compute_threshold(np.ones(reference.size, dtype=int), 1 - reference.astype(int))
        alarms = {}
        for name, costs in streams.items():
            above = _mapie_bounds(costs.astype(bool).tobytes()) > monitor.threshold
            alarms[name] = int(np.argmax(above)) + 1 if above.any() else 0
        return alarms

    return watch, None


@lru_cache(maxsize=20_000)
def _mapie_bounds(failures: bytes) -> np.ndarray:
    """Return MAPIE's lower limits on the failure rate after every episode, whatever the reference."""
    from mapie.exchangeability_testing import RiskMonitoring

    failed = np.frombuffer(failures, dtype=bool)
    monitor = RiskMonitoring("accuracy", LEVEL, threshold=1.0, warn=False)
    # All at once: the history of limits is the one that updates one by one give.
    monitor.update(np.ones(failed.size, dtype=int), 1 - failed.astype(int))
    return np.asarray(monitor.online_risk_lower_bound_sequence_history)


def river(build: Callable[[float], Any], settings: np.ndarray) -> Builder:
    """Return one of river's detectors, fed with the reference first; `settings` go from deaf to sensitive."""

    def prepare(data: Data, _size: int, tuning: list[Draw]) -> tuple[Detector, float]:
        def watch_with(setting: float, draw: Draw, names: list[str]) -> Alarms:
            reference, streams = data.costs(draw)
            taught = build(setting)
            for cost in reference.astype(int).tolist():
                taught.update(cost)
            return {name: first_drift(copy.deepcopy(taught), streams[name]) for name in names}

        def too_many(setting: float) -> bool:
            hits = sum(watch_with(setting, draw, [USUAL.name])[USUAL.name] > 0 for draw in tuning)
            return hits > LEVEL * len(tuning)

        low, high = 0, settings.size  # the answer is the last of settings[:high] that is not too sensitive
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if too_many(settings[middle]) else (middle, high)
        chosen = float(settings[low])
        return lambda draw: watch_with(chosen, draw, list(draw.streams)), chosen

    return prepare


def first_drift(detector: Any, costs: np.ndarray) -> int:
    """Return the episode at which a detector of river alarms, 0 for none."""
    for episode, cost in enumerate(costs.astype(int).tolist(), start=1):
        detector.update(cost)
        if detector.drift_detected:
            return episode
    return 0


def adwin(delta: float) -> Any:
    """Return ADWIN, checked after every episode instead of every 32."""
    from river import drift

    return drift.ADWIN(delta=delta, clock=1)


def page_hinkley(threshold: float) -> Any:
    """Return Page-Hinkley for rises only."""
    from river import drift

    return drift.PageHinkley(threshold=threshold, mode="up")


def hddm(confidence: float) -> Any:
    """Return HDDM with A-test."""
    from river import drift

    return drift.binary.HDDMA(drift_confidence=confidence, warning_confidence=min(1.0, 2 * confidence))


# After every episode of a stream, how different the observations look; for these worlds of a draw.
Statistic = Callable[[Data, Draw, list[str]], dict[str, np.ndarray]]


def observations(statistic: Statistic) -> Builder:
    """Return a detector of changed observations: alarm when a statistic, read each time, is too large."""

    def prepare(data: Data, _size: int, tuning: list[Draw]) -> tuple[Detector, float]:
        peaks = [float(statistic(data, draw, [USUAL.name])[USUAL.name].max()) for draw in tuning]
        # At most 5 % of the streams to tune with are above it.
        threshold = float(np.sort(peaks)[len(peaks) - 1 - math.floor(LEVEL * len(peaks))])

        def watch(draw: Draw) -> Alarms:
            alarms = {}
            for name, values in statistic(data, draw, list(draw.streams)).items():
                above = values > threshold
                alarms[name] = int(np.argmax(above)) + 1 if above.any() else 0
            return alarms

        return watch, threshold

    return prepare


def kolmogorov_smirnov(data: Data, draw: Draw, names: list[str]) -> dict[str, np.ndarray]:
    """Return the largest scaled Kolmogorov-Smirnov distance of all features, at 64 reference quantiles."""
    reference = np.sort(data.standardized[USUAL.name][draw.reference], axis=0)
    size = len(reference)
    places = np.unique(np.linspace(0, size - 1, 64).round().astype(int))
    edges, paths = reference[places], {}
    expected = np.array(
        [np.searchsorted(one, edge, "right") for one, edge in zip(reference.T, edges.T, strict=True)]
    ).T
    for name in names:
        stream = data.standardized[name][draw.streams[name]]
        after = np.arange(1, len(stream) + 1)
        counts = np.cumsum(stream[:, None] <= edges, axis=0, dtype=np.float32)
        distance = np.abs(counts / after[:, None, None] - expected / size).max(axis=(1, 2))
        smaller = np.cumsum(stream < edges[0], axis=0).max(axis=1) / after  # than all of the reference
        paths[name] = np.sqrt(after * size / (after + size)) * np.maximum(distance, smaller)
    return paths


def mean_discrepancy(data: Data, draw: Draw, names: list[str]) -> dict[str, np.ndarray]:
    """Return the scaled maximum mean discrepancy (squared; Gaussian kernel, median width)."""
    chosen, size, paths = draw.reference, draw.reference.size, {}
    among = data.kernels[USUAL.name][1][np.ix_(chosen, chosen)].mean(dtype=float)
    for name in names:
        (across, within), stream = data.kernels[name], draw.streams[name]
        after = np.arange(1, stream.size + 1)
        sums = within[np.ix_(stream, stream)].astype(float).cumsum(axis=0).cumsum(axis=1).diagonal()
        crossed = across[np.ix_(chosen, stream)].mean(axis=0, dtype=float).cumsum()
        squared = among + sums / after**2 - 2 * crossed / after
        paths[name] = after * size / (after + size) * squared
    return paths


OURS = "boundwatch"
DETECTORS: dict[str, Builder] = {
    OURS: sequential,
    "MAPIE": mapie,
    "river Page-Hinkley": river(page_hinkley, np.geomspace(200, 0.05, 48)),
    "river ADWIN": river(adwin, np.geomspace(1e-8, 0.999, 48)),
    "river HDDM_A": river(hddm, np.geomspace(1e-10, 0.5, 48)),
    "observations, KS": observations(kolmogorov_smirnov),
    "observations, MMD": observations(mean_discrepancy),
}


def compare(
    data: Data,
    *,
    references: tuple[int, ...],
    horizon: int,
    runs: int,
    names: Iterable[str] = tuple(DETECTORS),
) -> dict[str, Any]:
    """Return, for detectors and reference sizes, trials to alarm and shares of streams with an alarm."""
    tuning = list(data.draws(runs, max(references), horizon, salt=1))
    watched = list(data.draws(runs, max(references), horizon, salt=2))
    answer: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            for size in references:
                watch, setting = DETECTORS[name](data, size, [draw.cut(size) for draw in tuning])
                alarms = [watch(draw.cut(size)) for draw in watched]
                answer.setdefault(name, {})[str(size)] = {
                    "setting": setting,
                    "worlds": {
                        world: summary(np.array([alarm[world] for alarm in alarms]), horizon)
                        for world in data.failures
                    },
                }
    return answer


def summary(alarms: np.ndarray, horizon: int) -> dict[str, float]:
    """Return mean trials, counted to the horizon, their standard error, and shares with an alarm by then."""
    trials = np.where(alarms > 0, alarms, horizon)
    return {
        "trials": float(trials.mean()),
        "error": float(trials.std(ddof=1) / math.sqrt(trials.size)),
        "by_50": float(((alarms > 0) & (alarms <= SOON)).mean()),
        "found": float((alarms > 0).mean()),
    }
