"""The PAC-Bayes bounds: hand-computed cases, dominance, refusals."""

import math

import pytest

from boundwatch import bounds
from boundwatch.errors import InvalidSetting


def test_gaps_at_ten_thousand_environments():
    """Cost 0.30, delta 0.01, posterior equal to prior: the figures computed when the bounds were derived."""
    m, delta, cost = 10_000, 0.01, 0.30
    uppers = [bounds.pac_bayes_upper(cost, m, delta, 0.0, form) for form in ("pinsker", "kl")]
    uppers += [bounds.pointwise_upper(cost, m, delta, 0.0), float(bounds.chernoff_upper(cost, m, delta))]
    assert [round(upper - cost, 4) for upper in uppers] == [0.0326, 0.0304, 0.0206, 0.0140]
    lowers = [bounds.pac_bayes_lower(cost, m, delta, 0.0, form) for form in ("pinsker", "kl")]
    assert [round(cost - lower, 4) for lower in lowers] == [0.0326, 0.0292]  # Pinsker's sides are alike
    assert bounds.pac_bayes_lower(0.02, m, delta, 0.0, "pinsker") == 0.0


def test_theorem_1_as_printed_cannot_reach_a_tenth_with_500_environments():
    assert bounds.pac_bayes_upper(0.0, 500, 0.01, 0.0, "pinsker") >= 0.140
    assert bounds.pac_bayes_upper(0.004, 500, 0.01, 0.28, "kl") < 0.1


def test_a_divergence_without_bound_gives_a_vacuous_interval():
    assert bounds.pac_bayes_upper(0.3, 100, 0.05, math.inf) == 1.0
    assert bounds.pac_bayes_lower(0.3, 100, 0.05, math.inf) == 0.0


def test_a_policy_that_the_prior_favors_never_beats_its_own_training_cost():
    assert bounds.pointwise_upper(0.3, 100, 0.05, log_ratio=-1000.0) == 0.3


@pytest.mark.parametrize("function", [bounds.pac_bayes_complexity, bounds.pointwise_complexity])
def test_fewer_than_eight_environments_are_refused(function):
    assert function(8, 0.05, 0.0) > 0
    with pytest.raises(InvalidSetting, match="m = 7 training environments are too few"):
        function(7, 0.05, 0.0)
