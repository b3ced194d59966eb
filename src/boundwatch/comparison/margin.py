"""Costs of 0 and 1, no worse by a margin M: a table of counts whose error rate is computed.

After n pairs, A alone has failed in x of them and B alone in y. The table shows that B costs less than M more
at ``y <= most[n][x]``. Its limits are those of a Brownian motion that spends 0.85 of alpha, most of it late,
by the date at which 90 % of runs would show it if the two are equally good, and the rest after that. The
date, and the spread at the margin, are estimated from x and y.

None of that has to be trusted: the error rate of the finished table is bounded for every distribution of the
pairs at the margin (`docs/comparison-theory.md`). Let B alone fail with probability M + s h and A alone with
s h, h = (1 - M)/2. That is as if each pair was marked with probability s, where A alone fails in a share h of
marked pairs and B alone in all others, and B alone fails in a share M of the rest. Given the number of marked
pairs all orders are equally likely, so the error rate is a polynomial in s in Bernstein form.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtri

from boundwatch.bounds.bets import shared
from boundwatch.bounds.two_sample import bernstein_upper
from boundwatch.comparison.late import Walk
from boundwatch.comparison.walks import Array, Counts, binomial

LATER = 0.08
"""The share of alpha that is left for bets, which go on after the table."""
_LONGEST = 900  # pairs; where the date is later than that at rates of one half, there is no table
_SHORTEST = 10  # pairs; counts of fewer come in steps that are too large
_BEYOND, _SPARE = 1.2, 1.05  # how far a table goes beyond that date, and time to spare before it
_BY_DATE, _EARLY = 0.85, 0.2  # what is spent by the date; of that, evenly, and the rest as the cube of time
_NOMINAL = 1.04  # the looks and the counts come in steps, so that not all that is spent is used
_CONSTRAINED = 0.7  # the weight of the spread that fits the margin; the other is as observed
_LOOKS = 64  # a look whenever the pairs have grown by one over this
_TOSSES, _LAST = 600, 8.0  # fair coins that stand for the Brownian motion until the date, and how far they go


@dataclass(frozen=True)
class MarginTable:
    """The pairs of counts at which it is shown that B is no worse; `level` bounds how often wrongly."""

    most: dict[int, Counts]
    level: float

    def shows(self, pairs: int, differing: int, lead: int) -> bool:
        """Return whether it is shown after so many pairs, of which some differ, with B behind by `lead`."""
        row = self.most.get(pairs)
        return row is not None and bool((differing + lead) // 2 <= row[(differing - lead) // 2])


def has_table(alpha: float, margin: float) -> bool:
    """Return whether there is a table: a small margin takes too many pairs, a large one too few."""
    return margin > 0 and alpha <= 0.5 and _SHORTEST <= _size(alpha, margin)[1] <= _LONGEST


def _size(alpha: float, margin: float) -> tuple[float, int]:
    """Return the pairs until the date per unit of variance, and those of the table."""
    date = _SPARE * float(ndtri(1 - _BY_DATE * alpha) + ndtri(0.9)) ** 2 / margin**2
    return date, math.ceil(_BEYOND * date * (1 - margin**2) / 2)


@lru_cache(maxsize=16)
def margin_table(alpha: float, margin: float) -> MarginTable:
    """Return the table for a margin, computed once, in about a second.

    **Guarantee**: if B costs at least the margin more, and pairs are i.i.d., whatever ties the two costs of
    one together, the table ever shows the opposite with probability at most `level` <= (1 - LATER) alpha.
    """
    spend, (date, pairs) = _NOMINAL * alpha, _size(alpha, margin)
    while True:
        most = _limits(margin, pairs, date, *_boundary(spend))
        level = bernstein_upper(coefficients(forward(most, pairs), margin))
        if level <= (1 - LATER) * alpha:
            return MarginTable({pairs: shared(row) for pairs, row in most.items()}, level)
        spend *= 0.98


def _boundary(alpha: float) -> tuple[Array, Array]:
    """Return times in units of the date, and how many standard deviations show it then."""
    walk, times, limits, spent = Walk(0, np.ones(1)), [], [], 0.0
    while walk.tosses < _LAST * _TOSSES:
        walk.toss(4, 0.5)
        time = walk.tosses / _TOSSES
        share = _BY_DATE * (_EARLY * time + (1 - _EARLY) * time**3)
        if time >= 1:
            share = _BY_DATE + (1 - _BY_DATE) * (1 - 1 / time)
        lead, chance = walk.spend(alpha * share - spent)
        spent += chance
        times.append(time)
        limits.append(lead / math.sqrt(walk.tosses))
    return np.array(times), np.array(limits)


def _limits(margin: float, pairs: int, date: float, times: Array, limits: Array) -> dict[int, Counts]:
    """Return the most pairs that B alone may have failed in, for each number of those of A, by look."""
    most: dict[int, Counts] = {}
    n = 0
    while n < pairs:
        n = min(pairs, n + max(1, n // _LOOKS))
        a_alone = np.arange(n + 1.0)[:, None]
        b_alone = a_alone.T
        differ = a_alone + b_alone
        # The likeliest chance that A alone fails, if B costs the margin more, with a pair before the first.
        known, first = n + 1, a_alone + 0.25
        linear = (differ + 0.5) * (1 - margin) - 2 * margin * (n - b_alone + 0.75)
        root = np.sqrt(linear**2 + 8 * known * first * margin * (1 - margin))
        fitted = 2 * (linear + root) / (4 * known) + margin
        observed = np.maximum((differ + 1) / (n + 2), margin)
        variance = _CONSTRAINED * fitted + (1 - _CONSTRAINED) * observed - margin**2
        z = (margin * n - b_alone + a_alone) / np.sqrt(n * variance)
        shown = (z >= np.interp(n / (date * variance), times, limits)) & (differ <= n)
        # Where fewer failures of B show it as well, and no later when A has failed more.
        most[n] = np.maximum.accumulate(np.logical_and.accumulate(shown, axis=1).sum(axis=1) - 1)
    return most


def forward(most: dict[int, Counts], pairs: int) -> Array:
    """Return, for all counts after the last pair, the share of their orders in which nothing was shown."""
    alive: Array = np.ones((1, 1))
    for n in range(1, pairs + 1):
        share = np.arange(n + 1) / n
        rest = np.maximum(1 - np.add.outer(share[:-1], share[:-1]), 0.0)
        longer = np.zeros((n + 1, n + 1))
        longer[:-1, :-1] = alive * rest
        longer[1:, :-1] += alive * share[1:, None]
        longer[:-1, 1:] += alive * share[1:]
        if n in most:
            longer[np.arange(n + 1) <= most[n][:, None]] = 0.0
        alive = longer
    return alive


def coefficients(alive: Array, margin: float) -> Array:
    """Return the chance that something is shown given 0, 1, … marked pairs, at the margin."""
    pairs, found = alive.shape[0] - 1, []
    for marked in range(pairs + 1):
        of_a = binomial(marked, np.array([(1 - margin) / 2]))[:, 0]
        of_b = binomial(pairs - marked, np.array([margin]))[:, 0]
        a_alone = np.arange(marked + 1)[:, None]
        b_alone = marked - a_alone + np.arange(pairs - marked + 1)
        found.append(1 - of_a @ (alive[a_alone, b_alone] @ of_b))
    return np.clip(found, 0.0, 1.0)
