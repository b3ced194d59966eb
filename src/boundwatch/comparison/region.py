"""Where to say "A is better" on costs of 0 and 1: regions of counts with a computed error rate.

After n pairs with a failures of A and b of B, the region alarms at ``b >= needed[n][a]``. It is made to stop
early on average: among all rules it nearly minimizes a weighted mean number of pairs over many pairs of rates
p_A < p_B, for a price per false alarm at each common rate (a backward recursion, as in dynamic programming).
The prices are then tuned until the false-alarm rate is nearly the same at every common rate.

None of that has to be trusted. The false-alarm probability of the finished region under a common rate p is a
polynomial in p. Its coefficients in Bernstein form come from one forward recursion, and the largest of them
bounds it for every p at once (`boundwatch.bounds.two_sample`). More failures of A or fewer of B never make an
alarm, so p_A > p_B alarms less than p_A = p_B. A region without a horizon leaves a part of alpha for what
comes after its table (`boundwatch.comparison.late`): the more the fewer pairs differ, as their number, and
not that of the pairs, says how much has been learned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources

import numpy as np
from scipy.special import ndtri

from boundwatch.bounds.bets import shared
from boundwatch.bounds.two_sample import SLACK, bernstein_upper, raise_degree
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.walks import Array, Counts, back, binomial, forward, order_shares, outcomes

LAST_PAIR = 300
"""The open-ended tables end here."""
LONGEST_HORIZON = 300
LAST_DIFFERING = 400
FINAL_FACTOR = 7.0
CHANCES = np.linspace(-5.0, 5.0, 201)  # as normal scores
TABLES = "regions.npz"
RATES = 60
KNOTS = 16
_SWEEPS, _REFINEMENTS = 6, 16
_LOWEST_PRICE = -8.0
_EDGE = 0.015  # on the scale arcsin(sqrt(rate))
# Of alpha, so much is left for what comes after the table where it has seen so many pairs that differ; where
# it has seen fewer, more. It costs 2 to 4 % more pairs for large differences, 13 % where few trials fail.
_LEFT, _ENOUGH, _RARELY, _MOST_LEFT = 0.125, 90.0, 2.05, 0.4


@dataclass(frozen=True)
class Region:
    """The pairs of counts at which one side alarms.

    ``needed[n][a]`` is the fewest failures of B that alarm after n pairs of which A failed a, more than n if
    none do; `level` bounds the false-alarm probability within the table, for every common rate.
    """

    needed: list[list[int]]
    level: float

    def alarms(self, n: int, failures_a: int, failures_b: int) -> bool:
        """Return whether to alarm after n pairs; there is none after the table."""
        return n < len(self.needed) and failures_b >= self.needed[n][failures_a]

    @cached_property
    def ending(self) -> tuple[Array, Array]:
        """The shares of the orders with S failures that end at (a, b) without an alarm, and that alarm."""
        alive = forward([np.array(row) for row in self.needed]) * order_shares(len(self.needed) - 1)
        return shared(alive), shared(_alarmed(alive))


@dataclass(frozen=True)
class SignRegion:
    """The same for matched pairs without a horizon: ``needed[d]`` that only B failed, of d that differ."""

    needed: list[int]
    threshold: float
    level: float

    def alarms(self, failures_a: int, failures_b: int, log_wealth: float) -> bool:
        """Return whether to alarm; `log_wealth` is that of the bets after the table."""
        differing = failures_a + failures_b
        if differing < len(self.needed):
            return failures_b >= self.needed[differing]
        return log_wealth >= math.log(self.threshold)

    @cached_property
    def sizes(self) -> Array:
        """The bets by which fair coins reach the alarm: after d = 0, 1, … of them, at each of `CHANCES`.

        A chance to alarm is a capital, in parts of what an alarm pays: whoever bets so has all of it there.
        """
        last = len(self.needed) - 1
        found = np.zeros((last, CHANCES.size))
        chances = np.minimum(DifferenceBets().wealth(last) / self.threshold, 1.0)
        chances[self.needed[last] :] = 1.0
        for d in range(last - 1, -1, -1):
            lost, won = chances[:-1], chances[1:]
            chances = (lost + won) / 2
            found[d] = np.interp(
                CHANCES, ndtri(np.clip(chances, 1e-12, 1 - 1e-12)), (won - lost) / 2 / chances
            )
            chances[self.needed[d] :] = 1.0
        return shared(found)


def alarm_coefficients(alive: Array) -> Array:
    """Return Bernstein coefficients of the false-alarm probability, from what `forward` returned."""
    return _alarmed(alive * order_shares(alive.shape[0] - 1))


def _alarmed(shares: Array) -> Array:
    n = shares.shape[0] - 1
    pooled = np.add.outer(np.arange(n + 1), np.arange(n + 1)).ravel()
    silent = np.bincount(pooled, shares.ravel(), minlength=2 * n + 1)
    return np.asarray(np.clip(1 - silent, 0.0, 1.0))


class _Design:
    """The search for a region: a backward pass makes one from prices, a forward pass judges it."""

    def __init__(self, alpha: float, pairs: int, *, open_ended: bool) -> None:
        self.alpha, self.pairs = alpha, pairs
        rates_a, rates_b, weights = _alternatives(pairs, open_ended=open_ended)
        self.worlds = [outcomes(pairs, rates_a, rates_b, weights / weights.sum())]
        for n in range(pairs - 1, 0, -1):
            self.worlds.append(back(self.worlds[-1], n))
        # What it costs, in pairs, not to have found a difference when the table ends.
        self.miss = 30.0 if open_ended else 0.75 * pairs
        angles = (np.arange(RATES) + 0.5) / RATES * np.pi / 2
        degree = 2 * pairs
        self.rates = np.sin(angles) ** 2
        self.binomial = binomial(degree, self.rates)
        self.shares = order_shares(pairs)
        self.pooled = np.add.outer(np.arange(pairs + 1), np.arange(pairs + 1))
        self.knots = 0.03 + np.linspace(0, 1, KNOTS) ** 1.3 * (np.pi / 4 - 0.03)
        self.hats = _hats(_fold(angles), self.knots)
        fine = np.arange(4 * degree + 1) / (4 * degree)
        self.nearest = np.abs(_fold(np.arcsin(np.sqrt(fine)))[:, None] - self.knots).argmin(axis=1)
        # What may be spent at each rate, and at each coefficient of the level in Bernstein form.
        self.target, self.allowed = (
            np.full(each.size, alpha) - (alpha * _left_for_later(pairs, each) if open_ended else 0.0)
            for each in (self.rates, fine)
        )

    def region(self, prices: Array) -> tuple[list[Counts], Array]:
        """Return the best region for prices (logarithms, at the knots), and its coefficients."""
        weights = self.binomial @ np.exp(self.hats @ prices)
        needed = _backward(self.worlds, self.shares * weights[self.pooled], self.miss)
        return needed, alarm_coefficients(forward(needed))

    def solve(self) -> tuple[list[Counts], float]:
        """Return a region that keeps alpha, and its level."""
        prices = np.linspace(-3.0, 0.0, KNOTS)
        prices += math.log(60 * (self.miss + 20) / self.pairs / self.alpha / 20)
        average = self.hats / self.hats.sum(axis=0)
        for sweep in range(_SWEEPS):
            levels = self.region(prices)[1] @ self.binomial
            excess = np.log(np.maximum(levels, 1e-9) / (0.995 * self.target))
            limit, pace = (1.5, 1.0) if sweep < 3 else (0.7, 0.7)
            prices = np.maximum(prices + pace * (average.T @ excess.clip(-limit, limit)), _LOWEST_PRICE)
        best: tuple[float, list[Counts], float] | None = None
        step = 0
        while step < _REFINEMENTS or best is None:
            needed, coefficients = self.region(prices)
            raised = raise_degree(coefficients, self.nearest.size - 1)
            spent = float((coefficients @ self.binomial / self.target).mean())
            kept = self._keeps(raised)
            if kept and (best is None or spent > best[0]):
                best = spent, needed, bernstein_upper(raised, raised.size - 1)
            largest = np.zeros(KNOTS)
            np.maximum.at(largest, self.nearest, raised / self.allowed)
            excess = np.log(np.maximum(largest, 1e-9) / 0.998)
            pace = 0.8 / (1 + step / 3) if step < 0.7 * _REFINEMENTS else 0.0
            if pace == 0 and kept and best is not None:
                break  # no price would move
            moves = np.where(excess > 0, 1.5 * excess + 0.01, pace * excess.clip(-0.5, 0.0))
            prices = np.maximum(prices + moves, _LOWEST_PRICE)
            step += 1
        return best[1], best[2]

    def _keeps(self, raised: Array) -> bool:
        """Return whether no more is spent than may be, at any rate."""
        return bool((raised * (1 + SLACK) + SLACK * 1e-3 <= self.allowed).all())


def _left_for_later(pairs: int, rates: Array) -> Array:
    """Return the share of alpha that a table without a horizon leaves at each common rate."""
    differing = np.maximum(2 * pairs * rates * (1 - rates), 1.0)
    return np.asarray(np.minimum(_LEFT * np.maximum(_ENOUGH / differing, 1.0) ** _RARELY, _MOST_LEFT))


def _alternatives(pairs: int, *, open_ended: bool) -> tuple[Array, Array, Array]:
    """Return the rates whose mean number of pairs is to be small, and how much each counts."""
    if open_ended:  # those that the table is likely to find; smaller ones are for what comes after it
        low, high, gaps = _rate_pairs(0.18, 0.9, 40)
        middle = np.arcsin(np.sqrt(low)) + gaps / 2
        # Around one half there are differences of all sizes; large ones must not crowd out small ones.
        return low, high, gaps**2.2 * (0.35 / gaps) ** (0.3 * np.sin(2 * middle) ** 2)
    smallest = 0.1 * math.sqrt(200 / pairs)  # what the horizon can just find
    low, high, gaps = _rate_pairs(min(smallest, 0.8), 1.2, 40)
    return low, high, 1 / gaps  # nearly all of the power is to be had for small differences


def _rate_pairs(smallest: float, largest: float, middles: int) -> tuple[Array, Array, Array]:
    """Return pairs of rates p0 < p1 and the distances between them, evenly spread in difficulty.

    On the scale arcsin(sqrt(rate)) the middles are equally spaced and the distances grow by sqrt(2) each.
    """
    steps = math.floor(2 * math.log2(largest / smallest) + 1e-9) + 1
    gaps = np.repeat(smallest * math.sqrt(2) ** np.arange(steps), middles)
    middle = np.tile((np.arange(middles) + 0.5) / middles * np.pi / 2, steps)
    low, high = middle - gaps / 2, middle + gaps / 2
    inside = (low > _EDGE) & (high < np.pi / 2 - _EDGE)
    return np.sin(low[inside]) ** 2, np.sin(high[inside]) ** 2, gaps[inside]


def _fold(angles: Array) -> Array:
    """Rates p and 1 - p are alike."""
    return np.asarray(np.minimum(angles, np.pi / 2 - angles))


def _backward(worlds: list[Array], price: Array, miss: float) -> list[Counts]:
    """Return the region that stops where stopping is cheaper than the best way of going on.

    Both `worlds` (chances under the alternatives, after the last pair, the one before, …) and `price` (of an
    alarm, under common rates) are sums over rates of chances of (a, b), and `back` takes such sums one
    pair back. So only the difference between the value and the price has to be kept.
    """
    pairs = len(worlds)
    needed: list[Counts] = [np.array([1])] * (pairs + 1)
    gain = miss * worlds[0] - price
    for n in range(pairs, 0, -1):
        if n < pairs:
            gain = back(gain, n)
            gain += worlds[pairs - n]
        a = np.arange(n + 1)
        stops = np.logical_and.accumulate(gain[:, ::-1] >= 0, axis=1).sum(axis=1)
        # Only where B has failed more, and never earlier when A has failed more.
        needed[n] = np.maximum.accumulate(np.maximum(n + 1 - stops, a + 1))
        gain = np.minimum(gain, 0.0)
    return needed


def _hats(points: Array, knots: Array) -> Array:
    """Return the matrix that interpolates values at knots linearly to points."""
    return np.stack([np.interp(points, knots, unit) for unit in np.eye(knots.size)], axis=1)


def design_sign_region(alpha: float) -> SignRegion:
    """Return the region for matched pairs without a horizon; takes half a second.

    Under the null hypothesis each pair that differs is a fair coin, so there is one probability to compute.
    """
    threshold = FINAL_FACTOR / alpha
    wealth = DifferenceBets().wealth(LAST_DIFFERING)
    low, high = 0.0, 12 + math.log(1 / alpha)
    for _ in range(20):  # the level falls with the price, in steps
        middle = (low + high) / 2
        if sign_level(_sign_counts(middle), wealth, threshold) <= alpha:
            high = middle
        else:
            low = middle
    needed = _sign_counts(high)
    # The last step down left something over. It is worth most where the fewest pairs have been run.
    for d in range(1, LAST_DIFFERING // 4):
        lower = [*needed[:d], needed[d] - 1, *needed[d + 1 :]]
        if lower[d] >= max(lower[d - 1], d // 2 + 1) and sign_level(lower, wealth, threshold) <= alpha:
            needed = lower
    return SignRegion(needed, threshold, sign_level(needed, wealth, threshold))


def sign_level(needed: list[int], wealth: Array, threshold: float) -> float:
    """Return the probability that fair coins ever alarm; after the last, Ville's bound on it.

    `wealth` is that of every count after the last coin, and alarms from `threshold` on.
    """
    alive, level = np.ones(1), 0.0
    for d in range(1, len(needed)):
        alive = (np.append(alive, 0.0) + np.append(0.0, alive)) / 2
        level += float(alive[needed[d] :].sum())
        alive[needed[d] :] = 0.0
    return (level + float(alive @ wealth) / threshold) * (1 + SLACK)


def _sign_counts(log_price: float) -> list[int]:
    """Return the best region for a price per false alarm, as `_backward` does for two counts."""
    leads = np.geomspace(0.08, 0.95, 24)  # of one policy over the other, among pairs that differ
    chances = binomial(LAST_DIFFERING, (1 + leads) / 2) @ (leads**2.4 / (leads**2.4).sum())
    gain = 60 * chances - math.exp(log_price) * binomial(LAST_DIFFERING, np.array([0.5]))[:, 0]
    needed = [1] * (LAST_DIFFERING + 1)
    for d in range(LAST_DIFFERING, 0, -1):
        if d < LAST_DIFFERING:
            up, stay = np.arange(1, d + 2) / (d + 1), 1 - np.arange(d + 1) / (d + 1)
            chances = chances[1:] * up + chances[:-1] * stay
            gain = gain[1:] * up + gain[:-1] * stay + chances
        stops = int(np.logical_and.accumulate(gain[::-1] >= 0).sum())
        needed[d] = max(d + 1 - stops, d // 2 + 1)
        gain = np.minimum(gain, 0.0)
    return needed


def design_matched_region(alpha: float, pairs: int) -> Region:
    """Return the region for matched pairs with a horizon: early looks of the sign test, and a last one.

    Early looks spend half of alpha. The last, after `pairs` pairs of which d differ, has whatever fair coins
    have left of alpha after d tosses. So the level holds for every d at once, and for any drift: what makes
    pairs differ, and when, has no say.
    """
    early, last, level = design_sign_region(alpha / 2).needed[: pairs + 1], [1], 0.0
    alive, spent = np.ones(1), 0.0
    for d in range(1, pairs + 1):
        alive = (np.append(alive, 0.0) + np.append(0.0, alive)) / 2
        spent += float(alive[early[d] :].sum())
        alive[early[d] :] = 0.0
        levels = (spent + np.append(np.cumsum(alive[::-1])[::-1], 0.0)) * (1 + SLACK)
        last.append(max(int(np.argmax(levels <= alpha)), d // 2 + 1))
        level = max(level, float(levels[last[d]]))
    early, late = (_counts_against(row) for row in (early, last))
    needed = [[b if a + b <= n else n + 1 for a, b in enumerate(early[: n + 1])] for n in range(pairs)]
    needed.append(late)
    return Region(needed, level)


def _counts_against(needed: list[int]) -> list[int]:
    """Return, for every a, the fewest b that alarm, of a + b pairs that differ; too many if none do."""
    most = len(needed)
    return [next((b for b in range(most - a) if b >= needed[a + b]), most) for a in range(most)]


@lru_cache(maxsize=64)
def find_region(alpha: float, *, paired: bool, horizon: int | None = None) -> Region | SignRegion:
    """Return the region for a level: from the package for common ones, else computed, once, in seconds.

    **Guarantee**: under every common rate the region alarms with probability at most `alpha`: within the
    horizon or, without one, ever (of independent trials with `late_line`, which has what is left of it). Of
    matched trials the rates may also drift, as long as they are common.
    """
    if paired:
        return design_sign_region(alpha) if horizon is None else design_matched_region(alpha, horizon)
    if horizon is not None:
        return design_region(alpha, horizon, open_ended=False)
    for level, region in shipped_regions().items():
        if math.isclose(alpha, level, rel_tol=1e-14):  # 0.6/6 is not quite 0.1
            return region
    return design_region(alpha, LAST_PAIR, open_ended=True)


def design_region(alpha: float, pairs: int, *, open_ended: bool) -> Region:
    """Compute a region for pairs of independent trials; `open_ended` if alarms may come after the last."""
    design = _Design(alpha, pairs, open_ended=open_ended)
    needed, level = design.solve()
    region = Region([row.tolist() for row in needed], level)
    if open_ended and region.ending[1].max() > alpha:  # then nothing is left given some number of failures
        raise RuntimeError(f"no table with a proven level of {alpha:g} was found")
    return region


@lru_cache(maxsize=1)
def shipped_regions() -> dict[float, Region]:
    """Return the open-ended regions for independent trials that come with the package, by level."""
    regions = {}
    ends = np.cumsum(np.arange(1, LAST_PAIR + 2))[:-1]
    with resources.files(__package__).joinpath(TABLES).open("rb") as stream, np.load(stream) as tables:
        for alpha, level, flat in zip(tables["alphas"], tables["levels"], tables["needed"], strict=True):
            rows = [row.tolist() for row in np.split(flat.astype(np.int64), ends)]
            regions[float(alpha)] = Region(rows, float(level))
    return regions
