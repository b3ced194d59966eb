"""Against what people use today: false alarms on stable streams, delay after a change; same streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from benchmarks.strangers.detectors import first_drift

RUNS = 400
STABLE, CHANGED, BEFORE = 500, 200, 50
RATE, NEW_RATE, BOUND = 0.1, 0.5, 0.1

Stream = NDArray[np.float64]
# From a stream of failures, and reference failures of its own, to the episode of the first alarm, 0 for none.
Detector = Callable[[Stream, Stream], int]


def ours() -> dict[str, tuple[Detector, str]]:
    """Return our detectors, and what each states."""
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=BOUND, delta=0.01, binary=True)

    def first_alarm(detector: Any) -> Detector:
        def watch(stream: Stream, _reference: Stream) -> int:
            detector.reset()
            detector.update_many(stream)
            return detector.first_alarm if detector.verdict is bw.Verdict.ADVERSE else 0

        return watch

    def certified(alpha: float) -> Detector:
        def watch(stream: Stream, reference: Stream) -> int:
            held_out = bw.Certificate.from_held_out(reference, delta=0.01, binary=True)
            return first_alarm(bw.ChangeDetector(held_out, alpha_adverse=alpha))(stream, reference)

        return watch

    change = {
        f"ChangeDetector, alpha {alpha:g}": (
            first_alarm(bw.ChangeDetector(certificate, alpha_adverse=alpha)),
            f"mean run length >= {1 / alpha:g}, P[alarm in {STABLE}] <= {min(1, STABLE * alpha):g}",
        )
        for alpha in (0.001, 0.0001)
    }
    # The bound above is the true rate. Whoever certifies from episodes has a looser one, and waits longer.
    for alpha in (0.001, 0.002):
        stated = f"mean run length >= {1 / alpha:g}, certified from 1000 episodes"
        change[f"ChangeDetector, held-out, alpha {alpha:g}"] = (certified(alpha), stated)
    return change | {
        "SequentialTest, alpha 0.04": (
            first_alarm(bw.SequentialTest(certificate)),
            "P[ever an alarm] <= 0.04",
        ),
    }


def todays() -> dict[str, tuple[Detector, str]]:
    """Return MAPIE's detector, asked what ours are asked, river's at their defaults, and what each states."""
    from mapie.exchangeability_testing import RiskMonitoring
    from river import drift

    def mapie(threshold: float | None) -> Detector:
        def watch(stream: Stream, reference: Stream) -> int:
            monitor = RiskMonitoring(
                risk="accuracy",
                warn=False,
                threshold=threshold,
                tolerance=0.0,  # by default it asks whether the risk rose by more than 5 points
            )
            if threshold is None:
                monitor.compute_threshold(np.ones(reference.size, dtype=int), 1 - reference.astype(int))
            # All at once: the history of bounds is the one that updates one by one give, and much quicker.
            monitor.update(np.ones(stream.size, dtype=int), 1 - stream.astype(int))
            above = monitor.online_risk_lower_bound_sequence_history > monitor.threshold
            return int(np.argmax(above)) + 1 if above.any() else 0

        return watch

    def river(build: Callable[[], Any]) -> Detector:
        return lambda stream, _reference: first_drift(build(), stream)

    return {
        "MAPIE RiskMonitoring, 1000 reference": (mapie(None), "P[ever an alarm] <= 0.05"),
        "MAPIE RiskMonitoring, bound given": (mapie(BOUND), "P[ever an alarm] <= 0.025"),
        "river ADWIN": (river(drift.ADWIN), "none stated"),
        "river PageHinkley": (river(drift.PageHinkley), "none stated"),
        "river HDDM_A": (river(drift.binary.HDDMA), "none stated"),
        "river HDDM_W": (river(drift.binary.HDDMW), "none stated"),
        "river DDM": (river(drift.binary.DDM), "none stated"),
    }


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rng = np.random.default_rng(2024)
    stable = (rng.random((RUNS, STABLE)) < RATE).astype(float)
    changed = (rng.random((RUNS, BEFORE + CHANGED)) < RATE).astype(float)
    changed[:, BEFORE:] = rng.random((RUNS, CHANGED)) < NEW_RATE
    # A reference for every stream: one draw for all would be a matter of luck.
    references = (np.random.default_rng(99).random((RUNS, 1000)) < RATE).astype(float)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (watch, stated) in (ours() | todays()).items():
            alarms = np.array([watch(*pair) for pair in zip(changed, references, strict=True)])
            late = np.where(alarms[alarms > BEFORE] > 0, alarms[alarms > BEFORE] - BEFORE, 0)
            missed = int((alarms == 0).sum())
            delays = np.concatenate([late, np.full(missed, np.inf)])
            median = float(np.median(delays)) if delays.size else None
            rows.append(
                {
                    "detector": name,
                    "stated": stated,
                    "false_alarms": float(
                        np.mean([watch(*pair) > 0 for pair in zip(stable, references, strict=True)])
                    ),
                    "median_delay": None if median is None or np.isinf(median) else median,
                    "missed": missed / RUNS,
                    "alarm_before_change": float(np.mean((alarms > 0) & (alarms <= BEFORE))),
                }
            )
    return {"runs": RUNS, "stable": STABLE, "before": BEFORE, "rows": rows}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    runs, stable, before = result["runs"], result["stable"], result["before"]
    print(f"{runs} streams. False alarms: share with one in {stable} stable episodes, 10 % failures.")
    print(f"Delay: {before} stable episodes, then 50 % failures; of streams without an alarm before.")
    print(f"{'detector':<38}{'false alarms':>13}{'median delay':>13}{'missed':>8}   stated")
    for row in result["rows"]:
        delay = "-" if row["median_delay"] is None else f"{row['median_delay']:.0f}"
        rates = f"{row['false_alarms']:>13.3f}{delay:>13}{row['missed']:>8.3f}"
        print(f"{row['detector']:<38}{rates}   {row['stated']}")
