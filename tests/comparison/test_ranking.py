"""Several policies: closed testing, letters, what to test next."""

from itertools import combinations, permutations

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.comparison.betting import DifferenceBets
from boundwatch.comparison.ranking import close, letter_display
from boundwatch.errors import InvalidCost, InvalidLevel, InvalidSetting
from rates import assert_rate_at_most, min_trials


def failures(rng: np.random.Generator, rate: float, n: int = 120) -> list[float]:
    return (rng.random(n) < rate).astype(float).tolist()


def wrongly_decided(runs: int, alpha: float, *, corrected: bool = True) -> int:
    """Runs in which equally good policies are told apart, of sixteen with 60 trials each."""
    costs = np.random.default_rng(2).random((16, runs, 60)) < 0.5
    bets, pairs = DifferenceBets(), list(permutations(range(16), 2))
    won = np.array([(costs[b] > costs[a]).sum(axis=1) for a, b in pairs])[..., None]
    lost = np.array([(costs[a] > costs[b]).sum(axis=1) for a, b in pairs])[..., None]
    logs = np.logaddexp.reduce(
        won * bets.log_factors(0.0, 1.0) + lost * bets.log_factors(1.0, 0.0) + bets.log_shares, axis=2
    )
    judged = np.stack([close(column) for column in logs.T], axis=1) if corrected else logs
    return int((judged >= np.log(1 / alpha)).any(axis=0).sum())


def test_equal_policies_are_told_apart_in_at_most_alpha_of_all_families():
    runs, alpha = 200, 0.1
    assert runs >= min_trials(limit=alpha, broken=0.4)
    assert_rate_at_most(wrongly_decided(runs, alpha), runs, alpha)
    with pytest.raises(AssertionError):  # without a correction
        assert_rate_at_most(wrongly_decided(runs, alpha, corrected=False), runs, alpha)


def told_apart(runs: int, alpha: float, *, shared: bool = True) -> int:
    """Runs in which some of three equally good policies are told apart by exact tables, of 0 and 1."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(runs):
        costs = {name: failures(rng, 0.3, 30) for name in "abc"}
        ranking = bw.rank(costs, alpha if shared else 6 * alpha, binary=True)
        wrong += any(pair.decided for pair in ranking.pairs)
    return wrong


def test_exact_tables_share_alpha_and_need_fewer_rounds():
    runs, alpha = 200, 0.1
    assert runs >= min_trials(limit=alpha, broken=0.4)
    assert_rate_at_most(told_apart(runs, alpha), runs, alpha)
    with pytest.raises(AssertionError):  # every ordered pair at alpha: the broken twin
        assert_rate_at_most(told_apart(runs, alpha, shared=False), runs, alpha)
    rng, found = np.random.default_rng(4), {True: 0, False: 0}
    for _ in range(40):
        costs = {name: failures(rng, rate, 50) for name, rate in {"a": 0.3, "b": 0.7, "c": 0.7}.items()}
        for binary in found:
            found[binary] += bw.rank(costs, binary=binary).best == ("a",)
    assert found[True] >= found[False] + 4


def test_once_a_pair_is_decided_the_others_share_alpha_by_fewer():
    def decided(*failed_of_20):
        costs = {name: [1.0] * k + [0.0] * (20 - k) for name, k in zip("abde", failed_of_20, strict=True)}
        ranking = bw.rank(costs | {"c": [1.0] * 6}, 0.1, binary=True)
        return {(pair.better, pair.worse) for pair in ranking.pairs if pair.decided}

    sharing = [bw.PolicyComparison(0.1 / n, binary=True, paired=False) for n in (20, 16)]
    verdicts = [test.update_many([0.0] * 6, [1.0] * 6).verdict.value for test in sharing]
    assert verdicts == ["undecided", "a-better"]
    assert decided(0, 0, 0, 0) == set()  # level: as long as all may be alike, none has the larger share
    assert {("a", "c"), ("d", "c"), ("e", "c")} < decided(0, 20, 0, 0)  # power: b is worse than they are


def test_costs_that_are_0_or_1_so_far_are_not_taken_for_binary():
    costs = {"a": [0.0] * 12, "b": [1.0] * 6 + [0.0] * 6}
    assert not bw.rank(costs).pairs[0].decided
    assert bw.rank(costs, binary=True).pairs[0].decided
    almost = {"a": [0.0] * 12, "b": [1.0] * 5 + [0.99] + [0.0] * 6}  # the same bets, not another event
    assert bw.rank(costs).pairs[0].adjusted_p == pytest.approx(bw.rank(almost).pairs[0].adjusted_p, rel=0.1)


def test_p_values_of_exact_tables_and_what_was_promised():
    ranking = bw.rank({"a": [0] * 9 + [1], "b": [1] * 10, "c": [0, 1] * 5}, binary=True)
    decided = {(pair.better, pair.worse): pair.adjusted_p for pair in ranking.pairs if pair.decided}
    assert list(decided) == [("a", "b")]
    assert decided["a", "b"] <= 0.05 < min(pair.adjusted_p for pair in ranking.pairs if not pair.decided)
    with pytest.raises(InvalidCost, match="not all costs are 0 or 1"):
        bw.rank({"a": [0.5], "b": [1.0]}, binary=True)


def test_a_clear_order_is_found_and_the_rest_is_left_open():
    rng = np.random.default_rng(0)
    costs = {"old": failures(rng, 0.6), "good": failures(rng, 0.1), "fine": failures(rng, 0.12)}
    ranking = bw.rank(costs)
    assert [policy.name for policy in ranking.policies][-1] == "old"
    letters = {policy.name: policy.letters for policy in ranking.policies}
    assert letters["good"] == letters["fine"] == "a"
    assert letters["old"] == "b"
    assert set(ranking.best) == {"good", "fine"}
    assert set(ranking.next_pair) == {"good", "fine"}
    for policy in ranking.policies:
        assert policy.lower < policy.mean_cost < policy.upper
    assert ranking.to_dict()["best"] == ranking.best
    assert ranking.to_frame().shape == (3, 6)


def test_what_is_next_when_all_is_decided_or_means_are_equal():
    ranking = bw.rank({"a": [0.0] * 40, "b": [1.0] * 40}, paired=True)
    assert (ranking.next_pair, ranking.best) == (None, ("a",))
    ranking = bw.rank({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    assert set(ranking.next_pair) == {"a", "b"}


def test_closed_testing_is_the_smallest_average_over_all_intersections():
    rng = np.random.default_rng(1)
    e_values = np.exp(3 * rng.standard_normal(6))
    others = [set(group) for size in range(6) for group in combinations(range(6), size)]
    for index, adjusted in enumerate(np.exp(close(np.log(e_values)))):
        averages = [e_values[list(group | {index})].mean() for group in others if index not in group]
        assert adjusted == pytest.approx(min(averages))


def test_letters_are_shared_exactly_by_those_that_are_not_different():
    rng = np.random.default_rng(4)
    names = [f"policy {i}" for i in range(7)]
    for _ in range(50):
        different = [pair for pair in combinations(names, 2) if rng.random() < 0.4]
        letters = letter_display(names, different)
        for pair in combinations(names, 2):
            assert bool(set(letters[pair[0]]) & set(letters[pair[1]])) == (pair not in different)
    assert set(letter_display(names, combinations(names, 2)).values()) == set("abcdefg")


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(InvalidSetting, match="at least two policies"):
        bw.rank({"a": [0.0]})
    with pytest.raises(InvalidSetting, match="not a policy's name"):
        bw.rank({"a": [0.0], 3: [0.0]})
    with pytest.raises(InvalidCost, match=r"costs\['b'\]\[1\] = 1.5"):
        bw.rank({"a": [0.0], "b": [0.0, 1.5]})
    with pytest.raises(InvalidCost, match="a: 1, b: 2"):
        bw.rank({"a": [0.0], "b": [0.0, 1.0]}, paired=True)
    with pytest.raises(InvalidLevel, match="alpha"):
        bw.rank({"a": [0.0], "b": [1.0]}, alpha=0)
