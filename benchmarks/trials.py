"""Trials to alarm, as a multiple of the information limit, beside the paper's test and two dummies."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import numpy as np

import boundwatch as bw
from benchmarks.worlds import ALPHA, GRID, World
from boundwatch.planning import time_to_alarm

RUNS = 20_000


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    rows = []
    for index, (bound, world) in enumerate(GRID):
        limit = world.limit(bound)
        bounded = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01)
        row: dict[str, Any] = {"bound": bound, "world": world.name, "limit": limit}
        if world.rate is not None:
            exact = bw.Certificate.from_bounds(lower=0.0, upper=bound, delta=0.01, binary=True)
            answer = bw.plan(exact, cost=world.rate, alpha=ALPHA, sizes=[], tail="hoeffding")
            row["ours"] = answer.powers[-1].mean_trials
            row["paper"] = answer.powers[0].trials[0.9]  # the test with Hoeffding's tail, 90 % power
            row["ours_bounded"] = time_to_alarm(bounded, cost=world.rate, alpha=ALPHA).mean_trials
            row["standard_error"] = 0.0
        else:
            alarms = simulate(bounded, world, seed=index)
            row["ours"] = row["ours_bounded"] = float(alarms.mean())
            row["standard_error"] = float(alarms.std() / np.sqrt(RUNS))
            row["paper"] = hoeffding_trials(bounded, world, seed=index)
        rows.append(row)
    ratios = {name: [row[name] / row["limit"] for row in rows] for name in ("ours", "ours_bounded", "paper")}
    large = [i for i, row in enumerate(rows) if row["limit"] >= 5]
    summary = {
        name: {"mean": float(np.mean(values)), "worst_large": max(values[i] for i in large)}
        for name, values in ratios.items()
    }
    dummies = {
        "never alarms": {"trials": None, "false_alarm_rate": 0.0},
        "always alarms": {"trials": 1, "false_alarm_rate": 1.0},
    }
    return {"alpha": ALPHA, "runs": RUNS, "rows": rows, "ratio": summary, "dummies": dummies}


def hoeffding_trials(certificate: bw.Certificate, world: World, seed: int) -> int:
    """Return the fewest trials of which one look by Hoeffding's tail has 90 % power, by 2,000 draws."""
    test = bw.HypothesisTest(certificate, tail="hoeffding", alpha_adverse=ALPHA)
    draws = world.draw(np.random.default_rng(seed), 2000 * 1000).reshape(2000, 1000)
    return (
        bisect_left(
            range(1, 1001), 0.9, key=lambda n: (test.decide_many(draws[:, :n]).verdict == "adverse").mean()
        )
        + 1
    )


def simulate(certificate: bw.Certificate, world: World, seed: int) -> np.ndarray:
    """Return the trial of the alarm in each of many streams."""
    rng = np.random.default_rng([seed, 77])
    fleet = bw.Fleet(certificate, alpha_adverse=ALPHA, alpha_benign=ALPHA)
    alarms = np.zeros(RUNS, dtype=np.int64)
    active = np.arange(RUNS)
    n = 0
    while active.size:
        n += 1
        alarmed = fleet.update(active, world.draw(rng, active.size))
        alarms[alarmed] = n
        active = active[alarms[active] == 0]
    return alarms


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    print(f"Mean trials to alarm over the information limit, alpha = {result['alpha']}")
    print("(Bernoulli: exact; others: simulated. ours: binary certificate for Bernoulli, bounded for others;")
    print(" bounded: always a bounded certificate; paper: Hoeffding's test sized for 90 % power, one look)")
    print(f"{'bound':>6}  {'new costs':<22}{'limit':>8}{'ours':>8}{'ratio':>8}{'bounded':>9}{'paper':>8}")
    for row in result["rows"]:
        print(
            f"{row['bound']:>6}  {row['world']:<22}{row['limit']:>8.1f}{row['ours']:>8.1f}"
            f"{row['ours'] / row['limit']:>8.2f}{row['ours_bounded'] / row['limit']:>9.2f}"
            f"{row['paper'] / row['limit']:>8.2f}"
        )
    for name, summary in result["ratio"].items():
        worst = f"worst where the limit is >= 5: {summary['worst_large']:.3f}"
        print(f"{name:>14}: mean ratio {summary['mean']:.3f}, {worst}")
    print(
        "dummies: one that never alarms (no trials suffice, level 0), one that always does (1 trial, level 1)"
    )
