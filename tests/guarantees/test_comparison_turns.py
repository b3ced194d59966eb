"""Several tasks in a fixed order: the level at complete turns, exact, whatever the tasks are like."""

import itertools
import math

import numpy as np
import pytest

import boundwatch as bw
from boundwatch.comparison.betting import DifferenceBets

ALPHA = 0.05
# Failure rates of both policies at each task, and the number of turns. In none is one better in the mean.
WORLDS = {
    "0.1 and 0.5, exchanged halfway": ([0.1] * 10 + [0.5] * 10, [0.5] * 10 + [0.1] * 10, 20),
    "the same with 40 tasks": ([0.1] * 20 + [0.5] * 20, [0.5] * 20 + [0.1] * 20, 10),
    "each solves the other half": ([0.0] * 10 + [1.0] * 10, [1.0] * 10 + [0.0] * 10, 20),
    "one task against nine": ([0.0] + [0.1] * 9, [0.9] + [0.0] * 9, 20),
    "alike": ([0.3] * 10, [0.3] * 10, 20),
    "worse in the mean, better at first": ([0.0] * 3 + [0.6] * 7, [0.9] * 3 + [0.2] * 7, 20),
}


def ever(rates_a, rates_b, turns, *, looks_within=False, margin=0.0, alpha=ALPHA) -> float:
    """P[the wealth that B costs more, by a margin, is ever 1/alpha], by a recursion over counts.

    a and b count the trials that only A, or only B, failed.
    """
    tasks, bets = len(rates_a), DifferenceBets(margin)
    size = tasks * turns + 1
    a, b = np.arange(size)[:, None], np.arange(size)
    alive, alarmed = np.zeros((size, size)), 0.0
    alive[0, 0] = 1.0
    parts = zip(
        bets.log_shares,
        *(bets.log_factors(*costs) for costs in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))),
        strict=True,
    )
    parts = list(parts)
    for n, (p, q) in enumerate(list(zip(rates_a, rates_b, strict=True)) * turns, start=1):
        moved = (1 - p * (1 - q) - q * (1 - p)) * alive
        moved[1:] += p * (1 - q) * alive[:-1]
        moved[:, 1:] += q * (1 - p) * alive[:, :-1]
        alive = moved
        if looks_within or n % tasks == 0:
            wealth = np.zeros((size, size))
            for share, only_a, only_b, same in parts:
                wealth += np.exp(
                    np.minimum(share + n * same + a * (only_a - same) + b * (only_b - same), 700)
                )
            alarmed += alive[wealth >= 1 / alpha].sum()
            alive[wealth >= 1 / alpha] = 0.0
    return float(alarmed)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS)
def test_tasks_that_differ_in_any_way_keep_the_level_at_complete_turns(world):
    rates_a, rates_b, turns = world
    assert np.mean(rates_a) >= np.mean(rates_b) - 1e-12
    assert ever(rates_a, rates_b, turns) <= ALPHA


@pytest.mark.parametrize(("world", "least"), [(0, 0.2), (1, 0.5), (2, 0.99)])
def test_looks_within_a_turn_break_the_level(world, least):
    """The broken twin: whoever is good at the first tasks wins."""
    rates_a, rates_b, turns = list(WORLDS.values())[world]
    assert ever(rates_a, rates_b, min(turns, 5), looks_within=True) > least


def test_a_difference_between_the_policies_is_found():
    rates = np.linspace(0, 0.6, 10)
    assert ever(rates, rates + 0.3, 15) > 0.9
    assert 0.005 < ever([0.3] * 4, [0.3] * 4, 60) <= ALPHA  # not vacuous


def test_no_worse_by_a_margin_keeps_its_level_at_complete_turns():
    # B costs 0.2 more in the mean: much more at the last tasks, less at the first.
    rates_b, rates_a = [0.0] * 12 + [0.9] * 12, [0.5] * 12 + [0.0] * 12
    assert np.mean(rates_b) - np.mean(rates_a) == pytest.approx(0.2)
    assert ever(rates_b, rates_a, 6, margin=-0.2) <= ALPHA
    assert ever(rates_b, rates_a, 3, margin=-0.2, looks_within=True) > 2 * ALPHA
    assert ever(rates_a, rates_a, 6, margin=-0.2) > 0.3


def expected_wealth(differences, sizes) -> float:
    """The expected wealth after one turn of bets whose size depends on what the turn has brought so far."""
    total = 0.0
    for signs in itertools.product((-1, 0, 1), repeat=len(differences)):
        chance = wealth = 1.0
        for place, (sign, (worse, better)) in enumerate(zip(signs, differences, strict=True)):
            chance *= {1: worse, -1: better, 0: 1 - worse - better}[sign]
            wealth *= 1 + sizes(place, signs[:place]) * sign
        total += chance * wealth
    return total


def test_a_bet_whose_size_changes_within_a_turn_is_no_fair_bet():
    """The trap: with one size for the turn the expected wealth is at most 1, with two it need not be."""
    differences = [(0.7, 0.1), (0.3, 0.2), (0.0, 0.7)]  # chances that only B fails, that only A does
    assert sum(b - a for b, a in differences) == pytest.approx(0)
    for size in (0.01, 0.2, 0.5, 0.995):
        assert expected_wealth(differences, lambda *_, size=size: size) <= 1
    assert expected_wealth(differences, lambda place, _: (0.5, 0.5, 0.1)[place]) > 1.1
    assert expected_wealth(differences, lambda _, past: 0.5 if sum(past) <= 0 else 0.1) > 1.1


SWAPPED = {"unpaired": (False, 0.0), "paired": (True, 1.0)}


@pytest.mark.parametrize(("paired", "shared"), SWAPPED.values(), ids=SWAPPED)
@pytest.mark.parametrize(
    "rates", [((0.0, 1.0), (1.0, 0.0)), ((0.1, 0.6), (0.6, 0.1)), ((0.5, 0.5), (0.4, 0.6))]
)
def test_the_comparison_itself_reads_complete_turns_on_every_sequence(rates, paired, shared):
    """By update on every sequence of three turns of two tasks; matched costs go together where they can."""
    alpha, test = 0.3, bw.PolicyComparison(0.3, binary=True, paired=paired, tasks=2)
    outcomes = []
    for p, q in zip(*rates, strict=True):
        both = shared * min(p, q) + (1 - shared) * p * q
        outcomes.append({(1, 1): both, (1, 0): p - both, (0, 1): q - both, (0, 0): 1 - p - q + both})
    wrong = dict.fromkeys(bw.ComparisonVerdict, 0.0)
    possible = [{pair: chance for pair, chance in one.items() if chance > 1e-12} for one in outcomes]
    for pairs in itertools.product(*possible * 3):
        test.reset()
        chance = math.prod(possible[place % 2][pair] for place, pair in enumerate(pairs))
        verdicts = [test.update(*pair).verdict for pair in pairs]
        assert all(verdicts[n] is verdicts[n - 1] for n in (2, 4))  # nothing is said within a turn
        wrong[verdicts[-1]] += chance
    assert sum(wrong.values()) == pytest.approx(1)
    assert (
        max(wrong[side] for side in (bw.ComparisonVerdict.A_BETTER, bw.ComparisonVerdict.B_BETTER)) <= alpha
    )
    test.reset()
    assert test.update_many([0] * 6, [1] * 6).verdict is bw.ComparisonVerdict.A_BETTER


def test_the_limits_are_those_of_complete_turns():
    test = bw.PolicyComparison(ALPHA, binary=False, paired=True, margin=0.1, tasks=3)
    first = test.update_many([0.2, 0.4, 0.9] * 4, [0.3, 0.1, 0.8] * 4)
    waiting = test.update_many([0.0, 0.0], [1.0, 1.0])
    for name in ("pairs", "difference_lower", "difference_upper", "e_a_better", "p_b_better", "no_worse"):
        assert getattr(waiting, name) == getattr(first, name)
    assert (waiting.n_a, waiting.pairs) == (14, 12)
    again = bw.PolicyComparison.from_state_dict(test.state_dict())
    assert again.update(0.0, 0.5).to_dict() == test.update(0.0, 0.5).to_dict()
    assert test.pairs == 15
