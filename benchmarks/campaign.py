"""How wide are intervals that hold at every stopping time? Widths divided by Clopper-Pearson's.

All have 99 % confidence for costs of 0 and 1. Those of the literature are written down here from their
papers: the conjugate mixture of Robbins (1970) with Jeffreys' and with a uniform prior, the polynomial
stitched boundary of Howard, Ramdas, McAuliffe and Sekhon (2021), and the hedged capital process of
Waudby-Smith and Ramdas (2024), which depends on the order of the costs: the mean over random orders.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import betaln, xlog1py, xlogy

from boundwatch import bounds

DELTA = 0.01
SIZES = (20, 50, 100, 200, 500, 1000)
RATES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.5)
GRID = np.linspace(0.0005, 0.9995, 2000)


def run() -> dict[str, Any]:
    """Return the ratios of every confidence sequence at every rate and number of trials."""
    rng = np.random.default_rng(0)
    methods = {
        "Campaign": lambda k, n: float(
            bounds.anytime_upper(k, n, DELTA / 2) - bounds.anytime_lower(k, n, DELTA / 2)
        ),
        "mixture, Jeffreys' prior": lambda k, n: _mixture(k, n, 0.5),
        "mixture, uniform prior": lambda k, n: _mixture(k, n, 1.0),
        "stitched": _stitched,
        "hedged capital": lambda k, n: _hedged(k, n, rng),
    }
    table = {name: [[width(round(r * n), n) / _exact(round(r * n), n) for n in SIZES] for r in RATES]
             for name, width in methods.items()}  # fmt: skip
    return {"sizes": SIZES, "rates": RATES, "ratios": table}


def show(results: dict[str, Any]) -> None:
    """Print one line per method and rate."""
    print(f"{'width / Clopper-Pearson':<28}{'rate':>6}" + "".join(f"{n:>8}" for n in results["sizes"]))
    for name, rows in results["ratios"].items():
        for rate, row in zip(results["rates"], rows, strict=True):
            print(f"{name:<28}{rate:>6g}" + "".join(f"{value:>8.2f}" for value in row))
        print(f"{name:<28}{'mean':>6}" + "".join(f"{v:>8.2f}" for v in np.mean(rows, axis=0)))


def _exact(k: int, n: int) -> float:
    upper, lower = (
        bounds.clopper_pearson_upper(k, n, DELTA / 2),
        bounds.clopper_pearson_lower(k, n, DELTA / 2),
    )
    return float(upper - lower)


def _mixture(k: int, n: int, prior: float) -> float:
    log_wealth = (
        betaln(k + prior, n - k + prior) - betaln(prior, prior) - xlogy(k, GRID) - xlog1py(n - k, -GRID)
    )
    return _span(log_wealth < math.log(1 / DELTA))


def _stitched(k: int, n: int) -> float:
    # Their Eq. (10) with eta = 2, s = 1.4, costs of variance proxy 1/4; both sides at DELTA / 2.
    proxy = n / 4
    iterated = math.log(math.log(2 * max(proxy, 1.0)) + 1e-300) if proxy > 1 else 0.0
    radius = 1.7 * math.sqrt(proxy * (max(iterated, 0.0) + 0.72 * math.log(5.2 / (DELTA / 2)))) / n
    return min(k / n + radius, 1.0) - max(k / n - radius, 0.0)


def _hedged(k: int, n: int, rng: np.random.Generator, orders: int = 20) -> float:
    # Their Eqs. (24)-(28): truncation 1/2, equal shares on both sides, predictable plug-in bets.
    widths = []
    for _ in range(orders):
        costs = rng.permutation(np.r_[np.ones(k), np.zeros(n - k)])
        t = np.arange(1, n + 1)
        means = (0.5 + np.cumsum(costs)) / (t + 1)
        variances = (0.25 + np.cumsum((costs - means) ** 2)) / (t + 1)
        before = np.r_[0.25, variances[:-1]]
        bets = np.sqrt(2 * math.log(2 / DELTA) / (before * t * np.log(t + 1)))
        up = np.log1p(np.minimum(bets[:, None], 0.5 / GRID) * (costs[:, None] - GRID)).cumsum(axis=0)
        down = np.log1p(-np.minimum(bets[:, None], 0.5 / (1 - GRID)) * (costs[:, None] - GRID)).cumsum(axis=0)
        kept = np.maximum(up, down) - math.log(2) < math.log(1 / DELTA)
        widths.append(_span(kept.all(axis=0)))  # the running intersection, which they report
    return float(np.mean(widths))


def _span(kept: np.ndarray) -> float:
    inside = GRID[kept]
    return float(inside[-1] - inside[0]) + 2 * GRID[0] if inside.size else 0.0
