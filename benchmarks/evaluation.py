"""Evaluations as operators run them: false verdicts under drift, and the trials that elimination saves.

Everything goes through `Evaluation`. Two equal policies are compared in at most 50 rounds at 5 % per side, so
10 % of the runs may end with a verdict; the order "all of A, then all of B" stands beside them. Several
policies are ranked at 5 % for all statements; uniform rounds are the same rounds with nobody dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import boundwatch as bw
from boundwatch.comparison import ComparisonVerdict
from boundwatch.evaluation.questions import evidence_of

RUNS = 4000
RACES = 1000
ROUNDS = 50
SEED = 20
RATES = {
    ".5 to .95": (0.5, 0.6125, 0.725, 0.8375, 0.95),
    ".4 to .9": (0.4, 0.525, 0.65, 0.775, 0.9),
    "four of .3, one of .7": (0.3, 0.3, 0.3, 0.3, 0.7),
}
PAIRS = ((0.5, 0.8), (0.7, 0.9), (0.2, 0.6))
Operator = Callable[[bw.Evaluation, np.random.Generator], None]


def steady(ev: bw.Evaluation, rng: np.random.Generator) -> None:
    """Let a quarter of the trials fail, whatever the policy."""
    while (trial := ev.next()) is not None:
        ev.record(trial, success=bool(rng.random() >= 0.25))


def drifting(ev: bw.Evaluation, rng: np.random.Generator) -> None:
    """Failures rise from 10 to 40 % over the day, whatever the policy."""
    last = ev.protocol.most_trials
    while (trial := ev.next()) is not None:
        ev.record(trial, success=bool(rng.random() >= 0.1 + 0.3 * trial.number / last))


def aborting(ev: bw.Evaluation, rng: np.random.Generator) -> None:
    """Let them drift, and abort every second trial that is about to fail."""
    last = ev.protocol.most_trials
    while (trial := ev.next()) is not None:
        fails = rng.random() < 0.1 + 0.3 * trial.number / last
        if fails and rng.random() < 0.5:
            ev.record(trial, aborted="it was about to fail")
        else:
            ev.record(trial, success=not fails)


def two_stations(ev: bw.Evaluation, rng: np.random.Generator) -> None:
    """Two stations of different speed and difficulty."""
    failing = {"left": 0.1, "right": 0.5}
    while not ev.finished:
        station = "left" if rng.random() < 0.7 else "right"
        if (trial := ev.next(station)) is None:  # nothing is left for it
            trial = ev.next("right" if station == "left" else "left")
        if trial is not None:
            ev.record(trial, success=bool(rng.random() >= failing[trial.station]))


WORLDS: dict[str, tuple[Operator, dict[str, Any]]] = {
    "no drift": (steady, {}),
    "drift": (drifting, {}),
    "drift, two tasks": (drifting, {"tasks": ["mug", "bowl"], "most_rounds": 25}),
    "drift, blocks of 5 rounds": (drifting, {"tasks": ["mug", "bowl"], "most_rounds": 25, "block": 5}),
    "drift, operator aborts": (aborting, {}),
    "drift, aborts are repeated": (aborting, {"aborted": "repeat"}),
    "two stations": (two_stations, {}),
    "drift, three are ranked (5 %)": (drifting, {"question": "rank", "policies": ["act", "dp", "pi"]}),
}


def protocol(**settings: Any) -> bw.Protocol:
    """Return one that compares two policies."""
    usual = {"question": "compare", "policies": ["act", "dp"], "most_rounds": ROUNDS}
    return bw.Protocol(**{**usual, **settings})


def verdicts(world: str, runs: int, seed: int = SEED) -> int:
    """Return in how many runs one of equal policies is called better or drops out."""
    operate, settings = WORLDS[world]
    names, hits = protocol(**settings).policies, 0
    for run in range(runs):
        ev = bw.Evaluation.start(None, protocol(seed=seed * 10**6 + run, **settings))
        operate(ev, np.random.default_rng([seed, run]))
        hits += ev.finished and (ev.status["state"] == "answered" or ev.status["policies_in"] < len(names))
    return hits


def naive(runs: int, *, alternating: bool = False, seed: int = SEED) -> int:
    """Return the same for drifting trials of which all of A come first, or that take turns."""
    hits = 0
    rates = np.linspace(0.1, 0.4, 2 * ROUNDS)
    for run in range(runs):
        failed = (np.random.default_rng([seed, run]).random(2 * ROUNDS) < rates).astype(float)
        a, b = (failed[::2], failed[1::2]) if alternating else (failed[:ROUNDS], failed[ROUNDS:])
        test = bw.PolicyComparison(0.05, binary=True, paired=True)
        hits += test.update_many(a, b).verdict is not ComparisonVerdict.UNDECIDED
    return hits


def pairs_needed(successes: tuple[float, float], runs: int, seed: int = SEED) -> tuple[float, float]:
    """Return the mean pairs to an answer, of an evaluation and of a comparison of the same outcomes."""
    ours, reference = [], []
    for run in range(runs):
        failed = np.random.default_rng([seed, run]).random((1000, 2)) >= successes
        ev = bw.Evaluation.start(None, protocol(seed=seed * 10**6 + run, most_rounds=1000))
        while (trial := ev.next()) is not None:
            side = ("act", "dp").index(ev.policy_of(trial))
            ev.record(trial, success=not failed[trial.round - 1, side])
        ours.append(ev.replay().rounds)
        test = bw.PolicyComparison(0.05, binary=True, paired=True)
        reference.append(test.update_many(*failed.T.astype(float)).first_alarm or 1000)
    return float(np.mean(ours)), float(np.mean(reference))


def raced(rates: tuple[float, ...], runs: int, seed: int = SEED) -> dict[str, float]:
    """Return mean trials with elimination and in uniform rounds on the same outcomes, and wrong answers."""
    names = [f"v{i}" for i in range(len(rates))]
    total, uniform, wrong = [], [], 0
    for run in range(runs):
        outcomes = np.random.default_rng([seed, run]).random((3000, len(rates))) >= rates
        asked = protocol(
            question="rank", policies=names, most_rounds=3000, seed=seed * 10**6 + run, blind=False
        )
        ev = bw.Evaluation.start(None, asked)
        while (trial := ev.next()) is not None:
            ev.record(trial, success=not outcomes[trial.round - 1, names.index(trial.policy)])
        total.append(sum(1 for _ in ev.replay().recorded))
        best = max(rates)
        wrong += any(
            rates[names.index(name)] == best for name in set(names) - set(ev.replay().evidence.policies)
        )
        race = evidence_of(asked)
        rows = iter(outcomes.astype(float).tolist())
        while not race.answered and (row := next(rows, None)):
            race.take({name: [cost] for name, cost in zip(names, row, strict=True)})
        uniform.append(len(rates) * (len(outcomes) - len(list(rows))))
    return {"trials": float(np.mean(total)), "uniform": float(np.mean(uniform)), "wrong": wrong, "runs": runs}


def run() -> dict[str, Any]:
    """Return false verdicts, pairs needed and trials saved."""
    with ProcessPoolExecutor(2) as pool:
        found = {world: pool.submit(verdicts, world, RUNS) for world in WORLDS}
        raced_by = {name: pool.submit(raced, rates, RACES) for name, rates in RATES.items()}
        needed = {f"{a:g} and {b:g}": pool.submit(pairs_needed, (a, b), RUNS) for a, b in PAIRS}
        return {
            "runs": RUNS,
            "races": RACES,
            "seed": SEED,
            "verdicts": {world: hits.result() / RUNS for world, hits in found.items()},
            "naive": {
                "all of A, then all of B": naive(RUNS) / RUNS,
                "alternating": naive(RUNS, alternating=True) / RUNS,
            },
            "pairs": {name: pairs.result() for name, pairs in needed.items()},
            "raced": {name: race.result() for name, race in raced_by.items()},
        }


def show(results: dict[str, Any]) -> None:
    """Print the tables."""
    print(f"{results['runs']} runs each, seed {results['seed']}; allowed: 10 %")
    for world, rate in {**results["verdicts"], **results["naive"]}.items():
        print(f"  false verdicts, {world:<32}{100 * rate:>6.1f} %")
    for rates, (ours, reference) in results["pairs"].items():
        print(f"  pairs, success {rates:<16} evaluation {ours:>7.1f}   paired comparison {reference:>7.1f}")
    for rates, found in results["raced"].items():
        print(
            f"  five policies, {rates:<24} {found['trials']:>7.1f} of {found['uniform']:>7.1f} trials, "
            f"{found['trials'] / found['uniform']:.2f}; best dropped {found['wrong']:g} of {found['runs']:g}"
        )
