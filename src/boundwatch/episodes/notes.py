"""What the data say about the assumptions: independent episodes of one policy, each counted once.

Every note is a question to people who know the trials, never a verdict. The statistical ones have a level,
the probability with which independent episodes get them; together they stay below 1 %.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import count
from operator import itemgetter
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr

from boundwatch.episodes.cells import normal
from boundwatch.episodes.declared import NUMBERING

Array = NDArray[np.float64]
_Name = TypeVar("_Name", str, tuple[str, ...])

LEVEL_TREND = 0.005
LEVEL_BLOCKS = 0.005
_FEWEST = 12  # episodes from which an order can be told
_SHOWN = 6
_ROUNDED = 0.005  # of a mean with two digits
_AGAIN = re.compile(r"(\d{1,9})(?!\d)\D.*").fullmatch  # 17 (redo), 17b
_MOST_TO_RANK = 10_000  # of longer files, means of as many stretches are ranked


def rows_of(names: Sequence[_Name]) -> dict[_Name, NDArray[np.int64]]:
    """Return the places of each name, in the order in which they appear."""
    order = dict(zip(dict.fromkeys(names), count(), strict=False))
    groups = np.fromiter(map(order.__getitem__, names), np.int64, len(names))
    ends = np.cumsum(np.bincount(groups))
    return dict(zip(order, np.split(np.argsort(groups, kind="stable"), ends), strict=False))


def suspicions(costs: Array, tasks: Sequence[str] = ()) -> list[str]:
    """Return what is suspicious about episodes, one sentence each; the order is looked at task by task."""
    found: list[str] = []
    parts = [costs[rows] for rows in rows_of(tasks).values()] if tasks else [costs]
    correlation, chance = min(map(trend, parts), key=itemgetter(1))
    if chance <= LEVEL_TREND / len(parts):
        way = "rise" if correlation > 0 else "fall"
        of = " of the means of stretches" if max(map(len, parts)) >= 2 * _MOST_TO_RANK else ""
        found.append(
            f"the costs {way} along the file (rank correlation{of} {correlation:.2f}; by chance in fewer "
            f"than {100 * LEVEL_TREND:g} % of files); did the policy, the setup or the scoring change?"
        )
    elif min(map(blocks, parts)) <= LEVEL_BLOCKS / len(parts):
        found.append(
            "good and bad episodes come in blocks (runs test; by chance in fewer than "
            f"{100 * LEVEL_BLOCKS:g} % of files); "
            "episodes that share a setup, an operator or a day are not independent"
        )
    if costs.size >= 10 and costs[0] > 0 and (costs == costs[0]).all():
        what = "failed" if costs[0] == 1 else f"cost {costs[0]:.4g}"
        found.append(
            f"all {costs.size} episodes {what}; is it the right column, read in the right direction?"
        )
    return found


def repeats(
    labels: Mapping[str, Sequence[str]], costs: Array, keys: Sequence[Sequence[str]] = ()
) -> Iterator[str]:
    """Notice that several rows have the same number: steps or repeats of one episode, or pasted twice."""
    for column, numbers in labels.items():
        if len(set(numbers)) == len(numbers):
            continue
        placed = [each for each in zip(numbers, *keys, strict=False) if each[0]]  # the first rows' labels
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


def total(columns: Mapping[str, Sequence[str]], read: Array) -> tuple[str, int] | None:
    """Return the row that may be the total or the mean of others, and the column of names that says so.

    Its name occurs once and is a longer form (mug total) of that of the rows just above it; or it is the last
    row, all other names repeat, and what is read is not 0 or 1, which a mean may well be by chance.
    """
    binary = bool(((read == 0) | (read == 1)).all())
    for column, names in columns.items():
        times = Counter(names)
        if len(names) < read.size or not {1} < set(times.values()):  # some occur once, others not
            continue
        places, single = rows_of(names), [row for row, name in enumerate(names) if times[name] == 1]
        for row in single:
            above = names[row - 1] if row else ""
            longer = above != "" and times[above] > 1 and above in names[row]
            of = read[places[above]] if longer else read[:row]
            last = not binary and single == [row] == [read.size - 1] and of.min() < of.max()
            if longer and binary and read[row] == of.sum():
                return column, row
            if (longer or last) and abs(read[row] - of.mean()) <= _ROUNDED:
                return column, row
    return None


def gaps(labels: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Notice that numbers of trials are missing, or that a trial was done again."""
    for column, cells in labels.items():
        plain = {int(cell) for cell in cells if cell.isdecimal() and len(cell) < 10}
        for found in filter(None, map(_AGAIN, cells)) if len(plain) < len(cells) else ():
            if int(found[1]) in plain:
                yield f"{column} {found[0]} stands beside {found[1]}; both count"
                break
        if normal(column) in NUMBERING and len(plain) == len(cells) > max(plain) / 2:
            missing = sorted(set(range(min(plain), max(plain))) - plain)
            if 0 < 4 * len(missing) <= len(cells):
                listed = ", ".join(map(str, missing[:_SHOWN])) + (", ..." if len(missing) > _SHOWN else "")
                yield f"no row has {column} {listed}; a trial that was run counts, however it ended"


def trend(costs: Array) -> tuple[float, float]:
    """Return the rank correlation of costs (or stretches of them) with their order, and its p-value."""
    length = max(costs.size // _MOST_TO_RANK, 1)  # means of stretches are as independent as the costs
    costs = costs[: costs.size // length * length].reshape(-1, length).mean(axis=1)
    _, kinds, counts = np.unique(costs, return_inverse=True, return_counts=True)
    if costs.size < _FEWEST or counts.size == 1:
        return 0.0, 1.0
    middle = (costs.size - 1) / 2
    ranks = (np.cumsum(counts) - (counts + 1) / 2)[kinds] - middle  # those that tie share the mean
    places = np.arange(costs.size) - middle
    correlation = float(ranks @ places / math.sqrt((ranks @ ranks) * (places @ places)))
    # Over all orders its variance is 1/(n - 1), whatever the ties.
    return correlation, 2 * float(ndtr(-abs(correlation) * math.sqrt(costs.size - 1)))


def blocks(costs: Array) -> float:
    """Return the probability of so few runs above and below the middle over all orders (runs test).

    That is the median or, of long files, the mean, which is as valid and takes no sorting.
    """
    binary = costs[0] in (0, 1) and bool(((costs == 0) | (costs == 1)).all())
    is_long = costs.size >= 2 * _MOST_TO_RANK
    middle = 0.0 if binary else float((np.mean if is_long else np.median)(costs))
    above = (costs if binary or is_long else costs[costs != middle]) > middle
    high = int(np.count_nonzero(above))
    return _few_runs(high, above.size - high, 1 + int(np.count_nonzero(above[1:] != above[:-1])))


@lru_cache(maxsize=4096)  # small tasks of one size have few numbers of runs
def _few_runs(first: int, second: int, runs: int) -> float:
    """Return the probability of at most so many runs over all orders of two kinds."""
    if min(first, second) < 3 or first + second < _FEWEST:
        return 1.0
    # Far fewer runs than these are too rare to matter, and a long file has millions.
    counts = np.arange(max(2, runs - math.ceil(40 * math.sqrt(first + second))), runs + 1)
    half = counts // 2
    # Orders with r runs: r/2 of each kind, or one more of either.
    one, other = _log_choose(first - 1, half - 1), _log_choose(second - 1, half - 1)
    odd = np.logaddexp(one + _log_choose(second - 1, half), _log_choose(first - 1, half) + other)
    orders = np.where(counts % 2 == 0, math.log(2) + one + other, odd)
    return float(min(1.0, np.exp(logsumexp(orders) - _log_choose(first + second, np.array(first)))))


def _log_choose(n: int, k: NDArray[np.int64]) -> Array:
    """Return the logarithm of n over k: minus infinity for a k below 0 or above n."""
    chosen: Array = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    return chosen
