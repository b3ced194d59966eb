"""The wealth of bets in two ways that must agree: at once, and in a row per stream."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from boundwatch.bounds.bets import Bets, Rows, Wealth, bet_bounds

LOWER, UPPER = 0.1, 0.2
BOUNDS = bet_bounds(LOWER, UPPER)
costs_lists = st.lists(st.floats(0, 1), min_size=1, max_size=150)


def by_definition(bets, costs, bound):
    with np.errstate(divide="ignore"):
        logs = np.log(1 - bets.sizes + np.outer(costs / bound, bets.sizes)).sum(axis=0) + np.log(bets.shares)
    return np.logaddexp.reduce(logs)


def count(wealth, rows, where, costs, before=0):
    """Count the same costs for each of some streams; return their log wealth."""
    streams = np.arange(rows.size)[where].size
    for n, cost in enumerate(costs.tolist(), start=before + 1):
        log = wealth.step(rows, where, np.full(streams, cost), np.full(streams, n))
    return log


@pytest.mark.parametrize("binary", [False, True])
def test_what_one_cost_does_to_each_bet(binary):
    bets = Bets.for_costs(binary=binary)
    assert bets.shares.sum() == pytest.approx(1)
    assert bets.sizes.max() == (1.0 if not binary else pytest.approx(1, abs=0.02))
    for bound in (0.03, 0.5, 1.0):
        passed, failed = (np.exp(logs) for logs in bets.log_factors(bound))
        assert passed == pytest.approx(1 - bets.sizes, abs=1e-12)
        assert failed == pytest.approx(1 + bets.sizes * (1 - bound) / bound)
        fair = bets.shares @ (bound * failed + (1 - bound) * passed)
        assert fair == pytest.approx(1), "no bet wins on average at the bound"


@pytest.mark.parametrize("binary", [False, True])
@given(costs=costs_lists)
def test_all_ways_agree(binary, costs):
    bets, costs = Bets.for_costs(binary=binary), np.round(costs) if binary else np.array(costs)
    wealth, alone = Wealth(bets, *BOUNDS), Wealth(bets, UPPER)
    block, some = Rows(wealth.first, size=1), Rows(wealth.first, size=3)
    one, two = count(wealth, block, slice(0, 1), costs), count(wealth, some, np.array([0, 2]), costs)
    expected = [by_definition(bets, costs, UPPER), by_definition(bets, 1 - costs, 1 - LOWER)]
    pasts = [costs[:n] for n in range(costs.size + 1)]
    paths = [
        [by_definition(bets, past, UPPER) for past in pasts],
        [by_definition(bets, 1 - past, 1 - LOWER) for past in pasts],
    ]
    assert one[0].tolist() == pytest.approx(expected, abs=1e-9)
    assert two.tolist() == [one[0].tolist()] * 2, "bit by bit"
    assert some["log"][1].tolist() == [0, 0]
    assert count(alone, Rows(alone.first, size=1), slice(0, 1), costs)[0, 0] == pytest.approx(expected[0])
    assert bets.log_wealth(costs, np.ones(costs.size), UPPER) == pytest.approx(expected[0], abs=1e-9)
    assert block["best"][0].tolist() == pytest.approx([max(path) for path in paths], abs=1e-9)


def test_neither_overflows_nor_gets_lost():
    bets = Bets.for_costs(binary=False)
    wealth, costs = Wealth(bets, *BOUNDS), np.repeat([1.0, 0.0, 1.0], [3000, 9000, 40])
    log = count(wealth, Rows(wealth.first, size=1), slice(0, 1), costs)
    assert log[0, 0] == pytest.approx(by_definition(bets, costs, UPPER), rel=1e-9)


def test_a_stream_continues_from_its_capitals():
    wealth, only = Wealth(Bets.for_costs(binary=False), *BOUNDS), slice(0, 1)
    rows, other = Rows(wealth.first, size=1), Rows(wealth.first, size=1)
    count(wealth, rows, only, np.random.default_rng(0).random(100))
    for name in ("best", "logs", "product"):
        other[name][:] = rows[name]
    wealth.rescale(other, only)
    for each in (rows, other):
        count(wealth, each, only, np.array([0.4]), before=100)
    assert all(np.array_equal(rows[name], other[name]) for name in rows)


def test_a_stream_that_begins_anew_or_appears_has_no_costs():
    wealth = Wealth(Bets.for_costs(binary=True), *BOUNDS)
    rows = Rows(wealth.first, size=2)
    count(wealth, rows, slice(2), np.ones(5))
    rows.grow(5)
    assert rows["log"][:2, 0].min() > 0
    rows.begin(slice(1, 2))
    for name, first in wealth.first.items():
        assert np.array_equal(rows[name][1:], np.broadcast_to(first, (4, *first.shape)))
