"""How the bets were chosen: ratios to the information limit for several mixtures, on the design grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import roots_jacobi

from benchmarks.worlds import ALPHA, DESIGN, GRID, World
from boundwatch.detectors.mixture import Bets

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
    return {"alpha": ALPHA, "runs": RUNS, "cells": {"design": len(DESIGN), "grid": len(GRID)}, "rows": rows}


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
    print(f"({design} design cells at other bounds and costs than the grid; {runs} runs a cell)")
    names = ["design", "design_binary", "design_others", "design_worst_large", "grid"]
    print(f"{'mixture':<26}" + "".join(f"{name:>20}" for name in names))
    for row in result["rows"]:
        print(f"{row['mixture']:<26}" + "".join(f"{row[name]:>20.3f}" for name in names))
