"""Predicted costs: false alarms, trials beside `SequentialTest` on the same streams, robots, and peeks.

Synthetic worlds here; the drone and the arm with a critic and a twin in `benchmarks.predicted_robots`, alarms
in the middle of an episode in `benchmarks.peek`. Policies are trained on the way (`benchmarks.trained`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import boundwatch as bw
from benchmarks import peek, predicted_limits, predicted_robots
from boundwatch._support.parallel import in_parallel

ALPHA = 0.05
SEED = 2026
RUNS = 200
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
NULL_RUNS = 100
NULL_MOST = 200
NULL_BOUNDS = (0.1, 0.3)
NULL_KINDS = ("calibrated", "useless", "inverted", "optimistic", "adversarial")
SCENES = (1, 5, 20)
TURN = 50  # trials for which an adversary is right, before it says the opposite
EASIER = 0.1  # by which predictions fall in the negative control, while the costs stay
# Worlds of two scenes, enumerated: at these levels three rounds are enough for an alarm on either side.
EXACT_ROUNDS = 3
EXACT_LEVEL = 0.3
EXACT_BOUNDS = {"adverse": 0.3, "benign": 0.7}


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    return synthetic() | {
        "limits": predicted_limits.run(),
        "robots": predicted_robots.run(),
        "peek": peek.run(),
    }


def synthetic() -> dict[str, Any]:
    """Return what is measured with drawn and enumerated costs."""
    power = [
        (bound, rate, kind, correlation, 10, RUNS, SEED)
        for bound, rate in CELLS
        for kind, correlation in PREDICTORS
    ]
    null = [
        (bound, kind, k, binary)
        for bound in NULL_BOUNDS
        for kind in NULL_KINDS
        for k in SCENES
        for binary in (True, False)
    ]
    return {
        "alpha": ALPHA,
        "seed": SEED,
        "runs": RUNS,
        "null_runs": NULL_RUNS,
        "exact": {"rounds": EXACT_ROUNDS, "level": EXACT_LEVEL}
        | {side: exact_level(side) for side in EXACT_BOUNDS},
        "power": in_parallel(measure, power, jobs=2),
        "null": in_parallel(false_alarms, null, jobs=2),
        "control": false_alarms(0.3, "in-distribution", 10, True),
    }


def exact_level(side: str) -> float:
    """Return the largest probability of a false alarm over predictors and worlds of two scenes.

    Every stream is enumerated. The expected cost is the certified limit, where false alarms are likeliest.
    """
    bound = EXACT_BOUNDS[side]
    certificate = bw.Certificate.from_bounds(lower=bound, upper=bound, delta=1e-9, binary=True)
    largest = 0.0
    for share, rates, predictions in worlds(bound):
        chance = 0.0
        for weight, stream in enumerate_streams(share, rates, EXACT_ROUNDS, 1):
            test = bw.PredictedTest(certificate, alpha_adverse=EXACT_LEVEL, alpha_benign=EXACT_LEVEL)
            for cost, scene, others in stream:
                finding = test.update(
                    cost, predicted=predictions[scene], unlabeled=[predictions[s] for s in others]
                )
            p = finding.p_adverse if side == "adverse" else finding.p_benign
            chance += weight * (p <= EXACT_LEVEL)
        largest = max(largest, chance)
    return largest


def worlds(mean: float) -> Iterator[tuple[float, tuple[float, float], tuple[float, float]]]:
    """Yield (probability of scene 1, failure rates of the scenes, predictions of the scenes), with this mean.

    Predictors that are right, useless, inverted, optimistic, and hopelessly sure of the wrong thing.
    """
    for share, spread in itertools.product((0.2, 0.5, 0.8), (0.0, 0.9)):
        high = min(1.0, mean + spread * min(1 - mean, mean * (1 - share) / share))
        low = (mean - share * high) / (1 - share)
        for predictions in ((low, high), (0.5, 0.5), (high, low), (0.0, 0.1), (0.0, 1.0), (1.0, 0.0)):
            yield share, (low, high), predictions


def enumerate_streams(
    share: float, rates: Sequence[float], rounds: int, k: int
) -> Iterator[tuple[float, list[tuple[int, int, list[int]]]]]:
    """Yield (probability, [(cost, scene, others)]) of each stream of rounds."""
    chance = (1 - share, share)
    single = []
    for scene, *others in itertools.product((0, 1), repeat=k + 1):
        for cost in (0, 1):
            weight = chance[scene] * (rates[scene] if cost else 1 - rates[scene])
            single.append((weight * math.prod(chance[s] for s in others), cost, scene, others))
    single = [outcome for outcome in single if outcome[0] > 0]
    for stream in itertools.product(single, repeat=rounds):
        yield math.prod(outcome[0] for outcome in stream), [outcome[1:] for outcome in stream]


def false_alarms(bound: float, kind: str, k: int, binary: bool) -> dict[str, Any]:
    """Return how often each side alarms where the expected cost is the certified limit of both."""
    rng = np.random.default_rng([SEED + 1, int(1e6 * bound), k, int(binary), *kind.encode()])
    certificate = bw.Certificate.from_bounds(lower=bound, upper=bound, delta=0.01, binary=binary)
    hits = {"adverse": 0, "benign": 0, "alone": 0}
    for _ in range(NULL_RUNS):
        costs, scenes, others = (part[:NULL_MOST] for part in draw(rng, bound, kind, 0.8, k, binary))
        helped = bw.PredictedTest(certificate, alpha_adverse=ALPHA, alpha_benign=ALPHA)
        found = predicted_robots.feed(helped, costs, scenes, others)
        alone = bw.SequentialTest(certificate, alpha_adverse=ALPHA)
        alone.update_many(costs)
        hits["adverse"] += found.p_adverse <= ALPHA
        hits["benign"] += found.p_benign <= ALPHA
        hits["alone"] += alone.verdict is bw.Verdict.ADVERSE
    return {"bound": bound, "predictor": kind, "k": k, "binary": binary} | hits


def measure(
    bound: float,
    rate: float,
    kind: str,
    correlation: float,
    k: int,
    runs: int,
    seed: int,
) -> dict[str, Any]:
    """Return mean trials to ADVERSE and the share of runs that reach it, with and without predictions."""
    rng = np.random.default_rng(
        [seed, int(1e6 * bound), int(1e6 * rate), int(100 * correlation), k, len(kind)]
    )
    certificate = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=True)
    taken: dict[str, list[float]] = {"predicted": [], "alone": []}
    for _ in range(runs):
        costs, scenes, others = draw(rng, rate, kind, correlation, k, True)
        helped = bw.PredictedTest(certificate, alpha_adverse=ALPHA)
        alone = bw.SequentialTest(certificate, alpha_adverse=ALPHA)
        for start in range(0, MOST, 40):  # in parts, so that nobody waits for what comes after the alarm
            part = slice(start, start + 40)
            if helped.verdict is not bw.Verdict.ADVERSE:
                predicted_robots.feed(helped, costs[part], scenes[part], others[part])
            if alone.verdict is not bw.Verdict.ADVERSE:
                alone.update_many(costs[part])
        for name, test in (("predicted", helped), ("alone", alone)):
            adverse = test.verdict is bw.Verdict.ADVERSE
            taken[name].append(float(test.first_alarm or MOST) if adverse else math.inf)
    row: dict[str, Any] = {
        "bound": bound, "rate": rate, "predictor": kind, "correlation": correlation, "k": k
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
        "adversarial": np.where(np.arange(MOST)[:, None] < TURN, rates, 1 - rates),
        "in-distribution": rates,
    }[kind]
    if kind == "in-distribution":  # invalid: the scenes that were not run are those of the certified world
        return costs, np.maximum(predictions[:, 0] - EASIER, 0.0), predictions[:, 1:]
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
    exact = results["exact"]
    print(
        f"exact, {exact['rounds']} rounds: false alarms at most {exact['adverse']:.4f} (adverse) and "
        f"{exact['benign']:.4f} (benign), level {exact['level']}"
    )
    print(f"false alarms within {NULL_MOST} trials, level {results['alpha']}: adverse, benign, without help")
    for kind in NULL_KINDS:
        for binary in (True, False):
            rows = [r for r in results["null"] if (r["predictor"], r["binary"]) == (kind, binary)]
            streams = len(rows) * results["null_runs"]
            shares = [sum(row[name] for row in rows) / streams for name in ("adverse", "benign", "alone")]
            costs = "binary" if binary else "bounded"
            print(f"  {kind:12s} {costs:8s} {' '.join(f'{s:.3f}' for s in shares)}  of {streams}")
    control = results["control"]["adverse"] / results["null_runs"]
    print(f"  control: centered at the certified world, scenes that look easier: {control:.2f}")
    predicted_limits.show(results["limits"])
    predicted_robots.show(results["robots"])
    peek.show(results["peek"])
