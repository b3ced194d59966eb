"""What a comparison of two policies promises, tried where both are equally good and it is hardest to keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from boundwatch.comparison import ComparisonVerdict, PolicyComparison
from boundwatch.selftest.worlds import Array, Claim

Draw = Callable[[np.random.Generator, int], tuple[Array, Array]]

TASKS, TURNS, HORIZON = 20, 3, 40
# Each policy is good at half of the tasks; who looks within a turn is taken in by the first half.
_GOOD, _BAD = 0.1, 0.6
_ALIKE = 24  # pairs, before all differ


def claims_of_comparisons(alpha: float) -> Iterator[Claim]:
    """Return what is promised, per side, of two policies of which neither is better."""
    world = f"fails {_GOOD:g} or {_BAD:g}, exchanged halfway"
    for paired in (False, True):
        name = f"compare, {TASKS} tasks in turn, {'matched' if paired else 'independent'}"
        count = partial(_count, alpha, {"paired": paired, "tasks": TASKS}, _exchanged)
        yield Claim(name, ComparisonVerdict.A_BETTER, world, alpha, count)
    count = partial(_count, alpha, {"paired": True, "horizon": HORIZON}, _drifting)
    world = f"{_ALIKE} pairs alike, {HORIZON - _ALIKE} that differ"
    yield Claim(f"compare, matched, horizon {HORIZON}", ComparisonVerdict.A_BETTER, world, alpha, count)


def _exchanged(rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    rates = np.tile(np.repeat([_GOOD, _BAD], TASKS // 2), TURNS)
    costs_a, costs_b = (rng.random((runs, rates.size)) < each for each in (rates, _GOOD + _BAD - rates))
    return costs_a.astype(np.float64), costs_b.astype(np.float64)


def _drifting(rng: np.random.Generator, runs: int) -> tuple[Array, Array]:
    costs_a = (rng.random((runs, HORIZON)) < 0.5).astype(np.float64)
    return costs_a, np.where(np.arange(HORIZON) < _ALIKE, costs_a, 1 - costs_a)


def _count(alpha: float, settings: dict[str, Any], draw: Draw, rng: np.random.Generator, runs: int) -> int:
    test, hits = PolicyComparison(alpha, binary=True, **settings), 0
    for costs_a, costs_b in zip(*draw(rng, runs), strict=True):
        test.reset()
        hits += test.update_many(costs_a, costs_b).verdict is ComparisonVerdict.A_BETTER
    return hits
