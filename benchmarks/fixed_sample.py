"""Speed of decide_many on 21 x 2000 datasets of 50 costs, beside one decide a dataset; cost of the import."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import numpy as np

import boundwatch as bw

DATASETS, EPISODES, SINGLE = 21 * 2000, 50, 200


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rng = np.random.default_rng(3)
    bounded = np.where(rng.random((DATASETS, EPISODES)) < 0.35, 0.0, rng.random((DATASETS, EPISODES)))
    tails = {}
    for tail in ("hoeffding", "kl", "exact", "betting"):
        binary = tail == "exact"
        certificate = bw.Certificate.from_bounds(lower=0.25, upper=0.3, delta=0.01, binary=binary)
        costs = bounded.round() if binary else bounded
        detector = bw.ConfidenceInterval(certificate, tail=tail)
        many = min(seconds(lambda d=detector, c=costs: d.decide_many(c)) for _ in range(3))
        one_by_one = seconds(lambda d=detector, c=costs: [d.decide(row) for row in c[:SINGLE]])
        tails[tail] = {
            "decide_many_seconds": many,
            "times_faster_than_decide": one_by_one / SINGLE * DATASETS / many,
        }
    return {"datasets": DATASETS, "episodes": EPISODES, "tails": tails, "import_seconds": import_seconds()}


def import_seconds() -> float:
    """Return what ``import boundwatch`` adds to numpy and scipy, the best of five fresh interpreters."""
    code = (
        "import time, numpy, scipy\nstart = time.perf_counter()\nimport boundwatch\n"
        "print(time.perf_counter() - start)"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(5))


def seconds(call: Any) -> float:
    """Time a call."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(f"{result['datasets']} datasets of {result['episodes']} costs, verdicts and p-values")
    for tail, numbers in result["tails"].items():
        print(
            f"{tail:<12}{numbers['decide_many_seconds']:>8.3f} s"
            f"{numbers['times_faster_than_decide']:>8.0f} times faster than one decide each"
        )
    print(f"import boundwatch, beyond numpy and scipy: {result['import_seconds']:.2f} s")
