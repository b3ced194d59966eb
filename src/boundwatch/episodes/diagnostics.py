"""What the data say about the assumptions: independent episodes of one policy, each counted once.

Every note is a question to whoever knows the trials, never a verdict. The statistical ones have a level, the
probability with which independent episodes get them; together they stay below 2 %.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, ndtr

from boundwatch.episodes.numbers import parse
from boundwatch.episodes.table import Table
from boundwatch.episodes.words import normal
from boundwatch.errors import InvalidCost

Array = NDArray[np.float64]

LEVEL_TREND = 0.005
LEVEL_BLOCKS = 0.005
LEVEL_COPY = 0.001
_FEWEST = 12  # episodes from which an order can be told
_MOST_FOR_COPIES = 4000  # every shift of the file against itself is tried

_STEPS = re.compile(
    r"(.*[/_. ])?_?(global_?step|step|epoch|iteration|iter|timesteps?|update)s?", re.IGNORECASE
)
_TIMES = re.compile(r"(.*[/_. ])?(time_?stamp|date_?time|time|stamp|(uhr)?zeit|zeitstempel)", re.IGNORECASE)


def diagnose(table: Table, costs: Array, column: str, tasks: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what is suspicious about episodes, one sentence each.

    Parameters
    ----------
    table
        The file, one row per episode.
    costs
        Their costs, in the order of the rows.
    column
        The column that the costs were read from.
    tasks
        The task of each episode, if they are judged apart: orders are then looked at task by task.

    Examples
    --------
    >>> table = Table(["cost"], True, lambda name: [])
    >>> diagnose(table, np.linspace(0, 1, 30), "cost")
    ('the costs rise along the file (rank correlation 1.00; by chance in fewer than 0.5 % of files); ...',)
    """
    return (
        *_order(costs, tasks),
        *_constant(costs),
        *_copies(costs),
        # A file of millions of rows was not pasted together by hand, and its cells would fill the memory.
        *(_columns(table, column, len(costs)) if table.named and table.array is None else ()),
    )


def _order(costs: Array, tasks: tuple[str, ...]) -> Iterator[str]:
    names = np.array(tasks) if tasks else np.zeros(len(costs))
    groups = [costs[names == name] for name in dict.fromkeys(names.tolist())]
    trends = [(trend(group), group) for group in groups]
    smallest = min(trends, key=lambda pair: pair[0][1])[0]
    if smallest[1] <= LEVEL_TREND / len(groups):
        way = "rise" if smallest[0] > 0 else "fall"
        yield (
            f"the costs {way} along the file (rank correlation {smallest[0]:.2f}; by chance in fewer than "
            f"{100 * LEVEL_TREND:g} % of files); did the policy, the setup or the scoring change?"
        )
    elif min(blocks(group) for group in groups) <= LEVEL_BLOCKS / len(groups):
        yield (
            f"good and bad episodes come in blocks (runs test; by chance in fewer than "
            f"{100 * LEVEL_BLOCKS:g} % of "
            "files); episodes that share a setup, an operator or a day are not independent"
        )


def trend(costs: Array) -> tuple[float, float]:
    """Return the rank correlation of costs with their order, and its two-sided p-value.

    Examples
    --------
    >>> trend(np.array([0.1, 0.9, 0.2] * 4))[1] > 0.5
    True
    """
    n = costs.size
    _, kinds, counts = np.unique(costs, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[kinds] - (n + 1) / 2  # those that tie share the mean
    spread = float(np.sqrt(np.sum(ranks**2)))
    if n < _FEWEST or spread == 0:
        return 0.0, 1.0
    places = np.arange(n) - (n - 1) / 2
    correlation = float(ranks @ places / (spread * np.sqrt(np.sum(places**2))))
    # Over all orders its variance is 1/(n - 1), whatever the ties.
    return correlation, float(2 * ndtr(-abs(correlation) * math.sqrt(n - 1)))


def blocks(costs: Array) -> float:
    """Return the probability of so few runs above and below the median over all orders: the runs test, exact.

    Examples
    --------
    >>> round(blocks(np.repeat([0.0, 1.0], 10)), 6), blocks(np.tile([0.0, 1.0], 10)) > 0.99
    (1.1e-05, True)
    """
    middle = float(np.median(costs))
    above = costs[costs != middle] > middle if not np.isin(costs, (0, 1)).all() else costs > 0
    first, second = int(above.sum()), int((~above).sum())
    if min(first, second) < 3 or first + second < _FEWEST:
        return 1.0
    runs = 1 + int(np.count_nonzero(above[1:] != above[:-1]))
    counts = np.arange(2, runs + 1)
    half = counts // 2
    # Orders with r runs: r/2 of each kind, or one more of either.
    even = math.log(2) + _log_choose(first - 1, half - 1) + _log_choose(second - 1, half - 1)
    odd = np.logaddexp(
        _log_choose(first - 1, half - 1) + _log_choose(second - 1, half),
        _log_choose(first - 1, half) + _log_choose(second - 1, half - 1),
    )
    orders = np.where(counts % 2 == 0, even, odd)
    return float(min(1.0, np.exp(logsumexp(orders) - _log_choose(first + second, np.array(first)))))


def _log_choose(n: int, k: NDArray[np.int64]) -> Array:
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
    # shares;
    # there are fewer than n^2/2 pairs of places.
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
                f"the costs of episodes {first} to {last} are those of {start + 1} to {end + 1} once more "
                f"(by chance "
                f"in fewer than {100 * LEVEL_COPY:g} % of files); pasted twice?"
            )
            return


def _columns(table: Table, column: str, n: int) -> Iterator[str]:
    columns = {name: _cells(table, name, n) for name in table.names if table.names.count(name) == 1}
    known = {name: cells for name, cells in columns.items() if cells is not None}
    yield from _same_rows(known, column, n)
    for name, cells in known.items():
        if name == column:
            continue
        if _TIMES.fullmatch(name.strip()):
            yield from _times(name, cells)
        elif _STEPS.fullmatch(name.strip()) and _grows(cells):
            yield (
                f"column {name!r} grows from row to row: is this a training curve? All episodes must be "
                f"of one "
                "policy that is finished"
            )
    if any(normal(name).endswith("__min") for name in table.names):
        yield "this looks like a chart exported from Weights & Biases; give one row per episode of one policy"


def _cells(table: Table, name: str, n: int) -> list[Any] | None:
    if table.episode is not None or n < 2:
        return None
    try:
        cells = table.values(name)
    except (InvalidCost, ArithmeticError, ValueError):  # nobody asked for this column: no note about it
        return None
    return [str(cell) for cell in cells] if len(cells) == n else None


def _same_rows(columns: dict[str, list[Any]], column: str, n: int) -> Iterator[str]:
    """Notice rows that are alike in all columns, one of which tells rows apart otherwise."""
    rows = list(zip(*columns.values(), strict=True))
    different = set(rows)
    if not columns or len(different) == n:
        return
    for name, cells in columns.items():
        # Without the copies it has no value twice, so that it numbers the rows; a few names do not.
        if name != column and len(set(cells)) == len(different) >= max(5, n / 3):
            yield f"{n - len(different)} rows are in the file twice, with the same {name}; pasted twice?"
            return


def _times(name: str, cells: list[Any]) -> Iterator[str]:
    different = len(set(cells))
    if different < len(cells) and different > 0.6 * len(cells):
        twice = next(cell for cell, times in Counter(cells).items() if times > 1)
        yield f"column {name!r} has the same value in several rows ({twice[:25]!r}); were some entered twice?"
    numbers = [parse(cell) for cell in cells]
    values = np.array([math.nan if number is None else float(number) for number in numbers])
    if values.size >= 50 and np.isfinite(values).all():
        gap = float(np.median(np.abs(np.diff(values))))
        if 0 < gap < 0.5:
            yield (
                f"rows are {gap:.2g} s apart by column {name!r}: are these messages of a sensor rather than "
                "episodes? Give one row per episode, or --episode COLUMN"
            )


def _grows(cells: list[Any]) -> bool:
    numbers = [parse(cell) for cell in cells]
    if any(number is None for number in numbers):
        return False
    values = np.array(numbers, dtype=np.float64)
    steps = np.diff(values)
    # Counted one by one, they may number the trials.
    return values.size >= 5 and bool((steps > 0).all()) and bool((steps > 1).any())
