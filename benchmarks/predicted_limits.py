"""Real trials for the same interval or verdict, with predictions and without: certify, Campaign, compare.

Part of `python -m benchmarks predicted`; alone: `python -m benchmarks.predicted_limits`. Worlds as there: the
failure rates of scenes are Beta, with ten unrun scenes per trial. Settings were chosen with other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

import boundwatch as bw
from boundwatch._support.parallel import in_parallel

SEED = 3203
RUNS = {"once": 100, "campaign": 50, "compare": 200}
MOST = 500
UNRUN = 10
PREDICTORS = [
    ("useless", 0.8),
    ("inverted", 0.8),
    ("optimistic", 0.8),
    ("calibrated", 0.5),
    ("calibrated", 0.8),
    ("calibrated", 0.95),
]
ONCE = [(0.2, 150), (0.35, 150)]  # rate, trials without predictions
CAMPAIGNS = [(0.2, 0.2), (0.35, 0.25)]  # rate, width at which to stop
COMPARED = [(0.15, 0.35), (0.3, 0.55)]  # rates of A and of B
Array = NDArray[np.float64]
Trials = tuple[Array, Array, Array]


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    work = [
        (measure, cell, kind, correlation)
        for cells, measure in ((COMPARED, compare), (ONCE, once), (CAMPAIGNS, campaign))
        for cell in cells
        for kind, correlation in PREDICTORS
    ]
    rows = in_parallel(measured, [(number, *each) for number, each in enumerate(work)], jobs=2)
    return {"seed": SEED, "runs": RUNS, "unrun": UNRUN, "rows": rows}


def measured(
    number: int,
    measure: Callable[..., tuple[float, float]],
    cell: tuple[float, float],
    kind: str,
    correlation: float,
) -> dict[str, Any]:
    """Return what was saved in one cell, and print it."""
    rng, what = np.random.default_rng([SEED, number]), measure.__name__
    both = np.array([measure(rng, kind, correlation, *cell) for _ in range(RUNS[what])])
    found = row(what, cell, kind, correlation, both)
    print(say(found), flush=True)
    return found


def row(what: str, cell: tuple[float, float], kind: str, correlation: float, both: Array) -> dict[str, Any]:
    """Return the mean trials without and with predictions, and what was saved with its standard error."""
    alone, helped = both.mean(axis=0)
    error = (both[:, 1] - both[:, 0] * helped / alone).std() / math.sqrt(len(both)) / alone
    named = {"what": what, "cell": cell, "predictor": kind, "correlation": correlation}
    return named | {"alone": alone, "predicted": helped, "saved": 1 - helped / alone, "error": error}


def draw(rng: np.random.Generator, rate: float, kind: str, correlation: float, n: int = MOST) -> Trials:
    """Draw costs and predictions: of the scenes that were run, and of those that were not."""
    strength = 1 / correlation**2 - 1
    rates = rng.beta(rate * strength, (1 - rate) * strength, (n, UNRUN + 1))
    costs = (rng.random(n) < rates[:, 0]).astype(float)
    say = {"calibrated": rates, "useless": rng.random(rates.shape), "inverted": 1 - rates}
    predictions = rates / 10 if kind == "optimistic" else say[kind]
    return costs, predictions[:, 0], predictions[:, 1:]


def once(rng: np.random.Generator, kind: str, correlation: float, rate: float, n: int) -> tuple[float, float]:
    """Return n, and how many trials with predictions give limits as narrow as n without (by 1/√n)."""
    costs, scenes, others = draw(rng, rate, kind, correlation, n)
    alone = bw.Certificate.from_held_out(costs, binary=True)
    helped = bw.Certificate.from_held_out(
        costs, binary=True, predicted=scenes.tolist(), unlabeled=list(others)
    )
    return n, n * ((helped.upper - helped.lower) / (alone.upper - alone.lower)) ** 2


def campaign(
    rng: np.random.Generator, kind: str, correlation: float, rate: float, width: float
) -> tuple[float, float]:
    """Return after how many trials the interval is that narrow."""
    found = []
    trials = draw(rng, rate, kind, correlation)
    for predictions in (False, True):
        test = bw.Campaign(binary=True, predictions=predictions)
        for cost, scene, rest in zip(*trials, strict=True):
            given = {"predicted": float(scene), "unlabeled": rest} if predictions else {}
            if test.update(float(cost), **given).width <= width:
                break
        found.append(float(test.n))
    return found[0], found[1]


def compare(
    rng: np.random.Generator, kind: str, correlation: float, rate_a: float, rate_b: float
) -> tuple[float, float]:
    """Return after how many pairs there is a verdict on two policies in scenes of their own."""
    a, b = (draw(rng, rate, kind, correlation) for rate in (rate_a, rate_b))
    return first(a, b, predictions=False), first(a, b, predictions=True)


def first(a: Trials, b: Trials, *, predictions: bool) -> float:
    """Return the pair of the verdict, or the last one."""
    test = bw.PolicyComparison(binary=True, paired=False, predictions=predictions)
    for (cost_a, scene_a, rest_a), (cost_b, scene_b, rest_b) in zip_longest(
        zip(*a, strict=True), zip(*b, strict=True)
    ):
        given: dict[str, Any] = {"predicted_a": float(scene_a), "unlabeled_a": rest_a}
        given |= {"predicted_b": float(scene_b), "unlabeled_b": rest_b}
        found = test.update(float(cost_a), float(cost_b), **(given if predictions else {}))
        if found.first_alarm is not None:
            break
    return float(test.pairs)


def say(found: dict[str, Any]) -> str:
    """Say a row."""
    numbers = f"{found['alone']:.1f} -> {found['predicted']:.1f}"
    return (
        f"{found['what']:9s} {found['cell']!s:13s} {found['predictor']:10s} {found['correlation']:.2f}  "
        f"{numbers} ({-found['saved']:+.1%} +- {found['error']:.1%})"
    )


def show(results: dict[str, Any]) -> None:
    """Print the table, the losses first."""
    runs = ", ".join(f"{n} runs of {what}" for what, n in results["runs"].items())
    print(f"{runs} per row, {results['unrun']} unrun scenes, seed {results['seed']}")
    for found in sorted(results["rows"], key=lambda each: each["saved"]):
        print(say(found))


if __name__ == "__main__":
    show(run())
