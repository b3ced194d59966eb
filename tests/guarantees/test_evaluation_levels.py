"""Two equal policies under drift: an evaluation keeps its level, the naive order does not."""

import pytest
from benchmarks.evaluation import naive, pairs_needed, verdicts

from rates import assert_rate_at_most, min_trials

ALLOWED = 0.10  # 5 % per side
RUNS = 240  # benchmarks/evaluation.py has 4,000 of each, and more worlds
assert min_trials(limit=ALLOWED, broken=0.35) <= RUNS


@pytest.mark.parametrize("world", ["drift", "drift, operator aborts", "two stations"])
def test_equal_policies_rarely_get_a_verdict(world):
    assert_rate_at_most(verdicts(world, RUNS), RUNS, ALLOWED)


def test_all_of_a_and_then_all_of_b_breaks_the_level():
    with pytest.raises(AssertionError, match="against a promise"):
        assert_rate_at_most(naive(10 * RUNS), 10 * RUNS, ALLOWED)


def test_an_evaluation_needs_the_pairs_of_a_paired_comparison():
    ours, reference = pairs_needed((0.2, 0.6), 20)
    assert ours == reference
