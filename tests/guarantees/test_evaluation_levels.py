"""Two equal policies under drift: an evaluation keeps its level, the naive order does not."""

import numpy as np
import pytest
from benchmarks.evaluation import naive, pairs_needed, verdicts

from boundwatch.bounds.anytime import anytime_log_wealth
from rates import assert_rate_at_most, min_trials

ALLOWED = 0.10  # 5 % per side
RUNS = 230  # benchmarks/evaluation.py has 4,000 of each, and more worlds
assert min_trials(limit=ALLOWED, broken=0.35) <= RUNS


@pytest.mark.parametrize("world", ["drift, operator aborts", "two stations"])
def test_equal_policies_rarely_get_a_verdict(world):
    assert_rate_at_most(verdicts(world, RUNS), RUNS, ALLOWED)


def test_all_of_a_and_then_all_of_b_breaks_the_level():
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(naive(2 * RUNS), 2 * RUNS, ALLOWED)


def test_an_evaluation_needs_the_pairs_of_a_paired_comparison():
    ours, reference = pairs_needed((0.2, 0.6), 20)
    assert ours == reference


HARD, EASY, ALPHA, LIVES = 0.9, 0.1, 0.1, 4000


def times_above(failed, looks):
    """Return in how many rows the lower limit is ever above the mean over both tasks, 1/2."""
    wealth = anytime_log_wealth(failed.cumsum(axis=1)[:, looks - 1], looks, 0.0)
    return int((wealth >= np.log(1 / ALPHA)).any(axis=1).sum())


def test_limits_hold_for_the_mean_over_tasks_at_complete_rounds_only():
    rng, rounds = np.random.default_rng(3), 60
    rates = np.tile([HARD, EASY], rounds)
    failed = rng.random((LIVES, rates.size)) < rates
    complete = np.arange(2, rates.size + 1, 2)
    assert_rate_at_most(times_above(failed, complete), LIVES, ALPHA)
    # The broken twin: the hard task is run first, and one looks before the other has its turn.
    sorted_by_task = np.concatenate([failed[:, ::2], failed[:, 1::2]], axis=1)
    with pytest.raises(AssertionError):
        assert_rate_at_most(times_above(sorted_by_task, np.arange(2, rates.size + 1)), LIVES, ALPHA)
