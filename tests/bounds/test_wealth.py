"""The wealth of bets in four ways that must agree: at once, along a path, on a stream, in a table."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.bounds.wealth import Bets, Wealth, bet_bounds
from boundwatch.bounds.wealth_table import WealthTable

LOWER, UPPER = 0.1, 0.2
UPPER_BOUND, REST = bet_bounds(LOWER, UPPER)
costs_lists = st.lists(st.floats(0, 1), min_size=1, max_size=150)


def by_definition(bets, costs, bound):
    with np.errstate(divide="ignore"):
        logs = np.log(1 - bets.sizes + np.outer(costs / bound, bets.sizes)).sum(axis=0) + np.log(bets.shares)
    return np.logaddexp.reduce(logs)


@pytest.mark.parametrize("binary", [False, True])
@given(costs=costs_lists)
def test_all_ways_agree(binary, costs):
    bets, costs = Bets.for_costs(binary=binary), np.round(costs) if binary else np.array(costs)
    stream = Wealth(bets, UPPER_BOUND, REST)
    table = WealthTable(bets, UPPER_BOUND, REST, size=3)
    adverse_alone = WealthTable(bets, UPPER_BOUND, size=1)
    for cost in costs.tolist():
        stream.step(cost)
        rows = table.step(np.array([0, 2]), np.array([cost, cost]))
        alone = adverse_alone.step(np.array([0]), np.array([cost]))
    expected = [by_definition(bets, costs, UPPER), by_definition(bets, 1 - costs, 1 - LOWER)]
    paths = [bets.log_wealth_path(costs, UPPER), bets.log_wealth_path(1 - costs, 1 - LOWER)]
    once = np.ones(costs.size)
    assert stream.log == pytest.approx(expected, abs=1e-9)
    assert rows.tolist() == [pytest.approx(expected, abs=1e-9)] * 2
    assert alone[0, 0] == pytest.approx(expected[0], abs=1e-9)
    assert [path[-1] for path in paths] == pytest.approx(expected, abs=1e-9)
    assert bets.log_wealth(costs, once, UPPER) == pytest.approx(expected[0], abs=1e-9)
    assert stream.best == pytest.approx([max(path) for path in paths], abs=1e-9)
    assert table.best[0] == pytest.approx(np.array(stream.best), abs=1e-9)
    assert table.n.tolist() == [costs.size, 0, costs.size]


def test_neither_overflows_nor_gets_lost():
    bets = Bets.for_costs(binary=False)
    stream, table = Wealth(bets, UPPER_BOUND, REST), WealthTable(bets, UPPER_BOUND, REST, size=1)
    costs = np.repeat([1.0, 0.0, 1.0], [3000, 9000, 40])
    for cost in costs.tolist():
        stream.step(cost)
        table.step(np.array([0]), np.array([cost]))
    expected = by_definition(bets, costs, UPPER)
    assert stream.log[0] == pytest.approx(expected, rel=1e-9)
    assert table.log[0, 0] == pytest.approx(expected, rel=1e-9)


def test_a_stream_continues_from_its_capitals():
    bets = Bets.for_costs(binary=False)
    one, other = Wealth(bets, UPPER_BOUND, REST), Wealth(bets, UPPER_BOUND, REST)
    for cost in np.random.default_rng(0).random(100).tolist():
        one.step(cost)
    other.n, other.best = one.n, list(one.best)
    other.restore(one.logs.copy(), one.product.copy())
    one.step(0.4)
    other.step(0.4)
    assert (one.log, one.best) == (other.log, other.best)
