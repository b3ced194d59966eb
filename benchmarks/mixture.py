"""How the bets were chosen: ratios to the information limit for several mixtures, on the design grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, roots_jacobi, roots_legendre

from benchmarks.worlds import ALPHA, DESIGN, GRID, World
from boundwatch.bounds import binary_kl
from boundwatch.bounds.bets import Bets
from boundwatch.detectors.mixture import alarm_counts, alarm_distribution, exact_threshold

RUNS = 1000


def beta_mixture(a: float, b: float, whole: float) -> Bets:
    """Return bets with a Beta(a, b) density over [0, 1], and a share on the whole capital."""
    points, weights = roots_jacobi(32, b - 1, a - 1)
    sizes, shares = (points + 1) / 2, weights / weights.sum()
    return Bets(np.append(sizes, 1.0), np.append(shares * (1 - whole), max(whole, 1e-300)))


def candidates() -> dict[str, Bets]:
    """Return the mixtures to compare."""
    return {
        "uniform": beta_mixture(1, 1, 0),
        "Beta(1/2, 1/2)": beta_mixture(0.5, 0.5, 0),
        "Beta(1, 1/2)": beta_mixture(1, 0.5, 0),
        "Beta(2, 1)": beta_mixture(2, 1, 0),
        "uniform, 10 % on b = 1": beta_mixture(1, 1, 0.1),
        "uniform, 20 % on b = 1": beta_mixture(1, 1, 0.2),
        "uniform, 30 % on b = 1": beta_mixture(1, 1, 0.3),
        "ours, binary costs": Bets.for_costs(binary=True),
        "ours, bounded costs": Bets.for_costs(binary=False),
    }


def run() -> dict[str, Any]:
    """Measure, and return the numbers."""
    cells = DESIGN + GRID
    limits = np.array([world.limit(bound) for bound, world in cells])
    design = np.arange(len(cells)) < len(DESIGN)
    binary = np.array([world.rate is not None for _, world in cells])
    rows = []
    for name, bets in candidates().items():
        ratios = np.array(
            [
                mean_trials(bets, b, w, limit, i)
                for i, ((b, w), limit) in enumerate(zip(cells, limits, strict=True))
            ]
        )
        ratios /= limits
        rows.append(
            {
                "mixture": name,
                "design": float(ratios[design].mean()),
                "design_binary": float(ratios[design & binary].mean()),
                "design_others": float(ratios[design & ~binary].mean()),
                "design_worst_large": float(ratios[design & (limits >= 5)].max()),
                "grid": float(ratios[~design].mean()),
            }
        )
    return {
        "alpha": ALPHA,
        "runs": RUNS,
        "cells": {"design": len(DESIGN), "grid": len(GRID)},
        "rows": rows,
        "binary_exact_threshold": {
            "design": float(np.mean([exact_ratio(b, w.rate) for b, w in DESIGN if w.rate is not None])),
            "grid": float(np.mean([exact_ratio(b, w.rate) for b, w in GRID if w.rate is not None])),
        },
        "nodes": [node_losses(power, size) for power in (1, 2, 3) for size in (8, 12, 16, 24)],
    }


def exact_ratio(bound: float, rate: float) -> float:
    """Return the ratio for costs of 0 and 1 with the exact threshold instead of 1/alpha, computed exactly."""
    threshold = exact_threshold(bound, ALPHA)
    needed = alarm_counts(Bets.for_costs(binary=True), bound, np.log(threshold), 5000)
    alarms, _, _ = alarm_distribution(needed, rate)
    return float(alarms @ np.arange(alarms.size)) * float(binary_kl(rate, bound)) / float(np.log(1 / ALPHA))


def node_losses(power: int, size: int) -> dict[str, Any]:
    """Return what few nodes lose in log wealth against 400, near the alarm, up to 20,000 trials."""
    points, weights = roots_legendre(size)
    root = (points + 1) / 2
    few = Bets(root**power, power * weights / 2 * root ** (power - 1))
    points, weights = roots_legendre(400)
    many = Bets((points + 1) / 2, weights / 2)
    losses = []
    for bound in (0.05, 0.2, 0.5, 0.8):
        n = np.unique(np.geomspace(1, 20_000, 90).round())
        rates = bound + np.geomspace(0.003, 1 - bound, 25)
        trials, failures = (
            np.repeat(n, rates.size),
            np.minimum(np.outer(n, rates).round().ravel(), np.repeat(n, 25)),
        )
        reference = log_wealth(many, bound, trials, failures)
        near = (reference > -1.5) & (reference < 6)
        losses.append((reference - log_wealth(few, bound, trials, failures))[near])
    loss = np.concatenate(losses)
    return {"power": power, "nodes": size, "worst_loss": float(loss.max()), "mean_loss": float(loss.mean())}


def log_wealth(bets: Bets, bound: float, trials: NDArray[np.float64], failures: NDArray[np.float64]) -> Any:
    """Return the log wealth after so many failures among so many trials."""
    zero, one = bets.log_factors(bound)
    logs = np.outer(trials - failures, zero) + np.outer(failures, one) + np.log(bets.shares)
    return logsumexp(logs, axis=1)


def mean_trials(bets: Bets, bound: float, world: World, limit: float, seed: int) -> float:
    """Return the mean trials until the wealth reaches 1/alpha, streams cut off at ten times the limit."""
    rng = np.random.default_rng(seed)
    capitals: NDArray[np.float64] = np.tile(bets.shares, (RUNS, 1))
    total, cut = 0, int(10 * limit) + 20
    for _ in range(cut):
        total += capitals.shape[0]
        capitals *= (1 - bets.sizes) + np.outer(world.draw(rng, capitals.shape[0]) / bound, bets.sizes)
        capitals = capitals[capitals.sum(axis=1) < 1 / ALPHA]
        if capitals.shape[0] == 0:
            break
    return total / RUNS


def show(result: dict[str, Any]) -> None:
    """Print the numbers as a table."""
    design, runs = result["cells"]["design"], result["runs"]
    print("Mean trials to a wealth of 1/alpha over the information limit, by mixture")
    print(f"({design} design cells at other bounds than the grid; {runs} runs a cell)")
    names = ["design", "design_binary", "design_others", "design_worst_large", "grid"]
    print(f"{'mixture':<26}" + "".join(f"{name:>20}" for name in names))
    for row in result["rows"]:
        print(f"{row['mixture']:<26}" + "".join(f"{row[name]:>20.3f}" for name in names))
    exact = result["binary_exact_threshold"]
    print(f"ours, binary costs, exact threshold: design {exact['design']:.3f}, grid {exact['grid']:.3f}")
    print("Nats lost by few nodes b = u^power, Gauss-Legendre in u, against 400; near the alarm, n <= 20,000")
    for row in result["nodes"]:
        loss = f"worst {row['worst_loss']:.2f}, mean {row['mean_loss']:.3f}"
        print(f"  power {row['power']}, {row['nodes']:>2} nodes: {loss}")
