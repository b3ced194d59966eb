"""Two numbers of trials too large for a table of all outcomes: "p1 - p0 <= margin", and limits on p1 - p0.

Outcomes are ranked by the likelihood ratio W, the smallest over rates c of n0 kl(k0/n0, c) + n1 kl(k1/n1, c +
margin), where a series that agrees with the hypothesis at c counts 0. At every c that grows with k1 and falls
with k0, and so does W: an outcome and all that rank as high are k1 >= needed(k0), where needed grows with k0.
So their chance grows with p1 and falls with p0. On an interval of p0 it is at most its value with p0 at one
end and p1 at the other, and finitely many intervals bound it for all rates.

Only rates p0 within exact limits are looked at. How often those fail, `BETA`, is added (Berger, Boos 1994).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from boundwatch.bounds import held_out

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
BETA = 1e-9
"""What is added to every p-value, so that none is smaller."""
_STEP = 0.015  # the width of intervals in standard errors of the difference: less than a point of power
_ROWS = 200.0  # rows of k0 per standard deviation


def likelihood_ratio(n0: int, k0: ArrayLike, n1: int, k1: ArrayLike, margin: float) -> Array:
    """Return W: how far the outcomes are from every pair of rates with p1 <= p0 + margin."""
    first, second = np.broadcast_arrays(np.asarray(k0, float) / n0, np.asarray(k1, float) / n1)
    low = np.maximum(first, -margin)
    high = np.clip(second - margin, low, max(min(1.0, 1 - margin), 0.0))
    for _ in range(50):  # W's slope in c grows: where it is 0 is found by halving
        c = (low + high) / 2
        q = c + margin
        falls = n0 * (c - first) * q * (1 - q) < n1 * (second - q) * c * (1 - c)
        low, high = np.where(falls, c, low), np.where(falls, high, c)
    c = (low + high) / 2
    q = np.clip(c + margin, 0.0, 1.0)
    found = n0 * _divergence(first, np.maximum(c, first)) + n1 * _divergence(second, np.minimum(q, second))
    return np.asarray(np.where(second - margin > first, found, 0.0))


def _divergence(p: Array, q: Array) -> Array:
    return np.asarray(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def typical_rank(level: float) -> float:
    """Return the W that about this share of outcomes reach at the edge of the hypothesis."""
    return max(float(special.ndtri(1 - level)), 0.1) ** 2 / 2


@dataclass(frozen=True)
class Alarms:
    """Outcomes k1 >= needed(k0) of some rank, and the rates p0 that the first series leaves possible."""

    n0: int
    n1: int
    rates: tuple[float, float]
    rows: Counts
    """The first k0 of each block of rows, and the end; what is outside counts as an alarm."""
    needed: Counts
    """The fewest k1 in each block: its first row needs the fewest."""

    @classmethod
    def ranked(cls, n0: int, k0: int, n1: int, margin: float, rank: float) -> Alarms:
        """Return the outcomes with W of at least `rank`, after k0 failures in the first series."""
        low = float(held_out.clopper_pearson_lower(k0, n0, BETA / 2))
        high = float(held_out.clopper_pearson_upper(k0, n0, BETA / 2))
        center = min(max(0.5, low), high)
        spread = float(np.sqrt(n0 * center * (1 - center)))
        first, end = max(int(n0 * low - 7 * spread - 20), 0), min(int(n0 * high + 7 * spread + 20), n0) + 1
        rows = np.arange(first, end, 1 + int(spread / _ROWS))
        none, enough = np.full(rows.size, -1), np.full(rows.size, n1 + 1)
        for _ in range(n1.bit_length() + 1):
            middle = np.clip((none + enough) // 2, 0, n1)
            reached = likelihood_ratio(n0, rows, n1, middle, margin) >= rank * (1 - 1e-9)
            none, enough = np.where(reached, none, middle), np.where(reached, middle, enough)
        needed = np.minimum.accumulate(enough[::-1])[::-1]  # whatever is rounded
        return cls(n0, n1, (low, high), np.append(rows, end), needed)

    def chances(self, p0: Array, p1: Array) -> Array:
        """Return a bound on the chance of an alarm at each of some pairs of rates."""
        below = special.bdtr(np.maximum(self.rows - 1.0, 0.0), self.n0, np.clip(p0, 0.0, 1.0)[:, None])
        below[:, self.rows == 0] = 0.0
        tails = special.bdtrc(np.maximum(self.needed - 1.0, 0.0), self.n1, np.clip(p1, 0.0, 1.0)[:, None])
        tails[:, self.needed == 0], tails[:, self.needed > self.n1] = 1.0, 0.0
        inside = (np.diff(below, axis=1) * tails).sum(axis=1)
        return np.asarray((inside + 1 - (below[:, -1] - below[:, 0])) * (1 + 1e-6))

    def upper(self, margin: float, *, at_some: bool = False) -> float:
        """Bound the chance of an alarm for all rates that are left, or some, with p1 <= p0 + margin."""
        low, high = max(self.rates[0], -margin), self.rates[1]
        if low > high:  # there is no such p1
            return BETA
        p0 = (low + high) / 2
        p1 = min(max(p0 + margin, 0.0), 1.0)
        ratio = p1 * (1 - p1) / self.n1 / (p0 * (1 - p0) / self.n0)
        first, last = np.arcsin(np.sqrt([low, high])).tolist()
        step = 20 * _STEP if at_some else _STEP
        parts = 1 + int(2 * (last - first) * np.sqrt(self.n0 / (1 + ratio)) / step)
        grid = np.sin(np.linspace(first, last, parts + 1)) ** 2
        starts = np.array_split(np.arange(parts), 1 + parts // 64)  # the memory
        chances = [self.chances(grid[i], grid[i + (not at_some)] + margin).max() for i in starts]
        return min(float(max(chances)) + BETA, 1.0)
