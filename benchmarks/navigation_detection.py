"""What the detectors say about the full setting's policy in the named worlds, at n = 10 and 50."""

from __future__ import annotations

from typing import Any

import numpy as np
from reproduction.confidence import MSP, MaxLogit

from benchmarks import trained
from boundwatch.detectors import HypothesisTest
from boundwatch.tasks.navigation.train import Recipe, Run

SEED = 0
WORLDS = dict.fromkeys(("training", "easier", "harder", "task-irrelevant"), 20480) | {
    f"windy:{speed}": 10_240 for speed in (1, 2, 3, 4, 5)
}
SIZES = (10, 50)
ALPHA = 0.04  # and the certificate's 0.01 make 5 %


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    return measure(trained.drone(Recipe(seed=SEED)))


def measure(run: Run) -> dict[str, Any]:
    """Return expected costs and how often each verdict is declared."""
    certificate = run.certificate
    tests = {
        tail: HypothesisTest(certificate, alpha_adverse=ALPHA, alpha_benign=ALPHA, tail=tail)
        for tail in ("hoeffding", "betting")
    }
    baselines = {"MSP": MSP(run.logits), "MaxLogit": MaxLogit(run.logits)}
    rows = {}
    for world, flights in WORLDS.items():
        flown = run.deploy(world, flights, seed=SEED)
        costs, logits = flown.costs, flown.logits
        row: dict[str, Any] = {"flights": flights, "expected_cost": float(costs.mean())}
        for n in SIZES:
            kept = flights // n * n
            datasets = costs[:kept].reshape(-1, n), logits[:kept].reshape(kept // n, n, -1)
            verdicts = {name: test.decide_many(datasets[0]).verdict for name, test in tests.items()}
            verdicts |= {name: test.decide_many(datasets[1]) for name, test in baselines.items()}
            row[f"n = {n}"] = {
                name: {kind: float(np.mean(found == kind)) for kind in ("adverse", "benign")}
                for name, found in verdicts.items()
            }
        rows[world] = row
    return {"seed": SEED, "upper": certificate.upper, "lower": certificate.lower, "worlds": rows}


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(f"certified {result['lower']:.4f} to {result['upper']:.4f}; adverse (benign) in % of the datasets")
    for world, row in result["worlds"].items():
        print(f"  {world:16} {row['expected_cost']:.4f}")
        for n in SIZES:
            cells = (
                f"{name} {100 * rate['adverse']:.1f} ({100 * rate['benign']:.1f})"
                for name, rate in row[f"n = {n}"].items()
            )
            print(f"    n = {n}: {', '.join(cells)}")
