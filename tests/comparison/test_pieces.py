"""Pieces of comparisons, each against what its definition says, where promises are tested as a whole."""

import itertools

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.comparison.late import Walk, _log_wealth, late_line
from boundwatch.comparison.matching import SORTED_LEVEL, _runs, keys_of, refuse_sorted
from boundwatch.comparison.region import design_sign_region
from boundwatch.errors import InvalidCost, InvalidSetting


@pytest.mark.parametrize(("ones", "zeros"), [(4, 3), (1, 5), (0, 3)])
def test_the_chances_of_runs_are_those_of_all_orders(ones, zeros):
    counted = np.zeros(9)
    for order in itertools.permutations([1] * ones + [0] * zeros):
        counted[1 + sum(a != b for a, b in itertools.pairwise(order))] += 1
    assert _runs(ones, zeros, 8) == pytest.approx(counted / counted.sum(), abs=1e-12)


def test_trials_are_refused_as_sorted_up_to_the_level():
    """With 20 failures of 40, the numbers of runs that are refused are just those that are rare enough."""
    most = int(np.flatnonzero(np.cumsum(_runs(20, 20, 40)) <= SORTED_LEVEL).max())

    def with_runs(runs):
        lengths = [[20 // k + (i < 20 % k) for i in range(k)] for k in ((runs + 1) // 2, runs // 2)]
        costs = [float(i % 2) for i in range(runs) for _ in range(lengths[i % 2][i // 2])]
        return bw.Episodes(costs, binary=True)

    with pytest.raises(InvalidCost, match="sorted by their outcome"):
        refuse_sorted(with_runs(most))
    refuse_sorted(with_runs(most + 1))


def test_a_walk_of_fair_coins_knows_its_leads():
    walk = Walk(0, np.ones(1))
    walk.toss(3, 0.5)
    assert walk.leads.tolist() == [-3, -1, 1, 3]
    assert walk.chances == pytest.approx([1 / 8, 3 / 8, 3 / 8, 1 / 8])


def test_the_wealth_after_the_last_look_is_fair():
    """One more coin leaves its mean as it was, so that Ville's inequality bounds what comes after."""
    leads = np.arange(-10, 31, 2)
    ups, downs = (np.exp(_log_wealth(41, leads + step)) for step in (1, -1))
    assert (ups + downs) / 2 == pytest.approx(np.exp(_log_wealth(40, leads)), rel=1e-12)


def test_after_the_last_look_a_wealth_alarms():
    line = late_line(0.05, 60)
    differing = int(line.looks[-1]) + 1
    wealth = _log_wealth(line.information + differing, np.arange(differing))
    lead = int(np.argmax(wealth >= line.threshold))
    assert 0 < lead < differing
    assert line.alarms(differing, lead)
    assert not line.alarms(differing, lead - 1)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_the_region_for_matched_pairs_spends_its_level(alpha):
    assert 0.99 * alpha < design_sign_region(alpha).level <= alpha


def test_trials_without_keys_are_not_matched_by_them():
    costs = bw.Episodes([0.0, 1.0, 0.0], binary=True)
    with pytest.raises(InvalidSetting, match="not read with these keys"):
        keys_of({"a": costs, "b": costs}, "seed")


@pytest.mark.parametrize("settings", [{"tasks": 2}, {"binary": False}])
def test_a_horizon_goes_with_one_task_that_fails_or_not(settings):
    with pytest.raises(InvalidSetting, match="of one task only"):
        bw.PolicyComparison(**{"binary": True, "paired": False, "horizon": 50} | settings)
