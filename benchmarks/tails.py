"""Power of the fixed-sample tails on the grid: what the default tail was chosen by."""

from __future__ import annotations

from typing import Any

import numpy as np

import boundwatch as bw
from benchmarks.worlds import ALPHA, GRID
from boundwatch.detectors.fixed_sample import TAILS

SIZES = (5, 10, 25, 50)
RUNS = 5000


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rows = []
    for index, (bound, world) in enumerate(GRID):
        costs = world.draw(np.random.default_rng([index, 5]), RUNS * max(SIZES)).reshape(RUNS, -1)
        cert = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=world.rate is not None)
        for tail in TAILS:
            if tail == "exact" and not cert.binary:
                continue
            test = bw.HypothesisTest(cert, alpha_adverse=ALPHA, tail=tail)
            power = {
                str(n): float((test.decide_many(costs[:, :n]).verdict == bw.Verdict.ADVERSE).mean())
                for n in SIZES
            }
            rows.append(
                {"bound": bound, "world": world.name, "binary": cert.binary, "tail": tail, "power": power}
            )
    mean = {
        kind: {
            tail: float(
                np.mean(
                    [
                        v
                        for r in rows
                        if r["binary"] == binary and r["tail"] == tail
                        for v in r["power"].values()
                    ]
                )
            )
            for tail in TAILS
            if binary or tail != "exact"
        }
        for kind, binary in (("binary", True), ("bounded", False))
    }
    return {"alpha": ALPHA, "runs": RUNS, "rows": rows, "mean_power": mean}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(
        f"Power of the hypothesis test by tail, alpha = {result['alpha']}, {result['runs']} datasets per cell"
    )
    print(f"{'bound':>6}  {'new costs':<22}{'tail':<11}" + "".join(f"{f'n = {n}':>9}" for n in SIZES))
    for row in result["rows"]:
        cells = "".join(f"{value:>9.3f}" for value in row["power"].values())
        print(f"{row['bound']:>6}  {row['world']:<22}{row['tail']:<11}{cells}")
    for kind, powers in result["mean_power"].items():
        print(
            f"mean over {kind} cells and n:",
            ", ".join(f"{tail} {power:.3f}" for tail, power in powers.items()),
        )
