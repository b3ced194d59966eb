"""How a comparison counts, waits, stores itself and refuses; its promises are in tests/guarantees."""

import json
import pickle

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.comparison.region import LAST_PAIR, find_region
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting, SchemaMismatch

A_BETTER, B_BETTER, UNDECIDED = bw.ComparisonVerdict
KINDS = [
    {"binary": True, "paired": False},
    {"binary": True, "paired": True},
    {"binary": False, "paired": False},
    {"binary": False, "paired": True},
    {"binary": True, "paired": False, "horizon": 20, "margin": 0.1},
    {"binary": False, "paired": True, "margin": 0.1},
]
IDS = [" ".join(f"{name}={value}" for name, value in kind.items()) for kind in KINDS]


def some_costs(
    binary: bool, n: int = 40, seed: int = 0, rates=(0.3, 0.35)
) -> tuple[list[float], list[float]]:
    values = np.random.default_rng(seed).random((2, n))
    if binary:
        values = (values < np.array(rates)[:, None]).astype(float)
    return values[0].tolist(), values[1].tolist()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_one_by_one_is_as_all_at_once_and_the_state_goes_on_where_it_was(kind):
    costs_a, costs_b = some_costs(kind["binary"])
    test, batch = bw.PolicyComparison(**kind), bw.PolicyComparison(**kind)
    for i, pair in enumerate(zip(costs_a, costs_b, strict=True)):
        finding = test.update(*pair)
        if i == 17:
            state = json.loads(json.dumps(test.state_dict(), allow_nan=False))
            again = bw.PolicyComparison.from_state_dict(state)
            pickled = pickle.loads(pickle.dumps(test))  # noqa: S301  (our own bytes)
    assert batch.update_many(costs_a, costs_b).to_dict() == finding.to_dict()
    for copy in (again, pickled):
        assert copy.update_many(costs_a[18:], costs_b[18:]).to_dict() == finding.to_dict()
    assert again.state_dict() == test.state_dict()
    test.reset()
    assert test.update_many(costs_a, costs_b).to_dict() == finding.to_dict()
    json.dumps(finding.to_dict(), allow_nan=False)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_a_policy_that_is_ahead_waits_and_nothing_else_changes(kind):
    costs_a, costs_b = some_costs(kind["binary"])
    together, ahead = bw.PolicyComparison(**kind), bw.PolicyComparison(**kind)
    ahead.update_many(costs_a[:30])
    waiting = ahead.finding()
    assert (waiting.n_a, waiting.n_b, waiting.pairs, waiting.mean_cost_b) == (30, 0, 0, None)
    assert (waiting.difference_lower, waiting.difference_upper) == (-1, 1)
    assert waiting.verdict is UNDECIDED
    ahead = bw.PolicyComparison.from_state_dict(ahead.state_dict())
    for cost in costs_b[:35]:
        ahead.update(cost_b=cost)
    ahead.update_many(costs_a[30:], costs_b[35:])
    assert ahead.finding().to_dict() == together.update_many(costs_a, costs_b).to_dict()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_exchanging_the_policies_exchanges_the_verdict(kind):
    costs_a, costs_b = some_costs(kind["binary"], rates=(0.1, 0.9))
    if not kind["binary"]:
        costs_a, costs_b = [a / 2 for a in costs_a], [(1 + b) / 2 for b in costs_b]
    one, other = bw.PolicyComparison(**kind), bw.PolicyComparison(**kind)
    found, exchanged = one.update_many(costs_a, costs_b), other.update_many(costs_b, costs_a)
    assert (found.verdict, exchanged.verdict) == (A_BETTER, B_BETTER)
    assert found.first_alarm == exchanged.first_alarm <= 40
    assert (found.e_a_better, found.p_a_better) == (exchanged.e_b_better, exchanged.p_b_better)
    assert found.p_a_better <= 0.05
    assert found.difference_lower == pytest.approx(-exchanged.difference_upper)
    assert exchanged.no_worse
    assert not found.no_worse


def test_a_verdict_stays_and_none_comes_after_the_horizon():
    test = bw.PolicyComparison(binary=True, paired=False)
    first = test.update_many([0] * 10, [1] * 10)
    assert (first.verdict, first.first_alarm) == (A_BETTER, 4)
    later = test.update_many([1] * 100, [0] * 100)
    assert (later.verdict, later.first_alarm) == (A_BETTER, 4)
    assert later.e_b_better > 20
    test.reset()
    assert test.verdict is UNDECIDED
    test = bw.PolicyComparison(binary=True, paired=False, horizon=5)
    assert test.update_many([1, 0, 1, 0, 1] + [0] * 50, [0, 1, 0, 1, 0] + [1] * 50).verdict is UNDECIDED


def test_the_bets_after_the_table_find_a_small_difference_and_continue_from_a_state():
    rng = np.random.default_rng(8)
    costs_a, costs_b = ((rng.random(4000) < rate).astype(float).tolist() for rate in (0.3, 0.37))
    test = bw.PolicyComparison(binary=True, paired=False)
    assert test.update_many(costs_a[:LAST_PAIR], costs_b[:LAST_PAIR]).verdict is UNDECIDED
    again = bw.PolicyComparison.from_state_dict(json.loads(json.dumps(test.state_dict())))
    finding = test.update_many(costs_a[LAST_PAIR:], costs_b[LAST_PAIR:])
    assert finding.verdict is A_BETTER
    assert LAST_PAIR < finding.first_alarm < 3000
    assert again.update_many(costs_a[LAST_PAIR:], costs_b[LAST_PAIR:]).to_dict() == finding.to_dict()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
@pytest.mark.parametrize("cost", [1.5, -0.1, float("nan"), "0.3", [0.5]])
def test_an_invalid_cost_is_refused_and_nothing_is_counted(kind, cost):
    test = bw.PolicyComparison(**kind)
    for call in (
        lambda: test.update(0, cost),
        lambda: test.update(cost_a=cost),
        lambda: test.update_many([0, 0], [0, cost]),
    ):
        with pytest.raises(InvalidCost, match="cost"):
            call()
    with pytest.raises(InvalidCost, match="no cost"):
        test.finding()


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(InvalidCost, match=r"cost_b\[0\] = 0.5 is not 0 or 1"):
        bw.PolicyComparison(binary=True, paired=False).update(0, 0.5)
    with pytest.raises(InvalidCost, match="no cost was given"):
        bw.PolicyComparison(binary=True, paired=False).update()
    with pytest.raises(InvalidLevel, match="alpha = 1"):
        bw.PolicyComparison(1, binary=True, paired=False)
    for horizon, words in ((0, "1 or more"), (2.5, "no number of pairs"), (301, "leave it out")):
        with pytest.raises(InvalidSetting, match=words):
            bw.PolicyComparison(binary=True, paired=False, horizon=horizon)
    with pytest.raises(InvalidSetting, match="goes with costs of 0 and 1"):
        bw.PolicyComparison(binary=False, paired=False, horizon=10)
    for margin in (-0.1, 1, "0.1", True):
        with pytest.raises(InvalidSetting, match="margin = "):
            bw.PolicyComparison(binary=False, paired=False, margin=margin)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "Fleet"),
        ("pairs", 3),
        ("costs", [[2.0], []]),
        ("verdict", "adverse"),
        ("memory", 3),
        ("paired", 1),
    ],
)
def test_a_damaged_state_is_refused(name, value):
    test = bw.PolicyComparison(binary=True, paired=False)
    test.update_many([0, 1], [1, 1])
    with pytest.raises(SchemaMismatch):
        bw.PolicyComparison.from_state_dict(test.state_dict() | {name: value})


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("alpha", "horizon"), [(0.05, 1), (0.3, 4), (1e-5, 40), (0.6, 40), (0.2, 12)])
def test_any_level_and_horizon_has_a_region(alpha, horizon, paired):
    region = find_region(alpha, paired=paired, horizon=horizon)
    assert region.level <= alpha
    assert len(region.needed) == horizon + 1
    assert find_region(alpha, paired=paired, horizon=horizon) is region  # it is computed once


def test_the_finished_policy_stays_a_while_b_outgrows_it():
    rng = np.random.default_rng(4)
    a, b = ((rng.random(n) < 0.3).astype(float) for n in (20, 60))
    streamed = bw.PolicyComparison(binary=True, paired=False, finished=True)
    streamed.update_many(a)
    for n, cost in enumerate(b, 1):
        one = streamed.update(cost_b=cost)
        again = bw.PolicyComparison(binary=True, paired=False, finished=True)
        assert again.update_many(a, b[:n]).to_dict() == one.to_dict()
        kept = bw.PolicyComparison.from_state_dict(again.state_dict())
        assert kept.finding().to_dict() == one.to_dict()
    with pytest.raises(InvalidCost, match="policy A must be finished before B begins"):
        bw.PolicyComparison(binary=True, paired=False, finished=True).update(cost_b=0.0)


@pytest.mark.parametrize(
    "other", [{"paired": True}, {"binary": False}, {"horizon": 50}, {"tasks": 2}, {"alpha": 1e-7}]
)
def test_a_finished_policy_goes_with_nothing_else(other):
    bw.PolicyComparison(finished=True, binary=True, paired=False)
    with pytest.raises(InvalidSetting, match="independent trials of 0 and 1, of one task, without a horizon"):
        bw.PolicyComparison(**{"finished": True, "binary": True, "paired": False} | other)
