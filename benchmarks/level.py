"""Level: the exact probability of a false alarm within 2,000 episodes, for costs of 0 and 1, both sides."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from reproduction.judging import fewest_failures

import boundwatch as bw
from benchmarks.worlds import ALPHA
from boundwatch.detectors.mixture import alarm_counts, alarm_distribution

HORIZON = 2000
BOUNDS = (0.05, 0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 0.9, 0.95)


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rows = []
    for bound in BOUNDS:
        row: dict[str, Any] = {"bound": bound}
        for kind, binary in (("binary", True), ("bounded", False)):
            # The benign side at a lower bound L is the adverse side at 1 - L with successes for failures.
            cert = bw.Certificate.from_bounds(lower=1 - bound, upper=1.0, delta=0.01, binary=binary)
            benign = bw.SequentialTest(cert, alpha_benign=ALPHA)
            cert = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=binary)
            adverse = bw.SequentialTest(cert, alpha_adverse=ALPHA)
            for side, test, threshold in (
                ("adverse", adverse, adverse.thresholds[0]),
                ("benign", benign, benign.thresholds[1]),
            ):
                needed = alarm_counts(test.bets, bound, math.log(threshold), HORIZON)
                row[f"{kind}_{side}"] = max(
                    float(alarm_distribution(needed, rate)[0].sum())
                    for rate in np.linspace(0.1, 1, 10) * bound
                )
        for tail in ("exact", "hoeffding"):
            counts = [1] + [fewest_failures(tail, ALPHA, n, bound) for n in range(1, HORIZON + 1)]
            row[f"peeked_{tail}"] = float(alarm_distribution(np.array(counts), bound)[0].sum())
        rows.append(row)
    kept = all(
        row[f"{k}_{s}"] <= ALPHA for row in rows for k in ("binary", "bounded") for s in ("adverse", "benign")
    )
    return {"alpha": ALPHA, "horizon": HORIZON, "rows": rows, "kept": kept}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(f"Probability of a false alarm within {result['horizon']} episodes, alpha = {result['alpha']}")
    print("(largest over ten means up to the bound; exact; the last two read a fixed-n test every time)")
    names = [
        "binary_adverse",
        "binary_benign",
        "bounded_adverse",
        "bounded_benign",
        "peeked_exact",
        "peeked_hoeffding",
    ]
    print(f"{'bound':>6}" + "".join(f"{name:>18}" for name in names))
    for row in result["rows"]:
        print(f"{row['bound']:>6}" + "".join(f"{row[name]:>18.4f}" for name in names))
    print("level kept:", result["kept"])
