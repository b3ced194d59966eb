"""The cost distributions that the benchmarks share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from boundwatch.bounds import binary_kl

Array = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Array]

ALPHA = 0.04


class World:
    """A distribution of costs; `rate` is the failure rate if costs are 0 or 1, else None."""

    def __init__(self, name: str, draw: Draw, mean: float, rate: float | None = None) -> None:
        self.name, self.draw, self.mean, self.rate = name, draw, mean, rate

    def limit(self, bound: float) -> float:
        """Return the information limit ln(1/alpha)/KL_inf, in trials."""
        if self.rate is not None:
            return float(np.log(1 / ALPHA) / binary_kl(self.rate, bound))
        sample = self.draw(np.random.default_rng(12345), 400_000)
        return float(np.log(1 / ALPHA)) / information_rate(sample, bound)


def information_rate(costs: Array, bound: float) -> float:
    """Return KL_inf, the best growth rate of a bet against the bound when costs come from this sample."""
    scaled = costs / bound

    def loss(bet: float) -> float:
        return -float(np.log1p(bet * (scaled - 1)).mean())

    best = minimize_scalar(loss, bounds=(0.0, 1 - 1e-12), method="bounded", options={"xatol": 1e-9})
    return -float(best.fun)


def bernoulli(rate: float) -> World:
    """Return costs of 0 and 1."""
    return World(f"Bernoulli({rate:g})", lambda rng, n: (rng.random(n) < rate).astype(float), rate, rate)


def beta(a: float, b: float) -> World:
    """Return costs with a beta distribution."""
    return World(f"Beta({a:g}, {b:g})", lambda rng, n: rng.beta(a, b, n), a / (a + b))


def inflated(zeros: float, ones: float) -> World:
    """Return costs that are often 0 or 1, and uniform otherwise."""

    def draw(rng: np.random.Generator, n: int) -> Array:
        kind, value = rng.random(n), rng.random(n)
        return np.where(kind < zeros, 0.0, np.where(kind < zeros + ones, 1.0, value))

    return World(f"{zeros:.0%} zeros, {ones:.0%} ones", draw, ones + (1 - zeros - ones) / 2)


ALTERNATIVES = [bernoulli(0.3), bernoulli(0.5), bernoulli(0.9), beta(4, 4), inflated(0.35, 0.23)]
GRID = [(bound, world) for bound in (0.1, 0.2, 0.33) for world in ALTERNATIVES if world.mean > bound]

# For choosing the mixture: other bounds than in the grid above, and mostly other distributions (at other
# bounds, Bernoulli(0.3) and Bernoulli(0.9) occur in both).
DESIGN = [
    (bound, world)
    for bound in (0.05, 0.15, 0.25, 0.4)
    for world in (
        *(bernoulli(round(bound + shift, 2)) for shift in (0.07, 0.15, 0.3, 0.5)),
        *(
            beta((bound + shift) * size, (1 - bound - shift) * size)
            for shift in (0.07, 0.15, 0.3)
            for size in (3.0, 10.0)
        ),
        *(inflated(zeros, ones) for zeros, ones in ((0.5, 0.1), (0.2, 0.1), (0.3, 0.4))),
    )
    if world.mean > bound + 0.05
]
