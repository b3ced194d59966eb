"""What is promised of the mean over tasks, whatever the tasks are like."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from boundwatch.bounds.rounds import equal_weights, refuted_by_rounds
from boundwatch.certificates.certificate import Certificate
from boundwatch.detectors import Verdict
from boundwatch.selftest.worlds import Array, Claim, Levels

# Failure rates of tasks that differ: pooled trials vary twice as much as those within a task.
TABLE = np.array([0.02, 0.05, 0.3, 0.9])
_ROUNDS = 40
_AT_ONCE = 500  # streams; more would fill the memory
_SIDES = {Verdict.ADVERSE: "upper", Verdict.BENIGN: "lower"}


def claims_of_rounds(certificate: Certificate, levels: Levels) -> Iterator[Claim]:
    """Return what is promised of limits in rounds: of the certificate's own tasks if it has been made so."""
    rates, weights, rounds = TABLE, equal_weights(TABLE.size), _ROUNDS
    spent = levels
    if certificate.method == "rounds":
        rates = np.array([each.mean_cost for each in certificate.strata])
        weights = np.array([each.weight for each in certificate.strata])
        rounds = certificate.strata[0].n
        spent = {Verdict.ADVERSE: certificate.delta_upper, Verdict.BENIGN: certificate.delta_lower}
    for verdict, delta in spent.items():
        count = partial(_count_failed, rates, weights, rounds, verdict, delta)
        name = f"campaign in rounds, {_SIDES[verdict]} limit after each of {rounds}"
        world = f"{rates.size} tasks that fail in {rates.min():.2g} to {rates.max():.2g} of trials"
        yield Claim(name, verdict, world, delta, count, scale=max(1.0, 0.05 / delta))


def _count_failed(
    rates: Array,
    weights: Array,
    rounds: int,
    verdict: Verdict,
    delta: float,
    rng: np.random.Generator,
    runs: int,
) -> int:
    """Count streams whose limit excludes the mean after any round."""
    mean, failed = float(rates @ weights), 0
    for start in range(0, runs, _AT_ONCE):
        shape = min(_AT_ONCE, runs - start), rounds, rates.size
        costs = (rng.random(shape) < rates).astype(np.float64)
        if verdict is Verdict.BENIGN:
            costs = 1 - costs
        truth = mean if verdict is Verdict.ADVERSE else 1 - mean
        failed += int(refuted_by_rounds(costs, truth, delta, weights).sum())
    return failed
