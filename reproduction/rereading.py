"""Detectors along a stream: those for a fixed sample, reread after every trial, and the sequential test."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from boundwatch import Certificate, SequentialTest, Verdict
from boundwatch.bounds.bets import Bets
from boundwatch.detectors.mixture import alarm_counts, alarm_distribution, exact_threshold
from boundwatch.detectors.verdicts import TailName
from reproduction.artifacts import Array
from reproduction.judging import confidence_interval, fewest_failures, hypothesis_test

READERS = {
    "hoeffding": "Hoeffding test, read after every trial",
    "interval": "Hoeffding interval, read after every trial",
    "exact": "exact test, read after every trial",
    "sequential": "sequential test",
}
PAPERS = ("hoeffding", "interval")
"""The paper's detectors."""
TAILS: dict[str, TailName] = {"hoeffding": "hoeffding", "interval": "hoeffding", "exact": "exact"}


def levels_at(alpha: float, delta: float) -> dict[str, float]:
    """Return the level of each reader: of some, what the certificate's delta leaves of the rate.

    Examples
    --------
    >>> levels_at(0.05, 0.01)["hoeffding"], levels_at(0.05, 0.01)["interval"]
    (0.05, 0.04)
    """
    return {"hoeffding": alpha, "interval": alpha - delta, "exact": alpha, "sequential": alpha - delta}


def curves(certificate: Certificate, alpha: float, stream: Array) -> dict[str, list[float]]:
    """Return every indicator after 1, 2, … trials of one stream, those of fixed samples included."""
    test, interval = hypothesis_test(certificate, alpha), confidence_interval(certificate, alpha)
    watch = sequential_test(certificate, alpha)
    prefixes = [stream[: n + 1] for n in range(stream.size)]
    return {
        "hypothesis-test": [1 - test.decide(prefix).p_adverse for prefix in prefixes],
        "confidence-interval": [interval.decide(prefix).shift_lower + 0.95 for prefix in prefixes],
        "sequential-test": [1 - watch.update(cost).p_adverse for cost in stream.tolist()],
    }


def first_alarms(certificate: Certificate, alpha: float, rows: Array) -> dict[str, list[int]]:
    """Return the trial of the first ADVERSE in each stream, 0 for none."""
    n, failures = rows.shape[1], rows.cumsum(axis=1)
    levels = levels_at(alpha, certificate.delta_upper)
    found = {}
    for name, tail in TAILS.items():
        needed = [fewest_failures(tail, levels[name], k, certificate.upper) for k in range(1, n + 1)]
        alarmed = failures >= needed
        found[name] = np.where(alarmed.any(axis=1), alarmed.argmax(axis=1) + 1, 0).tolist()
    test = sequential_test(certificate, alpha)
    found["sequential"] = [first_alarm(test, stream) for stream in rows]
    return found


def first_alarm(test: SequentialTest, stream: Array) -> int:
    """Return the trial of the test's first ADVERSE in a stream, 0 for none."""
    test.reset()
    test.update_many(stream)
    return (test.first_alarm or 0) if test.verdict is Verdict.ADVERSE else 0


def sequential_test(certificate: Certificate, alpha: float) -> SequentialTest:
    """Return the test that errs at most at this rate on either side, the certificate's delta included."""
    return SequentialTest(
        certificate,
        alpha_adverse=alpha - certificate.delta_upper,
        alpha_benign=alpha - certificate.delta_lower,
    )


@dataclass(frozen=True)
class Looking:
    """What looking after every trial does, at a failure rate equal to the certified bound."""

    bound: float
    false_alarms: dict[str, list[float]]
    """The exact probability of one within 1, 2, … trials, by reader."""


def looking(bound: float, alpha: float, delta: float, horizon: int) -> Looking:
    """Look so many times with every reader.

    Examples
    --------
    >>> found = looking(0.1, 0.05, 0.01, 10).false_alarms
    >>> {reader: round(series[-1], 4) for reader, series in found.items()}
    {'hoeffding': 0.0139, 'interval': 0.0126, 'exact': 0.0554, 'sequential': 0.0206}
    """
    series, levels = {}, levels_at(alpha, delta)
    for name, tail in TAILS.items():
        least = [fewest_failures(tail, levels[name], n, bound) for n in range(1, horizon + 1)]
        series[name] = alarm_distribution(np.array([1, *least]), bound)[0].cumsum()[1:].tolist()
    test = sequential_test(Certificate.from_bounds(lower=0.0, upper=bound, delta=delta, binary=True), alpha)
    threshold = exact_threshold(bound, test.alpha_adverse)
    needed = alarm_counts(Bets.for_costs(binary=True), bound, math.log(threshold), horizon)
    series["sequential"] = alarm_distribution(needed, bound)[0].cumsum()[1:].tolist()
    return Looking(bound, series)
