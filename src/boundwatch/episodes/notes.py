"""What the data say about the assumptions: independent episodes of one policy, each counted once.

Every note is a question to people who know the trials, never a verdict. The statistical ones have a level,
the probability with which independent episodes get them; together they stay below 2 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

LEVEL_TREND = 0.005
LEVEL_BLOCKS = 0.005
LEVEL_COPY = 0.001
_FEWEST = 12  # episodes from which an order can be told
_MOST_TO_RANK = 10_000  # of longer files, means of as many stretches are ranked
_MOST_FOR_COPIES = 4000  # every shift of the file against itself is tried


def suspicions(costs: Array, tasks: Sequence[str] = ()) -> tuple[str, ...]:
    """Return what is suspicious about episodes, one sentence each."""
    return *_order(costs, tasks), *_constant(costs), *_copies(costs)


def repeats(
    labels: Mapping[str, Sequence[str]], costs: Array, keys: Sequence[Sequence[str]] = ()
) -> Iterator[str]:
    """Notice that several rows have the same number: steps or repeats of one episode, or pasted twice."""
    for column, numbers in labels.items():
        placed = list(zip(numbers, *(key[: len(numbers)] for key in keys), strict=True))
        different = len(set(placed))
        if different == len(placed):
            continue
        if different >= len(placed) / 2 and len(set(zip(placed, costs.tolist(), strict=False))) == different:
            yield f"{len(placed) - different} rows repeat the {column} and the cost of another; pasted twice?"
        else:
            yield (
                f"{len(placed)} rows have only {different} different values of {column}; if rows are steps, "
                f"declare episode={column!r}; if they are repeats of one scene, cluster={column!r}"
            )
        return


def _order(costs: Array, tasks: Sequence[str]) -> Iterator[str]:
    number = {task: place for place, task in enumerate(dict.fromkeys(tasks))}
    groups = np.fromiter(map(number.__getitem__, tasks), np.int64, len(tasks)) if len(number) > 1 else None
    count = max(len(number), 1)
    ranked = _condensed(costs) if groups is None else costs
    correlations, chances = _trends(ranked, groups)
    smallest = int(np.argmin(chances))
    if chances[smallest] <= LEVEL_TREND / count:
        way = "rise" if correlations[smallest] > 0 else "fall"
        of = "" if ranked.size == costs.size else f" of the means of {ranked.size:,} stretches"
        yield (
            f"the costs {way} along the file (rank correlation{of} {correlations[smallest]:.2f}; by chance "
            f"in fewer than {100 * LEVEL_TREND:g} % of files); did the policy, the setup or the scoring "
            "change?"
        )
    elif min(_blocks(costs, groups)) <= LEVEL_BLOCKS / count:
        yield (
            "good and bad episodes come in blocks (runs test; by chance in fewer than "
            f"{100 * LEVEL_BLOCKS:g} % of files); "
            "episodes that share a setup, an operator or a day are not independent"
        )


def trend(costs: Array) -> tuple[float, float]:
    """Return the rank correlation of costs with their order, and its two-sided p-value."""
    correlations, chances = _trends(costs, None)
    return float(correlations[0]), float(chances[0])


def blocks(costs: Array) -> float:
    """Return the probability of so few runs above and below the median over all orders (runs test)."""
    return _blocks(costs, None)[0]


def _condensed(costs: Array) -> Array:
    """Return the means of equally long stretches of a long file: independent draws if its costs are."""
    length = max(costs.size // _MOST_TO_RANK, 1)
    whole = costs.size // length * length
    means: Array = costs[:whole].reshape(-1, length).mean(axis=1)
    return means


def _trends(costs: Array, groups: Whole | None) -> tuple[Array, Array]:
    """Return what `trend` does for each group of costs, in arrays."""
    groups = np.zeros(costs.size, dtype=np.int64) if groups is None else groups
    sizes = np.bincount(groups)
    starts, middles = np.cumsum(sizes) - sizes, (sizes - 1) / 2
    order = np.lexsort((costs, groups))
    value, group = costs[order], groups[order]
    new = np.append(True, (value[1:] != value[:-1]) | (group[1:] != group[:-1]))
    firsts = np.flatnonzero(new)
    shared = firsts + (np.diff(np.append(firsts, costs.size)) - 1) / 2  # those that tie share the mean
    ranks, places = np.empty((2, costs.size))
    ranks[order] = shared[np.cumsum(new) - 1]
    places[np.argsort(groups, kind="stable")] = np.arange(costs.size)
    for each in (ranks, places):
        each -= (starts + middles)[groups]
    spread, length = (np.sqrt(np.bincount(groups, each**2)) for each in (ranks, places))
    judged = (sizes >= _FEWEST) & (spread > 0)
    correlations = np.bincount(groups, ranks * places) / np.where(judged, spread * length, np.inf)
    # Over all orders its variance is 1/(n - 1), whatever the ties.
    chances = 2 * ndtr(-np.abs(correlations) * np.sqrt(sizes - 1))
    return correlations, np.where(judged, chances, 1.0)


def _blocks(costs: Array, groups: Whole | None) -> list[float]:
    """Return what `blocks` does for each group of costs."""
    if groups is None:
        binary = costs[0] in (0, 1) and bool(((costs == 0) | (costs == 1)).all())
        middle = 0.0 if binary else float(np.median(costs))
        above = (costs if binary else costs[costs != middle]) > middle
        high = int(np.count_nonzero(above))
        return [_few_runs(high, above.size - high, 1 + int(np.count_nonzero(above[1:] != above[:-1])))]
    sizes = np.bincount(groups)
    ends = np.cumsum(sizes)
    ranked = costs[np.lexsort((costs, groups))]
    medians = (ranked[ends - 1 - sizes // 2] + ranked[ends - 1 - (sizes - 1) // 2]) / 2
    order = np.argsort(groups, kind="stable")
    costs, groups = costs[order], groups[order]
    outcomes = np.bincount(groups, (costs != 0) & (costs != 1)) == 0
    kept = outcomes[groups] | (costs != medians[groups])
    above = costs > np.where(outcomes, 0, medians)[groups]
    above, groups = above[kept], groups[kept]
    highs = np.bincount(groups, above, minlength=outcomes.size).astype(np.int64)
    lows = np.bincount(groups, minlength=outcomes.size) - highs
    turns = (above[1:] != above[:-1]) & (groups[1:] == groups[:-1])
    runs = 1 + np.bincount(groups[1:], turns, minlength=outcomes.size).astype(np.int64)
    return [_few_runs(*each) for each in zip(highs.tolist(), lows.tolist(), runs.tolist(), strict=True)]


@lru_cache(maxsize=4096)  # small groups of one size have few numbers of runs
def _few_runs(first: int, second: int, runs: int) -> float:
    """Return the probability of at most so many runs over all orders of two kinds."""
    if min(first, second) < 3 or first + second < _FEWEST:
        return 1.0
    # Far fewer runs than these are too rare to matter, and a long file has millions.
    counts = np.arange(max(2, runs - math.ceil(40 * math.sqrt(first + second))), runs + 1)
    half = counts // 2
    # Orders with r runs: r/2 of each kind, or one more of either.
    even = math.log(2) + _log_choose(first - 1, half - 1) + _log_choose(second - 1, half - 1)
    odd = np.logaddexp(
        _log_choose(first - 1, half - 1) + _log_choose(second - 1, half),
        _log_choose(first - 1, half) + _log_choose(second - 1, half - 1),
    )
    orders = np.where(counts % 2 == 0, even, odd)
    return float(min(1.0, np.exp(logsumexp(orders) - _log_choose(first + second, np.array(first)))))


def _log_choose(n: int, k: Whole) -> Array:
    inside = (k >= 0) & (k <= n)
    safe = np.where(inside, k, 0)
    return np.where(inside, gammaln(n + 1) - gammaln(safe + 1) - gammaln(n - safe + 1), -np.inf)


def _constant(costs: Array) -> Iterator[str]:
    if costs.size >= 10 and costs[0] > 0 and (costs == costs[0]).all():
        what = "failed" if costs[0] == 1 else f"cost {costs[0]:.4g}"
        yield f"all {costs.size} episodes {what}; is it the right column, read in the right direction?"


def _copies(costs: Array) -> Iterator[str]:
    """Notice a stretch of costs that occurs twice: rows that were pasted twice."""
    n = costs.size
    if not _FEWEST <= n <= _MOST_FOR_COPIES:
        return
    _, kinds, counts = np.unique(costs, return_inverse=True, return_counts=True)
    # A stretch that begins at a given place recurs at another given one with the product of its values'
    # shares; there are fewer than n^2/2 pairs of places.
    surprise = -np.log(counts / n)[kinds]
    threshold = math.log(n * n / 2 / LEVEL_COPY)
    if surprise.sum() < threshold:
        return
    for shift in range(1, n):
        same = kinds[shift:] == kinds[:-shift]
        total = np.cumsum(np.where(same, surprise[shift:], 0.0))
        before = np.maximum.accumulate(np.where(same, 0.0, total))
        if (total - before).max() >= threshold:
            end = int(np.argmax(total - before))
            start = int(np.flatnonzero(~same[: end + 1])[-1]) + 1 if (~same[: end + 1]).any() else 0
            first, last = shift + start + 1, shift + end + 1
            yield (
                f"the costs of episodes {first} to {last} repeat those of {start + 1} to {end + 1} "
                f"(by chance in fewer than {100 * LEVEL_COPY:g} % of files); pasted twice?"
            )
            return
