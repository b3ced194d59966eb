"""After the table of counts: pairs of which one trial failed are fair coins, and spend what the table left.

Let S be the failures of both policies when the table ends, after N pairs each. Given S, under a common rate,
all orders are equally likely, and the table has alarmed in a known share R(S) of them. From then on each pair
that differs goes against B with probability 1/2, whatever the rate. So the chance to alarm later can be
computed for each S by itself, and the line for S spends alpha - R(S): nearly all of that evenly in the
logarithm of the pairs, until five times those of the table have been run, the rest more and more slowly.

If A is not better, B's failures given S are stochastically fewer, and so are later pairs against it. Both
only take alarms away (`docs/comparison-theory.md`). So the level is at most alpha given every S, and no
common rate has to be searched for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import logsumexp

from boundwatch.bounds.bets import shared
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.region import LAST_PAIR, Region, find_region
from boundwatch.comparison.walks import Array, Counts, binomial

_LOOKS = 64  # a look whenever the pairs that differ have grown by one over this
_EVENLY, _SHARE = 5.0, 0.95  # up to so many times the table's pairs, and what is spent by then
_END = 20.0  # from here on a wealth decides
_SLACK, _NEGLIGIBLE = 1e-10, 1e-20  # for rounding, relative
_coins = lru_cache(maxsize=4096)(binomial)  # few numbers of pairs, thousands of times


@dataclass(frozen=True)
class LateLine:
    """By how many pairs B must be behind to alarm, after so many that differ since the table ended."""

    information: int
    """About how many pairs of the table differed: 2 N p (1 - p) at the pooled rate p."""
    looks: Counts
    leads: Counts
    threshold: float
    """The log wealth that alarms after the last look."""
    spent: float
    """What fair coins spend at all of this, given S."""

    def alarms(self, differing: int, lead: int) -> bool:
        """Return whether B is behind by enough after so many pairs that differ since the table ended."""
        place = int(np.searchsorted(self.looks, differing))
        if place < self.looks.size:
            return bool(self.looks[place] == differing and lead >= self.leads[place])
        return float(_log_wealth(self.information + differing, np.array([lead]))[0]) >= self.threshold


@lru_cache(maxsize=1024)
def late_line(alpha: float, pooled: int) -> LateLine:
    """Return the line for a pooled number of failures after the table for `alpha`; takes milliseconds."""
    region = find_region(alpha, paired=False)
    assert isinstance(region, Region)  # noqa: S101  (of independent trials)
    alive, alarmed = region.ending
    budget = (alpha - float(alarmed[pooled])) * (1 - _SLACK) - _SLACK * alpha
    rate = pooled / (2 * LAST_PAIR)
    information = max(1, round(2 * LAST_PAIR * rate * (1 - rate)))
    walk, looks, leads, spent = Walk.starting(alive, pooled), [], [], 0.0
    while information + walk.tosses < _END * information:
        walk.toss(max(1, (information + walk.tosses) // _LOOKS), 0.5)
        left = max(budget * _spent_by((information + walk.tosses) / information) - spent, 0.0)
        lead, chance = walk.spend(left)
        looks.append(walk.tosses)
        leads.append(lead)
        spent += chance
    wealth = np.exp(_log_wealth(information + walk.tosses, walk.leads))
    later = max(budget - spent, 0.0)
    threshold = math.log(float(walk.chances @ wealth) / later) if later else math.inf
    both = shared(np.array(looks)), shared(np.array(leads))
    return LateLine(information, *both, threshold, spent + later)


@dataclass
class Walk:
    """The chances of B's leads, which are two apart, among those that have not alarmed."""

    lowest: int
    chances: Array
    tosses: int = 0

    @classmethod
    def starting(cls, chances: Array, pooled: int) -> Walk:
        """Return the leads b - a with so many failures together, from the chances of (a, b)."""
        a = np.arange(min(pooled, LAST_PAIR), max(0, pooled - LAST_PAIR) - 1, -1)
        return cls(pooled - 2 * int(a[0]), np.asarray(chances[a, pooled - a]))

    @property
    def leads(self) -> Counts:
        """The lead of each chance."""
        return self.lowest + 2 * np.arange(self.chances.size)

    def toss(self, times: int, against_b: float) -> None:
        """Let so many more pairs differ."""
        self.chances = np.convolve(self.chances, _coins(times, against_b)[:, 0])
        self.lowest, self.tosses = self.lowest - times, self.tosses + times
        first = int(np.argmax(self.chances > _NEGLIGIBLE))  # far behind: they count as rounding
        self.chances, self.lowest = self.chances[first:], self.lowest + 2 * first

    def spend(self, left: float) -> tuple[int, float]:
        """Stop at all the highest leads that a budget allows; return the lowest of them, and their chance."""
        tails = np.cumsum(self.chances[::-1])
        highest = self.lowest + 2 * self.chances.size
        lead = max(highest - 2 * int(np.searchsorted(tails, left, side="right")), 1)
        return lead, self.stop(lead)

    def stop(self, lead: int) -> float:
        """Take away what alarms at a lead or more; return its chance."""
        kept = max(0, -((self.lowest - lead) // 2))
        alarmed = float(self.chances[kept:].sum())
        self.chances = self.chances[:kept]
        return alarmed


def _spent_by(times: float) -> float:
    """Return the share of the budget that is spent when so many times the table's pairs have been run."""
    if times < _EVENLY:
        return _SHARE * math.log(times) / math.log(_EVENLY)
    return _SHARE + (1 - _SHARE) * (1 - _EVENLY / times)


def _log_wealth(information: int, leads: Counts) -> Array:
    """Return the log wealth of bets on differences, as if so many pairs had differed since the first."""
    bets, half = DifferenceBets(), leads[:, None] / 2
    logs = (information / 2 + half) * bets.log_factors(0.0, 1.0)
    logs = logs + (information / 2 - half) * bets.log_factors(1.0, 0.0)
    return np.asarray(logsumexp(logs + bets.log_shares, axis=1))
