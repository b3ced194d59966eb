"""Trials to alarm and false alarms with predicted costs, beside `SequentialTest` on the same streams."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

import boundwatch as bw

ALPHA = 0.05
MOST = 400
CELLS = [(0.2, 0.35), (0.1, 0.3), (0.3, 0.45), (0.05, 0.2)]
# Kind of predictor, correlation of its prediction with the cost.
PREDICTORS = [
    ("calibrated", 0.5),
    ("calibrated", 0.8),
    ("calibrated", 0.95),
    ("useless", 0.8),
    ("inverted", 0.8),
    ("optimistic", 0.8),
]
SCENES = (1, 5, 20)


def run(runs: int = 1000, seed: int = 2024) -> dict[str, Any]:
    """Measure, and return the numbers."""
    power, null = [], []
    for bound, rate in CELLS:
        for kind, correlation in PREDICTORS:
            power.append(measure(bound, rate, kind, correlation, 10, runs, seed))
    for bound in (0.1, 0.3):
        for k in SCENES:
            for kind in ("calibrated", "useless", "inverted", "optimistic"):
                null.append(measure(bound, bound, kind, 0.8, k, runs, seed + 1))
            null.append(measure(bound, bound, "calibrated", 0.8, k, runs, seed + 2, binary=False))
    return {"alpha": ALPHA, "runs": runs, "seed": seed, "power": power, "null": null}


def measure(
    bound: float,
    rate: float,
    kind: str,
    correlation: float,
    k: int,
    runs: int,
    seed: int,
    binary: bool = True,
) -> dict[str, Any]:
    """Return mean trials to ADVERSE and the share of runs that reach it, with and without predictions."""
    rng = np.random.default_rng(
        [seed, int(1e6 * bound), int(1e6 * rate), int(100 * correlation), k, len(kind)]
    )
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=binary)
    taken: dict[str, list[float]] = {"predicted": [], "alone": []}
    for _ in range(runs):
        costs, scenes, others = draw(rng, rate, kind, correlation, k, binary)
        helped = bw.PredictedTest(certificate, alpha_adverse=ALPHA)
        alone = bw.SequentialTest(certificate, alpha_adverse=ALPHA)
        for start in range(0, MOST, 40):  # in parts, so that nobody waits for what comes after the alarm
            part = slice(start, start + 40)
            if helped.verdict is not bw.Verdict.ADVERSE:
                helped.update_many(costs[part], scenes[part], list(others[part]))
            if alone.verdict is not bw.Verdict.ADVERSE:
                alone.update_many(costs[part])
        for name, test in (("predicted", helped), ("alone", alone)):
            adverse = test.verdict is bw.Verdict.ADVERSE
            taken[name].append(float(test.first_alarm or MOST) if adverse else math.inf)
    row: dict[str, Any] = {
        "bound": bound, "rate": rate, "predictor": kind, "correlation": correlation, "k": k, "binary": binary,
    }  # fmt: skip
    for name, values in taken.items():
        stopped = np.minimum(values, MOST)
        row[name] = float(stopped.mean())
        row[f"{name}_error"] = float(stopped.std() / math.sqrt(runs))
        row[f"{name}_alarms"] = float(np.isfinite(values).mean())
    row["saved"] = 1 - row["predicted"] / row["alone"]
    return row


def draw(
    rng: np.random.Generator, rate: float, kind: str, correlation: float, k: int, binary: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw the costs and predictions of one stream: rates per scene are Beta with the wanted correlation."""
    strength = 1 / correlation**2 - 1
    rates = rng.beta(rate * strength, (1 - rate) * strength, (MOST, k + 1))
    if binary:
        costs = (rng.random(MOST) < rates[:, 0]).astype(float)
    else:
        costs = rng.beta(4 * rates[:, 0] + 1e-9, 4 * (1 - rates[:, 0]) + 1e-9)
    predictions = {
        "calibrated": rates,
        "useless": rng.random((MOST, k + 1)),
        "inverted": 1 - rates,
        "optimistic": rates / 10,
    }[kind]
    return costs, predictions[:, 0], predictions[:, 1:]


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    print(f"alpha {results['alpha']}, {results['runs']} runs of {MOST} trials, seed {results['seed']}")
    for row in results["power"]:
        print(
            f"{row['bound']:.2f} -> {row['rate']:.2f}  {row['predictor']:10s} {row['correlation']:.2f}  "
            f"alone {row['alone']:6.1f}  predicted {row['predicted']:6.1f} +- {row['predicted_error']:.1f}  "
            f"saved {row['saved']:+.0%}"
        )
    for row in results["null"]:
        print(
            f"null {row['bound']:.2f} k={row['k']:2d} {row['predictor']:10s} binary={row['binary']}  "
            f"false alarms {row['predicted_alarms']:.3f} (alone {row['alone_alarms']:.3f})"
        )


if __name__ == "__main__":
    show(run(*map(int, sys.argv[1:])))
